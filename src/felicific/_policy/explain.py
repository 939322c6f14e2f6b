"""Why a policy decides on one person as it does: the decision, the draw, the cuts, and who pays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from felicific._policy.explanation import (
    ALIKE,
    Counterfactual,
    Cut,
    Draw,
    Explanation,
    Grounds,
    Paid,
    Person,
    differ,
    idle,
    percent,
    probability_words,
    required,
)
from felicific._policy.lottery import SEEDED, cumulate, faces_lottery, uniforms
from felicific._problem.change import Reference, baseline_words
from felicific._problem.exploration import JUST, keeps
from felicific._tables.memory import take_rows
from felicific._typing import Floats
from felicific.exceptions import DataError

if TYPE_CHECKING:
    from felicific._policy.policy import Policy


def explain_person(
    policy: Policy,
    person: Person,
    key: str | Callable[[], str] | None,
    *,
    baseline: object = None,
    by_model: bool = False,
    named: bool = True,
    without: Mapping[str, Floats] | None = None,
) -> Explanation:
    """Why a policy decides on a person as it does.

    ``key`` is the text that the lottery hashes, or finds it once it is needed; it was ``named``, or is the row's
    content. ``baseline`` is decided ``by_model`` if nobody gave another; ``without`` are
    the tables of policies that lack one requirement, by its name in prices.
    """
    probabilities = probabilities_of_all(policy, person)
    own = probabilities[0 if person.group is None else person.group]
    grounds = policy.grounds(person, without or {})
    decisions, labels = policy.decisions.tolist(), policy.classes.tolist()
    drawn = bool(faces_lottery(own[None, :])[0])
    text = (key() if callable(key) else key) if drawn else None
    number = None if text is None else float(uniforms(policy.salt, [text])[0])
    place = grounds.likely if baseline is None else _position(baseline, decisions)
    now = None if place < 0 else place  # nobody said it, and the model's label is no decision
    taken = _taken(own, number)
    draw = None
    if number is not None:
        draw = Draw(number, _limits(own, decisions), text if named else None)
    others = {} if person.group is None else dict(zip(policy.groups, probabilities, strict=True))
    nearest = sorted(grounds.cuts, key=lambda cut: abs(cut[1] - float(grounds.score or 0.0)))
    found = Explanation(
        decision=None if taken is None else decisions[taken],
        probabilities=_named(own, decisions),
        baseline=None if now is None else decisions[now],
        kind=policy.kind,
        group=None if person.group is None else policy.groups[person.group],
        label=None if grounds.label is None else labels[grounds.label],
        score=grounds.score,
        cuts=tuple(
            Cut(
                side,
                at,
                abs(float(grounds.score or 0.0) - at),
                _named(beyond, decisions),
                None if (d := _taken(beyond, number)) is None else decisions[d],
            )
            for side, at, beyond in nearest
        ),
        weighed=tuple(grounds.weighed),
        draw=draw,
        otherwise={group: _named(q, decisions) for group, q in others.items() if differ(q, own)},
        unconstrained=None
        if grounds.unconstrained is None
        else _named(grounds.unconstrained.probabilities, decisions),
        requirements=tuple(_paid(policy, grounds, own)),
    )
    told = Words(policy, person, grounds, found, own, now)
    return replace(
        found, sentences=tuple(told.sentences(baseline_given=not (baseline is None or by_model), keyed=named))
    )


def probabilities_of_all(policy: Policy, person: Person) -> Floats:
    """The probabilities of the person in every group, everything else being as it is.

    Once, where the group is not seen.
    """
    if person.group is None:
        return policy.rounded(policy._mixed(person.scores, None, person.x, person.group_proba))
    rows = np.zeros(len(policy.groups), dtype=np.intp)
    x = None if person.x is None else take_rows(person.x, rows)
    return policy.rounded(policy._mixed(person.scores[rows], np.arange(len(rows)), x, None))


def _named(probabilities: Floats, decisions: Sequence[Any]) -> dict[Any, float]:
    return dict(zip(decisions, probabilities.tolist(), strict=True))


def _taken(probabilities: Floats, number: float | None) -> int | None:
    """Position of what is decided; None where a draw is not drawn."""
    if not faces_lottery(probabilities[None, :])[0]:
        return int(probabilities.argmax())
    return None if number is None else int((number >= cumulate(probabilities[None, :])[0, :-1]).sum())


def _limits(probabilities: Floats, decisions: Sequence[Any]) -> dict[Any, tuple[float, float]]:
    """From which number on, up to which, each possible decision is drawn."""
    ends = cumulate(probabilities[None, :])[0].tolist()
    starts = [0.0, *ends[:-1]]
    return {decisions[d]: (starts[d], ends[d]) for d in np.flatnonzero(probabilities > 0).tolist()}


def _position(baseline: object, decisions: Sequence[Any]) -> int:
    """Position of the baseline."""
    value = baseline.item() if isinstance(baseline, np.generic) else baseline
    for position, decision in enumerate(decisions):
        if decision == value and isinstance(decision, str) == isinstance(value, str):
            return position
    raise DataError(
        f"baseline is {baseline!r}, and the decisions are {', '.join(map(repr, decisions))}.",
        "Pass what the existing system decides on this person, or leave baseline= out.",
    )


def _paid(policy: Policy, grounds: Grounds, own: Floats) -> list[Paid]:
    """Every requirement, its price, and whether it changes anything for the person."""
    free, without, known = grounds.unconstrained, grounds.without, required(policy)
    differs = free is not None and differ(free.probabilities, own)
    prices = {words: policy.prices.get(name) for words, (name, _) in known.items()}
    unmoved = idle(policy)
    live = [words for words in known if words not in unmoved]
    found = []
    for words, (name, _) in known.items():
        changes = differ(without[name], own) if name in without else None
        if free is not None and words in unmoved:
            changes = False
        elif free is not None and changes is None and (len(live) == 1 or not differs):
            changes = differs
        found.append(Paid(words, prices[words], changes))
    return found


# ---------------------------------------------------------------------------------------------------------
# The sentences of an explanation.


#: How many groups a sentence names.
GROUPS = 6


def _listed(requirements: Iterable[Paid]) -> str:
    return "; ".join(one.words for one in requirements)


@dataclass(frozen=True, eq=False)
class Words:
    """The sentences of what was ``found`` of one person.

    ``own`` are the person's probabilities, and ``now`` is the position of the baseline.
    """

    policy: Policy
    person: Person
    grounds: Grounds
    found: Explanation
    own: Floats
    now: int | None

    def sentences(self, *, baseline_given: bool, keyed: bool) -> list[str]:
        """All of them; ``baseline_given`` if somebody named the baseline, ``keyed`` if who the person is."""
        return [
            *self._decided(baseline_given),
            *self._best(baseline_words(baseline_given)),
            *self.grounds.words,
            *self._cuts(),
            *self._draw(keyed),
            *self._explored(),
            *self._group(),
            *self._requirements(),
            *self._not_compared(),
        ]

    def _decided(self, baseline_given: bool) -> list[str]:
        found = self.found
        now = f"{baseline_words(baseline_given).begins('decision')}: {found.baseline!r}"
        if self.now is None:
            now = "There is no baseline"
        draw = sum(p > 0 for p in found.probabilities.values()) > 1
        if not draw:
            first = f"Decision: {found.decision!r}."
        elif found.decision is None:
            words = probability_words(found.probabilities)
            first = f"Decision: at random, {words}. No key says who the person is, so nothing is drawn."
        else:
            first = f"Decision: {found.decision!r}, at random: {probability_words(found.probabilities)}."
        same = found.decision is not None and found.decision == found.baseline
        ending = ", the same" if same else ", which the policy changes"
        ending = "" if found.decision is None or self.now is None else ending
        rounded = []
        if not self.policy.randomize:
            rounded = [
                "This policy does not randomize: of several possible decisions it takes the most probable."
            ]
        return [first, f"{now}{ending}.", *rounded]

    def _best(self, reference: Reference) -> list[str]:
        """Whether the person gains or loses compared with the baseline."""
        best = self.policy.best
        chance, before = float(self.own[best]), float(self.now == best)
        if self.now is None or abs(chance - before) <= ALIKE:
            return []
        how = "gains" if chance > before else "loses"
        what = f"the best decision {self.policy.decisions.tolist()[best]!r}"
        return [
            f"Compared with {reference.of('decision')} this person {how}: {what} has probability {percent(chance)} "
            f"here, and {percent(before)} {reference.name}."
        ]

    def _cuts(self) -> list[str]:
        """How far away, and what is beyond."""
        found = self.found
        told = []
        for cut in found.cuts:
            side, where = ("above", "At that or less") if cut.side == "below" else ("below", "Above that")
            far = (
                f"{cut.distance:.6g} {side} the cut at {cut.at:.6g}"
                if cut.distance
                else f"on the cut at {cut.at:.6g}"
            )
            told.append(
                f"It is {far}. {where}, the decision is {probability_words(cut.probabilities)}{self._by_draw(cut)}."
            )
        if found.score is not None and not found.cuts and found.kind == "score":
            of = "" if len(found.probabilities) == 2 else " of this label"
            told.append(f"There is no cut: any {self._what}{of} is decided so{self._in_group()}.")
        return told

    @staticmethod
    def _by_draw(cut: Cut) -> str:
        drawn = sum(p > 0 for p in cut.probabilities.values()) > 1
        return f", and by the same draw {cut.decision!r}" if drawn and cut.decision is not None else ""

    @property
    def _what(self) -> str:
        """What decides along a line."""
        return "value of the decision function" if self.policy.of_values else "score"

    def _in_group(self) -> str:
        return "" if self.person.group is None else f" in group {self.found.group!r}"

    def _draw(self, keyed: bool) -> list[str]:
        draw = self.found.draw
        if draw is None:
            return []
        ranges = []
        for decision, (low, high) in draw.limits.items():
            sides = [f"from {low:.6g} on"] if high >= 1.0 else [f"from {low:.6g} to below {high:.6g}"]
            ranges.append(f"{sides[0] if low > 0.0 else f'below {high:.6g}'} it means {decision!r}")
        whose = f"of the key {draw.key!r}" if keyed else "of this row's content, as no key was given,"
        told = [f"The draw {whose} is {draw.number:.6f}, the same every time: {', '.join(ranges)}."]
        if self.policy.salt.startswith(SEEDED):
            told.append(
                "A seed makes the draws of this policy, so whoever tries some seeds can know them beforehand."
            )
        return told

    def _explored(self) -> list[str]:
        """Chances that people keep, where that is all the chance that this person has."""
        told = []
        binary = self.found.score is not None and len(self.policy.classes) == 2
        score = np.array([self.found.score]) if binary else None
        group = np.array([0 if self.person.group is None else self.person.group])
        for one in self.policy.explore:
            chance = one.chance
            if chance.scores is not None and score is None:
                continue
            if keeps(chance, score, group)[0] and self.own[chance.decision] <= chance.at_least + JUST:
                decision = self.policy.decisions.tolist()[chance.decision]
                told.append(
                    f"All the chance that this person has of {decision!r} is the one that people keep: {chance.words}."
                )
        return told

    def _group(self) -> list[str]:
        policy, found = self.policy, self.found
        if self.person.group is None:
            if policy.infers_group and self.person.group_proba is not None:
                chances = np.asarray(self.person.group_proba)[0]
                held = sorted(zip(policy.groups, chances.tolist(), strict=True), key=lambda one: -one[1])
                likely = ", ".join(f"{group!r} {percent(p)}" for group, p in held[:GROUPS])
                return [f"The policy does not see the group and infers it: this person is of {likely}."]
            return ["The policy does not see the group."]
        if not found.otherwise:
            return [
                "The group makes no difference to this person: with all else as it is, every group is decided so."
            ]
        by_proba: dict[str, list[Any]] = {}
        for group, probabilities in found.otherwise.items():
            by_proba.setdefault(probability_words(probabilities), []).append(group)
        parts = []
        for words, groups in by_proba.items():
            names = ", ".join(repr(group) for group in groups[:GROUPS])
            more = f" and {len(groups) - GROUPS} more" if len(groups) > GROUPS else ""
            parts.append(f"in {'group' if len(groups) == 1 else 'groups'} {names}{more} it would be {words}")
        alike = f"with the same {self._what}" if not policy.sees_x else "with all else as it is"
        if not policy.needs_proba:
            alike = "with the same label"
        return [f"The group matters to this person: {alike}, {'; '.join(parts)}."]

    def _requirements(self) -> list[str]:
        """Which requirement pays for the difference."""
        found, free = self.found, self.grounds.unconstrained
        if not found.requirements:
            return ["Nothing is required of this policy: it is the best for the loss."]
        if free is None or found.unconstrained is None:
            return [
                "What would be decided without requirements is not kept in this policy, so it is not known whether one "
                f"of them makes a difference to this person. Required: {_listed(found.requirements)}."
            ]
        by = "the loss alone" if self.policy.sees_x else "the best policy of this kind"
        pays = [one for one in found.requirements if one.changes]
        if not differ(free.probabilities, self.own):
            return self._unmoved(by, pays, free)
        told = [
            f"Without requirements, {by} would decide {probability_words(found.unconstrained)}.{self._favoured(free)}"
        ]
        costly = [one for one in found.requirements if one.price is None or one.price > 0]
        unmoved = idle(self.policy)
        live = [one for one in found.requirements if one.words not in unmoved]
        moves = self._moves(free)
        # Beside others nobody knows that it was this one that moved the cuts.
        alone = len(pays) == 1 == len(live)
        moved = f" It moves {moves}." if moves and alone else ""
        if not costly:
            told.append(
                f"No requirement costs any loss: of equally good policies this one meets {_listed(found.requirements)}."
            )
        elif len(pays) == 1:
            told.append(f"What makes the difference is one requirement: {pays[0].words}.{moved}")
        elif pays:
            told.append(f"Each of these requirements makes a difference: {_listed(pays)}.")
        elif all(one.changes is False for one in live):
            told.append(f"No requirement makes the difference alone; together these do: {_listed(live)}.")
        else:
            told.append(
                f"What makes the difference is among these requirements: {_listed(live)}. Which of them it is, this "
                "policy does not keep."
            )
        if moves and not alone:
            told.append(f"Together the requirements move {moves}.")
        costs = [one for one in pays or costly if one.price]
        return told + [self._price(one, alone=len(costs) == 1 == len(pays)) for one in costs]

    def _unmoved(self, by: str, pays: list[Paid], free: Counterfactual) -> list[str]:
        """What is said where the policy without requirements does the same to this person."""
        told = [
            f"What is required makes no difference to this person: without it {by} would decide the same."
        ]
        if pays:
            told.append(f"Without one of these alone it would be otherwise: {_listed(pays)}.")
        if self.now is not None and float(self.own[self.now]) < 1.0 - ALIKE:
            told.append("The rest of the change is for the loss.")
        moves = self._moves(free)
        return told + ([f"It moves {moves}, and not past this {self._what}."] if moves else [])

    def _favoured(self, free: Counterfactual) -> str:
        """Who pays: this person, or others for this person."""
        best = self.policy.best
        chance, before = float(self.own[best]), float(free.probabilities[best])
        if abs(chance - before) <= ALIKE:
            return ""
        return f" By what is required this person {'gains' if chance > before else 'loses'}."

    def _moves(self, free: Counterfactual) -> str:
        """From where to where it moves the cuts of the group, along the score of two classes."""
        before, after = free.cuts, self.grounds.own_cuts
        if len(self.policy.classes) != 2 or self.found.score is None or before == after:
            return ""
        if not 0 < len(before) <= 3 or not 0 < len(after) <= 3:
            return ""
        whose = "" if self.person.group is None else f" of group {self.found.group!r}"
        several = "s" if max(len(before), len(after)) > 1 else ""
        was, is_ = (" and ".join(f"{cut:.6g}" for cut in cuts) for cuts in (before, after))
        return f"the cut{several}{whose} from {was} to {is_}"

    def _price(self, one: Paid, *, alone: bool) -> str:
        name, known = required(self.policy)[one.words]
        units = {self.policy.measures[j].unit for j in known} if name in self.policy.basis.allowed else set()
        unit, price = next(iter(units), "") or "unit", one.price or 0.0
        if unit == "share":
            unit, price = "point", price / 100.0
        included = ", what changes cost included" if self.policy.change_cost else ""
        which = "Its price" if alone else f"The price of the requirement {one.words}"
        return (
            f"{which} is {price:.4g} of loss per person for each {unit} by which it is tightened{included}."
        )

    def _not_compared(self) -> list[str]:
        """Gaps and requirements that do not count the person's group."""
        if self.person.group is None:
            return []
        return [
            f"Group {self.found.group!r} is not compared by what is required of {words}."
            for words, left_out in self.policy.not_constrained.items()
            if self.found.group in left_out
        ]
