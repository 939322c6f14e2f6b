"""What steering leaves of a gap, and what it costs: fills its block of ``docs/evidence/monitoring.md``.

    python benchmarks/steered.py [--seeds 20]

Synthetic loans: a forest of salary and loan is fitted on 20 % of 48,842 people, a policy with a gap of 0 on 16 %, and
the others are decided on, as they come. *Drift*: the salaries of women fall by 600 half way. Of every way the gap
that is left is shown (its mean, its 95th percentile and its largest size over the seeds), the accuracy, how much the
controls jitter (their standard deviation after the first sixth of the people, as a share of a group; of weights as the
share of the largest possible change of a mean that they stand for), and the time of a processor for a person.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from shared import EVIDENCE, fill, machine, table
from sklearn.ensemble import RandomForestClassifier

from felicific import Budget, FairClassifier, Floor, Happiness, Policy, aggregate, solve
from felicific.datasets import synthetic_loans
from felicific.exceptions import SteeringWarning
from studies.experiment import split

FUNDING = Happiness("decision * loan_requested", name="funding", unit="$")
FEATURES = ["yearly_salary", "loan_requested"]
ROLES = {"score": "score", "y": "y", "sensitive_features": "sex", "happiness": FUNDING}


@dataclass
class Tries:
    """What came of some ways of deciding, over all seeds: gap, accuracy, jitter, limited people, time."""

    rows: dict[str, list[list[float]]] = field(default_factory=dict)

    def add(self, way: str, *numbers: float) -> None:
        """Take in what came of a way with one seed."""
        self.rows.setdefault(way, []).append(list(numbers))

    def table(self, unit: str = "$", digits: int = 0) -> str:
        """A line for every way."""
        head = [
            "",
            "gap left",
            "95th percentile",
            "largest",
            "accuracy",
            "jitter",
            "held back",
            "us a person",
        ]
        lines = []
        for way, tries in self.rows.items():
            gaps, right, jitter, limited, taken = np.array(tries).T
            sizes = (gaps.mean(), np.quantile(gaps, 0.95), gaps.max())
            lines.append(
                [
                    way,
                    *(f"{unit}{size:,.{digits}f}" for size in sizes),
                    f"{right.mean():.4f}" if np.isfinite(right).all() else "",
                    f"{jitter.mean():.4f}" if jitter.any() else "",
                    f"{limited.mean():,.0f}" if limited.any() else "",
                    f"{taken.mean() * 1e6:.1f}" if taken.any() else "",
                ]
            )
        return table(head, lines)


def loans(seed: int) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """People to fit a policy on, people who come, and the same people where salaries of women fall half way."""
    data = synthetic_loans(seed=seed, as_frame="pandas")
    train, fitted, rest = split(len(data.y), seed)
    model = RandomForestClassifier(random_state=seed, n_jobs=1)
    model.fit(data.X[FEATURES].iloc[train], data.y[train])

    def scored(rows: pd.DataFrame, y: Any) -> pd.DataFrame:
        return rows.assign(score=model.predict_proba(rows[FEATURES])[:, 1], y=y, id=rows.index)

    come = data.X.iloc[rest]
    women, late = (come["sex"] == "Female").to_numpy(), np.arange(len(come)) >= len(come) // 2
    fallen = come.assign(yearly_salary=come["yearly_salary"] - 600.0 * (women & late))
    truth = 10 * fallen["yearly_salary"] >= fallen["loan_requested"] - 50_000 * women
    return (
        scored(data.X.iloc[fitted], data.y[fitted]),
        scored(come, data.y[rest]),
        scored(fallen, truth.astype(int)),
    )


def gap_of(decisions: Any, rows: pd.DataFrame) -> float:
    means = (decisions * rows["loan_requested"]).groupby(rows["sex"]).mean()
    return float(means.max() - means.min())


def steered(steering: Any, rows: pd.DataFrame) -> tuple[Any, Any, float]:
    """Decisions, controls and the processor's time for a person."""
    taken = time.process_time()
    given = (rows["score"].to_numpy(), rows["sex"].to_numpy(), rows["id"].to_numpy(), rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SteeringWarning)
        found = steering.decided(*given)
    return found.decisions, found.controls, (time.process_time() - taken) / len(rows)


