"""Run the model that variants are judged by at several points, in its own framework; keep inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from onnxbuild.core.axis import example_sizes
from onnxbuild.core.environment import Environment
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.accuracy.rounding import (
    add_rounding_noise,
    measured_rounding,
    rounding_at,
    rounding_noise,
    with_reordered,
)
from onnxbuild.onnxkit.converters import frameworks
from onnxbuild.onnxkit.converters.run_there import computed_there
from onnxbuild.onnxkit.data.feed_checks import refuse_nan
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.recorded_calls import OPTIONAL_CALLS
from onnxbuild.onnxkit.data.reference_feeds import (
    SAMPLE,
    FittingPoints,
    ReferenceOptions,
    reference_feeds,
    write_unusual,
)
from onnxbuild.onnxkit.data.reference_files import MovedRows, ReferencePoint, ReferenceWriter
from onnxbuild.onnxkit.estimators.boosters import with_categories
from onnxbuild.onnxkit.estimators.made import LIGHTGBM, SKLEARN, XGBOOST, make_estimator
from onnxbuild.onnxkit.estimators.outputs import compute, named_outputs
from onnxbuild.onnxkit.estimators.thresholds import rows_on_threshold
from onnxbuild.onnxkit.export.torch_module import (
    ModuleRun,
    check_signature,
    load_module,
    make_torch_deterministic,
    run_module,
)
from onnxbuild.onnxkit.export.user_settings import (
    has_fast_path,
    padded_feeds,
    refuse_other_settings,
)
from onnxbuild.onnxkit.frameworks import np, onnxruntime
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.model.inspect import dtype_name, held_bytes
from onnxbuild.onnxkit.model.model_files import load_model, save_graph
from onnxbuild.onnxkit.modules.module_facts import imagined_bytes
from onnxbuild.onnxkit.modules.module_outputs import OutputError
from onnxbuild.onnxkit.ready_onnx.original_model import in_types_of, load_original, outputs_of_file
from onnxbuild.onnxkit.ready_onnx.probes import AS_WRITTEN
from onnxbuild.onnxkit.sessions.element_types import load_typed, without_weights
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session
from onnxbuild.onnxkit.sessions.settings import SessionSettings

if TYPE_CHECKING:
    Outputs = dict[str, np.ndarray]


Points = Iterable[tuple[str, Mapping[str, int], Feeds]]
"""(Name, sizes, feeds) of each point."""


@dataclass(frozen=True, slots=True)
class ReferenceParams:
    """Parameters of a run of the recipe's own module.

    Attributes:
        model: The callable, or the model's files.
        inputs: What the recipe declares.
        outputs: Names in order; empty takes all that the model has.
        axes: As the variant takes them.
        samples: A callable of real samples; None for none.
        options: Seed, points, number of samples.
    """

    model: Entrypoint
    inputs: tuple[DummyInput, ...]
    outputs: tuple[str, ...]
    axes: tuple[Axis, ...]
    samples: Entrypoint | None
    options: ReferenceOptions


@dataclass(frozen=True, slots=True)
class OnnxReferenceParams:
    """Parameters of a run of an imported model."""

    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]
    samples: Entrypoint | None
    options: ReferenceOptions


@dataclass(frozen=True, slots=True)
class OriginalReferenceParams:
    """Parameters of a run of what an imported model was made of: `original` is the callable that returns it."""

    original: Entrypoint
    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]
    samples: Entrypoint | None
    options: ReferenceOptions


@dataclass(frozen=True, slots=True)
class FrameworkReferenceParams:
    """Parameters of a run in a framework's own environment.

    Attributes:
        environment: Where the framework is installed.
        rename: The model's names of inputs and outputs -> the recipe's.
    """

    model: Entrypoint
    environment: Environment
    inputs: tuple[DummyInput, ...]
    outputs: tuple[str, ...]
    axes: tuple[Axis, ...]
    samples: Entrypoint | None
    options: ReferenceOptions
    rename: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class EstimatorReferenceParams:
    """Parameters of a run of an estimator; `options` are three fields here.

    Attributes:
        frontend: `sklearn`, `xgboost` or `lightgbm`.
    """

    frontend: str
    model: Entrypoint
    inputs: tuple[DummyInput, ...]
    outputs: tuple[str, ...]
    axes: tuple[Axis, ...]
    samples: Entrypoint | None
    points: tuple[dict[str, int], ...]
    seed: int
    max_samples: int

    @property
    def options(self) -> ReferenceOptions:
        """Seed, points, number of samples."""
        return ReferenceOptions(self.seed, self.points, self.max_samples)


_OPTIMIZED = SessionSettings().judged()


class Runner:
    """Runs a model in its framework."""

    whose = "model"
    """Name of what computes, for messages."""

    fitting: FittingPoints | None = None
    """Makes points smaller where the model's values would not fit into memory."""

    has_unusual = True
    """The model is also run on rows of extreme values."""

    def __init__(self, context: StepContext) -> None:
        self.context = context
        self.params: Any = context.params
        self.where = context.where
        self.notes: list[str] = []

    def compute(self, feeds: Feeds) -> Outputs:
        """Run the model.

        Raises:
            StepError: It fails.
        """
        raise NotImplementedError

    def at(self, point: str, sizes: Mapping[str, int], feeds: Feeds) -> Outputs:
        """Run the model at a point, which errors name."""
        del point, sizes
        return self.compute(feeds)

    def feeds_at(self, point: str, feeds: Feeds) -> Feeds:
        """The feeds of a point, made fit for the model."""
        del point
        return feeds

    def run_points(self, points: Points) -> Iterator[tuple[ReferencePoint, Outputs]]:
        """Yield each point without its outputs, and these."""
        for name, sizes, drawn in points:
            feeds = self.feeds_at(name, drawn)
            yield ReferencePoint(name, sizes, feeds, {}), self.at(name, sizes, feeds)

    def rounding(self, feeds: Feeds) -> dict[str, float]:
        """Measure how far rounding alone moves each output, as a share of its largest value; empty if it is not known."""
        del feeds
        return {}

    def rounding_at(self, shares: Mapping[str, float], outputs: Outputs) -> dict[str, float]:
        """Return how far rounding moves the outputs of extreme rows."""
        return rounding_at(shares, outputs)

    def reordered(self, feeds: Feeds) -> Outputs | None:
        """Compute a point in another order of sums; None where that is not known."""
        del feeds
        return None

    def moved(self, feeds: Feeds) -> MovedRows | None:
        """Find rows on a threshold; None for a model that has none."""
        del feeds
        return None

    def see(self, point: ReferencePoint, *, first: bool) -> None:
        """Check or note what a point shows."""

    def metrics(self) -> dict[str, int]:
        """Counts besides those of points and samples."""
        return {}

    def said(self, writer: ReferenceWriter) -> tuple[str, ...]:
        """Return all notes."""
        fitting = () if self.fitting is None else self.fitting.notes
        return (*self.notes, *fitting, *writer.notes())


