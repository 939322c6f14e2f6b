"""``felicific aggregate`` and ``merge``: sums of shards and sites, whole whatever kills the process that makes them."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from shell_people import make_loans

from felicific import load
from felicific.cli.merge import Shard

pytestmark = pytest.mark.filterwarnings("ignore:The salt of this policy comes from a seed")

ROLES = "--score score --label repaid --group sex --happiness 'decision * loan' --name funding --unit k$"


@pytest.fixture
def parts(loans):
    """The people of ``scores.csv`` in four files, of which one has people of one sex and one outcome alone."""
    rest = loans
    alone = rest[(rest["sex"] == "Male") & (rest["repaid"] == 1)][:20]
    rest = rest.drop(alone.index)
    for number, rows in enumerate([alone, rest[:100], rest[100:400], rest[400:]]):
        rows.to_csv(f"part-{number}.csv", index=False)
    return loans


def same(one, other):
    """Whether two files of sums hold the same, but for the order in which they were added."""
    for name, sums in one.known_sums.items():
        np.testing.assert_allclose(sums, other.around(one.origin).known_sums[name], rtol=1e-9, atol=1e-9)
    assert one.groups == other.groups
    assert one.rows.tolist() == other.rows.tolist()


def test_sums_of_shards_are_those_of_the_file(parts, done):
    """Also where a shard lacks a group and a class; into a file, into a folder, and merged by hand."""
    done(f"aggregate scores.csv {ROLES} --out whole.json")
    done(f"aggregate 'part-*.csv' {ROLES} --out together.json")
    done(f"aggregate part-0.csv part-1.csv part-2.csv part-3.csv {ROLES} --out sums")
    whole = load("whole.json")
    same(whole, load("together.json"))
    same(whole, load("sums/all.json"))
    for number, files in enumerate(["part-0.csv", "part-1.csv part-2.csv part-3.csv"]):
        named = "--class 0 --class 1 --group-name Female --group-name Male"
        done(f"aggregate {files} {ROLES} {named} --out site-{number}.json")
    told = done("merge 'site-*.json' --out merged.json")
    same(whole, load("merged.json"))
    sizes = parts["sex"].value_counts()
    assert f"People: 'Female' {sizes['Female']}, 'Male' {sizes['Male']}, in 600 rows." in told


def test_fit_and_frontier_take_sums(parts, done):
    """As the file of the people would give them, by name and number."""
    done(f"aggregate 'part-*.csv' {ROLES} --out sums")
    asked = "--gap funding=1 --floor .5 --ratio .8 --seed 0"
    for source, out in ((f"scores.csv {ROLES}", "people.json"), ("sums/all.json", "summed.json")):
        done(f"fit {source} {asked} --out {out}")
    people, summed = load("people.json"), load("summed.json")
    np.testing.assert_allclose(people.q, summed.q, atol=1e-7)
    assert people.change_cost == summed.change_cost
    assert people.salt == summed.salt
    lines = [
        json.loads(done(f"frontier {source} --json"))["breakpoints"]
        for source in (f"scores.csv {ROLES}", "sums/all.json")
    ]
    assert lines[0].keys() == lines[1].keys()
    np.testing.assert_allclose(lines[0]["loss"], lines[1]["loss"], rtol=1e-9)


def test_what_leaves_a_site_speaks_of_no_few(loans, done):
    """--min-cell merges cells; such sums fit a policy all the same."""
    done(f"aggregate scores.csv {ROLES} --min-cell 10 --out site.json")
    sums = load("site.json")
    assert sums.mass[sums.mass > 0].min() >= 10
    done("fit site.json --gap 1 --out policy.json")
    assert load("policy.json").change_cost == "auto"


def test_what_sums_cannot_be_told(loans, done, command_line):
    """What belongs to people comes too late, and confidence needs rows: one line that names the option."""
    done(f"aggregate scores.csv {ROLES} --out sums.json")
    for option, name in (
        ("--label repaid", "--label"),
        ("--score score", "--score"),
        ("--happiness decision", "--happiness"),
        ("--confidence .9", "--confidence"),
        ("--test scores.csv", "--test"),
        ("--policy individual", "--policy"),
        ("--bounds 0,1", "--bounds"),
    ):
        code, out, err = command_line(f"fit sums.json {option} --gap 1 --out policy.json")
        assert (code, out) == (1, "")
        assert f"'sums.json' holds sums, so {name} comes too late." in err
        assert not Path("policy.json").exists()
    code, _, err = command_line(f"aggregate scores.csv {ROLES} --policy individual --out more.json")
    assert code == 1
    assert "needs the people themselves" in err


@pytest.mark.parametrize("command", ["fit", "frontier"])
def test_sums_that_are_not_there_are_not_there(loans, command_line, command):
    """The line says so, and asks for nothing that a file of sums does not need."""
    code, out, err = command_line(
        f"{command} nowhere.json" + " --gap 1 --out policy.json" * (command == "fit")
    )
    assert (code, out) == (1, "")
    assert "No such file or directory: 'nowhere.json'" in err


def test_a_column_that_says_who_somebody_is_is_no_group(parts, command_line):
    """Sums of one person each would be their rows: they are refused, of one file and of shards."""
    line = ROLES.replace("--group sex", "--group id")
    for files in ("scores.csv", "part-1.csv part-2.csv"):
        code, out, err = command_line(f"aggregate {files} {line} --out sums.json")
        assert (code, out) == (1, "")
        assert "that is no group, but who somebody is" in err
        assert not Path("sums.json").exists()


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ("--happiness 'decision * loan' --name money --unit k$", "measures"),
        ("--happiness 'decision * loan' --name funding --unit EUR", "unit 'k$' of 'funding'"),
        ("--happiness 'decision * loan' --name funding --unit k$ --bounds 0,900", "bounds"),
        ("--happiness 'decision * loan' --name funding --unit k$ --loss changes", "loss"),
        (
            "--happiness 'decision * loan' --name funding --unit k$ --policy label",
            "different policies: score and label",
        ),
        ("--happiness 'decision * loan' --name funding --unit k$ --worse-off .1", "measures"),
        ("--happiness 'decision * loan' --name funding --unit k$ --group-name X --group-name Male", "groups"),
        ("--happiness 'decision * loan' --name funding --unit k$ --join all=Female", "groups"),
        (
            "--happiness 'decision * loan' --name funding --unit k$ --weight score --weight-kind sampling",
            "weight_kind",
        ),
    ],
)
def test_sums_that_differ_do_not_add(other, words, loans, done, command_line):
    """Refused in one line that names the files and what differs; nothing is written."""
    done(f"aggregate scores.csv {ROLES} --out one.json")
    make_loans(300, 5).to_csv("south.csv", index=False)
    if "--group-name" in other:
        other += " --group-name Female"
    done(f"aggregate south.csv --score score --label repaid --group sex {other} --out other.json")
    code, out, err = command_line("merge one.json other.json --out all.json")
    assert (code, out) == (1, "")
    assert "'other.json' does not add to 'one.json'" in err
    assert words in err.replace("--weight-kind", "weight_kind"), err
    assert not Path("all.json").exists()


def test_nobody_is_counted_twice(loans, done, command_line):
    """The same file, by name or by content, is refused by merge; and so is what is no file of sums."""
    done(f"aggregate scores.csv {ROLES} --out one.json")
    Path("copy.json").write_bytes(Path("one.json").read_bytes())
    done("fit one.json --gap 1 --out policy.json")
    Path("torn.json").write_text(Path("one.json").read_text()[:-100])
    for files, words in (
        ("one.json one.json", "named twice"),
        ("one.json copy.json", "counted twice"),
        ("one.json policy.json", "'policy.json' holds a policy, and should hold sums of people."),
        ("one.json torn.json", "'torn.json'"),
        ("one.json scores.csv", "not a file that felicific wrote"),
    ):
        code, out, err = command_line(f"merge {files} --out all.json")
        assert (code, out) == (1, "")
        assert words in err, err
        assert not Path("all.json").exists()


# ---------------------------------------------------------------------------------------------------------
# A folder that remembers


def test_a_folder_goes_on_where_it_was(parts, done):
    """What was summed up is not again; a shard that changed is, a copy is not counted, and one that is gone counts."""
    files = " ".join(f"part-{number}.csv" for number in range(3))
    assert "3 files are summed up, 0 were already." in done(f"aggregate {files} {ROLES} --out sums")
    assert "0 files are summed up, 3 were already." in done(f"aggregate {files} {ROLES} --out sums")
    Path("copy.csv").write_bytes(Path("part-2.csv").read_bytes())
    told = done(f"aggregate {files} copy.csv part-3.csv {ROLES} --out sums")
    assert "'copy.csv' holds what 'part-2.csv' holds, and is not counted again." in told
    assert "1 files are summed up, 3 were already." in told
    done(f"aggregate scores.csv {ROLES} --out whole.json")
    same(load("whole.json"), load("sums/all.json"))
    os.rename("part-0.csv", "elsewhere.csv")
    told = done(f"aggregate part-3.csv elsewhere.csv {ROLES} --out sums")
    assert "2 more that are not named now were summed up earlier, and count." in told
    same(load("whole.json"), load("sums/all.json"))
    lines = Path("part-3.csv").read_text().splitlines()
    Path("part-3.csv").write_text("\n".join(lines[:-1]) + "\n")
    assert "'part-3.csv' has changed" in done(f"aggregate part-3.csv {ROLES} --out sums")
    assert int(load("sums/all.json").rows.sum()) == len(parts) - 1


def test_what_a_shard_held_counts_no_longer_once_it_is_a_copy(parts, done):
    """A shard that was replaced by a copy of another: neither the copy counts nor what it held before."""
    done(f"aggregate part-3.csv part-2.csv {ROLES} --out sums")
    Path("part-2.csv").write_bytes(Path("part-3.csv").read_bytes())
    told = done(f"aggregate part-3.csv part-2.csv {ROLES} --out sums")
    assert "'part-2.csv' has changed since it was summed up." in told
    assert "'part-2.csv' holds what 'part-3.csv' holds, and is not counted again." in told
    assert "not named now" not in told
    done(f"aggregate part-3.csv {ROLES} --out first.json")
    same(load("first.json"), load("sums/all.json"))


def test_a_folder_insists_on_its_options(parts, done, command_line):
    """Other options, an altered manifest, another process: one line, and what is there stays."""
    done(f"aggregate part-1.csv {ROLES} --out sums")
    before = {path.name: path.read_bytes() for path in Path("sums").iterdir()}
    code, _, err = command_line(f"aggregate part-2.csv {ROLES.replace('k$', 'EUR')} --out sums")
    assert code == 1
    assert "'sums' was begun with other options: --unit was 'k$' and is 'EUR'." in err
    lock = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import fcntl, sys; f = open('sums/.lock', 'w'); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); "
            "sys.stdin.read()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    lock.stdout.readline()
    code, _, err = command_line(f"aggregate part-2.csv {ROLES} --out sums")
    lock.communicate()
    assert code == 1
    assert "Another process" in err
    assert {path.name: path.read_bytes() for path in Path("sums").iterdir()} == before
    manifest = Path("sums/manifest.json")
    manifest.write_text(manifest.read_text().replace('"bytes": ', '"bytes": 1'))
    code, _, err = command_line(f"aggregate part-2.csv {ROLES} --out sums")
    assert code == 1
    assert "cannot be read, or was altered" in err
    done(f"aggregate part-2.csv {ROLES} --out sums --force")
    assert int(load("sums/all.json").rows.sum()) == 300


KILLED = """
    import json, os, shlex, signal, sys
    import duckdb, numpy, pandas, pyarrow  # once, not in every child
    import felicific.cli.aggregate, felicific.cli.merge, felicific.cli.fit, felicific.cli.people
    from felicific.cli import run

    def child(line, point):
        # A process that kills itself at a point of its work: before a file takes its name, or after.
        seen, rename = 0, os.replace

        def replace(*names):
            nonlocal seen
            for step in (lambda: None, lambda: rename(*names)):
                step()
                if seen == point:
                    os.kill(os.getpid(), signal.SIGKILL)
                seen += 1

        os.replace = replace
        sys.stdout = open(os.devnull, "w")
        os._exit(run(shlex.split(line)))

    for line, points in json.loads(sys.argv[1]):
        for point in points:
            process = os.fork()
            if not process:
                child(line, point)
            status = os.waitpid(process, 0)[1]
            print(os.WTERMSIG(status) if os.WIFSIGNALED(status) else -os.WEXITSTATUS(status), flush=True)
