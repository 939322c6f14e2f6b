"""The studies: small runs of all of them, the tie rule and the numbers against naive second computations."""

import io
import json
import math
import re
import runpy
import sys
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.ensemble import RandomForestClassifier

from felicific import Happiness, Score, aggregate, frontier
from felicific.datasets import fico, financial_loans
from studies import __main__ as command
from studies import delayed, experiment, results, synthetic
from studies.experiment import CRITERIA, METHODS, OWN, People

ROOT = Path(__file__).parents[1]
PAPER = ("synthetic", "adult", "loans")
ROWS = 1_000
SHORT = {"test": "test", "validation": "val"}
SUFFIXES = {"soft-label": "", "score": "_score"}

lend = cache(delayed.lend)  # the frontiers of a lender take seconds


@pytest.fixture(scope="module")
def loan_file(tmp_path_factory):
    """A file like the public one, of people who are made up."""
    data = financial_loans(n=2_000, as_frame="pandas")
    file = tmp_path_factory.mktemp("loan") / "Loan.csv"
    data.X.drop(columns="age_group").assign(LoanApproved=data.y).to_csv(file, index=False)
    return file


@pytest.fixture(scope="module")
def study(tmp_path_factory, loan_file):
    """Folder and output of a study by name: a small run of ``python -m studies``, once, with a few trees."""
    out = tmp_path_factory.mktemp("studies")

    @cache
    def made(name):
        line = [name, "--rows", ROWS, "--out", out, "--loans", loan_file]
        said = {"stdout": io.StringIO(), "stderr": io.StringIO()}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                experiment, "RandomForestClassifier", partial(RandomForestClassifier, n_estimators=12)
            )
            patch.setattr(sys, "argv", ["studies", *map(str, line)])
            patch.delitem(sys.modules, "studies.__main__")
            for stream, text in said.items():
                patch.setattr(sys, stream, text)
            with pytest.raises(SystemExit) as ended:
                runpy.run_module("studies", run_name="__main__")
        assert ended.value.code == 0, said["stderr"].getvalue()
        return out / name, said["stdout"].getvalue(), said["stderr"].getvalue()

    return made


def loans(seed=0, n=1_500):
    """People with a happiness in dollars, a score that helps, and groups of unequal accuracy."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    p = rng.beta(1 + group, 2 - group)
    y = (rng.random(n) < p).astype(int)
    score = np.clip(p + rng.normal(0, 0.1 + 0.2 * group, n), 0.0, 1.0)
    X = pd.DataFrame({"loan": rng.normal(100 + 20 * group, 10, n)})
    happiness = Happiness(lambda decision, x: decision * x["loan"], name="funding", unit="$")
    return People(X, y, np.column_stack([1 - score, score]), np.where(group, "b", "a"), happiness)


# ---------------------------------------------------------------------------------------------------------
# Small runs


@pytest.mark.parametrize("name", PAPER)
def test_every_statement_is_printed(study, name):
    """Beside what was measured, with a verdict; progress goes to the other stream, and nothing else is written."""
    folder, out, err = study(name)
    assert f"{name}: seed 0: training a random forest on {ROWS // 5} people ..." in err
    statements = json.loads((folder / "results.json").read_text())["statements"]
    verdicts = {True: "holds: ", False: "does not hold: ", None: "no rule: "}
    for line, statement in zip(out.splitlines()[1:], statements, strict=True):
        assert line.strip().startswith(verdicts[statement["holds"]])
        assert f"{statement['text']}; paper: {statement['paper']}; ours: " in line
    assert {path.name for path in folder.parent.iterdir()} <= set(PAPER)


@pytest.mark.parametrize("name", PAPER)
def test_the_csv_files_are_as_the_papers_figures_read_them(study, name):
    """Columns acc,0,1,2,3; accuracy rises; every method's loose end is there; a number or nan in every cell."""
    for people in SHORT.values():
        for suffix in SUFFIXES.values():
            file = study(name)[0] / f"acc_vs_happiness_delta_{people}{suffix}.csv"
            assert file.read_text().startswith("acc,0,1,2,3\n")
            numbers = np.genfromtxt(file, delimiter=",", skip_header=1)
            assert (np.diff(numbers[:, 0]) > 0).all()
            assert (np.isfinite(numbers[:, 1:]).sum(axis=0) >= 1).all()
            assert (numbers[:, 1:][np.isfinite(numbers[:, 1:])] >= 0).all()
            if people == "val":
                assert np.isfinite(numbers[-1]).all(), "all frontiers end at the least loss"


