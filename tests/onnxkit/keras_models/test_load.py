"""Models of Keras as PyTorch modules: archives, what callables return, and what can't be loaded."""

import sys
import zipfile

import numpy as np
import pytest
import torch

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.export.torch_module import as_module, check_signature
from onnxbuild.onnxkit.keras_models import load as loading
from onnxbuild.onnxkit.keras_models.load import load_keras
from tests import tiny_keras as tiny

pytestmark = tiny.NUMPY_2

FACTS = {"inputs": ["b", "a"], "outputs": ["kind", "score"], "written_by": "3.15.1"}
A, B = np.ones((2, 6), np.float32), np.full((2, 4), 0.5, np.float32)


def rewritten(path, name, content):
    """An archive with one file of another content."""
    with zipfile.ZipFile(path) as file:
        parts = {each: file.read(each) for each in file.namelist()}
    with zipfile.ZipFile(path, "w") as file:
        for each, old in parts.items():
            file.writestr(each, content(old) if each == name else old)


def test_an_archive_computes_what_keras_does_by_names(tmp_path):
    path = tiny.saved(tmp_path / "two.keras", tiny.two)
    module = load_keras(path, "two.keras", FACTS, "demo:export")
    found = module(a=torch.from_numpy(A), b=torch.from_numpy(B))
    expected = tiny.keras.saving.load_model(path).predict([B, A], verbose=0)
    assert list(found) == ["kind", "score"]
    for name, array in expected.items():
        np.testing.assert_allclose(found[name].detach().numpy(), array, rtol=1e-6)
    names = (DummyInput("a", "float32", (2, 6)), DummyInput("b", "float32", (2, 4)))
    check_signature(module, names, "demo:export")
    with pytest.raises(StepError, match="requires 'a'"):
        check_signature(module, names[1:], "demo:export")


def test_a_callable_may_return_a_model_on_the_torch_backend():
    model = tiny.two()
    module = as_module(model, "demo:export")
    found = module(a=torch.from_numpy(A), b=torch.from_numpy(B))
    expected = model.predict([B, A], verbose=0)
    np.testing.assert_allclose(found["score"].detach().numpy(), expected["score"], rtol=1e-6)


def test_a_class_of_the_users_takes_the_arguments_of_its_call():
    import keras

    class Mine(keras.Model):
        def __init__(self):
            super().__init__()
            self.out, self.drop = tiny.layers.Dense(2), tiny.layers.Dropout(0.9)

        def call(self, x, scale, training=None):
            return self.drop(self.out(x), training=training) * scale

    model, x = Mine(), torch.ones(3, 4)
    with pytest.raises(StepError, match="is not built: it has no weights yet"):
        as_module(model, "demo:export")
    model(x, torch.ones(1))
    module = as_module(model, "demo:export")
    expected = model.out(x) * 2
    torch.testing.assert_close(module(x=x, scale=torch.tensor([2.0])), expected)


def test_a_later_keras_and_damaged_weights_are_one_error_each(tmp_path):
    path = tiny.saved(tmp_path / "two.keras", tiny.two)
    rewritten(path, "config.json", lambda old: old.replace(b'"Concatenate"', b'"Concatenate9"'))
    with pytest.raises(
        StepError, match=r"can't load two.keras \(written by Keras 99.1.0\)"
    ) as caught:
        load_keras(path, "two.keras", {**FACTS, "written_by": "99.1.0"}, "demo:export")
    assert caught.value.fix == "pip install 'keras>=99.1.0'"
    path = tiny.saved(tmp_path / "two.keras", tiny.two)
    rewritten(path, "model.weights.h5", lambda old: old[:2000])
    with pytest.raises(StepError, match=r"Keras [0-9.]+ can't load") as caught:
        load_keras(path, "two.keras", FACTS, "demo:export")
    assert "\n" not in caught.value.what


def test_safe_mode_stays_on(tmp_path):
    def with_lambda():
        return tiny.keras.Sequential([tiny.keras.Input((4,)), tiny.layers.Lambda(lambda x: x * 2)])

    path = tiny.saved(tmp_path / "two.keras", with_lambda)
    with pytest.raises(StepError, match="ambda"):
        load_keras(path, "two.keras", FACTS, "demo:export")


def test_another_backend_and_no_keras_are_one_line_each(tmp_path, monkeypatch):
    monkeypatch.setattr(tiny.keras.config, "backend", lambda: "tensorflow")
    with pytest.raises(StepError, match="imported on the tensorflow backend") as caught:
        load_keras(tmp_path, "two.keras", FACTS, "demo:export")
    assert "KERAS_BACKEND=torch" in caught.value.fix
    monkeypatch.setitem(sys.modules, "keras", None)
    with pytest.raises(StepError, match="which can't be imported") as caught:
        load_keras(tmp_path, "two.keras", FACTS, "demo:export")
    assert caught.value.fix == loading.INSTALL == "pip install 'onnxbuild[keras]'"
