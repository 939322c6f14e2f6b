"""Fitting individual policies to people in memory, with labels or without."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np

from felicific._people.labels import LabelBeliefs
from felicific._people.people import People
from felicific._people.user_functions import no_baseline
from felicific._policy.basis import Basis
from felicific._policy.individual import IndividualPolicy, search_of
from felicific._policy.ledger import (
    Calibration,
    expected_ledger,
    find_origin,
    fit_calibration,
    real_ledger,
    refuse_large,
    worst_cost,
)
from felicific._problem.change import out_of_order
from felicific._problem.loss import Loss
from felicific._problem.problem import Problem
from felicific._program.change_cost import ChangeCost
from felicific._program.crowd import Crowd, Ledgers, likeliest
from felicific._program.generation import Generated, generate
from felicific._program.label_completion import KnownLabels
from felicific._program.signals import Individual, Score
from felicific._program.sorted_people import by_price
from felicific._program.summing import sum_people
from felicific._typing import Array, Codes, Floats, Lazy
from felicific.exceptions import DataError, HappinessError


def fit_individual(
    problem: Problem, people: People, individual: Individual, salt: str, change_cost: ChangeCost = 0.0
) -> tuple[IndividualPolicy, str]:
    """Fit a policy that sees all of x; also a fingerprint of the people it was fitted on."""
    check_baseline(problem, people)
    calibration = Calibration(())
    check_calibration(problem, individual)
    people, labels = _believed(problem, people)
    if problem.sees_group:
        calibration = calibrated(individual, people)
    ground = ground_of(problem, people, calibration, change_cost=change_cost)
    policy = _policy(problem, ground, calibration, salt, labels)
    if labels is not None and labels.max_odds_ratio > 1 and problem.loss.looks_at_y:
        policy = replace(
            policy, basis=replace(policy.basis, least_loss=_least_loss(problem, people, ground, policy))
        )
    return policy, fingerprint_of(ground)


def _least_loss(problem: Problem, people: People, ground: Ledgers, policy: IndividualPolicy) -> float:
    """The loss at its best, where hidden reasons leave open what labels people have who have none."""
    assert people.missing is not None, "labels are missing"
    cost = ground.real.cost.copy()
    cost[~people.labelled] = worst_cost(problem, people, people.missing.max_odds_ratio, -1.0)
    each = np.einsum("id,id->i", policy.probabilities_of(people), cost)
    return float(np.average(each, weights=people.weights))


def _believed(problem: Problem, people: People) -> tuple[People, KnownLabels | None]:
    """Where labels are missing, people with the chances of theirs, and who has one; others as they are."""
    if people.missing is None or people.labelled.all():
        return people.with_labels, None
    max_odds_ratio = people.missing.max_odds_ratio
    for part in problem.happiness:
        if max_odds_ratio > 1 and part.looks_at_y:
            raise DataError(
                f"max_odds_ratio={max_odds_ratio:g}, and the happiness {part.name!r} of an individual policy looks at "
                "the label.",
                "Use policy='score', or max_odds_ratio=1; of individual policies only the loss can be the worst case.",
            )
    counted = replace(
        problem, happiness=(), requirements=(), loss=Loss.of("error", problem.decisions, problem.labels)
    )
    labels = sum_people(people, counted, Score()).completed().labels
    return people if people.chances is not None else LabelBeliefs.of(people).of_people(people), labels


def calibrated(individual: Individual, people: People) -> Calibration:
    """What probabilities mean, group by group; without labels, what they say.

    They are to mean it of everybody, since whoever is decided on later may be like those who have a label or like
    those who have none: where some are missing, each label counts with its chance.
    """
    scores, weight, labels = _scores(people), people.weights, people.labels
    if people.missing is not None and labels is not None and people.chances is not None:
        have, others = np.flatnonzero(people.labelled), np.flatnonzero(~people.labelled)
        k = scores.shape[1]
        rows = np.concatenate([have, np.tile(others, k)])
        labels = np.concatenate([labels[have], np.repeat(np.arange(k), len(others))])
        weight = np.concatenate([weight[have], (weight[others] * people.chances[others].T).ravel()])
        known = weight > 0
        rows, labels, weight = rows[known], labels[known], weight[known]
        told = (scores[rows], labels, people.codes[rows], len(people.groups), weight)
        return fit_calibration(individual.calibration, *told)
    method = "none" if labels is None else individual.calibration
    known_labels = people.codes if labels is None else labels
    return fit_calibration(method, scores, known_labels, people.codes, len(people.groups), weight)


def check_calibration(problem: Problem, individual: Individual) -> None:
    """Refuse a calibration by group where the group is not seen."""
    if not problem.sees_group and individual.calibration != Individual().calibration:
        raise DataError(
            f"Individual(calibration={individual.calibration!r}) calibrates group by group, and the group is not seen.",
            "Leave the calibration out, or let the policy see the group.",
        )


def recalibrate_individual(
    problem: Problem, people: People, policy: IndividualPolicy, fitted_on: str
) -> tuple[IndividualPolicy, str]:
    """Search again on people without labels, with the calibration that the labelled ones gave.

    Also their fingerprint; for the very people the policy was fitted on, it is returned as it is.
    """
    check_baseline(problem, people)
    ground = ground_of(problem, people, policy.calibration, policy.origin, change_cost=policy.change_cost)
    fingerprint = fingerprint_of(ground)
    if fingerprint == fitted_on:
        return policy, fitted_on
    return _policy(problem, ground, policy.calibration, policy.salt), fingerprint


def ground_of(
    problem: Problem,
    people: People,
    calibration: Calibration | None,
    origin: Floats | None = None,
    *,
    change_cost: ChangeCost = 0.0,
) -> Ledgers:
    """The people as column generation sees them: what a policy may expect of them, and what is known of them.

    Known are their labels, or without those their groups; the two ledgers are one where nothing more is known.
    """
    groups, codes, scores = people.groups, people.codes, _scores(people)
    seen: Array | None = people.group
    if problem.sees_group:
        belief = scores if calibration is None else calibration.apply(scores, codes)
    else:
        seen, joint = None, people.joint
        belief = _independent(scores, codes, len(groups)) if joint is None else joint
    if origin is None:
        origin = find_origin(problem, people)
    likely = problem.as_decided(likeliest(scores)) if problem.takes_labels else None
    own = people.decisions_baseline() if people.knows_baseline else None
    change_cost = 0.0 if change_cost == "auto" else change_cost  # nobody has measured one here
    if change_cost and own is None:
        raise no_baseline("What a change costs")
    if change_cost and not _likely_enough(problem, scores, own, 1e-9):
        raise DataError(
            "Changes from the baseline cost something, and the baseline is not the likeliest class of everybody, "
            "so an individual policy would have to know them of everybody.",
            "Use change_cost=0 or policy='score', or leave baseline= out.",
        )
    now = people.baseline_of(slice(None))
    plug_in = known = expected_ledger(problem, groups, people.x, belief, seen, origin, people.rows, now)
    if people.labels is not None:
        known = real_ledger(problem, people, origin, plug_in)
        if people.missing is not None and people.missing.max_odds_ratio > 1 and problem.loss.looks_at_y:
            known.cost[~people.labelled] = worst_cost(problem, people, people.missing.max_odds_ratio)
    else:
        refuse_large(problem, people, plug_in)
    if people.labels is None and not problem.sees_group:
        known = expected_ledger(
            problem, groups, people.x, _given_group(belief, codes), None, origin, people.rows, now
        )
    crowd = Crowd(
        decisions=problem.decisions,
        groups=groups,
        measures=problem.measures,
        origin=origin,
        weight=people.weights,
        group=codes,
        own=plug_in.cost.argmin(axis=1) if own is None else own,
        knows_baseline=own is not None,
        baseline_given=people.baseline is not None,
        likely=likely,
        sees_group=problem.sees_group,
        roles=people.roles,
        attributes=people.attributes,
        weight_kind=people.weight_kind,
        whole=bool((people.weights % 1 == 0).all()),
        change_cost=change_cost,
        score=scores[:, 1] if scores.shape[1] == 2 else None,
    )
    return Ledgers(crowd, plug_in, known, labelled=people.labels is not None, chances=problem.chances(groups))


def _likely_enough(problem: Problem, scores: Floats, own: Codes | None, off: float) -> bool:
    """Whether some decisions are the likeliest labels of everybody, but for rounding."""
    if own is None or not problem.takes_labels:
        return False
    label = own
    if problem.listed:  # a decision that is no label is as good as one that nobody has
        back = np.full(len(problem.decisions), -1)
        back[problem.as_decided(np.arange(len(problem.labels)))] = np.arange(len(problem.labels))
        label = back[own]
    chance = np.where(label >= 0, scores[np.arange(len(own)), label.clip(min=0)], -1.0)
    return not bool((chance < scores.max(axis=1) - off).any())


def check_baseline(problem: Problem, people: People) -> None:
    """Insist that the baseline is the likeliest label, where happiness looks at it: the policy sees no other."""
    if not problem.looks_at_baseline:
        return
    if not people.knows_baseline:
        raise no_baseline("The happiness or the loss")
    own = people.decisions_baseline()
    if people.baseline is not None or not _likely_enough(problem, _scores(people), own, 1e-11):
        raise HappinessError(
            "Happiness looks at the baseline, which is not the likeliest label of everybody, and an "
            "individual policy sees no other.",
            "Leave baseline= out, so that it is what the model's probabilities say, or use policy='score'.",
        )


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
    labels: KnownLabels | None = None,
    notes: tuple[str, ...] = (),
) -> IndividualPolicy:
    """The policy of a mixture that was found."""
    evidence = generated.evidence
    if labels is not None and evidence is not None:
        looking = np.array([measure.looks_at_y for measure in crowd.measures])
        told = np.where(looking, labels.evidence[:, None], 1.0)
        evidence = replace(evidence, number=evidence.number * told)
    return IndividualPolicy(
        classes=problem.labels,
        decisions=problem.decisions,
        groups=crowd.groups,
        measures=crowd.measures,
        outcome=generated.outcome,
        prices=generated.prices,
        salt=salt,
        sees_group=problem.sees_group,
        mixture=generated.mixture,
        calibration=calibration,
        origin=crowd.origin,
        problem=problem,
        roles=crowd.roles,
        attributes=crowd.attributes,
        left_out=generated.left_out,
        order=problem.order,
        rising=problem.rising,
        explore=generated.explored,
        basis=Basis(
            problem.loss.name,
            generated.baseline,
            problem.gaps or {},
            baseline_given=crowd.baseline_given,
            requirements=generated.goals,
            unconstrained=Lazy.of(generated.unconstrained),
            change_cost=crowd.change_cost,
            evidence=evidence,
            notes=notes,
        ),
        labels=labels,
        search=search_of(generated, [measure.name for measure in crowd.measures]),
        slopes=generated.slopes,
    )


def _policy(
    problem: Problem,
    ground: Ledgers,
    calibration: Calibration,
    salt: str,
    labels: KnownLabels | None = None,
) -> IndividualPolicy:
    generated = generate(by_price(ground), problem.requirements)
    weight, every = ground.crowd.weight, ground.plug_in
    worth = np.einsum("n,nkzj->kj", weight, every.value) / np.einsum("n,nzj->j", weight, every.among)
    worth = worth + ground.crowd.origin
    notes = out_of_order(problem.measures, worth, problem.decisions.tolist(), problem.choices.order)
    return make_policy(problem, ground.crowd, generated, calibration, salt, labels, notes)


def _scores(people: People) -> Floats:
    scores = people.with_scores.score
    if scores is None:
        raise DataError(
            "The individual policy sees probabilities.",
            "Pass what the model's predict_proba returns as score=, or use policy='label'.",
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


def _independent(score: Floats, codes: Codes, n_groups: int) -> Floats:
    """p(label, group) when the group is known to us and the label is the model's guess."""
    joint = np.zeros((*score.shape, n_groups))
    joint[np.arange(len(codes)), :, codes] = score
    return joint
