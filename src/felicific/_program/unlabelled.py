r"""Sums over people of whom some have no label: additive, and completed once all are added.

A missing label is a distribution over labels. Of everybody without one the sums are kept as if each label were theirs,
and of everybody with one how many others they stand for, :math:`\omega = (1 - e) / e` with e the chance of a label:

.. math::
    U_k[f] = \sum_{\text{unlabelled}} w_i W_{is} f(d; i, k), \qquad
    C_k = \sum_{\text{labelled}} w_i W_{is} \omega_i 1\{y_i = k\}.

Once everybody is added, the chances :math:`m_k(z, s)` of the labels are fitted to C, and

.. math:: \mathrm{sum}[f] = \sum_{\text{labelled}} w_i W_{is} f(d; i, y_i) + \sum_k m_k U_k[f]

which is the doubly robust sum wherever f is the same for all people of a signal and label. Where it is not, because f
looks at the label and at x, labelled people also say how far off :math:`\sum_k m_k f(d; i, k)` is for themselves.

Where hidden reasons may tilt the chances of the unlabelled by up to G, every decision's loss is its own worst case, and
happiness has two ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from felicific._files import check_shape, read_number, read_numbers, refused
from felicific._problem.missing_labels import check_max_odds_ratio
from felicific._program.label_completion import Completed
from felicific._typing import Array, Floats
from felicific.exceptions import AggregatesError

if TYPE_CHECKING:
    from felicific._program.aggregates import Aggregates


@dataclass(frozen=True, eq=False)
class Standing:
    """What people with a label say of others, where a function looks at the label and at x.

    Attributes
    ----------
    real : Aggregates
        Of people with a label, each counted as often as people without one stand behind it (or, where that is told by
        score and group, once).
    supposed : tuple of Aggregates
        The same as if each label were theirs.
    rise_loss, rise_value, risebaseline_loss, risebaseline_value : array, or None
        Of two labels: of people without a label, by how much the second one raises what is summed, where it does.
    stood, stood_good : dict of the same arrays
        Likewise of people with a label, each counted as in ``real``; and of those among them who have the second.
    """

    real: Aggregates
    supposed: tuple[Aggregates, ...]
    rise_loss: Floats | None = None
    rise_value: Floats | None = None
    rise_baseline_loss: Floats | None = None
    rise_baseline_value: Floats | None = None
    stood: Mapping[str, Floats] = field(default_factory=dict)
    stood_good: Mapping[str, Floats] = field(default_factory=dict)

    def mapped(self, sums: Callable[[Aggregates], Aggregates], array: Callable[[Floats], Floats]) -> Standing:
        """The same with every aggregates and every array changed alike."""
        rises: dict[str, Any] = {name: _on(array, getattr(self, name)) for name in RISES}
        stood, good = (
            {name: array(one) for name, one in part.items()} for part in (self.stood, self.stood_good)
        )
        return Standing(
            sums(self.real), tuple(map(sums, self.supposed)), **rises, stood=stood, stood_good=good
        )

    def added(self, more: Standing) -> Standing:
        """Those of two tables together."""
        rises: dict[str, Any] = {name: _plus(getattr(self, name), getattr(more, name)) for name in RISES}
        supposed = tuple(a + b for a, b in zip(self.supposed, more.supposed, strict=True))
        stood, good = (
            {name: one[name] + other[name] for name in one}
            for one, other in ((self.stood, more.stood), (self.stood_good, more.stood_good))
        )
        return Standing(self.real + more.real, supposed, **rises, stood=stood, stood_good=good)

    @property
    def aggregates(self) -> tuple[Aggregates, ...]:
        """All of them."""
        return (self.real, *self.supposed)


RISES = ("rise_loss", "rise_value", "rise_baseline_loss", "rise_baseline_value")


@dataclass(frozen=True, eq=False)
class Unlabelled:
    """The sums that aggregates have beside those of people with a label.

    Attributes
    ----------
    classes : array of shape (K,)
        The labels.
    supposed : tuple of K Aggregates
        Of people without a label, as if each label were theirs.
    seen : array of shape (groups, signals, K)
        Weight of people with a label, by label, times those they stand for where that is known person by person.
    squares : array of shape (groups, signals)
        Sum of the squares of how many they stand for, or of ones.
    score : array of shape (groups, signals, K), or None
        Sums of everybody's probabilities.
    label_proba : array of shape (groups, 4), or None
        By group the sums of the chances of having a label, of their variances, of people below ``clip``, and of those
        without a label whose chance is 0; None where score and group tell the chance.
    plain : array of shape (groups, K)
        Weight of people with a label, by label.
    beside_x : tuple of bool
        Which measures, and last whether the loss, look at the label and at x.
    standing : Standing, or None
        Where one of them does.
    source : {"label_proba", "model", "score"}
        Where the chances of having a label come from.
    max_odds_ratio, clip : float
        As :class:`felicific.MissingLabels` says them.
    """

    classes: Array
    supposed: tuple[Aggregates, ...]
    seen: Floats
    squares: Floats
    score: Floats | None
    label_proba: Floats | None
    plain: Floats
    beside_x: tuple[bool, ...]
    standing: Standing | None
    source: str
    max_odds_ratio: float
    clip: float

    # -----------------------------------------------------------------------------------------------------
    # Adding

    def added(self, other: Unlabelled | None) -> Unlabelled:
        """Those of two tables together."""
        if other is None:
            raise refuse_mixed()
        for name, what in (
            ("source", "where label_proba comes from"),
            ("clip", "clip"),
            ("max_odds_ratio", "max_odds_ratio"),
        ):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise AggregatesError(
                    f"These aggregates disagree on {what} of missing labels: {mine} and {theirs}.",
                    "Compute both with the same missing_labels=.",
                )
        standing = self.standing
        if standing is not None and other.standing is not None:
            standing = standing.added(other.standing)
        return replace(
            self,
            supposed=tuple(a + b for a, b in zip(self.supposed, other.supposed, strict=True)),
            seen=self.seen + other.seen,
            squares=self.squares + other.squares,
            score=_plus(self.score, other.score),
            label_proba=_plus(self.label_proba, other.label_proba),
            plain=self.plain + other.plain,
            standing=standing,
        )

    def mapped(
        self, sums: Callable[[Aggregates], Aggregates], array: Callable[[Floats], Floats]
    ) -> Unlabelled:
        """The same with every aggregates and every array changed alike: brought to more groups, say."""
        standing = None if self.standing is None else self.standing.mapped(sums, array)
        return replace(
            self,
            supposed=tuple(map(sums, self.supposed)),
            seen=array(self.seen),
            squares=array(self.squares),
            score=_on(array, self.score),
            label_proba=_on(array, self.label_proba),
            plain=array(self.plain),
            standing=standing,
        )

    @property
    def moves(self) -> tuple[bool, ...]:
        """Whether some decision changes each measure for somebody without a label."""
        return tuple(np.any([part.moves for part in self.supposed], axis=0).tolist())

    # -----------------------------------------------------------------------------------------------------
    # Completing

    def completed(self, labelled: Aggregates, max_odds_ratio: float | None = None) -> Aggregates:
        """Aggregates of everybody: those of the labelled, with what is supposed of the others.

        With ``max_odds_ratio`` other than the one that was said when people were summed up.
        """
        max_odds_ratio = (
            self.max_odds_ratio if max_odds_ratio is None else check_max_odds_ratio(max_odds_ratio)
        )
        others = self.supposed[0]
        if not others.mass.any():
            return replace(labelled, unlabelled=None)
        return Completed(self, labelled, max_odds_ratio).aggregates()

    # -----------------------------------------------------------------------------------------------------
    # Files

    def to_json(self) -> dict[str, Any]:
        """As data."""
        arrays = {
            name: _written(getattr(self, name))
            for name in ("seen", "squares", "score", "label_proba", "plain")
        }
        standing = None
        if self.standing is not None:
            standing = {
                "real": self.standing.real.content(),
                "supposed": [part.content() for part in self.standing.supposed],
                **{name: _written(getattr(self.standing, name)) for name in RISES},
                **{
                    name: {part: array.tolist() for part, array in getattr(self.standing, name).items()}
                    for name in ("stood", "stood_good")
                },
            }
        return {
            "supposed": [part.content() for part in self.supposed],
            **arrays,
            "beside_x": list(self.beside_x),
            "standing": standing,
            "source": self.source,
            "max_odds_ratio": "inf" if math.isinf(self.max_odds_ratio) else self.max_odds_ratio,
            "clip": self.clip,
        }

    @classmethod
    def from_json(
        cls, content: Any, labelled: Aggregates, read: Callable[[Any], Aggregates]
    ) -> Unlabelled | None:
        """Read what :meth:`to_json` wrote, beside the aggregates of the labelled."""
        if content is None:
            return None
        names = {part.name for part in fields(cls)} - {"classes"}
        if not isinstance(content, dict) or set(content) != names:
            raise refused("what it says of missing labels lacks a part, or has one too many")
        g, s = labelled.mass.shape
        k, d, j = len(labelled.classes), len(labelled.decisions), len(labelled.measures)
        supposed = tuple(_like(labelled, read(part)) for part in content["supposed"])
        beside_x = content["beside_x"]
        wrong = len(supposed) != k or content["source"] not in ("label_proba", "model", "score")
        if wrong or len(beside_x) != j + 1 or not all(type(one) is bool for one in beside_x):
            raise refused("what it says of missing labels does not fit its classes and measures")
        shapes = {
            "seen": (g, s, k),
            "squares": (g, s),
            "score": (g, s, k),
            "label_proba": (g, 4),
            "plain": (g, k),
        }
        arrays: dict[str, Any] = {name: _read(content[name], name, shape) for name, shape in shapes.items()}
        if any(arrays[name] is None for name in ("seen", "squares", "plain")):
            raise refused("it does not say how many people have a label")
        standing = None
        if content["standing"] is not None:
            parts = content["standing"]
            further: dict[str, tuple[int, ...]] = {
                "rise_loss": (g, s, d),
                "rise_value": (g, s, d, j),
                "rise_baseline_loss": (g, s),
                "rise_baseline_value": (g, s, j),
            }
            rises: dict[str, Any] = {name: _read(parts[name], name, shape) for name, shape in further.items()}
            real, others = read(parts["real"]), [read(part) for part in parts["supposed"]]
            stood, good = (
                {
                    name: check_shape(name, read_numbers(one, name), further[name])
                    for name, one in parts[which].items()
                }
                for which in ("stood", "stood_good")
            )
            if not set(stood) == set(good) <= set(RISES) or bool(stood) != (rises["rise_loss"] is not None):
                raise refused("what it says of people with a label who stand for others lacks a part")
            standing = Standing(
                _like(labelled, real),
                tuple(_like(labelled, part) for part in others),
                **rises,
                stood=stood,
                stood_good=good,
            )
        max_odds_ratio = (
            math.inf
            if content["max_odds_ratio"] == "inf"
            else read_number(content["max_odds_ratio"], "max_odds_ratio")
        )
        clip = read_number(content["clip"], "clip")
        if (
            max_odds_ratio < 1
            or not 0 < clip < 1
            or any((part < 0).any() for part in arrays.values() if part is not None)
        ):
            raise refused("a number of missing labels is out of its range")
        return cls(
            classes=labelled.classes,
            supposed=supposed,
            beside_x=tuple(beside_x),
            standing=standing,
            source=content["source"],
            max_odds_ratio=max_odds_ratio,
            clip=clip,
            **arrays,
        )


def refuse_mixed() -> AggregatesError:
    """The error of aggregates with missing labels beside others without."""
    return AggregatesError(
        "Of these aggregates some say what is known of missing labels, and some do not.",
        "Compute all with the same missing_labels=, also where no label is missing.",
    )


def _plus(one: Floats | None, other: Floats | None) -> Floats | None:
    return None if one is None or other is None else one + other


def _on(change: Callable[[Floats], Floats], array: Floats | None) -> Floats | None:
    return None if array is None else change(array)


def _written(array: Floats | None) -> Any:
    return None if array is None else array.tolist()


def _read(content: Any, name: str, shape: tuple[int, ...]) -> Floats | None:
    return None if content is None else check_shape(name, read_numbers(content, name), shape)


def _like(labelled: Aggregates, part: Aggregates) -> Aggregates:
    """Insist on aggregates of the same groups, classes, measures and signal."""
    same = part.groups == labelled.groups and part.measures == labelled.measures
    if not same or part.signal != labelled.signal or not np.array_equal(part.classes, labelled.classes):
        raise refused("the sums of people without a label are of other groups, measures or signals")
    return part
