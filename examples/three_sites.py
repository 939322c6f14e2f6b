"""
Three hospitals that may not share patients
===========================================

They fit one policy, and only sums leave each site. Run it with ``python examples/three_sites.py``.

Each site sums up its own patients and sends one small file. The sums are added, and the policy that is fitted on them
is the one that all rows in one place would give. With a least number of people per score bin the files blur the score
a little more, so that no bin speaks of a few patients; nobody is dropped, so no mean is biased.
"""

import tempfile
from pathlib import Path

import numpy as np

from felicific import aggregate, load, plots, solve

GROUPS, LEAST = ["female", "male"], 10


def patients(n, seed, share):
    """One site's own patients: a model's risk score, who was really ill, and hours that a bed would be taken."""
    rng = np.random.default_rng(seed)
    sex = np.where(rng.random(n) < share, "female", "male")
    risk = rng.beta(2, 3, n) * np.where(sex == "female", 0.85, 1.0)
    return {
        "sex": sex,
        "risk": risk,
        "safe": 1 - risk,
        "ill": (rng.random(n) < risk).astype(int),
        "hours": rng.gamma(4, 12, n) + 6 * (sex == "male"),
    }


def summed(table):
    """What a site computes. Everyone agrees on classes, groups, happiness and its name, before looking at data."""

    def care(decision, x):
        return decision * x["hours"]

    return aggregate(
        table,
        score={0: "safe", 1: "risk"},
        y="ill",
        sensitive_features="sex",
        happiness={"hours of care": care},
        groups=GROUPS,
    )


def main():
    """Fit three times: on all rows, on three files, and on three files with small score bins merged."""
    sites = [patients(4_000, 1, 0.5), patients(1_500, 2, 0.7), patients(700, 3, 0.4)]
    with tempfile.TemporaryDirectory() as folder:
        for i, site in enumerate(sites):
            summed(site).save(Path(folder) / f"exact-{i}.json")
            summed(site).merged(LEAST).save(Path(folder) / f"merged-{i}.json")
        sizes = [file.stat().st_size for file in sorted(Path(folder).glob("*.json"))]
        exact = sum(load(Path(folder) / f"exact-{i}.json") for i in range(3))
        merged = sum(load(Path(folder) / f"merged-{i}.json") for i in range(3))

    pooled = summed({name: np.concatenate([site[name] for site in sites]) for name in sites[0]})
    fits = {
        name: solve(sums, gap=0.0, random_state=0)
        for name, sums in {
            "all rows in one place": pooled,
            "three files": exact,
            "three merged files": merged,
        }.items()
    }
    print(f"files of {min(sizes) / 1024:.0f} to {max(sizes) / 1024:.0f} KB")
    for name, policy in fits.items():
        means = ", ".join(f"{group} {mean:.2f} h" for group, mean in policy.means["hours of care"].items())
        print(f"{name:22} loss {policy.loss:.6f}, gap {policy.gap:.4f} h ({means})")
    return fits


if __name__ == "__main__":
    chart = plots.policy(main()["three files"])
