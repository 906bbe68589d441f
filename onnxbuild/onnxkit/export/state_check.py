"""Whether a model's own cache is the one that the recipe declares, and comes back as it went in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.core.state import Growth
from onnxbuild.onnxkit.data.feeds import Feeds, make_feeds
from onnxbuild.onnxkit.data.states import growth_in, prompt_length, state_inputs
from onnxbuild.onnxkit.data.user_code import call_user
from onnxbuild.onnxkit.export.torch_module import module_tensors
from onnxbuild.onnxkit.frameworks import np, torch
from onnxbuild.onnxkit.modules.stateful_module import (
    INNER,
    config_of,
    empty_cache,
    is_stateful,
    state_places,
)
from onnxbuild.onnxkit.modules.transformers_cache import tensors_of

if TYPE_CHECKING:
    Found = Mapping[tuple[int, str], torch.Tensor]
    Declared = Mapping[tuple[int, str], DummyInput]

_SMALL = 3
"""A size at which a model runs fast."""


def check_state(
    module: torch.nn.Module, inputs: Sequence[DummyInput], axes: Sequence[Axis], where: str
) -> None:
    """See that the Cache that a model makes itself is the declared one, and that the model has positions for all sizes.

    Raises:
        StepError: It has other layers, parts, sizes or another type; or sizes are beyond the model's positions.
    """
    growth = growth_in(inputs)
    if not is_stateful(module):
        return
    sizes = {each.name: each.nearest(_SMALL) for each in axes}
    if growth is not None:
        _check_positions(config_of(module), axes, growth, where)
        sizes |= {growth.axis: 0}
    state = {each.name: each for each in inputs if each.name in module.state_parameters}
    own = [each for each in inputs if each.name not in state]
    for name, places in state_places(module).items():
        declared = {place: state[each.input] for place, each in places.items()}
        found = _filled(module, name, make_feeds(own, sizes, "state"), own, where)
        if found is not None:
            _compare(name, found, declared, where)


def _filled(
    module: torch.nn.Module, name: str, feeds: Feeds, inputs: Sequence[DummyInput], where: str
) -> Found | None:
    """The tensors that forward puts into an empty Cache; None for one that an encoder fills.

    Raises:
        StepError: Forward fails, or puts nothing into it.
    """
    cache = empty_cache(module, name)
    if cache is None:
        return None
    inner = getattr(module, INNER)
    tensors = module_tensors(feeds, inputs, where)
    target = f"{type(inner).__name__}.forward"
    with torch.no_grad():
        call_user(lambda: inner(**tensors, **{name: cache}), target, where)
    found = tensors_of(cache)
    if not found:
        raise StepError(
            f"forward takes '{name}' and puts nothing into it",
            where=where,
            fix="load the model with `use_cache=True` in its config, and as one that generates (`...ForCausalLM`)",
        )
    return found


def check_new_state(
    inputs: Sequence[DummyInput],
    feeds: Mapping[str, np.ndarray],
    outputs: Mapping[str, np.ndarray],
    where: str,
) -> None:
    """See that each new state has the shape of what goes in, but for the axis along which it grows.

    Args:
        feeds: Of one call, with a state that is not empty.
        outputs: Of that call.

    Raises:
        StepError: One has another shape: it is another output, or a state that doesn't come back.
    """
    growth = growth_in(inputs)
    new = 0 if growth is None else prompt_length(feeds, inputs, growth)
    for each in state_inputs(inputs):
        went, came = feeds[each.name].shape, outputs[each.fed_by].shape
        expected = [
            size + new if each.growth is not None and d == each.growth.axis else size
            for d, size in zip(each.shape, went, strict=True)
        ]
        if list(came) != expected:
            raise StepError(
                f"output '{each.fed_by}' has shape {list(came)}; input '{each.name}', which it feeds, has "
                f"{list(went)}, so {expected} was expected",
                where=where,
                fix="return all `outputs` first, then the new state in the order of `each`, `return logits, *present`; or "
                "correct `shape` in `state`",
            )


def _check_positions(config: Any, axes: Sequence[Axis], growth: Growth, where: str) -> None:
    """Sizes that are tried: one axis at its greatest, the other at its example."""
    most = getattr(config, "max_position_embeddings", None)
    by_name = {each.name: each for each in axes}
    if not isinstance(most, int):
        return
    old = by_name[growth.axis]
    new = by_name.get(growth.by, Axis("one token", 1, 1, 1))
    for axis, other in ((old, new), (new, old)):
        if axis.max + other.example > most:
            raise StepError(
                f"{axis.name} {axis.max} and {other.name} {other.example} reach position "
                f"{axis.max + other.example - 1}; the model has {most} positions",
                where=where,
                fix=f"write `{axis.name}: {{max: {most - other.example}}}` in `dynamic_axes`"
                if most > other.example
                else f"write a smaller example for `{other.name}` in `dynamic_axes`",
            )


@dataclass(frozen=True, slots=True)
class _Outline:
    """Layers, parts, and the shape and dtype of the first tensor, of a Cache."""

    layers: tuple[int, ...]
    parts: tuple[str, ...]
    shape: tuple[int | str, ...]
    dtype: str

    def __str__(self) -> str:
        count = f"{len(self.layers)} layer{'s' * (len(self.layers) != 1)}"
        shape = ", ".join(map(str, self.shape))
        return f"{count} of {' and '.join(self.parts)}, {self.dtype} [{shape}]"


def _compare(name: str, found: Found, declared: Declared, where: str) -> None:
    differs = [
        place
        for place in {**declared, **found}
        if place not in found
        or place not in declared
        or _difference(declared[place], found[place])
    ]
    if not differs:
        return
    template = next(iter(declared.values()))
    made = _outline(found, lambda each: _in_symbols(template, each))
    wanted = _outline(declared, lambda each: (each.shape, each.dtype))
    layers: object = len(made.layers)
    if made.layers != tuple(range(len(made.layers))):
        layers = list(made.layers)
    layer, part = differs[0]
    raise StepError(
        f"the model's cache has {made}; `state.{name}` declares {wanted}; layer {layer}'s {part} is the first that "
        "differs",
        where=where,
        fix=f"write `each: {{layer: {layers}, part: [{', '.join(made.parts)}]}}`, `dtype: {made.dtype}` and "
        f"`shape: [{', '.join(map(str, made.shape))}]`",
    )


def _difference(declared: DummyInput, found: torch.Tensor) -> bool:
    shape = tuple(found.shape)
    fits = len(shape) == len(declared.shape) and all(
        isinstance(want, str) or want == size
        for want, size in zip(declared.shape, shape, strict=True)
    )
    return not fits or declared.dtype != _dtype(found)


def _in_symbols(template: DummyInput, found: torch.Tensor) -> tuple[tuple[int | str, ...], str]:
    """The shape of a tensor with the axes that are declared in their places."""
    shape: tuple[int | str, ...] = tuple(found.shape)
    if len(shape) == len(template.shape):
        pairs = zip(template.shape, shape, strict=True)
        shape = tuple(want if isinstance(want, str) else size for want, size in pairs)
    return shape, _dtype(found)


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _outline(tensors: Mapping[tuple[int, str], Any], of: Any) -> _Outline:
    layers = sorted({layer for layer, _ in tensors})
    parts = tuple(dict.fromkeys(part for _, part in tensors))
    return _Outline(tuple(layers), parts, *of(next(iter(tensors.values()))))
