"""Pieces that read data: by many readers, along many kinds of paths; and those that only look."""

import random

from tests.attack.law.contents import Content, Link
from tests.attack.law.formats import File
from tests.attack.law.pieces import Maker, Piece, two_digits

# Reader -> format, expression of `p`.
READERS = {
    "open": ("txt", "open(p).read()"),
    "open_bytes": ("txt", "open(os.fsencode(p), 'rb').read().decode()"),
    "io": ("txt", "io.FileIO(p).read().decode()"),
    "open_update": ("txt", "open(p, 'r').read()"),
    "codecs": ("txt", "codecs.open(p, encoding='utf-8').read()"),
    "pathlib": ("txt", "pathlib.Path(p).read_text()"),
    "os.open": ("txt", "os.read(os.open(p, os.O_RDONLY), 99).decode()"),
    "dir_fd": (
        "txt",
        "os.read(os.open(os.path.basename(p), os.O_RDONLY, dir_fd=os.open(os.path.dirname(p), os.O_RDONLY)), 99).decode()",
    ),
    "descriptor": ("txt", "open(os.open(p, os.O_RDONLY)).read()"),
    "opener": ("txt", "open(p, opener=os.open).read()"),
    "chdir": ("txt", "inside(os.path.dirname(p), lambda: open(os.path.basename(p)).read())"),
    "fileinput": ("txt", "list(fileinput.input(p))"),
    "copied": ("txt", "open(shutil.copy(p, tempfile.mkdtemp())).read()"),
    "mmap": ("txt", "mmap.mmap(os.open(p, os.O_RDONLY), 0, prot=mmap.PROT_READ)[:].decode()"),
    "json": ("json", "json.load(open(p))['number']"),
    "pickle": ("pickle", "pickle.load(open(p, 'rb'))"),
    "gzip": ("gz", "gzip.open(p).read().decode()"),
    "zipfile": ("zip", "zipfile.ZipFile(p).read('number.txt').decode()"),
    "tarfile": ("tar", "tarfile.open(p).extractfile('number.txt').read().decode()"),
    "csv": ("csv", "list(csv.DictReader(open(p)))[0]['number']"),
    "configparser": ("ini", "ini(p)"),
    "tomllib": ("toml", "toml(p)"),
    "sqlite3": ("db", "sqlite3.connect(p).execute('select number from t').fetchone()[0]"),
    "sqlite3_uri": (
        "db",
        "sqlite3.connect('file:' + p + '?mode=ro&immutable=1', uri=True).execute('select number from t').fetchone()[0]",
    ),
    "ctypes": ("txt", "by_libc(p)"),
    "cat": ("txt", "output('cat', p)"),
    "sh": ("txt", "output('sh', '-c', 'cat < ' + p)"),
    "sed": ("txt", "output('sed', '', p)"),
    "cp": ("txt", "copied_by_cp(p)"),
    "system": ("txt", "by_system(p)"),
    "python -c": ("txt", "output(sys.executable, '-c', 'import sys; print(open(sys.argv[1]).read())', p)"),
}  # fmt: skip
HEAVY = {
    "numpy.load": ("npy", "int(np.load(p))"),
    "numpy.mmap": ("npy", "int(np.load(p, mmap_mode='r')[()])"),
    "numpy.npz": ("npz", "int(np.load(p)['number'])"),
    "fromfile": ("raw", "int(np.fromfile(p, dtype='<i8')[0])"),
    "memmap": ("raw", "int(np.memmap(p, dtype='<i8', mode='r')[0])"),
    "loadtxt": ("txt", "float(np.loadtxt(p))"),
    "safetensors": ("safetensors", "safely(p)"),
    "safe_open": ("safetensors", "safely_open(p)"),
    "tokenizers": ("tokens", "tokens(p)"),
    "torch.load": ("pt", "int(torch.load(p, weights_only=True)['number'])"),
    "torch.load_mmap": ("pt", "int(torch.load(p, weights_only=True, mmap=True)['number'])"),
    "from_file": ("raw", "int(torch.from_file(p, size=1, dtype=torch.int64)[0])"),
}

