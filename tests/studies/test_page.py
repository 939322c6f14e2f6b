"""The page of a study, and the one over several: made of results.json, and of nothing else."""

import json
import re
import shutil
from html.parser import HTMLParser

import pytest

from felicific.studies import STUDIES, Settings, _page, reproduce, write_index
from felicific.studies._verdict import verdict_of

HOSTILE = "<script>alert(1)</script>\"'&\n\N{RIGHT-TO-LEFT OVERRIDE}" + "x" * 3_000
LOADS = re.compile(
    r"""\b(?:src|href|action|data)\s*=\s*["']?\s*(?:https?:)?//|url\(\s*["']?(?!#)|@import""", re.I
)


class Read(HTMLParser):
    """Elements, links and text of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.links, self.ids, self.text = [], [], [], ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.append(tag)
        self.links += [found["href"]] if "href" in found else []
        self.ids += [found["id"]] if "id" in found else []

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return reproduce("synthetic", tmp_path_factory.mktemp("page"), Settings(rows=600))


@pytest.fixture
def folder(made, tmp_path):
    """A folder of a study whose results a test may change."""
    return shutil.copytree(made, tmp_path / "synthetic")


def changed(folder, change):
    """The page of a study after its results were changed."""
    results = json.loads((folder / "results.json").read_text())
    change(results)
    (folder / "results.json").write_text(json.dumps(results))
    return _page.study_page(folder)


def claim(holds, by="paper"):
    number = {"mean": 2.0, "standard error": None, "values": [2.0]}
    return {"statement": "it is", "paper": "1", "ours": number, "holds": holds, "note": "", "by": by}


def test_the_same_results_give_the_same_page(made, folder):
    """Byte for byte, from another folder too; and the page that was written is that page."""
    pages = {_page.study_page(made), _page.study_page(folder), (made / "index.html").read_text("utf-8")}
    assert len(pages) == 1


def test_the_page_follows_the_results_and_computes_nothing(folder):
    """Whatever results.json says is what the page says, be it right or wrong."""

    def change(results):
        results["verdict"]["headline"] = "99 of 7 statements hold"
        results["tables"][0]["parts"][0]["rows"][0][1] = "12345 %"

    page = Read(changed(folder, change)).text
    assert "99 of 7 statements hold." in page
    assert "12345 %" in page


def test_every_statement_and_assumption_is_on_the_page(folder):
    """As text, beside the paper's number; folds hold what was assumed."""
    results = json.loads((folder / "results.json").read_text())
    page = Read(_page.study_page(folder))
    for item in results["claims"]:
        assert item["statement"] in page.text
        assert item["paper"] in page.text
    for words in (*results["assumptions"], results["command"], results["software"]["numpy"]):
        assert words in page.text
    assert page.tags.count("h1") == page.tags.count("main") == 1
    assert page.tags.count("figure") == len(results["figures"]) == 2


def test_a_statement_that_does_not_hold_is_marked(folder):
    """By a triangle with words in the verdict and by a word in the table; one that holds or is open is not."""

    def change(results):
        results["claims"] = [claim(True), claim(False), claim(None)]
        results["verdict"] = verdict_of(results["claims"])

    text = changed(folder, change)
    assert "1 of 2 statements hold." in text
    assert text.count('data-level="3"') - text.count('[data-level="3"]') == 1
    rows = text.split('id="claims"')[1].split("<tbody>")[1].split("</tbody>")[0].split("<tr")[1:]
    assert [("yes" in row, "▲ no" in row, "not decided" in row) for row in rows] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]


@pytest.mark.parametrize(
    ("claims", "kind", "headline", "levels"),
    [
        ([claim(True), claim(True)], "within", "2 of 2 statements hold", []),
        ([claim(True), claim(False), claim(None)], "more", "1 of 2 statements hold", [3]),
        ([claim(True), claim(False, "felicific")], "within", "1 of 1 statement holds", [2]),
        ([claim(False)], "more", "0 of 1 statement holds", [3]),
        ([claim(None), claim(True, "felicific")], "measured", "No printed statement is tested here", []),
    ],
)
def test_only_what_the_paper_states_counts(claims, kind, headline, levels):
    """A limit of felicific is no statement of the paper, and what nothing decides neither holds nor fails."""
    verdict = verdict_of(claims)
    assert (verdict["kind"], verdict["headline"]) == (kind, headline)
    assert [flag["level"] for flag in verdict["flags"]] == levels


