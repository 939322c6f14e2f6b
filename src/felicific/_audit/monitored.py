"""A monitor: people in the order in which they came, and whether a gap has opened among them."""

from __future__ import annotations

import hashlib
import math
import os
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from felicific._audit.arrived import Arrived, arrived
from felicific._audit.audit import Asked
from felicific._audit.result import Interval, plain, plain_all
from felicific._files import write_whole
from felicific._people.checks import level_outside
from felicific._people.roles import Roles
from felicific._policy.policy import policy_of
from felicific._problem.happiness import Happiness, HappinessLike, Measure, function_to_json
from felicific._problem.problem import Problem
from felicific._shown.parts import Displayed, Lines, Part
from felicific._statistics.sequences import Shown
from felicific._statistics.stream import BurnIn, Rows, Stream
from felicific._typing import Floats, Table
from felicific.exceptions import DataError, MonitorWarning

#: So many changes of group or happiness along some rows tell them from any others.
CHANGES = 20

#: What is kept of some rows: how many there were, and a hash of them.
DIGEST = re.compile(r"[1-9][0-9]{0,14}:[0-9a-f]{32}")

#: What a policy decides by; nothing else looks at it.
READ = ("score", "predicted", "group_proba")

#: How many times rows were given whose digests are kept, to know them again.
REMEMBERED = 260


@dataclass(frozen=True)
class Alarm:
    """A gap that was shown to be more than allowed.

    Attributes
    ----------
    measure : str
        Of what.
    above, below : group
        Between whom most of the evidence is: the mean of the one above that of the other.
    shown : bool
        Whether that pair alone is enough for the alarm; else only all pairs and measures together are.
    since : int
        How many of these had come before the time from which most of that evidence comes.
    rows : int
        How many people had come when the alarm was raised; in a sum of monitors, to the one that raised it.
    at_least : float
        At some time the gap was more than this; no less than what is allowed where the measure alone shows it.
    evidence : float
        The evidence then. For a system that keeps to what is allowed it ever reaches 20, say, in at most one of 20.
    """

    measure: str
    above: Any
    below: Any
    shown: bool
    since: int
    rows: int
    at_least: float
    evidence: float


