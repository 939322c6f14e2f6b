"""Adult: happiness is the paper's, 100 points for being taken to earn well, less the hours worked in a week."""

from __future__ import annotations

from felicific.datasets import Dataset, adult

TITLE = "Adult: a good income for few hours"


def load() -> Dataset:
    """The people of the census, who come with felicific."""
    return adult(as_frame="pandas")
