"""Amounts: squared error and distance between groups, against equipy, the barycenter and a mean shift.

    pip install -e ".[pandas]" && python benchmarks/amounts.py [--seeds 5] [--loans Loan.csv]
        [--only table|equal|interest|calibration|time] [--rows 1000000] [--out docs/evidence]

Hours of work on Adult by sex, and interest rates on the public loan file by age, which is left out where it is not at
hand (``--loans``, the variable FELICIFIC_LOANS or ``../shared/data/loan/Loan.csv``). Rows are permuted by seed and cut
40/30/30: for the model, for the policy, for the test; every number is measured on test rows, and every comparison is
paired by seed. Wages of the American Community Survey are not at hand, and not measured. equipy is installed, by name,
into an environment of its own under ``--envs``, and runs once for all tasks. Tables of Markdown go to the output; with
``--out`` also between the markers of ``howto-amounts.md`` there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from shared import EVIDENCE, ROOT, SCRIPTS, environment, fill, machine, table
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression

import felicific
from felicific import FairRegressor, Score
from felicific.datasets import adult, financial_loans
from felicific.exceptions import LotteryWarning, PolicyWarning

PEER = ("equipy",)
BLENDS = [0.0, 0.25, 0.5]
GAPS = [0.0, 0.05, 0.1, 0.2]
#: Gaps between which the one with a blend's distance is looked for.
GRID = [0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4]
LOANS = [
    "CreditScore",
    "AnnualIncome",
    "EmploymentStatus",
    "EducationLevel",
    "LoanAmount",
    "LoanDuration",
    "Experience",
    "HomeOwnershipStatus",
    "PaymentHistory",
    "LengthOfCreditHistory",
    "BankruptcyHistory",
    "PreviousLoanDefaults",
    "TotalAssets",
    "TotalLiabilities",
]
Numbers = np.ndarray[Any, np.dtype[Any]]


# ---------------------------------------------------------------------------------------------------------
# Data


@dataclass(frozen=True, eq=False)
class Data:
    """A table whose categories are codes, the features of the model, the amount to predict and the group's column."""

    X: pd.DataFrame
    features: list[str]
    y: Numbers
    sensitive_features: str


def coded(X: pd.DataFrame) -> pd.DataFrame:
    """Texts as their positions in the alphabet."""
    return X.apply(lambda c: c if c.dtype.kind in "iuf" else np.unique(c.astype(str), return_inverse=True)[1])


@cache
def load(name: str, loans: str | None) -> Data | None:
    """Adult or the loans; None where the public file is not at hand."""
    if name == "Adult":
        people = adult(as_frame="pandas")
        X = coded(people.X).assign(income=people.y, sex=people.X["sex"])
        features = [column for column in X if column not in ("sex", "fnlwgt", "hours-per-week")]
        return Data(X, features, X["hours-per-week"].to_numpy(float), "sex")
    people = financial_loans(loans, as_frame="pandas")
    if "simulated" in people.name:
        return None
    X = coded(people.X[LOANS]).assign(age=people.X["age_group"])
    return Data(X, LOANS, 100.0 * people.X["InterestRate"].to_numpy(float), "age")


class Given(RegressorMixin, BaseEstimator):
    """A model that was asked before: its prediction is a column of the table."""

    def fit(self, X: pd.DataFrame, y: Any = None) -> Given:
        """Nothing is to be learned."""
        self.fitted_ = True
        return self

    def predict(self, X: pd.DataFrame) -> Numbers:
        """The column."""
        return X["prediction"].to_numpy()


