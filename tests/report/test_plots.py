"""Charts: they show the numbers they were given, hostile names stay text, files are whole."""

import re
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from reported import fitted_amounts, long_line

from felicific import FairClassifier, Happiness, Score, alternatives, frontier, plots
from felicific._audit.names import labels
from felicific._frontier import curve
from felicific._frontier.breakpoints import RayPolicies
from felicific.exceptions import DataError

HOSTILE = (
    "</script><script>alert(1)</script>",
    '"+alert(1)+"',
    "two\nlines\t\x00",
    "\\",
    "datum.x",
    "😀" * 3,
    "x" * 10_000,
    "x" * 9_999,
    "'",
    "",
    "\ud800",
    "${a}",
)


def loan(decision, x):
    return decision * x["loan"]


def fitted(people, **settings):
    settings = {"happiness": loan, "gap": 0.0, "sensitive_features": "group", "random_state": 0} | settings
    return FairClassifier(people.frozen("pandas"), **settings).fit(people.table("pandas"), people.y)


def classes_and_groups(n_classes, names, policy="score", seed=0, happiness="statistical_parity"):
    """A fitted policy of many classes and the given groups."""
    from sklearn.frozen import FrozenEstimator
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(seed)
    n = 120 * len(names)
    z = np.arange(n) % len(names)
    x = rng.normal(size=(n, 2)) + 0.1 * z[:, None]
    y = np.clip(np.round(x[:, 0] + 0.5 * rng.normal(size=n) + 1), 0, n_classes - 1).astype(int)
    model = FrozenEstimator(LogisticRegression().fit(x, y))
    group = np.array([*names, None], dtype=object)[z]
    fair = FairClassifier(model, happiness=happiness, gap=0.1, policy=policy, random_state=0)
    return fair.fit(x, y, sensitive_features=group)


def values(chart):
    """Every row of data in a chart."""
    content = chart.to_dict()
    return [row for rows in content["datasets"].values() for row in rows]


def words(chart):
    """Every text of the chart as it is drawn."""
    tree = ElementTree.fromstring(plots.svg(chart))
    assert not [
        node for node in tree.iter() if node.tag.rpartition("}")[2] in ("script", "foreignObject", "a")
    ]
    return [node.text or "" for node in tree.iter() if node.tag.endswith("text")]


def test_the_frontier_is_drawn_as_it_is(people):
    """Every breakpoint and the baseline's point are in the chart, accuracy being one minus the error rate."""
    found = frontier(fitted(people).aggregates_)
    drawn = values(found.plot())
    for tau, loss in zip(found.tau, found.loss, strict=True):
        assert {"gap": tau, "loss": 1 - loss} in drawn
    baseline = [row for row in drawn if row.get("text") == "baseline"]
    assert baseline == [{"gap": found.baseline.gaps[0], "loss": 1 - found.baseline.loss, "text": "baseline"}]


def test_a_long_frontier_is_drawn_by_some_of_its_points(monkeypatch):
    """Two hundred points at most, both ends among them, off the whole curve by less than a line is thick.

    No policy is looked for, and a notebook looks for no more than it has rows.
    """
    asked, find = [], RayPolicies.at
    monkeypatch.setattr(RayPolicies, "at", lambda places, tau: asked.append(tau) or find(places, tau))
    line = long_line()
    assert len(line) > 1_000
    drawn = values(line.plot())
    dots = sorted({(row["gap"], row["loss"]) for row in drawn if "text" not in row})
    assert len(drawn) <= 210
    assert len(line.plot().to_json()) < 50_000
    tau, loss = line.tau, 1 - line.loss
    assert {(tau[0], loss[0]), (tau[-1], loss[-1])} <= set(dots)
    assert set(dots[:-1]) <= set(zip(tau, loss, strict=True))  # the last one is beyond the frontier
    assert np.abs(np.interp(tau, *zip(*dots, strict=True)) - loss).max() <= 2e-4 * np.ptp(loss)
    assert not asked
    page = line._repr_html_()
    assert len(page) < 20_000
    assert "more" in page
    assert 0 < len(set(asked)) <= 30


