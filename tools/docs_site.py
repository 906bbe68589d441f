"""A hook of MkDocs: the pages of docs/ as a code host shows them, unchanged, with what they link to outside of docs/.

README, CONTRIBUTING and CHANGELOG are pages. A linked file of the repository is a page with its text, a linked folder
one that lists its files. Diagrams in mermaid's flowchart syntax are drawn by Graphviz where `dot` is installed, so that
no page loads a script from elsewhere; without it they stay text.
"""

from __future__ import annotations

import logging
import posixpath
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changes.md": "CHANGELOG.md",
}
"""Page of the site -> file at the repository's root."""
LISTINGS = {"docs/decisions": "decisions/index.md"}
"""Folder -> page of the site that lists its files."""

_LOG = logging.getLogger("mkdocs.hooks.docs_site")
_LINK = re.compile(r"(?P<head>\]\()(?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?(?=\))")
_FENCE = re.compile(r"^( *)(```+|~~~+)(.*)$")
_FLOWCHART = re.compile(r"```mermaid\n(flowchart (?:TD|LR)\n.*?)```", re.DOTALL)
_NODE = re.compile(r'(\w+)\["([^"]*)"\]')
_EDGE = re.compile(r"(\w+) --> (\w+)")
_ITEM = re.compile(r"(?:[-*+]|\d+\.) +")
_MOST_LEFT = 3
"""Blanks before an item's marker: more make a block of code."""
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".json": "json", ".sh": "bash", ".toml": "toml"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are no files of docs/."""
    texts = {
        PAGES.get(file.src_uri, f"docs/{file.src_uri}"): file
        for file in files.documentation_pages()
    }
    for uri, name in PAGES.items():
        file = File.generated(config, uri, content=(ROOT / name).read_text(encoding="utf-8"))
        files.append(file)
        texts[name] = file
    wanted = [
        *LISTINGS,
        *(
            each
            for name in texts
            for each in _linked(name, (ROOT / name).read_text(encoding="utf-8"))
        ),
    ]
    made = set()
    while wanted:
        name = wanted.pop()
        uri = _page_of(name)
        if name in made or files.get_file_from_path(uri) is not None:
            continue
        made.add(name)
        is_folder = (ROOT / name).is_dir()
        content = _listing(name) if is_folder else _source(name)
        files.append(File.generated(config, uri, content=content))
        wanted += _files_of(name) if is_folder and not name.startswith("docs/") else []
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to where their targets are on the site, and draw diagrams."""
    del config, files
    own = page.file.src_uri
    name = PAGES.get(own, f"docs/{own}")
    if own.startswith("source/") and not own.endswith("/index.md"):
        return markdown

    def lead(found: re.Match[str]) -> str:
        target = _target(name, found["target"])
        if target is None:
            return found[0]
        path = posixpath.relpath(_page_of(target), posixpath.dirname(own) or ".")
        return f"{found['head']}{path}{found['anchor'] or ''}"

    text = _FLOWCHART.sub(_drawn, markdown).replace("<details>", '<details markdown="1">')
    if own.startswith("source/") or own in LISTINGS.values():
        return text  # listings are written for the site
    return "".join(
        line if is_code else _LINK.sub(lead, line) for line, is_code in _lines(_indented(text))
    )


def _page_of(name: str) -> str:
    """The site's page of a file or folder of the repository."""
    for uri, own in PAGES.items():
        if own == name:
            return uri
    if name in LISTINGS:
        return LISTINGS[name]
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    return f"source/{name}/index.md" if (ROOT / name).is_dir() else f"source/{name}.md"


def _target(name: str, link: str) -> str | None:
    """The file or folder of the repository that a link of a page leads to; None where it leads elsewhere."""
    if "://" in link or link.startswith(("mailto:", "/")):
        return None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(name), link))
    return path if (ROOT / path).exists() and not path.startswith("..") else None


