"""Policies: words, files, and what a file must refuse."""

import hashlib
import json
import os
import re
import stat
import sys
from dataclasses import replace

import numpy as np
import pytest
from helpers import solved
from hypothesis import given
from hypothesis import strategies as st

from felicific import Budget, Floor, Happiness, Policy, aggregate, load, solve
from felicific.exceptions import ConstraintError, DataError, GroupError, LotteryWarning, PolicyFileError

#: Policies of tests are saved with the salt of a seed, so that their draws are the same again.
pytestmark = pytest.mark.filterwarnings("ignore:The salt of this policy comes from a seed")

GROUP = np.array(["F", "M"])[np.arange(60) % 2]
PREDICTED = (np.arange(60) % 7 < np.where(GROUP == "F", 2, 5)).astype(int)
LABEL = np.where(np.arange(60) % 5 == 0, 1 - PREDICTED, PREDICTED)
LOAN = 1000.0 * (1 + np.arange(60) % 11)


def funding(decision, x):
    return decision * x["loan"]


def make_policy(groups=None, classes=None, *, policy="label", **settings):
    """A policy for 60 people of two groups; ``groups`` and ``classes`` rename what is 0/1 or F/M."""
    group = GROUP if groups is None else rename(GROUP == "M", groups)
    known = np.array([0, 1]) if classes is None else classes
    happiness = settings.pop("happiness", "statistical_parity")
    found = aggregate(
        {"loan": LOAN},
        y=rename(LABEL, known),
        predicted=rename(PREDICTED, known),
        score=np.where(PREDICTED[:, None] == [0, 1], 0.75, 0.25),
        classes=known,
        sensitive_features=group,
        happiness=happiness,
        policy=policy,
    )
    return solve(found, **{"gap": 0.0, "random_state": 0} | settings)


def rename(codes, names):
    """One of two names per person, without ever turning a name into another type."""
    array = np.empty(2, dtype=object)
    array[:] = list(names)
    if not isinstance(names, np.ndarray):
        return array[np.asarray(codes, int)]
    return names[np.asarray(codes, int)]


def reload(policy):
    return Policy.from_json(policy.to_json())


def same(one, other):
    """Whether two policies hold the same, types included."""
    assert one.classes.dtype == other.classes.dtype
    assert one.classes.tolist() == other.classes.tolist()
    assert [type(group) for group in one.groups] == [type(group) for group in other.groups]
    assert one.groups == other.groups
    assert one.signal == other.signal
    assert one.measures == other.measures
    for mine, theirs in [(one.q, other.q), (one.mass, other.mass), (one.outcome.means, other.outcome.means)]:
        assert mine.dtype == theirs.dtype
        assert (mine == theirs).all()
    assert (one.loss, one.gaps, one.prices) == (other.loss, other.gaps, other.prices)
    assert (one.salt, one.randomize) == (other.salt, other.randomize)
    return True


# ---------------------------------------------------------------------------------------------------------
# There and back

CLASSES = {
    "int": np.array([0, 1]),
    "int8": np.array([-1, 1], dtype=np.int8),
    "uint8": np.array([0, 255], dtype=np.uint8),
    "bool": np.array([False, True]),
    "float": np.array([0.1, 2.0]),
    "float32": np.array([0.1, 2.0], dtype=np.float32),
    "str": np.array(["no", "yes, please"]),
    "object": np.array(["no", "yes"], dtype=object),
    "mixed": np.array([0, "1"], dtype=object),
    "big": np.array([2**63, 2**64 - 1], dtype=np.uint64),
    "surrogate": np.array(["\ud800", "<script>"], dtype=object),
}


@pytest.mark.parametrize("kind", CLASSES)
def test_classes_come_back(kind):
    """Classes of every type come back from a file as they were, and so do the decisions."""
    policy = make_policy(classes=CLASSES[kind], gap=0.05)
    back = reload(policy)
    assert same(policy, back)
    labels, keys = rename(PREDICTED, CLASSES[kind]), np.arange(60)
    decided, again = policy.decide(labels, GROUP, keys), back.decide(labels, GROUP, keys)
    assert decided.dtype == again.dtype == CLASSES[kind].dtype
    assert decided.tolist() == again.tolist()


