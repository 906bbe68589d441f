"""`packages`: other forms of the checked bundles."""

from collections.abc import Iterator

from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.feature import Feature, Section
from onnxbuild.expansion.requested import PACKAGES, PackagesOptions, request_faults


def _faults(parts: Parts) -> Iterator[Fault]:
    yield from request_faults(parts, PACKAGES)


FEATURE = Feature(
    name=PACKAGES,
    sections=(Section(name=PACKAGES, options=PackagesOptions, takes_names=True),),
    faults=_faults,
)
