"""Parts of a report as plain data, of a choice and of an audit alike."""

from __future__ import annotations

import hashlib
import math
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from importlib import import_module
from importlib.metadata import version
from types import NoneType
from typing import Any

import numpy as np

from felicific._audit.measured import Measured
from felicific._audit.names import clean, labels, listed
from felicific._audit.quantity import Quantity
from felicific._audit.result import Audit, Interval, interval_to_dict, plain
from felicific._fit.assessment import Known
from felicific._fit.certificate import Certificate, WorseOffRow
from felicific._fit.tryout import Effect
from felicific._frontier.breakpoints import tau_of
from felicific._frontier.frontier import Frontier
from felicific._people.people import People
from felicific._policy.policy import Policy, Wording
from felicific._problem.change import MODEL, REFERENCES, Reference
from felicific._problem.happiness import Counted, Happiness, Measure
from felicific._problem.problem import Problem
from felicific._program.aggregates import Outcome
from felicific._program.label_completion import SOURCES, KnownLabels
from felicific._statistics.intervals import check_confidence
from felicific._tables.memory import (
    EXACT,
    as_vector,
    column_names,
    count_rows,
    is_frame,
    is_null,
    take_columns,
)
from felicific._typing import Array, Floats, Table
from felicific.exceptions import DataError

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


def loss_of(persons: Measured) -> float | None:
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


# ---------------------------------------------------------------------------------------------------------
# What a report is told besides the people and the policy.


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
    worse_off : sequence of WorseOffRow
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
    worse_off: Sequence[WorseOffRow] = ()

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
                f"names= is {self.names!r}.", "Give a dict of every decision to its name, as text."
            )
        for decision in self.names:
            if decision not in decisions:
                raise DataError(
                    f"names= has {decision!r}, and the decisions are {listed(map(repr, decisions))}.",
                    "Name these.",
                )
        for decision in decisions:
            if decision not in self.names:
                raise DataError(f"names= has no name for the decision {decision!r}.", "Name every decision.")
        given = [*self.names.values()]
        twice = next((name for name in given if given.count(name) > 1), None)
        if twice is not None:
            raise DataError(f"Two decisions are called {twice!r}.", "Give each a name of its own.")


# ---------------------------------------------------------------------------------------------------------
# Places of the slider: round gaps between the least one and the baseline, and those that have a name.


#: Most places of the slider, and how many of them are round numbers at most.
PLACES, ROUND = 40, 33

LEAST, PROPOSED, BEST = "least gap", "proposed", "best, gaps ignored"
HARMLESS = "no group worse off here"


@dataclass(frozen=True)
class Place:
    """A place of the slider: where it is on the frontier, what it is called, and the policy there; None: baseline."""

    tau: float
    names: tuple[str, ...]
    aimed: tuple[float | None, ...]
    policy: Policy | None

    @property
    def proposed(self) -> bool:
        """Whether its policy is the one that is proposed."""
        return PROPOSED in self.names


def find_places(
    line: Frontier,
    policy: Policy,
    along: Callable[[Sequence[float]], list[Policy]],
    reference: Reference = MODEL,
) -> list[Place]:
    """From the least gap on; the reference is the last. ``along`` are the policies at some places of the frontier."""
    ray, fitted = line.ray, fitted_reference(line, policy, reference)
    tau_baseline, tau_policy = tau_of(fitted, ray), tau_of(policy.outcome, ray)
    marked = mark(line.points[0].tau, line.points[-1].tau, tau_baseline, tau_policy, reference)
    solved = None if line.mixes else line.tau.tolist()
    if solved is not None:  # between two that were solved for there is nothing to be said
        marked = {name: tau if name == PROPOSED else _tighter(tau, solved) for name, tau in marked.items()}
    places = []
    for tau in spread(marked, tau_baseline, solved):
        names = tuple(name for name, where in marked.items() if where == tau)
        aimed = tuple(_aimed(tau * unit, tau_baseline * unit) for unit in ray.tolist())
        places.append(Place(tau, names, aimed, policy))
    others = [place for place in places if not place.proposed]
    found = iter(along([_position(line, place.aimed, place.tau) for place in others]))
    places = [place if place.proposed else replace(place, policy=next(found)) for place in places]
    now = tuple(gap if math.isfinite(unit) else None for gap, unit in zip(fitted.gaps, ray, strict=True))
    return [
        *places,
        Place(max([tau_baseline, *(place.tau for place in places)]), (reference.name,), now, None),
    ]


def fitted_reference(line: Frontier, policy: Policy, reference: Reference) -> Outcome:
    """What the reference does to the people that the policies were fitted to."""
    free = policy.basis.unconstrained
    found = line.baseline if reference.is_baseline else None if free is None else free.value
    assert found is not None, "a report compares with something"
    return found


def mark(
    least: float, most: float, tau_baseline: float, tau_policy: float, reference: Reference = MODEL
) -> dict[str, float]:
    """Places that have a name; but for the policy that is proposed, none has a larger gap than the baseline."""
    rounding = 1e-9 * max(most, tau_policy, tau_baseline)
    half = f"half of {reference.of('gap')}"
    marked = {LEAST: least, PROPOSED: tau_policy, half: max(tau_baseline / 2.0, least), BEST: most}
    offered = {name: tau for name, tau in marked.items() if name == PROPOSED or tau < tau_baseline - rounding}
    # What differs from another by rounding alone is that one.
    return {
        name: next((other for other in (least, tau_policy) if abs(tau - other) <= rounding), tau)
        for name, tau in offered.items()
    }


