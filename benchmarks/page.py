"""How long pages take and how large they are: fills its block of docs/evidence/report.md.

Run as ``python benchmarks/page.py`` (half a minute). Processor time is of one process, in the order of the table; the
demo's page is the first, so it includes importing what makes it. Fitting is not part of it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from shared import EVIDENCE, fill, machine, table
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from felicific import FairClassifier, Happiness, audit
from felicific.cli.demo import _forest, _page
from felicific.datasets import synthetic_loans

#: People of every page but the demo's, as many as of that one.
PEOPLE = 19_536

#: What was aimed at: processor seconds of the demo's page, kB of it, and of pages of many groups or measures.
SECONDS, DEMO, MANY = 2.5, 200, 600

Work = Callable[[], Any]


def demo() -> Work:
    """The page of ``felicific demo`` at its own size."""
    data = synthetic_loans(48_842, seed=0)
    X, X_train, y, y_train = train_test_split(data.X, data.y, test_size=0.20, random_state=0)
    X_test, X_val, y_test, y_val = train_test_split(X, y, test_size=0.5, random_state=0)
    model = FrozenEstimator(_forest(X_train, 0).fit(X_train, y_train))
    asked = {"happiness": data.happiness, "sensitive_features": data.sensitive_features}
    fair = FairClassifier(model, gap=0.0, random_state=0, **asked).fit(X_val, y_val)
    return lambda: _page(SimpleNamespace(fair=fair, X=X_test, y=y_test))  # all that it looks at


def world(seed: int, groups: int, classes: int) -> tuple[pd.DataFrame, np.ndarray]:
    """People of some groups; those of the last are worth least to the model."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, groups, PEOPLE)
    x = rng.normal(size=PEOPLE) - 0.7 * z / (groups - 1)
    cuts = [0.0] if classes == 2 else np.linspace(-1.0, 1.0, classes - 1)
    names = np.array([f"region {i}" for i in range(groups)])
    table = pd.DataFrame({"x": x, "loan": rng.lognormal(0, 0.5, PEOPLE) * 1e5, "region": names[z]})
    return table, np.digitize(x + 0.7 * rng.normal(size=PEOPLE), cuts)


def fitted(groups: int, classes: int, happiness: Any, gap: Any, policy: str) -> FairClassifier:
    """A classifier repaired on some of these people."""
    X, y = world(5, groups, classes)
    model = FrozenEstimator(LogisticRegression().fit(X[["x"]], y))
    asked: dict[str, Any] = {"happiness": happiness, "gap": gap, "policy": policy, "random_state": 0}
    return FairClassifier(model, sensitive_features="region", **asked).fit(*world(1, groups, classes))


def twelve_groups() -> Work:
    """Twelve groups, one measure."""
    loan = Happiness("decision * loan", name="funding", unit="$")
    fair = fitted(12, 2, loan, 2_000.0, "score")
    return lambda: fair.report(*world(2, 12, 2))


def six_measures() -> Work:
    """Six measures of four decisions, three groups."""
    measures = {
        f"measure {j}": Happiness(f"(decision >= {j % 3 + 1}) * {1 + j} + 0.3 * decision", unit="days")
        for j in range(6)
    }
    fair = fitted(3, 4, measures, dict.fromkeys(measures, 0.1), "label")
    return lambda: fair.report(*world(2, 3, 4))


def an_audit() -> Work:
    """Decisions of any system, six groups; only the page, since an audit is asked for anyway."""
    X, y = world(3, 6, 2)
    loan = Happiness("decision * loan", name="funding", unit="$")
    found = audit((X["x"] > 0).astype(int), X, y, happiness=loan, gap=20_000.0, sensitive_features="region")
    return lambda: found


KINDS: Sequence[tuple[str, Callable[[], Work], int]] = (
    ("`felicific demo`: 2 groups, 1 measure, 3 others", demo, DEMO),
    ("12 groups, 1 measure", twelve_groups, MANY),
    ("3 groups, 6 measures, 4 decisions", six_measures, MANY),
    ("an audit of 6 groups", an_audit, DEMO),
)


def measure(work: Work) -> tuple[float, float, float, int]:
    """Processor seconds of content and of HTML, kB, and positions."""
    start = time.process_time()
    report = work()
    between = time.process_time()
    page = report.to_html()
    end = time.process_time()
    positions = len(report.content["positions"]) if hasattr(report, "content") else 0
    return between - start, end - between, len(page.encode("utf-8")) / 1000.0, positions


def main() -> int:
    """Measure everything, fill the page; an aim that is missed is said, and ends with 1."""
    warnings.simplefilter("ignore")  # about groups and policies, which the pages say
    rows, missed = [], []
    for name, make, most in KINDS:
        content, html, size, positions = measure(make())
        rows.append([name, str(positions or "none"), f"{content:.2f} s", f"{html:.2f} s", f"{size:.0f} kB"])
        if size > most or (make is demo and content + html > SECONDS):
            missed.append(f"{name}: {content + html:.2f} s, {size:.0f} kB")
    words = (
        f"How long a page takes, for {PEOPLE:,} people, in processor time without the fit, and how large it is "
        f"(`benchmarks/page.py`). The aims were {SECONDS} s and {DEMO} kB for the demo's, {MANY} kB for the others."
    )
    head = ["page", "positions", "numbers", "page from numbers", "size"]
    fill(EVIDENCE / "report.md", "sizes", f"{words}\n\n{table(head, rows)}\n\nOn {machine()}")
    print("\n".join(f"missed: {line}" for line in missed))
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
