"""Packages of all formats in one release: damaged, forged and swapped ones are found, sound ones run."""

import functools
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from onnxbuild.adapters.toolchain.npm_environments import look_here
from onnxbuild.adapters.toolchain.tools import installed_headers
from onnxbuild.catalog import PACKAGE_FORMATS
from onnxbuild.core.digest import Digest, canonical_json
from onnxbuild.core.errors import NotReproducibleError, StepError
from onnxbuild.core.params import from_json, to_json
from onnxbuild.core.target import environment_of, run_by
from onnxbuild.expansion.package_format import RunPackage
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.oci.manifests import FILE_PATH
from onnxbuild.onnxkit.wheels.archive import write_wheel
from onnxbuild.release_format.checksums import check_sums
from onnxbuild.release_format.released import Released, read_release
from onnxbuild.verification.package_runs import replay_packages
from onnxbuild.verification.packages import check_packages
from tests.cli.conftest import QUICK, RECIPE, Project, make_project
from tests.fakes.step_context import run_step
from tests.servers import missing
from tests.verification.conftest import flip, look_at, release_of, sum_again
from tests.verification.forger import Forged

pytestmark = pytest.mark.slow

WITH_NPM = ("node", "web") if shutil.which("npm") and shutil.which("node") else ()
FORMS = ("cpp", "mlflow", "node", "oci", "ort-mobile", "triton", "web", "wheel")
MODEL, WEIGHTS = "model.onnx", "model.onnx.data"


@pytest.fixture(scope="module")
def once(tmp_path_factory) -> Project:
    """One unsigned release with two variants, whose weights are in files of their own, in every format."""
    made = make_project(tmp_path_factory.mktemp("every") / "project")
    made.patience_s = 600
    forms = [each for each in FORMS if each in WITH_NPM or each not in ("node", "web")]
    asked = f"packages: {{{', '.join(f'{each}: {{}}' for each in forms)}}}\n"
    recipe = RECIPE.replace("load}", "load, args: {width: 300}}")
    recipe = recipe.replace("{fp32: none}", "{fp32: none, other: fp16}")
    export = QUICK.replace("}", ", external_data: always}")
    made.write("tiny.yaml", f"{recipe}{export}{asked}")
    for words in (("lock",), ("release", "--version", "1.0", "--allow-dirty")):
        done = made(words[0], "tiny.yaml", *words[1:])
        assert done.code == 0, done.out + done.err
    return made


@dataclass
class Package:
    """A package of variant fp32 in a copy of the release, in the hands of a forger."""

    original: Path
    release: Path
    form: str

    @property
    def name(self) -> str:
        return f"fp32-{self.form}"

    @property
    def folder(self) -> Path:
        return self.release / "packages" / self.name

    @property
    def other(self) -> Path:
        return self.release / "packages" / f"other-{self.form}"

    def file(self, name: str, folder: Path | None = None) -> Path:
        """The file that is opened as one of the bundle's: in the wheel's case the wheel."""
        folder = folder or self.folder
        variant = folder.name.partition("-")[0]
        if self.form == "oci":
            return folder / "blobs/sha256" / self.layers(folder)[name].removeprefix("sha256:")
        if self.form == "wheel":
            return next(folder.glob("*.whl"))
        if self.form == "ort-mobile":
            return folder / "model.ort"
        return folder / {"cpp": "model", "triton": f"tiny-{variant}/1"}.get(self.form, "") / name

    def layers(self, folder: Path) -> dict[str, str]:
        (entry,) = json.loads((folder / "index.json").read_bytes())["manifests"]
        blob = folder / "blobs/sha256" / entry["digest"].removeprefix("sha256:")
        found = json.loads(blob.read_bytes())["layers"]
        return {each["annotations"][FILE_PATH]: each["digest"] for each in found}

    def put(self, name: str, content: bytes) -> None:
        """Have the package open other content as a file; its own digests fit."""
        if self.form == "oci":
            self._put_blob(name, content)
        elif self.form == "wheel":
            wheel = self.file(name)
            with zipfile.ZipFile(wheel) as archive:
                files = {each: archive.read(each) for each in archive.namelist()}
            info = next(each for each in files if each.endswith("/RECORD")).partition("/")[0]
            del files[f"{info}/RECORD"]
            files[next(each for each in files if each.endswith(f"/{name}"))] = content
            write_wheel(wheel, info, files)
        else:
            self.file(name).write_bytes(content)

    def _put_blob(self, name: str, content: bytes) -> None:
        """The index names another manifest, and that another blob; the right one lies there still."""
        index = self.folder / "index.json"
        about = json.loads(index.read_bytes())
        (entry,) = about["manifests"]
        blobs = self.folder / "blobs/sha256"
        manifest = json.loads((blobs / entry["digest"].removeprefix("sha256:")).read_bytes())
        for layer in manifest["layers"]:
            if layer["annotations"][FILE_PATH] == name:
                _describe(blobs, layer, content)
        _describe(blobs, entry, canonical_json(manifest))
        index.write_bytes(canonical_json(about))

    def forged(self, *, honest: bool = True) -> str:
        """The faults of the packages, where all else in the release fits what is there now.

        Args:
            honest: The package's own sums fit, too.
        """
        if honest:
            sum_again(self.folder)
        release = _as_released(self.original)
        now = replace(release, folder=self.release, files=check_sums(self.release).digests)
        try:
            return "\n".join(map(str, check_packages(now)))
        except NotReproducibleError as error:
            return str(error)


