"""Parts of a report as plain data, of a choice and of an audit alike."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

from felicific._audit.names import clean, labels, listed
from felicific._audit.persons import EachPerson
from felicific._audit.quantity import Quantity
from felicific._audit.result import Audit, Interval, interval_to_dict, plain
from felicific._fit.assessment import Known
from felicific._fit.effect import Effect
from felicific._policy.policy import Policy, Wording
from felicific._problem.change import MODEL, REFERENCES
from felicific._problem.happiness import Counted, Happiness, Measure
from felicific._problem.problem import Problem
from felicific._program.known_labels import SOURCES, KnownLabels
from felicific._typing import Floats

FORMAT, VERSION = "felicific report", 2

#: What stands for the fingerprint of people whose rows were summed where they are.
NO_FINGERPRINT = "none (the rows are not in memory)"


#: What the denominator of a fraction means.
WHO_IS_COUNTED = "the share of people who are counted, which depends on the decisions"


def describe_measure(measure: Measure, happiness: Happiness | None) -> dict[str, Any]:
    """A measure and what it means: the words of its function, as far as it has any."""
    told = {"words": "", "among": ""}
    if happiness is not None:
        told["words"] = WHO_IS_COUNTED if isinstance(happiness, Counted) else _words(happiness.function)
        if happiness.among is not None:
            told["among"] = _words(happiness.among) or "some of the people"
    return {
        "name": measure.name,
        "title": measure.title,
        "unit": measure.unit,
        **told,
        "looks_at_y": measure.looks_at_y,
        "bounds": None if measure.bounds is None else list(measure.bounds),
        "tells_who": measure.tells_who,
    }


def _words(function: Any) -> str:
    """What a function says of itself: its text, or its first sentence."""
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
    titles = labels([measure.title for measure in policy.measures])
    called = _quoted(texts, labels(texts))
    known = policy.classes.tolist()
    return Wording(
        _quoted(groups, labels(groups)),
        _quoted(known, labels(known)) if policy.listed else called,
        called,
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


def say(text: str, measures: Sequence[Measure]) -> str:
    """A sentence of the library with measures called as on the page, cut where a name in it is endless."""
    for measure in measures:
        text = text.replace(repr(measure.name), repr(clean(measure.title)))
    return clean(text, 600)


def methods_of(audits: Sequence[Audit], titles: Sequence[str]) -> list[str]:
    """How the intervals were made, and what chance alone would show."""
    found = []
    for j, title in enumerate(titles):
        parts = [audit.measures[j] for audit in audits]
        methods = sorted({mean.method for part in parts for mean in part.means.values()})
        gaps = sorted({part.gap.method for part in parts if part.gap is not None})
        text = f"{title}: group means by {listed(methods)}"
        text += f", the gap by {listed(gaps)}." if gaps else "."
        bias = max((part.bias for part in parts if math.isfinite(part.bias)), default=0.0)
        if bias:
            shown = Quantity.of(parts[0].measure.unit, (), [bias])(bias)
            text += (
                f" Between groups that are in truth equal, chance alone shows a gap of {shown} on average."
            )
        found.append(text)
    return found


def audited(found: Audit) -> dict[str, Any]:
    """Means, gaps and loss of an audit, with their intervals."""
    return {
        "loss": None if found.loss is None else interval_to_dict(found.loss),
        "measures": [
            {
                "means": [interval_to_dict(mean) for mean in part.means.values()],
                "gap": None if part.gap is None else interval_to_dict(part.gap),
                "bias": plain(part.bias),
            }
            for part in found.measures
        ],
    }


def describe_effect(effect: Effect, known: Known, *, of_baseline: bool) -> dict[str, Any]:
    """What a policy does to people beside the baseline's decisions, and how sure that is."""
    every, cost = known.every, known.every.cost
    return {
        "loss": loss_of(effect.persons),
        "cost_baseline": interval_of(known.cost),
        "cost_best": interval_of(known.cost_best),
        "every": None
        if of_baseline
        else {
            "cost": None if cost is None else ends_of(cost),
            "gaps": [None if one is None else ends_of(one) for one in every.gaps],
        },
        "measures": [_measure(j, effect, known) for j in range(len(known.gaps))],
        **{
            name: _plain(np.round(getattr(effect, name), 6).tolist())  # without what rounding leaves behind
            for name in ("moves", "changed", "randomized", "better", "worse")
        },
    }


