"""Dask: aggregates on a real cluster of worker processes, one of which dies; errors name the partition."""

import os
import warnings
from functools import partial

import numpy as np
import pytest
from functions import (
    BATCHWISE,
    EVERYDAY,
    METHODS,
    SALTS,
    Deadly,
    Slow,
    as_lists,
    as_pandas,
    asked,
    assert_individual,
    assert_same,
    assert_whole_path,
    interrupting,
    lottery_case,
    people,
    write_parquet,
)

from felicific import Happiness, aggregate, solve
from felicific.exceptions import BatchWarning, DataError, EngineError, GroupError, HappinessError

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.cluster

PARTS = 6


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes; a task may lose its worker once."""
    settings = {
        "distributed.scheduler.allowed-failures": 1,
        "distributed.worker.daemon": False,
        "distributed.comm.timeouts.connect": "60s",
        "distributed.admin.log-format": "%(message)s",
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as started,
        distributed.Client(started) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def table():
    return people(1800)


def lay(table, parts=PARTS):
    return dd.from_pandas(as_pandas(table), npartitions=parts, sort=False)


def test_everyday_functions_agree_with_pandas(cluster, table):
    """All everyday functions give the aggregates of the same rows in pandas, on worker processes, without a notice."""
    assert_same(aggregate(lay(table), **asked()), aggregate(as_pandas(table), **asked()))


def test_methods_of_pandas_columns(table):
    """What is found to be an expression gets arrays on partitions, with the methods of columns."""
    ask = asked(happiness=[Happiness(function, name=name) for name, function in METHODS.items()])
    with dask.config.set(scheduler="synchronous"):
        assert_same(aggregate(lay(table), **ask), aggregate(as_pandas(table), **ask))


@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_without_a_cluster(table, scheduler):
    """Dask's own schedulers do as well; classes and groups that only some partitions hold are found."""
    order = np.lexsort((table["y"], table["z"]))
    table = {name: column[order] for name, column in table.items()}
    ask = asked(score=["p0", "p1", "p2"], sample_weight="w")
    with dask.config.set(scheduler=scheduler):
        assert_same(aggregate(lay(table), **ask), aggregate(as_pandas(table), **ask))


def test_parquet_is_read_partition_by_partition(cluster, table, tmp_path):
    """A Parquet file with row groups gives the same, reading only what is used."""
    path = write_parquet(table, tmp_path / "people.parquet", 300)
    ask = asked(happiness=EVERYDAY["times"])
    assert_same(
        aggregate(dd.read_parquet(path, split_row_groups=True), **ask), aggregate(as_pandas(table), **ask)
    )


def test_other_functions_run_on_partitions_with_a_notice(cluster, table):
    """A function that is no expression of columns runs on the partitions all the same."""
    ask = asked(happiness=Happiness(BATCHWISE["own"], name="own"))
    with pytest.warns(BatchWarning, match="'own'"):
        found = aggregate(lay(table), **ask)
    assert_same(found, aggregate(as_pandas(table), **ask))


def test_a_worker_that_dies_once_changes_nothing(cluster, table, tmp_path):
    """A worker killed during the run costs time and nothing else."""
    table = table | {"marker": np.arange(1800.0)}
    found = aggregate(lay(table), **asked(happiness={"h": Deadly(tmp_path, 1)}))
    assert len(list(tmp_path.iterdir())) == 1
    assert_same(found, aggregate(as_pandas(table), **asked(happiness={"h": EVERYDAY["times"]})))


def test_a_worker_that_dies_again_is_an_error(cluster, table, tmp_path, refuses):
    """A partition that kills every worker is an error, not a partial result."""
    table = table | {"marker": np.arange(1800.0)}
    with refuses(EngineError, "workers died", remedy="memory"):
        aggregate(lay(table), **asked(happiness={"h": Deadly(tmp_path, 9)}))
    assert len(list(tmp_path.iterdir())) == 2


def test_missing_values_are_counted_over_all_partitions(cluster, table, refuses):
    """Null or NaN is counted over the whole table; its first rows are named with their partition."""
    loan = table["loan"].copy()
    loan[[3, 700, 1799]] = np.nan
    words = ["'loan'", "3 of 1800 rows", "rows 3 of partition 0, 100 of partition 2, 299 of partition 5"]
    with refuses(DataError, *words, remedy="Fill it in"):
        aggregate(lay(table | {"loan": loan}), **asked(happiness=EVERYDAY["times"]))


