"""`verify` on releases that anybody may have altered: no traceback, no write outside, never verified.

For 30 seconds; ONNXBUILD_FUZZ_S=600 takes longer.
"""

import contextlib
import io
import itertools
import os
import shutil
import tarfile
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, note, seed, settings
from hypothesis import strategies as st

from onnxbuild.core.errors import BuildError
from onnxbuild.release_format.layout import SIGNATURES
from onnxbuild.verification.replay import replay
from onnxbuild.verification.replay_context import ReplayRequest
from tests.cli.conftest import Project, Result
from tests.verification.conftest import key_of, look_at, release_of, sum_again
from tests.verification.forger import Forged
from tests.verification.mutations import (
    Mutation,
    archives,
    contents,
    indices,
    json_values,
    models,
    mutated_bytes,
    paths,
)
from tests.verification.test_other_bundles import released_with

pytestmark = pytest.mark.slow

FUZZ_S = float(os.environ.get("ONNXBUILD_FUZZ_S", "30"))
BUNDLES = ("variants/fp32", "formats/torchscript", "ahead-of-time/fp32-ort")
TEXT = "formats: [onnx, torchscript]\nahead_of_time: {ort: {}, load_times: false}\n"
ONLY_RUN = ("variants/fp32/manifest.json", "golden/points.json")
EXIT_CODES = (1, 2, 3, 4)
A_BATCH = settings(
    max_examples=5, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Project:
    return released_with(tmp_path_factory.mktemp("fuzz"), TEXT)


@dataclass(frozen=True)
class Arena:
    """Where releases are altered and looked at.

    Attributes:
        sound: The project of a release that is sound.
        folder: Of one example after the other.
    """

    sound: Project
    folder: Path

    @property
    def release(self) -> Path:
        return self.folder / "tiny-1.0"

    @property
    def victim(self) -> Path:
        return self.folder / "victim"

    def altered(self, mutation: Mutation, seal: str) -> bool:
        """A copy of the release, altered and sealed again; False if nothing but signatures differs."""
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "temp").mkdir(parents=True)
        self.victim.write_text("precious")
        shutil.copytree(release_of(self.sound), self.release)
        mutation.do(self.release, self.victim)
        with contextlib.suppress(Exception):  # a forger who trips over his own forgery stops there
            if seal == "sums":
                sum_again(self.release)
            elif seal == "all":
                changed = state(self.release, content_alone=True).items()
                sound = state(release_of(self.sound), content_alone=True)
                names = [name for name, content in changed if sound.get(name) != content]
                touched = {b for b in BUNDLES for name in names if name.startswith(f"{b}/")}
                Forged(self.release).again(*sorted(touched))
        return unsigned(self.release) != unsigned(release_of(self.sound))

    def look(self, path: Path, *arguments: str) -> Result:
        """`verify`, and whether it has left all as it was."""
        before = state(self.folder)
        done = look_at(path, *arguments)
        assert state(self.folder) == before, "it wrote outside of its scratch folder"
        assert not Path("/dev/shm/onnxbuild-fuzz").exists()
        assert done.code == 0 or done.code in EXIT_CODES, done
        assert ("verified: " in done.out or "consistent: " in done.out) == (done.code == 0)
        assert "\x1b" not in done.out + done.err
        return done


def state(folder: Path, *, content_alone: bool = False) -> dict[str, object]:
    """Path below a folder -> what is there: bytes and mode, where a link leads, None for a folder."""
    found: dict[str, object] = {}
    for base, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(base, name)
            shown = path.relative_to(folder).as_posix()
            if path.is_symlink():
                found[shown] = str(path.readlink())
            elif path.is_file():
                found[shown] = (path.read_bytes(), 0 if content_alone else path.stat().st_mode)
            elif not content_alone:
                found[shown] = None
    return found


def unsigned(folder: Path) -> dict[str, object]:
    """What a release says without its signatures, whose bytes count with a key alone."""
    return {name: each for name, each in state(folder).items() if name not in SIGNATURES}


@pytest.fixture
def arena(sound, tmp_path, monkeypatch) -> Arena:
    folder = tmp_path / "arena"
    monkeypatch.setenv("TMPDIR", str(folder / "temp"))
    monkeypatch.setattr(tempfile, "tempdir", None)  # look at the variable again
    return Arena(sound, folder)


_MOST_BATCHES = 50


def for_seconds(seconds: float, check, enough=lambda: True) -> None:
    """A property, tried with ever new examples: the same ones each time, unless a time is asked for.

    On a busy machine it takes longer, until `enough` says that there was something to try.
    """
    end_s = time.monotonic() + seconds
    for number in itertools.count():
        if time.monotonic() >= end_s and (enough() or number > _MOST_BATCHES):
            return
        if "ONNXBUILD_FUZZ_S" not in os.environ:
            seed(number)(check)
        check()


