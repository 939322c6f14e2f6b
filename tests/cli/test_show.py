"""``felicific show``: all that a policy file says, but for the salt."""

import json
from pathlib import Path

import pytest

from felicific import load

pytestmark = pytest.mark.filterwarnings("ignore:The salt of this policy comes from a seed")

FIT = (
    "fit scores.csv --score score --label repaid --group sex --happiness 'decision * loan' --name funding --unit k$ "
    "--gap 1 --out policy.json"
)


def test_show_says_what_the_file_holds(loans, done):
    """Sentences, people by group, what was asked, and the checksum, as text and as JSON."""
    done(f"{FIT} --floor 1")
    policy = load("policy.json")
    text = done("show policy.json")
    for sentence in policy.sentences(4):
        assert sentence in text
    sizes = loans["sex"].value_counts()
    assert f"'Female' ({sizes['Female']} people), 'Male' ({sizes['Male']} people)" in text
    assert "a gap of 'funding' of at most 1 k$" in text
    assert "Asked for: mean 'funding' of group 'Male' at least 1 k$." in text
    assert policy.sha256 in text
    content = json.loads(done("show policy.json --json"))
    assert content["sha256"] == policy.sha256
    assert content["asked"]["gaps"] == {"funding": 1.0}
    assert {one["group"]: one["people"] for one in content["groups"]} == sizes.to_dict()


@pytest.mark.parametrize("seed", ["", " --seed 3"])
def test_the_salt_is_never_shown(seed, loans, done, capsys):
    """Neither as text nor as JSON, whether it is drawn or comes from a seed; that it does is said."""
    done(f"{FIT}{seed}")
    salt = load("policy.json").salt
    capsys.readouterr()
    for line in ("show policy.json", "show policy.json --json"):
        text = done(line)
        assert salt not in text
        assert salt.removeprefix("seed-") not in text
    assert ("comes from a seed" in done("show policy.json")) == bool(seed)


def test_signed_or_not(loans, done, command_line):
    """With the decision that was signed, who signed it; and exit code 4 for another policy."""
    done(FIT)
    signed = {
        "format": "felicific decision",
        "version": 2,
        "title": None,
        "position": {"gap": {"funding": 1.0}},
        "verdict": "It shrinks the gap.",
        "reason": "",
        "sentence": "It shrinks the gap.",
        "flags": [],
        "policy_sha256": load("policy.json").sha256,
        "people_sha256": None,
        "model": None,
        "felicific": "0.1.0",
        "signed": dict.fromkeys(["role", "date", "next_audit", "why", "objections"], "") | {"name": "Ada"},
    }
    Path("decision.json").write_text(json.dumps(signed))
    assert "Signed by Ada" in done("show policy.json --signed decision.json")
    done(FIT.replace("--gap 1", "--gap 2 --force"))
    code, out, err = command_line("show policy.json --signed decision.json")
    assert (code, out) == (4, "")
    assert "Another policy was signed" in err


def test_other_files_are_refused_by_what_they_are(loans, done, command_line):
    """A file of sums, a table, a torn file and none at all: one line each."""
    done(
        "aggregate scores.csv --score score --label repaid --group sex --happiness 'decision * loan' --out sums.json"
    )
    done(FIT)
    Path("torn.json").write_text(Path("policy.json").read_text()[:200])
    for name, words in (
        ("sums.json", "'sums.json' holds sums of people, and should hold a policy."),
        ("scores.csv", "not a file that felicific wrote"),
        ("torn.json", "'torn.json'"),
        ("none.json", "No such file"),
    ):
        code, out, err = command_line(f"show {name}")
        assert (code, out) == (1, "")
        assert words in err, err
