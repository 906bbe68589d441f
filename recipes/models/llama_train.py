"""Train the network of llama.py on docs/*.md and write its weights: `python recipes/models/llama_train.py`, some minutes."""

from pathlib import Path

import numpy as np
import torch
from llama import WEIGHTS, untrained
from safetensors.torch import save_file

DOCS = Path(__file__).parents[2] / "docs"
STEPS, BATCH, LENGTH = 450, 16, 256
WARM_UP = 30


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    pages = [each.read_bytes() for each in sorted(DOCS.glob("*.md"))]
    learned, held_out = (
        torch.from_numpy(np.frombuffer(text, np.uint8).astype(np.int64))
        for text in (b"".join(each[: -len(each) // 10] for each in pages),
                     b"".join(each[-len(each) // 10 :] for each in pages))
    )  # fmt: skip
    model = untrained()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, betas=(0.9, 0.95), weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=4e-3, total_steps=STEPS, pct_start=WARM_UP / STEPS
    )
    for step in range(STEPS):
        loss = loss_of(model, learned, torch.randint(len(learned) - LENGTH, (BATCH,)))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            print(f"step {step}: {loss.item():.3f} nats a byte", flush=True)
    with torch.inference_mode():
        starts = torch.arange(0, len(held_out) - LENGTH, LENGTH)
        losses = [loss_of(model.eval(), held_out, each).item() for each in starts.split(BATCH)]
    print(f"held out: {np.mean(losses):.3f} nats a byte")
    names = dict(model.named_parameters())  # the table that is the head, too, once
    WEIGHTS.parent.mkdir(exist_ok=True)
    save_file({name: each.detach().half().contiguous() for name, each in names.items()}, WEIGHTS)


def loss_of(model, text, starts):
    """Mean cross entropy of the next byte."""
    ids = torch.stack([text[start : start + LENGTH] for start in starts.tolist()])
    return model(ids, labels=ids).loss


if __name__ == "__main__":
    main()
