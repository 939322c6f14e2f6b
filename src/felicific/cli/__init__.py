"""The command line: every command is a function in a module of its own.

Nothing heavy is imported here: ``felicific --help`` answers at once.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable, Set
from dataclasses import MISSING, fields
from typing import Annotated, Any, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from felicific.cli.aggregate import aggregate
from felicific.cli.alternatives import alternatives
from felicific.cli.apply import apply
from felicific.cli.audit import audit
from felicific.cli.compare import compare
from felicific.cli.demo import demo
from felicific.cli.explain import explain
from felicific.cli.fit import fit
from felicific.cli.frontier import frontier
from felicific.cli.merge import merge
from felicific.cli.monitor import monitor
from felicific.cli.options import PANELS, USAGE, plain_option
from felicific.cli.recalibrate import recalibrate
from felicific.cli.report import report
from felicific.cli.show import show
from felicific.cli.sql import sql

Options = TypeVar("Options")


def _nothing(ctx: Any) -> None:
    """No type."""


def _plainly(parameters: list[Any]) -> list[Any]:
    """Help names no type: a flag takes no value, and every other word of the command line says itself what it is."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
        if parameter.param_type_name == "argument":
            parameter.display_type_rich = _nothing
    return parameters


class Command(TyperCommand):
    """A command whose help shows flags as they are typed."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Every option, that for help among them."""
        return _plainly(super().get_params(ctx))


class Commands(TyperGroup):
    """All commands, with the same help."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Every option, those of completion among them."""
        return _plainly(super().get_params(ctx))


def register(app: typer.Typer, command: Callable[[Options], None]) -> None:
    """Add a command that takes its options as one dataclass; its name and help are the function's."""
    taken: type[Options] = get_type_hints(command)["options"]
    parameters = parameters_of(taken)

    def run(context: Any, **typed: Any) -> None:
        try:
            command(taken(**typed))
        except USAGE as error:
            error.ctx = error.ctx or context  # so that the message names the command
            raise

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    # What typer looks at, in place of what is written above.
    parameters = [
        inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context),
        *parameters,
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # where Python looks for it
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    app.command(cls=Command)(run)


def parameters_of(taken: type) -> list[inspect.Parameter]:
    """The fields of a dataclass as parameters that typer understands, in the order of help.

    They go by panel, what is required first, then what is the command's own, then as the parts list them.
    """
    hints, own = get_type_hints(taken, include_extras=True), list(inspect.get_annotations(taken))
    parameters = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(taken)
    ]

    def place(parameter: inspect.Parameter) -> tuple[int, bool, int]:
        panel = parameter.annotation.__metadata__[0].rich_help_panel
        rank = PANELS.index(panel) if panel in PANELS else -1
        among_own = own.index(parameter.name) if parameter.name in own else len(own)
        return rank, parameter.default is not parameter.empty, among_own

    return sorted(parameters, key=place)


EXIT_CODES = (
    "Exit codes: 0 done; 1 not possible, one line says why; 2 typed wrongly; 3 no policy meets what was asked; "
    "4 `audit --require`: the gap is not shown to be small enough, `monitor`: there is an alarm, or `--signed`: this "
    "policy was not signed; "
    "130 interrupted; 143 ended by SIGTERM."
)

INTERRUPTED = "felicific: interrupted; no file is half-written."

app = typer.Typer(
    name="felicific",
    cls=Commands,
    help="What a classifier's decisions do to groups of people, and the cheapest way to bring them together.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (
    demo,
    audit,
    monitor,
    frontier,
    fit,
    show,
    recalibrate,
    apply,
    sql,
    compare,
    explain,
    report,
    alternatives,
    aggregate,
    merge,
):
    register(app, command)


#: Arguments of Python whose option is called otherwise.
CALLED = {
    "y": "--label",
    "sensitive_features": "--group",
    "sample_weight": "--weight",
    "classes": "--class",
    "groups": "--group-name",
    "names": "--decision-name",
    "random_state": "--seed",
    "sees_group": "--without-group",
}

#: What commands and options were called before.
RENAMED = {
    "watch": "monitor",
    "moments": "aggregate",
    "sample-size": "felicific.sample_size(...) in Python",
    "--components": "--measures",
    "--hidden": "--max-odds-ratio",
    "--losers": "--worse-off",
    "--no-group-at-predict": "--without-group",
    "--odds": "--label-proba, or --with-proba where decisions are written",
    "--prediction": "--predicted",
    "--proba": "--score",
    "--today": "--baseline",
}

#: An option with its value, which stays; or an argument as messages name it: ``gap=``, ``method='t'``, ``min_people``,
#: ``score={class: column}``.
ARGUMENT = re.compile(
    r"--[\w-]+ (?:'[^']*'|\S+)"
    r"|(?<![\w'\"])(?P<of>(?:missing_labels=)?MissingLabels\()?(?P<name>[a-z_]+)"
    r"(?P<is>=(?P<value>'[^']*'|\{[^{}]*\}|\[\.\.\.\]|\.\.\.|-?[\w.]*\w)?)?(?![=\[({\w])(?(of)\))"
)


