"""Divergence of a model's distributions of the next token from another's, on the same tokens."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from onnxbuild.onnxkit.frameworks import np


class TokenDivergence:
    """Mean KL divergence, top-1 agreement and ratio of perplexities, over all tokens that are added."""

    def __init__(self) -> None:
        self._divergences: dict[int, list[float]] = defaultdict(list)
        self._losses: dict[int, list[float]] = defaultdict(list)
        self._agreed = 0

    def add(
        self, models: Iterable[Iterable[np.ndarray]], tokens: np.ndarray, prompts: Sequence[int]
    ) -> None:
        """Add what two models give while both go on with the same tokens.

        Args:
            models: Logits, shape (rows, vocabulary), for each token: of the exact model, then of the other.
            tokens: Those that both go on with, shape (rows, tokens).
            prompts: Number of each row's prompt.
        """
        for n, pair in enumerate(zip(*models, strict=True)):
            exact, other = (log_softmax(logits) for logits in pair)
            divergences = (np.exp(exact) * (exact - other)).sum(-1).tolist()
            self._agreed += int((exact.argmax(-1) == other.argmax(-1)).sum())
            losses = (exact - other)[np.arange(len(other)), tokens[:, n]].tolist()
            for prompt, divergence, loss in zip(prompts, divergences, losses, strict=True):
                self._divergences[prompt].append(divergence)
                self._losses[prompt].append(loss)

    def metrics(self) -> dict[str, Any]:
        """Return `kl`, in nats, `top1`, `perplexity_ratio` and how many tokens were `compared`; None where none were."""
        divergences, losses = (
            [number for each in found.values() for number in each]
            for found in (self._divergences, self._losses)
        )
        total = len(losses)
        return {
            "kl": float(np.mean(divergences)) if total else None,
            "top1": self._agreed / total if total else None,
            "perplexity_ratio": float(np.exp(np.mean(losses))) if total else None,
            "compared": total,
        }

    def by_prompt(self) -> list[dict[str, Any]]:
        """Return each prompt's `kl`, `loss` (the logarithm of its ratio of perplexities) and number of tokens `compared`."""
        return [
            {
                "prompt": n,
                "kl": float(np.mean(self._divergences[n])),
                "loss": float(np.mean(losses)),
                "compared": len(losses),
            }
            for n, losses in sorted(self._losses.items())
        ]


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Logarithms of the probabilities along the last axis, float64."""
    shifted = logits.astype(np.float64) - logits.max(-1, keepdims=True)
    found: np.ndarray = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return found


def too_far(kl: float | None, most: float | None) -> str:
    """Return what is wrong with a mean KL divergence in nats; empty if it is at most what is allowed."""
    if most is None or kl is None or kl <= most:
        return ""
    return (
        f"the mean KL divergence from the fp32 model is {kl:.3g} nats; expected at most {most:g}"
    )
