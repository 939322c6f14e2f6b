"""How often the verdict of a report is wrong, in worlds whose truth is known.

Fills its block of docs/evidence/report.md: ``python benchmarks/signed.py`` (some minutes); ``--runs 50`` for a try.

Every world is a finite population from which people are drawn with replacement, so that the truth is known exactly:
what the policy that was fitted does to all of them. A policy is fitted on some, and its verdict is on others.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from shared import EVIDENCE, fill
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator

from felicific import FairClassifier, Happiness
from felicific._audit.facts import LITTLE
from felicific._audit.verdict import Verdict
from felicific._fit.assessment import Assessment

PEOPLE = 200_000


class Given(ClassifierMixin, BaseEstimator):
    """A model whose probabilities stand in the table."""

    def __init__(self) -> None:
        self.classes_ = np.array([0, 1])

    def fit(self, X: Any, y: Any) -> Given:
        """Nothing is learnt."""
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """As they stand in the table."""
        score = X["score"].to_numpy()
        return np.column_stack([1.0 - score, score])

    def predict(self, X: Any) -> np.ndarray:
        """The likelier class."""
        return (X["score"].to_numpy() > 0.5).astype(int)


@dataclass(frozen=True)
class World:
    """People, and what is asked.

    ``shift`` is how far apart the scores of the groups are, ``loans`` how much larger those of the second group;
    ``others`` are the people that the verdict is on, if they are not like the fitted ones.
    """

    about: str
    shares: tuple[float, ...] = (0.6, 0.4)
    shift: float = 0.0
    loans: float = 1.0
    level: float = 0.0
    sigma: float = 0.5
    funding: bool = False
    gap: float = 0.0
    confidence: float | None = None
    fitted: int = 3_000
    tested: int = 4_000
    others: World | None = None
    in_sample: bool = False
    fixed: bool = False
    blind: bool = False


def population(world: World, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    z = rng.choice(len(world.shares), PEOPLE, p=world.shares)
    step = z / max(1, len(world.shares) - 1)
    score = 1.0 / (1.0 + np.exp(-(rng.normal(size=PEOPLE) * 1.5 + world.level - world.shift * step)))
    loan = rng.lognormal(0.0, world.sigma, PEOPLE) * 100_000 * (1.0 + (world.loans - 1.0) * step)
    y = (rng.random(PEOPLE) < score).astype(int)
    return pd.DataFrame({"score": score, "loan": loan, "group": z, "y": y})


def draw(people: pd.DataFrame, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """People like these; a number of their own tells them from others who are alike."""
    return people.iloc[rng.integers(0, len(people), n)].reset_index(drop=True).assign(number=rng.random(n))


def classifier(world: World, seed: int) -> FairClassifier:
    dollars = Happiness("decision * loan", name="funding", unit="$")
    approved = Happiness("decision == 1", name="approved", unit="share", rate=True)
    return FairClassifier(
        FrozenEstimator(Given()),
        happiness=dollars if world.funding else approved,
        gap=world.gap,
        confidence=world.confidence,
        sensitive_features="group",
        sees_group=not world.blind,
        policy="score",
        random_state=seed,
    )


def values(world: World, people: pd.DataFrame, favourable: np.ndarray) -> np.ndarray:
    return favourable * people["loan"].to_numpy() if world.funding else favourable


def truth(world: World, people: pd.DataFrame, fair: FairClassifier) -> tuple[np.ndarray, np.ndarray]:
    """Group means of the whole population, under the model and under the policy."""
    z = people["group"].to_numpy()
    probabilities = fair.policy_.probabilities(people["score"].to_numpy(), None if world.blind else z)[:, 1]
    baseline = (people["score"].to_numpy() > 0.5).astype(float)
    n = np.bincount(z)
    one, other = (np.bincount(z, values(world, people, odd)) / n for odd in (baseline, probabilities))
    return one, other


@cache
def people_of(world: World) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The people that policies are fitted on, and those that verdicts are on."""
    first = population(world)
    return first, first if world.others is None else population(world.others, 1)


@cache
def fixed_policy(world: World) -> FairClassifier:
    """A policy that is the same in every run."""
    people = draw(people_of(world)[0], 40_000, np.random.default_rng(0))
    return classifier(world, 0).fit(people, people["y"])


@cache
def turned(world: World) -> World:
    """Other people on whom the fixed policy leaves the gap just as large as it is, the other way round: no smaller."""
    fair, (low, high) = fixed_policy(world), (0.0, 2.0 * world.shift + 1.0)
    for _ in range(40):
        middle = (low + high) / 2.0
        one, other = truth(world, population(replace(world, shift=middle)), fair)
        low, high = (low, middle) if np.ptp(other) < np.ptp(one) else (middle, high)
    return replace(world, shift=low)


