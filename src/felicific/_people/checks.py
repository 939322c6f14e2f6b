"""Checks that every row passes once: labels, probabilities, amounts, weights, clusters."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from typing import Any, Literal, TypeAlias

import numpy as np

from felicific._problem.missing_labels import SAY
from felicific._tables.memory import (
    Coded,
    Entries,
    as_entries,
    as_objects,
    as_vector,
    distinct,
    encode,
    exact_array,
    is_null,
    null_rows,
)
from felicific._typing import Array, Codes, Floats, Table, Truths
from felicific.exceptions import ClusterWarning, DataError

#: How far the probabilities of one person may be from summing to one (single precision models reach 1e-7).
PROBABILITY_TOLERANCE = 1e-6

#: Rows that are checked at a time: they stay in the processor's cache.
CHUNK = 16_384


#: Groups whose missing labels are counted out in a message.
GROUPS = 6


def check_length(values: Sized | None, n: int, what: str = "clusters") -> None:
    """Insist on one value for each of n rows, if there are any."""
    if values is not None and len(values) != n:
        raise DataError(f"There are {len(values)} {what} for {n} rows.", "Pass one for every row.")


def no_label(what: str, counts: Mapping[str, Sequence[int]], rows: int, first: str) -> DataError:
    """Some people have no label: how many of which group, and what leaving them out would mean.

    ``counts`` are, by the group as it is to be written, how many have none, and of how many; empty where the groups are
    not known.
    """
    gone = sum(int(none) for none, _ in counts.values())
    held = sorted(((none / n, group) for group, (none, n) in counts.items() if none), reverse=True)
    each = ", ".join(f"{_share(*counts[group])} of {group}" for _, group in held[:GROUPS])
    more = f" (and {len(held) - GROUPS} more groups)" if len(held) > GROUPS else ""
    return DataError(
        f"{what} is missing in {gone:,} of {rows:,} rows ({_share(gone, rows)}): {each}{more}; first in {first}. "
        "Leaving them out would fit the policy to the people who have one.",
        SAY,
    )


def _share(part: int, whole: int) -> str:
    """A part of people in per cent; of few, and of nearly all, not rounded to none or to all."""
    share = 100.0 * part / whole
    return f"{share:.0f} %" if part in (0, whole) or 1.0 <= share <= 99.0 else f"{share:.2g} %"


def refuse_missing_labels(labels: Entries, group: Entries, rows: Codes) -> None:
    """Refuse labels of which some are missing; ``rows`` are their numbers in the user's table."""
    missing = null_rows(labels)
    if len(missing):
        first = f"row {rows[missing[0]]}"
        raise no_label("The label", count_by_group(group, missing), len(labels), first)


def count_by_group(group: Entries, missing: Codes) -> dict[str, list[int]]:
    """How many of which group are missing something, and how many there are of it."""
    everyone, gone = Counter(group.tolist()), Counter(group[missing].tolist())
    return {repr(name): [gone[name], n] for name, n in everyone.items()}


def check_classes(classes: Iterable[Any], *, text_as_objects: bool = True) -> Array:
    """The classes as an array of at least two different values, of text as the table keeps it."""
    array = exact_array(classes if isinstance(classes, np.ndarray) else list(classes))
    if array.dtype.kind == "U" and text_as_objects:
        array = array.astype(object)
    if len(array) < 2 or len(set(array.tolist())) < len(array):
        raise DataError(
            f"The classes are {array.tolist()}.",
            "A decision needs at least two different classes: pass classes=.",
        )
    return array


def encode_labels(values: Any, classes: Array, what: str, rows: Codes, among: str = "classes") -> Codes:
    """Position of every label in ``classes``, which messages call ``among``; a missing or unknown one is an error."""
    known = isinstance(values, np.ndarray | Coded) and values.ndim == 1
    vector: Entries = values if known else as_entries(values, what)
    missing = null_rows(vector)
    if len(missing):
        raise DataError(
            f"The {what} is missing in {len(missing)} rows, first in row {rows[missing[0]]}.",
            "Fill it in: everybody is decided on.",
        )
    codes = encode(vector, classes.tolist())
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        names = ", ".join(repr(name) for name in distinct(vector[unknown])[:5])
        raise DataError(
            f"The {what} {names} (first in row {rows[unknown[0]]}) is not among the {among} {classes.tolist()}.",
            "Name every class there is, or correct those rows."
            if among == "classes"
            else "Name every decision there is, in decisions= where that is not the classes; or correct those rows.",
        )
    return codes


