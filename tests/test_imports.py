"""What importing felicific does, and which module may import which."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import felicific

SOURCE = Path(felicific.__file__).parent

ORDER = (
    "exceptions",
    "files",
    "progress",
    "clusters",
    "frames",
    "columns",
    "expressions",
    "engines",
    "groups",
    "happiness",
    "signals",
    "documents",
    "moments",
    "sums",
    "plans",
    "queries",
    "tables",
    "constraints",
    "program",
    "solution",
    "generation",
    "lottery",
    "sql",
    "decisions",
    "policy",
    "curves",
    "frontier",
    "calibration",
    "ledgers",
    "individual",
    "pricing",
    "pool",
    "bounds",
    "intervals",
    "gaps",
    "persons",
    "measures",
    "tallies",
    "findings",
    "audit",
    "comparison",
    "bands",
    "certificates",
    "safety",
    "fitting",
    "tryout",
    "tasks",
    "fitted",
    "scores",
    "intake",
    "classifier",
    "scoring",
    "plots",
    "report",
)

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


def imported(source):
    """Modules of felicific that a source imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import escapes this test"
            if node.module == "felicific":
                found |= {alias.name for alias in node.names}
            elif node.module.startswith("felicific."):
                found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {
                [*alias.name.split("."), "__init__"][1]
                for alias in node.names
                if alias.name.split(".")[0] == "felicific"
            }
    return found


@pytest.mark.parametrize(
    "code", ["import felicific", "from felicific import moments, solve, Policy, Happiness"]
)
def test_import_is_light(code):
    """Importing felicific imports no scikit-learn, dataframe, chart, engine or solver library."""
    loaded = {name.split(".")[0] for name in run(f"{code}\nimport sys\nprint(*sys.modules)")}
    assert "felicific" in loaded
    assert not loaded & HEAVY


def test_import_alone_does_nothing():
    """Importing felicific, and listing its names, does not even import NumPy."""
    loaded = {
        name.split(".")[0] for name in run("import felicific, sys\ndir(felicific)\nprint(*sys.modules)")
    }
    assert "felicific" in loaded
    assert "numpy" not in loaded


def test_light_solve():
    """Moments and a policy of a dict of arrays need the solver, and neither scikit-learn nor a dataframe library."""
    code = """
import sys
import numpy as np
from felicific import moments, solve
table = {"g": np.array([0, 0, 1, 1]), "y": np.array([0, 1, 0, 1]), "p": np.array([0, 1, 1, 1])}
m = moments(table, predicted="p", y="y", sensitive_features="g", happiness="statistical_parity")
policy = solve(m, random_state=0)
type(policy).from_json(policy.to_json()).decide(table["p"], table["g"], table["g"])
print(*sys.modules)
"""
    loaded = {name.split(".")[0] for name in run(code)}
    assert "highspy" in loaded
    assert not loaded & {"sklearn", "pandas", "polars", "pyarrow", "scipy"}


def test_every_public_name_resolves():
    """Every name of ``__all__`` exists, is listed by dir, and there are no others."""
    for name in felicific.__all__:
        assert getattr(felicific, name) is not None
    assert sorted(felicific.__all__) == dir(felicific)
    assert len(set(felicific.__all__)) == len(felicific.__all__)
    with pytest.raises(AttributeError, match="no_such_name"):
        felicific.no_such_name  # noqa: B018


@pytest.mark.parametrize(
    "first",
    [
        "import felicific.moments",
        "import felicific.moments; from felicific import FairClassifier; import felicific.scoring",
        "from felicific.moments import Moments",
    ],
)
def test_moments_is_the_function(first):
    """``felicific.moments`` is the function, whichever submodule was imported before; so with every such name."""
    code = f"{first}\nimport felicific\nfrom felicific import audit, frontier, moments\n"
    code += "import felicific.frontier, felicific.audit, felicific.moments\n"
    code += "print(*(type(f).__name__ for f in (audit, frontier, moments, felicific.frontier, felicific.moments)))"
    assert run(code) == ["function"] * 5


def test_policies_of_every_kind_can_be_read():
    """Whoever imports ``Policy`` alone can read the files of individual policies too."""
    assert "individual" in run("from felicific import Policy\nprint(*Policy.kinds)")


def test_moments_survive_pickle_beside_the_function():
    """Objects of the submodule that the function ``moments`` shadows can be pickled and read elsewhere."""
    code = """
import pickle
from felicific.moments import Outcome
print(pickle.loads(pickle.dumps(Outcome(0.5, None, None))).loss)
"""
    assert run(code) == ["0.5"]


@pytest.mark.parametrize("module", ORDER)
def test_modules_import_upwards_only(module):
    """A module imports only from those above it."""
    allowed = set(ORDER[: ORDER.index(module)])
    package = sorted((SOURCE / module).glob("*.py"))
    if package:
        allowed.add(module)
    for file in package or [SOURCE / f"{module}.py"]:
        assert imported(file.read_text("utf-8")) <= allowed, file.name


def test_the_test_of_imports_sees_imports():
    """The parser behind the test above finds every way to import."""
    source = """
from felicific.policy import Policy
import felicific.program as p, felicific.tables
def later():
    from felicific import solve
    import felicific
"""
    assert imported(source) == {"policy", "program", "tables", "solve", "__init__"}
    with pytest.raises(AssertionError, match="relative"):
        imported("from .policy import Policy")
