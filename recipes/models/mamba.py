"""transformers' Mamba, a state space model, small; weights are seeded, not trained."""

import torch
from transformers import MambaConfig, MambaForCausalLM

VOCABULARY = 2000


def load(seed=0, layers=2, width=64):
    """The network, 0.2 million parameters: its state passes from token to token in a Scan."""
    torch.manual_seed(seed)
    config = MambaConfig(
        vocab_size=VOCABULARY, hidden_size=width, state_size=8, num_hidden_layers=layers,
        use_cache=False,
    )  # fmt: skip
    return NextTokens(MambaForCausalLM(config).eval())


class NextTokens(torch.nn.Module):
    """Mamba whose forward gives the logits alone."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        """Logits of each next token, (batch, sequence, VOCABULARY)."""
        return self.model(input_ids).logits
