"""A step kind: what it takes, what it makes, and the function that does it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from onnxbuild.core.recipe import Entrypoint

MODEL_FILE = "model.onnx"
ORT_FILE = "model.ort"
REPORT_FILE = "report.json"
MANIFEST_FILE, SUMS_FILE = "manifest.json", "SHA256SUMS"
"""Files of a bundle, and of most packages."""

COMPILER = "c++"
"""Among a kind's `toolchain`: the C++ compiler that it runs, which is no distribution."""

GPU = "gpu"
"""Among a kind's `toolchain`: what TensorRT's engines are for: GPU model, driver, TensorRT."""

DEVICES = "<devices>"
"""Among the packages that user code was seen to use: the accelerators' devices and libraries."""

PACKAGES = "<installed packages>"
"""Among them: the names and versions of all packages, for code that lists them."""

START_UP = "<start-up files>"
"""Among them: the code that `.pth` files have the interpreter run when it starts."""

ENTRY_POINTS, COPIED, PARTS = "<entry points ", "<copied ", "<parts of "
"""Begin such names, which end in `>`: the entry points of a group; a module in a site folder that
no package lists; what a namespace package holds, for code that lists it."""

PLUGIN = "<plug-in "
"""Begins such a name, too: the content of all files of a plug-in's code."""

HEADERS, CXX_HEADER = "<onnxruntime headers>", "onnxruntime_cxx_api.h"
"""Among a kind's `toolchain`: ONNX Runtime's C++ headers, which its wheels lack; the one that programs include."""

PROGRAM = "<program "
"""Begins such a name, which ends in `>`: the content of a program that steps find on their PATH."""

OPTIONAL = "?"
"""Ends a name in `toolchain` whose absence is no error: it enters the key as NOT_INSTALLED."""

COMPILERS = ("g++", "clang++")
"""Programs that are one, in the order in which steps look for them on their PATH."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One breach of a gate.

    Attributes:
        what: The value found and the bound.
        where: Variant, output, point or node.
        fix: What to try.
    """

    what: str
    where: str = ""
    fix: str = ""


DETAILS = "details"
"""Key in a step's metrics: sentences that `run --verbose` prints below its line."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Results of a step other than its output files.

    Attributes:
        metrics: Finite JSON values for tables and manifests, units in the names.
        findings: Breaches of gates; any makes the run fail with exit code 3.
        notes: One-line remarks that a user should see (never timings).
        not_applicable: Why there are no outputs: what NotApplicableError said.
    """

    metrics: Mapping[str, object] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    not_applicable: Finding | None = None


class StepContext(Protocol):
    """Interface of a running step to everything that it may touch."""

    params: Any
    where: str
    """`recipe:step`, for messages."""

    @property
    def memory_bytes(self) -> int:
        """Resident memory that the step's process may take: beyond it, it is stopped."""
        ...

    @property
    def scratch(self) -> Path:
        """An empty folder of its own; gone after the step."""
        ...

    def input(self, name: str) -> Path:
        """The folder that holds the input artifact's files (read-only).

        Raises:
            KeyError: The step declares no such input.
        """
        ...

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of all inputs of this step, in order."""
        ...

    def output(self, name: str) -> Path:
        """The folder to write the output artifact's files into; made when asked for."""
        ...

    def load(self, entrypoint: Entrypoint) -> Callable[..., Any]:
        """Import the user's callable, its arguments not yet applied.

        Raises:
            StepError: File, module or attribute is missing, raises on import, or can't be called.
        """
        ...

    def code(self, entrypoint: Entrypoint) -> tuple[str, list[str]]:
        """Return where a callable is defined, for an interpreter that is to import it.

        Returns: Its file, absolute, or its module with dots; the folders of the import path, absolute.
        """
        ...

    def place(self, name: str) -> Path | None:
        """Return the folder of a member of the kind's toolchain, such as HEADERS; None if it is not there."""
        ...

    def files(self, entrypoint: Entrypoint) -> tuple[tuple[str, Path], ...]:
        """(name as the recipe's project knows it, where it is) of the files that it declares."""
        ...

    def progress(self, done: float, total: float = 0, unit: str = "", note: str = "") -> None:
        """Report `done` of `total` (0: unknown), for the display alone; may be called very often."""
        ...


@dataclass(frozen=True, slots=True)
class StepKind:
    """One kind of step.

    Attributes:
        name: As in the graph, `why` and keys.
        version: Raised whenever run's output for equal inputs changes.
        params: Frozen dataclass, all that steers run; part of the key.
        inputs: Names of input artifacts; a trailing `*` takes any number (`model/*`), a trailing
            `?` may be absent.
        outputs: name -> artifact kind.
        toolchain: Distributions (and COMPILER, GPU, HEADERS, PROGRAM) whose bytes can change the output;
            one that it can do without ends in OPTIONAL.
        run: (context) -> Outcome; imports frameworks inside.
        host_bound: The output depends on the CPU or the device.
        any_host: params -> whether the result of any machine will do nevertheless.
        driver_bound: It depends on which drivers and libraries of accelerators are there, too.
        exclusive: Runs alone, for honest measurements.
        measures: The output holds times: no two runs give the same bytes.
        differs: Why two runs may give other bytes nevertheless, as a clause; empty where they give the same.
        user_code: Runs the user's Python, so that what it imports and opens is observed.
        entrypoints: params -> the entrypoints it uses (declared files and env enter the key).
    """

    name: str
    version: int
    params: type
    inputs: tuple[str, ...]
    outputs: Mapping[str, str]
    toolchain: tuple[str, ...]
    run: Callable[[StepContext], Outcome]
    host_bound: bool = False
    any_host: Callable[[Any], bool] = lambda params: False  # noqa: ARG005
    driver_bound: bool = False
    exclusive: bool = False
    measures: bool = False
    differs: str = ""
    user_code: bool = False
    entrypoints: Callable[[Any], tuple[Entrypoint, ...]] = lambda params: ()  # noqa: ARG005
