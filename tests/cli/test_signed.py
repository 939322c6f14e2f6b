"""From a page that was signed to the policy that is applied: the one that was meant, or exit code 4."""

import json
import os
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import python_words

from felicific import load
from felicific._policy.signed import Signed
from felicific._report.slider import aims, decision
from felicific.cli import run
from felicific.cli.report import ReportOptions, _fitted, _page, _signed_policy
from felicific.exceptions import SignedError

pytestmark = pytest.mark.filterwarnings("always::felicific.exceptions.LotteryWarning")

REPORT = "report scores.csv --score score --label repaid --group sex --happiness decision*loan --name loan --gap 900"
SEEDED = f"{REPORT} --seed 3"
OPTIONS = ReportOptions(
    file="scores.csv",
    score=["score"],
    label="repaid",
    group=["sex"],
    happiness=["decision*loan"],
    name="loan",
    gap=["900"],
    seed=3,
)
APPLY = "apply policy.json scores.csv --score score --group sex --key id --out decided.csv"
NOTE = "felicific: note: The salt of this policy comes from a seed"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    n = 600
    sex = rng.choice(["f", "m"], n)
    score = np.round(rng.beta(2, 2, n), 3)
    loan = np.round(rng.lognormal(9, 0.5, n) * np.where(sex == "f", 1.4, 1.0), 2)
    repaid = (rng.random(n) < score).astype(int)
    monkeypatch.chdir(tmp_path)
    table = {"id": np.arange(n), "sex": sex, "score": score, "loan": loan, "repaid": repaid}
    pd.DataFrame(table).to_csv("scores.csv", index=False)
    return tmp_path


@pytest.fixture
def felicific(capsys):
    def call(line):
        before = sorted(os.listdir())
        code = run(shlex.split(line))
        captured = capsys.readouterr()
        assert not python_words(captured.err), captured.err
        if code:
            assert captured.out == ""
            assert captured.err.startswith("felicific: ")
            assert len([line for line in captured.err.splitlines() if NOTE not in line]) == 1
            assert sorted(os.listdir()) == before
        return code, captured.out, captured.err

    return call


@pytest.fixture
def fair():
    """What the seeded command fits."""
    return _fitted(OPTIONS)[0]


def sign(sha256, position, path="decision.json", **written):
    told = dict.fromkeys(("role", "date", "next_audit", "why", "objections"), "") | {"name": "Ada"} | written
    content = {
        "format": "felicific decision",
        "version": 2,
        "title": None,
        "position": position,
        "verdict": "levels-down",
        "reason": "everybody",
        "sentence": "The gap goes from $9 to $4.",
        "flags": [],
        "policy_sha256": sha256,
        "people_sha256": None,
        "model": None,
        "felicific": "0.1.0",
        "signed": told,
    }
    Path(path).write_text(json.dumps(content), "utf-8")


def test_the_policy_that_a_page_proposes_is_written_beside_it(felicific):
    """Without a seed the salt is a secret, and the policy that was signed is applied; --json says who signed what."""
    code, out, err = felicific(f"{REPORT} --policy-out policy.json")
    assert (code, err) == (0, "")
    assert out.endswith("Written to policy.json.\nWritten to report.html.\n")
    policy = load("policy.json")
    assert not policy.salt.startswith("seed-")
    assert policy.gap <= 900 * (1 + 1e-9)
    sign(policy.sha256, {"gap": {"loan": 900}}, role="CRO", date="2025-03-01")
    code, out, _ = felicific(f"{APPLY} --signed decision.json")
    assert code == 0
    assert "\nSigned by Ada, CRO, 2025-03-01: The gap goes from $9 to $4.\n" in out
    code, out, _ = felicific(f"{APPLY} --signed decision.json --json --force")
    assert code == 0
    told = json.loads(out)["signed"]
    assert (told["name"], told["role"], told["policy_sha256"]) == ("Ada", "CRO", policy.sha256)
    assert told["position"] == {"gap": {"loan": 900.0}}
    assert json.loads(felicific(f"{APPLY} --json --force")[1])["signed"] is None


def test_only_what_was_signed_is_applied(felicific):
    """Another policy, the baseline, and a page that nobody signed end with exit code 4; no file at all with 1."""
    assert felicific(f"{REPORT} --policy-out policy.json")[0] == 0
    sha256 = load("policy.json").sha256
    cases = [
        ({"sha256": "0" * 64, "position": {"gap": {"loan": 900}}}, 4, "Another policy was signed"),
        ({"sha256": None, "position": {"baseline": True}}, 4, "leave everything as it is"),
        ({"sha256": sha256, "position": {"gap": {"loan": 900}}, "name": " "}, 4, "Fill in the name"),
        ({"sha256": sha256[1:], "position": {"gap": {"loan": 900}}}, 1, "64 hexadecimal digits"),
    ]
    for told, code, words in cases:
        sign(**told)
        found, _, err = felicific(f"{APPLY} --signed decision.json")
        assert (found, words in err) == (code, True), err
    found, _, err = felicific(f"{APPLY} --signed nothing.json")
    assert (found, "nothing.json" in err) == (1, True)


