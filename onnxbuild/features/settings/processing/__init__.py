"""`processing`: pre- and post-processing as ONNX operators, merged into variants; a bundle of its own."""

from onnxbuild.expansion.feature import Feature, Section
from onnxbuild.features.settings.processing.class_names import class_names_of
from onnxbuild.features.settings.processing.faults import faults
from onnxbuild.features.settings.processing.measures import lay_benchmarks
from onnxbuild.features.settings.processing.options import OWN, SECTION, ProcessingOptions
from onnxbuild.features.settings.processing.pipelines import deliver
from onnxbuild.steps import merge_processing, processing_reference, tokenizer

FEATURE: Feature = Feature(
    name=SECTION,
    sections=(
        Section(
            name=SECTION,
            options=ProcessingOptions,
            callables={
                "expected": (
                    SECTION,
                    "callable that yields (raw inputs, expected outputs) of your own pipeline",
                ),
                "own": (
                    OWN,
                    "callable: raw inputs -> outputs, your own pipeline; `evaluate: {of: pipeline}` scores it, too",
                ),
            },
            below={"file": "file", "corpus": "file", "callable": "callable"},
            needs_onnx="it is merged into ONNX models",
        ),
    ),
    extras={"tokenizers": "tokenizer"},
    kinds=(tokenizer.KIND, merge_processing.KIND, processing_reference.KIND),
    faults=faults,
    laid=lay_benchmarks,
    delivers=deliver,
    class_names=class_names_of,
)
