"""JavaScript that packages share, run by Node: inputs are checked, outputs judged as by Python."""

import json
import shutil
import subprocess

import numpy as np
import pytest

from onnxbuild.onnxkit.loaders.golden_run import differing, float_fault
from onnxbuild.onnxkit.packages.typescript import shared_javascript

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")

SIGNATURE = {
    "inputs": [
        {"name": "ids", "dtype": "int64", "shape": ["batch", "sequence"]},
        {"name": "past", "dtype": "float32", "shape": ["batch", "sequence + 1", 2]},
        {"name": "flag", "dtype": "bool", "shape": []},
    ],
    "axes": {
        "batch": {"min": 1, "max": 4, "example": 2, "multiple_of": 1},
        "sequence": {"min": 2, "max": 8, "example": 4, "multiple_of": 2},
    },
}
IDS = "ids: [[1, 2n], [3, 4]]"
PAST = "past: {data: new Float32Array(12), dims: [2, 3, 2]}"
REFUSED = {
    f"{{{IDS}, {PAST}}}": "input 'flag' is missing: the model takes bool (Uint8Array) of shape []",
    f"{{{IDS}, {PAST}, flag: true, mask: 1}}": "input 'mask' is none of this model's: 'ids', 'past', 'flag'",
    f"{{{IDS}, {PAST}, flag: 2}}": "input 'flag' is bool and holds a number",
    f"{{ids: new Int32Array(4), {PAST}, flag: 1}}": "input 'ids' is Int32Array: the model takes int64 (BigInt64Array) of shape [batch, sequence]",
    f"{{ids: [[1, 0.5]], {PAST}, flag: 1}}": "input 'ids' is int64 and holds a number 0.5; write a bigint or a safe integer",
    f"{{ids: [1, 2], {PAST}, flag: 1}}": None,
    f"{{ids: {{data: [1], shape: [1]}}, {PAST}, flag: 1}}": "input 'ids' has 1 dimensions, [1]: the model takes int64 (BigInt64Array) of shape [batch, sequence]",
    f"{{ids: [[1, 2, 3]], {PAST}, flag: 1}}": "input 'ids' is of size 3 in dimension 1 of [1, 3]; 'sequence' takes a multiple of 2 from 2 to 8",
    f"{{{IDS}, past: {{data: new Float32Array(8), shape: [2, 2, 2]}}, flag: 1}}": "input 'past' is of size 2 in dimension 1 of [2, 2, 2]; 'sequence + 1' is 3 here",
    f"{{{IDS}, past: {{data: new Float32Array(11), shape: [2, 3, 2]}}, flag: 1}}": "input 'past' has 11 elements, and its shape [2, 3, 2] needs 12",
    f"{{ids: [[1, 2], [3]], {PAST}, flag: 1}}": "input 'ids' is an array whose rows have different lengths",
    "null": "run() takes an object of inputs by name: 'ids', 'past', 'flag'",
}  # fmt: skip
BOUNDS = [None, 0.0, 1e-5, 1e-2, 0.9, 5.0]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run a module next to those that are shared; gives what it prints, as JSON."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "package.json").write_text('{"type": "module"}')
    for name in ("tensors.js", "judge.js"):
        (folder / name).write_text(shared_javascript(name))

    def run(code, given=None):
        (folder / "main.js").write_text(code)
        (folder / "given.json").write_text(json.dumps(given))
        done = subprocess.run(
            ["node", "main.js"], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_inputs_that_the_model_does_not_take_are_refused_with_what_is_wrong(run):
    cases = ", ".join(f"() => ({each})" for each in REFUSED)
    said = run(
        'import { checkInputs } from "./tensors.js";\n'
        f"const signature = {json.dumps(SIGNATURE)};\n"
        f"const said = [{cases}].map((each) => {{\n"
        "  try { checkInputs(each(), signature); return 'taken'; }\n"
        "  catch (error) { return `${error.name} ${error.message}`; }\n"
        "});\n"
        "console.log(JSON.stringify(said));\n"
    )
    for given, found in zip(REFUSED, said, strict=True):
        expected = REFUSED[given] or found.removeprefix("InputError ")
        assert found == f"InputError {expected}", given


def test_inputs_that_it_takes_get_their_arrays_and_shapes(run):
    found = run(
        'import { checkInputs } from "./tensors.js";\n'
        f"const found = checkInputs({{{IDS}, past: new Float32Array(12), flag: true}}, {json.dumps(SIGNATURE)});\n"
        "const shown = Object.entries(found).map(([name, {data, shape}]) => [name, data.constructor.name, shape, String(data[0])]);\n"
        "console.log(JSON.stringify(shown));\n"
    )
    assert found == [
        ["ids", "BigInt64Array", [2, 2], "1"],
        ["past", "Float32Array", [2, 3, 2], "0"],
        ["flag", "Uint8Array", [], "1"],
    ]


def test_outputs_are_judged_as_the_wheels_test_does(run):
    cases = [_floats(seed) for seed in range(400)]
    faults = run(
        'import { Judge } from "./judge.js";\n'
        'import { readFileSync } from "node:fs";\n'
        "const read = (list) => Float32Array.from(list, (each) => Number(each));\n"
        'const given = JSON.parse(readFileSync("given.json"));\n'
        "const faults = given.map(({actual, expected, bounds}) => {\n"
        '  const tensor = (list) => ({dtype: "float32", shape: [list.length], data: read(list)});\n'
        '  return new Judge().fault("y", tensor(actual), tensor(expected), bounds);\n'
        "});\n"
        "console.log(JSON.stringify(faults));\n",
        [
            {"actual": _texts(actual), "expected": _texts(expected), "bounds": bounds}
            for actual, expected, bounds in cases
        ],
    )
    wanted = [float_fault(*each) for each in cases]
    assert [bool(each) for each in faults] == [bool(each) for each in wanted]
    assert {bool(each) for each in wanted} == {True, False}


def test_integers_strings_rows_and_shares_over_all_points(run):
    found = run(
        'import { Judge } from "./judge.js";\n'
        "const judge = new Judge();\n"
        "const bounds = {equal_min: 0.7, apart: 1, atol: 0.1};\n"
        "const big = (...list) => ({dtype: 'int64', shape: [list.length], data: BigInt64Array.from(list)});\n"
        "const texts = (...list) => ({dtype: 'string', shape: [list.length], data: list});\n"
        "const floats = (...list) => ({dtype: 'float32', shape: [list.length / 2, 2], data: Float32Array.from(list)});\n"
        "const said = [\n"
        "  judge.fault('ids', big(1n, 4n, 9223372036854775807n), big(1n, 3n, -9223372036854775808n), bounds),\n"
        "  judge.fault('ids', big(1n), big(1n), bounds),\n"
        "  judge.fault('label', texts('a', 'b'), texts('a', 'c'), bounds),\n"
        "  judge.fault('y', floats(1, 1, 9, 9), floats(1, 1, 1, 1), bounds, [1]),\n"
        "  judge.fault('y', floats(1, 1, 9, 9), floats(1, 1, 1, 1), bounds),\n"
        "  judge.fault('y', floats(1, 1), texts('a'), bounds),\n"
        "];\n"
        "console.log(JSON.stringify([said, judge.pooledFaults()]));\n"
    )
    assert found == [
        [
            "", "", "", "", "2 of 4 elements are too far off, by up to 8.00",
            "float32 [1, 2] in place of string [1]",
        ],
        ["label: 0.5000 of all elements are equal; at least 0.7 are wanted"],
    ]  # fmt: skip
    expected, actual = np.array([1, 3, -(2**63)]), np.array([1, 4, 2**63 - 1])
    assert differing(actual, expected, 1) == 1


def _floats(seed):
    random = np.random.default_rng(seed)
    scale, noise = random.choice([0.0, 1e-30, 1e-3, 1.0, 1e6], 2)
    expected = (random.standard_normal(seed % 7) * scale).astype(np.float32)
    actual = (expected + random.standard_normal(seed % 7) * noise).astype(np.float32)
    if seed % 5 == 0 and expected.size:
        expected[0], actual[0] = np.inf, random.choice([np.inf, -np.inf, np.nan, 1.0])
    bounds = {
        "atol": random.choice(BOUNDS),
        "rtol": random.choice(BOUNDS),
        "cosine_min": random.choice([None, -1.0, 0.5, 0.98]),
        "sqnr_db_min": random.choice([None, 0.0, 8.0, 40.0]),
    }
    return actual, expected, bounds


def _texts(array):
    return ["NaN" if np.isnan(x) else str(float(x)).replace("inf", "Infinity") for x in array]