GROUPS = {
    "str": ["F", "M"],
    "int": [0, 1],
    "one and text": [1, "1"],
    "bool": [False, True],
    "float": [0.5, 1.0],
    "script": ["<script>alert('x')</script>", "</script>&amp;"],
    "quotes": ["'\"", '\\"'],
    "newlines": ["a\nb\r\n", "a\u2028b\x00"],
    "emoji": ["👩‍🦰", "🧔🏿"],
    "long": ["x" * 10_000, "x" * 9_999 + "y"],
    "surrogates": ["\ud800", "\udfff a"],
    "empty": ["", " "],
}


@pytest.mark.parametrize("kind", GROUPS)
@pytest.mark.parametrize("policy", ["label", "soft-label"])
def test_groups_come_back(kind, policy, tmp_path):
    """Groups of every type and any text come back from a file as they were: 1 is not "1"."""
    fitted = make_policy(groups=GROUPS[kind], policy=policy)
    fitted.save(tmp_path / "policy.json")
    back = load(tmp_path / "policy.json")
    assert same(fitted, back)
    assert sorted(map(repr, back.groups)) == sorted(map(repr, GROUPS[kind]))
    group, keys = rename(GROUP == "M", GROUPS[kind]), np.arange(60)
    score = np.where(PREDICTED[:, None] == [0, 1], 0.75, 0.25)
    assert (fitted.probabilities(score, group) == back.probabilities(score, group)).all()
    assert (fitted.decide(score, group, keys) == back.decide(score, group, keys)).all()
    assert back.sentences() == fitted.sentences()
    assert back.to_json() == fitted.to_json()


def test_group_one_is_not_text_one():
    """A policy of the groups 1 and 2 does not know the group "1", before and after a file."""
    for policy in (make_policy(groups=[1, 2]), reload(make_policy(groups=[1, 2]))):
        with pytest.raises(GroupError, match="'1'"):
            policy.probabilities([0], ["1"])
        assert policy.probabilities([0], [1]).shape == (1, 2)


def test_mixed_groups_never_match_by_their_text():
    """With the groups 1 and "a", an array of texts does not turn "1" into the group 1."""
    policy = make_policy(groups=[1, "a"])
    with pytest.raises(GroupError, match="'1'"):
        policy.probabilities([0, 0], np.array(["1", "a"]))


@given(
    q=st.lists(st.floats(0, 1), min_size=4, max_size=4),
    loss=st.floats(-1e300, 1e300),
    price=st.floats(0, 1e300),
    names=st.lists(st.text(max_size=5), min_size=2, max_size=2, unique=True),
    randomize=st.booleans(),
)
def test_every_number_comes_back(q, loss, price, names, randomize):
    """Probabilities, loss, prices and names come back exactly, to the last bit."""
    policy = POLICY
    rows = np.column_stack([q, 1 - np.array(q)]).reshape(2, 2, 2)
    outcome = replace(policy.outcome, loss=loss)
    odd = replace(
        policy, q=rows, outcome=outcome, prices={"p": price}, groups=tuple(names), randomize=randomize
    )
    assert same(odd, reload(odd))


def test_units_bounds_and_prices_come_back():
    """Units, bounds, families, prices and requirements in words survive a file."""
    happy = Happiness(funding, name='cash "in" hand', unit="€", bounds=(0, 11_000))
    policy = make_policy(
        happiness=[happy, "equalized_odds"],
        gap={happy.name: 500.0},
        constraints=[Floor(happy.name, 100.0), Budget(happy.name, at_most=10_999.0)],
    )
    back = reload(policy)
    assert same(policy, back)
    assert back.measures[0].bounds == (0.0, 11_000.0)
    assert back.measures[0].unit == "€"
    assert back.measures[1].looks_at_y
    assert any("at least €100" in words for words in back.prices)


def test_file_holds_no_person(tmp_path):
    """The file is plain ASCII JSON that holds no row of anybody."""
    make_policy(happiness=funding, gap=1000.0).save(tmp_path / "policy.json")
    raw = (tmp_path / "policy.json").read_bytes()
    assert raw.isascii()
    assert raw.endswith(b"}\n")
    content = json.loads(raw)
    assert set(content) == {
        "format", "version", "policy", "classes", "groups", "q", "mass", "measures", "loss", "means", "gaps",
        "prices", "salt", "randomize", "sees_group", "expected", "basis", "sha256",
        "attributes", "left_out", "changed", "gains", "loses", "explore",
        "labels", "roles", "unconstrained",
    }  # fmt: skip
    assert np.size(content["mass"]) == 4


