"""PostgreSQL decides what Python decides: a server runs the text that ``to_sql`` writes.

Skipped without the address of a server in FELICIFIC_POSTGRES; ``.ci/postgres`` starts one and runs this file.
"""

import os
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from amount_policies import CASES as AMOUNTS
from amount_policies import find_amounts, naive_amounts
from functions import SALTS, VECTORS, as_pandas, lottery_case
from warehouses import CASES, HOSTILE, case, find

from felicific import Score
from felicific._tables.dialect import DIALECTS

ADDRESS = os.environ.get("FELICIFIC_POSTGRES")

if ADDRESS is None:
    pytest.skip("no server: FELICIFIC_POSTGRES names none; .ci/postgres starts one", allow_module_level=True)

import psycopg  # noqa: E402  # with an address it must be there
from psycopg import sql  # noqa: E402

POSTGRES = DIALECTS["postgres"]

TYPES = {bool: "boolean", int: "bigint", float: "double precision", str: "text"}


@pytest.fixture
def server():
    """A connection whose temporary tables are its own."""
    with psycopg.connect(ADDRESS, autocommit=True) as connection:
        yield connection


def lay(server, columns, name="people", **types):
    """A temporary table of these columns, of the types of their values unless said."""
    lists = {column: np.asarray(values).tolist() for column, values in columns.items()}
    kinds = {
        column: types.get(column) or TYPES[type(next(v for v in values if v is not None))]
        for column, values in lists.items()
    }
    declared = ", ".join(f"{POSTGRES.quote_name(column)} {kind}" for column, kind in kinds.items())
    server.execute(f"DROP TABLE IF EXISTS {name}; CREATE TEMP TABLE {name} ({declared})")
    with server.cursor().copy(f"COPY {name} FROM STDIN") as copy:
        for row in zip(*lists.values(), strict=True):
            copy.write_row(row)


def decide(server, found, **types):
    """The decisions about the people of a case, in the order of its rows."""
    lay(server, found.used(), **types)
    text = found.policy.to_sql("postgres", **found.roles)
    return [row[0] for row in server.execute(f"SELECT {text} FROM people ORDER BY row").fetchall()]


# ---------------------------------------------------------------------------------------------------------
# The same decisions


@pytest.mark.parametrize("whole", [True, False])
def test_the_lottery_draws_the_vectors(server, whole):
    """To the last bit, for keys of text and whole numbers; also by a policy whose chances are those very numbers."""
    for salt in SALTS:
        drawn = {v["key"]: v["u"] for v in VECTORS["uniforms"] if v["salt"] == salt}
        keys = [int(key) for key in drawn if key.lstrip("-").isdigit()] if whole else list(drawn)
        lay(server, {"key": np.array(keys, dtype=object), "row": np.arange(len(keys))})
        found = server.execute(f"SELECT {POSTGRES.uniform(salt, 'key')} FROM people ORDER BY row").fetchall()
        assert [u.hex() for (u,) in found] == [drawn[str(key)] for key in keys]
        policy, some, expected = lottery_case(salt, whole)
        lay(server, some)
        text = policy.to_sql("postgres", predicted="own", sensitive_features="z", key="key")
        assert [d for (d,) in server.execute(f"SELECT {text} FROM people ORDER BY z").fetchall()] == expected


@pytest.mark.parametrize("name", CASES)
def test_every_person_is_decided_on_as_in_python(server, name):
    """Thousands of people, with ties, scores on edges, lotteries and hostile names; and chances, to the last bit."""
    found = find(name)
    assert decide(server, found) == found.expected
    probabilities = found.probabilities
    listed = found.policy.to_sql("postgres", **found.roles, with_proba=True)
    with server.execute(f"SELECT {listed} FROM people ORDER BY row") as rows:
        names = [column.name for column in rows.description]
        columns = dict(zip(names, zip(*rows.fetchall(), strict=True), strict=True))
    assert list(columns) == ["decision", *probabilities]
    assert list(columns["decision"]) == found.expected
    for column, values in probabilities.items():
        assert {type(value) for value in columns[column]} == {float}
        assert np.array_equal(columns[column], values)


@pytest.mark.parametrize("name", AMOUNTS)
def test_everybody_gets_the_amount_of_python(server, name):
    """At knots and beside them, by lottery, for groups of every type: to the last bit."""
    found = find_amounts(name)
    assert decide(server, found) == naive_amounts(found)


