"""A recipe after parsing: plain values, each with the line it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Precision = Literal["fp32", "fp16", "int8", "int4"]
Mode = Literal["none", "fp16", "dynamic", "static", "weight_only", "auto"]

PRECISION_OF_MODE: Mapping[str, Precision] = {
    "none": "fp32",
    "fp16": "fp16",
    "dynamic": "int8",
    "static": "int8",
    "weight_only": "int4",
    "auto": "int8",
}

_BYTE_BITS = 8

DTYPES = (
    "float32", "float16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool",
)  # fmt: skip

OPSET_MIN, OPSET_MAX = 11, 23

PROVIDERS: Mapping[str, str] = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "directml": "DmlExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
    "rocm": "ROCMExecutionProvider",
    "migraphx": "MIGraphXExecutionProvider",
    "qnn": "QNNExecutionProvider",
    "webgpu": "WebGpuExecutionProvider",
    "xnnpack": "XnnpackExecutionProvider",
    "dnnl": "DnnlExecutionProvider",
}


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a recipe file; 1-based, or line 0 for what is no file (`--set opset`)."""

    path: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}" if self.line else self.path


FILE_DATA, DUMMY_DATA = "files", "dummy"
"""Targets of an Entrypoint that is no callable: its `files` are the data; the dummy inputs are."""


@dataclass(frozen=True, slots=True)
class Entrypoint:
    """A user's callable and what it may use.

    Attributes:
        target: FILE_DATA or DUMMY_DATA where the recipe takes data without a callable; else
            `FILE.py:CALLABLE` (POSIX path relative to the project's root, or below a folder
            of `outside`) or `package.module:CALLABLE`.
        args: Keyword arguments, JSON values.
        files: Declared data files, POSIX paths relative to the project's root (below a folder of
            `outside` when they lie outside of it), globs expanded, sorted.
        env: Environment variables it may see: name -> value.
        roots: Folders put on its import path, relative to the project's root or folders of
            `outside`, nearest first.
        outside: Name of a folder outside the project (see core.places) -> where it lies on this
            machine, absolute; in no key.
    """

    target: str
    args: Mapping[str, object] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    roots: tuple[str, ...] = ()
    outside: Mapping[str, str] = field(default_factory=dict, metadata={"local": True})


@dataclass(frozen=True, slots=True)
class DummyInput:
    """One input of the model's forward.

    Attributes:
        name: forward's parameter and the ONNX graph's input.
        dtype: One of DTYPES.
        shape: Ints (fixed) and symbols (dynamic axes), outermost first.
        low: Least random value; floats default to a standard normal when `high` is None too.
        high: Integers: one past the greatest; floats: the upper bound.
        fill: A constant instead of random values.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    low: float | int | None = None
    high: float | int | None = None
    fill: float | int | bool | None = None


@dataclass(frozen=True, slots=True)
class Axis:
    """A dynamic axis's range; sizes count elements along it."""

    name: str
    min: int
    max: int
    example: int


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to ship the model.

    Attributes:
        name: Folder name below out/<recipe>/.
        mode: How weights and activations are stored.
        options: The mode's options dataclass (the options type of the mode's step kind), or None.
        sections: Per-variant overrides of recipe sections: section name -> options dataclass.
        location: Where the recipe declares it.
    """

    name: str
    mode: Mode
    options: object
    sections: Mapping[str, object]
    location: Location

    @property
    def precision(self) -> Precision:
        """What tolerances it is judged by."""
        if self.mode == "weight_only" and getattr(self.options, "bits", None) == _BYTE_BITS:
            return "int8"
        return PRECISION_OF_MODE[self.mode]


ONNX = "onnx"
"""The format whose variants `quantization` names; all others are Formats."""


@dataclass(frozen=True, slots=True)
class Format:
    """One way to ship the fp32 model beside ONNX.

    Attributes:
        name: A key of catalog.KIND_OF_FORMAT; folder name below out/<recipe>/.
        options: The options dataclass of the format's step kind.
        tolerances: Its own tolerances (VariantTolerances), or None for those of fp32.
        location: Where the recipe asks for it.
    """

    name: str
    options: object
    tolerances: object
    location: Location


@dataclass(frozen=True, slots=True)
class Recipe:
    """One model's build, validated, with all defaults filled in.

    Attributes:
        name: Unique within a run; `NAME@var=value,...` for a matrix combination.
        location: The file, its first line.
        model: The callable that returns the torch.nn.Module.
        inputs: In forward's order as written.
        outputs: Names for the flattened outputs; empty means output_0, output_1, ...
        axes: Every symbol used by a shape.
        opset: ONNX operator set version.
        variants: ONNX models, in the order written; none if `formats` leaves ONNX out.
        providers: Short provider names (keys of PROVIDERS), in order of preference.
        provider_options: Short provider name -> its options.
        sections: Options dataclasses by section name (export, reference, optimize, validate,
            benchmark, ...); one for every section that the catalog knows.
        entrypoints: The user's other callables: `samples`, `calibration`, `evaluation`, `metric`,
            `translations`; absent where the recipe names none.
        lines: Dotted key -> where the recipe writes it, for messages.
        formats: Those beside ONNX, in the order written.
    """

    name: str
    location: Location
    model: Entrypoint
    inputs: tuple[DummyInput, ...]
    outputs: tuple[str, ...]
    axes: tuple[Axis, ...]
    opset: int
    variants: tuple[Variant, ...]
    providers: tuple[str, ...]
    provider_options: Mapping[str, Mapping[str, str]]
    sections: Mapping[str, object]
    entrypoints: Mapping[str, Entrypoint]
    lines: Mapping[str, Location]
    formats: tuple[Format, ...] = ()
