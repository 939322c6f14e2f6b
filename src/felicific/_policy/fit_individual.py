"""Fitting individual policies to people in memory, with labels or without."""

from __future__ import annotations

import hashlib

import numpy as np

from felicific._people.people import People
from felicific._policy.basis import Basis
from felicific._policy.calibration import Calibration, fit_calibration
from felicific._policy.individual import IndividualPolicy, search_of
from felicific._policy.ledger import expected_ledger, find_origin, real_ledger, refuse_large
from felicific._problem.problem import Problem
from felicific._program.generation import Crowd, Generated, Ledgers, generate, likeliest
from felicific._program.signals import Individual
from felicific._typing import Array, Codes, Floats
from felicific.exceptions import DataError


def fit_individual(
    problem: Problem, people: People, individual: Individual, salt: str
) -> tuple[IndividualPolicy, str]:
    """Fit a policy that sees all of x; also a fingerprint of the people it was fitted on."""
    calibration = Calibration(())
    check_calibration(problem, individual)
    if problem.see_group:
        assert people.labels is not None, "a policy is fitted to labels"
        calibration = fit_calibration(
            individual.calibration,
            _scores(people),
            people.labels,
            people.codes,
            len(people.groups),
            people.weights,
        )
    ground = ground_of(problem, people, calibration)
    return _policy(problem, ground, calibration, salt), fingerprint_of(ground)


def check_calibration(problem: Problem, individual: Individual) -> None:
    """Refuse a calibration by group where the group is not seen."""
    if not problem.see_group and individual != Individual():
        raise DataError(
            f"Individual(calibration={individual.calibration!r}) calibrates group by group, and the group is not seen.",
            "Leave the calibration out, or use group_at_predict=True.",
        )


def recalibrate_individual(
    problem: Problem, people: People, policy: IndividualPolicy, fitted_on: str
) -> tuple[IndividualPolicy, str]:
    """Search again on people without labels, with the calibration that the labelled ones gave.

    Also their fingerprint; for the very people the policy was fitted on, it is returned as it is.
    """
    ground = ground_of(problem, people, policy.calibration, policy.origin)
    fingerprint = fingerprint_of(ground)
    if fingerprint == fitted_on:
        return policy, fitted_on
    return _policy(problem, ground, policy.calibration, policy.salt), fingerprint


def ground_of(
    problem: Problem, people: People, calibration: Calibration | None, origin: Floats | None = None
) -> Ledgers:
    """The people as column generation sees them: what a policy may expect of them, and what is known of them.

    Known are their labels, or without those their groups; the two ledgers are one where nothing more is known.
    """
    groups, codes, scores = people.groups, people.codes, _scores(people)
    seen: Array | None = people.group
    if problem.see_group:
        belief = scores if calibration is None else calibration.apply(scores, codes)
    else:
        seen, joint = None, people.joint
        belief = _independent(scores, codes, len(groups)) if joint is None else joint
    if origin is None:
        origin = find_origin(problem, people)
    plug_in = known = expected_ledger(problem, groups, people.x, belief, seen, origin, people.rows)
    if people.labels is not None:
        known = real_ledger(problem, people, origin)
    else:
        refuse_large(problem, people, plug_in)
    if people.labels is None and not problem.see_group:
        known = expected_ledger(
            problem, groups, people.x, _given_group(belief, codes), None, origin, people.rows
        )
    crowd = Crowd(
        classes=problem.decisions,
        groups=groups,
        components=problem.components,
        origin=origin,
        weight=people.weights,
        group=codes,
        own=people.decisions_today(),
        likely=likeliest(scores),
        see_group=problem.see_group,
    )
    return Ledgers(crowd, plug_in, known)


def fingerprint_of(ground: Ledgers) -> str:
    """A hash of all that column generation sees of people besides their labels."""
    digest, crowd, ledger = hashlib.blake2b(digest_size=16), ground.crowd, ground.plug_in
    for part in (ledger.cost, ledger.value, ledger.among, crowd.weight, crowd.group, crowd.own, crowd.likely):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def make_policy(
    problem: Problem,
    crowd: Crowd,
    generated: Generated,
    calibration: Calibration,
    salt: str,
) -> IndividualPolicy:
    """The policy of a mixture that was found."""
    return IndividualPolicy(
        classes=problem.decisions,
        groups=crowd.groups,
        components=crowd.components,
        outcome=generated.outcome,
        prices=generated.prices,
        salt=salt,
        see_group=problem.see_group,
        mixture=generated.mixture,
        calibration=calibration,
        origin=crowd.origin,
        problem=problem,
        basis=Basis(problem.loss.name, generated.today, problem.gaps or {}),
        search=search_of(generated, [component.name for component in crowd.components]),
    )


def _policy(problem: Problem, ground: Ledgers, calibration: Calibration, salt: str) -> IndividualPolicy:
    generated = generate(ground, problem.requirements)
    return make_policy(problem, ground.crowd, generated, calibration, salt)


def _scores(people: People) -> Floats:
    scores = people.with_scores.proba
    if scores is None:
        raise DataError(
            "The individual policy sees probabilities.",
            "Pass what the model's predict_proba returns, or use policy='label'.",
        )
    return np.asarray(scores)


def _given_group(joint: Floats, codes: Codes) -> Floats:
    """p(label, group given x and the group): all of it in the person's own group."""
    rows = np.arange(len(codes))
    own = joint[rows, :, codes]
    # Somebody in a group that x rules out is believed to have the label that x suggests.
    held = own.sum(axis=1, keepdims=True)
    own = np.where(held > 0, own / np.where(held > 0, held, 1.0), joint.sum(axis=2))
    given = np.zeros_like(joint)
    given[rows, :, codes] = own
    return given


def _independent(proba: Floats, codes: Codes, n_groups: int) -> Floats:
    """p(label, group) when the group is known to us and the label is the model's guess."""
    joint = np.zeros((*proba.shape, n_groups))
    joint[np.arange(len(codes)), :, codes] = proba
    return joint
