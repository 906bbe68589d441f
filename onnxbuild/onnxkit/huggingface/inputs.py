"""Inputs of a model, by its modality: `dummy_inputs`, and the sizes of its axes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from onnxbuild.core.source_error import SourceError
from onnxbuild.core.state import STATE
from onnxbuild.onnxkit.huggingface import images_and_text
from onnxbuild.onnxkit.huggingface.decoders import decoder_outline
from onnxbuild.onnxkit.huggingface.encoder_decoders import ENCODER, encoder_outline
from onnxbuild.onnxkit.huggingface.encoder_decoders import decoder_outline as part_outline
from onnxbuild.onnxkit.huggingface.folder import ModelFolder
from onnxbuild.onnxkit.huggingface.tasks import (
    GENERATION,
    IMAGES_AND_TEXT,
    Purpose,
    takes_waveform,
)
from onnxbuild.onnxkit.loaders.sounds import WHISPER
from onnxbuild.onnxkit.sources.outline import SourceOutline, SourceValue
from onnxbuild.onnxkit.sources.parts import BATCH, mapping_in

SEQUENCE, SAMPLES, FRAMES = "sequence", "samples", "frames"

_SEQUENCE_MAX = 512

_IMAGE_SIZE = 224
"""Image size, in pixels, if a model's files say none: most such models were trained on it."""

_DETECTION_STRIDE = 32

_OFFSET_POSITIONS = frozenset({
    "roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "roberta-prelayernorm", "longformer",
    "data2vec-text", "mpnet", "ibert", "xmod", "esm", "layoutlmv3", "lilt", "luke", "markuplm",
})  # fmt: skip
"""Types of models that number positions from the padding's id + 1 on."""

_WHISPER_RATE = 16_000
"""Samples a second of all of Whisper's models: what transformers takes where the files say nothing."""

Sizes = Mapping[str, Mapping[str, int]]

_OF_WHOLE_IMAGES = frozenset({"object-detection", "image-segmentation"})
"""Tasks whose processors may keep an image's proportions."""

_SEQUENCE = "sequence"

_BOXES = {"dtype": "int64", "shape": [BATCH, _SEQUENCE, 4], "fill": 0}

_NOT_DECLARED = {
    "bros": "bbox",
    "markuplm": "xpath_tags_seq and xpath_subs_seq",
    "tapas": "token_type_ids of seven columns",
    "layoutlmv2": "bbox and image",
    "lxmert": "visual_feats and visual_pos",
    "visual_bert": "visual_embeds",
}
"""Types of models -> inputs that they take besides, and that a recipe declares by itself."""


def folder_outline(
    folder: ModelFolder,
    purpose: Purpose,
    names: Sequence[str],
    written: Mapping[str, Any],
    part: str = "",
) -> SourceOutline:
    """Return what goes into a model, as far as the recipe's own `dummy_inputs` leave it open, and what comes out.

    Args:
        names: Those of the task's inputs that are wanted; empty for all.
        written: The recipe as it is written, rendered; values may be anything.
        part: One of the parts of a model that has several; else empty.

    Raises:
        SourceError: Nothing says it, or the task has no such input.
    """
    made = {"text": _text, "image": _image, "audio": _audio}
    own = mapping_in(written, "dummy_inputs")
    has_both = purpose.task.name == IMAGES_AND_TEXT
    is_known = purpose.modality is not None or has_both
    if not is_known and not own:
        kind = folder.config.get("model_type", "no model_type")
        raise SourceError(
            f"config.json ({kind}) does not say whether text, images or sounds go into the model",
            "write `dummy_inputs`, or load the model by `model: {entrypoint: ...}`",
        )
    is_decoder = purpose.task.name == GENERATION
    if purpose.modality == "text" and not names and not is_decoder:
        check_further_inputs(folder.config, own)
    found = SourceOutline()
    if is_known:
        has_state = STATE in written
        if has_both:
            found = images_and_text.part_outline(folder.config, part, has_state=has_state)
        elif is_decoder:
            found = decoder_outline(folder.config, has_state=has_state)
        elif purpose.modality is not None:
            found = made[purpose.modality](folder, purpose)
        if part == ENCODER:
            found = encoder_outline(found, folder.config)
        elif part and not has_both:
            found = part_outline(found, folder.config, has_state=has_state)
        by_name = {each.name: each for each in found.inputs}
        for name in names:
            if name not in by_name:
                raise SourceError(
                    f"`inputs` names '{name}', which is no input of the task",
                    f"it has {', '.join(by_name)}; others stand under `dummy_inputs`",
                    "model", "inputs",
                )  # fmt: skip
        found = replace(found, inputs=tuple(by_name[name] for name in names or by_name))
    outputs = found.outputs or tuple(map(SourceValue, purpose.outputs))
    return replace(
        found, outputs=outputs, takes_more=True, recipe={"validate": purpose.tolerances}
    )


