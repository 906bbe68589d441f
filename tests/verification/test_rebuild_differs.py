"""A rebuild says why bytes are not the same every time, as the step kind says it."""

import pytest

from onnxbuild.catalog import CATALOG
from onnxbuild.core.step import GPU
from onnxbuild.verification.rebuild import _bound


@pytest.mark.parametrize("kind", [name for name, each in CATALOG.items() if each.differs])
def test_a_kind_says_why_two_runs_differ(kind):
    said = _bound(kind, is_other=False)
    assert f"they can't be compared, since {CATALOG[kind].differs};" in said
    assert "held against the reference by the same gate" in said


def test_what_is_made_for_a_gpu_differs_and_a_bound_kind_elsewhere_alone():
    assert all(each.differs for each in CATALOG.values() if GPU in each.toolchain)
    assert _bound("export", is_other=True) == ""
    bound = next(n for n, each in CATALOG.items() if each.host_bound and not each.differs)
    assert _bound(bound, is_other=False) == ""
    assert "bound to the kind of machine" in _bound(bound, is_other=True)
