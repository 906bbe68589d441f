"""Session settings as an artifact: one JSON file."""

from __future__ import annotations

import json
from pathlib import Path

from onnxbuild.core.params import to_json
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sessions.settings import SessionSettings, settings_from

_FILE = "session.json"


def write_settings(folder: Path, settings: SessionSettings) -> None:
    """Write an artifact that `read_settings` reads."""
    write_report(folder, to_json(settings), _FILE)


def read_settings(folder: Path) -> SessionSettings:
    """The settings in a session artifact."""
    return settings_from(json.loads((folder / _FILE).read_text("utf-8")))