@pytest.mark.parametrize("name", PAPER)
def test_the_csv_files_hold_the_numbers(study, name):
    """At the accuracy of every number the paper's file has its gap, or a smaller one where the line comes back."""
    found = pd.DataFrame(json.loads((study(name)[0] / "results.json").read_text())["numbers"])
    found = found[(found["seed"] == 0) & (found["method"] != "unprocessed")]
    assert len(found) == 2 * 2 * len(METHODS) * 2
    for row in found.to_dict("records"):
        file = f"acc_vs_happiness_delta_{SHORT[row['people']]}{SUFFIXES[row['policy']]}.csv"
        grid = np.genfromtxt(study(name)[0] / file, delimiter=",", names=True)
        place = np.abs(grid["acc"] - row["accuracy"]).argmin()
        assert grid["acc"][place] == pytest.approx(row["accuracy"], abs=1e-11)
        assert grid[str(METHODS.index(row["method"]))][place] <= row["gap"] * (1 + 1e-9) + 1e-6
        assert row["low"] <= row["gap"] + 1e-6 <= row["high"] + 2e-6
        assert row["error"] >= 0


@pytest.mark.parametrize("name", PAPER)
def test_what_is_measured_and_stated(study, name):
    """The own gap is closed on validation, the paper's common statements are decided, tables and charts are there."""
    content = json.loads((study(name)[0] / "results.json").read_text())
    for row in content["numbers"]:
        assert 0 < row["accuracy"] <= 1
        if (row["people"], row["method"], row["place"]) == ("validation", OWN, "eps 0"):
            assert row["gap"] == pytest.approx(0.0, abs=1e-3)
    statements = {statement["text"]: statement for statement in content["statements"]}
    bound = next(one for text, one in statements.items() if "10,596" in text)
    assert (bound["holds"], bound["paper"]) == (False, "satisfied")
    ahead = [one for text, one in statements.items() if "most accurate as the gap goes to 0" in text]
    assert [one["holds"] for one in ahead] == [True, True]
    assert {len(one["ours"]) for one in ahead} == {1}
    text = (study(name)[0] / "results.md").read_text()
    assert f"python -m studies {name} --seeds 1 --rows {ROWS}" in text
    for one in statements.values():
        assert f"| {one['text']} | {one['paper']} | " in text
    for suffix in SUFFIXES.values():
        drawing = (study(name)[0] / f"{name}{suffix}.svg").read_text()
        assert drawing.startswith("<svg")
        assert all(method in drawing for method in METHODS)


def test_the_papers_printed_numbers(study):
    """They stand beside ours."""
    text = (study("synthetic")[0] / "results.md").read_text()
    for words in ("0.833", "0.97", "0.795", "25,384", "less than 0.01"):
        assert f" | {words} | " in text


def test_numbers_of_two_seeds(study):
    """Means of both, with the standard error of that mean and, of a statement, the range."""
    one = pd.DataFrame(json.loads((study("synthetic")[0] / "results.json").read_text())["numbers"])
    other = one.assign(seed=1, accuracy=one["accuracy"] + 0.02, gap=one["gap"] + 200.0)
    people = {"train": 200, "validation": 160, "test": 640}
    numbers = results.Numbers([experiment.Run(people, 50, {}, frame) for frame in (one, other)])
    text = results.study_text(numbers, [], "$")
    soft = numbers.of("soft-label", "test", "unprocessed")
    low, gap = soft["accuracy"].min(), soft["gap"].mean()
    row = next(line for line in text.splitlines() if line.startswith("| unprocessed |"))
    assert row.endswith(f"| {100 * (low + 0.01):.2f} % | ${gap:,.0f} ± 100 |")
    assert "Means over 2 seeds; ± is one standard error of that mean." in text
    statement = next(s for s in synthetic.statements(numbers) if "forest on test" in s.text)
    assert statement.cells[2] == f"{low + 0.01:.4f} ± 0.0100 ({low:.4f} to {low + 0.02:.4f})"


