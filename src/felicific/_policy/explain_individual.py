"""Why an individual policy decides so: what each decision is expected to cost, and what happiness takes off."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from felicific._policy.explanation import Weighed
from felicific._policy.grounds import Counterfactual, Grounds, Person, percent, required
from felicific._program.crowd import CHOOSES, LIKELY, Ledger, choose, fixed_decisions
from felicific._typing import Floats

if TYPE_CHECKING:
    from felicific._policy.individual import IndividualPolicy, Seen


def grounds_of_individual(policy: IndividualPolicy, person: Person) -> Grounds:
    """What every rule that the policy mixes makes of a person, and what it would without the prices of a measure."""
    codes = None if person.group is None else np.array([person.group])
    seen = policy.look(person.scores, codes, person.x, person.group_proba)
    rules = [_weighed(policy, seen, m) for m in np.flatnonzero(_shares(policy, seen)).tolist()]
    likely = int(seen.likely[0])
    return Grounds(
        likely=likely,
        label=None if policy.listed else likely,
        score=None if seen.score is None else float(seen.score[0]),
        weighed=rules,
        words=_words(policy, seen, rules),
        unconstrained=Counterfactual(_probabilities(policy.unrequired, seen)),
        without=_without(policy, seen),
    )


def _shares(policy: IndividualPolicy, seen: Seen) -> Floats:
    return np.asarray(policy.mixture.share[int(seen.group[0])])


def _probabilities(other: IndividualPolicy, seen: Seen) -> Floats:
    """What another policy of the same sight decides on the person."""
    return np.asarray(other.rounded(type(other).follow([other], seen)[0])[0])


def _without(policy: IndividualPolicy, seen: Seen) -> dict[str, Floats]:
    """The chances without the prices of what one requirement speaks of; a rule left without any goes by the loss.

    Not of several that speak of the same, whose prices are one; and of none but chances where somebody follows a rule
    that decides alike about everybody, as no price is behind it.
    """
    found, mixture, asked = {}, policy.mixture, required(policy)
    alike = bool((mixture.fixed[_shares(policy, seen) > 0] != CHOOSES).any())
    costly = {name: known for name, known in asked.values() if policy.prices.get(name, np.inf) > 0}
    for name, known in asked.values():
        if not known:  # a chance that people keep
            kept = tuple(one for one in policy.explore if one.chance.words != name)
            found[name] = _probabilities(replace(policy, explore=kept), seen)
        elif not alike and not any(known & others for other, others in costly.items() if other != name):
            kappa = mixture.kappa.copy()
            kappa[:, :, sorted(known)] = 0.0
            alpha = np.where(kappa.any(axis=(1, 2)), mixture.alpha, 1.0)
            found[name] = _probabilities(
                replace(policy, mixture=replace(mixture, kappa=kappa, alpha=alpha)), seen
            )
    return found


def _weighed(policy: IndividualPolicy, seen: Seen, m: int) -> Weighed:
    """One rule of the mixture."""
    decisions, mixture, z = policy.decisions.tolist(), policy.mixture, int(seen.group[0])
    share, fixed, alpha = float(mixture.share[z, m]), int(mixture.fixed[m]), float(mixture.alpha[m])
    if fixed != CHOOSES:
        return Weighed(share, decisions[int(fixed_decisions(fixed, seen.likely)[0])])
    kappa = mixture.kappa[m, z : z + 1] if policy.sees_group else mixture.kappa[m]
    ledger = seen.ledger
    chosen = int(choose(alpha, kappa, ledger.cost, ledger.value)[0])
    gains = (kappa * ledger.value[0]).sum(axis=(1, 2))
    total = alpha * ledger.cost[0] - gains
    return Weighed(
        share,
        decisions[chosen],
        max(float(np.delete(total, chosen).min() - total[chosen]), 0.0),
        _by_decision(decisions, alpha * ledger.cost[0]),
        {
            measure.name: _by_decision(decisions, (kappa[:, j] * _happiness(policy, ledger, j)).sum(axis=1))
            for j, measure in enumerate(policy.measures)
            if kappa[:, j].any()
        },
        _by_decision(decisions, total - float((kappa * policy.origin * ledger.among[0]).sum())),
    )


def _happiness(policy: IndividualPolicy, ledger: Ledger, j: int) -> Floats:
    """Expected happiness of every decision, of shape (decisions, groups), in the unit of the measure."""
    return np.asarray(ledger.value[0, :, :, j] + policy.origin[j] * ledger.among[0, :, j])


def _by_decision(decisions: list[Any], numbers: Floats) -> dict[Any, float]:
    return dict(zip(decisions, numbers.tolist(), strict=True))


def _words(policy: IndividualPolicy, seen: Seen, rules: list[Weighed]) -> list[str]:
    """What decides: one sentence, and one or two for every rule."""
    where = "" if not policy.sees_group else f" in group {policy.groups[int(seen.group[0])]!r}"
    told = [
        f"What decides is all of the person's row and the model's probabilities{where}, and no score alone."
    ]
    fixed = policy.mixture.fixed[np.flatnonzero(_shares(policy, seen))].tolist()
    for rule, how in zip(rules, fixed, strict=True):
        often = "" if rule.share == 1.0 else f"With probability {percent(rule.share)} this rule counts: "
        if how != CHOOSES:
            whom = "what the model finds likeliest" if how == LIKELY else "the same for everybody"
            told.append(f"{often}{'the' if often else 'The'} decision is {rule.decision!r}, {whom}.")
            continue
        told.append(f"{often}{_compared(rule)}")
    return told


def _compared(rule: Weighed) -> str:
    """The least total, the next best, and the terms of both."""
    others = sorted((d for d in rule.total if d != rule.decision), key=lambda d: rule.total[d])

    def terms(decision: object) -> str:
        parts = [f"expected loss {rule.loss[decision]:.6g}"]
        for name, term in rule.terms.items():
            sign = "less" if term[decision] >= 0 else "plus"
            parts.append(f"{sign} {abs(term[decision]):.6g} for {name!r}")
        total = f" is {rule.total[decision]:.6g}" if rule.terms else ""
        return f"{' '.join(parts)}{total}"

    next_best = others[0]
    return (
        f"{rule.decision!r} has the least ({terms(rule.decision)}); {next_best!r} is next ({terms(next_best)}), "
        f"{rule.margin:.6g} more."
    )
