"""Callables of pipelines that onnxbuild brings, and the plan by which they run a recipe's components."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from onnxbuild.core.params import option
from onnxbuild.core.recipe import Axis, ConnectedInput, DummyInput, Entrypoint
from onnxbuild.onnxkit.data.feeds import check_feeds, dummy_array
from onnxbuild.onnxkit.data.greedy import RolesError, roles_of
from onnxbuild.onnxkit.data.states import state_inputs
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.loaders import decoding
from onnxbuild.onnxkit.model.tensor_types import STRING, numpy_dtype

if TYPE_CHECKING:
    from onnxbuild.onnxkit.pipelines.parts import PipelineParts

GREEDY, SAMPLED, CTC = "greedy", "sample", "ctc"
BUILT_IN: Mapping[str, Callable[..., dict[str, np.ndarray]]] = {
    GREEDY: decoding.greedy,
    SAMPLED: decoding.greedy,
    CTC: decoding.ctc,
}
DECODING = (GREEDY, SAMPLED)
"""Callables of tokens one after the other."""

TOKENS = "tokens"
"""The output of each of them."""

_LONGEST = 12
"""Greatest size of a random row along an axis, in multiples of the least one."""


@dataclass(frozen=True, slots=True)
class SoundOptions:
    """Settings by which a .wav file becomes a row, here and in the package's run.py."""

    form: Literal["samples", "normalized", "whisper"] = option(
        "samples",
        help="`samples` from -1 to 1; `normalized`, those with mean 0 and variance 1; or `whisper`, the spectrogram of its models",
    )
    rate: int = option(16_000, help="samples a second", minimum=1)


def own_code(run: Entrypoint) -> tuple[Entrypoint, ...]:
    """Return the callable if it is the user's."""
    return () if run.target in BUILT_IN else (run,)


def forced_logits(
    run: Entrypoint, parts: PipelineParts, sample: object, tokens: np.ndarray
) -> Iterator[np.ndarray]:
    """Yield the logits of each token that follows, shape (rows, vocabulary), while decoding goes on with PyTorch's.

    Args:
        run: One of DECODING, with its arguments.
        sample: Rows that are decoded together.
        tokens: PyTorch's, shape (rows, tokens).
    """
    args: Mapping[str, Any] = run.args
    return decoding.logits(
        parts,
        sample,  # type: ignore[arg-type]
        plan=args["plan"],
        start=args["start"],
        count=tokens.shape[1],
        forced=tokens,
    )


def greedy_plan(
    inputs: Mapping[str, Sequence[DummyInput]],
    connections: Mapping[str, Sequence[ConnectedInput]],
    logits: Mapping[str, str],
) -> dict[str, Any]:
    """Return how greedy decoding runs the components, JSON values: `plan` of `decoding.logits`.

    An input that is no component's output belongs to the rows; inputs of one name in several components are one.

    Args:
        inputs: Component -> its inputs.
        connections: Component -> those of its inputs that are outputs of others.
        logits: Component -> its first output.

    Raises:
        RolesError: There is not one decoder, or one of its inputs is nothing that decoding can feed.
    """
    decoders = [name for name, own in inputs.items() if state_inputs(own)]
    if len(decoders) != 1:
        shown = " and ".join(decoders) if decoders else "no component"
        raise RolesError(
            f"one component must be a decoder with a `state` that goes round, and {shown} is"
        )
    (decoder,) = decoders
    takes = {
        name: {each.input: f"{each.component}.{each.output}" for each in connections[name]}
        for name in inputs
    }
    of_rows = {
        each.name: each
        for name, own in inputs.items()
        for each in own
        if name != decoder and each.name not in takes[name]
    }
    for name, own in inputs.items():
        takes[name] |= {each.name: each.name for each in own if each.name in of_rows}
    roles = roles_of(inputs[decoder], takes[decoder])
    ordered = [name for name in _in_order(takes) if name != decoder]
    return {
        "inputs": _of_rows(of_rows.values()),
        "encoders": [{"component": name, "takes": takes[name]} for name in ordered],
        "decoder": {
            "component": decoder,
            "takes": takes[decoder],
            **roles.decoder(logits[decoder]),
        },
    }


