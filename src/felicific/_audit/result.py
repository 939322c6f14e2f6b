"""Findings: what an audit found, for reading, for notebooks, dataframes and programs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from felicific._audit.measured import Measured
from felicific._problem.criteria import CRITERIA
from felicific._problem.happiness import Measure, measured, position, written
from felicific._problem.loss import is_accuracy, loss_text, loss_words
from felicific._problem.unions import Between
from felicific._shown.parts import Displayed, Lines, Part, Table, between, short, table_lines
from felicific._statistics.intervals import LARGE, method_words
from felicific._tables.memory import table_maker
from felicific._typing import Floats
from felicific.exceptions import ConstraintError

if TYPE_CHECKING:
    from felicific._audit.ratios import Ratios
    from felicific._audit.verdict import Verdict
    from felicific._program.label_completion import KnownLabels


@dataclass(frozen=True)
class Interval:
    """An estimate and what it leaves open.

    Attributes
    ----------
    estimate, low, high : float
        In the unit of what is measured. A side about which nothing is known is infinite, or the end of the known range.
    n : float
        How many people it rests on; with sampling weights or clusters, as many independent ones as would tell as much.
    method : str
        How the interval was made.
    note : str
        What to beware of; empty if nothing.
    bounds : (low, high), or None
        Where labels are missing, and reasons outside the table may have mattered: the least and the most that they
        leave open, without sampling error. The estimate is without such reasons, and ``low`` and ``high`` hold with
        them. None where nothing is hidden.
    """

    estimate: float
    low: float
    high: float
    n: float
    method: str
    note: str = ""
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.n < LARGE:
            object.__setattr__(self, "method", method_words(self.method, self.n))


#: What is known of a mean of nobody.
NOBODY = Interval(math.nan, math.nan, math.nan, 0.0, "none", "nobody is counted, so there is no number")


def make_intervals(
    estimates: Floats, low: Floats, high: Floats, n: Floats, method: str, notes: Sequence[str]
) -> list[Interval]:
    """Intervals that were made by the same method."""
    columns = (estimates.tolist(), low.tolist(), high.tolist(), n.tolist(), notes)
    return [
        Interval(estimate, least, most, people, method, note)
        for estimate, least, most, people, note in zip(*columns, strict=True)
    ]


@dataclass(frozen=True)
class GapTest:
    """Whether the gap is at most so much.

    Attributes
    ----------
    at_most : float
        The gap in question.
    p_value : float
        Of the hypothesis that the gap is at most this. Small: it is more.
    p_exceeds : float
        Of the hypothesis that the gap is more than this. Small: it is at most this.
    verdict : {"at most", "more", "undecided"}
        What is shown at the audit's confidence.
    """

    at_most: float
    p_value: float
    p_exceeds: float
    verdict: str


def verdict_of(p_value: float, p_exceeds: float, alpha: float, *, proof: bool = True) -> str:
    """What two p-values show; without proof no gap is shown to be at most anything."""
    if p_value <= alpha:
        return "more"
    return "at most" if proof and p_exceeds <= alpha else "undecided"


@dataclass(frozen=True, repr=False)
class MeasureAudit(Displayed):
    """One measure: every group's mean, and the gap.

    Attributes
    ----------
    measure : Measure
        Name, unit and bounds.
    means : dict of group to Interval
        Mean happiness of every group.
    gap : Interval or None
        Largest mean minus smallest; ``n`` is that of the smallest group. None of what only requirements speak of, such
        as who loses, unless they ask for its gap.
    bias : float
        The gap that chance alone would show on average between groups that are in truth equal. The gap is
        overestimated by at most this on average; by less the further the groups are apart.
    test : GapTest or None
        Whether the gap is at most what was allowed, if something was.
    remark : str
        What a reader has to know of it; empty if nothing.
    at : float or None
        Of distributional parity of amounts, the amount at which the distributions are furthest apart: means are the
        shares of the groups that get more.
    proof : bool
        Whether it can be proved that the gap is at most so much: of rates, and within declared bounds.
    between : (group, group), or None
        Who has the largest mean, and who the smallest.
    """

    measure: Measure
    means: dict[Any, Interval]
    gap: Interval | None
    bias: float
    test: GapTest | None = None
    remark: str = ""
    at: float | None = None
    proof: bool = True
    between: tuple[Any, Any] | None = None

    _whole: ClassVar[str] = "the audit's to_frame() has all of it."

    def _parts(self) -> list[Part]:
        return [table_of_means(self.measure, self.means, {"gap": self.gap}, _remarks(self))]


@dataclass(frozen=True)
class RequirementAudit:
    """Something that was asked of a policy, and what the people of an audit make of it.

    Attributes
    ----------
    words : str
        What was asked for.
    measure : Measure
        Of what.
    statistic : {"gap", "ratio", "mean"}
        What is measured: largest mean minus smallest, smallest divided by largest, or a mean per person.
    reached : Interval
        What it is.
    met : bool or None
        Whether the estimate is what was asked for; None where that cannot be told, which a note explains.
    shown, refuted : bool
        Whether the interval shows that it is met, or that it is not.
    """

    words: str
    measure: Measure
    statistic: str
    reached: Interval
    met: bool | None
    shown: bool = False
    refuted: bool = False

    @property
    def verdict(self) -> str:
        """In words: "met", "not met" or "cannot be told"."""
        return "cannot be told" if self.met is None else "met" if self.met else "not met"

    @property
    def what(self) -> str:
        """What is measured, in words."""
        share = self.statistic == "mean" and self.measure.tells_who
        return "share" if share else {"ratio": "smallest ratio"}.get(self.statistic, self.statistic)

    def number(self, number: float, digits: int = 5) -> str:
        """A number as it is written."""
        if not math.isfinite(number):
            return "unknown"
        return written(number, digits) if self.statistic == "ratio" else self.measure.cell(number, digits)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data that JSON can hold."""
        what = {"words": self.words, "measure": self.measure.name, "statistic": self.statistic}
        what |= {"what": self.what}
        return what | {"verdict": self.verdict} | interval_to_dict(self.reached)

    def row(self) -> tuple[str, ...]:
        """For a table."""
        reached, note = self.reached, f"; {self.reached.note}" if self.reached.note else ""
        numbers = map(self.number, (reached.estimate, reached.low, reached.high))
        return (short(self.words, 100), self.what, *numbers, self.verdict + note)


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Displayed):
    """What decisions do to groups of people: means, gaps and loss, each with an interval.

    Attributes
    ----------
    measures : tuple of MeasureAudit
    loss : Interval or None
        Mean loss per person; None when it needs labels and there are none.
    groups : tuple
    rows : int
        How many rows were audited.
    confidence : float
        With which every interval holds: of a group's mean by itself, of a gap for all groups together.
    notes : tuple of str
        What to beware of.
    loss_name : str
        What the loss is called; "error", the error rate, is read as an accuracy.
    persons : Measured
        The values behind it, person by person; not part of any output.
    shown_ratios : tuple of Ratios
        Ratios that stand in every output; see :meth:`with_ratios`.
    requirements : tuple of RequirementAudit
        What was asked of the policy that is audited, if one is, and whether these people meet it.
    labels : KnownLabels, or None
        Where labels are missing: who has one, and what is supposed of the others.
    one_look : str
        What is said of gaps that are tested again and again; empty where none is tested.

    Examples
    --------
    >>> from felicific import audit
    >>> people = {"sex": ["f", "m"] * 50, "approved": [0, 1, 1, 1] * 25}
    >>> result = audit("approved", people, happiness={"yes": "decision == 1"}, sensitive_features="sex", gap=0.1)
    >>> result.gap, result.means
    (0.5, {'yes': {'f': 0.5, 'm': 1.0}})
    >>> result["yes"].test.verdict  # what is shown of "the gap is at most 0.1"
    'more'
    """

    measures: tuple[MeasureAudit, ...]
    loss: Interval | None
    groups: tuple[Any, ...]
    rows: int
    confidence: float
    notes: tuple[str, ...]
    persons: Measured = field(repr=False)
    loss_name: str = ""
    shown_ratios: tuple[Ratios, ...] = ()
    requirements: tuple[RequirementAudit, ...] = ()
    labels: KnownLabels | None = None
    one_look: str = ""

    def __getitem__(self, name: str) -> MeasureAudit:
        return self.measures[position(name, [found.measure for found in self.measures])]

    @property
    def gaps(self) -> dict[str, float]:
        """Gap of every measure, in its unit."""
        parts = self.measures
        return {found.measure.name: found.gap.estimate for found in parts if found.gap is not None}

    @property
    def gap(self) -> float:
        """The gap, when there is one measure."""
        own = measured([found.measure for found in self.measures])
        if len(own) != 1:
            raise ConstraintError(f"There are {len(own)} measures, so there is no single gap.", "Read .gaps.")
        return self.gaps[self.measures[own[0]].measure.name]

    @property
    def means(self) -> dict[str, dict[Any, float]]:
        """Mean happiness, by measure and group."""
        return {
            found.measure.name: {group: mean.estimate for group, mean in found.means.items()}
            for found in self.measures
        }

    @property
    def left_out(self) -> dict[str, dict[Any, float]]:
        """Which groups a measure does not compare, and how many people of each it counts; of those that leave any."""
        return {name: dict(part.people) for name, part in self.persons.left_out.items()}

    @cached_property
    def verdict(self) -> Verdict:
        """Whether the gaps are shown to be within, or more than, what is allowed; print it."""
        found: Verdict = import_module("felicific._audit.verdict").verdict_of_audit(self)
        return found

    @cached_property
    def ratios(self) -> Ratios:
        """Every group's mean divided by the largest, by measure, with intervals: ``ratios["selected"].smallest``."""
        return self.ratios_between()

    def ratios_between(self, between: Between = None, *, min_people: float = 0) -> Ratios:
        """Ratios between everybody of one sex and of another, say, where the groups are those of sex and race.

        Parameters
        ----------
        between : column name, or list of them, optional
            What is compared, of the columns that the groups are made of (of arrays, their positions); of a list the
            combinations. By default the groups as they are.
        min_people : number, default=0
            Groups of fewer people, or below 1 of a smaller share of all people, are shown and not compared.

        Returns
        -------
        Ratios
            By the name of the measure: ``.rows``, ``.smallest``, ``.left_out``. Print it.

        Examples
        --------
        >>> from felicific import audit
        >>> people = {"sex": ["f", "m", "m", "f"] * 50, "old": [0, 1] * 100, "hired": [0, 1, 1, 1] * 50}
        >>> asked = {"happiness": "statistical_parity", "sensitive_features": ["sex", "old"]}
        >>> found = audit("hired", people, **asked).ratios_between("sex")["selection rate"]
        >>> found.smallest.estimate, [row.group for row in found.rows], found.verdict
        (0.5, ['f', 'm'], 'less')
        """
        found: Ratios = _ratios_module().find_ratios(self, between, min_people)
        return found

    def with_ratios(self, *between: Between, min_people: float = 0) -> Audit:
        """The same, with ratios in its text, data, table and page: one comparison for each ``between``.

        Without any the groups are compared as they are; see :meth:`ratios_between`.
        """
        found = [self.ratios_between(what, min_people=min_people) for what in between or (None,)]
        for ratios in found:
            if not ratios:
                raise next(iter(ratios.refused.values()))
        return replace(self, shown_ratios=tuple(found))

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data that JSON can hold; an infinite limit is None."""
        shown = {"ratios": [ratios.to_dict() for ratios in self.shown_ratios]} if self.shown_ratios else {}
        few = {name: {str(group): n for group, n in people.items()} for name, people in self.left_out.items()}
        others = {"left_out": few} if few else {}
        asked = [row.to_dict() for row in self.requirements]
        labels = {} if self.labels is None else {"labels": _labels_to_dict(self.labels)}
        return {
            "confidence": self.confidence,
            "rows": self.rows,
            "groups": plain_all(self.groups),
            "measures": [_measure_to_dict(found) for found in self.measures],
            "loss": None if self.loss is None else interval_to_dict(self.loss),
            "notes": [*self.notes, *([self.one_look] if self.one_look else [])],
        } | (others | shown | ({"requirements": asked} if asked else {}) | labels)

    def pairs(self) -> Any:
        """Differences of all pairs of groups as a dataframe: the higher mean minus the lower, by measure.

        The intervals of a measure hold for all of its pairs together.

        Examples
        --------
        >>> from felicific import audit
        >>> people = {"sex": ["f", "m"] * 50, "approved": [0, 1, 1, 1] * 25}
        >>> found = audit("approved", people, happiness="statistical_parity", sensitive_features="sex").pairs()
        >>> found["higher"][0], found["lower"][0], float(found["difference"][0])
        ('m', 'f', 0.5)
        """
        lines: list[dict[str, Any]] = import_module("felicific._audit.methods").pairs_of(self)
        return table_maker("auto")({name: np.array([line[name] for line in lines]) for name in PAIR_COLUMNS})

    def plot(self, after: Audit | None = None, **options: Any) -> Any:
        """Group means with their intervals as an Altair chart, and those of another audit beside them.

        See :func:`felicific.plots.groups`.
        """
        return import_module("felicific.plots").groups(self, after, **options)

    def to_html(self, **options: Any) -> str:
        """One HTML page that needs no other file; ``title`` and ``command`` are said on it."""
        page: str = import_module("felicific._report.document").audit_report(self, **options).to_html()
        return page

    def _lines(self) -> list[dict[str, Any]]:
        """One line per mean, gap, requirement and the loss."""
        lines = []
        for found in self.measures:
            name, unit = found.measure.name, found.measure.unit
            lines += [line_of(name, unit, "mean", str(group), mean) for group, mean in found.means.items()]
            test = found.test
            if found.gap is None:
                continue
            lines.append(
                line_of(name, unit, "gap", "", found.gap)
                | {"bias": found.bias}
                | (
                    {}
                    if test is None
                    else {"at_most": test.at_most, "p_value": test.p_value, "p_exceeds": test.p_exceeds}
                    | {"verdict": test.verdict}
                )
            )
        for ratios in self.shown_ratios:
            lines += ratios.lines()
        for row in self.requirements:
            unit = "" if row.statistic == "ratio" else row.measure.unit
            line = line_of(row.measure.name, unit, f"required: {row.words}", "", row.reached)
            lines.append(line | {"verdict": row.verdict})
        if self.loss is not None:
            lines.append(line_of("loss", "", "loss", "", self.loss))
        return lines

    def to_frame(self) -> Any:
        """One row per mean, gap, ratio that is shown, requirement, and the loss, as a pandas or Polars dataframe."""
        lines = self._lines()
        empty: dict[str, Any] = dict.fromkeys(COLUMNS, "") | dict.fromkeys(
            ("bias", "at_most", "p_value", "p_exceeds"), math.nan
        )
        names, empty = (*COLUMNS, *bounded(lines)), empty | dict.fromkeys(BOUNDS, math.nan)
        return table_maker("auto")(
            {name: np.array([(empty | line)[name] for line in lines]) for name in names}
        )

    def __str__(self) -> str:
        return "\n".join(_text(self))

    _whole: ClassVar[str] = "print it, or to_frame()."

    def _parts(self) -> list[Part]:
        ratios = [part for found in self.shown_ratios for part in found._parts()]
        asked = [row.row() for row in self.requirements]
        return [
            Lines([_title(self)], strong=True),
            *self.verdict._parts(),
            Lines(self.notes),
            *([Table(ASKED, ASKED_HEADER, asked, self._whole, words=True)] if asked else []),
            Lines([] if self.loss is None else [loss_line(self.loss, self.loss_name)]),
            *ratios,
            *(table for part in self.measures for table in part._parts()),
        ]


def _ratios_module() -> Any:
    """Imported by name: it is made of what this module defines."""
    return import_module("felicific._audit.ratios")


PAIR_COLUMNS = ("measure", "higher", "lower", "difference", "low", "high", "n", "method")

COLUMNS = (
    "measure", "unit", "what", "group", "n", "estimate", "low", "high", "bias", "at_most", "p_value", "p_exceeds",
    "verdict", "method", "note",
)  # fmt: skip


#: Columns that there are where hidden reasons leave something open.
BOUNDS = ("bounds_low", "bounds_high")


def bounded(lines: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Those columns, if some line has them."""
    return BOUNDS if any(BOUNDS[0] in line for line in lines) else ()


