"""``felicific explain``: why a policy decides on one person of a file as it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from felicific.cli.options import (
    Baseline,
    Join,
    Json,
    Loss,
    PolicyFunction,
    Scored,
    Seen,
    people_option,
)

if TYPE_CHECKING:
    from felicific.cli.people import People


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(Scored, Seen):
    """What ``felicific explain`` is told."""

    row: Annotated[
        int | None,
        people_option(
            "NUMBER",
            "Which row of the file, counted from 0 without the line of names, as messages count.",
            min=0,
        ),
    ] = None
    person: Annotated[
        str | None,
        people_option("VALUE", "Instead of --row: whoever has this value in the column of --key.", "--id"),
    ] = None
    join: Join = None
    baseline: Baseline = None
    happiness: PolicyFunction = None
    loss: Loss = "error"
    as_json: Json = False


def explain(options: ExplainOptions) -> None:
    """Why a policy decides on one person so: the score, the cut, the draw, the group and what is required.

    These are not the legal reasons for a refusal, as the answer says: they tell how a score became a decision, and not
    why the model gave that score.

    Example: felicific explain policy.json next.csv --score score --group sex --key id --id 045017
    """
    from felicific._tables.memory import is_null, take_column
    from felicific.cli.outputs import print_json, printable
    from felicific.cli.people import People
    from felicific.exceptions import DataError

    if (options.row is None) == (options.person is None):
        raise DataError(
            "An explanation is of one person, and it is not said which.",
            "Name the row, --row 17, or the person, --key id --id 045017; not both.",
        )
    people = People.find(options)
    rows = _one(people, options)
    scores, group, chances = people.sight(rows)
    assert people.policy is not None, "a policy file is required"
    key, now = (
        None if name is None else take_column(rows, name, option)
        for name, option in ((people.key, "--key"), (people.baseline, "--baseline"))
    )
    if key is not None and is_null(key.tolist()[0]):
        raise DataError(
            f"The key of that row is missing in the column {people.key!r}.",
            "Leave --key out: nothing is drawn then.",
        )
    found = people.policy.explain(
        scores, group, key, rows, chances, baseline=None if now is None else now.tolist()[0]
    )
    if options.as_json:
        print_json(found.to_dict())
        return
    for sentence in [*found.sentences, found.caution]:
        print(printable(sentence))


def _one(people: People, options: ExplainOptions) -> Any:
    """The row that is asked about, as a table of one row."""
    import duckdb

    from felicific.exceptions import DataError

    source, relation = people.source, people.source.relation
    source.check_rows()
    if options.row is not None:
        chosen = relation.limit(1, offset=options.row).to_arrow_table()
        if not chosen.num_rows:
            total = relation.count("*").fetchall()[0][0]
            raise DataError(
                f"There is no row {options.row:,}: {source.path!r} has {total:,} rows, counted from 0.",
                "Name one of those.",
            )
    else:
        if people.key is None:
            raise DataError(
                "--id names a person, and no column says who people are.", "Name it: --key COLUMN."
            )
        text = duckdb.ColumnExpression(people.key).cast("VARCHAR")
        chosen = relation.filter(text == duckdb.ConstantExpression(options.person)).limit(2).to_arrow_table()
        if chosen.num_rows != 1:
            how = "Nobody has" if not chosen.num_rows else "Several rows have"
            raise DataError(
                f"{how} {options.person!r} in the column {people.key!r} of {source.path!r}.",
                "Check it, or name the row with --row.",
            )
    return chosen.to_pandas() if people.pandas else chosen
