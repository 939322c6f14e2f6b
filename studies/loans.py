"""Financial risk for loan approval: happiness is the paper's estimate of what a loan is worth to the borrower."""

from __future__ import annotations

from pathlib import Path

from felicific.datasets import Dataset, financial_loans
from felicific.exceptions import DataError

TITLE = "Financial risk for loan approval: what a loan is worth"


def load(file: Path | None) -> Dataset:
    """The public file, whose people are under 40, or 40 and over."""
    data = financial_loans(file, as_frame="pandas")
    if data.name.endswith("(simulated)"):
        raise DataError(
            "The study of the loans needs the file Loan.csv of 'Financial Risk for Loan Approval' (Zoppelletto "
            "2024, Kaggle), and it is not here.",
            "Download it and put it at ../shared/data/loan/Loan.csv, or name it: --loans FILE or FELICIFIC_LOANS=FILE.",
        )
    return data
