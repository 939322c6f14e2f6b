"""What a person sees of an object: at most 30 lines, never a salt, names as text, and where the rest is."""

import re
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from helpers import solved, traced
from hypothesis import given
from hypothesis import strategies as st
from reported import HOSTILE, fitted_amounts
from shown.objects import LINES, ROLES, Page, lines_of_text, public, salts, seen, table

import felicific
from felicific import Happiness, Score, aggregate, audit, compare, frontier, solve
from felicific._shown.drawing import COLOURS
from felicific._shown.parts import Lines, Picture, Table, as_html, as_text, clipped, extremes, spread

#: What a page of ours is made of.
TAGS = {
    "style", "div", "p", "strong", "ul", "li", "figure", "figcaption", "svg", "path", "line", "circle", "text", "table",
    "caption", "thead", "tbody", "tr", "th", "td", "bdi",
}  # fmt: skip


def own(page):
    """Our part of a page, without scikit-learn's diagram and without the report, a page of its own in a frame."""
    return "" if page.startswith("<iframe") else page.partition("<style>.sk-global")[0]


def check_short(one):
    """At most so many lines in a terminal and on a page."""
    text, page = seen(one)
    assert len(lines_of_text(text)) <= LINES, text
    shown = Page(own(page))
    assert len(lines_of_text(shown.text)) <= LINES, shown.text
    return text, shown


# ---------------------------------------------------------------------------------------------------------
# Everything public


def test_every_public_class_is_looked_at():
    """A class that is made public later is looked at too."""
    classes = {
        getattr(felicific, name) for name in felicific.__all__ if isinstance(getattr(felicific, name), type)
    }
    assert not [one for one in classes if not any(isinstance(shown, one) for shown in public().values())]


def test_everything_public_is_short():
    """At most 30 lines in a terminal and in a notebook, without an array and without an address in memory."""
    for name, one in public().items():
        text, _ = check_short(one)
        assert "array(" not in text, name
        assert " at 0x" not in text, name


def test_no_salt_is_shown():
    """Neither printed nor in a notebook; nor with an object that holds the policy."""
    hidden = salts(public())
    assert len(hidden) >= 5
    for name, one in public().items():
        parts = [one, *(getattr(one, field.name) for field in fields(one))] if is_dataclass(one) else [one]
        parts += [value for key, value in vars(one).items() if key.startswith("_")] if name == "fair" else []
        for part in parts:
            if isinstance(part, str) and part in hidden:
                continue  # the attribute itself
            for text in (str(part), *seen(part), str([part]), str({"it": part})):
                assert not [salt for salt in hidden if salt in text], (name, type(part))


def test_the_search_would_find_a_salt():
    """The instrument notices one; and files and SQL, which need it, do hold it."""
    policy = public()["cells"]
    assert salts({"it": policy}) == {policy.salt}
    assert policy.salt in policy.to_json()
    assert policy.salt in repr({"salt": policy.salt})


def test_a_classifier_shows_verdict_and_policy():
    """Verdict first, then the gap, the picture and the rules of its policy; scikit-learn's diagram below."""
    fair = public()["fair"]
    page = seen(fair)[1]
    text = Page(own(page)).text
    assert text.startswith(fair.verdict_.headline)
    for sentence in fair.policy_.rules(digits=4):
        assert sentence in text
    assert "<svg" in own(page)
    assert page.index(fair.verdict_.headline) < page.index("sk-global")
    assert "<svg" not in own(seen(public()["unfitted"])[1])


def test_a_policy_shows_its_sentences_and_a_picture():
    """Every sentence of a small policy, on the page and in a terminal; whom it takes from stands above the rules."""
    for name in ("cells", "label", "blind", "individual"):
        policy = public()[name]
        text, page = seen(policy)
        for sentence in policy.sentences(digits=4):
            assert sentence in text
            assert sentence in Page(page).text
        assert "<svg" in page
        for caution in policy.cautions():
            assert text.index(caution) < text.index(policy.rules(digits=4)[0])


def test_the_picture_of_a_policy_is_the_policy():
    """Read off the drawing, the chance at any score is the one that the policy applies."""
    policy = solved(table(2_000), happiness="decision", gap=0.02, **ROLES)
    page = seen(policy)[1]
    lines = re.findall(r'<path d="M([^"]*)" fill="none"', page)
    scores = np.linspace(0.0005, 0.9995, 400)
    assert len(lines) == len(policy.groups)
    for group, line in zip(policy.groups, lines, strict=True):
        corners = np.array([corner.split() for corner in line.split("L")], dtype=float)
        starts, chances = corners[::2, 0] / 100, 1 - corners[::2, 1] / 100
        read = chances[np.searchsorted(starts, scores, side="left") - 1]
        applied = policy.probabilities(scores, np.full(len(scores), group))[:, 1]
        near = np.abs(scores[:, None] - starts).min(axis=1) < 1e-4  # two digits of a per cent are drawn
        assert near.mean() < 0.2
        assert read[~near] == pytest.approx(applied[~near], abs=6e-4)


