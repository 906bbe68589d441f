"""transformers' models with a recurrence or with experts, one or two layers, seeded weights."""

import torch

SIZES = {
    "vocab_size": 50, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1,
    "num_attention_heads": 2, "num_key_value_heads": 1, "use_cache": False, "pad_token_id": 0,
    "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
DELTA = {
    "num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 8, "head_dim": 8,
    "shared_expert_intermediate_size": 8, "linear_num_value_heads": 2, "linear_num_key_heads": 1,
    "linear_key_head_dim": 8, "linear_value_head_dim": 8, "layer_types": ["linear_attention"],
}  # fmt: skip


class Hidden(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids, attention_mask=attention_mask).last_hidden_state


def load(name):
    import transformers as t

    kinds = {
        "mamba": (t.MambaModel, t.MambaConfig, {"state_size": 8}),
        "qwen3_next": (t.Qwen3NextModel, t.Qwen3NextConfig, DELTA),
        "mixtral": (t.MixtralModel, t.MixtralConfig, EXPERTS),
        "mixtral_with_a_loop": (
            t.MixtralModel, t.MixtralConfig, {**EXPERTS, "experts_implementation": "eager"},
        ),
    }  # fmt: skip
    model, config, own = kinds[name]
    torch.manual_seed(0)
    return Hidden(model(config(**SIZES | own))).eval()
