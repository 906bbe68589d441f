"""Let PyTorch continue prompts greedily: the tokens that a decoder's variants must give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.data.greedy import Roles, decode, roles_of
from onnxbuild.onnxkit.data.prompts import TOKENIZER_INPUT, TextPrompts, read_prompts
from onnxbuild.onnxkit.data.user_code import call_user
from onnxbuild.onnxkit.export.torch_module import (
    load_module,
    make_torch_deterministic,
    run_module,
)
from onnxbuild.onnxkit.host.progress import counted
from onnxbuild.onnxkit.modules.stateful_module import INNER
from onnxbuild.onnxkit.reports import write_report

if TYPE_CHECKING:
    import numpy as np
    import torch


@dataclass(frozen=True, slots=True)
class ExpectedTokensParams:
    """Parameters of a run of PyTorch.

    Attributes:
        prompts: A callable that yields ids, files that hold them, or DUMMY_DATA.
        tokens: Number of tokens that follow each.
        count: Number of prompts.
        seed: Seed of random ones.
        texts: Prompts as texts, in place of `prompts`.
    """

    model: Entrypoint
    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]
    outputs: tuple[str, ...]
    prompts: Entrypoint
    tokens: int
    count: int
    seed: int
    texts: TextPrompts | None = field(default=None, metadata={"sparse": True})


def run(context: StepContext) -> Outcome:
    """Write report.json: prompts, and the tokens that follow each, alone in its batch.

    A model of transformers' that has `generate` gives them by that; any other computes the whole text anew for every
    token, so that its state, which is judged, is not used.

    Raises:
        StepError: The prompts are none, or PyTorch fails.
    """
    params: ExpectedTokensParams = context.params
    make_torch_deterministic()
    roles = roles_of(params.inputs)
    prompts = read_prompts(
        context,
        params.texts or params.prompts,
        roles,
        params.axes,
        count=params.count,
        tokens=params.tokens,
        seed=params.seed,
    )
    module = load_module(context, params.model)
    inner: Any = getattr(module, INNER)
    able = getattr(inner, "can_generate", None)
    by_generate = able is not None and bool(able())
    found = [
        _generated(inner, prompt, params.tokens, context.where)
        if by_generate
        else _recomputed(module, roles, prompt, context)
        for prompt in counted(prompts, "prompts")
    ]
    write_report(
        context.output("tokens"),
        {
            "by": "generate" if by_generate else "forward",
            "prompts": [each.tolist() for each in prompts],
            "tokens": found,
        },
    )
    distinct = len({token for each in found for token in each})
    return Outcome({"prompts": len(prompts), "tokens": params.tokens, "distinct": distinct})


def _generated(model: torch.nn.Module, prompt: np.ndarray, tokens: int, where: str) -> list[int]:
    import torch
    from transformers import GenerationConfig

    config = GenerationConfig(
        max_new_tokens=tokens, do_sample=False, num_beams=1, use_cache=True, pad_token_id=0
    )
    ids = torch.from_numpy(prompt)[None]
    kept, model.generation_config = (
        model.generation_config,
        GenerationConfig(),
    )  # its eos would end a text early

    def call() -> list[int]:
        with torch.no_grad():
            found = model.generate(
                ids, attention_mask=torch.ones_like(ids), generation_config=config
            )
        return [int(each) for each in found[0, len(prompt) :]]

    try:
        return call_user(call, f"{type(model).__name__}.generate", where)
    finally:
        model.generation_config = kept


def _recomputed(
    module: torch.nn.Module, roles: Roles, prompt: np.ndarray, context: StepContext
) -> list[int]:
    import numpy as np

    params: ExpectedTokensParams = context.params
    logits = params.outputs[0]

    def forward(feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return run_module(
            module, feeds, context.where, params.outputs, inputs=params.inputs
        ).outputs

    text: Sequence[int] = prompt.tolist()
    for _ in range(params.tokens):
        (last,) = decode(forward, roles, [np.array(text)], 1, logits=logits)
        text = [*text, int(last[0].argmax())]
    return list(text[len(prompt) :])


KIND = StepKind(
    name="expected-tokens",
    version=1,
    params=ExpectedTokensParams,
    inputs=(f"{TOKENIZER_INPUT}?",),
    outputs={"tokens": "report"},
    toolchain=("torch", "numpy"),
    run=run,
    user_code=True,
    entrypoints=lambda params: (
        params.model,
        params.texts.tokenizer if params.texts else params.prompts,
    ),
)
