"""Scripts in examples/ do what their first lines say."""

import runpy
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_lending_by_rounds_learns_about_the_refused(capsys):
    """Fits without the refused, or that suppose too much, state a gap that is far from true; exploring ones do not."""
    rounds = runpy.run_path(str(EXAMPLES / "lending_rounds.py"))["main"](n=4_000, fresh=20_000)
    assert (rounds["stated gap"] <= 0.02 + 1e-9).all()
    last = rounds[rounds["round"] == 4].set_index("way")
    assert (last.loc[["left out", "at_random"], "true gap"] > 0.15).all()
    assert (
        last.loc[["left out", "at_random"], "true gap"] > 3 * last.loc[["left out", "at_random"], "to expect"]
    ).all()
    explored = last.loc["Exploration(.02)"]
    assert abs(explored["true gap"]) < 0.06
    assert abs(explored["stated loss"] - explored["true loss"]) < 0.02
    assert "Exploration(.02)" in capsys.readouterr().out
