"""Data to try felicific on: two that come with it, one that is made up, one that is read or simulated."""

from felicific.datasets._adult import adult
from felicific.datasets._dataset import Dataset
from felicific.datasets._fico import Fico, fico
from felicific.datasets._financial import financial_loans
from felicific.datasets._synthetic import synthetic_loans

__all__ = ["Dataset", "Fico", "adult", "fico", "financial_loans", "synthetic_loans"]
