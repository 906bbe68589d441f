"""Options of a recipe for how Triton serves a model."""

from dataclasses import dataclass
from typing import Literal

from onnxbuild.core.params import option

VARIANT = "{variant}"
"""Stands for the name of what is packaged in that of a model."""

Device = Literal["auto", "cpu", "gpu"]


@dataclass(frozen=True, slots=True)
class InstanceGroup:
    """Copies of the model on one kind of device."""

    device: Device = option("auto", help="where they run")
    count: int = option(1, help="copies that run at once, on each GPU of `gpus`", minimum=1)
    gpus: tuple[int, ...] = option((), help="numbers of GPUs; none named: all", minimum=0)


@dataclass(frozen=True, slots=True)
class TritonOptions:
    """Settings of Triton for the model."""

    name: str = option(
        "",
        help="what clients ask for, and the name of the model's folder; `{variant}` in it stands for the "
        "variant's; empty: RECIPE-VARIANT",
        pattern=r"^[A-Za-z0-9_{][A-Za-z0-9_.{}-]*$|^$",
    )
    version: int = option(1, help="number of the folder that holds the model", minimum=1)
    version_policy: Literal["latest", "all", "specific"] = option(
        "latest",
        help="which versions in the model's folder are served: the `latest_versions` with the greatest "
        "numbers, `all`, or `version` alone",
    )
    latest_versions: int = option(1, help="with version_policy `latest`: how many", minimum=1)
    max_batch_size: int | None = option(
        None,
        help="most rows of a batch that Triton makes; left out: the `max` of the batch axis; 0: requests "
        "hold whole batches",
        minimum=0,
    )
    dynamic_batching: bool = option(
        False, help="let Triton put requests together in one batch; needs a batch axis"
    )
    preferred_batch_sizes: tuple[int, ...] = option(
        (), help="with dynamic_batching: batches that run without further delay", minimum=1
    )
    max_queue_delay_us: int = option(
        0, help="with dynamic_batching: longest time that a request waits for others", minimum=0
    )
    instances: int = option(0, help="copies that run at once on each device; 0: 1", minimum=0)
    device: Device = option(
        "auto",
        help="where they run; `auto`: where the target's providers do; of a CPU target on GPUs where Triton "
        "finds any, else on the CPU",
    )
    instance_groups: tuple[InstanceGroup, ...] = option(
        (), help="copies by device, in place of `instances` and `device`"
    )
    target: str = option(
        "", help="the target whose providers and session Triton is given; empty: the first"
    )
    warmup: bool = option(
        True, help="have Triton run golden inputs before it takes requests (`model_warmup`)"
    )
    ensemble: bool = option(
        False,
        help="of a pipeline: preprocessing, model and postprocessing as models of their own, and an ensemble "
        "of them; else it is one model",
    )


def model_name(recipe: str, variant: str, options: TritonOptions) -> str:
    """Return what clients ask for."""
    return options.name.replace(VARIANT, variant) or f"{recipe}-{variant}"
