"""A build: its beginning, the loop, the views, its end."""

from dataclasses import dataclass

from onnxbuild.core.errors import EXIT_BUG, EXIT_INTERRUPTED, BuildError
from onnxbuild.core.event import Notice, RunFinished, RunStarted
from onnxbuild.core.graph import Graph
from onnxbuild.core.ports import EventSink, Views
from onnxbuild.engine.loop import Loop, Ports, Setup
from onnxbuild.engine.report import Report

__all__ = ["Builder", "Ports"]


@dataclass(slots=True)
class Builder(Setup):
    """Builds graphs; see Setup for what it takes."""

    def build(self, graph: Graph, run: str) -> Report:
        """Make every step of `graph` and lay its views.

        Args:
            run: The run's id, for its events.

        Returns:
            What happened; a failure is a part of it, not an exception.

        Raises:
            StoreError: The store failed; what was recorded before stays.
        """
        started_s = self.ports.clock.monotonic_s()
        self.ports.events.emit(RunStarted(run, len(graph.steps)))
        loop = Loop(self, graph)
        try:
            report = loop.run()
            lay_views(graph, report, self.ports.views, self.ports.events)
        except BaseException as error:
            self._say_end(run, loop.report, started_s, _exit_code(error))
            raise
        self._say_end(run, report, started_s, report.exit_code)
        return report

    def _say_end(self, run: str, report: Report, started_s: float, exit_code: int) -> None:
        self.ports.events.emit(
            RunFinished(
                run,
                built=len(report.passed_of(report.built)),
                cached=len(report.passed_of(report.cached)),
                failed=len(report.failures),
                blocked=len(report.blocked),
                wall_s=self.ports.clock.monotonic_s() - started_s,
                exit_code=exit_code,
            )
        )


def lay_views(graph: Graph, report: Report, views: Views, events: EventSink) -> None:
    """Lay the folders of all that was made and passed; say which still hold an earlier build.

    Args:
        views: Where the folders are.
        events: Receives what had to be put back.
    """
    artifacts = {
        (name, output): artifact
        for name, result in report.results.items()
        for output, artifact in result.outputs.items()
    }
    failed = {failure.step for failure in report.failures}
    for each in graph.deliverables:
        bundle = each.bundle
        if (bundle.step, bundle.output) not in artifacts or bundle.step in failed:
            stale = views.held(each)
            # a page is replaced by one that shows the failure, see `reporting.failed_build`
            if stale and report.failures and not each.family.is_page:
                events.emit(Notice(f"{stale} still holds an earlier build"))
            continue
        for remark in views.lay(each, artifacts):
            events.emit(Notice(remark))


def _exit_code(error: BaseException) -> int:
    """Return the exit code of the process when `error` goes through to the command line."""
    if isinstance(error, BuildError):
        return error.exit_code
    return EXIT_INTERRUPTED if isinstance(error, (KeyboardInterrupt, SystemExit)) else EXIT_BUG
