"""Every public object once, and how a reader sees it: lines of text, and lines of a page."""

from functools import cache
from html.parser import HTMLParser
from textwrap import wrap

import numpy as np
import pandas as pd
from helpers import solved, traced
from reported import amounts_world, fitted_amounts
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import felicific
from felicific import FairClassifier, Happiness, Score, aggregate, audit, compare, frontier, monitor, solve
from felicific.exceptions import InfeasibleError
from felicific.sklearn import make_scorer

#: Lines that anybody is shown, and letters of one.
LINES, COLUMNS = 30, 100

ROLES = {"score": "score", "y": "repaid", "sensitive_features": "sex"}


def table(n=600, seed=0, names=("f", "m"), classes=2):
    """People of some groups with a score, a label and a loan."""
    rng = np.random.default_rng(seed)
    z = np.arange(n) % len(names)
    score = np.clip(rng.normal(0.5 + 0.1 * (z % 3), 0.2, n), 0.001, 0.999)
    label = np.minimum((rng.random(n) < score) * 1 + (rng.random(n) < 0.3) * (classes > 2), classes - 1)
    group = np.array([*names, None], dtype=object)[z]
    return {"sex": group, "score": score, "repaid": label, "loan": rng.lognormal(3, 0.5, n)}


def salts(objects):
    """Every salt that is among some objects."""
    policies = [getattr(one, "policy_", one) for one in objects.values()]
    return {one.salt for one in policies if hasattr(one, "salt")}


@cache
def public():
    """One object of every public class, and of everything that public functions return."""
    people = table()
    X = pd.DataFrame({"score": people["score"], "loan": people["loan"]})
    y, sex = people["repaid"], people["sex"]
    model = FrozenEstimator(LogisticRegression().fit(X[["score"]], y))
    loan = Happiness("decision * loan", name="loan", unit="k$")
    sums = aggregate(people, happiness="decision", **ROLES)
    line = frontier(sums)
    found = {
        "cells": solve(sums, gap=0.0),
        "label": solved(people, policy="label", predicted="repaid", y="repaid", sensitive_features="sex",
                       happiness="statistical_parity", gap=0.05),
        "blind": solved(people, sees_group=False, happiness=loan, gap=50.0, **ROLES),
        "individual": solved(people, policy="individual", happiness=loan, gap=1.0, **ROLES),
        "aggregates": sums,
        "frontier": line,
        "curve": line.on(sums),
        "band": line.band("score", people, "repaid", happiness="decision", sensitive_features="sex"),
        "ratios frontier": traced(
            people, happiness="decision", constraints=[felicific.Ratio("decision", at_least=0.9)], **ROLES
        ),
        "several": traced(people, happiness={"loan": loan, "yes": "decision == 1"}, **ROLES),
        "monitor": monitor("repaid", people, happiness="decision", sensitive_features="sex", gap=0.05),
    }  # fmt: skip
    found["steering"] = found["cells"].steer(happiness="decision")
    found["steering"].decide(people["score"], sex, np.arange(len(y)), people)
    fair = FairClassifier(model, happiness=loan, gap=1.0).fit(X, y, sensitive_features=sex)
    machine = FrozenEstimator(LinearSVC().fit(3 * X[["score"]] - 50, y))
    shifted = X.assign(score=3 * X["score"] - 50)
    values = FairClassifier(machine, happiness=loan, gap=1.0).fit(shifted, y, sensitive_features=sex)
    new = table(seed=1)
    tried = pd.DataFrame({"score": new["score"], "loan": new["loan"]}), new["repaid"]
    before = audit((new["score"] > 0.5).astype(int), *tried, happiness=loan, sensitive_features=new["sex"])
    after = audit(fair, *tried, sensitive_features=new["sex"])
    report = fair.report(*tried, sensitive_features=new["sex"])
    other = {"score": X["score"], "noise": np.random.default_rng(1).random(len(X))}
    regressor = fitted_amounts(n=600)
    amounts = amounts_world(600, 2)
    return found | {
        "regressor": regressor,
        "lines": regressor.policy_,
        "lines frontier": regressor.frontier_,
        "report of amounts": regressor.report(*amounts[:2], sensitive_features=amounts[2]),
        "fair": fair,
        "unfitted": FairClassifier(model, happiness=loan, gap=1.0),
        "verdict": fair.verdict_,
        "certificate": fair.certificate_,
        "explanation": fair.explain(X[:1], sensitive_features=sex[0], key="a"),
        "of values": values.policy_,
        "outcome": found["cells"].outcome,
        "outcomes": found["cells"].outcomes["proposed"],
        "audit": after,
        "measure": after["loan"],
        "ratios": audit("repaid", people, happiness="decision", sensitive_features="sex").ratios,
        "comparison": compare(before, after),
        "change": compare(before, after)["loan"],
        "report": report,
        "alternatives": felicific.alternatives(
            other, None, y, happiness="decision", sensitive_features=sex, loss_slack=0.1
        ),
        "happiness": loan,
        "score": Score(),
        "individual kind": felicific.Individual(),
        "budget": felicific.Budget("decision", at_most=0.5),
        "floor": felicific.Floor("decision", 0.1),
        "gap": felicific.Gap("decision", 0.1),
        "ratio": felicific.Ratio("decision", at_least=0.8),
        "worse_off": felicific.WorseOff(at_most=0.1),
        "explore": felicific.Exploration(0.05),
        "missing labels": felicific.MissingLabels(),
        "scorer": make_scorer(),
        "error": felicific.FelicificError("No.", "Yes."),
        "infeasible": InfeasibleError("No.", "Yes."),
    }


def seen(one):
    """All that a notebook may hold of an object: its text, and its page if it has one."""
    bundle = getattr(one, "_repr_mimebundle_", dict)()
    page = bundle.get("text/html", "") or getattr(one, "_repr_html_", str)()
    return repr(one), page


def lines_of_text(text):
    """Lines as they stand in a terminal of so many columns."""
    return [part for line in text.splitlines() for part in (wrap(line, COLUMNS) or [""])]


class Page(HTMLParser):
    """A page as a reader sees it: its lines, its tags, and what it would run."""

    BLOCKS = ("p", "li", "tr", "caption", "figcaption", "div", "text", "pre")
    VOID = ("path", "line", "circle", "br", "input", "img", "link", "meta")

    def __init__(self, page):
        super().__init__()
        self.lines, self.tags, self.attributes, self.open, self.row = [], [], [], [], None
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        given = dict(attributes)
        if tag == "text":
            # Names of an axis stand side by side.
            same, self.row = given["y"] == self.row, given["y"]
            self.lines += [] if same else [""]
        elif tag in self.BLOCKS:
            self.lines.append("")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_endtag(self, tag):
        if tag in self.open:
            assert self.open.pop() == tag, (tag, self.open)

    def handle_data(self, data):
        if not {"style", "script"} & {*self.open}:
            self.lines = self.lines or [""]
            self.lines[-1] += data + (" " if "td" in self.open or "th" in self.open else "")

    @property
    def text(self):
        return "\n".join(line for line in self.lines if line.strip())
