"""Aggregates: the sums over rows that the linear program needs, and nothing else of the data."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from felicific._files import (
    AGGREGATES,
    plain,
    read_document,
    write_classes,
    write_decisions,
    write_document,
    write_whole,
)
from felicific._people.checks import WeightKind, are_counts
from felicific._people.roles import Roles
from felicific._problem.change import out_of_order
from felicific._problem.criteria import Choices
from felicific._problem.happiness import SHARE, Measure, ends_of, fractions_of, written
from felicific._problem.linear import largest_between
from felicific._problem.requirement import Requirement
from felicific._problem.requirements import left_out_by
from felicific._problem.unions import Attribute, LeftOutBy, compared_by
from felicific._problem.worse_off import WorseOff
from felicific._program.aggregates_file import read_aggregates
from felicific._program.cell_sums import SUMS, CellSums, add_sums
from felicific._program.label_completion import KnownLabels
from felicific._program.signal_names import signal_to_json
from felicific._program.signals import Signal
from felicific._program.unlabelled import Unlabelled, refuse_mixed
from felicific._shown.parts import Displayed, Lines, Part, Table, as_text, between, clipped, short
from felicific._typing import Array, Codes, Floats, Truths
from felicific.exceptions import AggregatesError, FelicificError, GroupError, HappinessError, PolicyFileError

#: Where the groups are that are not shown.
PEOPLE = ".groups and .people have all; shown are those of the fewest and of the most people."

#: A share of people that is nobody, but for rounding.
NOBODY = 1e-12


@dataclass(frozen=True)
class Outcome:
    """What some policy does to the people behind the aggregates.

    Attributes
    ----------
    loss : float
        Expected loss per person.
    means : array of shape (groups, measures)
        Mean happiness of every group, in the measure's unit.
    gaps : array of shape (measures,)
        Largest mean minus smallest mean.
    changed : array of shape (groups,), or None
        Share of every group whose decision is not the baseline's; None where that is not known.
    gains, loses : array of shape (groups, measures), or None
        Share of every group who get more, or less, of a measure than from the baseline's decision; NaN, or None for
        all, where that is not known. Somebody whom a measure does not count neither gains nor loses.
    harmed, widened : dict, or None
        What it does to intersections of several attributes, by measure, as :class:`felicific.FairClassifier` says.
    groups, measures : tuple
        What the rows and columns of these arrays are called, where it is said.
    """

    loss: float
    means: Floats
    gaps: Floats
    changed: Floats | None = None
    gains: Floats | None = None
    loses: Floats | None = None
    harmed: dict[str, dict[Any, float]] | None = field(default=None, kw_only=True)
    widened: dict[str, float] | None = field(default=None, kw_only=True)
    groups: tuple[Any, ...] = field(default=(), kw_only=True)
    measures: tuple[str, ...] = field(default=(), kw_only=True)

    def to_dict(self) -> dict[str, Any]:
        """The same by name: changed by group, gaps by measure, means, gains and loses by measure and group."""

        def named(numbers: Floats | None, *names: tuple[Any, ...]) -> Any:
            if numbers is None or not names:
                return numbers
            return {name: named(part, *names[1:]) for name, part in zip(names[0], numbers, strict=True)}

        tables = {name: getattr(self, name) for name in ("means", "gains", "loses")}
        return {
            "loss": self.loss,
            "changed": named(self.changed, self.groups),
            "gaps": named(self.gaps, self.measures),
            **{
                name: None if table is None else named(table.T, self.measures, self.groups)
                for name, table in tables.items()
            },
            "harmed": self.harmed,
            "widened": self.widened,
        }

    def __repr__(self) -> str:
        if not self.groups:
            gaps, (groups, measures) = ", ".join(f"{gap:.6g}" for gap in self.gaps.tolist()), self.means.shape
            told = f"loss {self.loss:.6g}; gap {gaps}; means of {groups} groups and {measures} measures"
            return clipped(f"Outcome: {told}, without names (those of policy.outcomes have them)")

        def words(numbers: dict[Any, float]) -> str:
            return clipped(", ".join(f"{group!r} {number:.6g}" for group, number in numbers.items()))

        by_name, lines = self.to_dict(), [f"Outcome: loss {self.loss:.6g}"]
        if self.changed is not None:
            lines.append(f"changed: {words(by_name['changed'])}")
        for measure, gap in by_name["gaps"].items():
            parts = [
                f"{what} {words(by_name[what][measure])}" for what in ("gains", "loses") if by_name[what]
            ]
            line = [f"{measure!r}: means {words(by_name['means'][measure])}, a gap of {gap:.6g}", *parts]
            lines.append("; ".join(line))
        return as_text([Lines([lines[0], *(f"  {line}" for line in lines[1:])], "to_dict() has all of it.")])


def gaps_of(means: Floats, compared: Truths | None = None) -> Floats:
    """Largest minus smallest mean of every measure, of those groups in which somebody is counted; 0 if of none.

    Of shape (groups, measures), as ``compared`` is: which groups each measure compares (None: all).
    """
    known = ~np.isnan(means) if compared is None else ~np.isnan(means) & compared
    high, low = (np.where(known, means, side) for side in (-np.inf, np.inf))
    return np.asarray(np.maximum(high.max(axis=0) - low.min(axis=0), 0.0))


def divided(means: Floats, origin: Floats, fractions: Sequence[tuple[int, int]]) -> Floats:
    """Means relative to the origin, measures last, with every fraction divided by its denominator.

    Not a number where nobody is counted.
    """
    means = means.copy()
    for j, k in fractions:
        counted = means[..., k] + origin[k]
        held = counted > NOBODY
        total = np.where(held, means[..., j] + origin[j], np.nan)
        means[..., j] = total / np.where(held, counted, 1.0) - origin[j]
    return means


def _no_decisions() -> Array:
    """What stands for the classes where decisions are not listed."""
    return np.empty(0)


def _dense(name: str) -> Any:
    """A sum as an array of shape (groups, signals, ...), made when it is looked at; None where it is not known."""
    return cached_property(lambda aggregates: aggregates.sums.dense(name))


@dataclass(frozen=True, eq=False, repr=False)
class Aggregates(Displayed):
    r"""Sums over people by group and signal: all that the linear program needs to know of them.

    Over the rows of group :math:`z` that see signal :math:`s`, with weights :math:`w_i`, signal weights
    :math:`W_{is}`, loss :math:`c(d; i)`, happiness :math:`\eta_j(d; i)` and membership :math:`a_j(i)`:

    .. math::
        \mathrm{mass}_{zs} = \sum w_i W_{is}, \quad
        \mathrm{loss}_{zsd} = \sum w_i W_{is} c(d; i), \quad
        \mathrm{value}_{zsdj} = \sum w_i W_{is} a_j(i) (\eta_j(d; i) - o_j), \quad
        \mathrm{among}_{zsj} = \sum w_i W_{is} a_j(i)

    The origin :math:`o_j` is a typical value of measure j. Gaps do not depend on it; keeping the sums
    relative to it means that a large constant inside a happiness costs no digits.

    Besides them, where they are known (None where not, as in files that others wrote):
    :math:`\mathrm{baseline}_{zsd}`, the weight of those on whom the baseline decides d, and
    :math:`\mathrm{square}_{zsdj} = \sum w_i W_{is} a_j(i) (\eta_j(d; i) - o_j)^2`; ``gains`` and ``loses``, of the same
    shape, the weight of those to whom d is worth more, or less, than the baseline.

    ``classes`` are the labels, and ``decisions`` the decisions: the same, unless decisions are listed from the worst to
    the best for the person. ``rising`` then says whether better ones go with higher scores of the last class (or with
    lower ones), and there may be nothing known of the baseline's: ``baseline_loss`` and ``baseline_value`` are None.

    ``attributes`` are what the groups are made of: names of columns, or positions where they have none. ``left_out``
    says which groups the gap of a measure does not compare, once requirements were looked at: these are measured, and
    gaps are between the others.

    Where labels are missing and it is said what is known of that, the sums are those of people who have one, and
    ``unlabelled`` holds the others; :meth:`completed` puts them together. ``labels`` then says who has one, and
    ``least_loss`` the loss at its best where hidden reasons may matter: ``loss`` is its worst.

    ``roles`` are the columns that were named, which a policy remembers.

    ``weight_kind`` is what was said of the weights, and ``whole`` whether all of them are whole numbers: what can be
    promised depends on it, and no sum does.

    Aggregates add: ``aggregate(A) + aggregate(B)`` are the aggregates of both tables together, and ``sum()`` works.
    Aggregates that disagree on classes, groups, measures, signal, loss or kind of weights refuse to add.

    Examples
    --------
    >>> from felicific import aggregate, solve
    >>> roles = {"score": "score", "y": "repaid", "sensitive_features": "sex", "happiness": "decision"}
    >>> north = {"sex": ["f", "m"] * 40, "score": [0.1, 0.4, 0.6, 0.8] * 20, "repaid": [0, 0, 1, 1] * 20}
    >>> south = {"sex": ["f", "m"] * 40, "score": [0.2, 0.7, 0.3, 0.9] * 20, "repaid": [0, 1, 1, 1] * 20}
    >>> both = aggregate(north, **roles) + aggregate(south, **roles)
    >>> both.total, both.baseline.gaps.tolist()
    (160.0, [0.5])
    >>> solve(both, gap=0.25, random_state=0).kind
    'score'
    """

    classes: Array
    groups: tuple[Any, ...]
    measures: tuple[Measure, ...]
    signal: Signal
    loss_name: str
    origin: Floats
    sums: CellSums
    rows: NDArray[np.int64]
    weight_kind: WeightKind = None
    whole: bool = True
    changed: tuple[bool, ...] | None = None
    attributes: tuple[Attribute, ...] = ()
    left_out: LeftOutBy = field(default_factory=dict)
    unlabelled: Unlabelled | None = None
    labels: KnownLabels | None = None
    decisions: Array = field(default_factory=_no_decisions)
    rising: bool | None = None
    order: tuple[Any, ...] = ()
    baseline_given: bool = False
    roles: Roles = Roles()  # noqa: RUF009  # nobody changes it

    _whole: ClassVar[str] = "save(path) writes all of them."

    def __post_init__(self) -> None:
        if not len(self.decisions):
            object.__setattr__(self, "decisions", self.classes)

    # The sums as arrays of shape (groups, signals, ...). Of fine bins of many groups they are large, and mostly empty.
    mass = _dense("mass")
    loss = _dense("loss")
    value = _dense("value")
    among = _dense("among")
    baseline_loss = _dense("baseline_loss")
    baseline_value = _dense("baseline_value")
    baseline_mass = _dense("baseline_mass")
    square = _dense("square")
    gains = _dense("gains")
    loses = _dense("loses")
    worse = _dense("worse")
    least_loss = _dense("least_loss")

    def knows(self, name: str) -> bool:
        """Whether a sum is known."""
        return name in self.sums.arrays

    def with_sums(self, **changed: Floats | None) -> Aggregates:
        """With other arrays, of shape (groups, signals, ...), for some sums; None for what is no longer known."""
        return replace(self, sums=CellSums.of_dense({**self.known_sums, **changed}))

    def without(self, *names: str) -> Aggregates:
        """With fewer sums."""
        arrays = {name: array for name, array in self.sums.arrays.items() if name not in names}
        return replace(self, sums=replace(self.sums, arrays=arrays))

    @property
    def listed(self) -> bool:
        """Whether decisions are listed from the worst to the best, and not just the classes."""
        return self.rising is not None

    @property
    def choices(self) -> Choices:
        """What may be decided and be true."""
        return Choices.of(self.decisions.tolist(), self.classes.tolist() if self.listed else None, self.order)

    @property
    def notes(self) -> tuple[str, ...]:
        """A note where decisions are visibly not from the worst to the best for the people."""
        with np.errstate(invalid="ignore", divide="ignore"):
            means = self.sums.arrays["value"].sum(axis=-1) / self.counted.sum(axis=0) + self.origin
        return out_of_order(self.measures, means, self.decisions.tolist(), self.choices.order)

    @property
    def knows_baseline(self) -> bool:
        """Whether there is a baseline."""
        return self.knows("baseline_value")

    def _parts(self) -> list[Part]:
        """Counts: the sums themselves are for the program."""
        names = ", ".join(repr(measure.name) for measure in self.measures)
        people = self.people.tolist()
        rows = [
            (
                short(str(group)),
                written(people[z], 9),
                f"{self.rows[z]:,}",
                f"{people[z] / (self.total or 1.0):.1%}",
            )
            for z, group in enumerate(self.groups)
        ]
        labels = "" if self.unlabelled is None else " who have a label; sums of the others stand beside them"
        return [
            Lines(
                [
                    f"Aggregates of {written(self.total, 9)} people in {int(self.rows.sum()):,} rows{labels}.",
                ],
                strong=True,
            ),
            Lines(
                [
                    f"By {len(self.groups):,} groups, {self.signal.size(len(self.classes)):,} signals of kind "
                    f"{self.signal.kind!r} and {len(self.decisions):,} decisions: sums of the loss ({self.loss_name}) "
                    f"and of {names}.",
                ]
            ),
            Table("", ("group", "people", "rows", "share"), rows, PEOPLE, keep=between(people)),
        ]

    def completed(self, max_odds_ratio: float | None = None) -> Aggregates:
        """Aggregates of everybody, where some labels are missing: with what is supposed of those who have none.

        ``max_odds_ratio`` is how many fold reasons outside the table may change the odds of having a label; by default
        as was said when people were summed up. Other aggregates stay as they are.
        """
        if self.unlabelled is not None:
            return self.unlabelled.completed(self, max_odds_ratio)
        if max_odds_ratio is not None and max_odds_ratio != 1.0:
            raise AggregatesError(
                f"max_odds_ratio is {max_odds_ratio!r}, and these aggregates know of no missing labels.",
                "Sum up with aggregate(..., missing_labels=...), or leave max_odds_ratio= out.",
            )
        return self

    @property
    def known_sums(self) -> dict[str, Floats]:
        """All sums that are known, as arrays of shape (groups, signals, ...), by name."""
        return {name: getattr(self, name) for name in self.sums.arrays}

    @cached_property
    def moves(self) -> tuple[bool, ...]:
        """Whether some decision changes each measure for somebody: as was seen, else by sums, which may cancel."""
        if self.changed is not None:
            return self.changed
        value = self.sums.arrays["value"]
        moves = (value != value[:1]).any(axis=(0, 2))
        if self.unlabelled is not None:
            moves = np.logical_or(moves, self.unlabelled.moves)
        return tuple(moves.tolist())

    @cached_property
    def total(self) -> float:
        """Total weight."""
        return float(self.people.sum())

    @cached_property
    def counted(self) -> Floats:
        """Weight inside ``among``, of shape (groups, measures)."""
        return self.sums.by_group(self.sums.arrays["among"])

    @cached_property
    def divisor(self) -> Floats:
        """What sums are divided by for means: 1 where nobody is counted, whose mean is then the origin."""
        return np.where(self.counted > 0, self.counted, 1.0)

    @cached_property
    def compared(self) -> Truths:
        """Which groups the gap of every measure compares, of shape (groups, measures)."""
        return compared_by(self.left_out, [measure.name for measure in self.measures], self.groups)

    def comparing(self, requirements: Iterable[Requirement]) -> Aggregates:
        """With whom the gaps among requirements do not compare, being too few or not listed."""
        counts = self.measures, self.groups, self.numbers, self.counted
        left_out = left_out_by(requirements, *counts) if len(self.groups) > 1 else {}
        found = self if left_out == self.left_out else replace(self, left_out=left_out)
        found.check_complete()
        return found

    @cached_property
    def people(self) -> Floats:
        """Weight of every group."""
        return self.sums.by_group(self.sums.arrays["mass"])

    @cached_property
    def seen(self) -> Floats:
        """How many people of every group were seen: their weight where that counts people, else their rows."""
        rows = self.rows.astype(np.float64)
        return np.maximum(rows, self.people) if self.counts else rows

    @property
    def numbers(self) -> Floats:
        """How many people of every group each measure counts, of shape (groups, measures)."""
        return self.people_in(self.counted)

    def people_in(self, weight: Floats) -> Floats:
        """How many people were seen of whom this is the weight, of shape (groups, measures).

        Of sampling weights as large a share of the rows as of the weight.
        """
        if self.counts:
            return weight
        people = np.where(self.people > 0, self.people, 1.0)
        return np.asarray(self.rows[:, None] * weight / people[:, None])

    @property
    def least(self) -> Floats:
        """The least mean that decisions can give every group, relative to the origin, of shape (groups, measures)."""
        return np.asarray(self.sums.by_group(self.sums.arrays["value"].min(axis=0)) / self.divisor)

    @property
    def most(self) -> Floats:
        """The largest one."""
        return np.asarray(self.sums.by_group(self.sums.arrays["value"].max(axis=0)) / self.counted)

    @cached_property
    def counts(self) -> bool:
        """Whether weights count people who were seen."""
        return are_counts(self.weight_kind, self.whole, self.total, int(self.rows.sum()))

    def __add__(self, other: Aggregates) -> Aggregates:
        if not isinstance(other, Aggregates):
            return NotImplemented
        for what in _ALIKE:
            mine, theirs = getattr(self, what), getattr(other, what)
            same = np.array_equal(mine, theirs) if isinstance(mine, np.ndarray) else mine == theirs
            if not same:
                named = {"rising": "whether decisions get better with the score"}.get(
                    what, what.removesuffix("_name")
                )
                raise AggregatesError(
                    f"These aggregates disagree on {named}: {_difference(mine, theirs)}.",
                    "Compute both with the same arguments; name all classes and groups when a part lacks some.",
                )
        if self.unlabelled is None and other.unlabelled is not None:
            raise refuse_mixed()
        # Without anybody counted there is no origin to speak of.
        origin = np.where(self.counted.sum(axis=0) > 0, self.origin, other.origin)
        other = other.around(origin)
        return replace(
            self,
            origin=origin,
            sums=add_sums([self.around(origin).sums, other.sums]),
            rows=self.rows + other.rows,
            whole=self.whole and other.whole,
            baseline_given=self.baseline_given or other.baseline_given,
            roles=self.roles.shared(other.roles),
            changed=tuple(np.logical_or(self.moves, other.moves).tolist()),
            unlabelled=None if self.unlabelled is None else self.unlabelled.added(other.unlabelled),
        )

    def __radd__(self, other: object) -> Aggregates:
        return self if other == 0 else NotImplemented

    def around(self, origin: Floats) -> Aggregates:
        """The same aggregates relative to another origin."""
        by = (self.origin - origin)[:, None]
        if not by.any():
            return self
        arrays = self.sums.arrays
        shift = by * arrays["among"]

        def shifted(name: str, array: Floats) -> Floats:
            if name in ("value", "baseline_value"):
                return array + shift
            if name == "square":
                return array + 2.0 * by * arrays["value"] + by * shift
            return array

        return replace(self, origin=origin, sums=self.sums.changed(shifted))

    def check_groups(self) -> None:
        """Raise unless there are two groups, each with people."""
        if len(self.groups) < 2:
            raise GroupError(
                f"There is one group only: {self.groups[0]!r}." if self.groups else "There is no group.",
                "A gap is between groups: pass rows of at least two.",
            )
        for z in np.flatnonzero(self.people <= 0).tolist():
            group = self.groups[z]
            raise GroupError(f"The group {group!r} is empty.", "Leave it out, or add rows that hold it.")

    def check_complete(self) -> None:
        """Raise unless there are two groups, each with people, and inside ``among`` of measures that compare them."""
        self.check_groups()
        for z in np.flatnonzero(((self.counted <= 0) & self.compared).any(axis=1)).tolist():
            group = self.groups[z]
            measure = self.measures[int(((self.counted[z] <= 0) & self.compared[z]).argmax())]
            raise HappinessError(
                f"Nobody of the group {group!r} is counted by {measure.name!r}.",
                "Add such rows, widen `among`, or merge the group with another.",
            )

    def evaluate(self, q: Floats) -> Outcome:
        """What the policy ``q[z, s, d]`` does."""
        if self.unlabelled is not None:
            return self.completed().evaluate(q)
        found = self._outcome(float(np.einsum("zsd,zsd->", self.loss, q)), self.relative_means(q))
        return replace(found, **self._shares(q))

    def least_of(self, q: Floats) -> float | None:
        """The loss of a policy at its best, where hidden reasons leave it open; None where they do not."""
        if not self.knows("least_loss"):
            return None
        return float(np.einsum("zsd,zsd->", self.least_loss, q)) / self.total

    def _shares(self, q: Floats | None) -> dict[str, Any]:
        """Shares of every group whom a policy, or None for the baseline's decisions, changes, or gives more or less."""
        people = np.where(self.people > 0, self.people, np.nan)
        found: dict[str, Any] = {}
        if self.knows("baseline_mass"):
            moved = (
                0.0 if q is None else np.einsum("zsd,zsd->z", self.mass[:, :, None] - self.baseline_mass, q)
            )
            found["changed"] = np.clip(moved / people, 0.0, 1.0)
        for name in ("gains", "loses"):
            if self.knows(name):
                moved = np.zeros_like(self.counted)
                if q is not None:
                    moved = np.einsum("zsdj,zsd->zj", getattr(self, name), q)
                found[name] = moved / people[:, None]
                # Who is not counted has no value of a fraction that could be compared.
                found[name][:, [j for j, _ in self._fractions]] = np.nan
        return found

    def evaluate_all(self, tables: Sequence[Floats]) -> list[Outcome]:
        """What :meth:`evaluate` says of each of some policies."""
        return [self.evaluate(q) for q in tables]

    def relative_means(self, q: Floats) -> Floats:
        """Group means under ``q`` relative to the origin, of shape (groups, measures)."""
        return divided(self.linear_means(q), self.origin, self._fractions)

    def linear_means(self, q: Floats) -> Floats:
        """The same with the numerators of fractions, not yet divided: all that is linear in ``q``."""
        return np.asarray(np.einsum("zsdj,zsd->zj", self.value, q) / self.divisor)

    @cached_property
    def _ends(self) -> list[tuple[int, int, int]]:
        """Positions of every measure that hidden reasons leave open, and of its ends."""
        return ends_of(self.measures) if any(measure.ends for measure in self.measures) else []

    @cached_property
    def _fractions(self) -> list[tuple[int, int]]:
        """Positions of every fraction and of its denominator."""
        return fractions_of(self.measures)

    @property
    def one_person(self) -> Floats:
        """The weight of one person of every group: that of a row, or 1 where a row stands for several."""
        return np.asarray(np.minimum(self.people / np.maximum(self.rows, 1), 1.0))

    @property
    def baseline(self) -> Outcome:
        """What the model's own decisions do."""
        if self.unlabelled is not None:
            return self.completed().baseline
        if not self.knows_baseline:
            raise AggregatesError(
                "These aggregates have no baseline: not every class is a decision.",
                "Pass baseline= to aggregate(...): the column of what was really decided.",
            )
        means = self.sums.by_group(self.sums.arrays["baseline_value"]) / self.divisor
        loss = float(self.sums.arrays["baseline_loss"].sum())
        return replace(
            self._outcome(loss, divided(means, self.origin, self._fractions)), **self._shares(None)
        )

    @property
    def baseline_or_none(self) -> Outcome | None:
        """The same; None where nobody named the baseline."""
        return self.baseline if self.knows_baseline else None

    @property
    def log_policies(self) -> float:
        """Logarithm of how many deterministic policies there are, the cuts of cells included."""
        if self.listed:
            return self.signal.log_staircases(len(self.classes), len(self.decisions))
        return self.signal.log_policies(len(self.classes))

    def joined(self) -> Aggregates:
        """With a score's fine bins joined to cells; any other aggregates as they are."""
        people = np.where(self.people > 0, self.people, np.inf)
        each = self.sums.arrays["mass"] / people[self.sums.group] / len(self.groups)
        share = np.bincount(self.sums.signal, each, minlength=self.sums.signals).astype(np.float64)
        joined = self.signal.join(share, len(self.classes))
        if joined is None:
            return self
        cells, signal = joined
        size = signal.size(len(self.classes))
        place = self.sums.group * size + cells[self.sums.signal]
        return replace(self, signal=signal, sums=self.sums.moved(place, len(self.groups), size))

    def of(self, names: Sequence[str]) -> Aggregates:
        """The sums of some measures."""
        kept = [j for j, measure in enumerate(self.measures) if measure.name in names]
        if len(kept) == len(self.measures):
            return self
        sums = self.sums.changed(
            lambda name, array: array[..., kept, :] if SUMS[name].endswith("j") else array
        )
        changed = None if self.changed is None else tuple(self.changed[j] for j in kept)
        measures = tuple(self.measures[j] for j in kept)
        return replace(self, measures=measures, origin=self.origin[kept], changed=changed, sums=sums)

    def with_losses(self, asked: WorseOff) -> Aggregates:
        """With who gets less than from the baseline's decision as a measure, where these sums tell it."""
        parts, arrays = asked.parts(self.measures), self.sums.arrays
        single = len(parts) == 1
        summed = self.knows("loses" if single else "worse")
        if not parts or not summed or asked.name in (measure.name for measure in self.measures):
            return self
        if not single and parts != WorseOff().parts(self.measures):
            return self
        if self.least_loss is not None and any(self.measures[j].looks_at_y for j in parts):
            return self  # of labels that hidden reasons leave open, nobody knows at its most who loses
        mass = arrays["mass"]
        lost = arrays["loses"][:, parts[0]] if single else arrays["worse"]
        looks = any(self.measures[j].looks_at_y for j in parts)
        measure = replace(
            self.measures[parts[0]], name=asked.name, unit="share", family=asked.name, looks_at_y=looks,
            bounds=SHARE, wanted=False, aside=True, by_label=False, ends=None, fall_harms=True,
        )  # fmt: skip
        new = {"value": lost, "square": lost, "gains": lost, "loses": 0.0 * lost}
        new |= {"among": mass, "baseline_value": 0.0 * mass}

        def added(name: str, array: Floats) -> Floats:
            return np.concatenate([array, new[name][..., None, :]], axis=-2) if name in new else array

        return replace(
            self,
            measures=(*self.measures, measure),
            origin=np.append(self.origin, 0.0),
            changed=(*self.moves, True),
            sums=self.sums.changed(added),
        )

    def alike(self, sees_group: bool) -> Codes | None:
        """The signal that stands for each in a group, where those of few people are treated alike; or None."""
        if not self.signal.least:
            return None
        everybody = self.mass.sum(axis=0, keepdims=True)
        place = self.signal.alike(self.mass if sees_group else everybody, len(self.classes))
        return None if place is None else np.broadcast_to(place, self.mass.shape)

    def moved(self, place: Codes) -> Aggregates:
        """With the sums of every group's signals added up at others."""
        sums, size = self.sums, self.sums.signals
        return replace(
            self, sums=sums.moved(sums.group * size + place[sums.group, sums.signal], sums.groups, size)
        )

    def regrouped(self, groups: tuple[Any, ...]) -> Aggregates:
        """The same aggregates of more groups, of some of which there is nobody."""
        codes = np.array([groups.index(group) for group in self.groups], dtype=np.intp)

        def spread(array: Array) -> Array:
            wide = np.zeros((len(groups), *array.shape[1:]), dtype=array.dtype)
            wide[codes] = array
            return wide

        others = self.unlabelled
        if others is not None:
            others = others.mapped(lambda part: part.regrouped(groups), spread)
        sums = self.sums.regrouped(codes, len(groups))
        return replace(self, groups=groups, rows=spread(self.rows), sums=sums, unlabelled=others)

    # -----------------------------------------------------------------------------------------------------
    # Sites that may not share rows

    def merged(self, least: float) -> Aggregates:
        """With every cell of fewer than ``least`` people merged into a neighbour of the same group.

        Nobody is dropped, so the sums of every group stay what they were; only where people stand along the score is
        blurred. A neighbour is the nearest cell on the same side of the model's own boundary, if there is one.
        The origin, which may be one person's value, becomes the mean of the baseline's decisions, which the sums tell
        anyway.
        """
        if self.unlabelled is not None:
            raise AggregatesError(
                "Score bins of people of whom some have no label cannot be merged: few may have one in a bin of many.",
                "Merge aggregates of people with labels, or share those that were not merged.",
            )
        if not self.counts:
            raise AggregatesError(
                "The score bins hold weights that are not counts, so nobody knows how few people one holds.",
                "Merge aggregates without weights, or sum up frequencies with weight_kind='frequency'.",
            )
        if not least >= 1:
            raise AggregatesError(
                f"The least number of people in a score bin is {least!r}.", "Give a number of 1 or more."
            )
        if not self.knows_baseline:
            raise AggregatesError(
                "Score bins are merged around the baseline's decisions, and these aggregates have no baseline.",
                "Pass baseline= to aggregate(...), or share those that were not merged.",
            )
        baseline = self.signal.baseline(len(self.classes))
        place = np.tile(np.arange(self.mass.shape[1]), (len(self.groups), 1))
        for z, group in enumerate(self.groups):
            if 0 < self.mass[z].sum() < least:
                raise GroupError(
                    f"The group {group!r} has {self.mass[z].sum():g} people, fewer than {least:g}.",
                    "Merge it with another group before summing up.",
                )
            if not self.signal.ordered and (self.mass[z] < least)[self.mass[z] > 0].any():
                raise AggregatesError(
                    f"In the group {group!r} some label has fewer than {least:g} people, and labels have no "
                    "neighbours.",
                    "Use policy='score', or merge the group with another.",
                )
            place[z] = _merge(self.mass[z], baseline, least)

        counted = self.counted.sum(axis=0)
        total = self.sums.arrays["baseline_value"].sum(axis=-1)
        mean = self.origin + total / np.where(counted > 0, counted, 1.0)
        merged = self.around(np.where(counted > 0, mean, 0.0)).moved(place)
        # Parts of a cell may be fewer people: what tells them apart is left out.
        parts = {name: merged.sums.arrays.get(name) for name in ("baseline_mass", "gains", "loses", "worse")}
        few = [
            name for name, part in parts.items() if part is not None and ((part > 0) & (part < least)).any()
        ]
        return merged.without(*few)

    def to_json(self) -> str:
        """Write the aggregates as text that :meth:`from_json` reads: sums only, no row and no function."""
        return write_document(self.content(), AGGREGATES, indent=None)

    def content(self) -> dict[str, Any]:
        """The aggregates as data."""
        held = np.flatnonzero(self.sums.arrays["mass"] > 0)
        cells = np.column_stack([self.sums.group[held], self.sums.signal[held]])
        found = {
            "classes": write_classes(self.classes),
            "groups": plain(list(self.groups), "group"),
            "measures": [asdict(measure) for measure in self.measures],
            "signal": signal_to_json(self.signal),
            "loss_name": self.loss_name,
            "origin": self.origin.tolist(),
            "rows": self.rows.tolist(),
            "weight_kind": self.weight_kind,
            "whole": self.whole,
            "changed": list(self.moves),
            "attributes": list(self.attributes),
            "baseline_given": self.baseline_given,
            "roles": self.roles.to_json(),
            "cells": cells.tolist(),
            **{
                name: np.moveaxis(array[..., held], -1, 0).tolist()
                for name, array in self.sums.arrays.items()
            },
        }
        if self.unlabelled is not None:
            found["unlabelled"] = self.unlabelled.to_json()
        found |= write_decisions(self.decisions, self.order, self.rising)
        if self.labels is not None:
            found["labels"] = self.labels.to_json()
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the aggregates to a file, whole or not at all."""
        write_whole(path, self.to_json())

    @classmethod
    def from_json(cls, text: str) -> Aggregates | Any:
        """Read aggregates, of decisions or of amounts, refusing whatever is not exactly some."""
        try:
            found = cls._read(read_document(text, AGGREGATES))
        except PolicyFileError as error:
            raise AggregatesError(
                error.problem.replace("policy file", "file of aggregates"), error.remedy
            ) from error
        except FelicificError as error:
            raise _no_aggregates(error.problem.rstrip(".")) from error
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            raise _no_aggregates(f"a part is missing or of another type ({error!r})") from error
        return found

    @classmethod
    def _read(cls, content: dict[str, Any]) -> Aggregates | Any:
        """Read what :meth:`content` wrote; sums of amounts, which stand above, by their own reader."""
        if content.get("kind") == "amounts":
            return import_module("felicific._program.numeric").AmountAggregates.read(content)
        found = cls(**read_aggregates(content))
        extra = set(content) - {*SUMS, "cells", "order", *(part.name for part in fields(found))}
        if extra:
            raise _no_aggregates(f"it holds {sorted(extra)}, which no aggregates have")
        labels = KnownLabels.from_json(content.get("labels"), found.groups)
        unlabelled = Unlabelled.from_json(content.get("unlabelled"), found, cls._read)
        return replace(found, labels=labels, unlabelled=unlabelled)

    def _outcome(self, loss: float, relative: Floats) -> Outcome:
        gaps = gaps_of(relative, self.compared)
        for j, low, high in self._ends:
            known = self.compared[:, j]
            gaps[j] = largest_between(relative[known, low], relative[known, high])
        means = np.where(self.counted > 0, relative + self.origin, np.nan)
        names = tuple(measure.name for measure in self.measures)
        return Outcome(loss / self.total, means, gaps, groups=self.groups, measures=names)


#: What aggregates that add agree on.
_ALIKE = (
    "classes",
    "decisions",
    "rising",
    "order",
    "groups",
    "measures",
    "signal",
    "loss_name",
    "weight_kind",
    "attributes",
)


def _no_aggregates(reason: str) -> AggregatesError:
    return AggregatesError(
        f"This is no file of aggregates: {reason}.", "Get the file again from the site that wrote it."
    )


def _merge(mass: Floats, baseline: Codes, least: float) -> Codes:
    """Where each cell of one group goes, so that every cell that holds people holds at least ``least``."""
    place = np.arange(len(mass))
    clusters: list[list[int]] = []
    for side in np.unique(baseline):
        mine: list[list[int]] = []
        for s in np.flatnonzero((mass > 0) & (baseline == side)).tolist():
            if mine and mass[mine[-1]].sum() < least:
                mine[-1].append(s)
            else:
                mine.append([s])
        if len(mine) > 1 and mass[mine[-1]].sum() < least:
            mine[-2:] = [mine[-2] + mine[-1]]
        clusters += mine
    large = [cluster for cluster in clusters if mass[cluster].sum() >= least]
    for cluster in clusters:
        # A side with too few people altogether goes to the nearest cluster of another.
        home = cluster if cluster in large else min(large, key=lambda other: abs(other[0] - cluster[0]))
        place[cluster] = max(home, key=lambda s: mass[s])
    return place


def _difference(mine: Any, theirs: Any) -> str:
    """Both sides of a disagreement; measures by name, or when the names agree by the first part that differs."""
    if isinstance(mine, tuple) and mine and isinstance(mine[0], Measure):
        names = [[measure.name for measure in side] for side in (mine, theirs)]
        if names[0] == names[1]:
            pair = next(pair for pair in zip(mine, theirs, strict=True) if pair[0] != pair[1])
            parts = (part.name for part in fields(Measure) if part.compare)
            part = next(part for part in parts if getattr(pair[0], part) != getattr(pair[1], part))
            return " and ".join(f"{part} {getattr(one, part)!r} of {one.name!r}" for one in pair)
        mine, theirs = names
    texts = [str(side.tolist() if isinstance(side, np.ndarray) else side) for side in (mine, theirs)]
    return " and ".join(text if len(text) < 400 else text[:400] + "..." for text in texts)