@dataclass(frozen=True, eq=False)
class Split:
    """One data set, one seed, and what a model of its own rows predicts for all."""

    name: str
    seed: int
    data: Data
    prediction: Numbers
    policy: Numbers
    test: Numbers

    @cached_property
    def group(self) -> Numbers:
        """Codes of the groups, for all rows."""
        return np.unique(self.data.X[self.data.sensitive_features], return_inverse=True)[1]

    def rows(self, part: Numbers) -> tuple[pd.DataFrame, Numbers]:
        """Table, with what the model predicts, and labels of some rows."""
        return self.data.X.iloc[part].assign(prediction=self.prediction[part]), self.data.y[part]

    def fit(self, **settings: Any) -> FairRegressor:
        """A policy of ours on the policy rows."""
        given = {"happiness": "distributional_parity", "sensitive_features": self.data.sensitive_features}
        X, y = self.rows(self.policy)
        return FairRegressor(FrozenEstimator(Given().fit(X)), **(given | settings)).fit(X, y)

    def amounts(self, fair: Any) -> Numbers:
        """What a policy of ours gives the test rows."""
        return fair.predict(self.rows(self.test)[0])

    def error(self, amounts: Numbers) -> float:
        """Mean squared error on the test rows."""
        return float(np.mean((amounts - self.data.y[self.test]) ** 2))

    def distance(self, amounts: Numbers) -> float:
        """Distance between groups on the test rows."""
        return ks_distance(amounts, self.group[self.test])


@cache
def split(name: str, seed: int, loans: str | None) -> Split:
    data = load(name, loans)
    n = len(data.y)
    train, policy, test = np.split(np.random.default_rng(seed).permutation(n), [int(0.4 * n), int(0.7 * n)])
    features = data.X[data.features]
    model = HistGradientBoostingRegressor(max_iter=150, random_state=0)
    model.fit(features.iloc[train], data.y[train])
    return Split(name, seed, data, model.predict(features), policy, test)


# ---------------------------------------------------------------------------------------------------------
# What needs no library


def ks_distance(amounts: Numbers, group: Numbers) -> float:
    """Largest difference of two groups in the share of people who get more than some amount."""
    places = np.unique(amounts)
    parts = [np.sort(amounts[group == z]) for z in np.unique(group)]
    at_most = np.array([np.searchsorted(part, places, side="right") / len(part) for part in parts])
    return float(np.ptp(at_most, axis=0).max())


def mean_shift(work: Split, prediction: Numbers) -> Numbers:
    """Every group's predictions moved by a constant, to the mean of all policy rows."""
    fitted, group = prediction[work.policy], work.group[work.policy]
    shift = np.array([fitted.mean() - fitted[group == z].mean() for z in np.unique(group)])
    return prediction[work.test] + shift[work.group[work.test]]


def calibrated(work: Split) -> Numbers:
    """Predictions of all rows on the line that fits the labels of the group's policy rows best."""
    lines = np.empty(len(work.prediction))
    for z in np.unique(work.group):
        mine, rows = work.group == z, work.policy[work.group[work.policy] == z]
        lines[mine] = np.polyval(
            np.polyfit(work.prediction[rows], work.data.y[rows], 1), work.prediction[mine]
        )
    return lines


def barycenter(work: Split) -> Numbers:
    """The mean of all groups' quantile functions at each person's rank in the own group, by the policy rows."""
    fitted, group = work.prediction[work.policy], work.group[work.policy]
    parts = [np.sort(fitted[group == z]) for z in np.unique(group)]
    amounts = np.empty(len(work.test))
    for z, own in enumerate(parts):
        mine = work.group[work.test] == z
        new = work.prediction[work.test][mine]
        rank = (np.searchsorted(own, new, "left") + np.searchsorted(own, new, "right")) / (2 * len(own))
        amounts[mine] = sum(len(part) / len(fitted) * np.quantile(part, rank) for part in parts)
    return amounts


# ---------------------------------------------------------------------------------------------------------
# equipy, in an environment of its own


