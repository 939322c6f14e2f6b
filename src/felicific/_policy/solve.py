"""Solve: the policy of least loss that meets every requirement, without scikit-learn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, Literal, TypeAlias

from felicific._people.evaluate import idle
from felicific._policy.cells import solve_cells
from felicific._policy.lottery import make_salt
from felicific._policy.policy import Policy
from felicific._problem.constraints import check_constraints, check_gaps, refuse_nothing, requirements_of
from felicific._problem.requirement import Requirement
from felicific._problem.worse_off import WorseOff
from felicific._program.aggregates import Aggregates
from felicific._program.change_cost import ChangeCost, check_change_cost
from felicific._program.signal_names import SignalLike
from felicific._program.signals import Individual
from felicific._typing import GapLike, RandomState
from felicific.exceptions import AggregatesError

#: What ``policy=`` may say.
Kind: TypeAlias = SignalLike | Literal["individual"] | Individual


def solve(
    aggregates: Aggregates,
    *,
    gap: GapLike = None,
    constraints: Iterable[Requirement] = (),
    change_cost: ChangeCost = "auto",
    sees_group: bool = True,
    random_state: RandomState = None,
) -> Policy | Any:
    """Find the policy of least loss that meets every requirement: one linear program.

    Of equally good ones it is the one nearest to the baseline's decisions, even if another has a smaller gap;
    ``frontier(...).at(gap=...)`` finds that.

    Parameters
    ----------
    aggregates : Aggregates
        The sums over the labelled people, see :func:`felicific.aggregate`.
    gap : number, or dict of measure or criterion to number
        Largest allowed gap, in the unit of happiness; measures that a dict does not name are measured and not
        constrained. By default no gap is limited, and there have to be ``constraints``.
    constraints : sequence of Gap, Ratio, Floor, Budget, WorseOff and Exploration
        Further requirements. Of several gaps of a measure between all groups the smallest counts.
    change_cost : number or "auto"
        What a decision that is not the baseline's costs beside the loss, in its unit. A number is charged for every
        changed decision; 0 makes changes free. "auto" is for the score of two classes and the error rate: 0.1, and 2
        times the share of the group that stands between the person and the baseline's border. Elsewhere, and where
        labels are missing or the baseline is not known, it is 0.
    sees_group : bool
        False for a policy that decides alike in all groups, because the group is not known when it decides.
    random_state : None, int or NumPy generator
        Where the lottery's salt comes from.

    Returns
    -------
    Policy
        Read its ``sentences()``, ``loss``, ``gaps`` and ``prices``; ``apply`` it, ``save`` it.

    Raises
    ------
    InfeasibleError
        When no policy meets the requirements, with the least reachable gap or the conflict.

    Examples
    --------
    >>> from felicific import aggregate, solve
    >>> people = {
    ...     "sex": ["f", "f", "f", "f", "m", "m", "m", "m"] * 10,
    ...     "score": [0.1, 0.3, 0.6, 0.7, 0.2, 0.6, 0.8, 0.9] * 10,
    ...     "repaid": [0, 0, 1, 1, 0, 1, 1, 1] * 10,
    ... }
    >>> sums = aggregate(people, score="score", y="repaid", sensitive_features="sex", happiness="statistical_parity")
    >>> policy = solve(sums, gap=0.0, random_state=0)
    >>> round(policy.loss, 6), max(policy.gaps.values()) < 1e-9
    (0.125, True)
    """
    if is_of_amounts(aggregates):
        return import_module("felicific._policy.numeric_fit").solve_amounts(
            aggregates, gap=gap, constraints=constraints, change_cost=change_cost, sees_group=sees_group,
            random_state=random_state,
        )  # fmt: skip
    completed = completed_sums(aggregates)
    listed = tuple(one.named(completed.choices) for one in check_constraints(constraints))
    completed = with_limited_losses(completed, listed)
    refuse_nothing(gap, listed)
    cost = check_change_cost(change_cost)
    check_gaps(gap, listed, completed.measures)
    requirements = requirements_of(gap, listed, completed.measures)
    completed, salt = compared_sums(completed, requirements), make_salt(random_state)
    return solve_cells(completed.joined(), requirements, sees_group=sees_group, salt=salt, change_cost=cost)


def completed_sums(aggregates: object) -> Aggregates:
    """Aggregates with what is supposed of missing labels; raise unless they are of people of all groups."""
    if not isinstance(aggregates, Aggregates):
        raise AggregatesError(
            f"This is a {type(aggregates).__name__}, not aggregates.",
            "Pass aggregate(table, score=..., y=..., sensitive_features=..., happiness=...).",
        )
    completed = aggregates.completed()
    completed.check_groups()
    return completed


def with_limited_losses(completed: Aggregates, requirements: Sequence[Requirement]) -> Aggregates:
    """With a measure of who gets less than from the baseline for each that limits it, and no other such measure."""
    limits = [one for one in requirements if isinstance(one, WorseOff)]
    for limit in limits:
        completed = completed.with_losses(limit)
    limited = [limit.name for limit in limits]
    return completed.of([one.name for one in completed.measures if not one.tells_who or one.name in limited])


def compared_sums(completed: Aggregates, requirements: Iterable[Requirement]) -> Aggregates:
    """With whom gaps do not compare; raise unless some decision changes every measure."""
    found = completed.comparing(requirements)
    for measure, moves in zip(found.measures, found.moves, strict=True):
        if not moves:
            raise idle(measure.name, found.decisions.tolist())
    return found


def is_of_amounts(source: object) -> bool:
    """Whether something is the sums of people who are to be given amounts."""
    return type(source).__module__ == "felicific._program.numeric"
