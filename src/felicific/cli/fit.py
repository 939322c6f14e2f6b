"""``felicific fit``: the policy of least loss that meets a gap."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from felicific.cli import options


def fit(
    file: options.File,
    group: options.Group,
    label: options.Label,
    happiness: options.HappinessText,
    proba: options.Proba = None,
    decision: options.Decision = None,
    weight: options.Weight = None,
    table: options.Table = None,
    name: options.Name = None,
    unit: options.Unit = None,
    among: options.Among = None,
    bounds: options.Bounds = None,
    loss: options.Loss = "error",
    favourable: options.Favourable = None,
    gap: options.Gap = None,
    floor: options.FloorText = None,
    budget: options.BudgetText = None,
    kind: options.Kind = None,
    confidence: options.SafeConfidence = None,
    seed: options.Seed = None,
    out: Annotated[
        Path,
        typer.Option(metavar="FILE", help="Where the policy is written.", rich_help_panel=options.ANSWER),
    ] = Path("policy.json"),
    as_json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Find the policy of least loss whose gap is small enough, and write it to a file.

    Example: felicific fit scores.csv --proba score --label repaid --group sex --happiness "decision * loan" --gap 500
    --confidence 0.95
    """
    from felicific.cli.inputs import read_happiness
    from felicific.cli.outputs import check_target, print_json, working
    from felicific.cli.people import People

    check_target(out, [".json"], force=force)
    with working(f"Fitting a policy to {file} ..."):
        people = People.find(
            file,
            table=table,
            group=group,
            label=label,
            proba=proba,
            decision=decision,
            weight=weight,
            happiness=read_happiness(happiness, name, unit, among, bounds),
            loss=loss,
            favourable=favourable,
        )
        task = people.task(gap, floor, budget) | {"random_state": seed}
        found = _fitted(people, kind, confidence, task)
    found.policy.save(out)
    if as_json:
        print_json(_summary(found, out))
        return
    print(found.policy)
    print(f"Today the loss per person is {found.today.loss:.4g}.")
    for j, component in enumerate(found.policy.components):
        print(f"Today the gap of {component.name!r} is {component.quantity(float(found.today.gaps[j]))}.")
    if found.certificate is not None:
        print(found.certificate)
    print(f"Written to {out}.")


class _Found(NamedTuple):
    """A policy, what is decided without it, and what can be promised of it."""

    policy: Any
    today: Any
    certificate: Any = None


def _fitted(people: Any, kind: str | None, confidence: float | None, task: dict[str, Any]) -> _Found:
    """Fit by the sums alone where they are enough, which works at any size."""
    if kind != "individual" and confidence is None:
        from felicific._policy.policy import solve

        moments = sums(people, kind)
        return _Found(solve(moments, **task), moments.today)
    from felicific.cli.model import classifier

    kind = kind or ("score" if people.proba else "label")
    fair = classifier(people, people.source.read(pandas=True), policy=kind, confidence=confidence, **task)
    return _Found(fair.policy_, fair.frontier_.today, None if confidence is None else fair.certificate_)


def sums(people: Any, kind: str | None) -> Any:
    """The moments of all rows."""
    from felicific._program.sums import moments

    people.check_signal()
    return moments(
        people.source.relation,
        proba=people.proba,
        predicted=people.decision,
        y=people.label,
        sensitive_features=people.sensitive_features,
        happiness=people.happiness,
        policy=kind,
        loss=people.loss,
        classes=people.classes,
        favourable=people.favourable,
        sample_weight=people.weight,
    )


def _summary(found: _Found, out: Path) -> dict[str, Any]:
    policy = found.policy
    names = [component.name for component in policy.components]

    def outcome(reached: Any) -> dict[str, Any]:
        return {
            "loss": reached.loss,
            "gaps": dict(zip(names, reached.gaps.tolist(), strict=True)),
            "means": [
                {"component": name, "group": group, "mean": float(reached.means[z, j])}
                for j, name in enumerate(names)
                for z, group in enumerate(policy.groups)
            ],
        }

    return {
        "policy": str(out),
        "sentences": policy.sentences(),
        "fitted": outcome(policy.outcome),
        "today": outcome(found.today),
        "certificate": None if found.certificate is None else found.certificate.to_dict(),
    }
