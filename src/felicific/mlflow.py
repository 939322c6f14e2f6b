"""MLflow models that carry the policy, its certificate and its report, and need no pickle.

:func:`log_model` and :func:`save_model` write an MLflow model of the flavour ``python_function``, so
``mlflow.pyfunc.load_model(uri).predict(table)`` decides on the people of a table, and whatever MLflow serves or
schedules does; :func:`load` gives back what was logged. They need the extra ``mlflow``.

In the folder of the model, ``data/felicific`` holds

- ``policy.json``, the policy as :meth:`felicific.Policy.save` writes it, its salt included: whoever may read the model
  can compute everybody's draw;
- ``classifier.skops``, of a :class:`felicific.FairClassifier`, with the model it wraps;
- ``certificate.json``, what is promised of people it has not seen, or why nothing is;
- ``report.html``, if a report was given;
- ``felicific.json``, which columns of a table are what, and the SHA-256 of the other files.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from felicific import __version__
from felicific._audit.verdict import plain_text
from felicific._files import folder_whole, read_document, write_document
from felicific._fit.certificate import Certificate, no_certificate
from felicific._people.roles import Roles
from felicific._policy.apply import SeenColumns
from felicific._policy.numeric import AmountPolicy
from felicific._policy.policy import Policy, among_classes
from felicific._typing import Array, ProbaColumns, Table
from felicific.exceptions import DataError, GroupError, PolicyFileError
from felicific.skops import TRUSTED

if TYPE_CHECKING:
    from felicific._report.document import Report
    from felicific._sklearn.classifier import FairClassifier

__all__ = ["load", "log_model", "save_model"]

FORM = "felicific model"

#: Where MLflow puts the folder of files, and what they are called.
PLACE = Path("data", "felicific")
POLICY, CLASSIFIER, CERTIFICATE, REPORT = "policy.json", "classifier.skops", "certificate.json", "report.html"
SETTINGS = "felicific.json"

#: Longest text of a tag: stores cut or refuse longer ones.
LONGEST = 1000


def save_model(
    model: FairClassifier | Policy,
    path: str | os.PathLike[str],
    *,
    sensitive_features: str | Sequence[str] | None = None,
    key: str | None = None,
    score: ProbaColumns | None = None,
    predicted: str | None = None,
    group_proba: Mapping[Any, str] | None = None,
    report: Report | None = None,
    trusted: Sequence[str] = (),
    **options: Any,
) -> None:
    """Write an MLflow model to a folder that does not exist yet, whole or not at all.

    Parameters
    ----------
    model : fitted FairClassifier, or Policy
        A policy alone decides by scores that the table holds in columns.
    path : path
        The folder.
    sensitive_features : column(s), optional
        Where the groups are in the tables that it will be given; of a classifier, by default as it was fitted.
    key : column, optional
        What identifies a person there, by which the lottery draws; of a classifier, by default its ``key``. A policy
        that decides by lottery needs one. A classifier without one draws by the row's content, as its ``predict`` does.
    score, predicted, group_proba : column(s)
        Of a policy alone: where the model's probabilities or labels are, as for :meth:`felicific.Policy.apply`.
    report : Report, optional
        What ``fair.report(X_test, y_test)`` gave; its page becomes a part of the model, its verdict a tag.
    trusted : sequence of str
        Types of the wrapped model that skops does not trust by itself, such as ``"sklearn.tree._tree.Tree"``. Without
        them the model is refused, and the message names them.
    **options
        For ``mlflow.pyfunc.save_model``: ``signature``, ``metadata``, ``pip_requirements`` and others. By default the
        requirements are felicific and the libraries that the model is made of, as installed here.

    Examples
    --------
    .. code-block:: python

        import felicific.mlflow
        import mlflow
        import pandas as pd
        from felicific import aggregate, solve

        people = pd.DataFrame({
            "id": range(8),
            "sex": list("ffffmmmm"),
            "score": [0.1, 0.3, 0.6, 0.7, 0.2, 0.6, 0.8, 0.9],
            "repaid": [0, 0, 1, 1, 0, 1, 1, 1],
        })
        roles = {"score": "score", "sensitive_features": "sex"}
        policy = solve(aggregate(people, y="repaid", happiness="decision", **roles), gap=0.0)
        felicific.mlflow.save_model(policy, "model", key="id", **roles)
        decisions = mlflow.pyfunc.load_model("model").predict(people)
        assert felicific.mlflow.load("model").sha256 == policy.sha256
    """
    mlflow = _needed("mlflow.pyfunc")
    if os.path.lexists(path):
        raise DataError(f"{os.fspath(path)!r} exists already.", "Name a folder that does not exist yet.")
    kept = _Model.of(model)
    named = Roles(sensitive_features, None, score, predicted, key=key, group_proba=group_proba)
    columns = _Columns.of(kept, named)
    kept.policy.warn_of_lottery()
    with _written(kept, columns, report, trusted) as (folder, about), folder_whole(path) as whole:
        mlflow.save_model(str(whole), **_options(folder, about, trusted, options))


def log_model(
    model: FairClassifier | Policy,
    name: str = "model",
    *,
    sensitive_features: str | Sequence[str] | None = None,
    key: str | None = None,
    score: ProbaColumns | None = None,
    predicted: str | None = None,
    group_proba: Mapping[Any, str] | None = None,
    report: Report | None = None,
    trusted: Sequence[str] = (),
    **options: Any,
) -> Any:
    """Log an MLflow model to the tracking server that MLflow is set to, with what it is in tags.

    The tags say felicific's version, the policy's kind and SHA-256, the gaps that were asked for and those of the
    fitted people, the certificate and the verdict. The salt is in none of them, and in no parameter; it is in the
    model's own files.

    Parameters
    ----------
    model : fitted FairClassifier, or Policy
    name : str
        What MLflow calls it.
    sensitive_features, key, score, predicted, group_proba, report, trusted : optional
        As for :func:`save_model`.
    **options
        For ``mlflow.pyfunc.log_model``: ``registered_model_name``, ``tags``, ``signature`` and others.

    Returns
    -------
    mlflow.models.model.ModelInfo
        Its ``model_uri`` is what :func:`load` and ``mlflow.pyfunc.load_model`` take.
    """
    mlflow = _needed("mlflow.pyfunc")
    kept = _Model.of(model)
    named = Roles(sensitive_features, None, score, predicted, key=key, group_proba=group_proba)
    columns = _Columns.of(kept, named)
    kept.policy.warn_of_lottery()
    with _written(kept, columns, report, trusted) as (folder, about):
        tags = {f"felicific.{what}": _tag(value) for what, value in about.summary.items()}
        options = {**options, "tags": tags | (options.get("tags") or {})}
        return mlflow.log_model(name=name, **_options(folder, about, trusted, options))


def load(model_uri: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> FairClassifier | Policy:
    """Give back the classifier, or the policy, that was logged or saved.

    Parameters
    ----------
    model_uri : str or path
        ``"models:/name/version"``, ``info.model_uri``, or a folder.
    trusted : sequence of str
        Types that you trust besides those of felicific and of skops. What the model itself says is not asked: a file
        cannot vouch for itself.
    """
    _needed("mlflow.pyfunc")
    found = import_module("mlflow.artifacts").download_artifacts(artifact_uri=os.fspath(model_uri))
    folder = Path(found) / PLACE
    if not (folder / SETTINGS).is_file():
        raise PolicyFileError(
            f"{os.fspath(model_uri)!r} holds no model that felicific logged.",
            "Log one with felicific.mlflow.log_model, or read it with mlflow.pyfunc.load_model.",
        )
    kept, _ = _read(folder, trusted)
    return kept.classifier or kept.policy


# ---------------------------------------------------------------------------------------------------------
# What is kept, and which columns are what


@dataclass(frozen=True)
class _Model:
    """What is logged: a policy, and the classifier that it is the policy of, if it is not alone."""

    policy: Policy
    classifier: FairClassifier | None

    @classmethod
    def of(cls, model: FairClassifier | Policy) -> _Model:
        """Refuse what is neither a policy nor a fitted classifier."""
        if isinstance(model, Policy | AmountPolicy):
            return cls(among_classes(model, "the flavor of MLflow"), None)
        ours = isinstance(model, import_module("felicific._sklearn.classifier").FairClassifier)
        if not ours or "policy_" not in vars(model):
            raise DataError(
                f"The {type(model).__name__} is {'not fitted' if ours else 'no model of felicific'}.",
                "Pass a fitted FairClassifier (steps of a pipeline go into its estimator) or a Policy.",
            )
        return cls(model.policy_, model)


@dataclass(frozen=True)
class _Columns:
    """Columns of the tables that a model will be given; None where it knows them by itself."""

    sensitive_features: list[str] | None = None
    key: str | None = None
    score: list[str] | None = None
    predicted: str | None = None
    group_proba: list[str] | None = None

    @classmethod
    def of(cls, kept: _Model, named: Roles) -> _Columns:
        """Check what is said of them against what the model needs to see."""
        policy, classifier = kept.policy, kept.classifier
        if classifier is None:
            roles = SeenColumns.of(policy, named)
            if policy.is_randomized and roles.key is None:
                raise DataError(
                    "The policy decides by lottery, and there is no key.",
                    "Name the column that identifies a person in key=.",
                )
            listed = [None if part is None else list(part) for part in (roles.score, roles.group_proba)]
            return cls(list(roles.group) or None, roles.key, listed[0], roles.predicted, listed[1])
        if (named.score, named.predicted, named.group_proba) != (None, None, None):
            raise DataError(
                "A classifier asks its model for the probabilities.",
                "Leave score=, predicted= and group_proba= out, or log fair.policy_ with them.",
            )
        key, group = named.key, [named.group] if isinstance(named.group, str) else named.group
        group = None if group is None else list(group)
        wrong = [name for name in (*(group or ()), *([] if key is None else [key])) if type(name) is not str]
        if wrong:
            raise DataError(
                f"{type(wrong[0]).__name__} {str(wrong[0])[:40]!r} names no column.",
                "Name columns of the tables that it will be given in sensitive_features= and key=.",
            )
        if policy.sees_group and group is None and classifier.sensitive_features_ is None:
            raise GroupError(
                "The policy sees the group, and nobody said which column holds it.",
                "Name it in sensitive_features=.",
            )
        if not hasattr(classifier, "feature_names_in_") and (group is not None or key is not None):
            raise DataError(
                "The classifier was fitted on an array, whose columns have no names.",
                "Fit it on a dataframe that holds the columns of sensitive_features= and key= too.",
            )
        return cls(group, key)

    def decide(self, kept: _Model, table: Table) -> Array:
        """What the model decides on the people of a table."""
        if kept.classifier is not None:
            return kept.classifier.predict(table, sensitive_features=self.sensitive_features, key=self.key)
        policy = kept.policy
        column, chances = "decision", None
        while column in getattr(table, "columns", ()):
            column += "_"
        if self.group_proba is not None:
            chances = dict(zip(policy.groups, self.group_proba, strict=True))
        decided = policy.apply(
            table,
            score=self.score,
            predicted=self.predicted,
            sensitive_features=self.sensitive_features,
            key=self.key,
            group_proba=chances,
            column=column,
        )
        return np.asarray(decided[column])


# ---------------------------------------------------------------------------------------------------------
# Writing


@dataclass(frozen=True)
class _About:
    """What MLflow is told of a model: its summary, and the libraries that it is made of."""

    summary: dict[str, Any]
    modules: frozenset[str]


@contextmanager
def _written(
    kept: _Model, columns: _Columns, report: Report | None, trusted: Sequence[str]
) -> Iterator[tuple[Path, _About]]:
    """A folder with the files of a model, which was read again, and what it is."""
    certificate = no_certificate("a policy alone does not say what it was tested on.")
    if kept.classifier is not None:
        certificate = kept.classifier._about()["certificate"]
    promised = json.dumps(certificate.to_dict(), indent=1, allow_nan=False) + "\n"
    parts = {POLICY: kept.policy.to_json().encode(), CERTIFICATE: promised.encode()}
    modules: frozenset[str] = frozenset()
    if kept.classifier is not None:
        parts[CLASSIFIER], modules = _dumped(kept.classifier, trusted)
    if report is not None:
        if not isinstance(report, import_module("felicific._report.document").Report):
            raise DataError(
                f"The {type(report).__name__} is no report.", "Pass what fair.report(X_test, y_test) gave."
            )
        parts[REPORT] = report.to_html().encode()
    content = {
        "felicific": __version__,
        "columns": vars(columns),
        "files": {name: hashlib.sha256(part).hexdigest() for name, part in parts.items()},
    }
    parts[SETTINGS] = write_document(content, FORM).encode()
    with tempfile.TemporaryDirectory() as room:
        folder = Path(room, PLACE.name)
        folder.mkdir()
        for name, part in parts.items():
            (folder / name).write_bytes(part)
        try:
            _read(folder, trusted)
        except PolicyFileError as error:
            functions = "Write happiness and loss as expressions, such as 'decision * loan'."
            raise DataError(
                f"The model could not be read again: {error.problem}",
                functions if kept.classifier is None else error.remedy,
            ) from error
        yield folder, _About(_summary(kept, certificate, report), modules)


def _dumped(model: FairClassifier, trusted: Sequence[str]) -> tuple[bytes, frozenset[str]]:
    """The classifier as skops writes it, and the modules of its types; refused with types that nobody trusts."""
    data: bytes = _needed("skops.io").dumps(model)
    unknown = _untrusted(data, trusted)
    if unknown:
        raise DataError(
            f"The model holds types that skops does not trust by itself: {', '.join(unknown)}.",
            f"If you do, pass trusted={unknown}, here and to load; or log fair.policy_ and score elsewhere.",
        )
    return data, _modules(data)


def _untrusted(data: bytes, trusted: Sequence[str]) -> list[str]:
    """Types in a file of skops that nobody trusts."""
    return sorted(set(_needed("skops.io").get_untrusted_types(data=data)) - {*TRUSTED, *trusted})


def _modules(data: bytes) -> frozenset[str]:
    """Top-level modules of all types in a file of skops."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = [json.loads(archive.read("schema.json"))]
    found = set()
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            found.add(str(part.get("__module__", "")).split(".")[0])
            parts += part.values()
        elif isinstance(part, list):
            parts += part
    return frozenset(found)


