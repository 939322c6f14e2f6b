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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from felicific._documents import check_shape, read_number, read_numbers, refused
from felicific._problem.happiness import Component
from felicific._problem.missing_labels import check_hidden
from felicific._program.known_labels import EXPLORE, KnownLabels
from felicific._program.moments_file import ADDED, SUMS
from felicific._statistics.labels import fit_curve, fit_odds, tilted
from felicific._typing import Array, Floats
from felicific.exceptions import ConstraintError, DataError, MomentsError

if TYPE_CHECKING:
    from felicific._program.moments import Moments

#: Sums that no label changes.
LABEL_FREE = ("mass", "today_mass", "fold_mass", "fold_today")

#: Sums to which what labelled people say of themselves is added, where a function looks at the label and at x.
CORRECTED = ("loss", "value", "among", "today_loss", "today_value")


@dataclass(frozen=True, eq=False)
class Standing:
    """What people with a label say of others, where a function looks at the label and at x.

    Attributes
    ----------
    real : Moments
        Of people with a label, each counted as often as people without one stand behind it (or, where that is told by
        score and group, once).
    supposed : tuple of Moments
        The same as if each label were theirs.
    rise_loss, rise_value, rise_today_loss, rise_today_value : array, or None
        Of two labels: of people without a label, by how much the second one raises what is summed, where it does.
    """

    real: Moments
    supposed: tuple[Moments, ...]
    rise_loss: Floats | None = None
    rise_value: Floats | None = None
    rise_today_loss: Floats | None = None
    rise_today_value: Floats | None = None

    @property
    def moments(self) -> tuple[Moments, ...]:
        """All of them."""
        return (self.real, *self.supposed)


RISES = ("rise_loss", "rise_value", "rise_today_loss", "rise_today_value")


