"""How often a monitor raises a false alarm, how soon a true one, and what it costs.

    python benchmarks/monitoring.py [--worlds 1000] [--rows 100000] [--processes 2] [--only alarms|delays|cost]

Fills the tables of ``docs/evidence/monitoring.md``. Every world is a stream of people at the
boundary of what is allowed, monitored by the library's own code after every block of 100; an alarm at any time is a
false one.
What steering leaves is measured by ``benchmarks/steered.py``, and what repeated audits do by ``benchmarks/looks.py``.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing import Pool

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from shared import EVIDENCE, fill, machine, table

from felicific import Happiness, monitor
from felicific._statistics.stream import Rows, Stream
from felicific.exceptions import MonitorWarning

Draw = Callable[[np.random.Generator, int], Rows]
Floats = NDArray[np.float64]
LINE = math.log(20.0)


@dataclass(frozen=True)
class World:
    """People who come one after the other, what is allowed, and what is known of their values."""

    name: str
    draw: Draw
    gap: float
    groups: int = 2
    bounds: tuple[tuple[float, float] | None, ...] = ((0.0, 1.0),)

    def alarm(self, rows: int, seed: int) -> int:
        """After how many rows there is an alarm; 0 for never."""
        people = self.draw(np.random.default_rng(seed), rows)
        gaps = np.full(len(self.bounds), self.gap)
        _, crossed = Stream.begun(self.groups, list(self.bounds)).add(people, gaps, LINE)
        return 0 if crossed is None else crossed.rows


def rows_of(codes: NDArray[np.intp], *values: Floats) -> Rows:
    """Everybody is counted by every measure."""
    columns = np.stack(values, axis=1).astype(float)
    return Rows(codes, columns, np.ones(columns.shape, dtype=bool))


def rates(means: tuple[float, ...], shares: tuple[float, ...], rng: np.random.Generator, n: int) -> Rows:
    """Values of 0 and 1 with these rates by group."""
    codes = rng.choice(len(means), n, p=shares)
    return rows_of(codes, rng.random(n) < np.array(means)[codes])


def several(above: float, rng: np.random.Generator, n: int) -> Rows:
    """Four groups and two measures; one group is above the others in one of them."""
    codes = rng.choice(4, n, p=(0.4, 0.3, 0.2, 0.1))
    return rows_of(codes, rng.random(n) < 0.3 + above * (codes == 1), rng.random(n) < 0.6)


def drifting(gap: float, rng: np.random.Generator, n: int) -> Rows:
    """Level and mix of groups move together, by a sine; the difference stays."""
    wave = np.sin(np.arange(n) / 8_000.0)
    codes = (rng.random(n) < 0.5 + 0.3 * wave).astype(np.intp)
    return rows_of(codes, rng.random(n) < 0.4 + 0.2 * wave + gap * codes)


def jump(quiet: int, after: float, rng: np.random.Generator, n: int) -> Rows:
    """Equal groups, and from some row on one is above."""
    codes = rng.integers(0, 2, n)
    return rows_of(codes, rng.random(n) < 0.3 + after * ((np.arange(n) >= quiet) & (codes == 1)))


def lognormal(sigma: float, share: float, gap: float, most: float, rng: np.random.Generator, n: int) -> Rows:
    """Amounts of mean 1, one group above by the gap; no more than ``most``."""
    codes = (rng.random(n) < share).astype(np.intp)
    amounts = np.exp(sigma * rng.normal(size=n) - sigma**2 / 2)
    return rows_of(codes, np.minimum(amounts, most) + gap * codes)


def jackpots(chance: float, constant: bool, share: float, rng: np.random.Generator, n: int) -> Rows:
    """One group wins 1 / chance with this chance; the other too, or gets 1 for certain."""
    codes = (rng.random(n) < share).astype(np.intp)
    wins = (rng.random(n) < chance) / chance
    return rows_of(codes, np.where(codes == 1, wins, 1.0 if constant else (rng.random(n) < chance) / chance))


def pareto(power: float, constant: bool, rng: np.random.Generator, n: int) -> Rows:
    """Amounts whose tail falls by a power; the other group the same, or its mean for certain."""
    codes = rng.integers(0, 2, n)
    amounts = rng.pareto(power, n)
    return rows_of(codes, np.where((codes == 0) & constant, 1.0 / (power - 1.0), amounts))


EVEN, ONE_IN_TEN = (0.5, 0.5), (0.1, 0.9)

#: Known bounds: at most 5 % in every one.
BOUNDED = (
    World("rates .35 and .30, half and half, .05 allowed", partial(rates, (0.35, 0.30), EVEN), 0.05),
    World("the same, one in ten of the first", partial(rates, (0.35, 0.30), ONE_IN_TEN), 0.05),
    World("rare: .03 and .02, .01 allowed", partial(rates, (0.03, 0.02), EVEN), 0.01),
    World("equal: .5 and .5, 0 allowed", partial(rates, (0.5, 0.5), EVEN), 0.0),
    World(
        "4 groups, 2 measures, one group .05 above, .05 allowed",
        partial(several, 0.05),
        0.05,
        4,
        ((0.0, 1.0), (0.0, 1.0)),
    ),
    World("level and mix drift together, 0 allowed", partial(drifting, 0.0), 0.0),
    World("the same, .05 apart and allowed", partial(drifting, 0.05), 0.05),
    World(
        "dollars, lognormal (sigma 1.5) up to 50, one in six, .2 apart and allowed",
        partial(lognormal, 1.5, 1 / 6, 0.2, 50.0),
        0.2,
        bounds=((0.0, 50.2),),
    ),
)

#: No bounds are known: the rate that was measured.
UNBOUNDED = (
    World(
        "lognormal, sigma .9, one in six", partial(lognormal, 0.9, 1 / 6, 0.2, math.inf), 0.2, bounds=(None,)
    ),
    World(
        "lognormal, sigma 1.5, one in six", partial(lognormal, 1.5, 1 / 6, 0.2, math.inf), 0.2, bounds=(None,)
    ),
    *(
        World(
            f"a win of {1 / chance:,.0f} in {chance:.2%}; the others {'1 for certain' if sure else 'too'}; {words}",
            partial(jackpots, chance, sure, share),
            0.0,
            bounds=(None,),
        )
        for chance in (0.002, 0.01, 0.05)
        for sure in (True, False)
        for share, words in ((0.5, "half and half"), (0.1, "one in ten wins"))
    ),
    World("Pareto, power 2.1, both", partial(pareto, 2.1, False), 0.0, bounds=(None,)),
    World("Pareto, power 2.1; the others its mean", partial(pareto, 2.1, True), 0.0, bounds=(None,)),
    World(
        "Pareto, power 1.5 (no variance); the others its mean",
        partial(pareto, 1.5, True),
        0.0,
        bounds=(None,),
    ),
)


def alarms(worlds: tuple[World, ...], number: int, rows: int, pool: object) -> list[list[str]]:
    """How often there is an alarm at any time."""
    found = []
    for world in worlds:
        start = time.time()
        ends = pool.map(partial(world.alarm, rows), range(number), chunksize=10)  # type: ignore[attr-defined]
        rate = sum(end > 0 for end in ends) / number
        error = math.sqrt(max(rate * (1 - rate), 0.5 / number) / number)
        found.append([world.name, f"{rate:.1%}", f"{error:.1%}"])
        print(found[-1], f"{time.time() - start:.0f} s", flush=True)
    return found


@dataclass(frozen=True)
class Delay:
    """A gap that is there, or opens, and how many rows the first try needed to see it."""

    world: World
    rows: int
    quiet: int
    page: int


DELAYS = (
    Delay(World(".40 and .30, half and half", partial(rates, (0.40, 0.30), EVEN), 0.05), 60_000, 0, 3_650),
    Delay(
        World(".40 and .30, one in ten", partial(rates, (0.40, 0.30), ONE_IN_TEN), 0.05), 120_000, 0, 11_650
    ),
    Delay(World(".45 and .30, half and half", partial(rates, (0.45, 0.30), EVEN), 0.05), 20_000, 0, 1_300),
    Delay(
        World(".06 and .02, 3 to 7, .01 allowed", partial(rates, (0.06, 0.02), (0.3, 0.7)), 0.01),
        40_000,
        0,
        3_100,
    ),
    Delay(World("0, then .10 after 40,000 rows", partial(jump, 40_000, 0.10), 0.05), 90_000, 40_000, 10_200),
    Delay(
        World("0, then .10 after 200,000 rows", partial(jump, 200_000, 0.10), 0.05), 250_000, 200_000, 12_600
    ),
    Delay(World("0, then .15 after 40,000 rows", partial(jump, 40_000, 0.15), 0.05), 60_000, 40_000, 2_600),
    Delay(
        World(
            "4 groups, 2 measures, one .15 above", partial(several, 0.15), 0.05, 4, ((0.0, 1.0), (0.0, 1.0))
        ),
        30_000,
        0,
        2_100,
    ),
)


def delays(number: int, pool: object) -> list[list[str]]:
    """Median rows until the alarm; what was never seen counts as all rows, what was seen too early not at all."""
    found = []
    for delay in DELAYS:
        ends = np.array(pool.map(partial(delay.world.alarm, delay.rows), range(number), chunksize=5))  # type: ignore[attr-defined]
        after = np.where(ends == 0, delay.rows, ends)
        after = after[after > delay.quiet] - delay.quiet
        median = float(np.median(after))
        quarter, three = np.quantile(after, (0.25, 0.75))
        found.append(
            [
                delay.world.name,
                f"{median:,.0f}",
                f"{quarter:,.0f} to {three:,.0f}",
                f"{median / delay.page:.2f}",
            ]
        )
        print(found[-1], flush=True)
    return found


def cost() -> list[list[str]]:
    """Microseconds a row and bytes of a file, pandas included; and what sums of shards keep."""
    found = []
    for groups, happiness, words in (
        (2, Happiness("decision", bounds=(0, 1)), "2 groups, rates"),
        (2, Happiness("decision * loan", bounds=(0, 9_000)), "2 groups, dollars with bounds"),
        (2, Happiness("decision * loan"), "2 groups, dollars without"),
        (10, Happiness("decision", bounds=(0, 1)), "10 groups, rates"),
    ):
        rng, n = np.random.default_rng(0), 200_000
        people = pd.DataFrame(
            {
                "group": rng.choice([f"g{z}" for z in range(groups)], n),
                "approved": rng.integers(0, 2, n),
                "loan": rng.integers(1, 9_000, n),
                "id": np.arange(n),
            }
        )
        start = time.perf_counter()
        seen = monitor("approved", people, happiness=happiness, sensitive_features="group", gap=0.5)
        spent = 1e6 * (time.perf_counter() - start) / n
        start = time.perf_counter()
        looked = seen.evidence
        assert looked >= 0.0
        look = 1e3 * (time.perf_counter() - start)
        found.append([words, f"{spent:.2f}", f"{look:.2f}", f"{len(seen.to_json()) / 1e3:,.0f}"])
        print(found[-1], flush=True)
    return found


def shards(number: int) -> str:
    """Log evidence of two servers together beside that of one stream."""
    ratios = []
    for seed in range(number):
        people = rates((0.42, 0.30), EVEN, np.random.default_rng(seed), 60_000)
        mine = np.random.default_rng(seed + 10_000).random(60_000) < 0.5
        gap = np.array([0.05])
        whole = Stream.begun(2, [(0.0, 1.0)]).add(people, gap, LINE)[0]
        one, two = (
            Stream.begun(2, [(0.0, 1.0)]).add(Rows(*(part[chosen] for part in people)), gap, LINE)[0]
            for chosen in (mine, ~mine)
        )
        ratios.append(one.plus(two).shown.log_evidence(gap) / whole.shown.log_evidence(gap))
    middle, least, most = float(np.mean(ratios)), min(ratios), max(ratios)
    return (
        f"Log evidence of two servers together: {middle:.3f} of one stream's on average, {least:.3f} to {most:.3f} in "
        f"{number} worlds, since others are in a block together."
    )


def main() -> None:
    """Measure what is asked for, and fill the page."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--worlds", type=int, default=1_000)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", choices=["alarms", "delays", "cost"])
    given = parser.parse_args()
    warnings.simplefilter("ignore", MonitorWarning)
    parts = {}
    with Pool(given.processes) as pool:
        if given.only in (None, "cost"):
            parts["cost"] = table(["", "us a row", "ms a look", "kB of a file"], cost()) + "\n\n" + shards(40)
        if given.only in (None, "delays"):
            head = ["a gap where .05 is allowed", "median rows", "half of the worlds", "of the first try's"]
            parts["delays"] = table(head, delays(max(given.worlds // 5, 20), pool))
        if given.only in (None, "alarms"):
            head = ["known bounds", "false alarms", "standard error"]
            parts["with bounds"] = table(head, alarms(BOUNDED, given.worlds, given.rows, pool))
            head = ["no bounds", "false alarms", "standard error"]
            parts["without bounds"] = table(head, alarms(UNBOUNDED, given.worlds, given.rows, pool))
    for name, text in parts.items():
        fill(EVIDENCE / "monitoring.md", f"monitoring: {name}", text)
    print(machine())


if __name__ == "__main__":
    main()
