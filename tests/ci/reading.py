"""Read what a run leaves for CI as its readers do."""

from functools import cache
from itertools import pairwise
from pathlib import Path
from xml.etree.ElementTree import Element

from markdown_it import MarkdownIt

from tests.late_imports import Late

xmlschema = Late("xmlschema")


@cache
def schema():
    """The one of JUnit's files."""
    return xmlschema.XMLSchema(Path(__file__).with_name("junit.xsd"))


def read_junit(path: Path) -> dict[str, dict[str, Element]]:
    """Suite -> CLASS NAME -> the case, of a file that is valid by the schema and counts right."""
    schema().validate(path)
    root = xmlschema.XMLResource(path).root
    found: dict[str, dict[str, Element]] = {}
    for suite in root:
        cases = suite.findall("testcase")
        for outcome, counted in (("failure", "failures"), ("error", "errors"), ("skipped",) * 2):
            assert int(suite.get(counted)) == sum(case.find(outcome) is not None for case in cases)
        assert int(suite.get("tests")) == len(cases)
        found[suite.get("name")] = {f"{c.get('classname')} {c.get('name')}": c for c in cases}
        assert len(found[suite.get("name")]) == len(cases)
    return found


def rendered_tables(text: str) -> list[list[list[str]]]:
    """The cells of each table of Markdown, as a page shows them; without HTML, which GitHub would show as such."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    assert not [each for each in tokens if each.type == "html_block"]
    tables: list[list[list[str]]] = []
    for token, after in pairwise(tokens):
        if token.type == "table_open":
            tables.append([])
        elif token.type == "tr_open":
            tables[-1].append([])
        elif token.type in {"th_open", "td_open"}:
            inline = after.children or []
            assert not [each for each in inline if each.type == "html_inline"]
            tables[-1][-1].append("".join(each.content for each in inline))
    return tables
