"""Decisions as a column of any table, and as SQL: the very decisions of Python, draws included."""

import subprocess
import sys
from dataclasses import replace

import duckdb
import numpy as np
import pytest
from functions import (
    SALTS,
    VECTORS,
    as_arrow,
    as_duckdb,
    as_lazy,
    as_pandas,
    asked,
    lottery_case,
    people,
    write_parquet,
)

from felicific import Policy, Score, aggregate, frontier, solve
from felicific._people.people import People
from felicific._people.roles import Roles
from felicific._policy.fit_individual import fit_individual
from felicific._policy.lottery import uniforms
from felicific._problem.problem import Problem
from felicific._program.signals import Individual, Label, SoftLabel
from felicific.exceptions import AggregatesError, DataError


def collected(table):
    """Columns of a lazy or eager table as lists, sorted by the person's identifier."""
    if hasattr(table, "collect"):
        table = table.collect()
    if hasattr(table, "to_arrow_table"):
        table = table.to_arrow_table()
    if hasattr(table, "compute"):
        table = table.compute()
    columns = table if isinstance(table, dict) else {name: table[name] for name in _names(table)}
    found = {name: np.array(list(_listed(column)), dtype=object) for name, column in columns.items()}
    order = np.argsort(found["id"].astype(np.int64))
    return {name: column[order].tolist() for name, column in found.items()}


def _names(table):
    return getattr(table, "column_names", None) or list(table.columns)


def _listed(column):
    return (
        column.to_pylist()
        if hasattr(column, "to_pylist")
        else column.tolist()
        if hasattr(column, "tolist")
        else column
    )


TABLES = {
    "pandas": lambda table, folder: as_pandas(table),
    "polars": lambda table, folder: as_lazy(table).collect(),
    "arrow": lambda table, folder: as_arrow(table),
    "dict": lambda table, folder: dict(table),
    "polars lazy": lambda table, folder: as_lazy(table),
    "duckdb": lambda table, folder: as_duckdb(table),
    "path": lambda table, folder: str(write_parquet(table, folder / "people.parquet")),
    "dataset": lambda table, folder: __import__("pyarrow.dataset").dataset.dataset(
        write_parquet(table, folder / "people.parquet")
    ),
}


@pytest.fixture(params=TABLES)
def lay(request, tmp_path):
    return lambda table: TABLES[request.param](table, tmp_path)


def solved(table, policy="score", classes=3, gap=0.02, sees_group=True, **changes):
    """A policy with lotteries."""
    ask = asked(classes, policy=policy, happiness="statistical_parity", **changes)
    return solve(aggregate(as_pandas(table), **ask), gap=gap, sees_group=sees_group, random_state=7)


ROLES = {"score": {0: "p0", 1: "p1", 2: "p2"}, "sensitive_features": "z", "key": "id"}


@pytest.mark.parametrize("signal", ["score", "label", "soft-label", Score(bins=40, monotone=False)])
@pytest.mark.parametrize("sees_group", [True, False])
def test_the_column_is_what_python_decides(lay, signal, sees_group):
    """Every table and engine gets the very decisions of ``decide``, lotteries included; other columns stay."""
    table = people(2000)
    policy = solved(table, signal, sees_group=sees_group, gap=0.02 if sees_group else 0.2)
    score = np.column_stack([table[f"p{k}"] for k in range(3)])
    expected = policy.decide(score, table["z"], table["id"])
    assert len(set(expected.tolist())) == 3
    found = collected(policy.apply(lay(table), **ROLES))
    assert found["decision"] == expected.tolist()
    assert found["loan"] == table["loan"].tolist()
    assert set(found) == {*table, "decision"}


