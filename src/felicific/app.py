"""The command line: ``felicific demo``."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="felicific",
    help="What a classifier's decisions do to groups of people, and the cheapest way to bring them together.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def root() -> None:
    """What a classifier's decisions do to groups of people, and the cheapest way to bring them together."""


@app.command()
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

    from felicific.exceptions import FelicificError

    console = Console()
    start = time.perf_counter()
    try:
        with console.status("Simulating loans ...") as status:
            results = _run_demo(rows, seed, status.update)
    except FelicificError as error:
        console.print(f"felicific: {error}", style="red", markup=False)
        raise SystemExit(1) from None
    for part in results:
        console.print(part)
    console.print(f"Done in {time.perf_counter() - start:.1f} s.", style="dim")


def _run_demo(rows: int, seed: int, say: Any) -> list[Any]:
    """Compute everything the demonstration prints."""
    import numpy as np
    from rich.text import Text
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.frozen import FrozenEstimator
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    from felicific.classifier import FairClassifier
    from felicific.datasets import synthetic_loans

    data = synthetic_loans(rows, seed=seed)
    split: Any = {"random_state": seed}
    X, X_train, y, y_train = train_test_split(data.X, data.y, test_size=0.20, **split)
    X_test, X_val, y_test, y_val = train_test_split(X, y, test_size=0.16 / 0.80, **split)

    say(f"Training a random forest on {len(y_train):,} people ...")
    text = [name for name in data.X.columns if data.X[name].to_numpy().dtype == object]
    encoder = make_column_transformer((OneHotEncoder(), text), remainder="passthrough")
    forest = RandomForestClassifier(random_state=seed, n_jobs=-1)
    model = make_pipeline(encoder, forest).fit(X_train, y_train)

    say(f"Solving the linear program on {len(y_val):,} other people ...")
    settings: Any = {
        "happiness": data.happiness,
        "sensitive_features": data.sensitive_features,
        "random_state": seed,
    }
    today = FairClassifier(FrozenEstimator(model), gap=None, randomize=False, **settings)
    fair = FairClassifier(FrozenEstimator(model), gap=0.0, **settings)
    people = {"fitted on": (X_val, y_val), "new to it": (X_test, y_test)}
    measured = {}
    for name, (X_part, y_part) in people.items():
        if name == "fitted on":
            today.fit(X_part, y_part)
            fair.fit(X_part, y_part)
        say(f"Measuring {len(y_part):,} people {name} ...")
        measured[name] = {
            "today": _measure(today, X_part, y_part, np.eye(2)[model.predict(X_part)]),
            "repaired": _measure(fair, X_part, y_part, fair.predict_proba(X_part)),
        }
    unit = str(data.happiness.unit)
    intro = Text(
        f"{rows:,} simulated loan applications; women ask for 50,000 $ more for the same creditworthiness.\n"
        f"Happiness is {data.happiness.name}: the dollars a person is lent. A forest decides today;\n"
        "felicific changes its decisions as little as needed to bring the groups together (gap 0)."
    )
    return [intro, *(_table(name, part, unit) for name, part in measured.items()), _reading(fair, measured)]


def _measure(fair: Any, X: Any, y: Any, decisions: Any) -> dict[str, Any]:
    """Group means, gap and accuracy of some decisions on some people."""
    from felicific.fitting import People, Task, achieved
    from felicific.groups import resolve_groups
    from felicific.happiness import resolve_happiness

    components = resolve_happiness(fair.happiness, fair.classes_.tolist())
    task = Task(fair.classes_, components, "error", None, (), True, None)
    group = resolve_groups(X, fair.sensitive_features)
    outcome = achieved(task, People(X, y, group, decisions.argmax(axis=1)), decisions, fair.groups_)
    means = dict(zip(fair.groups_, outcome.means[:, 0].tolist(), strict=True))
    return {"n": len(y), "means": means, "gap": float(outcome.gaps[0]), "accuracy": 1 - outcome.loss}


def _table(name: str, measured: dict[str, dict[str, Any]], unit: str) -> Any:
    """Before and after, group by group."""
    from rich.table import Table

    before, after = measured["today"], measured["repaired"]
    table = Table(
        title=f"{before['n']:,} people the policy was {name}"
        if name == "fitted on"
        else f"{before['n']:,} people who are {name}",
        title_justify="left",
    )
    for column in ("", "today", "repaired", "change"):
        table.add_column(column, justify="left" if column == "" else "right")
    for group in before["means"]:
        old, new = before["means"][group], after["means"][group]
        table.add_row(
            f"mean funding, {group}", f"{old:,.0f} {unit}", f"{new:,.0f} {unit}", f"{new - old:+,.0f} {unit}"
        )
    table.add_section()
    change = after["gap"] - before["gap"]
    table.add_row(
        "gap", f"{before['gap']:,.0f} {unit}", f"{after['gap']:,.0f} {unit}", f"{change:+,.0f} {unit}"
    )
    points = 100 * (after["accuracy"] - before["accuracy"])
    table.add_row(
        "accuracy", f"{before['accuracy']:.2%}", f"{after['accuracy']:.2%}", f"{points:+.2f} points"
    )
    return table


def _reading(fair: Any, measured: dict[str, Any]) -> Any:
    from rich.text import Text

    gap = measured["new to it"]["repaired"]["gap"]
    lines = ["The policy:", *(f"  {sentence}" for sentence in fair.policy_.sentences())]
    lines.append(f"Decided by lottery: {fair.share_randomized_:.1%} of the people it was fitted on.")
    lines.append(
        f"The gap of {gap:,.0f} {fair.policy_.components[0].unit} on new people is sampling noise of the fit: "
        "the policy meets gap 0 exactly on the people it was fitted on."
    )
    return Text("\n".join(lines))
