"""Load the model of a folder in Hugging Face's form, and make it return the task's outputs."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.entrypoint import Entrypoint
from onnxbuild.core.errors import StepError
from onnxbuild.core.external_code import external_code, message_of
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.huggingface import encoder_decoder_modules, images_and_text
from onnxbuild.onnxkit.huggingface.gguf import SUFFIX
from onnxbuild.onnxkit.huggingface.tasks import GENERATION, IMAGES_AND_TEXT, TASKS

if TYPE_CHECKING:
    import torch

INSTALL = "pip install 'onnxbuild[transformers]'"
_POOLED = "pooler_output"
_HIDDEN, _MASK = "last_hidden_state", "attention_mask"


def load_folder(context: StepContext, entrypoint: Entrypoint) -> torch.nn.Module:
    """The model of a step; see `load_model`.

    Args:
        entrypoint: The folder's files, config.json first; its arguments say the task.
    """
    shown, file = context.files(entrypoint)[0]
    return load_model(file, shown, entrypoint.args, context.where)


def load_model(
    file: Path, shown: str, arguments: Mapping[str, Any], where: str
) -> torch.nn.Module:
    """The model, in float32: a decoder as it is, of one with parts the part, any other in a module that returns the task's outputs by name.

    Args:
        file: The folder's config.json, or a GGUF file.
        shown: Its name, for messages.
        arguments: Facts of the source: task, architecture, outputs.
        where: `recipe:step`, for messages.

    Raises:
        StepError: transformers is not there or knows no such model, or a weight is missing.
    """
    part = arguments.get("part", "")
    writes_text = arguments["task"] == GENERATION or bool(part)
    gguf = {"gguf_file": file.name} if file.suffix == SUFFIX else {}
    lacking = [name for name in ("gguf", "accelerate") if find_spec(name) is None]
    if gguf and lacking:
        what = f"{shown} is read with the package {lacking[0]}, which is not installed"
        raise StepError(what, where=where, fix="pip install 'onnxbuild[gguf]'")
    classes = _classes(arguments, where)
    with _quiet(), external_code(lambda error: _blamed(error, file.parent, where)):
        config = _config(file, shown, gguf, writes_text=writes_text)
        line = shown if gguf else _line_of_type(file, shown)
        fitting = _fitting(classes, config, arguments["task"], line)
        model, found = _loaded(
            file.parent, fitting, config, gguf, allow_pickle=bool(arguments["allow_pickle"])
        )
    if found["mismatched_keys"]:
        raise _mismatched(min(found["mismatched_keys"]), model, where)
    lost = sorted(found["missing_keys"])
    pooler = [name for name in lost if "pooler." in name]
    if len(pooler) < len(lost) or (pooler and arguments["task"] != "feature-extraction"):
        raise _lost([name for name in lost if name not in pooler] or pooler, model, where)
    if part:
        is_of_both = arguments["task"] == IMAGES_AND_TEXT
        modules = images_and_text if is_of_both else encoder_decoder_modules
        return modules.part_of(model, part)
    if writes_text:
        return model
    outputs = [*arguments["outputs"], *(() if pooler else (_POOLED,))]
    return _named(model, outputs, zero_padding=bool(arguments["zero_padding"]))


def _classes(arguments: Mapping[str, Any], where: str) -> Sequence[Any]:
    """The classes of transformers for a task: the folder's own alone, where the config names it."""
    try:
        import transformers
    except ImportError as error:
        raise StepError(
            f"a folder in Hugging Face's form is loaded by transformers, which can't be imported: {error}",
            where=where,
            fix=INSTALL,
        ) from error
    task = TASKS[arguments["task"]]
    architecture = arguments["architecture"]
    names = (architecture,) if hasattr(transformers, architecture) else task.classes
    return [getattr(transformers, name) for name in names if hasattr(transformers, name)]


def _config(file: Path, shown: str, gguf: Mapping[str, str], *, writes_text: bool) -> Any:
    """The configuration, with a cache or without one.

    Raises:
        StepError: This version of transformers does not know such a model.
    """
    import transformers

    kind = None if gguf else json.loads(file.read_bytes()).get("model_type")
    if not gguf and kind not in transformers.CONFIG_MAPPING:
        version = transformers.__version__
        raise StepError(
            f"model_type is {kind!r:.80}, and transformers {version} knows no such model",
            where=_line_of_type(file, shown),
            fix="install a version of transformers that has it, or load it by "
            "`model: {entrypoint: ...}`",
        )
    config = transformers.AutoConfig.from_pretrained(
        file.parent, local_files_only=True, trust_remote_code=False, **gguf
    )
    for name, value in (("use_cache", writes_text), ("return_dict", True)):
        if hasattr(config, name):
            setattr(config, name, value)
    return config


