"""Write a package: the bundle's files, files from templates, SHA256SUMS. Templates are in a folder of their format's room."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.step import Outcome, StepContext
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE, Manifest, read_manifest
from onnxbuild.onnxkit.bundles.write import write_sums
from onnxbuild.onnxkit.model.model_files import WEIGHTS_FILE, hand_on
from onnxbuild.onnxkit.packages.signature import ModelSignature, Port

if TYPE_CHECKING:
    from jinja2 import Environment

LEAVE_OUT = "take the variant out of `packages: {variants: [...]}`"
"""Fix for a bundle that a format has no form for."""

_MOST_SHOWN = 12


def read_bundle(context: StepContext) -> tuple[Path, Manifest]:
    """Return the folder of a step's input `bundle`, and its manifest."""
    bundle = context.input("bundle")
    return bundle, read_manifest(json.loads((bundle / MANIFEST_FILE).read_text("utf-8")))


def hand_model_on(bundle: Path, manifest: Manifest, folder: Path) -> list[str]:
    """Hand a bundle's model and manifest.json on to a package; return the names of the model's files."""
    models = [each for each in (manifest.file, WEIGHTS_FILE) if (bundle / each).exists()]
    hand_files_on(bundle, (*models, MANIFEST_FILE), folder)
    return models


def hand_files_on(bundle: Path, names: Iterable[str], folder: Path) -> None:
    """Hand files of a bundle on under the same names."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        hand_on(bundle / name, folder / name)


def refuse_type(
    context: StepContext, refused: Port | None, why: str, fix: str = LEAVE_OUT
) -> None:
    """Raise the error of an input or output of a type that the format can't hold, if there is one.

    Args:
        refused: That input or output.
        why: Follows its name: `is of a type that golden files don't hold`.

    Raises:
        StepError: There is one.
    """
    if refused is not None:
        raise StepError(f"'{refused.name}' {why}", where=context.where, fix=fix)


def packed(
    context: StepContext,
    manifest: Manifest,
    metrics: Mapping[str, Any] | None = None,
    notes: Iterable[str] = (),
) -> Outcome:
    """Write SHA256SUMS of the output `bundle`, the last file of a package; return the step's outcome."""
    files = write_sums(context.output("bundle"))
    own = {"model_bytes": manifest.size_bytes, **(metrics or {}), "files": files}
    return Outcome(own, notes=tuple(notes))


def write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8, its lines ended as on Linux on all systems."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def write_rendered(folder: Path, room: str, layout: Mapping[str, str], **content: object) -> None:
    """Write a package's files from templates.

    Args:
        room: As of `rendered`.
        layout: Path in the package -> template, without its `.j2`.
        **content: What the templates name.
    """
    for path, template in layout.items():
        write_text(folder / path, rendered(room, f"{template}.j2", **content))


def rendered(room: str, template: str, **content: object) -> str:
    """Return the text of a template, which ends with one newline; a name that it lacks is an error.

    Filters: `json` gives a value as JSON, which is a literal of JavaScript, TypeScript and, for ASCII text,
    of Kotlin, Swift and C++; `python` gives a literal of Python, `protobuf` a string of its text form,
    `yaml` a value of YAML after its key.

    Args:
        room: The package that has a folder `templates`, as its `__package__` says.
        template: Name of a file there, which ends with `.j2`.
    """
    text = resources.files(room).joinpath("templates", template).read_text(encoding="utf-8")
    return _environment().from_string(text).render(**content).rstrip("\n") + "\n"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, StrictUndefined

    made = Environment(  # noqa: S701 - sources and plain text; pages of HTML escape with `| e`
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    made.filters["json"] = _json
    made.filters["python"] = python_literal
    made.filters["protobuf"] = protobuf_string
    made.filters["yaml"] = yaml_value
    return made


def python_literal(value: object) -> str:
    """Return a literal of Python in ASCII, with double quotes around strings."""
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, tuple):
        inside = ", ".join(map(python_literal, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return repr(value)


def protobuf_string(value: str) -> str:
    """Return a string as protobuf's text form has it, whose escapes JSON's are, too."""
    return json.dumps(value, ensure_ascii=False)


def yaml_value(value: object, indent: int = 0) -> str:
    """Return what follows `key:` in YAML: ` SCALAR` in its line, or the lines of a block.

    Args:
        value: Plain data; keys are sorted.
        indent: Columns before the key, an even number.
    """
    import yaml

    nested, before = {"k": value}, ""
    for level in range(indent // 2):
        nested, before = {"k": nested}, f"{before}{'  ' * level}k:\n"
    text: str = yaml.safe_dump(nested, sort_keys=True, allow_unicode=True, width=1 << 20)
    return text.removeprefix(f"{before}{' ' * indent}k:").removesuffix("\n")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=True)


def signature_table(signature: ModelSignature) -> str:
    """Return a model's inputs, outputs, axes and golden inputs as Markdown; it ends with a newline."""
    ports = [("input", port) for port in signature.inputs]
    ports += [("output", port) for port in signature.outputs]
    labels = {name: _classes(each) for name, each in signature.labels.items()}
    return rendered(
        __package__ or "",
        "signature.md.j2",
        ports=[
            {
                "side": side,
                "name": _cell(port.name),
                "dtype": port.dtype,
                "shape": _cell(port.shape_text),
                "classes": labels.get(port.name, "") if side == "output" else "",
            }
            for side, port in ports
        ],
        has_classes=bool(labels),
        axes=[{"name": _cell(axis.name), "rule": axis.rule} for axis in signature.axes],
        golden=[f"`{_cell(name)}`" for name in signature.golden],
    )


def _classes(labels: Sequence[str]) -> str:
    """`3: red, green, blue`; a long list in part."""
    shown = list(labels)
    if len(shown) > _MOST_SHOWN:
        shown = [*shown[: _MOST_SHOWN - 1], "...", shown[-1]]
    return f"{len(labels)}: {', '.join(map(_cell, shown))}"


def _cell(text: str) -> str:
    """Text in a cell of a table."""
    return " ".join(text.replace("|", "\\|").split())
