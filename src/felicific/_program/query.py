r"""Queries: moments of a table that is not in memory, by one query of its engine.

Rows are grouped by (group, signal, the model's own decision, label), and the engine adds up the products

.. math:: w_i W_{is}, \qquad w_i W_{is} a_j(i), \qquad w_i W_{is} a_j(i) (\eta_j(d; i) - o_j).

Whatever does not look at x (a cost matrix, a criterion) is the same for all rows of such a key, so it is computed
from the keys afterwards and costs the engine nothing. What is wrong with some row shows in the sums; then, and only
then, the rows are gone through in batches, to say which.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from felicific._problem.happiness import Batch, Happiness, check_bounds, evaluate, evaluate_among
from felicific._program.moments import Moments
from felicific._program.plan import Ask, Plan, Rows, fold_rows, make_plan, no_rows
from felicific._program.signals import FINE, Label, Score, ScoreCells, SoftLabel, fine_per_class
from felicific._program.summing import PROBABILITY_TOLERANCE, compute_moments, refuse_overflow, resolve_loss
from felicific._tables.column import Column
from felicific._tables.engine import Engine, QueryEngine, as_floats, as_list
from felicific._tables.groups import encode_groups, find_groups, name_groups
from felicific._tables.memory import as_objects
from felicific._typing import Array, Codes, Floats
from felicific.exceptions import DataError, EngineError, FelicificError, HappinessError

#: Rows that a typical value of each component is taken from.
SAMPLE = 8192

#: Floats tell whole numbers below it apart.
EXACT = 2.0**53


def engine_moments(engine: Engine, ask: Ask) -> Moments:
    """Moments by one query where everything can be written as expressions, else batch by batch."""
    plan = make_plan(engine, ask)
    if plan.reason is not None or not isinstance(engine, QueryEngine):
        return _batchwise(engine, ask, plan)
    try:
        return Query(engine, ask, plan).moments()
    except Exception as error:
        # Go through the rows: that says what is wrong with which of them.
        _batchwise(engine, ask, plan)
        if isinstance(error, FelicificError):
            raise
        raise EngineError(
            f"{engine.label} could not compute the moments ({type(error).__name__}: "
            f"{' '.join(str(error).split())[:500]}).",
            "Please report it; until then, pass the table in memory.",
        ) from error


# ---------------------------------------------------------------------------------------------------------
# Batch by batch


def _batchwise(engine: Engine, ask: Ask, plan: Plan) -> Moments:
    """Sum up batches of rows with the code for tables in memory."""
    found: Moments = fold_rows(engine, ask, plan, _rows_moments, add_groups)
    if not found.rows.sum() and ask.groups is None:
        raise no_rows(ask.weight)
    refuse_overflow(ask.happiness, found.value, found.loss)
    return found


def _rows_moments(ask: Ask, rows: Rows) -> Moments:
    """Moments of some rows of the table."""
    return compute_moments(
        rows.table,
        y=rows.y,
        group=rows.group,
        classes=ask.classes,
        happiness=ask.happiness,
        signal=ask.signal,
        loss=ask.loss,
        proba=rows.proba,
        predicted=rows.predicted,
        groups=ask.groups,
        sample_weight=rows.weight,
        first_row=rows.place.start,
    )


def add_groups(left: Moments, right: Moments) -> Moments:
    """Add moments of parts of one table, either of which may lack some groups."""
    if left.groups == right.groups:
        return left + right
    groups = find_groups(np.array([*{*left.groups, *right.groups}, None], dtype=object)[:-1])
    return _regrouped(left, groups) + _regrouped(right, groups)


def _regrouped(moments: Moments, groups: tuple[Any, ...]) -> Moments:
    """The same moments with rows of zeros for the groups it lacks."""
    place = [groups.index(group) for group in moments.groups]

    def spread(array: Any) -> Any:
        wide = np.zeros((len(groups), *array.shape[1:]), dtype=array.dtype)
        wide[place] = array
        return wide

    sums = ("mass", "loss", "value", "among", "today_loss", "today_value", "rows")
    return replace(moments, groups=groups, **{name: spread(getattr(moments, name)) for name in sums})


# ---------------------------------------------------------------------------------------------------------
# The query


class Query:
    """One aggregation by (group, signal, own decision, label)."""

    def __init__(self, engine: QueryEngine, ask: Ask, plan: Plan) -> None:
        self.engine, self.ask, self.plan = engine, ask, plan
        self.classes = ask.classes.tolist()
        self.k = len(self.classes)
        self.spreads = self.k if isinstance(ask.signal, SoftLabel) else 1

    def moments(self) -> Moments:
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

        ask, engine, plan = self.ask, self.engine, self.plan
        frame = engine.frame()
        needed = [f"c{engine.names.index(name)}" for name in plan.used]
        wrong = [nw.col(name).is_null() for name in needed]
        wrong += [
            nw.col(f"c{i}").is_nan()
            for i, name in enumerate(engine.names)
            if name in plan.used and engine.dtypes[i].is_float()
        ]
        wrong += [
            # Of whole numbers that are no floats the engine would lose digits; rows in memory do not.
            engine.column(name, "x").astype(float).expr.abs() >= EXACT
            for i, name in enumerate(engine.names)
            if name in plan.used and name not in ask.named
            if engine.dtypes[i] in (nw.Int64, nw.UInt64, nw.Int128, nw.UInt128)
        ]
        frame = frame.select(*needed)
        if ask.weight is not None:
            weight = engine.column(ask.weight, "sample_weight")
            number = weight.astype(float).expr
            frame = frame.filter(number.is_null() | (number != 0.0))
            wrong.append((number < 0.0) | (number >= np.inf))
            frame = frame.with_columns(number.alias("w"))
        if ask.proba is not None:
            shares = [engine.column(name, "proba").astype(float).expr for name in ask.proba]
            total = shares[0]
            for share in shares[1:]:
                total = total + share
            frame = frame.with_columns(
                total.alias("t"), *(share.alias(f"p{k}") for k, share in enumerate(shares))
            )
            wrong += [nw.col(f"p{k}") < 0.0 for k in range(self.k)]
            wrong.append((nw.col("t") - 1.0).abs() > PROBABILITY_TOLERANCE)
            frame = frame.with_columns(
                *((nw.col(f"p{k}") / nw.col("t")).alias(f"s{k}") for k in range(self.k))
            )
            frame = frame.with_columns(nw.max_horizontal(*(f"s{k}" for k in range(self.k))).alias("best"))
        wrong += self._outside()
        flag = wrong[0]
        for more in wrong[1:]:
            flag = flag | more
        own, labels = self._own(), self._coded(engine.column(str(ask.y), "y"))
        frame = frame.with_columns(
            own.alias("own"),
            labels.alias("label"),
            nw.when(flag).then(nw.lit(1)).otherwise(nw.lit(0)).alias("bad"),
            *(column.expr.alias(f"g{i}") for i, column in enumerate(plan.group)),
        )
        key = (self._bins() * (self.k + 1) + nw.col("own")) * (self.k + 1) + nw.col("label")
        return frame.with_columns(key.alias("key"))

    def _outside(self) -> list[Any]:
        """Conditions that a value leaves the bounds that were stated for it, or a membership is neither 0 nor 1."""
        import narwhals as nw

        found = [((who != 0) & (who != 1)).expr for who in self.plan.counted]
        for happiness, values, inside in zip(
            self.ask.happiness, self.plan.values, self.plan.inside, strict=True
        ):
            if happiness.bounds is None or values is None:
                continue
            (low, high), slack = happiness.bounds, 1e-9 * (happiness.bounds[1] - happiness.bounds[0])
            for value in values:
                number = value.astype(float).expr
                beyond = (number < low - slack) | (number > high + slack)
                found.append(
                    beyond if inside is None else nw.when(inside.expr).then(beyond).otherwise(nw.lit(False))
                )
        return found

    def _coded(self, column: Column) -> Any:
        """Position of a label among the classes; their number where it is none of them."""
        import narwhals as nw

        found = nw.lit(self.k, dtype=nw.Int64)
        for k, choice in reversed(list(enumerate(self.classes))):
            found = nw.when((column == choice).expr).then(nw.lit(k, dtype=nw.Int64)).otherwise(found)
        return found

    def _own(self) -> Any:
        """The model's own decision: as it says, or the first of the most probable classes."""
        if self.ask.predicted is not None:
            return self._coded(self.engine.column(self.ask.predicted, "predicted"))
        if self.ask.proba is None:
            raise DataError("There are neither probabilities nor predictions.", "Pass proba= or predicted=.")
        return self._top()

    def _top(self) -> Any:
        """The first of the most probable classes."""
        import narwhals as nw

        found = nw.lit(self.k - 1, dtype=nw.Int64)
        for k in reversed(range(self.k - 1)):
            best = nw.col(f"s{k}") >= nw.col("best")
            found = nw.when(best).then(nw.lit(k, dtype=nw.Int64)).otherwise(found)
        return found

    def _bins(self) -> Any:
        """The fine bin of a score, with the very operations of :func:`felicific._program.signals.fine_bins`."""
        import narwhals as nw

        signal = self.ask.signal
        if not isinstance(signal, Score | ScoreCells):
            return nw.lit(0, dtype=nw.Int64)
        if self.ask.proba is None:
            raise DataError(
                f"The {signal.kind} policy sees probabilities.",
                "Name their columns in proba=, or use policy='label'.",
            )
        if self.k == 2:
            above = nw.when(nw.col("s1") > signal.boundary).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
            return ((nw.col("s1") * float(FINE)).ceil() + above).cast(nw.Int64)
        fine = fine_per_class(self.k)
        top = self._top() if self.ask.predicted is not None else nw.col("own")
        return top * (fine + 1) + (nw.col("best") * float(fine)).ceil().cast(nw.Int64)

    def _values(self) -> dict[str, Any]:
        """Every component's value at every decision, and every loss, that looks at x."""
        found = {}
        for j, values in enumerate(self.plan.values):
            for d, value in enumerate(values or ()):
                found[f"v{j}_{d}"] = value.astype(float).expr
        for d, loss in enumerate(self.plan.losses or ()):
            found[f"l{d}"] = loss.astype(float).expr
        return found

    def _origins(self, frame: Any) -> Floats:
        """A typical value of every component, from some rows."""
        origins = np.full(len(self.ask.happiness), np.nan)
        looking = [j for j, values in enumerate(self.plan.values) if values is not None]
        if not looking:
            return origins
        who = {
            f"a{j}": self.plan.inside[j].astype(float).expr  # type: ignore[union-attr]  # asked below
            for j in looking
            if self.plan.inside[j] is not None
        }
        values = {name: expr for name, expr in self._values().items() if name.startswith("v")}
        wanted = {**who, **values}
        sample = self.engine.collect(
            frame.head(SAMPLE).select(*(expr.alias(name) for name, expr in wanted.items()))
        )
        for j in looking:
            seen = np.stack([as_floats(sample, f"v{j}_{d}") for d in range(self.k)])
            if f"a{j}" in wanted:
                seen = seen[:, as_floats(sample, f"a{j}") == 1.0]
            seen = seen[np.isfinite(seen)]
            origins[j] = np.median(seen) if seen.size else 0.0
        return origins

    def _products(self, origins: Floats) -> dict[str, Any]:
        """Every product that is summed, as a column of its own."""
        import narwhals as nw

        weight = nw.col("w") if self.ask.weight is not None else None
        shares = [nw.col(f"s{s}") for s in range(self.k)] if self.spreads > 1 else [None]
        products = {"bad": nw.col("bad")}
        values = self._values()
        for s, share in enumerate(shares):
            by = share if weight is None else weight if share is None else weight * share
            if by is not None:
                products[f"m_{s}"] = by
            for j, inside in enumerate(self.plan.inside):
                if inside is not None:
                    one = nw.lit(1.0) if by is None else by
                    products[f"a{j}_{s}"] = nw.when(inside.expr).then(one).otherwise(nw.lit(0.0))
            for name, value in values.items():
                if name.startswith("v"):
                    j = int(name[1 : name.index("_")])
                    value, inside = value - float(origins[j]), self.plan.inside[j]
                    if inside is not None:
                        value = nw.when(inside.expr).then(value).otherwise(nw.lit(0.0))
                products[f"{name}_{s}"] = value if by is None else by * value
        return products

    def _assembled(self, found: Any, origins: Floats, products: dict[str, Any]) -> Moments:
        """Put the sums of every key into the arrays of the moments."""
        if not len(found):
            return _batchwise(self.engine, self.ask, self.plan)
        sums = {name: as_floats(found, name) for name in products}
        if sums["bad"].any():
            # The rows say what is wrong with them; whole numbers that are no floats can be summed there.
            return _batchwise(self.engine, self.ask, self.plan)
        key = np.array(as_list(found, "key"), dtype=np.int64)
        label, own, fine = key % (self.k + 1), key // (self.k + 1) % (self.k + 1), key // (self.k + 1) ** 2
        if (label == self.k).any() or (own == self.k).any():
            raise DataError("Some labels are not among the classes.", "Name every class there is.")
        group = name_groups([as_objects(as_list(found, f"g{i}")) for i in range(len(self.plan.group))])
        known = self.ask.groups if self.ask.groups is not None else find_groups(group)
        counts = as_floats(found, "n")
        keys = _Keys(
            self.ask, self.plan, known, encode_groups(group, known), group, label, own, fine, counts, sums
        )
        return keys.moments(origins)


