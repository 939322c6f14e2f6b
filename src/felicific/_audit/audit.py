"""Audit: what decisions do to groups of people, with how sure one can be of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific._audit.engine import apply_policy, tally
from felicific._audit.methods import Measure, measure_component, measure_loss, summary
from felicific._audit.persons import Persons, as_decisions, find_classes, find_values
from felicific._audit.result import Audit, ComponentAudit, GapTest, Interval
from felicific._policy.policy import Policy
from felicific._problem.happiness import ARGUMENTS, arguments_of, resolve_happiness, written
from felicific._problem.requirements import resolve_gap
from felicific._program.plan import Rows, distinct_labels, missing_first
from felicific._program.signals import Label
from felicific._program.summing import check_weights, resolve_loss
from felicific._program.tables import Named, column_of, named_columns, rows_in_memory
from felicific._statistics.gaps import (
    chance_gap,
    limits_name,
    limits_p_values,
    range_interval,
    range_name,
    range_p_values,
    spread_of,
)
from felicific._statistics.intervals import Sample, check_confidence
from felicific._tables.engine import Engine, Place, find_engine
from felicific._tables.groups import resolve_groups
from felicific._tables.memory import Array, Table, as_vector, count_rows, select_columns, take_rows
from felicific.exceptions import DataError, HappinessError

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

#: What ``method=`` may say.
ASKED = ("auto", "t", "hall", "exact", "bernstein", "betting")


def audit(
    decisions: Any,
    X: Table = None,
    y: Any = None,
    *,
    happiness: Any = None,
    sensitive_features: Any = None,
    loss: Any = None,
    gap: Any = None,
    classes: Any = None,
    favourable: Any = None,
    sample_weight: Any = None,
    proba: Any = None,
    predicted: Any = None,
    weights: str = "frequency",
    confidence: float = 0.95,
    method: str = "auto",
    simultaneous: bool = False,
) -> Audit:
    """Measure what decisions do to groups of people, with intervals.

    Parameters
    ----------
    decisions : fitted FairClassifier, any fitted classifier, Policy, array of shape (n,) or (n, K), or column name
        Who or what decides: a FairClassifier and a Policy are audited by their decision probabilities, so that their
        lottery adds no noise; another classifier by its ``predict``. Or what any system decided: one decision per
        person, or the probability of every decision, or the name of the column of X that holds the decisions.
    X : table, optional
        The people. May be left out when no happiness looks at ``x`` and the groups are given. One that is not in
        memory (see :func:`felicific.moments`) is summed up by its engine; the other arguments then name columns, and
        what decides is a column or a Policy.
    y : array of shape (n,) or column name, optional
        Labels. May be left out when no happiness looks at them; the loss is then not audited.
    happiness, sensitive_features, loss, favourable :
        As for :class:`FairClassifier`; what is left None is taken from the FairClassifier that is audited. The loss is
        the error rate unless said.
    gap : number, or dict of component or criterion to number, optional
        Tests whether the gap is at most this; by default the ``gap`` of the FairClassifier.
    classes : sequence, optional
        All decisions there are, in the order of the columns of decision probabilities.
    sample_weight : array of shape (n,) or column name, optional
        Weights of the rows.
    proba, predicted : as for :func:`felicific.moments`, optional
        The scores, or the model's own decisions, by which a Policy decides.
    weights : {"frequency", "sampling"}
        Whether weight 2 means that the row stands for two people who were seen, or for two who were not. The latter
        adds no evidence: the number of people is then Kish's effective one.
    confidence : float, default=0.95
        With which every interval is to hold the truth.
    method : {"auto", "t", "hall", "exact", "bernstein", "betting"}
        How intervals are made. ``"auto"`` takes Clopper-Pearson for values that are 0 or 1, betting (in large groups
        and in tables that are not in memory empirical Bernstein) when ``bounds`` of the happiness are known, and t
        otherwise; and for the gap the studentised range, unless some group has too few successes or failures for it.
    simultaneous : bool, default=False
        Whether the gaps of all components hold together with this confidence, and likewise all group means.

    Returns
    -------
    Audit
        Print it, or read ``.components``, ``.gaps``, ``.loss``, ``.to_dict()``, ``.to_frame()``.

    Notes
    -----
    Intervals speak of people like these: independent, and not those on whom the model or the policy was fitted.
    """
    confidence = check_confidence(confidence)
    if method not in ASKED:
        raise DataError(f"There is no method {method!r}.", f"Choose one of {', '.join(map(repr, ASKED))}.")
    if weights not in ("frequency", "sampling"):
        raise DataError(f"weights is {weights!r}.", "Say 'frequency' or 'sampling'.")
    asked = _Asked(happiness, sensitive_features, loss, gap, favourable, classes)
    engine = find_engine(X)
    scores, sampling = _Scores(proba, predicted), weights == "sampling"
    scores.check(decisions)
    if engine is not None:
        persons = _tallied(engine, decisions, y, asked, sample_weight, sampling, scores)
    else:
        own = decisions if isinstance(decisions, str) else predicted
        named = named_columns(X, proba, y, sensitive_features, own, sample_weight)
        with missing_first(X, named, sample_weight):
            if isinstance(decisions, Policy):
                persons = _by_policy(decisions, X, y, asked, sample_weight, sampling, scores)
            else:
                persons = _find_persons(decisions, X, y, asked, sample_weight, sampling)
    allowed = resolve_gap(asked.gap, persons.components)
    return measure(persons, allowed, confidence=confidence, method=method, simultaneous=bool(simultaneous))


@dataclass
class _Asked:
    """What is to be measured; a FairClassifier fills in what was not said."""

    happiness: Any
    sensitive_features: Any
    loss: Any
    gap: Any
    favourable: Any
    classes: Any

    def name_gap(self, components: tuple[Any, ...]) -> None:
        """One number is the gap of every component."""
        if isinstance(self.gap, int | float) and not isinstance(self.gap, bool):
            self.gap = {component.name: self.gap for component in components}


@dataclass(frozen=True)
class _Scores:
    """What a policy decides by."""

    proba: Any
    predicted: Any

    def check(self, decisions: Any) -> None:
        """A policy needs some; nothing else does."""
        given = self.proba is not None or self.predicted is not None
        if not isinstance(decisions, Policy):
            if given:
                raise DataError("proba= and predicted= are what a Policy decides by.", "Pass a Policy first.")
        elif self.proba is None and (decisions.needs_proba or self.predicted is None):
            what = "probabilities" if decisions.needs_proba else "probabilities or predictions"
            raise DataError(f"The policy decides by {what}.", "Name their columns in proba= (or predicted=).")


def _tallied(
    engine: Engine, decisions: Any, y: Any, asked: _Asked, sample_weight: Any, sampling: bool, scores: _Scores
) -> Persons:
    """The people of a table that is not in memory, by the names of their columns."""
    policy = decisions if isinstance(decisions, Policy) else None
    if policy is None and not isinstance(decisions, str):
        raise DataError(
            f"The decisions are a {type(decisions).__name__}, and the table is not in memory.",
            "Name the column that holds them (policy.apply(table, ...) makes one), or pass a Policy "
            "(fair.policy_ is one) and proba=.",
        )
    predicted = decisions if policy is None else scores.predicted
    named = Named(engine, scores.proba, y, asked.sensitive_features, predicted, sample_weight)
    classes = asked.classes if policy is None else policy.classes.tolist()
    loss = "error" if asked.loss is None else asked.loss
    named_only = all(name is None or isinstance(name, str) for name in (y, sample_weight))
    if classes is None and named_only:  # else it is refused below
        taken = np.array(distinct_labels(engine, predicted, sample_weight, "the decisions"))
        labels = None if y is None else np.array(distinct_labels(engine, y, sample_weight, "y"))
        classes = find_classes(taken, labels)
    ask = named.ask(asked.happiness, Label(), loss, classes, None, asked.favourable, decided=True)
    asked.name_gap(ask.happiness)
    return tally(engine, ask, sampling, policy)


def _find_persons(
    decisions: Any, X: Table, y: Any, asked: _Asked, sample_weight: Any, sampling: bool
) -> Persons:
    """People in memory, about whom something is decided by a classifier or was by anything else."""
    y = None if y is None else column_of(X, y, "y")
    decisions, columns_only = _who_decides(decisions, X, asked)
    n = len(decisions) if X is None else count_rows(X)
    q, classes = as_decisions(decisions, y, asked.classes, n)
    table = np.empty((n, 0)) if X is None else X
    if y is not None and len(y) != n:
        raise DataError(f"There are {len(y)} labels y for {n} rows.", "Pass one for every row.")
    weight = check_weights(None if sample_weight is None else column_of(X, sample_weight, "sample_weight"), n)
    rows = np.arange(n) if weight is None or weight.all() else np.flatnonzero(weight)
    group = resolve_groups(
        table, asked.sensitive_features, rows=None if len(rows) == n else rows, columns_only=columns_only
    )
    if len(rows) < n:
        # Weight 0 is the row absent.
        table, q = take_rows(table, rows), q[rows]
        y = None if y is None else y[rows]
    people = Rows(table, y, group, None, None, None if weight is None else weight[rows], Place())
    return _valued(people, rows, q, classes, asked, sampling, has_x=X is not None)


def _by_policy(
    policy: Policy, X: Table, y: Any, asked: _Asked, sample_weight: Any, sampling: bool, scores: _Scores
) -> Persons:
    """People in memory, about whom a policy decides."""
    classes, named = policy.classes.tolist(), asked.sensitive_features
    found = rows_in_memory(X, scores.proba, y, named, classes, scores.predicted, sample_weight, True)
    rows, numbers = found[0].present()
    q = apply_policy(policy, found[1], rows, numbers)
    return _valued(rows, numbers, q, found[1], asked, sampling)


def _valued(
    rows: Rows, numbers: Codes, q: Floats, classes: Array, asked: _Asked, sampling: bool, has_x: bool = True
) -> Persons:
    """What the decisions about some people are worth to them."""
    components = resolve_happiness(asked.happiness, classes.tolist(), asked.favourable)
    loss = "error" if asked.loss is None else asked.loss
    if not has_x:
        _refuse_x(components, resolve_loss(loss, classes)[1])
    asked.name_gap(components)
    return find_values(
        rows.table,
        y=rows.y,
        group=rows.group,
        decisions=q,
        classes=classes,
        happiness=components,
        loss=loss,
        weight=rows.weight,
        sampling=sampling,
        rows=numbers,
    )


def _who_decides(decisions: Any, X: Table, asked: _Asked) -> tuple[Any, bool]:
    """Decisions as arrays, and whether the groups may only be columns; a FairClassifier says what it was asked."""
    if decisions is None:
        raise DataError("There are no decisions.", "Pass a fitted classifier, or an array of decisions.")
    if isinstance(decisions, str):
        return column_of(X, decisions, "the decisions"), False
    if not hasattr(decisions, "predict"):
        return decisions, False
    if X is None:
        raise DataError("A classifier is audited on people, and X is None.", "Pass X.")
    passed = asked.sensitive_features
    settings = decisions[-1] if hasattr(decisions, "steps") else decisions
    found = _decided(decisions, settings, X, passed)
    asked.classes = settings.classes_ if asked.classes is None else asked.classes
    if not hasattr(settings, "policy_"):
        return found, False
    for name in ("happiness", "sensitive_features", "loss", "gap", "favourable"):
        if getattr(asked, name) is None:
            setattr(asked, name, getattr(settings, name))
    return found, passed is None


def _decided(estimator: Any, last: Any, X: Table, sensitive_features: Any) -> Any:
    """Decision probabilities of a FairClassifier, or the decisions of any other classifier."""
    passed = {} if sensitive_features is None else {"sensitive_features": sensitive_features}
    if hasattr(last, "policy_"):
        return estimator.predict_proba(X, **passed)
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and hasattr(X, "columns"):
        X = select_columns(X, list(names), "the model")
    return as_vector(estimator.predict(X), "predictions")


def _refuse_x(components: tuple[Any, ...], cost: Any) -> None:
    for happiness in components:
        asked = arguments_of(happiness.function, "The happiness", ARGUMENTS)
        if happiness.among is not None:
            asked |= arguments_of(happiness.among, "`among`", ARGUMENTS[1:])
        if "x" in asked:
            raise HappinessError(
                f"The happiness {happiness.name!r} looks at x, and there is none.", "Pass X."
            )
    if callable(cost) and "x" in arguments_of(cost, "The loss", ARGUMENTS):
        raise HappinessError("The loss looks at x, and there is none.", "Pass X.")


# ---------------------------------------------------------------------------------------------------------
# From people to intervals


def measure(
    persons: Persons,
    allowed: list[float],
    *,
    confidence: float = 0.95,
    method: str = "auto",
    simultaneous: bool = False,
) -> Audit:
    """Make intervals for what is known person by person; ``allowed`` are the gaps to test (infinite: none)."""
    sample = summary(persons)
    n_groups, n_components = sample.n.shape
    alpha = 1.0 - confidence
    apart = alpha / (n_groups * n_components) if simultaneous else alpha
    together = alpha / n_components if simultaneous else alpha
    components = tuple(
        _audit_component(persons, sample, j, method, apart, together, allowed[j]) for j in range(n_components)
    )
    return Audit(
        components=components,
        loss=None
        if persons.losses is None
        else intervals_of(measure_loss(persons, persons.losses, persons.loss_bounds), alpha)[0],
        groups=persons.groups,
        rows=persons.rows,
        confidence=confidence,
        simultaneous=simultaneous,
        notes=tuple(_notes(persons, components)),
        persons=persons,
    )


def _audit_component(
    persons: Persons,
    everything: Sample,
    j: int,
    method: str,
    apart: float,
    together: float,
    allowed: float,
) -> ComponentAudit:
    found = measure_component(persons, everything, j, method)
    sample, n_groups = found.sample, len(persons.groups)
    # What was asked for is used for the gap too; otherwise the studentised range, where it may be trusted.
    by_range = found.method in ("t", "hall") or (method == "auto" and found.normal)
    span = (
        range_interval(found.pairs, together)
        if by_range
        else spread_of(found.limits(together / (2.0 * n_groups)))
    )
    widest = math.inf if found.bounds is None else found.bounds[1] - found.bounds[0]
    gap = Interval(
        float(sample.mean.max() - sample.mean.min()),
        min(float(span[0]), widest),
        min(float(span[1]), widest),
        float(sample.n.min()),
        range_name(n_groups, rate=found.rate) if by_range else limits_name(found.words),
    )
    test = None
    if math.isfinite(allowed):
        p = (
            range_p_values(found.pairs, allowed)
            if by_range
            else limits_p_values(found.limits, n_groups, allowed, together)
        )
        test = GapTest(allowed, *p, _verdict(*p, together))
    means = dict(zip(persons.groups, intervals_of(found, apart), strict=True))
    bias = min(chance_gap(found.pairs), widest)
    part = ComponentAudit(persons.components[j], means, gap, bias, test)
    if found.method != "t" or not found.skewed.any():
        return part
    better = intervals_of(found.by("hall"), apart)
    low, high = range_interval(sample, together, corrected=True)
    words = f"{gap.method}, widened for skewness"
    return replace(
        part,
        corrected={persons.groups[z]: better[z] for z in np.flatnonzero(found.skewed)},
        corrected_gap=replace(gap, low=float(low), high=min(float(high), widest), method=words),
    )


def intervals_of(found: Measure, alpha: float) -> list[Interval]:
    """The interval of every group's mean."""
    low, high = found.limits(alpha / 2.0)
    notes, origin = found.notes(), found.origin
    return [
        Interval(
            float(found.sample.mean[z]) + origin,
            float(low[z]) + origin,
            float(high[z]) + origin,
            float(found.sample.n[z]),
            found.words,
            notes[z],
        )
        for z in range(len(low))
    ]


def _verdict(p_value: float, p_exceeds: float, alpha: float) -> str:
    if p_value <= alpha:
        return "more"
    return "at most" if p_exceeds <= alpha else "undecided"


def _notes(persons: Persons, components: tuple[ComponentAudit, ...]) -> list[str]:
    notes = []
    if persons.losses is None:
        notes.append("The loss needs labels, and there are none.")
    if persons.weight is not None and (persons.tally is None or persons.tally.weighted):
        kind = "sampling weights" if persons.sampling else "frequencies"
        total = persons.weight.sum()
        notes.append(
            f"The weights are {kind}: {persons.rows:,} rows stand for {written(total, 6)} people"
            + (", of whom n is the effective number (Kish)." if persons.sampling else ", who all count.")
        )
    doubtful = [found.component.name for found in components if found.corrected]
    if doubtful:
        notes.append(
            f"The values of {', '.join(map(repr, doubtful))} are so skewed that t intervals hold the truth less often "
            "than stated; corrected ones are given beside them."
        )
    if any(found.test is not None and found.test.at_most == 0.0 for found in components):
        notes.append("A gap of exactly 0 can be refuted and never shown.")
    return notes
