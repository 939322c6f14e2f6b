"""``felicific fit``: the policy of least loss that meets a gap."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from felicific.cli.options import OUTPUT, PEOPLE, Answer, Fitted, Group, HappinessText, PolicyKind, Prediction

if TYPE_CHECKING:
    from felicific import Aggregates, FairClassifier, Policy
    from felicific._audit.verdict import Verdict
    from felicific._fit.certificate import Certificate
    from felicific._policy.amounts import AmountPolicy
    from felicific._program.aggregates import Outcome
    from felicific.cli.people import People


@dataclass(frozen=True, kw_only=True)
class FitOptions(Fitted, Answer):
    """What ``felicific fit`` is told."""

    group: Group = None  # which a file of sums knows
    happiness: HappinessText = None
    prediction: Prediction = None
    test: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Other people, with labels: say what the policy comes to for them. Needs the rows in memory.",
            rich_help_panel=PEOPLE,
        ),
    ] = None
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where the policy is written.", rich_help_panel=OUTPUT)
    ] = Path("policy.json")


def fit(options: FitOptions) -> None:
    """Find the policy of least loss whose gap is small enough, and write it to a file.

    FILE may also hold sums that `felicific aggregate` or `merge` wrote, which know groups and happiness.

    With --prediction it is a policy of amounts: fit p.csv --prediction f --label hours --group sex --happiness
    distributional_parity --gap .05

    Example: felicific fit scores.csv --proba score --label repaid --group sex --happiness "decision * loan" --gap 500
    --confidence 0.95
    """
    from felicific._problem.loss import loss_text, loss_words
    from felicific.cli.outputs import check_target, print_json, working
    from felicific.cli.people import People
    from felicific.cli.sums import given_sums

    check_target(options.out, [".json"], force=options.force)
    with working(f"Fitting a policy to {options.file} ..."):
        summed = given_sums(options)
        amounts, result = _amounts(summed, options), None
        if amounts is None:
            result = _fitted(People.find(options), options) if summed is None else _fitted_to(summed, options)
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
    if result.today is not None:
        print(f"Today the {loss_words(name)} is {loss_text(name, result.today.loss, 6)}.")
        for component, gap in zip(result.policy.components, result.today.gaps.tolist(), strict=True):
            if not component.aside:
                print(f"Today the gap of {component.name!r} is {component.quantity(gap)}.")
    print("\n".join(result.policy.impact()))
    if result.certificate is not None:
        print(result.certificate)
    print(f"Written to {options.out}.")


def _amounts(summed: Any, options: FitOptions) -> AmountPolicy | None:
    """A policy of amounts, where a number is predicted, or sums are of such people."""
    from felicific._policy.solve import is_of_amounts

    if options.prediction is None and not is_of_amounts(summed):
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
    today: Outcome | None
    certificate: Certificate | None = None
    chosen: str | None = None
    verdict: Verdict | None = None


def _fitted(people: People, options: FitOptions) -> _Result:
    """Fit by the sums alone where they are enough, which works at any size."""
    from felicific._fit.safety import check_method
    from felicific.exceptions import DataError

    check_method(options.method, options.confidence)
    task, seen, (kind, chosen) = people.task(options), people.seen(options), people.kind(options)
    if options.test is not None and options.label is None:
        raise DataError("A verdict looks at labels, and there are none.", "Name them with --label.")
    if kind != "individual" and options.confidence is None and options.test is None:
        from felicific._policy.solve import solve
        from felicific._problem.criteria import resolve_favourable

        aggregates = sums(people, kind, task["constraints"])
        policy = solve(aggregates, sees_group=not options.blind, **task)
        if people.favourable is not None:  # which sums do not say
            best = resolve_favourable(people.favourable, policy.classes.tolist())
            policy = replace(policy, favourable=best)
        return _Result(policy, aggregates.today_if_known, chosen=chosen)
    from felicific.cli.model import classifier

    rows = people.source.read(pandas=True)
    sure = {"confidence": options.confidence, "method": options.method}
    fair = classifier(people, rows, kind, **sure, **seen, **task)
    shown = None if options.confidence is None else fair.certificate_
    verdict = None if options.confidence is None else fair.verdict_
    verdict = verdict if options.test is None else _verdict_on(options, fair)
    return _Result(fair.policy_, fair.frontier_.today, shown, chosen, verdict)


def _fitted_to(sums: Aggregates, options: FitOptions) -> _Result:
    """Fit to sums that were made before."""
    from felicific._policy.solve import solve
    from felicific.cli.inputs import read_asked, read_change_cost
    from felicific.cli.sums import favourable_in, named_in

    best = favourable_in(sums, options.favourable)
    columns = [str(name) for name in sums.attributes]
    gap, constraints = read_asked(options, named_in(sums), options.gap, best, columns)
    policy = solve(
        sums,
        gap=gap,
        constraints=constraints,
        change_cost=read_change_cost(options.change_cost),
        sees_group=not options.blind,
        random_state=options.seed,
    )
    policy = policy if best is None else replace(policy, favourable=best)
    return _Result(policy, sums.today_if_known)


def _verdict_on(options: FitOptions, fair: FairClassifier) -> Verdict:
    """What the policy comes to for the people of another file."""
    from felicific._tables.memory import take_column
    from felicific.cli.people import People

    people = People.find(replace(options, file=str(options.test)))
    others = people.source.read(pandas=True)
    labels = take_column(others, str(options.label), "--label")
    said = people.evidence(others) | {"weight_kind": people.weight_kind, "today": options.today}
    return fair.report(others, labels, **said).verdict


def sums(
    people: People,
    kind: PolicyKind,
    constraints: list[Any],
    *,
    groups: list[Any] | None = None,
) -> Aggregates:
    """The aggregates of all rows, with what requirements speak of."""
    from felicific._program.sums import aggregate

    people.check_signal()
    return aggregate(
        people.source.relation,
        proba=people.proba,
        predicted=people.predicted,
        today=people.today,
        y=people.label,
        sensitive_features=people.sensitive_features,
        happiness=people.happiness,
        policy=kind,  # type: ignore[arg-type]  # sums of individual policies are refused by name
        loss=people.loss,
        classes=people.classes,
        decisions=people.listed,
        groups=groups,
        favourable=people.favourable,
        sample_weight=people.weight,
        weight_kind=people.weight_kind,
        constraints=constraints,
        missing_group=people.missing_group,
        missing_labels=people.missing_labels,
    )


def _summary(result: _Result, out: Path) -> dict[str, Any]:
    from felicific._policy.basis import SHARES, write_outcome

    policy = result.policy
    names = [component.name for component in policy.components]

    def shares(reached: Outcome) -> dict[str, Any]:
        """Who is decided about otherwise than today, gains and loses, by group as ``policy.groups`` lists them."""
        written = write_outcome(reached)
        return {name: written[name] for name in SHARES}

    def outcome(reached: Outcome) -> dict[str, Any]:
        return {
            "loss": reached.loss,
            "gaps": dict(zip(names, reached.gaps.tolist(), strict=True)),
            "means": [
                {"component": name, "group": group, "mean": float(reached.means[z, j])}
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
        "today": None if result.today is None else outcome(result.today),
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
