"""Precision parity on Adult: what it costs, alone and with equalized odds, and what the search takes.

    python benchmarks/precision.py

Fills its blocks of docs/evidence/policies.md. The model does not see sex; policies see 256 bins of its score.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from shared import EVIDENCE, fill, machine, table
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.preprocessing import OrdinalEncoder

from felicific import aggregate
from felicific._problem.constraints import requirements_of
from felicific._program.aggregates import Aggregates
from felicific._program.fractions import TOLERANCE, exchanged, fraction_level
from felicific._program.master import solve_rows
from felicific._program.solution import linear_rows, solve_program, written_program
from felicific.datasets import adult
from felicific.exceptions import InfeasibleError

PRECISION, ODDS = "precision_parity", "equalized_odds"
CASES: dict[str, dict[str, float]] = {
    "nothing": {},
    "precision 0": {PRECISION: 0.0},
    "precision .01": {PRECISION: 0.01},
    "equalized odds .05": {ODDS: 0.05},
    "precision .03, equalized odds .05": {PRECISION: 0.03, ODDS: 0.05},
}
#: Levels of the grid that the search is compared with.
GRID = 137
#: Half-widths of the finite differences, and tolerance of the search for them.
STEP, FINE = 1e-4, 1e-7


@dataclass(frozen=True)
class Row:
    """What was found for some gaps."""

    loss: float
    programs: int
    seconds: float
    left: float
    grid: float | None


def people() -> dict[str, np.ndarray]:
    """Scores of 17,095 people by a model that was fitted on 14,652 others and does not see sex."""
    data = adult(as_frame="pandas")
    features = data.X.drop(columns=["sex"])
    text = [name for name in features if features[name].dtype.kind not in "if"]
    features[text] = OrdinalEncoder().fit_transform(features[text])
    n = len(data.y)
    order = np.random.default_rng(0).permutation(n)
    fitted, kept = order[: int(0.3 * n)], order[int(0.3 * n) : int(0.65 * n)]
    model = HistGradientBoostingClassifier(random_state=0)
    model.fit(features.to_numpy()[fitted], data.y[fitted])
    return {
        "score": model.predict_proba(features.to_numpy()[kept])[:, 1],
        "y": data.y[kept],
        "sex": data.X["sex"].to_numpy()[kept],
    }


def grid(sums: Aggregates, gaps: dict[str, float]) -> float | None:
    """The least loss at some levels, each a program of its own."""
    program, rows = written_program(sums, requirements_of(gaps, (), sums.measures))
    free = fraction_level(rows)
    if free is None:
        return None
    losses = []
    for level in np.linspace(0.0, 1.0, GRID):
        answer = solve_rows(program, linear_rows(exchanged(rows, free, free.between(level, level))))
        if answer is not None:
            losses.append(answer.value)
    return min(losses)


def measure(sums: Aggregates, gaps: dict[str, float], tolerance: float = TOLERANCE) -> Row:
    """Solve, and count."""
    asked = requirements_of(gaps, (), sums.measures)
    start = time.process_time()
    found = solve_program(sums, asked, tolerance=tolerance)
    seconds = time.process_time() - start
    programs, left = 1, 0.0
    if found.level is not None:
        programs, left = found.level.programs + 1, found.outcome.loss - found.level.bound
    return Row(found.outcome.loss, programs, seconds, left, grid(sums, gaps))


def price(sums: Aggregates, gaps: dict[str, float]) -> tuple[float, float, float]:
    """The price of precision parity, and the slopes of the loss on both sides by finite differences."""

    def solved(width: float) -> tuple[float, float]:
        asked = requirements_of(gaps | {PRECISION: width}, (), sums.measures)
        found = solve_program(sums, asked, tolerance=FINE)
        return found.outcome.loss, found.prices[PRECISION]

    width = gaps[PRECISION]
    (here, found), less, more = solved(width), solved(width - STEP)[0], solved(width + STEP)[0]
    return found, (less - here) / STEP, (here - more) / STEP


def main() -> None:
    """Measure, and fill the page."""
    roles = {"score": "score", "y": "y", "sensitive_features": "sex"}
    sums = aggregate(people(), happiness=[PRECISION, ODDS], **roles).joined()
    rows = []
    for name, gaps in CASES.items():
        try:
            found = measure(sums, gaps)
        except InfeasibleError as error:
            print(name, error)
            continue
        by_grid = "" if found.grid is None else f"{found.grid:.6f}"
        cells = [name, f"{found.loss:.6f}", by_grid, f"{found.left:.1e}", str(found.programs)]
        rows.append([*cells, f"{found.seconds:.2f}"])
    head = ["gaps asked for", "loss", f"loss by {GRID} levels", "loss not ruled out", "programs", "seconds"]
    fill(EVIDENCE / "policies.md", "precision", table(head, rows))
    rows = []
    for width in (0.005, 0.01, 0.02, 0.03):
        numbers = price(sums, {PRECISION: width, ODDS: 0.05})
        rows.append([f"{width:g}", *(f"{number:.6f}" for number in numbers)])
    head = ["gap of precision", "price", "slope below", "slope above"]
    fill(EVIDENCE / "policies.md", "price of precision", table(head, rows))
    print(machine())


if __name__ == "__main__":
    main()
