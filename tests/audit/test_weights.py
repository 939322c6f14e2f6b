"""What weights mean, and rows that are not independent: said at every door where something is said with confidence."""

import json
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from conftest import make_people, refused
from helpers import traced

from felicific import FairClassifier, Happiness, Score, aggregate, audit, compare
from felicific._fit.safety import HELD_OUT, split
from felicific._program.aggregates import Aggregates
from felicific.exceptions import AggregatesError, CertificateError, ClusterWarning, DataError

pytestmark = pytest.mark.filterwarnings("ignore::felicific.exceptions.FittedRowsWarning")

FUNDING = Happiness(lambda decision, x: decision * x["loan"], name="funding", unit="$")
ASKED = {"happiness": FUNDING, "sensitive_features": "group"}
SURVEY = np.where(np.arange(400) % 3 == 0, 900, 100)


@pytest.fixture(scope="module")
def crowd():
    return make_people(400, 3)


@pytest.fixture(scope="module")
def decided():
    return np.random.default_rng(8).integers(0, 2, 400)


def fair_of(crowd, **settings):
    asked = {"happiness": "statistical_parity", "sensitive_features": "group", "random_state": 0, "gap": 0.2}
    return FairClassifier(crowd.frozen("pandas"), **(asked | settings))


def doors(crowd, decided):
    """Everything that says something with confidence, by name, as functions of what is said of the rows."""
    X, y = crowd.table("pandas"), crowd.y
    fair = fair_of(crowd, policy=Score(bins=8)).fit(X, y)
    scores = {
        "score": crowd.frozen("pandas").predict_proba(
            crowd.table("pandas", [n for n in crowd.columns if n != "id"])
        ),
        "y": y,
    }
    line = traced(X, sensitive_features="group", happiness=FUNDING, **scores)
    return {
        "audit": lambda **said: audit(decided, X, y, **ASKED, **said),
        "audit fair": lambda **said: audit(fair, X, y, **said),
        "safe fit": lambda **said: fair_of(crowd, gap=0.9, confidence=0.9).fit(X, y, **said),
        "frontier_band": lambda **said: fair.frontier_on(X, y, **said, confidence=0.95),
        "report": lambda **said: fair.report(X, y, **said),
        "frontier.band": lambda **said: line.band(scores["score"], X, y, **ASKED, **said),
    }


@pytest.mark.parametrize(
    ("weight", "words"),
    [(SURVEY, "sum to 147,"), (SURVEY / 100.5, "no whole numbers")],
    ids=["many", "parts"],
)
def test_weights_that_are_not_plainly_counts_have_to_be_said(crowd, decided, weight, words):
    """At every door that says something with confidence; the error says what to say, and both answers are taken."""
    for name, door in doors(crowd, decided).items():
        with refused(DataError, words, remedy="weight_kind='sampling'"):
            door(sample_weight=weight)
        assert door(sample_weight=weight, weight_kind="sampling") is not None, name
    if words == "no whole numbers":
        with refused(DataError, "said to be frequencies", remedy="weight_kind='sampling'"):
            audit(
                decided,
                crowd.table("pandas"),
                crowd.y,
                **ASKED,
                sample_weight=weight,
                weight_kind="frequency",
            )
    with refused(DataError, "weight_kind is 'survey'"):
        audit(decided, crowd.table("pandas"), crowd.y, **ASKED, sample_weight=weight, weight_kind="survey")


def test_counts_need_not_be_said(crowd, decided):
    """Whole weights whose sum is at most ten times the rows are people; that is all that saying so changes."""
    counts = np.full(400, 10)
    asked = {"X": crowd.table("pandas"), "y": crowd.y, **ASKED, "sample_weight": counts}
    assert audit(decided, **asked).to_dict() == audit(decided, **asked, weight_kind="frequency").to_dict()
    counts[0] = 11
    with refused(DataError, "sum to 4,001"):
        audit(decided, **asked)


