"""Parts of transformers models and recurrent layers, replaced while exporting by forms that an exporter can follow."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    Step = Callable[[Any, tuple[torch.Tensor, ...]], tuple[Any, torch.Tensor]]


_MODELS = "transformers.models."

_EXPERTS = "_experts_implementation"


def has_recurrences(module: torch.nn.Module) -> bool:
    """Return whether the files of transformers that `module` is made from hold a loop over the sequence."""
    return any(_replaceable(module))


@contextlib.contextmanager
def scanned_recurrences(module: torch.nn.Module, notes: set[str]) -> Iterator[None]:
    """Replace the loops over the sequence that `module` runs; only torch.export can follow that.

    Args:
        notes: Gets a line for each function whose replacement was called.
    """

    def recording(name: str, replacement: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(replacement)
        def call(*args: Any, **options: Any) -> Any:
            notes.add(f"transformers' {name} is exported as an ONNX Scan over the sequence")
            return replacement(*args, **options)

        return call

    replaced = [(source, name, getattr(source, name)) for source, name in _replaceable(module)]
    try:
        for source, name, _ in replaced:
            setattr(source, name, recording(name, RECURRENCES[name]))
        yield
    finally:
        for source, name, original in replaced:
            setattr(source, name, original)


@contextlib.contextmanager
def grouped_experts(module: torch.nn.Module, notes: set[str]) -> Iterator[None]:
    """Let experts of transformers multiply in groups where their own way is a loop.

    `experts_implementation="eager"` loops over the experts that some token was sent to: their
    number is data. Grouped products compute the same for any routing.

    Args:
        notes: Gets a line where something was changed.
    """
    experts = [each for each in module.modules() if hasattr(each, "_apply_gate")]
    configs = {id(each.config): each.config for each in experts}
    eager = [each for each in configs.values() if getattr(each, _EXPERTS, None) == "eager"]
    try:
        for config in eager:
            setattr(config, _EXPERTS, "grouped_mm")
            notes.add('exported with `experts_implementation="grouped_mm"` in place of `eager`')
        yield
    finally:
        for config in eager:
            setattr(config, _EXPERTS, "eager")


def _replaceable(module: torch.nn.Module) -> list[tuple[ModuleType, str]]:
    return [
        (source, name)
        for source in _sources(module)
        for name in RECURRENCES
        if hasattr(source, name)
    ]


def _sources(module: torch.nn.Module) -> list[ModuleType]:
    """The files of transformers that define the classes of `module` and of what is in it."""
    names = {
        base.__module__
        for each in module.modules()
        for base in type(each).__mro__
        if base.__module__.startswith(_MODELS)
    }
    return [sys.modules[name] for name in sorted(names) if name in sys.modules]


def selective_scan(  # noqa: PLR0917  # called by position
    hidden_states: torch.Tensor,
    dt: torch.Tensor,
    A: torch.Tensor,  # noqa: N803  # called by these names
    B: torch.Tensor,  # noqa: N803
    C: torch.Tensor,  # noqa: N803
    D: torch.Tensor | None = None,  # noqa: N803
    z: torch.Tensor | None = None,
    delta_bias: torch.Tensor | None = None,
    *,
    delta_softplus: bool = False,
    return_last_state: bool = False,
    **_: object,
) -> Any:
    """Selective state space of Mamba (Gu and Dao 2023, algorithm 2).

    Args:
        dt: Step sizes, as hidden_states.
        delta_softplus: Apply softplus to dt.
        return_last_state: Return the state after the last position too.

    Returns: Outputs as hidden_states; with `return_last_state` also (batch, channels, states).
    """
    import torch
    from torch.nn import functional

    if delta_bias is not None:
        dt = dt + delta_bias.to(dt.dtype)[..., None]
    if delta_softplus:
        dt = functional.softplus(dt)

    def step(state: Any, now: tuple[torch.Tensor, ...]) -> tuple[Any, torch.Tensor]:
        x, delta, b, c = now
        decay = torch.exp(delta[..., None] * A)
        state = decay * state + delta[..., None] * b[:, None, :] * x[..., None]
        return state, torch.matmul(state.to(x.dtype), c[..., None])[..., 0]

    empty = hidden_states.new_zeros(*hidden_states.shape[:2], A.shape[-1])
    last, out = _scan(step, empty, (hidden_states, dt, B.float(), C), axis=2)
    if D is not None:
        out = out + hidden_states * D[None, :, None]
    if z is not None:
        out = out * functional.silu(z)
    return (out, last) if return_last_state else out


def chunk_scan(  # noqa: PLR0917  # called by position
    hidden_states: torch.Tensor,
    dt: torch.Tensor,
    A: torch.Tensor,  # noqa: N803
    B: torch.Tensor,  # noqa: N803
    C: torch.Tensor,  # noqa: N803
    chunk_size: int = 0,  # noqa: ARG001  # one position after the other needs no chunks
    D: torch.Tensor | None = None,  # noqa: N803
    dt_bias: torch.Tensor | None = None,
    initial_states: torch.Tensor | None = None,
    *,
    dt_softplus: bool = False,
    dt_limit: tuple[float, float] = (0.0, float("inf")),
    return_final_states: bool = False,
    **_: object,
) -> Any:
    """State space duality of Mamba-2 (Dao and Gu 2024, section 3) in its recurrent form.

    Args:
        hidden_states: (batch, sequence, heads, width).
        dt: Step sizes, (batch, sequence, heads).
        B: (batch, sequence, groups, states).
        D: Skip weights, (heads,) or (heads, width).
        initial_states: (batch, heads, width, states); zeros if None.
        dt_softplus: Apply softplus to dt.
        dt_limit: Range that dt is clamped to.
        return_final_states: Return the state after the last position too.

    Returns: Outputs as hidden_states in float32; with `return_final_states` also the state.
    """
    import torch
    from torch.nn import functional

    heads = hidden_states.shape[2]
    if dt_bias is not None:
        dt = dt + dt_bias.to(dt.dtype)
    if dt_softplus:
        dt = functional.softplus(dt)
    dt = torch.clamp(dt, min=dt_limit[0], max=dt_limit[1]).float()
    x = hidden_states.float()
    b, c = (_to_heads(each.float(), heads) for each in (B, C))

    def step(state: Any, now: tuple[torch.Tensor, ...]) -> tuple[Any, torch.Tensor]:
        x, dt, b, c = now
        decay = torch.exp(A.float() * dt)
        state = decay[..., None, None] * state + (dt[..., None] * x)[..., None] * b[:, :, None, :]
        return state, torch.matmul(state, c[..., None])[..., 0]

    state = initial_states
    if state is None:
        state = x.new_zeros(x.shape[0], heads, x.shape[-1], b.shape[-1])
    last, out = _scan(step, state.to(x.dtype), (x, dt, b, c), axis=1)
    if D is not None:
        out = out + D[..., None] * x
    return (out, last) if return_final_states else out


def gated_delta_rule(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    *,
    initial_state: torch.Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    **_: object,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Gated delta rule (Yang, Kautz and Hatamizadeh 2024, equation 10) in its recurrent form.

    Args:
        query: (batch, sequence, heads, key width).
        key: Same shape as query.
        value: (batch, sequence, value heads, value width).
        g: Logarithm of the decay, (batch, sequence, value heads), or one for each key channel:
            (batch, sequence, value heads, key width).
        beta: Strength of each write, (batch, sequence, value heads).
        initial_state: (batch, value heads, key width, value width); zeros if None.
        output_final_state: Return the state after the last position too.
        use_qk_l2norm_in_kernel: Scale queries and keys to length 1.

    Returns: Outputs as value, and the state or None.
    """
    import torch

    heads, dtype = value.shape[2], query.dtype
    query, key = (_to_heads(each.float(), heads) for each in (query, key))
    if use_qk_l2norm_in_kernel:
        query, key = (
            each * torch.rsqrt((each * each).sum(-1, keepdim=True) + 1e-6) for each in (query, key)
        )
    query = query * query.shape[-1] ** -0.5
    value, decay = value.float(), g.float().exp()
    if decay.ndim == beta.ndim:
        decay = decay[..., None]

    def step(state: Any, now: tuple[torch.Tensor, ...]) -> tuple[Any, torch.Tensor]:
        query, key, value, decay, beta = now
        state = state * decay[..., None]
        held = (state * key[..., None]).sum(-2)
        write = (value - held) * beta[..., None]
        state = state + key[..., None] * write[..., None, :]
        return state, (state * query[..., None]).sum(-2)

    state = initial_state
    if state is None:
        state = value.new_zeros(value.shape[0], heads, key.shape[-1], value.shape[-1])
    sequences = (query, key, value, decay, beta.float())
    last, out = _scan(step, state.to(value.dtype), sequences, axis=1)
    return out.to(dtype), last if output_final_state else None