@pytest.mark.parametrize("bad", [None, float("nan"), float("inf"), -float("inf")])
def test_predictions_that_are_none_raise(server, bad):
    """With the value, the key and a remedy."""
    found = find_amounts("randomized").changed(3, f=bad)
    with pytest.raises(psycopg.Error, match=r"felicific: The prediction is missing.*\(key 10003\)"):
        decide(server, found, f="double precision")


@pytest.mark.parametrize("kind", ["real", "numeric", "numeric(9, 7)", "double precision"])
def test_scores_of_any_type_of_numbers(server, kind):
    """A real column holds what a 32-bit one holds in Python; a decimal is the nearest float."""
    found = case(classes=2, roles={"score": "p1"}, policy=Score(boundary=0.4))
    scores = np.round(found.table["p1"], 7)
    scores[:2000:5] = np.round(scores[:2000:5] * 4096) / 4096 if kind != "numeric(9, 7)" else scores[:2000:5]
    if kind == "real":
        scores = scores.astype(np.float32)
    expected = replace(found, table=found.table | {"p1": scores}).expected
    written = [Decimal(repr(float(score))) for score in scores] if "numeric" in kind else scores
    stored = replace(found, table=found.table | {"p1": np.array(written, dtype=object)})
    assert decide(server, stored, p1=kind) == expected


@pytest.mark.parametrize("kind", ["smallint", "integer", "real", "numeric", "double precision"])
def test_groups_of_any_type_of_numbers(server, kind):
    """Numbers that are equal are the same group."""
    found = find("whole groups")
    assert decide(server, found, z=kind) == found.expected


@pytest.mark.parametrize("kind", ["varchar", "varchar(20)", 'text COLLATE "en_US"', 'text COLLATE "C"'])
def test_text_of_any_collation(server, kind):
    """Groups are compared letter by letter, also where a column has another order of its own."""
    about = "provider = icu, locale = 'en-US-u-ks-level1', deterministic = false"
    server.execute(f'CREATE COLLATION IF NOT EXISTS "en_US" ({about})')
    found = find("score of three")
    assert decide(server, found, z=kind) == found.expected
    upper = found.changed(17, z="A")
    with pytest.raises(psycopg.Error, match=r"felicific: The group or the prediction is none of .*: A "):
        decide(server, upper, z=kind)


def test_hostile_names_of_columns(server):
    """Names full of quotes, escapes, comments and other scripts are names, and the table is there afterwards."""
    for name in HOSTILE:
        table = find("score of two").table
        columns = {f"p{name}": table["p1"], f"z{name}": table["z"], f"id{name}": table["id"]}
        roles = {"score": f"p{name}", "sensitive_features": f"z{name}", "key": f"id{name}"}
        found = replace(find("score of two"), table=columns | {"id": table["id"]}, roles=roles)
        assert decide(server, found) == find("score of two").expected
        assert server.execute("SELECT count(*) FROM people").fetchone() == (2000,)


@pytest.mark.parametrize("setting", ["on", "off"])
def test_backslashes_do_not_depend_on_a_setting(server, setting):
    """With standard_conforming_strings on or off, groups and classes with backslashes are themselves."""
    server.execute(f"SET standard_conforming_strings = {setting}; SET escape_string_warning = off")
    for name in ("hostile groups", "text", "several columns", "predicted text"):
        assert decide(server, find(name)) == find(name).expected


def test_keys_are_hashed_as_utf_8_whatever_the_encoding(server):
    """A database of Latin letters draws the same number for the same person."""
    server.execute("DROP DATABASE IF EXISTS latin")
    server.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    expected = {v["u"] for v in VECTORS["uniforms"] if v["key"] == "Zoë"}
    with psycopg.connect(ADDRESS, dbname="latin", autocommit=True) as latin:
        lay(latin, {"key": ["Zoë"]})
        query = "SELECT " + ", ".join(POSTGRES.uniform(salt, "key") for salt in SALTS) + " FROM people"
        assert {u.hex() for u in latin.execute(query).fetchone()} == expected
    server.execute("DROP DATABASE latin")


