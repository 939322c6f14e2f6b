"""Random tables of many types, asked the same on every engine: all agree, or all refuse.

The test takes a few tables; ``python tests/tables/test_fuzz.py 400`` takes as many as it says, and
``python tests/tables/test_fuzz.py 400 1000`` begins with the seed 1000.
"""

import datetime as dt
import sys
import tempfile
import traceback
import warnings
from decimal import Decimal
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from felicific import Happiness, aggregate, audit, solve
from felicific.exceptions import FelicificError

#: How far two numbers may be apart, relative to the larger.
APART = 1e-9

DAYS = [dt.date(2020, 2, 29), dt.date(1969, 12, 31), dt.date(2020, 3, 1)]
TIMES = [
    dt.datetime(2020, 2, 29, 12),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(2020, 3, 1),
]
TEXTS = [
    "",
    "a",
    "a ",
    "a\0",
    "A",
    "é",
    "e\u0301",
    "\uff41",
    "01",
    "1",
    "t",
    "True",
    "x & y",
    "\\",
    "\U0001d518",
    "nan",
    "NULL",
]

#: Values that a column of groups or labels may hold, by type.
VALUES = {
    **{f"int{bits}": [-(2 ** (bits - 1)), -1, 0, 1, 2 ** (bits - 1) - 1] for bits in (8, 16, 32)},
    **{f"uint{bits}": [0, 1, 2, 2**bits - 1] for bits in (8, 16, 32)},
    "int64": [-(2**63), -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 2, 2**63 - 1],
    "uint64": [0, 1, 2**53, 2**53 + 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1],
    "bool": [False, True],
    "float64": [-0.0, 0.0, 1.0, 0.1, 2.0**53, -1.5, 1e300],
    "float32": [0.0, 1.0, 0.5, -2.25],
    "string": TEXTS,
    "large_string": TEXTS,
    "dictionary": TEXTS,
    "decimal": [Decimal("0.10"), Decimal("1.00"), Decimal("-2.50"), Decimal("3.00")],
    "decimal_whole": [Decimal(1), Decimal(2**53), Decimal(2**53 + 1), Decimal(2**64 + 1)],
    "date": DAYS,
    "timestamp": TIMES,
    "timestamp_ns": TIMES,
    "timestamp_utc": [time.replace(tzinfo=dt.UTC) for time in TIMES],
    "timestamp_zone": [time.replace(tzinfo=dt.UTC) for time in TIMES],
}

#: Types that are no types of Arrow by their own name.
ARROW = {
    "dictionary": pa.dictionary(pa.int32(), pa.string()),
    "decimal": pa.decimal128(10, 2),
    "decimal_whole": pa.decimal128(38, 0),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamp_utc": pa.timestamp("us", tz="UTC"),
    "timestamp_zone": pa.timestamp("us", tz="America/New_York"),
    "bool": pa.bool_(),
}

#: Names that would be a pattern, a quote, a path, a keyword, a column of ours or nothing, were they part of a query.
HOSTILE = ["^.*$", 'a"b', "x.y", "select", "Ä b", "c0", "`q`", "it's", "#1", "group"]
ROLES = ("g", "h", "y", "d", "w", "id", "p0", "p1")

#: Types of classes; and of numbers that happiness looks at.
CLASSES = ("int8", "uint8", "int64", "uint64", "bool", "string", "dictionary", "float64", "decimal")
NUMBERS = {
    **{
        name: VALUES[name]
        for name in ("int8", "int16", "int32", "uint8", "uint16", "uint32", "bool", "decimal")
    },
    "int64": [0, 3, -7, 3_000_000_000, 4_000_000_001, -(2**31), 2**53],
    "uint64": [0, 3, 7, 3_000_000_000, 2**53, 2**63 + 2**20],
    "float64": [-0.0, 0.25, 1e6, -3.5, 1e15],
    "float32": [0.5, -2.0, 100.0],
}

