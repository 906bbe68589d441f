"""Releases that attack whoever checks them: refused by name, and nothing outside is touched."""

import shutil
import subprocess
import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from onnxbuild.core.errors import BuildError
from onnxbuild.release_format.checksums import check_sums
from onnxbuild.release_format.released import read_release
from onnxbuild.verification.own_recipe import own_recipe
from tests.cli.conftest import Project
from tests.verification.conftest import edit_json, look_at, release_of
from tests.verification.forger import Forged
from tests.verification.hostile import FILE_KEY, brings_its_own_recipe, overwrites_a_file

pytestmark = pytest.mark.slow


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_release_can_not_have_a_session_overwrite_a_file(released):
    victim = released.folder / "victim"
    victim.write_text("precious")
    overwrites_a_file(release_of(released), victim)
    before = files_below(released.folder)
    for arguments in ((), ("--run",), ("--run", "--trust-programs")):
        done = look_at(release_of(released), *arguments)
        assert done.code == 4, done.out
        assert (
            f"FAILED  bundles: variants/fp32/manifest.json has '{FILE_KEY}' in session.config, which "
            "makes a session write files" in done.out
        )
        assert "verified: " not in done.out
    assert files_below(released.folder) == before


@pytest.fixture
def witness():
    """A file where steps may write, too, so that only code that never runs leaves it alone."""
    path = Path("/dev/shm") / f"onnxbuild-{uuid.uuid4()}"
    yield path
    path.unlink(missing_ok=True)


def commit(project: Project, *names: str) -> None:
    def git(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *arguments], cwd=project.folder, check=True)

    if not (project.folder / ".git").exists():
        git("init", "-q", "-b", "main")
    git("add", *names)
    git("commit", "-q", "-m", "x")


def test_a_release_can_not_be_built_from_the_recipe_that_it_brings(released, witness, monkeypatch):
    brings_its_own_recipe(release_of(released), witness)
    monkeypatch.chdir(released.folder)
    plain = look_at(release_of(released), "--rebuild")
    assert plain.code == 4, plain.out
    named = "'recipe/models/helper.py' is Python that onnxbuild does not write"
    assert f"FAILED  checksums: SHA256SUMS names files that no release has: {named}" in plain.out
    assert not witness.exists()


def test_a_recipe_in_a_release_is_refused_whoever_names_it(released, witness, monkeypatch):
    """The same without the files that give it away, and in a project that has committed its releases."""
    folder = release_of(released)
    brings_its_own_recipe(folder, witness)
    code = folder / "recipe/models"
    kept = {path: path.read_text() for path in code.iterdir()}
    for path in kept:
        path.unlink()
    code.rmdir()
    Forged(folder).again()
    (released.folder / "dist/models").mkdir()
    for path, text in kept.items():
        (released.folder / "dist/models" / path.name).write_text(text)
    commit(released, "dist", "tiny.yaml")
    monkeypatch.chdir(released.folder)
    for arguments in ((), ("--recipe", "dist/tiny-1.0/recipe/tiny.yaml")):
        done = look_at(release_of(released), "--rebuild", *arguments)
        assert done.code == 4, done.out
        assert "dist/tiny-1.0/recipe/tiny.yaml is part of a release" in done.err
        assert "verified: " not in done.out
    assert not witness.exists()


@pytest.fixture
def committed(released, monkeypatch):
    """A project with a commit, which is where the command is typed, and its release."""
    text = (released.folder / "tiny.yaml").read_text()
    released.write("untracked.yaml", text)
    outside = released.folder.parent / "outside.yaml"
    outside.write_text(text)
    (released.folder / "link.yaml").symlink_to(outside)
    commit(released, "tiny.yaml", "models", "link.yaml")
    monkeypatch.chdir(released.folder)
    return read_release(check_sums(release_of(released)))


def naming(release, recipe: str):
    return replace(release, lock=replace(release.lock, recipe=recipe))


@pytest.mark.parametrize(
    ("recipe", "code", "named"),
    [
        ("/etc/recipe.yaml", 4, "the recipe is '/etc/recipe.yaml', which is no path inside"),
        ("../project/tiny.yaml", 4, "the recipe is '../project/tiny.yaml', which is no path"),
        ("", 4, "the recipe is '', which is no path inside a project"),
        ("a\0b", 4, "which is no path inside a project"),
        ("link.yaml", 4, "link.yaml is a link that leads out of the project here"),
        ("dist/tiny-1.0/recipe/tiny.yaml", 4, "recipe/tiny.yaml is part of a release"),
        ("untracked.yaml", 2, "untracked.yaml is in no commit of the project here"),
        ("models", 2, "there is no models in the project here"),
        ("nothing.yaml", 2, "there is no nothing.yaml in the project here"),
    ],
)
def test_a_lock_can_not_name_any_file_as_the_recipe(committed, recipe, code, named):
    with pytest.raises(BuildError) as caught:
        own_recipe(naming(committed, recipe), None)
    assert named in caught.value.what
    assert caught.value.exit_code == code
    assert caught.value.fix


