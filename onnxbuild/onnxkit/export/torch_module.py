"""The user's PyTorch module: load it, check what it takes, run it."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError, did_you_mean
from onnxbuild.core.recipe import FILE_DATA, DummyInput, Entrypoint
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.user_code import call_entrypoint, call_user
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.huggingface.diffusion import DIFFUSERS, load_diffusion
from onnxbuild.onnxkit.huggingface.load import load_folder
from onnxbuild.onnxkit.keras_models.archive import KERAS
from onnxbuild.onnxkit.keras_models.load import load_keras, module_of_keras
from onnxbuild.onnxkit.model.tensor_types import STRING, tensor_of
from onnxbuild.onnxkit.modules.inference import (
    compiled_note,
    eager,
    set_for_inference,
    training_notes,
)
from onnxbuild.onnxkit.modules.module_outputs import has_keys, named_outputs
from onnxbuild.onnxkit.modules.no_module import no_module
from onnxbuild.onnxkit.modules.program_modules import load_program, module_of_program
from onnxbuild.onnxkit.modules.stateful_module import parameters_of, stateful
from onnxbuild.onnxkit.sources.outline import FORM

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class TorchSettings:
    """PyTorch's settings before `make_torch_deterministic` changed them.

    Attributes:
        threads: Number of threads of one operator.
        determinism: Debug mode of deterministic kernels: 0, 1 or 2.
    """

    threads: int
    determinism: int


def make_torch_deterministic() -> TorchSettings:
    """Fix the seed, use one thread (sums keep their order) and deterministic kernels; return the settings before."""
    import torch

    before = TorchSettings(torch.get_num_threads(), torch.get_deterministic_debug_mode())
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.set_deterministic_debug_mode("warn")  # its other name imports a compiler, for 0.8 s
    return before


@contextlib.contextmanager
def without_fast_path() -> Iterator[None]:
    """Turn the fused fast path of torch.nn.TransformerEncoder off: no exporter has its operator.

    It computes something else at padded positions: `user_settings` compares. The user's own setting
    comes back.
    """
    import torch

    users = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(users)


def load_module(context: StepContext, entrypoint: Entrypoint) -> torch.nn.Module:
    """The module that the user's callable returns or that a file or folder holds, in eval mode, without gradients.

    Raises:
        StepError: The callable is missing, raises, or returns something else; or the file can't be loaded.
    """
    return load_module_noted(context, entrypoint)[0]


def load_module_noted(
    context: StepContext, entrypoint: Entrypoint
) -> tuple[torch.nn.Module, tuple[str, ...]]:
    """Load as `load_module` does; return the module, and lines for the user if it was compiled or in training mode."""
    compiled: tuple[str, ...] = ()
    if entrypoint.target == FILE_DATA:
        shown, path = context.files(entrypoint)[0]
        if entrypoint.args.get(FORM) == KERAS:
            module = load_keras(path, shown, entrypoint.args, context.where)
        elif entrypoint.args.get(FORM) == DIFFUSERS:
            module = load_diffusion(path, entrypoint.args, context.where)
        elif FORM in entrypoint.args:
            module = load_program(path, shown, entrypoint.args, context.where)
        else:
            module = load_folder(context, entrypoint)
    else:
        shown = entrypoint.target
        made = call_callable(context, entrypoint)
        compiled = compiled_note(made, shown)
        found = as_module(made, context.where)
        if found is None:
            raise no_module(made, shown, context.where)
        module = found
    notes = (*compiled, *training_notes(module, shown))
    set_for_inference(module, shown, context.where)
    if entrypoint.state:
        module = stateful(module, entrypoint.state, context.where)
    return module, notes


def call_callable(context: StepContext, entrypoint: Entrypoint) -> object:
    """Call the user's callable; return its result.

    Raises:
        StepError: It is missing, or raises.
    """
    import torch

    load = context.load(entrypoint)
    with torch.no_grad():
        return call_entrypoint(load, entrypoint, context.where)


def as_module(made: object, where: str) -> torch.nn.Module | None:
    """Return a callable's result as an eager module that takes its inputs by name; None if it is no module.

    Raises:
        StepError: It is a program that takes something else than tensors.
    """
    import torch

    program = module_of_program(made, where) or module_of_keras(made, where)
    return program or (eager(made) if isinstance(made, torch.nn.Module) else None)


def check_signature(module: torch.nn.Module, inputs: Sequence[DummyInput], where: str) -> None:
    """See that forward takes every dummy input, and that nothing it requires is missing.

    Raises:
        StepError: It does not, or something is; or an input is of strings.
    """
    for each in inputs:
        if each.dtype == STRING:
            tensor_of(each.name, each.dtype, np.zeros(0), where)  # says why it can't be
    parameters = inspect.signature(module.forward).parameters
    kinds = inspect.Parameter
    by_name = {
        name: parameter
        for name, parameter in parameters.items()
        if parameter.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)
    }
    takes_any = any(p.kind is kinds.VAR_KEYWORD for p in parameters.values())
    names = parameters_of(module, [each.name for each in inputs])
    shown = f"{type(module).__name__}.forward"
    for name in names:
        if name not in by_name and not takes_any:
            near = did_you_mean(name, by_name)
            others = "" if by_name else ", ".join(map(str, parameters.values()))
            raise StepError(
                f"dummy input '{name}' is not a parameter of {shown}, which takes "
                + (f"`{others}` by position alone" if others else ", ".join(by_name) or "none"),
                where=where,
                fix=near
                or _only_one_meant(name, names, by_name)
                or _unknown_fix(name, by_position=bool(others)),
            )
    for name, parameter in by_name.items():
        if parameter.default is kinds.empty and name not in names:
            raise StepError(
                f"{shown} requires '{name}', which `dummy_inputs` does not give; it gives "
                f"{', '.join(names) or 'none'}",
                where=where,
                fix=f"add `{name}: {{dtype: ..., shape: [...]}}` to `dummy_inputs`, or give "
                "the parameter a default",
            )


def _only_one_meant(
    name: str, names: Sequence[str], by_name: Mapping[str, inspect.Parameter]
) -> str:
    """Return the fix where one input alone is unknown, and one parameter that must be given is missing; else none."""
    missing = [
        each
        for each, parameter in by_name.items()
        if parameter.default is inspect.Parameter.empty and each not in names
    ]
    unknown = [each for each in names if each not in by_name]
    is_meant = name.isidentifier() and len(missing) == len(unknown) == 1
    return f"write `{missing[0]}` in place of `{name}`" if is_meant else ""


def _unknown_fix(name: str, *, by_position: bool) -> str:
    if by_position and name.isidentifier():
        return f"write a small wrapper module with `def forward(self, {name})` that passes it on"
    if name.isidentifier():
        return f"rename or remove `dummy_inputs.{name}`"
    return (
        f"a name with dots or slashes reaches forward by `**inputs` alone: write a small wrapper "
        f'module with `def forward(self, **inputs)` that reads `inputs["{name}"]`'
    )


@dataclass(frozen=True, slots=True)
class ModuleRun:
    """Result of one call of forward.

    Attributes:
        outputs: Name -> array, contiguous; see `named_outputs`.
        by_position: Whether nothing that forward returned has a key, so that names went by position.
    """

    outputs: dict[str, np.ndarray]
    by_position: bool


def run_module(
    module: torch.nn.Module,
    feeds: Feeds,
    where: str = "PyTorch",
    outputs: Sequence[str] = (),
    *,
    inputs: Sequence[DummyInput] = (),
    places: Sequence[str] = (),
    as_the_user: bool = False,
) -> ModuleRun:
    """Call forward by keyword.

    Args:
        where: `recipe:step`, for messages.
        outputs: Names for what it returns, as `named_outputs` takes them.
        inputs: Their dtypes, where numpy lacks one.
        places: As `named_outputs` takes them.
        as_the_user: Whether PyTorch's fast paths are as the user has them.

    Raises:
        StepError: forward raises, or does not give the outputs.
    """
    with contextlib.nullcontext() if as_the_user else without_fast_path():
        value = call_forward(module, feeds, inputs, where)
    found = named_outputs(value, outputs, where, inputs=feeds, places=places)
    return ModuleRun(
        {name: _as_array(tensor, where) for name, tensor in found.items()}, not has_keys(value)
    )


def call_forward(
    module: torch.nn.Module, feeds: Feeds, inputs: Sequence[DummyInput], where: str = "PyTorch"
) -> object:
    """Return what forward gives, whatever that is; arguments as for `run_module`.

    Raises:
        StepError: forward raises.
    """
    import torch

    tensors = module_tensors(feeds, inputs, where)
    with torch.no_grad():
        target = f"{type(module).__name__}.forward"
        return call_user(lambda: module(**tensors), target, where)


def module_tensors(
    feeds: Feeds, inputs: Sequence[DummyInput], where: str
) -> dict[str, torch.Tensor]:
    """Input -> tensor of the declared dtype.

    Raises:
        StepError: An input is of strings.
    """
    dtypes = {each.name: each.dtype for each in inputs}
    return {
        name: tensor_of(name, dtypes.get(name, ""), array, where) for name, array in feeds.items()
    }


def _as_array(tensor: torch.Tensor, where: str) -> np.ndarray:
    try:
        array: np.ndarray = np.array(tensor.detach().cpu().numpy(), order="C")
    except TypeError as error:  # bfloat16, float8, sparse: numpy has no such thing
        raise StepError(
            f"forward returns a tensor of {tensor.dtype}, which numpy can't hold",
            where=where,
            fix="return `.float()` of it",
        ) from error
    return array
