r"""The one draw: a person's decision is a fixed function of the policy's salt and the person's key.

.. math:: u = \text{first 13 hex digits of SHA-256(salt ":" key)} / 2^{52} \in [0, 1)

The decision is the first class whose cumulative probability exceeds u. Keys are the same everywhere, so the
same person gets the same decision in any order, batch, process, machine or engine.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from felicific._files import checksum, refused, write_document, write_whole
from felicific._tables.memory import (
    as_vector,
    column_names,
    is_frame,
    is_null,
    row_argmax,
    take_column,
    text_of_all,
)
from felicific._typing import Array, Codes, Floats, Table
from felicific.exceptions import DataError, LotteryWarning

#: People who are looked at together: they stay in the processor's cache.
CHUNK = 131_072


#: How a salt begins that is no secret, because a seed makes it again.
SEEDED = "seed-"


def make_salt(random_state: Any = None) -> str:
    """128 random bits as hexadecimal text: fresh, or from a seed or NumPy generator, and then it says so."""
    if random_state is None or random_state is np.random:
        return secrets.token_hex(16)
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        return SEEDED + random_state.bytes(16).hex()
    try:
        return SEEDED + np.random.RandomState(random_state).bytes(16).hex()
    except (TypeError, ValueError) as error:
        raise DataError(
            f"random_state is {random_state!r}.", "Pass None, an integer from 0 to 2**32 - 1, or a generator."
        ) from error


def uniforms(salt: str, keys: Iterable[str]) -> Floats:
    """One number in [0, 1) per key."""
    sha256, prefix = hashlib.sha256, f"{salt}:".encode("utf-8", "surrogatepass")
    digests = b"".join([sha256(prefix + key.encode("utf-8", "surrogatepass")).digest() for key in keys])
    # The first 13 hexadecimal digits are the first 52 bits of eight bytes, of 32.
    first = np.frombuffer(digests, dtype=">u8")[::4] >> np.uint64(12)
    return np.asarray(first.astype(np.float64) / 2.0**52)


def draw(score: Floats, keys: Any, salt: str) -> NDArray[np.intp]:
    """Draw a class for every row of ``score``; only people who face a lottery are hashed.

    Parameters
    ----------
    score : array of shape (n, K)
        Probability of every decision.
    keys : callable
        Given the positions of the rows that face a lottery, returns their keys as text.
    salt : str
        The policy's salt.
    """
    if len(score) == 1:
        chances = score[0].tolist()
        if sum(chance > 0 for chance in chances) <= 1:
            return np.array([chances.index(max(chances))], dtype=np.intp)
    decisions = np.empty(len(score), dtype=np.intp)
    randomized = []
    for start in range(0, len(score), CHUNK):
        part = score[start : start + CHUNK]
        decisions[start : start + CHUNK] = row_argmax(part)
        randomized.append(np.flatnonzero(faces_lottery(part)) + start)
    open_rows = np.concatenate([np.empty(0, dtype=np.intp), *randomized])
    if len(open_rows):
        u = uniforms(salt, keys(open_rows))
        cumulative = cumulate(score[open_rows])
        decisions[open_rows] = (u[:, None] >= cumulative[:, :-1]).sum(axis=1)
    return decisions


def faces_lottery(score: Floats) -> NDArray[np.bool_]:
    """Whether more than one decision is possible, row by row."""
    possible = np.zeros(len(score), dtype=np.int32)
    for k in range(score.shape[1]):
        possible += score[:, k] > 0
    return np.asarray(possible > 1)


#: What the chance of a draw reads as that is neither none nor all, and would be rounded to it.
NEARLY = {"0.00%": "less than 0.01%", "100.00%": "more than 99.99%"}


def cumulate(score: Floats) -> Floats:
    """Cumulative probabilities that end at exactly one, so that a decision of probability 0 is never drawn."""
    cumulative = score.cumsum(axis=1)
    remaining = np.flip(np.flip(score, axis=1).cumsum(axis=1), axis=1) - score
    cumulative[remaining <= 0] = 1.0
    # What remains may be lost to rounding and be there again behind a 0, which must not be drawn for it.
    return np.asarray(np.maximum.accumulate(cumulative, axis=1))


def check_keys(keys: Any) -> Array:
    """Keys as a vector of strings or integers; floats, nulls and anything else are refused."""
    vector = as_vector(keys, "key")
    if vector.dtype.kind in "iuU":
        return vector
    wrong = None
    if vector.dtype.kind == "O":
        for row, value in enumerate(vector.tolist()):
            if isinstance(value, bool) or not isinstance(value, str | int):
                wrong = f"The key of row {row} is {'missing' if is_null(value) else repr(value)}"
                break
    elif vector.dtype.kind == "f" and np.isnan(vector).any():
        # Integers with a gap are stored as floats: the gap is what is wrong with them.
        wrong = f"The key of row {int(np.argmax(np.isnan(vector)))} is missing"
    else:
        wrong = f"The keys are {vector.dtype}"
    if wrong:
        raise DataError(
            f"{wrong}; a key is a string or an integer.",
            "Floats change their text from one system to the next: use the person's identifier, without gaps.",
        )
    return vector


def keys_as_text(keys: Array) -> list[str]:
    """Write string and integer keys as the text that is hashed."""
    return [str(key) for key in keys.tolist()]


def checked_keys(rows: Table, name: str) -> Callable[[Codes], list[str]]:
    """The keys of some people, as text, by their positions; all keys are checked, those of text without being read."""
    texts = text_of_all(rows, name)
    if texts is not None:
        return lambda some: [str(key) for key in texts[some].to_list()]
    keys = check_keys(take_column(rows, name, "key"))
    return lambda some: keys_as_text(keys[some])


def content_keys(table: Table, positions: NDArray[np.intp]) -> list[str]:
    """Make a key out of each row's own content, never out of its position.

    Numbers are written by value, so 1 and 1.0 agree between tables that store them differently.
    """
    if is_frame(table):
        columns = [
            _comparable(take_column(table, name, "the lottery")[positions]) for name in column_names(table)
        ]
    else:
        chosen = np.asarray(table[positions].toarray() if hasattr(table, "tocsr") else table[positions])
        columns = list(chosen.reshape(len(positions), -1).T)
    texts = [[_text(value) for value in column.tolist()] for column in columns]
    keys = ["\x1f".join(row) for row in zip(*texts, strict=True)]
    if len(keys) >= 20 and 2 * len(set(keys)) < len(keys):
        warnings.warn(
            f"Only {len(set(keys))} different rows among {len(keys)} people who face a lottery: equal rows get "
            "equal decisions, so the intended chances are not reached. Name a `key` column that tells people apart.",
            LotteryWarning,
            stacklevel=5,
        )
    return keys


#: What is to be said where people keep a chance, and no key says who they are.
PROBA_REPEAT = (
    "Exploration keeps people a chance, and no key says who a person is: equal rows draw equal numbers, so the "
    "probabilities that are written down may not be those with which people were drawn. "
    "Name the column that identifies people in key=."
)


def warn_of_seed(salt: str, remedy: str, stacklevel: int) -> None:
    """Warn when anybody could compute draws, because a seed makes their salt."""
    if salt.startswith(SEEDED):
        warnings.warn(
            "The salt of this policy comes from a seed, so anybody who tries some seeds can compute people's draws "
            f"beforehand. {remedy}",
            LotteryWarning,
            stacklevel=stacklevel + 1,
        )


#: What is to be done where a seed makes the salt.
RESALT = "Save policy.resalted() in Python, or leave random_state= out."


def warn_keyless(stacklevel: int) -> None:
    """Say that without keys a person is known by the content of a row alone."""
    warnings.warn(
        "No key says who a person is, so the lottery draws by the content of the row: somebody whose row changes is "
        "another person to the lottery. Name the column that identifies people in key=.",
        LotteryWarning,
        stacklevel=stacklevel + 1,
    )


def _comparable(column: Array) -> Array:
    """Times to the microsecond, whatever finer or coarser unit the table keeps them in; days stay days."""
    if column.dtype.kind not in "mM" or column.dtype == "M8[D]":
        return column
    return column.astype(f"{column.dtype.kind}8[us]")


def _text(value: Any) -> str:
    if is_null(value):
        return "\x00"
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, float):
        return repr(value)
    # No two rows may read alike: what separates the columns is escaped inside them.
    return str(value).replace("\\", "\\\\").replace("\x1f", "\\x1f")


class SaltedPolicy(ABC):
    """A policy with a salt, from which its draws come, and its file."""

    salt: str

    @property
    @abstractmethod
    def is_randomized(self) -> bool:
        """Whether it may decide on anybody by lottery."""

    @abstractmethod
    def _everything(self) -> dict[str, Any]:
        """All of it as data."""

    def to_json(self) -> str:
        """Write the policy as text that :meth:`from_json` reads; it holds no code and no person's data."""
        return write_document(self._everything())

    @property
    def sha256(self) -> str:
        """The checksum that its file holds: of two policies that say the same in everything, the same.

        It is no signature: whoever alters a file can write the checksum that goes with it. Compare it with one that you
        noted elsewhere, sign it, or pin it.
        """
        return checksum(self._everything())

    def resalted(self) -> Self:
        """The same policy with a fresh salt: nobody can know its draws, and people draw anew."""
        return replace(self, salt=make_salt())  # type: ignore[type-var]  # policies are dataclasses

    def warn_of_lottery(self, remedy: str = RESALT, stacklevel: int = 2) -> None:
        """Warn when anybody could compute its draws, because a seed makes its salt."""
        if self.is_randomized:
            warn_of_seed(self.salt, remedy, stacklevel + 1)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to a file, whole or not at all; warns when anybody could compute its draws."""
        self.warn_of_lottery()
        write_whole(path, self.to_json())

    def _check_salt(self) -> None:
        """Refuse a file whose salt is none."""
        if not isinstance(self.salt, str) or not re.fullmatch(f"({SEEDED})?[0-9a-f]{{32}}", self.salt):
            raise refused("its salt is not 32 hexadecimal digits")


def moves_between(was: Floats, then: Floats, *, same_draws: bool) -> Floats:
    """With which probability each person moves from which decision to which, of shape (n, D, D).

    Two policies with one salt give everybody the ``same_draws``: who draws a number gets the decision in whose stretch
    it lies, by either of them. Otherwise the draws of one tell nothing of those of the other.
    """
    if not same_draws:
        return np.asarray(was[:, :, None] * then[:, None, :])
    ends = [cumulate(probabilities) for probabilities in (was, then)]
    starts = [np.column_stack([np.zeros(len(end)), end[:, :-1]]) for end in ends]
    upper = np.minimum(ends[0][:, :, None], ends[1][:, None, :])
    lower = np.maximum(starts[0][:, :, None], starts[1][:, None, :])
    return np.asarray((upper - lower).clip(min=0.0))
