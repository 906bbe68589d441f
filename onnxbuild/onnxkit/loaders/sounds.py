"""Sounds as arrays: log-mel spectrograms, and rows of .wav files. A package has a copy: NumPy is all that it imports."""

from __future__ import annotations

import math
import wave
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

SOUND_SUFFIX = ".wav"

WHISPER: Mapping[str, Any] = {
    "n_fft": 400, "hop": 160, "low": 0.0, "high": None, "scale": "slaney", "center": True,
    "log": "log10", "floor": 1e-10,
}  # fmt: skip
"""Spectrograms of all of Whisper's models: Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision", 2.2."""

_WHISPER_RANGE = 8.0
"""Range of values below the loudest element, in powers of ten; fainter ones are raised to it."""

_PCM_BYTES = 2


def row_of(file: str | Path, sound: Mapping[str, Any], shape: Sequence[int | str]) -> np.ndarray:
    """Return a .wav file as a model takes it, float32, without the axis of the batch.

    Args:
        file: PCM of 16 bits; several channels become their mean.
        sound: `form`: `samples` from -1 to 1; `normalized`, those with mean 0 and variance 1; or `whisper`, a spectrogram,
            with silence after the sound. And `rate`, samples a second.
        shape: Of the model's input: (batch, samples) or (batch, bands, frames).

    Raises:
        ValueError: It is no such file, of another rate, or longer than the model takes.
    """
    import numpy as np

    samples = _samples(file, sound["rate"])
    if sound["form"] == "normalized":
        samples = (samples - samples.mean()) / np.sqrt(samples.var() + 1e-7)
    if sound["form"] != "whisper":
        return samples.astype(np.float32)
    bands, frames = map(int, shape[1:])
    most = frames * WHISPER["hop"]
    if len(samples) > most:
        seconds = len(samples) / sound["rate"]
        raise ValueError(
            f"it has {seconds:.1f} s, and the model takes {most / sound['rate']:g}: cut it"
        )
    whole = np.pad(samples, (0, most - len(samples)))[None]
    options = SimpleNamespace(**WHISPER, mels=bands, sample_rate=sound["rate"])
    found = log_mel(whole, options)[0, :, :frames]
    found = np.maximum(found, found.max() - _WHISPER_RANGE)
    scaled: np.ndarray = (found + 4) / 4
    return scaled


def _samples(file: str | Path, rate: int) -> np.ndarray:
    """Samples from -1 to 1, float64."""
    import numpy as np

    try:
        with wave.open(str(file), "rb") as stream:
            own, channels, width = (
                stream.getframerate(), stream.getnchannels(), stream.getsampwidth(),
            )  # fmt: skip
            content = stream.readframes(stream.getnframes())
    except (wave.Error, EOFError) as error:
        raise ValueError(f"it is no .wav file of PCM: {error}") from error
    if width != _PCM_BYTES or own != rate or not content:
        raise ValueError(
            f"it has {len(content) // width // channels} samples of {8 * width} bits at {own} Hz; expected some of 16 bits "
            f"at {rate} Hz: `ffmpeg -i IN -ar {rate} -sample_fmt s16 OUT.wav`"
        )
    found: np.ndarray = np.frombuffer(content, "<i2").reshape(-1, channels).mean(1) / 32768
    return found


def log_mel(samples: np.ndarray, options: Any, _: str = "") -> np.ndarray:
    """Compute a spectrogram by numpy's FFT, in float64.

    Args:
        samples: Shape (batch, samples).
        options: With the attributes of LogMelOptions.

    Returns: float32, (batch, mels, frames).
    """
    import numpy as np

    half = options.n_fft // 2
    exact: np.ndarray = samples.astype(np.float64)
    if options.center:
        exact = np.pad(exact, ((0, 0), (half, half)), mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(exact, options.n_fft, axis=1)
    spectrum = np.fft.rfft(windows[:, :: options.hop] * hann(options.n_fft), axis=-1)
    power = np.abs(spectrum) ** 2 @ mel_bands(options).T
    found: np.ndarray = np.log(np.maximum(power, options.floor))
    found = found if options.log == "ln" else found / np.log(10.0)
    return found.transpose(0, 2, 1).astype(np.float32)


def hann(size: int) -> np.ndarray:
    """Return Hann's window, periodic: torch.hann_window(size)."""
    import numpy as np

    window: np.ndarray = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    return window


def mel_bands(options: Any) -> np.ndarray:
    """Return triangles over frequencies, (mels, n_fft // 2 + 1); torchaudio.functional.melscale_fbanks.

    Args:
        options: With the attributes of LogMelOptions.
    """
    import numpy as np

    top = options.high or options.sample_rate / 2
    frequencies = np.linspace(0, options.sample_rate / 2, options.n_fft // 2 + 1)
    low, high = (_to_mel(each, options.scale) for each in (options.low, top))
    mels = np.linspace(low, high, options.mels + 2)
    corners = np.array([_to_hertz(float(each), options.scale) for each in mels])
    distance = corners[:, None] - frequencies
    width = np.diff(corners)
    rising = -distance[:-2] / width[:-1, None]
    falling = distance[2:] / width[1:, None]
    bands: np.ndarray = np.maximum(0, np.minimum(rising, falling))
    if options.scale == "slaney":
        bands *= (2 / (corners[2:] - corners[:-2]))[:, None]
    return bands


_LINEAR_UP_TO_HZ, _HZ_A_MEL, _STEPS = 1000.0, 200 / 3, 27
"""Slaney's Auditory Toolbox: linear up to 1 kHz, then 27 steps for a factor of 6.4."""


def _to_mel(hertz: float, scale: str) -> float:
    if scale == "htk":
        return 2595 * math.log10(1 + hertz / 700)
    if hertz < _LINEAR_UP_TO_HZ:
        return hertz / _HZ_A_MEL
    return (
        _LINEAR_UP_TO_HZ / _HZ_A_MEL + math.log(hertz / _LINEAR_UP_TO_HZ) / math.log(6.4) * _STEPS
    )


def _to_hertz(mel: float, scale: str) -> float:
    if scale == "htk":
        return 700 * (10 ** (mel / 2595) - 1)
    least = _LINEAR_UP_TO_HZ / _HZ_A_MEL
    if mel < least:
        return mel * _HZ_A_MEL
    return _LINEAR_UP_TO_HZ * math.exp((mel - least) * math.log(6.4) / _STEPS)
