"""Verdicts: the first row of the table that holds, in exact words, and flags with numbers."""

import math
from dataclasses import replace

import numpy as np
import pytest

from felicific import Happiness, audit
from felicific._audit.facts import Facts, Shift
from felicific._audit.flags import find_flags
from felicific._audit.quantity import Quantity
from felicific._audit.result import Interval, RequirementAudit
from felicific._audit.verdict import FITTED_ONLY, decide, verdict_of
from felicific._problem.happiness import Measure

DOLLARS = Measure("funding", "$", "funding", False, None)


def interval(estimate, low, high, n=1000.0):
    return Interval(estimate, low, high, n, "made up")


def shift(**changed):
    """A gap that is shown to shrink, by giving to one group and taking from another."""
    return Shift(
        **{
            "measure": DOLLARS,
            "title": "funding",
            "quantity": Quantity("$", 100.0),
            "before": interval(18_600.0, 10_700.0, 26_500.0),
            "after": interval(11_400.0, 3_500.0, 19_300.0),
            "change": interval(-7_200.0, -9_600.0, -5_000.0),
            "means": (interval(-9_400.0, -11_200.0, -7_700.0), interval(2_200.0, 1_700.0, 2_800.0)),
            "was": (267_800.0, 249_200.0),
            "then": (258_400.0, 251_400.0),
            "compared": (0, 1),
        }
        | changed
    )


def facts(*shifts, **changed):
    return Facts(
        **{
            "groups": ("Female", "Male"),
            "sizes": (6_362.0, 13_174.0),
            "compared": (0, 1),
            "shifts": shifts or (shift(),),
            "confidence": 0.95,
            "people": 19_536.0,
            "changed": 168.0,
            "worse": 168.0,
            "cost": interval(0.0032, 0.0014, 0.005),
            "cost_best": interval(0.0032, 0.0009, 0.0055),
            "cost_quantity": Quantity("wrong decisions in 1,000", 1e-4),
        }
        | changed
    )


TAKING = (interval(-9_400.0, -11_200.0, -7_700.0), interval(-2_200.0, -2_800.0, -1_700.0))
GROWING = {"after": interval(25_000.0, 20_000.0, 30_000.0), "change": interval(6_400.0, 4_000.0, 9_000.0)}
UNSHOWN = {"change": interval(-7_200.0, -19_600.0, 5_000.0)}


def floor(**seen):
    """What is made of a floor, with no gap that was to be closed."""
    reached = interval(251_400.0, 240_000.0, 262_000.0)
    row = RequirementAudit("a floor", DOLLARS, "mean", reached, met=True, **seen)
    return facts(shift(**GROWING, closed=False), requirements=(row,))


ROWS = {
    "a constraint is kept": (floor(shown=True), "kept", "shown", "It keeps what was asked."),
    "a constraint is missed": (floor(refuted=True), "missed", "refuted", "It misses what was asked."),
    "a constraint may be kept": (floor(), "unclear", "not shown", "We cannot tell."),
    "a constraint beside a gap": (
        replace(floor(shown=True), shifts=(shift(),)),
        *("unpromised", "no certificate"),
        "It shrinks the gap. Nothing is promised.",
    ),
    "nobody changes": (facts(changed=0.0, in_sample="They were."), "leave", "same", "Nothing changes."),
    "in-sample": (
        facts(in_sample="They were.", held_baseline=True),
        "unclear",
        "in-sample",
        "We cannot tell.",
    ),
    "met": (facts(shift(**GROWING), held_baseline=True), "leave", "met", "Leave it as it is."),
    "grows": (facts(shift(**GROWING)), "leave", "grows", "Leave it as it is."),
    "grows and is kept": (
        facts(shift(**GROWING, asked=40_000.0)),
        "unclear",
        "chance",
        "We cannot tell.",
    ),
    "chance": (facts(shift(**UNSHOWN)), "unclear", "chance", "We cannot tell."),
    "unpaired": (facts(shift(change=None, means=())), "unclear", "unpaired", "We cannot tell."),
    "no gap to close": (facts(shift(closed=False)), "unclear", "no gap", "We cannot tell."),
    "levels all down": (
        facts(shift(means=TAKING)),
        "levels-down",
        "everybody",
        "It shrinks the gap by leveling everybody down.",
    ),
    "levels one down": (
        facts(shift(means=(TAKING[0], interval(0.0, 0.0, 0.0)))),
        "levels-down",
        "nobody gains",
        "It shrinks the gap by leveling down. No group gains.",
    ),
    "gives a little that is not shown": (
        facts(shift(means=(TAKING[0], interval(900.0, -100.0, 1_900.0)))),
        "unpromised",
        "no certificate",
        "It shrinks the gap. Nothing is promised.",
    ),
    "certified": (
        facts(shift(bound=16_000.0), promise="held-out test"),
        "certified",
        "held-out test",
        "It shrinks the gap, and that is certified.",
    ),
    "certified above the model's gap": (
        facts(shift(bound=20_000.0), promise="held-out test"),
        "unpromised",
        "no certificate",
        "It shrinks the gap. Nothing is promised.",
    ),
    "unpromised": (facts(), "unpromised", "no certificate", "It shrinks the gap. Nothing is promised."),
}