@pytest.mark.parametrize("classes", ["text", "truth"])
def test_two_classes_of_any_type(lay, classes):
    """Thresholds and lotteries of a binary policy, with text keys and classes that are no numbers."""
    table = people(2000, classes=2)
    names = ["it's no", 'y"es\\'] if classes == "text" else [False, True]
    table["y"] = np.array(names, dtype=object if classes == "text" else bool)[table["y"]]
    table["p1"][:50] = np.arange(50) / 4096
    table["p0"] = 1 - table["p1"]
    score = dict(zip(names, ["p0", "p1"], strict=True))
    policy = solved(table, Score(boundary=0.4), gap=0.0, score=score, sensitive_features=["z", "sex"])
    table["who"] = np.array([f"person {i}; 'x' é" for i in table["id"]], dtype=object)
    group = np.array([f"{z} & {sex}" for z, sex in zip(table["z"], table["sex"], strict=True)])
    expected = policy.decide(np.column_stack([table["p0"], table["p1"]]), group, table["who"])
    roles = {"score": score, "sensitive_features": ["z", "sex"], "key": "who"}
    assert collected(policy.apply(lay(table), **roles))["decision"] == expected.tolist()


@pytest.mark.parametrize("rounded", ["score", "soft-label"])
def test_rounded_policies_need_no_key(lay, rounded):
    """Without a lottery nobody needs a key."""
    from dataclasses import replace

    table = people(500)
    policy = replace(solved(table, rounded, gap=0.0), randomize=False)
    score = np.column_stack([table[f"p{k}"] for k in range(3)])
    expected = policy.classes[policy.probabilities(score, table["z"]).argmax(axis=1)]
    roles = {name: value for name, value in ROLES.items() if name != "key"}
    assert collected(policy.apply(lay(table), **roles, column="d"))["d"] == expected.tolist()


def test_a_policy_without_a_lottery_needs_no_key(lay):
    """It may randomize and does not: what is decided is the same with a key and without."""
    table = people(500)
    policy = solved(table, gap=1.0)
    assert policy.randomize
    assert not policy.is_randomized
    roles = {name: value for name, value in ROLES.items() if name != "key"}
    expected = collected(policy.apply(lay(table), **ROLES))["decision"]
    assert collected(policy.apply(lay(table), **roles))["decision"] == expected


def test_predicted_labels_are_enough_for_a_label_policy(lay):
    """A policy of labels reads the model's decisions."""
    table = people(800)
    table["own"] = np.column_stack([table[f"p{k}"] for k in range(3)]).argmax(axis=1)
    policy = solved(table, Label(), gap=0.0, score=None, predicted="own")
    expected = policy.decide(table["own"], table["z"], table["id"])
    found = collected(policy.apply(lay(table), predicted="own", sensitive_features="z", key="id"))
    assert found["decision"] == expected.tolist()


def individual(table):
    functions = {
        "funding": lambda decision, x: decision * x["loan"] / 1e4,
        "school": lambda decision, x: decision * (x["school"] == "Master"),
    }
    score = np.column_stack([table[f"p{k}"] for k in range(3)])
    problem = Problem.of(np.arange(3), functions, gap=0.1)
    x = as_pandas({name: table[name] for name in ("loan", "school")})
    rows = People.of(x, problem, group=table["z"], y=table["y"], score=score)
    return fit_individual(problem, rows, Individual(), "0" * 32)[0]


def test_individual_policies_decide_batches(lay):
    """A policy that sees all of x decides on every engine too, and has no SQL."""
    table = people(700)
    policy = individual(table)
    score = np.column_stack([table[f"p{k}"] for k in range(3)])
    expected = policy.decide(score, table["z"], table["id"], as_pandas(table))
    found = policy.apply(lay(table), **ROLES)
    for _ in range(2):  # a lazy table may be read again
        assert collected(found)["decision"] == expected.tolist()
    with pytest.raises(DataError, match="no SQL"):
        policy.to_sql("duckdb", **ROLES)


# ---------------------------------------------------------------------------------------------------------
# SQL and the lottery


def test_lottery_vectors():
    """The lottery's numbers are those of the file of test vectors, in Python."""
    for vector in VECTORS["uniforms"]:
        assert uniforms(vector["salt"], [vector["key"]])[0].hex() == vector["u"]


@pytest.mark.parametrize("salt", SALTS)
@pytest.mark.parametrize("whole", [True, False])
def test_every_engine_draws_the_lottery_vectors(lay, salt, whole):
    """Every table and engine draws the numbers of the vectors to the last bit, for keys of text and whole numbers."""
    policy, table, expected = lottery_case(salt, whole)
    table |= {"id": table["z"]}
    found = policy.apply(lay(table), predicted="own", sensitive_features="z", key="key")
    assert collected(found)["decision"] == expected


