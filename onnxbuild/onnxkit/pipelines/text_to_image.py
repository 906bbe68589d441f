"""Pictures of prompts by a text encoder, a UNet and a VAE's decoder, with DDIM; NumPy is all that it needs.

`onnxbuild init` writes it next to a recipe, which gives the numbers of the scheduler's config as `args`. It is yours to change.
"""

import numpy as np


def samples(count=2, tokens=77, words=49408, channels=4, sizes=((16, 16), (24, 16)), seed=0):
    """Yield prompts as random ids of tokens, one and an empty one, and the noise that a picture is made of, in latents."""
    random = np.random.default_rng(seed)
    for number in range(count):
        yield {
            "prompt": random.integers(0, words, (1, tokens)),
            "without": np.zeros((1, tokens), np.int64),
            "noise": random.normal(size=(1, channels, *sizes[number % len(sizes)])).astype(
                np.float32
            ),
        }


def image(
    parts,
    sample,
    steps=4,
    guidance=7.5,
    train_steps=1000,
    beta_start=0.00085,
    beta_end=0.012,
    beta_schedule="scaled_linear",
    prediction="epsilon",
    offset=1,
    ends_at_one=False,
):
    """Return a picture, shape (1, 3, height, width), values from 0 to 1.

    Source: Song et al., Denoising Diffusion Implicit Models, equation 12 without noise.
    """
    if beta_schedule == "scaled_linear":
        betas = np.linspace(beta_start**0.5, beta_end**0.5, train_steps) ** 2
    else:
        betas = np.linspace(beta_start, beta_end, train_steps)
    kept = np.cumprod(1 - betas)
    text = parts.text_encoder(np.concatenate([sample["without"], sample["prompt"]]))[
        "last_hidden_state"
    ]
    latents = sample["noise"]
    stride = train_steps // steps
    for step in np.arange(steps)[::-1] * stride + offset:
        both = np.concatenate([latents, latents])
        found = parts.unet(both, np.full(2, step, np.int64), text)["prediction"]
        found = found[:1] + guidance * (found[1:] - found[:1])
        now, noise_now = kept[step] ** 0.5, (1 - kept[step]) ** 0.5
        if prediction == "v_prediction":
            original, noise = now * latents - noise_now * found, now * found + noise_now * latents
        else:
            original, noise = (latents - noise_now * found) / now, found
        last = 1.0 if ends_at_one else kept[0]
        then = kept[step - stride] if step >= stride else last
        latents = (then**0.5 * original + (1 - then) ** 0.5 * noise).astype(np.float32)
    picture = parts.vae_decoder(latents)["image"]
    return {"image": np.clip(picture / 2 + 0.5, 0, 1)}


def psnr(outputs, expected):
    """Return the least peak signal-to-noise ratio of the pictures, in dB; 200 where they are equal."""
    errors = [
        np.mean((own["image"] - theirs["image"]) ** 2) for own, theirs in zip(outputs, expected)
    ]
    return float(-10 * np.log10(max(*errors, 1e-20)))
