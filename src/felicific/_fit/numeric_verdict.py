"""The verdict on a policy of amounts, in words: who gets more on average and who less, and what that costs."""

from __future__ import annotations

import math
from dataclasses import replace

from felicific._audit.flags import Flag
from felicific._audit.names import listed
from felicific._audit.quantity import counts
from felicific._audit.verdict import Verdict, verdict_of
from felicific._audit.words_of_verdicts import SPELLED, sureness
from felicific._fit.numeric_assessment import AmountAssessment
from felicific._policy.words import loss_title
from felicific._problem.numeric import is_plain_amount


def verdict_on_amounts(made: AmountAssessment) -> Verdict:
    """What a policy of amounts comes to, with who gets more and who less, and what it costs."""
    facts = made.facts
    found = verdict_of(facts)
    flags = sorted([*found.flags, *_all_one_way(made)], key=lambda flag: -flag.level)
    numbers = [line for line in found.numbers if line[0] not in ("cost", "people")]
    more, less, randomized, people = counts([facts.better, facts.worse, facts.randomized, facts.people])
    who = f"{more} get more than from the baseline, {less} less, {randomized} at random, of {people}"
    costs = [
        (title, f"{was} -> {then}   change {change} ({span})")
        for title, was, then, change, span in _costs(made)
    ]
    told = found.sentence
    if found.reason not in ("same", "in-sample"):
        told = " ".join([found.sentence, *_who_and_cost(made, found)])
    return replace(found, sentence=told, flags=tuple(flags), numbers=(*numbers, *costs, ("people", who)))


def _costs(made: AmountAssessment) -> list[tuple[str, str, str, str, str]]:
    """What it costs, of a squared error by its root: what that is called, before, then, its change and limits."""
    if made.cost is None or made.before.loss is None or made.after.loss is None:
        return []
    quantity, change, title = made.cost_quantity, made.cost, loss_title(made.policy.loss_name)
    ends = [made.before.loss.estimate, made.after.loss.estimate]
    if made.root_cost is not None:
        quantity, change, title = made.root_quantity, made.root_cost, "root mean squared error"
        ends = [math.sqrt(end) for end in ends]
    span = quantity.change_span(change.low, change.high)
    return [(title, *quantity.texts(ends), quantity.change(change.estimate), span)]  # type: ignore[list-item]  # two ends


def _who_and_cost(made: AmountAssessment, verdict: Verdict) -> list[str]:
    """How sure it is that gaps change, who gets more on average and who less, and what that costs; in sentences."""
    found, sure = [], f"with {sureness(made.confidence)} confidence"
    shown = [] if verdict.reason == "chance" else [j for j in made.closed if made.gap_changes[j] is not None]
    for j in shown[:1] if len(shown) == 1 else []:
        change = made.gap_changes[j]
        assert change is not None, "it is known"
        span = made.quantities[j].change_span(change.low, change.high)
        found.append(f"For people like these the change is {span} {sure}.")
    amount = next((j for j, part in enumerate(made.problem.happiness) if is_plain_amount(part)), None)
    # Who is taken from is said already.
    if amount is not None and not (verdict.kind == "levels-down" and amount in made.closed):
        means = made.mean_changes[amount]
        order = sorted(range(len(means)), key=lambda z: -abs(means[z].estimate) if means[z].n else 0.0)
        each = [
            f"{made.group_names[z]} {made.quantities[amount].change(means[z].estimate)}"
            for z in sorted(order[:SPELLED])
        ]
        left = len(means) - SPELLED
        rest = [f"{left} more groups" if left > 1 else "one more group"] if left > 0 else []
        found.append(f"On average beside the baseline: {listed([*each, *rest])}.")
    for title, was, then, _, span in _costs(made):
        found.append(f"The {title} goes from {was} to {then}, a change of {span}.")
    return found


def _all_one_way(made: AmountAssessment) -> list[Flag]:
    """That all groups get less, or more, where nobody said what people want."""
    amounts = [j for j in range(len(made.measures)) if made.is_amount(j)]
    for j in amounts:
        changes = [made.mean_changes[j][z] for z in range(len(made.group_names))]
        if len(changes) > 1 and all(change.high < 0.0 for change in changes):
            each = listed(
                f"{made.group_names[z]} {made.quantities[j].change(change.estimate)}"
                for z, change in enumerate(changes[:3])
            )
            told = f"Mean amounts: {each}. If people want more, this levels all of them down."
            return [Flag("every-group-less", 2, "Every group gets less", told)]
    return []
