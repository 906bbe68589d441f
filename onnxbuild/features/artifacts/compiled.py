"""`compiled`: ONNX with the nodes that a provider has compiled already (EPContext)."""

from collections.abc import Iterator

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.provider import is_full_name
from onnxbuild.core.recipe import Variant
from onnxbuild.document.faults import Fault, choices, hinted, nearest
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.artifacts import SECTION, add_artifact, only_in_environments, target_of
from onnxbuild.expansion.feature import AheadOfTimeModel, ArtifactFormat
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.ahead_of_time.options import CompiledOptions
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.providers import all_providers, is_known, named, short_name
from onnxbuild.steps import compile_model

NAME = "compiled"


def _artifact(
    scope: Scope, variant: Variant, model: OutputRef, options: CompiledOptions
) -> AheadOfTimeModel:
    provider = short_name(options.provider)
    target = target_of(scope.recipe, provider)
    for_gpu = named(provider).compiles_for_gpu
    kind = compile_model.KIND_FOR_GPU if for_gpu else compile_model.KIND
    own = dict(target.chain[0].options)
    params = compile_model.CompileParams(provider, own, options.embed)
    made = add_artifact(scope, variant, NAME, kind=kind, params=params, inputs={"model": model})
    return AheadOfTimeModel(NAME, made, target, SessionSettings())


def _faults(parts: Parts) -> Iterator[Fault]:
    node = parts.node(SECTION, NAME, "provider")
    if node is None or not parts.sound(SECTION, NAME):
        return
    provider = str(node.value)
    at = parts.at(SECTION, NAME, "provider")
    if not is_known(provider) and not is_full_name(provider):
        able = [each.name for each in all_providers() if not each.no_ep_context]
        near = nearest(provider, able)
        what = f"{SECTION}.compiled.provider is '{provider}', which is no execution provider"
        yield Fault(hinted(what, near), at, f"write {near or choices(able)}")
    elif reason := named(provider).no_ep_context:
        what = (
            f"{SECTION}.compiled.provider is '{provider}', which has no compiled models "
            f"(EPContext): {reason}"
        )
        fix = "write `provider: openvino`, or for the graph alone `optimized: {}`"
        yield Fault(what, at, fix)
    yield from only_in_environments(parts, NAME, short_name(provider))


FEATURE = ArtifactFormat(
    name=NAME,
    options=CompiledOptions,
    help="`{provider: NAME}`: nodes compiled by a provider (EPContext), in VARIANT-compiled/",
    kinds=(compile_model.KIND, compile_model.KIND_FOR_GPU),
    faults=_faults,
    artifact=_artifact,
)
