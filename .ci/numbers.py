"""Numbers of the code that may only fall: ``python .ci/numbers.py`` prints them and fails when one is above its limit.

The package that is measured is the one that Python finds, so ``PYTHONPATH=other/src python .ci/numbers.py`` measures
another tree. When a change lowers a number, lower its limit in ``LIMITS``; when one would rise, something else goes
first.

What is counted
---------------
public names
    Names in ``felicific.__all__``.
parameters of FairClassifier
    Of its constructor, without ``self``.
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
lines
    Of all ``*.py`` files; *of code*: without those that are blank, comments or docstrings.
parameters of type Any
    Parameters of functions, without ``self`` and ``cls``, whose annotation is ``Any`` itself, and the share of all.
hops
    Calls from a function of one module straight into a function of another, both of the package, while the call runs.
    Everything was imported, and the call made once, before. Functions and modules are those that ran.
checks
    How often each function that checks rows (``CHECKS``) runs while a report is made.
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
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

#: What no number may exceed, and what it shall become where that is decided.
LIMITS: dict[str, tuple[float, float | None]] = {
    "public names": (32, 36),
    "parameters of FairClassifier": (22, 21),
    "modules at the top": (8, None),
    "depth, imports at import": (26, None),
    "depth, imports anywhere": (29, None),
    "questions about kinds": (3, 0),
    "lines": (75_200, None),
    "lines of code": (51_800, None),
    "parameters of type Any": (775, None),
    "parameters of type Any, %": (9.8, None),
    "fit: hops": (408, 60),
    "audit: hops": (327, 60),
    # Every one of up to 40 positions has limits, a verdict in words and a checksum.
    "report: hops": (4_813, 600),
    "report: calls of check_proba": (1, 1),
    "report: calls of check_weights": (1, 1),
    "report: calls of encode_groups": (1, 1),
    "report: calls of encode_labels": (2, 1),
}

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

    hops: int = 0
    functions: set[CodeType] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    names: Counter[str] = field(default_factory=Counter)

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        """Take note of an event that Python reports (see ``sys.setprofile``)."""
        module = module_of(frame)
        if event != "call" or module is None:
            return
        code, caller = frame.f_code, module_of(frame.f_back)
        self.modules.add(module)
        if code.co_name == "<lambda>" or not code.co_name.startswith("<"):  # no comprehension, no module
            self.functions.add(code)
            self.names[code.co_name] += 1
        self.hops += caller is not None and caller != module


def module_of(frame: FrameType | None) -> str | None:
    """The module of the package that a frame belongs to, if any."""
    name = frame.f_globals.get("__name__", "") if frame is not None else ""
    return name if name.split(".")[0] == "felicific" else None


def watch(work: Callable[[], Any]) -> tuple[Any, Calls]:
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


def watch_main_road() -> dict[str, Calls]:
    """Fit, audit and report on the loans of the demo, each made once before it is watched."""
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
    fresh = FairClassifier(model, policy="score", random_state=0, **settings)
    road = {}
    for _ in range(2):  # the first time imports modules and fills the caches of libraries
        fair, road["fit"] = watch(partial(clone(fresh).fit, data.X[fitted], data.y[fitted]))
        _, road["audit"] = watch(partial(audit, fair, X, y))
        _, road["report"] = watch(partial(make_page, fair, X, y))
    return road


# ---------------------------------------------------------------------------------------------------------
# The table


def numbers_of_text(source: Path, homes: set[str]) -> dict[str, float]:
    """What can be counted by reading."""
    modules = read_modules(source)
    every = list(parameters(modules))
    untyped = sum(is_any(parameter.annotation) for parameter in every)
    return {
        "modules at the top": count_at_top(source),
        "depth, imports at import": len(longest_chain(modules, inside=False)) - 1,
        "depth, imports anywhere": len(longest_chain(modules, inside=True)) - 1,
        "questions about kinds": count_questions(modules, homes),
        "lines": sum(len(module.text.splitlines()) for module in modules.values()),
        "lines of code": sum(count_code_lines(module) for module in modules.values()),
        "parameters of type Any": untyped,
        "parameters of type Any, %": round(100 * untyped / len(every), 1),
    }


def numbers_of_calls() -> dict[str, float]:
    """What can be counted by running."""
    road = watch_main_road()
    numbers: dict[str, float] = {}
    for name, calls in road.items():
        numbers[f"{name}: hops"] = calls.hops
        numbers[f"{name}: functions"] = len(calls.functions)
        numbers[f"{name}: modules"] = len(calls.modules)
    for check in CHECKS:
        numbers[f"report: calls of {check}"] = road["report"].names[check]
    return numbers


def count_all(homes: set[str]) -> dict[str, float]:
    """All numbers, in the order in which they are shown."""
    import felicific

    source = Path(str(felicific.__file__)).parent
    return {
        "public names": len(felicific.__all__),
        "parameters of FairClassifier": len(inspect.signature(felicific.FairClassifier).parameters),
        **numbers_of_text(source, homes),
        **numbers_of_calls(),
    }


def show(numbers: dict[str, float]) -> list[str]:
    """Print the table; return the names of numbers that are above their limits."""
    above = []
    print(f"{'':34}{'now':>8}{'limit':>8}{'goal':>8}")
    for name, number in numbers.items():
        limit, goal = LIMITS.get(name, (None, None))
        cells = "".join(f"{'' if value is None else format(value, 'g'):>8}" for value in (limit, goal))
        too_many = limit is not None and number > limit
        print(f"{name:34}{number:>8g}{cells}{'  above its limit' if too_many else ''}")
        above += [name] * too_many
    return above


def main() -> int:
    """Print the numbers; 1 if one is above its limit."""
    parser = argparse.ArgumentParser(description="Numbers of the code that may only fall.")
    parser.add_argument(
        "--homes", nargs="*", default=["_policy", "_program"],
        help="names at the top of the package where policies and signals live",
    )  # fmt: skip
    parser.add_argument("--chains", action="store_true", help="also print the longest chains of imports")
    given = parser.parse_args()
    above = show(count_all(set(given.homes)))
    if given.chains:
        import felicific

        modules = read_modules(Path(str(felicific.__file__)).parent)
        for inside in (False, True):
            print("anywhere:" if inside else "at import:", " > ".join(longest_chain(modules, inside)))
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