def test_a_plain_fit_needs_no_kind_and_promises_nothing(crowd):
    """The policy is the same whatever weights are; its certificate says nothing of unclear and of sampling weights."""
    X, y = crowd.table("pandas"), crowd.y
    fits = {
        kind: fair_of(crowd, gap=0.5).fit(X, y, sample_weight=SURVEY * 100, weight_kind=kind)
        for kind in KINDS
    }
    plain = [
        replace(fair.policy_, basis=replace(fair.policy_.basis, evidence=None)) for fair in fits.values()
    ]
    assert len({policy.to_json() for policy in plain}) == 1
    unsaid = fits[None].certificate_
    assert (unsaid.basis, unsaid.smallest) == ("none", 0)
    assert "Nothing can be promised: the weights of 400 rows sum to" in str(unsaid)
    assert "weight_kind='sampling'" in str(unsaid)
    assert "sampling weights do not" in str(fits["sampling"].certificate_)
    assert fits["frequency"].certificate_.basis == "a priori"
    clustered = fair_of(crowd, gap=0.5).fit(X, y, sample_weight=np.full(400, 10), cluster="region")
    assert "come in clusters" in str(clustered.certificate_)


KINDS = (None, "frequency", "sampling")


def test_survey_weights_are_no_people(crowd, decided):
    """The certificate and the audit speak of the people who were seen, not of whom they stand for."""
    many = make_people(2000, 1)
    fair = fair_of(many, gap=0.9, confidence=0.9)
    fair.fit(many.table("pandas"), many.y, sample_weight=np.resize(SURVEY, 2000), weight_kind="sampling")
    assert 0 < fair.certificate_.smallest <= 1000
    assert "tested on 1,199 rows" in str(fair.certificate_) or "tested on 1,200 rows" in str(
        fair.certificate_
    )
    found = audit(
        decided, crowd.table("pandas"), crowd.y, **ASKED, sample_weight=SURVEY, weight_kind="sampling"
    )
    assert all(mean.n < 250 for mean in found["funding"].means.values())
    assert any("adds no evidence" in note for note in found.notes)


def test_repeated_rows_in_clusters_are_the_rows_once(crowd, decided):
    """Means, gap, tests, corrected intervals, the loss and comparisons: five rows of a person count as one."""
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(400), 5))
    X, other = crowd.table("pandas"), np.where(np.arange(400) % 7 == 0, 1 - decided, decided)
    skewed = Happiness(lambda decision, x: decision * x["loan"] ** 9, name="skewed")
    asked = ASKED | {
        "happiness": [FUNDING, skewed],
        "gap": 3.0,
        "loss": lambda decision, y, x: (decision != y) * x["loan"],
    }
    once = [audit(d, X, crowd.y, **asked, cluster="id") for d in (decided, other)]
    person = {"cluster": np.array([f"person {i}" for i in rows])}
    many = [audit(d[rows], X.iloc[rows], crowd.y[rows], **asked, **person) for d in (decided, other)]
    found = [numbers_of(part) for part in (*once, compare(*once))]
    again = [numbers_of(part) for part in (*many, compare(*many))]
    for one, two in zip(found, again, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-9)
    taken = audit(decided[rows], X.iloc[rows], crowd.y[rows], **asked)["funding"].gap
    assert taken.high - taken.low < 0.6 * (once[0]["funding"].gap.high - once[0]["funding"].gap.low)


def numbers_of(part):
    """Limits, p-values and bias; not how many rows there were, nor words."""
    frame = part.to_frame()
    names = [name for name in ("low", "high", "estimate", "bias", "p_value", "p_exceeds") if name in frame]
    return frame[names].to_numpy(dtype=float)