@dataclass(frozen=True)
class Peer:
    """equipy's interpreter."""

    python: Path

    def run(self, *arguments: object) -> str:
        """What its script prints."""
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        command = [self.python, SCRIPTS / "run_equipy.py", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean)
        if done.returncode:
            sys.exit(f"equipy: {done.stderr[-2000:]}")
        return done.stdout

    @property
    def version(self) -> str:
        """The version that is installed there."""
        asking = "from importlib.metadata import version; print(version('equipy'))"
        return subprocess.run(
            [self.python, "-c", asking], capture_output=True, text=True, check=True
        ).stdout.strip()

    def amounts(self, works: list[Split]) -> dict[tuple[str, int], dict[str, Numbers]]:
        """Amounts of the test rows by data set, seed and blend."""
        names = [f"{work.name}-{work.seed}" for work in works]
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            for name, work in zip(names, works, strict=True):
                parts = {"policy": work.policy, "test": work.test}
                predictions = {f"{part}_prediction": work.prediction[rows] for part, rows in parts.items()}
                groups = {f"{part}_group": work.group[rows] for part, rows in parts.items()}
                np.savez(folder / f"{name}.npz", **predictions, **groups)
            (folder / "tasks.json").write_text(json.dumps({"tasks": names, "blends": BLENDS}))
            self.run(folder)
            found = {}
            for name, work in zip(names, works, strict=True):
                with np.load(folder / f"{name}.equipy.npz") as arrays:
                    found[work.name, work.seed] = dict(arrays)
        return found


# ---------------------------------------------------------------------------------------------------------
# What is measured


def measure(work: Split, theirs: dict[str, Numbers]) -> dict[str, tuple[float, float]]:
    """Mean squared error and distance on the test rows, by method."""
    amounts = {
        "model": work.prediction[work.test],
        "mean shift, gap 0": mean_shift(work, work.prediction),
        "mean shift of calibrated predictions": mean_shift(work, calibrated(work)),
        "barycenter of predictions": barycenter(work),
    }
    amounts |= {
        f"equipy, blend {blend}" if blend != "0.0" else "equipy": found for blend, found in theirs.items()
    }
    fair = work.fit(gap=0.0)
    for gap in GAPS:
        amounts[f"felicific, gap {gap:g}"] = work.amounts(fair if gap == 0 else fair.at(gap=gap))
    recalibrated = fair.recalibrate(work.rows(work.test)[0])
    amounts["felicific, gap 0, recalibrated on the test rows"] = work.amounts(recalibrated)
    return {method: (work.error(given), work.distance(given)) for method, given in amounts.items()}


def equal_distance(work: Split, theirs: dict[str, Numbers]) -> dict[str, tuple[float, float, float]]:
    """Extra squared error over the model in %, by blend: ours at the blend's distance, equipy's, and the distance."""
    model = work.error(work.prediction[work.test])
    fair, points = work.fit(gap=0.0), {}

    def try_gap(gap: float) -> None:
        amounts = work.amounts(fair.at(gap=gap))
        points[gap] = work.distance(amounts), work.error(amounts)

    for gap in GRID:
        try_gap(gap)
    found = {}
    for blend, amounts in theirs.items():
        if blend == "0.0":
            continue
        aim = work.distance(amounts)
        for _ in range(3):  # each time a gap on the line between the two gaps around the aim
            try_gap(_between(points, aim, lambda gap: gap))
        ours = _between(points, aim, lambda gap: points[gap][1])
        found[blend] = percent(ours, model), percent(work.error(amounts), model), aim
    return found


def _between(points: dict[float, tuple[float, float]], aim: float, value: Callable[[float], float]) -> float:
    """A value at the distance aimed at, on the line between the two gaps whose distances are around it."""
    for low, high in pairwise(sorted(points)):
        (below, _), (above, _) = points[low], points[high]
        if below <= aim <= above and above > below:
            return value(low) + (aim - below) / (above - below) * (value(high) - value(low))
    least = min(points, key=lambda gap: abs(points[gap][0] - aim))
    return value(least)


def percent(error: float, model: float) -> float:
    return 100.0 * (error / model - 1.0)


