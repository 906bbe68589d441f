"""Manifests of bundles made before all had one form: three forms, read as the present one.

Releases are kept for years: `verify`, `release --previous` and `bench --against` read them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxbuild.core.params import from_json, to_json
from onnxbuild.core.step import MODEL_FILE
from onnxbuild.core.target import CPU
from onnxbuild.onnxkit.bundles.kinds import ONNX
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.providers import short_name


def as_second(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest of the first forms in the second.

    Raises:
        ValueError: It is of none of these forms.
    """
    try:
        if "targets" in content:
            return _variant(dict(content))
        if "by_keyword" in content:
            return _program(dict(content))
        return _made_ahead(dict(content))
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"it is no manifest of a bundle: {error!r}") from error


def _variant(content: dict[str, Any]) -> dict[str, Any]:
    """`format` was the version, and the file always model.onnx."""
    del content["format"]
    return {"kind": ONNX, "file": MODEL_FILE, **content}


def _program(content: dict[str, Any]) -> dict[str, Any]:
    """`format` was the kind; outputs were names, and the verdict had no target."""
    del content["manifest"]
    kind, outputs = content.pop("format"), content.pop("outputs")
    return {
        **content,
        "kind": kind,
        "outputs": [{"name": name} for name in outputs],
        "validation": {CPU: content["validation"]},
    }


def _made_ahead(content: dict[str, Any]) -> dict[str, Any]:
    """The provider and its session stood for themselves, and the verdict had no target."""
    del content["manifest"]
    provider = content.pop("provider")
    settings = {key: content.pop(key) for key in ("graph_optimization", "config")}
    chain = [{"name": provider, "options": content.pop("provider_options")}]
    session = to_json(from_json(SessionSettings, settings))
    return {
        **content,
        "targets": {short_name(provider): {"chain": chain, "session": session}},
        "validation": {short_name(provider): content["validation"]},
    }
