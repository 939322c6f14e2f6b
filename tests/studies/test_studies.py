"""The studies: small runs of all of them, the tie rule and the numbers against naive second computations."""

import contextlib
import csv
import io
import json
import math
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linprog

from felicific import frontier, studies
from felicific._files import folder_whole
from felicific._problem.happiness import Happiness
from felicific._program.signals import Score, SoftLabel
from felicific.cli import run as command_line
from felicific.datasets import fico
from felicific.studies import _charts, _delayed, _page, _paper, _ties, _tracks, reproduce
from felicific.studies._tracks import METHODS, People

PAPER = ("synthetic", "adult", "loans")
ROWS = 2_000
SEEDS = {"synthetic": 2, "adult": 1, "loans": 1}


def run(*arguments):
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = command_line(["reproduce", *map(str, arguments)])
    return SimpleNamespace(exit_code=code, output=output.getvalue())


def read(file):
    with file.open(newline="") as stream:
        return list(csv.DictReader(stream))


lend = cache(_delayed.lend)  # the frontiers of a lender take seconds


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """The folder of a study by name: a small run by the command line, once, away from any file of the loans."""
    folder = tmp_path_factory.mktemp("studies")

    @cache
    def made(name):
        small = ("--rows", ROWS, "--seeds", SEEDS[name]) if name in SEEDS else ()
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.delenv("FELICIFIC_LOANS", raising=False)
            patch.setattr(_delayed, "lend", lend)
            patch.setattr(_delayed, "RATIOS", (4.0,))
            done = run(name, "--out", folder / "out", *small)
        assert done.exit_code == 0, done.output
        assert "start with index.html" in done.output
        return folder / "out" / name

    return made


def loans(seed=0, n=1_500):
    """People with a happiness in dollars, a score that helps, and groups of unequal accuracy."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    p = rng.beta(1 + group, 2 - group)
    y = (rng.random(n) < p).astype(int)
    score = np.clip(p + rng.normal(0, 0.1 + 0.2 * group, n), 0.0, 1.0)
    X = {"loan": rng.normal(100 + 20 * group, 10, n), "group": np.where(group, "b", "a")}
    happiness = Happiness(lambda decision, x: decision * x["loan"], name="funding", unit="$")
    return People.of(X, y, np.column_stack([1 - score, score]), happiness, "group")


# ---------------------------------------------------------------------------------------------------------
# Small runs


def test_all_runs_what_is_not_there(tmp_path, monkeypatch):
    """``all`` is every study by its name; one whose folder is there is kept, with a word about it."""
    monkeypatch.setattr(studies, "_write_paper", lambda name, folder, *_: (folder / "what").write_text(name))
    monkeypatch.setattr(studies, "_write_delayed", lambda folder, *_: (folder / "what").write_text("delayed"))
    (tmp_path / "synthetic").mkdir()
    done = run("all", "--out", tmp_path)
    assert done.exit_code == 0
    assert done.output.count("is kept") == 1
    assert "synthetic is there already and is kept" in done.output
    assert not list((tmp_path / "synthetic").iterdir())
    for name in ("adult", "loans", "delayed"):
        assert (tmp_path / name / "what").read_text() == name


@pytest.mark.parametrize("name", PAPER)
def test_the_csv_files_are_as_the_papers_figures_read_them(study, name):
    """Columns acc,0,1,2,3; accuracy rises; every method's loose end is there; a number or nan in every cell."""
    for people in ("test", "val"):
        for suffix in ("", "_score"):
            file = study(name) / f"acc_vs_happiness_delta_{people}{suffix}.csv"
            assert file.read_text().startswith("acc,0,1,2,3\n")
            numbers = np.genfromtxt(file, delimiter=",", skip_header=1)
            assert (np.diff(numbers[:, 0]) > 0).all()
            assert (np.isfinite(numbers[:, 1:]).sum(axis=0) >= 1).all()
            assert (numbers[:, 1:][np.isfinite(numbers[:, 1:])] >= 0).all()
            if people == "val":
                assert np.isfinite(numbers[-1]).all(), "all frontiers end at the least loss"


