"""People sorted by the price of their happiness do what the same people do who are summed one by one."""

import numpy as np
import pytest

from felicific import Floor
from felicific._policy.individual import search_of
from felicific._problem.constraints import requirements_of
from felicific._problem.exploration import Chance
from felicific._problem.happiness import Measure
from felicific._program import crowd as crowd_module
from felicific._program import sorted_people as sorted_module
from felicific._program.crowd import CHOOSES, LIKELY, Crowd, Ledger, Ledgers
from felicific._program.generation import generate
from felicific._program.sorted_people import SortedPeople, by_price
from felicific.exceptions import InfeasibleError

#: How numbers are made: without ties, with many, with constants, of one decision alone, next to nothing, nearly tied.
KINDS = ("fine", "coarse", "constant", "one decision", "tiny", "nearly tied")


def people_of(seed, n=60, *, real=None, change_cost=0.0, chances=(), measures=1, sees_group=True):
    """Random people of 2 to 4 classes and 2 to 6 groups, of one kind after the other."""
    rng = np.random.default_rng(seed)
    k, g, kind = 2 + seed % 3, int(rng.integers(2, 7)), KINDS[seed // 3 % len(KINDS)]
    group = np.concatenate([np.arange(g), np.arange(g), rng.integers(0, g, n)])
    n = len(group)
    slots = 1 if sees_group else g
    shape = (n, k, slots, measures)
    cost = rng.integers(0, 5, (n, k)) / 4 if kind == "coarse" else rng.random((n, k))
    value = rng.normal(size=shape) - 0.5
    if kind == "coarse":
        value = rng.integers(-3, 4, shape) / 4
    if kind == "constant":
        value = np.where(rng.random((n, 1, 1, 1)) < 0.5, value, value[:, :1])
    if kind == "one decision":
        value = np.broadcast_to((np.arange(k) == 1)[:, None, None], shape).astype(float)
    if kind == "tiny":
        value *= 10.0 ** rng.integers(-17, 9, (n, 1, 1, 1))
    if kind == "nearly tied":
        cost = rng.integers(1, 3, (n, k)) / 4 + 1e-13 * rng.integers(0, 3, (n, k))
        value = rng.integers(1, 3, shape) + 1e-13 * rng.integers(0, 2, shape) * rng.integers(
            0, 2, (n, 1, 1, 1)
        )
    among = np.ones((n, slots, measures))
    if rng.random() < 0.3:
        among[2 * g :] = rng.integers(0, 3, (n - 2 * g, slots, measures)) / 2
    weight = rng.integers(1, 4, n).astype(float) if rng.random() < 0.5 else np.ones(n)
    crowd = Crowd(
        decisions=np.arange(k),
        groups=tuple(range(g)),
        measures=tuple(Measure(f"c{j}", "", f"c{j}", looks_at_y=False, bounds=None) for j in range(measures)),
        origin=np.zeros(measures),
        weight=weight,
        group=group,
        own=cost.argmin(axis=1),
        likely=rng.integers(0, k, n),
        sees_group=sees_group,
        change_cost=change_cost,
        score=rng.random(n),
    )
    expected = Ledger(cost, value * among[:, None], among)
    known = None if real is None else Ledger((rng.random((n, k)) < cost).astype(float), expected.value, among)
    return Ledgers(crowd, expected, known, chances=chances)


def slopes_of(people):
    """Prices at which somebody moves: of every two decisions, what one costs more by what it gives more."""
    cost, value = people.cost, people.plug_in.value[:, :, 0, 0]
    more = value[:, :, None] - value[:, None, :]
    cost = np.broadcast_to(cost[:, :, None] - cost[:, None, :], more.shape)
    return cost[more > 0] / more[more > 0]


def choices_of(people, seed, number=30):
    """Weights at such prices, next to them, between them and beyond; and without any weight of the loss."""
    rng, slopes, g = np.random.default_rng(seed), slopes_of(people), len(people.crowd.groups)
    steps = (0.0, 0.0, 0.0, 1e-13, -1e-11, 1e-9, -0.3, 5.0)
    found = [(alpha, np.full((g, 1), weight), CHOOSES) for alpha in (0.0, 1.0) for weight in (0.0, 1.0, -1.0)]
    for _ in range(number):
        weights = rng.choice(slopes, g) if len(slopes) else rng.normal(size=g)
        weights = weights * (1.0 + rng.choice(steps, g)) * (rng.random(g) < 0.9)
        found.append((1.0, weights[:, None], CHOOSES))
    zero = np.zeros((g, 1))
    return [*found, (0.0, zero, LIKELY), (0.0, zero, 1), (1.0, rng.normal(size=(g, 1)), CHOOSES)]


@pytest.mark.parametrize("seed", range(72))
def test_what_is_looked_up_is_what_is_summed(seed, monkeypatch):
    """Whatever weighs, at ties too, all sums are those over people, but for rounding.

    Blocks of a few edges and few people at once, so that policies pass blocks, and stop in the midst of some.
    """
    monkeypatch.setattr(sorted_module, "SMALLEST", 3)
    monkeypatch.setattr(sorted_module, "AT_ONCE", 17)
    monkeypatch.setattr(crowd_module, "AT_ONCE", 17)
    chances = (Chance("a chance of 1", 1, 0.05, None, (0.2, 0.7)),) if seed % 4 == 1 else ()
    people = people_of(seed, real=seed % 2 or None, change_cost=0.1 * (seed % 5 == 2), chances=chances)
    choices = choices_of(people, seed)
    summed, looked_up = people.columns(choices), SortedPeople(people, 0).columns(choices)
    for choice, mine, theirs in zip(choices, looked_up, summed, strict=True):
        assert set(mine) == set(theirs)
        for name, sums in theirs.items():
            scale = max(1.0, float(np.abs(people.plug_in.value).max()) ** (2 if "square" in name else 1))
            assert np.abs(mine[name] - sums).max() <= 1e-11 * scale, (choice, name)


def test_few_people_decide_anew():
    """Of 50,000 people, a policy at somebody's very price asks but some hundred."""
    people = people_of(0, 50_000)
    looked_up = SortedPeople(people, 0)
    choices = choices_of(people, 0, 3)
    looked_up.columns(choices)
    asked = []

    def spy(rows, crowd=None):
        asked.append(len(rows))
        return Ledgers.some(people, rows, crowd)

    people.some = spy
    looked_up.columns([choice for choice in choices if choice[2] == CHOOSES and choice[0]])
    assert 0 < max(asked) < 2_000


def found_by(ground, asked):
    """What generation finds, or the least gap that there is."""
    try:
        return generate(ground, asked), None
    except InfeasibleError as error:
        return None, error


@pytest.mark.parametrize("first", range(0, 216, 36))
def test_generation_finds_the_same_policies(first):
    """Loss, means, prices and the certificate are those found by summing over people, floors and labels included."""
    for seed in range(first, first + 36):
        people = people_of(seed, 30, real=seed % 2 or None)
        rng = np.random.default_rng(seed)
        floors = [Floor("c0", float(rng.normal() - 0.5), groups=[0])] if seed % 3 == 1 else []
        asked = requirements_of(float(rng.choice([0.0, 0.1, 0.5])), floors, people.crowd.measures)
        (mine, refusal), (theirs, refused) = found_by(by_price(people), asked), found_by(people, asked)
        if theirs is None:
            assert refusal is not None
            assert refused is not None
            assert refusal.conflict == refused.conflict
            continue
        assert mine is not None, seed
        size = max(1.0, float(np.abs(theirs.outcome.means).max()))
        assert mine.outcome.loss == pytest.approx(theirs.outcome.loss, rel=1e-9, abs=1e-9)
        assert np.abs(mine.outcome.gaps - theirs.outcome.gaps).max() <= 1e-8 * size
        assert search_of(mine, ["c0"]).plug_in_optimum == pytest.approx(
            search_of(theirs, ["c0"]).plug_in_optimum, rel=1e-9, abs=1e-9
        )


@pytest.mark.parametrize(
    ("measures", "sees_group", "here"), [(1, True, True), (2, True, False), (1, False, False)]
)
def test_who_is_sorted(measures, sees_group, here):
    """Only where one measure weighs alone and the group is seen; others are summed."""
    people = people_of(0, measures=measures, sees_group=sees_group)
    assert isinstance(by_price(people), SortedPeople) == here
