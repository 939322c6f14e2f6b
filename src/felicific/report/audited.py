"""What a report says about an audit alone, as plain data."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from felicific._audit.facts import told_once
from felicific._audit.names import labels
from felicific._audit.quantity import Quantity, common_step
from felicific._audit.result import Audit, plain
from felicific._audit.verdict import verdict_of_audit
from felicific._policy.amount_words import loss_title
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
                "remark": say(part.remark, components) if part.at is not None else "",
            }
            for j, part in enumerate(found.components)
        ],
        "loss": _described_loss(found),
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
    """How numbers of a component of an audit are written: by what is known of its gap, else of its means."""
    told = [part.gap] if part.gap is not None else [*part.means.values()]
    halves = [(one.high - one.low) / 2.0 for one in told if one.n]
    sizes = [one.estimate for one in [*told, *part.means.values()]]
    return Quantity.of(part.component.unit, halves, sizes)


def _ratios(found: Audit) -> list[Any]:
    """Those of all groups, if there are two that can be compared."""
    return [found.ratios] if len(found.groups) - len(found.unknown) > 1 else []
