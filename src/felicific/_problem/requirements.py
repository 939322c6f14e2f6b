"""Requirements on group means, as a user writes them: gaps, ratios, floors and budgets.

A requirement of a new kind is a class here, and nothing elsewhere: what the program, its check, the frontier and the
messages need to know of one are its :class:`felicific._problem.linear.Linear` rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from felicific._problem.happiness import Happiness, Measure, positions
from felicific._problem.linear import (
    Fraction,
    FractionLevel,
    Goal,
    Linear,
    Rows,
    gap_rows,
    mean_rows,
    open_gap_rows,
    ratio_rows,
)
from felicific._problem.requirement import ComparedMeans, GroupSums, Requirement
from felicific._problem.unions import (
    MIN_PEOPLE,
    Between,
    LeftOut,
    Shares,
    Whom,
    check_between,
    check_groups,
    check_min_people,
    compared,
    shares_of,
)
from felicific._typing import Floats
from felicific.exceptions import ConstraintError


@dataclass(frozen=True)
class Gap(Requirement):
    """Group means within a width of each other.

    Parameters
    ----------
    happiness : str, function or Happiness
        A measure by name, a criterion (each of its measures then), or a happiness of its own.
    at_most : number
        The largest mean minus the smallest, in the measure's unit. Infinite asks for nothing.
    between : attribute, list of attributes, or None
        Who is compared, where groups are made of several attributes: ``"sex"`` compares the sexes, each with everybody
        of it, and ``["sex", "race"]`` their intersections. By default all groups as they are. Attributes without a name
        go by their position, 0, 1, ...
    min_people : number, default=30
        Groups of whom the measure counts fewer people are measured and not compared, and the output names them; below
        1 it is a share of all people it counts. People are the sum of frequency weights, or rows of sampling weights.
    groups : list, optional
        Who is compared, if not all of them: groups, or what ``between`` makes of them.

    Notes
    -----
    ``gap=x`` is short for such a gap of every measure. Among the ``constraints``, a gap counts beside what ``gap=``
    says, and of two that compare the same people the smallest wins: without ``gap=`` it stands alone.

    Examples
    --------
    >>> from felicific import Gap, aggregate, solve
    >>> people = {
    ...     "sex": ["f", "f", "f", "f", "m", "m", "m", "m"] * 10,
    ...     "score": [0.1, 0.3, 0.6, 0.7, 0.2, 0.6, 0.8, 0.9] * 10,
    ...     "repaid": [0, 0, 1, 1, 0, 1, 1, 1] * 10,
    ... }
    >>> sums = aggregate(people, score="score", y="repaid", sensitive_features="sex", happiness="decision")
    >>> policy = solve(sums, constraints=[Gap("decision", at_most=0.1)], random_state=0)
    >>> round(policy.gap, 9), round(policy.loss, 9)
    (0.1, 0.075)
    """

    happiness: Any
    at_most: float
    between: Between = None
    min_people: float = MIN_PEOPLE
    groups: tuple[Any, ...] | None = None
    course: ClassVar[Literal["ray"]] = "ray"

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "at_most", check_width(self.at_most, f"gap of {_gap_name(self.happiness)!r}")
        )
        _check_compared(self)

    @property
    def is_plain_gap(self) -> bool:
        """Whether it is between the groups as they are."""
        return self.between is None

    @property
    def whom(self) -> Whom:
        """Who is compared."""
        return Whom(self.between, self.min_people, self.groups)

    def rows(self, sums: GroupSums) -> list[Rows]:
        """One row for each measure that it speaks of."""
        if math.isinf(self.at_most):
            return []
        rows: list[Rows] = []
        for part in self.comparisons(sums.measures):
            goal = _compared(sums, part.j, part.words, "gap", self.whom, upper=self.at_most)
            name = sums.measures[part.j].name if self.is_plain_gap else ""
            if sums.measures[part.j].ends:
                refuse_open(sums.measures[part.j], f"{self!r}", plain=self.is_plain_gap)
                rows.append(open_gap_rows(goal, self.at_most, ends_at(sums, part.j), name))
            elif goal.over is None:
                rows.append(gap_rows(goal, self.at_most, name))
            else:
                rows.append(FractionLevel(fraction_of(sums, goal), width=self.at_most, measure_name=name))
        return rows

    def comparisons(self, measures: tuple[Measure, ...]) -> list[ComparedMeans]:
        """The means of each measure that it speaks of."""
        who, size = self.whom.words
        whose = "" if self.is_plain_gap else f" between groups{who and f' by {who}'}{size}"
        parts = []
        for j in self.measures(measures) if math.isfinite(self.at_most) else ():
            words = f"gap of {measures[j].name!r}{whose} at most {measures[j].quantity(self.at_most)}"
            limits = self.at_most, 1.0, self.whom, words, self.is_plain_gap
            parts.append(ComparedMeans(j, *limits))
        return parts

    @property
    def provable(self) -> bool:
        """Never that there is no gap: sampling error is always left."""
        return self.at_most > 0.0

    def cautious(self, margin: Any, fitted: float) -> Gap:
        """With as many fewer people in those who are compared."""
        return replace(self, min_people=_of_fitted(self.min_people, fitted))

    def tightened(self, by: float) -> Gap:
        """A narrower gap."""
        return replace(self, at_most=max(self.at_most - by, 0.0))

    def at(self, value: float) -> Gap:
        """With another width."""
        return replace(self, at_most=value)

    def opened(self) -> Gap:
        """Between the groups as they are, a gap that asks for nothing, and still names its happiness; another stays."""
        return replace(self, at_most=math.inf) if self.is_plain_gap else self

    def measures(self, measures: tuple[Measure, ...]) -> list[int]:
        """Positions of the measures that it speaks of."""
        return _positions(self.happiness, measures, "A gap")


class FurtherGap(Gap):
    """A gap of a measure that has another one, of other people."""

    @property
    def is_plain_gap(self) -> bool:
        """Another one is the measure's own."""
        return False


