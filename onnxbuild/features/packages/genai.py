"""`genai`: a decoder as a folder that onnxruntime-genai runs as it is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.external_code import external_code, message_of
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.params import option
from onnxbuild.core.step import OPTIONAL, REPORT_FILE, Finding, Outcome, StepContext
from onnxbuild.document.faults import Fault
from onnxbuild.expansion.generation import SECTION as GENERATE
from onnxbuild.expansion.generation import expected_tokens_of
from onnxbuild.expansion.package_format import (
    Packaged,
    PackageFormat,
    PackageRequest,
    described_at_top,
    package_kind,
    run_kind,
)
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE, TOKENIZER_FOLDER, read_manifest
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.genai.config import (
    CONFIG_FILE,
    GenaiCache,
    NotForGenaiError,
    cache_of,
    genai_config,
)
from onnxbuild.onnxkit.host.progress import counted
from onnxbuild.onnxkit.loaders.text_run import new_tokens
from onnxbuild.onnxkit.model.model_files import hand_on
from onnxbuild.onnxkit.packages.contents import (
    LEAVE_OUT,
    hand_model_on,
    packed,
    read_bundle,
    write_rendered,
)
from onnxbuild.onnxkit.packages.golden import GOLDEN
from onnxbuild.onnxkit.packages.package_run import RunParams, checked_package, skipped
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.steps.generate import EXACT

_TOKENS, _TOKENS_FILE = "tokens", "tokens.json"
_RUNTIME = "onnxruntime-genai"
_NOT_HERE = f"{_RUNTIME} is not installed here: `pip install --no-deps {_RUNTIME}`, next to the ONNX Runtime that is"


@dataclass(frozen=True, slots=True)
class GenaiOptions:
    """Options of a folder for onnxruntime-genai."""

    pad_token_id: int | None = option(
        None,
        help="id that pads prompts, which must not be in one; left out: the tokenizer's, else what ends a text, else 0. "
        "If no file of the tokenizer says what ends a text, this id does",
        minimum=0,
    )


@dataclass(frozen=True, slots=True)
class PackageGenaiParams:
    """Parameters of a package; `cache` is the model's, by layer."""

    cache: GenaiCache
    pad_token_id: int | None


def package(context: StepContext) -> Outcome:
    """Write the model, genai_config.json, the tokenizer's files, PyTorch's tokens, README.md and SHA256SUMS.

    Raises:
        StepError: genai has no form for the model.
    """
    params: PackageGenaiParams = context.params
    folder = context.output("bundle")
    bundle, manifest = read_bundle(context)
    tokenizer = bundle / TOKENIZER_FOLDER
    try:
        config = genai_config(manifest, params.cache, tokenizer, params.pad_token_id)
    except NotForGenaiError as error:
        raise StepError(str(error), where=context.where, fix=LEAVE_OUT) from error
    hand_model_on(bundle, manifest, folder)
    files = sorted(tokenizer.iterdir()) if tokenizer.is_dir() else []
    for each in files:
        hand_on(each, folder / each.name)
    write_report(folder, config, CONFIG_FILE)
    (folder / GOLDEN).mkdir()
    hand_on(context.input(_TOKENS) / REPORT_FILE, folder / GOLDEN / _TOKENS_FILE)
    assert manifest.decoder is not None
    write_rendered(
        folder,
        "onnxbuild.onnxkit.genai",
        {"README.md": "README.md"},
        name=manifest.name,
        variant=manifest.variant,
        precision=manifest.precision,
        config=config,
        file=CONFIG_FILE,
        has_tokenizer=bool(files),
        takes_padding=params.cache.takes_padding,
        new=manifest.dynamic_axes[manifest.decoder.new]["max"] if manifest.decoder.new else 1,
        saturates=bool(manifest.sums_may_saturate),
        onnxruntime=manifest.versions["onnxruntime"],
    )
    return packed(context, manifest)


def run(context: StepContext) -> Outcome:
    """Continue the golden prompts by onnxruntime-genai, alone and in pairs padded on their right; skipped where it is not installed.

    The tokens must be PyTorch's, of a variant of fewer bits those that ONNX Runtime gives for the same model.

    Raises:
        StepError: The package is damaged, or genai refuses it.
    """
    params: RunParams = context.params
    folder = context.scratch / "package"
    shutil.copytree(checked_package(context), folder)  # weights behind a link are refused
    try:
        import onnxruntime_genai  # noqa: F401
    except ImportError:
        return skipped(context, _NOT_HERE)
    config = json.loads((folder / CONFIG_FILE).read_text("utf-8"))["model"]
    golden = json.loads((folder / GOLDEN / _TOKENS_FILE).read_text("utf-8"))
    padding = config["pad_token_id"]
    ends = {padding, *config["eos_token_id"]}  # genai pads what has ended
    usable = [n for n, each in enumerate(golden["prompts"]) if padding not in each]
    prompts = {n: golden["prompts"][n] for n in usable}
    expected = _expected(context, folder, golden, prompts)
    equal = total = 0
    first = ""
    for group in counted(_groups(folder, prompts), "batches"):
        length = len(golden["tokens"][0])
        found = _continued(context, folder, [prompts[n] for n in group], length, padding)
        for n, tokens in zip(group, found, strict=True):
            both = (_before(tokens, ends), _before(expected[n], ends))
            pairs = list(zip_longest(*both))
            wrong = [place for place, (own, wanted) in enumerate(pairs) if own != wanted]
            equal, total = equal + len(pairs) - len(wrong), total + len(pairs)
            if wrong and not first:
                own, wanted = pairs[wrong[0]]
                first = f"token {wrong[0]} after prompt {n} (batch {len(group)}) is {own} instead of {wanted}"
    what = f"{total - equal} of {total} tokens are others: {first}"
    if not total:
        what = f"all prompts have the id {padding}, which genai takes for padding: none was tried"
    fix = "compare with the bundle's `run.py --ids`, or name prompts of your own in `generate`"
    findings = () if total and equal == total else (Finding(what, params.subject, fix),)
    share = equal / total if total else None
    measures = {"max_abs": None, "cosine_min": None, "equal_min": share}
    metrics = {"points": len(usable), **measures, "compared": total}
    write_report(context.output("report"), {"passed": not findings, **metrics})
    return Outcome(metrics, findings)