@pytest.mark.parametrize("group", [None, ("a",), b"a", 1j], ids=str)
def test_groups_that_a_file_cannot_hold(refuses, group):
    """A group of a type that JSON does not know is refused when saving, by name."""
    with refuses(DataError, "group", repr(group), type(group).__name__, remedy="strings"):
        replace(POLICY, groups=("F", group)).to_json()


def test_infinite_group_is_refused_by_name(refuses):
    """The group infinity cannot be written as JSON, and the error says which group it is."""
    with refuses(DataError, "inf"):
        replace(POLICY, groups=(1.0, float("inf"))).to_json()


# ---------------------------------------------------------------------------------------------------------
# Tampering

POLICY = make_policy()
TEXT = POLICY.to_json()


def tampered(**changes):
    """The policy's file with parts replaced (by a value or a function of the old part) and a new checksum."""
    content = json.loads(TEXT)
    for name, change in changes.items():
        content[name] = change(content[name]) if callable(change) else change
    return sealed(content)


def sealed(content):
    """A file with the checksum that belongs to its content, computed independently of felicific."""
    content = {name: part for name, part in content.items() if name != "sha256"}
    text = json.dumps(content, sort_keys=True).encode("ascii")
    return json.dumps(content | {"sha256": hashlib.sha256(text).hexdigest()})


def refuse(text, *words):
    with pytest.raises(PolicyFileError) as caught:
        Policy.from_json(text)
    for word in words:
        assert word in str(caught.value), f"{word!r} is not in {str(caught.value)!r}"
    assert caught.value.remedy.endswith(".")


def test_the_helper_seals():
    """A file that is sealed again without a change is read: so what the tests below refuse is the change."""
    assert same(Policy.from_json(tampered()), POLICY)
    assert same(Policy.from_json(tampered(loss=lambda loss: loss)), POLICY)
    with pytest.raises(pytest.fail.Exception):
        refuse(TEXT)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"out_of_fold": 1}, "of another type"),
        ({"loss_name": None}, "of another type"),
        ({"more": 1}, "rest on"),
        ({"baseline": {"loss": 0.1}}, "baseline"),
        (
            {"baseline": {"loss": 0.1, "means": [[1.0]], "gaps": [0.0, 0.0]}},
            "means of baseline has shape",
        ),
        ({"asked": [["x", -1.0]]}, "negative"),
        ({"asked": {"x": 1.0}}, "gap that was asked for"),
    ],
    ids=str,
)
def test_what_the_numbers_rest_on_is_checked(change, word):
    """Every part of the basis of a policy has its type and shape, and comes back as it was written."""
    assert POLICY.basis.baseline is not None
    assert Policy.from_json(TEXT).basis.to_json() == POLICY.basis.to_json()
    refuse(tampered(basis=lambda basis: basis | change), word)


@pytest.mark.parametrize("length", range(0, len(TEXT) - 1, 50))
def test_truncated(length):
    """A file cut anywhere is refused as not whole."""
    refuse(TEXT[:length], "not whole JSON")


