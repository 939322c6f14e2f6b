"""A file of sums in place of a file of people: what may be asked of it, and what comes too late."""

from __future__ import annotations

import errno
import os
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from felicific._files import AGGREGATES, format_of
from felicific._policy.solve import is_of_amounts
from felicific.cli.commands import USAGE
from felicific.cli.documents import read_sums, what_is
from felicific.cli.options import Bounded, Evidence, Measures, PartlyLabelled, Scores, Traced

if TYPE_CHECKING:
    from felicific._program.aggregates import Aggregates

#: Options that sums still answer to, though their part of the options speaks of people.
_STILL = {"max_odds_ratio"}

#: Options that speak of people.
_OF_PEOPLE = {
    field.name for part in (Scores, Measures, PartlyLabelled, Evidence, Bounded) for field in fields(part)
} | {"label", "baseline", "kind", "confidence", "test"}

_CALLED = {"kind": "policy"}


def given_sums(options: Traced) -> Aggregates | None:
    """The sums of people, if the file holds such; else insist on what a file of people needs.

    Where hidden reasons may have changed who has a label, the sums are completed accordingly.
    """
    from felicific.exceptions import DataError

    if format_of(options.file) != AGGREGATES:
        held = what_is(options.file)
        if held:
            raise DataError(
                f"{options.file!r} holds {held}, and should hold people or their sums.",
                "Pass a CSV, Parquet or DuckDB file, or one that `felicific aggregate` wrote.",
            )
        if options.file.lower().endswith(".json") and not os.path.exists(options.file):
            # Only sums end so, and they would need none of what is asked for below.
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), options.file)
        for name in ("group", "happiness"):
            if not getattr(options, name):
                raise USAGE(f"Missing option '--{name}'.")
        return None
    for field in fields(options):
        if field.name in _OF_PEOPLE - _STILL and getattr(options, field.name) != field.default:
            option = _CALLED.get(field.name, field.name).replace("_", "-")
            raise DataError(
                f"{options.file!r} holds sums, so --{option} comes too late.",
                "Say it to `felicific aggregate`, or name the file of the people.",
            )
    sums = read_sums(options.file)
    if is_of_amounts(sums):
        return sums
    return sums.completed(None if options.max_odds_ratio == 1.0 else options.max_odds_ratio)


def named_in(sums: Aggregates) -> Any:
    """What stands for the happiness of sums where only its name is asked for."""
    from felicific._problem.criteria import CRITERIA
    from felicific._problem.happiness import Happiness

    families = dict.fromkeys(part.family for part in sums.measures if not part.aside)
    parts = [name if name in CRITERIA else Happiness("decision", name=name) for name in families]
    return parts if len(parts) > 1 else parts[0]
