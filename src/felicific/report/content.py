"""What a report says, as plain data: everything is computed here, and nothing after it."""

from __future__ import annotations

import hashlib
import math
import platform
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from felicific._audit.band import band_along
from felicific._audit.comparison import Comparison, compare
from felicific._audit.measured import judged, measure
from felicific._audit.names import labels
from felicific._audit.persons import EachPerson
from felicific._audit.result import Audit, plain, plain_all
from felicific._fit.certificate import Certificate
from felicific._fit.losers import LosersRow
from felicific._fit.tryout import Tried, Tryout
from felicific._frontier.breakpoints import tau_of
from felicific._frontier.frontier import Frontier
from felicific._policy.basis import write_outcome
from felicific._policy.expected import outlook
from felicific._policy.policy import Policy, Wording
from felicific._problem.change import EVERY_GROUP_LOSES, losing, remedy_of
from felicific._problem.criteria import CRITERIA
from felicific._problem.happiness import Counted, Happiness
from felicific._problem.problem import Problem
from felicific._program.known_labels import SOURCES, KnownLabels
from felicific._program.moments import Outcome
from felicific._tables.memory import all_columns, is_frame
from felicific._typing import Floats
from felicific.plots import policy_steps

FORMAT, VERSION = "felicific report", 1

#: Most round numbers among the positions of the slider; at least two fifths of them.
POSITIONS = 60

#: Most sentences that a position spells out.
SENTENCES = 60

#: What stands for the fingerprint of people whose rows were summed where they are.
NO_FINGERPRINT = "none (the rows are not in memory)"


def describe_choice(
    tried: Tryout,
    line: Frontier,
    policy: Policy,
    *,
    confidence: float = 0.95,
    title: str | None = None,
    grouped_by: Any = None,
    model: str | None = None,
    command: str | None = None,
    certificate: Certificate | None = None,
    chosen: str | None = None,
    notes: Sequence[str] = (),
    losers: Sequence[LosersRow] = (),
) -> dict[str, Any]:
    """Everything a report says about a policy, the frontier it lies on and some people, as plain data.

    Parameters
    ----------
    tried : Tryout
        People with labels and everything the model says about them, and what is asked; best not those the policy was
        fitted on.
    line : Frontier
        All the policies there are to choose from.
    policy : Policy
        The one that is proposed.
    chosen : str, optional
        Why a policy of this kind, if nobody asked for one.
    notes : sequence of str
        What to beware of.
    losers : sequence of LosersRow
        What it costs that fewer people lose, on the people that the policy was fitted on.
    """
    problem = tried.problem
    wording, widths = _wording(policy), problem.widths
    about: dict[str, Any] = {"confidence": confidence, "loss_name": problem.loss.name}
    before = measure(tried.measured(tried.odds_today, drawn=False), widths, **about)
    odds = tried.odds(policy)
    persons = tried.measured(odds, drawn=policy.draws_lots)
    after = measure(persons, widths, **about)
    after = replace(after, requirements=judged(after, policy, before.persons.means))
    proposed = _Proposed(policy, _sentences([policy], wording)[0], tried.tried(odds), persons)
    today, change = before.to_dict(), compare(before, after)
    return {
        "format": FORMAT,
        "version": VERSION,
        "kind": "choice",
        "title": title,
        "confidence": confidence,
        "decisions": plain_all(problem.decisions.tolist()),
        "model": model,
        "grouped_by": plain(grouped_by) if isinstance(grouped_by, str | None) else str(grouped_by),
        "groups": [
            {"name": group, "people": count}
            for group, count in zip(today["groups"], persons.sizes.tolist(), strict=True)
        ],
        "components": [
            _component(happiness) | {"title": component.title, "tells_who": component.tells_who}
            for happiness, component in zip(problem.happiness, problem.components, strict=True)
        ],
        "loss": line.loss_name,
        "today": today,
        "after": after.to_dict(),
        "change": change.to_dict() | {"remarks": _remarks(change)},
        "policy": _policy(problem, policy, proposed.rules) | {"chosen": chosen, "outlook": outlook(policy)},
        "frontier": _frontier(tried, line, proposed, wording, confidence),
        "certificate": None if certificate is None else certificate.to_dict(),
        "notes": [*notes],
        "points": {name: write_outcome(point) for name, point in policy.outcomes.items()},
        "story": policy.story(),
        "labels": None if policy.labels is None else _labels(policy.labels),
        "losers": [
            {
                "at_most": row.at_most,
                "loss": row.loss,
                "loses": None if row.loses is None else [row.loses.get(group) for group in line.groups],
            }
            for row in losers
        ],
        "reproduce": reproduce(tried, command),
    }