@dataclass(frozen=True)
class Ratio(Requirement):
    """No group's mean below a share of the highest: the four-fifths rule, and others like it.

    Parameters
    ----------
    happiness : str, function or Happiness
        A measure by name, a criterion (each of its measures then), or a happiness of its own. Its means cannot be
        negative.
    at_least : number above 0, at most 1, default=0.8
        The smallest mean divided by the largest.
    between, min_people, groups :
        Who is compared; as for :class:`Gap`.

    Notes
    -----
    Means of 0 meet every ratio: add a :class:`Floor` where giving nobody anything is no answer. The least loss is not
    convex in the ratio, so policies for two ratios are never mixed into one for a third.

    Examples
    --------
    >>> from felicific import Ratio, aggregate, solve
    >>> people = {
    ...     "sex": ["f", "f", "f", "f", "m", "m", "m", "m"] * 10,
    ...     "score": [0.1, 0.3, 0.6, 0.7, 0.2, 0.6, 0.8, 0.9] * 10,
    ...     "repaid": [0, 0, 1, 1, 0, 1, 1, 1] * 10,
    ... }
    >>> sums = aggregate(people, score="score", y="repaid", sensitive_features="sex", happiness="decision")
    >>> policy = solve(sums, constraints=[Ratio("decision", 0.8, between="sex")], random_state=0)
    >>> {group: round(mean, 9) for group, mean in policy.means["decision"].items()}, round(policy.loss, 9)
    ({'f': 0.6, 'm': 0.75}, 0.05)
    """

    happiness: Any
    at_least: float = 0.8
    between: Between = None
    min_people: float = MIN_PEOPLE
    groups: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        number = _number(self.at_least, "A ratio's at_least", "Give a number above 0, at most 1.")
        if not 0 < number <= 1 or isinstance(self.at_least, bool):
            raise ConstraintError(
                f"A ratio's at_least is {self.at_least!r}.",
                "Give a number above 0, at most 1: 0.8 for the four-fifths rule.",
            )
        object.__setattr__(self, "at_least", number)
        _check_compared(self)

    def at(self, value: float) -> Requirement:
        """With another ratio; 0 asks for nothing."""
        return replace(self, at_least=value) if value else Gap(self.happiness, math.inf)

    def ends(self, sums: GroupSums, reached: float) -> tuple[float, float]:
        """All of them."""
        return 1.0, 0.0

    @property
    def whom(self) -> Whom:
        """Who is compared."""
        return Whom(self.between, self.min_people, self.groups)

    def comparisons(self, measures: tuple[Measure, ...]) -> list[ComparedMeans]:
        """The means of each measure that it speaks of."""
        (who, size), parts = self.whom.words, []
        named = f"group by {who}" if "attribute " in who else who or "group"
        for j in _positions(self.happiness, measures, "A ratio"):
            whose = f"mean {measures[j].name!r} of every {named}{size}"
            words = f"{whose} at least {self.at_least:.6g} of the highest"
            parts.append(ComparedMeans(j, 0.0, self.at_least, self.whom, words))
        return parts

    @property
    def provable(self) -> bool:
        """Never that means are the same."""
        return self.at_least < 1.0

    def cautious(self, margin: Any, fitted: float) -> Ratio:
        """With as many fewer people in those who are compared."""
        return replace(self, min_people=_of_fitted(self.min_people, fitted))

    def tightened(self, by: float) -> Ratio:
        """A larger ratio."""
        return replace(self, at_least=min(self.at_least + by, 1.0))

    def rows(self, sums: GroupSums) -> list[Rows]:
        """One row for each measure that it speaks of, if no mean can be negative."""
        return [self._row(sums, part) for part in self.comparisons(sums.measures)]

    def _row(self, sums: GroupSums, part: ComparedMeans) -> Rows:
        j, words = part.j, part.words
        measure, origin = sums.measures[j], float(sums.origin[j])
        refuse_open(measure, f"{self!r}", plain=not measure.ends)
        goal = _compared(sums, j, words, "ratio", self.whom, lower=self.at_least)
        least = goal.shares @ sums.least[:, j] + origin  # of a fraction, what is divided
        lowest = int(least.argmin())
        if least[lowest] < -1e-12 * (abs(origin) + np.abs(sums.least[:, j]).max()):
            raise ConstraintError(
                f"A ratio of {measure.name!r} is asked for, whose mean can be as low as "
                f"{measure.quantity(float(least[lowest]))} in {goal.names[lowest]!r}: a ratio of negative means "
                "says nothing.",
                "Ask for a Gap of it, or for a ratio of what cannot be negative, such as who is approved.",
            )
        if goal.over is not None:
            return FractionLevel(fraction_of(sums, goal), self.at_least, low=0.0)
        return ratio_rows(goal, self.at_least, origin)


