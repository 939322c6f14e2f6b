"""Audits of tables that are not in memory: the intervals of the same people in memory."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from functions import ENGINES, as_pandas, assert_alike, assert_whole_path, people
from helpers import by, solved

from felicific import Happiness, Score, aggregate, audit, compare, solve
from felicific.exceptions import BatchWarning, DataError, GroupError, HappinessError

HAPPINESS = [
    Happiness(lambda decision, x: decision * x["loan"], name="loan", unit="$"),
    Happiness(lambda decision, x: 1e9 + decision * x["hours"], name="offset"),
    Happiness(lambda decision, x: (decision > 0) * (x["hours"] > 40), among=lambda x, y: y > 0, name="rate"),
    Happiness(lambda decision, y: abs(decision - y), name="distance"),
    Happiness(lambda decision, x: decision * x["member"], bounds=(0, 2), name="bounded"),
]


@pytest.fixture(scope="module")
def table():
    table = people(4000)
    rng = np.random.default_rng(5)
    decided = np.where(rng.random(4000) < 0.7, table["y"], rng.integers(0, 3, 4000))
    branch = rng.integers(0, 150, 4000)
    return table | {"decided": decided, "branch": branch, "person": np.array([f"p{i % 97}" for i in branch])}


@pytest.fixture(params=ENGINES)
def lay(request, tmp_path):
    return lambda table: ENGINES[request.param](table, tmp_path)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Several batches, so that parts are combined."""
    monkeypatch.setattr("felicific._tables.engine.BatchEngine.batch_rows", 700)
    monkeypatch.setattr("felicific._people.people.BATCH", 300)


def both(table, lay, method="large", weight=None, **changes):
    """The audit by names on an engine, and by arrays in memory."""
    options = {"happiness": HAPPINESS, "gap": 1.0, "sensitive_features": "z"} | changes
    weights = None if weight is None else table["w"]
    with nullcontext() if method == "auto" else by(method):
        found = audit("decided", lay(table), "y", sample_weight=weight and "w", **options)
        expected = audit(table["decided"], as_pandas(table), table["y"], sample_weight=weights, **options)
    return found, expected


@pytest.mark.parametrize("weights", [None, "frequency", "sampling"])
def test_large_sample_intervals_are_those_in_memory(table, lay, weights):
    """Means, gaps, tests and the loss agree with the same people in memory, with weights of either kind."""
    found, expected = both(table, lay, weight=weights, weight_kind=weights)
    assert_alike(found, expected)


@pytest.mark.parametrize("cluster", ["branch", "person"])
@pytest.mark.parametrize("weights", [None, "sampling"])
def test_clusters_are_those_in_memory(table, lay, weights, cluster):
    """Clusters of numbers and of text, whose rows lie in several batches and groups, are summed up where they are."""
    found, expected = both(table, lay, "auto", weight=weights, weight_kind=weights, cluster=cluster)
    assert_alike(found, expected)
    assert found.persons.clusters == len(set(table[cluster].tolist()))
    for one, other in zip(found.measures, expected.measures, strict=True):
        assert one.bias == pytest.approx(other.bias, rel=1e-9)


def test_unclear_weights_and_missing_clusters_are_refused_on_engines(table, lay):
    """As in memory: weights that are not plainly counts have to be said, and every row has a cluster."""
    odd = table | {"w": table["w"] + 0.5, "many": np.where(table["w"] > 0, 900, 100)}
    for weight, words in (("w", "no whole numbers"), ("many", "sum to")):
        with pytest.raises(DataError, match=words):
            audit("decided", lay(odd), sensitive_features="z", happiness=HAPPINESS[0], sample_weight=weight)
    with pytest.raises(DataError, match="not in memory"):
        audit("decided", lay(table), sensitive_features="z", happiness=HAPPINESS[0], cluster=table["branch"])
    with pytest.raises(DataError, match="no column 'filial'"):
        audit("decided", lay(table), sensitive_features="z", happiness=HAPPINESS[0], cluster="filial")


def test_rates_are_exact_and_skewness_is_corrected(table, lay):
    """Clopper-Pearson for a declared rate, large samples for what has no bounds, chosen as in memory."""
    skewed = Happiness(lambda decision, x: decision * x["loan"] ** 6, name="skewed")
    rate = Happiness(lambda decision: float(decision == 1), name="approved", rate=True)
    found, expected = both(table, lay, "auto", happiness=[skewed, rate, HAPPINESS[2]])
    assert_alike(found, expected)
    methods = [next(iter(part.means.values())).method for part in found.measures]
    assert ["exact" in method for method in methods] == [False, True, False]  # the last was not declared


