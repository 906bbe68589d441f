"""The description of a bundle, manifest.json: one form for every kind of bundle, written and read."""

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onnxbuild.core import step
from onnxbuild.core.digest import Digest
from onnxbuild.core.file_names import check_part
from onnxbuild.core.params import from_json, to_json
from onnxbuild.core.recipe import Precision
from onnxbuild.core.target import CPU
from onnxbuild.onnxkit.host.made_for import MadeFor
from onnxbuild.onnxkit.loaders.script import Runtime
from onnxbuild.onnxkit.sessions.custom_operators import OperatorLibrary
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.providers import short_name

MANIFEST_FILE, SUMS_FILE = step.MANIFEST_FILE, step.SUMS_FILE
ONNX = "onnx"
"""The kind of portable variants; another kind has its format's name."""

SCHEMA_VERSION = 2
"""Increment when manifest.json changes in a way that its readers notice."""

VALIDATION_FILE, EVALUATION_FILE = "validation.json", "evaluation.json"
GATES_FILE = "gates.json"
LOADER_FILE, EXAMPLE_FOLDER = "load.py", "cpp"
RUN_FILE, TOKENIZER_FOLDER = "run.py", "tokenizer"
"""Script of a decoder that continues prompts, and the folder of its tokenizer."""
OPERATORS_FOLDER = "operators"
"""Holds the libraries of custom operators, in a folder for each platform."""

_KIND = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_EXAMPLE_FILES = ("CMakeLists.txt", "example.h", "main.cpp")
_NOT_THE_MODEL = frozenset(
    {
        LOADER_FILE,
        RUN_FILE,
        VALIDATION_FILE,
        EVALUATION_FILE,
        GATES_FILE,
        *(f"{EXAMPLE_FOLDER}/{name}" for name in _EXAMPLE_FILES),
    }
)


