"""The command line: the library's numbers, one clear message for everything that goes wrong, no half-written file."""

import gzip
import inspect
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import foreign_options, python_words, solved
from typer.models import OptionInfo

from felicific import Happiness, aggregate, audit, frontier, load, solve
from felicific.cli import app, run, with_options
from felicific.cli.model import halves
from felicific.cli.options import PANELS
from felicific.exceptions import FittedRowsWarning

#: Policies of tests are saved with the salt of a seed, so that their draws are the same again.
FUNDING = "decision * loan"

# A warning is a note on standard error, as it is outside of tests.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The salt of this policy comes from a seed"),
    pytest.mark.filterwarnings("always::felicific.exceptions.FittedRowsWarning"),
]


def make_scores(n=600, seed=0):
    """A file of scores as an analyst has it."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["Female", "Male"], n, p=[0.4, 0.6])
    score = np.round(rng.beta(2, 2, n), 3)
    return pd.DataFrame(
        {
            "id": [f"{i:05d}" for i in range(n)],
            "sex": sex,
            "loan": np.round(rng.lognormal(9, 0.5, n) * np.where(sex == "Female", 1.4, 1.0), 2),
            "score": score,
            "approved": (score > 0.5).astype(int),
            "repaid": (rng.random(n) < score).astype(int),
            "note": [f'a, "b" {i}' if i % 50 == 0 else f"{i:03d}" for i in range(n)],
        }
    )


@pytest.fixture(scope="module")
def scores():
    return make_scores()


@pytest.fixture
def folder(tmp_path, monkeypatch, scores):
    monkeypatch.chdir(tmp_path)
    scores.to_csv("scores.csv", index=False)
    return tmp_path


@pytest.fixture
def felicific(capsys):
    """Run a command line; return exit code, output and messages."""

    def call(line, *more):
        code = run([*shlex.split(line), *more])
        captured = capsys.readouterr()
        assert not python_words(captured.err), captured.err
        return code, captured.out, captured.err

    return call


#: What is said where a policy is audited on the rows that it was fitted on.
FITTED_ROWS = (
    "felicific: note: These are rows that the policy was fitted on: the intervals do not speak of other"
)


@pytest.fixture
def works(felicific):
    def call(line, *more):
        code, out, err = felicific(line, *more)
        assert code == 0, err
        assert all(line.startswith(FITTED_ROWS) for line in err.splitlines()), err
        return out

    return call


AUDIT = f"audit scores.csv --decision approved --group sex --label repaid --happiness '{FUNDING}' --unit $"
FIT = f"fit scores.csv --score score --group sex --label repaid --happiness '{FUNDING}' --unit $ --seed 0"
APPLY = "apply policy.json scores.csv --score score --group sex --key id"


# ---------------------------------------------------------------------------------------------------------
# The library's numbers


def test_workflow_is_the_librarys(folder, works, scores):
    """Audit, frontier, fit, apply and audit again say and decide what the library's functions do."""
    happiness = Happiness(FUNDING, unit="$")
    common = {"happiness": happiness, "sensitive_features": "sex"}
    expected = audit(scores["approved"], scores, scores["repaid"], **common)
    assert works(AUDIT) == f"{expected}\n"
    assert json.loads(works(f"{AUDIT} --json")) == expected.to_dict()

    score = np.column_stack([1 - scores["score"], scores["score"]])
    sums = aggregate(scores, score=score, y="repaid", **common)
    line = frontier(sums)
    works(
        FIT.replace("fit", "frontier").replace(" --seed 0", "") + " --out frontier.csv --chart frontier.svg"
    )
    table = pd.read_csv("frontier.csv")
    np.testing.assert_allclose(table["loss"], line.loss, rtol=1e-12)
    np.testing.assert_allclose(table[f"gap of {FUNDING}"], line.gaps[:, 0], rtol=1e-9, atol=1e-6)
    assert Path("frontier.svg").read_text("utf-8").startswith("<svg")

    policy = solve(sums, gap=200.0, random_state=0)
    assert str(policy) in works(f"{FIT} --gap 200 --change-cost 0")
    written = load("policy.json")
    assert (written.salt, written.groups, written.signal) == (policy.salt, policy.groups, policy.signal)
    np.testing.assert_allclose(written.q, policy.q, rtol=0, atol=1e-9)

    works(f"{APPLY} --out decided.csv")
    decided = pd.read_csv("decided.csv", dtype={"id": str, "note": str})
    assert decided.pop("decision").tolist() == written.decide(score, scores["sex"], scores["id"]).tolist()
    pd.testing.assert_frame_equal(decided, scores)

    with pytest.warns(FittedRowsWarning):
        again = audit(written, scores.drop(columns="repaid"), **common, score="score", gap=200.0)
    command = f"audit decided.csv --policy-file policy.json --score score --group sex --happiness '{FUNDING}'"
    assert works(f"{command} --unit $ --gap 200 --out after.json") == f"{again}\n"
    assert json.loads(Path("after.json").read_text("utf-8")) == again.to_dict()


@pytest.mark.parametrize(
    "asked",
    [
        f"--happiness '{FUNDING}' --gap 500 --label repaid",
        f"--happiness '{FUNDING}' --among 'loan > 9000' --weight times --weight-kind sampling",
        f"--happiness '{FUNDING}' --among 'approved < 2' --label repaid --weight times",
        f"--happiness '{FUNDING}' --label repaid --weight times --weight-kind sampling --cluster branch",
    ],
)
@pytest.mark.parametrize("decided", ["--decision approved", "--policy-file policy.json --score score"])
def test_audits_of_files_keep_no_rows(folder, works, scores, monkeypatch, asked, decided):
    """What can be told from sums is told without the rows in memory, and in the same words as with them."""
    works(f"{FIT} --gap 200")
    weighted = scores.assign(times=np.arange(len(scores)) % 3, branch=np.arange(len(scores)) // 7 % 40)
    weighted.to_parquet("s.parquet", row_group_size=100)
    line = f"audit s.parquet {decided} --group sex {asked}"
    monkeypatch.setattr("felicific._audit.methods._best", lambda *about: "large")
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["felicific.cli.audit"], "_needs_rows", lambda *rest: True)
        expected = works(line)
    monkeypatch.setattr("felicific.cli.files.Source.read", lambda *rest, **more: pytest.fail("read"))
    assert works(line) == expected


@pytest.mark.parametrize(("taken", "other"), [(1, 0), ("yes", "no"), (True, False), (1.0, 0.0)])
def test_one_decision_about_everybody(folder, works, scores, taken, other):
    """Where everybody got the same decision, the others there are can be named, and the audit is the library's."""
    alike = scores.assign(approved=taken)
    alike.to_parquet("alike.parquet")
    line = "audit alike.parquet --decision approved --group sex --happiness statistical_parity"
    expected = audit(
        alike["approved"],
        alike,
        happiness="statistical_parity",
        sensitive_features="sex",
        decisions=sorted([taken, other]),
    )
    assert works(f"{line} --decisions {min(taken, other)},{max(taken, other)}") == f"{expected}\n"


@pytest.mark.parametrize("kind", ["parquet", "many", "gz", "duckdb", "tsv"])
def test_every_kind_of_file(folder, works, scores, kind):
    """Parquet, patterns, compressed, DuckDB and tab-separated files are the same people."""
    names = {
        "parquet": "s.parquet",
        "many": "part-*.parquet",
        "gz": "s.csv.gz",
        "duckdb": "s.db",
        "tsv": "s.tsv",
    }
    if kind == "parquet":
        scores.to_parquet("s.parquet")
    elif kind == "many":
        scores[:250].to_parquet("part-1.parquet")
        scores[250:].to_parquet("part-2.parquet")
    elif kind == "gz":
        with gzip.open("s.csv.gz", "wt") as stream:
            scores.to_csv(stream, index=False)
    elif kind == "tsv":
        scores.to_csv("s.tsv", index=False, sep="\t")
    else:
        import duckdb

        with duckdb.connect("s.db") as connection:
            connection.from_df(scores).create("people")
    assert works(AUDIT.replace("scores.csv", names[kind])) == works(AUDIT)


