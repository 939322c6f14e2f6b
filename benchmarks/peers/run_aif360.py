"""AIF360's equalized odds post-processing, the fastest of its post-processors; it decides by labels."""

from __future__ import annotations

import pandas as pd
from aif360.algorithms.postprocessing import EqOddsPostprocessing
from aif360.datasets import BinaryLabelDataset
from exchange import run


def steps(rows: dict):
    groups = [{"group": 0}], [{"group": 1}]
    frame = pd.DataFrame({"group": rows["group"].astype(float), "y": rows["y"].astype(float)})
    truth = BinaryLabelDataset(df=frame, label_names=["y"], protected_attribute_names=["group"])
    own = truth.copy()
    own.labels = (rows["score"] > 0.5).astype(float)[:, None]
    own.scores = rows["score"][:, None]
    kept = {}

    def fitted():
        post = EqOddsPostprocessing(unprivileged_groups=groups[0], privileged_groups=groups[1], seed=0)
        kept["fit"] = post.fit(truth, own)

    return {"fit": fitted, "predict": lambda: kept["fit"].predict(own)}


if __name__ == "__main__":
    run("aif360", None, steps)