def test_a_line_of_few_points_is_drawn_whole(people):
    """Up to two hundred points all are drawn, and all rows of a table are there to be chosen from."""
    found = frontier(fitted(people).aggregates_)
    taus, losses = curve.drawn(found)
    assert taus == found.tau.tolist()
    assert losses == found.loss.tolist()


def test_a_loss_that_is_no_error_rate_is_drawn_as_a_loss(people):
    """With a cost matrix the chart shows the loss and says so."""
    fair = fitted(people, loss=[[0, 3], [1, 0]])
    found = frontier(fair.aggregates_)
    chart = plots.frontier(found)
    assert found.baseline.loss in [row["loss"] for row in values(chart)]
    assert "loss per person" in words(chart)


def test_the_frontier_of_several_measures(people):
    """By default along the ray; in a measure's unit when it is named; a wrong name is an error."""
    happiness = {"money": Happiness(loan, unit="k$"), "rate": "statistical_parity"}
    found = frontier(fitted(people, happiness=happiness).aggregates_)
    assert found.tau[-1] in [row["gap"] for row in values(plots.frontier(found))]
    chart = plots.frontier(found, measure="money")
    assert found.tau[-1] * found.ray[0] in [row["gap"] for row in values(chart)]
    assert "allowed gap in money (k$)" in words(chart)
    with pytest.raises(DataError, match="no measure 'many'"):
        plots.frontier(found, measure="many")


def test_the_policy_chart_steps_where_the_policy_does(people):
    """Read off the chart, the probability of any score is the one that the policy applies."""
    policy = fitted(people).policy_
    rows = [row for row in values(plots.policy(policy)) if "chance" in row]
    scores = np.linspace(0.0005, 0.9995, 1000)
    for z, group in enumerate(policy.groups):
        steps = [(row["score"], row["chance"]) for row in rows if row["group"] == str(group)]
        starts = np.array([start for start, _ in steps])
        read = np.array([chance for _, chance in steps])[np.searchsorted(starts, scores, side="left") - 1]
        applied = policy.probabilities(np.column_stack([1 - scores, scores]), np.full(1000, policy.groups[z]))
        assert read == pytest.approx(applied[:, 1])


@pytest.mark.parametrize("policy", ["score", "label", "soft-label", Score(bins=8)])
def test_many_classes_and_groups(policy):
    """Of every group and label the shares of the decisions fill the panel, and are those of the policy."""
    fair = classes_and_groups(4, [f"group {i}" for i in range(6)], policy)
    chart = plots.policy(fair.policy_)
    rows = [row for row in values(chart) if "decision" in row]
    assert {row["group"] for row in rows} == {f"group {i}" for i in range(6)}
    area = {}
    for row in rows:
        place = row["group"], row["label"]
        area[place] = area.get(place, 0) + (row["high"] - row["low"]) * (row["to"] - row["from"])
    assert list(area.values()) == pytest.approx(np.ones(len(area)))
    assert len(area) == 24
    if policy == "label":
        q = fair.policy_.q[2, 1]
        shares = {
            row["decision"]: row["to"] - row["from"]
            for row in rows
            if (row["group"], row["label"]) == ("group 2", "1")
        }
        assert shares == pytest.approx({str(d): q[d] for d in range(4) if q[d] > 0})
    assert "decided" in words(chart)


def test_an_individual_policy_has_no_chart(people):
    """A policy that sees all of x is no function of a score: a clear error."""
    fair = fitted(people, policy="individual")
    with pytest.raises(DataError, match="sentences"):
        plots.policy(fair.policy_)