def test_several_tables_in_a_database(folder, works, felicific, scores):
    """A DuckDB file with several tables asks for one, however hostile its name."""
    import duckdb

    evil = 'drop "table"; --'
    with duckdb.connect("s.db") as connection:
        people = connection.from_df(scores)
        connection.execute('create table "drop ""table""; --" as select * from people')
        connection.execute("create table other as select 1 as one")
        del people
    line = AUDIT.replace("scores.csv", "s.db")
    code, _, err = felicific(line)
    assert (code, err.count("\n")) == (1, 1)
    assert "--table" in err
    assert "'other'" in err
    assert works(line, "--table", evil) == works(AUDIT)
    assert felicific(line, "--table", "peple")[0] == 1
    assert felicific(AUDIT, "--table", "people")[0] == 1


def test_functions_in_files(folder, works, scores):
    """``module.py:function`` is the function; a list of measures in a file is all of them."""
    Path("helper.py").write_text("LOAN = 'loan'\n")
    Path("mine.py").write_text(
        "from helper import LOAN\n"
        "from felicific import Happiness\n"
        "def funding(decision, x):\n    return decision * x[LOAN]\n"
        "def large(x):\n    return x[LOAN] > 9000\n"
        "def cost(decision, y):\n    return abs(y - decision) * (1 + decision)\n"
        "all = {'money': Happiness(funding, among=large), 'chances': 'equal_opportunity'}\n"
    )
    as_function = AUDIT.replace(f"'{FUNDING}'", "mine.py:funding")
    costly = " --loss '(y != decision) * (1 + decision)' --among 'loan > 9000' --name money"
    assert works(f"{as_function} --name money --among mine.py:large --loss mine.py:cost") == works(
        AUDIT + costly
    )
    both = json.loads(works(as_function.replace("funding", "all").replace(" --unit $", "") + " --json"))
    assert [part["name"] for part in both["measures"]] == ["money", "chances"]
    works(FIT.replace(f"'{FUNDING}' --unit $", "mine.py:all") + " --gap money=300 --floor chances=baseline")
    policy = load("policy.json")
    assert policy.gaps["money"] <= 300 + 1e-6
    assert policy.gaps["chances"] > 0


@pytest.mark.parametrize("kind", ["individual", "label", "soft-label"])
def test_every_kind_of_policy(folder, works, scores, kind):
    """All kinds are fitted, traced and applied on the command line."""
    signal = "--predicted approved" if kind == "label" else "--score score"
    works(FIT.replace("--score score", signal) + f" --policy {kind} --gap 250")
    assert load("policy.json").gap <= 250 + 1e-6
    works(
        FIT.replace("--score score", signal)
        .replace("fit", "frontier")
        .replace("--seed 0", f"--policy {kind}")
    )
    works(APPLY.replace("--score score", signal) + " --out decided.parquet")
    decided = pd.read_parquet("decided.parquet")
    line = f"audit scores.csv --policy-file policy.json {signal} --group sex --happiness '{FUNDING}' --json"
    found = json.loads(works(line))["measures"][0]
    assert found["gap"]["estimate"] <= 250 + 1e-6
    mean = (decided["decision"] * decided["loan"])[decided["sex"] == "Male"].mean()
    assert mean == pytest.approx(found["means"][1]["estimate"], rel=0.1)


def test_policies_without_the_group(folder, works, felicific, scores):
    """Fitted, traced, applied, audited and reported as by the library: by a signal or by beliefs."""
    likely = np.round(1 / (1 + np.exp(-(scores["loan"] - 10_000) / 3_000)), 6)
    table = scores.assign(f=likely, m=np.round(1.0 - likely, 6))
    table.to_csv("scores.csv", index=False)
    believed = "--group-proba Female=f --group-proba Male=m"
    applied = APPLY.replace(" --group sex", "") + " --out decided.csv --force"
    named = {
        "y": "repaid",
        "sensitive_features": "sex",
        "happiness": FUNDING,
        "gap": 250.0,
        "random_state": 0,
    }
    named |= {"score": "score", "sees_group": False}
    ways = (
        (" --policy score", {}),
        (
            f" {believed}",
            {"policy": "individual", "group_proba": {"Female": "f", "Male": "m"}},
        ),
    )
    for options, settings in ways:
        works(f"{FIT} --gap 250 --without-group{options} --force")
        policy, other = load("policy.json"), solved(table, **named | settings)
        assert policy.loss == pytest.approx(other.loss, abs=1e-12)
        assert policy.sees_group is False
        works(f"{applied} {believed if settings else ''}")
        columns = {"score": "score", "key": "id", "group_proba": settings.get("group_proba")}
        decided = pd.read_csv("decided.csv")["decision"]
        assert (decided == policy.apply(table, **columns)["decision"]).all()
        line = f"audit scores.csv --policy-file policy.json --score score --group sex --happiness '{FUNDING}' --json"
        found = json.loads(works(f"{line} {believed if settings else ''}"))["measures"][0]
        assert found["gap"]["estimate"] == pytest.approx(policy.gap, abs=1e-6)
        traced = works(FIT.replace("fit", "frontier").replace("--seed 0", f"--without-group{options} --json"))
        assert min(json.loads(traced)["breakpoints"]["loss"]) <= policy.loss + 1e-9
    works(FIT.replace("fit", "report") + f" --gap 250 --without-group{ways[1][0]}")
    assert "infers the group from x" in Path("report.html").read_text("utf-8")
    works(applied)  # the policy remembers who believes what
    assert (pd.read_csv("decided.csv")["decision"] == decided).all()


def test_the_baseline_may_be_named(folder, works, scores):
    """--baseline changes what a policy is compared with, and --predicted what a policy of labels reads."""
    before = (scores["loan"] < 9000).astype(int)
    scores.assign(before=before, model=scores["approved"]).to_csv("scores.csv", index=False)
    gaps = {
        column: json.loads(works(f"audit scores.csv --decision {column} --group sex --label repaid --json",
                                 "--happiness", FUNDING))["measures"][0]["gap"]["estimate"]
        for column in ("before", "model")
    }  # fmt: skip
    for kind in ("score", "soft-label", "individual"):
        for columns, expected in (
            ("", "model"),
            ("--predicted before", "before"),
            ("--baseline before", "before"),
            ("--baseline model --predicted before", "model"),
        ):
            found = json.loads(works(f"{FIT} --gap 9 --policy {kind} {columns} --json --force"))
            assert found["baseline"]["gaps"][FUNDING] == pytest.approx(gaps[expected]), (kind, columns)
            assert found["fitted"]["gaps"][FUNDING] <= 9 + 1e-6
    line = f"{FIT} --gap 9 --policy label --json --force --predicted"
    by_label = {column: json.loads(works(f"{line} {column}")) for column in ("before", "model")}
    assert by_label["before"]["baseline"]["gaps"][FUNDING] == pytest.approx(gaps["before"])
    assert by_label["before"]["fitted"]["loss"] != by_label["model"]["fitted"]["loss"]
    other = json.loads(works(f"{line} model --baseline before"))
    assert other["baseline"]["gaps"][FUNDING] == pytest.approx(gaps["before"])
    for number in ("loss", "gaps"):
        assert other["fitted"][number] == pytest.approx(by_label["model"]["fitted"][number], abs=1e-9)


def test_a_policy_of_labels_reads_predicted(folder, works, scores):
    """Labels that are named are read, also where there are probabilities: by fit, by apply and by audit."""
    model = (scores["loan"] < 9000).astype(int)
    scores.assign(model=model).to_csv("scores.csv", index=False)
    works(f"{FIT} --policy label --predicted model --gap 100")
    expected = load("policy.json").decide(model, scores["sex"], scores["id"])
    for more in ("", "--score score"):
        line = f"apply policy.json scores.csv --predicted model {more} --group sex --key id --out decided.csv"
        works(f"{line} --force")
        assert pd.read_csv("decided.csv")["decision"].tolist() == expected.tolist()
        line = f"audit scores.csv --policy-file policy.json --predicted model {more} --group sex --json"
        audited = json.loads(works(line, "--happiness", FUNDING))
        assert audited["measures"][0]["gap"]["estimate"] <= 100 + 1e-6