@pytest.mark.parametrize("name", ROWS)
def test_the_first_row_that_holds_is_the_verdict(name):
    """Kind, reason and headline are those of the decision table, in its words."""
    known, kind, reason, headline = ROWS[name]
    verdict = verdict_of(known)
    assert (verdict.kind, verdict.reason, verdict.headline) == (kind, reason, headline)
    assert decide(known) == (kind, reason)


def test_levelling_down_is_not_asked_of_what_nobody_wants():
    """A share of refused people that falls in every group makes nobody worse off."""
    refused = replace(DOLLARS, wanted=False)
    assert decide(facts(shift(measure=refused, means=TAKING)))[0] == "unpromised"


def test_all_gaps_that_shrink_have_to_level_down():
    """One measure that gives is enough to say more than that it levels down."""
    assert decide(facts(shift(means=TAKING), shift()))[0] == "unpromised"
    assert decide(facts(shift(means=TAKING), shift(**UNSHOWN)))[0] == "levels-down"


@pytest.mark.parametrize(
    ("known", "text"),
    [
        (
            facts(shift(means=TAKING)),
            "The gap goes from $18,600 to $11,400. Per person: Female −⁠$9,400 and Male −⁠$2,200.",
        ),
        (
            facts(shift(**GROWING)),
            "This policy makes the gap larger: $18,600 under the model, $25,000 under the policy.",
        ),
        (
            facts(shift(**UNSHOWN)),
            "The gap goes from $18,600 to $11,400 on these people. Chance alone could do that: the change is "
            "−⁠$19,600 to +5,000 with 95\xa0% confidence.",
        ),
        (
            facts(shift(before=interval(900.0, 500.0, 1_300.0), asked=1_600.0), held_baseline=True),
            "The model's gap is $900, at most $1,300 with 95\xa0% confidence. You asked for at most $1,600: there is "
            "nothing to repair.",
        ),
        (
            facts(shift(bound=16_000.0), promise="a priori", promised_with=0.9),
            "The gap goes from $18,600 to $11,400, and is at most $16,000 with 90\xa0% confidence.",
        ),
        (
            facts(shift(after=interval(18_620.0, 18_600.0, 18_700.0), change=interval(-1.0, -2.0, -0.5))),
            "The gap stays at about $18,600.",
        ),
        (
            facts(shift(), shift(title="waiting", **UNSHOWN)),
            "The gap in funding goes from $18,600 to $11,400. For waiting we cannot tell.",
        ),
        (
            facts(shift(), shift(title="waiting")),
            "The gap in funding goes from $18,600 to $11,400 and in waiting goes from $18,600 to $11,400.",
        ),
    ],
)
def test_sentences_have_the_numbers(known, text):
    """The second line says the same with numbers, each with its unit."""
    assert verdict_of(known).sentence == text