def _linked(name: str, text: str) -> Iterator[str]:
    """Files and folders outside of docs/ that a page links to."""
    for line, is_code in _lines(text):
        for found in () if is_code else _LINK.finditer(line):
            target = _target(name, found["target"])
            if target is not None and (target in LISTINGS or not target.startswith("docs/")):
                yield target


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is in a block of code."""
    fence = ""
    for line in text.splitlines(keepends=True):
        found = _FENCE.match(line.rstrip("\n"))
        if found and not fence:
            fence = found[2]
            yield line, True
        elif found and found[2].startswith(fence) and not found[3].strip():
            fence = ""
            yield line, True
        else:
            yield line, bool(fence)


def _indented(text: str) -> str:
    """Indent what belongs to an item of a list by four blanks a level, as Python's Markdown wants it.

    CommonMark wants as many as the item's marker is wide: two after `- `, three after `1. `.
    """
    lines: list[str] = []
    depth = 0
    texts: list[int] = []  # of the items that are open: the column at which the text begins
    for line, is_code in _lines(text):
        bare = line.lstrip(" ")
        column = len(line) - len(bare)
        if not bare.strip():
            lines.append(line)
            continue
        while texts and column < texts[-1]:
            texts.pop()
        level, left = len(texts), column - (texts[-1] if texts else 0)
        marker = None if is_code else _ITEM.match(bare)
        if marker and level < depth and lines[-1].strip():
            lines.append("\n")  # else it would go on with the items below it
        depth = level
        lines.append(" " * (4 * level + left) + bare)
        if marker and left <= _MOST_LEFT:
            texts.append(column + len(marker[0]))
    return "".join(lines)


def _source(name: str) -> str:
    """A page with a file's text."""
    text = (ROOT / name).read_text(encoding="utf-8")
    language = _LANGUAGES.get(Path(name).suffix, "text")
    return f"---\nsearch: {{exclude: true}}\n---\n\n# {name}\n\n`````{language}\n{text}\n`````\n"


def _files_of(folder: str) -> list[str]:
    """The pages and programs of a folder, sorted."""
    endings = {".md", *_LANGUAGES}
    return sorted(
        f"{folder}/{path.name}" for path in (ROOT / folder).iterdir() if path.suffix in endings
    )


def _listing(folder: str) -> str:
    """A page that lists a folder's files with their first lines."""
    own = posixpath.dirname(_page_of(folder))
    rows = [
        f"- [{_title(ROOT / name)}]({posixpath.relpath(_page_of(name), own)})"
        for name in _files_of(folder)
    ]
    title = posixpath.basename(folder)
    return f"# {title[0].upper()}{title[1:]}\n\n" + "\n".join(rows) + "\n"


def _title(path: Path) -> str:
    """A page's heading; of another file its name and the first line of its docstring."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text.partition("\n")[0].lstrip("# ").strip()
    said = re.match(r'(?:#!.*\n)?"""(.*)', text)
    return f"{path.name}: {said[1].rstrip(':')}" if said else path.name


def _drawn(found: re.Match[str]) -> str:
    """An inline SVG of a flowchart; its text where Graphviz is not there."""
    dot = shutil.which("dot")
    if dot is None:
        _LOG.info("diagrams stay text: Graphviz is not installed (apt-get install graphviz)")
        return found[0]
    first, *lines = found[1].splitlines()
    graph = [
        "digraph {",
        f"rankdir={'TB' if first.endswith('TD') else 'LR'}; bgcolor=transparent;",
        'node [shape=box style=rounded fontname="sans-serif" fontsize=11 color="#888888" fontcolor="#777777"];',
        'edge [color="#999999" arrowsize=0.6];',
    ]
    for line in lines:
        node, edge = _NODE.fullmatch(line.strip()), _EDGE.fullmatch(line.strip())
        if node:
            graph.append(f'{node[1]} [label="{node[2]}"];')
        elif edge:
            graph.append(f"{edge[1]} -> {edge[2]};")
    text = "\n".join([*graph, "}"])
    done = subprocess.run([dot, "-Tsvg"], input=text, capture_output=True, text=True, check=True)
    svg = done.stdout[done.stdout.index("<svg") :]
    svg = re.sub(
        r'width="(\d+)pt" height="\d+pt"', r'width="\1" style="max-width:100%;height:auto"', svg
    )
    svg = svg.replace("#777777", "currentColor").replace("\n\n", "\n")
    return f"<figure>{re.sub(r'<!--.*?-->', '', svg, flags=re.DOTALL).replace(chr(10), ' ')}</figure>\n"