def test_one_changed_digit():
    """Any digit changed in the file, whole JSON or not, is refused."""
    digits = [i for i, character in enumerate(TEXT) if character.isdigit()]
    for i in digits[:: max(1, len(digits) // 60)]:
        changed = TEXT[:i] + str((int(TEXT[i]) + 5) % 10) + TEXT[i + 1 :]
        assert json.loads(changed) != json.loads(TEXT)
        refuse(changed)


def test_changed_number():
    """A number changed by hand is refused for its checksum."""
    content = json.loads(TEXT)
    content["q"][0][0] = [0.5, 0.5]
    refuse(json.dumps(content), "checksum", "altered or cut")


@pytest.mark.parametrize("part", ["salt", "format", "sha256", "q"])
def test_doubled_names(part):
    """Of two parts of one name Python takes the last and others the first: a file that has some is refused by name."""
    again = json.dumps(json.loads(TEXT)[part])
    refuse(TEXT.replace("{", f'{{"{part}": {again}, ', 1), f"{part!r} twice")
    refuse(TEXT.replace('"kind": ', '"kind": "score", "kind": ', 1), "'kind' twice")


@pytest.mark.parametrize("version", ["true", "1.0", '"1"', "null", "[1]"])
def test_version_is_a_whole_number(version):
    """Python takes true and 1.0 for 1; other readers do not."""
    refuse(TEXT.replace('"version": 2', f'"version": {version}'), "has format")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"classes": {"dtype": "<i8", "values": []}}, "list of classes is empty"),
        ({"groups": []}, "list of groups is empty"),
        ({"measures": []}, "list of measures is empty"),
        ({"groups": ["F", "F"]}, "'F' twice among its groups"),
        ({"gaps": lambda gaps: [-1.0 for _ in gaps]}, "gap is negative"),
        ({"prices": [["a", 1.0], ["a", 2.0]]}, "price stands there twice"),
        ({"salt": "ab" * 15}, "salt is not 32 hexadecimal digits"),
        ({"salt": "seed-" + "ab" * 15}, "salt is not 32 hexadecimal digits"),
        ({"loss": 10**400}, "loss is no array"),
        ({"q": "1"}, "q holds '1', which is no number"),
    ],
)
def test_wrong_parts_are_named(changes, words):
    """Whatever the checksum says, empty lists, doubled names, negative gaps and odd salts are refused by name."""
    refuse(tampered(**changes), words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\ufeff" + TEXT, "BOM"),
        ("[" * 200_000, "not whole JSON"),
        (TEXT.replace('"version": 2', '"version": 1' + "0" * 5000), "not whole JSON"),
        (TEXT + TEXT, "not whole JSON"),
    ],
    ids=["byte order mark", "deep", "long number", "twice"],
)
def test_text_that_is_no_document(text, words):
    """A byte order mark, a nest without end, a number without end and two files in one are refused."""
    refuse(text, words)


def test_sha256_is_the_checksum_of_the_file(tmp_path):
    """It is what the file holds, the same after a file, and another for another policy."""
    assert json.loads(TEXT)["sha256"] == POLICY.sha256
    assert Policy.from_json(TEXT).sha256 == POLICY.sha256
    assert POLICY.resalted().sha256 != POLICY.sha256


@pytest.mark.filterwarnings("error")
def test_saving_a_seeded_lottery_warns(tmp_path):
    """Anybody can compute the draws of a seed: saving says so, but not of a fresh salt, or without a lottery."""
    seeded = make_policy()
    assert seeded.is_randomized
    with pytest.warns(LotteryWarning, match=r"comes from a seed.*resalted\(\)"):
        seeded.save(tmp_path / "policy.json")
    with pytest.warns(LotteryWarning, match="comes from a seed"):
        load(tmp_path / "policy.json").save(tmp_path / "again.json")
    fresh = seeded.resalted()
    assert re.fullmatch("[0-9a-f]{32}", fresh.salt)
    assert (fresh.q == seeded.q).all()
    fresh.save(tmp_path / "fresh.json")
    replace(seeded, randomize=False).save(tmp_path / "rounded.json")
    replace(seeded, q=np.eye(2)[seeded.q.argmax(axis=2)]).save(tmp_path / "certain.json")


@pytest.mark.parametrize("row", [[0.5, 0.6], [0.5, 0.499999], [0.0, 0.0], [-0.5, 1.5], [2.0, -1.0]], ids=str)
def test_wrong_probabilities(row):
    """Probabilities that are negative or do not sum to one are refused, whatever the checksum says."""
    refuse(tampered(q=lambda q: [[row, q[0][1]], q[1]]), "negative or do not sum to one")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("part", ["q", "loss", "mass"])
def test_not_a_number(number, part):
    """NaN and infinity are refused where they stand."""
    content = json.loads(TEXT)
    content[part] = "HERE"
    refuse(json.dumps(content).replace('"HERE"', number), f"the number {number}")


@pytest.mark.parametrize("part", ["q", "mass", "means", "gaps", "loss", "prices"])
def test_overflowing_number(part):
    """A number too large for a float is refused as not finite."""
    content = json.loads(TEXT)
    content[part] = {"loss": 1, "prices": [["x", 1]]}.get(part) or np.ones(np.shape(content[part])).tolist()
    text = sealed(content | {part: replace_first(content[part], float("inf"))}).replace("Infinity", "1e999")
    refuse(text, "not finite")


def replace_first(part, number):
    """The first number somewhere inside nested lists, replaced."""
    if not isinstance(part, list):
        return number
    if part and isinstance(part[0], str):
        return [part[0], number]
    return [replace_first(part[0], number), *part[1:]]


