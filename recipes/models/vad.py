"""Silero VAD as its authors' PyTorch program computes it: what the ONNX file was made of."""

import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np


def original():
    """The probability of speech in 32 ms at 16 kHz, and the state for the next 32 ms."""
    import torch

    folder = Path(find_spec("silero_vad").origin).parent / "data"
    with warnings.catch_warnings(action="ignore"):  # TorchScript is deprecated
        both_rates = torch.jit.load(str(folder / "silero_vad.jit"))
    program = dict(both_rates.named_children())["_model"]  # of 16 kHz

    def predict(sound, state, rate):  # noqa: ARG001 - an input of the file
        with torch.no_grad():
            probability, after = program(torch.from_numpy(sound), torch.from_numpy(state))
        return {"speech": probability.numpy(), "state_out": after.numpy()}

    return predict


def samples():
    """Vowels: harmonics of a voice below two formants, in noise."""
    time = np.arange(576) / 16_000
    for seed in range(4):
        random = np.random.default_rng(seed)
        pitch, formants = random.uniform(90, 220), random.uniform((300, 900), (800, 2400))
        wave = random.normal(0, 0.002, time.shape)
        for number in range(1, 30):
            tone = number * pitch
            loud = sum(np.exp(-(((tone - each) / 200) ** 2)) for each in formants)
            wave += 0.1 * loud * np.sin(2 * np.pi * tone * time + random.uniform(0, 6))
        yield {
            "sound": wave.astype(np.float32)[None],
            "state": np.zeros((2, 1, 128), np.float32),
            "rate": np.array(16_000),
        }
