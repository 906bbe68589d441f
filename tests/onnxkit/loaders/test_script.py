"""load.py as bundles ship it: one file that stands alone."""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest

from onnxbuild.core.params import to_json
from onnxbuild.onnxkit.loaders import checked_inputs, golden_run
from onnxbuild.onnxkit.loaders.script import load_script, run_script
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.onnxkit.web.static import serve

SCRIPTS = [("onnxruntime", False), ("onnxruntime", True), ("torch", False)]


def loader(folder, runtime="torch", **manifest):
    """The module in a bundle's folder."""
    (folder / "load.py").write_text(load_script(runtime))
    (folder / "manifest.json").write_text(json.dumps(manifest))
    spec = importlib.util.spec_from_file_location("shipped_load", folder / "load.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("runtime", "operators"), SCRIPTS)
def test_it_imports_nothing_but_python_and_its_runtime(runtime, operators):
    nodes = list(ast.walk(ast.parse(load_script(runtime, operators=operators))))
    found = {each.module for each in nodes if isinstance(each, ast.ImportFrom)}
    found |= {name.name for each in nodes if isinstance(each, ast.Import) for name in each.names}
    others = {name.partition(".")[0] for name in found} - sys.stdlib_module_names
    assert others <= {runtime, "numpy"}
    assert runtime in others


@pytest.mark.parametrize(("runtime", "operators"), SCRIPTS)
def test_every_name_in_it_is_defined_once_and_reported_by_its_own_docstring(runtime, operators):
    script = load_script(runtime, operators=operators)
    tree = ast.parse(script)
    kinds = (ast.FunctionDef, ast.ClassDef)
    names = [each.name for each in tree.body if isinstance(each, kinds)]
    assert len(names) == len(set(names))
    assert {"load", "main", "check_machine", "parse_cpuinfo"} <= set(names)
    assert "from load import load" in ast.get_docstring(tree)
    assert script.count("if __name__ ==") == 1
    assert script.count("with_operators(") == (2 if operators else 0)


@pytest.mark.parametrize(("runtime", "operators"), SCRIPTS)
def test_it_runs_on_python_3_9(runtime, operators):
    assert_old_python_runs_it(load_script(runtime, operators=operators))


@pytest.mark.parametrize("module", [checked_inputs, golden_run, serve])
def test_other_shipped_scripts_run_on_python_3_9(module):
    assert_old_python_runs_it(Path(module.__file__).read_text())


def test_run_py_imports_its_neighbour_and_runs_on_python_3_9():
    script = run_script()
    assert "onnxbuild.onnxkit" not in script
    nodes = list(ast.walk(ast.parse(script)))
    found = {each.module for each in nodes if isinstance(each, ast.ImportFrom)}
    found |= {name.name for each in nodes if isinstance(each, ast.Import) for name in each.names}
    others = {name.partition(".")[0] for name in found} - sys.stdlib_module_names
    assert others == {"load", "numpy", "onnxruntime", "tokenizers", "jinja2"}
    (named,) = (each for each in nodes if getattr(each, "module", "") == "load")
    defined = {
        each.name if isinstance(each, (ast.FunctionDef, ast.ClassDef)) else each.targets[0].id
        for each in ast.parse(load_script("onnxruntime")).body
        if isinstance(each, (ast.FunctionDef, ast.ClassDef))
        or (isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name))
    }
    assert {each.name for each in named.names} <= defined
    assert_old_python_runs_it(script)


def assert_old_python_runs_it(script):
    """A wheel requires Python 3.9: later syntax, `zip(strict=...)` and `isinstance(x, A | B)` came after it."""
    calls = [
        each
        for each in ast.walk(ast.parse(script, feature_version=(3, 9)))
        if isinstance(each, ast.Call)
    ]
    assert "strict" not in {keyword.arg for each in calls for keyword in each.keywords}
    checks = [
        each for each in calls if getattr(each.func, "id", "") in {"isinstance", "issubclass"}
    ]
    assert not [each for each in checks if isinstance(each.args[1], ast.BinOp)]