def interest(work: Split) -> dict[str, tuple[float, float]]:
    """Squared error of rates, and the gap in mean yearly interest, in $, where the latter should be 0."""
    loan = work.data.X["LoanAmount"].to_numpy(float)
    rows, group = work.policy, work.group[work.policy]
    share = np.bincount(group) / len(group)
    dollars = np.bincount(group, work.prediction[rows] * loan[rows] / 100) / np.bincount(group)
    per_point = np.bincount(group, loan[rows] / 100) / np.bincount(group)
    # The least sum of p c^2 with equal means dollars + c per_point: c = (level - dollars) / per_point.
    level = np.sum(share * dollars / per_point**2) / np.sum(share / per_point**2)
    shift = (level - dollars) / per_point
    amounts = {
        "model": work.prediction[work.test],
        "shift": work.prediction[work.test] + shift[work.group[work.test]],
    }
    for policy in ("score", "individual"):
        fair = work.fit(happiness="decision * LoanAmount / 100", gap=0.0, policy=policy)
        amounts[f"felicific, {policy}"] = work.amounts(fair)
    found = {}
    for method, given in amounts.items():
        paid = given * loan[work.test] / 100
        means = [paid[work.group[work.test] == z].mean() for z in np.unique(group)]
        found[method] = work.error(given), float(np.ptp(means))
    return found


def calibrations(work: Split) -> dict[str, float]:
    """Squared error without any requirement, by how predictions are calibrated within groups."""
    isotonic = np.empty(len(work.test))
    for z in np.unique(work.group):
        rows, mine = work.policy[work.group[work.policy] == z], work.group[work.test] == z
        curve = IsotonicRegression(out_of_bounds="clip").fit(work.prediction[rows], work.data.y[rows])
        isotonic[mine] = curve.predict(work.prediction[work.test[mine]])
    found = {
        "the predictions as they are": work.error(work.prediction[work.test]),
        "a line for each group": work.error(calibrated(work)[work.test]),
        "scikit-learn's IsotonicRegression for each group": work.error(isotonic),
    }
    for kind in ("affine", "isotonic", "none"):
        fair = work.fit(gap=1.0, policy=Score(calibration=kind))
        found[f'felicific, calibration="{kind}"'] = work.error(work.amounts(fair))
    return found


def times(n: int, peer: Peer) -> str:
    """Seconds for n simulated rows: a fit for the distance, one for the mean, predict; and equipy's."""
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=n)
    prediction = rng.normal(0.8 * group, 1.0)
    y = prediction + rng.normal(0, 0.7, n)
    X = pd.DataFrame({"prediction": prediction, "group": group})
    rows = []
    for happiness, gap in (
        ("distributional_parity", 0.05),
        ("distributional_parity", 0.0),
        ("decision", 0.0),
    ):
        model = FrozenEstimator(Given().fit(X))
        fair = FairRegressor(model, happiness=happiness, gap=gap, sensitive_features="group")
        steps = {"fit": lambda fair=fair: fair.fit(X, y), "predict": lambda fair=fair: fair.predict(X)}
        taken = [seconds(*_taken(step)) for step in steps.values()]
        rows.append([f"felicific, {happiness}, gap {gap:g}", *taken])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.npz"
        np.savez(file, prediction=prediction, group=group)
        theirs = json.loads(peer.run(file, "time"))
    rows.append(["equipy", *(seconds(*theirs[step]) for step in ("fit", "predict"))])
    return f"{n:,} simulated rows; processor (wall) seconds.\n\n" + table(["", "fit", "predict"], rows)


def _taken(step: Callable[[], object]) -> tuple[float, float]:
    start = time.process_time(), time.perf_counter()
    step()
    return time.process_time() - start[0], time.perf_counter() - start[1]


def seconds(processor: float, wall: float) -> str:
    return f"{processor:.2f} s ({wall:.2f} s)"