@pytest.mark.parametrize("name", PAPER)
def test_the_csv_files_hold_the_tracks(study, name):
    """At every accuracy of a track the paper's file has its gap, or a smaller one where the track comes back."""
    short = {"test": "test", "validation": "val"}
    suffixes = {"soft-label": "", "score": "_score"}
    grids = {
        (policy, people): np.genfromtxt(
            study(name) / f"acc_vs_happiness_delta_{short[people]}{suffixes[policy]}.csv",
            delimiter=",",
            names=True,
        )
        for policy in suffixes
        for people in short
    }
    rows = read(study(name) / "frontiers.csv")
    assert {(row["policy"], row["people"], row["method"]) for row in rows} == {
        (policy, people, method) for policy in suffixes for people in short for method in METHODS
    }
    for row in rows:
        grid = grids[row["policy"], row["people"]]
        place = np.abs(grid["acc"] - float(row["accuracy"])).argmin()
        assert grid["acc"][place] == pytest.approx(float(row["accuracy"]), abs=1e-11)
        assert grid[str(METHODS.index(row["method"]))][place] <= float(row["gap"]) * (1 + 1e-9) + 1e-6
        assert float(row["low"]) <= float(row["gap"]) + 1e-6
        assert float(row["gap"]) <= float(row["high"]) + 1e-6
        assert float(row["error"]) >= 0


@pytest.mark.parametrize("name", PAPER)
def test_results_are_complete(study, name):
    """Every seed, policy, people and method with accuracy, gap and its error; claims with verdicts; cost."""
    results = json.loads((study(name) / "results.json").read_text())
    assert [seed["seed"] for seed in results["seeds"]] == list(range(SEEDS[name]))
    for seed in results["seeds"]:
        assert seed["people"] == {"train": 400, "validation": 320, "test": 1280}
        assert sum(seed["validation people by group"].values()) == 320
        for policy in ("soft-label", "score"):
            for part in ("validation", "test"):
                found = seed["policies"][policy][part]
                assert set(found) == {"unprocessed", *METHODS}
                assert found["unprocessed"]["error"] > 0
                for method in METHODS:
                    for place in ("at eps 0", "at least loss", "closest to gap 0"):
                        point = found[method][place]
                        assert 0 < point["accuracy"] <= 1
                        assert point["error"] >= 0  # nobody is approved by some policies of so few people
                        assert point["low"] <= point["gap"] + 1e-6 <= point["high"] + 2e-6
            own = seed["policies"][policy]["validation"]["own happiness"]["at eps 0"]
            assert own["gap"] == pytest.approx(0.0, abs=1e-6)
    for item in results["claims"]:
        assert set(item) == {"statement", "paper", "ours", "holds", "note", "by"}
        assert math.isfinite(item["ours"]["mean"])
        many = len(item["ours"]["values"])
        assert (item["ours"]["standard error"] is None) == (many == 1)
        assert many in (1, SEEDS[name])
    bound = next(item for item in results["claims"] if "10,596" in item["statement"])
    assert bound["holds"] is False
    assert any("10,596" in flag["sentence"] for flag in results["verdict"]["flags"] if flag["level"] == 3)
    ahead = [item for item in results["claims"] if "most accurate as the gap goes to 0" in item["statement"]]
    assert [item["holds"] for item in ahead] == [True, True]
    assert results["cost"]["seconds"] > 0
    assert {"felicific", "numpy", "scikit-learn", "highspy", "python"} <= set(results["software"])


@pytest.mark.parametrize("name", [*PAPER, "delayed"])
def test_every_study_has_a_page_and_figures(study, name):
    """The page shows every figure, which is there as SVG and PNG, and says what was assumed."""
    page = (study(name) / "results.md").read_text()
    pictures = sorted(file.name for file in study(name).glob("*.svg"))
    assert pictures
    for picture in pictures:
        assert f"]({picture})" in page
        assert (study(name) / picture).read_text().startswith("<svg")
        assert (study(name) / picture.replace(".svg", ".png")).read_bytes().startswith(b"\x89PNG")
    assert "What was assumed" in page
    assert "MB in memory" in page
    shown = (study(name) / "index.html").read_text("utf-8")
    results = json.loads((study(name) / "results.json").read_text())
    assert shown == _page.study_page(study(name))
    assert shown.count('role="img"') == sum(len(figure["panels"]) for figure in results["figures"])
    assert f"{results['verdict']['headline']}." in shown
    if name != "delayed":
        assert "10,596" in page
        assert _ties.RULE in page
        assert "one-hot" in page


