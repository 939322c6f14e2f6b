"""``felicific fit``: the policy of least loss that meets a gap."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from felicific.cli.options import (
    Answer,
    Fitted,
    Group,
    HappinessText,
    Key,
    PolicyKind,
    decides_amounts,
    output_option,
    people_option,
)

if TYPE_CHECKING:
    from felicific import FairClassifier, Policy
    from felicific._audit.verdict import Verdict
    from felicific._fit.certificate import Certificate
    from felicific._policy.numeric import AmountPolicy
    from felicific._program.aggregates import Aggregates, Outcome
    from felicific.cli.people import People


@dataclass(frozen=True, kw_only=True)
class FitOptions(Fitted, Answer):
    """What ``felicific fit`` is told."""

    group: Group = None  # which a file of sums knows
    key: Key = None
    happiness: HappinessText = None
    test: Annotated[
        str | None,
        people_option(
            "FILE",
            "Other people, with labels: say what the policy comes to for them. Needs the rows in memory.",
        ),
    ] = None
    out: Annotated[Path, output_option("FILE", "Where the policy is written.")] = Path("policy.json")


def fit(options: FitOptions) -> None:
    """Find the policy of least loss whose gap is small enough, and write it to a file.

    FILE may also hold sums that `felicific aggregate` or `merge` wrote, which know groups and happiness.

    With --predicted and --loss squared it is a policy of amounts: fit p.csv --predicted f --loss squared --label hours
    --group sex --happiness distributional_parity --gap .05

    Example: felicific fit scores.csv --score score --label repaid --group sex --happiness "decision * loan" --gap 500
    --confidence 0.95
    """
    from felicific._problem.change import baseline_words
    from felicific._problem.loss import loss_text, loss_words
    from felicific.cli.documents import given_sums
    from felicific.cli.outputs import check_target, print_json, working

    check_target(options.out, [".json"], force=options.force)
    with working(f"Fitting a policy to {options.file} ..."):
        summed = given_sums(options)
        amounts, result = _amounts(summed, options), None
        if amounts is None:
            result = _fitted(summed, options)
    if amounts is not None:
        amounts.save(options.out)
        _say_amounts(amounts, options)
        return
    assert result is not None, "one of both was fitted"
    result.policy.save(options.out)
    if options.as_json:
        print_json(_summary(result, options.out))
        return
    if result.verdict is not None:
        print(result.verdict, end="\n\n")
    if result.chosen is not None:
        print(f"Policy: {result.policy.kind}, chosen because {result.chosen}.")
    for sentence in result.policy.sentences(digits=4):
        print(sentence)
    name = result.policy.basis.loss_name
    if result.baseline is not None:
        words = baseline_words(result.policy.basis.baseline_given)
        print(f"{words.begins(loss_words(name))} is {loss_text(name, result.baseline.loss, 6)}.")
        for measure, gap in zip(result.policy.measures, result.baseline.gaps.tolist(), strict=True):
            if not measure.aside:
                print(f"{words.begins('gap')} of {measure.name!r} is {measure.quantity(gap)}.")
    print("\n".join(result.policy.impact()))
    if result.certificate is not None:
        print(result.certificate)
    print(f"Written to {options.out}.")


def _amounts(summed: Any, options: FitOptions) -> AmountPolicy | None:
    """A policy of amounts, where a number is predicted, or sums are of such people."""
    from felicific._policy.solve import is_of_amounts

    if not decides_amounts(options) and not is_of_amounts(summed):
        return None
    from felicific.cli.amounts import fitted, fitted_to

    if summed is not None:
        return fitted_to(summed, options, options.gap, options.seed).policy
    return fitted(options, options.gap, options.seed).policy


def _say_amounts(policy: AmountPolicy, options: FitOptions) -> None:
    from felicific.cli.amounts import lines_of, summary
    from felicific.cli.outputs import print_json

    if options.as_json:
        print_json({"policy": str(options.out), **summary(policy)})
        return
    print("\n".join([*lines_of(policy), f"Written to {options.out}."]))


class _Result(NamedTuple):
    """A policy, what is decided without it, what can be promised of it, why it is of its kind, what it comes to."""

    policy: Policy
    baseline: Outcome | None
    certificate: Certificate | None = None
    chosen: str | None = None
    verdict: Verdict | None = None


def _fitted(summed: Aggregates | None, options: FitOptions) -> _Result:
    """The policy of some sums, at any size; rows are read where some are held out or each is looked at."""
    from felicific._policy.solve import solve
    from felicific.cli.documents import named_in
    from felicific.cli.inputs import read_task
    from felicific.cli.people import People
    from felicific.exceptions import DataError

    chosen = None
    if summed is not None:
        task = read_task(options, named_in(summed), [str(name) for name in summed.attributes])
    else:
        people = People.find(options)
        task, seen = read_task(options, people.happiness), people.seen(options)
        kind, chosen = people.kind(options)
        if options.test is not None and options.label is None:
            raise DataError("A verdict looks at labels, and there are none.", "Name them with --label.")
        if kind == "individual" or options.confidence is not None or options.test is not None:
            return _fitted_to_rows(people, options, kind, chosen, **seen, **task)
        summed = sums(people, kind, task["constraints"])
    policy = solve(summed, sees_group=not options.blind, **task)
    return _Result(policy, summed.baseline_or_none, chosen=chosen)


def _fitted_to_rows(
    people: People, options: FitOptions, kind: PolicyKind, chosen: str | None, **settings: Any
) -> _Result:
    """A policy by the estimator, with columns of scores in place of a model."""
    from felicific.cli.model import classifier

    rows = people.source.read(pandas=True)
    fair = classifier(people, rows, kind, confidence=options.confidence, **settings)
    shown = None if options.confidence is None else fair.certificate_
    verdict = None if options.confidence is None else fair.verdict_
    verdict = verdict if options.test is None else _verdict_on(options, fair)
    policy = replace(fair.policy_, roles=people.roles)
    return _Result(policy, fair.frontier_.baseline, shown, chosen, verdict)


def _verdict_on(options: FitOptions, fair: FairClassifier) -> Verdict:
    """What the policy comes to for the people of another file."""
    from felicific._tables.memory import take_column
    from felicific.cli.people import People

    people = People.find(replace(options, file=str(options.test)))
    others = people.source.read(pandas=True)
    labels = take_column(others, str(options.label), "--label")
    said = people.evidence(others) | {"weight_kind": people.weight_kind, "baseline": options.baseline}
    return fair.report(others, labels, **said).verdict


def sums(
    people: People,
    kind: PolicyKind,
    constraints: list[Any],
    *,
    groups: list[Any] | None = None,
) -> Aggregates:
    """The aggregates of all rows, with what requirements speak of."""
    from felicific._people.roles import Roles
    from felicific._problem.problem import problem_of
    from felicific._program.sums import aggregate_roles

    people.check_signal()
    roles = Roles(
        people.sensitive_features,
        people.label,
        people.score,
        people.predicted,
        people.baseline,
        weight=people.weight,
        weight_kind=people.weight_kind,
        missing_labels=people.missing_labels,
        listed=people.listed is not None,
    )
    said = {"decisions": people.listed, "happiness": people.happiness, "loss": people.loss}
    asked = partial(problem_of, constraints=constraints, **said)
    summed = aggregate_roles(
        people.source.relation,
        roles,
        asked,
        kind,  # type: ignore[arg-type]  # sums of individual policies are refused by name
        people.classes,
        groups,
    )
    return replace(summed, roles=people.roles)


def _summary(result: _Result, out: Path) -> dict[str, Any]:
    from felicific._policy.basis import SHARES, write_outcome

    policy = result.policy
    names = [measure.name for measure in policy.measures]

    def shares(reached: Outcome) -> dict[str, Any]:
        """Whose decision changes, who gains and loses, by group as ``policy.groups`` lists them."""
        written = write_outcome(reached)
        return {name: written[name] for name in SHARES}

    def outcome(reached: Outcome) -> dict[str, Any]:
        return {
            "loss": reached.loss,
            "gaps": dict(zip(names, reached.gaps.tolist(), strict=True)),
            "means": [
                {"measure": name, "group": group, "mean": float(reached.means[z, j])}
                for j, name in enumerate(names)
                for z, group in enumerate(policy.groups)
            ],
            "shares": shares(reached),
        }

    return {
        "policy": str(out),
        "kind": policy.kind,
        "chosen": result.chosen,
        "sentences": policy.sentences(),
        "fitted": outcome(policy.outcome),
        "expected_gaps": policy.expected_gaps(),
        "baseline": None if result.baseline is None else outcome(result.baseline),
        "requirements": [
            {
                "asked": words,
                "reached": number,
                "expected": policy.expected_reached().get(words),
                "not_compared": policy.not_constrained.get(words, {}),
            }
            for words, number in policy.reached.items()
        ],
        "unconstrained": outcome(policy.outcomes["unconstrained"]),
        "change_cost": policy.change_cost,
        "certificate": None if result.certificate is None else result.certificate.to_dict(),
        "verdict": None if result.verdict is None else result.verdict.to_dict(),
    }
