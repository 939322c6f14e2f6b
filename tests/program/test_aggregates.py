"""Aggregates: against a naive loop, at batch boundaries, under every invariance, and when added."""

from dataclasses import replace
from math import fsum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import Exact, Rows
from strategies import OFFSETS, UNITS, Column, aggregates_of, examples, measures_of, populations, table_of

from felicific import Happiness, aggregate, solve
from felicific._program.signals import Label, SoftLabel
from felicific._program.summing import BATCH
from felicific.exceptions import AggregatesError, DataError, GroupError, HappinessError

ARRAYS = ("mass", "loss", "value", "among", "baseline_loss", "baseline_value", "rows")


def naive_sums(rows):
    """The sums of the definition, term by term, by ``math.fsum``: happiness relative to nothing."""
    G, K, J = rows.n_groups, rows.n_classes, rows.n_measures
    terms = {}

    def add(name, place, number):
        terms.setdefault((name, place), []).append(float(number))

    for i in range(len(rows.group)):
        z, w, own = int(rows.group[i]), rows.weight[i], int(rows.predicted[i])
        add("rows", (z,), 1)
        for s in range(K):
            share = rows.score[i, s] if rows.soft else float(own == s)
            add("mass", (z, s), w * share)
            add("baseline_loss", (z, s), w * share * rows.cost[i, own])
            for j in range(J):
                add("baseline_value", (z, s, j), w * share * rows.among[i, j] * rows.eta[i, own, j])
                add("among", (z, s, j), w * share * rows.among[i, j])
            for d in range(K):
                add("loss", (z, s, d), w * share * rows.cost[i, d])
                for j in range(J):
                    add("value", (z, s, d, j), w * share * rows.among[i, j] * rows.eta[i, d, j])
    shapes = {
        "mass": (G, K),
        "loss": (G, K, K),
        "value": (G, K, K, J),
        "among": (G, K, J),
        "baseline_loss": (G, K),
        "baseline_value": (G, K, J),
        "rows": (G,),
    }
    sums = {name: np.zeros(shape) for name, shape in shapes.items()}
    for (name, place), numbers in terms.items():
        sums[name][place] = fsum(numbers)
    return sums


def without_origin(computed):
    """The arrays of the aggregates, with happiness relative to nothing."""
    found = {name: np.array(getattr(computed, name), float) for name in ARRAYS}
    found["value"] += (computed.origin * computed.among)[:, :, None, :]
    found["baseline_value"] += computed.origin * computed.among
    return found


def assert_same_sums(found, wanted, relative=1e-12):
    """Compare arrays by name, relative to the largest entry of each."""
    assert set(found) == set(wanted)
    for name, numbers in wanted.items():
        assert found[name].shape == numbers.shape, name
        off = np.abs(found[name] - numbers).max(initial=0.0)
        assert off <= relative * np.abs(numbers).max(initial=0.0), f"{name} is off by {off}"


def assert_same_aggregates(one, two, relative=1e-12):
    """Compare two aggregates that should describe the same people, in the same order of everything."""
    assert_same_sums(without_origin(one), without_origin(two), relative)
    assert one.baseline.gaps == pytest.approx(two.baseline.gaps, rel=0, abs=relative * spread(one))


def spread(computed):
    """How much happiness varies between cells and decisions: the natural unit of rounding errors."""
    with np.errstate(invalid="ignore", divide="ignore"):
        means = computed.value / computed.among[:, :, None, :]
    return float(np.nanmax(means) - np.nanmin(means)) + 1e-300


def pick(rows, chosen):
    """The chosen people, by position, in that order (and as often as they are named)."""
    names = ("group", "label", "predicted", "score", "weight", "eta", "among", "cost")
    return replace(rows, **{name: getattr(rows, name)[chosen] for name in names})


def generic(n, *, seed=0, K=3, G=3, J=2, soft=False):
    """Many people with happiness of both signs, far from zero, and an ``among``."""
    rng = np.random.default_rng(seed)
    score = rng.dirichlet(np.ones(K), n)
    return Rows(
        n_classes=K,
        n_groups=G,
        group=np.arange(n) % G,
        label=rng.integers(0, K, n),
        predicted=score.argmax(axis=1),
        score=score,
        weight=rng.integers(1, 4, n).astype(float),
        eta=rng.normal(10.0, 5.0, (n, K, J)),
        among=rng.random((n, J)) < 0.7,
        cost=rng.random((n, K)),
        soft=soft,
    )


