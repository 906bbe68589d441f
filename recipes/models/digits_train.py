"""Train DigitsNet and write digits.npz: `python recipes/models/digits_train.py`, some seconds."""

import numpy as np
import torch
from digits import WEIGHTS, DigitsNet, split
from torch import nn

EPOCHS = 60
BATCH = 64


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    (images, labels), (test_images, test_labels) = split()
    images, labels = torch.from_numpy(images), torch.from_numpy(labels)
    model = DigitsNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    steps = EPOCHS * (len(images) // BATCH + 1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(EPOCHS):
        for chosen in torch.randperm(len(images)).split(BATCH):
            loss = nn.functional.cross_entropy(model(shifted(images[chosen])), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    model.eval()
    with torch.inference_mode():
        found = model(torch.from_numpy(test_images)).argmax(1).numpy()
    print(f"held-out accuracy {np.mean(found == test_labels):.4f} of {len(test_labels)} images")
    np.savez(WEIGHTS, **{name: tensor.numpy() for name, tensor in model.state_dict().items()})


def shifted(images):
    """Each batch moved by up to one pixel: the network sees more than 1,347 images."""
    down, right = torch.randint(-1, 2, (2,)).tolist()
    return torch.roll(images, (down, right), dims=(2, 3))


if __name__ == "__main__":
    main()
