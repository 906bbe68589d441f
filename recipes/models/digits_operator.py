"""The network of digits.py, whose logits pass an operator of its own: digits::softclip."""

import torch
from digits import load as load_digits

LIMIT = 30.0


@torch.library.custom_op("digits::softclip", mutates_args=())
def softclip(x: torch.Tensor, limit: float) -> torch.Tensor:
    """Values within `limit`, smoothly: limit * tanh(x / limit), in PyTorch."""
    return limit * torch.tanh(x / limit)


@softclip.register_fake
def _(x, limit):  # noqa: ARG001 - as the operator
    return torch.empty_like(x)


class Clipped(torch.nn.Module):
    """The trained network, its logits clipped."""

    def __init__(self):
        super().__init__()
        self.network = load_digits()

    def forward(self, image):
        """Logits, (batch, 10), between -30 and 30."""
        return torch.ops.digits.softclip(self.network(image), LIMIT)


def load():
    """The network in eval mode."""
    return Clipped().eval()
