"""Ratios, attributes, small and missing groups on the command line: the library's numbers, and clear messages."""

import json

import numpy as np
import pandas as pd
import pytest

from felicific import Gap, Policy, Ratio, frontier, moments, solve
from felicific.cli import run

pytestmark = pytest.mark.filterwarnings("ignore:The salt of this policy comes from a seed")

COMMON = "--proba score --label repaid --group sex --group race --happiness decision"
ROLES = {
    "proba": "score",
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
    return code, found.out, found.err


def test_fit_asks_for_what_the_library_asks(table, capsys):
    """Of the ratio and the gap, each between every attribute that is named, and no other gap."""
    sums = moments(table, **ROLES)
    for options, constraints in (
        ("--ratio .8 --between sex --min-people 30", [Ratio("decision", 0.8, between="sex", min_people=30)]),
        ("--ratio decision=.7", [Ratio("decision", 0.7)]),
        (
            "--gap .05 --between sex --between race --min-people .1",
            [Gap("decision", 0.05, between=name, min_people=0.1) for name in ("sex", "race")],
        ),
        ("--between sex,race", [Gap("decision", 0.0, between=["sex", "race"])]),
        (
            "--gap .1 --ratio .9 --between sex",
            [Ratio("decision", 0.9, between="sex"), Gap("decision", 0.1, between="sex")],
        ),
        ("--min-people 40", [Gap("decision", 0.0, min_people=40)]),
    ):
        code, out, err = call(
            f"fit all.csv {COMMON} {options} --seed 0 --change-cost 0 --force --json", capsys
        )
        assert code == 0, err
        policy, wanted = Policy.load("policy.json"), solve(sums, constraints=constraints)
        assert policy.loss == pytest.approx(wanted.loss, abs=1e-12)
        assert policy.reached == pytest.approx(wanted.reached)
        assert policy.not_constrained == wanted.not_constrained
        said = json.loads(out)["requirements"]
        assert [part["asked"] for part in said] == list(wanted.reached)


def test_the_frontier_of_a_ratio_and_of_an_attribute(table, capsys):
    """A ratio by its values, a gap between sexes by its breakpoints; a chart of the first is refused by name."""
    sums = moments(table, **ROLES)
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
    assert "policies along a Ratio do not mix" in err


def test_people_without_a_group_have_a_name(table, capsys):
    """They are in the policy, its file and its sentences; without a name they are an error."""
    code, out, err = call(f"fit some.csv {COMMON} --gap .05 --between sex --missing-group unknown", capsys)
    assert code == 0, err
    policy = Policy.load("policy.json")
    assert policy.unknown == "unknown"
    assert next(iter(policy.not_constrained.values())).keys() == {"unknown"}
    assert "'unknown'" in out
    assert call(f"fit some.csv {COMMON} --gap .05 --force", capsys)[0] == 1


def test_every_command_takes_people_without_a_group(table, capsys):
    """Fit, report, frontier, alternatives and audit name them; apply and an audit of a policy know their name from it.

    Of people who all have a group, the same commands speak too.
    """
    said = f"{COMMON} --missing-group unknown"
    for file, other in (("some.csv", "all.csv"), ("all.csv", "all.csv"), ("some.csv", "some.csv")):
        for line in (
            f"fit {file} {said} --gap .2 --force --seed 0",
            f"report {file} {said} --gap .2 --test {other} --out report.html --force",
            f"report {file} {said} --gap .2 --out report.json --force --seed 0",
            f"frontier {file} {said}",
            f"alternatives {file} {said.replace('--proba score', '--proba today=score')}",
            f"apply policy.json {other} --proba score --group sex --group race --out decided.csv --force",
            f"audit {other} --policy-file policy.json {said}",
            f"audit {other} --policy-file policy.json {COMMON}",
        ):
            code, _, err = call(line, capsys)
            assert code == 0, (line, err)
    decided, written = pd.read_csv("decided.csv"), Policy.load("policy.json")
    assert len(decided) == len(table)
    assert any("unknown" in group for group in written.groups)
    assert call(f"fit all.csv {COMMON} --gap .2 --force --seed 0", capsys)[0] == 0
    for line in (
        "apply policy.json some.csv --proba score --group sex --group race --out decided.csv --force",
        f"audit some.csv --policy-file policy.json {said}",
    ):
        code, _, err = call(line, capsys)
        assert code == 1
        assert "fit again: with --missing-group unknown" in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--ratio 8", "at most 1"),
        ("--ratio four", "no number"),
        ("--ratio .8 --between age", "between is 'age'"),
        ("--ratio .8 --min-people 1000", "smaller min_people"),
        ("--ratio .8 --min-people -1", "min_people is -1"),
        ("--ratio loan=.8", "no component"),
        ("--ratio .8 --confidence .9", "Ratio"),
    ],
)
def test_what_cannot_be_asked_is_said(table, capsys, options, words):
    """One message, no file."""
    code, _, err = call(f"fit all.csv {COMMON} {options} --out none.json", capsys)
    assert code == 1
    assert words in err


def test_the_report_names_what_was_asked(table, capsys):
    """In words."""
    code, _, err = call(
        f"report all.csv {COMMON} --ratio .8 --between sex --seed 0 --out report.json", capsys
    )
    assert code == 0, err
    with open("report.json") as file:
        content = json.load(file)
    assert content["policy"]["constraints"] == ["mean 'decision' of every sex at least 0.8 of the highest"]
    code, _, err = call(
        f"report all.csv {COMMON} --ratio .8 --between sex --seed 0 --out report.html", capsys
    )
    assert code == 0, err
    with open("report.html") as file:
        assert "of every sex at least 0.8 of the highest" in file.read()
