"""Pieces that only ask whether something is there."""

import random

from tests.attack.law.contents import Link
from tests.attack.law.formats import File
from tests.attack.law.pieces import Maker, Piece, two_digits

_LOOKS = {
    "open": "try:\n    return open(p).read()\nexcept FileNotFoundError:\n    return 0",
    "os.open": "try:\n    os.open(p, os.O_RDONLY)\nexcept OSError:\n    return 0\nreturn 1",
    "cat": "return output('sh', '-c', 'cat ' + p + ' 2>/dev/null || echo 0')",
    "ctypes": "return by_libc(p)",
    "listdir": "try:\n    return os.listdir(D + '/sub')\nexcept OSError:\n    return 0",
    "scandir": "try:\n    return len(list(os.scandir(D + '/sub')))\nexcept OSError:\n    return 0",
    "glob": "return len(glob.glob(D + '/sub/*'))",
    "readlink": "try:\n    return os.readlink(D + '/link')\nexcept OSError:\n    return 0",
}
_STATS = {
    "exists": "return os.path.exists(p)",
    "isfile": "return os.path.isfile(p)",
    "is_file": "return pathlib.Path(p).is_file()",
    "isdir": "return os.path.isdir(D + '/sub')",
    "islink": "return os.path.islink(D + '/link')",
    "lexists": "return os.path.lexists(D + '/link')",
    "access": "return os.access(p, os.R_OK)",
    "size": "return os.path.getsize(p) if os.path.exists(p) else 0",
    "test -f": "return output('sh', '-c', 'test -f ' + p + ' && echo 1 || echo 0')",
    "mtime": "return os.stat(D + '/there.txt').st_mtime_ns",
    "then_open": "return open(p).read() if os.path.exists(p) else 0",
}


def _looking(name: str, body: str) -> Maker:
    def make(dice: random.Random) -> Piece:
        link = "link" in body
        return Piece(
            name,
            f"p = D + '/sub/maybe.txt'\n{body}",
            {"models/d@/there.txt": File("txt", 10)},
            adds={"models/d@/link": Link("there.txt")}
            if link
            else {"models/d@/sub/maybe.txt": File("txt", two_digits(dice))},
        )

    return make


LOOKS = {f"is it there, {name}": _looking(f"is it there, {name}", b) for name, b in _LOOKS.items()}
STATS = {f"stat, {name}": _looking(f"stat, {name}", body) for name, body in _STATS.items()}
"""Documented as not covered, unless the kernel's view says otherwise: a group of its own."""
