"""From a worker's answer to a job that ended: what may be believed of it."""

from onnxbuild.adapters.disk.atomic_files import make_folder, store_error
from onnxbuild.building.wiring import Workspace
from onnxbuild.cluster.messages import Answer, failed
from onnxbuild.core.decision import changed_observed
from onnxbuild.core.errors import StepError
from onnxbuild.core.ports import Done, Job
from onnxbuild.engine.decide import current_state


def ended(job: Job, answer: Answer, workspace: Workspace, worker: str) -> Done:
    """Return how a job ended, with its log where it belongs.

    A result fails if its content is not in the store, or if what it was made from is not as it is here.

    Args:
        job: What was asked for.
        answer: What the worker said.
        workspace: The driver's.
        worker: Its name.

    Raises:
        StoreError: The log can't be written.
    """
    try:
        make_folder(job.log.parent)
        job.log.write_text(answer.log, encoding="utf-8")
    except OSError as error:
        raise store_error(error, job.log) from error
    if answer.error is None and (fault := _fault(job, answer, workspace, worker)):
        return failed(fault).done(job)
    return answer.done(job)


def _fault(job: Job, answer: Answer, workspace: Workspace, worker: str) -> StepError | None:
    step, result = job.step.name, answer.result
    for artifact in result.outputs.values():
        for fault in workspace.store.faults(artifact):
            return StepError(f"its output {fault}", where=step, fix="run again")
    now = current_state(result.observed, job.action.outside, workspace.fingerprints)
    if now == result.observed:
        return None
    reasons = "; ".join(map(str, changed_observed(result.observed, now)[:3]))
    return StepError(
        f"the project on the worker {worker} is not as it is here: {reasons} (there -> here)",
        where=step,
        fix="give the worker the same files, and run again",
    )
