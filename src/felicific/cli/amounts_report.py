"""``felicific report --predicted``: the page of amounts, on people that the policy was not fitted on."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from felicific._audit.decided import fitted_notes
from felicific._fit.numeric_assessment import AmountTryout
from felicific._people.people import People
from felicific._people.roles import Roles
from felicific._people.sketch import RowSketch
from felicific._policy.lottery import make_salt
from felicific._policy.numeric_fit import fit_amounts
from felicific._problem.numeric import NumericProblem
from felicific._program.numeric_tables import people_in
from felicific._tables.memory import take_rows
from felicific.cli.amounts import opened, refuse_classes, said_of
from felicific.cli.inputs import read_asked
from felicific.cli.model import halves
from felicific.cli.outputs import command_line
from felicific.exceptions import DataError

if TYPE_CHECKING:
    from felicific._policy.numeric import AmountPolicy
    from felicific._report.document import Report
    from felicific._typing import Table
    from felicific.cli.report import ReportOptions

#: Options of a page of decisions that a page of amounts has no use for, and why.
_USELESS = {
    "also": "Leave it out: the page shows the mean amount beside what was asked.",
    "labels": "Leave it out.",
    "decision_name": "Leave it out: amounts have no names.",
}


def report_of_amounts(options: ReportOptions) -> tuple[Report, AmountPolicy]:
    """The page, and the policy that it proposes: fitted on one half of the people, or on all where others are named."""
    refuse_classes(replace(options, test=None))
    for name, what_to_do in _USELESS.items():
        if getattr(options, name) is not None:
            raise DataError(
                f"--{name.replace('_', '-')} is not taken where amounts are predicted.", what_to_do
            )
    rows, said = _read(options, options.file)
    group = said["sensitive_features"]
    by = [group] if isinstance(group, str) else list(group)
    if options.test is None:
        rows, others = halves(rows, by, options.seed)
    else:
        others, _ = _read(options, options.test)
    width, constraints = read_asked(options, said["happiness"], options.gap)
    problem = NumericProblem.finding(
        said["happiness"],
        loss=said["loss"],
        gap=width,
        constraints=constraints,
        decisions=said["decisions"],
    )
    fitting = _people(rows, said)
    fitted = fit_amounts(problem, fitting, salt=make_salt(options.seed))
    tried = _people(others, said, fitted.policy.groups)
    share = RowSketch.of(fitting.x).share(tried.x)
    notes = fitted_notes(share, 0.0, fitted.policy.out_of_fold)
    report = import_module("felicific._report.document")
    told = report.Told(
        period=options.period,
        title=options.title,
        command=command_line(),
        grouped_by=" and ".join(by),
        notes=notes,
        in_sample=" ".join(notes),
    )
    page: Report = report.amounts_report(
        AmountTryout.of(fitted.problem, tried, keys=tried.rows), fitted, told
    )
    return page, fitted.policy


def _read(options: ReportOptions, file: str) -> tuple[Table, dict[str, Any]]:
    """The rows of a file with the columns that are named, and what the options say of them."""
    source, roles = opened(options, file)
    used = [options.predicted, roles.label, *(roles.group or ()), roles.baseline, roles.weight]
    rows = source.select([name for name in dict.fromkeys(used) if name is not None]).read(pandas=True)
    return rows.reset_index(drop=True), said_of(options, roles)


def _people(table: Table, said: dict[str, Any], groups: tuple[Any, ...] | None = None) -> People:
    """People of a table, whose columns are a part of their fingerprint."""
    columns = Roles(
        said["sensitive_features"],
        said["y"],
        predicted=said["predicted"],
        baseline=said["baseline"],
        weight=said["sample_weight"],
    )
    people = people_in(columns, table, groups)
    if people is None:
        raise DataError("Nobody has a positive weight.", "Name other people, or another column of weights.")
    return replace(people, x=take_rows(table, people.rows))
