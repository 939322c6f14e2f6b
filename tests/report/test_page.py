"""The page, made from contents that are plain data: what stands on it, without a browser."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from report.contents import KINDS, audit, choice, measure
from reported import HOSTILE

from felicific._report.document import render
from felicific._report.slider import Moving, Told, embedded, track
from felicific._report.view import choice_view


def data_of(page):
    """What the script of a page is to know."""
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(block[1])


def told(data, index):
    """A text as the script reads it."""
    found = data["texts"][index]
    if isinstance(found, str):
        return found
    frame, *words = (data["texts"][part] for part in found)
    first, *rest = frame.split("\x1f")
    return first + "".join(word + part for word, part in zip(words, rest, strict=True))


def column(data, key):
    """The texts of a column, one for each position."""
    found = data["columns"][key]
    places = [found] * len(data["hashes"]) if isinstance(found, int) else found
    return [told(data, place) for place in places]


def many(n_groups, n_measures, places=40):
    """Many groups and measures, and sentences that differ everywhere."""
    content = choice(
        groups=[f"group {z}" for z in range(n_groups)],
        measures=[measure(f"measure {j}", "days", 0.01) for j in range(n_measures)],
        places=places,
        certified=True,
        verdict="certified",
    )
    for i, place in enumerate(content["positions"]):
        place["rules"] = [
            f"In group {z}, a person with a score above 0.{i:02d}{z:02d} and at most 0.{i:02d}{z:02d}9 "
            f"({z + i / 7:.1f}% of the group) is decided 0 at random, {80 - i / 3:.2f}% to {20 + i / 3:.2f}%."
            for z in range(n_groups)
            for _ in range(2)
        ]
    return content


# ---------------------------------------------------------------------------------------------------------
# Text stays text, bytes stay bytes


def hostile():
    content = choice(
        groups=HOSTILE,
        measures=[measure(HOSTILE[1], HOSTILE[0]), measure(HOSTILE[3], HOSTILE[4])],
        decisions=HOSTILE[2:4],
        places=5,
        title=HOSTILE[0],
        model=HOSTILE[1],
        grouped_by=HOSTILE[4],
        period=HOSTILE[0],
        command=HOSTILE[0],
    )
    content["positions"][1]["verdict"]["sentence"] = HOSTILE[0]
    return content


@pytest.mark.parametrize(
    "make", [hostile, lambda: audit(2, title=HOSTILE[0], command=HOSTILE[1], notes=[*HOSTILE])]
)
def test_names_stay_text(make):
    """No name opens an element, ends the data's, or breaks UTF-8; no page is as long as its longest name."""
    page = render(make())
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "49" not in re.findall(r"<bdi[^>]*>([^<]*)</bdi>", page)
    assert page.count("<script") == (2 if 'id="data"' in page else 0)
    assert len(page.encode("utf-8")) < 300_000


def test_a_lone_surrogate_comes_back_from_the_data():
    """What is saved names a measure exactly as its owner does."""
    data = data_of(render(choice(measures=[measure(HOSTILE[4])], places=3)))
    assert data["gaps"] == [HOSTILE[4]]


def test_the_embedded_data_cannot_end_its_element():
    data = [*HOSTILE, "a\u2028b", "&amp;"]
    text = embedded(data)
    assert not re.search("[<>&\u2028\ud800-\udfff]", text)
    assert json.loads(text) == data


@pytest.mark.parametrize("make", [choice, audit])
def test_the_same_content_is_the_same_page(make):
    assert render(make()) == render(make())


def test_no_page_asks_for_anything():
    """No address, no script but by its hash; an audit runs none at all."""
    for page in (render(choice()), render(audit(6))):
        assert not re.search(r"(src|href)=|https?:|@import|url\(", page.replace("link.href", ""))
        assert "default-src 'none'" in page or "default-src &#39;none&#39;" in page
    assert "<script" not in page
    assert "script-src" not in page


