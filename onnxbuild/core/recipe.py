"""A recipe after parsing: plain values, each with the line it came from."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Literal, TypeVar

from onnxbuild.core.axis import Axis, Dimension
from onnxbuild.core.entrypoint import DUMMY_DATA, FILE_DATA, NO_CODE, PIPELINE_DATA, Entrypoint
from onnxbuild.core.environment import Environment
from onnxbuild.core.state import Growth
from onnxbuild.core.target import Target, TargetGates

__all__ = [
    "DTYPES", "DUMMY_DATA", "FILE_DATA", "FROM", "FRONTEND", "INPUT_NAME", "NO_CODE", "ONNX", "OPSET_MAX", "OPSET_MIN", "PIPELINE_DATA",
    "Axis", "ConnectedInput", "DummyInput", "Entrypoint", "Fill", "Format", "Location", "Precision", "Recipe", "Variant",
]  # fmt: skip

Precision = str
"""The fewest bits of a variant, as tolerances are given by: `fp32`, `int8`."""

Fill = float | int | bool | str
T = TypeVar("T")

DTYPES = (
    "float32", "float16", "bfloat16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool",
    "string",
)  # fmt: skip

OPSET_MIN, OPSET_MAX = 11, 24

INPUT_NAME = r"^[A-Za-z_][A-Za-z0-9_]*([./][A-Za-z0-9_]+)*$"
"""Pattern of the names that an input may have."""


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a recipe file; 1-based, or line 0 for what is no file (`--set opset`)."""

    path: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}" if self.line else self.path


@dataclass(frozen=True, slots=True)
class DummyInput:
    """One input of the model's forward.

    Attributes:
        name: forward's parameter and the ONNX graph's input; may hold dots and slashes.
        dtype: One of DTYPES.
        shape: Ints (fixed), symbols (dynamic axes) and sums of both, outermost first.
        low: Least random value; floats default to a standard normal when `high` is None too.
        high: Integers: one past the greatest; floats: the upper bound.
        fill: A constant instead of random values; or one for each row of the first axis, again and
            again.
        mask: 1 up to a length along the last axis and 0 after it (`right` is padded), or the other
            way round (`left`); the first row is full, all others are shorter.
        missing: Floats: the share of random values that are NaN, for missing values; the user's data
            may hold NaN then. Left out of keys where it is 0.
        arange: Integers that count up along the last axis, the first of which is this size: positions.
        fed_by: The output that is this input of the next call; empty where it is no state.
        growth: How a state grows; None where it doesn't.
    """

    name: str
    dtype: str
    shape: tuple[Dimension, ...]
    low: float | int | None = None
    high: float | int | None = None
    fill: Fill | tuple[Fill, ...] | None = None
    mask: Literal["right", "left"] | None = None
    missing: float = field(default=0.0, metadata={"sparse": True})
    arange: Dimension | None = field(default=None, metadata={"sparse": True})
    fed_by: str = field(default="", metadata={"sparse": True})
    growth: Growth | None = field(default=None, metadata={"sparse": True})

    @property
    def in_place(self) -> bool:
        """Whether it is a state that one buffer may hold, bound in and out."""
        return self.growth is not None and self.growth.in_place


FROM = "from"
"""Key of an input that is another component's output."""