def check_amounts(values: Any, what: str, rows: Codes, limits: tuple[float, float] | None = None) -> Floats:
    """Numbers, one for each of some rows; anything else, and what is not finite, is an error that names a row.

    So is what lies outside ``limits``, if there are any.
    """
    vector = np.asarray(values) if isinstance(values, Coded) else as_vector(values, what)
    missing = null_rows(vector)
    if len(missing):
        raise DataError(
            f"The {what} is missing in {len(missing)} rows, first in row {rows[missing[0]]}.",
            "Fill it in, or leave those people out.",
        )
    if vector.dtype.kind not in "iuf":
        for i, value in enumerate(vector.astype(object).tolist()):
            timed = vector.dtype.kind in "mM"  # nanoseconds would be numbers
            if timed or isinstance(value, str | bool) or not hasattr(value, "__float__"):
                raise DataError(
                    f"The {what} of row {rows[i]} is {value!r}, which is no number.",
                    "Amounts are finite numbers.",
                )
    numbers = vector.astype(np.float64)
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if len(wrong):
        raise DataError(
            f"The {what} of row {rows[wrong[0]]} is {numbers[wrong[0]]}.", "Amounts are finite numbers."
        )
    low, high = limits or (-np.inf, np.inf)
    outside = np.flatnonzero((numbers < low) | (numbers > high))
    if len(outside):
        raise DataError(
            f"The {what} of row {rows[outside[0]]} is {numbers[outside[0]]:.6g}, and amounts lie between {low:.6g} and "
            f"{high:.6g}.",
            "Widen the pair decisions=(low, high): what relies on wrong limits is wrong.",
        )
    return numbers


def as_columns(score: Any, n_classes: int) -> Array:
    """Probabilities with one column for every class; of two classes that of the second alone will do."""
    array = np.asarray(score)
    single = array.ndim == 1 or (array.ndim == 2 and array.shape[1] == 1)
    if n_classes == 2 and single and array.dtype.kind in "biuf":
        second = array.reshape(len(array)).astype(np.float64, copy=False)
        return np.stack([1.0 - second, second]).T  # of each class side by side, as they are looked at
    if array.ndim != 2 or array.shape[1] != n_classes or array.dtype.kind not in "biuf":
        raise DataError(
            f"The probabilities have shape {array.shape} and type {array.dtype}.",
            f"Pass one row per person and one column for each of the {n_classes} classes"
            + (", or the score of the second alone." if n_classes == 2 else "."),
        )
    return array


def check_proba(score: Any, n_classes: int, rows: Codes) -> Floats:
    """Probabilities as float64 rows that sum to one exactly; anything else is an error that names a row."""
    array = as_columns(score, n_classes)
    return _normalised(array, rows)


def check_group_proba(chances: Any, n_groups: int, rows: Codes) -> Floats:
    """How likely each person is of each group, checked as the probabilities of classes are."""
    array = np.asarray(chances)
    if array.shape != (len(rows), n_groups) or array.dtype.kind not in "biuf":
        raise DataError(
            f"The probabilities of the groups have shape {array.shape} and type {array.dtype}.",
            f"Pass one number for each of the {len(rows)} people and {n_groups} groups.",
        )
    return _normalised(array, rows, "group")


def _normalised(array: Array, rows: Codes, of: str = "class") -> Floats:
    """Probabilities, checked, and divided by their sums."""
    normalised = np.empty(array.shape, order="F")
    for start in range(0, len(array), CHUNK):  # what stays in the processor's cache is faster
        part = slice(start, start + CHUNK)
        _normalise(array[part].astype(np.float64, copy=False), rows[part], normalised[part], of)
    return normalised


def _normalise(array: Floats, rows: Codes, normalised: Floats, of: str) -> None:
    """Check probabilities and divide them by their sums into ``normalised``."""
    if len(array) == 1:
        shares = normalised_row(array[0].tolist())
        if shares is not None:
            normalised[0] = shares
            return
    # Added up in the order of the classes, as every engine can: the fine bins are then the same everywhere.
    sums = array[:, 0].copy()
    with np.errstate(invalid="ignore"):
        for k in range(1, array.shape[1]):
            sums += array[:, k]
        # The extremes tell whether anything is wrong; NaN is neither small nor large.
        off = np.abs([sums.min(initial=1.0) - 1.0, sums.max(initial=1.0) - 1.0])
        if not (array.min(initial=0.0) >= 0 and (off <= PROBABILITY_TOLERANCE).all()):
            right = (array >= 0).all(axis=1) & (np.abs(sums - 1.0) <= PROBABILITY_TOLERANCE)
            i = int(np.argmin(right))
            other = of == "class" and array.shape[1] == 2 and bool(np.isfinite(array[i]).all())
            raise DataError(
                f"The {'group ' * (of == 'group')}probabilities of row {rows[i]} are {array[i].tolist()}: "
                "not finite numbers from 0 to 1 that sum to one.",
                f"Pass what predict_proba returns, every {of} included."
                + " Of a decision function, FairClassifier around the model makes a policy." * other,
            )
    for k in range(array.shape[1]):
        np.divide(array[:, k], sums, out=normalised[:, k])


