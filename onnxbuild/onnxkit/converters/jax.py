"""Convert and run functions of JAX by jax2onnx; this module runs in their environment."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.converters.child import (
    Refused,
    Request,
    first_line,
    read_arrays,
    users_line,
    write_arrays,
)
from onnxbuild.onnxkit.data.user_code import misfit

if TYPE_CHECKING:
    import numpy as np


_WIDE = ("int64", "float64")
"""Types that JAX has with `jax_enable_x64` alone."""

_PAIR = 2


def convert_jax(request: Request) -> dict[str, Any]:
    """Convert a function to ONNX.

    Args:
        request: Request of `frameworks.JAX`; `opset`, and `model`: the file to write.

    Returns: `versions`: of JAX and jax2onnx.

    Raises:
        Refused: The callable or its function is not as expected, or jax2onnx can't convert it.
    """
    import jax
    import jax2onnx

    function = _Function(request)
    shapes = [jax.ShapeDtypeStruct(tuple(i["shape"]), i["dtype"]) for i in request["inputs"]]
    names = function.output_names(_examples(request))

    def traced(*arrays: Any) -> Any:
        made = function.outputs(arrays, names)
        return made[0] if len(made) == 1 else made

    is_wide = any(each["dtype"] == "float64" for each in request["inputs"])
    try:
        model = jax2onnx.to_onnx(
            traced,
            shapes,
            opset=request["opset"],
            input_names=[each["name"] for each in request["inputs"]],
            output_names=names,
            enable_double_precision=is_wide,
        )
    except Refused:
        raise
    except Exception as error:
        raise Refused(
            f"jax2onnx can't convert {request['shown']}: {type(error).__name__}: {first_line(str(error))}",
            "see the step's log; where an axis is at fault, write a number for it in `shape`",
            users_line(error, request["folders"]),
        ) from error
    Path(request["model"]).write_bytes(model.SerializeToString())
    return {"jax": jax.__version__, "jax2onnx": getattr(jax2onnx, "__version__", "")}


def compute_jax(request: Request) -> None:
    """Run a function.

    Args:
        request: Request of `frameworks.JAX`; `feeds` and `computed` as run_there.computed_there says.

    Raises:
        Refused: The callable or its function is not as expected, or fails.
    """
    import numpy as np

    function = _Function(request)
    names: list[str] = []
    for source, target in zip(request["feeds"], request["computed"], strict=True):
        feeds = read_arrays(Path(source))
        arrays = [feeds[each["name"]] for each in request["inputs"]]
        names = names or function.output_names(arrays)
        made = function.outputs(arrays, names)
        write_arrays(Path(target), dict(zip(names, map(np.asarray, made), strict=True)))


def open_jax(request: Request) -> Callable[[Mapping[str, np.ndarray]], Callable[[], object]]:
    """Return what binds feeds to a call of a function, compiled by `jax.jit`, as its users run it.

    Args:
        request: Request of `frameworks.JAX`.

    Raises:
        Refused: The callable or its function is not as expected.
    """
    import jax

    function = _Function(request)
    names: list[str] = []

    def bind(feeds: Mapping[str, np.ndarray]) -> Callable[[], object]:
        arrays = [jax.numpy.asarray(feeds[each["name"]]) for each in request["inputs"]]
        names[:] = names or function.output_names(arrays)
        params = function.params
        if all(hasattr(leaf, "dtype") for leaf in jax.tree_util.tree_leaves(params)):
            compiled = jax.jit(lambda own, *given: function.with_params(own).outputs(given, names))
            return lambda: jax.block_until_ready(compiled(params, *arrays))
        compiled = jax.jit(lambda *given: function.outputs(given, names))
        return lambda: jax.block_until_ready(compiled(*arrays))

    return bind


def _examples(request: Request) -> list[np.ndarray]:
    """Zeros, at the example of each axis."""
    import numpy as np

    examples = request["examples"]
    return [
        np.zeros(
            [size if isinstance(size, int) else examples[size] for size in each["shape"]],
            each["dtype"],
        )
        for each in request["inputs"]
    ]


class _Function:
    """The function of a request, called with arrays in the recipe's order."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._names = [each["name"] for each in request["inputs"]]
        _check_types(request)
        self._made = made_by(request)
        self._by_name = self._see_arguments()

    @property
    def params(self) -> Any:
        """The function's parameters, its first argument; None if it takes none."""
        return self._made.params

    def with_params(self, params: Any) -> _Function:
        """The same function with other parameters."""
        other = copy.copy(self)
        other._made = replace(self._made, params=params)  # noqa: SLF001 - of the same class
        return other

    def _see_arguments(self) -> bool:
        """Return whether the function's arguments have the inputs' names; else they go by position.

        Raises:
            Refused: It takes another number of arguments.
        """
        try:
            signature = inspect.signature(self._made.function)
        except (TypeError, ValueError):
            return False
        first = (None,) if self._made.has_params else ()
        taken = [
            name
            for name, each in signature.parameters.items()
            if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
        ][len(first) :]
        by_name = all(name in taken for name in self._names)
        try:
            if by_name:
                signature.bind(*first, **dict.fromkeys(self._names))
            else:
                signature.bind(*first, *self._names)
        except TypeError:
            raise self._other_arguments(signature) from None
        return by_name

    def _other_arguments(self, signature: inspect.Signature) -> Refused:
        shown = self._request["shown"]
        given = ("params, " if self._made.has_params else "") + ", ".join(self._names)
        fix = (
            "declare one of `dummy_inputs` for each argument after the first"
            if self._made.has_params
            else "return the function and its parameters: `return apply, params`; or declare one of "
            "`dummy_inputs` for each argument"
        )
        return Refused(
            f"{shown} returned a function of {signature}; it is called with ({given})", fix
        )

    def _call(self, arrays: Sequence[Any]) -> Any:
        import jax.numpy

        given = [jax.numpy.asarray(array) for array in arrays]
        first = (self._made.params,) if self._made.has_params else ()
        try:
            if self._by_name:
                return self._made.function(*first, **dict(zip(self._names, given, strict=True)))
            return self._made.function(*first, *given)
        except Exception as error:
            line = users_line(error, self._request["folders"])
            shapes = ", ".join(f"{n} {list(a.shape)}" for n, a in zip(self._names, arrays))  # noqa: B905 - equal
            said = f"{type(error).__name__}: {first_line(str(error))}"
            raise Refused(
                f"the function of {self._request['shown']} fails on {shapes}: {said}",
                "declare the shapes and types that it takes: `dummy_inputs`, `dynamic_axes`",
                line,
            ) from error

    def output_names(self, arrays: Sequence[Any]) -> list[str]:
        """The recipe's names of its outputs, in order; all of them where it has none.

        Raises:
            Refused: It returns no arrays, or has no such output.
        """
        found = self._named(self._call(arrays))
        wanted = self._request["outputs"]
        if not wanted or all(name in found for name in wanted):
            return list(wanted or found)
        if self._is_by_place(found) and len(wanted) == len(found):
            return list(wanted)
        unknown = next(name for name in wanted if name not in found)
        raise Refused(
            f"the function of {self._request['shown']} has no output '{unknown}'; it has {', '.join(found)}",
            f"write `outputs: [{', '.join(found)}]`",
        )

    def outputs(self, arrays: Sequence[Any], names: Sequence[str]) -> tuple[Any, ...]:
        """Run the function on arrays; return its outputs in the order of `names`, which `output_names` gives."""
        found = self._named(self._call(arrays))
        if all(name in found for name in names):
            return tuple(found[name] for name in names)
        return tuple(found.values())

    @staticmethod
    def _is_by_place(found: Mapping[str, Any]) -> bool:
        return list(found) == [f"output_{n}" for n in range(len(found))]

    def _named(self, made: Any) -> dict[str, Any]:
        if isinstance(made, Mapping):
            found = {str(key): value for key, value in made.items()}
        else:
            several = made if isinstance(made, (tuple, list)) else (made,)
            found = {f"output_{n}": value for n, value in enumerate(several)}
        for name, value in found.items():
            if not hasattr(value, "shape") or not hasattr(value, "dtype"):
                raise Refused(
                    f"output '{name}' of {self._request['shown']} is {an(value)}; outputs are arrays",
                    "return an array, or a tuple, list or dict of arrays",
                )
        return found


