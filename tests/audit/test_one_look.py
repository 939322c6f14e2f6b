"""What is said where a gap is tested: the verdict is for one look."""

import html
import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from felicific import FairClassifier, audit
from felicific.exceptions import GroupWarning

ONE = (
    "This verdict is for one look. A system exactly at the allowed gap that is audited weekly is called 'more' in "
    "about one year in six; to look again and again use monitor."
)
RNG = np.random.default_rng(3)
PEOPLE = {
    "sex": RNG.choice(["f", "m"], 900),
    "loan": RNG.lognormal(3.0, 0.4, 900),
    "yes": RNG.integers(0, 2, 900),
}
ASKED = {"happiness": {"yes": "decision == 1"}, "sensitive_features": "sex"}
TWO = {"yes": "decision == 1", "money": "decision * loan"}


def flat(text):
    """Without line breaks, indents, escapes."""
    return " ".join(html.unescape(text).split())


def everywhere(found):
    """All that shows an audit or its verdict as text."""
    shown = (str(found), repr(found), found._repr_html_(), found.to_html(), json.dumps(found.to_dict()))
    return [flat(text) for text in (*shown, str(found.verdict), found.verdict._repr_html_())]


def looks(found):
    return [text.count("for one look") for text in everywhere(found)]


@pytest.mark.parametrize("gap", [0.3, 0.05, 0.0001])
def test_a_verdict_is_said_to_be_for_one_look(gap):
    """Once in every text, page and file that shows the verdict of a test, whatever it is."""
    found = audit("yes", PEOPLE, gap=gap, **ASKED)
    assert [text.count(ONE) for text in everywhere(found)] == [1] * 7
    assert looks(found) == [1] * 7
    assert found.one_look not in found.notes


def test_several_verdicts_are_said_once_to_be_for_one_look():
    """Not once for each measure; and of one only, if only one is tested."""
    asked = ASKED | {"happiness": TWO}
    found = audit("yes", PEOPLE, gap={"yes": 0.1, "money": 2.0}, **asked)
    plural = ONE.replace("This verdict is", "These verdicts are")
    assert [text.count(plural) for text in everywhere(found)] == [1] * 7
    assert looks(found) == [1] * 7
    assert audit("yes", PEOPLE, gap={"money": 2.0}, **asked).one_look == ONE


def test_where_nothing_is_tested_nothing_is_said():
    """Neither without an allowed gap, nor where there is one group only, and so no gap."""
    assert looks(audit("yes", PEOPLE, **ASKED)) == [0] * 7
    with pytest.warns(GroupWarning, match="one group only"):
        alone = audit("yes", PEOPLE | {"sex": ["f"] * 900}, gap=0.1, **ASKED)
    assert looks(alone) == [0] * 7


def test_the_gap_of_a_classifier_is_tested_too():
    """What the audited FairClassifier allows counts as if it were said."""
    X = np.column_stack([PEOPLE["loan"], PEOPLE["sex"] == "f"])
    y = (PEOPLE["loan"] + RNG.normal(0, 5, 900) > 20).astype(int)
    fair = FairClassifier(LogisticRegression(), happiness="decision == 1", gap=0.1, random_state=0)
    fair.fit(X[:500], y[:500], sensitive_features=PEOPLE["sex"][:500])
    found = audit(fair, X[500:], y[500:], sensitive_features=PEOPLE["sex"][500:])
    assert found.one_look == ONE
    assert str(found).count("for one look") == 1


def test_how_often_is_said_of_what_is_tested():
    """Of no gap at all it is more often; where the audit is not by its defaults, it is said that the figure is."""
    assert audit("yes", PEOPLE, gap=0, **ASKED).one_look == ONE.replace("six", "three")
    asked = ASKED | {"happiness": TWO}
    assert "year in three" in audit("yes", PEOPLE, gap={"yes": 0.1, "money": 0.0}, **asked).one_look
    found = audit("yes", PEOPLE, gap=0.1, **ASKED, confidence=0.99)
    assert found.one_look == ONE.replace("weekly", "weekly by the defaults")


def test_the_figures_are_those_of_a_random_walk():
    """Sums of 52 independent weeks, in units of their standard deviation, pass 1.96 on one side or on either."""
    walk = np.random.default_rng(0).normal(size=(40_000, 52)).cumsum(axis=1) / np.sqrt(np.arange(1, 53))
    for reached, said in ((walk, "six"), (abs(walk), "three")):
        years = 1.0 / (reached > 1.96).any(axis=1).mean()
        assert {"six": 6, "three": 3}[said] == round(years)
