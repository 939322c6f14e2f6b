"""From what a user writes, ``gap=`` and ``constraints=``, to requirements: checked, and each of them once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from felicific._problem.happiness import Measure, measured
from felicific._problem.requirement import Requirement
from felicific._problem.requirements import FurtherGap, Gap, check_width, constraint_name
from felicific.exceptions import ConstraintError

#: What may be required.
FAMILY = "Gap(...), Ratio(...), Floor(...), Budget(...), WorseOff(...) or Exploration(...)"


def requirements_of(gap: Any, constraints: Any, measures: tuple[Measure, ...]) -> tuple[Requirement, ...]:
    """Every requirement as an object: one gap for each measure that has one, then the constraints as they stand.

    Parameters
    ----------
    gap : number, dict of measure or criterion to number, or None
        A number is the gap of every measure; None asks for nothing.
    constraints : sequence of Requirement, or None
        Further requirements. Of several gaps of a measure that compare the same people the smallest counts; else the
        first is its own, and the others stand beside it.
    measures : tuple of Measure
        What is measured.
    """
    listed = check_constraints(constraints)
    own: dict[int, Gap] = {}
    further: list[Requirement] = []
    for one in (*_gaps_written(gap, measures), *listed):
        if not isinstance(one, Gap) or not one.is_plain_gap:
            further.append(one)
            continue
        for j in one.measures(measures) if math.isfinite(one.at_most) else ():
            if j not in own:
                own[j] = replace(one, happiness=measures[j])
            elif own[j].whom == one.whom:
                own[j] = replace(own[j], at_most=min(own[j].at_most, one.at_most))
            else:
                further.append(FurtherGap(measures[j], one.at_most, None, one.min_people, one.groups))
    return (*(own[j] for j in sorted(own)), *further)


def refuse_nothing(gap: Any, constraints: Sequence[Requirement]) -> None:
    """Refuse to fit a policy of which nothing is required, unless that is said."""
    if gap is None and not constraints:
        raise ConstraintError(
            "Nothing is required: there is neither a gap nor a constraint.",
            "Say gap=, the largest gap allowed in the unit of happiness (0.05 is five points of a share), or require "
            "something else, such as a Floor.",
        )


def happiness_of(happiness: Any, constraints: Iterable[Requirement]) -> Any:
    """What is measured: the happiness that was given, else what the constraints name, each of it once."""
    named = [one.happiness for one in constraints if not one.of_persons and one.happiness is not None]
    if happiness is not None or not named:
        return happiness
    return [*{constraint_name(one): one for one in named}.values()]


def resolve_gap(
    gap: Any, measures: tuple[Measure, ...], constraints: Sequence[Requirement] = ()
) -> list[float]:
    """Allowed gap of every measure; infinite where nothing was asked. Gaps among the constraints count too."""
    widths = _smallest([math.inf] * len(measures), _gaps_written(gap, measures), measures)
    return _smallest(widths, _gaps_among(constraints), measures)


def allowed_gaps(requirements: Sequence[Requirement], measures: tuple[Measure, ...]) -> dict[str, float]:
    """Allowed gaps by measure, of those that have one."""
    pairs = zip(measures, resolve_gap(None, measures, requirements), strict=True)
    return {measure.name: width for measure, width in pairs if math.isfinite(width)}


def check_one_unit(number: float, what: str, measures: Sequence[Measure]) -> None:
    """Refuse one number, but for 0, of measures in different units; what has no unit is not known to differ.

    What lies between 0 and 1 is a share, whatever it is called.
    """
    counted = {measure.unit or ("share" if measure.bounds == (0.0, 1.0) else "") for measure in measures}
    units = sorted(counted - {""})
    if len(units) > 1 and 0 < number < math.inf:
        named = ", ".join(f"{measure.name!r}: ..." for measure in measures)
        raise ConstraintError(
            f"The {what} is {number!r}, one number for measures that are counted in {' and in '.join(units)}.",
            f"Give each its own: {what}={{{named}}}.",
        )


def check_gaps(gap: Any, constraints: Iterable[Requirement], measures: tuple[Measure, ...]) -> None:
    """Refuse gaps that cannot mean anything: one number in several units, or more than values can be apart."""
    if gap is not None and not isinstance(gap, Mapping):
        check_one_unit(check_width(gap, "gap"), "gap", [measures[j] for j in measured(measures)])
    among = (one for one in constraints if isinstance(one, Gap))
    for limit in (*_gaps_written(gap, measures), *among):
        for measure in (measures[j] for j in limit.measures(measures)):
            if measure.widest * (1 + 1e-9) < limit.at_most < math.inf:
                widest, points = measure.quantity(measure.widest), " (five percentage points are 0.05)"
                raise ConstraintError(
                    f"The gap of {measure.name!r} is to be at most {measure.quantity(limit.at_most)}, and no gap "
                    f"of it is larger than {widest}, by its bounds.",
                    f"Give a number from 0 to {widest}{points if measure.bounds == (0.0, 1.0) else ''}.",
                )


def _gaps_written(gap: Any, measures: tuple[Measure, ...]) -> Iterator[Gap]:
    """The gaps that the shorthand stands for."""
    if isinstance(gap, Mapping):
        for name, width in gap.items():
            yield Gap(name, width)
    elif gap is not None:
        width = check_width(gap, "gap")
        for j in measured(measures):
            yield Gap(measures[j], width)


def _gaps_among(constraints: Iterable[Requirement]) -> Iterator[Gap]:
    """Those of all groups; one that compares others stands for itself."""
    return (one for one in constraints if isinstance(one, Gap) and one.is_plain_gap)


def _smallest(widths: list[float], gaps: Iterable[Gap], measures: tuple[Measure, ...]) -> list[float]:
    """Widths of all measures, no larger than any of these gaps allows."""
    widths = list(widths)
    for gap in gaps:
        for j in gap.measures(measures):
            widths[j] = min(widths[j], gap.at_most)
    return widths


def check_constraints(constraints: Any) -> tuple[Requirement, ...]:
    """Insist on a list of requirements."""
    if constraints is None:
        return ()
    if not isinstance(constraints, Iterable) or isinstance(constraints, str):
        raise ConstraintError(
            f"The constraints are {constraints!r}.",
            f"Pass a list of {FAMILY}.",
        )
    listed = tuple(constraints)
    for constraint in listed:
        if not isinstance(constraint, Requirement):
            raise ConstraintError(f"{constraint!r} is not a constraint.", f"Use {FAMILY}.")
    return listed
