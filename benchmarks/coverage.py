"""How often felicific's intervals hold the truth, on simulated data whose truth is known; and how fast they are.

    pip install -e . pandas fairlearn && python benchmarks/coverage.py [--runs 10000] [--out docs/evidence]

Group sums are drawn directly where that is the same thing: binomial counts for rates; for lognormal values sums over
blocks of 200 people, taken from a pool of blocks. The tables replace what stands between the markers of
``coverage.md`` in the folder ``--out``; every single setting goes to ``coverage.csv`` there. Exits with an error when
a promise is broken.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from felicific._statistics.betting import betting_limits
from shared import EVIDENCE, fill

from felicific._audit.methods import FEWEST
from felicific._statistics.gaps import range_interval, spread_of
from felicific._statistics.intervals import (
    Sample,
    bernstein_limits,
    exact_limits,
    hall_limits,
    hoeffding_width,
    mean_limits,
    summarise,
    t_limits,
    with_added,
)

SMALLEST = (200, 2_000, 20_000)
RATES = (0.005, 0.02, 0.1, 0.5)
SIGMAS = (0.5, 1.0, 1.5)
SETTINGS = tuple(product((2, 6), (1, 20), ("0", "more")))
ALPHA = 0.05

Rows = list[dict[str, Any]]


def sizes(n_groups: int, ratio: int, smallest: int) -> np.ndarray:
    return np.array([smallest] + [ratio * smallest] * (n_groups - 1))


def covers(limits: Any, truth: Any) -> np.ndarray:
    return (limits[0] <= truth) & (truth <= limits[1])


# ---------------------------------------------------------------------------------------------------------
# Rates


def rate_sample(rng: np.random.Generator, n: np.ndarray, p: np.ndarray, runs: int) -> Sample:
    hits = rng.binomial(n, p, (runs, len(n)))
    mean = hits / n
    sd = np.sqrt(mean * (1 - mean) * n / (n - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        skewness = np.where(sd > 0, (1 - 2 * mean) / np.sqrt(mean * (1 - mean)), 0.0)
    return Sample(np.broadcast_to(n.astype(float), mean.shape), mean, sd, skewness)


def rates(runs: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    for p, smallest, (n_groups, ratio, gap) in product(RATES, SMALLEST, SETTINGS):
        n = sizes(n_groups, ratio, smallest)
        truth = np.full(n_groups, p)
        truth[-1] += 0.0 if gap == "0" else min(0.5 * p, 0.1)
        sample = rate_sample(rng, n, truth, runs)
        gap_there = float(np.ptp(truth))
        by_limits = covers(spread_of(exact_limits(sample.n, sample.mean, ALPHA / (2 * n_groups))), gap_there)
        by_range = covers(range_interval(with_added(sample, 1.0), ALPHA), gap_there)
        hits = np.minimum(sample.n * sample.mean, sample.n * (1 - sample.mean)).min(axis=1)
        yield {
            "values": f"rate {p:g}",
            "smallest": smallest,
            "groups": n_groups,
            "ratio": ratio,
            "gap": gap,
            "runs": runs,
            "mean, Clopper-Pearson": covers(exact_limits(sample.n, sample.mean, ALPHA / 2), truth)[
                :, 0
            ].mean(),
            "mean, t": covers(mean_limits("added", sample, ALPHA / 2), truth)[:, 0].mean(),
            "mean, plain t": covers(t_limits(sample, ALPHA / 2), truth)[:, 0].mean(),
            "gap, Clopper-Pearson": by_limits.mean(),
            "gap, studentised range": by_range.mean(),
            "gap, automatic": np.where(hits >= FEWEST, by_range, by_limits).mean(),
        }


# ---------------------------------------------------------------------------------------------------------
# Lognormal values

BLOCK = 200


def block_sums(rng: np.random.Generator, sigma: float, blocks: int) -> np.ndarray:
    """Sums of powers 1 to 3 of blocks of people, of shape (blocks, 3), around the true mean."""
    mean = math.exp(sigma**2 / 2)
    found = np.empty((blocks, 3))
    for start in range(0, blocks, 5_000):
        part = rng.lognormal(0.0, sigma, (min(5_000, blocks - start), BLOCK)) - mean
        square = part * part
        found[start : start + len(part)] = np.stack(
            [part.sum(axis=1), square.sum(axis=1), (square * part).sum(axis=1)], axis=1
        )
    return found


def lognormal_sample(rng: np.random.Generator, pool: np.ndarray, n: np.ndarray, runs: int) -> Sample:
    """Mean (minus the true one), deviation and skewness of groups made of blocks."""
    parts = []
    for people in n:
        blocks = people // BLOCK
        sums = np.zeros((runs, 3))
        for start in range(0, runs, max(1, 2_000_000 // blocks)):
            stop = min(runs, start + max(1, 2_000_000 // blocks))
            index = rng.integers(0, len(pool), (stop - start, blocks))
            sums[start:stop] = pool[index].sum(axis=1)
        first, second, third = sums.T / people
        variance = second - first**2
        cubed = third - 3 * first * second + 2 * first**3
        parts.append((first, np.sqrt(variance * people / (people - 1)), cubed / variance**1.5))
    mean, sd, skewness = (np.stack(part, axis=1) for part in zip(*parts, strict=True))
    return Sample(np.broadcast_to(n.astype(float), mean.shape), mean, sd, skewness)


def lognormals(runs: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    for sigma in SIGMAS:
        pool = block_sums(rng, sigma, 40 * runs)
        centre = math.exp(sigma**2 / 2)
        for smallest, (n_groups, ratio, gap) in product(SMALLEST, SETTINGS):
            sample = lognormal_sample(rng, pool, sizes(n_groups, ratio, smallest), runs)
            factor = np.ones(n_groups)
            factor[-1] = 1.0 if gap == "0" else 1.2
            mean = (sample.mean + centre) * factor
            sample = Sample(sample.n, mean, sample.sd * factor, sample.skewness)
            truth = centre * factor
            yield {
                "values": f"lognormal, sigma {sigma:g}",
                "smallest": smallest,
                "groups": n_groups,
                "ratio": ratio,
                "gap": gap,
                "runs": runs,
                "mean, t": covers(t_limits(sample, ALPHA / 2), truth)[:, 0].mean(),
                "mean, corrected": covers(hall_limits(sample, ALPHA / 2), truth)[:, 0].mean(),
                "gap, studentised range": covers(range_interval(sample, ALPHA), np.ptp(truth)).mean(),
                "gap, corrected": covers(range_interval(sample, ALPHA, corrected=True), np.ptp(truth)).mean(),
            }


# ---------------------------------------------------------------------------------------------------------
# Values within known bounds


def clipped_lognormal(rng: np.random.Generator, shape: Any) -> np.ndarray:
    return np.minimum(rng.lognormal(0.0, 1.0, shape), 20.0) / 20.0


def lottery(rng: np.random.Generator, shape: Any) -> np.ndarray:
    return rng.choice([0.0, 0.37, 1.0], shape, p=[0.7, 0.1, 0.2])


def exceedance(t: float) -> float:
    """P(lognormal(0, 1) > t)."""
    return 0.5 * math.erfc(math.log(t) / math.sqrt(2))


def clipped_mean() -> float:
    t = np.linspace(1e-9, 20.0, 200_001)
    tail = np.array([exceedance(x) for x in t])
    return float(((tail[1:] + tail[:-1]) / 2 * np.diff(t)).sum() / 20.0)


BOUNDED = {
    "rate 0.005": (lambda rng, shape: (rng.random(shape) < 0.005).astype(float), 0.005),
    "rate 0.5": (lambda rng, shape: (rng.random(shape) < 0.5).astype(float), 0.5),
    "lottery": (lottery, 0.237),
    "beta(2, 5)": (lambda rng, shape: rng.beta(2, 5, shape), 2 / 7),
    "lognormal, sigma 1, capped at 20": (clipped_lognormal, clipped_mean()),
}


def bounded(runs: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    for (name, (draw, truth)), n in product(BOUNDED.items(), SMALLEST):
        many = max(100, min(runs, runs * 400 // n))  # the betting interval looks at every value, many times
        hits = widths = wide = covered = 0.0
        for _ in range(many):
            x = draw(rng, n)
            low, high = betting_limits(x, ALPHA / 2, 0.0, 1.0)
            covered += low <= truth <= high
            sample = summarise(x[:, None], np.zeros(n, dtype=np.intp), 1).take(0)
            limits = bernstein_limits(sample, ALPHA / 2, 0.0, 1.0)
            hits += bool(covers(limits, truth)[0])
            widths += high - low
            wide += float(limits[1][0] - limits[0][0])
        yield {
            "values": name,
            "smallest": n,
            "groups": 1,
            "ratio": 1,
            "gap": "",
            "runs": many,
            "mean, betting": covered / many,
            "mean, Bernstein": hits / many,
            "width, betting": widths / many / hoeffding_width(n, 0.95),
            "width, Bernstein": wide / many / hoeffding_width(n, 0.95),
        }


def width_ratio(rng: np.random.Generator) -> float:
    """Width of betting intervals relative to Hoeffding's, standard deviation .1, 1,000 people."""
    widths = []
    for _ in range(100):
        x = np.clip(rng.normal(0.5, 0.1, 1_000), 0.0, 1.0)
        low, high = betting_limits(x, 0.025, 0.0, 1.0)
        widths.append(high - low)
    return float(np.mean(widths) / hoeffding_width(1_000, 0.95))