def _check_types(request: Request) -> None:
    import jax

    for each in request["inputs"]:
        narrow = each["dtype"].replace("64", "32")
        if each["dtype"] in _WIDE and not jax.config.jax_enable_x64:
            raise Refused(
                f"input '{each['name']}' is {each['dtype']}, which JAX computes as {narrow}",
                f"write `dtype: {narrow}`, or `env: {{JAX_ENABLE_X64: 1}}` next to `jax`",
            )
        for size in each["shape"]:
            if isinstance(size, str) and not size.isidentifier():
                raise Refused(
                    f"the size '{size}' of input '{each['name']}' is a sum; jax2onnx takes axes alone",
                    "give it an axis of its own",
                )


@dataclass(frozen=True, slots=True)
class Made:
    """Result of a user's callable: a function, and its parameters if it takes any.

    Attributes:
        function: Function of arrays.
        params: Its first argument, if `has_params`.
        has_params: Whether the callable returned parameters.
    """

    function: Callable[..., Any]
    params: Any = None
    has_params: bool = False


def made_by(request: Request) -> Made:
    """Return what a callable returned.

    Args:
        request: Request of `frameworks.JAX`.

    Raises:
        Refused: It raised, or returned no function.
        ModuleNotFoundError: It imports what is not installed.
    """
    shown = request["shown"]
    found: Any = None
    try:
        found = _module(request)
        for part in request["attribute"].split("."):
            found = getattr(found, part)
        made = found(**request["args"])
    except ModuleNotFoundError:
        raise  # reported with the command that installs it
    except Exception as error:  # the user's own code: see docs/decisions/0004
        line = users_line(error, request["folders"])
        wrong = isinstance(error, TypeError) and not line and misfit(found, request["args"])
        if wrong:
            raise Refused(f"{shown} {wrong.what}", wrong.fix) from error
        raise Refused(
            f"{shown} raised {type(error).__name__}: {first_line(str(error))}",
            "run it by itself: the error is raised by the model's own code",
            line,
        ) from error
    if isinstance(made, tuple) and len(made) == _PAIR and callable(made[0]):
        return Made(made[0], made[1], has_params=True)
    if callable(made) and not isinstance(made, type):
        return Made(made)
    raise Refused(
        f"{shown} returned {an(made)}; expected a function, or (function, params)",
        "return the function that takes the parameters and the inputs, and its parameters: "
        "`return apply, params`",
    )


def _module(request: Request) -> Any:
    sys.path[0:0] = [folder for folder in request["folders"] if folder not in sys.path]
    sys.pycache_prefix = str(Path(request["folders"][0], ".none"))  # sources, never stale bytecode
    file = request["file"]
    if not file.endswith(".py"):
        return importlib.import_module(file)
    name = Path(file).stem
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def an(value: object) -> str:
    """Return `a dict`, `an int`, `None`: what a value is, for a message."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"an {name}" if name[0].lower() in "aeio" else f"a {name}"
