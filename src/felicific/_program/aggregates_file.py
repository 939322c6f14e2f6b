"""Aggregates in a file: the sums that stand in it, read back each of the type, shape and range it must have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from felicific._capacity import check_room
from felicific._files import (
    check_distinct,
    check_shape,
    read_classes,
    read_decisions,
    read_numbers,
    read_values,
    read_whole,
    refused,
)
from felicific._people.roles import Roles
from felicific._problem.happiness import Measure, read_measure
from felicific._problem.loss import loss_bounds
from felicific._problem.unions import read_attributes
from felicific._program.cell_sums import BASELINE, OPTIONAL, SUMS, CellSums
from felicific._program.signal_names import signal_from_json
from felicific._typing import Codes, Floats


def check_size(cells: int, decisions: int, measures: int) -> None:
    """Refuse sums that would not fit into memory, before they are made."""
    check_room(
        # Values, their squares, who gains and who loses; and once more to look at one of them.
        5.0 * cells * (decisions + 1) * (measures + 1),
        "Adding these people up",
        f"{cells:,} bins with people x {decisions} decisions x {measures:,} measures",
        "Use policy='label', merge classes or groups, or ask for a criterion of fewer parts, such as "
        "'statistical_parity' instead of 'equalized_odds'.",
    )


def read_aggregates(content: dict[str, Any]) -> dict[str, Any]:
    """The parts of aggregates out of a document, each of the type and shape it must have."""
    fields = _read_frame(content)
    classes, groups, measures = fields["classes"], fields["groups"], fields["measures"]
    g, j, size = len(groups), len(measures), fields["signal"].size(len(classes))
    rows = read_whole(check_shape("rows", read_numbers(content["rows"], "rows"), (g,)).tolist(), "rows")
    origin = check_shape("origin", read_numbers(content["origin"], "origin"), (j,))
    d = len(fields.get("decisions", classes))
    held = _read_sums(content, (g, size), {"d": d, "j": j})
    sums = held.arrays
    unknown = {name for name in BASELINE if name not in sums}
    if unknown and ("decisions" not in fields or len(unknown) == 1):
        raise refused(f"a part is missing: {min(unknown)}")
    _check_sums(held, rows)
    _check_ranges(sums, origin, measures, fields["loss_name"])
    return fields | {"sums": held, "rows": rows, "origin": origin} | _read_rest(content, j)


def _read_frame(content: dict[str, Any]) -> dict[str, Any]:
    """What the sums are of: classes, groups, measures, signal and loss."""
    classes = read_classes(content["classes"])
    groups = tuple(read_values(content["groups"], "group"))
    measures = tuple(read_measure(measure) for measure in content["measures"])
    signal, loss_name = signal_from_json(content["signal"]), content["loss_name"]
    if type(loss_name) is not str:
        raise refused(f"its loss is called {loss_name!r}")
    check_distinct(classes=classes.tolist(), groups=groups, measures=[c.name for c in measures])
    if len(classes) < 2:
        raise refused("it has fewer than two classes")
    signal.check(len(classes))
    frame = {
        "classes": classes,
        "groups": groups,
        "measures": measures,
        "signal": signal,
        "loss_name": loss_name,
    }
    return frame | read_decisions(content, classes)


def _read_sums(content: dict[str, Any], shape: tuple[int, int], sizes: dict[str, int]) -> CellSums:
    """The sums of the cells that the document names."""
    cells = read_whole(content["cells"], "cells").astype(np.intp).reshape(-1, 2)
    check_size(len(cells), sizes["d"], sizes["j"])
    place = cells[:, 0] * shape[1] + cells[:, 1]
    if len(np.unique(place)) < len(cells) or (cells >= shape).any():
        raise refused("a bin occurs twice, or is none")
    order, sums = np.argsort(place), {}
    for name, axes in SUMS.items():
        if name in (*OPTIONAL, *BASELINE) and name not in content:
            continue
        further = tuple(sizes[axis] for axis in axes)
        numbers = read_numbers(content[name], name) if len(cells) else np.zeros(0)
        array = numbers.reshape(-1 if len(cells) else 0, *further)
        sums[name] = np.moveaxis(check_shape(name, array, (len(cells), *further))[order], 0, -1)
    return CellSums(*shape, place[order], sums)


def _read_rest(content: dict[str, Any], n_measures: int) -> dict[str, Any]:
    """Kind of weights, attributes, and what decisions change."""
    weight_kind, whole, given = (content[name] for name in ("weight_kind", "whole", "baseline_given"))
    if weight_kind not in (None, "frequency", "sampling") or type(whole) is not bool:
        raise refused("its weights are of no kind")
    if type(given) is not bool:
        raise refused("whether its baseline was given is not known")
    changed = content["changed"]
    if len(changed) != n_measures or not all(type(one) is bool for one in changed):
        raise refused(f"which measures decisions change is {changed!r}")
    return {
        "weight_kind": weight_kind,
        "whole": whole,
        "changed": tuple(changed),
        "attributes": read_attributes(content["attributes"]),
        "baseline_given": given,
        "roles": Roles.from_json(content["roles"]),
    }


def _check_sums(held: CellSums, rows: Codes) -> None:
    """Refuse counts that no people have: negative ones, or parts that are no parts of the whole."""
    sums = held.arrays
    for name in ("mass", "among", "baseline_mass", "square", "gains", "loses", "worse"):
        if name in sums and (sums[name] < 0).any():
            raise refused(f"{name} is negative somewhere")
    if "baseline_mass" in sums and not np.allclose(
        sums["baseline_mass"].sum(axis=0), sums["mass"], rtol=1e-9, atol=0.0
    ):
        raise refused("its parts do not add up to the whole")
    if (sums["among"] > sums["mass"] * (1 + 1e-9)).any():
        raise refused("more people are counted than there are")
    counted = {"gains": "among", "loses": "among", "worse": "mass"}
    for name, most in counted.items():
        if name in sums and (sums[name] > sums[most] * (1 + 1e-9)).any():
            raise refused("more people gain or lose than are counted")
    if ((held.by_group(sums["mass"]) > 0) != (rows > 0)).any():
        raise refused("some group has people but no rows, or rows but no people")


def _check_ranges(
    sums: Mapping[str, Floats], origin: Floats, measures: Sequence[Measure], loss_name: str
) -> None:
    """Refuse losses and values beyond what so many people can have."""
    bounds, mass = loss_bounds(loss_name), sums["mass"]
    _check_range("loss", sums["loss"], mass, bounds)
    if "baseline_loss" in sums:
        _check_range("baseline_loss", sums["baseline_loss"], mass, bounds)
    for j, measure in enumerate(measures):
        among, bounds = sums["among"][j], measure.summed
        shift = origin[j] * among
        _check_range("value", sums["value"][:, j] + shift, among, bounds)
        if "baseline_value" in sums:
            _check_range("baseline_value", sums["baseline_value"][j] + shift, among, bounds)


def _check_range(name: str, sums: Floats, counts: Floats, bounds: tuple[float, float] | None) -> None:
    """Refuse sums that so many values within bounds cannot have, by more than rounding."""
    if bounds is None:
        return
    low, high = bounds
    room = 1e-9 * max(abs(low), abs(high)) * counts
    wrong = (sums < low * counts - room) | (sums > high * counts + room)
    if wrong.any():
        where = f"each person's lies from {low:g} to {high:g}"
        raise refused(f"{name} holds {sums[wrong][0]:g} where that cannot be: {where}")