# ---------------------------------------------------------------------------------------------------------
# The comparisons themselves


def test_the_comparisons_fail_on_wrong_aggregates():
    """A single person more, a changed value, weight, group or loss does not pass as the same."""
    rows = generic(60)
    right, naive = aggregates_of(rows), naive_sums(rows)
    assert_same_sums(without_origin(right), naive)
    assert_same_aggregates(right, aggregates_of(rows))
    first = np.arange(60) == 0
    wrong = [
        pick(rows, np.arange(59)),
        replace(rows, eta=rows.eta + 1e-9 * first[:, None, None] * (1 + rows.eta)),
        replace(rows, weight=rows.weight + 1e-6 * first),
        replace(rows, group=np.where(first, 1, rows.group)),
        replace(rows, cost=rows.cost + 1e-6 * first[:, None]),
        replace(rows, predicted=np.where(first, (rows.predicted + 1) % 3, rows.predicted), soft=True),
    ]
    for other in wrong:
        changed = aggregates_of(other, predicted=other.predicted)
        with pytest.raises(AssertionError):
            assert_same_sums(without_origin(changed), naive)
        with pytest.raises(AssertionError):
            assert_same_aggregates(right, changed)


# ---------------------------------------------------------------------------------------------------------
# Against the definition


@examples
@given(populations(unit=UNITS))
def test_aggregates_are_the_sums_of_their_definition(population):
    """Every entry equals the sum over the rows, one by one."""
    rows, loss = population
    assert_same_sums(without_origin(aggregates_of(rows, loss)), naive_sums(rows))


@examples
@given(populations(unit=UNITS, offset=OFFSETS))
def test_what_the_baseline_does_is_exact_under_any_offset(population):
    """Loss, group means and gaps of the baseline's decisions equal the exact ones; an offset costs a gap no digit."""
    rows, loss = population
    exact, baseline = Exact(rows), aggregates_of(rows, loss).baseline
    assert baseline.loss == pytest.approx(float(exact.baseline_loss), rel=1e-13, abs=1e-13)
    for j in range(rows.n_measures):
        column = [line[j] for line in exact.baseline]
        effect = float(np.ptp(rows.eta[..., j])) + 1e-300
        assert abs(baseline.gaps[j] - float(max(column) - min(column))) <= 1e-12 * effect
        for z in range(rows.n_groups):
            assert baseline.means[z, j] == pytest.approx(float(column[z]), rel=1e-14, abs=1e-13 * effect)


@pytest.mark.parametrize("n", [1, 3, BATCH - 1, BATCH, BATCH + 1, 2 * BATCH - 1, 2 * BATCH, 2 * BATCH + 1])
@pytest.mark.parametrize("soft", [False, True])
def test_batches_meet_without_gap_or_overlap(n, soft):
    """Around multiples of the batch size every row counts exactly once."""
    rows = generic(n, soft=soft, J=1, K=2)
    assert BATCH == 16384
    found = without_origin(aggregates_of(rows, groups=range(3)))
    assert_same_sums(found, naive_sums(rows))
    assert found["rows"].sum() == n


def test_batches_see_all_rows_once_and_in_order():
    """A happiness function is shown consecutive slices that together are the table; of the first a part once more."""
    shown = {decision: [] for decision in (0, 1)}

    def recorded(decision, x, y, group):
        assert len(x["i"]) == len(y) == len(group) <= BATCH
        shown[decision].append(x["i"])
        return float(decision)

    n = 2 * BATCH + 5
    aggregate(
        {"i": np.arange(n, dtype=float)},  # large whole numbers are shown once more, as floats
        y=np.arange(n) % 2,
        predicted=np.arange(n) % 2,
        policy="label",
        sensitive_features=np.arange(n) % 2,
        happiness=recorded,
    )
    for first, part, *others in shown.values():
        assert np.array_equal(np.concatenate([first, *others]), np.arange(n))
        assert set(part) < set(first)


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_nobody_counted_in_the_first_batch(offset):
    """When the first batch holds nobody who is counted, later ones do, to the same precision."""
    n = BATCH + 500
    rows = generic(n, J=1)
    rows = replace(rows, among=(np.arange(n) >= BATCH + 10)[:, None], eta=rows.eta + offset)
    late, early = aggregates_of(rows), aggregates_of(pick(rows, np.arange(n)[::-1]))
    assert late.baseline.gaps == pytest.approx(early.baseline.gaps, rel=0, abs=1e-11)
    assert_same_sums(without_origin(late), naive_sums(rows), 1e-12)


