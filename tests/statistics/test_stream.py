"""Evidence that may be read after every row: supermartingales, blocks, restarts, and what they show."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from felicific._statistics.sequences import BLOCK, BLOCKS, Buckets, Terms, log_sum, start_weights
from felicific._statistics.stream import (
    DIFFERENT,
    ENOUGH,
    SEEN,
    BurnIn,
    Rows,
    Scale,
    Stream,
    bets_of,
    block_terms,
    centres,
    tally,
)

LINE = math.log(20.0)


def people(n, rates, shares, seed, values=None):
    """So many rows of groups with these rates of 1, or of these values instead."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(len(rates), n, p=np.array(shares) / sum(shares))
    made = (rng.random(n) < np.array(rates)[codes]).astype(float) if values is None else values(rng, codes)
    return Rows(codes, made[:, None], np.ones((n, 1), dtype=bool))


def stream_of(rows, gap=0.05, bounds=((0.0, 1.0),), groups=2, line=LINE):
    """All rows at once; the stream, and as it was when the evidence was enough."""
    return Stream.begun(groups, list(bounds)).add(rows, np.full(len(bounds), gap), line)


def everything(stream):
    """All numbers of a stream."""
    scales = [
        [one.origin, one.width, *one.bets] if isinstance(one, Scale) else [*one.powers.ravel()]
        for one in stream.scales
    ]
    parts = [stream.before, stream.buckets.sizes, stream.buckets.rows, *stream.buckets.terms, *stream.period]
    parts += [*stream.open, [stream.blocks, stream.held, stream.rows], *scales]
    return [np.asarray(part, dtype=float).tolist() for part in parts]


# ---------------------------------------------------------------------------------------------------------
# A naive second implementation, row by row


def naive_periods(rows, groups, measure=0):
    """(C, X, L) of every period: pair, direction, bet; full blocks only, values within [0, 1]."""
    bets, sums, counts, found = bets_of(), [0.0] * groups, [0] * groups, []
    blocks = len(rows) // BLOCK
    for b in range(blocks):
        if b % BLOCKS == 0:
            found.append({})
        block = range(b * BLOCK, (b + 1) * BLOCK)
        held = {z: [] for z in range(groups)}
        for i in block:
            if rows.inside[i, measure] and rows.codes[i] >= 0:
                held[int(rows.codes[i])].append(float(rows.values[i, measure]))
        middle = [(0.5 + sums[z]) / (1 + counts[z]) for z in range(groups)]
        for a in range(groups):
            for o in range(a + 1, groups):
                n_a, n_o = len(held[a]), len(held[o])
                if not n_a or not n_o:
                    continue
                c = n_a * n_o / (n_a + n_o)
                x = c * (sum(held[a]) / n_a - sum(held[o]) / n_o)
                logs = np.zeros((2, len(bets)))
                for s, sign in enumerate((1.0, -1.0)):
                    for k, bet in enumerate(bets):
                        up = sign * bet * n_o / (n_a + n_o)
                        down = -sign * bet * n_a / (n_a + n_o)
                        logs[s, k] = sum(math.log1p(up * (v - middle[a])) for v in held[a])
                        logs[s, k] += sum(math.log1p(down * (v - middle[o])) for v in held[o])
                        logs[s, k] += sign * bet * c * (middle[a] - middle[o])
                was = found[-1].get((a, o), (0.0, 0.0, np.zeros((2, len(bets)))))
                found[-1][a, o] = was[0] + c, was[1] + x, was[2] + logs
        for z in range(groups):
            sums[z] += sum(held[z])
            counts[z] += len(held[z])
    return found


def naive_evidence(periods, starts, groups, gap, measures=1):
    """The mixture over starts, ordered pairs and bets, each summed by itself."""
    bets, total = bets_of(), 0.0
    for p in starts:
        weight = 0.5 if p == 0 else 0.5 / (p * (p + 1))
        for a in range(groups):
            for o in range(a + 1, groups):
                parts = [period[a, o] for period in periods[p:] if (a, o) in period]
                c, logs = sum(part[0] for part in parts), sum(part[2] for part in parts)
                total += weight * float(np.exp(logs - bets * gap * c).sum())
    return total / (len(bets) * groups * (groups - 1) * measures)