def _expected(
    context: StepContext, folder: Path, golden: Mapping[str, Any], prompts: Mapping[int, list[int]]
) -> dict[int, list[int]]:
    """The tokens after each prompt: PyTorch's; of a variant of fewer bits its own."""
    content = json.loads((folder / MANIFEST_FILE).read_text("utf-8"))
    if content["precision"] in EXACT:
        return dict(enumerate(golden["tokens"]))
    session = open_session(folder / content["file"], where=context.where)
    count = len(golden["tokens"][0])
    return {n: list(new_tokens(session, content, each, count)) for n, each in prompts.items()}


def _groups(folder: Path, prompts: Mapping[int, list[int]]) -> list[tuple[int, ...]]:
    """Each prompt alone; and pairs, where a model's tokens don't depend on its neighbours.

    Prompts of two lengths are a pair where padding is taken. 8 bits of activations are scaled over a whole batch.
    """
    manifest = read_manifest(json.loads((folder / MANIFEST_FILE).read_text("utf-8")))
    assert manifest.decoder is not None
    alone: list[tuple[int, ...]] = [(n,) for n in prompts]
    if manifest.precision not in EXACT:
        return alone
    takes_padding = bool(manifest.decoder.masks and manifest.decoder.positions)
    pairs = zip(list(prompts)[::2], list(prompts)[1::2], strict=False)
    return [
        *alone,
        *(
            (one, other)
            for one, other in pairs
            if takes_padding or len(prompts[one]) == len(prompts[other])
        ),
    ]


def _continued(
    context: StepContext, folder: Path, prompts: Sequence[Sequence[int]], count: int, padding: int
) -> list[list[int]]:
    """New tokens of a batch of prompts, padded on their right.

    Raises:
        StepError: genai refuses the model.
    """
    import onnxruntime_genai

    def blamed(error: BaseException) -> StepError:
        what = f"{_RUNTIME} {onnxruntime_genai.__version__} refuses the model: {message_of(error)}"
        fix = "see the limits in the package's README.md"
        return StepError(what, where=context.where, fix=fix)

    longest = max(map(len, prompts))
    ids = [[*each, *[padding] * (longest - len(each))] for each in prompts]
    with external_code(blamed):
        model = onnxruntime_genai.Model(str(folder))
        parameters = onnxruntime_genai.GeneratorParams(model)
        parameters.set_search_options(max_length=longest + count, batch_size=len(prompts))
        generator = onnxruntime_genai.Generator(model, parameters)
        generator.append_tokens(np.array(ids, np.int32))
        while not generator.is_done():
            generator.generate_next_token()
        return [generator.get_sequence(n)[longest:].tolist() for n in range(len(prompts))]


def _before(tokens: Sequence[int], ends: Collection[int]) -> list[int]:
    """The tokens before the first that ends a text."""
    return list(takewhile(lambda each: each not in ends, tokens))


def _inputs_of(packaged: Packaged) -> Mapping[str, OutputRef]:
    return {_TOKENS: expected_tokens_of(packaged.scope)}


def _faults(request: PackageRequest) -> Iterator[Fault]:
    parts = request.parts
    if parts.sound("dummy_inputs") and parts.sound("state"):
        try:
            cache_of(tuple(parts.inputs.values()))
        except NotForGenaiError as error:
            what = f"packages.genai: {_RUNTIME} can't run this model: {error}"
            yield request.fault(what, "remove `genai`, or declare the model so (docs/packages.md)")
            return
    if parts.node(GENERATE) is None:
        what = f"packages.genai is judged by the prompts of `{GENERATE}`, and the recipe has none"
        yield request.fault(what, f"add `{GENERATE}: {{prompts: dummy}}`")


FEATURE: PackageFormat = PackageFormat(
    name="genai",
    options=GenaiOptions,
    title="a decoder's folder for onnxruntime-genai",
    called="the genai folder of variant",
    request_faults=_faults,
    refuses=lambda bundle: "it is made of a variant's own model" if bundle.is_further else "",
    no_operators=f"{_RUNTIME} registers no custom operators",
    kind=package_kind(
        "genai", 1, PackageGenaiParams, package, toolchain=("jinja2",), inputs=("bundle", _TOKENS)
    ),
    params=lambda packaged: PackageGenaiParams(
        cache_of(packaged.recipe.inputs), packaged.options.pad_token_id
    ),
    inputs_of=_inputs_of,
    run=run_kind(
        "genai", 1, RunParams, run, toolchain=("numpy", "onnxruntime", f"{_RUNTIME}{OPTIONAL}")
    ),
    run_params=lambda asked: RunParams(asked.subject, asked.tolerances),
    contents=described_at_top,
)
