"""docs/cookbook: each page followed as a reader does, from its files to a release."""

import re

import pytest

from tests.pages import ROOT, assert_shown, commands, environment, said

PAGES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/cookbook/*.md"))
_FILE = re.compile(r"Save this as `([^`]+)`:\n\n```\w+\n(.*?)```", re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_page_leads_from_files_to_a_release(tmp_path, page):
    files = _FILE.findall((ROOT / page).read_text())
    assert len(files) == 2
    start, *others = commands(page)
    assert said(start[0], tmp_path, environment())[0] == 0
    (folder,) = tmp_path.iterdir()
    for name, text in files:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    for command, shown in others:
        code, printed = said(command, folder, environment())
        assert code == 0, f"$ {command}\n{printed}"
        assert_shown(command, shown, printed)
    assert any("onnxbuild release" in command for command, _ in others)