def test_a_first_batch_unlike_the_rest_costs_little():
    """When the first batch is a billion away from the rest, the sums still hold to their own rounding."""
    n = 2 * BATCH
    rows = generic(n, J=1)
    rows = replace(rows, eta=rows.eta + np.where(np.arange(n) < BATCH, 1e9, 0.0)[:, None, None])
    assert_same_sums(without_origin(aggregates_of(rows)), naive_sums(rows), 1e-12)


@pytest.mark.parametrize("row", [0, BATCH - 1, BATCH, 2 * BATCH + 3])
@pytest.mark.parametrize("absent", [0, 5, BATCH])
def test_an_error_names_the_row_of_the_users_table(row, absent):
    """A NaN is reported with its row number in the whole table, also behind batches and rows of weight 0."""
    n = 2 * BATCH + 10
    number = row + absent
    values = np.ones(n + absent)
    values[number] = np.nan
    weight = np.ones(n + absent)
    weight[:absent] = 0.0
    group = np.array(["a", "b"])[np.arange(n + absent) % 2]
    with pytest.raises(HappinessError, match=rf"row {number} \(group '{group[number]}'\)"):
        aggregate(
            {"v": values},
            y=np.arange(n + absent) % 2,
            predicted=np.arange(n + absent) % 2,
            policy="label",
            sensitive_features=group,
            happiness=lambda decision, x: decision * x["v"],
            sample_weight=weight,
        )


def test_rows_not_counted_may_hold_anything():
    """Who is outside ``among`` contributes nothing, so a NaN of theirs is no error: the message advises just that."""
    rows = generic(30, J=1)
    rows = replace(rows, among=(np.arange(30) >= 6)[:, None])
    holes = replace(rows, eta=np.where(rows.among[:, :, None], rows.eta, np.nan))
    assert_same_aggregates(aggregates_of(holes), aggregates_of(rows))


# ---------------------------------------------------------------------------------------------------------
# Invariances


def assert_same_optimum(one, two, share=0.5):
    """Solve both at a share of the baseline's gaps, with the least gap as fallback, and compare the least loss."""
    widths = {
        c.name: share * gap + 1e-9 * spread(one)
        for c, gap in zip(one.measures, one.baseline.gaps, strict=True)
    }
    results = []
    for computed in (one, two):
        try:
            results.append(solve(computed, gap=widths).loss)
        except ValueError as error:
            results.append(type(error))
    if isinstance(results[0], float):
        scale = float(np.ptp(one.loss / one.total, axis=2).sum()) + 1e-300
        assert results[1] == pytest.approx(results[0], rel=0, abs=1e-11 * scale)
    else:
        assert results[0] is results[1]


@examples
@given(populations(), st.randoms(use_true_random=False))
def test_row_order_does_not_matter(population, random):
    """Shuffled people have the same aggregates and the same optimum."""
    rows, loss = population
    order = list(range(len(rows.group)))
    random.shuffle(order)
    one, two = aggregates_of(rows, loss), aggregates_of(pick(rows, np.array(order)), loss)
    assert_same_aggregates(one, two)
    assert_same_optimum(one, two)


def test_row_order_does_not_matter_across_batches():
    """Nor when other rows come into the first batch."""
    rows = generic(3 * BATCH, K=2, J=1)
    assert_same_aggregates(aggregates_of(rows), aggregates_of(pick(rows, np.argsort(rows.eta[:, 0, 0]))))


@examples
@given(populations(), st.data())
def test_weight_w_is_the_row_w_times(population, data):
    """Whole weights equal repeated rows."""
    rows, loss = population
    n = len(rows.group)
    times = np.array(data.draw(st.lists(st.integers(1, 4), min_size=n, max_size=n)))
    weighted = aggregates_of(replace(rows, weight=times.astype(float)), loss)
    repeated = aggregates_of(
        pick(replace(rows, weight=np.ones(n)), np.repeat(np.arange(n), times)), loss, sample_weight=None
    )
    assert_same_aggregates(replace(weighted, rows=repeated.rows), repeated)
    assert weighted.rows.sum() == n
    assert_same_optimum(weighted, repeated)


