"""The ladder of policies on three data sets, recalibration without labels, and three peers.

    pip install -e ".[pandas]" altair vl-convert-python
    python benchmarks/policies.py [--seeds 5] [--peer-seeds 4] [--first-seed 0]
        [--only ladder|recalibrate|blind|peers] [--out docs/evidence]

Every number is measured on test rows by decision probabilities, so the lottery adds no noise of its own, and every
comparison is paired by seed. The tables replace what stands between the markers of ``policies.md`` in the folder
``--out``; the figure goes beside it. The peers are installed, by name, into environments under ``--envs``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from shared import EVIDENCE, ROOT, SCRIPTS, environment, fill, table
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator

import felicific
from felicific import FairClassifier
from felicific.datasets import Dataset, adult, financial_loans, synthetic_loans
from felicific.sklearn import make_scorer
from studies.experiment import make_forest
from studies.experiment import split as split_rows

LOADERS: dict[str, Callable[..., Dataset]] = {
    "synthetic": synthetic_loans,
    "adult": adult,
    "loans": financial_loans,
}
TELLING = {"synthetic": ["sex"], "adult": ["sex"], "loans": ["age_group", "Age"]}  # hidden from a blind model

UNCONSTRAINED = "unconstrained"
LADDER = ("soft-label", "label", "score", "individual")
DEPLOYED = ("score", "individual")
MOST_LOST, LEAST_WON = 1.2, 5.0  # points of accuracy
MOST_LEFT = 0.001  # of the unconstrained gap

CRITERIA = ("statistical_parity", "equalized_odds")
BOUNDS = (0.0, 0.05)
ENVIRONMENTS = {
    "shared": ("fairlearn", "oxonfair"),
    "error-parity": ("error-parity",),  # it wants numpy<2
    "aif360": ("aif360",),
}
PEERS = tuple(peer for peers in ENVIRONMENTS.values() for peer in peers)
MET = 0.005  # a bound counts as met in sample up to this
SAME = 1e-7  # points of accuracy: policies that differ by less are the same to their solvers' rounding

Record = dict[str, Any]


# ---------------------------------------------------------------------------------------------------------
# Data, splits, forests


class Remembered(ClassifierMixin, BaseEstimator):
    """A fitted model's output, looked up by the index of the table: the forest runs once per split."""

    def __init__(self, probabilities: Any, predicted: Any) -> None:
        self.probabilities = probabilities
        self.predicted = predicted
        self.classes_ = np.array([0, 1])

    def fit(self, X: Any, y: Any) -> Remembered:
        """Learn nothing; scikit-learn takes nothing without this method for an estimator."""
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return the forest's probabilities."""
        return self.probabilities[X.index]

    def predict(self, X: Any) -> Any:
        """Return the forest's decisions."""
        return self.predicted[X.index]

    def __sklearn_is_fitted__(self) -> bool:
        return True


@dataclass(frozen=True, eq=False)
class Split:
    """One data set, one seed: a forest fitted on the train rows, and the other rows."""

    name: str
    seed: int
    data: Dataset
    model: Any
    train: Any
    validation: Any
    test: Any

    def rows(self, part: Any) -> tuple[Any, Any]:
        """People and their labels."""
        return self.data.X.iloc[part], self.data.y[part]

    def group(self, part: Any) -> Any:
        """Their groups."""
        return self.data.X[self.data.sensitive_features].to_numpy()[part]

    def fit(self, policy: str, **changes: Any) -> FairClassifier:
        """Fit a policy on the validation rows: the data set's own happiness at gap 0, unless changed."""
        settings: dict[str, Any] = {
            "happiness": self.data.happiness,
            "gap": 0.0,
            "sensitive_features": self.data.sensitive_features,
            "random_state": self.seed,
        }
        fair = FairClassifier(FrozenEstimator(self.model), policy=policy, **(settings | changes))
        return fair.fit(*self.rows(self.validation))

    def measure(self, decider: Any, part: Any) -> tuple[float, float]:
        """Accuracy and gap of a classifier on some rows."""
        scorer = make_scorer(happiness=self.data.happiness, sensitive_features=self.data.sensitive_features)
        found = scorer(decider, *self.rows(part))
        return 1.0 + found["neg_loss"], -found["neg_gap"]


