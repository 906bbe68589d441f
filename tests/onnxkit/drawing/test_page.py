"""The shell of pages: self-contained, escaped, the same bytes again."""

import pytest
from jinja2 import TemplateNotFound, UndefinedError

from onnxbuild.onnxkit.drawing.markup import render
from tests.browser import assert_good, look_at

PACKAGE = "onnxbuild.onnxkit.drawing"


def test_the_shell_asks_nothing_of_any_server():
    page = render(PACKAGE, "page.html.j2", {})
    assert page.startswith("<!doctype html>")
    assert "default-src 'none'" in page
    assert "http:" not in page.replace("http-equiv", "")
    assert "https:" not in page
    assert page == render(PACKAGE, "page.html.j2", {})


def test_values_are_escaped_and_missing_ones_are_errors(tmp_path, monkeypatch):
    package = tmp_path / "shown_pages"
    (package / "templates").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    template = package / "templates/own.html.j2"
    template.write_text('{% extends "page.html.j2" %}{% block content %}{{ text }}{% endblock %}')
    monkeypatch.syspath_prepend(tmp_path)
    page = render("shown_pages", "own.html.j2", {"text": "<script>alert(1)</script>"})
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    with pytest.raises(UndefinedError, match="text"):
        render("shown_pages", "own.html.j2", {})
    with pytest.raises(TemplateNotFound):
        render("shown_pages", "absent.html.j2", {})


@pytest.mark.slow
def test_the_shell_is_accessible_in_a_browser(tmp_path):
    package = tmp_path / "seen_pages"
    (package / "templates").mkdir(parents=True)
    text = render(PACKAGE, "page.html.j2", {})
    text = text.replace("<title>", "<title>Page").replace("</header>", "<h1>Page</h1></header>")
    page = tmp_path / "page.html"
    page.write_text(text)
    assert_good(look_at([page], tmp_path))
