"""Why, for one person, on the command line: of a row or a key, decided as `apply` decides, or one clear line."""

import json
import os
import shlex

import numpy as np
import pandas as pd
import pytest
from helpers import python_words

from felicific import load
from felicific._policy.explanation import NOT_LEGAL_REASONS
from felicific.cli import run

pytestmark = pytest.mark.filterwarnings("always::felicific.exceptions.LotteryWarning")

SEEN = {
    "score": "--score score --group sex",
    "individual": "--score score --group sex",
    "label": "--predicted approved --group sex",
    "blind": "--score score",
    "inferred": "--score score --group-proba f=f --group-proba m=m",
}
FITTED = {
    "score": "--score score --policy score",
    "individual": "--score score --policy individual",
    "label": "--predicted approved --policy label",
    "blind": "--score score --policy score --without-group",
    "inferred": "--score score --policy individual --without-group --group-proba f=f --group-proba m=m",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """People and policies of all kinds."""
    rng = np.random.default_rng(0)
    n = 600
    sex = rng.choice(["f", "m"], n)
    score = np.round(rng.beta(2, 2, n), 3)
    loan = np.round(rng.lognormal(3, 0.5, n) * np.where(sex == "f", 1.4, 1.0), 2)
    table = {
        "id": [f"{i:04d}" for i in range(n)],
        "sex": sex,
        "score": score,
        "loan": loan,
        "approved": (score > 0.5).astype(int),
        "repaid": (rng.random(n) < score).astype(int),
        "f": np.where(sex == "f", 0.7, 0.2),
    }
    frame = pd.DataFrame(table).assign(m=lambda x: 1.0 - x["f"])
    place = tmp_path_factory.mktemp("explain")
    before = os.getcwd()
    os.chdir(place)
    try:
        frame.to_csv("people.csv", index=False)
        frame.to_parquet("people.parquet", index=False)
        for kind, options in FITTED.items():
            gap = 3 if kind in ("blind", "inferred") else 1
            line = f"fit people.csv --label repaid --group sex --happiness decision*loan --gap {gap} --seed 1"
            assert run([*shlex.split(line), *shlex.split(options), "--out", f"{kind}.json"]) == 0
    finally:
        os.chdir(before)
    return place


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


@pytest.fixture
def felicific(capsys):
    def call(line):
        capsys.readouterr()
        code = run(shlex.split(line))
        captured = capsys.readouterr()
        assert not python_words(captured.err), captured.err
        return code, captured.out, captured.err

    return call


@pytest.mark.parametrize("kind", SEEN)
def test_a_person_is_explained_as_apply_decides(felicific, tmp_path, kind):
    """The decision and its probabilities are those that apply writes, by row and by key, in CSV and Parquet."""
    out = tmp_path / "decided.csv"
    code, _, _ = felicific(f"apply {kind}.json people.csv {SEEN[kind]} --key id --with-proba --out {out}")
    assert code == 0
    decided = pd.read_csv(out, dtype={"id": str})
    drawn = np.flatnonzero((decided["proba"] > 0) & (decided["proba"] < 1))[:1].tolist()
    assert drawn or kind == "score"
    for row in [599, *drawn]:
        line = f"explain {kind}.json {{}} {SEEN[kind]} --key id --baseline approved"
        answers = set()
        for asked in (f"people.csv --row {row}", f"people.parquet --id {decided['id'][row]}"):
            file, _, who = asked.partition(" ")
            code, text, _ = felicific(f"{line.format(file)} {who} --json")
            assert code == 0
            answers.add(text)
        assert len(answers) == 1
        found = json.loads(text)
        assert found["decision"] == decided["decision"][row]
        assert found["probabilities"][1][1] == pytest.approx(decided["proba"][row], abs=1e-12)
        assert found["baseline"] == decided["approved"][row]
        assert (found["draw"] is not None) == (0 < decided["proba"][row] < 1)
        assert load(f"{kind}.json").salt.removeprefix("seed-") not in text


def test_without_a_key_nothing_is_drawn(felicific):
    """Whoever faces a lottery has no decision then, and the probabilities are said."""
    policy = load("score.json")
    people = pd.read_csv("people.csv")
    probabilities = policy.probabilities(people["score"], people["sex"])
    row = int(np.flatnonzero(probabilities.max(axis=1) < 1.0)[0])
    code, text, _ = felicific(f"explain score.json people.csv {SEEN['score']} --row {row}")
    assert code == 0
    assert text.startswith("Decision: at random, ")
    assert "No key says who the person is" in text
    assert text.endswith(NOT_LEGAL_REASONS + "\n")


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("--row 600", 1, "There is no row 600: 'people.csv' has 600 rows, counted from 0."),
        ("--row -1", 2, "--row"),
        ("--row many", 2, "--row"),
        ("--id 0007", 1, "--id names a person, and no column says who people are. Name it: --key COLUMN."),
        ("--key id --id 9999", 1, "Nobody has '9999' in the column 'id'"),
        ("--key sex --id f", 1, "Several rows have 'f' in the column 'sex'"),
        ("", 1, "An explanation is of one person, and it is not said which. Name the row, --row 17,"),
        ("--row 1 --key id --id 0001", 1, "it is not said which"),
        ("--row 1 --key nobody", 1, "no column 'nobody'"),
        ("--row 1 --baseline sex", 1, "baseline is "),
    ],
)  # fmt: skip
def test_what_is_typed_wrongly_ends_in_one_line(felicific, line, code, message):
    """Nothing is printed but the line that says what to do."""
    found, out, err = felicific(f"explain score.json people.csv {SEEN['score']} {line}")
    assert (found, out) == (code, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_person_without_a_key_is_named_by_the_column(felicific, tmp_path):
    """A lottery that nobody can draw is refused for that row, and what helps is said."""
    people = pd.read_csv("people.csv", dtype={"id": "string"})
    people.loc[3, "id"] = None
    people.to_csv(tmp_path / "gap.csv", index=False)
    code, out, err = felicific(f"explain score.json {tmp_path}/gap.csv {SEEN['score']} --key id --row 3")
    assert (code, out) == (1, "")
    assert (
        err
        == "felicific: The key of that row is missing in the column 'id'. Leave --key out: nothing is drawn then.\n"
    )


def test_what_the_policy_needs_it_remembers(felicific):
    """Scores and the group are in the columns of the fit."""
    named = felicific("explain score.json people.csv --score score --group sex --row 1")
    assert felicific("explain score.json people.csv --row 1") == named
    assert felicific("explain nothing.json people.csv --row 1")[0] == 1


def test_names_of_a_file_cannot_command_the_terminal(felicific, tmp_path):
    """What a terminal would obey is not printed."""
    people = pd.read_csv("people.csv").assign(sex=lambda x: np.where(x["sex"] == "f", "\x1b[31mf", "m"))
    people.to_csv(tmp_path / "odd.csv", index=False)
    fit = f"fit {tmp_path}/odd.csv --label repaid --group sex --happiness decision --gap 0 --score score --seed 1"
    assert felicific(f"{fit} --out {tmp_path}/odd.json")[0] == 0
    code, text, _ = felicific(f"explain {tmp_path}/odd.json {tmp_path}/odd.csv {SEEN['score']} --row 0")
    assert code == 0
    assert "\x1b" not in text
