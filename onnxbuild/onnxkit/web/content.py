"""Files of a web package besides the model: ONNX Runtime Web, the module, its types, the page.

Source: onnxruntime-web 1.30.0, package.json and dist/.
"""

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from math import prod
from pathlib import Path
from typing import Any

from onnxbuild.core.axis import shape_at
from onnxbuild.core.digest import Digest
from onnxbuild.core.environment import BUILT_IN
from onnxbuild.core.params import to_json
from onnxbuild.onnxkit.bundles.manifest import Manifest
from onnxbuild.onnxkit.packages.contents import (
    rendered,
    signature_table,
    write_rendered,
    write_text,
)
from onnxbuild.onnxkit.packages.signature import ModelSignature, Port
from onnxbuild.onnxkit.packages.typescript import (
    ARRAYS,
    constant_in,
    javascript_signature,
    shared_javascript,
    typed_port,
)
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.onnxkit.web.view import view_of

NPM_LIST = f"{BUILT_IN}/onnxkit/web/package-lock.json"
PACKAGE = "onnxruntime-web"
VERSION = "1.30.0"
FOLDER = "runtime/"
WEBGPU, WASM = "webgpu", "wasm"
ML_DOMAIN = "ai.onnx.ml"
"""Operators that the build for WebGPU is without; that for WebAssembly has them."""

BUILDS: Mapping[str, Mapping[str, str]] = {
    "wasm": {
        "js": "ort.wasm.min.mjs",
        "mjs": "ort-wasm-simd-threaded.mjs",
        "wasm": "ort-wasm-simd-threaded.wasm",
    },
    "webgpu": {
        "js": "ort.webgpu.min.mjs",
        "mjs": "ort-wasm-simd-threaded.asyncify.mjs",
        "wasm": "ort-wasm-simd-threaded.asyncify.wasm",
    },
}
"""Provider -> its files. The plain build is half the size of WebGPU's, so that a browser without WebGPU loads
less; `asyncify` runs in every browser that has WebGPU, `jspi` in few."""

MOST_BYTES = 1_900_000_000
"""WebAssembly addresses 4 GiB, and a session needs the model twice while it opens; an ArrayBuffer ends at 2 GiB."""

_LEVELS = {"disable": "disabled", "basic": "basic", "extended": "extended"}
"""Session's graph_optimization -> graphOptimizationLevel; all optimizations are its default."""


def copy_runtime(node_modules: Path, folder: Path, providers: Sequence[str]) -> list[str]:
    """Copy the files of providers, and return their names in the package.

    Args:
        node_modules: Has the package onnxruntime-web.
    """
    names = [name for each in providers for name in BUILDS[each].values()]
    (folder / FOLDER).mkdir()
    for name in names:
        shutil.copyfile(node_modules / PACKAGE / "dist" / name, folder / FOLDER / name)
    return [f"{FOLDER}{name}" for name in names]


def session_of(manifest: Manifest) -> SessionSettings:
    """Return the variant's settings; of a model in ORT format those that its gate opened it with."""
    targets = [each.session for each in (manifest.targets or {}).values()]
    return manifest.session or (targets[0] if targets else SessionSettings())


def session_options(settings: SessionSettings) -> dict[str, Any]:
    """Return the options of InferenceSession.create that differ from its own; threads are the page's."""
    options: dict[str, Any] = {}
    if settings.graph_optimization in _LEVELS:
        options["graphOptimizationLevel"] = _LEVELS[settings.graph_optimization]
    if not settings.memory_pattern:
        options["enableMemPattern"] = False
    if not settings.cpu_arena:
        options["enableCpuMemArena"] = False
    if settings.free_dimensions:
        options["freeDimensionOverrides"] = dict(settings.free_dimensions)
    extra: dict[str, Any] = {}
    for key, value in settings.config.items():
        *above, last = key.split(".")
        place = extra
        for part in above:
            place = place.setdefault(part, {})
        place[last] = str(value)
    return {**options, **({"extra": extra} if extra else {})}


def settings_left_out(settings: SessionSettings) -> list[str]:
    """Return the settings that differ from ONNX Runtime's own and have no place in a browser."""
    own = SessionSettings()
    names = (
        "execution_mode", "intra_op_threads", "inter_op_threads", "spinning", "deterministic_compute",
    )  # fmt: skip
    return [name for name in names if getattr(settings, name) != getattr(own, name)]


MOST_POINTS = 32
"""Golden points in a package: each is a few files that a server has."""

_PAGE = "page"
_SHARED = ("tensors.js", "judge.js")
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_MOST_SHOWN_BYTES = 1e6


@dataclass(frozen=True, slots=True)
class Page:
    """Content of the example page and the README.

    Attributes:
        title: Of the page, and of the module.
        description: The recipe's; may be empty.
        values: Least and greatest value of the recipe's dummy image.
        is_there: Whether the package has an example page.
    """

    title: str
    description: str
    values: tuple[float, float] | None
    is_there: bool


