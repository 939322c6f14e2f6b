"""What importing felicific does, and which module may import which."""

import subprocess
import sys
from pathlib import Path

import pytest

import felicific
from felicific.cli import run as typed

SOURCE = Path(felicific.__file__).parent

HEAVY = {
    "altair", "dask", "duckdb", "highspy", "hypothesis", "IPython", "jinja2", "joblib", "matplotlib", "narwhals",
    "pandas", "polars", "pyarrow", "pyspark", "rich", "scipy", "skops", "sklearn", "typer", "vl_convert",
}  # fmt: skip


def run(code, *options):
    done = subprocess.run(
        [sys.executable, "-W", "error", *options, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    "code", ["import felicific", "from felicific import aggregate, solve, Policy, Happiness"]
)
def test_import_is_light(code):
    """Importing felicific imports no scikit-learn, dataframe, chart, engine or solver library."""
    loaded = {name.split(".")[0] for name in run(f"{code}\nimport sys\nprint(*sys.modules)")}
    assert "felicific" in loaded
    assert not loaded & HEAVY


def test_the_files_of_engines_are_light():
    """The file of an engine imports its library only when there is such a table."""
    files = sorted(path.stem for path in (SOURCE / "_tables").glob("*.py") if path.stem != "__init__")
    assert {"polars", "duckdb", "arrow", "dask", "spark"} <= set(files)
    code = "\n".join(f"import felicific._tables.{name}" for name in files)
    loaded = {name.split(".")[0] for name in run(f"{code}\nimport sys\nprint(*sys.modules)")}
    assert not loaded & HEAVY


def test_import_alone_does_nothing():
    """Importing felicific, and listing its names, does not even import NumPy."""
    loaded = {
        name.split(".")[0] for name in run("import felicific, sys\ndir(felicific)\nprint(*sys.modules)")
    }
    assert "felicific" in loaded
    assert "numpy" not in loaded


@pytest.mark.parametrize(("asked", "solver"), [("statistical_parity", False), ("equalized_odds", True)])
def test_light_solve(asked, solver):
    """Aggregates and a policy of a dict of arrays need the solver at most, not scikit-learn nor a dataframe library."""
    code = f"""
import sys
import numpy as np
from felicific import aggregate, solve
table = {{"g": np.repeat([0, 1], 60), "y": np.tile([0, 1], 60), "p": np.tile([0, 1, 1, 1, 1], 24)}}
m = aggregate(table, predicted="p", y="y", sensitive_features="g", happiness={asked!r}, policy="label")
policy = solve(m, gap=0.1, random_state=0)
type(policy).from_json(policy.to_json()).decide(table["p"], table["g"], table["g"])
print(*sys.modules)
"""
    loaded = {name.split(".")[0] for name in run(code)}
    assert ("highspy" in loaded) == solver
    assert not loaded & {"sklearn", "pandas", "polars", "pyarrow", "scipy"}


def test_every_public_name_resolves():
    """Every name of ``__all__`` exists, is listed by dir, and there are no others."""
    for name in felicific.__all__:
        assert getattr(felicific, name) is not None
    assert sorted(felicific.__all__) == dir(felicific)
    assert len(set(felicific.__all__)) == len(felicific.__all__)
    with pytest.raises(AttributeError, match="no_such_name"):
        felicific.no_such_name  # noqa: B018


def test_no_function_shares_its_name_with_a_module():
    """Every module is private or holds no public name, so that no function hides one."""
    modules = {path.stem for path in SOURCE.iterdir() if not path.name.startswith("_")}
    assert modules.isdisjoint(felicific.__all__)


def test_packages_are_empty():
    """Importing a package imports nothing else, so the light import stays light."""
    for package in SOURCE.glob("_*/__init__.py"):
        assert package.read_text("utf-8") == "", package


def test_policies_of_every_kind_can_be_read():
    """Whoever imports ``Policy`` alone can read the files of individual policies too."""
    assert "individual" in run("from felicific import Policy\nprint(*Policy.kinds)")


def test_an_old_name_is_answered_with_the_new_one(capsys):
    """In Python and on the command line, in one line; any other name is unknown."""
    for old, new in {"moments": "aggregate", "watch": "monitor", "Losers": "WorseOff"}.items():
        with pytest.raises(AttributeError, match=f"It is now called felicific.{new}."):
            getattr(felicific, old)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        felicific.nothing  # noqa: B018  # the name is what is tried
    for words, new in (
        (["watch", "a.csv"], "monitor"),
        (["audit", "a.csv", "--hidden=3"], "--max-odds-ratio"),
    ):
        assert typed(words) == 2
        assert f"is now called {new}." in capsys.readouterr().err
