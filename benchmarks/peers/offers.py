"""What one library offers a user, tried on a small table; run by the interpreter of an environment that holds it.

    python benchmarks/peers/offers.py fairlearn

Prints one line of JSON: a text for every row of the table that ``benchmarks/offers.py`` makes. Each library is used the
way its own documentation begins: its threshold optimiser around a fitted model, asked for equal selection rates.
"""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC


@dataclass(frozen=True)
class Peer:
    """How a library is used.

    ``names`` are those of criteria that a repair can be asked for. ``fit(model, X, y, group, weight)`` returns
    the fitted object, ``decide(fitted, X, group)`` its decisions. ``scored`` fits around a model without
    probabilities where the plain fit does not, with the user's help. ``counted(decided, group, count)`` gives
    the share of every group that is selected, with limits if it has them, from a row for each group and
    decision. ``trusted`` are types that its makers say skops may trust, and ``registered`` is how it goes to
    MLflow and back, by scikit-learn's flavour unless it has one of its own.
    """

    names: tuple[str, ...]
    fit: Callable[..., Any]
    decide: Callable[[Any, np.ndarray, np.ndarray], np.ndarray]
    counted: Callable[..., Any] | None = None
    weight: bool = False
    scored: Callable[..., Any] | None = None
    trusted: tuple[str, ...] = ()
    registered: Callable[[Any], Any] | None = None


class Share(NamedTuple):
    """A share, and its limits."""

    estimate: float
    low: float = np.nan
    high: float = np.nan


def fairlearn() -> Peer:
    from fairlearn.metrics import MetricFrame, selection_rate
    from fairlearn.postprocessing import ThresholdOptimizer
    from fairlearn.postprocessing._threshold_optimizer import ALL_CONSTRAINTS

    def fit(model, X, y, group, weight=None):
        extra = {} if weight is None else {"sample_weight": weight}
        return ThresholdOptimizer(estimator=model, prefit=True).fit(X, y, sensitive_features=group, **extra)

    def counted(decided, group, count):
        frame = MetricFrame(
            metrics=selection_rate,
            y_true=decided,
            y_pred=decided,
            sensitive_features=group,
            sample_params={"sample_weight": count},
            n_boot=200,
            ci_quantiles=[0.025, 0.975],
            random_state=0,
        )
        low, high = frame.by_group_ci
        return {name: Share(rate, low[name], high[name]) for name, rate in frame.by_group.items()}

    return Peer(
        tuple(ALL_CONSTRAINTS),
        fit,
        lambda fitted, X, group: fitted.predict(X, sensitive_features=group, random_state=0),
        counted=counted,
        weight=True,
    )


def oxonfair() -> Peer:
    from oxonfair import FairPredictor
    from oxonfair import group_metrics as gm
    from oxonfair.utils.group_metric_classes import BaseGroupMetric

    def data(X, y, group):
        return {"data": X, "target": y, "groups": group}

    def fit(model, X, y, group):
        fitted = FairPredictor(model, data(X, y, group))
        fitted.fit(gm.accuracy, gm.demographic_parity, 0.02)
        return fitted

    def scored(model, X, y, group):
        def beliefs(rows):
            score = 1 / (1 + np.exp(-model.decision_function(rows)))
            return np.column_stack([1 - score, score])

        return fit(beliefs, X, y, group)

    names = tuple(name for name, value in vars(gm).items() if isinstance(value, BaseGroupMetric))
    return Peer(names, fit, lambda fitted, X, group: fitted.predict(data(X, None, group)), scored=scored)


