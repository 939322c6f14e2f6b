"""The report as an object: plain data first, then a page made of it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import IO, Any

import numpy as np

from felicific._audit.names import labels
from felicific._audit.quantity import Quantity, common_step
from felicific._audit.result import Audit, plain
from felicific._audit.verdict import Verdict, verdict_of_audit
from felicific._files import write_whole
from felicific._fit.numeric_assessment import AmountTryout, verdict_on_amounts
from felicific._fit.tryout import Tryout
from felicific._frontier.frontier import Frontier
from felicific._policy.numeric_fit import FittedAmounts
from felicific._policy.policy import Policy
from felicific._policy.words import loss_title
from felicific._problem.loss import is_accuracy
from felicific._problem.unions import compared_by
from felicific._report.amounts_content import describe_amounts
from felicific._report.amounts_view import amounts_view
from felicific._report.content import describe_choice
from felicific._report.data import (
    FORMAT,
    NO_FINGERPRINT,
    VERSION,
    Told,
    audited,
    describe_measure,
    methods_of,
    named_by_baseline,
    say,
    versions,
    who_has_labels,
)
from felicific._report.slider import embedded
from felicific._report.view import audit_view, choice_view
from felicific.exceptions import DataError


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """Everything there is to say, and the page that says it.

    Attributes
    ----------
    content : dict
        Plain data, as JSON can hold it; the page is made of nothing else.
    verdict : Verdict
        What the policy that is proposed, or the audit, comes to. Print it, or the report.
    """

    content: dict[str, Any] = field(repr=False)
    verdict: Verdict

    def __str__(self) -> str:
        return str(self.verdict)

    def __repr__(self) -> str:
        return repr(self.verdict)

    def to_dict(self) -> dict[str, Any]:
        """The plain data."""
        copy: dict[str, Any] = json.loads(self.to_json())
        return copy

    def to_json(self) -> str:
        """The plain data as JSON."""
        return json.dumps(named_by_baseline(self.content), indent=1, allow_nan=False) + "\n"

    def to_html(self) -> str:
        """One HTML page that needs no other file; the same content always gives the same text."""
        return self._page

    @cached_property
    def _page(self) -> str:
        return render(self.content)

    def save(self, target: str | os.PathLike[str] | IO[Any]) -> None:
        """Write the page, or its data when the name ends in ``.json``; a file is written whole or not at all.

        Parameters
        ----------
        target : str, Path or open file
            An open file gets the page, as text or as bytes, whichever it takes.
        """
        if hasattr(target, "write"):
            page = self.to_html()
            try:
                target.write(page)
            except TypeError:
                target.write(page.encode("utf-8"))
            return
        kind = Path(target).suffix.lower()
        if kind not in (".html", ".htm", ".json"):
            raise DataError(
                f"A report is not written as {kind!r} ({os.fspath(target)!r}).",
                "End the name in .html or .json.",
            )
        write_whole(target, self.to_json() if kind == ".json" else self.to_html())

    def _repr_html_(self) -> str:
        """For notebooks: a page in a page, so that neither changes how the other looks."""
        page = html.escape(self.to_html(), quote=True)
        return (
            f'<iframe srcdoc="{page}" sandbox="allow-scripts allow-downloads allow-modals" title="felicific report" '
            'style="width: 100%; height: 800px; border: 1px solid #8884; border-radius: 6px"></iframe>'
        )


def choice_report(
    tried: Tryout,
    line: Frontier,
    policy: Policy,
    along: Callable[[Sequence[float]], list[Policy]],
    told: Told,
) -> Report:
    """A report of a policy and the frontier it lies on; see :func:`~felicific._report.content.describe_choice`."""
    content, assessment = describe_choice(tried, line, policy, along, told)
    return Report(content, assessment.verdict)


def amounts_report(tried: AmountTryout, fitted: FittedAmounts, told: Told) -> Report:
    """A report of a policy of amounts; see :func:`~felicific._report.amounts_content.describe_amounts`."""
    content, assessment = describe_amounts(tried, fitted, told)
    return Report(content, verdict_on_amounts(assessment))


def audit_report(found: Audit, **options: Any) -> Report:
    """A report of an audit alone."""
    return Report(describe_audit(found, **options), verdict_of_audit(found))


def describe_audit(
    found: Audit,
    *,
    title: str | None = None,
    command: str | None = None,
    period: str | None = None,
    date: str | None = None,
) -> dict[str, Any]:
    """What a report says about an audit alone."""
    measures = [part.measure for part in found.measures]
    persons, names = found.persons, [part.name for part in found.persons.measures]
    whom = np.asarray(compared_by(persons.left_out, names, found.groups).any(axis=1)).tolist()
    return {
        "format": FORMAT,
        "version": VERSION,
        "kind": "audit",
        "title": title,
        "period": period,
        "date": date,
        "confidence": found.confidence,
        "grouped_by": None,
        "groups": [
            {
                "name": plain(group),
                "people": float(count),
                "compared": one,
                "scores": None,
            }
            for group, count, one in zip(found.groups, persons.sizes.tolist(), whom, strict=True)
        ],
        "measures": [
            describe_measure(part.measure, None)
            | {
                "step": _audit_quantity(part).step,
                "has_gap": part.gap is not None,
                "asked": None if part.test is None else part.test.at_most,
                "closed": False,
                "remark": say(part.remark, measures) if part.at is not None else "",
            }
            for j, part in enumerate(found.measures)
        ],
        "loss": _described_loss(found),
        "baseline": audited(found) | {"requirements": [row.to_dict() for row in found.requirements]},
        "verdict": verdict_of_audit(found).to_dict(),
        # Of an audit, estimates are as if nothing were hidden, and its notes say what intervals hold under.
        "labels": None if found.labels is None else who_has_labels(replace(found.labels, max_odds_ratio=1.0)),
        "ratios": [ratios.to_dict() for ratios in found.shown_ratios or _ratios(found)],
        "notes": [
            say(note, measures)
            for note in (*(part.remark for part in found.measures if part.remark), *found.notes)
        ],
        "methods": methods_of([found], labels(measure.title for measure in measures)),
        "fingerprints": {"people": found.persons.fingerprint or NO_FINGERPRINT},
        "versions": versions(),
        "command": command,
    }


def _described_loss(found: Audit) -> dict[str, Any]:
    """How losses are called and written; those of amounts to what is known of them, a squared one with its root."""
    told = {"name": found.loss_name, "accuracy": is_accuracy(found.loss_name), "step": 1e-4, "majority": None}
    loss = found.loss
    if found.persons.distributions is None or loss is None:
        return told
    halves = [(loss.high - loss.low) / 2.0]
    told |= {"title": loss_title(found.loss_name), "step": common_step(halves, [loss.estimate])}
    if found.loss_name == "squared":
        ends = [math.sqrt(max(end, 0.0)) for end in (loss.low, loss.high)]
        told["root_step"] = common_step([(ends[1] - ends[0]) / 2.0], ends)
    return told


def _audit_quantity(part: Any) -> Quantity:
    """How numbers of a measure of an audit are written: by what is known of its gap, else of its means."""
    told = [part.gap] if part.gap is not None else [*part.means.values()]
    halves = [(one.high - one.low) / 2.0 for one in told if one.n]
    sizes = [one.estimate for one in [*told, *part.means.values()]]
    return Quantity.of(part.measure.unit, halves, sizes)


def _ratios(found: Audit) -> list[Any]:
    """Those of all groups, if there are two that can be compared."""
    return [found.ratios] if len(found.groups) > 1 else []


# ---------------------------------------------------------------------------------------------------------
# From a report's plain data to one HTML page. Everything a reader sees is text by the time a template gets
# it.


HERE = Path(__file__).parent


def render(content: dict[str, Any]) -> str:
    """The page of a choice, of a policy of amounts, or of an audit."""
    if content["kind"] == "audit":
        return render_page("audit.html", **audit_view(content))
    if content["kind"] == "amounts":
        return render_page("amounts.html", **amounts_view(content))
    view = choice_view(content)
    return render_page("page.html", script="script.js", **view | {"data": embedded(view["data"])})


def render_page(template: str, *, script: str = "", **values: Any) -> str:
    """A page in the report's style, which needs no other file and asks nobody for anything.

    Parameters
    ----------
    template : str
        Name of a template that extends ``base.html``; boxes of a verdict are in ``parts.html``.
    script : str
        Name of the only script that may run, beside this file; none may if there is none.
    **values
        For the template; every text in them is escaped.
    """
    code = _file(script) if script else ""
    page: str = (
        _environment()
        .get_template(template)
        .render(style=_file("style.css"), script=code, security=_security(code), **values)
    )
    # A lone surrogate in a name has no place in a file of UTF-8.
    return page.encode("utf-8", "replace").decode("utf-8")


@lru_cache
def _file(name: str) -> str:
    return (HERE / name).read_text("utf-8")


@lru_cache
def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _security(script: str) -> str:
    """Nothing may be loaded from anywhere, and no script may run but the page's own."""
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    runs = f"script-src 'sha256-{digest}'; " if script else ""
    return f"default-src 'none'; style-src 'unsafe-inline'; {runs}base-uri 'none'; form-action 'none'"
