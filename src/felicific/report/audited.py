"""What a report says about an audit alone, as plain data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from felicific._audit.facts import told_once
from felicific._audit.names import labels
from felicific._audit.quantity import Quantity
from felicific._audit.result import Audit, plain
from felicific._audit.verdict import verdict_of_audit
from felicific._problem.loss import is_accuracy
from felicific.report.data import (
    FORMAT,
    NO_FINGERPRINT,
    VERSION,
    audited,
    describe_component,
    methods_of,
    say,
    versions,
    who_has_labels,
)


def describe_audit(
    found: Audit,
    *,
    title: str | None = None,
    command: str | None = None,
    period: str | None = None,
    date: str | None = None,
) -> dict[str, Any]:
    """What a report says about an audit alone."""
    components = [part.component for part in found.components]
    unknown, once = {*map(str, found.unknown)}, told_once(components)
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
                "compared": str(group) not in unknown,
                "scores": None,
            }
            for group, count in zip(found.groups, found.persons.sizes.tolist(), strict=True)
        ],
        "components": [
            describe_component(part.component, None)
            | {
                "step": _audit_quantity(part).step,
                "has_gap": part.gap is not None,
                "asked": None if part.test is None else part.test.at_most,
                "closed": False,
                "complement": j not in once,
            }
            for j, part in enumerate(found.components)
        ],
        "loss": {
            "name": found.loss_name,
            "accuracy": is_accuracy(found.loss_name),
            "step": 1e-4,
            "majority": None,
        },
        "today": audited(found) | {"requirements": [row.to_dict() for row in found.requirements]},
        "verdict": verdict_of_audit(found).to_dict(),
        # Of an audit, estimates are as if nothing were hidden, and its notes say what intervals hold under.
        "labels": None if found.labels is None else who_has_labels(replace(found.labels, hidden=1.0)),
        "ratios": [ratios.to_dict() for ratios in found.shown_ratios or _ratios(found)],
        "notes": [
            say(note, components)
            for note in (*(part.remark for part in found.components if part.remark), *found.notes)
        ],
        "methods": methods_of([found], labels(component.title for component in components)),
        "fingerprints": {"people": found.persons.fingerprint or NO_FINGERPRINT},
        "versions": versions(),
        "command": command,
    }


def _audit_quantity(part: Any) -> Quantity:
    """How numbers of a component of an audit are written: by what is known of its gap, else of its means."""
    told = [part.gap] if part.gap is not None else [*part.means.values()]
    halves = [(one.high - one.low) / 2.0 for one in told if one.n]
    sizes = [one.estimate for one in [*told, *part.means.values()]]
    return Quantity.of(part.component.unit, halves, sizes)


def _ratios(found: Audit) -> list[Any]:
    """Those of all groups, if there are two that can be compared."""
    return [found.ratios] if len(found.groups) - len(found.unknown) > 1 else []
