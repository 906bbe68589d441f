"""Provenance of a release: an in-toto statement with SLSA's build provenance.

All of it follows from the rest of the release, so that whoever checks one can derive it again.
Sources: in-toto Statement v1, https://github.com/in-toto/attestation/tree/main/spec/v1;
SLSA provenance v1, https://slsa.dev/spec/v1.0/provenance.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from onnxbuild.core.action import NO_FILE
from onnxbuild.core.digest import Digest
from onnxbuild.lock.model import Lock
from onnxbuild.release_format.bundles import SECTIONS
from onnxbuild.release_format.distributions import packages_of
from onnxbuild.release_format.layout import NOT_ATTESTED, PREDICATE_TYPE, STATEMENT_TYPE
from onnxbuild.release_format.package_records import PACKAGES

BUILD_TYPE = "https://onnxbuild.dev/release/v1"
BUILDER_ID = "https://onnxbuild.dev/builder"


def provenance(
    about: Mapping[str, Any], lock: Lock, files: Mapping[str, Digest]
) -> dict[str, Any]:
    """The statement on a release.

    Args:
        files: Path in it -> digest, of all its files; those that are no subject are left out.
    """
    return {
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": path, "digest": {"sha256": files[path].sha256}}
            for path in sorted(files)
            if path not in NOT_ATTESTED
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {
                    "recipe": lock.recipe,
                    "version": about["version"],
                    **{section.key: sorted(about[section.key]) for section in SECTIONS},
                    **({PACKAGES: sorted(about[PACKAGES])} if PACKAGES in about else {}),
                    "targets": {
                        name: [target["name"] for target in recipe["targets"]]
                        for name, recipe in lock.resolved.items()
                    },
                },
                "internalParameters": {
                    "onnxbuild": lock.onnxbuild,
                    "python": lock.python,
                    "host": dict(lock.host),
                    "epoch_s": about["epoch_s"],
                },
                "resolvedDependencies": [*_source(about["source"]), *_used(lock)],
            },
            "runDetails": {
                "builder": {"id": BUILDER_ID, "version": {"onnxbuild": about["onnxbuild"]}},
                "metadata": {"invocationId": f"lock sha256:{files[about['lock']].sha256}"},
            },
        },
    }


def _source(source: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The commit; what differed from it, if anything did."""
    if source["commit"] is not None:
        dependency: dict[str, Any] = {"name": "source", "digest": {"gitCommit": source["commit"]}}
        if source["dirty"]:
            dependency["annotations"] = {"dirty": True, "changed": list(source["changed"])}
        yield dependency


def _used(lock: Lock) -> Iterator[dict[str, Any]]:
    """Sources, files and packages, as the lock names them."""
    for path, sha256 in sorted(lock.sources.items()):
        yield {"name": path, "digest": {"pythonSyntaxTreeSha256": sha256}}
    for path, sha256 in sorted(lock.files.items()):
        if sha256 != NO_FILE:
            yield {"name": path, "digest": {"sha256": sha256}}
    for package in packages_of(lock):
        digest = {"digest": {"recordSha256": package.record}} if package.record else {}
        yield {"name": package.name, "uri": package.purl, **digest}