@dataclass(frozen=True, eq=False, repr=False)
class Monitor(Displayed):
    """What is known of people who were decided on, in the order in which they came, and whether a gap has opened.

    Made by :func:`felicific.monitor`, or read from a file. It changes nothing: :meth:`add` returns another one.

    Attributes
    ----------
    groups : tuple
        The groups that are compared.
    listed : bool
        Whether somebody listed them: people of others can then be added, and are not compared.
    allowed : dict of measure to number
        The gap that is allowed.
    confidence : float
        A system that keeps to what is allowed at all times raises no alarm, ever, with this probability.
    alarm : Alarm or None
        It stays once it was raised.
    rows : int
        How many people came.

    Examples
    --------
    >>> from felicific import monitor
    >>> from felicific._audit.monitored import Monitor
    >>> week = {"sex": ["f", "m"] * 500, "approved": [0, 1, 1, 1] * 250}
    >>> first = monitor("approved", week, happiness="decision", sensitive_features="sex", gap=0.05)
    >>> first.alarm.above, first.alarm.below, first.alarm.rows
    ('m', 'f', 200)
    >>> first.add("approved", {"sex": ["f", "m"] * 20, "approved": [0, 1] * 20}).rows
    1040
    >>> first.gaps["decision"].estimate
    0.5
    """

    problem: Problem
    monitored: tuple[int, ...]
    groups: tuple[Any, ...]
    columns: Roles
    attributes: tuple[Any, ...]
    listed: bool
    confidence: float
    stream: Stream
    digests: tuple[str, ...] = ()
    alarm: Alarm | None = None

    _whole: ClassVar[str] = "print it, or to_dict()."

    # -----------------------------------------------------------------------------------------------------
    # What it shows

    @property
    def rows(self) -> int:
        """How many people came."""
        return self.stream.rows

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What is monitored."""
        return tuple(self.problem.measures[j] for j in self.monitored)

    @property
    def allowed(self) -> dict[str, float]:
        """The largest gap that is allowed, by measure."""
        return dict(zip([one.name for one in self.measures], self._widths.tolist(), strict=True))

    @property
    def evidence(self) -> float:
        """The evidence now that a gap is more than allowed; an alarm is raised when it reaches 1 / (1 - confidence)."""
        return _power(self._shown.log_evidence(self.stream.scaled_gaps(self._widths)))

    @property
    def needed(self) -> float:
        """The evidence that raises an alarm."""
        return float(f"{1.0 / (1.0 - self.confidence):.12g}")

    @cached_property
    def gaps(self) -> dict[str, Interval]:
        """The largest difference between groups, by measure, among people compared block by block.

        ``low``: with the monitor's confidence the gap was more than this at some time. ``high``: on average over all
        that came it was at most this. Each holds at all times together, however often it is read.
        """
        return self._gaps_at(self._shown, self.stream.rows - len(self.stream.open))

    def _gaps_at(self, shown: Shown, rows: int) -> dict[str, Interval]:
        line, widths = math.log(self.needed), self.stream.widths
        numbers = zip(
            (shown.estimate() * widths).tolist(),
            (shown.low(line) * widths).tolist(),
            (shown.high(line) * widths).tolist(),
            strict=True,
        )
        return {
            part.name: Interval(estimate, low, min(high, part.widest), rows, self._method(part))
            for part, (estimate, low, high) in zip(self.measures, numbers, strict=True)
        }

    def along(self) -> list[tuple[int, dict[str, Interval]]]:
        """The gaps as they were after so many people, from the first to now; of long ago, at fewer times."""
        return [(rows, self._gaps_at(shown, rows)) for rows, shown in self.stream.along()]

    @property
    def _shown(self) -> Shown:
        return self.stream.shown

    @property
    def _widths(self) -> Floats:
        return np.array(self.problem.widths)[list(self.monitored)]

    def _method(self, measure: Measure) -> str:
        return "large-sample" if measure.bounds is None else "betting"

    # -----------------------------------------------------------------------------------------------------
    # More people

    def add(
        self,
        decided: object,
        X: Table = None,
        y: object = None,
        *,
        sensitive_features: object = None,
        sample_weight: object = None,
        score: object = None,
        predicted: object = None,
        baseline: object = None,
    ) -> Monitor:
        """Another monitor, with the people who came since.

        Parameters
        ----------
        decided, X, y, sample_weight, score, predicted, baseline :
            As for :func:`felicific.monitor`; columns that were named there need not be named again.
        sensitive_features : array of shape (n,), optional
            The groups, where they are no column.
        """
        given = Roles(
            sensitive_features,
            y,
            score,
            predicted,
            baseline,
            decided=decided if isinstance(decided, str) else None,
            weight=sample_weight,
        )
        columns = self._named(given, () if policy_of(decided) is None else READ)
        asked = self._asked(columns.group)
        found = arrived(decided, X, columns, asked, fresh=False)
        return self.with_people(found, self)

    def _named(self, given: Roles, more: tuple[str, ...]) -> Roles:
        """Roles that were named when the monitor began, and ``more`` of them, unless they are named again."""
        own = {
            name: getattr(self.columns, name)
            for name in ("group", "y", "baseline", *more)
            if getattr(given, name) is None
        }
        return replace(given, **own)

    def _asked(self, group: object) -> Asked:
        """What is asked of more people: what was asked of the first."""
        gaps = {name: gap for name, gap in (self.problem.gaps or {}).items() if name in self.problem.closed}
        return Asked(
            own_happiness(self.problem),
            group,
            None,
            gaps,
            list(self.problem.order) or None,
            classes=self.problem.decisions.tolist(),
        )

    def with_people(self, found: Arrived, before: Monitor | None = None) -> Monitor:
        """With these people; what the monitor ``before`` them did not say is warned of."""
        rows = found.coded(self.groups, others=self.listed)
        chosen = list(self.monitored)
        rows = Rows(rows.codes, rows.values[:, chosen], rows.inside[:, chosen])
        self._refuse_counted(rows)
        line = math.inf if self.alarm is not None else math.log(self.needed)
        stream, crossed = self.stream.add(rows, self._widths, line)
        digest = digest_of(rows)
        digests = (*self.digests, *([digest] if digest else []))[-REMEMBERED:]
        alarm = self.alarm if crossed is None else self._alarm(crossed)
        monitor = replace(self, stream=stream, digests=digests, alarm=alarm)
        monitor._warn(before)
        return monitor

    def _refuse_counted(self, rows: Rows) -> None:
        """Refuse rows that were given before, also with others behind them."""
        number = counted_before(rows, self.digests)
        if number:
            which = "These" if number == len(rows) else "The first"
            raise DataError(
                f"{which} {number:,} rows were counted already.",
                "Give every person once: those who came since.",
            )

    def _alarm(self, stream: Stream) -> Alarm:
        """What is shown by a stream as it was when the evidence was enough."""
        shown, gaps, line = stream.shown, stream.scaled_gaps(self._widths), math.log(self.needed)
        parts = shown.by_pair(gaps)
        j, p, s = (int(i) for i in np.unravel_index(parts.argmax(), parts.shape))
        pair = [self.groups[int(of[p])] for of in np.triu_indices(stream.groups, 1)]
        above, below = pair if s == 0 else pair[::-1]
        low = float((shown.low(line) * stream.widths)[j])
        return Alarm(
            self.measures[j].name,
            above,
            below,
            bool(parts[j, p, s] >= line),
            shown.best_start(gaps, j, p, s),
            stream.rows,
            low,
            _power(shown.log_evidence(gaps)),
        )

    def __add__(self, other: Monitor) -> Monitor:
        """People of two monitors, who are different people: servers, or sites that may not share rows.

        Evidence of both is counted period by period, so add monitors that began together; people who came later are
        added with :meth:`add`, or a gap that opens late would be seen late. An alarm that one of them raised stays; it
        was raised by that one alone, so that with monitors that are looked at one by one the probabilities of a false
        alarm add up.
        """
        if not isinstance(other, Monitor):
            return NotImplemented
        self._refuse_other(other)
        stream = self.stream.plus(other.stream)
        earlier = sorted((one.alarm for one in (self, other) if one.alarm), key=lambda alarm: alarm.rows)
        monitor = replace(
            self,
            stream=stream,
            digests=(*self.digests, *other.digests)[-REMEMBERED:],
            alarm=earlier[0] if earlier else None,
        )
        if monitor.alarm is None and monitor.evidence >= self.needed:
            monitor = replace(monitor, alarm=monitor._alarm(stream))
        return monitor

    def _refuse_other(self, other: Monitor) -> None:
        """Refuse to add what does not monitor the same."""
        pairs = {
            "groups": (self.groups, other.groups),
            "measures": (self.measures, other.measures),
            "happiness": tuple(
                [function_to_json(part) for part in own_happiness(one.problem)] for one in (self, other)
            ),
            "allowed gaps": (self.allowed, other.allowed),
            "confidences": (self.confidence, other.confidence),
            "decisions": (self.problem.decisions.tolist(), other.problem.decisions.tolist()),
            "ways with other groups": (self.listed, other.listed),
        }
        for what, (one, two) in pairs.items():
            if one != two:
                raise DataError(
                    f"The {what} of two monitors differ: {one!r} and {two!r}.", "Add monitors of one kind."
                )
        for part, one, two in zip(self.measures, self.stream.scales, other.stream.scales, strict=True):
            if part.bounds is None and not (isinstance(one, BurnIn) and isinstance(two, BurnIn)):
                raise DataError(
                    f"{part.name!r} has no bounds, so each monitor has found a scale of its own, and they do not add.",
                    "State bounds= of the happiness, or monitor all people as one stream.",
                )
        if set(self.digests) & set(other.digests):
            raise DataError("Both monitors counted the same rows.", "Add monitors of different people.")

    # -----------------------------------------------------------------------------------------------------
    # Words

    def _warn(self, before: Monitor | None) -> None:
        """Say in one warning what was not said before."""
        known = set() if before is None else {kind for kind, _ in before._notes()}
        fresh = [text for kind, text in self._notes() if kind not in known]
        if fresh:
            warnings.warn(" ".join(fresh), MonitorWarning, stacklevel=level_outside())

    def _notes(self) -> list[tuple[str, str]]:
        """What to beware of, by its kind."""
        found: list[tuple[str, str]] = import_module("felicific._audit.words_of_monitors").notes_of(self)
        return found

    @property
    def notes(self) -> list[str]:
        """What to beware of."""
        return [text for _, text in self._notes()]

    def sentences(self) -> list[str]:
        """What it shows, in words."""
        found: list[str] = import_module("felicific._audit.words_of_monitors").sentences_of(self)
        return found

    def __str__(self) -> str:
        return "\n".join([*self.sentences(), *self.notes])

    def _parts(self) -> list[Part]:
        first, *rest = self.sentences()
        return [Lines([first], strong=True), Lines(rest), Lines(self.notes)]

    def to_dict(self) -> dict[str, Any]:
        """What it shows as plain data that JSON can hold; an infinite limit is None."""
        alarm = self.alarm
        return {
            "rows": self.rows,
            "groups": plain_all(self.groups),
            "confidence": self.confidence,
            "evidence": plain(self.evidence),
            "needed": self.needed,
            "alarm": None if alarm is None else {name: plain(value) for name, value in vars(alarm).items()},
            "measures": [
                {"name": name, "allowed": self.allowed[name], "estimate": plain(gap.estimate)}
                | {"low": plain(gap.low), "high": plain(gap.high), "method": gap.method}
                for name, gap in self.gaps.items()
            ],
            "notes": self.notes,
        }

    def plot(self, **options: object) -> Any:
        """The gap along the people who came, with both its ends, what is allowed, and the alarm, as an Altair chart.

        See :func:`felicific.plots.monitor`.
        """
        return import_module("felicific.plots").monitor(self, **options)

    # -----------------------------------------------------------------------------------------------------
    # Files

    def to_json(self) -> str:
        """Write it as text that :meth:`from_json` reads: sums, and of at most 99 people group and happiness."""
        text: str = import_module("felicific._audit.monitor_file").written(self)
        return text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file, whole or not at all."""
        write_whole(path, self.to_json())

    @classmethod
    def from_json(cls, text: str, happiness: HappinessLike | None = None) -> Monitor:
        """Read a monitor, refusing what is not exactly one; ``happiness`` are its Python functions, if it has any."""
        found: Monitor = import_module("felicific._audit.monitor_file").read(text, happiness)
        return found


