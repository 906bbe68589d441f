"""Names of the files of a pipeline's reference and package."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from onnxbuild.onnxkit.data.recorded_calls import CALLS
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter, read_reference

CODE_FILE = "pipeline_code.py"
"""The file of the user's callable; empty where a package can't run it."""

ABOUT_FILE = "about.json"
"""File of a reference with `calls_until`, the number of calls after each sample."""

PIPELINE_FILE, RUN_FILE, PARTS_FILE = "pipeline.json", "run.py", "pipeline_parts.py"
SOUNDS_FILE = "pipeline_sounds.py"


def call_name(number: int) -> str:
    """Return the name of a call's point; names sort as calls do."""
    return f"call-{number:06}"


def calls_in_order(reference: Path, parts: Sequence[str]) -> Iterator[tuple[str, ReferencePoint]]:
    """Yield (component, its inputs and PyTorch's outputs) of every call, in the order of the calls."""
    streams = {name: read_reference(reference / CALLS / name) for name in parts}
    heads = {name: next(stream, None) for name, stream in streams.items()}
    while left := {name: head for name, head in heads.items() if head is not None}:
        name = min(left, key=lambda each: left[each].name)
        yield name, left[name]
        heads[name] = next(streams[name], None)


_FIRST_CALLS_BYTES = 1 << 25


def write_first_calls(reference: Path, folder: Path, parts: Sequence[str]) -> None:
    """Write the calls of the first sample, as the reference has them: a folder for each component that it calls.

    Of large calls, such as those with the keys that an encoder made of a sound, fewer are written: 32 MB of a component, or one.
    """
    written: dict[str, int] = {}
    about = json.loads((reference / ABOUT_FILE).read_text("utf-8"))
    writers: dict[str, ReferenceWriter] = {}
    for number, (name, point) in enumerate(calls_in_order(reference, parts)):
        if number == about["calls_until"][0]:
            break
        if name not in writers:
            (folder / name).mkdir(parents=True)
            writers[name] = ReferenceWriter(folder / name)
        if written.setdefault(name, 0) < _FIRST_CALLS_BYTES:
            writers[name].add(point)
            written[name] += sum(
                each.nbytes for each in (*point.feeds.values(), *point.outputs.values())
            )
    for writer in writers.values():
        writer.finish()
