"""The baseline of every study: how people are split, and the forest that is trained on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Shares of the people who train the forest and who fit the policies; all others are the test.
SHARES = (0.20, 0.16)

#: Not a feature: another value in every row of the loans.
UNUSED = ("ApplicationDate",)


def split(n: int, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Rows of train, validation and test: 20, 16 and 64 % of ``n``, at random by a fixed seed."""
    order = np.random.default_rng(seed).permutation(n)
    n_train, n_validation = (round(share * n) for share in SHARES)
    train, validation, test = np.split(order, [n_train, n_train + n_validation])
    return train, validation, test


def make_forest(X: Any, seed: int) -> Any:
    """One-hot encoding and a random forest of scikit-learn's own settings, for tables like ``X``.

    One thread: with several, the trees' votes are summed in the order in which the threads end, and the last bits of
    a score differ from run to run.
    """
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    text = [name for name in X.columns if name not in UNUSED and X[name].to_numpy().dtype == object]
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), text),
        ("drop", [name for name in UNUSED if name in X.columns]),
        remainder="passthrough",
    )
    return make_pipeline(encoder, RandomForestClassifier(random_state=seed, n_jobs=1))
