"""Load the program in this folder with PyTorch: TorchScript, torch.export's .pt2, an AOTInductor package.

    from load import load
    run = load()
    outputs = run({"input": array})     # output name -> numpy array

Needs torch and numpy alone. `python load.py` runs once on example values and prints the outputs,
line for line as the C++ program in cpp/ does. An AOTInductor package is machine code: a CPU that
lacks an instruction which it may use is refused, instead of ending in an illegal instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from onnxbuild.onnxkit.loaders.shared import (
    HERE,
    LoadError,
    check_machine,
    example_shapes,
    read_manifest,
)

SHOWN = 8  # values printed of each output
_AS_TORCH_LOADS = (False, 1, -1)  # run_single_threaded, num_runners, device_index


def load() -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return a function from input name -> array to output name -> array.

    Raises:
        OtherMachineError: The program is machine code for another kind of machine.
    """
    import torch

    manifest = read_manifest()
    check_machine(manifest, "torch", torch.__version__)
    path = str(HERE / manifest["file"])
    call: Callable[..., Any]
    if manifest["kind"] == "torchscript":
        call = torch.jit.load(path).eval()
    elif manifest["kind"] == "torch-export":
        call = torch.export.load(path).module()
    else:
        call = _compiled(path)
    dtypes = {each["name"]: each["dtype"] for each in manifest["inputs"]}

    def run(feeds: Mapping[str, Any]) -> dict[str, Any]:
        tensors = {name: torch.from_numpy(feeds[name]) for name in dtypes}
        for name, dtype in dtypes.items():
            if dtype == "bfloat16":  # numpy lacks it: float32 is given
                tensors[name] = tensors[name].to(torch.bfloat16)
        with torch.inference_mode():
            made = call(**tensors) if manifest["by_keyword"] else call(*tensors.values())
        return {name: tensor.numpy() for name, tensor in _named(made, manifest).items()}

    return run


def _compiled(path: str) -> Callable[..., Any]:
    """Load an AOTInductor package.

    PyTorch's own function compiles ten programs first, 20 s, to name this CPU and to warn if it is another;
    `check_machine` has compared the instructions.
    """
    call: Callable[..., Any]
    try:
        from torch._C import _aoti
        from torch.export.pt2_archive._package import AOTICompiledModel

        call = AOTICompiledModel(_aoti.AOTIModelPackageLoader(path, "model", *_AS_TORCH_LOADS))
    except (AttributeError, ImportError, TypeError):  # another version of PyTorch
        from torch._inductor import aoti_load_package

        call = aoti_load_package(path)
    return call


def _named(made: Any, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return output name -> tensor: those of dicts and named tuples by key, all else in order."""
    found = list(_leaves(made, ()))
    names = [each["name"] for each in manifest["outputs"]]
    if not any(isinstance(step, str) for path, _ in found for step in path):
        tensors = [each for _, each in found if each is not None]
        if len(tensors) != len(names):
            raise LoadError(f"the program gives {len(tensors)} outputs, not {', '.join(names)}")
        return dict(zip(names, tensors))  # noqa: B905 - Python 3.9 runs this, too
    taken = {each["name"] for each in manifest["inputs"]}
    keyed = {}
    for path, tensor in found:
        first = f"output_{path[0]}" if isinstance(path[0], int) else path[0]
        name = ".".join([first, *map(str, path[1:])])
        keyed[f"{name}_out" if name in taken else name] = tensor
    return {name: keyed[name] for name in names}


def _leaves(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield (keys and indices that lead to it, value), depth first."""
    items: Any
    if isinstance(value, dict):
        items = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        items = zip(value._fields, value)  # noqa: B905 - as above
    elif isinstance(value, (tuple, list)):
        items = enumerate(value)
    else:
        yield path, value
        return
    for key, item in items:
        yield from _leaves(item, (*path, key))


def example_feeds() -> dict[str, Any]:
    """Return for each input, at its example sizes, -0.75, -0.5, ... 0.75 again and again, or ones."""
    import numpy as np

    manifest = read_manifest()
    shapes, feeds = example_shapes(manifest), {}
    for each in manifest["inputs"]:
        shape = shapes[each["name"]]
        dtype = np.dtype("float32" if each["dtype"] == "bfloat16" else each["dtype"])
        count = int(np.prod(shape))
        values = (np.arange(count) % 7 - 3) / 4 if dtype.kind == "f" else np.ones(count)
        feeds[each["name"]] = values.reshape(shape).astype(dtype)
    return feeds


def main() -> None:
    """Run once on example values and print the outputs."""
    try:
        run = load()
    except LoadError as error:
        raise SystemExit(str(error)) from error
    for name, array in run(example_feeds()).items():
        print(name, array.dtype, list(array.shape))
        first = array.ravel()[:SHOWN]
        print("", *(f"{x:.9g}" if array.dtype.kind == "f" else int(x) for x in first))


if __name__ == "__main__":
    main()
