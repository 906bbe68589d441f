"""Options for a framework's environment, and the lists of requirements that come with this program."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.environment import BUILT_IN, Environment
from onnxbuild.core.params import option

ENVIRONMENT_HELP = (
    "where the model's framework is installed (saved_model, tflite, jax); left out: a virtual environment of 1 to "
    "2 GB that is made once, from a list that comes with onnxbuild"
)


@dataclass(frozen=True, slots=True)
class FrameworkEnvironment:
    """Environment that a framework is installed in; one of the two."""

    requirements: str = option(
        "",
        help="a list of pinned requirements (NAME==VERSION), relative to this file: a virtual environment is "
        "made from it, once",
    )
    python: str = option(
        "", help="the `python` of an environment that is there, relative to this file"
    )


def built_in(requirements: str, *needs: str) -> Environment:
    """Return the environment of a list that comes with this program.

    Args:
        requirements: The file's name, in this folder.
        needs: Distributions that must be there, the framework first.
    """
    return Environment(requirements=f"{BUILT_IN}/onnxkit/converters/{requirements}", needs=needs)