def _plain(numbers: Any) -> Any:
    """Lists of numbers as JSON can hold them."""
    return [_plain(one) for one in numbers] if isinstance(numbers, list) else number_of(numbers)


def _measure(j: int, effect: Effect, known: Known) -> dict[str, Any]:
    gap = known.gaps[j]
    flows = zip(effect.gain[:, j].tolist(), effect.lose[:, j].tolist(), strict=True)
    return {
        "means": [
            limits_of(mean) | {"change": limits_of(by), "gain": number_of(gain), "lose": number_of(lose)}
            for mean, by, (gain, lose) in zip(known.means[j], known.mean_changes[j], flows, strict=True)
        ],
        "gap": None if gap is None else limits_of(gap) | {"change": interval_of(known.gap_changes[j])},
        "bound": known.every.bounds[j],
    }


def ends_of(found: Interval) -> list[float | None]:
    """Both ends of an interval."""
    return [number_of(found.low), number_of(found.high)]


def who_has_labels(known: KnownLabels) -> dict[str, Any]:
    """Who has a label, group by group, and what is supposed of the others."""
    names = ("share", "standing", "effective", "below")
    return {
        "groups": [plain(group) for group in known.groups],
        "label": plain(known.classes[-1]),
        **{name: numbers_of(getattr(known, name)) for name in names},
        "seen": numbers_of(known.seen[:, -1]),
        "imputed": numbers_of(known.imputed[:, -1]),
        "source": SOURCES[known.source],
        "max_odds_ratio": plain(known.max_odds_ratio) if math.isfinite(known.max_odds_ratio) else "inf",
        "condition": known.condition if known.max_odds_ratio > 1 else "",
        "cautions": known.cautions(),
    }


def limits_of(found: Interval) -> dict[str, Any]:
    """An estimate and its limits."""
    bounds = {} if found.bounds is None else {"bounds": [*map(number_of, found.bounds)]}
    parts = {"estimate": found.estimate, "low": found.low, "high": found.high}
    return {name: number_of(part) for name, part in parts.items()} | bounds


def interval_of(found: Interval | None) -> dict[str, Any] | None:
    """The same, of what may not be known."""
    return None if found is None else limits_of(found)


def loss_of(persons: EachPerson) -> float | None:
    """The mean loss, if it is known."""
    return None if persons.loss_sample is None else float(persons.loss_sample.mean[0])


def number_of(value: float) -> float | None:
    """A number as JSON can hold it."""
    return value if math.isfinite(value) else None


def numbers_of(values: Floats) -> list[float | None]:
    """Numbers as JSON can hold them."""
    return [number_of(value) for value in values.tolist()]


#: Keys of what the reference does.
OF_REFERENCE = ("baseline", "cost_baseline", "fitted_baseline")


def named_by_baseline(content: Any) -> Any:
    """Data for others, in which no key says baseline where there is none: it is what stands in its place."""
    reference = REFERENCES[content.get("reference", MODEL.key)]
    return content if reference.is_baseline else _renamed(content, reference.key)


def _renamed(part: Any, key: str) -> Any:
    """The same with another word for the baseline in every key."""
    if isinstance(part, dict):
        return {
            name.replace(MODEL.data_key, key) if name in OF_REFERENCE else name: _renamed(one, key)
            for name, one in part.items()
        }
    return [_renamed(one, key) for one in part] if isinstance(part, list) else part


# ---------------------------------------------------------------------------------------------------------
# How to make it again


def versions() -> dict[str, str]:
    """What the numbers depend on."""
    found = {"felicific": import_module("felicific").__version__, "Python": platform.python_version()}
    return found | {name: version(name) for name in ("numpy", "highspy", "scikit-learn")}
