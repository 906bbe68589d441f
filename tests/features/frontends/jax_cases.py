"""Callables of JAX that are refused, and one that is not: `PYTHON jax_cases.py ROOT` prints what is said of each."""

import json
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])

from onnxbuild.onnxkit.converters.child import Refused
from onnxbuild.onnxkit.converters.jax import _Function

MODEL = """\
import jax.numpy as jnp

def apply(params, x):
    return x @ params["w"], x

def keyed(y, x):
    return {"sum": x + y, "x": x}

def good(): return apply, {"w": jnp.ones((4, 2))}
def other(): return {"w": 1}
def raises(): return 1 / 0
def without_params(): return apply
def fails(): return apply, {"w": jnp.ones((3, 2))}
def returns_text(): return lambda x: "text"
def by_name(): return keyed
def sized(width=4): return apply, {"w": jnp.ones((width, 2))}
"""
FILE = Path("cases.py").absolute()
FILE.write_text(MODEL)
X = {"name": "x", "dtype": "float32", "shape": ["batch", 4]}
CASES = {
    "good": {},
    "other": {},
    "raises": {},
    "without_params": {},
    "fails": {},
    "returns_text": {},
    "by_name": {"inputs": [X, {**X, "name": "y"}]},
    "chosen": {"attribute": "good", "outputs": ["output_1"]},
    "renamed": {"attribute": "good", "outputs": ["one", "two"]},
    "unknown": {"attribute": "by_name", "inputs": [X, {**X, "name": "y"}], "outputs": ["sun"]},
    "wide": {"attribute": "good", "inputs": [{**X, "dtype": "int64"}]},
    "sized": {"args": {"widht": 3}},
    "sum": {"attribute": "good", "inputs": [{**X, "shape": ["a + b", 4]}]},
}


def said(name, more):
    request = {
        "file": str(FILE),
        "folders": [str(FILE.parent)],
        "attribute": name,
        "shown": f"cases.py:{name}",
        "args": {},
        "inputs": [X],
        "outputs": [],
        **more,
    }
    import numpy as np

    arrays = [np.full((2, 4), n, np.float32) for n in range(1, len(request["inputs"]) + 1)]
    try:
        function = _Function(request)
        names = function.output_names(arrays)
        made = function.outputs(arrays, names)
    except Refused as error:
        return [error.what, error.fix, error.where]
    return {n: np.asarray(each).ravel()[:1].tolist() for n, each in zip(names, made, strict=True)}


sys.stdout.write(json.dumps({name: said(name, more) for name, more in CASES.items()}))
