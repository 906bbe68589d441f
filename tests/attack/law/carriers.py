"""How the module of a piece gets to run: imports of every kind, and processes of every kind.

In all texts `@` stands for the piece's number, `M` for the name of its module.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.attack.law.contents import Content
from tests.attack.law.formats import File
from tests.attack.law.functions import FUNCTIONS
from tests.attack.law.pieces import Piece

_MODULES = (
    "codecs", "configparser", "csv", "ctypes", "fileinput", "glob", "gzip", "importlib", "io", "json",
    "mmap", "os", "pathlib", "pickle", "pkgutil", "shutil", "sqlite3", "subprocess", "sys",
    "tarfile", "tempfile", "zipfile",
)  # fmt: skip
_BASES = {
    "working folder": 'D = "models/d@"\n',
    "real folder": 'D = os.path.realpath("models/d@")\n',
    "own file": 'D = os.path.join(os.path.dirname(os.path.abspath(__file__)), "UPd@")\n',
}
CHILDREN = """\
import importlib
import os
import pickle


def value_of(name):
    return importlib.import_module(name).value()


def forked(name):
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            with os.fdopen(write, "wb") as file:
                pickle.dump(value_of(name), file)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        content = file.read()
    os.waitpid(pid, 0)
    return pickle.loads(content)


