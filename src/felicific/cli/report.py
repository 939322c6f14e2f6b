"""``felicific report``: one page for the person who must choose the trade-off and sign it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from felicific.cli import options


def report(
    file: options.File,
    group: options.Group,
    label: options.Label,
    proba: options.Proba,
    happiness: options.HappinessText,
    test: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Other people to report on; by default a random half of FILE, which the policy is then not fitted on.",
            rich_help_panel=options.DATA,
        ),
    ] = None,
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
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Title of the page.", rich_help_panel=options.ANSWER)
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="The page, .html, or its data, .json.", rich_help_panel=options.ANSWER
        ),
    ] = Path("report.html"),
    force: options.Force = False,
) -> None:
    """Write one HTML page: groups today and under the policy, the whole trade-off, who is affected, how sure.

    Example: felicific report scores.csv --proba score --label repaid --group sex --happiness "decision * loan"
    --gap 500 --out report.html
    """
    from felicific.cli.inputs import read_happiness
    from felicific.cli.outputs import check_target, command_line, working
    from felicific.cli.people import People

    check_target(out, [".html", ".json"], force=force)
    roles: dict[str, Any] = {
        "table": table,
        "group": group,
        "label": label,
        "proba": proba,
        "decision": decision,
        "weight": weight,
        "happiness": read_happiness(happiness, name, unit, among, bounds),
        "loss": loss,
        "favourable": favourable,
    }
    with working(f"Writing a report on {file} ..."):
        from felicific._tables.memory import take_column
        from felicific.cli.model import classifier, halves

        people = People.find(file, **roles)
        rows = people.source.read(pandas=True)
        others = None if test is None else People.find(test, **roles).source.read(pandas=True)
        if others is None:
            rows, others = halves(rows, people.group, seed)
        fair = classifier(
            people, rows, policy=kind or "score", random_state=seed, confidence=confidence,
            **people.task(gap, floor, budget),
        )  # fmt: skip
        said: dict[str, Any] = {"command": command_line(), "model": None} | (
            {} if title is None else {"title": title}
        )
        if weight is not None:
            said["sample_weight"] = take_column(others, weight, "--weight")
        fair.report(others, take_column(others, label, "--label"), **said).save(out)
    print(f"Written to {out}.")
