"""A multilayer perceptron of JAX for the digits, trained by digits_jax_train.py."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

WEIGHTS = Path(__file__).parents[1] / "weights" / "digits_jax.npz"


def apply(params, image):
    """Logits, (n, 10), of images, (n, 1, 8, 8)."""
    pixels = image.reshape(image.shape[0], -1)
    hidden = jax.nn.gelu(pixels @ params["w1"] + params["b1"], approximate=False)
    return {"logits": hidden @ params["w2"] + params["b2"]}


def build():
    """The function, and its parameters."""
    with np.load(WEIGHTS) as found:
        return apply, {name: jnp.asarray(found[name]) for name in found}
