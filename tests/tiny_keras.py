"""Small models of Keras, saved as archives, on the torch backend."""

import importlib.util
import os
import tempfile
from pathlib import Path

import pytest

from tests.late_imports import Late

os.environ.update(
    KERAS_BACKEND="torch",
    KERAS_TORCH_DEVICE="cpu",
    KERAS_HOME=str(Path(tempfile.gettempdir()) / "keras_home_of_tests"),
)
if importlib.util.find_spec("keras") is None:
    pytest.skip("needs Keras", allow_module_level=True)

keras, layers = Late("keras"), Late("keras.layers")

NUMPY_2 = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
"""For tests that have Keras make arrays of its variables."""


def dense():
    """Three classes of ten features."""
    features = keras.Input((10,), name="features")
    hidden = layers.Dropout(0.5)(layers.Dense(8, activation="relu")(features))
    return keras.Model(features, layers.Dense(3, activation="softmax", name="scores")(hidden))


def recurrent():
    """An LSTM and a GRU over three steps."""
    x = keras.Input((3, 4), name="x")
    states = layers.GRU(5)(layers.LSTM(5, return_sequences=True)(x))
    return keras.Model(x, layers.Dense(2, name="y")(states))


def attention():
    """Attention over any number of steps."""
    x = keras.Input((None, 8), name="x")
    y = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 4)(x, x))
    return keras.Model(x, layers.Dense(8, activation="gelu", name="y")(y))


def embedding():
    """Words by their numbers, any number of them."""
    ids = keras.Input((None,), dtype="int32", name="ids")
    mean = layers.GlobalAveragePooling1D()(layers.Embedding(50, 8)(ids))
    return keras.Model(ids, layers.Dense(2, name="y")(mean))


def two():
    """Two inputs in another order than their names', two outputs by key."""
    first, second = keras.Input((4,), name="b"), keras.Input((6,), name="a")
    hidden = layers.Concatenate()([layers.Dense(4)(first), layers.Dense(3)(second)])
    outputs = {"score": layers.Dense(1)(hidden), "kind": layers.Dense(3)(hidden)}
    return keras.Model([first, second], outputs)


def saved(path: Path, make) -> Path:
    """An archive of a model with random weights."""
    keras.utils.set_random_seed(0)
    model = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    model.save(path)
    return path
