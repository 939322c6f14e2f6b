"""People of files that are handed to commands."""

import numpy as np
import pandas as pd


def make_loans(n, seed, sexes=("Female", "Male")):
    """People with a score, the present decision, and what became of them."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(list(sexes), n)
    score = np.round(rng.beta(2, 2, n), 3)
    return pd.DataFrame(
        {
            "id": [f"{seed}-{i:05d}" for i in range(n)],
            "sex": sex,
            "race": rng.choice(["a", "b", "c", "d"], n, p=[0.5, 0.3, 0.15, 0.05]),
            "loan": np.round(rng.lognormal(2, 0.5, n) * np.where(sex == "Female", 1.4, 1.0), 2),
            "score": score,
            "approved": (score > 0.5).astype(int),
            "repaid": (rng.random(n) < score).astype(int),
        }
    )
