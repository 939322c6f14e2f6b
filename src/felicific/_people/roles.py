"""Roles: which column of a table plays which role, what a policy remembers of that, and how they are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from felicific._files import plain, refused
from felicific._people.checks import WeightKind, check_classes, check_length, check_weight_kind, check_weights
from felicific._problem.missing_labels import MissingLabels
from felicific._tables.groups import attributes_of, groups_of_present
from felicific._tables.memory import (
    EXACT,
    Entries,
    as_entries,
    as_objects,
    as_vector,
    column_names,
    count_rows,
    distinct,
    is_frame,
    null_rows,
    object_array,
    take_column,
    take_entries,
)
from felicific._typing import Array, Floats, Table
from felicific.exceptions import DataError, GroupError

#: Roles whose columns a policy, or a monitor, remembers: those that later people have too.
REMEMBERED = ("score", "predicted", "y", "group", "baseline", "key", "group_proba")


#: What messages call each role.
PURPOSES = {
    "group": "the groups",
    "y": "y",
    "score": "score",
    "predicted": "predicted",
    "baseline": "baseline",
    "decided": "the decisions",
    "weight": "sample_weight",
    "cluster": "cluster",
    "group_proba": "group_proba",
    "label_proba": "label_proba",
}

#: How the probabilities of groups are named.
BY_GROUP = "Name one column for every group: group_proba={group: column}."


@dataclass(frozen=True)
class Roles:
    """Names of columns by role, or of a table in memory also the values themselves, with what is known of them.

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
    columns_only : bool
        Whether a list of groups names columns, whatever its length.
    weight_kind : {"frequency", "sampling"}, or None
        What weights are; None where nobody said.
    missing_labels : MissingLabels, or None
        What is known of missing labels; None where none may be missing.
    label_proba : tuple of column names or arrays
        The chances of having a label, which are added up; those of ``missing_labels``.
    listed : bool
        Whether decisions are listed, so that the baseline says nothing of the classes.
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
    columns_only: bool = False
    weight_kind: WeightKind = None
    missing_labels: MissingLabels | None = None
    label_proba: tuple[Any, ...] = ()
    listed: bool = False

    def __post_init__(self) -> None:
        check_weight_kind(self.weight_kind)
        if self.missing_labels is not None:
            object.__setattr__(self, "label_proba", self.missing_labels.columns)

    # -----------------------------------------------------------------------------------------------------
    # What a policy remembers

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

    # -----------------------------------------------------------------------------------------------------
    # Names

    @property
    def attributes(self) -> tuple[Any, ...]:
        """What the groups of a table that is not in memory are made of."""
        return tuple(self.group_names) or (0,)

    def _listed(self) -> list[tuple[Any, str]]:
        """Every name, or value, with its purpose."""
        pairs = []
        for role in fields(self):
            value = getattr(self, role.name)
            if role.name not in PURPOSES or value is None:
                continue
            values = list(value.values()) if isinstance(value, Mapping) else value
            several = isinstance(values, list | tuple)
            pairs += [(name, PURPOSES[role.name]) for name in (values if several else [values])]
        return pairs

    @property
    def named(self) -> dict[str, str]:
        """Columns that are named, and what for."""
        return {name: purpose for name, purpose in self._listed() if isinstance(name, str)}

    def named_in(self, table: Table) -> dict[str, str]:
        """Columns of a table in memory that are named, and what for."""
        known = [] if table is None else column_names(table)
        return {name: purpose for name, purpose in self.named.items() if name in known}

    def complete(self, names: Iterable[str], *, labels: bool = False) -> list[str]:
        """Those of some columns in which no value may be missing; ``labels`` says whether something looks at them."""
        free: list[str] = []
        if isinstance(self.y, str) and not (labels and self.missing_labels is None):
            free.append(self.y)
        return [name for name in names if name not in free]

    @property
    def classes_named(self) -> list[Any] | None:
        """The classes, where every one of them has a column of probabilities; the score of one alone names one only."""
        return list(self.score) if isinstance(self.score, Mapping) and len(self.score) > 1 else None

    # -----------------------------------------------------------------------------------------------------
    # A table in memory

    def entries(self, table: Table, role: str) -> Entries | None:
        """The values of a role, of text by its codes: a column by its name, or an array that was passed instead."""
        value, purpose = getattr(self, role), PURPOSES[role]
        if value is None:
            return None
        return take_entries(table, value, purpose) if isinstance(value, str) else as_entries(value, purpose)

    def column(self, table: Table, role: str) -> Array | None:
        """The same as an array."""
        value, purpose = getattr(self, role), PURPOSES[role]
        if value is None:
            return None
        return take_column(table, value, purpose) if isinstance(value, str) else as_vector(value, purpose)

    def weights_in(self, table: Table) -> Floats | None:
        """The weights, checked; None where there are none."""
        return check_weights(self.column(table, "weight"), count_rows(table))

    def classes_in(
        self,
        table: Table,
        classes: Sequence[Any] | None,
        weight: Floats | None,
        labels: Entries | None = None,
    ) -> Array:
        """The classes there are: as they are given, else those with probabilities, else the labels y, or read ones."""
        labels = self.entries(table, "y") if labels is None else labels
        classes = self.classes_named if classes is None else classes
        if labels is None:  # what is decided, or predicted, are classes too
            baseline = None if self.listed else self.entries(table, "baseline")
            labels = baseline if self.predicted is None else self.entries(table, "predicted")
        labels = without_missing(labels, weight)
        if classes is None and labels is not None:
            classes = distinct(labels)
        if classes is None:
            raise no_classes()
        as_objects = labels is None or labels.dtype.kind == "O"
        return check_classes(classes, text_as_objects=as_objects)

    def read(
        self,
        table: Table,
        classes: Array,
        weight: Floats | None,
        labels: Entries | None = None,
        grouped: Table = None,
    ) -> dict[str, Any]:
        """The values of all roles, with the checked weights, for :meth:`People.of`; labels y may be read before.

        Of some rows of a table that is not in memory, ``grouped`` are those that the groups are read from.
        """
        labels = self.entries(table, "y") if labels is None else labels
        whole = grouped is None
        # Until the groups are known, nobody asks how likely they are.
        chances = self.group_chances(table) if whole or isinstance(self.group_proba, tuple) else None
        there = None if not whole else column_names(table) if is_frame(table) else ()
        return {
            "y": labels,
            "score": None if self.score is None else probabilities_of(table, self.score, classes),
            "predicted": self.entries(table, "predicted"),
            "baseline": self.entries(table, "baseline"),
            "decided": self.entries(table, "decided"),
            "weight": weight,
            "weight_kind": self.weight_kind,
            "cluster": self.column(table, "cluster"),
            "group": groups_of_present(
                table if whole else grouped, self.group, weight, self.columns_only or not whole, fresh=True
            ),
            "attributes": attributes_of(table, self.group, self.columns_only) if whole else self.attributes,
            "group_proba": chances,
            "roles": self.remembered(there),
            **self.read_missing(table, labels),
        }

    def read_missing(self, table: Table, y: Entries | None) -> dict[str, Any]:
        """What is known of missing labels y, for :meth:`People.of`."""
        if self.missing_labels is None or self.y is None:
            return {}
        if self.missing_labels.estimates:
            raise DataError(
                "MissingLabels(label_proba=...) is a classifier, and here there are scores only.",
                "Name the column of the chances that it gives, or use FairClassifier, which asks it.",
            )
        known = column_names(table) if is_frame(table) else []
        unnamed = any(isinstance(name, str) and name not in known for name in self.label_proba)
        if unnamed and y is not None and not len(null_rows(y)):
            return {"missing": self.missing_labels}  # nobody lacks a label, so nobody has to know the chances
        return {"missing": self.missing_labels, "label_proba": self.label_proba_in(table)}

    def label_proba_in(self, table: Table) -> Array | None:
        """The known chances of having a label; None where they are not known."""
        parts = [_column_or_values(table, name, "label_proba") for name in self.label_proba]
        if len(parts) < 2:
            return parts[0] if parts else None
        return np.asarray(np.sum([np.asarray(part, dtype=np.float64) for part in parts], axis=0))

    def group_chances(self, table: Table) -> Any:
        """How likely each person is of each group, by group; as one array once the order of the groups is known."""
        given = self.group_proba
        if isinstance(given, tuple):
            return stacked(table, given)
        return {group: _chance(table, name) for group, name in given.items()} if given is not None else None

    # -----------------------------------------------------------------------------------------------------
    # A table that is not in memory

    def names_only(self, classes: list[Any] | None = None) -> Roles:
        """The same, when every role is the name of a column; else an error that says which is not.

        Where the ``classes`` are known, so that every one of them has its column of probabilities.
        """
        roles = {
            role: getattr(self, role)
            for role in ("y", "predicted", "baseline", "decided", "weight", "cluster")
        }
        for role, value in roles.items():
            what = PURPOSES[role]
            if value is not None:
                _insist_on_name(
                    what, value, f"Name a column of the table in {what}=, or collect the table first."
                )
        for name in self.label_proba:
            remedy = (
                "Name a column of the table, MissingLabels(label_proba=column), or collect the table first."
            )
            _insist_on_name("label_proba", name, remedy)
        check_by_group(self.group_proba)
        for group, name in (self.group_proba or {}).items():
            _insist_on_name(f"group_proba of group {group!r}", name, BY_GROUP)
        group = self.group
        several = isinstance(group, list | tuple) and group and all(isinstance(name, str) for name in group)
        if not (isinstance(group, str) or callable(group) or several):
            raise GroupError(
                "The groups of a table that is not in memory are not named.",
                "Name the column(s), sensitive_features='sex', or pass a function of the table.",
            )
        if classes is not None and self.score is not None:
            check_names(self.score, classes)
        return self

    def for_groups(self, groups: Sequence[Any]) -> Roles:
        """With the columns of the groups' probabilities in the order of the groups."""
        given = self.group_proba
        return self if given is None else replace(self, group_proba=ordered_groups(given, groups))


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


