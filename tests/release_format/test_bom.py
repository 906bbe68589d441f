"""The bill of materials of a release that somebody else made."""

import json
import time
from collections.abc import Sequence

from onnxbuild.release_format.bom import bom_fault


def bill(names: Sequence[str]) -> str:
    components = [{"type": "file", "name": name} for name in names]
    return json.dumps(
        {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": components}
    )


def seconds_of(count: int) -> float:
    text, before = bill([str(n) for n in range(count)]), time.process_time()
    assert bom_fault(text) == ""
    return time.process_time() - before


def test_components_take_time_of_their_number_and_not_of_its_square():
    assert bom_fault(bill(["a", "b"])) == ""  # its schema is read once
    assert seconds_of(1600) < 8 * seconds_of(400)


def test_what_is_listed_twice_is_refused():
    assert bom_fault(bill(["a", "b", "a"])) == "it lists something twice"
