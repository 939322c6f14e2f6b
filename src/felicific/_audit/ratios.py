"""Ratios of an audit: every group's mean divided by the largest, as a regulator asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from felicific._audit.measured import Measured
from felicific._audit.result import FRAME, Audit, Interval, interval_to_dict, line_of, plain, titled
from felicific._problem.happiness import Measure, position, written
from felicific._problem.unions import Between, Union, Whom, check_min_people, compared, unions_of
from felicific._shown.parts import Displayed, Lines, Part, Table, between, short, table_lines
from felicific._statistics.gaps import DELTA, SCORE, limits_to_highest, smallest_limits
from felicific._tables.memory import table_maker
from felicific._typing import Truths
from felicific.exceptions import ConstraintError, GroupError

#: The least ratio of the four-fifths rule (EEOC 1978, 29 CFR 1607.4).
FOUR_FIFTHS = 0.8

#: Most groups that are named where they are not compared.
LISTED = 8

SHOWN = {"at least": "shown to hold", "less": "shown not to hold", "undecided": "neither shown nor refuted"}


@dataclass(frozen=True)
class GroupMean:
    """A group that is shown and not compared.

    Attributes
    ----------
    group : group
    people : float
        How many are counted; with sampling weights or clusters, as many independent ones as would tell as much.
    mean : float
        Their mean happiness.
    """

    group: Any
    people: float
    mean: float


@dataclass(frozen=True)
class GroupRatio(GroupMean):
    """A group's mean, divided by the largest of all.

    Attributes
    ----------
    ratio, low, high : float
        The ratio and its interval, which holds whichever group turned out to be the largest; that one has 1.
    note : str
        Why there is no interval; empty if there is one.
    """

    ratio: float
    low: float
    high: float
    note: str = ""


@dataclass(frozen=True)
class RatioAudit:
    """Ratios of one measure.

    Attributes
    ----------
    measure : Measure
    rows : tuple of GroupRatio
        The groups that are compared.
    smallest : Interval
        The smallest mean divided by the largest. Its interval holds for all pairs of groups together.
    lowest, highest : group
        Who has these means.
    left_out : tuple of GroupMean
        Groups that are not compared: of fewer than ``min_people``, or left out of the audit.
    """

    measure: Measure
    rows: tuple[GroupRatio, ...] = field(repr=False)
    smallest: Interval
    lowest: Any
    highest: Any
    left_out: tuple[GroupMean, ...] = field(default=(), repr=False)

    @property
    def verdict(self) -> str:
        """What is shown of "the smallest ratio is at least four fifths": "at least", "less" or "undecided"."""
        if self.smallest.low >= FOUR_FIFTHS:
            return "at least"
        return "less" if self.smallest.high < FOUR_FIFTHS else "undecided"

    def four_fifths(self, confidence: float) -> str:
        """The four-fifths rule in one sentence."""
        found = self.smallest
        met = "met" if found.estimate >= FOUR_FIFTHS else "not met"
        number, low, high = (written(part, 3) for part in (found.estimate, found.low, found.high))
        return (
            f"Four-fifths: {met} on these rows, where the mean of {self.lowest!r} is {number} of that of "
            f"{self.highest!r}; of people like these it is {SHOWN[self.verdict]} (smallest ratio from {low} to {high}, "
            f"confidence {confidence:.6g})."
        )

    def remarks(self, confidence: float) -> list[str]:
        """What is to be said below the table."""
        found = [self.four_fifths(confidence)] if self.measure.wanted else []
        named = [
            f"{short(str(part.group))} ({written(part.people, 6)}, mean {self.measure.cell(part.mean, 3)})"
            for part in self.left_out[:LISTED]
        ]
        named += [f"and {len(self.left_out) - LISTED} more"] if len(self.left_out) > LISTED else []
        found += [f"Not compared: {', '.join(named)}."] if named else []
        notes = {row.note for row in self.rows} - {""}
        return [*found, *sorted(notes)]

    def to_dict(self, confidence: float) -> dict[str, Any]:
        """All of it as plain data that JSON can hold."""

        def listed(parts: tuple[GroupMean, ...]) -> list[dict[str, Any]]:
            return [{name: plain(value) for name, value in vars(part).items()} for part in parts]

        ends = {"lowest": plain(self.lowest), "highest": plain(self.highest)}
        return {
            "name": self.measure.name,
            "unit": self.measure.unit,
            "wanted": self.measure.wanted,
            "rows": listed(self.rows),
            "smallest": interval_to_dict(self.smallest) | ends,
            "four_fifths": self.verdict,
            "remarks": self.remarks(confidence),
            "left_out": listed(self.left_out),
        }


@dataclass(frozen=True, eq=False, repr=False)
class Ratios(Displayed, Mapping[str, RatioAudit]):
    """Ratios of every measure that has them, by its name.

    Attributes
    ----------
    parts : tuple of RatioAudit
    refused : dict of str to ConstraintError
        Measures whose means have no ratio, and why.
    between : column name(s), or None
        What is compared.
    min_people : float
    confidence : float
    """

    parts: tuple[RatioAudit, ...]
    refused: dict[str, ConstraintError]
    between: Between
    min_people: float
    confidence: float

    def __getitem__(self, name: str) -> RatioAudit:
        if name in self.refused:
            raise self.refused[name]
        return self.parts[position(name, [part.measure for part in self.parts])]

    def __iter__(self) -> Iterator[str]:
        return (part.measure.name for part in self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def words(self) -> str:
        """What is compared."""
        named = self.between if isinstance(self.between, list | tuple) else [self.between]
        return "" if self.between is None else f" between {' and '.join(str(name) for name in named)}"

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data that JSON can hold."""
        return {
            "between": [*self.between] if isinstance(self.between, list | tuple) else self.between,
            "min_people": self.min_people,
            "confidence": self.confidence,
            "measures": [part.to_dict(self.confidence) for part in self.parts],
            "refused": {name: str(error) for name, error in self.refused.items()},
        }

    def lines(self) -> list[dict[str, Any]]:
        """One line per ratio, as in the dataframe of an audit."""
        found = []
        for part in self.parts:
            name, method = part.measure.name, part.smallest.method
            for row in part.rows:
                interval = Interval(row.ratio, row.low, row.high, row.people, method, row.note)
                found.append(line_of(name, "", f"ratio{self.words}", str(row.group), interval))
            found.append(line_of(name, "", f"smallest ratio{self.words}", "", part.smallest))
        return found

    def to_frame(self) -> Any:
        """One row per ratio, as a pandas or Polars dataframe."""
        lines = self.lines()
        return table_maker("auto")({name: np.array([line[name] for line in lines]) for name in lines[0]})

    def _tables(self) -> list[tuple[str, list[tuple[str, ...]], list[str]]]:
        """Title, rows and remarks of every measure."""
        found = []
        for part in self.parts:
            rows = [
                (
                    short(str(row.group)),
                    written(row.people, 6),
                    part.measure.cell(row.mean),
                    *(written(number, 3) for number in (row.ratio, row.low, row.high)),
                )
                for row in part.rows
            ]
            smallest = part.smallest
            numbers = (written(number, 3) for number in (smallest.estimate, smallest.low, smallest.high))
            rows.append(("smallest", written(smallest.n, 6), "", *numbers))
            title = f"{titled(part.measure)}: ratio to the highest mean{self.words}, by {smallest.method}"
            found.append((short(title, 400), rows, part.remarks(self.confidence)))
        return found

    def _refusals(self) -> list[str]:
        return [str(error) for error in self.refused.values()]

    def __str__(self) -> str:
        lines: list[str] = []
        for title, rows, remarks in self._tables():
            table = table_lines((*HEADER, ""), [(*row, "") for row in rows])  # numbers up to the last column
            lines += ["", title, *table, *(f"  {short(text, 400)}" for text in remarks)]
        return "\n".join([*lines[1:], *(short(text, 400) for text in self._refusals())])

    _whole: ClassVar[str] = "print it, or to_frame()."

    def _parts(self) -> list[Part]:
        tables = [
            Table(
                title,
                HEADER,
                rows[:-1],
                FRAME,
                foot=rows[-1:],
                keep=between([row.ratio for row in part.rows]),
                remarks=remarks,
            )
            for part, (title, rows, remarks) in zip(self.parts, self._tables(), strict=True)
        ]
        return [*tables, Lines(self._refusals(), self._whole)]