# ---------------------------------------------------------------------------------------------------------
# Speed


def speed() -> dict[str, float]:
    """Seconds of an audit of a million rows, and of fairlearn's 100 bootstraps, both per row."""
    import pandas as pd
    from fairlearn.metrics import MetricFrame, selection_rate
    from sklearn.metrics import accuracy_score, precision_score, recall_score

    from felicific import audit

    rng = np.random.default_rng(0)
    n, small = 1_000_000, 20_000
    group, y = rng.integers(0, 6, n), rng.integers(0, 2, n)
    decided, loan = rng.integers(0, 2, n), rng.lognormal(0.0, 1.0, n)
    table = pd.DataFrame({"loan": loan, "group": group})
    happiness = {
        "dollars": lambda decision, x: decision * x["loan"],
        "approved": lambda decision, x: float(decision == 1),
        "right": lambda decision, y: y == decision,
        "refused dollars": lambda decision, x: (1 - decision) * x["loan"],
    }
    asked = {"happiness": happiness, "sensitive_features": "group", "method": "t"}
    audit(decided[:small], table[:small], y[:small], **asked)
    times = []
    for _ in range(7):
        start = time.perf_counter()
        audit(decided, table, y, **asked)
        times.append(time.perf_counter() - start)
    metrics = {
        "a": selection_rate,
        "b": accuracy_score,
        "c": recall_score,
        "d": precision_score,
    }
    start = time.perf_counter()
    MetricFrame(
        metrics=metrics, y_true=y[:small], y_pred=decided[:small], sensitive_features=group[:small],
        n_boot=100, ci_quantiles=[0.025, 0.975], random_state=0,
    )  # fmt: skip
    theirs = time.perf_counter() - start
    return {
        "seconds": min(times),
        "fairlearn": theirs,
        "fairlearn rows": small,
        "times": (theirs / small) / (min(times) / n),
    }


