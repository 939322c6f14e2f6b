"""``felicific apply --steer``: the decisions of Python, a state that is written last, and nobody counted twice."""

import csv
import json
import os
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pandas as pd
import pytest
from shell_people import make_loans

from felicific import load

FUNDING = "decision * loan"
APPLY = "apply policy.json {} --out {} --score score --group sex --key id --happiness 'decision * loan'"
APPLY += " --steer steer.json"


@pytest.fixture
def steered(loans, done):
    """A folder with a policy, and two files of people to decide on."""
    done(
        f"fit scores.csv --score score --label repaid --group sex --happiness '{FUNDING}' --gap 0 --out policy.json"
    )
    make_loans(400, 2).drop(columns=["approved", "repaid"]).to_csv("later.csv", index=False)


def python(*files):
    """The same in Python: decisions and controls of every file, and the steering."""
    policy = load("policy.json")
    steering, found = policy.steer(FUNDING), []
    for file in files:
        rows = pd.read_csv(file)
        decided = steering.decided(
            rows["score"].to_numpy(), rows["sex"].to_numpy(), rows["id"].to_numpy(), rows
        )
        found.append((decided.decisions.tolist(), decided.controls.tolist()))
    return found, steering


def columns(file):
    """Decisions and controls of a file, to the last digit."""
    if file.endswith(".parquet"):
        rows = pd.read_parquet(file)
        return rows["decision"].tolist(), rows["control"].tolist()
    with open(file, newline="") as stream:
        read = list(csv.DictReader(stream))
    return [int(row["decision"]) for row in read], [float(row["control"]) for row in read]


def test_the_command_line_decides_as_python_does(steered, done):
    """File after file, continuing from the state: the very decisions and controls, and the same sums."""
    found, steering = python("next.csv", "later.csv")
    out = done(APPLY.format("next.csv", "decided.csv"))
    assert "500 people decided on" in out
    assert "written to steer.json" in out
    done(APPLY.format("later.csv", "more.parquet"))
    assert [columns("decided.csv"), columns("more.parquet")] == found
    state = load("steer.json", policy=load("policy.json"), happiness=FUNDING)
    assert state.means == steering.means
    assert str(state) == str(steering)
    assert pd.read_csv("decided.csv").drop(columns=["decision", "control"]).equals(pd.read_csv("next.csv"))


def test_batches_do_not_matter(steered, done, monkeypatch):
    """Seven rows at a time, or all: the same file."""
    done(APPLY.format("next.csv", "decided.csv"))
    Path("steer.json").rename("first.json")
    monkeypatch.setattr(sys.modules["felicific.cli.apply"], "BATCH", 7)
    done(APPLY.format("next.csv", "again.csv"))
    assert Path("decided.csv").read_bytes() == Path("again.csv").read_bytes()
    states = [json.loads(Path(name).read_text())["state"] for name in ("first.json", "steer.json")]
    assert [state.pop("name") != "" for state in states] == [True, True]
    assert states[0] == states[1]


def test_json_says_what_was_done(steered, done):
    """With the gap, the bound, and the control and mean of every group."""
    told = json.loads(done(APPLY.format("next.csv", "decided.csv"), "--json"))
    _, steering = python("next.csv")
    assert told["steered"]["gap"] == steering.gap
    assert told["steered"]["bound"] == steering.bound
    assert [group["control"] for group in told["steered"]["groups"]] == [
        control.now for control in steering.controls.values()
    ]
    assert told["rows"] == 500


def test_nobody_is_counted_twice(steered, done, command_line):
    """The same people in any order are refused, and nothing is written."""
    done(APPLY.format("next.csv", "decided.csv"))
    before = Path("steer.json").read_bytes()
    pd.read_csv("next.csv", dtype=str).sample(frac=1.0, random_state=0).to_csv("shuffled.csv", index=False)
    for file in ("next.csv", "shuffled.csv"):
        code, _, err = command_line(APPLY.format(file, "again.csv"))
        assert code == 1
        assert "decided on already" in err
    assert not Path("again.csv").exists()
    assert Path("steer.json").read_bytes() == before
    done(APPLY.format("later.csv", "again.csv"))


