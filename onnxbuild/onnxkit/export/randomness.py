"""Check that forward gives the same twice: one that draws or remembers can't be compared."""

from __future__ import annotations

import random
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.user_code import line_of
from onnxbuild.onnxkit.export.torch_module import run_module
from onnxbuild.onnxkit.frameworks import np

if TYPE_CHECKING:
    import torch

_SAME = 1e-4
"""Relative to the greatest element: sums in another order stay below, a dropout does not."""


def refuse_random(
    module: torch.nn.Module,
    feeds: Feeds,
    outputs: Mapping[str, np.ndarray],
    where: str,
    *,
    inputs: Sequence[DummyInput] = (),
) -> None:
    """Run forward once more on the same feeds, the generators' states as the first run left them.

    Args:
        module: Module whose forward gave `outputs` for `feeds`.
        feeds: One set of inputs.
        outputs: Output name -> array of the first run.
        where: `recipe:step`, for messages.
        inputs: Their dtypes, where numpy lacks one.

    Raises:
        StepError: An output differs; says whether forward draws random numbers, on which line, or
            keeps something from call to call.
    """
    run = partial(_outputs_again, module, feeds, outputs, where, inputs)
    name = first_that_differs(outputs, run())
    if not name:
        return
    what = f"PyTorch's own two runs on the same inputs differ in output '{name}'"
    state = _random_state()
    with _random_operators() as drawn:
        one = run()
    _set_random_state(state)
    if first_that_differs(one, run()):
        raise _keeps(what, where)
    raise _draws(what, drawn, where)


def _draws(what: str, drawn: Sequence[tuple[str, str, bool]], where: str) -> StepError:
    operator, line, is_dropout = next(iter(drawn), ("", "", False))
    if not operator:
        operator = "Python's or numpy's generator"
    return StepError(
        f"{what}: forward draws random numbers ({operator}{f' at {line}' if line else ''})",
        where=line or where,
        fix="write `training=self.training` in that dropout, and call no `.train()` in forward"
        if is_dropout
        else "take the random tensor as an input of forward, or draw it once in `__init__`",
    )


def refuse_kept(
    module: torch.nn.Module,
    feeds: Feeds,
    outputs: Mapping[str, np.ndarray],
    where: str,
    *,
    inputs: Sequence[DummyInput] = (),
) -> None:
    """Run forward on its first feeds once more, after it ran on others; arguments as for `refuse_random`.

    Raises:
        StepError: An output differs, although two runs in a row did not: forward keeps something of its calls,
            or a draw was the same by chance.
    """
    run = partial(_outputs_again, module, feeds, outputs, where, inputs)
    name = first_that_differs(outputs, run())
    if not name:
        return
    what = f"PyTorch's own two runs on the same inputs, with others between them, differ in output '{name}'"
    with _random_operators() as drawn:
        run()
    raise _draws(what, drawn, where) if drawn else _keeps(what, where)


def _outputs_again(
    module: torch.nn.Module,
    feeds: Feeds,
    outputs: Mapping[str, np.ndarray],
    where: str,
    inputs: Sequence[DummyInput],
) -> dict[str, np.ndarray]:
    return run_module(module, feeds, where, tuple(outputs), inputs=inputs).outputs


def _keeps(what: str, where: str) -> StepError:
    return StepError(
        f"{what}: forward keeps something from call to call (a counter, a buffer, a cache)",
        where=where,
        fix="take what it keeps as an input and return it as an output, or reset it at the "
        "start of forward",
    )


def first_that_differs(ones: Mapping[str, np.ndarray], others: Mapping[str, np.ndarray]) -> str:
    """The name of the first output that is not the same twice; empty if all are."""
    for name, one in ones.items():
        other = others[name]
        if one.shape != other.shape or one.dtype != other.dtype:
            return name
        if one.dtype.kind not in "fc":
            if not np.array_equal(one, other):
                return name
            continue
        finite = one[np.isfinite(one)]
        scale = float(np.abs(finite).max()) if finite.size else 0.0
        if not np.allclose(one, other, rtol=_SAME, atol=_SAME * scale, equal_nan=True):
            return name
    return ""


def _random_state() -> tuple[Any, Any, Any]:
    import torch

    return torch.get_rng_state(), random.getstate(), np.random.get_state()


def _set_random_state(state: tuple[Any, Any, Any]) -> None:
    import torch

    torch.set_rng_state(state[0])
    random.setstate(state[1])
    np.random.set_state(state[2])


@contextmanager
def _random_operators() -> Iterator[list[tuple[str, str, bool]]]:
    """The operators that draw random numbers: name, the user's line, whether it is a dropout's."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    found: list[tuple[str, str, bool]] = []

    class Watch(TorchDispatchMode):  # type: ignore[misc] # torch is Any here
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if torch.Tag.nondeterministic_seeded in func.tags:
                frames = traceback.extract_stack()
                is_dropout = any("dropout" in frame.name for frame in frames)
                name = "dropout" if is_dropout else str(func.overloadpacket)
                found.append((name, line_of(frames, sys.path), is_dropout))
            return func(*args, **(kwargs or {}))

    with Watch():
        yield found