# ---------------------------------------------------------------------------------------------------------
# Tables and promises


def percent(number: float) -> str:
    return f"{100 * number:.1f}"


def figure(rows: Rows, value: str, smallest: int, measure: str) -> float:
    """Of a gap the worst of the settings; of the smallest group's mean, the same in all of them, the average."""
    found = [row[measure] for row in rows if row["values"] == value and row["smallest"] == smallest]
    return float(np.mean(found) if measure.startswith("mean") else min(found))


def worst_table(rows: Rows, measures: list[str]) -> str:
    """One line per distribution and size."""
    names = list(dict.fromkeys(row["values"] for row in rows))
    lines = ["| values | smallest group | " + " | ".join(measures) + " |", "|---" * (len(measures) + 2) + "|"]
    for name, smallest in product(names, SMALLEST):
        found = [percent(figure(rows, name, smallest, measure)) for measure in measures]
        lines.append(f"| {name} | {smallest:,} | " + " | ".join(found) + " |")
    return "\n".join(lines)


def bounded_table(rows: Rows) -> str:
    lines = [
        "| values in [0, 1] | people | data sets | betting | Bernstein | betting width | Bernstein width |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row['values']} | {row['smallest']:,} | {row['runs']:,} | {percent(row['mean, betting'])} | "
            f"{percent(row['mean, Bernstein'])} | {row['width, betting']:.2f} | {row['width, Bernstein']:.2f} |"
        )
    return "\n".join(lines)


