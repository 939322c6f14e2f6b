"""The report in a real browser: who can use it, what it says at every position, what is saved and what is printed.

Pictures are written to ``artefacts/report/``; look at them after a change.
"""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from report.paper import sheets, squeezed
from reported import HOSTILE
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from felicific import FairClassifier, Happiness, audit, compare
from felicific._audit.quantity import Quantity, count
from felicific._policy.signed import Signed
from felicific._report import data

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytest.importorskip("playwright", reason="needs playwright: pip install -e '.[browser]'")
if CHROMIUM is None:
    pytest.skip("needs Chromium: apt-get install chromium", allow_module_level=True)

ARTEFACTS = Path(__file__).parents[2] / "artefacts" / "report"
ARTEFACTS.mkdir(parents=True, exist_ok=True)

#: Names that are written from the right, and names that no page may obey.
NAMES = ("نساء", "גברים", *HOSTILE)

#: Every page that is looked at.
CHOICES = ("usual", "blind", "certified", "twelve", "six", "hostile", "large")
PAGES = (*CHOICES, "audit")

FUNDING = Happiness("decision * loan", name="funding", unit="$")

#: A4 without its margins, in CSS pixels.
SHEET = {"width": 688, "height": 1032}


# ---------------------------------------------------------------------------------------------------------
# Pages


@dataclass(frozen=True)
class Made:
    """A page, and what it is of."""

    path: Path
    report: Any = None
    fair: Any = None
    X: Any = None
    y: Any = None
    group: Any = None

    @property
    def places(self):
        return self.report.content["positions"]


