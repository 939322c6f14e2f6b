"""The figures of a study as files, and what the pages say about each of them.

Every figure is one SVG and one PNG. Its panels are there again one by one, without title and notes: a page sets them
side by side or below each other, as there is room, and writes those itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from felicific.plots import save
from felicific.studies import _charts
from felicific.studies._delayed import Credit
from felicific.studies._paper import Run

#: The folder of the single panels, in that of the study.
PANELS = "panels"


def paper_figures(run: Run, folder: Path) -> list[dict[str, Any]]:
    """Accuracy against the gap, for the paper's policy and for ours."""
    found = []
    for policy, suffix, whose in (
        ("soft-label", "", "the paper's policy"),
        ("score", "_score", "our policy"),
    ):
        panels = {
            _charts.people_of(run, part): panel
            for part, panel in _charts.trade_off_panels(run, policy, _charts.ALONE).items()
        }
        title = f"Gap in {run.data.happiness.name} against accuracy, {whose} ({policy})"
        stem = f"acc_vs_happiness_delta{suffix}"
        found.append(_drawn(folder, stem, _charts.trade_off(run, policy), panels, title, _charts.NOTE))
    return found


def delayed_figures(lenders: Sequence[Credit], folder: Path) -> list[dict[str, Any]]:
    """Changes of the credit score and the lender's profit, for every lender."""
    found = []
    for credit in lenders:
        stem, when = f"default_costs_{credit.ratio:g}", f"a default costs {credit.ratio:g} repaid loans"
        changes = {title: _charts.change_panel(credit, name, _charts.ALONE) for name, title in _charts.SHOWN}
        found += [
            _drawn(
                folder,
                f"change_{stem}",
                _charts.delayed_change(credit),
                changes,
                f"Change of credit scores; {when}",
                _charts.change_note(credit),
            ),
            _drawn(
                folder,
                f"profit_{stem}",
                _charts.delayed_profit(credit),
                {"": _charts.profit_panel(credit, _charts.ALONE)},
                f"Profit of the lender; {when}",
                _charts.PROFIT_NOTE,
            ),
        ]
    return found


def _drawn(
    folder: Path, stem: str, chart: Any, panels: Mapping[str, Any], title: str, note: Sequence[str]
) -> dict[str, Any]:
    """Write a figure and its panels; the files, and the words for them."""
    (folder / PANELS).mkdir(exist_ok=True)
    for kind in ("svg", "png"):
        save(chart, folder / f"{stem}.{kind}")
    files = []
    for position, (name, panel) in enumerate(panels.items(), 1):
        files.append({"file": f"{PANELS}/{stem}_{position}.svg", "title": name})
        save(_charts.alone(panel), folder / files[-1]["file"])
    return {"file": f"{stem}.svg", "title": title, "note": list(note), "panels": files}
