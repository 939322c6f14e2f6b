"""FairClassifier: a scikit-learn classifier around any other, wiring only."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Self, cast

import numpy as np
from sklearn.base import ClassifierMixin, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from felicific._people.checks import (
    WeightKind,
    check_inference,
    check_length,
    check_weights,
    decision_values,
    level_outside,
    predict_proba,
    repeated,
    warn_repeated,
)
from felicific._people.roles import Roles
from felicific._people.sketch import RowSketch
from felicific._policy.lottery import PROBA_REPEAT, content_keys, draw, make_salt
from felicific._problem.change import baseline_words
from felicific._problem.constraints import check_constraints, refuse_nothing
from felicific._problem.decisions import as_decisions
from felicific._problem.missing_labels import (
    MissingLabels,
    MissingLabelsLike,
    check_max_odds_ratio,
    resolve_missing_labels,
)
from felicific._problem.problem import Problem, problem_of
from felicific._problem.unions import compared_by, whom_left_out
from felicific._program.change_cost import ChangeCost, check_change_cost
from felicific._program.signal_names import choose_policy, resolve_policy
from felicific._shown.parts import Lines, Part
from felicific._sklearn.base import FairEstimator
from felicific._sklearn.beliefs import check_given, fit_label_model, learns, refuse_ends
from felicific._sklearn.inputs import (
    Intake,
    Rows,
    ScoreColumns,
    check_labels,
    columns_of,
    content_of,
    fit_model,
    given_labels,
    label_proba_in_table,
    labels_of,
    parts_of,
    present_labels,
    present_rows,
    present_splits,
)
from felicific._statistics.intervals import check_confidence
from felicific._tables.groups import encode_groups, find_groups, named_columns, refuse_identifiers
from felicific._tables.memory import (
    as_vector,
    column_names,
    count_rows,
    encode,
    is_frame,
    null_rows,
    one_row,
    take_column,
    take_rows,
    unwidened,
)
from felicific._typing import Lazy
from felicific.exceptions import ClusterWarning, ConstraintError, DataError, LotteryWarning, PolicyWarning

if TYPE_CHECKING:
    from felicific._audit.band import Band
    from felicific._audit.verdict import Verdict
    from felicific._fit.certificate import Certificate, WorseOffRow
    from felicific._fit.fitted import Fitted
    from felicific._fit.tryout import Tryout
    from felicific._frontier.curve import Curve
    from felicific._frontier.frontier import Frontier
    from felicific._people.people import People
    from felicific._policy.explanation import Explanation
    from felicific._policy.policy import Policy
    from felicific._policy.solve import Kind
    from felicific._problem.happiness import HappinessLike
    from felicific._problem.requirement import Requirement
    from felicific._program.aggregates import Aggregates, Outcome
    from felicific._program.signals import Individual, Score, Signal
    from felicific._report.document import Report
    from felicific._tables.memory import Entries
    from felicific._typing import Array, Floats, GapLike, LossLike, RandomState, Table, Truths


#: Where everything is that was fitted.
FITTED = "print(fair), fair.verdict_ and fair.policy_ say more."


class FairClassifier(ClassifierMixin, FairEstimator):  # type: ignore[misc]  # untyped bases
    """Change a classifier's decisions as little as needed to bring groups' happiness together.

    Solves, over policies q(decision given signal, group), the linear program: least expected loss subject to
    every measure's gap (largest minus smallest group mean of happiness) being at most ``gap``.

    Parameters
    ----------
    estimator : classifier, or column(s) of X
        A fitted classifier as ``FrozenEstimator(model)``: every row passed to ``fit`` is then used to fit the
        policy, so they should be rows that the model was not trained on. Or an unfitted classifier: it is
        cross-fitted (``cv``), the policy is fitted on the held-out predictions, and the model on all rows. Or the
        column of X that holds the probabilities of the last class, or a list of columns in the order of the sorted
        classes: whoever has scores and no model needs nothing else.
    happiness : function, Happiness, criterion name, expression, or list or dict of them
        What makes a person happy with a decision, in real units; an expression is text such as
        ``"decision * loan"``. May be left out where ``constraints`` name one.
    gap : number, or dict of measure or criterion to number, optional
        Largest allowed gap, in the unit of happiness. With a dict, measures it does not name are measured
        and not constrained. Groups of whom a measure counts fewer than 30 people are measured and not compared, and
        the output names them; ``Gap(..., min_people=..., groups=[...])`` among the ``constraints`` says who is
        compared. By default no gap is limited, and there have to be ``constraints``; ``{}`` asks for nothing.
    sensitive_features : column(s) of X, callable, or None
        Which group a person belongs to; several columns mean their intersections, and ``between=`` of a requirement
        says which of them are compared. With None, pass
        ``sensitive_features=`` to ``fit``, which remembers the names of columns; values are passed to ``predict`` too.
    constraints : sequence of Gap, Ratio, Floor, Budget, WorseOff and Exploration
        Further requirements. Of several gaps of a measure between the same groups the smallest counts.
    loss : "error", "squared", "absolute", "quantile:0.9", "changes", cost matrix, function or expression
        What a decision costs the decision maker; by default "error". A cost matrix has a row for every class and a
        column for every decision. "squared", "absolute" and "quantile:0.9" (the pinball loss) are of numbers. "changes"
        counts decisions that are not the baseline's and nothing else: with a frozen model and happiness that does not
        look at the label, ``fit`` then needs no ``y``.
    change_cost : "auto" or number, default="auto"
        What a decision that is not the baseline's costs beside the loss, in its unit; ``loss_`` is without it. A number
        is charged for every changed decision; 0 makes changes free. "auto" is for the score of two classes and the
        error rate: 0.1, and 2 times the share of the group that stands between the person and the baseline's border.
        Few people then face a lottery. Elsewhere, and where labels are missing, "auto" is 0.
    policy : {"auto", "score", "individual", "label", "soft-label"}, Score(...) or Individual(...), default="auto"
        What the policy sees of a person besides the group: the score bin, all of x, the predicted label,
        or a label drawn from the probabilities (the paper's). "auto" takes the score for two classes and a group that
        is seen, and all of x for more classes or ``sees_group=False``. Of a model without ``predict_proba`` it
        takes bins of its decision function, cut between the fitted people; or the label where it has none, there are
        more than two classes, or labels may be missing. ``policy_.kind`` and the printed object say which.
    sees_group : bool, default=True
        False when the group is known at fit only: the policy then decides without it; an individual policy infers
        it from x (``group_proba``). ``cost_of_blindness_`` says what that costs.
    decisions : sequence, optional
        What may be decided, **from the worst to the best for the person**: strings, whole numbers, floats or booleans,
        such as ``["refuse", "refer", "approve"]`` or the rates ``[8, 6, 4]``. By default the classes, in their order;
        ``[1, 0]`` says that 0 is the good one. Decisions that are not the classes may only become better in one
        direction of the score: the one in which a cost matrix makes better decisions cheaper, else with the score of
        the last class. ``predict`` then returns decisions, and ``predict_proba`` has a column for each of them.
    baseline : column of X, or callable of X, optional
        What was really decided, the baseline; ``fit`` and ``report`` also take it as an array. By default what the
        model predicts, if all of its classes are decisions; otherwise nothing is known of the baseline, and what
        compares with it is left out, or refused. The model does not see the column, and predicting does not need it.
    missing_labels : "at_random", "unknown" or MissingLabels(...), optional
        What is known of why some labels are missing; see :class:`felicific.MissingLabels`. An estimator that is not
        frozen is fitted on people with a label, and the policy on everybody. By default a missing label is an error,
        where something looks at it.
    confidence : float, optional
        Returns only a policy whose gap is shown, with this confidence, to be at most ``gap`` for people like these:
        60 % of every group are held out to test it on, by bets on pairs of people where bounds are known (shares have
        them, a happiness by ``bounds=``), else by large samples, which the certificate says. Raises when nothing can
        be shown. A gap of 0 never can; ``WorseOff(0)`` holds by construction, or is refused.
    key : column of X, optional
        Identifies a person, string or integer: the same person always gets the same decision. Without it the
        row's content does.
    cv : int, splitter or iterable, default=5
        How an unfitted estimator, and a model of the group, is cross-fitted.
    random_state : None, int or RandomState
        Where the lottery's salt comes from at fit. ``predict`` itself is deterministic.

    Attributes
    ----------
    classes_ : array of shape (K,)
        The labels.
    decisions_ : array of shape (D,)
        The decisions, from the worst to the best for the person: ``classes_`` unless ``decisions`` lists others.
    groups_ : tuple
    sensitive_features_ : column(s), callable or None
        Which columns name the group: those named in ``fit``, else ``sensitive_features``.
    policy_ : Policy
        The policy; read its ``sentences()``.
    loss_, gaps_ : float, dict
        What the policy does to the rows it was fitted on. Of an estimator that is not frozen, and of a model of the
        group that ``fit`` fits, by predictions out of fold: everybody is decided on by models that were not fitted
        on them, as new people will be. ``predict_proba`` of the same rows then gives other numbers.
        After :meth:`recalibrate`, what is expected of the new people; as far as that looks at the label, as if
        p(label given signal, group) had not changed.
    means_, prices_ : dict
        The group means of every measure; and what a little less of each requirement would cost, by its words.
    impact_ : dict
        What is done to those people ``"baseline"``, ``"unconstrained"`` (by a policy of the same kind and cost of
        changes of which nothing is required) and as ``"proposed"`` by the policy, each with ``loss``, ``means``,
        ``gaps``, and the shares of every group that are ``changed``, that gain (``gains``) and that lose (``loses``).
        Of groups by several columns also ``harmed``: how far the mean of an intersection falls, where that is at least
        .05 of a share (else 5 % of its baseline) more than in each group by one column; and ``widened``: by how much
        the gap between intersections grows where ``between=`` compares fewer. Both count from 30 people on.
    labels_ : KnownLabels or None
        With ``missing_labels``: who has one, whom these stand for, and what is supposed of the others; None where
        nobody lacks one. Print it.
    expected_gaps_ : dict
        The gap of each measure that is to be expected on as many new people; ``policy_.expected_gaps(people)`` on
        any number of them.
    share_randomized_ : float
        Share of those people whose decision is drawn by lottery.
    estimator_ : classifier
        The model whose output is post-processed.
    group_model_ : classifier of the group, or None
        Of an individual policy with ``sees_group=False``, unless ``group_proba`` names columns: its
        ``predict_proba`` gives what ``policy_`` needs elsewhere as ``group_proba=``.
    aggregates_ : Aggregates or None
        The sums the policy was fitted on; None for an individual policy.
    cost_of_blindness_ : float or None
        With ``sees_group=False``: by how much the loss on the fitted rows exceeds that of the policy of the
        same kind, at the same cost of changes, that sees the group.
    frontier_ : Frontier
        The least loss for every gap, of policies of this kind on the fitted people; solved when first looked at.
    verdict_ : Verdict
        What the policy comes to, in one line, by the rows held out for ``confidence=``; else that only the fitted
        people have been looked at. ``fair.report(X_test, y_test).verdict`` looks at others.
    certificate_ : Certificate or None
        What can be promised to people it has not seen, in one sentence, or why nothing can.

    Examples
    --------
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from felicific import FairClassifier
    >>> from felicific.datasets import synthetic_loans
    >>> X, y = synthetic_loans(900).X, synthetic_loans(900).y
    >>> features = X[["yearly_salary", "loan_requested"]]
    >>> model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(features[:300], y[:300])
    >>> fair = FairClassifier(FrozenEstimator(model), happiness="decision * loan_requested", gap=1_000,
    ...                       sensitive_features="sex", random_state=0)
    >>> fair = fair.fit(X[300:600], y[300:600])  # people the model was not trained on
    >>> {name: round(gap) for name, gap in fair.gaps_.items()}
    {'decision * loan_requested': 1000}
    >>> fair.predict(X[600:]).shape
    (300,)
    """

    _says_more = FITTED
    _fitted: Fitted
    _clustered = False
    _recalibrated = False
    _chosen: str | None = None

    def __init__(
        self,
        estimator: Any,
        *,
        happiness: HappinessLike | None = None,
        gap: GapLike = None,
        sensitive_features: Any = None,
        constraints: Iterable[Requirement] = (),
        loss: LossLike = "error",
        change_cost: ChangeCost = "auto",
        policy: Kind | Literal["auto"] = "auto",
        sees_group: bool = True,
        decisions: Sequence[Any] | None = None,
        baseline: Any = None,
        missing_labels: MissingLabelsLike = None,
        confidence: float | None = None,
        key: Any = None,
        cv: Any = 5,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.happiness = happiness
        self.gap = gap
        self.sensitive_features = sensitive_features
        self.constraints = constraints
        self.loss = loss
        self.change_cost = change_cost
        self.policy = policy
        self.sees_group = sees_group
        self.decisions = decisions
        self.baseline = baseline
        self.missing_labels = missing_labels
        self.confidence = confidence
        self.key = key
        self.cv = cv
        self.random_state = random_state

    # -----------------------------------------------------------------------------------------------------
    # Fit

    def fit(
        self,
        X: Table,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        weight_kind: WeightKind = None,
        cluster: Any = None,
        baseline: Any = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the policy (and, unless it is frozen, the estimator).

        Parameters
        ----------
        X : dataframe or array of shape (n, features)
        y : array of shape (n,), optional
            Labels; needed unless the model is frozen and neither happiness nor loss looks at them (``loss="changes"``).
            Some may be missing (None, NaN) where ``missing_labels`` says what is known of that.
        sensitive_features : array, table, column name(s) or callable, optional
            The groups, when the constructor does not name them.
        sample_weight : array of shape (n,), optional
            Weight 2 is the row twice, weight 0 the row absent. They reach the program, and the estimator when it takes
            them.
        weight_kind : {"frequency", "sampling"}, optional
            What weights are, as for :func:`felicific.audit`. The policy does not depend on it; what can be promised of
            it does, so it has to be said where ``confidence`` is asked for and weights are not plainly counts.
        cluster : array of shape (n,) or column name, optional
            What rows have in common that are not independent (a person, a branch): with ``confidence``, whole clusters
            are held out and the test goes by them.
        baseline : array of shape (n,) or column name, optional
            What the existing system decides, the baseline, where the constructor does not say it.
        **fit_params
            Routed to the estimator's ``fit``.
        """
        trial = self._unfitted()
        # A name says where to look later; of an array it is remembered that there was one.
        named = self.baseline if baseline is None else baseline
        trial._named_baseline = named if named is None or isinstance(named, str) else True
        said = Roles(baseline=self._baseline_in(X, baseline), cluster=cluster, weight_kind=weight_kind)
        trial._fit(X, y, sensitive_features, sample_weight, said, fit_params)
        return self._become(trial)

    def _fit(
        self,
        X: Table,
        y: Any,
        sensitive_features: Any,
        sample_weight: Any,
        said: Roles,
        fit_params: dict[str, Any],
    ) -> None:
        self._remember_groups(X, sensitive_features)
        intake, whole = self._intake, X
        if is_regressor(self._bare_model):
            raise DataError(
                f"{self._model_name} is a regressor, and FairClassifier wraps classifiers.",
                "Use FairRegressor, which decides amounts.",
            )
        X = intake.check(self, X, reset=True)
        n = count_rows(X)
        frozen = self._frozen
        asked = cache(self._problem)  # made once, when it is first looked at
        labels = (
            None if y is None and self._needs_no_label(asked) else labels_of(y, n, self._looking(y, asked))
        )
        missing = self._missing_labels
        if labels is not None and missing is None and len(null_rows(labels)) and self._needs_no_label(asked):
            labels = None  # nothing looks at them
        weight = check_weights(sample_weight, n)
        present = present_rows(weight)
        numbers = np.arange(n) if present is None else present
        held = labels if present is None or labels is None else present_labels(labels, present)
        table = whole if is_frame(whole) else X
        there = held
        if held is not None:
            groups = partial(intake.groups, table, sensitive_features, weight)
            there = check_labels(held, numbers, lambda: groups()[numbers], missing)
            missing = None if len(there) == len(held) else missing
        named = columns_of(self.estimator)
        if frozen and named is None:
            check_is_fitted(self._bare_model)
            if not hasattr(self._model, "classes_"):
                raise DataError(
                    f"The model, a {self._model_name}, has no classes_: which decisions it "
                    "makes, and in which order, is not known.",
                    "Set it, model.classes_ = np.unique(y_train), or name the column of its probabilities instead.",
                )
        learnt = not frozen or named is not None
        self.classes_ = np.unique(np.asarray(there)) if learnt else np.asarray(self._model.classes_)
        self.decisions_ = self.classes_ if self.decisions is None else as_decisions(self.decisions)
        # What is wrong with the settings is said before any model is fitted.
        check_change_cost(self.change_cost)
        kind, problem, salt = self._kind(), asked(), make_salt(self.random_state)
        check_inference(self._group_proba, sees_x=kind.sees_x, sees_group=problem.sees_group)
        group = intake.groups(table, sensitive_features, weight, fresh=True)
        if self._group_proba is not None:
            check_given(self._group_proba, find_groups(group[numbers]), X)
        now, cluster = said.column(table, "baseline"), said.column(table, "cluster")
        check_length(cluster, n)
        attributes = intake.attributes(table, sensitive_features)
        rows = Rows(X, labels, group, weight, now, np.arange(n), said.weight_kind, cluster, attributes)
        rows, self._clustered = replace(rows, keys=intake.keys(X)), cluster is not None
        if missing is not None:
            rows = replace(rows, missing=missing, label_proba=label_proba_in_table(table, missing))
        if present is not None:
            rows, fit_params = replace(rows.take(present), y=held), parts_of(fit_params, present, n)
            self._cv = present_splits(self.cv, present, n)
        if self.confidence is None:
            self._sketches = (RowSketch.of(rows.x, self.key),)
            people, kind = self._score_rows(rows, problem, kind, fit_params)
            self._keep(self._fit_policy(problem, people, kind, salt))
        else:
            self._fit_safely(problem, rows, kind, salt, fit_params)
        self.__dict__.pop("_cv", None)
        self._warn(repeated(rows.keys, cluster))

    def _kind(self) -> Signal | Individual:
        """What the policy is to see; if it is chosen here, why is remembered."""
        self._chosen = None
        if not (isinstance(self.policy, str) and self.policy == "auto"):
            kind = resolve_policy(self.policy)
            if self._of_values(kind):
                self._refuse_values()
            return kind
        kind, self._chosen = choose_policy(
            len(self.classes_),
            sees_group=bool(self.sees_group),
            scored=hasattr(self._model, "predict_proba"),
            valued=hasattr(self._model, "decision_function") and self.missing_labels is None,
        )
        return kind

    def _of_values(self, kind: Signal | Individual) -> bool:
        """Whether the policy will see the decision function, because there are no probabilities."""
        model = self._model
        able = hasattr(model, "decision_function") and not hasattr(model, "predict_proba")
        return kind.takes_values and able

    def _refuse_values(self) -> None:
        """Refuse a decision function where it cannot stand for probabilities."""
        found = len(self.classes_)
        why = f"there are {found} classes" if found > 2 else "labels may be missing (missing_labels=)"
        if found > 2 or self.missing_labels is not None:
            raise DataError(
                f"{self._model_name} has no predict_proba, and {why}, of which its decision function does not tell "
                "how likely each is.",
                "Calibrate the model (CalibratedClassifierCV), or use policy='label'.",
            )

    @property
    def _model(self) -> Any:
        named = columns_of(self.estimator)
        known = getattr(self, "classes_", None)
        return self.estimator if named is None else FrozenEstimator(ScoreColumns(named, known))

    def _warn(self, repeated: list[str]) -> None:
        """At most one warning for a fit: the worst. Everything is among the notes that the printed object shows."""
        grave, others = self.policy_.cautions(warn=True), list(repeated)
        others[:0] = [PROBA_REPEAT] if self.key is None and self.policy_.explore else []
        self._notes = (*grave, *others)
        if grave or others:
            other = ClusterWarning if others == repeated else LotteryWarning
            category = PolicyWarning if grave else other
            warnings.warn([*grave, *others][0], category, stacklevel=level_outside())

    def _looking(self, y: Any, asked: Callable[[], Problem]) -> str:
        """What looks at labels, where there are none and the model knows the classes."""
        known = y is None and self._frozen and hasattr(self, "classes_")
        return asked().looking_at_y if known else ""

    def _needs_no_label(self, asked: Callable[[], Problem]) -> bool:
        """Whether nothing looks at labels: neither what is asked nor a model that is yet to be fitted."""
        if not self._frozen or not hasattr(self._model, "classes_"):
            return False
        self.classes_ = np.asarray(self._model.classes_)
        problem = asked()
        return not problem.looks_at_y and (problem.sees_group or not self._kind().sees_x)

    @property
    def _missing_labels(self) -> MissingLabels | None:
        """What is said of missing labels."""
        return None if self.missing_labels is None else resolve_missing_labels(self.missing_labels)

    @property
    def _intake(self) -> Intake:
        seen, missing = bool(self.sees_group), self._missing_labels
        probabilities = () if missing is None else missing.columns
        return Intake(
            self.key,
            self.sensitive_features_,
            seen,
            self._believed_columns,
            probabilities,
            self.baseline,
        )

    def _problem(self) -> Problem:
        """What is asked, spelled out for the classes of the model."""
        constraints = check_constraints(self.constraints)
        refuse_nothing(self.gap, constraints)
        problem = problem_of(
            self.classes_,
            decisions=self.decisions,
            happiness=self.happiness,
            loss=self.loss,
            gap=self.gap,
            constraints=constraints,
            sees_group=bool(self.sees_group),
        )
        if not self._randomize and any(one.of_persons for one in constraints):
            raise ConstraintError(
                "Exploration keeps people a chance, which the lottery draws, and the policy has randomize=False.",
                "Leave randomize=False out, or Exploration(...).",
            )
        if self.confidence is not None:
            from felicific._fit.safety import check_certifiable

            check_confidence(self.confidence)
            by_model = self._named_baseline is None and not (self._kind().sees_x or self._kind().drawn)
            check_certifiable(self.gap, problem, by_model=by_model)
        return problem

    def _fit_policy(self, problem: Problem, people: People, kind: Signal | Individual, salt: str) -> Fitted:
        from felicific._fit.fit import fit_policy

        told: dict[str, Any] = {"salt": salt, "randomize": self._randomize}
        told["change_cost"] = check_change_cost(self.change_cost)
        inferred = people.group_proba is not None and self._group_proba is None
        told["out_of_fold"] = not self._frozen or inferred
        fitted = fit_policy(problem, people, kind, **told)
        if not problem.sees_group:
            seeing = partial(fit_policy, problem.seeing, people, kind, **told)
            self._blindness = Lazy(lambda: fitted.policy.loss - seeing().policy.loss)
            if not kind.sees_x:  # sums are quick, and whoever asks later would have to keep the people
                self._blindness = Lazy.of(self._blindness.value)
        return fitted

    def _keep(self, fitted: Fitted) -> None:
        """Show what was fitted in the attributes."""
        self.__dict__.pop("_verdict", None)  # which was on another policy
        self._fitted = fitted
        self.policy_: Policy = fitted.policy
        self.aggregates_: Aggregates | None = fitted.sums
        self.groups_ = fitted.policy.groups
        self.loss_, self.gaps_ = fitted.policy.loss, fitted.policy.gaps
        self.means_, self.prices_ = fitted.policy.means, fitted.policy.prices
        self.share_randomized_, self.labels_ = fitted.share_randomized, fitted.policy.labels

    def _fit_safely(
        self, problem: Problem, rows: Rows, kind: Signal | Individual, salt: str, fit_params: dict[str, Any]
    ) -> None:
        """Fit on a part of every group, and keep the loosest policy that is shown on the others to meet the gap."""
        from felicific._fit.safety import HELD_OUT, Trial
        from felicific._fit.tryout import Tryout

        least = min((part.whom.min_people for part in problem.comparisons), default=0.0)
        fitting, held = rows.halves(salt, least)
        self._sketches = (RowSketch.of(fitting.x, self.key),)
        places = np.searchsorted(rows.numbers, fitting.numbers)
        people, kind = self._score_rows(
            fitting, problem, kind, parts_of(fit_params, places, len(rows.numbers))
        )
        sure = check_confidence(self.confidence)
        aimed = problem.cautious(partial(held.margin, sure), 1.0 - HELD_OUT)
        self._keep(self._fit_policy(aimed, people, kind, salt))
        others = self._people(held.x, held.group, **held.known)
        people = replace(people, left_out=self.policy_.left_out)
        # What decisions are worth to people is asked once, and not for every policy that is tried on them.
        fitted, held_out = (Tryout(problem, part.with_scores).persons for part in (people, others))
        if not all(part.plain for part in problem.comparisons):
            # How much tighter others than gaps of all groups have to be aimed at depends on how values vary.
            trial = Trial(sure, problem.comparisons, fitted(self.policy_))
            self._keep(self._fit_policy(aimed.tightened(trial.margin), people, kind, salt))
        self._keep(self._fitted.certified(problem, fitted(self.policy_), held_out, sure, (people, others)))
        tried = Tryout(problem, others.with_scores, baseline_words(others.baseline is not None))
        if not others.knows_baseline:
            tried = tried.beside_least_loss(self.policy_)
        self._verdict = self._judged_on(tried, sure)

    def _judged_on(self, held_out: Tryout, confidence: float) -> Verdict:
        """The verdict on what people held out show, among whom one of several policies was chosen."""
        from felicific._fit.assessment import Assessment
        from felicific._fit.safety import CANDIDATES

        return Assessment.of(
            held_out,
            self._fitted.gap_frontier,
            self.policy_,
            confidence=confidence,
            chosen=CANDIDATES,
            certificate=self._fitted.certificate,
        ).verdict

    def _score_rows(
        self, rows: Rows, problem: Problem, kind: Signal | Individual, fit_params: dict[str, Any]
    ) -> tuple[People, Signal | Individual]:
        """Fit what is to be fitted, and ask the model about the rows; of a decision function, cut into cells."""
        from felicific._people.labels import LabelBeliefs
        from felicific._people.people import People
        from felicific._program.values import cut_people

        frozen, cv = self._frozen, getattr(self, "_cv", self.cv)
        routed = {} if frozen else self._routed(rows.weight, fit_params)
        features = self._intake.features(rows.x, self._model if frozen else None)
        y, labelled = rows.y, None if rows.missing is None else rows.labelled
        if labelled is not None and y is not None:  # where there is none, any
            codes = encode(y[labelled], self.classes_.tolist())
            y = self.classes_[np.zeros(len(y), dtype=np.intp)]
            y[labelled] = self.classes_[codes]
        of_values = self._of_values(kind)
        ask: Callable[..., Floats] | None = None
        if of_values:
            ask = lambda model, rows: decision_values(model.decision_function, rows)  # noqa: E731  # as beside it
        elif kind.needs_proba:
            ask = partial(predict_proba, classes=self.classes_)
        self.estimator_, score, predicted = fit_model(
            self._model, features, y, self.classes_, cv, routed, ask, labelled
        )
        chances = None
        if kind.sees_x and not problem.sees_group:
            seen = features if columns_of(self.estimator) is None else self._intake.features(rows.x)
            chances = self._beliefs(rows, seen, cv)
        missing = rows.missing
        if (
            missing is not None
            and labelled is not None
            and rows.label_proba is None
            and learns(self.estimator_, missing)
        ):
            rows = replace(rows, label_proba=self._label_proba(rows, features, labelled, cv))
        people = People.of(
            rows.x,
            problem,
            group=rows.group,
            score=score,
            predicted=predicted,
            group_proba=chances,
            roles=self._roles(score=columns_of(self.estimator)),
            **rows.known,
        )
        if of_values:
            people, kind = cut_people(cast("Score", kind), people)
        if people.missing is None:
            return people, kind
        self._label_beliefs = LabelBeliefs.of(people)
        return self._label_beliefs.of_people(people), kind

    def _label_proba(self, rows: Rows, features: Table, labelled: Truths, cv: Any) -> Floats:
        """Everybody's chance of having a label, by models that were not fitted on them."""
        groups, missing = find_groups(rows.group), rows.missing
        assert missing is not None, "labels are missing"
        refuse_identifiers(groups, len(rows.group), None if rows.weight is None else float(rows.weight.sum()))
        self._label_model, probabilities = fit_label_model(
            self.estimator_,
            missing,
            features,
            labelled,
            encode_groups(rows.group, groups),
            groups,
            cv=cv,
            weight=rows.weight,
            cluster=rows.cluster,
        )
        return probabilities

    # -----------------------------------------------------------------------------------------------------
    # What holds for other people

    @property
    def impact_(self) -> dict[str, Outcome]:
        """What is done to the fitted people by the baseline, without requirements and as proposed."""
        check_is_fitted(self, "policy_")
        return self.policy_.outcomes

    @property
    def expected_gaps_(self) -> dict[str, float]:
        """The gap of each measure to expect on as many new people; after :meth:`recalibrate`, on those very people."""
        check_is_fitted(self, "policy_")
        return self.policy_.expected_gaps()

    def _summary(self) -> list[Part]:
        """What was fitted, for whoever prints the object or shows it in a notebook; nothing before that."""
        from felicific._policy.basis import gaps_in_words, outlook

        if not hasattr(self, "policy_"):
            return []
        policy, why = self.policy_, "" if self._chosen is None else f", chosen because {self._chosen}"
        where = "it was recalibrated for" if policy.expected else "it was fitted on"
        fitted = f"On the people {where}, the gap is {gaps_in_words(policy, self.gaps_)}."
        held = ["That is of the people who were held out to test it."] if "_verdict" in vars(self) else []
        return [
            *self.verdict_._parts(),
            Lines([*held, f"Policy: {policy.kind}{why}.", fitted, outlook(policy)]),
            Lines(whom_left_out(policy.left_out), FITTED),
            Lines(list(dict.fromkeys([*policy.cautions(), *self._notes])), FITTED),
        ]

    def _pictured(self) -> list[Part]:
        """The verdict comes first: what was fitted matters more than how it was set up."""
        from felicific._policy.words import picture_of

        if not (summary := self._summary()):
            return []
        picture = picture_of(self.policy_)
        rules = self.policy_._printed_rules("policy_.sentences() says all of it.")
        return [*summary, *([] if picture is None else [picture]), *rules]

    @property
    def verdict_(self) -> Verdict:
        """What the policy comes to, in one line, with flags; print it.

        By the rows held out where ``confidence=`` was given. Otherwise only the people that it was fitted to have been
        looked at, and it says so: ``fair.report(X_test, y_test).verdict`` looks at others.
        """
        from felicific._audit.verdict import FITTED_ONLY

        check_is_fitted(self, "policy_")
        return getattr(self, "_verdict", FITTED_ONLY)

    @property
    def certificate_(self) -> Certificate | None:
        """What can be promised of the gap and the loss to people it has not seen; print it.

        After fitting with ``confidence=``, what was shown on the rows held out. Otherwise the bound for all policies of
        its kind, which needs many rows and known ``bounds`` of happiness; or why nothing can be said. None after
        :meth:`recalibrate`: the policy was then fitted to people without labels.
        """
        from felicific._fit.certificate import a_priori, no_certificate

        check_is_fitted(self, "policy_")
        if self._recalibrated:
            return None
        if self._fitted.certificate is not None:
            return self._fitted.certificate
        level = 0.95 if self.confidence is None else check_confidence(self.confidence)
        if not self._frozen:
            return no_certificate("the model was fitted to the same rows as the policy.", level)
        if self._clustered:
            return no_certificate("the bound is for independent rows, and these come in clusters.", level)
        return a_priori(self.policy_, self.aggregates_, self._fitted.problem.loss, level)

    # -----------------------------------------------------------------------------------------------------
    # The frontier

    @property
    def cost_of_blindness_(self) -> float | None:
        """What it costs not to see the group; None where it is seen, or another policy took the fitted one's place."""
        check_is_fitted(self, "policy_")
        return self._blindness.value if "_blindness" in vars(self) else None

    @property
    def frontier_(self) -> Frontier:
        """The least loss for every gap, of policies of this kind, on the people this one was fitted on.

        A cheap object: it is solved when it is first looked at. With several measures their gaps shrink in the
        proportions of ``gap`` where it gives each a positive number, else of their gaps when nothing is asked; the
        ``constraints`` hold everywhere on it. Without a ``gap`` the first constraint that has a number moves (a Gap
        with all others that are Gaps), and the others hold.
        """
        check_is_fitted(self, "policy_")
        return self._fitted.frontier

    def at(
        self, *, gap: GapLike = None, loss: float | None = None, max_odds_ratio: float | None = None
    ) -> Self:
        """Move along the frontier, without fitting anything again.

        Parameters
        ----------
        gap : number, or dict of measure or criterion to number
            The gap allowed. Gaps that are closed together stay in the proportions of ``frontier_``: the loosest place
            there at which all are kept. Where another number moves along ``frontier_``, that of a Floor say, gaps of
            all groups are closed, and the constraints hold as they are.
        loss : number
            Or the loss allowed.
        max_odds_ratio : number of 1 or more, optional
            Where labels are missing: how many fold reasons outside the table may have changed the odds of having one.
            Without ``gap`` and ``loss`` what was asked for stays. Of policies that see a signal.

        Returns
        -------
        FairClassifier
            A new fitted object with the policy of least loss at that gap, or of least gap at that loss; its ``gap`` is
            what it would take to get there by fitting. It carries no certificate of a test.
        """
        if max_odds_ratio is not None:
            return self._hiding(check_max_odds_ratio(max_odds_ratio), gap, loss)
        check_is_fitted(self, "policy_")
        fresh, closing = copy(self), self._fitted.closing
        along_gaps = closing.of_all_groups or (gap is not None and closing.by_points is not None)
        line = self._fitted.gap_frontier if along_gaps else self._fitted.frontier
        fitted = self._fitted.moved(line.position(gap=gap, loss=loss), along_gaps=along_gaps)
        constraints = check_constraints(self.constraints)
        written = any(constraint.is_plain_gap for constraint in constraints)
        if not along_gaps:
            fresh.constraints = list(fitted.problem.requirements)
        else:
            if written:
                fresh.constraints = [constraint.opened() for constraint in constraints]
            several = np.isfinite(line.ray).sum() > 1
            fresh.gap = fitted.problem.gaps if gap is None or several or written else gap
        return fresh._moved(fitted)

    def _hiding(self, max_odds_ratio: float, gap: GapLike, loss: float | None) -> Self:
        """A new fitted object that takes reasons outside the table into account."""
        check_is_fitted(self, "policy_")
        fresh, said = copy(self), self._missing_labels
        fitted = self._fitted.hiding(max_odds_ratio)
        fresh.missing_labels = None if said is None else replace(said, max_odds_ratio=max_odds_ratio)
        fresh = fresh._moved(fitted)
        return fresh if gap is None and loss is None else fresh.at(gap=gap, loss=loss)

    def price_of_worse_off(self) -> list[WorseOffRow]:
        """What it costs that fewer people get less than from the baseline's decision.

        The first row is the policy itself, with the largest share of a group that loses by it; then the policies of
        least loss that meet the same requirements where at most half of that share of each group loses, a quarter, and
        nobody. Each has ``at_most``, ``loss`` and ``loses`` (by group) on the fitted people, the last two None where no
        policy meets the requirements as well. Empty where nobody loses. Ask for one of them by
        ``constraints=[WorseOff(...)]``. Individual policies have no such table, which is an error.
        """
        check_is_fitted(self, "policy_")
        if self._fitted.worse_off_unknown:
            raise ConstraintError(
                f"What it costs that fewer people lose is not known: {self._fitted.worse_off_unknown}.",
                "Fit again with constraints=[WorseOff(..., happiness=...)] and compare loss_; or use policy='score'.",
            )
        return self._fitted.price_of_worse_off

    def frontier_on(
        self,
        X: Table,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        weight_kind: WeightKind = None,
        cluster: Any = None,
        confidence: float | None = None,
    ) -> Curve | Band:
        """What the policies of ``frontier_`` do to other people, who have labels.

        Group means and loss are straight lines between breakpoints; gaps are computed from them, with the kinks where
        groups change places. With a ``confidence`` there are limits of group means, gaps and loss, which hold at every
        position together, so also at one that is chosen by looking at them. ``sample_weight`` as in ``fit``;
        ``weight_kind`` and ``cluster`` as for :func:`felicific.audit`.
        """
        from felicific._audit.band import band_of
        from felicific._audit.decided import fitted_notes
        from felicific._frontier.curve import curve

        if confidence is not None:
            said = Roles(cluster=cluster, weight_kind=weight_kind)
            tried = self._tryout(X, y, sensitive_features, sample_weight, said)
            fitted_notes(*self._shares_fitted(tried.people.x), self.policy_.basis.out_of_fold)
            return band_of(self.frontier_, tried.persons, confidence)
        tried, line = self._tryout(X, y, sensitive_features, sample_weight), self.frontier_
        outcomes = [tried.outcome(tried.probabilities(policy)) for policy in line.policies]
        names = [measure.name for measure in line.measures]
        whom = compared_by(self.policy_.left_out, names, line.groups)
        return curve(
            line.measures, line.groups, line.tau, outcomes, tried.baseline_or_none, whom, mixes=line.mixes
        )

    def _tryout(
        self, X: Table, y: Any, sensitive_features: Any, sample_weight: Any, sure: Roles | None = None
    ) -> Tryout:
        """Other people, with labels and weights, to try policies on; ``sure`` where intervals are made of it."""
        from felicific._fit.tryout import Tryout

        check_is_fitted(self, "policy_")
        if any(measure.ends for measure in self.policy_.measures):
            refuse_ends(self.policy_.measures)
        labels, n = given_labels(X, y), count_rows(X)
        weight = check_weights(sample_weight, n)
        group = self._intake.groups(X, sensitive_features, weight)
        said = Roles(baseline=self.baseline_of(X)) if sure is None else sure
        now, cluster = said.column(X, "baseline"), said.column(X, "cluster")
        check_length(cluster, n)
        rows = Rows(X, labels, group, weight, now, np.arange(n), said.weight_kind, cluster)
        missing = self._missing_labels
        if missing is not None and len(null_rows(labels)):
            rows = replace(rows, missing=missing, label_proba=label_proba_in_table(X, missing))
        present = present_rows(weight)
        rows = rows if present is None else rows.take(present)
        if sure is not None:
            warn_repeated(self._intake.keys(rows.x), cluster)
        people = self._people(rows.x, rows.group, **rows.known)
        return Tryout(self._fitted.problem, people.with_scores, baseline_words(people.baseline is not None))

    def report(
        self,
        X: Table,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        weight_kind: WeightKind = None,
        cluster: Any = None,
        baseline: Any = None,
        also: HappinessLike | None = None,
        names: Mapping[Any, str] | None = None,
        labels: Literal["all", "selected"] | None = None,
        period: str | None = None,
        date: str | None = None,
        title: str | None = None,
        command: str | None = None,
        confidence: float = 0.95,
    ) -> Report:
        """What the person who signs looks at: one page with the verdict, who gains and who loses, and the choice.

        Parameters
        ----------
        X, y : table, and array or column of it
            People with labels, best not those on whom the model or the policy was fitted.
        sensitive_features : array, table, column name(s) or callable, optional
            The groups, when the constructor does not name them.
        sample_weight : array of shape (n,), optional
            Weight 2 is the row twice.
        weight_kind, cluster : optional
            As for :func:`felicific.audit`.
        baseline : array of shape (n,) or column name, optional
            What the existing system decides, the baseline; by default the column that was named so at the fit, if X has
            it, else what the model predicts. Where that is no decision, the least loss without requirements is the
            baseline, and the page says so.
        also : happiness, list or dict of them, optional
            Other measures of the policy: gaps that nobody asked to close, and whether they grow.
        names : dict of decision to str, optional
            What decisions are called: ``{0: "declined", 1: "approved"}``.
        labels : {"all", "selected"}, optional
            Whether everybody's label is known, or only that of people who were selected.
        period, date, title, command : str, optional
            What stands on the page as it is given: of when the data are, when the page was made, what it is called and
            how it was made. No clock is looked at: the same content gives the same bytes.
        confidence : float, default=0.95

        Returns
        -------
        Report
            ``.verdict``; print it. Shown in a notebook as it is; ``.save("report.html")``, ``.to_html()``,
            ``.to_dict()``.
        """
        from felicific._audit.decided import fitted_notes

        baseline, *unlike = self._baseline(X, baseline)
        said = Roles(baseline=baseline, cluster=cluster, weight_kind=weight_kind)
        tried = self._tryout(X, y, sensitive_features, sample_weight, said)
        known = tried.people.knows_baseline
        if known != (self.frontier_.baseline is not None):
            here, there = ("here", "at the fit")[:: 1 if known else -1]
            raise DataError(
                f"The baseline is known {here} and not {there}: positions of the page lie between the two.",
                "Pass baseline= to both, the column of what was really decided; or to neither.",
            )
        if not known:
            tried = tried.beside_least_loss(self.policy_)
        shares = self._shares_fitted(tried.people.x)
        notes = fitted_notes(*shares, self.policy_.basis.out_of_fold)
        page = import_module("felicific._report.document")
        told = page.Told(
            **self._about(),
            confidence=confidence,
            also=also,
            names=names,
            labels=labels,
            period=period,
            date=date,
            title=title,
            command=command,
            notes=[*unlike, *notes],
            in_sample=" ".join(notes),
            worse_off=self._fitted.price_of_worse_off,
        )
        report: Report = page.choice_report(
            tried, self._fitted.gap_frontier, self.policy_, self._fitted.along, told
        )
        return report

    def _baseline(self, X: Table, baseline: Any) -> tuple[Any, ...]:
        """The baseline, as it was named at the fit where nobody says it; and a note where the two differ."""
        named = self._named_baseline
        if baseline is None and callable(self.baseline):
            return (self.baseline(X),)
        if baseline is None and isinstance(named, str) and named in column_names(X):
            return (named,)
        if (baseline is None) == (named is None):
            return (baseline,)
        words = "what the model predicts", "other decisions (baseline=)"
        fitted, here = words if named is None else words[::-1]
        return baseline, (
            f"The policies were fitted beside {fitted}, and here they are compared with {here}: gaps that are aimed "
            "at, half of the baseline's gap among them, are those of the fitted people."
        )

    def _about(self) -> dict[str, Any]:
        """Also what the policy may promise, why it is of its kind, and what it costs not to see the group."""
        from felicific._fit.certificate import no_certificate

        level = 0.95 if self.confidence is None else self.confidence
        none = no_certificate("the policy was recalibrated on people without labels.", level)
        promised = none if self._recalibrated else self.certificate_
        more = {"chosen": self._chosen, "blindness": self.cost_of_blindness_}
        return super()._about() | more | {"certificate": promised}

    def recalibrate(self, X_new: Table, *, sensitive_features: Any = None) -> Self:
        """Fit the policy anew to people without labels: those it will decide on.

        Measures that ignore the label are computed on these people, so their gaps are met on them exactly, in
        expectation over the lottery. Of the loss, and of measures that look at the label, the mean given signal
        and group is kept from the labelled people (pooled over neighbouring bins, then groups, where there were
        none) and weighted by where the new people are; an individual policy expects them by its calibrated
        probabilities. That is right if p(label given signal, group) has not changed, which people without labels cannot
        show. On the very people it was fitted on nothing changes.

        Returns
        -------
        FairClassifier
            A new fitted object, whose ``loss_`` and ``gaps_`` are those expected on the new people; printed, it says
            how each measure was brought to them. It carries no certificate.
        """
        check_is_fitted(self, "policy_")
        group, fresh = self._intake.groups(X_new, sensitive_features), copy(self)
        now = Roles(baseline=self.baseline_of(X_new)).column(X_new, "baseline")
        people = self._people(X_new, group, baseline=now)
        fresh._sketches = (self._sketches[0], RowSketch.of(people.x, self.key))
        fitted, brought = self._fitted.recalibrated(people)
        fresh._recalibrated = True
        fresh._notes = tuple(f"{name!r}: {how}." for name, how in brought.items())
        if fitted is not self._fitted:
            fresh.__dict__.pop("_blindness", None)
            fresh._keep(fitted)
        return fresh

    # -----------------------------------------------------------------------------------------------------
    # Predict

    def predict_proba(self, X: Table, *, sensitive_features: Any = None) -> Floats:
        """Probability of every decision: the policy itself, not the model's belief about the label.

        Columns are those of ``classes_``; of ``decisions_`` where these are others.
        """
        if "policy_" not in vars(self):
            check_is_fitted(self, "policy_")
        return self.policy_.probabilities(*self._sight(X, sensitive_features))

    def predict(self, X: Table, *, sensitive_features: Any = None, key: Any = None) -> Array:
        """Decide; people who face a lottery draw by their key, the same one every time.

        Parameters
        ----------
        X : dataframe or array of shape (n, features)
            A dataframe may have further columns, in any order.
        sensitive_features : array, table, column name(s) or callable, optional
            The groups, when neither the constructor nor ``fit`` named their columns.
        key : column of X or array of shape (n,), optional
            Identifies a person, string or integer; by default the ``key`` of the constructor. Without either the row's
            content does, and a changed row is another person: a notice says so, once.
        """
        if "policy_" not in vars(self):
            check_is_fitted(self, "policy_")
        policy = self.policy_
        scores, group, x, chances = self._sight(X, sensitive_features)
        if key is None and self.key is None and len(scores) == 1:
            sure = policy.sure_of(scores, group)
            if sure is not None:
                return policy.decisions[sure : sure + 1].copy()
        probabilities = policy.probabilities(scores, group, x, chances)
        return np.asarray(policy.decisions[draw(probabilities, self._texts(X, x, key, 4), policy.salt)])

    def explain(
        self,
        row: Table,
        *,
        sensitive_features: object = None,
        key: str | int | None = None,
        baseline: object = None,
    ) -> Explanation:
        """Why one person is decided on so: what the existing system decides, what the policy decides, and by what.

        It never differs from :meth:`predict`. These are not the legal reasons for a refusal, which the explanation says
        too: they tell how the model's score became a decision, not why the model gave that score.

        Parameters
        ----------
        row : table of one row, row of a dataframe, dict of values, or array of shape (features,)
            The person. ``X.iloc[[17]]`` keeps the types of the columns, of which ``X.iloc[17]`` and a dict may know
            less than the model needs: categories, for instance.
        sensitive_features : group, column name(s) or callable, optional
            The person's group, when neither the constructor nor ``fit`` named its column.
        key : str or int, or column of the row, optional
            Identifies the person; by default the ``key`` of the constructor. Without either the row's content does.
        baseline : decision, optional
            What the existing system decides on the person; by default what stands in the column that was named so
            at the fit, if the row has it. Where the fit was told nothing of it, it is what the model predicts; where it
            was and the row is silent, the explanation says that it is by the model alone.

        Returns
        -------
        Explanation
            As of :meth:`felicific.Policy.explain`: print it, or read its ``to_dict()``.

        Examples
        --------
        >>> from sklearn.frozen import FrozenEstimator
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from felicific import FairClassifier
        >>> from felicific.datasets import synthetic_loans
        >>> X, y = synthetic_loans(900).X, synthetic_loans(900).y
        >>> features = X[["yearly_salary", "loan_requested"]]
        >>> model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(features[:300], y[:300])
        >>> fair = FairClassifier(FrozenEstimator(model), happiness="decision * loan_requested", gap=1_000,
        ...                       sensitive_features="sex", random_state=0)
        >>> fair = fair.fit(X[300:600], y[300:600])
        >>> why = fair.explain(X[600:601], key="anna")
        >>> why.decision == fair.predict(X[600:601], key=["anna"])[0]
        np.True_
        >>> print(why.sentences[1])
        The model's decision: 0, the same.
        """
        from felicific._policy.explain import explain_person
        from felicific._policy.explanation import one_key, one_of

        check_is_fitted(self, "policy_")
        policy = self.policy_
        X = one_row(row)
        columns = column_names(X) if is_frame(X) else []
        # A person's own group or key is one value; predict is given one for every row.
        given = sensitive_features
        if given is not None and not callable(given) and not (isinstance(given, str) and given in columns):
            listed = isinstance(given, list | tuple) and named_columns(X, given) is not None
            sensitive_features = given if listed else one_of(given, "groups")
        scores, group, x, chances = self._sight(X, sensitive_features)
        column = key if isinstance(key, str) and key in columns else self.key if key is None else None
        known = None if key is None else one_key(key)
        if column is not None:
            known = one_key(unwidened(row, take_column(X if is_frame(X) else x, column, "key")))

        def text() -> str:
            return content_keys(content_of(x, self._columns), np.zeros(1, dtype=np.intp))[0]

        by_model = False
        if baseline is None:
            named, features = self._named_baseline, self._intake.features(x, self.estimator_, self._columns)
            held = isinstance(named, str) and named in columns
            if callable(self.baseline):
                now, held = as_vector(self.baseline(X), "baseline"), True
            else:
                now = (
                    take_column(X, named, "baseline")
                    if held
                    else np.asarray(self.estimator_.predict(features))
                )
            baseline, by_model = now.tolist()[0], not held
            if baseline not in self.decisions_.tolist():
                baseline = None
        person = policy._person(scores, group, x, chances)
        return explain_person(
            policy,
            person,
            text if known is None else known,
            baseline=baseline,
            by_model=by_model,
            named=known is not None,
            without=self._fitted.without_each,
        )

    def _sight(
        self, X: Table, sensitive_features: object
    ) -> tuple[Array, Entries | None, Table, Floats | None]:
        """What the policy sees of people: scores, groups, the table as it was checked, and how likely each group is."""
        intake, policy, whole = self._intake, self.policy_, X
        X = intake.check(self, X, reset=False)
        group = None
        if policy.sees_group:
            group = intake.groups(whole if is_frame(whole) else X, sensitive_features)
        features = intake.features(X, self.estimator_, self._columns)
        asks = policy.asks
        if asks == "predict":
            return np.asarray(self.estimator_.predict(features)), group, X, None
        chances = self._chances(X, policy.groups) if policy.infers_group else None
        return self._scores(features, asks), group, X, chances

    def _scores(self, features: Table, asks: str) -> Floats:
        """What the policy sees of what the model says: its probabilities, or the decision function of one without."""
        if asks == "decision_function":
            return decision_values(self.estimator_.decision_function, features)
        return predict_proba(self.estimator_, features, self.classes_)

    def _labels_of(
        self, X: Table, group: Array, score: Floats | None = None
    ) -> tuple[Floats, Floats | None] | None:
        """Of other people the chances of their labels, and of having one where that is learnt.

        None if no label was missing at the fit. ``score`` is what the model says of them, if it was asked already.
        """
        if not hasattr(self, "_label_beliefs"):
            return None
        features = self._intake.features(
            self._intake.check(self, X, reset=False), self.estimator_, self._columns
        )
        codes = encode_groups(group, self._label_beliefs.groups)
        if score is None and hasattr(self.estimator_, "predict_proba"):
            score = predict_proba(self.estimator_, features, self.classes_)
        predicted = encode(np.asarray(self.estimator_.predict(features)), self.classes_.tolist())
        chances = self._label_beliefs.chances_at(codes, score, predicted)
        model = getattr(self, "_label_model", None)
        return chances, None if model is None else model.label_proba(features, codes)

    def _without_policy(self, X: Table) -> Array:
        """What the model decides by itself, for audits."""
        X = self._intake.check(self, X, reset=False)
        return np.asarray(self.estimator_.predict(self._intake.features(X, self.estimator_)))

    def _model_says(self, X: Table) -> tuple[Table, Floats | None]:
        """What the model sees of people, and its probabilities if it has any, for audits where labels are missing."""
        features = self._intake.features(self._intake.check(self, X, reset=False), self.estimator_)
        able = hasattr(self.estimator_, "predict_proba")
        return features, predict_proba(self.estimator_, features, self.classes_) if able else None

    def score(self, X: Table, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """Share of decisions that equal the label; ``sample_weight`` as in ``fit``.

        Where not every decision is a label, minus the mean loss, expected over the lottery: more is better too.
        """
        from sklearn.metrics import accuracy_score

        if self.decisions is not None and not self._problem().choices.within_labels:
            tried = self._tryout(X, y, sensitive_features, sample_weight)
            return -float(tried.outcome(tried.probabilities(self.policy_)).loss)
        y = Roles(y=y).column(X, "y")
        weight = check_weights(sample_weight, count_rows(X))
        present = present_rows(weight)
        if len(null_rows(np.asarray(y) if present is None else np.asarray(y)[present])):
            raise DataError(
                "score() is the share of decisions that equal the label, and some labels are missing.",
                "Use audit(fair, X, y).loss or make_scorer(...), which take missing_labels=.",
            )
        if present is not None and weight is not None:
            if sensitive_features is not None:
                sensitive_features = self._intake.groups(X, sensitive_features, weight)[present]
            X, y, weight = take_rows(X, present), present_labels(np.asarray(y), present), weight[present]
        decisions = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, decisions, sample_weight=weight))

    def _people(self, X: Table, group: Entries, **known: Any) -> People:
        """Other people, with what the model says about them."""
        from felicific._people.labels import LabelBeliefs, refuse_labelled_otherwise
        from felicific._people.people import People

        intake, policy, problem = self._intake, self.policy_, self._fitted.problem
        missing, whole = known.get("missing"), X
        X = intake.check(self, X, reset=False)
        features = intake.features(X, self.estimator_, self._columns)
        asks = policy.asks
        score = None if asks == "predict" else self._scores(features, asks)
        chances = None if missing is None else self._labels_of(whole, np.asarray(group), score)
        if chances is not None and known.get("label_proba") is None:
            known = known | {"label_proba": chances[1]}
        people = People.of(
            X,
            problem,
            group=group,
            score=score,
            predicted=np.asarray(self.estimator_.predict(features)),
            groups=policy.groups,
            roles=policy.roles,
            group_proba=self._chances(X, policy.groups) if policy.infers_group else None,
            **known | {"attributes": policy.attributes},
        )
        people = replace(policy.reading(people), left_out=policy.left_out)
        if people.missing is None or missing is None:
            return people
        if chances is None:  # the fit met none
            return LabelBeliefs.of(people).of_people(people)
        if people.label_proba is None:
            probabilities = self._label_beliefs.proba_of(people)
            people = replace(people, label_proba=probabilities, by_score=True)
        if not missing.columns:
            refuse_labelled_otherwise(people, np.asarray(people.label_proba))
        return replace(people, chances=chances[0])

    def __str__(self) -> str:
        fitted = getattr(self, "_fitted", None)
        return "\n".join([repr(self), *([] if fitted is None else fitted.policy.impact())])
