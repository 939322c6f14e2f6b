"""Policies of amounts made by hand, with people for them, and what they get by a loop over knots."""

import hashlib
from functools import cache

import numpy as np
from warehouses import HOSTILE, Case

from felicific._policy.lines import Atom, Line
from felicific._policy.numeric import AmountPolicy
from felicific._policy.numeric_outcome import AmountOutcome

SALT = "seed-0123456789abcdef0123456789abcdef"


def outcome(n_groups):
    """An outcome of nothing that is measured."""
    return AmountOutcome(1.0, np.zeros(n_groups), np.zeros((n_groups, 0)), np.zeros(0))


def amount_policy(groups, lines, **changes):
    """A policy of these lines."""
    nothing = outcome(len(groups))
    said = {
        "measures": (), "outcome": nothing, "baseline": nothing, "unconstrained": nothing, "prices": {}, "asked": {},
        "bounds": (-1e6, 1e6), "listed": None, "loss_name": "squared", "parity": "", "salt": SALT,
    }  # fmt: skip
    return AmountPolicy(groups=tuple(groups), lines=tuple(lines), **said | changes)


def random_line(rng, n_knots, n_atoms=0, steps=False):
    """A line that rises by chance, with lotteries between some predictions, steps if wanted."""
    x, y = np.sort(rng.normal(0, 2, n_knots)), np.sort(rng.normal(0, 30, n_knots))
    if steps:
        x[1::3] = x[: len(x[1::3]) * 3 : 3]
    ends = np.sort(rng.normal(0, 2, 2 * n_atoms))
    atoms = []
    for low, high in zip(ends[::2], ends[1::2], strict=True):
        inner = np.sort(rng.random(rng.integers(0, 4)))
        draws = np.concatenate([[0.0], inner, inner[:1], [1.0]])
        draws.sort()
        atoms.append(Atom(float(low), float(high), 0.1, draws, np.sort(rng.normal(0, 30, len(draws)))))
    return Line(x, y, tuple(atoms), (-2.0, 2.0))


def near(lines):
    """Predictions at every knot and every end of an atom, right below and above them, and far away."""
    points = np.concatenate(
        [part for line in lines for part in (line.prediction, *([a.low, a.high] for a in line.atoms))]
    )
    return np.concatenate(
        [points, np.nextafter(points, -np.inf), np.nextafter(points, np.inf), [-1e300, 1e300, 0.0, -0.0]]
    )


def amount_case(groups, lines, columns=None, roles=None, n=400, seed=0, **changes):
    """A policy of these lines, people at its edges and others, and their columns."""
    rng = np.random.default_rng(seed)
    f = np.concatenate([near(lines), rng.normal(0, 2, n)])
    table = {
        "f": f,
        "z": rng.choice(np.array(groups, dtype=object if isinstance(groups[0], str) else None), len(f)),
        "id": np.arange(len(f)) + 10_000,
    }
    table |= {name: make(table) for name, make in (columns or {}).items()}
    named = {"predicted": "f", "sensitive_features": "z", "key": "id"} | (roles or {})
    named = {role: name for role, name in named.items() if name is not None}
    return Case(amount_policy(groups, lines, **changes), table, named)


def _lines(n_groups, *sizes, **how):
    rng = np.random.default_rng(3)
    return [random_line(rng, *sizes, **how) for _ in range(n_groups)]


def _whole(table):
    return np.round(table["f"].clip(-9, 9)).astype(np.int64)


#: By name, so that a test makes the one that it needs.
CASES = {
    "one knot": lambda: amount_case(["a", "b"], _lines(2, 1)),
    "lines": lambda: amount_case(["a", "b"], _lines(2, 9)),
    "steps": lambda: amount_case(["a", "b"], _lines(2, 30, steps=True)),
    "randomized": lambda: amount_case(["a", "b"], _lines(2, 12, 5)),
    "lotteries and steps": lambda: amount_case(["a", "b"], _lines(2, 12, 5, steps=True)),
    "rounded": lambda: amount_case(["a", "b"], _lines(2, 12, 5), roles={"key": None}, randomize=False),
    "many knots": lambda: amount_case(["a", "b"], _lines(2, 300, 3)),
    "whole predictions": lambda: amount_case(["a", "b"], _lines(2, 9, 2), columns={"f": _whole}),
    "whole groups": lambda: amount_case([3, -7, 2**60], _lines(3, 5)),
    "groups of truth values": lambda: amount_case([False, True], _lines(2, 5)),
    "groups of fractions": lambda: amount_case([0.5, 2.0], _lines(2, 5)),
    "hostile groups": lambda: amount_case(HOSTILE, _lines(len(HOSTILE), 4, 1)),
    "several columns": lambda: amount_case(
        ["\\\\ & 0", "\\& & 1"],
        _lines(2, 5, 1),
        columns={
            "z": lambda t: np.where(np.arange(len(t["f"])) % 2, "&", "\\").astype(object),
            "part": lambda t: np.arange(len(t["f"])) % 2,
        },
        roles={"sensitive_features": ["z", "part"]},
    ),
    "without the group": lambda: amount_case(
        ["a", "b"], _lines(1, 6, 1), roles={"sensitive_features": None}, sees_group=False
    ),
    "keys of text": lambda: amount_case(
        ["a", "b"],
        _lines(2, 6, 3),
        columns={"who": lambda t: np.array([f"p{i}; 'x' é\\" for i in t["id"]], dtype=object)},
        roles={"key": "who"},
    ),
}


@cache
def find_amounts(name):
    """A case; made once."""
    return CASES[name]()


def naive_amounts(found):
    """What everybody gets, by a loop over people and knots, from the definitions of Line and Atom."""
    policy, table, roles = found.policy, found.table, found.roles
    named = roles.get("sensitive_features")
    amounts = []
    for i, f in enumerate(np.asarray(table["f"], dtype=float).tolist()):
        z = 0
        if policy.sees_group:
            columns = named if isinstance(named, list) else [named]
            parts = [table[column][i] for column in columns]
            group = parts[0] if len(parts) == 1 else " & ".join(_escaped(part) for part in parts)
            z = policy.groups.index(group)
        line, drawn = policy.lines[z], None
        for atom in line.atoms if policy.randomize else ():
            if atom.low < f <= atom.high:
                drawn = atom
        if drawn is None:
            amounts.append(_on(line.prediction.tolist(), line.amount.tolist(), f))
            continue
        text = f"{policy.salt}:{table[roles['key']][i]}"
        draw = int(hashlib.sha256(text.encode()).hexdigest()[:13], 16) / 2**52
        amounts.append(_on(drawn.draws.tolist(), drawn.amounts.tolist(), draw))
    return amounts


def _escaped(part):
    return str(part).replace("\\", "\\\\").replace("&", "\\&")


def _on(x, y, at):
    """The height of a broken line: from a knot that stands twice on, the second."""
    if at < x[0]:
        return y[0]
    last = max(i for i in range(len(x)) if x[i] <= at)
    if last == len(x) - 1:
        return y[-1]
    return (y[last + 1] - y[last]) / (x[last + 1] - x[last]) * (at - x[last]) + y[last]
