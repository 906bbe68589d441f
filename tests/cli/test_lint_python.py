"""`lint` parses the Python that recipes name, and imports none of it."""

REPORTED = """\
error: models/tiny.py:2:15: '(' was never closed
    return len(width
              ^
  fix: mend line 2 of models/tiny.py
"""


def test_a_syntax_error_has_its_line_and_a_caret(cheap):
    cheap.write("models/tiny.py", "def load(width=8):\n    return len(width\n")
    seen = cheap("lint", "tiny.yaml", env={"COLUMNS": "80"})
    assert (seen.code, seen.out, seen.err) == (2, "", REPORTED)


def test_all_files_are_looked_at_and_all_faults_reported(cheap):
    cheap.write("models/tiny.py", "def load(width=8):\n\treturn = 3\n")
    cheap.write("models/data.py", "def samples():\n  return 3\n return 4\n")
    cheap.write(
        "tiny.yaml",
        (cheap.folder / "tiny.yaml").read_text()
        + "evaluate: {data: data:samples, metric: models/tiny.py:load}\n",
    )
    cheap.edit("tiny.yaml", "data: data:samples", "data: models/data.py:samples")
    seen = cheap("lint", "tiny.yaml")
    assert seen.code == 2
    assert seen.err.splitlines()[:2] == [
        "error: models/data.py:3:10: unindent does not match any outer indentation level",
        "    return 4",
    ]
    assert "models/tiny.py:2:9: invalid syntax\n    return = 3\n           ^\n" in seen.err


def test_a_module_of_the_project_is_parsed_too(cheap):
    cheap.edit("tiny.yaml", "models/tiny.py:load", "models.tiny:load")
    cheap.write("models/__init__.py", "")
    assert cheap("lint", "tiny.yaml").code == 0
    cheap.write("models/tiny.py", "def load(:\n")
    seen = cheap("lint", "tiny.yaml")
    assert (seen.code, seen.err.splitlines()[0]) == (
        2,
        "error: models/tiny.py:1:10: invalid syntax",
    )
