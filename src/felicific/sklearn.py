"""What felicific offers to scikit-learn's model selection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from felicific._audit.decided import scored_by
from felicific._audit.missing import with_beliefs
from felicific._fit.fitted import achieved
from felicific._people.checks import check_weights
from felicific._people.people import People, changes, refuse_idle
from felicific._people.roles import Roles
from felicific._problem.constraints import check_one_unit
from felicific._problem.happiness import HappinessLike, measured
from felicific._problem.missing_labels import MissingLabelsLike, resolve_missing_labels
from felicific._problem.problem import problem_of
from felicific._sklearn.classifier import FairClassifier
from felicific._sklearn.inputs import present_rows
from felicific._tables.groups import resolve_groups
from felicific._tables.memory import as_vector, count_rows, encode, null_rows, take_rows
from felicific._typing import LossLike, Table
from felicific.exceptions import ConstraintError

__all__ = ["make_scorer"]


def make_scorer(
    happiness: HappinessLike | None = None,
    sensitive_features: Any = None,
    loss: LossLike | None = None,
    decisions: Sequence[Any] | None = None,
    price: float | Mapping[str, float] | None = None,
    missing_labels: MissingLabelsLike = None,
) -> Scorer:
    """Score decisions by loss and gap, for ``GridSearchCV(..., scoring=make_scorer(...))``.

    Without a ``price`` the result is a dict: ``neg_loss``, and ``neg_gap`` (one measure) or
    ``neg_gap: name`` (several); larger is better, and ``refit="neg_loss"`` chooses. With a price, in loss per
    unit of gap, the result is the one number minus (loss + price x gap).

    Parameters
    ----------
    happiness, loss, sensitive_features, decisions :
        As for :class:`FairClassifier`; what is left None is taken from the FairClassifier that is scored.
    price : number, or dict of measure to number
        Turns the two into one.
    missing_labels : "at_random", "unknown" or MissingLabels(...), optional
        As for :func:`felicific.audit`: what is known of why some labels are missing. With ``max_odds_ratio`` of more
        than 1 the loss and the gaps are the worst that is left open. A search then needs a splitter that does not look
        at labels, ``cv=KFold(5)``: scikit-learn's default stratifies by them.

    Notes
    -----
    A FairClassifier is scored by its decision probabilities, so the lottery adds no noise; any other
    classifier by its ``predict``.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from felicific.sklearn import make_scorer
    >>> from felicific.datasets import synthetic_loans
    >>> data = synthetic_loans(300)
    >>> X = data.X[["yearly_salary", "loan_requested"]]
    >>> scorer = make_scorer("decision", sensitive_features=lambda X: X["loan_requested"] > 525_000)
    >>> search = GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [1, 3]}, cv=2,
    ...                       scoring=scorer, refit="neg_loss").fit(X, data.y)
    >>> sorted(name for name in search.cv_results_ if name.startswith("mean_test"))
    ['mean_test_neg_gap', 'mean_test_neg_loss']
    """
    return Scorer(happiness, sensitive_features, loss, decisions, price, missing_labels)


@dataclass(frozen=True)
class Scorer:
    """Scores decisions by loss and gap; see :func:`felicific.sklearn.make_scorer`."""

    happiness: HappinessLike | None = None
    sensitive_features: Any = None
    loss: LossLike | None = None
    decisions: Sequence[Any] | None = None
    price: float | Mapping[str, float] | None = None
    missing_labels: MissingLabelsLike = None

    def __call__(
        self, estimator: Any, X: Table, y: Any, *, sample_weight: Any = None, sensitive_features: Any = None
    ) -> float | dict[str, float]:
        """Score a fitted classifier on X and y."""
        estimator = getattr(estimator, "best_estimator_", estimator)
        last = estimator[-1] if hasattr(estimator, "steps") else estimator
        fair = isinstance(last, FairClassifier)
        named = sensitive_features if sensitive_features is not None else self.sensitive_features
        weight, labels = check_weights(sample_weight, count_rows(X)), as_vector(y, "y")
        missing = resolve_missing_labels(
            last.missing_labels if fair and self.missing_labels is None else self.missing_labels
        )
        chances = Roles(missing_labels=missing).label_proba_in(X) if len(null_rows(labels)) else None
        present = present_rows(weight)
        if present is not None and weight is not None:
            # Weight 0 is the row absent: not even a model is asked about it.
            named = None if named is None else resolve_groups(X, named, rows=present)
            sensitive_features = None if sensitive_features is None else named
            X, labels, weight = take_rows(X, present), labels[present], weight[present]
            chances = None if chances is None else chances[present]
        passed = {} if sensitive_features is None else {"sensitive_features": sensitive_features}
        classes = np.asarray(estimator.classes_)
        # What a FairClassifier at the end of a pipeline says of its own table is about the transformed one.
        inner = estimator[:-1].transform(X) if fair and last is not estimator else X
        if fair:
            probabilities = np.asarray(estimator.predict_proba(X, **passed))
        else:
            codes = encode(as_vector(estimator.predict(X), "predictions"), classes.tolist())
            probabilities = np.eye(len(classes))[codes]

        def setting(name: str, default: Any = None) -> Any:
            own = getattr(self, name)
            return own if own is not None else getattr(last, name) if fair else default

        problem = problem_of(
            classes,
            decisions=setting("decisions"),
            happiness=setting("happiness"),
            loss=setting("loss", "error"),
        )
        if named is not None or not fair:
            group = resolve_groups(X, named)
        else:
            group = resolve_groups(inner, last.sensitive_features_, columns_only=True)
        table = inner if self.happiness is None else X
        people = People.of(
            table,
            problem,
            group=group,
            y=labels,
            score=None if problem.listed else probabilities,
            decided=probabilities if problem.listed else None,
            weight=weight,
            rows=present,
            missing=missing,
            label_proba=chances,
        )
        probabilities = np.asarray(people.probabilities if problem.listed else people.with_scores.score)
        if people.missing is not None and not people.labelled.all():
            scored = scored_by(estimator, X, classes, fair=fair)
            people, _ = with_beliefs(replace(people, probabilities=probabilities), problem, scored)
        refuse_idle(problem, changes(problem, people))
        outcome = achieved(problem, people, probabilities)
        own = [(problem.measures[j], float(outcome.gaps[j])) for j in measured(problem.measures)]
        gaps = {measure.name: gap for measure, gap in own}
        if self.price is not None:
            if not isinstance(self.price, Mapping):
                check_one_unit(self.price, "price", [measure for measure, _ in own])
            prices = self.price if isinstance(self.price, Mapping) else dict.fromkeys(gaps, self.price)
            unknown = [name for name in prices if name not in gaps]
            if unknown:
                raise ConstraintError(
                    f"A price is set for {unknown[0]!r}.", f"The measures are {list(gaps)}."
                )
            return float(-outcome.loss - sum(prices[name] * gaps[name] for name in prices))
        scores = {"neg_loss": -outcome.loss}
        if len(gaps) == 1:
            return scores | {"neg_gap": -next(iter(gaps.values()))}
        return scores | {f"neg_gap: {name}": -gap for name, gap in gaps.items()}
