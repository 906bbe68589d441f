"""The words of a recipe that no options dataclass explains: names, help, the user's callables."""

from collections.abc import Mapping, Sequence

from onnxbuild.catalog import SECTIONS
from onnxbuild.core.recipe import FROM, INPUT_NAME

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
SYMBOL = r"^[A-Za-z_][A-Za-z0-9_]*$"
_TERM = r"(?:[1-9][0-9]*|[A-Za-z_][A-Za-z0-9_]*)"
DIMENSION = rf"^(?:{_TERM} *\+ *)*[A-Za-z_][A-Za-z0-9_]*(?: *\+ *{_TERM})*$"
"""A symbol, or a sum of symbols and numbers."""
INPUT = INPUT_NAME
CONNECTION = r"^[A-Za-z_][A-Za-z0-9_]*\.\S+$"
COMPONENTS = "components"
OF_THE_FILE = ("version", "name", "description", "extends", "vars", "matrix", COMPONENTS)
"""Keys that a file has once, whatever features there are."""


def of_the_whole() -> tuple[str, ...]:
    """Return the keys that no component has: the file's, and sections about all components."""
    return (*OF_THE_FILE, *(name for name, each in SECTIONS.items() if each.of_the_whole))


def built_in(path: Sequence[object]) -> tuple[str, ...]:
    """Return the names of onnxbuild's own callables that may stand at a place of a recipe."""
    section = SECTIONS.get(str(path[0]))
    return () if section is None else section.built_in.get(str(path[-1]), ())


PATTERN_WORDS: Mapping[str, str] = {
    NAME: "at most 100 letters, digits, '.', '_' and '-', starting with a letter or a digit",
    DIMENSION: "letters, digits and '_', or a sum of such: `past + sequence`",
    SYMBOL: "letters, digits and '_', not starting with a digit",
    INPUT: "letters, digits and '_', not starting with a digit, with single '.' and '/' between them",
    CONNECTION: "the form COMPONENT.OUTPUT",
    r"^\w+$": "letters, digits and '_'",
}

AXIS_EXAMPLE = "{min: 1, max: 64, example: 2}"
"""An axis, in fixes."""

PARTS: Mapping[str, str] = {
    "version": "format of the recipe; 1",
    "name": "name of the build, and of its folder below artifacts/out/",
    "description": "a sentence for people; enters no key",
    "extends": "path of a base recipe, relative to this file; mappings are merged, the rest replaced",
    "vars": "values that templates use: name -> value; a var may use those above it",
    "matrix": "name -> list of values; one build for each combination, named NAME@name=value",
    "components": "models that belong together: name -> its `model` and all else that a recipe has, merged over the keys "
    "next to `components`; each is built as NAME@COMPONENT",
    "model": "callable that returns the torch.nn.Module (or what `frontend` takes), or a mapping with its arguments and files, "
    "or a file: `{onnx: model.onnx}`",
    "frontend": "how the model becomes ONNX, and what the variants are compared with; `model: {onnx: FILE}` and other files imply it",
    "dummy_inputs": "inputs of the model's forward, in its order: name -> dtype, shape, values",
    "state": "what one call gives and the next one takes, such as a cache of keys and values: forward's parameter, which takes "
    "a list of tensors or a Cache of transformers' -> the tensors in it; each is an input and an output of the graph",
    "outputs": "keys of what forward returns, dotted where they are nested: any of them, in any order; "
    "where it returns a tensor or a tuple, a name for each by position. Left out: all keys, or output_0, "
    "output_1, ...",
    "dynamic_axes": "each symbol used in a shape -> the range of its sizes",
    "opset": "version of ONNX's operator set",
    "quantization": "variant name -> mode, or a mapping of mode and options; or a single mode",
    "formats": "formats to build: a list, or format -> its options; variants belong to `onnx`",
    "format.tolerances": "tolerances of this format; before those of fp32",
    "providers": "where models are validated and measured, in order of preference: providers of ONNX "
    "Runtime with their options, chains of them, plug-ins",
    "target.provider": "which provider, where the name is your own",
    "target.chain": "providers in order of preference; each takes what those before it leave",
    "target.library": "a plug-in's shared library, relative to this file",
    "target.environment": "another installation of ONNX Runtime than onnxbuild's own; the target's sessions run there",
    "environment.requirements": "a list of pinned requirements (NAME==VERSION), relative to this file: a "
    "virtual environment is made from it, once",
    "environment.python": "the `python` of an environment that is there, relative to this file",
    "target.require": "true: the run fails where a provider of it does not load; false: the target is "
    "skipped; left out: it must load if it is `cpu` or the only one",
    "target.max_cpu_nodes": "most nodes of a model that may be left to the CPU",
    "target.min_coverage": "least share of a model's nodes that must run on it, 0 to 1",
    "entrypoint": "FILE.py:CALLABLE, relative to this file, or package.module:CALLABLE",
    "args": "keyword arguments of the callable",
    "files": "data files it reads: paths and globs relative to this file; a folder stands for all "
    "below it",
    "env": "environment variables it sees: a list of names to pass on, or name -> value",
    "dtype": "type of the elements; PyTorch has no tensors of `string`",
    "shape": "sizes, outermost first: integers, symbols of dynamic_axes, or sums of both "
    "(`past + sequence`)",
    FROM: "the output of another component that this input is, COMPONENT.OUTPUT; checked once both models are there",
    "low": "least random value",
    "high": "upper bound of the random values; for integers one past the greatest",
    "fill": "a constant instead of random values, or a list of constants, one for each row of the first axis, "
    "repeated",
    "mask": "ones and zeros for rows of different lengths along the last axis, padded right or left; the "
    "first row is full, and inputs of one shape have the same lengths",
    "missing": "for models that take missing values: the share of random values that are NaN; your own data may "
    "hold NaN then",
    "arange": "integers that count up along the last axis, for positions: the first is this size, an axis, a sum or a number",
    "state.parameter": "forward's parameter, where the name is your own: two states of different shapes may be one parameter",
    "state.each": "what the tensors differ in -> how often, or a list: `{layer: 4, part: [key, value]}`, the last one fastest; of a Cache the "
    "parts are key, value, cross_key, cross_value, conv and recurrent",
    "state.input": "pattern of the inputs' names; left out: the parameter and all of `each`, `past.{layer}.{part}`",
    "state.output": "pattern of the outputs' names; left out: `present.{layer}.{part}`",
    "state.update": "what a call does to it: adds elements along one axis (grows; in_place: one buffer may be bound as state and as new "
    "state), gives others of the same shape (replaced), or nothing (constant), and then it is no output",
    "state.by": "the axis of the new elements of a state that grows, where no sum of axes says it (`past + sequence`)",
    "state.from": "pattern of the outputs of another component that a constant state is, `encoder.{part}.{layer}`",
    "min": "least size; 0 where tensors may be empty, such as a cache",
    "multiple_of": "all sizes are multiples of this: 32 for a network that halves its input five times",
    "max": "greatest size",
    "example": "size the model is exported with; from min to max",
    "mode": "how weights and activations are stored",
    "variant.tolerances": "tolerances of this variant; before those of its precision",
}
"""Key -> one line for the schema, the reference page and the editor."""
