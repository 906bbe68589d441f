"""Artifact of a model that was prepared ahead of time: its files, and artifact.json, which describes them."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from onnxbuild.core.params import from_json
from onnxbuild.onnxkit.host.made_for import MadeFor
from onnxbuild.onnxkit.model.model_files import file_bytes
from onnxbuild.onnxkit.reports import described_file, write_report

DESCRIPTION_FILE = "artifact.json"
OPERATORS_FILE = "required_operators.config"
SOURCE = "source"
"""Key among the facts of a manifest: files of the source model -> sha256."""


@dataclass(frozen=True, slots=True)
class ArtifactDescription:
    """Description of an artifact, artifact.json: how a session loads it.

    Attributes:
        kind: Its format's name.
        file: The file that an InferenceSession opens.
        provider: Full name of the execution provider.
        provider_options: Its options.
        folder_options: Names of options that are the artifact's own folder.
        graph_optimization: Level, one of those of `session.graph_optimization`.
        config: Session config entries.
        made_for: Machine that it was made for; None if it runs on any.
        facts: Additional facts, plain JSON.
    """

    kind: str
    file: str
    provider: str
    provider_options: dict[str, str] = field(default_factory=dict)
    folder_options: tuple[str, ...] = ()
    graph_optimization: str = "all"
    config: dict[str, str] = field(default_factory=dict)
    made_for: MadeFor | None = None
    facts: dict[str, Any] = field(default_factory=dict)


def write_description(folder: Path, description: ArtifactDescription) -> None:
    """Write artifact.json."""
    write_report(folder, asdict(description), DESCRIPTION_FILE)


def read_description(folder: Path) -> ArtifactDescription:
    """Read what `write_description` wrote.

    Raises:
        StepError: A plug-in's step made the folder, and did not call it.
    """
    file = described_file(folder, DESCRIPTION_FILE, __name__)
    return from_json(ArtifactDescription, json.loads(file.read_bytes()), DESCRIPTION_FILE)


def loaded_bytes(folder: Path) -> int:
    """Return the bytes of an artifact that a session loads: all but its description."""
    described = folder / DESCRIPTION_FILE
    return file_bytes(folder) - (described.stat().st_size if described.is_file() else 0)
