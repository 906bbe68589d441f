"""Judge a replay in its fenced process, with the step that judged the model when it was released."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onnxbuild.catalog import RELEASED_FORMATS
from onnxbuild.core.params import from_json
from onnxbuild.core.step import StepKind
from onnxbuild.core.target import run_by
from onnxbuild.onnxkit.sessions.custom_operators import adopt_libraries
from onnxbuild.plugins.bring import bring_plugins, refuse_faulty
from onnxbuild.steps import validate, validate_program
from onnxbuild.verification.replay_context import ReplayContext

_JUDGES = {kind.name: kind for kind in (validate.KIND, validate_program.KIND)}


def judge(job: Mapping[str, Any]) -> dict[str, Any]:
    """Run a step on a release's files.

    Args:
        job: `kind`: the step's; `params`: as JSON; `where`: for messages; `inputs`: name -> path;
            `libraries`: of custom operators; `plugins`: distributions that bring an execution provider.
            `headers`: the folder of ONNX Runtime's C++ headers, or empty; `interpreter`: where Node is, or
            None. The working folder is its own.

    Returns: `metrics` and `findings` of its outcome; a finding is [what, where].

    Raises:
        StepError: The step's.
        PluginError: A plug-in is faulty.
        ValueError: The parameters are none.
    """
    if job["plugins"]:
        refuse_faulty(bring_plugins(names=job["plugins"]))
    kind = _kind(job["kind"])
    params: Any = from_json(kind.params, job["params"])
    if job["interpreter"] is not None:
        params = run_by(params, job["interpreter"])
    inputs = {name: Path(path) for name, path in job["inputs"].items()}
    adopt_libraries(job["libraries"])
    outcome = kind.run(ReplayContext(params, job["where"], Path.cwd(), inputs, job["headers"]))
    return {
        "metrics": dict(outcome.metrics),
        "findings": [[each.what, each.where] for each in outcome.findings],
    }


def _kind(name: str) -> StepKind:
    """A step that judges a bundle, or a package."""
    packaged = (kind for form in RELEASED_FORMATS.values() for kind in form.kinds)
    return _JUDGES.get(name) or next(kind for kind in packaged if kind.name == name)
