"""How often an audit that is repeated says "more" of a system that is exactly at the allowed gap.

    python benchmarks/looks.py [--runs 2000] [--jumps 200]

Fills ``docs/evidence/monitoring.md`` with two tables.
The first: percent of simulated years in which at least one look says "more". People who
get 0 or 1 are audited by their counts, as rows with frequency weights, which gives the verdict of all rows; sums of
money row by row. The second: the gap was 0 and jumps, and all rows so far are audited again and again; how many rows of
the jump there are before "more" is said.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from shared import EVIDENCE, fill, table

from felicific import audit
from felicific._audit.result import Audit

WEEKS, MONTHS = 52, 12
GROUPS = np.array(["a", "b", "c", "d"])


@dataclass(frozen=True)
class World:
    """What people of every group get on average, 0 or 1 or money; what is allowed, and how many come in a week."""

    means: tuple[float, ...]
    allowed: float
    week: int
    shares: tuple[float, ...] = (1, 1)
    money: bool = False

    @property
    def share(self) -> np.ndarray:
        """Share of every group."""
        return np.array(self.shares) / sum(self.shares)

    @property
    def probabilities(self) -> np.ndarray:
        """Chances to be of a group and get 1, then to be of a group and get 0."""
        rates = np.array(self.means)
        return np.concatenate([self.share * rates, self.share * (1.0 - rates)])

    def cells(self) -> list[str]:
        """What it is, in words."""
        sign = "$" if self.money else ""
        means = " v ".join(f"{sign}{mean:g}" for mean in self.means)
        return [means, ":".join(map(str, self.shares)), f"{self.week:,}", f"{sign}{self.allowed:g}"]


WORLDS = (
    World((0.35, 0.30), 0.05, 200),
    World((0.35, 0.30), 0.05, 1_000),
    World((0.35, 0.30), 0.05, 1_000, (1, 9)),
    World((0.03, 0.02), 0.01, 1_000),
    World((0.35, 0.35, 0.30, 0.30), 0.05, 1_000, (1, 1, 1, 1)),
    World((350, 300), 50, 500, money=True),
    World((0.5, 0.5), 0.0, 200),
    World((0.5, 0.5), 0.0, 1_000),
    World((0.3, 0.3), 0.0, 1_000, (1, 9)),
    World((0.3, 0.3, 0.3, 0.3), 0.0, 1_000, (1, 1, 1, 1)),
    World((350, 350), 0, 500, money=True),
)


def is_more(found: Audit) -> bool:
    test = found.measures[0].test
    return test is not None and test.verdict == "more"


def audit_counts(counts: np.ndarray, allowed: float) -> Audit:
    """An audit by its defaults of so many people with a 1 and with a 0, in the order of ``World.probabilities``."""
    groups = len(counts) // 2
    return audit(
        np.repeat([1, 0], groups),
        happiness="decision == 1",
        sensitive_features=np.tile(GROUPS[:groups], 2),
        decisions=[0, 1],
        gap=allowed,
        sample_weight=counts,
        weight_kind="frequency",
    )


def check_counts(world: World, rng: np.random.Generator) -> None:
    """Counts are tested as the rows that they count."""
    counts, groups = rng.multinomial(world.week, world.probabilities), len(world.means)
    people = np.repeat(np.arange(2 * groups), counts)
    rows = audit(
        (people < groups).astype(int),
        happiness="decision == 1",
        sensitive_features=GROUPS[people % groups],
        decisions=[0, 1],
        gap=world.allowed,
    )
    one, other = rows.measures[0].test, audit_counts(counts, world.allowed).measures[0].test
    assert one is not None
    assert other is not None
    assert one.verdict == other.verdict
    assert abs(one.p_value - other.p_value) < 1e-9


def looks_at(world: World, rng: np.random.Generator, people: list[int], *, apart: bool) -> Iterator[bool]:
    """What looks say after so many more people each: at all of them so far, or at each of these batches apart."""
    if world.money:
        yield from looks_at_money(world, rng, people, apart=apart)
        return
    counts = np.zeros(len(world.probabilities))
    for more in people:
        counts = rng.multinomial(more, world.probabilities) + (0.0 if apart else counts)
        yield is_more(audit_counts(counts, world.allowed))


def looks_at_money(
    world: World, rng: np.random.Generator, people: list[int], *, apart: bool
) -> Iterator[bool]:
    """The same of sums of money: six in ten get some, and their sums are lognormal."""
    n, given, sigma = sum(people), 0.6, 0.5
    group = rng.choice(len(world.means), n, p=world.share)
    decided = (rng.random(n) < given).astype(int)
    loan = np.array(world.means)[group] / given * rng.lognormal(-(sigma**2) / 2.0, sigma, n)
    stops = np.cumsum(people).tolist()
    for start, stop in zip([0, *stops], stops, strict=False):
        rows = slice(start if apart else 0, stop)
        asked = {"sensitive_features": GROUPS[group[rows]], "classes": [0, 1], "gap": world.allowed}
        yield is_more(audit(decided[rows], {"loan": loan[rows]}, happiness="decision * loan", **asked))


def false_alarms(world: World, runs: int, rng: np.random.Generator) -> list[float]:
    """Shares of years with "more": one look at the end, weekly and monthly at all so far, months each apart."""
    year = WEEKS * world.week
    if not world.money:
        check_counts(world, rng)
    plans = [
        ([year], False),
        ([world.week] * WEEKS, False),
        ([year // MONTHS] * MONTHS, False),
        ([year // MONTHS] * MONTHS, True),
    ]
    return [
        sum(any(looks_at(world, rng, people, apart=apart)) for _ in range(runs)) / runs
        for people, apart in plans
    ]


def rows_until_more(
    quiet: int, low: float, high: float, allowed: float, rng: np.random.Generator, every: int = 500
) -> int:
    """Rows of a jump from no gap to ``high - low`` that all rows so far need to show it, looked at every so many."""
    counts = rng.multinomial(quiet, World((low, low), allowed, every).probabilities).astype(float)
    probabilities, rows = World((high, low), allowed, every).probabilities, 0
    while True:
        counts, rows = counts + rng.multinomial(every, probabilities), rows + every
        if is_more(audit_counts(counts, allowed)):
            return rows


def jumps(runs: int, rng: np.random.Generator) -> Iterator[list[str]]:
    """Quiet rows before, the gap from then on, and the rows that it takes: median, and nine in ten of the runs."""
    for quiet, low, high in ((0, 0.3, 0.4), (40_000, 0.3, 0.4), (200_000, 0.3, 0.4), (40_000, 0.3, 0.45)):
        found = [rows_until_more(quiet, low, high, 0.05, rng) for _ in range(runs)]
        least, median, most = np.quantile(found, [0.05, 0.5, 0.95], method="nearest")
        yield [f"{quiet:,}", f"{high - low:.2f}", f"{median:,.0f}", f"{least:,.0f} to {most:,.0f}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--jumps", type=int, default=200)
    asked, alarms = parser.parse_args(), []
    for k, world in enumerate(WORLDS):
        shares = false_alarms(world, asked.runs, np.random.default_rng([WEEKS, k]))
        alarms.append([*world.cells(), *(f"{100 * share:.1f}" for share in shares)])
        print(" | ".join(alarms[-1]), file=sys.stderr, flush=True)
    plans = ["once, at the end", "every week, all so far", "12 times, all so far", "12 months, each apart"]
    first = table(["means", "groups", "rows a week", "allowed", *plans], alarms)
    head = ["quiet rows before", "gap from then on", "rows until 'more', median", "nine in ten"]
    second = table(head, list(jumps(asked.jumps, np.random.default_rng(WEEKS))))
    text = "\n\n".join(
        [
            f"Percent of {asked.runs:,} years in which some look says 'more' of a system exactly at the allowed gap.",
            first,
            f"All rows so far audited every 500 rows, allowed 0.05, .3 v .3 at first; {asked.jumps:,} runs.",
            second,
        ]
    )
    fill(EVIDENCE / "monitoring.md", "looks", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
