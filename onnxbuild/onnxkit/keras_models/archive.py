"""Outline of a .keras archive, read without Keras: inputs, outputs, layers.

Names of keys are those of keras/src/saving/saving_lib.py and serialization_lib.py.
"""

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onnxbuild.core.recipe import DTYPES, INPUT_NAME
from onnxbuild.core.source_error import SourceError
from onnxbuild.onnxkit.sources.outline import FORM, SourceOutline, SourceValue

KERAS = "keras"
"""The form of a file, as `model` names it."""

INPUTS, OUTPUTS, WRITTEN_BY = "inputs", "outputs", "written_by"
"""Facts of an archive: names of inputs; of outputs, empty where they go by position; the version of Keras."""

_CONFIG, _METADATA = "config.json", "metadata.json"

_WEIGHTS = ("model.weights.h5", "model.weights.npz")

_LARGEST = 1 << 28
"""Bytes of a config or metadata that is read at most."""

_HDF5 = b"\x89HDF\r\n\x1a\n"

_SEQUENTIAL, _FUNCTIONAL = "Sequential", "Functional"

_RECURRENT = frozenset(
    {"LSTM", "GRU", "SimpleRNN", "RNN", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D"}
)

_CALLABLE = "load the model by `model: {entrypoint: FILE.py:CALLABLE}`, which returns it on the torch backend"


@dataclass(frozen=True, slots=True)
class KerasArchive:
    """Outline of an archive, and its first layer that an export unrolls.

    Attributes:
        outline: Inputs in the order in which Keras flattens them, under names that a recipe may have.
        recurrent: Name of its first recurrent layer; empty for none.
    """

    outline: SourceOutline
    recurrent: str


def read_archive(path: Path) -> KerasArchive:
    """Read the outline of an archive.

    Raises:
        SourceError: It is no .keras archive, parts of it are missing, or it holds code or a class
            of the user's.
        OSError: It can't be read.
    """
    convert = "or convert it by tf2onnx in a callable of yours, and write `frontend: onnx`"
    if path.is_dir() and _is_saved_model(path):
        raise SourceError(
            f"{path.name} is a SavedModel of TensorFlow; expected an archive of Keras 3",
            f"write `model: {{saved_model: {path.name}}}`",
        )
    if path.is_dir():
        raise SourceError(
            f"{path.name} is a folder; expected an archive of Keras 3",
            f"save the model by `model.save('model.keras')`; {convert}",
        )
    if _is_hdf5(path):
        raise SourceError(
            f"{path.name} is an HDF5 file of an earlier Keras; expected an archive of Keras 3",
            f"load it in Keras and save it again: `model.save('model.keras')`; {convert}",
        )
    config, metadata = _json_of(path)
    return _outline(path.name, config, str(metadata.get("keras_version", "")))


def is_earlier_form(path: Path) -> bool:
    """Return whether a path is an HDF5 file; `read_archive`'s error says how to convert it."""
    return path.is_file() and _is_hdf5(path)


def _is_saved_model(path: Path) -> bool:
    return (path / "saved_model.pb").is_file()


def _is_hdf5(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_HDF5)) == _HDF5


