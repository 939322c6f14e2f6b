"""``felicific alternatives``: a smaller gap at no more loss."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from felicific.cli.options import (
    Answer,
    Bounded,
    Chart,
    Evidence,
    Label,
    Measured,
    asked_option,
    output_option,
    people_option,
)

if TYPE_CHECKING:
    from felicific._fit.candidates import Alternatives
    from felicific.cli.people import People


@dataclass(frozen=True, kw_only=True)
class AlternativesOptions(Measured, Evidence, Bounded, Answer):
    """What ``felicific alternatives`` is told."""

    score: Annotated[
        list[str] | None,
        people_option(
            "NAME=COLUMN",
            "A candidate: the column of its probability of the last class. Once for each; the first is what "
            "is done at present.",
        ),
    ] = None
    label: Label = None
    loss_slack: Annotated[
        float,
        asked_option(
            "NUMBER", "By how much the loss per person may exceed the baseline's, in the unit of the loss."
        ),
    ] = 0.0
    confidence: Annotated[
        float, asked_option("NUMBER", "With which what is said of all candidates is to hold together.")
    ] = 0.95
    out: Annotated[Path | None, output_option("FILE", "Also write it to this .json or .csv file.")] = None
    chart: Chart = None
    best: Annotated[
        Path | None, output_option("FILE", "Write the best policy, if one is found, to this .json file.")
    ] = None


def alternatives(options: AlternativesOptions) -> None:
    """Search for a smaller gap at no more loss than the baseline's: half of the rows fit, the other half judges.

    Example: felicific alternatives scores.csv --score baseline=score --score new=score2 --label repaid --group sex
    --happiness decision
    """
    from felicific._files import write_whole
    from felicific.cli.outputs import check_chart, check_target, print_json, working

    check_target(options.out, [".json", ".csv"], force=options.force)
    check_chart(options.chart, force=options.force)
    check_target(options.best, [".json"], force=options.force)
    with working(f"Searching {options.file} ..."):
        result = _search(options)
    written = [options.out, options.chart]
    if options.out is not None:
        write_whole(options.out, _as_file(result, options.out.suffix.lower()))
    if options.chart is not None:
        from felicific import plots

        plots.save(result.plot(), options.chart)
    if options.best is not None and result.best is not None and result.best.policy is not None:
        result.best.policy.save(options.best)
        written.append(options.best)
    if options.as_json:
        print_json(result.to_dict())
        return
    print(result)
    for path in written:
        if path is not None:
            print(f"Written to {path}.")


def _search(options: AlternativesOptions) -> Alternatives:
    from felicific._fit.alternatives import alternatives as search
    from felicific.cli.people import People
    from felicific.exceptions import DataError

    if options.predicted is not None:
        raise DataError(
            "--predicted is what a policy of labels reads, and candidates are scores.", "Leave it out."
        )
    if options.label is None:
        raise DataError(
            "There are no labels, by which policies are judged.", "Name their column with --label."
        )
    named = _candidates(options.score)
    # What is named here are candidates, not classes; every column, because the rows' contents say who judges.
    people = People.find(replace(options, score=None), every_column=True)
    for column in named.values():
        people.source.check(score=column)
        people.source.check_number(column, "score")
    rows = people.rows()
    return search(
        {name: _score(people, rows, column) for name, column in named.items()},
        rows,
        people.label,
        happiness=people.happiness,
        sensitive_features=people.sensitive_features,
        loss=people.loss,
        loss_slack=options.loss_slack,
        decisions=people.listed,
        sample_weight=people.weight,
        weight_kind=people.weight_kind,
        cluster=people.cluster,
        confidence=options.confidence,
    )


def _candidates(texts: list[str] | None) -> dict[str, str]:
    """Columns by the names of the candidates."""
    from felicific.exceptions import DataError

    found: dict[str, str] = {}
    for text in texts or ():
        name, sign, column = text.partition("=")
        if not sign or not name or not column:
            raise DataError(f"--score {text} does not name a candidate.", "Write --score NAME=COLUMN.")
        if name in found:
            raise DataError(f"Two candidates are called {name!r}.", "Give each a name of its own.")
        found[name] = column
    if not found:
        raise DataError("There are no candidates.", "Name what is done at present: --score baseline=COLUMN.")
    return found


def _score(people: People, rows: Any, column: str) -> dict[Any, str] | Any:
    """The probability of the last class, which a column holds."""
    from felicific._tables.memory import take_column
    from felicific.exceptions import DataError

    classes = people.source.distinct(str(people.label))
    if len(classes) != 2:
        raise DataError(
            f"There are {len(classes)} classes ({', '.join(map(str, classes[:10]))}) and one column of probabilities.",
            "Use felicific.alternatives in Python, with a column for each class.",
        )
    return take_column(rows, column, "--score")


def _as_file(result: Alternatives, kind: str) -> str:
    if kind == ".json":
        return json.dumps(result.to_dict(), indent=1, allow_nan=False) + "\n"
    return str(result.to_frame().to_csv(index=False, lineterminator="\n"))
