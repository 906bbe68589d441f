"""Name the tensors that a module's forward, or a function, returned: by key where it has keys, else by position."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnxbuild.core.errors import StepError, did_you_mean
from onnxbuild.onnxkit.data.user_code import an

_Path = tuple["str | int", ...]
"""The way to a value: keys and names of fields as str, places in tuples and lists as int."""


class OutputError(StepError):
    """Error for a return value of forward that does not fit the recipe's `outputs`."""


@dataclass(frozen=True, slots=True)
class Returned:
    """Source of a returned value, and its kind of tensors.

    Attributes:
        who: Name of the function, for messages.
        types: Types that count as tensors.
        noun: Noun for a value of these types: `tensor`, `array`.
        fix: Full name of the type to return.
    """

    who: str
    types: tuple[type, ...]
    noun: str
    fix: str


def forward_returned() -> Returned:
    """Return the source for a module's forward, which returns PyTorch's tensors."""
    import torch

    return Returned("forward", (torch.Tensor,), "tensor", "torch.Tensor")


def named_outputs(
    value: object,
    declared: Sequence[str] = (),
    where: str = "",
    *,
    inputs: Collection[str] = (),
    returned: Returned | None = None,
    places: Sequence[str] = (),
) -> dict[str, Any]:
    """Output name -> tensor, in the order declared.

    Mappings (HuggingFace's ModelOutput, too), dataclasses and named tuples have keys, and what is
    in them is found by these, joined by dots: `encoder.hidden`, or `hidden_states.0` for the first
    of a tuple. Where nothing has a key, tensors go by position: depth first, output_0, output_1 and
    so on where nothing is declared. None is dropped, and so is what nobody declared, tensor or not.
    A key that is an input's name, too, is called KEY_out: names in a graph are unique.

    Args:
        value: Value that forward returned.
        declared: Names for the outputs; empty for all of them, under their own.
        where: `recipe:step`, for messages.
        inputs: Names of the inputs.
        returned: Source of the value, and its kind of tensors; None for a module's forward.
        places: Names of more outputs, in order, which `declared` chooses from: they count where as many
            are returned without a key.

    Raises:
        OutputError: A name declared is not among the keys, or names are not as many as positions;
            something else than a tensor is wanted, or there is none.
    """
    by = returned or forward_returned()
    found = _leaves(value)
    if has_keys(value):
        wanted = _by_key(_named(found, inputs, where, by), declared, where, by)
    else:
        wanted = {}
        in_order = _in_order(found, _names_by_place(found, declared, places), where, by)
        for name in declared or in_order:
            path, each = in_order[name]
            if not isinstance(each, by.types):
                shown = f"output{''.join(f'[{step}]' for step in path)}"
                raise _no_tensor(shown, each, where, by)
            wanted[name] = each
    if not wanted:
        raise OutputError(
            f"{by.who} returned no {by.noun}", where=where, fix=f"return at least one {by.fix}"
        )
    return wanted


def _names_by_place(
    found: Sequence[tuple[_Path, Any]], declared: Sequence[str], places: Sequence[str]
) -> Sequence[str]:
    """Return the names that go by position: those of `places` if as many are returned."""
    count = sum(each is not None for _, each in found)
    return places if len(places) == count and set(declared) <= set(places) else declared


def check_output_names(outputs: Sequence[str], inputs: Sequence[str], where: str) -> None:
    """See that no two values have one name.

    Raises:
        StepError: An output has the name of an input or of an output before it.
    """
    taken = set(inputs)
    for n, name in enumerate(outputs):
        if name in taken:
            kind = "input" if name not in outputs[:n] else "output"
            raise StepError(
                f"`outputs` names '{name}', which is an {kind} already",
                where=where,
                fix=f"name it '{name}_out'",
            )
        taken.add(name)


def has_keys(value: object) -> bool:
    """Return whether what forward returned holds a key anywhere, so that outputs go by name."""
    if isinstance(value, Mapping) or _fields(value) is not None:
        return True
    return isinstance(value, (tuple, list)) and any(has_keys(item) for item in value)


def tensors_and_others(
    value: object, inputs: Collection[str] = ()
) -> tuple[list[str], dict[str, object]]:
    """Return (names of the tensors, name -> each other value) of what a module's forward returned by key.

    Raises:
        OutputError: Two have one name.
    """
    by = forward_returned()
    named = _named(_leaves(value), inputs, "", by)
    tensors = [name for name, each in named.items() if isinstance(each, by.types)]
    return tensors, {
        name: each for name, each in named.items() if each is not None and name not in tensors
    }