def test_the_test_of_the_lottery_sees_another_draw():
    """A lottery with another salt does not pass for these vectors."""
    from dataclasses import replace

    policy, table, expected = lottery_case(SALTS[0], False)
    other = replace(policy, salt=SALTS[1])
    assert policy.decide(table["own"], table["z"], table["key"]).tolist() == expected
    assert other.decide(table["own"], table["z"], table["key"]).tolist() != expected


HOSTILE = {
    "p0": 'p"0',
    "p1": 'p1", (SELECT 1)) --',
    "p2": "p.2",
    "z": "z'; DROP TABLE people; --",
    "id": 'i"d\n',
}


@pytest.mark.parametrize("signal", ["score", "soft-label"])
def test_the_exported_expression_quotes_hostile_names(signal):
    """Names and groups full of quotes are data in the exported text, never SQL."""
    table = people(900)
    groups = {"a": "a' OR 1=1 --", "b": 'b"; DROP TABLE people', "c": "c\\"}
    table["z"] = np.array([groups[z] for z in table["z"]], dtype=object)
    policy = solved(table, signal, gap=0.0)
    score = np.column_stack([table[f"p{k}"] for k in range(3)])
    expected = policy.decide(score, table["z"], table["id"])
    hostile = {HOSTILE.get(name, name): column for name, column in table.items()}
    text = policy.to_sql(
        "duckdb",
        score={k: HOSTILE[f"p{k}"] for k in range(3)},
        sensitive_features=HOSTILE["z"],
        key=HOSTILE["id"],
    )
    connection = duckdb.connect()
    connection.from_arrow(as_arrow(hostile)).create("people")
    found = connection.sql(f'SELECT {text} AS decision FROM people ORDER BY "i""d\n"').fetchall()
    assert [row[0] for row in found] == expected.tolist()
    assert connection.sql("SELECT count(*) FROM people").fetchall() == [(900,)]


def test_the_expression_reads_as_thresholds():
    """With two classes the text names groups, thresholds and decisions, and is short."""
    text = solved(people(2000, classes=2), classes=2, gap=0.0).to_sql(
        score={0: "p0", 1: "p1"}, sensitive_features="z", key="id"
    )
    assert text.startswith("CASE\n  WHEN ")
    assert text.endswith("END")
    assert "\"z\" = 'a'" in text
    assert len(text.splitlines()) < 18


BAD_ROWS = {
    "group": ("z", "q", "group"),
    "null group": ("z", None, "group"),
    "probability": ("p1", 3.0, "probabilities"),
    "negative": ("p1", -0.5, "probabilities"),
    "NaN": ("p1", np.nan, "probabilities"),
}


@pytest.mark.parametrize("bad", BAD_ROWS)
def test_nothing_is_decided_on_bad_rows(lay, bad):
    """An unknown or missing group and impossible probabilities raise when the table is read, on every engine."""
    name, value, words = BAD_ROWS[bad]
    table = people(600)
    policy = solved(table, gap=0.0)
    column = table[name].astype(object if value is None or value == "q" else float)
    column[17] = value
    with pytest.raises(Exception, match=words):
        collected(policy.apply(lay(table | {name: column}), **ROLES))


REMEDIES = {"group": "Fit on data", "null group": "", "probability": "predict_proba", "NaN": "predict_proba"}


@pytest.mark.parametrize("bad", REMEDIES)
@pytest.mark.parametrize("engine", ["duckdb", "dataset", "polars lazy"])
def test_what_is_wrong_with_a_row_names_the_person(engine, bad, tmp_path):
    """What an engine raises says whom, by key or by row of a batch, and what to do."""
    name, value, words = BAD_ROWS[bad]
    table = people(600)
    policy = solved(table, gap=0.0)
    column = table[name].astype(object if value is None or value == "q" else float)
    column[17] = value
    where = r"\(key 10017\)" if engine != "polars lazy" else r"row 17.*within a batch of \d+"
    with pytest.raises(Exception, match=f"(?s){words}.*{where}.*{REMEDIES[bad]}"):
        collected(policy.apply(TABLES[engine](table | {name: column}, tmp_path), **ROLES))