def test_three_classes(folder, works, felicific):
    """With more than two classes every class has a column of its own."""
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(3), 400)
    label = np.array(["no", "part", "yes"])[[rng.choice(3, p=row) for row in p]]
    people = pd.DataFrame({"p no": p[:, 0], "p=part": p[:, 1], "p yes": p[:, 2], "truth": label})
    people["who"] = rng.choice(["a", "b"], 400)
    people.to_csv("three.csv", index=False)
    columns = "--score 'no=p no' --score 'part=p=part' --score 'yes=p yes'"
    rest = "--group who --label truth --decisions no,yes,part --happiness \"decision != 'no'\""
    works(f"fit three.csv {columns} {rest} --gap 0.01")
    assert load("policy.json").classes.tolist() == ["no", "part", "yes"]
    works(f"apply policy.json three.csv {columns} --group who --out decided.csv --json")
    for wrong in (
        "--score 'p no'",
        "--score 'no=p no' --score 'yes=p yes'",
        "--score 'maybe=p no'",
        "--score 'no=p nu'",
    ):
        code, _, err = felicific(f"fit three.csv {wrong} {rest} --out other.json")
        assert code == 1, wrong
        assert err.count("\n") == 1


def test_confidence(folder, works, felicific, scores):
    """With --confidence only a policy whose gap is shown on rows held out is written, with what was shown."""
    found = json.loads(works(f"{FIT} --gap 5000 --confidence 0.9 --json"))
    assert found["certificate"]["basis"] == "held-out test"
    assert found["certificate"]["gaps"][FUNDING] <= 5000
    assert found["certificate"]["large_samples"] == [FUNDING]
    assert "by large samples" in found["certificate"]["sentence"]
    assert load("policy.json").gap <= 5000
    works(
        FIT.replace("--score score", "--predicted approved") + " --gap 5000 --confidence 0.9 --out label.json"
    )
    for gap, word, expected in (("0", "never", 1), ("1", "rows", 3)):
        code, _, err = felicific(f"{FIT} --gap {gap} --confidence 0.9 --out none.json")
        assert (code, word in err) == (expected, True), err
        assert not Path("none.json").exists()


def test_bounds(folder, works, felicific):
    """Known bounds give intervals that assume nothing else; values outside are refused."""
    found = json.loads(works(f"{AUDIT} --bounds 0,1000000 --json"))
    assert found["measures"][0]["bounds"] == [0.0, 1e6]
    for wrong in ("0,1", "5", "a,b", "3,2"):
        code, _, err = felicific(f"{AUDIT} --bounds {wrong}")
        assert (code, err.count("\n")) == (1, 1), wrong


def test_reports(folder, works, felicific, scores):
    """A report is a page about people the policy was not fitted on; an audit can be a page too."""
    line = FIT.replace("fit", "report") + " --gap 500"
    works(line)
    page = Path("report.html").read_text("utf-8")
    assert page.startswith("<!")
    assert "300 people" in page
    make_scores(200, seed=1).to_csv("others.csv", index=False)
    works(f"{line} --test others.csv --title 'Who gets a loan' --out other.html")
    page = Path("other.html").read_text("utf-8")
    assert "200 people" in page
    assert "Who gets a loan" in page
    scores.assign(sex=["Female"] + ["Male"] * 599).to_csv("scores.csv", index=False)
    code, _, err = felicific(f"{line} --out none.html")
    assert (code, "--test" in err) == (1, True)


def test_weights_and_clusters_are_said_on_the_command_line(folder, works, felicific, scores):
    """Unclear weights are refused where something is said with confidence, in the words of the command line."""
    scores.assign(w=np.where(scores.index % 2, 900, 100), branch=scores.index // 3).to_csv(
        "scores.csv", index=False
    )
    safe = f"{FIT} --gap 9000 --confidence 0.9"
    for line in (AUDIT, safe, FIT.replace("fit", "report") + " --gap 500"):
        code, _, err = felicific(f"{line} --weight w --force")
        assert (code, "--weight-kind sampling" in err) == (1, True), err
    works(f"{FIT} --gap 500 --weight w --force")
    found = json.loads(works(f"{safe} --weight w --weight-kind sampling --cluster branch --json --force"))
    assert 0 < found["certificate"]["smallest"] < 300
    assert found["certificate"]["sentence"].count("rows held out")
    rows = pd.read_csv("scores.csv")
    first, second = halves(rows, ["sex"], 0, "branch")
    assert len(first) + len(second) == 600
    assert not set(first["branch"]) & set(second["branch"])


def test_json_everywhere(folder, works):
    """With --json the output is one JSON document and nothing else."""
    assert json.loads(works(f"{FIT} --gap 100 --json"))["policy"] == "policy.json"
    assert (
        json.loads(works(FIT.replace("fit", "frontier").replace("--seed 0", "--json")))["baseline"]["loss"]
        > 0
    )
    assert json.loads(works(f"{APPLY} --out d.csv --json"))["rows"] == 600


# ---------------------------------------------------------------------------------------------------------
# Keys, batches, columns


def test_decisions_belong_to_people(folder, works, monkeypatch, scores):
    """The same person gets the same decision in any order, batch and kind of file; 007 stays 007."""
    works(f"{FIT} --gap 100")
    works(f"{APPLY} --out whole.csv")
    import felicific.cli.apply  # noqa: F401  # the module, which the function of the same name hides

    monkeypatch.setattr(sys.modules["felicific.cli.apply"], "BATCH", 64)
    scores.sample(frac=1.0, random_state=0).to_parquet("shuffled.parquet")
    works(APPLY.replace("scores.csv", "shuffled.parquet") + " --out parts.parquet")
    whole = pd.read_csv("whole.csv", dtype={"id": str}).set_index("id")["decision"]
    parts = pd.read_parquet("parts.parquet").set_index("id")["decision"]
    assert whole.index[7] == "00007"
    assert whole.sort_index().equals(parts.sort_index().astype(whole.dtype))
    assert (whole != scores.set_index("id")["approved"]).sum() > 0
    works(f"{APPLY} --out typed.parquet")
    typed = pd.read_parquet("typed.parquet")
    assert typed["id"].tolist() == scores["id"].tolist()
    assert typed["decision"].tolist() == whole.tolist()


def test_keys_that_look_like_numbers(folder, works, scores):
    """Keys of a CSV are what is written: 1.10 and 1.1 are two people, and no key is a rounded number."""
    scores.assign(id=[f"{i // 10}.{i % 10}0" for i in range(len(scores))]).to_csv("scores.csv", index=False)
    works(f"{FIT} --gap 100")
    works(f"{APPLY} --out typed.parquet")
    assert pd.read_parquet("typed.parquet")["id"].tolist()[11] == "1.10"


def test_without_a_key_the_row_decides(folder, works, scores):
    """Without a key equal rows are decided alike, whatever their place in the file."""
    works(f"{FIT} --gap 100")
    works(APPLY.replace(" --key id", "") + " --out one.csv")
    scores[::-1].to_csv("scores.csv", index=False)
    works(APPLY.replace(" --key id", "") + " --out two.csv")
    one, two = (pd.read_csv(name, dtype={"id": str}) for name in ("one.csv", "two.csv"))
    assert one["decision"].tolist() == two["decision"].tolist()[::-1]


def test_odd_columns_pass_through(folder, works, scores):
    """Columns that play no role come out as they went in, commas, quotes, zeros and emptiness included."""
    scores = scores.assign(zip="007", when="2024-02-01", **{'Odd "name", really': ""})
    scores.to_csv("scores.csv", index=False)
    works(f"{FIT} --gap 100")
    works(f"{APPLY} --out decided.csv --column verdict")
    read = {
        name: pd.read_csv(name, dtype=str, keep_default_na=False) for name in ("scores.csv", "decided.csv")
    }
    verdict = read["decided.csv"].pop("verdict")
    assert set(verdict) == {"0", "1"}
    numbers = ["score"]
    pd.testing.assert_frame_equal(
        read["decided.csv"].drop(columns=numbers), read["scores.csv"].drop(columns=numbers)
    )