@examples
@given(populations(), st.data())
def test_weight_zero_is_the_row_absent(population, data):
    """A row of weight 0 leaves no trace, whatever it holds: NaN, unknown label, impossible probability, own group."""
    rows, loss = population
    n = len(rows.group)
    table = {name: np.append(column.astype(object), None) for name, column in table_of(rows).items()}
    garbage = data.draw(st.sampled_from([np.nan, np.inf, "?", 99, None]))
    for name in table:
        table[name][n] = garbage
    table["group"][n] = data.draw(st.sampled_from([99, -1, "newcomers", 0, None, np.nan]))
    table["weight"][n] = 0.0
    order = data.draw(st.permutations(range(n + 1)))
    table = {name: column[np.array(order)] for name, column in table.items()}
    weight = table.pop("weight").astype(float)
    # Back to the types of a table: whole columns of objects are nobody's habit.
    changes = {"sample_weight": weight, "happiness": objects(measures_of(rows))}
    score = np.column_stack([table.pop(f"proba{d}") for d in range(rows.n_classes)])
    score = np.where(weight[:, None] > 0, score, np.nan).astype(float)
    computed = aggregate(
        table,
        score=score,
        y=table["label"],
        sensitive_features=table["group"],
        policy="soft-label" if rows.soft else "label",
        loss=(lambda decision, x: x[f"loss_{decision}"].astype(float)) if loss is None else loss,
        classes=range(rows.n_classes),
        **changes,
    )
    assert computed.groups == tuple(range(rows.n_groups))
    assert_same_aggregates(computed, aggregates_of(rows, loss))


def objects(measures):
    """Read the measures from columns of objects."""
    found = []
    for measure in measures:
        name, inside = measure.name, measure.among

        def function(decision, x, name=name):
            return x[f"{name}_{decision}"].astype(float)

        def among(x, inside=inside):
            return inside(x).astype(bool)

        found.append(Happiness(function, name=name, among=None if inside is None else among))
    return found


@pytest.mark.parametrize("position", [0, 7, 20])
def test_weight_zero_hides_a_missing_value_of_every_column(position):
    """Weight 0 hides NaN in the features, in y, in the predictions and in the group, one column at a time."""
    rng = np.random.default_rng(position)
    n = 21
    x = {"v": rng.random(n)}
    y, predicted = rng.integers(0, 2, n).astype(float), rng.integers(0, 2, n).astype(float)
    y[[1, 2]] = predicted[[1, 2]] = 0.0, 1.0
    group = np.arange(n) % 2 + 0.0
    weight = np.ones(n)
    weight[position] = 0.0
    keep = np.arange(n) != position

    def compute(x, y, predicted, group, weight):
        return aggregate(
            x,
            y=y,
            predicted=predicted,
            policy="label",
            sensitive_features=group,
            happiness={"v": lambda decision, x: decision * x["v"]},
            sample_weight=weight,
        )

    wanted = compute({"v": x["v"][keep]}, y[keep], predicted[keep], group[keep], None)
    for holed in ("x", "y", "predicted", "group"):
        columns = {"x": x["v"].copy(), "y": y.copy(), "predicted": predicted.copy(), "group": group.copy()}
        columns[holed][position] = np.nan
        found = compute({"v": columns.pop("x")}, **columns, weight=weight)
        assert_same_aggregates(found, wanted)
        assert found.groups == wanted.groups == (0.0, 1.0)
        assert found.classes.tolist() == [0.0, 1.0]


HOSTILE = ["<script>", "a'b\"c", "two\nlines", "émoji 🎈", "", " ", "x" * 10_000, "0"]


