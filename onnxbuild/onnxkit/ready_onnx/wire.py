"""Protocol buffers' wire format, read field by field: what is not asked for is skipped, not parsed."""

from collections.abc import Iterator

Message = memoryview

_VARINT, _EIGHT_BYTES, _TEXT, _FOUR_BYTES = 0, 1, 2, 5
"""Wire types."""

_LONGEST_VARINT = 10


class OutlineError(ValueError):
    """The file is no ONNX model, or is cut short; the text says which."""


def fields(message: Message) -> Iterator[tuple[int, int | Message]]:
    """Yield (number, value) of a message's fields: an int, or the bytes.

    Raises:
        OutlineError, IndexError: It ends within a field, or is no message.
    """
    at, end = 0, len(message)
    while at < end:
        tag, at = varint(message, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = varint(message, at)
            yield number, value
            continue
        if wire == _TEXT:
            size, at = varint(message, at)
        elif wire in (_EIGHT_BYTES, _FOUR_BYTES):
            size = 8 if wire == _EIGHT_BYTES else 4
        else:
            raise OutlineError("it is no ONNX model")
        if not number or at + size > end:
            raise OutlineError("it is no ONNX model, or it was cut short")
        yield number, message[at : at + size]
        at += size


def varint(message: Message, at: int) -> tuple[int, int]:
    """Read a number of variable length.

    Returns: The number, and the place after it.

    Raises:
        OutlineError, IndexError: There is none.
    """
    value = shift = 0
    for _ in range(_LONGEST_VARINT):
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - no further byte
            return value, at
        shift += 7
    raise OutlineError("it is no ONNX model")


def packed(message: int | Message) -> list[int]:
    """Read the numbers of a packed field."""
    whole, found, at = message_in(message), list[int](), 0
    while at < len(whole):
        value, at = varint(whole, at)
        found.append(value)
    return found


def signed(value: int) -> int:
    """Return an int64 that was written as an unsigned number."""
    return value - (1 << 64) if value >= 1 << 63 else value


def number_in(value: int | Message) -> int:
    """Return a field's number.

    Raises:
        OutlineError: It holds bytes.
    """
    if not isinstance(value, int):
        raise OutlineError("it is no ONNX model")
    return value


def message_in(value: int | Message) -> Message:
    """Return a field's bytes.

    Raises:
        OutlineError: It holds a number.
    """
    if isinstance(value, int):
        raise OutlineError("it is no ONNX model")
    return value


def text_in(value: int | Message) -> str:
    """Return a field's text.

    Raises:
        OutlineError, UnicodeDecodeError: It holds none.
    """
    return str(message_in(value), "utf-8")