@dataclass(frozen=True)
class Floor(Requirement):
    """No group's mean happiness below a level.

    Parameters
    ----------
    happiness : str, function or Happiness
        A measure by name, or a happiness of its own.
    at_least : number or "baseline"
        The level, in the measure's unit; ``"baseline"`` is each group's mean under the model's own decisions.
    groups : sequence, optional
        The groups that are protected; by default all.

    Examples
    --------
    Nobody approved less often than from the baseline:

    >>> from felicific import Floor, aggregate, solve
    >>> people = {
    ...     "sex": ["f", "f", "f", "f", "m", "m", "m", "m"] * 10,
    ...     "score": [0.1, 0.3, 0.6, 0.7, 0.2, 0.6, 0.8, 0.9] * 10,
    ...     "repaid": [0, 0, 1, 1, 0, 1, 1, 1] * 10,
    ... }
    >>> sums = aggregate(people, score="score", y="repaid", sensitive_features="sex", happiness="decision")
    >>> policy = solve(sums, gap=0.0, constraints=[Floor("decision", at_least="baseline")], random_state=0)
    >>> {group: round(mean, 9) for group, mean in policy.means["decision"].items()}
    {'f': 0.75, 'm': 0.75}
    """

    happiness: Any
    at_least: float | Literal["baseline"]
    groups: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.at_least, str) or self.at_least != "baseline":
            _number(self.at_least, "A floor's at_least", "Give a finite number, or 'baseline'.")
        if self.groups is not None:
            listed = isinstance(self.groups, Iterable) and not isinstance(self.groups, str)
            if not listed or not tuple(self.groups):
                raise ConstraintError(f"A floor's groups are {self.groups!r}.", "Pass a list of groups.")
            object.__setattr__(self, "groups", tuple(self.groups))

    @property
    def has_number(self) -> bool:
        """Not where its level is the baseline's."""
        return self.at_least != "baseline"

    def at(self, value: float) -> Floor:
        """With another level."""
        return replace(self, at_least=value)

    def ends(self, sums: GroupSums, reached: float) -> tuple[float, float]:
        """From the most that the groups can all have."""
        places = [z for z, group in enumerate(sums.groups) if self.groups is None or group in self.groups]
        return float(_far(sums, measure_of(sums, self.happiness), most=True)[places].min()), reached

    def rows(self, sums: GroupSums) -> list[Rows]:
        """One row for each group that is protected."""
        j = measure_of(sums, self.happiness)
        if sums.measures[j].ends:
            refuse_open(sums.measures[j], f"{self!r}", plain=self.at_least != "baseline")
            j = ends_at(sums, j)[0]  # even at its least
        measure, origin = sums.measures[j], float(sums.origin[j])
        rows: list[Rows] = []
        for group in sums.groups if self.groups is None else self.groups:
            if group not in sums.groups:
                raise ConstraintError(
                    f"A floor protects the group {group!r}, which does not occur.",
                    f"The groups are {', '.join(map(repr, sums.groups))}.",
                )
            z = sums.groups.index(group)
            if sums.counted[z, j] <= 0:
                continue  # of a group that is not compared, there may be nobody who is counted
            if self.at_least == "baseline":
                level, note = baseline_mean(sums, z, j), " (baseline)"
            else:
                _refuse_loose(self.at_least, None, measure, "A floor")
                level, note = float(self.at_least) - origin, ""
            least = measure.quantity(level + origin)
            words = f"mean {measure.name!r} of group {group!r} at least {least}{note}"
            goal = Goal(
                words,
                j,
                "mean",
                Shares.alone([z], len(sums.groups)),
                (group,),
                over=over_of(sums, j),
                lower=level + origin,
                baseline=self.at_least == "baseline",
            )
            rows.append(mean_row(sums, goal, level, math.inf))
        return rows


