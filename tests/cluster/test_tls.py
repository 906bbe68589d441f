"""docs/cluster.md on loopback: certificates, Dask's settings, and who has none stays outside."""

import subprocess

import onnx
import pytest
import yaml

from tests.attack.command import seen
from tests.cluster.clusters import Cluster, begin
from tests.cluster.test_cluster import READY
from tests.onnxkit.models import linear

pytest.importorskip("distributed")
pytestmark = pytest.mark.slow


def test_with_certificates_a_build_runs_and_without_none_does(tmp_path, monkeypatch):
    made = "req -x509 -newkey rsa:3072 -nodes -days 365 -subj /CN=builds -keyout key.pem -out cert.pem"
    subprocess.run(["openssl", *made.split()], cwd=tmp_path, check=True, capture_output=True)
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    roles = {name: {"cert": cert, "key": key} for name in ("scheduler", "worker", "client")}
    comm = {"require-encryption": True, "tls": {"ca-file": cert, **roles}}
    (tmp_path / "dask").mkdir()
    (tmp_path / "dask/tls.yaml").write_text(yaml.safe_dump({"distributed": {"comm": comm}}))
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text("")
    (project / "ready.yaml").write_text(READY)
    onnx.save(linear(), project / "m.onnx")
    monkeypatch.setenv("DASK_CONFIG", str(tmp_path / "dask"))
    with Cluster(project, tmp_path, tls=True) as cluster:
        cluster.add("one")
        run = cluster.run("ready.yaml", "--store", str(tmp_path / "store"))
        assert run.code == 0, run.texts
        monkeypatch.delenv("DASK_CONFIG")
        plain = f"dask://{cluster.address.removeprefix('tls://')}"
        for executor, why in (
            (plain, "gives no answer that Dask"),
            (cluster.executor, "Dask's settings name no certificates for a client"),
        ):
            refused = seen(begin(project, "ready.yaml", "--executor", executor))
            assert refused.code == 2
            assert why in refused.err
