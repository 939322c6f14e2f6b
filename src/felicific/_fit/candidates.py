"""What a search for less discriminatory alternatives found, for reading, for notebooks, dataframes and programs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from felicific._audit.decided import (
    decided_by,
    features_of,
    fitted_notes,
    has_policy,
    last_step,
    without_policy,
)
from felicific._audit.result import (
    Audit,
    Interval,
    interval_to_dict,
    plain,
)
from felicific._people.checks import as_columns, check_proba, predict_proba
from felicific._people.people import People, one_hot
from felicific._people.roles import probabilities_of
from felicific._policy.policy import Policy
from felicific._problem.happiness import Measure, written
from felicific._problem.problem import Problem
from felicific._shown.parts import Displayed, Lines, Part, Table, short, table_lines
from felicific._tables.memory import distinct, exact_array, table_maker
from felicific._typing import Array, Codes, Floats
from felicific.exceptions import DataError


@dataclass(frozen=True, eq=False)
class Alternative:
    """One candidate on the people who judge, compared with the baseline's decisions about the same people.

    Attributes
    ----------
    name : str
        That of the candidate.
    policy : Policy or None
        How its score is decided by; None for a FairClassifier, which decides itself, and where there is none.
    gaps : dict of measure name to float
        Its gaps.
    gap_changes : dict of measure name to Interval
        Its gap minus the baseline's.
    loss_change : Interval or None
        Its loss per person minus the baseline's.
    slack : float
        How much more may be lost.
    note : str
        Why it was not judged; empty if it was.
    """

    name: str
    policy: Policy | None = field(default=None, repr=False)
    gaps: dict[str, float] = field(default_factory=dict)
    gap_changes: dict[str, Interval] = field(default_factory=dict)
    loss_change: Interval | None = None
    slack: float = 0.0
    note: str = ""

    @property
    def gap(self) -> float | None:
        """The gap; of several measures that of the one which is least sure to be smaller."""
        return self.gaps[self._worst] if self.gaps else None

    @property
    def gap_change(self) -> Interval | None:
        """The change of the gap; of several measures that of the one which is least sure to be smaller."""
        return self.gap_changes[self._worst] if self.gaps else None

    @property
    def _worst(self) -> str:
        return max(self.gap_changes, key=lambda name: self.gap_changes[name].high)

    @property
    def found(self) -> bool:
        """Whether every gap is shown to be smaller, and the loss not shown to be more than is allowed."""
        if self.gap_change is None or self.loss_change is None:
            return False
        return self.gap_change.high < 0 and self.loss_change.low <= self.slack

    @property
    def shown(self) -> bool:
        """Whether it was found, and the loss is even shown to be at most what is allowed."""
        return self.found and self.loss_change is not None and self.loss_change.high <= self.slack

    def to_dict(self) -> dict[str, Any]:
        """All of it but the policy as plain data."""
        changes = {name: interval_to_dict(change) for name, change in self.gap_changes.items()}
        return {
            "name": self.name,
            "found": self.found,
            "shown": self.shown,
            "gaps": {name: plain(gap) for name, gap in self.gaps.items()},
            "gap_changes": changes,
            "loss_change": None if self.loss_change is None else interval_to_dict(self.loss_change),
            "note": self.note,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Alternatives(Displayed):
    """What a search for less discriminatory alternatives found.

    Attributes
    ----------
    rows : tuple of Alternative
        One for each candidate.
    baseline : Audit
        The baseline's decisions about the people who judge.
    least_gap : Interval or None
        The least gap of all policies that see one of these scores and lose no more than is allowed: none is below
        ``low``. Of several measures the largest gap, each as a part of the baseline's.
    slack : float
        How much more than from the baseline may be lost.
    confidence : float
    fitted, judged : int
        How many rows fitted the policies, and how many judged them.
    """

    rows: tuple[Alternative, ...]
    baseline: Audit = field(repr=False)
    least_gap: Interval | None
    slack: float
    confidence: float
    fitted: int
    judged: int

    @property
    def found(self) -> bool:
        """Whether some candidate leaves groups closer and is not shown to lose more than is allowed."""
        return self.best is not None

    @property
    def best(self) -> Alternative | None:
        """Of those that were found, first of those whose loss is shown, the one most surely of a smaller gap."""
        found = [row for row in self.rows if row.shown] or [row for row in self.rows if row.found]
        return min(found, key=lambda row: row.gap_change.high) if found else None  # type: ignore[union-attr]  # found

    def __getitem__(self, name: str) -> Alternative:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)

    @property
    def _measures(self) -> list[Measure]:
        return [part.measure for part in self.baseline.measures]

    def sentences(self) -> list[str]:
        """What was found, in words; and what that says of those that were not tried."""
        best, allowed = self.best, "the present loss" + (f" plus {written(self.slack)}" if self.slack else "")
        if best is None:
            lines = [
                "None was found: no candidate is shown to leave groups closer than the present decisions, "
                f"at no more than {allowed}."
            ]
        else:
            who = repr(best.name) if best.policy is None else f"a policy that sees the score of {best.name!r}"
            lines = [f"Found: {who} leaves groups closer than the present decisions."]
            for part in self._measures:
                change, before = best.gap_changes[part.name], self.baseline.gaps[part.name]
                lines.append(
                    f"The gap of {part.name!r} is {part.quantity(best.gaps[part.name])} instead of "
                    f"{part.quantity(before)}: it changes by {_between(change, part)}."
                )
            lines.append(self._loss_sentence(best, allowed))
        left = [f"{row.name!r} was not judged: {row.note}." for row in self.rows if row.note]
        return [*lines, *left, self._bound_sentence(allowed)]

    def _loss_sentence(self, best: Alternative, allowed: str) -> str:
        change = best.loss_change
        assert change is not None, "it was found"
        what = f"The loss per person changes by {_between(change)}"
        if best.shown:
            return f"{what}: it is shown to be at most {allowed}."
        more = written(change.high - self.slack)
        return f"{what}: it is not shown to exceed {allowed}, and may exceed it by up to {more}."

    def _bound_sentence(self, allowed: str) -> str:
        least = self.least_gap
        none = "That does not say that there is none" if self.best is None else "There may be better ones"
        if least is None:
            return f"{none}."
        if least.low <= 0:
            return f"{none}: {least.note or 'these are too few people to rule out any gap'}."
        if math.isinf(least.low):
            return f"{none}; but no policy that sees one of these scores loses so little."
        several = len(self._measures) > 1
        how = f"{least.low:.1%} of the present gaps" if several else self._measures[0].quantity(least.low)
        return (
            f"{none}; but with confidence {self.confidence:.6g} no policy that sees one of these scores has a gap "
            f"below {how} at no more than {allowed}."
        )

    def _table(self) -> list[tuple[str, ...]]:
        rows = []
        for row in self.rows:
            if row.loss_change is None:
                rows.append((short(row.name), *[""] * 8, "not judged"))
                continue
            loss = [written(number) for number in _ends(row.loss_change)]
            for j, part in enumerate(self._measures):
                gap = [
                    part.cell(number) for number in (row.gaps[part.name], *_ends(row.gap_changes[part.name]))
                ]
                first = (short(row.name), *loss) if j == 0 else ("", "", "", "")
                verdict = _verdict(row) if j == 0 else ""
                rows.append((first[0], short(part.name), *gap, *first[1:], verdict))
        return rows

    @property
    def _title(self) -> str:
        return (
            f"Alternatives to what is done at present: {self.fitted:,} rows fitted, {self.judged:,} others judged, "
            f"confidence {self.confidence:.6g} for all together"
        )

    def __str__(self) -> str:
        lines = [self._title, *table_lines(HEADER, self._table()), "", *self.sentences()]
        return "\n".join(short(line, 500) for line in lines)

    _whole: ClassVar[str] = "print it, or to_frame()."

    def _parts(self) -> list[Part]:
        return [
            Lines([self._title], strong=True),
            Lines(self.sentences(), self._whole),
            Table("", HEADER, self._table(), self._whole, words=True),
        ]

    def to_dict(self) -> dict[str, Any]:
        """All of it but the policies as plain data that JSON can hold; an infinite limit is None."""
        return {
            "found": self.found,
            "best": None if self.best is None else self.best.name,
            "confidence": self.confidence,
            "loss_slack": self.slack,
            "fitted": self.fitted,
            "judged": self.judged,
            "baseline": {
                "gaps": self.baseline.gaps,
                "loss": None if self.baseline.loss is None else self.baseline.loss.estimate,
            },
            "rows": [row.to_dict() for row in self.rows],
            "least_gap": None if self.least_gap is None else interval_to_dict(self.least_gap),
            "sentences": self.sentences(),
        }

    def to_frame(self) -> Any:
        """One row per candidate and measure, as a pandas or Polars dataframe."""
        nothing = Interval(np.nan, np.nan, np.nan, np.nan, "")
        lines = []
        for row in self.rows:
            loss = row.loss_change or nothing
            for part in self._measures:
                gap = row.gap_changes.get(part.name, nothing)
                numbers = (row.gaps.get(part.name, np.nan), *_ends(gap), *_ends(loss))
                lines.append((row.name, part.name, *numbers, row.found, row.note))
        return table_maker("auto")(
            {name: np.array(column) for name, column in zip(COLUMNS, zip(*lines, strict=True), strict=True)}
        )

    def plot(self, **options: Any) -> Any:
        """Changes of gap and loss with their intervals as an Altair chart; see :func:`felicific.plots.alternatives`."""
        from importlib import import_module

        return import_module("felicific.plots").alternatives(self, **options)


HEADER = ("candidate", "gap of", "is", "change", "low", "high", "loss change", "low", "high", "")

COLUMNS = (
    "candidate", "measure", "gap", "gap_change", "gap_low", "gap_high", "loss_change", "loss_low", "loss_high",
    "found", "note",
)  # fmt: skip


def _verdict(row: Alternative) -> str:
    return ("found, loss shown" if row.shown else "found") if row.found else "not found"


def _ends(interval: Interval) -> tuple[float, float, float]:
    return interval.estimate, interval.low, interval.high


def _between(interval: Interval, part: Measure | None = None) -> str:
    number, low, high = (written(end) if part is None else part.cell(end) for end in _ends(interval))
    return f"{number}, from {low} to {high}"


# ---------------------------------------------------------------------------------------------------------
# Candidates: what other ways of deciding on the same people there are, and what each says of everybody.


@dataclass(frozen=True, eq=False)
class Candidate:
    """One way of deciding, and what it says of some people.

    Attributes
    ----------
    name : str
    probabilities : array of shape (n, D)
        What it decides on each by itself.
    score : array of shape (n, L), or None
        Probabilities, for which a policy is found; None for a policy that is taken as it is.
    drawn : bool
        Whether it randomizes by itself.
    """

    name: str
    probabilities: Floats
    score: Floats | None
    drawn: bool = False

    def deciding(self, people: People, rows: Codes) -> People:
        """Some of the people, with what it decides on them by itself."""
        return replace(people, probabilities=self.probabilities[rows], drawn=self.drawn)


def check_candidates(candidates: Any) -> dict[str, Any]:
    """What is compared, by name; the first is what is done at present."""
    if not isinstance(candidates, Mapping):
        raise DataError(
            f"The candidates are a {type(candidates).__name__}.",
            "Name each: {'baseline': scores, 'other': model}; the first is what is done at present.",
        )
    if not candidates:
        raise DataError("There are no candidates.", "Name at least one: {'baseline': scores}.")
    for name, value in candidates.items():
        if not isinstance(name, str) or not name:
            raise DataError(f"A candidate is called {name!r}.", "Give it a name that is text.")
        if value is None:
            raise DataError(
                f"The candidate {name!r} is None.", "Pass probabilities, a column or a fitted model."
            )
        if _decides(value) and not hasattr(last_step(value), "classes_"):
            raise DataError(
                f"The candidate {name!r}, a {type(value).__name__}, is not fitted.",
                "Fit it on other people than these.",
            )
        if _decides(value) and not hasattr(value, "predict_proba"):
            raise DataError(
                f"The candidate {name!r}, a {type(value).__name__}, has no predict_proba, by which policies decide.",
                "Calibrate it (CalibratedClassifierCV), or pass probabilities.",
            )
    return dict(candidates)


def classes_of(candidates: Mapping[str, Any], labels: Array) -> Array:
    """The classes that there are: those of the labels, and those that models know."""
    every = list(distinct(labels))
    for name, value in candidates.items():
        known = list(getattr(last_step(value), "classes_", ()))
        if known and not set(known) & set(every):
            raise DataError(
                f"The candidate {name!r} knows the classes {known[:6]}, and the labels are {every[:6]}.",
                "Pass labels as the model was trained on.",
            )
        every += [value for value in known if value not in every]
    if len(every) < 2:
        raise DataError(
            f"y holds one class only: {every}.", "Pass rows of at least two classes; one leaves no decision."
        )
    return exact_array(distinct(exact_array(every)))


def read_candidate(name: str, value: Any, people: People, problem: Problem, n: int) -> Candidate:
    """What a candidate says of these people, who are some of n rows."""
    last, classes = last_step(value), problem.decisions
    if has_policy(last):
        passed = people.group if last.sensitive_features_ is None else None
        shares = without_policy(value, people.x)[1]
        fitted_notes(*shares, last.policy_.basis.out_of_fold)
        probabilities = _aligned(decided_by(value, people.x, passed, by_proba=True), last.classes_, classes)
        return Candidate(name, probabilities, None, last.policy_.is_randomized)
    if _decides(value):
        score = check_proba(
            predict_proba(value, features_of(value, people.x), classes), len(classes), people.rows
        )
        predicted = decided_by(value, people.x, None, by_proba=False)
        return Candidate(name, one_hot(predicted, classes, people.rows), score)
    named = isinstance(value, str | Mapping) or _names(value)
    given = probabilities_of(people.x, value, classes) if named else _values(name, value)
    if not named:
        if len(given) != n:
            raise DataError(
                f"The candidate {name!r} has {len(given)} probabilities for {n} rows.",
                "Pass one for every row.",
            )
        given = given[people.rows]
    score = check_proba(as_columns(given, len(classes)), len(classes), people.rows)
    return Candidate(name, np.eye(len(classes))[score.argmax(axis=1)], score)


def _values(name: str, value: Any) -> Array:
    array = np.asarray(value.to_numpy() if hasattr(value, "to_numpy") else value)
    if array.ndim not in (1, 2) or array.dtype.kind not in "biuf":
        raise DataError(
            f"The candidate {name!r} is a {type(value).__name__} that holds no probabilities.",
            "Pass probabilities, the name of their column, or a fitted model.",
        )
    return array


def _names(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(name, str) for name in value)


def _decides(value: Any) -> bool:
    return not isinstance(value, str) and hasattr(value, "predict")


def _aligned(probabilities: Floats, known: Any, classes: Array) -> Floats:
    """Probabilities with a column for every class, also for those that a policy does not know."""
    found = np.zeros((len(probabilities), len(classes)))
    found[:, [classes.tolist().index(value) for value in np.asarray(known).tolist()]] = probabilities
    return found
