"""Execution providers in libraries of their own, which ONNX Runtime loads at run time."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError
from onnxbuild.core.external_code import external_code, message_of
from onnxbuild.core.target import Target
from onnxbuild.providers import full_name

if TYPE_CHECKING:
    import onnxruntime


def add_plugin(
    options: onnxruntime.SessionOptions, target: Target, library: Path, where: str
) -> str:
    """Add a plug-in's provider, on all its devices, to a session's options.

    Args:
        options: The session's.
        target: Its one link says which provider, unless its name is the target's own and the
            library holds but one.
        library: The shared library.
        where: `recipe:step`, for messages.

    Returns: The provider's full name.

    Raises:
        StepError: The library can't be loaded, holds no such provider, or the provider finds no
            device.
    """
    import onnxruntime

    if not hasattr(onnxruntime, "register_execution_provider_library"):
        raise StepError(
            f"ONNX Runtime {onnxruntime.__version__} takes no plug-ins",
            where=where,
            fix="pip install --upgrade onnxruntime-gpu (plug-ins came with 1.23)",
        )

    def refused(error: BaseException) -> StepError:
        said = message_of(error).partition("\n")[0] or type(error).__name__
        return StepError(
            f"ONNX Runtime refuses the plug-in {library.name}: {said}",
            where=where,
            fix="see that it was built for this version of ONNX Runtime, and `ldd` finds all it needs",
        )

    with external_code(refused):
        offered = _register(library)
    (link,) = target.chain
    name = full_name(link.provider)
    if name not in offered and link.provider == target.name and len(offered) == 1:
        (name,) = offered
    if name not in offered:
        raise StepError(
            f"the plug-in {library.name} has no device of a provider '{name}'; it has "
            f"{', '.join(offered) or 'none at all'}",
            where=where,
            fix=f"write `provider: {offered[0]}`" if offered else "see that its device is there",
        )
    devices = [each for each in onnxruntime.get_ep_devices() if each.ep_name == name]
    options.add_provider_for_devices(devices, dict(link.options))
    return name


@cache
def _register(library: Path) -> tuple[str, ...]:
    """Full names of the providers that a library brings; a process loads it once."""
    import onnxruntime

    before = {each.ep_name for each in onnxruntime.get_ep_devices()}
    onnxruntime.register_execution_provider_library(str(library), str(library))
    after = [each.ep_name for each in onnxruntime.get_ep_devices()]
    return tuple(dict.fromkeys(name for name in after if name not in before))
