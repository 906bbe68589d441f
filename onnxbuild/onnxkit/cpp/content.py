"""Contents of a C++ package: a header, a program that tests it, CMake's files, the model, golden inputs."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.core.axis import is_sum, shape_at
from onnxbuild.core.target import CPU
from onnxbuild.host.cpu import VNNI
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.cpp_examples import registering_lines
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE, Decoder, Manifest
from onnxbuild.onnxkit.bundles.write import names_below
from onnxbuild.onnxkit.loaders.onnx_bundle import _LEVELS, _SPINNING
from onnxbuild.onnxkit.packages.contents import hand_files_on, signature_table, write_rendered
from onnxbuild.onnxkit.packages.golden import GOLDEN, write_plain_points
from onnxbuild.onnxkit.packages.signature import ModelSignature, Port, identifiers, signature_of
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.providers import named, short_name

TYPES = {
    "bool": "bool", "int8": "std::int8_t", "int16": "std::int16_t", "int32": "std::int32_t", "int64": "std::int64_t",
    "uint8": "std::uint8_t", "uint16": "std::uint16_t", "uint32": "std::uint32_t", "uint64": "std::uint64_t",
    "float16": "Ort::Float16_t", "float32": "float", "float64": "double",
}  # fmt: skip
"""Element type -> the type of C++ that a tensor of the package holds."""

_WORDS = (
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class "
    "compl concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype "
    "default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline "
    "int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
    "register reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch "
    "template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile "
    "wchar_t while xor xor_eq "
    "assert errno linux unix stdin stdout stderr signbit isnan isinf major minor min max near far small interface"
)
RESERVED = frozenset(_WORDS.split())
"""Keywords up to C++20, and macros in lower case of systems' headers."""


def literal(text: str) -> str:
    """Return a string literal; beyond ASCII it has UTF-8's bytes as escapes of three octal digits."""
    written = "".join(_escaped(byte) for byte in text.encode())
    return f'"{written}"'


def _escaped(byte: int) -> str:
    character = chr(byte)
    if character in '"\\?':  # `??` begins a trigraph
        return f"\\{character}"
    return character if character.isascii() and character.isprintable() else f"\\{byte:03o}"


def json_literal(text: str) -> str:
    """Return a string literal whose text is a string of JSON."""
    return literal(json.dumps(text))


def namespace_of(recipe: str, variant: str) -> str:
    """Return the namespace of a package, which also names its folders and targets: `digits_int8`."""
    name = identifiers([f"{recipe}-{variant}"], "snake", RESERVED)[f"{recipe}-{variant}"]
    return f"model{name}" if name.startswith("_") else name


def members_of(names: tuple[str, ...]) -> dict[str, str]:
    """Return name -> member of a struct of inputs or outputs."""
    return identifiers(names, "snake", RESERVED)


MODEL = "model"
"""The folder of the model's files in a package."""

HEADERS_SCRIPT = "fetch_headers.sh"
_ROOT = ("main.cpp", "golden.h", "golden_points.h", "CMakeLists.txt", "README.md", HEADERS_SCRIPT)
_NOT_CHECKED = "NOT_CHECKED"
_BOUNDS = ("atol", "rtol", "cosine_min", "sqnr_db_min", "equal_min", "apart")
"""Names of tolerances, in the order of the struct Bounds of golden.h."""


@dataclass(frozen=True, slots=True)
class CppNames:
    """Names in a C++ package.

    Attributes:
        namespace: C++ namespace; folders and CMake's targets have the same name.
        program: Name of the test program.
    """

    namespace: str
    program: str


def names_of(recipe: str, variant: str) -> CppNames:
    """Return the names of a variant's package."""
    namespace = namespace_of(recipe, variant)
    return CppNames(namespace, f"{namespace}_golden_test")


def refused_port(signature: ModelSignature) -> Port | None:
    """Return an input or output that the package has no type of C++ for; None if there is none."""
    return next((each for each in signature.ports if each.dtype not in TYPES), None)


def usable_providers(manifest: Manifest) -> tuple[str, ...]:
    """Return the full names of the manifest's providers that ONNX Runtime's C++ API can append."""
    return tuple(each.name for each in manifest.providers or () if _is_usable(each.name))