# ---------------------------------------------------------------------------------------------------------
# Words


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """Mean over seeds and its standard error; of one seed there is none."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return float(np.mean(values)), float(error)


def errors_table(found: dict[str, list[dict[str, tuple[float, float]]]]) -> str:
    """Squared error (distance) by method and data set, with the standard error of the extra over the model."""
    methods = list(next(iter(found.values()))[0])
    rows = []
    for method in methods:
        row = [method]
        for seeds in found.values():
            error, distance = np.mean([seed[method] for seed in seeds], axis=0)
            row.append(f"{error:.{places(seeds)}f} ({distance:.3f})")
            extra, off = mean_and_error([percent(seed[method][0], seed["model"][0]) for seed in seeds])
            row.append("" if method == "model" else f"{extra:+.2f} ± {off:.2f}")
        rows.append(row)
    return table(["", *(part for name in found for part in (name, f"{name}: % over the model"))], rows)


def places(seeds: list[dict[str, Any]]) -> int:
    """Digits after the point: five in all."""
    return 2 if seeds[0]["model"][0] >= 10 else 3


def equal_table(found: dict[str, list[dict[str, tuple[float, float, float]]]]) -> str:
    rows = []
    for name, seeds in found.items():
        for blend in seeds[0]:
            ours, theirs, aim = np.array([seed[blend] for seed in seeds]).T
            less, off = mean_and_error(list(theirs - ours))
            rows.append(
                [
                    f"{name}, blend {blend}",
                    f"{aim.mean():.3f}",
                    f"{ours.mean():.2f} %",
                    f"{theirs.mean():.2f} %",
                    f"{less:.2f} ± {off:.2f}",
                ]
            )
    return table(["", "distance", "felicific", "equipy", "equipy less felicific"], rows)


def interest_table(seeds: list[dict[str, tuple[float, float]]]) -> str:
    means = {method: np.mean([seed[method] for seed in seeds], axis=0) for method in seeds[0]}
    rows = [[method, f"{error:.3f}", f"$ {gap:.0f}"] for method, (error, gap) in means.items()]
    return table(["", "squared error", "gap in mean yearly interest"], rows)


def calibration_table(found: dict[str, list[dict[str, float]]]) -> str:
    rows = [
        [way, *(f"{np.mean([seed[way] for seed in seeds]):.3f}" for seeds in found.values())]
        for way in next(iter(found.values()))[0]
    ]
    return table(["squared error, no requirement", *found], rows)


# ---------------------------------------------------------------------------------------------------------


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--loans", help="the public Loan.csv")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", choices=["table", "equal", "interest", "calibration", "time"])
    parser.add_argument("--out", type=Path, default=EVIDENCE)
    parser.add_argument("--envs", type=Path, default=ROOT / ".venv-peers")
    return parser.parse_args()


def sections(asked: argparse.Namespace, names: list[str], peer: Peer) -> dict[str, Callable[[], str]]:
    """How the text of every section is made."""
    by_name = {name: [split(name, seed, asked.loans) for seed in range(asked.seeds)] for name in names}

    @cache
    def theirs() -> dict[tuple[str, int], dict[str, Numbers]]:
        return peer.amounts([work for works in by_name.values() for work in works])

    def compared(way: Callable[[Split, dict[str, Numbers]], Any]) -> dict[str, list[Any]]:
        return {name: [way(w, theirs()[name, w.seed]) for w in works] for name, works in by_name.items()}

    made: dict[str, Callable[[], str]] = {
        "table": lambda: errors_table(compared(measure)),
        "equal": lambda: equal_table(compared(equal_distance)),
        "calibration": lambda: calibration_table(
            {name: [calibrations(work) for work in works] for name, works in by_name.items()}
        ),
        "time": lambda: times(asked.rows, peer),
    }
    if "loans" in names:
        made["interest"] = lambda: interest_table([interest(work) for work in by_name["loans"]])
    return made


def main() -> None:
    asked = arguments()
    # Nobody has a key in these tables, and a gap of 1 asks for nothing on purpose.
    for kind in (LotteryWarning, PolicyWarning):
        warnings.simplefilter("ignore", category=kind)
    names = [name for name in ("Adult", "loans") if load(name, asked.loans) is not None]
    if "loans" not in names:
        print("The public Loan.csv is not at hand: what is measured on it is left out. --loans names it.")
    peer = Peer(environment(asked.envs.resolve() / "equipy", PEER))
    known = {"felicific": felicific.__version__, "equipy": peer.version}
    known |= {name: version(name) for name in ("numpy", "pandas", "scikit-learn", "highspy")}
    print(
        ", ".join(f"{name} {value}" for name, value in known.items()),
        f"; {asked.seeds} seeds",
        sep="",
        flush=True,
    )
    page = asked.out / "amounts.md"
    for part, text in sections(asked, names, peer).items():
        if asked.only in (None, part):
            fill(page, f"amounts: {part}", text())
    print(machine())


if __name__ == "__main__":
    main()
