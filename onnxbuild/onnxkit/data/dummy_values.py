"""The values of one dummy input: random, constant, or a mask; the same on every machine."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.model.tensor_types import BFLOAT16, STRING, numpy_dtype, rounded

if TYPE_CHECKING:
    import numpy as np

_WORDS, _LETTERS = 4, 8
"""Most words of a random string, and most letters of each."""


def dummy_array(each: DummyInput, shape: tuple[int, ...], seed: str | int) -> np.ndarray:
    """Make the values of an input.

    Floats are standard normal, or uniform in [low, high); integers uniform in [low, high), by
    default 0 or 1 (all values for 8-bit types); bools are fair coins; strings are some words of
    lowercase letters. See `DummyInput` for `fill`, `mask` and `missing`.

    Args:
        each: The input.
        shape: Its shape, all symbols replaced.
        seed: Any int or string; each input has a generator of its own, seeded by it and the name.
    """
    dtype = numpy_dtype(each.dtype)
    made: np.ndarray
    if each.mask is not None:
        made = _mask(each, shape, seed).astype(dtype)
    elif each.fill is not None:
        made = _filled(each.fill, shape, dtype)
    else:
        made = _drawn(each, shape, _generator(f"{seed}:{each.name}"))
        if each.missing:
            made[_generator(f"{seed}:missing:{each.name}").random(shape) < each.missing] = math.nan
    return rounded(made) if each.dtype == BFLOAT16 else made


def is_free(each: DummyInput) -> bool:
    """Return whether an input's values are drawn: not those of a mask, nor fixed ones, nor texts."""
    return each.mask is None and each.fill is None and each.dtype != STRING


def value_range(each: DummyInput) -> tuple[float, float] | None:
    """Return the least and the greatest value that an input is drawn from; None for floats without a range."""
    import numpy as np

    dtype = numpy_dtype(each.dtype)
    if dtype.kind == "b":
        return 0, 1
    if dtype.kind in "iu":
        least, end = _integer_range(each, dtype)
        return least, end - 1
    if each.low is None and each.high is None:
        return None
    low, high = _float_range(each)
    return low, float(np.nextafter(np.float32(high), np.float32(low)))


def _float_range(each: DummyInput) -> tuple[float, float]:
    """[low, high)."""
    low = 0.0 if each.low is None else float(each.low)
    return low, low + 1.0 if each.high is None else float(each.high)


def _generator(seed: str) -> np.random.Generator:
    import numpy as np

    entropy = hashlib.sha256(seed.encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(entropy[:16], "big")))


def _filled(fill: object, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """One value everywhere, or one for each row of the first axis, again and again."""
    import numpy as np

    if not isinstance(fill, tuple):
        value = np.array(fill, dtype)
        whole: np.ndarray = np.full(shape, value, value.dtype)
        return whole
    rows = np.array(fill, dtype)[np.arange(shape[0]) % len(fill)]
    columns = rows.reshape(-1, *(1 for _ in shape[1:]))
    spread: np.ndarray = np.broadcast_to(columns, shape).copy()
    return spread


def _mask(each: DummyInput, shape: tuple[int, ...], seed: str | int) -> np.ndarray:
    """1 where a row of the last axis holds something, 0 where it is padding.

    Inputs of one declared shape get one set of lengths: a batch has one length a row.
    """
    import numpy as np

    size, count = shape[-1], math.prod(shape[:-1])
    generator = _generator(f"{seed}:mask:{list(each.shape)}")
    lengths = generator.integers(1, max(size, 2), count)
    lengths[:1] = size
    if each.mask == "left":
        filled = np.arange(size) >= size - lengths[:, None]
    else:
        filled = np.arange(size) < lengths[:, None]
    mask: np.ndarray = filled.reshape(shape)
    return mask


def _drawn(each: DummyInput, shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    import numpy as np

    dtype = numpy_dtype(each.dtype)
    drawn: np.ndarray
    if each.dtype == STRING:
        return _texts(shape, generator)
    if dtype.kind == "b":
        drawn = generator.integers(0, 2, shape)
    elif dtype.kind in "iu":
        drawn = generator.integers(*_integer_range(each, dtype), shape, dtype=np.int64)
    elif each.low is None and each.high is None:
        drawn = generator.standard_normal(shape)
    else:
        low, high = _float_range(each)
        drawn = low + (high - low) * generator.random(shape)
    made: np.ndarray = np.asarray(drawn).astype(dtype)  # a scalar shape draws a plain number
    return made


def _texts(shape: Sequence[int], generator: np.random.Generator) -> np.ndarray:
    import numpy as np

    def word() -> str:
        count = int(generator.integers(1, _LETTERS + 1))
        return "".join(chr(ord("a") + int(n)) for n in generator.integers(0, 26, count))

    texts = [
        " ".join(word() for _ in range(int(generator.integers(1, _WORDS + 1))))
        for _ in range(math.prod(shape))
    ]
    made: np.ndarray = np.array(texts, np.str_).reshape(shape)
    return made


def _integer_range(each: DummyInput, dtype: np.dtype) -> tuple[int, int]:
    """[low, high), one past the greatest."""
    import numpy as np

    if each.low is None and each.high is None and dtype.itemsize == 1:
        info = np.iinfo(dtype)
        return int(info.min), int(info.max) + 1
    low = 0 if each.low is None else int(each.low)
    return low, low + 2 if each.high is None else int(each.high)