def test_many_groups_are_counted():
    """Three groups are spelled out, those that change most, and the others counted."""
    means = tuple(interval(-100.0 * z, -150.0 * z - 1, -50.0 * z - 1) for z in range(6))
    names = tuple(f"group {z}" for z in range(6))
    known = facts(shift(means=means), groups=names, sizes=(1000.0,) * 6)
    assert "group 3 −⁠$300, group 4 −⁠$400, group 5 −⁠$500 and 3 more groups." in verdict_of(known).sentence


@pytest.mark.parametrize(
    ("known", "text"),
    [
        (facts(shift(means=TAKING)), "fit again with a floor of 'funding' at its baseline"),
        (
            facts(shift(means=TAKING), sees_group=False),
            "It may not see the group, so it can only level down.",
        ),
        (facts(), "a confidence of 0.95"),
        (
            facts(shift(bound=20_000.0), promise="held-out test"),
            "at most $20,000, is not less than the model's gap",
        ),
        (facts(promised_elsewhere=True), "Another position was certified"),
        (facts(in_sample="They were."), "people it was not fitted to"),
        (facts(shift(**UNSHOWN)), "About 3 times as many people would show it."),
        (facts(shift(change=interval(700.0, -9_000.0, 9_000.0))), ""),
        (facts(shift(change=interval(-1.0, -9_000.0, 9_000.0))), ""),
    ],
)
def test_remedies(known, text):
    """What to do about it; nothing where a gap grew, or fifty times as many people would not do."""
    remedy = verdict_of(known).remedy
    assert text in remedy
    assert bool(remedy) == bool(text)


FLAGS = {
    "in-sample": (facts(in_sample="These are rows."), 3, "These are rows."),
    "levels-down": (facts(shift(**UNSHOWN, means=TAKING)), 3, "Female −⁠$9,400"),
    "gap-grows shown": (facts(shift(**GROWING)), 3, "from $18,600 to $25,000"),
    "gap-grows": (
        facts(shift(after=interval(19_600.0, 1.0, 4e4), change=interval(1_000.0, -900.0, 2_900.0))),
        2,
        "That may be chance.",
    ),
    "asked-missed shown": (
        facts(shift(asked=0.0)),
        3,
        "Asked: at most $0. Found: $11,400, and at least $3,500",
    ),
    "asked-missed": (facts(shift(asked=5_000.0)), 2, "Asked: at most $5,000. Found: $11,400."),
    "order-flips": (
        facts(shift(then=(240_000.0, 251_400.0))),
        2,
        "Female had more funding than Male, and would have less: $240,000 and $251,400.",
    ),
    "tiny-group": (
        facts(shift(without=(5_000.0, 1_000.0)), sizes=(60.0, 13_174.0)),
        2,
        "Female has 60 people: what so few show may be chance, and they alone may make the gap. Without groups under "
        "100: $5,000 under the model, $1,000 under the policy.",
    ),
    "tiny-group shown": (facts(sizes=(21.0, 13_174.0)), 3, "Female has 21 people"),
    "below-majority": (facts(accuracy=0.7, majority=0.8), 3, "80.0\xa0%"),
    "others-grow": (facts(others=("approved",)), 2, "move apart: approved."),
    "others-grow open": (facts(shift(), shift(closed=False, title="waiting", **GROWING)), 2, "waiting"),
    "randomized": (facts(randomized=23.0), 1, "23 of 19,536 people (0.12\xa0%) are decided at random."),
    "randomized shown": (facts(randomized=5_000.0), 2, "(26\xa0%)"),
    "selective-labels": (facts(labels="selected"), 3, "(missing_labels)"),
    "labels-unstated": (facts(labels=None), 1, "of all or of selected people"),
    "sees-group": (facts(), 1, "unlawful"),
    "infers-group": (facts(sees_group=False, infers_group=True), 1, "proxy"),
}


@pytest.mark.parametrize("name", FLAGS)
def test_every_flag_has_its_reason_and_level(name):
    """One flag of a kind, with numbers; the gravest come first."""
    known, level, text = FLAGS[name]
    kind = name.split()[0]
    found = [flag for flag in verdict_of(known).flags if flag.kind == kind]
    assert [flag.level for flag in found] == [level]
    assert text in found[0].sentence
    levels = [flag.level for flag in verdict_of(known).flags]
    assert levels == sorted(levels, reverse=True)