def check_zero_padding(purpose: Purpose, inputs: Collection[str]) -> None:
    """Check that there are hidden states, and a mask that says which of them are padding.

    Raises:
        SourceError: There are not.
    """
    if purpose.task.name != "feature-extraction" or "attention_mask" not in inputs:
        raise SourceError(
            "`zero_padding` is for feature-extraction of text with an `attention_mask`",
            "remove it",
            "model", "zero_padding",
        )  # fmt: skip


def _batch(most: int) -> dict[str, int]:
    return {"min": 1, "max": most, "example": 2}


def _text(folder: ModelFolder, purpose: Purpose) -> SourceOutline:
    """Ids of tokens, which of them are padding, and which segment each is of, where there are several."""
    del purpose
    config, tokenizer = folder.config, folder.tokenizer
    shape = (BATCH, SEQUENCE)
    mask = "left" if tokenizer.get("padding_side") == "left" else "right"
    rows = _count(config, "vocab_size")
    inputs = [
        SourceValue("input_ids", "int64", shape, rows),
        SourceValue("attention_mask", "int64", shape, values={"mask": mask}),
    ]
    segments = config.get("type_vocab_size")
    named = tokenizer.get("model_input_names")
    if (
        type(segments) is int
        and segments > 1
        and (not isinstance(named, list) or "token_type_ids" in named)
    ):
        inputs.append(SourceValue("token_type_ids", "int64", shape, segments))
    longest = _longest(config, tokenizer)
    sequence = {"min": 1, "max": longest, "example": min(16, longest)}
    return SourceOutline(inputs=tuple(inputs), axes={BATCH: _batch(8), SEQUENCE: sequence})


def _longest(config: Mapping[str, Any], tokenizer: Mapping[str, Any]) -> int:
    """The longest sequence of tokens, 512 at most."""
    found = [_SEQUENCE_MAX]
    positions = next(
        (config[key] for key in ("max_position_embeddings", "n_positions") if key in config), None
    )
    if type(positions) is int and positions > 0:
        padding = config.get("pad_token_id")
        own = type(padding) is int and config.get("model_type") in _OFFSET_POSITIONS
        found.append(positions - (padding + 1 if own and type(padding) is int else 0))
    most = tokenizer.get("model_max_length")  # 1e30 where there is none
    if type(most) is int and most > 0:
        found.append(most)
    return max(1, min(found))


def _image(folder: ModelFolder, purpose: Purpose) -> SourceOutline:
    """Pixels, of the one size that the processor makes, or of many where it keeps proportions."""
    config, processor = folder.config, folder.processor
    channels = config.get("num_channels", 3)
    sides, axes = _sides(config, processor, whole=purpose.task.name in _OF_WHOLE_IMAGES)
    pixels = SourceValue("pixel_values", "float32", (BATCH, channels, *sides))
    return SourceOutline(inputs=(pixels,), axes={BATCH: _batch(8), **axes})


