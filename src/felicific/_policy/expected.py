"""What gaps to expect of a policy on people it was not fitted on, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from felicific._problem.criteria import CRITERIA
from felicific._problem.happiness import written
from felicific._problem.unions import known_groups
from felicific._program.evidence import Evidence
from felicific._typing import Floats
from felicific.exceptions import DataError, GroupError

if TYPE_CHECKING:
    from felicific._policy.policy import Policy

#: A gap is hardly known from fewer people of a group.
FEW = 100


def expected_gaps(policy: Policy, people: float | Mapping[Any, float] | None = None) -> dict[str, float]:
    """See :meth:`felicific.Policy.expected_gaps`."""
    evidence = policy.basis.evidence
    if evidence is None:
        raise DataError(
            "This policy does not say how much happiness varies, so the gap to expect is not known.",
            "Fit it again: files and sums of an older felicific lack it.",
        )
    known, many = evidence.number, evidence.people * _more(policy, evidence, people)[:, None]
    if people is None and policy.expected:
        # These very people, so what ignores the label is known of them without any error.
        sure = np.array([not component.looks_at_y for component in policy.components])
        known, many = np.where(sure, np.inf, known), np.where(sure, np.inf, many)
    return named_gaps(policy, evidence.gaps(policy.outcome.means, many, known, _compared(policy)))


def _compared(policy: Policy) -> list[int]:
    """Positions of the groups that are compared: not of people whose group is missing."""
    return known_groups(policy.groups, policy.attributes, policy.unknown)


def named_gaps(policy: Policy, gaps: Floats, least: Floats | None = None) -> dict[str, float]:
    """Gaps by component; none is wider than the bounds of happiness allow, nor less than where it was fitted."""
    least = np.zeros(len(gaps)) if least is None else np.nan_to_num(least)
    each = zip(policy.components, gaps.tolist(), least.tolist(), strict=True)
    return {c.name: min(max(gap, fitted), c.widest) for c, gap, fitted in each}


def _more(policy: Policy, evidence: Evidence, people: float | Mapping[Any, float] | None) -> Floats:
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


def outlook(policy: Policy, gaps: Mapping[str, float] | None = None) -> str:
    """What gaps to expect of others, in one sentence; those that were found in another way can be given."""
    if gaps is None and policy.basis.evidence is None:
        return "What gap to expect on new people is not known: how much happiness varies was not kept."
    gaps = expected_gaps(policy) if gaps is None else gaps
    whom = "On these people" if policy.expected else "On as many new people, independent of each other"
    return f"{whom}, a gap of about {gaps_in_words(policy, gaps, 2)} must be expected."


def gaps_in_words(policy: Policy, gaps: Mapping[str, float], digits: int = 6) -> str:
    """The gap of every happiness, of a criterion the largest one."""
    largest: dict[str, int] = {}
    for j, component in enumerate(policy.components):
        if component.aside:
            continue
        k = largest.setdefault(component.family, j)
        if gaps[component.name] > gaps[policy.components[k].name]:
            largest[component.family] = j
    each = [_about(policy, j, gaps[policy.components[j].name], digits) for j in largest.values()]
    if len(each) == 1:
        return each[0]
    titles = [name.replace("_", " ") if name in CRITERIA else name for name in largest]
    return ", ".join(f"{text} of {title!r}" for title, text in zip(titles, each, strict=True))


def _about(policy: Policy, j: int, gap: float, digits: int = 2) -> str:
    """A gap with so many digits, and its unit; what is left of an exact zero after rounding is zero."""
    negligible = gap <= 1e-12 * np.nanmax(np.abs(policy.outcome.means[:, j]))
    return policy.components[j].quantity(0.0 if negligible else float(f"{gap:.{digits}g}"))


def too_few(policy: Policy) -> list[str]:
    """Whether so few people tell less than was asked for, even of groups that are truly alike: the worst component."""
    evidence = policy.basis.evidence
    if evidence is None or policy.expected:
        return []
    rows = _compared(policy)
    equal = np.zeros_like(policy.outcome.means)
    chance = named_gaps(policy, evidence.gaps(equal, evidence.people, among=rows))
    found = []
    for j, component in enumerate(policy.components):
        asked, gap = policy.basis.asked.get(component.name, math.inf), chance[component.name]
        z = rows[int(evidence.number[rows, j].argmin())]
        few = float(evidence.number[z, j])
        if gap > asked and (asked > 0 or few < FEW):
            text = (
                f"About {_about(policy, j, gap)} of {component.name!r} must be expected from {written(few, 3)} people "
                f"in {policy.groups[z]!r}, {component.quantity(asked)} was asked for: ask for at least that, or pool "
                "groups"
            )
            text += f", or leave small ones out: Gap(..., min_people={FEW})." if few < FEW else "."
            found.append((-gap / max(component.widest, gap) if asked == 0 else asked / gap, text))
    return [text for _, text in sorted(found)[:1]]