@pytest.mark.parametrize(
    ("known", "kind"),
    [
        (facts(shift(asked=0.0, after=interval(900.0, 0.0, 1_800.0))), "asked-missed"),
        (facts(shift(asked=11_420.0)), "asked-missed"),
        (facts(shift(asked=0.0, after=interval(8.35e-11, 8.35e-11, 8.35e-11))), "asked-missed"),
        (facts(shift(then=(251_000.0, 251_400.0), after=interval(400.0, 0.0, 900.0))), "order-flips"),
        (facts(shift(change=interval(100.0, -900.0, 1_100.0))), "gap-grows"),
        (facts(accuracy=0.8, majority=0.8), "below-majority"),
        (facts(labels="all"), "labels-unstated"),
        (facts(labels=""), "labels-unstated"),
        (facts(shift(means=TAKING)), "levels-down"),
        (facts(sees_group=False), "sees-group"),
    ],
)
def test_flags_are_silent_where_there_is_no_reason(known, kind):
    """Asked 0 is always missed; a hair's breadth, half the gap turned around and 2 % are not worth a flag."""
    assert kind not in [flag.kind for flag in find_flags(known, decide(known)[0])]


def test_groups_that_are_not_compared_make_no_flag():
    """Who is on top, and who is tiny, is asked of the groups that are compared, by their own names."""
    names = {"groups": ("unknown", "Female", "Male"), "sizes": (3.0, 6_000.0, 9_000.0), "compared": (1, 2)}
    found = {
        flag.kind: flag.sentence
        for flag in verdict_of(facts(shift(then=(240_000.0, 251_400.0), compared=(1, 2)), **names)).flags
    }
    assert found["order-flips"].startswith("Female had more funding than Male")
    assert "tiny-group" not in found


def test_numbers_that_look_like_what_was_asked_get_more_digits():
    """A miss is never written as if it were none, nor a gap without a tiny group as nothing."""
    coarse = Quantity("$", 100_000.0)
    known = facts(shift(quantity=coarse, asked=0.0, without=(4_321.0, 1_234.0)), sizes=(20.0, 9_000.0))
    found = {flag.kind: flag.sentence for flag in verdict_of(known).flags}
    assert "Found: $11,400, and at least $3,500" in found["asked-missed"]
    assert "$4,320 under the model, $1,230 under the policy" in found["tiny-group"]


def test_what_holds_of_these_people_alone_is_said_so():
    """Nobody changes here, but others may; a part of the rows was fitted on."""
    assert verdict_of(facts(changed=0.0, kept=True)).sentence == "Everybody is decided on as under the model."
    assert verdict_of(facts(changed=0.0, kept=False)).sentence.startswith("None of these people")
    partly = "About 9% of these rows are rows that the policy was fitted on: x."
    assert verdict_of(facts(in_sample=partly)).sentence.startswith(partly)


def test_a_bound_for_all_policies_is_rounded_up():
    """It was computed, not given; and a larger one asks for a test."""
    known = facts(shift(bound=16_012.345), promise="a priori")
    assert "at most $16,100 with" in verdict_of(known).sentence
    assert "promised" in dict(verdict_of(known).numbers)
    assert "a confidence of 0.95" in verdict_of(facts(shift(bound=20_000.0), promise="a priori")).remedy


def test_gaps_that_nobody_asked_for_are_said_to_be_of_all_groups():
    """Where something else was asked for, the gap along the slider is named, and so is what the best policy keeps."""
    known = facts(shift(asked_otherwise=True), best_is_free=False)
    assert verdict_of(known).sentence.startswith("The gap between all groups goes from")
    assert "that meets the rest" in dict(verdict_of(known).numbers)["cost"]


def test_who_is_better_off_may_not_be_known():
    """Of a ratio nobody has a part."""
    assert "is not known" in dict(verdict_of(facts(better=math.nan, worse=math.nan)).numbers)["people"]


