"""What is remembered of rows that something was fitted to: enough to recognise them, and no value of anybody."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from felicific._people.fingerprint import Digests, as_numbers, column_digests, sha256_of
from felicific._tables.memory import column_names, take_rows
from felicific._tables.seen import Hashes, SeenRows, hashes_beside, looked_at, text_hashes
from felicific._typing import Array, Codes, Floats, Table

#: A larger share of keys than this that were fitted on is no accident.
KEYS = 0.05

#: What may be known of people besides x and the group.
ROLES = ("y", "weight", "cluster")


@dataclass(frozen=True, eq=False)
class Shown:
    """Rows of positive weight that are shown to a classifier.

    Attributes
    ----------
    x : table
        The columns of the fit.
    group, y, weight, cluster, keys : arrays of shape (n,), or None
        What is known of each; keys say who somebody is.
    key : column, or None
        That of x which holds the keys: it is no content of a row.
    """

    x: Table
    group: Array
    y: Array | None = None
    weight: Floats | None = None
    cluster: Array | None = None
    keys: Array | None = field(default=None, kw_only=True)
    key: Any = field(default=None, kw_only=True)

    def take(self, rows: Codes) -> Shown:
        """Some of them."""
        names = ("group", "y", "weight", "cluster", "keys")
        held = {name: getattr(self, name) for name in names}
        parts: dict[str, Any] = {name: None if part is None else part[rows] for name, part in held.items()}
        return replace(self, x=take_rows(self.x, rows), **parts)

    @cached_property
    def digests(self) -> Digests:
        """What every column holds."""
        return column_digests(self.x, self.group, self.y, self.weight, self.cluster)

    @property
    def sha256(self) -> str:
        """The fingerprint of these people."""
        return sha256_of(self.digests)

    @cached_property
    def key_hashes(self) -> Hashes | None:
        """Eight bytes of everybody's key, which is read as text, as the lottery reads it."""
        return None if self.keys is None else text_hashes(self.keys)

    @property
    def names(self) -> list[Any]:
        """Columns of x that rows are told apart by; the key is not, which may be another one elsewhere."""
        return looked_at([name for name in column_names(self.x) if name != self.key])

    def contents(self, names: list[Any], *, labelled: bool) -> tuple[Hashes, ...]:
        """Hashes of the rows by these columns alone, and with group and label where those are known."""
        if not set(names).issubset(column_names(self.x)):
            return ()
        beside = {"group": as_numbers(self.group)}
        if labelled and self.y is not None:
            beside["label"] = as_numbers(self.y)
        alone, with_group = hashes_beside(self.x, names, beside)
        return (alone,) if labelled and self.y is None else (alone, with_group)


@dataclass(frozen=True, eq=False)
class Remembered:
    """What is remembered of rows.

    Attributes
    ----------
    sha256 : str
        The fingerprint of the table.
    roles : tuple of str
        What besides group and x was known of them, and is a part of it.
    fitted : float
        Which share of the table it was: of a safe fit, others were held out.
    keys : array, or None
        Eight bytes of each key, in order; None where nobody has one.
    seen : tuple of SeenRows
        Sketches of the rows: by their columns alone, and with group and label.
    """

    sha256: str
    roles: tuple[str, ...]
    fitted: float
    keys: Hashes | None
    seen: tuple[SeenRows, ...]

    @classmethod
    def of(cls, rows: Shown, whole: Shown | None = None) -> Remembered:
        """Remember these rows; those of a safe fit are a part of a whole table."""
        table = rows if whole is None else whole
        names, hashed = rows.names, rows.key_hashes
        contents = rows.contents(names, labelled=rows.y is not None)
        return cls(
            table.sha256,
            tuple(role for role in ROLES if role in table.digests),
            len(rows.group) / max(len(table.group), 1),
            None if hashed is None else np.sort(hashed),
            tuple(SeenRows.of_hashes(names, hashes) for hashes in contents),
        )

    def share(self, rows: Shown) -> float:
        """Which share of these rows it is: by the table, else by keys, else by what looks the same.

        0 where they cannot be told from others.
        """
        if sha256_of(rows.digests, set(ROLES) - set(self.roles)) == self.sha256:
            return self.fitted
        if self.keys is not None and rows.key_hashes is not None:
            found = float(np.isin(rows.key_hashes, self.keys).mean())
            if found > KEYS:
                return found
        hashes = rows.contents(self.seen[0].names, labelled="y" in self.roles)
        # Without labels, rows are compared by their columns alone.
        return max((seen.share_of(some) for seen, some in zip(self.seen, hashes, strict=False)), default=0.0)
