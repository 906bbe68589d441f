from __future__ import annotations

from onnxbuild.adapters.sandbox.call_site import own_line


def test_a_line_of_the_project_is_reported_relative_to_it():
    assert own_line("/p/models/a.py", 7, "/p") == "models/a.py:7"


def test_lines_of_installed_and_of_generated_code_are_not_the_projects(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # a step's scratch folder may be in the project
    assert own_line("/p/.venv/lib/site-packages/a.py", 7, "/p") == ""
    assert own_line("/q/a.py", 7, "/p") == ""
    assert own_line("<frozen importlib._bootstrap>", 7, str(tmp_path)) == ""