HEADER = ("group", "people", "mean", "ratio", "low", "high")


# ---------------------------------------------------------------------------------------------------------
# From people to ratios


@dataclass(frozen=True)
class _Compared:
    """Unions of groups, with their sums."""

    unions: tuple[Union, ...]
    persons: Measured

    @classmethod
    def of(cls, persons: Measured, between: Between) -> _Compared:
        """Whom to compare; an error when that is one group alone."""
        unions = unions_of(persons.groups, persons.attributes, between)
        if len(unions) < 2:
            raise GroupError(
                f"There is one group only: {unions[0].name!r}.",
                "A ratio is between groups: pass rows of at least two.",
            )
        place = np.empty(len(persons.groups), dtype=np.intp)
        for number, union in enumerate(unions):
            place[list(union.members)] = number
        alike = len(unions) == len(persons.groups) and (place == np.arange(len(place))).all()
        return cls(unions, persons if alike else persons.merged(place, tuple(one.name for one in unions)))

    def left_out(self, j: int, min_people: float) -> Truths:
        """Whom a measure does not compare: too few, or left out of the audit."""
        persons, name = self.persons, self.persons.measures[j].name
        numbers = (persons.weighed if min_people < 1 else persons.numbers)[:, j]
        _, few = compared(persons.groups, (), numbers, Whom(None, min_people), name)
        others = persons.left_out.get(name, few).people
        return np.array([group in few.people or group in others for group in persons.groups], dtype=bool)