def own_happiness(problem: Problem) -> list[Happiness]:
    """What was asked for, without what was put beside it to measure it."""
    return [part for part in problem.happiness if part.name in problem.closed]


def _power(log: float) -> float:
    """A number from its logarithm; infinite where a computer has no such number."""
    return math.exp(log) if log < 709.0 else math.inf


# ---------------------------------------------------------------------------------------------------------
# Rows that are known again: what is kept of those that were given, so that nobody is counted twice


def digest_of(rows: Rows) -> str:
    """How many there are, and a hash of each one's group and happiness; empty where others could look the same.

    Nothing else of them is in it, so that they are known again from another file or library.
    """
    written = _written(rows)
    if len(rows) < 2 or int((np.diff(written, axis=0) != 0).any(axis=1).sum()) < CHANGES:
        return ""
    return f"{len(rows)}:{hashlib.sha256(written.tobytes()).hexdigest()[:32]}"


def counted_before(rows: Rows, digests: Iterable[str]) -> int:
    """With how many rows these begin that were given before; 0 for none."""
    written, found, end = _written(rows), hashlib.sha256(), 0
    known = sorted((int(number), digest) for number, _, digest in (one.partition(":") for one in digests))
    for number, digest in known:
        if number > len(rows):
            break
        found.update(written[end:number].tobytes())
        end = number
        if found.hexdigest()[:32] == digest:
            return number
    return 0


def _written(rows: Rows) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Numbers of each row, one row after the other; there is one zero."""
    return np.column_stack([rows.codes, np.where(rows.inside, rows.values, 0.0), rows.inside]) + 0.0
