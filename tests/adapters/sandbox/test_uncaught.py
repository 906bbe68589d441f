"""An exception that the user's code did not catch, as one sentence."""

import importlib.util

import pytest

from onnxbuild.adapters.sandbox.uncaught import sentence_of


def test_an_import_within_a_package_has_the_module_to_write_as_its_fix(tmp_path):
    file = tmp_path / "models/pkg/net.py"
    file.parent.mkdir(parents=True)
    file.write_text("import math\nfrom .layers import Layer\n")
    spec = importlib.util.spec_from_file_location("net", file)
    with pytest.raises(ImportError) as caught:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    found = sentence_of(caught.value, "m:export", str(tmp_path), lambda path: path)
    assert found.where == "models/pkg/net.py:2"
    assert found.fix.startswith(
        "write `models.pkg.net:CALLABLE` (a file by itself is in no package)"
    )
