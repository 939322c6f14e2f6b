"""Why a policy that sees a signal decides so: the person's signal, and the cuts around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from felicific._people.checks import encode_labels
from felicific._policy.grounds import ALIKE, Counterfactual, Grounds, Person, percent, probability_words
from felicific._typing import Floats

if TYPE_CHECKING:
    from felicific._policy.cells import CellPolicy


_NOBODY = (
    "Of the people on whom the policy was fitted, nobody is in this score bin: there it keeps to what the "
    "model decides, as far as its neighbours allow."
)


def grounds_of_cells(policy: CellPolicy, person: Person, without: Mapping[str, Floats]) -> Grounds:
    """The signal of a person, the cuts around it, and what other tables would do.

    ``without`` are the tables of policies that lack one requirement each.
    """
    k, signal, z = len(policy.classes), policy.signal, person.group or 0
    seen, label = None, None
    if person.scores.ndim == 1 and not signal.needs_proba:
        label = int(encode_labels(person.scores, policy.classes, "prediction", np.arange(1))[0])
    else:
        seen = policy.read(person.scores, np.arange(1))
    spread = signal.spread(seen, None if label is None else np.array([label]))
    shares = [(int(cell[0]), 1.0 if share is None else float(share[0])) for cell, share in spread]
    label_there = int(signal.baseline(k)[shares[0][0]])
    if signal.drawn and seen is not None:
        label_there = int(seen[0].argmax())
    likely = int(policy.label_decisions[label_there])

    def mixed(table: Floats) -> Floats:
        """The probabilities by another table."""
        rows = [table[z, cell] if share == 1.0 else share * table[z, cell] for cell, share in shares]
        return policy.rounded(np.asarray(sum(rows)))

    free = None if policy.unconstrained is None else policy.unconstrained.value
    lacking = {name: mixed(table) for name, table in without.items()}
    if not signal.ordered or seen is None:
        return Grounds(
            likely=likely,
            label=None if signal.drawn else label_there,
            words=_signal_words(policy, person, shares),
            unconstrained=None if free is None else Counterfactual(mixed(free)),
            without=lacking,
        )
    cell = shares[0][0]
    table = policy.rounded(policy.q[z])
    held = policy.mass[:, cell].sum() if person.group is None else policy.mass[z, cell]
    score = float(seen[0, 1] if k == 2 else seen[0, label_there])
    if signal.of_values:
        score = float(person.scores.ravel()[0])
    path = _path(policy, cell)
    return Grounds(
        likely=likely,
        label=label_there,
        score=score,
        cuts=list(_around(table, path, cell)),
        own_cuts=_cuts_along(table, path),
        words=[*_score_words(policy, person, score, label_there), *([] if held > 0 else [_NOBODY])],
        unconstrained=None
        if free is None
        else Counterfactual(mixed(free), _moved_from(table, policy.rounded(free[z]), path)),
        without=lacking,
    )


def _path(policy: CellPolicy, cell: int) -> list[tuple[int, float]]:
    """Cells along the score of this one that some score falls into, each with the score that is exceeded there.

    Of a decision function, with its own value that is exceeded; the lowest cell has none.
    """
    k = len(policy.classes)
    run = next(run for run in policy.signal.runs(k) if cell in run)
    ranges = policy.signal.ranges(k)
    values = dict(policy.signal.cuts_at())
    lows = [values.get(ranges[s][1], ranges[s][1]) for s in run]
    if values:
        lows[0] = -np.inf
    # Two cuts at one score, such as the model's own boundary, leave a cell that is no score's.
    return [(s, low) for s, low, after in zip(run, lows, [*lows[1:], np.inf], strict=True) if after > low]


def _around(table: Floats, path: list[tuple[int, float]], cell: int) -> Iterator[tuple[str, float, Floats]]:
    """The nearest cuts below and above, with the probabilities beyond."""
    place = [s for s, _ in path].index(cell)
    for i in range(place - 1, -1, -1):
        if _apart(table, path[i][0], cell):
            yield "below", path[i + 1][1], table[path[i][0]]
            break
    for s, low in path[place + 1 :]:
        if _apart(table, s, cell):
            yield "above", low, table[s]
            break


def _cuts_along(table: Floats, path: list[tuple[int, float]]) -> tuple[float, ...]:
    """All scores at which probabilities change."""
    rows = table[[s for s, _ in path]]
    changes = np.flatnonzero((np.abs(rows[1:] - rows[:-1]) > ALIKE).any(axis=1)) + 1
    return tuple(path[place][1] for place in changes.tolist())


def _moved_from(table: Floats, free: Floats, path: list[tuple[int, float]]) -> tuple[float, ...]:
    """The cuts of another table, if both are likely to decide alike about the lowest and the highest scores."""
    ends = [path[0][0], path[-1][0]]
    moved = (table[ends].argmax(axis=1) == free[ends].argmax(axis=1)).all()
    return _cuts_along(free, path) if moved else ()


def _apart(table: Floats, one: int, other: int) -> bool:
    return bool((np.abs(table[one] - table[other]) > ALIKE).any())


def _score_words(policy: CellPolicy, person: Person, score: float, label: int) -> list[str]:
    labels = policy.classes.tolist()
    where = "" if person.group is None else f", in group {policy.groups[person.group]!r}"
    if len(labels) == 2:
        what = "decision function" if policy.signal.of_values else "score"
        return [f"What decides is the {what} for {labels[1]!r}, which is {score:.6g}{where}."]
    return [
        f"What decides is that the model labels the person {labels[label]!r}, and the probability of that label, "
        f"which is {score:.6g}{where}."
    ]


def _signal_words(policy: CellPolicy, person: Person, shares: list[tuple[int, float]]) -> list[str]:
    """What decides, where no score does."""
    decisions, labels, z = policy.decisions.tolist(), policy.classes.tolist(), person.group or 0
    where = "" if person.group is None else f" in group {policy.groups[z]!r}"

    def named(cell: int) -> dict[Any, float]:
        return dict(zip(decisions, policy.q[z, cell].tolist(), strict=True))

    if not policy.signal.drawn:
        label = labels[shares[0][0]]
        return [
            f"What decides is the label that the model gives, {label!r}{where}, and no score: there is no cut."
        ]
    parts = [
        f"label {labels[cell]!r} ({percent(share)}) is decided {probability_words(named(cell))}"
        for cell, share in shares
        if share > 0
    ]
    return [
        f"What decides is a label that is drawn from the model's probabilities{where}: {'; '.join(parts)}.",
        "The probabilities move with every change of the probabilities: there is no cut.",
    ]
