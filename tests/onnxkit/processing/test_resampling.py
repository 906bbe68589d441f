import numpy as np
import pytest

from onnxbuild.onnxkit.processing.resampling import resample

SIZES = [(100, 131), (20, 17), (300, 33), (48, 40), (20, 300), (7, 9), (60, 33)]


@pytest.mark.parametrize("method", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", SIZES)
def test_the_reference_gives_pillows_pixels(method, size):
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (1, *size, 3), np.uint8)
    filters = {"bilinear": image.Resampling.BILINEAR, "bicubic": image.Resampling.BICUBIC}
    expected = np.asarray(image.fromarray(pixels[0]).resize((40, 48), filters[method]))
    found = resample(pixels, 48, 40, method, antialias=True)[0]
    assert np.array_equal(found, expected)


def test_without_antialias_pixels_between_are_left_out():
    pixels = np.zeros((1, 8, 8, 1), np.uint8)
    pixels[:, ::4] = 255  # lines that a filter of two pixels, four apart, does not touch
    assert resample(pixels, 2, 2, "bilinear", antialias=False).max() == 0
    assert resample(pixels, 2, 2, "bilinear", antialias=True).min() > 0