def test_a_view_and_a_parallel_query_decide_the_same(server):
    """The expression stands in a view, and in a query that several processes run."""
    found = find("score of three")
    decide(server, found)
    text = found.policy.to_sql("postgres", **found.roles)
    server.execute(f"CREATE TEMP VIEW decided AS SELECT row, {text} AS d FROM people")
    assert [d for (d,) in server.execute("SELECT d FROM decided ORDER BY row").fetchall()] == found.expected
    server.execute("CREATE TABLE IF NOT EXISTS kept AS SELECT * FROM people")
    try:
        server.execute(
            "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0"
        )
        query = f"SELECT row, {text} FROM kept"
        assert "Parallel" in str(server.execute(f"EXPLAIN {query}").fetchall())
        assert [d for _, d in sorted(server.execute(query).fetchall())] == found.expected
    finally:
        server.execute("DROP TABLE kept")


# ---------------------------------------------------------------------------------------------------------
# Nobody is decided on by accident

#: What is changed about a person, and what is said.
BAD = {
    "unknown group": ({"z": "q"}, "none of those that were fitted: q"),
    "other case": ({"z": "A"}, "none of those that were fitted: A"),
    "trailing space": ({"z": "a "}, "none of those that were fitted: a "),
    "missing group": ({"z": None}, "none of those that were fitted: NULL"),
    "missing probability": ({"p1": None}, "probabilities are missing"),
    "NaN": ({"p1": float("nan")}, "probabilities are missing, or do not sum to one: NaN"),
    "all NaN": ({"p0": float("nan"), "p1": float("nan")}, "probabilities are missing"),
    "infinite": ({"p1": float("inf")}, "do not sum to one: Infinity"),
    "minus infinite": ({"p1": float("-inf")}, "do not sum to one: -Infinity"),
    "too large": ({"p1": 3.0}, "do not sum to one: 3"),
    "negative": ({"p0": 1.5, "p1": -0.5}, "do not sum to one: -0.5"),
    "missing key": ({"id": None}, "key is missing: NULL"),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("name", ["two columns", "text", "truth", "fractions"])
def test_bad_rows_raise(server, bad, name):
    """With the message, the value, the key and a remedy, for decisions of every type and chances; never an ELSE."""
    changes, words = BAD[bad]
    found = find(name).changed(17, **changes)
    lay(server, found.used())
    key = "NULL" if "id" in changes else "10017"
    for probabilities in (False, True):
        text = found.policy.to_sql("postgres", **found.roles, with_proba=probabilities)
        with pytest.raises(psycopg.Error) as caught:
            server.execute(f"SELECT {text} FROM people").fetchall()
        message = str(caught.value)
        assert f"felicific: The {words}" in message or words in message
        assert "id" in changes or f"(key {key})" in message
        assert message.split('"')[1].endswith(".")
        others = server.execute(f"SELECT {text} FROM people WHERE row <> 17 ORDER BY row").fetchall()
        assert [row[0] for row in others] == [d for row, d in enumerate(find(name).expected) if row != 17]


def test_bad_rows_of_one_column_and_of_predictions_raise(server):
    """One column of scores must be a probability; a label that was never fitted is none."""
    for score in (float("nan"), 1.0000001, -1e-9, None, float("inf")):
        with pytest.raises(psycopg.Error, match="felicific: The probabilities"):
            decide(server, find("score of two").changed(17, p1=score))
    for label in (7, None):
        with pytest.raises(psycopg.Error, match="felicific: The group or the prediction is none"):
            decide(server, find("predicted").changed(17, own=label))
    with pytest.raises(psycopg.Error, match="felicific: The group is missing"):
        decide(server, find("several columns").changed(17, z=None))


@pytest.mark.parametrize(
    ("name", "column", "kind"),
    [
        ("two columns", "z", "character(2)"),  # by which 'a' is 'a '
        ("two columns", "z", '"char"'),
        ("two columns", "z", "name"),
        ("two columns", "p1", "text"),
        ("two columns", "id", "text"),
        ("two columns", "id", "double precision"),
        ("two columns", "id", "numeric"),
        ("whole groups", "z", "text"),
        ("whole groups", "z", "boolean"),
        ("large groups", "z", "double precision"),
        ("groups of truth values", "z", "text"),
        ("groups of truth values", "z", "integer"),
        ("predicted", "own", "text"),
        ("predicted text", "own", "character(20)"),
    ],
)
def test_columns_of_another_type(server, name, column, kind):
    """They raise before anybody is decided on, in our words or PostgreSQL's; text that are keys are fine."""
    found = find(name)
    stored = dict(found.used())
    if kind in ("text", '"char"', "name", "character(2)", "character(20)"):
        stored[column] = np.array([str(value) for value in found.table[column]], dtype=object)
    if kind == "integer":
        stored[column] = found.table[column].astype(int)
    if kind == "boolean":
        stored[column] = found.table[column] > 1
    lay(server, stored, **{column: kind})
    text = found.policy.to_sql("postgres", **found.roles)
    if (column, kind) == ("id", "text"):
        rows = server.execute(f"SELECT {text} FROM people ORDER BY row").fetchall()
        assert [row[0] for row in rows] == found.expected
        return
    with pytest.raises(
        psycopg.Error, match=r"another type|operator does not exist|not supported by type|invalid input"
    ):
        server.execute(f"SELECT {text} FROM people").fetchall()


CONSTANT = "(SELECT 'a'::text AS z, 0.25::float8 AS p0, 0.75::float8 AS p1, 'k'::text AS id) AS one"


@pytest.mark.parametrize("name", ["two columns", "text", "truth"])
def test_errors_are_not_computed_beforehand(server, name):
    """What is known while a query is planned raises nothing that no row raises, columns constant or not."""
    found = find(name)
    text = found.policy.to_sql("postgres", **found.roles)
    person = {"z": ["a"], "p0": [0.25], "p1": [0.75], "id": ["k"]}
    expected = replace(found, table=person).expected
    assert [d for (d,) in server.execute(f"SELECT {text} FROM {CONSTANT}").fetchall()] == expected
    lay(server, find("two columns").used())
    for column in ("z", "p0", "p1", "id"):
        # All columns but one are constants, so that a condition is not known and its error could be.
        others = {"z": "'a'::text", "p0": "0.25::float8", "p1": "0.75::float8", "id": "'k'::text"} | {
            column: column
        }
        listed = ", ".join(f"{value} AS {role}" for role, value in others.items())
        where = {"z": "z = 'a'", "p0": "p0 = 0.25", "p1": "p1 = 0.75", "id": "row < 100"}[column]
        query = f"SELECT {text} FROM (SELECT {listed} FROM people WHERE {where}) AS part"
        server.execute(f"EXPLAIN {query}").fetchall()
        server.execute(query).fetchall()
    assert server.execute("SELECT provolatile FROM pg_proc WHERE proname = 'concat'").fetchall() == [("s",)]


def test_a_message_is_whole_and_holds_what_a_person_wrote(server):
    """Whatever the group is called, the message shows it and nothing of it is run."""
    lay(server, find("two columns").used())
    for name in HOSTILE:
        server.execute("UPDATE people SET z = %s WHERE row = 17", [name])
        query = sql.SQL(find("two columns").policy.to_sql("postgres", **find("two columns").roles))
        with pytest.raises(psycopg.Error) as caught:
            server.execute(sql.SQL("SELECT {} FROM people").format(query)).fetchall()
        assert f": {name} (key 10017). Fit on data" in str(caught.value)


def test_the_test_sees_another_salt(server):
    """With other draws, these tests would fail."""
    found = find("label")
    other = replace(found, policy=replace(found.policy, salt=SALTS[1]))
    assert decide(server, other) == other.expected != found.expected


def test_the_text_is_what_the_command_line_writes(server, tmp_path, monkeypatch, capsys):
    """`felicific sql --from` prints a query that runs as it is."""
    from felicific.cli import run

    monkeypatch.chdir(tmp_path)
    found = find("score of two")
    replace(found.policy, salt=SALTS[1]).save("policy.json")
    lay(server, found.used())
    line = "sql policy.json --dialect postgres --score p1 --group z --key id --from people --column d"
    assert run(line.split()) == 0
    query = capsys.readouterr().out
    with server.execute(query) as rows:
        names = [column.name for column in rows.description]
        assert names[-1] == "d"
        decided = sorted(rows.fetchall(), key=lambda row: row[names.index("row")])
    expected = replace(found.policy, salt=SALTS[1]).apply(as_pandas(found.table), **found.roles)["decision"]
    assert [row[-1] for row in decided] == expected.tolist()
