"""The bill of materials of a release: its models and what they were built with, in CycloneDX.

Like the provenance it follows from the rest of the release. cyclonedx-python-lib writes it and
checks it; the model cards, which the library has no classes for, are put in before the check.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from onnxbuild.core.digest import Digest, tagged_sha256
from onnxbuild.lock.model import Lock
from onnxbuild.onnxkit.bundles.manifest import Manifest, Value
from onnxbuild.release_format.bundles import BUNDLE, SECTIONS, bundles_of
from onnxbuild.release_format.distributions import Package, packages_of
from onnxbuild.release_format.figures import Figures, figures_of
from onnxbuild.release_format.layout import RECIPE_FOLDER, RELEASE_FILE
from onnxbuild.release_format.package_records import PACKAGES, package_records

if TYPE_CHECKING:
    from cyclonedx.model.component import Component
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

_RUNTIME = "onnxruntime"
_PACKAGES: Mapping[str, tuple[str, ...]] = {_RUNTIME: (_RUNTIME,), "torch": ("torch", "numpy")}
"""Runtime of a kind of bundles -> packages that it takes."""
_PREFIX = "onnxbuild"


def bill_of_materials(
    about: Mapping[str, Any],
    lock: Lock,
    files: Mapping[str, Digest],
    manifests: Mapping[str, Manifest],
) -> str:
    """The bill of materials; equal releases give equal text.

    Args:
        files: Path in it -> digest; those that are made after the bill don't matter.
        manifests: Bundle, as in release.json -> its manifest.json.
    """
    from cyclonedx.model import Property
    from cyclonedx.model.bom import Bom, BomMetaData
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.model.tool import ToolRepository
    from cyclonedx.output.json import JsonV1Dot6

    models = {
        name: _model(name, about, lock, files, manifest) for name, manifest in manifests.items()
    }
    needs = {name: _runtimes(manifest) for name, manifest in manifests.items()}
    packages = {
        name: _package(name, about, files, entry) for name, entry in package_records(about)
    }
    libraries = _libraries(lock, tuple(dict.fromkeys(each for n in needs.values() for each in n)))
    whole = Component(
        name=about["name"],
        version=about["version"],
        type=ComponentType.MACHINE_LEARNING_MODEL,
        bom_ref="release",
    )
    builder = Component(
        name="onnxbuild",
        version=about["onnxbuild"],
        type=ComponentType.APPLICATION,
        bom_ref="builder",
    )
    commit = about["source"]["commit"]
    properties = [] if commit is None else [Property(name=f"{_PREFIX}:commit", value=commit)]
    bom = Bom(
        serial_number=_serial_number(about, files),
        metadata=BomMetaData(
            timestamp=datetime.fromtimestamp(about["epoch_s"], UTC),
            component=whole,
            tools=ToolRepository(components=[builder]),
            properties=properties,
        ),
        components=[*models.values(), *packages.values(), *libraries.values()],
    )
    bom.register_dependency(whole, [*models.values(), *packages.values()])
    for name, entry in package_records(about):
        bom.register_dependency(packages[name], [models[entry["of"]]])
    for name, model in models.items():
        runtimes = [each for each in libraries.values() if _is_one(each, needs[name])]
        bom.register_dependency(model, runtimes)
    document = json.loads(JsonV1Dot6(bom).output_as_string())
    cards = {
        f"variant:{name}": _model_card(
            manifest, figures_of(bundles_of(about)[name], manifest, lock)
        )
        for name, manifest in manifests.items()
    }
    for component in document["components"]:
        if component["bom-ref"] in cards:
            component["modelCard"] = cards[component["bom-ref"]]
    return json.dumps(document, sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def bom_fault(text: str) -> str:
    """Return what breaks CycloneDX's schema first; empty if nothing does."""
    try:
        found = next(_validator().iter_errors(json.loads(text)), None)
    except ValueError as error:
        return f"no JSON: {error}"
    return "" if found is None else str(found).partition("\n")[0]


@cache
def _validator() -> Validator:
    """Return CycloneDX's validator with a linear `uniqueItems`; it reads its schema once.

    jsonschema compares each component with each: 4,000 of them take 25 s, and 100,000 hours.
    """
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator
    from jsonschema import validators

    of: Any = JsonStrictValidator(SchemaVersion.V1_6)._validator  # noqa: SLF001 - its schema and registry have no other name
    extend: Any = validators.extend
    linear = extend(type(of), {"uniqueItems": _unique_items})
    made: Validator = linear(of.schema, registry=of._registry, format_checker=of.format_checker)  # noqa: SLF001 - likewise
    return made


def _unique_items(
    validator: Validator, is_unique: object, instance: object, schema: object
) -> Iterator[ValidationError]:
    from jsonschema import ValidationError

    del validator, schema
    if is_unique and isinstance(instance, list):
        texts = {json.dumps(each, sort_keys=True) for each in instance}
        if len(texts) != len(instance):
            yield ValidationError("it lists something twice")


def _serial_number(about: Mapping[str, Any], files: Mapping[str, Digest]) -> uuid.UUID:
    """The same for the same release, another for any other."""
    places = (RECIPE_FOLDER, PACKAGES, *(section.folder for section in SECTIONS))
    folders = tuple(f"{each}/" for each in places)
    document = [
        [p, files[p].sha256] for p in sorted(files) if p.startswith((*folders, RELEASE_FILE))
    ]
    name = tagged_sha256("bill of materials", [about["name"], about["version"], document])
    return uuid.uuid5(uuid.NAMESPACE_URL, f"https://onnxbuild.dev/bom/{name}")


