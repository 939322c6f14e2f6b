"""What another way of deciding does, in words, and what it is compared with.

Tuning and fairness apart, who gains and who loses, that every group loses by it, that intersections of several
attributes are harmed which no comparison looks at, or that there was nothing to repair.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from felicific._problem.criteria import CRITERIA
from felicific._problem.happiness import SHARE, Measure, fractions_of, measured
from felicific._problem.loss import loss_text, loss_words
from felicific._problem.unions import unions_of
from felicific._typing import Floats

#: How the worst of it begins.
EVERY_GROUP_LOSES = "Every group loses"
INTERSECTION_FALLS = "An intersection loses more than its groups"
GAP_WIDENS = "The gap between intersections widens"
FEW_LEFT = "Few are left to be compared"

#: Most groups whose means are spelled out.
GROUPS = 4

#: Most harms that are spelled out.
HARMS = 8

#: Fewer people than this share of before are few.
FEW = 0.5

#: A fall of this relative size is not worth a word, and an excess of a gap may be nothing but rounding.
NEGLIGIBLE, ROUNDING = 1e-5, 1e-9

#: Intersections of fewer people are too small to tell of a harm to them.
ENOUGH = 30

#: From where on a mean falls, or a gap widens: points of a share; of anything else this share of the largest mean.
VISIBLE = 0.01

#: From where on an intersection falls more than its groups: points of a share, or this share of its baseline.
MORE = 0.05


@dataclass(frozen=True)
class Reference:
    """What policies are compared with, as a sentence says it.

    Attributes
    ----------
    key : str
        What data call it.
    name, then : str
        "0.3 under the model, 0.1 under the policy": how things are by the reference, and by the policy beside it.
    whole : str
        What a policy is measured against.
    owner : str
        "the model's" gap, "the present" gap; empty where nobody decides so.
    """

    key: str
    name: str
    then: str
    whole: str
    owner: str = ""

    @property
    def is_baseline(self) -> bool:
        """Whether it is the baseline: the present decisions, or those of the model."""
        return bool(self.owner)

    @property
    def data_key(self) -> str:
        """What data call it where it does not matter who decides so."""
        return "baseline" if self.is_baseline else self.key

    def of(self, what: str) -> str:
        """What belongs to it: "the model's gap", "the gap without requirements"."""
        return f"{self.owner} {what}" if self.is_baseline else f"the {what} {self.name}"

    def begins(self, what: str) -> str:
        """The same at the beginning of a sentence."""
        text = self.of(what)
        return text[:1].upper() + text[1:]


#: The baseline where it was not given.
MODEL = Reference("model", "under the model", "under the policy", "the model's decisions", "the model's")

#: The baseline where it was given.
PRESENT = Reference("present", "at present", "under the policy", "the present decisions", "the present")

#: Where there is no baseline: the policy of the same kind of which nothing is required.
UNCONSTRAINED = Reference(
    "without_requirements", "without requirements", "with them", "the least loss without requirements"
)

REFERENCES = {one.key: one for one in (MODEL, PRESENT, UNCONSTRAINED)}


def baseline_words(given: bool) -> Reference:
    """What sentences call the baseline."""
    return PRESENT if given else MODEL


def losing(measure: Measure, before: Floats, after: Floats) -> bool:
    """Whether the mean falls in every group, of something of which more is better for them."""
    fall, least = _change(after, before)
    return measure.more_is_better and bool((fall > least).all())


def _change(before: Floats, after: Floats) -> tuple[Floats, float]:
    """How much more every group gets of which there is somebody, and what of that is not worth a word."""
    present = ~np.isnan(before + after)
    return after[present] - before[present], NEGLIGIBLE * float(
        np.abs([before[present], after[present]]).max(initial=0.0)
    )


def remedy_of(measure: Measure) -> str:
    """What to do when a policy levels every group down."""
    return f"Add a floor of {measure.name!r} at its baseline, or let the policy see more."


def only_takes(measure: Measure, before: Floats, after: Floats) -> bool:
    """Whether no group's mean rises and that of some falls, of something of which more is better."""
    change, least = _change(before, after)
    return measure.more_is_better and bool((change <= least).all() and (change < -least).any())


