"""FairClassifier: a scikit-learn classifier around any other, wiring only."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy, deepcopy
from dataclasses import replace
from types import FunctionType
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter, validate_data

from felicific.bands import Band, band_of
from felicific.certificates import Certificate, a_priori, no_certificate
from felicific.constraints import Budget, Floor, check_constraints, constraint_name, resolve_gap
from felicific.curves import Curve, curve
from felicific.exceptions import DataError, HappinessError
from felicific.fitting import (
    People,
    Task,
    achieved,
    decide,
    expected_outcome,
    fit_cells,
    fit_individual,
    individual_frontier,
    kept_people,
    persons_of,
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
    encode,
    is_frame,
    is_mapping,
    null_rows,
    select_columns,
    take_column,
    take_rows,
)
from felicific.frontier import Frontier, cell_frontier
from felicific.groups import encode_groups, find_groups, resolve_groups
from felicific.happiness import CRITERIA, Happiness, resolve_happiness
from felicific.individual import IndividualPolicy
from felicific.intervals import check_confidence
from felicific.lottery import check_keys, content_keys, draw, faces_lottery, keys_as_text, make_salt
from felicific.moments import Moments, Outcome
from felicific.policy import CellPolicy, Policy
from felicific.safety import certify, check_certifiable, split
from felicific.scores import cross_fit, fit_joint, part_of, predict_proba
from felicific.signals import Individual, Signal, SoftLabel, resolve_policy
from felicific.sums import check_weights, resolve_loss

Floats = NDArray[np.float64]

#: What is found when it is first looked at, or by a safe fit, and belongs to one fit only.
FOUND = ("_frontier", "_certificate")


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
    constraints : sequence of Floor and Budget
        Further requirements.
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
        for name in [name for name in vars(trial) if name.endswith("_") or name in FOUND]:
            delattr(trial, name)
        trial._fit(X, y, sensitive_features, sample_weight, fit_params)
        self.__dict__.clear()
        self.__dict__.update(trial.__dict__)
        return self

    def _fit(
        self, X: Table, y: Any, sensitive_features: Any, sample_weight: Any, fit_params: dict[str, Any]
    ) -> None:
        whole = X
        X, y = self._check_rows(X, y)
        frozen = isinstance(self.estimator, FrozenEstimator)
        if frozen:
            check_is_fitted(self.estimator)
        self.classes_ = np.asarray(self.estimator.classes_) if frozen else np.unique(y)
        # What is wrong with the settings is said before any model is fitted.
        for name in ("randomize", "group_at_predict"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise DataError(f"{name} is {getattr(self, name)!r}.", "Say True or False.")
        kind, task = resolve_policy(self.policy), self._task(make_salt(self.random_state))
        weight = check_weights(sample_weight, len(y))
        present, sample_weight = None, weight
        if weight is not None and not weight.all():
            # Weight 0 is the row absent: not even a missing group in it may be seen.
            present = np.flatnonzero(weight)
        group = self._groups(whole if is_frame(whole) else X, sensitive_features, present)
        if self.key is not None:
            check_keys(take_column(X, self.key, "key"))
        if self.confidence is not None:
            if present is not None:
                X, y, weight = take_rows(X, present), y[present], cast(Floats, weight)[present]
                fit_params = {n: part_of(v, present, count_rows(whole)) for n, v in fit_params.items()}
            self._fit_safely(task, X, y, group, kind, weight, fit_params)
            return
        people = self._score_rows(X, y, group, kind, present, sample_weight, fit_params)
        self._fit_policy(task, people, kind)
        self._finish(task, people)

    def _task(self, salt: str) -> Task:
        """What is asked, spelled out for the classes of the model."""
        classes = self.classes_.tolist()
        own = resolve_happiness(self.happiness, classes, self.favourable)
        gap = self.gap
        if gap is not None and not isinstance(gap, Mapping):
            gap = {component.name: gap for component in own}
        constraints = check_constraints(self.constraints)
        every = own + _constrained(constraints, own, classes, self.favourable)
        widths = resolve_gap(gap, tuple(happiness.component for happiness in every))
        if self.confidence is not None:
            check_confidence(self.confidence)
            check_certifiable(self.gap, widths)
        resolve_loss(self.loss, self.classes_)
        return Task(
            classes=self.classes_,
            happiness=every,
            loss=self.loss,
            gap=gap,
            constraints=constraints,
            see_group=bool(self.group_at_predict),
            salt=salt,
        )

    def _fit_policy(self, task: Task, people: People, kind: Signal | Individual) -> None:
        seeing = replace(task, see_group=True)
        policy: Policy
        best: Policy
        self.moments_: Moments | None = None
        if isinstance(kind, Individual):
            policy, self._fitted_on = fit_individual(task, people, kind)
            best = policy if task.see_group else fit_individual(seeing, people, kind)[0]
        else:
            policy, self.moments_ = fit_cells(task, people, kind)
            best = policy if task.see_group else fit_cells(seeing, people, kind)[0]
        self.policy_: Policy = replace(policy, randomize=bool(self.randomize))
        self._labelled = self.moments_
        if not task.see_group:
            best = replace(best, randomize=bool(self.randomize))
            self.cost_of_blindness_ = (
                self._stated(task, people, self.policy_).loss - self._stated(seeing, people, best).loss
            )

    def _stated(self, task: Task, people: People, policy: Policy) -> Outcome:
        """What a policy does to these people; of a rounded one, what its rounded decisions do."""
        if policy.randomize:
            return policy.outcome
        return achieved(task, people, decide(policy, people), policy.groups)

    def _finish(self, task: Task, people: People) -> None:
        """State what the policy does to these people, and keep them if moving along the frontier needs them."""
        self.policy_ = replace(self.policy_, outcome=self._stated(task, people, self.policy_))
        self.groups_ = self.policy_.groups
        self._state(_drawn(self.policy_, people))
        self._people = people if _needs_people(self.policy_) else None

    def _state(self, share_randomized: float) -> None:
        self.loss_ = self.policy_.loss
        self.gaps_ = self.policy_.gaps
        self.share_randomized_ = share_randomized

    def _fit_safely(
        self,
        task: Task,
        X: Table,
        y: Array,
        group: Array,
        kind: Signal | Individual,
        weight: Floats | None,
        fit_params: dict[str, Any],
    ) -> None:
        """Fit on half of every group, and keep the loosest policy that is shown on the other half to meet the gap."""
        groups = find_groups(group)
        fitted, held = split(encode_groups(group, groups), groups, weight, task.salt)
        parts = []
        for people_of in (fitted, held):
            rows = np.flatnonzero(people_of)
            counts = None if weight is None else people_of[rows]
            parts.append((rows, take_rows(X, rows), y[rows], group[rows], counts))
        rows, X_fit, y_fit, group_fit, counts = parts[0]
        params = {name: part_of(value, rows, len(y)) for name, value in fit_params.items()}
        people = self._score_rows(X_fit, y_fit, group_fit, kind, None, counts, params)
        self._fit_policy(task, people, kind)
        self._finish(task, people)
        _, X_held, y_held, group_held, counts = parts[1]
        others = replace(self._scored(X_held, group_held, y_held), weight=counts)
        policy, self._certificate = certify(
            self.frontier_,
            resolve_gap(task.gap, self.policy_.components),
            lambda policy: persons_of(task, others, decide(policy, others), groups),
            persons_of(task, people, decide(self.policy_, people), groups),
            check_confidence(self.confidence),
            lambda policy: replace(policy, salt=task.salt, randomize=bool(self.randomize)),
        )
        self.policy_ = policy
        self._settle()

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
        if "_certificate" in vars(self):
            return self._certificate
        level = 0.95 if self.confidence is None else check_confidence(self.confidence)
        if not isinstance(self.estimator, FrozenEstimator):
            return no_certificate("the model was fitted to the same rows as the policy.", level)
        return a_priori(self.policy_, self.moments_, self.loss, level)

    def _reported_certificate(self) -> Certificate:
        """The certificate for a report, which says of a recalibrated classifier why there is none."""
        if self.policy_.expected and "_certificate" not in vars(self):
            level = 0.95 if self.confidence is None else check_confidence(self.confidence)
            return no_certificate("the policy was recalibrated on people without labels.", level)
        return self.certificate_

    # -----------------------------------------------------------------------------------------------------
    # The frontier

    @property
    def frontier_(self) -> Frontier:
        """The least loss for every gap, of policies of this kind, on the people this one was fitted on.

        A cheap object: it is solved when it is first looked at. With several components their gaps shrink in the
        proportions of ``gap`` where it gives each a positive number, else of their gaps when nothing is asked.
        """
        check_is_fitted(self, "policy_")
        if "_frontier" not in vars(self):
            self._frontier = self._new_frontier()
        return self._frontier

    def _new_frontier(self) -> Frontier:
        task = self._task(self.policy_.salt)
        own = [
            str(found.name)
            for found in resolve_happiness(self.happiness, task.classes.tolist(), self.favourable)
        ]
        asked = {name: width for name, width in (task.gap or {}).items() if width < np.inf}
        given = len(asked) > 1 and all(width > 0 for width in asked.values())
        direction = asked if given else list(asked or own)
        if isinstance(self.policy_, IndividualPolicy):
            return individual_frontier(task, vars(self).get("_people"), self.policy_, direction)
        return cell_frontier(
            cast(Moments, self.moments_),
            direction,
            task.constraints,
            see_group=task.see_group,
            salt=self.policy_.salt,
            expected=self.policy_.expected,
        )

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
        line = self.frontier_
        tau = line.position(gap=gap, loss=loss)
        fresh = copy(self)
        fresh.gap = gap
        if gap is None or np.isfinite(line.ray).sum() > 1:
            # What every gap that is closed may be here, so that no later fit or recalibration forgets one.
            fresh.gap = {
                component.name: tau * float(width) if width > 0 else 0.0
                for component, width in zip(line.components, line.ray, strict=True)
                if width < np.inf
            }
        fresh.policy_ = replace(line.at(tau=tau), randomize=self.policy_.randomize)
        for name in ("cost_of_blindness_", "_certificate"):
            fresh.__dict__.pop(name, None)
        fresh._settle()
        return fresh

    def _settle(self) -> None:
        """State what a policy from the frontier does to the fitted people; of a rounded one, what its decisions do."""
        policy = self.policy_
        if isinstance(policy, CellPolicy) and not _needs_people(policy):
            if not policy.randomize:
                rounded = np.eye(len(policy.classes))[policy.q.argmax(axis=2)]
                self.policy_ = replace(policy, outcome=cast(Moments, self.moments_).evaluate(rounded))
            self._state(_drawn(policy))
            return
        people, task = kept_people(vars(self).get("_people")), self._task(policy.salt)
        if not policy.randomize:
            decisions = decide(policy, people)
            outcome = (
                expected_outcome(task, people, policy, self.moments_, decisions)
                if policy.expected
                else achieved(task, people, decisions, policy.groups)
            )
            self.policy_ = replace(policy, outcome=outcome)
        self._state(_drawn(self.policy_, people))

    def frontier_on(
        self, X: Table, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> Curve:
        """What the policies of ``frontier_`` do to other people, who have labels.

        Group means and loss are straight lines between breakpoints; gaps are computed from them, with the kinks where
        groups change places. ``sample_weight`` are frequencies, as in ``fit``.
        """
        people, line = self._others(X, y, sensitive_features, sample_weight), self.frontier_
        task = self._task(self.policy_.salt)
        outcomes = [achieved(task, people, decide(policy, people), line.groups) for policy in line.policies]
        codes = encode(as_vector(people.predicted, "predictions"), self.classes_.tolist())
        today = achieved(task, people, np.eye(len(self.classes_))[codes], line.groups)
        return curve(line.components, line.groups, line.tau, outcomes, today)

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
        task = self._task(self.policy_.salt)
        return band_of(
            line, lambda policy: persons_of(task, people, decide(policy, people), line.groups), confidence
        )

    def _others(self, X: Table, y: Any, sensitive_features: Any, sample_weight: Any) -> People:
        """Other people, with labels and frequencies; weight 0 is the row absent."""
        check_is_fitted(self, "policy_")
        y = as_vector(y, "y")
        n, weight = count_rows(X), check_weights(sample_weight, len(y))
        if len(y) != n:
            raise DataError(f"There are {len(y)} labels y for {n} rows.", "Pass one for every row.")
        if weight is not None and not weight.all():
            rows = np.flatnonzero(weight)
            X, y, weight = take_rows(X, rows), y[rows], weight[rows]
            sensitive_features = part_of(sensitive_features, rows, n)
        return replace(self._scored(X, sensitive_features, y), weight=weight)

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
        steps = getattr(inner, "steps", None)
        about = {
            "grouped_by": named if isinstance(named, str) else None,
            "model": type(steps[-1][1] if steps else inner).__name__,
            "certificate": self._reported_certificate(),
        }
        return import_module("felicific.report").choice_report(
            self._task(self.policy_.salt),
            self._others(X, y, sensitive_features, sample_weight),
            self.frontier_,
            self.policy_,
            **(about | options),
        )

    def __copy__(self) -> Self:
        """A copy that shares everything, what a stored classifier leaves out too."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        twin.__dict__.update(deepcopy(self.__dict__, memo))
        return twin

    def __getstate__(self) -> dict[str, Any]:
        # People stay out of files, and a frontier is solved again from what is kept.
        state = dict(super().__getstate__())
        return {name: value for name, value in state.items() if name not in ("_people", "_frontier")}

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
        people = self._scored(X_new, sensitive_features)
        task = self._task(self.policy_.salt)
        fresh = copy(self)
        policy: Policy
        if isinstance(self.policy_, IndividualPolicy):
            policy, fresh._fitted_on = recalibrate_individual(task, people, self.policy_, self._fitted_on)
            if policy is self.policy_:
                fresh.recalibration_ = dict.fromkeys(
                    self.gaps_, "unchanged: it was fitted on these very people"
                )
                return fresh
            kept = "expected by calibrated probabilities"
        else:
            policy, fresh.moments_ = recalibrate_cells(task, people, cast(Moments, self._labelled))
            labelled = cast(Moments, self._labelled)
            pooled = float(fresh.moments_.mass[labelled.mass <= 0].sum() / fresh.moments_.total)
            kept = "reweighted from the labelled people"
            kept += f", pooled over neighbours for the {pooled:.2%} in cells without any" if pooled else ""
        fresh.policy_ = replace(policy, randomize=self.policy_.randomize, expected=True)
        fresh.recalibration_ = {
            str(happiness.name): kept if happiness.looks_at_y else "computed on the new people"
            for happiness in task.happiness
        }
        for name in ("cost_of_blindness_", *FOUND):
            fresh.__dict__.pop(name, None)
        if not fresh.policy_.randomize:
            rounded = expected_outcome(
                task, people, fresh.policy_, fresh.moments_, decide(fresh.policy_, people)
            )
            fresh.policy_ = replace(fresh.policy_, outcome=rounded)
        fresh._people = people if _needs_people(fresh.policy_) else None
        fresh._state(_drawn(fresh.policy_, people))
        return fresh

    def _check_rows(self, X: Table, y: Any) -> tuple[Table, Array]:
        """Check X and y, keeping a dataframe untouched."""
        if y is None:
            raise DataError("FairClassifier requires y to be passed, but the target y is None.", "Pass y.")
        X = self._check_table(X, reset=True)
        y = column_or_1d(y, warn=True) if np.asarray(y).shape[1:] == (1,) else as_vector(y, "y")
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
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            row = int(np.argmin(np.isfinite(y)))
            raise DataError(f"The label of row {row} is {y[row]} (infinity).", "Leave those rows out.")
        if y.dtype.kind not in "biu":  # whole numbers are classes
            check_classification_targets(y)
        labels = distinct(y)
        if len(labels) < 2:
            raise DataError(
                f"y holds one class only: {labels}.",
                "Pass rows of at least two classes; one leaves no decision.",
            )
        return X, y

    def _check_table(self, X: Table, *, reset: bool) -> Table:
        """Check X as scikit-learn does, keeping a dataframe untouched; what it holds is the model's to judge."""
        if is_mapping(X):
            raise DataError(
                "X is a mapping, which scikit-learn does not take for a table.",
                "Pass a pandas or Polars dataframe, or an array.",
            )
        if is_frame(X) and count_rows(X) == 0:
            raise DataError("X has no rows.", "Pass at least one.")
        X = self._visible(X)
        return validate_data(
            self,
            X,
            reset=reset,
            skip_check_array=is_frame(X),
            accept_sparse="csr",
            dtype=None,
            ensure_all_finite=False,
        )

    def _visible(self, X: Table) -> Table:
        """Without the columns that name the group, when the policy decides without it."""
        hidden = self._hidden()
        if not hidden or not is_frame(X):
            return X
        return select_columns(X, [name for name in column_names(X) if name not in hidden], "the policy")

    def _hidden(self) -> list[Any]:
        """Columns that name the group and may not be seen when deciding."""
        named = self.sensitive_features
        if self.group_at_predict or callable(named) or named is None:
            return []
        return [named] if isinstance(named, str) else list(named) if isinstance(named, list | tuple) else []

    def _groups(self, X: Table, sensitive_features: Any, rows: NDArray[np.intp] | None = None) -> Array:
        if sensitive_features is not None:
            return resolve_groups(X, sensitive_features, rows=rows)
        return resolve_groups(X, self.sensitive_features, rows=rows, columns_only=True)

    def _score_rows(
        self,
        X: Table,
        y: Array,
        group: Array,
        kind: Signal | Individual,
        present: NDArray[np.intp] | None,
        sample_weight: Any,
        fit_params: dict[str, Any],
    ) -> People:
        """Fit what is to be fitted, and ask the model about the rows that are ``present`` (None: all)."""
        joint = isinstance(kind, Individual) and not self.group_at_predict
        if isinstance(self.estimator, FrozenEstimator):
            self.estimator_ = self.estimator
            features = self._model_features(X)
            proba = predict_proba(self.estimator_, features, self.classes_) if kind.needs_proba else None
            predicted = np.asarray(self.estimator_.predict(features))
            inner, routed = self.estimator.estimator, {}
        else:
            inner, routed = self.estimator, self._routed(sample_weight, fit_params)
            features = self._without_key(X)
            proba, predicted = cross_fit(
                inner, features, y, self.classes_, self.cv, self.n_jobs, routed, kind.needs_proba
            )
            self.estimator_ = clone(inner).fit(features, y, **routed)
        if present is not None:
            routed = {name: part_of(value, present, len(y)) for name, value in routed.items()}
            X, features, y = take_rows(X, present), take_rows(features, present), y[present]
            predicted, sample_weight = predicted[present], sample_weight[present]
            proba = None if proba is None else proba[present]
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
        check_is_fitted(self, "policy_")
        X = self._check_table(X, reset=False)
        group = self._groups(X, sensitive_features) if self.policy_.see_group else None
        features = self._model_features(X)
        proba = predicted = joint = None
        if self.policy_.needs_proba:
            proba = predict_proba(self.estimator_, features, self.classes_)
        else:
            predicted = np.asarray(self.estimator_.predict(features))
        if not self.policy_.see_group and isinstance(self.policy_, IndividualPolicy):
            joint = self.joint_.belief(features, np.asarray(proba))
        return X, decide(self.policy_, People(X, None, group, predicted, proba, joint=joint))

    def _scored(self, X_new: Table, sensitive_features: Any, y: Array | None = None) -> People:
        """Other people, with their groups and everything the model says about them."""
        X = self._check_table(X_new, reset=False)
        group = self._groups(X_new if is_frame(X_new) else X, sensitive_features)
        features = self._model_features(X)
        proba = predict_proba(self.estimator_, features, self.classes_) if self.policy_.needs_proba else None
        blind = not self.policy_.see_group and isinstance(self.policy_, IndividualPolicy)
        return People(
            x=X,
            y=y,
            group=group,
            predicted=np.asarray(self.estimator_.predict(features)),
            proba=proba,
            joint=self.joint_.belief(features, np.asarray(proba)) if blind else None,
        )

    def _model_features(self, X: Table) -> Table:
        """Exactly the columns that the model was trained on, when it remembers them; else X without the key."""
        names = getattr(self.estimator_, "feature_names_in_", None)
        if names is not None and is_frame(X):
            used = [name for name in self._hidden() if name in names]
            if used:
                raise DataError(
                    f"The model itself uses the group column {used[0]!r}, so it cannot decide without it.",
                    "Train the model without that column, or leave group_at_predict=True.",
                )
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


