"""Translate words of other tools: dtypes, modes, providers, keys."""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from onnxbuild.catalog import Composition, composition
from onnxbuild.providers import all_providers

_PREFIXES = ("torch.", "numpy.", "np.", "tf.", "jnp.", "tensor(")

_DTYPES: Mapping[str, str] = {
    "float32": "float fp32 f32 single float_ floattensor float32tensor",
    "float16": "half fp16 f16 halftensor",
    "float64": "double fp64 f64 doubletensor",
    "bfloat16": "bf16 bfloat",
    "int64": "int long integer i64 int_ longlong longtensor int64_t uint64 uint32",
    "int32": "i32 intc inttensor int32_t uint16 word",
    "int16": "short i16 int16_t shorttensor",
    "int8": "char i8 int8_t chartensor",
    "uint8": "byte ubyte u8 uint8_t bytetensor",
    "bool": "boolean bool_ booltensor logical",
    "string": "str text object",
}
"""`int` is Python's and numpy's, of 64 bits, as ids are; torch calls its int32 so."""

_LEVELS: Mapping[str, str] = {
    "all": "o3 ort_enable_all max full",
    "extended": "o2 o3 all ort_enable_extended ort_enable_all max full",
    "basic": "o1 ort_enable_basic",
    "disable": "o0 off ort_disable_all",
}
"""Levels of graph optimization; those that have no `all` end with `extended`."""

_INSTEAD: Mapping[str, str] = {"bfloat16": "float32", "string": "int64"}
"""Dtypes that a recipe does not take -> the dtype that each is computed or encoded in."""

_KEYS: Mapping[str, str] = {
    "dummy_inputs": "inputs example_inputs sample_inputs input_shapes",
    "dynamic_axes": "dynamic_shapes axes",
    "example": "opt optimum typical default",
    "fill": "value constant const",
    "high": "max maximum to",
    "low": "min minimum from",
    "atol": "tolerance tol abs_tol absolute abs",
    "rtol": "rel_tol relative rel",
    "min_samples": "iterations iters runs repeats repeat n",
    "points": "shapes sizes batch_sizes",
    "max": "maximum upper stop",
    "min": "minimum lower start",
    "entrypoint": "callable function path module python file loader",
    "opset": "opset_version target_opset",
    "outputs": "output_names",
    "providers": "execution_providers eps devices targets",
    "shape": "size sizes dims dimensions",
    "state": "cache caches kv_cache past past_key_values",
    "quantization": "quantize quant precision variants",
}
"""Keys of no feature; the section of a feature, or its form of `model`, has `words` of its own."""


def key_meant(found: str, known: Collection[str]) -> str:
    """The one of the keys `known` that other tools call so; empty for words not known here."""
    word, now = found.strip().lower(), composition()
    own = {each.name: each.words for each in now.sections.values()}
    own |= {name: source.words for name, source in now.model_sources.items()}
    tables = {**_KEYS, **own}
    return next(
        (key for key, words in tables.items() if word in words.split() and key in known), ""
    )


@lru_cache(maxsize=2)
def _meanings(now: Composition) -> Mapping[str, tuple[str, ...]]:
    """Word -> all that it means, in the order of the tables."""
    found: dict[str, list[str]] = {}
    modes = {name: mode.words for name, mode in now.modes.items()}
    tables: list[tuple[str, Sequence[str]]] = [
        (name, words.split())
        for table in (_DTYPES, _LEVELS, modes)
        for name, words in table.items()
    ]
    tables += [(each.name, each.aliases) for each in all_providers()]
    for name, words in tables:
        for word in words:
            found.setdefault(word, []).append(name)
    return {word: tuple(names) for word, names in found.items()}


def meaning(found: str, known: Collection[str]) -> str:
    """The one of `known` that a word from elsewhere stands for; empty for words not known here."""
    word = found.strip().lower().rstrip(")")
    for prefix in _PREFIXES:
        word = word.removeprefix(prefix)
    meanings = (*_meanings(composition()).get(word, ()), word)
    for name in (*meanings, *(_INSTEAD.get(each, "") for each in meanings)):
        if name in known:
            return name
    return ""
