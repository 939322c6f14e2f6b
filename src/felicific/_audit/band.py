r"""One band over a whole frontier: limits of the group means that hold at every position together.

Between two breakpoints :math:`q = (1 - t) q_1 + t q_2`, and group means and loss are linear in q. Limits that hold at
all breakpoints therefore hold, interpolated, at every policy between them: whichever position is chosen after looking
at these very people, its gap has a valid bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from felicific._audit.measure_people import measured_of
from felicific._audit.measured import Measured
from felicific._audit.methods import limits_of
from felicific._audit.result import plain
from felicific._frontier.frontier import Frontier
from felicific._people.checks import WeightKind, check_length, check_weights
from felicific._people.people import People
from felicific._people.roles import Roles
from felicific._policy.policy import Policy
from felicific._problem.happiness import LOSES, Measure
from felicific._problem.problem import problem_of
from felicific._problem.unions import compared_by
from felicific._shown.parts import clipped
from felicific._statistics.gaps import spread_of
from felicific._statistics.intervals import Limits, check_confidence
from felicific._tables.groups import groups_of_present
from felicific._tables.memory import count_rows, table_maker, take_column
from felicific._typing import Floats, Table, Truths
from felicific.exceptions import ConstraintError, DataError


@dataclass(frozen=True, eq=False)
class Band:
    """Limits of group means, gaps and loss along a frontier, for people it was not fitted on.

    Attributes
    ----------
    measures, groups : tuple
        As on the frontier.
    tau : array of shape (breakpoints,)
        Positions of the breakpoints.
    means, low, high : array of shape (breakpoints, groups, measures)
        Group means and their limits. All of them hold together with ``confidence``, and so does every straight line
        between two breakpoints.
    loss, loss_low, loss_high : array of shape (breakpoints,)
        Likewise for the mean loss.
    confidence : float
        With which everything holds together.
    known : sequence of int, or None
        Positions of the groups that gaps are between; None for all.
    """

    measures: tuple[Measure, ...]
    groups: tuple[Any, ...]
    tau: Floats
    means: Floats
    low: Floats
    high: Floats
    loss: Floats
    loss_low: Floats
    loss_high: Floats
    confidence: float
    compared: Truths

    def __repr__(self) -> str:
        names = clipped(", ".join(repr(measure.name) for measure in self.measures))
        return (
            f"Band over {len(self.tau):,} breakpoints of a frontier, from tau {self.tau[0]:.6g} to {self.tau[-1]:.6g}: "
            f"limits of loss and {names}, confidence {self.confidence:.6g}. Ask gaps(tau), or to_frame()."
        )

    def limits(self, tau: float) -> Limits:
        """Limits of the group means at a position, of shape (groups, measures)."""
        return self._at(self.low, tau), self._at(self.high, tau)

    def gaps(self, tau: float) -> dict[str, tuple[float, float]]:
        """Least and largest gap of every measure that the band leaves open at a position."""
        low, high = self.limits(tau)
        whom = self.compared.T
        spreads = (spread_of((low[one, j], high[one, j])) for j, one in enumerate(whom))
        names = (measure.name for measure in self.measures)
        return {name: (float(a), float(b)) for name, (a, b) in zip(names, spreads, strict=True)}

    def losses(self, tau: float) -> tuple[float, float]:
        """Limits of the mean loss at a position."""
        return float(self._at(self.loss_low, tau)), float(self._at(self.loss_high, tau))

    def along(self, taus: Sequence[float]) -> tuple[Floats, Floats]:
        """Limits of the gaps, of shape (positions, measures, 2), and of the loss, of shape (positions, 2)."""
        low, high, loss_low, loss_high = (
            np.array([self._at(numbers, tau) for tau in taus])
            for numbers in (self.low, self.high, self.loss_low, self.loss_high)
        )
        spreads = [
            np.stack(spread_of((low[:, one, j], high[:, one, j])), axis=-1)
            for j, one in enumerate(self.compared.T)
        ]
        return np.stack(spreads, axis=1), np.stack([loss_low, loss_high], axis=-1)

    def _at(self, numbers: Floats, tau: float) -> Floats:
        if not self.tau[0] - 1e-9 <= tau <= self.tau[-1] + 1e-9:
            raise ConstraintError(
                f"The position {tau:.6g} is not on this frontier.",
                f"Choose one from {self.tau[0]:.6g} to {self.tau[-1]:.6g}.",
            )
        right = int(np.clip(np.searchsorted(self.tau, tau), 1, max(len(self.tau) - 1, 1)))
        if right >= len(self.tau):
            return np.asarray(numbers[0])
        share = np.clip((tau - self.tau[right - 1]) / (self.tau[right] - self.tau[right - 1]), 0.0, 1.0)
        if share in (0.0, 1.0):
            return np.asarray(numbers[right - 1 + int(share)])  # an infinite limit times zero would be none
        return np.asarray((1.0 - share) * numbers[right - 1] + share * numbers[right])

    def to_dict(self) -> dict[str, list[Any]]:
        """One entry per breakpoint: position, loss, gaps and group means with their limits, by name."""
        table: dict[str, list[Any]] = {
            "tau": self.tau.tolist(),
            "loss": self.loss.tolist(),
            "least loss": self.loss_low.tolist(),
            "largest loss": self.loss_high.tolist(),
        }
        for j, measure in enumerate(self.measures):
            spreads = [self.gaps(tau)[measure.name] for tau in self.tau.tolist()]
            table[f"least gap of {measure.name}"] = [least for least, _ in spreads]
            table[f"largest gap of {measure.name}"] = [largest for _, largest in spreads]
            for z, group in enumerate(self.groups):
                for what, numbers in (("mean", self.means), ("least", self.low), ("largest", self.high)):
                    table[f"{what} {measure.name} of {group}"] = numbers[:, z, j].tolist()
        return {name: [plain(number) for number in numbers] for name, numbers in table.items()}

    def to_frame(self) -> Any:
        """The breakpoints as a pandas or Polars dataframe."""
        return table_maker("auto")({name: np.array(column) for name, column in self.to_dict().items()})


def band(
    line: Frontier,
    scores: Any,
    X: Table = None,
    y: Any = None,
    *,
    happiness: Any = None,
    sensitive_features: Any = None,
    loss: Any = "error",
    sample_weight: Any = None,
    weight_kind: WeightKind = None,
    cluster: Any = None,
    group_proba: Any = None,
    confidence: float = 0.95,
) -> Band:
    """Limits along a frontier from people it was not fitted on.

    Parameters
    ----------
    line : Frontier
        The policies.
    scores : array of shape (n, K), or (n,) for label policies
        What the model says about these people: probabilities, or predicted labels.
    X, y : table and array
        The people and their labels; X may be left out when nothing looks at it.
    happiness, sensitive_features, loss, sample_weight :
        As for :func:`felicific.aggregate`.
    weight_kind, cluster, group_proba :
        As for :func:`felicific.audit`.
    confidence : float, default=0.95
        With which the whole band holds.
    """
    if X is not None:
        count_rows(X)
        scores, y = (
            take_column(X, part, "the scores and labels") if isinstance(part, str) else part
            for part in (scores, y)
        )
    array = scores.to_numpy() if hasattr(scores, "to_numpy") else np.asarray(scores)
    if array.ndim == 0:
        raise DataError(
            f"The scores are {scores!r}.", "Pass one for every person, or X and the name of its column."
        )
    table = np.empty((len(array), 0)) if X is None else X
    n = count_rows(table)
    check_length(array, n, "scores")
    policy = line.policies_at(line.tau[:1])[0]
    problem = problem_of(
        policy.classes,
        decisions=policy.decisions_given,
        happiness=happiness,
        loss=loss,
    )
    if LOSES in (measure.name for measure in line.measures):
        problem = problem.with_worse_off
    if problem.measures != line.measures:
        raise DataError(
            f"The frontier measures {[c.name for c in line.measures]}, not {[c.name for c in problem.measures]}.",
            "Pass the happiness that the frontier was made with.",
        )
    policy.check_group_proba(group_proba)
    said = Roles(cluster=cluster, weight_kind=weight_kind, group_proba=group_proba).for_groups(line.groups)
    weight = check_weights(sample_weight, n)
    scored: dict[str, Any] = (
        {"predicted": array} if array.ndim == 1 and not policy.needs_proba else {"score": array}
    )
    people = policy.reading(
        People.of(
            table,
            problem,
            group=groups_of_present(table, sensitive_features, weight),
            y=y,
            weight=weight,
            weight_kind=said.weight_kind,
            cluster=said.column(table, "cluster"),
            group_proba=said.group_chances(table),
            groups=line.groups,
            attributes=policy.attributes,
            **scored,
        )
    ).with_scores

    def find(policy: Policy) -> Measured:
        return measured_of(policy.decided(people), problem)

    return band_of(line, find, confidence)


def band_of(line: Frontier, measured_of: Callable[[Policy], Measured], confidence: float) -> Band:
    """Limits at the breakpoints, which hold at all of them and everywhere between together.

    ``measured_of`` is what each policy does to people it was not fitted on.
    """
    alpha = 1.0 - check_confidence(confidence)
    refuse_fractions(line)
    tail = alpha / (2.0 * len(line.tau) * (len(line.groups) * len(line.measures) + 1))
    policies = line.policies
    known = [limits_of(measured_of(policy), tail) for policy in policies]
    means, low, high, loss, loss_low, loss_high = (np.array(part) for part in zip(*known, strict=True))
    one = policies[0]
    compared = compared_by(one.left_out, [measure.name for measure in line.measures], one.groups)
    limits = (means, low, high, loss, loss_low, loss_high)
    return Band(line.measures, line.groups, line.tau, *limits, confidence, compared)


def refuse_fractions(line: Frontier) -> None:
    """Refuse a frontier of fractions: between two of its points they are no straight lines."""
    for measure in line.measures:
        if measure.over:
            raise ConstraintError(
                f"There are no limits along a frontier of {measure.name!r}, which is a ratio: no straight line.",
                "Audit the policies that matter instead: audit(policy, ...).",
            )
