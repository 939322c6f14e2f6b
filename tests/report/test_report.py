"""The report: its numbers are the library's, its page is one file, hostile names stay text."""

import io
import itertools
import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from conftest import make_people
from helpers import name_of
from reported import HOSTILE, fitted, loan, many

from felicific import FairClassifier, Floor, Happiness, audit, plots
from felicific.exceptions import DataError
from felicific.report.content import positions, round_step
from felicific.report.page import embedded
from felicific.report.view import make_view
from felicific.report.words import Quantity, count, listed, points, proportion

# Numbers are compared on the very rows that were fitted on, which is warned about.
pytestmark = pytest.mark.filterwarnings("ignore::felicific.exceptions.FittedRowsWarning")


@pytest.fixture(scope="module")
def fair(people):
    return fitted(people, gap=0.5)


@pytest.fixture(scope="module")
def found(fair, people):
    return fair.report(people.table("pandas"), people.y, command="felicific demo")


class Page(HTMLParser):
    """Tags, attributes and text of a page, as a browser sees them."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.text, self.inside = [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.inside.append(tag)

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        if not {"script", "style"} & set(self.inside):
            self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


# ---------------------------------------------------------------------------------------------------------
# Numbers


def test_every_position_says_what_its_policy_does(fair, people, found):
    """Loss, means, gaps and moves at a position are those of ``fair.at(gap=...)``, computed anew from its decisions."""
    X, y, group = people.table("pandas"), people.y, people["group"]
    today = fair.estimator_.predict(X[fair.estimator_.feature_names_in_])
    places = found.content["frontier"]["positions"]
    assert len(places) > 20
    for place in places[::5]:
        chance = fair.at(gap=place["allowed"][0]).predict_proba(X)[:, 1]
        means = [np.mean((chance * people["loan"])[group == z]) for z in (0, 1)]
        assert [row[0] for row in place["means"]] == pytest.approx(means)
        assert place["gaps"] == pytest.approx([abs(means[0] - means[1])])
        assert place["loss"] == pytest.approx(np.mean(np.where(y == 1, 1 - chance, chance)))
        moved = [[[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]]
        for z, a, q in zip(group, today, chance, strict=True):
            moved[z][a][1] += q
            moved[z][a][0] += 1 - q
        assert np.array(place["moves"]) == pytest.approx(np.array(moved))


def test_the_report_holds_the_audits(fair, people, found):
    """Today and the policy are what ``audit`` finds, with its intervals."""
    X, y = people.table("pandas"), people.y
    after = audit(fair, X, y).to_dict()
    assert found.content["notes"] == after["notes"][:1]
    assert found.content["after"] | {"notes": after["notes"]} == after
    model = fair.estimator_.predict(X[fair.estimator_.feature_names_in_])
    today = audit(
        model, X, y, happiness=fair.happiness, sensitive_features="group", gap=fair.gap, classes=[0, 1]
    )
    assert found.content["today"] == today.to_dict()
    start = next(p for p in found.content["frontier"]["positions"] if "proposed policy" in p["names"])
    assert start["loss"] == pytest.approx(found.content["after"]["loss"]["estimate"])


def test_weights_are_repetitions(fair, people):
    """Weight 2 is the row twice and weight 0 the row absent, in every number of the report."""
    X, y = people.table("pandas"), people.y
    weight = np.arange(len(y)) % 3
    rows = np.repeat(np.arange(len(y)), weight)
    weighted = fair.report(X, y, sample_weight=weight).content
    repeated = fair.report(X.iloc[rows], y[rows]).content
    assert weighted["groups"] == repeated["groups"]
    for when in ("today", "after"):
        for one, other in zip(weighted[when]["components"], repeated[when]["components"], strict=True):
            assert one["gap"]["estimate"] == pytest.approx(other["gap"]["estimate"])
            assert one["gap"]["high"] == pytest.approx(other["gap"]["high"])
    for one, other in zip(weighted["frontier"]["positions"], repeated["frontier"]["positions"], strict=True):
        assert one["loss"] == pytest.approx(other["loss"])
        assert np.array(one["means"]) == pytest.approx(np.array(other["means"]))
        assert np.array(one["moves"]) == pytest.approx(np.array(other["moves"]))
        assert np.array(one["bound"]["gaps"]) == pytest.approx(np.array(other["bound"]["gaps"]))


def test_the_bounds_are_those_of_the_band(fair, people, found):
    """At a breakpoint the bound is as wide as one vertex more in the union makes it; the policy has one of its own."""
    X, y = people.table("pandas"), people.y
    band = fair.frontier_band(X, y)
    for place in found.content["frontier"]["positions"]:
        low, high = place["bound"]["gaps"][0]
        assert low <= place["gaps"][0] <= high
        least, most = band.gaps(min(place["tau"], band.tau[-1]))["loan"]
        # One policy more, the fitted one, shares the error: a little wider, never narrower.
        assert low <= least + 1e-9
        assert most - 1e-9 <= high <= 1.1 * most
        assert place["bound"]["loss"][0] <= place["loss"] <= place["bound"]["loss"][1]


def test_the_positions_have_names_where_people_look(fair, found):
    """The least gap, half of today's, today's, the policy and the least loss are positions, each where it must be."""
    places = {
        name: place["tau"] for place in found.content["frontier"]["positions"] for name in place["names"]
    }
    now = float(fair.frontier_.today.gaps[0])
    assert places["least gap"] == fair.frontier_.tau[0]
    assert places["least loss"] == fair.frontier_.tau[-1]
    last = fair.frontier_.tau[-1]
    assert places["half of today's gap"] == min(now / 2, last)
    assert places.get("today's gap") == (now if now < last else None)
    assert places["proposed policy"] == pytest.approx(0.5)


def test_the_price_is_that_of_a_smaller_gap(fair, people, found):
    """What a little less of the gap costs, at every position; below the least gap none is for sale."""
    places, line = found.content["frontier"]["positions"], fair.frontier_
    assert places[0]["price"] is None
    assert "no policy of this kind has a smaller one" in make_view(found.content)["embedded"]["cells"][0]
    for before, place in itertools.pairwise(places):
        step = 1e-3 * (place["tau"] - before["tau"])
        cost = line.at(tau=place["tau"] - step).loss - line.at(tau=place["tau"]).loss
        assert place["price"] * step == pytest.approx(cost, rel=1e-6, abs=1e-12)
    line = fitted(people, gap=0.5, change_cost=0.0).frontier_
    assert (line.price_at(line.tau) > 0).all()
    assert line.price_at([2 * line.tau[-1]]).tolist() == [0.0]


def test_the_slider_stands_where_policies_were_solved_for(people):
    """Where neighbours do not mix, a position is one that was solved for, with what was found there, or the policy."""
    settings = {"happiness": "precision_parity", "favourable": 1, "gap": 0.013}
    fair = fitted(people, **settings)
    line = fair.frontier_
    assert not line.mixes
    places = fair.report(people.table("pandas"), people.y).content["frontier"]["positions"]
    solved = dict(zip(line.tau.tolist(), line.loss.tolist(), strict=True))
    for place in places:
        if "proposed policy" in place["names"]:
            assert place["fitted"]["loss"] == fair.loss_
        else:
            assert place["fitted"]["loss"] == solved[place["tau"]]
    assert len(places) in (len(solved), len(solved) + 1)


def test_people_of_no_known_group_are_not_compared():
    """Their mean is shown, and the gap is that of an audit: without them."""
    fair, x, y, group = many(3, 2)
    group = np.where(np.arange(len(group)) % 3 == 1, None, group)
    fair = FairClassifier(fair.estimator, happiness="statistical_parity", gap=0.1, missing_group="unknown",
                          random_state=0).fit(x, y, sensitive_features=group)  # fmt: skip
    content = fair.report(x, y, sensitive_features=group).content
    found = audit(fair, x, y, sensitive_features=group)
    assert content["after"]["unknown"] == ["unknown"]
    for mine, theirs in zip(content["after"]["components"], found.components, strict=True):
        assert mine["gap"]["estimate"] == pytest.approx(theirs.gap.estimate, abs=1e-12)
        assert mine["gap"]["high"] == pytest.approx(theirs.gap.high, abs=1e-9)
    assert content["policy"]["constraints"] == []


@pytest.mark.parametrize(
    ("low", "reach"), [(0.0, 21_273.0), (0.03, 0.031), (1e-9, 1.0), (5.0, 5.0), (0.0, 0.0)]
)
def test_positions_are_round_numbers(low, reach):
    """Between the ends lie round numbers, increasing, neither few nor many; the marked ones are kept exactly."""
    marked = [low, (low + reach) / 2.1]
    marked[1] = max(marked[1], low)
    found = positions(marked, reach)
    assert found == sorted(set(found))
    assert set(marked) <= set(found)
    assert found[0] == low
    assert found[-1] == reach
    if reach > low:
        assert 20 < len(found) < 70
        step = round_step((reach - low) / 60)
        rest = [tau for tau in found if tau not in (*marked, reach)]
        assert all(abs(tau / step - round(tau / step)) < 1e-6 for tau in rest)


def test_the_data_is_plain_and_whole(found, tmp_path):
    """The dict is what the JSON file holds, and the page is made of it alone."""
    found.save(tmp_path / "report.json")
    content = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert content == found.to_dict() == found.content
    assert type(found)(content).to_html() == found.to_html()
    assert content["format"] == "felicific report"


def test_the_page_says_the_numbers(found):
    """What the page shows for the proposed policy is what the data holds, written for a reader."""
    words = Page(found.to_html()).words
    content = found.content
    gap = content["today"]["components"][0]["gap"]["estimate"]
    assert f"{gap:.2f} k$" in words
    for place in content["frontier"]["positions"][:1]:
        assert f"{100 * (1 - place['loss']):.2f} %" in words
    for sentence in content["policy"]["sentences"]:
        assert sentence in words
    for part in (
        "Thousands lent.",
        "felicific demo",
        content["reproduce"]["fingerprint"],
        "half of today's gap",
    ):
        assert part in words


def test_the_page_of_an_audit_shows_ratios():
    """A row for every group, the smallest first, and the sentence; with many groups those that are furthest below."""
    rng = np.random.default_rng(0)
    sex, race = rng.choice(["f", "m"], 3000), np.array([f"race {i:02d}" for i in rng.integers(0, 30, 3000)])
    people = {
        "sex": sex,
        "race": race,
        "yes": (rng.random(3000) < np.where(sex == "f", 0.2, 0.4)).astype(int),
    }
    people["sex"] = np.where(rng.random(3000) < 0.02, None, sex)
    asked = {
        "happiness": {"got": "decision == 1"},
        "sensitive_features": ["sex", "race"],
        "missing_group": "?",
    }
    found = audit("yes", people, **asked)
    words = Page(found.to_html()).words
    assert "47 groups in between are not shown." in words
    words = Page(found.with_ratios("sex").to_html()).words
    part = found.ratios_between("sex")["got"]
    for remark in part.remarks(0.95):
        assert remark in words
    assert f"{part.smallest.estimate:.3f} {part.smallest.low:.3f} to {part.smallest.high:.3f}" in words
    alone = audit("yes", people, **asked | {"sensitive_features": "sex"}).to_dict()
    assert alone["unknown"] == ["?"]
    people["yes"] = np.where([value is None for value in people["sex"]], 1, people["yes"])
    found = audit("yes", people, **asked | {"sensitive_features": "sex"})
    assert "Mean got: m" in Page(found.to_html()).words, "the unknown is no end of the gap"
    drawn = found.plot().to_dict()["datasets"].values()
    bands = [row for rows in drawn for row in rows if "from" in row]
    assert [band["to"] for band in bands] == [found["got"].means["m"].estimate]
    lost = audit("yes", people, **asked | {"happiness": {"lost": lambda decision: -decision}})
    assert "Ratios to the highest" not in Page(lost.to_html()).words


# ---------------------------------------------------------------------------------------------------------
# Files


def test_save_takes_names_paths_and_files(found, tmp_path):
    """A string, a path, a text file and a binary file get the same page; another kind of name is refused."""
    page = found.to_html()
    found.save(str(tmp_path / "a.html"))
    found.save(tmp_path / "b.htm")
    text, binary = io.StringIO(), io.BytesIO()
    found.save(text)
    found.save(binary)
    assert (tmp_path / "a.html").read_text("utf-8") == (tmp_path / "b.htm").read_text("utf-8") == page
    assert text.getvalue() == page == binary.getvalue().decode("utf-8")
    with pytest.raises(DataError, match=r"\.html or \.json"):
        found.save(tmp_path / "report.pdf")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "b.htm"]


def test_a_file_that_cannot_be_written_is_not_begun(found, tmp_path):
    """In a folder that does not exist nothing is made, and the error names it."""
    with pytest.raises(FileNotFoundError, match="nowhere"):
        found.save(tmp_path / "nowhere" / "report.html")
    assert not list(tmp_path.iterdir())


def test_two_runs_make_the_same_bytes():
    """In two processes with different hash seeds, the same inputs give the same page and the same data."""
    people = make_people(150)
    mine = fitted(people).report(people.table("pandas"), people.y)
    code = """
