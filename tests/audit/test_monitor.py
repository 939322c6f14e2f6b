"""A monitor: what is counted, when there is an alarm, what is refused, and what a file keeps."""

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import textwrap
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from helpers import solved
from hypothesis import given
from hypothesis import strategies as st
from naive import LAZY
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from strategies import examples

from felicific import FairClassifier, FelicificError, Happiness, audit, load, monitor, plots
from felicific._audit.monitored import Monitor
from felicific._statistics.stream import Stream
from felicific.exceptions import (
    ConstraintError,
    DataError,
    GroupError,
    HappinessError,
    MonitorWarning,
    PolicyFileError,
)

RATE = {"happiness": "decision", "sensitive_features": "sex", "gap": 0.05}


def decided(n, gap=0.0, seed=0, *, base=0.3, share=0.5, groups=("f", "m")):
    """So many people, the second group approved more often by the gap."""
    rng = np.random.default_rng(seed)
    sex = np.where(rng.random(n) < share, *groups[::-1])
    chance = base + gap * (sex == groups[1])
    repaid = (rng.random(n) < 0.6).astype(int)
    return pd.DataFrame(
        {
            "sex": sex,
            "approved": (rng.random(n) < chance).astype(int),
            "loan": rng.integers(1, 90, n) * 100.0,
            "repaid": repaid,
            "id": np.arange(n) + n * seed,
        }
    )


def same(one, two):
    """Whether two monitors are the same in everything that a file keeps."""
    return one.to_json() == two.to_json()


# ---------------------------------------------------------------------------------------------------------
# What is counted


def test_a_small_gap_raises_no_alarm_and_a_large_one_does():
    """The alarm names the measure, the groups, when it was raised and since when; it stays."""
    quiet = monitor("approved", decided(20_000, 0.02), **RATE)
    assert quiet.alarm is None
    assert quiet.evidence < quiet.needed == 20.0
    later = quiet.add("approved", decided(10_000, 0.2, 1))
    alarm = later.alarm
    assert (alarm.measure, alarm.above, alarm.below, alarm.shown) == ("decision", "m", "f", True)
    assert 20_000 < alarm.rows < 23_000
    assert 18_000 <= alarm.since <= 20_000
    assert 0.05 <= alarm.at_least < 0.2
    assert alarm.evidence >= 20.0
    healed = later.add("approved", decided(60_000, 0.0, 2))
    assert healed.alarm == alarm
    assert quiet.alarm is None  # which did not change


def test_gaps_agree_with_an_audit_of_rows_that_do_not_drift():
    """The difference between groups is about that of an audit, and the truth lies between the limits."""
    rows = decided(40_000, 0.08, 3)
    found = monitor("approved", rows, **RATE).gaps["decision"]
    plain = audit("approved", rows, happiness="decision", sensitive_features="sex").gap
    assert found.estimate == pytest.approx(plain, abs=0.003)
    assert found.low < 0.08 < found.high
    assert found.method == "betting"


