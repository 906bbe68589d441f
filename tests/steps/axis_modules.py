"""Networks whose axes have rules: sizes that halve four times, a cache that may be empty."""

import torch
from torch import nn


class UNet(nn.Module):
    """Four poolings, so that height and width are multiples of 16."""

    def __init__(self, channels=4, depth=4):
        super().__init__()
        torch.manual_seed(0)
        firsts = [1, *[channels] * (depth - 1)]
        self.down = nn.ModuleList(nn.Conv2d(n, channels, 3, padding=1) for n in firsts)
        self.up = nn.ModuleList(nn.ConvTranspose2d(channels, channels, 2, 2) for _ in firsts)
        self.fuse = nn.ModuleList(nn.Conv2d(2 * channels, channels, 3, padding=1) for _ in firsts)

    def forward(self, image):
        kept = []
        x = image
        for convolution in self.down:
            x = torch.relu(convolution(x))
            kept.append(x)
            x = torch.max_pool2d(x, 2)
        for up, fuse in zip(self.up, self.fuse, strict=True):
            x = torch.relu(fuse(torch.cat([up(x), kept.pop()], 1)))
        return x


class CachedAttention(nn.Module):
    """New positions look at those of the cache and at each other; the mask spans both."""

    def __init__(self, width=8):
        super().__init__()
        torch.manual_seed(0)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x, past_key, past_value, mask):
        key = torch.cat([past_key, self.key(x)], 1)
        value = torch.cat([past_value, self.value(x)], 1)
        scores = self.query(x) @ key.transpose(1, 2) + (1 - mask[:, None, :]) * -1e4
        return torch.softmax(scores, -1) @ value, key, value


def load(name):
    return globals()[name]()