@dataclass(frozen=True, eq=False)
class Unlabelled:
    """The sums that moments have beside those of people with a label.

    Attributes
    ----------
    classes : array of shape (K,)
        The labels.
    supposed : tuple of K Moments
        Of people without a label, as if each label were theirs.
    seen : array of shape (groups, signals, K)
        Weight of people with a label, by label, times those they stand for where that is known person by person.
    squares : array of shape (groups, signals)
        Sum of the squares of how many they stand for, or of ones.
    proba : array of shape (groups, signals, K), or None
        Sums of everybody's probabilities.
    odds : array of shape (groups, 3), or None
        By group the sums of the chances of having a label, of their variances, and of people below ``clip``; None where
        score and group tell the chance.
    plain : array of shape (groups, K)
        Weight of people with a label, by label.
    beside_x : tuple of bool
        Which components, and last whether the loss, look at the label and at x.
    standing : Standing, or None
        Where one of them does.
    source : {"odds", "model", "score"}
        Where the chances of having a label come from.
    hidden, clip : float
        As :class:`felicific.MissingLabels` says them.
    """

    classes: Array
    supposed: tuple[Moments, ...]
    seen: Floats
    squares: Floats
    proba: Floats | None
    odds: Floats | None
    plain: Floats
    beside_x: tuple[bool, ...]
    standing: Standing | None
    source: str
    hidden: float
    clip: float

    # -----------------------------------------------------------------------------------------------------
    # Adding

    def added(self, other: Unlabelled | None) -> Unlabelled:
        """Those of two tables together."""
        if other is None:
            raise refuse_mixed()
        for name, what in (("source", "where odds come from"), ("clip", "clip"), ("hidden", "hidden")):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise MomentsError(
                    f"These moments disagree on {what} of missing labels: {mine} and {theirs}.",
                    "Compute both with the same missing_labels=.",
                )
        standing = self.standing
        if standing is not None and other.standing is not None:
            more = other.standing
            rises: dict[str, Any] = {
                name: _plus(getattr(standing, name), getattr(more, name)) for name in RISES
            }
            supposed = tuple(a + b for a, b in zip(standing.supposed, more.supposed, strict=True))
            standing = Standing(standing.real + more.real, supposed, **rises)
        return replace(
            self,
            supposed=tuple(a + b for a, b in zip(self.supposed, other.supposed, strict=True)),
            seen=self.seen + other.seen,
            squares=self.squares + other.squares,
            proba=_plus(self.proba, other.proba),
            odds=_plus(self.odds, other.odds),
            plain=self.plain + other.plain,
            standing=standing,
        )

    def mapped(self, sums: Callable[[Moments], Moments], array: Callable[[Floats], Floats]) -> Unlabelled:
        """The same with every moments and every array changed alike: brought to more groups, say."""
        standing = self.standing
        if standing is not None:
            rises: dict[str, Any] = {name: _on(array, getattr(standing, name)) for name in RISES}
            standing = Standing(sums(standing.real), tuple(map(sums, standing.supposed)), **rises)
        return replace(
            self,
            supposed=tuple(map(sums, self.supposed)),
            seen=array(self.seen),
            squares=array(self.squares),
            proba=_on(array, self.proba),
            odds=_on(array, self.odds),
            plain=array(self.plain),
            standing=standing,
        )

    @property
    def moves(self) -> tuple[bool, ...]:
        """Whether some decision changes each component for somebody without a label."""
        return tuple(np.any([part.moves for part in self.supposed], axis=0).tolist())

    # -----------------------------------------------------------------------------------------------------
    # Completing

    def completed(self, labelled: Moments, hidden: float | None = None) -> Moments:
        """Moments of everybody: those of the labelled, with what is supposed of the others.

        With ``hidden`` other than the one that was said when people were summed up.
        """
        hidden = self.hidden if hidden is None else check_hidden(hidden)
        others = self.supposed[0]
        if not others.mass.any():
            return replace(labelled, unlabelled=None)
        found = _Completed(self, labelled, hidden)
        return found.moments()

    # -----------------------------------------------------------------------------------------------------
    # Files

    def to_json(self) -> dict[str, Any]:
        """As data."""
        arrays = {
            name: _written(getattr(self, name)) for name in ("seen", "squares", "proba", "odds", "plain")
        }
        standing = None
        if self.standing is not None:
            standing = {
                "real": self.standing.real.content(),
                "supposed": [part.content() for part in self.standing.supposed],
                **{name: _written(getattr(self.standing, name)) for name in RISES},
            }
        return {
            "supposed": [part.content() for part in self.supposed],
            **arrays,
            "beside_x": list(self.beside_x),
            "standing": standing,
            "source": self.source,
            "hidden": "inf" if math.isinf(self.hidden) else self.hidden,
            "clip": self.clip,
        }

    @classmethod
    def from_json(cls, content: Any, labelled: Moments, read: Callable[[Any], Moments]) -> Unlabelled | None:
        """Read what :meth:`to_json` wrote, beside the moments of the labelled."""
        if content is None:
            return None
        names = {part.name for part in fields(cls)} - {"classes"}
        if not isinstance(content, dict) or set(content) != names:
            raise refused("what it says of missing labels lacks a part, or has one too many")
        g, s = labelled.mass.shape
        k, d, j = len(labelled.classes), len(labelled.classes), len(labelled.components)
        supposed = tuple(_like(labelled, read(part)) for part in content["supposed"])
        beside_x = content["beside_x"]
        wrong = len(supposed) != k or content["source"] not in ("odds", "model", "score")
        if wrong or len(beside_x) != j + 1 or not all(type(one) is bool for one in beside_x):
            raise refused("what it says of missing labels does not fit its classes and components")
        shapes = {"seen": (g, s, k), "squares": (g, s), "proba": (g, s, k), "odds": (g, 3), "plain": (g, k)}
        arrays: dict[str, Any] = {name: _read(content[name], name, shape) for name, shape in shapes.items()}
        if any(arrays[name] is None for name in ("seen", "squares", "plain")):
            raise refused("it does not say how many people have a label")
        standing = None
        if content["standing"] is not None:
            parts = content["standing"]
            further: dict[str, tuple[int, ...]] = {
                "rise_loss": (g, s, d),
                "rise_value": (g, s, d, j),
                "rise_today_loss": (g, s),
                "rise_today_value": (g, s, j),
            }
            rises: dict[str, Any] = {name: _read(parts[name], name, shape) for name, shape in further.items()}
            real, others = read(parts["real"]), [read(part) for part in parts["supposed"]]
            standing = Standing(
                _like(labelled, real), tuple(_like(labelled, part) for part in others), **rises
            )
        hidden = math.inf if content["hidden"] == "inf" else read_number(content["hidden"], "hidden")
        clip = read_number(content["clip"], "clip")
        if (
            hidden < 1
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
            hidden=hidden,
            clip=clip,
            **arrays,
        )


def refuse_mixed() -> MomentsError:
    """The error of moments with missing labels beside others without."""
    return MomentsError(
        "Of these moments some say what is known of missing labels, and some do not.",
        "Compute all with the same missing_labels=, also where no label is missing.",
    )