def _labels(known: KnownLabels) -> dict[str, Any]:
    """Who has a label, group by group, and what is supposed of the others."""
    numbers = ("share", "standing", "effective", "below")
    return {
        "groups": plain_all(known.groups),
        "label": plain(known.classes[-1]),
        **{name: _numbers(getattr(known, name)) for name in numbers},
        "seen": _numbers(known.seen[:, -1]),
        "imputed": _numbers(known.imputed[:, -1]),
        "source": SOURCES[known.source],
        "hidden": plain(known.hidden) if math.isfinite(known.hidden) else "inf",
        "condition": known.condition if known.hidden > 1 else "",
        "cautions": known.cautions(),
    }


def _remarks(change: Comparison) -> list[str]:
    """What a comparison says, with what to do where every group loses by a policy."""
    losers = (
        part.component
        for part in change.components
        if losing(part.component, *(np.array([*means.values()]) for means in (part.before, part.after)))
    )
    return [
        f"{text} {remedy_of(next(losers))}" if text.startswith(EVERY_GROUP_LOSES) else text
        for text in change.remarks
    ]


def describe_audit(found: Audit, *, title: str | None = None, command: str | None = None) -> dict[str, Any]:
    """What a report says about an audit alone."""
    counts = found.persons.sizes
    return {
        "format": FORMAT,
        "version": VERSION,
        "kind": "audit",
        "title": title,
        "confidence": found.confidence,
        "groups": [
            {"name": plain(group), "people": float(count)}
            for group, count in zip(found.groups, counts.tolist(), strict=True)
        ],
        "components": [
            {
                "name": part.component.name,
                "title": part.component.title,
                "unit": part.component.unit,
                "words": "",
                "among": "",
                "tells_who": part.component.tells_who,
            }
            for part in found.components
        ],
        "today": found.to_dict(),
        # Of an audit, estimates are as if nothing were hidden, and its notes say what intervals hold under.
        "labels": None if found.labels is None else _labels(replace(found.labels, hidden=1.0)),
        "ratios": [ratios.to_dict() for ratios in found.shown_ratios or _ratios(found)],
        "reproduce": {
            "versions": versions(),
            "fingerprint": found.persons.fingerprint or NO_FINGERPRINT,
            "command": command,
        },
    }


def _ratios(found: Audit) -> list[Any]:
    """Those of all groups, if there are two that can be compared."""
    return [found.ratios] if len(found.groups) - len(found.unknown) > 1 else []


# ---------------------------------------------------------------------------------------------------------
# What is decided, about whom


#: What the denominator of a fraction means.
WHO_IS_COUNTED = "the share of people who are counted, which depends on the decisions"


def _component(happiness: Happiness) -> dict[str, Any]:
    """A component and what it means: the words of its function, as far as it has any."""
    return {
        "name": str(happiness.name),
        "unit": str(happiness.unit),
        "words": WHO_IS_COUNTED
        if isinstance(happiness, Counted)
        else _words(happiness.function, happiness.family),
        "among": ""
        if happiness.among is None or happiness.family in CRITERIA
        else _words(happiness.among, None) or "some of the people",
        "looks_at_y": happiness.looks_at_y,
        "bounds": None if happiness.bounds is None else list(happiness.bounds),
    }


def _words(function: Any, family: Any) -> str:
    """What a function says of itself: the text of an expression, a criterion's meaning, or its first sentence."""
    if family in CRITERIA:
        return CRITERIA[family].words
    text = getattr(function, "text", None)
    if isinstance(text, str):
        return text
    described = hasattr(function, "__name__") or type(function).__module__.split(".")[0] != "felicific"
    doc = (getattr(function, "__doc__", None) or "") if described else ""
    return " ".join(doc.strip().split("\n\n")[0].split())