def test_the_picture_of_a_decision_function_has_its_values():
    """Steps, boundary and axis are where the values are, and nothing is called a score that goes from 0 to 1."""
    policy = public()["of values"]
    page = policy._repr_html_()
    assert "by decision function" in page
    assert "by score" not in page
    axis = dict(re.findall(r'<text x="([-\d.]+)%"[^>]*>(-?[\d.]+)</text>', page))
    places, values = (np.array([float(one) for one in some]) for some in (axis.keys(), axis.values()))
    assert len(places) > 1
    slope, start = np.polyfit(places, values, 1)
    assert np.allclose(start + slope * places, values, atol=slope * 0.02)
    (dashed,) = re.findall(r'class="dashed" x1="([-\d.]+)%"', page)
    assert float(dashed) * slope + start == pytest.approx(0.0, abs=slope * 0.02)
    lanes = re.findall(r'<path d="M([^Z"]+)" fill="none"', page)
    assert len(lanes) == len(policy.groups)
    for group, lane in zip(policy.groups, lanes, strict=True):
        corners = np.array([[float(one) for one in corner.split()] for corner in lane.split("L")])
        for (left, up), (right, _) in zip(corners[::2], corners[1::2], strict=True):
            if right - left > 0.1:  # between steps that can be told apart
                value = start + slope * (left + right) / 2
                assert policy.probabilities([value], [group])[0, 1] == pytest.approx(1 - up / 100, abs=1e-3)


def test_a_rounded_policy_is_drawn_as_it_decides():
    """Without a lottery the drawing shows chances of 0 and 1 alone."""
    policy = replace(public()["cells"], randomize=False)
    line = re.findall(r'<path d="M([^"]*)" fill="none"', seen(policy)[1])
    heights = {corner.split()[1] for one in line for corner in one.split("L")}
    assert heights == {"0.0", "100.0"}


def test_a_frontier_is_a_picture_with_its_table():
    """Every breakpoint is a dot and a row, with the baseline; and only looking at it in a notebook solves it."""
    line = frontier(public()["aggregates"])
    assert repr(line) == "Frontier(measures=['decision'], groups=['f', 'm'])"
    assert "_line" not in vars(line)
    page = line._repr_html_()
    text = Page(page).text
    assert str(line) in text
    assert page.count("<circle") == len(line)
    assert f"baseline {1 - line.baseline.loss:.2%} {line.baseline.gaps[0]:.5g} " in text
    for i in range(len(line)):
        assert f"breakpoint {i + 1} {1 - line.loss[i]:.2%} " in text


def test_aggregates_are_counted():
    """People, rows and share of every group."""
    people = table()
    found = aggregate(people, happiness="decision", sample_weight=np.full(600, 2), **ROLES)
    text = repr(found)
    assert "Aggregates of 1,200 people in 600 rows" in text
    assert re.search(r"f +600 +300 +50\.0%", text)
    assert "4,098 signals" in text


def test_a_policy_of_an_old_file_is_shown():
    """A policy of which nothing is known, as old files hold it, is shown too."""
    policy = public()["individual"]
    bare = replace(policy, basis=replace(policy.basis, baseline=None, unconstrained=None, evidence=None))
    _, page = check_short(bare)
    assert "dot: this policy" in page.text
    assert "diamond" not in page.text


# ---------------------------------------------------------------------------------------------------------
# Many of everything

NAMES = [f"region {i}" for i in range(300)]


def _long_frontier():
    """A frontier of 200 breakpoints, between its two ends."""
    line = traced(table(), happiness="decision", **ROLES)._line
    points = [replace(line.points[0], tau=line.points[0].tau + 0.001 * i) for i in range(200)]
    return replace(traced(table(), happiness="decision", **ROLES), find=lambda: replace(line, points=points))


