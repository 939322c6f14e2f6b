"""``felicific report``: one page for the person who must choose the trade-off and sign it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from felicific.cli.options import OUTPUT, PEOPLE, Fitted, Forced, Proba


@dataclass(frozen=True, kw_only=True)
class ReportOptions(Fitted, Forced):
    """What ``felicific report`` is told."""

    proba: Proba = field()  # which a report needs
    test: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Other people to report on; by default a random half of FILE, which the policy is then not fitted on.",
            rich_help_panel=PEOPLE,
        ),
    ] = None
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Title of the page.", rich_help_panel=OUTPUT)
    ] = None
    out: Annotated[
        Path,
        typer.Option(metavar="FILE", help="The page, .html, or its data, .json.", rich_help_panel=OUTPUT),
    ] = Path("report.html")


def report(options: ReportOptions) -> None:
    """Write one HTML page: groups today and under the policy, the whole trade-off, who is affected, how sure.

    Example: felicific report scores.csv --proba score --label repaid --group sex --happiness "decision * loan"
    --gap 500 --out report.html
    """
    from felicific.cli.outputs import check_target, command_line, working
    from felicific.exceptions import DataError

    check_target(options.out, [".html", ".json"], force=options.force)
    if options.label is None:
        raise DataError(
            "A report measures the loss by labels, and there are none.", "Name them with --label."
        )
    with working(f"Writing a report on {options.file} ..."):
        from felicific._tables.memory import take_column
        from felicific.cli.model import classifier, halves
        from felicific.cli.people import People

        people = People.find(options)
        rows = people.source.read(pandas=True)
        if options.test is None:
            rows, others = halves(rows, people.group, options.seed, people.cluster, people.missing_group)
        else:
            others = People.find(replace(options, file=options.test)).source.read(pandas=True)
        sure = {"confidence": options.confidence, "method": options.method} | people.seen(options)
        fair = classifier(people, rows, options.kind, **sure, **people.task(options))
        words: dict[str, Any] = {"command": command_line(), "model": None}
        if options.title is not None:
            words["title"] = options.title
        words |= people.evidence(others) | {"weight_kind": people.weight_kind}
        labels = take_column(others, options.label, "--label")
        fair.report(others, labels, today=options.today, **words).save(options.out)
    print(f"Written to {options.out}.")
