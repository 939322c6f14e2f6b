"""FairClassifier: a scikit-learn classifier around any other, wiring only."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from felicific._audit.band import Band, band_of
from felicific._fit.certificate import Certificate, a_priori, no_certificate
from felicific._fit.fit import People, Task, decide
from felicific._fit.fitted import Fitted, fit_policy, halves
from felicific._fit.tasks import make_task
from felicific._fit.tryout import Tryout
from felicific._frontier.curve import Curve, curve
from felicific._frontier.frontier import Frontier
from felicific._policy.individual import IndividualPolicy
from felicific._policy.lottery import content_keys, draw, keys_as_text, make_salt
from felicific._policy.policy import Policy
from felicific._problem.requirements import check_constraints
from felicific._program.moments import Moments
from felicific._program.signals import Individual, Signal, resolve_policy
from felicific._program.summing import check_weights
from felicific._sklearn.inputs import Intake, check_labels, present_people
from felicific._sklearn.model import fit_joint, fit_model, parts_of, predict_proba
from felicific._statistics.intervals import check_confidence
from felicific._tables.memory import Array, Table, as_vector, count_rows, is_frame, take_rows
from felicific.exceptions import DataError

Floats = NDArray[np.float64]


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
        half of every group is held out to test it on. Raises when nothing can be shown. A gap of 0 never can.
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
    >>> fair = FairClassifier(FrozenEstimator(model), happiness=funding, gap=0.0,
    ...                       sensitive_features="sex")                            # doctest: +SKIP
    >>> fair.fit(X_val, y_val).predict(X_test)                                     # doctest: +SKIP
    """

    def __init__(
        self,
        estimator: Any,
        *,
        happiness: Any = None,
        gap: Any = 0.0,
        policy: Any = "score",
        loss: Any = "error",
        constraints: Any = (),
        sensitive_features: Any = None,
        favourable: Any = None,
        confidence: float | None = None,
        key: Any = None,
        cv: Any = 5,
        n_jobs: int | None = None,
        random_state: Any = None,
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
            Frequencies: weight 2 is the row twice. They reach the program, and the estimator when it takes
            them.
        **fit_params
            Routed to the estimator's ``fit``.
        """
        # A fit that fails must leave the object as it was: everything happens to a copy.
        trial = copy(self)
        for name in [name for name in vars(trial) if name.endswith("_")]:
            delattr(trial, name)
        trial._fit(X, y, sensitive_features, sample_weight, fit_params)
        self.__dict__.clear()
        self.__dict__.update(trial.__dict__)
        return self

    def _fit(
        self, X: Table, y: Any, sensitive_features: Any, sample_weight: Any, fit_params: dict[str, Any]
    ) -> None:
        intake, whole = self._intake, X
        X = intake.check(self, X, reset=True)
        y = check_labels(y, count_rows(X))
        frozen = isinstance(self.estimator, FrozenEstimator)
        if frozen:
            check_is_fitted(self.estimator)
        self.classes_ = np.asarray(self.estimator.classes_) if frozen else np.unique(y)
        # What is wrong with the settings is said before any model is fitted.
        for name in ("randomize", "group_at_predict"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise DataError(f"{name} is {getattr(self, name)!r}.", "Say True or False.")
        kind, task = resolve_policy(self.policy), self._task()
        weight = check_weights(sample_weight, len(y))
        group = intake.groups(whole if is_frame(whole) else X, sensitive_features, weight)
        intake.keys(X)
        people = People(X, y, group, None, weight=weight)
        if self.confidence is None:
            self._keep(self._fit_policy(task, self._score_rows(people, kind, fit_params), kind))
        else:
            self._fit_safely(task, people, kind, fit_params)

    @property
    def _intake(self) -> Intake:
        return Intake(self.key, self.sensitive_features, bool(self.group_at_predict))

    def _task(self) -> Task:
        """What is asked, spelled out for the classes of the model."""
        return make_task(
            self.classes_,
            self.happiness,
            self.gap,
            self.loss,
            self.constraints,
            favourable=self.favourable,
            confidence=self.confidence,
            see_group=bool(self.group_at_predict),
            salt=make_salt(self.random_state),
        )

    def _fit_policy(self, task: Task, people: People, kind: Signal | Individual) -> Fitted:
        fitted = fit_policy(task, people, kind, randomize=bool(self.randomize))
        if not task.see_group:
            seeing = fit_policy(replace(task, see_group=True), people, kind, randomize=bool(self.randomize))
            self.cost_of_blindness_ = fitted.policy.loss - seeing.policy.loss
        return fitted

    def _keep(self, fitted: Fitted) -> None:
        """Show what was fitted in the attributes."""
        self._fitted = fitted
        self.policy_: Policy = fitted.policy
        self.moments_: Moments | None = fitted.moments
        self.groups_ = fitted.policy.groups
        self.loss_, self.gaps_ = fitted.policy.loss, fitted.policy.gaps
        self.share_randomized_ = fitted.share_randomized

    def _fit_safely(
        self, task: Task, people: People, kind: Signal | Individual, fit_params: dict[str, Any]
    ) -> None:
        """Fit on half of every group, and keep the loosest policy that is shown on the other half to meet the gap."""
        if people.present is not None:
            fit_params = parts_of(fit_params, people.present, len(people.group))
            people = people.take(people.present)
        (rows, fitted_on), (_, held) = halves(people, task.salt)
        fitted_on = self._score_rows(fitted_on, kind, parts_of(fit_params, rows, len(people.group)))
        self._keep(self._fit_policy(task, fitted_on, kind))
        others = replace(self._scored(held.x, held.group, held.y), weight=held.weight)
        self._keep(self._fitted.certified(fitted_on, others, check_confidence(self.confidence)))

    def _score_rows(self, people: People, kind: Signal | Individual, fit_params: dict[str, Any]) -> People:
        """Fit what is to be fitted, and ask the model about the rows of positive weight."""
        frozen, y = isinstance(self.estimator, FrozenEstimator), as_vector(people.y, "y")
        routed = {} if frozen else self._routed(people.weight, fit_params)
        features = self._intake.features(people.x, self.estimator if frozen else None)
        self.estimator_, proba, predicted = fit_model(
            self.estimator, features, y, self.classes_, self.cv, self.n_jobs, routed, kind.needs_proba
        )
        people, present = replace(people, predicted=predicted, proba=proba), people.present
        if present is not None:
            people, features = people.take(present), take_rows(features, present)
            routed = parts_of(routed, present, len(y))
        if self.group_at_predict or not isinstance(kind, Individual):
            return people
        inner = self.estimator.estimator if frozen else self.estimator
        self.joint_, belief = fit_joint(inner, features, people, self.classes_, self.cv, self.n_jobs, routed)
        return replace(people, joint=belief)

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
        return a_priori(self.policy_, self.moments_, self.loss, level)

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

    def at(self, *, gap: Any = None, loss: float | None = None) -> Self:
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
        fresh.gap = fitted.task.gap if gap is None or several or written else gap
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
        people, line = self._others(X, y, sensitive_features, sample_weight), self.frontier_
        tried = Tryout(self._fitted.task, people, line.groups)
        outcomes = [tried.outcome(tried.decide(policy)) for policy in line.policies]
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
        people, line = self._others(X, y, sensitive_features, sample_weight), self.frontier_
        return band_of(line, Tryout(self._fitted.task, people, line.groups).persons, confidence)

    def _others(self, X: Table, y: Any, sensitive_features: Any, sample_weight: Any) -> People:
        """Other people, with labels and frequencies."""
        check_is_fitted(self, "policy_")
        X, y, group, weight = present_people(X, y, sensitive_features, sample_weight)
        return replace(self._scored(X, group, y), weight=weight)

    def report(
        self, X: Table, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None, **options: Any
    ) -> Any:
        """What the person who signs looks at: one page with the groups, the whole trade-off and the policy.

        Parameters
        ----------
        X, y :
            People with labels, best not those on whom the model or the policy was fitted.
        sensitive_features : array, table, column name(s) or callable, optional
            The groups, when the constructor does not name them.
        sample_weight : array of shape (n,), optional
            Frequencies: weight 2 is the row twice.
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
        return import_module("felicific.report").choice_report(
            self._fitted.task,
            self._others(X, y, sensitive_features, sample_weight),
            self.frontier_,
            self.policy_,
            **(about | options),
        )

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
        people, fresh = self._scored(X_new, sensitive_features), copy(self)
        fitted, fresh.recalibration_ = self._fitted.recalibrated(people)
        if fitted is not self._fitted:
            fresh.__dict__.pop("cost_of_blindness_", None)
            fresh._keep(fitted)
        return fresh

    # -----------------------------------------------------------------------------------------------------
    # Predict

    def predict_proba(self, X: Table, *, sensitive_features: Any = None) -> Floats:
        """Probability of every decision: the policy itself, not the model's belief about the label."""
        check_is_fitted(self, "policy_")
        return decide(self.policy_, self._scored(X, sensitive_features, deciding=True))

    def predict(self, X: Table, *, sensitive_features: Any = None) -> Array:
        """Decide; people who face a lottery draw by their key, the same one every time."""
        check_is_fitted(self, "policy_")
        people = self._scored(X, sensitive_features, deciding=True)
        proba, keys = decide(self.policy_, people), self._intake.keys(people.x)
        codes = draw(
            proba,
            lambda rows: content_keys(people.x, rows) if keys is None else keys_as_text(keys[rows]),
            self.policy_.salt,
        )
        return np.asarray(self.classes_[codes])

    def score(self, X: Table, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """Share of decisions that equal the label."""
        decisions = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, decisions, sample_weight=sample_weight))

    def _scored(
        self, X: Table, sensitive_features: Any, y: Array | None = None, *, deciding: bool = False
    ) -> People:
        """Other people, with their groups and what the model says about them; to decide, only what the policy sees."""
        intake, policy, whole = self._intake, self.policy_, X
        X = intake.check(self, X, reset=False)
        group = predicted = proba = joint = None
        if policy.see_group or not deciding:
            group = intake.groups(whole if is_frame(whole) else X, sensitive_features)
        features = intake.features(X, self.estimator_)
        if policy.needs_proba:
            proba = predict_proba(self.estimator_, features, self.classes_)
        if not (policy.needs_proba and deciding):
            predicted = np.asarray(self.estimator_.predict(features))
        if not policy.see_group and isinstance(policy, IndividualPolicy):
            joint = self.joint_.belief(features, np.asarray(proba))
        return People(X, y, group, predicted, proba, joint=joint)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
