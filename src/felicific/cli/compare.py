"""``felicific compare``: what another way of deciding changes for the same people."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

from felicific.cli.options import (
    Answer,
    Baseline,
    Bounded,
    Confidence,
    Evidence,
    Label,
    Measured,
    output_option,
    people_option,
)

if TYPE_CHECKING:
    from felicific import Policy
    from felicific._audit.comparison import Comparison
    from felicific._audit.result import Audit
    from felicific._typing import Floats
    from felicific.cli.people import People


@dataclass(frozen=True, kw_only=True)
class CompareOptions(Measured, Evidence, Bounded, Answer):
    """What ``felicific compare`` is told."""

    before: Annotated[
        str | None,
        people_option(
            "WAY",
            "How is decided before: a column of decisions, or the file of a policy. Default: what the model "
            "predicts, by --score.",
        ),
    ] = None
    after: Annotated[
        str,
        people_option("WAY", "How is decided afterwards: a column of decisions, or the file of a policy."),
    ]
    label: Label = None
    baseline: Baseline = None
    confidence: Confidence = 0.95
    out: Annotated[Path | None, output_option("FILE", "Also write it to this .json or .csv file.")] = None


def compare(options: CompareOptions) -> None:
    """Compare two ways of deciding on the same people: gaps, means, loss, who gains and who loses.

    Example: felicific compare later.csv --before approved --after policy.json --score score --label repaid --group sex
    --happiness "decision * loan"
    """
    from felicific._audit.comparison import compare as paired
    from felicific._files import write_whole
    from felicific.cli.outputs import check_target, print_json, working

    check_target(options.out, [".json", ".csv"], force=options.force)
    with working(f"Comparing on {options.file} ..."):
        pair = _Pair(options)
        before, after = pair.measured("before"), pair.measured("after")
        found = paired(before.audit, after.audit, confidence=options.confidence)
        flows = _flows_of_amounts(found, before, after) if pair.amounts else pair.flows(before, after)
    content = _content(found, before, after, flows)
    if options.out is not None:
        csv = options.out.suffix.lower() == ".csv"
        text = _as_csv(found, flows) if csv else json.dumps(content, indent=1, allow_nan=False) + "\n"
        write_whole(options.out, text)
    if options.as_json:
        print_json(content)
        return
    print("\n".join(_lines(found, before, after, flows)))
    if options.out is not None:
        print(f"Written to {options.out}.")


class _Way(NamedTuple):
    """One way of deciding: what it is called, its audit, and the chance of every decision about everybody."""

    name: str
    audit: Audit
    probabilities: Floats


class _Flows(NamedTuple):
    """Shares of every group: who get another decision, and who get more and less of each measure; None of fractions.

    ``independent`` says whether both ways randomize of their own, taken for independent of each other.
    """

    groups: tuple[Any, ...]
    changed: Floats
    gain: dict[str, Floats | None]
    lose: dict[str, Floats | None]
    independent: bool


class _Pair:
    """A file of people, and two ways of deciding on them."""

    def __init__(self, options: CompareOptions) -> None:
        from felicific._files import format_of
        from felicific.cli.documents import read_policy
        from felicific.cli.files import open_source
        from felicific.cli.inputs import read_decisions, read_function, read_range
        from felicific.cli.options import RoleOptions

        self.options = options
        self.roles = RoleOptions.of(options)
        self.ways = {"before": options.before, "after": options.after}
        # A document is a policy, or refused by what it is.
        self.files = {
            name: Path(way) for name, way in self.ways.items() if way is not None and format_of(way)
        }
        source = open_source(self.roles.file, self.roles.table)
        columns = {name: way for name, way in self.ways.items() if name not in self.files}
        source.check(**columns)
        self.policies: dict[str, Policy] = {}
        held = {
            one
            for way in (*columns.values(), options.label)
            if way is not None
            for one in source.distinct(way)
        }
        self.classes = sorted(held, key=lambda one: (type(one).__name__, one))
        self.range = read_range(options.decisions)
        if self.range is None and options.decisions is None and not self.files and self._are_amounts():
            self.range = (-math.inf, math.inf)
        self.classes = [] if self.range else read_decisions(options.decisions, self.classes) or self.classes
        for name, path in self.files.items():
            self.policies[name] = read_policy(path, **self._functions(read_function))
            self.classes = self._known_to(self.policies[name], f"--{name} {path}")

    @property
    def amounts(self) -> bool:
        """Whether the decisions of both ways are amounts."""
        return self.range is not None

    def _are_amounts(self) -> bool:
        """Whether the decisions of both ways are amounts, and not classes."""
        import numpy as np

        from felicific._audit.amounts import are_numbers, reason_for_amounts, reason_in_numbers
        from felicific.cli.inputs import read_happiness

        values = np.array(self.classes)
        asked = reason_for_amounts(read_happiness(self.roles) or [], self.roles.loss)
        return are_numbers(values) and bool(asked or reason_in_numbers(values, None))

    def _functions(self, read: Any) -> dict[str, Any]:
        from felicific.cli.inputs import read_happiness

        return {"happiness": read_happiness(self.roles) or None, "loss": read(self.roles.loss, "loss")}

    def _known_to(self, policy: Policy, said: str) -> list[Any]:
        """The decisions of a policy, if there are no others."""
        from felicific.exceptions import DataError

        known = policy.classes.tolist()
        if policy.listed:
            raise DataError(
                f"The decisions of {said} are listed, and ways of deciding between classes are compared here.",
                "Compare what they decided: felicific apply each, then --before and --after name the columns.",
            )
        others = [one for one in self.classes if one not in known]
        if others:
            raise DataError(
                f"{others[0]!r} stands in the file, and the decisions of {said} are {', '.join(map(repr, known))}.",
                "Compare ways that decide among the same.",
            )
        return list(known)

    def people(self, name: str) -> People:
        """The people with one way of deciding on them."""
        from felicific.cli.people import People

        if name in self.files:
            return People.find(replace(self.roles, policy=self.files[name], classes=None))
        told: dict[str, Any] = {"decision": self.ways[name], "predicted": None, "group_proba": None}
        return People.find(replace(self.roles, **told), classes=self.classes)

    def measured(self, name: str) -> _Way:
        """One way of deciding, with what it does."""
        import numpy as np

        people = self.people(name)
        people.check_audited()
        rows, label = people.rows(), self.ways[name] or "what the model predicts"
        audit = self.audited(people, **people.in_memory())
        if people.policy is not None:
            return _Way(label, audit, people.chances(rows))
        if self.amounts:
            return _Way(label, audit, np.empty((0, 0)))
        known, decided = np.array(people.classes, dtype=object), people.decisions(rows)
        return _Way(
            label, audit, np.equal(np.asarray(decided, dtype=object)[:, None], known).astype(np.float64)
        )

    def audited(self, people: People, **told: Any) -> Audit:
        """An audit in memory."""
        from felicific._audit.audit import audit

        return audit(
            **told,
            happiness=people.happiness,
            sensitive_features=people.sensitive_features,
            loss=None if self.amounts and people.loss == "error" else people.loss,
            decisions=self.range or people.decided_among,
            baseline=people.baseline,
            weight_kind=people.weight_kind,
            confidence=self.options.confidence,
        )

    def flows(self, before: _Way, after: _Way) -> _Flows:
        """Whose decision changes, who gains and who loses, by what every decision would be worth to each person."""
        import warnings

        import numpy as np

        from felicific._policy.lottery import moves_between

        people = self.people("after")
        rows = people.rows()
        persons: Any = after.audit.persons
        known = people.evidence(rows)
        weight = known["sample_weight"]
        present = slice(None) if weight is None else np.flatnonzero(weight)
        named = {"X": rows, "y": people.label} | known
        values = []
        for decision in people.classes or ():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what is said of decisions that nobody takes
                column = np.full(len(before.probabilities), decision, dtype=object)
                one: Any = self.audited(replace(people, policy=None), decided=column, **named).persons
            values.append(one.values + one.origin)
        worth = np.stack(values, axis=1)  # person, decision, measure
        size = np.abs(worth).max(axis=(0, 1), initial=0.0)
        up = worth[:, None, :, :] > worth[:, :, None, :] + 1e-12 * size  # from which decision, to which
        was, then = before.probabilities[present], after.probabilities[present]
        salts = {self.policies[name].salt for name in self.policies}
        same_draws = len(self.policies) == 2 and len(salts) == 1
        moves = moves_between(was, then, same_draws=same_draws)

        def shares(amounts: Floats) -> Floats:
            """Of everybody of each group."""
            mass = np.ones(len(amounts)) if persons.weight is None else persons.weight
            totals = np.bincount(persons.codes, mass * amounts, minlength=len(persons.groups))
            return np.asarray(totals / np.bincount(persons.codes, mass, minlength=len(persons.groups)))

        def moved(sides: Any) -> dict[str, Floats | None]:
            inside = persons.inside
            return {
                measure.name: None
                if measure.over
                else shares(
                    (moves * sides[..., j]).sum(axis=(1, 2)) * (1.0 if inside is None else inside[:, j])
                )
                for j, measure in enumerate(persons.measures)
            }

        drawn = [bool(((probabilities > 0) & (probabilities < 1)).any()) for probabilities in (was, then)]
        changed = shares((1.0 - np.trace(moves, axis1=1, axis2=2)).clip(min=0.0))
        independent = all(drawn) and not same_draws
        return _Flows(persons.groups, changed, moved(up), moved(up.swapaxes(1, 2)), independent)


def _flows_of_amounts(found: Comparison, before: _Way, after: _Way) -> _Flows:
    """Who gets another amount, and who gains and loses by it."""
    import numpy as np

    one, other = (cast("Any", way.audit.persons) for way in (before, after))
    mass = np.ones(len(one.codes)) if one.weight is None else one.weight
    moved = np.bincount(one.codes, mass * (one.amounts != other.amounts), minlength=len(one.groups))
    changed = np.asarray(moved / np.bincount(one.codes, mass, minlength=len(one.groups)))

    def shares(known: dict[Any, Any]) -> Floats | None:
        return np.array([known[group].estimate for group in one.groups]) if known else None

    gain = {part.measure.name: shares(part.gains) for part in found.measures}
    lose = {part.measure.name: shares(part.loses) for part in found.measures}
    return _Flows(one.groups, changed, gain, lose, independent=False)


def _content(found: Comparison, before: _Way, after: _Way, flows: _Flows) -> dict[str, Any]:
    def way(one: _Way) -> dict[str, Any]:
        return {"way": one.name, "gaps": dict(one.audit.gaps)}

    groups = list(flows.groups)
    who = [
        {
            "measure": name,
            "group": group,
            "gain": None if gain is None else float(gain[z]),
            "lose": None if lose is None else float(lose[z]),
        }
        for (name, gain), lose in zip(flows.gain.items(), flows.lose.values(), strict=True)
        for z, group in enumerate(groups)
    ]
    changed = [
        {"group": z, "changed": share} for z, share in zip(groups, flows.changed.tolist(), strict=True)
    ]
    return {"before": way(before), "after": way(after), **found.to_dict(), "changed": changed, "who": who}


def _as_csv(found: Comparison, flows: _Flows) -> str:
    """The comparison, one row per number, with the shares of those who change, gain and lose."""
    frame = found.to_frame()
    places = {str(group): z for z, group in enumerate(flows.groups)}

    def column(shares: dict[str, Floats | None] | None) -> list[Any]:
        numbers = []
        for what, name, group in zip(frame["what"], frame["measure"], frame["group"], strict=True):
            known = flows.changed if shares is None else shares.get(name)
            numbers.append(None if what != "mean" or known is None else float(known[places[group]]))
        return numbers

    more = {"changed": column(None), "gain": column(flows.gain), "lose": column(flows.lose)}
    return str(frame.assign(**more).to_csv(index=False, lineterminator="\n"))


def _lines(found: Comparison, before: _Way, after: _Way, flows: _Flows) -> list[str]:
    from felicific._audit.result import titled
    from felicific._shown.parts import short
    from felicific.cli.outputs import columns_within

    lines = [f"Before: {short(before.name)}. Afterwards: {short(after.name)}."]
    for one, other in zip(before.audit.measures, after.audit.measures, strict=True):
        if one.gap is None or other.gap is None:
            continue
        was, then = (
            f"{one.measure.quantity(gap.estimate)} ({one.measure.cell(gap.low)} to {one.measure.cell(gap.high)})"
            for gap in (one.gap, other.gap)
        )
        lines.append(f"The gap of {short(one.measure.name)!r} is {was} before and {then} afterwards.")
    lines += ["", str(found), "", "Whose decision changes, and who gains and loses by it"]
    header, columns = (
        ["group", "changed"],
        [[*map(str, flows.groups)], [f"{share:.2%}" for share in flows.changed]],
    )
    single = len(flows.gain) == 1
    for part in found.measures:
        name = part.measure.name
        for word, shares in (("gain", flows.gain[name]), ("lose", flows.lose[name])):
            if shares is not None and not part.measure.aside:
                header.append(word if single else f"{word} {short(titled(part.measure), 24)}")
                columns.append([f"{share:.2%}" for share in shares])
    columns[0] = [short(text, 24) for text in columns[0]]
    lines += columns_within(tuple(header), list(zip(*columns, strict=True)))
    if flows.independent:
        lines.append(
            "Both ways randomize; these shares are as if the draws of one told nothing of those of the other."
        )
    return lines