def aif360() -> Peer:
    import pandas as pd
    from aif360.algorithms.postprocessing import RejectOptionClassification
    from aif360.datasets import BinaryLabelDataset
    from aif360.metrics import BinaryLabelDatasetMetric

    groups = {"unprivileged_groups": [{"group": 0.0}], "privileged_groups": [{"group": 1.0}]}

    def data(X, y, group, weight=None):
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
        frame = frame.assign(group=group.astype(float), y=y.astype(float))
        columns = {"label_names": ["y"], "protected_attribute_names": ["group"]}
        if weight is not None:
            frame, columns["instance_weights_name"] = frame.assign(weight=weight.astype(float)), "weight"
        return BinaryLabelDataset(df=frame, **columns)

    def predicted(model, truth, X, score):
        own = truth.copy()
        own.scores, own.labels = score.reshape(-1, 1), model.predict(X).astype(float).reshape(-1, 1)
        return own

    def fit(model, X, y, group, weight=None, score=None):
        truth = data(X, y, group, weight)
        score = model.predict_proba(X)[:, 1] if score is None else score
        post = RejectOptionClassification(**groups, num_class_thresh=20, num_ROC_margin=10)
        fitted = post.fit(truth, predicted(model, truth, X, score))
        fitted.of = model  # a post-processor of AIF360 holds no model: who decides asks the model first
        return fitted

    def decide(fitted, X, group):
        asked = fitted.of
        score = asked.predict_proba(X)[:, 1] if hasattr(asked, "predict_proba") else squeezed(asked, X)
        truth = data(X, np.arange(len(X)) % 2, group)
        return fitted.predict(predicted(asked, truth, X, score)).labels.ravel()

    def counted(decided, group, count):
        codes = (group == "m").astype(int)
        metric = BinaryLabelDatasetMetric(data(np.zeros((len(decided), 1)), decided, codes, count), **groups)
        return {name: Share(metric.base_rate(privileged=name == "m")) for name in ("f", "m")}

    def squeezed(model, X):
        return 1 / (1 + np.exp(-model.decision_function(X)))

    return Peer(
        ("Statistical parity difference", "Average odds difference", "Equal opportunity difference"),
        fit,
        decide,
        counted=counted,
        weight=True,
        scored=lambda model, X, y, group: fit(model, X, y, group, score=squeezed(model, X)),
    )


def error_parity() -> Peer:
    from error_parity import RelaxedThresholdOptimizer
    from error_parity.threshold_optimizer import ALL_CONSTRAINTS

    def fit(model, X, y, group):
        # Its predictor is a function that the user writes in any case.
        method = "predict_proba" if hasattr(model, "predict_proba") else "decision_function"
        optimizer = RelaxedThresholdOptimizer(
            predictor=Score(model, method), constraint="demographic_parity", tolerance=0.02
        )
        return optimizer.fit(X, y, group=group)

    return Peer(tuple(ALL_CONSTRAINTS), fit, lambda fitted, X, group: fitted(X, group=group))


def felicific() -> Peer:
    import pandas as pd
    from sklearn.frozen import FrozenEstimator

    from felicific import FairClassifier, audit
    from felicific._problem.criteria import CRITERIA

    registry, trusted = import_module("felicific.mlflow"), import_module("felicific.skops").TRUSTED

    def frame(X):
        return pd.DataFrame(X, columns=["first", "second", "third"])

    def fit(model, X, y, group, weight=None):
        fair = FairClassifier(
            FrozenEstimator(model), happiness="statistical_parity", gap=0.02, random_state=0
        )
        return fair.fit(frame(X), y, sensitive_features=group, sample_weight=weight)

    def decide(fitted, X, group):
        return fitted.predict(frame(X), sensitive_features=group, key=(X[:, 0] * 2**50).astype(int))

    def registered(fair):
        with tempfile.TemporaryDirectory() as folder:
            registry.save_model(fair, Path(folder) / "model", sensitive_features="group")
            return registry.load(Path(folder) / "model")

    return Peer(
        tuple(CRITERIA),
        fit,
        decide,
        counted=lambda decided, group, count: (
            audit(
                decided,
                happiness={"selected": "decision == 1"},
                sensitive_features=group,
                sample_weight=count,
                weight_kind="frequency",
            )["selected"].means
        ),
        weight=True,
        trusted=tuple(trusted),
        registered=registered,
    )