def _summary(kept: _Model, certificate: Certificate, report: Report | None) -> dict[str, Any]:
    """What a model is, for people who look at a list of them."""
    policy = kept.policy
    summary: dict[str, Any] = {
        "version": __version__,
        "policy_kind": policy.kind,
        "policy_sha256": policy.sha256,
        "gaps_asked_for": policy.basis.allowed,
        "gaps_on_fitted_people": policy.gaps,
        "certificate": certificate.sentence,
    }
    if certificate.basis != "none":
        summary["confidence"] = certificate.confidence
    verdict = report.verdict if report is not None else getattr(kept.classifier, "verdict_", None)
    if verdict is not None:
        summary["verdict"] = plain_text(f"{verdict.headline} {verdict.sentence}")
    return summary


def _tag(value: Any) -> str:
    """A value as the text of a tag."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _options(folder: Path, about: _About, trusted: Sequence[str], options: dict[str, Any]) -> dict[str, Any]:
    """What MLflow is told: how to load the model, what it is and what it needs."""
    taken = sorted(set(options) & {"loader_module", "data_path", "python_model", "artifacts", "model_config"})
    if taken:
        raise DataError(f"{taken[0]}= says how a model is kept, which felicific does.", "Leave it out.")
    more = options.pop("extra_pip_requirements", None)
    found = {
        "loader_module": "felicific.mlflow",
        "data_path": str(folder),
        "model_config": {"trusted": list(trusted)},
        **options,
        "metadata": {**(options.get("metadata") or {}), "felicific": about.summary},
    }
    if options.get("pip_requirements") is None and options.get("conda_env") is None:
        found["pip_requirements"] = [*_requirements(about.modules), *(more or ())]
    elif more is not None:
        found["extra_pip_requirements"] = more
    return found


def _requirements(modules: frozenset[str]) -> list[str]:
    """felicific, and the libraries that the model's types are of, in the versions that are installed."""
    from importlib.metadata import packages_distributions, version

    homes = packages_distributions()
    names = {homes[module][0] for module in (*modules, "numpy", "sklearn", "skops") if module in homes}
    pinned = [f"{name}=={version(name)}" for name in sorted(names - {"felicific"}, key=str.lower)]
    return [f"felicific[mlflow]=={__version__}", *pinned]