@pytest.mark.parametrize("seed", range(6))
def test_the_evidence_is_that_of_a_naive_sum(seed):
    """Rates, fractions of the range, three groups, people who are not counted and some of no group: all as by hand."""
    rng = np.random.default_rng(seed)
    groups, n = (2, 3)[seed % 2], 3_470
    codes = rng.choice([-1, *range(groups)], n, p=[0.05, *[0.95 / groups] * groups])
    values = rng.random(n) if seed % 3 else (rng.random(n) < 0.3).astype(float)
    inside = rng.random(n) < 0.9
    rows = Rows(codes, values[:, None], inside[:, None])
    stream, _ = stream_of(rows, groups=groups, line=math.inf)
    periods = naive_periods(rows, groups)
    starts = [*stream.buckets.starts.tolist(), stream.buckets.periods]
    for gap in (0.0, 0.02, 0.2):
        expected = naive_evidence(periods, starts, groups, gap)
        assert math.exp(stream.shown.log_evidence(np.array([gap]))) == pytest.approx(expected, rel=1e-9)
    c, x = (sum(period[0, 1][i] for period in periods) for i in range(2))
    assert stream.shown.terms.c[0, 0, 0] == pytest.approx(c, rel=1e-12)
    assert stream.shown.terms.x[0, 0, 0] == pytest.approx(x, rel=1e-9, abs=1e-9)


@given(st.data())
@examples
def test_without_bounds_bets_are_those_of_a_naive_sum(data):
    """Of every person x - x^2 / 2 with the bet's x, and the levels; whatever the values, centres, sizes and bets."""
    sizes = [data.draw(st.integers(1, 5)) for _ in range(2)]
    drawn = st.lists(st.floats(-5.0, 5.0), min_size=sum(sizes), max_size=sum(sizes))
    values, middle = np.array(data.draw(drawn)), np.array(data.draw(drawn))[:2]
    place = np.repeat([0, 1], sizes)
    scale = Scale(0.0, 1.0, bets_of(data.draw(st.floats(0.0, 10.0))), False)
    found = block_terms(place, values, tally(place, values, 1, 2), middle[None], scale)
    n, c = sum(sizes), sizes[0] * sizes[1] / sum(sizes)
    for s, sign in enumerate((1.0, -1.0)):
        for k, bet in enumerate(scale.bets):
            steps = [sign * bet * sizes[1] / n, -sign * bet * sizes[0] / n]
            bent = [steps[z] * (v - middle[z]) for z, v in zip(place, values, strict=True)]
            expected = sum(x - x * x / 2 for x in bent) + sign * bet * c * (middle[0] - middle[1])
            assert found.log[0, 0, s, k] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def outcomes(points, chances, n):
    """All ways in which n independent values can come, each with its probability."""
    for chosen in product(range(len(points)), repeat=n):
        yield [points[i] for i in chosen], math.prod(chances[i] for i in chosen)


@given(
    st.lists(st.integers(0, 6), min_size=3, max_size=3),
    st.lists(st.integers(0, 6), min_size=3, max_size=3),
    st.tuples(st.integers(0, 10), st.integers(0, 10)),
    st.tuples(st.integers(1, 3), st.integers(1, 2)),
    st.sampled_from([(0.0, 1.0, 0.0), (0.0, 0.5, 1.0), (0.1, 0.3, 0.9)]),
)
@examples
def test_bets_are_supermartingales(first, second, centre, sizes, points):
    """Whatever the centres, sizes and distributions, a block multiplies every bet by at most 1 on average.

    By enumeration of all that can come, at the boundary in both directions: the allowed gap is the true difference.
    """
    chances = [np.array(part, dtype=float) + 1e-3 for part in (first, second)]
    chances = [part / part.sum() for part in chances]
    means = [float(part @ points) for part in chances]
    place = np.array([0] * sizes[0] + [1] * sizes[1])
    scale, middle = Scale.between(0.0, 1.0), np.array([[centre[0] / 10, centre[1] / 10]])
    total = np.zeros((2, len(scale.bets)))
    for one, p in outcomes(points, chances[0], sizes[0]):
        for two, q in outcomes(points, chances[1], sizes[1]):
            values = np.array([*one, *two])
            terms = block_terms(place, values, tally(place, values, 1, 2), middle, scale)
            for s, sign in enumerate((1.0, -1.0)):
                gap = sign * (means[0] - means[1])
                total[s] += p * q * np.exp(terms.log[0, 0, s] - scale.bets * gap * terms.c[0, 0])
    assert (total <= 1.0 + 1e-12).all()
    assert (total > 0.0).all()


