"""The report as an object: plain data first, then a page made of it."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from felicific._amounts.fit import FittedAmounts
from felicific._amounts.tryout import AmountTryout
from felicific._amounts.verdict import verdict_on_amounts
from felicific._audit.result import Audit
from felicific._audit.verdict import Verdict, verdict_of_audit
from felicific._files import write_whole
from felicific._fit.tryout import Tryout
from felicific._frontier.frontier import Frontier
from felicific._policy.policy import Policy
from felicific.exceptions import DataError
from felicific.report.amounts_content import describe_amounts
from felicific.report.audited import describe_audit
from felicific.report.content import describe_choice
from felicific.report.data import named_by_baseline
from felicific.report.told import Told


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
        from felicific.report.page import render  # what a verdict or the data alone do not need

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
    """A report of a policy and the frontier it lies on; see :func:`~felicific.report.content.describe_choice`."""
    content, assessment = describe_choice(tried, line, policy, along, told)
    return Report(content, assessment.verdict)


def amounts_report(tried: AmountTryout, fitted: FittedAmounts, told: Told) -> Report:
    """A report of a policy of amounts; see :func:`~felicific.report.amounts_content.describe_amounts`."""
    content, assessment = describe_amounts(tried, fitted, told)
    return Report(content, verdict_on_amounts(assessment))


def audit_report(found: Audit, **options: Any) -> Report:
    """A report of an audit alone."""
    return Report(describe_audit(found, **options), verdict_of_audit(found))
