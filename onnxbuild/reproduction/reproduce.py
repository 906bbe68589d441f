"""Build everything again from nothing, elsewhere, in other surroundings: are the bytes the same?"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.adapters.clock import SystemClock
from onnxbuild.adapters.console.sinks import FanOut
from onnxbuild.adapters.disk.atomic_files import make_folder
from onnxbuild.building.api import BuildResult, Request
from onnxbuild.building.choices import build_chosen
from onnxbuild.building.wiring import RunOptions
from onnxbuild.core.errors import EXIT_GATE, NotReproducibleError, UsageError
from onnxbuild.core.ports import EventSink
from onnxbuild.reproduction.first_divergence import Divergence
from onnxbuild.reproduction.rounds import Rounds
from onnxbuild.reproduction.variations import described, surroundings_of_round


@dataclass(frozen=True, slots=True)
class Reproduction:
    """Result of a reproduction.

    Attributes:
        build: The ordinary build; nothing else was done if a step failed.
        compared: Steps whose outputs were compared.
        left_out: The others: they measure times, or a gate that failed kept them from being built.
        rounds: What was varied, for each fresh build.
        wall_s: All fresh builds together.
        divergence: Where one differed; None if none did.
        error: The same for people.
    """

    build: BuildResult
    compared: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    rounds: tuple[tuple[str, ...], ...] = ()
    wall_s: float = 0.0
    divergence: Divergence | None = None
    error: NotReproducibleError | None = None

    @property
    def exit_code(self) -> int:
        """0 only if the build passed and every byte was the same."""
        return self.error.exit_code if self.error is not None else self.build.exit_code


def reproduce(
    request: Request,
    options: RunOptions | None = None,
    events: Sequence[EventSink] = (),
    *,
    times: int = 1,
    keep: Path | None = None,
) -> Reproduction:
    """Bring recipes up to date in the store, then build them from nothing and compare every artifact.

    What is delivered below out/ stays as it is.

    A build that fails a gate is compared, too: a model that is another one each time fails, and this
    explains why.

    Each fresh build has an empty store, and a copy of the project in another folder that holds only
    what the build was recorded to use; its steps have another hash seed, number of cores, temporary
    folder, home folder, time zone, locale and umask. It ends with the first build that differs.

    Args:
        options: How to use the machine.
        events: Sinks for all events.
        times: How many fresh builds; each has other surroundings.
        keep: An empty folder to work in and to leave as it is; None for one that is removed.

    Raises:
        RecipeErrors, UsageError: The request is faulty, or `keep` is not empty.
        NotReproducibleError: The recipes can't be loaded from what was recorded.
        StepError: An input changed meanwhile.
        StoreError: A store, or the folder, can't be used.
    """
    chosen = options or RunOptions()
    if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise UsageError(f"{keep} is not an empty folder", fix="name a new one: --keep FOLDER")
    request, built = build_chosen(request, chosen, events, lay=False)
    if built.exit_code not in {0, EXIT_GATE}:
        return Reproduction(built)
    clock = SystemClock()
    started_s = clock.monotonic_s()
    divergence = error = None
    rounds: list[tuple[str, ...]] = []
    with _work_folder(keep) as folder:
        fresh_builds = Rounds(
            request, chosen, FanOut(events), built, folder, kept=keep is not None
        )
        compared = fresh_builds.graph.names()
        for number in range(1, times + 1):
            around = surroundings_of_round(number, str(request.project))
            rounds.append(tuple(described(around).values()))
            found = fresh_builds.build(number, around)
            if found is not None:
                divergence, error = found
                break
    return Reproduction(
        build=built,
        compared=compared,
        left_out=tuple(name for name in built.graph.names() if name not in compared),
        rounds=tuple(rounds),
        wall_s=clock.monotonic_s() - started_s,
        divergence=divergence,
        error=error,
    )


@contextmanager
def _work_folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="onnxbuild-reproduce-") as folder:
            yield Path(folder).resolve()
        return
    make_folder(keep)
    yield keep.resolve()
