"""What several test files share: some people in any table, a frozen model of them, a check of errors."""

import io
import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace

# Before NumPy is loaded: on tiny problems the threads of a linear algebra library only wait for each other
# (on two busy cores the tests ran three times as long).
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import numpy as np  # noqa: E402  # see above
import pytest  # noqa: E402
from helpers import by  # noqa: E402
from hypothesis import settings  # noqa: E402

import felicific  # noqa: E402
from felicific._tables import progress  # noqa: E402
from felicific.exceptions import FelicificError  # noqa: E402

# How many examples Hypothesis makes: ten, the same in every run, or with ``--hypothesis-profile=thorough`` 200 that are
# drawn anew. No test says it for itself. A busy machine may take long over one example.
settings.register_profile(
    "quick", max_examples=10, derandomize=True, database=None, deadline=None, print_blob=True
)
settings.register_profile("thorough", max_examples=200, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_collection_modifyitems(config, items):
    """Skip tests that start a cluster where other test processes run beside this one (see the marker)."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        skip = pytest.mark.skip(reason="starts a cluster: run this file without -n, as .ci/run does")
        for item in items:
            if item.get_closest_marker("cluster"):
                item.add_marker(skip)


#: Files of tests in which solve and frontier charge what they charge users, and gaps leave out small groups.
AS_USERS = (
    "test_docs",
    "test_docstrings",
    "test_examples",
    "test_readme",
    "test_studies",
    "test_who_is_compared",
)


@pytest.fixture(scope="module", autouse=True)
def changes_cost_nothing(request):
    """The oracles minimise the loss alone and compare groups of any size, where a test does not say otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.stem not in AS_USERS:
            charged = request.path.stem == "test_changes"
            for function in () if charged else (felicific.solve, felicific.frontier):
                patch.setitem(function.__kwdefaults__, "change_cost", 0.0)
            for requirement in (felicific.Gap, felicific.Ratio):
                patch.setattr(requirement, "min_people", 0)
                everybody = tuple(0 if one == 30 else one for one in requirement.__init__.__defaults__)
                patch.setattr(requirement.__init__, "__defaults__", everybody)
        yield


@dataclass(frozen=True)
class People:
    """Numeric columns, the last of which identifies the person, and labels 0 and 1."""

    columns: dict
    y: np.ndarray
    models: dict = field(default_factory=dict)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, column):
        return self.columns[column]

    def table(self, library, columns=None, **changed):
        """The columns in this library; ``changed`` replaces or adds some."""
        content = {name: self.columns[name] for name in columns or self.columns} | changed
        if library == "pandas":
            import pandas as pd

            return pd.DataFrame(content)
        if library == "polars":
            import polars as pl

            # strict=False lets a hostile column be of mixed types, as a pandas one may be.
            return pl.DataFrame({name: list(values) for name, values in content.items()}, strict=False)
        if library == "arrow":
            import pyarrow as pa

            return pa.table(content)
        array = np.empty((len(next(iter(content.values()))), len(content)), dtype=object)
        for position, values in enumerate(content.values()):
            array[:, position] = values
        return array

    def name(self, library, column):
        """How a column is called in this library: an array has positions only."""
        return list(self.columns).index(column) if library == "numpy" else column

    def frozen(self, library):
        """A model fitted on everything but the identifier, in this library."""
        from sklearn.frozen import FrozenEstimator
        from sklearn.linear_model import LogisticRegression

        if library not in self.models:
            features = self.table(library, [name for name in self.columns if name != "id"])
            self.models[library] = LogisticRegression().fit(features, self.y)
        return FrozenEstimator(self.models[library])

    def fit(
        self, library, *, columns=None, y=None, groups=None, weight=None, rows=None, model=None, **settings
    ):
        """A classifier fitted on these people, with some columns, labels or settings changed."""
        from felicific import FairClassifier

        X = self.table(library, **(columns or {}))
        y = self.y if y is None else y
        if rows is not None:
            X = X.iloc[rows] if library == "pandas" else X[rows]
            y = y[rows]
        common = {
            "happiness": "statistical_parity",
            "gap": 0.0,
            "sensitive_features": None if groups is not None else self.name(library, "group"),
            "key": self.name(library, "id"),
            "random_state": 0,
        }
        fair = FairClassifier(model or self.frozen(library), **common | settings)
        return fair.fit(X, y, sensitive_features=groups, sample_weight=weight)


def make_people(n=400, seed=0):
    """Two groups (0 and 1) of which one scores higher; a loan in thousands; a region of three."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    score = rng.normal(size=n) + 0.8 * group
    wealth = rng.normal(size=n)
    y = (score + 0.5 * wealth + rng.normal(size=n) > 0.4).astype(int)
    columns = {
        "score": score,
        "wealth": wealth,
        "loan": rng.integers(5, 50, n).astype(float),
        "group": group,
        "region": rng.integers(0, 3, n),
        "id": np.arange(n) + 1000,
    }
    return People(columns, y)


@pytest.fixture(scope="session")
def people():
    return make_people()


@contextmanager
def refused(exception, *words, remedy=None):
    """Insist on exactly this exception, naming all the words, and ending with a remedy."""
    with pytest.raises(FelicificError) as caught:
        yield caught
    error = caught.value
    assert type(error) is exception, f"{type(error).__name__}: {error}"
    for word in words:
        assert str(word) in str(error), f"{word!r} is not in {str(error)!r}"
    assert error.remedy.endswith((".", "?"))
    assert str(error).endswith(error.remedy)
    if remedy is not None:
        assert remedy in error.remedy, f"{remedy!r} is not in {error.remedy!r}"


@pytest.fixture(scope="session")
def refuses():
    return refused


class Terminal(io.StringIO):
    """A terminal that remembers all that was written to it."""

    def isatty(self):
        return True

    @property
    def lines(self):
        """The texts that stood on the line, one after another."""
        return [text.rstrip() for text in self.getvalue().split("\r") if text.strip()]

    @property
    def screen(self):
        """What is left on the line: what was written last, over what was there."""
        shown = ""
        for text in self.getvalue().split("\r"):
            shown = text + shown[len(text) :]
        return shown.rstrip()


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of 60 columns, on which every word is shown at once."""
    stream = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    monkeypatch.setenv("COLUMNS", "60")
    return stream


@pytest.fixture
def large_samples():
    """Intervals by large samples: what holds for any distribution is another number on engines than in memory."""
    with by("large"):
        yield
