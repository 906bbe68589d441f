"""Tables that are wider than the terminal."""

import pytest

from onnxbuild.terminal.table import format_table

ROWS = [
    {"recipe": "bert", "variant": "fp32", "size": "438.0 MiB", "p50": "18.0 ms"},
    {"recipe": "bert", "variant": "int8", "size": "110.1 MiB", "vs": "2.4 x"},
]


def test_a_table_that_fits_is_one_table():
    whole = format_table(ROWS, keys=2)
    assert whole == [
        "recipe  variant       size      p50     vs",
        "bert    fp32     438.0 MiB  18.0 ms",
        "bert    int8     110.1 MiB           2.4 x",
    ]
    assert format_table(ROWS, max(map(len, whole)), keys=2) == whole


def test_columns_that_do_not_fit_follow_with_the_keys_before_them():
    assert format_table(ROWS, 41, keys=2) == [
        "recipe  variant       size      p50",
        "bert    fp32     438.0 MiB  18.0 ms",
        "bert    int8     110.1 MiB",
        "",
        "recipe  variant     vs",
        "bert    fp32",
        "bert    int8     2.4 x",
    ]


def test_rows_whose_keys_take_the_line_have_one_of_their_own():
    name = "/encoder/layer.11/MatMul"
    rows = [{"node": name, "operator": "MatMul", "in dB": "exact", "out dB": "16.8"}]
    assert format_table(rows, 28) == [
        "node",
        "  operator  in dB  out dB",
        name,
        "  MatMul    exact    16.8",
    ]


@pytest.mark.parametrize("width", [1, 5, 9, 20, 30])
def test_no_cell_is_lost_or_cut_on_a_narrow_terminal(width):
    shown = " ".join(format_table(ROWS, width, keys=2))
    assert all(cell in shown for row in ROWS for cell in (*row, *row.values()))
    longest = max(len(cell) for row in ROWS for cell in (*row, *row.values()))
    lines = format_table(ROWS, width, keys=1)
    assert all(len(line) <= max(width, longest + 2) for line in lines)
