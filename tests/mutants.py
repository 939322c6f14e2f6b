"""Mutants: small faults put into the code one at a time, to see whether the tests notice each.

``python tests/mutants.py program 20`` makes 20 of them in the program (or ``intervals``, ``lottery``), runs the tests
that should notice, and names those that survive. A survivor is a missing test, or a change that changes nothing.
"""

from __future__ import annotations

import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parents[1]
PACKAGE = Path("src") / "felicific"

#: What is mutated, and the tests that should notice, quickest first.
AREAS = {
    "program": (
        [
            "_program/moments.py",
            "_program/summing.py",
            "_program/model.py",
            "_program/highs.py",
            "_program/solution.py",
        ],
        [
            f"tests/program/test_{name}.py"
            for name in ("model", "ties", "moments", "sites", "signals", "generation")
        ]
        + ["tests/policy", "tests/frontier"],
    ),
    "intervals": (
        ["_statistics/intervals.py", "_statistics/units.py", "_statistics/gaps.py"],
        ["tests/statistics", "tests/audit"],
    ),
    "lottery": (["_policy/lottery.py"], ["tests/policy/test_lottery.py", "tests/policy", "tests/sklearn"]),
}
PATIENCE = 900

COMPARED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
REVERSED = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
COUNTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}


def faults(node: ast.AST) -> Iterator[ast.AST]:
    """Every way to spoil one node."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for table in (COMPARED, REVERSED):
            if type(node.ops[0]) in table:
                yield ast.Compare(node.left, [table[type(node.ops[0])]()], node.comparators)
    elif isinstance(node, ast.BinOp) and type(node.op) in COUNTED:
        yield ast.BinOp(node.left, COUNTED[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield ast.Constant(node.value + 1)
        if node.value:
            yield ast.Constant(-node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        yield node.operand
    elif isinstance(node, ast.Attribute) and node.attr in ("max", "min", "maximum", "minimum", "any", "all"):
        other = {
            "max": "min",
            "min": "max",
            "maximum": "minimum",
            "minimum": "maximum",
            "any": "all",
            "all": "any",
        }
        yield ast.Attribute(node.value, other[node.attr], node.ctx)


class Spoil(ast.NodeTransformer):
    """Puts the fault with one number in."""

    def __init__(self, number: int) -> None:
        self.left, self.where = number, ""

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(
            node, ast.arg | ast.AnnAssign | ast.JoinedStr | ast.Raise | ast.Import | ast.ImportFrom
        ):
            return node  # words, types and messages
        for fault in faults(node):
            if self.left == 0:
                self.left = -1
                self.where = (
                    f"line {getattr(node, 'lineno', '?')}: {ast.unparse(node)}  ->  {ast.unparse(fault)}"
                )
                return ast.copy_location(fault, node)
            self.left -= 1
        return self.generic_visit(node)


def count(tree: ast.Module) -> int:
    """How many faults there are to put in."""
    spoil = Spoil(10**9)
    spoil.visit(copy.deepcopy(tree))
    return 10**9 - spoil.left


def mutants(files: list[str], most: int, seed: int = 14) -> Iterator[tuple[str, str, str]]:
    """File, place and text of as many mutants, drawn by lot."""
    trees = {name: ast.parse((HERE / PACKAGE / name).read_text()) for name in files}
    every = [(name, k) for name, tree in trees.items() for k in range(count(tree))]
    for name, k in random.Random(seed).sample(every, min(most, len(every))):
        spoil = Spoil(k)
        tree = ast.fix_missing_locations(spoil.visit(copy.deepcopy(trees[name])))
        yield name, spoil.where, ast.unparse(tree)


def noticed(name: str, text: str, tests: list[str], folder: Path) -> bool:
    """Whether a test fails with this file in the place of the right one."""
    target = folder / PACKAGE / name
    right = target.read_text()
    target.write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not cluster"]
    environment = os.environ | {"PYTHONPATH": str(folder / "src")}
    try:
        for some in tests:  # file by file, since all that is named is read before the first test runs
            run = subprocess.run(
                [*command, some],
                cwd=folder,
                env=environment,
                capture_output=True,
                timeout=PATIENCE,
                check=False,
            )
            if run.returncode:
                return True
        return False
    except subprocess.TimeoutExpired:
        return True
    finally:
        target.write_text(right)


def main() -> int:
    area, most = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
    files, tests = AREAS[area]
    alive = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("src", "tests", "docs", "pyproject.toml"):
            copied = shutil.copytree if (HERE / part).is_dir() else shutil.copy
            copied(HERE / part, folder / part)
        for file, where, text in mutants(files, most):
            killed = noticed(file, text, tests, folder)
            alive += not killed
            print("killed  " if killed else "SURVIVED", file, where, flush=True)
    print(f"{area}: {alive} of {most} survived")
    return 0


if __name__ == "__main__":
    sys.exit(main())