def test_a_page_is_made_without_altair():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from report.contents import choice;"
        "from felicific._report.document import render; render(choice());"
        "sys.exit('altair' in sys.modules or 'matplotlib' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(Path(__file__).parents[1])], check=True)


@pytest.mark.parametrize(
    ("content", "most"),
    [(choice(places=34), 200), (many(12, 6), 600), (many(12, 1), 600), (many(2, 6), 600), (audit(6), 40)],
)
def test_a_page_is_small(content, most):
    """In kilobytes: the demo's size, and the largest that there is."""
    assert len(render(content).encode("utf-8")) < 1000 * most


# ---------------------------------------------------------------------------------------------------------
# What follows the slider


def test_every_key_that_the_page_asks_for_has_a_column():
    """The template and the script know the same columns, and the page begins at the proposed position."""
    page = render(many(3, 4, places=7))
    data = data_of(page)
    keys = set(re.findall(r'data-t="([^"]+)"', page))
    keys |= {pair.split(":")[1] for found in re.findall(r'data-a="([^"]+)"', page) for pair in found.split()}
    assert keys <= set(data["columns"])
    assert set(re.findall(r'data-l="([^"]+)"', page)) == set(data["lists"])
    assert data["start"] == 1
    assert f'data-t="headline">{column(data, "headline")[1]}<' in page


def test_positions_have_an_address_and_a_place():
    content = choice(places=12)
    data = data_of(render(content))
    assert data["hashes"] == [place["hash"] for place in content["positions"]]
    assert data["hashes"][-1] == "baseline"
    assert data["at"][0] == 0
    assert data["at"][-1] == 1
    assert data["at"] == sorted(set(data["at"]))


def test_positions_at_one_gap_can_be_told_apart():
    places = [{"tau": tau} for tau in (0.0, 1.0, 1.0, 1.0)]
    found = track(places)
    assert found == sorted(set(found))
    assert found[-1] == 1
    assert track(places[:1]) == [0.0]


def test_what_is_saved_is_what_python_wrote():
    """Every position's verdict, sentence, flags and fingerprint reach the script as is; the baseline has no policy."""
    content = choice(places=9)
    data = data_of(render(content))
    assert data["decision"]["format"] == "felicific decision"
    assert data["decision"]["version"] == 2
    assert [*data["decision"]][-3:] == ["people_sha256", "model", "felicific"]
    for i, place in enumerate(content["positions"]):
        verdict = place["verdict"]
        assert [column(data, key)[i] for key in ("verdict", "reason", "sentence", "sha")] == [
            verdict["kind"],
            verdict["reason"],
            verdict["sentence"],
            place["policy_sha256"] or "",
        ]
        kinds = [told(data, entry[1]) for entry in data["lists"]["flags"][i]]
        assert kinds == [flag["kind"] for flag in verdict["flags"]]
        assert data["aimed"][i] == (None if place["baseline"] else place["aimed"])


def test_texts_are_told_once_and_come_back():
    moving = Moving(0)
    texts = [f"From {i} to {i + 1} people of a group with a long name, or nobody." for i in range(9)]
    moving.add("long", texts)
    moving.add("same", ["as ever"] * 9)
    data = moving.embedded() | {"hashes": texts}
    assert column(data, "long") == texts
    assert isinstance(data["columns"]["same"], int)
    assert len(data["texts"]) < 2 * len(texts) + 4
    marked = "a text that holds 1 mark \x1f of its own, and is long enough to be cut"
    apart = Told()
    assert apart.texts[apart.place(marked)] == marked


# ---------------------------------------------------------------------------------------------------------
# What stands on the page


@pytest.mark.parametrize("kind", KINDS)
def test_the_verdict_comes_first(kind):
    page = render(choice(verdict=kind))
    assert f'id="verdict" role="status" aria-label="Verdict" data-verdict="{kind}"' in page
    assert KINDS[kind][1] in page
    order = [
        page.index(f'id="{name}"')
        for name in ("verdict", "dock", "card", "who", "choice", "promise", "policy")
    ]
    assert order == sorted(order)
    assert page.count("<h1>") == page.count("<main>") == 1