def test_groups_that_look_like_numbers(folder, works):
    """A policy fitted on text groups reads the groups of the next file as text."""
    scores = make_scores()
    scores["sex"] = scores["sex"].map({"Female": "F", "Male": "1"})
    scores.to_csv("scores.csv", index=False)
    works(f"{FIT} --gap 100")
    scores[scores["sex"] == "1"].to_csv("scores.csv", index=False)
    works(f"{APPLY} --out decided.csv")


@pytest.mark.filterwarnings("default:No key says who:felicific.exceptions.LotteryWarning")
def test_a_note_without_a_key(folder, felicific, works, monkeypatch):
    """Who decides by lottery without --key is told once; where nobody faces one there is nothing to say."""
    monkeypatch.setattr(sys.modules["felicific.cli.apply"], "BATCH", 100)
    works(f"{FIT} --gap 100 --out policy.json")
    code, _, err = felicific(f"{APPLY.replace(' --key id', '')} --out decided.csv")
    assert code == 0
    assert err.count("\n") == 1
    assert err.startswith("felicific: note: No key says who a person is")
    assert err.endswith("in --key.\n")
    works(f"{APPLY} --out keyed.csv")


LATE = 'decision == "late"'


def test_types_are_those_of_all_rows(folder, works):
    """A CSV whose later rows are written otherwise than its first is not rounded, and groups are not True or False."""
    first, later = 30_000, 1_000
    table = pd.DataFrame(
        {
            "sex": ["F"] * first + ["M"] * later,
            "approved": ["yes", "no"] * ((first + later) // 2),
            "zip": ["10"] * first + ["2B"] * later,
            "loan": ["1"] * first + ["2.5"] * later,
            "old": [True] * first + [False] * later,
        }
    )
    table.to_csv("sorted.csv", index=False)
    line = "audit sorted.csv --decision approved --json --group"
    found = json.loads(works(f"{line} sex --happiness '(decision == \"yes\") * loan'"))
    means = found["measures"][0]["means"]
    assert [(mean["group"], mean["estimate"]) for mean in means] == [("F", 0.5), ("M", 1.25)]
    found = json.loads(works(f"{line} zip --decisions late,no,yes --happiness 'not old or {LATE}'"))
    means = found["measures"][0]["means"]
    assert [(mean["group"], mean["estimate"]) for mean in means] == [("10", 0.0), ("2B", 1.0)]


def test_fit_says_what_to_expect(folder, works):
    """In a sentence and as data."""
    text = works(f"{FIT} --gap 200")
    assert "a gap of about $" in text
    assert "must be expected" in text
    found = json.loads(works(f"{FIT} --gap 200 --json --force"))
    assert found["expected_gaps"] == load("policy.json").expected_gaps()


# ---------------------------------------------------------------------------------------------------------
# What goes wrong


FRONTIER, REPORT = FIT.replace("fit", "frontier", 1).replace(" --seed 0", ""), FIT.replace("fit", "report", 1)

#: What no decision changes, and what no decision is.
IDLE = {
    "(decision == 3) * loan": "3 is no decision; the classes are [0, 1]",
    "loan * 2 + 0 * decision": "No decision changes the happiness",
    'decision * (group == "x")': "'x' is no group",
}

MISTAKES = {
    f"audit scores.csv --decision aproved --group sex --happiness '{FUNDING}'": (
        1,
        "Did you mean 'approved'?",
    ),
    f"audit scores.csv --decision approved --group sx --happiness '{FUNDING}'": (1, "Did you mean 'sex'?"),
    "audit scores.csv --decision approved --group sex --happiness 'decision * loen'": (
        1,
        "Did you mean 'loan'?",
    ),
    **{
        line.replace(f"'{FUNDING}'", f"'{text}'"): (1, words)
        for line in (AUDIT, FIT + " --gap 0", FRONTIER, REPORT + " --gap 0")
        for text, words in IDLE.items()
        if line != AUDIT or "No decision" not in words  # that is a note of an audit
    },
    **{
        line.replace("--group sex", "--group id"): (1, "that is no group, but who somebody is")
        for line in (AUDIT, FIT, FRONTIER, REPORT)
    },
    **{
        f"{line.replace(FUNDING, 'decision')} --bounds 0,1 --gap 5": (1, "no gap of it is larger than $1")
        for line in (AUDIT, FIT, REPORT)
    },
    "audit scores.csv --decision approved --group sex --happiness equalised_odds": (1, "'equalized_odds'?"),
    f"audit scores.csv --group sex --happiness '{FUNDING}'": (1, "--score"),
    f"{AUDIT} --weight loam": (1, "--weight"),
    f"{AUDIT} --gap x": (1, "--gap"),
    f"{AUDIT} --gap 1 --gap 2": (1, "NAME=NUMBER"),
    f"{AUDIT} --require": (1, "--gap"),
    f"{AUDIT} --confidence 2": (1, "confidence"),
    f"{AUDIT} --loss wrong": (1, "no loss called"),
    f"{AUDIT} --happiness equalized_odds": (1, "--unit belongs to one"),
    f"{AUDIT} --out after.txt": (1, ".json or .csv"),
    f"{AUDIT} --out no/such/folder.json": (1, "There is no folder"),
    AUDIT.replace("scores.csv", "."): (1, "folder"),
    AUDIT.replace("scores.csv", "nobody.csv"): (1, "No such file"),
    AUDIT.replace("scores.csv", "'*.orc'"): (1, "pattern"),
    AUDIT.replace("scores.csv", "empty.csv"): (1, "empty"),
    AUDIT.replace("scores.csv", "header.csv"): (1, "no rows"),
    AUDIT.replace("scores.csv", "page.html"): (1, "not a table"),
    AUDIT.replace("scores.csv", "noise.bin"): (1, "not a table"),
    AUDIT.replace("scores.csv", "cut.parquet"): (1, "cut.parquet"),
    AUDIT.replace(f"'{FUNDING}'", "nobody.py:f"): (1, "no file 'nobody.py'"),
    AUDIT.replace(f"'{FUNDING}'", "broken.py:f"): (1, "ZeroDivisionError"),
    AUDIT.replace(f"'{FUNDING}'", "fine.py:g"): (1, "no 'g'"),
    AUDIT.replace(f"'{FUNDING}'", "fine.py:f"): (1, "KeyError"),
    AUDIT.replace(f"'{FUNDING}'", "leaves.py:f"): (1, "SystemExit"),
    AUDIT.replace("scores.csv", "latin.csv"): (1, "UTF-8"),
    AUDIT.replace("scores.csv", "ragged.csv"): (1, "cannot be split into columns"),
    AUDIT.replace("scores.csv", "twice.csv"): (1, "'loan' and 'Loan'"),
    AUDIT.replace("scores.csv", "alike.csv").replace("--label repaid", ""): (
        1,
        "at least two: --decisions.",
    ),
    AUDIT.replace("scores.csv", "alike.csv") + " --decisions 1,2": (1, "not every decision is one"),
    f"{AUDIT} --bounds 0,1": (1, "Widen --bounds,"),
    f"{FIT} --gap 0 --confidence 0.9": (
        1,
        "with --confidence, such as what chance alone shows (an audit",
    ),
    FIT.replace("--score score", ""): (1, "--score"),
    FIT.replace("--score score", "--score note"): (1, "holds text, such as"),
    FIT.replace("--score score", "--score score --score loan"): (1, "--score CLASS=COLUMN"),
    FIT.replace("scores.csv", "header.csv"): (1, "no rows"),
    FIT.replace("--score score", "--score loan"): (1, "probabilities of row 0"),
    FIT.replace("--score score", "--baseline approved"): (1, "--predicted"),
    FIT.replace("--score score", "--predicted approved --policy score"): (
        1,
        "predict_proba returns as --score, or use --policy label",
    ),
    f"{FIT} --gap 0 --baseline aproved": (1, "needed for --baseline. Did you mean 'approved'?"),
    f"{FIT} --gap 0 --predicted aproved": (1, "needed for --predicted. Did you mean 'approved'?"),
    f"{FIT} --gap 0 --decision approved": (2, "--decision"),
    f"{AUDIT} --predicted approved": (1, "with --decision"),
    f"{AUDIT} --policy-file policy.json": (1, "No such file"),
    f"{AUDIT} --weight-kind sampled": (2, "'sampled' is not one of 'frequency', 'sampling'"),
    f"{FIT} --gap 0 --policy telepathy": (
        2,
        "not one of 'auto', 'score', 'individual', 'label', 'soft-label'",
    ),
    f"{FIT} --gap 0 --policy individual --without-group": (
        1,
        "--group-proba GROUP=COLUMN; or use --policy score",
    ),
    f"{FIT} --gap 0 --group-proba Female=score --group-proba Male=score": (1, "with --without-group."),
    f"{FIT} --gap 0 --without-group --group-proba Female=score": (1, "Add --group-proba Male=COLUMN."),
    f"{FIT} --gap 0 --without-group --group-proba score": (1, "Write --group-proba GROUP=COLUMN."),
    f"{FIT} --gap 0 --without-group --group-proba Men=score": (1, "The groups are Female, Male."),
    f"{FIT} --gap 0 --without-group --group-proba Male=scor": (1, "Did you mean 'score'?"),
    f"{FIT} --gap 0 --without-group --group-proba Male=note": (1, "holds text, such as"),
    f"{FIT} --gap 0 --policy individual --without-group --group-proba Male=score --group-proba Female=loan": (
        1,
        "group probabilities of row",
    ),
    f"{FIT} --gap 0 --floor 1e9": (3, "at least $1"),
    f"{FIT} --gap 0 --floor tomorrow": (1, "--floor"),
    f"{FIT} --gap 0 --out scores.csv": (1, ".json"),
    "apply scores.csv scores.csv --score score --group sex --out d.csv": (
        1,
        "not a file that felicific wrote",
    ),
    "audit": (2, "FILE"),
    "audit scores.csv --group": (2, "--group"),
    "audit scores.csv --grop sex": (2, "--group"),
    "nonsense": (2, "nonsense"),
    "reports": (2, "'report'? Try"),
    "demo --rows 5": (2, "--rows"),
}


@pytest.mark.parametrize("line", MISTAKES)
def test_mistakes_are_one_line(folder, felicific, line):
    """A mistake is one line that says what is wrong (of an expression, where), an exit code, no output and no file."""
    Path("empty.csv").touch()
    Path("header.csv").write_text("id,sex,loan,score,approved,repaid\n")
    Path("latin.csv").write_bytes("sex,loan,approved\nM\xe4nnlich,1,0\nWeiblich,2,1\n".encode("latin-1"))
    Path("ragged.csv").write_text("sex,loan,approved\nM,1,0\nF,2,1,3\nF,2,1\n")
    Path("twice.csv").write_text("sex,loan,Loan,approved,repaid\nM,1,2,0,0\nF,2,1,1,1\n")
    Path("alike.csv").write_text("sex,loan,approved,repaid\nM,1,1,0\nF,2,1,1\n")
    Path("leaves.py").write_text("raise SystemExit(0)\n")
    Path("page.html").write_text("<html><body>sex,loan</body></html>")
    Path("noise.bin").write_bytes(bytes(range(256)) * 20)
    make_scores(50).to_parquet("cut.parquet")
    Path("cut.parquet").write_bytes(Path("cut.parquet").read_bytes()[:-100])
    Path("broken.py").write_text("f = 1 / 0\n")
    Path("fine.py").write_text("def f(decision, x):\n    return x['nothing']\n")
    before = sorted(os.listdir())
    code, out, err = felicific(line)
    assert (code, MISTAKES[line][1] in err) == (MISTAKES[line][0], True), err
    assert err.startswith("felicific: ")
    assert err.count("\n") == (4 if "^" in err else 1)
    assert out == ""
    assert [name for name in sorted(os.listdir()) if name != "__pycache__"] == before


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Name it in sensitive_features=, or pass y=.", "Name it in --group, or pass --label."),
        (
            "Use loss='error', gap=0.5 or min_people=30.",
            "Use --loss error, --gap 0.5 or --min-people 30.",
        ),
        (
            "List them: decisions=[...], or fewer than min_people.",
            "List them: --decisions, or fewer than --min-people.",
        ),
        ("Name it: missing_labels=MissingLabels(label_proba=column).", "Name it: --label-proba column."),
        (
            "MissingLabels(max_odds_ratio=3) or MissingLabels(label_proba=...)",
            "--max-odds-ratio 3 or --label-proba",
        ),
        ("Leave random_state= out.", "Leave random_state= out."),  # which an audit does not have
        (
            "Add --score baseline=score, of the column 'gap=2'.",
            "Add --score baseline=score, of the column 'gap=2'.",
        ),
        ("The happiness (gap==2) of a min_people_2", "The happiness (gap==2) of a min_people_2"),
        ("Pass score={class: column}, gap={'a b': 1}.", "Pass --score class=column, --gap 'a b'=1."),
        ("Say name='funding', or happiness='a b'.", "Say --name funding, or --happiness 'a b'."),
        ("Widen bounds=(low, high), or min_people==2.", "Widen bounds=(low, high), or min_people==2."),
    ],
)
def test_messages_name_options_of_the_command(text, expected):
    """An argument that the command has as an option is printed as it is typed; everything else stays."""
    options = {option_name(parameter) for parameter in commands()["audit"].values()}
    assert with_options(text, options) == expected
    assert not foreign_options(expected, options)


