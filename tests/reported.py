"""What is reported on by several test files: fitted classifiers, and names that no page may obey."""

import numpy as np
from helpers import traced

from felicific import FairClassifier, Happiness, Score

HOSTILE = (
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "two\nlines\x00",
    "x" * 10_000,
    "\ud800{{ 7*7 }}",
)


def loan(decision, x):
    """Thousands lent."""
    return decision * x["loan"]


def fitted(people, **settings):
    settings = {
        "happiness": Happiness(loan, unit="k$"),
        "gap": 0.0,
        "sensitive_features": "group",
        "random_state": 0,
    } | settings
    return FairClassifier(people.frozen("pandas"), **settings).fit(people.table("pandas"), people.y)


def many(n_groups, n_classes, happiness="statistical_parity", names=None, **settings):
    """A fitted classifier and people of many groups and classes."""
    from sklearn.frozen import FrozenEstimator
    from sklearn.linear_model import LogisticRegression

    names = [f"group {i}" for i in range(n_groups)] if names is None else names
    rng = np.random.default_rng(0)
    n = 100 * n_groups
    z = np.arange(n) % n_groups
    x = rng.normal(size=(n, 2)) + 0.1 * z[:, None]
    y = np.clip(np.round(x[:, 0] + 0.5 * rng.normal(size=n) + 1), 0, n_classes - 1).astype(int)
    model = FrozenEstimator(LogisticRegression().fit(x, y))
    group = np.array([*names, None], dtype=object)[z]
    fair = FairClassifier(model, happiness=happiness, random_state=0, **({"gap": 0.1} | settings))
    return fair.fit(x, y, sensitive_features=group), x, y, group


def amounts_world(n, seed, names=("Female", "Male"), steps=None):
    """People of some groups, those of the last predicted most; with ``steps``, predictions are so many at the most."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    z = rng.integers(0, len(names), n)
    x = rng.normal(40 + 5 * z / max(len(names) - 1, 1), 6 + z)
    if steps:
        x = np.round((x - 20) / 60 * steps) * 60 / steps + 20
    return pd.DataFrame({"x": x}), x + rng.normal(0, 4, n), np.array([*names, None], dtype=object)[z]


def fitted_amounts(names=("Female", "Male"), n=1_500, steps=None, **settings):
    """A regressor that was fitted to some people, whose model knows their column."""
    from sklearn.frozen import FrozenEstimator
    from sklearn.linear_model import LinearRegression

    from felicific import FairRegressor

    X, y, _ = amounts_world(800, 5, names, steps)
    model = FrozenEstimator(LinearRegression().fit(X, y))
    X, y, group = amounts_world(n, 1, names, steps)
    settings = {"happiness": "distributional_parity", "gap": 0.05, "random_state": 0} | settings
    return FairRegressor(model, **settings).fit(X, y, sensitive_features=group)


def long_line():
    """A frontier of more than a thousand breakpoints."""
    rng = np.random.default_rng(0)
    group, score = np.arange(30_000) % 130, rng.random(30_000)
    x = (rng.lognormal(0, 0.5, 30_000) * (1 + 3 * group / 130))[:, None]
    told = {"score": score, "y": rng.random(30_000) < score, "sensitive_features": group}
    amount = {"amount": lambda decision, x: decision * x[:, 0]}
    return traced(x, happiness=amount, policy=Score(monotone=False), **told)
