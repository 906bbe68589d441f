"""Write weights/digits.tflite of weights/digits_saved_model, in an environment with TensorFlow.

`PYTHON recipes/models/digits_tflite.py`, PYTHON that of an environment of tensorflow.txt
(`onnxbuild doctor` lists where they are).
"""

from pathlib import Path

import tensorflow as tf

WEIGHTS = Path(__file__).parents[1] / "weights"


def main():
    converter = tf.lite.TFLiteConverter.from_saved_model(str(WEIGHTS / "digits_saved_model"))
    (WEIGHTS / "digits.tflite").write_bytes(converter.convert())


if __name__ == "__main__":
    main()
