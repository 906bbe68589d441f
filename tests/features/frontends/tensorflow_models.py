"""Write SavedModels and a TensorFlow Lite file into this folder: `PYTHON tensorflow_models.py DIGITS`."""

import sys

import numpy as np
import tensorflow as tf


class Model(tf.Module):
    """Exact GELU, two outputs whose names are not in their order, a lookup, an operator without ONNX."""

    def __init__(self):
        dice = np.random.default_rng(0)
        self.weight = tf.Variable(dice.normal(size=(16, 4)).astype("float32"))
        self.table = tf.Variable(dice.normal(size=(50, 4)).astype("float32"))

    @tf.function(input_signature=[tf.TensorSpec([None, None, 16], tf.float32, name="x")])
    def score(self, x):
        return {"y": tf.nn.gelu(x @ self.weight, approximate=False), "b": tf.nn.relu(x[..., :4])}

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.int64, name="ids")])
    def look_up(self, ids):
        return {"rows": tf.nn.embedding_lookup(self.table, ids)}

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
    def special(self, x):
        return {"y": tf.math.digamma(x)}


model = Model()
named = {"score": model.score, "look_up": model.look_up, "special": model.special}
tf.saved_model.save(model, "several", signatures=named)
converter = tf.lite.TFLiteConverter.from_saved_model(sys.argv[1])
with open("digits.tflite", "wb") as file:  # noqa: PTH123 - a plain script
    file.write(converter.convert())
