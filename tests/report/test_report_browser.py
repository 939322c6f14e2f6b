"""The report in a real browser: the slider, the numbers, hostile names, who can use it, how it looks.

Screenshots are written to ``artefacts/report/``; look at them after a change.
"""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from reported import HOSTILE, fitted, many

from felicific import Happiness, audit, plots
from felicific.report.words import Quantity, percent

# Numbers are compared on the very rows that were fitted on, which is warned about.
pytestmark = pytest.mark.filterwarnings("ignore::felicific.exceptions.FittedRowsWarning")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytest.importorskip("playwright", reason="needs playwright: pip install -e '.[browser]'")
if CHROMIUM is None:
    pytest.skip("needs Chromium: apt-get install chromium", allow_module_level=True)

ARTEFACTS = Path(__file__).parents[2] / "artefacts" / "report"


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def fair(people):
    return fitted(people, gap=0.5)


@pytest.fixture(scope="module")
def reports(fair, people, tmp_path_factory):
    """Three pages: a usual one, one of hostile names, one of many groups, classes and components."""
    folder = tmp_path_factory.mktemp("reports")
    hostile, x, y, group = many(
        5,
        2,
        {name: Happiness(lambda decision: float(decision), unit=name) for name in HOSTILE[:3]},
        HOSTILE,
        gap=dict.fromkeys(HOSTILE[:3], 0.1),
    )
    found = {
        "usual": fair.report(people.table("pandas"), people.y, command="felicific demo"),
        "hostile": hostile.report(
            x, y, sensitive_features=group, title=HOSTILE[0], command=HOSTILE[1], grouped_by=HOSTILE[1]
        ),
    }
    happiness = {
        f"measure {j}": Happiness(lambda decision, j=j: float((decision + j) % 5), unit="years")
        for j in range(6)
    }
    large, x, y, group = many(12, 5, happiness)
    found["many"] = large.report(x, y, sensitive_features=group)
    (folder / "audit.html").write_text(audit(large, x, y, sensitive_features=group).to_html(), "utf-8")
    for name, report in found.items():
        report.save(folder / f"{name}.html")
    outer = "<!DOCTYPE html><title>notebook</title><style>b { color: rgb(255, 0, 0) }</style><b>cell</b>"
    (folder / "notebook.html").write_text(outer + found["usual"]._repr_html_(), "utf-8")
    return folder, found


