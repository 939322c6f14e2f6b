"""The files of JSON that commands hand to each other: policies, sums and states, each told from the others."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from felicific import Policy, load
from felicific._files import AGGREGATES, MONITOR, POLICY, STEERING, format_of
from felicific._policy.numeric import AmountPolicy
from felicific._policy.policy import among_classes
from felicific._policy.solve import is_of_amounts
from felicific.cli.options import USAGE, Bounded, Evidence, Measures, PartlyLabelled, Scores, Traced
from felicific.exceptions import DataError, FelicificError

if TYPE_CHECKING:
    from felicific._audit.monitored import Monitor
    from felicific._policy.steering import Steering
    from felicific._program.aggregates import Aggregates


#: What files are, by the format that stands at their beginning, and what one does with them.
_KINDS = {
    POLICY: ("a policy", "`felicific show` shows it, `felicific apply` decides by it."),
    AGGREGATES: ("sums of people", "`felicific merge` adds them, `felicific fit` fits a policy to them."),
    MONITOR: ("a monitor", "`felicific monitor --state` goes on with it."),
    "felicific progress": ("a list of what was summed up", "The sums are in all.json beside it."),
    STEERING: ("the state of a steered policy", "`felicific apply --steer` goes on with it."),
    "felicific decision": ("a signed decision", "`felicific apply --signed` takes it."),
}


def what_is(path: str | os.PathLike[str]) -> str:
    """What a document holds; empty for any other file."""
    return _KINDS.get(format_of(path), ("", ""))[0]


def read_any_policy(path: str | os.PathLike[str], **functions: Any) -> Policy | AmountPolicy:
    """A policy, of decisions or of amounts; any other file is refused by what it is."""
    policy: Policy | AmountPolicy = _read(path, POLICY, lambda: load(path, **functions))
    return policy


def read_policy(path: str | os.PathLike[str], **functions: Any) -> Policy:
    """A policy of decisions; any other file is refused by what it is."""
    policy: Policy = _read(path, POLICY, lambda: among_classes(load(path, **functions), "this command"))
    return policy


def read_sums(path: str | os.PathLike[str]) -> Aggregates:
    """Sums of people; any other file is refused by what it is."""
    sums: Aggregates = _read(path, AGGREGATES, lambda: load(path))
    return sums


def read_monitor(path: str | os.PathLike[str], happiness: Any = None) -> Monitor:
    """A monitor; any other file is refused by what it is."""
    monitor: Monitor = _read(path, MONITOR, lambda: load(path, happiness=happiness))
    return monitor


def read_state(path: str | os.PathLike[str], **known: Any) -> Steering:
    """The state of a steered policy; any other file is refused by what it is."""
    state: Steering = _read(path, STEERING, lambda: load(path, **known))
    return state


def _read(path: str | os.PathLike[str], wanted: str, read: Callable[[], Any]) -> Any:
    known, name = format_of(path), os.fspath(path)
    if known in _KINDS and known != wanted:
        what, use = _KINDS[known]
        raise DataError(f"{name!r} holds {what}, and should hold {_KINDS[wanted][0]}.", use)
    try:
        return read()
    except FelicificError as error:
        if name not in error.problem:  # of several files, which
            error.problem = f"{name!r}: {error.problem}"
        raise


# ---------------------------------------------------------------------------------------------------------
# A file of sums in place of a file of people: what may be asked of it, and what comes too late.


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
