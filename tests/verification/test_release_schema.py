"""What a release says of itself: read strictly, and refused by name."""

import json

import pytest

from onnxbuild.core.errors import NotReproducibleError
from onnxbuild.lock.compare import MISSING
from onnxbuild.release_format.checksums import check_sums
from onnxbuild.release_format.forms import json_bytes
from onnxbuild.release_format.released import read_release
from onnxbuild.verification.verify import verify_contents
from tests.verification.conftest import (
    PROVENANCE,
    edit_as_written,
    look_at,
    release_of,
    replace_text,
    sum_again,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda about: about.update(schema_version=99), "description has version 99"),
        (lambda about: about.pop("schema_version"), "it has no 'schema_version'"),
        (lambda about: about.pop("variants"), "it does not say what is in it"),
        (lambda about: about.pop("epoch_s"), "it has no 'epoch_s'"),
        (lambda about: about.update(epoch_s=True), ".epoch_s is no number"),
        (
            lambda about: about["reports"].update({"reports/check.json": ["a"]}),
            ".reports.reports/check.json is no text",
        ),
        (
            lambda about: about["reports"].update({"../../../../etc/hostname": "tiny:check"}),
            ".reports.../../../../etc/hostname names no file of the release",
        ),
        (lambda about: about["variants"]["fp32"].update(golden="../.."), "names no folder"),
        (lambda about: about.update(variants={}), ".variants is empty"),
        (lambda about: about.update(more=1), "it has 'more', which no release has"),
    ],
)
def test_a_release_that_does_not_say_what_is_in_it_is_refused(released, damage, named):
    edit_as_written(release_of(released) / "release.json", damage)
    sum_again(release_of(released))
    done = look_at(release_of(released))
    assert done.code == 4
    assert named in done.err


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda text: "[" * 100_000, "it is nested too deep"),
        (lambda text: text.replace("{", '{"name": "evil",', 1), "it has a key twice"),
        (lambda text: text.replace("{", "{ ", 1), "in other bytes"),
        (lambda text: "5", "it is no mapping"),
    ],
)
def test_a_release_is_reported_once_and_as_releases_are_written(released, damage, named):
    path = release_of(released) / "release.json"
    path.write_text(damage(path.read_text()))
    sum_again(release_of(released))
    done = look_at(release_of(released))
    assert done.code == 4
    assert named in done.err


@pytest.mark.parametrize(
    ("old", "new"), [("packages:\n", "packages:\n  evil: evil\n"), ("# All", "[" * 5000)]
)
def test_a_lock_that_can_not_be_followed_is_no_bug(released, old, new):
    folder = release_of(released)
    replace_text(folder / "recipe/tiny.lock", old, new)
    sum_again(folder)
    done = look_at(release_of(released))
    assert done.code == 4
    assert "can't be followed" in done.err or "this is not a lock" in done.err


def leaf_paths(value, path=()):
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaf_paths(each, (*path, key))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from leaf_paths(each, (*path, number))
    if path:
        yield path


def kind_of(place):
    return tuple("each" if isinstance(key, int) else key for key in place)


@pytest.mark.parametrize("name", ["release.json", PROVENANCE])
def test_any_value_gone_or_replaced_is_refused_by_name(released, name):
    folder = release_of(released)
    path = folder / name
    content = path.read_bytes()
    places = {}
    for place in leaf_paths(json.loads(content)):
        places.setdefault(kind_of(place), place)  # the tenth point is read as the first is
    assert len(places) > 10
    for place in places.values():
        for other in (None, [], {"a": [1]}, 10**400, "\x00\ud800", MISSING):
            value = json.loads(content)
            inner = value
            for key in place[:-1]:
                inner = inner[key]
            if other is MISSING:
                del inner[place[-1]]
            elif inner[place[-1]] == other:
                continue
            else:
                inner[place[-1]] = other
            path.write_bytes(json_bytes(value))
            sum_again(folder)
            try:
                found = list(verify_contents(read_release(check_sums(folder))))
                assert any(each.faults for each in found), (place, other)
            except NotReproducibleError:
                pass
        path.write_bytes(content)
