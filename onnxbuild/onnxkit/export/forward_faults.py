"""Find by trying how an input on which forward fails must be declared: its dtype, or its values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.export.torch_module import call_forward
from onnxbuild.onnxkit.frameworks import np, torch

_NO_PADDING = "no padding token is defined"  # transformers, of decoders that classify rows
_BY_VALUES = (
    "forward runs on zeros of these shapes, so its values are what it refuses: bound them in `dummy_inputs` by `low`, "
    "`high`, `fill` or `mask`"
)
_DTYPES = ("int64", "float32", "bool", "int32")
"""Types to try in place of the declared one, the likeliest first."""


def explain_failure(
    error: StepError,
    module: torch.nn.Module,
    feeds: Feeds,
    inputs: Sequence[DummyInput] = (),
    *,
    otherwise: str = "",
) -> StepError:
    """The error that forward raised, with the declaration on which forward runs, if there is one.

    All zeros stand for the values, so that ids are in range of any table. What runs on zeros of its
    own dtype fails by its values, and by its dtype what runs on zeros of another.

    Args:
        error: Error that `run_module` raised.
        module: Module whose forward failed.
        feeds: Feeds that it failed on.
        inputs: Their dtypes, where numpy lacks one.
        otherwise: The fix where none is found by trying; empty: the inputs as they were given.
    """
    if _NO_PADDING in error.what:
        fix = "set `pad_token_id` in the model's config (config.json) to the id that the tokenizer pads with"
        return StepError(error.what, where=error.where, fix=f"{fix}, or fix the batch at 1")
    tried = _Tried(module, inputs)
    if tried.runs(feeds):
        return error  # it is about what forward returns
    if tried.runs(_zeros(feeds)):
        fix = _values_fix(tried, feeds) or _BY_VALUES
    elif name := tried.runs_with_ones(feeds):
        fix = (
            f"forward runs where '{name}' is 1 everywhere: write `fill: 1` or `mask: right` for it in `dummy_inputs`, "
            "or `reference: {samples: ...}`"
        )
    else:
        fix = next((_written(new) for new in _other_dtypes(feeds) if tried.takes(feeds, new)), "")
    fix = fix or otherwise or _given(feeds, inputs)
    return StepError(error.what, where=error.where, fix=fix)


def _given(feeds: Feeds, inputs: Sequence[DummyInput]) -> str:
    dtypes: dict[str, object] = {name: array.dtype for name, array in feeds.items()}
    dtypes |= {each.name: each.dtype for each in inputs}
    shown = ", ".join(f"{name} {dtypes[name]} {[*array.shape]}" for name, array in feeds.items())
    return f"forward was given {shown}: if it takes another shape, write that in `dummy_inputs`"


def _other_dtypes(feeds: Feeds) -> Iterator[dict[str, str]]:
    """Input -> dtype: one input at a time, then all that have one dtype together."""
    for dtype in _DTYPES:
        for name, array in feeds.items():
            if str(array.dtype) != dtype:
                yield {name: dtype}
    for dtype in _DTYPES:
        for found in dict.fromkeys(str(array.dtype) for array in feeds.values()):
            if found != dtype:
                yield {name: dtype for name, each in feeds.items() if str(each.dtype) == found}


def _written(dtypes: Mapping[str, str]) -> str:
    names = " and ".join(f"'{name}'" for name in dtypes)
    return f"write `dtype: {next(iter(dtypes.values()))}` for {names} in `dummy_inputs`"


def _values_fix(tried: _Tried, feeds: Feeds) -> str:
    """Return the fix for the input whose values forward refuses (for ids: the table's size); empty if none."""
    zeros = _zeros(feeds)
    guilty = [name for name in feeds if tried.runs(feeds | {name: zeros[name]})]
    if len(guilty) != 1:
        return ""
    name = guilty[0]
    if feeds[name].dtype.kind not in "iu":
        return f"bound the values of '{name}' in `dummy_inputs`: `low`, `high`, or `fill`"
    tables = {
        each.num_embeddings
        for each in tried.module.modules()
        if isinstance(each, torch.nn.Embedding)
    }
    for rows in sorted(tables, reverse=True):
        if tried.runs(feeds | {name: np.full_like(zeros[name], rows - 1)}):
            return f"write `high: {rows}` for '{name}' in `dummy_inputs`"
    return f"bound the values of '{name}' in `dummy_inputs`: `low` and `high`"


def _zeros(feeds: Feeds) -> Feeds:
    return {name: np.zeros_like(array) for name, array in feeds.items()}


@dataclass(frozen=True, slots=True)
class _Tried:
    """A module, tried on one set of inputs after another."""

    module: torch.nn.Module
    inputs: Sequence[DummyInput]

    def runs(self, feeds: Feeds, inputs: Sequence[DummyInput] | None = None) -> bool:
        """Run forward; return whether it could."""
        try:
            call_forward(self.module, feeds, self.inputs if inputs is None else inputs)
        except StepError:
            return False
        return True

    def runs_with_ones(self, feeds: Feeds) -> str:
        """Return the first input of integers or bools that forward takes if it is 1 everywhere; empty if none is."""
        names = (name for name, each in feeds.items() if each.dtype.kind in "biu")
        return next((n for n in names if self.runs(feeds | {n: np.ones_like(feeds[n])})), "")

    def takes(self, feeds: Feeds, dtypes: Mapping[str, str]) -> bool:
        """Run forward on zeros, these inputs with these dtypes; return whether it takes them."""
        zeros = _zeros(feeds)
        others = [each for each in self.inputs if each.name not in dtypes]
        changed: Feeds = {name: zeros[name].astype(to) for name, to in dtypes.items()}
        return self.runs(zeros | changed, others)
