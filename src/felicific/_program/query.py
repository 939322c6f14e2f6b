r"""Queries: aggregates of people in a table that is not in memory, by one query of its engine.

Rows are grouped by (group, signal, the baseline, label), and the engine adds up the products

.. math:: w_i W_{is}, \qquad w_i W_{is} a_j(i), \qquad w_i W_{is} a_j(i) (\eta_j(d; i) - o_j).

Whatever does not look at x (a cost matrix, a criterion) is the same for all rows of such a key, so it is computed
from the keys afterwards and costs the engine nothing. What is wrong with some row shows in the sums; then, and only
then, the rows are gone through in batches, to say which.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np

from felicific._people.checks import PROBABILITY_TOLERANCE
from felicific._people.lazy import LazyPeople, no_rows
from felicific._people.people import People
from felicific._people.worth import SLACK, TYPICAL, Batch, Worth, refuse_overflow, typical, worth_of
from felicific._problem.problem import Problem
from felicific._program.aggregates import Aggregates
from felicific._program.aggregates_file import check_size
from felicific._program.signals import Signal
from felicific._program.sum_names import SUMS
from felicific._program.summing import sum_people
from felicific._tables.column import Column
from felicific._tables.engine import QueryEngine, as_floats, as_list
from felicific._tables.groups import (
    encode_groups,
    find_groups,
    name_groups,
    refuse_identifiers,
    without_null,
)
from felicific._tables.memory import EXACT, as_objects
from felicific._typing import Array, Codes, Floats
from felicific.exceptions import DataError, EngineError, FelicificError, HappinessError


def sum_lazily(people: LazyPeople, signal: Signal) -> Aggregates:
    """Aggregates by one query where everything can be written as expressions, else batch by batch."""
    engine, columns = people.engine, people.columns
    # Of folds, because engines know no hash in common; of missing labels, because functions are then asked of people
    # who have one, and of the others as if they had each.
    by_rows = columns.missing_labels is not None and columns.y is not None
    if people.plan.reason is not None or not isinstance(engine, QueryEngine) or by_rows:
        return _batchwise(people, signal)
    try:
        return Query(people, engine, signal).aggregates()
    except Exception as error:
        # Go through the rows: that says what is wrong with which of them.
        _batchwise(people, signal)
        if isinstance(error, FelicificError):
            raise
        raise EngineError(
            f"{engine.label} could not compute the aggregates ({type(error).__name__}: "
            f"{' '.join(str(error).split())[:500]}).",
            "Please report it; until then, pass the table in memory.",
        ) from error


# ---------------------------------------------------------------------------------------------------------
# Batch by batch


def _batchwise(people: LazyPeople, signal: Signal) -> Aggregates:
    """Sum up batches of rows with the code for tables in memory."""
    aggregates: Aggregates = people.fold(partial(_sum_some, people.problem, signal), add_groups)
    if not aggregates.rows.sum() and people.groups is None:
        raise no_rows(people.columns.weight)
    if people.groups is None:
        refuse_identifiers(aggregates.groups, int(aggregates.rows.sum()), aggregates.total)
    refuse_overflow(people.problem, aggregates.value, aggregates.loss)
    return aggregates


def _sum_some(problem: Problem, signal: Signal, people: People) -> Aggregates:
    return sum_people(people, problem, signal)


def add_groups(left: Aggregates, right: Aggregates) -> Aggregates:
    """Add aggregates of parts of one table, either of which may lack some groups."""
    if left.groups == right.groups:
        return left + right
    groups = find_groups(np.array([*{*left.groups, *right.groups}, None], dtype=object)[:-1])
    return _regrouped(left, groups) + _regrouped(right, groups)


def _regrouped(aggregates: Aggregates, groups: tuple[Any, ...]) -> Aggregates:
    """The same aggregates with rows of zeros for the groups it lacks."""
    place = [groups.index(group) for group in aggregates.groups]

    def spread(array: Any) -> Any:
        wide = np.zeros((len(groups), *array.shape[1:]), dtype=array.dtype)
        wide[place] = array
        return wide

    sums = [name for name in (*SUMS, "rows") if getattr(aggregates, name) is not None]
    others = aggregates.unlabelled
    if others is not None:
        others = others.mapped(lambda part: _regrouped(part, groups), spread)
    return replace(
        aggregates,
        groups=groups,
        unlabelled=others,
        **{name: spread(getattr(aggregates, name)) for name in sums},
    )


# ---------------------------------------------------------------------------------------------------------
# The query


class Query:
    """One aggregation by (group, signal, decision by the baseline, label)."""

    def __init__(self, people: LazyPeople, engine: QueryEngine, signal: Signal) -> None:
        self.people, self.engine, self.signal = people, engine, signal
        self.plan, self.problem = people.plan, people.problem
        self.columns = people.columns
        self.decisions, self.labels = self.problem.decisions.tolist(), self.problem.labels.tolist()
        self.spreads = signal.spreads(len(self.labels))
        if self.columns.score is None and self.columns.predicted is None:
            raise DataError("There are neither probabilities nor predictions.", "Pass score= or predicted=.")
        if self.columns.score is None and signal.needs_proba:
            raise DataError(
                f"The {signal.kind} policy sees probabilities.",
                "Name their columns in score=, or use policy='label'.",
            )

    def aggregates(self) -> Aggregates:
        """Run it, and put the sums where they belong."""
        frame = self._prepared()
        origins = self._origins(frame)
        keys = [f"g{i}" for i in range(len(self.plan.group))] + ["key"]
        products = self._products(origins)
        frame = frame.select(*keys, *(expr.alias(name) for name, expr in products.items()))
        import narwhals as nw

        sums = frame.group_by(keys).agg(nw.len().alias("n"), *(nw.col(name).sum() for name in products))
        return self._assembled(self.engine.collect(sums), origins, products)

    def _prepared(self) -> Any:
        """Columns of rows of positive weight, with groups g0, ..., shares s0, ..., weight w, key and bad."""
        import narwhals as nw

        engine, plan = self.engine, self.plan
        frame, wrong = engine.frame(), self._unusable()
        frame = frame.select(*(f"c{engine.names.index(name)}" for name in plan.used))
        if self.columns.weight is not None:
            number = engine.column(self.columns.weight, "sample_weight").astype(float).expr
            frame = frame.filter(number.is_null() | (number != 0.0))
            wrong.append((number < 0.0) | (number >= np.inf))
            frame = frame.with_columns(number.alias("w"))
        if self.columns.score is not None:
            frame = self._with_shares(frame, wrong)
        wrong += self._outside()
        labels = nw.lit(0, dtype=nw.Int64)
        if self.columns.y is not None:
            labels = self._coded(engine.column(self.columns.y, "y"), self.labels)
        own, known = self._own(), self.problem.decided_as
        if self.columns.baseline is not None:
            baseline = self._coded(engine.column(self.columns.baseline, "baseline"), self.decisions)
            wrong.append(own == len(self.labels))
        elif known is None:
            baseline = own
        else:  # where nobody knows it, the first stands for all
            baseline = nw.lit(len(self.decisions), dtype=nw.Int64)
            for k, place in enumerate(known.tolist()):
                code = nw.lit(max(place, 0), dtype=nw.Int64)
                baseline = nw.when(own == k).then(code).otherwise(baseline)
            wrong.append(own == len(self.labels))
        # The baseline is looked at by what may be wrong.
        frame = frame.with_columns(
            own.alias("own"),
            baseline.alias("baseline"),
            labels.alias("label"),
            *(column.expr.alias(f"g{i}") for i, column in enumerate(plan.group)),
        )
        flag = wrong[0]
        for more in wrong[1:]:
            flag = flag | more
        frame = frame.with_columns(nw.when(flag).then(nw.lit(1)).otherwise(nw.lit(0)).alias("bad"))
        top = nw.col("own") if self.columns.predicted is None else self._top
        cell = self.signal.key(len(self.labels), top)
        key = (cell * (len(self.decisions) + 1) + nw.col("baseline")) * (len(self.labels) + 1) + nw.col(
            "label"
        )
        return frame.with_columns(key.alias("key"))

    def _unusable(self) -> list[Any]:
        """Conditions that a value is missing, or is a whole number of which the engine would lose digits."""
        import narwhals as nw

        engine = self.engine
        used = self.columns.complete(self.plan.used, labels=self.problem.looks_at_y)
        wrong = [nw.col(f"c{engine.names.index(name)}").is_null() for name in used]
        for i, name in enumerate(engine.names):
            if name in used and engine.dtypes[i].is_float():
                wrong.append(nw.col(f"c{i}").is_nan())
            long = engine.dtypes[i] in (nw.Int64, nw.UInt64, nw.Int128, nw.UInt128, nw.Decimal)
            if long and name in used:
                # Rows in memory do not lose them.
                wrong.append(engine.column(name, "x").astype(float).expr.abs() >= float(EXACT))
        return wrong

    def _with_shares(self, frame: Any, wrong: list[Any]) -> Any:
        """With probabilities s0, s1, ... that sum to one, and the largest of them, best."""
        import narwhals as nw

        shares = [self.engine.column(name, "score").astype(float).expr for name in self.columns.score]
        if len(shares) == 1:
            shares = [nw.lit(1.0) - shares[0], shares[0]]
        total, every = shares[0], range(len(shares))
        for share in shares[1:]:
            total = total + share
        frame = frame.with_columns(
            total.alias("t"), *(share.alias(f"p{k}") for k, share in enumerate(shares))
        )
        wrong += [nw.col(f"p{k}") < 0.0 for k in every]
        wrong.append((nw.col("t") - 1.0).abs() > PROBABILITY_TOLERANCE)
        frame = frame.with_columns(*((nw.col(f"p{k}") / nw.col("t")).alias(f"s{k}") for k in every))
        return frame.with_columns(nw.max_horizontal(*(f"s{k}" for k in every)).alias("best"))

    def _outside(self) -> list[Any]:
        """Conditions that a value leaves the bounds that were stated for it, or a membership is neither 0 nor 1."""
        import narwhals as nw

        found = [((who != 0) & (who != 1)).expr for who in self.plan.counted]
        for happiness, values, inside in zip(
            self.problem.happiness, self.plan.values, self.plan.inside, strict=True
        ):
            if happiness.bounds is None or values is None:
                continue
            (low, high), slack = happiness.bounds, SLACK * (happiness.bounds[1] - happiness.bounds[0])
            for value in values:
                number = value.astype(float).expr
                if happiness.over:  # 0 is what those add who are not counted
                    inside = value != 0
                beyond = (
                    (number != low) & (number != high)
                    if happiness.rate
                    else (number < low - slack) | (number > high + slack)
                )
                found.append(
                    beyond if inside is None else nw.when(inside.expr).then(beyond).otherwise(nw.lit(False))
                )
        return found

    def _coded(self, column: Column, classes: list[Any]) -> Any:
        """Position of a value among the classes; their number where it is none of them."""
        import narwhals as nw

        code = nw.lit(len(classes), dtype=nw.Int64)
        for k, choice in reversed(list(enumerate(classes))):
            code = nw.when((column == choice).expr).then(nw.lit(k, dtype=nw.Int64)).otherwise(code)
        return code

    def _own(self) -> Any:
        """The model's own label: as it says, or the first of the most probable ones."""
        if self.columns.predicted is not None:
            return self._coded(self.engine.column(self.columns.predicted, "predicted"), self.labels)
        return self._top

    @property
    def _top(self) -> Any:
        """The first of the most probable labels."""
        import narwhals as nw

        last = len(self.labels) - 1
        code = nw.lit(last, dtype=nw.Int64)
        for k in reversed(range(last)):
            best = nw.col(f"s{k}") >= nw.col("best")
            code = nw.when(best).then(nw.lit(k, dtype=nw.Int64)).otherwise(code)
        return code

    def _values(self) -> dict[str, Any]:
        """Every measure's value at every decision, and every loss, that looks at x."""
        values = {}
        for j, worth in enumerate(self.plan.values):
            for d, value in enumerate(worth or ()):
                values[f"v{j}_{d}"] = value.astype(float).expr
        for d, loss in enumerate(self.plan.losses or ()):
            values[f"l{d}"] = loss.astype(float).expr
        return values

    def _better(self) -> dict[str, Any]:
        """For every pair of decisions, whether somebody who is counted gets more from the second: b{j}_{t}_{d}."""
        values, found = self._values(), {}
        for j, inside in enumerate(self.plan.inside):
            for t, d in permutations(range(len(self.decisions)), 2):
                if self.plan.values[j] is not None:
                    truth = values[f"v{j}_{d}"] > values[f"v{j}_{t}"]
                    found[f"b{j}_{t}_{d}"] = truth if inside is None else inside.expr & truth
        return found

    def _origins(self, frame: Any) -> list[float | None]:
        """A typical value of every measure that looks at x, from the first rows."""
        origins: list[float | None] = [None] * len(self.problem.happiness)
        looking = [j for j, values in enumerate(self.plan.values) if values is not None]
        if not looking:
            return origins
        who = {
            f"a{j}": inside.astype(float).expr
            for j, inside in enumerate(self.plan.inside)
            if inside is not None
        }
        values = {name: expr for name, expr in self._values().items() if name.startswith("v")}
        wanted = {**who, **values}
        sample = self.engine.collect(
            frame.head(8 * TYPICAL).select(*(expr.alias(name) for name, expr in wanted.items()))
        )
        for j in looking:
            seen = np.stack([as_floats(sample, f"v{j}_{d}") for d in range(len(self.decisions))])
            inside = np.asarray(np.isfinite(seen).all(axis=0))
            if f"a{j}" in wanted:
                inside = inside & (as_floats(sample, f"a{j}") == 1.0)
            origins[j] = typical(seen, inside) or 0.0
        return origins

    def _products(self, origins: list[float | None]) -> dict[str, Any]:
        """Every product that is summed, as a column of its own."""
        import narwhals as nw

        weight = nw.col("w") if self.columns.weight is not None else None
        shares = [nw.col(f"s{s}") for s in range(self.spreads)] if self.spreads > 1 else [None]
        products = {"bad": nw.col("bad")}
        if weight is not None:
            products["parts"] = nw.when(weight % 1.0 != 0.0).then(nw.lit(1)).otherwise(nw.lit(0))
        values, better = self._values(), self._better()
        for s, share in enumerate(shares):
            by = share if weight is None else weight if share is None else weight * share
            if by is not None:
                products[f"m_{s}"] = by
            for j, inside in enumerate(self.plan.inside):
                if inside is not None:
                    one = nw.lit(1.0) if by is None else by
                    products[f"a{j}_{s}"] = nw.when(inside.expr).then(one).otherwise(nw.lit(0.0))
            for name, truth in better.items():
                products[f"{name}_{s}"] = (
                    nw.when(truth).then(nw.lit(1.0) if by is None else by).otherwise(nw.lit(0.0))
                )
            for name, value in values.items():
                if name.startswith("v"):
                    j = int(name[1 : name.index("_")])
                    value, inside = value - (origins[j] or 0.0), self.plan.inside[j]
                    if inside is not None:
                        value = nw.when(inside.expr).then(value).otherwise(nw.lit(0.0))
                products[f"{name}_{s}"] = value if by is None else by * value
                if name.startswith("v") and not self.problem.happiness[j].rate:
                    square = value * value
                    products[f"q{name[1:]}_{s}"] = square if by is None else by * square
        return products

    def _assembled(self, result: Any, origins: list[float | None], products: dict[str, Any]) -> Aggregates:
        """Put the sums of every key into the arrays of the aggregates."""
        sums = {name: as_floats(result, name) for name in products} if len(result) else {}
        if not len(result) or sums["bad"].any():
            # The rows say what is wrong with them; whole numbers that are no floats can be summed there.
            return _batchwise(self.people, self.signal)
        n_decisions, n_labels = len(self.decisions), len(self.labels)
        key = np.array(as_list(result, "key"), dtype=np.int64)
        label, rest = key % (n_labels + 1), key // (n_labels + 1)
        baseline, cell = rest % (n_decisions + 1), rest // (n_decisions + 1)
        if (label == n_labels).any() and not self.problem.looks_at_y:
            return _batchwise(self.people, self.signal)  # some are missing, and nobody asks for them
        if (label == n_labels).any() or (baseline == n_decisions).any():
            raise DataError("Some labels are not among the classes.", "Name every class there is.")
        keys = [as_objects(as_list(result, f"g{i}")) for i in range(len(self.plan.group))]
        group = name_groups([without_null(column) for column in keys])
        known = self.people.groups if self.people.groups is not None else find_groups(group)
        if self.people.groups is None:
            refuse_identifiers(
                known, int(as_floats(result, "n").sum()), float(sums.get("m_0", np.zeros(1)).sum())
            )
        codes = encode_groups(group, known)
        found = _Keys(
            self, known, codes, np.asarray(group), label, baseline, cell, as_floats(result, "n"), sums
        )
        return found.aggregates(origins)


