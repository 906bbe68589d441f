"""Differences of locks: all of them, in the order in which they matter, under names to type."""

from dataclasses import replace

from onnxbuild.core.action import NO_FILE
from onnxbuild.core.digest import Digest
from onnxbuild.lock.compare import MISSING, differences, leaves
from onnxbuild.lock.model import Lock, LockedStep
from onnxbuild.lock.text import lock_text, parse_lock

A, B = "a" * 64, "b" * 64
LOCK = Lock(
    recipe="recipes/net.yaml",
    onnxbuild="1",
    resolved={"net": {"opset": 18, "axes": [{"max": 8}]}},
    host={"cpu": "x", "cores": "2"},
    python="cpython-311 yes: no",
    packages={"torch": f"torch 2.13.0 {A}"},
    files={"weights.npz": A, "notes.txt": NO_FILE},
    sources={"net.py": A},
    folders={"models": ("net.py",), "<installed>": ()},
    steps={
        "net:export": LockedStep("export", 1, A, {"model": Digest(A, 5)}),
        "net:benchmark": LockedStep("benchmark", 2, A, {}),
    },
    measurements={"net:benchmark": {"p50_ms": 1.5}},
)


def test_a_lock_reads_back_as_it_was_written():
    assert parse_lock(lock_text(LOCK), "net.lock", "") == LOCK
    assert lock_text(parse_lock(lock_text(LOCK), "net.lock", "")) == lock_text(LOCK)


def test_equal_locks_differ_in_nothing_and_measurements_never_count():
    assert differences(LOCK, LOCK) == ()
    assert differences(LOCK, replace(LOCK, measurements={})) == ()


def test_what_goes_in_comes_before_what_comes_out():
    now = replace(
        LOCK,
        recipe="recipes/other.yaml",
        onnxbuild="2",
        resolved={"net": {"opset": 17, "axes": [{"max": 9}]}},
        host={"cpu": "y", "cores": "2"},
        python="other",
        packages={"torch": f"torch 2.14.0 {B}", "numpy": f"numpy 2.0 {B}"},
        files={"weights.npz": B, "notes.txt": B},
        sources={},
        folders={"models": ("net.py", "json.py"), "<installed>": ()},
        steps={
            "net:export": LockedStep("export", 2, B, {"model": Digest(B, 6)}),
            "net:check": LockedStep("check", 1, A, {}),
        },
    )
    reported = [(each.item, str(each)) for each in differences(LOCK, now)]
    a, b = "a" * 12, "b" * 12
    assert reported == [
        ("onnxbuild", "onnxbuild: 1 -> 2"),
        ("recipe", "recipe's file: recipes/net.yaml -> recipes/other.yaml"),
        ("recipe", "recipe net.opset: 18 -> 17"),
        ("recipe", "recipe net.axes[0].max: 8 -> 9"),
        ("host", "host cpu: x -> y"),
        ("python", "python: cpython-311 yes: no -> other"),
        ("numpy", f"package numpy: (not in the lock) -> numpy 2.0 {b}"),
        ("torch", f"package torch: torch 2.13.0 {a} -> torch 2.14.0 {b}"),
        ("notes.txt", f"file notes.txt: no file -> {b}"),
        ("weights.npz", f"file weights.npz: {a} -> {b}"),
        ("net.py", f"source net.py: {a} -> (gone)"),
        ("models", "folder models: net.py -> net.py, json.py"),
        ("net:export", "step kind of net:export: export/1 -> export/2"),
        ("net:export", f"model of net:export: {a} (5 bytes) -> {b} (6 bytes)"),
        ("net:export", f"key of net:export: {a} -> {b}"),
        ("net:check", "step net:check: (not in the lock) -> there"),
        ("net:benchmark", "step net:benchmark: there -> (gone)"),
    ]
    assert [each.follows for each in differences(LOCK, now)] == [False] * 12 + [True] * 5


def test_a_list_that_grew_is_reported_as_a_whole():
    now = replace(LOCK, resolved={"net": {"opset": 18, "axes": []}})
    (found,) = differences(LOCK, now)
    assert str(found) == "recipe net.axes: {'max': 8} -> nothing"


def test_what_is_missing_is_not_null_and_one_is_not_true():
    assert list(leaves({"a": None}, {})) == [("a", None, MISSING)]
    assert list(leaves({"a": [1, 2]}, {"a": [1.0, True]})) == [("a[0]", 1, 1.0), ("a[1]", 2, True)]
    assert list(leaves({"a": (1, "x")}, {"a": [1, "x"]})) == []
    assert [left for _, left, _ in leaves([True], [1])] == [True]
    more = replace(LOCK, resolved={"net": {"opset": 18, "axes": [{"max": 8}], "evil": None}})
    assert [str(each) for each in differences(LOCK, more)] == [
        "recipe net.evil: (not in the lock) -> null"
    ]
