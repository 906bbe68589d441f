"""A step's own home: declared files at their places, and what was meant where nothing is."""

from __future__ import annotations

import pytest

from onnxbuild.adapters.sandbox.home_folder import lay_home, meant_below_home


@pytest.fixture
def homes(tmp_path):
    """The real home folder, and where a step's own is to be."""
    real = tmp_path / "real"
    (real / ".cache/hub/models--a--b/refs").mkdir(parents=True)
    (real / ".cache/hub/models--a--b/refs/main").write_text("1")
    (real / ".netrc").write_text("secret")
    return str(real), tmp_path / "own"


def test_only_declared_files_are_in_it(homes, tmp_path):
    real, own = homes
    declared = f"{real}/.cache/hub/models--a--b/refs/main"
    lay_home(own, real, [declared, declared, f"{tmp_path}/elsewhere.txt", f"{real}er/x"])
    found = [path.relative_to(own).as_posix() for path in own.rglob("*") if not path.is_dir()]
    assert found == [".cache/hub/models--a--b/refs/main"]
    assert (own / found[0]).read_text() == "1"


def fail(path: str) -> None:
    raise FileNotFoundError("it is not cached") if path else AssertionError


@pytest.mark.parametrize(("looked_for", "meant"), [(".netrc", ".netrc"), ("nothing", None)])
def test_a_file_that_the_real_one_has_is_what_was_meant(homes, looked_for, meant):
    real, own = homes
    lay_home(own, real, [])
    with pytest.raises(FileNotFoundError) as caught:
        fail(f"{own}/{looked_for}")
    found = meant_below_home(caught.value, str(own), real)
    assert found == (None if meant is None else f"{real}/{meant}")
