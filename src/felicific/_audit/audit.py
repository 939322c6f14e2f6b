"""Audit: what decisions do to groups of people, with how sure one can be of it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from felicific._audit.amounts import (
    are_numbers,
    note_of,
    note_of_classes,
    numeric_kind,
    range_of_amounts,
    reason_for_amounts,
    reason_in_numbers,
    reason_on_engine,
    with_parity,
)
from felicific._audit.decided import (
    Beside,
    amounts_by,
    as_decisions,
    beside_policy,
    checked_columns,
    decided_by,
    decides_amounts,
    find_classes,
    has_policy,
    in_order,
    last_step,
    means_without,
    predicts_numbers,
    scored_by,
    without_policy,
)
from felicific._audit.measure_people import measured_of, summed_of
from felicific._audit.measured import Measured, only_comparing
from felicific._audit.methods import audit_of
from felicific._audit.missing import Scored, notes_of, with_beliefs
from felicific._audit.requirements import judged
from felicific._audit.result import Audit
from felicific._audit.words_of_verdicts import one_look
from felicific._people.checks import WeightKind, check_length, check_weights, level_outside, warn_repeated
from felicific._people.lazy import (
    LazyPeople,
    Missing,
    classes_on,
    distinct_labels,
    missing_first,
    missing_values,
)
from felicific._people.people import People
from felicific._people.roles import Roles, without_missing
from felicific._policy.lottery import faces_lottery
from felicific._policy.policy import Policy, policy_of
from felicific._problem.constraints import check_constraints, happiness_of
from felicific._problem.happiness import HappinessLike
from felicific._problem.missing_labels import MissingLabelsLike, resolve_missing_labels
from felicific._problem.numeric import NumericProblem
from felicific._problem.problem import Problem, problem_of
from felicific._problem.unions import Whom, check_groups, check_min_people
from felicific._problem.worse_off import measuring
from felicific._statistics.intervals import check_confidence
from felicific._tables.engine import Engine, find_engine
from felicific._tables.groups import attributes_of, groups_of_present
from felicific._tables.memory import (
    as_objects,
    column_names,
    count_rows,
    null_rows,
    select_columns,
    take_column,
    take_rows,
)
from felicific._typing import Array, Floats, GapLike, LossLike, Table
from felicific.exceptions import DataError, GroupWarning

#: What is said of probabilities that are audited as they are.
LOTTERY = (
    "The decisions are probabilities, so everybody is taken to face a lottery with them. If they are what a model "
    "believes, and not the chances of a lottery, pass what it decides: model.predict(X)."
)


def audit(
    decided: Any,
    X: Table = None,
    y: Any = None,
    *,
    happiness: HappinessLike | None = None,
    sensitive_features: Any = None,
    gap: GapLike = None,
    min_people: float = 0,
    groups: Sequence[Any] | None = None,
    decisions: Sequence[Any] | None = None,
    loss: LossLike | None = None,
    baseline: Any = None,
    score: Any = None,
    predicted: Any = None,
    missing_labels: MissingLabelsLike = None,
    sample_weight: Any = None,
    weight_kind: WeightKind = None,
    cluster: Any = None,
    confidence: float = 0.95,
) -> Audit:
    """Measure what decisions do to groups of people, with intervals.

    Parameters
    ----------
    decided : fitted FairClassifier, any fitted classifier, Policy, array of shape (n,) or (n, K), or column name
        Who or what decides: a FairClassifier and a Policy are audited by their decision probabilities, so that their
        lottery adds no noise; another classifier by its ``predict``. Or what any system decided: one decision per
        person, or the probabilities of every decision (a lottery, not what a model believes: a note says so), or the
        name of the column of X that holds the decisions. A regressor decides amounts, and numbers may be amounts: see
        ``decisions``.
    X : table, optional
        The people. May be left out when no happiness looks at ``x`` and the groups are given. One that is not in
        memory (see :func:`felicific.aggregate`) is summed up by its engine; the other arguments then name columns, and
        what decides is a column or a Policy.
    y : array of shape (n,) or column name, optional
        Labels; of amounts, numbers. May be left out when no happiness looks at them; the loss is then not audited.
    happiness, sensitive_features :
        As for :class:`FairClassifier`; what is left out is taken from the FairClassifier that is audited, the groups of
        a Policy from the columns that it remembers. Happiness of amounts gets ``decision`` as an array, one for every
        row; ``"distributional_parity"`` compares the distributions of the groups (the Kolmogorov-Smirnov distance).
    gap : number, or dict of measure or criterion to number, optional
        Tests whether the gap is at most this, for one look; by default the ``gap`` of the FairClassifier.
    min_people : number, default=0
        Groups of whom a measure counts fewer people, or below 1 a smaller share, are measured, named and not compared.
        Those of fewer than 30 are marked in any case.
    groups : list, optional
        Who is compared, if not all groups; the others are measured.
    decisions : list, or (low, high), optional
        A list names all decisions, from the worst to the best for the person, in the order of the columns of decision
        probabilities; by default they are the classes, in their order, or those of the policy that is audited. A tuple
        of two numbers says that the decisions are amounts (hours, limits, rates) and that all of them, now and of
        anybody, lie between these: others are refused, and intervals of the mean amount are distribution-free;
        ``(-math.inf, math.inf)`` says amounts alone. Without either, numbers are amounts where some are no whole
        numbers, there are more than 20 different ones, or distributional parity or a loss of numbers is asked for; a
        note says which was taken.
    loss : optional
        As for :class:`FairClassifier`, or as the FairClassifier that is audited has it; by default the error rate. Of
        amounts ``"squared"``, the default, or ``"absolute"``, ``"quantile:0.9"``, a function or an expression.
    baseline : array of shape (n,) or column name, optional
        What the existing system decides, for a happiness that asks for it, and to compare with; by default what the
        model predicts by which a Policy or a FairClassifier decides.
    score, predicted : as for :func:`felicific.aggregate`, optional
        The scores, or the model's own decisions, by which a Policy decides; by default the columns that it remembers.
    missing_labels : "at_random", "unknown" or MissingLabels(...), optional
        What is known of why some labels are missing; by default what the FairClassifier that is audited says. Means
        that look at labels are then debiased. How likely somebody was to have a label is told by a column of
        probabilities, by the model, by its score or, of plain decisions, by what was decided; with ``max_odds_ratio``
        of more than 1 every number that looks at labels also has ``bounds``. A table that is not in memory has to be
        collected first.
    sample_weight : array of shape (n,) or column name, optional
        Weights of the rows.
    weight_kind : {"frequency", "sampling"}, optional
        Whether weight 2 means that two such people were seen, or that one was who stands for two. Sampling weights add
        no evidence: intervals go by how much weighted rows vary (linearised variance). Whole weights whose sum is at
        most 10 times the rows are frequencies unless said; other weights have to be said.
    cluster : array of shape (n,) or column name, optional
        What rows have in common that are not independent: a person with several rows, a branch. Intervals and tests
        then go by how much clusters vary.
    confidence : float, default=0.95
        With which every interval is to hold the truth: that of each group's mean by itself, that of a gap for all
        groups together. Whoever reads several gaps at once divides: ``1 - 0.05 / 6`` for six. Rates are exact
        (Clopper-Pearson, and the score test of two rates), what has ``bounds`` is by bets on people, for any
        distribution, and the rest by large samples: that its gap is at most so much cannot be shown.

    Returns
    -------
    Audit
        Print it, or read ``.measures``, ``.gaps``, ``.ratios``, ``.loss``, ``.to_dict()``, ``.to_frame()``; of a
        policy with requirements, ``.requirements`` says of each whether these people meet it.

    Notes
    -----
    Intervals speak of people like these: independent, and not those on whom the model or the policy was fitted. Rows
    that a FairClassifier was fitted on are recognised: a FittedRowsWarning and a note say so. A FairClassifier and a
    Policy are also compared with the model's own decisions about the same rows, or with ``baseline``: a note says when
    every group loses, or when there is nothing to repair.

    Examples
    --------
    >>> from felicific import audit
    >>> people = {"sex": ["f", "m"] * 50, "approved": [0, 1, 1, 1] * 25, "loan": [10, 20, 30, 40] * 25}
    >>> result = audit("approved", people, happiness={"funding": "decision * loan"}, sensitive_features="sex")
    >>> part = result["funding"]
    >>> part.gap.estimate, part.gap.low < 15 < part.gap.high
    (15.0, True)
    >>> round(part.means["f"].low, 1), round(part.means["f"].high, 1)
    (10.7, 19.3)
    """
    confidence = check_confidence(confidence)
    whom = Whom(None, check_min_people(min_people), check_groups(groups))
    said = None if missing_labels is None else resolve_missing_labels(missing_labels)
    columns = Roles(
        sensitive_features,
        y,
        score,
        predicted,
        baseline,
        decided=decided if isinstance(decided, str) else None,
        weight=sample_weight,
        cluster=cluster,
        weight_kind=weight_kind,
        missing_labels=said,
    )
    asked = Asked(happiness, sensitive_features, loss, gap, decisions)
    policy = policy_of(decided)
    columns = checked_columns(policy, columns, X, asked)
    engine, beside, lottery, labels = find_engine(X), Beside(), False, None
    if engine is not None:
        persons, problem, means = _on_engine(engine, policy, decided, columns, asked)
    else:
        with missing_first(X, columns):
            if policy is None:
                people, problem, beside, scored = by_decisions(decided, X, columns, asked)
            else:
                people, problem, scored = by_policy(policy, X, columns, asked)
            if people.missing is not None:
                people, labels = with_beliefs(people, problem, scored or Scored())
            persons = measured_of(people, problem)
            classes_baseline = people.knows_baseline and (policy is not None or people.baseline is not None)
            compared = people.amounts_baseline is not None or classes_baseline
            means = means_without(people, problem) if compared else None
            drawn = people.probabilities is not None and bool(faces_lottery(people.probabilities).any())
            lottery = drawn and policy is None and not hasattr(decided, "predict")
    parity = problem.parity if isinstance(problem, NumericProblem) else ""
    persons = only_comparing(persons, whom, parity)
    known = () if policy is None else policy.groups
    problem.check_groups([*known, *(group for group in persons.groups if group not in known)])
    widths, spared = _judged(problem, persons.idle)
    if means is not None:
        beside = replace(beside, means=means) if policy is None else beside_policy(policy, persons, means)
        beside = replace(beside, baseline=columns.baseline is not None)
    found = audit_of(
        persons,
        widths,
        confidence=confidence,
        loss_name=problem.loss.name,
        unlabelled=asked.unlabelled,
    )
    if isinstance(problem, NumericProblem):
        found = with_parity(found, problem)
    found = replace(found, labels=labels)
    decider = policy or beside.policy
    if decider is not None:
        found = replace(found, requirements=judged(found, decider, means))
    shown = all(part.test is None or part.test.verdict == "at most" for part in found.measures)
    alone = _alone(persons)
    if alone:
        widths = [math.inf] * len(widths)
        warnings.warn(alone, GroupWarning, stacklevel=level_outside())
    notes = [
        *asked.notes,
        *([LOTTERY] if lottery else []),
        *([alone] if alone else []),
        *spared,
        *found.notes,
    ]
    notes += [] if labels is None else notes_of(labels)
    notes += beside.notes(persons, widths, shown)
    look = "" if alone else _one_look(found, of_amounts=problem.of_amounts)
    return replace(found, notes=tuple(notes), one_look=look)


def _judged(problem: Problem, idle_ones: Sequence[str]) -> tuple[list[float], list[str]]:
    """Gaps to test, and what is said of happiness that never asks for the decision, of which none is tested.

    One that asks for it may be the same whatever is decided because of who was sampled: that is said too.
    """
    widths, notes = list(problem.widths), []
    for j, happiness in enumerate(problem.happiness):
        if str(happiness.name) not in idle_ones:
            continue
        if "decision" in happiness.asks:
            decided = "amount" if problem.of_amounts else f"decision of {problem.decisions.tolist()}"
            notes.append(
                f"No {decided} changes {happiness.name!r} of anybody in these rows. If that is no chance, a name in it "
                "is mistyped."
            )
            continue
        widths[j] = math.inf
        notes.append(
            f"{happiness.name!r} does not ask for the decision, so no decision changes it: it is measured, and not "
            "judged."
        )
    return widths, notes


def _one_look(found: Audit, *, of_amounts: bool) -> str:
    """What is said where gaps are tested: how sure it is holds for one test, and not for many of them."""
    allowed = [part.test.at_most for part in found.measures if part.test is not None]
    usual = found.confidence == 0.95
    return one_look(allowed, by_default=usual, of_amounts=of_amounts)


def _alone(persons: Measured) -> str:
    """What is said where there is one group only."""
    if len(persons.groups) > 1:
        return ""
    return (
        f"There is one group only: {persons.groups[0]!r}. A gap is between groups, and there is none: pass rows of at "
        "least two."
    )


@dataclass
class Asked:
    """What is to be measured; a FairClassifier fills in what was not said."""

    happiness: Any
    sensitive_features: Any
    loss: Any
    gap: Any
    decisions: Any
    classes: Any = None

    constraints: Any = ()
    unlabelled: int = 0
    amount_bounds: tuple[float, float] | None = None
    takes_amounts: bool = True
    notes: tuple[str, ...] = ()

    def are_amounts(self, array: Array, y: Array | None, *, regressor: bool) -> bool:
        """Whether decisions are amounts: it was said, or they are numbers and something says so, which is noted."""
        if self.amount_bounds is not None or (regressor and self.takes_amounts):
            return True
        if (
            not self.takes_amounts
            or self.classes is not None
            or self.decisions is not None
            or not are_numbers(array)
        ):
            return False
        reason = reason_for_amounts(self.happiness, self.loss)
        reason = reason or reason_in_numbers(array, _known_labels(y))
        return self.noted(reason, lambda: len(np.unique(np.delete(array, null_rows(array)).astype(float))))

    def about_amounts(
        self, array: Array, y: Array | None, columns: Roles
    ) -> tuple[NumericProblem, Array | None]:
        """What is asked of amounts, and the labels, unless some are missing that nobody has to know."""
        if array.ndim != 1:
            raise DataError(
                f"The amounts have shape {array.shape}.",
                "Pass one amount per person; several outputs are audited one by one.",
            )
        problem = self.problem_of_amounts(columns, labelled=y is not None)
        return problem, None if self.drops_labels(y, problem, columns) else y

    def about_classes(
        self, classes: Array, y: Array | None, columns: Roles, policy: Policy | None
    ) -> tuple[Problem, Array | None]:
        """The same of decisions that are classes."""
        problem = self.problem(classes, labelled=y is not None, policy=policy)
        if self.drops_labels(y, problem, columns):
            return self.problem(classes, labelled=False, policy=policy), None
        return problem, y

    def noted(self, reason: str, distinct: Callable[[], int]) -> bool:
        """Whether there is a reason to take numbers for amounts; a note says which was taken, unless there are two."""
        self.notes = (note_of(reason),) if reason else note_of_classes(distinct())
        return bool(reason)

    def problem_of_amounts(self, columns: Roles, *, labelled: bool) -> NumericProblem:
        """What is asked of amounts."""
        refused = {
            "decisions=[...]": (self.decisions, "Leave it out: happiness says what people want."),
            "missing_labels=": (
                columns.missing_labels,
                "Leave y= out, or audit the people who have a label.",
            ),
        }
        for name, (given, what_to_do) in refused.items():
            if given is not None:
                raise DataError(
                    f"{name} is for decisions that are classes, and these are amounts.", what_to_do
                )
        bounds = self.amount_bounds
        finite = bounds if bounds is not None and math.isfinite(bounds[0]) else None
        about: Any = {"loss": self.loss, "gap": self.gap, "bounds": finite}
        made = NumericProblem.measuring(self.happiness, **about)
        if labelled or not (self.said_loss and made.loss.looks_at_y):
            return made
        raise DataError(f"The loss {made.loss.name!r} looks at the label y, and there is none.", "Pass y.")

    def problem(self, classes: Array, *, labelled: bool, policy: Policy | None = None) -> Problem:
        """What is asked of decisions between these classes; a policy says what its requirements speak of besides.

        One whose decisions have an order of their own says these too.
        """
        decisions = self.decisions
        if decisions is None and policy is not None:
            decisions = policy.decisions_given
        asked = partial(
            problem_of,
            classes,
            decisions=decisions,
            happiness=self.happiness,
            loss="error" if self.loss is None else self.loss,
        )
        constraints = self.constraints
        if policy is not None and not constraints and any(one.aside for one in policy.measures):
            constraints = measuring(policy.measures, asked().happiness)
        found = asked(constraints=constraints, gap=self.gap)
        return found if labelled else found.unlabelled

    def __post_init__(self) -> None:
        self.said_loss = self.loss is not None
        self.amount_bounds = range_of_amounts(self.decisions)
        self.decisions = None if self.amount_bounds is not None else self.decisions

    def needs_labels(self, problem: Problem, columns: Roles) -> bool:
        """Whether missing labels are an error if nobody says why: not where only a loss that nobody named needs any."""
        said = self.said_loss or columns.missing_labels is not None
        return said or any(happiness.looks_at_y for happiness in problem.happiness)

    def drops_labels(self, y: Array | None, problem: Problem, columns: Roles) -> bool:
        """Whether labels are left out, since some are missing and nothing but such a loss needs them."""
        if y is None or self.needs_labels(problem, columns):
            return False
        self.unlabelled = len(null_rows(y))
        return bool(self.unlabelled)

    def fill(self, settings: Any) -> None:
        """Take what was not said from a FairClassifier, which remembers the groups that ``fit`` named."""
        if self.happiness is None:
            listed = check_constraints(settings.constraints)
            self.constraints = listed if self.gap is None else tuple(one.opened() for one in listed)
            self.happiness = happiness_of(settings.happiness, listed)
        if self.decisions is None and has_policy(settings) and not decides_amounts(settings):
            self.decisions = settings.policy_.decisions_given
        for name in ("sensitive_features", "loss"):
            own = name + "_" * (name == "sensitive_features")
            if getattr(self, name) is None:
                setattr(self, name, getattr(settings, own))
        if self.gap is None:
            self.gap = settings.gap


def _on_engine(
    engine: Engine, policy: Policy | None, decisions: Any, columns: Roles, asked: Asked
) -> tuple[Measured, Problem, Floats | None]:
    """The people of a table that is not in memory, by the names of their columns.

    Also group means of the baseline, where that is said, or by the model itself, if a policy is audited.
    """
    if columns.missing_labels is not None and columns.y is not None:
        raise DataError(
            "Missing labels are audited person by person, and the table is not in memory.",
            "Collect the table first, or name the file on the command line.",
        )
    if policy is None and not isinstance(decisions, str):
        raise DataError(
            f"The decisions are a {type(decisions).__name__}, and the table is not in memory.",
            "Name the column that holds them (policy.apply(table, ...) makes one), or pass a Policy (fair.policy_ is "
            "one) and score=.",
        )
    columns.names_only()
    y = columns.y
    if policy is None and _amounts_on(engine, columns, asked):
        return _amounts_on_engine(engine, columns, asked)
    known = decided_classes(engine, policy, columns, asked)
    problem = asked.problem(known, labelled=columns.y is not None, policy=policy)

    def summed(columns: Roles, problem: Problem) -> tuple[Measured, Floats | None]:
        return summed_of(LazyPeople.of(engine, columns, problem, policy=policy), policy)

    try:
        persons, means = summed(columns, problem)
    except DataError:
        asked.unlabelled = 0 if y is None or asked.needs_labels(problem, columns) else _gone(engine, columns)
        if not asked.unlabelled:
            raise
        problem = asked.problem(known, labelled=False, policy=policy)
        persons, means = summed(replace(columns, y=None), problem)
    return persons, problem, means


def decided_classes(engine: Engine, policy: Policy | None, columns: Roles, asked: Asked) -> Array:
    """The decisions that there are: as they are named, else those of the policy, or those that were taken."""
    classes = asked.classes if policy is None else policy.classes.tolist()
    if classes is None:
        y, weight = columns.y, columns.weight
        taken = as_objects(distinct_labels(engine, str(columns.decided), weight, "the decisions"))
        labels = None if y is None else as_objects(distinct_labels(engine, y, weight, "y"))
        classes = find_classes(taken, labels, None, asked.decisions)
    return classes_on(engine, columns, classes)


def _amounts_on(engine: Engine, columns: Roles, asked: Asked) -> bool:
    """Whether a column of decisions holds amounts."""
    engine.index(str(columns.decided), "the decisions")
    if asked.amount_bounds is not None:
        numeric_kind(engine, columns)
        return True
    if asked.decisions is not None or engine.kind(str(columns.decided), "the decisions") not in (
        "whole",
        "real",
    ):
        return False
    reason, distinct = reason_on_engine(engine, columns)
    return asked.noted(reason_for_amounts(asked.happiness, asked.loss) or reason, lambda: distinct)


def _amounts_on_engine(
    engine: Engine, columns: Roles, asked: Asked
) -> tuple[Measured, Problem, Floats | None]:
    """The people of a table that is not in memory, about whom amounts are decided."""
    problem = asked.problem_of_amounts(columns, labelled=columns.y is not None)
    if columns.y is not None and not asked.needs_labels(problem, columns):
        asked.unlabelled = _gone(engine, columns)
        columns = replace(columns, y=None) if asked.unlabelled else columns
    persons, means = summed_of(LazyPeople.of(engine, columns, problem))
    return persons, problem, means


def _gone(engine: Engine, columns: Roles) -> int:
    """In how many rows of a table that is not in memory the label is missing."""
    y, weight = str(columns.y), columns.weight
    names = [y, *([] if weight is None else [weight])]
    work = partial(missing_values, {y: "y"}, weight, [y])
    missing: Missing | None = engine.fold(work, Missing.__add__, names)
    return 0 if missing is None else missing.counts.get(y, 0)


def by_decisions(
    decisions: Any, X: Table, columns: Roles, asked: Asked
) -> tuple[People, Problem, Beside, Scored | None]:
    """People in memory, about whom something is decided by a classifier or was by anything else."""
    decides = not isinstance(decisions, str) and hasattr(decisions, "predict")
    if decisions is None or not (decides or isinstance(decisions, str) or hasattr(decisions, "__len__")):
        raise DataError(
            "There are no decisions."
            if decisions is None
            else f"{decisions!r} is no decision about each person.",
            "Pass a fitted classifier, or an array of decisions.",
        )
    if decides and X is None:
        raise DataError("A classifier is audited on people, and X is None.", "Pass X.")
    passed, fair, settings, known, own = asked.sensitive_features, False, decisions, Beside(), None
    problem: Problem
    regressor = decides and predicts_numbers(decisions)
    if decides:
        settings = last_step(decisions)
        if asked.classes is None and not regressor:
            asked.classes = settings.classes_
        fair = has_policy(settings) or decides_amounts(settings)
        if fair:
            asked.fill(settings)
            if columns.baseline is None:
                columns = replace(columns, baseline=settings.baseline_of(X))
            if columns.missing_labels is None and settings.missing_labels is not None:
                columns = replace(columns, missing_labels=resolve_missing_labels(settings.missing_labels))
    y, cluster, now = (columns.column(X, role) for role in ("y", "cluster", "baseline"))
    if isinstance(decisions, str):
        decisions = columns.column(X, "decided")
    table = np.empty((len(decisions), 0)) if X is None else X
    n = count_rows(table)
    label_proba = None if y is None or not len(null_rows(y)) else columns.label_proba_in(X)
    array = None if decides else as_decisions(decisions, n)
    counted = {"labels y": y, "clusters": cluster, "baseline decisions": now, "label_proba": label_proba}
    for what, part in counted.items():
        check_length(part, n, what)
    weight = check_weights(columns.column(X, "weight"), n)
    rows = np.arange(n) if weight is None or weight.all() else np.flatnonzero(weight)
    named, only = asked.sensitive_features, fair and passed is None
    group = groups_of_present(table, named, weight, only, fresh=True)
    attributes = attributes_of(table, named, only)
    if len(rows) < n:
        # Weight 0 is the row absent: not even a model is asked about it.
        table, group = take_rows(table, rows), group[rows]
        y, weight, cluster, now, label_proba = (
            None if part is None else part[rows] for part in (y, weight, cluster, now, label_proba)
        )
        array, passed = None if array is None else array[rows], group if passed is not None else None
    if array is None and fair and regressor:
        array = as_decisions(amounts_by(decisions, table, passed), len(rows))
    elif array is None:
        array = as_decisions(decided_by(decisions, table, passed, by_proba=fair), len(rows))
    if fair:
        own, shares = without_policy(decisions, table)
        decider = None if regressor else settings.policy_
        if decider is not None and own is not None and settings.decisions is not None:
            # Else nobody named the baseline.
            own = own if set(own.tolist()) <= set(settings.decisions_.tolist()) else None
        known = Beside(None, *shares, decider is not None and decider.basis.out_of_fold, policy=decider)
    classes = None
    if asked.are_amounts(array, y, regressor=regressor):
        problem, y = asked.about_amounts(array, y, columns)
    else:
        classes = find_classes(array, _known_labels(y), asked.classes, asked.decisions)
        problem, y = asked.about_classes(classes, y, columns, known.policy)
        array = array if decides else in_order(array, asked.decisions, problem.decisions)
    if X is None:
        problem.refuse_x()
    if fair and settings.key in column_names(table):  # a pipeline may make it later
        warn_repeated(take_column(table, settings.key, "key"), cluster)
    people = People.of(
        table,
        problem,
        group=group,
        y=y,
        decided=array,
        baseline=own if now is None else now,
        weight=weight,
        weight_kind=columns.weight_kind,
        cluster=cluster,
        rows=rows,
        attributes=attributes,
        missing=columns.missing_labels,
        label_proba=label_proba,
    )
    people = replace(people, drawn=settings.policy_.is_randomized) if fair and not regressor else people
    if people.missing is None or people.labels is None or people.labelled.all():
        return people, problem, known, None
    if decides and classes is not None:
        return people, problem, known, scored_by(decisions, table, classes, fair=fair)
    return people, problem, known, Scored(features=None if X is None else _beside_roles(table, columns))


def _beside_roles(table: Table, columns: Roles) -> Table:
    """The columns that play no role."""
    roles = columns.named_in(table)
    return select_columns(table, [name for name in column_names(table) if name not in roles], "label_proba")


def _known_labels(y: Array | None) -> Array | None:
    """The labels that are there."""
    return None if y is None else np.asarray(without_missing(y, None))


def by_policy(policy: Policy, X: Table, columns: Roles, asked: Asked) -> tuple[People, Problem, Scored]:
    """People in memory, about whom a policy decides."""
    weight = columns.weights_in(X)
    classes = columns.classes_in(X, policy.classes.tolist(), weight)
    labelled = columns.y is not None
    problem = asked.problem(classes, labelled=labelled, policy=policy)
    y = columns.column(X, "y")
    if asked.drops_labels(y if y is None or weight is None else y[weight > 0], problem, columns):
        columns, problem = replace(columns, y=None), asked.problem(classes, labelled=False, policy=policy)
    columns = columns.for_groups(policy.groups)
    people = policy.reading(People.of(X, problem, **columns.read(X, classes, weight)))
    # Values of a decision function tell nothing of how likely labels are.
    return policy.decided(people), problem, Scored(None if policy.of_values else people.with_scores.score)


# ---------------------------------------------------------------------------------------------------------
# From people to intervals
