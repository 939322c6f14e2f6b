"""The words of verdicts: the same on the page, in print, in notebooks and on the command line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from felicific._audit.names import clean, isolated, listed
from felicific._audit.quantity import PER_THOUSAND, SPACE, Quantity, count, counts, percent
from felicific._audit.result import Interval, MeasureAudit, RequirementAudit
from felicific._problem.change import MODEL, Reference
from felicific._problem.happiness import Measure

if TYPE_CHECKING:
    from felicific._audit.facts import Facts, Shift

#: What a certificate rests on that holds for all policies of a kind.
A_PRIORI = "a priori"

#: Most groups, and most measures, that a sentence spells out.
SPELLED = 3

HEADLINES = {
    ("leave", "same"): "Nothing changes.",
    ("leave", "met"): "Leave it as it is.",
    ("leave", "grows"): "Leave it as it is.",
    ("levels-down", "everybody"): "It shrinks the gap by leveling everybody down.",
    ("levels-down", "nobody gains"): "It shrinks the gap by leveling down. No group gains.",
}
BY_KIND = {
    "kept": "It keeps what was asked.",
    "missed": "It misses what was asked.",
    "unclear": "We cannot tell.",
    "certified": "It shrinks the gap, and that is certified.",
    "unpromised": "It shrinks the gap. Nothing is promised.",
}

#: The same beside the least loss without requirements, where there is no baseline to be left as it is.
HEADLINES_WITHOUT_BASELINE = {
    ("leave", "same"): "The requirements change nothing.",
    ("leave", "met"): "The least loss meets what was asked without being required to.",
    ("leave", "grows"): "The gap would be smaller without requirements.",
    ("levels-down", "everybody"): "The gap is smaller than without requirements by leveling everybody down.",
    ("levels-down", "nobody gains"): "The gap is smaller than without requirements, and no group gains.",
}
BY_KIND_WITHOUT_BASELINE = BY_KIND | {
    "certified": "The gap is smaller than without requirements, and that is certified.",
    "unpromised": "The gap is smaller than without requirements. Nothing is promised.",
}

OTHER_PEOPLE = "Look at people it was not fitted to: report on them."
FITTED = (
    "These are the people the policy was fitted to. On them the gap closes by construction. "
    "Test it on other people."
)
PARTLY = "On them the gap closes by construction. Test it on other people alone."
UNPAIRED = "Of these people only sums are known, and not what changes for each: whether the gap shrinks cannot be told."
UNLAWFUL = "For some purposes, in some places, that is unlawful. Ask first."
INFERS = "It does not see the group; it uses how likely each group is, given the rest. Some would call that a proxy."
SELECTED = (
    "Labels are known only of people who were selected. Of the others these numbers say nothing: "
    "say what is known of them (missing_labels)."
)
UNSTATED = (
    "Nobody said whether these are all people or only those whose label became known: say whether the labels are of "
    "all or of selected people."
)


def headline(kind: str, reason: str, reference: Reference = MODEL) -> str:
    """The verdict in one line."""
    if not reference.is_baseline:
        return HEADLINES_WITHOUT_BASELINE.get((kind, reason)) or BY_KIND_WITHOUT_BASELINE[kind]
    return HEADLINES.get((kind, reason)) or BY_KIND[kind]


def sentence(facts: Facts, kind: str, reason: str) -> str:
    """The same with numbers."""
    sure = f"with {sureness(facts.confidence)} confidence"
    closed, reference = facts.closed or list(facts.shifts), facts.reference
    match reason:
        case "same":
            everybody = f"Everybody is decided on as {reference.name}."
            nobody = f"None of these people gets another decision than {reference.name}."
            return everybody if facts.kept else nobody
        case "in-sample":
            return FITTED if facts.in_sample.startswith("These are") else f"{facts.in_sample} {PARTLY}"
        case "met":
            return _met(facts, sure)
        case "grows":
            growing = [shift for shift in closed if shift.grows]
            return f"This policy makes the gap larger: {_grows(growing, reference, named=len(closed) > 1)}."
        case "shown":
            return f"Shown {sure}: {listed([clean(row.words, 120) for row in facts.requirements[:SPELLED]])}."
        case "refuted" | "not shown":
            rows = [
                row for row in facts.requirements if row.refuted or (reason == "not shown" and not row.shown)
            ]
            chance = " Chance alone could do that." if reason == "not shown" else ""
            return missed(facts, (), rows) + chance
        case "unpaired":
            return UNPAIRED
        case "no gap":
            return (
                f"No gap was to be closed. {_goes(closed, reference)} on these people."
                if closed
                else "No gap was to be closed."
            )
        case "chance":
            return (
                f"{_goes(closed, reference)} on these people. Chance alone could do that: "
                f"{listed([*_changes(closed)])} {sure}."
            )
    shrinking = [shift for shift in closed if shift.shrinks]
    unclear = [shift for shift in closed if not shift.shrinks and not shift.kept]
    left = f" For {listed([shift.title for shift in unclear[:SPELLED]])} we cannot tell." if unclear else ""
    within = [shift.title for shift in closed if shift.kept and not shift.shrinks]
    left += f" For {listed(within[:SPELLED])} it stays within what was asked." if within else ""
    told = _goes(shrinking, reference, named=len(closed) > 1)
    if kind == "levels-down":
        return f"{told}.{left} {_per_person(facts, [s for s in shrinking if s.levels_down])}"
    if kind == "certified":
        promised = f"with {sureness(facts.promised_with)} confidence"
        return f"{told}, and is {listed([*_at_most(facts, closed)])} {promised}.{left}"
    return f"{told}.{left}"


def remedy(facts: Facts, kind: str, reason: str) -> str:
    """What to do about it; nothing where there is nothing to do."""
    if kind == "levels-down":
        if not facts.sees_group and not facts.infers_group:
            return "It may not see the group, so it can only level down. What that costs stands below."
        name = next(shift.measure.name for shift in facts.closed if shift.levels_down)
        level = " at its baseline" if facts.reference.is_baseline else ""
        return f"To close it without leveling down, fit again with a floor of {name!r}{level}."
    if reason == "in-sample":
        return OTHER_PEOPLE
    if kind == "unpromised":
        return _unpromised(facts)
    if reason == "chance":
        factors = [_factor(shift.change) for shift in facts.closed if shift.change is not None]
        more = min((factor for factor in factors if factor is not None), default=math.inf)
        if more < 50:
            return f"About {max(2, math.ceil(more)):.0f} times as many people would show it."
    return ""


def _unpromised(facts: Facts) -> str:
    """Why nothing is promised, and what to do about it."""
    if facts.promised_elsewhere:
        return "Another position was certified, and not this one."
    above = [shift for shift in facts.closed if shift.bound is not None and not shift.certified]
    if facts.promise and above:
        what = f"What is certified, at most {_bound(facts, above[0])}, is not less than {facts.reference.of('gap')}"
        other = "fit with a confidence of 0.95" if facts.promise == A_PRIORI else "fit for a smaller one"
        return f"{what}: {other}."
    return "To have it promised, fit with a confidence of 0.95 and a gap above 0."


def _factor(change: Interval) -> float | None:
    """How many times as many people would show a change, if it is as large as it looks."""
    half = change.high - change.estimate
    if change.estimate >= 0.0 or not 0.0 < half < math.inf:
        return None
    return float((half / change.estimate) ** 2)


def sureness(confidence: float) -> str:
    """A confidence in per cent."""
    decimals = 0 if abs(100 * confidence - round(100 * confidence)) < 1e-9 else 2
    return percent(confidence, decimals)


# ---------------------------------------------------------------------------------------------------------
# Parts of sentences


def _goes(shifts: Sequence[Shift], reference: Reference, *, named: bool = False) -> str:
    """From where to where gaps go; ``named`` where there are others."""
    by = "" if reference.is_baseline else f" {reference.name}"
    if len(shifts) == 1 and not named:
        one = shifts[0]
        texts = one.quantity.texts([one.before.estimate, one.after.estimate])
        gap = "The gap between all groups" if one.asked_otherwise else "The gap"
        alike = texts[0] == texts[1]
        return (
            f"{gap} stays at about {texts[0]}" if alike else f"{gap} goes from {texts[0]}{by} to {texts[1]}"
        )
    parts = []
    for shift in shifts[:SPELLED]:
        texts = shift.quantity.texts([shift.before.estimate, shift.after.estimate])
        alike = texts[0] == texts[1]
        parts.append(
            f"in {shift.title} stays at about {texts[0]}"
            if alike
            else f"in {shift.title} goes from {texts[0]}{by} to {texts[1]}"
        )
    more = len(shifts) - SPELLED
    return f"The gap {listed([*parts, f'{more} more move' if more > 1 else 'one more moves'] if more > 0 else parts)}"


def _grows(shifts: Sequence[Shift], reference: Reference, *, named: bool) -> str:
    several = named or len(shifts) > 1
    parts = [
        (f"in {shift.title} " if several else "")
        + f"{shift.quantity(shift.before.estimate)} {reference.name}, "
        f"{shift.quantity(shift.after.estimate)} {reference.then}"
        for shift in shifts[:SPELLED]
    ]
    return "; ".join(parts)


def grown(shifts: Sequence[Shift]) -> str:
    """Which gaps grow."""
    parts = [
        f"{shift.title} from {shift.quantity(shift.before.estimate)} to {shift.quantity(shift.after.estimate)}"
        for shift in shifts[:SPELLED]
    ]
    return f"On these people the gap grows: {listed(parts)}."


def _changes(shifts: Sequence[Shift]) -> Iterator[str]:
    for shift in shifts[:SPELLED]:
        assert shift.change is not None, "what is not paired cannot be told for that reason"
        span = shift.quantity.change_span(shift.change.low, shift.change.high)
        yield f"the change is {span}" if len(shifts) == 1 else f"the change in {shift.title} is {span}"


def _at_most(facts: Facts, shifts: Sequence[Shift]) -> Iterator[str]:
    for shift in shifts[:SPELLED]:
        most = f"at most {_bound(facts, shift)}"
        yield most if len(shifts) == 1 else f"{most} in {shift.title}"


def _bound(facts: Facts, shift: Shift) -> str:
    """What is certified: the gap that was asked for, or, for all policies of a kind, a number rounded up."""
    bound = float(shift.bound or 0.0)
    if facts.promise != A_PRIORI:
        return shift.quantity.given(bound)
    return shift.quantity(math.ceil(bound / shift.quantity.step) * shift.quantity.step)


def _met(facts: Facts, sure: str) -> str:
    asked = [shift for shift in facts.shifts if math.isfinite(shift.asked)]
    if len(asked) == 1 and not facts.requirements:
        one = asked[0]
        baseline, most = (one.quantity(number) for number in (one.before.estimate, one.before.high))
        return (
            f"{facts.reference.begins('gap')} is {baseline}, at most {most} {sure}. "
            f"You asked for at most {one.quantity.given(one.asked)}: there is nothing to repair."
        )
    return (
        f"All that was asked for is shown to hold {facts.reference.name}, {sure}: there is nothing to repair."
    )


def _each(facts: Facts, shift: Shift) -> str:
    """Changes of group means, of three groups at most: those that change most."""
    order = sorted(range(len(shift.means)), key=lambda z: -abs(_size(shift.means[z])))
    shown = sorted(order[:SPELLED])
    texts = [f"{facts.groups[z]} {shift.quantity.change(shift.means[z].estimate)}" for z in shown]
    more = len(shift.means) - len(shown)
    rest = [f"{more} more groups" if more > 1 else "one more group"] if more else []
    return listed([*texts, *rest])


def _size(mean: Interval) -> float:
    return 0.0 if math.isnan(mean.estimate) else mean.estimate


def _per_person(facts: Facts, shifts: Sequence[Shift]) -> str:
    several = len(shifts) > 1
    parts = [(f"in {shift.title} " if several else "") + _each(facts, shift) for shift in shifts[:SPELLED]]
    return f"Per person: {'; '.join(parts)}."


def taken(facts: Facts, shifts: Sequence[Shift]) -> str:
    """Whom something is taken from."""
    return (
        "; ".join(f"In {shift.title}, per person: {_each(facts, shift)}" for shift in shifts[:SPELLED]) + "."
    )


def missed(facts: Facts, shifts: Sequence[Shift], others: Sequence[RequirementAudit]) -> str:
    """What was asked and is not met."""
    several, sure, parts = len(shifts) > 1, f"with {sureness(facts.confidence)} confidence", []
    for shift in shifts[:SPELLED]:
        what = f"{shift.title}: asked" if several else "Asked"
        least = f", and at least {_apart_from_asked(shift, shift.after.low)} {sure}" if shift.exceeds else ""
        found = _apart_from_asked(shift, shift.after.estimate)
        parts.append(f"{what}: at most {shift.quantity.given(shift.asked)}. Found: {found}{least}.")
    for row in others[:SPELLED]:
        if row.statistic == "gap" and any(row.measure.name == shift.measure.name for shift in shifts):
            continue
        parts.append(f"Asked: {clean(row.words, 120)}. Found: {row.number(row.reached.estimate, 3)}.")
    return " ".join(parts)


def _apart_from_asked(shift: Shift, number: float) -> str:
    """A number that is more than was asked for, with as many digits as tell the two apart."""
    text = shift.quantity(number)
    same = text == shift.quantity(shift.asked)
    return Quantity.of(shift.measure.unit, (), [number])(number) if same else text


def flipped(facts: Facts, shift: Shift, ends: tuple[int, int], groups: tuple[int, int]) -> str:
    """That who was on top is now at the bottom; ``ends`` are their places among those compared."""
    top, bottom = ends
    one, other = (facts.groups[z] for z in groups)
    turned = f"{one} had more {shift.title} than {other}, and would have less"
    if not facts.reference.is_baseline:
        turned = f"{one} would have more {shift.title} than {other} {facts.reference.name}, and has less"
    return f"{turned}: {shift.quantity(shift.then[top])} and {shift.quantity(shift.then[bottom])}."


def tiny(facts: Facts, places: Sequence[int], few: int) -> str:
    """Which groups are tiny, and what the gap is without them."""
    text = few_people(facts.groups, facts.sizes, places, few)
    for shift in facts.closed[:1]:
        if shift.without is not None:
            # To three digits: the step is that of the tiny group, which is left out here.
            baseline, then = Quantity.of(shift.measure.unit, (), shift.without).texts(shift.without)
            where = f" in {shift.title}" if len(facts.closed) > 1 else ""
            before, after = facts.reference.name, facts.reference.then
            text += f" Without groups under {few}{where}: {baseline} {before}, {then} {after}."
    return text


def few_people(groups: Sequence[Any], sizes: Sequence[float], places: Sequence[int], few: int) -> str:
    """Which groups have few people."""
    shown = [
        f"{isolated(clean(groups[z]))} has {count(sizes[z])} {'person' if sizes[z] == 1 else 'people'}"
        for z in places[:SPELLED]
    ]
    more = len(places) - SPELLED
    rest = [f"{more} more groups have fewer than {few}"] if more > 0 else []
    return f"{listed([*shown, *rest])}: what so few show may be chance, and they alone may make the gap."


def below_majority(facts: Facts) -> str:
    """That deciding the same about everybody would be right more often."""
    right, all_alike = percent(facts.accuracy or 0.0, 1), percent(facts.majority or 0.0, 1)
    return f"{right} of the decisions are right; giving everybody the most common label would be right for {all_alike}."


def others(names: Iterable[str]) -> str:
    """Which other gaps grow."""
    found = list(names)
    more = [f"{len(found) - 5} more"] if len(found) > 5 else []
    return f"By other measures the groups move apart: {listed([*found[:5], *more])}."


def randomized(facts: Facts) -> str:
    """How many are decided on at random."""
    share = facts.randomized / facts.people if facts.people else 0.0
    how = percent(share, 0 if share >= 0.1 else 1 if share >= 0.01 else 2)
    return f"{count(facts.randomized)} of {count(facts.people)} people ({how}) are decided at random."


# ---------------------------------------------------------------------------------------------------------
# In print


def numbers(facts: Facts) -> list[tuple[str, str]]:
    """Gap, cost and people, one line each."""
    found = [] if facts.reference.is_baseline else [("compared", f"with {facts.reference.whole}")]
    for shift in facts.shifts[:SPELLED]:
        baseline, then = shift.quantity.texts([shift.before.estimate, shift.after.estimate])
        text = f"{baseline} -> {then}"
        if shift.change is not None:
            change = shift.quantity.change(shift.change.estimate)
            text += f"   change {change} ({shift.quantity.change_span(shift.change.low, shift.change.high)})"
        found.append((f"gap in {shift.title}", text))
    for row in facts.requirements[:SPELLED] if not facts.closed else ():
        estimate, low, high = (
            row.number(number, 3) for number in (row.reached.estimate, row.reached.low, row.reached.high)
        )
        found.append(("asked", f"{clean(row.words, 120)}: {estimate} ({low} to {high})"))
    if facts.cost is not None:
        found.append(("cost", _cost(facts)))
    if facts.promise and facts.closed and all(shift.certified for shift in facts.closed):
        bounds = listed([*_at_most(facts, facts.closed)])
        found.append(("promised", f"{bounds} with {sureness(facts.promised_with)} confidence"))
    randomized, people = counts([facts.randomized, facts.people])
    who = "who is better or worse off is not known"
    if not math.isnan(facts.better):
        better, worse = counts([facts.better, facts.worse])
        who = f"{better} better off, {worse} worse off"
    return [*found, ("people", f"{who}, {randomized} decided at random, of {people}")]


def _cost(facts: Facts) -> str:
    assert facts.cost is not None, "the loss is known"
    text = facts.cost_quantity.change(facts.cost.estimate) + cost_words(facts.cost_quantity)
    if facts.cost_best is None:
        return text
    bare = Quantity(facts.cost_quantity.unit, facts.cost_quantity.step).change(facts.cost_best.estimate)
    best = "the best such policy" if facts.best_is_free else "the best such policy that meets the rest"
    return f"{text} (against {best} {bare.split(SPACE)[0]})"


def cost_words(quantity: Quantity) -> str:
    """What follows a cost that has no unit."""
    return "" if quantity.unit == PER_THOUSAND else " of loss per person"


# ---------------------------------------------------------------------------------------------------------
# Audits


def audit_headline(kind: str, parts: Sequence[MeasureAudit]) -> str:
    """What an audit comes to in one line."""
    if kind == "within":
        return "Shown to be within what is allowed."
    if kind == "more":
        return "Shown to be more than is allowed."
    if kind == "unclear":
        return "We cannot tell."
    if len(parts) != 1:
        return f"{len(parts)} gaps were measured." if parts else "Means were measured."
    return f"The gap is {_gap_quantity(parts[0])(_estimate(parts[0]))}."


def audit_sentence(
    kind: str, parts: Sequence[MeasureAudit], tested: Sequence[MeasureAudit], confidence: float
) -> str:
    """The same with numbers."""
    sure = f"with {sureness(confidence)} confidence"
    shown = tested if tested else parts
    if kind == "measured" and len(shown) == 1:  # the headline says how large it is
        gap = shown[0].gap
        assert gap is not None, "it has one"
        return f"Of people like these it is {_gap_quantity(shown[0]).span(gap.low, gap.high)} {sure}."
    said = []
    for part in shown[:SPELLED]:
        assert part.gap is not None, "it has one"
        quantity = _gap_quantity(part)
        span = quantity.span(part.gap.low, part.gap.high)
        allowed = "" if part.test is None else f"; allowed are {quantity.given(part.test.at_most)}"
        where = f" in {title_of(part.measure)}" if len(shown) > 1 else ""
        said.append(f"the gap{where} is {quantity(part.gap.estimate)}, {span} {sure}{allowed}")
    more = len(shown) - SPELLED
    text = ". ".join(part[:1].upper() + part[1:] for part in said)
    return text + (f". And {more} more.") if more > 0 else text + ("." if said else "")


def one_look(allowed: Sequence[float], *, by_default: bool, of_amounts: bool = False) -> str:
    """What is said of tests of these gaps that are repeated; how often, says ``benchmarks/looks.py``.

    Amounts are not monitored, and it was not measured how often they are called more.
    """
    if not allowed:
        return ""
    begin = "This verdict is" if len(allowed) == 1 else "These verdicts are"
    if of_amounts:
        return f"{begin} for one look: audited again and again, a system at the allowed gap is called 'more' some day."
    how = "" if by_default else " by the defaults"
    # Where no gap is allowed, either of two groups may look better off by chance; else only the one that is.
    often = "three" if 0.0 in allowed else "six"
    return (
        f"{begin} for one look. A system exactly at the allowed gap that is audited weekly{how} is called 'more' in "
        f"about one year in {often}; to look again and again use monitor."
    )


def title_of(measure: Measure) -> str:
    """What sentences call a measure."""
    return isolated(clean(measure.title))


def _gap_quantity(part: MeasureAudit) -> Quantity:
    gap = part.gap
    assert gap is not None, "it has one"
    halves = [gap.high - gap.estimate, gap.estimate - gap.low]
    return Quantity.of(part.measure.unit, halves, [gap.estimate])


def _estimate(part: MeasureAudit) -> float:
    return math.nan if part.gap is None else part.gap.estimate