import sys
from conftest import make_people
from reported import fitted
people = make_people(150)
report = fitted(people).report(people.table("pandas"), people.y)
sys.stdout.write(report.to_html() + report.to_json())
"""
    environment = {"PYTHONHASHSEED": "7", "PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin"}
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=environment)
    assert other.stdout.decode("utf-8") == mine.to_html() + mine.to_json()


def test_the_fingerprint_sees_every_value(fair, people, found):
    """Other people, another label or another group have another fingerprint; the same people the same."""
    X, y = people.table("pandas"), people.y
    seen = {found.content["reproduce"]["fingerprint"]}
    assert fair.report(X, y).content["reproduce"]["fingerprint"] in seen
    other = X.copy()
    other.loc[3, "wealth"] += 1e-9
    flipped = y.copy()
    flipped[7] = 1 - flipped[7]
    for table, label in ((other, y), (X, flipped), (X[::-1], y[::-1])):
        seen.add(fair.report(table, label).content["reproduce"]["fingerprint"])
    assert len(seen) == 4


def test_a_notebook_shows_a_page_in_a_page(found):
    """The notebook's HTML is one sandboxed frame whose content is the page."""
    shown = Page(found._repr_html_())
    assert shown.tags == ["iframe"]
    attributes = dict(shown.attributes)
    assert attributes["srcdoc"] == found.to_html()
    assert attributes["sandbox"] == "allow-scripts"


