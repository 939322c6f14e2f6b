"""Spark: aggregates on a local cluster of two workers."""

import os
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from functions import (
    BATCHWISE,
    EVERYDAY,
    SALTS,
    Slow,
    as_lists,
    as_pandas,
    asked,
    assert_individual,
    assert_same,
    assert_whole_path,
    interrupting,
    lottery_case,
    measures,
    people,
    write_parquet,
)
from warehouses import find

from felicific import Happiness, Score, aggregate, solve
from felicific.exceptions import BatchWarning, DataError, EngineError, GroupError, HappinessError

pyspark = pytest.importorskip("pyspark")

pytestmark = [
    pytest.mark.cluster,
    # PySpark 4 calls a part of pandas that pandas 3 will change.
    pytest.mark.filterwarnings(
        "ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning"
    ),
]


@pytest.fixture(scope="module")
def spark():
    """A session whose workers run this interpreter and find the package under test."""
    import felicific

    before = {name: os.environ.get(name) for name in ("PYSPARK_PYTHON", "PYTHONPATH")}
    os.environ["PYSPARK_PYTHON"] = sys.executable
    paths = [str(Path(felicific.__file__).parents[1]), str(Path(__file__).parents[1])]
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])
    session = (
        pyspark.sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.codegen.wholeStage", "false")  # compiling queries takes longer than running these
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "500")
        # Java lives for a minute here: compiling its code thoroughly does not pay.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
    for name, value in before.items():
        if value is None:
            os.environ.pop(name)
        else:
            os.environ[name] = value


@pytest.fixture(scope="module")
def table():
    return people(1500)


@pytest.fixture
def lay(spark, tmp_path):
    """Lay a table out as a Spark dataframe of three partitions."""

    def laid(table):
        path = write_parquet(table, tmp_path / f"{len(os.listdir(tmp_path))}.parquet", 250)
        return spark.read.parquet(str(path)).repartitionByRange(3, "id")

    return laid


@pytest.mark.parametrize("part", range(4))
def test_everyday_functions_agree_with_pandas(lay, table, part):
    """All everyday functions give the aggregates of the same rows in pandas, by one query, without a notice."""
    some = dict(list(EVERYDAY.items())[part::4])  # one query of all takes long to plan
    ask = asked(happiness=measures(some))
    assert_same(aggregate(lay(table), **ask), aggregate(as_pandas(table), **ask))


@pytest.mark.parametrize("policy", ["label", "soft-label", Score(bins=8)])
def test_every_signal_with_weights(lay, table, policy):
    """Every signal gives the same sums with weights, for classes that are not given."""
    ask = asked(policy=policy, sample_weight="w", score=["p0", "p1", "p2"], happiness=EVERYDAY["right"])
    assert_same(aggregate(lay(table), **ask), aggregate(as_pandas(table), **ask))


def test_other_functions_run_on_the_workers_with_a_notice(lay, table):
    """A function that is no expression of columns runs on the workers, batch by batch."""
    ask = asked(happiness=[Happiness(BATCHWISE["branch"], name="branch"), "overall_accuracy"])
    with pytest.warns(BatchWarning, match="'branch'"):
        found = aggregate(lay(table), **ask)
    assert_same(found, aggregate(as_pandas(table), **ask))


def test_missing_values_are_counted(lay, table, refuses):
    """Null and NaN are named with the column, their number and their partition."""
    loan = table["loan"].copy()
    loan[[3, 700]] = np.nan
    with refuses(DataError, "'loan'", "2 of 1500 rows", "of partition", remedy="Fill it in"):
        aggregate(lay(table | {"loan": loan}), **asked(happiness=EVERYDAY["times"]))
    group = table["z"].copy()
    group[3] = None
    with refuses(DataError, "'z'", "1 of 1500 rows"):
        aggregate(lay(table | {"z": group}), **asked(happiness=EVERYDAY["times"]))


def test_bad_rows_are_named(lay, table, refuses):
    """Impossible values, unseen groups and infinite happiness are named, rows with their partition."""
    score = table["p1"].copy()
    score[650] = 7.0
    with refuses(DataError, "probabilities of row", "7.0", "partition"):
        aggregate(lay(table | {"p1": score}), **asked(happiness=EVERYDAY["times"]))
    income = table["income"].copy()
    income[650] = 0.0
    with refuses(HappinessError, "'h'", "partition"):
        aggregate(lay(table | {"income": income}), **asked(happiness={"h": EVERYDAY["ratio"]}))
    with refuses(GroupError, "'c'", "'a', 'b'"):
        aggregate(lay(table), **asked(happiness=EVERYDAY["times"], groups=["a", "b"]))