@pytest.mark.parametrize("engine", ["duckdb", "path", "dataset"])
def test_names_that_differ_by_capital_letters(engine, tmp_path, refuses):
    """SQL does not tell A from a: a column that cannot be added, or looked at, is refused by name."""
    table = people(300)
    policy = solved(table, gap=0.0)
    with refuses(DataError, "'loan'", "already"):
        policy.apply(TABLES[engine](table, tmp_path), **ROLES, column="LOAN")
    with refuses(DataError, "'Z'"):
        roles = ROLES | {"sensitive_features": "Z"}
        policy.apply(TABLES[engine](table | {"Z": table["z"]}, tmp_path), **roles)


@pytest.mark.parametrize("engine", ["duckdb", "path", "polars lazy"])
def test_the_new_column_may_have_any_name(engine, tmp_path):
    """The name of the column of decisions is no SQL either."""
    table = people(300)
    policy, name = solved(table, gap=0.0), "d\"; DROP TABLE 'x'; --\n`"
    found = collected(policy.apply(TABLES[engine](table, tmp_path), **ROLES, column=name))
    score = np.column_stack([table[f"p{k}"] for k in range(3)])
    assert found[name] == policy.decide(score, table["z"], table["id"]).tolist()


def test_a_missing_key_raises(tmp_path):
    """A person without a key gets no decision by default, on engines whose integers can be null."""
    table = people(600)
    policy = solved(table, gap=0.0)
    key = table["id"].astype(object)
    key[17] = None
    for name in ("duckdb", "polars lazy", "path"):
        with pytest.raises(Exception, match="key"):
            collected(policy.apply(TABLES[name](table | {"id": key}, tmp_path), **ROLES))


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"score": {0: "p0", 1: "p1"}}, DataError, ["[0, 1]", "[0, 1, 2]"]),
        ({"score": ["p0", "p1"]}, DataError, ["p0"]),
        ({"score": {0: "p0", 1: "p1", 2: "nope"}}, DataError, ["'nope'"]),
        ({"sensitive_features": "zz"}, DataError, ["'zz'"]),
        ({"key": "who"}, DataError, ["'who'"]),
        ({"key": "loan"}, DataError, ["string"]),
        ({"column": "loan"}, DataError, ["'loan'", "already"]),
        ({"key": None}, DataError, ["lottery", "no key"]),
        ({"key": np.arange(3)}, DataError, ["names no column"]),
    ],
)
def test_what_cannot_be_applied(lay, changes, error, words, refuses):
    """Names that do not fit the policy or the table are clear errors, before any row is read where that is possible."""
    table = people(600)
    policy = solved(table, SoftLabel(), gap=0.0)
    roles = ROLES | changes
    with refuses(error, *words):
        collected(policy.apply(lay(table), **roles))


def test_dialects(refuses):
    """A dialect that does not exist is refused; Spark quotes with backticks and writes hostile groups as bytes."""
    table = people(600)
    table["z"] = np.array([z if z != "a" else "a'\\" for z in table["z"]], dtype=object)
    policy = solved(table, gap=0.0)
    with refuses(DataError, "'oracle'", remedy="duckdb"):
        policy.to_sql("oracle", **ROLES)
    with refuses(DataError, "${x}", remedy="Rename"):
        policy.to_sql("spark", **ROLES | {"key": "a${x}"})
    text = policy.to_sql("spark", **ROLES | {"sensitive_features": "a`b"})
    assert "`a``b`" in text
    assert f"decode(unhex('{bytes(chr(97) + chr(39) + chr(92), 'utf-8').hex()}'), 'UTF-8')" in text


def test_nobody_names_what_a_policy_remembers(lay, refuses):
    """Columns that were named when it was fitted need no name; one that the table lacks is named with its argument."""
    table = people(600)
    policy = Policy.from_json(solved(table, gap=0.0, key="id").to_json())
    named, alone = policy.apply(lay(table), **ROLES), policy.apply(lay(table))
    assert np.array_equal(*(collected(made)["decision"] for made in (named, alone)))
    assert policy.to_sql() == policy.to_sql(**ROLES)
    with refuses(DataError, "no column 'p1'", "score="):
        policy.apply(lay({name: column for name, column in table.items() if name != "p1"}))
    with refuses(DataError, "The policy sees", remedy="score="):
        replace(policy, roles=Roles()).apply(lay(table), sensitive_features="z", key="id")


