import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest

from onnxbuild.adapters.disk.index import Index
from onnxbuild.core.action import Action


@pytest.fixture
def index(tmp_path):
    made = Index(tmp_path / "index.db")
    made.save_stats({"p": ("1:2:3:4", 5, "d")})
    action = Action("export", 1, {"opset": 18}, {}, {}, {}, None)
    made.save_steps({"r:s": (action, ["first build"], "log", 7, 2.5)})
    made.save_recipes("q", "witnesses", "recipes", 1.0)
    return made


def answers(index):
    return {"stat": index.stat("p"), "step": index.step("r:s"), "recipe": index.recipes("q")}


def test_what_was_recorded_is_answered(index):
    found = answers(index)
    assert found["stat"] == ("1:2:3:4", 5, "d")
    assert found["step"][1:] == (["first build"], "log", 7, 2.5)
    assert found["recipe"] == ("witnesses", "recipes")
    assert index.wall_s() == {"r:s": 2.5}


@pytest.mark.parametrize(
    ("table", "column"),
    [
        *(("stat", each) for each in ("identity", "checked_ns", "digest", "sum")),
        *(("recipe", each) for each in ("witnesses", "recipes", "sum")),
    ],
)
@pytest.mark.parametrize("value", ["'x'", "17", "NULL", "x'00ff'", "{}||'x'"])
def test_a_row_that_is_damaged_anywhere_is_no_row(index, table, column, value):
    before = answers(index)
    with sqlite3.connect(index.path) as other:
        other.execute(f"UPDATE {table} SET {column}={value.format(column)}")
    other.close()
    after = answers(index)
    assert after.pop(table) is None
    assert before.items() >= after.items()


def test_the_garbage_collector_may_close_it_in_any_thread(tmp_path):
    with ThreadPoolExecutor(1) as thread:
        thread.submit(Index, tmp_path / "index.db").result()  # gone here, made there
    assert Index(tmp_path / "index.db").stat("x") is None