def write_package(
    folder: Path,
    bundle: Path,
    manifest: Manifest,
    reference: Path,
    tolerances: VariantTolerances,
    *,
    texts: Sequence[tuple[Sequence[int], Sequence[int]]] = (),
) -> int:
    """Write all files but SHA256SUMS; return the number of golden points.

    `refused_port` finds none, `usable_providers` some.

    Args:
        texts: Ids of prompts, and of the tokens that must follow each, of a decoder.
    """
    points = write_plain_points(folder / GOLDEN, reference, tolerances)
    signature = signature_of(manifest, [each["name"] for each in points])
    names = names_of(signature.recipe, signature.variant)
    hand_files_on(bundle, _model_files(bundle, manifest), folder / MODEL)
    layout = {name: name for name in _ROOT}
    layout |= {f"include/{names.namespace}/model.h": "model.h"}
    layout |= {"cmake/onnxruntime.cmake": "onnxruntime.cmake"}
    content = _content(signature, manifest, names, points)
    if manifest.decoder is not None:
        layout |= {f"include/{names.namespace}/generate.h": "generate.h"}
        content["decoder"] = _decoder(manifest, manifest.decoder, signature)
        content["texts"] = [tuple(_braced(map(str, ids)) for ids in each) for each in texts]
    write_rendered(folder, __package__ or "", layout, **content)
    return len(points)


def _model_files(bundle: Path, manifest: Manifest) -> Iterator[str]:
    """The model, what it reads, and the manifest."""
    operators = {each.file for each in manifest.operators or ()}
    for name in names_below(bundle):
        if name.startswith(manifest.file) or name in operators or name == MANIFEST_FILE:
            yield name