def test_an_error_leaves_both_files_as_they_were(steered, done, command_line):
    """A group that nobody knows in a late row: neither decisions nor a state."""
    done(APPLY.format("next.csv", "decided.csv"))
    before = Path("steer.json").read_bytes()
    rows = pd.read_csv("later.csv", dtype=str)
    rows.loc[399, "sex"] = "Other"
    rows.to_csv("wrong.csv", index=False)
    code, _, err = command_line(APPLY.format("wrong.csv", "again.csv"))
    assert code == 1
    assert "'Other'" in err
    assert not Path("again.csv").exists()
    assert Path("steer.json").read_bytes() == before
    assert {path.name for path in Path().iterdir() if path.name.startswith(".")} == set()


KILLED = """
import os, signal, sys
import felicific._files as files
calls, replace = [0], os.replace
def killed(*names):
    calls[0] += 1
    if calls[0] == {at}:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(*names)
os.replace = killed
if {at} == 0:
    import felicific._policy.steering_state as moving
    moving.Moving.decide = lambda *given: os.kill(os.getpid(), signal.SIGKILL)
from felicific.cli import run
sys.exit(run({words!r}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_killed_process_goes_on_from_its_state(steered, done, at):
    """Killed while deciding, before the decisions have their name, or the state has: done again, it is the same."""
    done(APPLY.format("next.csv", "decided.csv"))
    before = Path("steer.json").read_bytes()
    words = shlex.split(APPLY.format("later.csv", "more.csv"))
    script = textwrap.dedent(KILLED).format(at=at, words=words)
    found = subprocess.run([sys.executable, "-c", script], env=os.environ, check=False)
    assert found.returncode == -9
    assert Path("steer.json").read_bytes() == before
    assert Path("more.csv").exists() == (at == 2)
    first = Path("more.csv").read_bytes() if at == 2 else None
    done(APPLY.format("later.csv", "more.csv"), *(["--force"] if at == 2 else []))
    assert first in (None, Path("more.csv").read_bytes())
    decisions, steering = python("next.csv", "later.csv")
    assert columns("more.csv") == decisions[1]
    state = load("steer.json", policy=load("policy.json"), happiness=FUNDING)
    assert state.people == steering.people


def test_two_processes_cannot_continue_one_state(steered, done, command_line, monkeypatch):
    """Whoever comes second is told, and writes nothing."""
    module = sys.modules["felicific.cli.apply"]

    done(APPLY.format("next.csv", "decided.csv"))
    decide = module.SteeredPeople.decide

    def meanwhile(self, *rows):
        shutil.copy("policy.json", "steer.json")
        return decide(self, *rows)

    monkeypatch.setattr(module.SteeredPeople, "decide", meanwhile)
    code, _, err = command_line(APPLY.format("later.csv", "more.csv"))
    assert code == 1
    assert "meanwhile" in err
    assert not Path("more.csv").exists()


def test_individual_policies_are_steered_too(loans, done):
    """Without --happiness: the policy holds its own."""
    done(f"fit scores.csv --score score --label repaid --group sex --happiness '{FUNDING}' --gap 0 --policy individual "
         "--out policy.json")  # fmt: skip
    line = (
        "apply policy.json next.csv --score score --group sex --key id --steer steer.json --out decided.csv"
    )
    done(line)
    rows, policy = pd.read_csv("next.csv"), load("policy.json")
    found = policy.steer().decided(
        rows["score"].to_numpy(), rows["sex"].to_numpy(), rows["id"].to_numpy(), rows
    )
    assert columns("decided.csv") == (found.decisions.tolist(), found.controls.tolist())


def test_a_name_says_that_it_is_the_same_happiness(loans, done, command_line):
    """A policy whose happiness was named is steered by --name."""
    done(f"fit scores.csv --score score --label repaid --group sex --happiness '{FUNDING}' --gap 0 --name funding "
         "--unit $ --out policy.json")  # fmt: skip
    code, _, err = command_line(APPLY.format("next.csv", "decided.csv"))
    assert code == 1
    assert "--name funding" in err
    assert "$" in done(APPLY.format("next.csv", "decided.csv"), "--name", "funding")


def test_settings_are_those_it_was_begun_with(steered, done, command_line):
    """Others are refused by name, the same are fine."""
    done(APPLY.format("next.csv", "decided.csv"), "--pace", "300", "--reach", "0.3", "--gap", "0.5")
    for more in (["--pace", "301"], ["--reach", "0.25"], ["--gap", "0.4"]):
        code, _, err = command_line(APPLY.format("later.csv", "more.csv"), *more)
        assert code == 1
        assert f"{more[0]} is another one" in err
    done(APPLY.format("later.csv", "more.csv"), "--pace", "300", "--reach", "0.3", "--gap", "0.5")


REFUSED = {
    "--pace 300": "--pace belongs to a steered policy",
    "--gap 1": "--gap belongs to a steered policy",
    "--steer steer.json --with-proba": "probabilities of a steered policy",
    "--steer steer.json --signed x.json": "--signed is for a policy",
    "--steer steer.txt": "is not written here",
    "--steer policy.json": "holds a policy",
    "--steer steer.json --column control": "a column 'control' already",
    "--steer steer.json --gap -1": "The gap is -1",
    "--steer steer.json --pace 0": "pace",
}


@pytest.mark.parametrize("more", REFUSED)
def test_what_does_not_go_together_is_refused(steered, command_line, more):
    """In one line, before anything is written."""
    line = f"apply policy.json next.csv --score score --group sex --key id --happiness '{FUNDING}' --out decided.csv"
    code, _, err = command_line(f"{line} {more}")
    assert code == 1
    assert REFUSED[more] in err
    assert not Path("decided.csv").exists()


def test_a_key_is_needed(steered, command_line):
    """Without it nobody could say who was decided on."""
    line = f"apply policy.json next.csv --score score --group sex --happiness '{FUNDING}' --out decided.csv"
    code, _, err = command_line(f"{line} --steer steer.json")
    assert code == 1
    assert "--key" in err


def test_a_state_of_another_policy_is_refused(steered, done, command_line):
    """By name, with what to do."""
    done(APPLY.format("next.csv", "decided.csv"))
    done(
        f"fit scores.csv --score score --label repaid --group sex --happiness '{FUNDING}' --gap 0 "
        "--out policy.json --force"
    )
    code, _, err = command_line(APPLY.format("later.csv", "more.csv"))
    assert code == 1
    assert "'steer.json' is the steering of another policy" in err
    assert "begin a new one in another file" in err


def test_a_state_is_told_from_other_files(steered, done, command_line):
    """Whoever takes it for a policy, or for people, is told what it is."""
    done(APPLY.format("next.csv", "decided.csv"))
    for line in ("show steer.json", "apply steer.json next.csv --out more.csv --score score --group sex --key id",
                 "audit steer.json --group sex --happiness decision --decision decision"):  # fmt: skip
        code, _, err = command_line(line)
        assert code == 1
        assert "the state of a steered policy" in err


def test_an_empty_file_is_no_state(steered, command_line):
    """It is not replaced, and nobody is told to force it."""
    Path("steer.json").write_bytes(b"")
    code, _, err = command_line(APPLY.format("next.csv", "decided.csv"))
    assert code == 1
    assert "steer.json" in err
    assert "--force" not in err
    assert Path("steer.json").read_bytes() == b""
    assert not Path("decided.csv").exists()


@pytest.mark.filterwarnings("always::felicific.exceptions.SteeringWarning")
def test_a_control_that_is_held_back_is_noted(steered, command_line):
    """In one line beside the answer, in the words of the command line."""
    rows = pd.read_csv("next.csv")
    rows["score"] = rows["score"].where(rows["sex"] == "Male", rows["score"] * 0.5).round(3)
    rows.to_csv("fallen.csv", index=False)
    code, out, err = command_line(APPLY.format("fallen.csv", "decided.csv"), "--reach", "0.02")
    assert code == 0
    assert "--reach 0.02 allows" in err
    assert "a reach of 0.02 allows" in out