def test_the_test_of_supermartingales_can_fail():
    """A gap that is larger than allowed makes bets grow on average."""
    scale, place, grown = Scale.between(0.0, 1.0), np.array([0, 1]), 0.0
    for one, p in outcomes((0.0, 1.0), (0.1, 0.9), 1):
        for two, q in outcomes((0.0, 1.0), (0.9, 0.1), 1):
            values = np.array([*one, *two])
            terms = block_terms(place, values, tally(place, values, 1, 2), np.array([[0.5, 0.5]]), scale)
            grown += p * q * math.exp(terms.log[0, 0, 0, 0] - scale.bets[0] * 0.05 * terms.c[0, 0])
    assert grown > 1.05


def test_weights_of_starts_add_up_to_one():
    """So the mixture of all starts is no more than a bet of one."""
    assert 1.0 - 1e-4 < start_weights(np.arange(20_000)).sum() < 1.0


# ---------------------------------------------------------------------------------------------------------
# Batches, buckets, shards


@given(st.lists(st.integers(0, 4_321), max_size=6), st.sampled_from(["rates", "shares", "dollars"]))
@examples
def test_it_does_not_matter_how_many_come_at_a_time(cuts, what):
    """Every number of the stream is the same to the last bit, and so is when the evidence was enough."""

    def values(rng, codes):
        rate = (rng.random(4_321) < 0.3 + 0.1 * codes).astype(float)
        return rate if what == "rates" else rate * rng.random(4_321) * (1 if what == "shares" else 1e5)

    rows = people(4_321, (0, 0), (1, 1), 5, values)
    bounds = [None] if what == "dollars" else [(0.0, 1.0)]
    gap = np.array([500.0 if what == "dollars" else 0.01])
    whole, seen = Stream.begun(2, bounds).add(rows, gap, LINE)
    stream, found = Stream.begun(2, bounds), None
    for first, last in zip([0, *sorted(cuts)], [*sorted(cuts), 4_321], strict=True):
        stream, crossed = stream.add(rows.part(first, last), gap, LINE if found is None else math.inf)
        found = crossed if found is None else found
    assert everything(stream) == everything(whole)
    assert (found is None) == (seen is None)
    assert found is None or found.rows == seen.rows


@pytest.mark.parametrize(("periods", "kept"), [(100, 19), (1_000, 35), (10_000, 49)])
def test_few_buckets_are_kept(periods, kept):
    """They follow each other, none is lost, and there are as many as the logarithm of their number."""
    buckets = Buckets.none((1, 1))
    for p in range(periods):
        one = Terms(np.full((1, 1), 1.0), np.full((1, 1), float(p)), np.zeros((1, 1, 2, 16)))
        buckets = buckets.with_period(1_000, one)
    assert len(buckets.sizes) == kept
    assert buckets.periods == periods
    assert buckets.terms.x.sum() == pytest.approx(periods * (periods - 1) / 2)
    assert buckets.starts.tolist() == sorted(buckets.starts.tolist())
    assert buckets.sizes[-1] == 1  # what is new can begin anew


@pytest.mark.parametrize("split", [0.5, 0.3])
def test_shards_together_show_what_one_stream_shows(split):
    """People of one stream, dealt to two servers: the log evidence is that of one stream within 2 %."""
    rows = people(60_000, (0.42, 0.30), (1, 1), 3)
    mine = np.random.default_rng(4).random(60_000) < split
    parts = [Rows(*(part[chosen] for part in rows)) for chosen in (mine, ~mine)]
    whole, _ = stream_of(rows)
    one, two = (stream_of(part)[0] for part in parts)
    gap = np.array([0.05])
    together = one.plus(two).shown.log_evidence(gap)
    assert together == pytest.approx(whole.shown.log_evidence(gap), rel=0.02)
    assert together > max(one.shown.log_evidence(gap), two.shown.log_evidence(gap))
    assert two.plus(one).shown.log_evidence(gap) == pytest.approx(together, rel=1e-12)
    assert one.plus(two).rows == 60_000


