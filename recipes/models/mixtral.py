"""transformers' Mixtral, a mixture of experts, small; weights are seeded, not trained."""

import torch
from transformers import MixtralConfig, MixtralForCausalLM

VOCABULARY = 2000
EXPERTS = 4


def load(seed=0, layers=2, width=64):
    """The network, 0.5 million parameters; a router sends each token to two of four experts."""
    torch.manual_seed(seed)
    config = MixtralConfig(
        vocab_size=VOCABULARY, hidden_size=width, intermediate_size=2 * width,
        num_hidden_layers=layers, num_attention_heads=4, num_key_value_heads=2,
        num_local_experts=EXPERTS, num_experts_per_tok=2, max_position_embeddings=256,
        use_cache=False,
    )  # fmt: skip
    model = MixtralForCausalLM(config).eval()
    for layer in model.model.layers:
        separate(layer.mlp.gate)
    return NextTokens(model)


def separate(router):
    """Let a router choose clearly, as after training: rounding must not change the expert."""
    router.weight.data.mul_(20)


class NextTokens(torch.nn.Module):
    """Mixtral whose forward gives the logits alone."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        """Logits of each next token, (batch, sequence, VOCABULARY)."""
        return self.model(input_ids, attention_mask=attention_mask).logits
