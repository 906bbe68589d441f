"""What counts as a change, with the real git."""

import subprocess

import pytest

from onnxbuild.adapters.git import changes_since, commit_of, export_commit, look
from onnxbuild.core.errors import UsageError

IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


def git(folder, *arguments):
    subprocess.run(["git", *IDENTITY, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repo"
    (folder / "project" / "models").mkdir(parents=True)
    (folder / "project" / "models" / "a ü.py").write_text("one")
    (folder / "project" / "weights.bin").write_text("two")
    (folder / "notes.txt").write_text("three")
    (folder / ".gitignore").write_text("*.cache\n")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first", "--date", "2001-02-03T04:05:06Z")
    return folder


@pytest.fixture
def used(repository):
    project = repository / "project"
    return [project / "models" / "a ü.py", project / "weights.bin"]


def test_a_clean_tree_is_its_commit(repository, used):
    found = look(repository / "project", used)
    assert (found.changed, found.dirty, found.why_none) == ((), False, "")
    assert len(found.commit) == 40
    assert found.committed_s > 1_600_000_000  # when it was committed, not the author's date


def test_a_tracked_file_that_is_edited_staged_or_gone_is_a_change(repository, used):
    (repository / "notes.txt").write_text("edited")
    assert look(repository / "project", used).changed == ("notes.txt",)
    git(repository, "add", "-A")
    assert look(repository / "project", used).changed == ("notes.txt",)
    git(repository, "commit", "-q", "-m", "second")
    assert not look(repository / "project", used).dirty
    used[1].unlink()
    assert look(repository / "project", used[:1]).changed == ("project/weights.bin",)
    git(repository, "mv", "notes.txt", "renamed ü.txt")
    assert look(repository / "project", used[:1]).changed == (
        "notes.txt",
        "project/weights.bin",
        "renamed ü.txt",
    )


def test_an_untracked_file_counts_only_if_it_is_used(repository, used):
    extra, ignored = repository / "project" / "extra.py", repository / "project" / "w.cache"
    extra.write_text("x")
    ignored.write_text("y")
    assert not look(repository / "project", used).dirty
    found = look(repository / "project", [*used, extra, ignored])
    assert found.changed == ("project/extra.py", "project/w.cache")


def test_a_tracked_link_to_what_is_not_tracked_is_a_change(repository, used, tmp_path):
    (tmp_path / "elsewhere.bin").write_text("z")
    link = repository / "project" / "link.bin"
    link.symlink_to(tmp_path / "elsewhere.bin")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "link")
    assert look(repository / "project", [*used, link]).changed == ("project/link.bin",)
    link.unlink()
    link.symlink_to("weights.bin")
    git(repository, "commit", "-q", "-a", "-m", "inside")
    assert not look(repository / "project", [*used, link]).dirty


def test_no_repository_no_commit_and_no_git_each_have_their_reason(tmp_path, monkeypatch):
    assert look(tmp_path, []).why_none == "the project is in no git repository"
    git(tmp_path, "init", "-q")
    assert look(tmp_path, []).why_none == "the repository has no commit yet"
    monkeypatch.setenv("PATH", str(tmp_path))
    found = look(tmp_path, [])
    assert (found.why_none, found.commit, found.dirty) == ("git is not installed", None, True)


def test_what_git_converts_on_the_way_out_counts_where_bytes_are_shipped(repository, used):
    weights = used[1]
    weights.write_bytes(b"one\ntwo\n")
    git(repository, "commit", "-qam", "lines")
    git(repository, "config", "core.autocrlf", "true")
    weights.unlink()
    git(repository, "checkout", "-q", "project/weights.bin")
    assert weights.read_bytes() == b"one\r\ntwo\r\n"
    assert not look(repository / "project", used).dirty
    shipped = look(repository / "project", used, [weights])
    assert shipped.changed == shipped.converted == ("project/weights.bin",)
    assert not look(repository / "project", used, used[:1]).dirty


def test_links_that_lead_out_of_the_project_are_left_out_of_an_export(repository, tmp_path):
    project = repository / "project"
    (project / "absolute").symlink_to("/etc/hostname")
    (project / "outward").symlink_to("../notes.txt")
    (project / "inward").symlink_to("models")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "second")
    folder = tmp_path / "exported"
    folder.mkdir()
    export_commit(project, commit_of(project, "HEAD"), folder)
    assert sorted(each.name for each in folder.iterdir()) == ["inward", "models", "weights.bin"]
    assert (folder / "inward/a ü.py").read_text() == "one"


def test_changes_since_a_commit_are_files_and_the_folders_that_come_or_go(repository):
    project = repository / "project"
    first = commit_of(project, "HEAD")
    (project / "weights.bin").write_text("edited")
    (project / "new" / "deep").mkdir(parents=True)
    (project / "new" / "deep" / "b.py").write_text("untracked")
    (project / "models" / "a ü.py").unlink()
    (project / "models").rmdir()
    (project / "skipped.cache").write_text("ignored")
    git(repository, "add", "project/weights.bin")
    git(repository, "commit", "-q", "-m", "second")
    found = changes_since(project, first)
    assert found.commit == first
    assert found.files == {
        project / "weights.bin": "changed",
        project / "new/deep/b.py": "added",
        project / "models/a ü.py": "deleted",
    }
    assert found.entries == {
        project / "new", project / "new/deep", project / "new/deep/b.py",
        project / "models", project / "models/a ü.py",
    }  # fmt: skip
    assert project / "weights.bin" not in changes_since(project, "HEAD").files


@pytest.mark.parametrize("revision", ["nowhere", "--all", "HEAD:notes.txt", ""])
def test_a_revision_that_names_no_commit_is_refused(repository, revision):
    with pytest.raises(UsageError, match="there is no commit"):
        changes_since(repository, revision)
