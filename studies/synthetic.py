"""Synthetic loans: women and men are equally creditworthy, women ask for $50,000 more; happiness is the money."""

from __future__ import annotations

from felicific.datasets import Dataset, synthetic_loans
from studies.experiment import OWN, PARTS
from studies.results import Numbers, Statement

TITLE = "Synthetic loans: equal funding"


def load(seed: int, rows: int | None) -> Dataset:
    """People are drawn anew for every seed."""
    return synthetic_loans(rows or 48_842, seed=seed, as_frame="pandas")


def statements(numbers: Numbers) -> list[Statement]:
    """What the paper prints about its synthetic data, of its policy."""

    def soft(part: str):
        return numbers.of("soft-label", part, "unprocessed")

    def exact(method: str, part: str):
        return numbers.of("soft-label", part, method)

    test = tuple(soft("test")["accuracy"])
    cost = tuple(soft("validation")["accuracy"] - exact(OWN, "validation")["accuracy"])
    probabilities = exact("equalized odds", "test")
    text = "soft accuracy of the forest on"
    met = "equalized odds exactly met, on test"
    found = [
        Statement(f"{text} train", "0.97", tuple(soft("train")["accuracy"]), None),
        Statement(f"{text} test, 0.82 to 0.84", "0.833", test, 0.82 <= min(test) <= max(test) <= 0.84),
        Statement(
            "accuracy given up for a funding gap of 0, on validation",
            "less than 0.01",
            cost,
            max(cost) < 0.01,
        ),
        Statement(f"{met}: accuracy", "0.795", tuple(probabilities["accuracy"]), None),
        Statement(f"{met}: funding gap, $", "25,384", tuple(probabilities["gap"]), None),
    ]
    for method in ("statistical parity", "equalized odds"):
        for part in PARTS:
            more = exact(method, part)["gap"] - soft(part)["gap"]
            text = f"{method} exactly met widens the funding gap, on {part}: by, $"
            found.append(Statement(text, "more than 0", tuple(more), more.mean() > 0))
    equal = exact("overall accuracy", "test")
    low, high = equal["low"].mean(), equal["high"].mean()
    text = "overall accuracy leaves the funding gap unchanged at best, on test: change, $"
    text += f" (at the middle of its ties; they allow gaps from ${low:,.0f} to ${high:,.0f})"
    return [*found, Statement(text, "0 or more", tuple(equal["gap"] - soft("test")["gap"]), None)]
