"""Random problems of every kind against the naive program: what they cost, whether they can be met, and prices."""

import math
import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest
from naive_program import Naive
from strategies import world

from felicific import Budget, Exploration, Floor, Gap, Happiness, Ratio, Score, WorseOff, aggregate, frontier
from felicific._fit.alternatives import least_gap_at
from felicific._problem.requirement import rows_of
from felicific._program.change_cost import resolved
from felicific._program.master import TIE
from felicific._program.program import Program
from felicific._program.solution import solve_program
from felicific.exceptions import InfeasibleError

#: Decisions: how many labels there are, how many other decisions (0: the labels), and what a policy sees.
KINDS = [
    (2, 0, "score"),
    (2, 0, "free"),
    (2, 0, "label"),
    (2, 0, "soft-label"),
    (3, 0, "score"),
    (4, 0, "free"),
    (3, 0, "label"),
    (3, 0, "soft-label"),
    (2, 3, "score"),
    (2, 4, "score"),
    (2, 3, "free"),
    (2, 3, "label"),
    (3, 3, "score"),
    (2, 2, "score"),
]

#: Kinds of requirements, and how many of them a problem has at most.
ASKED = [
    "gap",
    "between",
    "some",
    "large",
    "ratio",
    "floor",
    "baseline",
    "budget",
    "worse",
    "chance",
    "range",
]
FRACTION = ["precision", "precise floor", "precise ratio"]


class Worth:
    """A column of the table, so much of it for every decision."""

    def __init__(self, column, shares):
        self.column, self.shares = column, shares

    def __call__(self, decision, x):
        return self.shares[decision] * np.asarray(x[self.column])


@dataclass(frozen=True)
class Problem:
    """Sums, what is required of them, and how they are solved."""

    sums: object
    requirements: tuple
    options: dict

    def solved(self, requirements=None):
        """The solution, or None where there is none."""
        try:
            return solve_program(
                self.sums, self.requirements if requirements is None else requirements, **charged(self)
            )
        except InfeasibleError:
            return None


def charged(problem):
    """How a problem is solved, with what changed decisions really cost."""
    cost = resolved(problem.sums, problem.options["change_cost"])
    return problem.options | {"change_cost": cost}