def test_numbers_as_text():
    """Digits by size, the mean of seeds with its standard error and range, dollars before and points behind."""
    assert [results.plain(n) for n in (0.0, 1e-5, 0.1234, 3.0, 3.14159, 123.4, 1234.5)] == [
        "0", "1.0e-05", "0.1234", "3", "3.14", "123", "1,234",
    ]  # fmt: skip
    assert results.spread([1.0, 3.0]) == "2.00 ± 1.00 (1.00 to 3.00)"
    rows = pd.DataFrame(
        {"gap": [100.0, 300.0], "error": [1.0, 1.0], "low": [0.0, 0.0], "high": [400.0, 600.0]}
    )
    assert results.gap(rows, "$") == "$200 ± 100 [0 to 500]"
    assert results.gap(rows.head(1)[["gap", "error"]], "points") == "100 ± 1 points"


def test_the_page_is_the_template_with_tables():
    """Every part of studies/page.md stands in docs/studies.md, in its order, and a table between two parts."""
    page = (ROOT / "docs" / "studies.md").read_text()
    *parts, end = re.split(
        r"<!-- (?:synthetic|adult|loans|delayed) -->", (ROOT / "studies" / "page.md").read_text()
    )
    assert (len(parts), end) == (4, "\n")
    for part in parts:
        before, page = page.split(part, 1)
        assert before == "" or before.startswith(
            "### Beside the paper\n\n| statement | paper | ours | holds |"
        )
    assert page.startswith("### A default costs 4 repaid loans")


# ---------------------------------------------------------------------------------------------------------
# Tracks and ties


def difference_range(aggregates, criterion, eps, loss):
    """Least and largest difference of group means over the optimal policies, by scipy, from the paper's formulas."""
    names = [measure.name for measure in aggregates.measures]
    n_groups, n_signals, n_classes = aggregates.loss.shape
    size = n_groups * n_signals * n_classes

    def mean(z, j):
        row = np.zeros(aggregates.loss.shape)
        row[z] = aggregates.value[z, :, :, j] / aggregates.counted[z, j]
        return row.ravel()

    rows, sides = [aggregates.loss.ravel() / aggregates.total], [loss + 1e-10]
    for j, measure in enumerate(aggregates.measures):
        if measure.family == criterion:
            apart = mean(0, j) - mean(1, j)
            rows += [apart, -apart]
            sides += [eps + 1e-10, eps + 1e-10]
    one = np.kron(np.eye(n_groups * n_signals), np.ones(n_classes))
    if hasattr(aggregates.signal, "monotone"):
        for z in range(n_groups):
            for s in range(n_signals - 1):
                row = np.zeros(aggregates.loss.shape)
                row[z, s, 1], row[z, s + 1, 1] = 1.0, -1.0
                rows.append(row.ravel())
                sides.append(0.0)
    goal = mean(0, 0) - mean(1, 0)
    assert names[0] == "funding"
    found = []
    for sign in (1, -1):
        answer = linprog(
            sign * goal, rows, sides, one, np.ones(len(one)), bounds=[(0, 1)] * size, method="highs"
        )
        assert answer.status == 0
        found.append(sign * answer.fun)
    return found


