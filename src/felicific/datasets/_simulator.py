"""Loan applications like those of the public file, at any size, for those who do not have it.

The public file is synthetic too. What is known of its making is repeated here; three things that the recipe
leaves open were read off the file itself: how often each duration and each number of dependents occurs, what
the file writes as net worth where debts eat up the assets, and that one annual income in a hundred
contradicts the monthly one. Nothing was adjusted to make approval rates or accuracies agree.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from felicific._tables.memory import Columns

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
