"""Financial Risk for Loan Approval: the public file if it is at hand, applications like it otherwise."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific._problem.happiness import Happiness
from felicific._tables.memory import Columns, Form, table_maker
from felicific.datasets._dataset import Dataset, checked_size, column, text_columns
from felicific.exceptions import DataError

VARIABLE = "FELICIFIC_LOANS"
NEARBY = Path("..", "shared", "data", "loan", "Loan.csv")
ROWS = 20_000  # of the public file

# Feature columns in the order of the file. RiskScore is not among them: it is computed from the label.
FEATURES: dict[str, type] = {
    "ApplicationDate": str,
    "Age": int,
    "AnnualIncome": int,
    "CreditScore": int,
    "EmploymentStatus": str,
    "EducationLevel": str,
    "Experience": int,
    "LoanAmount": int,
    "LoanDuration": int,
    "MaritalStatus": str,
    "NumberOfDependents": int,
    "HomeOwnershipStatus": str,
    "MonthlyDebtPayments": int,
    "CreditCardUtilizationRate": float,
    "NumberOfOpenCreditLines": int,
    "NumberOfCreditInquiries": int,
    "DebtToIncomeRatio": float,
    "BankruptcyHistory": int,
    "LoanPurpose": str,
    "PreviousLoanDefaults": int,
    "PaymentHistory": int,
    "LengthOfCreditHistory": int,
    "SavingsAccountBalance": int,
    "CheckingAccountBalance": int,
    "TotalAssets": int,
    "TotalLiabilities": int,
    "MonthlyIncome": float,
    "UtilityBillsPaymentHistory": float,
    "JobTenure": int,
    "NetWorth": int,
    "BaseInterestRate": float,
    "InterestRate": float,
    "MonthlyLoanPayment": float,
    "TotalDebtToIncomeRatio": float,
}
LABEL = "LoanApproved"

PURPOSE_RETURN = {"Home": 0.08, "Auto": 0.02, "Education": 0.12, "Debt Consolidation": 0.04, "Other": 0.05}
EDUCATION_RETURN = {"Master": 0.01, "Doctorate": 0.02}
EMPLOYMENT_RETURN = {"Employed": 0.01, "Self-Employed": 0.01}

READ = """\
Financial Risk for Loan Approval (Zoppelletto 2024, Kaggle), read from {file}: {n:,} rows. The data are
synthetic; the file is the user's own copy and is not part of felicific.
"""
SIMULATED = """\
Simulated, not the public file: {n:,} applications drawn with seed {seed} after what is known of how Financial
Risk for Loan Approval (Zoppelletto 2024, Kaggle) was made. For the file itself, download it and give its
path, or set the environment variable FELICIFIC_LOANS to it.
"""
COMMON = """
The label is 1 for an approved loan (23.9 % in the public file). The table leaves out RiskScore, which is
computed from the label. There is no sex or race column, and the paper that uses these data names no group
column; here the group is age_group, under 40 against 40 and over, derived from Age, which stays a feature:
choose another as you see fit. The paper also speaks of 48,842 rows, where the public file has 20,000.

Facts: LoanDuration is in months (12 to 120), JobTenure in years. MaritalStatus, NumberOfDependents,
LoanPurpose, JobTenure, savings, checking, DebtToIncomeRatio, card utilisation, utility bills, open lines and
inquiries do not influence approval. ApplicationDate runs one day at a time from 2018-01-01 into 2072. In
about 1 % of the rows AnnualIncome is 1.5 to 2 times twelve MonthlyIncomes, and the approval follows
MonthlyIncome; where liabilities leave less than 1,000 of the assets, NetWorth is some number from 1,000 to
10,999.