# Path -> expression of it, {x} for the format, and which files are there.
_TWO = ("one.{x}", "two.{x}")
_STEPS = ("step1/f.{x}", "step2/f.{x}")
PATHS: dict[str, tuple[str, tuple[str, ...], dict[str, str]]] = {
    "plain": ("D + '/one.{x}'", ("one.{x}",), {}),
    "dots": ("D + '/sub/../one.{x}'", ("one.{x}", "sub/more.{x}"), {}),
    "link": ("D + '/link.{x}'", _TWO, {"link.{x}": "one.{x}"}),
    "link_of_link": (
        "D + '/first.{x}'", _TWO, {"first.{x}": "link.{x}", "link.{x}": "one.{x}"},
    ),
    "folder_link": ("D + '/latest/f.{x}'", _STEPS, {"latest": "step1"}),
    "folder_link_resolved": (
        "str(pathlib.Path(D + '/latest').resolve() / 'f.{x}')", _STEPS, {"latest": "step1"},
    ),
    "realpath": ("os.path.realpath(D + '/link.{x}')", _TWO, {"link.{x}": "one.{x}"}),
    "readlink": (
        "os.path.join(D, os.readlink(D + '/latest'), 'f.{x}')", _STEPS, {"latest": "step1"},
    ),
    "readlink_file": (
        "os.path.join(D, os.readlink(D + '/link.{x}'))", _TWO, {"link.{x}": "one.{x}"},
    ),
    "readlink_program": (
        "os.path.join(D, output('readlink', D + '/latest').strip(), 'f.{x}')", _STEPS,
        {"latest": "step1"},
    ),
}  # fmt: skip


def read(reader: str, path: str) -> Maker:
    """A piece that reads a declared file."""
    kind, expression = {**READERS, **HEAVY}[reader]
    place, names, links = PATHS[path]

    def make(dice: random.Random) -> Piece:
        def filled_in(text: str) -> str:
            return text.replace("{x}", kind)

        files: dict[str, Content] = {
            f"models/d@/{filled_in(name)}": File(kind, two_digits(dice)) for name in names
        }
        declared = tuple(files)
        for link, target in links.items():
            files[f"models/d@/{filled_in(link)}"] = Link(filled_in(target))
        if dice.random() < 0.3:  # the file as the code names it, too
            named = {
                "link": "link.{x}",
                "link_of_link": "first.{x}",
                "folder_link": "latest/f.{x}",
            }
            if path in named:
                declared = (*declared, f"models/d@/{filled_in(named[path])}")
        elif dice.random() < 0.3:
            declared = ("models/d@/**",)
        targets = {
            f"models/d@/{filled_in(link)}": tuple(
                dict.fromkeys((filled_in(target), *map(_folder_of, map(filled_in, names))))
                if link == "latest"
                else (filled_in("one.{x}"), filled_in("two.{x}"))
            )
            for link, target in links.items()
        }
        return Piece(
            f"{reader}, {path}",
            f"p = {filled_in(place)}\nreturn {expression}",
            files,
            noise={"models/d@_unread.txt": File("txt", 10)},
            declared=declared,
            spare=("models/spare.txt",),
            targets=targets,
            light=reader in READERS,
        )

    return make


def _folder_of(name: str) -> str:
    return name.rpartition("/")[0]


def _shared(name: str, expression: str, kind: str, *, light: bool) -> Maker:
    """A file in shared memory, which no recipe declares."""

    def make(dice: random.Random) -> Piece:
        return Piece(
            f"shared memory by {name}",
            f"p = SHARED + '/one@.{kind}'\nreturn {expression}",
            {f"shared/one@.{kind}": File(kind, two_digits(dice))},
            light=light,
        )

    return make


SHARED: dict[str, Maker] = {
    f"shared memory by {name}": _shared(
        name, {**READERS, **HEAVY}[name][1], {**READERS, **HEAVY}[name][0], light=name in READERS
    )
    for name in ("open", "os.open", "cat", "ctypes", "safetensors", "fromfile", "sqlite3")
}
