"""``felicific aggregate``: people summed up, so that sums leave a site instead of rows, and shards add one by one."""

from __future__ import annotations

import functools
import hashlib
import operator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from felicific.cli.options import (
    Answer,
    Baseline,
    Bounded,
    Classes,
    GroupName,
    Key,
    Kind,
    Label,
    Measures,
    PartlyLabelled,
    PolicyKind,
    Scores,
    WeightMeaning,
    WorseOff,
    asked_option,
    decides_amounts,
    output_option,
)

if TYPE_CHECKING:
    from felicific._program.aggregates import Aggregates
    from felicific.cli.people import People


@dataclass(frozen=True, kw_only=True)
class AggregateOptions(Measures, Scores, PartlyLabelled, Bounded, Answer):
    """What ``felicific aggregate`` is told."""

    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="CSV, Parquet or DuckDB files; a pattern such as 'part-*.parquet' names many.",
        ),
    ]
    label: Label = None
    baseline: Baseline = None
    key: Key = None
    classes: Classes = None
    group_name: GroupName = None
    weight_kind: WeightMeaning = None
    worse_off: WorseOff = None
    kind: Kind = "auto"
    min_cell: Annotated[
        float | None,
        asked_option(
            "NUMBER",
            "Merge every score bin of fewer people into a neighbour: what leaves a site speaks of no fewer.",
        ),
    ] = None
    out: Annotated[
        Path,
        output_option(
            "PLACE",
            "A .json file for the sums; or a folder, which also remembers what was summed up: typed again after "
            "it was interrupted, the command goes on where it was.",
        ),
    ]


def aggregate(options: AggregateOptions) -> None:
    """Sum up the people of files, for `felicific merge`, `fit` and `frontier`: no row is in the sums.

    Example: felicific aggregate part-*.parquet --score score --label repaid --group sex --happiness "decision * loan"
    --out sums
    """
    from felicific.cli.merge import Shards, find_files, summary, told
    from felicific.cli.outputs import check_target, print_json, printable, working

    files, out = find_files(options.files), options.out
    single = out.suffix.lower() == ".json" and not out.is_dir()
    if single:
        check_target(out, [".json"], force=options.force)
    asked = Asked.of(options, files)

    def least(sums: Aggregates) -> Aggregates:
        return sums if options.min_cell is None else sums.merged(options.min_cell)

    notes: list[str] = []
    if single:
        with working(f"Summing up {len(files)} files ..."):
            together = least(functools.reduce(operator.add, map(asked.summed, files)))
        together.save(out)
    else:
        with Shards.open(out, asked.settings, force=options.force) as shards:
            notes = shards.add(files, asked.summed)
            together = least(shards.together())
            together.save(shards.all)
        out = shards.all
    if options.as_json:
        print_json({"files": files, "notes": notes, **summary(together, out)})
        return
    print("\n".join(map(printable, [*notes, *told(together, out)])))


@dataclass(frozen=True)
class Asked:
    """What is summed up of every file alike: all agree on classes and groups, also those that lack some."""

    options: AggregateOptions
    classes: list[str]
    groups: list[Any]

    @classmethod
    def of(cls, options: AggregateOptions, files: list[str]) -> Asked:
        """What the options say, and the classes and groups that stand in any of the files."""
        from felicific._tables.groups import find_groups, refuse_identifiers
        from felicific.cli.files import open_source
        from felicific.cli.inputs import read_classes
        from felicific.exceptions import DataError

        if options.kind == "individual":
            raise DataError(
                "An individual policy needs the people themselves, and sums hold none.",
                "Use `felicific fit FILE --policy individual`, or leave --policy out.",
            )
        if decides_amounts(options):
            from felicific.cli.amounts import check_sites

            check_sites(options, files)
        classes, rows = list(options.classes or ()), 0
        for file in files:
            source = open_source(file, options.table)
            source.check_rows()
            rows += source.relation.count("*").fetchall()[0][0]
            named = {"label": options.label, "predicted": options.predicted, "baseline": options.baseline}
            source.check(**named)
            if decides_amounts(options):  # labels are numbers, and no classes
                continue
            if options.decisions is not None:  # what is decided says nothing of the classes
                del named["baseline"]
            classes += [
                str(one) for name in named.values() if name is not None for one in source.distinct(name)
            ]
        asked = cls(options, list(dict.fromkeys(classes)), [])
        held = [group for file in files for group in asked.people(file).held_groups()]
        known = list(find_groups(_array(held)))
        refuse_identifiers(known, rows)  # sums of one person each would be their rows
        groups = read_classes(options.group_name, known, "group-name") if options.group_name else known
        return cls(options, asked.classes, list(find_groups(_array(groups))))

    @property
    def settings(self) -> dict[str, Any]:
        """All that the sums of shards have to have in common, as plain data by option."""
        from felicific import __version__

        left_out = ("files", "out", "force", "as_json", "min_cell", "classes", "group_name")
        names = [field.name for field in fields(self.options) if field.name not in left_out]
        said = {name.replace("_", "-"): getattr(self.options, name) for name in names}
        said["policy"] = said.pop("kind")
        texts = [*(self.options.happiness or ()), self.options.among or "", self.options.loss]
        code = {text: module_sha256(text) for text in texts if module_sha256(text)}
        return said | {
            "class": sorted(self.classes),
            "group-name": self.groups,
            "functions": code,
            "felicific": __version__,
        }

    def people(self, file: str) -> People:
        """The people of one file."""
        from felicific.cli.options import RoleOptions
        from felicific.cli.people import People

        roles = replace(RoleOptions.of(self.options, file), classes=self.classes or None)
        return People.find(roles, a_part=True)

    def summed(self, file: str) -> Aggregates | Any:
        """The sums of one file."""
        from felicific._problem.worse_off import WorseOff as Limit
        from felicific.cli.fit import sums

        if decides_amounts(self.options):
            from felicific.cli.amounts import summed

            return summed(self.options, file, self.groups)
        people = self.people(file)
        kind: PolicyKind = self.options.kind
        if kind == "auto":
            kind = "label" if people.score is None else "score"
        asked = [] if self.options.worse_off is None else [Limit(self.options.worse_off)]
        return sums(people, kind, asked, groups=self.groups)


def module_sha256(text: str) -> str:
    """The SHA-256 of the file that module.py:function names; empty for an expression."""
    path, sign, _ = text.rpartition(":")
    if not sign or not path.endswith(".py") or not Path(path).is_file():
        return ""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _array(values: list[Any]) -> Any:
    import numpy as np

    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
