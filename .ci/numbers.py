"""Numbers of the code that may only fall: ``python .ci/numbers.py`` prints them and fails when one is beyond its limit.

The package that is measured is the one that Python finds, so ``PYTHONPATH=other/src python .ci/numbers.py`` measures
another tree. When a change lowers a number, lower its limit in ``LIMITS``; when one would rise, something else goes
first.

What is counted
---------------
lines of code, statements
    Of all ``*.py`` files: lines that are not blank, comments or docstrings; statements as Python parses them, without
    docstrings. Lines are at most 110 characters long, and so they cannot be saved by longer ones.
lines of pages
    All lines of ``.html``, ``.js``, ``.css``, ``.json`` and ``.toml`` files in ``src``.
public names, parameters
    Names in ``felicific.__all__``; parameters of a constructor or function, without ``self`` and ``cls``.
modules on the path
    Modules of the package of which a function ran during the call. Everything was imported, and the call made once,
    before.
longest file, longest function body
    In lines of any kind. A body is without the docstring; functions inside it count.
functions with docstrings
    The share, in per cent; this number may only rise.
modules at the top
    Modules and packages directly in ``felicific`` whose names do not begin with an underscore.
depth
    Imports along the longest chain of modules of the package. *At import* counts the imports that run when a module is
    loaded; *anywhere* also those inside functions. Imports for type checkers do not count. Modules that import each
    other in a circle count one after another.
questions about kinds
    Calls of ``isinstance``, and class patterns of ``match``, that name a class of policy or signal (``KINDS``), and
    ``hasattr`` or ``getattr`` with a default for ``signal`` or ``policy_``; in modules outside the homes of policies
    and signals (``--homes``).
parameters of type Any
    Parameters of functions, without ``self`` and ``cls``, whose annotation is ``Any`` itself, and the share of all.
checks
    How often each function that checks rows (``CHECKS``) runs while a report is made.
tests
    All lines of ``.py`` and ``.json`` files in ``tests``; oracles (``ORACLES``) in lines of code, which may only rise.
words of docs
    Of the Markdown pages in ``docs``, without what scripts write: blocks between markers, and the tables of a page
    that is written as a whole.
"""

from __future__ import annotations

import os
import sys

# Before anything else is imported: a script's folder comes first on the path, where this file would be taken for the
# module ``numbers`` of the standard library.
_FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != _FOLDER]

# ruff: noqa: E402  # see above
import argparse
import ast
import inspect
import io
import re
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Any

#: What no number may exceed, and what it shall become at the end of the round where that is decided.
LIMITS: dict[str, tuple[float, float | None]] = {
    "src: lines of code": (46_762, 34_000),
    "src: statements": (33_795, None),
    "src: files": (217, 150),
    "src: lines of pages": (1_424, None),
    "longest file": (1_281, 600),
    "longest function body": (89, 60),
    "modules at the top": (7, None),
    "depth, imports at import": (24, None),
    "depth, imports anywhere": (27, None),
    "questions about kinds": (3, 0),
    "parameters of type Any": (618, None),
    "parameters of type Any, %": (8.5, None),
    "public names": (23, 24),
    "parameters of FairClassifier": (16, 16),
    "parameters of FairRegressor": (16, 16),
    "parameters of any function": (18, 20),
    "commands": (15, 13),
    "fit: modules on the path": (47, 25),
    "audit: modules on the path": (40, 22),
    "report: modules on the path": (88, 45),
    "report: calls of check_proba": (1, None),
    "report: calls of check_weights": (1, None),
    "report: calls of encode_groups": (1, None),
    "report: calls of encode_labels": (2, None),
    "tests: lines": (57_455, 34_000),
    "studies: lines of code": (713, None),
    "benchmarks: lines of code": (5_940, None),
    "examples: lines of code": (397, None),
    "docs: lines of code": (580, None),
    ".ci: lines of code": (353, None),
    "docs: words": (56_792, 42_000),
}

#: What no number may fall below.
FLOORS = {"functions with docstrings, %": 82.5, "oracles: lines of code": 1_774}

#: Pages that a script writes as a whole.
WRITTEN = ("studies.md",)

#: Folders that the site is built in.
BUILT = ("api", "gallery")

#: Naive second implementations, by which everything else is tried.
ORACLES = ("oracles*.py", "naive*.py")

#: Classes whose instances should answer for themselves.
KINDS = {
    "CellPolicy",
    "Individual",
    "IndividualPolicy",
    "Label",
    "Policy",
    "Score",
    "ScoreCells",
    "SoftLabel",
}

