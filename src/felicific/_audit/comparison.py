"""Comparison: what another way of deciding changes for the same people."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from felicific._audit.amounts import change_of_parity
from felicific._audit.debiased import Debiased
from felicific._audit.measured import Measured, revalued
from felicific._audit.methods import Sampled, audit_of, measure_loss, sample_of
from felicific._audit.result import (
    NOBODY,
    Audit,
    Interval,
    bounded,
    interval_to_dict,
    line_of,
    loss_change,
    means_to_dict,
    plain,
    row_of,
    table_of_means,
    titled,
)
from felicific._problem.change import every_group_loses, few_counted, nothing_to_repair
from felicific._problem.happiness import SAME, SHARE, Measure, position
from felicific._problem.unions import compared_by
from felicific._program.label_completion import SOURCES
from felicific._shown.parts import Displayed, Lines, Part, short, table_lines
from felicific._statistics.gaps import change_interval, spread_of
from felicific._statistics.intervals import check_confidence, with_changed
from felicific._tables.memory import table_maker
from felicific._typing import Codes, Floats, Truths
from felicific.exceptions import DataError


@dataclass(frozen=True, repr=False)
class Change(Displayed):
    """One measure: how every group's mean and the gap change.

    Attributes
    ----------
    measure : Measure
    means : dict of group to Interval
        Mean afterwards minus mean before, of the same people.
    gap : Interval or None
        Gap afterwards minus gap before; None where the audits have none.
    before, after : dict
        Group means before and after. Of distributional parity, of which there are none, nothing.
    loses, gains : dict of group to Interval
        The share of every group that gets less than before, and more, of those who are counted; of lotteries, that
        may expect so. Of fractions, and where labels are missing, nothing.
    """

    measure: Measure
    means: dict[Any, Interval]
    gap: Interval | None
    before: dict[Any, float]
    after: dict[Any, float]
    loses: dict[Any, Interval] = field(default_factory=dict)
    gains: dict[Any, Interval] = field(default_factory=dict)

    _whole: ClassVar[str] = "the comparison's to_frame() has all of it."

    def _parts(self) -> list[Part]:
        remarks = self.remarks
        return [table_of_means(self.measure, self.means, {"gap": self.gap}, remarks, what="change")]

    @property
    def shares(self) -> dict[str, dict[Any, Interval]]:
        """Who gets less than before, and who more, where that is known."""
        known = {"gets less than before": self.loses, "gets more than before": self.gains}
        return {what: shares for what, shares in known.items() if shares}

    @property
    def remarks(self) -> list[str]:
        """The same in words."""
        return [
            f"Share that {what}: "
            + "; ".join(
                f"{short(str(group))} {100 * one.estimate:.3g} %, {100 * one.low:.3g} to {100 * one.high:.3g} %"
                for group, one in shares.items()
            )
            + "."
            for what, shares in self.shares.items()
        ]


@dataclass(frozen=True, repr=False)
class Comparison(Displayed):
    """Paired differences between two audits of the same people: afterwards minus before.

    Attributes
    ----------
    measures : tuple of Change
    loss : Interval or None
        Change of the mean loss.
    rows : int
    confidence : float
    remarks : tuple of str
        Whether every group loses, and whether there was nothing to repair: shown, or seen on these rows.

    Examples
    --------
    >>> from felicific import audit, compare
    >>> people = {"sex": ["f", "m"] * 50, "before": [0, 1, 1, 1] * 25, "after": [1, 1] * 50}
    >>> asked = {"happiness": "decision", "sensitive_features": "sex", "decisions": [0, 1]}
    >>> change = compare(audit("before", people, **asked), audit("after", people, **asked))
    >>> change["decision"].gap.estimate, change["decision"].after
    (-0.5, {'f': 1.0, 'm': 1.0})
    """

    measures: tuple[Change, ...]
    loss: Interval | None
    rows: int
    confidence: float
    remarks: tuple[str, ...] = ()
    loss_name: str = ""

    def __getitem__(self, name: str) -> Change:
        return self.measures[position(name, [found.measure for found in self.measures])]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data that JSON can hold; an infinite limit is None."""
        return {
            "confidence": self.confidence,
            "rows": self.rows,
            "measures": [
                {
                    "name": found.measure.name,
                    "unit": found.measure.unit,
                    "means": [
                        {
                            "group": mean["group"],
                            "before": plain(found.before[group]),
                            "after": plain(found.after[group]),
                        }
                        | mean
                        for group, mean in zip(found.means, means_to_dict(found.means), strict=True)
                    ],
                    "gap": None if found.gap is None else interval_to_dict(found.gap),
                }
                | {what.replace(" ", "_"): means_to_dict(shares) for what, shares in found.shares.items()}
                for found in self.measures
            ],
            "loss": None if self.loss is None else interval_to_dict(self.loss),
            "remarks": list(self.remarks),
        }

    def to_frame(self) -> Any:
        """One row per group mean, gap and the loss, as a pandas or Polars dataframe."""
        lines = []
        for found in self.measures:
            name, unit = found.measure.name, found.measure.unit
            lines += [line_of(name, unit, "mean", str(group), mean) for group, mean in found.means.items()]
            lines += [] if found.gap is None else [line_of(name, unit, "gap", "", found.gap)]
            for what, shares in found.shares.items():
                lines += [line_of(name, "share", what, str(group), one) for group, one in shares.items()]
        if self.loss is not None:
            lines.append(line_of("loss", "", "loss", "", self.loss))
        names = dict.fromkeys([*lines[0], *bounded(lines)])
        return table_maker("auto")(
            {name: np.array([line.get(name, math.nan) for line in lines]) for name in names}
        )

    @property
    def _title(self) -> str:
        return f"Change for the same {self.rows:,} rows, confidence {self.confidence:.6g}"

    def _tables(self) -> list[tuple[str, list[tuple[str, ...]], list[str]]]:
        return [
            (
                titled(found.measure),
                [
                    row_of(str(name), interval, found.measure)
                    for name, interval in [*found.means.items(), ("gap", found.gap)]
                    if interval is not None
                ],
                found.remarks,
            )
            for found in self.measures
        ]

    def __str__(self) -> str:
        lines = [self._title]
        for title, rows, remarks in self._tables():
            lines += ["", title, *table_lines(HEADER, rows), *(f"  {remark}" for remark in remarks)]
        if self.loss is not None:
            lines += ["", loss_change(self.loss, self.loss_name)]
        lines += ["", *self.remarks] if self.remarks else []
        return "\n".join(short(line, 500) for line in lines)

    _whole: ClassVar[str] = "print it, or to_frame()."

    def _parts(self) -> list[Part]:
        return [
            Lines([self._title], strong=True),
            Lines(self.remarks, self._whole),
            *(table for found in self.measures for table in found._parts()),
            Lines([] if self.loss is None else [loss_change(self.loss, self.loss_name)]),
        ]