def rwkv_attention(
    time_decay: torch.Tensor,
    time_first: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    state: Any = None,
    *,
    return_state: bool = False,
) -> tuple[torch.Tensor, Any]:
    """WKV of RWKV-4 (Peng et al. 2023, appendix D), its exponents kept below 1.

    Args:
        time_decay: Logarithm of the decay, (channels,).
        time_first: Bonus of the position itself, (channels,).
        value: Same shape as key.
        state: Numerator, denominator and largest exponent before, (batch, channels) each.
        return_state: Return them after the last position.

    Returns: Outputs as key, and the state or None.
    """
    import torch

    decay = -torch.exp(time_decay)

    def step(state: Any, now: tuple[torch.Tensor, ...]) -> tuple[Any, torch.Tensor]:
        above, below, largest = state
        key, value = now
        top = torch.maximum(largest, key + time_first)
        old, new = torch.exp(largest - top), torch.exp(key + time_first - top)
        out = (old * above + new * value) / (old * below + new)
        top = torch.maximum(largest + decay, key)
        old, new = torch.exp(largest + decay - top), torch.exp(key - top)
        return (old * above + new * value, old * below + new, top), out

    first = state
    if first is None:
        zeros = torch.zeros_like(key[:, 0], dtype=torch.float32)
        first = (zeros, zeros.clone(), zeros - 1e38)
    last, out = _scan(step, tuple(first), (key.float(), value), axis=1)
    return out.to(key.dtype), list(last) if return_state or state is not None else None


