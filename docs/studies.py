"""Make the tables and figures of docs/studies.md: python docs/studies.py (needs the extras app, report and plots).

Runs every study with five seeds (the loans from the public file when FELICIFIC_LOANS names it), puts the tables between
the markers of the page, and the figures of the first seed into docs/studies/.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

from felicific.studies import STUDIES, Settings, reproduce

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "benchmarks"))

from policies import fill  # noqa: E402  # the one function that fills a page's blocks

SEEDS = 5
FIGURES = {
    "acc_vs_happiness_delta.svg": "{}.svg",
    "acc_vs_happiness_delta_score.svg": "{}_score.svg",
    "change_default_costs_4.svg": "{}_4.svg",
    "change_default_costs_10.svg": "{}_10.svg",
    "profit_default_costs_4.svg": "{}_profit_4.svg",
}


def tables(page: str) -> str:
    """The sections of a results page that hold tables, one heading lower."""
    found = re.search(r"^## (Beside|A default).*?(?=^## What was assumed)", page, re.DOTALL | re.MULTILINE)
    assert found is not None
    cost = page.split("## Cost\n\n")[1]
    return re.sub(r"^## ", "### ", found[0], flags=re.MULTILINE) + cost.strip()


def main() -> None:
    """Run the studies and fill the page."""
    with tempfile.TemporaryDirectory() as room:
        for name in STUDIES:
            folder = reproduce(name, room, Settings(seeds=SEEDS), say=print)
            assert folder is not None
            fill(HERE / "studies.md", name, "\n" + tables((folder / "results.md").read_text("utf-8")) + "\n")
            (HERE / "studies").mkdir(exist_ok=True)
            for source, target in FIGURES.items():
                if (folder / source).exists():
                    shutil.copyfile(folder / source, HERE / "studies" / target.format(name))


if __name__ == "__main__":
    main()
