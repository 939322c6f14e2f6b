"""The documentation site: a page for every name, every link leads somewhere, and it reads well without a network.

It is built here unless ``FELICIFIC_SITE`` names a folder that holds it. Pictures are written to ``artefacts/site/``.
"""

import functools
import http.server
import inspect
import os
import re
import shutil
import subprocess
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

import felicific

pytest.importorskip("sphinx", reason="needs sphinx: pip install -e '.[docs]'")
pytest.importorskip("playwright", reason="needs playwright: pip install -e '.[docs]'")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("needs Chromium: apt-get install chromium", allow_module_level=True)

ROOT = Path(__file__).parent.parent
ARTEFACTS = ROOT / "artefacts" / "site"

#: Pages that are looked at closely: one of every kind.
LOOKED_AT = (
    "index.html",
    "tutorial.html",
    "howto-audit.html",
    "evidence/policies.html",
    "theory.html",
    "reference.html",
    "glossary.html",
    "from-fairlearn.html",
    "api/index.html",
    "api/felicific.FairClassifier.html",
    "api/shell.html",
    "gallery/index.html",
    "gallery/first_repair.html",
)

#: How pages are looked at: colours, width.
WAYS = (("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; a warning ends the build."""
    if os.environ.get("FELICIFIC_SITE"):
        return Path(os.environ["FELICIFIC_SITE"]).resolve()
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "-q",
        "-d",
        folder / "cache",
        ROOT / "docs",
        folder / "html",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "html"


@pytest.fixture(scope="module")
def address(site):
    """The site on this machine's own address; the search needs one."""
    handler = functools.partial(Quiet, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Page(HTMLParser):
    """Links and anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        self.links += [found[name] for name in ("href", "src") if found.get(name)]


def written(site):
    """All pages; the theme brings a template along that is none."""
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)


def test_every_public_name_has_a_page(site):
    """Each has its signature, and the first sentence of its docstring."""
    for name in felicific.__all__:
        text = (site / "api" / f"felicific.{name}.html").read_text("utf-8")
        assert f'id="felicific.{name}"' in text, name
        words = re.sub(r"<[^>]*>", "", text)
        first = re.sub(r":\w+:|`", "", inspect.getdoc(getattr(felicific, name)).split(".")[0].split("\n")[0])
        assert " ".join(first.split()[:4]) in " ".join(words.split()).replace("&#39;", "'").replace(
            "’", "'"
        ), name


def test_a_name_without_a_page_ends_the_build(monkeypatch):
    """A new public name must be placed, and have a docstring."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "site"))
    import pages
    from sphinx.errors import ExtensionError

    assert dict(pages.all_pages())["index.rst"]
    monkeypatch.setattr(felicific, "__all__", [*felicific.__all__, "Novelty"])
    with pytest.raises(ExtensionError, match="Novelty"):
        list(pages.all_pages())
    with pytest.raises(ExtensionError, match="no docstring"):
        pages.page_of(lambda: None, "felicific", "novelty")


def test_every_link_of_the_site_leads_somewhere(site):
    """Files and places in them exist; nothing is fetched from elsewhere to show a page."""
    pages = {path: Page(path.read_text("utf-8")) for path in written(site)}
    wrong = []
    for path, page in pages.items():
        for link in page.links:
            file, place = urldefrag(link)
            if re.match(r"\w+:|//", file):
                continue
            target = (path.parent / unquote(file.split("?")[0])).resolve() if file else path
            there = target in pages or target.is_file()
            if not there or (target in pages and place and unquote(place) not in pages[target].anchors):
                wrong.append(f"{path.relative_to(site)}: {link}")
    assert not wrong, "\n".join(wrong[:20])
    assert len(pages) > 80


@pytest.mark.parametrize(("colours", "width"), WAYS)
def test_every_page_reads_well_without_a_network(site, browser, colours, width):
    """No request leaves, no script fails, every picture is there, and no page is wider than the screen."""
    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=colours)
    asked, failed = [], []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("pageerror", lambda error: failed.append(str(error)))
    folder = ARTEFACTS / f"{colours}-{width}"
    folder.mkdir(parents=True, exist_ok=True)
    for path in written(site):
        name = path.relative_to(site).as_posix()
        if name not in LOOKED_AT and (colours, width) != ("dark", 390):
            continue
        tab.goto(path.as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, name
        empty = "[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
        assert tab.evaluate(empty) == [], name
        if name in LOOKED_AT:
            tab.screenshot(path=folder / f"{name.replace('/', '-')}.png", full_page=True)
    tab.close()
    assert not failed
    assert not [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_everybody_can_use_it(site, browser, colours):
    """Nobody is kept out: axe finds nothing serious on one page of each kind."""
    from axe_playwright_python.sync_playwright import Axe

    tab = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=colours)
    for name in LOOKED_AT:
        tab.goto((site / name).as_uri())
        found = Axe().run(tab).response["violations"]
        grave = [one for one in found if one["impact"] in ("serious", "critical")]
        assert not grave, (
            name,
            [(one["id"], [node["html"][:120] for node in one["nodes"][:3]]) for one in grave],
        )
    tab.close()


def test_the_search_finds_names_and_pages(address, browser):
    """What people look for first is found."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    for words, page in (("FairClassifier", "felicific.FairClassifier"), ("recalibrate", "howto-deploy")):
        tab.goto(f"{address}/search.html?q={words}")
        tab.wait_for_selector(f'#search-results li a[href*="{page}"]', timeout=15_000)
    tab.close()