def spread(marked: dict[str, float], tau_baseline: float, solved: list[float] | None = None) -> list[float]:
    """Places that have a name, and round numbers between them and the baseline; or those that were ``solved`` for."""
    named, low = [*marked.values()], min(marked.values())
    near = 1e-9 * max(tau_baseline, *named)
    if solved is not None:
        between = [tau for tau in solved if tau < tau_baseline - near][: PLACES - len(named) - 1]
    elif tau_baseline - low > near:
        step = round_step((tau_baseline - low) / ROUND)
        first, last = math.ceil(low / step), math.floor(tau_baseline / step)
        between = [float(f"{i * step:.12g}") for i in range(first, last + 1)]
    else:
        between = []
    kept = [tau for tau in between if low + near < tau < tau_baseline - near]
    return sorted({*(tau for tau in kept if min(abs(tau - one) for one in named) > near), *named})


def round_step(width: float) -> float:
    """The least of 1, 2 and 5 times a power of ten that is at least ``width``."""
    power = 10.0 ** math.floor(math.log10(width))
    return next(float(f"{m * power:.12g}") for m in (1, 2, 5, 10) if m * power >= width * (1 - 1e-12))


def _aimed(gap: float, baseline: float) -> float | None:
    """The gap that is allowed at a place; what is left of nothing by rounding is nothing."""
    if not math.isfinite(gap):
        return None
    return 0.0 if gap <= 1e-9 * baseline else float(f"{gap:.12g}")


def _position(line: Frontier, aimed: tuple[float | None, ...], tau: float) -> float:
    """The very place that ``fair.at(gap=...)`` finds for what is aimed at."""
    closed = {
        measure.name: gap
        for measure, gap, unit in zip(line.measures, aimed, line.ray, strict=True)
        if gap is not None and unit > 0
    }
    if not closed:
        return tau
    return line.position(gap=next(iter(closed.values())) if len(closed) == 1 else closed)


def _tighter(tau: float, solved: list[float]) -> float:
    return max((at for at in solved if at <= tau), default=solved[0])


# ---------------------------------------------------------------------------------------------------------
# The fingerprint of a page's data: one SHA-256 of its people, made when the page is.


#: A float leaves out less than this of a whole number that a column of 64 bits holds.
LOST = 2048


def people_sha256(people: People) -> str:
    """SHA-256, as hexadecimal text, of group, label, weight and cluster of people, and of every column of x.

    The same rows in the same order have the same one in pandas, Polars, PyArrow or a dict, with equal numbers in any
    width, and columns in any order. Decisions and predictions are not a part of it.
    """
    y = people.y
    if y is not None and people.labels is not None and (people.labels < 0).any():
        y = y.astype(object)
        y[people.labels < 0] = None
    weight = None if people.weight is None or bool((people.weight == 1).all()) else people.weight
    roles = {"group": people.group, "y": y, "weight": weight, "cluster": people.cluster}
    columns = dict(_columns(people.x)) | {name: part for name, part in roles.items() if part is not None}
    whole = hashlib.sha256(b"felicific people\n")
    for name in sorted(columns):
        written = name.encode("utf-8", "surrogatepass")
        content = hashlib.sha256(_content(columns[name])).digest()
        whole.update(b"%d:%b%b" % (len(written), written, content))
    return whole.hexdigest()


def _columns(x: Table) -> Iterator[tuple[str, Array]]:
    """Every column of x; a position in an array is not a name in a table."""
    if is_frame(x):
        names = {name: f"x.{name}" if isinstance(name, str) else f"x[{name}]" for name in column_names(x)}
        yield from zip(names.values(), take_columns(x, list(names), "the fingerprint"), strict=True)
    else:
        rows = x.toarray() if hasattr(x, "tocsr") else np.asarray(x).reshape(count_rows(x), -1)
        yield from ((f"x[{i}]", as_vector(column, "x")) for i, column in enumerate(rows.T))


def _content(values: Array) -> bytes:
    """A column as bytes: numbers as floats, times in nanoseconds, anything else as text with its lengths."""
    if values.dtype.kind not in "biufmM":
        plain = [None if is_null(value) else value for value in values.tolist()]
        kinds = {type(value) for value in plain} - {NoneType}
        if all(issubclass(kind, date | timedelta) for kind in kinds) and kinds:
            kind = "m8[us]" if issubclass(kinds.pop(), timedelta) else "M8[us]"
            values = np.array(plain, dtype=kind)
        elif all(issubclass(kind, bool | int | float | np.number) for kind in kinds):
            return _numbers(np.array([np.nan if value is None else value for value in plain], dtype=object))
        else:
            texts = ["" if value is None else f"={value}" for value in plain]
            lengths = np.fromiter(map(len, texts), np.int64, len(texts)).tobytes()
            return b"texts" + lengths + "".join(texts).encode("utf-8", "surrogatepass")
    if values.dtype.kind in "mM":
        return b"times" + values.astype(f"{values.dtype.kind}8[ns]").astype(np.int64).tobytes()
    return _numbers(values)


def _numbers(values: Array) -> bytes:
    """Numbers by their value, in any width; of whole ones that floats round, also what they leave out."""
    numbers = values.astype(np.float64) + 0.0  # there is one zero
    numbers[np.isnan(numbers)] = np.nan
    large = np.isfinite(numbers) & (np.abs(numbers) >= EXACT)
    rest = np.array([int(value) % LOST for value in values[large].tolist()], dtype=np.int64)
    return b"numbers" + numbers.tobytes() + rest.tobytes()
