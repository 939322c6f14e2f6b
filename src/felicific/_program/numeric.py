"""Aggregates of amounts: the sums over people with what will be asked of them; they add, and are kept in files."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from felicific._files import (
    AGGREGATES,
    check_distinct,
    check_shape,
    plain,
    read_number,
    read_numbers,
    read_values,
    read_whole,
    refused,
    write_document,
    write_whole,
)
from felicific._people.roles import Roles
from felicific._problem.expressions import Expression
from felicific._problem.happiness import Happiness
from felicific._problem.numeric import PARITY, Allowed, NumericProblem
from felicific._problem.unions import read_attributes
from felicific._program.calibration import Method, check_method
from felicific._program.predicted import BINS, Predicted, Scale
from felicific._typing import Codes, Floats, GapLike
from felicific.exceptions import AggregatesError, DataError

#: What files of sums call those of amounts.
KIND = "amounts"

#: Sums by group and bin that a file holds of bins with people in them.
BY_BIN = ("mass", "predicted", "labels", "least", "most")


@dataclass(frozen=True, eq=False)
class AskedOfAmounts:
    """What is asked whatever the gap: measures, what parity is called, the loss, which amounts there may be.

    And what is made of predictions, as Score(calibration=...) says.
    """

    happiness: tuple[Happiness, ...]
    parity: str
    loss: str
    allowed: Allowed
    calibration: Method

    @classmethod
    def of(cls, problem: NumericProblem, loss: Any, calibration: Method) -> AskedOfAmounts:
        """Of a problem that was read."""
        if not problem.squared or not isinstance(loss, str):
            raise DataError(
                f"The loss {problem.loss.name!r} is not the squared error, and sums of predictions do not tell it.",
                "Use loss='squared', or FairRegressor, which has the people in memory.",
            )
        if problem.of_people:
            raise DataError(
                f"The happiness {problem.of_people!r} looks at more than the amount and the group, and sums of "
                "predictions do not tell it.",
                "Use FairRegressor with an individual policy, in memory.",
            )
        return cls(problem.happiness, problem.parity, problem.loss.name, problem.allowed, calibration)

    def problem(self, gap: GapLike, constraints: Any) -> NumericProblem:
        """With what is asked now."""
        said: dict[str, Any] = {str(part.name): part for part in self.happiness}
        said |= {self.parity: PARITY} if self.parity else {}
        return NumericProblem.finding(
            said, loss=self.loss, gap=gap, constraints=constraints, decisions=self.allowed
        )

    def to_json(self) -> dict[str, Any]:
        """What a file holds of it; functions are refused, which no file can hold."""
        return {
            "happiness": [_written(part) for part in self.happiness],
            "parity": self.parity,
            "loss_name": self.loss,
            "calibration": self.calibration,
            "decisions": {
                "bounds": None if self.allowed.bounds is None else list(self.allowed.bounds),
                "listed": None if self.allowed.listed is None else list(self.allowed.listed),
            },
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> AskedOfAmounts:
        """Read it."""
        decisions = content["decisions"]
        if not isinstance(decisions, dict) or set(decisions) != {"bounds", "listed"}:
            raise refused("it does not say which amounts there may be")
        bounds, listed = decisions["bounds"], decisions["listed"]
        allowed = Allowed()
        if listed is not None:
            allowed = Allowed.of(read_numbers(listed, "decisions").tolist())
        elif bounds is not None:
            low, high = check_shape("bounds", read_numbers(bounds, "bounds"), (2,)).tolist()
            allowed = Allowed.of((low, high))
        if type(content["parity"]) is not str or content["loss_name"] != "squared":
            raise refused("its parity or its loss is none of amounts")
        parts = tuple(_read(part) for part in content["happiness"])
        return cls(
            parts, content["parity"], content["loss_name"], allowed, check_method(content["calibration"])
        )


def _written(part: Happiness) -> dict[str, Any]:
    """A happiness as data."""
    texts = {}
    for name in ("function", "among"):
        value = getattr(part, name)
        if value is not None and not isinstance(value, Expression):
            raise DataError(
                f"The happiness {part.name!r} is a Python function, which a file of sums cannot hold.",
                "Write it as an expression of decision and group: '(decision >= 40) * 1'.",
            )
        texts[name] = None if value is None else value.text
    return texts | {
        "name": part.name,
        "unit": part.unit,
        "bounds": None if part.bounds is None else list(part.bounds),
    }


def _read(content: Any) -> Happiness:
    """A happiness that a document holds."""
    if not isinstance(content, dict) or set(content) != {"function", "among", "name", "unit", "bounds"}:
        raise refused("a happiness lacks a part, or has one too many")
    texts = [content[name] for name in ("function", "name", "unit")]
    if not all(type(text) is str for text in texts) or type(content["among"]) not in (str, type(None)):
        raise refused("a part of a happiness is no text")
    bounds = content["bounds"]
    pair = (
        None
        if bounds is None
        else tuple(check_shape("bounds", read_numbers(bounds, "bounds"), (2,)).tolist())
    )
    return Happiness(content["function"], content["among"], content["name"], content["unit"], bounds=pair)


@dataclass(frozen=True, eq=False)
class AmountAggregates:
    """Sums over people who are to be given amounts.

    Attributes
    ----------
    sums : Predicted
        By group and fine bin of the prediction.
    asked : AskedOfAmounts
        Happiness, loss and which amounts there may be; the gap is said to :func:`felicific.solve`.
    """

    sums: Predicted = field(repr=False)
    asked: AskedOfAmounts

    @property
    def groups(self) -> tuple[Any, ...]:
        """The groups."""
        return self.sums.groups

    @property
    def people(self) -> Floats:
        """Weight of every group."""
        return self.sums.people

    @property
    def mass(self) -> Floats:
        """Weight of every group and bin."""
        return self.sums.mass

    @property
    def rows(self) -> Codes:
        """Rows of every group."""
        return self.sums.rows

    def __add__(self, other: AmountAggregates) -> AmountAggregates:
        if not isinstance(other, AmountAggregates):
            return NotImplemented
        for what, one, two in (
            ("decisions", self.asked.allowed.said, other.asked.allowed.said),
            ("names of parity", self.asked.parity, other.asked.parity),
            ("calibrations", self.asked.calibration, other.asked.calibration),
            ("happiness", _said(self.asked), _said(other.asked)),
        ):
            if one != two:
                raise AggregatesError(
                    f"Aggregates of other {what} do not add: {one!r} and {two!r}.",
                    "Sum up the same of all people.",
                )
        return replace(self, sums=self.sums + other.sums)

    def to_json(self) -> str:
        """Write the sums as text that :meth:`felicific.Aggregates.from_json` reads: no row and no function."""
        return write_document(self.content(), AGGREGATES, indent=None)

    def content(self) -> dict[str, Any]:
        """The sums as data, of bins with people in them."""
        sums, cells = self.sums, np.argwhere(self.sums.mass > 0)
        index = tuple(cells.T)
        arrays = {name: getattr(sums, name) for name in BY_BIN}
        return {
            "kind": KIND,
            **self.asked.to_json(),
            "groups": plain(list(sums.groups), "group"),
            "scale": [sums.scale.low, sums.scale.high],
            "rows": sums.rows.tolist(),
            "squares": sums.squares.tolist(),
            "roles": sums.roles.to_json(),
            "attributes": list(sums.attributes),
            "cells": cells.tolist(),
            **{name: None if array is None else array[index].tolist() for name, array in arrays.items()},
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sums to a file, whole or not at all."""
        write_whole(path, self.to_json())

    @classmethod
    def read(cls, content: dict[str, Any]) -> AmountAggregates:
        """The sums that a document holds, refusing whatever is not exactly such."""
        asked = AskedOfAmounts.from_json(content)
        groups = tuple(read_values(content["groups"], "group"))
        check_distinct(groups=groups)
        low, high = (read_number(end, "scale") for end in content["scale"])
        rows = check_shape("rows", read_numbers(content["rows"], "rows"), (len(groups),))
        squares = check_shape("squares", read_numbers(content["squares"], "squares"), (len(groups), 3))
        arrays = _read_bins(content, len(groups))
        if ((arrays["mass"] > 0).any(axis=1) != (rows > 0)).any():
            raise refused("some group has people but no rows, or rows but no people")
        sums = Predicted(
            groups=groups,
            scale=Scale(low, high),
            squares=squares,
            rows=read_whole(rows.tolist(), "rows"),
            roles=Roles.from_json(content["roles"]),
            attributes=read_attributes(content["attributes"]),
            **arrays,
        )
        aggregates = cls(sums, asked)
        extra = set(content) ^ set(aggregates.content())
        if extra:
            raise refused(f"it lacks or holds {sorted(extra)}, which sums of amounts do not")
        return aggregates


