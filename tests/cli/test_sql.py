"""A policy as SQL on the command line: what is printed decides as ``felicific apply`` does, and nothing else is."""

import os
import shlex
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from helpers import python_words, solved

from felicific import load
from felicific._tables.dialect import DIALECTS
from felicific.cli import run
from felicific.exceptions import DataError, LotteryWarning

SQL = "sql policy.json --score score --group sex --key id --dialect"
SALT = "whoever reads it can compute everybody's draw"


def people(classes=2, n=500):
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], n)
    score = rng.dirichlet(np.ones(classes), n)
    y = (rng.random(n)[:, None] > score.cumsum(axis=1)).sum(axis=1).clip(max=classes - 1)
    columns = {"id": [f"{i:04d}" for i in range(n)], "sex": sex, "score": score[:, 1], "repaid": y}
    columns |= {f"p{k}": score[:, k] for k in range(classes)}
    return pd.DataFrame(columns | {"loan": rng.lognormal(3, 0.5, n), "own": score.argmax(axis=1)})


def fit(table, **settings):
    asked = {
        "score": "score",
        "y": "repaid",
        "sensitive_features": "sex",
        "happiness": "decision",
        "gap": 0.0,
    }
    return solved(table, **asked | settings)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with some people, and a policy for them."""
    monkeypatch.chdir(tmp_path)
    people().to_csv("people.csv", index=False)
    fit(people()).save("policy.json")
    return tmp_path


@pytest.fixture
def felicific(capsys):
    """Run a command line; an error is one line, and changes no file."""

    def call(line):
        before = {name: Path(name).read_bytes() for name in os.listdir()}
        code = run(shlex.split(line))
        captured = capsys.readouterr()
        if code:
            assert captured.out == ""
            assert len(captured.err.splitlines()) == 1
            assert captured.err.startswith("felicific: ")
            assert not python_words(captured.err), captured.err
            assert {name: Path(name).read_bytes() for name in os.listdir()} == before
        return code, captured.out, captured.err

    return call


def code_of(text):
    """The text without its heading."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("--"))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_printed_is_the_librarys(folder, felicific, dialect):
    """The expression of to_sql below a heading that names the policy and its salt; nothing on the side."""
    code, out, err = felicific(f"{SQL} {dialect}")
    policy = load("policy.json")
    assert (code, err) == (0, "")
    assert code_of(out) == policy.to_sql(dialect, score="score", sensitive_features="sex", key="id")
    assert policy.sha256 in out.splitlines()[0]
    assert DIALECTS[dialect].label in out.splitlines()[0]
    assert SALT in out.splitlines()[1]


def test_a_query_decides_what_apply_decides(folder, felicific):
    """With a table it is a query as it stands; the probabilities too."""
    assert (
        felicific(
            "apply policy.json people.csv --score score --group sex --key id --with-proba --out decided.csv"
        )[0]
        == 0
    )
    table = "read_csv('people.csv', types = {'id': 'VARCHAR'})"
    code, out, err = felicific(f"{SQL} duckdb --from {shlex.quote(table)} --with-proba --column d")
    assert (code, err) == (0, "")
    found = duckdb.sql(out).df()
    expected = pd.read_csv("decided.csv", dtype={"id": str})
    assert list(found.columns) == [*people().columns, "d", "proba"]
    assert found["d"].tolist() == expected["decision"].tolist()
    assert found["proba"].tolist() == expected["proba"].tolist()
    assert len(set(found["proba"])) > 2


def test_more_classes_and_labels(folder, felicific):
    """A column for every class, and the label of a policy that reads labels."""
    table = people(3)
    fit(table, score={k: f"p{k}" for k in range(3)}, happiness="statistical_parity").save("three.json")
    line = "sql three.json --score 0=p0 --score 2=p2 --score 1=p1 --group sex --key id --dialect snowflake"
    named = {"score": {k: f"p{k}" for k in range(3)}, "sensitive_features": "sex", "key": "id"}
    assert code_of(felicific(line)[1]) == load("three.json").to_sql("snowflake", **named)
    fit(table, policy="label", score=None, predicted="own", happiness="statistical_parity").save("label.json")
    line = "sql label.json --predicted own --group sex --key id --dialect bigquery"
    named = {"predicted": "own", "sensitive_features": "sex", "key": "id"}
    assert code_of(felicific(line)[1]) == load("label.json").to_sql("bigquery", **named)


def test_a_file_is_written_whole(folder, felicific):
    """--out writes what would be printed, and prints nothing; it replaces a file only when that was said."""
    _, printed, _ = felicific(f"{SQL} postgres")
    code, out, err = felicific(f"{SQL} postgres --out decide.sql")
    assert (code, out, err) == (0, "", "Written to decide.sql.\n")
    assert Path("decide.sql").read_text("utf-8") == printed
    code, _, err = felicific(f"{SQL} duckdb --out decide.sql")
    assert (code, "'decide.sql' exists. Choose another name, or add --force" in err) == (1, True)
    assert felicific(f"{SQL} duckdb --out decide.sql --force")[0] == 0
    assert Path("decide.sql").read_text("utf-8") == felicific(f"{SQL} duckdb")[1]


