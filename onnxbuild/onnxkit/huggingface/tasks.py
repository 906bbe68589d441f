"""Tasks of transformers' models: which there are, what a config says of it, outputs and tolerances."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from onnxbuild.core.errors import did_you_mean
from onnxbuild.core.source_error import SourceError
from onnxbuild.onnxkit.huggingface import encoder_decoders, images_and_text
from onnxbuild.onnxkit.huggingface.folder import CONFIG
from onnxbuild.onnxkit.huggingface.images_and_text import is_of_images_and_text

Modality = Literal["text", "image", "audio"]

_LOGITS, _QUERIES = ("logits",), ("class_queries_logits", "masks_queries_logits")


@dataclass(frozen=True, slots=True)
class Task:
    """Task of models, and the classes that load them.

    Attributes:
        name: As a recipe writes it.
        modality: What goes in; None where the config says it.
        heads: Endings of the names of architectures for it -> the outputs of those.
        classes: transformers' classes that load such a model, in the order in which they are tried.
    """

    name: str
    modality: Modality | None
    heads: Mapping[str, tuple[str, ...]]
    classes: tuple[str, ...]


GENERATION = "text-generation"
"""The task of models that give the next token, with a cache."""

WRITERS = ("text2text-generation", "automatic-speech-recognition")
"""Tasks of models with an encoder and a decoder, which writes text with a cache."""

IMAGES_AND_TEXT = "image-text-to-text"
"""The task of models that write text about images."""

PARTS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(WRITERS, encoder_decoders.PARTS),
    IMAGES_AND_TEXT: images_and_text.PARTS,
}
"""Task -> the parts of its models, each of which is a component."""

CTC = "ctc"
"""The task of models that give a token for each frame of a sound."""

_CONDITIONAL = "ForConditionalGeneration"

TASKS: Mapping[str, Task] = {
    each.name: each
    for each in (
        Task(
            GENERATION,
            "text",
            {"ForCausalLM": _LOGITS, "LMHeadModel": _LOGITS},
            ("AutoModelForCausalLM",),
        ),
        Task(
            WRITERS[0],
            "text",
            {_CONDITIONAL: _LOGITS, "MTModel": _LOGITS},
            ("AutoModelForSeq2SeqLM",),
        ),
        Task(WRITERS[1], "audio", {_CONDITIONAL: _LOGITS}, ("AutoModelForSpeechSeq2Seq",)),
        Task(IMAGES_AND_TEXT, None, {_CONDITIONAL: _LOGITS}, ("AutoModelForImageTextToText",)),
        Task("feature-extraction", None, {"Model": ("last_hidden_state",)}, ("AutoModel",)),
        Task("fill-mask", "text", {"ForMaskedLM": _LOGITS}, ("AutoModelForMaskedLM",)),
        Task(
            "text-classification",
            "text",
            {"ForSequenceClassification": _LOGITS},
            ("AutoModelForSequenceClassification",),
        ),
        Task(
            "token-classification",
            "text",
            {"ForTokenClassification": _LOGITS},
            ("AutoModelForTokenClassification",),
        ),
        Task(
            "question-answering",
            "text",
            {"ForQuestionAnswering": ("start_logits", "end_logits")},
            ("AutoModelForQuestionAnswering",),
        ),
        Task(
            "image-classification",
            "image",
            dict.fromkeys(
                ("ForImageClassification", "ForImageClassificationWithTeacher"), _LOGITS
            ),
            ("AutoModelForImageClassification",),
        ),
        Task(
            "object-detection",
            "image",
            {"ForObjectDetection": ("logits", "pred_boxes")},
            ("AutoModelForObjectDetection",),
        ),
        Task(
            "image-segmentation",
            "image",
            {
                "ForSemanticSegmentation": _LOGITS,
                "ForUniversalSegmentation": _QUERIES,
                "ForInstanceSegmentation": _QUERIES,
                "ForSegmentation": ("logits", "pred_boxes", "pred_masks"),
            },
            tuple(
                f"AutoModelFor{kind}Segmentation"
                for kind in ("Semantic", "Universal", "Instance", "Image")
            ),
        ),
        Task(
            "audio-classification",
            "audio",
            {"ForAudioClassification": _LOGITS, "ForSequenceClassification": _LOGITS},
            ("AutoModelForAudioClassification",),
        ),
        Task(CTC, "audio", {"ForCTC": _LOGITS}, ("AutoModelForCTC",)),
    )
}

ALIASES = {
    "summarization": WRITERS[0],
    "translation": WRITERS[0],
    "ner": "token-classification",
    "semantic-segmentation": "image-segmentation",
    "sentiment-analysis": "text-classification",
    "text-generation-with-past": GENERATION,
    "zero-shot-classification": "text-classification",
}
"""Other names of a task, as pipelines and other tools have them."""

_LATER_TASKS = frozenset({"image-to-text", IMAGES_AND_TEXT, "visual-question-answering"})
_LATER_HEADS = (
    "ForConditionalGeneration", "ForSeq2SeqLM", "EncoderDecoderModel",
    "ForSpeechSeq2Seq", "ForVision2Seq", "ForImageTextToText",
)  # fmt: skip
_BY_CALLABLE = "load it by a callable, `model: {entrypoint: models/mine.py:load}`"
_LATER = (
    "build its parts as `components`, each by a callable (`model: {entrypoint: FILE.py:CALLABLE}`), a decoder with its "
    "cache as `state` (docs/generation.md)"
)

_OF_IMAGES_AND_TEXT = (
    "build its tower, its table of tokens and its decoder as `components`, each by a callable; or save its language model "
    "as a folder of its own, for `init` (both: docs/generation.md#images-and-text)"
)

TOLERANCES: Mapping[Modality, Mapping[str, Mapping[str, float]]] = {
    "text": {"fp32": {"atol": 1e-4, "rtol": 1e-4}, "fp16": {"atol": 5e-2, "rtol": 1e-2}},
    "image": {"fp32": {"atol": 2e-4, "rtol": 1e-4}, "fp16": {"atol": 0.1, "rtol": 1e-2}},
    "audio": {"fp32": {"atol": 5e-4, "rtol": 1e-4}, "fp16": {"atol": 0.1, "rtol": 1e-2}},
}
"""Tolerances of variants in floating point; those with integer weights have their modes' own."""