def world(n, seed, groups=2, classes=2):
    """People of some groups; those of the last are worth least to the model."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, groups, n)
    x = rng.normal(size=n) - 0.7 * z / (groups - 1)
    cuts = [0.0] if classes == 2 else np.linspace(-1.0, 1.0, classes - 1)
    y = np.digitize(x + 0.7 * rng.normal(size=n), cuts)
    return pd.DataFrame({"x": x, "loan": rng.lognormal(0, 0.5, n) * 1e5}), y, z


def make(path, names=("Female", "Male"), classes=2, people=3_000, options=None, **settings):
    """Fit on some people, report about others, save the page."""

    def drawn(n, seed):
        X, y, z = world(n, seed, len(names), classes)
        # An array of objects holds what no column of a table does, such as a lone surrogate.
        return X, y, np.array([*names, None], dtype=object)[z]

    X, y, _ = world(1_000, 5, len(names), classes)
    model = FrozenEstimator(LogisticRegression().fit(X[["x"]], y))
    asked = {"happiness": FUNDING, "gap": 2_000.0, "policy": "score", "random_state": 0} | settings
    X, y, group = drawn(people, 1)
    fair = FairClassifier(model, **asked).fit(X, y, sensitive_features=group)
    X, y, group = drawn(people + 1_000, 2)
    report = fair.report(X, y, sensitive_features=group, **options or {})
    report.save(path)
    return Made(path, report, fair, X, y, group)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """One page of each kind: usual, one that may not see the group, a certified one, and extremes."""
    folder = tmp_path_factory.mktemp("pages")
    rate = Happiness("decision == 1", name="approved", unit="share", rate=True)
    six = {
        f"measure {j}": Happiness(f"(decision >= {j % 3 + 1}) * {1 + j} + 0.3 * decision * ({j} > 2)", unit="days")
        for j in range(6)
    }  # fmt: skip
    odd = {
        "مال": Happiness("decision * loan", unit="ر.س"),
        HOSTILE[0]: Happiness("decision * 1.0", unit=HOSTILE[1]),
    }
    found = {
        "usual": make(
            folder / "usual.html",
            options={
                "title": "Loans by sex", "period": "2025", "labels": "all", "command": "felicific demo",
                "names": {0: "declined", 1: "approved"},
                "also": {"approved": "decision == 1", "decided rightly": "decision == y"},
            },
        ),
        "blind": make(folder / "blind.html", gap=15_000.0, sees_group=False),
        "certified": make(folder / "certified.html", happiness=rate, gap=0.15, confidence=0.9),
    }  # fmt: skip
    # Rows of a table are alike: with fewer positions extreme pages take a browser half the time.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "ROUND", 12)
        found |= {
            "twelve": make(folder / "twelve.html", [f"region {z}" for z in range(12)]),
            "six": make(
                folder / "six.html", "abc", 4, happiness=six, gap=dict.fromkeys(six, 0.1), policy="label"
            ),
            "hostile": make(
                folder / "hostile.html", NAMES, happiness=odd, gap={"مال": 2_000.0, HOSTILE[0]: 0.02},
                options={
                    "title": f"\N{RIGHT-TO-LEFT OVERRIDE}{HOSTILE[0]}", "period": HOSTILE[0], "command": HOSTILE[1],
                    "names": {0: "مرفوض", 1: HOSTILE[0]}, "also": {HOSTILE[1]: "decision == 1"},
                },
            ),
            "large": make(
                folder / "large.html", gap=0.0, happiness=Happiness("decision * loan * 2e4", name="credit", unit="$")
            ),
        }  # fmt: skip
    X, y, z = world(3_000, 3, 6)
    X["group"] = np.array(["Asian", "Black", "Hispanic", "Indigenous", "White", "other or not stated"])[z]
    looked = audit(
        (X["x"] > 0).astype(int), X, y, happiness=FUNDING, gap=20_000.0, sensitive_features="group"
    )
    (folder / "audit.html").write_text(looked.to_html(), "utf-8")
    found["audit"] = Made(folder / "audit.html")
    outer = "<!DOCTYPE html><title>notebook</title><style>b { color: rgb(255, 0, 0) }</style><b>cell</b>"
    (folder / "notebook.html").write_text(outer + found["usual"].report._repr_html_(), "utf-8")
    found["notebook"] = Made(folder / "notebook.html")
    return found


# ---------------------------------------------------------------------------------------------------------
# Tabs


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=["--no-sandbox"])
        yield browser
        browser.close()


class Tab:
    """A page without a network, and everything it did that it should not."""

    def __init__(self, browser, path, fragment="", **settings):
        self.context = browser.new_context(**({"viewport": {"width": 1100, "height": 900}} | settings))
        self.context.set_offline(True)
        self.page = self.context.new_page()
        self.said, self.requests, self.dialogs = [], [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.address = path.as_uri()
        self.page.goto(self.address + fragment)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.context.close()

    def text(self, key):
        """What stands under a key, the same wherever it stands."""
        found = {
            " ".join(text.split()) for text in self.page.locator(f'[data-t="{key}"]').all_text_contents()
        }
        assert len(found) == 1, (key, found)
        return plain(found.pop())

    def press(self, *keys):
        self.page.locator("#slider").focus()
        for key in keys:
            self.page.keyboard.press(key)

    @property
    def fragment(self):
        return self.page.evaluate("location.hash").removeprefix("#")

    @property
    def data(self):
        return json.loads(self.page.locator("#data").text_content())

    def open_folds(self):
        self.page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")

    def check_quiet(self):
        """No error, no dialog, and no request but for the page itself."""
        assert self.said == []
        assert self.dialogs == []
        assert {url.partition("#")[0] for url in self.requests if not url.startswith("blob:")} <= {
            self.address
        }


@pytest.fixture
def tab(browser, pages):
    """Opens pages; whatever a test does with one, the page stays quiet."""
    opened = []

    def open_tab(name="usual", fragment="", **settings):
        opened.append(Tab(browser, pages[name].path, fragment, **settings))
        return opened[-1]

    yield open_tab
    for one in opened:
        one.check_quiet()
        one.context.close()


def plain(text):
    """A text with ordinary spaces, and without signs that keep lines together."""
    return text.replace("\N{NO-BREAK SPACE}", " ").replace("\N{WORD JOINER}", "")


# ---------------------------------------------------------------------------------------------------------
# The numbers


class Apart:
    """What the page should say of one measure, from the classifier and audits alone."""

    def __init__(self, made):
        self.fair, self.X, self.y, self.group = made.fair, made.X, made.y, made.group
        self.baseline = self.fair.estimator_.predict(self.X[["x"]])
        self.before = audit(self.baseline, self.X, self.y, happiness=FUNDING, sensitive_features=self.group)
        self.policies = len(made.places) - 1
        proposed = self.audited(self.fair)
        change = compare(self.before, proposed)
        halves = [
            (one.high - one.low) / 2
            for one in (self.before["funding"].gap, proposed["funding"].gap, change["funding"].gap)
        ]
        self.dollars = Quantity.of("$", halves)
        self.costs = Quantity.of("", [500.0 * (change.loss.high - change.loss.low)])
        self.goods = Quantity.of("share", [(change.loss.high - change.loss.low) / 2])

    def audited(self, fair):
        return audit(fair, self.X, self.y, sensitive_features=self.group)

    def texts(self, place):
        """Every number at a position, under the page's key."""
        moved = self.fair if place["proposed"] else self.fair.at(gap=place["aimed"][0])
        after, probabilities = self.audited(moved), moved.predict_proba(self.X, sensitive_features=self.group)
        alpha = 0.05 if place["proposed"] else 0.05 / self.policies
        sure = compare(self.before, after, confidence=1 - alpha)
        means = compare(self.before, after, confidence=1 - alpha / len(self.fair.groups_))["funding"].means
        found = {
            "gap-0": self.dollars(after["funding"].gap.estimate),
            "gap-0-change": f"Change {self.change(sure['funding'].gap)}, the same people compared"
            + ("." if place["proposed"] else ", all positions at once."),
            "cost": self.costs.change(1000 * (after.loss.estimate - self.before.loss.estimate)),
            "good": self.goods(1 - after.loss.estimate),
            "sha-text": moved.policy_.sha256,
        }  # fmt: skip
        touched = {"gain": 0.0, "lose": 0.0}
        for z, who in enumerate(self.fair.groups_):
            up, down = (
                probabilities[(self.group == who) & (self.baseline == d), 1 - d].sum() for d in (0, 1)
            )
            moves = sorted(((up, "declined", "approved"), (down, "approved", "declined")), reverse=True)
            flows = [f"{count(n)} from {a} to {b}" for n, a, b in moves if n > 1e-6]
            found |= {
                f"who-0-{z}-mean": self.dollars(after["funding"].means[who].estimate),
                f"who-0-{z}-change": self.change(means[who]),
                f"who-0-{z}-gain": count(up),
                f"who-0-{z}-lose": count(down),
                f"touched-{z}-gain": count(up),
                f"touched-{z}-lose": count(down),
                f"flow-{z}": ", ".join(flows) or "nobody gets another decision",
            }
            touched = {"gain": touched["gain"] + up, "lose": touched["lose"] + down}
        found |= {f"touched-{way}": count(number) for way, number in touched.items()}
        found["changed"] = count(sum(touched.values()))
        found["randomized"] = count(((probabilities > 0).sum(axis=1) > 1).sum())
        return {key: plain(text) for key, text in found.items()}

    def change(self, interval):
        span = self.dollars.change_span(interval.low, interval.high)
        return f"{self.dollars.change(interval.estimate)} ({span})"