#: Attributes whose presence tells a kind.
TELLING = {"policy_", "signal"}

#: Functions that check rows: every row should be checked once.
CHECKS = ("check_proba", "check_weights", "encode_groups", "encode_labels")

ROWS = 2_000


# ---------------------------------------------------------------------------------------------------------
# The text of the package


@dataclass(frozen=True)
class Module:
    """One file of the package."""

    name: str
    text: str
    tree: ast.Module


def read_modules(source: Path) -> dict[str, Module]:
    """All modules of the package by their full names."""
    modules = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text("utf-8")
        modules[name] = Module(name, text, ast.parse(text))
    return modules


def count_at_top(source: Path) -> int:
    """How many modules and packages at the top a stranger takes for public."""
    names = [path.stem for path in source.glob("*.py")]
    names += [path.parent.name for path in source.glob("*/__init__.py")]
    return sum(not name.startswith("_") for name in names)


def count_code_lines(module: Module) -> int:
    """How many lines hold code: no blank lines, comments or docstrings."""
    lines: set[int] = set()
    silent = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type not in silent:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            if is_text and isinstance(first.value.value, str):
                lines.difference_update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return len(lines)


def parameters(modules: dict[str, Module]) -> Iterator[ast.arg]:
    """All parameters of all functions, without ``self`` and ``cls``."""
    for module in modules.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = node.args
                named = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
                yield from (arg for arg in named if arg is not None and arg.arg not in ("self", "cls"))


def is_any(annotation: ast.expr | None) -> bool:
    """Whether an annotation is ``Any`` and nothing else."""
    return last_name(annotation) == "Any"


def last_name(node: ast.expr | None) -> str:
    """``c`` of ``c`` and of ``a.b.c``; nothing of anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


# ---------------------------------------------------------------------------------------------------------
# Questions about kinds


def is_question(node: ast.AST) -> bool:
    """Whether this asks of which kind a policy or signal is."""
    if isinstance(node, ast.MatchClass):
        return last_name(node.cls) in KINDS
    if not isinstance(node, ast.Call):
        return False
    function, values = last_name(node.func), node.args
    if function == "isinstance" and len(values) == 2:
        return any(last_name(part) in KINDS for part in ast.walk(values[1]) if isinstance(part, ast.expr))
    if (function, len(values)) in (("hasattr", 2), ("getattr", 3)):
        return isinstance(values[1], ast.Constant) and values[1].value in TELLING
    return False


def count_questions(modules: dict[str, Module], homes: set[str]) -> int:
    """How many questions about kinds are asked outside the homes of policies and signals."""
    return sum(
        is_question(node)
        for module in modules.values()
        if not set(module.name.split(".")[1:2]) & homes
        for node in ast.walk(module.tree)
    )


# ---------------------------------------------------------------------------------------------------------
# Imports


def import_nodes(node: ast.AST, inside: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """Import statements below a node; ``inside`` those of functions too, and never those for type checkers."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif isinstance(child, ast.If) and last_name(child.test) == "TYPE_CHECKING":
            for other in child.orelse:
                yield from import_nodes(other, inside)
        elif inside or not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from import_nodes(child, inside)


def imported(module: Module, names: set[str], inside: bool) -> set[str]:
    """Modules of the package that this module imports."""
    targets: set[str] = set()
    for node in import_nodes(module.tree, inside):
        if isinstance(node, ast.Import):
            targets.update(alias.name for alias in node.names)
            continue
        for alias in node.names:
            longer = f"{node.module}.{alias.name}"
            targets.add(longer if longer in names else str(node.module))
    return (targets & names) - {module.name}


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """Everything that can be reached from a module, itself only through a circle."""
    reached: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(graph[name])
    return reached


def longest_chain(modules: dict[str, Module], inside: bool) -> list[str]:
    """The modules along the longest chain of imports; those of a circle stand together."""
    graph = {name: imported(module, set(modules), inside) for name, module in modules.items()}
    below = {name: reachable(graph, name) for name in graph}
    circle = {
        name: tuple(sorted({name} | {other for other in below[name] if name in below[other]}))
        for name in graph
    }

    @cache
    def chain(members: tuple[str, ...]) -> tuple[str, ...]:
        following = {circle[target] for name in members for target in graph[name]} - {members}
        return members + max((chain(other) for other in sorted(following)), key=len, default=())

    return list(max((chain(circle[name]) for name in sorted(graph)), key=len))


