"""Refits: what a policy would have been, had other people been drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from felicific._people.people import People
from felicific._policy.cells import CellPolicy
from felicific._policy.expected import named_gaps
from felicific._problem.problem import Problem
from felicific._problem.unions import known_groups
from felicific._program.moments import Moments
from felicific._program.solution import solve_program
from felicific._program.summing import sum_people
from felicific._statistics.expected import expected_range
from felicific._typing import Floats
from felicific.exceptions import InfeasibleError

#: How often a policy is fitted again, and the fewest fits that are told of.
REFITS, FEWEST = 12, 6

#: Most people on whom that is done: more leave little to chance.
MOST = 50_000


def refitted_gaps(
    problem: Problem, people: People, policy: CellPolicy, moments: Moments
) -> dict[str, float] | None:
    """Gaps to expect on as many new people, by component; None where too few of the fits have an answer.

    Everybody (every cluster) counts as often as a Poisson number of mean 1 says; what is then fitted is valued on the
    people as they are, which stands for a policy that was fitted on some of a population and is applied to all of it.
    """
    found = refitted_means(problem, people, policy, moments)
    evidence = policy.basis.evidence
    if len(found) < FEWEST or evidence is None:
        return None
    rows = known_groups(policy.groups, policy.attributes, policy.unknown)
    error = np.sqrt(evidence.likely[rows] / evidence.people[rows])
    return named_gaps(policy, expected_range(found[:, rows], error), policy.outcome.gaps)


def refitted_means(problem: Problem, people: People, policy: CellPolicy, moments: Moments) -> Floats:
    """Group means of every fit that has an answer, of shape (fits, groups, components)."""
    rng, cluster = np.random.default_rng(15), people.cluster_codes
    units = np.arange(len(people)) if cluster is None else cluster
    found = []
    for _ in range(REFITS):
        often = rng.poisson(1.0, int(units.max()) + 1)[units]
        again = sum_people(replace(people, weight=people.weights * often), problem, moments.signal)
        if not (again.counted[again.known] > 0).all():
            continue
        try:
            solution = solve_program(
                again, problem.requirements, see_group=problem.see_group, change_cost=policy.change_cost
            )
        except InfeasibleError:
            continue  # what these people allow, others may not
        found.append(moments.evaluate(policy.rounded(solution.q)).means)
    return np.array(found)
