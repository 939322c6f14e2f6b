"""Monitor: whether a gap has opened, asked as often as one likes while decisions are taken."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from felicific._audit.arrived import arrived
from felicific._audit.audit import Asked
from felicific._audit.decided import checked_columns, has_policy, last_step
from felicific._audit.monitored import Monitor
from felicific._people.roles import Roles
from felicific._policy.policy import policy_of
from felicific._problem.happiness import HappinessLike, measured
from felicific._problem.problem import Problem
from felicific._problem.unions import check_groups
from felicific._statistics.intervals import check_confidence
from felicific._statistics.stream import Stream
from felicific._typing import GapLike, Table
from felicific.exceptions import ConstraintError, GroupError

#: As many comparisons, pairs of groups times measures, as a state of some megabytes holds.
MOST_PAIRS = 5_000


def monitor(
    decided: object,
    X: Table = None,
    y: object = None,
    *,
    happiness: HappinessLike | None = None,
    sensitive_features: object = None,
    gap: GapLike = None,
    groups: Sequence[Any] | None = None,
    decisions: Sequence[Any] | None = None,
    sample_weight: object = None,
    score: object = None,
    predicted: object = None,
    baseline: object = None,
    confidence: float = 0.95,
) -> Monitor:
    r"""Begin to monitor decisions: has the gap opened? It may be asked after every row, for years.

    An audit that is repeated raises a false alarm sooner or later. Here the evidence is such that a system which keeps
    to the allowed gap at all times ever raises an alarm with a probability of at most 1 - ``confidence``, however often
    one looks. People are compared with those who came at about the same time, so that a level that moves for everybody,
    or a mix of groups that changes, over thousands of people is no gap; and evidence is also begun anew again and
    again, so that a gap which opens after a quiet year is seen. See docs/statistics.md.

    Parameters
    ----------
    decided, X, y, happiness, sensitive_features :
        As for :func:`felicific.audit`, in the order in which people came. A table that is not in memory is read in its
        order; Spark has none.
    gap : number, or dict of measure or criterion to number
        The gap that is allowed, of what is monitored; by default that of the FairClassifier.
    groups : list, optional
        Who is compared; people of other groups may come and are not compared. By default the groups that occur, or
        those of the policy, and people of others are refused.
    decisions : sequence, optional
        All decisions from the worst to the best for the person; by default those that occur. Later ones are refused.
    sample_weight : array of shape (n,) or column name, optional
        Only ones: everybody is counted once.
    score, predicted, baseline :
        As for :func:`felicific.audit`.
    confidence : float, default=0.95
        With which no alarm is ever raised if the gap is never more than allowed.

    Returns
    -------
    Monitor
        ``.alarm``, ``.evidence``, ``.gaps``; ``.add(...)`` for those who come later; ``.save(path)``; print it.

    Notes
    -----
    Of values with known ``bounds`` (criteria and rates have them) this holds for any distribution, drifting as it may
    from one hundred people to the next. Without bounds it holds in large samples, which is said wherever it matters.
    People are taken to be independent given those who came before; among 100 who came one after the other the level is
    taken to be one, and who comes not to follow from what was decided on the others. Give rows of a happiness that
    looks at labels when the outcome of *all* people of a time is known: defaults become known early, and counting each
    row when its own outcome is known would show a gap where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from felicific import monitor
    >>> rng = np.random.default_rng(0)
    >>> week = {"sex": rng.choice(["f", "m"], 4_000), "approved": rng.integers(0, 2, 4_000)}
    >>> seen = monitor("approved", week, happiness="decision", sensitive_features="sex", gap=0.05)
    >>> seen.alarm is None, seen.gaps["decision"].low, round(seen.gaps["decision"].high, 3)
    (True, 0.0, 0.079)
    """
    confidence = check_confidence(confidence)
    columns = Roles(
        sensitive_features,
        y,
        score,
        predicted,
        baseline,
        decided=decided if isinstance(decided, str) else None,
        weight=sample_weight,
    )
    asked = Asked(happiness, sensitive_features, None, gap, decisions)
    columns = checked_columns(policy_of(decided), columns, X, asked)
    found = arrived(decided, X, columns, asked, fresh=True)
    known = check_groups(groups) or _groups_decided(decided) or found.groups
    monitored = monitored_of(found.problem)
    bounds = [found.problem.measures[j].bounds for j in monitored]
    _check_groups(known, found.groups, len(monitored))
    found.problem.check_groups(known)
    empty = Monitor(
        found.problem,
        monitored,
        known,
        _remembered(columns, asked.sensitive_features),
        found.attributes,
        groups is not None,
        confidence,
        Stream.begun(len(known), bounds),
    )
    return empty.with_people(found)


def _groups_decided(decisions: object) -> tuple[Any, ...]:
    """The groups that a policy, or a FairClassifier, decides on; none where something else decides."""
    policy = policy_of(decisions)
    if policy is not None:
        return policy.groups
    if isinstance(decisions, str) or not has_policy(decisions):
        return ()
    known: tuple[Any, ...] = last_step(decisions).policy_.groups
    return known


def _remembered(columns: Roles, group: Any) -> Roles:
    """The columns that later people have too, a function of them for the groups among these."""
    group = columns.group if group is None else group
    named = replace(columns, group=group, key=None).remembered()
    return replace(named, group=group) if callable(group) else named


def monitored_of(problem: Problem) -> tuple[int, ...]:
    """Positions of the measures of which a gap is asked."""
    widths = problem.widths
    asked = [j for j in measured(problem.measures) if math.isfinite(widths[j])]
    if not asked:
        raise ConstraintError(
            "Nobody said how large a gap may be.", "Pass gap=, in the unit of the happiness."
        )
    return tuple(asked)


def _check_groups(known: tuple[Any, ...], here: tuple[Any, ...], measures: int) -> None:
    """Refuse too few groups, such as nobody is of, and so many that their pairs do not fit into a file."""
    if not set(known) & set(here):
        raise GroupError(
            f"Nobody is of {', '.join(map(repr, known))}; the groups are {', '.join(map(repr, here))}.",
            "Name those that are compared in groups=.",
        )
    if len(known) < 2:
        raise GroupError(
            f"The groups are {', '.join(map(repr, known))}: a gap is between at least two.",
            "Pass rows of at least two groups, or name all that will come in groups=.",
        )
    pairs = measures * len(known) * (len(known) - 1) // 2
    if pairs > MOST_PAIRS:
        raise GroupError(
            f"{len(known)} groups and {measures} measures are {pairs:,} comparisons, more than {MOST_PAIRS:,}.",
            "Merge small groups, or monitor fewer measures.",
        )