def find_ratios(found: Audit, between: Between, min_people: float) -> Ratios:
    """The ratios of an audit's people, of every measure that has them."""
    persons, least = found.persons, check_min_people(min_people)
    unions = _Compared.of(persons, between)
    parts, refused = [], {}
    alpha = 1.0 - found.confidence
    for j, measure in enumerate(persons.measures):
        if found.measures[j].gap is None:
            continue  # groups are not compared by it
        try:
            _refuse_idle(persons, measure)
            _refuse_open(persons, j)
            parts.append(_measure(persons, j, unions, unions.left_out(j, least), alpha))
        except ConstraintError as error:
            refused[measure.name] = error
    return Ratios(tuple(parts), refused, between, least, found.confidence)


def _refuse_idle(persons: Measured, measure: Measure) -> None:
    """Refuse a ratio of what no decision changes: it would be a verdict on nobody's decisions."""
    if measure.name in persons.idle:
        raise ConstraintError(
            f"No decision changes {measure.name!r}, so its ratio says nothing of the decisions.",
            "Ask for a ratio of what depends on the decision.",
        )


def _refuse_open(persons: Measured, j: int) -> None:
    """Refuse a ratio of what hidden reasons leave open."""
    if persons.ends is not None and persons.debiased_at[j]:
        raise ConstraintError(
            f"Hidden reasons leave open what {persons.measures[j].name!r} is, and there are no bounds for ratios.",
            "Compare groups by its gap, or audit with max_odds_ratio=1.",
        )


def _measure(persons: Measured, j: int, unions: _Compared, left_out: Truths, alpha: float) -> RatioAudit:
    measure, rate, origin = persons.measures[j], bool(persons.rates[j]), float(persons.origin[j])
    _refuse_negative(persons, j)
    every = unions.persons.sample.take(j)
    mean = every.mean + origin
    # What is 0 differs from it by rounding alone where sums are relative to something else.
    mean = np.where(np.abs(mean) <= 1e-13 * abs(origin), 0.0, mean)
    every = replace(every, mean=mean)
    shown = np.flatnonzero(~left_out)
    known = every.only(shown)
    if not known.mean.max() > 0.0:
        raise ConstraintError(
            f"The mean of {measure.name!r} is 0 in every group, so there is no ratio.",
            "Where nobody gets anything, compare groups by something that somebody gets.",
        )
    names = [unions.unions[z].name for z in shown]
    low, high = limits_to_highest(known, alpha, rate=rate)
    ends = smallest_limits(known, alpha, rate=rate)
    top, bottom = int(known.mean.argmax()), int(known.mean.argmin())
    ratio = known.mean / known.mean[top]
    notes = [
        _no_interval(rate, np.isposinf(most) and least == 0.0) for least, most in zip(low, high, strict=True)
    ]
    columns = (names, *(part.tolist() for part in (known.n, known.mean, ratio, low, high)), notes)
    return RatioAudit(
        measure=measure,
        rows=tuple(GroupRatio(*row) for row in zip(*columns, strict=True)),
        smallest=Interval(
            float(ratio[bottom]),
            float(ends[0]),
            float(ends[1]),
            float(known.n.min()),
            SCORE if rate else DELTA,
        ),
        lowest=names[bottom],
        highest=names[top],
        left_out=tuple(
            GroupMean(unions.unions[z].name, float(every.n[z]), float(every.mean[z]))
            for z in np.flatnonzero(left_out)
        ),
    )


def _no_interval(rate: bool, nothing: bool) -> str:
    """Why a ratio has no interval."""
    if not nothing:
        return ""
    if rate:
        return "No interval of a ratio of one cluster, or of few rows of very unequal weight."
    return (
        "No interval of a ratio where the interval of one of its means reaches 0: that many times as much could be "
        "any number."
    )


def _refuse_negative(persons: Measured, j: int) -> None:
    """A mean that can be negative has no ratio."""
    measure = persons.measures[j]
    bounds, least = measure.bounds, None if persons.least is None else float(persons.least[j])
    if bounds is not None:
        worst, why = bounds[0], "its bounds begin at"
    elif least is not None:
        worst, why = least, "a decision can be worth"
    else:
        worst, why = -np.inf, "its least is"
    if worst < 0.0:
        raise ConstraintError(
            f"The mean of {measure.name!r} can be negative ({why} {written(worst)}), so it has no ratio.",
            "Compare groups by its gap, or measure it from a level that nobody can fall below.",
        )
