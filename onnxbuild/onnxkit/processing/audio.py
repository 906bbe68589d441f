"""Log-mel spectrograms as ONNX operators."""

from __future__ import annotations

from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.loaders.sounds import hann, mel_bands
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
    waves = np.concatenate([np.cos(angles), np.sin(angles)]) * hann(options.n_fft)
    kernel = graph.constant(waves[:, None].round(_DIGITS), "float32")
    parts = graph.node("Conv", samples, kernel, attributes={"strides": [options.hop]})
    bands = mel_bands(options).round(_DIGITS)
    both = graph.constant(np.concatenate([bands, bands], axis=1), "float32")
    power = graph.node("MatMul", both, graph.node("Mul", parts, parts))
    least = graph.constant(options.floor, "float32")
    factor = 1.0 if options.log == "ln" else 1 / np.log(10.0)
    logarithm = graph.node("Log", graph.node("Max", power, least))
    graph.node("Mul", logarithm, graph.constant(factor, "float32"), results=(result,))
