"""The executor slurm on a machine without Slurm."""

import pytest

from onnxbuild.cluster.slurm import _need_slurm
from onnxbuild.core.errors import UsageError


def test_a_machine_without_slurm_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="slurm needs sbatch, squeue, scancel, not found on PATH"):
        _need_slurm()
