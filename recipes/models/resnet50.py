"""transformers' ResNet-50 for 224 x 224 images; weights are seeded, not trained."""

import numpy as np
import torch
from transformers import ResNetConfig, ResNetForImageClassification


def load(seed=0):
    """The network, 25.6 million parameters, with statistics as after some training."""
    torch.manual_seed(seed)
    model = ResNetForImageClassification(ResNetConfig(num_labels=1000)).eval()
    settle(model)
    return Logits(model)


class Logits(torch.nn.Module):
    """ResNet whose forward gives the logits alone."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, pixel_values):
        """Logits, (batch, 1000), of normalized images, (batch, 3, 224, 224)."""
        return self.model(pixel_values).logits


def settle(model):
    """Give each BatchNorm the statistics of some images: fresh ones let activations fade out."""
    norms = [each for each in model.modules() if isinstance(each, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = None
        norm.reset_running_stats()
        norm.train()
    with torch.no_grad():
        model(torch.from_numpy(images(4, seed=0)))
    model.eval()


def images(count, seed):
    """Normalized images of noise, float32, (count, 3, 224, 224), of mean 0 and deviation 1."""
    generator = np.random.default_rng(seed)
    return generator.standard_normal((count, 3, 224, 224), dtype=np.float32)


def calibration():
    """Feeds to calibrate with, one image each."""
    for n in range(64):
        yield {"pixel_values": images(1, seed=100 + n)}