def test_hostile_names(lay, table):
    """Dots, backticks, quotes and patterns in names are no part of a query."""
    names = {
        "p0": "p`0",
        "p1": "p.1",
        "p2": "*",
        "y": "^.*$",
        "z": "x'; DROP TABLE people; --",
        "loan": 'a"b',
    }
    hostile = {names.get(name, name): column for name, column in table.items()}
    found = aggregate(
        lay(hostile),
        score={0: "p`0", 1: "p.1", 2: "*"},
        y="^.*$",
        sensitive_features="x'; DROP TABLE people; --",
        happiness={"h": lambda decision, x: decision * x['a"b']},
    )
    assert_same(found, aggregate(as_pandas(table), **asked(happiness={"h": EVERYDAY["times"]})))


@pytest.mark.parametrize("signal", ["score", "soft-label"])
def test_decisions_are_a_lazy_column(lay, spark, table, signal):
    """A policy's decisions are those of Python, as a column and as exported SQL with hostile names and groups."""
    groups = {"a": "a' OR 1=1 --", "b": "b\\", "c": "c`${x}"}
    people = table | {"z": np.array([groups[z] for z in table["z"]], dtype=object)}
    policy = solve(
        aggregate(as_pandas(people), **asked(happiness="statistical_parity", policy=signal)),
        gap=0.02,
        random_state=3,
    )
    score = np.column_stack([table[f"p{k}"] for k in range(3)])
    expected = policy.decide(score, people["z"], people["id"]).tolist()
    roles = {"score": {k: f"p{k}" for k in range(3)}, "sensitive_features": "z", "key": "id"}
    found = policy.apply(lay(people), **roles)
    assert found.columns == [*people, "decision"]
    assert [row["decision"] for row in found.orderBy("id").collect()] == expected
    beside = policy.apply(lay(people), **roles, with_proba=True).orderBy("id").collect()
    probabilities = np.array([[row[f"proba_{k}"] for k in range(3)] for row in beside])
    assert (
        np.abs(probabilities - policy.probabilities(score, people["z"])[np.argsort(people["id"])]).max()
        <= 1e-12
    )
    names = {"p0": "p`0", "p1": "p.1", "z": "z'; --"}
    hostile = lay({names.get(name, name): column for name, column in people.items()})
    hostile.createOrReplaceTempView("people")
    roles = {"score": {0: "p`0", 1: "p.1", 2: "p2"}, "sensitive_features": "z'; --", "key": "id"}
    text = policy.to_sql("spark", **roles)
    rows = spark.sql(f"SELECT {text} AS decision FROM people ORDER BY id").collect()
    assert [row["decision"] for row in rows] == expected
    with pytest.raises(Exception, match=r"none of those that were fitted: [abc]"):
        policy.apply(
            lay(table), **roles | {"score": {k: f"p{k}" for k in range(3)}, "sensitive_features": "z"}
        ).collect()


@pytest.mark.parametrize("name", ["edges", "hostile groups", "several columns", "text", "truth", "predicted"])
def test_what_is_written_for_databricks_decides_the_same(lay, spark, name):
    """Databricks runs Spark: its text decides on everybody as Python does, and raises for those it may not."""
    found = find(name)
    lay(found.used()).createOrReplaceTempView("people")
    text = found.policy.to_sql("databricks", **found.roles)
    rows = spark.sql(f"SELECT {text} AS decision FROM people ORDER BY row").collect()
    assert [row["decision"] for row in rows] == found.expected
    lay(
        found.changed(17, **({"own": 7} if name == "predicted" else {"z": "q"})).used()
    ).createOrReplaceTempView("people")
    with pytest.raises(Exception, match=r"felicific: The group or the prediction is none of those"):
        spark.sql(f"SELECT {text} FROM people").collect()


def test_from_scores_to_an_audit(lay, table):
    """Aggregates, policy, a lazy column of decisions and its audit, all by Spark, are those in memory."""
    assert_whole_path(lay, table)


def test_individual_policies(lay, table):
    """Fitted by passes on the workers, applied and audited there, an individual policy is the one in memory."""
    assert_individual(lay, {name: column[:600] for name, column in table.items()})


@pytest.mark.parametrize("whole", [True, False])
def test_lottery_vectors(lay, whole):
    """Spark draws the numbers of the vectors to the last bit, for keys of text and whole numbers."""
    for salt in SALTS:
        policy, some, expected = lottery_case(salt, whole)
        rows = lay(some | {"id": some["z"]})
        found = policy.apply(rows, predicted="own", sensitive_features="z", key="key")
        assert as_lists(found, "z", "decision") == [expected]


