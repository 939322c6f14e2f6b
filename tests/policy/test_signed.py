"""A decision that was signed: read with suspicion, and good for the one policy that was meant."""

import json
from dataclasses import replace

import pytest
from helpers import solved

from felicific._policy.signed import Signed
from felicific.exceptions import PolicyFileError, SignedError

PEOPLE = {"sex": ["f", "m"] * 40, "score": [0.2, 0.7, 0.6, 0.4] * 20, "repaid": [0, 1, 1, 0] * 20}
POLICY = solved(
    PEOPLE, score="score", y="repaid", sensitive_features="sex", happiness="decision", gap=0.1, random_state=0
)
WRITTEN = {
    "name": "Ada Lovelace",
    "role": "Chief risk officer",
    "date": "2025-03-01",
    "next_audit": "2025-09-01",
    "why": "",
    "objections": "",
}
DECISION = {
    "format": "felicific decision",
    "version": 2,
    "title": "Loans",
    "position": {"gap": {"decision": 0.1}},
    "verdict": "certified",
    "reason": "basis",
    "sentence": "It shrinks the gap, and that is certified.",
    "flags": ["sees-group"],
    "policy_sha256": POLICY.sha256,
    "people_sha256": "ab" * 32,
    "model": "LogisticRegression",
    "felicific": "0.1.0",
    "signed": WRITTEN,
}


@pytest.fixture
def file(tmp_path):
    """Write a decision, changed in some parts, or text; returns the path."""

    def write(text=None, **changes):
        path = tmp_path / "decision.json"
        path.write_text(json.dumps(DECISION | changes) if text is None else text, "utf-8")
        return path

    return write


def test_what_was_signed_is_read_as_it_was_saved(file):
    """Every part comes back, and the policy that was meant passes."""
    signed = Signed.read(file())
    signed.check(POLICY)
    told = signed.to_dict()
    for name in ("title", "position", "verdict", "reason", "sentence", "flags", "policy_sha256"):
        assert told[name] == DECISION[name]
    assert {name: told[name] for name in WRITTEN} == WRITTEN
    assert not signed.baseline
    assert (signed.gaps, signed.model, signed.felicific) == ({"decision": 0.1}, "LogisticRegression", "0.1.0")
    assert (
        signed.words
        == "Signed by Ada Lovelace, Chief risk officer, 2025-03-01: It shrinks the gap, and that is certified."
    )


@pytest.mark.parametrize(
    "other",
    [
        POLICY.resalted(),
        replace(POLICY, randomize=False),
        replace(POLICY, basis=replace(POLICY.basis, change_cost=0.07)),
    ],
    ids=["another salt", "rounded", "another cost of changes"],
)
def test_every_other_policy_is_refused(file, other):
    """Another salt gives other draws, so that it is another policy; the message says both, and what to do."""
    with pytest.raises(SignedError, match="Another policy was signed") as caught:
        Signed.read(file()).check(other)
    for sha256 in (POLICY.sha256, other.sha256):
        assert sha256[:12] in str(caught.value)
    assert "have this one signed" in caught.value.remedy


def test_nobody_signed(file):
    """A name of blanks is none, whatever else was filled in."""
    for name in ("", "  \n"):
        with pytest.raises(SignedError, match=r"Nobody signed .* Fill in the name"):
            Signed.read(file(signed=WRITTEN | {"name": name})).check(POLICY)


def test_the_baseline_is_no_policy(file):
    """Whoever signs that everything stays as it is has signed no policy."""
    signed = Signed.read(file(position={"baseline": True}, policy_sha256=None))
    assert (signed.baseline, signed.gaps, signed.to_dict()["position"]) == (True, {}, {"baseline": True})
    with pytest.raises(SignedError, match="leave everything as it is"):
        signed.check(POLICY)


