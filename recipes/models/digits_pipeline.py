"""Decoded JPEG files of any size in, the name of a digit out: the same pipeline as it stands in Python, with Pillow."""

import io

import numpy as np
import torch
from digits import load, split
from PIL import Image

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SIZES = ((24, 24), (40, 24), (33, 57), (64, 64), (96, 80))
"""Width and height of pictures, in turn."""


def jpeg(image, size):
    """A held-out digit as the bytes of a JPEG file, of a size in pixels."""
    levels = (image[0] * 255).round().astype(np.uint8)
    picture = Image.fromarray(levels).resize(size, Image.Resampling.BICUBIC)
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=90)
    return file.getvalue()


def files(count):
    """JPEG files of held-out digits, of several sizes."""
    _, (images, _) = split()
    return [jpeg(image, SIZES[n % len(SIZES)]) for n, image in enumerate(images[:count])]


def decoded(file):
    """Pixels of a JPEG file as Pillow decodes it: uint8, (1, height, width, 1)."""
    return np.asarray(Image.open(io.BytesIO(file)))[None, :, :, None]


def own():
    """The pipeline as it stands in Python: pixels -> name and probabilities."""
    model = load()

    def classify(picture):
        small = [
            Image.fromarray(each[:, :, 0]).resize((8, 8), Image.Resampling.BILINEAR)
            for each in picture
        ]
        pixels = np.stack([np.asarray(each) for each in small])[:, None]
        with torch.inference_mode():
            probabilities = model(torch.from_numpy(pixels.astype(np.float32) / 255)).softmax(-1)
        names = np.array(NAMES)[probabilities.argmax(-1).numpy()]
        return {"label": names, "probabilities": probabilities.numpy()}

    return classify


def expected(count=200):
    """(raw inputs, what the pipeline in Python makes of them)."""
    classify = own()
    for file in files(count):
        picture = decoded(file)
        yield {"picture": picture}, classify(picture)


def evaluation():
    """(pixels of a JPEG file, the digit's name) of the held-out share."""
    _, (_, labels) = split()
    for file, label in zip(files(len(labels)), labels, strict=True):
        yield {"picture": decoded(file)}, [NAMES[label]]


def accuracy(outputs, labels):
    """The share of pictures whose name is the right one."""
    hits = [each["label"].tolist() == truth for each, truth in zip(outputs, labels, strict=True)]
    return float(np.mean(hits))