@cache
def load(name: str) -> Dataset:
    return LOADERS[name](as_frame="pandas")


@cache
def split(name: str, seed: int) -> Split:
    data = load(name)
    train, validation, test = split_rows(len(data.y), seed)
    forest = fit_forest(data, train, seed)
    score = forest.predict_proba(data.X)  # it takes the columns it knows
    return Split(name, seed, data, Remembered(score, score.argmax(axis=1)), train, validation, test)


def fit_forest(data: Dataset, train: Any, seed: int, hidden: Iterable[str] = ()) -> Any:
    """One-hot encoding and a hundred trees, on the columns that are not hidden."""
    X = data.X[[name for name in data.X.columns if name not in hidden]].iloc[train]
    return make_forest(X, seed).fit(X, data.y[train])


def progress(part: str, work: Split, start: float) -> None:
    print(f"  {part:12} {work.name} seed {work.seed:<18} {time.perf_counter() - start:6.1f} s", flush=True)


# ---------------------------------------------------------------------------------------------------------
# What is measured


def ladder(seeds: int) -> list[Record]:
    """Accuracy, gap and lotteries on the test rows, for every policy at gap 0."""
    found = []
    for name in LOADERS:
        for seed in range(seeds):
            start, work = time.perf_counter(), split(name, seed)
            deciders = {UNCONSTRAINED: work.model} | {policy: work.fit(policy) for policy in LADDER}
            for policy, decider in deciders.items():
                accuracy, gap = work.measure(decider, work.test)
                drawn = 0.0 if decider is work.model else share_randomized(decider, work)
                found.append(
                    {
                        "data": name,
                        "seed": seed,
                        "method": policy,
                        "accuracy": accuracy,
                        "gap": gap,
                        "randomized": drawn,
                    }
                )
            progress("ladder", work, start)
    return found


def share_randomized(fair: FairClassifier, work: Split) -> float:
    """Share of the test people who face a lottery."""
    probabilities = fair.predict_proba(work.rows(work.test)[0])
    return float((probabilities.max(axis=1) < 1.0).mean())


def recalibrate(seeds: int) -> list[Record]:
    """What is left of the gap with and without recalibration, on the rows that were seen and on others."""
    found = []
    for name in LOADERS:
        for seed in range(seeds):
            start, work = time.perf_counter(), split(name, seed)
            seen, other = np.array_split(np.random.default_rng(seed + 1000).permutation(work.test), 2)
            for policy in DEPLOYED:
                found.append({"data": name, "seed": seed, "method": policy} | left(work, policy, seen, other))
            progress("recalibrate", work, start)
    return found


def left(work: Split, policy: str, seen: Any, other: Any) -> Record:
    fair = work.fit(policy)
    everyone = fair.recalibrate(work.rows(work.test)[0])
    half = fair.recalibrate(work.rows(seen)[0])
    situations = {
        "unconstrained": (work.model, work.test),
        "as fitted": (fair, work.test),
        "recalibrated": (everyone, work.test),
        "unconstrained, other half": (work.model, other),
        "as fitted, other half": (fair, other),
        "recalibrated, other half": (half, other),
    }
    record = {}
    for situation, (decider, part) in situations.items():
        record[f"accuracy {situation}"], record[f"gap {situation}"] = work.measure(decider, part)
    return record


def blind(seeds: int) -> list[Record]:
    """What it costs to decide without the group, with a model that is not told the group either."""
    found = []
    for name in LOADERS:
        for seed in range(seeds):
            start, seeing = time.perf_counter(), split(name, seed)
            forest = fit_forest(seeing.data, seeing.train, seed, TELLING[name])
            work = replace(seeing, model=forest)
            deciders = {UNCONSTRAINED: forest}
            for policy in DEPLOYED:
                deciders[policy] = work.fit(policy)
                deciders[f"{policy}, blind"] = work.fit(policy, sees_group=False)
            for method, decider in deciders.items():
                accuracy, gap = work.measure(decider, work.test)
                found.append({"data": name, "seed": seed, "method": method, "accuracy": accuracy, "gap": gap})
            progress("blind", work, start)
    return found