_DECODER_TOLERANCES = {"fp32": {"atol": 1e-2, "rtol": 1e-3}, "fp16": {"atol": 0.3, "rtol": 1e-2}}
"""Tolerances of models that generate. On a cache of noise, 30 trained layers (SmolLM2-135M) round logits by 3e-3, with a
cosine of 1 - 4e-9; the gate `generate` judges the tokens."""

_RAW_AUDIO = frozenset({
    "wav2vec2", "wav2vec2-conformer", "hubert", "wavlm", "unispeech", "unispeech-sat", "sew", "sew-d",
    "data2vec-audio",
})  # fmt: skip
_SPECTROGRAMS = frozenset({"audio-spectrogram-transformer", "whisper", "wav2vec2-bert"})


@dataclass(frozen=True, slots=True)
class Purpose:
    """A model's task, as its folder and the recipe say it.

    Attributes:
        task: One of TASKS.
        architecture: The class whose weights the folder holds, where it is one for the task; else empty.
        modality: What goes in; None where nothing says it.
        outputs: Their names, in order.
        tolerances: A recipe's `validate`.
    """

    task: Task
    architecture: str
    modality: Modality | None
    outputs: tuple[str, ...]
    tolerances: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def purpose_of(config: Mapping[str, Any], asked: str) -> Purpose:
    """Return what a model is for.

    Args:
        asked: The recipe's `task`; empty where it leaves that to the config.

    Raises:
        SourceError: There is no such task, or the config does not say one, or it is another's.
    """
    architecture = _architecture(config)
    modality = modality_of(config)
    task = _asked(asked, config, architecture) if asked else _said(config, architecture, modality)
    modality = task.modality or modality
    if modality == "text" and config.get("is_encoder_decoder") and task.name not in WRITERS:
        raise _later(f"{architecture or 'the model'} has an encoder and a decoder", asked, config)
    fits = _of_architecture(architecture, modality, config) is task
    head = next(each for each in task.heads if architecture.endswith(each) or not fits)
    return Purpose(
        task, architecture if fits else "", modality, task.heads[head], _tolerances(task, modality)
    )


def _tolerances(task: Task, modality: Modality | None) -> Mapping[str, Mapping[str, float]]:
    if task.name in (GENERATION, *PARTS):
        return _DECODER_TOLERANCES
    return {} if modality is None else TOLERANCES[modality]


def modality_of(config: Mapping[str, Any]) -> Modality | None:
    """Return what goes into a model; None where the config does not say it, or names several."""
    kind = config.get("model_type")
    if any(key in config for key in ("text_config", "vision_config", "audio_config")):
        return None
    if kind in _RAW_AUDIO | _SPECTROGRAMS or "feat_extract_norm" in config:
        return "audio"
    has_pixels = any(key in config for key in ("image_size", "num_channels", "backbone_config"))
    if has_pixels and "vocab_size" in config:
        return None  # of both: documents, questions on images
    return "image" if has_pixels else "text" if "vocab_size" in config else None