def _fields(value: object) -> tuple[str, ...] | None:
    """Names of the fields of a dataclass or a named tuple; None of anything else."""
    if isinstance(value, tuple):
        fields: tuple[str, ...] | None = getattr(value, "_fields", None)
        return fields
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return tuple(field.name for field in dataclasses.fields(value))
    return None


def _leaves(value: object, path: _Path = ()) -> list[tuple[_Path, Any]]:
    """Everything that is no container, None too, depth first."""
    items: list[tuple[str | int, object]]
    fields = _fields(value)
    if isinstance(value, Mapping):
        items = [(str(key), item) for key, item in value.items()]
    elif fields is not None:
        items = [(name, getattr(value, name)) for name in fields]
    elif isinstance(value, (tuple, list)):
        items = list(enumerate(value))
    else:
        return [(path, value)]
    return [leaf for key, item in items for leaf in _leaves(item, (*path, key))]


def _named(
    found: Sequence[tuple[_Path, Any]], inputs: Collection[str], where: str, by: Returned
) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for path, value in found:
        name = _dotted(path)
        name = f"{name}_out" if name in inputs else name
        if name in named:
            raise OutputError(
                f"{by.who} returns two outputs named '{name}'",
                where=where,
                fix="give one of the two keys another name",
            )
        named[name] = value
    return named


def _by_key(
    named: Mapping[str, Any], declared: Sequence[str], where: str, by: Returned
) -> dict[str, Any]:
    tensors = [name for name, value in named.items() if isinstance(value, by.types)]
    for name in declared:
        if named.get(name) is None:
            is_none = (
                f"which {by.who} returns as None"
                if name in named
                else f"which is no key of what {by.who} returns"
            )
            raise OutputError(
                f"`outputs` names '{name}', {is_none}; its keys are "
                f"{', '.join(tensors) or 'none'}",
                where=where,
                fix=_other_key(name, tensors),
            )
    wanted = declared or [name for name, value in named.items() if value is not None]
    for name in wanted:
        if name not in tensors:
            raise _no_tensor(f"'{name}'", named[name], where, by, tensors)
    return {name: named[name] for name in wanted}


def _other_key(name: str, there: Sequence[str]) -> str:
    below = [each for each in there if each.startswith(f"{name}.")]
    if below:
        return f"name what is in it: `outputs: [{', '.join(below)}]`"
    return did_you_mean(name, there) or (
        f"write `outputs: [{', '.join(there)}]` or some of them, in any order; to give an output "
        "another name, return it under that key from a small wrapper module"
    )


def _in_order(
    found: Sequence[tuple[_Path, Any]], declared: Sequence[str], where: str, by: Returned
) -> dict[str, tuple[_Path, Any]]:
    """Output name -> its place and value; fewer names than values are taken by their numbers."""
    given = [leaf for leaf in found if leaf[1] is not None]
    by_number = {f"output_{n}": leaf for n, leaf in enumerate(given)}
    if not declared:
        return by_number
    if len(declared) < len(given) and by_number.keys() >= set(declared):
        return {name: by_number[name] for name in declared}
    if len(declared) != len(given):
        count = len(given)
        raise OutputError(
            f"`outputs` names {len(declared)} ({', '.join(declared)}) but {by.who} returns {count} "
            f"{by.noun}{'s' if count != 1 else ''} when flattened, which have no keys and go by "
            "position",
            where=where,
            fix=f"name {count}, or some by their places (`outputs: [output_0]`), or return a dict of those "
            "that are wanted",
        )
    return dict(zip(declared, given, strict=True))


def _no_tensor(
    shown: str, value: object, where: str, by: Returned, tensors: Sequence[str] = ()
) -> OutputError:
    article = "an" if by.noun[0] in "aeiou" else "a"
    return OutputError(
        f"{by.who}'s {shown} is {an(value)}; expected {article} {by.noun}, or a tuple, list, dict or dataclass "
        f"of {by.noun}s",
        where=where,
        fix=f"leave it out: `outputs: [{', '.join(tensors)}]`"
        if tensors
        else f"return {by.noun}s alone (of a module: from a small wrapper)",
    )


def _dotted(path: _Path) -> str:
    """`hidden_states.0`; what is in a tuple at the very top begins with output_0 and so on."""
    first = (
        [f"output_{path[0]}" if isinstance(path[0], int) else path[0]] if path else ["output_0"]
    )
    return ".".join([*first, *map(str, path[1:])])