@pytest.mark.parametrize("weights", [None, "frequency"])
def test_bets_are_those_in_memory(table, lay, weights):
    """With bounds people are bet on, in the orders that their counts by bins give, in memory and on engines."""
    found, expected = both(table, lay, "auto", happiness=HAPPINESS[4], weight=weights, weight_kind=weights)
    assert_alike(found, expected)
    part = found.measures[0]
    assert {one.method for one in part.means.values()} == {"betting (distribution-free)"}
    assert part.gap.method == "betting on pairs of people (distribution-free)"
    assert (part.gap.low, part.gap.high) == (expected.measures[0].gap.low, expected.measures[0].gap.high)


def test_without_labels(table, lay):
    """Decisions without labels are audited without a loss; a happiness that needs them says so."""
    found = audit("decided", lay(table), sensitive_features="z", happiness=HAPPINESS[0])
    expected = audit(table["decided"], as_pandas(table), sensitive_features="z", happiness=HAPPINESS[0])
    assert found.loss is None
    assert found.gaps == pytest.approx(expected.gaps, rel=1e-9)
    with pytest.raises(HappinessError, match="label y"):
        audit("decided", lay(table), sensitive_features="z", happiness=HAPPINESS[3])


def test_other_functions_run_on_batches(table, lay):
    """A function that wants the library's own rows is audited too, with a notice."""
    odd = Happiness(lambda decision, x: decision * x["loan"].to_numpy(), name="odd")
    with pytest.warns(BatchWarning, match="'odd'"):
        found = audit("decided", lay(table), "y", sensitive_features="z", happiness=odd)
    expected = audit(table["decided"], as_pandas(table), table["y"], sensitive_features="z", happiness=odd)
    assert found.gaps == pytest.approx(expected.gaps, rel=1e-9)


def test_from_scores_to_an_audit(table, lay):
    """Aggregates, policy, a lazy column of decisions and its audit are, on one engine, those in memory."""
    assert_whole_path(lay, table)


PROBA = {k: f"p{k}" for k in range(3)}


@pytest.fixture(scope="module")
def policies(table):
    """One of each kind, with lotteries; the individual one looks at a column that the audit does not."""
    ask = {"score": PROBA, "y": "y", "sensitive_features": "z", "random_state": 0}
    frame = as_pandas({name: column[:600] for name, column in table.items()})
    parity = {"happiness": "statistical_parity"}
    found = {
        kind: solve(aggregate(frame, **{name: ask[name] for name in ("score", "y", "sensitive_features")}, **parity,
                            policy=kind), gap=0.02, random_state=0)
        for kind in ("score", "label", "soft-label")
    }  # fmt: skip
    income = Happiness(lambda decision, x: decision * x["income"] / 1e4, name="income")
    return found | {"individual": solved(frame, policy="individual", **ask, happiness=income, gap=0.05)}


def of_probabilities(found):
    """An audit of an array of probabilities without its note, which a policy's has not."""
    assert found.notes[0].startswith(
        "The decisions are probabilities, so everybody is taken to face a lottery"
    )
    return replace(found, notes=found.notes[1:])


@pytest.mark.parametrize("kind", ["score", "label", "soft-label", "individual"])
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.usefixtures("large_samples")
def test_a_policy_is_audited_by_its_probabilities(table, lay, policies, kind, weight):
    """Lotteries add no noise: every policy's audit on an engine is that of its decision probabilities in memory."""
    policy, frame = policies[kind], as_pandas(table)
    q = policy.probabilities(frame[[*PROBA.values()]], frame["z"], frame)
    assert ((q > 0) & (q < 1)).any()
    ask = {"sensitive_features": "z", "happiness": HAPPINESS[:3], "gap": 1.0}
    found = audit(policy, lay(table), "y", score=PROBA, sample_weight=weight, **ask)
    weights = None if weight is None else table["w"]
    expected = of_probabilities(
        audit(q, frame, table["y"], decisions=[0, 1, 2], sample_weight=weights, **ask)
    )
    # Beside a policy stands what the model itself decides, which probabilities do not tell.
    assert_alike(replace(found, notes=expected.notes), expected)
    assert_alike(found, audit(policy, frame, "y", score=PROBA, sample_weight=weight, **ask))


@pytest.mark.usefixtures("large_samples")
def test_a_policy_of_labels_is_audited_by_predictions(table, lay, policies):
    """A label policy needs no probabilities where the model's own decisions are named."""
    own = np.column_stack([table[name] for name in PROBA.values()]).argmax(axis=1)
    table = table | {"own": own}
    ask = {"sensitive_features": "z", "happiness": HAPPINESS[:1], "gap": 1.0}
    q = policies["label"].probabilities(own, table["z"])
    expected = of_probabilities(audit(q, as_pandas(table), table["y"], decisions=[0, 1, 2], **ask))
    for people_of in (lay, as_pandas):
        found = audit(policies["label"], people_of(table), "y", predicted="own", **ask)
        # Beside a policy stands what the model itself decides, which probabilities do not tell.
        assert_alike(replace(found, notes=expected.notes), expected)


