"""Adult: who earned more than $50,000 a year in the United States of 1994."""

from typing import Any

import numpy as np

from felicific._problem.happiness import Happiness
from felicific._tables.memory import Columns, Form, table_maker
from felicific.datasets._dataset import Dataset, column, embedded, text_columns

FILE = "adult.csv.xz"
SHA256 = "6f8f2babc5ee744afd03f6d978d8d6b3e3b0aae240d931c4976a9cce7af0d347"
NUMERIC = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}

DESCRIPTION = """\
Adult (Becker and Kohavi 1996, UCI Machine Learning Repository, https://doi.org/10.24432/C5XW20), licence CC
BY 4.0: 48,842 people from 1994 data of the United States Census Bureau. Rows 0 to 32,560 are the published
training part, the rest is the published test part.

The label is 1 for an income above $50,000 a year (23.93 %). 33.15 % are women. Weekly hours run from 1 to 99
and average 40.42: 36.40 for women, 42.42 for men.

Oddities: unknown values are the text "?" (workclass 2,799, occupation 2,809, native-country 857);
education-num is education written as a number; fnlwgt is a sampling weight of the census, not a property of
the person.

The happiness is that of the paper: 100 points for being taken to earn well, less one point per hour worked in
a week. Its unit is therefore points, neither dollars nor hours. It lies between -99 and 99.
"""


def leisurely_income(decision: Any, x: Any) -> Any:
    """Give 100 points for a high income and take one for each hour worked in a week."""
    return 100 * decision - x["hours-per-week"]


def adult(*, as_frame: Form = "auto") -> Dataset:
    r"""Load the Adult data that come with felicific.

    The happiness of a person working :math:`h` hours a week is :math:`\eta = 100 d - h`.

    Parameters
    ----------
    as_frame : {"auto", "pandas", "polars", False}, default "auto"
        Kind of table; ``"auto"`` takes pandas, else Polars, else a dict of arrays; ``False`` the dict.

    Returns
    -------
    Dataset
        14 feature columns under the names of the source (``"hours-per-week"``), groups in column ``sex``.

    Raises
    ------
    DataError
        If the embedded file is not the one that was put there.
    """
    make_table = table_maker(as_frame)
    cells = text_columns(embedded(FILE, SHA256), FILE)
    income = np.array(cells.pop("income"))
    columns: Columns = {
        name: column(values, int if name in NUMERIC else str, name, FILE) for name, values in cells.items()
    }
    return Dataset(
        name="adult",
        X=make_table(columns),
        y=(income == ">50K").astype(np.int64),
        sensitive_features="sex",
        happiness=Happiness(leisurely_income, name="leisurely income", unit="points", bounds=(-99.0, 99.0)),
        description=DESCRIPTION,
    )
