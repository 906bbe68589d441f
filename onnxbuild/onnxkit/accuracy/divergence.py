"""Divergence of a model's distributions of the next token from another's, on the same tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


class TokenDivergence:
    """Mean KL divergence, top-1 agreement and ratio of perplexities, over all tokens that are added."""

    def __init__(self) -> None:
        self._divergences: list[float] = []
        self._losses: list[float] = []
        self._agreed = 0

    def add(self, models: Iterable[Iterable[np.ndarray]], tokens: np.ndarray) -> None:
        """Add what two models give while both go on with the same tokens.

        Args:
            models: Logits, shape (rows, vocabulary), for each token: of the exact model, then of the other.
            tokens: Those that both go on with, shape (rows, tokens).
        """
        import numpy as np

        for n, pair in enumerate(zip(*models, strict=True)):
            exact, other = (_log_softmax(logits) for logits in pair)
            self._divergences += (np.exp(exact) * (exact - other)).sum(-1).tolist()
            self._agreed += int((exact.argmax(-1) == other.argmax(-1)).sum())
            self._losses += (exact - other)[np.arange(len(other)), tokens[:, n]].tolist()

    def metrics(self) -> dict[str, Any]:
        """Return `kl`, in nats, `top1`, `perplexity_ratio` and how many tokens were `compared`; None where none were."""
        import numpy as np

        total = len(self._divergences)
        return {
            "kl": float(np.mean(self._divergences)) if total else None,
            "top1": self._agreed / total if total else None,
            "perplexity_ratio": float(np.exp(np.mean(self._losses))) if total else None,
            "compared": total,
        }


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    import numpy as np

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
