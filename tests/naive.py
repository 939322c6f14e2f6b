"""A naive second implementation of what people are worth: one row, one decision, one measure at a time.

:class:`Case` is a random problem: columns of people, and what is asked of them, once as felicific is given it and once
as plain functions of one row (a dict). Sums are ``math.fsum`` over rows; nothing is vectorised and nothing is shared
with the library but the numbers themselves.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from strategies import probabilities, small_ints

from felicific import Happiness


def as_pandas(columns):
    import pandas as pd

    return pd.DataFrame(columns)


def as_arrow(columns):
    import pyarrow as pa

    return pa.table(dict(columns))


def as_polars(columns):
    import polars as pl

    return pl.from_arrow(as_arrow(columns))


def as_duckdb(columns):
    import duckdb

    return duckdb.connect().from_arrow(as_arrow(columns))


def write_parquet(columns, path):
    import pyarrow.parquet as pq

    pq.write_table(as_arrow(columns), path, row_group_size=7)
    return path


def as_dataset(columns):
    import pyarrow.dataset as ds

    return ds.InMemoryDataset(as_arrow(columns))


def as_dask(columns):
    import dask.dataframe as dd

    return dd.from_pandas(as_pandas(columns), npartitions=2)


#: Where Dask is, it is one more place.
DASK = ("dask",) if find_spec("dask") is not None else ()

#: Tables in memory.
MEMORY = {
    "pandas": as_pandas,
    "polars": as_polars,
    "dict": dict,
}

#: Tables that are not, with a folder for files.
LAZY = {
    "polars lazy": lambda columns, folder: as_polars(columns).lazy(),
    "duckdb": lambda columns, folder: as_duckdb(columns),
    "parquet": lambda columns, folder: write_parquet(columns, folder / "people.parquet"),
    "dataset": lambda columns, folder: as_dataset(columns),
}


@dataclass(frozen=True)
class Part:
    """One measure: as felicific gets it, and as functions of one row."""

    asked: Any
    value: Callable[[dict, Any], float]
    counts: Callable[[dict], bool] = lambda row: True
    name: str = ""


@dataclass(frozen=True)
class Case:
    """People and what is asked of them.

    Attributes
    ----------
    columns : dict of arrays
        amount, member, y, z, own (what the model predicts), now (the baseline), decided, w, p0, p1, ...
    classes : list
    parts : list of Part
    loss, cost : object, callable
        The loss as felicific gets it, and of one row and decision.
    weighted, predicted, baseline : bool
        Whether the columns w, own and now are named.
    spelling : str
        How probabilities are named: "mapping", "list" or "score".
    """

    columns: dict
    classes: list
    parts: list
    loss: Any
    cost: Callable[[dict, Any], float]
    weighted: bool
    predicted: bool
    baseline: bool
    spelling: str

    @cached_property
    def rows(self):
        """Rows of positive weight, as dicts."""
        names = list(self.columns)
        rows = [
            dict(zip(names, row, strict=True))
            for row in zip(*(column.tolist() for column in self.columns.values()), strict=True)
        ]
        return [row for row in rows if self.weight(row)]

    @property
    def groups(self):
        """Groups of those rows, sorted."""
        return sorted({row["z"] for row in self.rows})

    @property
    def happiness(self):
        """The measures as felicific gets them."""
        return [part.asked for part in self.parts]

    def weight(self, row):
        """Weight of one row."""
        return row["w"] if self.weighted else 1.0

    def probabilities(self, row):
        """Probabilities of one row."""
        return [row[f"p{k}"] for k in range(len(self.classes))]

    def own(self, row):
        """Position of what the model predicts: as it says, or the first of the most probable."""
        if self.predicted:
            return self.classes.index(row["own"])
        return self.probabilities(row).index(max(self.probabilities(row)))

    def now(self, row):
        """Position of the baseline's decision."""
        return self.classes.index(row["now"]) if self.baseline else self.own(row)

    def shares(self, row, policy):
        """Signal of a row, or all of them with their shares."""
        if policy == "soft-label":
            return list(enumerate(self.probabilities(row)))
        return [(self.own(row), 1.0)]

    @property
    def asked(self):
        """Arguments of ``aggregates``."""
        named = [f"p{k}" for k in range(len(self.classes))]
        spelled = {"mapping": dict(zip(self.classes, named, strict=True)), "list": named, "score": "p1"}
        return {
            "score": spelled[self.spelling],
            "y": "y",
            "sensitive_features": "z",
            "happiness": self.happiness,
            "loss": self.loss,
            "classes": self.classes,
            "predicted": "own" if self.predicted else None,
            "baseline": "now" if self.baseline else None,
            "sample_weight": "w" if self.weighted else None,
        }

    # -----------------------------------------------------------------------------------------------------
    # Sums, row by row

    def total(self, z, term, s=None, policy="label"):
        """Sum of a term over the rows of a group, of one signal or of all."""
        terms = [
            self.weight(row) * share * term(row)
            for row in self.rows
            if row["z"] == z
            for signal, share in self.shares(row, policy)
            if s is None or signal == s
        ]
        return math.fsum(terms), math.fsum(map(abs, terms))

    def mean(self, z, j, decide):
        """Mean happiness of a group, of what ``decide`` says is decided on each row: {decision: probability}."""
        part = self.parts[j]
        counted = [row for row in self.rows if row["z"] == z and part.counts(row)]
        held = math.fsum(self.weight(row) for row in counted)
        return (
            math.fsum(
                self.weight(row) * probability * part.value(row, decision)
                for row in counted
                for decision, probability in decide(row).items()
            )
            / held
        )

    def mean_loss(self, decide):
        """Mean loss of what is decided on each row."""
        return math.fsum(
            self.weight(row) * probability * self.cost(row, decision)
            for row in self.rows
            for decision, probability in decide(row).items()
        ) / math.fsum(self.weight(row) for row in self.rows)

    def scale(self, j):
        """Size of a measure's values: what rounding is relative to."""
        values = [abs(self.parts[j].value(row, d)) for row in self.rows for d in self.classes]
        return max(values, default=0.0) or 1.0


