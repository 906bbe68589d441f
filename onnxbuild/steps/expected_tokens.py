"""Let PyTorch continue prompts greedily: the tokens that a decoder's variants must give."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.data.greedy import roles_of
from onnxbuild.onnxkit.data.prompts import TOKENIZER_INPUT, TextPrompts, read_prompts
from onnxbuild.onnxkit.export.torch_module import load_module, make_torch_deterministic, run_module
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.host.progress import counted
from onnxbuild.onnxkit.loaders.decoding import decode
from onnxbuild.onnxkit.modules.pytorch_tokens import can_generate, generated, recomputed
from onnxbuild.onnxkit.modules.stateful_module import INNER
from onnxbuild.onnxkit.reports import write_report

if TYPE_CHECKING:
    from onnxbuild.onnxkit.data.states import Feeds


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
    inner = getattr(module, INNER)
    by_generate = can_generate(inner)
    decoder = roles.decoder(params.outputs[0])

    def forward(feeds: Feeds) -> Feeds:
        return run_module(
            module, feeds, context.where, params.outputs, inputs=params.inputs
        ).outputs

    def logits_after(text: list[int]) -> np.ndarray:
        return next(decode(forward, decoder, [np.array(text)], 1))

    def tokens_after(prompt: np.ndarray) -> list[int]:
        if not by_generate:
            return recomputed(logits_after, prompt.tolist(), params.tokens)
        feeds = {"input_ids": prompt[None], "attention_mask": np.ones_like(prompt[None])}
        return generated(inner, feeds, params.tokens, context.where)

    found = [tokens_after(each) for each in counted(prompts, "prompts")]
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
