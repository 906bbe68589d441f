"""Train a Keras CNN on the digits and write weights/digits.keras: `python recipes/models/digits_keras_train.py`.

Half a minute; the same bytes each time, on one machine: Keras' archive without the date, its HDF5 without times.
"""

import os
import tempfile
import zipfile
from pathlib import Path

os.environ["KERAS_BACKEND"] = "torch"  # noqa: TID251 - before Keras is imported
os.environ["KERAS_TORCH_DEVICE"] = "cpu"  # noqa: TID251

import keras
import numpy as np
import torch
from digits import split
from digits_keras import last
from keras import layers

ARCHIVE = Path(__file__).parents[1] / "weights" / "digits.keras"
EPOCHS = 40


def network():
    """Two convolutions with batch normalization, a pooling, two dense layers: 7 thousand parameters."""
    return keras.Sequential(
        [
            keras.Input((8, 8, 1), name="image"),
            layers.Conv2D(8, 3, padding="same", use_bias=False, name="conv_1"),
            layers.BatchNormalization(name="norm_1"),
            layers.ReLU(name="relu_1"),
            layers.Conv2D(16, 3, padding="same", use_bias=False, name="conv_2"),
            layers.BatchNormalization(name="norm_2"),
            layers.ReLU(name="relu_2"),
            layers.MaxPooling2D(name="pool"),
            layers.Flatten(name="flatten"),
            layers.Dense(24, activation="relu", name="hidden"),
            layers.Dropout(0.2, name="dropout"),
            layers.Dense(10, name="logits"),
        ],
        name="digits",
    )


def main():
    keras.utils.set_random_seed(0)
    torch.set_num_threads(1)
    (images, labels), (test_images, test_labels) = split()
    model = network()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(3e-3), loss)
    model.fit(last(images), labels, batch_size=64, epochs=EPOCHS, verbose=0)
    found = model.predict(last(test_images), verbose=0).argmax(1)
    print(f"held-out accuracy {np.mean(found == test_labels):.4f} of {len(test_labels)} images")
    save(keras.models.clone_model(model), model)


def save(plain, trained):
    """Write the network without its optimizer, and without dates."""
    plain.set_weights(trained.get_weights())
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "digits.keras"
        plain.save(raw)
        with zipfile.ZipFile(raw) as there, zipfile.ZipFile(ARCHIVE, "w") as written:
            for name in sorted(there.namelist()):
                content = there.read(name)
                if name == "metadata.json":
                    content = f'{{"keras_version": "{keras.__version__}"}}'.encode()
                written.writestr(
                    zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, compresslevel=9
                )


if __name__ == "__main__":
    main()