@pytest.fixture(scope="module")
def many():
    """Objects of 300 groups, and of 5,000 cells that are all treated apart."""
    people = table(3_000, names=NAMES)
    label = {"policy": "label", "predicted": "repaid", "y": "repaid", "sensitive_features": "sex"}
    sums = aggregate(people, happiness="statistical_parity", **label)
    policy = solve(sums, gap=0.5)
    found = audit("repaid", people, "repaid", happiness="statistical_parity", sensitive_features="sex")
    cells = solved(
        table(20_000), policy=Score(bins=5_000, monotone=False), happiness="decision", gap=0.0, **ROLES
    )
    return {
        "policy": policy,
        "individual": solved(people, policy="individual", happiness="decision", gap=0.9, **ROLES),
        "aggregates": sums,
        "audit": found,
        "measure": found["selection rate"],
        "ratios": found.ratios,
        "comparison": compare(found, found),
        "frontier": _long_frontier(),
        "outcome": policy.outcomes["proposed"],
        "cells": cells,
        "signal": cells.signal,
        "classes": solved(
            table(900, classes=3), happiness={f"measure {j}": f"decision == {j % 3}" for j in range(40)}, gap=0.5,
            **label,
        ),
    }  # fmt: skip


MANY = (
    "policy", "individual", "aggregates", "audit", "measure", "ratios", "comparison", "frontier", "outcome", "cells",
    "signal", "classes",
)  # fmt: skip


@pytest.mark.parametrize("name", MANY)
def test_many_are_shortened(many, name):
    """300 groups, 5,000 cells or 40 measures: still 30 lines, which say how many more there are and where."""
    text, page = check_short(many[name])
    if name != "signal":
        assert re.search(r"\.\.\. and [\d,]+ more", text) or name in ("frontier", "outcome")
        assert re.search(r"\.\.\. and [\d,]+ more.*(\(\)|\.people)", page.text) or name == "outcome"
    assert not [salt for salt in salts(many) if salt in text + page.text]


def test_how_many_more_is_true(many):
    """Those that are shown and those that are left out are all."""
    policy = many["policy"]
    text, page = seen(policy)
    named = tuple(f"In group {group!r}," for group in policy.groups[:20])
    first = [rule for rule in policy.rules() if rule.startswith(named)]
    for shown in (text, Page(page).text):
        rules = [line for line in shown.splitlines() if line.startswith("In group")]
        left = int(re.search(r"and ([\d,]+) more: sentences\(\)", shown)[1].replace(",", ""))
        assert len(rules) + left == len(first)
        assert "... and 280 more groups: sentences()" in shown
    assert all(rule in str(policy) for rule in first)
    assert str(policy).count("In group") == len(first)
    means = many["audit"]["selection rate"].means
    table_rows = re.findall(r"^  (region \d+) +\d", repr(many["measure"]), flags=re.MULTILINE)
    left = int(re.search(r"and (\d+) more", repr(many["measure"]))[1])
    assert len(table_rows) + left == len(means) == 300
    # What makes the gap is among them.
    estimates = {group: mean.estimate for group, mean in means.items()}
    shown = [estimates[group] for group in table_rows]
    assert (min(shown), max(shown)) == (min(estimates.values()), max(estimates.values()))


# ---------------------------------------------------------------------------------------------------------
# Names


@pytest.fixture(scope="module")
def hostile():
    """Objects in which every name is one that no page may obey."""
    names = [*HOSTILE, "نساء", "\N{RIGHT-TO-LEFT OVERRIDE}live"]
    people = table(1_400, names=names)
    happiness = {name: Happiness("decision * loan", unit=name[:40]) for name in HOSTILE[:2]}
    asked = {"happiness": happiness, **ROLES}
    sums = aggregate(people, **asked)
    found = audit("repaid", people, "repaid", happiness=happiness, sensitive_features="sex")
    words = np.array(HOSTILE[:2], dtype=object)[people["repaid"]]
    labels = solved(
        people | {"repaid": words}, policy="label", predicted="repaid", y="repaid", sensitive_features="sex",
        happiness="statistical_parity", gap=0.1,
    )  # fmt: skip
    return [
        solve(sums, gap=dict.fromkeys(happiness, 5.0)),
        solved(people, policy="individual", gap=dict.fromkeys(happiness, 5.0), **asked), sums, frontier(sums), found,
        compare(found, found), labels,
    ]  # fmt: skip


def test_hostile_names_are_text(hostile):
    """Whatever anybody is called, a page is made of our own tags, runs nothing and loads nothing."""
    for one in hostile:
        text, page = check_short(one)
        assert {*page.tags} <= TAGS
        assert page.open == []
        names = {name for name, _ in page.attributes}
        assert not [name for name in names if name.startswith("on") or name in ("src", "href", "id")]
        assert "\x00" not in text + page.text
        assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in text + page.text
        (text + page.text).encode("utf-8")  # no half of a character
        assert "</script><script>alert" in page.text