def _line_of_type(file: Path, shown: str) -> str:
    """`weights/config.json:21`: where the type of the model stands."""
    lines = file.read_text("utf-8", "replace").splitlines()
    found = next((n for n, line in enumerate(lines, 1) if '"model_type"' in line), 1)
    return f"{shown}:{found}"


def _fitting(classes: Sequence[Any], config: Any, task: str, where: str) -> Any:
    """The first class that takes a model of this type.

    Raises:
        StepError: None does.
    """
    for each in classes:
        mapping = getattr(each, "_model_mapping", None)
        if mapping is None or type(config) in mapping:
            return each
    raise StepError(
        f"transformers has no {config.model_type} model for {task}",
        where=where,
        fix="write another `task`, or load the model by `model: {entrypoint: ...}`",
    )


def _loaded(
    folder: Path, model_class: Any, config: Any, gguf: Mapping[str, str], *, allow_pickle: bool
) -> tuple[torch.nn.Module, Mapping[str, Any]]:
    """(the model, what of its weights was found)."""
    import torch

    model, found = model_class.from_pretrained(
        folder,
        config=config,
        local_files_only=True,
        trust_remote_code=False,
        use_safetensors=not allow_pickle,
        attn_implementation="eager",
        dtype=torch.float32,
        ignore_mismatched_sizes=True,  # those are an error here, which names them
        output_loading_info=True,
        **gguf,
    )
    if gguf:  # its weights are float32 now
        del model.config.quantization_config
    return model, found


def _named(
    model: torch.nn.Module, outputs: Sequence[str], *, zero_padding: bool
) -> torch.nn.Module:
    """A module that returns these of the model's outputs; those that it does not have are left out.

    Args:
        model: As transformers loads it.
        outputs: Names of fields of what it returns.
        zero_padding: The hidden state is 0 where `attention_mask` is.
    """
    import torch

    class Named(torch.nn.Module):  # type: ignore[misc] # torch is Any here
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
            found = self.model(**inputs)
            if zero_padding:
                hidden = found[_HIDDEN]
                mask = inputs[_MASK].unsqueeze(-1).to(hidden.dtype)
                found[_HIDDEN] = hidden * mask
            return {name: found[name] for name in outputs if name in found}

    Named.forward.__signature__ = inspect.signature(  # type: ignore[attr-defined]
        type(model).forward
    )
    Named.__name__ = type(model).__name__
    return Named().eval()


def _lost(names: Sequence[str], model: torch.nn.Module, where: str) -> StepError:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return StepError(
        f"the folder has no weights for {names[0]}{more} of {type(model).__name__}: they would be "
        "random",
        where=where,
        fix="write the `task` that the folder's model was trained for, or name another folder",
    )


def _mismatched(
    weight: tuple[str, Sequence[int], Sequence[int]], model: torch.nn.Module, where: str
) -> StepError:
    name, own, expected = weight
    return StepError(
        f"{name} is {list(own)} in the folder, and {list(expected)} in the {type(model).__name__} that "
        "config.json describes",
        where=where,
        fix="write the `task` that the folder's model was trained for, or save the folder again: its "
        "config.json is another model's, or `id2label` or `vocab_size` in it were changed",
    )


def _blamed(error: BaseException, folder: Path, where: str) -> StepError:
    text = message_of(error)
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    fix = "load it once by itself: `AutoModel.from_pretrained(FOLDER)`"
    if type(error).__name__ == "SafetensorError":
        fix = "check that the files are complete; git-lfs pointers are a frequent cause"
    shown = f"{folder.name} can't be loaded: {type(error).__name__}: {first}"
    return StepError(shown.replace(f"{folder}/", ""), where=where, fix=fix)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers' notices and bars out of the log: what matters of them is checked here."""
    from transformers.utils import logging as notices

    level, bars = notices.get_verbosity(), notices.is_progress_bar_enabled()
    notices.set_verbosity(logging.CRITICAL)
    notices.disable_progress_bar()
    try:
        yield
    finally:
        notices.set_verbosity(level)
        if bars:
            notices.enable_progress_bar()
