"""Which fits warn of harm, and which warn without one: fills its block of ``docs/evidence/policies.md``.

    pip install -e ".[pandas]"
    python benchmarks/warned.py

Of Adult, 72 fits with every setting at its default but happiness, gap and groups: four splits, groups by sex, by race
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
    """Count fits by whether an intersection is harmed, and by whether the fit warns."""
    data, count = adult(as_frame="pandas"), Counter[tuple[str, bool, bool]]()
    X = data.X.astype(dict.fromkeys(data.X.select_dtypes(exclude="number").columns, "category"))
    for seed in range(4):
        train, rest = np.split(np.random.default_rng(seed).permutation(len(X)), [len(X) // 3])
        boosting = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
        model = FrozenEstimator(boosting.fit(X.iloc[train], data.y[train]))
        for groups, criterion, gap in product(
            GROUPS, ("demographic_parity", "equalized_odds"), (0.0, 0.02, 0.05)
        ):
            fair = FairClassifier(model, happiness=criterion, gap=gap, sensitive_features=GROUPS[groups])
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                fair.fit(X.iloc[rest], data.y[rest])
            texts = [str(one.message) for one in found if one.category.__module__ == "felicific.exceptions"]
            proposed = fair.impact_["proposed"]
            count[groups, bool(proposed.harmed or proposed.widened), bool(texts)] += 1
            print(seed, groups, criterion, gap, *texts, sep="; ", flush=True)
    rows = []
    for groups in GROUPS:
        cells = [[count[groups, harmed, True], count[groups, harmed, False]] for harmed in (True, False)]
        rows.append(
            [groups, *(str(number) for warned, silent in cells for number in (warned + silent, warned))]
        )
    head = ["groups by", "fits that harm an intersection", "of these warn", "other fits", "of these warn"]
    fill(EVIDENCE / "policies.md", "warned", table(head, rows))


if __name__ == "__main__":
    main()
