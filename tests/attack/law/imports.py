"""Pieces that import modules of the project, in every way that Python has."""

import random

from tests.attack.law.contents import Link
from tests.attack.law.formats import File
from tests.attack.law.pieces import Maker, Piece, source, two_digits


def _import(name: str, body: str, *names: str, **more: object) -> Maker:
    """A piece that imports modules of a number each."""

    def make(dice: random.Random) -> Piece:
        files = {path: source(two_digits(dice)) for path in names}
        return Piece(name, body, files, **more)  # type: ignore[arg-type]

    return make


def _as_text(name: str, path: str, body: str, **more: object) -> Maker:
    """A piece that reads a source as text, so that remarks in it count."""
    return _import(name, body, path, exact=False, **more)


def _data(name: str, path: str, body: str, *, file_format: str = "txt") -> Maker:
    """A piece that reads one declared file."""

    def make(dice: random.Random) -> Piece:
        return Piece(name, body, {path: File(file_format, two_digits(dice))}, declared=(path,))

    return make


def _in_package(name: str, body: str) -> Maker:
    """A piece that reads a declared file of a package."""

    def make(dice: random.Random) -> Piece:
        files = {
            "models/k@/__init__.py": source(10),
            "models/k@/x.txt": File("txt", two_digits(dice)),
        }
        return Piece(name, body, files, declared=("models/k@/x.txt",))

    return make