def test_impossible_values_name_row_and_partition(cluster, table, refuses):
    """What is wrong with one row names it and its partition."""
    score = table["p1"].copy()
    score[650] = 7.0
    with refuses(DataError, "probabilities of row 50", "partition 2"):
        aggregate(lay(table | {"p1": score}), **asked(happiness=EVERYDAY["times"]))
    income = table["income"].copy()
    income[650] = 0.0
    with refuses(HappinessError, "'h'", "row 50", "partition 2"):
        aggregate(lay(table | {"income": income}), **asked(happiness={"h": EVERYDAY["ratio"]}))


def test_an_unseen_group_in_one_partition_is_named(table, refuses):
    """A group outside of groups= in one partition only is an error that names both."""
    group = table["z"].copy()
    group[650] = "q"
    with refuses(GroupError, "'q'", "partition 2"):
        aggregate(lay(table | {"z": group}), **asked(happiness=EVERYDAY["times"], groups=["a", "b", "c"]))


def test_empty_partitions_are_nothing(table):
    """Partitions without rows, the first one too, change nothing; only empty ones are no table."""
    frame = lay(table)
    some = frame[(frame["hours"] > 95) & (frame["id"] > 10_700)]
    ask = asked(happiness=EVERYDAY["times"])
    rows = (table["hours"] > 95) & (table["id"] > 10_700)
    assert_same(
        aggregate(some, **ask),
        aggregate(as_pandas({name: column[rows] for name, column in table.items()}), **ask),
    )
    with pytest.raises(DataError, match="no rows"):
        aggregate(frame[frame["hours"] > 200], **ask)


def test_a_column_missing_in_one_partition_is_named(table, refuses):
    """A partition that lacks a column is an error that names both."""
    pieces = [as_pandas({name: column[i::3] for name, column in table.items()}) for i in range(3)]
    pieces[1] = pieces[1].drop(columns="loan")
    frame = dd.from_delayed(
        [dask.delayed(piece) for piece in pieces], meta=pieces[0].iloc[:0], verify_meta=False
    )
    with refuses(DataError, "Partition 1", "'loan'", remedy="same columns"):
        aggregate(frame, **asked(happiness=EVERYDAY["times"]))
    policy = solve(aggregate(as_pandas(table), **asked(happiness="statistical_parity")), gap=0.02)
    roles = {"score": {k: f"p{k}" for k in range(3)}, "sensitive_features": "z", "key": "id"}
    with refuses(DataError, "Partition 1", "'loan'", remedy="same columns"):
        policy.apply(frame, **roles).compute()
    pieces[1] = as_pandas({name: column[1::3] for name, column in reversed(table.items())}).assign(more=1)
    frame = dd.from_delayed(
        [dask.delayed(piece) for piece in pieces], meta=pieces[0].iloc[:0], verify_meta=False
    )
    found = policy.apply(frame, **roles).compute()
    assert list(found.columns) == [*table, "decision"]
    assert found["id"].tolist() == [i for k in range(3) for i in table["id"][k::3]]


@pytest.mark.parametrize(("name", "other"), [("sex", 7), ("loan", "ten"), ("y", True)])
def test_partitions_of_two_kinds_are_refused(table, name, other, refuses):
    """Groups 1 and '1' are two: where partitions differ in what a column holds, that is said."""
    pieces = [as_pandas(piece) for piece in (table, table | {name: np.full(len(table["y"]), other)})]
    delayed = [dask.delayed(piece) for piece in pieces]
    frame = dd.from_delayed(delayed, meta=pieces[0].iloc[:0], verify_meta=False)
    ask = asked(happiness=EVERYDAY["times"], sensitive_features="sex")
    with refuses(DataError, repr(name), "in the table", "in partition 1", remedy="same types"):
        aggregate(frame, **ask)


def test_a_file_that_lacks_a_column_is_refused(tmp_path, table, refuses):
    """Dask reads it when it is too late to say which file it is."""
    as_pandas(table).to_parquet(tmp_path / "a.parquet")
    as_pandas(table).drop(columns="loan").to_parquet(tmp_path / "b.parquet")
    with refuses(EngineError, "'loan'", remedy="another type than elsewhere"):
        aggregate(dd.read_parquet(tmp_path), **asked(happiness=EVERYDAY["times"]))


def test_a_column_that_comes_twice_is_refused(table, refuses):
    """Pandas allows one name twice; here it is told."""
    frame = as_pandas(table | {"LOAN": table["loan"]}).rename(columns={"LOAN": "loan"})
    with refuses(DataError, "column 'loan' more than once", remedy="Rename"):
        aggregate(dd.from_pandas(frame, npartitions=2), **asked())