@pytest.mark.parametrize("given", [as_lazy(people(10)), "people.parquet", 0, None])
def test_only_aggregates_are_solved(given, refuses):
    """A table where aggregates belong is an error that says how to get them; so is the sum of no aggregates."""
    for ask in (solve, frontier):
        with refuses(AggregatesError, type(given).__name__, remedy="aggregate(table"):
            ask(given)


@pytest.mark.parametrize("given", [None, 3.0, as_lazy(people(10)).group_by("z")])
def test_what_is_no_table(given, refuses):
    """What has no rows is an error that says what a table is."""
    with refuses(DataError, "no table", remedy="dataframe"):
        aggregate(given, **asked())


# ---------------------------------------------------------------------------------------------------------
# Types that a database would cast


OTHER_TYPES = {
    "number as text": ([1, 2, 3], ["01", "02", "03"]),
    "text as number": (["01", "02", "03"], [1, 2, 3]),
    "truth as text": ([False, True, True], ["f", "t", "t"]),
    "text as truth": (["f", "t", "t"], [False, True, True]),
    "large as float": ([2**53 + 1, 1, 2], [2.0**53, 1.0, 2.0]),
    "time as text": (
        ["2020-01-01", "2020-01-02", "2020-01-03"],
        np.array(["2020-01-01", "2020-01-02"], "M8[D]")[[0, 1, 1]],
    ),
}
EQUAL_TYPES = {
    "number as float": ([1, 2, 3], [1.0, 2.0, 3.0]),
    "truth as number": ([False, True], [0, 1]),
    "number as truth": ([0, 1], [False, True]),
    "infinite": ([1.0, np.inf], [1.0, np.inf]),
}


def retyped(fitted, other, n=600):
    """A policy of groups, and the same people with groups of another type."""
    table = people(n)
    place = np.arange(n) % len(fitted)
    policy = solved(table | {"z": np.array(fitted)[place]}, gap=0.0)
    return policy, table | {"z": np.array(other)[place]}


@pytest.mark.parametrize("types", OTHER_TYPES)
def test_groups_of_another_type_are_refused(lay, types):
    """No engine decides on people whom Python refuses, because it casts 01 to 1 or t to True."""
    policy, table = retyped(*OTHER_TYPES[types])
    with pytest.raises(Exception, match="never fitted"):
        collected(policy.apply(lay(table), **ROLES))


@pytest.mark.parametrize("types", EQUAL_TYPES)
def test_groups_that_python_takes_for_equal_are_decided(lay, types):
    """Numbers that are equal are the same group, on every engine, as True is 1 in Python."""
    fitted, other = EQUAL_TYPES[types]
    policy, table = retyped(fitted, other)
    same = np.array(fitted)[np.arange(600) % len(fitted)]
    score = np.column_stack([table[f"p{k}"] for k in range(3)])
    found = collected(policy.apply(lay(table), **ROLES))
    assert found["decision"] == policy.decide(score, same, table["id"]).tolist()


def decide_in_sql(policy, table, **roles):
    """Decisions of the exported text about a table in DuckDB."""
    connection = duckdb.connect()
    connection.register("people", as_arrow(table))
    text = policy.to_sql("duckdb", **ROLES | roles)
    return [row[0] for row in connection.sql(f"SELECT {text} FROM people ORDER BY id").fetchall()]


@pytest.mark.parametrize("types", OTHER_TYPES)
def test_exported_sql_refuses_groups_of_another_type(types):
    """The text itself looks at the type of the column, whatever database table it is run on."""
    policy, table = retyped(*OTHER_TYPES[types])
    with pytest.raises(duckdb.Error, match=r"(?s)felicific: .*group.*another type.*Cast"):
        decide_in_sql(policy, table)


