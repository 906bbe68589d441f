"""The site of the docs: all pages in its menu, every link and anchor leads somewhere, nothing is asked of another server."""

import os
import posixpath
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tools.docs_site import PAGES, _indented

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def test_every_page_is_in_the_menu():
    menu = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    listed = set(re.findall(r": ([\w/-]+\.md)$", menu, re.MULTILINE))
    docs = ROOT / "docs"
    found = [*docs.glob("*.md"), *docs.glob("cookbook/*.md")]
    pages = {path.relative_to(docs).as_posix() for path in found} | set(PAGES)
    assert pages - listed == set(), "add it to `nav` in mkdocs.yml"
    assert listed - pages == {"decisions/index.md"}


def test_lists_get_the_indentation_of_python_markdown():
    text = "1. a\n   b\n\n   ```py\n   c = {\n       d}\n   ```\n\n   - e\n     f\n2. g\n\n- h\n  - i\n\nj\n"
    assert _indented(text) == (
        "1. a\n    b\n\n    ```py\n    c = {\n        d}\n    ```\n\n    - e\n        f\n\n2. g\n\n- h\n    - i\n\nj\n"
    )


class Found(HTMLParser):
    """Ids, links, and what a browser fetches without being asked."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.fetched = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids.add(given.get("id"))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") != "canonical":
            self.fetched.append(given["href"])
        elif given.get("src"):
            self.fetched.append(given["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [BIN / "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def pages(site):
    return {name: Found(text.decode()) for name, text in site.items() if name.endswith(".html")}


def led_to(name, link):
    """The file and the anchor that a link of a page leads to; None where it leads to another server."""
    target = urlsplit(link)
    if target.scheme:
        return None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(target.path)))
    if not target.path:
        path = name
    elif target.path.endswith(("/", "..", ".")) or not posixpath.splitext(path)[1]:
        path = posixpath.normpath(f"{path}/index.html")
    return path, unquote(target.fragment)


@pytest.mark.slow
def test_every_link_and_anchor_leads_somewhere(site, pages):
    """All but those of the page for what is not found, which is shown at any address."""
    broken = []
    for name, page in pages.items():
        for link in page.links if name != "404.html" else ():
            found = led_to(name, link)
            if found is not None and (
                found[0] not in site or (found[1] and found[1] not in pages[found[0]].ids)
            ):
                broken.append(f"{name} -> {link}")
    assert broken == []
    assert sum(len(page.links) for page in pages.values()) > 1000


@pytest.mark.slow
def test_no_page_loads_anything_from_elsewhere(site, pages):
    fetched = {(name, each) for name, page in pages.items() for each in page.fetched}
    assert {each for each in fetched if urlsplit(each[1]).netloc} == set()
    for name, text in site.items():
        if name.endswith(".css"):
            assert not re.search(rb"(?:url\(|@import )['\"]?(?:https?:)?//", text), name
    assert len(fetched) > len(pages)


@pytest.mark.slow
def test_pages_show_what_a_code_host_shows(site, pages):
    home = site["index.html"].decode()
    assert 'href="tour/"' in home
    assert 'href="source/recipes/digits.yaml/"' in home
    assert "decisions/0001-points/index.html" in site
    lists = site["contributing/index.html"].decode().split("<ol>")[1:]
    steps = next(each.partition("</ol>")[0] for each in lists if "steps/yours.py" in each)
    assert re.sub(r"<ul>.*?</ul>", "", steps, flags=re.DOTALL).count("<li>") == 4
    assert "</table>" in site["performance/index.html"].decode().partition("<details")[2]
    drawn = site["architecture/index.html"].count(b"<svg width=")
    diagrams = (ROOT / "docs/architecture.md").read_text().count("```mermaid\n")
    assert diagrams >= 1
    assert drawn == (diagrams if shutil.which("dot") else 0)