class Items:
    def __init__(self, name):
        self.name = name

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return repr(value_of(self.name))
"""


@dataclass(frozen=True)
class Carrier:
    """A way to run a module.

    Attributes:
        name: What it is, for people.
        body: The body of the function that gives the module's value.
        head: Lines at the top of the main module.
        path: Where the module's file is.
        more: Other files.
        declared: Patterns for the recipe.
        exact: Whether remarks in the module don't count.
        in_process: Whether it runs in the step's own process.
        has_file: Whether the module's `__file__` is its file in the project.
    """

    name: str
    body: str
    head: str = ""
    path: str = "models/M.py"
    more: Mapping[str, str] = field(default_factory=dict)
    declared: tuple[str, ...] = ()
    exact: bool = True
    in_process: bool = True
    has_file: bool = True

    @property
    def up(self) -> str:
        return "../" * (self.path.count("/") - 1)


_INIT = "# a package\n"
_SPAWNED = (
    "import children, multiprocessing\nwith multiprocessing.get_context('{}').Pool(1) as pool:\n"
)
_SPAWNED += "    return pool.map(children.value_of, ['M'])[0]"
_PRINTS = (
    '\nif __name__ == "__main__":\n    import json\n    print(json.dumps(value(), default=str))\n'
)
_RUN = (
    "import json, subprocess\n"
    "done = subprocess.run([sys.executable, {}], capture_output=True, text=True{})\n"
    "if done.returncode:\n    raise OSError(done.stderr.strip().splitlines()[-1])\n"
    "return json.loads(done.stdout)"
)
_WITH_PATH = ", env={**os.environ, 'PYTHONPATH': 'models'}"

CARRIERS: dict[str, Carrier] = {
    each.name: each
    for each in (
        Carrier("static", "return M.value()", head="import M\n"),
        Carrier("from", "return value_@()", head="from M import value as value_@\n"),
        Carrier("lazy", "import M\nreturn M.value()"),
        Carrier("computed", "return importlib.import_module('M'[0] + 'M'[1:]).value()"),
        Carrier(
            "package", "from c@ import M\nreturn M.value()",
            path="models/c@/M.py", more={"models/c@/__init__.py": _INIT},
        ),
        Carrier("namespace", "import c@.M\nreturn c@.M.value()", path="models/c@/M.py"),
        Carrier(
            "relative", "import c@.deep\nreturn c@.deep.value()",
            path="models/c@/deep/M.py",
            more={
                "models/c@/__init__.py": _INIT,
                "models/c@/deep/__init__.py": "from .M import value\n",
            },
        ),
        Carrier(
            "star", "import c@\nreturn c@.value()",
            more={"models/c@.py": "from M import *\n"},
        ),
        Carrier(
            "path", "sys.path.insert(0, 'models/home@')\nimport M\nreturn M.value()",
            path="models/home@/M.py",
        ),
        Carrier(
            "conditional",
            "try:\n    import M\nexcept ImportError:\n    return None\nreturn M.value()",
        ),
        Carrier(
            "spec",
            "import importlib.util\n"
            "spec = importlib.util.spec_from_file_location('M', os.path.abspath('models/loose@/M.py'))\n"
            "made = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(made)\n"
            "return made.value()",
            path="models/loose@/M.py",
        ),
        Carrier(
            "plug-in",
            "folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'plugins@')\n"
            "sys.path.insert(0, folder)\n"
            "return [importlib.import_module(each[:-3]).value() for each in sorted(os.listdir(folder))"
            " if each.endswith('.py')]",
            path="models/plugins@/M.py",
        ),
        Carrier(
            "exec",
            "path = os.path.abspath('models/M.py')\nnames = {'__file__': path, '__name__': 'M'}\n"
            "exec(compile(open(path).read(), path, 'exec'), names)\nreturn names['value']()",
            exact=False,
        ),
        Carrier(
            "run_path", "import runpy\nreturn runpy.run_path('models/M.py')['value']()", exact=False,
            has_file=False,
        ),
        Carrier(
            "generated",
            "import tempfile\nfolder = tempfile.mkdtemp()\n"
            "with open('models/M.txt') as source, open(folder + '/M.py', 'w') as target:\n"
            "    target.write(source.read())\n"
            "sys.path.insert(0, folder)\nimport M\nreturn M.value()",
            path="models/M.txt", declared=("models/M.txt",), exact=False, has_file=False,
        ),
        Carrier(
            "thread",
            "import children, concurrent.futures\n"
            "with concurrent.futures.ThreadPoolExecutor(1) as pool:\n"
            "    return pool.submit(children.value_of, 'M').result()",
        ),
        Carrier("os.fork", "import children\nreturn children.forked('M')", in_process=False),
        Carrier("fork", _SPAWNED.format("fork"), in_process=False),
        Carrier("spawn", _SPAWNED.format("spawn"), in_process=False),
        Carrier(
            "pool",
            "import children, concurrent.futures, multiprocessing\n"
            "context = multiprocessing.get_context('fork')\n"
            "with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:\n"
            "    return pool.submit(children.value_of, 'M').result()",
            in_process=False,
        ),
        Carrier(
            "loader",
            "import children\nfrom torch.utils.data import DataLoader\n"
            "loader = DataLoader(children.Items('M'), num_workers=1, batch_size=None,"
            " multiprocessing_context='fork')\n"
            "return list(loader)",
            in_process=False,
        ),
        Carrier("script", _RUN.format("'models/M.py'", ""), in_process=False),
        Carrier("python -m", _RUN.format("'-m', 'M'", _WITH_PATH), in_process=False),
        Carrier(
            "python -m package", _RUN.format("'-m', 'c@'", _WITH_PATH), in_process=False,
            more={"models/c@/__init__.py": _INIT,
                  "models/c@/__main__.py":
                      "import json, M\nprint(json.dumps(M.value(), default=str))\n"},
        ),
    )
}  # fmt: skip


def module_text(piece: Piece, carrier: Carrier, base: str, *, at_top: bool) -> str:
    """The text of a piece's module.

    Args:
        piece: Numbered.
        carrier: How it is run.
        base: Which folder its paths start from, a key of `_BASES`.
        at_top: Its value is made when the module is imported, not when it is called.
    """
    body = piece.body
    helpers = [text for name, text in FUNCTIONS.items() if f"{name}(" in body]
    code = "\n\n".join(helpers) + body
    used = [name for name in _MODULES if re.search(rf"\b{name}\.", code)]
    lines = [f"import {name}" for name in dict.fromkeys(("os", "sys", "importlib", *used))]
    if re.search(r"\bnp\.", body):
        lines.append("import numpy as np")
    if re.search(r"\btorch\.", body):
        lines.append("import torch")
    base_line = _BASES[base].replace("UP", carrier.up)
    indented = body.replace("\n", "\n    ")
    text = "\n".join(lines) + "\n\n" + base_line + "SHARED = '__SHARED__'\n\n"
    text += "".join(f"\n{helper}\n" for helper in helpers)
    name = "made" if at_top else "value"
    text += f"\ndef {name}():\n    {indented}\n"
    if at_top:
        text += "\nVALUE = made()\n\n\ndef value():\n    return VALUE\n"
    if carrier.name in {"script", "python -m"}:
        text += _PRINTS
    return text


def files_of(
    piece: Piece, carrier: Carrier, number: int, module: str, base: str, *, at_top: bool
) -> dict[str, Content]:
    """The module of a piece and what its carrier needs, by path below the project."""

    def filled_in(text: str) -> str:
        return re.sub(r"\bM\b", module, text.replace("@", str(number)))

    texts = {carrier.path: module_text(piece, carrier, base, at_top=at_top), **carrier.more}
    return {
        f"project/{filled_in(path)}": File("py", 0, filled_in(text))
        for path, text in texts.items()
    }