def test_the_loans_say_what_they_are(study):
    """Without the public file the page says that the loans are simulated, and states group, months and rows."""
    page = (study("loans") / "results.md").read_text()
    for words in (
        "Simulated, not the public file",
        "names no group column",
        "divided by 12",
        "48,842",
        "20,000",
    ):
        assert words in page


def test_the_synthetic_page_has_the_papers_numbers(study):
    """The printed figures of the paper stand beside ours."""
    page = (study("synthetic") / "results.md").read_text()
    for words in ("0.833", "0.97", "0.795", "25,384", "less than 0.01"):
        assert words in page


def test_another_group_column(tmp_path):
    """The loans may be grouped by another column; one that is not there is refused by name."""
    settings = _paper.Settings(rows=600, group="MaritalStatus")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        patch.delenv("FELICIFIC_LOANS", raising=False)
        data = _paper.load("loans", 0, settings)
        assert set(data.X[data.sensitive_features]) == {"Married", "not Married"}
        assert "age_group" not in data.X
        found = run("loans", "--out", tmp_path, "--rows", 600, "--group", "Sex")
    assert found.exit_code == 1
    assert "no column 'Sex'" in found.output


@pytest.mark.parametrize(
    ("values", "groups"),
    [
        ([0, 1, 1, 0], {"0", "1"}),
        ([1.0, 2.0, 3.0, 4.0], {"below 2.5", "2.5 and above"}),
        (["x", "y", "y", "z"], {"y", "not y"}),
    ],
)
def test_two_groups_of_any_column(values, groups):
    """Two values, a median split, or the commonest value against the rest."""
    assert set(_paper.two_groups(np.array(values)).tolist()) == groups


# ---------------------------------------------------------------------------------------------------------
# Tracks and ties


def difference_range(moments, criterion, eps, loss):
    """Least and largest difference of group means over the optimal policies, by scipy, from the paper's formulas."""
    names = [component.name for component in moments.components]
    n_groups, n_signals, n_classes = moments.loss.shape
    size = n_groups * n_signals * n_classes

    def mean(z, j):
        row = np.zeros(moments.loss.shape)
        row[z] = moments.value[z, :, :, j] / moments.counted[z, j]
        return row.ravel()

    rows, sides = [moments.loss.ravel() / moments.total], [loss + 1e-10]
    for j, component in enumerate(moments.components):
        if component.family == criterion:
            apart = mean(0, j) - mean(1, j)
            rows += [apart, -apart]
            sides += [eps + 1e-10, eps + 1e-10]
    one = np.kron(np.eye(n_groups * n_signals), np.ones(n_classes))
    if hasattr(moments.signal, "monotone"):
        for z in range(n_groups):
            for s in range(n_signals - 1):
                row = np.zeros(moments.loss.shape)
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


@pytest.mark.parametrize("signal", [SoftLabel(), Score(cells=12)], ids=["soft-label", "score"])
@pytest.mark.parametrize("criterion", _tracks.CRITERIA_SHOWN)
def test_ties_are_settled_in_the_middle(signal, criterion):
    """Both ends are those that scipy finds, all three policies are optimal, and the middle is their mean."""
    moments = loans().moments(signal).joined()
    line = frontier(moments, gap={criterion: 1.0})
    settled = _ties.settle(line, moments, criterion)
    wide = 0
    for i, point in enumerate(line.points):
        least, largest = difference_range(moments, criterion, point.tau, point.outcome.loss)
        apart = []
        for settled_line in (settled.low, settled.middle, settled.high):
            outcome = moments.evaluate(settled_line.points[i].q)
            assert outcome.loss == pytest.approx(point.outcome.loss, abs=1e-8)
            family = [j for j, c in enumerate(moments.components) if c.family == criterion]
            assert outcome.gaps[family].max() <= point.tau + 1e-8
            apart.append(outcome.means[0, 0] - outcome.means[1, 0])
        assert apart[0] == pytest.approx(least, abs=1e-3)
        assert apart[2] == pytest.approx(largest, abs=1e-3)
        assert apart[1] == pytest.approx((apart[0] + apart[2]) / 2, abs=1e-9)
        wide += largest - least > 1.0
    if criterion == "overall_accuracy":
        assert wide, "equal accuracy leaves the difference open, or this test tests nothing"