def peers(seeds: range, environments: Path) -> tuple[list[Record], dict[str, Any]]:
    """Run felicific and the three peers on the peers' own criteria; also what each peer is."""
    tasks = [(name, seed) for name in LOADERS for seed in seeds]
    with tempfile.TemporaryDirectory() as folder:
        write_tasks(Path(folder), tasks)
        about = run_peers(Path(folder), environments)
        found = []
        for name, seed in tasks:
            start, work = time.perf_counter(), split(name, seed)
            for criterion in CRITERIA:
                for bound in BOUNDS:
                    decided = theirs(Path(folder), work, criterion, bound) | ours(work, criterion, bound)
                    found += [judge(work, criterion, bound, *item) for item in decided.items()]
            progress("felicific", work, start)
    return found, about


def write_tasks(folder: Path, tasks: list[tuple[str, int]]) -> None:
    for name, seed in tasks:
        work, arrays = split(name, seed), {}
        for part, rows in (("validation", work.validation), ("test", work.test)):
            arrays[f"{part}_score"] = work.model.probabilities[rows, 1]
            arrays[f"{part}_y"] = work.data.y[rows]
            arrays[f"{part}_group"] = np.unique(work.group(rows), return_inverse=True)[1]
        np.savez(folder / f"{name}-{seed}.npz", **arrays)
    names = [f"{name}-{seed}" for name, seed in tasks]
    asked = {"tasks": names, "criteria": CRITERIA, "bounds": BOUNDS}
    (folder / "tasks.json").write_text(json.dumps(asked))


def run_peers(folder: Path, environments: Path) -> dict[str, Any]:
    """Run every peer with its own interpreter; return what each says of itself."""
    about = {}
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for name, packages in ENVIRONMENTS.items():
        python = environment(environments / name, packages)
        for peer in packages:
            script = SCRIPTS / f"run_{peer.replace('-', '_')}.py"
            subprocess.run([python, script, folder], check=True, env=clean)
            about[peer] = json.loads((folder / f"{peer}.json").read_text())
    return about


Decided = dict[str, tuple[Any, Any]]


def theirs(folder: Path, work: Split, criterion: str, bound: float) -> Decided:
    """Probabilities of the favourable decision on validation and test rows, for every peer that offers them."""
    decided = {}
    for peer in PEERS:
        with np.load(folder / f"{work.name}-{work.seed}.{peer}.npz") as arrays:
            key = f"{criterion}|{bound}"
            if f"{key}|test" in arrays:
                decided[peer] = arrays[f"{key}|validation"], arrays[f"{key}|test"]
    return decided


def ours(work: Split, criterion: str, bound: float) -> Decided:
    decided = {}
    for policy in DEPLOYED:
        fair = work.fit(policy, happiness=criterion, gap=bound)
        decided[policy] = tuple(
            fair.predict_proba(work.rows(part)[0])[:, 1] for part in (work.validation, work.test)
        )
    return decided


def judge(work: Split, criterion: str, bound: float, method: str, decided: tuple[Any, Any]) -> Record:
    """Measure everybody's decision probabilities in the same way."""
    fitted, new = decided
    y = work.data.y[work.test]
    return {
        "data": work.name,
        "seed": work.seed,
        "criterion": criterion,
        "bound": bound,
        "method": method,
        "accuracy": float(np.where(y == 1, new, 1.0 - new).mean()),
        "in sample": rate_gap(fitted, work, work.validation, criterion),
        "gap": rate_gap(new, work, work.test, criterion),
        "drawn": float(((new > 1e-9) & (new < 1.0 - 1e-9)).mean()),
    }


def rate_gap(decided: Any, work: Split, part: Any, criterion: str) -> float:
    """Largest difference between groups in the rate of favourable decisions: overall, or among either label."""
    y, group = work.data.y[part], work.group(part)
    counted = [np.full(len(y), True)] if criterion == "statistical_parity" else [y == 0, y == 1]
    rates = np.array([[decided[c & (group == z)].mean() for z in np.unique(group)] for c in counted])
    return float((rates.max(axis=1) - rates.min(axis=1)).max())


# ---------------------------------------------------------------------------------------------------------
# Tables


def series(records: list[Record], field: str, **wanted: Any) -> Any:
    """One field over the seeds."""
    return np.array(
        [r[field] for r in records if all(r[name] == value for name, value in wanted.items())], dtype=float
    )


def paired(difference: Any) -> tuple[float, float]:
    """Mean and standard error of differences paired by seed."""
    if len(difference) < 2:
        return float(difference.mean()), float("nan")
    return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))


