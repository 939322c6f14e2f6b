"""Policies of every shape with people for them, to be decided on by the text that ``to_sql`` writes."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from functions import as_pandas, people
from sklearn.frozen import FrozenEstimator
from sklearn.svm import LinearSVC

from felicific import FairClassifier, Score, aggregate, solve
from felicific._program.bins import lower_edges
from felicific._program.signals import Label, ScoreCells

#: Names of columns and groups that end a quotation, escape, comment, are of other scripts, or look like variables.
HOSTILE = [
    'q"u',
    "it's",
    "b`t",
    "back\\",
    "\\'",
    "two\nlines",
    "--",
    "/*",
    "王",
    "é😀",
    "$x",
    "${x}",
    "%s",
    "{0}",
    "\\n",
]


@dataclass(frozen=True)
class Case:
    """A policy, people, what the columns are to it, and what Python decides on them."""

    policy: object
    table: dict
    roles: dict

    @property
    def expected(self):
        """The decisions of Python, in the order of the rows."""
        return self.policy.apply(as_pandas(self.table), **self.roles)["decision"].tolist()

    @property
    def probabilities(self):
        """The columns of probabilities of Python."""
        found = self.policy.apply(as_pandas(self.table), **self.roles, with_proba=True)
        return {name: found[name].to_numpy() for name in found.columns if name.startswith("proba")}

    def changed(self, row, **values):
        """The same with one person changed."""
        table = dict(self.table)
        for name, value in values.items():
            column = np.array(table[name], dtype=object)
            column[row] = value
            table[name] = column
        return replace(self, table=table)

    def used(self):
        """The columns that have a role, and the number of the row."""
        named = [
            name
            for role in self.roles.values()
            for name in (role.values() if isinstance(role, dict) else [role])
        ]
        flat = [name for item in named for name in (item if isinstance(item, list) else [item])]
        return {name: self.table[name] for name in dict.fromkeys(flat)} | {
            "row": np.arange(len(self.table["id"]))
        }


def fitted(table, roles, gap=0.02, sees_group=True, **changes):
    """A policy with lotteries, of these columns."""
    ask = {"happiness": "statistical_parity", "y": "y", **{k: v for k, v in roles.items() if k != "key"}}
    return solve(aggregate(as_pandas(table), **ask | changes), gap=gap, sees_group=sees_group, random_state=7)


def case(n=2000, classes=3, gap=0.02, sees_group=True, columns=None, roles=None, seed=0, **changes):
    """People of so many classes, some columns changed, and a policy for them."""
    table = people(n, seed=seed, classes=classes)
    table |= {name: make(table) for name, make in (columns or {}).items()}
    named = {"score": {k: f"p{k}" for k in range(classes)}, "sensitive_features": "z", "key": "id"} | (
        roles or {}
    )
    named = {role: name for role, name in named.items() if name is not None}
    return Case(fitted(table, named, gap, sees_group, **changes), table, named)


def of(values):
    """A column of some values in turn, at random."""
    return lambda table: np.random.default_rng(5).choice(np.array(values, dtype=object), len(table["id"]))


def own(table):
    return np.column_stack([table[f"p{k}"] for k in range(3)]).argmax(axis=1)


def named_classes(names):
    """Labels of two classes by these names."""
    return lambda table: np.array(names, dtype=object)[table["y"]]


def on_edges(found):
    """People whose scores lie on every edge of the policy's cells, and right below and above it."""
    signal = found.policy.signal
    edges = (
        np.array(lower_edges(signal.cuts, 2, signal.boundary))
        if isinstance(signal, ScoreCells)
        else np.array([])
    )
    scores = np.concatenate([edges, np.nextafter(edges, -1), np.nextafter(edges, 2), [0.0, 1.0]]).clip(0, 1)
    groups = sorted(set(found.table["z"].tolist()))
    n = len(scores) * len(groups)
    table = {
        "p1": np.tile(scores, len(groups)),
        "z": np.repeat(np.array(groups, dtype=object), len(scores)),
        "id": np.arange(n),
    }
    return replace(found, table=table)