def test_options_of_other_commands_are_foreign():
    """The test of every error sees an option that the command does not have, and knows the commands by name."""
    assert foreign_options("Leave --seed out, or --gap.", {"--gap"}) == ["--seed"]
    assert not foreign_options("Use felicific fit --seed 0.", {"--gap"})


def test_a_policy_remembers_its_columns(folder, works):
    """What was named when it was fitted, the key too, need not be named when it decides."""
    works(f"{FIT} --gap 100 --key id")
    works(f"{APPLY} --out named.csv")
    works("apply policy.json scores.csv --out decided.csv")
    assert Path("decided.csv").read_text() == Path("named.csv").read_text()


def test_one_thing_is_audited(folder, works, felicific):
    """A policy and a column of decisions together do not say what is audited."""
    works(f"{FIT} --gap 100")
    code, _, err = felicific(f"{AUDIT} --policy-file policy.json --score score")
    assert (code, "--predicted" in err, err.count("\n")) == (1, True, 1), err


def test_a_tested_gap_is_said_to_be_for_one_look(folder, works, felicific):
    """Once on the screen, in JSON and on the page, as a command; also where --require ends with 4."""
    shown = [works(f"{AUDIT} --gap 100 --out page.html"), works(f"{AUDIT} --gap 100 --json")]
    shown += [Path("page.html").read_text("utf-8"), felicific(f"{AUDIT} --gap 100 --require")[1]]
    for text in shown:
        flat = " ".join(text.split())
        assert flat.count("for one look") == flat.count("look again and again use monitor.") == 1
    assert "one look" not in works(AUDIT)


@pytest.fixture
def applicants(folder, scores):
    """A file with two columns of groups, of which one is missing here and there and has a rare value."""
    race = np.where(np.arange(len(scores)) % 60 == 7, "rare", np.where(np.arange(len(scores)) % 3, "a", "b"))
    frame = scores.assign(race=race, sex=scores["sex"].where(np.arange(len(scores)) % 20 != 0))
    frame.to_csv("applicants.csv", index=False)
    return frame


RATIOS = (
    'audit applicants.csv --decision approved --happiness "decision == 1" --name yes --missing-group unknown'
)


