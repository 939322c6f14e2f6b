"""The paper's case studies, and one on delayed impact, from data to figures: ``felicific reproduce``."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from felicific._files import folder_whole
from felicific.exceptions import DataError
from felicific.studies._baseline import make_forest, split
from felicific.studies._paper import Settings

__all__ = ["STUDIES", "Settings", "make_forest", "reproduce", "split", "write_index"]

TITLES = {
    "synthetic": "Synthetic loans: equal funding",
    "adult": "Adult: a good income for few hours",
    "loans": "Financial risk for loan approval: what a loan is worth",
}
STUDIES = (*TITLES, "delayed")


def reproduce(
    name: str,
    out: str | os.PathLike[str],
    settings: Settings | None = None,
    *,
    force: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> Path | None:
    """Run a study and write its folder ``out/name``, whole or not at all.

    Start with its ``index.html``.

    Parameters
    ----------
    name : str
        One of ``STUDIES``.
    out : path
        Where the folder goes; made when it is not there.
    settings : Settings, optional
        Seeds, rows and where the loans are.
    force : bool
        Whether a folder that is there may be replaced.
    say : callable
        Called with what is being done.

    Returns
    -------
    Path or None
        The folder; None when there is one already, which is kept.
    """
    if name not in STUDIES:
        raise DataError(f"There is no study {name!r}.", f"Choose one of {', '.join(STUDIES)}.")
    for needed in ("pandas", "jinja2", "altair", "vl_convert"):
        if find_spec(needed) is None:
            raise DataError(
                f"The studies need {needed}, which is not installed.",
                "pip install 'felicific[app,report,plots]'.",
            )
    folder = Path(out) / name
    occupied = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    if occupied.exists() and not occupied.is_dir():
        raise DataError(f"{os.fspath(occupied)!r} is a file, not a folder.", "Give another folder as out.")
    if folder.exists() and not force:
        return None
    with folder_whole(folder) as room:
        if name == "delayed":
            _write_delayed(room, say)
        else:
            _write_paper(name, room, settings or Settings(), say)
    return folder


def write_index(out: str | os.PathLike[str]) -> Path | None:
    """Write ``out/index.html`` over the studies whose folders are in ``out``, when there are two or more.

    Returns
    -------
    Path or None
        The page; None when there is none, or a file of that name that is not such a page, which is kept.
    """
    from felicific.studies import _page  # needs jinja2

    return _page.write_index(Path(out), STUDIES)


def _write_paper(name: str, folder: Path, settings: Settings, say: Callable[[str], None]) -> None:
    from felicific.studies import _cost, _paper, _results
    from felicific.studies._figures import paper_figures
    from felicific.studies._tracks import METHODS, paper_csv, tracks_csv

    with _cost.measured() as cost:
        runs = [_paper.run(name, seed, settings, say) for seed in range(settings.seeds)]
        say(f"{name}: drawing")
        first = runs[0]
        for policy, suffix in (("soft-label", ""), ("score", "_score")):
            for part, short in (("test", "test"), ("validation", "val")):
                text = paper_csv([first.tracks[policy, part, method] for method in METHODS])
                (folder / f"acc_vs_happiness_delta_{short}{suffix}.csv").write_text(text, "utf-8")
        figures = paper_figures(first, folder)
        (folder / "frontiers.csv").write_text(tracks_csv(first.tracks, first.groups), "utf-8")
    results = _results.study_results(name, TITLES[name], runs, cost, settings)
    _write_results(folder, results | {"figures": figures}, _results.markdown)


def _write_delayed(folder: Path, say: Callable[[str], None]) -> None:
    from felicific.studies import _cost, _delayed, _delayed_results
    from felicific.studies._figures import delayed_figures

    with _cost.measured() as cost:
        lenders = _delayed.run(say)
        say("delayed: drawing")
        figures = delayed_figures(lenders, folder)
        (folder / "frontiers.csv").write_text(_delayed.frontiers_csv(lenders), "utf-8")
    results = _delayed_results.delayed_results(lenders, cost)
    _write_results(folder, results | {"figures": figures}, _delayed_results.delayed_markdown)


def _write_results(folder: Path, results: dict[str, Any], markdown: Callable[[dict[str, Any]], str]) -> None:
    """The results as data, as text, and as the page that is made of the data."""
    from felicific.studies._page import study_page

    (folder / "results.json").write_text(json.dumps(results, indent=2, allow_nan=False) + "\n", "utf-8")
    (folder / "results.md").write_text(markdown(results), "utf-8")
    (folder / "index.html").write_text(study_page(folder), "utf-8")