def test_a_certificate_holds_at_its_own_position_only():
    data = data_of(render(choice(certified=True, verdict="certified", places=5)))
    assert column(data, "certificate") == ["off", "on", "off", "off", "off"]
    assert column(data, "certificate-for")[2].startswith("another position")
    assert 'id="certificate" class="none"' in render(choice())


def test_a_certificate_that_promises_nothing_is_not_said_to_be_of_another_position():
    """Where it is no less than the model's gap, its own position says so, and the others still strike it through."""
    content = choice(certified=True, verdict="unpromised") | {"certified": None}
    data = data_of(render(content))
    assert column(data, "certificate")[content["proposed"]] == "none"
    assert "no less than the model's gap" in column(data, "certificate-for")[content["proposed"]]
    assert column(data, "certificate")[-1] == "off"
    assert column(data, "certificate-for")[-1].startswith("another position")


def test_the_first_sentence_names_every_measure():
    """Also those that are folded further down, with what was asked of each."""
    content = choice(measures=[measure(f"measure {j}", "days", 0.1) for j in range(5)])
    lead = "".join(str(part) for sentence in choice_view(content)["lead"] for part in sentence)
    assert "measure 3 and measure 4." in lead
    assert "0 days in measure 3 and 0 days in measure 4." in lead.replace("\N{NO-BREAK SPACE}", " ")


def test_an_audit_calls_its_checksum_no_sha256():
    """Eight digits are a checksum; only the page that is signed has a SHA-256 of the people."""
    page = render(audit(2, fingerprints={"people": "42094f0a"}))
    assert "Fingerprint of the people: <code>42094f0a</code>" in page
    assert "SHA-256" not in page


def test_without_a_band_the_page_says_so():
    page = render(choice(band=False, limits=False))
    assert "There is no band" in page
    assert "no interval is known" in page
    assert 'class="band"' not in page


def test_more_than_three_measures_are_folded():
    parts = [measure(f"rate {j}", "share", 0.001) for j in range(6)]
    view = choice_view(choice(measures=parts))
    assert view["names"].shown == [0, 1, 2]
    assert view["names"].folded == [3, 4, 5]
    assert [str(table["name"]) for table in view["who"]["folded"]] == ["rate 3", "rate 4", "rate 5"]


def test_of_many_groups_the_card_shows_the_largest():
    view = choice_view(choice(groups=[f"g{z}" for z in range(9)]))
    assert [str(row["name"]) for row in view["card"]["touched"]["rows"]] == [
        "g5",
        "g4",
        "g3",
        "g2",
        "5 more groups",
    ]


def test_who_is_told_to_lose_has_bars_and_no_gap():
    loses = measure("loses", "share", 0.001, has_gap=False, tells_who=True, closed=False, asked=None)
    view = choice_view(choice(measures=[measure("funding"), loses]))
    assert [str(part["name"]) for part in view["who"]["aside"]] == ["loses"]
    assert view["names"].own == [0]


@pytest.mark.parametrize("options", [{"scores": False}, {"scores": False, "decisions": ("a", "b", "c", "d")}])
def test_without_a_line_of_scores_moves_are_a_table(options):
    view = choice_view(choice(**options))
    assert view["decided"]["lanes"] == []
    assert len(view["decided"]["tables"][0]["rows"]) == len(options.get("decisions", "ab"))


def test_several_gaps_are_aimed_at_together():
    content = choice(
        measures=[measure("money", asked=6300.0), measure("waiting", "days", 0.1, asked=12600.0)]
    )
    for place in content["positions"]:
        place["tau"] /= 6300.0
    data = data_of(render(content))
    assert column(data, "dock-after")[1] == "of those asked for"
    assert column(data, "verdict-at")[1].startswith("Verdict. At gaps of at most 9.1")


def test_one_position_has_no_slider():
    page = render(choice(places=1))
    assert 'id="slider"' not in page
    assert 'id="choice"' not in page
    assert 'id="sign"' in page