def _write(runner: Runner) -> Outcome:
    """Write points.json and one .npz a point: what a model itself computes."""
    context, params, options = runner.context, runner.params, runner.params.options
    folder = context.output("reference")
    writer = ReferenceWriter(folder)
    points = reference_feeds(
        context,
        params.inputs,
        params.axes,
        points=options.points,
        seed=options.seed,
        samples=params.samples,
        max_samples=options.max_samples,
        fitting=runner.fitting,
    )
    shares: dict[str, float] = {}
    samples = 0
    for at, outputs in runner.run_points(points):
        refuse_nan(outputs, at.name, context.where, whose=runner.whose)
        first = not writer.count
        shares = runner.rounding(at.feeds) if first else shares
        moved = runner.moved(at.feeds)
        rows = None if moved is None else moved.mask(len(next(iter(at.feeds.values()))))
        reordered = runner.reordered(at.feeds) if shares else None
        seen = shares if reordered is None else with_reordered(shares, outputs, reordered)
        point = ReferencePoint(
            at.name, at.sizes, at.feeds, outputs, rows, rounding_at(seen, outputs), moved
        )
        runner.see(point, first=first)
        writer.add(point)
        samples += at.name.startswith(SAMPLE)
    if runner.has_unusual:
        write_unusual(
            folder,
            params.inputs,
            example_sizes(params.axes),
            runner.compute,
            moved=runner.moved,
            rounding=partial(runner.rounding_at, shares),
        )
    metrics = {"points": writer.finish(), "samples": samples, **runner.metrics()}
    return Outcome(metrics, notes=runner.said(writer))


def _measured(
    run: Callable[[Feeds, int], Mapping[str, np.ndarray]], feeds: Feeds
) -> dict[str, float]:
    """The rounding of a model; empty where it does not run with noise."""
    phase("measuring what rounding does to it")
    try:
        return measured_rounding(run, feeds)
    except StepError:
        return {}