# ---------------------------------------------------------------------------------------------------------
# Calls


@dataclass
class Calls:
    """What ran during a call."""

    modules: set[str] = field(default_factory=set)
    names: Counter[str] = field(default_factory=Counter)

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        """Take note of an event that Python reports (see ``sys.setprofile``)."""
        module = module_of(frame)
        if event != "call" or module is None:
            return
        self.modules.add(module)
        self.names[frame.f_code.co_name] += 1


def module_of(frame: FrameType | None) -> str | None:
    """The module of the package that a frame belongs to, if any."""
    name = frame.f_globals.get("__name__", "") if frame is not None else ""
    return name if name.split(".")[0] == "felicific" else None


def trace(work: Callable[[], Any]) -> tuple[Any, Calls]:
    """Do the work; return its result and what ran."""
    calls = Calls()
    sys.setprofile(calls.note)
    try:
        result = work()
    finally:
        sys.setprofile(None)
    return result, calls


def make_page(fair: Any, X: Any, y: Any) -> str:
    """The whole report as text."""
    return str(fair.report(X, y).to_html())


def trace_main_road() -> dict[str, Calls]:
    """Fit, audit and report on the loans of the demo, each made once before it is measured."""
    from sklearn.base import clone
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.frozen import FrozenEstimator

    from felicific import FairClassifier, audit
    from felicific.datasets import synthetic_loans

    data = synthetic_loans(3 * ROWS, seed=0)
    train, fitted, unseen = (slice(part * ROWS, (part + 1) * ROWS) for part in range(3))
    columns = ["yearly_salary", "loan_requested"]
    forest = RandomForestClassifier(20, min_samples_leaf=20, random_state=0)
    model = FrozenEstimator(forest.fit(data.X[train][columns], data.y[train]))
    X, y = data.X[unseen], data.y[unseen]
    settings: dict[str, Any] = {"happiness": data.happiness, "sensitive_features": data.sensitive_features}
    fresh = FairClassifier(model, policy="score", gap=0.0, random_state=0, **settings)
    road = {}
    for _ in range(2):  # the first time imports modules and fills the caches of libraries
        fair, road["fit"] = trace(partial(clone(fresh).fit, data.X[fitted], data.y[fitted]))
        _, road["audit"] = trace(partial(audit, fair, X, y))
        _, road["report"] = trace(partial(make_page, fair, X, y))
    return road


# ---------------------------------------------------------------------------------------------------------
# The table


def size_of(text: str) -> int:
    """Lines of code of a text."""
    return count_code_lines(Module("", text, ast.parse(text)))