def test_hostile_names_stay_text():
    """Whatever a group or a measure is called, every chart is drawn, and shows the names apart."""
    fair = classes_and_groups(
        2, HOSTILE, happiness={name: lambda decision: float(decision) for name in HOSTILE[:3]}
    )
    shown = labels(fair.groups_, plots.LONGEST)
    assert len(set(shown)) == len(HOSTILE)
    assert all(text.isprintable() and len(text) < 50 for text in shown)
    found = frontier(fair.aggregates_)
    rows = [
        {"way": way, "group": group, "mean": 1.0 * i} for way in HOSTILE for i, group in enumerate(HOSTILE)
    ]
    charts = [
        plots.policy(fair.policy_),
        *(plots.frontier(found, measure=name) for name in HOSTILE[:3]),
        plots.means(rows, title=HOSTILE[1] + HOSTILE[2]),
    ]
    for chart in charts:
        assert words(chart)
        # Vega would put the names into expressions to describe its marks.
        assert not re.search("<path[^>]* aria-label=", plots.svg(chart))
    assert set(shown) <= set(words(charts[0]))
    # What is drawn is what labels() makes of a name: Vega did not compute with it.
    assert "datum.x" in words(charts[0])


def test_labels_tell_values_apart():
    """Values whose text is the same are told apart by their type, or else by number."""
    assert labels([1, "1", 2]) == ["1", "'1'", "2"]
    assert labels([1, "1", "'1'"]) == ["1", "2: 1", "3: '1'"]
    assert labels(["a" * 99 + "b", "a" * 99 + "c"])[1].startswith("2: aaa")
    assert labels(["a b", "a\nb"]) == ["'a b'", "'a\\nb'"]


def test_the_same_chart_is_the_same_file(people, tmp_path):
    """Drawn twice, a chart is the same bytes; PNG and SVG are what their names say; another ending is refused."""
    chart = frontier(fitted(people).aggregates_).plot
    for name in ("a.svg", "b.svg", "a.png", "b.PNG"):
        plots.save(chart(), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.PNG").read_bytes()
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "a.svg").read_text("utf-8").startswith("<svg")
    with pytest.raises(DataError, match=r"\.html"):
        plots.save(chart(), tmp_path / "a.html")
    assert len(list(tmp_path.iterdir())) == 4


def test_groups_are_told_apart_by_colour_and_shape():
    """Up to the product of the two cycles no two groups have both in common."""
    theme = plots.Theme()
    n = len(theme.groups) * len(theme.shapes)
    assert len(set(zip(theme.colours(n), theme.forms(n), strict=True))) == n
    assert all(re.fullmatch("#[0-9a-f]{6}", colour) for colour in theme.groups)


def test_alternatives_are_drawn_as_they_are():
    """Every judged candidate is a point with two intervals, hostile names are text, and the slack is a line."""
    rng = np.random.default_rng(0)
    score, group = rng.random(600), rng.integers(0, 2, 600)
    y = (rng.random(600) < score).astype(int)
    candidates = {name: score for name in HOSTILE if name} | {"bad": np.linspace(0.3, 0.7, 600)}
    settings = {"happiness": "equal_opportunity", "sensitive_features": group, "loss_slack": 0.01}
    found = alternatives(candidates, None, y, **settings)
    drawn = [row for row in values(found.plot()) if "name" in row]
    assert len({row["name"] for row in drawn}) == len(found.rows) - 1
    row, change = drawn[0], found.rows[0]
    assert (row["gap"], row["gap low"], row["gap high"]) == (
        change.gap_change.estimate,
        change.gap_change.low,
        change.gap_change.high,
    )
    assert (row["loss"], row["loss high"]) == (change.loss_change.estimate, change.loss_change.high)
    assert {"loss": 0.01} in values(found.plot())
    assert "script" not in "".join(word for word in words(found.plot()) if word.startswith("<s"))
    with pytest.raises(DataError, match="no measure 'many'"):
        found.plot(measure="many")
    nothing = replace(found, rows=(found["bad"],))
    with pytest.raises(DataError, match="nothing to draw"):
        nothing.plot()


# ---------------------------------------------------------------------------------------------------------
# Without the extra

#: A process in which neither Altair nor vl-convert is installed.
WITHOUT = "import sys\nsys.modules['altair'] = sys.modules['vl_convert'] = None\n"
INSTALL = "Charts need altair. Install it: pip install 'felicific[plots]'"


