"""The baseline, and squares: in sums, against a loop over rows; and as an argument of happiness."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from helpers import drawn_or_not, fair_classifier, solved
from hypothesis import given
from hypothesis import strategies as st
from naive import DASK, LAZY, MEMORY, Part, as_dask, as_pandas, cases
from strategies import examples

from felicific import FairClassifier, Happiness, Policy, aggregate, audit
from felicific._files import write_document
from felicific._program.aggregates import Aggregates
from felicific._program.cell_sums import OPTIONAL, SUMS
from felicific.exceptions import AggregatesError, DataError, HappinessError

#: Functions that ask for the baseline: a Python function, expressions with x and without, a rate, who is counted.
ASKING = {
    "function": Part(
        lambda decision, x, baseline: (decision < baseline) * x["amount"],
        lambda row, d, now: (d < now) * row["amount"],
    ),
    "expression": Part("(decision < baseline) * amount", lambda row, d, now: (d < now) * row["amount"]),
    "rate": Part("decision < baseline", lambda row, d, now: float(d < now)),
    "label": Part("(decision != baseline) * (1 + y)", lambda row, d, now: (d != now) * (1 + row["y"])),
    "equal": Part("baseline == decision", lambda row, d, now: float(d == now)),
}


def squares_without_origin(found):
    """Sums of squares of happiness itself."""
    o = found.origin
    value = found.value + (o * found.among)[:, :, None, :]
    return found.square + 2 * o * value - (o**2 * found.among)[:, :, None, :]


def assert_close(found, wanted, scale):
    assert np.abs(found - wanted).max(initial=0.0) <= 1e-9 * scale


def naive_baseline(case, policy):
    """Weight of those on whom the baseline takes each decision, row by row."""
    found = np.zeros((len(case.groups), len(case.classes), len(case.classes)))
    for z, s, d in np.ndindex(found.shape):
        term = lambda row, d=d: float(case.now(row) == d)  # noqa: E731  # as short as it is
        found[z, s, d] = case.total(case.groups[z], term, s, policy)[0]
    return found


@examples
@given(cases(), st.sampled_from(["label", "soft-label"]))
def test_sums_of_the_baseline_and_squares_are_a_loop_over_rows(case, policy):
    """baseline_mass and square are what a loop over rows adds up, term by term."""
    found = aggregate(as_pandas(case.columns), **case.asked, policy=policy)
    total = found.total
    assert_close(found.baseline_mass, naive_baseline(case, policy), total)
    for z, s, d, j in np.ndindex(*found.square.shape):
        part, o, choice = case.parts[j], found.origin[j], case.classes[d]
        wanted, size = case.total(
            case.groups[z],
            lambda row, part=part, o=o, choice=choice: part.counts(row) * (part.value(row, choice) - o) ** 2,
            s,
            policy,
        )
        assert abs(found.square[z, s, d, j] - wanted) <= 1e-9 * (size + 1e-12 * case.scale(j) ** 2)


@examples
@given(cases(), st.sampled_from([*LAZY, *DASK]))
def test_engines_sum_the_same(case, place):
    """Every engine has the same baseline_mass and squares as memory."""
    import tempfile
    from pathlib import Path

    asked = case.asked | {"policy": "label"}
    known = aggregate(as_pandas(case.columns), **asked)
    with tempfile.TemporaryDirectory() as folder:
        table = as_dask(case.columns) if place in DASK else LAZY[place](case.columns, Path(folder))
        found = aggregate(table, **asked)
        assert_close(found.baseline_mass, known.baseline_mass, known.total)
        for j in range(len(case.parts)):
            one, two = squares_without_origin(found)[..., j], squares_without_origin(known)[..., j]
            assert_close(one, two, known.total * case.scale(j) ** 2)


@examples
@given(cases(), st.integers(0, 5))
def test_sums_of_parts_add(case, seed):
    """Sums of two parts, each with an origin of its own, are the sums of all: the baseline and squares too."""
    n = len(case.columns["y"])
    first = np.random.default_rng(seed).random(n) < 0.5
    columns = case.columns
    asked = case.asked | {"policy": "label", "groups": case.groups}
    whole = aggregate(as_pandas(columns), **asked)
    parts = [
        aggregate(as_pandas({name: column[rows] for name, column in columns.items()}), **asked)
        for rows in (first, ~first)
    ]
    added = parts[0] + parts[1]
    assert_close(added.baseline_mass, whole.baseline_mass, np.abs(whole.baseline_mass).max(initial=1.0))
    for j in range(len(case.parts)):
        one, two = squares_without_origin(added)[..., j], squares_without_origin(whole)[..., j]
        assert_close(one, two, whole.total * case.scale(j) ** 2)


def some(**more):
    rng, n = np.random.default_rng(5), 400
    columns = {
        "p": rng.random(n), "y": rng.integers(0, 2, n), "amount": rng.integers(0, 40, n) / 4 + 100,
        "g": np.array(["a", "b"], dtype=object)[rng.integers(0, 2, n)], "now": rng.integers(0, 2, n),
    }  # fmt: skip
    asked = {
        "score": "p",
        "y": "y",
        "sensitive_features": "g",
        "happiness": "decision * amount",
        "baseline": "now",
    }
    return aggregate(as_pandas(columns), **(asked | more))


def test_files_hold_the_new_sums_and_old_ones_lack_them():
    """All sums come back bit by bit; a file without them is read, and adds to one that has them."""
    found = some()
    back = Aggregates.from_json(found.to_json())
    assert all(np.array_equal(getattr(back, name), getattr(found, name)) for name in SUMS)
    content = json.loads(found.to_json())
    for name in (*OPTIONAL, "format", "version", "sha256"):
        content.pop(name, None)
    old = Aggregates.from_json(write_document(content, "felicific aggregates"))
    assert all(getattr(old, name) is None for name in OPTIONAL)
    plain = some()
    assert (old + plain).baseline_mass is None
    assert np.array_equal((old + plain).mass, 2 * found.mass)
    asked = {"gap": 1.0, "change_cost": 0, "random_state": 0}  # without a baseline nothing is charged
    assert solved(old, **asked).loss == solved(plain, **asked).loss


@pytest.mark.parametrize(
    "forge",
    [
        lambda content: content["baseline_mass"][0].__setitem__(0, 1e6),
        lambda content: content["square"][0][0].__setitem__(0, -1.0),
        lambda content: content.update(more=1),
    ],
)
def test_forged_new_sums_are_refused(forge):
    """Parts that do not add up to the whole, or are missing, are no sums of people."""
    content = json.loads(some().to_json())
    for name in ("format", "version", "sha256"):
        content.pop(name)
    forge(content)
    with pytest.raises(AggregatesError):
        Aggregates.from_json(write_document(content, "felicific aggregates"))


@pytest.mark.parametrize("least", [5, 20, 60])
def test_merged_sums_tell_of_no_few_people(least):
    """After merging, no sum says of fewer than that many people what the baseline decides on them."""
    found = some()
    merged = found.merged(least)
    assert np.allclose(merged.mass.sum(), found.mass.sum())
    if merged.baseline_mass is not None:
        told = merged.baseline_mass[merged.baseline_mass > 0]
        assert told.min() >= least
    joined = some(baseline=None).merged(
        least
    )  # a cell says what the baseline decides, so nothing more is told
    assert joined.baseline_mass is not None
    assert np.allclose(squares_without_origin(merged).sum((0, 1)), squares_without_origin(found).sum((0, 1)))


# ---------------------------------------------------------------------------------------------------------
# The baseline as an argument


def with_baseline(case, kind):
    """The problem with a happiness that asks for the baseline."""
    part = ASKING[kind]

    def value(row, d):
        return part.value(row, d, case.classes[case.now(row)])

    return replace(case, parts=[Part(part.asked, value, name="asking")])


def moved(case):
    part = case.parts[0]
    return any(
        part.value(row, d) != part.value(row, case.classes[0]) for row in case.rows for d in case.classes
    )


@examples
@given(cases(), st.sampled_from(sorted(ASKING)), st.sampled_from([*MEMORY, *LAZY, *DASK]))
def test_happiness_may_ask_for_the_baseline_everywhere(case, kind, place):
    """A happiness that asks for the baseline is what a loop over rows says, everywhere, with baseline= and without."""
    import tempfile
    from pathlib import Path

    case = with_baseline(case, kind)
    if not moved(case):
        return
    with tempfile.TemporaryDirectory() as folder:
        if place in MEMORY:
            table = MEMORY[place](case.columns)
        else:
            table = as_dask(case.columns) if place in DASK else LAZY[place](case.columns, Path(folder))
        found = aggregate(table, **case.asked, policy="label")
    value = found.value + (found.origin * found.among)[:, :, None, :]
    for z, s, d in np.ndindex(*value.shape[:3]):
        wanted, size = case.total(
            case.groups[z], lambda row, d=d: case.parts[0].value(row, case.classes[d]), s, "label"
        )
        assert value[z, s, d, 0] == pytest.approx(wanted, abs=1e-9 * (size + case.scale(0)))


@pytest.mark.filterwarnings("ignore::felicific.exceptions.FittedRowsWarning")
@examples
@given(cases(), st.sampled_from(sorted(ASKING)))
def test_audits_may_ask_for_the_baseline(case, kind):
    """Audits of decisions and of policies, in memory and on an engine, mean by the baseline what baseline= says."""
    import tempfile
    from pathlib import Path

    case = with_baseline(replace(case, baseline=True, weighted=False, predicted=False), kind)
    if not moved(case):
        return
    asked = {
        "happiness": case.happiness,
        "sensitive_features": "z",
        "baseline": "now",
        "decisions": case.classes,
    }
    policy = solved(as_pandas(case.columns), **case.asked, policy="label", gap={}, random_state=0)
    q = policy.q
    ways = {
        "column": ("decided", {}, lambda row: {row["decided"]: 1.0}),
        "policy": (
            policy,
            {"score": case.asked["score"]},
            lambda row: dict(
                zip(case.classes, q[case.groups.index(row["z"]), case.own(row)].tolist(), strict=True)
            ),
        ),
    }
    for decisions, named, decide in ways.values():
        with tempfile.TemporaryDirectory() as folder:
            for table in (as_pandas(case.columns), LAZY["polars lazy"](case.columns, Path(folder))):
                found = audit(decisions, table, "y", **asked, **named)
                for z in case.groups:
                    wanted = case.mean(z, 0, decide)
                    assert found.measures[0].means[z].estimate == pytest.approx(
                        wanted, abs=1e-9 * case.scale(0)
                    )


def people(n=240, seed=0, text=False):
    rng = np.random.default_rng(seed)
    g = rng.integers(0, 2, n)
    s = rng.normal(size=n) + 0.6 * g
    p = 1 / (1 + np.exp(-s))
    classes = np.array(["no", "yes"], dtype=object) if text else np.array([0, 1])
    return as_pandas(
        {
            "s": s, "g": np.array(["a", "b"], dtype=object)[g], "amount": rng.integers(1, 40, n) / 4,
            "y": classes[(rng.random(n) < p).astype(int)], "p0": 1 - p, "p1": p,
            "now": classes[rng.integers(0, 2, n)],
        }
    )  # fmt: skip


@pytest.mark.parametrize("baseline", [None, "now"])
@pytest.mark.parametrize("place", ["pandas", "polars lazy", "duckdb", "dataset"])
def test_text_classes_compare_with_the_baseline(baseline, place, tmp_path):
    """Of classes that are text, a decision equals the baseline's or not; the order of text is refused by name."""
    table = people(text=True)
    columns = {name: table[name].to_numpy() for name in table}
    asked = {"score": {"no": "p0", "yes": "p1"}, "y": "y", "sensitive_features": "g", "baseline": baseline}
    where = table if place == "pandas" else LAZY[place](columns, tmp_path)
    happiness = "(decision == 'no' and baseline == 'yes') * amount"
    found = aggregate(where, **asked, happiness=happiness, policy="label")
    now = columns["now"] if baseline else np.where(columns["p1"] > 0.5, "yes", "no")
    for z, group in enumerate("ab"):
        wanted = columns["amount"][(columns["g"] == group) & (now == "yes")].sum()
        total = (found.value + (found.origin * found.among)[:, :, None, :])[z, :, 0, 0].sum()
        assert total == pytest.approx(wanted, rel=1e-9)
    with pytest.raises(HappinessError, match="Text has no order"):
        aggregate(where, **asked, happiness="(decision < baseline) * amount", policy="label")
    with pytest.raises(HappinessError, match="'yess' is no decision"):
        aggregate(where, **asked, happiness="(baseline == 'yess') * (decision == 'no')", policy="label")


