"""What a report says, as plain data: everything is computed here, and nothing after it."""

from __future__ import annotations

import hashlib
import math
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

from felicific._audit.names import clean, labels, listed
from felicific._audit.quantity import Quantity
from felicific._audit.result import Audit, Interval, interval_to_dict, plain
from felicific._audit.verdict import told_once, verdict_of_audit
from felicific._fit.assessment import Assessment, Known
from felicific._fit.certificate import Certificate
from felicific._fit.losers import LosersRow
from felicific._fit.tryout import Effect, Tryout
from felicific._frontier.frontier import Frontier
from felicific._policy.basis import write_outcome
from felicific._policy.expected import outlook
from felicific._policy.policy import Policy, Wording
from felicific._problem.change import few_counted
from felicific._problem.criteria import CRITERIA
from felicific._problem.happiness import Component, Counted, Happiness
from felicific._problem.loss import is_accuracy
from felicific._problem.problem import Problem
from felicific._program.known_labels import SOURCES, KnownLabels
from felicific._statistics.intervals import check_confidence
from felicific._tables.memory import all_columns, is_frame
from felicific._typing import Floats
from felicific.exceptions import DataError
from felicific.report.also import measured_also
from felicific.report.stops import HARMLESS, TODAY, Place, find_places
from felicific.report.scored import Scored

FORMAT, VERSION = "felicific report", 2

#: Most sentences that a position spells out.
SENTENCES = 60

#: What stands for the fingerprint of people whose rows were summed where they are.
NO_FINGERPRINT = "none (the rows are not in memory)"


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a report is told besides the people and the policy.

    Attributes
    ----------
    confidence : float
    title, period, date, command, model, grouped_by : str, optional
        What stands on the page as it is given; no clock is looked at.
    names : dict of decision to str, optional
        What decisions are called.
    labels : {"all", "selected"}, optional
        Whose labels these are.
    also : happiness, list or dict of them, optional
        Other measures of the policy that is proposed.
    certificate : Certificate, optional
    chosen : str, optional
        Why a policy of this kind, if nobody asked for one.
    in_sample : str
        How these are known to be people that the policy was fitted to.
    blindness : float, optional
        What it costs that the policy does not see the group, on the fitted people.
    notes : sequence of str
        What to beware of.
    losers : sequence of LosersRow
        What it costs that fewer people lose, on the people that the policy was fitted on.
    """

    confidence: float = 0.95
    title: str | None = None
    period: str | None = None
    date: str | None = None
    command: str | None = None
    model: str | None = None
    grouped_by: Any = None
    names: Mapping[Any, str] | None = None
    labels: str | None = None
    also: Any = None
    certificate: Certificate | None = None
    chosen: str | None = None
    in_sample: str = ""
    blindness: float | None = None
    notes: Sequence[str] = ()
    losers: Sequence[LosersRow] = ()

    def check(self, decisions: Sequence[Any]) -> None:
        """Refuse what makes no sense as it was written."""
        check_confidence(self.confidence)
        if self.labels not in (None, "all", "selected"):
            raise DataError(
                f"labels is {self.labels!r}.",
                "Say 'all' if everybody's label is known, 'selected' if only that of people who were selected; or "
                "leave it out.",
            )
        for name in ("title", "period", "date", "command"):
            if not isinstance(getattr(self, name), str | None):
                raise DataError(f"{name} is {getattr(self, name)!r}.", "Give it as text.")
        if self.names is None:
            return
        if not isinstance(self.names, Mapping) or not all(isinstance(v, str) for v in self.names.values()):
            raise DataError(
                f"names is {self.names!r}.", "Give a dict of every decision to its name, as text."
            )
        for decision in self.names:
            if decision not in decisions:
                raise DataError(
                    f"names has {decision!r}, and the decisions are {listed(map(repr, decisions))}.",
                    "Name these.",
                )
        for decision in decisions:
            if decision not in self.names:
                raise DataError(f"names has no name for the decision {decision!r}.", "Name every decision.")
        given = [*self.names.values()]
        twice = next((name for name in given if given.count(name) > 1), None)
        if twice is not None:
            raise DataError(f"Two decisions are called {twice!r}.", "Give each a name of its own.")


def describe_choice(
    tried: Tryout, line: Frontier, policy: Policy, moved: Callable[[float], Policy], told: Told
) -> tuple[dict[str, Any], Assessment]:
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
    moved : callable
        The policy at a place of the frontier, as it would be fitted.
    told : Told
        What else the page says.

    Returns
    -------
    content, assessment
        The assessment has the verdict on the policy that is proposed.
    """
    told.check(tried.problem.decisions.tolist())
    places = find_places(line, policy, moved)
    assessment = Assessment.of(
        tried,
        line,
        policy,
        confidence=told.confidence,
        places=max(1, len(places) - 1),
        certificate=told.certificate,
        in_sample=told.in_sample,
        labels=told.labels,
    )
    also, grows = measured_also(assessment, told.also)
    assessment = replace(assessment, others=tuple(grows))
    choice = Choice(tried, line, policy, told, places, assessment)
    return choice.content() | {"also": also}, assessment


