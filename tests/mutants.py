"""Mutants: small faults put into the code one at a time, to see whether the tests notice each.

``python tests/mutants.py 100 --seed 1`` draws 100 of all faults that can be put into the functions of ``PACKAGES``,
runs for each the tests that reach the changed line, in as many processes as there are cores, and names the mutants
that survive: each is a missing test, or a change that changes nothing. The same seed draws the same mutants from the
same code. Which test reaches which line is measured once (by a run of all ``TESTS``) and kept
in ``.mutants`` until the code or the tests change.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import hashlib
import importlib.util
import math
import os
import pickle
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import SourceFileLoader
from itertools import zip_longest
from pathlib import Path
from queue import Queue
from typing import Any, NamedTuple

import numpy as np
import pytest

HERE = Path(__file__).resolve().parents[1]
FELICIFIC = Path("src") / "felicific"
PACKAGES = ("_program", "_policy", "_statistics", "_problem", "_audit")
MAP = HERE / ".mutants"

#: The tests that are tried: those that call these packages in their own process, and not for their words alone.
FOLDERS = "amounts audit fit frontier people policy problem program sklearn statistics"
TESTS = [f"tests/{name}" for name in FOLDERS.split()] + ["tests/test_bad_input.py", "tests/test_capacity.py"]
TESTS += [f"src/felicific/{name}" for name in PACKAGES]
WORKERS = 2
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)

#: Seconds of tests, as measured without a mutant, that each mutant is tried with, and when a run is ended.
SECONDS = 30.0
PATIENCE = 150.0

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
CALLED = {"max": "min", "maximum": "minimum", "any": "all"}
CALLED |= {other: name for name, other in CALLED.items()}

#: Words, types and messages, in which nothing is changed.
SPARED = (ast.arg, ast.AnnAssign, ast.JoinedStr, ast.Raise, ast.Import, ast.ImportFrom)


class Mutant(NamedTuple):
    """A fault in a file: the node it replaces, the text instead, and the line of the statement around it."""

    file: str
    node: ast.expr
    text: str
    statement: int

    def __str__(self) -> str:
        return f"{FELICIFIC / self.file}:{self.node.lineno}: {ast.unparse(self.node)}  ->  {self.text}"

    def source(self) -> bytes:
        """The whole file with the fault in it; all other lines are as they were, as far as they can be."""
        lines = (HERE / FELICIFIC / self.file).read_bytes().splitlines(keepends=True)
        first, last = self.node.lineno - 1, (self.node.end_lineno or self.node.lineno) - 1
        before, after = lines[first][: self.node.col_offset], lines[last][self.node.end_col_offset :]
        lines[first : last + 1] = [before + f"({self.text})".encode() + after]
        text = b"".join(lines)
        ast.parse(text)
        return text


def faults(node: ast.AST) -> Iterator[ast.expr]:
    """Every way to spoil one node."""
    match node:
        case ast.Compare(ops=[operator]):
            for table in (COMPARED, REVERSED):
                if type(operator) in table:
                    yield ast.Compare(node.left, [table[type(operator)]()], node.comparators)
        case ast.BinOp() if type(node.op) in COUNTED:
            yield ast.BinOp(node.left, COUNTED[type(node.op)](), node.right)
        case ast.BoolOp():
            yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() | float()):
            yield ast.Constant(node.value + 1)
            if node.value:
                yield ast.UnaryOp(ast.USub(), node)
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield node.operand
        case ast.Attribute() if node.attr in CALLED:
            yield ast.Attribute(node.value, CALLED[node.attr], node.ctx)


def every_mutant(file: str) -> Iterator[Mutant]:
    """Every fault inside the functions of a file, in the order of the file."""

    def visit(node: ast.AST, inside: bool, statement: int) -> Iterator[Mutant]:
        if isinstance(node, SPARED):
            return
        statement = node.lineno if isinstance(node, ast.stmt) else statement
        if inside and isinstance(node, ast.expr):
            for fault in faults(node):
                yield Mutant(file, node, ast.unparse(fault), statement)
        function = isinstance(node, FUNCTION)
        for child in node.body if function else ast.iter_child_nodes(node):
            yield from visit(child, inside or function, statement)

    yield from visit(ast.parse((HERE / FELICIFIC / file).read_bytes()), False, 0)


def draw(packages: tuple[str, ...], number: int, seed: int) -> list[Mutant]:
    """As many mutants of these packages, drawn at random, all equally likely."""
    files = lines_of_files(packages)
    every = [mutant for file in files for mutant in every_mutant(file)]
    print(f"{len(every)} faults can be put into {len(files)} files of {', '.join(packages)}", flush=True)
    return random.Random(seed).sample(every, min(number, len(every)))


def lines_of_files(packages: tuple[str, ...] = PACKAGES) -> dict[str, range]:
    """Every file, as it is called from ``felicific``, and the numbers of its lines, counted through all files."""
    found, total = {}, 0
    for path in sorted(path for name in packages for path in (HERE / FELICIFIC / name).rglob("*.py")):
        length = path.read_bytes().count(b"\n") + 2  # lines are counted from 1
        found[path.relative_to(HERE / FELICIFIC).as_posix()] = range(total, total + length)
        total += length
    return found


class Observed(ast.NodeTransformer):
    """Marks its line in ``__reached__`` before every statement of a function."""

    def __init__(self, first: int) -> None:
        self.first, self.inside = first, False

    def visit(self, node: ast.AST) -> ast.AST:
        """Mark the statements of a node and of all inside it."""
        outside, self.inside = self.inside, self.inside or isinstance(node, FUNCTION)
        self.generic_visit(node)
        for name in ("body", "orelse", "finalbody") if self.inside else ():
            block = getattr(node, name, None)
            if isinstance(block, list):
                docstring = (
                    name == "body" and isinstance(node, FUNCTION) and ast.get_docstring(node) is not None
                )
                rest = [one for statement in block[docstring:] for one in (*self.mark(statement), statement)]
                setattr(node, name, block[:docstring] + rest)
        self.inside = outside
        return node

    def mark(self, statement: ast.stmt) -> list[ast.stmt]:
        """What marks the line of a statement."""
        parsed = ast.parse(f"__reached__[{self.first + statement.lineno}] = 1").body
        return [ast.fix_missing_locations(ast.copy_location(one, statement)) for one in parsed]


class Observer:
    """The plugin of the run in which it is measured which test reaches which line, in each process of its own."""

    def __init__(self, worker: str) -> None:
        assert not any(f"felicific.{name}" in sys.modules for name in PACKAGES), (
            "loaded before it is observed"
        )
        files = lines_of_files()
        self.worker, size = worker, max(lines.stop for lines in files.values())
        self.reached = builtins.__reached__ = bytearray(size)  # type: ignore[attr-defined]
        self.tests: dict[str, dict[str, Any]] = {}
        self.fixtures: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(size, bool))
        usual = SourceFileLoader.get_code
        firsts = {str(HERE / FELICIFIC / file): lines.start for file, lines in files.items()}

        def get_code(loader: SourceFileLoader, name: str) -> Any:
            path = loader.get_filename(name)
            if path not in firsts:
                return usual(loader, name)
            return compile(Observed(firsts[path]).visit(ast.parse(loader.get_data(path))), path, "exec")

        SourceFileLoader.get_code = get_code  # type: ignore[method-assign,assignment]

    def since(self) -> np.ndarray:
        """The lines that were reached since this was asked last."""
        lines = np.frombuffer(bytes(self.reached), dtype=bool)
        self.reached[:] = bytes(len(self.reached))
        return lines

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        """Observe a test; how long it takes is processor time, with that of processes that it starts."""
        definitions = [found[-1] for found in item._fixtureinfo.name2fixturedefs.values()]
        shared = [self.name(one) for one in definitions if one.scope != "function"]
        self.since()
        begun = sum(os.times()[:4])
        self.tests[item.nodeid] = test = {"shared": shared, "passed": False}
        result = yield
        test["seconds"] = sum(os.times()[:4]) - begun
        test["lines"] = np.packbits(self.since())
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """What a fixture of several tests runs, all of them reach."""
        before = self.since()
        try:
            return (yield)
        finally:
            if fixturedef.scope == "function":
                before = before | self.since()
            else:
                self.fixtures[self.name(fixturedef)] |= self.since()
            self.reached[:] = before.tobytes()

    def name(self, fixture: Any) -> str:
        """A fixture, as one of its file or folder."""
        return f"{fixture.baseid} {fixture.argname}"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep which tests pass."""
        if report.when == "call":
            self.tests[report.nodeid]["passed"] = report.passed

    def pytest_sessionfinish(self) -> None:
        """Write down what was seen."""
        fixtures = {name: np.packbits(lines) for name, lines in self.fixtures.items()}
        (MAP / f"{self.worker}.pickle").write_bytes(pickle.dumps((self.tests, fixtures)))


