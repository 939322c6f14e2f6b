"""Other measures of the policy that is proposed: gaps that nobody asked to close, and whether they grow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from felicific._audit.facts import told_once
from felicific._audit.names import labels
from felicific._audit.quantity import SHARE, Quantity
from felicific._audit.result import Interval, interval_to_dict
from felicific._fit.assessment import Assessment
from felicific._fit.tryout import Tryout
from felicific._problem.problem import Problem


def measured_also(assessment: Assessment, also: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """Other measures today and under the policy that is proposed; and those whose gap is shown to grow."""
    if also is None:
        return [], []
    own = assessment.tried.problem
    problem = Problem.of(
        own.decisions,
        also,
        labels=own.labels,
        loss=own.loss,
        favourable=own.favourable,
        see_group=own.see_group,
    )
    people = replace(assessment.tried.people, decisions=own.decisions)
    beside = Assessment(
        tried=Tryout(problem, people, assessment.tried.baseline),
        policy=assessment.policy,
        closed=tuple(range(len(problem.components))),
        confidence=assessment.confidence,
    )
    found, grows = [], []
    names = labels(component.title for component in problem.components)
    for j in told_once(problem.components):
        part, known = beside.before.components[j], beside.known
        gap, change = known.gaps[j], known.gap_changes[j]
        if part.gap is None or gap is None or change is None:
            continue
        halves = [(one.high - one.low) / 2.0 for one in (part.gap, gap, change)]
        unit = part.component.unit or (SHARE if problem.happiness[j].rate else "")
        found.append(
            {
                "name": names[j],
                "unit": unit,
                "step": Quantity.of(unit, halves, [part.gap.estimate, gap.estimate]).step,
                "today": _limits(part.gap),
                "then": _limits(gap),
                "change": _limits(change),
                "groups": [_limits(mean) for mean in known.mean_changes[j]],
                "grows": change.low > 0.0,
            }
        )
        grows += [names[j]] if change.low > 0.0 else []
    return found, grows


def _limits(found: Interval) -> dict[str, Any]:
    told = interval_to_dict(found)
    return {name: told[name] for name in ("estimate", "low", "high")}
