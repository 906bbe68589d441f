"""Subjects of the comparison: each model with its ways to be stored, its data, and how its outputs are judged."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent

Feeds = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Way:
    """One way of ours.

    Attributes:
        variant: Of the recipe.
        settings: `--set` that it needs: calibration's method is the recipe's, not a variant's.
    """

    variant: str
    settings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Subject:
    """A model.

    Attributes:
        name: For files and options.
        title: For people.
        recipe: Its ways.
        ways: Name -> ours.
        base: Name of the way whose speed is 1.
        timed_at: What the latency is measured at, in words.
        timed_feeds: That.
        calibration: Feeds, the same that the recipe names.
        heldout: (feeds, labels) that nothing was calibrated on.
        vectors: (outputs, feeds) -> (samples, ...), what cosines are taken of.
        score: ("accuracy", (outputs, labels) -> 0..1), where there are labels.
        files: What all of that hangs on, but code of this folder.
    """

    name: str
    title: str
    recipe: Path
    ways: Mapping[str, Way]
    base: str
    timed_at: str
    timed_feeds: Callable[[], Feeds]
    calibration: Callable[[], Iterator[Feeds]]
    heldout: Callable[[], Iterator[tuple[Feeds, Any]]]
    vectors: Callable[[Mapping[str, np.ndarray], Feeds], np.ndarray]
    score: tuple[str, Callable[..., float]] | None
    files: Sequence[Path]


def subjects() -> dict[str, Subject]:
    """Name -> model."""
    return {each.name: each for each in (_minilm(), _digits())}


def _minilm() -> Subject:
    source = ROOT / "recipes/models/minilm.py"
    ours = (
        "fp32", "fp16", "dynamic", "keep-5", "keep-20", "balance", "balance-gptq",
        "balance-gptq-keep-10", "static", "static-matmul", "weights-8", "weights-4-rtn",
        "weights-4-gptq",
    )  # fmt: skip

    def timed_feeds() -> Feeds:
        ids = np.random.default_rng(0).integers(1996, 30522, (1, 128))
        return {"input_ids": ids, "attention_mask": np.ones_like(ids)}

    def arrays(items: Iterator[Mapping[str, Any]]) -> Iterator[Feeds]:
        for item in items:
            yield {name: np.asarray(value) for name, value in item.items()}

    return Subject(
        name="minilm",
        title="all-MiniLM-L6-v2",
        recipe=HERE / "minilm.yaml",
        ways={name: Way(name) for name in ours},
        base="ORT dynamic, per channel",
        timed_at="1 x 128 tokens",
        timed_feeds=timed_feeds,
        calibration=lambda: arrays(_module(source).calibration()),
        heldout=lambda: ((feeds, None) for feeds in arrays(_module(source).heldout())),
        vectors=lambda outputs, feeds: _module(source).embed(outputs, feeds),
        score=None,
        files=(source, source.with_name("sentences.txt")),
    )


def _digits() -> Subject:
    source = ROOT / "recipes/models/digits.py"
    methods = ("minmax", "percentile", "entropy", "mse")
    static = {
        f"static-{method}": Way("static", (("calibration.method", method),)) for method in methods
    }

    def timed_feeds() -> Feeds:
        images = [feeds["image"] for feeds, _ in _module(source).evaluation()]
        return {"image": np.concatenate(images)[:64]}

    def calibration() -> Iterator[Feeds]:
        for number, feeds in enumerate(_module(source).calibration()):
            if number == 200:  # the recipe's `samples`
                return
            yield feeds

    return Subject(
        name="digits",
        title="digits CNN",
        recipe=HERE / "digits.yaml",
        ways={"fp32": Way("fp32"), "dynamic": Way("dynamic"), **static},
        base="fp32",
        timed_at="64 images",
        timed_feeds=timed_feeds,
        calibration=calibration,
        heldout=lambda: _module(source).evaluation(),
        vectors=lambda outputs, _: outputs["logits"],
        score=("accuracy", lambda *given: _module(source).accuracy(*given)),
        files=(source, source.with_suffix(".npz")),
    )


_LOADED: dict[Path, ModuleType] = {}


def _module(path: Path) -> Any:
    """The example model's own file: its data is the recipe's."""
    if path not in _LOADED:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        _LOADED[path] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(_LOADED[path])
    return _LOADED[path]
