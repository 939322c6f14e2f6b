"""A notebook that was run, saved and converted: what it holds, and how it looks in a browser without a network.

Pictures are written to ``artefacts/notebooks/``; look at them after a change.
"""

import json
import re
import shutil
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
for needed in ("nbclient", "nbconvert", "ipykernel"):
    pytest.importorskip(needed, reason=f"needs {needed}: pip install -e '.[notebook]'")

ARTEFACTS = Path(__file__).parents[2] / "artefacts" / "notebooks"
ARTEFACTS.mkdir(parents=True, exist_ok=True)

#: What somebody types, cell by cell. The salt is read from a file, as nothing that is shown may hold it.
CELLS = {
    "data": """
        import numpy as np, pandas as pd
        from sklearn.frozen import FrozenEstimator
        from sklearn.linear_model import LogisticRegression
        from felicific import FairClassifier, Happiness, audit, compare, plots

        def world(n, seed):
            rng = np.random.default_rng(seed)
            z = rng.integers(0, 2, n)
            x = rng.normal(size=n) - 0.7 * z
            y = (x + 0.7 * rng.normal(size=n) > 0).astype(int)
            X = pd.DataFrame({"x": x, "loan": rng.lognormal(0, 0.5, n) * 1e4})
            return X, y, np.array(["<b>Female</b>", "Male"])[1 - z]

        X, y, sex = world(1_000, 5)
        model = FrozenEstimator(LogisticRegression().fit(X[["x"]], y))
        loan = Happiness("decision * loan", name="loan", unit="$")
        X, y, sex = world(2_000, 1)
        fair = FairClassifier(model, happiness=loan, gap=1_000.0)
    """,
    "fair": "fair.fit(X, y, sensitive_features=sex)",
    "policy": "fair.policy_",
    "frontier": "fair.frontier_",
    "aggregates": "fair.aggregates_",
    "verdict": "fair.verdict_",
    "certificate": "fair.certificate_",
    "individual": """
        people = X.assign(score=model.predict_proba(X[["x"]])[:, 1])
        alone = FairClassifier("score", policy="individual", happiness=loan, gap=1_000.0)
        alone.fit(people, y, sensitive_features=sex).policy_
    """,
    "audit": """
        others, labels, groups = world(1_000, 2)
        after = audit(fair, others, labels, sensitive_features=groups)
        after
    """,
    "comparison": """
        now = model.predict(others[["x"]])
        compare(audit(now, others, labels, happiness=loan, sensitive_features=groups), after)
    """,
    "frontier chart": "fair.frontier_.plot()",
    "policy chart": "plots.policy(fair.policy_)",
    "audit chart": "after.plot()",
    "policy again": "fair.policy_",
    "salt": "from pathlib import Path; Path('salt').write_text(fair.policy_.salt);",
}

CHARTS = ("frontier chart", "policy chart", "audit chart")
OURS = ("policy", "frontier", "aggregates", "verdict", "certificate", "individual", "audit", "comparison")


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """The notebook as Jupyter saves it, run by a kernel of its own, and the salt of its policy."""
    import nbformat
    from nbclient import NotebookClient

    folder = tmp_path_factory.mktemp("notebook")
    found = nbformat.v4.new_notebook()
    for code in CELLS.values():
        indent = min(
            (len(line) - len(line.lstrip()) for line in code.splitlines() if line.strip()), default=0
        )
        found.cells.append(nbformat.v4.new_code_cell("\n".join(line[indent:] for line in code.splitlines())))
    client = NotebookClient(
        found, timeout=120, kernel_name="python3", resources={"metadata": {"path": folder}}
    )
    client.execute()
    return found, (folder / "salt").read_text("utf-8")


def output(notebook, name):
    """What a cell shows, by its type."""
    cell = notebook[0].cells[[*CELLS].index(name)]
    return next(part["data"] for part in cell.outputs if part["output_type"] == "execute_result")


def page(notebook, theme):
    """The notebook as one page. Jupyter's own parts that come from a server are left out, so nothing else may ask."""
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(theme=theme, mathjax_url="", require_js_url="", jquery_url="", mermaid_js_url="")
    return exporter.from_notebook_node(notebook[0])[0]


def test_a_saved_notebook_holds_no_salt(notebook):
    """Neither the file nor the page."""
    found, salt = notebook
    assert re.fullmatch("[0-9a-f]{32}", salt)
    assert salt not in json.dumps(found)
    assert salt not in page(notebook, "light")


def test_everything_is_short(notebook):
    """At most 30 lines of text in every output."""
    for name in (*OURS, "fair"):
        text = output(notebook, name)["text/plain"]
        assert len(text.splitlines()) <= 30, name
        assert "array(" not in text, name


def test_charts_are_interactive_and_a_picture(notebook):
    """Data for notebooks that draw charts themselves, an SVG for everything else; no page that loads a script."""
    for name in CHARTS:
        found = output(notebook, name)
        assert {*found} == {"application/vnd.vegalite.v5+json", "image/svg+xml", "text/plain"}
        assert found["application/vnd.vegalite.v5+json"]["$schema"].endswith("/v5.json")
        assert found["image/svg+xml"].startswith("<svg")
        # On a page of many pictures nothing can be taken for a part of another.
        assert not re.search(r'\bid="', found["image/svg+xml"])