def test_the_numbers_are_those_of_fair_at_audit_and_compare(tab, pages):
    """Where it begins, and moved by keyboard, mouse and button, every number of the page is one computed apart."""
    opened, made = tab(), pages["usual"]
    page, apart, seen = opened.page, Apart(made), []

    def check():
        place = next(place for place in made.places if place["hash"] == (opened.fragment or "gap=2000.0"))
        expected = apart.texts(place)
        assert {key: opened.text(key) for key in expected} == expected
        seen.append(place["hash"])

    check()
    opened.press("PageUp", "ArrowRight", "ArrowRight")
    check()
    box = page.locator("#slider").bounding_box()
    page.mouse.click(box["x"] + 10 + 0.8 * (box["width"] - 20), box["y"] + box["height"] / 2)
    check()
    page.get_by_role("button", name="half of the model's gap").click()
    check()
    assert len(set(seen)) == 4


def test_everything_follows_the_slider(tab, pages):
    """At every position verdict, flags, dock, card, certificate and the block that is signed are of that position."""
    opened, content = tab("certified"), pages["certified"].report.content
    opened.press("Home")
    for i, place in enumerate(content["positions"]):
        verdict = place["verdict"]
        shown = opened.page.evaluate(
            """() => {
                const text = (key) => document.querySelector(`[data-t="${key}"]`).textContent;
                const box = document.getElementById("verdict"), row = document.getElementById("certificate");
                return {
                    kind: box.dataset.verdict, said: ["headline", "sentence", "remedy"].map(text),
                    flags: [...document.querySelectorAll("#flags li")].map((flag) => flag.dataset.flag),
                    dock: document.querySelector("#dock .word").dataset.verdict, at: text("dock-at"),
                    where: [text("verdict-at"), text("signed-at")],
                    value: document.getElementById("slider").getAttribute("aria-valuetext"),
                    row: [row.className, row.lastElementChild.textContent,
                          getComputedStyle(row.children[1]).textDecorationLine],
                    sha: text("sha-text"),
                };
            }"""
        )
        assert shown["kind"] == shown["dock"] == verdict["kind"]
        assert shown["said"] == [verdict["headline"], verdict["sentence"], verdict["remedy"]]
        assert shown["flags"] == [flag["kind"] for flag in verdict["flags"]]
        assert all(shown["at"].lower() in text.lower() for text in (*shown["where"], shown["value"]))
        assert shown["value"].endswith(verdict["headline"])
        assert shown["sha"] == (place["policy_sha256"] or "none: nothing changes")
        if i == content["certified"]:
            assert shown["row"][0] == "on"
            assert shown["row"][2] == "none"
        else:
            assert shown["row"][0] == "off"
            assert shown["row"][1].startswith("another position")
            assert shown["row"][2] == "line-through"
        opened.press("ArrowRight")
    assert "certified" in {place["verdict"]["kind"] for place in content["positions"]}


