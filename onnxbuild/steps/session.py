"""A variant's session settings after a search: the recipe's, with what was found or what a lock says."""

import json
from dataclasses import dataclass

from onnxbuild.core.step import REPORT_FILE, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.sessions.settings import SessionSettings, shown, write_settings


@dataclass(frozen=True, slots=True)
class SessionParams:
    """Parameters that are settled before anything is measured.

    Attributes:
        settings: The recipe's.
        choice: What a lock names, as `SessionSettings.tuned_text` writes it; empty to take what the
            input `tune` has found.
    """

    settings: SessionSettings
    choice: str


def run(context: StepContext) -> Outcome:
    """Write the settings, and apart from them those that can change numbers.

    What is judged does not hang on threads: another winner judges nothing again.
    """
    params: SessionParams = context.params
    chosen = params.choice or _found(context)
    settings = params.settings.with_tuned(chosen)
    write_settings(context.output("settings"), settings)
    write_settings(context.output("judged"), settings.judged())
    return Outcome(metrics={"chosen": chosen, "session": shown(settings)})


def _found(context: StepContext) -> str:
    text = (context.input("tune") / REPORT_FILE).read_text("utf-8")
    return json.dumps(json.loads(text)["tuned"])


KIND = StepKind(
    name="session",
    version=1,
    params=SessionParams,
    inputs=("tune?",),
    outputs={"settings": "session", "judged": "session"},
    toolchain=(),
    run=run,
)
