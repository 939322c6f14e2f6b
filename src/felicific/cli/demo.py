"""``felicific demo``: the paper's loans, from data to a repaired classifier and a report."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from felicific.cli.options import Forced, output_option, plain_option

if TYPE_CHECKING:
    from felicific import FairClassifier, Happiness
    from felicific._audit.result import Interval
    from felicific._report.document import Report
    from felicific._typing import Array


@dataclass(frozen=True, kw_only=True)
class DemoOptions(Forced):
    """What ``felicific demo`` is told."""

    rows: Annotated[int, plain_option("NUMBER", "People to simulate.", min=1_000)] = 48_842
    seed: Annotated[
        int, plain_option("NUMBER", "Seed of the simulation, the forest and the lottery.", min=0)
    ] = 0
    out: Annotated[Path, output_option("FILE", "Where the report is written.")] = Path("felicific-demo.html")


def demo(options: DemoOptions) -> None:
    """Simulate the paper's loans, train a forest, audit it, repair it at gap 0, say who gains and who loses, report.

    Example: felicific demo --rows 20000
    """
    from rich.console import Console

    console = Console(highlight=False)
    start = time.perf_counter()
    with console.status("Simulating loans ...") as status:
        loans = _run(options.rows, options.seed, status.update)
        status.update("Writing the report ...")
        page = _page(loans)
        written = _written(page, options.out, options.force)
    parts = (_introduction, _before_after, _points, _who, _trade_off, _reading)
    for part in parts:
        console.print(part(loans))
    console.print(f"The verdict on these {len(loans.y):,} people:", markup=False)
    console.print(f"{page}\n", markup=False)
    console.print(written, markup=False, soft_wrap=True)
    console.print(f"Done in {time.perf_counter() - start:.1f} s.", style="dim")


@dataclass(frozen=True)
class _Loans:
    """Everything the demonstration shows: the classifier, the people it has never seen, and what is done to them.

    ``giving`` is the same classifier that makes nobody worse off, ``again`` that which is recalibrated.
    """

    rows: int
    fair: Any
    giving: Any
    again: Any
    X: Any
    y: Any
    audits: dict[str, Any]
    steered: tuple[float, float]


def _run(rows: int, seed: int, say: Callable[[str], None]) -> _Loans:
    from sklearn.base import clone
    from sklearn.frozen import FrozenEstimator
    from sklearn.model_selection import train_test_split

    from felicific._audit.audit import audit
    from felicific._problem.worse_off import WorseOff
    from felicific._sklearn.classifier import FairClassifier
    from felicific.datasets import synthetic_loans

    data = synthetic_loans(rows, seed=seed)
    X, X_train, y, y_train = train_test_split(data.X, data.y, test_size=0.20, random_state=seed)
    X_test, X_val, y_test, y_val = train_test_split(X, y, test_size=0.5, random_state=seed)
    say(f"Training a random forest on {len(y_train):,} people ...")
    model = _forest(X_train, seed).fit(X_train, y_train)
    say(f"Solving the linear program on {len(y_val):,} other people ...")
    asked: dict[str, Any] = {"happiness": data.happiness, "sensitive_features": data.sensitive_features}
    fair = FairClassifier(FrozenEstimator(model), gap=0.0, random_state=seed, **asked).fit(X_val, y_val)
    giving = clone(fair).set_params(constraints=[WorseOff(0)]).fit(X_val, y_val)
    say(f"Recalibrating on {len(y_test):,} people without their labels ...")
    again = fair.recalibrate(X_test)
    say(f"Steering while {len(y_test):,} people are decided on, one after another ...")
    steered = _steer(fair, data.happiness, X_test, y_test)
    say("Auditing ...")
    audits = {
        "baseline": audit(model.predict(X_test), X_test, y_test, **asked),
        "repaired": audit(fair, X_test, y_test),
        "nobody worse off": audit(giving, X_test, y_test),
        "recalibrated": audit(again, X_test, y_test),
    }
    return _Loans(rows, fair, giving, again, X_test, y_test, audits, steered)


def _forest(X: Any, seed: int) -> Any:
    """One-hot encoding and a random forest; in one thread, so that every run gives the same scores to the last bit."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    text = [name for name in X.columns if X[name].to_numpy().dtype == object]
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), text), remainder="passthrough")
    return make_pipeline(encoder, RandomForestClassifier(random_state=seed, n_jobs=1))


def _steer(fair: FairClassifier, happiness: Happiness, X: Any, y: Array) -> tuple[float, float]:
    """The gap and the accuracy that steering leaves."""
    import numpy as np

    steering = fair.policy_.steer(happiness=happiness)
    scores = fair.estimator_.predict_proba(X)[:, 1]
    decisions = steering.decide(scores, X["sex"], X.index.to_numpy(), X)
    return steering.gap, float(np.mean(decisions == np.asarray(y)))


def _page(loans: _Loans) -> Report:
    """The report on people whom the policy has not seen."""
    from felicific._problem.happiness import Happiness
    from felicific.cli.outputs import command_line

    page: Report = loans.fair.report(
        loans.X,
        loans.y,
        title="Loans by sex",
        period="simulated",
        names={0: "declined", 1: "approved"},
        labels="all",
        also={
            "approved": "decision == 1",
            "decided rightly": "decision == y",
            "approved among those who repay": Happiness("decision == 1", among="y == 1"),
        },
        command=command_line(),
    )
    return page


def _written(page: Report, out: Path, force: bool) -> str:
    """Write the page, unless there is one or what makes it is missing; say what was done."""
    if out.exists() and not force:
        return f"{out} is there already and is kept; --force replaces it."
    try:
        page.save(out)
    except ModuleNotFoundError as error:
        return f"The page needs {error.name}: pip install 'felicific[report]'."
    return f"The report for the person who signs: {out}"


