"""Names and literals of C++."""

from __future__ import annotations

import json

from onnxbuild.onnxkit.packages.signature import identifiers

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