def without_charts(code, folder):
    """Run Python where charts cannot be drawn; return its exit code, what it printed and what it complained of."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT + code], capture_output=True, text=True, check=False, cwd=folder
    )
    return done.returncode, done.stdout, done.stderr


def test_charts_say_what_they_need(tmp_path):
    """Without the extra, every way to a chart ends in one line that says what to install."""
    code = (
        "from felicific import aggregate, audit, frontier\n"
        "people = {'sex': ['f', 'm'] * 40, 'score': [.2, .7, .6, .4] * 20, 'y': [0, 1, 1, 0] * 20}\n"
        "sums = aggregate(people, score='score', y='y', sensitive_features='sex', happiness='decision')\n"
        "line = frontier(sums)\n"
        "found = audit('y', people, 'y', sensitive_features='sex', happiness='decision')\n"
        "for draw in (line.plot, found.plot, lambda: __import__('felicific.plots')):\n"
        "    try:\n"
        "        draw()\n"
        "    except ModuleNotFoundError as error:\n"
        "        print(error.name, error)\n"
    )
    code, out, err = without_charts(code, tmp_path)
    assert (code, err) == (0, "")
    assert out == f"altair {INSTALL}\n" * 3


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("frontier scores.csv --score score {} --out f.csv --chart f.svg", INSTALL),
        ("alternatives scores.csv --score baseline=score {} --out a.csv --chart a.png", INSTALL),
    ],
    ids=lambda part: part.split()[0],
)
def test_the_command_line_says_what_charts_need(tmp_path, line, words):
    """Exit code 1 and one line, before any work is done: nothing is written."""
    (tmp_path / "scores.csv").write_text("sex,score,y\n" + "f,0.2,0\nm,0.7,1\nf,0.6,1\nm,0.4,0\n" * 20)
    line = line.format("--label y --group sex --happiness decision")
    code, out, err = without_charts(
        f"from felicific.cli import run\nsys.exit(run({line.split()!r}))", tmp_path
    )
    assert (code, out) == (1, "")
    assert (err.startswith("felicific: "), words in err, err.count("\n")) == (True, True, 1), err
    assert [path.name for path in tmp_path.iterdir()] == ["scores.csv"]


@pytest.mark.slow
def test_a_report_needs_no_charts(tmp_path):
    """Jinja alone makes the page, and the demo too: neither looks for Altair."""
    (tmp_path / "scores.csv").write_text("sex,score,y\n" + "f,0.2,0\nm,0.7,1\nf,0.6,1\nm,0.4,0\n" * 50)
    line = (
        "report scores.csv --score score --label y --group sex --happiness decision --gap .1 --out page.html"
    )
    for command in (line, "demo --rows 1000 --out demo.html"):
        code, _, err = without_charts(
            f"from felicific.cli import run\nsys.exit(run({command.split()!r}))", tmp_path
        )
        assert code == 0, err
        assert "pip install" not in err
    assert {"page.html", "demo.html"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.slow
def test_lines_and_frontier_of_amounts_are_drawn_as_they_are(tmp_path):
    """The chart of a policy of amounts has its corners, that of a frontier every place that was solved."""
    fair = fitted_amounts(HOSTILE[:4], 400, gap=0.3)
    chart = fair.policy_.plot()
    drawn = [row for row in values(chart) if "group" in row]
    for name, line in zip(labels(fair.groups_, plots.LONGEST), fair.policy_.lines, strict=True):
        own = [(row["prediction"], row["amount"]) for row in drawn if row["group"] == name]
        assert own == list(zip(*(part.tolist() for part in line.typical), strict=True))
    plots.save(chart, tmp_path / "lines.svg")
    ElementTree.parse(tmp_path / "lines.svg")
    line = fair.frontier_
    found = [(row["gap"], row["loss"]) for row in values(line.plot())]
    width = line.widest["distributional_parity"]
    assert found == list(zip((width * line.places).tolist(), line.loss.tolist(), strict=True))
