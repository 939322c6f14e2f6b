"""Which types a fitted classifier is made of, for skops: a file that is read with this list brings no code of its own.

skops keeps an estimator in a file and refuses, when it is read, every type that nobody said is trusted. Pickle and
joblib ask nobody.
"""

from __future__ import annotations

__all__ = ["TRUSTED"]

#: Where the types live that felicific puts into a fitted classifier, and what they are called.
_TYPES = {
    "felicific._audit.flags": ["Flag"],
    "felicific._audit.verdict": ["Verdict"],
    "felicific._fit.certificate": ["Certificate"],
    "felicific._fit.fit": ["FittedCells", "FittedIndividual"],
    "felicific._typing": ["Lazy"],
    "felicific._people.labels": ["LabelBeliefs"],
    "felicific._people.roles": ["Roles"],
    "felicific._people.sketch": ["RowSketch"],
    "felicific._policy.basis": ["Basis"],
    "felicific._policy.ledger": ["Calibration"],
    "felicific._policy.cells": ["CellPolicy"],
    "felicific._policy.individual": ["IndividualPolicy", "Search"],
    "felicific._problem.criteria": ["Correct", "Decided", "Labelled"],
    "felicific._problem.exploration": ["Chance", "Exploration", "Explored"],
    "felicific._problem.expressions": ["Expression"],
    "felicific._problem.happiness": ["Measure", "Counted", "Happiness", "Loses"],
    "felicific._problem.worse_off": ["WorseOff"],
    "felicific._problem.loss": ["Loss"],
    "felicific._problem.missing_labels": ["MissingLabels"],
    "felicific._problem.problem": ["Problem"],
    "felicific._problem.requirements": ["Budget", "Floor", "FurtherGap", "Gap", "Ratio"],
    "felicific._problem.linear": ["Goal"],
    "felicific._problem.unions": ["Shares"],
    "felicific._program.cell_sums": ["CellSums"],
    "felicific._program.crowd": ["Mixture"],
    "felicific._program.evidence": ["Evidence"],
    "felicific._program.label_completion": ["KnownLabels"],
    "felicific._program.aggregates": ["Aggregates", "Outcome"],
    "felicific._program.signals": ["Individual", "Label", "Score", "ScoreCells", "SoftLabel"],
    "felicific._program.slopes": ["Slopes"],
    "felicific._program.unlabelled": ["Standing", "Unlabelled"],
    "felicific._program.values": ["ValueCells"],
    "felicific._sklearn.beliefs": ["Coding", "GroupModel", "LabelModel"],
    "felicific._sklearn.classifier": ["FairClassifier"],
    "felicific._sklearn.inputs": ["ScoreColumns"],
    "felicific._statistics.labels": ["LabelCurve"],
    # The model of the group that a policy without the group fits is scikit-learn's gradient boosting. This part of it
    # is compiled and checks nothing: a forged one runs no code, and could still crash or read what it should not.
    "sklearn.ensemble._hist_gradient_boosting.predictor": ["TreePredictor"],
}

TRUSTED: tuple[str, ...] = tuple(f"{home}.{name}" for home, names in _TYPES.items() for name in names)
"""Types of a fitted :class:`felicific.FairClassifier`, for ``skops.io.load(file, trusted=...)``.

The wrapped model's types are not among them, nor are functions of your own: look at what
``skops.io.get_untrusted_types(file=...)`` says beside these, and add what you know.
"""