def points(difference: Any) -> str:
    mean, error = paired(100 * difference)
    return f"{mean:+.3f} ± {error:.3f}"


def verdict(passed: bool) -> str:
    return "PASS" if passed else "**FAIL**"


def amount(value: float, name: str) -> str:
    unit = load(name).happiness.unit
    return f"${value:,.0f}" if unit == "$" else f"{value:.2f} {unit}"


def ladder_table(records: list[Record]) -> str:
    rows = []
    for name in LOADERS:
        base, soft = (series(records, "accuracy", data=name, method=m) for m in (UNCONSTRAINED, "soft-label"))
        for method in (UNCONSTRAINED, *LADDER):
            accuracy = series(records, "accuracy", data=name, method=method)
            lost, won = paired(100 * (accuracy - base))[0], paired(100 * (accuracy - soft))[0]
            judged = verdict(lost >= -MOST_LOST and won >= LEAST_WON) if method in DEPLOYED else ""
            rows.append(
                [
                    f"{name}: {method}",
                    f"{100 * accuracy.mean():.2f}",
                    "" if method == UNCONSTRAINED else points(accuracy - base),
                    "" if method in (UNCONSTRAINED, "soft-label") else points(accuracy - soft),
                    amount(series(records, "gap", data=name, method=method).mean(), name),
                    f"{100 * series(records, 'randomized', data=name, method=method).mean():.1f} %",
                    judged,
                ]
            )
    return table(
        [
            "data: policy",
            "accuracy %",
            "against unconstrained",
            "against soft-label",
            "gap on test",
            "drawn by lottery",
            "required",
        ],
        rows,
    )


def recalibrate_table(records: list[Record]) -> str:
    rows = []
    for name in LOADERS:
        for method in DEPLOYED:
            mine = [r for r in records if r["data"] == name and r["method"] == method]
            share = {
                s: series(mine, f"gap {s}") / series(mine, f"gap unconstrained{half}")
                for half in ("", ", other half")
                for s in (f"as fitted{half}", f"recalibrated{half}")
            }
            change = series(mine, "accuracy recalibrated") - series(mine, "accuracy as fitted")
            rows.append(
                [
                    f"{name}: {method}",
                    amount(series(mine, "gap unconstrained").mean(), name),
                    percent(share["as fitted"]),
                    f"{100 * share['recalibrated'].max():.1e} %",
                    verdict(share["recalibrated"].max() < MOST_LEFT),
                    percent(share["as fitted, other half"]),
                    percent(share["recalibrated, other half"]),
                    f"{100 * series(mine, 'accuracy recalibrated').mean():.2f}",
                    points(change),
                ]
            )
    return table(
        [
            "data: policy",
            "unconstrained gap",
            "left as fitted",
            "left recalibrated (worst seed)",
            "required",
            "other half: as fitted",
            "other half: recalibrated",
            "accuracy %",
            "change",
        ],
        rows,
    )


def blind_table(records: list[Record]) -> str:
    rows = []
    for name in LOADERS:
        base = series(records, "accuracy", data=name, method=UNCONSTRAINED)
        for policy in (None, *DEPLOYED):
            seeing = base if policy is None else series(records, "accuracy", data=name, method=policy)
            for method in (UNCONSTRAINED,) if policy is None else (policy, f"{policy}, blind"):
                accuracy = series(records, "accuracy", data=name, method=method)
                rows.append(
                    [
                        f"{name}: {method}",
                        f"{100 * accuracy.mean():.2f}",
                        "" if policy is None else points(accuracy - base),
                        points(accuracy - seeing) if method.endswith("blind") else "",
                        amount(series(records, "gap", data=name, method=method).mean(), name),
                    ]
                )
    return table(
        ["data: policy", "accuracy %", "against unconstrained", "cost of blindness", "gap on test"], rows
    )


def percent(share: Any) -> str:
    mean, error = paired(100 * share)
    return f"{mean:.1f} ± {error:.1f} %"


def cells() -> Iterable[tuple[str, str, float]]:
    return ((name, criterion, bound) for name in LOADERS for criterion in CRITERIA for bound in BOUNDS)


def cell_title(name: str, criterion: str, bound: float) -> str:
    return f"{name}, {criterion.replace('_', ' ')} ≤ {bound:g}"