@dataclass(frozen=True)
class Budget(Requirement):
    """The happiness of all people together within limits.

    Parameters
    ----------
    happiness : str, function or Happiness
        A measure by name, or a happiness of its own.
    at_most, at_least, exactly : number, optional
        The limits, in the measure's unit.
    per : "person" or number of people
        What the limits are counted for: the mean per person, or the total for that many people. With an
        ``among``, people are those who are counted.

    Examples
    --------
    Four approvals for every eight people:

    >>> from felicific import Budget, aggregate, solve
    >>> people = {
    ...     "sex": ["f", "f", "f", "f", "m", "m", "m", "m"] * 10,
    ...     "score": [0.1, 0.3, 0.6, 0.7, 0.2, 0.6, 0.8, 0.9] * 10,
    ...     "repaid": [0, 0, 1, 1, 0, 1, 1, 1] * 10,
    ... }
    >>> sums = aggregate(people, score="score", y="repaid", sensitive_features="sex", happiness="decision")
    >>> policy = solve(sums, gap=0.0, constraints=[Budget("decision", at_most=4, per=8)], random_state=0)
    >>> {group: round(mean, 9) for group, mean in policy.means["decision"].items()}
    {'f': 0.5, 'm': 0.5}
    """

    happiness: Any
    at_most: float | None = None
    at_least: float | None = None
    exactly: float | None = None
    per: float | Literal["person"] = "person"

    def __post_init__(self) -> None:
        sides = {"at_most": self.at_most, "at_least": self.at_least, "exactly": self.exactly}
        given = {name: side for name, side in sides.items() if side is not None}
        for name, side in given.items():
            _number(side, f"A budget's {name}", "Give a finite number.")
        if not given or ("exactly" in given and len(given) > 1):
            raise ConstraintError(
                "A budget needs limits." if not given else "A budget says exactly and another limit.",
                "Give at_most, at_least or both; or exactly alone.",
            )
        if self.at_most is not None and self.at_least is not None and self.at_least > self.at_most:
            raise ConstraintError(
                f"A budget asks for at least {self.at_least} and at most {self.at_most}.", "Swap the two."
            )
        if self.per != "person":
            people = _number(self.per, "A budget's per", "Say 'person', or a number of people.")
            if people <= 0:
                raise ConstraintError(
                    f"A budget is per {people:g} people.", "Give a positive number of people."
                )

    @property
    def course(self) -> Literal["points"] | None:  # type: ignore[override]  # of a class, where it is the same for all
        """Only a single limit moves."""
        one = (self.at_most is None) != (self.at_least is None)
        return "points" if one and self.exactly is None else None

    @property
    def limit(self) -> Literal["at least", "at most"]:
        """The one there is."""
        return "at most" if self.at_least is None else "at least"

    def at(self, value: float) -> Budget:
        """With another limit."""
        return replace(self, **{self.limit.replace(" ", "_"): value})

    def ends(self, sums: GroupSums, reached: float) -> tuple[float, float]:
        """From the most, or the least, that all people together can have."""
        j, people = measure_of(sums, self.happiness), 1.0 if self.per == "person" else float(self.per)
        over = over_of(sums, j)
        far = _far(sums, j, most=self.limit == "at least")
        end = float(np.average(far, weights=sums.counted[:, j if over is None else over]))
        return people * end, people * reached

    def rows(self, sums: GroupSums) -> list[Rows]:
        """One row, over all people together."""
        j = measure_of(sums, self.happiness)
        if sums.measures[j].ends:
            refuse_open(
                sums.measures[j], f"{self!r}", plain=(self.at_least is None) != (self.at_most is None)
            )
            j = ends_at(sums, j)[self.at_least is None]  # even at its least, or at its most
        measure, origin = sums.measures[j], float(sums.origin[j])
        people = 1.0 if self.per == "person" else float(self.per)
        per = "per person" if self.per == "person" else f"for {people:,.6g} people"
        lower, upper = self.at_least, self.at_most
        _refuse_loose(lower and lower / people, upper and upper / people, measure, "A budget")
        words = []
        if self.exactly is not None:
            lower = upper = self.exactly
            words = [f"exactly {measure.quantity(self.exactly)}"]
        else:
            words += [f"at least {measure.quantity(lower)}"] if lower is not None else []
            words += [f"at most {measure.quantity(upper)}"] if upper is not None else []
        over = over_of(sums, j)
        counted = sums.counted[:, j if over is None else over]
        goal = Goal(
            f"{measure.name!r} of all people together {' and '.join(words)} {per}",
            j,
            "mean",
            (counted / counted.sum())[None, :],
            ("all people together",),
            over=over,
            lower=-math.inf if lower is None else lower / people,
            upper=math.inf if upper is None else upper / people,
        )
        return [mean_row(sums, goal, goal.lower - origin, goal.upper - origin, people)]


