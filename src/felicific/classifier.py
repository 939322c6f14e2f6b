"""FairClassifier: a scikit-learn classifier around any other, wiring only."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from felicific.constraints import Budget, Floor, constraint_name
from felicific.exceptions import DataError, HappinessError
from felicific.fitting import (
    People,
    Task,
    achieved,
    fit_cells,
    fit_individual,
    recalibrate_cells,
    recalibrate_individual,
)
from felicific.frames import (
    Array,
    Table,
    as_vector,
    column_names,
    count_rows,
    distinct,
    is_frame,
    null_rows,
    select_columns,
    take_column,
)
from felicific.groups import resolve_groups
from felicific.happiness import CRITERIA, Happiness, resolve_happiness
from felicific.individual import IndividualPolicy
from felicific.lottery import check_keys, content_keys, draw, faces_lottery, keys_as_text
from felicific.moments import Moments
from felicific.policy import Policy
from felicific.scores import cross_fit, fit_joint, predict_proba
from felicific.signals import Individual, Signal, resolve_policy

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
    happiness : function, Happiness, criterion name, or list or dict of them
        What makes a person happy with a decision, in real units.
    gap : number, or dict of component or criterion to number, default=0.0
        Largest allowed gap, in the unit of happiness. With a dict, components it does not name are measured
        and not constrained; None constrains nothing.
    policy : {"score", "individual", "label", "soft-label"}, Score(...) or Individual(...), default="score"
        What the policy sees of a person besides the group: the cell of the score, all of x, the predicted label,
        or a label drawn from the probabilities (the paper's).
    loss : "error", cost matrix (label, decision) or function, default="error"
        What a decision costs the decision maker.
    constraints : sequence of Floor and Budget
        Further requirements.
    sensitive_features : column(s) of X, callable, or None
        Which group a person belongs to; several columns mean their intersections. With None, pass
        ``sensitive_features=`` to ``fit`` and ``predict``.
    favourable : class, optional
        The decision that people hope for; the last class by default.
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
        X, y = self._check_rows(X, y)
        group = self._groups(X, sensitive_features)
        if self.key is not None:
            check_keys(take_column(X, self.key, "key"))
        kind = resolve_policy(self.policy)
        people = self._score_rows(X, y, group, kind, sample_weight, fit_params)
        task = self._task()
        self._fit_policy(task, people, kind)
        self._finish(task, people)
        return self

    def _task(self) -> Task:
        """What is asked, spelled out for the classes of the model."""
        classes = self.classes_.tolist()
        own = resolve_happiness(self.happiness, classes, self.favourable)
        gap = self.gap
        if gap is not None and not isinstance(gap, Mapping):
            gap = {component.name: gap for component in own}
        return Task(
            classes=self.classes_,
            happiness=own + _constrained(self.constraints, own, classes, self.favourable),
            loss=self.loss,
            gap=gap,
            constraints=self.constraints,
            see_group=bool(self.group_at_predict),
            random_state=self.random_state,
        )

    def _fit_policy(self, task: Task, people: People, kind: Signal | Individual) -> None:
        seeing = replace(task, see_group=True)
        policy: Policy
        best: Policy
        self.moments_: Moments | None = None
        if isinstance(kind, Individual):
            policy = fit_individual(task, people, kind)
            best = policy if task.see_group else fit_individual(seeing, people, kind)
        else:
            policy, self.moments_ = fit_cells(task, people, kind)
            best = policy if task.see_group else fit_cells(seeing, people, kind)[0]
        if not task.see_group:
            self.cost_of_blindness_ = policy.loss - best.loss
        self.policy_ = replace(policy, randomize=bool(self.randomize))

    def _finish(self, task: Task, people: People) -> None:
        """State what the policy does to these people."""
        policy = self.policy_
        decisions = self._apply(people.x, people.proba, people.predicted, people.joint, people.group)
        if not policy.randomize:
            self.policy_ = policy = replace(policy, outcome=achieved(task, people, decisions, policy.groups))
        self.groups_ = policy.groups
        self.loss_ = policy.loss
        self.gaps_ = policy.gaps
        weight = None if people.weight is None else as_vector(people.weight, "sample_weight")
        self.share_randomized_ = float(np.average(faces_lottery(decisions), weights=weight))

    def recalibrate(self, X_new: Table, *, sensitive_features: Any = None) -> Self:
        """Fit the policy anew to people without labels: those it will decide about.

        Components that ignore the label are computed on these people, so their gaps are met on them exactly, in
        expectation over the lottery. Of the loss, and of components that look at the label, the mean given signal
        and group is kept from the labelled people and weighted by where the new people are; an individual policy
        expects them by its calibrated probabilities.

        Returns
        -------
        FairClassifier
            A new fitted object, whose ``loss_`` and ``gaps_`` are those expected on the new people, and whose
            ``recalibration_`` says how each component was brought to them. It carries no certificate.
        """
        check_is_fitted(self)
        X = self._check_table(X_new, reset=False)
        features = self._model_features(X)
        needs_proba = getattr(resolve_policy(self.policy), "needs_proba", True)
        people = People(
            x=X,
            y=None,
            group=self._groups(X, sensitive_features),
            predicted=np.asarray(self.estimator_.predict(features)),
            proba=predict_proba(self.estimator_, features, self.classes_) if needs_proba else None,
        )
        task = self._task()
        fresh = copy.copy(self)
        policy: Policy
        if isinstance(self.policy_, IndividualPolicy):
            policy, kept = (
                recalibrate_individual(task, people, self.policy_),
                "expected by calibrated probabilities",
            )
        else:
            policy, fresh.moments_ = recalibrate_cells(
                task, people, cast(Moments, self.moments_), self.policy_.salt
            )
            kept = "reweighted from the labelled people"
        fresh.policy_ = replace(policy, randomize=bool(self.randomize))
        fresh.recalibration_ = {
            str(happiness.name): kept if happiness.looks_at_y else "computed on the new people"
            for happiness in task.happiness
        }
        fresh.recalibration_["loss"] = kept
        decisions = fresh._apply(X, people.proba, people.predicted, None, people.group)
        fresh.share_randomized_ = float(faces_lottery(decisions).mean())
        fresh.loss_, fresh.gaps_ = policy.loss, policy.gaps
        return fresh

    def _check_rows(self, X: Table, y: Any) -> tuple[Table, Array]:
        """Check X and y, keeping a dataframe untouched."""
        if isinstance(X, Mapping):
            raise DataError(
                "X is a mapping, which scikit-learn does not take for a table.",
                "Pass a pandas or Polars dataframe, or an array.",
            )
        if y is None:
            raise DataError("FairClassifier requires y to be passed, but the target y is None.", "Pass y.")
        X = self._check_table(X, reset=True)
        y = as_vector(y, "y")
        if len(y) != count_rows(X):
            raise DataError(
                f"There are {len(y)} labels y for {count_rows(X)} rows.", "Pass one for every row."
            )
        missing = null_rows(y)
        if len(missing):
            raise DataError(
                f"The label is missing (NaN or None) in {len(missing)} rows, first in row {missing[0]}.",
                "Leave those rows out.",
            )
        check_classification_targets(y)
        labels = distinct(y)
        if len(labels) < 2:
            raise DataError(
                f"y holds one class only: {labels}.",
                "Pass rows of at least two classes; one leaves no decision.",
            )
        return X, y

    def _check_table(self, X: Table, *, reset: bool) -> Table:
        return validate_data(
            self, X, reset=reset, skip_check_array=is_frame(X), accept_sparse=True, dtype=None
        )

    def _groups(self, X: Table, sensitive_features: Any) -> Array:
        given = sensitive_features if sensitive_features is not None else self.sensitive_features
        return resolve_groups(X, given)

    def _score_rows(
        self,
        X: Table,
        y: Array,
        group: Array,
        kind: Signal | Individual,
        sample_weight: Any,
        fit_params: dict[str, Any],
    ) -> People:
        """Fit what is to be fitted, and ask the model about X."""
        joint = isinstance(kind, Individual) and not self.group_at_predict
        if isinstance(self.estimator, FrozenEstimator):
            self.estimator_ = self.estimator
            self.classes_ = np.asarray(self.estimator.classes_)
            features = self._model_features(X)
            proba = predict_proba(self.estimator_, features, self.classes_) if kind.needs_proba else None
            predicted = np.asarray(self.estimator_.predict(features))
            inner, routed = self.estimator.estimator, {}
        else:
            self.classes_ = np.unique(y)
            inner, routed = self.estimator, self._routed(sample_weight, fit_params)
            features = self._without_key(X)
            proba, predicted = cross_fit(
                inner, features, y, self.classes_, self.cv, self.n_jobs, routed, kind.needs_proba
            )
            self.estimator_ = clone(inner).fit(features, y, **routed)
        people = People(X, y, group, predicted, proba, sample_weight)
        if not joint:
            return people
        self.joint_, belief = fit_joint(
            inner, features, y, group, self.classes_, self.cv, self.n_jobs, routed, np.asarray(proba)
        )
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
    # Predict

    def predict_proba(self, X: Table, *, sensitive_features: Any = None) -> Floats:
        """Probability of every decision: the policy itself, not the model's belief about the label."""
        return self._decisions(X, sensitive_features)[1]

    def predict(self, X: Table, *, sensitive_features: Any = None) -> Array:
        """Decide; people who face a lottery draw by their key, the same one every time."""
        X, proba = self._decisions(X, sensitive_features)
        if self.key is None:
            codes = draw(proba, lambda rows: content_keys(X, rows), self.policy_.salt)
        else:
            keys = check_keys(take_column(X, self.key, "key"))
            codes = draw(proba, lambda rows: keys_as_text(keys[rows]), self.policy_.salt)
        return np.asarray(self.classes_[codes])

    def score(self, X: Table, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """Share of decisions that equal the label."""
        decisions = self.predict(X, sensitive_features=sensitive_features)
        return float(accuracy_score(y, decisions, sample_weight=sample_weight))

    def _decisions(self, X: Table, sensitive_features: Any) -> tuple[Table, Floats]:
        check_is_fitted(self)
        X = self._check_table(X, reset=False)
        group = self._groups(X, sensitive_features) if self.policy_.see_group else None
        features = self._model_features(X)
        proba = predicted = joint = None
        if resolve_policy(self.policy).needs_proba:
            proba = predict_proba(self.estimator_, features, self.classes_)
        else:
            predicted = np.asarray(self.estimator_.predict(features))
        if not self.policy_.see_group and isinstance(self.policy_, IndividualPolicy):
            joint = self.joint_.belief(features, np.asarray(proba))
        return X, self._apply(X, proba, predicted, joint, group)

    def _apply(self, X: Table, proba: Any, predicted: Any, joint: Any, group: Array | None) -> Floats:
        scores = predicted if proba is None else proba
        if joint is not None:
            scores = joint.reshape(len(joint), -1)
        return self.policy_.apply(scores, group, X)

    def _model_features(self, X: Table) -> Table:
        """Exactly the columns that the model was trained on, when it remembers them; else X without the key."""
        names = getattr(self.estimator_, "feature_names_in_", None)
        if names is not None and is_frame(X):
            return select_columns(X, list(names), "the model")
        return self._without_key(X)

    def _without_key(self, X: Table) -> Table:
        if self.key is None:
            return X
        return select_columns(X, [name for name in column_names(X) if name != self.key], "the model")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _constrained(
    constraints: Any, own: tuple[Happiness, ...], classes: list[Any], favourable: Any
) -> tuple[Happiness, ...]:
    """Components that only constraints speak of."""
    known = {component.name: component for component in own}
    extra: dict[str, Happiness] = {}
    for constraint in constraints or ():
        if not isinstance(constraint, Floor | Budget):
            continue
        happiness = constraint.happiness
        if isinstance(happiness, str):
            if happiness in known or happiness not in CRITERIA:
                continue
            extra |= {str(found.name): found for found in resolve_happiness(happiness, classes, favourable)}
            continue
        named = happiness if isinstance(happiness, Happiness) else Happiness(happiness)
        name = constraint_name(happiness)
        same = known.get(name) or extra.get(name)
        if same is None:
            extra[name] = named
        elif same.function is not named.function or same.among is not named.among:
            raise HappinessError(
                f"A constraint and a component are both called {name!r} and differ.", "Give one another name."
            )
    return tuple(extra.values())