def methods_table(records: list[Record]) -> str:
    """Accuracy, gap in sample (worst seed), gap on test and share of lotteries (means) of every method and cell."""
    rows = []
    for cell in cells():
        wanted = dict(zip(("data", "criterion", "bound"), cell, strict=True))
        row = [cell_title(*cell)]
        for method in (*DEPLOYED, *PEERS):
            accuracy, fitted, new, drawn = (
                series(records, field, method=method, **wanted)
                for field in ("accuracy", "in sample", "gap", "drawn")
            )
            if not len(accuracy):
                row.append("not offered")
                continue
            mark = "" if meets(fitted, cell[2]) else " ✗"
            row.append(
                f"{100 * accuracy.mean():.2f} ({fitted.max():.3f}{mark}, {new.mean():.3f}, {drawn.mean():.0%})"
            )
        rows.append(row)
    return table(["data, criterion and bound", *DEPLOYED, *PEERS], rows)


def meets(fitted: Any, bound: float) -> bool:
    return bool(fitted.max() <= bound + MET)


def duel_table(records: list[Record]) -> str:
    """Accuracy of felicific minus that of the best peer, and of the best peer that meets the bound."""
    rows = []
    for cell in cells():
        for method in DEPLOYED:
            row = [f"{cell_title(*cell)}: {method}"]
            for only_met in (False, True):
                row += duel(records, cell, method, only_met)
            rows.append(row)
    return table(
        [
            "cell: policy",
            "best peer",
            "difference, points",
            "required",
            "best peer that meets the bound",
            "difference, points",
            "required",
        ],
        rows,
    )


def duel_summary(records: list[Record]) -> str:
    """Say how many comparisons fail, and by how much at most."""
    shortfalls = {}
    comparisons = [(cell, method) for cell in cells() for method in DEPLOYED]
    for cell, method in comparisons:
        rival, difference, judged = duel(records, cell, method, only_met=True)
        if "FAIL" in judged:
            shortfalls[f"{cell_title(*cell)}: {method} against {rival}"] = float(difference.split()[0])
    failed = (
        f"{len(shortfalls)} of {len(comparisons)} comparisons with the best peer that meets the bound fail"
    )
    if not shortfalls:
        return f"{failed}."
    worst = min(shortfalls, key=lambda title: shortfalls[title])
    return f"{failed}, the worst by {-shortfalls[worst]:.3f} points ({worst})."


def duel(records: list[Record], cell: tuple[str, str, float], method: str, only_met: bool) -> list[str]:
    wanted = dict(zip(("data", "criterion", "bound"), cell, strict=True))
    rivals = {}
    for peer in PEERS:
        accuracy = series(records, "accuracy", method=peer, **wanted)
        fitted = series(records, "in sample", method=peer, **wanted)
        if len(accuracy) and (not only_met or meets(fitted, cell[2])):
            rivals[peer] = accuracy
    if not rivals:
        return ["none", "", ""]
    best = max(rivals, key=lambda peer: rivals[peer].mean())
    difference = series(records, "accuracy", method=method, **wanted) - rivals[best]
    mean, error = paired(100 * difference)
    fair = bool(series(records, "in sample", method=method, **wanted).max() <= cell[2] + 1e-6)
    return [best, points(difference), verdict(mean >= -error - SAME and fair)]


# ---------------------------------------------------------------------------------------------------------
# Page and figure


def setting(seeds: int) -> str:
    source = " ".join(load("loans").description.split("\n\n")[0].split())
    return (
        f"{seeds} seeds; felicific {felicific.__version__}, scikit-learn {version('scikit-learn')}, "
        f"NumPy {version('numpy')}, Python {platform.python_version()}. Loans: {source}"
    )


def peers_setting(seeds: int, about: dict[str, Any]) -> str:
    versions = ", ".join(f"{peer} {facts['version']}" for peer, facts in about.items())
    refused = "; ".join(
        f"{peer} does not offer {', '.join(facts['refused'])}".replace("_", " ")
        for peer, facts in about.items()
        if facts["refused"]
    )
    return f"{versions}. {refused}.\n\n{setting(seeds)}"