HEADER = ("group", "n", "change", "low", "high", "method")


def compare(before: Audit, after: Audit, *, confidence: float = 0.95) -> Comparison:
    """Compare two ways of deciding on the same people, person by person.

    Parameters
    ----------
    before, after : Audit
        Audits of the same people, in the same order, with the same happiness.
    confidence : float, default=0.95
        Of every interval, whatever that of the audits is.

    Returns
    -------
    Comparison
        Changes of group means, gaps and loss, with intervals. People differ among each other more than between two
        ways of deciding, so these intervals are far narrower than the difference of two audits' would be.

    Examples
    --------
    >>> from felicific import audit, compare
    >>> people = {"sex": ["f", "m"] * 50, "before": [0, 1, 1, 1] * 25, "after": [1, 1] * 50}
    >>> asked = {"happiness": "decision", "sensitive_features": "sex", "decisions": [0, 1]}
    >>> change = compare(audit("before", people, **asked), audit("after", people, **asked))
    >>> women = change["decision"].means["f"]
    >>> women.estimate, women.low > 0.2
    (0.5, True)
    """
    for name, given in (("before", before), ("after", after)):
        if not isinstance(given, Audit):
            raise DataError(
                f"{name} is a {type(given).__name__}, not an audit.",
                "Pass audit(...) of each way of deciding, on the same people.",
            )
    level = check_confidence(confidence)
    one, other = _one_by_one(before), _one_by_one(after)
    _check_same(before, after)
    before, after, labels = _with_same_labels(before, after)
    one, other = _one_by_one(before), _one_by_one(after)
    paired = paired_persons(one, other)
    alpha, names = 1.0 - level, [measure.name for measure in one.measures]
    whom = compared_by(one.left_out, names, one.groups) & compared_by(other.left_out, names, one.groups)
    changes = tuple(
        _change(paired, (before, after), j, np.flatnonzero(whom[:, j]), alpha) for j in range(len(names))
    )
    changes += _change_of_distributions(before, after, len(changes), alpha)
    return Comparison(
        measures=changes,
        loss=change_of_loss(one, other, alpha),
        rows=after.rows,
        confidence=level,
        remarks=(*labels, *_remarks(before, after, changes, level)),
        loss_name=after.loss_name,
    )