# ---------------------------------------------------------------------------------------------------------
# What is printed


def _introduction(loans: _Loans) -> Any:
    from rich.text import Text

    return Text(
        f"{loans.rows:,} simulated loan applications. Women ask for $50,000 more than men who are as creditworthy. "
        "Happiness is the dollars a person is lent. A random forest decides; felicific changes its "
        "decisions as little as needed to bring the groups together.\n"
    )


def _before_after(loans: _Loans) -> Any:
    """One column per way of deciding, one row per number with its interval."""
    from rich.table import Table

    part = loans.audits["baseline"].measures[0]
    dollars = part.measure
    title = f"{len(loans.y):,} people whom the repaired policy has not seen, with 95 % intervals"
    table = Table("", title=title, title_justify="left", title_style="bold")
    for way in loans.audits:
        table.add_column(way, justify="right")

    def interval(number: Interval) -> str:
        estimate, low, high = (
            dollars.cell(round(part)) for part in (number.estimate, number.low, number.high)
        )
        return f"{estimate}\n({low} to {high})"

    parts = [audit.measures[0] for audit in loans.audits.values()]
    for group in part.means:
        table.add_row(f"mean {dollars.name}, {group}", *(interval(p.means[group]) for p in parts))
    table.add_section()
    table.add_row("gap", *(interval(p.gap) for p in parts))
    table.add_row("accuracy", *(f"{1 - audit.loss.estimate:.2%}" for audit in loans.audits.values()))
    return table


def _points(loans: _Loans) -> Any:
    """Three points: the baseline, tuned, and with requirements; beside them the policy that makes nobody worse off."""
    from rich.table import Table

    fair, dollars = loans.fair, loans.fair.policy_.measures[0]
    title = "What tuning does and what fairness does,\non the fitted people"
    table = Table("", title=title, title_justify="left", title_style="bold")
    points = {**fair.impact_, "nobody worse off": loans.giving.impact_["proposed"]}
    for name in points:
        table.add_column(name, justify="right")
    table.add_row("accuracy", *(f"{1 - point.loss:.2%}" for point in points.values()))
    table.add_row("gap", *(dollars.cell(round(float(point.gaps[0]))) for point in points.values()))
    for what, name in (("gains", "gain"), ("loses", "lose")):
        for z, group in enumerate(fair.policy_.groups):
            shares = (f"{getattr(point, what)[z, 0]:.2%}" for point in points.values())
            table.add_row(f"{name}, {group}", *shares)
    return table


def _who(loans: _Loans) -> Any:
    """Whether the policy levels down, in words; and what it costs to make nobody worse off."""
    from rich.text import Text

    fair, giving = loans.fair, loans.giving
    baseline, proposed = fair.impact_["baseline"], fair.impact_["proposed"]
    dollars, groups = fair.policy_.measures[0], fair.policy_.groups
    change = (proposed.means - baseline.means)[:, 0].round().tolist()
    each = ", ".join(
        f"{dollars.cell(abs(by))} {'more' if by > 0 else 'less'} for {group}"
        if by
        else f"the same for {group}"
        for group, by in zip(groups, change, strict=True)
    )
    gives = any(by > 0 for by in change)
    price = 100 * (giving.loss_ - fair.loss_)
    words = (
        f"The repair {'gives and takes' if gives else 'levels down'}: on average {each}, compared with the model's "
        "decisions. Beside it "
        "stands the policy that closes the gap and makes nobody worse off, WorseOff(0): on the fitted people it costs "
        + (
            f"{price:.2f} points of accuracy more.\n"
            if price >= 0
            else "nothing more, and changes more people.\n"
        )
    )
    return Text(words)


def _trade_off(loans: _Loans) -> Any:
    """What a smaller gap costs, on the people the policy was fitted on."""
    from rich.table import Table

    line = loans.fair.frontier_
    largest, dollars = float(line.gaps[-1, 0]), line.measures[0]
    table = Table(
        "allowed gap", title="What closing the gap costs,\non the fitted people", title_justify="left",
        title_style="bold",
    )  # fmt: skip
    table.add_column("accuracy", justify="right")
    table.add_column("change", justify="right")
    free = line.loss[-1]
    for share in (1.0, 0.5, 0.25, 0.0):
        loss = line.at(gap=share * largest).loss
        allowed = dollars.cell(round(share * largest))
        table.add_row(allowed, f"{1 - loss:.2%}", f"{100 * (free - loss):+.3f} points")
    return table


def _reading(loans: _Loans) -> Any:
    from rich.text import Text

    fair, again = loans.fair, loans.again
    parts = {way: audit.measures[0] for way, audit in loans.audits.items()}
    gap = {way: part.measure.cell(round(part.gap.estimate)) for way, part in parts.items()}
    lines = ["The policy, as fitted:", *(f"- {sentence}" for sentence in fair.policy_.sentences(digits=4))]
    lines.append(f"- Decided by lottery: {fair.share_randomized_:.2%} of these people.")
    lines.append("")
    lines.append(
        "On the people it was fitted on the gap is 0. On people it has never seen it is "
        f"{gap['repaired']}: sampling noise, in the fit and among them. Recalibrated on them, which needs no "
        f"labels, it is {gap['recalibrated']} in expectation over the lottery "
        f"({again.share_randomized_:.2%} of them face one): the intervals of that column "
        "do not speak of other people, those of the others do."
    )
    left, right = loans.steered
    lines.append(
        "Steered while they are decided on, one after another and without knowing who comes next, it would have "
        f"been {parts['baseline'].measure.cell(round(left))}, at an accuracy of {right:.2%} (policy.steer).\n"
    )
    return Text("\n".join(lines))