def every_group_loses(
    measures: Sequence[Measure],
    groups: Sequence[str],
    before: Floats,
    after: Floats,
    where: str,
    *,
    by_policy: bool = False,
) -> list[str]:
    """A sentence for every measure of which each group gets less, or some get less and none gets more.

    Means are of shape (groups, measures). ``groups`` are as they are to be written, ``where`` says of whom and
    compared with what. If it is ``by_policy``, there is something to do about it.
    """
    sentences = []
    every = groups
    for j, measure in enumerate(measures):
        present = np.flatnonzero(~np.isnan(before[:, j] + after[:, j]))  # of nobody there is no mean
        groups, was, is_ = [every[z] for z in present.tolist()], before[present, j], after[present, j]
        if only_takes(measure, was, is_) and not losing(measure, was, is_):
            sentences.append(_taking(measure, groups, was, is_, where) + f" {remedy_of(measure)}" * by_policy)
        if not losing(measure, was, is_):
            continue
        falls = sorted((was - is_).tolist())
        how = f"by {measure.quantity(falls[0])} to {measure.quantity(falls[-1])} in the {len(groups)} groups"
        if len(groups) <= GROUPS:
            each = zip(groups, was.tolist(), is_.tolist(), strict=True)
            how = ", ".join(
                f"from {measure.quantity(a)} to {measure.quantity(b)} in group {group}"
                for group, a, b in each
            )
        sentence = f"{EVERY_GROUP_LOSES}: {where}, mean {measure.name!r} falls {how}."
        sentences.append(f"{sentence} {remedy_of(measure)}" if by_policy else sentence)
    return sentences


def _taking(measure: Measure, groups: Sequence[str], was: Floats, is_: Floats, where: str) -> str:
    """What is said where some groups get less and none gets more."""
    fewer = np.flatnonzero(was - is_ > NEGLIGIBLE * np.abs([was, is_]).max()).tolist()
    each = ", ".join(
        f"from {measure.quantity(float(was[z]))} to {measure.quantity(float(is_[z]))} in group {groups[z]}"
        for z in fewer[:GROUPS]
    )
    return f"It levels down: {where}, mean {measure.name!r} rises in no group, and falls {each}."


@dataclass(frozen=True)
class Harm:
    """A harm to intersections of several attributes that comparing each attribute by itself does not show.

    Attributes
    ----------
    j : int
        Position of the measure.
    group : int, or None
        Position of the intersection whose mean falls more than that of every group it belongs to; None where the gap
        between intersections widens.
    size : float
        By how much it falls, or the gap widens, in the measure's unit.
    grave : float
        The same, as so many times the least that is spoken of.
    sentence, remedy : str
    """

    j: int
    group: int | None
    size: float
    grave: float
    sentence: str
    remedy: str


@dataclass(frozen=True)
class Intersections:
    """Groups that are intersections of several attributes, by what measures count of them.

    Attributes
    ----------
    groups, names : tuple
        The groups, and as they are to be written.
    attributes : tuple
        What they are made of.
    weights : array of shape (groups, measures)
        How much weight each measure counts in every group; of a fraction, everybody's.
    people : array of shape (groups, measures)
        How many people each measure counts; 0 where an attribute is missing.
    """

    groups: tuple[Any, ...]
    names: Sequence[str]
    attributes: tuple[Any, ...]
    weights: Floats
    people: Floats

    def harms(
        self,
        measures: Sequence[Measure],
        before: Floats,
        after: Floats,
        coarse: Mapping[int, float],
        where: str,
    ) -> list[Harm]:
        """What other group means, of shape (groups, measures), do to intersections; the worst first.

        ``coarse`` are the measures of which something asked compares attributes and not all groups, each with the gap
        between all groups that was allowed all the same; ``where`` says of whom and compared with what.
        """
        over, found = dict(fractions_of(measures)), []
        for j, measure in enumerate(measures):
            was, now = before[:, j], after[:, j]
            large = (self.people[:, j] >= ENOUGH) & ~np.isnan(was + now)
            size = np.ones(len(was)) if measure.bounds == SHARE else np.abs(was)
            visible = VISIBLE * size[large].max(initial=0.0) * (1.0 - ROUNDING)
            if measure.more_is_better:
                counted = [self.weights[:, j]] * 2
                if j in over:
                    counted = [self.weights[:, over[j]] * means[:, over[j]] for means in (before, after)]
                falls = self._falls_of_attributes(was, now, *counted)
                least = np.maximum(MORE * size * (1.0 - ROUNDING), max(visible, 1e-300))
                harmed = large & (was - now >= visible) & (was - now - falls >= least) & (now < was)
                remedy = f"Add a floor of {measure.name!r} at its baseline for it"
                remedy += ", or limit the gap between all groups." if j in coarse else "."
                for z in np.flatnonzero(harmed).tolist():
                    fall, most = float(was[z] - now[z]), float(falls[z])
                    rest = f"by at most {measure.short(most)}" if most > 0 else "not"
                    sentence = (
                        f"{INTERSECTION_FALLS}: {where}, mean {measure.name!r} falls from "
                        f"{measure.short(float(was[z]))} to {measure.short(float(now[z]))} in group {self.names[z]}, "
                        f"and {rest} in the groups that it is part of."
                    )
                    found.append(Harm(j, z, fall, (fall - most) / float(least[z]), sentence, remedy))
            if j not in coarse or large.sum() < 2:
                continue
            gaps = [float(np.ptp(means[large])) for means in (was, now)]
            if gaps[1] - gaps[0] < max(visible, 1e-300) or gaps[1] <= coarse[j] * (1.0 + ROUNDING):
                continue
            order = np.flatnonzero(large)[np.argsort(now[large])].tolist()
            ends = [f"{measure.short(float(now[z]))} in group {self.names[z]}" for z in (order[0], order[-1])]
            sentence = (
                f"{GAP_WIDENS}: {where}, that of mean {measure.name!r} goes from {measure.short(gaps[0])} to "
                f"{measure.short(gaps[1])} ({' and '.join(ends)})."
            )
            remedy = "Limit the gap between all groups too: what was asked compares each attribute by itself."
            found.append(Harm(j, None, gaps[1] - gaps[0], (gaps[1] - gaps[0]) / visible, sentence, remedy))
        return sorted(found, key=lambda harm: -harm.grave)

    def _falls_of_attributes(self, was: Floats, now: Floats, *weights: Floats) -> Floats:
        """By how much the mean falls at most of the groups, by one attribute each, that an intersection belongs to."""
        falls = np.full(len(was), -math.inf)
        for attribute in self.attributes:
            for union in unions_of(self.groups, self.attributes, attribute):
                own = [z for z in union.members if min(weight[z] for weight in weights) > 0]
                means = [
                    np.average(mean[own], weights=weight[own]) if own else math.nan
                    for mean, weight in zip((was, now), weights, strict=True)
                ]
                falls[own] = np.fmax(falls[own], means[0] - means[1])
        return falls


