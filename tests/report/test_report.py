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
from reported import HOSTILE, fitted, loan, long_line, many

from felicific import FairClassifier, Floor, Gap, Happiness, Score, audit
from felicific._audit.names import labels
from felicific._fit.assessment import Assessment
from felicific._frontier.breakpoints import RayPolicies
from felicific._report.data import PLACES, find_places
from felicific._report.document import Report
from felicific._report.slider import embedded
from felicific.exceptions import DataError

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


def test_weights_are_repetitions(fair, people):
    """Weight 2 is the row twice and weight 0 the row absent, in every number of the report."""
    X, y = people.table("pandas"), people.y
    weight = np.arange(len(y)) % 3
    rows = np.repeat(np.arange(len(y)), weight)
    weighted = fair.report(X, y, sample_weight=weight).content
    repeated = fair.report(X.iloc[rows], y[rows]).content
    for name in ("groups", "baseline", "best", "also"):
        check_alike(weighted[name], repeated[name])
    for one, other in zip(weighted["positions"], repeated["positions"], strict=True):
        for name in (
            "loss",
            "cost_baseline",
            "cost_best",
            "measures",
            "moves",
            "randomized",
            "better",
            "worse",
            "every",
        ):
            check_alike(one[name], other[name])


def check_alike(one, other):
    """The same data, but for rounding."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            check_alike(one[name], other[name])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for mine, theirs in zip(one, other, strict=True):
            check_alike(mine, theirs)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-9, abs=1e-9)
    else:
        assert one == other


def test_the_price_is_that_of_a_smaller_gap(fair, people, found):
    """What a little less of the gap costs, at every position; below the least gap and at the baseline none is sold."""
    places, line = found.content["positions"], fair.frontier_
    assert places[0]["price"] is None
    assert places[-1]["price"] is None
    for before, place in itertools.pairwise(places[:-1]):
        step = 1e-3 * (place["tau"] - before["tau"])
        cost = line.at(tau=place["tau"] - step).loss - line.at(tau=place["tau"]).loss
        assert place["price"] * step == pytest.approx(cost, rel=1e-6, abs=1e-12)
    line = fitted(people, gap=0.5, change_cost=0.0).frontier_
    assert (line.price_at(line.tau) > 0).all()
    assert line.price_at([2 * line.tau[-1]]).tolist() == [0.0]


def test_the_slider_stands_where_policies_were_solved_for(people):
    """Where neighbours do not mix, a position is one that was solved for, the policy, or the baseline."""
    fair = fitted(people, happiness="precision_parity", gap=0.013)
    line = fair.frontier_
    assert not line.mixes
    content = fair.report(people.table("pandas"), people.y).content
    places = content["positions"]
    assert not content["mixes"]
    assert any("solved for by itself" in text for text in content["caveats"])
    solved = set(line.tau.tolist())
    for place in places[:-1]:
        assert place["proposed"] or place["tau"] in solved
    assert any(
        "solved for by itself" in text
        for text in fair.report(people.table("pandas"), people.y).content["caveats"]
    )


def test_people_of_no_known_group_are_not_compared():
    """Their mean is shown, and the gap is that of an audit: without them."""
    fair, x, y, group = many(3, 2)
    group = np.where(np.arange(len(group)) % 3 == 1, "unknown", group)
    known = sorted({*group} - {"unknown"})
    asked = [Gap("statistical_parity", 0.1, groups=known)]
    fair = FairClassifier(fair.estimator, happiness="statistical_parity", constraints=asked,
                          random_state=0).fit(x, y, sensitive_features=group)  # fmt: skip
    content = fair.report(x, y, sensitive_features=group).content
    found = audit(fair, x, y, sensitive_features=group, groups=known)
    assert [one["name"] for one in content["groups"] if not one["compared"]] == ["unknown"]
    place = content["positions"][content["proposed"]]
    for mine, theirs in zip(place["measures"], found.measures, strict=True):
        assert mine["gap"]["estimate"] == pytest.approx(theirs.gap.estimate, abs=1e-12)
        assert mine["gap"]["high"] == pytest.approx(theirs.gap.high, abs=1e-9)
    assert content["policy"]["requirements"] == []


def test_the_data_is_plain_and_whole(found, tmp_path):
    """The dict is what the JSON file holds, and the page is made of it alone."""
    found.save(tmp_path / "report.json")
    content = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert content == found.to_dict() == found.content
    assert Report(content, found.verdict).to_html() == found.to_html()
    assert (content["format"], content["version"]) == ("felicific report", 2)


def test_the_page_says_the_numbers(found):
    """What the page shows for the proposed policy is what the data holds, written for a reader."""
    words = Page(found.to_html()).words
    content = found.content
    place = content["positions"][content["proposed"]]
    for text in (
        place["verdict"]["headline"],
        place["verdict"]["sentence"],
        *(flag["name"] for flag in place["verdict"]["flags"]),
        place["policy_sha256"],
        content["fingerprints"]["people"],
        "Thousands lent.",
        "felicific demo",
        "half of the model's gap",
        *place["rules"],
    ):
        assert " ".join(text.split()) in words


def test_the_page_of_an_audit_shows_ratios():
    """A row for every group, the smallest first, and the sentence; with many groups those that are furthest below."""
    rng = np.random.default_rng(0)
    sex, race = rng.choice(["f", "m"], 3000), np.array([f"race {i:02d}" for i in rng.integers(0, 30, 3000)])
    people = {
        "sex": sex,
        "race": race,
        "yes": (rng.random(3000) < np.where(sex == "f", 0.2, 0.4)).astype(int),
    }
    people["sex"] = np.where(rng.random(3000) < 0.02, "?", sex)
    asked = {
        "happiness": {"got": "decision == 1"},
        "sensitive_features": ["sex", "race"],
    }
    found = audit("yes", people, **asked)
    words = Page(found.to_html()).words
    assert "71 groups in between are not shown." in words
    words = Page(found.with_ratios("sex").to_html()).words
    part = found.ratios_between("sex")["got"]
    for remark in part.remarks(0.95):
        assert remark in words
    for row in part.rows[:2]:
        assert f"{row.ratio:.3f} {row.low:.3f} to {row.high:.3f}" in words
    asked |= {"sensitive_features": "sex", "groups": ["f", "m"]}
    assert audit("yes", people, **asked).to_dict()["left_out"]["got"].keys() == {"?"}
    people["yes"] = np.where(people["sex"] == "?", 1, people["yes"])
    found = audit("yes", people, **asked)
    assert f"The gap is {found['got'].gap.estimate:.3f}" in Page(found.to_html()).words, (
        "the unknown is no end of it"
    )
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
    seen = {found.content["fingerprints"]["people"]}
    assert fair.report(X, y).content["fingerprints"]["people"] in seen
    other = X.copy()
    other.loc[3, "wealth"] += 1e-9
    flipped = y.copy()
    flipped[7] = 1 - flipped[7]
    for table, label in ((other, y), (X, flipped), (X[::-1], y[::-1])):
        seen.add(fair.report(table, label).content["fingerprints"]["people"])
    assert len(seen) == 4


def test_a_notebook_shows_a_page_in_a_page(found):
    """The notebook's HTML is one sandboxed frame whose content is the page."""
    shown = Page(found._repr_html_())
    assert shown.tags == ["iframe"]
    attributes = dict(shown.attributes)
    assert attributes["srcdoc"] == found.to_html()
    assert attributes["sandbox"] == "allow-scripts allow-downloads allow-modals"


