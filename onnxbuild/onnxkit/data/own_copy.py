"""Copies of what a user's generator yields."""

from __future__ import annotations


def own_copy(value: object) -> object:
    """Return a value that its maker changes no more: a generator may fill the same arrays again for its next item.

    Arrays and tensors are copied, those in dicts, lists and tuples, too. Objects of other types, which may be
    anything, are returned as they are.
    """
    if type(value) is dict:
        return {key: own_copy(each) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(own_copy, value))  # type: ignore[call-overload,call-arg]
    if hasattr(value, "__array__") or hasattr(value, "detach"):
        copy = getattr(value, "clone", None) or getattr(value, "copy", None)  # PyTorch's, NumPy's
        return copy() if callable(copy) else value
    return value
