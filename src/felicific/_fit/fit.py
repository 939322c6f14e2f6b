"""Fitting: from people and what is asked to a policy. Everything FairClassifier does without scikit-learn."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific._audit.persons import Persons, find_values
from felicific._frontier.breakpoints import Closing, ray_of, tau_rounding
from felicific._frontier.frontier import Frontier, Line
from felicific._frontier.individual import TOLERANCE as POOL_TOLERANCE
from felicific._frontier.individual import fill
from felicific._policy.calibration import Calibration, fit_calibration
from felicific._policy.fit_individual import price_table
from felicific._policy.individual import IndividualPolicy, Search, search_of
from felicific._policy.ledgers import Terms, expected_ledger, find_origin, real_ledger
from felicific._policy.lottery import make_salt
from felicific._policy.policy import CellPolicy, Policy, solve
from felicific._problem.happiness import Happiness, resolve_happiness
from felicific._problem.requirements import requirements_of
from felicific._program.generation import (
    Crowd,
    Generated,
    Generator,
    Ledger,
    Ledgers,
    generate,
    likeliest,
    mixed_outcome,
)
from felicific._program.moments import Moments, Outcome, reweighted
from felicific._program.signals import Individual, Label, Score, Signal, SoftLabel, find_boundary
from felicific._program.summing import check_proba, compute_moments, resolve_loss
from felicific._program.tables import Named, rows_in_memory
from felicific._program.tables import moments as table_moments
from felicific._tables.engine import find_engine
from felicific._tables.groups import encode_groups, find_groups
from felicific._tables.memory import Array, Table, as_vector, encode, take_rows
from felicific.exceptions import DataError

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True)
class Task:
    """What is asked: decisions, happiness, loss, gap and further requirements.

    ``own`` names the components that are closed along a frontier when no gap is asked for.
    """

    classes: Array
    happiness: tuple[Happiness, ...]
    loss: Any
    gap: Any
    constraints: Any
    see_group: bool
    salt: str
    own: tuple[str, ...] = ()


@dataclass(frozen=True)
class People:
    """Rows, with what the model says about them. Those of weight 0 are taken out before anything is summed.

    ``joint`` is p(label, group given x) of shape (n, K, groups), for individual policies that do not see the group.
    """

    x: Table
    y: Array | None
    group: Any
    predicted: Any
    proba: Any = None
    weight: Any = None
    joint: Any = None

    @property
    def weights(self) -> Floats:
        """One weight per row."""
        return np.ones(len(self.group)) if self.weight is None else np.asarray(self.weight, dtype=np.float64)

    @property
    def present(self) -> Codes | None:
        """Rows of positive weight when there are others: weight 0 is the row absent. None for all."""
        return None if self.weight is None or np.all(self.weight) else np.flatnonzero(self.weight)

    def take(self, rows: Codes) -> People:
        """Some of them."""
        rest = (self.y, self.group, self.predicted, self.proba, self.weight, self.joint)
        return People(take_rows(self.x, rows), *(None if part is None else part[rows] for part in rest))


def decide(policy: Policy, people: People) -> Floats:
    """Decision probabilities of a policy for people whom the model has scored."""
    return policy.apply(scores_for(policy, people), people.group, people.x)


def scores_for(policy: Policy, people: People) -> Any:
    """What the policy sees of the model."""
    if people.joint is not None and not policy.see_group and isinstance(policy, IndividualPolicy):
        return people.joint.reshape(len(people.joint), -1)
    return people.proba if policy.needs_proba else people.predicted


def achieved(task: Task, people: People, decisions: Floats, groups: tuple[Any, ...] | None = None) -> Outcome:
    """Loss, group means and gaps of given decision probabilities.

    Deciding with probabilities D is drawing a label from D and keeping it: the moments of the soft label,
    under the policy that changes nothing.
    """
    moments = _moments(task, replace(people, proba=decisions), SoftLabel(), task.happiness, groups)
    moments.check_complete()
    n_groups, n_classes = len(moments.groups), len(moments.classes)
    return moments.evaluate(np.tile(np.eye(n_classes), (n_groups, 1, 1)))


def persons_of(task: Task, people: People, decisions: Floats, groups: tuple[Any, ...]) -> Persons:
    """What decision probabilities do to each person."""
    weight = None if people.weight is None else np.asarray(people.weight, dtype=np.float64)
    return find_values(
        people.x,
        y=people.y,
        group=people.group,
        decisions=decisions,
        classes=task.classes,
        happiness=task.happiness,
        loss=task.loss,
        weight=weight,
        groups=groups,
    )


def _moments(
    task: Task,
    people: People,
    signal: Signal,
    happiness: tuple[Happiness, ...],
    groups: tuple[Any, ...] | None = None,
    checked: bool = False,
) -> Moments:
    return compute_moments(
        people.x,
        y=people.y,
        group=people.group,
        classes=task.classes,
        happiness=happiness,
        signal=signal,
        loss=task.loss,
        proba=people.proba,
        predicted=people.predicted,
        groups=groups,
        sample_weight=people.weight,
        checked=checked,
    )


# ---------------------------------------------------------------------------------------------------------
# Policies that see a signal


def fit_cells(task: Task, people: People, signal: Signal) -> tuple[CellPolicy, Moments]:
    """Fit a policy that sees a signal; also its moments."""
    checked = False
    if isinstance(signal, Score) and len(task.classes) == 2:
        codes = encode(as_vector(people.predicted, "predictions"), task.classes.tolist())
        people, checked = replace(people, proba=_checked(people, task)), True
        signal = replace(signal, boundary=find_boundary(people.proba, codes))
    moments = _moments(task, people, signal, task.happiness, checked=checked).joined()
    return _solve(task, moments), moments


def _solve(task: Task, moments: Moments) -> CellPolicy:
    policy = solve(moments, gap=task.gap, constraints=task.constraints, see_group=task.see_group)
    return replace(policy, salt=task.salt)


def recalibrate_cells(task: Task, people: People, labelled: Moments) -> tuple[CellPolicy, Moments]:
    """Solve again for unlabelled people; also their moments."""
    exact = tuple(happiness for happiness in task.happiness if not happiness.looks_at_y)
    fresh = _moments(task, people, labelled.signal, exact, labelled.groups)
    moments = reweighted(labelled, fresh)
    return _solve(task, moments), moments


# ---------------------------------------------------------------------------------------------------------
# Individual policies


def fit_individual(task: Task, people: People, individual: Individual) -> tuple[IndividualPolicy, str]:
    """Fit a policy that sees all of x; also a fingerprint of the people it was fitted on."""
    groups = find_groups(people.group)
    codes = encode_groups(people.group, groups)
    labels = encode(as_vector(people.y, "y"), task.classes.tolist())
    calibration = Calibration(())
    if not task.see_group and individual != Individual():
        raise DataError(
            f"Individual(calibration={individual.calibration!r}) calibrates group by group, and the group is not seen.",
            "Leave the calibration out, or use group_at_predict=True.",
        )
    if task.see_group:
        proba = _checked(people, task)
        calibration = fit_calibration(
            individual.calibration, proba, labels, codes, len(groups), people.weights
        )
    return _generate(task, people, groups, codes, calibration)


def recalibrate_individual(
    task: Task, people: People, policy: IndividualPolicy, fitted_on: str
) -> tuple[IndividualPolicy, str]:
    """Search again on unlabelled people, with the calibration that the labelled ones gave.

    Also their fingerprint; for the very people the policy was fitted on, it is returned as it is.
    """
    codes = encode_groups(people.group, policy.groups)
    people = replace(people, y=None)
    return _generate(task, people, policy.groups, codes, policy.calibration, (policy, fitted_on))


def _fingerprint(crowd: Crowd, ledger: Ledger) -> str:
    """A hash of all that column generation sees of people besides their labels."""
    found = hashlib.blake2b(digest_size=16)
    for part in (ledger.cost, ledger.value, ledger.among, crowd.weight, crowd.group, crowd.own, crowd.likely):
        found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()


def expected_outcome(
    task: Task, people: People, policy: Policy, moments: Moments | None, decisions: Floats
) -> Outcome:
    """What rounded decisions about unlabelled people are expected to do."""
    if isinstance(policy, IndividualPolicy) or isinstance(policy.signal, SoftLabel):  # type: ignore[attr-defined]  # a CellPolicy
        codes = encode_groups(people.group, policy.groups)
        calibration = policy.calibration if isinstance(policy, IndividualPolicy) else None
        crowd, _, ledger = _ledgers(task, replace(people, y=None), policy.groups, codes, calibration)
        return mixed_outcome(crowd, ledger, decisions)
    rounded = np.eye(len(task.classes))[policy.q.argmax(axis=2)]  # type: ignore[attr-defined]  # as above
    return moments.evaluate(rounded)  # type: ignore[union-attr]  # a CellPolicy has moments


def _crowd(task: Task, people: People, groups: tuple[Any, ...], codes: Codes, origin: Floats) -> Crowd:
    return Crowd(
        classes=task.classes,
        groups=groups,
        components=tuple(happiness.component for happiness in task.happiness),
        origin=origin,
        weight=people.weights,
        group=codes,
        own=encode(as_vector(people.predicted, "predictions"), task.classes.tolist()),
        likely=likeliest(np.asarray(people.proba)),
        see_group=task.see_group,
    )


def _checked(people: People, task: Task) -> Floats:
    return check_proba(people.proba, len(task.classes), np.arange(len(people.group)))


def _generate(
    task: Task,
    people: People,
    groups: tuple[Any, ...],
    codes: Codes,
    calibration: Calibration,
    known: tuple[IndividualPolicy, str] | None = None,
) -> tuple[IndividualPolicy, str]:
    origin = None if known is None else known[0].origin
    crowd, plug_in, real = _ledgers(task, people, groups, codes, calibration, origin)
    fitted_on = _fingerprint(crowd, plug_in)
    if known is not None and known[1] == fitted_on:
        return known
    found: Generated = generate(
        Ledgers(crowd, plug_in, real), requirements_of(task.gap, task.constraints, crowd.components)
    )
    policy = IndividualPolicy(
        classes=task.classes,
        groups=groups,
        components=crowd.components,
        outcome=found.outcome,
        prices=found.prices,
        salt=task.salt,
        see_group=task.see_group,
        mixture=found.mixture,
        calibration=calibration,
        origin=crowd.origin,
        happiness=task.happiness,
        loss_function=task.loss,
        search=search_of(found, [component.name for component in crowd.components]),
    )
    return policy, fitted_on


def _ledgers(
    task: Task,
    people: People,
    groups: tuple[Any, ...],
    codes: Codes,
    calibration: Calibration | None,
    origin: Floats | None = None,
) -> tuple[Crowd, Ledger, Ledger]:
    """The people as column generation sees them: what a policy may expect of them, and what is known of them.

    Known are their labels, or without those their groups; the two ledgers are one where nothing more is known.
    """
    terms, belief, seen = _expectation(task, people, groups, codes, calibration)
    if origin is None:
        origin = find_origin(terms, people.x, people.y, people.group)
    plug_in = known = expected_ledger(terms, people.x, belief, seen, origin)
    if people.y is not None:
        known = real_ledger(terms, people.x, people.y, people.group, codes, origin)
    elif not task.see_group:
        known = expected_ledger(terms, people.x, _given_group(belief, codes), None, origin)
    return _crowd(task, people, groups, codes, origin), plug_in, known


def _expectation(
    task: Task, people: People, groups: tuple[Any, ...], codes: Codes, calibration: Calibration | None
) -> tuple[Terms, Floats, Any]:
    """What is valued, the belief about the label (and the group, where it is not seen), and the group if it is."""
    cost = resolve_loss(task.loss, task.classes)[1]
    terms = Terms(task.classes, groups, task.happiness, cost, task.see_group)
    if not task.see_group:
        belief = (
            people.joint
            if people.joint is not None
            else _independent(_checked(people, task), codes, len(groups))
        )
        return terms, belief, None
    proba = _checked(people, task)
    return terms, proba if calibration is None else calibration.apply(proba, codes), people.group


def _given_group(joint: Floats, codes: Codes) -> Floats:
    """p(label, group given x and the group): all of it in the person's own group."""
    rows = np.arange(len(codes))
    mine = joint[rows, :, codes]
    # Somebody in a group that x rules out is believed to have the label that x suggests.
    held = mine.sum(axis=1, keepdims=True)
    mine = np.where(held > 0, mine / np.where(held > 0, held, 1.0), joint.sum(axis=2))
    found = np.zeros_like(joint)
    found[rows, :, codes] = mine
    return found


