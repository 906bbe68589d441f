"""Forms of reports: each turns the JSON of some steps into blocks, verdicts and figures."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from onnxbuild.onnxkit.report_page.blocks import Part, ReportSource
from onnxbuild.onnxkit.report_page.forms.benchmark import benchmark, profile
from onnxbuild.onnxkit.report_page.forms.bundle import bundle
from onnxbuild.onnxkit.report_page.forms.quality import (
    evaluation,
    fidelity,
    validation,
    whole,
)
from onnxbuild.onnxkit.report_page.forms.reading import load_times, plain
from onnxbuild.onnxkit.report_page.forms.search import search, sensitivity

Form = Callable[[Sequence[ReportSource]], Iterator[Part]]

FORMS: Mapping[str, Form] = {
    "validation": validation,
    "evaluation": evaluation,
    "whole": whole,
    "fidelity": fidelity,
    "search": search,
    "benchmark": benchmark,
    "sensitivity": sensitivity,
    "profile": profile,
    "load-times": load_times,
    "bundle": bundle,
    "plain": plain,
}
"""A feature names the form of its step kinds' reports in `Feature.shown`; any gate without one is `plain`."""