TEXT = ["it's no", 'y"es\\\n王']

#: By name, so that a test makes the one that it needs.
CASES = {
    "score of three": case,
    "score of three, not monotone": lambda: case(policy=Score(bins=12, monotone=False)),
    "score of two": lambda: case(classes=2, roles={"score": "p1"}, policy=Score(boundary=0.4)),
    "edges": lambda: on_edges(case(classes=2, roles={"score": "p1"}, policy=Score(bins=400, boundary=0.4))),
    "two columns": lambda: case(classes=2),
    "label": lambda: case(policy="label"),
    "soft label": lambda: case(policy="soft-label"),
    "predicted": lambda: case(
        roles={"score": None, "predicted": "own"}, columns={"own": own}, policy=Label()
    ),
    "predicted text": lambda: case(
        classes=2,
        columns={"y": named_classes(TEXT), "own": of(TEXT)},
        roles={"score": None, "predicted": "own"},
        policy=Label(),
    ),
    "text": lambda: case(
        classes=2,
        columns={"y": named_classes(TEXT)},
        roles={"score": dict(zip(TEXT, ["p0", "p1"], strict=True))},
    ),
    "truth": lambda: case(
        classes=2, columns={"y": lambda t: t["y"] == 1}, roles={"score": {False: "p0", True: "p1"}}
    ),
    "fractions": lambda: case(
        classes=2, columns={"y": lambda t: t["y"] + 0.5}, roles={"score": {0.5: "p0", 1.5: "p1"}}
    ),
    "whole groups": lambda: case(columns={"z": lambda t: t["region"]}, gap=0.1),
    "large groups": lambda: case(columns={"z": lambda t: t["region"] + (2**62 - 2)}, gap=0.1),
    "groups of fractions": lambda: case(columns={"z": lambda t: t["region"] / 10}, gap=0.1),
    "groups of truth values": lambda: case(columns={"z": lambda t: t["member"]}),
    "hostile groups": lambda: case(3000, classes=2, columns={"z": of(HOSTILE)}, roles={"score": "p1"}),
    "several columns": lambda: case(
        columns={"z": of(["\\", " & ", ""]), "part": lambda t: t["region"] % 2 - 1},
        roles={"sensitive_features": ["z", "part"]},
        gap=0.1,
    ),
    "without the group": lambda: case(sees_group=False, gap=0.005, policy=Score(bins=12)),
    "keys of text": lambda: case(
        columns={"who": lambda t: np.array([f"p{i}; 'x' é\\" for i in t["id"]], dtype=object)},
        roles={"key": "who"},
    ),
    "decision function": lambda: of_values(),
    "rounded": lambda: rounded(case()),
    "rounded soft label": lambda: rounded(case(policy="soft-label")),
}


def of_values():
    """A policy of the values of a decision function; some people's are just those at which it cuts, or next to one."""
    table = as_pandas(people(2000, seed=3, classes=2))
    features = np.column_stack([table["p1"] - table["p0"], table["id"] % 7])
    model = LinearSVC(random_state=0).fit(features, table["y"])
    fair = FairClassifier(
        FrozenEstimator(model), happiness="statistical_parity", gap=0.02, random_state=7
    ).fit(features, table["y"], sensitive_features=table["z"])
    cuts = np.array(fair.policy_.signal.values)
    near = np.concatenate(
        [cuts, np.nextafter(cuts, -np.inf), np.nextafter(cuts, np.inf), [-1e300, 1e300, -0.0]]
    )
    values = model.decision_function(features)
    values[: len(near)] = near[: len(values)]
    named = {"value": values, "z": table["z"].to_numpy(), "id": table["id"].to_numpy()}
    return Case(fair.policy_, named, {"score": "value", "sensitive_features": "z", "key": "id"})


def rounded(found):
    """The same without a lottery, and without a key."""
    roles = {role: name for role, name in found.roles.items() if role != "key"}
    return replace(found, policy=replace(found.policy, randomize=False), roles=roles)


@cache
def find(name):
    """A case; made once, as fitting takes longer than deciding."""
    return CASES[name]()