def _insist_on_name(what: str, value: Any, remedy: str) -> None:
    if not isinstance(value, str):
        raise DataError(f"{what} is a {type(value).__name__}, and the table is not in memory.", remedy)


def _column_or_values(table: Table, value: Any, what: str) -> Array:
    """A column by its name or number, or the values themselves."""
    return take_column(table, value, what) if isinstance(value, str | int) else as_vector(value, what)


def without_missing(labels: Entries | None, weight: Floats | None) -> Entries | None:
    """Labels that are there, of people who are; whole again where only missing ones made floats of them."""
    if labels is None:
        return None
    if weight is not None and len(weight) == len(labels):  # other lengths are refused later
        labels = labels[weight > 0]
    lost = null_rows(labels)
    if not len(lost):
        return labels
    held = np.delete(np.asarray(labels), lost)
    held = as_objects(held.tolist()) if held.dtype.kind == "O" else held
    whole = held.dtype.kind == "f" and bool(((held == np.rint(held)) & (np.abs(held) <= EXACT)).all())
    return held.astype(np.int64) if whole else held


def no_classes() -> DataError:
    """What is said where nothing tells which classes there are."""
    return DataError(
        "There are no labels y, so nothing says which classes there are.",
        "Pass classes=, or score={class: column}; or y=.",
    )


