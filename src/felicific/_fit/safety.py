r"""Safe fitting: a policy whose gap was shown, on rows held out, to be at most what was asked.

Candidates are policies of the frontier that was found on the other rows, from the tightest to the one that was asked
for. They are tested in that order, and the first failure ends it; the last to pass is returned. If it violates the gap,
then the first violating policy in the sequence has passed, which has probability at most :math:`\gamma`: so

.. math:: P(\text{returned and violating}) \le \gamma

however many candidates there are. That a gap is at most :math:`\epsilon` says so of every pair of groups in every
component, and each of these tests has to reject at level :math:`\gamma`: no correction is needed for their number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from felicific._audit.methods import Measure, measure_component, measure_loss
from felicific._audit.persons import Persons
from felicific._fit.certificate import Certificate, tested
from felicific._frontier.frontier import Frontier
from felicific._policy.policy import Policy
from felicific._statistics.gaps import limits_name, range_name, range_quantile, spread_of
from felicific._statistics.intervals import Sample
from felicific._typing import Codes, Floats, Truths
from felicific.exceptions import CertificateError, ConstraintError

#: Candidates in the sequence, and how many margins below the gap that was asked for it starts.
STEPS, REACH = 21, 3.0

#: Share of the error probability that is spent on the statement about the loss.
LOSS_SHARE = 0.1

#: In the place of a method.
TOO_SKEWED = "too skewed"

#: Share of the rows that are held out.
HELD_OUT = 0.5


def check_certifiable(gap: Any, widths: list[float]) -> None:
    """Refuse at once what no number of rows could show."""
    if not any(math.isfinite(width) for width in widths):
        raise ConstraintError(
            f"The gap is {gap!r}, so there is nothing to be confident of.",
            "Give a gap together with confidence=, or leave confidence out.",
        )
    if min(widths) == 0.0:
        raise ConstraintError(
            "A gap of 0 can never be shown, with any number of rows: sampling error is always left.",
            "Allow a small gap with confidence=, such as what chance alone shows (audit(...) states it as the bias).",
        )


def split(
    codes: Codes,
    groups: tuple[Any, ...],
    weight: Floats | None,
    salt: str,
    *,
    sampling: bool = False,
    cluster: Codes | None = None,
) -> tuple[Floats, Floats]:
    """How many people of every row are fitted on, and how many held out: half of each group, by lot.

    A row of frequency 5 is five people, who may come to lie on both sides. With ``sampling`` weights a row is one
    person; with a ``cluster`` for every row, whole clusters are held out.
    """
    rng = np.random.default_rng(int(salt[-32:], 16))
    people = np.ones(len(codes)) if weight is None else weight
    if sampling or cluster is not None:
        units = np.arange(len(codes)) if cluster is None else cluster
        held = np.where(_held_units(units, codes, groups, people, rng)[units], people, 0.0)
        return people - held, held
    held = np.zeros(len(codes))
    for z, group in enumerate(groups):
        rows = np.flatnonzero(codes == z)
        count = people[rows].astype(np.int64)
        out = int(count.sum() * HELD_OUT)
        if out < 2:
            raise CertificateError(
                f"The group {group!r} has {count.sum()} people, of whom half are to be held out.",
                "Pass more rows of it, merge it with another, or leave confidence out.",
            )
        if (count == 1).all():
            held[rng.choice(rows, out, replace=False)] = 1.0
        else:
            held[rows] = rng.multivariate_hypergeometric(count, out, method="marginals")
    return people - held, held


def _held_units(
    units: Codes, codes: Codes, groups: tuple[Any, ...], people: Floats, rng: np.random.Generator
) -> Truths:
    """Which units are held out: of those that belong to a group more than to others a half, by lot."""
    size = np.zeros((int(units.max()) + 1, len(groups)))
    np.add.at(size, (units, codes), people)
    home, held = size.argmax(axis=1), np.zeros(len(size), dtype=bool)
    for z in range(len(groups)):
        mine = np.flatnonzero((home == z) & size.any(axis=1))
        held[rng.choice(mine, int(len(mine) * HELD_OUT), replace=False)] = True
    for z, group in enumerate(groups):
        out, left = (int(np.count_nonzero(size[rows, z])) for rows in (held, ~held))
        if out < 2 or left < 1:
            raise CertificateError(
                f"The group {group!r} has {out + left} clusters or weighted rows, of which half are to be held out.",
                "Pass more rows of it, merge it with another, or leave confidence out.",
            )
    return held


@dataclass(frozen=True)
class Trial:
    """How a candidate fared: whether it passed, how far apart the groups were, and by which methods."""

    passed: bool
    gaps: list[float]
    error: list[float]
    methods: list[str]
    loss: float | None


def certify(
    line: Frontier,
    allowed: list[float],
    persons_of: Callable[[Policy], Persons],
    fitted: Persons,
    confidence: float,
    finish: Callable[[Policy], Policy],
) -> tuple[Policy, Certificate]:
    """The loosest policy of the frontier that is shown to keep every gap at most ``allowed``.

    Parameters
    ----------
    line : Frontier
        Of the rows that were fitted on.
    allowed : list of float
        Gap to be shown, by component; infinite for one that is not asked about.
    persons_of : callable
        What a policy does to the people held out.
    fitted : Persons
        What the policy that was asked for does to the people fitted on, of whom there are as many: how much values
        vary.
    confidence : float
        One minus the probability of returning a policy that violates a gap or the stated loss.
    finish : callable
        Makes a policy of the frontier the one that will decide (its salt, its rounding).
    """
    gamma = 1.0 - confidence
    taus = _sequence(line, allowed, fitted.sample, gamma)
    chosen: tuple[Policy, Trial, Persons] | None = None
    for tau in taus:
        limits = {c.name: tau * r for c, r in zip(line.components, line.ray, strict=True) if r < math.inf}
        policy = finish(line.at(gap=limits))
        persons = persons_of(policy)
        trial = _try(persons, allowed, gamma, len(taus))
        if not trial.passed:
            if chosen is None:
                raise _refused(line, allowed, tau, trial, persons, gamma)
            break
        chosen = policy, trial, persons
    assert chosen is not None, "the sequence is never empty"
    policy, trial, persons = chosen
    gaps = {
        component.name: width
        for component, width in zip(policy.components, allowed, strict=True)
        if math.isfinite(width)
    }
    n = persons.sample.n[:, np.isfinite(allowed)]
    certificate = tested(
        policy.components,
        gaps,
        trial.loss,
        confidence,
        int(persons.seen.sum()),
        int(n.min()),
        list(dict.fromkeys(trial.methods)),
        line.loss_name,
    )
    return policy, certificate


def _sequence(line: Frontier, allowed: list[float], spread: Sample, gamma: float) -> list[float]:
    """Places on the frontier, tightest first, where the test is expected to begin to fail.

    They depend on the rows fitted on alone: how much values vary there, and how many rows there are, since as many are
    held out.
    """
    asked = [j for j, width in enumerate(allowed) if math.isfinite(width) and line.ray[j] > 0]
    least, last = float(line.tau[0]), float(line.tau[-1])
    top = min((allowed[j] / line.ray[j] for j in asked), default=last)
    top = max(least, min(top, last))
    z = range_quantile(2.0 * gamma, 2, math.inf) / math.sqrt(2.0)
    error = spread.sd / np.sqrt(np.maximum(spread.n, 1.0))
    widest = np.sqrt((np.sort(error, axis=0)[-2:] ** 2).sum(axis=0))
    margin = max((z * float(widest[j] / line.ray[j]) for j in asked), default=0.0)
    start = max(least, top - REACH * margin)
    return sorted(set(np.linspace(start, top, STEPS).tolist()))


def _try(persons: Persons, allowed: list[float], gamma: float, candidates: int) -> Trial:
    """Test one candidate."""
    level = (1.0 - LOSS_SHARE) * gamma
    passed, gaps, errors, methods = True, [], [], []
    for j, width in enumerate(allowed):
        if not math.isfinite(width):
            continue
        found = measure_component(persons, j)
        part = found.pairs
        shown, method = shown_at_most(found, width, level)
        passed = passed and shown
        gaps.append(float(part.mean.max() - part.mean.min()))
        errors.append(float(np.sqrt(np.sort(part.error**2)[-2:].sum())))
        methods.append(method)
    return Trial(passed, gaps, errors, methods, _loss_bound(persons, LOSS_SHARE * gamma / candidates))


def shown_at_most(found: Measure, width: float, level: float) -> tuple[bool, str]:
    """Whether a gap is shown, at this level, to be at most so wide; and by which method.

    By large samples where these are trustworthy, else by exact or distribution-free limits where they can be had.
    Values that are too skewed, without known bounds, show nothing.
    """
    if found.method == "t" and not found.normal:
        return False, TOO_SKEWED
    if found.normal:
        return found.p_values(width)[1] <= level, range_name(2, rate=found.rate)
    return bool(spread_of(found.limits(level / 2.0))[1] <= width), limits_name(found.words)


def _loss_bound(persons: Persons, tail: float) -> float | None:
    """Upper limit of the mean loss."""
    loss = measure_loss(persons)
    if loss is None:
        return None
    high = loss.cautious(tail)[1]
    return float(high[0]) if math.isfinite(high[0]) else None


def _refused(
    line: Frontier, allowed: list[float], tau: float, trial: Trial, persons: Persons, gamma: float
) -> CertificateError:
    """Say what was found on the tightest policy, how many rows would do, and which gap could have been shown."""
    z = range_quantile(2.0 * gamma, 2, math.inf) / math.sqrt(2.0)
    asked = [j for j, width in enumerate(allowed) if math.isfinite(width)]
    worst = max(range(len(asked)), key=lambda i: (trial.gaps[i] + z * trial.error[i]) / allowed[asked[i]])
    j = asked[worst]
    component, width = line.components[j], allowed[j]
    gap, error = trial.gaps[worst], trial.error[worst]
    smallest = int(persons.seen.min())
    problem = (
        f"No policy could be shown to keep the gap of {component.name!r} at most {component.quantity(width)}: "
        f"the tightest one, tested on rows held out ({smallest:,} in the smallest group), has a gap of "
        f"{component.quantity(float(f'{gap:.4g}'))}"
    )
    room = width - (tau * float(line.ray[j]) if math.isfinite(line.ray[j]) else gap)
    if not math.isfinite(error):
        return CertificateError(
            f"{problem}, and nothing is known of how its values vary.",
            "Pass more rows of the smallest group, or bounds= of the happiness.",
        )
    problem += f" with a standard error of {component.quantity(float(f'{error:.3g}'))}."
    if trial.methods[worst] == TOO_SKEWED:
        return CertificateError(
            f"{problem} The values are so skewed that a test by large samples cannot be trusted with so few.",
            "Pass more rows."
            if component.bounds
            else "Say Happiness(..., bounds=(low, high)), or pass more rows.",
        )
    could = component.quantity(float(f"{gap + (z + 0.3) * error:.3g}"))
    if room <= 0:
        return CertificateError(
            problem, f"No number of rows would do for policies of this kind; a gap of {could} could be shown."
        )
    # Enough to pass about nine times out of ten: the gap seen on the rows held out is off by the sampling error of
    # both halves, on either side, so by less than 1.645 times the root of 2 standard errors in nine cases of ten.
    rows = math.ceil(smallest / HELD_OUT * max(1.2, ((z + 2.33) * error / room) ** 2))
    rows = int(float(f"{rows:.2g}"))
    return CertificateError(
        problem,
        f"About {rows:,} rows in the smallest group would do ({smallest / HELD_OUT:,.0f} were passed); with these, "
        f"a gap of about {could} could be shown.",
        rows,
    )
