"""``felicific monitor``: a state that goes on, an exit code for an alarm, and nothing counted twice."""

import json
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from felicific import load, monitor
from felicific._audit.monitored import Monitor

ASKED = "--decision approved --group sex --happiness decision --gap 0.05"


def week(n, gap, seed):
    """People who were decided on, the men approved more often by the gap."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    approved = (rng.random(n) < 0.3 + gap * (sex == "m")).astype(int)
    columns = {"id": np.arange(n) + n * seed, "sex": sex, "approved": approved, "score": rng.random(n)}
    return pd.DataFrame(columns | {"loan": rng.integers(1, 90, n) * 100, "repaid": rng.integers(0, 2, n)})


@pytest.fixture
def weeks(tmp_path, monkeypatch):
    """A folder with two quiet weeks and a loud one."""
    monkeypatch.chdir(tmp_path)
    parts = [week(1_500, 0.0, 1), week(1_500, 0.0, 2), week(3_000, 0.4, 3)]
    for i, part in enumerate(parts, 1):
        part.to_csv(f"week{i}.csv", index=False)
    return parts


def test_a_state_goes_on_and_an_alarm_ends_with_4(weeks, command_line, tmp_path):
    """Each week's people are added; the state is that of Python, and an alarm stays."""
    line = f"{ASKED} --state monitor.json --picture monitor.svg"
    for i in (1, 2):
        code, out, err = command_line(f"monitor week{i}.csv {line}")
        assert (code, err) == (0, "")
        assert out.startswith("No alarm: ")
    code, out, _ = command_line(f"monitor week3.csv {line}")
    assert code == 4
    assert out.startswith("Alarm, raised when ")
    asked = {"happiness": "decision", "sensitive_features": "sex", "gap": 0.05}
    here = monitor("approved", weeks[0], **asked).add("approved", weeks[1]).add("approved", weeks[2])
    there = load("monitor.json")
    assert there.alarm == here.alarm
    assert there.gaps == here.gaps
    assert "alarm" in (tmp_path / "monitor.svg").read_text()
    week(1_500, 0.0, 4).to_csv("week4.csv", index=False)
    assert command_line(f"monitor week4.csv {line}")[0] == 4


def test_without_a_state_the_file_is_the_whole_history(weeks, command_line, done):
    """The same answer as week by week, and nothing is written."""
    pd.concat(weeks).to_parquet("all.parquet")
    code, out, _ = command_line(f"monitor all.parquet {ASKED} --json")
    assert code == 4
    for i in (1, 2, 3):
        command_line(f"monitor week{i}.csv {ASKED} --state monitor.json")
    there = load("monitor.json")
    assert json.loads(out)["alarm"]["rows"] == there.alarm.rows
    assert json.loads(out)["evidence"] == pytest.approx(there.evidence)


def test_the_same_rows_twice_are_refused(weeks, command_line):
    """The state stays as it was."""
    command_line(f"monitor week1.csv {ASKED} --state monitor.json")
    before = Path("monitor.json").read_text()
    code, _, err = command_line(f"monitor week1.csv {ASKED} --state monitor.json")
    assert code == 1
    assert "These 1,500 rows were counted already" in err
    assert Path("monitor.json").read_text() == before


@pytest.mark.parametrize(
    ("other", "option"),
    [
        ("--decision approved --group sex --happiness decision --gap 0.1", "--gap"),
        (
            "--decision approved --group sex --happiness 'decision * loan / 9000' --bounds 0,1 --gap 0.05",
            "--happiness",
        ),
        (f"{ASKED} --confidence 0.99", "--confidence"),
    ],
)
def test_a_state_of_another_monitor_is_refused(weeks, command_line, other, option):
    """It is said which option is not as it was."""
    command_line(f"monitor week1.csv {ASKED} --state monitor.json")
    code, _, err = command_line(f"monitor week2.csv {other} --state monitor.json")
    assert code == 1
    assert f"its {option} is not what is said now" in err


@pytest.mark.filterwarnings("always::felicific.exceptions.MonitorWarning")
def test_groups_that_come_later_are_named_at_the_beginning(weeks, command_line, done):
    """With --group-name there is a place for them; without they are refused."""
    late = week(500, 0.0, 9)
    late.loc[0, "sex"] = "x"
    late.to_csv("late.csv", index=False)
    done(f"monitor week1.csv {ASKED} --state one.json")
    code, _, err = command_line(f"monitor late.csv {ASKED} --state one.json")
    assert code == 1
    assert "people of 'x'" in err
    assert "--group-name" in err
    code, _, err = command_line(
        f"monitor week1.csv {ASKED} --group-name f --group-name m --group-name x --state two.json"
    )
    assert code == 0
    assert "Of group 'x' there are 0 among" in err
    assert (
        command_line(
            f"monitor late.csv {ASKED} --group-name f --group-name m --group-name x --state two.json"
        )[0]
        == 0
    )


