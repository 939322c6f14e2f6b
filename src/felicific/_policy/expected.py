"""What to expect of a policy on people it was not fitted on, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from felicific._problem.rows import Goal
from felicific._problem.unions import compared_groups
from felicific._program.evidence import Evidence
from felicific._typing import Floats, Lazy
from felicific.exceptions import DataError, GroupError

if TYPE_CHECKING:
    from felicific._policy.policy import Policy

#: How many new people: altogether, or of every group; None for as many as were fitted.
People = float | Mapping[Any, float] | None

#: Who asks for what chance alone shows gets a policy whose values vary a little more or less.
ABOUT = 1.05

#: Of more groups than this chance is not simulated for what is printed.
SIMULATED = 100

#: Means are hardly known from fewer people of a group.
FEW = 100


def expected_gaps(policy: Policy, people: People = None) -> dict[str, float]:
    """See :meth:`felicific.Policy.expected_gaps`."""
    each = [_plain(policy, j) for j in range(len(policy.measures))]
    found = _expected(policy, each, people)
    return {policy.measures[asked.j].name: gap for asked, gap in zip(each, found, strict=True)}


def expected_reached(policy: Policy, people: People = None) -> dict[str, float]:
    """See :meth:`felicific.Policy.expected_reached`."""
    each = _comparisons(policy)
    return {asked.words: gap for asked, gap in zip(each, _expected(policy, each, people), strict=True)}


def _plain(policy: Policy, j: int) -> Goal:
    """The gap of a measure between the groups that it compares."""
    measure = policy.measures[j]
    rows = compared_groups(policy.left_out, measure.name, policy.groups)
    over = [other.name for other in policy.measures].index(measure.over) if measure.over else None
    names, width = tuple(policy.groups[z] for z in rows), policy.basis.allowed.get(measure.name, math.inf)
    return Goal("", j, "gap", np.eye(len(policy.groups))[rows], names, {}, over, upper=width)


def _comparisons(policy: Policy) -> list[Goal]:
    """What was asked for that compares people otherwise."""
    return [asked for asked in policy.basis.requirements if asked.statistic != "mean"]


def _expected(policy: Policy, each: list[Goal], people: People) -> list[float]:
    """What new people are expected to make of each."""
    evidence = policy.basis.evidence
    if evidence is None:
        raise DataError(
            "This policy does not say how much happiness varies, so the gap to expect is not known.",
            "Fit it again: files and sums of an older felicific lack it.",
        )
    more, found = _more(policy, evidence, people), []
    for asked in each:
        # These very people, so what ignores the label is known of them without any error.
        sure = people is None and policy.expected and not policy.measures[asked.j].looks_at_y
        number = evidence.expected(asked, policy.outcome.means, more, sure=sure)
        found.append(_possible(policy, asked, number, asked.reached(policy.outcome.means)))
    return found


def _possible(policy: Policy, asked: Goal, number: float, fitted: float) -> float:
    """No gap is wider than the bounds of happiness allow, and chance brings nobody closer than where it was fitted."""
    return min(number, fitted if asked.statistic == "ratio" else policy.measures[asked.j].widest)


def _more(policy: Policy, evidence: Evidence, people: People) -> Floats:
    """How many new people there are for each that was fitted, by group."""
    groups = policy.groups
    if people is None:
        return np.ones(len(groups))
    given = dict(people) if isinstance(people, Mapping) else dict.fromkeys(groups, people)
    for group, number in given.items():
        real = isinstance(number, int | float | np.number) and not isinstance(number, bool)
        if group not in groups or not real or not number > 0:
            whose = f" of the group {group!r}" if isinstance(people, Mapping) else ""
            raise DataError(
                f"There are {number!r} new people{whose}.",
                f"Give a number above 0, or one for each of {', '.join(map(repr, groups))}.",
            )
    missing = [group for group in groups if group not in given]
    if missing:
        raise GroupError(f"Of the group {missing[0]!r} no number of people is given.", "Give one for each.")
    numbers = np.array([float(given[group]) for group in groups])
    sizes = evidence.size if isinstance(people, Mapping) else evidence.size.sum()
    return np.asarray(numbers / np.where(sizes > 0, sizes, 1.0))


def outlook(policy: Policy) -> str:
    """What gaps to expect of others, and what they make of requirements that compare people, in one sentence."""
    if policy.basis.evidence is None:
        return "What gap to expect on new people is not known: how much happiness varies was not kept."
    if len(policy.groups) > SIMULATED:
        return f"expected_gaps() says what gap between {len(policy.groups):,} groups to expect on new people."
    whom = "On these people" if policy.expected else "On as many new people, independent of each other"
    text = f"{whom}, a gap of about {gaps_in_words(policy, expected_gaps(policy), 2)}"
    each = _comparisons(policy)
    asked = [
        f"{_measured(policy, one, number)} (asked for: {one.words})"
        for one, number in zip(each, _expected(policy, each, None), strict=True)
    ]
    between = f" between all groups{' that are compared' if policy.left_out else ''}" if asked else ""
    open_ones = any(measure.ends for measure in policy.measures)
    hidden = ", if nothing is hidden" if open_ones else ""
    return f"{text}{between} must be expected{''.join(f', and {part}' for part in asked)}{hidden}."


def gaps_in_words(policy: Policy, gaps: Mapping[str, float], digits: int = 6) -> str:
    """The gap of every happiness, of a criterion the largest one."""
    largest: dict[str, int] = {}
    for j, measure in enumerate(policy.measures):
        if measure.aside:
            continue
        k = largest.setdefault(measure.family, j)
        if gaps[measure.name] > gaps[policy.measures[k].name]:
            largest[measure.family] = j
    each = [_about(policy, j, gaps[policy.measures[j].name], digits) for j in largest.values()]
    if len(each) == 1:
        return each[0]
    titles = [policy.measures[j].title for j in largest.values()]
    return ", ".join(f"{text} of {title!r}" for title, text in zip(titles, each, strict=True))


def _about(policy: Policy, j: int, gap: float, digits: int = 2) -> str:
    """A gap with so many digits, and its unit; what is left of an exact zero after rounding is zero."""
    negligible = gap <= 1e-12 * np.nanmax(np.abs(policy.outcome.means[:, j]))
    return policy.measures[j].quantity(0.0 if negligible else float(f"{gap:.{digits}g}"))


def _measured(policy: Policy, asked: Goal, number: float) -> str:
    """A gap or a ratio, as it is measured, with two digits."""
    text = f"{number:.2g}" if asked.statistic == "ratio" else _about(policy, asked.j, number)
    return f"a {asked.statistic} of about {text}"


def _two_digits(number: float, *, up: bool = True) -> float:
    """Rounded to the side on which asking for it helps."""
    if number <= 0:
        return 0.0
    places = 1 - math.floor(math.log10(number))
    scale = 10.0**places
    return round((math.ceil if up else math.floor)(round(number * scale, 9)) / scale, places)


def too_few(policy: Policy, *, undone: bool = False) -> list[str]:
    """Whether so few people tell less than was asked for, even of groups that are truly alike: the worst of it.

    With ``undone``, only where there was something to repair, and chance alone sets groups as far apart again; of very
    many groups only then.
    """
    evidence = policy.basis.evidence
    if evidence is None or policy.expected or (len(policy.groups) > SIMULATED and not undone):
        return []
    plain = [_plain(policy, j) for j in range(len(policy.measures))]
    found = [
        _short(policy, evidence, asked, undone)
        for asked in (*plain, *_comparisons(policy))
        if asked.number is not None
    ]
    return [text for _, text in sorted(one for one in found if one is not None)[:1]]


def _before(policy: Policy, asked: Goal) -> float:
    """How far apart the baseline's decisions, or those of least loss, set those who are compared."""
    basis = policy.basis
    free = basis.unconstrained if basis.baseline is None else Lazy.of(basis.baseline)
    if free is None:
        return 0.0
    reached = asked.reached(free.value.means)
    return 1.0 - reached if asked.statistic == "ratio" else reached