# ---------------------------------------------------------------------------------------------------------
# Output


def plain(value: Any) -> Any:
    """A value that JSON can hold."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def plain_all(values: Iterable[Any]) -> list[Any]:
    """Values that JSON can hold."""
    return [plain(value) for value in values]


def interval_to_dict(interval: Interval) -> dict[str, Any]:
    """An interval as plain data."""
    bounds = {} if interval.bounds is None else {"bounds": plain_all(interval.bounds)}
    return {
        name: plain(getattr(interval, name)) for name in ("estimate", "low", "high", "n", "method", "note")
    } | bounds


def _labels_to_dict(labels: KnownLabels) -> dict[str, Any]:
    """Who has a label, as plain data."""
    ratio = labels.max_odds_ratio
    condition = {"condition": labels.condition} if ratio > 1.0 else {}
    groups = []
    for group, known in labels.to_dict().items():
        shares = {
            name: [{"label": plain(label), "share": plain(share)} for label, share in known[name].items()]
            for name in ("seen", "imputed")
        }
        numbers = {name: plain(value) for name, value in known.items() if name not in shares}
        groups.append({"group": plain(group)} | numbers | shares)
    return {"max_odds_ratio": "inf" if math.isinf(ratio) else ratio} | condition | {"groups": groups}


def means_to_dict(means: Mapping[Any, Interval]) -> list[dict[str, Any]]:
    """Intervals of groups as plain data."""
    return [{"group": plain(group)} | interval_to_dict(mean) for group, mean in means.items()]


def _measure_to_dict(found: MeasureAudit) -> dict[str, Any]:
    test = found.test
    return {
        "name": found.measure.name,
        "unit": found.measure.unit,
        "bounds": None if found.measure.bounds is None else list(found.measure.bounds),
        "means": means_to_dict(found.means),
        "gap": None if found.gap is None else interval_to_dict(found.gap) | {"bias": plain(found.bias)},
        "proof": found.proof,
        "between": None if found.between is None else plain_all(found.between),
        "test": None
        if test is None
        else {
            "at_most": test.at_most,
            "p_value": test.p_value,
            "p_exceeds": test.p_exceeds,
            "verdict": test.verdict,
        },
    } | ({} if found.at is None else {"at": plain(found.at)})


def line_of(name: str, unit: str, what: str, group: str, interval: Interval) -> dict[str, Any]:
    """An interval as one line of a dataframe."""
    return {
        "measure": name,
        "unit": unit,
        "what": what,
        "group": group,
        "n": interval.n,
        "estimate": interval.estimate,
        "low": interval.low,
        "high": interval.high,
        "method": interval.method,
        "note": interval.note,
    } | ({} if interval.bounds is None else dict(zip(BOUNDS, interval.bounds, strict=True)))


def row_of(name: str, interval: Interval, measure: Measure) -> tuple[str, ...]:
    """An interval as one row of a table for reading."""
    method = interval.method + (f"; {interval.note}" if interval.note else "")
    if interval.bounds is not None:
        method += f"; hidden reasons leave {' to '.join(map(measure.cell, interval.bounds))}"
    numbers = (measure.cell(part) for part in (interval.estimate, interval.low, interval.high))
    return (short(name), written(interval.n, 6), *numbers, method)


def table_of_means(
    measure: Measure,
    means: Mapping[Any, Interval],
    gaps: Mapping[str, Interval | None],
    remarks: Sequence[str] = (),
    what: str = "mean",
) -> Table:
    """Intervals of groups, and of the gap; of many groups the least and the largest."""
    return Table(
        titled(measure),
        ("group", "n", what, "low", "high", "method"),
        [row_of(str(group), interval, measure) for group, interval in means.items()],
        FRAME,
        foot=[row_of(name, gap, measure) for name, gap in gaps.items() if gap is not None],
        keep=between([interval.estimate for interval in means.values()]),
        remarks=remarks,
        words=True,
    )


#: Where the rows are that are not shown.
FRAME = "to_frame() has all; shown are the least and the largest."


def _rows_of(found: MeasureAudit) -> list[tuple[str, ...]]:
    named = [(str(group), interval) for group, interval in found.means.items()]
    named += [] if found.gap is None else [("gap", found.gap)]
    return [row_of(name, interval, found.measure) for name, interval in named]


HEADER = ("group", "n", "mean", "low", "high", "method")
ASKED, ASKED_HEADER = (
    "What was asked of the policy, on these people",
    ("asked", "is", "here", "low", "high", "by the estimate"),
)


def _remarks(found: MeasureAudit) -> list[str]:
    remarks = [found.remark] if found.remark else []
    if found.between is not None:
        measure = found.measure
        ends = [
            f"{short(str(group))} ({measure.cell(mean.estimate)} of {written(mean.n, 6)} people)"
            for group, mean in ((group, found.means[group]) for group in found.between)
        ]
        remarks.append(f"The gap is between {ends[0]} and {ends[1]}.")
    remarks += _better(found.measure) if found.at is None else []
    if math.isfinite(found.bias):
        remarks.append(
            "Between equal groups, chance alone would show a gap of "
            f"{found.measure.quantity(float(f'{found.bias:.3g}'))} on average."
        )
    test = found.test
    if test is not None:
        says = {
            "at most": "shown to hold",
            "more": "shown not to hold",
            "undecided": "neither shown nor refuted",
        }
        says = says if found.proof else says | {"undecided": NOT_MORE[found.measure.bounds is None]}
        remarks.append(
            f"Gap at most {found.measure.quantity(test.at_most)}: {says[test.verdict]} "
            f"(p-value of at most this {p_text(test.p_value)}, of more {p_text(test.p_exceeds)})."
        )
    return remarks


def _better(measure: Measure) -> list[str]:
    """Which direction is good for people, of what a criterion counts; of happiness everybody knows."""
    if not {measure.name, measure.family} & set(CRITERIA) and measure.wanted:
        return []
    lower = not measure.wanted or not (measure.fall_harms or "accuracy" in measure.name)
    return [f"{measure.name[:1].upper()}{measure.name[1:]}: {'lower' if lower else 'higher'} is better."]


#: What is said of a gap that large samples do not show to be more; without declared bounds what would help.
NOT_MORE = ("not shown to be more", "not shown to be more; declare bounds to show at most")


def p_text(p_value: float) -> str:
    """A p-value for reading: nobody can tell one in ten thousand from less."""
    return "below 0.001" if p_value < 0.001 else f"{p_value:.3g}"


def titled(measure: Measure) -> str:
    """A measure's name with its unit, unless the numbers say it."""
    unit = "" if measure.in_currency else measure.unit
    said = f": {measure.title}" if measure.tells_who else ""
    return short(measure.name + said, 80) + (f" ({unit})" if unit else "")