def test_ratios_are_those_of_the_library(applicants, works):
    """One comparison for each --between; text, JSON and CSV hold what the library finds, and say four-fifths."""
    line = f"{RATIOS} --group sex --group race --ratios --between sex --between race,sex --min-people .02"
    frame = applicants.assign(
        sex=applicants["sex"].astype(object).where(applicants["sex"].notna(), "unknown")
    )
    expected = audit(
        "approved",
        frame,
        happiness={"yes": "decision == 1"},
        sensitive_features=["sex", "race"],
        min_people=0.02,
    ).with_ratios("sex", ["race", "sex"], min_people=0.02)
    out = works(line)
    assert out.count("Four-fifths: ") == 2
    for ratios in expected.shown_ratios:
        assert str(ratios) in out
    assert "Not compared: Female & rare" in out
    found = json.loads(works(f"{line} --json --out ratios.csv"))["ratios"]
    assert found == json.loads(json.dumps([ratios.to_dict() for ratios in expected.shown_ratios]))
    rows = pd.read_csv("ratios.csv")
    assert rows[rows["what"] == "ratio between sex"]["estimate"].tolist() == pytest.approx(
        [row.ratio for row in expected.shown_ratios[0]["yes"].rows], rel=1e-12
    )
    assert "Four-fifths" not in works(f"{RATIOS} --group sex")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--group sex --between sex", "Add --ratios"),
        ("--group sex --ratios --between race", "attributes of the groups are 'sex'"),
        ("--group race --ratios --min-people 500", "500 people"),
        ("--group sex --ratios --missing-group ''", "--missing-group is empty"),
        ("--group sex --ratios --happiness 'decision - 1'", "--name"),
    ],
)
def test_ratios_that_cannot_be_had(applicants, felicific, options, words):
    """Each is one line that says what to do."""
    code, out, err = felicific(f"{RATIOS} {options}")
    assert (code, out, err.count("\n")) == (1, "", 1), err
    assert words in err


def test_no_ratio_of_what_can_be_negative(applicants, felicific):
    """It is refused where nothing else is asked for."""
    line = "audit applicants.csv --decision approved --happiness 'decision * loan - 5' --group race --ratios"
    code, out, err = felicific(line)
    assert (code, out, "can be negative" in err) == (1, "", True)


def test_wrong_expressions_point(folder, felicific):
    """A wrong expression is shown with a caret under the part that is wrong."""
    code, out, err = felicific(AUDIT.replace(FUNDING, "decision * (loan"))
    assert (code, out) == (1, "")
    assert "\n    decision * (loan\n               ^\n" in err
    code, _, err = felicific(AUDIT.replace(FUNDING, "9**9**9**9"))
    assert (code, "^^^^" in err) == (1, True)


def test_names_that_a_terminal_would_obey(folder, works, felicific, scores):
    """Escape sequences in the names of groups, columns and measures reach no terminal."""
    evil = "\x1b[31m\x07Female\r\n"
    renamed = scores.assign(sex=scores["sex"].replace("Female", evil)).rename(columns={"loan": evil})
    renamed.to_parquet("evil.parquet")
    happiness = f"decision * x[{evil!r}]"
    line = "--label repaid --group sex --happiness"
    for command in (
        "audit evil.parquet --decision approved",
        "frontier evil.parquet --score score",
        "fit evil.parquet --score score --gap 100",
    ):
        for more in ((), ("--json", "--force") if "fit" in command else ("--json",)):
            out = works(f"{command} {line}", happiness, *more)
            assert not set("\x1b\x07\r") & set(out), command
    works("apply policy.json evil.parquet --score score --group sex --key id --out decided.parquet")
    code, _, err = felicific(f"audit evil.parquet --decision '{evil}x' {line}", happiness)
    assert (code, err.count("\n")) == (1, 1)
    assert not set("\x1b\x07\r") & set(err)


def test_debug_shows_where(folder):
    """``--debug``, anywhere on the line, lets the error through with its traceback."""
    with pytest.raises(ValueError, match="aproved"):
        run([*shlex.split(AUDIT.replace("approved", "aproved")), "--debug"])


def test_unexpected_errors_ask_for_a_report(folder, felicific, monkeypatch):
    """Even an error of our own is one line."""
    monkeypatch.setattr("felicific.cli.people.People.find", lambda *_, **__: 1 / 0)
    code, _, err = felicific(AUDIT)
    assert code == 1
    assert err.startswith("felicific: unexpected ZeroDivisionError")
    assert err.count("\n") == 1


def test_existing_files_are_kept(folder, works, felicific):
    """A file that exists is kept unless --force says otherwise."""
    for line, name in (
        (f"{AUDIT} --out kept.csv", "kept.csv"),
        (f"{FIT} --gap 0 --out kept.json", "kept.json"),
        (FIT.replace("fit", "frontier").replace("--seed 0", "--out kept2.json"), "kept2.json"),
        (FIT.replace("fit", "frontier").replace("--seed 0", "--chart kept.png"), "kept.png"),
        (f"{APPLY} --out kept3.csv".replace("policy", "kept"), "kept3.csv"),
    ):
        works(line)
        content = Path(name).read_bytes()
        Path(name).write_bytes(b"precious")
        code, _, err = felicific(line)
        assert (code, "--force" in err) == (1, True)
        assert Path(name).read_bytes() == b"precious"
        works(f"{line} --force")
        assert len(Path(name).read_bytes()) == len(content) or name == "kept.json"
        if name == "kept.json":
            assert load(name)


@pytest.mark.parametrize(
    "line", [f"{AUDIT} --out out.json", f"{FIT} --gap 0 --out out.json", f"{APPLY} --out out.csv"]
)
@pytest.mark.parametrize(
    ("error", "code", "word"),
    [
        (OSError(28, "No space left on device"), 1, "No space left on device"),
        (PermissionError(13, "Permission denied", "out"), 1, "Permission denied: 'out'"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 1, "out of memory"),
    ],
)
def test_nothing_is_left_of_a_failed_write(folder, works, felicific, monkeypatch, line, error, code, word):
    """A full disk, a forbidden folder and Ctrl-C at the last moment leave the old file and no other."""
    works(f"{FIT} --gap 100")
    Path("out.json").write_bytes(b"precious")
    Path("out.csv").write_bytes(b"precious")
    before = sorted(os.listdir())

    def fail(descriptor):
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    found, _, err = felicific(f"{line} --force")
    assert found == code
    assert word in err
    assert err.count("\n") == 1
    assert sorted(os.listdir()) == before
    assert {Path(name).read_bytes() for name in ("out.json", "out.csv")} == {b"precious"}


#: For processes that are started in another folder.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(sys.modules["felicific"].__file__).parent.parent)}


def process_of(line, **options):
    """The command as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "felicific", *shlex.split(line)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        **options,
    )


def test_a_full_disk(folder, works):
    """When the disk takes no more bytes the old file stays, the new one vanishes, and one line says why."""
    import resource

    works(f"{FIT} --gap 100")
    before = sorted(os.listdir())
    process = process_of(
        f"{APPLY} --out big.csv", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    )
    _, err = process.communicate()
    assert process.returncode == 1
    assert "File too large" in err
    assert err.count("\n") == 1
    assert sorted(os.listdir()) == before


def test_ctrl_c(folder):
    """Ctrl-C while a file is being waited for ends with 130 and one line."""
    os.mkfifo("slow.csv")
    process = process_of(AUDIT.replace("scores.csv", "slow.csv"))
    time.sleep(2.5)  # by then it waits for somebody to write into the pipe
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode in (130, -signal.SIGINT)
    assert out == ""
    assert err == "felicific: interrupted; no file is half-written.\n"


@pytest.mark.slow
def test_sigterm_leaves_no_files(folder, works):
    """SIGTERM while decisions are written, or while a file is waited for, ends with 143 and leaves nothing behind."""
    works(f"{FIT} --gap 100")
    os.mkfifo("slow.csv")
    before = sorted(os.listdir())
    for line in (
        f"{APPLY.replace('scores.csv', 'slow.csv')} --out out.csv",
        AUDIT.replace("scores.csv", "slow.csv"),
    ):
        process = process_of(line)
        time.sleep(2.5)  # by then it waits for somebody to write into the pipe
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out) == (143, "")
        assert "Traceback" not in err
        assert "leaked" not in err
        assert sorted(os.listdir()) == before


#: Stops in the middle of writing, and says so.
WRITES = """
import sys, time
from pathlib import Path
import felicific._files as files
real = files.os.fsync
def wait(descriptor):
    print("writing", flush=True)
    for _ in range(600):  # a signal that comes just before a sleep begins is heard when it ends
        time.sleep(0.1)