@examples
@given(populations(), st.permutations(HOSTILE), st.permutations(HOSTILE))
def test_names_of_groups_and_classes_do_not_matter(population, group_names, class_names):
    """Renamed groups and classes, in any sorting order, have the same numbers under their new names."""
    rows, loss = population
    G, K = rows.n_groups, rows.n_classes
    table = table_of(rows)
    table["named group"] = np.array(group_names, dtype=object)[rows.group]
    table["named label"] = np.array(class_names, dtype=object)[rows.label]
    code = {name: k for k, name in enumerate(class_names)}
    written = [
        Happiness(lambda decision, x, name=c.name: x[f"{name}_{code[decision]}"], among=c.among, name=c.name)
        for c in measures_of(rows)
    ]

    def own_loss(decision, x):
        return x[f"loss_{code[decision]}"]

    named = aggregate(
        table,
        score=[f"proba{d}" for d in range(K)],
        y="named label",
        sensitive_features="named group",
        happiness=written,
        policy="soft-label" if rows.soft else "label",
        loss=own_loss if loss is None else loss,
        classes=class_names[:K],
        sample_weight="weight",
    )
    plain = aggregates_of(rows, loss)
    assert named.groups == tuple(sorted(group_names[:G]))
    order = [named.groups.index(group_names[z]) for z in range(G)]
    assert list(named.classes) == class_names[:K]
    for name in ARRAYS:
        assert np.array_equal(getattr(named, name)[order], getattr(plain, name)), name
    assert_same_optimum(plain, named)


@examples
@given(populations())
def test_order_of_classes_does_not_matter(population):
    """Classes listed backwards give the same sums at the mirrored places, and the same optimum."""
    rows, loss = population
    K = rows.n_classes
    plain = aggregates_of(rows, loss, predicted="predicted")
    mirrored = aggregates_of(
        rows,
        loss if loss is None or isinstance(loss, str) else loss[::-1, ::-1],
        predicted="predicted",
        classes=range(K)[::-1],
        score=[f"proba{d}" for d in range(K)[::-1]],
    )
    back = mirrored.with_sums(
        mass=mirrored.mass[:, ::-1],
        loss=mirrored.loss[:, ::-1, ::-1],
        baseline_loss=mirrored.baseline_loss[:, ::-1],
        baseline_value=mirrored.baseline_value[:, ::-1],
        value=mirrored.value[:, ::-1, ::-1],
        among=mirrored.among[:, ::-1],
    )
    assert_same_aggregates(back, plain)
    assert_same_optimum(plain, mirrored)


@examples
@given(
    populations(n_classes=st.just(2), every_label=True),
    st.sampled_from(["statistical_parity", "overall_accuracy", "equal_opportunity", "predictive_equality"]),
)
def test_swapping_the_positive_label_does_not_matter(population, criterion):
    """1 for 0 in labels, probabilities and what is best: the same loss and gaps, of the other label's rate."""
    rows, _ = population
    swapped = replace(rows, label=1 - rows.label, score=rows.score[:, ::-1], predicted=1 - rows.predicted)
    other = {"equal_opportunity": "true_negative_rate", "predictive_equality": "false_negative_rate"}
    one = aggregates_of(rows, "error", happiness=criterion, predicted="predicted")
    turned = {"happiness": other.get(criterion, criterion), "decisions": [1, 0]}
    two = aggregates_of(swapped, "error", **turned, predicted="predicted")
    assert sorted(one.baseline.gaps) == pytest.approx(sorted(two.baseline.gaps), rel=0, abs=1e-14)
    assert one.baseline.loss == pytest.approx(two.baseline.loss, rel=0, abs=1e-14)
    for gap in (0.05, 0.3):
        results = []
        for computed in (one, two):
            try:
                results.append(solve(computed, gap=gap).loss)
            except ValueError as error:
                results.append(error.least_gap)
        assert results[0] == pytest.approx(results[1], rel=0, abs=1e-10)


@examples
@given(populations(), st.sampled_from([2.0**-40, 2.0**40, 1e-9, 1e9, -1.0]))
def test_a_change_of_unit_scales_value_and_nothing_else(population, unit):
    """Happiness in another unit multiplies its sums, means and gaps; a negative one turns its sign."""
    rows, loss = population
    plain, scaled = aggregates_of(rows, loss), aggregates_of(replace(rows, eta=unit * rows.eta), loss)
    wanted = without_origin(plain)
    wanted["value"], wanted["baseline_value"] = unit * wanted["value"], unit * wanted["baseline_value"]
    assert_same_sums(without_origin(scaled), wanted)
    assert scaled.baseline.gaps == pytest.approx(
        abs(unit) * plain.baseline.gaps, rel=1e-12, abs=1e-13 * abs(unit)
    )
    assert scaled.baseline.loss == plain.baseline.loss


