"""Log-mel spectrograms: as ONNX operators, and in numpy."""

from __future__ import annotations

import math

from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.processing.options import LogMelOptions, ValueType
from onnxbuild.onnxkit.processing.writers import GraphWriter

_DIGITS = 12
"""Decimal places that are kept: the last bits of a sine differ between processors."""


def write_log_mel(
    graph: GraphWriter, value: str, result: str, options: LogMelOptions, _: ValueType
) -> None:
    """Fourier transform of windows by one convolution, squared and summed into bands."""
    half = options.n_fft // 2
    samples = graph.node("Unsqueeze", value, graph.constant([1], "int64"))
    if options.center:
        pads = graph.constant([0, 0, half, 0, 0, half], "int64")
        samples = graph.node("Pad", samples, pads, attributes={"mode": "reflect"})
    angles = 2 * np.pi * np.outer(np.arange(half + 1), np.arange(options.n_fft)) / options.n_fft
    waves = np.concatenate([np.cos(angles), np.sin(angles)]) * _window(options.n_fft)
    kernel = graph.constant(waves[:, None].round(_DIGITS), "float32")
    parts = graph.node("Conv", samples, kernel, attributes={"strides": [options.hop]})
    bands = mel_bands(options).round(_DIGITS)
    both = graph.constant(np.concatenate([bands, bands], axis=1), "float32")
    power = graph.node("MatMul", both, graph.node("Mul", parts, parts))
    least = graph.constant(options.floor, "float32")
    factor = 1.0 if options.log == "ln" else 1 / np.log(10.0)
    logarithm = graph.node("Log", graph.node("Max", power, least))
    graph.node("Mul", logarithm, graph.constant(factor, "float32"), results=(result,))


def log_mel(samples: np.ndarray, options: LogMelOptions, _: str = "") -> np.ndarray:
    """Compute a spectrogram by numpy's FFT, in float64.

    Returns: float32, (batch, mels, frames).
    """
    half = options.n_fft // 2
    exact: np.ndarray = samples.astype(np.float64)
    if options.center:
        exact = np.pad(exact, ((0, 0), (half, half)), mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(exact, options.n_fft, axis=1)
    spectrum = np.fft.rfft(windows[:, :: options.hop] * _window(options.n_fft), axis=-1)
    power = np.abs(spectrum) ** 2 @ mel_bands(options).T
    found: np.ndarray = np.log(np.maximum(power, options.floor))
    found = found if options.log == "ln" else found / np.log(10.0)
    return found.transpose(0, 2, 1).astype(np.float32)


def _window(size: int) -> np.ndarray:
    """Hann's, periodic: torch.hann_window(size)."""
    window: np.ndarray = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    return window


def mel_bands(options: LogMelOptions) -> np.ndarray:
    """Triangles over frequencies, (mels, n_fft // 2 + 1); torchaudio.functional.melscale_fbanks."""
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
