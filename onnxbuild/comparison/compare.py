"""Compare two sides: verdicts, accuracy, signature, recipe, inputs, tools, graph, weights, files."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onnxbuild.comparison.figures import (
    ORDER,
    Difference,
    Group,
    LatencyChange,
    figure_rows,
    judged,
    latencies,
    scored,
    sized,
)
from onnxbuild.comparison.sides import ComparedBundle, Side
from onnxbuild.core.errors import StepError, UsageError
from onnxbuild.document.recipe_names import RecipeName
from onnxbuild.lock.compare import LockDifference, LockPart, differences
from onnxbuild.lock.model import Lock
from onnxbuild.onnxkit.bundles.manifest import (
    EVALUATION_FILE,
    GATES_FILE,
    MANIFEST_FILE,
    SUMS_FILE,
    VALIDATION_FILE,
    run_facts,
)
from onnxbuild.onnxkit.differences.first_difference import (
    ArtifactDifference,
    file_difference,
    first_difference,
    json_difference,
    spelling_difference,
)
from onnxbuild.onnxkit.differences.models import compare_models
from onnxbuild.onnxkit.differences.sentences import ModelPart, ValueChange, say
from onnxbuild.onnxkit.model.model_files import external_files, is_name_below

_REPORTS = frozenset({VALIDATION_FILE, EVALUATION_FILE, GATES_FILE})
"""They follow from the model: reported only where the models are equal."""


def other_files(
    old: ComparedBundle, new: ComparedBundle, *, same_model: bool
) -> Iterator[ArtifactDifference]:
    """Yield one difference for each file that differs, of those that are no model.

    Args:
        old: With a model, and a folder if it is a bundle.
        same_model: Whether the models have the same bytes.

    Raises:
        StepError: A model can't be read.
    """
    if old.manifest is None or new.manifest is None:
        return
    ones, others = _listed(old), _listed(new)
    for name in sorted(ones.keys() | others.keys()):
        if name in _REPORTS and not same_model:
            continue
        if name not in others:
            yield ArtifactDifference(name, "this file is gone")
        elif name not in ones:
            yield ArtifactDifference(name, "this file is new")
        elif (found := file_difference(name, ones[name], others[name])) is not None:
            yield found
    said = json_difference(run_facts(old.manifest), run_facts(new.manifest))
    if said:
        yield ArtifactDifference(MANIFEST_FILE, said)


def _listed(bundle: ComparedBundle) -> dict[str, Path]:
    """The files that the manifest lists, as far as they are there; in out/ there are measurements next to them."""
    folder, manifest, model = bundle.folder, bundle.manifest, bundle.model
    assert folder is not None
    assert manifest is not None
    assert model is not None
    others = {manifest.file, MANIFEST_FILE, SUMS_FILE, *external_files(model)}
    names = [name for name in manifest.files if name not in others and is_name_below(name)]
    return {name: path for name in names if (path := folder / name).is_file()}


_WIDEST = 120
_GROUPS_OF_PARTS = {
    LockPart.RECIPE: Group.RECIPE,
    LockPart.CHOICES: Group.RECIPE,
    LockPart.INPUTS: Group.INPUTS,
    LockPart.TOOLS: Group.TOOLS,
}


def origins(before: Side, after: Side) -> Iterator[Difference]:
    """Yield what differs in recipe, inputs and tools; of sides without a lock, what their bundles say of it."""
    if before.lock is not None and after.lock is not None:
        one = _comparable_lock(before.lock, before.variant or after.variant)
        other = _comparable_lock(after.lock, after.variant or before.variant)
        for each in differences(one, other):
            if not (each.follows or _is_unknown(each, before, after)):
                yield _said(each)
        return
    if len(before.bundles) != 1 or len(after.bundles) != 1:
        return
    old, new = before.bundles[0].manifest, after.bundles[0].manifest
    if old is None or new is None:
        return
    if old.recipe_sha256 != new.recipe_sha256:
        data = {"kind": "recipe digest", "before": old.recipe_sha256, "after": new.recipe_sha256}
        text = "the recipe differs (a bundle alone does not say in what)"
        yield Difference(Group.RECIPE, text, data)
    for name in sorted({*old.versions, *new.versions}):
        left, right = old.versions.get(name, ""), new.versions.get(name, "")
        if left != right:
            data = {"kind": "tools", "name": name, "before": left, "after": right}
            change = ValueChange(f"package {name}", left, right)
            yield Difference(Group.TOOLS, _in_short(change), data, change)


def _is_unknown(each: LockDifference, before: Side, after: Side) -> bool:
    """Return whether something is missing on a side of which some steps may have used it: nobody knows."""
    if each.part not in (LockPart.INPUTS, LockPart.TOOLS):
        return False
    return (before.is_partial and not each.old) or (after.is_partial and not each.new)


def _comparable_lock(lock: Lock, variant: str) -> Lock:
    """A lock with one name for the recipe; if one side means one variant, without the other variants."""
    resolved = {}
    for name, recipe in lock.resolved.items():
        own = {key: value for key, value in recipe.items() if key != "name"}
        if variant and variant in own.get("variants", {}):
            own["variant"] = own.pop("variants")[variant]
        shown = RecipeName("", RecipeName.parse(name).member) if len(lock.resolved) > 1 else ""
        resolved[str(shown)] = own
    return replace(lock, resolved=resolved, recipe="", steps={}, measurements={})


def _said(each: LockDifference) -> Difference:
    subject = each.path if each.part is LockPart.RECIPE else each.subject
    data = {"kind": "lock", "subject": subject, "before": each.old, "after": each.new}
    change = ValueChange(subject, each.old, each.new)
    text = _in_short(change)
    if each.part is LockPart.INPUTS:
        text = f"{subject} changed ({each.old} -> {each.new})"
        if not each.old or not each.new:
            text = f"{subject} is {'gone' if each.old else 'new'}"
    return Difference(_GROUPS_OF_PARTS[each.part], text, data, change)


def _in_short(change: ValueChange) -> str:
    return str(ValueChange(change.subject, _cut(change.old), _cut(change.new)))


def _cut(text: str) -> str:
    if text.startswith(("{", "[")):
        text = text.replace("'", "")  # a section of the recipe
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


_GROUPS = {
    ModelPart.SIGNATURE: Group.SIGNATURE,
    ModelPart.OPSET: Group.GRAPH,
    ModelPart.GRAPH: Group.GRAPH,
    ModelPart.WEIGHTS: Group.WEIGHTS,
}


@dataclass(frozen=True, slots=True)
class ComparedSides:
    """Two sides compared.

    Attributes:
        before: The one.
        after: The other.
        differences: In the order of their groups.
        latencies: As they were recorded, or measured side by side; they decide nothing.
        pairs: (name, before, after) of the bundles that were compared.
        figures: ComparedBundle -> rows of (figure, before, after, change), as text.
        notes: What could not be compared, and why.
    """

    before: Side
    after: Side
    differences: tuple[Difference, ...]
    latencies: tuple[LatencyChange, ...]
    pairs: tuple[tuple[str, ComparedBundle, ComparedBundle], ...]
    figures: dict[str, list[tuple[str, str, str, str]]]
    notes: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """Whether nothing differs; measured times, which differ each time, do not count."""
        return not self.differences


def compare(before: Side, after: Side) -> ComparedSides:
    """Compare two sides.

    Raises:
        UsageError: Their models can't be paired, or one of them is not ONNX.
    """
    pairs, alone = _pairs(before, after)
    found = [*origins(before, after), *alone]
    measured: list[LatencyChange] = []
    rows: dict[str, list[tuple[str, str, str, str]]] = {}
    notes: list[str] = []
    together = (
        before.lock is not None
        and after.lock is not None
        and before.lock.measurements == after.lock.measurements
    )
    for old, new in pairs:
        name = _pair_name(old, new)
        own = (*judged(old, new), *scored(old, new), *sized(old, new), *_models(old, new, notes))
        found += [each.of(name) for each in own]
        if not (old.sha256 and old.sha256 == new.sha256):  # else only the machine differs
            measured += latencies(old, new, name, together=together)
        rows[name] = figure_rows(old, new)
    merged = _merged(found)
    if not merged:
        merged = _unexplained(before, after)
    named = tuple((_pair_name(old, new), old, new) for old, new in pairs)
    return ComparedSides(
        before, after, tuple(merged), tuple(measured), named, rows, tuple(dict.fromkeys(notes))
    )


def _pairs(
    before: Side, after: Side
) -> tuple[list[tuple[ComparedBundle, ComparedBundle]], list[Difference]]:
    """Bundles that are compared, and those that one side has alone."""
    olds, news = (_comparable(*sides) for sides in ((before, after), (after, before)))
    if len(olds) == len(news) == 1:
        return [(olds[0], news[0])], []
    for side, other in ((before, after), (after, before)):
        if side.kind == "model" and len(other.bundles) > 1:
            names = ", ".join(each.name for each in other.bundles)
            raise UsageError(
                f"{other.given} has {len(other.bundles)} models: {names}; which one?",
                fix=_with_first_model(before, after, other),
            )
    recipes = [{each.recipe for each in bundles} for bundles in (olds, news)]
    by_name = len(recipes[0]) == len(recipes[1]) == 1  # recipes may have other names

    def key(each: ComparedBundle) -> tuple[str, str]:
        return ("" if by_name else each.recipe, each.name)

    theirs = {key(each): each for each in news}
    mine = {key(each): each for each in olds}
    if before.variant or after.variant:  # one side means one variant alone
        wanted = mine if before.variant else theirs
        mine = {name: each for name, each in mine.items() if name in wanted}
        theirs = {name: each for name, each in theirs.items() if name in wanted}
    alone = [
        Difference(
            Group.VERDICTS, f"variant {each.name} is {word}", {"kind": "bundle", "name": each.name}
        )
        for ones, others, word in ((mine, theirs, "gone"), (theirs, mine, "new"))
        for name, each in ones.items()
        if name not in others
    ]
    return [(each, theirs[name]) for name, each in mine.items() if name in theirs], alone


def _comparable(side: Side, other: Side) -> Sequence[ComparedBundle]:
    """Return the bundles that the other side can have, too: no release has the page of a build."""
    if side.variant or other.kind != "release":
        return side.bundles
    return [each for each in side.bundles if not each.is_page]


def _with_first_model(before: Side, after: Side, many: Side) -> str:
    """Return the command that compares with the first model of a side that has several."""
    bundle = many.bundles[0]
    if many.kind == "commit":  # a third word names the variant
        recipe = bundle.recipe if many.named is None else many.named.file
        words = [before.given, after.given, f"{recipe}:{bundle.name}"]
        return shlex.join(["onnxbuild", "diff", *words])
    name, unpacking = f"{many.given}:{bundle.name}", ""
    if bundle.folder is not None and many.kind == "folder":
        name = str(Path(many.given, bundle.folder.name))
    elif bundle.folder is not None and many.kind == "release":
        inside = bundle.folder.parts[-2:]  # variants/NAME
        is_folder = Path(many.given).is_dir()
        name = str(Path(many.given if is_folder else many.title, *inside))
        unpacking = "" if is_folder else f"tar -xf {shlex.quote(many.given)} && "
    words = [name if each is many else each.given for each in (before, after)]
    return unpacking + shlex.join(["onnxbuild", "diff", *words])


def _pair_name(old: ComparedBundle, new: ComparedBundle) -> str:
    recipes = f"{new.recipe}:" if RecipeName.parse(new.recipe).member else ""
    return f"{recipes}{new.name}" if old.name == new.name else f"{old.name} -> {new.name}"


def _models(old: ComparedBundle, new: ComparedBundle, notes: list[str]) -> Iterator[Difference]:
    if old.sha256 and old.sha256 == new.sha256:
        return
    absent = [each for each in (old, new) if each.model is None and each.folder is None]
    if absent:
        if old.sha256 and new.sha256:
            sizes = {"before": old.size_bytes, "after": new.size_bytes}
            text = "the bundle differs, and its files are not in the store on both sides"
            yield Difference(Group.GRAPH, text, {"kind": "bundle", **sizes})
        notes += [f"to see what differs in the models: {each.fix}" for each in absent]
        return
    if old.model is not None and new.model is not None:
        try:
            found = compare_models(old.model, new.model)
            others = list(other_files(old, new, same_model=found.same_bytes))
        except StepError as error:
            raise UsageError(error.what, where=error.where, fix=error.fix) from error
        said = say(found)
        for one in said:
            yield Difference(_GROUPS[one.part], one.sentence, one.data, one.change)
        if not said and not found.same_bytes:
            shown = spelling_difference(old.model, new.model) or "the files' bytes differ"
            text = f"the same graph and weights, written in another way: {shown}"
            yield Difference(Group.GRAPH, text, {"kind": "bytes"})
        yield from (_of_file(Group.FILES, each) for each in others)
    elif old.folder is not None and new.folder is not None:
        first = first_difference(old.folder, new.folder)
        if first is not None:
            yield _of_file(Group.GRAPH, first)
    else:
        text = "one is an ONNX model, the other is not"
        yield Difference(Group.GRAPH, text, {"kind": "form"})


def _of_file(group: Group, found: ArtifactDifference) -> Difference:
    data = {"kind": "file", "file": found.file, "what": found.what, "more": found.more}
    return Difference(group, str(found), data)


def _merged(found: Iterable[Difference]) -> list[Difference]:
    """Equal sentences of several variants as one, in the order of their groups."""
    by_text: dict[tuple[Group, str], Difference] = {}
    for each in found:
        known = by_text.get((each.group, each.sentence))
        by_text[each.group, each.sentence] = each if known is None else known.merged(each)
    return sorted(by_text.values(), key=lambda each: ORDER.index(each.group))


def _unexplained(before: Side, after: Side) -> list[Difference]:
    """Steps that gave other outputs though nothing that is known differs."""
    if before.lock is None or after.lock is None:
        return []
    one, other = before.lock.steps, after.lock.steps
    names: Sequence[str] = [
        name
        for name in one
        if name in other
        for output in one[name].outputs
        if output in other[name].outputs
        and one[name].outputs[output] != other[name].outputs[output]
    ]
    if not names:
        return []
    first = names[0]
    more = f" (and {len(names) - 1} more after it)" if len(names) > 1 else ""
    text = f"step {first} gave another output{more}, though no model differs"
    return [Difference(Group.INPUTS, text, {"kind": "steps", "steps": list(names)})]