def test_a_program_with_another_number_of_outputs_than_the_manifest_is_an_error(tmp_path):
    module = loader(tmp_path)
    manifest = {"outputs": [{"name": "a"}, {"name": "b"}], "inputs": []}
    assert module._named((1, None, 2), manifest) == {"a": 1, "b": 2}
    with pytest.raises(module.LoadError, match="gives 3 outputs, not a, b"):
        module._named((1, 2, 3), manifest)


def made_for(flags, machine=None):
    import platform

    return {
        "file": "model.pt2",
        "made_for": {"machine": machine or platform.machine(), "cpu": "A CPU", "flags": flags},
        "versions": {"torch": "1.0"},
    }


def test_another_machine_is_refused_and_another_runtime_is_warned_of(tmp_path):
    manifest = made_for({"avx1024": True})
    module = loader(tmp_path, **manifest)
    with pytest.raises(
        module.OtherMachineError, match="this CPU is without avx1024: take another"
    ):
        module.check_machine(manifest, "torch", "1.0")
    with pytest.raises(module.LoadError, match="was made for vax; this is "):
        module.check_machine(made_for({}, "vax"), "torch", "1.0")
    fits = made_for({"avx1024": False})
    with pytest.warns(UserWarning, match=r"made by torch 1\.0, this is 2\.0"):
        module.check_machine(fits, "torch", "2.0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module.check_machine(fits, "torch", "1.0")
        module.check_machine({**fits, "made_for": None}, "torch", "2.0")


def test_what_is_made_of_a_variant_names_it(tmp_path):
    module = loader(tmp_path)
    with pytest.raises(
        module.OtherMachineError, match="open the portable model of variant 'int8'"
    ):
        module.check_machine({**made_for({}, "vax"), "variant": "int8"}, "torch", "1.0")


def test_a_load_error_ends_the_script_with_a_sentence(tmp_path):
    module = loader(tmp_path, "onnxruntime", made_for=None, targets={"cpu": {}}, providers=[])
    with pytest.raises(module.LoadError, match="there is no target 'npu'; there are "):
        module.load("npu")


def runtime_with(*loads):
    """An onnxruntime in which these providers load: as the real one, it takes CUDA and the CPU where TensorRT is lacking."""

    class InferenceSession:
        def __init__(self, _path, _options, providers, enable_fallback):
            names = [name for name, _ in providers]
            if TENSORRT in names and TENSORRT not in loads:
                if not enable_fallback:
                    raise RuntimeError("Please install TensorRT libraries")
                providers = [(name, {}) for name in (CUDA, CPU)]
            self.providers = [each for each in providers if each[0] in loads]

        def get_providers(self):
            return [name for name, _ in self.providers]

    return SimpleNamespace(
        __version__="1.0",
        get_available_providers=lambda: [TENSORRT, CUDA, CPU],
        InferenceSession=InferenceSession,
        SessionOptions=SimpleNamespace,
        GraphOptimizationLevel=SimpleNamespace(ORT_ENABLE_ALL=99),
        ExecutionMode=SimpleNamespace(ORT_PARALLEL=1, ORT_SEQUENTIAL=0),
    )


TENSORRT, CUDA, CPU = (f"{name}ExecutionProvider" for name in ("Tensorrt", "CUDA", "CPU"))


@pytest.mark.parametrize(
    ("chain", "loads", "opened"),
    [
        ((CPU, CUDA, TENSORRT), (CUDA, CPU), [CPU]),
        ((CUDA, TENSORRT), (CUDA, CPU), [CUDA]),
        ((CUDA, TENSORRT, CPU), (CUDA, CPU, TENSORRT), [CUDA, TENSORRT, CPU]),
    ],
)
def test_the_first_provider_that_loads_is_first_with_its_own_options(
    tmp_path, monkeypatch, chain, loads, opened
):
    session = to_json(SessionSettings())
    providers = [{"name": name, "options": {"of": name}, "target": "all"} for name in chain]
    targets = {"all": {"chain": providers, "session": session}}
    manifest = {"made_for": None, "targets": targets, "providers": providers, "file": "model.onnx"}
    module = loader(tmp_path, "onnxruntime", **manifest)
    monkeypatch.setitem(sys.modules, "onnxruntime", runtime_with(*loads))
    assert module.load().providers == [(name, {"of": name}) for name in opened]
