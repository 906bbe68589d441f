"""A module whose state is flat tensors: what forward takes as a list, or as a Cache of transformers', goes in and out by name."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError, did_you_mean
from onnxbuild.core.state import State, StateTensor
from onnxbuild.onnxkit.modules.module_outputs import has_keys, tensors_and_others
from onnxbuild.onnxkit.modules.transformers_cache import (
    cache_of,
    is_cross,
    new_cache,
    place_of,
    takes_cache,
    tensors_of,
)

if TYPE_CHECKING:
    import torch

INNER = "module"
"""The wrapper's name for the module inside."""

_USE_CACHE = "use_cache"
_PARAMETERS, _PLACES = "state_parameters", "state_places"
"""Attributes of the wrapper: input -> parameter; parameter -> (layer, part) -> tensor of the state."""


def stateful(module: torch.nn.Module, states: Sequence[State], where: str) -> torch.nn.Module:
    """A module that takes the tensors of the states by name, and gives the new ones by name.

    Raises:
        StepError: Forward has no such parameter, or a tensor is none that a Cache has.
    """
    import torch

    parameters = inspect.signature(module.forward).parameters
    for state in states:
        _check_parameter(state.parameter, module, parameters, where)
    cached = {
        state.parameter: {
            place_of(each.of, state.parameter, where): each for each in state.tensors
        }
        for state in states
        if takes_cache(getattr(parameters.get(state.parameter), "annotation", ""))
    }
    extra = {_USE_CACHE: True} if cached and _USE_CACHE in parameters else {}
    config = config_of(module)

    class Stateful(torch.nn.Module):  # type: ignore[misc] # torch is Any here
        def __init__(self) -> None:
            super().__init__()
            self.add_module(INNER, module)

        def forward(self, **inputs: torch.Tensor) -> object:
            grouped: dict[str, Any] = {}
            for state in states:
                tensors = [inputs.pop(each.input) for each in state.tensors]
                places = cached.get(state.parameter)
                grouped[state.parameter] = (
                    tensors
                    if places is None
                    else cache_of(dict(zip(places, tensors, strict=True)), config)
                )
            value = module(**inputs, **grouped, **extra)
            if not cached:
                _check_count(value, states, where)
                return value
            found = {
                each.output: tensor
                for name, places in cached.items()
                for place, tensor in tensors_of(grouped[name]).items()
                if (each := places.get(place)) and each.output
            }
            return _without_caches(value) | found

    Stateful.__name__ = Stateful.__qualname__ = type(module).__name__
    Stateful.forward.__signature__ = _as_method(parameters)  # type: ignore[attr-defined]
    wrapper = Stateful()
    wrapper.state_parameters = {
        each.input: state.parameter for state in states for each in state.tensors
    }
    wrapper.state_places = cached
    return wrapper.eval()


def _as_method(parameters: Mapping[str, inspect.Parameter]) -> inspect.Signature:
    """The signature of a method that takes these besides `self`."""
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    return inspect.Signature([first, *parameters.values()])


def is_stateful(module: torch.nn.Module) -> bool:
    """Return whether a module is one that `stateful` made."""
    return hasattr(module, _PLACES)


def config_of(module: torch.nn.Module) -> Any:
    """The configuration of transformers' model that a module is or holds, the outermost; None where there is none."""
    configs = (getattr(each, "config", None) for each in module.modules())
    return next((each for each in configs if hasattr(each, "num_hidden_layers")), None)


def empty_cache(module: torch.nn.Module, name: str) -> Any:
    """An empty Cache for a parameter of a stateful module; None where an encoder fills a part of it."""
    places = state_places(module)[name]
    return (
        None if any(is_cross(place) for place in places) else new_cache(places, config_of(module))
    )


def parameters_of(module: torch.nn.Module, names: Sequence[str]) -> list[str]:
    """Names of inputs -> the parameters of forward that they are, each once."""
    grouped: Mapping[str, str] = getattr(module, _PARAMETERS, {})
    return list(dict.fromkeys(grouped.get(name, name) for name in names))


def state_places(module: torch.nn.Module) -> Mapping[str, Mapping[tuple[int, str], StateTensor]]:
    """Parameter that takes a Cache -> (layer, part) -> the tensor; none for a module that takes lists."""
    found: Mapping[str, Mapping[tuple[int, str], StateTensor]] = getattr(module, _PLACES, {})
    return found


def _check_count(value: object, states: Sequence[State], where: str) -> None:
    """Refuse tensors by position that are too few for the new state and one output."""
    if has_keys(value):
        return
    tensors, _ = tensors_and_others(value)
    for state in states:
        if len(tensors) <= len(state.outputs):
            raise StepError(
                f"forward returns {len(tensors)} tensor{'s' * (len(tensors) != 1)}; state '{state.parameter}' alone needs "
                f"{len(state.outputs)} new ones after the outputs: no output feeds it",
                where=where,
                fix="return them, `return logits, *present`, in the order of its inputs: "
                f"{', '.join(state.outputs[:2])} and so on; or write `update: constant`",
            )


def _check_parameter(
    name: str, module: torch.nn.Module, parameters: Mapping[str, inspect.Parameter], where: str
) -> None:
    takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    if name in parameters or takes_any:
        return
    raise StepError(
        f"state '{name}' is not a parameter of {type(module).__name__}.forward, which takes "
        f"{', '.join(parameters) or 'none'}",
        where=where,
        fix=did_you_mean(name, parameters)
        or "name the parameter that takes the list of tensors, `parameter: NAME`",
    )


def _without_caches(value: object) -> dict[str, object]:
    """Return by key what forward returned, without a Cache: the outputs of a state are in its place."""
    from transformers import Cache

    if isinstance(value, Mapping):
        items = list(value.items())
    else:
        members = value if isinstance(value, (tuple, list)) else (value,)
        items = [(f"output_{n}", each) for n, each in enumerate(members)]
    return {str(key): each for key, each in items if not isinstance(each, Cache)}