def test_a_release_in_which_one_thing_is_another_is_never_verified(arena):
    count = 0

    @A_BATCH
    @given(
        mutation=st.one_of(json_values(), json_values(), paths(), contents()),
        seal=st.sampled_from(["no", "sums", "all"]),
    )
    def check(mutation: Mutation, seal: str) -> None:
        nonlocal count
        note(mutation.reported)
        differs = arena.altered(mutation, seal)
        count += differs
        if differs:
            assert arena.look(arena.release, *key_of(arena.sound)).code != 0
        if differs and seal != "all":
            assert arena.look(arena.release).code != 0
        else:
            arena.look(arena.release)

    for_seconds(FUZZ_S * 0.35, check, lambda: count > 5)
    assert count > 5


def test_an_archive_in_which_one_thing_is_another_is_never_verified(arena):
    sound_archive = Path(f"{release_of(arena.sound)}.tar").read_bytes()

    @A_BATCH
    @given(
        how=st.sampled_from(["flip", "cut", "insert", "repeat", "header", "member"]),
        at=indices,
        piece=st.binary(min_size=1, max_size=64),
        name=st.sampled_from(
            ["../victim", "/tmp/victim", "tiny-1.0/x", "tiny-1.0/README.md", "x/y"]
        ),
        kind=st.sampled_from(list(b"0123456789gxLKS\x00")),
    )
    def check(how: str, at: int, piece: bytes, name: str, kind: int) -> None:
        shutil.rmtree(arena.folder, ignore_errors=True)
        (arena.folder / "temp").mkdir(parents=True)
        arena.victim.write_text("precious")
        path = arena.folder / "tiny-1.0.tar"
        path.write_bytes(mutated_archive(sound_archive, how, at, piece, (name, kind)))
        if path.read_bytes() != sound_archive:
            assert arena.look(path).code != 0

    for_seconds(FUZZ_S * 0.15, check)


def mutated_archive(
    content: bytes, how: str, at: int, piece: bytes, member: tuple[str, int]
) -> bytes:
    """Bytes that are others; a field of a header that is another, with a checksum that fits; a member more."""
    if how == "member":
        file = io.BytesIO(content)
        with tarfile.open(fileobj=file, mode="a") as archive:
            info = tarfile.TarInfo(member[0])
            info.type, info.linkname, info.size = bytes([member[1]]), "../victim", 0
            archive.addfile(info)
        return file.getvalue()
    if how != "header":
        return mutated_bytes(content, how, at, piece)
    starts = [n for n in range(0, len(content), 512) if content[n + 257 : n + 262] == b"ustar"]
    start = starts[at % len(starts)]
    header = bytearray(content[start : start + 512])
    field = at % (148 - len(piece))  # before the checksum
    header[field : field + len(piece)] = piece
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return content[:start] + bytes(header) + content[start + 512 :]


def test_models_and_golden_files_that_are_others_do_no_harm_when_they_are_run(arena):
    """Without the checks that come before: what is run is run, whatever it is."""
    judged = 0

    @A_BATCH
    @given(mutation=st.one_of(models(), models(), archives(), json_values(ONLY_RUN)))
    def check(mutation: Mutation) -> None:
        nonlocal judged
        note(mutation.reported)
        arena.altered(mutation, "no")
        scratch = arena.folder / "temp/scratch"
        scratch.mkdir()
        golden = arena.release / "golden"
        before = state(arena.folder)
        asked = ReplayRequest(arena.release / "variants/fp32", golden, scratch, (), False, 20.0)
        with contextlib.suppress(BuildError):
            judged += sum(not each.skipped for each in replay(asked))
        shutil.rmtree(scratch)
        before.pop("temp/scratch")
        assert state(arena.folder) == before, "it wrote outside of its scratch folder"
        assert not Path("/dev/shm/onnxbuild-fuzz").exists()

    for_seconds(FUZZ_S * 0.4, check)
    assert judged, "nothing was ever run"


def test_altered_models_are_run_as_part_of_a_release_too(arena):
    @A_BATCH
    @given(mutation=st.one_of(models(), archives()))
    def check(mutation: Mutation) -> None:
        note(mutation.reported)
        arena.altered(mutation, "all")
        arena.look(arena.release, "--run", "--timeout", "20")

    for_seconds(FUZZ_S * 0.1, check)


def test_the_release_that_is_altered_is_sound(arena):
    nothing = Mutation("nothing", lambda folder, victim: None)
    assert not arena.altered(nothing, "no")
    assert arena.look(arena.release, *key_of(arena.sound)).code == 0
    arena.altered(nothing, "all")
    assert arena.look(arena.release, "--run").code == 0
