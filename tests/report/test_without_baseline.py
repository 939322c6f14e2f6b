"""A report where there is no baseline: it compares with the least loss without requirements."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from felicific import FairClassifier
from felicific._policy.signed import Signed
from felicific._problem.change import PRESENT, UNCONSTRAINED
from felicific.exceptions import DataError, SignedError

pytestmark = pytest.mark.filterwarnings("ignore::felicific.exceptions.FittedRowsWarning")

DECISIONS = ["refuse", "refer", "approve"]
COSTS = np.array([[0.0, 0.2, 1.0], [0.6, 0.2, 0.0]])


class OfIncome(LogisticRegression):
    """A model that looks at the income alone."""

    def fit(self, X, y):
        return super().fit(X[["income"]], y)

    def predict_proba(self, X):
        return super().predict_proba(X[["income"]])

    def predict(self, X):
        return super().predict(X[["income"]])


def people(n=2400, seed=0):
    rng = np.random.default_rng(seed)
    sex = np.array(["man", "woman"])[rng.integers(0, 2, n)]
    income = rng.normal(size=n) + 0.9 * (sex == "man")
    repaid = (income + rng.normal(size=n) > 0.4).astype(int)
    return pd.DataFrame({"income": income, "sex": sex, "decided": rng.choice(DECISIONS, n)}), repaid


def fit(x, y, **settings):
    from sklearn.frozen import FrozenEstimator

    settings = {"happiness": "distributional_parity", "gap": 0.05, "sensitive_features": "sex"} | settings
    model = FrozenEstimator(OfIncome().fit(*people(500, 7)))
    return FairClassifier(model, decisions=DECISIONS, loss=COSTS, **settings).fit(x, y)


@pytest.fixture(scope="module")
def rows():
    return people()


def texts_of(page):
    """The page without the program, the style and its classes: what is shown, and all that the slider may show."""
    page = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    assert page.count("<script") == 2
    return re.sub(r'<script>.*?</script>|class="[^"]*"', "", page, flags=re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [{}, {"policy": "label"}, {"policy": "individual"}, {"sees_group": False, "gap": 0.2}],
    ids=["score", "label", "individual", "blind"],
)
def test_the_reference_is_the_least_loss_without_requirements(rows, settings):
    """On the fitted rows the numbers of the reference are those of the outcome without requirements."""
    x, y = rows
    fair = fit(x, y, **settings)
    content = fair.report(x, y).content
    free = fair.impact_["unconstrained"]
    assert content["baseline"]["loss"]["estimate"] == pytest.approx(free.loss, abs=1e-12)
    found = [part["gap"]["estimate"] for part in content["baseline"]["measures"]]
    np.testing.assert_allclose(found, free.gaps, atol=1e-12)
    np.testing.assert_allclose(content["fitted_baseline"], free.gaps, atol=1e-12)


def test_the_reference_is_not_the_policy(rows):
    """The loss of the reference is that of a fit without requirements, and less than that of the policy."""
    x, y = rows
    other = people(seed=1)
    fair, free = fit(x, y), fit(x, y, gap={})
    content = fair.report(*other).content
    decided = np.array([DECISIONS.index(d) for d in free.predict(other[0])])
    assert content["baseline"]["loss"]["estimate"] == pytest.approx(
        COSTS[other[1], decided].mean(), abs=1e-12
    )
    assert content["positions"][content["proposed"]]["cost_baseline"]["estimate"] > 0.0
    assert content["positions"][-1]["names"] == ["without requirements"]


@pytest.mark.parametrize("gap", [0.05, 0.5], ids=["closed", "nothing to close"])
def test_no_text_of_the_page_says_baseline(rows, gap):
    """No word that the page shows, at any position of the slider, speaks of a baseline that there is not."""
    x, y = rows
    report = fit(x, y, gap=gap).report(*people(seed=1), also=["equal_opportunity"])
    page = texts_of(report.to_html())
    assert re.findall(r"[^.>]*baseline", page, flags=re.IGNORECASE) == [" There is no baseline"]
    assert "the least loss without requirements" in page
    assert "without requirements" in " ".join(str(report).split())
    assert "baseline" not in str(report).lower()


def test_the_data_name_the_reference(rows):
    """No key of the data says baseline; where it would stand, the reference is named."""
    x, y = rows
    found = fit(x, y).report(*people(seed=1)).to_dict()
    text = json.dumps({name: part for name, part in found.items() if name != "impact"})
    assert "baseline" not in text
    assert found["reference"] == "without_requirements"
    assert found["without_requirements"]["loss"]["estimate"] > 0.0
    assert found["impact"][0].startswith("There is no baseline.")


def test_a_baseline_that_is_known_is_called_so(rows):
    """With baseline= the reference is what was decided, and is called the present decisions."""
    x, y = rows
    report = fit(x, y, baseline="decided").report(x, y)
    decided = np.array([DECISIONS.index(d) for d in x["decided"]])
    assert report.to_dict()["reference"] == "present"
    assert report.to_dict()["baseline"]["loss"]["estimate"] == pytest.approx(
        COSTS[y, decided].mean(), abs=1e-12
    )
    assert "the present decisions" in texts_of(report.to_html())


def test_one_person_is_decided_as_the_policy_decides(rows):
    """The worked person's decision, of three, is the one that most people of the group and score get."""
    x, y = rows
    fair = fit(x, y)
    other, labels = people(seed=1)
    found = fair.report(other, labels).content
    person = found["positions"][found["proposed"]]["person"]
    score, group = fair.estimator_.predict_proba(other)[:, 1], list(fair.groups_)[person["group"]]
    inside = (score >= person["low"]) & (score < person["high"]) & (other["sex"] == group).to_numpy()
    probabilities = fair.predict_proba(other)[inside].mean(axis=0)
    assert person["people"] == inside.sum()
    assert person["then"] == (int(probabilities.argmax()) if probabilities.max() >= 0.995 else None)
    assert person["then"] != person["baseline"]


