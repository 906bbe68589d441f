"""What the project's own recipes gave, for all tests of a run: one that builds a recipe first gives, others are lent it.

Records and blobs are as good in one store as in another: names are digests, and a record says what it depends on. A
test of what a package or a page holds need not export the model again; a test of builds is lent nothing.
"""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

RECORDS, BLOBS = "ac", "cas"


@dataclass(frozen=True)
class SharedResults:
    """Results that tests share, with those of other workers of xdist, too.

    Attributes:
        folder: Where they are; it need not be there.
    """

    folder: Path

    def lend(self, store: Path) -> None:
        """Put all there is into a store that is to be built in."""
        for part in (
            RECORDS,
            BLOBS,
        ):  # records that come meanwhile may lack a blob: theirs come first
            _link(self.folder / part, store / part)

    def keep(self, store: Path) -> None:
        """Take what was built in a store."""
        for part in (BLOBS, RECORDS):
            _link(store / part, self.folder / part)


def _link(source: Path, target: Path) -> None:
    """Link all files of a folder that are not in the other one."""
    for path in [each for each in source.rglob("*") if each.is_file()]:
        linked = target / path.relative_to(source)
        linked.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.link(path, linked)
