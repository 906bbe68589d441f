"""Check feeds, and say what to write instead: names, dtypes, shapes, values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.model.tensor_types import BFLOAT16, STRING, numpy_dtype, rounded

_ODD: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "NaN": lambda array: array != array,  # noqa: PLR0124 - what NaN is
    "inf": lambda array: array == math.inf,
    "-inf": lambda array: array == -math.inf,
}
"""Kind of value that is not finite -> mask of its elements, the worst kind first."""

LEAST_INSTEAD = "write the dtype's least value instead, `numpy.finfo('float32').min`: two infinities make a NaN"
"""Fix for an -inf in an input that led to a NaN."""


class NotFiniteError(StepError):
    """A model gives NaN or infinity for a sample."""


def refuse_nan(
    outputs: Mapping[str, np.ndarray], point: str, where: str, *, whose: str = "model"
) -> None:
    """Fail on NaN in what the reference itself gives: nothing can be compared with it.

    Args:
        outputs: Output name -> array.
        point: Name of the point at which they were computed.
        where: `recipe:step`, for messages.
        whose: Name of what computed them, for messages.

    Raises:
        StepError: Names the output and the point.
    """
    for name, array in outputs.items():
        if array.dtype.kind == "f" and bool(np.isnan(array).any()):
            raise StepError(
                f"output '{name}' of the {whose} itself holds {int(np.isnan(array).sum())} NaN among "
                f"{array.size} elements at point '{point}'",
                where=where,
                fix="mend the model, or give the inputs the values that it expects (`low`, `high`, `fill` in "
                "`dummy_inputs`)",
            )


def odd_values(name: str, array: np.ndarray) -> str:
    """`'x' holds 2 NaN of 8 values, the first at [0, 3]`; empty if all are finite.

    NaN goes before inf, inf before -inf: the first that is found is reported.
    """
    kind = odd_kind(array)
    if not kind:
        return ""
    found = _ODD[kind](array)
    count, place = int(found.sum()), [int(n) for n in np.argwhere(found)[0]]
    if array.ndim == 0:
        return f"'{name}' is {kind}"
    first = "the first at" if count > 1 else "at"
    return f"'{name}' holds {count} {kind} among {array.size} values, {first} {place}"


def odd_kind(array: np.ndarray) -> str:
    """`NaN`, `inf` or `-inf`, the worst that is there; empty if all are finite."""
    if array.dtype.kind != "f" or bool(np.isfinite(array).all()):
        return ""
    return next(kind for kind, test in _ODD.items() if bool(test(array).any()))


def odd_feeds(feeds: Mapping[str, np.ndarray]) -> str:
    """`; its input 'x' holds 1 -inf of 8 values, at [0, 3]`; empty if all are finite."""
    odd = next(filter(None, (odd_values(name, array) for name, array in feeds.items())), "")
    return f"; its input {odd}" if odd else ""


def not_finite(
    outputs: Mapping[str, np.ndarray], item: Mapping[str, np.ndarray], number: int, where: str
) -> NotFiniteError:
    """Return the error for a value that is not finite; it says whether the model or the projection made it."""
    odd = next(filter(None, (odd_values(n, array) for n, array in outputs.items())), "")
    what = f"output {odd}" if odd else "the outputs are finite, the projection's is not"
    cause = odd_feeds(item)
    fix = (
        "look for a division by zero in the projection, such as by a length of 0"
        if not odd
        else LEAST_INSTEAD
        if cause
        else "look for an overflow in the variant, or a row that is masked wholly"
    )
    return NotFiniteError(
        f"item {number} of the data gives a value that is not finite: {what}{cause}",
        where=where,
        fix=fix,
    )


def check_names(feeds: Mapping[Any, Any], inputs: Sequence[DummyInput], where: str) -> None:
    """See that the feeds are named as the inputs.

    One name too many and one too few count as one misspelled name.

    Raises:
        StepError: They are not.
    """
    names = [each.name for each in inputs]
    unknown = [str(name) for name in feeds if name not in names]
    missing = [name for name in names if name not in feeds]
    if unknown:
        are = "is" if len(missing) == 1 else "are"
        lacking = f"; {_quoted(missing)} {are} missing" if missing else ""
        pairs = _pairs(unknown, missing)
        surplus = [name for name in unknown if name not in dict(pairs)]
        steps = [f"rename '{old}' to '{new}'" for old, new in pairs]
        steps += [f"leave '{name}' out" for name in surplus]
        raise StepError(
            f"found an input {_quoted(unknown)}; expected {', '.join(names)}{lacking}",
            where=where,
            fix=", ".join(steps),
        )
    for name in missing:
        raise StepError(
            f"input '{name}' is missing; found {', '.join(map(str, feeds)) or 'none'}",
            where=where,
            fix=f"yield '{name}' too, or take it out of `dummy_inputs`",
        )


def check_array(each: DummyInput, value: Any, where: str) -> np.ndarray:
    """A value as a contiguous array of the declared dtype and shape.

    Infinities below zero pass: they are what additive masks are made of. NaN passes where the recipe
    says that values may be missing.

    Raises:
        StepError: It is none, or holds a NaN or an infinity above zero.
    """
    array = _as_array(each, value, where)
    if each.dtype == STRING:
        _check_shape(each, array, where)
        return array
    if array.dtype != numpy_dtype(each.dtype):
        raise StepError(
            f"input '{each.name}' has dtype {array.dtype}; expected {each.dtype}",
            where=where,
            fix=_cast(each, array, value),
        )
    _check_shape(each, array, where)
    known = np.where(np.isnan(array), array.dtype.type(0), array) if each.missing else array
    if (kind := odd_kind(known)) in {"NaN", "inf"}:
        missing = f"; if it is a missing value, write `missing: 0.1` below `{each.name}` in `dummy_inputs`"
        raise StepError(
            f"input {odd_values(each.name, known)}",
            where=where,
            fix="clean the data, or leave that sample out: such a value makes every comparison "
            f"meaningless{missing if kind == 'NaN' else ''}",
        )
    copied: np.ndarray = np.array(array, order="C")
    return rounded(copied) if each.dtype == BFLOAT16 else copied


def _quoted(names: Sequence[str]) -> str:
    return " and ".join(f"'{name}'" for name in names)


def _pairs(unknown: Sequence[str], missing: Sequence[str]) -> list[tuple[str, str]]:
    """Match unknown names with missing ones, the likest first; return the pairs in the order of `unknown`."""
    import difflib

    likeness = sorted(
        (
            (-difflib.SequenceMatcher(None, old.lower(), new.lower()).ratio(), n, m)
            for n, old in enumerate(unknown)
            for m, new in enumerate(missing)
        )
    )
    taken: dict[int, int] = {}
    for _, n, m in likeness:
        if n not in taken and m not in taken.values():
            taken[n] = m
    return [(unknown[n], missing[m]) for n, m in sorted(taken.items())]


def _as_array(each: DummyInput, value: Any, where: str) -> np.ndarray:
    if each.dtype != BFLOAT16 and str(getattr(value, "dtype", "")) == f"torch.{BFLOAT16}":
        raise StepError(
            f"input '{each.name}' has dtype {BFLOAT16}; expected {each.dtype}",
            where=where,
            fix=f"write `{_conversion(each, value)}`, or change its dtype in `dummy_inputs`",
        )
    try:
        if hasattr(value, "detach"):  # a torch tensor, without importing torch
            value = value.detach().cpu()
            value = (value.float() if each.dtype == BFLOAT16 else value).numpy()
        array: np.ndarray = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise StepError(
            f"input '{each.name}' is no array: {reason}",
            where=where,
            fix="give all rows one length, as by padding, and one dtype that numpy has: "
            f"`numpy.array(..., '{each.dtype}')`",
        ) from error
    if each.dtype == STRING:
        return _as_text(each, array, where)
    if array.dtype.kind not in "biuf":
        raise StepError(
            f"input '{each.name}' holds {_kind_of(array)}; expected {each.dtype}",
            where=where,
            fix=f"turn it into numbers first: `numpy.array(..., '{each.dtype}')`",
        )
    return array


def _as_text(each: DummyInput, array: np.ndarray, where: str) -> np.ndarray:
    """Strings as fixed-width Unicode, which files hold without objects.

    Raises:
        StepError: Something in it is no string, or ends in NUL, which that form would lose.
    """
    found = array.ravel().tolist()
    other = next((item for item in found if not isinstance(item, str)), None)
    if other is not None:
        decode = "bytes" if isinstance(other, bytes) else type(other).__name__
        raise StepError(
            f"input '{each.name}' holds {decode}; expected strings",
            where=where,
            fix="decode it first: `.decode()`" if decode == "bytes" else "give it `str` objects",
        )
    if any(item.endswith("\0") for item in found):
        raise StepError(
            f"input '{each.name}' holds a string that ends in NUL",
            where=where,
            fix="take it off: `text.rstrip('\\0')`",
        )
    texts: np.ndarray = np.array(found, np.str_).reshape(array.shape)
    return texts


def _kind_of(array: np.ndarray) -> str:
    if array.dtype.kind in "US":
        return "text"
    if array.dtype.kind == "O":
        value = array.ravel()[0] if array.size else None
        return f"objects ({type(value).__name__})"
    return f"values of dtype {array.dtype}"


def _conversion(each: DummyInput, value: Any) -> str:
    """Return the code that gives a value the declared dtype: a tensor's, an array's, or that for a list."""
    wanted = numpy_dtype(each.dtype)
    if hasattr(value, "detach"):
        return f".to(torch.{wanted})"
    return f".astype('{wanted}')" if hasattr(value, "astype") else f"numpy.array(..., '{wanted}')"


def _cast(each: DummyInput, array: np.ndarray, value: Any) -> str:
    """Return the fix for a value of another dtype: the cast to write, and what it would lose."""
    wanted = numpy_dtype(each.dtype)
    loses = ""
    if array.dtype.kind == "f" and wanted.kind in "iub":
        loses = ", which drops fractions"
    elif array.dtype.kind in "iu" and wanted.kind in "iu" and array.size:
        info = np.iinfo(wanted)
        if int(array.min()) < info.min or int(array.max()) > info.max:
            loses = f", though {each.dtype} holds {info.min} to {info.max} alone"
    held = f" (numpy has no {BFLOAT16})" if each.dtype == BFLOAT16 else ""
    return (
        f"write `{_conversion(each, value)}`{held}{loses}, or change its dtype in `dummy_inputs`"
    )


def _check_shape(each: DummyInput, array: np.ndarray, where: str) -> None:
    if _fits(each.shape, array.shape):
        return
    expected = ", ".join(map(str, each.shape))
    found = f"input '{each.name}' has shape {list(array.shape)}; expected [{expected}]"
    if array.ndim != len(each.shape):
        raise StepError(found, where=where, fix=_other_rank(each, array.shape))
    wrong = [
        f"axis {n} has size {size} instead of {want}"
        for n, (want, size) in enumerate(zip(each.shape, array.shape, strict=True))
        if isinstance(want, int) and want != size
    ]
    raise StepError(
        f"{found}: {', '.join(wrong)}", where=where, fix=_other_sizes(each, array.shape)
    )


def _fits(declared: Sequence[int | str], found: Sequence[int]) -> bool:
    return len(declared) == len(found) and all(
        isinstance(want, str) or want == size for want, size in zip(declared, found, strict=True)
    )


def _other_rank(each: DummyInput, found: Sequence[int]) -> str:
    if _fits(each.shape[1:], found):
        return "every sample is a batch: add its leading axis, `array[None]`"
    if len(found) > 1 and _fits(each.shape, found[1:]):
        return f"yield its {found[0]} parts one by one, each without the first axis"
    return (
        f"give it {len(each.shape)} axes, as by `.reshape(...)`, or correct "
        f"`dummy_inputs: {{{each.name}: {{shape: ...}}}}`"
    )


def _other_sizes(each: DummyInput, found: Sequence[int]) -> str:
    """Axes in another order are reported as such if that explains everything."""
    last = len(found) - 1
    for call, order in (
        ("numpy.moveaxis(array, -1, 1)", (0, last, *range(1, last))),
        ("numpy.moveaxis(array, 1, -1)", (0, *range(2, last + 1), 1)),
        ("array.T", tuple(range(last, -1, -1))),
    ):
        if len(order) == len(found) and _fits(each.shape, [found[n] for n in order]):
            return f"its axes are in another order: `{call}`"
    return (
        "reshape, cut or pad the data along it, or correct "
        f"`dummy_inputs: {{{each.name}: {{shape: ...}}}}`"
    )