def test_a_column_or_an_array_names_clusters(crowd, decided):
    """By name and by array it is the same audit; a wrong length, a missing cluster and a wrong name are refused."""
    X = crowd.table("pandas").assign(branch=np.arange(400) % 37)
    asked = {"X": X, "y": crowd.y, **ASKED}
    named = audit(decided, **asked, cluster="branch")
    assert named.to_dict() == audit(decided, **asked, cluster=X["branch"].to_numpy()).to_dict()
    assert any("37 clusters" in note for note in named.notes)
    weight = np.where(np.arange(400) < 5, 0, 1)
    with refused(DataError, "399 clusters for 400 rows"):
        audit(decided, **asked, cluster=np.arange(399), sample_weight=weight)
    with refused(DataError, "399 clusters for 400 rows"):
        fair_of(crowd).fit(X, crowd.y, cluster=np.arange(399))
    with refused(DataError, "'filial'"):
        audit(decided, **asked, cluster="filial")
    missing = X["branch"].astype(object).where(X["branch"] != 3)
    with refused(DataError, "cluster is missing", remedy="cluster of its own"):
        audit(decided, **asked, cluster=missing.to_numpy())


def test_safe_fits_hold_out_whole_clusters(crowd):
    """No cluster is on both sides, each side has its share of every group's, and too few are refused."""
    rng = np.random.default_rng(4)
    cluster, codes = rng.integers(0, 60, 2000), rng.integers(0, 3, 2000)
    weight = rng.lognormal(size=2000)
    fitting, held = split(codes, (0, 1, 2), weight, "a1", cluster=cluster, sampling=True)
    np.testing.assert_array_equal(fitting + held, weight)
    assert not set(cluster[fitting > 0]) & set(cluster[held > 0])
    assert 30 <= len(set(cluster[held > 0])) <= 42
    rows = split(codes, (0, 1, 2), weight, "a1", sampling=True)[1]
    np.testing.assert_array_equal(rows[rows > 0], weight[rows > 0])
    assert [int(np.sum((rows > 0) & (codes == z))) for z in range(3)] == [
        int(np.sum(codes == z) * HELD_OUT) for z in range(3)
    ]
    with refused(CertificateError, "clusters", remedy="merge"):
        split(codes, (0, 1, 2), None, "a1", cluster=np.zeros(2000, dtype=np.intp))
    X = crowd.table("pandas").assign(branch=np.arange(400) // 4)
    fair = fair_of(crowd, gap=0.9, confidence=0.9).fit(X, crowd.y, cluster="branch")
    assert fair.certificate_.basis == "held-out test"


def test_clusters_widen_bands_and_certificates(crowd):
    """Five rows a person: with clusters the band is about as wide as of one row each, without half of it."""
    X, y = crowd.table("pandas"), crowd.y
    fair = fair_of(crowd, policy=Score(bins=8), gap=0.5).fit(X, y)
    rows = np.repeat(np.arange(400), 5)
    widths = {
        name: np.mean(band.high - band.low)
        for name, band in (
            ("once", fair.frontier_on(X, y, confidence=0.95)),
            ("rows", fair.frontier_on(X.iloc[rows], y[rows], confidence=0.95)),
            ("clusters", fair.frontier_on(X.iloc[rows], y[rows], cluster=rows, confidence=0.95)),
        )
    }
    assert widths["rows"] < 0.6 * widths["once"] < 0.7 * widths["clusters"]


def test_repeated_keys_are_warned_about(crowd):
    """Where a key tells people apart and some rows have the same one: in a fit, an audit, a band; not with clusters."""
    X, y = crowd.table("pandas"), crowd.y
    twice = X.assign(id=np.arange(400) // 2)
    fair = fair_of(crowd, key="id").fit(X, y)
    for door in (
        fair_of(crowd, key="id").fit,
        partial(fair.frontier_on, confidence=0.95),
        lambda X, y, **more: audit(fair, X, y, **more),
    ):
        with pytest.warns(ClusterWarning, match=r"400 rows have 200 different keys.*cluster="):
            door(twice, y)
        door(X, y)
        door(twice, y, cluster="id")
    once = np.where(np.arange(400) % 2 == 0, 1.0, 0.0)
    fair_of(crowd, key="id").fit(twice, y, sample_weight=once)
    fair.frontier_on(twice, y, sample_weight=once, confidence=0.95)
    audit(fair, twice, y, sample_weight=once)
    fair.frontier_on(twice, y)


def test_aggregates_know_the_kind_of_weights(crowd):
    """It travels with them, in files too; sums do not depend on it, and different kinds refuse to add."""
    people = crowd.table("pandas").assign(w=SURVEY, y=crowd.y, p=np.linspace(0.1, 0.9, 400))
    roles = {
        "score": "p",
        "y": "y",
        "sensitive_features": "group",
        "happiness": FUNDING,
        "sample_weight": "w",
    }
    found = {kind: aggregate(people, **roles, weight_kind=kind) for kind in KINDS}
    for kind, one in found.items():
        back = Aggregates.from_json(one.to_json())
        assert (one.weight_kind, back.weight_kind, back.whole) == (kind, kind, True)
        np.testing.assert_array_equal(one.value, found[None].value)
        assert (one + back).weight_kind == kind
        assert one.joined().weight_kind == kind
        if kind == "frequency":
            assert one.merged(5).weight_kind == kind
            continue
        with refused(AggregatesError, "not counts", remedy="weight_kind='frequency'"):
            one.merged(5)  # one person of weight 900 is no 900 people
    with refused(AggregatesError, "weight_kind: frequency and sampling"):
        found["frequency"] + found["sampling"]
    parts = aggregate(people.assign(w=SURVEY / 7), **roles)
    assert not parts.whole
    assert not (parts + found[None]).whole
    with refused(DataError, "weight_kind is 'x'"):
        aggregate(people, **roles, weight_kind="x")
    content = json.loads(found["sampling"].to_json())
    for forged in ({"weight_kind": "x"}, {"whole": 1}):
        from felicific._files import write_document

        rest = {
            name: part
            for name, part in (content | forged).items()
            if name not in ("format", "version", "sha256")
        }
        with refused(AggregatesError, "weights are of no kind"):
            Aggregates.from_json(write_document(rest, "felicific aggregates"))


def test_aggregates_of_engines_know_whole_weights(crowd):
    """A query tells whole weights from others, as a sum in memory does."""
    import duckdb
    import polars as pl

    for weight in (SURVEY, SURVEY / 7):
        people = crowd.table("pandas").assign(w=weight, y=crowd.y, p=np.linspace(0.1, 0.9, 400))
        roles = {"score": "p", "y": "y", "sensitive_features": "group", "happiness": "decision * loan"}
        for table in (pl.from_pandas(people).lazy(), duckdb.from_df(people)):
            sums = aggregate(table, **roles, sample_weight="w", weight_kind="sampling")
            assert (sums.whole, sums.weight_kind) == (bool((weight % 1 == 0).all()), "sampling")


def test_rates_of_weighted_rows_and_clusters_are_never_certain():
    """Nobody among 60 weighted people in 12 clusters was approved: the limit is that of 12 people with two added."""
    table = pd.DataFrame(
        {"g": [0, 1] * 60, "d": [0, 1] * 60, "w": [1.0, 3.0, 5.0] * 40, "c": np.arange(120) // 5}
    )
    asked = {"happiness": "statistical_parity", "sensitive_features": "g", "decisions": [0, 1]}
    weighted = audit("d", table, **asked, sample_weight="w", weight_kind="sampling")
    clustered = audit("d", table, **asked, cluster="c")
    for found in (weighted, clustered):
        part = found.measures[0].means
        assert 0.05 < part[0].high < 0.5
        assert 0.5 < part[1].low < 0.95
        assert math.isfinite(found.measures[0].gap.low)
        assert "too few" in part[0].note
    assert clustered.measures[0].means[0].high > weighted.measures[0].means[0].high


def test_no_exact_interval_is_offered_where_there_is_none(decided, crowd):
    """Values that look like a rate get a hint, unless weights or clusters leave no exact interval to be had."""
    happiness = {"yes": lambda decision: decision}
    asked = {"happiness": happiness, "sensitive_features": crowd["group"], "decisions": [0, 1]}
    plain = audit(decided, None, crowd.y, **asked)
    clustered = audit(decided, None, crowd.y, **asked, cluster=np.arange(400))
    assert ["rate=True" in " ".join(found.notes) for found in (plain, clustered)] == [True, False]
