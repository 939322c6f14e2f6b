"""Files of a command: types are those of all rows of all files, and columns are found by their names."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from felicific.cli.files import open_source
from felicific.exceptions import DataError


def write(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text, "utf-8")


def rows(path):
    return open_source(str(path)).relation.fetchall()


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("g,v\na,1\nb,0\n", "g,v\na,0.7\nb,2\n", [("a", 1.0), ("b", 0.0), ("a", 0.7), ("b", 2.0)]),
        ("g,v\na,1\nb,0\n", "v,g\n0.7,a\n2,b\n", [("a", 1.0), ("b", 0.0), ("a", 0.7), ("b", 2.0)]),
        ("g,v\na,1\nb,0\n", "g,v\na,01\nb,x\n", [("a", "1"), ("b", "0"), ("a", "01"), ("b", "x")]),
        ("g\ntrue\nfalse\n", "g\nt\nf\n", [("true",), ("false",), ("t",), ("f",)]),
    ],
    ids=["fractions", "another order", "text", "truth"],
)
def test_several_csv_are_one_table(tmp_path, first, second, expected):
    """No later file is read with the types, or in the order, of the first."""
    write(tmp_path, a=first, b=second)
    assert rows(tmp_path / "*.csv") == expected


def test_a_column_that_one_csv_lacks_is_named(tmp_path, refuses):
    """A file without a column that others have is refused by name."""
    write(tmp_path, a="g,v\na,1\n", b="g,w\na,1\n")
    with refuses(DataError, "'v'", "a.csv", "b.csv"):
        open_source(str(tmp_path / "*.csv"))


def test_text_of_digits_stays_text(tmp_path):
    """A late 01 is not the number 1, and ids of more than 63 bits keep their digits."""
    many = "".join(f"{i % 3}\n" for i in range(30_000))
    write(tmp_path, late=f"g\n{many}01\n", long="g\n18446744073709551615\n18446744073709551614\n")
    assert rows(tmp_path / "late.csv")[-1] == ("01",)
    assert len({str(row[0]) for row in rows(tmp_path / "long.csv")}) == 2
    assert open_source(str(tmp_path / "long.csv")).distinct("g") == [
        "18446744073709551614",
        "18446744073709551615",
    ]


def test_parquet_of_different_types(tmp_path, refuses):
    """The command line widens and refuses as the library does."""
    pq.write_table(pa.table({"v": [1, 0]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"v": [0.7, 0.2]}), tmp_path / "b.parquet")
    assert rows(tmp_path / "*.parquet") == [(1.0,), (0.0,), (0.7,), (0.2,)]
    pq.write_table(pa.table({"v": ["01", "1"]}), tmp_path / "b.parquet")
    with refuses(DataError, "'v'", "a.parquet", "b.parquet"):
        open_source(str(tmp_path / "*.parquet"))
