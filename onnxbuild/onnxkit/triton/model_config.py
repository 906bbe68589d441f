"""config.pbtxt of a model: Triton's ModelConfig.

Source: triton-inference-server/common, protobuf/model_config.proto.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnxbuild.core.axis import Dimension
from onnxbuild.core.step import MODEL_FILE
from onnxbuild.onnxkit.packages.signature import ModelSignature
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.onnxkit.triton.accelerators import Accelerators
from onnxbuild.onnxkit.triton.options import InstanceGroup, TritonOptions
from onnxbuild.onnxkit.triton.text_form import Message, Value, Word
from onnxbuild.onnxkit.triton.types import check_rank, data_type

CONFIG_FILE = "config.pbtxt"

_LEVELS = {"basic": -1, "extended": 1, "disable": 2}
"""Session's graph_optimization -> the backend's `level`; all optimizations are its default."""

_TAKEN = frozenset({"session.use_device_allocator_for_initializers"})
"""Session config entries that the backend takes."""

Field = tuple[str, Value]


def head(
    name: str, signature: ModelSignature, max_batch_size: int, *, is_ensemble: bool = False
) -> Iterator[Field]:
    """Yield the fields that any model has.

    Args:
        name: What clients ask for.
        signature: The model's.
        max_batch_size: Greatest batch; 0 if shapes hold all axes.
        is_ensemble: Other models run it, and say themselves how tensors are reshaped.

    Raises:
        NoFormError: Triton has no form for an input or output.
    """
    yield "name", name
    yield ("platform", "ensemble") if is_ensemble else ("backend", "onnxruntime")
    yield "max_batch_size", max_batch_size
    for side, ports in (("input", signature.inputs), ("output", signature.outputs)):
        for port in ports:
            check_rank(port)
            dims = [_dim(size, signature, is_fixed=side == "input") for size in port.shape or ()]
            dims = dims[1:] if max_batch_size else dims
            # `dims` may not be empty: [1] stands for a scalar, or for one of each row of a batch
            reshape: Message = (("shape", []),)
            is_reshaped = not dims and max_batch_size > 0 and not is_ensemble
            own: Message = (("reshape", reshape),) if is_reshaped else ()
            kind = Word(data_type(port))
            file = "" if is_ensemble or side == "input" else label_files(signature).get(port.name)
            named: Message = (("label_filename", file),) if file else ()
            tensor: Message = (
                ("name", port.name),
                ("data_type", kind),
                ("dims", dims or [1]),
                *own,
                *named,
            )
            yield side, tensor


def label_files(signature: ModelSignature) -> dict[str, str]:
    """Return output of floats -> file in the model's folder with the names of its classes, one a line."""
    numbered = enumerate(signature.outputs)
    return {
        port.name: f"labels-{number}.txt"
        for number, port in numbered
        if port.labels and port.dtype != "string"
    }


def model_fields(
    name: str, signature: ModelSignature, max_batch_size: int, session: SessionSettings
) -> Iterator[Field]:
    """Yield the fields of a model that ONNX Runtime runs, without how Triton serves it.

    Args:
        name: What clients ask for.
        signature: The model's.
        max_batch_size: Greatest batch; 0 if shapes hold all axes.
        session: ONNX Runtime's settings.

    Raises:
        NoFormError: Triton has no form for an input or output.
    """
    yield from head(name, signature, max_batch_size)
    yield "default_model_filename", MODEL_FILE
    for key, value in _parameters(session).items():
        text: Message = (("string_value", value),)
        entry: Message = (("key", key), ("value", text))
        yield "parameters", entry


def serving_fields(options: TritonOptions, accelerators: Accelerators) -> Iterator[Field]:
    """Yield how Triton serves a model: versions, batches, copies.

    Args:
        options: As the recipe has them.
        accelerators: Of the target's providers.
    """
    yield from version_fields(options)
    for group in instance_groups(options, accelerators):
        kind = {"auto": "KIND_AUTO", "cpu": "KIND_CPU", "gpu": "KIND_GPU"}[group.device]
        gpus: tuple[Field, ...] = (("gpus", list(group.gpus)),) if group.gpus else ()
        copies: Message = (("count", group.count), ("kind", Word(kind)), *gpus)
        yield "instance_group", copies
    if options.dynamic_batching:
        preferred = list(options.preferred_batch_sizes)
        sizes: tuple[Field, ...] = (("preferred_batch_size", preferred),) if preferred else ()
        delay = ("max_queue_delay_microseconds", options.max_queue_delay_us)
        yield "dynamic_batching", (*sizes, delay)


def version_fields(options: TritonOptions) -> Iterator[Field]:
    """Yield which versions are served, where it is not the latest alone."""
    if options.version_policy == "all":
        yield "version_policy", (("all", ()),)
    elif options.version_policy == "specific":
        yield "version_policy", (("specific", (("versions", [options.version]),)),)
    elif options.latest_versions > 1:
        yield "version_policy", (("latest", (("num_versions", options.latest_versions),)),)


def instance_groups(
    options: TritonOptions, accelerators: Accelerators
) -> tuple[InstanceGroup, ...]:
    """Return where how many copies run; none for Triton's default."""
    if options.instance_groups:
        return options.instance_groups
    device = accelerators.device if options.device == "auto" else options.device
    if device == "auto" and not options.instances:
        return ()
    gpus = accelerators.gpus if device == "gpu" else ()
    return (InstanceGroup(device, options.instances or 1, gpus),)  # type: ignore[arg-type] # of a closed set


def optimization(session: SessionSettings, accelerators: Accelerators) -> Iterator[Field]:
    """Yield the level of the session and the accelerators, where there are any."""
    fields: list[Field] = []
    if session.graph_optimization in _LEVELS:
        fields.append(("graph", (("level", _LEVELS[session.graph_optimization]),)))
    chosen: list[Field] = [("gpu_execution_accelerator", each) for each in accelerators.gpu]
    chosen += [("cpu_execution_accelerator", each) for each in accelerators.cpu]
    if chosen:
        fields.append(("execution_accelerators", chosen))
    if fields:
        yield "optimization", fields


def _dim(size: Dimension, signature: ModelSignature, *, is_fixed: bool) -> int:
    """A fixed size, also of an input's axis that the variant takes at one size alone; -1 for any other.

    The backend takes no size for an axis of an output that the model's file does not fix.
    """
    if isinstance(size, int):
        return size
    axis = signature.axis(size)
    return axis.max if is_fixed and axis is not None and axis.min == axis.max else -1


def _parameters(session: SessionSettings) -> dict[str, str]:
    """Session settings that differ from ONNX Runtime's own and that the backend takes."""
    numbers = {
        "intra_op_thread_count": session.intra_op_threads,
        "inter_op_thread_count": session.inter_op_threads,
        "execution_mode": int(session.execution_mode == "parallel"),
    }
    off = {"enable_mem_arena": session.cpu_arena, "enable_mem_pattern": session.memory_pattern}
    return {
        **{key: str(value) for key, value in numbers.items() if value},
        **{key: "0" for key, is_on in off.items() if not is_on},
        **{key: str(value) for key, value in session.config.items() if key in _TAKEN},
    }


def unplaced(session: SessionSettings) -> Sequence[str]:
    """Return the session's settings that differ from ONNX Runtime's own and that the backend does not take."""
    usual = SessionSettings()
    names = ("free_dimensions", "spinning", "deterministic_compute")
    kept = [name for name in names if getattr(session, name) != getattr(usual, name)]
    return [*kept, *sorted(session.config.keys() - _TAKEN)]