def test_without_a_baseline_none_can_be_asked_for():
    """A happiness that asks for the baseline is refused by name where there is none."""
    table = people()
    for decisions in ("now", table["now"].to_numpy()):
        with pytest.raises(HappinessError, match="there is none"):
            audit(decisions, table, happiness="decision < baseline", sensitive_features="g")
    columns = {name: table[name].to_numpy() for name in table}
    with pytest.raises(HappinessError, match="there is none"):
        audit(
            "now", LAZY["polars lazy"](columns, None), happiness="decision < baseline", sensitive_features="g"
        )


def test_an_audit_compares_with_the_baseline():
    """What was decided is compared with what baseline= says: a note says when every group loses by it."""
    table = people()
    table["all"], table["none"] = 1, 0
    asked = {"happiness": "decision * amount", "sensitive_features": "g", "decisions": [0, 1]}
    found = audit("none", table, **asked, baseline="all")
    assert any(
        "Every group loses" in note and "compared with the present decisions" in note for note in found.notes
    )
    columns = {name: table[name].to_numpy() for name in table}
    assert audit("none", LAZY["polars lazy"](columns, None), **asked, baseline="all").notes == found.notes
    with pytest.raises(DataError, match="baseline decisions for"):
        audit("none", table, **asked, baseline=[0, 1])