def _positions(happiness: Any, measures: tuple[Measure, ...], what: str) -> list[int]:
    """Positions of the measures that a requirement speaks of: one, or all of a criterion."""
    if isinstance(happiness, Measure):
        return [measures.index(happiness)]
    name = _gap_name(happiness)
    places = positions(name, measures)
    if not places:
        raise ConstraintError(
            f"{what} is set for {name!r}, which is no measure.",
            f"The measures are {', '.join(repr(measure.name) for measure in measures)}.",
        )
    return places


def _of_fitted(min_people: float, fitted: float) -> float:
    """A number of people among those who are fitted on; a share stays one."""
    return max(1.0, min_people * fitted) if min_people >= 1 else min_people


def _check_compared(requirement: Gap | Ratio) -> None:
    """Check who is compared, and keep it as it can be compared itself."""
    if requirement.between is not None:
        object.__setattr__(requirement, "between", check_between(requirement.between))
    check_min_people(requirement.min_people)
    object.__setattr__(requirement, "groups", check_groups(requirement.groups))


def _compared(
    sums: GroupSums,
    j: int,
    words: str,
    statistic: str,
    whom: Whom,
    *,
    lower: float = -math.inf,
    upper: float = math.inf,
) -> Goal:
    """Whose means of a measure are compared."""
    over = over_of(sums, j)
    place = j if over is None else over
    name = sums.measures[j].name
    numbers = (sums.counted if whom.min_people < 1 else sums.numbers)[:, place]
    unions, left_out = compared(sums.groups, sums.attributes, numbers, whom, name, sums.seen)
    shares, names = shares_of(unions, sums.counted[:, place]), tuple(union.name for union in unions)
    return Goal(words, j, statistic, shares, names, left_out.people, over, lower, upper)


