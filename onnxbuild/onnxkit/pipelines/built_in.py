"""Callables of pipelines that onnxbuild brings, and the plan by which they run a recipe's components."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from onnxbuild.core.params import option
from onnxbuild.core.recipe import Axis, ConnectedInput, DummyInput, Entrypoint
from onnxbuild.onnxkit.data.feeds import check_feeds, dummy_array
from onnxbuild.onnxkit.data.greedy import RolesError, roles_of
from onnxbuild.onnxkit.data.states import growth_in, state_inputs
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
        start=args.get("start", ()),
        count=tokens.shape[1],
        forced=tokens,
    )


def greedy_plan(
    inputs: Mapping[str, Sequence[DummyInput]],
    connections: Mapping[str, Sequence[ConnectedInput]],
    logits: Mapping[str, str],
    image_token: int | None = None,
) -> dict[str, Any]:
    """Return how greedy decoding runs the components, JSON values: `plan` of `decoding.logits`.

    A component whose output is the decoder's new tokens is an embedder: its ids are the rows' own.

    An input that is no component's output belongs to the rows; inputs of one name in several components are one.

    Args:
        inputs: Component -> its inputs.
        connections: Component -> those of its inputs that are outputs of others.
        logits: Component -> its first output.
        image_token: Id in whose places an embedder has features; None where there is no embedder.

    Raises:
        RolesError: There is not one decoder, or one of its inputs, or of an embedder's, is nothing that decoding can feed.
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
    own = inputs[decoder]
    embeds = _embeddings(own, connections[decoder])
    if (embeds is None) != (image_token is None):
        what = (
            "an `image_token` in the recipe" if embeds else "a component that gives it embeddings"
        )
        raise RolesError(f"with images, the decoder '{decoder}' needs {what}")
    embedder: dict[str, Any] = {}
    if embeds is not None:
        ids, embedder = _embedder(inputs[embeds.component], takes[embeds.component])
        embedder |= {
            "component": embeds.component,
            "output": embeds.output,
            "gives": embeds.input,
            "image_token": image_token,
        }
        own = (*own, ids)
    roles = roles_of(own, takes[decoder])
    apart = (decoder, embedder.get("component"))
    ordered = [name for name in _in_order(takes) if name not in apart]
    rows = _of_rows(of_rows.values())
    if embedder:
        batch = roles.tokens.shape[0]
        rows = [{**each, "joined": each["shape"][0] != batch} for each in rows]
    given = {
        name: source for name, source in takes[decoder].items() if name != embedder.get("gives")
    }
    return {
        "inputs": rows,
        "encoders": [{"component": name, "takes": takes[name]} for name in ordered],
        **({"embedder": embedder} if embedder else {}),
        "decoder": {"component": decoder, "takes": given, **roles.decoder(logits[decoder])},
    }


def _embeddings(
    decoder: Sequence[DummyInput], connections: Sequence[ConnectedInput]
) -> ConnectedInput | None:
    """Return the connection that gives a decoder its new tokens as embeddings; None where it takes ids."""
    growth = growth_in(decoder)
    new = growth.by if growth else None
    shapes = {each.name: each.shape for each in decoder if not each.fed_by}
    return next((each for each in connections if new and new in shapes.get(each.input, ())), None)


def _embedder(
    inputs: Sequence[DummyInput], takes: Mapping[str, str]
) -> tuple[DummyInput, dict[str, Any]]:
    """Return the ids of an embedder, and which of its inputs is what; raises RolesError."""
    ids = [each for each in inputs if takes[each.name] == each.name]
    features = [each for each in inputs if each not in ids]
    if len(ids) != 1 or len(features) != 1:
        raise RolesError(
            "a component that gives a decoder embeddings takes ids and, by `from`, features of images"
        )
    (port,) = features
    about = {"name": port.name, "dtype": port.dtype, "shape": list(port.shape)}
    return ids[0], {"ids": ids[0].name, "features": {**about, "from": takes[port.name]}}


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


def dummy_rows(
    inputs: Sequence[DummyInput], axes: Sequence[Axis], count: int, plan: Mapping[str, Any]
) -> list[object]:
    """Return random rows of different lengths, each a mapping of input to array without the axis of the batch.

    Texts with images have none, one and two of them, in turns.

    Args:
        inputs: Those of rows, but for masks.
        axes: Of all components.
        plan: Of the callable.
    """
    rows: list[object] = []
    embedder, joined = plan.get("embedder"), _joined(plan)
    for number in range(count):
        sizes = {
            each.name: each.nearest(
                max(each.min, 1) * (1 + (5 * number + 3) % min(_LONGEST, each.max))
            )
            for each in axes
        }
        images = number % 3
        sizes |= {str(each.shape[0]): images for each in inputs if each.name in joined}
        row = {
            each.name: dummy_array(_of_row(each, joined), sizes, f"row:{number}")
            for each in inputs
        }
        if embedder:
            row[embedder["ids"]] = _with_images(row[embedder["ids"]], images, embedder)
        rows.append(row)
    return rows


def _joined(plan: Mapping[str, Any]) -> set[str]:
    """The inputs of which a row has any number."""
    return {each["name"] for each in plan["inputs"] if each.get("joined")}


def _of_row(each: DummyInput, joined: Collection[str]) -> DummyInput:
    """An input as a row has it, without the axis of the batch."""
    return each if each.name in joined else replace(each, shape=each.shape[1:])


def _with_images(text: np.ndarray, images: int, embedder: Mapping[str, Any]) -> np.ndarray:
    """Ids with the image tokens of each image after its first, second... token, and nowhere else."""
    token = embedder["image_token"]
    text = np.where(text == token, token - 1, text)
    places = np.minimum(np.arange(1, images + 1), len(text))
    return np.insert(text, np.repeat(places, embedder["features"]["shape"][1]), token)


def check_row(
    row: Any,
    inputs: Sequence[DummyInput],
    axes: Sequence[Axis],
    plan: Mapping[str, Any],
    where: str,
) -> None:
    """See that a row is what decoding takes: an array, or a mapping of input to array, without the axis of the batch.

    Args:
        inputs: Those of rows, but for masks.
        axes: Of all components.
        plan: Of the callable.
        where: The row, for messages.

    Raises:
        StepError: A name, dtype, rank or size is not as declared, or a NaN or inf.
    """
    joined = _joined(plan)
    own = {each.name: _of_row(each, joined) for each in inputs}
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
