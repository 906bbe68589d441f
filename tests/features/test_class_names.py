"""Which outputs of a model or a pipeline a file of `labels` names the classes of."""

from types import SimpleNamespace

import pytest

from onnxbuild.host.host import HostFacts
from onnxbuild.onnxkit.bundles.manifest import Value
from onnxbuild.onnxkit.processing.labels import labelled
from onnxbuild.resolver import resolve
from tests.written_recipes import loader

TEXT = """\
version: 1
name: demo
model: model.py:load
dummy_inputs:
  x: {dtype: float32, shape: [batch, 4]}
outputs: OUTPUTS
dynamic_axes:
  batch: {min: 1, max: 8, example: 2}
processing:
  postprocess:
"""
FILES = {
    "animals.txt": ("cat", "dog", "eel"),
    "sizes.txt": ("s", "m", "l"),
    "two.txt": ("no", "yes"),
}
HOST = HostFacts("x86_64", frozenset())


@pytest.fixture
def named(tmp_path):
    """(postprocess, outputs of the model, bundle, width of its outputs of floats) -> output -> labels."""
    for name, lines in FILES.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n")

    def call(operations, outputs, bundle, **widths):
        written = "".join(f"    - {each}\n" for each in operations)
        load = loader(tmp_path, before=TEXT.replace("OUTPUTS", f"[{', '.join(outputs)}]"))
        (recipe,) = load(written).recipes
        files = resolve([recipe], HOST).steps[f"demo:{bundle}/package"].params.labels
        values = [
            Value(name, "float32", ("batch", width))
            if width
            else Value(name, "string", ("batch",))
            for name, width in widths.items()
        ]
        context = SimpleNamespace(
            files=lambda each: [(each.files[0], tmp_path / each.files[0])], where="demo"
        )
        return {each.name: each.labels for each in labelled(values, files, context) if each.labels}

    return call


def test_scores_of_top_k_are_sorted_and_have_no_names_of_classes(named):
    asked = ["softmax: {}", "top_k: {k: 3}", "labels: {file: animals.txt}"]
    animals = FILES["animals.txt"]
    found = named(asked, ["logits"], "fp32-pipeline", scores=3, label=0, probabilities=3, logits=3)
    assert found == {"label": animals, "probabilities": animals, "logits": animals}
    assert named(asked, ["logits"], "fp32", logits=3) == {"logits": animals}


def test_each_of_two_heads_has_the_names_of_its_own_classes(named):
    asked = [
        "softmax: {of: animal, to: animals}", "argmax: {to: a}", "labels: {file: animals.txt, to: animal_name}",
        "softmax: {of: size, to: sizes}", "argmax: {to: b}", "labels: {file: sizes.txt, to: size_name}",
    ]  # fmt: skip
    heads = ["animal", "size"]
    animals, sizes = FILES["animals.txt"], FILES["sizes.txt"]
    found = named(
        asked, heads, "fp32-pipeline", animals=3, sizes=3, animal_name=0, size_name=0, size=3
    )
    assert found == {
        "animals": animals, "animal_name": animals, "sizes": sizes, "size_name": sizes, "size": sizes,
    }  # fmt: skip
    assert named(asked, heads, "fp32", animal=3, size=3) == {"animal": animals, "size": sizes}
