"""Load the program beside this file: TorchScript, torch.export's .pt2, or an AOTInductor package.

    from load import load
    run = load()
    outputs = run({"input": array})     # output name -> numpy array

Needs torch and numpy alone. `python load.py` runs once on example values and prints the outputs,
line for line as the C++ program in cpp/ does. An AOTInductor package is machine code: a CPU that
lacks an instruction which it may use is refused, instead of ending in an illegal instruction.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MANIFEST = "manifest.json"
SHOWN = 8  # values printed of each output


class OtherMachineError(RuntimeError):
    """This machine is not of the kind that the program was compiled for."""


def load() -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """A function from input name -> array to output name -> array.

    Raises:
        OtherMachineError: It is machine code for another kind of machine.
    """
    import torch

    manifest = json.loads((HERE / MANIFEST).read_text(encoding="utf-8"))
    if manifest["made_for"]:
        check_machine(manifest["made_for"])
    path = str(HERE / manifest["file"])
    call: Callable[..., Any]
    if manifest["format"] == "torchscript":
        call = torch.jit.load(path).eval()
    elif manifest["format"] == "torch-export":
        call = torch.export.load(path).module()
    else:
        from torch._inductor import aoti_load_package

        call = aoti_load_package(path)
    dtypes = {each["name"]: each["dtype"] for each in manifest["inputs"]}

    def run(feeds: Mapping[str, Any]) -> dict[str, Any]:
        tensors = {name: torch.from_numpy(feeds[name]) for name in dtypes}
        for name, dtype in dtypes.items():
            if dtype == "bfloat16":  # which numpy lacks: float32 is given
                tensors[name] = tensors[name].to(torch.bfloat16)
        with torch.inference_mode():
            made = call(**tensors) if manifest["by_keyword"] else call(*tensors.values())
        return {name: tensor.numpy() for name, tensor in _named(made, manifest).items()}

    return run


def check_machine(made_for: Mapping[str, Any], cpuinfo: str = "/proc/cpuinfo") -> None:
    """Refuse a machine that lacks what the program was compiled for; Linux alone tells.

    Args:
        made_for: The manifest's.
        cpuinfo: Where the kernel tells the CPU's flags.

    Raises:
        OtherMachineError: The architecture or the CPU's instructions are not those.
    """
    machine = platform.machine()
    missing: list[str] = [] if machine == made_for["machine"] else [made_for["machine"]]
    path = Path(cpuinfo)
    if not missing and path.exists():
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        told = [line.partition(":")[2] for line in lines if line.startswith(("flags", "Features"))]
        here = set(told[0].split()) if told else set(made_for["flags"])
        missing = [flag for flag in made_for["flags"] if flag not in here]
    if missing:
        raise OtherMachineError(
            f"the program was compiled for {made_for['cpu']}; this {machine} lacks "
            f"{', '.join(missing)}: take another format, or build it here"
        )


def _named(made: Any, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Output name -> tensor: a scripted module's dicts and named tuples by key, all else in order."""
    found = list(_leaves(made, ()))
    names: list[str] = manifest["outputs"]
    if not any(isinstance(step, str) for path, _ in found for step in path):
        return dict(zip(names, (each for _, each in found if each is not None), strict=True))
    taken = {each["name"] for each in manifest["inputs"]}
    keyed = {}
    for path, tensor in found:
        first = f"output_{path[0]}" if isinstance(path[0], int) else path[0]
        name = ".".join([first, *map(str, path[1:])])
        keyed[f"{name}_out" if name in taken else name] = tensor
    return {name: keyed[name] for name in names}


def _leaves(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """(keys and places that lead to it, value), depth first."""
    items: Any
    if isinstance(value, dict):
        items = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        items = zip(value._fields, value, strict=True)
    elif isinstance(value, (tuple, list)):
        items = enumerate(value)
    else:
        yield path, value
        return
    for key, item in items:
        yield from _leaves(item, (*path, key))


def example_feeds() -> dict[str, Any]:
    """For each input at its example sizes: -0.75, -0.5, ... 0.75 again and again, or ones."""
    import numpy as np

    manifest = json.loads((HERE / MANIFEST).read_text(encoding="utf-8"))
    sizes = {name: axis["example"] for name, axis in manifest["dynamic_axes"].items()}
    feeds = {}
    for each in manifest["inputs"]:
        shape = [size_of(n, sizes) for n in each["shape"]]
        dtype = np.dtype("float32" if each["dtype"] == "bfloat16" else each["dtype"])
        count = int(np.prod(shape))
        values = (np.arange(count) % 7 - 3) / 4 if dtype.kind == "f" else np.ones(count)
        feeds[each["name"]] = values.reshape(shape).astype(dtype)
    return feeds


def size_of(dimension: int | str, sizes: Mapping[str, int]) -> int:
    """The size of a number, an axis, or a sum of both (`past + sequence`)."""
    parts = str(dimension).split(" + ")
    return sum(int(part) if part.isdecimal() else sizes[part] for part in parts)


def main() -> None:
    """Run once on example values and print what comes out."""
    for name, array in load()(example_feeds()).items():
        print(name, array.dtype, list(array.shape))
        first = array.ravel()[:SHOWN]
        print("", *(f"{x:.9g}" if array.dtype.kind == "f" else int(x) for x in first))


if __name__ == "__main__":
    main()