def takes_waveform(config: Mapping[str, Any]) -> bool:
    """Return whether a model of sounds takes the samples themselves."""
    return config.get("model_type") in _RAW_AUDIO or isinstance(config.get("conv_kernel"), list)


def _architecture(config: Mapping[str, Any]) -> str:
    named = config.get("architectures")
    first = named[0] if isinstance(named, list) and named else ""
    return first if isinstance(first, str) else ""


def _asked(asked: str, config: Mapping[str, Any], architecture: str) -> Task:
    if asked in _LATER_TASKS and not (asked == IMAGES_AND_TEXT and is_of_images_and_text(config)):
        raise _later(f"task is '{asked}'", asked, config)
    modality = modality_of(config)
    name = ALIASES.get(asked, asked)
    if name in (CTC, GENERATION) and _is_later(architecture, modality, config):
        raise _later(f"{architecture} writes its text by a decoder", asked, config)
    if name == WRITERS[1] and architecture.endswith("ForCTC"):
        name = CTC
    task = TASKS.get(name)
    if task is None:
        near = did_you_mean(asked, [*TASKS, *ALIASES])
        raise SourceError(
            f"task is '{asked}'; expected one of {', '.join(TASKS)}",
            near or "write one of these, or load the model by `model: {entrypoint: ...}`",
            "model", "task",
        )  # fmt: skip
    own = _of_architecture(architecture, modality, config)
    if own is not None and task is not own and task.name != "feature-extraction":
        raise SourceError(
            f"task is '{task.name}', and the folder holds {architecture}, which has no head for it",
            f"write `task: {own.name}`, or name a folder with a model for {task.name}",
            "model", "task",
        )  # fmt: skip
    return task


def _said(config: Mapping[str, Any], architecture: str, modality: Modality | None) -> Task:
    """The task that the config itself says."""
    if _is_later(architecture, modality, config):
        raise _later(f"{architecture} generates text", "", config)
    own = _of_architecture(architecture, modality, config)
    if own is not None and (own.name != "feature-extraction" or modality is not None):
        return own
    kind = config.get("model_type")
    of_type = f", model_type is {kind}" if kind else ""
    if not architecture:
        raise SourceError(
            f"{CONFIG} does not say the task: there is no `architectures`{of_type}",
            f"write `task:` next to `transformers` (of `init`: `--task`), one of {', '.join(TASKS)}",
        )
    if modality is None:
        raise SourceError(
            f"the inputs of {architecture} are not known: it is no model of text, images or sounds alone"
            f"{of_type}",
            f"{_BY_CALLABLE} of the part that you want, such as one tower; or write `task:` and "
            "`dummy_inputs`",
        )
    raise SourceError(
        f"architectures is {architecture}, which has a head of no known task{of_type}",
        f"{_BY_CALLABLE}; or, without this head, write `task: feature-extraction` next to "
        "`transformers` (of `init`: `--task feature-extraction`)",
    )


def _of_architecture(
    architecture: str, modality: Modality | None, config: Mapping[str, Any]
) -> Task | None:
    if _is_later(architecture, modality, config):
        return None
    for task in TASKS.values():
        if (
            architecture.endswith(tuple(task.heads))
            and (task.modality is None or modality is None or task.modality == modality)
            and (task.name not in WRITERS or config.get("is_encoder_decoder"))
            and (task.name != IMAGES_AND_TEXT or is_of_images_and_text(config))
        ):  # no name ends in two of them, but for sounds and text
            return task
    return None


def _is_later(architecture: str, modality: Modality | None, config: Mapping[str, Any]) -> bool:
    """Return whether a model writes text and is neither a decoder alone, nor one with parts that are known."""
    heads = [head for name in WRITERS for head in TASKS[name].heads]
    is_writer = bool(config.get("is_encoder_decoder")) and architecture.endswith(tuple(heads))
    return architecture.endswith(_LATER_HEADS) and not (
        (is_writer and modality in ("text", "audio")) or is_of_images_and_text(config)
    )


def _later(what: str, asked: str, config: Mapping[str, Any]) -> SourceError:
    is_of_images_and_text = {"text_config", "vision_config"} <= config.keys()
    key = ("model", "task") if asked else ()
    return SourceError(
        f"{what}: it is more than one graph, and no decoder with an encoder of text or sounds",
        _OF_IMAGES_AND_TEXT if is_of_images_and_text else _LATER,
        *key,
    )
