"""An example for the help of each verb, of what is here: a recipe of the project, what was built of it."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from onnxbuild.project_folder import find_project
from onnxbuild.recipe.requested import project_recipes

EXAMPLES: Mapping[str, str] = {
    "init": "{init}",
    "run": "onnxbuild run {recipe}",
    "watch": "onnxbuild watch {recipe}",
    "worker": "onnxbuild worker 127.0.0.1:8786",
    "plan": "onnxbuild plan {recipe}",
    "why": "onnxbuild why {name}:export",
    "diagnose": "onnxbuild diagnose {name}:{variant}",
    "bench": "onnxbuild bench {recipe}",
    "lock": "onnxbuild lock {recipe}",
    "reproduce": "onnxbuild reproduce {recipe}",
    "release": "onnxbuild release {recipe} --version 1.0.0",
    "verify": "onnxbuild verify {release}",
    "push": "onnxbuild push {name}:{variant} oci:pushed:1.0.0",
    "pull": "onnxbuild pull oci:pushed:1.0.0",
    "graph": "onnxbuild graph {recipe}",
    "inspect": "onnxbuild inspect {name}:{variant}",
    "view": "onnxbuild view {name}:{variant}",
    "report": "onnxbuild report {recipe}",
    "diff": "onnxbuild diff {name}:{variant} HEAD~1",
    "log": "onnxbuild log {name}:export",
    "lint": "onnxbuild lint {recipe}",
    "explain": "onnxbuild explain {recipe}",
    "schema": "onnxbuild schema --write schemas/recipe.schema.json",
    "doctor": "onnxbuild doctor",
    "clean": "onnxbuild clean --dry-run",
    "cache": "onnxbuild cache stats",
    "cache stats": "onnxbuild cache stats",
    "cache pins": "onnxbuild cache pins",
    "cache unpin": "onnxbuild cache unpin {name}-1.0.0",
    "cache verify": "onnxbuild cache verify",
    "cache gc": "onnxbuild cache gc --dry-run",
    "cache key": "onnxbuild cache key {recipe}",
    "completion": "onnxbuild completion bash",
}
"""Verb -> what to type; what is in braces is of this project, where it has one."""

_NAME = re.compile(r"^[\"']?name[\"']?\s*:\s*[\"']?([\w.-]+)[\"']?\s*(?:#.*)?$", re.MULTILINE)
_VARIANTS = re.compile(
    r"^quantization\s*:\s*(?:\{\s*|#?.*\n(?:\s*#.*\n)*\s+)[\"']?([\w.-]+)[\"']?\s*:", re.MULTILINE
)
_CALLABLE = re.compile(r"\bentrypoint:\s*[\"']?([\w./-]+\.py:\w+)")
_GENERIC = {
    "recipe": "recipes/bert.yaml",
    "name": "bert",
    "variant": "int8",
    "init": "mkdir first && cd first && onnxbuild init",
    "release": "dist/bert-1.0.0",
}


def example_of(verb: str) -> str:
    """Return what to type for a verb, of what is in this project; empty where none is known.

    Args:
        verb: `run`, `cache gc`.
    """
    text = EXAMPLES.get(verb, "")
    return text.format_map(_here()) if "{" in text else text


def _here() -> Mapping[str, str]:
    """Return the names for examples: those of the project's first recipe, else generic ones."""
    try:
        project = find_project(Path("recipe.yaml"))
        found = project_recipes(project)
        texts = {
            path: Path(path).read_text(encoding="utf-8", errors="replace") for path in found[:1]
        }
    except OSError:
        return _GENERIC
    for path, text in texts.items():
        named = _NAME.search(text)
        name = named[1] if named else Path(path).stem
        variants = _VARIANTS.search(text)
        variant = variants[1] if variants else "fp32"
        callable_ = _CALLABLE.search(text)
        file = os.path.relpath(Path(path).parent / callable_[1]) if callable_ else ""
        return {
            "recipe": path,
            "name": name,
            "variant": variant,
            "init": f"onnxbuild init {file} --name {name}-2" if file else _GENERIC["init"],
            "release": f"dist/{name}-1.0.0",
        }
    return _GENERIC
