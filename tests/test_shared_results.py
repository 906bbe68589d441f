"""The suite's own shortcut: a project is lent what another one built."""

from tests.cli.conftest import cheap, make_cheap_project  # noqa: F401 - a fixture
from tests.shared_results import SharedResults


def test_what_one_project_built_runs_nothing_in_another(cheap, tmp_path):  # noqa: F811
    results = SharedResults(tmp_path / "shared")
    other = make_cheap_project(tmp_path / "elsewhere" / "project")
    results.lend(other.folder / "artifacts")
    assert not (other.folder / "artifacts").exists(), "there is nothing yet"
    assert cheap.run().ran != []
    results.keep(cheap.folder / "artifacts")
    results.keep(cheap.folder / "artifacts")
    results.lend(other.folder / "artifacts")
    lent = other.run()
    assert (lent.code, lent.ran) == (0, []), lent.out + lent.err
    bundle = "artifacts/out/tiny/fp32/model.onnx"
    assert (other.folder / bundle).read_bytes() == (cheap.folder / bundle).read_bytes()
    other.edit("models/helper.py", "ReLU", "GELU")
    assert "export" in other.run().ran
    assert cheap.run().ran == [], "what is linked is not written"