def pytest_configure(config: pytest.Config) -> None:
    """Observe in every process that runs tests; this file is a plugin of the run that ``measure`` starts."""
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        config.pluginmanager.register(Observer(worker))


def measure() -> None:
    """Run the tests once and keep which test reaches which line, unless that is already there."""
    files = [path for part in ("src", "tests") for path in sorted((HERE / part).rglob("*.py"))]
    state = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    if (MAP / "state").exists() and (MAP / "state").read_text() == state:
        return
    shutil.rmtree(MAP, ignore_errors=True)
    MAP.mkdir()
    print("runs the tests once, to see which reach which line", flush=True)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "mutants",
        "-p",
        "no:cacheprovider",
        "-m",
        "",
        "-n",
        str(WORKERS),
    ]
    command += TESTS
    environment = os.environ | {"PYTHONPATH": f"{HERE / 'src'}{os.pathsep}{HERE / 'tests'}"}
    with (MAP / "output.txt").open("w") as output:
        subprocess.run(command, cwd=HERE, env=environment, stdout=output, check=False)
    print((MAP / "output.txt").read_text().splitlines()[-1], flush=True)
    (MAP / "state").write_text(state)


class Reach:
    """Which tests reach a line, and how long each takes."""

    def __init__(self) -> None:
        tests: dict[str, dict[str, Any]] = {}
        fixtures: dict[str, np.ndarray] = {}
        for path in sorted(MAP.glob("*.pickle")):
            some, theirs = pickle.loads(path.read_bytes())
            tests |= {name: test for name, test in some.items() if test["passed"]}
            fixtures |= {name: lines | fixtures.get(name, 0) for name, lines in theirs.items()}
        for test in tests.values():
            for name in test["shared"]:
                test["lines"] = test["lines"] | fixtures.get(name, 0)
        self.seconds = {name: test["seconds"] for name, test in tests.items()}
        self.names, self.lines = list(tests), np.array([test["lines"] for test in tests.values()])
        self.files = lines_of_files()

    def tests(self, mutant: Mutant) -> list[str]:
        """The quickest tests that reach a mutant, of every file of tests in turn, up to ``SECONDS``; file by file."""
        byte, bit = divmod(self.files[mutant.file][mutant.statement], 8)
        reaching = np.flatnonzero(self.lines[:, byte] & (128 >> bit))
        files = defaultdict(list)
        for test in sorted((self.names[i] for i in reaching), key=lambda test: (self.seconds[test], test)):
            files[test.split("::")[0]].append(test)
        chosen, total = defaultdict(list), 0.0
        for test in (test for turn in zip_longest(*files.values()) for test in turn if test):
            total += self.seconds[test]
            if total > SECONDS and chosen:
                break
            chosen[test.split("::")[0]].append(test)
        return [test for tests in chosen.values() for test in tests]