def check_by_group(given: Any) -> None:
    """Refuse probabilities of groups that do not say of which group they are."""
    if given is not None and not isinstance(given, Mapping):
        raise DataError(f"group_proba is a {type(given).__name__}.", BY_GROUP)


def ordered_groups(given: Mapping[Any, Any], groups: Sequence[Any]) -> tuple[Any, ...]:
    """What is given for every group, in the order of the groups."""
    check_by_group(given)
    known = ", ".join(map(repr, groups))
    missing = [group for group in groups if group not in given]
    if missing:
        raise DataError(
            f"group_proba has no probabilities of group {missing[0]!r}; the groups are {known}.", BY_GROUP
        )
    extra = [group for group in given if group not in groups]
    if extra:
        raise DataError(
            f"group_proba names group {extra[0]!r}, and the groups are {known}.",
            "Leave that group out, with probabilities that sum to one without it, or fit on people of it too.",
        )
    return tuple(given[group] for group in groups)


def stacked(table: Table, columns: Sequence[Any]) -> Array:
    """The probabilities of the groups, one column for each."""
    return np.column_stack([_chance(table, column) for column in columns])


def _chance(table: Table, column: Any) -> Array:
    """One group's probabilities: a column of the table by its name or number, or the values themselves."""
    vector = _column_or_values(table, column, "group_proba")
    check_length(vector, count_rows(table), "group probabilities")
    return vector


def ordered_columns(score: Any, classes: list[Any]) -> Any:
    """The columns of probabilities in the order of the classes, if they are given by class."""
    if not isinstance(score, Mapping):
        score = [score] if isinstance(score, str) else score
        _refuse_unclear(score, classes)
        return score
    if set(score) == {classes[-1]} and len(classes) == 2:
        return [score[classes[-1]]]
    if set(score) != set(classes):
        raise DataError(
            f"There are probabilities for {list(score)}, and the classes are {classes}.",
            "Name one column for every class.",
        )
    return [score[choice] for choice in classes]


def _refuse_unclear(score: Any, classes: list[Any]) -> None:
    """Refuse one score for two classes that are listed the other way round: it would be taken for the other one's."""
    shape = (len(score),) if isinstance(score, list | tuple) else np.shape(score)
    named = isinstance(score, list | tuple) and all(isinstance(name, str) for name in score)
    lone = len(score) == 1 if named else len(shape) == 1 or shape[1:] == (1,)
    if lone and len(classes) == 2 and distinct(object_array(classes)) != classes:
        raise DataError(
            f"There is one score, and the classes are listed as {classes}: it is not clear of which it is.",
            "Say so: score={class: column}, or list the classes in their order.",
        )


def check_names(score: Any, classes: list[Any]) -> None:
    """Insist on names of columns of probabilities: one for every class, or that of the second of two."""
    ordered = ordered_columns(score, classes)
    if not isinstance(ordered, list | tuple) or not all(isinstance(name, str) for name in ordered):
        raise DataError(
            f"score is a {type(score).__name__}, and the table is not in memory.",
            "Name one column for every class: score={class: column}.",
        )
    if len(ordered) != len(classes) and (len(ordered), len(classes)) != (1, 2):
        raise DataError(
            f"There are {len(ordered)} columns of probabilities for the {len(classes)} classes {classes}.",
            "Name one column for every class.",
        )


def probabilities_of(table: Table, score: Any, classes: Array) -> Array:
    """Probabilities as an array, columns in the order of ``classes``."""
    score = ordered_columns(score, classes.tolist())
    if isinstance(score, list | tuple) and score and all(isinstance(name, str) for name in score):
        return np.column_stack([take_column(table, name, "score") for name in score])
    if is_frame(score):
        score = score.to_numpy()
    return np.asarray(score)