# ---------------------------------------------------------------------------------------------------------
# Parts


@given(st.text(max_size=400), st.integers(12, 200))
def test_a_clipped_text_keeps_its_ends(text, longest):
    """It is never longer than asked, a short one is whole, and a long one begins and ends as it did."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    found = clipped(plain, longest)
    assert len(found) <= longest
    if len(plain) <= longest:
        assert found == plain
    else:
        head, _, end = found.partition(" ... ")
        assert plain.startswith(head)
        assert plain.endswith(end.rpartition(" ... ")[2])


@given(st.lists(st.floats(allow_nan=True, allow_infinity=False), min_size=1, max_size=40), st.integers(1, 12))
def test_extremes_are_the_least_and_the_largest(numbers, most):
    """So many of them, in their order; the least and, of two or more, the largest number is always one."""
    found = extremes(numbers, most)
    assert found == sorted({*found})
    assert len(found) == min(most, len(numbers))
    known = [number for number in numbers if not np.isnan(number)]
    shown = [numbers[i] for i in found if not np.isnan(numbers[i])]
    if known:
        assert min(shown) == min(known)
        assert most == 1 or max(shown) == max(known)


@given(st.integers(1, 500), st.integers(1, 30))
def test_places_are_spread(n, most):
    """From the first to the last, no more than asked."""
    found = spread(n, most)
    assert len(found) <= most
    assert found[0] == 0
    assert most == 1 or found[-1] == n - 1


@given(st.lists(st.integers(0, 60), max_size=6), st.integers(0, 60), st.integers(5, 40))
def test_whatever_the_parts_they_fit(sizes, rows, lines):
    """Text and page are never more than asked; what there is no room for is counted."""
    parts = [Lines([f"line {i}" for i in range(size)], "elsewhere.") for size in sizes]
    parts.append(
        Table("caption", ("a", "b"), [(str(i), "x") for i in range(rows)], "there.", foot=[("foot", "y")])
    )
    text = as_text(parts, "all of it elsewhere.", lines).splitlines()
    assert len(text) <= lines
    assert len(lines_of_text(Page(as_html(parts, "all of it elsewhere.", lines)).text)) <= lines
    whole = sum(sizes) + rows + 3
    assert (len(text) == whole) == (whole <= lines) or whole > lines
    assert (whole <= lines) == (not any("more" in line for line in text))


def test_a_picture_is_for_notebooks():
    """A terminal shows none, and needs no room for it."""
    parts = [Picture("A caption", "<svg></svg>", 3), Lines(["a line"])]
    assert as_text(parts) == "a line"
    assert "<figcaption>A caption</figcaption><svg>" in as_html(parts)


def test_colours_stand_out_from_light_and_dark():
    """By three to one from white and from what notebooks call dark, as WCAG 2 measures it."""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    for colour in COLOURS:
        for ground in ("#ffffff", "#111111", "#1e1e1e"):
            light, dark = sorted([luminance(colour), luminance(ground)], reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 3.0, (colour, ground)


@pytest.mark.slow
def test_amounts_are_shown_with_their_lines():
    """A policy of amounts, its frontier and the regressor have a picture of five groups at most; names are text."""
    names = [f"<b>{i}</b>" for i in range(7)]
    fair = fitted_amounts(names, 700, gap=0.3)
    for shown in (fair.policy_._repr_html_(), fair._repr_mimebundle_()["text/html"]):
        picture = shown[shown.index("<figure>") : shown.index("</figure>")]
        assert "5 of 7 groups" in picture
        assert picture.count("vector-effect") == 5 + 1  # and the line of those who get what is predicted
        assert "<b>" not in picture
        assert "&lt;b&gt;0" in picture
    line = fair.frontier_
    assert line._repr_html_().count("<circle") == len(line.places)
    assert "<figure>" not in repr(fair.policy_)


def test_the_picture_of_lines_is_the_policy():
    """In a picture of 100 by 100, corners stand where their prediction and amount do."""
    policy = fitted_amounts(n=400, gap=0.3).policy_
    shown = policy._repr_html_()
    first = re.search(r'<path d="M([^"]+)" fill="none" stroke="#0072b2"', shown)[1]
    drawn = np.array([[float(number) for number in pair.split()] for pair in first.split("L")])
    x, y = policy.lines[0].typical
    for place, number in ((drawn[:, 0], x), (-drawn[:, 1], y)):
        line = np.polyfit(number, place, 1)
        assert np.abs(np.polyval(line, number) - place).max() < 0.02