# ---------------------------------------------------------------------------------------------------------
# The slider


def test_keys_move_by_positions(tab, pages):
    """Arrows go to the next position, Page keys five on, Home and End to the ends; nothing goes beyond them."""
    opened = tab()
    hashes = [place["hash"] for place in pages["usual"].places]
    here = pages["usual"].report.content["proposed"]
    steps = {"ArrowRight": 1, "ArrowUp": 1, "ArrowLeft": -1, "ArrowDown": -1, "PageUp": 5, "PageDown": -5}
    for key in (*steps, "End", "ArrowRight", "PageUp", "PageDown", "Home", "ArrowLeft", "PageDown", "PageUp"):
        opened.press(key)
        here = {"Home": 0, "End": len(hashes) - 1}.get(key, here + steps.get(key, 0))
        here = min(max(here, 0), len(hashes) - 1)
        assert opened.fragment == hashes[here], key
        assert float(opened.page.locator("#slider").input_value()) == pytest.approx(opened.data["at"][here])


def test_the_track_is_linear_in_the_gap_and_snaps(tab, pages):
    """A click lands at the position whose gap is nearest to that share of the way, and the thumb goes to its place."""
    opened, places = tab(), pages["usual"].places
    page, slider = opened.page, opened.page.locator("#slider")

    def spot(share):
        # Flags come and go above it, so the slider is not always at one height.
        box = slider.bounding_box()
        return box["x"] + 10 + share * (box["width"] - 20), box["y"] + box["height"] / 2

    # The baseline stands a little apart from the last policy, so the way is a little longer than the baseline's gap.
    whole = places[20]["tau"] / opened.data["at"][20]
    assert whole == pytest.approx(places[-1]["tau"], rel=0.03)
    for share in (0.217, 0.5, 0.693):
        page.mouse.click(*spot(share))
        place = next(place for place in places if place["hash"] == opened.fragment)
        assert place == min(places, key=lambda one: abs(one["tau"] - share * whole))
        assert float(slider.input_value()) == pytest.approx(place["tau"] / whole, abs=1e-4)
    page.mouse.move(*spot(0.693))
    page.mouse.down()
    page.mouse.move(*spot(-0.01), steps=4)
    page.mouse.up()
    assert opened.fragment == places[0]["hash"]


@pytest.mark.parametrize("width", [390, 1100])
def test_the_thumb_stands_over_its_tick(tab, pages, width):
    """At both ends and at the proposed position the thumb is over the tick below, at any width."""
    opened = tab(viewport={"width": width, "height": 800})
    ticks = opened.page.locator(".ticks i")
    for key, tick in (("Home", ticks.first), ("End", ticks.last)):
        opened.press(key)
        box, mark = opened.page.locator("#slider").bounding_box(), tick.bounding_box()
        # The thumb is 20 pixels wide, so its middle stays 10 pixels inside.
        thumb = box["x"] + 10 + float(opened.page.locator("#slider").input_value()) * (box["width"] - 20)
        assert mark["x"] + mark["width"] / 2 == pytest.approx(thumb, abs=1)


def test_buttons_go_to_the_positions_with_a_name(tab, pages):
    """Each button goes where its name says, and says that it is pressed."""
    opened = tab()
    for place in pages["usual"].places:
        for name in place["names"]:
            button = opened.page.get_by_role("button", name=name, exact=True)
            button.click()
            assert opened.fragment == place["hash"]
            assert button.get_attribute("aria-pressed") == "true"
    assert opened.page.locator('#dock [aria-pressed="true"]').count() == 1
    assert opened.text("headline") == "Nothing changes."