def margin(target: float, runs: int) -> float:
    """Three binomial standard deviations."""
    return 3 * math.sqrt(target * (1 - target) / runs)


def broken(rates: Rows, logs: Rows, within: Rows, ratio: float) -> list[str]:
    """Promises that the numbers break, beyond what chance explains."""
    found = []
    for row in rates + logs + within:
        exact = [
            m
            for m in row
            if m.startswith(("mean, ", "gap, ")) and m.endswith(("Pearson", "betting", "Bernstein"))
        ]
        for measure in exact:
            if row[measure] < 0.95 - margin(0.95, row["runs"]):
                found.append(f"{measure} covers {row[measure]:.4f}: {row}")
    for row in rates + logs:
        name = row["values"]
        enough = name == "lognormal, sigma 0.5" or (
            name.startswith("rate") and float(name.split()[1]) * row["smallest"] >= 5
        )
        for measure in ("mean, t", "gap, studentised range"):
            if enough and row[measure] < 0.94 - margin(0.94, row["runs"]):
                found.append(f"{measure} covers {row[measure]:.4f}: {row}")
    if ratio > 1 / 3:
        found.append(f"betting is {ratio:.2f} of Hoeffding's width")
    return found


def write_csv(path: Path, rows: Rows) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(
            [{k: f"{v:.4f}" if isinstance(v, float) else v for k, v in row.items()} for row in rows]
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--out", type=Path, default=EVIDENCE)
    asked, start = parser.parse_args(), time.perf_counter()
    rng, page = np.random.default_rng(2024), asked.out / "coverage.md"
    found_rates = list(rates(asked.runs, rng))
    columns = [name for name in found_rates[0] if name.startswith(("mean", "gap, "))]
    fill(page, "rates", worst_table(found_rates, columns))
    logs = list(lognormals(asked.runs, rng))
    columns = [name for name in logs[0] if name.startswith(("mean", "gap, "))]
    fill(page, "lognormal", worst_table(logs, columns))
    within = list(bounded(asked.runs, rng))
    ratio = width_ratio(rng)
    sentence = f"At a standard deviation of .1 and 1,000 people, betting is {ratio:.2f} of Hoeffding's width."
    fill(page, "bounded", f"{bounded_table(within)}\n\n{sentence}")
    fast = speed()
    fill(
        page,
        "speed",
        f"One million rows, 6 groups, 4 measures: {fast['seconds']:.2f} s. fairlearn's `MetricFrame` with 100 "
        f"bootstraps and 4 metrics took {fast['fairlearn']:.1f} s for {fast['fairlearn rows']:,} rows: "
        f"{fast['times']:,.0f} times as long per row.",
    )
    write_csv(asked.out / "coverage.csv", found_rates + logs + within)
    faults = broken(found_rates, logs, within, ratio)
    print(*faults, sep="\n")
    print(f"{time.perf_counter() - start:.0f} s in all, {len(faults)} promises broken")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