# ---------------------------------------------------------------------------------------------------------
# Reading


class _Decides:
    """What MLflow calls."""

    def __init__(self, kept: _Model, columns: _Columns) -> None:
        self._kept, self._columns = kept, columns

    def predict(self, model_input: Any, params: Any = None) -> Array:
        """The decision about every row."""
        return self._columns.decide(self._kept, model_input)


def _load_pyfunc(path: str, model_config: Mapping[str, Any] | None = None) -> _Decides:
    """What MLflow loads a model by; it trusts whom the model's own MLmodel file names, as MLflow does."""
    return _Decides(*_read(Path(path), (model_config or {}).get("trusted", ())))


def _read(folder: Path, trusted: Sequence[str]) -> tuple[_Model, _Columns]:
    """The model in a folder, and its columns; refused if a file is not as it was written."""
    try:
        content = read_document((folder / SETTINGS).read_text("utf-8"), FORM)
        columns, files = _Columns(**content["columns"]), dict(content["files"])
    except (PolicyFileError, KeyError, TypeError, ValueError, OSError) as error:
        raise _damaged(folder, f"{SETTINGS} cannot be read") from error
    parts = {}
    for name, digest in files.items():
        try:
            parts[name] = (folder / name).read_bytes()
        except OSError as error:
            raise _damaged(folder, f"{name} cannot be read") from error
        if hashlib.sha256(parts[name]).hexdigest() != digest:
            raise _damaged(folder, f"{name} is not as it was written")
    if CLASSIFIER not in parts:
        kept = among_classes(Policy.from_json(parts[POLICY].decode("utf-8")), "the flavor of MLflow")
        return _Model(kept, None), columns
    unknown = _untrusted(parts[CLASSIFIER], trusted)
    if unknown:
        raise PolicyFileError(
            f"The model holds types that nobody said are trusted: {', '.join(unknown)}.",
            f"If you know whom the model is from and trust them, pass trusted={unknown}.",
        )
    try:
        model: FairClassifier = _needed("skops.io").loads(parts[CLASSIFIER], trusted=[*TRUSTED, *trusted])
        decides = model.policy_.sha256
    except Exception as error:  # whatever the wrapped model's own classes raise
        raise PolicyFileError(
            f"The model, which felicific {content['felicific']} wrote, cannot be read here: {error!r}.",
            "Install what its requirements.txt names; functions of yours must be in a module that can be imported.",
        ) from error
    if decides != json.loads(parts[POLICY])["sha256"]:
        raise _damaged(folder, f"{POLICY} is not the policy of {CLASSIFIER}")
    return _Model(model.policy_, model), columns


def _damaged(folder: Path, reason: str) -> PolicyFileError:
    return PolicyFileError(
        f"The model in {os.fspath(folder)!r} is damaged: {reason}.",
        "Get it again from where it was logged, or log it again.",
    )


def _needed(module: str) -> Any:
    """A module of the extra; one clear line where it is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in ("mlflow", "skops", "pandas"):
            raise
        raise ModuleNotFoundError(
            f"MLflow models need {error.name}. Install it: pip install 'felicific[mlflow]'", name=error.name
        ) from None