HAPPINESS = [
    "decision * v",
    "-v * decision",
    "v * u * decision",
    "decision * (v > u)",
    "decision * (t == 'é') - (t != 'a')",
    "decision * abs(v) + max(u, 1)",
    "(decision == y) * v",
    "statistical_parity",
    "equalized_odds",
    lambda decision, x: decision * x["v"] * x["u"],
    lambda decision, x: -x["v"] * decision,
    lambda decision, x: np.where(x["v"] > x["u"], 1.0, 0.5) * decision,
    lambda decision, x: decision * (x["v"] - x["u"]),
    lambda decision, x: decision * (x["t"] == "é"),
    lambda decision, x: decision * np.sqrt(np.abs(x["v"] * 1.0)),
    lambda decision, x: [decision * float(v) for v in x["v"]],
]


def arrow_type(name):
    """The Arrow type that is meant."""
    return ARROW[name] if name in ARROW else getattr(pa, name)()


class Case:
    """One table and what is asked of it, from a seed."""

    def __init__(self, seed, n=48):
        self.rng = rng = np.random.default_rng(seed)
        self.n = n
        kinds = list(VALUES)
        self.types = {
            "g": kinds[rng.integers(len(kinds))],
            "h": kinds[rng.integers(len(kinds))],
            "y": CLASSES[rng.integers(len(CLASSES))],
            "v": list(NUMBERS)[rng.integers(len(NUMBERS))],
            "u": list(NUMBERS)[rng.integers(len(NUMBERS))],
            "t": ("string", "dictionary")[rng.integers(2)],
            "w": ("int64", "float64", "decimal", "uint8")[rng.integers(4)],
            "id": ("int64", "uint64", "string", "int32", "float64", "dictionary")[
                rng.choice(6, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
            ],
            "p": ("float64", "float32", "decimal")[rng.choice(3, p=[0.6, 0.2, 0.2])],
        }
        self.classes = self._some(VALUES[self.types["y"]], 2)
        self.several = rng.random() < 0.3
        self.weighted = rng.random() < 0.4
        self.happiness = HAPPINESS[rng.integers(len(HAPPINESS))]
        calculates = callable(self.happiness) or "decision" in self.happiness
        # What a library's own truth values are when they are negated or multiplied is not for us to say.
        strange = callable(self.happiness) and "bool" in (self.types["v"], self.types["u"], self.types["y"])
        if calculates and (strange or self.types["y"] not in ("int8", "uint8", "bool", "float64", "int64")):
            self.happiness = "statistical_parity"
        self.policy = ("score", "label", "soft-label")[rng.integers(3)]
        names = rng.permutation(HOSTILE)[: len(ROLES)].tolist() if rng.random() < 0.3 else ROLES
        self.called = dict(zip(ROLES, names, strict=True))
        self.table = self._table()

    def __repr__(self):
        group, weight = ("g and h" if self.several else "g"), (", weights" if self.weighted else "")
        happiness = (
            self.happiness
            if isinstance(self.happiness, str)
            else f"function {HAPPINESS.index(self.happiness)}"
        )
        return f"{self.types}, groups {group}{weight}, {happiness}, {self.policy}"

    def _some(self, values, most):
        """So many different values, sorted as they come."""
        values = list(dict.fromkeys(values))
        return [values[i] for i in sorted(self.rng.permutation(len(values))[:most])]

    def _column(self, name, values):
        """A column that holds some of these; a few of all columns have a null."""
        picked = [values[i] for i in self.rng.integers(0, len(values), self.n)]
        if self.rng.random() < 0.08:
            picked[int(self.rng.integers(self.n))] = None
        return pa.array(picked, type=arrow_type(self.types[name]))

    def _table(self):
        groups = {name: self._some(VALUES[self.types[name]], 2 + (name == "g")) for name in ("g", "h")}
        score = np.round(self.rng.random(self.n) * 64) / 64
        score = [
            Decimal(str(p)).quantize(Decimal("0.01")) if self.types["p"] == "decimal" else p for p in score
        ]
        first, second = (1 - np.array(score)), np.array(score)
        keys = {
            "float64": [float(i) for i in range(self.n)],
            "string": [f"person é{i}" for i in range(self.n)],
            "dictionary": [f"person {i}" for i in range(self.n)],
            "uint64": [2**63 + i for i in range(self.n)],
        }.get(self.types["id"], list(range(self.n)))
        weights = [
            Decimal(int(w)) if self.types["w"] == "decimal" else int(w)
            for w in self.rng.integers(0, 4, self.n)
        ]
        columns = {
            "g": self._column("g", groups["g"]),
            "h": self._column("h", groups["h"]),
            "y": self._column("y", self.classes),
            "d": pa.array(
                [self.classes[i] for i in self.rng.integers(0, 2, self.n)], type=arrow_type(self.types["y"])
            ),
            "v": self._column("v", NUMBERS[self.types["v"]]),
            "u": self._column("u", NUMBERS[self.types["u"]]),
            "t": self._column("t", TEXTS),
            "w": pa.array(weights, type=arrow_type(self.types["w"])),
            "id": pa.array(keys, type=arrow_type(self.types["id"])),
            "p0": pa.array(first.tolist(), type=arrow_type(self.types["p"])),
            "p1": pa.array(second.tolist(), type=arrow_type(self.types["p"])),
        }
        return pa.table({self.called.get(name, name): column for name, column in columns.items()})

    @property
    def group(self):
        return [self.called["g"], self.called["h"]] if self.several else self.called["g"]

    @property
    def named(self):
        """What stands for the classes in ``score``."""
        values = [float(v) if isinstance(v, Decimal) else v for v in self.classes]
        return dict(zip(values, [self.called["p0"], self.called["p1"]], strict=True))

    def audited(self, table):
        """Means, gaps and loss of what was decided."""
        weight = {"sample_weight": self.called["w"]} if self.weighted else {}
        found = audit(
            self.called["d"],
            table,
            self.called["y"],
            happiness=self.happiness,
            sensitive_features=self.group,
            decisions=list(self.named),
            **weight,
        )
        means = {
            (part.measure.name, group): (interval.estimate, interval.low, interval.high)
            for part in found.measures
            for group, interval in part.means.items()
        }
        return means | {"loss": None if found.loss is None else found.loss.estimate}

    def asked(self, **changes):
        weight = {"sample_weight": self.called["w"]} if self.weighted else {}
        return {
            "score": self.named, "y": self.called["y"], "sensitive_features": self.group, "happiness": self.happiness,
            "policy": self.policy, **weight,
        } | changes  # fmt: skip

    def summed(self, table):
        """Sums of aggregates, and what solve makes of them."""
        found = aggregate(table, **self.asked())
        origin = found.value + found.origin * found.among[:, :, None, :]
        sums = {"groups": found.groups, "mass": found.mass.sum(axis=1), "rows": found.rows}
        sums |= {
            "loss": found.loss.sum(axis=1),
            "value": origin.sum(axis=1),
            "among": found.among.sum(axis=1),
        }
        try:
            policy = solve(found, gap=float(np.abs(origin.sum()) + 1), random_state=0)
        except FelicificError as error:
            return sums | {"solved": type(error).__name__}
        return sums | {"solved": policy.loss}

    def fitted(self):
        """A policy of the groups of this table, from pandas; None where these cannot be fitted."""
        ask = self.asked(happiness="statistical_parity")
        try:
            sums = aggregate(self.table.to_pandas(), **ask)
            return solve(sums, gap=0.0, random_state=3)
        except FelicificError:
            return None

    def applied(self, policy, table):
        """What a policy decides on each person, by key."""
        roles = {"score": self.named, "sensitive_features": self.group, "key": self.called["id"]}
        return _decisions(policy.apply(table, **roles, column="decision"), self.called["id"])

    def in_sql(self, policy, table):
        """The same by the exported expression, in DuckDB."""
        text = policy.to_sql("duckdb", score=self.named, sensitive_features=self.group, key=self.called["id"])
        connection = duckdb.connect()
        connection.register("people", table)
        return _decisions(connection.sql(f"SELECT *, {text} AS decision FROM people"), self.called["id"])

    def retyped(self):
        """The table with its groups in another type, as a column of another system may have them."""
        changed = {
            "string": lambda v: _other_text(v),
            "float64": _number_of,
            "int64": _number_of,
            "bool": _truth_of,
        }
        kind = list(changed)[self.rng.integers(len(changed))]
        table = self.table
        for name in (self.called["g"], self.called["h"]):
            values = [None if v is None else changed[kind](v) for v in table[name].to_pylist()]
            if kind == "int64":
                values = [None if v is None else int(v) for v in values]
            index = table.column_names.index(name)
            table = table.set_column(index, name, pa.array(values, type=arrow_type(kind)))
        return table


def _other_text(value):
    return {True: "t", False: "f"}.get(value, f"0{value}") if isinstance(value, bool | int) else str(value)


def _number_of(value):
    try:
        number = float(value)
        return number if abs(number) < 2**62 else 1.0
    except (TypeError, ValueError):
        return 1.0


def _truth_of(value):
    return value in (1, "1", "01", "t", "True")


def _decisions(table, key):
    if hasattr(table, "collect"):
        table = table.collect()
    if hasattr(table, "to_arrow_table"):
        table = table.to_arrow_table()
    if hasattr(table, "compute"):
        table = table.compute()
    if hasattr(table, "to_arrow"):
        table = table.to_arrow()
    ids, decided = (
        table[name].to_pylist() if hasattr(table[name], "to_pylist") else table[name].tolist()
        for name in (key, "decision")
    )
    return dict(zip(ids, decided, strict=True))


# ---------------------------------------------------------------------------------------------------------
# Places


def places(table, folder, with_dask):
    """The table in every library and engine."""
    path = Path(folder) / "people.parquet"
    pq.write_table(table, path, row_group_size=16)
    halves = Path(folder) / "halves"
    halves.mkdir(exist_ok=True)
    pq.write_table(table.slice(0, 20), halves / "a.parquet")
    pq.write_table(table.slice(20), halves / "b.parquet")
    found = {
        "pandas": table.to_pandas(integer_object_nulls=any(map(_too_large_for_floats, table.columns))),
        "pandas nullable": table.to_pandas(types_mapper=_nullable),
        "polars": pl.from_arrow(table),
        "arrow": table,
        "dict": {
            name: _values(column) for name, column in zip(table.column_names, table.columns, strict=True)
        },
        "polars lazy": pl.from_arrow(table).lazy(),
        "polars scan": pl.scan_parquet(path),
        "duckdb": duckdb.connect().from_arrow(table),
        "path": str(halves),
        "dataset": ds.dataset(path),
    }
    if with_dask:
        import dask.dataframe as dd

        found["dask"] = dd.from_pandas(table.to_pandas(types_mapper=_on_dask), npartitions=2)
    return found


def _too_large_for_floats(column):
    """Whether PyArrow would make floats of whole numbers with a gap that floats cannot hold: other numbers, then."""
    if not pa.types.is_integer(column.type) or not column.null_count:
        return False
    return max((abs(value) for value in column.to_pylist() if value is not None), default=0) > 2**53


def _values(column):
    # Of dictionaries PyArrow gives another value for a missing one.
    if pa.types.is_dictionary(column.type) or _too_large_for_floats(column):
        return np.array([*column.to_pylist(), None], dtype=object)[:-1]
    return column.to_numpy(zero_copy_only=False)


def _nullable(kind):
    import pandas as pd

    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        name = {"bool": "boolean"}.get(str(kind), str(kind).replace("int", "Int").replace("uI", "UI"))
        return pd.api.types.pandas_dtype(name)
    return None


def _on_dask(kind):
    import pandas as pd

    # Of Python's decimal numbers and dates, and of truth values with a gap, Dask makes text.
    text = pa.types.is_decimal(kind) or pa.types.is_date(kind) or pa.types.is_boolean(kind)
    return pd.ArrowDtype(kind) if text else None


# ---------------------------------------------------------------------------------------------------------
# Comparing


class Refused:
    """That an error of ours, or one that an engine raised for us, refused to answer."""

    def __init__(self, error):
        self.error = error

    def __repr__(self):
        return f"refused: {type(self.error).__name__}: {' '.join(str(self.error).split())[:150]}"


def outcome(work, *arguments):
    """What comes of it: an answer, that it is refused, or a text that says how it broke."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return work(*arguments)
    except FelicificError as error:
        return Refused(error)
    except Exception as error:
        text = f"{error}"
        if "felicific: " in text or "counted within a batch" in text or "ValueError" in text:
            return Refused(error)
        return "broke: " + "".join(traceback.format_exception(error))[-900:]


def same(left, right):
    """Whether two answers agree."""
    if isinstance(left, Refused) or isinstance(right, Refused):
        return isinstance(left, Refused) and isinstance(right, Refused)
    if isinstance(left, str) or isinstance(right, str):
        return not (isinstance(left, str) and left.startswith("broke")) and left == right
    if isinstance(left, dict):
        return isinstance(right, dict) and _matched(left, right)
    if isinstance(left, tuple) and any(not isinstance(v, float) for v in left):
        return isinstance(right, tuple) and list(map(_plain, left)) == list(map(_plain, right))
    if isinstance(left, float | np.floating | np.ndarray | tuple):
        a, b = np.asarray(left, dtype=float), np.asarray(right, dtype=float)
        return a.shape == b.shape and bool(
            np.allclose(a, b, rtol=APART, atol=APART * max(1.0, _size(a)), equal_nan=True)
        )
    return _plain(left) == _plain(right)


def _size(array):
    finite = np.abs(array[np.isfinite(array)])
    return float(finite.max(initial=0.0))


def _matched(left, right):
    theirs = {_plain(key): value for key, value in right.items()}
    return len(left) == len(right) and all(
        _plain(key) in theirs and same(value, theirs[_plain(key)]) for key, value in left.items()
    )


def _plain(value):
    """A value by which keys are compared: True is not 1."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return ("truth", bool(value)) if isinstance(value, bool | np.bool_) else value


def disagreements(seed, with_dask=False):
    """What places say otherwise than pandas, of one random table; a list of texts."""
    case = Case(seed)
    found = []

    def compare(what, answers):
        """Places by what they answer; more than one answer is a disagreement."""
        kinds = []
        for place, answer in answers.items():
            alike = next((kind for kind in kinds if same(kind[0], answer)), None)
            if alike is None:
                kinds.append((answer, [place]))
            else:
                alike[1].append(place)
        if len(kinds) > 1 or (isinstance(kinds[0][0], str) and kinds[0][0].startswith("broke")):
            said = " / ".join(f"{', '.join(where)}: {_short(answer)}" for answer, where in kinds)
            found.append(f"seed {seed}, {what}: {said} / {case}")

    with tempfile.TemporaryDirectory() as folder:
        tables = places(case.table, folder, with_dask)
        compare("audit", {place: outcome(case.audited, table) for place, table in tables.items()})
        compare("aggregates", {place: outcome(case.summed, table) for place, table in tables.items()})
        policy = case.fitted()
        if policy is not None:
            answers = {place: outcome(case.applied, policy, table) for place, table in tables.items()}
            compare("apply", answers)
            in_sql = outcome(case.in_sql, policy, case.table)
            if not isinstance(in_sql, Refused):
                compare("sql", {"pandas": answers["pandas"], "sql": in_sql})
            other = case.retyped()
            tables = places(other, folder, with_dask)
            answers = {place: outcome(case.applied, policy, table) for place, table in tables.items()}
            compare("apply retyped", answers)
            in_sql = outcome(case.in_sql, policy, other)
            if not isinstance(in_sql, Refused):
                compare("sql retyped", {"pandas": answers["pandas"], "sql": in_sql})
    return found


def _short(answer):
    return " ".join((str(answer)[-200:] if isinstance(answer, str) else repr(answer)[:200]).split())


@pytest.mark.parametrize("seed", range(12))
def test_engines_agree_or_all_refuse(seed):
    """Audits, aggregates, solved and applied policies and SQL say the same on every engine, or refuse."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert disagreements(seed) == []


MISSING = {"g": ["a", "b"] * 6, "s": [0.1, 0.9, 0.4] * 4, "y": [0, 1, 1] * 4, "d": [0, 1, 0, 1] * 3}
MISSING |= {"v": [1.0, None, *[2.0] * 10], "t": ["x", None, *["é"] * 10], "seen": [1, 0, *[1] * 10]}


@pytest.mark.parametrize(
    ("happiness", "refuses"),
    [
        ("decision * v", "'v'|happiness"),
        ("decision * (v > 1)", "'v'|happiness"),
        (lambda decision, x: decision * (x["v"] > 1), "'v'"),
        (lambda decision, x: np.where(x["v"] > 1, 1.0, 0.5) * decision, "'v'"),
        (lambda decision, x: decision * (x["t"] == "é"), "'t'"),
        (Happiness("decision * v", among="seen == 1"), None),
        (Happiness(lambda decision, x: np.where(x["v"] > 1, 1, 0) * decision, among="seen == 1"), None),
        (Happiness("decision * v", among=lambda x: ~np.isnan(x["v"])), None),
    ],
)
def test_missing_values_that_a_happiness_looks_at_are_refused_everywhere(happiness, refuses, tmp_path):
    """Comparing with what is missing would be false; of people who are not counted it does not matter."""
    table = pa.table(MISSING)
    ask = {"y": "y", "sensitive_features": "g", "happiness": happiness}
    sums, means = [], []
    for place in places(table, tmp_path, with_dask=find_spec("dask") is not None).values():
        works = [
            partial(aggregate, place, score={1: "s"}, classes=[0, 1], **ask),
            partial(audit, "d", place, decisions=[0, 1], **ask),
        ]
        if refuses is not None:
            for work in works:
                with pytest.raises(FelicificError, match=refuses):
                    work()
            continue
        counted, measured = (work() for work in works)
        sums.append((counted.value + counted.origin * counted.among[:, :, None, :]).sum(axis=1))
        means.append([one.estimate for one in measured.measures[0].means.values()])
    assert all(same(one, sums[0]) for one in sums)
    assert all(same(one, means[0]) for one in means)


@pytest.mark.parametrize("n", [12, 1200])
def test_text_that_ends_at_nul_is_another_everywhere(n, tmp_path):
    """Of texts of a fixed length NumPy drops the NULs at the end, and two groups would be one."""
    table = pa.table(
        {name: column * (n // 12) for name, column in (MISSING | {"g": ["a", "a\0"] * 6}).items()}
    )
    for place in places(table, tmp_path, with_dask=find_spec("dask") is not None).values():
        ask = {"y": "y", "sensitive_features": "g", "happiness": "decision * (g == 'a')"}
        sums = aggregate(place, score={1: "s"}, classes=[0, 1], **ask)
        assert sums.groups == ("a", "a\0")
        means = audit("d", place, decisions=[0, 1], **ask).measures[0].means
        assert (means["a"].estimate, means["a\0"].estimate) == (0.0, 0.0)


def test_the_test_of_engines_sees_other_answers():
    """Other numbers, other groups, truth beside a number and an answer beside a refusal are all seen."""
    refused = Refused(ValueError("felicific: no"))
    assert same({"a": 1.0}, {"a": 1.0 + 1e-12})
    assert not same({"a": 1.0}, {"a": 1.0 + 1e-6})
    assert not same({"a": 1.0}, {"b": 1.0})
    assert not same((True, "a"), (1, "a"))
    assert not same({"a": 1.0}, refused)
    assert same(refused, refused)


if __name__ == "__main__":
    count, start = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    bad = 0
    for seed in range(start, start + count):
        for text in disagreements(seed, with_dask=seed % 10 == 0):
            bad += 1
            print(text, flush=True)
    print(f"{count} tables, {bad} disagreements")
    sys.exit(bool(bad))