class Tab:
    """A page of a report, and everything it did that it should not."""

    def __init__(self, browser, path, **settings):
        self.context = browser.new_context(**({"viewport": {"width": 1100, "height": 900}} | settings))
        self.context.set_offline(True)
        self.page = self.context.new_page()
        self.said, self.requests, self.dialogs = [], [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.address = path.as_uri()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.context.close()

    def cell(self, name):
        return self.page.locator(f'[data-cell="{name}"]').inner_text().replace("\N{NO-BREAK SPACE}", " ")

    def check_quiet(self):
        """No error, no dialog, and no request but for the page itself."""
        assert self.said == []
        assert self.dialogs == []
        assert [url for url in self.requests if url != self.address] == []


@pytest.fixture
def tab(browser, reports):
    opened = []

    def make(name="usual", **settings):
        opened.append(Tab(browser, reports[0] / f"{name}.html", **settings))
        return opened[-1]

    yield make
    for one in opened:
        one.context.close()


def shown(number, quantity):
    return quantity(number).replace("\N{NO-BREAK SPACE}", " ")


# ---------------------------------------------------------------------------------------------------------
# The slider


def test_the_slider_moves_by_keyboard_and_the_numbers_follow(tab, fair, people, reports):
    """At every position stopped at, the page shows what ``fair.at`` and the people's own numbers give."""
    opened = tab()
    page, X = opened.page, people.table("pandas")
    content = reports[1]["usual"].content
    places, gap = content["frontier"]["positions"], content["today"]["components"][0]["gap"]["estimate"]
    quantity = Quantity.of("k$", gap)
    slider = page.locator("#slider")
    slider.focus()
    page.keyboard.press("Home")
    stops = set()
    for _ in range(6):
        position = int(slider.input_value())
        stops.add(position)
        allowed = places[position]["allowed"][0]
        chance = fair.at(gap=allowed).predict_proba(X)[:, 1]
        means = [np.mean((chance * people["loan"])[people["group"] == z]) for z in (0, 1)]
        accuracy = np.mean(np.where(people.y == 1, chance, 1 - chance))
        assert opened.cell("allowed") == shown(allowed, quantity)
        assert opened.cell("good") == percent(accuracy).replace("\N{NO-BREAK SPACE}", " ")
        assert opened.cell("gap-0") == quantity.cell(abs(means[0] - means[1]))
        assert [opened.cell(f"mean-{z}-0") for z in (0, 1)] == [quantity.cell(mean) for mean in means]
        assert opened.cell("bound-0") == quantity.cell(places[position]["bound"]["gaps"][0][1])
        assert page.locator("#rules li").all_inner_texts() == places[position]["sentences"]
        assert opened.cell("allowed") in slider.get_attribute("aria-valuetext").replace(
            "\N{NO-BREAK SPACE}", " "
        )
        for _ in range(7):
            page.keyboard.press("ArrowRight")
    assert len(stops) == 6
    page.keyboard.press("End")
    assert int(slider.input_value()) == len(places) - 1
    opened.check_quiet()


def test_the_slider_moves_by_mouse(tab, reports):
    """A click on the track and a drag move it, and the marker with it, to where the position lies."""
    opened = tab()
    page = opened.page
    places = reports[1]["usual"].content["frontier"]["positions"]
    slider, seen = page.locator("#slider"), []
    marks = page.locator('#choice [class*="above_"] path, #choice [class*="below_"] path')
    slider.scroll_into_view_if_needed()
    for share in (0.25, 0.75):
        box = slider.bounding_box()
        page.mouse.click(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
        position = int(slider.input_value())
        assert position == pytest.approx(share * (len(places) - 1), abs=2)
        boxes = [mark.bounding_box() for mark in marks.all()]
        assert boxes[0]["x"] == pytest.approx(boxes[1]["x"], abs=0.5)
        seen.append((places[position]["tau"], boxes[0]["x"]))
    box = slider.bounding_box()
    page.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 2, box["y"] + box["height"] / 2, steps=4)
    page.mouse.up()
    assert int(slider.input_value()) == 0
    seen.append((places[0]["tau"], marks.first.bounding_box()["x"]))
    (a, x), (b, y), (c, z) = seen
    assert (y - x) / (b - a) == pytest.approx((z - x) / (c - a), rel=0.02)
    opened.check_quiet()


def test_the_buttons_go_to_the_positions_with_a_name(tab, reports):
    """Each button goes where its name says, and says that it is pressed."""
    opened = tab()
    places = reports[1]["usual"].content["frontier"]["positions"]
    for i, place in enumerate(places):
        for name in place["names"]:
            button = opened.page.get_by_role("button", name=name, exact=True)
            button.click()
            assert opened.page.locator("#slider").input_value() == str(i)
            assert button.get_attribute("aria-pressed") == "true"
    opened.check_quiet()


# ---------------------------------------------------------------------------------------------------------
# Hostile names, notebooks, nothing loaded


@pytest.mark.parametrize("name", ["usual", "hostile", "many", "audit"])
def test_every_page_is_quiet(tab, name):
    """No error, no dialog, no request, at every position."""
    opened = tab(name)
    if name != "audit":
        opened.page.locator("#slider").focus()
        for key in ("Home", "PageUp", "PageUp", "End"):
            opened.page.keyboard.press(key)
    opened.check_quiet()


def test_hostile_names_stay_text_in_the_browser(tab, reports):
    """Markup in names is read by people, not by the browser: no element of it exists, and its letters are there."""
    opened = tab("hostile")
    page = opened.page
    assert page.locator("script").count() == 2
    assert page.locator("img, iframe, a, form").count() == 0
    text = page.locator("body").inner_text()
    for name in plots.labels(reports[1]["hostile"].content["decisions"]):
        assert name in text
    assert "</script><script>alert(1)" in text
    assert '"><img src=x' in text
    pictures = page.locator("figure svg text").all_text_contents()
    assert any(word.startswith('"><img') for word in pictures)
    opened.check_quiet()


def test_a_script_that_is_not_ours_does_not_run(browser, reports, tmp_path):
    """Even a script written into the file is refused by the page's own security policy."""
    page = (
        (reports[0] / "usual.html")
        .read_text("utf-8")
        .replace("</footer>", "</footer><script>alert(1)</script>")
    )
    (tmp_path / "altered.html").write_text(page, "utf-8")
    with Tab(browser, tmp_path / "altered.html") as opened:
        assert opened.dialogs == []
        assert any("Content Security Policy" in message for message in opened.said)


def test_a_notebook_shows_it_apart(tab):
    """Inside another page the report works, and neither changes the other's looks."""
    opened = tab("notebook")
    frame = opened.page.frame_locator("iframe")
    frame.locator("#slider").focus()
    before = frame.locator('[data-cell="allowed"]').inner_text()
    opened.page.keyboard.press("End")
    assert frame.locator('[data-cell="allowed"]').inner_text() != before
    colour = "element => getComputedStyle(element).color"
    assert opened.page.locator("b").evaluate(colour) == "rgb(255, 0, 0)"
    assert frame.locator("b").first.evaluate(colour) != "rgb(255, 0, 0)"
    assert opened.dialogs == []
    assert opened.said == []


# ---------------------------------------------------------------------------------------------------------
# Everybody can use it


@pytest.mark.parametrize(
    ("name", "scheme"),
    [("usual", "light"), ("usual", "dark"), ("hostile", "light"), ("many", "dark"), ("audit", "light")],
)
def test_axe_finds_nothing_serious(tab, name, scheme):
    """axe-core reports no violation that is serious or critical."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    opened = tab(name, color_scheme=scheme)
    found = axe.Axe().run(opened.page).response["violations"]
    serious = [
        (rule["id"], [node["html"] for node in rule["nodes"]][:3])
        for rule in found
        if rule["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_without_javascript_the_page_can_be_read(tab, reports):
    """The slider is absent, the proposed policy and a table of positions are there."""
    opened = tab(java_script_enabled=False)
    page = opened.page
    assert not page.locator("#slider").is_visible()
    assert page.locator("noscript .note").is_visible()
    start = next(
        p for p in reports[1]["usual"].content["frontier"]["positions"] if "proposed policy" in p["names"]
    )
    assert page.locator("#rules li").all_inner_texts() == start["sentences"]
    table = page.get_by_role("region", name="Table of positions")
    assert table.locator("tbody tr").count() >= 10
    assert "half of today's gap" in table.inner_text()


@pytest.mark.parametrize("name", ["usual", "hostile", "many", "audit"])
@pytest.mark.parametrize("width", [360, 1100])
def test_nothing_is_wider_than_the_window(tab, name, width):
    """On a telephone too, only tables scroll sideways, each by itself."""
    opened = tab(name, viewport={"width": width, "height": 800})
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


# ---------------------------------------------------------------------------------------------------------
# How it looks


def test_it_prints_on_a4(tab):
    """A PDF of A4 pages, without the slider, in dark letters whatever the screen's colours are."""
    opened = tab(color_scheme="dark")
    page = opened.page
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    document = page.pdf(path=ARTEFACTS / "print.pdf", prefer_css_page_size=True)
    boxes = {
        tuple(round(float(n)) for n in box.split())
        for box in re.findall(rb"/MediaBox\s*\[([^\]]+)\]", document)
    }
    assert boxes == {(0, 0, 595, 842)} or boxes == {(0, 0, 594, 842)}, boxes
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", document)) <= 8
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 680, "height": 962})
    assert not page.locator("#control").is_visible()
    red, green, blue = map(
        int, re.findall(r"\d+", page.locator("h1").evaluate("e => getComputedStyle(e).color"))[:3]
    )
    assert red + green + blue < 200
    page.screenshot(path=ARTEFACTS / "print.png", full_page=True)