def _with_noise(
    run: Callable[[Feeds], Outputs],
) -> Callable[[Feeds, int], Mapping[str, np.ndarray]]:
    """A run of PyTorch's in which every value is moved by its last bit; of seed 0 by nothing."""

    def noisy(feeds: Feeds, seed: int) -> Mapping[str, np.ndarray]:
        with rounding_noise(seed) if seed else nullcontext():
            return run(feeds)

    return noisy


class _ModuleRunner(Runner):
    """A PyTorch module; it is also run under the user's own settings."""

    whose = "PyTorch model"

    def __init__(self, context: StepContext) -> None:
        super().__init__(context)
        self._settings = make_torch_deterministic()
        self._module = load_module(context, self.params.model)
        inputs = self.params.inputs
        check_signature(self._module, inputs, self.where)
        self._by_position = False
        self.fitting = FittingPoints(
            inputs, self.params.axes, partial(imagined_bytes, self._module, inputs)
        )

    def _run(self, feeds: Feeds) -> ModuleRun:
        return run_module(
            self._module, feeds, self.where, self.params.outputs, inputs=self.params.inputs
        )

    def compute(self, feeds: Feeds) -> Outputs:
        return self._run(feeds).outputs

    def at(self, point: str, sizes: Mapping[str, int], feeds: Feeds) -> Outputs:
        from onnxbuild.onnxkit.export.forward_faults import explain_failure

        try:
            found = self._run(feeds)
        except OutputError:
            raise
        except StepError as error:
            shown = ", ".join(f"{axis}={size}" for axis, size in sizes.items()) or "fixed shapes"
            other = [f"'{a.name}'" for a in self.params.axes if sizes[a.name] != a.example]
            narrow = f"narrow {' and '.join(other)} in `dynamic_axes` to what the model takes"
            explained = explain_failure(
                error, self._module, feeds, self.params.inputs, otherwise=narrow if other else ""
            )
            what = f"PyTorch fails at point '{point}' ({shown}): {error.what}"
            raise StepError(what, where=error.where, fix=explained.fix) from error
        self._by_position = found.by_position
        return found.outputs

    def rounding(self, feeds: Feeds) -> dict[str, float]:
        return _measured(_with_noise(self.compute), feeds)

    def see(self, point: ReferencePoint, *, first: bool) -> None:
        self._refuse_other_settings(point, first=first)
        if self._by_position and first and len(self.params.outputs) > 1:
            shown = (
                f"{n} is {each.dtype} {list(each.shape)}" for n, each in point.outputs.items()
            )
            self.notes.append(
                f"outputs go by position, as forward returns a tuple: {', '.join(shown)}"
            )
        infinite = ", ".join(
            f"'{name}'"
            for name, array in point.outputs.items()
            if array.dtype.kind == "f" and bool(np.isinf(array).any())
        )
        if infinite:
            self.notes.append(f"PyTorch's {infinite} holds infinities at point '{point.name}'")

    def _refuse_other_settings(self, point: ReferencePoint, *, first: bool) -> None:
        """Compare with a run under the user's settings: at the first point, at all where an encoder has a fast path."""
        inputs, fast = self.params.inputs, has_fast_path(self._module)
        tried = [(point.name, point.feeds)] if first or fast else []
        if first and fast:
            tried += [(f"{point.name}, padded", e) for e in padded_feeds(inputs, point.feeds)]
        for shown, feeds in tried:
            try:
                ours = self.compute(feeds)
            except StepError:
                continue  # `at` reports it, unless it is about padding
            refuse_other_settings(
                self._module, feeds, ours, self._settings, self.where, inputs=inputs, shown=shown
            )


