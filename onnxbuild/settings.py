"""Settings of a project: `[tool.onnxbuild]` in pyproject.toml, overridden by variables and by options of a command."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnxbuild.core.errors import UsageError
from onnxbuild.core.sizes import size_bytes_of
from onnxbuild.project_folder import PYPROJECT, tool_settings

PUSH = ("never", "ci-only", "always")

_KEYS: dict[str, tuple[type, str]] = {
    "default": (list, 'a list of recipes: ["recipes/bert.yaml"]'),
    "plugins": (list, 'a list of Python files: ["tools/my_steps.py"]'),
    "store": (
        list,
        'a folder, or a list of it and of stores below it: ["~/.onnxbuild", "/shared/onnxbuild"]',
    ),
    "jobs": (int, "a number of steps: 4"),
    "memory": (str, 'a size: "8 GiB"'),
    "executor": (str, 'an executor: "local", "dask://HOST:PORT"'),
    "remote": (dict, 'a table: {url = "https://cache.example/onnxbuild"}'),
}
_REMOTE_KEYS: dict[str, tuple[type, str]] = {
    "url": (
        str,
        'a URL: "https://cache.example/onnxbuild", "s3://bucket/prefix", "file:///mnt/share"',
    ),
    "trusted_keys": (list, 'a list of public keys: ["keys/ci.pem"]'),
    "agree": (int, "a number of builders: 2"),
    "push": (str, f"one of {', '.join(PUSH)}"),
    "sign_key": (str, 'the file of a private key: "/run/secrets/cache.pem"'),
    "allow_http": (bool, "true or false"),
}


def variable_of(key: str) -> str:
    """Return the variable that overrides a setting: `remote.sign_key` -> ONNXBUILD_REMOTE_SIGN_KEY."""
    return "ONNXBUILD_" + key.replace(".", "_").upper()


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a project, and of this process's variables.

    Attributes:
        values: Dotted key -> value; only keys that are set.
        sources: Dotted key -> where its value is from: `pyproject.toml`, or a variable's name.
        project: Folder that paths in pyproject.toml are relative to.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    project: Path = Path()

    def path(self, key: str, text: str) -> Path:
        """Return a path as the place that names it means it: relative to the project, or to the working folder."""
        base = self.project if self.sources.get(key) == PYPROJECT else Path()
        return Path(os.path.abspath(base / Path(text).expanduser()))  # noqa: PTH100 - keeps links

    def text(self, key: str) -> str:
        """Return a text; empty if it is not set."""
        return str(self.values.get(key, ""))


def read_settings(project: Path, environment: Mapping[str, str]) -> Settings:
    """Read and check a project's settings.

    Raises:
        UsageError: pyproject.toml is no TOML; a key is unknown or has a value of another type.
    """
    table = _table(project)
    remote = table.pop("remote", {})
    if isinstance(remote, str):
        remote = {"url": remote}
    if isinstance(table.get("store"), str):
        table["store"] = [table["store"]]
    where = str(project / PYPROJECT)
    _check(table, _KEYS, "", where)
    if not isinstance(remote, dict):
        raise _wrong("remote", remote, _KEYS["remote"][1], where)
    _check(remote, _REMOTE_KEYS, "remote.", where)
    values = {**table, **{f"remote.{key}": value for key, value in remote.items()}}
    sources = dict.fromkeys(values, PYPROJECT)
    known = {**_KEYS, **{f"remote.{key}": each for key, each in _REMOTE_KEYS.items()}}
    for key in ("remote", "default", "plugins"):  # a table, and what belongs to the files alone
        del known[key]
    for key, (kind, expected) in known.items():
        variable = "ONNXBUILD_REMOTE" if key == "remote.url" else variable_of(key)
        text = environment.get(variable)
        if text:
            values[key] = _of_text(text, kind, variable, expected)
            sources[key] = variable
    if "memory" in values:
        try:
            values["memory"] = size_bytes_of(values["memory"])
        except ValueError as error:
            raise UsageError(str(error), where=f"`memory` in {sources['memory']}") from None
    if values.get("jobs", 1) < 1:
        raise _wrong("jobs", values["jobs"], _KEYS["jobs"][1], sources["jobs"])
    if (push := values.get("remote.push", PUSH[0])) not in PUSH:
        raise _wrong("remote.push", push, _REMOTE_KEYS["push"][1], sources["remote.push"])
    return Settings(values, sources, project)


def _table(project: Path) -> dict[str, Any]:
    path = project / PYPROJECT
    try:
        return dict(tool_settings(path.read_bytes(), "onnxbuild"))
    except OSError:
        return {}
    except ValueError as error:
        raise UsageError(f"it is no TOML: {error}", where=str(path), fix="mend the line") from None


def _check(
    table: Mapping[str, Any], keys: Mapping[str, tuple[type, str]], at: str, where: str
) -> None:
    for key, value in table.items():
        if key not in keys:
            import difflib

            near = difflib.get_close_matches(key, keys, n=1)
            meant = f"; did you mean '{at}{near[0]}'?" if near else ""
            raise UsageError(
                f"`[tool.onnxbuild]` has no setting '{at}{key}'{meant}",
                where=where,
                fix=f"settings are {', '.join(at + each for each in keys)}",
            )
        kind, expected = keys[key]
        texts = not isinstance(value, list) or all(isinstance(each, str) for each in value)
        if type(value) is not kind or not texts:
            raise _wrong(at + key, value, expected, where)


def _of_text(text: str, kind: type, variable: str, expected: str) -> Any:
    if kind is list:
        return text.split(os.pathsep)
    if kind is bool and text in ("0", "1", "false", "true"):
        return text in ("1", "true")
    if kind is int and text.isascii() and text.isdigit():
        return int(text)
    if kind is str:
        return text
    raise _wrong(variable, text, expected, "")


def _wrong(key: str, value: object, expected: str, where: str) -> UsageError:
    return UsageError(f"`{key}` is {value!r}; expected {expected}", where=where)