def harms_by_name(
    harms: Sequence[Harm], measures: Sequence[Measure], groups: Sequence[Any]
) -> tuple[dict[str, dict[Any, float]], dict[str, float]]:
    """By how much intersections fall, by measure and group; and by how much gaps between them widen, by measure."""
    falls: dict[str, dict[Any, float]] = {}
    for harm in harms:
        if harm.group is not None:
            falls.setdefault(measures[harm.j].name, {})[groups[harm.group]] = harm.size
    return falls, {measures[harm.j].name: harm.size for harm in harms if harm.group is None}


def harm_sentences(harms: Sequence[Harm] | None) -> list[str]:
    """A sentence on each harm, the worst first; of many the worst."""
    found = [harm.sentence for harm in harms or []]
    left = len(found) - HARMS
    return found if left <= 0 else [*found[:HARMS], f"So it is with {left:,} more; impact_ has all of them."]


def worst_harm(harms: Sequence[Harm] | None) -> list[str]:
    """A sentence on the worst, with the number of all, and a sentence on what to do about it."""
    if not harms:
        return []
    worst, count = harms[0], f" (the worst of {len(harms)}; impact_ has all)" if len(harms) > 1 else ""
    start, colon, rest = worst.sentence.partition(":")
    return [f"{start}{count}{colon}{rest} {worst.remedy}"]


def nothing_to_repair(
    measures: Sequence[Measure], gaps: Floats, allowed: Iterable[float], where: str
) -> list[str]:
    """One sentence if every gap that may be so large only (infinite: any) is no larger before anything is changed."""
    limited = [
        (c, gap, width) for c, gap, width in zip(measures, gaps, allowed, strict=True) if math.isfinite(width)
    ]
    if not limited or any(not gap <= width * (1 + ROUNDING) for _, gap, width in limited):
        return []
    each = ", ".join(
        f"the gap of {c.name!r} is {c.quantity(gap)}, at most the {c.quantity(width)} asked for"
        for c, gap, width in limited
    )
    return [f"Nothing to repair: {where}, {each}."]


class OutcomeLike(Protocol):
    """What some way of deciding does to people."""

    @property
    def loss(self) -> float:
        """Per person."""

    @property
    def gaps(self) -> Floats:
        """By measure."""

    @property
    def changed(self) -> Floats | None:
        """Share of every group whose decision is not the baseline's."""

    @property
    def gains(self) -> Floats | None:
        """Share of every group who get more than from the baseline's decision, by measure."""

    @property
    def loses(self) -> Floats | None:
        """And who get less."""