def test_several_audited_gaps_do_not_add_up_to_more():
    """With many measures that are exactly what is allowed, "more" stays as rare as with one."""
    rng, wrong, runs = np.random.default_rng(0), 0, 150
    happiness = {f"m{j}": f"decision * v{j}" for j in range(6)}
    for _ in range(runs):
        n = 400
        group = np.repeat(["a", "b"], n // 2)
        people = {"g": group, "d": np.ones(n, dtype=int)}
        people |= {f"v{j}": rng.normal(size=n) + (group == "a") for j in range(6)}
        asked = dict.fromkeys(happiness, 1.0)
        found = audit("d", people, happiness=happiness, sensitive_features="g", gap=asked, decisions=[0, 1])
        wrong += found.verdict.kind == "more"
    assert wrong <= 0.05 * runs + 3 * np.sqrt(0.05 * 0.95 * runs)


def test_the_block_fits_a_terminal():
    """At most 80 columns, plain signs, headline first, flags that warn behind a mark."""
    lines = str(verdict_of(facts(shift(means=TAKING, asked=0.0), randomized=23.0))).split("\n")
    assert lines[0] == "It shrinks the gap by leveling everybody down."
    assert lines[1] == "  gap in funding   $18,600 -> $11,400   change -$7,200 (-$9,600 to -5,000)"
    assert "  people           0 better off, 168 worse off, 23 decided at random, of 19,536" in lines
    assert any(line.startswith("  ! Misses what was asked.") for line in lines)
    assert max(map(len, lines)) <= 80
    assert all(ord(letter) < 128 for line in lines for letter in line)
    assert not any("Decides by group" in line for line in lines)  # which is no warning


def test_only_fitted_people_is_no_verdict_on_others():
    """Where nobody else was looked at, it says so."""
    assert FITTED_ONLY.kind == "unclear"
    assert FITTED_ONLY.sentence == "Only the people it was fitted to have been looked at."


def test_a_verdict_is_plain_data():
    """Everything that a page and a file need, and no object."""
    found = verdict_of(facts()).to_dict()
    assert set(found) == {"kind", "reason", "headline", "sentence", "remedy", "flags"}
    assert set(found["flags"][0]) == {"kind", "level", "name", "sentence"}


def decisions(rate_a, rate_b, n=2_000):
    a, b = (np.arange(n) < rate * n for rate in (rate_a, rate_b))
    return {"g": ["a"] * n + ["b"] * n, "d": np.concatenate([a, b]).astype(int)}


@pytest.mark.parametrize(
    ("gap", "kind", "headline"),
    [
        (0.4, "within", "Shown to be within what is allowed."),
        (0.1, "more", "Shown to be more than is allowed."),
        (0.2, "unclear", "We cannot tell."),
        (None, "measured", "The gap is 20.0\xa0%."),
    ],
)
def test_audits_have_verdicts(gap, kind, headline):
    """Within, more, cannot tell, or what the gap is; in print and in notebooks too."""
    rate = Happiness("decision == 1", name="approved", unit="share", rate=True)
    found = audit("d", decisions(0.6, 0.4), happiness=rate, sensitive_features="g", gap=gap)
    assert (found.verdict.kind, found.verdict.headline) == (kind, headline)
    assert headline.replace("\xa0", " ") in str(found)
    assert headline in found._repr_html_()
    if gap is not None:
        assert "allowed are" in found.verdict.sentence


def test_audits_of_few_people_are_flagged():
    """Groups under 100 are named, and those under 30 gravely."""
    rate = {"approved": "decision == 1"}
    found = audit("d", decisions(0.6, 0.4, 50), happiness=rate, sensitive_features="g").verdict
    assert [(flag.kind, flag.level) for flag in found.flags] == [("tiny-group", 2)]
    found = audit("d", decisions(0.6, 0.4, 20), happiness=rate, sensitive_features="g").verdict
    assert [(flag.kind, flag.level) for flag in found.flags] == [("tiny-group", 3)]


def test_an_interval_of_nothing_is_no_verdict():
    """Limits that are not known show neither that a gap shrinks nor that it grows."""
    unknown = interval(-7_200.0, -math.inf, math.inf)
    assert decide(facts(shift(change=unknown)))[1] == "chance"
    assert "nothing is known" in verdict_of(facts(shift(change=unknown))).sentence