def jitter_of(policy: Policy, controls: Any, rows: pd.DataFrame) -> float:
    """Standard deviation of the controls after the first sixth, in shares."""
    late, found = np.arange(len(rows)) >= len(rows) // 6, []
    for z, group in enumerate(policy.groups):
        moved = float(controls[(rows["sex"] == group).to_numpy() & late].std())
        if policy.sees_x:
            moved *= policy.slopes.slope[z] / policy.slopes.swing[z]  # type: ignore[attr-defined]  # of this kind
        found.append(moved)
    return float(np.mean(found))


def begun(policy: Policy, pace: float | None) -> Any:
    return policy.steer(None if policy.sees_x else FUNDING, pace=pace)


def exact(rows: pd.DataFrame, kind: str) -> Policy:
    """The policy of least loss without a gap."""
    if kind == "score":
        return solve(aggregate(rows, **ROLES), gap=0.0, random_state=0)
    fair = FairClassifier(
        ROLES["score"], policy="individual", happiness=ROLES["happiness"], gap=0.0, change_cost=0.0,
        sensitive_features=ROLES["sensitive_features"], key="id", random_state=0,
    )  # fmt: skip
    return fair.fit(rows.drop(columns=ROLES["y"]), rows[ROLES["y"]]).policy_


def try_loans(seeds: int) -> tuple[Tries, Tries, Tries, Tries]:
    """Gaps of loans, the same under drift, of four servers, and other requirements."""
    plain, drift, servers, others = Tries(), Tries(), Tries(), Tries()
    for seed in range(seeds):
        fitted, come, fallen = loans(seed)
        for kind, paces in (("score", (300, None, 2_000)), ("individual", (1_000, None))):
            policy = exact(fitted, kind)
            name = "" if kind == "score" else "individual, "
            for rows, tries in ((come, plain), (fallen, drift)):
                alone = policy.decide(rows["score"], rows["sex"], rows["id"].to_numpy(), rows)
                tries.add(f"{name}fixed", gap_of(alone, rows), (alone == rows["y"]).mean(), 0.0, 0.0, 0.0)
                if rows is come and kind == "score":
                    ideal = exact(rows, kind)
                    best = ideal.decide(rows["score"], rows["sex"], rows["id"].to_numpy(), rows)
                    numbers = gap_of(best, rows), (best == rows["y"]).mean()
                    tries.add("fitted on those very people, with labels", *numbers, 0.0, 0.0, 0.0)
                for pace in paces:
                    steering = begun(policy, pace)
                    taken, controls, spent = steered(steering, rows)
                    told = (
                        (taken == rows["y"]).mean(),
                        jitter_of(policy, controls, rows),
                        steering.limited,
                        spent,
                    )
                    way = f"{name}steered, {'default pace' if pace is None else f'pace {pace:,}'}"
                    tries.add(way, gap_of(taken, rows), *told)
            if kind == "score":
                for hears in (True, False):
                    servers.add(*try_servers(policy, come, hears))
        try_others(fitted, come, fallen, others)
    return plain, drift, servers, others


