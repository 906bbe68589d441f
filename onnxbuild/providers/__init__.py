"""Execution providers of ONNX Runtime: a file each, but of those of which little is known; and the list of them.

Who asks about a provider asks here, by `all_providers` and `named`: no other module knows one by name,
but the CPU, which runs what all others leave.
"""

from collections.abc import Iterable
from contextvars import ContextVar

from onnxbuild.core.provider import Provider
from onnxbuild.providers import (
    coreml,
    cpu,
    cuda,
    directml,
    migraphx,
    nv_tensorrt_rtx,
    openvino,
    others,
    qnn,
    rocm,
    tensorrt,
    vsinpu,
    webgpu,
)

PROVIDERS: tuple[Provider, ...] = (
    cpu.PROVIDER,
    cuda.PROVIDER,
    tensorrt.PROVIDER,
    openvino.PROVIDER,
    directml.PROVIDER,
    coreml.PROVIDER,
    rocm.PROVIDER,
    migraphx.PROVIDER,
    qnn.PROVIDER,
    webgpu.PROVIDER,
    others.XNNPACK,
    others.DNNL,
    nv_tensorrt_rtx.PROVIDER,
    others.ACL,
    others.NNAPI,
    others.VITISAI,
    others.CANN,
    others.RKNPU,
    others.AZURE,
    vsinpu.PROVIDER,
)
"""Built-in providers, in the order of the schema, the reference page and `doctor`."""

_FROM_PLUGINS: ContextVar[tuple[Provider, ...]] = ContextVar("providers", default=())
"""Providers of plug-ins that this thread or task uses."""

_BUILT_IN = {name: each for each in PROVIDERS for name in (each.name, each.full_name)}


def all_providers() -> tuple[Provider, ...]:
    """Return every provider that has a short name, those of plug-ins last."""
    return (*PROVIDERS, *_FROM_PLUGINS.get())


def use_providers(providers: Iterable[Provider]) -> None:
    """Use these providers of plug-ins, and no others, in this thread or task; the catalog says which.

    Args:
        providers: Their names are not taken.
    """
    _FROM_PLUGINS.set(tuple(providers))


def provider_names() -> tuple[str, ...]:
    """Return their short names."""
    return tuple(each.name for each in all_providers())


def _named(name: str) -> Provider | None:
    own = (each for each in _FROM_PLUGINS.get() if name in (each.name, each.full_name))
    return _BUILT_IN.get(name) or next(own, None)


def is_known(name: str) -> bool:
    """Return whether it is a short name of one of them."""
    found = _named(name)
    return found is not None and found.name == name


def named(name: str) -> Provider:
    """Return a provider by its short name or its full one.

    One that only a newer ONNX Runtime knows is its full name, and nothing else is known of it.
    """
    return _named(name) or Provider(name, name)


def full_name(name: str) -> str:
    """Return ONNX Runtime's name of a provider, given by either."""
    return named(name).full_name


def short_name(name: str) -> str:
    """Return the short name of a provider, given by either; the full one where there is no short one."""
    return named(name).name


def device_options() -> frozenset[str]:
    """Return the options that say where a provider runs: of any, since some have no list of theirs."""
    return frozenset(
        name
        for each in all_providers()
        for name, option in (each.options or {}).items()
        if option.picks_device
    )


def file_options() -> frozenset[str]:
    """Return the options that name a file, a folder or a library, or make a provider write files."""
    return frozenset(
        name
        for each in all_providers()
        for name, option in (each.options or {}).items()
        if option.names_file
    )