def test_the_address_names_the_position(tab, pages):
    """It is read when the page opens and when it changes; one that is unknown is the proposed position."""
    places, start = pages["usual"].places, pages["usual"].report.content["proposed"]
    opened = tab(fragment=f"#{places[7]['hash']}")
    assert opened.text("sha-text") == places[7]["policy_sha256"]
    for fragment, sha256 in (
        ("baseline", "none: nothing changes"),
        (places[3]["hash"], places[3]["policy_sha256"]),
        ("gap=0.123", places[start]["policy_sha256"]),
        (places[4]["hash"], places[4]["policy_sha256"]),
        ("", places[start]["policy_sha256"]),
    ):
        opened.page.evaluate("hash => { location.hash = hash }", fragment)
        shows = "sha => document.querySelector('[data-t=\"sha-text\"]').textContent === sha"
        opened.page.wait_for_function(shows, arg=sha256)
    assert tab(fragment="#gap=what").text("sha-text") == places[start]["policy_sha256"]


# ---------------------------------------------------------------------------------------------------------
# What is saved

SIGNED = {
    "name": "A. Person", "role": "Head of credit", "date": "2025-03-04", "next_audit": "2026-03-04",
    "why": 'Two lines,\nand "quotes".', "objections": "None were heard; </script>",
}  # fmt: skip


def saved(page, frame, path):
    """Fill in everything, save, and read what was downloaded."""
    for name, text in SIGNED.items():
        frame.locator(f'[data-sign="{name}"]').fill(text)
    with page.expect_download() as download:
        frame.get_by_role("button", name="Save decision.json").click()
    assert download.value.suggested_filename == "decision.json"
    download.value.save_as(path)
    return json.loads(path.read_text("utf-8"))


def check_decision(found, place, content, fair):
    """Exactly what was to be said of a position, and who signed it."""
    verdict = place["verdict"]
    assert found == {
        "format": "felicific decision",
        "version": 2,
        "title": "Loans by sex",
        "position": {"baseline": True} if place["baseline"] else {"gap": {"funding": place["aimed"][0]}},
        "verdict": verdict["kind"],
        "reason": verdict["reason"],
        "sentence": verdict["sentence"],
        "flags": [flag["kind"] for flag in verdict["flags"]],
        "policy_sha256": None if place["baseline"] else fair.at(gap=place["aimed"][0]).policy_.sha256,
        "people_sha256": content["fingerprints"]["people"],
        "model": "LogisticRegression",
        "felicific": content["versions"]["felicific"],
        "signed": SIGNED,
    }


@pytest.mark.parametrize("keys", [("PageUp", "ArrowRight"), ("End",)], ids=["moved", "baseline"])
def test_what_is_saved_is_what_was_signed(tab, pages, tmp_path, keys):
    """decision.json has the position, the verdict, both SHA-256 and what was filled in; the library reads it."""
    opened, made = tab(), pages["usual"]
    opened.press(*keys)
    place = next(place for place in made.places if place["hash"] == opened.fragment)
    assert not place["proposed"]
    check_decision(
        saved(opened.page, opened.page, tmp_path / "decision.json"), place, made.report.content, made.fair
    )
    signed = Signed.read(tmp_path / "decision.json")
    assert signed.gaps == ({} if place["baseline"] else {"funding": place["aimed"][0]})
    assert (signed.name, signed.next_audit) == ("A. Person", "2026-03-04")
    if not place["baseline"]:
        signed.check(made.fair.at(gap=place["aimed"][0]).policy_)


# ---------------------------------------------------------------------------------------------------------
# Hostile names, notebooks, nothing loaded


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_quiet(tab, name):
    """No error, no dialog, no request, at any position and with everything unfolded. A picture is kept."""
    opened = tab(name)
    opened.page.screenshot(path=ARTEFACTS / f"{name}-light.png", full_page=True)
    opened.open_folds()
    if name != "audit":
        for place in opened.data["hashes"][::4]:
            opened.page.evaluate("hash => { location.hash = hash }", place)
        opened.press("End", "Home")
    opened.check_quiet()


def test_the_monitor_sees_what_a_page_must_not_do(browser, tmp_path):
    """The instrument notices an error, a dialog and a request."""
    (tmp_path / "loud.html").write_text(
        "<!DOCTYPE html><img src='http://felicific.invalid/x.png'><script>alert(1); nobody()</script>",
        "utf-8",
    )
    with Tab(browser, tmp_path / "loud.html") as opened:
        opened.page.wait_for_timeout(50)
        assert opened.dialogs == ["1"]
        assert any("nobody" in message for message in opened.said)
        assert "http://felicific.invalid/x.png" in opened.requests