@pytest.mark.parametrize("version", [0, 1, 3, 99, "2", None, 2.5, [2]])
def test_wrong_version(refuses, version):
    """A file of another version is refused with both versions and the way out."""
    with refuses(PolicyFileError, f"format {version!r}", "reads format 2", remedy="0.1.0"):
        Policy.from_json(tampered(version=version))


SHAPES = {
    "q": [
        [[1.0, 0.0]],
        [[[1.0, 0.0]]] * 2,
        [[[0.5, 0.25, 0.25]] * 2] * 2,
        [1.0],
        1.0,
        [],
        [[[1.0, 0.0]] * 2] * 3,
    ],
    "mass": [[1.0, 1.0], [[1.0] * 3] * 2, 5, []],
    "means": [[0.5, 0.5], [[0.5, 0.5]] * 2, []],
    "gaps": [[0.0, 0.0], [[0.0, 0.0]], 0.0, []],
}


@pytest.mark.parametrize(
    ("part", "value"), [(part, value) for part, values in SHAPES.items() for value in values]
)
def test_wrong_shapes(part, value):
    """Arrays of the wrong shape are refused with the shape that was expected."""
    refuse(tampered(**{part: value}), part, "shape")


@pytest.mark.parametrize("ragged", [[[[1.0, 0.0], [1.0]], [[1.0, 0.0]]], [[1], [1, 2]]])
def test_ragged_probabilities(ragged):
    """Rows of different lengths are refused."""
    refuse(tampered(q=ragged), "no policy file")


BROKEN = {
    "explore null": {"explore": None},
    "explore text": {"explore": ["chance"]},
    "order": {"order": "worst first"},
    "other decisions": {"order": "worst first", "decisions": {"dtype": "U", "values": ["a", "b"]}},
    "policy kind": {"policy": "score"},
    "policy list": {"policy": ["label"]},
    "policy null": {"policy": None},
    "groups twice": {"groups": ["F", "F"]},
    "groups equal": {"groups": [1, True]},
    "groups none": {"groups": []},
    "groups too many": {"groups": ["F", "M", "X"]},
    "groups null": {"groups": ["F", None]},
    "groups nested": {"groups": ["F", ["M"]]},
    "groups text": {"groups": "FM"},
    "groups object": {"groups": {"F": 0, "M": 1}},
    "classes twice": {"classes": {"dtype": "<i8", "values": [1, 1]}},
    "classes list": {"classes": [0, 1]},
    "classes one": {"classes": {"dtype": "<i8", "values": [1]}},
    "classes type": {"classes": {"dtype": "|V8", "values": [0, 1]}},
    "classes no type": {"classes": {"values": [0, 1]}},
    "classes type number": {"classes": {"dtype": 8, "values": [0, 1]}},
    "classes text as int": {"classes": {"dtype": "<i8", "values": ["a", "b"]}},
    "classes overflow": {"classes": {"dtype": "|i1", "values": [0, 300]}},
    "classes cut": {"classes": {"dtype": "<U1", "values": ["approve", "reject"]}},
    "classes rounded": {"classes": {"dtype": "<i8", "values": [0.5, 1.7]}},
    "classes as text": {"classes": {"dtype": "<U3", "values": [0, 1]}},
    "classes null": {"classes": {"dtype": "|O", "values": [0, None]}},
    "measures none": {"measures": []},
    "measures object": {"measures": {"a": 1}},
    "measures twice": {"measures": lambda found: [found[0], found[0]]},
    "measure extra": {"measures": lambda found: [found[0] | {"extra": 1}, *found[1:]]},
    "measure name": {"measures": lambda found: [found[0] | {"name": 5}, *found[1:]]},
    "measure unit": {"measures": lambda found: [found[0] | {"unit": None}, *found[1:]]},
    "measure looks": {"measures": lambda found: [found[0] | {"looks_at_y": "no"}, *found[1:]]},
    "measure bounds empty": {"measures": lambda found: [found[0] | {"bounds": []}, *found[1:]]},
    "measure bounds text": {"measures": lambda found: [found[0] | {"bounds": ["a", "b"]}, *found[1:]]},
    "measure bounds three": {"measures": lambda found: [found[0] | {"bounds": [0, 1, 2]}, *found[1:]]},
    "loss text": {"loss": "abc"},
    "loss number as text": {"loss": "0.5"},
    "loss null": {"loss": None},
    "loss list": {"loss": [0.5]},
    "prices short": {"prices": [["a"]]},
    "prices text": {"prices": [["a", "b"]]},
    "prices object": {"prices": {"a": 1}},
    "prices null": {"prices": None},
    "salt short": {"salt": "ab"},
    "salt upper": {"salt": "AB" * 16},
    "salt newline": {"salt": "ab" * 16 + "\n"},
    "salt number": {"salt": 5},
    "randomize number": {"randomize": 1},
    "randomize null": {"randomize": None},
    "mass negative": {"mass": [[-1.0, 1.0], [1.0, 1.0]]},
    "q null": {"q": lambda q: [[[None, 1.0], q[0][1]], q[1]]},
    "q text": {"q": [[["1", "0"], ["0", "1"]]] * 2},
    "q integer too large": {"q": lambda q: [[[10**400, 0.0], q[0][1]], q[1]]},
    "unknown part": {"extra": 1},
}