MISTAKES = {
    "its format": {"format": "felicific policy"},
    "its version is 1": {"version": 1},
    "its version is True": {"version": True},
    "its version is '1'": {"version": "1"},
    "it holds 'more'": {"more": 1},
    "its title is of another type": {"title": 3},
    "its verdict is of another type": {"verdict": None},
    "its flags is of another type": {"flags": "sees-group"},
    "a flag is no text": {"flags": [1]},
    "its policy_sha256 is not 64": {"policy_sha256": POLICY.sha256[:-1]},
    "its policy_sha256 is not 64 ": {"policy_sha256": POLICY.sha256.upper()},
    "its policy_sha256 is not 64  ": {"policy_sha256": POLICY.sha256 + "\n"},
    "its people_sha256 is not 64": {"people_sha256": "g" * 64},
    "its policy_sha256 is of another type": {"policy_sha256": 12},
    "it names no policy": {"policy_sha256": None},
    "it says baseline, and names a policy": {"position": {"baseline": True}},
    "its position is neither": {"position": {"baseline": False}},
    "its position is neither ": {"position": {}},
    "its position is neither  ": {"position": {"gap": 0.1}},
    "its position is neither   ": {"position": {"gap": {"decision": 0.1}, "baseline": True}},
    "its position is neither    ": {"position": {"baseline": 1}},
    "a gap of its position": {"position": {"gap": {"decision": -0.1}}},
    "a gap of its position ": {"position": {"gap": {"decision": True}}},
    "a gap of its position  ": {"position": {"gap": {"decision": "0.1"}}},
    "what was signed is not name": {"signed": {"name": "Ada"}},
    "what was signed is not name ": {"signed": WRITTEN | {"why": None}},
    "what was signed is not name  ": {"signed": WRITTEN | {"more": ""}},
}


@pytest.mark.parametrize("words", MISTAKES)
def test_whatever_is_no_decision_is_refused(file, words):
    """One line names the file, what is wrong with it and what to do."""
    path = file(**MISTAKES[words])
    with pytest.raises(PolicyFileError) as caught:
        Signed.read(path)
    assert words.strip() in caught.value.problem
    assert str(path) in caught.value.problem
    assert "Save it again" in caught.value.remedy
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("part", [name for name in DECISION if name not in ("format", "version")])
def test_no_part_may_be_missing(file, part):
    """A decision without a part is named by that part."""
    text = json.dumps({name: value for name, value in DECISION.items() if name != part})
    with pytest.raises(PolicyFileError, match=f"it lacks '{part}'"):
        Signed.read(file(text))


TEXT = json.dumps(DECISION)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        TEXT[:-1],
        TEXT + TEXT,
        TEXT.replace("0.1}", "NaN}"),
        TEXT.replace("0.1}", "1e999}"),
        TEXT.replace('"version": 2', '"version": 2, "version": 2'),
        "[" * 100_000,
        POLICY.to_json(),
    ],
    ids=lambda text: repr(text[:12] + text[-12:]),
)
def test_what_is_not_whole_json_is_refused(file, text):
    """Cut, doubled, with a number that is none or a name that stands twice."""
    with pytest.raises(PolicyFileError, match="is no signed decision"):
        Signed.read(file(text))


def test_what_is_no_text_is_refused(tmp_path):
    """Bytes that are no UTF-8; a file that is not there is an error of the system."""
    path = tmp_path / "decision.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PolicyFileError, match="it is not text"):
        Signed.read(path)
    with pytest.raises(FileNotFoundError):
        Signed.read(tmp_path / "nothing.json")


def test_a_page_on_which_nothing_is_closed(file):
    """Where no gap was asked for, a policy was signed all the same."""
    signed = Signed.read(file(position={"gap": {}}))
    signed.check(POLICY)
    assert (signed.baseline, signed.to_dict()["position"]) == (False, {"gap": {}})


def test_names_of_any_letters(file):
    """A name is whatever somebody wrote, lone surrogates of a broken form included."""
    signed = Signed.read(file(signed=WRITTEN | {"name": "Аделаида \ud800 <b>"}))
    assert "Аделаида" in signed.words
