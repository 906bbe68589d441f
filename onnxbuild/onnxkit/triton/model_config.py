"""config.pbtxt of a model, Triton's ModelConfig: element types, execution providers, tensors, sessions.

Sources: triton-inference-server/common, protobuf/model_config.proto; triton-inference-server/onnxruntime_backend,
README.md and src/onnxruntime.cc.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnxbuild.core.axis import Dimension
from onnxbuild.core.provider import TritonAccelerator
from onnxbuild.core.step import MODEL_FILE
from onnxbuild.core.target import CPU
from onnxbuild.onnxkit.bundles.manifest import ManifestProvider
from onnxbuild.onnxkit.packages.contents import LEAVE_OUT, rendered
from onnxbuild.onnxkit.packages.signature import ModelSignature, Port
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.onnxkit.triton.options import InstanceGroup, TritonOptions
from onnxbuild.providers import named

_DTYPES = {
    "bool": "BOOL", "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64",
    "int8": "INT8", "int16": "INT16", "int32": "INT32", "int64": "INT64", "float16": "FP16",
    "float32": "FP32", "float64": "FP64", "string": "STRING", "bfloat16": "BF16",
}  # fmt: skip


class NoFormError(ValueError):
    """Triton has no form for a model, or for what is asked for."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.fix = fix


def data_type(port: Port) -> str:
    """Return the element type, as `TYPE_FP32`.

    Raises:
        NoFormError: Triton has none.
    """
    if port.dtype not in _DTYPES:
        what = f"'{port.name}' is {port.dtype}, which Triton has no data type for"
        raise NoFormError(what, LEAVE_OUT)
    return f"TYPE_{_DTYPES[port.dtype]}"


def check_rank(port: Port) -> None:
    """Check that the number of dimensions is known.

    Raises:
        NoFormError: It is not.
    """
    if port.shape is None:
        what = f"'{port.name}' has no known shape, and Triton needs its number of dimensions"
        raise NoFormError(what, LEAVE_OUT)


_DEVICE = "device_id"


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One provider, as the backend takes it.

    Attributes:
        name: The backend's name of it.
        parameters: The backend's names of its options -> values.
    """

    name: str
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Accelerators:
    """Accelerators in config.pbtxt for a chain of providers.

    Attributes:
        gpu: `gpu_execution_accelerator`, in order.
        cpu: `cpu_execution_accelerator`, in order.
        device: Where the chain runs: `gpu`, `cpu`, or `auto` if it is ONNX Runtime's CPU provider alone.
        gpus: The GPUs that its options name.
        dropped: What the backend has no place for.
    """

    gpu: tuple[Accelerator, ...]
    cpu: tuple[Accelerator, ...]
    device: str
    gpus: tuple[int, ...]
    dropped: tuple[str, ...]


def accelerators_of(chain: Sequence[ManifestProvider]) -> Accelerators:
    """Return what a target's chain is in config.pbtxt."""
    gpu: list[Accelerator] = []
    cpu: list[Accelerator] = []
    dropped: list[str] = []
    gpus: dict[int, None] = {}
    devices = []
    for each in chain:
        provider = named(each.name)
        options = {key: value for key, value in each.options.items() if key != _DEVICE}
        taken = provider.triton
        if taken is None:
            if provider.name != CPU:
                dropped.append(f"the provider {provider.name}")
            continue
        devices.append(taken.device)
        if taken.device == "gpu" and _DEVICE in each.options:
            gpus[int(each.options[_DEVICE])] = None
        parameters, lost = _parameters(options, taken)
        dropped += lost
        if parameters or not taken.is_implied:
            entry = Accelerator(provider.name, parameters)
            (gpu if taken.device == "gpu" else cpu).append(entry)
    device = "gpu" if "gpu" in devices else "cpu" if cpu else "auto"
    return Accelerators(tuple(gpu), tuple(cpu), device, tuple(gpus), tuple(dropped))


def _parameters(
    options: Mapping[str, str], taken: TritonAccelerator
) -> tuple[dict[str, str], list[str]]:
    """(the backend's parameters, options that it has none for); it fails on any that it does not know."""
    if taken.parameters is None:
        return dict(options), []
    parameters, dropped = {}, []
    modes = [flag for flag in taken.modes if options.get(flag) in {"1", "True"}]
    if modes:
        parameters[taken.mode] = taken.modes[modes[0]]
        dropped += modes[1:]
    for key, value in options.items():
        if key in taken.parameters:
            parameters[taken.parameters[key]] = value
        elif key not in taken.modes and taken.implied.get(key) != value:
            dropped.append(key)
    return parameters, dropped


CONFIG_FILE = "config.pbtxt"

_LEVELS = {"basic": -1, "extended": 1, "disable": 2}
"""Session's graph_optimization -> the backend's `level`; all optimizations are its default."""

