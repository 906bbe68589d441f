"""docs/first-model.md, followed as a reader does: its files are written, its commands run and print what it shows."""

import re

import pytest

from tests.pages import ROOT, assert_shown, commands, environment, said

PAGE = "docs/first-model.md"
COMMANDS = 12
_FILE = re.compile(r"Save this as `([^`]+)`:\n\n```python\n(.*?)```", re.DOTALL)


@pytest.mark.slow
def test_a_reader_comes_from_a_model_to_a_release(tmp_path):
    text = (ROOT / PAGE).read_text()
    ((name, content),) = _FILE.findall(text)
    environ = environment()
    found = list(commands(PAGE))
    assert len(found) == COMMANDS
    folder = tmp_path
    for command, shown in found:
        code, printed = said(command, folder, environ)
        assert code == 0, f"$ {command}\n{printed}"
        folder = tmp_path / "first"
        if (folder / "models").is_dir() and not (folder / name).exists():
            (folder / name).write_text(content)
        assert_shown(command, shown, printed)
    recipe = (folder / "recipes/reviews.yaml").read_text()
    (yaml,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert yaml in recipe