# ---------------------------------------------------------------------------------------------------------
# Adding


@examples
@given(populations(unit=UNITS, offset=OFFSETS), st.data())
def test_aggregates_of_parts_add_up_to_those_of_the_whole(population, data):
    """Three parts, in any order and grouping, some perhaps empty, add up to the whole; sum() works.

    Each part has an origin of its own, and an offset of a billion effects must not cost a digit of the gap.
    """
    rows, loss = population
    n = len(rows.group)
    part = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    keep = {"groups": range(rows.n_groups), "happiness": measures_of(rows)}
    whole = aggregates_of(rows, loss, **keep)
    parts = [aggregates_of(pick(rows, np.flatnonzero(part == k)), loss, **keep) for k in (0, 1, 2)]
    exact = Exact(rows)
    a, b, c = data.draw(st.permutations(parts))
    for added in (a + b + c, a + (b + c), sum([a, b, c])):
        assert added.rows.tolist() == whole.rows.tolist()
        assert_same_sums(without_origin(added), without_origin(whole))
        for j in range(rows.n_measures):
            column = [line[j] for line in exact.baseline]
            effect = float(np.ptp(rows.eta[..., j])) + 1e-300
            assert abs(added.baseline.gaps[j] - float(max(column) - min(column))) <= 1e-12 * effect
    assert_same_optimum(whole, a + b + c)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e9, -1e9])
def test_an_empty_part_is_zero(offset):
    """Aggregates of no rows change nothing, on either side, whatever the offset of the others."""
    rows = generic(30, J=1)
    rows = replace(rows, eta=rows.eta + offset, among=np.ones((30, 1), bool))
    keep = {"groups": range(3)}
    whole, nothing = aggregates_of(rows, **keep), aggregates_of(pick(rows, np.arange(0)), **keep)
    assert nothing.total == 0
    assert not nothing.rows.any()
    for added in (whole + nothing, nothing + whole, nothing + nothing + whole):
        assert added.baseline.gaps == pytest.approx(whole.baseline.gaps, rel=1e-12)
        assert solve(added, gap=0.5).loss == pytest.approx(solve(whole, gap=0.5).loss, rel=0, abs=1e-12)


def test_a_part_where_nobody_is_counted_is_zero_for_that_measure():
    """A site without anybody inside ``among`` has no origin to impose on the others."""
    rows = generic(60, J=1)
    rows = replace(rows, eta=rows.eta + 1e9, among=(np.arange(60) >= 30)[:, None])
    keep = {"groups": range(3), "happiness": measures_of(rows)}
    whole = aggregates_of(rows, **keep)
    first, second = (
        aggregates_of(pick(rows, chosen), **keep) for chosen in (np.arange(30), np.arange(30, 60))
    )
    for added in (first + second, second + first):
        assert added.baseline.gaps == pytest.approx(whole.baseline.gaps, rel=0, abs=1e-11)


def test_adding_leaves_the_parts_alone():
    """A sum is new: neither part changes, and adding again gives the same."""
    one, two = aggregates_of(generic(30, seed=1)), aggregates_of(generic(30, seed=2))
    before = [{name: getattr(part, name).tobytes() for name in ARRAYS} for part in (one, two)]
    first, second = one + two, one + two
    assert before == [{name: getattr(part, name).tobytes() for name in ARRAYS} for part in (one, two)]
    for name in ARRAYS:
        assert np.array_equal(getattr(first, name), getattr(second, name))


def test_aggregates_add_to_aggregates_only():
    """Numbers other than the 0 that sum() starts with, and anything else, are refused."""
    computed = aggregates_of(generic(30))
    assert sum([computed]) is computed
    for other in (1, 1.5, "0", None, [], object()):
        with pytest.raises(TypeError):
            computed + other
        with pytest.raises(TypeError):
            other + computed


FOUR = {
    "classes": [0, 1, 2, 3],
    "score": None,
    "predicted": "predicted",
    "happiness": "overall_accuracy",
    "loss": "error",
}


