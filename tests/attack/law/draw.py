"""Programs drawn at random from a seed."""

import random

from tests.attack.law.carriers import CARRIERS
from tests.attack.law.imports import IMPORTS
from tests.attack.law.listings import LISTINGS
from tests.attack.law.looks import LOOKS, STATS
from tests.attack.law.packages import PACKAGES
from tests.attack.law.pieces import Maker
from tests.attack.law.program import Part, Program
from tests.attack.law.reads import HEAVY, PATHS, READERS, SHARED, read

_HEAVY_IN = frozenset({"os.fork", "fork", "pool", "loader"})
_NAMES = ("m{}", "m{}", "m{}", "m{}", "m{}_tokenize", "linecache_m{}")


def makers(groups: frozenset[str]) -> dict[str, dict[str, Maker]]:
    """Group -> name -> piece."""
    reads = {
        f"{reader}, {path}": read(reader, path) for reader in (*READERS, *HEAVY) for path in PATHS
    }
    known = {
        "imports": IMPORTS,
        "listings": LISTINGS,
        "reads": reads,
        "looks": LOOKS,
        "packages": PACKAGES,
        "shared": SHARED,
        "stat": STATS,
    }
    return {name: each for name, each in known.items() if name in groups}


GROUPS = frozenset({"imports", "listings", "reads", "looks", "packages", "shared"})
"""Those that are drawn unless others are asked for: not `stat`, of which times and modes count nowhere."""
_WEIGHTS = {
    "imports": 4, "listings": 3, "reads": 4, "looks": 1, "packages": 3, "shared": 0.4, "stat": 1,
}  # fmt: skip


def draw_part(dice: random.Random, number: int, groups: frozenset[str] = GROUPS) -> Part:
    """A part with its own number."""
    known = makers(groups)
    names = sorted(known)
    group = dice.choices(names, [_WEIGHTS[name] for name in names])[0]
    piece = known[group][dice.choice(sorted(known[group]))](dice).numbered(number)
    fitting = [
        name
        for name, each in sorted(CARRIERS.items())
        if piece.light or each.in_process or name in _HEAVY_IN
    ]
    carrier = CARRIERS[dice.choice(fitting)]
    bases = ["working folder", "working folder", "real folder"]
    if carrier.has_file:
        bases.append("own file")
    return Part(
        number,
        piece,
        carrier.name,
        dice.choice(_NAMES).format(number),
        dice.choice(bases),
        at_top=dice.random() < 0.5,
        at_import=dice.random() < 0.5,
        guarded=dice.random() < 0.5,
    )


def draw(seed: int, groups: frozenset[str] = GROUPS) -> Program:
    """The program of a seed, without edits."""
    dice = random.Random(f"law {seed}")
    count = dice.choice([1, 2, 3, 3, 4, 4, 5, 6])
    parts = tuple(draw_part(dice, n, groups) for n in range(1, count + 1))
    return Program(
        seed, parts, drawn_by="" if groups == GROUPS else f" --groups {','.join(sorted(groups))}"
    )


def matrix(groups: frozenset[str] = GROUPS) -> list[Part]:
    """Each piece once, imported as usual, and each carrier once with a common piece."""
    dice = random.Random("matrix")
    known = makers(groups)
    pieces = [
        make(dice)
        for group, each in known.items()
        for name, make in each.items()
        if group != "reads" or name.endswith(", plain") or name.startswith("open, ")
    ]
    rows = [(piece, "lazy") for piece in pieces]
    for name in CARRIERS if "imports" in groups else ():
        common = ("import", IMPORTS), ("plugins by listdir", LISTINGS)
        rows += [(kind[piece](dice), name) for piece, kind in common]
        rows.append((read("open", "folder_link")(dice), name))
    return [
        Part(
            number,
            piece.numbered(number),
            carrier,
            f"m{number}",
            "working folder",
            at_top=bool(number % 2),
            at_import=bool(number % 4 < 2),
            guarded=True,
        )
        for number, (piece, carrier) in enumerate(rows, 1)
    ]