@dataclass(frozen=True)
class _Keys:
    """What the query returned, key by key."""

    query: Query
    known: tuple[Any, ...]
    z: Codes
    group: Array
    label: Codes
    baseline: Codes
    cell: Codes
    counts: Floats
    sums: dict[str, Floats]

    def aggregates(self, origins: list[float | None]) -> Aggregates:
        """Sum up the keys of every group and signal."""
        problem, signal, n_labels = self.query.problem, self.query.signal, len(self.query.labels)
        shape = (len(self.known), signal.size(n_labels))
        k, j = len(problem.decisions), len(problem.happiness)
        check_size(*shape, k, j)
        known = self._knows_baseline
        now = problem.decisions[self.baseline] if problem.looks_at_baseline and known else None
        codes = None if self.query.columns.y is None else self.label
        names = None if codes is None else problem.labels[codes]
        batch = Batch(None, names, codes, self.group, np.arange(len(self.z)), now)
        worth = worth_of(problem, batch)
        mass, loss, baseline_loss = np.zeros(shape), np.zeros((*shape, k)), np.zeros(shape)
        value, among, square = np.zeros((*shape, k, j)), np.zeros((*shape, j)), np.zeros((*shape, k, j))
        more, less = np.zeros((*shape, k, j)), np.zeros((*shape, k, j))
        baseline_value, baseline_mass, origin = np.zeros((*shape, j)), np.zeros((*shape, k)), list(origins)
        for s, cell in enumerate(signal.of_key(self.cell, n_labels)):
            index = (self.z, cell)
            weight = self.sums.get(f"m_{s}", self.counts)
            np.add.at(mass, index, weight)
            np.add.at(baseline_mass, (*index, self.baseline), weight)
            self._place(loss, baseline_loss, index, self._lost(worth, s, weight))
            for c in range(j):
                inside, values, squares = self._happy(worth, c, s, weight, origin)
                np.add.at(among[..., c], index, inside)
                self._place(value[..., c], baseline_value[..., c], index, values)
                for d, column in enumerate(squares):
                    np.add.at(square[..., d, c], index, column)
                for sums, columns in zip((more, less), self._moved(worth, c, s, weight), strict=True):
                    for d, column in enumerate(columns):
                        np.add.at(sums[..., d, c], index, column)
        refuse_overflow(problem, value, loss)
        compared: dict[str, Any] = {
            "baseline_loss": baseline_loss,
            "baseline_value": baseline_value,
            "baseline_mass": baseline_mass,
            "gains": more,
            "loses": less,
        }
        return Aggregates(
            classes=problem.labels,
            decisions=problem.decisions,
            rising=problem.rising,
            order=problem.order,
            groups=self.known,
            measures=problem.measures,
            signal=signal,
            loss_name=problem.loss.name,
            origin=np.array([0.0 if number is None else number for number in origin]),
            mass=mass,
            loss=loss,
            value=value,
            among=among,
            square=square,
            **(compared if known else dict.fromkeys(compared)),
            rows=np.bincount(self.z, self.counts, minlength=len(self.known)).astype(np.int64),
            roles=self.query.columns.remembered(),
            weight_kind=self.query.columns.weight_kind,
            attributes=self.query.columns.attributes,
            baseline_given=self.query.columns.baseline is not None,
            whole=not np.any(self.sums.get("parts", 0.0)),
        )

    @property
    def _knows_baseline(self) -> bool:
        """Whether there is a baseline."""
        known = self.query.problem.decided_as
        return self.query.columns.baseline is not None or known is None or bool((known >= 0).all())

    def _place(self, sums: Floats, baseline: Floats, index: Any, columns: Floats) -> None:
        for d, column in enumerate(columns):
            np.add.at(sums[..., d], index, column)
        np.add.at(baseline, index, columns[self.baseline, np.arange(len(self.baseline))])

    def _lost(self, worth: Worth, s: int, weight: Floats) -> Floats:
        """Loss of every decision, key by key."""
        if self.query.plan.losses is None:
            return weight * worth.cost
        decisions = self.query.decisions
        return np.stack([self._finite(f"l{d}_{s}", "The loss", choice) for d, choice in enumerate(decisions)])

    def _happy(
        self, worth: Worth, j: int, s: int, weight: Floats, origin: list[float | None]
    ) -> tuple[Floats, Floats, Floats]:
        """Weight inside `among`, happiness of every decision relative to the origin and its squares, key by key."""
        plan, decisions = self.query.plan, self.query.decisions
        if plan.values[j] is not None:
            what = f"The happiness {self.query.problem.happiness[j].name!r}"
            inside = weight if plan.inside[j] is None else self.sums[f"a{j}_{s}"]
            values = [self._finite(f"v{j}_{d}_{s}", what, choice) for d, choice in enumerate(decisions)]
            if self.query.problem.happiness[j].rate:
                return inside, np.stack(values), np.abs(values)
            squares = [self._finite(f"q{j}_{d}_{s}", what, choice) for d, choice in enumerate(decisions)]
            return inside, np.stack(values), np.stack(squares)
        numbers, counted = worth.values(j)
        if origin[j] is None:
            origin[j] = typical(numbers, counted) or 0.0
        inside = weight if counted is None else weight * counted
        away = numbers - (origin[j] or 0.0)
        return inside, inside * away, inside * away**2

    def _moved(self, worth: Worth, j: int, s: int, weight: Floats) -> tuple[Floats, Floats]:
        """Weight of those who get more, and less, from every decision than from the baseline's, key by key."""
        if self.query.plan.values[j] is None:
            numbers, counted = worth.values(j)
            inside = weight if counted is None else weight * counted
            now = numbers[self.baseline, np.arange(len(self.baseline))]
            return inside * (numbers > now), inside * (numbers < now)
        k = len(self.query.decisions)
        more, less = np.zeros((k, len(self.z))), np.zeros((k, len(self.z)))
        for t, d in permutations(range(k), 2):
            here = self.baseline == t
            more[d, here] = self.sums[f"b{j}_{t}_{d}_{s}"][here]
            less[d, here] = self.sums[f"b{j}_{d}_{t}_{s}"][here]
        return more, less

    def _finite(self, name: str, what: str, decision: Any) -> Floats:
        sums = self.sums[name]
        if not np.isfinite(sums).all():
            raise HappinessError(
                f"{what}, for the decision {decision!r}, is not a finite number in some row, or overflows.",
                "Repair the rows of the table, or use a larger unit.",
            )
        return sums
