"""ONNX Runtime's profile of a session, summed up: which operators and nodes take the time."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_KERNEL = "_kernel_time"
_SHOWN_NODES = 20


def node_times(events: Sequence[Mapping[str, Any]], runs: int) -> dict[str, Any]:
    """Return the time per run of each node, over a profile's last runs.

    Args:
        events: Events of the profile's file, in Chrome's trace format; times in microseconds.
        runs: Number of its last runs that count; earlier ones also paid for memory and caches.

    Nodes inside an If, a Loop or a Scan are counted by themselves, and their time not again in what runs them.

    Returns: `run_ms` (the whole run), `operators` (by operator and provider: nodes, ms, and the share of
        all nodes' time) and `nodes` (the slowest 20), each in falling order of time.
    """
    whole = [each for each in events if each.get("name") == "model_run"][-runs:]
    start = min(each["ts"] for each in whole)
    kernels = _own_times(
        [
            each
            for each in events
            if each.get("cat") == "Node" and each["name"].endswith(_KERNEL) and each["ts"] >= start
        ]
    )
    total_us = sum(each["dur"] for each in kernels) or 1
    return {
        "runs": len(whole),
        "run_ms": round(sum(each["dur"] for each in whole) / len(whole) / 1e3, 5),
        "operators": [
            {"operator": operator, "provider": provider, **row}
            for (operator, provider), row in _summed(kernels, _operator, len(whole), total_us)
        ],
        "nodes": [
            {"node": node, "operator": operator, **row}
            for (node, operator), row in _summed(kernels, _node, len(whole), total_us)
        ][:_SHOWN_NODES],
    }


def _own_times(kernels: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the events without the time of those that ran within them, on the same thread.

    An event is written when it ends, so of two with equal times the later one holds the other.
    """
    own = [dict(each) for each in kernels]

    def by_start(number: int) -> tuple[Any, ...]:
        each = kernels[number]
        return each.get("tid", 0), each["ts"], -each["dur"], -number

    around: list[int] = []
    for number in sorted(range(len(own)), key=by_start):
        each = kernels[number]
        while around and not _holds(kernels[around[-1]], each):
            around.pop()
        if around:
            own[around[-1]]["dur"] -= each["dur"]
        around.append(number)
    return own


def _holds(outer: Mapping[str, Any], inner: Mapping[str, Any]) -> bool:
    is_within = bool(inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"])
    return is_within and outer.get("tid", 0) == inner.get("tid", 0)


def _operator(event: Mapping[str, Any]) -> tuple[str, str]:
    return event["args"].get("op_name", ""), event["args"].get("provider", "")


def _node(event: Mapping[str, Any]) -> tuple[str, str]:
    return event["name"].removesuffix(_KERNEL), event["args"].get("op_name", "")


def _summed(
    kernels: Iterable[Mapping[str, Any]], key_of: Any, runs: int, total_us: float
) -> list[tuple[tuple[str, str], dict[str, float]]]:
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    for each in kernels:
        times[key_of(each)].append(each["dur"])
    return [
        (
            key,
            {
                "nodes": round(len(each) / runs, 2),
                "ms": round(sum(each) / runs / 1e3, 5),
                "share": round(sum(each) / total_us, 4),
            },
        )
        for key, each in sorted(times.items(), key=lambda item: -sum(item[1]))
    ]
