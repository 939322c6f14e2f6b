"""What a study measured, as text: statements of the paper beside our numbers, tables, and the paper's files."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd

from felicific import sample_size
from studies.experiment import CRITERIA, METHODS, PARTS, POLICIES, Floats, Run, distinct_numbers

#: Rows per group that the paper's bound on the validation set asks for, with the numbers it uses.
LEMMA_ROWS = int(sample_size(delta=0.02, confidence=0.99, n_measures=2, n_classes=2, n_groups=2, span=1.0))


@dataclass(frozen=True)
class Statement:
    """One statement of the paper, what it prints, our number for every seed, and whether it holds (None: open)."""

    text: str
    paper: str
    ours: tuple[float, ...]
    holds: bool | None

    @property
    def cells(self) -> list[str]:
        """As a row of a table."""
        return [
            self.text,
            self.paper,
            spread(self.ours),
            {True: "yes", False: "**no**", None: ""}[self.holds],
        ]

    @property
    def line(self) -> str:
        """As a line of text."""
        verdict = {True: "holds:         ", False: "does not hold: ", None: "no rule:       "}[self.holds]
        return f"{verdict}{self.text}; paper: {self.paper}; ours: {spread(self.ours)}"


class Numbers:
    """The numbers of all seeds."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self.frame = pd.concat([run.numbers for run in runs], ignore_index=True)
        self.places = dict(
            list(self.frame.set_index("seed").groupby(["policy", "people", "method", "place"]))
        )

    def of(self, policy: str, people: str, method: str, place: str = "eps 0") -> pd.DataFrame:
        """Rows of one place, one for every seed."""
        return self.places[policy, people, method, "as it is" if method == "unprocessed" else place]


def common_statements(numbers: Numbers) -> list[Statement]:
    """What the paper says of all its data."""
    found = []
    for policy in POLICIES:
        leads = pd.DataFrame(
            {
                method: rows["own accuracy"] - rows["accuracy"]
                for method in CRITERIA
                for rows in [numbers.of(policy, "validation", method, "closest")]
            }
        )
        text = f"own happiness is the most accurate as the gap goes to 0, on validation, {policy}: least lead"
        least = tuple(leads.min(axis=1))
        found.append(Statement(f"{text} (see the table below)", "0 or more", least, min(least) >= -1e-9))
    fewest = min(run.fewest for run in numbers.runs)
    text = f"validation people in the smallest group; the paper's bound asks for {LEMMA_ROWS:,} in each"
    text += " (16 % of its 48,842 people are 7,815 in both groups together)"
    people = sum(numbers.runs[0].people.values())
    return [
        *found,
        Statement("people in the data", "48,842", (people,), None),
        Statement(text, "satisfied", (fewest,), fewest >= LEMMA_ROWS),
    ]


# ---------------------------------------------------------------------------------------------------------
# Tables


def study_text(numbers: Numbers, statements: Sequence[Statement], unit: str) -> str:
    """The tables of a study: statements, and for both policies every method."""
    parts = [
        "### Beside the paper",
        table(["statement", "paper", "ours", "holds"], [one.cells for one in statements]),
    ]
    for policy, what in POLICIES.items():
        parts += [f"### Every method, `{policy}` ({what})", methods_table(numbers, policy, unit)]
        parts += ["Where each comes closest to gap 0:", closest_table(numbers, policy, unit)]
    seeds = len(numbers.runs)
    means = f"Means over {seeds} seeds; ± is one standard error of that mean."
    one = "± is one standard error, from the variances within the groups."
    ties = "In brackets: the gaps that ties between a criterion's optimal policies allow."
    return "\n\n".join([*parts, f"{means if seeds > 1 else one} {ties}"])


def methods_table(numbers: Numbers, policy: str, unit: str) -> str:
    """Accuracy and gap where each criterion is met exactly, and of the classifier as it is."""
    rows = []
    for method in ("unprocessed", *METHODS):
        row = [method if method == "unprocessed" else f"{method}, eps 0"]
        for part in PARTS:
            found = numbers.of(policy, part, method)
            row += [percent(found["accuracy"]), gap(found, unit)]
        rows.append(row)
    return table(["method", *(f"{what}, {part}" for part in PARTS for what in ("accuracy", "gap"))], rows)


