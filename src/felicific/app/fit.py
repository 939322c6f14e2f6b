"""``felicific fit``: the policy of least loss that meets a gap."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from felicific.app import options


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
    loss: options.Loss = "error",
    favourable: options.Favourable = None,
    gap: options.Gap = None,
    floor: options.FloorText = None,
    budget: options.BudgetText = None,
    kind: options.Kind = None,
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
    """
    from felicific.app.inputs import read_constraints, read_gap, read_happiness
    from felicific.app.outputs import check_target, print_json, working
    from felicific.app.people import People

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
            happiness=read_happiness(happiness, name, unit, among),
            loss=loss,
            favourable=favourable,
        )
        allowed = read_gap(gap)
        task = {
            "gap": 0.0 if allowed is None else allowed,
            "constraints": read_constraints(floor, budget, people.happiness),
            "random_state": seed,
        }
        policy, today = _individual(people, task) if kind == "individual" else _cells(people, kind, task)
    policy.save(out)
    if as_json:
        print_json(_summary(policy, today, out))
        return
    print(policy)
    print(f"Today the loss per person is {today.loss:.6g}.")
    for j, component in enumerate(policy.components):
        print(f"Today the gap of {component.name!r} is {component.quantity(float(today.gaps[j]))}.")
    print(f"Written to {out}.")


def sums(people: Any, kind: str | None) -> Any:
    """The moments of all rows."""
    from felicific.exceptions import DataError
    from felicific.tables import moments

    if people.proba is None and people.decision is None:
        raise DataError(
            "Nobody said what the model thinks of a person.",
            "Name the column(s) of its probabilities, --proba, or of its decisions, --decision.",
        )
    return moments(
        people.rows(),
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


def _cells(people: Any, kind: str | None, task: dict[str, Any]) -> tuple[Any, Any]:
    from felicific.policy import solve

    moments = sums(people, kind)
    return solve(moments, **task), moments.today


def _individual(people: Any, task: dict[str, Any]) -> tuple[Any, Any]:
    from felicific.app.model import classifier

    fair = classifier(people, policy="individual", **task)
    return fair.policy_, fair.frontier_.today


def _summary(policy: Any, today: Any, out: Path) -> dict[str, Any]:
    names = [component.name for component in policy.components]

    def outcome(found: Any) -> dict[str, Any]:
        return {
            "loss": found.loss,
            "gaps": dict(zip(names, found.gaps.tolist(), strict=True)),
            "means": [
                {"component": name, "group": group, "mean": float(found.means[z, j])}
                for j, name in enumerate(names)
                for z, group in enumerate(policy.groups)
            ],
        }

    return {
        "policy": str(out),
        "sentences": policy.sentences(),
        "fitted": outcome(policy.outcome),
        "today": outcome(today),
    }