_TAKEN = frozenset({"session.use_device_allocator_for_initializers"})
"""Session config entries that the backend takes."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A `ModelInput` or `ModelOutput`.

    Attributes:
        name: As clients write it.
        data_type: Such as `TYPE_FP32`.
        dims: Without the batch axis; -1 for any size; [1] for a scalar.
        is_reshaped: The model's tensor has no dimensions where `dims` has [1].
        label_file: In the model's folder, with the names of classes; empty for none.
    """

    name: str
    data_type: str
    dims: tuple[int, ...]
    is_reshaped: bool = False
    label_file: str = ""


@dataclass(frozen=True, slots=True)
class EnsemblePart:
    """A step of an ensemble.

    Attributes:
        model: Name of the model.
        inputs: Its input -> tensor of the ensemble.
        outputs: Its output -> tensor of the ensemble.
    """

    model: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class WarmUpInput:
    """An input of a request.

    Attributes:
        name: The model's.
        data_type: Such as `TYPE_FP32`.
        dims: Of the tensor, without the batch axis.
        file: Below WARMUP_FOLDER.
    """

    name: str
    data_type: str
    dims: tuple[int, ...]
    file: str


@dataclass(frozen=True, slots=True)
class WarmUp:
    """A request of `model_warmup`."""

    name: str
    batch_size: int
    inputs: tuple[WarmUpInput, ...]


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Content of a config.pbtxt.

    Attributes:
        name: What clients ask for.
        max_batch_size: Greatest batch; 0 if shapes hold all axes.
        inputs: In order.
        outputs: In order.
        options: How Triton serves the model: versions and batches.
        parts: Of an ensemble; empty for a model that ONNX Runtime runs.
        parameters: The backend's, by their keys.
        groups: Where how many copies run; empty for Triton's default.
        level: Of the session's optimizations; None for the backend's default.
        gpu_accelerators: In order.
        cpu_accelerators: In order.
        libraries: Of custom operators, relative to the repository.
        warm_ups: Requests that Triton runs before it says that the model is ready.
        file: Name of the model's file.
    """

    name: str
    max_batch_size: int
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    options: TritonOptions
    parts: tuple[EnsemblePart, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    groups: tuple[InstanceGroup, ...] = ()
    level: int | None = None
    gpu_accelerators: tuple[Accelerator, ...] = ()
    cpu_accelerators: tuple[Accelerator, ...] = ()
    libraries: Sequence[str] = ()
    warm_ups: Sequence[WarmUp] = ()
    file: str = MODEL_FILE


def text_of(config: ModelConfig) -> str:
    """Return the text of config.pbtxt."""
    return rendered(__package__ or "", "config.pbtxt.j2", config=config)


def inputs_of(signature: ModelSignature, *, batched: bool, ensemble: bool) -> tuple[Tensor, ...]:
    """Return the inputs of a model.

    Args:
        batched: Triton makes batches along the first axis, which shapes leave out.
        ensemble: Other models run it, and say themselves how tensors are reshaped.

    Raises:
        NoFormError: Triton has no form for an input.
    """
    return tuple(
        _tensor(each, signature, is_input=True, batched=batched, ensemble=ensemble)
        for each in signature.inputs
    )


def outputs_of(signature: ModelSignature, *, batched: bool, ensemble: bool) -> tuple[Tensor, ...]:
    """Return the outputs of a model; arguments and errors as of `inputs_of`."""
    return tuple(
        _tensor(each, signature, is_input=False, batched=batched, ensemble=ensemble)
        for each in signature.outputs
    )


def _tensor(
    port: Port, signature: ModelSignature, *, is_input: bool, batched: bool, ensemble: bool
) -> Tensor:
    check_rank(port)
    dims = tuple(_dim(size, signature, is_fixed=is_input) for size in port.shape or ())
    dims = dims[1:] if batched else dims
    # `dims` may not be empty: [1] stands for a scalar, or for one of each row of a batch
    is_reshaped = not dims and batched and not ensemble
    files = {} if ensemble or is_input else label_files(signature)
    return Tensor(port.name, data_type(port), dims or (1,), is_reshaped, files.get(port.name, ""))


def label_files(signature: ModelSignature) -> dict[str, str]:
    """Return output of floats -> file in the model's folder with the names of its classes, one a line."""
    numbered = enumerate(signature.outputs)
    return {
        port.name: f"labels-{number}.txt"
        for number, port in numbered
        if port.labels and port.dtype != "string"
    }


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


def level_of(session: SessionSettings) -> int | None:
    """Return the backend's level of the session's optimizations; None for its default."""
    return _LEVELS.get(session.graph_optimization)


def parameters_of(session: SessionSettings) -> dict[str, str]:
    """Return the session settings that differ from ONNX Runtime's own and that the backend takes."""
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


def _dim(size: Dimension, signature: ModelSignature, *, is_fixed: bool) -> int:
    """A fixed size, also of an input's axis that the variant takes at one size alone; -1 for any other.

    The backend takes no size for an axis of an output that the model's file does not fix.
    """
    if isinstance(size, int):
        return size
    axis = signature.axis(size)
    return axis.max if is_fixed and axis is not None and axis.min == axis.max else -1