IMPORTS: dict[str, Maker] = {
    "import": _import(
        "import", "import h@\nreturn h@.NUMBER", "models/h@.py",
        adds={"models/h@/__init__.py": source(71)},
    ),
    "from": _import("from", "from h@ import NUMBER\nreturn NUMBER", "models/h@.py"),
    "import_module": _import(
        "import_module", "name = 'h' + str(@)\nreturn importlib.import_module(name).NUMBER",
        "models/h@.py",
    ),
    "dunder_import": _import(
        "dunder_import", "return __import__('h@').NUMBER", "models/h@.py"
    ),
    "package": lambda dice: Piece(
        "package", "import k@.sub\nreturn k@.sub.NUMBER, k@.NUMBER",
        {"models/k@/__init__.py": source(two_digits(dice)),
         "models/k@/sub.py": source(two_digits(dice))},
        adds={"models/k@/sub/__init__.py": source(72)},
    ),
    "namespace": lambda dice: Piece(
        "namespace", "import k@.sub\nreturn k@.sub.NUMBER, getattr(k@, 'NUMBER', 0)",
        {"models/k@/sub.py": source(two_digits(dice))},
        adds={"models/k@/__init__.py": source(73), "models/k@.py": source(74)},
    ),
    "namespace_of_two": lambda dice: Piece(
        "namespace_of_two",
        "sys.path[:0] = [D + '/one', D + '/two']\n"
        "import k@.left, k@.right\n"
        "return k@.left.NUMBER, k@.right.NUMBER",
        {"models/d@/one/k@/left.py": source(two_digits(dice)),
         "models/d@/two/k@/right.py": source(two_digits(dice))},
        adds={"models/d@/one/k@/right.py": source(75),
              "models/d@/two/k@/__init__.py": source(76),
              "models/d@/one/k@/__init__.py": source(76)},
    ),
    "namespace_parts": lambda dice: Piece(
        "namespace_parts",
        "import k@, pkgutil\n"
        "names = sorted(each.name for each in pkgutil.iter_modules(k@.__path__))\n"
        "return [importlib.import_module('k@.' + name).NUMBER for name in names]",
        {"models/k@/left.py": source(two_digits(dice)),
         "models/k@/right.py": source(two_digits(dice))},
        adds={"models/k@/third.py": source(77)},
    ),
    "optional": lambda dice: Piece(
        "optional", "try:\n    import o@\nexcept ImportError:\n    return 0\nreturn o@.NUMBER",
        {}, adds={"models/o@.py": source(78), "models/o@/__init__.py": source(79)},
    ),
    "optional_part": lambda dice: Piece(
        "optional_part",
        "try:\n    from k@ import extra\nexcept ImportError:\n    return 0\nreturn extra.NUMBER",
        {"models/k@/__init__.py": source(two_digits(dice))},
        adds={"models/k@/extra.py": source(78)},
    ),
    "find_spec": lambda dice: Piece(
        "find_spec", "import importlib.util\nreturn importlib.util.find_spec('o@') is not None",
        {}, adds={"models/o@.py": source(78)},
    ),
    "relative": lambda dice: Piece(
        "relative", "from k@.deep import total\nreturn total()",
        {"models/k@/__init__.py": source(two_digits(dice)),
         "models/k@/side.py": source(two_digits(dice)),
         "models/k@/deep/__init__.py":
             File("py", two_digits(dice),
                  "from .. import NUMBER as up\nfrom ..side import NUMBER as side\n"
                  "def total():\n    from . import low\n    return up, side, low.NUMBER, {n}\n"),
         "models/k@/deep/low.py": source(two_digits(dice))},
    ),
    "star": _import("star", "names = {}\nexec('from h@ import *', names)\nreturn names['NUMBER']",
                    "models/h@.py"),
    "path_insert": lambda dice: Piece(
        "path_insert", "sys.path.insert(0, D + '/first')\nimport r@\nreturn r@.NUMBER",
        {"models/d@/first/r@.py": source(two_digits(dice)), "models/r@.py": source(11)},
    ),
    "path_append": lambda dice: Piece(
        "path_append", "sys.path.append(D + '/first')\nimport r@\nreturn r@.NUMBER",
        {"models/d@/first/r@.py": source(two_digits(dice))},
        adds={"models/r@.py": source(12)},
    ),
    "two_roots": lambda dice: Piece(
        "two_roots",
        "sys.path[:0] = [D + '/one', D + '/two']\nimport r@\nreturn r@.NUMBER",
        {"models/d@/one/r@.py": source(two_digits(dice)),
         "models/d@/two/r@.py": source(two_digits(dice))},
        adds={"models/d@/one/r@/__init__.py": source(13)},
    ),
    "root_made_later": lambda dice: Piece(
        "root_made_later",
        "sys.path[:0] = [D + '/later', D + '/two']\nimport r@\nreturn r@.NUMBER",
        {"models/d@/two/r@.py": source(two_digits(dice))},
        adds={"models/d@/later/r@.py": source(13)},
    ),
    "sitedir": lambda dice: Piece(
        "sitedir", "import site\nsite.addsitedir(D + '/site')\nimport r@\nreturn r@.NUMBER",
        {"models/d@/site/r.pth": File("text", 10, "lib\n"),
         "models/d@/site/lib/r@.py": source(two_digits(dice))},
        declared=("models/d@/site/r.pth",),
        adds={"models/d@/site/r@.py": source(14), "models/d@/site/more.pth": File("text", 10, "#\n")},
    ),
    "spec_from_file": lambda dice: Piece(
        "spec_from_file",
        "import importlib.util\n"
        "spec = importlib.util.spec_from_file_location('s@', D + '/s.py')\n"
        "made = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(made)\n"
        "return made.NUMBER",
        {"models/d@/s.py": source(two_digits(dice))},
    ),
    "run_path": _as_text(
        "run_path", "models/d@/s.py", "import runpy\nreturn runpy.run_path(D + '/s.py')['NUMBER']"
    ),
    "run_module": _as_text(
        "run_module", "models/h@.py", "import runpy\nreturn runpy.run_module('h@')['NUMBER']"
    ),
    "exec": _as_text(
        "exec", "models/d@/s.py",
        "names = {}\nexec(open(D + '/s.py').read(), names)\nreturn names['NUMBER']",
    ),
    "exec_script": _as_text(
        "exec_script", "models/d@/s.txt",
        "names = {}\nexec(open(D + '/s.txt').read(), names)\nreturn names['NUMBER']",
        declared=("models/d@/s.txt",),
    ),
    "generated": _data(
        "generated", "models/d@/g.txt",
        "import tempfile\nfolder = tempfile.mkdtemp()\n"
        "text = open(D + '/g.txt').read()\n"
        "with open(folder + '/g@.py', 'w') as file:\n    file.write('NUMBER = ' + text)\n"
        "sys.path.insert(0, folder)\nimport g@\nreturn g@.NUMBER",
    ),
    "zipimport": _data(
        "zipimport", "models/d@/lib.zip",
        "sys.path.insert(0, D + '/lib.zip')\nimport zipped\n"
        "del sys.modules['zipped'], sys.path[0]\nreturn zipped.NUMBER",
        file_format="zip",
    ),
    "extend_path": lambda dice: Piece(
        "extend_path",
        "import k@\nk@.__path__.append(D + '/more')\nimport k@.sub\nreturn k@.sub.NUMBER",
        {"models/k@/__init__.py": source(two_digits(dice)),
         "models/d@/more/sub.py": source(two_digits(dice))},
        adds={"models/k@/sub.py": source(15)},
    ),
    "linked_module": lambda dice: Piece(
        "linked_module", "import h@\nreturn h@.NUMBER",
        {"models/h@.py": Link("d@/one.py"), "models/d@/one.py": source(two_digits(dice)),
         "models/d@/two.py": source(two_digits(dice))},
        targets={"models/h@.py": ("d@/one.py", "d@/two.py")},
    ),
    "linked_package": lambda dice: Piece(
        "linked_package", "import k@.sub\nreturn k@.sub.NUMBER",
        {"models/k@": Link("d@/one"), "models/d@/one/sub.py": source(two_digits(dice)),
         "models/d@/two/sub.py": source(two_digits(dice))},
        targets={"models/k@": ("d@/one", "d@/two")},
    ),
    "resources": _in_package(
        "resources",
        "import importlib.resources\n"
        "return importlib.resources.files('k@').joinpath('x.txt').read_text()",
    ),
    "get_data": _in_package(
        "get_data", "import pkgutil\nreturn pkgutil.get_data('k@', 'x.txt').decode()"
    ),
    "getsource": _as_text(
        "getsource", "models/h@.py",
        "import inspect, h@\nreturn len(inspect.getsource(h@)), inspect.getsource(h@)",
    ),
    "linecache": _as_text(
        "linecache", "models/d@/s.py", "import linecache\nreturn linecache.getlines(D + '/s.py')"
    ),
    "linecache_data": _data(
        "linecache_data", "models/d@/s.txt",
        "import linecache\nreturn linecache.getlines(os.path.realpath(D + '/s.txt'))",
    ),
    "tokenize": _as_text(
        "tokenize", "models/d@/s.py",
        "import tokenize\nwith tokenize.open(D + '/s.py') as file:\n    return file.read()",
    ),
}  # fmt: skip