# ---------------------------------------------------------------------------------------------------------
# The page


def check_page(page):
    """One file, two scripts, both ours; nothing that could be loaded, and nothing that acts on events."""
    seen = Page(page)
    assert seen.tags.count("script") == (2 if 'type="application/json"' in page else 0)
    assert not {"img", "iframe", "link", "object", "embed", "base", "form", "a", "image", "use"} & set(
        seen.tags
    )
    assert not [
        name for name, _ in seen.attributes if name.startswith("on") or name in ("src", "href", "xlink:href")
    ]
    assert not re.search(r"https?://(?!www\.w3\.org/)", page)
    assert "url(" not in page
    security = seen.attributes[[name for name, _ in seen.attributes].index("content")][1]
    scripts = "script-src 'sha256-" if "script" in seen.tags else "base-uri"
    assert security.startswith(f"default-src 'none'; style-src 'unsafe-inline'; {scripts}")
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
    """Groups, measures, units, titles and commands of any content appear as text, and as nothing else."""
    happiness = {name: Happiness(lambda decision: float(decision), unit=name) for name in HOSTILE[::2]}
    fair, x, y, group = many(5, 2, happiness, HOSTILE, gap=dict.fromkeys(happiness, 0.1))
    for page in (
        fair.report(
            x, y, sensitive_features=group, title=HOSTILE[1], command=HOSTILE[0], period=HOSTILE[1]
        ).to_html(),
        audit(fair, x, y, sensitive_features=group).to_html(title=HOSTILE[0], command=HOSTILE[4]),
    ):
        seen = check_page(page)
        assert HOSTILE[0] in seen.words
        assert HOSTILE[1][:20] in seen.words
        assert "{{ 7*7 }}" in seen.words
        assert "x" * 1000 not in page
        page.encode("utf-8")