def model():
    from sklearn.frozen import FrozenEstimator
    from sklearn.linear_model import LogisticRegression

    table = people(seed=9)
    return FrozenEstimator(LogisticRegression().fit(table[["s"]], table["y"]))


@pytest.mark.filterwarnings("ignore::felicific.exceptions.FittedRowsWarning")
@pytest.mark.parametrize(
    ("policy", "randomize"), drawn_or_not(["score", "label", "soft-label", "individual"])
)
def test_fits_and_recalibrations_may_ask_for_the_baseline(policy, randomize):
    """Fitted means of a happiness that asks for the baseline are those of an audit; so are recalibrated ones."""
    table = people()
    happiness = {"lost": "(decision < baseline) * amount", "got": "decision * amount"}
    fair = fair_classifier(
        model(), happiness=happiness, gap={"got": 2.0}, policy=policy, sensitive_features="g", random_state=0,
        randomize=randomize,
    ).fit(table, table["y"])  # fmt: skip
    now = model().predict(table[["s"]])
    probabilities = fair.predict_proba(table)
    for found, others in ((fair, table), (fair.recalibrate(people(seed=3)), people(seed=3))):
        now, probabilities = model().predict(others[["s"]]), found.predict_proba(others)
        for group in "ab":
            rows = (others["g"] == group).to_numpy()
            lost = (probabilities[:, 0] * (now == 1) * others["amount"].to_numpy())[rows].mean()
            assert found.policy_.means["lost"][group] == pytest.approx(lost, abs=1e-9)
            measured = audit(found, others, others["y"])["lost"].means[group].estimate
            assert measured == pytest.approx(lost, abs=1e-9)


