"""Credit scores and default rates of four groups, as published by the Federal Reserve."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from felicific._typing import Floats
from felicific.datasets._dataset import column, embedded, text_columns
from felicific.exceptions import DataError

CDF_FILE = "transrisk_cdf.csv.xz"
CDF_SHA256 = "04c9691aa4b9fad43cc9722bc35a7d3f3f02ae1d724d49ae9d3bbe153f5b4f67"
DEFAULT_FILE = "transrisk_performance.csv.xz"
DEFAULT_SHA256 = "77af654ac4173978c3cdb3a9186becb12ec35666d9e34e5b666a6a3972692ff9"
TOTALS_FILE = "transrisk_totals.csv.xz"
TOTALS_SHA256 = "60ba4af53f9e61dedad3a5c4246390e666760e7552c98b08084dd3abf6b73f13"

DESCRIPTION = """\
TransUnion TransRisk credit scores by race (Board of Governors of the Federal Reserve System, Report to the
Congress on Credit Scoring and Its Effects on the Availability and Affordability of Credit, August 2007), a
work of the United States government in the public domain. The fairness literature calls them the FICO data,
although the scores are TransRisk scores on a scale from 0 to 100.

These are tables, not people: for 198 score levels and four groups, the share of the group at the level and
the share of those people who repay. The source prints cumulative percentages and default rates with two
decimals, so a share is good to about 0.0001.

Oddities: the levels go up in steps of 0.5, but 72.5, 77.5 and 92.5 are missing, so their people are counted
at the next level; default rates do not always fall as the score rises (Black, Asian), so repay is not
monotone there; the source writes "Non- Hispanic white" with a stray space, which is removed here. The groups
are very unequal in size: see totals.
"""


@dataclass(frozen=True, eq=False)  # eq=False: comparing arrays has no single truth value
class Fico:
    """Score distribution and repayment rate of each group.

    Attributes
    ----------
    groups : tuple of str
        Names of the four groups.
    scores : numpy.ndarray of shape (198,)
        Score levels, ascending.
    share : numpy.ndarray of shape (4, 198)
        Part of the group at each level; sums to one over the levels.
    repay : numpy.ndarray of shape (4, 198)
        Part of the people of the group at that level who repay.
    totals : numpy.ndarray of shape (4,)
        Number of people in each group.
    description : str
        Source, licence, oddities.
    """

    groups: tuple[str, ...]
    scores: Floats = field(repr=False)
    share: Floats = field(repr=False)
    repay: Floats = field(repr=False)
    totals: NDArray[np.int64]
    description: str = field(repr=False)


def fico() -> Fico:
    r"""Load the credit-score tables that come with felicific.

    The source gives the cumulative share :math:`F_z(s)` and the default rate :math:`b_z(s)` of group
    :math:`z` in percent. Returned are

    .. math:: \text{share}_z(s_k) = \frac{F_z(s_k) - F_z(s_{k-1})}{100}, \qquad
              \text{repay}_z(s_k) = 1 - \frac{b_z(s_k)}{100}, \qquad F_z(s_0) = 0.

    Returns
    -------
    Fico
        Plain NumPy arrays, one row per group, one column per score level.

    Raises
    ------
    DataError
        If an embedded file is not the one that was put there, or the tables contradict each other.
    """
    names, scores, cdf = _table(CDF_FILE, CDF_SHA256)
    default_names, default_scores, default = _table(DEFAULT_FILE, DEFAULT_SHA256)
    totals = {
        name: column(cells, int, name, TOTALS_FILE)
        for name, cells in text_columns(embedded(TOTALS_FILE, TOTALS_SHA256), TOTALS_FILE).items()
        if name != "Kind"
    }
    if not names == default_names == tuple(totals) or not np.array_equal(scores, default_scores):
        raise DataError("The score tables disagree on groups or score levels.", "Install felicific again.")
    return Fico(
        groups=tuple(name.replace("- ", "-") for name in names),
        scores=scores,
        share=shares(cdf),
        repay=1 - default / 100,
        totals=np.concatenate(list(totals.values())),
        description=DESCRIPTION,
    )


def shares(cdf: Floats) -> Floats:
    """Differences of cumulative percentages, as parts of one.

    Parameters
    ----------
    cdf : numpy.ndarray of shape (n_groups, n_levels)
        Percentage of each group at or below each level; must not fall and must end at 100.

    Returns
    -------
    numpy.ndarray of shape (n_groups, n_levels)
        Non-negative, each row summing to one.
    """
    steps = np.diff(cdf, axis=1, prepend=0.0)
    # The source has two decimals: a fall of up to one unit of the last one would be rounding, not an error.
    if steps.min() < -0.0101 or not np.allclose(cdf[:, -1], 100.0, atol=0.0101):
        raise DataError(
            "The cumulative shares fall from one score to the next, or do not end at 100 %.",
            "Install felicific again.",
        )
    mass = np.maximum(steps, 0.0)
    part: Floats = mass / mass.sum(axis=1, keepdims=True)
    return part


def _table(file: str, sha256: str) -> tuple[tuple[str, ...], Floats, Floats]:
    """Names of the groups, score levels, and one row of percentages per group."""
    cells = text_columns(embedded(file, sha256), file)
    scores = column(cells.pop("Score"), float, "Score", file)
    return tuple(cells), scores, np.stack([column(cells[name], float, name, file) for name in cells])
