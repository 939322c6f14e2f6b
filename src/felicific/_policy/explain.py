"""Why a policy decides on one person as it does: the decision, the draw, the cuts, and who pays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from felicific._policy.explain_words import Words
from felicific._policy.explanation import Cut, Draw, Explanation, Paid
from felicific._policy.grounds import Grounds, Person, differ, idle, required
from felicific._policy.lottery import cumulate, faces_lottery, uniforms
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