def three_points(
    measures: Sequence[Measure],
    groups: Sequence[str],
    loss_name: str,
    points: Mapping[str, OutcomeLike],
    reference: Reference,
) -> list[str]:
    """Tuning (baseline to unconstrained) and fairness (from there to the proposal) apart; then who gains and loses."""
    baseline, free, proposed = (points.get(name) for name in ("baseline", "unconstrained", "proposed"))
    if free is None or proposed is None:
        return []

    def gap(measure: Measure, point: OutcomeLike, j: int) -> str:
        most = max(float(one.gaps[j]) for one in (baseline or free, free, proposed))
        number = float(point.gaps[j])
        return measure.quantity(0.0 if number <= ROUNDING * most else number)

    def step(before: OutcomeLike, after: OutcomeLike) -> str:
        loss = f"{loss_words(loss_name)} {loss_text(loss_name, before.loss)} -> {loss_text(loss_name, after.loss)}"
        gaps = [
            f"gap of {c.name!r} {gap(c, before, j)} -> {gap(c, after, j)}"
            for j, c in enumerate(measures)
            if not c.aside
        ]
        return ", ".join([loss, *gaps])

    if baseline is None:
        return [
            f"There is no baseline. From the least loss without requirements to this policy: "
            f"{step(free, proposed)}."
        ]
    return [
        f"Tuning, from {reference.whole} to the best without requirements: {step(baseline, free)}"
        f"{_changed(free, groups)}.",
        f"Fairness, from there to this policy: {step(free, proposed)}{_changed(proposed, groups)}.",
        *who_gains(measures, groups, proposed, reference),
    ]


def _changed(point: OutcomeLike, groups: Sequence[str]) -> str:
    """How many decisions change, group by group."""
    if point.changed is None:
        return ""
    present = np.flatnonzero(~np.isnan(point.changed))
    groups, shares = [groups[z] for z in present.tolist()], point.changed[present].tolist()
    where = f"{min(shares):.2%} to {max(shares):.2%} of the {len(groups)} groups"
    if len(groups) <= GROUPS:
        where = ", ".join(
            f"{share:.2%} of group {group}" for group, share in zip(groups, shares, strict=True)
        )
    return f"; whose decision changes: {where}"


def who_gains(
    measures: Sequence[Measure], groups: Sequence[str], point: OutcomeLike, reference: Reference
) -> list[str]:
    """A sentence for every measure that people want more of: who gets more and who gets less."""
    sentences = []
    for j, measure in enumerate(measures):
        if not measure.wanted:
            continue
        if point.gains is None or point.loses is None or np.isnan(point.gains[:, j]).all():
            sentences.append(f"Who gains and who loses {measure.name!r} is not known.")
            continue
        shares = zip(groups, point.gains[:, j].tolist(), point.loses[:, j].tolist(), strict=True)
        each = [one for one in shares if not math.isnan(one[1])]
        which = ""
        if len(each) > GROUPS:
            which = f", of {len(each)} groups those {GROUPS} of whom most lose"
            each = sorted(each, key=lambda one: -one[2])[:GROUPS]
        listed = "; ".join(f"in group {group} {up:.2%} gain and {down:.2%} lose" for group, up, down in each)
        sentences.append(f"Compared with {reference.whole}, {measure.name!r}{which}: {listed}.")
    return sentences


def few_counted(
    measures: Sequence[Measure], groups: Sequence[str], before: Floats, after: Floats, where: str
) -> list[str]:
    """A sentence for every fraction that counts less than half as many people of some group as before."""
    sentences = []
    for j, k in fractions_of(measures):
        was, is_ = before[:, k], after[:, k]
        fewer = np.flatnonzero(is_ < FEW * was * (1 - ROUNDING)).tolist()
        if not fewer:
            continue
        measure, share = measures[j], measures[k]
        each = ", ".join(
            f"{100 * is_[z]:.3g} % instead of {100 * was[z]:.3g} % of group {groups[z]}"
            for z in fewer[:GROUPS]
        )
        sentences.append(
            f"{FEW_LEFT}: {where}, people {share.name} are {each}. Where that is not meant, add "
            f"a floor of '{share.name}' at its baseline beside what is asked of {measure.name!r}."
        )
    return sentences


def out_of_order(
    measures: Sequence[Measure], means: Floats, decisions: Sequence[Any], order: Sequence[Any]
) -> tuple[str, ...]:
    """A note where people have less of the one measure by the last decision than by the first; means are by decision.

    Of a criterion, and of what looks at the label, that says nothing of what people want.
    """
    own = measured(measures)
    one = measures[own[0]] if len(own) == 1 else None
    if one is None or one.looks_at_y or one.over or not one.wanted or one.family in CRITERIA:
        return ()
    worst, best = (float(means[list(decisions).index(order[end]), own[0]]) for end in (0, -1))
    if best >= worst - ROUNDING * abs(worst):
        return ()
    each = f"{one.quantity(best)} by {order[-1]!r}, {one.quantity(worst)} by {order[0]!r}"
    return (
        f"People have less of {one.name!r} by the decision that counts as the best than by the worst ({each} on "
        "average): decisions= lists the worst for the person first.",
    )