def test_hostile_text_stays_text(folder):
    """In a claim, a name, a title or a command: no element comes of it, and the statement is all there."""
    plain = Read(_page.study_page(folder))

    def change(results):
        for item in results["claims"]:
            item |= dict.fromkeys(("statement", "paper", "note"), HOSTILE)
        results |= dict.fromkeys(("title", "data", "happiness", "unit", "group column", "command"), HOSTILE)
        results["groups"] = [HOSTILE, HOSTILE + "2"]
        results["assumptions"] = [HOSTILE]
        results["verdict"] = verdict_of(results["claims"])
        results["figures"][0] |= {"title": HOSTILE, "note": [HOSTILE]}
        table = results["tables"][0]["parts"][0]
        table |= {"header": [HOSTILE] * 5, "rows": [[HOSTILE] * 5]}

    page = Read(changed(folder, change))
    assert "script" not in page.tags
    assert set(page.tags) <= {*plain.tags, "bdi"}
    assert HOSTILE in page.text


def test_pictures_are_inline_and_their_names_do_not_clash(folder):
    """No colour of one scheme only, no id twice, every reference has its target, every picture a label."""
    text = _page.study_page(folder)
    ids = Read(text).ids
    assert len(ids) == len(set(ids))
    pictures = re.findall(r'<svg viewBox="[^"]*" role="img" aria-label="[^"]+">.*?</svg>', text, re.DOTALL)
    assert len(pictures) == 4
    for picture in pictures:
        assert not re.search(r'="#[0-9a-f]{3,6}"|fill:#', picture)
        assert not re.search(r" (?:class|font-family|xmlns\S*)=", picture)
        assert set(re.findall(r"url\(#([^)]+)\)", picture)) <= set(ids)


def test_a_picture_is_the_same_whatever_was_drawn_before():
    """Names in it are counted anew."""
    one, two = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="2" height="2" viewBox="0 0 2 2"><clipPath id="clip{n}"/>'
        f'<g clip-path="url(#clip{n})" class="mark"><text fill="#1f2328" font-weight="bold">a &lt; b</text></g></svg>'
        for n in (3, 8)
    )
    shown = _page.inline(one, 'a "label"', "p")
    assert shown == _page.inline(two, 'a "label"', "p")
    assert '<g clip-path="url(#p-0)"><text style="fill:var(--ink);font-weight:bold;font-size:12px">' in shown
    assert 'aria-label="a &quot;label&quot;"' in shown
    assert "a &lt; b" in shown


def test_the_page_asks_nobody_for_anything(folder):
    """No address in any attribute that loads, no script; links lead to files of the folder."""
    text = _page.study_page(folder)
    assert not LOADS.search(text)
    assert "<script" not in text
    assert "default-src &#39;none&#39;" in text
    for link in Read(text).links:
        assert (folder / link).is_file()


def test_the_index_lists_every_study(made, tmp_path):
    """One verdict box and one link a study, in the studies' order; one study needs no index."""
    for position, name in enumerate(reversed(STUDIES)):
        page = write_index(tmp_path)
        assert (page is None) == (position < 2)
        shutil.copytree(made, tmp_path / name)
    text = write_index(tmp_path).read_text("utf-8")
    assert Read(text).links == [f"{name}/index.html" for name in STUDIES]
    assert text.count('<section class="verdict"') == len(STUDIES)
    assert not LOADS.search(text)
    assert write_index(tmp_path).read_text("utf-8") == text
    (tmp_path / "adult" / "results.json").write_text("{")
    assert "adult/index.html" not in Read(write_index(tmp_path).read_text("utf-8")).links


def test_an_index_of_somebody_else_is_kept(made, tmp_path):
    """A page of that name that is no index of studies is not ours to replace."""
    for name in ("synthetic", "adult"):
        shutil.copytree(made, tmp_path / name)
    (tmp_path / "index.html").write_text("mine")
    assert write_index(tmp_path) is None
    assert (tmp_path / "index.html").read_text() == "mine"


def test_the_command_tells_no_path(made):
    """It runs again what was run, and does not say where a file lay."""
    from felicific.studies._results import command_of

    assert json.loads((made / "results.json").read_text())["command"] == (
        "felicific reproduce synthetic --seeds 1 --rows 600 --out studies"
    )
    settings = Settings(seeds=2, loans="/home/somebody/Loan.csv", group="a b")
    assert command_of("loans", settings) == (
        "felicific reproduce loans --seeds 2 --loans Loan.csv --group 'a b' --out studies"
    )
    assert "Loan.csv" not in command_of("adult", settings)
