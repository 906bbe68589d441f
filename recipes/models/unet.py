"""A U-Net for segmentation, small, plain PyTorch; weights are seeded, not trained."""

import torch
from torch import nn

CLASSES = 4
POOLINGS = 4


class UNet(nn.Module):
    """Four times down and up again: heights and widths are multiples of 2 ** 4 = 16."""

    def __init__(self, width=8):
        super().__init__()
        widths = [width * 2**n for n in range(POOLINGS + 1)]
        self.down = nn.ModuleList(
            block(before, after) for before, after in zip([3, *widths[:-1]], widths, strict=True)
        )
        self.grow = nn.ModuleList(
            nn.ConvTranspose2d(2 * each, each, 2, stride=2) for each in reversed(widths[:-1])
        )
        self.up = nn.ModuleList(block(2 * each, each) for each in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, CLASSES, 1)

    def forward(self, image):
        """Scores of each class at each pixel, (batch, CLASSES, height, width)."""
        skipped = []
        x = self.down[0](image)
        for down in self.down[1:]:
            skipped.append(x)
            x = down(nn.functional.max_pool2d(x, 2))
        for grow, up in zip(self.grow, self.up, strict=True):
            x = up(torch.cat([grow(x), skipped.pop()], dim=1))
        return self.head(x)


def block(before, after):
    """Two convolutions of 3 x 3."""
    return nn.Sequential(
        nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(),
        nn.Conv2d(after, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(),
    )  # fmt: skip


def load(seed=0):
    """The network, 0.5 million parameters, with statistics as after some training."""
    torch.manual_seed(seed)
    model = UNet()
    norms = [each for each in model.modules() if isinstance(each, nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = None
    with torch.no_grad():
        model.train()(images(4, 64, 64, seed=0))
    return model.eval()


def images(count, height, width, seed):
    """Normalized images of noise, float32, (count, 3, height, width), of mean 0 and deviation 1."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, 3, height, width, generator=generator)


def calibration(count=100):
    """Feeds to calibrate with, of several sizes."""
    for n in range(count):
        yield {"image": images(1, 32 + 16 * (n % 3), 48 + 16 * (n % 2), seed=1 + n)}
