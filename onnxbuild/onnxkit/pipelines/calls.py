"""Run a pipeline's callable on a sample, with components that PyTorch or ONNX Runtime runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.entrypoint import FILE_DATA, Entrypoint
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.core.step import StepContext
from onnxbuild.core.target import Target
from onnxbuild.onnxkit.data.calibration_data import array_of_file
from onnxbuild.onnxkit.data.recorded_calls import CALLS
from onnxbuild.onnxkit.data.reference_files import read_reference
from onnxbuild.onnxkit.data.user_code import an, call_entrypoint, iterate_user, own_copy
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.loaders.decoding import DecodingError
from onnxbuild.onnxkit.loaders.sounds import SOUND_SUFFIX, row_of
from onnxbuild.onnxkit.pipelines.built_in import BUILT_IN
from onnxbuild.onnxkit.pipelines.parts import PartsError, PipelineParts
from onnxbuild.onnxkit.providers.open_on_target import open_on
from onnxbuild.onnxkit.sessions.run import run_session
from onnxbuild.onnxkit.sessions.settings import SessionSettings

if TYPE_CHECKING:
    from onnxbuild.onnxkit.pipelines.parts import Arrays, Call


KEPT_BYTES = 1 << 30
"""Bytes of the calls that a reference keeps."""

MODEL, EXACT = "model/", "exact/"
"""Begin names of inputs: the components' models, and those without quantization."""


@dataclass(frozen=True, slots=True)
class ReferencePart:
    """A component as PyTorch runs it; `model`, `axes` and `outputs` as in its recipe."""

    name: str
    model: Entrypoint
    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunPart:
    """A component: its inputs, and how its session runs it."""

    name: str
    inputs: tuple[DummyInput, ...]
    session: SessionSettings


@dataclass(frozen=True, slots=True)
class RunPipeline:
    """A pipeline: all of its components, and `run(parts, sample)`."""

    parts: tuple[RunPart, ...]
    run: Entrypoint


Caller = Callable[[dict[str, "np.ndarray"]], "Arrays"]
"""Runs one component."""


def parts_of(inputs: Mapping[str, Iterable[DummyInput]], call: Call) -> PipelineParts:
    """Return the components of a pipeline.

    Args:
        inputs: Component -> its inputs.
        call: Runs one of them.
    """
    ports = {name: [port_of(each) for each in own] for name, own in inputs.items()}
    return PipelineParts(ports, call)


def port_of(each: DummyInput) -> dict[str, Any]:
    """Return an input as `PipelineParts` and pipeline.json have it."""
    return {"name": each.name, "dtype": each.dtype, "shape": list(each.shape)}


class PipelineRun:
    """The callable, the user's or a built-in one: `run(parts, sample) -> {name: array}`.

    Attributes:
        place: `models/mine.py:7`, where the callable begins; the step for a built-in one.

    Raises:
        StepError: It can't be loaded.
    """

    def __init__(self, context: StepContext, entrypoint: Entrypoint) -> None:
        self._where = context.where
        self._entrypoint = entrypoint
        if (built_in := BUILT_IN.get(entrypoint.target)) is None:
            self._function = context.load(entrypoint)
            self.place = place_of(context, entrypoint)
        else:  # its arguments are onnxbuild's own, and no text to show
            self._function = partial(built_in, **entrypoint.args)
            self._entrypoint = replace(entrypoint, args={})
            self.place = context.where

    def outputs_of(
        self, parts: PipelineParts, sample: object, number: int
    ) -> dict[str, np.ndarray]:
        """Run it on a sample.

        Raises:
            StepError: It raises, a component does not take what it is given, or an output is no array.
        """
        try:
            found = call_entrypoint(
                self._function,
                self._entrypoint,
                self._where,
                owner="the pipeline's",
                given={"parts": parts, "sample": own_copy(sample)},
            )
        except StepError as error:
            cause = error.__cause__
            fix, what = error.fix, error.what
            if isinstance(cause, (PartsError, DecodingError)):
                fix, what = cause.fix, str(cause)
            raise StepError(
                f"sample {number}: {what}", where=error.where or self.place, fix=fix
            ) from cause
        return self._checked(found, number)

    def _checked(self, found: object, number: int) -> dict[str, np.ndarray]:
        target = self._entrypoint.target
        if not isinstance(found, Mapping) or not found:
            raise StepError(
                f"{target} returned {an(found)} for sample {number}; expected a mapping of names to arrays",
                where=self.place,
                fix="return `{'NAME': array}`",
            )
        for name, value in found.items():
            is_array = isinstance(value, (np.ndarray, np.generic)) and value.dtype != object
            if not isinstance(name, str) or not is_array:
                raise StepError(
                    f"{target}: output {name!r} of sample {number} is {an(value)}; expected an array of NumPy",
                    where=self.place,
                    fix=f"return `{{{name!r}: np.asarray(...)}}`",
                )
        return {name: np.asarray(value) for name, value in found.items()}


