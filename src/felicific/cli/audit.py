"""``felicific audit``: what decisions do to groups of people, with intervals."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from felicific.cli.options import (
    Answer,
    Baseline,
    Between,
    Confidence,
    Decision,
    Evidence,
    Gap,
    Limited,
    Measured,
    MinPeople,
    PartlyLabelled,
    asked_option,
    output_option,
    people_option,
)

if TYPE_CHECKING:
    from felicific._audit.result import Audit
    from felicific.cli.people import People


@dataclass(frozen=True, kw_only=True)
class AuditOptions(Measured, PartlyLabelled, Evidence, Limited, Answer):
    """What ``felicific audit`` is told."""

    decision: Decision = None
    policy: Annotated[
        Path | None,
        people_option("FILE", "Audit what this policy decides, by its probabilities.", "--policy-file"),
    ] = None
    label: Annotated[str | None, people_option("COLUMN", "Column of the truth, if it is known.")] = None
    baseline: Baseline = None
    ratios: Annotated[
        bool,
        asked_option(
            None,
            "Also divide every group's mean by the largest, and say whether the smallest ratio is four fifths.",
            "--ratios",
        ),
    ] = False
    between: Between = None
    group_name: Annotated[
        list[str] | None,
        asked_option("NAME", "A group that is compared; name each of them. Default: all groups."),
    ] = None
    min_people: MinPeople = None
    gap: Gap = None  # named again to stand beside --require
    require: Annotated[
        bool,
        asked_option(
            None,
            "Exit with 4 unless every gap is shown to be at most --gap; a gate for one look.",
            "--require",
        ),
    ] = False
    confidence: Confidence = 0.95
    out: Annotated[Path | None, output_option("FILE", "Also write it to this .json, .csv or .html file.")] = (
        None
    )


def audit(options: AuditOptions) -> None:
    """Measure what decisions do to groups of people, with intervals.

    Example: felicific audit loans.csv --decision approved --group sex --happiness "decision * loan" --unit $
    """
    from felicific._files import write_whole
    from felicific.cli.inputs import read_between, read_join
    from felicific.cli.outputs import check_target, print_json, working
    from felicific.exceptions import DataError

    out = options.out
    check_target(out, [".json", ".csv", ".html"], force=options.force)
    if options.require and not options.gap:
        raise DataError("--require does not say how large a gap may be.", "Add --gap.")
    if options.between and not options.ratios:
        raise DataError("--between says of what there are ratios.", "Add --ratios.")
    with working(f"Auditing {options.file} ..."):
        result = _measure(options)
        if options.ratios:
            group = options.group or []
            joined = read_join(options.join, group)
            asked = [read_between(text, group, joined) for text in options.between or ()]
            result = result.with_ratios(*asked, min_people=options.min_people or 0)
    if out is not None:
        write_whole(out, _as_file(result, out.suffix.lower()))
    print_json(result.to_dict()) if options.as_json else print(result)
    tests = [part.test for part in result.measures]
    if options.require and any(test is None or test.verdict != "at most" for test in tests):
        raise typer.Exit(4)


def _measure(options: AuditOptions) -> Audit:
    from felicific._audit.audit import audit as audit_people
    from felicific.cli.inputs import read_gap, read_range
    from felicific.cli.people import People

    people = People.find(options)
    people.check_audited()
    known = {str(group): group for group in people.held_groups()} if options.group_name else {}
    read = people.in_memory if _needs_rows(people, options.out) else people.in_the_file
    return audit_people(
        **read(),
        happiness=people.happiness,
        sensitive_features=people.sensitive_features,
        loss=None if people.loss == "error" else people.loss,  # of amounts there is another default
        gap=read_gap(options.gap),
        decisions=read_range(options.decisions) or people.decided_among,
        baseline=people.baseline,
        missing_labels=people.missing_labels,
        weight_kind=people.weight_kind,
        min_people=options.min_people or 0,
        groups=None if options.group_name is None else [known.get(one, one) for one in options.group_name],
        confidence=options.confidence,
    )


def _needs_rows(people: People, out: Path | None) -> bool:
    """Whether all rows are needed in memory; else sums will do, which are taken batch by batch."""
    from felicific._problem.criteria import CRITERIA
    from felicific._problem.happiness import Happiness

    parts = people.happiness if isinstance(people.happiness, list) else [people.happiness]
    bounded = any(
        part.bounds is not None if isinstance(part, Happiness) else people.policy and part in CRITERIA
        for part in parts
    )
    # Betting looks at one person after the other, who has a label is learnt from all, a page names their fingerprint.
    return (
        people.pandas
        or people.missing_labels is not None
        or (people.policy is None and people.decision is None)
        or bounded
        or (out is not None and out.suffix.lower() == ".html")
    )


def _as_file(result: Audit, kind: str) -> str:
    if kind == ".json":
        return json.dumps(result.to_dict(), indent=1, allow_nan=False) + "\n"
    if kind == ".html":
        from felicific.cli.outputs import command_line

        return str(result.to_html(command=command_line()))
    return str(result.to_frame().to_csv(index=False, lineterminator="\n"))
