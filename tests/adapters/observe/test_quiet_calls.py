"""Calls that say nothing about a step are not reported, and do what they do otherwise; all others are."""

import os
import stat
import sys
from pathlib import Path

import pytest

from onnxbuild.adapters.kernel.kernel_watch import reason_not
from onnxbuild.adapters.observe.installed_paths import ABSENT, InstalledPaths
from onnxbuild.adapters.observe.quiet_files import (
    Entry,
    QuietLooks,
    QuietReads,
    install_quiet_listings,
)
from tests.adapters.kernel.test_kernel_watch import World

SCANDIR = os.scandir
OF_FORK = int(sys.version_info >= (3, 12))
"""CPython counts its threads in /proc/self/stat when it forks."""

RGLOB = int(sys.version_info < (3, 13))
"""Later ones list by an os.scandir that `glob` keeps: it is reported, which costs time and no more."""

watched = pytest.mark.skipif(bool(reason_not()), reason="system calls can't be observed here")


class Step:
    """Whether a process is the one that this was made in."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    def __call__(self) -> bool:
        return os.getpid() == self._pid


@pytest.fixture
def world(tmp_path):
    found = World(tmp_path.resolve())
    found.software = found.project.parent / "software"
    (found.software / "package/inner").mkdir(parents=True)
    (found.software / "package/__init__.py").write_text("x")
    found.reported["software"] += [str(found.software)]
    found.reported["readable"] += [str(found.software)]
    return found


def in_fork(act):
    child = os.fork()
    if child == 0:
        act()
        os._exit(0)
    os.waitpid(child, 0)


# --- looks --------------------------------------------------------------------------------------------


@watched
def test_a_look_that_repeats_another_is_not_reported(world):
    path = world.path("a.txt")

    def act():
        QuietLooks((), Step()).install()
        sizes = {os.stat(path).st_size for _ in range(9)}
        sizes |= {Path(path).stat().st_size, os.stat(path, follow_symlinks=True).st_size}
        return 0 if sizes == {1} else 1

    assert world.seen(act)["looked"] == {path: "file"}
    assert world.calls == 1


@watched
def test_a_look_at_a_link_and_one_through_it_are_both_reported(world):
    path = world.path("a.txt")
    (world.project / "link").symlink_to("a.txt")

    def act():
        QuietLooks((), Step()).install()
        for _ in range(3):
            assert stat.S_ISLNK(os.lstat(f"{world.project}/link").st_mode)
            assert stat.S_ISLNK(os.stat(f"{world.project}/link", follow_symlinks=False).st_mode)
            assert stat.S_ISREG(os.stat(f"{world.project}/link").st_mode)

    assert world.seen(act)["links"] == {f"{world.project}/link": "a.txt"}
    assert world.calls == 2
    assert path


@watched
def test_a_look_in_vain_is_reported_once_and_a_file_that_comes_is_found(world):
    def act():
        QuietLooks((), Step()).install()
        made = f"{world.job}/made"
        assert not os.path.exists(f"{world.project}/flag")
        assert not os.path.exists(made)
        Path(made).write_text("x")
        assert os.path.exists(made)
        assert not os.path.exists(f"{world.project}/flag")

    assert world.seen(act)["looked"] == {f"{world.project}/flag": "absent"}
    assert world.calls == 3  # two looks, and the file that is made


@watched
def test_forks_look_for_themselves(world):
    path = world.path("a.txt")

    def act():
        QuietLooks((), Step()).install()
        os.stat(path)
        in_fork(lambda: os.stat(path))

    world.seen(act)
    assert world.calls == 2 + OF_FORK


@watched
def test_a_path_that_means_one_thing_after_another_is_reported_each_time(world):
    world.path("a.txt")
    world.path("deep/a.txt")

    def act():
        QuietLooks((), Step()).install()
        for path in ("a.txt", "/proc/self/cwd/a.txt"):
            os.chdir(world.project)
            os.stat(path)
            os.chdir("deep")
            os.stat(path)

    root = str(world.project)
    assert world.seen(act)["looked"] == {f"{root}/a.txt": "file", f"{root}/deep/a.txt": "file"}
    assert world.calls == 4


# --- listings and reads of installed software -----------------------------------------------------------


def installed_paths(world: World) -> InstalledPaths:
    return InstalledPaths([str(world.software)], Step())


def install_listings(world: World) -> None:
    """As in a step: links are looked for on the way, which is quiet, too."""
    QuietLooks([str(world.software)], Step()).install()
    install_quiet_listings(installed_paths(world))


def listings() -> list[object]:
    """What a program gets that lists the folder that it works in, in several ways."""
    package = os.getcwd()
    with os.scandir(package) as entries:
        first = next(entries)
    return [
        sorted(os.listdir(package)),
        sorted((entry.name, entry.path, entry.is_dir()) for entry in os.scandir(package)),
        sorted((top, sorted(folders), sorted(names)) for top, folders, names in os.walk(package)),
        *(sorted(map(str, Path(package).rglob("*"))) for _ in range(RGLOB)),
        isinstance(first, os.DirEntry),
        os.fspath(first) == first.path,
    ]


@watched
def test_installed_folders_are_listed_as_ever_and_not_reported(world):
    os.chdir(world.software / "package")
    expected = listings()

    def act():
        install_listings(world)
        os.chdir(world.software / "package")
        assert listings() == expected
        for call in (os.listdir, os.scandir):
            with pytest.raises(FileNotFoundError) as error:
                call(f"{world.software}/package/no")
            assert error.value.filename == f"{world.software}/package/no"

    world.seen(act)
    assert world.calls == 0


@watched
def test_a_file_that_is_not_installed_is_looked_for_unseen(world):
    def act():
        QuietLooks([str(world.software)], Step()).install()
        QuietReads(installed_paths(world), (), lambda _: None, lambda _: None).install()
        with pytest.raises(FileNotFoundError) as error:
            open(f"{world.software}/package/entry_points.txt")
        assert error.value.filename == f"{world.software}/package/entry_points.txt"

    world.seen(act)
    assert world.calls == 0


@watched
def test_a_listing_of_what_installed_software_links_to_is_reported(world):
    (world.software / "plugins").symlink_to(world.project)

    def act():
        install_listings(world)
        os.listdir(f"{world.software}/plugins")
        os.listdir(f"{world.software}/plugins/../project")

    seen = world.seen(act)
    assert str(world.project) in {os.path.realpath(path) for path in seen["listed"]}
    assert world.calls == 2


@watched
def test_other_folders_and_forks_are_reported(world):
    def act():
        install_listings(world)
        os.listdir(world.project)
        in_fork(lambda: os.listdir(world.software / "package"))

    assert list(world.seen(act)["listed"]) == [str(world.project)]
    assert world.calls == 2 + OF_FORK


def test_a_path_leads_to_where_its_folder_is(world):
    (world.software / "alias").symlink_to("package")
    (world.software / "out").symlink_to(world.project)
    installed = installed_paths(world)
    package = f"{world.software}/package"
    real, mode = installed.found(f"{world.software}/alias/__init__.py")
    assert (real, stat.S_ISREG(mode)) == (f"{package}/__init__.py", True)
    assert installed.found(Path(package, "no")) == (f"{package}/no", ABSENT)
    assert stat.S_ISLNK(installed.found(f"{world.software}/alias")[1])
    for path in (f"{world.software}/out/a", f"{package}/../package", "package", b"/x", 3, None):
        assert installed.found(path) is None


# --- entries ------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    """A folder with everything that an entry can be."""
    found = tmp_path / "listed"
    (found / "folder").mkdir(parents=True)
    (found / "file").write_text("x")
    os.mkfifo(found / "pipe")
    for name, target in (("to file", "file"), ("to folder", "folder"), ("to nowhere", "no")):
        (found / name).symlink_to(target)
    (found / "in a circle").symlink_to("in a circle")
    return str(found)


def answers(entry) -> dict[str, object]:
    """What an entry says, errors included."""
    asked = {
        "name": lambda: entry.name,
        "path": lambda: entry.path,
        "as a path": lambda: os.fspath(entry),
        "shown": lambda: repr(entry),
        "inode": entry.inode,
        "link": entry.is_symlink,
        "a DirEntry": lambda: isinstance(entry, os.DirEntry),
        "hashed": lambda: len({entry, entry}),
    }
    for follow in (True, False):
        for method in ("is_dir", "is_file", "stat"):
            asked[f"{method} {follow}"] = lambda m=method, f=follow: getattr(entry, m)(
                follow_symlinks=f
            )
    if sys.version_info >= (3, 12):
        asked["junction"] = entry.is_junction
    found = {}
    for what, ask in asked.items():
        try:
            value = ask()
            if isinstance(
                value, os.stat_result
            ):  # but for when it was read: a look at a link reads it
                value = (*value[:7], value.st_mtime_ns, value.st_ctime_ns)
            found[what] = value
        except OSError as error:
            found[what] = (type(error), error.errno, error.filename)
    return found


def test_an_entry_says_what_python_s_own_says(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    with SCANDIR(descriptor) as entries:
        ours = {entry.name: Entry(entry, folder) for entry in entries}
    os.close(descriptor)
    with SCANDIR(folder) as entries:
        expected = {entry.name: answers(entry) for entry in entries}
    assert {name: answers(entry) for name, entry in ours.items()} == expected
    assert len(expected) == 7