def _with_same_labels(before: Audit, after: Audit) -> tuple[Audit, Audit, list[str]]:
    """Both audits with the same beliefs about missing labels: a change is of the same people; and what is said of it.

    Of two that differ, the one that looks at more says who has a label, and else the one before.
    """
    one, other = _one_by_one(before).debiased, _one_by_one(after).debiased
    if one is None or other is None or before.labels is None or after.labels is None:
        return before, after, []
    same = np.array_equal(one.standing, other.standing) and np.array_equal(one.chances, other.chances)
    if same:
        return before, after, []
    told = [*SOURCES]
    earlier = told.index(before.labels.source) <= told.index(after.labels.source)
    chosen, labels = (one, before.labels) if earlier else (other, after.labels)
    said = (
        f"The two audits differ in what they say of missing labels; that of the one {'before' if earlier else 'after'} "
        f"is taken for both. {SOURCES[labels.source]}."
    )
    return _believing(before, chosen), _believing(after, chosen), [said]


def _believing(audit: Audit, told: Debiased) -> Audit:
    """The same audit with other beliefs about missing labels."""
    persons = _one_by_one(audit)
    assert persons.debiased is not None, "labels are missing"
    if persons.debiased is told:
        return audit
    own = replace(persons.debiased, chances=told.chances, standing=told.standing)
    widths = [math.inf if part.test is None else part.test.at_most for part in audit.measures]
    people = revalued(replace(persons, debiased=own))
    return audit_of(people, widths, confidence=audit.confidence, loss_name=audit.loss_name)


def _remarks(before: Audit, after: Audit, measures: tuple[Change, ...], level: float) -> list[str]:
    """Whether there was nothing to repair, and whether every group loses."""
    tests = [one.test or other.test for one, other in zip(before.measures, after.measures, strict=True)]
    asked = [math.inf if test is None else test.at_most for test in tests]
    parts = before.measures
    gaps = np.array([before.gaps.get(part.measure.name, math.nan) for part in parts])
    shown = all(part.test is not None and part.test.verdict == "at most" for part in parts)
    what = [part.measure for part in parts]
    found = nothing_to_repair(what, gaps, asked, f"before, {_known(shown, before.confidence)}")
    measures = tuple(change for change in measures if change.means)
    what = what[: len(measures)]
    for change in measures:
        groups = [repr(group) for group in change.means]
        was, is_ = (np.array([*means.values()])[:, None] for means in (change.before, change.after))
        # Every one of the intervals excludes 0, so no correction is needed for their number.
        shown = not any(mean.high >= 0 for mean in change.means.values())  # of nobody, nothing is
        found += every_group_loses([change.measure], groups, was, is_, f"afterwards, {_known(shown, level)}")
    # Of fractions, whether enough are left; their denominators are measures too.
    was, is_ = (
        np.array([[means.get(group, math.nan) for means in side] for group in before.groups])
        for side in ([part.before for part in measures], [part.after for part in measures])
    )
    return found + few_counted(what, [repr(group) for group in before.groups], was, is_, "on these rows")