@pytest.mark.parametrize("policy", ["soft-label", Score(bins=12)], ids=["soft-label", "score"])
def test_ties_are_settled_in_the_middle(policy):
    """Both ends are those that scipy finds, all three policies are optimal, and the middle is their mean."""
    people = loans()
    asked = {"score": people.score, "y": people.y, "sensitive_features": people.group, "policy": policy}
    sums = aggregate(people.X, happiness=[people.happiness, *CRITERIA.values()], **asked).joined()
    lines = experiment.fit_lines(people, policy)
    for method, criterion in CRITERIA.items():
        line, wide = frontier(sums, gap={criterion: 1.0}, change_cost=0), 0
        family = [j for j, c in enumerate(sums.measures) if c.family == criterion]
        ends = zip(lines[method].eps, line.loss, lines[method].low, lines[method].high, strict=True)
        for eps, loss, low, high in ends:
            least, largest = difference_range(sums, criterion, eps, loss)
            apart = []
            for q in (low.q, (low.q + high.q) / 2, high.q):
                outcome = sums.evaluate(q)
                assert outcome.loss == pytest.approx(loss, abs=1e-8)
                assert outcome.gaps[family].max() <= eps + 1e-8
                apart.append(outcome.means[0, 0] - outcome.means[1, 0])
            assert apart[0] == pytest.approx(least, abs=1e-3)
            assert apart[2] == pytest.approx(largest, abs=1e-3)
            wide += largest - least > 1.0
        if criterion == "overall_accuracy":
            assert wide, "equal accuracy leaves the difference open, or this test tests nothing"


@cache
def fitted_lines(policy):
    return experiment.fit_lines(loans(), policy)


@pytest.mark.parametrize("policy", ["soft-label", "score"])
def test_tracks_equal_decisions_counted_person_by_person(policy):
    """Accuracy, gap and error along a track are those of the decisions about every other person, at kinks too."""
    other = loans(1)
    for method, line in fitted_lines(policy).items():
        track = experiment.follow(line, other)
        probabilities = np.array(
            [
                (low.probabilities(other.score, other.group) + high.probabilities(other.score, other.group))[
                    :, 1
                ]
                / 2
                for low, high in zip(line.low, line.high, strict=True)
            ]
        )
        for row in track.to_dict("records"):
            chance = [np.interp(row["eps"], line.eps, person) for person in probabilities.T]
            right = sum(c if label else 1 - c for c, label in zip(chance, other.y, strict=True))
            gained = {"a": [], "b": []}
            for c, loan, group in zip(chance, other.X["loan"], other.group, strict=True):
                gained[group].append(c * loan)
            mean = {group: sum(numbers) / len(numbers) for group, numbers in gained.items()}
            error = math.sqrt(
                sum(
                    sum((n - mean[group]) ** 2 for n in numbers) / (len(numbers) - 1) / len(numbers)
                    for group, numbers in gained.items()
                )
            )
            assert row["accuracy"] == pytest.approx(right / len(chance), abs=1e-9)
            assert row["gap"] == pytest.approx(abs(mean["a"] - mean["b"]), abs=1e-6)
            assert row["error"] == pytest.approx(error, rel=1e-9)
        assert set(line.eps) <= set(track["eps"]), method


def test_own_happiness_is_best_at_every_gap_on_validation():
    """No point of any criterion's track is more accurate than the own track at its gap."""
    people = loans()
    tracks = {m: experiment.follow(line, people) for m, line in fitted_lines("score").items()}
    own = tracks[OWN]
    for track in tracks.values():
        assert (np.interp(track["gap"], own["gap"], own["accuracy"]) >= track["accuracy"] - 1e-9).all()


def test_the_grid_takes_the_least_gap_of_a_track():
    """Against a finely sampled polyline that passes some accuracies twice, and one that stands still."""
    track = pd.DataFrame({"accuracy": [0.1, 0.5, 0.3, 0.3, 0.9], "gap": [4.0, 2.0, 3.0, 1.0, 5.0]})
    grid = np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 0.95])
    t = np.linspace(0, 4, 400_001)
    x, y = np.interp(t, range(5), track["accuracy"]), np.interp(t, range(5), track["gap"])
    naive = [y[np.abs(x - g) < 1e-5].min(initial=math.inf) for g in grid]
    naive = np.where(np.isfinite(naive), naive, math.nan)
    assert np.allclose(results.gap_on_grid(track, grid), naive, atol=1e-3, equal_nan=True)