def test_a_policy_tells_groups_names_units_bounds_and_gaps(weeks, done):
    """With --score and no --decision its expected happiness is monitored; with --decision what was decided."""
    done("fit week1.csv --score score --label repaid --group sex --happiness decision --name yes --unit share "
         "--gap 0.1 --out policy.json")  # fmt: skip
    told = json.loads(
        done(
            "monitor week2.csv --policy-file policy.json --score score --group sex --happiness decision --json"
        )
    )
    assert [(part["name"], part["allowed"]) for part in told["measures"]] == [("yes", 0.1)]
    drawn = json.loads(
        done(
            "monitor week2.csv --policy-file policy.json --decision approved --group sex --happiness decision --json"
        )
    )
    assert drawn["measures"][0]["estimate"] != told["measures"][0]["estimate"]


def test_a_policy_that_keeps_its_happiness_need_not_be_told_it(weeks, done, command_line):
    """An individual one does; of another, or without a policy, it is asked for."""
    line = "fit week1.csv --score score --label repaid --group sex --happiness decision --name yes --gap 0.1"
    done(f"{line} --out score.json")
    done(f"{line} --policy individual --out individual.json")
    people = "--decision approved --group sex --json"
    told = done(f"monitor week2.csv --policy-file individual.json {people}")
    assert told == done(f"monitor week2.csv --policy-file individual.json {people} --happiness decision")
    for more in ("--policy-file score.json", "--gap 0.1"):
        code, _, err = command_line(f"monitor week2.csv {people} {more}")
        assert code == 1
        assert "--happiness" in err


def test_bad_files_and_targets_are_refused_before_anything_is_written(weeks, command_line, tmp_path):
    """A state that is none, a picture that cannot be, a column that is not there."""
    (tmp_path / "bad.json").write_text('{"format": "felicific policy"}')
    for line, match in (
        (f"monitor week1.csv {ASKED} --state bad.json", "a policy"),
        (f"monitor week1.csv {ASKED} --state monitor.txt", "not written here"),
        (f"monitor week1.csv {ASKED} --picture monitor.gif", "not written here"),
        ("monitor week1.csv --decision aproved --group sex --happiness decision --gap 0.1", "aproved"),
        ("monitor week1.csv --decision approved --group sex --happiness decision", "how large a gap may be"),
        ("monitor week1.csv --decision approved --group sex --happiness decision --gap -1", "-1"),
        ("monitor none.csv --decision approved --group sex --happiness decision --gap 1", "none.csv"),
    ):
        code, out, err = command_line(line)
        assert (code, out) == (1, ""), line
        assert match in err
    assert not list(tmp_path.glob("monitor.*"))


@pytest.mark.slow
def test_a_process_that_is_killed_counts_nobody_twice(weeks, done, command_line):
    """SIGKILL while the picture, and while the state, take their names: asked again, it ends as if never killed."""
    script = textwrap.dedent(
        """
        import os, signal, sys
        from felicific.cli import run
        import felicific.plots  # which writes too
        real, places = os.replace, iter(range(9))
        def replace(*arguments):
            if next(places) == int(sys.argv[1]):
                os.kill(os.getpid(), signal.SIGKILL)
            real(*arguments)
        os.replace = replace
        run(sys.argv[2:])
        """
    )
    line = f"monitor week2.csv {ASKED} --picture monitor.svg --state monitor.json"
    done(f"monitor week1.csv {ASKED} --state monitor.json")
    for place in ("0", "1"):
        killed = subprocess.run([sys.executable, "-c", script, place, *line.split()], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert load("monitor.json").rows == 1_500
    done(line)
    assert load("monitor.json").rows == 3_000


def test_of_two_commands_at_a_time_none_is_lost(weeks, done, command_line, monkeypatch):
    """A state that another command has written meanwhile is not written over; asked again, all are counted."""
    done(f"monitor week1.csv {ASKED} --state monitor.json")
    real = Monitor.add

    def slow(self, *arguments, **named):
        found = real(self, *arguments, **named)
        monkeypatch.setattr(Monitor, "add", real)
        done(f"monitor week2.csv {ASKED} --state monitor.json")
        return found

    late = f"monitor late.csv {ASKED} --state monitor.json"
    week(500, 0.0, 9).to_csv("late.csv", index=False)
    monkeypatch.setattr(Monitor, "add", slow)
    code, _, err = command_line(late)
    assert code == 1
    assert "written by another command meanwhile" in err
    assert load("monitor.json").rows == 3_000
    done(late)
    assert load("monitor.json").rows == 3_500
