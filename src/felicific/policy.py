"""A policy: q(decision given signal, group), with what it does to the people it was fitted on."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from felicific.constraints import Budget, Floor
from felicific.exceptions import ConstraintError, DataError, PolicyFileError
from felicific.files import write_whole
from felicific.frames import Array, as_vector
from felicific.groups import encode_groups
from felicific.happiness import Component
from felicific.lottery import check_keys, draw, keys_as_text, make_salt
from felicific.moments import Moments, Outcome, check_proba, encode_labels
from felicific.program import solve_program
from felicific.signals import Signal, signal_from_json, signal_to_json

Floats = NDArray[np.float64]

FORMAT = "felicific policy"
VERSION = 1


@dataclass(frozen=True, eq=False)
class Policy:
    """What is decided about a person, given the group and the signal.

    Attributes
    ----------
    classes : array of shape (K,)
        The decisions.
    groups : tuple
        The groups, in the order of the first axis of ``q``.
    signal : Signal
        What the policy sees besides the group.
    q : array of shape (groups, signals, K)
        Probability of each decision.
    mass : array of shape (groups, signals)
        Weight of the fitted people in each cell.
    components : tuple of Component
        What was measured.
    outcome : Outcome
        Loss, group means and gaps on the fitted people.
    prices : dict
        Loss given up per unit by which each gap (by component) or other requirement (by its words) is tightened.
    salt : str
        128 bits of the lottery, as hexadecimal text.
    randomize : bool
        False when each person gets the most probable decision instead of a draw.
    """

    classes: Array
    groups: tuple[Any, ...]
    signal: Signal
    q: Floats
    mass: Floats
    components: tuple[Component, ...]
    outcome: Outcome
    prices: dict[str, float]
    salt: str
    randomize: bool = True

    @property
    def loss(self) -> float:
        """Expected loss per person on the fitted people."""
        return self.outcome.loss

    @property
    def gaps(self) -> dict[str, float]:
        """Gap of every component on the fitted people, in its unit."""
        names = [component.name for component in self.components]
        return dict(zip(names, self.outcome.gaps.tolist(), strict=True))

    @property
    def gap(self) -> float:
        """The gap, when there is one component."""
        if len(self.components) != 1:
            raise ConstraintError(
                f"There are {len(self.components)} components, so there is no single gap.", "Read .gaps."
            )
        return float(self.outcome.gaps[0])

    @property
    def means(self) -> dict[str, dict[Any, float]]:
        """Mean happiness, by component and group."""
        return {
            component.name: dict(zip(self.groups, self.outcome.means[:, j].tolist(), strict=True))
            for j, component in enumerate(self.components)
        }

    # -----------------------------------------------------------------------------------------------------
    # Use

    def apply(self, scores: Any, group: Any) -> Floats:
        """Probability of every decision for every person.

        Parameters
        ----------
        scores : array of shape (n, K), or (n,) for a label policy
            The model's probabilities, columns in the order of ``classes``; or its predicted labels.
        group : array of shape (n,)
            The groups; one that was never fitted is an error.
        """
        scores = scores.to_numpy() if hasattr(scores, "to_numpy") else np.asarray(scores)
        vector = as_vector(group, "group")
        if len(vector) != len(scores):
            raise DataError(
                f"There are {len(vector)} groups for {len(scores)} scores.", "Pass one group for every row."
            )
        codes, rows = encode_groups(vector, self.groups), np.arange(len(scores))
        proba = predicted = None
        if scores.ndim == 1 and not self.signal.needs_proba:
            predicted = encode_labels(scores, self.classes, "prediction", rows)
        else:
            proba = check_proba(scores, len(self.classes), rows)
        decisions = np.zeros((len(scores), len(self.classes)))
        for cell, share in self.signal.spread(proba, predicted):
            chosen = self.q[codes, cell]
            decisions += chosen if share is None else share[:, None] * chosen
        if self.randomize:
            return decisions
        return np.asarray(np.eye(len(self.classes))[decisions.argmax(axis=1)])

    def decide(self, scores: Any, group: Any, key: Any) -> Array:
        """Decide about every person: the same key always draws the same lot.

        Parameters
        ----------
        scores, group : as in :meth:`apply`
        key : array of shape (n,)
            Strings or integers that identify the people.
        """
        keys, proba = check_keys(key), self.apply(scores, group)
        if len(keys) != len(proba):
            raise DataError(
                f"There are {len(keys)} keys for {len(proba)} people.", "Pass one key per person."
            )
        codes = draw(proba, lambda rows: keys_as_text(keys[rows]), self.salt)
        return np.asarray(self.classes[codes])

    # -----------------------------------------------------------------------------------------------------
    # Words

    def sentences(self) -> list[str]:
        """Spell the whole policy out, one plain sentence per group and signal, and what it achieved."""
        classes = self.classes.tolist()
        today = self.signal.today(len(classes))
        found = []
        for z, group in enumerate(self.groups):
            weight = self.mass[z].sum()
            for first, last in self._alike(z):
                here = self.mass[z, first : last + 1].sum()
                share = f"{here / weight:.1%} of the group" if weight > 0 else "nobody"
                found.append(
                    f"In group {group!r}, {self.signal.describe(first, last, classes)} ({share}) "
                    f"{self._treatment(self.q[z, first], today[first : last + 1])}."
                )
        return found + self._achieved()

    def _alike(self, z: int) -> list[tuple[int, int]]:
        """First and last signal of every stretch that is treated alike."""
        found = []
        for run in self.signal.runs(len(self.classes)):
            if not run:
                continue
            rows = self.q[z, run.start : run.stop]
            changes = np.flatnonzero((rows[1:] != rows[:-1]).any(axis=1)) + 1
            starts = [0, *changes.tolist(), len(run)]
            found += [(run.start + a, run.start + b - 1) for a, b in pairwise(starts)]
        return found

    def _treatment(self, q: Floats, today: NDArray[np.intp]) -> str:
        classes = self.classes.tolist()
        if q.max() == 1.0:
            d = int(q.argmax())
            note = "" if (today == d).all() else ", not as the model says" if (today != d).all() else ""
            return f"is always decided {classes[d]!r}{note}"
        odds = [f"{classes[d]!r} with probability {q[d]:.2%}" for d in np.flatnonzero(q)]
        how = "by lottery" if self.randomize else "rounded to the most probable one"
        return f"is decided {' and '.join(odds)}, {how}"

    def _achieved(self) -> list[str]:
        found = [f"On the people it was fitted on, the loss per person is {self.loss:.6g}."]
        for j, component in enumerate(self.components):
            means = ", ".join(
                f"{component.quantity(self.outcome.means[z, j])} in group {group!r}"
                for z, group in enumerate(self.groups)
            )
            # What is left of an exact zero after rounding is zero to a reader.
            negligible = self.outcome.gaps[j] <= 1e-12 * np.abs(self.outcome.means[:, j]).max()
            gap = component.quantity(0.0 if negligible else float(self.outcome.gaps[j]))
            found.append(f"Mean {component.name!r} is {means}: a gap of {gap}.")
        return found

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    # -----------------------------------------------------------------------------------------------------
    # Files

    def to_json(self) -> str:
        """Write the policy as text that :meth:`from_json` reads; it holds no code and no person's data."""
        content: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "policy": signal_to_json(self.signal),
            "classes": {"dtype": self.classes.dtype.str, "values": _plain(self.classes.tolist(), "class")},
            "groups": _plain(list(self.groups), "group"),
            "q": self.q.tolist(),
            "mass": self.mass.tolist(),
            "components": [asdict(component) for component in self.components],
            "loss": self.outcome.loss,
            "means": self.outcome.means.tolist(),
            "gaps": self.outcome.gaps.tolist(),
            "prices": [[name, price] for name, price in self.prices.items()],
            "salt": self.salt,
            "randomize": self.randomize,
        }
        content["sha256"] = _digest(content)
        return json.dumps(content, indent=1, allow_nan=False) + "\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to a file, whole or not at all."""
        write_whole(path, self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Policy:
        """Read a policy from a file."""
        try:
            text = Path(path).read_text("utf-8")
        except UnicodeDecodeError as error:
            raise _refused(f"{os.fspath(path)!r} is not text") from error
        return cls.from_json(text)

    @classmethod
    def from_json(cls, text: str) -> Policy:
        """Read a policy, refusing whatever is not exactly one."""
        try:
            content = json.loads(text, parse_constant=_no_constant)
        except (json.JSONDecodeError, RecursionError) as error:
            raise _refused(f"it is not whole JSON ({error})") from error
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise _refused(f"its format is not {FORMAT!r}")
        if content.get("version") != VERSION:
            raise PolicyFileError(
                f"The policy file has version {content.get('version')!r}; this felicific reads version {VERSION}.",
                "Install the felicific that wrote it, or fit the policy again.",
            )
        if content.get("sha256") != _digest(content):
            raise _refused("its content does not match its checksum, so it was altered or cut")
        try:
            policy = _parse(content)
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise _refused(f"a part is missing or of another type ({error!r})") from error
        _validate(policy)
        return policy


def solve(
    moments: Moments,
    *,
    gap: Any = 0.0,
    constraints: Iterable[Floor | Budget] = (),
    random_state: Any = None,
) -> Policy:
    """Find the policy of least loss that meets every requirement: one linear program.

    Parameters
    ----------
    moments : Moments
        The sums over the labelled people; see :func:`felicific.moments`.
    gap : number, or dict of component or criterion to number
        Largest allowed gap, in the unit of happiness. None asks for nothing.
    constraints : sequence of Floor and Budget
        Further requirements.
    random_state : None, int or NumPy generator
        Where the lottery's salt comes from.

    Raises
    ------
    InfeasibleError
        When no policy meets the requirements, with the least reachable gap or the conflict.
    """
    moments = moments.joined()
    solution = solve_program(moments, gap, constraints)
    return Policy(
        classes=moments.classes,
        groups=moments.groups,
        signal=moments.signal,
        q=solution.q,
        mass=moments.mass,
        components=moments.components,
        outcome=solution.outcome,
        prices=solution.prices,
        salt=make_salt(random_state),
    )


# ---------------------------------------------------------------------------------------------------------
# The file format


def _plain(values: list[Any], what: str) -> list[Any]:
    for value in values:
        if type(value) not in (str, int, float, bool):
            raise DataError(
                f"The {what} {value!r} is a {type(value).__name__}, which a policy file cannot hold.",
                "Use strings, integers, floats or booleans.",
            )
    return values


def _digest(content: dict[str, Any]) -> str:
    rest = {name: part for name, part in content.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode("ascii")).hexdigest()


def _no_constant(name: str) -> float:
    raise _refused(f"it holds the number {name}")


def _refused(reason: str) -> PolicyFileError:
    return PolicyFileError(
        f"This is no policy file: {reason}.", "Get the file again from where it was saved."
    )


def _parse(content: dict[str, Any]) -> Policy:
    dtype, values = content["classes"]["dtype"], content["classes"]["values"]
    if not isinstance(dtype, str) or not re.fullmatch(r"[<>|=](b1|[iu][1248]|f[248]|U\d+|O)", dtype):
        raise _refused(f"the type {dtype!r} of its classes is unknown")
    try:
        arrays = {name: np.array(content[name], np.float64) for name in ("q", "mass", "means", "gaps")}
        classes = np.array(_plain(values, "class"), np.dtype(dtype))
        signal = signal_from_json(content["policy"])
    except ValueError as error:
        raise _refused(str(error)) from error
    components = []
    for fields in content["components"]:
        bounds = fields.pop("bounds")
        component = Component(bounds=None if bounds is None else (bounds[0], bounds[1]), **fields)
        components.append(component)
    return Policy(
        classes=classes,
        groups=tuple(_plain(content["groups"], "group")),
        signal=signal,
        q=arrays["q"],
        mass=arrays["mass"],
        components=tuple(components),
        outcome=Outcome(float(content["loss"]), arrays["means"], arrays["gaps"]),
        prices={str(name): float(price) for name, price in content["prices"]},
        salt=cast(str, content["salt"]),
        randomize=content["randomize"],
    )


def _validate(policy: Policy) -> None:
    """Refuse a policy whose parts do not fit together."""
    g, k, j = len(policy.groups), len(policy.classes), len(policy.components)
    s = policy.signal.size(k)
    shapes = {
        "q": (policy.q, (g, s, k)),
        "mass": (policy.mass, (g, s)),
        "means": (policy.outcome.means, (g, j)),
        "gaps": (policy.outcome.gaps, (j,)),
    }
    for name, (array, shape) in shapes.items():
        if array.shape != shape:
            raise _refused(f"{name} has shape {array.shape}, not {shape}")
        if not np.isfinite(array).all():
            raise _refused(f"{name} is not finite")
    if not (policy.q >= 0).all() or not (np.abs(policy.q.sum(axis=2) - 1.0) <= 1e-9).all():
        raise _refused("some probabilities of q are negative or do not sum to one")
    if (policy.mass < 0).any():
        raise _refused("some mass is negative")
    names = [component.name for component in policy.components]
    for what, values in (("class", policy.classes.tolist()), ("group", policy.groups), ("component", names)):
        if len(set(values)) < len(values) or not values:
            raise _refused(f"a {what} occurs twice, or there is none")
    if k < 2:
        raise _refused("it has fewer than two classes")
    if not math.isfinite(policy.loss) or not all(map(math.isfinite, policy.prices.values())):
        raise _refused("its loss or a price is not finite")
    if not isinstance(policy.salt, str) or not re.fullmatch("[0-9a-f]{32}", policy.salt):
        raise _refused("its salt is not 32 hexadecimal digits")
    if not isinstance(policy.randomize, bool):
        raise _refused("randomize is neither true nor false")