def _policy(problem: Problem, policy: Policy, rules: list[str]) -> dict[str, Any]:
    gap = problem.gaps
    # Where somebody is not compared, a policy remembers a gap of all others, which is said anyway.
    said = {
        f"gap of {c.name!r} at most {c.quantity(gap[c.name])}"
        for c in policy.components
        if gap and c.name in gap
    }
    return {
        "kind": policy.kind,
        "gaps_allowed": None if gap is None else {str(name): plain(width) for name, width in gap.items()},
        "constraints": [
            *(asked.words for asked in policy.basis.requirements if asked.words not in said),
            *(one.chance.words for one in policy.explore),
        ],
        "see_group": policy.see_group,
        "randomize": policy.randomize,
        "sentences": rules,
        "premises": policy.premises(),
        "steps": None if policy.sees_x else policy_steps(policy),
    }


def _sentences(policies: Sequence[Policy], wording: Wording) -> list[list[str]]:
    """Policies that differ in their probabilities alone in words, as many sentences of each as a reader reads."""
    said = []
    for rules in policies[0].rules_along(policies, 4, wording) if policies else []:
        left = len(rules) - SENTENCES
        more = f"And {left} more such sentences; see the policy's file."
        said.append(rules if left <= 0 else [*rules[:SENTENCES], more])
    return said


def _wording(policy: Policy) -> Wording:
    """Names cut to a readable length."""
    titles = labels([component.title for component in policy.components])
    groups, decisions = [*policy.groups], policy.classes.tolist()
    return Wording(
        _quoted(groups, labels(groups)),
        _quoted(decisions, labels(decisions)),
        [repr(title) for title in titles],
    )


def _quoted(values: list[Any], texts: list[str]) -> list[str]:
    """Text in quotation marks, numbers without."""
    return [
        f"\N{LEFT DOUBLE QUOTATION MARK}{text}\N{RIGHT DOUBLE QUOTATION MARK}"
        if isinstance(value, str)
        else text
        for value, text in zip(values, texts, strict=True)
    ]


# ---------------------------------------------------------------------------------------------------------
# The choice


class _Proposed(NamedTuple):
    """The policy that is proposed, in words, and what it does to the people and to each of them."""

    policy: Policy
    rules: list[str]
    tried: Tried
    persons: EachPerson


def _frontier(
    tried: Tryout, line: Frontier, proposed: _Proposed, wording: Wording, confidence: float
) -> dict[str, Any]:
    """The frontier, and everything about the positions that the slider can take."""
    policy = proposed.policy
    ray, points, today = line.ray, line.points, line.today
    tau_today, tau_policy = tau_of(today, ray), tau_of(policy.outcome, ray)
    marked = _marked(points[0].tau, points[-1].tau, tau_today, tau_policy)
    # Where neighbours do not mix, between two that were solved for there is nothing to be said.
    mixes = line.mixes
    solved = None if mixes else line.tau.tolist()
    marked = marked if solved is None else _nearest(marked, solved)
    taus = positions(list(marked.values()), max(points[-1].tau, tau_policy), solved)
    chosen = taus.index(marked["proposed policy"])
    others = [tau for i, tau in enumerate(taus) if i != chosen]
    places = [replace(place, randomize=policy.randomize) for place in line.along(others)]
    # Of equally good policies the fitted one need not be the frontier's.
    tried_all, said, everywhere = tried.try_all(places), _sentences(places, wording), [*places]
    tried_all.insert(chosen, proposed.tried)
    said.insert(chosen, proposed.rules)
    everywhere.insert(chosen, policy)
    bounds, prices = _bounds(tried, line, proposed, taus, chosen, confidence), _numbers(line.price_at(taus))
    return {
        "ray": _numbers(ray),
        "tolerance": line.tolerance,
        "mixes": mixes,
        "breakpoints": [{"tau": point.tau, **_outcome(point.outcome)} for point in points],
        "today": {"tau": tau_today, "fitted": _outcome(today), **_outcome(tried.today)},
        "positions": [
            {
                "tau": tau,
                "names": [name for name, where in marked.items() if where == tau],
                "allowed": [tau * unit if math.isfinite(unit) else None for unit in ray.tolist()],
                "fitted": _outcome(everywhere[i].outcome),
                **_outcome(tried_all[i]),
                "bound": bounds[i],
                "price": prices[i],
                "moves": tried_all[i].moves.tolist(),
                "sentences": said[i],
            }
            for i, tau in enumerate(taus)
        ],
    }


def _marked(least: float, most: float, tau_today: float, tau_policy: float) -> dict[str, float]:
    """Positions that have a name."""
    marked = {
        "least gap": least,
        "half of today's gap": min(tau_today / 2, most),
        "proposed policy": tau_policy,
    }
    marked |= {"least loss": most} | ({"today's gap": tau_today} if tau_today < most else {})
    # What differs from an end by rounding alone is that end.
    rounding = 1e-9 * max(most, tau_policy)
    ends = {name: most if abs(tau - most) <= rounding else tau for name, tau in marked.items()}
    return {name: least if tau <= least + rounding else tau for name, tau in ends.items()}