@pytest.mark.parametrize(
    ("n", "m"), [(3_000, 12_500), (10_000, 12_500), (12_000, 700), (8_300, 8_300), (25_000, 1_000)]
)
def test_the_evidence_of_a_sum_is_that_of_a_naive_sum(n, m):
    """Period by period, from the starts that both have kept, and where one has ended from those of the other."""
    parts = [people(k, (0.4, 0.3), (2, 1), seed) for seed, k in enumerate((n, m))]
    one, two = (stream_of(part)[0] for part in parts)
    shorter, longer = sorted((one.closed(), two.closed()), key=lambda each: each.buckets.periods)
    ends, starts = shorter.buckets.periods, {*longer.buckets.starts.tolist()}
    kept = {p for p in starts if p >= ends} | (starts & {*shorter.buckets.starts.tolist()})
    both = one.plus(two)
    assert {*both.buckets.starts.tolist()} == kept
    periods = [naive_periods(part, 2) for part in parts]
    added = [
        {(0, 1): tuple(sum(each[p][0, 1][i] for each in periods if p < len(each)) for i in range(3))}
        for p in range(max(map(len, periods)))
    ]
    expected = naive_evidence(added, [*sorted(kept), both.buckets.periods], 2, 0.05)
    assert math.exp(both.shown.log_evidence(np.array([0.05]))) == pytest.approx(expected, rel=1e-9)


@given(st.integers(0, 9_999), st.integers(0, 9_999))
@examples
def test_sums_of_streams_lose_nobody(n, m):
    """Whatever their lengths: all comparisons are there, and more rows may come afterwards."""
    one, two = (stream_of(people(k, (0.4, 0.3), (1, 1), k))[0] for k in (n, m))
    both = one.plus(two)
    c = sum(part.closed().shown.terms.c[0, 0, 0] for part in (one, two))
    assert both.rows == n + m
    assert both.shown.terms.c[0, 0, 0] == pytest.approx(c)
    assert int(both.buckets.rows.sum()) == n + m
    more, _ = both.add(people(2_000, (0.4, 0.3), (1, 1), 1), np.array([0.05]), LINE)
    assert more.rows == n + m + 2_000
    assert both.before[0, 0].sum() == n + m


# ---------------------------------------------------------------------------------------------------------
# What it shows


def test_limits_are_where_the_evidence_is_just_enough():
    """Below the lower limit, and above the upper one, everything is refuted; between them nothing is."""
    rows = people(20_000, (0.45, 0.30, 0.33), (2, 1, 1), 7)
    stream, _ = stream_of(rows, groups=3)
    shown = stream.shown
    low, high = shown.low(LINE)[0], shown.high(LINE)[0]
    assert 0.0 < low < shown.estimate()[0] < high < 1.0
    assert shown.log_evidence(np.array([low - 1e-9])) >= LINE > shown.log_evidence(np.array([low + 1e-9]))
    bets, terms = bets_of(), shown.terms
    refuted = []
    for p in range(3):
        for s in range(2):
            logs = terms.log[0, 0, p, 1 - s]
            grid = np.linspace(-1.0, 1.0, 4_001)
            with np.errstate(over="ignore"):
                mean = np.exp(logs + np.outer(grid, bets) * terms.c[0, 0, p]).mean(axis=1)
            refuted.append(grid[mean >= 20.0 * 3 * 2].min())  # three groups, six ordered pairs
    assert high == pytest.approx(max(refuted), abs=6e-4)