def write_module(
    folder: Path,
    manifest: Manifest,
    signature: ModelSignature,
    page: Page,
    *,
    files: Mapping[str, Digest],
    model_files: Sequence[str],
    providers: Sequence[str],
    threads: int,
) -> None:
    """Write model.js, its types, package.json and README.md.

    Args:
        signature: The same, as sources are written from it.
        files: What model.js fetches -> size and digest.
        model_files: Those of the model, the one that is opened first.
        threads: The most that it starts by itself.
    """
    builds = {name: dict(BUILDS[name]) for name in providers}
    content = {
        "title": _in_comment(page.title),
        "runtime": {"version": VERSION},
        "version": VERSION,
        "example": _in_comment(example_of(signature)),
        "signature": javascript_signature(signature),
        "files": _pretty({name: to_json(files[name]) for name in sorted(files)}),
        "runtime_json": _pretty({"version": VERSION, "folder": FOLDER, "builds": builds}),
        "model_files": json.dumps(list(model_files)),
        "session": json.dumps(session_options(session_of(manifest)), sort_keys=True),
        "threads": threads,
        "inputs": [typed_port(each, signature) for each in signature.inputs],
        "outputs": [typed_port(each, signature) for each in signature.outputs],
        "labels": signature.labels,
        "has_half": any(port.dtype == "float16" for port in signature.ports),
        "providers": " | ".join(json.dumps(each) for each in ("auto", *providers)),
        "ran": " | ".join(
            json.dumps(each)
            for each in (*providers, *(("webgpu+wasm",) if "webgpu" in providers else ()))
        ),
    }
    room = __package__ or ""
    layout = {"model.js": "model.js", "model.d.ts": "model.d.ts", f"{FOLDER}LICENSE": "LICENSE"}
    write_rendered(folder, room, layout, **content)
    for name in _SHARED:
        write_text(folder / name, shared_javascript(name))
    readme = {
        "title": content["title"],
        "signature": signature,
        "example": example_of(signature),
        "table": signature_table(signature),
    }
    write_rendered(folder, room, {"README.md": "README.md"}, **readme)
    package = {"name": package_name(signature), "private": True, "type": "module", "main": "model.js", "types": "model.d.ts"}  # fmt: skip
    write_text(folder / "package.json", f"{_pretty(package)}\n")


def write_page(
    folder: Path,
    manifest: Manifest,
    signature: ModelSignature,
    page: Page,
    *,
    providers: Sequence[str],
    points: int,
) -> None:
    """Write the example page, if there is to be one, the golden test, and a server with the right headers."""
    static = resources.files(__package__).joinpath("static")
    for each in static.iterdir():
        if page.is_there or each.name != _PAGE:
            _copy(each, folder / each.name)
    if not page.is_there:
        return
    config = json.dumps(view_of(signature, page.values), sort_keys=True)
    ports = [("input", each) for each in signature.inputs]
    ports += [("output", each) for each in signature.outputs]
    text = rendered(
        __package__,
        "index.html.j2",
        title=page.title,
        description=page.description,
        variant=f"variant {signature.variant}",
        size=_size(manifest.size_bytes),
        config=config.replace("<", "\\u003c"),
        points=points,
        has_webgpu="webgpu" in providers,
        example=example_of(signature),
        ports=ports,
        axes="; ".join(f"{axis.name}: {axis.rule}" for axis in signature.axes),
        runtime={"version": VERSION},
    )
    write_text(folder / "index.html", text)


def opened_files(folder: Path) -> tuple[str, ...]:
    """Return the files that model.js opens as the model, the graph first.

    Raises:
        ValueError: It does not say so as this version writes it.
    """
    return tuple(map(str, constant_in(folder / "model.js", "MODEL_FILES")))


def package_name(signature: ModelSignature) -> str:
    """Return the name in package.json: letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", f"{signature.recipe}-{signature.variant}".lower()).strip("-")


def example_of(signature: ModelSignature) -> str:
    """Return inputs as JavaScript, of one row: `{ ids: { data: new BigInt64Array(16), shape: [1, 16] } }`."""
    firsts = {port.shape[0] for port in signature.inputs if port.shape}
    sizes = {
        axis.name: axis.nearest(1) if axis.name in firsts else axis.example
        for axis in signature.axes
    }
    parts = []
    for port in signature.inputs:
        name = port.name if _IDENTIFIER.fullmatch(port.name) else json.dumps(port.name)
        is_known = port.example_shape is not None and port.shape is not None
        shape = shape_at(port.shape or (), sizes) if is_known else ()
        parts.append(f"{name}: {_example(port, shape)}")
    if len(parts) == 1:
        return f"{{ {parts[0]} }}"
    lines = "".join(f"  {part},\n" for part in parts)
    return f"{{\n{lines}}}"


def _example(port: Port, shape: Sequence[int]) -> str:
    count = prod(shape)
    if port.dtype == "string":
        texts = ", ".join(['"a text"'] * count) if len(shape) == 1 else '"a text"'
        return f"[{texts}]" if len(shape) == 1 else texts
    return f"{{ data: new {ARRAYS[port.dtype]}({count}), shape: {json.dumps(list(shape))} }}"


def _copy(source: Traversable, target: Path) -> None:
    """Copy a file or a folder; not what Python or an editor left there."""
    if source.name.startswith(("__", ".")):
        return
    if source.is_dir():
        target.mkdir()
        for each in source.iterdir():
            _copy(each, target / each.name)
    else:
        target.write_bytes(source.read_bytes())


def _in_comment(text: str) -> str:
    """A text that ends no comment of JavaScript."""
    return " ".join(text.replace("*/", "* /").split())


def _size(size_bytes: int) -> str:
    if size_bytes < _MOST_SHOWN_BYTES:
        return f"{size_bytes / 1e3:.0f} kB"
    return f"{size_bytes / 1e6:.1f} MB"


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, sort_keys=False)