The happiness is that of the paper's appendix: nothing if denied; if approved, the amount times an estimated
return less simple interest at a yearly rate that depends on the credit score. Assumed: the paper's duration
is meant in years, so LoanDuration is divided by 12; its loan_requested is LoanAmount, and its tenure is
JobTenure. At these rates a loan is almost always a loss to the borrower (gain above zero: 0.2 % of the public
file's rows; mean over all rows -$15,934), so more approvals mean less happiness.
"""


def net_gain(decision: Any, x: Any) -> Any:
    r"""Dollars gained by an approved loan, negative when interest eats up the return.

    .. math:: \eta = d \, L \, \bigl( R(x) - \rho(c) \, t \bigr)

    with amount :math:`L`, duration :math:`t` in years, yearly rate :math:`\rho` by credit score :math:`c`,
    and return :math:`R`, a sum of bonuses for purpose, education, employment and more than five years in the
    job.
    """
    years = x["LoanDuration"] / 12
    gain = expected_return(x) - years * yearly_rate(x["CreditScore"])
    return decision * (x["LoanAmount"] * gain)


def yearly_rate(score: Any) -> Any:
    """Interest rate per year that the happiness charges for a credit score."""
    return np.select([score >= 750, score >= 700, score >= 650, score >= 600], [0.04, 0.06, 0.08, 0.12], 0.18)


def expected_return(x: Any) -> Any:
    """Return on a loan, as a part of its amount."""
    return (
        _bonus(x["LoanPurpose"], PURPOSE_RETURN)
        + _bonus(x["EducationLevel"], EDUCATION_RETURN)
        + _bonus(x["EmploymentStatus"], EMPLOYMENT_RETURN)
        + np.where(x["JobTenure"] > 5, 0.01, 0.0)
    )


def financial_loans(
    path: str | os.PathLike[str] | None = None,
    *,
    n: int | None = None,
    seed: int = 0,
    as_frame: Form = "auto",
) -> Dataset:
    r"""Load or simulate Financial Risk for Loan Approval.

    The file is looked for in this order: `path`; the environment variable ``FELICIFIC_LOANS``;
    ``../shared/data/loan/Loan.csv`` seen from the current directory. Without any of them, or when `n` is
    given, the applications are simulated; the description of the result says which it is. The happiness, in
    dollars, is :math:`\eta = d \, L \, (R - \rho t)`: amount times return less interest over the years (see
    ``net_gain``).

    Parameters
    ----------
    path : str or path-like, optional
        The public CSV file.
    n : int, optional
        Simulate this many applications, even where the file is at hand. Not together with `path`. The
        default, when there is no file, is 20,000.
    seed : int, default 0
        Seed of the simulation; a file is returned as it is.
    as_frame : {"auto", "pandas", "polars", False}, default "auto"
        Kind of table; ``"auto"`` takes pandas, else Polars, else a dict of arrays; ``False`` the dict.

    Returns
    -------
    Dataset
        34 feature columns and, last, the groups in column ``age_group``; happiness is the net gain in
        dollars.

    Raises
    ------
    DataError
        If both `path` and `n` are given, or the file cannot be read or is another one.
    """
    make_table = table_maker(as_frame)
    if path is not None and n is not None:
        raise DataError(
            "Both path and n were given, but n is the size of a simulation.",
            "Give path to read the file, or n to simulate.",
        )
    file = _file(path) if n is None else None
    if file is None:
        size = ROWS if n is None else checked_size(n)
        columns, approved = simulate(size, seed)
        origin = SIMULATED.format(n=size, seed=seed)
    else:
        columns, approved = _read(file)
        origin = READ.format(file=file.name, n=len(approved))
    table: Columns = {name: columns[name] for name in FEATURES}
    table["age_group"] = np.where(table["Age"] < 40, "under 40", "40 and over")
    return Dataset(
        name="financial loans" if file is not None else "financial loans (simulated)",
        X=make_table(table),
        y=approved,
        sensitive_features="age_group",
        happiness=Happiness(net_gain, name="net gain", unit="$"),
        description=origin + COMMON,
    )


def _file(path: str | os.PathLike[str] | None) -> Path | None:
    """Find the file to read; None to simulate. Whether a file that was named exists, reading it will tell."""
    named = path if path is not None else os.environ.get(VARIABLE) or None
    if named is not None:
        return Path(named)
    return NEARBY if NEARBY.is_file() else None


def _read(file: Path) -> tuple[Columns, NDArray[np.int64]]:
    """Feature columns and labels of the public file."""
    source = file.name
    remedy = f"Give the CSV of Financial Risk for Loan Approval as path or in {VARIABLE}, or n to simulate."
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"The file {file} cannot be read ({error}).", remedy) from error
    cells = text_columns(text, source)
    missing = [name for name in (*FEATURES, LABEL) if name not in cells]
    if missing:
        raise DataError(f"{source} is another file: it lacks the columns {', '.join(missing)}.", remedy)
    columns: Columns = {name: column(cells[name], kind, name, source) for name, kind in FEATURES.items()}
    approved = column(cells[LABEL], int, LABEL, source)
    if not np.isin(approved, (0, 1)).all():
        raise DataError(f"Column {LABEL!r} of {source} holds values other than 0 and 1.", remedy)
    return columns, approved


def _bonus(column: Any, bonuses: dict[str, float]) -> Any:
    return np.select([column == value for value in bonuses], list(bonuses.values()), 0.0)


# ---------------------------------------------------------------------------------------------------------
# Loan applications like those of the public file, at any size, for those who do not have it.
#
# The public file is synthetic too. What is known of its making is repeated here; three things that the recipe
# leaves open were read off the file itself: how often each duration and each number of dependents occurs,
# what the file writes as net worth where debts eat up the assets, and that one annual income in a hundred
# contradicts the monthly one. Nothing was adjusted to make approval rates or accuracies agree.


Ints = NDArray[np.int64]

EDUCATION = np.array(["High School", "Associate", "Bachelor", "Master", "Doctorate"])
EMPLOYMENT = np.array(["Employed", "Self-Employed", "Unemployed"])
DURATIONS = np.arange(12, 121, 12)
DURATION_SHARES = (0.05, 0.1, 0.2, 0.2, 0.2, 0.1, 0.05, 0.05, 0.025, 0.025)
DEPENDENT_SHARES = (0.3, 0.25, 0.2, 0.15, 0.07, 0.03)
MARITAL = {"Single": 0.3, "Married": 0.5, "Divorced": 0.15, "Widowed": 0.05}
HOME = {"Own": 0.2, "Rent": 0.3, "Mortgage": 0.4, "Other": 0.1}
PURPOSE = {"Home": 0.3, "Auto": 0.2, "Education": 0.15, "Debt Consolidation": 0.25, "Other": 0.1}
FIRST_DAY = np.datetime64("2018-01-01")
DAYS = 20_000  # the file has one application a day; longer simulations go round its calendar again


def simulate(n: int, seed: int) -> tuple[Columns, Ints]:
    """Draw applications and their approvals.

    Parameters
    ----------
    n : int
        Number of applications.
    seed : int
        Seed of the one generator that draws everything.

    Returns
    -------
    columns : dict of numpy.ndarray
        The feature columns of the public file under its names; the order is the caller's business.
    approved : numpy.ndarray of shape (n,)
        0 or 1.
    """
    rng = np.random.default_rng(seed)
    columns = _applicants(rng, n) | _circumstances(rng, n)
    columns |= _terms(rng, columns)
    approved = (_risk(columns) + rng.normal(0, 0.1, n) < 1).astype(np.int64)
    # As in the file, the label is decided on the true income; only then does the column slip in 1 % of rows.
    slip = np.where(rng.random(n) < 0.01, rng.uniform(1.5, 2, n), 1.0)
    columns["AnnualIncome"] = _whole(columns["AnnualIncome"] * slip)
    return columns, approved


def _applicants(rng: np.random.Generator, n: int) -> Columns:
    """Age, schooling and work, and the income and credit score that follow from them."""
    age = _whole(np.clip(rng.normal(40, 12, n), 18, 80))
    experience = _whole(np.maximum(age - 18 - np.maximum(rng.normal(4, 2, n), 0), 0))
    level = rng.choice(5, n, p=[0.3, 0.2, 0.3, 0.15, 0.05])
    e = level / 10
    # One luck for both: in the file, the residuals of income and credit score are correlated just so.
    luck = rng.normal(0, 0.1, n)
    income = rng.lognormal(10.5, 0.6, n) * (1 + e) * (1 + experience / 100) * (1 + luck)
    credit = 300 + 300 * rng.beta(5, 1.5, n) + 100 * e + 1.5 * experience + 100 * luck
    u = rng.random(n)
    employment = (u >= 0.9 - 0.3 * e).astype(np.int64) + (u >= 0.95 - 0.1 * e)
    annual = _whole(np.clip(income, 15_000, 300_000))
    return {
        "Age": age,
        "Experience": experience,
        "EducationLevel": EDUCATION[level],
        "EmploymentStatus": EMPLOYMENT[employment],
        "AnnualIncome": annual,
        "MonthlyIncome": annual / 12,
        "CreditScore": _whole(np.clip(credit, 300, 850)),
    }


def _circumstances(rng: np.random.Generator, n: int) -> Columns:
    """Everything that is drawn independently of the rest."""
    assets = _whole(rng.lognormal(11, 1, n))
    liabilities = _whole(rng.lognormal(10, 1, n))
    worth = assets - liabilities
    return {
        "ApplicationDate": (FIRST_DAY + np.arange(n) % DAYS).astype(np.str_),
        "LoanAmount": _whole(rng.lognormal(10, 0.5, n)),
        "LoanDuration": rng.choice(DURATIONS, n, p=DURATION_SHARES),
        "MaritalStatus": _category(rng, n, MARITAL),
        "NumberOfDependents": rng.choice(6, n, p=DEPENDENT_SHARES),
        "HomeOwnershipStatus": _category(rng, n, HOME),
        "MonthlyDebtPayments": _whole(rng.lognormal(6, 0.5, n)),
        "CreditCardUtilizationRate": rng.beta(2, 5, n),
        "NumberOfOpenCreditLines": rng.poisson(3, n),
        "NumberOfCreditInquiries": rng.poisson(1, n),
        "DebtToIncomeRatio": rng.beta(2, 5, n),
        "BankruptcyHistory": _whole(rng.random(n) < 0.05),
        "LoanPurpose": _category(rng, n, PURPOSE),
        "PreviousLoanDefaults": _whole(rng.random(n) < 0.1),
        "PaymentHistory": rng.poisson(24, n),
        "LengthOfCreditHistory": rng.integers(1, 30, n),
        "SavingsAccountBalance": _whole(rng.lognormal(8, 1, n)),
        "CheckingAccountBalance": _whole(rng.lognormal(7, 1, n)),
        "TotalAssets": assets,
        "TotalLiabilities": liabilities,
        # The recipe says "at least 1,000"; the file shows a number between 1,000 and 10,999 in those rows.
        "NetWorth": np.where(worth < 1_000, rng.integers(1_000, 11_000, n), worth),
        "UtilityBillsPaymentHistory": rng.beta(8, 2, n),
        "JobTenure": rng.poisson(5, n),
    }


def _terms(rng: np.random.Generator, x: Columns) -> Columns:
    r"""Interest and instalment.

    With credit score :math:`c`, amount :math:`L`, :math:`m` months and monthly rate :math:`i = r / 12`,

    .. math:: r_0 = 0.03 + \frac{850 - c}{2000} + \frac{L}{10^6} + \frac{m}{1200}, \qquad
              r = r_0 \, \mathrm{clip}(1 + N(0, 0.1^2), 0.8, 1.2), \qquad
              \text{instalment} = \frac{L i}{1 - (1 + i)^{-m}}.
    """
    amount, months = x["LoanAmount"], x["LoanDuration"]
    base = 0.03 + (850 - x["CreditScore"]) / 2000 + amount / 1e6 + months / 1200
    rate = base * np.clip(1 + rng.normal(0, 0.1, len(base)), 0.8, 1.2)
    payment = amount * (rate / 12) / (1 - (1 + rate / 12) ** -months)
    return {
        "BaseInterestRate": base,
        "InterestRate": rate,
        "MonthlyLoanPayment": payment,
        "TotalDebtToIncomeRatio": (x["MonthlyDebtPayments"] + payment) / x["MonthlyIncome"],
    }


def _risk(x: Columns) -> NDArray[np.float64]:
    """Risk of an application before chance; below 1 it is approved.

    A sum of one term per line. A *higher* credit score raises this risk by its own term; through the interest
    rate it lowers it by more (10 / 2000 against 1 / 250 per point).
    """
    month = x["ApplicationDate"].astype("datetime64[M]").astype(np.int64) % 12 + 1
    schooling = np.select([x["EducationLevel"] == level for level in EDUCATION], [0.2, 0.1, 0.0, -0.1, -0.2])
    risk: NDArray[np.float64] = (
        (x["CreditScore"] - 600) / 250
        + (100_000 - x["AnnualIncome"]) / 100_000
        + 2 * (x["TotalDebtToIncomeRatio"] - 0.4)
        + (x["LoanAmount"] - 10_000) / 90_000
        + 10 * (x["InterestRate"] - 0.05)
        + 0.5 * x["BankruptcyHistory"]
        + 0.3 * x["PreviousLoanDefaults"]
        + 0.2 * (x["EmploymentStatus"] == "Unemployed")
        - 0.1 * np.isin(x["HomeOwnershipStatus"], ["Own", "Mortgage"])
        - x["PaymentHistory"] / 120
        - x["LengthOfCreditHistory"] / 60
        - x["NetWorth"] / 500_000
        + np.abs(x["Age"] - 40) / 100
        - x["Experience"] / 200
        + schooling
        - 0.1 * ((month >= 3) & (month <= 8))
    )
    return risk


def _category(rng: np.random.Generator, n: int, shares: dict[str, float]) -> NDArray[Any]:
    return rng.choice(list(shares), n, p=list(shares.values()))


def _whole(values: NDArray[Any]) -> Ints:
    """Cut off the decimals, as the file does."""
    return values.astype(np.int64)
