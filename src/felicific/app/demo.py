"""``felicific demo``: the paper's loans, from data to a repaired classifier."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer


def demo(
    rows: Annotated[int, typer.Option(min=1_000, help="People to simulate.")] = 48_842,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulation, the forest and the lottery.")] = 0,
) -> None:
    """Simulate the paper's loans, train a forest, audit it, repair it at gap 0, compare.

    Example: felicific demo --rows 20000
    """
    _demo(rows, seed)


def _demo(rows: int, seed: int) -> None:
    """Run the demonstration and print it."""
    from rich.console import Console

    console = Console()
    start = time.perf_counter()
    with console.status("Simulating loans ...") as status:
        results = _run_demo(rows, seed, status.update)
    for part in results:
        console.print(part)
    console.print(f"Done in {time.perf_counter() - start:.1f} s.", style="dim")


def _run_demo(rows: int, seed: int, say: Any) -> list[Any]:
    """Compute everything the demonstration prints."""
    import numpy as np
    from rich.text import Text
    from sklearn.frozen import FrozenEstimator
    from sklearn.model_selection import train_test_split

    from felicific.classifier import FairClassifier
    from felicific.datasets import synthetic_loans
    from felicific.studies import make_forest

    data = synthetic_loans(rows, seed=seed)
    X, X_train, y, y_train = train_test_split(data.X, data.y, test_size=0.20, random_state=seed)
    X_test, X_val, y_test, y_val = train_test_split(X, y, test_size=0.5, random_state=seed)
    say(f"Training a random forest on {len(y_train):,} people ...")
    model = make_forest(X_train, seed).fit(X_train, y_train)
    say(f"Solving the linear program on {len(y_val):,} other people ...")
    fair = FairClassifier(
        FrozenEstimator(model),
        happiness=data.happiness,
        gap=0.0,
        sensitive_features=data.sensitive_features,
        random_state=seed,
    ).fit(X_val, y_val)
    say(f"Recalibrating on {len(y_test):,} people without their labels ...")
    again = fair.recalibrate(X_test)
    say("Measuring ...")
    fitted = {
        "today": _measure(fair, X_val, y_val, np.eye(2)[model.predict(X_val)]),
        "repaired": _measure(fair, X_val, y_val, fair.predict_proba(X_val)),
    }
    new = {
        "today": _measure(fair, X_test, y_test, np.eye(2)[model.predict(X_test)]),
        "repaired": _measure(fair, X_test, y_test, fair.predict_proba(X_test)),
        "recalibrated": _measure(fair, X_test, y_test, again.predict_proba(X_test)),
    }
    return [
        Text(
            f"{rows:,} simulated loan applications. Women ask for 50,000 $ more than men who are as creditworthy. "
            "Happiness is the dollars a person is lent. A random forest decides today; felicific changes its "
            "decisions as little as needed to bring the groups together (gap 0).\n"
        ),
        _table(f"{len(y_val):,} people the policy was fitted on", fitted),
        _table(f"{len(y_test):,} people it has never seen", new),
        _reading(fair, again, new),
    ]


def _measure(fair: Any, X: Any, y: Any, decisions: Any) -> dict[str, str]:
    """Group means, gap and accuracy of some decisions on some people, as text."""
    from felicific.fitting import People, Task, achieved
    from felicific.groups import resolve_groups
    from felicific.happiness import resolve_happiness

    components = resolve_happiness(fair.happiness, fair.classes_.tolist())
    task = Task(fair.classes_, components, "error", None, (), True, "")
    group = resolve_groups(X, fair.sensitive_features)
    outcome = achieved(task, People(X, y, group, decisions.argmax(axis=1)), decisions, fair.groups_)
    unit = components[0].unit
    means = zip(fair.groups_, outcome.means[:, 0].tolist(), strict=True)
    found = {f"mean funding, {group}": f"{mean:,.0f} {unit}" for group, mean in means}
    return found | {"gap": f"{outcome.gaps[0]:,.0f} {unit}", "accuracy": f"{1 - outcome.loss:.2%}"}


def _table(title: str, measured: dict[str, dict[str, str]]) -> Any:
    """One column per way of deciding, one row per number."""
    from rich.table import Table

    table = Table("", title=title, title_justify="left", title_style="bold")
    for column in measured:
        table.add_column(column, justify="right")
    for name in measured["today"]:
        if name == "gap":
            table.add_section()
        table.add_row(name, *(numbers[name] for numbers in measured.values()))
    return table


def _reading(fair: Any, again: Any, new: dict[str, dict[str, str]]) -> Any:
    from rich.text import Text

    lines = ["The policy, as fitted:", *(f"- {sentence}" for sentence in fair.policy_.sentences())]
    lines.append(f"- Decided by lottery: {fair.share_randomized_:.2%} of these people.")
    lines.append("")
    lines.append(
        "On the people it was fitted on the gap is 0. On people it has never seen it is "
        f"{new['repaired']['gap']}: sampling noise, in the fit and among them. Recalibrated on them, which needs no "
        f"labels, it is {new['recalibrated']['gap']} in expectation over the lottery "
        f"({again.share_randomized_:.2%} of them face one)."
    )
    return Text("\n".join(lines))