@dataclass(frozen=True, eq=False)
class Choice:
    """A report in the making."""

    tried: Tryout
    line: Frontier
    policy: Policy
    told: Told
    places: list[Place]
    assessment: Assessment

    def content(self) -> dict[str, Any]:
        """Everything but the other measures."""
        told, policy, problem, positions = self.told, self.policy, self.tried.problem, self.positions
        found = next(i for i, place in enumerate(self.places) if place.proposed)
        promised = told.certificate is not None and told.certificate.basis != "none"
        by = told.grouped_by
        return {
            "format": FORMAT,
            "version": VERSION,
            "kind": "choice",
            **{name: getattr(told, name) for name in ("title", "period", "date", "confidence", "model")},
            "grouped_by": plain(by) if isinstance(by, str | None) else str(by),
            "decisions": name_decisions(problem, told.names),
            "favourable": policy.best,
            "groups": self._groups(),
            "components": self._components(),
            "loss": self._loss(),
            "policy": self._policy(),
            "today": _audited(self.assessment.before),
            "best": self._best(),
            "positions": positions,
            "proposed": found,
            "nobody_worse": any(HARMLESS in position["names"] for position in positions),
            "certificate": None if told.certificate is None else told.certificate.to_dict(),
            "certified": found if promised else None,
            "labels": None if policy.labels is None else _labels(policy.labels),
            "label_source": told.labels,
            "requirements": [row.to_dict() for row in self.assessment.after.requirements],
            "losers": self._losers(),
            "points": {name: write_outcome(point) for name, point in policy.outcomes.items()},
            "story": policy.story(),
            "methods": methods_of([self.assessment.before, self.assessment.after], self.assessment.titles),
            "caveats": self._caveats(),
            "fitted_today": self.line.today.gaps.tolist(),
            "premises": policy.premises(),
            "outlook": outlook(policy),
            "fingerprints": {"people": fingerprint(self.tried)},
            "versions": versions(),
            "command": told.command,
        }

    # -----------------------------------------------------------------------------------------------------
    # About whom, and what

    def _groups(self) -> list[dict[str, Any]]:
        persons, compared = self.assessment.today.persons, self.assessment.compared.tolist()
        scores = None if self.scored is None else self.scored.people()
        return [
            {
                "name": plain(group),
                "people": people,
                "compared": z in compared,
                "scores": None if scores is None else scores[z],
            }
            for z, (group, people) in enumerate(zip(persons.groups, persons.sizes.tolist(), strict=True))
        ]

    def _components(self) -> list[dict[str, Any]]:
        problem, told = self.tried.problem, self.assessment
        once = told_once(problem.components)
        return [
            describe_component(component, happiness)
            | {
                "step": told.quantities[j].step,
                "has_gap": told.before.components[j].gap is not None,
                "asked": self.policy.basis.asked.get(component.name),
                "closed": j in told.closed,
                "complement": j not in once,
            }
            for j, (happiness, component) in enumerate(
                zip(problem.happiness, problem.components, strict=True)
            )
        ]

    def _loss(self) -> dict[str, Any]:
        name, quantity = self.tried.problem.loss.name, self.assessment.cost_quantity
        accuracy = is_accuracy(name)
        majority = self.assessment.majority if accuracy else None
        return {"name": name, "accuracy": accuracy, "step": quantity.step, "majority": majority}

    def _policy(self) -> dict[str, Any]:
        policy, seen = self.policy, self.policy.stretches()
        plain_gaps = {
            f"gap of {c.name!r} at most {c.quantity(policy.basis.asked[c.name])}"
            for c in policy.components
            if c.name in policy.basis.asked
        }
        return {
            "kind": policy.kind,
            "see_group": policy.see_group,
            "infers_group": policy.infers_group,
            "randomize": policy.randomize,
            "chosen": self.told.chosen,
            "requirements": [
                *(asked.words for asked in policy.basis.requirements if asked.words not in plain_gaps),
                *(one.chance.words for one in policy.explore),
            ],
            "boundary": None if seen is None else seen.boundary,
            "blindness": self.told.blindness,
        }

    def _best(self) -> dict[str, Any]:
        persons, tau = self.assessment.at_best, self.line.points[-1].tau
        assert persons is not None, "the frontier has an end"
        means = persons.means[self.assessment.compared]
        return {"tau": tau, "loss": _loss_of(persons), "gaps": numbers_of(np.ptp(means, axis=0))}

    def _losers(self) -> list[dict[str, Any]]:
        return [
            {
                "at_most": row.at_most,
                "loss": row.loss,
                "loses": None if row.loses is None else [row.loses.get(group) for group in self.line.groups],
            }
            for row in self.told.losers
        ]

    def _caveats(self) -> list[str]:
        """What to beware of."""
        told, assessment = self.told, self.assessment
        components = self.tried.problem.components
        was, then = (effect.persons.means for effect in (assessment.today, assessment.proposed))
        groups = [repr(name) for name in labels(self.line.groups)]
        few = few_counted(components, groups, was, then, "on these people")
        found = [*few, *CAVEATS, *told.notes]
        found += [note for audit in (assessment.before, assessment.after) for note in audit.notes]
        if told.certificate is not None and told.certificate.basis == "none":
            found.append(f"The policy carries no certificate. {told.certificate.sentence}")
        if told.certificate is not None and told.certificate.large_samples:
            found.append(
                "The certificate holds by large samples: where rare people have much larger values than any in the "
                "sample, it may not."
            )
        if not self.line.mixes:
            found.append("Between two positions no policy is known: each was solved for by itself.")
        return [say(text, components) for text in dict.fromkeys(found) if not text.startswith(SAID_ABOVE)]

    # -----------------------------------------------------------------------------------------------------
    # Positions

    @cached_property
    def scored(self) -> Scored | None:
        """The people along the line of scores, if the policy sees one."""
        return Scored.of(self.tried, self.policy)

    @cached_property
    def positions(self) -> list[dict[str, Any]]:
        """Everything about every place of the slider."""
        others = [place.policy for place in self.places if place.policy is not None and not place.proposed]
        effects = iter(list(self.tried.effects(others)))
        rules, found, prices = iter(self._sentences(others)), [], self._prices()
        for place, price in zip(self.places, prices, strict=True):
            if place.policy is None:
                effect, said = self.assessment.today, []
                known = self.assessment.known_of(effect)
            elif place.proposed:
                effect, said = self.assessment.proposed, self._sentences([self.policy])[0]
                known = self.assessment.known
            else:
                effect, said = next(effects), next(rules)
                known = self.assessment.known_of(effect)
            found.append(self._position(place, effect, known) | {"rules": said, "price": price})
        self._name_harmless(found)
        return found

    def _prices(self) -> list[float | None]:
        """What closing a little more of the gap costs, in loss per unit of tau, on the fitted people."""
        return [*numbers_of(self.line.price_at([place.tau for place in self.places[:-1]])), None]

    def _name_harmless(self, positions: list[dict[str, Any]]) -> None:
        """Name the first position at which every group has at least as much as today of what people want."""
        wanted = [
            j
            for j in self.assessment.told
            if self.tried.problem.components[j].wanted and j in self.assessment.closed
        ]
        for position in positions[:-1]:
            changes = [
                mean["change"]["estimate"]
                for j in wanted
                for mean in position["components"][j]["means"]
                if mean["change"]["estimate"] is not None
            ]
            if changes and min(changes) >= 0.0 and sum(position["changed"]) > 0:
                position["names"].append(HARMLESS)
                return

    def _position(self, place: Place, effect: Effect, known: Known) -> dict[str, Any]:
        verdict = self.assessment.verdict_on(effect, known)
        policy = place.policy
        every = None
        if effect is not self.assessment.today:
            limits = [None if one is None else [plain(one.low), plain(one.high)] for one in known.every.gaps]
            cost = known.every.cost
            every = {"cost": None if cost is None else [plain(cost.low), plain(cost.high)], "gaps": limits}
        return {
            "tau": place.tau,
            "names": [*place.names],
            "today": policy is None,
            "proposed": place.proposed,
            "hash": self._hash(place),
            "aimed": [*place.aimed],
            "python": self._python(place),
            "loss": _loss_of(effect.persons),
            "cost_today": _interval(known.cost),
            "cost_best": _interval(known.cost_best),
            "every": every,
            "components": [
                self._component(j, effect, known) for j in range(len(self.tried.problem.components))
            ],
            "moves": _rounded(effect.moves),
            "changed": _rounded(effect.changed),
            "lots": _rounded(effect.lots),
            "better": _rounded(effect.better),
            "worse": _rounded(effect.worse),
            **self._by_score(policy, effect),
            "policy_sha256": None if policy is None else policy.sha256,
            "verdict": verdict.to_dict(),
        }

    def _component(self, j: int, effect: Effect, known: Known) -> dict[str, Any]:
        gap, change, bound = known.gaps[j], known.gap_changes[j], known.every.bounds[j]
        flows = zip(effect.gain[:, j].tolist(), effect.lose[:, j].tolist(), strict=True)
        return {
            "means": [
                _limits(mean) | {"change": _limits(by), "gain": plain(gain), "lose": plain(lose)}
                for mean, by, (gain, lose) in zip(known.means[j], known.mean_changes[j], flows, strict=True)
            ],
            "gap": None if gap is None else _limits(gap) | {"change": _interval(change)},
            "bound": bound,
        }

    def _by_score(self, policy: Policy | None, effect: Effect) -> dict[str, Any]:
        if self.scored is None:
            return dict.fromkeys(("steps", "up", "down", "person"))
        up, down = self.scored.moved(effect)
        one = self.assessment.today.persons
        change = effect.persons.values - one.values + (effect.persons.origin - one.origin)
        person = None if policy is None else self.scored.person(effect, change)
        boundary = self._policy()["boundary"]
        now = [[[0.0, boundary, 0.0], [boundary, 1.0, 1.0]]] * len(self.line.groups)
        steps = now if policy is None else self.scored.steps(policy)
        return {"steps": steps, "up": up, "down": down, "person": person}

    def _sentences(self, policies: Sequence[Policy]) -> list[list[str]]:
        """Policies that differ in their probabilities alone in words, as many sentences of each as a reader reads."""
        said = []
        wording = word(self.policy, name_decisions(self.tried.problem, self.told.names))
        for rules in policies[0].rules_along(policies, 4, wording) if policies else []:
            left = len(rules) - SENTENCES
            more = f"And {left} more such sentences; see the policy's file."
            said.append(rules if left <= 0 else [*rules[:SENTENCES], more])
        return said

    def _hash(self, place: Place) -> str:
        """How the address of the page names a position."""
        if place.policy is None:
            return TODAY
        aimed = self._aimed(place)
        number = next(iter(aimed.values())) if len(aimed) == 1 else place.tau
        return f"gap={0.0 if number is None else number!r}"

    def _aimed(self, place: Place) -> dict[str, float]:
        return {
            component.name: gap
            for component, gap in zip(self.line.components, place.aimed, strict=True)
            if gap is not None
        }

    def _python(self, place: Place) -> str | None:
        """How the policy at a position is had in Python."""
        if place.policy is None or place.proposed:
            return "fair.policy_" if place.proposed else None
        aimed = self._aimed(place)
        return f"fair.at(gap={next(iter(aimed.values())) if len(aimed) == 1 else aimed!r}).policy_"


