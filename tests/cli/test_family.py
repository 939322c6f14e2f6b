"""Ratios, attributes, small and missing groups on the command line: the library's numbers, and clear messages."""

import json

import numpy as np
import pandas as pd
import pytest
from helpers import python_words

from felicific import Gap, Ratio, aggregate, frontier, load, solve
from felicific.cli import run

pytestmark = [
    pytest.mark.filterwarnings("ignore:The salt of this policy comes from a seed"),
    pytest.mark.filterwarnings("always::felicific.exceptions.FittedRowsWarning"),
    pytest.mark.filterwarnings("always::felicific.exceptions.PolicyWarning"),
]

COMMON = "--score score --label repaid --group sex --group race --happiness decision"
ROLES = {
    "score": "score",
    "y": "repaid",
    "sensitive_features": ["sex", "race"],
    "happiness": "decision",
}


@pytest.fixture
def table(tmp_path, monkeypatch):
    """People of two attributes, of whom some have no sex, in a file; those who have are in another."""
    rng = np.random.default_rng(0)
    n = 400
    sex, race = rng.choice(["f", "m"], n), rng.choice(["a", "b", "c"], n, p=[0.6, 0.36, 0.04])
    score = np.round(np.clip(rng.beta(2, 2, n) + 0.2 * (sex == "m"), 0, 1), 2)
    frame = pd.DataFrame(
        {"sex": sex, "race": race, "score": score, "repaid": (rng.random(n) < score).astype(int)}
    )
    monkeypatch.chdir(tmp_path)
    frame.to_csv("all.csv", index=False)
    frame.assign(sex=frame["sex"].where(rng.random(n) < 0.9)).to_csv("some.csv", index=False)
    return frame


def call(line, capsys):
    """Run a command; return exit code, output and messages."""
    code = run(line.split())
    found = capsys.readouterr()
    assert not python_words(found.err), found.err
    return code, found.out, found.err


def test_fit_asks_for_what_the_library_asks(table, capsys):
    """Of the ratio and the gap, each between every attribute that is named, and no other gap."""
    sums = aggregate(table, **ROLES)
    for options, constraints in (
        ("--ratio .8 --between sex --min-people 30", [Ratio("decision", 0.8, between="sex", min_people=30)]),
        ("--ratio decision=.7", [Ratio("decision", 0.7)]),
        (
            "--gap .05 --between sex --between race --min-people .1",
            [Gap("decision", 0.05, between=name, min_people=0.1) for name in ("sex", "race")],
        ),
        ("--gap 0 --between sex,race", [Gap("decision", 0.0, between=["sex", "race"])]),
        (
            "--gap .1 --ratio .9 --between sex",
            [Ratio("decision", 0.9, between="sex"), Gap("decision", 0.1, between="sex")],
        ),
        ("--gap 0 --min-people 40", [Gap("decision", 0.0, min_people=40)]),
    ):
        code, out, err = call(
            f"fit all.csv {COMMON} {options} --seed 0 --change-cost 0 --force --json", capsys
        )
        assert code == 0, err
        policy, wanted = load("policy.json"), solve(sums, constraints=constraints)
        assert policy.loss == pytest.approx(wanted.loss, abs=1e-12)
        assert policy.reached == pytest.approx(wanted.reached)
        assert policy.not_constrained == wanted.not_constrained
        said = json.loads(out)["requirements"]
        assert [part["asked"] for part in said] == list(wanted.reached)


def test_the_frontier_of_a_ratio_and_of_an_attribute(table, capsys):
    """A ratio by its values, a gap between sexes by its breakpoints; a chart of the first is refused by name."""
    sums = aggregate(table, **ROLES)
    code, out, err = call(f"frontier all.csv {COMMON} --ratio .8 --between sex --json", capsys)
    assert code == 0, err
    line = frontier(sums, constraints=[Ratio("decision", 0.8, between="sex")])
    assert json.loads(out)["breakpoints"]["loss"] == pytest.approx(line.loss.tolist(), abs=1e-12)
    assert "at least 0.9" in call(f"frontier all.csv {COMMON} --ratio .8", capsys)[1]
    for kind in ("score", "individual"):
        code, out, err = call(f"frontier all.csv {COMMON} --between sex --policy {kind} --json", capsys)
        assert code == 0, err
        found = json.loads(out)["breakpoints"]
        assert found["tau"][0] == pytest.approx(0.0, abs=1e-9)
        assert max(found["gap of decision"]) > 0.05
    code, _, err = call(f"frontier all.csv {COMMON} --ratio .8 --chart chart.svg", capsys)
    assert code == 1
    assert "no gap moves along this frontier" in err


