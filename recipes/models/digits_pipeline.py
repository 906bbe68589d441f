"""Pictures of any size in, the name of a digit out: the same pipeline as it stands in Python, with Pillow."""

import numpy as np
import torch
from digits import load, split
from PIL import Image

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SIDES = (8, 13, 24, 64)


def pictures(count):
    """Held-out digits as pictures of several sizes: uint8, (1, side, side, 1); one at a time."""
    _, (images, _) = split()
    for n, image in enumerate(images[:count]):
        side = SIDES[n % len(SIDES)]
        levels = (image[0] * 255).round().astype(np.uint8)
        picture = Image.fromarray(levels).resize((side, side), Image.Resampling.BICUBIC)
        yield np.asarray(picture)[None, :, :, None]


def expected(count=200):
    """(raw inputs, what the pipeline in Python makes of them)."""
    model = load()
    for picture in pictures(count):
        small = Image.fromarray(picture[0, :, :, 0]).resize((8, 8), Image.Resampling.BILINEAR)
        image = torch.from_numpy(np.asarray(small).astype(np.float32) / 255)[None, None]
        with torch.inference_mode():
            probabilities = model(image).softmax(-1)
        names = np.array(NAMES)[probabilities.argmax(-1).numpy()]
        yield {"picture": picture}, {"label": names, "probabilities": probabilities.numpy()}