def people(rng, labels, groups, n):
    """A table of people of two attributes, with a score for every label; nothing in it is regular."""
    code = np.concatenate([np.tile(np.arange(groups), 2), rng.integers(0, groups, n)])
    n, steps = len(code), int(rng.integers(3, 40))
    cuts = np.sort(np.round(rng.random((n, labels - 1)) * steps) / steps, axis=1)
    score = np.diff(np.hstack([np.zeros((n, 1)), cuts, np.ones((n, 1))]), axis=1)
    y = (rng.random((n, 1)) > score.cumsum(axis=1)).sum(axis=1).clip(max=labels - 1)
    y[:groups] = labels - 1
    return {
        "sex": np.array(["f", "m"])[code % 2],
        "race": np.array(list("abcd"))[code // 2],
        "y": y,
        "one": np.ones(n),
        "amount": rng.lognormal(0, 0.5, n) * (1 + 0.3 * np.cos(code)),
        "decided": rng.integers(0, 2, n),
        **{f"p{k}": score[:, k] for k in range(labels)},
    }


def drawn(seed, asked=None, kind=None, wide=False):
    """A random problem; ``asked`` are the kinds of its requirements and ``kind`` that of decisions and policy."""
    rng = np.random.default_rng([seed, 36])
    labels, listed, seen = KINDS[seed % len(KINDS)] if kind is None else kind
    table = people(rng, labels, int(rng.integers(2, 9)), int(rng.integers(10, 300)))
    decisions = [f"d{d}" for d in range(listed)] if listed else list(range(labels))
    mixed = rng.normal(size=len(decisions))
    steps = np.linspace(0.0, 1.0, len(decisions))
    happiness = [
        Happiness(Worth("one", dict(zip(decisions, steps**2, strict=True))), name="selected"),
        Happiness(Worth("amount", dict(zip(decisions, steps, strict=True))), name="amount"),
        Happiness(Worth("amount", dict(zip(decisions, mixed.tolist(), strict=True))), name="mixed"),
        "equal_opportunity",
        "precision_parity",
    ]
    loss = (
        "error" if not listed and rng.random() < 0.5 else rng.normal(size=(labels, len(decisions))).round(3)
    )
    policy = seen
    if seen in ("score", "free"):
        policy = Score(int(rng.integers(labels, 13)), monotone=seen == "score")
    baseline = {}
    if listed:
        baseline["baseline"] = np.array(decisions)[table["decided"] * int(rng.integers(1, listed))]
    score = table["p1"] if labels == 2 else np.column_stack([table[f"p{k}"] for k in range(labels)])
    sums = aggregate(
        table,
        score=score,
        y="y",
        sensitive_features=["sex", "race"],
        happiness=happiness,
        loss=loss,
        decisions=decisions if listed else None,
        sample_weight=rng.choice([1.0, 2.0, 3.0], len(table["y"])) if rng.random() < 0.3 else None,
        policy=policy,
        **baseline,
    ).joined()
    sums = sums.with_losses(WorseOff()).with_losses(WorseOff(0, "selected"))
    options = {"sees_group": bool(rng.random() < 0.7), "change_cost": [0.0, "auto", 0.05][rng.integers(3)]}
    free = Problem(sums, (), options).solved()
    if asked is None:
        some = rng.choice(ASKED, int(rng.integers(1, 4)), replace=False).tolist()
        asked = some + ([str(rng.choice(FRACTION))] if rng.random() < 0.15 else [])
    made = [required(rng, what, sums, free, options["sees_group"], wide) for what in asked]
    return Problem(sums, tuple(one for one in made if one is not None), options)


def required(rng, what, sums, free, sees_group, wide):
    """One requirement of a kind, near what the best policy without any does; None where it cannot be asked for."""
    measures = [one.name for one in sums.measures]
    name = str(rng.choice(["selected", "amount", "mixed", "true positive rate"]))
    j = measures.index(name)
    means, share = free.outcome.means[:, j], float(rng.choice([0.0, rng.random(), rng.random()]))
    share = 0.3 + 0.6 * share if wide else share
    low, high = sums.least[:, j] + sums.origin[j], sums.most[:, j] + sums.origin[j]
    gap, groups, two = share * float(np.ptp(means)), list(sums.groups), len(sums.decisions) == 2
    if what == "gap":
        return Gap(name, gap, min_people=0)
    if what == "between":
        several = len({group.split(" & ")[1] for group in groups}) > 1
        which = "race" if several and rng.random() < 0.5 else "sex"
        return Gap(name, gap, between=which, min_people=0)
    if what == "some":
        return Gap(name, gap, groups=groups[: max(2, len(groups) // 2)], min_people=0)
    if what == "large":
        return Gap(name, gap, min_people=float(np.sort(sums.numbers[:, j])[-2]))
    if what == "ratio":
        name = name if name in ("selected", "amount") else "selected"
        return Ratio(name, 0.7 + 0.3 * share, between="sex" if rng.random() < 0.3 else None, min_people=0)
    if what == "floor":
        level = float(means.min() + 0.5 * share * (high.min() - means.min()))
        return Floor(name, level, groups=groups[:2] if rng.random() < 0.3 else None)
    if what == "baseline":
        return Floor(name, "baseline") if sums.knows_baseline else None
    if what == "budget":
        weights, people = sums.counted[:, j], float(rng.choice([1.0, 100.0]))
        mean, per = float(np.average(means, weights=weights)), "person" if people == 1 else people
        limits = [float(np.average(end, weights=weights)) for end in (low, high)]
        limits = [people * (mean + 0.5 * share * (end - mean)) for end in limits]
        side = ["at_most", "at_least"][rng.integers(2)]
        return Budget(name, **{side: limits[side == "at_least"]}, per=per)
    if what == "worse":
        of = "selected" if rng.random() < 0.5 else None
        if ("loses" if of is None else f"loses {of}") not in measures:
            return None
        return WorseOff(0.3 * share, of, groups=groups[:1] if rng.random() < 0.3 else None)
    if what in ("chance", "range"):
        scores = (0.2, 0.5) if rng.random() < 0.5 else (0.55, 0.9)
        scored = what == "range" and two and sums.signal.kind == "score"
        some = groups[: len(groups) // 2] if sees_group and rng.random() < 0.5 else None
        decision = sums.decisions.tolist()[rng.integers(len(sums.decisions))]
        return Exploration(0.02 + 0.3 * share, decision, groups=some, scores=scores if scored else None)
    fractions = free.outcome.means[:, measures.index("precision")]
    fractions = fractions[~np.isnan(fractions)] if np.isfinite(fractions).any() else np.zeros(1)
    if what == "precision":
        return Gap("precision", 0.02 + share * float(np.ptp(fractions)), min_people=0)
    if what == "precise floor":
        return Floor("precision", float(fractions.min()))
    return Ratio("precision", 0.5 + 0.4 * share, min_people=0)


def changes_of(problem):
    """How far decisions are from the baseline's, where somebody is."""
    program = Program.of(problem.sums, **charged(problem))
    return program.changes * program.occupied[:, :, None]


def check(problem):
    """The loss is the least one, no equally good policy is nearer, nothing is missed, and what cannot be is refused."""
    naive = Naive(problem.sums, **problem.options)
    found = problem.solved()
    fraction = bool(naive.fractions(problem.requirements))
    level = found.level.level if fraction and found is not None else None
    least = naive.least(problem.requirements, level)
    if found is None or least is None:
        assert found is None, "a policy is found where there is none"
        assert least is None, "no policy is found where there is one"
        return
    assert naive.missed(problem.requirements, found.q) <= 1e-8
    if not fraction:
        far, known = changes_of(problem), naive.changes(problem.requirements, changes_of(problem), TIE)
        own = np.array([found.q[tables[0]] for tables in naive.tables])
        assert float((own * far).sum()) <= known + 1e-6
    assert naive.value(found.q) == pytest.approx(least, abs=(2e-5 if fraction else 1e-7) * naive.unit)


#: How many problems are drawn, thirty at a time: in every run, and where slow tests run too.
SEEDS = [
    pytest.param(range(first, first + 30), id=f"from {first}", marks=[pytest.mark.slow] * (first >= 60))
    for first in range(0, 510, 30)
]


@pytest.mark.parametrize("seeds", SEEDS)
def test_random_problems_are_solved_as_naively(seeds):
    """Every kind of requirement, decision and policy, one to three at once, with bins in which there is nobody."""
    for seed in seeds:
        problem = drawn(seed)
        try:
            check(problem)
        except AssertionError as error:
            raise AssertionError(
                f"seed {seed}: {error}; {problem.requirements}, {problem.options}"
            ) from error


@pytest.mark.parametrize("kind", [(2, 3, "score"), (2, 4, "score"), (3, 3, "score"), (2, 3, "free")], ids=str)
def test_chances_of_listed_decisions_pass_their_own_check(kind):
    """Ordinary people of many bins, in some of which a group has nobody: everybody keeps the chance at least loss."""
    for seed in range(1_000, 1_030):
        check(drawn(seed, ["chance", ASKED[seed % 9]], kind))


#: Where prices come from: decisions and policy, and what is required, whose first part is looked at.
PRICED = {
    "the sweep": ((2, 0, "score"), ["gap"]),
    "the sweep of free bins": ((2, 0, "free"), ["gap", "floor"]),
    "columns": ((2, 0, "score"), ["gap", "between", "budget"]),
    "unions": ((2, 0, "score"), ["between", "gap"]),
    "free bins": ((2, 0, "free"), ["gap", "budget"]),
    "labels": ((2, 0, "label"), ["gap", "between"]),
    "soft labels": ((2, 0, "soft-label"), ["gap", "budget"]),
    "several classes": ((3, 0, "score"), ["gap"]),
    "several classes, several rows": ((4, 0, "score"), ["gap", "floor", "budget"]),
    "listed": ((2, 3, "score"), ["gap"]),
    "listed, several rows": ((2, 4, "score"), ["gap", "baseline", "between"]),
    "listed, free": ((2, 3, "free"), ["gap", "worse"]),
    "a share who lose": ((2, 0, "score"), ["worse", "gap"]),
    "a share who lose, listed": ((2, 3, "score"), ["worse", "gap"]),
    "a budget": ((2, 0, "score"), ["budget", "gap"]),
    "a budget, listed": ((2, 3, "score"), ["budget", "gap"]),
    "a ratio": ((2, 0, "score"), ["ratio"]),
    "a ratio, listed": ((2, 3, "score"), ["ratio", "floor"]),
    "a floor": ((2, 0, "score"), ["floor", "gap"]),
    "a floor of several classes": ((3, 0, "score"), ["floor", "gap"]),
    "a chance": ((2, 0, "score"), ["chance", "gap"]),
    "a chance of several classes": ((3, 0, "score"), ["chance", "gap"]),
    "a chance, listed": ((2, 3, "score"), ["chance", "budget"]),
    "a chance of some scores": ((2, 0, "score"), ["range", "gap"]),
}


def moved(requirement, by):
    """With another number of its own."""
    name = next(name for name in ("at_most", "at_least") if getattr(requirement, name, None) is not None)
    return replace(requirement, **{name: getattr(requirement, name) + by})


def check_price(problem):
    """The price of the first requirement lies between what a little more and a little less of it cost."""
    first, *others = problem.requirements
    naive, found = Naive(problem.sums, **problem.options), problem.solved()
    if found is None:
        return 0.0
    step = 1e-4
    if type(first).__name__ in ("Gap", "Floor", "Budget"):
        (j,) = naive.measures(first.happiness)
        step *= float((problem.sums.most - problem.sums.least)[:, j].max())
    if type(first).__name__ == "Budget" and first.per != "person":
        step *= first.per
    names = {row.name for row in rows_of([first], problem.sums)}
    names |= {one.words for one in first.chances(problem.sums.decisions.tolist(), problem.sums.groups)}
    price, here, slopes = sum(found.prices[name] for name in names), naive.value(found.q), []
    for by in (-step, step):
        if type(first).__name__ in ("Gap", "WorseOff") and first.at_most + by < 0:
            slopes.append(math.inf)
            continue
        there = naive.least([moved(first, by), *others])
        slopes.append(math.inf if there is None else abs(there - here) / step)
    noise = 2e-9 * naive.unit / step
    assert min(slopes) * 0.998 - noise <= price <= max(slopes) * 1.002 + noise, (price, slopes)
    return price


@pytest.mark.parametrize("path", PRICED)
def test_prices_are_slopes_of_the_naive_value(path):
    """On every path, between the two one-sided differences; not all of them are 0."""
    kind, asked = PRICED[path]
    prices = []
    for seed in range(8):
        problem = drawn(seed, asked, kind, wide=True)
        try:
            prices.append(check_price(problem))
        except AssertionError as error:
            raise AssertionError(
                f"seed {seed}: {error}; {problem.requirements}, {problem.options}"
            ) from error
    assert max(prices) > 0


@pytest.mark.parametrize("seed", range(12))
def test_the_frontier_of_several_measures_is_that_of_the_naive_program(seed):
    """At breakpoints and between them every loss is the least one along the ray, and so is that of the policy."""
    sums, sees_group = world(seed, 2 + seed % 2, monotone=True), seed % 3 > 0
    free = solve_program(sums, (), sees_group=sees_group).outcome.gaps.tolist()
    names, naive = [measure.name for measure in sums.measures], Naive(sums, sees_group=sees_group)
    line = frontier(sums, gap=dict(zip(names, free, strict=True)), sees_group=sees_group)
    rise = line.value[0] - line.value[-1]
    if rise <= 1e-9 * max(abs(line.value[0]), 1e-3):
        pytest.skip("the loss does not rise")
    middle = np.linspace(line.tau[0], line.tau[-1], 5)[1:-1]
    for tau in [*line.tau[1:12], *middle]:
        closed = [
            Gap(name, float(tau) * width, min_people=0) for name, width in zip(names, free, strict=True)
        ]
        there = np.interp(tau, line.tau, line.value)
        assert there == pytest.approx(naive.least(closed), abs=1e-9 * max(rise, naive.unit))
    for tau in middle:
        there = np.interp(tau, line.tau, line.value)
        assert line.at(tau=tau).loss == pytest.approx(there, abs=1e-9 * rise)


@pytest.mark.parametrize("seed", range(6))
def test_the_least_gap_at_a_loss_is_that_of_the_naive_program(seed):
    """The other way round: gaps that are any narrower cost more than the loss."""
    sums = world(seed, 2, monotone=True)
    free, naive = solve_program(sums, ()), Naive(sums)
    widths, loss = np.maximum(free.outcome.gaps, 1e-12), free.outcome.loss + 0.02

    def least(part):
        pairs = zip(sums.measures, widths.tolist(), strict=True)
        return naive.least([Gap(measure.name, part * width, min_people=0) for measure, width in pairs])

    part, policy = least_gap_at(sums, widths, loss, sees_group=True, salt="0" * 32)
    assert policy.loss <= loss + 1e-9
    assert least(part * (1 + 1e-7) + 1e-9) <= loss + 1e-9
    narrower = least(part * (1 - 1e-6) - 1e-9) if part > 1e-6 else None
    assert narrower is None or narrower > loss


def test_a_policy_does_not_depend_on_which_others_were_looked_at():
    """Found first or last, alone or from a stored frontier, the policy of a breakpoint is the same to the last bit."""
    sums = world(7, 3, monotone=True)
    line, other = frontier(sums), frontier(sums)
    assert len(line) > 2
    there = [point.q for point in line.points]
    back = [point.q for point in reversed(other.points)][::-1]
    again = [point.q for point in pickle.loads(pickle.dumps(line)).points]
    for one, two, three in zip(there, back, again, strict=True):
        assert np.array_equal(one, two)
        assert np.array_equal(one, three)
