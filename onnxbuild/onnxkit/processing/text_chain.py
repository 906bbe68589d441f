"""The chain of text: a tokenizer, which feeds several inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnxbuild.core.errors import did_you_mean
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.processing.chains import Feed, InputChain, PlannedOperation, type_of
from onnxbuild.onnxkit.processing.options import PreprocessOperation, asked_of
from onnxbuild.onnxkit.processing.text_options import TokenizeOptions
from onnxbuild.onnxkit.processing.values import PREPROCESS, ProcessingError, ValueType

_AXES = 2


def text_chain(
    operations: Sequence[PreprocessOperation],
    start: int,
    end: int,
    inputs: Mapping[str, ValueType],
) -> InputChain:
    """Chain `text` and `tokenize`.

    Args:
        operations: All of `preprocess`.
        start: Position of `text`.
        end: One past the last operation of the chain.
        inputs: The model's.

    Raises:
        ProcessingError: `tokenize` is not what follows, or the model has no input for what it gives.
    """
    text = operations[start].text
    found = [asked_of(each) for each in operations[start + 1 : end]]
    options = found[0].get("tokenize") if found else None
    if text is None or not isinstance(options, TokenizeOptions) or len(found) > 1:
        extra = next(iter(found[1])) if options is not None else "text"
        what = (
            f"{extra} takes no ids" if options is not None else "text has no `tokenize` behind it"
        )
        fix = (
            "remove it" if options is not None else "add `- tokenize: {file: tokenizer.json, ...}`"
        )
        position = min(start + 2 if options is not None else start + 1, end - 1)
        raise ProcessingError(what, fix, PREPROCESS, position)
    position = start + 1
    wanted = {
        "ids": options.ids,
        "mask": options.mask or ("attention_mask" if "attention_mask" in inputs else None),
        "types": options.type_ids or ("token_type_ids" if "token_type_ids" in inputs else None),
    }
    batch = None
    kinds = {f"{PREPROCESS}/{position}/{each}": each for each in wanted}
    feeds = []
    for value, each in kinds.items():
        name = wanted[each]
        if name is None:
            continue
        key = "type_ids" if each == "types" else each
        if name not in inputs:
            what = f"tokenize gives {each} to '{name}', which is no input of the model; it has {', '.join(inputs)}"
            fix = did_you_mean(name, inputs) or f"write `{key}: {next(iter(inputs))}`"
            raise ProcessingError(what, fix, PREPROCESS, position)
        taken = inputs[name]
        if taken.dtype not in {"", "int64", "int32"} or len(taken.shape or (1, 1)) != _AXES:
            what = f"tokenize gives int64 of two axes, batch and length; the model's input '{name}' is {taken}"
            raise ProcessingError(what, f"write another input as `{key}`", PREPROCESS, position)
        batch = taken.shape[0] if taken.shape and batch is None else batch
        feeds.append(Feed(name, value, ValueType("int64", (batch, None)), taken.dtype))
    if len({each.input for each in feeds}) < len(feeds):
        what = "tokenize gives two of its values to one input"
        raise ProcessingError(what, "name another input", PREPROCESS, position)
    source = DummyInput(text.name, "string", (1 if batch is None else batch,))
    gives = dict.fromkeys(kinds, ValueType("int64", (batch, None)))
    takes = {text.name: type_of(source)}
    planned = PlannedOperation(PREPROCESS, position, "tokenize", options, takes, gives)
    return InputChain(source, (), tuple(feeds), (planned,))