RECURRENCES: Mapping[str, Callable[..., Any]] = {
    "mamba_selective_scan": selective_scan,
    "mamba2_chunk_scan": chunk_scan,
    "torch_chunk_gated_delta_rule": gated_delta_rule,
    "torch_recurrent_gated_delta_rule": gated_delta_rule,
    "chunk_kimi_delta_attention": gated_delta_rule,
    "recurrent_kimi_delta_attention": gated_delta_rule,
    "rwkv_linear_attention": rwkv_attention,
}
"""Function of a transformers module -> what computes the same and can be exported."""


def _scan(
    step: Step, state: Any, sequences: tuple[torch.Tensor, ...], *, axis: int
) -> tuple[Any, torch.Tensor]:
    """Run `step` along an axis; return the last state, and the outputs stacked along the axis."""
    from torch._higher_order_ops.scan import scan

    moved = tuple(each.movedim(axis, 0) for each in sequences)
    last, outputs = scan(step, state, moved)
    return last, outputs.movedim(0, axis)


def _to_heads(values: torch.Tensor, heads: int) -> torch.Tensor:
    """Repeat each group of axis 2 for the consecutive heads that share it."""
    groups = values.shape[2]
    if groups == heads:
        return values
    return values.repeat_interleave(heads // groups, dim=2, output_size=heads)
