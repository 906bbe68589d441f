"""Write weights/digits_saved_model of weights/digits.keras, in an environment with TensorFlow.

`PYTHON recipes/models/digits_saved_model.py`, PYTHON that of an environment of tensorflow.txt
(`onnxbuild doctor` lists where they are). digits_keras_train.py trains the network.
"""

import os
from pathlib import Path

os.environ["KERAS_BACKEND"] = "tensorflow"  # noqa: TID251 - before Keras is imported

import keras

WEIGHTS = Path(__file__).parents[1] / "weights"


def main():
    model = keras.saving.load_model(WEIGHTS / "digits.keras", compile=False)
    model.export(str(WEIGHTS / "digits_saved_model"), verbose=False)


if __name__ == "__main__":
    main()