@dataclass(frozen=True, eq=False)
class _Completed:
    """The sums of labelled and unlabelled people on their way to one."""

    unlabelled: Unlabelled
    labelled: Moments
    hidden: float

    def moments(self) -> Moments:
        """All together."""
        un, labelled = self.unlabelled, self.labelled
        origin = _origin([labelled, *un.supposed])
        base, parts = labelled.around(origin), [part.around(origin) for part in un.supposed]
        chances, labels, stand = self._imputed()
        sums: dict[str, Any] = {}
        for name in ADDED:
            held = [getattr(part, name) for part in (base, *parts)]
            sums[name] = (
                None if any(part is None for part in held) else held[0] + self._mixed(name, held[1:], chances)
            )
        if un.standing is not None and self.hidden == 1.0:
            self._correct(sums, chances, stand, origin)
        found = replace(
            base,
            **sums,
            rows=base.rows + parts[0].rows,
            whole=base.whole and parts[0].whole,
            changed=tuple(np.logical_or(base.moves, un.moves).tolist()),
            unlabelled=None,
            labels=labels,
        )
        return found if self.hidden == 1.0 else self._bounded(found, base, parts, chances)

    def _mixed(self, name: str, arrays: Sequence[Floats], chances: Floats) -> Floats:
        """What is supposed of the unlabelled: sums over labels, of those that look at them."""
        if name in LABEL_FREE:
            return arrays[0]
        found = np.zeros_like(arrays[0])
        for k, array in enumerate(arrays):
            found += _wide(chances[..., k], array) * array
        if SUMS[name].endswith("j"):
            free = [j for j, component in enumerate(self.labelled.components) if not component.looks_at_y]
            found[..., free] = arrays[0][..., free]
        return found

    def _correct(self, sums: dict[str, Any], chances: Floats, stand: Floats, origin: Floats) -> None:
        """Add what labelled people say of how far off the chances are, to what looks at the label and at x."""
        un = self.unlabelled
        assert un.standing is not None, "something looks at both"
        real, *supposed = (part.around(origin) for part in un.standing.moments)
        both = np.array(un.beside_x)
        for name in CORRECTED:
            off = getattr(real, name) - self._mixed(name, [getattr(part, name) for part in supposed], chances)
            off = off * _wide(stand, off)
            if SUMS[name].endswith("j"):
                sums[name] = sums[name] + np.where(both[:-1], off, 0.0)
            elif both[-1]:
                sums[name] = sums[name] + off

    # -----------------------------------------------------------------------------------------------------
    # The chances of labels

    def _imputed(self) -> tuple[Floats, KnownLabels, Floats]:
        """Chances of every label by group and signal, who has one, and how many others they stand for by signal."""
        un, labelled = self.unlabelled, self.labelled
        mass, others = labelled.mass, un.supposed[0].mass
        mean = self._mean_proba(mass + others)
        stand, below = np.ones_like(mass), np.zeros(len(mass))
        if un.odds is None:
            odds = self._odds(mass, others, mean)
            below = ((mass + others) * (odds < un.clip)).sum(axis=1) / np.maximum(
                (mass + others).sum(axis=1), 1e-300
            )
            odds = np.maximum(odds, un.clip)
            stand = (1.0 - odds) / odds
        elif un.odds is not None:
            below = un.odds[:, 2] / np.maximum((mass + others).sum(axis=1), 1e-300)
        counts, squares = un.seen * stand[:, :, None], (un.squares * stand**2).sum(axis=1)
        total = counts.sum(axis=(1, 2))
        effective = np.divide(total**2, squares, out=np.zeros_like(total), where=squares > 0)
        people, missing = (mass + others).sum(axis=1), others.sum(axis=1)
        labels = KnownLabels(
            groups=labelled.groups,
            classes=tuple(un.classes.tolist()),
            source=un.source,
            hidden=self.hidden,
            clip=un.clip,
            people=people,
            labelled=mass.sum(axis=1),
            standing=np.divide(total, missing, out=np.ones_like(total), where=missing > 0),
            effective=effective,
            below=below,
            evidence=1.0 / (1.0 + np.divide(squares, people, out=np.zeros_like(people), where=people > 0)),
            seen=self._seen_shares(),
            imputed=np.full((len(mass), len(un.classes)), np.nan),
        )
        labels.check(self._lowest(mass, mean), un.odds if un.source == "odds" else None)
        chances = self._chances(counts, others, mean, effective)
        with np.errstate(invalid="ignore", divide="ignore"):
            imputed = np.einsum("zs,zsk->zk", others, chances) / missing[:, None]
        return chances, replace(labels, imputed=imputed), stand

    def _mean_proba(self, mass: Floats) -> Floats | None:
        """Mean probabilities by group and signal, where signals are cells of a score."""
        un = self.unlabelled
        if un.proba is None or not self.labelled.signal.ordered:
            return None
        held = mass > 0
        flat = np.full(un.proba.shape, 1.0 / un.proba.shape[2])
        return np.where(held[:, :, None], un.proba / np.where(held, mass, 1.0)[:, :, None], flat)

    def _odds(self, mass: Floats, others: Floats, mean: Floats | None) -> Floats:
        """The chance of a label by score and group; without scores, by signal and group."""
        if mean is None:
            whole = mass + others
            return np.divide(mass, whole, out=np.ones_like(mass), where=whole > 0)
        return np.stack(
            [
                fit_odds(p, have, have_not).odds(p)
                for p, have, have_not in zip(mean, mass, others, strict=True)
            ]
        )

    def _chances(self, counts: Floats, others: Floats, mean: Floats | None, effective: Floats) -> Floats:
        """m_k(z, s): along the score a curve in every group; else what was seen of the signal."""
        if mean is not None:
            return np.stack(
                [
                    fit_curve(p, count, max(float(n), 1.0)).chances(p)
                    if count.any()
                    else np.full(p.shape, 1.0 / p.shape[1])
                    for p, count, n in zip(mean, counts, effective, strict=True)
                ]
            )
        total = counts.sum(axis=2)
        alone = (total <= 0) & (others > 0)
        if alone.any() and not math.isinf(self.hidden):
            z, s = np.argwhere(alone)[0].tolist()
            moments = self.labelled
            names = [repr(value) for value in moments.classes.tolist()]
            who = moments.signal.describe_all([(s, s)], names)[0]
            raise DataError(
                f"In the group {moments.groups[z]!r} nobody alike has a label for {others[z, s]:,.6g} people without "
                f"one: {who}.",
                EXPLORE,
            )
        found = counts / np.where(total > 0, total, 1.0)[:, :, None]
        return np.asarray(np.where((total > 0)[:, :, None], found, 1.0 / counts.shape[2]))

    def _seen_shares(self) -> Floats:
        """Shares of every label among those who have one."""
        found = self.unlabelled.plain
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(found / found.sum(axis=1, keepdims=True))

    def _lowest(self, mass: Floats, mean: Floats | None) -> Floats:
        """By group the least score of the last class that somebody with a label has."""
        if mean is None or mean.shape[2] != 2:
            return np.full(len(mass), np.nan)
        return np.asarray(np.where(mass > 0, mean[:, :, -1], np.inf).min(axis=1))

    # -----------------------------------------------------------------------------------------------------
    # What is hidden

    def _bounded(self, found: Moments, base: Moments, parts: list[Moments], chances: Floats) -> Moments:
        """With the worst loss of every decision, the best beside it, and both ends of happiness that looks at y."""
        un, both = self.unlabelled, self.unlabelled.beside_x
        self._refuse_unbounded(found.components)
        rises = un.standing

        def ends(name: str, j: int | None, sign: float) -> Floats:
            arrays = [getattr(part, name) if j is None else getattr(part, name)[..., j] for part in parts]
            if not both[-1 if j is None else j]:
                return self._extreme(arrays, chances, sign)
            rise = getattr(rises, f"rise_{name}")
            return self._between(arrays, rise if j is None else rise[..., j], chances, sign)

        def today(name: str, d_name: str, j: int | None, sign: float) -> Floats:
            """Of today's decisions: where all people of a signal are alike, from the decisions' own ends."""
            if both[-1 if j is None else j]:
                return ends(name, j, sign)
            mass, each = parts[0].mass, ends(d_name, j, sign)
            now = parts[0].today_mass
            assert now is not None, "sums over people say what is decided today"
            return np.asarray((each / np.where(mass > 0, mass, 1.0)[:, :, None] * now).sum(axis=2))

        loss: dict[str, Any] = {
            "loss": base.loss + ends("loss", None, 1.0),
            "least_loss": base.loss + ends("loss", None, -1.0),
            "today_loss": base.today_loss + today("today_loss", "loss", None, 1.0),
        }
        found = replace(found, **loss)
        looking = [j for j, component in enumerate(found.components) if component.looks_at_y]
        for j in looking:
            component, names = found.components[j], []
            for sign, word in ((-1.0, "at least"), (1.0, "at most")):
                value = base.value[..., j] + ends("value", j, sign)
                now = base.today_value[..., j] + today("today_value", "value", j, sign)
                names.append(f"{component.name}, {word}")
                one = replace(component, name=names[-1], family=names[-1], wanted=False, aside=True)
                found = _with_component(found, j, one, value, now)
            components = list(found.components)
            components[j] = replace(component, ends=(names[0], names[1]))
            found = replace(found, components=tuple(components))
        return found

    def _refuse_unbounded(self, components: Sequence[Component]) -> None:
        for component in components:
            if component.looks_at_y and (component.by_label or component.over):
                raise ConstraintError(
                    f"Who is counted by {component.name!r} depends on the label"
                    f"{' or the decision' if component.over else ''}, so with hidden={self.hidden:g} its group means "
                    "are fractions of what is not known.",
                    "Bound them by audit(..., missing_labels=MissingLabels(hidden=...)), or learn the labels by "
                    "Explore(...) and fit with hidden=1 and MissingLabels(odds=...).",
                )
        if any(self.unlabelled.beside_x) and len(self.unlabelled.classes) > 2:
            raise DataError(
                f"hidden={self.hidden:g}, and something looks at the label and at x: of more than two labels the worst "
                "case is not known from sums.",
                "Use hidden=1, or a happiness and a loss of the decision and the label alone.",
            )

    def _extreme(self, arrays: Sequence[Floats], chances: Floats, sign: float) -> Floats:
        """The largest sum (or, of sign -1, the least) over chances that hidden reasons may tilt."""
        worth = np.stack(arrays, axis=-1)
        m = chances.reshape(*chances.shape[:2], *(1,) * (worth.ndim - 3), chances.shape[2])
        worst, _ = tilted(np.broadcast_to(m, worth.shape), sign * worth, self.hidden)
        return np.asarray((worst * worth).sum(axis=-1))

    def _between(self, arrays: Sequence[Floats], rise: Floats, chances: Floats, sign: float) -> Floats:
        """The same of two labels where people of a signal differ: the second label raises some, and lowers others."""
        fall = arrays[1] - arrays[0] - rise
        m = chances[..., 1]
        if math.isinf(self.hidden):
            more, less = np.ones_like(m), np.zeros_like(m)
        else:
            more, less = self.hidden * m / (1.0 + (self.hidden - 1.0) * m), m / (m + self.hidden * (1.0 - m))
        up, down = (more, less) if sign > 0 else (less, more)
        return np.asarray(arrays[0] + _wide(up, rise) * rise + _wide(down, fall) * fall)