def left_out_by(
    requirements: Iterable[Requirement],
    measures: tuple[Measure, ...],
    groups: Sequence[Any],
    numbers: Floats,
    counted: Floats,
) -> dict[str, LeftOut]:
    """Whom the own gap of every measure does not compare, where that is anybody.

    Of every group ``numbers`` are the people that each measure counts, and ``counted`` their weight, which shares are
    of, of shape (groups, measures).
    """
    found: dict[str, LeftOut] = {}
    own = [one for one in requirements if isinstance(one, Gap) and one.is_plain_gap]
    for one in own:
        for j in one.measures(measures):
            over, name = position_over(measures, j), measures[j].name
            people = (counted if one.min_people < 1 else numbers)[:, j if over is None else over]
            _, left_out = compared(groups, (), people, one.whom, name)
            if left_out.people:
                found[name] = left_out
    return found


def _far(sums: GroupSums, j: int, *, most: bool) -> Floats:
    """The most, or the least, that decisions can make of every group's mean; of a fraction, that its bounds allow."""
    measure = sums.measures[j]
    if not measure.over:
        return (sums.most if most else sums.least)[:, j] + float(sums.origin[j])
    if measure.bounds is None:
        raise ConstraintError(
            f"How far {measure.name!r} can go is not known, so it does not move along a frontier.",
            "State bounds= of the happiness.",
        )
    return np.full(len(sums.groups), measure.bounds[int(most)])


def ends_at(sums: GroupSums, j: int) -> tuple[int, int]:
    """Positions of the least and the most that a measure can be, where that is open."""
    names, ends = [measure.name for measure in sums.measures], sums.measures[j].ends
    assert ends is not None, "it is open"
    return names.index(ends[0]), names.index(ends[1])


def refuse_open(measure: Measure, what: str, *, plain: bool) -> None:
    """Refuse what cannot be asked of happiness that hidden reasons leave open, unless it is ``plain``."""
    if not plain:
        raise ConstraintError(
            f"{what} speaks of {measure.name!r}, which hidden reasons leave open (hidden above 1): of it only a "
            "Gap of all groups, a Floor at a number, or a Budget with one limit can be asked.",
            "Ask for one of these, or fit with max_odds_ratio=1.",
        )


def over_of(sums: GroupSums, j: int) -> int | None:
    """Of a fraction the position of its denominator."""
    return position_over(sums.measures, j)


def position_over(measures: Sequence[Measure], j: int) -> int | None:
    """The same, of these measures."""
    over = measures[j].over
    return [measure.name for measure in measures].index(over) if over else None