def normalised_row(row: list[float]) -> list[float] | None:
    """The same for one person, in the same order, without the time that arrays take; None if anything is wrong."""
    total = row[0]
    for number in row[1:]:
        total += number
    if not (min(row) >= 0 and abs(total - 1.0) <= PROBABILITY_TOLERANCE):  # NaN makes the sum NaN
        return None
    return [number / total for number in row]


def check_label_proba(label_proba: Any, labelled: Truths, rows: Codes) -> Floats:
    """Chances of having a label, each from 0 to 1, and not 0 for anybody who has one."""
    chances = as_vector(label_proba, "label_proba")
    if chances.dtype.kind not in "biuf":
        raise DataError(f"The label_proba are {chances.dtype}, not numbers.", "Pass chances from 0 to 1.")
    chances = chances.astype(np.float64)
    wrong = ~((chances >= 0.0) & (chances <= 1.0))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise DataError(
            f"The label_proba of row {rows[i]} is {chances[i]}.",
            "It is the chance, from 0 to 1, with which somebody was to have a label.",
        )
    wrong = labelled & (chances == 0.0)
    if wrong.any():
        raise DataError(
            f"Row {rows[int(np.argmax(wrong))]} has a label, and its label_proba is 0: that cannot be.",
            "Pass the chance with which a label was to be seen, as it was written down with the decision.",
        )
    return chances


def check_weights(sample_weight: Any, n: int, first_row: int | None = None) -> Floats | None:
    """Weights as float64; anything but finite numbers of 0 or more, not all 0 in a whole table, is an error."""
    if sample_weight is None:
        return None
    weight = as_vector(sample_weight, "sample_weight")
    check_length(weight, n, "weights")
    if weight.dtype.kind not in "biuf":
        raise DataError(f"The weights are {weight.dtype}, not numbers.", "Pass numbers of 0 or more.")
    weight = weight.astype(np.float64)
    wrong = ~(np.isfinite(weight) & (weight >= 0))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise DataError(
            f"The weight of row {i + (first_row or 0)} is {weight[i]}.",
            "Weights are finite numbers of 0 or more.",
        )
    if n and first_row is None and not weight.any():
        raise DataError("All weights are zero: nobody is left.", "Give some row a positive weight.")
    return weight


def as_amounts(values: Any, what: str, rows: Codes | None = None, n: int | None = None) -> Floats:
    """One finite number for everybody; else an error that names the first that is none."""
    vector = as_vector(values, what)
    check_length(vector, len(vector) if n is None else n, f"numbers in {what}")
    plain = vector if vector.dtype.kind in "biuf" else list(map(_as_number, vector.tolist()))
    numbers = np.asarray(plain).astype(np.float64)
    wrong = ~np.isfinite(numbers)
    if wrong.any():
        i = int(np.argmax(wrong))
        value = vector.tolist()[i]
        row = i if rows is None else int(rows[i])
        shown = "missing" if is_null(value) else f"{value!r}, which is no finite number"
        raise DataError(
            f"The {what} of row {row} is {shown}.", "Correct it, or leave the row out: an amount is a number."
        )
    return numbers


def _as_number(value: Any) -> float:
    try:
        return float("nan") if isinstance(value, str | complex) else float(value)
    except (TypeError, ValueError):
        return float("nan")


def predict_proba(model: Any, features: Table, classes: Array) -> Floats:
    """Probabilities with a column for every class, also for those that the model never saw."""
    if not hasattr(model, "predict_proba"):
        raise DataError(
            f"{type(getattr(model, 'estimator', model)).__name__} has no predict_proba, which this policy sees.",
            "Calibrate the model (CalibratedClassifierCV), or use policy='label'"
            + (
                ", or 'score', which sees its decision function."
                if hasattr(model, "decision_function")
                else "."
            ),
        )
    found = np.asarray(model.predict_proba(features))
    known = np.asarray(model.classes_)
    if len(known) == len(classes):
        return found
    score = np.zeros((len(found), len(classes)))
    score[:, np.searchsorted(classes, known)] = found
    return score


def decision_values(decide: Callable[[Table], Array], features: Table) -> Array:
    """What a model without probabilities says instead by its ``decision_function``, one number per row."""
    found = np.asarray(decide(features))
    if found.shape not in ((len(found),), (len(found), 1)):
        raise DataError(
            f"The decision_function has shape {found.shape}, and is not one number per person.",
            "Use policy='label', or calibrate the model (CalibratedClassifierCV).",
        )
    return found.reshape(len(found))


