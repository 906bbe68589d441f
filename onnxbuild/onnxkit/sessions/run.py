"""Running a session on feeds, whatever precision its inputs have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.model.tensor_types import ort_feeds
from onnxbuild.onnxkit.sessions.open import first_line, session_errors
from onnxbuild.onnxkit.sessions.remote_session import HostedSession

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime


def fit_feeds(session: onnxruntime.InferenceSession, feeds: Feeds) -> Feeds:
    """The feeds that the model takes, float32 as float16 or bfloat16 where it takes that."""
    fitting = {
        value.name: feeds[value.name].astype("float16")
        if value.type == "tensor(float16)" and feeds[value.name].dtype == "float32"
        else feeds[value.name]
        for value in session.get_inputs()
        if value.name in feeds
    }
    return fitting if isinstance(session, HostedSession) else ort_feeds(session, fitting)


def run_sample(
    session: onnxruntime.InferenceSession,
    sample: Feeds,
    number: int,
    outputs: Sequence[str],
    where: str,
) -> list[np.ndarray]:
    """The outputs asked for, of a sample of the calibration data; none for none.

    Args:
        session: A model whose inputs the sample fits.
        sample: Its feeds.
        number: Which it is, for messages.
        outputs: Those to fetch.
        where: `recipe:step`, for messages.

    Raises:
        StepError: ONNX Runtime fails.
    """
    try:
        return session.run(outputs, fit_feeds(session, sample)) if outputs else []
    except session_errors() as error:
        raise StepError(
            f"ONNX Runtime fails on calibration sample {number}: {first_line(error)}",
            where=where,
            fix="see that the sample's sizes are ones the model takes",
        ) from error


def run_session(
    session: onnxruntime.InferenceSession,
    feeds: Feeds,
    where: str = "",
    outputs: Sequence[str] = (),
) -> dict[str, np.ndarray]:
    """Output name -> array, in the graph's order.

    Args:
        session: The model.
        feeds: Its inputs.
        where: `recipe:step`, for messages.
        outputs: Those to fetch; empty for all.

    Raises:
        StepError: ONNX Runtime fails.
    """
    names = list(outputs) or [value.name for value in session.get_outputs()]
    try:
        return dict(zip(names, session.run(names, fit_feeds(session, feeds)), strict=True))
    except session_errors() as error:
        raise StepError(
            f"ONNX Runtime fails: {first_line(error)}",
            where=where,
            fix="see that the sizes are ones the model takes",
        ) from error
