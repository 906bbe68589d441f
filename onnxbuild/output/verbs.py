"""The JSON that each verb prints; its schema, made of the types that the code builds it with."""

import dataclasses
import inspect
import json
import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onnxbuild.core import event
from onnxbuild.core.errors import UsageError, did_you_mean
from onnxbuild.core.json_schema import DIALECT, Schema, TypeSchemas
from onnxbuild.output import build, checks, diagnosis, models, pages, store
from onnxbuild.output.error_record import ErrorRecord

_ATTRIBUTE = re.compile(r"(\w+): (.*)")


class OutputSchemas(TypeSchemas):
    """Writes schemas of what verbs print: records are TypedDicts, or dataclasses of events."""

    def record(self, kind: Any) -> Schema:
        """The schema of a record, closed, with its documentation."""
        described = inspect.cleandoc(kind.__doc__ or "")
        helps = _attributes(described)
        if dataclasses.is_dataclass(kind):
            hints = typing.get_type_hints(kind)
            fields = {each.name: hints[each.name] for each in dataclasses.fields(kind)}
            required = ["type", *fields]
            properties: dict[str, Any] = {"type": {"const": vars(kind)["type"]}}
        elif typing.is_typeddict(kind):
            fields = typing.get_type_hints(kind)
            required = [name for name in fields if name in kind.__required_keys__]
            properties = {}
        else:
            return super().record(kind)
        for name, each in fields.items():
            found = self.of(each)
            properties[name] = {**found, "description": helps[name]} if name in helps else found
        return {
            "type": "object",
            "description": described.partition("\n")[0],
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }


def _attributes(text: str) -> dict[str, str]:
    """Field -> its description, of a docstring's section `Attributes`."""
    found: dict[str, str] = {}
    name = ""
    for line in text.partition("Attributes:\n")[2].splitlines():
        indent = len(line) - len(line.lstrip())
        start = _ATTRIBUTE.fullmatch(line.strip())
        if indent == 4 and start:  # noqa: PLR2004 - of a section's entries
            name = start[1]
            found[name] = start[2]
        elif line.strip() and name:
            found[name] += f" {line.strip()}"
        else:
            break
    return found


@dataclass(frozen=True, slots=True)
class Output:
    """Form of the JSON that a verb prints.

    Attributes:
        kinds: A line, or the whole, is of one of these.
        lines: It prints a line for each; else one document.
        events: The events of a build are lines, too.
    """

    kinds: tuple[Any, ...]
    lines: bool = False
    events: bool = False


OUTPUTS: Mapping[str, Output] = {
    "init": Output((models.InitRecord,)),
    "run": Output((build.ResultRecord,), lines=True, events=True),
    "watch": Output((pages.WatchRecord,), lines=True),
    "plan": Output((build.PlannedRecord, build.RecipeChangeRecord), lines=True),
    "why": Output((build.WhyRecord,)),
    "diagnose": Output((diagnosis.DiagnosisRecord, diagnosis.WholeDiagnosisRecord)),
    "bench": Output((dict[str, dict[str, dict[str, Any]]],)),
    "lock": Output((checks.LocksRecord,)),
    "reproduce": Output((build.ReproducedRecord,), lines=True, events=True),
    "release": Output((checks.ReleasedRecord,)),
    "verify": Output((checks.VerifiedRecord,)),
    "push": Output((models.PushedRecord,)),
    "pull": Output((models.PulledRecord,)),
    "graph": Output((models.GraphRecord,)),
    "inspect": Output((models.InspectRecord,)),
    "view": Output((pages.ViewRecord,)),
    "diff": Output((pages.DiffRecord,)),
    "report": Output((pages.ReportRecord,)),
    "log": Output((models.LogRecord,)),
    "lint": Output((checks.LintRecord,)),
    "explain": Output((models.ExplainRecord,)),
    "schema": Output((models.SchemaRecord, dict[str, Any])),
    "doctor": Output((checks.DoctorRecord,)),
    "clean": Output((store.CleanRecord,)),
    "cache stats": Output((store.StatsRecord, store.RemoteStatsRecord)),
    "cache pins": Output((store.PinsRecord,)),
    "cache unpin": Output((store.UnpinnedRecord,)),
    "cache verify": Output((store.StoreCheckRecord,)),
    "cache push": Output((store.UploadedRecord,)),
    "cache pull": Output((store.FetchedRecord,)),
    "cache gc": Output((store.GarbageRecord, store.RemoteGarbageRecord)),
    "cache key": Output((store.CacheKeyRecord,)),
    "completion": Output((models.CompletionRecord,)),
}
"""Verb -> what it prints with `--json`; any prints an error in place of it, or after it."""


def file_name(verb: str) -> str:
    """Return the name of a verb's schema file, in schemas/output/."""
    return f"{verb.replace(' ', '-')}.schema.json"


def output_schema(verb: str) -> dict[str, Any]:
    """Return the JSON Schema of what a verb prints with `--json`: of each line, or of the whole.

    Raises:
        UsageError: There is no such verb.
    """
    if verb not in OUTPUTS:
        fix = did_you_mean(verb, OUTPUTS) or f"one of {', '.join(OUTPUTS)}"
        raise UsageError(f"no command '{verb}' prints JSON", fix=fix)
    found = OUTPUTS[verb]
    schemas = OutputSchemas()
    events = _events() if found.events else []
    kinds = [schemas.of(kind) for kind in (*events, *found.kinds, ErrorRecord)]
    what = "Each line" if found.lines else "What it prints"
    return {
        "$schema": DIALECT,
        "title": f"onnxbuild {verb} --json",
        "description": f"{what} on standard output: one of these.",
        "anyOf": kinds,
        "$defs": schemas.definitions,
    }


def output_schema_text(verb: str) -> str:
    """Return a verb's schema as the text of its file."""
    return json.dumps(output_schema(verb), indent=2, ensure_ascii=False) + "\n"


def _events() -> list[type[event.Event]]:
    """Return the classes of all events of a build, in the order in which they are defined."""
    found = [each for each in vars(event).values() if isinstance(each, type)]
    return [each for each in found if issubclass(each, event.Event) and each is not event.Event]