def _drawn(policy: Policy, people: People | None = None) -> float:
    """Share of people whose decision is drawn by lottery."""
    if isinstance(policy, CellPolicy) and not _needs_people(policy):
        # Where people are is all there is to know of them.
        cells = faces_lottery(policy.q.reshape(-1, policy.q.shape[2]))
        return float(np.average(cells, weights=policy.mass.ravel())) if policy.randomize else 0.0
    people = cast(People, people)
    weight = None if people.weight is None else as_vector(people.weight, "sample_weight")
    return float(np.average(faces_lottery(decide(policy, people)), weights=weight))


def _needs_people(policy: Policy) -> bool:
    """Whether the sums do not tell what another policy of this kind would do to each person."""
    return not isinstance(policy, CellPolicy) or isinstance(policy.signal, SoftLabel)


def _constrained(
    constraints: tuple[Floor | Budget, ...], own: tuple[Happiness, ...], classes: list[Any], favourable: Any
) -> tuple[Happiness, ...]:
    """Components that only constraints speak of."""
    known = {component.name: component for component in own}
    families = {component.family for component in own}
    extra: dict[str, Happiness] = {}
    for constraint in constraints:
        happiness = constraint.happiness
        if isinstance(happiness, str):
            if happiness in known or happiness in families or happiness not in CRITERIA:
                continue
            extra |= {str(found.name): found for found in resolve_happiness(happiness, classes, favourable)}
            continue
        named = happiness if isinstance(happiness, Happiness) else Happiness(happiness)
        name = constraint_name(happiness)
        same = known.get(name) or extra.get(name)
        if same is None:
            extra[name] = named
        elif not (_alike(same.function, named.function) and _alike(same.among, named.among)):
            raise HappinessError(
                f"A constraint and a component are both called {name!r} and differ.", "Give one another name."
            )
    return tuple(extra.values())


def _alike(one: Any, other: Any) -> bool:
    """Whether two functions are the same; cloning an estimator copies callable objects, so those by content."""
    if isinstance(one, FunctionType) or not hasattr(one, "__dict__"):
        return bool(one == other)
    return bool(one == other) or (type(one) is type(other) and bool(vars(one)) and vars(one) == vars(other))