def test_no_salt_without_a_lottery(folder, felicific):
    """A policy that does not randomize has no secret to tell."""
    fit(people(), happiness="statistical_parity", gap=1.0).save("sure.json")
    code, out, _ = felicific("sql sure.json --score score --group sex --dialect duckdb")
    assert code == 0
    assert SALT not in out
    assert load("sure.json").salt not in out


@pytest.mark.filterwarnings("always::felicific.exceptions.LotteryWarning")
def test_a_salt_from_a_seed_is_noted(folder, felicific):
    """Beside the text, not in it."""
    with pytest.warns(LotteryWarning):
        fit(people(), random_state=0).save("seeded.json")
    code, out, err = felicific("sql seeded.json --score score --group sex --key id --dialect duckdb")
    assert code == 0
    assert err.startswith("felicific: note: The salt of this policy comes from a seed")
    assert "seed" in out.split("salt")[1]
    assert duckdb.sql(f"SELECT {out} FROM 'people.csv'") is not None


BAD = {
    "unknown dialect": (f"{SQL} oracle", "There is no dialect 'oracle'. Choose one of 'duckdb', 'spark'"),
    "misspelt dialect": (f"{SQL} postgresql", "Did you mean 'postgres'? There are 'duckdb'"),
    "case": (f"{SQL} BigQuery", "Did you mean 'bigquery'?"),
    "no key": (
        f"{SQL.replace(' --key id', '')} postgres",
        "Name the column that identifies a person in --key.",
    ),
    "unknown class": (
        f"{SQL} spark --score 7=p7".replace("score score", "score 1=score"),
        "there is no class '7'",
    ),
    "two columns": (f"{SQL} spark --score rest", "--score score does not say of which class"),
    "no policy": (f"{SQL} spark".replace("policy", "nothing"), "No such file or directory: 'nothing.json'"),
    "no policy file": (
        f"{SQL} spark".replace("policy.json", "people.csv"),
        "not a file that felicific wrote",
    ),
    "variable": (
        f"{SQL} databricks --key '${{id}}'",
        "Rename the column, or apply the policy where Python runs",
    ),
    "one name twice": (
        f"{SQL} postgres --with-proba --column proba",
        "Choose another name in --column, or leave --with-proba out",
    ),
    "kind of file": (f"{SQL} postgres --out decide.txt", "End its name in .sql."),
    "no folder": (f"{SQL} postgres --out none/decide.sql", "There is no folder 'none'"),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_input_is_one_line(folder, felicific, bad):
    """With a remedy in words of the command line; nothing is printed or written."""
    line, words = BAD[bad]
    code, _, err = felicific(line)
    assert (code, words in err) == (1, True), err


@pytest.mark.parametrize("function", [False, True])
@pytest.mark.parametrize("blind", [False, True])
def test_an_individual_policy_is_refused(folder, felicific, function, blind, refuses):
    """It says why there is no SQL of it, and what to do instead; also where its file asks for functions."""
    table = people().assign(f=0.5, m=0.5)
    settings = {"sees_group": False, "group_proba": {"f": "f", "m": "m"}} if blind else {}

    def loan(decision, x):
        return decision * x["loan"]

    happiness = loan if function else "decision * loan"
    policy = fit(table, policy="individual", happiness=happiness, gap=2.0, **settings)
    policy.save("individual.json")
    code, _, err = felicific(SQL.replace("policy.json", "individual.json") + " postgres")
    assert code == 1
    assert "decides on each person by functions of x, which have no SQL. Apply it where Python runs" in err
    assert "or fit a policy that sees the score" in err
    with refuses(DataError, "functions of x, which have no SQL", remedy="Apply it where Python runs"):
        policy.to_sql("postgres", score="score", sensitive_features="sex", key="id")


def test_the_help_names_every_dialect(felicific, tmp_path, monkeypatch):
    """As the table does."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    assert ", ".join(DIALECTS) in felicific("sql --help")[1]


def test_a_dialect_must_be_named(folder, felicific):
    """There is no default that would be right by chance."""
    code, _, err = felicific("sql policy.json --score score --group sex --key id")
    assert (code, "--dialect" in err) == (2, True)


def test_nothing_is_written_when_it_goes_wrong(folder, felicific, monkeypatch):
    """A disk that is full leaves the file of before."""
    Path("decide.sql").write_text("before", "utf-8")

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    code, _, err = felicific(f"{SQL} postgres --out decide.sql --force")
    assert (code, "No space left on device" in err) == (1, True)
    assert Path("decide.sql").read_text("utf-8") == "before"


def test_words_of_the_command_line():
    """What the library says of names that cannot be written is true on the command line as well."""
    with pytest.raises(DataError, match="or apply the policy where Python runs") as caught:
        DIALECTS["spark"].quote_name("${x}")
    assert "policy." not in caught.value.remedy
