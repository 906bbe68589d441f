"""The section `processing`, and what it names."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from onnxbuild.core.params import option
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint, Recipe
from onnxbuild.document.node import dotted
from onnxbuild.expansion.evaluation import OWN, PIPELINE
from onnxbuild.expansion.evaluation import PROCESSING as SECTION
from onnxbuild.expansion.requested import RequestSection
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.processing.options import (
    POSTPROCESS,
    PREPROCESS,
    Operation,
    PostprocessOperation,
    PreprocessOperation,
    TokenizeOptions,
    asked_of,
)
from onnxbuild.onnxkit.processing.pipeline import Pipeline, raw_inputs
from onnxbuild.onnxkit.processing.plan import plan_inputs, type_of

__all__ = [
    "OWN", "PIPELINE", "SECTION", "AskedTokenizer", "ProcessingOptions", "declared_at", "operations", "options_of", "pipeline_of",
    "raw_of", "texts_of", "tokenizers_of",
]  # fmt: skip

_NAMES_A_FILE = {"labels": "file", "model": "callable"}


@dataclass(frozen=True)
class ProcessingOptions(RequestSection):
    """Operations before and after the model, as ONNX operators; in VARIANT-pipeline/."""

    preprocess: tuple[PreprocessOperation, ...] = option(
        (), help="from raw inputs to the model's, in order"
    )
    postprocess: tuple[PostprocessOperation, ...] = option(
        (), help="from the model's outputs to results, in order"
    )
    outputs: tuple[str, ...] = option(
        (), help="outputs of the pipeline; left out: all that no operation takes, results first"
    )
    samples: int = option(200, help="most items of `expected` that are compared", minimum=1)
    tolerances: VariantTolerances | None = option(
        None, help="how far outputs may be from the expected ones; over the variant's own"
    )
    points: tuple[dict[str, int | tuple[int, ...]], ...] = option(
        (),
        help="points of the pipelines' benchmark, as `benchmark.points`: `{batch: 1, picture_height: 480}`; "
        "empty: the example alone",
    )

    are_bundles: ClassVar[bool] = True

    @property
    def makes_text(self) -> bool:
        """Whether an operation takes a text, or names classes."""
        return any(each.text is not None for each in self.preprocess) or any(
            each.labels is not None for each in self.postprocess
        )

    @property
    def requested(self) -> tuple[str, ...]:
        """The one folder that is made of a variant."""
        return (PIPELINE,) if self.preprocess or self.postprocess else ()


def options_of(recipe: Recipe) -> ProcessingOptions:
    """The recipe's."""
    return recipe.section(SECTION, ProcessingOptions)


def operations(options: ProcessingOptions) -> Iterator[tuple[str, int, Operation]]:
    """(PREPROCESS or POSTPROCESS, position, operation) of all."""
    for section in (PREPROCESS, POSTPROCESS):
        for position, operation in enumerate(getattr(options, section)):
            yield section, position, operation


def pipeline_of(recipe: Recipe) -> Pipeline:
    """Return the pipeline that a recipe asks for, with the files and callables that it declares."""
    options = options_of(recipe)
    declared = {
        f"{section}/{position}": declared_at(recipe, section, position, name, _NAMES_A_FILE[name])
        for section, position, operation in operations(options)
        for name in asked_of(operation)
        if name in _NAMES_A_FILE
    }
    return Pipeline(options.preprocess, options.postprocess, options.outputs, declared)


@dataclass(frozen=True, slots=True)
class AskedTokenizer:
    """An operation `tokenize`.

    Attributes:
        options: Its options.
        text: Name of the raw input that it takes.
        file: The tokenizer's.
        corpus: Text, one string a line.
    """

    options: TokenizeOptions
    text: str
    file: Entrypoint
    corpus: Entrypoint


def tokenizers_of(recipe: Recipe) -> Mapping[str, AskedTokenizer]:
    """PREPROCESS/POSITION -> what stands there, of all operations `tokenize`."""
    found = {}
    before = options_of(recipe).preprocess
    for position, operation in enumerate(before):
        text = before[position - 1].text
        if operation.tokenize is not None and text is not None:
            file, corpus = (
                declared_at(recipe, PREPROCESS, position, "tokenize", key)
                for key in ("file", "corpus")
            )
            found[f"{PREPROCESS}/{position}"] = AskedTokenizer(
                operation.tokenize, text.name, file, corpus
            )
    return found


def texts_of(recipe: Recipe) -> dict[str, Entrypoint]:
    """Raw input of strings -> the corpus of its tokenizer."""
    return {each.text: each.corpus for each in tokenizers_of(recipe).values()}


def declared_at(recipe: Recipe, section: str, position: int, name: str, key: str) -> Entrypoint:
    """Return the file or callable that a key of an operation names."""
    return recipe.entrypoints[dotted((SECTION, section, position, name, key))]


def raw_of(
    recipe: Recipe, options: ProcessingOptions
) -> tuple[tuple[DummyInput, ...], tuple[Axis, ...]]:
    """The pipeline's inputs, and their axes."""
    chains = plan_inputs(options.preprocess, {each.name: type_of(each) for each in recipe.inputs})
    return raw_inputs(chains, recipe.inputs, recipe.axes)
