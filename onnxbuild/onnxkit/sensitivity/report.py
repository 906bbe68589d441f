"""Reading a sensitivity report: which nodes stay in fp32."""

from __future__ import annotations

import json
import math

from onnxbuild.core.step import REPORT_FILE, StepContext


def most_sensitive(context: StepContext, share: float) -> list[str]:
    """Names of the nodes to keep, the most sensitive first; none without the input `sensitivity`.

    Args:
        context: Of a quantizer.
        share: Of all nodes in the report that multiply or compute, 0 to 1, rounded up; below 1 it
            leaves one to quantize, or no small model would get through a search's ladder. Looked-up
            tables don't count: a large one in fp32 costs more bytes than all else saves.
    """
    if "sensitivity" not in context.input_names:
        return []
    report = json.loads((context.input("sensitivity") / REPORT_FILE).read_text("utf-8"))
    nodes = [str(each["name"]) for each in report["nodes"] if each.get("op_type") != "Gather"]
    count = math.ceil(round(share * len(nodes), 9))  # 0.07 * 100 is a little more than 7
    return nodes[: min(count, len(nodes) - 1) if share < 1 else count]
