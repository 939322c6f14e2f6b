"""The pages of the studies in a real browser: who can use them, on what, and how they look.

Screenshots are written to ``artefacts/studies/``; look at them after a change.
"""

import json
import shutil
from pathlib import Path

import pytest

from felicific.studies import Settings, _page, reproduce, write_index

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytest.importorskip("playwright", reason="needs playwright: pip install -e '.[browser]'")
if CHROMIUM is None:
    pytest.skip("needs Chromium: apt-get install chromium", allow_module_level=True)

ARTEFACTS = Path(__file__).parents[2] / "artefacts" / "studies"
HOSTILE = "<script>alert(1)</script>" + "x" * 1_000


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A study, one whose texts are hostile, and the page over both."""
    out = tmp_path_factory.mktemp("studies")
    usual = reproduce("synthetic", out, Settings(rows=1_000))
    hostile = shutil.copytree(usual, out / "adult")
    results = json.loads((hostile / "results.json").read_text())
    for item in results["claims"]:
        item |= dict.fromkeys(("statement", "paper", "note"), HOSTILE)
    for flag in results["verdict"]["flags"]:
        flag["sentence"] = HOSTILE
    results |= {"title": HOSTILE, "data": HOSTILE, "groups": [HOSTILE, HOSTILE + "2"], "command": HOSTILE}
    (hostile / "results.json").write_text(json.dumps(results))
    (hostile / "index.html").write_text(_page.study_page(hostile), "utf-8")
    return {"usual": usual / "index.html", "hostile": hostile / "index.html", "all": write_index(out)}


@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["usual", "hostile", "all"])
def test_everybody_can_read_it(browser, pages, name, scheme, width):
    """There is nothing that axe finds, folds open too; nothing scrolls sideways; no request, no message, no dialog."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.set_offline(True)
    page, happened = context.new_page(), []
    for event in ("console", "pageerror", "dialog"):
        page.on(event, lambda what: happened.append(str(what)))
    page.on("request", lambda request: happened.append(request.url))
    page.goto(pages[name].as_uri())
    assert happened == [pages[name].as_uri()]
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=ARTEFACTS / f"{name}-{scheme}-{width}.png", full_page=True)
    page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    findings = axe.Axe().run(page).response["violations"]
    assert [(rule["id"], rule["nodes"][0]["html"]) for rule in findings] == []
    context.close()


def test_paper_is_light_and_its_folds_are_open(browser, pages):
    """Printed from a dark screen too."""
    context = browser.new_context(viewport={"width": 688, "height": 970}, color_scheme="dark")
    page = context.new_page()
    page.goto(pages["usual"].as_uri())
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.get_by_text("scikit-learn's own settings").bounding_box()["height"] > 0
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=ARTEFACTS / "usual-print.png", full_page=True)
    context.close()


def test_a_picture_has_the_colours_of_the_scheme(browser, pages):
    """The accent of the same picture is dark on light and light on dark; its text is not scaled out of sight."""
    found = {}
    for scheme in ("light", "dark"):
        context = browser.new_context(viewport={"width": 390, "height": 900}, color_scheme=scheme)
        page = context.new_page()
        page.goto(pages["usual"].as_uri())
        name = page.locator(".picture text", has_text="own happiness").first
        found[scheme] = name.evaluate("text => getComputedStyle(text).fill")
        assert name.bounding_box()["height"] > 10
        context.close()
    assert found == {"light": "rgb(91, 62, 168)", "dark": "rgb(195, 173, 255)"}