def test_hostile_names_stay_text(tab):
    """Markup in names is read by people, not by the browser, also when the slider moves: no element of it exists."""
    opened = tab("hostile")
    for _ in range(2):
        text = opened.page.locator("body").inner_text()
        assert opened.page.locator("script").count() == 2
        assert opened.page.locator("img, iframe, a, form").count() == 0
        assert "</script><script>alert(1)</script>" in text
        assert '"><img src=x onerror=alert(1)>' in text
        assert "{{ 7*7 }}" in text
        assert "نساء" in text
        assert not re.search("[\x00\u202e]", text)
        opened.press("PageUp")
    whole = opened.page.locator("bdi[title]").first
    assert whole.inner_text().endswith("…")
    assert len(whole.get_attribute("title")) > 100


def test_a_name_from_the_right_turns_nothing_around_it(tab):
    """Every name of a group stands by itself, so that numbers beside it stay where they are."""
    opened = tab("hostile")
    row = opened.page.locator("#card .rows > div", has_text="גברים").first
    name, people = row.locator("bdi").bounding_box(), row.locator(".muted").bounding_box()
    assert people["x"] >= name["x"] + name["width"] - 1


def test_a_script_that_is_not_ours_does_not_run(browser, pages, tmp_path):
    """Even a script written into the file is refused by the page's own security policy."""
    page = pages["usual"].path.read_text("utf-8").replace("</footer>", "</footer><script>alert(1)</script>")
    (tmp_path / "altered.html").write_text(page, "utf-8")
    with Tab(browser, tmp_path / "altered.html") as opened:
        assert opened.dialogs == []
        assert any("Content Security Policy" in message for message in opened.said)


def test_a_notebook_shows_it_apart(tab, pages, tmp_path):
    """In a notebook's frame the slider moves and the decision is saved, and neither page changes the other's looks."""
    opened, made = tab("notebook"), pages["usual"]
    frame = opened.page.frame_locator("iframe")
    frame.locator("#slider").focus()
    opened.page.keyboard.press("End")
    assert frame.locator("#verdict .head").inner_text() == "Nothing changes."
    opened.page.keyboard.press("PageDown")
    check_decision(
        saved(opened.page, frame, tmp_path / "decision.json"), made.places[-6], made.report.content, made.fair
    )
    colour = "element => getComputedStyle(element).color"
    assert opened.page.locator("b").evaluate(colour) == "rgb(255, 0, 0)"
    assert frame.locator("b").first.evaluate(colour) != "rgb(255, 0, 0)"


# ---------------------------------------------------------------------------------------------------------
# Everybody can use it


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(tab, name):
    """No rule that axe-core runs finds anything of any level, in light and dark, unfolded and moved."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python"
    ).Axe()
    opened = tab(name)
    opened.open_folds()
    for scheme in ("light", "dark"):
        opened.page.emulate_media(color_scheme=scheme)
        # Every rule is run; only of those that find something all places are told.
        found = axe.run(opened.page, options={"resultTypes": ["violations"]}).response
        assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found["violations"]] == []
        assert len(found["passes"]) > 15
        if name != "audit":
            opened.press("PageUp")


def test_axe_finds_what_is_wrong(browser, tmp_path):
    """The instrument notices a picture without words."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python"
    ).Axe()
    (tmp_path / "bad.html").write_text("<!DOCTYPE html><title>x</title><img src='data:,'>", "utf-8")
    with Tab(browser, tmp_path / "bad.html") as opened:
        assert {rule["id"] for rule in axe.run(opened.page).response["violations"]} >= {
            "image-alt",
            "html-has-lang",
        }


def test_without_javascript_the_page_can_be_read(tab, pages):
    """The dock is absent, a note says why; the proposed policy and a table of all positions are there."""
    opened, content = tab(java_script_enabled=False), pages["usual"].report.content
    page, places = opened.page, content["positions"]
    for hidden in ("#dock", "#slider", "#save", "#print"):
        assert not page.locator(hidden).is_visible()
    assert page.locator("noscript .note").is_visible()
    assert page.locator("#verdict .head").inner_text() == places[content["proposed"]]["verdict"]["headline"]
    assert opened.text("sha-text") == pages["usual"].fair.policy_.sha256
    page.locator("#positions summary").click()
    rows = page.locator("#positions tbody tr")
    assert rows.count() == len(places)
    assert "half of the model's gap" in page.locator("#positions").inner_text()
    assert rows.nth(content["proposed"]).locator("th").inner_text().split() == ["$2,000", "proposed"]


