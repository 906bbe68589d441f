"""Quantize a model with one of Olive's passes and its defaults, in an interpreter that has Olive.

PYTHON olive_worker.py dynamic|static SOURCE.onnx TARGET.onnx CALIBRATION.npz
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from olive.data.registry import Registry
from olive.model import ONNXModelHandler
from olive.passes.olive_pass import create_pass_from_dict
from olive.passes.onnx.quantization import OnnxDynamicQuantization, OnnxStaticQuantization


@Registry.register_dataset()
def frontier_feeds(path: str) -> list[tuple[dict[str, np.ndarray], int]]:
    """(feeds, label) from an archive whose arrays are named NUMBER/INPUT."""
    feeds: dict[int, dict[str, np.ndarray]] = {}
    with np.load(path) as arrays:
        for key in arrays.files:
            number, _, name = key.partition("/")
            feeds.setdefault(int(number), {})[name] = arrays[key]
    return [(feeds[number], 0) for number in sorted(feeds)]


def main() -> None:
    algorithm, source, target, calibration = sys.argv[1:]
    data = {
        "name": "calibration",
        "load_dataset_config": {"type": "frontier_feeds", "params": {"path": calibration}},
        "pre_process_data_config": {"type": "skip_pre_process"},
        "post_process_data_config": {"type": "skip_post_process"},
        "dataloader_config": {"type": "no_auto_batch_dataloader"},
    }
    made = (
        create_pass_from_dict(OnnxDynamicQuantization, {}, disable_search=True)
        if algorithm == "dynamic"
        else create_pass_from_dict(
            OnnxStaticQuantization, {"data_config": data}, disable_search=True
        )
    )
    with tempfile.TemporaryDirectory() as folder:
        named = shutil.copyfile(source, f"{folder}/model.onnx")  # it asks for that extension
        found = made.run(ONNXModelHandler(named), f"{folder}/out")
        shutil.copyfile(found.model_path, Path(target))


if __name__ == "__main__":
    main()