@functools.cache
def _as_released(folder: Path) -> Released:
    """What the sound release says of itself; nobody changes it."""
    return read_release(check_sums(folder))


def _describe(blobs: Path, descriptor: dict, content: bytes) -> None:
    digest = Digest.of(content)
    (blobs / digest.sha256).write_bytes(content)
    descriptor |= {"digest": f"sha256:{digest.sha256}", "size": digest.size_bytes}


@pytest.fixture(params=FORMS)
def package(request, once, tmp_path) -> Package:
    form = request.param
    if form in ("node", "web") and not WITH_NPM:
        missing("npm")
    original, folder = release_of(once), tmp_path / "tiny-1.0"
    shutil.copytree(original, folder, ignore=shutil.ignore_patterns("packages"))
    for each in (original / "packages").iterdir():
        copy = (
            shutil.copyfile if each.name == f"fp32-{form}" else os.link
        )  # nothing else is changed
        shutil.copytree(each, folder / "packages" / each.name, copy_function=copy)
    return Package(original, folder, form)


def test_a_sound_release_of_all_formats_verifies(once):
    done = look_at(release_of(once))
    assert done.code == 0, done.out + done.err
    assert (release_of(once) / "variants/fp32" / WEIGHTS).exists()


def _flipped(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


DAMAGES = {
    "bit flipped": lambda _, content: _flipped(content),
    "truncated": lambda _, content: content[: len(content) // 2],
    "swapped": lambda other, _: other,
}


@pytest.mark.parametrize(
    ("name", "damage"),
    [(MODEL, "bit flipped"), (WEIGHTS, "truncated"), (MODEL, "swapped"), (WEIGHTS, "swapped")],
)
def test_another_model_or_other_weights_are_found_though_all_else_is_forged(package, name, damage):
    if package.form == "ort-mobile":
        other, own = (
            package.file(name, each).read_bytes() for each in (package.other, package.folder)
        )
    else:
        bundles = (package.release / "variants" / each / name for each in ("other", "fp32"))
        other, own = (each.read_bytes() for each in bundles)
    changed = DAMAGES[damage](other, own)
    assert changed != own
    package.put(name, changed)
    said = package.forged()
    if package.form == "ort-mobile":
        assert (
            "fp32-ort-mobile/model.ort is not the file that packages/fp32-ort-mobile/manifest.json names"
            in said
        )
    else:
        assert (
            f"packages/{package.name} does not hold the model that variants/fp32/manifest.json names"
            in said
        )
        assert name in said


def test_the_whole_package_of_another_variant_is_found(package):
    shutil.rmtree(package.folder)
    shutil.copytree(package.other, package.folder)
    said = package.forged()
    if package.form == "ort-mobile":
        assert "fp32-ort-mobile/manifest.json is of tiny:other, not of tiny:fp32" in said
    else:
        assert "does not hold the model that variants/fp32/manifest.json names" in said


@pytest.mark.parametrize("package", ["ort-mobile"], indirect=True)
def test_a_model_for_phones_of_another_variant_is_found_though_its_manifest_fits(package):
    path = package.folder / "manifest.json"
    own = json.loads(path.read_text())
    shutil.rmtree(package.folder)
    shutil.copytree(package.other, package.folder)
    other = json.loads(path.read_text()) | {"variant": "fp32"}
    path.write_text(json.dumps(other))
    said = package.forged()
    assert "manifest.json is of a model that was made of another one than variants/fp32's" in said

    path.write_text(json.dumps(other | {"facts": own["facts"]}))
    assert package.forged() == ""  # all of it fits: the signature or --run find it
    for name in ("required_operators.config", "sizes.json"):
        shutil.copyfile(
            package.original / "packages/fp32-ort-mobile" / name, package.folder / name
        )
    said = package.forged()
    assert "packages/fp32-ort-mobile sizes.json is of another model" in said
    assert "required_operators.config lacks operators of its model: ai.onnx:Cast" in said

    for content in (b"no model", package.file(MODEL).read_bytes()[:300]):
        package.put(MODEL, content)
        digest = Digest.of(content)
        other["size_bytes"] += digest.size_bytes - other["files"]["model.ort"]["size_bytes"]
        other["files"]["model.ort"] = to_json(digest)
        path.write_text(json.dumps(other | {"facts": own["facts"]}))
        assert "fp32-ort-mobile/model.ort can't be read: " in package.forged()


def test_verify_refuses_other_weights_though_all_else_is_forged(package):
    if package.form == "ort-mobile":
        pytest.skip("its weights are in the graph's file")
    package.put(WEIGHTS, (package.release / "variants/other" / WEIGHTS).read_bytes())
    Forged(package.release).again_with_packages(package.name)
    done = look_at(package.release)
    assert done.code == 4, done.out + done.err
    assert f"FAILED  packages: packages/{package.name} does not hold the model that" in done.out


def _serve_a_second_version(folder: Path) -> None:
    shutil.copytree(folder / "tiny-fp32/1", folder / "tiny-fp32/2")


def _serve_a_file_more(folder: Path) -> None:
    (folder / "tiny-fp32/1/more.onnx").write_bytes(b"more")


def _open_a_file_more(file: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        shutil.copyfile(folder / MODEL, folder / "more.onnx")
        path = folder / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return change


def _list_a_file_more(folder: Path) -> None:
    index = json.loads((folder / "index.json").read_bytes())
    blobs, (entry,) = folder / "blobs/sha256", index["manifests"]
    manifest = json.loads((blobs / entry["digest"].removeprefix("sha256:")).read_bytes())
    layer = {**manifest["layers"][0], "annotations": {FILE_PATH: "more.json"}}
    manifest["layers"].append(layer)
    _describe(blobs, entry, canonical_json(manifest))
    (folder / "index.json").write_bytes(canonical_json(index))


@pytest.mark.parametrize(
    ("package", "change", "said"),
    [
        ("triton", _serve_a_second_version, "tiny-fp32 holds 2 versions (1, 2), not one"),
        ("triton", _serve_a_file_more, "opens tiny-fp32/1/more.onnx, which is no file of"),
        ("mlflow", _open_a_file_more("MLmodel", f"data: {MODEL}\n", "data: ../more.onnx\n"),
         "is opened from ../more.onnx"),
        ("node",
         _open_a_file_more("index.js", f'MODEL_FILE = "{MODEL}"', 'MODEL_FILE = "../more.onnx"'),
         "is opened from ../more.onnx"),
        ("oci", _list_a_file_more,
         "its artifact has more.json, which is no file of the bundle"),
    ],
    indirect=["package"],
)  # fmt: skip
def test_a_right_model_next_to_the_one_that_is_served_helps_no_forger(package, change, said):
    change(package.folder)
    assert said in package.forged()


def test_a_model_that_is_missing_is_found(package):
    package.file(WEIGHTS).unlink()
    said = package.forged()
    assert package.name in said


def test_a_file_more_is_found(package):
    (package.folder / "more.txt").write_text("more\n")
    said = package.forged(honest=False)
    assert f"packages/{package.name}/SHA256SUMS does not name the files next to it" in said


def test_without_a_forger_the_sums_of_the_release_find_it(package):
    _damage(package, "bit flipped")
    done = look_at(package.release)
    assert done.code == 4
    assert package.name in done.out + done.err


def _damage(package: Package, change: str) -> None:
    file = package.file(WEIGHTS)
    if change == "missing":
        file.unlink()
    elif change == "more":
        (package.folder / "more.txt").write_text("more\n")
    else:
        flip(file)


RUN = [each for each in FORMS if PACKAGE_FORMATS[each].run]
HOW = {
    "bit flipped": "another file than the one that SHA256SUMS names",
    "missing": "is missing",
    "more": "more.txt is there, and SHA256SUMS does not name it",
}


@pytest.fixture
def _cache(once, monkeypatch):
    """What npm installed for the project is found by this process."""
    for name, folder in once.cache.items():
        monkeypatch.setenv(name, folder)


@pytest.mark.parametrize("change", [*HOW, "swapped"])
@pytest.mark.usefixtures("_cache")
def test_the_step_that_runs_a_package_refuses_one_that_is_not_as_it_was(package, change, tmp_path):
    if package.form not in RUN:
        pytest.skip(f"another program runs {package.form}")
    kind, params = _judge(package)
    inputs = {"package": package.folder, "reference": package.release / "golden"}
    if change in HOW:
        _damage(package, change)
        with pytest.raises(StepError, match=HOW[change]):
            run_step(kind, params, tmp_path / "step", inputs)
        return
    shutil.rmtree(package.folder)
    shutil.copytree(package.other, package.folder)
    if package.form in ("cpp", "ort-mobile"):
        with pytest.raises(StepError, match="it is a package of tiny:other, not of tiny:fp32"):
            run_step(kind, params, tmp_path / "step", inputs)
    elif package.form == "wheel":
        with pytest.raises(StepError, match="No module named tiny_fp32"):
            run_step(kind, params, tmp_path / "step", inputs)
    else:
        outcome, _ = run_step(kind, params, tmp_path / "step", inputs)
        assert outcome.findings, outcome  # halves are no floats


def _judge(package: Package):
    """The step that runs the sound package, and its parameters."""
    manifest = json.loads((package.release / "variants/fp32/manifest.json").read_text())
    tolerances = from_json(VariantTolerances, manifest["validation"]["cpu"]["tolerances"])
    form = PACKAGE_FORMATS[package.form]
    asked = RunPackage(package.name, tolerances, "tiny", "fp32", folder=package.folder)
    kind, params = form.run, form.run_params(asked)
    environment = environment_of(params)
    if environment is not None:
        params = run_by(params, to_json(look_here(environment)))
    return kind, params


@pytest.mark.usefixtures("_cache")
def test_verify_runs_the_packages_whose_runtime_is_at_hand_and_names_the_others(once):
    done = look_at(release_of(once), "--run", "--trust-programs")
    assert done.code == 0, done.out + done.err
    checks = [each for each in done.out.splitlines() if not each.startswith("running ")]
    ran = {"oci", "ort-mobile", "wheel", *WITH_NPM}
    ran |= {"cpp"} if installed_headers() else set()
    for form in FORMS:
        if form in ("node", "web") and not WITH_NPM:
            continue
        for variant in ("fp32", "other"):
            state = "ok     " if form in ran else "skipped"
            (line,) = (each for each in checks if each[8:].startswith(f"{variant}-{form}: "))
            assert line.startswith(state), line
            assert ("4 golden points within tolerance" in line) == (form in ran), line


def test_without_node_and_its_packages_verify_says_what_is_missing(once, tmp_path, monkeypatch):
    if not WITH_NPM:
        missing("npm")
    monkeypatch.setenv("ONNXBUILD_CACHE", str(tmp_path))
    release = read_release(check_sums(release_of(once)))
    kept = {"fp32-node": release.about["packages"]["fp32-node"]}
    release = replace(release, about={**release.about, "packages": kept})
    ((name, replayed),) = replay_packages(release, tmp_path, 60.0, trusted=True)
    assert (name, replayed.skipped) == ("fp32-node", "npm has not installed onnxruntime-node here")
