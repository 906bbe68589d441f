"""Links to sources out of the project, refused unless they are declared; and links to the project itself."""

import pytest

pytestmark = pytest.mark.slow


def test_a_source_that_is_a_link_out_of_the_project_is_reported_as_one(project, tmp_path):
    there = tmp_path / "elsewhere.py"
    (project.folder / "models/helper.py").rename(there)
    (project.folder / "models/helper.py").symlink_to(there)
    refused = project.run("--only", "export")
    assert refused.code == 5, refused.out
    assert (
        f"'models/helper.py' is a link that leads out of the project, to {there}; it is read but "
        "not declared"
    ) in refused.out
    assert "`files: [models/helper.py]`" in refused.out
    project.edit("tiny.yaml", "tiny.py:load}", "tiny.py:load, files: [models/helper.py]}")
    taken = project.run("--only", "export")
    assert taken.code == 0, taken.out
    there.write_text(there.read_text().replace("ReLU", "GELU"))
    assert project.run("--only", "export").ran == ["export"]


def test_a_project_is_built_through_a_link_to_it_and_where_it_is_does_not_count(project, tmp_path):
    (tmp_path / "link").symlink_to(project.folder)
    built = project("run", str(tmp_path / "link/tiny.yaml"), "--only", "export")
    assert built.code == 0, built.out
    assert built.ran == ["export"]
    assert project.run("--only", "export").ran == []
    project.edit("models/helper.py", "ReLU", "GELU")
    assert project("run", str(tmp_path / "link/tiny.yaml"), "--only", "export").ran == ["export"]