def with_options(text: str, options: Set[str]) -> str:
    """A message of the library with the option in place of every argument that the command has as one."""

    def option(found: re.Match[str]) -> str:
        name, value = found["name"] or "", found["value"] or "..."
        called = CALLED.get(name, f"--{name.replace('_', '-')}")
        if called not in options or not (found["is"] or "_" in name):
            return found[0]
        if value in ("...", "[...]", "True", "False"):
            return called
        typed = value[1:-1].replace(": ", "=") if value[0] == "{" else value
        return f"{called} " + (typed if " " in typed else typed.strip("'"))

    return ARGUMENT.sub(option, text)


def _version(asked: bool) -> None:
    if asked:
        from felicific import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, plain_option(None, "Show the version.", "--version", callback=_version, is_eager=True)
    ] = False,
    debug: Annotated[
        bool, plain_option(None, "Show the traceback of an error; anywhere on the line.", "--debug")
    ] = False,
) -> None:
    """What a classifier's decisions do to groups of people, and the cheapest way to bring them together."""


def run(arguments: list[str]) -> int:
    """Run a command line and return its exit code; an error is one clear message, without a traceback."""
    debug, options = "--debug" in arguments, frozenset[str]()
    try:
        command: Any = typer.main.get_command(app)
        kept = [argument for argument in arguments if argument != "--debug"]
        for word in (*kept[:1], *(word.partition("=")[0] for word in kept if word.startswith("--"))):
            if word in RENAMED:
                print(f"felicific: {word} is now called {RENAMED[word]}.", file=sys.stderr)
                return 2
        called = next((command.commands[word] for word in kept if word in command.commands), command)
        options = frozenset(option for parameter in called.params for option in parameter.opts)
        _note_warnings(options)
        found = command.main(kept, prog_name="felicific", standalone_mode=False)
        if found == 130:
            raise KeyboardInterrupt  # typer took it for an ordinary end
        sys.stdout.flush()
        return int(found or 0)
    except BaseException as error:
        if debug and not isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        code, message = ending(error, options)
        if message:
            # A name out of a file may hold what a terminal would obey.
            safe = "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in message)
            print(safe, file=sys.stderr)
        return code


def ending(error: BaseException, options: Set[str]) -> tuple[int, str]:
    """Exit code and message of whatever ended a command that has these options."""
    from felicific.exceptions import CertificateError, FelicificError, InfeasibleError, SignedError

    in_a_query = type(error).__name__ == "InterruptException" or str(error) == "Query interrupted"
    match error:
        case _ if in_a_query or isinstance(error, KeyboardInterrupt | typer.Abort):
            return 130, INTERRUPTED
        case SystemExit():
            return error.code if isinstance(error.code, int) else 1, ""
        case _ if isinstance(error, USAGE):
            path = error.ctx.command_path if error.ctx else "felicific"
            said = error.format_message().replace(
                ": Value error, ", ": "
            )  # which some versions of typer put there
            return 2, f"felicific: {said}{'' if said.endswith(('.', '?')) else '.'} Try '{path} --help'."
        case FelicificError():
            if error.remedy.startswith("Fill it with a name") and "--missing-group" in options:
                error.remedy = (
                    "Fill it in, or say --missing-group NAME, which reads it as a group of that name."
                )
            error.problem, error.remedy = (
                with_options(text, options) for text in (error.problem, error.remedy)
            )
            unmet = isinstance(error, InfeasibleError | CertificateError)
            return 3 if unmet else 4 if isinstance(error, SignedError) else 1, f"felicific: {error}"
        case BrokenPipeError():
            # Whoever read the output has left: nothing more to say, not even when Python flushes at the end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1, ""
        case ModuleNotFoundError():
            how = f"This needs {error.name}. Install it: pip install 'felicific[app,report]'"
            return 1, f"felicific: {error if 'pip install' in str(error) else how}"
        case OSError():
            what = error.strerror or str(error)
            where = f": {os.fspath(error.filename)!r}" if error.filename is not None else ""
            return 1, f"felicific: {what}{where}. Nothing was written."
        case MemoryError():
            return 1, "felicific: out of memory. Keep fewer columns or rows, or use a larger machine."
        case _ if type(error).__module__.split(".")[0] in ("_duckdb", "duckdb", "pyarrow"):
            return 1, f"felicific: {' '.join(str(error).split())[:300]}"
    return (
        1,
        f"felicific: unexpected {type(error).__name__}: {error}. `--debug` shows where; please report it.",
    )


def _note_warnings(options: Set[str]) -> None:
    """Say a warning in one line, as everything else is said."""
    import warnings

    def show(message: Warning | str, *rest: object) -> None:
        print(f"felicific: note: {with_options(str(message), options)}", file=sys.stderr)

    warnings.showwarning = show  # type: ignore[assignment]  # the rest of its arguments says where, which is no help here