def test_decisions_are_a_lazy_column(cluster, table):
    """A policy's decisions, draws included, are those of Python; an unknown group raises when they are computed."""
    policy = solve(
        aggregate(as_pandas(table), **asked(happiness="statistical_parity")), gap=0.02, random_state=3
    )
    score = np.column_stack([table[f"p{k}"] for k in range(3)])
    roles = {"score": {k: f"p{k}" for k in range(3)}, "sensitive_features": "z", "key": "id"}
    found = policy.apply(lay(table), **roles)
    assert isinstance(found, dd.DataFrame)
    assert found["decision"].dtype == np.int64
    assert found["decision"].compute().tolist() == policy.decide(score, table["z"], table["id"]).tolist()
    group = table["z"].copy()
    group[650] = "q"
    with pytest.raises(GroupError, match=r"'q'.*row 50.*in partition 2"):
        policy.apply(lay(table | {"z": group}), **roles).compute()


def test_from_scores_to_an_audit(cluster, table):
    """Aggregates, policy, a lazy column of decisions and its audit, on worker processes, are those in memory."""
    assert_whole_path(lay, table)


def test_individual_policies(cluster, table):
    """Fitted by passes on the workers, applied and audited there, an individual policy is the one in memory."""
    assert_individual(partial(lay, parts=2), {name: column[:600] for name, column in table.items()})


@pytest.mark.parametrize("whole", [True, False])
def test_lottery_vectors(cluster, whole):
    """The workers draw the numbers of the vectors to the last bit, for keys of text and whole numbers."""
    for salt in SALTS:
        policy, some, expected = lottery_case(salt, whole)
        found = policy.apply(lay(some), predicted="own", sensitive_features="z", key="key")
        assert as_lists(found, "z", "decision") == [expected]


def test_a_truncated_file_is_refused(table, tmp_path, refuses):
    """A Parquet file that is damaged after Dask has seen it gives an error and no aggregates."""
    path = write_parquet(table, tmp_path / "people.parquet", 300)
    frame = dd.read_parquet(path, split_row_groups=True)
    path.write_bytes(path.read_bytes()[:2000])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with refuses(EngineError, "Dask", remedy="cut"):
            aggregate(frame, **asked(happiness=EVERYDAY["times"]))


# ---------------------------------------------------------------------------------------------------------
# Progress, and Ctrl-C


@pytest.mark.parametrize("scheduler", ["threads", "cluster"])
def test_the_terminal_shows_partitions(cluster, table, terminal, monkeypatch, scheduler):
    """Those who monitor see how many partitions are done; the result is the same."""
    monkeypatch.setattr("felicific._tables.progress.INTERVAL", 0.001)
    ask = asked(happiness=EVERYDAY["times"])
    with dask.config.set({} if scheduler == "cluster" else {"scheduler": scheduler}):
        found = aggregate(lay(table), **ask)
    assert any(f"of {PARTS} partitions summed" in line for line in terminal.lines)
    assert terminal.screen == ""
    assert_same(found, aggregate(as_pandas(table), **ask))


@pytest.mark.parametrize("scheduler", ["threads", "cluster"])
@pytest.mark.parametrize("monitored", [False, True])
def test_ctrl_c_cancels_what_has_not_begun(cluster, table, tmp_path, request, scheduler, monitored):
    """Ctrl-C ends the wait at once; partitions that no worker has begun are not begun; the table can be used again."""
    if monitored:
        request.getfixturevalue("terminal")
        request.getfixturevalue("monkeypatch").setattr("felicific._tables.progress.INTERVAL", 0.1)
    table = table | {"marker": np.arange(1800.0)}
    slow = Slow(tmp_path, seconds=0.4)
    settings = {} if scheduler == "cluster" else {"scheduler": scheduler, "num_workers": 2}
    with dask.config.set(settings), interrupting(tmp_path), pytest.raises(KeyboardInterrupt):
        aggregate(lay(table), **asked(happiness={"h": slow}))
    with dask.config.set(settings):
        found = aggregate(lay(table), **asked(happiness={"h": EVERYDAY["times"]}))
    assert_same(found, aggregate(as_pandas(table), **asked(happiness={"h": EVERYDAY["times"]})))
    assert not any(cluster.processing().values())
    assert 0 < len(os.listdir(tmp_path)) < PARTS