def _with_component(moments: Moments, j: int, component: Component, value: Floats, now: Floats) -> Moments:
    """With one component more, like that of position ``j`` but for its values."""
    sums: dict[str, Any] = {}
    for name, array in moments.known_sums.items():
        if SUMS[name].endswith("j"):
            new = {"value": value, "today_value": now}.get(name, array[..., j])
            sums[name] = np.concatenate([array, new[..., None]], axis=-1)
    return replace(
        moments,
        components=(*moments.components, component),
        origin=np.append(moments.origin, moments.origin[j]),
        changed=(*moments.moves, moments.moves[j]),
        **sums,
    )


def _origin(parts: Sequence[Moments]) -> Floats:
    """A typical value of every component, of the first of some moments in which somebody is counted."""
    found = parts[0].origin.copy()
    for j in range(len(found)):
        found[j] = next((part.origin[j] for part in parts if part.counted[:, j].sum() > 0), found[j])
    return found


def _wide(cells: Floats, array: Floats) -> Floats:
    """Numbers of cells, to multiply sums that have more axes."""
    return cells.reshape(*cells.shape, *(1,) * (array.ndim - 2))


def _plus(one: Floats | None, other: Floats | None) -> Floats | None:
    return None if one is None or other is None else one + other


def _on(change: Callable[[Floats], Floats], array: Floats | None) -> Floats | None:
    return None if array is None else change(array)


def _written(array: Floats | None) -> Any:
    return None if array is None else array.tolist()


def _read(content: Any, name: str, shape: tuple[int, ...]) -> Floats | None:
    return None if content is None else check_shape(name, read_numbers(content, name), shape)


def _like(labelled: Moments, part: Moments) -> Moments:
    """Insist on moments of the same groups, classes, components and signal."""
    same = part.groups == labelled.groups and part.components == labelled.components
    if not same or part.signal != labelled.signal or not np.array_equal(part.classes, labelled.classes):
        raise refused("the sums of people without a label are of other groups, components or signals")
    return part
