"""Solve: the policy of least loss that meets every requirement, without scikit-learn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from functools import partial
from importlib import import_module
from typing import Any, Literal, TypeAlias, cast

from felicific._people.columns import Columns, check_by_group
from felicific._people.find import labelled_people
from felicific._people.lazy import LazyPeople
from felicific._people.people import People
from felicific._people.worth import idle
from felicific._policy.cells import solve_cells
from felicific._policy.fit_individual import fit_individual
from felicific._policy.fit_lazily import fit_lazily
from felicific._policy.lottery import make_salt
from felicific._policy.policy import Policy
from felicific._problem.constraints import check_constraints, check_gaps, default_gap, requirements_of
from felicific._problem.decisions import predicts_amounts
from felicific._problem.happiness import HappinessLike
from felicific._problem.missing_labels import MissingLabelsLike, resolve_missing_labels
from felicific._problem.problem import Problem, problem_of
from felicific._problem.rows import Requirement
from felicific._program.aggregates import Aggregates
from felicific._program.change_cost import ChangeCost, check_change_cost
from felicific._program.signal_names import SignalLike, resolve_kind
from felicific._program.signals import Individual, Label, Signal
from felicific._program.sums import compute_aggregates
from felicific._typing import GapLike, LossLike, RandomState, Table
from felicific.exceptions import AggregatesError, DataError

#: What ``policy=`` may say.
Kind: TypeAlias = SignalLike | Literal["individual"] | Individual


def solve(
    source: Aggregates | Table,
    *,
    gap: GapLike = None,
    constraints: Iterable[Requirement] = (),
    change_cost: ChangeCost = "auto",
    sees_group: bool = True,
    random_state: RandomState = None,
    policy: Kind | None = None,
    score: Any = None,
    y: Any = None,
    sensitive_features: Any = None,
    happiness: HappinessLike | None = None,
    loss: LossLike = "error",
    classes: Sequence[Any] | None = None,
    decisions: Sequence[Any] | None = None,
    favourable: Any = None,
    predicted: Any = None,
    baseline: Any = None,
    sample_weight: Any = None,
    missing_group: str | None = None,
    group_proba: Mapping[Any, Any] | None = None,
    missing_labels: MissingLabelsLike = None,
    max_odds_ratio: float | None = None,
) -> Policy | Any:
    """Find the policy of least loss that meets every requirement: one linear program.

    Of equally good ones it is the one nearest to the baseline's decisions, even if another has a smaller gap;
    ``frontier(...).at(gap=...)`` finds that.

    Parameters
    ----------
    source : Aggregates, or table
        The sums over the labelled people, see :func:`felicific.aggregate`; or the people themselves. An individual
        policy of a table that is not in memory is found in passes inside its engine; its columns are then named, and
        calibration counts scores in 4096 bins.
    gap : number, or dict of measure or criterion to number
        Largest allowed gap, in the unit of happiness; measures that a dict does not name are measured and not
        constrained. By default 0, or nothing once there is a Gap or a Ratio among the ``constraints``.
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
    policy : {"score", "label", "soft-label", "individual"}, Score(...) or Individual(...)
        Of a table: what the policy sees besides the group; by default the score, or the label where there are no
        probabilities.
    score, y, sensitive_features, happiness, loss, classes, decisions, favourable, predicted, baseline, sample_weight,
    missing_group :
        Of a table: as for :func:`felicific.aggregate`.
    group_proba : {group: column}, optional
        Of a table: how likely each person is of each group, by a model of the group that was fitted on other people.
        An individual policy with ``sees_group=False`` infers the group from it.
    missing_labels : "at_random", "unknown" or MissingLabels(...), optional
        Of a table: what is known of why some labels are missing, as for :func:`felicific.aggregate`.
    max_odds_ratio : number of 1 or more, optional
        Instead of the ``max_odds_ratio`` of ``missing_labels``: how many fold reasons outside the table may have
        changed the odds of having a label. The loss, and what looks at the label, are then the worst case.

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
    >>> from felicific import solve
    >>> people = {
    ...     "sex": ["f", "f", "f", "f", "m", "m", "m", "m"],
    ...     "score": [0.1, 0.3, 0.6, 0.7, 0.2, 0.6, 0.8, 0.9],
    ...     "repaid": [0, 0, 1, 1, 0, 1, 1, 1],
    ... }
    >>> policy = solve(people, score="score", y="repaid", sensitive_features="sex",
    ...                happiness="statistical_parity", gap=0.0, random_state=0)
    >>> round(policy.loss, 6), max(policy.gaps.values()) < 1e-9
    (0.125, True)
    """
    if predicts_amounts(score, predicted, loss, decisions, policy) or is_of_amounts(source):
        # What decides amounts stands above this module.
        return import_module("felicific._amounts.doors").solve_amounts(
            source, gap=gap, constraints=constraints, change_cost=change_cost, sees_group=sees_group,
            random_state=random_state, policy=policy, predicted=predicted, score=score, y=y,
            sensitive_features=sensitive_features, happiness=happiness, loss=loss, classes=classes,
            decisions=decisions, favourable=favourable, baseline=baseline, sample_weight=sample_weight,
            missing_group=missing_group, group_proba=group_proba, missing_labels=missing_labels,
            max_odds_ratio=max_odds_ratio,
        )  # fmt: skip
    said = Said(
        policy,
        score,
        y,
        sensitive_features,
        happiness,
        loss,
        classes,
        favourable,
        predicted,
        baseline,
        sample_weight,
        missing_group,
        group_proba,
        missing_labels,
        decisions,
    )
    salt, listed = make_salt(random_state), check_constraints(constraints)
    gap, cost = default_gap(gap, listed), check_change_cost(change_cost)
    if isinstance(source, Aggregates):
        said.refuse_with_aggregates()
        source = source.completed(max_odds_ratio)
        check_sums(source)
        check_gaps(gap, listed, source.measures)
        requirements = requirements_of(gap, listed, source.measures)
        return solve_cells(source.joined(), requirements, sees_group=sees_group, salt=salt, change_cost=cost)
    kind = said.kind(source, sees_group)
    asked: dict[str, Any] = {"gap": gap, "constraints": listed, "sees_group": sees_group}
    with said.people(source, kind, **asked) as (people, problem):
        if not kind.sees_x:
            aggregates = compute_aggregates(people, problem, cast(Signal, kind)).completed(max_odds_ratio)
            aggregates.check_complete()
            return solve_cells(
                aggregates.joined(),
                problem.requirements,
                sees_group=sees_group,
                salt=salt,
                change_cost=cost,
                favourable=problem.favourable,
            )
        individual = cast(Individual, kind)
        if isinstance(people, LazyPeople):
            return fit_lazily(people, individual, salt, cost)
        # As on an engine, one look at every row before any search.
        compute_aggregates(people, problem, Label()).check_complete()
        return fit_individual(problem, people.with_scores, individual, salt, cost)[0]


def is_of_amounts(source: object) -> bool:
    """Whether something is the sums of people who are to be given amounts, whose class stands above this module."""
    return type(source).__module__ == "felicific._amounts.aggregates"


def check_sums(sums: Aggregates) -> None:
    """Raise unless sums are complete, and some decision changes every measure."""
    sums.check_complete()
    for measure, moves in zip(sums.measures, sums.moves, strict=True):
        if not moves:
            raise idle(measure.name, sums.decisions.tolist())


def check_inference(group_proba: Any, *, sees_x: bool, sees_group: bool) -> None:
    """Refuse probabilities of groups for a policy that does not infer the group."""
    if group_proba is None or (sees_x and not sees_group):
        return
    why = "the policy sees the group" if sees_group else "only an individual policy infers the group"
    raise DataError(
        f"group_proba= has no use: {why}.",
        "Leave group_proba= out, or use policy='individual' with sees_group=False.",
    )


@dataclass(frozen=True)
class Said:
    """What a user says of a table; see :func:`felicific.aggregate`."""

    policy: Kind | None
    score: Any
    y: Any
    sensitive_features: Any
    happiness: HappinessLike | None
    loss: LossLike
    classes: Sequence[Any] | None
    favourable: Any
    predicted: Any
    baseline: Any
    sample_weight: Any
    missing_group: str | None = None
    group_proba: Any = None
    missing_labels: MissingLabelsLike = None
    decisions: Sequence[Any] | None = None

    def refuse_with_aggregates(self) -> None:
        """Refuse what belongs to a table beside aggregates, which were summed up already."""
        for part in fields(self):
            value = getattr(self, part.name)
            if value is None or (part.name == "loss" and isinstance(value, str) and value == "error"):
                continue
            raise AggregatesError(
                f"Aggregates were summed up already, so {part.name}= comes too late.",
                (f"Pass {part.name}= to aggregate(...), or p" if part.name != "group_proba" else "P")
                + "ass the table instead of its aggregates.",
            )

    def kind(self, table: Table, sees_group: bool) -> Signal | Individual:
        """What the policy is to see; of a table of which nothing is said, that is refused first."""
        if self.happiness is None and self.y is None and self.score is None and self.predicted is None:
            raise AggregatesError(
                f"This is a {type(table).__name__}, not aggregates.",
                "Name its columns: score=..., y=..., sensitive_features=..., happiness=...; "
                "or pass aggregate(table, ...).",
            )
        kind = resolve_kind(self.policy, self.score)
        check_inference(self.group_proba, sees_x=kind.sees_x, sees_group=sees_group)
        if kind.sees_x and not sees_group and self.group_proba is None:
            raise DataError(
                "An individual policy that decides without the group infers it, and nobody said how likely each is.",
                "Name its columns, group_proba={group: column}; or use policy='score', or FairClassifier, which fits a "
                "model of the group.",
            )
        check_by_group(self.group_proba)
        return kind

    def people(
        self, table: Table, kind: Signal | Individual, **asked: Any
    ) -> AbstractContextManager[tuple[People | LazyPeople, Problem]]:
        """The people, and what is ``asked`` of decisions."""
        columns = Columns(
            self.sensitive_features,
            self.y,
            self.score,
            self.predicted,
            self.baseline,
            weight=self.sample_weight,
            missing_group=self.missing_group,
            group_proba=self.group_proba,
            missing_labels=resolve_missing_labels(self.missing_labels),
            listed=self.decisions is not None,
        )
        problem = partial(
            problem_of,
            decisions=self.decisions,
            happiness=self.happiness,
            loss=self.loss,
            favourable=self.favourable,
            **asked,
        )

        return labelled_people(table, columns, problem, self.classes)
