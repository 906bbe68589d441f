"""Build the wheel and the sdist of a commit, the same bytes on each machine: `make dist`.

The commit is exported first, so nothing that is not committed gets in. All times are the commit's
(SOURCE_DATE_EPOCH), the umask is 022, and the build uses the setuptools of this environment, which
constraints.txt pins. setuptools writes files' times and owners into an sdist: `normalize` removes them.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def export(commit: str, folder: Path) -> int:
    """Write the files of a commit, and return its time in seconds since 1970.

    Args:
        commit: Any name that git takes.
        folder: An empty one.

    Raises:
        SystemExit: There is no git, no checkout or no such commit.
    """
    listed = _git("log", "-1", "--format=%ct", commit, "--").decode()
    archive = _git("-c", "core.autocrlf=false", "archive", "--format=tar", commit)
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return int(listed)


def build_sdist(source: Path, output: Path, epoch: int) -> Path:
    """Build a tree's sdist and normalize it.

    Args:
        source: The tree; setuptools leaves its .egg-info there.
        output: Folder of the result.
        epoch: Time of all files, in seconds since 1970.
    """
    with tempfile.TemporaryDirectory() as folder:
        _build("--sdist", source, Path(folder), epoch)
        (made,) = Path(folder).iterdir()
        target = output / made.name
        target.write_bytes(normalize(made.read_bytes(), epoch))
    return target


def build_wheel(source: Path, output: Path, epoch: int) -> Path:
    """Build a tree's wheel.

    Args:
        source: The tree; setuptools leaves its .egg-info and build/ there.
        output: Folder of the result.
        epoch: Time of all files, in seconds since 1970.
    """
    with tempfile.TemporaryDirectory() as folder:
        _build("--wheel", source, Path(folder), epoch)
        (made,) = Path(folder).iterdir()
        target = output / made.name
        target.write_bytes(made.read_bytes())
    return target


def unpack(sdist: Path, folder: Path) -> Path:
    """Unpack an sdist and return its one folder."""
    with tarfile.open(sdist) as files:
        files.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    return source


def normalize(archive: bytes, epoch: int) -> bytes:
    """Return a .tar.gz with the same files: sorted names, uid and gid 0, one time, modes 644 and 755.

    Args:
        archive: A .tar.gz of files and folders.
        epoch: Time of all files, in seconds since 1970.
    """
    packed = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive)) as files,
        gzip.GzipFile(
            filename="", mode="wb", fileobj=packed, compresslevel=9, mtime=epoch
        ) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as target,
    ):
        for member in sorted(files.getmembers(), key=lambda member: member.name):
            clean = tarfile.TarInfo(member.name)
            clean.type, clean.size, clean.mtime = member.type, member.size, epoch
            clean.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            target.addfile(clean, files.extractfile(member) if member.isfile() else None)
    return packed.getvalue()


def _build(what: str, source: Path, output: Path, epoch: int) -> None:
    command = [sys.executable, "-m", "build", "--no-isolation", what]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [*command, "--outdir", output, source],
        cwd=output,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        umask=0o022,
        check=False,
    )
    if done.returncode:
        sys.exit(
            f"{done.stdout}\nerror: `{what[2:]}` could not be built\n  fix: make .venv/.installed"
        )


def _git(*arguments: str) -> bytes:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=False)
    except FileNotFoundError:
        sys.exit("error: git is not installed; a commit's files and time come from it")
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip().splitlines()[0]
        sys.exit(
            f"error: git can't read the commit: {why}\n  fix: run it in a checkout; of an sdist: python -m build"
        )
    return done.stdout


def main() -> None:
    """Build both and print their SHA-256."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--commit", default="HEAD", help="commit to build [default: HEAD]")
    parser.add_argument(
        "--output", type=Path, default=ROOT / "dist", help="folder [default: dist]"
    )
    given = parser.parse_args()
    output = given.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        tree, unpacked = Path(folder, "tree"), Path(folder, "unpacked")
        epoch = export(given.commit, tree)
        if given.commit == "HEAD" and _git("status", "--porcelain"):
            print("note: changes that are not committed are left out", file=sys.stderr)
        sdist = build_sdist(tree, output, epoch)
        wheel = build_wheel(unpack(sdist, unpacked), output, epoch)
    for path in (wheel, sdist):
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {os.path.relpath(path)}")


if __name__ == "__main__":
    main()