def _sides(
    config: Mapping[str, Any], processor: Mapping[str, Any], *, whole: bool
) -> tuple[list[int | str], Sizes]:
    """(height and width, sizes of those that are axes)."""
    crop = processor.get("crop_size") if processor.get("do_center_crop", True) else None
    for found in (crop, processor.get("size") if processor.get("do_resize", True) else None):
        fixed = _pair(found)
        if fixed:
            return list(fixed), {}
        if isinstance(found, Mapping) and type(found.get("shortest_edge")) is int:
            short = found["shortest_edge"]
            if not whole:
                return [short, short], {}
            longest = found.get("longest_edge")
            return ["height", "width"], _proportional(
                short, longest if type(longest) is int else 2 * short
            )
    fixed = _pair(config.get("image_size")) or (_IMAGE_SIZE, _IMAGE_SIZE)
    return list(fixed), {}


def _pair(size: object) -> tuple[int, int] | None:
    """(height, width) where it says both."""
    if type(size) is int and size > 0:
        return size, size
    if isinstance(size, Mapping):
        size = [size.get("height"), size.get("width")]
    if isinstance(size, list) and len(size) == 2:  # noqa: PLR2004 - height and width
        height, width = size
        if type(height) is int and type(width) is int and min(height, width) > 0:
            return height, width
    return None