def _nearest(marked: dict[str, float], solved: list[float]) -> dict[str, float]:
    """Positions that have a name, but for the policy itself: the loosest solved one that keeps to each."""
    return {
        name: tau if name == "proposed policy" else max((at for at in solved if at <= tau), default=solved[0])
        for name, tau in marked.items()
    }


def _bounds(
    tried: Tryout, line: Frontier, proposed: _Proposed, taus: list[float], chosen: int, confidence: float
) -> list[dict[str, Any] | None]:
    """Limits of the gaps and the loss at every position, which hold along the whole frontier and for the policy.

    Rounded decisions have none: they are no mixtures of those at the breakpoints.
    """
    if not proposed.policy.randomize or any(component.over for component in line.components):
        return [None] * len(taus)
    corners = line.tau
    most = float(corners[-1])
    # The policy stands behind the end of the frontier.
    beyond = 2.0 * most + 1.0

    ways = tried.persons_along(line.policies, last=proposed.persons)
    band = band_along(line, np.append(corners, beyond), ways, confidence)
    gaps, losses = band.along([beyond if i == chosen else min(tau, most) for i, tau in enumerate(taus)])
    return [
        {"gaps": [_numbers(limits) for limits in at], "loss": _numbers(loss)}
        for at, loss in zip(gaps, losses, strict=True)
    ]


def positions(marked: list[float], reach: float, solved: list[float] | None = None) -> list[float]:
    """Places for the slider: round numbers from the least gap to the largest, and those that have a name.

    Or, in the place of round numbers, those that were ``solved`` for.
    """
    low = min(marked)
    if solved is not None:
        near = 1e-9 * reach
        return sorted({*(tau for tau in solved if min(abs(tau - m) for m in marked) > near), *marked})
    if reach <= low:
        return [low]
    step = round_step((reach - low) / POSITIONS)
    first, last = math.ceil(low / step), math.floor(reach / step)
    even = [float(f"{i * step:.12g}") for i in range(first, last + 1)]
    near = 1e-9 * reach
    kept = [tau for tau in even if low + near < tau < reach and min(abs(tau - m) for m in marked) > near]
    return sorted({*kept, *marked, reach})


def round_step(width: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is at least ``width``."""
    power = 10.0 ** math.floor(math.log10(width))
    return next(float(f"{m * power:.12g}") for m in (1, 2, 5, 10) if m * power >= width * (1 - 1e-12))


def _outcome(outcome: Outcome | Tried) -> dict[str, Any]:
    return {
        "loss": outcome.loss,
        "means": [_numbers(row) for row in outcome.means],
        "gaps": outcome.gaps.tolist(),
    }


def _numbers(values: Floats) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]


# ---------------------------------------------------------------------------------------------------------
# How to make it again


def reproduce(tried: Tryout, command: str | None) -> dict[str, Any]:
    """Versions, a fingerprint of the people, and the command."""
    return {"versions": versions(), "fingerprint": fingerprint(tried), "command": command}


def versions() -> dict[str, str]:
    """What the numbers depend on."""
    found = {"felicific": import_module("felicific").__version__, "Python": platform.python_version()}
    return found | {name: version(name) for name in ("numpy", "highspy", "scikit-learn")}


def fingerprint(tried: Tryout) -> str:
    """SHA-256 of the people: every column, the groups, the labels, today's decisions and the weights."""
    digest, people = hashlib.sha256(), tried.people
    table, today = people.x, tried.problem.decisions[people.decisions_today()]
    columns: list[tuple[str, Any]] = [
        ("group", people.group),
        ("y", people.y),
        ("predicted", today),
        ("weight", people.weight),
    ]
    if people.cluster is not None:
        columns.append(("cluster", people.cluster))
    if is_frame(table):
        columns += [(f"x.{name}", values) for name, values in all_columns(table, "the report")]
    else:
        columns.append(("x", table.toarray() if hasattr(table, "tocsr") else table))
    for name, values in columns:
        texts = [] if values is None else map(repr, np.asarray(values).ravel().tolist())
        digest.update("\x1f".join([name, *texts, ""]).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()
