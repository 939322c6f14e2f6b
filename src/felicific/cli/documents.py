"""The files of JSON that commands hand to each other: policies, sums and states, each told from the others."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from felicific import Aggregates, Monitor, Policy, Steering
from felicific._policy.amounts import AmountPolicy
from felicific._policy.policy import among_classes
from felicific.exceptions import DataError, FelicificError

POLICY, SUMS, MONITOR = "felicific policy", "felicific aggregates", "felicific monitor"
STATE = "felicific steering"

#: What files are, by the format that stands at their beginning, and what one does with them.
_KINDS = {
    POLICY: ("a policy", "`felicific show` shows it, `felicific apply` decides by it."),
    SUMS: ("sums of people", "`felicific merge` adds them, `felicific fit` fits a policy to them."),
    MONITOR: ("a monitor", "`felicific monitor --state` goes on with it."),
    "felicific progress": ("a list of what was summed up", "The sums are in all.json beside it."),
    STATE: ("the state of a steered policy", "`felicific apply --steer` goes on with it."),
    "felicific decision": ("a signed decision", "`felicific apply --signed` takes it."),
}

T = TypeVar("T")


def format_of(path: str | os.PathLike[str]) -> str:
    """The format that a document says it has; empty for any other file."""
    try:
        with Path(path).open("rb") as stream:
            head = stream.read(200)
    except OSError:
        return ""  # whoever opens it says why
    found = re.match(rb'\s*\{\s*"format":\s*"([^"]*)"', head)
    return "" if found is None else found[1].decode("utf-8", "replace")


def what_is(path: str | os.PathLike[str]) -> str:
    """What a document holds; empty for any other file."""
    return _KINDS.get(format_of(path), ("", ""))[0]


def read_any_policy(path: str | os.PathLike[str], **functions: Any) -> Policy | AmountPolicy:
    """A policy, of decisions or of amounts; any other file is refused by what it is."""
    return _read(path, POLICY, lambda: Policy.load(path, **functions))


def read_policy(path: str | os.PathLike[str], **functions: Any) -> Policy:
    """A policy of decisions; any other file is refused by what it is."""
    return _read(path, POLICY, lambda: among_classes(Policy.load(path, **functions), "this command"))


def read_sums(path: str | os.PathLike[str]) -> Aggregates:
    """Sums of people; any other file is refused by what it is."""
    return _read(path, SUMS, lambda: Aggregates.load(path))


def read_monitor(path: str | os.PathLike[str], happiness: Any = None) -> Monitor:
    """A monitor; any other file is refused by what it is."""
    return _read(path, MONITOR, lambda: Monitor.load(path, happiness))


def read_state(path: str | os.PathLike[str], **known: Any) -> Steering:
    """The state of a steered policy; any other file is refused by what it is."""
    return _read(path, STATE, lambda: Steering.load(path, **known))


def _read(path: str | os.PathLike[str], wanted: str, load: Callable[[], T]) -> T:
    known, name = format_of(path), os.fspath(path)
    if known in _KINDS and known != wanted:
        what, use = _KINDS[known]
        raise DataError(f"{name!r} holds {what}, and should hold {_KINDS[wanted][0]}.", use)
    try:
        return load()
    except FelicificError as error:
        if name not in error.problem:  # of several files, which
            error.problem = f"{name!r}: {error.problem}"
        raise