def _independent(proba: Floats, codes: Codes, n_groups: int) -> Floats:
    """p(label, group) when the group is known to us and the label is the model's guess."""
    found = np.zeros((*proba.shape, n_groups))
    found[np.arange(len(codes)), :, codes] = proba
    return found


def kept_people(people: People | None) -> People:
    """The people that a classifier was fitted on, when it still has them."""
    if people is None:
        raise DataError(
            "Moving along this frontier needs the people it was fitted on, and a stored classifier has none.",
            "Fit it again, or use policy='score'.",
        )
    return people


def individual_frontier(task: Task, fitted: People | None, policy: IndividualPolicy, gap: Any) -> Frontier:
    """The frontier of policies of the kind of ``policy``, which was fitted to these people."""

    def find() -> Line:
        people = kept_people(fitted)
        codes = encode_groups(people.group, policy.groups)
        ledgers = _ledgers(task, people, policy.groups, codes, policy.calibration, policy.origin)
        closing = Closing.of(gap, task.constraints, policy.components)
        generator = Generator(Ledgers(*ledgers), closing.kept)
        old = policy.mixture
        for fixed, alpha, kappa in zip(old.fixed.tolist(), old.alpha.tolist(), old.kappa, strict=True):
            generator.add(alpha, kappa, fixed)  # so that no point lies above the policy that was fitted
        pool = fill(generator, closing)
        # From here on the sums do: what is known of each person is not kept.
        policies, moments, expected = generator.policies, pool.program.moments, generator.expected.moments()
        passes, excess = generator.passes, pool.excess

        def mixed(q: Floats, outcome: Outcome) -> Policy:
            plug_in = expected.evaluate(q)
            names = [component.name for component in policy.components]
            known = f"frontier known to {POOL_TOLERANCE:g} of its rise"
            search = Search(
                passes=passes,
                stopped=known if excess is not None else "out of reach by the probabilities",
                duality_gap=excess,
                plug_in_optimum=None,
                plug_in_loss=plug_in.loss,
                plug_in_gaps=dict(zip(names, plug_in.gaps.tolist(), strict=True)),
            )
            mixture = policies.followed(q)
            return replace(policy, mixture=mixture, outcome=outcome, prices={}, search=search, randomize=True)

        rounding = tau_rounding(pool.program)
        return Line(ray_of(pool.program), pool.points, moments.today, moments.evaluate, mixed, rounding)

    loss_name = resolve_loss(task.loss, task.classes)[0]
    return Frontier(policy.components, policy.groups, loss_name, POOL_TOLERANCE, find)


