"""Stubs of the data that static variants and `evaluate` need: they run as they are, on random values."""

import json
from collections.abc import Iterator

from onnxbuild.core.axis import example_sizes, size_at
from onnxbuild.core.recipe import DummyInput, Recipe

_HEAD = '''\
"""Data of {recipe}: random values stand where yours belong."""

import numpy as np


def feeds(count, seed=0):
    """An array for each input, with `count` samples."""
    random = np.random.default_rng(seed)
    return {{
{arrays}
    }}


def samples():
    """Inputs to calibrate on, and for `fidelity`: an array for each input, a sample at a time."""
    for seed in range(100):
        yield feeds({least}, seed)


def labelled():
    """Inputs and labels of all samples, for `evaluate`."""
    return feeds({count}), np.zeros({count}, "int64")


def accuracy(outputs, labels):
    """The score of `evaluate`, greater is better: an array of all samples for each output, and the labels."""
    found = outputs[{output}]
    if found.ndim > 1:
        found = found.reshape(len(found), -1).argmax(axis=1)
    return float(np.mean(found == labels))
'''
_COUNT = 32
_SMALL = {"int8": (-128, 128), "uint8": (0, 256)}


def stub_lines(module: str) -> list[str]:
    """Return the comments of a recipe that name the stubs.

    Args:
        module: File of the stubs, relative to the recipe.
    """
    return [
        "",
        f"# Your own data: the functions of {module} run as they are, on random values. Put yours in, and take the `#` off.",
        f"# calibration: {{data: {module}:samples}}",
        f"# evaluate: {{data: {module}:labelled, metric: {module}:accuracy, max_drop: 0.01}}",
    ]


def data_stubs(recipe: Recipe, shown: str) -> str:
    """Return the stubs as Python; of a model with a state they are first calls, without one.

    Args:
        recipe: Names the inputs and outputs.
        shown: The recipe's file, for a comment.
    """
    firsts = [each.shape[0] for each in recipe.inputs if each.shape]
    leading = next((each for each in firsts if isinstance(each, str)), [*firsts, 1][0])
    sizes = example_sizes(recipe.axes)
    sizes |= {each.growth.axis: 0 for each in recipe.inputs if each.growth is not None}
    least = leading if isinstance(leading, int) else 1
    axis = next((each for each in recipe.axes if each.name == leading), None)
    if axis is not None:
        least = axis.nearest(max(1, axis.min))
    lines = [
        f"        {json.dumps(each.name)}: {_array(each, ', '.join(_shape(each, leading, sizes)))},"
        for each in recipe.inputs
        if not each.fed_by
    ]
    output = json.dumps(recipe.outputs[0]) if recipe.outputs else "next(iter(outputs))"
    return _HEAD.format(
        recipe=shown,
        arrays="\n".join(lines),
        least=least,
        count=-(-_COUNT // least) * least,
        output=output,
    )


def _shape(each: DummyInput, leading: int | str, sizes: dict[str, int]) -> Iterator[str]:
    """Yield the sizes as code: `count` along the axis of the samples, numbers along the others."""
    for number, dimension in enumerate(each.shape):
        is_samples = number == 0 and dimension == leading
        yield "count" if is_samples else str(size_at(dimension, sizes))


def _array(each: DummyInput, shape: str) -> str:
    """The code that makes an array of an input."""
    size = f"({shape},)" if shape and "," not in shape else f"({shape})"
    dtype = "float32" if each.dtype == "bfloat16" else each.dtype
    if dtype == "string":
        return f'np.full({size}, "some words")'
    if each.arange is not None:
        return f'np.full({size}, np.arange({shape.rpartition(", ")[2]}), "{dtype}")'
    if each.mask is not None or (each.fill is not None and not isinstance(each.fill, tuple)):
        return f'np.full({size}, {1 if each.fill is None else each.fill!r}, "{dtype}")'
    if dtype == "bool":
        return f"random.random({size}) < 0.5"
    if "int" in dtype:
        low, high = (
            _SMALL.get(dtype, (0, 2)) if each.low is each.high is None else (each.low, each.high)
        )
        return f'random.integers({int(low or 0)}, {int((low or 0) + 2 if high is None else high)}, {size}, "{dtype}")'
    drawn = (
        f"random.standard_normal({size})"
        if each.low is each.high is None
        else f"random.uniform({each.low or 0}, {1 if each.high is None else each.high}, {size})"
    )
    return f'{drawn}.astype("{dtype}")' if each.shape else f'np.asarray({drawn}, "{dtype}")'