class Score:
    """The score of the last class, as a function that pickles."""

    def __init__(self, model, method):
        self.model, self.method = model, method

    def __call__(self, X):
        """One number for each row."""
        found = getattr(self.model, self.method)(X)
        return found[:, -1] if found.ndim == 2 else found


PEERS = {
    "felicific": felicific,
    "fairlearn": fairlearn,
    "oxonfair": oxonfair,
    "aif360": aif360,
    "error-parity": error_parity,
}


def people(n: int = 4_000) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Three features, labels, two groups, and weights 0 to 3."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3)) + 0.4 * group[:, None]
    y = (X.sum(axis=1) + rng.normal(size=n) > 0.5).astype(int)
    return X, y, group, rng.integers(0, 4, n)


def refusal(error: BaseException) -> str:
    """An error in one line."""
    lines = re.sub(" at 0x[0-9a-f]+", "", str(error)).strip().splitlines()
    return f"no: `{type(error).__name__}: {lines[0][:90] if lines else ''}`"


def tried(what: Callable[[], str]) -> str:
    """What something comes to, or how it fails; a library may also end by another error than ValueError."""
    try:
        return what()
    except Exception as error:  # the table's content is how a library answers
        return refusal(error)


def without_probabilities(peer: Peer, X, y, group) -> str:
    """A model that has decision_function and no predict_proba."""
    model = LinearSVC(random_state=0).fit(X, y)

    def decided(fit: Callable[..., Any]) -> float:
        return float(np.mean(peer.decide(fit(model, X, y, group), X, group)))

    try:
        decided(peer.fit)
        return "yes, as it is"
    except Exception as error:
        told = refusal(error)
    if peer.scored is None or "predict_proba" not in told:
        return told
    return tried(lambda: f"not as it is; by scores made by hand it selects {decided(peer.scored):.0%}")


def weighted(peer: Peer, X, y, group, weight, model) -> str:
    """Whether weight 2 is the row twice and weight 0 the row absent, in what is decided afterwards."""
    if not peer.weight:
        return "no parameter"
    plain = peer.decide(peer.fit(model, X, y, group), X, group)
    heavy = peer.decide(peer.fit(model, X, y, group, weight), X, group)
    rows = np.repeat(np.arange(len(X)), weight)
    repeated = peer.decide(peer.fit(model, X[rows], y[rows], group[rows]), X, group)
    if np.mean(heavy != repeated) < 0.002:  # some are decided by a lottery
        return "yes: as repeated rows"
    return "taken and ignored" if np.mean(heavy != plain) < 0.002 else "not as repeated rows"


def kept(fitted: Any, peer: Peer, X, group, there_and_back: Callable[[Any], Any]) -> str:
    """Whether what comes back decides as before, but for lotteries that the library holds anew at every call."""
    before, again = peer.decide(fitted, X, group), peer.decide(fitted, X, group)
    after = peer.decide(there_and_back(fitted), X, group)
    return "yes" if np.mean(after != before) <= 2 * np.mean(again != before) + 0.002 else "decides otherwise"


def asked_twice(fitted: Any, peer: Peer, X, group) -> str:
    """Whether people who are asked about in another order get the same decisions."""
    order = np.random.default_rng(1).permutation(len(X))
    before = peer.decide(fitted, X, group)[order]
    changed = int(np.sum(peer.decide(fitted, X[order], group[order]) != before))
    return f"{changed} of {len(X):,} otherwise"


def unknown_types(fitted: Any) -> list[str]:
    import skops.io

    return skops.io.get_untrusted_types(data=skops.io.dumps(fitted))


def by_skops(fitted: Any, peer: Peer, X, group) -> str:
    import skops.io

    held, types = skops.io.dumps(fitted), unknown_types(fitted)
    told = kept(fitted, peer, X, group, lambda _: skops.io.loads(held, trusted=types))
    listed = f", {len(set(types) & set(peer.trusted))} of them listed by it" if peer.trusted else ""
    return f"{told}, {len(types)} type{'s' * (len(types) != 1)} to trust{listed}"