class _OnnxRunner(Runner):
    """A model that is ONNX already, as it is, in ONNX Runtime without optimizations."""

    def __init__(self, context: StepContext) -> None:
        super().__init__(context)
        self._folder = context.input("model")
        self._session = open_session(self._folder, settings=AS_WRITTEN, where=self.where)
        self.fitting = FittingPoints(self.params.inputs, self.params.axes, self._held)

    def _held(self, sizes: Mapping[str, int]) -> int | None:
        model = without_weights(load_model(self._folder, weights="left"))
        return held_bytes(model, self.params.inputs, sizes)

    def compute(self, feeds: Feeds) -> Outputs:
        return run_session(self._session, feeds, self.where)

    def at(self, point: str, sizes: Mapping[str, int], feeds: Feeds) -> Outputs:
        del sizes
        return run_session(self._session, feeds, f"{self.where}, point '{point}'")

    @cached_property
    def _optimized(self) -> onnxruntime.InferenceSession | None:
        """The model with ONNX Runtime's optimizations, which round in another order; None where they fail."""
        try:
            return open_session(self._folder, settings=_OPTIMIZED, where=self.where)
        except StepError:
            return None

    def reordered(self, feeds: Feeds) -> Outputs | None:
        if self._optimized is None:
            return None
        try:
            return run_session(self._optimized, feeds, self.where)
        except StepError:  # a fault of its optimizations, which a recipe may switch off
            return None

    def rounding(self, feeds: Feeds) -> dict[str, float]:
        model = load_typed(self._folder, weights="mapped")
        if not add_rounding_noise(model):
            return {}
        folder = save_graph(model, self.context.scratch / "noise").parent
        try:
            noisy = open_session(folder, settings=AS_WRITTEN, where=self.where)
        except StepError:
            return {}
        return _measured(
            lambda moved, seed: run_session(noisy if seed else self._session, moved, self.where),
            feeds,
        )


class _OriginalRunner(Runner):
    """The original of a ready ONNX model, under that model's names of outputs, in its types."""

    whose = "PyTorch model"

    def __init__(self, context: StepContext) -> None:
        super().__init__(context)
        make_torch_deterministic()
        graph = load_model(context.input("model"), weights="left").graph
        self._dtypes = {
            each.name: dtype_name(each.type.tensor_type.elem_type) for each in graph.output
        }
        self._predict = load_original(
            context,
            self.params.original,
            self.params.inputs,
            tuple(self._dtypes),
            outputs_of_file(context),
        )
        self._narrowed = set[str]()

    def compute(self, feeds: Feeds) -> Outputs:
        return in_types_of(self._predict(feeds), self._dtypes)[0]

    def at(self, point: str, sizes: Mapping[str, int], feeds: Feeds) -> Outputs:
        del sizes
        try:
            found = self._predict(feeds)
        except StepError as error:
            what = f"{self.params.original.target} fails at point '{point}': {error.what}"
            raise StepError(what, where=error.where, fix=error.fix) from error
        outputs, changed = in_types_of(found, self._dtypes)
        self._narrowed |= {f"'{each}' is {found[each].dtype} there" for each in changed}
        return outputs

    def rounding(self, feeds: Feeds) -> dict[str, float]:
        return _measured(_with_noise(self._predict), feeds)

    def rounding_at(self, shares: Mapping[str, float], outputs: Outputs) -> dict[str, float]:
        """Nothing: extreme rows are judged without it."""
        del shares, outputs
        return {}

    def said(self, writer: ReferenceWriter) -> tuple[str, ...]:
        del writer
        return tuple(
            f"output {each}, and was compared in the model's type"
            for each in sorted(self._narrowed)
        )


class _EstimatorRunner(Runner):
    """An estimator; notes which rows are on a threshold."""

    whose = "estimator"

    def __init__(self, context: StepContext) -> None:
        super().__init__(context)
        params = self.params
        self._estimator = make_estimator(context, params.model, params.frontend)
        found = named_outputs(self._estimator, params.outputs, self.where)
        every = {each.name: each for each in found}
        self._outputs = [every[name] for name in params.outputs or every]
        self._counts = {"rows": 0, "rows_on_threshold": 0}

    def compute(self, feeds: Feeds) -> Outputs:
        return compute(self._estimator, self._outputs, self.params.inputs, feeds, self.where)

    def feeds_at(self, point: str, feeds: Feeds) -> Feeds:
        if point.startswith(SAMPLE):
            return feeds
        return with_categories(feeds, self.params.inputs, self._estimator)

    def moved(self, feeds: Feeds) -> MovedRows:
        return rows_on_threshold(self.compute, feeds)

    def see(self, point: ReferencePoint, *, first: bool) -> None:
        del first
        assert point.on_threshold is not None
        self._counts["rows"] += len(point.on_threshold)
        self._counts["rows_on_threshold"] += int(point.on_threshold.sum())

    def metrics(self) -> dict[str, int]:
        return self._counts