ASKED = {
    "words": "gap of 'x'",
    "measure": 0,
    "statistic": "gap",
    "over": None,
    "sides": [None, None],
    "baseline": False,
    "names": ["a", "b"],
    "shares": [[1.0] + [0.0] * (len(POLICY.groups) - 1), [0.0] * (len(POLICY.groups) - 1) + [1.0]],
    "left_out": [["c", 3.0]],
}
BASIS = json.loads(TEXT)["basis"]
BROKEN |= {
    "attributes that are text": {"attributes": "sex"},
    "attributes of nothing": {"attributes": [None]},
    "a group left out that is none": {"left_out": [["funding", 30, [["c", 3.0]]]]},
    "a group left out of no measure": {"left_out": [["none", 30, [["F", 3.0]]]]},
    **{
        f"a requirement with {part} {value!r}": {"basis": BASIS | {"requirements": [ASKED | {part: value}]}}
        for part, value in (
            ("words", 3), ("measure", 7), ("measure", True), ("measure", "mode"), ("names", []),
            ("names", ["a"]), ("shares", [[1.0]]), ("shares", "1"), ("left_out", [["c", "3"]]), ("more", 1),
        )
    },
    "requirements that are none": {"basis": BASIS | {"requirements": 3}},
}  # fmt: skip


def test_requirements_of_a_file_are_read():
    """As the file says them, when it says them right."""
    read = Policy.from_json(tampered(basis=BASIS | {"requirements": [ASKED]}))
    assert list(read.reached) == ["gap of 'x'"]
    assert read.not_constrained == {"gap of 'x'": {"c": 3.0}}


@pytest.mark.parametrize("case", BROKEN)
def test_tampered_part(case):
    """A part of the wrong kind is refused as no policy file, even with a checksum that fits."""
    refuse(tampered(**BROKEN[case]), "no policy file")


@pytest.mark.parametrize(
    "part",
    sorted(
        set(json.loads(TEXT))
        - {"basis", "attributes", "left_out", "changed", "gains", "loses", "explore", "labels"}
        - {"unconstrained"}
    ),
)  # which files of 0.1.0 do not have
def test_missing_part(part):
    """A file that lacks any of its parts is refused, and names it where it can."""
    content = json.loads(TEXT)
    del content[part]
    word = {"format": "format", "version": "format", "sha256": "checksum"}.get(part, part)
    refuse(json.dumps(content) if part == "sha256" else sealed(content), word)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "null",
        "5",
        "[]",
        "{}",
        '"felicific policy"',
        "{'format': 1}",
        "\ufeff" + TEXT,
        "<html>",
        TEXT + TEXT,
    ],
    ids=lambda text: repr(text[:20]),
)
def test_not_a_policy(text):
    """Whatever is not one JSON object of the right format is refused."""
    refuse(text, "no policy file")


def test_deep_nesting():
    """Deeply nested JSON is refused like any other nonsense; it does not crash the reader at any depth."""
    limit = sys.getrecursionlimit()
    for depth in [100, *range(limit - 300, limit + 20), 100_000]:
        text = (
            '{"format": "felicific policy", "version": 2, "sha256": "", "q": '
            + "[" * depth
            + "]" * depth
            + "}"
        )
        refuse(text, "no policy file")


