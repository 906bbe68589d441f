"""A small CNN for scikit-learn's handwritten digits (8 x 8 pixels), trained by digits_train.py."""

from pathlib import Path

import numpy as np
import torch
from torch import nn

WEIGHTS = Path(__file__).with_name("digits.npz")
TEST_SHARE = 0.25
BATCH = 50


class DigitsNet(nn.Module):
    """Three 3 x 3 convolutions, two poolings, two linear layers: 23 thousand parameters."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
            nn.MaxPool2d(2),
        )  # fmt: skip
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Linear(128, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 10)
        )

    def forward(self, image):
        """Logits, (batch, 10), of images, (batch, 1, 8, 8), with values from 0 to 1."""
        return self.classifier(self.features(image))


def load():
    """The trained network."""
    model = DigitsNet()
    with np.load(WEIGHTS) as weights:
        model.load_state_dict({name: torch.from_numpy(weights[name]) for name in weights.files})
    return model.eval()


def split():
    """(images, labels) to train on and (images, labels) held out: the one place that divides them.

    Images are float32, (n, 1, 8, 8), from 0 to 1; 1,347 train, 450 test, classes in proportion.
    """
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    digits = load_digits()
    images = (digits.images[:, None] / 16).astype(np.float32)
    train, test, train_labels, test_labels = train_test_split(
        images, digits.target, test_size=TEST_SHARE, random_state=0, stratify=digits.target
    )
    return (train, train_labels), (test, test_labels)


def calibration():
    """Feeds to calibrate with, one image each, of the training share alone."""
    (images, _), _ = split()
    for n in range(len(images)):
        yield {"image": images[n : n + 1]}


def evaluation():
    """(feeds, labels) of the held-out share, in batches."""
    _, (images, labels) = split()
    for start in range(0, len(images), BATCH):
        yield {"image": images[start : start + BATCH]}, labels[start : start + BATCH]


def accuracy(outputs, labels):
    """The share of images whose greatest logit is the right one."""
    hits = [
        batch["logits"].argmax(axis=1) == truth
        for batch, truth in zip(outputs, labels, strict=True)
    ]
    return float(np.concatenate(hits).mean())