def test_the_estimate_is_the_largest_difference_inside_blocks():
    """A level that moves for everybody while the mix of groups moves with it is no gap."""
    rng, n = np.random.default_rng(0), 50_000
    wave = np.sin(np.arange(n) / 4_000.0)
    codes = (rng.random(n) < 0.5 + 0.3 * wave).astype(int)
    values = (rng.random(n) < 0.4 + 0.2 * wave).astype(float)
    rows = Rows(codes, values[:, None], np.ones((n, 1), dtype=bool))
    stream, crossed = stream_of(rows, gap=0.0)
    pooled = values[codes == 1].mean() - values[codes == 0].mean()
    assert pooled > 0.05  # which an audit of all rows would call a gap
    assert stream.shown.estimate()[0] < 0.02
    assert crossed is None


def test_a_gap_that_opens_late_is_seen():
    """After 40,000 quiet rows a jump of 0.15 is seen within some thousand, and its beginning is told."""
    quiet, after = people(40_000, (0.3, 0.3), (1, 1), 1), people(10_000, (0.45, 0.3), (1, 1), 2)
    _, crossed = stream_of(quiet.then(after))
    assert crossed is not None
    assert 40_000 < crossed.rows < 46_000
    parts = crossed.shown.by_pair(np.array([0.05]))
    assert np.unravel_index(parts.argmax(), parts.shape) == (0, 0, 0)
    assert abs(crossed.shown.best_start(np.array([0.05]), 0, 0, 0) - 40_000) <= 3_000


@pytest.mark.parametrize("seed", range(4))
def test_an_alarm_is_raised_at_the_first_block_at_which_the_evidence_is_enough(seed):
    """Up to these rows it is, up to those of any earlier block it is not."""
    rows, gap = people(20_000, (0.42, 0.30), (1, 1), seed), np.array([0.05])
    _, crossed = stream_of(rows)
    shown = [
        stream_of(rows.part(0, n), line=math.inf)[0].shown for n in range(BLOCK, crossed.rows + 1, BLOCK)
    ]
    enough = [part.log_evidence(gap) >= LINE for part in shown]
    assert enough[-1]
    assert not any(enough[:-1])
    assert crossed.shown.log_evidence(gap) == shown[-1].log_evidence(gap)


def test_false_alarms_are_rare_at_the_boundary():
    """Of 300 systems exactly at the allowed gap, looked at after every block of 10,000 rows, hardly any is accused."""
    seeds = range(300)
    alarms = sum(stream_of(people(10_000, (0.35, 0.30), (1, 1), seed))[1] is not None for seed in seeds)
    assert alarms <= 15  # 5 %; about 1 are expected


def test_nobody_to_compare_shows_nothing():
    """Of one group alone there is no estimate, no limit and no alarm."""
    rows = Rows(np.zeros(1_000, dtype=int), np.ones((1_000, 1)), np.ones((1_000, 1), dtype=bool))
    stream, crossed = stream_of(rows)
    assert crossed is None
    assert math.isnan(stream.shown.estimate()[0])
    assert stream.shown.low(LINE)[0] == 0.0
    assert math.isinf(stream.shown.high(LINE)[0])


def test_logarithms_of_sums_do_not_overflow():
    """Evidence beyond what a computer can count stays a number."""
    assert log_sum(np.array([1e5, 1e5])) == pytest.approx(1e5 + math.log(2.0))
    assert log_sum(np.zeros(0)) == -math.inf


# ---------------------------------------------------------------------------------------------------------
# Without bounds


def burnt(values, codes, groups=2):
    """What is seen of some rows, block by block."""
    seen = BurnIn.begun(groups)
    for start in range(0, len(values), BLOCK):
        seen = seen.add(codes[start : start + BLOCK], values[start : start + BLOCK])
    return seen