def _known(shown: bool, confidence: float) -> str:
    sure = f"shown of people like these with confidence {confidence:.6g}"
    return f"on these rows ({sure if shown else 'not shown of people like these'})"


def _check_same(before: Audit, after: Audit) -> None:
    remedy = "Audit both on the same rows, in the same order, with the same happiness and weights."
    names = [[found.measure.name for found in audit.measures] for audit in (before, after)]
    if names[0] != names[1]:
        raise DataError(f"One audit measures {names[0]}, the other {names[1]}.", remedy)
    if before.groups != after.groups or before.rows != after.rows:
        raise DataError(
            f"One audit has {before.rows} rows of the groups {list(before.groups)}, the other {after.rows} of "
            f"{list(after.groups)}.",
            remedy,
        )
    if _of_amounts(before) != _of_amounts(after):
        raise DataError(
            "One audit is of amounts, the other of classes.", "Audit both with decisions=(low, high)."
        )
    if before.persons.fingerprint != after.persons.fingerprint:
        raise DataError("The two audits are not of the same people.", remedy)
    max_odds_ratio = [
        None if audit.labels is None else audit.labels.max_odds_ratio for audit in (before, after)
    ]
    if max_odds_ratio[0] != max_odds_ratio[1]:
        raise DataError(
            "The two audits do not say the same of missing labels.",
            "Audit both with the same missing_labels=.",
        )


def _of_amounts(audit: Audit) -> bool:
    return audit.persons.amounts is not None


def _one_by_one(audit: Audit) -> Measured:
    if not audit.persons.one_by_one:
        raise DataError(
            "A comparison is person by person, and a table is not in memory.",
            "Collect the table and audit it again.",
        )
    return audit.persons


def _change(paired: Measured, audits: tuple[Audit, Audit], j: int, known: Codes, alpha: float) -> Change:
    one, other = (_one_by_one(audit) for audit in audits)
    measure, (before, after) = other.measures[j], (audit.measures[j] for audit in audits)
    means = change_of_means(paired, j, alpha)
    gap = None
    if before.gap is not None and after.gap is not None:
        bounds = _apart([part.bounds for part in (before.gap, after.gap) if part.bounds is not None])
        gap = replace(change_of_gap(one, other, paired, j, known, alpha), bounds=bounds)
    return Change(
        measure=measure,
        means=dict(zip(paired.groups, means, strict=True)),
        gap=gap,
        before={group: mean.estimate for group, mean in before.means.items()},
        after={group: mean.estimate for group, mean in after.means.items()},
        loses=_share(paired, other, j, -1.0, alpha),
        gains=_share(paired, other, j, 1.0, alpha),
    )


def _share(paired: Measured, other: Measured, j: int, sign: float, alpha: float) -> dict[Any, Interval]:
    """Which share of every group gets less (``sign`` -1) or more."""
    measure = other.measures[j]
    if measure.over or measure.name in other.idle or other.debiased_at[j]:
        return {}
    size = np.abs(other.values[:, j] + other.origin[j])
    changed = sign * paired.values[:, j] > SAME * size
    rated = replace(
        paired,
        measures=(replace(measure, bounds=SHARE),),
        values=np.asarray(changed, dtype=np.float64)[:, None],
        inside=None if paired.inside is None else paired.inside[:, [j]],
        origin=np.zeros(1),
        rates=np.ones(1, dtype=bool),
        reach=paired.reach[:, [j, -1]],
        debiased=None,
    )
    shares = zip(paired.groups, sample_of(rated, 0).intervals(alpha), strict=True)
    return {group: share for group, share in shares if share.n > 0}


def _change_of_distributions(before: Audit, after: Audit, known: int, alpha: float) -> tuple[Change, ...]:
    """How the distance between the distributions of amounts changes, if both audits have it."""
    return tuple(
        Change(part.measure, {}, change_of_parity(before, after, alpha), {}, {})
        for part in after.measures[known:]
    )


def _apart(gaps: list[tuple[float, float]]) -> tuple[float, float] | None:
    """What is left open of the change of a gap, from what is of the gaps before and after."""
    if len(gaps) < 2:
        return None
    (least, most), (lower, upper) = gaps
    return lower - most, upper - least