def functions_of(modules: dict[str, Module]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All functions of some modules."""
    for module in modules.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node


def is_text(node: ast.AST) -> bool:
    """Whether a statement is a docstring, or another text by itself."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def count_body(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function's body."""
    body = node.body[1:] if is_text(node.body[0]) else node.body
    return (node.end_lineno or 0) - body[0].lineno + 1 if body else 0


def count_lines(folder: Path, *endings: str) -> int:
    """All lines of the files in a folder with these endings."""
    paths = (path for path in folder.rglob("*") if path.suffix in endings)
    return sum(len(path.read_text("utf-8").splitlines()) for path in paths)


def count_code(paths: Iterable[Path]) -> int:
    """Lines of code of some files."""
    return sum(size_of(path.read_text("utf-8")) for path in paths)


def count_words(docs: Path) -> int:
    """Words of the docs that people wrote."""
    total = 0
    for path in docs.rglob("*.md"):
        text = path.read_text("utf-8")
        text = re.sub(r"<!-- (.+?) -->\n.*?<!-- end of \1 -->", "", text, flags=re.DOTALL)
        if path.name in WRITTEN:
            text = "\n".join(line for line in text.splitlines() if not line.startswith("|"))
        total += len(text.split())
    return total


def numbers_of_text(source: Path, homes: set[str]) -> dict[str, float]:
    """What can be counted by reading the package."""
    modules = read_modules(source)
    every, functions = list(parameters(modules)), list(functions_of(modules))
    untyped = sum(is_any(parameter.annotation) for parameter in every)
    statements = sum(
        isinstance(node, ast.stmt) and not is_text(node)
        for module in modules.values()
        for node in ast.walk(module.tree)
    )
    named = sum(ast.get_docstring(node) is not None for node in functions)
    return {
        "src: lines of code": sum(count_code_lines(module) for module in modules.values()),
        "src: statements": statements,
        "src: files": len(modules),
        "src: lines of pages": count_lines(source, ".html", ".js", ".css", ".json", ".toml"),
        "longest file": max(len(module.text.splitlines()) for module in modules.values()),
        "longest function body": max(map(count_body, functions)),
        "functions with docstrings, %": round(100 * named / len(functions), 1),
        "modules at the top": count_at_top(source),
        "depth, imports at import": len(longest_chain(modules, inside=False)) - 1,
        "depth, imports anywhere": len(longest_chain(modules, inside=True)) - 1,
        "questions about kinds": count_questions(modules, homes),
        "parameters of type Any": untyped,
        "parameters of type Any, %": round(100 * untyped / len(every), 1),
    }


def numbers_of_calls() -> dict[str, float]:
    """What can be counted by running."""
    road = trace_main_road()
    numbers: dict[str, float] = {
        f"{name}: modules on the path": len(calls.modules) for name, calls in road.items()
    }
    for check in CHECKS:
        numbers[f"report: calls of {check}"] = road["report"].names[check]
    return numbers


def numbers_of_interface() -> dict[str, float]:
    """What a user has to learn."""
    import felicific
    from felicific.cli import app

    public = [getattr(felicific, name) for name in felicific.__all__]
    methods = [
        method
        for thing in public
        if inspect.isclass(thing)
        for name, method in inspect.getmembers(thing, inspect.isfunction)
        if not name.startswith("_")
    ]
    functions = [thing for thing in public if inspect.isfunction(thing)]
    sizes = [
        len(inspect.signature(thing).parameters) - (thing in methods) for thing in (*functions, *methods)
    ]
    return {
        "public names": len(felicific.__all__),
        "parameters of FairClassifier": len(inspect.signature(felicific.FairClassifier).parameters),
        "parameters of FairRegressor": len(inspect.signature(felicific.FairRegressor).parameters),
        "parameters of any function": max(sizes),
        "commands": len(app.registered_commands),
    }


def numbers_beside(root: Path) -> dict[str, float]:
    """What stands beside the package."""
    tests = root / "tests"
    oracles = [path for pattern in ORACLES for path in tests.glob(pattern)]
    beside = {
        name: [path for path in (root / name).rglob("*.py") if path.parent.name not in BUILT]
        for name in ("studies", "benchmarks", "examples", "docs", ".ci")
    }
    return {
        "tests: lines": count_lines(tests, ".py", ".json"),
        "oracles: lines of code": count_code(oracles),
        **{f"{name}: lines of code": count_code(paths) for name, paths in beside.items()},
        "docs: words": count_words(root / "docs"),
    }


def count_all(homes: set[str]) -> dict[str, float]:
    """All numbers, in the order in which they are shown."""
    import felicific

    source = Path(str(felicific.__file__)).parent
    return {
        **numbers_of_text(source, homes),
        **numbers_of_interface(),
        **numbers_of_calls(),
        **numbers_beside(source.parents[1]),
    }


def show(numbers: dict[str, float]) -> list[str]:
    """Print the table; return the names of numbers that are beyond their limits."""
    beyond = []
    print(f"{'':34}{'now':>8}{'limit':>8}{'goal':>8}")
    for name, number in numbers.items():
        limit, goal = LIMITS.get(name, (FLOORS.get(name), None))
        cells = "".join(f"{'' if value is None else format(value, 'g'):>8}" for value in (limit, goal))
        wrong = limit is not None and (number < limit if name in FLOORS else number > limit)
        print(f"{name:34}{number:>8g}{cells}{'  beyond its limit' if wrong else ''}")
        beyond += [name] * wrong
    return beyond


def main() -> int:
    """Print the numbers; 1 if one is beyond its limit."""
    parser = argparse.ArgumentParser(description="Numbers of the code that may only fall.")
    parser.add_argument(
        "--homes", nargs="*", default=["_policy", "_program"],
        help="names at the top of the package where policies and signals live",
    )  # fmt: skip
    parser.add_argument("--chains", action="store_true", help="also print the longest chains of imports")
    given = parser.parse_args()
    beyond = show(count_all(set(given.homes)))
    if given.chains:
        import felicific

        modules = read_modules(Path(str(felicific.__file__)).parent)
        for inside in (False, True):
            print("anywhere:" if inside else "at import:", " > ".join(longest_chain(modules, inside)))
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
