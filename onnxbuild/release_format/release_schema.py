"""The JSON Schema of release.json, and the faults of one that somebody else wrote."""

from collections.abc import Collection
from pathlib import PurePosixPath
from typing import Any

from onnxbuild.recipe.schema.lean_jsonschema import ValidationError
from onnxbuild.recipe.schema.validator import StrictValidator
from onnxbuild.release_format.about import EPOCH_MAX_S, VERSION_PATTERN
from onnxbuild.release_format.bundles import SECTIONS, section_bundles
from onnxbuild.release_format.layout import GOLDEN_FOLDER, MANIFEST, RECIPE_FOLDER, REPORTS_FOLDER
from onnxbuild.release_format.package_records import PACKAGES, VARIANT, package_records

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string", "title": "is no text"}
_BOOLEAN: Schema = {"type": "boolean", "title": "is neither true nor false"}
_NUMBER: Schema = {
    "type": "integer",
    "minimum": 0,
    "maximum": EPOCH_MAX_S,
    "title": "is no number that a release has",
}
_NAME: Schema = {"type": "string", "pattern": "^[^/]+$", "title": "is no name"}
_VERSION: Schema = {"type": "string", "pattern": f"^{VERSION_PATTERN}$", "title": "is no version"}
_COMMIT: Schema = {
    "type": ["string", "null"],
    "pattern": "^[0-9a-f]{40}([0-9a-f]{24})?$",
    "title": "is no commit",
}


def release_schema(files: Collection[str]) -> Schema:
    """Return the schema of a release.json.

    Each `title` says what is wrong with a value that does not fit.

    Args:
        files: The release's files: every path that release.json names must be one of them, or a
            folder of one.
    """
    folders = {str(folder) for name in files for folder in PurePosixPath(name).parents} - {"."}
    bundles = {str(PurePosixPath(n).parent) for n in files if n.endswith(f"/{MANIFEST}")}
    file = _one_of(files, "file")
    record = _record(
        recipe=_TEXT,
        variant=_TEXT,
        bundle=_one_of(bundles, f"folder with a {MANIFEST}"),
        step=_TEXT,
        golden=_one_of(folders, "folder"),
        reference=_TEXT,
        benchmarks=_map(_TEXT),
    )
    package = _record(
        recipe=_TEXT,
        of=_TEXT,
        variant=_TEXT,
        format=_NAME,
        about=_TEXT,
        folder=_one_of(folders, "folder"),
        step=_TEXT,
        output=_NAME,
    )
    return _record(
        schema_version=_NUMBER,
        name=_NAME,
        version=_VERSION,
        onnxbuild=_TEXT,
        source=_record(commit=_COMMIT, dirty=_BOOLEAN, changed=_list(_TEXT), outside=_list(_TEXT)),
        epoch_s=_NUMBER,
        recipe=file,
        lock=file,
        bases=_list(file),
        **{section.key: _map(record) for section in SECTIONS},
        packages=_map(package),
        reports={**_map(_TEXT), "propertyNames": file},
    )


def about_fault(about: Any, files: Collection[str]) -> str:
    """Return what is wrong with a release.json first, `PATH is ...`; empty if nothing is."""
    error = next(StrictValidator(release_schema(files)).iter_errors(about), None)
    if error is not None:
        return _shown(error).strip()
    if not about["name"].isprintable():
        return f".name {_NAME['title']}"
    return _names_fault(about) or _place_fault(about)


def _shown(error: ValidationError) -> str:
    """Return an error of the schema as `PATH is ...`."""
    path = "".join(
        f"[{key}]" if isinstance(key, int) else f".{key}" for key in error.absolute_path
    )
    found: Any = error.instance
    schema: Any = error.schema
    if error.validator == "required":
        missing = next(key for key in schema["required"] if key not in found)
        return f"{path} has no '{missing}'"
    if error.validator == "additionalProperties":
        unknown = next(key for key in found if key not in schema["properties"])
        return f"{path} has '{unknown}', which no release has"
    if "propertyNames" in error.absolute_schema_path:
        path = f"{path}.{found}"
    return f"{path} {schema['title']}"


def _names_fault(about: Any) -> str:
    """Return the first fault in the names and places of bundles and packages; empty if there is none."""
    names: list[str] = []
    places: list[str] = []
    for section, name, entry in section_bundles(about):
        where = f".{section.key}.{name}"
        if name in names:
            return f"{where} has the name of another bundle"
        if any(f"{entry['bundle']}/".startswith(f"{each}/") for each in places):
            return f"{where}.bundle is in another bundle"
        names.append(name)
        places.append(entry["bundle"])
    for name, entry in package_records(about):
        if name in names:
            return f".{PACKAGES}.{name} has the name of a bundle"
        if entry["of"] not in names:
            return f".{PACKAGES}.{name}.of names no bundle of the release"
        if entry[VARIANT] not in about[SECTIONS[0].key]:
            return f".{PACKAGES}.{name}.{VARIANT} names no variant of the release"
    return "" if names else f".{SECTIONS[0].key} is empty, and so is all else"


def _place_fault(about: Any) -> str:
    """Return the first thing that is not where releases have it, and could pass for something else; else empty."""
    for section, name, entry in section_bundles(about):
        where = f".{section.key}.{name}"
        if entry["bundle"] != f"{section.folder}/{name}":
            return f"{where}.bundle is not {section.folder}/{name}"
        if entry["golden"].partition("/")[0].partition("-")[0] != GOLDEN_FOLDER:
            return f"{where}.golden is not below {GOLDEN_FOLDER}/"
    for name, entry in package_records(about):
        if entry["folder"] != f"{PACKAGES}/{name}":
            return f".{PACKAGES}.{name}.folder is not {PACKAGES}/{name}"
    for key, names in (
        ("recipe", [about["recipe"]]),
        ("lock", [about["lock"]]),
        ("bases", about["bases"]),
    ):
        if any(not name.startswith(f"{RECIPE_FOLDER}/") for name in names):
            return f".{key} is not below {RECIPE_FOLDER}/"
    if any(not name.startswith(f"{REPORTS_FOLDER}/") for name in about["reports"]):
        return f".reports names a file that is not below {REPORTS_FOLDER}/"
    return ""


def _record(**properties: Schema) -> Schema:
    """Return the schema of a mapping with exactly these keys."""
    return {
        "type": "object",
        "title": "is no mapping",
        "required": list(properties),
        "additionalProperties": False,
        "properties": properties,
    }


def _map(value: Schema) -> Schema:
    return {"type": "object", "title": "is no mapping", "additionalProperties": value}


def _list(item: Schema) -> Schema:
    return {"type": "array", "title": "is no list", "items": item}


def _one_of(known: Collection[str], what: str) -> Schema:
    return {"enum": sorted(known), "title": f"names no {what} of the release"}
