"""`shared-weights`: a component with all that its inputs come from, as graphs over one file of weights."""

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.step import Outcome, StepContext
from onnxbuild.expansion.package_format import (
    OwnModel,
    Packaged,
    PackageFormat,
    package_kind,
    run_kind,
)
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.ahead_of_time.artifact_file import SOURCE
from onnxbuild.onnxkit.bundles.manifest import (
    MANIFEST_FILE,
    graph_files,
    model_bytes,
    read_manifest,
    to_manifest,
)
from onnxbuild.onnxkit.bundles.write import described, names_below
from onnxbuild.onnxkit.data.reference_files import read_reference
from onnxbuild.onnxkit.model.model_files import file_bytes, save_together
from onnxbuild.onnxkit.packages.contents import packed, read_bundle, write_text
from onnxbuild.onnxkit.packages.package_run import OwnTest, RunParams, checked_package, judged
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session

_OTHER = "component/"
_README = """\
# {name}: {files}

Graphs over one file of weights, `{weights}`, in which weights that several graphs hold are once. `{file}` is the model that manifest.json describes; the others give its
inputs. ONNX Runtime opens each by its path, and maps the weights:

```python
import onnxruntime

sessions = {{name: onnxruntime.InferenceSession(f"{{name}}.onnx") for name in {names}}}
```
"""


@dataclass(frozen=True, slots=True)
class SharedWeightsOptions:
    """Options of a folder of graphs over one file of weights."""


@dataclass(frozen=True, slots=True)
class PackageSharedWeightsParams:
    """Parameters of a package; `component` is the one that it is of, `model` in a recipe without components."""

    component: str


def package(context: StepContext) -> Outcome:
    """Write COMPONENT.onnx of each component, their weights, manifest.json and SHA256SUMS."""
    params: PackageSharedWeightsParams = context.params
    bundle, manifest = read_bundle(context)
    folder = context.output("bundle")
    sources = {f"{params.component}.onnx": bundle / manifest.file}
    for name in context.input_names:
        if name.startswith(_OTHER):
            sources[f"{name.removeprefix(_OTHER)}.onnx"] = context.input(name)
    file = next(iter(sources))
    weights = f"{file}.data"
    save_together(sources, folder, weights)
    readme = _README.format(
        name=f"{manifest.name}:{manifest.variant}",
        files=", ".join(sources),
        weights=weights,
        file=file,
        names=json.dumps([Path(each).stem for each in sources]),
    )
    write_text(folder / "README.md", readme)
    files = {name: described(folder / name) for name in names_below(folder)}
    source = {name: manifest.files[name].sha256 for name in graph_files(manifest)}
    own = replace(
        manifest,
        file=file,
        files=files,
        size_bytes=model_bytes(files),
        facts={**(manifest.facts or {}), SOURCE: source},
    )
    write_report(folder, to_manifest(own), MANIFEST_FILE)
    others = sum(file_bytes(path) for path in sources.values() if path.is_dir())
    alone = ["it holds one model: none of its inputs is `from` another component"]
    notes = alone if len(sources) == 1 else ()
    return packed(context, own, {"apart_bytes": manifest.size_bytes + others}, notes)


def run(context: StepContext) -> Outcome:
    """Open all graphs, and run the golden inputs of the one that the package is of.

    Raises:
        StepError: The package is damaged, or ONNX Runtime refuses a graph.
    """
    folder = context.scratch / "package"
    shutil.copytree(checked_package(context), folder)  # weights behind a link are refused
    manifest = read_manifest(json.loads((folder / MANIFEST_FILE).read_text("utf-8")))
    sessions = {
        path.name: open_session(path, where=context.where)
        for path in sorted(folder.glob("*.onnx"))
    }
    found = {
        point.name: run_session(sessions[manifest.file], point.feeds, context.where)
        for point in read_reference(context.input("reference"))
    }
    fix = (
        f"open {manifest.file} with inputs of your own, and compare with the variant's model.onnx"
    )
    return judged(OwnTest(0, "", found), context, command="", fix=fix)


def _others(scope: Scope, variant: str) -> dict[str, OutputRef]:
    """Components that a component's inputs come from, and theirs -> the model: of that variant, or of the first if they have none such."""
    found: dict[str, OutputRef] = {}
    left = [scope]
    while left:
        each = left.pop()
        for connection in each.recipe.connections:
            name = connection.component
            if name in found or name == scope.recipe.component:
                continue
            other = scope.connected(name)
            named = [one for one in other.recipe.variants if one.name == variant]
            chosen = next(iter((*named, *other.recipe.variants)), None)
            found[name] = other.source().model if chosen is None else other.model(chosen)
            left.append(other)
    return found


def _inputs(packaged: Packaged) -> dict[str, OutputRef]:
    others = _others(packaged.scope, packaged.subject.variant.name)
    return {f"{_OTHER}{name}": others[name] for name in sorted(others)}


FEATURE: PackageFormat = PackageFormat(
    name="shared-weights",
    options=SharedWeightsOptions,
    title="a component and those that its inputs come from, over one file of weights",
    called="the package of variant",
    refuses=lambda bundle: "it is made of a variant's own model" if bundle.is_further else "",
    no_operators="it holds graphs and weights alone",
    kind=package_kind(
        "shared-weights",
        2,
        PackageSharedWeightsParams,
        package,
        toolchain=("onnx", "numpy"),
        inputs=("bundle", f"{_OTHER}*"),
    ),
    params=lambda packaged: PackageSharedWeightsParams(packaged.recipe.component or "model"),
    inputs_of=_inputs,
    run=run_kind("shared-weights", 1, RunParams, run, toolchain=("numpy", "onnxruntime")),
    run_params=lambda asked: RunParams(asked.subject, asked.tolerances),
    own_model=OwnModel(),
)