#: Numbers of an axis that touch their neighbours, and words of the card that leave it.
CROWDED = """() => [
    ...[...document.querySelectorAll(".axis svg")].flatMap((axis) => {
        const boxes = [...axis.querySelectorAll("text")].map((text) => text.getBoundingClientRect());
        const seen = boxes.filter((box) => box.width).sort((a, b) => a.left - b.left);
        return seen.slice(1).filter((box, i) => box.left < seen[i].right).map((box) => `axis at ${box.left}`);
    }),
    ...[...document.querySelectorAll("#card > div")].flatMap((part) =>
        [...part.querySelectorAll("*")].filter(
            (one) => one.getBoundingClientRect().right > part.getBoundingClientRect().right
        ).map((one) => one.textContent)
    ),
]"""


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_wider_than_the_window(tab, name):
    """At any width and position, with everything unfolded: no scroll bar, no crowded axis, nothing leaves the card."""
    opened = tab(name)
    opened.open_folds()
    for width in (1100, 900, 700, 600, 390):
        opened.page.set_viewport_size({"width": width, "height": 800})
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width, width
        assert opened.page.evaluate(CROWDED) == [], width
        if name != "audit":
            opened.press("ArrowRight")


def test_large_numbers_are_whole_on_a_phone(tab):
    """$1.2 billion are written in words, inside the window, and nowhere cut."""
    opened = tab("large", viewport={"width": 390, "height": 844})
    page = opened.page
    found = page.get_by_text(re.compile(r"\$1\.2\d?\sbillion"))
    assert found.count() >= 1
    for one in found.all():
        if one.is_visible():
            box = one.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 390
    cut = page.evaluate(
        """() => [...document.querySelectorAll("body *")].filter((one) => {
            const style = getComputedStyle(one);
            return one.className !== "hidden" && style.overflowX !== "visible" && one.scrollWidth >
            one.clientWidth
                && one.clientWidth > 1 && !(one instanceof SVGElement);
        }).map((one) => one.outerHTML.slice(0, 80))"""
    )
    assert cut == []
    # The labels of an axis stand in a drawing of their own, as wide as the longest.
    for label in page.locator("#choice .axes > svg:first-child text").all():
        assert label.bounding_box()["x"] >= 0


def test_an_audit_is_one_screen(tab):
    """Six groups fit into 1200 by 900 pixels without scrolling, in light and dark; the page runs no script."""
    opened = tab("audit", viewport={"width": 1200, "height": 900})
    assert opened.page.evaluate("document.documentElement.scrollHeight") <= 900
    assert opened.page.locator("#groups .lane .name small").count() == 7
    assert opened.page.locator("script").count() == 0
    assert "script-src" not in opened.page.locator("meta[http-equiv]").get_attribute("content")


# ---------------------------------------------------------------------------------------------------------
# Paper


def printed(opened, name):
    """What stands on each sheet of A4; the sheets are kept, as pictures if they can be drawn."""
    path = ARTEFACTS / f"{name}.pdf"
    document = opened.page.pdf(path=path, prefer_css_page_size=True)
    boxes = {
        tuple(round(float(number)) for number in box.split())
        for box in re.findall(rb"/MediaBox\s*\[([^\]]+)\]", document)
    }
    assert boxes <= {(0, 0, 595, 842), (0, 0, 594, 842)}, boxes
    if shutil.which("pdftoppm"):
        subprocess.run(
            ["pdftoppm", "-r", "80", "-l", "3", "-png", path, path.with_suffix("")], check=True, timeout=60
        )
    return sheets(document)


def on_first(sheet):
    """Whether the first sheet ends with what is promised, after verdict, card and the block that is signed."""
    heads = ["Verdict.", "Who is touched", "Sign", "What is promised", "Certificate"]
    places = [sheet.find(squeezed(head)) for head in heads]
    return -1 not in places and places == sorted(places)


@pytest.mark.parametrize("name", ["usual", "blind", "certified", "twelve", "large"])
def test_the_first_sheet_is_what_is_signed(tab, pages, name):
    """Page one holds verdict, card, sign and promise; who gains begins the next; folds are open, the dock is gone."""
    found = printed(tab(name), f"{name}-a4")
    assert on_first(found[0])
    assert squeezed("Who gains, who loses") not in found[0]
    assert found[1].startswith(squeezed("Who gains, who loses"))
    text, content = "".join(found), pages[name].report.content
    assert "Aimforagap" not in text
    assert "Savedecision.json" not in text
    assert squeezed("at most, at all positions together") in text
    for rule in content["positions"][content["proposed"]]["rules"]:
        assert squeezed(rule) in text
    assert 3 <= len(found) <= 8


