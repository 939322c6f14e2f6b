"""``felicific report --predicted``: the page of amounts from a file, on people that were not fitted on."""

import json
import math
from pathlib import Path

import pytest
from reported import amounts_world

from felicific import audit, load

ASKED = "report people.csv --predicted x --loss squared --label hours --group sex --seed 0"


@pytest.fixture
def people(tmp_path, monkeypatch):
    """People in a file of their own folder."""
    monkeypatch.chdir(tmp_path)
    X, y, group = amounts_world(1_200, 2)
    table = X.assign(hours=y, sex=group)
    table.to_csv("people.csv", index=False)
    amounts_world(900, 3)[0].assign(
        hours=amounts_world(900, 3)[1], sex=amounts_world(900, 3)[2]
    ).to_csv("others.csv", index=False)  # fmt: skip
    return table


def test_the_page_is_about_the_other_half(command_line, people):
    """It is written with the policy that it proposes, and speaks of people that this was not fitted on."""
    code, out, _ = command_line(
        f"{ASKED} --happiness distributional_parity --gap .1 --policy-out p.json --out r.json"
    )
    assert code == 0
    content = json.loads(Path("r.json").read_text("utf-8"))
    policy = load("p.json")
    assert content["policy"]["sha256"] == policy.sha256
    assert sum(group["people"] for group in content["groups"]) == 600
    assert content["grouped_by"] == "sex"
    assert content["verdict"]["reason"] != "in-sample"
    assert content["verdict"]["headline"] in out
    assert "Written to r.json." in out


def test_numbers_of_named_people_are_those_of_their_audit(command_line, people):
    """With --test the whole file is fitted on, and means are those of an audit of what the policy gives the others."""
    code, _, _ = command_line(
        f"{ASKED} --happiness decision --gap 1 --test others.csv --policy-out p.json --out r.json"
    )
    assert code == 0
    X, y, group = amounts_world(900, 3)
    amounts = load("p.json").amounts(X["x"], group)
    one = audit(
        amounts, X, y, happiness="decision", decisions=(-math.inf, math.inf), sensitive_features=group
    )
    point = json.loads(Path("r.json").read_text("utf-8"))["points"]["proposed"]
    assert point["measures"][0]["gap"]["estimate"] == pytest.approx(one["decision"].gap.estimate, abs=1e-9)
    assert point["loss"]["estimate"] == pytest.approx(one.loss.estimate, rel=1e-9)


@pytest.mark.filterwarnings("always::felicific.exceptions.FittedRowsWarning")
def test_fitted_people_are_recognised(command_line, people):
    """The same file as --test tells nothing, and says so."""
    code, out, err = command_line(f"{ASKED} --happiness decision --gap 1 --test people.csv")
    assert (code, out.splitlines()[0]) == (0, "We cannot tell.")
    assert "rows that the policy was fitted on" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--also a=decision", "--also is not taken"),
        ("--labels all", "--labels is not taken"),
        ("--decision-name 0=no", "--decision-name is not taken"),
        ("--score x", "Name one for each: --score CLASS=COLUMN"),  # scores are of classes
        ("--confidence .9", "--confidence is not taken"),
    ],
)
def test_what_is_of_decisions_is_refused(command_line, people, words, said):
    """Options that amounts have no use for are refused by name, and nothing is written."""
    code, _, err = command_line(f"{ASKED} --happiness decision --gap 1 {words}")
    assert code == 1
    assert said in err
    assert not Path("report.html").exists()


def test_a_report_needs_scores_or_predictions(command_line, people):
    """Without both it is said which options there are."""
    code, _, err = command_line("report people.csv --label hours --group sex --happiness decision")
    assert code == 1
    assert "--score" in err
    assert "--predicted" in err