def test_scale_and_skewness_are_those_of_the_rows():
    """The standard deviation inside groups, and the largest skewness of a group; a shifted origin changes nothing."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 500)
    values = np.where(codes == 0, rng.exponential(2e4, 1_000), 5e4 + rng.normal(0, 1e4, 1_000))
    seen = burnt(values, codes)
    groups = [values[codes == z] for z in range(2)]
    inside = math.sqrt(sum(((g - g.mean()) ** 2).sum() for g in groups) / 1_000)
    skew = max(abs(((g - g.mean()) ** 3).mean() / g.std() ** 3) for g in groups)
    scale = seen.scale()
    assert scale.width == pytest.approx(inside, rel=1e-9)
    assert scale.bets[0] == pytest.approx(min(0.7, 0.5 / skew), rel=1e-6)
    assert scale.bets[0] / scale.bets[-1] == pytest.approx(350.0)
    mine, other = (burnt(values[part], codes[part]) for part in (slice(0, 1_000, 2), slice(1, 1_000, 2)))
    assert mine.plus(other).scale().width == pytest.approx(inside, rel=1e-9)
    assert mine.plus(other).scale().bets == pytest.approx(scale.bets)


def test_centres_know_the_rows_that_were_seen_before_anything_was_bet():
    """Number and sum of all values so far, as they are read, far from 0 as they may be."""
    rng = np.random.default_rng(0)
    codes, values = rng.integers(0, 2, 1_000), 1e6 + rng.exponential(100.0, 1_000)
    stream, _ = stream_of(Rows(codes, values[:, None], np.ones((1_000, 1), dtype=bool)), bounds=[None])
    scale = stream.scales[0]
    assert isinstance(scale, Scale)
    assert stream.before[0, 0].tolist() == np.bincount(codes).tolist()
    assert stream.before[0, 1] == pytest.approx(np.bincount(codes, scale.read(values)), abs=1e-6)


def test_bets_wait_until_enough_was_seen():
    """Of every group so many rows, of whom some differ; a group that hardly varies has to be seen longer."""
    few = burnt(np.arange(150.0), np.repeat([0, 1], [SEEN - 1, 150 - SEEN + 1]))
    assert few.missing == [0, 1]
    rng = np.random.default_rng(1)
    codes = np.tile([0, 1], 1_000)
    constant = np.where(codes == 0, rng.random(2_000), 1.0)
    assert burnt(constant, codes).missing == [1]
    assert burnt(np.ones(2_000), codes).missing == [0, 1]
    rare = constant.copy()
    rare[np.flatnonzero(codes == 1)[:DIFFERENT]] = 7.0
    assert burnt(rare, codes).missing == []
    codes = np.tile([0, 1], ENOUGH)
    assert burnt(np.where(codes == 0, rng.random(2 * ENOUGH), 1.0), codes).missing == []


def test_centres_go_by_earlier_blocks_alone():
    """The mean of a block never depends on its own rows, else it would be no bet."""
    place = np.array([0, 1, 0, 1, 2, 3, 2, 3])
    values = np.array([0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0])
    sums = tally(place, values, 2, 2)
    middle, after = centres(sums, np.array([[8.0, 8.0], [2.0, 6.0]]), bounded=True)
    assert middle.tolist() == [[2.5 / 9, 6.5 / 9], [2.5 / 11, 8.5 / 11]]
    assert after.tolist() == [[12.0, 12.0], [4.0, 8.0]]
    plain, _ = centres(sums, np.array([[8.0, 8.0], [2.0, 6.0]]), bounded=False)
    assert plain.tolist() == [[0.25, 0.75], [0.2, 0.8]]


@pytest.mark.parametrize("chance", [0.01, 0.05])
def test_jackpots_raise_few_false_alarms(chance):
    """Rare large wins of one group, a constant of the other, with equal means: 40 worlds of 20,000 rows."""

    def values(rng, codes):
        return np.where(codes == 0, (rng.random(len(codes)) < chance) / chance, 1.0)

    alarms = 0
    for seed in range(40):
        rows = people(20_000, (0, 0), (1, 1), seed, values)
        alarms += stream_of(rows, gap=0.0, bounds=[None])[1] is not None
    assert alarms <= 5


def test_a_gap_in_dollars_is_seen():
    """Lognormal amounts whose means are $300 apart where $100 are allowed."""

    def values(rng, codes):
        return np.exp(rng.normal(7.0, 0.5, len(codes))) + 300.0 * codes

    _, crossed = stream_of(people(20_000, (0, 0), (1, 1), 0, values), gap=100.0, bounds=[None])
    assert crossed is not None
    assert crossed.shown.by_pair(crossed.scaled_gaps(np.array([100.0])))[0, 0].argmax() == 1
