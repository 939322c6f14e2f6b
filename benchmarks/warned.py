"""Whether fits warn of what they do to people, and of nothing else: fills its block of ``docs/evidence/policies.md``.

    pip install -e ".[pandas]"
    python benchmarks/warned.py

Of Adult, 54 fits with every setting at its default but happiness, gap and groups: three splits, groups by sex, by race
and by both, two criteria, three gaps. A boosting model is fitted to a third of the rows, the policy to the others.
"""

from __future__ import annotations

import warnings
from collections import Counter
from itertools import product

import numpy as np
from shared import EVIDENCE, fill, table
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator

from felicific import FairClassifier
from felicific.datasets import adult

GROUPS = {"sex": ["sex"], "race": ["race"], "sex and race": ["sex", "race"]}


def main() -> None:
    """Count fits by whether intersections were harmed, and whether and how the fit warned."""
    data = adult(as_frame="pandas")
    X = data.X.astype(dict.fromkeys(data.X.select_dtypes(exclude="number").columns, "category"))
    count: Counter[tuple[str, str, bool, bool]] = Counter()
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(X))
        train, rest = np.split(order, [len(order) // 3])
        boosting = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
        model = FrozenEstimator(boosting.fit(X.iloc[train], data.y[train]))
        settings = product(GROUPS, ("demographic_parity", "equalized_odds"), (0.0, 0.02, 0.05))
        for groups, criterion, gap in settings:
            fair = FairClassifier(model, happiness=criterion, gap=gap, sensitive_features=GROUPS[groups])
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                fair.fit(X.iloc[rest], data.y[rest])
            own = [str(one.message) for one in heard if one.category.__module__ == "felicific.exceptions"]
            proposed = fair.impact_["proposed"]
            harm = bool(proposed.harmed or proposed.widened)
            count[groups, criterion, harm, bool(own)] += 1
            print(
                seed,
                groups,
                criterion,
                gap,
                "harm" if harm else "",
                len(own),
                own[:1],
                fair.policy_.cautions()[1:],
                flush=True,
            )


if __name__ == "__main__":
    main()
