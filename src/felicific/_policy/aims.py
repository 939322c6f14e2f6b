r"""Aims: what the sums of a steered stream are held to, and by how much each group has too much or too little.

With :math:`N_z` people and a sum :math:`S_z` of happiness in group z, so far, the excess of a group is

.. math:: e_z = S_z - N_z \, \mathrm{clip}(m_z, l_z, h_z), \qquad m_z = S_z / N_z

where the means are to lie between :math:`l_z` and :math:`h_z`. A gap leaves the level to the people: the ends are
:math:`l` and :math:`l` plus the gap, with :math:`\sum_z e_z = 0`. A floor has no upper end. A budget speaks of all
people together, so all groups have the same excess.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from felicific._files import read_number, refused
from felicific._problem.happiness import Measure, measured, positions, written
from felicific._problem.linear import Goal
from felicific._problem.requirements import check_width
from felicific._shown.parts import Lines, Part, Table, between, short
from felicific._typing import GapLike
from felicific.exceptions import ConstraintError, HappinessError

if TYPE_CHECKING:
    from felicific._policy.policy import Policy
    from felicific._policy.steering import Steering


class Aim(ABC):
    """What the sums are held to."""

    kind: ClassVar[str]

    #: Whether those who are not compared are counted too.
    of_everybody: ClassVar[bool] = False

    @property
    def gap(self) -> float | None:
        """The gap that is allowed; None where something else is asked for."""
        return None

    @abstractmethod
    def excess(self, z: int, people: Sequence[int], sums: Sequence[float]) -> float:
        """How much happiness group z has above what it should have, or below (negative)."""

    def weights(self, shares: Sequence[float]) -> list[float]:
        """The share of the people whose decisions pay an excess back, by group."""
        return list(shares)

    @abstractmethod
    def words(self, measure: Measure) -> str:
        """What is asked for."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """As data."""


@dataclass(frozen=True)
class GapAim(Aim):
    """Group means within a width of each other."""

    kind: ClassVar[str] = "gap"

    width: float

    @property
    def gap(self) -> float | None:
        """The width."""
        return self.width

    def excess(self, z: int, people: Sequence[int], sums: Sequence[float]) -> float:
        """Relative to the level at which all excesses add up to nothing."""
        total, held = sum(people), people[z]
        if not held:
            return 0.0
        if not self.width:
            return sums[z] - held * (sum(sums) / total)
        low, mean = find_level(people, sums, self.width), sums[z] / held
        return held * (mean - min(max(mean, low), low + self.width))

    def words(self, measure: Measure) -> str:
        """The width, in its unit."""
        return f"a gap of {measure.name!r} of at most {measure.quantity(self.width)}"

    def to_json(self) -> dict[str, Any]:
        """The width."""
        return {"kind": self.kind, "width": self.width}


@dataclass(frozen=True)
class FloorAim(Aim):
    """No mean below a level, in those groups that have one."""

    kind: ClassVar[str] = "floor"

    levels: tuple[float | None, ...]

    def excess(self, z: int, people: Sequence[int], sums: Sequence[float]) -> float:
        """What is missing to the level; nothing where there is more."""
        level = self.levels[z]
        return 0.0 if level is None else min(0.0, sums[z] - people[z] * level)

    def words(self, measure: Measure) -> str:
        """The levels, in their unit."""
        held = {level for level in self.levels if level is not None}
        each = " or ".join(measure.quantity(level) for level in sorted(held))
        return f"means of {measure.name!r} of at least {each}"

    def to_json(self) -> dict[str, Any]:
        """The levels."""
        return {"kind": self.kind, "levels": list(self.levels)}


@dataclass(frozen=True)
class BudgetAim(Aim):
    """The mean of all people together between two limits."""

    kind: ClassVar[str] = "budget"
    of_everybody: ClassVar[bool] = True

    lower: float
    upper: float

    def excess(self, z: int, people: Sequence[int], sums: Sequence[float]) -> float:
        """The same in all groups: what all together have too much, or too little."""
        total, held = sum(sums), sum(people)
        return total - held * min(max(total / held, self.lower), self.upper) if held else 0.0

    def weights(self, shares: Sequence[float]) -> list[float]:
        """All of them pay it back."""
        return [1.0 if share > 0 else 0.0 for share in shares]

    def words(self, measure: Measure) -> str:
        """The limits, in their unit."""
        sides = [f"at least {measure.quantity(self.lower)}"] * math.isfinite(self.lower)
        sides += [f"at most {measure.quantity(self.upper)}"] * math.isfinite(self.upper)
        return f"{measure.name!r} of all people together {' and '.join(sides)} per person"

    def to_json(self) -> dict[str, Any]:
        """The limits; None where there is none."""
        limits = (self.lower, self.upper)
        return {"kind": self.kind, "limits": [side if math.isfinite(side) else None for side in limits]}


def read_aim(content: object, groups: int) -> Aim:
    """Read what an aim wrote."""
    content = content if isinstance(content, dict) else {}
    kind = content.get("kind")
    if kind == "gap" and set(content) == {"kind", "width"}:
        width = read_number(content["width"], "width")
        if 0.0 <= width < math.inf:
            return GapAim(width)
    elif kind == "floor" and set(content) == {"kind", "levels"} and len(content["levels"]) == groups:
        each = content["levels"]
        return FloorAim(tuple(None if level is None else read_number(level, "level") for level in each))
    elif kind == "budget" and set(content) == {"kind", "limits"} and len(content["limits"]) == 2:
        endless, each = (-math.inf, math.inf), content["limits"]
        lower, upper = (
            none if limit is None else read_number(limit, "limit")
            for limit, none in zip(each, endless, strict=True)
        )
        if lower <= upper:
            return BudgetAim(lower, upper)
    raise refused("it does not say what it holds the means to")


def find_level(people: Sequence[int], sums: Sequence[float], width: float) -> float:
    r"""The lower end of the stretch of a width at which what is above it and what is below it add up to nothing.

    .. math:: \sum_z N_z (m_z - l - g)_+ = \sum_z N_z (l - m_z)_+

    The difference falls as :math:`l` rises, and bends at every mean and at every mean less the width. Of several levels
    that do, as where all means are inside, it is the lowest.
    """
    known = [(total / held, held) for held, total in zip(people, sums, strict=True) if held]
    bends = sorted([(mean, held) for mean, held in known] + [(mean - width, -held) for mean, held in known])
    # Below all bends every mean is above the stretch.
    level = bends[0][0]
    slope, left = sum(held for _, held in known), sum(held * (mean - level - width) for mean, held in known)
    for bend, held in bends:
        step = slope * (bend - level)
        if left - step <= 0.0:
            return level + left / slope if slope else level
        level, left, slope = bend, left - step, slope + held
    return level


# ---------------------------------------------------------------------------------------------------------
# Which of what was asked of a policy is steered


def find_aim(policy: Policy, gap: GapLike) -> tuple[int, Aim]:
    """The measure that is steered, and what its means are held to; whatever cannot be steered is refused by name."""
    if policy.explore:
        raise ConstraintError(
            f"The policy keeps people a {policy.explore[0].chance.words}, which controls that move would not keep.",
            "Fit it without Exploration, or decide by the policy as it is.",
        )
    if gap is None:
        return _own_aim(policy)
    j = _named(policy, gap) if isinstance(gap, Mapping) else _only(policy)
    width = next(iter(gap.values())) if isinstance(gap, Mapping) else gap
    return j, GapAim(_finite(check_width(width, "gap")))


def _finite(width: float) -> float:
    if math.isinf(width):
        raise ConstraintError("A gap of any size is allowed, so nothing is steered.", "Give a finite gap=.")
    return width


def _named(policy: Policy, gap: Mapping[str, float]) -> int:
    """The only measure that a gap names."""
    if len(gap) != 1:
        raise ConstraintError(
            f"gap= names {len(gap)} measures, and one is steered.", "Name one: gap={name: number}."
        )
    (name,) = gap
    places = positions(name, policy.measures)
    if len(places) != 1:
        names = [measure.name for measure in policy.measures]
        raise ConstraintError(
            f"gap= names {name!r}, which is {f'{len(places)} measures' if places else 'no measure'} of the policy.",
            f"Its measures are {', '.join(map(repr, names))}.",
        )
    return places[0]


def _only(policy: Policy) -> int:
    """The only measure that is measured."""
    own = measured(policy.measures)
    if len(own) != 1:
        raise _several([policy.measures[j].name for j in own])
    return own[0]


def _several(names: Sequence[str]) -> ConstraintError:
    return ConstraintError(
        f"There are {len(names)} measures, {', '.join(map(repr, names))}, and one is steered.",
        f"Name it: gap={{{names[0]!r}: number}}.",
    )


def _own_aim(policy: Policy) -> tuple[int, Aim]:
    """What the policy was fitted to, if that is one thing and can be steered."""
    names = [measure.name for measure in policy.measures]
    gaps = {name: width for name, width in policy.basis.allowed.items() if name in names}
    others = others_asked(policy)
    for asked in others:
        _refuse(policy, asked)
    if len(gaps) > 1:
        raise _several(list(gaps))
    floors = [asked for asked in others if _of_one_group(asked)]
    budgets = [asked for asked in others if not _of_one_group(asked)]
    found: list[tuple[int, Aim]] = [(names.index(name), GapAim(width)) for name, width in gaps.items()]
    found += [(asked.j, BudgetAim(asked.lower, asked.upper)) for asked in budgets]
    for j in dict.fromkeys(asked.j for asked in floors):
        levels: list[float | None] = [None] * len(policy.groups)
        for asked in floors:
            if asked.j == j:
                levels[int(np.flatnonzero(asked.shares[0])[0])] = asked.lower
        found.append((j, FloorAim(tuple(levels))))
    if len(found) != 1:
        each = "; ".join(aim.words(policy.measures[j]) for j, aim in found)
        raise ConstraintError(
            f"The policy was fitted to {len(found)} requirements ({each}), and one is steered."
            if found
            else "The policy was fitted to no requirement, so there is nothing to steer.",
            "Say which gap is to be kept: gap=number, or gap={name: number}; nothing else is then.",
        )
    return found[0]


def others_asked(policy: Policy) -> list[Goal]:
    """What a policy was fitted to besides the own gap of each measure."""
    return list(policy.basis.requirements)


def _refuse(policy: Policy, asked: Goal) -> None:
    """Refuse what is neither a floor nor a budget."""
    if asked.statistic != "mean" or policy.measures[asked.j].tells_who:
        raise ConstraintError(
            f"The policy was fitted to a {asked.words}, which is not steered."
            if asked.statistic != "mean"
            else f"The policy was fitted so that {asked.words}, which is not steered.",
            "Say which gap between all groups is to be kept instead: gap=number.",
        )
    if asked.baseline:
        raise ConstraintError(
            f"The policy was fitted to a {asked.words}; of other people the baseline has another mean, which "
            "nobody knows while deciding.",
            "Fit it with a floor at a number, or say which gap is to be kept: gap=number.",
        )


def _of_one_group(asked: Goal) -> bool:
    """Whether it speaks of one group: a floor; else of all people together, a budget."""
    return int(np.count_nonzero(asked.shares)) == 1


def check_steered(measure: Measure, *, looks_at_y: bool) -> None:
    """Refuse happiness that nobody knows while deciding, or that is no sum over people."""
    if looks_at_y or measure.looks_at_y:
        raise HappinessError(
            f"The happiness {measure.name!r} looks at the label, which is not known when deciding.",
            "Steer happiness that does not, and audit this one once labels are known.",
        )
    if measure.over:
        raise HappinessError(
            f"The happiness {measure.name!r} is a fraction: whom it counts depends on the decision.",
            "Steer what everybody has, such as who is approved; monitor the fraction.",
        )


# ---------------------------------------------------------------------------------------------------------
# What a steering says of itself.


#: Where the groups are that are not shown.
MORE = ".controls and .means have all; shown are those of the smallest and of the largest means."


def parts_of(steering: Steering) -> list[Part]:
    """What it holds, how far it is, and how every group is decided on now."""
    return [
        Lines([_headline(steering)], strong=True),
        Lines(_remarks(steering)),
        _table(steering),
    ]


def _headline(steering: Steering) -> str:
    kind, people = steering.steered.kind, steering.total
    told = f"{people:,} people decided on" if people else "nobody decided on yet"
    if steering.heard:
        told += f", {steering.heard:,} more heard of"
    return f"A steered policy of kind {kind!r} that holds {steering.aim}: {told}."


def _remarks(steering: Steering) -> list[str]:
    found, measure = [], steering.measure
    if not math.isnan(steering.gap):
        found.append(f"The gap so far is {measure.short(steering.gap)}{_most(steering)}.")
    if steering.limited:
        found.append(
            f"For {steering.limited:,} people a control would have gone further than a reach of {steering.reach:g} "
            "allows: fit the policy again, and begin a new steering."
        )
    others = _not_kept(steering)
    if others:
        found.append(f"Not kept while steering: {'; '.join(others)}.")
    return [
        *found,
        f"An error that stays shrinks to a third within about {written(steering.pace, 3)} people (pace), as far as "
        f"a reach of {steering.reach:g} lets controls go. What a safe fit showed is of the policy, not of "
        "a steered one.",
    ]


def _most(steering: Steering) -> str:
    """What the gap could not exceed, where that says something; and how much of it is for who could not be helped."""
    bound, measure = steering.bound, steering.measure
    if bound is None or bound >= measure.widest:
        return ""
    added = steering.added
    part = f", {measure.short(added)} of which for people who could not be paid back" if added else ""
    return f"; whoever came, it could not be more than {measure.short(bound, 1)}{part}"


def _not_kept(steering: Steering) -> list[str]:
    """Requirements of the policy that nothing is done for."""
    policy, name = steering.steered, steering.measure.name
    gaps = [f"a gap of {other!r}" for other in policy.basis.allowed if other != name]
    j = [measure.name for measure in policy.measures].index(name)
    own_gap = steering.aim.startswith("a gap")
    return gaps + [asked.words for asked in others_asked(policy) if own_gap or asked.j != j]


def _table(steering: Steering) -> Table:
    measure, means, people = steering.measure, steering.means, steering.people
    rows = [
        (
            short(str(group)),
            f"{people[group]:,}",
            "-" if math.isnan(means[group]) else measure.cell(means[group]),
            f"{control.now:.4g}",
            f"{control.fitted:.4g}",
            control.words,
        )
        for group, control in steering.controls.items()
    ]
    known = [means[group] for group in steering.controls]
    unit = "" if measure.in_currency or not measure.unit else f" ({short(measure.unit, 16)})"
    header = ("group", "people", f"mean{unit}", "control", "at first", "the next person is")
    return Table("", header, rows, MORE, keep=between(known), words=True)


def remembered(steering: Steering) -> tuple[str, ...]:
    """What is known of a policy that holds the controls of a moment."""
    measure, means, people = steering.measure, steering.means, steering.people
    told = sum(people.values())
    first = (
        f"These are the controls of a steered policy after {told:,} people. Nobody measured what they do, so no loss, "
        "no mean and no gap is stated: audit it."
    )
    held = [group for group in means if people[group]]
    if not held:
        return (first, "Nobody was decided on yet: they are where the policy was fitted.")
    each = ", ".join(
        f"{measure.quantity(means[group])} in group {group!r} ({people[group]:,} people)" for group in held
    )
    return first, f"While they moved, mean {measure.name!r} was {each}."
