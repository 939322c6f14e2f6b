"""How often verdicts, paired changes and losses of unequal costs are right, in worlds that are hard on them.

Fills its blocks of docs/evidence/coverage.md: ``python benchmarks/verdicts.py`` (minutes); ``--runs 50`` for a try.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator

import numpy as np
from scipy.stats import t
from shared import EVIDENCE, fill

from felicific import audit, compare
from felicific._statistics.gaps import range_interval, range_p_values
from felicific._statistics.intervals import summarise

LEVEL = 0.05

Draw = Callable[[np.random.Generator, int], np.ndarray]
WORLDS: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, n: rng.normal(1.0, 1.0, n), 1.0),
    "exponential": (lambda rng, n: rng.exponential(1.0, n), 1.0),
    "lognormal, sigma 0.5": (lambda rng, n: rng.lognormal(0.0, 0.5, n), math.exp(0.125)),
    "lognormal, sigma 1": (lambda rng, n: rng.lognormal(0.0, 1.0, n), math.exp(0.5)),
    "lognormal, sigma 1.5": (lambda rng, n: rng.lognormal(0.0, 1.5, n), math.exp(1.125)),
    "lognormal, sigma 2": (lambda rng, n: rng.lognormal(0.0, 2.0, n), math.exp(2.0)),
    "one in fifty gets about 20": (
        lambda rng, n: np.where(rng.random(n) < 0.02, rng.lognormal(3.0, 0.5, n), 0.0),
        0.02 * math.exp(3.125),
    ),
}
SIZES = ((30, 1500), (100, 1500), (30, 30), (1000, 1000), (30, 300, 1500))


def welch_more(sample: object) -> float:
    """The p-value of no gap that ignores skewness: 1 where the interval at its level holds 0."""
    low, _ = range_interval(sample, LEVEL)  # type: ignore[arg-type]  # a Sample
    return 0.0 if low > 0 else 1.0


def verdicts(runs: int, rng: np.random.Generator) -> Iterator[str]:
    yield "| values | people | 'more', ignoring skewness | 'more' | 'at most', worst of two | power of 'more' |"
    yield "|---|---|---|---|---|---|"
    for (name, (draw, mean)), sizes in ((world, sizes) for world in WORLDS.items() for sizes in SIZES):
        codes, g = np.repeat(np.arange(len(sizes)), sizes), len(sizes)
        wrong, shown = np.zeros(4), 0
        for _ in range(runs):
            values = draw(rng, len(codes))
            equal = summarise(values[:, None], codes, g).take(0)
            wrong[0] += welch_more(equal) <= LEVEL
            wrong[1] += range_p_values(equal, 0.0)[0] <= LEVEL
            for k, z in enumerate((0, g - 1)):
                apart = summarise((values + mean * (codes == z))[:, None], codes, g).take(0)
                wrong[2 + k] += range_p_values(apart, mean)[1] <= LEVEL
            far = summarise((values + 2.0 * mean * (codes == g - 1))[:, None], codes, g).take(0)
            shown += range_p_values(far, 0.0)[0] <= LEVEL
        rates = [
            100 * wrong[0] / runs,
            100 * wrong[1] / runs,
            100 * wrong[2:].max() / runs,
            100 * shown / runs,
        ]
        people = " : ".join(f"{size:,}" for size in sizes)
        yield f"| {name} | {people} | " + " | ".join(f"{rate:.1f}" for rate in rates) + " |"


def paired_t(change: np.ndarray) -> tuple[float, float]:
    """Student's paired interval."""
    from scipy.stats import t

    n, sd = len(change), change.std(ddof=1)
    half = t.ppf(1 - LEVEL / 2, n - 1) * sd / math.sqrt(n) if sd else 0.0
    return float(change.mean() - half), float(change.mean() + half)