# ---------------------------------------------------------------------------------------------------------
# What changes for the same people: they differ among each other more than between two ways of deciding


#: Methods of mean changes, and of the change of a gap, in words.
KNOWN_ZERO = "known: no decision changes anything for these people"
#: The square of a change that nobody would notice, and that is not known to be none.
LEAST = 1e-100

PAIRS = "all pairs of groups together, widened for skewness (large sample)"
BETS = "all pairs of groups together, by bets (distribution-free)"


def paired_persons(one: Measured, other: Measured, kept: Truths | None = None) -> Measured:
    """Everybody's change from one way of deciding to another.

    ``kept`` are groups about whom both decide alike, whoever belongs to them: nothing is left open there.
    """
    shift = other.origin - one.origin
    change = other.values - one.values + shift
    if one.amounts is not None:  # who gets the same is not changed by the rounding of what is subtracted
        change[np.abs(change) <= SAME * np.abs(other.values + other.origin)] = 0.0
    inside, reach = one.inside, _reach(one, other, change)
    if inside is not None:
        inside, reach = inside.copy(), reach.copy()
        for j, measure in enumerate(one.measures):
            if measure.over:
                change[:, j], reach[:-1, j] = _fraction_change(one, other, j)
                inside[:, j] = True
        change = np.where(inside, change, 0.0)
    if kept is not None and kept.any():
        reach = reach.copy()
        reach[:-1][kept] = 0.0
    # Changes lie between minus and plus what is widest, except of values that are debiased or linearised.
    loose = other.debiased_at.tolist()
    measures = tuple(
        replace(part, bounds=None if part.over or loose[j] else _changes(part.bounds))
        for j, part in enumerate(other.measures)
    )
    paired = replace(
        other,
        measures=measures,
        values=change,
        inside=inside,
        share=None,
        reach=reach,
        origin=np.zeros(len(shift)),
        rates=np.zeros(len(shift), dtype=bool),
        ends=None,
    )
    return _bounded(paired, one, other, shift)


def change_of_means(paired: Measured, j: int, alpha: float, *, large: bool = False) -> list[Interval]:
    """Intervals of every group's mean change."""
    return _intervals(_sampled_change(paired, j, large=large), paired.reach[:-1, j], alpha)


def _sampled_change(paired: Measured, j: int, *, large: bool) -> Sampled:
    """One measure's changes: by bets within bounds, else with two changed people added, at both ends too."""
    found = sample_of(paired, j, large=large)
    return found if found.method == "bets" else _with_added(found, paired.reach[:-1, j])


def change_of_gap(
    one: Measured,
    other: Measured,
    paired: Measured,
    j: int,
    known: Codes,
    alpha: float,
    *,
    large: bool = False,
) -> Interval:
    """The gap afterwards minus the gap before; ``known`` are the groups that are compared."""
    counted = sample_of(paired, j, large=True).sample.n
    known = known[counted[known] > 0]
    changed = _sampled_change(paired, j, large=large).only(known)
    was, is_ = (sample_of(persons, j, large=large).only(known) for persons in (one, other))
    widest = other.measures[j].widest
    low, high = -widest, widest
    if len(known) > 1 and changed.ends is None:
        low, high = change_interval(was.means, is_.means, changed.means, alpha)
    elif len(known) > 1:  # what hidden reasons leave open of each of the gaps
        tail = alpha / (4.0 * len(known))
        (least, most), (lower, upper) = (spread_of(part.limits(tail)) for part in (was, is_))
        low, high = float(lower - most), float(upper - least)
    return Interval(
        float(np.ptp(is_.sample.mean) - np.ptp(was.sample.mean)) if len(known) else math.nan,
        max(low, -widest),
        min(high, widest),
        float(counted[known].min()) if len(known) else 0.0,
        "none" if len(known) < 2 else PAIRS if changed.method == "large" else BETS,
    )


