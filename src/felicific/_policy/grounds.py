"""Grounds: why a policy of cells, or an individual one, decides so about a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from felicific._people.checks import encode_labels
from felicific._policy.explanation import (
    ALIKE,
    Counterfactual,
    Grounds,
    Person,
    Weighed,
    percent,
    probability_words,
    required,
)
from felicific._program.crowd import CHOOSES, LIKELY, Ledger, choose, fixed_decisions
from felicific._typing import Floats

if TYPE_CHECKING:
    from felicific._policy.cells import CellPolicy
    from felicific._policy.individual import IndividualPolicy, Seen


_NOBODY = (
    "Of the people on whom the policy was fitted, nobody is in this score bin: there it keeps to what the "
    "model decides, as far as its neighbours allow."
)


def grounds_of_cells(policy: CellPolicy, person: Person, without: Mapping[str, Floats]) -> Grounds:
    """The signal of a person, the cuts around it, and what other tables would do.

    ``without`` are the tables of policies that lack one requirement each.
    """
    k, signal, z = len(policy.classes), policy.signal, person.group or 0
    seen, label = None, None
    if person.scores.ndim == 1 and not signal.needs_proba:
        label = int(encode_labels(person.scores, policy.classes, "prediction", np.arange(1))[0])
    else:
        seen = policy.read(person.scores, np.arange(1))
    spread = signal.spread(seen, None if label is None else np.array([label]))
    shares = [(int(cell[0]), 1.0 if share is None else float(share[0])) for cell, share in spread]
    label_there = int(signal.baseline(k)[shares[0][0]])
    if signal.drawn and seen is not None:
        label_there = int(seen[0].argmax())
    likely = int(policy.label_decisions[label_there])

    def mixed(table: Floats) -> Floats:
        """The probabilities by another table."""
        rows = [table[z, cell] if share == 1.0 else share * table[z, cell] for cell, share in shares]
        return policy.rounded(np.asarray(sum(rows)))

    free = None if policy.unconstrained is None else policy.unconstrained.value
    lacking = {name: mixed(table) for name, table in without.items()}
    if not signal.ordered or seen is None:
        return Grounds(
            likely=likely,
            label=None if signal.drawn else label_there,
            words=_signal_words(policy, person, shares),
            unconstrained=None if free is None else Counterfactual(mixed(free)),
            without=lacking,
        )
    cell = shares[0][0]
    table = policy.rounded(policy.q[z])
    held = policy.mass[:, cell].sum() if person.group is None else policy.mass[z, cell]
    score = float(seen[0, 1] if k == 2 else seen[0, label_there])
    if signal.of_values:
        score = float(person.scores.ravel()[0])
    path = _path(policy, cell)
    return Grounds(
        likely=likely,
        label=label_there,
        score=score,
        cuts=list(_around(table, path, cell)),
        own_cuts=_cuts_along(table, path),
        words=[*_score_words(policy, person, score, label_there), *([] if held > 0 else [_NOBODY])],
        unconstrained=None
        if free is None
        else Counterfactual(mixed(free), _moved_from(table, policy.rounded(free[z]), path)),
        without=lacking,
    )


def _path(policy: CellPolicy, cell: int) -> list[tuple[int, float]]:
    """Cells along the score of this one that some score falls into, each with the score that is exceeded there.

    Of a decision function, with its own value that is exceeded; the lowest cell has none.
    """
    k = len(policy.classes)
    run = next(run for run in policy.signal.runs(k) if cell in run)
    ranges = policy.signal.ranges(k)
    values = dict(policy.signal.cuts_at())
    lows = [values.get(ranges[s][1], ranges[s][1]) for s in run]
    if values:
        lows[0] = -np.inf
    # Two cuts at one score, such as the model's own boundary, leave a cell that is no score's.
    return [(s, low) for s, low, after in zip(run, lows, [*lows[1:], np.inf], strict=True) if after > low]


def _around(table: Floats, path: list[tuple[int, float]], cell: int) -> Iterator[tuple[str, float, Floats]]:
    """The nearest cuts below and above, with the probabilities beyond."""
    place = [s for s, _ in path].index(cell)
    for i in range(place - 1, -1, -1):
        if _apart(table, path[i][0], cell):
            yield "below", path[i + 1][1], table[path[i][0]]
            break
    for s, low in path[place + 1 :]:
        if _apart(table, s, cell):
            yield "above", low, table[s]
            break


def _cuts_along(table: Floats, path: list[tuple[int, float]]) -> tuple[float, ...]:
    """All scores at which probabilities change."""
    rows = table[[s for s, _ in path]]
    changes = np.flatnonzero((np.abs(rows[1:] - rows[:-1]) > ALIKE).any(axis=1)) + 1
    return tuple(path[place][1] for place in changes.tolist())


def _moved_from(table: Floats, free: Floats, path: list[tuple[int, float]]) -> tuple[float, ...]:
    """The cuts of another table, if both are likely to decide alike about the lowest and the highest scores."""
    ends = [path[0][0], path[-1][0]]
    moved = (table[ends].argmax(axis=1) == free[ends].argmax(axis=1)).all()
    return _cuts_along(free, path) if moved else ()


def _apart(table: Floats, one: int, other: int) -> bool:
    return bool((np.abs(table[one] - table[other]) > ALIKE).any())


def _score_words(policy: CellPolicy, person: Person, score: float, label: int) -> list[str]:
    labels = policy.classes.tolist()
    where = "" if person.group is None else f", in group {policy.groups[person.group]!r}"
    if len(labels) == 2:
        what = "decision function" if policy.signal.of_values else "score"
        return [f"What decides is the {what} for {labels[1]!r}, which is {score:.6g}{where}."]
    return [
        f"What decides is that the model labels the person {labels[label]!r}, and the probability of that label, "
        f"which is {score:.6g}{where}."
    ]


def _signal_words(policy: CellPolicy, person: Person, shares: list[tuple[int, float]]) -> list[str]:
    """What decides, where no score does."""
    decisions, labels, z = policy.decisions.tolist(), policy.classes.tolist(), person.group or 0
    where = "" if person.group is None else f" in group {policy.groups[z]!r}"

    def named(cell: int) -> dict[Any, float]:
        return dict(zip(decisions, policy.q[z, cell].tolist(), strict=True))

    if not policy.signal.drawn:
        label = labels[shares[0][0]]
        return [
            f"What decides is the label that the model gives, {label!r}{where}, and no score: there is no cut."
        ]
    parts = [
        f"label {labels[cell]!r} ({percent(share)}) is decided {probability_words(named(cell))}"
        for cell, share in shares
        if share > 0
    ]
    return [
        f"What decides is a label that is drawn from the model's probabilities{where}: {'; '.join(parts)}.",
        "The probabilities move with every change of the probabilities: there is no cut.",
    ]


# ---------------------------------------------------------------------------------------------------------
# Why an individual policy decides so: what each decision is expected to cost, and what happiness takes off.


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
        words=_rule_words(policy, seen, rules),
        unconstrained=Counterfactual(_probabilities(policy.unrequired, seen)),
        without=_without_each(policy, seen),
    )


def _shares(policy: IndividualPolicy, seen: Seen) -> Floats:
    return np.asarray(policy.mixture.share[int(seen.group[0])])


def _probabilities(other: IndividualPolicy, seen: Seen) -> Floats:
    """What another policy of the same sight decides on the person."""
    return np.asarray(other.rounded(type(other).follow([other], seen)[0])[0])


def _without_each(policy: IndividualPolicy, seen: Seen) -> dict[str, Floats]:
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


def _rule_words(policy: IndividualPolicy, seen: Seen, rules: list[Weighed]) -> list[str]:
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