def try_servers(
    policy: Policy, rows: pd.DataFrame, hears: bool
) -> tuple[str, float, float, float, float, float]:
    """Four servers at a pace of 1,000 that take people in turn, a hundred each."""
    several = [begun(policy, 1_000) for _ in range(4)]
    decisions = []
    for start in range(0, len(rows), 100):
        server = several[(start // 100) % 4]
        decisions.append(steered(server, rows.iloc[start : start + 100])[0])
        if hears:
            following = several[(start // 100 + 1) % 4]
            following.hear([other for other in several if other is not following])
    found = np.concatenate(decisions)
    way = "hearing every 100 people" if hears else "never hearing"
    return way, gap_of(found, rows), float((found == rows["y"]).mean()), 0.0, 0.0, 0.0


def try_others(fitted: pd.DataFrame, come: pd.DataFrame, fallen: pd.DataFrame, tries: Tries) -> None:
    """A floor of $280,000 and a budget of $240,000: by how much they are missed."""
    floor = Floor("funding", at_least=280_000.0)
    budget = Budget("funding", at_most=240_000.0)
    for what, asked in (("floor", floor), ("budget", budget)):
        policy = solve(aggregate(fitted, **ROLES), gap={}, constraints=[asked], random_state=0)
        for rows, when in ((come, ""), (fallen, ", drift")):
            steering = begun(policy, None)
            taken, _, _ = steered(steering, rows)
            alone = policy.decide(rows["score"], rows["sex"], rows["id"].to_numpy(), rows)
            for way, decisions in (("fixed", alone), ("steered", taken)):
                money = decisions * rows["loan_requested"]
                missed = max(0.0, 280_000.0 - money.groupby(rows["sex"]).mean().min())
                if what == "budget":
                    missed = max(0.0, money.mean() - 240_000.0)
                limited = steering.limited if way == "steered" else 0.0
                tries.add(f"{what}{when}, {way}", missed, (decisions == rows["y"]).mean(), 0.0, limited, 0.0)


# ---------------------------------------------------------------------------------------------------------
# Five groups


SHARES = (0.4, 0.25, 0.2, 0.1, 0.05)


def five(n: int, rng: np.random.Generator, fall: bool = False) -> pd.DataFrame:
    """Five groups of which the smaller have lower scores; half way those of one fall further."""
    z = rng.choice(5, n, p=SHARES)
    logit = rng.normal(0.0, 1.9, n) - 0.25 * z
    logit -= 1.0 * (fall & (z == 2) & (np.arange(n) >= n // 2))
    score = 1.0 / (1.0 + np.exp(-logit))
    names = np.array([f"g{k}" for k in range(5)])[z]
    return pd.DataFrame(
        {"group": names, "score": score, "y": (rng.random(n) < score).astype(int), "id": range(n)}
    )


def try_five(seeds: int) -> Tries:
    tries = Tries()
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        roles = {"score": "score", "y": "y", "sensitive_features": "group"}
        policy = solve(aggregate(five(5_000, rng), happiness="decision", **roles), gap=0.0, random_state=0)
        for fall in (False, True):
            rows, when = five(20_000, rng, fall), ", drift" if fall else ""
            given = (rows["score"].to_numpy(), rows["group"].to_numpy(), rows["id"].to_numpy())
            steering = policy.steer("decision", pace=2_000)
            taken = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SteeringWarning)
                found = steering.decide(*given, rows)
            spent = (time.process_time() - taken) / len(rows)
            for way, decisions in (("fixed", policy.decide(*given)), ("steered, pace 2,000", found)):
                means = pd.Series(decisions).groupby(rows["group"]).mean()
                told = 0.0, steering.limited if way != "fixed" else 0.0, spent if way != "fixed" else 0.0
                tries.add(f"{way}{when}", means.max() - means.min(), (decisions == rows["y"]).mean(), *told)
    return tries


# ---------------------------------------------------------------------------------------------------------
# Hostile streams


#: Whom to send next, given the steering, the number of people so far and a generator: a group's position and a score.
Strategy = Callable[[Any, int, np.random.Generator], tuple[int, float]]


def hostile(n: int) -> dict[str, Strategy]:
    """Ways to open a gap, some of which look at the controls."""

    def best(steering: Any) -> list[int]:
        means = list(steering.means.values())
        return sorted(range(len(means)), key=lambda z: means[z])

    def at(steering: Any, z: int, beside: float) -> tuple[int, float]:
        control = list(steering.controls.values())[z]
        assert control.threshold is not None, "of scores"
        return z, min(max(control.threshold + beside, 0.0), 1.0)

    def random(steering: Any, t: int, rng: np.random.Generator) -> tuple[int, float]:
        return int(rng.integers(len(steering.groups))), float(rng.random())

    return {
        "whoever is above approved, whoever is below refused": lambda s, t, rng: (
            (best(s)[-1], 1.0) if t % 2 else (best(s)[0], 0.0)
        ),
        "just above and just below the thresholds": lambda s, t, rng: (
            at(s, best(s)[-1], 1e-3) if t % 2 else at(s, best(s)[0], -1e-3)
        ),
        "one group alone, then the others": lambda s, t, rng: (
            (0, 1.0) if t < n // 2 else (1 + t % (len(s.groups) - 1), 0.0)
        ),
        "long waves": lambda s, t, rng: (
            (t // (n // 20)) % len(s.groups), float((t // (n // 20)) // len(s.groups) % 2)
        ),
        "at random": random,
    }  # fmt: skip


def try_hostile(n: int = 12_000) -> str:
    """The largest share of the bound that a stream reached; of more groups, of G - 1 times K + H in every excess."""
    lines = []
    for groups, people in ((2, n), (3, n // 3), (6, n // 3)):
        rng = np.random.default_rng(groups)
        z = rng.choice(groups, 6_000)
        score = rng.random(6_000).round(3)
        rows = pd.DataFrame({"z": z, "score": score, "y": (rng.random(6_000) < score).astype(int)})
        sums = aggregate(rows, score="score", y="y", sensitive_features="z", happiness="decision")
        policy = solve(sums, gap=0.0, random_state=0)
        for name, strategy in hostile(people).items():
            steering = policy.steer("decision", pace=100 * groups, reach=1.0)
            lines.append([f"{groups} groups, {name}", f"{reached(steering, strategy, people, rng):.3f}"])
    return table(["", "largest share of the bound"], lines)


def reached(steering: Any, strategy: Strategy, people: int, rng: np.random.Generator) -> float:
    """How close a stream came to what bounds it."""
    rule, largest = steering._rule, 0.0
    for t, (group, score) in enumerate(sent(steering, strategy, people, rng)):
        steering.decide([score], [steering.groups[group]], [f"p{t}"])
        if len(steering.groups) == 2:
            bound = steering.bound
            largest = max(largest, 0.0 if bound is None else steering.gap / bound)
            continue
        sums = steering._state.own
        held = [abs(rule.aim.excess(z, sums.people, sums.happiness)) for z in rule.known]
        largest = max(largest, max(held) / ((len(held) - 1) * (rule.range(1.0, 0.0) + 1.0)))
    return largest


def sent(
    steering: Any, strategy: Strategy, people: int, rng: np.random.Generator
) -> Iterator[tuple[int, float]]:
    """One of each group at first, so that there is somebody to compare; then as the strategy says."""
    for t in range(people):
        yield (t, float(rng.random())) if t < len(steering.groups) else strategy(steering, t, rng)


def tables(seeds: int = 20) -> str:
    """All tables, as Markdown."""
    plain, drift, servers, others = try_loans(seeds)
    parts = {
        f"Synthetic loans, {seeds} seeds": plain.table(),
        "The same, salaries of women fall by 600 half way": drift.table(),
        "Four servers at pace 1,000": servers.table(),
        "A floor of $280,000 for both groups, and a budget of $240,000 per person: by how much they are missed": (
            others.table()
        ),
        f"Five groups (shares .4 to .05), rates, {seeds} seeds": try_five(seeds).table("", 4),
        "Hostile streams, rates: of two groups the gap beside its bound, of G an excess beside (G - 1) (K + H)": (
            try_hostile()
        ),
    }
    return "\n\n".join(f"{title}\n\n{text}" for title, text in parts.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    text = tables(parser.parse_args().seeds)
    fill(EVIDENCE / "monitoring.md", "steering", f"{text}\n\nMeasured on {machine()}")


if __name__ == "__main__":
    main()