def test_people_without_a_group_have_a_name(table, capsys):
    """Then they are a group like any other; without a name they are an error."""
    code, out, err = call(f"fit some.csv {COMMON} --gap .05 --between sex --missing-group unknown", capsys)
    assert code == 0, err
    policy = load("policy.json")
    assert any(group.startswith("unknown & ") for group in policy.groups)
    assert "'unknown'" in out
    assert call(f"fit some.csv {COMMON} --gap .05 --force", capsys)[0] == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--ratio 8", "at most 1"),
        ("--ratio four", "no number"),
        ("--ratio .8 --between age", "between is 'age'"),
        ("--ratio .8 --min-people 1000", "smaller --min-people"),
        ("--ratio .8 --min-people -1", "--min-people is -1"),
        ("--ratio loan=.8", "no measure"),
        ("--ratio 1 --confidence .9", "can never be shown"),
        ("--ratio .8 --between sex,sex", "Name each attribute once"),
        (
            "--worse-off 0 --gap .1 --confidence .9 --policy soft-label",
            "Allow a little with --confidence: 0.01 of the people to lose",
        ),
        ("--gap 7", "five percentage points"),
        ("--gap .1 --change-cost -1", "--change-cost is -1"),
        ("--gap .1 --change-cost cheap", "--change-cost"),
        ("--gap .1 --without-group", "--group-proba GROUP=COLUMN; or use --policy score"),
        ("--gap .1 --policy label --without-group --group-proba f=score", "--group-proba"),
        ("--floor .9 --budget .1", "Relax or drop"),
    ],
)
def test_what_cannot_be_asked_is_said(table, capsys, options, words):
    """One message in the words of the command line, no file."""
    file = "some.csv" if "--missing" in options else "all.csv"
    code, _, err = call(f"fit {file} {COMMON} {options} --out none.json", capsys)
    assert code in (1, 3)
    assert words in err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("fit some.csv --gap .1", "--missing-group NAME"),
        ("audit some.csv --decision repaid", "--missing-group NAME"),
        ("report some.csv --gap .1", "--missing-group NAME"),
        ("alternatives some.csv", "--missing-group NAME"),
        ("audit all.csv --decision repaid --ratios --between age", "Name one of them, or several together"),
        ("audit all.csv --decision repaid --ratios --min-people 1000", "1,000 people"),
        ("alternatives all.csv --loss-slack 7", "--loss-slack is 7.0"),
        ("frontier all.csv --confidence .9", "No such option"),
    ],
)
def test_remedies_can_be_typed(table, capsys, line, words):
    """What to do is said in options of the command line, whichever command it is."""
    roles = COMMON.replace("--happiness decision", "--happiness score*decision")
    if line.startswith("alternatives"):
        roles = COMMON.replace("--score score", "--score baseline=score")
    if line.startswith("audit"):
        roles = roles.replace("--score score ", "")
    code, _, err = call(f"{line} {roles}", capsys)
    assert code in (1, 2)
    assert words in err


def test_the_kind_of_policy_is_chosen_as_in_python(table, capsys):
    """Score for two classes and a seen group, individual without the group; it is printed, and stands in the report."""
    believed = "--without-group " + " ".join(f"--group-proba {sex}=p_{sex}" for sex in "fm")
    table.assign(p_f=0.4, p_m=0.6).to_csv("all.csv", index=False)
    common = COMMON.replace(" --group race", "")
    for options, kind, why in (
        ("", "score", "there are two classes and the group is seen"),
        ("--policy auto", "score", "there are two classes and the group is seen"),
        (believed, "individual", "the group is not seen"),
        (f"{believed} --policy auto", "individual", "the group is not seen"),
        ("--policy individual", "individual", None),
    ):
        code, out, err = call(f"fit all.csv {common} {options} --gap .1 --force --seed 0", capsys)
        assert code == 0, err
        assert (f"Policy: {kind}, chosen because {why}." in out) == (why is not None)
        assert load("policy.json").kind == kind
        said = json.loads(call(f"fit all.csv {common} {options} --gap .1 --force --seed 0 --json", capsys)[1])
        assert (said["kind"], said["chosen"]) == (kind, why)
    assert call(f"report all.csv {common} {believed} --gap .1 --seed 0 --out report.json", capsys)[0] == 0
    with open("report.json") as file:
        assert json.load(file)["policy"]["chosen"] == "the group is not seen"
    code, out, err = call(f"frontier all.csv {common} {believed}", capsys)
    assert code == 0, err
    labels = common.replace("--score score", "--predicted repaid")
    assert (
        "chosen because the model has no predict_proba"
        in call(f"fit all.csv {labels} --gap .1 --force", capsys)[1]
    )


def test_what_every_group_loses_is_said_in_the_words_of_the_command_line(table, capsys):
    """Of a blind policy by score, which may level everybody down: by fit and by audit."""
    score = np.round(table["score"] ** 3, 2)
    repaid = (np.random.default_rng(1).random(len(table)) < score).astype(int)
    table.assign(score=score, repaid=repaid).to_csv("all.csv", index=False)
    common = COMMON.replace(" --group race", "")
    blind = f"fit all.csv {common} --policy score --without-group --gap .001 --change-cost 0 --force --seed 0"
    _, out, _ = call(blind, capsys)
    _, audited, _ = call(f"audit all.csv --policy-file policy.json {common}", capsys)
    for text in (out, audited):
        assert "Every group loses" in text
        assert "Add a floor of 'decision' at its baseline, or let the policy see more." in text
        assert not python_words(text)


def test_the_report_names_what_was_asked(table, capsys):
    """In words."""
    code, _, err = call(
        f"report all.csv {COMMON} --ratio .8 --between sex --seed 0 --out report.json", capsys
    )
    assert code == 0, err
    with open("report.json") as file:
        content = json.load(file)
    assert content["policy"]["requirements"] == ["mean 'decision' of every sex at least 0.8 of the highest"]
    code, _, err = call(
        f"report all.csv {COMMON} --ratio .8 --between sex --seed 0 --out report.html", capsys
    )
    assert code == 0, err
    with open("report.html") as file:
        assert "of every sex at least 0.8 of the highest" in file.read()