@pytest.mark.parametrize(
    ("what", "changes", "words"),
    [
        ("classes", FOUR, r"\[0, 1, 2\] and \[0, 1, 2, 3\]"),
        ("classes", {"classes": [2, 1, 0]}, r"\[0, 1, 2\] and \[2, 1, 0\]"),
        ("groups", {"groups": [0, 1, 2, "other"]}, r"\(0, 1, 2\) and \(0, 1, 2, 'other'\)"),
        ("groups", {"groups": [2, 1, 0]}, r"\(0, 1, 2\) and \(2, 1, 0\)"),
        ("measures", {"happiness": "statistical_parity"}, "eta0.* and .*share decided"),
        ("measures", {"happiness": [Column("eta0")]}, "'eta0', 'eta1'.* and .*'eta0'"),
        (
            "measures",
            {"happiness": [Column("eta1"), Column("eta0")]},
            "'eta0', 'eta1'.* and .*'eta1', 'eta0'",
        ),
        ("signal", {"policy": "soft-label"}, "Label.* and SoftLabel"),
        ("loss", {"loss": "error"}, "function loss and error"),
        ("loss", {"loss": 2 * (1 - np.eye(3))}, "function loss and cost matrix"),
    ],
)
def test_what_does_not_match_refuses_to_add(what, changes, words):
    """Aggregates that disagree say on what, show both sides, and advise."""
    rows = generic(30)
    rows = replace(rows, among=np.ones((30, 2), bool))
    one, two = aggregates_of(rows), aggregates_of(rows, **changes)
    with pytest.raises(AggregatesError, match=rf"disagree on {what}: .*{words}") as caught:
        one + two
    assert "same arguments" in caught.value.remedy
    with pytest.raises(AggregatesError, match=f"disagree on {what}"):
        two + one


@pytest.mark.parametrize(
    "changes",
    [{"unit": "$"}, {"bounds": (-1e6, 1e6)}, {"function": lambda decision, x, y: x[f"eta0_{decision}"]}],
    ids=["unit", "bounds", "looks at y"],
)
def test_measures_of_one_name_and_different_meaning_refuse_to_add(changes):
    """Dollars do not add to euros, nor do measures that otherwise differ; the message shows the difference."""
    rows = replace(generic(30, J=1), among=np.ones((30, 1), bool))
    plain = {"function": Column("eta0"), "name": "eta0", "unit": "€"}
    one, two = (aggregates_of(rows, happiness=Happiness(**kind)) for kind in (plain, plain | changes))
    with pytest.raises(AggregatesError, match="disagree on measures") as caught:
        one + two
    mine, theirs = caught.value.problem.split(": ", 1)[1].rstrip(".").split(" and ")
    assert mine != theirs


def test_two_cost_matrices_refuse_to_add():
    """A different number in a cost matrix is a different loss."""
    rows = generic(30, K=2)
    one, two = (aggregates_of(rows, np.array([[0.0, 1.0], [cost, 0.0]])) for cost in (1.0, 1.0 + 1e-15))
    with pytest.raises(AggregatesError, match="disagree on loss"):
        one + two


# ---------------------------------------------------------------------------------------------------------
# The inputs of aggregate()


def test_signal_objects_are_what_their_names_say():
    """``policy="label"`` is ``Label()``, and ``"soft-label"`` is ``SoftLabel()``."""
    rows = generic(30)
    for name, signal in (("label", Label()), ("soft-label", SoftLabel())):
        one, two = aggregates_of(rows, policy=name), aggregates_of(rows, policy=signal)
        assert_same_aggregates(one, two)
        assert one.signal == two.signal == signal


def test_probabilities_by_name_list_or_array_are_the_same():
    """{class: column}, a list of columns for the sorted classes, and an array of shape (n, K) agree."""
    rows = generic(60, soft=True)
    wanted = aggregates_of(rows)
    by_class = {k: f"proba{k}" for k in (0, 1, 2)}
    backwards = {k: f"proba{k}" for k in (2, 1, 0)}
    for score in (by_class, backwards, rows.score, rows.score.tolist(), ("proba0", "proba1", "proba2")):
        assert_same_aggregates(aggregates_of(rows, score=score), wanted)
    assert_same_aggregates(aggregates_of(rows, score=rows.score.astype(np.float32)), wanted, 1e-6)