def solve_individual(
    table: Table,
    *,
    proba: Any,
    y: Any,
    sensitive_features: Any,
    happiness: Any,
    gap: Any = 0.0,
    constraints: Any = (),
    loss: Any = "error",
    classes: Any = None,
    favourable: Any = None,
    predicted: Any = None,
    sample_weight: Any = None,
    calibration: str = "isotonic",
    random_state: Any = None,
) -> IndividualPolicy:
    """Find the individual policy of least loss that meets every requirement, of people whom a model has scored.

    Parameters
    ----------
    table : dataframe, dict of arrays, array, or path
        The people. One that is not in memory (see :func:`felicific.moments`) is asked in passes inside its engine; its
        columns are then named, and calibration counts scores in 4096 bins.
    proba, y, sensitive_features, happiness, loss, classes, favourable, predicted, sample_weight :
        As for :func:`felicific.moments`.
    gap, constraints, random_state :
        As for :func:`felicific.solve`.
    calibration : {"isotonic", "sigmoid", "none"}
        As for :class:`felicific.Individual`.
    """
    individual = Individual(calibration)
    engine = find_engine(table)
    if engine is not None:
        named = Named(engine, proba, y, sensitive_features, predicted, sample_weight)
        ask = named.ask(happiness, Label(), loss, classes, None, favourable)
        return price_table(
            engine, ask, individual, gap=gap, constraints=constraints, random_state=random_state
        )
    # As on an engine, one look at every row before any search.
    table_moments(
        table,
        proba=proba,
        y=y,
        sensitive_features=sensitive_features,
        happiness=happiness,
        policy=Label(),
        loss=loss,
        classes=classes,
        favourable=favourable,
        predicted=predicted,
        sample_weight=sample_weight,
    ).check_complete()
    rows, known = rows_in_memory(table, proba, y, sensitive_features, classes, predicted, sample_weight)
    rows, numbers = rows.present()
    components = resolve_happiness(happiness, known.tolist(), favourable)
    task = Task(known, components, loss, gap, constraints, True, make_salt(random_state))
    shares = check_proba(rows.proba, len(known), numbers)
    own = known[likeliest(shares)] if rows.predicted is None else rows.predicted
    people = People(rows.table, rows.y, rows.group, own, rows.proba, rows.weight)
    return fit_individual(task, people, individual)[0]