# ---------------------------------------------------------------------------------------------------------
# The page


def check_page(page):
    """One file, two scripts, both ours; nothing that could be loaded, and nothing that acts on events."""
    seen = Page(page)
    assert seen.tags.count("script") == (2 if 'type="application/json"' in page else 1)
    assert not {"img", "iframe", "link", "object", "embed", "base", "form", "a", "image", "use"} & set(
        seen.tags
    )
    assert not [
        name for name, _ in seen.attributes if name.startswith("on") or name in ("src", "href", "xlink:href")
    ]
    assert not re.search(r"https?://(?!www\.w3\.org/)", page)
    assert "url(" not in page
    security = seen.attributes[[name for name, _ in seen.attributes].index("content")][1]
    assert security.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    return seen


def test_the_page_needs_nothing_else(found):
    """No address, no image, no event attribute; a policy that forbids every request and every other script."""
    check_page(found.to_html())


def test_the_embedded_data_cannot_end_its_element():
    """Whatever the texts are, the JSON inside the page holds no character of markup, and reads back as it was."""
    texts = [*HOSTILE, "</script ", "<!--<script", "]]>", "&lt;", "\u2028"]
    written = embedded(texts)
    assert not set("<>&") & set(written)
    assert written.isascii()
    assert json.loads(written) == texts


