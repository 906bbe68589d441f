"""A .wav file is what transformers' own processors make of it; one that can't be says why. What packages copy imports NumPy alone."""

from __future__ import annotations

import ast
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

from onnxbuild.onnxkit.loaders import decoding, sounds
from onnxbuild.onnxkit.loaders.sounds import row_of
from onnxbuild.onnxkit.pipelines import parts

RATE = 16_000


def written(path: Path, seconds: float, *, rate: int = RATE, width: int = 2, channels: int = 1):
    """Write a rising tone with noise; return its samples, of one channel, from -1 to 1."""
    time = np.arange(int(seconds * rate)) / rate
    tone = np.sin(2 * np.pi * (200 + 900 * time) * time) * np.exp(-time)
    tone += np.random.default_rng(0).normal(size=tone.size) * 0.01
    samples = (tone / np.abs(tone).max(initial=1) * 20_000).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, width, rate, 0, "NONE", ""))
        file.writeframes(np.repeat(samples, channels).tobytes())
    return samples / 32768


@pytest.mark.parametrize(("bands", "channels"), [(80, 1), (128, 2)])
def test_a_spectrogram_is_that_of_transformers(tmp_path, bands, channels):
    transformers = pytest.importorskip("transformers")
    samples = written(tmp_path / "tone.wav", 2.5, channels=channels)
    extract = transformers.WhisperFeatureExtractor(feature_size=bands)
    (expected,) = extract(samples, sampling_rate=RATE, return_tensors="np").input_features
    sound = {"form": "whisper", "rate": RATE}
    found = row_of(tmp_path / "tone.wav", sound, ("batch", bands, 3000))
    assert (found.dtype, found.shape) == (np.float32, (bands, 3000))
    assert np.abs(found - expected).max() < 1e-4


def test_samples_are_as_they_are_or_normalized(tmp_path):
    transformers = pytest.importorskip("transformers")
    samples = written(tmp_path / "tone.wav", 0.5)
    shape = ("batch", "samples")
    found = row_of(tmp_path / "tone.wav", {"form": "samples", "rate": RATE}, shape)
    assert np.array_equal(found, samples.astype(np.float32))
    extract = transformers.Wav2Vec2FeatureExtractor(do_normalize=True)
    (expected,) = extract(samples, sampling_rate=RATE, return_tensors="np").input_values
    found = row_of(tmp_path / "tone.wav", {"form": "normalized", "rate": RATE}, shape)
    assert np.abs(found - expected).max() < 1e-5


@pytest.mark.parametrize(
    ("seconds", "changes", "said"),
    [
        (0.5, {"rate": 8000}, "16 bits at 8000 Hz; expected some of 16 bits at 16000 Hz: `ffmpeg"),
        (0.5, {"width": 1}, "of 8 bits at 16000 Hz; expected some of 16 bits"),
        (0, {}, "it has 0 samples"),
        (3, {}, "it has 3.0 s, and the model takes 2: cut it"),
    ],
)
def test_a_sound_that_the_model_does_not_take_is_refused(tmp_path, seconds, changes, said):
    written(tmp_path / "tone.wav", seconds, **changes)
    with pytest.raises(ValueError, match="it has") as error:
        row_of(tmp_path / "tone.wav", {"form": "whisper", "rate": RATE}, ("batch", 80, 200))
    assert said in str(error.value)


def test_a_file_that_is_no_sound_is_refused(tmp_path):
    (tmp_path / "tone.wav").write_bytes(b"RIFF")
    with pytest.raises(ValueError, match=r"no \.wav file of PCM"):
        row_of(tmp_path / "tone.wav", {"form": "samples", "rate": RATE}, ("batch", "samples"))


@pytest.mark.parametrize("module", [decoding, parts, sounds])
def test_a_file_that_packages_copy_imports_numpy_and_the_standard_library_alone(module):
    tree = ast.parse(Path(module.__file__).read_text("utf-8"))
    froms = {each.module for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)}
    plain = {n.name for each in ast.walk(tree) if isinstance(each, ast.Import) for n in each.names}
    names = {each.partition(".")[0] for each in froms | plain}
    assert names <= {"numpy", *sys.stdlib_module_names}
