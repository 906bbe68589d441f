"""Additions to the import path by PYTHONPATH and the user site; read on every run, so it imports next to nothing."""

import os
import site
import sys
from collections.abc import Mapping

from onnxbuild.own_folder import IMPORT_ROOT

PYTHON_PATH = "PYTHONPATH"


def python_path(value: str, folder: str) -> tuple[str, ...]:
    """The folders that a value of PYTHONPATH names, absolute.

    Args:
        value: As the variable has it.
        folder: What relative ones start from.
    """
    if not value:
        return ()
    parts = (os.path.normpath(os.path.join(folder, part)) for part in value.split(os.pathsep))
    return tuple(dict.fromkeys(parts))


def shell_python_path(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The folders of the PYTHONPATH that this program was started with."""
    if sys.flags.ignore_environment:
        return ()
    return python_path(environment.get(PYTHON_PATH, ""), os.getcwd())


def declared_path(env: Mapping[str, str], project: str) -> tuple[str, ...]:
    """The folders of a PYTHONPATH that a recipe declares, absolute.

    Args:
        project: Where relative ones start from.
    """
    return python_path(env.get(PYTHON_PATH, ""), project)


def import_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that give another interpreter the import path of this one, user site included."""
    folders = [each for each in shell_python_path(environment) if each != IMPORT_ROOT]
    found = {PYTHON_PATH: os.pathsep.join(folders), "PYTHONUSERBASE": user_base()}
    return {name: value for name, value in found.items() if value}


def user_base() -> str:
    """The base folder of `pip install --user`, where this interpreter imports from it; else empty."""
    folder = site.getusersitepackages() if site.ENABLE_USER_SITE else ""
    used = bool(folder) and os.path.isdir(folder) and folder in sys.path
    return site.getuserbase() if used else ""


def user_site_flag() -> str:
    """Return the flag that makes another interpreter use the user site, or not, as this one does."""
    return "-B" if user_base() else "-s"  # -B: no more than PYTHONDONTWRITEBYTECODE says
