"""Report on builds: what the store, git and earlier builds say of recipes, as a page."""

from onnxbuild.reporting.report import ReportPage, report

__all__ = ["ReportPage", "report"]