def verdict(mutant: Mutant, tests: list[str], folder: Path) -> str:
    """What becomes of a mutant that is put into the copy of the tree in this folder."""
    if not tests:
        return "NOT COVERED"
    target = folder / FELICIFIC / mutant.file
    right = target.read_bytes()
    cached = Path(importlib.util.cache_from_source(str(target)))
    (folder / "these-tests").write_text("\n".join(tests))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-p",
        "no:cacheprovider",
        "-m",
        "",
        "--hypothesis-seed=0",
    ]
    target.write_bytes(mutant.source())
    cached.unlink(missing_ok=True)
    try:
        run = subprocess.run(
            [*command, "@these-tests"],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(folder / "src")},
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        if run.returncode == 4:  # no such test
            raise RuntimeError(run.stdout.decode() + run.stderr.decode())
        return "died" if run.returncode else "SURVIVED"
    except subprocess.TimeoutExpired:
        return "died"
    finally:
        target.write_bytes(right)
        cached.unlink(missing_ok=True)


def main() -> None:
    """Draw, try and count."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("number", nargs="?", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=PACKAGES, help="mutants of this package only")
    given = parser.parse_args()
    mutants = draw((given.only,) if given.only else PACKAGES, given.number, given.seed)
    measure()
    reach, begun = Reach(), time.monotonic()
    chosen = [reach.tests(mutant) for mutant in mutants]
    folders: Queue[Path] = Queue()

    def tried(mutant: Mutant, tests: list[str]) -> str:
        folder, started = folders.get(), time.monotonic()
        try:
            result = verdict(mutant, tests, folder)
        finally:
            folders.put(folder)
        seconds = time.monotonic() - started
        print(f"{result:<11} {mutant}  [{len(tests)} tests, {seconds:.0f} s]", flush=True)
        return result

    with tempfile.TemporaryDirectory() as name:
        for worker in range(WORKERS):
            folders.put(Path(name) / str(worker))
            spared = shutil.ignore_patterns(".*", "site", "artefacts", "__pycache__")
            shutil.copytree(HERE, Path(name) / str(worker), ignore=spared)
        with ThreadPoolExecutor(WORKERS) as pool:
            results = list(pool.map(tried, mutants, chosen))
    print("\nSurvivors:")
    for mutant, result in sorted(zip(mutants, results, strict=True), key=lambda pair: str(pair[0])):
        if result != "died":
            print(f"{result:<11} {mutant}")
    dead, number = results.count("died"), len(results)
    share = dead / number
    error = math.sqrt(share * (1 - share) / number)
    print(f"after {(time.monotonic() - begun) / 60:.0f} minutes, with the tests that reach each:")
    print(f"{dead} of {number} mutants die ({share:.0%}, standard error {error:.1%})")


if __name__ == "__main__":
    main()