def test_individual_policies_see_no_other_baseline():
    """An individual policy knows the baseline by the model's probabilities, and refuses any other by name."""
    table = people()
    fair = FairClassifier(
        model(),
        happiness="(decision < baseline) * amount",
        gap=1.0,
        policy="individual",
        sensitive_features="g",
    )
    with pytest.raises(HappinessError, match="individual policy sees no other"):
        fair.fit(table, table["y"], baseline="now")
    asked = {"score": {0: "p0", 1: "p1"}, "y": "y", "sensitive_features": "g", "policy": "individual"}
    asked |= {"happiness": "(decision < baseline) * amount", "gap": 1.0}
    columns = {name: table[name].to_numpy() for name in table}
    with pytest.raises(HappinessError, match="individual policy sees no other"):
        solved(table, **asked, predicted="now")
    one = solved(table, **asked, random_state=0)
    back = Policy.from_json(one.to_json())
    probabilities = back.probabilities(columns["p1"], columns["g"], table)
    assert np.array_equal(probabilities, one.probabilities(columns["p1"], columns["g"], table))
    assert math.isclose(one.outcome.means[0, 0], float(
        (probabilities[:, 0] * (columns["p1"] > 0.5) * columns["amount"])[columns["g"] == "a"].mean()
    ), abs_tol=1e-9)  # fmt: skip


def test_a_measure_of_among_may_ask_for_the_baseline():
    """Who is counted may depend on the baseline."""
    table = people()
    who = Happiness("decision * amount", among="baseline == 1", name="of those approved")
    found = aggregate(table, score="p1", y="y", sensitive_features="g", happiness=who, baseline="now")
    for z, group in enumerate("ab"):
        assert found.counted[z, 0] == ((table["g"] == group) & (table["now"] == 1)).sum()
