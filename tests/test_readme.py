"""The README's example and commands do what it says."""

import contextlib
import io
import json
import re
import tomllib
from pathlib import Path

from typer.testing import CliRunner

from felicific.cli import app

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
PAGES = (*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "evidence").glob("*.md"))


def block(language, number=0):
    """The README's code blocks in a language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)[number]


def test_the_example_runs_and_prints_what_the_readme_prints():
    """The first example, copied and pasted, prints the sentences that stand below it."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block("python"), "README.md", "exec"), {"__name__": "readme"})
    assert block("text").strip() in printed.getvalue()


def test_the_check_runs_the_readme_command():
    """The continuous check takes its test command from the README, which therefore must have one."""
    assert "<!-- test command -->\n```bash\npython3 -m venv" in README
    assert "<!-- test command -->" in (ROOT / ".ci" / "run").read_text("utf-8")


def test_it_reads_well_where_no_other_file_is():
    """On a package index neither a picture nor a page lies beside it: their words stay, and no link leads nowhere."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        hook = tomllib.load(file)["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    text = README
    for part in hook["substitutions"]:
        text = re.sub(part["pattern"], part["replacement"], text)
    assert not re.search(r"\]\((?!https?:)|<!--", text)
    assert "a gap of $18,566 under the model's decisions" in text
    assert "Tutorial: ten minutes." in text
    assert README.count("\n") <= 125


#: The libraries that fits are compared with, as pages write them.
PEERS = {"aif360": "AIF360", "oxonfair": "OxonFair", "error-parity": "error-parity", "fairlearn": "fairlearn"}


def test_the_speed_is_that_of_the_last_run():
    """README and overview state the times of fits that the benchmark wrote, and who is faster on how many rows."""
    written = json.loads((ROOT / "docs" / "evidence" / "speed.json").read_text("utf-8"))["fits"]
    fits = {int(n): times for n, times in written.items() if len(times) > 1}
    many, ours = fits[2_000_000], "felicific"
    fastest = min(PEERS, key=many.get)
    few = max(n for n, times in fits.items() if min(times.values()) < times[ours])
    ahead = " and ".join(name for peer, name in PEERS.items() if fits[few][peer] < fits[few][ours])
    assert fastest == "aif360", "the only one that decides by labels"
    assert (
        f"Two million given scores are fitted in {many[ours]:.2g} s of processor time, where the fastest peer takes "
        f"{many[fastest]:.2g} s ({PEERS[fastest]}, by labels) and fairlearn {many['fairlearn']:.2g} s. "
        f"With {few:,} rows and fewer, {ahead} are faster: at {few:,} rows felicific takes "
        f"{fits[few][ours] / min(fits[few].values()):.1f} times as long as the fastest, at 500 rows "
        f"{fits[500][ours] / min(fits[500].values()):.1f} times"
    ) in " ".join(README.split())
    overview = (ROOT / "docs" / "overview.md").read_text("utf-8").lower()
    for name, seconds in many.items():
        assert re.search(rf"^\| {name}[^|]*\| {seconds:g} s \|", overview, re.MULTILINE), name


def test_nothing_is_left_to_fill_in():
    """No page holds a placeholder."""
    for page in (
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        ROOT / "CONTRIBUTING.md",
        *PAGES,
    ):
        assert not re.search(r"@@|TODO|FIXME|lorem", page.read_text("utf-8")), page.name


def test_every_link_of_the_documents_leads_somewhere():
    """Links to files in the README and the docs name files that exist."""
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            made = target.startswith(
                ("api/", "gallery/")
            )  # by the build of the site, whose links have a test of their own
            assert made or (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_table_of_the_evidence_has_a_script_that_writes_it():
    """A block between markers names what some benchmark fills, on the page that this benchmark names."""
    scripts = [path.read_text("utf-8") for path in (ROOT / "benchmarks").glob("*.py")]
    blocks = 0
    for page in (ROOT / "docs" / "evidence").glob("*.md"):
        writers = [script for script in scripts if f'"{page.name}"' in script]
        for block in re.findall(r"<!-- (?!end of )(.+?) -->", page.read_text("utf-8")):
            assert any(f'"{block.split(": ")[-1]}"' in script for script in writers), f"{page.name}: {block}"
            blocks += 1
    assert blocks > 40


def test_every_test_that_a_promise_names_is_there():
    """Whoever deletes or renames a test that holds a promise meets the promise."""
    file, named = None, 0
    for path, name in re.findall(
        r"`([\w/]+\.py)?(?:::(test_\w+))?`", (ROOT / "docs" / "promises.md").read_text("utf-8")
    ):
        file = ROOT / "tests" / path if path else file
        if path or name:
            assert f"def {name}" in file.read_text("utf-8"), f"{file}: {name}"
            named += 1
    assert named > 40


def test_the_demo_prints_before_and_after(tmp_path, monkeypatch):
    """The demo shows every group under the model, repaired and recalibrated, what it costs, and writes a report."""
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["demo", "--rows", "3000"], env={"COLUMNS": "160"})
    assert result.exit_code == 0, result.output
    for word in (
        "mean funding, Female",
        "mean funding, Male",
        "recalibrated",
        "unconstrained",
        "lose, Female",
        "nobody worse off",
        "accuracy",
        "by lottery",
        "costs",
    ):
        assert word in result.output
    gaps = next(line for line in result.output.split("\n") if line.startswith("│ gap"))
    baseline, repaired, giving, recalibrated = (
        float(cell.strip().lstrip("$").replace(",", "")) for cell in gaps.split("│")[2:6]
    )
    assert recalibrated == 0
    assert min(baseline, repaired, giving) >= 0
    assert (tmp_path / "felicific-demo.html").read_text("utf-8").startswith("<!")
    kept = CliRunner().invoke(app, ["demo", "--rows", "1000"], env={"COLUMNS": "160"})
    assert "is kept" in kept.output


def test_the_demo_refuses_too_few_people():
    """A wrong option is one clear message and exit code 2, not a traceback."""
    result = CliRunner().invoke(app, ["demo", "--rows", "5"])
    assert result.exit_code == 2
    assert "Traceback" not in result.output
