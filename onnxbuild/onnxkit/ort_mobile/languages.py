"""Element types of tensors in Kotlin, Swift and TypeScript; a dtype that one lacks is absent."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from onnxbuild.onnxkit.packages.signature import Port, Style, identifiers


@dataclass(frozen=True, slots=True)
class Form:
    """Elements of one type in one language.

    Attributes:
        takes: What an input's elements are in.
        gives: What an output's are in.
        type: The type's name in ONNX Runtime's API there.
    """

    takes: str
    gives: str
    type: str


@dataclass(frozen=True, slots=True)
class Language:
    """One language.

    Attributes:
        name: For people.
        file: Of the source in a package; `{name}` stands for that of the class.
        template: Its template.
        style: Of members.
        reserved: Words that are no names of members.
        forms: Element type -> how it is held.
        quoted: Text -> a literal of it.
    """

    name: str
    file: str
    template: str
    style: Style
    reserved: frozenset[str]
    forms: Mapping[str, Form]
    quoted: Callable[[str], str]

    def lacks(self, ports: tuple[Port, ...]) -> tuple[str, ...]:
        """Return the element types of inputs and outputs that its API has not, sorted."""
        return tuple(sorted({each.dtype for each in ports} - self.forms.keys()))

    def ports(self, ports: tuple[Port, ...]) -> list[dict[str, str]]:
        """Return what a template says of inputs or outputs."""
        members = identifiers((each.name for each in ports), self.style, self.reserved)
        return [
            {
                "name": each.name,
                "dtype": each.dtype,
                "shown": json.dumps(each.name).replace("*/", "*\\/").replace("/*", "/\\*"),
                "literal": self.quoted(each.name),
                "shape": each.shape_text,
                "member": members[each.name],
                "takes": self.forms[each.dtype].takes,
                "gives": self.forms[each.dtype].gives,
                "type": self.forms[each.dtype].type,
            }
            for each in ports
        ]


def _in_kotlin(text: str) -> str:
    return json.dumps(text).replace("$", "\\$")


def _in_swift(text: str) -> str:
    return "".join(_swift_character(each) for each in text).join('""')


def _swift_character(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    is_plain = character.isascii() and character.isprintable()
    return character if is_plain else f"\\u{{{ord(character):x}}}"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BYTES = {"int8": "INT8", "uint8": "UINT8", "bool": "BOOL"}
_KOTLIN = {
    "float32": Form("FloatArray", "FloatArray", "FLOAT"),
    "float64": Form("DoubleArray", "DoubleArray", "DOUBLE"),
    "float16": Form("ShortArray", "FloatArray", "FLOAT16"),
    "int16": Form("ShortArray", "ShortArray", "INT16"),
    "int32": Form("IntArray", "IntArray", "INT32"),
    "int64": Form("LongArray", "LongArray", "INT64"),
    "string": Form("Array<String>", "Array<String>", "STRING"),
    **{dtype: Form("ByteArray", "ByteArray", name) for dtype, name in _BYTES.items()},
}
"""Source: ai.onnxruntime.OnnxTensor, OnnxJavaType."""

_SWIFT = {
    dtype: Form(name, name, type_name)
    for dtype, name, type_name in (
        ("float32", "Float", "float"),
        ("int8", "Int8", "int8"),
        ("uint8", "UInt8", "uInt8"),
        ("int32", "Int32", "int32"),
        ("uint32", "UInt32", "uInt32"),
        ("int64", "Int64", "int64"),
        ("uint64", "UInt64", "uInt64"),
        ("string", "String", "string"),
    )
}
"""Source: ORTTensorElementDataType of the Objective-C API, which has neither fp16 nor bool."""

_TYPESCRIPT = {
    dtype: Form(name, name, dtype)
    for dtype, name in (
        ("float32", "Float32Array"),
        ("float64", "Float64Array"),
        ("int8", "Int8Array"),
        ("uint8", "Uint8Array"),
        ("int16", "Int16Array"),
        ("int32", "Int32Array"),
        ("int64", "BigInt64Array"),
        ("uint16", "Uint16Array"),
        ("uint32", "Uint32Array"),
        ("uint64", "BigUint64Array"),
        ("bool", "Uint8Array"),
        ("string", "string[]"),
    )
}
"""Source: TensorUtils.cpp of onnxruntime-react-native 1.24, which takes fp16 as a Float16Array, and few engines have one."""

KOTLIN = Language(
    "Kotlin",
    "android/{name}.kt",
    "Model.kt",
    "camel",
    _words(
        "as break class continue do else false for fun if in interface is null object package return super this "
        "throw true try typealias typeof val var when while"
    ),
    _KOTLIN,
    _in_kotlin,
)
SWIFT = Language(
    "Swift",
    "ios/{name}.swift",
    "Model.swift",
    "camel",
    _words(
        "as associatedtype break case catch class continue default defer deinit do else enum extension fallthrough "
        "false fileprivate for func guard if import in init inout internal is let nil operator private protocol public "
        "repeat rethrows return self static struct subscript super switch throw throws true try typealias var where while"
    ),
    _SWIFT,
    _in_swift,
)
TYPESCRIPT = Language(
    "TypeScript (React Native)",
    "react-native/{name}.ts",
    "model.ts",
    "camel",
    _words("constructor"),
    _TYPESCRIPT,
    json.dumps,
)
LANGUAGES = (KOTLIN, SWIFT, TYPESCRIPT)
