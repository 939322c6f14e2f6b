"""The report on amounts in a real browser: who can read it, at any width, in light and dark, on paper.

Pictures are written to ``artefacts/report/``; look at them after a change.
"""

import pytest
from report.paper import sheets
from report.test_report_browser import ARTEFACTS, SHEET, Tab, browser  # noqa: F401  # the fixture is used by name
from reported import HOSTILE, amounts_world, fitted_amounts

from felicific import Happiness, audit

NAMES = ("نساء", "גברים", *HOSTILE)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A usual page, one of many groups and measures, one of hostile names, and one of an audit of amounts."""
    folder = tmp_path_factory.mktemp("amounts")
    several = {"pay": Happiness("decision", unit="$"), "spread": "distributional_parity"}
    odd = {HOSTILE[0]: Happiness("decision", unit=HOSTILE[1]), HOSTILE[4]: "distributional_parity"}
    made = {
        "usual": (("Female", "Male"), {}, {"unit": "hours", "title": "Hours by sex", "period": "2025"}),
        "five": ([f"group {i}" for i in range(5)], {"happiness": several, "gap": {"pay": 1.0, "spread": 0.1}}, {}),
        "hostile": (NAMES, {"happiness": odd, "gap": {HOSTILE[0]: 1.0, HOSTILE[4]: 0.3}}, {"title": HOSTILE[1]}),
    }  # fmt: skip
    found = {}
    for name, (groups, settings, told) in made.items():
        X, y, group = amounts_world(1_500, 2, groups)
        found[name] = folder / f"{name}.html"
        fitted_amounts(groups, 1_000, **settings).report(X, y, sensitive_features=group, **told).save(
            found[name]
        )
    X, y, group = amounts_world(1_500, 2)
    looked = audit(X["x"], X, y, happiness="distributional_parity", gap=0.1, sensitive_features=group)
    found["audit"] = folder / "audit.html"
    found["audit"].write_text(looked.to_html(), "utf-8")
    return found


#: What stands outside of the page, or of its own box.
OUTSIDE = """() => [...document.querySelectorAll("main *, header *")].filter((one) => {
    const box = one.getBoundingClientRect();
    return box.width > 1 && (box.right > document.documentElement.clientWidth + 1 || box.left < -1)
        && !one.closest(".hidden") && !one.closest("pre");
}).map((one) => one.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("name", ["usual", "five", "hostile", "audit"])
def test_it_fits_and_says_the_same_everywhere(browser, pages, name):  # noqa: F811  # the fixture
    """Nothing leaves the page at 390 and 1280 pixels, in light and dark, without a script; pictures are kept."""
    for width in (390, 1280):
        for scheme in ("light", "dark"):
            settings = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
            with Tab(browser, pages[name], java_script_enabled=False, **settings) as opened:
                assert opened.page.locator("#verdict .head").is_visible()
                opened.page.screenshot(
                    path=ARTEFACTS / f"amounts-{name}-{width}-{scheme}.png", full_page=True
                )
            with Tab(browser, pages[name], **settings) as opened:
                assert opened.page.evaluate(OUTSIDE) == []
                opened.check_quiet()


@pytest.mark.parametrize("name", ["usual", "five", "hostile", "audit"])
def test_axe_finds_nothing(browser, pages, name):  # noqa: F811  # the fixture
    """No rule that axe-core runs finds anything of any level, in light and dark, unfolded."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python"
    ).Axe()
    with Tab(browser, pages[name]) as opened:
        opened.open_folds()
        for scheme in ("light", "dark"):
            opened.page.emulate_media(color_scheme=scheme)
            found = axe.run(opened.page, options={"resultTypes": ["violations"]}).response
            assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found["violations"]] == []
            assert len(found["passes"]) > 15


def test_what_is_signed_is_the_first_sheet(browser, pages):  # noqa: F811  # the fixture
    """The verdict, the card and the block that is signed stand on the first sheet of paper, in this order."""
    with Tab(browser, pages["usual"], viewport=SHEET) as opened:
        path = ARTEFACTS / "amounts-usual.pdf"
        document = opened.page.pdf(path=path, prefer_css_page_size=True)
        first, *later = sheets(document)
    places = [first.index(words) for words in ("Verdict.Theproposedpolicy", "Whatitcosts", "PolicySHA-256")]
    assert places == sorted(places)
    assert any("Whatisthengiven" in sheet for sheet in later)
