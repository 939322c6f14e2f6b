"""The pages do what they say: their code runs in the order of the page and prints what stands below it.

A block of ``python`` or ``bash`` is run in an empty folder that the page has to itself; a block of ``text`` right after
it is what it prints, where ``...`` stands for anything. ``python tests/test_docs.py docs/page.md`` rewrites them. Pages
about deploying use no seed, so a salt that would be fresh is always the same one here.
"""

import contextlib
import doctest
import io
import os
import re
import secrets
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

import pytest

from felicific._problem.criteria import CRITERIA
from felicific.cli import run

ROOT = Path(__file__).parent.parent
PAGES = (
    pytest.param("howto-shell", marks=pytest.mark.slow),
    "tutorial",
    "howto-audit",
    "howto-alternatives",
    pytest.param("howto-amounts", marks=pytest.mark.slow),
    "howto-choose-eps",
    "howto-counts",
    "howto-deploy",
    "howto-explain",
    "howto-many-groups",
    "howto-missing-labels",
    "howto-notebooks",
    pytest.param(
        "howto-registries",
        marks=[
            pytest.mark.skipif(find_spec("mlflow") is None, reason="needs the extra mlflow"),
            pytest.mark.filterwarnings("ignore::UserWarning:mlflow", "ignore::DeprecationWarning:mlflow"),
        ],
    ),
    "howto-sites",
    "howto-warehouses",
    "policies",
    pytest.param("howto-spark", marks=pytest.mark.cluster),
    "from-fairlearn",
    "from-aif360",
)
#: Libraries that a page speaks of and felicific does not depend on: where they are not installed, it is skipped.
PEERS = {"from-fairlearn": "fairlearn", "from-aif360": "aif360"}
SALT = "ac0a7f8c2faac49775a616b7c0cc21d8"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def steps(page):
    """Code of a page with its language, what it should print (or None), and where that stands in the text."""
    blocks = list(BLOCK.finditer(page))
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        if block[1] not in ("python", "bash"):
            continue
        below = (
            following is not None
            and following[1] == "text"
            and not page[block.end() : following.start()].strip()
        )
        yield block[1], block[2], following if below else None


def execute(language, code, names):
    """Run one block; return what it printed. A felicific command is run without starting Python anew."""
    printed, complaints = io.StringIO(), io.StringIO()
    salted = mock.patch(
        "secrets.token_hex", lambda size: SALT if size == 16 else secrets.token_bytes(size).hex()
    )
    with salted, contextlib.redirect_stdout(printed), contextlib.redirect_stderr(complaints):
        if language == "python":
            exec(compile(code, "page", "exec"), names)
            return printed.getvalue()
        for line in code.replace("\\\n", " ").splitlines():
            words = shlex.split(line)
            if words and words[0] == "felicific":
                failed = run(words[1:])
            else:
                failed = subprocess.run(line, shell=True, stdout=subprocess.PIPE, check=False, text=True)
                print(failed.stdout, end="")
                failed = failed.returncode
            assert failed == 0, f"{line}\n{complaints.getvalue()}"
    assert complaints.getvalue() == "", complaints.getvalue()
    return printed.getvalue()


def same(expected, found):
    """Whether a text is what was expected, where ``...`` stands for anything."""
    return doctest.OutputChecker().check_output(expected, found, doctest.ELLIPSIS)


def start_spark(monkeypatch):
    """A session that the page will find: compiling queries takes far longer than running these."""
    pytest.importorskip("distributed")  # the page has a part on Dask
    sql = pytest.importorskip("pyspark.sql")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    builder = sql.SparkSession.builder.master("local[2]")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }.items():
        builder = builder.config(name, value)
    builder.getOrCreate().sparkContext.setLogLevel("OFF")


@pytest.mark.filterwarnings("ignore::FutureWarning:pyspark", "ignore::ResourceWarning")  # of PySpark's own
@pytest.mark.filterwarnings("ignore::DeprecationWarning:(fairlearn|aif360)")  # of theirs, about pandas
@pytest.mark.parametrize("name", PAGES)
def test_the_page_does_what_it_says(name, tmp_path, monkeypatch):
    """Pasted block by block, a page runs, and prints what it shows."""
    monkeypatch.chdir(tmp_path)
    if "spark" in name:
        start_spark(monkeypatch)
    if name in PEERS:
        pytest.importorskip(PEERS[name])
    shown = 0
    names = {"__name__": "page"}
    for language, code, output in steps((ROOT / "docs" / f"{name}.md").read_text("utf-8")):
        found = execute(language, code, names)
        if output is not None:
            assert same(output[2], found), f"{code}\nprinted\n{found}"
            shown += 1
    assert shown > 0


@pytest.mark.parametrize(
    "name",
    [
        "tutorial",
        "howto-deploy",
        "howto-explain",
        "howto-missing-labels",
        "howto-notebooks",
        "howto-registries",
        "howto-shell",
        "howto-sites",
        "howto-spark",
        "howto-warehouses",
        "../README",
    ],
)
def test_no_page_about_deploying_seeds_the_lottery(name):
    """A salt of a seed is the same for everybody: policies of these pages get theirs without one."""
    page = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
    for code in (code for _, code, _ in steps(page)):
        fits = re.findall(
            r"(?:FairClassifier|solve)\((?:[^()]|\([^()]*\))*\)|felicific (?:fit|report).*?(?<!\\)$",
            code,
            re.M | re.S,
        )
        assert not [fit for fit in fits if "random_state" in fit or "--seed" in fit]


@pytest.mark.parametrize("name", ["glossary", "from-fairlearn", "from-aif360"])
def test_criteria_that_pages_name_are_names(name):
    """Whoever comes with another library's word finds none here that is not taken."""
    page = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
    named = set(
        re.findall(r'`(?:happiness=)?"([a-z_]+_(?:parity|odds|opportunity|equality|accuracy))"', page)
    )
    assert len(named) > 2
    assert named <= set(CRITERIA)


def test_the_test_of_pages_sees_a_wrong_page():
    """A page that shows what its code does not print is noticed, and ``...`` stands for anything but nothing else."""
    page = "```python\nprint(1)\n```\n\n```text\n2\n```\n\n```python\nprint(3)\n```\n\nwords\n\n```text\n4\n```\n"
    (_, first, shown), (_, second, apart) = steps(page)
    assert not same(shown[2], execute("python", first, {}))
    assert (execute("python", second, {}), apart) == ("3\n", None)
    assert same("a ... c\n", "a b c\n")
    assert not same("a ... c\n", "a b d\n")
    with pytest.raises(AssertionError, match="false"):
        execute("bash", "false", {})


def rewrite(path):
    """Replace what a page shows by what its code prints."""
    import tempfile

    page = path.read_text("utf-8")
    with tempfile.TemporaryDirectory() as room:
        os.chdir(room)
        names, changes = {"__name__": "page"}, []
        for language, code, output in steps(page):
            found = execute(language, code, names)
            if output is not None and not same(output[2], found):
                changes.append((output.start(2), output.end(2), found))
        os.chdir(ROOT)
    for start, end, found in reversed(changes):
        page = page[:start] + found + page[end:]
    path.write_text(page, "utf-8")
    print(f"{path}: {len(changes)} blocks rewritten")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        rewrite(Path(argument).resolve())