def test_hostile_names_stay_text():
    """Groups, components, units, titles and commands of any content appear as text, and as nothing else."""
    happiness = {name: Happiness(lambda decision: float(decision), unit=name) for name in HOSTILE[::2]}
    fair, x, y, group = many(5, 2, happiness, HOSTILE, gap=dict.fromkeys(happiness, 0.1))
    for page in (
        fair.report(
            x, y, sensitive_features=group, title=HOSTILE[1], command=HOSTILE[0], grouped_by=HOSTILE[1]
        ).to_html(),
        audit(fair, x, y, sensitive_features=group).to_html(title=HOSTILE[0], command=HOSTILE[4]),
    ):
        seen = check_page(page)
        assert HOSTILE[0] in seen.words
        assert HOSTILE[1][:20] in seen.words
        assert "{{ 7*7 }}" in seen.words
        assert "x" * 1000 not in page
        page.encode("utf-8")


def test_many_groups_classes_and_components():
    """Twelve groups, five classes and six components make a page of bounded size."""
    happiness = {
        f"measure {j}": Happiness(lambda decision, j=j: float((decision + j) % 5), unit="years")
        for j in range(6)
    }
    fair, x, y, group = many(12, 5, happiness)
    found = fair.report(x, y, sensitive_features=group)
    page = found.to_html()
    assert len(page) < 1_500_000
    words = check_page(page).words
    for name in (*plots.labels(fair.groups_), "measure 5"):
        assert name in words
    assert len(found.content["frontier"]["positions"][0]["moves"]) == 12


