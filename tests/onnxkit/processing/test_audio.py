import numpy as np
import pytest

from onnxbuild.onnxkit.processing.audio import mel_bands
from onnxbuild.onnxkit.processing.options import LogMelOptions


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
