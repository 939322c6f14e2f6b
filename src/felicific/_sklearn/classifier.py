"""FairClassifier: a scikit-learn classifier around any other, wiring only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from felicific._audit.band import Band, band_of
from felicific._fit.certificate import Certificate, a_priori, no_certificate
from felicific._fit.fit import fit_policy
from felicific._fit.fitted import Fitted
from felicific._fit.safety import check_certifiable, check_method
from felicific._fit.tryout import Tryout
from felicific._frontier.curve import Curve, curve
from felicific._frontier.frontier import Frontier
from felicific._people.checks import check_weights
from felicific._people.columns import Columns
from felicific._people.people import People
from felicific._policy.lottery import content_keys, draw, keys_as_text, make_salt
from felicific._policy.policy import Policy
from felicific._policy.solve import Kind
from felicific._problem.happiness import HappinessLike
from felicific._problem.problem import Problem
from felicific._problem.requirements import check_constraints
from felicific._problem.rows import Requirement
from felicific._program.moments import Moments
from felicific._program.signals import Individual, Signal, resolve_policy
from felicific._sklearn.inputs import (
    Intake,
    Rows,
    check_labels,
    labels_of,
    present_labels,
    present_rows,
    present_splits,
)
from felicific._sklearn.model import fit_joint, fit_model, parts_of, predict_proba
from felicific._statistics.intervals import check_confidence
from felicific._tables.memory import as_vector, count_rows, is_frame, take_rows
from felicific._typing import Array, Codes, Floats, GapLike, LossLike, RandomState, Table
from felicific.exceptions import DataError

if TYPE_CHECKING:
    from felicific.report.document import Report


class FairClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """Change a classifier's decisions as little as needed to bring groups' happiness together.

    Solves, over policies q(decision given signal, group), the linear program: least expected loss subject to
    every component's gap (largest minus smallest group mean of happiness) being at most ``gap``.

    Parameters
    ----------
    estimator : classifier
        A fitted classifier as ``FrozenEstimator(model)``: every row passed to ``fit`` is then used to fit the
        policy, so they should be rows that the model was not trained on. Or an unfitted classifier: it is
        cross-fitted (``cv``), the policy is fitted on the held-out predictions, and the model on all rows.
    happiness : function, Happiness, criterion name, expression, or list or dict of them
        What makes a person happy with a decision, in real units; an expression is text such as
        ``"decision * loan"``.
    gap : number, or dict of component or criterion to number, default=0.0
        Largest allowed gap, in the unit of happiness. With a dict, components it does not name are measured
        and not constrained; None constrains nothing.
    policy : {"score", "individual", "label", "soft-label"}, Score(...) or Individual(...), default="score"
        What the policy sees of a person besides the group: the cell of the score, all of x, the predicted label,
        or a label drawn from the probabilities (the paper's).
    loss : "error", cost matrix (label, decision), function or expression, default="error"
        What a decision costs the decision maker.
    constraints : sequence of Floor, Budget and Gap
        Further requirements. Of several gaps of a component the smallest counts.
    sensitive_features : column(s) of X, callable, or None
        Which group a person belongs to; several columns mean their intersections. With None, pass
        ``sensitive_features=`` to ``fit`` and ``predict``.
    favourable : class, optional
        The decision that people hope for; the last class by default.
    confidence : float, optional
        Returns only a policy whose gap is shown, with this confidence, to be at most ``gap`` for people like these:
        60 % of every group are held out to test it on. Raises when nothing can be shown. A gap of 0 never can.
    method : {"auto", "t", "betting"}, default="auto"
        The test behind ``confidence``: bets on pairs of people, which hold for any distribution within known bounds
        (shares have them, a happiness by ``bounds=``); or by large samples, Welch's t widened for skewness. "auto"
        bets wherever bounds are known. The certificate says what holds by large samples only.
    key : column of X, optional
        Identifies a person, string or integer: the same person always gets the same decision. Without it the
        row's content does.
    cv : int, splitter or iterable, default=5
        How an unfitted estimator is cross-fitted.
    n_jobs : int, optional
        Processes for the cross-fit.
    random_state : None, int or RandomState
        Where the lottery's salt comes from at fit. ``predict`` itself is deterministic.
    randomize : bool, default=True
        False gives each person the most probable decision; ``loss_`` and ``gaps_`` are then those of the
        rounded decisions, and the gap asked for may be exceeded.
    group_at_predict : bool, default=True
        False when the group is known at fit only: the policy then decides without it. An individual policy learns
        p(label, group given x) with a clone of the estimator. ``cost_of_blindness_`` says what that costs.

    Attributes
    ----------
    classes_ : array of shape (K,)
    groups_ : tuple
    policy_ : Policy
        The policy; read its ``sentences()``.
    loss_, gaps_ : float, dict
        What the policy does to the rows it was fitted on.
    share_randomized_ : float
        Share of those people whose decision is drawn by lottery.
    estimator_ : classifier
        The model whose output is post-processed.
    moments_ : Moments or None
        The sums the policy was fitted on; None for an individual policy.
    cost_of_blindness_ : float
        With ``group_at_predict=False``: by how much the loss on the fitted rows exceeds that of the policy of the
        same kind that sees the group.
    frontier_ : Frontier
        The least loss for every gap, of policies of this kind on the fitted people; solved when first looked at.
    certificate_ : Certificate
        What can be promised to people it has not seen, in one sentence, or why nothing can.
    recalibration_ : dict
        After :meth:`recalibrate`: for every component, how it was brought to the new people.

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

    def __init__(
        self,
        estimator: Any,
        *,
        happiness: HappinessLike | None = None,
        gap: GapLike = 0.0,
        policy: Kind = "score",
        loss: LossLike = "error",
        constraints: Iterable[Requirement] = (),
        sensitive_features: Any = None,
        favourable: Any = None,
        confidence: float | None = None,
        method: Literal["auto", "t", "betting"] = "auto",
        key: Any = None,
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        randomize: bool = True,
        group_at_predict: bool = True,
    ) -> None:
        self.estimator = estimator
        self.happiness = happiness
        self.gap = gap
        self.policy = policy
        self.loss = loss
        self.constraints = constraints
        self.sensitive_features = sensitive_features
        self.favourable = favourable
        self.confidence = confidence
        self.method = method
        self.key = key
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.randomize = randomize
        self.group_at_predict = group_at_predict

    # -----------------------------------------------------------------------------------------------------
    # Fit

    def fit(
        self,
        X: Table,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        today: Any = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the policy (and, unless it is frozen, the estimator).

        Parameters
        ----------
        X : dataframe or array of shape (n, features)
        y : array of shape (n,)
            Labels.
        sensitive_features : array, table, column name(s) or callable, optional
            The groups, when the constructor does not name them.
        sample_weight : array of shape (n,), optional
            Frequencies: weight 2 is the row twice, weight 0 the row absent. They reach the program, and the
            estimator when it takes them.
        today : array of shape (n,) or column name, optional
            What the existing system decides, the baseline; by default what the model predicts.
        **fit_params
            Routed to the estimator's ``fit``.
        """
        # A fit that fails must leave the object as it was: everything happens to a copy.
        trial = copy(self)
        for name in [name for name in vars(trial) if name.endswith("_")]:
            delattr(trial, name)
        trial._fit(X, y, sensitive_features, sample_weight, today, fit_params)
        self.__dict__.clear()
        self.__dict__.update(trial.__dict__)
        return self

    def _fit(
        self,
        X: Table,
        y: Any,
        sensitive_features: Any,
        sample_weight: Any,
        today: Any,
        fit_params: dict[str, Any],
    ) -> None:
        intake, whole = self._intake, X
        X = intake.check(self, X, reset=True)
        n = count_rows(X)
        labels = labels_of(y, n)
        weight = check_weights(sample_weight, n)
        present = present_rows(weight)
        numbers = np.arange(n) if present is None else present
        held = labels if present is None else present_labels(labels, present)
        check_labels(held, numbers)
        frozen = isinstance(self.estimator, FrozenEstimator)
        if frozen:
            check_is_fitted(self.estimator)
        self.classes_ = np.asarray(self.estimator.classes_) if frozen else np.unique(held)
        # What is wrong with the settings is said before any model is fitted.
        for name in ("randomize", "group_at_predict"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise DataError(f"{name} is {getattr(self, name)!r}.", "Say True or False.")
        kind, problem, salt = resolve_policy(self.policy), self._problem(), make_salt(self.random_state)
        table = whole if is_frame(whole) else X
        group = intake.groups(table, sensitive_features, weight)
        intake.keys(X)
        now = None if today is None else Columns(today=today).column(table, "today")
        rows = Rows(X, labels, group, weight, now, np.arange(n))
        if present is not None:
            rows, fit_params = replace(rows.take(present), y=held), parts_of(fit_params, present, n)
            self._cv = present_splits(self.cv, present, n)
        if self.confidence is None:
            self._keep(
                self._fit_policy(problem, self._score_rows(rows, problem, kind, fit_params), kind, salt)
            )
        else:
            self._fit_safely(problem, rows, kind, salt, fit_params)
        self.__dict__.pop("_cv", None)

    @property
    def _intake(self) -> Intake:
        return Intake(self.key, self.sensitive_features, bool(self.group_at_predict))

    def _problem(self) -> Problem:
        """What is asked, spelled out for the classes of the model."""
        problem = Problem.of(
            self.classes_,
            self.happiness,
            loss=self.loss,
            gap=self.gap,
            constraints=self.constraints,
            favourable=self.favourable,
            see_group=bool(self.group_at_predict),
        )
        if self.method != "auto":
            check_method(self.method, self.confidence)
        if self.confidence is not None:
            check_confidence(self.confidence)
            check_certifiable(self.gap, problem.widths, problem.components, self.method)
        return problem

    def _fit_policy(self, problem: Problem, people: People, kind: Signal | Individual, salt: str) -> Fitted:
        randomize = bool(self.randomize)
        fitted = fit_policy(problem, people, kind, salt=salt, randomize=randomize)
        if not problem.see_group:
            seeing = fit_policy(problem.seeing, people, kind, salt=salt, randomize=randomize)
            self.cost_of_blindness_ = fitted.policy.loss - seeing.policy.loss
        return fitted

    def _keep(self, fitted: Fitted) -> None:
        """Show what was fitted in the attributes."""
        self._fitted = fitted
        self.policy_: Policy = fitted.policy
        self.moments_: Moments | None = fitted.sums
        self.groups_ = fitted.policy.groups
        self.loss_, self.gaps_ = fitted.policy.loss, fitted.policy.gaps
        self.share_randomized_ = fitted.share_randomized

    def _fit_safely(
        self, problem: Problem, rows: Rows, kind: Signal | Individual, salt: str, fit_params: dict[str, Any]
    ) -> None:
        """Fit on a part of every group, and keep the loosest policy that is shown on the others to meet the gap."""
        fitting, held = rows.halves(salt)
        places = np.searchsorted(rows.numbers, fitting.numbers)
        people = self._score_rows(fitting, problem, kind, parts_of(fit_params, places, len(rows.y)))
        self._keep(self._fit_policy(problem, people, kind, salt))
        others = self._people(held.x, held.group, held.y, held.weight, numbers=held.numbers)
        # What decisions are worth to people is asked once, and not for every policy that is tried on them.
        fitted, held_out = (Tryout(problem, part.with_scores).persons for part in (people, others))
        sure = check_confidence(self.confidence)
        self._keep(self._fitted.certified(fitted(self.policy_), held_out, sure, self.method))

    def _score_rows(
        self, rows: Rows, problem: Problem, kind: Signal | Individual, fit_params: dict[str, Any]
    ) -> People:
        """Fit what is to be fitted, and ask the model about the rows."""
        frozen, cv = isinstance(self.estimator, FrozenEstimator), getattr(self, "_cv", self.cv)
        routed = {} if frozen else self._routed(rows.weight, fit_params)
        features = self._intake.features(rows.x, self.estimator if frozen else None)
        self.estimator_, proba, predicted = fit_model(
            self.estimator, features, rows.y, self.classes_, cv, self.n_jobs, routed, kind.needs_proba
        )
        joint = None
        if kind.sees_x and not problem.see_group:
            inner = self.estimator.estimator if frozen else self.estimator
            self.joint_, joint = fit_joint(
                inner, features, rows.y, rows.group, np.asarray(proba), self.classes_, cv, self.n_jobs, routed
            )
        return People.of(
            rows.x,
            problem,
            group=rows.group,
            y=rows.y,
            proba=proba,
            predicted=predicted,
            today=rows.today,
            weight=rows.weight,
            rows=rows.numbers,
            joint=joint,
        )

    def _routed(self, sample_weight: Any, fit_params: dict[str, Any]) -> dict[str, Any]:
        """Parameters for the estimator's own fit."""
        given = dict(fit_params)
        if sample_weight is not None:
            given["sample_weight"] = sample_weight
        if get_config()["enable_metadata_routing"]:
            return dict(process_routing(self, "fit", **given).estimator.fit)
        if not has_fit_parameter(self.estimator, "sample_weight"):
            given.pop("sample_weight", None)
        return given

    def get_metadata_routing(self) -> MetadataRouter:
        """Route what ``fit`` is given: to itself as requested, and to the estimator."""
        router = MetadataRouter(owner=self).add_self_request(self)
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return router.add(estimator=self.estimator, method_mapping=mapping)

    # -----------------------------------------------------------------------------------------------------
    # What holds for other people

    @property
    def certificate_(self) -> Certificate:
        """What can be promised of the gap and the loss to people it has not seen; print it.

        After fitting with ``confidence=``, what was shown on the rows held out. Otherwise the bound for all policies of
        its kind, which needs many rows and known ``bounds`` of happiness; or why nothing can be said. A recalibrated
        classifier has none.
        """
        check_is_fitted(self, "policy_")
        if "recalibration_" in vars(self):
            raise AttributeError(
                "A recalibrated classifier has no certificate: it was fitted to people without labels."
            )
        if self._fitted.certificate is not None:
            return self._fitted.certificate
        level = 0.95 if self.confidence is None else check_confidence(self.confidence)
        if not isinstance(self.estimator, FrozenEstimator):
            return no_certificate("the model was fitted to the same rows as the policy.", level)
        return a_priori(self.policy_, self.moments_, self._fitted.problem.loss, level)

    # -----------------------------------------------------------------------------------------------------
    # The frontier

    @property
    def frontier_(self) -> Frontier:
        """The least loss for every gap, of policies of this kind, on the people this one was fitted on.

        A cheap object: it is solved when it is first looked at. With several components their gaps shrink in the
        proportions of ``gap`` where it gives each a positive number, else of their gaps when nothing is asked.
        """
        check_is_fitted(self, "policy_")
        return self._fitted.frontier

    def at(self, *, gap: GapLike = None, loss: float | None = None) -> Self:
        """Move along the frontier, without fitting anything again.

        Parameters
        ----------
        gap : number, or dict of component or criterion to number
            The gap allowed. Gaps that are closed together stay in the proportions of ``frontier_``: the loosest place
            there at which all are kept.
        loss : number
            Or the loss allowed.

        Returns
        -------
        FairClassifier
            A new fitted object with the policy of least loss at that gap, or of least gap at that loss; its ``gap`` is
            what it would take to get there by fitting. It carries no certificate of a test.
        """
        line, fresh = self.frontier_, copy(self)
        fitted = self._fitted.moved(line.position(gap=gap, loss=loss))
        constraints = check_constraints(self.constraints)
        written = any(constraint.moves for constraint in constraints)
        if written:
            fresh.constraints = [constraint.opened() for constraint in constraints]
        several = np.isfinite(line.ray).sum() > 1
        fresh.gap = fitted.problem.gaps if gap is None or several or written else gap
        fresh.__dict__.pop("cost_of_blindness_", None)
        fresh._keep(fitted)
        return fresh

    def frontier_on(
        self, X: Table, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> Curve:
        """What the policies of ``frontier_`` do to other people, who have labels.

        Group means and loss are straight lines between breakpoints; gaps are computed from them, with the kinks where
        groups change places. ``sample_weight`` are frequencies, as in ``fit``.
        """
        tried, line = self._tryout(X, y, sensitive_features, sample_weight), self.frontier_
        outcomes = [tried.outcome(tried.odds(policy)) for policy in line.policies]
        return curve(line.components, line.groups, line.tau, outcomes, tried.today)

    def frontier_band(
        self,
        X: Table,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        confidence: float = 0.95,
    ) -> Band:
        """Limits of group means, gaps and loss along ``frontier_``, from people it was not fitted on.

        They hold at every position together, so also at one that is chosen by looking at them. ``sample_weight`` are
        frequencies, as in ``fit``.
        """
        tried = self._tryout(X, y, sensitive_features, sample_weight)
        return band_of(self.frontier_, tried.persons, confidence)

    def _tryout(
        self, X: Table, y: Any, sensitive_features: Any, sample_weight: Any, today: Any = None
    ) -> Tryout:
        """Other people, with labels and frequencies, to try policies on."""
        check_is_fitted(self, "policy_")
        labels = as_vector(y, "y")
        n, weight = count_rows(X), check_weights(sample_weight, len(labels))
        if len(labels) != n:
            raise DataError(f"There are {len(labels)} labels y for {n} rows.", "Pass one for every row.")
        group = self._intake.groups(X, sensitive_features, weight)
        now = None if today is None else Columns(today=today).column(X, "today")
        present = present_rows(weight)
        if present is not None:
            X, group, labels = take_rows(X, present), group[present], labels[present]
            weight, now = np.asarray(weight)[present], None if now is None else now[present]
        numbers = np.arange(n) if present is None else present
        people = self._people(X, group, labels, weight, now, numbers)
        return Tryout(self._fitted.problem, people.with_scores)

    def report(
        self,
        X: Table,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        today: Any = None,
        **options: Any,
    ) -> Report:
        """What the person who signs looks at: one page with the groups, the whole trade-off and the policy.

        Parameters
        ----------
        X, y :
            People with labels, best not those on whom the model or the policy was fitted.
        sensitive_features : array, table, column name(s) or callable, optional
            The groups, when the constructor does not name them.
        sample_weight : array of shape (n,), optional
            Frequencies: weight 2 is the row twice.
        today : array of shape (n,) or column name, optional
            What the existing system decides, the baseline; by default what the model predicts.
        **options
            ``title``, ``command`` (how the report was made) and ``confidence``.

        Returns
        -------
        Report
            Shown in a notebook as it is; ``.save("report.html")``, ``.to_html()``, ``.to_dict()``.
        """
        from importlib import import_module

        named, inner = self.sensitive_features, getattr(self.estimator_, "estimator", self.estimator_)
        named = " and ".join(map(str, named)) if isinstance(named, list | tuple) else named
        steps, level = getattr(inner, "steps", None), 0.95 if self.confidence is None else self.confidence
        new = "recalibration_" in vars(self)
        none = no_certificate("the policy was recalibrated on people without labels.", level)
        about = {
            "grouped_by": named if isinstance(named, str) else None,
            "model": type(steps[-1][1] if steps else inner).__name__,
            "certificate": none if new else self.certificate_,
        }
        make: Callable[..., Report] = import_module("felicific.report").choice_report
        tried = self._tryout(X, y, sensitive_features, sample_weight, today)
        return make(tried, self.frontier_, self.policy_, **(about | options))

    def recalibrate(self, X_new: Table, *, sensitive_features: Any = None) -> Self:
        """Fit the policy anew to people without labels: those it will decide about.

        Components that ignore the label are computed on these people, so their gaps are met on them exactly, in
        expectation over the lottery. Of the loss, and of components that look at the label, the mean given signal
        and group is kept from the labelled people (pooled over neighbouring cells, then groups, where there were
        none) and weighted by where the new people are; an individual policy expects them by its calibrated
        probabilities. On the very people it was fitted on nothing changes.

        Returns
        -------
        FairClassifier
            A new fitted object, whose ``loss_`` and ``gaps_`` are those expected on the new people, and whose
            ``recalibration_`` says how each component was brought to them. It carries no certificate.
        """
        check_is_fitted(self, "policy_")
        group, fresh = self._intake.groups(X_new, sensitive_features), copy(self)
        fitted, fresh.recalibration_ = self._fitted.recalibrated(self._people(X_new, group))
        if fitted is not self._fitted:
            fresh.__dict__.pop("cost_of_blindness_", None)
            fresh._keep(fitted)
        return fresh

    # -----------------------------------------------------------------------------------------------------
    # Predict

    def predict_proba(self, X: Table, *, sensitive_features: Any = None) -> Floats:
        """Probability of every decision: the policy itself, not the model's belief about the label."""
        return self._odds(X, sensitive_features)[0]

    def predict(self, X: Table, *, sensitive_features: Any = None) -> Array:
        """Decide; people who face a lottery draw by their key, the same one every time."""
        odds, x = self._odds(X, sensitive_features)
        keys = self._intake.keys(x)
        codes = draw(
            odds,
            lambda rows: content_keys(x, rows) if keys is None else keys_as_text(keys[rows]),
            self.policy_.salt,
        )
        return np.asarray(self.classes_[codes])

    def _odds(self, X: Table, sensitive_features: Any) -> tuple[Floats, Table]:
        """Probability of every decision, and the table as it was checked."""
        check_is_fitted(self, "policy_")
        intake, policy, whole = self._intake, self.policy_, X
        X = intake.check(self, X, reset=False)
        group = None
        if policy.see_group:
            group = intake.groups(whole if is_frame(whole) else X, sensitive_features)
        features = intake.features(X, self.estimator_)
        if not policy.needs_proba:
            return policy.odds(np.asarray(self.estimator_.predict(features)), group, X), X
        scores = predict_proba(self.estimator_, features, self.classes_)
        if policy.sees_x and not policy.see_group:
            scores = self.joint_.belief(features, scores).reshape(len(scores), -1)
        return policy.odds(scores, group, X), X

    def score(self, X: Table, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """Share of decisions that equal the label; ``sample_weight`` are frequencies, as in ``fit``."""
        weight = check_weights(sample_weight, count_rows(X))
        present = present_rows(weight)
        if present is not None and weight is not None:
            if sensitive_features is not None:
                sensitive_features = self._intake.groups(X, sensitive_features, weight)[present]
            X, y, weight = take_rows(X, present), present_labels(as_vector(y, "y"), present), weight[present]
        decisions = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, decisions, sample_weight=weight))

    def _people(
        self,
        X: Table,
        group: Array,
        y: Array | None = None,
        weight: Floats | None = None,
        today: Array | None = None,
        numbers: Codes | None = None,
    ) -> People:
        """Other people, with what the model says about them; ``numbers`` are those of their rows, for messages."""
        intake, policy, problem = self._intake, self.policy_, self._fitted.problem
        X = intake.check(self, X, reset=False)
        features = intake.features(X, self.estimator_)
        proba = joint = None
        if policy.needs_proba:
            proba = predict_proba(self.estimator_, features, self.classes_)
        if policy.sees_x and not policy.see_group:
            joint = self.joint_.belief(features, np.asarray(proba))
        return People.of(
            X,
            problem,
            group=group,
            y=y,
            proba=proba,
            predicted=np.asarray(self.estimator_.predict(features)),
            today=today,
            weight=weight,
            groups=policy.groups,
            joint=joint,
            rows=numbers,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