def loss_line(loss: Interval, name: str) -> str:
    """The loss in one line; the error rate as an accuracy, in per cent."""
    ends = (loss.high, loss.low) if is_accuracy(name) else (loss.low, loss.high)
    number, low, high = (loss_text(name, part) for part in (loss.estimate, *ends))
    if loss.bounds is None:
        return f"{loss_words(name)} {number}, from {low} to {high} {_how(loss)}{_root(loss, name)}"
    open_ends = [loss_text(name, part) for part in loss.bounds]
    left = " to ".join(open_ends[::-1] if is_accuracy(name) else open_ends)
    return f"{loss_words(name)} {number}, from {low} to {high} {_how(loss)}; hidden reasons leave {left}"


def _root(loss: Interval, name: str) -> str:
    """Of a mean of squares its root, which is in the unit of the label."""
    if name != "squared":
        return ""
    number, low, high = (written(math.sqrt(max(part, 0.0))) for part in (loss.estimate, loss.low, loss.high))
    return f"; its root, in the unit of the label, {number}, from {low} to {high}"


def loss_change(loss: Interval, name: str) -> str:
    """A change of the loss in one line; of an accuracy in points of per cent."""
    parts = (loss.estimate, loss.low, loss.high)
    if not is_accuracy(name):
        number, low, high = map(written, parts)
        return f"change of the loss per person {number}, from {low} to {high} {_how(loss)}"
    number, high, low = (f"{-100.0 * part:+.2f}" for part in parts)
    return f"change of the accuracy {number} points, from {low} to {high} {_how(loss)}"


def _how(loss: Interval) -> str:
    return f"({loss.method}{'; ' + loss.note if loss.note else ''})"


def _title(found: Audit) -> str:
    return f"Audit of {found.rows:,} rows, confidence {found.confidence:.6g}"


def _text(found: Audit) -> list[str]:
    lines = [_title(found), "", *found.verdict.lines()]
    for part in found.measures:
        lines += ["", titled(part.measure), *table_lines(HEADER, _rows_of(part))]
        lines += [f"  {short(remark, 200)}" for remark in _remarks(part)]
    for ratios in found.shown_ratios:
        lines += ["", str(ratios)]
    if found.requirements:
        lines += ["", ASKED, *table_lines(ASKED_HEADER, [row.row() for row in found.requirements])]
    lines += [] if found.loss is None else ["", loss_line(found.loss, found.loss_name)]
    return [*lines, *([""] if found.notes else []), *(short(note, 400) for note in found.notes)]