@pytest.mark.parametrize("name", ["six", "hostile"])
def test_what_is_signed_is_never_split(tab, name):
    """Where measures or names leave no room on the first sheet, the block that is signed is whole on one of two."""
    found = printed(tab(name), f"{name}-a4")
    whole = [
        all(squeezed(part) in sheet for part in ("Policy SHA-256", "Objections heard")) for sheet in found
    ]
    assert sum(whole[:2]) == sum(whole) == 1


def test_paper_names_the_position_it_was_moved_to(tab, pages):
    """Moved on a dark screen, the sheets are light, and verdict and sign name the moved position."""
    opened, made = tab("certified", color_scheme="dark"), pages["certified"]
    opened.press("PageUp", "PageUp")
    opened.page.locator('[data-sign="why"]').fill("The board asked for it. " * 12)
    opened.page.locator('[data-sign="name"]').fill("A. Person")
    opened.page.locator('[data-sign="date"]').fill("2025-03-04")
    place = next(place for place in made.places if place["hash"] == opened.fragment)
    opened.page.evaluate(
        "addEventListener('beforeprint', () => { focused = document.activeElement.tagName })"
    )
    first = printed(opened, "moved-a4")[0]
    # Nothing looks marked on paper, and afterwards whoever was writing goes on.
    assert opened.page.evaluate("focused") == "BODY"
    assert opened.page.evaluate("document.activeElement.dataset.sign") == "date"
    assert on_first(first)
    at = squeezed(opened.text("dock-at"))
    assert f"Verdict.Atagapofatmost{at}" in first
    assert f"Positionagapofatmost{at}" in first
    assert place["policy_sha256"] in first
    assert squeezed(place["verdict"]["sentence"]) in first
    assert "anotherposition" in first
    assert squeezed("The board asked for it. " * 12) in first
    opened.page.emulate_media(media="print", color_scheme="dark")
    opened.page.set_viewport_size(SHEET)
    ground, letters = shades(opened)
    assert letters < 200 < 700 < ground
    for hidden in ("#dock", ".acts"):
        assert not opened.page.locator(hidden).is_visible()
    opened.page.screenshot(path=ARTEFACTS / "moved-print.png", full_page=True)


# ---------------------------------------------------------------------------------------------------------
# How it looks


def shades(opened):
    """How bright the ground and the letters are, of 765."""
    style = opened.page.evaluate(
        "[getComputedStyle(document.documentElement).backgroundColor, getComputedStyle(document.body).backgroundColor,"
        " getComputedStyle(document.body).color]"
    )
    return [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in style][1:]


PICTURES = {
    "usual-light": ("usual", {}),
    "usual-dark": ("usual", {"color_scheme": "dark"}),
    "hostile-dark": ("hostile", {"color_scheme": "dark"}),
    "usual-phone": ("usual", {"viewport": {"width": 390, "height": 844}}),
    "large-phone": ("large", {"viewport": {"width": 390, "height": 844}}),
    "usual-no-javascript": ("usual", {"java_script_enabled": False}),
}


@pytest.mark.parametrize("picture", PICTURES)
def test_pictures(tab, picture):
    """Pictures to look at; light and dark differ in their ground, and letters stand out from it."""
    name, settings = PICTURES[picture]
    opened = tab(name, **settings)
    opened.page.screenshot(path=ARTEFACTS / f"{picture}.png", full_page=True)
    ground, letters = shades(opened)
    assert (ground < 100 < 600 < letters) if "dark" in picture else (letters < 200 < 700 < ground)


def test_the_dock_stays_when_the_page_scrolls(tab):
    """Wherever a reader is, the slider is at the top of the window; using it scrolls nothing, and it hides no focus."""
    opened = tab()
    page, dock = opened.page, opened.page.locator("#dock")
    page.evaluate("window.scrollTo(0, document.getElementById('who').offsetTop)")
    before = page.evaluate("scrollY")
    opened.press("ArrowRight", "ArrowLeft")
    page.keyboard.press("Tab")
    assert dock.bounding_box()["y"] == pytest.approx(0, abs=1)
    assert page.evaluate("scrollY") == before
    page.screenshot(path=ARTEFACTS / "usual-scrolled.png")
    page.locator("#print").focus()
    for _ in range(8):
        page.keyboard.press("Shift+Tab")
        focused = page.evaluate(
            "(({ top, bottom }) => ({ top, bottom }))(document.activeElement.getBoundingClientRect())"
        )
        inside = page.evaluate("document.getElementById('dock').contains(document.activeElement)")
        box = dock.bounding_box()
        assert inside or focused["top"] >= box["y"] + box["height"] - 1
    opened.press("PageUp", "PageUp")
    page.screenshot(path=ARTEFACTS / "usual-moved.png", full_page=True)