def check_inference(group_proba: Any, *, sees_x: bool, sees_group: bool) -> None:
    """Refuse probabilities of groups for a policy that does not infer the group."""
    if group_proba is None or (sees_x and not sees_group):
        return
    why = "the policy sees the group" if sees_group else "only an individual policy infers the group"
    raise DataError(
        f"group_proba= has no use: {why}.",
        "Leave group_proba= out, or use policy='individual' with sees_group=False.",
    )


# ---------------------------------------------------------------------------------------------------------
# Weights: what they mean for how sure one can be; clusters: which rows are not independent of each other

#: Frequencies: weight 2 is two people who were seen. Sampling weights: one was seen who stands for two. None: not said.
WeightKind: TypeAlias = Literal["frequency", "sampling"] | None

#: Whole weights of more than so many people a row on average are not taken for counts of people unless that is said.
MOST_PER_ROW = 10


def check_weight_kind(kind: Any) -> None:
    """Refuse what is no kind of weights."""
    if kind not in (None, "frequency", "sampling"):
        raise DataError(f"weight_kind is {kind!r}.", "Say 'frequency' or 'sampling'.")


def are_counts(kind: WeightKind, whole: bool, total: float, rows: int) -> bool:
    """Whether weights count people who were seen: as is said, else if they are whole numbers and few a row."""
    return whole and (kind == "frequency" or (kind is None and total <= MOST_PER_ROW * rows))


def are_sampling(kind: WeightKind, whole: bool, total: float, rows: int) -> bool:
    """Whether weights are sampling weights, for an interval; an error when that is not clear."""
    if kind == "sampling" or are_counts(kind, whole, total, rows):
        return kind == "sampling"
    if kind == "frequency":
        raise DataError(
            "The weights are said to be frequencies, and some are no whole numbers.",
            "Say weight_kind='sampling' if a row stands for people who were not seen, or pass counts of people.",
        )
    raise DataError(*unclear(whole, total, rows))


def unclear(whole: bool, total: float, rows: int) -> tuple[str, str]:
    """What is not clear about weights that are not plainly counts, and what to do about it."""
    say = "Say weight_kind='sampling' if a row is one person who stands for so many, or"
    if not whole:
        return (
            "The weights are no whole numbers, so they are no counts of people.",
            f"{say} pass counts of people.",
        )
    return (
        f"The weights of {rows:,} rows sum to {total:,.0f}, so it is not clear that so many people were seen.",
        f"{say} weight_kind='frequency' if so many people were seen.",
    )


def refuse_no_cluster(cluster: Array | None, rows: Codes) -> None:
    """Refuse rows of no cluster."""
    missing = np.empty(0, dtype=np.intp) if cluster is None else null_rows(cluster)
    if len(missing):
        raise DataError(
            f"The cluster is missing in {len(missing)} rows, first in row {rows[missing[0]]}.",
            "Give every row one; a row that is independent of all others is a cluster of its own.",
        )


def number_clusters(cluster: Array) -> Codes:
    """Clusters as numbers from 0 on; text and numbers are different ones."""
    return distinct_clusters(cluster)[1]


def distinct_clusters(cluster: Array) -> tuple[Array, Codes]:
    """The different clusters, and the place of every row's among them."""
    if cluster.dtype.kind != "O":
        names, place = np.unique(cluster, return_inverse=True)
        return names, place
    index: dict[Any, int] = {}
    place = np.fromiter(
        (index.setdefault((type(name), name), len(index)) for name in cluster.tolist()), np.intp, len(cluster)
    )
    return as_objects([name for _, name in index]), place


def repeated(keys: Array | None, cluster: Any) -> list[str]:
    """What is to be said when several rows have the same key and nobody named clusters."""
    different = 0 if keys is None or cluster is not None else len(distinct_clusters(keys)[0])
    if keys is None or cluster is not None or different == len(keys):
        return []
    return [
        f"{len(keys):,} rows have {different:,} different keys, and intervals and certificates take every row for "
        "another person. Name what the rows of one person have in common: cluster= (the column of the key)."
    ]


def warn_repeated(keys: Array | None, cluster: Any) -> None:
    """Warn of it."""
    for text in repeated(keys, cluster):
        warnings.warn(text, ClusterWarning, stacklevel=level_outside())


def level_outside() -> int:
    """How many calls up the code that called felicific stands, for a warning that points at it."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "felicific":
        level, frame = level + 1, frame.f_back
    return level