def _short(policy: Policy, evidence: Evidence, asked: Goal, undone: bool) -> tuple[float, str] | None:
    """What is to be said of one comparison, and how bad it is: the less the worse."""
    assert asked.number is not None, "a number was asked for"
    measure, ratio, number = policy.measures[asked.j], asked.statistic == "ratio", asked.number
    inside = np.asarray(asked.shares) > 0
    counted = inside @ evidence.number[:, asked.j]
    u, allowed = int(counted.argmin()), 1.0 - number if ratio else number
    if counted[u] >= FEW and allowed <= 0:  # whatever is to be expected, nothing is said
        return None
    chance = evidence.expected(asked, policy.outcome.means, np.ones(len(policy.groups)), alike=True)
    chance = _two_digits(chance, up=False) if ratio else min(_two_digits(chance), measure.widest)
    apart = 1.0 - chance if ratio else chance
    exceeds = apart > ABOUT * allowed
    if counted[u] >= FEW and not (exceeds and allowed > 0):
        return None
    if undone and not allowed < _before(policy, asked) <= apart:
        return None
    said, few = f"{number:.6g}" if ratio else measure.quantity(number), max(round(float(counted[u])), 1)
    people = "1 person" if few == 1 else f"{few:,} people"
    tell = f"Only {people} in {asked.names[u]!r} tell of it"
    if (
        policy.labels is not None and measure.looks_at_y
    ):  # not so few are there, but so little is known of them
        people = f"what {people} with a label would tell"
        tell = f"In {asked.names[u]!r} no more is known of it than {people}"
    expected = f"{_measured(policy, asked, chance)} of {measure.name!r} must be expected"
    text = (
        f"A{expected[1:]} from {people} in {asked.names[u]!r} by chance alone, {said} was asked for: "
        if exceeds
        else f"{tell}: {expected} by chance alone ({said} was asked for): "
    )
    remedies = [f"ask for {'at most' if ratio else 'at least'} that"] * exceeds
    remedies += ["pool groups"] * (len(counted) > 2)
    size = inside @ evidence.size
    if size[u] < FEW and (size >= FEW).sum() > 1 and " people or more" not in asked.words:
        remedies.append(f"leave out those of fewer than {FEW} people (min_people)")
    badness = (
        allowed / max(apart, 1e-300) if allowed else -apart / (1.0 if ratio else max(measure.widest, apart))
    )
    return badness, f"{text}{', or '.join(remedies or ['fit on more people'])}."