@pytest.mark.usefixtures("large_samples")
def test_the_same_call_in_memory(table, lay):
    """Columns may be named of a table in memory too, so that the same call works everywhere."""
    ask = {"sensitive_features": "z", "happiness": HAPPINESS, "gap": 1.0, "sample_weight": "w"}
    assert_alike(audit("decided", lay(table), "y", **ask), audit("decided", as_pandas(table), "y", **ask))


def test_policies_that_cannot_be_audited(table, lay, policies, refuses):
    """Missing scores, scores without a policy, unknown groups and impossible scores are clear errors."""
    ask = {"sensitive_features": "z", "happiness": HAPPINESS[0]}
    for people_of in (lay, as_pandas):
        with refuses(DataError, "no column 'p0', needed for score"):
            audit(policies["score"], people_of({"y": table["y"], "z": table["z"]}), "y", **ask)
        with refuses(DataError, "a Policy decides by"):
            audit("decided", people_of(table), "y", score=PROBA, **ask)
        with refuses(DataError, "'nope'"):
            audit("nope", people_of(table), "y", **ask)
        group = table["z"].copy()
        group[3000] = "q"
        with refuses(GroupError, "'q'"):
            audit(policies["score"], people_of(table | {"z": group}), "y", score=PROBA, **ask)
        score = table["p1"].copy()
        score[3000] = 7.0
        with refuses(DataError, "probabilities of row 3000"):
            audit(policies["score"], people_of(table | {"p1": score}), "y", score=PROBA, **ask)


def test_bad_input(table, lay, refuses):
    """Missing values, unknown decisions and names, and comparisons are clear errors."""
    ask = {"sensitive_features": "z", "happiness": HAPPINESS[0]}
    loan = table["loan"].copy()
    loan[[5, 3000]] = np.nan
    with refuses(DataError, "'loan'", "2 of 4000 rows", "rows 5, 3000"):
        audit("decided", lay(table | {"loan": loan}), "y", **ask)
    with refuses(DataError, "decision 2", "row", "[0, 1]"):
        audit("decided", lay(table), "y", decisions=[0, 1], **ask)
    with refuses(DataError, "'nope'"):
        audit("nope", lay(table), "y", **ask)
    with refuses(DataError, "ndarray", remedy="or pass a Policy"):
        audit(table["decided"], lay(table), "y", **ask)
    with refuses(HappinessError, "'bounded'", "bounds", "row"):
        narrow = Happiness(HAPPINESS[4].function, bounds=(0, 1), name="bounded")
        audit("decided", lay(table), "y", sensitive_features="z", happiness=narrow)
    found = audit("decided", lay(table), "y", **ask)
    with refuses(DataError, "person by person", remedy="Collect"):
        compare(found, found)
    with refuses(DataError, "person by person", remedy="Collect"):
        compare(audit("decided", table, "y", **ask), found)


def test_a_page_does_not_claim_a_fingerprint(table, lay):
    """The page of an audit by sums says that there is no fingerprint of the rows, instead of one that is all zeros."""
    pytest.importorskip("jinja2")
    page = audit("decided", lay(table), "y", sensitive_features="z", happiness=HAPPINESS[0]).to_html()
    assert "none (the rows are not in memory)" in page


@pytest.mark.parametrize("labels", [("no", "yes"), (0, 1)])
@pytest.mark.parametrize("baseline", [None, "now"])
@pytest.mark.parametrize("policy", [Score(4), "score", "label", "soft-label"])
@pytest.mark.filterwarnings("ignore::felicific.exceptions.FittedRowsWarning")
@pytest.mark.usefixtures("large_samples")
def test_one_of_each_kind_stands_for_all(lay, policy, baseline, labels):
    """Where nobody looks at x, an audit on an engine counts who is alike, and gives the numbers of one in memory."""
    rng, n = np.random.default_rng(17), 2000
    score, names = rng.random(n).round(2), np.array(labels, dtype=object)
    table = {
        "sex": np.array(["f", "m", "x"], dtype=object)[rng.integers(0, 3, n)],
        "score": score,
        "repaid": np.array(names[(rng.random(n) < score).astype(int)].tolist()),
        "now": np.array(names[(rng.random(n) < 0.4).astype(int)].tolist()),
    }
    good = labels[1]
    happiness = [
        Happiness(lambda decision: 1.0 * (decision == good), name="share"),
        Happiness(
            lambda decision, y, group: (y == good) * (3.0 + (group == "m")) * (decision == good), name="paid"
        ),
        Happiness(lambda decision: 2.0 * (decision == good), among=lambda y: y == good, name="counted"),
    ]
    roles = {
        "score": "score",
        "y": "repaid",
        "sensitive_features": "sex",
        "baseline": baseline,
        "happiness": happiness,
    }
    frame = as_pandas(table)
    decider = solve(aggregate(frame, policy=policy, **roles), gap={"share": 0.05})
    asked = {"gap": 0.1} | roles
    assert_alike(audit(decider, lay(table), **asked), audit(decider, frame, **asked))
