"""How many random examples a test tries."""

import os

_LEAST = 10


def examples(most: int) -> int:
    """Of `most`, the share that ONNXBUILD_EXAMPLES says; all without it.

    `make test` tries some, and `make test-all` runs all tests that are marked `sampled` again with all.
    """
    return max(_LEAST, round(most * float(os.environ.get("ONNXBUILD_EXAMPLES", "1"))))
