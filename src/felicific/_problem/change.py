"""What another way of deciding does, in words, and what it is compared with.

Tuning and fairness apart, who gains and who loses, that every group loses by it, or that there was nothing to repair.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from felicific._problem.criteria import CRITERIA
from felicific._problem.happiness import Measure, fractions_of, measured
from felicific._problem.loss import loss_text, loss_words
from felicific._typing import Floats

#: How the worst of it begins.
EVERY_GROUP_LOSES = "Every group loses"
FEW_LEFT = "Few are left to be compared"

#: Most groups whose means are spelled out.
GROUPS = 4

#: Fewer people than this share of before are few.
FEW = 0.5

#: A fall of this relative size is not worth a word, and an excess of a gap may be nothing but rounding.
NEGLIGIBLE, ROUNDING = 1e-5, 1e-9


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
    """Whether the mean falls in every group, of something that people want more of."""
    fall, least = _change(after, before)
    return measure.wanted and bool((fall > least).all())


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
    """Whether no group's mean rises and that of some falls, of something that people want more of."""
    change, least = _change(before, after)
    return measure.wanted and bool((change <= least).all() and (change < -least).any())


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