def _content(
    signature: ModelSignature,
    manifest: Manifest,
    names: CppNames,
    points: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the variables of the templates."""
    inputs, outputs = (_ports(each) for each in (signature.inputs, signature.outputs))
    usable = [named(name) for name in usable_providers(manifest) if short_name(name) != CPU]
    targets = manifest.targets or {}
    return {
        "signature": signature,
        "namespace": names.namespace,
        "program": names.program,
        "guard": f"{names.namespace.upper()}_MODEL_H",
        "inputs": inputs,
        "outputs": outputs,
        "axes": [f"{each.name}: {each.rule}" for each in signature.axes],
        "labels": {
            each["member"]: [literal(name) for name in signature.labels[each["name"]]]
            for each in outputs
            if each["name"] in signature.labels
        },
        "table": signature_table(signature),
        "input_names": ", ".join(each["literal"] for each in inputs) or "nullptr",
        "output_names": ", ".join(each["literal"] for each in outputs),
        "model_file": literal(signature.file),
        "targets": [
            {"name": literal(name), "settings": _settings(each.session)}
            for name, each in targets.items()
        ],
        "target_names": ", ".join(f" `{name}`" for name in targets).lstrip(),
        "chains": list(_chains(manifest)),
        "structs": [_api(each.full_name) for each in usable if each.api_struct],
        "named": [
            {**_api(each.full_name), "api_name": literal(each.api_name)}
            for each in usable
            if not each.api_struct
        ],
        "saturates": bool(manifest.sums_may_saturate),
        "vnni": ", ".join(literal(flag) for flag in sorted(VNNI)),
        "operators": list(registering_lines(manifest.operators)) if manifest.operators else [],
        "points": [_point(each) for each in points],
        "onnxruntime": manifest.versions["onnxruntime"],
        "decoder": None,
        "texts": (),
    }


def _decoder(manifest: Manifest, known: Decoder, signature: ModelSignature) -> dict[str, Any]:
    """Return what the loop of a decoder feeds, by members."""
    ports = {each.name: each for each in signature.inputs}
    inputs = members_of(tuple(ports))
    outputs = members_of(tuple(each.name for each in signature.outputs))
    axes = manifest.dynamic_axes
    empty = {**dict.fromkeys(axes, 1), **({known.past: 0} if known.past else {})}
    masks = [(name, is_sum((ports[name].shape or ("",))[-1])) for name in known.masks]
    return {
        "ids": inputs[known.ids],
        "masks": [
            {
                "member": inputs[name],
                "is_whole": whole,
                "one": f"static_cast<{TYPES[ports[name].dtype]}>(1)",
            }
            for name, whole in masks
        ],
        "needs_whole": any(whole for _, whole in masks),
        "positions": [
            {
                "member": inputs[name],
                "rank": len(ports[name].shape or ()),
                "type": TYPES[ports[name].dtype],
            }
            for name in known.positions
        ],
        "logits": outputs[known.logits],
        "state": [
            {
                "input": inputs[name],
                "output": outputs[fed_by],
                "shape": shape_at(ports[name].shape or (), empty),
            }
            for name, fed_by in (manifest.state or {}).items()
        ],
        "most": axes[known.new]["max"] if known.new else 1,
        "room": axes[known.past]["max"] + 1 if known.past else 0,
    }


def _ports(ports: Sequence[Port]) -> list[dict[str, str]]:
    members = members_of(tuple(each.name for each in ports))
    return [
        {
            "about": f"{json.dumps(each.name)}: {each.dtype} {each.shape_text}",
            "name": each.name,
            "shape": each.shape_text,
            "dtype": each.dtype,
            "type": TYPES[each.dtype],
            "element": "std::uint8_t" if each.dtype == "bool" else TYPES[each.dtype],
            "member": members[each.name],
            "literal": literal(each.name),
        }
        for each in ports
    ]


def _settings(session: SessionSettings) -> str:
    """An initializer of `Settings`."""
    mode = "ORT_PARALLEL" if session.execution_mode == "parallel" else "ORT_SEQUENTIAL"
    config = {**_SPINNING[session.spinning], **session.config}
    values = (
        _LEVELS[session.graph_optimization],
        mode,
        str(session.intra_op_threads),
        str(session.inter_op_threads),
        _boolean(session.memory_pattern),
        _boolean(session.cpu_arena),
        _boolean(session.deterministic_compute),
        _braced(f"{{{literal(axis)}, {n}}}" for axis, n in session.free_dimensions.items()),
        _pairs({key: str(value) for key, value in config.items()}),
    )
    return _braced(values)


def _chains(manifest: Manifest) -> Iterator[dict[str, Any]]:
    """The whole model's chain under the empty name, then each target's."""
    by_target = {"": [(each, each.target or "") for each in manifest.providers or ()]}
    for name, target in (manifest.targets or {}).items():
        if target.library is None:
            by_target[name] = [(each, name) for each in target.chain]
    for name, chain in by_target.items():
        yield {
            "target": literal(name),
            "providers": [
                _braced((literal(each.name), literal(owner), _pairs(each.options)))
                for each, owner in chain
                if _is_usable(each.name)
            ],
        }


def _is_usable(provider: str) -> bool:
    return short_name(provider) == CPU or bool(named(provider).api_name)


def _api(provider: str) -> dict[str, str]:
    return {"full_name": literal(provider), "api_name": named(provider).api_name}


def _point(point: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": f"{literal(point['name'])}, {json_literal(point['name'])}",
        "inputs": [_array(each) for each in point["inputs"]],
        "outputs": [_array(each) for each in point["outputs"]],
        "skipped_rows": _braced(map(str, point.get("skipped_rows", ()))),
    }


def _array(array: Mapping[str, Any]) -> str:
    """An initializer of `Array`."""
    bounds = array.get("bounds")
    values = (
        literal(array["name"]),
        json_literal(array["name"]),
        literal(array["dtype"]),
        _braced(map(str, array["shape"])),
        literal(array["file"]),
        _braced(_bound(bounds[name]) for name in _BOUNDS) if bounds else "{}",
    )
    return _braced(values)


def _bound(value: float | None) -> str:
    return _NOT_CHECKED if value is None else repr(float(value))


def _pairs(values: Mapping[str, str]) -> str:
    return _braced(f"{{{literal(key)}, {literal(each)}}}" for key, each in values.items())


def _braced(values: Iterable[str]) -> str:
    return f"{{{', '.join(values)}}}"


def _boolean(value: bool) -> str:  # noqa: FBT001 - a value, no flag
    return "true" if value else "false"
