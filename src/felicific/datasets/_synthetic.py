"""Made-up loan applications in which equal approval rates still hand one group more money."""

from typing import Any

import numpy as np

from felicific._problem.happiness import Happiness
from felicific._tables.memory import Columns, Form, table_maker
from felicific.datasets._dataset import Dataset, checked_size

# Adult's own category names; its "?" is a mark for an unknown value, not a category, and is left out.
EDUCATION = [
    "Preschool",
    "1st-4th",
    "5th-6th",
    "7th-8th",
    "9th",
    "10th",
    "11th",
    "12th",
    "HS-grad",
    "Some-college",
    "Assoc-voc",
    "Assoc-acdm",
    "Bachelors",
    "Masters",
    "Prof-school",
    "Doctorate",
]
WORKCLASS = [
    "Private",
    "Self-emp-not-inc",
    "Self-emp-inc",
    "Federal-gov",
    "Local-gov",
    "State-gov",
    "Without-pay",
    "Never-worked",
]
RACE = ["White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"]

DESCRIPTION = """\
Synthetic loan applications, drawn from the recipe in "Happiness as a Measure of Fairness" (Pichler, Romanelli
and Piantanida); nobody's data, free to use.

{n:,} rows drawn with seed {seed}. Yearly salaries are normal ($50,000, standard deviation $1,000) and so
are base amounts ($500,000, standard deviation $10,000). An application is approved exactly when ten
salaries cover the base amount, which happens half of the time and has nothing to do with sex. Men ask for the
base amount; women (one in three) ask for $50,000 more. The base amount itself is not a column; it follows
only from loan_requested together with sex. age, hours_per_week, education, workclass and race are independent
noise that makes the label harder to learn.

Assumed, where the paper is silent: age and weekly hours are whole numbers over Adult's ranges (17 to 90 and 1
to 99), the categories are Adult's without its "?", and each applicant is a woman with probability 1/3.
"""


def funding(decision: Any, x: Any) -> Any:
    """Money received: the amount asked for if approved, nothing otherwise."""
    return decision * x["loan_requested"]


def synthetic_loans(n: int = 48_842, *, seed: int = 0, as_frame: Form = "auto") -> Dataset:
    r"""Draw the synthetic loan applications of the happiness paper.

    With salary :math:`S \sim N(50\,000, 1\,000^2)` and base amount :math:`U \sim N(500\,000, 10\,000^2)`,

    .. math:: Y = 1\{10 S \ge U\}, \qquad L = U + 50\,000 \cdot 1\{\text{woman}\}, \qquad \eta = d \, L,

    so that :math:`P(Y = 1) = 1/2` in both groups, while approved women receive $50,000 more than approved
    men.

    Parameters
    ----------
    n : int, default 48842
        Number of applications.
    seed : int, default 0
        The same seed gives the same applications, whatever the kind of table.
    as_frame : {"auto", "pandas", "polars", False}, default "auto"
        Kind of table; ``"auto"`` takes pandas, else Polars, else a dict of arrays; ``False`` the dict.

    Returns
    -------
    Dataset
        Groups in column ``sex``; happiness is the funding in dollars.
    """
    make_table = table_maker(as_frame)
    n = checked_size(n)
    rng = np.random.default_rng(seed)
    woman = rng.random(n) < 1 / 3
    salary = rng.normal(50_000, 1_000, n)
    base_amount = rng.normal(500_000, 10_000, n)
    columns: Columns = {
        "sex": np.where(woman, "Female", "Male"),
        "age": rng.integers(17, 90, n, endpoint=True),
        "hours_per_week": rng.integers(1, 99, n, endpoint=True),
        "education": rng.choice(EDUCATION, n),
        "workclass": rng.choice(WORKCLASS, n),
        "race": rng.choice(RACE, n),
        "yearly_salary": salary,
        "loan_requested": base_amount + 50_000 * woman,
    }
    return Dataset(
        name="synthetic loans",
        X=make_table(columns),
        y=(10 * salary >= base_amount).astype(np.int64),
        sensitive_features="sex",
        happiness=Happiness(funding, name="funding", unit="$"),
        description=DESCRIPTION.format(n=n, seed=seed),
    )
