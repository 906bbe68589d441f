"""The part of load.py that a bundle with custom operators contains: their libraries for this platform."""

from __future__ import annotations

import platform
from typing import Any

from onnxbuild.onnxkit.loaders.shared import HERE, LoadError

_registered: list[Any] = []
"""SessionOptions of the caller's that have the libraries: ONNX Runtime refuses them twice."""


def this_platform() -> str:
    """Return the system and the processor, as `linux-x86_64`, `macos-aarch64`, `windows-x86_64`."""
    system, machine = platform.system().lower(), platform.machine().lower()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    return f"{'macos' if system == 'darwin' else system}-{machine}"


def with_operators(manifest: dict[str, Any], options: Any, given: Any) -> Any:
    """Register the bundle's custom operators with an onnxruntime.SessionOptions, and return it.

    Args:
        manifest: The bundle's.
        options: The session's.
        given: The same, if they are the caller's; None if they were made for this session.

    Raises:
        LoadError: No library is for this platform, or one can't be loaded.
    """
    import onnxruntime

    if any(each is given for each in _registered):
        return options
    here, libraries = this_platform(), manifest["operators"]
    own = [each for each in libraries if each["registers"] and here in each["platforms"]]
    if not own:
        others = sorted({name for each in libraries for name in each["platforms"]})
        raise LoadError(
            f"the model's custom operators are built for {', '.join(others)}; this is {here}: build "
            f"their library for {here} and add it to `operators.libraries` of the recipe"
        )
    for each in own:
        path = HERE / each["file"]
        try:
            options.register_custom_ops_library(str(path))
        except Exception as error:
            raise LoadError(
                f"onnxruntime {onnxruntime.__version__} can't load the custom operators in "
                f"{each['file']}: {error}"
            ) from error
    if given is not None:
        _registered.append(given)
    return options