# ---------------------------------------------------------------------------------------------------------
# In a browser


@pytest.fixture(scope="module")
def browser():
    sync = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install -e '.[browser]'")
    if CHROMIUM is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def pages(notebook, tmp_path_factory):
    """The page in the two themes of JupyterLab."""
    folder = tmp_path_factory.mktemp("pages")
    for theme in ("light", "dark"):
        (folder / f"{theme}.html").write_text(page(notebook, theme), "utf-8")
    return folder


@pytest.fixture
def opened(browser, pages):
    """Opens a page without a network; it may ask for nothing."""
    contexts, asked = [], []

    def open_page(theme, width=1100, scheme=None):
        settings = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme or theme}
        contexts.append(browser.new_context(**settings))
        contexts[-1].set_offline(True)
        tab = contexts[-1].new_page()
        address = (pages / f"{theme}.html").as_uri()
        tab.on("request", lambda request: asked.append(request.url) if request.url != address else None)
        tab.goto(address)
        return tab

    yield open_page
    for context in contexts:
        context.close()
    assert [url[:200] for url in asked if not url.startswith("data:")] == []


def outputs(tab, name):
    """The place of an output on the page."""
    return tab.locator(".jp-Cell").nth([*CELLS].index(name)).locator(".jp-OutputArea-output").first


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_outputs_are_readable(opened, theme):
    """Axe finds no fault with them, contrast included, whichever colours the system prefers; nothing is 31 lines."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python"
    ).Axe()
    for scheme in ("light", "dark"):
        tab = opened(theme, scheme=scheme)
        tab.screenshot(path=ARTEFACTS / f"{theme}-page-{scheme}-system.png", full_page=True)
        found = axe.run(tab, context=".felicific", options={"resultTypes": ["violations"]}).response
        assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found["violations"]] == []
        assert "color-contrast" in {rule["id"] for rule in found["passes"]}
    for name in (*OURS, "fair"):
        lines = [line for line in outputs(tab, name).inner_text().splitlines() if line.strip()]
        assert 1 < len(lines) <= 30, (name, lines)


def test_axe_sees_a_page_that_is_too_pale(browser, tmp_path):
    """The instrument notices letters that do not stand out, inside of what is ours and nowhere else."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs axe-playwright-python"
    ).Axe()
    pale = '<div class="felicific"><p style="color: #ccc">too pale</p></div>'
    pale = f'<!DOCTYPE html><html lang="en"><title>x</title>{pale}'
    (tmp_path / "pale.html").write_text(pale, "utf-8")
    tab = browser.new_page()
    tab.goto((tmp_path / "pale.html").as_uri())
    found = axe.run(tab, context=".felicific").response["violations"]
    tab.close()
    assert [rule["id"] for rule in found] == ["color-contrast"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_are_drawn(opened, theme):
    """Every chart and every small picture has a size, and names stand in small ones as text."""
    tab = opened(theme)
    for name in (*CHARTS, "policy", "frontier", "individual", "fair"):
        box = outputs(tab, name).locator("img, svg").first.bounding_box()
        assert box["width"] > 200, name
        assert box["height"] > 60, name
    assert outputs(tab, "policy").locator("text", has_text="<b>Female</b>").count() == 1
    assert tab.evaluate("[...document.images].every((one) => one.complete && one.naturalWidth > 200)")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_phone_shows_all_of_it(opened, theme):
    """On 390 pixels the page is not wider than the screen; what is, a table or a chart, scrolls by itself."""
    tab = opened(theme, width=390)
    tab.screenshot(path=ARTEFACTS / f"{theme}-phone.png", full_page=True)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    for name in CHARTS:
        assert outputs(tab, name).evaluate("(one) => getComputedStyle(one).overflowX") == "auto"
    for name in OURS:
        place = outputs(tab, name)
        box = place.bounding_box()
        for part in place.locator("p, figure, .felicific > div, svg").all():
            inner = part.bounding_box()
            assert inner["x"] + inner["width"] <= box["x"] + box["width"] + 1, name


def test_outputs_do_not_change_each_other(opened):
    """The same policy shown twice looks the same, and whatever stands on the page beside it keeps its own look."""
    tab = opened("light")
    assert tab.evaluate("[...document.querySelectorAll('.felicific [id]')].length") == 0
    heights = [outputs(tab, name).bounding_box()["height"] for name in ("policy", "policy again")]
    assert heights[0] == heights[1]
    before = tab.evaluate("getComputedStyle(document.querySelector('.jp-Cell')).maxWidth")
    tab.evaluate(
        "for (const style of document.querySelectorAll('.jp-OutputArea-output > style')) style.remove()"
    )
    assert tab.evaluate("getComputedStyle(document.querySelector('.jp-Cell')).maxWidth") == before