def ctc_plan(
    inputs: Mapping[str, Sequence[DummyInput]], logits: Mapping[str, str]
) -> dict[str, Any]:
    """Return how a component gives the logits of frames, JSON values: `plan` of `decoding.frames`.

    Args:
        inputs, logits: As `greedy_plan` takes them.

    Raises:
        RolesError: There are several components, or rows are padded on their left.
    """
    if len(inputs) > 1:
        raise RolesError(f"one component gives the logits of frames, and there are {len(inputs)}")
    ((component, own),) = inputs.items()
    for each in own:
        if each.mask == "left":
            raise RolesError(
                f"frames are counted from a row's beginning, and '{each.name}' has `mask: left`"
            )
    return {"inputs": _of_rows(own), "component": component, "logits": logits[component]}


def _of_rows(inputs: Iterable[DummyInput]) -> list[dict[str, Any]]:
    return [
        {"name": each.name, "dtype": each.dtype, "shape": list(each.shape), "mask": each.mask}
        for each in inputs
    ]


def _in_order(takes: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield each component after those whose outputs it takes; there are no circles."""
    done: set[str] = set()

    def walk(name: str) -> Iterator[str]:
        if name in done:
            return
        done.add(name)
        for source in takes[name].values():
            if (other := source.partition(".")[0]) in takes and "." in source:
                yield from walk(other)
        yield name

    for each in takes:
        yield from walk(each)


def dummy_rows(inputs: Sequence[DummyInput], axes: Sequence[Axis], count: int) -> list[object]:
    """Return random rows of different lengths, each a mapping of input to array without the axis of the batch.

    Args:
        inputs: Those of rows, but for masks.
        axes: Of all components.
    """
    rows: list[object] = []
    for number in range(count):
        sizes = {
            each.name: each.nearest(
                max(each.min, 1) * (1 + (5 * number + 3) % min(_LONGEST, each.max))
            )
            for each in axes
        }
        own = (replace(each, shape=each.shape[1:]) for each in inputs)
        rows.append({each.name: dummy_array(each, sizes, f"row:{number}") for each in own})
    return rows


def check_row(row: Any, inputs: Sequence[DummyInput], axes: Sequence[Axis], where: str) -> None:
    """See that a row is what decoding takes: an array, or a mapping of input to array, without the axis of the batch.

    Args:
        inputs: Those of rows, but for masks.
        axes: Of all components.
        where: The row, for messages.

    Raises:
        StepError: A name, dtype, rank or size is not as declared, or a NaN or inf.
    """
    own = {each.name: replace(each, shape=each.shape[1:]) for each in inputs}
    if len(own) == 1 and not isinstance(row, Mapping):
        row = dict.fromkeys(own, row)
    if isinstance(row, Mapping):
        row = {name: _of_kind(each, own.get(name)) for name, each in row.items()}
    check_feeds(row, tuple(own.values()), where, axes)


def _of_kind(value: Any, declared: DummyInput | None) -> Any:
    """Return an array of a type of the declared kind, such as int32 for int64, in the declared one."""
    if declared is None or declared.dtype == STRING or not isinstance(value, np.ndarray):
        return value
    dtype = numpy_dtype(declared.dtype)
    return value.astype(dtype) if np.can_cast(value.dtype, dtype, "same_kind") else value


def numbers_of_rows(samples: Sequence[Sequence[object]]) -> Iterator[list[int]]:
    """Yield the numbers of each sample's rows: equal for equal rows, whichever batch they are in."""
    known: dict[object, int] = {}
    for sample in samples:
        keys = ([(each.shape, each.tobytes()) for each in _arrays(row)] for row in sample)
        yield [known.setdefault(tuple(each), len(known)) for each in keys]


def batches_of(
    rows: Sequence[object], sizes: Sequence[int], *, padded: bool
) -> list[tuple[int, ...]]:
    """Return the numbers of rows that are decoded together; those of an incomplete batch are left out.

    Args:
        padded: Rows of different lengths may be one batch: a mask leaves out what pads them.
    """
    groups: dict[object, list[int]] = {}
    for number, row in enumerate(rows):
        shapes = tuple(each.shape for each in _arrays(row))
        groups.setdefault(None if padded else shapes, []).append(number)
    return [
        tuple(group[start : start + size])
        for size in sizes
        for group in groups.values()
        for start in range(0, len(group) - size + 1, size)
    ]


def _arrays(row: Any) -> list[np.ndarray]:
    return [np.asarray(each) for each in (row.values() if isinstance(row, Mapping) else [row])]