def place_of(context: StepContext, entrypoint: Entrypoint) -> str:
    """Return `models/mine.py:7`, where a callable begins; the step where that is not known, and for files."""
    if entrypoint.target == FILE_DATA:
        return context.where
    code = getattr(context.load(entrypoint), "__code__", None)
    file = entrypoint.target.rpartition(":")[0]
    return f"{file}:{code.co_firstlineno}" if code is not None else context.where


def samples_of(
    context: StepContext,
    samples: Entrypoint,
    count: int,
    *,
    sound: Mapping[str, Any] | None = None,
    shape: Sequence[int | str] = (),
) -> list[object]:
    """Return the first samples that the user's callable yields, or the arrays of the first files.

    Args:
        sound, shape: As `row_of` takes them, for .wav files.

    Raises:
        StepError: It yields none, or raises.
    """
    if samples.target == FILE_DATA:
        files = itertools.islice(context.files(samples), count)
        return [
            _row_of_sound(path, label, context.where, sound, shape)
            if label.endswith(SOUND_SUFFIX)
            else array_of_file(path, label, context.where)
            for label, path in files
        ]
    found = list(itertools.islice(iterate_user(context, samples), count))
    if not found:
        raise StepError(
            f"{samples.target} yields no sample",
            where=place_of(context, samples),
            fix="yield at least one",
        )
    return found


def _row_of_sound(
    path: Path,
    label: str,
    where: str,
    sound: Mapping[str, Any] | None,
    shape: Sequence[int | str],
) -> np.ndarray:
    if sound is None:
        raise StepError(
            f"'{label}' is a sound, and the recipe does not say how the model takes sounds",
            where=where,
            fix="add `sound: {form: samples}` to `pipeline`; the form may be normalized or whisper, too",
        )
    try:
        return row_of(path, sound, shape)
    except ValueError as error:
        raise StepError(f"'{label}' can't be read: {error}", where=where) from error


def recorded(
    call: Call, calls: list[tuple[str, Arrays, Arrays]], most_bytes: int = KEPT_BYTES
) -> Call:
    """Return the same call, which adds (component, inputs, outputs) to a list each time.

    Args:
        call: Runs a component.
        calls: The list.
        most_bytes: Once arrays of so many bytes are in it, first calls of a component are added alone: a decoder of sounds
            takes megabytes of its encoder's keys in each call.
    """
    kept_bytes = 0

    def recording(name: str, feeds: dict[str, np.ndarray]) -> Arrays:
        nonlocal kept_bytes
        outputs = call(name, feeds)
        if kept_bytes < most_bytes or name not in {each for each, _, _ in calls}:
            calls.append((name, feeds, outputs))
            kept_bytes += sum(each.nbytes for each in (*feeds.values(), *outputs.values()))
        return outputs

    return recording


def uncalled(parts: Sequence[str], calls: Iterable[tuple[str, Arrays, Arrays]]) -> Iterator[str]:
    """Yield the components that were never called."""
    called = {name for name, _, _ in calls}
    return (name for name in parts if name not in called)


def by_name(callers: Mapping[str, Caller]) -> Call:
    """Return what runs each component by its own caller."""
    return lambda name, feeds: callers[name](feeds)


def runtime_callers(
    context: StepContext,
    sessions: Mapping[str, SessionSettings],
    target: Target,
    models: str = MODEL,
) -> dict[str, Caller]:
    """Return what runs each component with ONNX Runtime: the model of the input `model/NAME`.

    An fp16 model's outputs are given in the type of PyTorch's, as the calls of the input `reference` have it.

    Args:
        sessions: Component -> how its session runs it.
        target: Where; `absence` has said that it is there.
        models: Begins the names of the inputs: MODEL or EXACT.

    Raises:
        NotOnTargetError: It would run none of a model.
    """
    return {
        name: _on_runtime(context, models, name, own, target) for name, own in sessions.items()
    }


def _on_runtime(
    context: StepContext, models: str, name: str, settings: SessionSettings, target: Target
) -> Caller:
    session = open_on(context, context.input(f"{models}{name}"), target, settings).session
    calls = read_reference(context.input("reference") / CALLS / name)
    dtypes = {output: array.dtype for output, array in next(calls).outputs.items()}

    def call(feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        outputs = run_session(session, feeds, context.where)
        return {
            output: array.astype(dtypes[output]) if array.dtype == "float16" else array
            for output, array in outputs.items()
        }

    return call
