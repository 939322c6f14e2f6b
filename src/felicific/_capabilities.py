"""What goes with what: every capability, and through which doors it is to be had.

These rows are the table of ``docs/reference.md`` and the remedies of the errors, and the tests try every cell that says
no. A new capability enters
through few doors and is refused at the others by name; a door where nobody could ask for it is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Door: TypeAlias = Literal["memory", "engine", "sites", "files", "shell", "report"]

#: What each door is.
DOORS: Mapping[Door, str] = {
    "memory": "a table in memory, or `FairClassifier`",
    "engine": "Polars, DuckDB, Dask, Spark, Arrow or Parquet: rows that stay where they are",
    "sites": "`Moments`, which add: `solve(moments)` and `frontier(moments)`; `felicific moments` and `merge`",
    "files": "a policy, or a classifier, that was stored",
    "shell": "`felicific ...` in the shell",
    "report": "`fair.report(...)`, `audit(...).to_html()`",
}


@dataclass(frozen=True)
class No:
    """A refusal: the error that is raised, and what its remedy says to do instead."""

    error: str
    remedy: str


@dataclass(frozen=True)
class Capability:
    """One row: what is wanted, where it is to be had (in these words, or simply), and where it is refused."""

    name: str
    words: str
    had: Mapping[Door, str]
    refused: Mapping[Door, No]


def _row(
    name: str, words: str, had: str, *, notes: Mapping[Door, str] | None = None, **refused: No
) -> Capability:
    doors: dict[Door, str] = {door: "" for door in DOORS if door in had.split()}
    refusals: dict[Door, No] = {door: refused[door] for door in DOORS if door in refused}
    return Capability(name, words, doors | dict(notes or {}), refusals)


_COLLECT = No("DataError", "collect a lazy one first")
_PEOPLE = No(
    "DataError",
    "Use solve(table, policy='individual', ...), which takes the same columns, or FairClassifier.",
)
_COLUMNS_ONLY = No(
    "DataError",
    "Use policy.apply(table, ...), where Python runs; or fit one that sees the score, policy='score'.",
)
_LATE = No("MomentsError", "pass the table instead of its moments")
_IN_MEMORY = No("DataError", "collect the table into memory")
_EVERYWHERE = "memory engine sites files shell report"

CAPABILITIES: tuple[Capability, ...] = (
    _row("classes", "more than two classes", _EVERYWHERE),
    _row("groups", "more than two groups, of several columns", _EVERYWHERE),
    _row(
        "requirements",
        "`Gap`, `Ratio`, `Floor`, `Budget`, `Losers`, of several components and attributes",
        "memory engine sites shell report",
    ),
    _row(
        "explore",
        "`Explore`: everybody keeps a chance of a decision",
        "memory engine files shell report",
        notes={"sites": "of the last class unless it is named"},
    ),
    _row(
        "explain",
        "why, for one person: `explain`",
        "memory files shell",
        engine=_COLLECT,
    ),
    _row(
        "steer",
        "`policy.steer(...)`: closing a gap while deciding",
        "memory files shell",
        engine=No("DataError", "Collect the table first, or name the file in the shell."),
    ),
    _row(
        "steer classes",
        "the same with cells of more than two classes",
        "",
        memory=No("DataError", "Fit policy='individual', which is steered with any number of classes."),
    ),
    _row(
        "decisions",
        "decisions that are not labels, `decisions=`, of policies of every kind, and their audits",
        "memory engine sites files shell report",
    ),
    _row(
        "decisions without today",
        "the same where nobody says what is decided today: gains and losses are left out, and a report compares with "
        "the least loss without requirements",
        "memory engine sites files shell report",
    ),
    _row(
        "drawn decisions without today",
        "the same of policies that see a label drawn by lot, policy='soft-label'",
        "memory engine sites files shell",
        report=No("DataError", "Pass today=, the column of what was really decided."),
    ),
    _row(
        "decisions steer",
        "steering policies of decisions that are not labels",
        "",
        memory=No("DataError", "Fit policy='individual', which is steered whatever is decided."),
    ),
    _row(
        "steer blind",
        "the same without the group",
        "",
        memory=No(
            "DataError", "Fit a policy that sees the group, group_at_predict=True, or audit the decisions."
        ),
    ),
    _row(
        "steer labels",
        "the same for happiness that looks at the label",
        "",
        memory=No(
            "HappinessError", "Steer happiness that does not, and audit this one once labels are known."
        ),
    ),
    _row(
        "steer explore",
        "the same where people keep a chance, `Explore`",
        "",
        memory=No("ConstraintError", "Fit it without Explore(...), or decide by the policy as it is."),
    ),
    _row(
        "steer others",
        "the same for `Ratio`, `Losers`, `between=` and `min_people=`",
        "",
        memory=No("ConstraintError", "Say which gap between all groups is to be kept instead: gap=number."),
    ),
    _row("odds", "the odds beside every decision, `odds=True`", "memory engine files shell"),
    _row("fractions", "an `among` that looks at the decision, such as `precision_parity`", _EVERYWHERE),
    _row(
        "fraction promises",
        "a safe fit of it (a band, and `alternatives`, are refused as well)",
        "",
        memory=No("ConstraintError", "Leave confidence out, and audit the policy on rows it has not seen."),
    ),
    _row(
        "functions",
        "a Python function as happiness",
        _EVERYWHERE,
        notes={"engine": "batch by batch, if it is no expression"},
    ),
    _row(
        "values",
        "a model without probabilities: cells of its decision function",
        "report",
        notes={
            "memory": "by `FairClassifier`",
            "engine": "deciding and auditing",
            "files": "with its cuts",
            "shell": "deciding and auditing",
        },
        sites=No("DataError", "Pass what predict_proba returns"),
    ),
    _row("individual", '`policy="individual"`', "memory engine files shell report", sites=_PEOPLE),
    _row(
        "individual functions",
        '`policy="individual"` with a Python function',
        "memory engine shell report",
        sites=_PEOPLE,
        files=No("PolicyFileError", "Pass happiness= with functions"),
    ),
    _row("sql", "a policy of cells as SQL, `to_sql`, `felicific sql`", "memory files shell"),
    _row("individual sql", "an individual policy as SQL", "", memory=_COLUMNS_ONLY, shell=_COLUMNS_ONLY),
    _row("blind", "deciding without the group", _EVERYWHERE),
    _row(
        "blind individual",
        '`policy="individual"` without the group',
        "files report",
        notes={
            "memory": "with `group_proba=`; `FairClassifier` fits a model of the group where there is none",
            "engine": "with `group_proba=`",
            "shell": "with `--group-proba`",
        },
        sites=_PEOPLE,
    ),
    _row(
        "missing labels",
        "`missing_labels=`, people of whom some have no label",
        "memory engine sites files shell report",
        notes={"engine": "batch by batch", "sites": "`hidden=` of `solve` and `frontier` needs no new sums"},
    ),
    _row(
        "individual missing labels",
        "the same by individual policies (of worst cases, the loss only)",
        "memory files shell report",
        engine=No("DataError", "Collect the table first, or use policy='score'."),
        sites=_PEOPLE,
    ),
    _row(
        "recalibrate",
        "`fair.recalibrate(X_new)`",
        "memory report",
        notes={"files": "`felicific recalibrate`", "shell": "with `--labelled`, or an individual policy"},
        engine=_COLLECT,
    ),
    _row("frontier", "the frontier", _EVERYWHERE),
    _row(
        "individual frontier",
        "the frontier of individual policies",
        "memory shell report",
        engine=No("DataError", "Collect the table first, or use policy='score'."),
        sites=_LATE,
        files=No("DataError", "Fit it again, or use policy='score'."),
    ),
    _row("safe fit", "a safe fit, `confidence=`", "memory shell report", engine=_COLLECT),
    _row("clusters", "`cluster=`, rows that are not independent", "memory engine shell report"),
    _row("band", "limits along a frontier", "memory report", engine=_COLLECT),
    _row("audit", "an audit of a column of decisions, or of a policy", "memory engine files shell report"),
    _row(
        "audit missing labels",
        "an audit with `missing_labels=`",
        "memory files report",
        engine=No("DataError", "Collect the table first, or name the file in the shell."),
    ),
    _row(
        "audit amounts",
        "an audit of amounts (hours, limits, rates, a regressor), and how far apart their distributions are",
        "memory engine shell report",
    ),
    _row(
        "amounts missing labels",
        "the same with `missing_labels=`",
        "",
        memory=No("DataError", "Leave y= out, or audit the people who have a label."),
    ),
    _row(
        "watch amounts",
        "`watch(...)` of amounts",
        "",
        memory=No("DataError", "Amounts can be audited, audit(..., amounts=True), and not watched."),
    ),
    _row(
        "amounts",
        "amounts by what a regressor predicts: `FairRegressor`, `solve(..., prediction=...)`, `--prediction`",
        "memory files shell",
        notes={
            "engine": "from sums in fine bins; a policy is applied to every row",
            "sites": "`moments(prediction=..., decisions=(low, high))`",
        },
    ),
    _row(
        "amounts losses",
        "the same with other losses than the squared error, or with `today=`",
        "memory shell",
        engine=_IN_MEMORY,
        sites=_IN_MEMORY,
    ),
    _row("amounts sql", "a policy of amounts as SQL", "memory files shell"),
    _row(
        "amounts among classes",
        "such a policy where classes are decided among: `explain`, `steer`, `watch`, audits by a policy, MLflow",
        "",
        memory=No("DataError", "and audit the column of amounts"),
    ),
    _row("ratios", "its ratios, `audit(...).ratios`; `missing_group=`", "memory engine files shell report"),
    _row(
        "audit classifier",
        "an audit of a classifier",
        "memory files report",
        engine=No(
            "DataError",
            "Name the column that holds them (policy.apply(table, ...) makes one), or pass a Policy "
            "(fair.policy_ is one) and proba=.",
        ),
    ),
    _row(
        "betting",
        '`method="betting"`',
        "memory shell report",
        engine=No("DataError", "Use method='bernstein' or 'auto', or collect the table first."),
    ),
    _row(
        "compare",
        "`compare(before, after)`",
        "memory shell report",
        engine=No("DataError", "Collect the table and audit it again."),
    ),
    _row(
        "watch",
        "`watch(...)`: whether a gap has opened, looked at as often as one likes",
        "memory files shell",
        notes={"engine": "in the order of the rows; Spark has none"},
    ),
    _row(
        "alternatives",
        "`alternatives(...)`",
        "memory shell",
        engine=No("DataError", "Collect the table first, or name the file in the shell."),
    ),
)


def remedy(name: str, door: Door) -> str:
    """What to do instead of a capability that is refused at a door: the end of the error that is raised there."""
    return next(row.refused[door].remedy for row in CAPABILITIES if row.name == name)