def test_a_table_of_large_numbers_is_not_cut_on_paper(browser, people, tmp_path):
    happiness = Happiness(lambda decision, x: 1e6 * decision * x["loan"], name="credit", unit="$")
    fitted(people, happiness=happiness, gap=0.0).report(people.table("pandas"), people.y).save(
        tmp_path / "x.html"
    )
    with Tab(browser, tmp_path / "x.html", viewport={"width": 680, "height": 962}) as opened:
        opened.page.emulate_media(media="print")
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= 680


def test_six_measures_fit_on_paper(browser, people, tmp_path):
    """With six components no table is wider than an A4 page, and none is called as in a program."""
    both = ["equalized_odds", "statistical_parity"]
    fitted(people, happiness=both, gap=0.05).report(people.table("pandas"), people.y).save(
        tmp_path / "x.html"
    )
    with Tab(browser, tmp_path / "x.html", viewport={"width": 680, "height": 962}) as opened:
        opened.page.emulate_media(media="print")
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= 680
        text = opened.page.locator("body").inner_text()
        assert "decided 1, truly 0" in text
        assert "equalized_odds" not in text
        assert "statistical_parity" not in text


@pytest.mark.parametrize("width", [380, 1100])
def test_the_thumb_ends_under_the_marks(tab, width):
    """At both ends of the slider its thumb is straight below the marks in the charts, at any width."""
    page = tab(viewport={"width": 700, "height": 800}).page
    page.set_viewport_size({"width": width, "height": 800})
    page.wait_for_timeout(100)
    for end, inside in (("min", 8), ("max", -8)):
        slider, mark = page.evaluate(
            """end => {
                const slider = document.getElementById("slider");
                slider.value = slider[end];
                slider.dispatchEvent(new Event("input"));
                const box = slider.getBoundingClientRect();
                const mark = document.querySelector('#choice [class*="below_"] path').getBoundingClientRect();
                return [end === "min" ? box.left : box.right, (mark.left + mark.right) / 2];
            }""",
            end,
        )
        assert slider + inside == pytest.approx(mark, abs=1.5)


@pytest.mark.parametrize(
    ("name", "picture", "settings"),
    [
        ("usual", "light", {"color_scheme": "light"}),
        ("usual", "dark", {"color_scheme": "dark"}),
        ("usual", "narrow", {"viewport": {"width": 380, "height": 800}}),
        ("usual", "no-javascript", {"java_script_enabled": False}),
        ("many", "light", {"color_scheme": "light"}),
        ("hostile", "dark", {"color_scheme": "dark"}),
    ],
)
def test_screenshots(tab, picture, settings, name):
    """Pictures to look at; light and dark differ in their ground, and letters stand out from it."""
    opened = tab(name, **settings)
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    opened.page.screenshot(path=ARTEFACTS / f"{name}-{picture}.png", full_page=True)
    if picture in ("light", "dark"):
        style = opened.page.evaluate(
            "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
        )
        ground, letters = (sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in style)
        assert (ground > 700 > 200 > letters) if picture == "light" else (ground < 100 < 600 < letters)