@pytest.mark.parametrize("signal", [SoftLabel(), Score()], ids=["soft-label", "score"])
def test_tracks_equal_decisions_counted_person_by_person(signal):
    """Accuracy, gap and error along a track are those of the policy's decisions about every other person."""
    fitted, other = loans(0), loans(1)
    moments = fitted.moments(signal).joined()
    lines = _tracks.fit(moments)
    for method, settled in lines.items():
        track = _tracks.follow(settled, other, other.moments(moments.signal))
        family = moments.components[0].name if method == METHODS[0] else method.replace(" ", "_")
        for i in {0, len(track.eps) // 2, len(track.eps) - 1}:
            policy = settled.middle.at(gap={family: float(track.eps[i])})
            chance = policy.odds(other.proba, other.group)[:, 1]
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
            assert track.accuracy[i] == pytest.approx(right / len(chance), abs=1e-9)
            assert track.gap[i] == pytest.approx(abs(mean["a"] - mean["b"]), abs=1e-6)
            assert track.error[i] == pytest.approx(error, rel=1e-9)


def test_own_happiness_is_best_at_every_gap_on_validation():
    """No point of any criterion's track, ties settled any way, is more accurate than the own track at its gap."""
    people = loans()
    moments = people.moments(Score()).joined()
    tracks = {method: _tracks.follow(line, people, moments) for method, line in _tracks.fit(moments).items()}
    own = tracks[METHODS[0]]
    for track in tracks.values():
        for gap, accuracy in zip(track.gap.tolist(), track.accuracy.tolist(), strict=True):
            assert own.accuracy_at(gap) >= accuracy - 1e-9


def test_the_grid_takes_the_least_gap_of_a_track():
    """Against a finely sampled polyline that passes some accuracies twice, and one that stands still."""
    accuracy, gap = np.array([0.1, 0.5, 0.3, 0.3, 0.9]), np.array([4.0, 2.0, 3.0, 1.0, 5.0])
    grid = np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 0.95])
    t = np.linspace(0, 4, 400_001)
    x, y = np.interp(t, range(5), accuracy), np.interp(t, range(5), gap)
    naive = [
        min((b for a, b in zip(x[near], y[near], strict=True)), default=math.nan)
        for near in (np.flatnonzero(np.abs(x - g) < 1e-5) for g in grid)
    ]
    assert np.allclose(_tracks.on_grid(accuracy, gap, grid), naive, atol=1e-3, equal_nan=True)