#: By name: people in each group, share of women and of men who are approved from now on, and the happiness. Before,
#: three women and six men in ten are.
CHANGES = {
    "rate, one in ten women": (1000, 0.1, 0.0, "decision == 1"),
    "rate, one in fifty women": (200, 0.02, 0.0, "decision == 1"),
    "rate, one in thirty of both": (40, 0.03, 0.03, "decision == 1"),
    "dollars, one in ten women": (1000, 0.1, 0.0, "decision * loan"),
    "dollars, one in thirty of both": (60, 0.03, 0.03, "decision * loan"),
    "skewed dollars, one in five of both": (100, 0.2, 0.2, "decision * loan ** 3"),
}


def changes(runs: int, rng: np.random.Generator) -> Iterator[str]:
    yield "| what changes | people a group | women's mean | by paired t | the gap | width of the gap's interval |"
    yield "|---|---|---|---|---|---|"
    for name, (n, women, men, happiness) in CHANGES.items():
        group, power = np.repeat(["f", "m"], n), 3 if "3" in happiness else 1
        loan_mean = math.exp(0.5 * (0.5 * power) ** 2) if "loan" in happiness else 1.0
        rise = 0.7 * women * loan_mean, 0.4 * men * loan_mean
        truth = abs(0.3 * loan_mean + rise[0] - 0.6 * loan_mean - rise[1]) - 0.3 * loan_mean
        covered, width = np.zeros(3), 0.0
        for _ in range(runs):
            loan = rng.lognormal(0.0, 0.5, 2 * n)
            before = (rng.random(2 * n) < np.where(group == "f", 0.3, 0.6)).astype(int)
            flips = rng.random(2 * n) < np.where(group == "f", women, men)
            after = np.where(flips, 1, before)
            asked = {"happiness": happiness, "sensitive_features": group, "classes": [0, 1]}
            found = compare(*(audit(d, {"loan": loan}, **asked) for d in (before, after))).measures[0]
            mean = found.means["f"]
            covered[0] += mean.low <= rise[0] <= mean.high
            low, high = paired_t(
                ((after - before) * loan**power if "loan" in happiness else after - before)[:n]
            )
            covered[1] += low <= rise[0] <= high
            covered[2] += found.gap.low <= truth <= found.gap.high
            width += (found.gap.high - found.gap.low) / runs
        percent = " | ".join(f"{100 * share:.1f}" for share in covered / runs)
        yield f"| {name} | {n:,} | {percent} | {width:.3g} |"


def losses(runs: int, rng: np.random.Generator) -> Iterator[str]:
    yield "| costs | rare mistake | people | interval | by t |"
    yield "|---|---|---|---|---|"
    for cost, rare, n in ((100.0, 0.005, 120), (100.0, 0.005, 1000), (10.0, 0.01, 200), (10.0, 0.1, 1000)):
        truth, group = 0.3 + rare * cost, np.tile(["f", "m"], n // 2)
        covered = np.zeros(2)
        for _ in range(runs):
            mistake = rng.choice(3, n, p=[0.7 - rare, 0.3, rare])
            y, decided = (mistake == 2).astype(int), (mistake == 1).astype(int)
            asked = {"happiness": "decision == 1", "sensitive_features": group, "classes": [0, 1]}
            found = audit(decided, None, y, loss=[[0.0, 1.0], [cost, 0.0]], **asked)
            by_t = float(t.ppf(0.975, n - 1) * found.persons.loss_values().std(ddof=1) / math.sqrt(n))
            covered[0] += found.loss.low <= truth <= found.loss.high
            covered[1] += abs(found.loss.estimate - truth) <= by_t
        percent = " | ".join(f"{100 * share:.1f}" for share in covered / runs)
        yield f"| 1 and {cost:g} | {100 * rare:g} % | {n:,} | {percent} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    runs = parser.parse_args().runs
    rng = np.random.default_rng(14)
    for block, table in (("verdicts", verdicts), ("changes", changes), ("losses", losses)):
        text = "\n".join([f"{runs:,} data sets each.", "", *table(runs, rng)])
        fill(EVIDENCE / "coverage.md", block, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