def test_endless_number():
    """An integer of thousands of digits is refused like any other nonsense."""
    refuse(TEXT.replace('"version": 2', '"version": ' + "1" * 5_000), "no policy file")


def test_binary_file(tmp_path):
    """A binary file is refused as not text, by its name."""
    path = tmp_path / "policy.bin"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(PolicyFileError, match=r"policy\.bin.*not a file that felicific wrote"):
        load(path)


def test_no_file(tmp_path):
    """A file that does not exist is Python's own error."""
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing.json")


# ---------------------------------------------------------------------------------------------------------
# Saving


def test_save_replaces(tmp_path):
    """Saving over a file replaces it whole, leaves nothing else behind, and follows the umask."""
    path = tmp_path / "policy.json"
    path.write_text("x" * 100_000)
    POLICY.save(path)
    POLICY.save(str(path))
    assert path.read_text("utf-8") == TEXT
    assert os.listdir(tmp_path) == ["policy.json"]
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


@pytest.mark.parametrize("fails", ["os.fsync", "os.replace", "pathlib.Path.write_bytes"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=["full", "interrupt"])
def test_interrupted_save(tmp_path, monkeypatch, fails, error):
    """A write that is interrupted leaves the old file as it was, and no litter."""
    path = tmp_path / "policy.json"
    path.write_text("old")

    def fail(*_, **__):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(fails, fail)
        with pytest.raises(type(error)):
            POLICY.save(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["policy.json"]


# ---------------------------------------------------------------------------------------------------------
# Words and numbers


def test_sentences():
    """The sentences name every group and label, the probabilities, the unit, the means and the gap."""
    happy = Happiness(funding, name="loan granted", unit="$")
    policy = make_policy(classes=CLASSES["int"], happiness=happy, gap=0.0)
    sentences = policy.sentences()
    assert len(sentences) == 2 * 2 + 1 + 1 + 2  # the last two: what to expect, and that the people are few
    assert all(sentence.endswith(".") and sentence[0].isupper() for sentence in sentences)
    assert str(policy) == "\n".join(sentences)
    for group in ("F", "M"):
        for label in (0, 1):
            found = [s for s in sentences if f"In group '{group}'" in s and f"the model labels {label} " in s]
            assert len(found) == 1
            z, s = policy.groups.index(group), label
            assert f"{policy.mass[z, s] / policy.mass[z].sum():.1%} of the group" in found[0]
            for d in (0, 1):
                if 0 < policy.q[z, s, d] < 1:
                    assert f"{d} with probability {policy.q[z, s, d]:.2%}" in found[0]
                    assert "by lottery" in found[0]
                if policy.q[z, s, d] == 1:
                    assert f"always decided {d}" in found[0]
                    assert ("not as the label says" in found[0]) == (d != label)
    assert any("by lottery" in sentence for sentence in sentences)
    assert f"accuracy is {1 - policy.loss:.2%}" in sentences[-4]
    mean = policy.means["loan granted"]["F"]
    assert f"${mean:,.6g} in group 'F'" in sentences[-3]
    assert "a gap of $0." in sentences[-3]


def test_sentences_of_a_reversed_label():
    """A person who is decided against the label is told so."""
    q = np.array([[[0.0, 1.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]])
    sentences = replace(POLICY, q=q).sentences()
    assert sentences[0].endswith("is always decided 1, not as the label says.")
    assert sentences[1].endswith("is always decided 1.")
    assert sentences[3].endswith("is always decided 0, not as the label says.")


def test_sentences_of_a_rounded_policy():
    """A policy that does not draw never speaks of a lottery."""
    words = str(replace(make_policy(), randomize=False))
    assert "lottery" not in words
    assert "most probable" in words


def test_sentences_of_a_rounded_soft_label():
    """A rounded soft-label policy draws no label, so its sentences must not say that one is drawn."""
    assert "is drawn" not in str(replace(make_policy(policy="soft-label"), randomize=False))


@pytest.mark.parametrize("kind", GROUPS)
def test_sentences_of_hostile_groups(kind):
    """Every group is spelled out in its sentences, on one line each."""
    policy = make_policy(groups=GROUPS[kind])
    sentences = policy.sentences()
    assert not any("\n" in sentence or "\r" in sentence for sentence in sentences)
    for group in policy.groups:
        assert sum(f"In group {group!r}, " in sentence for sentence in sentences) == 2


def test_single_gap():
    """``gap`` is the gap of a single measure."""
    policy = make_policy(happiness=funding, gap=250.0)
    assert policy.gap == policy.gaps["funding"] == pytest.approx(250.0, rel=1e-9)
    assert policy.means["funding"]["M"] - policy.means["funding"]["F"] == pytest.approx(policy.gap)


def test_gap_of_several_measures(refuses):
    """With several measures ``gap`` raises and points to ``gaps``."""
    with refuses(ConstraintError, "2 measures", remedy=".gaps"):
        _ = make_policy(happiness="equalized_odds", gap=0.5).gap
    assert set(POLICY.gaps) == {"selection rate"}
    assert POLICY.gap == POLICY.gaps["selection rate"]


def test_apply_takes_labels_or_probabilities():
    """A label policy gives the same to labels and to the probabilities that they are the most probable of."""
    score = np.where(PREDICTED[:, None] == [0, 1], 0.75, 0.25)
    assert (POLICY.probabilities(PREDICTED, GROUP) == POLICY.probabilities(score, GROUP)).all()
    assert (
        POLICY.probabilities(PREDICTED.tolist(), GROUP.tolist()) == POLICY.probabilities(PREDICTED, GROUP)
    ).all()


@pytest.mark.parametrize(
    ("scores", "group", "words"),
    [
        ([0, 1], ["F"], ["1 groups", "2 scores"]),
        ([0, 2], ["F", "M"], ["2", "row 1", "classes [0, 1]"]),
        ([0, None], ["F", "M"], ["missing", "row 1"]),
        ([[0.5, 0.4], [0.5, 0.5]], ["F", "M"], ["row 0", "0.4", "sum to one"]),
        ([[0.5, 0.5], [0.5, float("nan")]], ["F", "M"], ["row 1", "nan"]),
        ([[1.5, -0.5]], ["F"], ["row 0", "-0.5"]),
        ([[[1.0]]], ["F"], ["shape (1, 1, 1)", "2 classes"]),
        ([[1.5]], ["F"], ["row 0", "1.5"]),
        ([["a", "b"]], ["F"], ["type <U1"]),
    ],
)
def test_apply_refuses(refuses, scores, group, words):
    """Scores that are no labels and no probabilities are refused with the row and what it holds."""
    with refuses(DataError, *words):
        POLICY.probabilities(scores, group)


def test_apply_refuses_unknown_groups(refuses):
    """A group that was never fitted is named together with the known ones."""
    with refuses(GroupError, "'X'", "row 1", "known are 'F', 'M'", remedy="Fit on data"):
        POLICY.probabilities([0, 1], ["F", "X"])


def test_outcomes_name_groups_and_measures():
    """Printed, or as a dict, every number of an outcome stands with its group and measure."""
    people = {"sex": ["f", "m"] * 50, "score": [0.2, 0.7, 0.6, 0.4] * 25, "repaid": [0, 1, 1, 0] * 25}
    policy = solved(
        people,
        score="score",
        y="repaid",
        sensitive_features="sex",
        happiness={"yes": "decision", "right": "decision == y"},
        gap=0.0,
        random_state=0,
    )
    for outcome in policy.outcomes.values():
        found = outcome.to_dict()
        assert found["loss"] == outcome.loss
        for z, group in enumerate(policy.groups):
            assert found["changed"][group] == outcome.changed[z]
            for j, name in enumerate(("yes", "right")):
                assert found["gaps"][name] == outcome.gaps[j]
                for part in ("means", "gains", "loses"):
                    assert found[part][name][group] == getattr(outcome, part)[z, j]
        assert f"'yes': means 'f' {outcome.means[0, 0]:.6g}, 'm' {outcome.means[1, 0]:.6g}" in repr(outcome)
    old = replace(
        policy, basis=replace(policy.basis, baseline=replace(policy.basis.baseline, changed=None, gains=None))
    )
    assert old.outcomes["baseline"].to_dict()["gains"] is None
    assert "changed" not in repr(old.outcomes["baseline"])
    assert policy.outcome.to_dict() == policy.outcomes["proposed"].to_dict()
    assert Policy.from_json(policy.to_json()).outcome.to_dict() == policy.outcome.to_dict()
    assert "without names" in repr(replace(policy.outcome, groups=(), measures=()))
