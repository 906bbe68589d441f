from __future__ import annotations

import subprocess
import sys


def test_a_grammar_of_iris_that_is_installed_is_not_compiled(tmp_path):
    (tmp_path / "rfc3987_syntax.py").write_text("print('compiled')\nis_valid_syntax = None\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import onnxbuild.recipe.schema.validator\n"
        "print('rfc3987_syntax' in sys.modules)\n"
        "import rfc3987_syntax\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["False", "compiled"]
