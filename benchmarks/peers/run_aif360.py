"""AIF360's equalized odds post-processing, the fastest of its post-processors; it decides by labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
from aif360.algorithms.postprocessing import EqOddsPostprocessing
from aif360.datasets import BinaryLabelDataset
from exchange import run

GROUPS = {"unprivileged_groups": [{"group": 0}], "privileged_groups": [{"group": 1}]}


def datasets(rows: dict):
    """The labels as they are, and as the scores predict them; its tables hold numbers alone."""
    group = rows["group"] if rows["group"].dtype != object else rows["group"] == "men"
    frame = pd.DataFrame({"group": group.astype(float), "y": rows["y"].astype(float)})
    truth = BinaryLabelDataset(df=frame, label_names=["y"], protected_attribute_names=["group"])
    own = truth.copy()
    own.labels = (rows["score"] > 0.5).astype(float)[:, None]
    own.scores = rows["score"][:, None]
    return truth, own


def fit(validation: dict, test: dict, criterion: str, bound: float):
    """Probabilities that it draws with; it offers equalized odds alone, and exactly."""
    if criterion != "equalized_odds" or bound > 0:
        return None
    post = EqOddsPostprocessing(**GROUPS, seed=0).fit(*datasets(validation))
    return tuple(_probability(post.model_params.x, rows) for rows in (validation, test))


def _probability(chances, rows: dict):
    """Chance of a favourable decision: first the privileged group's, given a predicted 1 or 0, then the other's."""
    favourable = (rows["score"] > 0.5).astype(int)
    return np.array([[chances[3], chances[2]], [chances[1], chances[0]]])[rows["group"], favourable]


def steps(rows: dict):
    """Fit and predict, to be timed. Tables of numbers are made beforehand, of text by the fit as everybody must."""
    text = rows["group"].dtype == object
    kept = {} if text else {"data": datasets(rows)}

    def fitted():
        if text:
            kept["data"] = datasets(rows)
        kept["fit"] = EqOddsPostprocessing(**GROUPS, seed=0).fit(*kept["data"])

    return {"fit": fitted, "predict": lambda: kept["fit"].predict(kept["data"][1])}


if __name__ == "__main__":
    run("aif360", fit, steps)
