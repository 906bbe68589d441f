"""The files of `labels`, each with the outputs whose classes it names."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from onnxbuild.core.recipe import Recipe
from onnxbuild.features.settings.processing.options import declared_at, options_of
from onnxbuild.onnxkit.processing.labels import LabelsFile
from onnxbuild.onnxkit.processing.options import POSTPROCESS, asked_of

_KEEPS_PLACES = {"softmax", "sigmoid", "pool", "l2_normalize"}
"""Operations whose result has the places of what they take, in the same order."""


@dataclass(frozen=True, slots=True)
class _Places:
    """Places that a value has, or is a number of.

    Attributes:
        of: The first value that has these places; empty for the model's only output, which has no name here.
        ranked: Whether the greatest comes first.
        verdict: Whether it is what a threshold gives.
    """

    of: str
    ranked: bool = False
    verdict: bool = False


def labels_files_of(recipe: Recipe) -> tuple[LabelsFile, ...]:
    """The files of all operations `labels`, each with the outputs of the pipeline that it names the classes of."""
    files, results = _walked(recipe)
    outputs = {name: _Places(name) for name in recipe.outputs} | results
    return tuple(
        _with_outputs(
            file,
            [name for name, found in outputs.items() if found == places],
            [
                name
                for name, found in outputs.items()
                if found != places and _differ(found, places)
            ],
        )
        for file, places in files
    )


def class_names_of(recipe: Recipe) -> tuple[LabelsFile, ...]:
    """The same files, for the bundles of the models themselves, which have none of the results."""
    files, _ = _walked(recipe)
    known = {places.of for _, places in files}
    return tuple(
        _with_outputs(
            replace(file, output=""),
            [name for name in recipe.outputs if name == places.of],
            [name for name in recipe.outputs if name != places.of and name in known],
        )
        for file, places in files
    )


def _differ(found: _Places, named: _Places) -> bool:
    """Whether a value surely has not the places that a file names: what a graph of the user's gives is not known."""
    return found.ranked or not named.of.startswith(POSTPROCESS)


def _with_outputs(file: LabelsFile, scores: list[str], others: list[str]) -> LabelsFile:
    return replace(file, scores=tuple(scores), others=tuple(others))


def _walked(recipe: Recipe) -> tuple[list[tuple[LabelsFile, _Places]], dict[str, _Places]]:
    """(each file with the places that it names, result -> its places)."""
    only = recipe.outputs[0] if len(recipe.outputs) == 1 else ""
    results: dict[str, _Places] = {}
    last = _Places(only)
    files = []
    for position, operation in enumerate(options_of(recipe).postprocess):
        ((name, options),) = asked_of(operation).items()
        asked = getattr(options, "of", None)
        taken = results.get(asked, _Places(asked)) if asked else last
        if name == "labels":
            file = declared_at(recipe, POSTPROCESS, position, name, "file")
            found = LabelsFile(file, options.to, names_verdicts=taken.verdict)
            files.append((found, taken))
        made = dict(_made(name, options, taken, position))
        results |= made
        last = next(iter(made.values()))
    return files, results


def _made(
    name: str, options: object, taken: _Places, position: int
) -> Iterator[tuple[str, _Places]]:
    own = _Places(f"{POSTPROCESS}/{position}")
    to = getattr(options, "to", "")
    if name == "top_k":
        yield to, own if taken.ranked else taken
        yield getattr(options, "scores", ""), replace(taken, ranked=True)
    elif name == "argmax":
        yield to, own if taken.ranked else taken
    elif name == "threshold":
        yield to, replace(own, verdict=True)
    else:
        yield to, taken if name in _KEEPS_PLACES else own
