"""Tokens that PyTorch gives: by transformers' `generate`, or by texts that are computed anew for each token."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.data.user_code import call_user
from onnxbuild.onnxkit.loaders.decoding import chosen

if TYPE_CHECKING:
    import numpy as np
    import torch

    from onnxbuild.onnxkit.loaders.decoding import Arrays


def can_generate(model: object) -> bool:
    """Return whether a module has transformers' `generate`."""
    able = getattr(model, "can_generate", None)
    return able is not None and bool(able())


def generated(
    model: torch.nn.Module,
    feeds: Arrays,
    tokens: int,
    where: str,
    *,
    start: Sequence[int] = (),
    rules: Mapping[str, Any] | None = None,
) -> list[int]:
    """Return the tokens that `generate` gives for one row, whatever ends a text: the most likely ones, or drawn ones.

    Args:
        model: Of transformers.
        feeds: Its arguments, of a batch of one.
        tokens: How many.
        where: `recipe:step`, for messages.
        start: Ids that a decoder with an encoder begins with.
        rules: Arguments of `decoding.chosen`.

    Raises:
        StepError: It fails.
    """
    import torch
    from transformers import GenerationConfig

    config = GenerationConfig(
        max_new_tokens=tokens, do_sample=False, num_beams=1, use_cache=True, pad_token_id=0
    )
    rules, more = rules or {}, {}
    for name in ("suppress_tokens", "begin_suppress_tokens"):
        setattr(config, name, rules.get(name))
    if rules.get("temperature"):
        more["logits_processor"] = [_drawing(rules, len(start) or feeds["input_ids"].shape[1])]
    if start:
        config.decoder_start_token_id = start[0]
    if len(start) > 1:
        more["decoder_input_ids"] = torch.tensor([start])
    tensors = {name: torch.from_numpy(array) for name, array in feeds.items()}
    # its own would end a text early, by eos
    kept, model.generation_config = model.generation_config, GenerationConfig()

    def call() -> list[int]:
        with torch.no_grad():
            found = model.generate(**tensors, **more, generation_config=config)
        return [int(each) for each in found[0, -tokens:]]

    try:
        return call_user(call, f"{type(model).__name__}.generate", where)
    finally:
        model.generation_config = kept


def _drawing(
    rules: Mapping[str, Any], begin: int
) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Return what leaves `generate` one token to choose, the drawn one; `begin` is the length of the text before."""
    import torch

    def only_drawn(ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        token = torch.from_numpy(chosen(scores.numpy(), ids.shape[1] - begin, **rules))
        return torch.full_like(scores, -torch.inf).scatter(1, token[:, None], 0)

    return only_drawn


def recomputed(
    logits_after: Callable[[list[int]], np.ndarray],
    prompt: Sequence[int],
    tokens: int,
    rules: Mapping[str, Any] | None = None,
) -> list[int]:
    """Return the tokens after a prompt, with an empty state for each of them: the state is what is judged.

    Args:
        logits_after: Ids of a whole text -> logits of its next token, shape (1, vocabulary).
        prompt: Ids.
        tokens: How many.
        rules: Arguments of `decoding.chosen`.
    """
    text = [int(each) for each in prompt]
    for n in range(tokens):
        text.append(int(chosen(logits_after(text), n, **rules or {})[0]))
    return text[len(prompt) :]