def test_a_frontier_of_a_thousand_breakpoints_has_few_places(monkeypatch):
    """A page shows some places of it, and only their policies, and their neighbours', are looked for.

    So is the policy of the least loss, which the proposed one is compared with.
    """
    asked, find = set(), RayPolicies.at
    monkeypatch.setattr(RayPolicies, "at", lambda places, tau: asked.add(tau) or find(places, tau))
    line = long_line()
    assert len(line) > 1_000
    policy = line.at(tau=line.tau[500])
    assert len(find_places(line, policy, line.policies_at)) <= PLACES + 1
    best = Assessment.of(None, line, policy).best
    assert best.loss == pytest.approx(line.loss[-1], abs=1e-9)
    assert 0 < len(asked) <= 2 * PLACES + 2


@pytest.mark.slow
def test_many_groups_classes_and_measures():
    """Twelve groups, five classes and six measures make a page of bounded size."""
    happiness = {
        f"measure {j}": Happiness(lambda decision, j=j: float((decision + j) % 5), unit="years")
        for j in range(6)
    }
    fair, x, y, group = many(12, 5, happiness)
    found = fair.report(x, y, sensitive_features=group)
    page = found.to_html()
    assert len(page.encode("utf-8")) < 600_000
    words = check_page(page).words
    for name in (*labels(fair.groups_), "measure 5"):
        assert name in words
    assert len(found.content["positions"][0]["moves"]) == 12


def hardly(decision, x):
    """What decisions change for one person alone."""
    return 1.0 + decision * (x["id"] == 1000)


@pytest.mark.parametrize(
    "settings",
    [
        {"policy": "individual"},
        {"sees_group": False, "policy": "score", "sensitive_features": None},
        {"gap": {}},
        {"loss": [[0, 3], [1, 0]]},
        {"policy": Score(randomize=False)},
        {"constraints": [Floor("loan", at_least="baseline")]},
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
    assert found.verdict.headline in words
    assert "nan" not in words.lower().split()
    assert found.content["positions"][0]["rules"]


def test_an_audit_has_a_page(people):
    """An audit's page says its means, gap and intervals, and offers nothing to choose."""
    found = audit(people.y, people.table("pandas"), people.y, happiness=loan, sensitive_features="group")
    page = found.to_html(title="Last year", command="felicific audit")
    words = check_page(page).words
    assert "Last year" in words
    assert "felicific audit" in words
    assert found.verdict.headline in words
    assert "slider" not in words
    assert 'id="data"' not in page


def test_a_recalibrated_classifier_has_a_report(fair, people):
    """It has no certificate, and says why; the people it was recalibrated for are no evidence."""
    found = fair.recalibrate(people.table("pandas")).report(people.table("pandas"), people.y)
    assert any("recalibrated on people without labels" in text for text in found.content["caveats"])
    assert found.content["certified"] is None
    assert found.verdict.reason == "in-sample"


def test_a_certificate_by_large_samples_says_so(people):
    """On the page twice: in the certificate and as a caveat; one that holds for any distribution has neither."""
    for settings, rough in (({"gap": 5.0}, True), ({"gap": 0.9, "happiness": "statistical_parity"}, False)):
        fair = fitted(people, confidence=0.8, **settings)
        assert fair.certificate_.basis == "held-out test"
        content = fair.report(people.table("pandas"), people.y).content
        assert ("by large samples" in content["certificate"]["sentence"]) == rough
        assert any("holds by large samples" in text for text in content["caveats"]) == rough