def _said(asked: AskedOfAmounts) -> list[tuple[Any, ...]]:
    """What happiness says, so that two can be compared."""
    return [
        (
            part.name,
            part.unit,
            getattr(part.function, "text", part.function),
            getattr(part.among, "text", part.among),
        )
        for part in asked.happiness
    ]


def _read_bins(content: dict[str, Any], n_groups: int) -> dict[str, Any]:
    """The sums of every bin that a document names, nothing in the others."""
    shape = (n_groups, BINS)
    cells = read_whole(content["cells"], "cells").astype(np.intp).reshape(-1, 2)
    if len(np.unique(cells, axis=0)) < len(cells) or (cells >= shape).any():
        raise refused("a bin occurs twice, or is none")
    empty = {"least": np.inf, "most": -np.inf}
    arrays: dict[str, Any] = {}
    for name in BY_BIN:
        if name == "labels" and content[name] is None:
            arrays[name] = None
            continue
        array = np.full(shape, empty.get(name, 0.0))
        array[tuple(cells.T)] = check_shape(name, read_numbers(content[name], name), (len(cells),))
        arrays[name] = array
    if (arrays["mass"][tuple(cells.T)] <= 0).any():
        raise refused("a bin holds nobody, or less")
    if (arrays["least"] > arrays["most"])[tuple(cells.T)].any():
        raise refused("the least prediction of a bin is larger than the largest")
    return arrays
