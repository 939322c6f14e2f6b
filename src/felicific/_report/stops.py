"""Places of the slider: round gaps between the least one and the baseline, and those that have a name."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from felicific._frontier.breakpoints import tau_of
from felicific._frontier.frontier import Frontier
from felicific._policy.policy import Policy
from felicific._problem.change import MODEL, Reference
from felicific._program.aggregates import Outcome

#: Most places of the slider, and how many of them are round numbers at most.
PLACES, ROUND = 40, 33

LEAST, PROPOSED, BEST = "least gap", "proposed", "best, gaps ignored"
HARMLESS = "no group worse off here"


@dataclass(frozen=True)
class Place:
    """A place of the slider: where it is on the frontier, what it is called, and the policy there; None: baseline."""

    tau: float
    names: tuple[str, ...]
    aimed: tuple[float | None, ...]
    policy: Policy | None

    @property
    def proposed(self) -> bool:
        """Whether its policy is the one that is proposed."""
        return PROPOSED in self.names


def find_places(
    line: Frontier,
    policy: Policy,
    along: Callable[[Sequence[float]], list[Policy]],
    reference: Reference = MODEL,
) -> list[Place]:
    """From the least gap on; the reference is the last. ``along`` are the policies at some places of the frontier."""
    ray, fitted = line.ray, fitted_reference(line, policy, reference)
    tau_baseline, tau_policy = tau_of(fitted, ray), tau_of(policy.outcome, ray)
    marked = mark(line.points[0].tau, line.points[-1].tau, tau_baseline, tau_policy, reference)
    solved = None if line.mixes else line.tau.tolist()
    if solved is not None:  # between two that were solved for there is nothing to be said
        marked = {name: tau if name == PROPOSED else _tighter(tau, solved) for name, tau in marked.items()}
    places = []
    for tau in spread(marked, tau_baseline, solved):
        names = tuple(name for name, where in marked.items() if where == tau)
        aimed = tuple(_aimed(tau * unit, tau_baseline * unit) for unit in ray.tolist())
        places.append(Place(tau, names, aimed, policy))
    others = [place for place in places if not place.proposed]
    found = iter(along([_position(line, place.aimed, place.tau) for place in others]))
    places = [place if place.proposed else replace(place, policy=next(found)) for place in places]
    now = tuple(gap if math.isfinite(unit) else None for gap, unit in zip(fitted.gaps, ray, strict=True))
    return [
        *places,
        Place(max([tau_baseline, *(place.tau for place in places)]), (reference.name,), now, None),
    ]


def fitted_reference(line: Frontier, policy: Policy, reference: Reference) -> Outcome:
    """What the reference does to the people that the policies were fitted to."""
    free = policy.basis.unconstrained
    found = line.baseline if reference.is_baseline else None if free is None else free.value
    assert found is not None, "a report compares with something"
    return found


def mark(
    least: float, most: float, tau_baseline: float, tau_policy: float, reference: Reference = MODEL
) -> dict[str, float]:
    """Places that have a name; but for the policy that is proposed, none has a larger gap than the baseline."""
    rounding = 1e-9 * max(most, tau_policy, tau_baseline)
    half = f"half of {reference.of('gap')}"
    marked = {LEAST: least, PROPOSED: tau_policy, half: max(tau_baseline / 2.0, least), BEST: most}
    offered = {name: tau for name, tau in marked.items() if name == PROPOSED or tau < tau_baseline - rounding}
    # What differs from another by rounding alone is that one.
    return {
        name: next((other for other in (least, tau_policy) if abs(tau - other) <= rounding), tau)
        for name, tau in offered.items()
    }


def spread(marked: dict[str, float], tau_baseline: float, solved: list[float] | None = None) -> list[float]:
    """Places that have a name, and round numbers between them and the baseline; or those that were ``solved`` for."""
    named, low = [*marked.values()], min(marked.values())
    near = 1e-9 * max(tau_baseline, *named)
    if solved is not None:
        between = [tau for tau in solved if tau < tau_baseline - near][: PLACES - len(named) - 1]
    elif tau_baseline - low > near:
        step = round_step((tau_baseline - low) / ROUND)
        first, last = math.ceil(low / step), math.floor(tau_baseline / step)
        between = [float(f"{i * step:.12g}") for i in range(first, last + 1)]
    else:
        between = []
    kept = [tau for tau in between if low + near < tau < tau_baseline - near]
    return sorted({*(tau for tau in kept if min(abs(tau - one) for one in named) > near), *named})


def round_step(width: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is at least ``width``."""
    power = 10.0 ** math.floor(math.log10(width))
    return next(float(f"{m * power:.12g}") for m in (1, 2, 5, 10) if m * power >= width * (1 - 1e-12))


def _aimed(gap: float, baseline: float) -> float | None:
    """The gap that is allowed at a place; what is left of nothing by rounding is nothing."""
    if not math.isfinite(gap):
        return None
    return 0.0 if gap <= 1e-9 * baseline else float(f"{gap:.12g}")


def _position(line: Frontier, aimed: tuple[float | None, ...], tau: float) -> float:
    """The very place that ``fair.at(gap=...)`` finds for what is aimed at."""
    closed = {
        measure.name: gap
        for measure, gap, unit in zip(line.measures, aimed, line.ray, strict=True)
        if gap is not None and unit > 0
    }
    if not closed:
        return tau
    return line.position(gap=next(iter(closed.values())) if len(closed) == 1 else closed)


def _tighter(tau: float, solved: list[float]) -> float:
    return max((at for at in solved if at <= tau), default=solved[0])