def mean_row(sums: GroupSums, goal: Goal, lower: float, upper: float, people: float = 1.0) -> Linear:
    """One mean between two sides, relative to its origin."""
    if goal.over is None:
        return mean_rows(goal, lower, upper, people)
    origin = float(sums.origin[goal.j])
    slopes = float(math.isfinite(lower)), float(math.isfinite(upper))
    return fraction_of(sums, goal).between((lower + origin, upper + origin), slopes, people=people)


def fraction_of(sums: GroupSums, goal: Goal) -> Fraction:
    """The fractions that a goal speaks of, as they read on these sums."""
    assert goal.over is not None, "a fraction has a denominator"
    people, members = sums.counted[:, goal.over], np.asarray(goal.shares) > 0
    least = [sums.one_person[inside].max() / people[inside].sum() for inside in members]
    return Fraction(goal, (float(sums.origin[goal.j]), float(sums.origin[goal.over])), np.array(least))


def baseline_mean(sums: GroupSums, z: int, j: int) -> float:
    """Mean of a measure under the baseline's decisions about a group, relative to its origin."""
    if sums.baseline_value is None:
        raise ConstraintError(
            f"What {sums.measures[j].name!r} is under the baseline is asked for, and there is no baseline: not every "
            "class is a decision.",
            "Pass baseline=, the column of what was really decided; or give a number instead of 'baseline'.",
        )
    mean = float(sums.baseline_value[z, :, j].sum() / sums.counted[z, j])
    over = sums.measures[j].over
    if not over:
        return mean
    k = [measure.name for measure in sums.measures].index(over)
    counted = float(sums.baseline_value[z, :, k].sum() / sums.counted[z, k] + sums.origin[k])
    origin = float(sums.origin[j])
    if counted <= 0:
        raise ConstraintError(
            f"Nobody of the group {sums.groups[z]!r} is {over} under the baseline, so it has no mean to keep.",
            "Give a number instead of 'baseline', or leave that group out.",
        )
    return (mean + origin) / counted - origin


def _refuse_loose(lower: float | None, upper: float | None, measure: Measure, what: str) -> None:
    """Refuse limits beyond what values can be, which every policy keeps."""
    low, high = measure.bounds or (-math.inf, math.inf)
    slack = 1e-9 * measure.widest
    if (lower is not None and lower < low - slack) or (upper is not None and upper > high + slack):
        raise ConstraintError(
            f"{what} of {measure.name!r} asks for nothing: its values lie between {low:g} and {high:g} anyway.",
            "Give a limit between the two, or leave it out.",
        )


def _number(value: Any, what: str, remedy: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number) or isinstance(value, str):
        raise ConstraintError(f"{what} is {value!r}, not a finite number.", remedy)
    return number


def check_width(value: Any, what: str) -> float:
    """A gap as a number of 0 or more."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if math.isnan(number) or number < 0 or isinstance(value, str | bool):
        raise ConstraintError(
            f"The {what} is {value!r}.", "Give a number of 0 or more, in the unit of happiness."
        )
    return number


def measure_of(sums: GroupSums, happiness: Any) -> int:
    """Position of the measure that a constraint speaks of."""
    name = constraint_name(happiness)
    places = positions(name, sums.measures)
    if len(places) != 1:
        several = [sums.measures[j].name for j in places]
        raise ConstraintError(
            f"A constraint speaks of {name!r}, which is {len(several)} measures."
            if several
            else f"A constraint speaks of {name!r}, which is no measure of these aggregates.",
            f"The measures are {', '.join(repr(name) for name in several or [one.name for one in sums.measures])}.",
        )
    return places[0]


def constraint_name(happiness: Any) -> str:
    """Name of the measure that a constraint speaks of."""
    if isinstance(happiness, str):
        return happiness
    return str((happiness if isinstance(happiness, Happiness) else Happiness(happiness)).name)


def _gap_name(happiness: Any) -> Any:
    """Name that a gap goes by; what is no happiness stays as it is, to be named in an error."""
    if isinstance(happiness, Measure):
        return happiness.name
    named = isinstance(happiness, Happiness) or callable(happiness)
    return constraint_name(happiness) if named else happiness
