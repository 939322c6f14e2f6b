"""Roles: which column of a table plays which role, and what a policy remembers of that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from felicific._documents import plain, refused

#: Names of columns, with what else is known of them, or without.
Named = TypeVar("Named", bound="Roles")

#: Roles whose columns a policy, or a monitor, remembers: those that later people have too.
REMEMBERED = ("score", "predicted", "y", "group", "baseline", "key", "group_proba")


@dataclass(frozen=True)
class Roles:
    """Names of columns by role.

    Attributes
    ----------
    group : column name(s), callable or array
        The groups.
    y, weight, cluster : column name or array
        Labels; weights; what several rows have in common that are not independent.
    score : column name, {class: column}, list of columns, or array
        The model's probabilities; with two classes the score of the second will do.
    predicted, baseline : column name or array
        The model's own label; the baseline, where that is not what the model predicts.
    decided : column name or array
        The decisions that are measured.
    group_proba : {group: column}, or those columns in the order of the groups
        How likely each person is of each group, for a policy that infers the group.
    key : column name
        What identifies a person.
    """

    group: Any = None
    y: Any = None
    score: Any = None
    predicted: Any = None
    baseline: Any = None
    decided: Any = None
    weight: Any = None
    cluster: Any = None
    group_proba: Any = None
    key: Any = None

    @property
    def group_names(self) -> list[str]:
        """Columns that the groups are made of; none when a function makes them."""
        if self.group is None or callable(self.group):
            return []
        return list(self.group) if isinstance(self.group, list | tuple) else [self.group]

    def remembered(self, columns: Iterable[str] | None = None) -> Roles:
        """The columns that are named, all of which there are among ``columns``; values and functions are left out."""
        roles: dict[str, Any] = {role: _as_names(role, getattr(self, role)) for role in REMEMBERED}
        if columns is not None:
            there = set(columns)
            roles = {role: named for role, named in roles.items() if there.issuperset(_names_in(named))}
        return Roles(**roles)

    def shared(self, other: Roles) -> Roles:
        """Those that are remembered of both alike."""
        roles = {role: getattr(self, role) for role in REMEMBERED}
        return Roles(**{role: named for role, named in roles.items() if named == getattr(other, role)})

    def to_json(self) -> dict[str, Any]:
        """What is remembered, as data; {class: column} as pairs."""
        roles = {role: getattr(self, role) for role in REMEMBERED}
        for role, named in roles.items():
            if isinstance(named, Mapping):
                roles[role] = [[*plain([one], "class"), column] for one, column in named.items()]
        return roles

    @classmethod
    def from_json(cls, content: Any) -> Roles:
        """Read it, refusing what names no columns."""
        if not isinstance(content, dict) or set(content) != {*REMEMBERED}:
            raise refused("the roles of its columns are others")
        roles: dict[str, Any] = {}
        for role, named in content.items():
            pairs = isinstance(named, list) and any(isinstance(one, list) for one in named)
            roles[role] = dict(named) if pairs else named
            if named is not None and _as_names(role, roles[role]) is None:
                raise refused(f"the name of a column is {named!r}")
        return cls(**roles)


def _names_in(named: Any) -> list[Any]:
    """The columns that stand in a role, if columns do."""
    if isinstance(named, Mapping):
        return list(named.values())
    return list(named) if isinstance(named, list | tuple) else [named] * (named is not None)


def _as_names(role: str, named: Any) -> str | list[str] | dict[Any, str] | None:
    """A column, several, or one for each class or group; None where something else stands in a role."""
    names, several = _names_in(named), role in ("score", "group", "group_proba")
    if not names or not all(isinstance(one, str) for one in names) or not (isinstance(named, str) or several):
        return None
    if isinstance(named, Mapping):
        return {one.item() if isinstance(one, np.generic) else one: column for one, column in named.items()}
    return str(named) if isinstance(named, str) else names