def _model(
    name: str,
    about: Mapping[str, Any],
    lock: Lock,
    files: Mapping[str, Digest],
    manifest: Manifest,
) -> Component:
    """A bundle, with its files inside."""
    from cyclonedx.model import Property
    from cyclonedx.model.component import Component, ComponentScope, ComponentType

    variant = bundles_of(about)[name]
    figures = figures_of(variant, manifest, lock)
    prefix = f"{variant['bundle']}/"
    document = {
        "precision": figures.precision,
        "size_bytes": figures.model_bytes,
        **_particulars(manifest),
        "bundle_sha256": lock.steps[variant["step"]].outputs[BUNDLE].sha256,
    }
    return Component(
        name=f"{about['name']}/{name}",
        version=about["version"],
        type=ComponentType.MACHINE_LEARNING_MODEL,
        scope=ComponentScope.REQUIRED,
        bom_ref=f"variant:{name}",
        hashes=[_sha256(files[f"{prefix}{manifest.file}"].sha256)],
        properties=[Property(name=f"{_PREFIX}:{k}", value=str(v)) for k, v in document.items()],
        components=_files_below(prefix, files),
    )


def _package(
    name: str, about: Mapping[str, Any], files: Mapping[str, Digest], entry: Mapping[str, Any]
) -> Component:
    """A package, with its files inside."""
    from cyclonedx.model import Property
    from cyclonedx.model.component import Component, ComponentScope, ComponentType

    return Component(
        name=f"{about['name']}/{name}",
        version=about["version"],
        type=ComponentType.APPLICATION,
        scope=ComponentScope.OPTIONAL,
        bom_ref=f"package:{name}",
        properties=[Property(name=f"{_PREFIX}:format", value=entry["format"])],
        components=_files_below(f"{entry['folder']}/", files),
    )


def _files_below(prefix: str, files: Mapping[str, Digest]) -> list[Component]:
    from cyclonedx.model.component import Component, ComponentType

    return [
        Component(
            name=path,
            type=ComponentType.FILE,
            bom_ref=f"file:{path}",
            hashes=[_sha256(files[path].sha256)],
        )
        for path in sorted(files)
        if path.startswith(prefix)
    ]


def _particulars(manifest: Manifest) -> dict[str, object]:
    """Return the properties for a bundle of its kind."""
    if manifest.opsets is not None:
        opset = manifest.opsets.get("", manifest.opsets.get("ai.onnx", ""))
        return {"parameters": manifest.parameters, "opset": opset}
    bound = manifest.bound_to
    return {"format": manifest.kind, **({"bound_to": bound} if bound else {})}


def _runtimes(manifest: Manifest) -> tuple[str, ...]:
    """Return the packages that run a bundle."""
    return _PACKAGES[manifest.runtime]


def _is_one(package: Package | Component, runtimes: tuple[str, ...]) -> bool:
    """Return whether a package is one of these runtimes; ONNX Runtime has several names (`onnxruntime-gpu`).

    Those of npm run packages, not bundles.
    """
    name = package.name
    is_named = name in runtimes or (_RUNTIME in runtimes and name.startswith(_RUNTIME))
    return is_named and str(package.purl).startswith("pkg:pypi/")


def _libraries(lock: Lock, runtimes: tuple[str, ...]) -> dict[str, Component]:
    """Package's URL -> component; what runs the models is required, the rest built them."""
    from cyclonedx.model import Property
    from cyclonedx.model.component import Component, ComponentScope, ComponentType
    from packageurl import PackageURL

    found = {}
    for package in packages_of(lock):
        runs = _is_one(package, runtimes)
        record = [Property(name=f"{_PREFIX}:record_sha256", value=package.record)]
        found[package.purl] = Component(
            name=package.name,
            version=package.version,
            type=ComponentType.LIBRARY,
            scope=ComponentScope.REQUIRED if runs else ComponentScope.EXCLUDED,
            bom_ref=package.purl,
            purl=PackageURL.from_string(package.purl),
            properties=record if package.record else [],
        )
    return found


def _sha256(value: str) -> Any:
    from cyclonedx.model import HashAlgorithm, HashType

    return HashType(alg=HashAlgorithm.SHA_256, content=value)


def _model_card(manifest: Manifest, figures: Figures) -> dict[str, Any]:
    def formats(values: tuple[Value, ...]) -> list[dict[str, str]]:
        return [
            {"format": v.name}
            if v.dtype is None  # a program's outputs have names alone
            else {"format": f"{v.name}: {v.dtype}[{', '.join(map(str, v.shape or ()))}]"}
            for v in values
        ]

    return {
        "modelParameters": {
            "inputs": formats(manifest.inputs),
            "outputs": formats(manifest.outputs),
        },
        "quantitativeAnalysis": {"performanceMetrics": list(_metrics(figures))},
    }


def _metrics(figures: Figures) -> Iterator[dict[str, Any]]:
    by_provider = {
        "max_abs_error": figures.errors,
        "cosine_min": figures.cosines,
        "equal_min": figures.equals,
        "score": figures.scores,
    }
    for kind, values in by_provider.items():
        for provider, value in values.items():
            yield {"type": kind, "value": repr(value), "slice": provider}
    for each in figures.latencies:
        yield {
            "type": "latency_p50_ms",
            "value": repr(each.p50_ms),
            "slice": f"{each.provider} {each.point}",
            "confidenceInterval": {
                "lowerBound": repr(each.low_ms),
                "upperBound": repr(each.high_ms),
            },
        }