def test_a_rebuild_says_which_file_of_which_commit_it_is_from(committed):
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout[:12]
    assert own_recipe(committed, None).description == f"tiny.yaml of commit {head}"
    with Path("tiny.yaml").open("a") as file:
        file.write("# more\n")
    reported = own_recipe(committed, None).description
    assert reported == f"tiny.yaml of commit {head}, changed in the working tree"
    given = own_recipe(committed, Path("untracked.yaml"))
    assert given.description == "untracked.yaml, which is in no commit"


def test_a_repository_within_the_project_vouches_for_nothing(committed):
    inner = Project(Path.cwd() / "vendor")
    inner.write("tiny.yaml", Path("tiny.yaml").read_text())
    commit(inner, "tiny.yaml")
    with pytest.raises(BuildError, match="in no commit of the project here"):
        own_recipe(naming(committed, "vendor/tiny.yaml"), None)


@pytest.mark.parametrize(
    "name", ["notes.txt", "recipe/more.yaml", "golden/more.npz", "reports/x.json"]
)
def test_a_file_that_nothing_names_is_refused(released, name):
    path = release_of(released) / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("x")
    forged = Forged(release_of(released))
    forged.again()
    done = look_at(release_of(released))
    assert done.code == 4
    assert f"FAILED  files: {name} is named neither by release.json nor by a manifest" in done.out


def test_golden_files_of_extreme_rows_are_named_by_their_own_list(released):
    golden = release_of(released) / "golden"
    shutil.copytree(golden, golden / "unusual")
    Forged(release_of(released)).again()
    assert "is named neither" not in look_at(release_of(released)).out
    (golden / "unusual/more.npz").write_bytes(b"x")
    Forged(release_of(released)).again()
    done = look_at(release_of(released))
    assert "files: golden/unusual/more.npz is named neither" in done.out


MANIFEST = "variants/fp32/manifest.json"


def cpu_with(**options):
    """The CPU's options in a manifest."""
    link = [{"name": "CPUExecutionProvider", "options": options}]
    return lambda manifest: manifest["targets"]["cpu"].update(chain=link)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (
            lambda m: m["targets"]["cpu"]["session"]["config"].update({"ep.x.library": "/x.so"}),
            "its session settings have 'ep.x.library', which only a provider or a library of custom",
        ),
        (
            lambda m: m["targets"]["cpu"]["session"]["config"].update({"custom_op.x.y": "1"}),
            "its session settings have 'custom_op.x.y'",
        ),
        (
            cpu_with(backend_path="/x.so"),
            "its options of cpu have 'backend_path', which names a file or a library",
        ),
        (cpu_with(new="1"), "its options of cpu have 'new', which this onnxbuild does not know"),
    ],
)
def test_what_only_a_provider_reads_is_not_applied(released, change, named):
    edit_json(release_of(released) / MANIFEST, change)
    Forged(release_of(released)).again("variants/fp32")
    assert look_at(release_of(released)).code == 0, "releases may have that"
    done = look_at(release_of(released), "--run")
    assert done.code == 3
    assert f"skipped fp32 on cpu: {named}" in done.out
    assert "nothing that the release names could be run here" in done.out


@pytest.mark.parametrize(
    ("key", "named"),
    [
        ("session.optimized_model_filepath", "which makes a session write files"),
        ("ep.context_file_path", "which makes a session write files"),
        ("session.model_external_initializers_file_folder_path", "which no recipe may write"),
        ("session.log_id", "which no recipe may write"),
    ],
)
def test_a_key_that_no_recipe_may_write_is_refused(released, key, named):
    edit_json(
        release_of(released) / MANIFEST,
        lambda m: m["targets"]["cpu"]["session"]["config"].update({key: "x"}),
    )
    Forged(release_of(released)).again("variants/fp32")
    done = look_at(release_of(released))
    assert done.code == 4
    assert f"{MANIFEST} has '{key}' in targets.cpu.session.config, {named}" in done.out