OTHER_TYPES = {
    "number as text": ([1, 2], ["01", "02"]),
    "text as number": (["01", "02"], [1, 2]),
    "truth as text": ([False, True], ["f", "t"]),
}


@pytest.mark.parametrize("types", OTHER_TYPES)
def test_groups_of_another_type_are_refused(lay, spark, types):
    """Spark does not decide on people whom Python refuses, by ``apply`` or by the exported text."""
    fitted, other = OTHER_TYPES[types]
    table, place = people(300, classes=2), np.arange(300) % 2
    ask = asked(2, policy="label", happiness="statistical_parity")
    sums = aggregate(as_pandas(table | {"z": np.array(fitted)[place]}), **ask)
    policy = solve(sums, gap=0.0, random_state=7)
    roles = {"score": {0: "p0", 1: "p1"}, "sensitive_features": "z", "key": "id"}
    laid = lay(table | {"z": np.array(other)[place]})
    with pytest.raises(Exception, match="never fitted"):
        policy.apply(laid, **roles).collect()
    laid.createOrReplaceTempView("retyped")
    with pytest.raises(Exception, match=r"felicific: .*another type"):
        spark.sql(f"SELECT {policy.to_sql('spark', **roles)} FROM retyped").collect()


def test_a_group_column_that_is_missing_among_several(lay, spark):
    """NULL in one of several group columns is no empty text."""
    table = people(300, classes=2)
    table["sex"][17] = None
    ask = asked(2, policy="label", happiness="statistical_parity", sensitive_features=["z", "sex"])
    policy = solve(
        aggregate(as_pandas({n: c[18:] for n, c in table.items()}), **ask), gap=0.0, random_state=7
    )
    roles = {"score": {0: "p0", 1: "p1"}, "sensitive_features": ["z", "sex"], "key": "id"}
    with pytest.raises(Exception, match="roup is missing"):
        policy.apply(lay(table), **roles).collect()


def test_a_module_that_workers_lack_is_named(lay, table, refuses):
    """A function out of a module that the workers do not have says which, not how Spark came across it."""
    module = types.ModuleType("only_here")
    exec("def loan(decision, x):\n    return [decision * v for v in x['loan']]", module.__dict__)
    sys.modules["only_here"] = module
    module.loan.__module__ = "only_here"
    try:
        with (
            pytest.warns(BatchWarning, match="'loan'"),
            refuses(EngineError, "ModuleNotFoundError", "'only_here'", remedy="PYSPARK_PYTHON"),
        ):
            aggregate(lay(table), **asked(happiness=module.loan))
    finally:
        del sys.modules["only_here"]


def test_a_truncated_file_is_refused(spark, table, tmp_path, refuses):
    """A Parquet file that is cut after Spark has seen it gives an error and no aggregates."""
    path = write_parquet(table, tmp_path / "people.parquet")
    frame = spark.read.parquet(str(path))
    path.write_bytes(path.read_bytes()[:2000])
    with refuses(EngineError, "Spark", remedy="cut"):
        aggregate(frame, **asked(happiness=EVERYDAY["times"]))


def test_no_rows(lay, table, refuses):
    """An empty table is refused; empty partitions are nothing."""
    frame = lay(table)
    with refuses(DataError, "no rows"):
        aggregate(frame.where("hours > 200"), **asked(happiness=EVERYDAY["times"]))
    rows = table["id"] < 10_300
    some = {name: column[rows] for name, column in table.items()}
    ask = asked(happiness=EVERYDAY["times"])
    assert_same(aggregate(frame.where("id < 10300"), **ask), aggregate(as_pandas(some), **ask))


def test_ctrl_c_cancels_the_jobs(lay, spark, table, tmp_path, terminal, monkeypatch):
    """Ctrl-C ends the wait, no job runs on, and the table can be used again; until then the tasks were counted."""
    laid, folder = lay(table | {"marker": np.arange(1500.0)}), tmp_path / "begun"
    folder.mkdir()
    monkeypatch.setattr("felicific._tables.progress.INTERVAL", 0.1)
    with interrupting(folder), pytest.raises(KeyboardInterrupt), pytest.warns(BatchWarning):
        aggregate(laid, **asked(happiness=Happiness(Slow(folder, seconds=20.0, rows=True), name="slow")))
    assert any(
        re.fullmatch(r"felicific: Spark is summing, \d+ of \d+ tasks, \d+ s", line) for line in terminal.lines
    )
    assert terminal.screen == ""
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()
    ask = asked(happiness=EVERYDAY["times"])
    assert_same(aggregate(laid, **ask), aggregate(as_pandas(table), **ask))