def _proportional(short: int, longest: int) -> Sizes:
    """Sizes of both sides of images that are made as long as `short` along the shorter one."""
    step = _DETECTION_STRIDE
    example = max(step, short // step * step)
    most = max(example, longest // step * step)
    sizes = {"min": min(2 * step, example), "max": most, "example": example, "multiple_of": step}
    return {"height": sizes, "width": sizes}


def _audio(folder: ModelFolder, purpose: Purpose) -> SourceOutline:
    """Samples of a wave, or a spectrogram of one length."""
    del purpose
    config, processor = folder.config, folder.processor
    batch = {BATCH: _batch(4)}
    kind = config.get("model_type")
    if takes_waveform(config):
        rate = processor.get("sampling_rate")
        rate = rate if type(rate) is int and rate > 0 else 16_000
        least = max(sum(frames_of(config)), rate // 10)
        shape: tuple[int | str, ...] = (BATCH, SAMPLES)
        inputs = [SourceValue("input_values", "float32", shape)]
        if processor.get("return_attention_mask"):
            inputs.append(SourceValue("attention_mask", "int64", shape, values={"mask": "right"}))
        sizes = {"min": least, "max": max(least, 10 * rate), "example": max(least, rate)}
        return SourceOutline(inputs=tuple(inputs), axes={**batch, SAMPLES: sizes})
    if kind == "audio-spectrogram-transformer":
        shape = (BATCH, _count(config, "max_length"), _count(config, "num_mel_bins"))
        return SourceOutline(inputs=(SourceValue("input_values", "float32", shape),), axes=batch)
    if kind == "whisper":
        frames = 2 * _count(config, "max_source_positions")
        shape = (BATCH, _count(config, "num_mel_bins"), frames)
        return SourceOutline(inputs=(SourceValue("input_features", "float32", shape),), axes=batch)
    if kind == "wav2vec2-bert":
        width = _count(config, "feature_projection_input_dim")
        features = SourceValue("input_features", "float32", (BATCH, FRAMES, width))
        sizes = {"min": 10, "max": 500, "example": 50}
        return SourceOutline(inputs=(features,), axes={**batch, FRAMES: sizes})
    raise SourceError(
        f"nothing is known of the inputs of a model of sounds with model_type {kind}",
        "write `dummy_inputs`, or load the model by `model: {entrypoint: ...}`",
    )


def sound_of(folder: ModelFolder) -> dict[str, Any]:
    """Return `sound` of a pipeline: how a .wav file becomes what a model of sounds takes; empty where its files don't say it."""
    config, processor = folder.config, folder.processor
    rate = processor.get("sampling_rate", _WHISPER_RATE)
    if type(rate) is not int or rate < 1:
        return {}
    if takes_waveform(config):
        form = "normalized" if processor.get("do_normalize", True) else "samples"
        return {"form": form, "rate": rate} if processor else {}
    own = [
        processor.get(key, WHISPER[same])
        for key, same in (("n_fft", "n_fft"), ("hop_length", "hop"))
    ]
    is_known = config.get("model_type") == "whisper" and own == [WHISPER["n_fft"], WHISPER["hop"]]
    return {"form": "whisper", "rate": rate} if is_known else {}


def frames_of(config: Mapping[str, Any]) -> tuple[int, int]:
    """Return (how many elements of the input one frame of a model of sounds is made of, how many later the next begins).

    Convolutions whose sizes are rounded down one after the other are one with such a kernel and stride.
    """
    kernels, strides = config.get("conv_kernel"), config.get("conv_stride")
    layers = []
    if isinstance(kernels, list) and isinstance(strides, list):
        layers = list(zip(kernels, strides, strict=False))
    if config.get("add_adapter"):  # each of its layers is padded by 1 on both sides
        adapter = (_count(config, "adapter_kernel_size") - 2, _count(config, "adapter_stride"))
        layers += [adapter] * _count(config, "num_adapter_layers")
    field, step = 1, 1
    for kernel, stride in layers:
        if type(kernel) is int and type(stride) is int:
            field, step = field + (kernel - 1) * step, step * stride
    return field, step


def _count(config: Mapping[str, Any], key: str) -> int:
    found = config.get(key)
    if type(found) is not int or found < 1:
        shown = f"{key} is {found!r:.50}" if key in config else f"there is no `{key}`"
        raise SourceError(
            f"config.json does not say what goes into the model: {shown}",
            "save the model again by `save_pretrained`, or write `dummy_inputs`",
        )
    return found


def check_further_inputs(config: Mapping[str, Any], own: Collection[str]) -> None:
    """Check that a model that takes more than text gets the rest of its inputs, too.

    Args:
        own: Inputs that the recipe declares itself.

    Raises:
        SourceError: It does not; `mend` declares them.
    """
    kind = str(config.get("model_type"))
    if kind in _NOT_DECLARED and not own:
        raise SourceError(
            f"a model of type {kind} also takes {_NOT_DECLARED[kind]}, which the task's inputs lack",
            "write them under `dummy_inputs`, or load the model by `model: {entrypoint: ...}`",
        )
    missing = {name: each for name, each in _further(kind, config).items() if name not in own}
    if not missing:
        return
    shown = ", ".join(
        f"{name}: {{dtype: {each['dtype']}, shape: [{', '.join(map(str, each['shape']))}], "
        f"{'fill: 0' if 'fill' in each else 'low: 0, high: 1'}}}"
        for name, each in missing.items()
    )
    raise SourceError(
        f"a model of type {kind} also takes {' and '.join(missing)}, which the task's inputs lack",
        f"declare them: `dummy_inputs: {{{shown}}}`, with real values from `reference: {{samples: ...}}`; for a "
        "model of text alone, name its `inputs`",
        mend={"dummy_inputs": missing},
    )


def _further(kind: str, config: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Inputs of a type of models, as `dummy_inputs`; of integers, 0 is a valid value of each."""
    match kind:
        case "layoutlm" | "lilt":
            return {"bbox": _BOXES}
        case "layoutlmv3":
            return {"bbox": _BOXES, "pixel_values": _pixels(config, "input_size")}
        case "vilt":
            return {"pixel_values": _pixels(config, "image_size")}
    return {}


def _pixels(config: Mapping[str, Any], side: str) -> Mapping[str, Any]:
    size = config.get(side, 224)
    shape = [BATCH, config.get("num_channels", 3), size, size]
    return {"dtype": "float32", "shape": shape, "low": 0, "high": 1}