class _FrameworkRunner(Runner):
    """A framework in an environment of its own, which runs all points in one process there."""

    has_unusual = False

    def __init__(self, context: StepContext, framework: frameworks.Framework) -> None:
        super().__init__(context)
        self._framework = framework

    def run_points(self, points: Points) -> Iterator[tuple[ReferencePoint, Outputs]]:
        params, every = self.params, list(points)
        theirs = {ours: name for name, ours in params.rename.items()}
        feeds = [
            {theirs.get(name, name): array for name, array in given.items()}
            for _, _, given in every
        ]
        request = self._framework.request(self.context, params)
        found = computed_there(
            self.context, params.environment, self._framework.compute, request, feeds
        )
        for (name, sizes, given), made in zip(every, found, strict=True):
            outputs = {params.rename.get(key, key): array for key, array in made.items()}
            chosen = {key: outputs[key] for key in params.outputs or outputs}
            yield ReferencePoint(name, sizes, given, {}), chosen


def run(context: StepContext) -> Outcome:
    """Write what the PyTorch module computes.

    Raises:
        StepError: forward fails at a point, its outputs hold NaN or are others as the user runs it, or a sample is
            not as declared.
    """
    return _write(_ModuleRunner(context))


def run_onnx(context: StepContext) -> Outcome:
    """Write what ONNX Runtime computes without optimizations.

    Raises:
        StepError: It fails at a point, an output holds NaN, or a sample is not as declared.
    """
    return _write(_OnnxRunner(context))


def run_original(context: StepContext) -> Outcome:
    """Write what the original of a ready model computes.

    Raises:
        StepError: It fails at a point, gives other outputs than the model has, or NaN.
    """
    return _write(_OriginalRunner(context))


def run_estimator(context: StepContext) -> Outcome:
    """Write what the estimator computes, and which rows are on a threshold.

    Raises:
        StepError: The estimator can't be had, fails at a point or gives NaN, or a sample is not as declared.
    """
    return _write(_EstimatorRunner(context))


def run_saved_model(context: StepContext) -> Outcome:
    """Write what TensorFlow computes with a signature of a SavedModel.

    Raises:
        StepError: It fails at a point or gives NaN, or a sample is not as declared.
    """
    return _write(_FrameworkRunner(context, frameworks.SAVED_MODEL))


def run_tflite(context: StepContext) -> Outcome:
    """Write what TensorFlow Lite's interpreter computes; raises as `run_saved_model`."""
    return _write(_FrameworkRunner(context, frameworks.TFLITE))


def run_jax(context: StepContext) -> Outcome:
    """Write what JAX computes with a function; raises as `run_saved_model`."""
    return _write(_FrameworkRunner(context, frameworks.JAX))


def _entrypoints(params: Any) -> tuple[Entrypoint, ...]:
    named = (getattr(params, key, None) for key in ("model", "original", "samples"))
    return tuple(each for each in named if each is not None)


def _kind(
    name: str,
    version: int,
    params: type,
    run: Callable[[StepContext], Outcome],
    *packages: str,
    inputs: tuple[str, ...] = (),
) -> StepKind:
    return StepKind(
        name=name,
        version=version,
        params=params,
        inputs=inputs,
        outputs={"reference": "reference"},
        toolchain=packages,
        run=run,
        host_bound=True,
        user_code=True,
        entrypoints=_entrypoints,
    )


ONNX = _kind(
    "onnx-reference",
    5,
    OnnxReferenceParams,
    run_onnx,
    "onnx",
    "onnxruntime",
    "numpy",
    inputs=("model",),
)


ORIGINAL = _kind(
    "reference-model",
    4,
    OriginalReferenceParams,
    run_original,
    "torch",
    "onnx",
    "numpy",
    inputs=("model", "config?"),
)


ESTIMATORS = {
    name: _kind(
        f"{name}-reference",
        5,
        EstimatorReferenceParams,
        run_estimator,
        *dict.fromkeys(("numpy", *packages, "scikit-learn")),
    )
    for name, packages in ((SKLEARN, ()), (XGBOOST, ("xgboost",)), (LIGHTGBM, ("lightgbm",)))
}
"""Step kinds by frontend."""


FRAMEWORKS = {
    framework.name: _kind(
        f"{framework.kind}-reference",
        3,
        FrameworkReferenceParams,
        run_there,
        "numpy",
        framework.package,
    )
    for framework, run_there in (
        (frameworks.SAVED_MODEL, run_saved_model),
        (frameworks.TFLITE, run_tflite),
        (frameworks.JAX, run_jax),
    )
}
"""Step kinds by frontend."""


KIND = _kind("reference", 6, ReferenceParams, run, "torch", "numpy", inputs=(OPTIONAL_CALLS,))
