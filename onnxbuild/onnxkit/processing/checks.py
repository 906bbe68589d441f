"""Checks of what each operation takes and gives: dtypes, layouts, sizes; nothing runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from onnxbuild.onnxkit.processing.options import (
    CastOptions,
    CenterCropOptions,
    LabelsOptions,
    LetterboxOptions,
    LogMelOptions,
    NmsOptions,
    NormalizeOptions,
    PoolOptions,
    ProcessingError,
    RescaleOptions,
    ResizeOptions,
    ThresholdOptions,
    TokenizeOptions,
    TopKOptions,
    ValueType,
)

Check = Callable[[Sequence[ValueType], Any], tuple[ValueType, ...]]
LEAST_OPSET = 13
_ANTIALIAS_OPSET = _SCATTER_OPSET = 18
_PAIR = 2


def least_opset(options: object) -> int:
    """The opset that has the operators of an operation, in the form in which they are used."""
    if isinstance(options, TokenizeOptions):
        return _SCATTER_OPSET
    antialias = isinstance(options, (ResizeOptions, LetterboxOptions)) and options.antialias
    return _ANTIALIAS_OPSET if antialias else LEAST_OPSET


def _size(size: Sequence[int], name: str) -> tuple[int, int]:
    if len(size) != _PAIR:
        what = f"{name} has the size {list(size)}; expected [height, width]"
        raise ProcessingError(what, f"write `size: [{size[0]}, {size[0]}]`" if size else "")
    return size[0], size[1]


def _image(value: ValueType, name: str, dtypes: Sequence[str] = ()) -> ValueType:
    """The value, which must be an image with channels last."""
    if value.layout == "NCHW":
        what = f"{name} takes images in NHWC; it gets {value}"
        raise ProcessingError(what, f"write `{name}` before `to_nchw`")
    if value.layout != "NHWC":
        what = f"{name} takes images; it gets a value that is {value}"
        raise ProcessingError(what, "begin with `- image: {}`, which declares an image")
    if dtypes and value.dtype not in dtypes:
        what = f"{name} takes {' or '.join(dtypes)}; it gets {value}"
        raise ProcessingError(
            what, f"write `{name}` before `rescale`, or `- cast: {{dtype: uint8}}`"
        )
    return value


def _resized(value: ValueType, height: int | None, width: int | None, least: int) -> ValueType:
    assert value.shape is not None
    shape = (value.shape[0], height, width, value.shape[3])
    return replace(value, shape=shape, least=least)


def _check_resize(values: Sequence[ValueType], options: ResizeOptions) -> tuple[ValueType, ...]:
    value = _image(values[0], "resize", ("uint8",))
    if (options.size is None) == (options.shortest is None):
        what = "resize has both size and shortest" if options.size else "resize has no size"
        fix = "write `resize: {size: [224, 224]}` or `resize: {shortest: 256}`"
        raise ProcessingError(f"{what}; expected one of the two", fix)
    if options.size is not None:
        height, width = _size(options.size, "resize")
        return (_resized(value, height, width, min(height, width)),)
    assert options.shortest is not None
    return (_resized(value, None, None, options.shortest),)


def _check_letterbox(
    values: Sequence[ValueType], options: LetterboxOptions
) -> tuple[ValueType, ...]:
    value = _image(values[0], "letterbox", ("uint8",))
    height, width = _size(options.size, "letterbox")
    return (_resized(value, height, width, min(height, width)),)


def _check_center_crop(
    values: Sequence[ValueType], options: CenterCropOptions
) -> tuple[ValueType, ...]:
    value = _image(values[0], "center_crop")
    height, width = _size(options.size, "center_crop")
    return (_resized(value, height, width, min(height, width)),)


def _check_rescale(values: Sequence[ValueType], _: RescaleOptions) -> tuple[ValueType, ...]:
    return (replace(values[0], dtype="float32"),)


def _check_normalize(
    values: Sequence[ValueType], options: NormalizeOptions
) -> tuple[ValueType, ...]:
    (value,) = values
    if not value.is_float:
        what = f"normalize takes floats; it gets {value}"
        raise ProcessingError(
            what, "write `- rescale: {}` before it, or `- cast: {dtype: float32}`"
        )
    channels = _channels(value)
    for key, given in (("mean", options.mean), ("std", options.std)):
        if len(given) != 1 and (channels is None or len(given) != channels):
            expected = f"1 or {channels}" if channels not in {None, 1} else "1"
            what = f"normalize has {len(given)} values as {key}, for {value}; expected {expected}"
            raise ProcessingError(what, "write one value, or one for each channel")
    if 0 in options.std:
        raise ProcessingError("normalize has a std of 0", "write what values are divided by")
    return (value,)


def _channels(value: ValueType) -> int | None:
    if not value.layout or value.shape is None:
        return None
    size = value.shape[-1 if value.layout == "NHWC" else 1]
    return size if isinstance(size, int) else None


def _check_to_nchw(values: Sequence[ValueType], _: object) -> tuple[ValueType, ...]:
    value = _image(values[0], "to_nchw")
    assert value.shape is not None
    batch, height, width, channels = value.shape
    return (replace(value, shape=(batch, channels, height, width), layout="NCHW"),)


def _check_log_mel(values: Sequence[ValueType], options: LogMelOptions) -> tuple[ValueType, ...]:
    value = values[0]
    if (
        value.dtype != "float32"
        or value.layout
        or value.shape is None
        or len(value.shape) != _PAIR
    ):
        what = f"log_mel takes float32 samples, (batch, samples); it gets {value}"
        raise ProcessingError(what, "begin with `- audio: {}`, which declares them")
    needed = options.n_fft // 2 + 1 if options.center else options.n_fft
    if value.least < needed:
        what = f"log_mel needs {needed} samples; audio has min_size {value.least}"
        raise ProcessingError(what, f"write `audio: {{min_size: {needed}}}`")
    if options.floor == 0 or options.low >= (options.high or options.sample_rate / 2):
        what = "log_mel has a floor of 0" if options.floor == 0 else "log_mel has low above high"
        raise ProcessingError(
            what, "write `floor: 1.0e-10`" if options.floor == 0 else "write less as `low`"
        )
    return (ValueType("float32", (value.shape[0], options.mels, None)),)


def _check_cast(values: Sequence[ValueType], options: CastOptions) -> tuple[ValueType, ...]:
    return (replace(values[0], dtype=options.dtype),)


def _floats(value: ValueType, name: str, *, rank: int = 1) -> ValueType:
    if value.dtype == "bfloat16":
        what = f"{name} takes float16, float32 or float64; it gets {value}"
        raise ProcessingError(what, "let the model give float32")
    if not value.is_float:
        what = f"{name} takes floats; it gets {value}"
        raise ProcessingError(what, "name another value with `of`")
    if value.shape is not None and len(value.shape) < rank:
        what = f"{name} takes at least {rank} axes; it gets {value}"
        raise ProcessingError(what, "name another value with `of`")
    return value


def _check_scores(name: str) -> Check:
    def check(values: Sequence[ValueType], _: object) -> tuple[ValueType, ...]:
        value = _floats(values[0], name)
        return (replace(value, dtype=value.dtype or "float", layout=""),)

    return check


def _last(value: ValueType) -> int | None:
    size = value.shape[-1] if value.shape else None
    return size if isinstance(size, int) else None


def _check_argmax(values: Sequence[ValueType], _: object) -> tuple[ValueType, ...]:
    value = _floats(values[0], "argmax")
    shape = None if value.shape is None else value.shape[:-1]
    return (ValueType("int64", shape, classes=_last(value)),)


def _check_top_k(values: Sequence[ValueType], options: TopKOptions) -> tuple[ValueType, ...]:
    value = _floats(values[0], "top_k")
    size = _last(value)
    if size is not None and options.k > size:
        what = f"top_k asks for {options.k} of {size} values, of {value}"
        raise ProcessingError(what, f"write `k: {size}`, or less")
    if options.to == options.scores:
        raise ProcessingError(f"top_k gives both results the name '{options.to}'", "rename one")
    shape = None if value.shape is None else (*value.shape[:-1], options.k)
    return ValueType("int64", shape, classes=size), ValueType(value.dtype, shape)


def _check_threshold(values: Sequence[ValueType], _: ThresholdOptions) -> tuple[ValueType, ...]:
    value = _floats(values[0], "threshold")
    return (ValueType("bool", value.shape, classes=2),)


def _check_labels(values: Sequence[ValueType], _: LabelsOptions) -> tuple[ValueType, ...]:
    (value,) = values
    if value.dtype not in {"", "int64", "int32", "bool"}:
        what = f"labels takes places, which are integers; it gets {value}"
        raise ProcessingError(what, "write `- argmax: {}` or `- top_k: {k: 5}` before it")
    return (ValueType("string", value.shape),)


def check_label_count(value: ValueType, count: int, file: str) -> None:
    """Check that there is a label for each class.

    Raises:
        ProcessingError: There are more or fewer.
    """
    if value.classes is not None and count != value.classes:
        what = f"{file} has {count} labels, for {value.classes} classes"
        fix = f"write {value.classes} lines, one for each class, in the model's order"
        raise ProcessingError(what, fix)


def _check_pool(values: Sequence[ValueType], options: PoolOptions) -> tuple[ValueType, ...]:
    value = _floats(values[0], "pool", rank=3)
    if options.mode == "cls" and options.mask:
        raise ProcessingError("pool of mode cls takes no mask", "remove `mask`")
    if len(values) > 1:
        mask = values[1]
        if mask.shape is not None and len(mask.shape) != 2:  # noqa: PLR2004 - batch and sequence
            what = f"pool takes a mask of two axes, batch and sequence; '{options.mask}' is {mask}"
            raise ProcessingError(what, "name an attention mask")
    shape = None if value.shape is None else (value.shape[0], *value.shape[2:])
    return (ValueType(value.dtype, shape),)


def _check_nms(values: Sequence[ValueType], _: NmsOptions) -> tuple[ValueType, ...]:
    for value in values:
        _floats(value, "nms", rank=3)
    boxes = values[0]
    if boxes.shape is not None and boxes.shape[-1] not in {4, None}:
        what = f"nms takes boxes of 4 numbers along the last axis; it gets {boxes}"
        raise ProcessingError(what, "name another value as `boxes`")
    return (ValueType("int64", (None, 3)),)


CHECKS: Mapping[str, Check] = {
    "resize": _check_resize,
    "letterbox": _check_letterbox,
    "center_crop": _check_center_crop,
    "rescale": _check_rescale,
    "normalize": _check_normalize,
    "to_nchw": _check_to_nchw,
    "cast": _check_cast,
    "log_mel": _check_log_mel,
    "softmax": _check_scores("softmax"),
    "sigmoid": _check_scores("sigmoid"),
    "argmax": _check_argmax,
    "top_k": _check_top_k,
    "threshold": _check_threshold,
    "labels": _check_labels,
    "pool": _check_pool,
    "l2_normalize": _check_scores("l2_normalize"),
    "nms": _check_nms,
}
"""Operation -> (types of what it takes, its options) -> types of what it gives; `model` says so itself."""