def draw(records: list[Record], file: Path) -> None:
    """Accuracy of every policy on every data set, with paired standard errors, as SVG."""
    import altair as alt

    accent, quiet, ink = "#0072B2", "#8C8C8C", "#333333"
    scale = alt.Scale(domain=[76, 100], zero=False, nice=False)
    title = "accuracy on test, %"
    emphasis = alt.FieldOneOfPredicate("policy", list(DEPLOYED))
    colour = alt.condition(emphasis, alt.value(accent), alt.value(quiet))
    base = alt.Chart().encode(y=alt.Y("policy:N", title=None, sort=[UNCONSTRAINED, *LADDER]))
    at = alt.X("accuracy:Q", title=title, scale=scale)
    baseline = alt.Chart().mark_rule(strokeDash=[3, 3], color=quiet)
    baseline = baseline.encode(x=alt.X("mean(baseline):Q", title=title, scale=scale))
    bars = base.mark_rule(strokeWidth=2)
    bars = bars.encode(x=alt.X("low:Q", title=title, scale=scale), x2="high:Q", color=colour)
    dots = base.mark_circle(size=45, opacity=1).encode(x=at, color=colour)
    text = base.mark_text(dx=-9, align="right", fontSize=11, color=ink)
    text = text.encode(x=at, text=alt.Text("accuracy:Q", format=".1f"))
    header = alt.Header(title=None, labelFontSize=13, labelFontWeight="bold", labelColor=ink)
    chart = (
        alt.layer(baseline, bars, dots, text, data=alt.Data(values=figure_rows(records)))
        .properties(width=210, height=190)
        .facet(column=alt.Column("data:N", sort=list(LOADERS), header=header), spacing=22)
        .configure(background="white", font="sans-serif")
        .configure_view(stroke=None)
        .configure_axis(
            labelFontSize=12, titleFontSize=12, labelColor=ink, titleColor=ink, titleFontWeight="normal"
        )
        .configure_axisX(gridColor="#E6E6E6", tickCount=6, labelFlush=False, domain=False, ticks=False)
        .configure_axisY(domain=False, ticks=False, grid=False, labelPadding=8)
    )
    chart.save(str(file))


def figure_rows(records: list[Record]) -> list[Record]:
    rows = []
    for name in LOADERS:
        base = series(records, "accuracy", data=name, method=UNCONSTRAINED)
        for method in (UNCONSTRAINED, *LADDER):
            accuracy = 100 * series(records, "accuracy", data=name, method=method).mean()
            error = paired(100 * (series(records, "accuracy", data=name, method=method) - base))[1]
            rows.append(
                {
                    "data": name,
                    "policy": method,
                    "accuracy": accuracy,
                    "low": accuracy - error,
                    "high": accuracy + error,
                    "baseline": 100 * base.mean(),
                }
            )
    return rows


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--peer-seeds", type=int, default=4)
    parser.add_argument("--first-seed", type=int, default=0, help="of the comparison with peers")
    parser.add_argument("--only", choices=("ladder", "recalibrate", "blind", "peers"))
    parser.add_argument("--out", type=Path, default=EVIDENCE)
    parser.add_argument("--envs", type=Path, default=ROOT / ".venv-peers")
    return parser.parse_args()


def main() -> None:
    asked, start = arguments(), time.perf_counter()
    page = asked.out / "policies.md"
    print(load("loans").description.split("\n\n")[0])
    if asked.only in (None, "ladder"):
        found = ladder(asked.seeds)
        fill(page, "ladder", f"{ladder_table(found)}\n\n{setting(asked.seeds)}")
        draw(found, asked.out / "policies.svg")
    if asked.only in (None, "recalibrate"):
        found = recalibrate(asked.seeds)
        fill(page, "recalibrate", f"{recalibrate_table(found)}\n\n{setting(asked.seeds)}")
    if asked.only in (None, "blind"):
        fill(page, "blind", f"{blind_table(blind(asked.seeds))}\n\n{setting(asked.seeds)}")
    if asked.only in (None, "peers"):
        seeds = range(asked.first_seed, asked.first_seed + asked.peer_seeds)
        found, about = peers(seeds, asked.envs.resolve())
        fill(page, "peers", f"{methods_table(found)}\n\n{peers_setting(asked.peer_seeds, about)}")
        fill(page, "duels", f"{duel_table(found)}\n\n{duel_summary(found)}")
    print(f"{time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
