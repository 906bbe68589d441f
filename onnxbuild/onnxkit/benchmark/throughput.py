"""A benchmark's figures besides latency: throughput by clients, and the cost of copies to a device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Literal

from onnxbuild.core.axis import Point
from onnxbuild.onnxkit.benchmark.candidate import LoadCost
from onnxbuild.onnxkit.benchmark.candidates import LineUp
from onnxbuild.onnxkit.benchmark.io_binding import copy_times_ms
from onnxbuild.onnxkit.benchmark.memory import resident_bytes, room_bytes
from onnxbuild.onnxkit.benchmark.memory_packing import Need, memory_groups
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.providers.open_on_target import library_of, usable
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import fit_feeds
from onnxbuild.onnxkit.timing.concurrency import Throughput, measure_throughput

Sessions = Literal["one", "each"]


def concurrency(
    line_up: LineUp,
    point: Point,
    feeds: Feeds,
    *,
    clients: Sequence[int],
    sessions: Sessions,
    costs: Mapping[str, LoadCost],
    limit_bytes: int,
) -> dict[str, object]:
    """The report's part on clients.

    Args:
        line_up: Line-up whose variants and programs are measured.
        point: Point to measure at.
        feeds: Feeds at that point.
        clients: Numbers of threads that ask at once.
        sessions: Whether they share one, or have one each with its share of the threads; PyTorch's
            threads are the process's, whoever asks.
        costs: Variant or program -> what it takes alone.
        limit_bytes: Resident memory that this process may take.

    Raises:
        StepError: A variant's sessions don't fit in memory.
    """
    most = max(clients) if sessions == "each" else 1
    equals = line_up.equals
    asked = (*line_up.programs, *line_up.at(point))
    needs = {
        name: Need(
            costs[name].peak_rss_growth_bytes + (most - 1) * costs[name].steady_rss_growth_bytes,
            most * costs[name].steady_rss_growth_bytes,
        )
        for name in asked
        if name not in equals
    }
    measured: dict[str, list[Throughput]] = {}
    room = room_bytes(limit_bytes)
    for group in memory_groups(needs, (), room, line_up.context.where) if needs else []:
        calls = {name: _calls(line_up, name, feeds, sessions, max(clients)) for name in group}
        measured |= measure_throughput(calls, clients)
        del calls
        resident_bytes()  # gives back to the system what they held
    return {
        "point": point.name,
        "sessions": sessions,
        "models": {
            name: [asdict(row) for row in measured[equals.get(name, name)]] for name in asked
        },
    }


def _calls(
    line_up: LineUp, name: str, feeds: Feeds, sessions: Sessions, most: int
) -> list[Callable[[], object]]:
    """Return the calls that clients make: one that all share, or one for each client."""
    if name in line_up.programs:
        open_one = line_up.program_opener(line_up.programs[name])
        return [open_one()(feeds) for _ in range(1 if sessions == "one" else most)]
    folder, settings = line_up.variants[name], line_up.settings(name)
    if sessions == "one":
        return [line_up.opener(folder, settings)()(feeds)]
    share = max(1, settings.intra_op_threads // most)
    opener = line_up.opener(folder, replace(settings, intra_op_threads=share))
    return [opener()(feeds) for _ in range(most)]


def copies(line_up: LineUp, point: Point, feeds: Feeds) -> dict[str, object]:
    """The report's part on copies to and from a device, at a point, of one variant after the other."""
    found: dict[str, dict[str, float]] = {}
    equals = line_up.equals
    for name, folder in line_up.at(point).items():
        if name in equals:
            found[name] = found[equals[name]]
            continue
        session = open_session(
            folder,
            target=usable(line_up.context, line_up.target),
            library=library_of(line_up.context, line_up.target),
            settings=line_up.settings(name),
            where=line_up.context.where,
        )
        inward, outward = copy_times_ms(session, fit_feeds(session, feeds))
        found[name] = {"to_device_ms": round(inward, 5), "to_host_ms": round(outward, 5)}
        del session
    return {"point": point.name, "models": found}


def unbound(line_up: LineUp) -> tuple[str, ...]:
    """Return what `io_binding` means nothing to: programs."""
    if not line_up.programs:
        return ()
    names = ", ".join(line_up.programs)
    return (
        f"`benchmark.io_binding` is about ONNX Runtime's sessions: {names} have nothing to bind",
    )