def test_a_track_of_one_point_is_one_number():
    """A frontier without anything to trade is one row."""
    assert _tracks.on_grid(np.array([0.5]), np.array([2.0]), np.array([0.4, 0.5])).tolist()[1] == 2.0


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
        self.today = {g: self.curves[g][self.cut] for g in self.groups}

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
                sides.append(-self.today[group][2])
        one = np.array([[float(k // n == z) for k in range(size)] + [0.0] for z in range(4)])
        goal = -sum(w * mean(z, 3) for z, w in enumerate(self.weight))
        bounds = [(0, 1)] * size + [(None, None)]
        answer = linprog(goal, rows, sides, one, np.ones(4), bounds=bounds, method="highs")
        assert answer.status == 0
        return np.array([[mean(z, what) @ answer.x for what in range(4)] for z in range(4)]), -answer.fun


@pytest.fixture(scope="module", params=_delayed.RATIOS)
def lender(request):
    return lend(request.param), Lending(request.param)


def test_today_is_the_best_single_cutoff(lender):
    """Approval, change and profit under the single cutoff, summed from the table in loops."""
    credit, naive = lender
    assert list(credit.groups) == naive.groups
    approved = [naive.today[group][0] for group in naive.groups]
    change = [naive.today[group][2] for group in naive.groups]
    assert credit.means(credit.today, _delayed.APPROVAL) == pytest.approx(approved, abs=1e-12)
    assert credit.means(credit.today, _delayed.CHANGE) == pytest.approx(change, abs=1e-10)
    profit = sum(w * naive.today[g][3] for w, g in zip(naive.weight, naive.groups, strict=True))
    assert -credit.today.loss == pytest.approx(profit, abs=1e-12)
    assert credit.groups[credit.lowest] == "Black"


@pytest.mark.parametrize(
    ("name", "column", "floor"),
    [
        ("statistical parity", 0, False),
        ("equal opportunity", 1, False),
        ("happiness parity", 2, False),
        ("statistical parity, no group worse than today", 0, True),
        ("happiness parity, no group worse than today", 2, True),
    ],
)
def test_delayed_frontiers_equal_mixtures_of_thresholds(lender, name, column, floor):
    """Profit, and every group's approval and change, are those of scipy's best mixture of thresholds at that gap."""
    credit, naive = lender
    if credit.ratio == 10 and column == 2:
        pytest.skip("one lender's long frontier is enough")
    line = credit.lines[name]
    for eps in np.linspace(line.tau[0], line.tau[-1], 4):
        means, profit = naive.best(column, float(eps) + 1e-9, floor)
        family = _delayed.CRITERIA[name][0]
        policy = line.at(gap={family: float(eps) + 1e-9})
        assert -policy.loss == pytest.approx(profit, abs=1e-7)
        found = [list(policy.means[part].values()) for part in (_delayed.APPROVAL, _delayed.CHANGE)]
        assert found[0] == pytest.approx(means[:, 0], abs=1e-4)
        assert found[1] == pytest.approx(means[:, 2], abs=1e-2)


def test_statistical_parity_by_one_common_rate(lender):
    """Approving the same share of every group from the top: the best share, tried one by one, is the frontier's end.

    At the higher ratio the best share ends among scores at which a higher one repays less often: a mixture is better.
    """
    credit, naive = lender
    rates = np.unique(np.concatenate([naive.curves[group][:, 0] for group in naive.groups]))

    def at(rate, what):
        return [np.interp(rate, naive.curves[g][:, 0], naive.curves[g][:, what]) for g in naive.groups]

    rate = max(rates, key=lambda rate: naive.weight @ at(rate, 3))
    end = credit.lines["statistical parity"].points[0].outcome
    assert credit.means(end, _delayed.APPROVAL) == pytest.approx([rate] * 4, abs=1e-9)
    if credit.ratio == 10:
        assert naive.weight @ at(rate, 3) < -end.loss < naive.weight @ at(rate, 3) + 1e-4
        return
    assert credit.means(end, _delayed.CHANGE) == pytest.approx(at(rate, 2), abs=1e-6)
    assert -end.loss == pytest.approx(naive.weight @ at(rate, 3), abs=1e-9)


def test_where_parity_begins_to_harm(study):
    """At the reported gaps scipy's own solution leaves the group as it is today, or unchanged; tighter, it is worse."""
    naive = Lending(4.0)
    lenders = json.loads((study("delayed") / "results.json").read_text())["lenders"]
    facts = lenders[0]["criteria"]["statistical parity"]
    black = naive.groups.index("Black")
    keys = ("eps at which that group passes today's change", "eps at which that group's change passes 0")
    levels = (naive.today["Black"][2], 0.0)
    for key, level in zip(keys, levels, strict=True):
        eps = min(facts[key])
        assert naive.best(0, eps)[0][black, 2] == pytest.approx(level, abs=1e-3)
        assert naive.best(0, 0.9 * eps)[0][black, 2] < level - 1e-3
    page = (study("delayed") / "results.md").read_text()
    assert f"Their scores fall at gaps below {min(facts[keys[1]]):.4f}" in page


def test_delayed_results_are_complete(study):
    """Today and every criterion at both ends: profit, approval and change of all groups; a row for every breakpoint."""
    results = json.loads((study("delayed") / "results.json").read_text())
    (lender,) = results["lenders"]
    states = [lender["today"]]
    for name in _delayed.CRITERIA:
        states += [lender["criteria"][name][place] for place in ("least gap", "least loss")]
    for state in states:
        assert math.isfinite(state["profit per applicant"])
        assert set(state["approved"]) == set(state["change"]) == set(fico().groups)
    for name, line in lend(4.0).lines.items():
        rows = [row for row in read(study("delayed") / "frontiers.csv") if row["criterion"] == name]
        assert len(rows) == len(line) == lender["criteria"][name]["breakpoints"]
        assert [float(row["eps"]) for row in rows] == pytest.approx(line.tau, rel=1e-9, abs=1e-12)


def test_crossings_of_a_broken_line():
    """Every passing of the level is found once, on a point too; touching it is none."""
    x, y = np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 2.0, -2.0, -4.0])
    assert _delayed.crossings(x, y, 1.0) == pytest.approx([0.5, 1.25])
    assert _delayed.crossings(x, y, -2.0) == pytest.approx([2.0])
    assert _delayed.crossings(x, y, 2.0) == []
    assert _delayed.crossings(x, y, 0.0) == pytest.approx([1.5])


# ---------------------------------------------------------------------------------------------------------
# Files and errors


def test_results_that_are_there_are_kept(tmp_path, monkeypatch):
    """A second run changes nothing and says so; with --force it writes anew and keeps a stranger's file."""
    monkeypatch.setattr(
        "felicific.studies._write_delayed", lambda folder, say: (folder / "a").write_text("new")
    )
    page, stranger = tmp_path / "delayed" / "a", tmp_path / "delayed" / "notes.txt"
    assert run("delayed", "--out", tmp_path).exit_code == 0
    page.write_text("mine")
    stranger.write_text("yours")
    found = run("delayed", "--out", tmp_path)
    assert found.exit_code == 0
    assert "is kept" in found.output
    assert page.read_text() == "mine"
    assert run("delayed", "--out", tmp_path, "--force").exit_code == 0
    assert (page.read_text(), stranger.read_text()) == ("new", "yours")
    assert [file.name for file in tmp_path.iterdir()] == ["delayed"]


@pytest.mark.parametrize("there", [False, True])
def test_an_interrupted_study_leaves_nothing(tmp_path, monkeypatch, there):
    """Ctrl-C between two files: neither is left, nor a folder, and what was there is as it was."""
    if there:
        (tmp_path / "delayed").mkdir()
        (tmp_path / "delayed" / "results.md").write_text("old")

    def interrupted(folder, say):
        (folder / "results.md").write_text("new")
        raise KeyboardInterrupt

    monkeypatch.setattr("felicific.studies._write_delayed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        reproduce("delayed", tmp_path, force=there)
    assert [file.name for file in tmp_path.rglob("*")] == (["delayed", "results.md"] if there else [])
    if there:
        assert (tmp_path / "delayed" / "results.md").read_text() == "old"


def test_a_folder_is_written_whole(tmp_path):
    """The new folder takes the name in one step, in the place of the old one."""
    for text in ("one", "two"):
        with folder_whole(tmp_path / "a" / "b") as room:
            (room / "file").write_text(text)
            assert (tmp_path / "a" / "b").exists() == (text == "two")
        assert (tmp_path / "a" / "b" / "file").read_text() == text
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]


def test_errors_are_one_clear_line(tmp_path, monkeypatch):
    """A file where a folder should be, a missing file of loans, an unknown study, too few rows."""
    (tmp_path / "file").write_text("")
    for place in ("file", "file/deeper"):
        found = run("delayed", "--out", tmp_path / place)
        assert found.exit_code == 1
        assert "is a file, not a folder" in found.output
    found = run("loans", "--out", tmp_path, "--loans", tmp_path / "none.csv")
    assert found.exit_code == 1
    assert "none.csv cannot be read" in found.output
    assert run("everything", "--out", tmp_path).exit_code == 2
    assert run("adult", "--out", tmp_path, "--rows", 5).exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    monkeypatch.setattr("felicific.studies.find_spec", lambda name: None)
    found = run("delayed", "--out", tmp_path)
    assert found.exit_code == 1
    assert "felicific[app,report,plots]" in found.output


def test_labels_do_not_collide():
    """Names of lines that start together and part are inside the panel and apart from each other."""
    frame = _charts.Frame((0.0, 1.0), (0.0, 1.0))
    x = np.array([0.0, 0.5, 1.0])
    lines = {f"line {i}": (x, np.array([0.5, 0.5 + 0.1 * i, 0.5])) for i in range(-2, 3)}
    places = _charts.place_labels(lines, frame)
    boxes = [frame.pixels(*place) for place in places.values()]
    for i, (a, b) in enumerate(boxes):
        assert 0 < a < frame.width
        assert 0 < b < frame.height
        for c, d in boxes[:i]:
            assert abs(a - c) >= _charts.LETTER * 6 or abs(b - d) >= _charts.LINE - 1e-9