def test_a_safe_fit_is_judged_beside_it():
    """confidence= needs no baseline: its verdict compares with the least loss without requirements."""
    fair = fit(*people(4000), gap=0.15, confidence=0.9, random_state=0)
    assert fair.verdict_.kind == "certified"
    assert "without requirements" in fair.verdict_.headline
    assert "baseline" not in str(fair.verdict_).lower()


def test_what_is_known_at_one_place_only_is_refused(rows):
    """The baseline at the fit and not for the report, or the other way round, is refused."""
    x, y = rows
    with pytest.raises(DataError, match="is known at the fit and not here"):
        fit(x, y, baseline="decided").report(x.drop(columns="decided"), y)
    with pytest.raises(DataError, match="is known here and not at the fit"):
        fit(x, y).report(x, y, baseline="decided")


def test_it_cannot_be_applied_when_signed(rows, tmp_path):
    """A signature below the reference names no policy, and none is applied by it."""
    signed = dict.fromkeys(("name", "role", "date", "next_audit", "why", "objections"), "A")
    content = {
        "format": "felicific decision", "version": 2, "title": None, "position": {UNCONSTRAINED.key: True},
        "verdict": "leave", "reason": "same", "sentence": "", "flags": [], "policy_sha256": None,
        "people_sha256": None, "model": None, "felicific": "0.1.0", "signed": signed,
    }  # fmt: skip
    path = tmp_path / "decision.json"
    path.write_text(json.dumps(content))
    found = Signed.read(path)
    assert found.to_dict()["position"] == {"without_requirements": True}
    with pytest.raises(SignedError, match="least loss without requirements was signed"):
        found.check(fit(*rows).policy_)


def test_how_it_is_said():
    """Both references in words."""
    assert (PRESENT.of("gap"), PRESENT.begins("gap")) == ("the present gap", "The present gap")
    assert UNCONSTRAINED.begins("gap") == "The gap without requirements"
