"""Pieces that lean on installed packages: their modules, data files and metadata."""

import random

from tests.attack.law.contents import Content, Distribution
from tests.attack.law.pieces import Maker, Piece, source, two_digits

_INIT = "NUMBER = {n}\n"


def _installed(dice: random.Random, *, record: bool = True, **files: str) -> Distribution:
    files = {path.replace("__", "/"): text for path, text in files.items()}
    return Distribution("1.0", two_digits(dice), files or {"law@/__init__.py": _INIT}, record)


def _package(name: str, body: str, *, there: bool = True, record: bool = True) -> Maker:
    """A piece that asks a package for something; the package may come later."""

    def make(dice: random.Random) -> Piece:
        points = "[law@]\nplug = law@:NUMBER\n"
        found = Distribution(
            "1.0",
            two_digits(dice),
            {"law@/__init__.py": _INIT, "law@/sub.py": _INIT, "law@/data.txt": "{n}"},
            record,
            points,
        )
        held: dict[str, Content] = {"site/law@": found}
        other: dict[str, Content] = {
            "site/lawother@": Distribution("1.0", 10, {"lawother@.py": _INIT})
        }
        shadows: dict[str, Content] = {
            "models/law@.py": source(31, "NUMBER = {n}\n"),
            "models/law@/__init__.py": source(32),
        }
        if there:
            return Piece(name, body, held, adds=shadows, noise=other)
        # Code that looks at all that is installed depends on every package.
        noise = {} if "metadata.distributions()" in body else other
        return Piece(name, body, {}, adds={**held, **shadows}, noise=noise)

    return make


_MAYBE = "try:\n    {}\nexcept {}:\n    return 0\n{}"


def _parts(name: str, body: str, path: str) -> Maker:
    """Several distributions that share a folder."""

    def make(dice: random.Random) -> Piece:
        def part(letter: str) -> Distribution:
            files = {path.format(letter): _INIT}
            if "__init__" in body:
                files["lawn@/__init__.py"] = "NUMBER = 1\n"
            return Distribution("1.0", two_digits(dice), files)

        return Piece(
            name,
            body,
            {"site/lawa@": part("a"), "site/lawb@": part("b")},
            adds={"site/lawc@": part("c")},
        )

    return make


PACKAGES: dict[str, Maker] = {
    "installed": _package("installed", "import law@\nreturn law@.NUMBER"),
    "installed part": _package("installed part", "import law@.sub\nreturn law@.sub.NUMBER"),
    "installed module": lambda dice: Piece(
        "installed module", "import law@\nreturn law@.NUMBER",
        {"site/law@": Distribution("1.0", two_digits(dice), {"law@.py": _INIT})},
        adds={"models/law@.py": source(33)},
    ),
    "installed maybe": _package(
        "installed maybe", _MAYBE.format("import law@", "ImportError", "return law@.NUMBER"),
        there=False,
    ),
    "installed without RECORD": _package(
        "installed without RECORD", "import law@\nreturn law@.NUMBER", record=False
    ),
    "installed data": _package(
        "installed data",
        "import law@\nreturn open(os.path.join(os.path.dirname(law@.__file__), 'data.txt')).read()",
    ),
    "installed resource": _package(
        "installed resource",
        "import importlib.resources\n"
        "return importlib.resources.files('law@').joinpath('data.txt').read_text()",
    ),
    "installed data, unimported": _package(
        "installed data, unimported",
        "import importlib.util\n"
        "folder = os.path.dirname(importlib.util.find_spec('law@').origin)\n"
        "return open(folder + '/data.txt').read()",
    ),
    "installed data by cat": _package(
        "installed data by cat",
        "import importlib.util\n"
        "folder = os.path.dirname(importlib.util.find_spec('law@').origin)\n"
        "return output('cat', folder + '/data.txt')",
    ),
    "version": _package(
        "version", "import importlib.metadata\nreturn importlib.metadata.version('law@')"
    ),
    "version maybe": _package(
        "version maybe",
        "import importlib.metadata\n" + _MAYBE.format(
            "found = importlib.metadata.version('law@')",
            "importlib.metadata.PackageNotFoundError", "return found"),
        there=False,
    ),
    "summary": _package(
        "summary", "import importlib.metadata\nreturn importlib.metadata.metadata('law@')['Summary']"
    ),
    "files of a distribution": _package(
        "files of a distribution",
        "import importlib.metadata\nreturn sorted(map(str, importlib.metadata.files('law@')))",
    ),
    "entry points": _package(
        "entry points",
        "import importlib.metadata\n"
        "return [(e.name, e.load()) for e in importlib.metadata.entry_points(group='law@')]",
    ),
    "entry points maybe": _package(
        "entry points maybe",
        "import importlib.metadata\n"
        "return [(e.name, e.load()) for e in importlib.metadata.entry_points(group='law@')]",
        there=False,
    ),
    "entry point names maybe": _package(
        "entry point names maybe",
        "import importlib.metadata\n"
        "return [e.name for e in importlib.metadata.entry_points(group='law@')]",
        there=False,
    ),
    "distributions": _package(
        "distributions",
        "import importlib.metadata\n"
        "return sorted(d.version for d in importlib.metadata.distributions()"
        " if d.metadata['Name'] == 'law@')",
        there=False,
    ),
    "find_spec of a package": _package(
        "find_spec of a package",
        "import importlib.util\nreturn importlib.util.find_spec('law@') is not None", there=False,
    ),
    "namespace of distributions": _parts(
        "namespace of distributions", "import lawn@.a, lawn@.b\nreturn lawn@.a.NUMBER, lawn@.b.NUMBER",
        "lawn@/{}.py",
    ),
    "parts of a namespace": _parts(
        "parts of a namespace",
        "import lawn@\n"
        "names = sorted(each.name for each in pkgutil.iter_modules(lawn@.__path__))\n"
        "return [importlib.import_module('lawn@.' + name).NUMBER for name in names]",
        "lawn@/{}.py",
    ),
    "one folder of two distributions": _parts(
        "one folder of two distributions",
        "import lawn@.a, lawn@.b  # with an __init__\nreturn lawn@.a.NUMBER, lawn@.b.NUMBER",
        "lawn@/{}.py",
    ),
}  # fmt: skip
