"""Pieces that list a folder: plug-ins that are then imported, and names of data files."""

import random

from tests.attack.law.formats import File
from tests.attack.law.pieces import Maker, Piece, source, two_digits

_LISTERS = {
    "listdir": "sorted(os.listdir(P))",
    "listdir_bytes": "sorted(os.fsdecode(each) for each in os.listdir(os.fsencode(P)))",
    "listdir_descriptor": "sorted(os.listdir(os.open(P, os.O_RDONLY)))",
    "listdir_chdir": "sorted(inside(P, os.listdir))",
    "scandir": "sorted(each.name for each in os.scandir(P))",
    "scandir_descriptor": "sorted(each.name for each in os.scandir(os.open(P, os.O_RDONLY)))",
    "walk": "sorted(name for _, _, names in os.walk(P) for name in names)",
    "fwalk": "sorted(name for _, _, names, _ in os.fwalk(P) for name in names)",
    "iterdir": "sorted(each.name for each in pathlib.Path(P).iterdir())",
    "Path.glob": "sorted(each.name for each in pathlib.Path(P).glob('*.py'))",
    "Path.rglob": "sorted(each.name for each in pathlib.Path(P).parent.rglob('plug*/*.py'))",
    "glob": "sorted(os.path.basename(each) for each in glob.glob(P + '/*.py'))",
    "glob_root_dir": "sorted(glob.glob('*.py', root_dir=P))",
    "iter_modules": "sorted(each.name + '.py' for each in pkgutil.iter_modules([P]))",
    "walk_packages": "sorted(each.name + '.py' for each in pkgutil.walk_packages([P]))",
    "ls": "sorted(subprocess.run(['ls', P], capture_output=True, text=True).stdout.split())",
    "sh": "sorted(os.path.basename(each) for each in subprocess.run(['sh', '-c', f'echo {P}/*'], "
    "capture_output=True, text=True).stdout.split())",
    "find": "sorted(os.path.basename(each) for each in subprocess.run(['find', P, '-type', 'f'], "
    "capture_output=True, text=True).stdout.split())",
    "python": "sorted(json.loads(subprocess.run([sys.executable, '-c', "
    "'import os, json, sys; print(json.dumps(os.listdir(sys.argv[1])))', P], "
    "capture_output=True, text=True).stdout))",
}


def _plugins(name: str, lister: str) -> Maker:
    def make(dice: random.Random) -> Piece:
        body = (
            f"P = D + '/plug'\nnames = [each for each in {lister} if each.endswith('.py')]\n"
            "sys.path.insert(0, os.path.abspath(P))\n"
            "return [importlib.import_module(each[:-3]).NUMBER for each in names]"
        )
        return Piece(
            f"plugins by {name}",
            body,
            {f"models/d@/plug/q@{letter}.py": source(two_digits(dice)) for letter in "ab"},
            adds={"models/d@/plug/q@c.py": source(21), "models/d@/plug/q@0.py": source(22)},
        )

    return make


def _names(name: str, lister: str) -> Maker:
    """The names of data files that are neither declared nor read."""

    def make(dice: random.Random) -> Piece:
        lister_of_all = lister.replace("*.py", "*")
        return Piece(
            f"names by {name}",
            f"P = D + '/plug'\nreturn {lister_of_all}",
            {f"models/d@/plug/{letter}.txt": File("txt", two_digits(dice)) for letter in "ab"},
            adds={"models/d@/plug/c.txt": File("txt", 23)},
        )

    return make


LISTINGS = {
    **{f"plugins by {name}": _plugins(name, lister) for name, lister in _LISTERS.items()},
    **{
        f"names by {name}": _names(name, lister)
        for name, lister in _LISTERS.items()
        if name not in {"iter_modules", "walk_packages"}
    },
}