def test_the_most_probable_class_is_the_prediction_unless_said():
    """Without ``predicted`` the baseline's decision is the most probable class; with it, it is what was predicted."""
    rows = generic(60)
    assert_same_aggregates(aggregates_of(rows), aggregates_of(rows, predicted="predicted"))
    other = (rows.predicted + 1) % 3
    changed = aggregates_of(rows, predicted=other, score=None)
    assert_same_sums(without_origin(changed), naive_sums(replace(rows, predicted=other)))


def test_soft_labels_with_other_predictions_keep_the_predictions_for_the_baseline():
    """The soft-label signal comes from the probabilities, the baseline's loss and happiness from the predictions."""
    rows = generic(60, soft=True)
    other = replace(rows, predicted=(rows.predicted + 1) % 3)
    assert_same_sums(without_origin(aggregates_of(other, predicted="predicted")), naive_sums(other))


def test_a_group_that_only_other_parts_have_is_empty_here():
    """``groups=`` announces groups that these rows lack; solving then names the empty one."""
    rows = generic(30)
    computed = aggregates_of(rows, groups=[0, 1, 2, 3])
    assert computed.rows.tolist() == [10, 10, 10, 0]
    with pytest.raises(GroupError, match="group 3 is empty"):
        solve(computed, gap=0.0)
    with pytest.raises(GroupError, match=r"group 2 .*10 rows, first row 2.*known are 0, 1"):
        aggregates_of(rows, groups=[0, 1])


def test_groups_named_by_an_array_can_be_saved():
    """``groups=`` may be a NumPy array: the policy still holds plain values that its file can."""
    policy = solve(aggregates_of(generic(60, J=1), groups=np.arange(3)), gap=np.inf)
    assert policy.groups == (0, 1, 2)
    assert type(policy).from_json(policy.to_json()).groups == (0, 1, 2)


def test_happiness_too_large_to_sum_is_refused_in_words():
    """Overflow is an error of felicific's that names the measure, not a warning of NumPy's or a wrong number."""
    rows = generic(30, J=1)
    for size in (1e308, 1.7e308):
        huge = replace(rows, eta=np.full_like(rows.eta, size))
        with pytest.raises(HappinessError, match=r"eta0.*overflow"):
            aggregates_of(replace(huge, eta=huge.eta * np.where(np.arange(30) % 2, 1, -1)[:, None, None]))


def test_loss_too_large_to_sum_is_refused_in_words():
    """So is an overflow of the loss."""
    rows = replace(generic(30, J=1), cost=np.full((30, 3), 1e308))
    with pytest.raises(DataError, match=r"loss.*overflow"):
        aggregates_of(rows)


@pytest.mark.parametrize("weight", [None, "w"])
def test_sums_of_more_cells_than_an_array_has_room_for(weight):
    """Of thousands of groups cells are sorted; every sum is that of a loop over people."""
    rng, groups, n = np.random.default_rng(1), 2_500, 20_000
    table = {"score": rng.beta(2, 2, n), "w": rng.integers(1, 4, n), "loan": rng.integers(1, 40, n) * 1000.0}
    table |= {"g": np.arange(n) % groups, "y": rng.integers(0, 2, n)}
    asked = {"happiness": ["decision * loan", "decision"], "score": "score", "y": "y"}
    sums = aggregate(table, sensitive_features="g", sample_weight=weight, **asked)
    yes = table["score"] > 0.5
    cell = table["g"] * 4098 + np.ceil(4096 * table["score"]).astype(int) + yes
    held, place = np.unique(cell, return_inverse=True)
    w = table["w"] if weight else np.ones(n)

    def total(numbers):
        return np.bincount(place, w * numbers)

    found, loan = sums.sums.arrays, table["loan"] - sums.origin[0]
    np.testing.assert_array_equal(sums.sums.place, held)
    for name, numbers in {"mass": 1, "baseline_loss": yes != table["y"]}.items():
        np.testing.assert_allclose(found[name], total(numbers))
    np.testing.assert_allclose(found["loss"], [total(table["y"] == 1), total(table["y"] == 0)])
    np.testing.assert_allclose(found["value"][1, 0], total(loan))
    np.testing.assert_allclose(found["square"][1, 0], total(loan**2))
    np.testing.assert_allclose(found["loses"][0], [total(yes)] * 2)
    np.testing.assert_allclose(found["gains"][1], [total(~yes)] * 2)