# ---------------------------------------------------------------------------------------------------------
# Random problems

OFFSETS = [0.0, 1.0, -7.0, 1e3, -1e6, 1e9]


def _amount(offset):
    """A function of x."""
    return Part(
        lambda decision, x: decision * x["amount"] + offset,
        lambda row, decision: decision * row["amount"] + offset,
    )


def _right(offset):
    """A function of y alone."""
    return Part(
        lambda decision, y: 2.5 * (y == decision) + offset,
        lambda row, decision: 2.5 * (row["y"] == decision) + offset,
    )


def _both(offset):
    """A function of x and y."""
    return Part(
        lambda decision, x, y: (y == decision) * x["amount"] + offset,
        lambda row, decision: (row["y"] == decision) * row["amount"] + offset,
    )


def _written(offset):
    """An expression."""
    return Part(
        f"amount * (decision == y) - decision + {offset!r}",
        lambda row, decision: row["amount"] * (decision == row["y"]) - decision + offset,
    )


def _restricted(best):
    """Ways to say who is counted."""
    return {
        "everybody": (None, lambda row: True),
        "x": (lambda x: x["member"] == 1, lambda row: row["member"] == 1),
        "y": (lambda y: y == best, lambda row: row["y"] == best),
        "expression": (f"member == 1 or y == {best!r}", lambda row: row["member"] == 1 or row["y"] == best),
    }


def _criteria(classes):
    """Criteria of which two measures at most are expected, by name, as functions of one row."""
    best = classes[-1]
    return {
        "accuracy": Part("accuracy", lambda row, d: float(d == row["y"])),
        "true positive rate": Part(
            "true positive rate", lambda row, d: float(d == best), lambda row: row["y"] == best
        ),
        "false positive rate": Part(
            "false positive rate", lambda row, d: float(d == best), lambda row: row["y"] != best
        ),
    }


def _valued(part, rows, classes):
    return [part.value(row, d) for row in rows if part.counts(row) for d in classes]