def by_mlflow(fitted: Any, peer: Peer, X, group) -> str:
    import mlflow.sklearn

    def there_and_back(**options: Any) -> Callable[[Any], Any]:
        def go(held: Any) -> Any:
            with tempfile.TemporaryDirectory() as folder:
                path = str(Path(folder) / "model")
                mlflow.sklearn.save_model(held, path, **options)
                return mlflow.sklearn.load_model(path)

        return go

    if peer.registered is not None:
        return f"{kept(fitted, peer, X, group, peer.registered)}, by a flavour of its own, without pickle"
    ways = {
        "": lambda: {},
        ", with the types that skops has to trust": lambda: {"skops_trusted_types": unknown_types(fitted)},
        ", by cloudpickle only": lambda: {"serialization_format": "cloudpickle"},
    }
    told = "no"
    for words, options in ways.items():
        told = tried(lambda options=options: kept(fitted, peer, X, group, there_and_back(**options())))
        if not told.startswith("no"):
            return told + words
    return told


def from_counts(peer: Peer) -> str:
    """Of 200 people 30 % are selected, of 300 others 40 %, told by four counts; exact limits of 30 %: .237, .369."""
    if peer.counted is None:
        return "no parameter"
    decided, group = np.array([1, 0, 1, 0]), np.array(["f", "f", "m", "m"])
    share = peer.counted(decided, group, np.array([60, 140, 120, 180]))["f"]
    limits = "no interval" if np.isnan(share.low) else f"from {share.low:.3f} to {share.high:.3f}"
    return f"{share.estimate:.3f}, {limits}"


def shown(fitted: Any) -> str:
    text = repr(fitted)
    rich = [name for name in ("_repr_html_", "_repr_mimebundle_") if hasattr(fitted, name)]
    lines = len(text.splitlines())
    return f"{len(text)} characters, {lines} line{'s' * (lines != 1)}; {'a box' if rich else 'no box'} in a notebook"


def commands(name: str) -> str:
    found = [point.name for point in distribution(name).entry_points if point.group == "console_scripts"]
    return ", ".join(found) or "none"


def methods(fitted: Any, words: tuple[str, ...]) -> str:
    """Public names of the fitted object, and of its policy, that hold one of these words."""
    parts = [fitted, getattr(fitted, "policy_", None)]
    names = {name for part in parts if part is not None for name in dir(part) if name[0] != "_"}
    return ", ".join(sorted(name for name in names if any(word in name for word in words))) or "none"


def measure(name: str) -> dict[str, str]:
    peer = PEERS[name]()
    X, y, group, weight = people()
    model = LogisticRegression().fit(X, y)
    fitted = peer.fit(model, X, y, group)
    return {
        "version": version(name),
        "criteria to ask for, by name": f"{len(peer.names)}",
        "`LinearSVC`": without_probabilities(peer, X, y, group),
        "weights at fit": tried(lambda: weighted(peer, X, y, group, weight, model)),
        "30 % of 200, from counts": tried(lambda: from_counts(peer)),
        "rows in another order": tried(lambda: asked_twice(fitted, peer, X, group)),
        "`repr` of the fitted object": shown(fitted),
        "pickle": tried(
            lambda: kept(fitted, peer, X, group, lambda held: pickle.loads(pickle.dumps(held)))  # its own
        ),
        "skops": tried(lambda: by_skops(fitted, peer, X, group)),
        "MLflow": tried(lambda: by_mlflow(fitted, peer, X, group)),
        "command line": commands(name),
        "methods about SQL": methods(fitted, ("to_sql",)),
        "methods about one decision": methods(fitted, ("explain", "reason")),
    }


def main() -> None:
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        found = measure(sys.argv[1])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
