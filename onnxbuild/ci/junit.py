"""A run as JUnit XML: a suite a recipe, a case a step; a gate that fails is a failure, a step that breaks an error.

The form is the one of Apache Ant's JUnit report, which is the strictest that is in use: the order of elements is
fixed, and a case has no attributes but its name, class and time. Readers that allow more read it, too.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from onnxbuild.ci.recorder import Recorder
from onnxbuild.core.errors import EXIT_GATE, BuildError, RecipeErrors
from onnxbuild.core.graph import Graph
from onnxbuild.engine.report import Failure, Report

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML may hold: control characters, halves of surrogate pairs."""


@dataclass(frozen=True, slots=True)
class Case:
    """One test case.

    Attributes:
        classname: What viewers group by: RECIPE.VARIANT, or RECIPE.
        name: The step.
        seconds: Its wall time; 0 where it did not run.
        outcome: `failure`, `error`, `skipped`, or empty where it passed.
        kind: Of a failure or an error: what failed.
        message: One sentence of it; of what was skipped, why.
        text: All of it.
        remark: A line about it for the suite's output.
    """

    classname: str
    name: str
    seconds: float = 0.0
    outcome: str = ""
    kind: str = ""
    message: str = ""
    text: str = ""
    remark: str = ""


def junit_of_run(graph: Graph, report: Report, recorder: Recorder, started: str) -> bytes:
    """Return what happened in a run as XML.

    Args:
        graph: What was asked for.
        recorder: What was noted during the run.
        started: When it began: YYYY-MM-DDTHH:MM:SS.
    """
    suites: dict[str, list[Case]] = {}
    failures = {each.step: each for each in report.failures}
    for name, at in graph.addresses.items():
        step = graph.resolve(name)
        classname = f"{at.recipe}.{at.bundle}" if at.bundle else at.recipe
        local = f"{at.trial}/{at.task_there}" if at.trial else at.task_there
        failure = failures.get(step)
        case = _case((classname, local), name, step, report, recorder, failure=failure)
        suites.setdefault(at.recipe, []).append(case)
    return _document(suites, started)


def junit_of_error(recipes: Sequence[str], error: BuildError, started: str) -> bytes:
    """Return a run that was refused as XML: each fault is an error of its recipe.

    Args:
        recipes: Those that were asked for, as typed.
        error: Why nothing was run.
    """
    faults = error.faults if isinstance(error, RecipeErrors) else (error,)
    cases = [
        Case(
            classname="recipe",
            name=fault.where or "onnxbuild run",
            outcome="error",
            kind=type(fault).__name__,
            message=fault.what,
            text=str(fault),
        )
        for fault in faults
    ]
    return _document({" ".join(recipes) or "onnxbuild": cases}, started)


def _case(
    place: tuple[str, str],
    name: str,
    step: str,
    report: Report,
    recorder: Recorder,
    *,
    failure: Failure | None,
) -> Case:
    classname, local = place
    log = recorder.logs.get(step, "")
    at_log = f", log: {log}" if log else ""
    seconds = recorder.seconds.get(step, 0.0) if name == step else 0.0
    if failure is not None:
        is_gate = failure.exit_code == EXIT_GATE
        text = f"{failure.error}\nlog: {log}" if log else str(failure.error)
        return Case(
            classname, local, seconds, "failure" if is_gate else "error",
            "gate" if is_gate else type(failure.error).__name__, failure.error.what, text,
            f"{name}: failed{at_log}",
        )  # fmt: skip
    if step in report.left_out:
        why = "not applicable"
        return Case(classname, local, outcome="skipped", message=why, remark=f"{name}: {why}")
    if reason := report.skipped(step):
        return Case(
            classname, local, seconds, "skipped", message=reason,
            remark=f"{name}: skipped: {reason}{at_log}",
        )  # fmt: skip
    if step in report.results:
        state = f"built in {seconds:.1f} s" if step in report.built else "cached"
        equal = "" if name == step else f"equal to {step}, "
        return Case(classname, local, seconds, remark=f"{name}: {equal}{state}{at_log}")
    need = report.blocked.get(step)
    why = f"needs {need}" if need else "not run"
    return Case(classname, local, outcome="skipped", message=why, remark=f"{name}: {why}")


def _document(suites: dict[str, list[Case]], started: str) -> bytes:
    root = Element("testsuites")
    for number, (name, cases) in enumerate(suites.items()):
        suite = SubElement(
            root,
            "testsuite",
            {
                "name": _text(name),
                "package": "onnxbuild",
                "id": str(number),
                "timestamp": started,
                "hostname": "localhost",
                "tests": str(len(cases)),
                "failures": _count(cases, "failure"),
                "errors": _count(cases, "error"),
                "skipped": _count(cases, "skipped"),
                "time": f"{sum(case.seconds for case in cases):.3f}",
            },
        )
        SubElement(suite, "properties")
        for case in cases:
            _add(suite, case)
        SubElement(suite, "system-out").text = _text("\n".join(_remarks(cases)))
        SubElement(suite, "system-err")
    indent(root)
    text: str = tostring(root, encoding="unicode")
    return f"<?xml version='1.0' encoding='utf-8'?>\n{text}\n".encode()


def _add(suite: Element, case: Case) -> None:
    given = {"classname": case.classname, "name": case.name, "time": f"{case.seconds:.3f}"}
    element = SubElement(suite, "testcase", {key: _text(each) for key, each in given.items()})
    if case.outcome == "skipped":
        SubElement(element, "skipped", {"message": _text(case.message)})
    elif case.outcome:
        said = {"type": case.kind, "message": _text(case.message)}
        SubElement(element, case.outcome, said).text = _text(case.text)


def _remarks(cases: Iterable[Case]) -> list[str]:
    return [case.remark for case in cases if case.remark]


def _count(cases: Iterable[Case], outcome: str) -> str:
    return str(sum(case.outcome == outcome for case in cases))


def _text(text: str) -> str:
    """Text that XML can hold."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