@given(st.lists(st.integers(1, 1_999), max_size=4, unique=True))
@examples
def test_it_does_not_matter_how_many_are_added_at_a_time(cuts):
    """Sums, alarm and open block are the same; only what rows were given together is remembered apart."""
    rows = decided(2_000, 0.3, 5)
    edges = [0, *sorted(cuts), 2_000]
    asked = RATE | {"decisions": [0, 1], "groups": ["f", "m"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MonitorWarning)
        found = monitor("approved", rows[: edges[1]], **asked)
        for first, last in pairwise(edges[1:]):
            found = found.add("approved", rows[first:last])
    whole = monitor("approved", rows, **asked)
    parts = [json.loads(one.to_json()) for one in (found, whole)]
    for part in parts:
        del part["digests"], part["sha256"]
    assert parts[0] == parts[1]


@pytest.mark.parametrize("place", LAZY)
def test_a_table_that_is_not_in_memory_is_read_in_its_order(place, tmp_path):
    """Sums, alarm and rows are those of the same table in memory."""
    rows = decided(5_000, 0.25, 1)
    here = monitor("approved", rows, **RATE)
    columns = {name: rows[name].to_numpy() for name in rows.columns}
    there = monitor("approved", LAZY[place](columns, tmp_path), **RATE)
    assert there.alarm == here.alarm
    assert there.rows == here.rows
    assert there.gaps == here.gaps
    with pytest.raises(DataError, match="were counted already"):
        there.add("approved", LAZY[place](columns, tmp_path))


def test_a_table_without_an_order_is_refused():
    """DuckDB may be told not to keep it."""
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        rows = decided(500)
        table = connection.from_df(rows)
        assert monitor("approved", table, **RATE).rows == 500
        connection.execute("SET preserve_insertion_order = false")
        with pytest.raises(DataError, match=r"DuckDB has no order.*preserve_insertion_order = true"):
            monitor("approved", table, **RATE)


def test_what_is_expected_of_a_policy_is_monitored_without_its_lottery():
    """A policy is monitored by its probabilities, with its own groups.

    A classifier by its own happiness, groups and gap.
    """
    rows = decided(4_000, 0.0, 2).assign(score=lambda t: np.random.default_rng(0).random(len(t)))
    policy = solved(
        rows,
        score="score",
        y="repaid",
        sensitive_features="sex",
        happiness="decision",
        gap=0.0,
        random_state=0,
    )
    found = monitor(policy, rows, score="score", happiness="decision", sensitive_features="sex", gap=0.05)
    probabilities = policy.probabilities(rows["score"], rows["sex"])[:, 1]
    means = [probabilities[rows["sex"] == sex].mean() for sex in ("f", "m")]
    assert found.gaps["decision"].estimate == pytest.approx(abs(means[0] - means[1]), abs=0.01)
    assert found.groups == policy.groups
    assert found.add(policy, rows[:500]).rows == 4_500  # the columns were named
    model = FrozenEstimator(LogisticRegression().fit(rows[["score", "loan"]], rows["repaid"]))
    fair = FairClassifier(
        model, happiness="statistical_parity", gap=0.1, sensitive_features="sex", random_state=0
    ).fit(rows, rows["repaid"])
    seen = monitor(fair, rows, sensitive_features="sex")
    assert seen.allowed == {"selection rate": 0.1}
    assert seen.add(fair, rows[:100]).rows == 4_100


def test_the_measures_of_a_criterion_are_monitored():
    """Of two classes the best one; of three all."""
    rows = decided(1_000, 0.1)
    two = monitor("approved", rows, "repaid", **RATE | {"happiness": "statistical_parity"})
    assert list(two.gaps) == ["selection rate"]
    with pytest.warns(MonitorWarning, match="outcome"):
        odds = monitor("approved", rows, "repaid", **RATE | {"happiness": "equalized_odds"})
    assert list(odds.gaps) == [
        "true positive rate",
        "false positive rate",
    ]
    three = rows.assign(approved=np.random.default_rng(0).integers(0, 3, 1_000))
    assert len(monitor("approved", three, **RATE | {"happiness": "statistical_parity"}).gaps) == 3
    other = monitor("approved", rows, **RATE | {"happiness": "statistical_parity", "decisions": [1, 0]})
    assert list(other.gaps) == ["selection rate"]


def test_people_of_groups_that_are_not_listed_are_not_compared():
    """No gap is between them and others; they may come later too."""
    rows = decided(2_000, 0.0, 1)
    rows.loc[::5, "sex"] = "x"
    rows.loc[::5, "approved"] = 1
    found = monitor("approved", rows, **RATE, groups=["f", "m"])
    assert found.alarm is None
    assert found.rows == 2_000
    assert found.stream.groups == 2
    assert found.add("approved", decided(300, seed=9).assign(sex="y")).rows == 2_300
    with pytest.raises(GroupError, match="Nobody is of 'F', 'M'"):
        monitor("approved", rows, **RATE, groups=["F", "M"])


def test_decisions_may_follow_on_what_a_policy_was_expected_to_decide():
    """What the policy reads is named once; decisions that were taken do not need it."""
    rows = decided(1_000, seed=2).assign(score=lambda t: np.random.default_rng(0).random(len(t)))
    asked = {"score": "score", "happiness": "decision", "sensitive_features": "sex"}
    policy = solved(rows, y="repaid", gap=0.0, random_state=0, **asked)
    found = monitor(policy, rows, gap=0.05, **asked)
    assert found.add("approved", decided(300, seed=3)).rows == 1_300


def test_arrays_without_a_table_do():
    """Decisions and groups as arrays; later ones have to be given again."""
    rows = decided(3_000, 0.25, 3)
    asked = {"happiness": "decision", "gap": 0.05}
    found = monitor(rows["approved"].to_numpy(), sensitive_features=rows["sex"].to_numpy(), **asked)
    assert found.alarm == monitor("approved", rows, **RATE).alarm
    more = found.add([1, 0], sensitive_features=["f", "m"])
    assert more.rows == 3_002
    with pytest.raises(GroupError, match="Nobody said which group"):
        found.add([1, 0])


def test_several_measures_have_gaps_of_their_own():
    """What is named in gap= is monitored, each in its unit; the alarm says which."""
    rows = decided(6_000, 0.3, 4)
    parts = {"yes": "decision == 1", "funding": Happiness("decision * loan / 9000", bounds=(0, 1))}
    both = monitor(
        "approved", rows, happiness=parts, sensitive_features="sex", gap={"yes": 0.9, "funding": 0.05}
    )
    assert both.allowed == {"yes": 0.9, "funding": 0.05}
    assert both.alarm.measure == "funding"
    one = monitor("approved", rows, happiness=parts, sensitive_features="sex", gap={"funding": 0.05})
    assert list(one.gaps) == ["funding"]
    assert one.evidence > both.evidence  # it is not shared with another measure


@pytest.mark.parametrize("bounds", [(0, 9_000), None])
@pytest.mark.filterwarnings("ignore::felicific.exceptions.MonitorWarning")
def test_everything_is_in_the_unit_of_the_happiness(bounds):
    """In thousands all gaps are a thousandth, and the evidence is the same."""
    rows, found = decided(6_000, 0.3, 4), []
    for unit in (1.0, 1e-3):
        known = None if bounds is None else tuple(unit * end for end in bounds)
        money = Happiness(f"decision * loan * {unit}", name="money", bounds=known)
        found.append(monitor("approved", rows, happiness=money, sensitive_features="sex", gap=500 * unit))
    one, two = found
    for name in ("estimate", "low", "high"):
        number = getattr(one.gaps["money"], name)
        assert 100 < number < 4_000
        assert getattr(two.gaps["money"], name) == pytest.approx(number / 1e3, rel=1e-6)
    assert two.alarm.at_least == pytest.approx(one.alarm.at_least / 1e3, rel=1e-6)
    assert one.alarm.at_least >= 500
    assert two.evidence == pytest.approx(one.evidence, rel=1e-6)


def test_evidence_that_no_pair_has_alone_names_none_as_shown():
    """Where only all comparisons together are enough, it is said so."""
    rows = decided(4_000, 0.0, 0)
    found = monitor("approved", rows, **RATE)
    weak = found._alarm(found.stream)
    assert not weak.shown
    words = "\n".join(Monitor(**vars(found) | {"alarm": weak}).sentences())
    assert "by all comparisons together" in words
    assert "large samples" not in words
    assert "that pair alone is not enough" in words


def test_evidence_that_is_partly_of_large_samples_is_said_to_be():
    """Where all comparisons together raise the alarm, one measure without bounds is enough."""
    parts = {"yes": "decision == 1", "funding": "decision * loan"}
    with pytest.warns(MonitorWarning, match="large samples"):
        found = monitor(
            "approved",
            decided(4_000),
            happiness=parts,
            sensitive_features="sex",
            gap={"yes": 0.0, "funding": 9_000.0},
        )
    weak = found._alarm(found.stream)
    assert (weak.measure, weak.shown) == ("yes", False)
    first = Monitor(**vars(found) | {"alarm": weak}).sentences()[0]
    assert first.endswith("more than allowed (in large samples), by all comparisons together.")


# ---------------------------------------------------------------------------------------------------------
# Sums of monitors


def test_monitors_of_different_people_add():
    """Two servers together know more than each; an alarm of one stays."""
    one, two = (monitor("approved", decided(3_000, 0.11, seed), **RATE) for seed in (1, 2))
    both = one + two
    assert both.rows == 6_000
    assert both.gaps["decision"].high < min(part.gaps["decision"].high for part in (one, two))
    loud = monitor("approved", decided(3_000, 0.4, 3), **RATE)
    assert (one + loud).alarm == loud.alarm
    later = monitor("approved", decided(3_000, 0.0, 5), **RATE).add("approved", decided(3_000, 0.4, 4))
    assert later.alarm.rows > loud.alarm.rows
    assert (later + loud).alarm == (loud + later).alarm == loud.alarm  # the earlier one
    assert same(Monitor.from_json((one + two).to_json()), one + two)


def test_the_sum_of_monitors_may_raise_an_alarm_that_neither_raised():
    """What is too little on either server is enough on both."""
    parts = [monitor("approved", decided(2_000, 0.125, seed), **RATE) for seed in range(8)]
    quiet = [part for part in parts if part.alarm is None]
    total = quiet[0]
    for part in quiet[1:]:
        total = total + part
    assert len(quiet) >= 3
    assert total.alarm is not None


OTHERS = {
    "groups": lambda: monitor("approved", decided(300, groups=("f", "x")), **RATE),
    "allowed gaps": lambda: monitor("approved", decided(300), **RATE | {"gap": 0.1}),
    "measures": lambda: monitor("approved", decided(300), **RATE | {"happiness": {"yes": "decision"}}),
    "happiness": lambda: monitor(
        "approved", decided(300), **RATE | {"happiness": {"decision": "1 - decision"}}
    ),
    "confidences": lambda: monitor("approved", decided(300), **RATE, confidence=0.9),
    "decisions": lambda: monitor(
        "approved", decided(300), **RATE | {"happiness": "decision == 1"}, decisions=[0, 1, 2]
    ),
}


@pytest.mark.parametrize("what", OTHERS)
def test_monitors_that_do_not_match_refuse_to_add(what):
    """It is said what differs."""
    mine = monitor("approved", decided(300, seed=1), **RATE)
    match = "measures|decisions" if what == "decisions" else what
    with pytest.raises(DataError, match=match):
        mine + OTHERS[what]()


def test_the_same_rows_do_not_add():
    """Nobody is counted twice, neither by adding rows nor by adding monitors."""
    one = monitor("approved", decided(300, seed=1), **RATE)
    with pytest.raises(DataError, match="same rows"):
        one + one
    with pytest.raises(DataError, match="These 300 rows were counted already"):
        one.add("approved", decided(300, seed=1))
    again = one.add("approved", decided(300, seed=2))
    with pytest.raises(DataError, match="counted already"):
        again.add("approved", decided(300, seed=1))
    with pytest.raises(TypeError):
        one + 3


def test_the_same_rows_are_known_again_whatever_holds_them():
    """Few of them, from another library, with another column, or with later ones behind them."""
    rows = decided(60, seed=1)
    one = monitor("approved", rows, **RATE)
    lazy = LAZY["polars lazy"]({name: rows[name].to_numpy() for name in rows.columns}, None)
    for again in (rows, lazy, rows.assign(more=1), rows[["approved", "sex"]]):
        with pytest.raises(DataError, match="These 60 rows were counted already"):
            one.add("approved", again)
    growing = pd.concat([rows, decided(50, seed=2)])
    with pytest.raises(DataError, match=r"The first 60 rows were counted already.*those who came since"):
        one.add("approved", growing)
    assert one.add("approved", decided(50, seed=2)).add("approved", growing[5:]).rows == 215  # not known


def test_rows_that_look_alike_and_are_few_may_come_again():
    """One approved woman after another is another person; so are batches of arrays that hold nothing else."""
    found = monitor([1, 0], sensitive_features=["f", "m"], happiness="decision", gap=0.05)
    for _ in range(3):
        found = found.add([1], sensitive_features=["f"])
    assert found.rows == 5
    same_rows = {"sensitive_features": ["f"] * 150 + ["m"] * 150}
    for _ in range(2):
        found = found.add([1] * 300, **same_rows)
    assert found.rows == 605
    table = pd.DataFrame({"sex": same_rows["sensitive_features"], "approved": 1})
    found = monitor("approved", table, **RATE, decisions=[0, 1])
    assert found.add("approved", table).rows == 600


def test_monitors_without_bounds_do_not_add_once_they_have_a_scale():
    """Each has found its own; before that they add."""
    asked = RATE | {"happiness": {"funding": "decision * loan"}, "gap": 100.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MonitorWarning)
        small = [monitor("approved", decided(200, seed=seed), **asked) for seed in (1, 2)]
        large = [monitor("approved", decided(3_000, seed=seed), **asked) for seed in (3, 4)]
    assert (small[0] + small[1]).rows == 400
    with pytest.raises(DataError, match=r"scale of its own.*State bounds="):
        large[0] + large[1]


# ---------------------------------------------------------------------------------------------------------
# Warnings and words


def test_without_bounds_it_is_said_that_samples_have_to_be_large():
    """Once as a warning, always in the words; while too little was seen, of whom."""
    asked = RATE | {"happiness": {"funding": Happiness("decision * loan", unit="$")}, "gap": 100.0}
    with pytest.warns(
        MonitorWarning, match=r"large samples alone.*There can be no alarm for 'funding' yet.*'f'"
    ):
        found = monitor("approved", decided(150), **asked)
    assert "in large samples" in str(found)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = found.add("approved", decided(4_000, seed=1))
    assert not any("no alarm" in note for note in found.notes)
    assert "State its bounds" in str(found)
    assert "$" in str(found)


def test_a_happiness_that_looks_at_labels_warns_of_outcomes_that_come_early():
    """Nothing in the rows can tell, so it is said."""
    with pytest.warns(MonitorWarning, match="not each when its own does"):
        found = monitor("approved", decided(500), "repaid", **RATE | {"happiness": "equal_opportunity"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert found.add("approved", decided(500, seed=1)).rows == 1_000


def test_a_group_of_whom_hardly_anybody_comes_is_named():
    """Fewer than 5 among 1,000."""
    with pytest.warns(MonitorWarning, match=r"Of group 'm' there are \d+ among 2,000 people"):
        monitor("approved", decided(2_000, share=0.003), **RATE, groups=["f", "m"])


def test_words_say_what_there_is():
    """An alarm first, then the evidence, the gaps with their limits and what they mean."""
    loud = str(monitor("approved", decided(5_050, 0.3), **RATE))
    first, *rest = loud.splitlines()
    assert first.startswith("Alarm, raised when ")
    assert "group 'm' above group 'f'" in first
    assert any(line.startswith("The last 50 of them wait") for line in rest)
    quiet = monitor("approved", decided(2_000), **RATE)
    assert str(quiet).startswith("No alarm: 2,000 people of 2 groups came.")
    assert "with a probability of at most 5 %" in str(quiet)
    assert repr(quiet) == str(quiet)
    assert "<div" in quiet._repr_html_()
    told = json.loads(json.dumps(quiet.to_dict()))
    assert told["alarm"] is None
    assert told["measures"][0]["allowed"] == 0.05


def test_hostile_names_stay_words():
    """Groups and measures with markup or line ends are shown and drawn as text."""
    rows = decided(2_000, 0.3, groups=("<script>alert(1)</script>", 'm"\n'))
    found = monitor("approved", rows, **RATE | {"happiness": {"<b>\n": "decision"}})
    assert "<script>" not in found._repr_html_()
    assert "<script>" not in plots.svg(found.plot())


def test_the_picture_shows_the_gap_its_limits_what_is_allowed_and_the_alarm():
    """Of one measure, or of all; one that is not monitored is refused."""
    found = monitor("approved", decided(30_000, 0.12), **RATE)
    text = plots.svg(found.plot())
    assert all(word in text for word in ("alarm", "allowed", "on average at most", "at some time more than"))
    assert plots.svg(monitor("approved", decided(50), **RATE).plot())  # nothing to draw yet
    with pytest.raises(DataError, match="'other'"):
        found.plot(measure="other")


def test_the_path_is_that_of_earlier_monitors():
    """What is drawn of an earlier time is what was shown then, from the starts that are kept."""
    first = monitor("approved", decided(4_000, 0.1), **RATE)
    later = first.add("approved", decided(1_500, 0.1, 1))
    then = dict(later.along())[4_000]["decision"]
    assert then.estimate == pytest.approx(first.gaps["decision"].estimate)
    assert then.high == pytest.approx(first.gaps["decision"].high)


# ---------------------------------------------------------------------------------------------------------
# Files


def test_a_file_keeps_everything(tmp_path):
    """Read back it is the same, and goes on to the same end; it holds no keys of people."""
    rows = decided(2_345, 0.1, 1)
    found = monitor("approved", rows, **RATE)
    found.save(tmp_path / "monitor.json")
    read = load(tmp_path / "monitor.json")
    assert same(read, found)
    assert same(read.add("approved", decided(800, 0.3, 2)), found.add("approved", decided(800, 0.3, 2)))
    assert len((tmp_path / "monitor.json").read_text()) < 30_000
    assert "loan" not in (tmp_path / "monitor.json").read_text()


def test_files_of_every_kind_of_monitor_are_read_again(tmp_path):
    """Without bounds, before and after a scale is found; criteria; several groups by several columns; an alarm."""
    dollars = RATE | {"happiness": {"funding": Happiness("decision * loan", unit="$")}, "gap": 100.0}
    many = decided(3_000, 0.3).assign(old=lambda t: t["loan"] > 4_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MonitorWarning)
        kinds = [
            monitor("approved", decided(150), **dollars),
            monitor("approved", decided(3_000), **dollars),
            monitor("approved", decided(900), "repaid", **RATE | {"happiness": "equalized_odds"}),
            monitor("approved", many, **RATE | {"sensitive_features": ["sex", "old"]}),
            monitor("approved", decided(3_000, 0.6), **RATE),
        ]
        assert kinds[-1].alarm is not None
        for found in kinds:
            assert same(Monitor.from_json(found.to_json()), found)
            assert str(Monitor.from_json(found.to_json())) == str(found)


def test_python_functions_are_given_again():
    """A file cannot hold them; another function of another range is refused."""

    def yes(decision):
        return float(decision)

    asked = RATE | {"happiness": Happiness(yes, bounds=(0, 1))}
    text = monitor("approved", decided(300), **asked).to_json()
    with pytest.raises(PolicyFileError, match="Python function"):
        Monitor.from_json(text)
    assert (
        Monitor.from_json(text, Happiness(yes, bounds=(0, 1))).add("approved", decided(300, seed=1)).rows
        == 600
    )
    with pytest.raises(PolicyFileError, match="not the one that is monitored"):
        Monitor.from_json(text, Happiness(yes, bounds=(0, 2)))
    with pytest.raises(PolicyFileError, match="not the one that is monitored"):
        Monitor.from_json(monitor("approved", decided(300), **RATE).to_json(), {"decision": "1 - decision"})


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda text: text[: len(text) // 2], "not whole JSON"),
        (lambda text: text.replace('"people": 300', '"people": 301'), "checksum"),
        (lambda text: '{"format": "felicific policy"}', "format"),
        (lambda text: "\x00", "not whole JSON"),
    ],
)
def test_what_is_no_file_of_a_monitor_is_refused(change, match):
    """Cut, altered, another document or no text at all."""
    text = monitor("approved", decided(300), **RATE).to_json()
    with pytest.raises(PolicyFileError, match=f"no file of a monitor.*{match}"):
        Monitor.from_json(change(text))


@given(st.data())
@examples
def test_a_file_with_anything_in_a_place_of_it_is_refused_or_read(data):
    """Whatever stands where: an error of ours, or a monitor; nothing else is raised."""
    from felicific._files import checksum

    content = json.loads(STORED)
    place = content
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if isinstance(place[key], dict | list) and place[key] and data.draw(st.integers(0, 3)):
            place = place[key]
            continue
        place[key] = data.draw(
            st.sampled_from([None, -1, 0, 1, 2.5, 1e308, "x", [], {}, True, [1], [[1, 2]], [[[1]]]])
        )
        break
    rest = {k: v for k, v in content.items() if k not in ("format", "version", "sha256")}
    if content.get("format") == "felicific monitor":
        content["sha256"] = checksum(rest, "felicific monitor")
    with contextlib.suppress(FelicificError):
        assert isinstance(Monitor.from_json(json.dumps(content)), Monitor)


STORED = monitor("approved", decided(2_350, 0.4), **RATE).to_json()


@pytest.mark.slow
def test_a_killed_process_leaves_the_old_file_or_the_new_one(tmp_path):
    """SIGKILL before the file is written, before it takes its name, and after: whole, and counted once."""
    rows = decided(1_000, seed=1)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    monitor("approved", decided(1_000), **RATE).save(tmp_path / "monitor.json")
    script = textwrap.dedent(
        """
        import os, signal, sys
        import pandas as pd
        from felicific import load
        where, folder = sys.argv[1:]
        real = {name: getattr(os, name) for name in ("fsync", "replace")}
        def killed(name, after):
            def call(*arguments):
                if after:
                    real[name](*arguments)
                os.kill(os.getpid(), signal.SIGKILL)
            return call
        name, _, when = where.partition(" ")
        setattr(os, name, killed(name, when == "after"))
        monitor = load(f"{folder}/monitor.json").add("approved", pd.read_csv(f"{folder}/rows.csv"))
        monitor.save(f"{folder}/monitor.json")
        """
    )
    for where, counted in (("fsync before", 1_000), ("replace before", 1_000), ("replace after", 2_000)):
        done = subprocess.run([sys.executable, "-c", script, where, str(tmp_path)], check=False)
        assert done.returncode == -signal.SIGKILL
        assert load(tmp_path / "monitor.json").rows == counted
    with pytest.raises(DataError, match="counted already"):
        load(tmp_path / "monitor.json").add("approved", pd.read_csv(tmp_path / "rows.csv"))
    assert os.path.getsize(tmp_path / "monitor.json") > 0


# ---------------------------------------------------------------------------------------------------------
# Bad input


def changed(**columns):
    return decided(500).assign(**columns)


BAD = {
    "no gap": (
        lambda: monitor("approved", decided(500), **RATE | {"gap": None}),
        ConstraintError,
        "how large a gap",
    ),
    "negative gap": (
        lambda: monitor("approved", decided(500), **RATE | {"gap": -0.1}),
        ConstraintError,
        "-0.1",
    ),
    "not a gap": (
        lambda: monitor("approved", decided(500), **RATE | {"gap": math.nan}),
        ConstraintError,
        "nan",
    ),
    "confidence": (
        lambda: monitor("approved", decided(500), **RATE, confidence=1.0),
        FelicificError,
        "confidence",
    ),
    "weights": (
        lambda: monitor("approved", changed(w=2.0), **RATE, sample_weight="w"),
        DataError,
        "weights are not 1",
    ),
    "one group": (lambda: monitor("approved", changed(sex="f"), **RATE), GroupError, "at least two"),
    "many groups": (
        lambda: monitor("approved", decided(2_000).assign(sex=lambda t: t["id"] % 150), **RATE),
        GroupError,
        "more than 5,000",
    ),
    "no group": (lambda: monitor("approved", changed(sex=None), **RATE), DataError, "missing"),
    "bounds": (
        lambda: monitor(
            "approved", decided(500), **RATE | {"happiness": Happiness("decision * 2", bounds=(0, 1))}
        ),
        HappinessError,
        "outside its bounds",
    ),
    "not a number": (
        lambda: monitor("approved", changed(loan=math.nan), **RATE | {"happiness": "decision * loan"}),
        FelicificError,
        "loan|nan",
    ),
    "mistyped class": (
        lambda: monitor(
            "approved", decided(500), **RATE | {"happiness": lambda decision: float(decision == "yes")}
        ),
        HappinessError,
        "No decision changes",
    ),
    "missing label": (
        lambda: monitor(
            "approved",
            changed(repaid=[None, *[1.0] * 499]),
            "repaid",
            **RATE | {"happiness": "equal_opportunity"},
        ),
        DataError,
        r"label is missing in 1 of 500.* Give rows when the time has passed",
    ),
    "missing label of a lazy table": (
        lambda: monitor(
            "approved",
            LAZY["polars lazy"](
                {name: v.to_numpy() for name, v in changed(repaid=[None, *[1.0] * 499]).items()}, None
            ),
            "repaid",
            **RATE | {"happiness": "equal_opportunity"},
        ),
        DataError,
        r"missing .*in 1 of 500.* Give rows when the time has passed",
    ),
    "groups twice": (
        lambda: monitor("approved", decided(500), **RATE, groups=["f", "m", "f"]),
        ConstraintError,
        "each of them once",
    ),
    "groups as text": (
        lambda: monitor("approved", decided(500), **RATE, groups="fm"),
        ConstraintError,
        "List the groups",
    ),
    "new group": (
        lambda: monitor("approved", decided(500), **RATE).add("approved", changed(sex="x")),
        GroupError,
        r"'x'.*groups=",
    ),
    "new class": (
        lambda: monitor("approved", decided(500), **RATE).add("approved", changed(approved=2)),
        DataError,
        "2",
    ),
    "missing decision": (
        lambda: monitor("approved", decided(500), **RATE).add(
            "approved", changed(approved=[None, *[1.0] * 499])
        ),
        DataError,
        "missing .* in 1 of 500",
    ),
    "label": (
        lambda: monitor("approved", decided(500), **RATE | {"happiness": "equal_opportunity"}),
        HappinessError,
        "label",
    ),
    "drawn denominators": (
        lambda: monitor(
            np.full((4, 2), 0.5),
            sensitive_features=list("fmfm"),
            decisions=[0, 1],
            happiness=Happiness("decision", among="decision == 1", bounds=(0, 1)),
            gap=0.1,
        ),
        HappinessError,
        "decided at random",
    ),
}


@pytest.mark.parametrize("what", BAD)
@pytest.mark.filterwarnings("ignore::felicific.exceptions.MonitorWarning")
def test_bad_input_is_refused_by_name(what):
    """Each with what is wrong and what to do."""
    call, error, match = BAD[what]
    with pytest.raises(error, match=match) as raised:
        call()
    assert raised.value.remedy


def test_what_is_refused_loses_nothing():
    """A monitor to which bad rows were added is as it was."""
    found = monitor("approved", decided(550), **RATE)
    before = found.to_json()
    with pytest.raises(GroupError):
        found.add("approved", changed(sex="x"))
    assert found.to_json() == before
    assert isinstance(found.stream, Stream)
