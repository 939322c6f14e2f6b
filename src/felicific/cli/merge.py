"""``felicific merge``: sums of several sites, added."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from felicific.cli.options import OUTPUT, Answer

if TYPE_CHECKING:
    from felicific._amounts.aggregates import AmountAggregates
    from felicific._program.aggregates import Aggregates


@dataclass(frozen=True, kw_only=True)
class MergeOptions(Answer):
    """What ``felicific merge`` is told."""

    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Files of sums that `felicific aggregate` wrote; a pattern such as 'site-*.json' names many.",
        ),
    ]
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where their sum is written.", rich_help_panel=OUTPUT)
    ]


def merge(options: MergeOptions) -> None:
    """Add the sums of several sites or months to one file, which `felicific fit` and `frontier` take.

    Example: felicific merge north.json south.json --out all.json
    """
    from felicific.cli.documents import read_sums
    from felicific.cli.outputs import check_target, print_json, printable
    from felicific.cli.shards import find_files

    check_target(options.out, [".json"], force=options.force)
    files = find_files(options.files)
    parts = {name: read_sums(name) for name in files}
    together = added(parts)
    together.save(options.out)
    if options.as_json:
        print_json({"files": files, **summary(together, options.out)})
        return
    notes = [f"{len(files)} files are added."]
    print("\n".join(map(printable, [*notes, *told(together, options.out)])))


def added(parts: dict[str, Aggregates]) -> Aggregates:
    """The sum of all; what does not add is refused, by the names of the files."""
    from felicific._policy.solve import is_of_amounts
    from felicific.exceptions import AggregatesError, DataError

    of_amounts = {name: is_of_amounts(part) for name, part in parts.items()}
    if len(set(of_amounts.values())) > 1:
        one, other = (
            next(name for name, kind in of_amounts.items() if kind is which) for which in (True, False)
        )
        raise AggregatesError(
            f"{one!r} holds sums of amounts, and {other!r} sums of decisions among classes.",
            "Add either alone.",
        )
    known: dict[str, str] = {}
    for name, part in parts.items():
        same = known.setdefault(part.to_json(), name)
        if same != name:
            raise DataError(
                f"{name!r} holds the same sums as {same!r}, so people would be counted twice.",
                "Leave one out.",
            )
    amounts = all(of_amounts.values())
    (first, total), *others = parts.items()
    for name, part in others:
        if not amounts and part.signal != total.signal:
            kinds = (total.signal.kind, part.signal.kind)
            differ = "other score bins" if kinds[0] == kinds[1] else " and ".join(kinds)
            raise AggregatesError(
                f"{name!r} does not add to {first!r}. They were summed up for different policies: {differ}.",
                "Sum up both with felicific aggregate and the same --policy.",
            )
        try:
            total = total + part
        except AggregatesError as error:
            raise AggregatesError(
                f"{name!r} does not add to {first!r}. {error.problem}", error.remedy
            ) from error
    return total


def summary(sums: Aggregates | Any, out: Path) -> dict[str, Any]:
    """What a file of sums holds, as plain data."""
    from felicific._policy.solve import is_of_amounts

    if is_of_amounts(sums):
        return _summary_of_amounts(sums, out)
    sums = sums.completed()  # those without a label, too
    people = zip(sums.groups, sums.people.tolist(), sums.rows.tolist(), strict=True)
    return {
        "written": str(out),
        "rows": int(sums.rows.sum()),
        "groups": [{"group": group, "people": weight, "rows": rows} for group, weight, rows in people],
        "decisions": sums.decisions.tolist(),
        "happiness": [{"name": one.name, "unit": one.unit} for one in sums.measures if not one.aside],
        "loss": sums.loss_name,
        "smallest_cell": smallest_cell(sums),
    }


def _summary_of_amounts(sums: AmountAggregates | Any, out: Path) -> dict[str, Any]:
    people = zip(sums.groups, sums.people.tolist(), sums.rows.tolist(), strict=True)
    names = [str(part.name) for part in sums.asked.happiness] + [sums.asked.parity] * bool(sums.asked.parity)
    return {
        "written": str(out),
        "kind": "amounts",
        "rows": int(sums.rows.sum()),
        "groups": [{"group": group, "people": weight, "rows": rows} for group, weight, rows in people],
        "happiness": names,
        "loss": sums.asked.loss,
        "smallest_cell": smallest_cell(sums),
    }


def smallest_cell(sums: Aggregates | AmountAggregates) -> float | None:
    """How many people the smallest cell speaks of."""
    held = sums.mass[sums.mass > 0]
    return float(held.min()) if held.size else None


#: Groups that are listed for reading.
SHOWN = 20


def told(sums: Aggregates | Any, out: Path) -> list[str]:
    """What a file of sums holds, for reading."""
    from felicific._policy.solve import is_of_amounts

    sums = sums if is_of_amounts(sums) else sums.completed()  # those without a label, too
    sizes = list(zip(sums.groups, sums.people.tolist(), strict=True))
    groups = ", ".join(f"{group!r} {people:,.6g}" for group, people in sizes[:SHOWN])
    groups += f" and {len(sizes) - SHOWN} groups more" if len(sizes) > SHOWN else ""
    least = smallest_cell(sums)
    few = "" if least is None else f" The smallest score bin speaks of {least:,.6g}."
    return [f"People: {groups}, in {int(sums.rows.sum()):,} rows.{few}", f"Written to {out}."]
