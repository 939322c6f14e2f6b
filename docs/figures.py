"""Draw the pictures of the README and of the pages: python docs/figures.py [name ...].

It needs altair and vl-convert-python; the picture of the report is taken in Chromium, and needs playwright.
"""

from __future__ import annotations

import contextlib
import re
import runpy
import shutil
import struct
import sys
import zlib
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

from felicific import FairClassifier, FairRegressor, plots
from felicific.cli.demo import _forest, _page
from felicific.datasets import adult, synthetic_loans

HERE = Path(__file__).parent
LENDERS = 10
WIDTH = 1200  # pixels of the picture of the report
WAYS = ["the model's decisions", "repaired on others", "recalibrated on them"]


@dataclass(frozen=True)
class Demo:
    """What ``felicific demo`` makes: a repaired classifier, and people whom it has never seen."""

    fair: FairClassifier
    X: Any
    y: Any


@cache
def make(seed: int = 0) -> Demo:
    """Simulate, train, repair."""
    data = synthetic_loans(48_842, seed=seed)
    X, X_train, y, y_train = train_test_split(data.X, data.y, test_size=0.20, random_state=seed)
    X_test, X_val, y_test, y_val = train_test_split(X, y, test_size=0.5, random_state=seed)
    model = _forest(X_train, seed).fit(X_train, y_train)
    fair = FairClassifier(
        FrozenEstimator(model), gap=0.0, happiness=data.happiness, sensitive_features="sex", random_state=seed
    )
    return Demo(fair.fit(X_val, y_val), X_test, y_test)


def measure(demo: Demo) -> list[dict[str, object]]:
    """Mean dollars lent to women and men."""
    fair, X = demo.fair, demo.X
    approved = [
        np.eye(2)[fair.estimator_.predict(X)][:, 1],
        fair.predict_proba(X)[:, 1],
        fair.recalibrate(X).predict_proba(X)[:, 1],
    ]
    loan, sex = X["loan_requested"].to_numpy(), X["sex"].to_numpy()
    return [
        {"way": way, "group": name, "mean": float((chance * loan)[sex == value].mean())}
        for way, chance in zip(WAYS, approved, strict=True)
        for value, name in (("Female", "women"), ("Male", "men"))
    ]


def draw(points: list[dict[str, object]]) -> plots.Chart:
    """A block per way of deciding, a line per group; the gap is a band, and written beside it."""
    titled = {}
    for way in WAYS:
        low, high = sorted(float(str(point["mean"])) for point in points if point["way"] == way)
        titled[way] = f"{way}: gap ${high - low:,.0f}"
    rows = [{**point, "way": titled[str(point["way"])]} for point in points]
    return plots.means(rows, title="mean dollars lent per applicant")


def take_report(demo: Demo) -> bytes:
    """The top of the page that ``felicific demo`` writes: verdict, flags, slider and card."""
    from playwright.sync_api import sync_playwright

    page = _page(SimpleNamespace(fair=demo.fair, X=demo.X, y=demo.y)).to_html()  # all that it looks at
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
        tab.set_content(page)
        card = tab.locator("#card").bounding_box()
        assert card is not None, "the page has a card"
        height = card["y"] + card["height"] + 24
        picture = tab.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": height})
        browser.close()
    return squeeze_png(picture)


def squeeze_png(picture: bytes) -> bytes:
    """The same picture, its pixels compressed with patience; Chromium compresses in a hurry."""
    kept, pixels, place = picture[:8], b"", 8
    parts: list[tuple[bytes, bytes]] = []
    while place < len(picture):
        size, kind = struct.unpack(">I4s", picture[place : place + 8])
        body = picture[place + 8 : place + 8 + size]
        place += size + 12
        if kind == b"IDAT":
            pixels += body
        else:
            parts.append((kind, body))
    squeezed = zlib.compress(zlib.decompress(pixels), 9)
    for kind, body in (parts[0], (b"IDAT", squeezed), (b"IEND", b"")):
        kept += struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    return kept