def closest_table(numbers: Numbers, policy: str, unit: str) -> str:
    """Where every method's frontier comes closest to gap 0, and how accurate the own happiness is at that gap."""
    rows = []
    for method in METHODS:
        near, far = (
            numbers.of(policy, part, method, "closest").drop(columns=["low", "high"]) for part in PARTS
        )
        shares = [percent(near["accuracy"]), percent(near["own accuracy"])]
        rows.append([method, gap(near, unit), *shares, gap(far, unit), percent(far["accuracy"])])
    header = ["method", "least gap, validation", "accuracy there", "own happiness at that gap"]
    return table([*header, "least gap, test", "accuracy there"], rows)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(line)} |" for line in [header, ["---"] * len(header), *rows])


def software() -> str:
    """Versions of what was used."""
    names = ("felicific", "numpy", "scikit-learn", "highspy")
    return (
        f"Python {platform.python_version()}, " + ", ".join(f"{name} {version(name)}" for name in names) + "."
    )


# ---------------------------------------------------------------------------------------------------------
# Numbers as text


def plain(number: float, like: float | None = None) -> str:
    """No digits after the point for large numbers, some for small ones; as many as a number ``like`` it has."""
    if abs(number) < 1e-9:
        return "0"
    size = abs(number) if like is None else max(abs(like), abs(number))
    digits = 0 if size >= 100 or (like is None and number == round(number)) else 2 if size >= 1 else 4
    return f"{number:,.{digits}f}" if round(number, digits) else f"{number:.1e}"


def spread(values: Sequence[float]) -> str:
    """Mean, standard error and range over seeds."""
    if len(values) == 1:
        return plain(values[0])
    like, error = max(map(abs, values)), np.std(values, ddof=1) / math.sqrt(len(values))
    low, high = plain(min(values), like), plain(max(values), like)
    return f"{plain(float(np.mean(values)), like)} ± {plain(error, like)} ({low} to {high})"


def percent(shares: Any) -> str:
    """Mean of some shares."""
    return f"{100 * shares.mean():.2f} %"


def gap(rows: pd.DataFrame, unit: str) -> str:
    """Mean gap, its standard error, and what ties allow."""
    mean = rows["gap"].mean()
    error = rows["gap"].std() / math.sqrt(len(rows)) if len(rows) > 1 else rows["error"].iloc[0]
    like = max(mean, error)
    text = f"{plain(mean, like)} ± {plain(error, like)}"
    text = f"${text}" if unit == "$" else f"{text} {unit}"
    if "low" in rows:
        low, high = rows["low"].mean(), rows["high"].mean()
        if high - low > 1e-6 * max(high, 1.0):
            text += f" [{plain(low, like)} to {plain(high, like)}]"
    return text


# ---------------------------------------------------------------------------------------------------------
# The paper's files


def paper_file(tracks: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The file behind the paper's figures: accuracy, then the gap of every method (columns 0, 1, 2, 3)."""
    grid = distinct_numbers(np.concatenate([track["accuracy"] for track in tracks]))
    columns = {str(k): gap_on_grid(track, grid) for k, track in enumerate(tracks)}
    return pd.DataFrame({"acc": grid} | columns)


def gap_on_grid(track: pd.DataFrame, grid: Floats) -> Floats:
    """The gap of a track at every accuracy of the grid: exact, NaN where it does not come.

    Where the track passes an accuracy more than once, which happens on people it was not fitted on, its least gap.
    """
    accuracy, gap = track["accuracy"].to_numpy(), track["gap"].to_numpy()
    found = np.full(len(grid), math.inf)
    for i in range(max(len(gap) - 1, 1)):
        ends = accuracy[i : i + 2], gap[i : i + 2]
        order = np.lexsort((-ends[1], ends[0]))
        a, g = ends[0][order], ends[1][order]
        here = (grid >= a[0] - 1e-12) & (grid <= a[-1] + 1e-12)
        # With both ends at one accuracy, interp gives the last one: the lesser gap.
        found[here] = np.minimum(found[here], np.interp(grid[here], a, g))
    return np.where(np.isfinite(found), found, np.nan)