files.os.fsync = wait
sys.argv = ["felicific", *{words!r}]
from felicific.__main__ import main
main()
"""


@pytest.mark.parametrize(
    "line", [f"{AUDIT} --out out.json", f"{FIT} --gap 0 --out out.json", f"{APPLY} --out out.csv"]
)
def test_sigterm_in_the_middle_of_writing(folder, works, line):
    """The new file vanishes, the old one stays, and the exit code is that of SIGTERM."""
    works(f"{FIT} --gap 100")
    Path("out.json").write_bytes(b"precious")
    Path("out.csv").write_bytes(b"precious")
    before = sorted(os.listdir())
    code = WRITES.format(words=shlex.split(f"{line} --force"))
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        assert next(line for line in process.stdout if line.strip()) == "writing\n"
        assert len(os.listdir()) == len(before) + 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 143
    assert sorted(os.listdir()) == before
    assert {Path(name).read_bytes() for name in ("out.json", "out.csv")} == {b"precious"}


def test_a_seed_is_noted_when_a_policy_is_saved(folder):
    """--seed makes draws that anybody can compute, which is said in one line; without it there is nothing to say."""
    line = f"{FIT} --policy label --gap 0 --out seeded.json --force"
    process = process_of(line)
    _, err = process.communicate()
    assert process.returncode == 0
    assert err.startswith("felicific: note: The salt of this policy comes from a seed")
    assert err.endswith("or leave --seed out.\n")
    process = process_of(line.replace("--seed 0", ""))
    assert (process.communicate()[1], process.returncode) == ("", 0)


def test_a_reader_that_leaves(folder):
    """``felicific ... | head -1`` ends quietly."""
    process = process_of(AUDIT)
    process.stdout.close()
    with process.stderr as stream:
        assert stream.read() == ""
    process.wait()


def test_require(folder, works, felicific):
    """--require ends with 4 unless the gap is shown to be small enough."""
    rates = AUDIT.replace("'decision * loan' --unit $", "statistical_parity")
    works(f"{rates} --gap 0.95 --require")
    for line in (f"{AUDIT} --gap 100000 --require", f"{rates} --gap 0.001 --require"):
        assert felicific(line)[0] == 4  # of loans nobody knows how large they are
    code, out, err = felicific(f"{AUDIT} --gap 1 --require")
    assert (code, err) == (4, "")
    assert "Gap at most $1" in out


# ---------------------------------------------------------------------------------------------------------
# Help


def commands():
    """Every command's name and the parameters that typer makes options of."""
    found = {}
    for command in app.registered_commands:
        parameters = dict(inspect.signature(command.callback).parameters)
        del parameters["context"]
        found[command.callback.__name__.replace("_", "-")] = parameters
    return found


def option_name(parameter):
    """What is typed."""
    [about] = parameter.annotation.__metadata__
    return about.default if isinstance(about.default, str) else f"--{parameter.name.replace('_', '-')}"


#: Options whose meaning, not only their value, is a command's own.
OWN_MEANING = {
    "alternatives": {"--confidence", "--score"},
    "apply": {
        "--group",
        "--happiness",
        "--with-proba",
        "--policy",
    },  # an argument there: the file of the policy
    "audit": {"--confidence", "--group-name", "--label"},  # groups that are compared
    "compare": {"--confidence"},
    "demo": {"--seed"},
    "explain": {"--group", "--happiness", "--policy"},  # as of apply
    "fit": {"--test"},
    "aggregate": {"--files"},
    "recalibrate": {"--policy"},
    "report": {"--signed"},
    "show": {"--happiness", "--policy"},
    "sql": {"--group", "--policy"},  # as of apply
    "monitor": {"--confidence", "--label", "--policy-file"},
}


def test_shared_options_are_defined_once():
    """An option of two commands is one object with one help text, unless it is known to mean something else."""
    defined = {}
    for command, parameters in commands().items():
        for parameter in parameters.values():
            option = option_name(parameter)
            if option != "--out" and option not in OWN_MEANING.get(command, ()):
                [about] = parameter.annotation.__metadata__
                defined.setdefault(option, {})[command] = about
    for option, uses in defined.items():
        assert len(set(map(id, uses.values()))) == 1, (option, list(uses))
    assert len(defined["--score"]) >= 8
    assert len(defined["--force"]) >= 12


def test_the_test_of_options_is_not_too_kind():
    """What is excepted from the test above is there, and is shared with another command."""
    found = {name: set(map(option_name, parameters.values())) for name, parameters in commands().items()}
    for command, options in OWN_MEANING.items():
        for option in options:
            others = [name for name, theirs in found.items() if name != command and option in theirs]
            assert option in found[command], (command, option)
            assert others, (command, option)


@pytest.mark.parametrize("command", commands())
def test_help_lists_every_option_in_its_panel(command, works, monkeypatch):
    """Help has the panels in their order, and in each of them its options, what is required first."""
    monkeypatch.setenv("COLUMNS", "200")
    text = works(f"{command} --help")
    asked = [p for p in commands()[command].values() if isinstance(p.annotation.__metadata__[0], OptionInfo)]
    panels = {}
    for parameter in asked:
        panels.setdefault(parameter.annotation.__metadata__[0].rich_help_panel, []).append(parameter)
    assert [panel for panel in panels if panel is not None] == [panel for panel in PANELS if panel in panels]
    titles = [line.split("─ ")[1].split(" ─")[0] for line in text.splitlines() if line.startswith("╭─ ")]
    assert [title for title in titles if title in PANELS] == [panel for panel in panels if panel is not None]
    for panel, parameters in panels.items():
        part = text.split(f"─ {panel or 'Options'} ─")[1].split("╰─")[0]
        places = [part.index(f" {option_name(parameter)} ") for parameter in parameters]
        assert places == sorted(places), panel
        for parameter in parameters:
            assert parameter.annotation.__metadata__[0].help[:60] in part, parameter.name
        needed = [parameter.default is parameter.empty for parameter in parameters]
        assert needed == sorted(needed, reverse=True), panel


def test_the_people_and_what_is_measured_are_asked_everywhere(works):
    """The commands that look at people have all panels, but sql asks for nothing, and apply only with --steer."""
    for command in ("audit", "frontier", "fit", "report"):
        text = works(f"{command} --help")
        assert all(f"─ {panel} ─" in text for panel in PANELS), command
    assert "─ What is asked ─" not in works("sql --help")
    panel = works("apply --help").partition("─ What is asked ─")[2].partition("╰")[0]
    assert set(re.findall(r"--[a-z]+", panel)) == {"--gap", "--pace", "--reach", "--steer"}


def test_help_has_an_example_each(works, monkeypatch):
    """Every command has help with an example, and the help of all says what the exit codes mean."""
    monkeypatch.setenv("COLUMNS", "200")
    assert {"apply", "audit", "demo", "fit", "frontier", "monitor"} <= set(commands())
    for command in commands():
        assert f"Example: felicific {command}" in works(f"{command} --help")
    assert "Exit codes: 0 done; 1" in works("--help")
    assert works("--version").strip()


def test_help_is_light():
    """Help imports neither NumPy nor anything heavier."""
    code = "import sys\nfrom felicific.cli import run\nrun(['--help'])\nprint('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("False")


