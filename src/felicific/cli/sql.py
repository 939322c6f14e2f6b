"""``felicific sql``: a policy as SQL, for a database or a warehouse that runs without Python."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from felicific._tables.dialect import DIALECTS, dialect_of
from felicific.cli.options import (
    Decided,
    Forced,
    Predicted,
    Proba,
    output_option,
    people_option,
)

if TYPE_CHECKING:
    from felicific._policy.numeric import AmountPolicy
    from felicific._policy.policy import Policy
    from felicific._tables.dialect import Dialect


@dataclass(frozen=True, kw_only=True)
class SqlOptions(Decided, Forced):
    """What ``felicific sql`` is told."""

    dialect: Annotated[str, output_option("DIALECT", f"The SQL to write: {', '.join(DIALECTS)}.")]
    score: Proba = None
    predicted: Predicted = None
    people: Annotated[
        str | None,
        people_option(
            "TABLE",
            "Write a whole query of this table, which is taken as it is typed; by default the expression alone.",
            "--from",
        ),
    ] = None
    out: Annotated[
        Path | None,
        output_option("FILE", "Where the text is written, a .sql file; by default it is printed."),
    ] = None


def sql(options: SqlOptions) -> None:
    """Write a policy as one SQL expression, or a query, that decides what `felicific apply` decides, draws included.

    Example: felicific sql policy.json --dialect postgres --score score --group sex --key id --from people
    """
    import sys

    from felicific._files import write_whole
    from felicific.cli.outputs import check_target

    check_target(options.out, [".sql"], force=options.force)
    dialect = dialect_of(options.dialect)
    policy, columns = _columns(options, dialect)
    listed = ",\n".join(f"{text} AS {dialect.quote_name(name)}" for name, text in columns.items())
    if options.people is not None:
        written = f"SELECT *,\n{listed}\nFROM {options.people};"
    else:
        written = listed if options.with_proba else columns[options.column]
    policy.warn_of_lottery("Leave --seed out when fitting.")
    text = f"{_heading(policy, dialect.label)}\n{written}\n"
    if options.out is None:
        print(text, end="")
        return
    write_whole(options.out, text)
    print(f"Written to {options.out}.", file=sys.stderr)


def _columns(options: SqlOptions, dialect: Dialect) -> tuple[Policy | AmountPolicy, dict[str, str]]:
    """The policy, and its expressions by the name of their columns."""
    from felicific._people.roles import Roles
    from felicific.cli.amounts import amounts_of, refuse_classes

    named = Roles(options.group or None, predicted=options.predicted, key=options.key)
    amounts = amounts_of(options.policy, named)
    if amounts is not None:
        refuse_classes(options)
        gives, named = amounts
        return gives, {options.column: gives.sql_of(dialect, named.predicted, named.group, named.key)}
    policy = _load(options.policy)
    named = replace(named, score=_proba(options, policy))
    return policy, policy.sql_columns(dialect, named, options.column, with_proba=options.with_proba)


def _load(path: Path) -> Policy:
    from felicific import load
    from felicific._policy.policy import among_classes, no_sql
    from felicific.exceptions import PolicyFileError

    try:
        return among_classes(load(path), "this command")
    except PolicyFileError as error:
        if error.remedy.startswith("Pass "):  # only an individual policy asks for functions
            raise no_sql() from error
        raise


def _proba(options: SqlOptions, policy: Policy) -> str | dict[Any, str] | None:
    """One column of two classes, or one of each."""
    from felicific.cli.inputs import proba_by_class

    named, classes = options.score or [], policy.classes.tolist()
    if len(named) == 1 and "=" not in named[0] and len(classes) == 2:
        return named[0]
    return proba_by_class(named, classes) if named else None


def _heading(policy: Policy | AmountPolicy, label: str) -> str:
    """Which policy it is, and who may read it."""
    from felicific import __version__

    lines = [f"-- Policy {policy.sha256} (SHA-256) for {label}, written by felicific {__version__}."]
    if policy.is_randomized:
        lines.append("-- It holds the salt of the lottery: whoever reads it can compute everybody's draw.")
    return "\n".join(lines)
