"""The contenders of a benchmark: the baseline, PyTorch programs, and each variant as it is delivered."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.axis import Point
from onnxbuild.core.step import MODEL_FILE, StepContext
from onnxbuild.core.target import Target
from onnxbuild.onnxkit.benchmark.baseline import BaselineRunner, Original
from onnxbuild.onnxkit.benchmark.candidate import Bind, Contender
from onnxbuild.onnxkit.benchmark.options import takes
from onnxbuild.onnxkit.benchmark.runners import onnx_runtime, program, pytorch
from onnxbuild.onnxkit.model.inspect import dimensions
from onnxbuild.onnxkit.model.model_files import file_bytes, first_equals, load_model
from onnxbuild.onnxkit.programs.artifact_file import program_bytes
from onnxbuild.onnxkit.providers.open_on_target import library_of, usable
from onnxbuild.onnxkit.sessions.settings import SessionSettings, read_settings

COMPILED = "pytorch-compile"

MODEL = "model/"
"""Prefix of a variant's name among the step's inputs."""

_PROGRAM, _SESSION, _BOUND = "program/", "session/", "+io-binding"


@dataclass(frozen=True, slots=True)
class LineUp:
    """The models among a step's inputs, and how each is run.

    Attributes:
        context: The step's.
        target: Target that variants run on.
        threads: Threads of each runtime, if a variant's session sets none.
        sessions: Variant -> how its session runs it, where no input `session/VARIANT` says so;
            others run as ONNX Runtime has it.
        comparison_models: Names of models from elsewhere.
    """

    context: StepContext
    target: Target
    threads: int
    sessions: Mapping[str, SessionSettings]
    comparison_models: tuple[str, ...] = ()

    @property
    def variants(self) -> dict[str, Path]:
        """Variant -> its model's folder."""
        return inputs_named(self.context, MODEL)

    @property
    def programs(self) -> dict[str, Path]:
        """PyTorch program -> its folder."""
        return inputs_named(self.context, _PROGRAM)

    @property
    def fixed(self) -> dict[str, Mapping[str, int]]:
        """Program or variant -> the axes whose sizes it fixes."""
        fixed: dict[str, Mapping[str, int]] = {name: {} for name in self.programs}
        return fixed | {name: self.settings(name).free_dimensions for name in self.variants}

    @property
    def equals(self) -> dict[str, str]:
        """Variant -> the one before it that is the same model, run in the same way.

        A model from elsewhere never is: who measures a model against itself asks for the noise between the two.
        """
        own = {
            name: path
            for name, path in self.variants.items()
            if name not in self.comparison_models
        }
        return first_equals(own, {name: self.settings(name) for name in own})

    @property
    def spins(self) -> bool:
        """Whether threads of any variant's session go on spinning after a run."""
        return any(self.settings(name).spins for name in self.variants)

    def settings(self, variant: str, threads: int | None = None) -> SessionSettings:
        """Return a variant's session settings: those that it is delivered with.

        Args:
            threads: Threads to use if its session sets none; None for this line-up's.
        """
        threads = self.threads if threads is None else threads
        if f"{_SESSION}{variant}" in self.context.input_names:
            tuned = read_settings(self.context.input(f"{_SESSION}{variant}"))
            return tuned.threaded(threads)
        return self.sessions.get(variant, SessionSettings()).threaded(threads)

    def contenders(
        self,
        original: Original,
        baseline: BaselineRunner | None,
        *,
        compiled: bool,
        io_binding: bool,
    ) -> list[Contender]:
        """Return all contenders: baseline, PyTorch programs and variants.

        Args:
            baseline: Runner of the model as its user runs it; None for no baseline.
            compiled: Whether PyTorch takes part with torch.compile, too.
            io_binding: Whether each variant takes part twice, once with its inputs and outputs bound.
        """
        context, threads, equals = self.context, self.threads, self.equals
        found = []
        if baseline is not None:
            found.append(Contender(baseline.name, baseline.opener(original)))
        if compiled:
            module, inputs = original.model, original.inputs
            opener = pytorch(context, module, inputs, threads=threads, compiled=True)
            found.append(Contender(COMPILED, opener))
        for name, folder in self.programs.items():
            found.append(Contender(name, self.program_opener(folder), program_bytes(folder)))
        for name, folder in self.variants.items():
            size, settings, same_as = file_bytes(folder), self.settings(name), equals.get(name, "")
            found.append(Contender(name, self.opener(folder, settings), size, same_as))
            if io_binding:
                bound = self.opener(folder, settings, io_binding=True)
                same_as = f"{same_as}{_BOUND}" if same_as else ""
                found.append(Contender(f"{name}{_BOUND}", bound, size, same_as))
        return found

    def opener(
        self, folder: Path, settings: SessionSettings, *, io_binding: bool = False
    ) -> Callable[[], Bind]:
        """Return a function that opens a model on the target."""
        return onnx_runtime(
            folder,
            target=usable(self.context, self.target),
            library=library_of(self.context, self.target),
            settings=settings,
            where=self.context.where,
            io_binding=io_binding,
        )

    def program_opener(self, folder: Path) -> Callable[[], Bind]:
        """Open a PyTorch program."""
        return program(folder, threads=self.threads, where=self.context.where)

    def at(self, point: Point) -> dict[str, Path]:
        """The variants whose sessions take a point's sizes."""
        return {
            name: folder
            for name, folder in self.variants.items()
            if takes(self.settings(name).free_dimensions, point)
        }

    def rows_made(self, point: Point) -> list[int]:
        """Sizes along the first axis of the outputs at a point, as the first ONNX model declares them.

        Args:
            point: Sizes of the axes.

        Returns: Empty where an output's first size is not declared, or there is no such model.
        """
        own = (path for path in self.variants.values() if (path / MODEL_FILE).is_file())
        folder = next(own, None)
        if folder is None:
            return []
        graph = load_model(folder, weights="left").graph
        shapes = [dimensions(value) for value in graph.output]
        firsts = [each[0] for each in shapes if each]
        rows = [point.sizes.get(each, 0) if isinstance(each, str) else each for each in firsts]
        return rows if None not in shapes and all(rows) else []


def inputs_named(context: StepContext, prefix: str) -> dict[str, Path]:
    """Name without the prefix -> folder, of the inputs that have it."""
    return {
        name.removeprefix(prefix): context.input(name)
        for name in context.input_names
        if name.startswith(prefix)
    }


def variant_of(contender: str) -> str:
    """Return the variant whose model a contender runs; the contender's own name for the baseline and for programs."""
    return contender.removesuffix(_BOUND)