def test_completion():
    """A shell completes the commands."""
    environment = {
        **os.environ,
        "_FELICIFIC_COMPLETE": "complete_bash",
        "COMP_WORDS": "felicific ",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from felicific.cli import run; sys.exit(run([]))"],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert set(commands()) <= set(done.stdout.split())


def test_the_command_line_says_that_every_group_loses(folder, works, scores):
    """Fit and the audit of its policy say it in the library's words, and that there is nothing to repair."""
    out = works(f"{FIT} --gap 100000 --budget 2000")
    policy = load("policy.json")
    for start in ("Every group loses: ", "Nothing to repair: "):
        (said,) = [sentence for sentence in policy.sentences() if sentence.startswith(start)]
        assert said in out
    make_scores(seed=1).to_csv("others.csv", index=False)
    audited = AUDIT.replace(
        "scores.csv --decision approved", "others.csv --policy-file policy.json --score score"
    )
    assert "Every group loses: on these rows, compared with the model's decisions, mean" in works(audited)


def test_the_command_line_names_people_without_a_label(folder, felicific, scores):
    """How many of which group have none; it is not said that they may simply be left out."""
    scores.assign(repaid=scores["repaid"].where(scores.index > 9).astype("Int64")).to_csv(
        "scores.csv", index=False
    )
    women = (scores["sex"][:10] == "Female").sum()
    code, out, err = felicific(AUDIT)  # of which only the loss looks at labels, and nobody asked for it
    assert code == 0, err
    assert (
        "The loss needs labels, and they are missing in 10 rows: say what is known of them (missing_labels)."
        in out
    )
    for line in (f"{FIT} --gap 0", f"{FIT} --gap 0 --policy individual"):
        code, _, err = felicific(line)
        assert code == 1, err
        told = " ".join(err.split())
        assert f"{100 * women / (scores['sex'] == 'Female').sum():.0f} % of 'Female'" in told
        assert (
            "Say what is known: --missing-labels at_random, --label-proba column, --max-odds-ratio 3 or 'unknown'"
            in told
        )
        assert "Drop the rows only if labels were lost by chance" in told


def test_money_and_accuracy_are_written_alike_everywhere(folder, works):
    """A currency before the number, the error rate as an accuracy in per cent, in every command."""
    outputs = [
        works(AUDIT + " --gap 16000"),
        works(f"{FIT} --gap 0"),
        works(FIT.replace("fit", "frontier", 1).replace(" --seed 0", "")),
    ]
    for out in outputs:
        assert "accuracy" in out
        assert "loss per person" not in out
        assert not re.search(r"[0-9] [$]", out)
        assert re.search(r"[$][0-9]", out)
    assert "Gap at most $16,000: " in outputs[0]


def test_the_cost_of_changes_on_the_command_line(folder, works, scores):
    """--change-cost is that of the library: a number, or auto, which is found on the file's rows and is the default."""
    line = f"fit scores.csv --score score --label repaid --group sex --happiness '{FUNDING}' --gap 100 --seed 0 --force"
    sums = aggregate(scores, score="score", y="repaid", sensitive_features="sex", happiness=FUNDING)
    for cost in (0, 0.07):
        told = json.loads(works(f"{line} --change-cost {cost} --json"))
        policy = solve(sums, gap=100, change_cost=cost, random_state=0)
        assert told["change_cost"] == cost == load("policy.json").change_cost
        assert told["fitted"]["loss"] == pytest.approx(policy.loss)
        assert told["unconstrained"]["loss"] == pytest.approx(policy.outcomes["unconstrained"].loss)
        assert told["fitted"]["shares"]["changed"] == pytest.approx(policy.outcome.changed.tolist())
    printed = works(line)
    policy = load("policy.json")
    assert policy.change_cost == "auto"
    assert all(sentence in printed for sentence in policy.impact())
    assert printed == works(f"{line} --change-cost auto")
    assert json.loads(works(f"{line} --policy label --json"))["change_cost"] == 0.0


def test_changes_alone_need_no_label_on_the_command_line(folder, works, felicific, scores):
    """--loss changes fits without --label; what looks at labels, or nothing that says the classes, is one line."""
    scores.drop(columns="repaid").to_csv("blank.csv", index=False)
    line = f"fit blank.csv --score score --group sex --happiness '{FUNDING}' --gap 100 --seed 0 --force"
    told = json.loads(works(f"{line} --baseline approved --loss changes --json"))
    both = json.loads(
        works(line.replace("blank", "scores") + " --label repaid --baseline approved --loss changes --json")
    )
    assert told["fitted"] == both["fitted"]
    assert told["baseline"]["loss"] == 0.0
    code, _, words = felicific(f"{line} --baseline approved")
    assert (code, words.count("\n")) == (1, 1)
    assert "There are no labels y, and the loss looks at them. Name their column in --label" in words
    code, _, words = felicific(f"{line} --loss changes")
    assert code == 1
    assert "Name the baseline with --baseline" in words
    code, _, words = felicific(f"{line} --baseline approved --loss changes --change-cost much")
    assert "--change-cost is 'much', which is no number" in words


# ---------------------------------------------------------------------------------------------------------
# Alternatives


SEARCH = "alternatives scores.csv --score baseline=score --score other=other --label repaid --group sex "


@pytest.fixture
def rivals(folder):
    """The file with another model's score, which is worse."""
    rows = make_scores(1200)
    rng = np.random.default_rng(5)
    rows["other"] = np.round(np.clip(rows["score"] + 0.1 * rng.normal(size=len(rows)), 0, 1), 3)
    rows.to_csv("scores.csv", index=False)
    return rows


def test_alternatives_are_those_of_the_library(rivals, felicific):
    """The command line finds what Python finds in the same file; the policy that is written is the best one."""
    from felicific import alternatives

    line = SEARCH + "--happiness 'decision * loan' --loss-slack 0.05 --unit $ --bounds 0,200000"
    code, out, err = felicific(f"{line} --json --best best.json --out a.json --chart a.svg")
    assert (code, err) == (0, "")
    content = json.loads(out)
    happiness = Happiness(FUNDING, unit="$", bounds=(0, 200_000))
    asked = {"happiness": happiness, "sensitive_features": "sex", "loss_slack": 0.05}
    same = alternatives(
        {"baseline": "score", "other": "other"},
        pd.read_csv("scores.csv", dtype={"id": str}),
        "repaid",
        **asked,
    )
    assert content == json.loads(json.dumps(same.to_dict()))
    assert content == json.loads(Path("a.json").read_text())
    assert content["found"] == (Path("best.json").exists())
    assert Path("a.svg").read_text().startswith("<svg")
    assert content["least_gap"]["note"] == ""
    code, out, _ = felicific(line + " --out a.csv")
    assert code == 0
    assert "Written to a.csv." in out
    assert list(pd.read_csv("a.csv")["candidate"]) == ["baseline", "other"]
    code, _, err = felicific(line + " --out a.csv")
    assert code == 1
    assert "--force" in err


def test_alternatives_whose_first_class_is_the_best(rivals, felicific):
    """A score is that of the last class, whichever is the best."""
    rivals.to_csv("scores.csv", index=False)
    found = []
    for decisions in ("0,1", "1,0"):
        code, out, _ = felicific(SEARCH + f"--happiness demographic_parity --json --decisions {decisions}")
        assert code == 0
        found.append(json.loads(out)["baseline"])
    assert found[0]["loss"] == found[1]["loss"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--score score", "does not name a candidate"),
        ("--score a=score --score a=other", "Two candidates are called 'a'"),
        ("", "no candidates"),
        ("--score a=scores", "no column 'scores'"),
        ("--score a=sex", "holds text"),
        ("--score a=score --loss-slack=-1", "--loss-slack is -1"),
        ("--score a=score --loss-slack 5", "--loss-slack is 5"),
        ("--score a=score --predicted approved", "Leave it out"),
        ("--score a=score --confidence 95", "95"),
        ("--score a=score --best policy.txt", ".json"),
    ],
)
def test_alternatives_typed_wrongly(rivals, felicific, line, words):
    """What cannot be searched is refused in one line that names the option."""
    code, out, err = felicific(
        f"alternatives scores.csv --label repaid --group sex --happiness decision {line}"
    )
    assert (code, out) == (1, "")
    assert words in err
    assert err.count("\n") == 1


def test_alternatives_of_many_classes(rivals, felicific):
    """One column cannot hold the probabilities of three classes."""
    rivals.assign(repaid=np.arange(len(rivals)) % 3).to_csv("scores.csv", index=False)
    code, _, err = felicific(SEARCH + "--happiness 'decision == 1'")
    assert code == 1
    assert "3 classes" in err
