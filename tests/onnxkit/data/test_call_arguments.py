"""Arguments that a callable does not take, and what to write."""

from __future__ import annotations

import functools

import pytest

from onnxbuild.onnxkit.data.user_code import misfit


def load(width, *, seed=0, depth=1):
    """What a recipe names."""


def score(outputs, labels, top=1):
    """A metric."""


@pytest.mark.parametrize(
    ("function", "args", "given", "what", "fix"),
    [
        (load, {"width": 1, "sed": 2}, (), "has no parameter 'sed'",
         "write `seed` in place of `sed` in its `args`"),
        (lambda a, b: None, {}, (), "needs 'a' and 'b', which its `args` don't give",
         "write `args: {a: VALUE, b: VALUE}` where the recipe names it, or give 'a' and 'b' defaults"),
        (functools.partial(load, 1), {"sedd": 1}, (), "has no parameter 'sedd'",
         "write `seed` in place of `sedd` in its `args`"),
    ],
)  # fmt: skip
def test_the_difference_and_what_to_write(function, args, given, what, fix):
    found = misfit(function, args, given)
    assert found is not None
    assert (found.what, found.fix) == (what, fix)


@pytest.mark.parametrize(
    ("function", "args", "given"),
    [(load, {"width": 1, "depth": 2}, ()), (score, {"top": 2}, (1, 2)), (iter, {"x": 1}, ())],
)
def test_arguments_that_fit_and_callables_that_do_not_say(function, args, given):
    assert misfit(function, args, given) is None
