"""Write the tables of docs/reference.md that come from the code: python docs/reference.py.

Public names with the first sentence of their docstrings, results with what they hold, and criteria with their words.
``tests/test_reference.py`` compares the page with the code.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

import felicific
from felicific._problem.criteria import ROWS

PAGE = Path(__file__).with_name("reference.md")

#: What is returned and not imported: the module and class, and where it comes from.
RESULTS = {
    "_frontier.frontier.Frontier": "`frontier(...)`, `fair.frontier_`",
    "_policy.steering.Steering": "`policy.steer(...)`, `load(path, policy=...)`",
    "_audit.result.Audit": "`audit(...)`",
    "_audit.comparison.Comparison": "`compare(...)`",
    "_audit.monitored.Monitor": "`monitor(...)`, `load(path)`",
    "_program.aggregates.Aggregates": "`aggregate(...)`, `fair.aggregates_`, `load(path)`",
    "_program.aggregates.Outcome": "`policy.outcome`, `aggregates.baseline`, `frontier.baseline`",
    "_policy.basis.Basis": "`policy.basis`",
    "_policy.explanation.Explanation": "`fair.explain(row)`, `policy.explain(scores, group)`",
    "_policy.explanation.Cut": "`explanation.cuts`",
    "_policy.explanation.Draw": "`explanation.draw`",
    "_policy.explanation.Weighed": "`explanation.weighed`, of an individual policy",
    "_policy.explanation.Paid": "`explanation.requirements`",
    "_policy.individual.Search": "`policy.search`, of an individual policy",
    "_policy.controls.Control": "`steering.controls`",
    "_policy.steering_state.Point": "`steering.history`",
    "_policy.numeric.AmountPolicy": "`FairRegressor(...).fit(X, y).policy_`, `solve(...)` of amounts",
    "_policy.numeric_individual.IndividualAmountPolicy": "the same with `policy='individual'`",
    "_policy.numeric_outcome.AmountOutcome": "`outcome`, `baseline` and `unconstrained` of these",
    "_policy.numeric_outcome.Distance": "`outcome.distance`",
    "_policy.lines.Line": "`lines` of a policy of amounts",
    "_policy.lines.Atom": "`line.atoms`",
    "_frontier.numeric.AmountFrontier": "`fair.frontier_` of a `FairRegressor`, `frontier(...)` of amounts",
    "_program.numeric.AmountAggregates": "`aggregate(...)` of amounts",
    "_audit.verdict.Verdict": "`fair.verdict_`, `fair.report(X, y).verdict`, `audit(...).verdict`",
    "_audit.flags.Flag": "`verdict.flags`",
    "_fit.certificate.Certificate": "`fair.certificate_`",
    "_problem.linear.Goal": "`policy.basis.requirements`",
    "_program.label_completion.KnownLabels": "`fair.labels_`, `policy.labels`, where labels are missing",
    "_problem.exploration.Explored": "`policy.explore`",
    "_frontier.curve.Curve": "`frontier.on(...)`, `fair.frontier_on(X, y)`",
    "_audit.band.Band": "`frontier.band(...)`, `fair.frontier_on(X, y, confidence=0.95)`",
    "_audit.result.MeasureAudit": '`audit(...).measures`, `audit(...)["name"]`',
    "_audit.result.Interval": "`audit(...).loss`, and every mean and gap of audits and comparisons",
    "_audit.result.GapTest": '`audit(..., gap=...)["name"].test`',
    "_audit.ratios.Ratios": "`audit(...).ratios`, `audit(...).ratios_between(...)`",
    "_audit.result.RequirementAudit": "`audit(...).requirements`",
    "_audit.ratios.RatioAudit": '`audit(...).ratios["name"]`',
    "_audit.ratios.GroupRatio": '`audit(...).ratios["name"].rows`',
    "_audit.ratios.GroupMean": "`.left_out` of these",
    "_audit.monitored.Alarm": "`monitor(...).alarm`",
    "_audit.comparison.Change": '`compare(...).measures`, `compare(...)["name"]`',
    "_fit.candidates.Alternatives": "`alternatives(...)`",
    "_fit.candidates.Alternative": '`alternatives(...).rows`, `alternatives(...)["name"]`, `alternatives(...).best`',
    "_statistics.sample_size.SampleSize": "`sample_size(...)`",
    "_report.document.Report": "`fair.report(X, y)`",
    "datasets._dataset.Dataset": "`felicific.datasets.synthetic_loans()` and its like",
}

#: What users call of classes of which the rest serves inside; of all others everything is shown.
MEMBERS: Mapping[str, tuple[str, ...]] = {
    "Policy": (
        "decide", "probabilities", "apply", "steer", "explain", "to_sql", "sentences", "rules", "impact", "outcomes",
        "loss", "gaps", "gap", "means", "reached", "not_constrained", "expected_gaps", "expected_reached", "cautions",
        "change_cost", "rounded", "save", "to_json", "from_json", "sha256", "resalted",
    ),
    "Monitor": (
        "add", "evidence", "needed", "gaps", "along", "allowed", "measures", "rows", "notes", "sentences",
        "plot", "save", "to_json", "from_json", "to_dict",
    ),
    "Steering": (
        "decide", "decided", "controls", "gap", "bound", "added", "means", "people", "limited", "history", "aim",
        "pace", "reach", "hear", "policy", "plot", "save",
    ),
    "Aggregates": ("people", "baseline", "evaluate", "merged", "joined", "save", "to_json", "from_json"),
    **dict.fromkeys(("Gap", "Ratio", "Floor", "Budget", "WorseOff", "Exploration", "MissingLabels"), ()),
    **dict.fromkeys(("Happiness", "Score", "Individual"), ()),
}  # fmt: skip


def first_line(value: object) -> str:
    """What a docstring says first, for a table of Markdown."""
    line = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")
    line = re.sub(r":(?:func|class|meth|math):`~?([^`]*)`", r"`\1`", line)
    return line.replace("``", "`").replace("|", "\\|")


def names() -> Iterator[str]:
    """Every public name."""
    yield "| name | |"
    yield "|---|---|"
    for name in felicific.__all__:
        value = getattr(felicific, name)
        called = f"`{name}`" if inspect.isclass(value) else f"`{name}(...)`"
        yield f"| {called} | {first_line(value)} |"


def results() -> Iterator[str]:
    """What is returned and not imported, with all that it holds."""
    for place, origin in RESULTS.items():
        module, _, name = place.rpartition(".")
        kind = getattr(import_module(f"felicific.{module}"), name)
        yield f"**{name}**, from {origin}. {first_line(kind)}"
        yield f"It has {', '.join(members(kind))}."
        yield ""


def members(kind: type) -> list[str]:
    """Fields, properties and methods, in their order; of some classes those that users call."""
    if kind.__name__ in MEMBERS:
        return [
            f"`{name}()`" if callable(getattr(kind, name)) else f"`{name}`" for name in MEMBERS[kind.__name__]
        ]
    if dataclasses.is_dataclass(kind):
        held = [f"`{field.name}`" for field in dataclasses.fields(kind)]
    else:
        held = [f"`{name}`" for name in inspect.get_annotations(kind)]
    bases = [kind, *(base for base in kind.__bases__ if base.__name__ == "SaltedPolicy")]
    for name, member in (pair for base in bases for pair in vars(base).items()):
        shown = inspect.isfunction(member) or isinstance(member, property)
        if shown and not name.startswith("_") and f"`{name}`" not in held:
            held.append(f"`{name}`" if isinstance(member, property) else f"`{name}()`")
    return held


def criteria() -> Iterator[str]:
    """Every criterion, in the words of its row."""
    yield "| `happiness=` | what it measures, in every group | by the name | also called |"
    yield "|---|---|---|---|"
    for row in ROWS:
        also = ", ".join(f'`"{other}"`' for other in row.also)
        yield f'| `"{row.name}"` | {row.words} | {", ".join(row.measures)} | {also} |'


BLOCKS = {"names": names, "results": results, "criteria": criteria}


def written(page: str) -> str:
    """The page with its blocks as the code has them."""
    for block, lines in BLOCKS.items():
        text = "\n".join(lines()).strip()
        pattern = re.compile(rf"(<!-- {block} -->\n).*?(<!-- end of {block} -->)", re.DOTALL)
        page, count = pattern.subn(lambda match, text=text: f"{match[1]}{text}\n{match[2]}", page)
        assert count == 1, f"{count} blocks called {block}"
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
    print(f"wrote {PAGE}")
