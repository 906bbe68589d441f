import numpy as np
import pytest

from onnxbuild.onnxkit.loaders.sounds import mel_bands
from onnxbuild.onnxkit.processing.options import LogMelOptions
from onnxbuild.onnxkit.processing.references import resample


@pytest.mark.parametrize(("scale", "norm"), [("htk", None), ("slaney", "slaney")])
def test_the_bands_are_those_of_transformers(scale, norm):
    audio_utils = pytest.importorskip("transformers.audio_utils")
    expected = audio_utils.mel_filter_bank(
        num_frequency_bins=201,
        num_mel_filters=40,
        min_frequency=20.0,
        max_frequency=8000.0,
        sampling_rate=16000,
        norm=norm,
        mel_scale=scale,
    )
    found = mel_bands(LogMelOptions(mels=40, low=20.0, scale=scale))
    assert np.allclose(found, expected.T, atol=1e-9)


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


@pytest.mark.parametrize("method", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [*SIZES, (1, 1), (2, 300)])
def test_without_antialias_pixels_are_those_of_interpolate(method, size):
    torch = pytest.importorskip("torch")
    pixels = np.random.default_rng(0).integers(0, 256, (2, *size, 3), np.uint8)
    image = torch.tensor(pixels).permute(0, 3, 1, 2).double()
    exact = torch.nn.functional.interpolate(image, (48, 40), mode=method, align_corners=False)
    expected = exact.round().clamp(0, 255).permute(0, 2, 3, 1).numpy()
    found = resample(pixels, 48, 40, method, antialias=False).astype(int)
    assert np.abs(found - expected).max() <= 1  # a half may be rounded either way
    assert (found != expected).mean() < 0.01