@dataclass(frozen=True, slots=True)
class ConnectedInput:
    """An input that is another component's output; no step that makes a model depends on it.

    Attributes:
        input: The input's name.
        component: Whose output it is.
        output: That output's name.
        location: Where the recipe says it.
    """

    input: str
    component: str
    output: str
    location: Location


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to ship the model.

    Attributes:
        name: Folder name below out/<recipe>/.
        mode: How weights and activations are stored: the name of the mode's feature.
        options: The mode's options dataclass, or None.
        sections: Per-variant overrides of recipe sections: section name -> options dataclass.
        location: Where the recipe declares it.
        precision: What tolerances it is judged by.
        tolerances: Those of its mode, for what neither it nor the recipe gives a bound.
        searches: It is found by trying others.
        search: Of a trial, the name of the variant that is searched for; else empty.
        trial: Of a trial, its name in that search; else empty.
    """

    name: str
    mode: str
    options: object
    sections: Mapping[str, object]
    location: Location
    precision: Precision
    tolerances: object
    searches: bool = False
    search: str = ""
    trial: str = ""

    def options_as(self, kind: type[T]) -> T:
        """Its mode's options.

        Raises:
            TypeError: They are of another type.
        """
        return _typed(kind, self.options)

    @property
    def option_names(self) -> tuple[str, ...]:
        """Names of the options that its mode has."""
        options = self.options
        return tuple(each.name for each in fields(options)) if is_dataclass(options) else ()

    def owner_of(self, section: str) -> str:
        """Its name, if it has options of its own of a section, which come before the recipe's; else empty."""
        return "" if self.sections.get(section) is None else self.name

    def section(self, name: str, kind: type[T]) -> T:
        """Its own of a section.

        Raises:
            KeyError: It has none.
            TypeError: It is of another type.
        """
        return _typed(kind, self.sections[name])


def _typed(kind: type[T], value: object) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"{type(value).__name__} is not {kind.__name__}")
    return value


FRONTEND = "pytorch"
"""The frontend of a recipe that names none."""

ONNX = "onnx"
"""The format whose variants `quantization` names; all others are Formats."""


@dataclass(frozen=True, slots=True)
class Format:
    """One format other than ONNX for the fp32 model.

    Attributes:
        name: A program format of the catalog; folder name below out/<recipe>/.
        options: The format's options dataclass.
        tolerances: Its own tolerances (VariantTolerances), or None for those of fp32.
        location: Where the recipe asks for it.
    """

    name: str
    options: object
    tolerances: object
    location: Location

    def options_as(self, kind: type[T]) -> T:
        """Its options.

        Raises:
            TypeError: They are of another type.
        """
        return _typed(kind, self.options)


@dataclass(frozen=True, slots=True)
class Recipe:
    """One model's build, validated, with all defaults filled in.

    Attributes:
        name: Unique within a run; `NAME@COMPONENT` for a component, `NAME@var=value,...` for a matrix combination.
        base: Its name without these, as its file has it.
        location: The file, its first line.
        model: The callable that returns the model, in the form that the frontend takes.
        inputs: In forward's order as written.
        outputs: Keys of what forward returns, or names by position where it has none; empty for
            all of them, under their keys or as output_0, output_1, ...
        axes: Every symbol used by a shape.
        opset: ONNX operator set version.
        variants: ONNX models, in the order written; none if `formats` leaves ONNX out.
        targets: Where it is to run, in order of preference.
        gates: Target's name -> what it must show; one for each.
        sections: Options dataclasses by section name (export, reference, ...), of all that the catalog knows.
        entrypoints: The user's other callables, such as `samples` and `metric`; absent where it names none.
        lines: Dotted key -> where the recipe writes it, for messages.
        formats: Formats other than ONNX, in the order written.
        frontend: What makes ONNX of the model: the name of a feature.
        environment: Where the model's framework is installed, if the recipe says it.
        description: For people; enters no key but those of what shows it.
        component: Which of its file's components it is; empty where the file has none.
        connections: Inputs that are outputs of other components.
        components: Of what is made of all components of a file, these; `model` is then the callable that runs them.
            Empty for a model.
    """

    name: str
    base: str
    location: Location
    model: Entrypoint
    inputs: tuple[DummyInput, ...]
    outputs: tuple[str, ...]
    axes: tuple[Axis, ...]
    opset: int
    variants: tuple[Variant, ...]
    targets: tuple[Target, ...]
    gates: Mapping[str, TargetGates]
    sections: Mapping[str, object]
    entrypoints: Mapping[str, Entrypoint]
    lines: Mapping[str, Location]
    formats: tuple[Format, ...] = ()
    frontend: str = FRONTEND
    environment: Environment | None = None
    description: str = ""
    component: str = ""
    connections: tuple[ConnectedInput, ...] = ()
    components: tuple[str, ...] = ()

    def section(self, name: str, kind: type[T]) -> T:
        """The options of a section.

        Raises:
            KeyError: No feature brings such a section.
            TypeError: They are of another type.
        """
        return _typed(kind, self.sections[name])
