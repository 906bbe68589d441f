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
    assert _printed(code) == ["False", "compiled"]


def test_the_formats_of_a_bill_of_materials_are_checked_all_the_same(tmp_path):
    """But for IRIs; the packages for formats that it lacks are not imported, and can be later."""
    (tmp_path / "isoduration.py").write_text("parse_duration = None\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import onnxbuild.recipe.schema.validator\n"
        "print('isoduration' in sys.modules)\n"
        "import isoduration\n"
        "from jsonschema.validators import Draft7Validator\n"
        "known = Draft7Validator.FORMAT_CHECKER.checkers\n"
        "print(*({'date', 'date-time', 'idn-email', 'uri'} - set(known)))\n"
    )
    assert _printed(code) == ["False"]


def _printed(code):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout.split()