def change_of_loss(one: Measured, other: Measured, alpha: float, *, large: bool = False) -> Interval | None:
    """The mean loss afterwards minus that before; None where it is not known."""
    if one.losses is None or other.losses is None:
        return None
    bounds = None if large or other.debiased_at[-1] else _changes(other.loss_bounds)
    paired = replace(other, losses=other.losses - one.losses, loss_rate=False, loss_bounds=bounds, ends=None)
    change = measure_loss(_bounded(paired, one, other, other.origin - one.origin))
    assert change is not None, "the losses are known"
    reach = one.reach[-1:, -1]
    if one.amounts is not None:
        square = float(np.average((other.losses - one.losses) ** 2, weights=one.weight))
        reach = np.maximum(np.maximum(reach, other.reach[-1:, -1]), max(square, LEAST))
    return _intervals(change if change.method == "bets" else _with_added(change, reach), reach, alpha)[0]


def _changes(bounds: tuple[float, float] | None) -> tuple[float, float] | None:
    """Between which numbers changes lie of what lies within bounds."""
    if bounds is None or bounds[0] == bounds[1]:
        return None
    return bounds[0] - bounds[1], bounds[1] - bounds[0]


def _reach(one: Measured, other: Measured, change: Floats) -> Floats:
    """How far decisions could change people, as a mean square, by group; of amounts, how far these did, or two differ.

    Nobody knows which amounts are possible, so of those that a happiness asks for nothing is known for sure.
    """
    if one.amounts is None or other.amounts is None:
        return one.reach
    reach, g = np.maximum(one.reach, other.reach), len(one.groups)
    weight = np.ones(len(one.codes)) if one.weight is None else one.weight
    for j, measure in enumerate(one.measures):
        counted = weight if one.inside is None else weight * one.inside[:, j]
        mass = np.bincount(one.codes, counted, minlength=g)
        squares = np.bincount(one.codes, counted * change[:, j] ** 2, minlength=g)
        reach[:-1, j] = np.maximum(reach[:-1, j], squares / np.where(mass > 0, mass, 1.0))
        if measure.name not in one.idle:
            reach[:-1, j] = np.maximum(reach[:-1, j], LEAST)
        else:
            reach[:-1, j] = 0.0
    return reach


def _bounded(paired: Measured, one: Measured, other: Measured, shift: Floats) -> Measured:
    """With both ends of what hidden reasons leave open of every change, which are not those of before and after."""
    if other.debiased is None or one.debiased is None or other.ends is None:
        return paired
    changed = revalued(replace(paired, debiased=other.debiased.changed(one.debiased, shift)))
    return replace(paired, ends=changed.ends)


def _fraction_change(one: Measured, other: Measured, j: int) -> tuple[Floats, Floats]:
    """What everybody adds to the change of a fraction, linearised; and how far decisions could change it."""
    (was, before), (is_, after) = one.linear(j), other.linear(j)
    for z in np.flatnonzero(np.minimum(before, after) <= 0.0)[:1]:
        raise DataError(
            f"In one of the audits nobody of the group {one.groups[z]!r} is counted by {one.measures[j].name!r}, so "
            "there is no change to speak of.",
            "Audit without that happiness, or without that group.",
        )
    shift = float(other.origin[j] - one.origin[j])
    return is_ - was + shift, one.reach[:-1, j] / np.minimum(before, after) ** 2


def _intervals(found: Sampled, reach: Floats, alpha: float) -> list[Interval]:
    """Intervals of mean changes; where no decision changes anything for anybody, that is known."""
    made = found.intervals(alpha)
    sure = [
        Interval(0.0, 0.0, 0.0, interval.n, KNOWN_ZERO) if far == 0.0 else interval
        for interval, far in zip(made, reach.tolist(), strict=True)
    ]
    return [NOBODY if interval.n == 0 else one for one, interval in zip(sure, made, strict=True)]


def _with_added(found: Sampled, reach: Floats) -> Sampled:
    """With two changed people added, at both ends too; estimates and numbers are those without them."""
    ends = found.ends and (_with_added(found.ends[0], reach), _with_added(found.ends[1], reach))
    return replace(found, added=with_changed(found.sample, reach), bounds=None, ends=ends)