@dataclass(frozen=True)
class _Keys:
    """What the query returned, key by key."""

    ask: Ask
    plan: Plan
    known: tuple[Any, ...]
    z: Codes
    group: Array
    label: Codes
    own: Codes
    fine: Codes
    counts: Floats
    sums: dict[str, Floats]

    def moments(self, origins: Floats) -> Moments:
        """Sum up the keys of every group and signal."""
        ask, k = self.ask, len(self.ask.classes)
        g, size = len(self.known), ask.signal.size(k)
        cells = self._cells()
        shape = (g, size)
        batch = Batch(None, ask.classes[self.label], self.group, np.arange(len(self.z)))
        mass = np.zeros(shape)
        loss, today_loss = np.zeros((*shape, k)), np.zeros(shape)
        j = len(ask.happiness)
        value, among = np.zeros((*shape, k, j)), np.zeros((*shape, j))
        today_value = np.zeros((*shape, j))
        origin = origins.copy()
        for s, cell in enumerate(cells):
            index = (self.z, cell)
            here = self.sums.get(f"m_{s}", self.counts)
            np.add.at(mass, index, here)
            self._place(loss, today_loss, index, self._lost(batch, s, here))
            for c, happiness in enumerate(ask.happiness):
                inside, values = self._happy(c, happiness, batch, s, here, origin)
                np.add.at(among[..., c], index, inside)
                self._place(value[..., c], today_value[..., c], index, values)
        refuse_overflow(ask.happiness, value, loss)
        return Moments(
            classes=ask.classes,
            groups=self.known,
            components=tuple(happiness.component for happiness in ask.happiness),
            signal=ask.signal,
            loss_name=resolve_loss(ask.loss, ask.classes)[0],
            origin=np.where(np.isnan(origin), 0.0, origin),
            mass=mass,
            loss=loss,
            value=value,
            among=among,
            today_loss=today_loss,
            today_value=today_value,
            rows=np.bincount(self.z, self.counts, minlength=g).astype(np.int64),
        )

    def _cells(self) -> list[Codes]:
        signal, k = self.ask.signal, len(self.ask.classes)
        if isinstance(signal, SoftLabel):
            return [np.full(len(self.z), s) for s in range(k)]
        if isinstance(signal, Label):
            return [self.own]
        if isinstance(signal, ScoreCells):
            return [np.searchsorted(np.array(signal.cuts, dtype=np.intp), self.fine, side="right")]
        return [self.fine]

    def _place(self, sums: Floats, today: Floats, index: Any, columns: list[Floats]) -> None:
        for d, column in enumerate(columns):
            np.add.at(sums[..., d], index, column)
        np.add.at(today, index, np.stack(columns)[self.own, np.arange(len(self.own))])

    def _lost(self, batch: Batch, s: int, mass: Floats) -> list[Floats]:
        """Loss of every decision, key by key."""
        decisions = self.ask.classes.tolist()
        if self.plan.losses is not None:
            return [self._finite(f"l{d}_{s}", "The loss", choice) for d, choice in enumerate(decisions)]
        cost = resolve_loss(self.ask.loss, self.ask.classes)[1]
        if isinstance(cost, np.ndarray):
            return [mass * cost[self.label, d] for d in range(len(decisions))]
        return [mass * evaluate(cost, "The loss", batch, choice) for choice in decisions]

    def _happy(
        self, j: int, happiness: Happiness, batch: Batch, s: int, mass: Floats, origin: Floats
    ) -> tuple[Floats, list[Floats]]:
        """Weight inside `among`, and happiness of every decision relative to the origin, key by key."""
        what, decisions = f"The happiness {happiness.name!r}", self.ask.classes.tolist()
        if self.plan.values[j] is not None:
            inside = mass if self.plan.inside[j] is None else self.sums[f"a{j}_{s}"]
            return inside, [self._finite(f"v{j}_{d}_{s}", what, choice) for d, choice in enumerate(decisions)]
        counted = evaluate_among(happiness, batch)
        values = [evaluate(happiness.function, what, batch, choice, counted) for choice in decisions]
        for choice, value in zip(decisions, values, strict=True):
            check_bounds(happiness, value, counted, batch, choice)
        if np.isnan(origin[j]):
            seen = np.stack(values) if counted is None else np.stack(values)[:, counted]
            origin[j] = np.median(seen) if seen.size else 0.0
        inside = mass if counted is None else mass * counted
        return inside, [inside * (value - origin[j]) for value in values]

    def _finite(self, name: str, what: str, decision: Any) -> Floats:
        sums = self.sums[name]
        if not np.isfinite(sums).all():
            raise HappinessError(
                f"{what}, for the decision {decision!r}, is not a finite number in some row, or overflows.",
                "Repair the rows of the table, or use a larger unit.",
            )
        return sums
