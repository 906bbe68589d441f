"""Entry point in a framework's environment: it runs one function, with NumPy, ONNX and the framework alone.

Modules that this one imports, and those that it is asked to run, import nothing else of onnxbuild.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

REQUEST, ANSWER = "request.json", "answer.json"
_BFLOAT16 = "bfloat16"

Request = Mapping[str, Any]


class Refused(Exception):  # noqa: N818 - a user's mistake, not a bug
    """Error that a user can mend.

    Attributes:
        what: One sentence.
        fix: Something to type.
        where: A file and line of the user's; empty for the step.
    """

    def __init__(self, what: str, fix: str, where: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix
        self.where = where


def main(folder: str) -> None:
    """Run what a folder's request asks for, and write the answer next to it."""
    request = json.loads(Path(folder, REQUEST).read_bytes())
    answer: dict[str, Any]
    try:
        os.chdir(request["working"])  # not before: Python looks for modules where it starts
        _seed()
        module = importlib.import_module(request["module"])
        answer = {"made": getattr(module, request["function"])(request)}
    except Refused as error:
        answer = {"refused": [error.what, error.fix, error.where]}
    except ModuleNotFoundError as error:
        traceback.print_exc()
        answer = {"missing": str(error.name)}
    except Exception as error:  # noqa: BLE001 - the process's edge: the step reports it
        traceback.print_exc()
        answer = {"failed": f"{type(error).__name__}: {first_line(str(error))}"}
    sys.stderr.flush()
    Path(folder, ANSWER).write_text(json.dumps(answer), encoding="utf-8")


def _seed() -> None:
    """Start the generators that a user's callable may draw from at the same place; JAX's take a key each time."""
    import numpy as np

    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - the one that code draws from without saying so


def first_line(text: str) -> str:
    """Return the first line of a text that holds anything."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def users_line(error: BaseException, folders: Sequence[str]) -> str:
    """Return `models/mine.py:7`, the innermost line of an error in one of the folders; empty for none.

    Args:
        error: Error that was caught.
        folders: The import path of the user's code; what is shown is relative to the outermost.
    """
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        holders = [each for each in folders if frame.filename.startswith(f"{each}/")]
        if holders and "/site-packages/" not in frame.filename:
            return f"{Path(frame.filename).relative_to(min(holders, key=len))}:{frame.lineno}"
    return ""


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays; `read_arrays` of another interpreter and NumPy reads them.

    Args:
        arrays: Any types; strings may be objects.
    """
    import numpy as np

    plain: dict[str, Any] = {}
    kinds = []
    for number, array in enumerate(arrays.values()):
        kind = array.dtype.name
        if array.dtype.kind in "OS":
            array = _texts(array)  # noqa: PLW2901 - the same, as NumPy writes it
        elif kind == _BFLOAT16:
            array = array.view(np.uint16)  # noqa: PLW2901 - likewise
        plain[f"a{number}"] = array
        kinds.append(kind)
    about = json.dumps({"names": list(arrays), "kinds": kinds})
    with path.open("wb") as file:
        np.savez(file, about=np.array(about), **plain)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read what `write_arrays` wrote."""
    import numpy as np

    with np.load(path, allow_pickle=False) as found:
        about = json.loads(str(found["about"]))
        arrays = {name: found[f"a{number}"] for number, name in enumerate(about["names"])}
    for name, kind in zip(about["names"], about["kinds"], strict=True):
        if kind == _BFLOAT16:
            import ml_dtypes

            arrays[name] = arrays[name].view(ml_dtypes.bfloat16)
    return arrays


def _texts(array: np.ndarray) -> np.ndarray:
    """Strings, of objects that are text or bytes."""
    import numpy as np

    texts = [
        each.decode("utf-8") if isinstance(each, bytes) else str(each) for each in array.ravel()
    ]
    made: np.ndarray = np.array(texts, np.str_).reshape(array.shape)
    return made