def hardly(decision, x):
    """What decisions change for one person alone."""
    return 1.0 + decision * (x["id"] == 1000)


@pytest.mark.parametrize(
    "settings",
    [
        {"policy": "individual"},
        {"group_at_predict": False, "policy": "score", "sensitive_features": None},
        {"gap": {}},
        {"loss": [[0, 3], [1, 0]]},
        {"randomize": False},
        {"constraints": [Floor("loan", at_least="today")]},
        {"happiness": {"money": loan, "rate": "equal_opportunity"}, "gap": {"money": 3.0, "rate": 0.1}},
        {"happiness": "equalized_odds"},
        {"happiness": "decision * loan"},
        {"happiness": hardly},
        {"happiness": {"a": hardly, "b": lambda decision, x: 1.0 - hardly(decision, x)}},
    ],
    ids=name_of,
)
def test_every_kind_of_fit_has_a_report(people, settings):
    """Whatever can be fitted can be reported."""
    settings = dict(settings)
    passed = {} if "sensitive_features" not in settings else {"sensitive_features": people["group"]}
    X = people.table("pandas")
    fair = FairClassifier(
        people.frozen("pandas"),
        **({"happiness": loan, "sensitive_features": "group", "random_state": 0, "gap": 1.0} | settings),
    ).fit(X, people.y, **passed)
    found = fair.report(X, people.y, **passed)
    words = check_page(found.to_html()).words
    assert "What does halving it cost?" in words
    assert "nan" not in words.lower().split()
    assert found.content["frontier"]["positions"][0]["sentences"]


def test_an_audit_has_a_page(people):
    """An audit's page says its means, gap and intervals, and offers nothing to choose."""
    found = audit(people.y, people.table("pandas"), people.y, happiness=loan, sensitive_features="group")
    page = found.to_html(title="Last year", command="felicific audit")
    words = check_page(page).words
    assert "Last year" in words
    assert "felicific audit" in words
    assert f"{found.gaps['loan']:.2f}" in words
    assert "slider" not in words
    assert 'id="data"' not in page


def test_a_report_needs_every_group_and_a_label_each(fair, people, refuses):
    """People without one of the groups, or with fewer labels than rows, are refused."""
    X, y = people.table("pandas"), people.y
    with pytest.raises(ValueError, match="group"):
        fair.report(X[people["group"] == 0], y[people["group"] == 0])
    with refuses(DataError, "400"):
        fair.report(X, y[:-1])


# ---------------------------------------------------------------------------------------------------------
# Words


@pytest.mark.parametrize(
    ("unit", "scale", "number", "text"),
    [
        ("$", 18_566.3, 18_566.3, "$18,566"),
        ("$", 18_566.3, -1234.5, "\N{MINUS SIGN}$1,234"),
        ("share", 0.0312, 0.25, "25.00\N{NO-BREAK SPACE}%"),
        ("hours", 0.31, 2.5, "2.500\N{NO-BREAK SPACE}hours"),
        ("", 0.0, 0.0, "0.00"),
        ("$", 5.0, -1e-9, "$0.00"),
        ("$", 5.0, float("nan"), "unknown"),
        ("$", float("inf"), 1.0, "$1.00"),
    ],
)
def test_quantities(unit, scale, number, text):
    """Currencies before the number, shares in per cent, three digits of the gap, no negative zero."""
    assert Quantity.of(unit, scale)(number) == text