@pytest.mark.parametrize("missing", ["z", "sex"])
@pytest.mark.parametrize("exported", [True, False])
def test_a_group_column_that_is_missing_among_several(lay, missing, exported):
    """NULL in one of several group columns is no empty text: such a person gets no decision."""
    table = people(600)
    table["z"] = np.where(table["z"] == "a", "", table["z"]).astype(object)
    table["sex"] = np.where(table["sex"] == "F", "", table["sex"]).astype(object)
    policy = solved(table, gap=0.0, sensitive_features=["z", "sex"])
    assert " & " in policy.groups
    table[missing][17] = None
    roles = {"sensitive_features": ["z", "sex"]}
    with pytest.raises(Exception, match=r"roup is missing"):
        _ = (
            decide_in_sql(policy, table, **roles)
            if exported
            else collected(policy.apply(lay(table), **ROLES | roles))
        )


@pytest.mark.parametrize("column", ["p1", "id"])
def test_exported_sql_refuses_scores_and_keys_of_another_type(column):
    """Probabilities as text and keys that are floats are refused in a database, as they are in Python."""
    table = people(600)
    policy = solved(table, gap=0.0)
    other = table["p1"].astype(str) if column == "p1" else table["id"].astype(float)
    with pytest.raises(duckdb.Error, match=r"felicific: .*another type"):
        decide_in_sql(policy, table | {column: other})


def test_predictions_of_another_type_are_refused(lay):
    """The text 01 is not the label 1."""
    table = people(600)
    policy = solved(table, "label", gap=0.0)
    roles = {"predicted": "own", "sensitive_features": "z", "key": "id"}
    own = table["y"]
    found = collected(policy.apply(lay(table | {"own": own}), **roles))
    assert found["decision"] == policy.decide(own, table["z"], table["id"]).tolist()
    text = np.array([f"0{label}" for label in own], dtype=object)
    with pytest.raises(Exception, match=r"prediction|classes"):
        collected(policy.apply(lay(table | {"own": text}), **roles))


@pytest.mark.parametrize("collation", ["NOCASE", "NOACCENT", "NFC"])
def test_text_that_is_compared_by_other_rules_is_refused(collation):
    """A column by whose collation A is a, or E is its accented letter, is not decided on."""
    table = people(300)
    policy = solved(table, gap=0.0)
    connection = duckdb.connect()
    connection.register("plain", as_arrow(table))
    folded = connection.sql(f"SELECT * REPLACE (z COLLATE {collation} AS z) FROM plain")
    with pytest.raises(duckdb.Error, match=r"felicific: .*another type"):
        collected(policy.apply(folded, **ROLES))


def test_columns_that_are_computed_ahead_are_nobody_elses():
    """A relation may have columns of any name: what DuckDB computes for itself neither shows nor takes one of them."""
    table = people(600) | {f"share {k}": np.arange(600) + k for k in range(3)} | {"SHARE 4": np.arange(600)}
    policy = solved(people(600), gap=0.0)
    score = np.column_stack([table[f"p{k}"] for k in range(3)])
    found = collected(policy.apply(as_duckdb(table), **ROLES, with_proba=True))
    assert set(found) == {*table, "decision", "proba_0", "proba_1", "proba_2"}
    assert found["share 1"] == table["share 1"].tolist()
    assert found["decision"] == policy.decide(score, table["z"], table["id"]).tolist()


LEFT_AT_EXIT = """
import duckdb
from felicific import aggregate, solve
people = duckdb.sql("SELECT range id, range % 2 y, range / 90.0 p, chr((97 + range % 3)::INT) g FROM range(90)")
asked = {"score": "p", "sensitive_features": "g"}
policy = solve(aggregate(people, y="y", happiness="decision", **asked), gap=0.9)
if not SQL:
    type(policy).sql_writer = lambda policy: None
decided = policy.apply(people, key="id", **asked)
assert len(decided.limit(3).fetchall()) == 3
"""


@pytest.mark.parametrize("sql", [True, False])
def test_duckdb_says_nothing_of_leaks_when_python_ends(sql):
    """A relation that is left when Python ends, by SQL or by a stream of ours, is let go of in silence."""
    text = LEFT_AT_EXIT.replace("SQL", str(sql))
    ended = subprocess.run([sys.executable, "-W", "ignore", "-c", text], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