@st.composite
def measures(draw, name, rows, classes):
    """One measure with a name of its own; where bounds are drawn, they are the least and the largest value."""
    kind = draw(st.sampled_from(["amount", "amount", "right", "both", "written", "criterion"]))
    if kind == "criterion":
        criterion = draw(st.sampled_from(sorted(_criteria(classes))))
        part = _criteria(classes)[criterion]
        return replace(part, name=criterion)
    made = {"amount": _amount, "right": _right, "both": _both, "written": _written}[kind]
    part = made(draw(st.sampled_from(OFFSETS)))
    among, counts = _restricted(classes[-1])[draw(st.sampled_from(sorted(_restricted(classes[-1]))))]
    part = replace(part, counts=counts, name=name)
    # What no decision changes for anybody is refused, and has tests of its own.
    assume(
        any(part.value(row, d) != part.value(row, classes[0]) for row in rows if counts(row) for d in classes)
    )
    values, bounds = _valued(part, rows, classes), None
    if draw(st.booleans()) and min(values) < max(values):
        bounds = (min(values), max(values))
    return replace(part, asked=Happiness(part.asked, among=among, name=name, bounds=bounds))


@st.composite
def losses(draw, classes):
    """The loss, and of one row."""
    kind = draw(st.sampled_from(["error", "matrix", "function", "expression"]))
    if kind == "error":
        return "error", lambda row, d: float(row["y"] != d)
    if kind == "matrix":
        matrix = (draw(small_ints((len(classes), len(classes)), -2, 8)) / 4).tolist()
        return matrix, lambda row, d: matrix[classes.index(row["y"])][classes.index(d)]
    if kind == "function":
        return (lambda decision, x, y: (y != decision) * x["amount"]), (
            lambda row, d: (row["y"] != d) * row["amount"]
        )
    return "(y != decision) * 3 + decision", lambda row, d: (row["y"] != d) * 3 + d


@st.composite
def cases(draw, n_classes=None, extra=10):
    """Draw a problem in which every group has a counted member of positive weight of every label."""
    classes = draw(st.sampled_from([[0, 1], [-1, 4], [0, 1, 2], [1, 3, 7]]))
    classes = classes if n_classes is None else [[0, 1], [0, 1, 2]][n_classes - 2]
    k, g = len(classes), draw(st.integers(2, 3))
    more = draw(st.integers(0, extra))
    group = np.concatenate([np.repeat(np.arange(g), k), draw(small_ints(more, 0, g - 1))])
    label = np.concatenate([np.tile(np.arange(k), g), draw(small_ints(more, 0, k - 1))])
    n, names = len(group), np.array(classes)
    weight = draw(st.sampled_from(["none", "frequencies", "fractions"]))
    w = draw(small_ints(n, 0, 3)).astype(float) * (0.3 if weight == "fractions" else 1.0)
    w[: g * k] = np.maximum(w[: g * k], 0.3 if weight == "fractions" else 1.0)
    member = draw(small_ints(n, 0, 1))
    member[: g * k] = 1
    order = np.array(draw(st.permutations(range(n))))
    columns = {
        "amount": draw(small_ints(n, 0, 40)) / 4,
        "member": member,
        "y": names[label],
        "z": np.array(["a", "b & c", "é"], dtype=object)[group],
        "own": names[draw(small_ints(n, 0, k - 1))],
        "now": names[draw(small_ints(n, 0, k - 1))],
        "decided": names[draw(small_ints(n, 0, k - 1))],
        "w": w,
    }
    score = draw(probabilities(n, k))
    columns |= {f"p{s}": score[:, s] for s in range(k)}
    columns = {name: column[order] for name, column in columns.items()}
    loss, cost = draw(losses(classes))
    case = Case(
        columns=columns,
        classes=classes,
        parts=[],
        loss=loss,
        cost=cost,
        weighted=weight != "none",
        predicted=draw(st.booleans()),
        baseline=draw(st.booleans()),
        spelling=draw(st.sampled_from(["mapping", "list", "score"][: 3 if k == 2 else 2])),
    )
    parts = [draw(measures(f"part {j}", case.rows, classes)) for j in range(draw(st.integers(1, 3)))]
    unique = {part.name: part for part in parts}
    return replace(case, parts=list(unique.values()))
