"""What FairClassifier and FairRegressor have in common: columns, routing, baseline, group models, fitted rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from textwrap import wrap
from typing import Any, ClassVar, Self
from weakref import WeakSet

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import has_fit_parameter

from felicific._people.roles import Roles, ordered_groups, stacked
from felicific._people.sketch import RowSketch
from felicific._policy.lottery import content_keys, keys_as_text, warn_keyless
from felicific._shown.parts import LINES, Lines, Part, as_html, as_text
from felicific._sklearn.beliefs import believed_by, fit_group_model
from felicific._sklearn.inputs import Intake, Rows, content_of
from felicific._tables.groups import encode_groups, find_groups, named_columns, refuse_identifiers
from felicific._tables.memory import column_names, is_frame, is_mapping
from felicific._typing import Codes, Floats, Table
from felicific.exceptions import DataError

#: Fitted policies whose users were told that they name no key.
_TOLD: WeakSet[Any] = WeakSet()

#: What a fit learns besides attributes that end with an underscore.
LEARNT = {
    *(
        "_blindness",
        "_certificate",
        "_cv",
        "_fitted",
        "_label_beliefs",
        "_label_model",
        "_notes",
        "_recalibrated",
    ),
    *("_sketches", "_verdict"),
}

#: Lines that scikit-learn's own diagram takes while it is folded.
DIAGRAM = 4


class FairEstimator(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """An estimator around another one, with a policy that decides by what that one says."""

    estimator: Any
    baseline: Any
    key: Any
    policy: Any
    sees_group: bool
    sensitive_features: Any

    _fitted: Any
    _notes: tuple[str, ...] = ()

    #: The column of the baseline; True where it was an array.
    _named_baseline: Any = None

    #: Sketches of the rows that it was fitted on, and of those that it was recalibrated for.
    _sketches: tuple[RowSketch, ...]

    #: Where everything is that was fitted.
    _says_more: ClassVar[str]

    @property
    @abstractmethod
    def _model(self) -> Any:
        """The estimator; where columns are named in place of one, a fitted model that reads them."""

    @property
    @abstractmethod
    def _intake(self) -> Intake:
        """What the settings say about columns of X."""

    @abstractmethod
    def _keep(self, fitted: Any) -> None:
        """Show what was fitted in the attributes."""

    def _moved(self, fitted: Any) -> Self:
        """With another policy, of which nothing was tested; a copy calls it."""
        for name in ("_blindness", "_certificate"):
            self.__dict__.pop(name, None)
        self._keep(fitted)
        self._notes = ()
        return self

    @abstractmethod
    def _summary(self) -> list[Part]:
        """What was fitted, for whoever prints the object; nothing before that."""

    @property
    def _frozen(self) -> bool:
        """Whether the model came fitted."""
        return isinstance(self._model, FrozenEstimator)

    @property
    def _bare_model(self) -> Any:
        """The model itself, where it is frozen."""
        return self._model.estimator if self._frozen else self._model

    @property
    def _model_name(self) -> str:
        return type(self._bare_model).__name__

    def _unfitted(self) -> Self:
        """A copy that learnt nothing: a fit that fails must leave the object as it was, so it happens to a copy."""
        trial = copy(self)
        for name in [name for name in vars(trial) if name.endswith("_") or name in LEARNT]:
            delattr(trial, name)
        return trial

    def _become(self, trial: Self) -> Self:
        """Take the place of a copy that was fitted."""
        self.__dict__.clear()
        self.__dict__.update({"group_model_": None} | trial.__dict__)
        return self

    def _remember_groups(self, X: Table, sensitive_features: Any) -> None:
        """Which columns name the group: those that the fit names, else the settings."""
        if not isinstance(self.sees_group, bool | np.bool_):
            raise DataError(f"sees_group is {self.sees_group!r}.", "Say True or False.")
        named = sensitive_features is not None and not is_mapping(X) and named_columns(X, sensitive_features)
        self.sensitive_features_ = sensitive_features if named else self.sensitive_features

    def _texts(self, X: Table, x: Table, key: Any, stacklevel: int) -> Callable[[Codes], list[str]]:
        """What some people draw by: their keys, else what their rows hold, of which a notice is given once."""
        keys = self._intake.keys(X if is_frame(X) else x, key)

        def texts(rows: Codes) -> list[str]:
            if keys is not None:
                return keys_as_text(keys[rows])
            if self._fitted not in _TOLD:
                _TOLD.add(self._fitted)
                warn_keyless(stacklevel=stacklevel)
            return content_keys(content_of(x, self._columns), rows)

        return texts

    def _about(self) -> dict[str, Any]:
        """What a report says of the model and the groups."""
        named, inner = self.sensitive_features_, getattr(self.estimator_, "estimator", self.estimator_)
        named = " and ".join(map(str, named)) if isinstance(named, list | tuple) else named
        steps = getattr(inner, "steps", None)
        kind = type(steps[-1][1] if steps else inner)
        ours = kind.__module__.split(".")[0] == "felicific"  # what is in columns: whose it is nobody said
        by = named if isinstance(named, str) else None
        return {"grouped_by": by, "model": None if ours else kind.__name__}

    @property
    def _group_proba(self) -> Any:
        """How likely each group is, where the policy says it."""
        return getattr(self.policy, "group_proba", None)

    @property
    def _randomize(self) -> bool:
        """Whether a lottery decides where several decisions are possible."""
        return bool(getattr(self.policy, "randomize", True))

    @property
    def _believed_columns(self) -> tuple[Any, ...]:
        """The columns that say how likely each group is."""
        return tuple(self._group_proba.values()) if isinstance(self._group_proba, Mapping) else ()

    @property
    def _columns(self) -> Sequence[str] | None:
        """Columns of the fit, where they had names."""
        return getattr(self, "feature_names_in_", None)

    def _roles(self, **signal: Any) -> Roles:
        """The columns that the settings name, and those of what the model says: the policy remembers them."""
        named, now = self._intake.named, self._named_baseline
        roles = {"baseline": now, "key": self.key, "group_proba": self._group_proba, **signal}
        return Roles(named, **roles).remembered()

    def _routed(self, sample_weight: Any, fit_params: dict[str, Any]) -> dict[str, Any]:
        """Parameters for the estimator's own fit."""
        given = dict(fit_params)
        if sample_weight is not None:
            given["sample_weight"] = sample_weight
        if get_config()["enable_metadata_routing"]:
            return dict(process_routing(self, "fit", **given).estimator.fit)
        if not has_fit_parameter(self._model, "sample_weight"):
            given.pop("sample_weight", None)
        return given

    def get_metadata_routing(self) -> MetadataRouter:
        """Route what ``fit`` is given: to itself as requested, and to the estimator."""
        router = MetadataRouter(owner=self).add_self_request(self)
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return router.add(estimator=self._model, method_mapping=mapping)

    def _baseline_in(self, X: Table, baseline: Any) -> Any:
        """The baseline: as it is passed, else as the constructor says; None where nobody does."""
        if baseline is not None or not callable(self.baseline):
            return self.baseline if baseline is None else baseline
        return self.baseline(X)

    def baseline_of(self, X: Table) -> Any:
        """What the constructor says of the baseline about other people; None where it or they say nothing."""
        named = isinstance(self.baseline, str) and self.baseline in column_names(X)
        return self._baseline_in(X, None) if named or callable(self.baseline) else None

    def _beliefs(self, rows: Rows, features: Table, cv: Any) -> Floats:
        """How likely each of the fitted people is of each group, by nobody who was fitted on them."""
        groups = find_groups(rows.group)
        refuse_identifiers(groups, len(rows.group), None if rows.weight is None else float(rows.weight.sum()))
        if self._group_proba is not None:
            if not isinstance(self._group_proba, Mapping):
                self.group_model_ = self._group_proba
            return self._chances(rows.x, groups)
        self.group_model_, chances = fit_group_model(
            features,
            encode_groups(rows.group, groups),
            groups,
            names=column_names(features) if is_frame(features) else None,
            cv=cv,
            weight=rows.weight,
            cluster=rows.cluster,
        )
        return chances

    def _chances(self, X: Table, groups: Sequence[Any]) -> Floats:
        """How likely each person is of each group."""
        if isinstance(self._group_proba, Mapping):
            return stacked(X, ordered_groups(self._group_proba, groups))
        features = self._intake.features(X, self.group_model_, self._columns)
        return believed_by(self.group_model_, features, groups)

    def _shares_fitted(self, X: Table) -> tuple[float, float]:
        """Which share of some rows it was fitted on, and which it was recalibrated for."""
        X = self._intake.check(self, X, reset=False)
        fitted, *recalibrated = (sketch.share(X) for sketch in self._sketches)
        return fitted, sum(recalibrated)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        settings = super().__repr__(N_CHAR_MAX)
        lines = wrap(settings, 100, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
        return as_text([Lines(lines, "get_params()."), *self._summary()], self._says_more)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """For notebooks: what was fitted, and then how it was set up, which is scikit-learn's diagram."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        parts = self._pictured()
        if parts and "text/html" in bundle:
            bundle["text/html"] = as_html(parts, self._says_more, LINES - DIAGRAM) + bundle["text/html"]
        return bundle

    def _pictured(self) -> list[Part]:
        """What was fitted, for notebooks."""
        return self._summary()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
