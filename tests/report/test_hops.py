"""The way down and back: a report asks every module few and large questions, and checks every row once."""

import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator

from felicific import FairClassifier
from felicific.datasets import synthetic_loans
from felicific.report import stops

#: Functions that check rows, each by its first argument.
CHECKS = ("check_proba", "check_weights", "encode_groups", "encode_labels")

#: Most calls from one module of the package straight into another while a report is made, of up to 40 positions.
MOST = 5_710

#: Most of them for one position of the slider more; 136.5 and 138.5 were measured.
EACH = 140


@dataclass
class Watched:
    """Calls between modules of the package, and what was checked."""

    hops: Counter = field(default_factory=Counter)
    checked: list[tuple[str, Any]] = field(default_factory=list)

    def note(self, frame, event, _):
        """Take note of what Python reports (see ``sys.setprofile``)."""
        module, caller = module_of(frame), module_of(frame.f_back)
        if event != "call" or module is None:
            return
        code = frame.f_code
        if code.co_name in CHECKS:
            # Kept, so that no other array can take its address.
            self.checked.append((code.co_name, frame.f_locals[code.co_varnames[0]]))
        if caller is not None and caller != module:
            self.hops[caller, module, code.co_name] += 1


def module_of(frame):
    """The module of the package that a frame belongs to, if any."""
    name = "" if frame is None else frame.f_globals.get("__name__", "")
    return name if name.split(".")[0] == "felicific" else None


def watch(work):
    """Do the work; what ran."""
    watched, before = Watched(), sys.getprofile()
    sys.setprofile(watched.note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return watched


def demo(rows):
    """A classifier repaired on the loans of the demo, and others to report about."""
    loans = synthetic_loans(3 * rows, seed=0)
    train, fitted, others = (slice(part * rows, (part + 1) * rows) for part in range(3))
    columns = ["yearly_salary", "loan_requested"]
    forest = RandomForestClassifier(20, min_samples_leaf=20, random_state=0)
    model = FrozenEstimator(forest.fit(loans.X[train][columns], loans.y[train]))
    settings = {"happiness": loans.happiness, "sensitive_features": loans.sensitive_features}
    fair = FairClassifier(model, policy="score", random_state=0, **settings)
    return fair.fit(loans.X[fitted], loans.y[fitted]), loans.X[others], loans.y[others]


@pytest.fixture(scope="module", params=[700, 2000])
def watched(request):
    fair, X, y = demo(request.param)
    fair.price_of_losers()  # three programs more, of the policy alone and not of what the slider shows
    return watch(lambda: fair.report(X, y).to_html())


def test_a_report_makes_few_hops(watched):
    """From solving the frontier to the page, modules call each other at most so often, whatever the slider shows."""
    assert sum(watched.hops.values()) <= MOST, watched.hops.most_common(12)


def test_a_report_checks_every_row_once(watched):
    """No column is checked twice by the same function."""
    given = [(name, id(rows), len(rows)) for name, rows in watched.checked if rows is not None]
    assert {name for name, _, _ in given} >= {"check_proba", "encode_groups", "encode_labels"}
    assert max(Counter(given).values()) == 1


def test_every_position_takes_a_few_hops(monkeypatch):
    """What a position of the slider takes, with its verdict, does not depend on how many there are, and is bounded."""
    fair, X, y = demo(700)
    counts, positions = [], []
    for most in (8, 16, 32):
        monkeypatch.setattr(stops, "ROUND", most)
        positions.append(len(fair.report(X, y).content["positions"]))
        counts.append(sum(watch(lambda: fair.report(X, y).to_html()).hops.values()))
    assert positions[0] + 5 < positions[1] < positions[2] - 5
    # The same for each, few as they are or many: the second number would grow if a position looked at the others.
    each = [(counts[i + 1] - counts[i]) / (positions[i + 1] - positions[i]) for i in (0, 1)]
    assert max(each) <= EACH, (counts, positions)
    assert each[1] == pytest.approx(each[0], rel=0.1)


def test_the_watch_sees_a_second_check():
    """The instrument notices what it is there for."""
    from felicific._people.checks import check_weights

    weight = [1.0, 2.0]
    watched = watch(lambda: (check_weights(weight, 2), check_weights(weight, 2)))
    assert Counter((name, id(rows)) for name, rows in watched.checked) == {("check_weights", id(weight)): 2}
