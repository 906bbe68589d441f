"""What a step may not read, besides the files of the invalidation matrix; exit 5."""

import json

import pytest


@pytest.mark.slow
def test_a_refused_file_is_named_even_if_the_library_that_read_it_does_not(project):
    project.write("models/tokens-a.json", "{}")
    reading = (
        "    import pathlib\n    from tokenizers import Tokenizer\n"
        "    here, kind = pathlib.Path(__file__).parent, 'a'\n"
        "    Tokenizer.from_file(str(here / f'tokens-{kind}.json'))"
    )
    project.edit("models/tiny.py", "    torch.manual_seed(0)", reading)
    seen = project.run("--only", "export")
    assert seen.code == 5
    assert "'models/tokens-a.json' is read but not declared (read at models/tiny.py:" in seen.out


@pytest.mark.slow
def test_the_metadata_that_an_editable_installation_leaves_may_be_read(project):
    project.write("mine.egg-info/PKG-INFO", "Name: mine\nVersion: 1\n")
    project.write("mine.egg-info/entry_points.txt", "[plug]\nin = tiny:load\n")
    asks = "    from importlib.metadata import entry_points; entry_points(group='plug')"
    project.edit("models/tiny.py", "    torch.manual_seed(0)", asks)
    assert project.run("--only", "export").code == 0


@pytest.mark.slow
def test_a_refusal_that_the_code_swallows_is_an_error_all_the_same(project):
    project.write("models/config.json", json.dumps({"width": 4}))
    swallowing = (
        "    try:\n"
        "        import json, pathlib\n"
        "        here = pathlib.Path(__file__).parent\n"
        "        width = json.loads((here / 'config.json').read_text())['width']\n"
        "    except OSError:\n"
        "        width = 8"
    )
    project.edit("models/tiny.py", "    torch.manual_seed(0)", swallowing)
    seen = project.run("--only", "export")
    assert seen.code == 5
    assert "'models/config.json' is read but not declared (read at models/tiny.py:" in seen.out


@pytest.mark.slow
def test_the_network_and_files_elsewhere_are_out_of_reach(project, tmp_path):
    connect = "import socket; socket.create_connection(('127.0.0.1', 9), 1)"
    project.edit("models/tiny.py", "    torch.manual_seed(0)", f"    {connect}")
    seen = project.run("--only", "export")
    assert seen.code == 5
    assert "the step tried to reach the network (at models/tiny.py:" in seen.out

    elsewhere = tmp_path / "elsewhere.txt"
    elsewhere.write_text("x")
    project.edit("models/tiny.py", connect, f"open('{elsewhere}').read()")
    seen = project.run("--only", "export")
    assert seen.code == 5
    assert f"'{elsewhere}' is read but not declared" in seen.out

    project.edit("models/tiny.py", f"open('{elsewhere}').read()", f"open('{elsewhere}', 'w')")
    seen = project.run("--only", "export")
    assert seen.code != 0
    assert elsewhere.read_text() == "x"


@pytest.mark.slow
def test_all_undeclared_files_are_named_by_one_run_and_the_line_is_right(project):
    for name in ("a.bin", "b.bin", "c.bin"):
        project.write(f"data/{name}", "x")
    project.write("models/extra.txt", "x")
    reading = (
        "    import pathlib\n"
        "    root = pathlib.Path(__file__).parent.parent\n"
        "    for part in 'abc':\n"
        "        (root / 'data' / f'{part}.bin').read_bytes()\n"
        "    (root / 'models/extra.txt').read_text()\n"
    )
    project.edit("models/tiny.py", "    torch.manual_seed(0)\n", reading)
    seen = project.run("--only", "export")
    assert seen.code == 5
    assert (
        "'data/a.bin' is read but not declared (read at models/tiny.py:9); the same code names "
        "'models/extra.txt', not declared either"
    ) in seen.out
    assert "or with whole folders: `files: [data/, models/extra.txt]`" in seen.out
    project.edit("tiny.yaml", "tiny.py:load}", "tiny.py:load, files: [data/, models/extra.txt]}")
    assert project.run("--only", "export").code == 0