def draw_rounds() -> plots.Chart:
    """The true gap after each round of examples/lending_rounds.py: thin lines are lenders, thick ones their means."""
    example = runpy.run_path(str(HERE.parent / "examples" / "lending_rounds.py"))
    with redirect_stdout(StringIO()):
        rounds = [example["main"](seed=seed).assign(lender=seed) for seed in range(LENDERS)]
    return example["drawn"](pd.concat(rounds))


@cache
def deployed() -> dict[str, Any]:
    """What the page about deploying does, block by block, without what it prints."""
    page = (HERE / "howto-deploy.md").read_text("utf-8")
    values: dict[str, Any] = {}
    with TemporaryDirectory() as folder, contextlib.chdir(folder), redirect_stdout(StringIO()):
        for code in re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
            exec(code, values)
    return values


def draw_amounts() -> plots.Chart:
    """Hours of work by sex on Adult: what is given for which prediction, and who gets how much before and after."""
    import altair as alt

    people = adult(as_frame="pandas")
    coded = people.X.apply(
        lambda c: c if c.dtype.kind in "iuf" else np.unique(c.astype(str), return_inverse=True)[1]
    )
    X = coded.assign(income=people.y, sex=people.X["sex"])
    hours = X.pop("hours-per-week").to_numpy(float)
    order = np.random.default_rng(0).permutation(len(hours))
    fitting, policy, test = np.split(order, [int(0.4 * len(order)), int(0.7 * len(order))])
    features = [name for name in X if name not in ("sex", "fnlwgt")]
    model = HistGradientBoostingRegressor(max_iter=150, random_state=0)
    model.fit(X.iloc[fitting][features], hours[fitting])
    asked = {"happiness": "distributional_parity", "gap": 0.05, "sensitive_features": "sex"}
    fair = FairRegressor(FrozenEstimator(model), **asked, random_state=0).fit(X.iloc[policy], hours[policy])
    given = {
        "as the model predicts": model.predict(X.iloc[test][features]),
        "with distributions at most 5 points apart": fair.predict(X.iloc[test]),
    }
    sex = X["sex"].to_numpy()[test]
    places = np.linspace(20.0, 60.0, 161)
    rows = [
        {"when": when, "group": name, "hours": place, "share": float((amounts[sex == name] > place).mean())}
        for when, amounts in given.items()
        for name in ("Female", "Male")
        for place in places.tolist()
    ]
    colours = alt.Scale(domain=["Female", "Male"], range=plots.LIGHT.colours(2))
    legend = alt.Legend(symbolStrokeWidth=2.5, symbolSize=500)
    spread = plots.values(rows).mark_line(strokeWidth=2.5)
    spread = spread.encode(
        x=alt.X("hours:Q", title="hours", axis=alt.Axis(grid=False, tickCount=5)),
        y=alt.Y("share:Q", title=None, axis=alt.Axis(format="%", tickCount=4, domain=False, ticks=False)),
        color=alt.Color("group:N", scale=colours, legend=legend),
        strokeDash=alt.StrokeDash("group:N", scale=alt.Scale(domain=["Female", "Male"]), legend=legend),
    ).properties(width=290, height=170)
    facets = spread.facet(column=alt.Column("when:N", title=None, sort=[*given]), spacing=24)
    facets = facets.properties(title="share of people who get more than so many hours")
    lines = plots.lines(fair.policy_, width=604)
    lines.config = lines.padding = alt.Undefined  # one theme for both
    return plots.themed(alt.vconcat(lines, facets, spacing=24), plots.LIGHT)


FIGURES: dict[str, Callable[[], plots.Chart | bytes]] = {
    "demo.svg": lambda: draw(measure(make())),
    "report.png": lambda: take_report(make()),
    "amounts.svg": draw_amounts,
    "missing-labels-rounds.svg": draw_rounds,
    "monitor.svg": lambda: deployed()["seen"].plot(),
    "steer.svg": lambda: deployed()["steering"].plot(),
}


if __name__ == "__main__":
    for name in sys.argv[1:] or FIGURES:
        figure = FIGURES[name]()
        if isinstance(figure, bytes):
            (HERE / name).write_bytes(figure)
        else:
            plots.save(figure, HERE / name)
        print(f"wrote {HERE / name}")