def test_a_seed_gives_the_policy_at_the_signed_position(felicific, fair):
    """The same command makes it again, at any position, with just the salt that was signed, and writes no page."""
    moved = fair.at(gap=2_500.0).policy_
    assert moved.sha256 == fair.at(gap={"loan": 2_500.0}).policy_.sha256 != fair.policy_.sha256
    for policy, gap in ((moved, 2_500.0), (fair.policy_, 900.0)):
        sign(policy.sha256, {"gap": {"loan": gap}})
        code, out, err = felicific(f"{SEEDED} --policy-out policy.json --signed decision.json --force")
        assert (code, out) == (0, "Written to policy.json.\n"), err
        assert not policy.is_randomized or (NOTE in err and "as it was signed" in err)
        assert "Leave --seed out" not in err
        assert load("policy.json").sha256 == policy.sha256
        assert not Path("report.html").exists()
        assert felicific(f"{APPLY} --signed decision.json --force")[0] == 0


def test_a_seeded_policy_beside_a_page_says_so(felicific, fair):
    """It has the salt of the page, since whoever signs the page signs that; a note says what would be better."""
    code, _, err = felicific(f"{SEEDED} --policy-out policy.json")
    assert (code, NOTE in err, "Leave --seed out." in err) == (0, True, True)
    assert load("policy.json").sha256 == fair.policy_.sha256


def test_no_other_policy_is_written_for_a_signature(felicific, fair):
    """Another seed, none, other options or a position that is none: exit code 4, nothing written, not even a page.

    Where another gap was asked for, the same frontier gives just the same policy at the position.
    """
    sign(fair.at(gap=2_500.0).policy_.sha256, {"gap": {"loan": 2_500.0}})
    ask = "--policy-out policy.json --signed decision.json"
    other = SEEDED.replace("900", "800")
    assert felicific(f"{other} --policy-out same.json --signed decision.json")[0] == 0
    for line in (REPORT, f"{REPORT} --seed 4", f"{SEEDED} --policy label", SEEDED.replace("--name loan", "")):
        code, _, err = felicific(f"{line} {ask}")
        assert (code, "does not come out of this command" in err) == (4, True), err
    sign(fair.policy_.sha256[::-1], {"gap": {"nothing": 1.0}})
    code, _, err = felicific(f"{SEEDED} {ask}")
    assert (code, "nothing" in err) == (4, True), err
    sign(None, {"baseline": True})
    assert felicific(f"{SEEDED} {ask}")[0] == 4
    sign(fair.policy_.sha256, {"gap": {"loan": 900.0}}, name="")
    assert felicific(f"{SEEDED} {ask}")[0] == 4


def test_what_is_typed_wrongly_is_said_before_any_work(felicific):
    """A signature without a place for the policy, two files of one name, and a file that exists."""
    sign("0" * 64, {"gap": {"loan": 900}})
    for more, words in (
        ("--signed decision.json", "--policy-out FILE"),
        ("--out report.json --policy-out report.json", "Name two"),
        ("--policy-out decision.json", "--force"),
        ("--policy-out policy.txt", ".json"),
    ):
        code, _, err = felicific(f"{REPORT} {more}")
        assert (code, words in err) == (1, True), err


@pytest.mark.parametrize(
    "asked",
    [
        {"gap": ["900"]},
        {"gap": ["9000"], "confidence": 0.6},
        {"happiness": ["decision*loan", "decision"], "name": None, "gap": ["0"]},
        {"happiness": ["decision"], "name": None, "gap": [], "floor": ["baseline"]},
        {"happiness": ["precision_parity"], "name": None, "gap": ["0.05"]},
        {"kind": "individual"},
    ],
    ids=lambda asked: "-".join(f"{name}={value}" for name, value in asked.items()),
)
def test_every_position_of_a_page_can_be_signed(asked):
    """What the page saves at each position is read, and just that policy is found again; the baseline is refused."""
    options = replace(OPTIONS, **asked)
    fair, others = _fitted(options)
    content = _page(fair, others, options).content
    aimed = aims(content)
    again = _fitted(options)[0]
    for place, gaps in zip(content["positions"], aimed["aimed"], strict=True):
        at = {"baseline": True} if gaps is None else {"gap": dict(zip(aimed["gaps"], gaps, strict=True))}
        said = {name: place["verdict"][name] for name in ("reason", "sentence")}
        follows = {
            "verdict": place["verdict"]["kind"],
            "policy_sha256": place["policy_sha256"],
            "position": at,
        }
        flags = [flag["kind"] for flag in place["verdict"]["flags"]]
        written = dict.fromkeys(("role", "date", "next_audit", "why", "objections"), "") | {"name": "Ada"}
        saved = decision(content, "Loans") | said | follows | {"flags": flags, "signed": written}
        Path("decision.json").write_text(json.dumps(saved), "utf-8")
        signed = Signed.read("decision.json")
        if gaps is None:
            with pytest.raises(SignedError, match="leave everything as it is"):
                signed.check_signer()
        else:
            assert _signed_policy(again, signed).sha256 == place["policy_sha256"]


def test_a_page_that_cannot_be_written_leaves_no_policy(felicific, monkeypatch):
    """Both files, or none: here the page cannot be made."""
    import felicific._report.document as page

    def fail(content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(page, "render", fail)
    code, _, err = felicific(f"{REPORT} --policy-out policy.json")
    assert (code, "Nothing was written" in err) == (1, True)


def test_a_name_cannot_command_the_terminal(felicific):
    """What somebody wrote on the page is printed in one line, without what a terminal obeys."""
    assert felicific(f"{REPORT} --policy-out policy.json")[0] == 0
    sign(load("policy.json").sha256, {"gap": {"loan": 900}}, name="A\x1b[2J\nda")
    _, out, _ = felicific(f"{APPLY} --signed decision.json")
    assert "Signed by A [2J da: " in out