def run(world: World, seed: int) -> tuple[str, dict[str, bool]]:
    """The verdict of one run, and what it says that is not true."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([seed, 17])
    fitted, others = people_of(world)
    if world.fixed:
        fair, others = fixed_policy(world), people_of(turned(world))[0]
    else:
        sample = draw(fitted, world.fitted, rng)
        try:
            fair = classifier(world, seed).fit(sample, sample["y"])
        except ValueError as error:
            return type(error).__name__, {}
    tested = sample if world.in_sample else draw(others, world.tested, rng)
    verdict = judge(fair, tested)
    one, other = truth(world, others, fair)
    return f"{verdict.kind}: {verdict.reason}", wrongs(verdict, fair, world, one, other)


def judge(fair: FairClassifier, tested: pd.DataFrame) -> Verdict:
    """The verdict at the position that is proposed, as the page has it."""
    tried = fair._tryout(tested, tested["y"], None, None)
    seen = " ".join(fair._note_fitted(tried.people))
    told: dict[str, Any] = {"certificate": fair.certificate_, "in_sample": seen, "labels": "all"}
    return Assessment.of(tried, fair.frontier_, fair.policy_, **told).verdict


def wrongs(
    verdict: Verdict, fair: FairClassifier, world: World, one: np.ndarray, other: np.ndarray
) -> dict[str, bool]:
    """What was said falsely."""
    shrinks, change = np.ptp(other) < np.ptp(one), other - one
    says = verdict.kind in ("levels-down", "certified", "unpromised")
    bound = max(fair.certificate_.gaps.values(), default=np.inf)
    return {
        "shrinks": says and not shrinks,
        "certified": verdict.kind == "certified" and (not shrinks or np.ptp(other) > bound),
        "levels-down": verdict.kind == "levels-down" and bool(change.max() > LITTLE * -change.min()),
        "grows": verdict.reason == "grows" and bool(shrinks),
        "met": verdict.reason == "met" and np.ptp(one) > world.gap,
    }


APART = World("", shift=0.8, gap=0.05)
WORLDS = {
    "nothing to repair": World("a gap of .01 under the model, .05 allowed", shift=0.05, gap=0.05, tested=8_000),
    "chance": World("the policy turns the order around and leaves the gap as large as it is", shift=0.6, fixed=True),
    "chance, rare": World("the same, where 2 % are approved", shift=0.6, level=-3.1, fixed=True, tested=6_000),
    "chance, heavy tails": World(
        "the same in dollars, lognormal with sigma 1.5", shift=0.6, sigma=1.5, funding=True, fixed=True
    ),
    "levels down": World("dollars, the group is not seen", shift=0.8, funding=True, blind=True, gap=15_000),
    "levels down a little": World("the second group asks for 1.6 times as much", loans=1.6, funding=True, tested=8_000),
    "shrinks, certified": World("approvals .14 apart, .1 allowed, confidence .95", shift=0.6, gap=0.1,
                                confidence=0.95, fitted=8_000),
    "shrinks, no certificate": World("dollars $22,000 apart, 5,000 allowed", shift=0.8, funding=True, gap=5_000),
    "gap grows": replace(
        APART, about="the same policy on people among whom the other group is ahead", others=World("", shift=-0.3)
    ),
    "tiny group": World("a third group of 20 people", shares=(0.6, 0.395, 0.005), shift=0.8, gap=0.05),
    "tiny group, all alike": World("the same where no group is behind", shares=(0.6, 0.395, 0.005), gap=0.02),
    "in-sample": replace(APART, about="the verdict is on the fitted people", in_sample=True),
}  # fmt: skip


def one_run(name: str, seed: int) -> tuple[str, dict[str, bool]]:
    return run(WORLDS[name], seed)


def table(runs: int, say: Callable[[str], None]) -> list[str]:
    lines = [
        '| world | | verdicts | "shrinks" said falsely | "certified" | "levels-down" | "grows" or "met" |',
        "|---|---|---|---|---|---|---|",
    ]
    with ProcessPoolExecutor(2) as pool:
        for name, world in WORLDS.items():
            found = list(pool.map(one_run, [name] * runs, range(runs), chunksize=10))
            kinds = Counter(kind for kind, _ in found)
            said = ", ".join(f"{kind} {count / runs:.0%}" for kind, count in kinds.most_common())

            def rate(*what: str, found: Any = found) -> str:
                wrong = sum(any(false.get(one, False) for one in what) for _, false in found)
                return f"{wrong / runs:.1%}"

            rates = [rate("shrinks"), rate("certified"), rate("levels-down"), rate("grows", "met")]
            lines.append(f"| {name} | {world.about} | {said} | {' | '.join(rates)} |")
            say(lines[-1])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--only", nargs="*", default=[])
    given = parser.parse_args()
    for name in [name for name in WORLDS if given.only and name not in given.only]:
        del WORLDS[name]
    lines = table(given.runs, print)
    if not given.only and given.runs >= 500:
        fill(EVIDENCE / "report.md", "verdicts", "\n".join([*lines, "", f"{given.runs} worlds each."]))


if __name__ == "__main__":
    main()