@dataclass(frozen=True, slots=True)
class Value:
    """An input or output.

    Attributes:
        name: Its name.
        dtype: NumPy's name of the type; None for an output of a program, which declares none.
        shape: Ints and symbols of the dynamic axes, outermost first; None where it is unknown.
        labels: Names of classes: of the places along a float output's last axis, or what an output of strings
            holds; empty where there are none.
    """

    name: str
    dtype: str | None = None
    shape: tuple[int | str, ...] | None = None
    labels: tuple[str, ...] = dataclasses.field(default=(), metadata={"sparse": True})


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of the gate on one target.

    Attributes:
        passed: Whether all outputs are within the tolerances.
        tolerances: Tolerances in force, as JSON of VariantTolerances.
        metrics: The worst of each measure over all points.
    """

    passed: bool | None
    tolerances: dict[str, Any] | None
    metrics: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class ManifestProvider:
    """An execution provider.

    Attributes:
        name: Its full name, `CPUExecutionProvider`.
        options: Provider options, in ONNX Runtime's form.
        target: The target whose session settings it takes; None within a target.
    """

    name: str
    options: dict[str, str]
    target: str | None = None


@dataclass(frozen=True, slots=True)
class BundleTarget:
    """A place where ONNX Runtime runs the model.

    Attributes:
        chain: Providers in order of preference.
        session: Session settings there.
        placement: Nodes that ran on each provider.
        skipped: Reason why the model was not run there.
        library: Name of the provider's plug-in, which is not in the bundle.
        environment: The environment that it was run in, if that is not onnxbuild's own.
    """

    chain: tuple[ManifestProvider, ...]
    session: SessionSettings
    placement: dict[str, Any] | None = None
    skipped: str | None = None
    library: str | None = None
    environment: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Decoder:
    """Inputs of a model that writes text, by their purpose.

    Attributes:
        ids: Ids of the new tokens, shape (batch, new).
        masks: Ones and zeros, over the new tokens or over all.
        positions: Positions of the new tokens.
        logits: The output, shape (batch, new, vocabulary).
        past: The axis along which the state grows; None where it has one size.
        new: The axis of the new tokens; None for a model that takes one at a time.
        in_place: Whether one buffer for the greatest `past` may be bound as state and as new state.
    """

    ids: str
    masks: tuple[str, ...]
    positions: tuple[str, ...]
    logits: str
    past: str | None
    new: str | None
    in_place: bool = dataclasses.field(default=False, metadata={"sparse": True})


@dataclass(frozen=True, slots=True)
class Manifest:
    """A bundle: one model, how it is opened and called, and what is known of it.

    Attributes:
        name: The recipe's.
        kind: ONNX, or the name of the format.
        file: The file that is opened.
        precision: Precision of the weights.
        recipe_sha256: Digest of the part of the recipe that the model is made from.
        inputs: Inputs in order.
        outputs: Outputs in order.
        dynamic_axes: Axis -> `min`, `max`, `example` and `multiple_of`.
        validation: Target -> the gate's verdict, of those that the model ran on.
        versions: Package -> version that made the bundle.
        made_for: The machine that the model is bound to; None if it runs on any.
        files: Each file but manifest.json and SHA256SUMS.
        size_bytes: Size of the model's files.
        variant: The variant that the model is, or is made from; None for a program.
        evaluation: Target -> score and drop.
        fidelity: Target -> similarity of the model's outputs to fp32's on the user's data.
        targets: Targets that ONNX Runtime runs it on, in order of preference.
        providers: Built-in providers of all targets; None for a model made for one target.
        session: The first target's.
        folder_options: Provider options whose value is the bundle's own folder.
        by_keyword: A program's inputs are passed by name, else in order.
        opsets: Domain -> version.
        ir_version: ONNX's.
        nodes: Number of nodes in the graph and its subgraphs.
        parameters: Number of elements of all weights.
        sums_may_saturate: Sums of 8-bit products overflow 16 bits on a CPU without VNNI.
        portable_size_bytes: Size of the model that this one is made from.
        operators: Libraries of custom operators, below OPERATORS_FOLDER, that every session registers.
        facts: Additional facts of a model made ahead of time.
        state: Input -> the output that is this input of the next call; None for a model without state.
        decoder: Of a model that run.py continues prompts with: which input is what.
    """

    name: str
    kind: str
    file: str
    precision: Precision
    recipe_sha256: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    dynamic_axes: dict[str, dict[str, int]]
    validation: dict[str, Verdict]
    versions: dict[str, str]
    made_for: MadeFor | None = None
    files: dict[str, Digest] = dataclasses.field(default_factory=dict)
    size_bytes: int = 0
    variant: str | None = None
    evaluation: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    fidelity: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    targets: dict[str, BundleTarget] | None = None
    providers: tuple[ManifestProvider, ...] | None = None
    session: SessionSettings | None = None
    folder_options: tuple[str, ...] | None = None
    by_keyword: bool | None = None
    opsets: dict[str, int] | None = None
    ir_version: int | None = None
    nodes: int | None = None
    parameters: int | None = None
    sums_may_saturate: bool | None = None
    portable_size_bytes: int | None = None
    operators: tuple[OperatorLibrary, ...] | None = None
    facts: dict[str, Any] | None = None
    state: dict[str, str] | None = dataclasses.field(default=None, metadata={"sparse": True})
    decoder: Decoder | None = dataclasses.field(default=None, metadata={"sparse": True})

    @property
    def runtime(self) -> Runtime:
        """The package that opens the model: PyTorch for a program, which alone says how its inputs are passed."""
        return "onnxruntime" if self.by_keyword is None else "torch"

    @property
    def runs_code(self) -> bool:
        """Whether the model may run arbitrary code.

        A program may, and so may a provider's caches and libraries of custom operators, whatever the kind. Portable
        ONNX may not; a model that a format made is safe only if every target and provider is the CPU's: others
        compile.
        """
        if self.runtime == "torch" or self.folder_options or self.operators:
            return True
        if self.kind == ONNX:
            return False
        chains = [each.chain for each in (self.targets or {}).values()]
        links = [link for chain in (*chains, self.providers or ()) for link in chain]
        is_plain = bool(chains) and all(chains)
        return not is_plain or any(short_name(each.name) != CPU for each in links)

    @property
    def bundle(self) -> str:
        """Its name within the recipe: `int8`, `int8-ort`, `torchscript`."""
        parts = (self.variant, None if self.kind == ONNX else self.kind)
        return "-".join(filter(None, parts))

    @property
    def bound_to(self) -> str:
        """The machine that its files are made for, for people; empty where any will do."""
        if self.made_for is None:
            return ""
        has = [flag for flag, there in self.made_for.flags.items() if there]
        device = f", {self.made_for.device}" if self.made_for.device else ""
        flags = ", ".join(has) or "no flags"
        return f"{self.made_for.machine}, {self.made_for.cpu}{device} ({flags})"


def to_manifest(manifest: Manifest) -> dict[str, Any]:
    """Return the content of manifest.json; keys that say nothing of such a bundle are left out."""
    optional = {each.name for each in dataclasses.fields(Manifest) if each.default is None}
    plain = to_json(manifest)
    content = {
        key: value
        for key, value in plain.items()
        if key not in optional - {"made_for"} or value is not None
    }
    targets: dict[str, Any] = content.get("targets", {})
    for target in targets.values():
        target["chain"] = [_without_none(each) for each in target["chain"]]
    if targets:
        content["targets"] = {name: _without_none(each) for name, each in targets.items()}
    return {"schema_version": SCHEMA_VERSION, **content}


def read_manifest(content: object) -> Manifest:
    """Return the description of a bundle.

    Args:
        content: The JSON value of manifest.json, whoever wrote it.

    Raises:
        ValueError: A value in it is not what a manifest has there.
    """
    if not isinstance(content, Mapping):
        raise ValueError("it is no mapping")  # noqa: TRY004 - a fault of the file, not of a caller
    if content.get("schema_version") != SCHEMA_VERSION:
        raise ValueError(f"its schema_version is not {SCHEMA_VERSION}")
    known = {key: value for key, value in content.items() if key != "schema_version"}
    found = from_json(Manifest, known, MANIFEST_FILE)
    if not _KIND.fullmatch(found.kind):
        what = f"its kind is {found.kind!a}; expected letters, digits, '_' and '-'"
        raise ValueError(what)
    try:
        check_part(found.file)
    except ValueError:
        what = f"its file is {found.file!a}, which is no name of a file in its folder"
        raise ValueError(what) from None
    if found.runtime == "onnxruntime" and not found.targets:
        raise ValueError("it names no target")
    for library in found.operators or ():
        if library.file not in found.files or not library.file.startswith(f"{OPERATORS_FOLDER}/"):
            what = (
                f"its operators name {library.file!a}, which is no file of its {OPERATORS_FOLDER}/"
            )
            raise ValueError(what)
    size = model_bytes(found.files)
    if found.size_bytes not in {0, size}:
        raise ValueError(f"its size_bytes is {found.size_bytes}; its model's files have {size}")
    return dataclasses.replace(found, size_bytes=size)


def model_bytes(files: Mapping[str, Digest]) -> int:
    """Return the size of a bundle's files without what is written next to every model, and without libraries."""
    return sum(
        each.size_bytes
        for name, each in files.items()
        if name not in _NOT_THE_MODEL
        and not name.startswith((f"{OPERATORS_FOLDER}/", f"{TOKENIZER_FOLDER}/"))
    )


def graph_files(manifest: Manifest) -> tuple[str, ...]:
    """Return the files that hold the model: the one that is opened, and its external weights."""
    return tuple(name for name in manifest.files if name.startswith(manifest.file))


def _without_none(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: each for key, each in value.items() if each is not None}


_RUN_KEYS = ("kind", "dynamic_axes", "targets", "providers", "session", "folder_options", "by_keyword", "operators")  # fmt: skip


def run_facts(manifest: Manifest) -> dict[str, Any]:
    """Return the facts that opening and calling a model needs, as JSON values: targets, sessions, axes, libraries."""
    content = to_json(manifest)
    found: dict[str, Any] = {key: content[key] for key in _RUN_KEYS}
    for name, target in (found["targets"] or {}).items():
        found["targets"][name] = {key: target[key] for key in ("chain", "session", "library")}
    return found