def test_a_track_of_one_point_is_one_number():
    """A frontier without anything to trade is one row."""
    track = pd.DataFrame({"accuracy": [0.5], "gap": [2.0]})
    assert results.gap_on_grid(track, np.array([0.4, 0.5])).tolist()[1] == 2.0


def test_crossings_of_a_broken_line():
    """Every passing of the level is found once, on a point too; touching it is none."""
    x, y = np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 2.0, -2.0, -4.0])
    assert experiment.crossings(x, y, 1.0) == pytest.approx([0.5, 1.25])
    assert experiment.crossings(x, y, -2.0) == pytest.approx([2.0])
    assert experiment.crossings(x, y, 2.0) == []
    assert experiment.crossings(x, y, 0.0) == pytest.approx([1.5])


# ---------------------------------------------------------------------------------------------------------
# Delayed impact


class Lending:
    """The naive second computation: thresholds of every group by loops over the table, mixed by scipy."""

    def __init__(self, ratio):
        tables, self.curves = fico(), {}
        order = sorted(range(4), key=lambda z: tables.groups[z])
        self.groups = [tables.groups[z] for z in order]
        self.weight = np.array([tables.totals[z] / tables.totals.sum() for z in order])
        for z in order:
            rows = [
                (0.0, 0.0, 0.0, 0.0)
            ]  # approved, share of the repaying, change, profit: from the top score down
            payers = float(tables.share[z] @ tables.repay[z])
            for share, repay in zip(tables.share[z][::-1], tables.repay[z][::-1], strict=True):
                a, t, c, p = rows[-1]
                change = share * (75 * repay - 150 * (1 - repay))
                rows.append(
                    (
                        a + share,
                        t + share * repay / payers,
                        c + change,
                        p + share * (repay - ratio * (1 - repay)),
                    )
                )
            self.curves[tables.groups[z]] = np.array(rows)
        self.n = len(rows)
        profits = sum(w * self.curves[g][:, 3] for w, g in zip(self.weight, self.groups, strict=True))
        self.cut = int(np.argmax(profits))
        self.baseline = {g: self.curves[g][self.cut] for g in self.groups}

    def best(self, column, eps, floor=False):
        """Most profitable mixture of thresholds whose means of a column are within eps; group rows and profit."""
        size, n = 4 * self.n, self.n

        def mean(z, what):
            row = np.zeros(size + 1)
            row[z * n : (z + 1) * n] = self.curves[self.groups[z]][:, what]
            return row

        level = np.zeros(size + 1)
        level[-1] = 1.0
        rows, sides = [], []
        for z, group in enumerate(self.groups):
            rows += [level - mean(z, column), mean(z, column) - level]
            sides += [0.0, eps]
            if floor:
                rows.append(-mean(z, 2))
                sides.append(-self.baseline[group][2])
        one = np.array([[float(k // n == z) for k in range(size)] + [0.0] for z in range(4)])
        goal = -sum(w * mean(z, 3) for z, w in enumerate(self.weight))
        bounds = [(0, 1)] * size + [(None, None)]
        answer = linprog(goal, rows, sides, one, np.ones(4), bounds=bounds, method="highs")
        assert answer.status == 0
        return np.array([[mean(z, what) @ answer.x for what in range(4)] for z in range(4)]), -answer.fun


@pytest.fixture(scope="module", params=delayed.RATIOS)
def lender(request):
    return request.param, lend(request.param), Lending(request.param)


def test_the_baseline_is_the_best_single_cutoff(lender):
    """Approval, change and profit under the single cutoff, summed from the table in loops."""
    _, credit, naive = lender
    baseline = credit[credit["gap"].isna()]
    assert list(baseline["group"]) == naive.groups
    assert list(baseline["approved"]) == pytest.approx(
        [naive.baseline[g][0] for g in naive.groups], abs=1e-12
    )
    assert list(baseline["change"]) == pytest.approx([naive.baseline[g][2] for g in naive.groups], abs=1e-10)
    profit = sum(w * naive.baseline[g][3] for w, g in zip(naive.weight, naive.groups, strict=True))
    assert baseline["profit"].iloc[0] == pytest.approx(profit, abs=1e-12)
    assert delayed.lowest(credit)["group"] == "Black"


@pytest.mark.parametrize("name", delayed.CRITERIA)
def test_delayed_frontiers_equal_mixtures_of_thresholds(lender, name):
    """Profit, and every group's approval and change, are those of scipy's best mixture of thresholds at that gap."""
    _, credit, naive = lender
    column = ["statistical parity", "equal opportunity", "happiness parity"].index(name.split(",")[0])
    line = credit[credit["criterion"] == name]
    gaps = line["gap"].unique()
    for gap in gaps[[0, len(gaps) // 3, 2 * len(gaps) // 3, -1]]:
        here = line[line["gap"] == gap]
        means, profit = naive.best(column, gap + 1e-9, name.endswith(delayed.UNHARMED))
        assert here["profit"].iloc[0] == pytest.approx(profit, abs=1e-7)
        assert list(here["approved"]) == pytest.approx(means[:, 0], abs=1e-4)
        assert list(here["change"]) == pytest.approx(means[:, 2], abs=1e-2)


def test_statistical_parity_by_one_common_rate(lender):
    """Approving the same share of every group from the top: the best share, tried one by one, is the frontier's end.

    At the higher ratio the best share ends among scores at which a higher one repays less often: a mixture is better.
    """
    ratio, credit, naive = lender
    rates = np.unique(np.concatenate([naive.curves[group][:, 0] for group in naive.groups]))

    def at(rate, what):
        return [np.interp(rate, naive.curves[g][:, 0], naive.curves[g][:, what]) for g in naive.groups]

    rate = max(rates, key=lambda rate: naive.weight @ at(rate, 3))
    end = credit[credit["criterion"] == "statistical parity"].head(4)
    profit = end["profit"].iloc[0]
    assert list(end["approved"]) == pytest.approx([rate] * 4, abs=1e-9)
    if ratio == 10:
        assert naive.weight @ at(rate, 3) < profit < naive.weight @ at(rate, 3) + 1e-4
        return
    assert list(end["change"]) == pytest.approx(at(rate, 2), abs=1e-6)
    assert profit == pytest.approx(naive.weight @ at(rate, 3), abs=1e-9)


def test_where_parity_begins_to_harm(tmp_path, monkeypatch, capsys):
    """At the printed gaps scipy's own solution leaves the group as under the baseline, or unchanged; tighter is worse.

    The study's files are there: its text with the same sentences, a row for every breakpoint and group, the charts.
    """
    monkeypatch.setattr(delayed, "lend", lend)
    monkeypatch.setattr(delayed, "RATIOS", (4,))
    assert command.main(["delayed", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    sentence = next(line for line in printed.splitlines() if "costs 4: statistical parity: Black" in line)
    assert sentence.split("costs 4: ")[1] in (tmp_path / "delayed" / "results.md").read_text()
    naive = Lending(4.0)
    black = naive.groups.index("Black")
    for words, level in (
        ("worse off than under the baseline", naive.baseline["Black"][2]),
        ("Their scores fall", 0.0),
    ):
        gap = float(re.search(rf"{words} at gaps below ([0-9.]+)[. ]", sentence)[1])
        assert naive.best(0, gap)[0][black, 2] == pytest.approx(level, abs=1e-2)
        assert naive.best(0, 0.9 * gap)[0][black, 2] < level - 1e-2
    assert len(pd.read_csv(tmp_path / "delayed" / "frontiers_4.csv")) == len(lend(4))
    for picture in ("delayed_4.svg", "delayed_profit_4.svg"):
        assert (tmp_path / "delayed" / picture).read_text().startswith("<svg")


# ---------------------------------------------------------------------------------------------------------
# Files and errors


@pytest.fixture
def quick(monkeypatch):
    """Every study writes one file and takes no time."""

    def write(folder):
        (folder / "a").write_text("new")
        return ""

    monkeypatch.setattr(command, "write_paper", lambda name, folder, *_: write(folder))
    monkeypatch.setattr(command, "write_delayed", lambda folder, *_: write(folder))


def test_results_that_are_there_are_kept(tmp_path, quick, capsys):
    """All studies by default; one whose folder is there is kept and that is said; --force keeps a stranger's file."""
    (tmp_path / "delayed").mkdir()
    page, stranger = tmp_path / "delayed" / "a", tmp_path / "delayed" / "notes.txt"
    page.write_text("mine")
    stranger.write_text("yours")
    assert command.main(["--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.count("is there already and is kept; --force replaces it.") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["adult", "delayed", "loans", "synthetic"]
    assert page.read_text() == "mine"
    assert command.main(["delayed", "--out", str(tmp_path), "--force"]) == 0
    assert (page.read_text(), stranger.read_text()) == ("new", "yours")


@pytest.mark.parametrize("there", [False, True])
def test_an_interrupted_study_leaves_nothing(tmp_path, monkeypatch, there):
    """Ctrl-C between two files: neither is left, nor a folder, and what was there is as it was."""
    if there:
        (tmp_path / "delayed").mkdir()
        (tmp_path / "delayed" / "results.md").write_text("old")

    def interrupted(folder, say):
        (folder / "results.md").write_text("new")
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "write_delayed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        command.main(["delayed", "--out", str(tmp_path), "--force"])
    assert [file.name for file in tmp_path.rglob("*")] == (["delayed", "results.md"] if there else [])
    if there:
        assert (tmp_path / "delayed" / "results.md").read_text() == "old"


def test_the_loans_without_their_file(tmp_path, monkeypatch, capsys):
    """One line says where to put it, whether the study or the docs want it; nothing is left, nothing is simulated."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FELICIFIC_LOANS", raising=False)
    for line in (["loans", "--out", "out"], ["--docs"]):
        assert command.main(line) == 1
        said = capsys.readouterr().err.splitlines()[-1]
        for words in ("Loan.csv", "../shared/data/loan/Loan.csv", "--loans FILE", "FELICIFIC_LOANS=FILE"):
            assert words in said
    assert not list((tmp_path / "out").iterdir())
    assert command.main(["loans", "--out", "out", "--loans", "none.csv"]) == 1
    assert "none.csv cannot be read" in capsys.readouterr().err


def test_all_other_studies_run_without_the_loans(tmp_path, monkeypatch, quick):
    """What needs no file is written; the exit code says that something is missing."""

    def paper(name, folder, asked, say):
        if name == "loans":
            command.loans.load(None)
        return ""

    monkeypatch.setattr(command, "write_paper", paper)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FELICIFIC_LOANS", raising=False)
    assert command.main(["--out", "out"]) == 1
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["adult", "delayed", "synthetic"]


@pytest.mark.parametrize(
    "line", [["everything"], ["adult", "--rows", "5"], ["adult", "--seeds", "0"], ["adult", "--rows", "many"]]
)
def test_what_is_typed_wrongly(line, capsys):
    """Exit code 2 and what is wrong."""
    with pytest.raises(SystemExit) as ended:
        command.main(line)
    assert ended.value.code == 2
    assert line[-1] in capsys.readouterr().err


def test_a_file_where_the_folder_should_be(tmp_path, capsys):
    """One line, and the file is as it was."""
    (tmp_path / "file").write_text("mine")
    assert command.main(["delayed", "--out", str(tmp_path / "file")]) == 1
    assert "studies: " in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "mine"
