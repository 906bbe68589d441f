"""Components are called by name; a wrong call says what to write. Samples in files come back as they were."""

import ast
import sys
from pathlib import Path

import numpy as np
import pytest

from onnxbuild.onnxkit.loaders import decoding
from onnxbuild.onnxkit.pipelines import parts as parts_module
from onnxbuild.onnxkit.pipelines.parts import PartsError, PipelineParts, read_values, write_values

INPUTS = {
    "encoder": [{"name": "ids", "dtype": "int64", "shape": ["batch", "length"]}],
    "decoder": [
        {"name": "cross", "dtype": "float32", "shape": ["batch", 4]},
        {"name": "scale", "dtype": "float32", "shape": []},
    ],
}
CROSS, SCALE = np.ones((2, 4), np.float32), np.float32(2)


def parts() -> PipelineParts:
    """Components that return what they are given."""
    return PipelineParts(
        INPUTS, lambda name, feeds: {f"{name}.{key}": each for key, each in feeds.items()}
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda decoder: decoder(CROSS, SCALE),
        lambda decoder: decoder(CROSS, scale=SCALE),
        lambda decoder: decoder(scale=SCALE, cross=CROSS),
    ],
)
def test_arrays_are_given_by_name_or_by_position(call):
    found = call(parts().decoder)
    assert list(found) == ["decoder.cross", "decoder.scale"]
    assert (found["decoder.scale"], found["decoder.cross"].shape) == (2, (2, 4))


def test_an_array_that_is_changed_after_the_call_was_given_as_it_was():
    given = np.zeros((1, 3), np.int64)
    found = parts().encoder(given)["encoder.ids"]
    given += 1
    assert not found.any()


WRONG = {
    "another component": (
        lambda p: p.decodr(CROSS, SCALE),
        "there is no component 'decodr': encoder, decoder",
        "write `parts.decoder`",
    ),
    "another input": (
        lambda p: p.decoder(CROSS, scal=SCALE),
        "'decoder' has no input 'scal': cross, scale",
        "write `scale` in place of `scal`",
    ),
    "an input twice": (
        lambda p: p.decoder(CROSS, SCALE, cross=CROSS),
        "'decoder' is given 'cross' twice",
        "write `parts.decoder(cross, scale)`",
    ),
    "too many": (
        lambda p: p.encoder(CROSS, CROSS),
        "'encoder' takes 1 arrays; it is given 2",
        "write `parts.encoder(ids)`",
    ),
    "too few": (
        lambda p: p.decoder(CROSS),
        "'decoder' is called without 'scale'",
        "write `parts.decoder(cross, scale)`",
    ),
    "another type": (
        lambda p: p.encoder(np.zeros((1, 3), np.int32)),
        "'encoder' takes 'ids' as int64; it is given int32",
        "write `ids=... .astype(np.int64)`",
    ),
    "another rank": (
        lambda p: p.encoder(np.zeros(3, np.int64)),
        "'encoder' takes 'ids' with 2 axes, [batch, length]; it is given 1",
        "reshape it; `array[None]` adds an axis",
    ),
    "all outputs of a component": (
        lambda p: p.decoder(p.encoder(np.zeros((1, 3), np.int64)), SCALE),
        "'decoder' takes 'cross' as an array; it is given a dict",
        "convert it with `np.asarray(...)`; of what a component returns, take an output by its name",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_call_says_what_to_write(case):
    call, what, fix = WRONG[case]
    with pytest.raises(PartsError) as caught:
        call(parts())
    assert (str(caught.value), caught.value.fix) == (what, fix)


def test_samples_in_files_come_back_as_they_were(tmp_path):
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    samples = [
        "text",
        2,
        None,
        {"a": array, "b": [1.5, (True, array[0])]},
        array[0, 0],
        np.array("ä"),
    ]
    write_values(tmp_path, samples)
    found = read_values(tmp_path)
    assert found[:3] == samples[:3]
    assert (found[3]["a"] == array).all()
    assert found[3]["a"].dtype == array.dtype
    assert type(found[3]["b"][1]) is tuple
    assert (found[4], str(found[5])) == (0, "ä")


def test_a_sample_of_another_type_is_refused_by_its_name(tmp_path):
    with pytest.raises(PartsError, match=r"a sample holds a builtins\.set"):
        write_values(tmp_path, [[{1, 2}]])


@pytest.mark.parametrize("module", [parts_module, decoding])
def test_what_a_package_has_a_copy_of_imports_numpy_and_the_standard_library_alone(module):
    tree = ast.parse(Path(module.__file__).read_text())
    found = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        for name in (
            [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else [str(node.module)]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert found - sys.stdlib_module_names == {"numpy"}