def test_spans_counts_and_lists():
    """Half-known intervals, parts of a person, points and lists read well."""
    dollars = Quantity("$", 0)
    assert dollars.span(1.0, 2.0) == "$1 to $2"
    assert dollars.span(None, 2.0) == "at most $2"
    assert dollars.span(1.0, None) == "at least $1"
    assert dollars.span(None, None) == "nothing is known"
    assert Quantity("share", 1).span(0.1, 0.2) == "10.0 to 20.0\N{NO-BREAK SPACE}%"
    years = Quantity("years", 1)
    assert (years.span(1.0, 2.0), years.cell(2.0), years.heading) == (
        "1.0 to 2.0\N{NO-BREAK SPACE}years",
        "2.0",
        " (years)",
    )
    assert (dollars.cell(2.0), dollars.heading, years.cell(None)) == ("$2", "", "unknown")
    assert (proportion(0.5), proportion(0.125)) == ("50\N{NO-BREAK SPACE}%", "12.5\N{NO-BREAK SPACE}%")
    assert (dollars.change(2.0), dollars.change(-2.0), dollars.change(0.1)) == (
        "+$2",
        "\N{MINUS SIGN}$2",
        "$0",
    )
    assert (count(0.0), count(0.2), count(1234.6)) == ("0", "less than 1", "1,235")
    assert points(0.01) == "1.00\N{NO-BREAK SPACE}point"
    assert points(-0.0032) == "0.32\N{NO-BREAK SPACE}points"
    assert (listed([]), listed(["a"]), listed("ab"), listed("abc", "or")) == ("", "a", "a and b", "a, b or c")


def answers(content):
    """What the header of a page says."""
    return {found["question"]: found for found in make_view(content)["answers"]}


def halved(found, today, then):
    """The report's data, had these been the gaps on its people today and with half of today's gap."""
    content = found.to_dict()
    content["frontier"]["today"]["gaps"] = [today]
    place = next(p for p in content["frontier"]["positions"] if "half of today's gap" in p["names"])
    place["gaps"] = [then]
    return answers(content)["What does halving it cost?"]


def test_a_gap_that_is_not_halved_is_not_said_to_be(found):
    """The policies were fitted on other people, on whom half of the gap may be more than all of it is here."""
    assert halved(found, 2.0, 1.0)["detail"].endswith("is then 1.00\N{NO-BREAK SPACE}k$.")
    assert "not half" in halved(found, 2.0, 1.5)["detail"]
    assert halved(found, 2.0, 1.5)["answer"] == halved(found, 2.0, 1.0)["answer"]
    assert halved(found, 2.0, 2.5)["answer"] == ["Here the gap does not shrink"]
    assert "no smaller" in halved(found, 2.0, 2.5)["detail"]
    assert "with half the gap" not in halved(found, 2.0, 2.5)["detail"] + halved(found, 2.0, 1.5)["detail"]
    assert halved(found, 0.0, 0.0)["answer"] == ["There is none"]


def test_a_gap_that_grows_is_the_first_caveat(found):
    content = found.to_dict()
    assert not any("larger under the proposed policy" in line for line in make_view(content)["caveats"])
    content["today"], content["after"] = content["after"], content["today"]
    assert "larger under the proposed policy than today" in make_view(content)["caveats"][0]


def test_both_gaps_of_today_are_told(found):
    """Positions are named after today's gap on the people of the fit, the header shows that on these people."""
    content = found.to_dict()
    content["frontier"]["today"]["fitted"]["gaps"], content["frontier"]["today"]["gaps"] = [2.0], [3.0]
    text = make_view(content)["fitted_today"]
    assert text.index("2.00") < text.index("fitted on") < text.index("3.00") < text.index("these people")


def test_criteria_have_titles_in_words_and_changes_in_points():
    fair, x, y, group = many(2, 2)
    view = make_view(fair.report(x, y, sensitive_features=group).to_dict())
    assert view["title"] == "Statistical parity in 2 groups"
    today, after, change = view["tables"][0]["rows"][0]["cells"]
    assert today["number"].endswith("%")
    assert after["span"].endswith("%")
    assert change["number"].endswith("points")
    assert change["span"].endswith("points")


def test_a_recalibrated_classifier_has_a_report(fair, people):
    again = fair.recalibrate(people.table("pandas"))
    view = make_view(again.report(people.table("pandas"), people.y).to_dict())
    assert "recalibrated on people without labels" in view["caveats"][-1]


def test_a_certificate_by_large_samples_says_so(people):
    """On the page twice: in the certificate and as a caveat; one that holds for any distribution has neither."""
    for settings, rough in (({"gap": 5.0}, True), ({"gap": 0.9, "happiness": "statistical_parity"}, False)):
        fair = fitted(people, confidence=0.8, **settings)
        assert fair.certificate_.basis == "held-out test"
        view = make_view(fair.report(people.table("pandas"), people.y).content)
        assert ("by large samples" in view["certificate"]) == rough
        assert any("holds by large samples" in text for text in view["caveats"]) == rough