def _json_of(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """(config, metadata) of an archive that has weights."""
    again = "save the model again by `model.save('model.keras')`"
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if _CONFIG not in names or _METADATA not in names:
                raise SourceError(
                    f"{path.name} is a zip without {_CONFIG} and {_METADATA}: no archive of Keras 3",
                    again,
                )
            if not any(each in names for each in _WEIGHTS):
                raise SourceError(
                    f"{path.name} has no {_WEIGHTS[0]}: its weights are missing", again
                )
            if any(archive.getinfo(each).file_size > _LARGEST for each in (_CONFIG, _METADATA)):
                raise SourceError(f"{path.name} has a {_CONFIG} above {_LARGEST >> 20} MiB", again)
            found = [json.loads(archive.read(each)) for each in (_CONFIG, _METADATA)]
    except zipfile.BadZipFile as error:
        raise SourceError(
            f"{path.name} is no complete zip, as a .keras archive is: {error}",
            "copy it again; git-lfs pointers are a frequent cause",
        ) from error
    except (ValueError, RecursionError, NotImplementedError, RuntimeError, EOFError) as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(f"{path.name} can't be read: {error}", again) from error
    if not all(isinstance(each, dict) for each in found):
        raise SourceError(f"{path.name} has a {_CONFIG} that is no object", again)
    return found[0], found[1]


def _outline(name: str, config: Mapping[str, Any], version: str) -> KerasArchive:
    own = config.get("config")
    layers = own.get("layers") if isinstance(own, Mapping) else None
    objects = list(_objects(config.get("config")))
    for each in (config, *objects):
        _refuse_code(name, each)
    kind = config.get("class_name")
    if not isinstance(own, Mapping) or not isinstance(layers, list):
        raise SourceError(
            f"{name} holds a {kind}, which does not say its layers; expected a Sequential or Functional model",
            _CALLABLE,
        )
    try:
        inputs, outputs = (
            _sequential(own, layers) if kind == _SEQUENTIAL else _functional(own, layers)
        )
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(
            f"the inputs and outputs of {name} can't be read from its {_CONFIG} ({type(error).__name__}: {error})",
            f"save the model again with a later Keras, or {_CALLABLE}",
        ) from error
    found = (each for each in objects if each.get("class_name") in _RECURRENT)
    recurrent = next((str(each["config"].get("name") or each["class_name"]) for each in found), "")
    names = _unique(outputs, {each.name for each in inputs})
    values = tuple(replace(each, name=_recipe_name(each.name)) for each in inputs)
    outline = SourceOutline(
        inputs=values,
        outputs=tuple(map(SourceValue, names)),
        is_strict=True,
        facts={FORM: KERAS, INPUTS: [each.name for each in values], WRITTEN_BY: version},
    )
    return KerasArchive(outline, recurrent)


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield each serialized Keras object (`class_name`, `config`) in a value, outer ones first."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += reversed(value)
        elif isinstance(value, Mapping):
            if "class_name" in value and isinstance(value.get("config"), Mapping):
                yield value
            waiting += reversed(list(value.values()))


def _refuse_code(name: str, made: Mapping[str, Any]) -> None:
    kind = str(made.get("class_name"))
    if kind in ("Lambda", "__lambda__"):
        layer = made["config"].get("name", "lambda")
        raise SourceError(
            f"layer '{layer}' of {name} is a Lambda, which is code; an archive's code never runs",
            f"make it of `keras.ops` in a model without it; or {_CALLABLE}",
        )
    module = made.get("module")
    package = module.partition(".")[0] if isinstance(module, str) else None
    if "registered_name" in made and package not in ("keras", "builtins"):
        whose = f" of {module}" if module else ""
        raise SourceError(
            f"{name} needs the class {kind}{whose}, which is no part of Keras: an archive does not hold its code",
            _CALLABLE,
        )


def _sequential(
    own: Mapping[str, Any], layers: list[Any]
) -> tuple[tuple[SourceValue, ...], list[str]]:
    first = layers[0]
    if first["class_name"] == "InputLayer":
        after = layers[1] if len(layers) > 1 else first
        given = _input(first["config"], str(first["config"]["name"]), _rows(after))
    else:
        shape = own.get("build_input_shape") or first["build_config"]["input_shape"]
        given = _input({"batch_shape": shape}, "input", _rows(first))
    return (given,), [str(layers[-1]["config"]["name"])]


def _functional(
    own: Mapping[str, Any], layers: list[Any]
) -> tuple[tuple[SourceValue, ...], list[str]]:
    by_name = {each["config"]["name"]: each["config"] for each in layers}
    rows: dict[str, int] = {}
    for each in layers:
        count = _rows(each)
        for source in [one for node in each.get("inbound_nodes", ()) for one in _sources(node)]:
            if count:  # other layers may take the same ids, and another table be smaller
                rows[source] = min(count, rows.get(source, count))
    inputs = tuple(
        _input(by_name[layer], shown, rows.get(layer, 0))
        for shown, layer in _leaves(own["input_layers"])
    )
    return inputs, [shown for shown, _ in _leaves(own["output_layers"])]


def _sources(node: Any) -> Iterator[str]:
    """Layers whose outputs a node takes."""
    for each in _objects(node):
        if each["class_name"] == "__keras_tensor__":
            yield str(each["config"]["keras_history"][0])


def _leaves(structure: Any, shown: str = "") -> Iterator[tuple[str, str]]:
    """(name, layer) of each place, in the order in which Keras flattens them; keys come before layers' names."""
    if isinstance(structure, Mapping):
        for key in sorted(structure):
            yield from _leaves(structure[key], key)
    elif len(structure) == 3 and isinstance(structure[0], str) and isinstance(structure[1], int):  # noqa: PLR2004
        yield shown or structure[0], structure[0]
    else:
        for each in structure:
            yield from _leaves(each)


def _input(config: Mapping[str, Any], name: str, rows: int) -> SourceValue:
    for form in ("sparse", "ragged"):
        if config.get(form):
            raise SourceError(f"input '{name}' is {form}; a recipe feeds dense tensors", _CALLABLE)
    shape = config.get("batch_shape") or config["batch_input_shape"]
    if isinstance(shape[0], (list, tuple)):
        raise SourceError(f"the model takes several inputs without names ({shape})", _CALLABLE)
    dtype = config.get("dtype") or "float32"
    if dtype not in DTYPES or dtype == "string":
        raise SourceError(
            f"input '{name}' has the type {dtype}; PyTorch, which runs the model, has no such tensors",
            "save a model without its preprocessing layers, which takes numbers",
        )
    sizes = tuple("" if each is None else each for each in shape)
    return SourceValue(name, str(dtype), sizes, 0 if "float" in str(dtype) else rows)


def _rows(layer: Mapping[str, Any]) -> int:
    """Rows of the table that a layer looks its input up in; 0 where it does not."""
    rows = layer["config"].get("input_dim") if layer["class_name"] == "Embedding" else 0
    return rows if isinstance(rows, int) else 0


def _unique(names: list[str], taken: set[str]) -> tuple[str, ...]:
    found: list[str] = []
    for name in names:
        given, n = (f"{name}_out" if name in taken else name), 1
        while given in found:
            given, n = f"{name}_{n}", n + 1
        found.append(given)
    return tuple(found)


def chosen_outputs(archive: KerasArchive, chosen: object) -> list[str]:
    """Names of the outputs in a recipe that chooses these; none where they are other names, which go by position."""
    names = [each.name for each in archive.outline.outputs]
    is_other = isinstance(chosen, list) and not all(each in names for each in chosen)
    return [] if is_other else names


def refuse_unrolled(archive: KerasArchive, shapes: Mapping[str, Any]) -> None:
    """See that recurrent layers get a fixed number of steps: on PyTorch, Keras runs a loop, whose turns an export fixes.

    Args:
        shapes: Name of an input -> its shape in the recipe.

    Raises:
        SourceError: An axis after the first is dynamic.
    """
    for value in archive.outline.inputs if archive.recurrent else ():
        shape = shapes[value.name]
        dynamic = [n for n, size in enumerate(shape) if n and isinstance(size, str)]
        for n in dynamic[:1]:
            sizes = [16 if m == n else each for m, each in enumerate(shape)]
            is_open = (value.shape or ())[n] == ""
            raise SourceError(
                f"layer '{archive.recurrent}' is recurrent: an export fixes its number of steps, and axis {n} of input "
                f"'{value.name}' is {'dynamic' if is_open else shape[n]}",
                f"write a number there: `dummy_inputs: {{{value.name}: {{shape: [{', '.join(map(str, sizes))}]}}}}`",
                "dummy_inputs",
                value.name,
                "shape",
                mend={"dummy_inputs": {value.name: {"shape": sizes}}},
            )


def _recipe_name(name: str) -> str:
    if re.search(INPUT_NAME, name):
        return name
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")
    return plain if plain[:1].isalpha() else f"input_{plain}".strip("_")
