"""``--join``: small groups that are taken as one, in every command that looks at groups."""

import json

import pandas as pd
import pytest

from felicific import load

pytestmark = [
    pytest.mark.filterwarnings("ignore:The salt of this policy comes from a seed"),
    pytest.mark.filterwarnings("ignore::felicific.exceptions.FittedRowsWarning"),
    pytest.mark.filterwarnings("ignore::felicific.exceptions.PolicyWarning"),
]

ROLES = "--score score --label repaid --happiness 'decision * loan' --seed 0"


@pytest.fixture
def joined(loans):
    """The same people with a column in which the small races are one."""
    loans.assign(race=loans["race"].replace({"c": "other", "d": "other"})).to_csv("by-hand.csv", index=False)
    return loans


def test_joined_groups_are_those_of_a_column_by_hand(joined, done):
    """An audit and a fit give the same numbers, and applying decides the same, with the file's columns as they are."""
    decided = "--decision approved --happiness 'decision * loan' --json"
    mine = json.loads(done(f"audit scores.csv --group race --join other=c,d {decided}"))
    hand = json.loads(done(f"audit by-hand.csv --group race {decided}"))
    assert mine["measures"] == hand["measures"]
    done(f"fit scores.csv --group race --join other=c --join other=d {ROLES} --gap 3 --out mine.json")
    done(f"fit by-hand.csv --group race {ROLES} --gap 3 --out hand.json")
    assert load("mine.json").groups == ("a", "b", "other")
    assert load("mine.json").q.tolist() == load("hand.json").q.tolist()
    done("apply mine.json scores.csv --score score --group race --join other=c,d --key id --out mine.csv")
    done("apply hand.json by-hand.csv --score score --group race --key id --out hand.csv")
    applied = pd.read_csv("mine.csv")
    assert applied["decision"].tolist() == pd.read_csv("hand.csv")["decision"].tolist()
    assert applied.drop(columns="decision").columns.tolist() == joined.columns.tolist()
    assert applied["race"].tolist() == joined["race"].tolist()


def test_one_of_several_columns(joined, done):
    """With several columns the one is named, and --between still knows it."""
    more = f"--group sex --group race {ROLES} --gap 3 --between race"
    done(f"fit scores.csv {more} --join race:other=c,d --out mine.json")
    done(f"fit by-hand.csv {more} --out hand.json")
    mine, hand = load("mine.json"), load("hand.json")
    assert mine.groups == hand.groups
    assert mine.q.tolist() == hand.q.tolist()
    assert mine.attributes == ("sex", "race, joined")


def test_what_cannot_be_joined(joined, command_line, done):
    """A group that is not there, a text that says nothing, two names for one group: one line."""
    fit = f"fit scores.csv {ROLES} --gap 3 --out policy.json"
    for line, words in (
        (
            f"{fit} --group race --join other=c,x",
            "there is no 'x' in the column 'race'. It holds a, b, c, d.",
        ),
        (f"{fit} --group race --join other", "Write --join NAME=GROUP,GROUP."),
        (f"{fit} --group race --join other=c --join rest=c", "calls 'c' both"),
        (f"{fit} --group race --group sex --join other=c,d", "does not say in which column"),
    ):
        code, out, err = command_line(line)
        assert (code, out) == (1, "")
        assert words in err, err
    done(f"{fit} --group race --join other=c,d")
    code, _, err = command_line(
        "apply policy.json scores.csv --score score --group race --key id --out decided.csv"
    )
    assert code == 1
    assert "'c'" in err
