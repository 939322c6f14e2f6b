"""OxonFair's FairPredictor: one threshold per group, no lottery."""

from __future__ import annotations

import numpy as np
from exchange import run
from oxonfair import FairPredictor
from oxonfair import group_metrics as gm

# `equalized_odds` of OxonFair averages its two differences; the other peers and felicific bound the larger one.
MEASURES = {"statistical_parity": gm.demographic_parity, "equalized_odds": gm.equalized_odds_max}


def fit(validation: dict, test: dict, criterion: str, bound: float):
    predictor = FairPredictor(None, _data(validation))
    predictor.fit(gm.accuracy, MEASURES[criterion], bound, greater_is_better_const=False)
    return tuple(predictor.predict(_data(rows)).astype(float) for rows in (validation, test))


def _data(rows: dict) -> dict:
    score = rows["score"]
    return {"data": np.column_stack([1 - score, score]), "target": rows["y"], "groups": rows["group"]}


def steps(rows: dict):
    kept = {}

    def fitted():
        kept["fit"] = FairPredictor(None, _data(rows))
        kept["fit"].fit(gm.accuracy, gm.demographic_parity, 0.0, greater_is_better_const=False)

    # Its fit already searches the whole frontier.
    return {
        "fit": fitted,
        "predict": lambda: kept["fit"].predict(_data(rows)),
    }


if __name__ == "__main__":
    run("oxonfair", fit, steps)
