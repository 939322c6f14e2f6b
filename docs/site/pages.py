"""Pages that are written from the code before the site is built: every public name, every result, every command.

A public name without a room in ``ROOMS``, or without a docstring, ends the build.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from reference import MEMBERS, RESULTS, first_line
from sphinx.errors import ExtensionError

import felicific

#: Public names by what they are for.
ROOMS: Mapping[str, tuple[str, ...]] = {
    "Repair decisions": ("FairClassifier", "FairRegressor", "solve", "frontier", "alternatives", "Policy"),
    "Measure decisions": ("audit", "compare", "monitor"),
    "Say what makes people happy": ("Happiness",),
    "Say what must hold": ("Gap", "Ratio", "Floor", "Budget", "WorseOff", "Exploration", "MissingLabels"),
    "Say what a policy sees": ("Score", "Individual"),
    "Add up people": ("aggregate",),
    "Read files": ("load",),
    "Plan": ("sample_size",),
    "Errors": ("FelicificError",),
}

#: Public modules, whose names are on one page each.
MODULES: Mapping[str, str] = {
    "datasets": "Data to try it on",
    "sklearn": "Model selection by scikit-learn",
    "plots": "Charts",
    "mlflow": "Models in a registry",
    "skops": "Types for skops",
    "exceptions": "Errors",
}

#: Pages that live in the folder above.
ABOVE = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}

#: Links to files of code.
CODE = re.compile(r"\[([^]]*)\]\((?:src|tests|benchmarks|examples|\.ci)/[^)]*\)")

#: Examples in the order in which they are best read.
EXAMPLES = (
    "first_repair.py", "whole_trade_off.py", "take_from_nobody.py", "refer_to_a_person.py", "one_decision.py",
    "without_probabilities.py", "audit_counts.py", "lending_rounds.py", "three_sites.py",
)  # fmt: skip


def order_of_examples(name: str) -> int:
    """Where an example stands in the gallery."""
    return EXAMPLES.index(name)


def picture(block: Any, names: dict[str, Any], settings: dict[str, Any]) -> str:
    """Draw the chart that a block of an example ends with, or calls ``chart``, for the gallery."""
    from sphinx_gallery.scrapers import figure_rst

    from felicific import plots

    values = names["example_globals"]
    for name in ("___", "chart"):
        if type(values.get(name)).__module__.startswith(("altair", "felicific.plots")):
            chart, values[name] = values[name], None  # once
            break
    else:
        return ""
    path = Path(next(names["image_path_iterator"]))
    plots.save(chart, path)
    return figure_rst([str(path)], settings["src_dir"], "A chart: what it shows is said around it")


def write_pages(app: Any) -> None:
    """Write reference pages; those of names that are gone go too."""
    pages = dict(all_pages())
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def all_pages() -> Iterator[tuple[str, str]]:
    """Every page with its name."""
    placed = [name for names in ROOMS.values() for name in names]
    if sorted(placed) != sorted(felicific.__all__):
        odd = set(placed) ^ set(felicific.__all__)
        raise ExtensionError(f"docs/site/pages.py and felicific.__all__ differ: {sorted(odd)}.")
    for name in placed:
        yield f"felicific.{name}.rst", page_of(getattr(felicific, name), "felicific", name)
    for place in RESULTS:
        module, _, name = place.rpartition(".")
        found = getattr(import_module(f"felicific.{module}"), name)
        yield f"{name}.rst", page_of(found, f"felicific.{module}", name)
    for module, title in MODULES.items():
        yield f"{module}.rst", module_page(module, title)
    yield "shell.rst", commands_page()
    yield "index.rst", index_page()


def page_of(value: Any, module: str, name: str) -> str:
    """The page of one class or function."""
    if not value.__doc__:
        raise ExtensionError(f"{module}.{name} has no docstring, so no page of the reference.")
    directive = f".. autofunction:: {name}\n"
    if inspect.isclass(value):
        shown = MEMBERS.get(name)
        lost = [member for member in shown or () if not inspect.getdoc(getattr(value, member, None))]
        if lost:
            raise ExtensionError(f"{name} has no {', '.join(lost)}, or without a docstring.")
        members = "" if shown == () else f"   :members: {', '.join(shown or ())}\n"
        directive = f".. autoclass:: {name}\n{members}"
    return f"{heading(name)}\n.. currentmodule:: {module}\n\n{directive}"


def module_page(module: str, title: str) -> str:
    """All names of a public module, on one page."""
    found = import_module(f"felicific.{module}")
    names = getattr(found, "__all__", None) or [
        name
        for name, value in vars(found).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == found.__name__
        and (inspect.isclass(value) or inspect.isfunction(value))
    ]  # fmt: skip
    text = f"{heading(f'felicific.{module}')}\n{title}. {first_line(found)}\n\n"
    text += f".. currentmodule:: felicific.{module}\n\n"
    for name in names:
        value = getattr(found, name)
        if not inspect.getdoc(value):
            raise ExtensionError(f"felicific.{module}.{name} has no docstring.")
        kind = "autoclass" if inspect.isclass(value) else "autofunction" if callable(value) else "autodata"
        again = (
            "   :no-index:\n" if name in felicific.__all__ or f"datasets._dataset.{name}" in RESULTS else ""
        )
        text += f".. {kind}:: {name}\n{again}\n"
    return text


def commands_page() -> str:
    """What every command answers to ``--help``."""
    from typer.testing import CliRunner

    from felicific.cli import app as commands

    def answer(*words: str) -> str:
        environment = {"COLUMNS": "80", "TERMINAL_WIDTH": "80", "NO_COLOR": "1", "TERM": "dumb"}
        said = CliRunner().invoke(commands, [*words, "--help"], env=environment, prog_name="felicific")
        assert said.exit_code == 0, said.output
        lines = "\n".join(f"   {line.rstrip()}" for line in said.output.strip("\n").splitlines())
        return f".. code-block:: text\n\n{lines}\n\n"

    text = f"{heading('Every command')}\n:doc:`How to do the whole job on the command line <../howto-shell>`.\n\n"
    text += answer()
    for command in commands.registered_commands:
        name = command.name or str(command.callback.__name__).replace("_", "-")
        text += heading(f"felicific {name}", "-") + "\n" + answer(name)
    return text


def index_page() -> str:
    """The list of all reference pages."""
    text = f"{heading('Reference')}\nOne page each, written from the docstrings, with examples that the tests run.\n\n"
    text += ":doc:`Criteria, and what goes with what <../reference>`.\n\n"
    text += toctree(["What goes with what <../reference>"])
    for room, names in ROOMS.items():
        rows = [(f":obj:`{name} <felicific.{name}>`", first_line(getattr(felicific, name))) for name in names]
        text += heading(room, "-") + "\n" + table(rows) + toctree(f"felicific.{name}" for name in names)
    rows = []
    for place, origin in RESULTS.items():
        name = place.rpartition(".")[2]
        rows.append((f":doc:`{name}`", f"from {origin}"))
    text += heading("Results: returned, not imported", "-") + "\n" + table(rows)
    text += toctree(place.rpartition(".")[2] for place in RESULTS)
    rows = [(f":doc:`felicific.{name} <{name}>`", f"{title}.") for name, title in MODULES.items()]
    rows.append((":doc:`felicific on the command line <shell>`", "Every command and its options."))
    text += heading("Modules and the command line", "-") + "\n" + table(rows) + toctree([*MODULES, "shell"])
    return text


def heading(text: str, line: str = "=") -> str:
    """A title with its underline."""
    return f"{text}\n{line * len(text)}\n"


def table(rows: list[tuple[str, str]]) -> str:
    """Two columns; words set as code in Markdown are so in reStructuredText."""
    text = ".. list-table::\n   :widths: 30 70\n\n"
    for name, words in rows:
        coded = words.replace("`", "``").replace("\\|", "|")
        text += f"   * - {name}\n     - {coded}\n"
    return text + "\n"


def toctree(names: Any) -> str:
    """What stands in the bar at the side."""
    return ".. toctree::\n   :hidden:\n\n" + "".join(f"   {name}\n" for name in names) + "\n"


def read_source(app: Any, name: str, source: list[str]) -> None:
    """Two pages of the folder above, whose links to pages lead there; those to files of code are only named."""
    root = Path(app.srcdir).parent
    if name in ABOVE:
        text = (root / ABOVE[name]).read_text("utf-8")
        text = re.sub(r"\]\(docs/", "](", text)
        source[0] = CODE.sub(lambda match: f"`{match[1].strip('`')}`", text)
    for page, above in ABOVE.items():
        source[0] = re.sub(rf"\]\((?:\.\./)?{re.escape(above)}(#[^)]*)?\)", rf"]({page}.md\1)", source[0])


def leave_out(app: Any, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Methods that scikit-learn makes for metadata routing are not ours to describe."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def setup(app: Any) -> dict[str, Any]:
    """Tell Sphinx; runs before Sphinx looks which pages there are."""
    app.connect("builder-inited", write_pages, priority=100)
    app.connect("source-read", read_source)
    app.connect("autodoc-skip-member", leave_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
