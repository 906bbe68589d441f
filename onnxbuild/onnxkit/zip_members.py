"""Members of a ZIP archive that somebody else wrote: none larger than the file that holds it."""

from __future__ import annotations

import zipfile
from collections import Counter
from pathlib import Path


def stored_members(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the members of an archive without compression, to be read in the time that its bytes take.

    Ten megabytes of compressed members, or of members that share their bytes, stand for petabytes.

    Args:
        archive: Opened by its path.

    Raises:
        ValueError: A member is there twice or is compressed, or they have more bytes than the file.
    """
    members = archive.infolist()
    names = Counter(each.filename for each in members)
    if twice := [name for name, count in names.items() if count > 1]:
        raise ValueError(f"it holds {twice[0]} twice")
    if packed := [e.filename for e in members if e.compress_type != zipfile.ZIP_STORED]:
        raise ValueError(f"{packed[0]} in it is compressed")
    there_bytes = Path(str(archive.filename)).stat().st_size
    if sum(each.file_size for each in members) > there_bytes:
        raise ValueError(f"its members claim more bytes than the {there_bytes:,} of the file")
    return members