"""

#: At which of its points each process that works on one folder is killed. Three shards make seven files: the sums of
#: each and the manifest after it, and the sum of all; a point is before a file takes its name, and one is after.
POINTS = [[0], [2], [3], [13], [0, 1, 2, 3, 2], [7]]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are killed")
def test_a_killed_process_loses_nothing(parts, done):
    """Killed by SIGKILL before and after any file takes its name, once or often: every shard is counted once.

    Meanwhile the manifest is whole, lists only shards whose sums are there, and there is no sum of all that lacks one.
    """
    for number in range(1, 4):
        pd.read_csv(f"part-{number}.csv").to_parquet(f"part-{number}.parquet")
    line = f"aggregate part-1.parquet part-2.parquet part-3.parquet {ROLES} --out "
    work = [(f"{line}sums-{number}", points) for number, points in enumerate(POINTS)]
    command = [sys.executable, "-c", textwrap.dedent(KILLED), json.dumps(work)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout.split()
    assert ended == [str(int(signal.SIGKILL))] * sum(map(len, POINTS))
    done(f"{line}untouched")
    expected = Path("untouched/all.json").read_text()
    for number, points in enumerate(POINTS):
        folder = Path(f"sums-{number}")
        listed = []
        if (folder / "manifest.json").exists():
            content = json.loads((folder / "manifest.json").read_text())
            listed = [Shard(**shard) for shard in content["shards"]]
        assert len(listed) == {(0,): 0, (2,): 0, (3,): 1, (7,): 2, (13,): 3}.get(tuple(points), len(listed))
        assert all(load(folder / shard.name).total > 0 for shard in listed)
        assert not (folder / "all.json").exists() or len(listed) == 3
        assert f"{3 - len(listed)} files are summed up, {len(listed)} were already." in done(
            f"{line}{folder}"
        )
        assert (folder / "all.json").read_text() == expected
        assert not list(folder.glob(".*.json.*")), points
