"""How a function of one options object becomes a command of the command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from felicific.cli.options import PANELS

Options = TypeVar("Options")

#: What is raised when a command was typed wrongly: click's class, which some versions of typer carry along themselves.
USAGE: Any = typer.BadParameter.__base__


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
