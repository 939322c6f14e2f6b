"""``felicific audit``: what decisions do to groups of people, with intervals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from felicific.cli import options


def audit(
    file: options.File,
    group: options.Group,
    happiness: options.HappinessText,
    decision: options.Decision = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            "--policy-file",
            metavar="FILE",
            help="Audit what this policy decides, by its probabilities.",
            rich_help_panel=options.DATA,
        ),
    ] = None,
    proba: options.Proba = None,
    label: options.OptionalLabel = None,
    classes: options.Classes = None,
    weight: options.Weight = None,
    sampling: Annotated[
        bool,
        typer.Option(
            "--sampling",
            help="Weights are sampling weights: they add no evidence.",
            rich_help_panel=options.DATA,
        ),
    ] = False,
    table: options.Table = None,
    name: options.Name = None,
    unit: options.Unit = None,
    among: options.Among = None,
    bounds: options.Bounds = None,
    loss: options.Loss = "error",
    favourable: options.Favourable = None,
    gap: options.Gap = None,
    require: Annotated[
        bool,
        typer.Option("--require", help="Exit with 4 unless every gap is shown to be at most --gap."),
    ] = False,
    confidence: Annotated[
        float, typer.Option(metavar="NUMBER", help="With which every interval is to hold the truth.")
    ] = 0.95,
    method: Annotated[
        str,
        typer.Option(
            metavar="METHOD", help="How intervals are made: auto, t, hall, exact, bernstein or betting."
        ),
    ] = "auto",
    simultaneous: Annotated[
        bool, typer.Option("--simultaneous", help="All gaps are to hold together.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write it to this .json, .csv or .html file.",
            rich_help_panel=options.ANSWER,
        ),
    ] = None,
    as_json: options.Json = False,
    force: options.Force = False,
) -> None:
    """Measure what decisions do to groups of people, with intervals.

    Example: felicific audit loans.csv --decision approved --group sex --happiness "decision * loan" --unit $
    """
    from felicific._audit.audit import audit as measure
    from felicific._files import write_whole
    from felicific.cli.inputs import read_gap, read_happiness
    from felicific.cli.outputs import check_target, print_json, working
    from felicific.cli.people import People
    from felicific.exceptions import DataError

    check_target(out, [".json", ".csv", ".html"], force=force)
    if require and not gap:
        raise DataError("--require does not say how large a gap may be.", "Add --gap.")
    with working(f"Auditing {file} ..."):
        people = People.find(
            file,
            table=table,
            group=group,
            label=label,
            proba=proba,
            decision=decision,
            classes=classes,
            weight=weight,
            happiness=read_happiness(happiness, name, unit, among, bounds),
            loss=loss,
            favourable=favourable,
            policy=policy,
        )
        read = people.in_memory if _needs_rows(people, method, out) else people.in_the_file
        found = measure(
            **read(),
            happiness=people.happiness,
            sensitive_features=people.sensitive_features,
            loss=people.loss,
            gap=read_gap(gap),
            classes=people.classes,
            favourable=people.favourable,
            weights="sampling" if sampling else "frequency",
            confidence=confidence,
            method=method,
            simultaneous=simultaneous,
        )
    if out is not None:
        write_whole(out, _as_file(found, out.suffix.lower()))
    print_json(found.to_dict()) if as_json else print(found)
    if require and any(part.test is None or part.test.verdict != "at most" for part in found.components):
        raise typer.Exit(4)


def _needs_rows(people: Any, method: str, out: Path | None) -> bool:
    """Whether all rows are needed in memory; else sums will do, which are taken batch by batch."""
    from felicific._problem.criteria import CRITERIA
from felicific._problem.happiness import Happiness

    parts = people.happiness if isinstance(people.happiness, list) else [people.happiness]
    bounded = any(
        part.bounds is not None if isinstance(part, Happiness) else people.policy and part in CRITERIA
        for part in parts
    )
    # Betting looks at one person after the other, and a page names the fingerprint of all rows.
    return (
        people.pandas
        or (people.policy is None and people.decision is None)
        or method == "betting"
        or (method == "auto" and bounded)
        or (out is not None and out.suffix.lower() == ".html")
    )


def _as_file(found: Any, kind: str) -> str:
    if kind == ".json":
        return json.dumps(found.to_dict(), indent=1, allow_nan=False) + "\n"
    if kind == ".html":
        from felicific.cli.outputs import command_line

        return str(found.to_html(command=command_line()))
    return str(found.to_frame().to_csv(index=False, lineterminator="\n"))
