"""FairRegressor: a scikit-learn regressor around any other, wiring only."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from felicific._people.checks import (
    WeightKind,
    as_amounts,
    check_inference,
    check_length,
    check_weight_kind,
    check_weights,
)
from felicific._people.roles import Roles
from felicific._people.sketch import RowSketch
from felicific._policy.lottery import make_salt
from felicific._problem.constraints import check_constraints, refuse_nothing
from felicific._program.change_cost import ChangeCost, check_change_cost
from felicific._program.signal_names import Sight, resolve_sight
from felicific._shown.parts import Part
from felicific._sklearn.base import FairEstimator
from felicific._sklearn.beliefs import check_given
from felicific._sklearn.inputs import (
    AmountColumn,
    Intake,
    Rows,
    columns_of,
    fit_model,
    given_labels,
    label_vector,
    parts_of,
    present_rows,
    present_splits,
)
from felicific._statistics.intervals import check_confidence
from felicific._tables.groups import encode_groups, find_groups
from felicific._tables.memory import column_names, count_rows, is_frame
from felicific.exceptions import DataError, PolicyWarning

if TYPE_CHECKING:
    from felicific._fit.certificate import Certificate
    from felicific._fit.numeric_assessment import AmountTryout
    from felicific._frontier.numeric import AmountFrontier
    from felicific._people.people import People
    from felicific._policy.numeric import AmountPolicy
    from felicific._policy.numeric_fit import FittedAmounts
    from felicific._policy.solve import Kind
    from felicific._problem.happiness import HappinessLike
    from felicific._problem.numeric import NumericProblem
    from felicific._problem.requirement import Requirement
    from felicific._report.document import Report
    from felicific._tables.memory import Entries
    from felicific._typing import Array, Codes, Floats, GapLike, RandomState, Table

#: Where everything is that was fitted.
FITTED = "print(fair.policy_) says more."


class FairRegressor(RegressorMixin, FairEstimator):  # type: ignore[misc]  # untyped bases
    """Change a regressor's amounts as little as needed to bring together what groups of people get.

    Finds, for every group, a line from the prediction to the amount: of least expected loss subject to every gap
    (largest minus smallest group mean of happiness) being at most ``gap``; for ``"distributional_parity"`` the gap is
    the largest difference between groups of the share of people above any amount.

    Parameters
    ----------
    estimator : regressor
        A fitted regressor as ``FrozenEstimator(model)``: every row passed to ``fit`` is then used to fit the policy, so
        they should be rows that the model was not trained on. Or an unfitted regressor: it is cross-fitted (``cv``).
    happiness : "distributional_parity", function, Happiness, expression, or list or dict of them
        What makes a person happy with an amount, ``decision``, in real units: ``"decision"`` is the amount itself,
        ``"decision >= 40"`` a share. A function of the user's is called with ``decision`` as an array of numbers.
    gap : number, or dict of measure to number, optional
        Largest allowed gap. Groups of whom a measure counts fewer than 30 people are measured and not compared, and the
        output names them; ``Gap(..., min_people=..., groups=[...])`` among the ``constraints`` says who is compared.
        By default no gap is limited, and there have to be ``constraints``; ``{}`` asks for nothing.
    sensitive_features : column(s) of X, callable, or None
        Which group a person belongs to, as for :class:`felicific.FairClassifier`.
    constraints : sequence of Gap, Ratio, Floor and Budget
        Further requirements.
    loss : "squared", "absolute", "quantile:0.9", function or expression of decision and y, default="squared"
        What an amount costs the decision maker.
    change_cost : "auto" or 0, default="auto"
        What a changed decision costs beside the loss, as for :class:`felicific.FairClassifier`; of amounts it is 0.
    policy : {"auto", "score", "individual"}, Score(...) or Individual(...), default="auto"
        What the policy sees besides the group: the prediction, or all of x. ``Score(calibration=...)`` says what is
        made of predictions first, group by group: "affine" (the line of least squares), "isotonic" or "none".
    sees_group : bool, default=True
        False when the group is known at fit only.
    decisions : None, (low, high) or list of numbers
        Which amounts there may be: any between the least and the largest calibrated prediction, any between two
        bounds, or exactly those that are listed.
    baseline : column of X or callable, optional
        The amounts of the baseline, which may also be passed to ``fit``; by default the predictions.
    missing_labels : None
        Amounts know nothing of missing labels: leave rows without one out.
    confidence : float, optional
        Returns only a policy whose gap is shown, with this confidence, to be at most ``gap`` for people like these:
        60 % of every group are held out to test it on. Raises when nothing can be shown.
    key : column of X, optional
        Identifies a person where amounts are drawn: among people who are predicted the very same.
    cv : int, splitter or iterable, default=5
        How an unfitted estimator is cross-fitted.
    random_state : None, int or RandomState
        Where the lottery's salt comes from at fit. ``predict`` itself is deterministic.

    Attributes
    ----------
    policy_ : AmountPolicy
        The policy; read its ``sentences()``.
    loss_, gaps_ : float, dict
        What it does to the rows it was fitted on.
    impact_ : dict
        What is done to those people ``"baseline"``, ``"unconstrained"`` and as ``"proposed"``; ``harmed`` and
        ``widened`` are those of :class:`felicific.FairClassifier`.
    share_randomized_ : float
        Share of those people whose amount is drawn by lottery.
    decisions_ : array, or pair of numbers
        The amounts that were listed; else the least and the largest there may be.
    groups_ : tuple
    estimator_ : regressor
        The model whose output is post-processed.
    frontier_ : AmountFrontier
        The least loss for every gap; solved when first looked at.
    group_model_ : classifier of the group, or None
    aggregates_, classes_, cost_of_blindness_, expected_gaps_, labels_, verdict_ : None
        What only a :class:`felicific.FairClassifier` has.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.linear_model import LinearRegression
    >>> from felicific import FairRegressor
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(0, 2, 900)
    >>> X = np.column_stack([rng.normal(40 + 4 * sex, 6), sex])
    >>> hours = X[:, 0] + rng.normal(0, 3, 900)
    >>> model = LinearRegression().fit(X[:300], hours[:300])
    >>> fair = FairRegressor(FrozenEstimator(model), happiness="decision", gap=1.0,
    ...                      sensitive_features=lambda X: X[:, 1], random_state=0)
    >>> fair = fair.fit(X[300:600], hours[300:600])  # people the model was not trained on
    >>> {name: round(gap, 6) for name, gap in fair.gaps_.items()}
    {'decision': 1.0}
    >>> fair.predict(X[600:]).shape
    (300,)
    """

    _says_more = FITTED
    _fitted: FittedAmounts

    def __init__(
        self,
        estimator: Any,
        *,
        happiness: HappinessLike | None = None,
        gap: GapLike = None,
        sensitive_features: Any = None,
        constraints: Iterable[Requirement] = (),
        loss: Any = "squared",
        change_cost: ChangeCost = "auto",
        policy: Kind | Literal["auto"] = "auto",
        sees_group: bool = True,
        decisions: Any = None,
        baseline: Any = None,
        missing_labels: None = None,
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
        baseline: Any = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the policy (and, unless it is frozen, the estimator).

        Parameters
        ----------
        X : dataframe or array of shape (n, features)
        y : array of shape (n,)
            Labels, finite numbers.
        sensitive_features : array, table, column name(s) or callable, optional
            The groups, when the constructor does not name them.
        sample_weight : array of shape (n,), optional
            Weight 2 is the row twice, weight 0 the row absent.
        weight_kind : {"frequency", "sampling"}, optional
            What weights are, as for :func:`felicific.audit`. The policy does not depend on it; what ``confidence`` can
            show does, so it has to be said there where weights are not plainly counts.
        baseline : array of shape (n,) or column name, optional
            The amounts of the baseline, any finite numbers; by default those that the constructor names, else the
            predictions.
        **fit_params :
            For the estimator's own ``fit``.
        """
        trial = self._unfitted()
        check_weight_kind(weight_kind)
        trial._fit(X, y, sensitive_features, sample_weight, weight_kind, baseline, fit_params)
        return self._become(trial)

    def _fit(
        self,
        X: Table,
        y: Any,
        sensitive_features: Any,
        sample_weight: Any,
        weight_kind: WeightKind,
        baseline: Any,
        fit_params: dict[str, Any],
    ) -> None:
        if is_classifier(self._bare_model):
            raise DataError(
                f"{self._model_name} is a classifier.",
                "Use FairClassifier, whose decisions= may be amounts as well.",
            )
        if check_change_cost(self.change_cost) not in ("auto", 0.0):
            raise DataError(
                f"change_cost={self.change_cost!r} is not available for amounts.",
                "Leave change_cost= out: the loss says what another amount costs.",
            )
        if self.missing_labels is not None:
            raise DataError(
                f"missing_labels={self.missing_labels!r} is not available for amounts.",
                "Leave it out, and leave rows without a label out.",
            )
        self._remember_groups(X, sensitive_features)
        intake, whole = self._intake, X
        X = intake.check(self, X, reset=True)
        n = count_rows(X)
        weight = check_weights(sample_weight, n)
        present = present_rows(weight)
        labels = _labels_of(y, n, present)
        if (n if present is None else len(present)) < 2:
            raise DataError(
                "Found n_samples=1: one person shows nothing of how groups differ.",
                "Pass at least two rows of positive weight.",
            )
        problem, salt = self._problem(), make_salt(self.random_state)
        kind = self._kind(problem)
        problem = replace(problem, monotone=kind.monotone)
        if kind.individual:
            from felicific._problem.numeric import check_individual

            check_individual(problem)
        check_inference(self._group_proba, sees_x=kind.individual, sees_group=problem.sees_group)
        if self._frozen:
            check_is_fitted(self._bare_model)
        table = whole if is_frame(whole) else X
        group = intake.groups(table, sensitive_features, weight, fresh=True)
        if self._group_proba is not None:
            check_given(self._group_proba, find_groups(group if present is None else group[present]), X)
        now = self._amounts_baseline(table, baseline)
        if (
            kind.individual
            and baseline is not None
            and any("baseline" in part.asks for part in problem.happiness)
        ):
            raise DataError(
                "Happiness looks at the baseline, and an individual policy has to know those of new people too.",
                "Name their column in the constructor, baseline='...', instead of passing them to fit.",
            )
        check_length(now, n, "amounts of the baseline")
        attributes = intake.attributes(table, sensitive_features)
        rows = Rows(X, labels, group, weight, now, np.arange(n), weight_kind, attributes=attributes)
        rows = replace(rows, keys=intake.keys(X))
        if present is not None:
            rows, fit_params = rows.take(present), parts_of(fit_params, present, n)
            self._cv = present_splits(self.cv, present, n)
        if self.confidence is None:
            self._sketches = (RowSketch.of(rows.x, self.key),)
            self._keep(self._fitted_to(rows, fit_params, kind, problem, salt))
        else:
            self._fit_safely(rows, fit_params, kind, problem, salt)
        self.__dict__.pop("_cv", None)
        self._warn()

    def _fitted_to(
        self, rows: Rows, fit_params: dict[str, Any], kind: Sight, problem: NumericProblem, salt: str
    ) -> FittedAmounts:
        """Fit the model, unless it came fitted, and the policy."""
        from felicific._policy.numeric_fit import fit_amounts
        from felicific._program.calibration import check_method

        prediction = self._model_predictions(rows, fit_params)
        out_of_fold = not self._frozen
        chances = None
        if kind.individual and not problem.sees_group:
            chances = self._beliefs(rows, self._intake.features(rows.x), getattr(self, "_cv", self.cv))
        return fit_amounts(
            problem,
            self._people_of(rows, prediction, group_proba=chances),
            calibration=check_method(kind.calibration),
            salt=salt,
            randomize=self._randomize,
            out_of_fold=out_of_fold,
            individual=kind.individual,
        )

    def _people_of(
        self,
        rows: Rows,
        prediction: Floats,
        groups: tuple[Any, ...] | None = None,
        group_proba: Floats | None = None,
    ) -> People:
        from felicific._people.people import People

        named = columns_of(self.estimator)
        people = People.predicted_amounts(
            rows.x,
            prediction=prediction,
            y=rows.y,
            group=rows.group,
            weight=rows.weight,
            baseline=rows.baseline,
            rows=rows.numbers,
            attributes=tuple(rows.attributes),
            groups=groups,
            group_proba=group_proba,
            weight_kind=rows.weight_kind,
        )
        return replace(people, roles=self._roles(predicted=None if named is None else named[0]))

    def _fit_safely(
        self, rows: Rows, fit_params: dict[str, Any], kind: Sight, problem: NumericProblem, salt: str
    ) -> None:
        """Fit on a part of every group, and keep the loosest policy that is shown on the others to meet the gap."""
        from felicific._fit.numeric_safety import certify_amounts, check_certifiable

        sure = check_confidence(self.confidence)
        check_certifiable(problem)
        whom = [
            *(part.whom for part in problem.comparisons),
            *([problem.parity_whom] if problem.distance else []),
        ]
        fitting, held = rows.halves(salt, min((one.min_people for one in whom), default=0.0))
        self._sketches = (RowSketch.of(fitting.x, self.key),)
        places = np.searchsorted(rows.numbers, fitting.numbers)
        fitted = self._fitted_to(
            fitting, parts_of(fit_params, places, len(rows.numbers)), kind, problem, salt
        )
        features = self._intake.features(held.x, self.estimator_)
        prediction = _one_column(self.estimator_.predict(features))
        groups, infers = fitted.policy.groups, fitted.policy.infers_group
        chances = self._chances(held.x, groups) if infers else None
        others = self._people_of(held, prediction, groups, chances)
        certified, self._certificate = certify_amounts(fitted, others, sure, rows.weight_kind)
        self._keep(certified)

    @property
    def _model(self) -> Any:
        named = columns_of(self.estimator)
        if named is not None and len(named) > 1:
            raise DataError(
                f"estimator={self.estimator!r} names {len(named)} columns, and amounts are predicted in one.",
                "Name that column.",
            )
        return self.estimator if named is None else FrozenEstimator(AmountColumn(named[0]))

    def _kind(self, problem: NumericProblem) -> Sight:
        """What the policy sees."""
        if isinstance(self.policy, str) and self.policy == "auto":
            looks_at_x = any("x" in part.asks for part in problem.happiness)
            looks_at_y = any("y" in part.asks for part in problem.happiness)
            asks_more = looks_at_x or not problem.sees_group
            # What only cells of the prediction can do: ranks, labels, limits, listed amounts and other losses.
            of_cells = problem.parity or looks_at_y or not problem.squared or problem.allowed.listed
            limits = any(part.rate for part in problem.happiness)
            return Sight(bool(asks_more and not of_cells and not limits))
        return resolve_sight(self.policy)

    @property
    def _intake(self) -> Intake:
        named = getattr(self, "sensitive_features_", self.sensitive_features)
        return Intake(self.key, named, bool(self.sees_group), self._believed_columns)

    def _problem(self) -> NumericProblem:
        """What is asked."""
        from felicific._problem.numeric import NumericProblem

        constraints = check_constraints(self.constraints)
        refuse_nothing(self.gap, constraints)
        return NumericProblem.finding(
            self.happiness,
            loss=self.loss,
            gap=self.gap,
            constraints=constraints,
            decisions=self.decisions,
            sees_group=bool(self.sees_group),
        )

    def _amounts_baseline(self, table: Table, baseline: Any = None) -> Array | None:
        """The amounts of the baseline, where somebody said what they are."""
        return Roles(baseline=self._baseline_in(table, baseline)).column(table, "baseline")

    def _model_predictions(self, rows: Rows, fit_params: dict[str, Any]) -> Floats:
        """Fit the model unless it came fitted, and ask it about the rows."""
        frozen, cv = self._frozen, getattr(self, "_cv", self.cv)
        routed = {} if frozen else self._routed(rows.weight, fit_params)
        features = self._intake.features(rows.x, self._model if frozen else None)
        self.estimator_, _, predicted = fit_model(
            self._model,
            features,
            rows.y,
            np.empty(0),
            cv,
            routed,
            None,
            stratified=False,
        )
        return _one_column(predicted)

    def _keep(self, fitted: FittedAmounts) -> None:
        """Show what was fitted in the attributes."""
        from felicific._frontier.numeric import AmountFrontier

        self._fitted, self._frontier = fitted, AmountFrontier.of(fitted)
        self.policy_: AmountPolicy = fitted.policy
        self.groups_ = fitted.policy.groups
        self.loss_, self.gaps_ = fitted.policy.loss, fitted.policy.gaps
        self.impact_ = fitted.policy.outcomes
        self.means_, self.prices_ = fitted.policy.means, fitted.policy.prices
        self.share_randomized_ = fitted.policy.share_randomized
        listed = fitted.policy.listed
        self.decisions_ = np.array(fitted.policy.bounds if listed is None else listed)
        # What only a FairClassifier has: there all the same, and None.
        self.aggregates_ = self.classes_ = self.cost_of_blindness_ = self.expected_gaps_ = None
        self.labels_ = self.verdict_ = None

    def _warn(self) -> None:
        """At most one warning for a fit: the worst. Everything is among the notes that the printed object shows."""
        self._notes = tuple(self.policy_.cautions())
        if self._notes:
            warnings.warn(self._notes[0], PolicyWarning, stacklevel=4)

    @property
    def certificate_(self) -> Certificate:
        """What can be promised of gaps and loss to people it has not seen; print it.

        After fitting with ``confidence=``, what was shown on the rows held out. There is no bound in advance for all
        lines there are: otherwise nothing can be promised.
        """
        from felicific._fit.certificate import no_certificate

        check_is_fitted(self, "policy_")
        if "_certificate" in vars(self):
            return self._certificate
        return no_certificate(
            "there is no bound in advance for lines of amounts. Audit it on rows it has not seen, or fit it with "
            "a confidence."
        )

    # -----------------------------------------------------------------------------------------------------
    # The frontier, and other people

    @property
    def frontier_(self) -> AmountFrontier:
        """The least loss for every gap, on the people this one was fitted on; solved when it is first looked at."""
        check_is_fitted(self, "policy_")
        return self._frontier

    def at(self, *, gap: GapLike) -> Self:
        """A new fitted object at another gap, without asking the model again; it carries no certificate.

        Parameters
        ----------
        gap : number, or dict of measure to number
            The gap allowed.
        """
        check_is_fitted(self, "policy_")
        fresh = copy(self)
        fresh.gap = gap
        return fresh._moved(self._fitted.moved(gap))

    def recalibrate(self, X_new: Table, *, sensitive_features: Any = None) -> Self:
        """Fit the policy anew to people without labels: those it will decide on.

        What a prediction means for the label is kept, and how the new people are spread is counted anew: their gaps are
        met as those of the fitted people were. ``loss_`` is what is expected if p(label given prediction, group) has
        not changed, which people without labels cannot show.
        """
        check_is_fitted(self, "policy_")
        table = X_new if is_frame(X_new) else self._intake.check(self, X_new, reset=False)
        people = self._people(X_new, sensitive_features, baseline=self._amounts_baseline(table))
        fresh = copy(self)
        fresh._sketches = (self._sketches[0], RowSketch.of(people.x, self.key))
        return fresh._moved(self._fitted.recalibrated(people))

    def _people(
        self, X: Table, sensitive_features: Any, y: Any = None, baseline: Any = None, weight: Any = None
    ) -> People:
        """People of a table after the fit."""
        from felicific._people.people import People

        x, prediction, group = self._looked_at(X, sensitive_features, always=True)
        people = People.predicted_amounts(
            x,
            prediction=prediction,
            y=y,
            group=group,
            weight=weight,
            baseline=baseline,
            groups=self.groups_,
            attributes=self.policy_.attributes,
            group_proba=self._chances(x, self.groups_) if self.policy_.infers_group else None,
        )
        return replace(people, roles=self.policy_.roles, left_out=self.policy_.left_out)

    # -----------------------------------------------------------------------------------------------------
    # Reports

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
        unit: str = "",
        period: str | None = None,
        date: str | None = None,
        title: str | None = None,
        command: str | None = None,
        confidence: float = 0.95,
    ) -> Report:
        """What the person who signs looks at: one page with the verdict, who gets more and who less, and what it costs.

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
            The amounts of the baseline; by default those that the constructor names, else what the model predicts.
        unit : str, optional
            What amounts are counted in, such as "hours"; a happiness that is the amount itself says it by its own unit.
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

        check_is_fitted(self, "policy_")
        tried = self._tryout(X, y, sensitive_features, sample_weight, baseline, unit, weight_kind, cluster)
        people = tried.people
        shares = self._shares_fitted(people.x)
        notes = fitted_notes(*shares, self.policy_.out_of_fold)
        page = import_module("felicific._report.document")
        told = page.Told(
            **self._about(),
            certificate=self.certificate_,
            confidence=confidence,
            period=period,
            date=date,
            title=title,
            command=command,
            notes=notes,
            in_sample=" ".join(notes),
        )
        report: Report = page.amounts_report(tried, self._fitted, told)
        return report

    def _tryout(
        self,
        X: Table,
        y: Any,
        sensitive_features: Any,
        sample_weight: Any,
        baseline: Any,
        unit: str,
        weight_kind: WeightKind,
        cluster: Any,
    ) -> AmountTryout:
        """Other people, with labels and weights, to try policies on."""
        from felicific._fit.numeric_assessment import AmountTryout

        if not isinstance(unit, str):
            raise DataError(f"unit is {unit!r}.", "Give it as text, 'hours' say.")
        n = count_rows(X)
        labels, weight = given_labels(X, y), check_weights(sample_weight, n)
        said = Roles(baseline=self._baseline_in(X, baseline), cluster=cluster)
        now, alike = said.column(X, "baseline"), said.column(X, "cluster")
        for column, what in ((now, "amounts of the baseline"), (alike, "clusters")):
            check_length(column, n, what)
        people = self._people(X, sensitive_features, labels, now, weight)
        named = self.key is not None and self.key in column_names(people.x)
        # Who is only measured draws by row where nobody is told apart: people who are alike draw each for themselves.
        keys = self._intake.keys(people.x) if named else people.rows
        assert keys is not None, "there is a column of keys, or rows have numbers"

        return AmountTryout.of(
            self._fitted.problem,
            people,
            unit,
            keys=keys,
            weight_kind=weight_kind,
            cluster=None if alike is None else np.asarray(alike)[people.rows],
        )

    # -----------------------------------------------------------------------------------------------------
    # Predict

    def predict(self, X: Table, *, sensitive_features: Any = None, key: Any = None) -> Floats:
        """The amount of every person; who draws one draws by their key, the same one every time.

        Parameters
        ----------
        X : dataframe or array of shape (n, features)
            A dataframe may have further columns, in any order.
        sensitive_features : array, table, column name(s) or callable, optional
            The groups, when neither the constructor nor ``fit`` named their columns.
        key : column of X or array of shape (n,), optional
            Identifies a person, string or integer; by default the ``key`` of the constructor.
        """
        from felicific._policy.numeric_individual import IndividualAmountPolicy

        check_is_fitted(self, "policy_")
        x, prediction, group = self._looked_at(X, sensitive_features)
        codes = (
            encode_groups(group, self.groups_)
            if self.policy_.sees_group
            else np.zeros(len(prediction), dtype=np.intp)
        )
        if isinstance(self.policy_, IndividualAmountPolicy):
            chances = self._chances(x, self.groups_) if self.policy_.infers_group else None
            now = None
            if self.policy_.looks_at_baseline:
                said = self._amounts_baseline(X if is_frame(X) else x)
                now = None if said is None else as_amounts(said, "amount of the baseline", n=len(prediction))
            return self.policy_.decided(prediction, codes, x, chances, now)
        return self.policy_.given(prediction, codes, self._texts(X, x, key, 5))

    def amounts_of(self, X: Table, *, sensitive_features: Any = None) -> Floats:
        """The amounts that an audit looks at: those of :meth:`predict`."""
        return self.predict(X, sensitive_features=sensitive_features)

    def _without_policy(self, X: Table) -> Floats:
        """What the model itself predicts."""
        x = self._intake.check(self, X, reset=False)
        features = self._intake.features(x, self.estimator_, self._columns)
        return as_amounts(_one_column(self.estimator_.predict(features)), "prediction")

    def _looked_at(
        self, X: Table, sensitive_features: Any, *, always: bool = False
    ) -> tuple[Table, Floats, Entries]:
        """Rows, what the model predicts of them, and their groups where these are seen (``always``: in any case)."""
        intake = self._intake
        x = intake.check(self, X, reset=False)
        fitted = self._columns
        features = intake.features(x, self.estimator_, fitted)
        prediction = as_amounts(_one_column(self.estimator_.predict(features)), "prediction")
        sees = always or self.policy_.sees_group
        group = intake.groups(X if is_frame(X) else x, sensitive_features) if sees else np.empty(0)
        return x, prediction, group

    def score(self, X: Table, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """R², the share of the labels' variance that the amounts explain."""
        from sklearn.metrics import r2_score

        amounts = self.predict(X, sensitive_features=sensitive_features)
        return float(r2_score(y, amounts, sample_weight=sample_weight))

    # -----------------------------------------------------------------------------------------------------
    # Shown

    def _summary(self) -> list[Part]:
        """What was fitted; nothing before that."""
        if "policy_" not in vars(self):
            return []
        return [*self.policy_._parts()]

    def __str__(self) -> str:
        return repr(self)


def _one_column(predicted: Any) -> Array:
    """What a model predicts, one number for everybody."""
    values = np.asarray(predicted)
    if values.ndim == 2 and values.shape[1] == 1:
        return np.asarray(values[:, 0])
    if values.ndim != 1:
        raise DataError(
            f"The model predicts {values.shape[1:]} numbers for a person.",
            "Wrap a model that predicts one; amounts of several kinds are fitted one after the other.",
        )
    return values


def _labels_of(y: Any, n: int, present: Codes | None) -> Floats:
    """One finite number for each of n rows; of a row that is absent, any."""
    if y is None:
        raise DataError(
            "FairRegressor requires y to be passed, but the target y is None.", "Pass y, one number per row."
        )
    labels = label_vector(y, n)
    if present is None:
        return as_amounts(labels, "label y")
    numbers = np.zeros(n)
    numbers[present] = as_amounts(labels[present], "label y", present)
    return numbers
