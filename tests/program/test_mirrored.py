"""Gaps of which one is another's mirror: they need no linear program either."""

import numpy as np
import pytest
from plain import plain, solve_plainly

from felicific import aggregate, frontier
from felicific._problem.constraints import requirements_of
from felicific._problem.rows import rows_of
from felicific._program.model import build
from felicific._program.one_gap import one_gap
from felicific._program.solution import solve_program


def people(seed):
    rng = np.random.default_rng(seed)
    n = 300
    group, score = rng.integers(0, 4, n), rng.random(n).round(2)
    weight = rng.random(n) + 0.5 if seed % 2 else None
    options = {} if weight is None else {"sample_weight": weight, "weight_kind": "sampling"}
    return {
        "X": score[:, None], "score": score, "y": (rng.random(n) < score).astype(int), "sensitive_features": group,
    } | options  # fmt: skip


def summed(seed, happiness):
    asked = people(seed)
    return aggregate(asked.pop("X"), happiness=happiness, **asked).joined()


@pytest.mark.parametrize("seed", range(12))
def test_rates_of_both_decisions_are_one_gap(seed):
    """Parity of approvals and of refusals, with two widths: the smaller one decides, as in the plain program."""
    sums = summed(seed, "statistical_parity")
    names = [measure.name for measure in sums.measures]
    widths = np.random.default_rng(seed).random(2) * 0.1
    asked = requirements_of(dict(zip(names, widths, strict=True)), (), sums.measures)
    program = build(sums, rows_of(asked, sums))
    assert one_gap(program, program.rows) is not None
    found, known = solve_program(sums, asked), solve_plainly(sums, asked)
    assert found.outcome.loss == pytest.approx(known.outcome.loss, abs=1e-10)
    assert sum(found.prices.values()) == pytest.approx(sum(known.prices.values()), abs=1e-7)
    assert found.prices[names[int(widths.argmax())]] == 0.0
    line, plainly = frontier(sums), plain(lambda: (other := frontier(sums), len(other))[0])
    assert line.value == pytest.approx(np.interp(line.tau, plainly.tau, plainly.value), abs=1e-9)


def test_others_are_not():
    """Two rates that look alike but count other people, and a rate beside an amount, are two gaps."""
    for happiness in (
        "equalized_odds",
        {"rate": lambda decision: decision, "amount": lambda decision, x: decision * x[:, 0]},
    ):
        sums = summed(0, happiness)
        asked = requirements_of(0.01, (), sums.measures)
        program = build(sums, rows_of(asked, sums))
        assert one_gap(program, program.rows) is None