#: What is to be said of every report.
CAVEATS = (
    "Intervals speak of people like these, and not of those on whom the model or the policy was fitted; rows, or "
    "clusters of them where some are named, are taken to be independent of each other.",
    "Group means are compared, not lives: inside a group some people may be worse off.",
    "Whether this is the right measure of happiness, and who is missing from the data, no computation can say.",
)

#: How remarks begin that the verdict has said already.
SAID_ABOVE = ("Every group loses", "It only takes", "Nothing to repair")


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
        "today": _audited(found) | {"requirements": [row.to_dict() for row in found.requirements]},
        "verdict": verdict_of_audit(found).to_dict(),
        # Of an audit, estimates are as if nothing were hidden, and its notes say what intervals hold under.
        "labels": None if found.labels is None else _labels(replace(found.labels, hidden=1.0)),
        "ratios": [ratios.to_dict() for ratios in found.shown_ratios or _ratios(found)],
        "notes": [say(note, components) for note in found.notes],
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


# ---------------------------------------------------------------------------------------------------------
# Parts


#: What the denominator of a fraction means.
WHO_IS_COUNTED = "the share of people who are counted, which depends on the decisions"


def describe_component(component: Component, happiness: Happiness | None) -> dict[str, Any]:
    """A component and what it means: the words of its function, as far as it has any."""
    told = {"words": "", "among": ""}
    if happiness is not None:
        words = _words(happiness.function, happiness.family)
        told["words"] = WHO_IS_COUNTED if isinstance(happiness, Counted) else words
        if happiness.among is not None and happiness.family not in CRITERIA:
            told["among"] = _words(happiness.among, None) or "some of the people"
    return {
        "name": component.name,
        "title": component.title,
        "unit": component.unit,
        **told,
        "looks_at_y": component.looks_at_y,
        "bounds": None if component.bounds is None else list(component.bounds),
        "tells_who": component.tells_who,
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


def name_decisions(problem: Problem, names: Mapping[Any, str] | None) -> list[dict[str, Any]]:
    """Every decision with what it is called."""
    called = {} if names is None else names
    return [{"value": plain(value), "name": called.get(value)} for value in problem.decisions.tolist()]


def word(policy: Policy, decisions: list[dict[str, Any]]) -> Wording:
    """Names as sentences write them: cut to a readable length, text in quotation marks."""
    groups, texts = (
        [*policy.groups],
        [one["value"] if one["name"] is None else one["name"] for one in decisions],
    )
    titles = labels([component.title for component in policy.components])
    return Wording(
        _quoted(groups, labels(groups)), _quoted(texts, labels(texts)), [repr(title) for title in titles]
    )


def _quoted(values: list[Any], texts: list[str]) -> list[str]:
    """Text in quotation marks, numbers without."""
    return [
        f"\N{LEFT DOUBLE QUOTATION MARK}{text}\N{RIGHT DOUBLE QUOTATION MARK}"
        if isinstance(value, str)
        else text
        for value, text in zip(values, texts, strict=True)
    ]


def say(text: str, components: Sequence[Component]) -> str:
    """A sentence of the library with components called as on the page, cut where a name in it is endless."""
    for component in components:
        text = text.replace(repr(component.name), repr(clean(component.title)))
    return clean(text, 600)


def methods_of(audits: Sequence[Audit], titles: Sequence[str]) -> list[str]:
    """How the intervals were made, and what chance alone would show."""
    found = []
    for j, title in enumerate(titles):
        parts = [audit.components[j] for audit in audits]
        methods = sorted({mean.method for part in parts for mean in part.means.values()})
        gaps = sorted({part.gap.method for part in parts if part.gap is not None})
        text = f"{title}: group means by {listed(methods)}"
        text += f", the gap by {listed(gaps)}." if gaps else "."
        bias = max((part.bias for part in parts if math.isfinite(part.bias)), default=0.0)
        if bias:
            shown = Quantity.of(parts[0].component.unit, (), [bias])(bias)
            text += (
                f" Between groups that are in truth equal, chance alone shows a gap of {shown} on average."
            )
        found.append(text)
    return found


def _audited(found: Audit) -> dict[str, Any]:
    """Means, gaps and loss of an audit, with their intervals."""
    return {
        "loss": None if found.loss is None else interval_to_dict(found.loss),
        "components": [
            {
                "means": [interval_to_dict(mean) for mean in part.means.values()],
                "gap": None if part.gap is None else interval_to_dict(part.gap),
                "bias": plain(part.bias),
            }
            for part in found.components
        ],
    }


def _labels(known: KnownLabels) -> dict[str, Any]:
    """Who has a label, group by group, and what is supposed of the others."""
    names = ("share", "standing", "effective", "below")
    return {
        "groups": [plain(group) for group in known.groups],
        "label": plain(known.classes[-1]),
        **{name: numbers_of(getattr(known, name)) for name in names},
        "seen": numbers_of(known.seen[:, -1]),
        "imputed": numbers_of(known.imputed[:, -1]),
        "source": SOURCES[known.source],
        "hidden": plain(known.hidden) if math.isfinite(known.hidden) else "inf",
        "condition": known.condition if known.hidden > 1 else "",
        "cautions": known.cautions(),
    }


def _limits(found: Interval) -> dict[str, Any]:
    """An estimate and its limits."""
    bounds = {} if found.bounds is None else {"bounds": [plain(end) for end in found.bounds]}
    return {name: plain(getattr(found, name)) for name in ("estimate", "low", "high")} | bounds


def _interval(found: Interval | None) -> dict[str, Any] | None:
    return None if found is None else _limits(found)


def _loss_of(persons: Any) -> float | None:
    return None if persons.loss_sample is None else float(persons.loss_sample.mean[0])


def numbers_of(values: Floats) -> list[float | None]:
    """Numbers as JSON can hold them."""
    return [value if math.isfinite(value) else None for value in values.tolist()]


def _rounded(values: Floats) -> Any:
    """Numbers of people, without what rounding leaves behind."""
    return np.round(values, 6).tolist()


# ---------------------------------------------------------------------------------------------------------
# How to make it again


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
