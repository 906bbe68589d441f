"""Programs other than ONNX and what is made ahead of time, in a release: whole, run again, attacked."""

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch
import yaml

from onnxbuild.bench.external_models import opened_comparison_models
from onnxbuild.core.errors import BuildError
from onnxbuild.onnxkit.export.torch_wrapping import quiet
from onnxbuild.onnxkit.programs.archives import rewrite_archive
from onnxbuild.release_format.forms import json_bytes
from tests.cli.conftest import QUICK, RECIPE, Project, make_project
from tests.verification.conftest import (
    edit_json,
    flip,
    give_keys,
    key_of,
    look_at,
    release,
    release_of,
    sum_again,
)
from tests.verification.forger import Forged

pytestmark = pytest.mark.slow

SCRIPTED, EXPORTED = "formats/torchscript", "formats/torch-export"
ORT, OPTIMIZED = "ahead-of-time/fp32-ort", "ahead-of-time/fp32-optimized"


def released_with(folder: Path, text: str) -> Project:
    project = make_project(folder / "project")
    project.write("tiny.yaml", f"{RECIPE}{QUICK}{text}")
    give_keys(project)
    locked = project("lock", "tiny.yaml")
    assert locked.code == 0, locked.out + locked.err
    release(project)
    return project


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    text = "formats: [onnx, torchscript, torch-export]\nahead_of_time: {ort: {}, optimized: {}}\n"
    return released_with(tmp_path_factory.mktemp("others"), text)


@pytest.fixture
def others(once, tmp_path):
    return Project(shutil.copytree(once.folder, tmp_path / "project"))


def test_a_release_holds_all_that_a_recipe_delivers_and_says_so(others):
    folder = release_of(others)
    about = json.loads((folder / "release.json").read_text())
    assert set(about["formats"]) == {"torchscript", "torch-export"}
    assert set(about["ahead_of_time"]) == {"fp32-ort", "fp32-optimized"}
    out = others.folder / "artifacts/out/tiny"
    for bundle in (SCRIPTED, EXPORTED, ORT, OPTIMIZED):
        for path in filter(Path.is_file, (folder / bundle).rglob("*")):
            inside = path.relative_to(folder / bundle)
            assert path.read_bytes() == (out / Path(bundle).name / inside).read_bytes()
        shown = subprocess.run(
            [sys.executable, "load.py"],
            cwd=folder / bundle,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert "logits float32 [2, 2]" in shown
    bill = json.loads((folder / "bom.cdx.json").read_text())
    models = {each["bom-ref"]: each for each in bill["components"] if "modelCard" in each}
    assert set(models) == {f"variant:{n}" for n in ("fp32", *about["formats"], "fp32-ort")} | {
        "variant:fp32-optimized"
    }
    reported = {p["name"]: p["value"] for p in models["variant:fp32-optimized"]["properties"]}
    assert reported["onnxbuild:format"] == "optimized"
    assert "onnxbuild:bound_to" in reported
    needs = {each["ref"]: each.get("dependsOn", []) for each in bill["dependencies"]}
    assert any(ref.startswith("pkg:pypi/torch@") for ref in needs["variant:torchscript"])
    assert not any(ref.startswith("pkg:pypi/torch@") for ref in needs["variant:fp32"])
    page = (folder / "README.md").read_text()
    assert "| torch-export | fp32 |" in page
    assert f"| `{OPTIMIZED}/` | " in page
    assert f"| `{ORT}/` | " not in page  # any machine will do
    asked = json.loads((folder / "provenance.intoto.json").read_text())
    external = asked["predicate"]["buildDefinition"]["externalParameters"]
    assert external["formats"] == ["torch-export", "torchscript"]
    assert (folder / "reports/fp32-load-times.json").is_file()


def test_golden_inputs_go_through_all_of_it_if_programs_are_trusted(others):
    plain = others("verify", "dist/tiny-1.0.tar", "--run")
    assert plain.code == 0, plain.out + plain.err
    assert "1 variant, 2 PyTorch programs, 2 ahead-of-time models" in plain.out
    assert "ok      fp32-ort on cpu: 4 golden points within tolerance" in plain.out
    assert "ok      fp32-optimized on cpu: 4 golden points within tolerance" in plain.out
    for name in ("torchscript", "torch-export"):
        assert (
            f"skipped {name} on cpu: a program of PyTorch, a provider's engine or cache, a compiled model, "
            in plain.out
        )
    trusting = others("verify", "dist/tiny-1.0", "--run", "--trust-programs")
    assert trusting.code == 0, trusting.out + trusting.err
    for name in ("torchscript", "torch-export"):
        assert f"ok      {name} on cpu: 4 golden points within tolerance" in trusting.out
    alone = others("verify", "dist/tiny-1.0", "--trust-programs")
    assert (alone.code, "add --run" in alone.err) == (2, True)


def test_what_is_made_for_another_kind_of_machine_is_skipped_by_name(others):
    def newer(manifest):
        manifest["made_for"]["flags"]["avx512_fp16"] ^= True

    edit_json(release_of(others) / OPTIMIZED / "manifest.json", newer)
    whole = Forged(release_of(others))
    whole.again(OPTIMIZED)
    done = look_at(release_of(others), "--run")
    assert done.code == 0, done.out + done.err
    assert "skipped fp32-optimized on cpu: it was made for " in done.out
    assert "avx512_fp16" in done.out


@pytest.mark.parametrize("bundle", [SCRIPTED, OPTIMIZED])
def test_every_file_of_a_bundle_is_guarded(others, bundle):
    folder = release_of(others)
    for path in sorted(filter(Path.is_file, (folder / bundle).rglob("*"))):
        content = path.read_bytes()
        name = path.relative_to(folder).as_posix()
        flip(path)
        flipped = look_at(folder, *key_of(others))
        assert (flipped.code, name in flipped.out) == (4, True), name
        path.unlink()
        gone = look_at(folder)
        assert (gone.code, f"{name} is missing" in gone.out) == (4, True), name
        path.write_bytes(content)
    assert look_at(folder, *key_of(others)).code == 0


def rewritten(path: Path, *, add: str = "", drop: str = "", packed: bool = False) -> None:
    """An archive with a record more, without some, or compressed."""
    with zipfile.ZipFile(path) as archive:
        records = {info.filename: archive.read(info) for info in archive.infolist()}
    kept = {name: content for name, content in records.items() if not drop or drop not in name}
    if add:
        kept[add] = b"\x7fELF"
    method = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in kept.items():
            archive.writestr(name, content)


def break_a_record(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        largest = max(archive.infolist(), key=lambda info: info.file_size)
    content = bytearray(path.read_bytes())
    content[largest.header_offset + 200] ^= 1
    path.write_bytes(content)


def swapped(folder: Path) -> None:
    """What was torch.export's is called TorchScript, and the other way round."""
    path = folder / "release.json"
    about = json.loads(path.read_text())
    one, other = about["formats"]["torchscript"], about["formats"]["torch-export"]
    one["step"], other["step"] = other["step"], one["step"]
    path.write_bytes(json_bytes(about))
    (folder / SCRIPTED).rename(folder / "aside")
    (folder / EXPORTED).rename(folder / SCRIPTED)
    (folder / "aside").rename(folder / EXPORTED)


FORGERIES = {
    "a bit in a record": (
        lambda folder: break_a_record(folder / EXPORTED / "model.pt2"),
        EXPORTED,
        f"{EXPORTED}/model.pt2 is no torch-export file: ",
    ),
    "machine code in a graph": (
        lambda folder: rewritten(folder / EXPORTED / "model.pt2", add="model/data/evil.so"),
        EXPORTED,
        f"{EXPORTED}/model.pt2 is no torch-export file: it holds machine code, model/data/evil.so",
    ),
    "no code": (
        lambda folder: rewritten(folder / SCRIPTED / "model.pt", drop="/code/"),
        SCRIPTED,
        f"{SCRIPTED}/model.pt is no torchscript file: it holds no code of TorchScript",
    ),
    "compressed": (
        lambda folder: rewritten(folder / SCRIPTED / "model.pt", packed=True),
        SCRIPTED,
        "in it is compressed",
    ),
    "no archive": (
        lambda folder: (folder / SCRIPTED / "model.pt").write_bytes(b"PK"),
        SCRIPTED,
        f"{SCRIPTED}/model.pt is no torchscript file: it is no archive of PyTorch",
    ),
    "another file as .ort": (
        lambda folder: shutil.copy(
            folder / "variants/fp32/model.onnx", folder / ORT / "model.ort"
        ),
        ORT,
        f"{ORT}/model.ort is no ort file: it lacks the mark of ONNX Runtime's format",
    ),
    "another file to open": (
        lambda folder: edit_json(
            folder / SCRIPTED / "manifest.json", lambda m: m.update(file="load.py")
        ),
        SCRIPTED,
        f"{SCRIPTED}/load.py is no torchscript file: it is no archive of PyTorch",
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda name: name.replace(" ", "-"))
def test_a_forgery_that_fits_in_everything_but_its_form_is_named(others, forgery):
    forge, bundle, named = FORGERIES[forgery]
    folder = release_of(others)
    whole = Forged(folder)
    whole.again(bundle)
    assert look_at(folder).code == 0, "the forger is not good enough"
    forge(folder)
    whole.again(bundle)
    done = look_at(folder)
    assert done.code == 4
    assert "FAILED  bundles: " in done.out
    assert named in done.out


def test_a_manifest_that_names_other_files_is_named(others):
    folder = release_of(others)
    whole = Forged(folder)
    (folder / SCRIPTED / "extra.txt").write_text("print()")
    whole.again(SCRIPTED, honest=False)
    done = look_at(folder)
    assert done.code == 4
    assert f"{SCRIPTED}/extra.txt is more than {SCRIPTED}/manifest.json names" in done.out
    assert f"{SCRIPTED}/SHA256SUMS does not name the files next to it" in done.out


def test_one_format_called_another_is_named(others):
    folder = release_of(others)
    whole = Forged(folder)
    swapped(folder)
    whole.again()
    done = look_at(folder)
    assert done.code == 4
    assert "manifest.json is of tiny:torch-export; release.json says tiny:torchscript" in done.out


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (
            lambda about: about["ahead_of_time"].update(torchscript=about["variants"]["fp32"]),
            ".ahead_of_time.torchscript has the name of another bundle",
        ),
        (
            lambda about: about.update(variants={}, formats={}, ahead_of_time={}),
            ".variants is empty, and so is all else",
        ),
    ],
)
def test_a_release_can_not_hide_a_bundle_behind_another(others, change, named):
    path = release_of(others) / "release.json"
    about = json.loads(path.read_text())
    change(about)
    path.write_bytes(json_bytes(about))
    sum_again(release_of(others))
    done = look_at(release_of(others))
    assert done.code == 4
    assert named in done.err


def test_a_rebuild_elsewhere_says_bytes_that_are_bound_to_a_machine_from_others(others):
    folder = release_of(others)
    whole = Forged(folder)
    path = folder / "recipe/tiny.lock"
    lock = yaml.safe_load(path.read_text())
    lock["host"]["cpu"] = "another CPU"
    for step, output in (("fp32-optimized/make", "artifact"), ("torchscript/convert", "program")):
        lock["steps"][f"tiny:{step}"]["outputs"][output]["sha256"] = "0" * 64
    path.write_text(yaml.safe_dump(lock))
    whole.again()
    done = others("verify", "dist/tiny-1.0", "--rebuild", "--recipe", "tiny.yaml")
    assert done.code == 4, done.out + done.err
    assert "skipped inputs: not all as locked: host cpu" in done.out
    faults = [line for line in done.out.splitlines() if line.startswith("FAILED")]
    (bound,) = [line for line in faults if "fp32-optimized/make" in line]
    (plain,) = [line for line in faults if "torchscript/convert" in line]
    assert bound.endswith(
        "they can't be compared, since they are bound to the kind of machine that the release was "
        "made on; what was built here was held against the reference by the same gate"
    )
    assert plain.endswith("released as 000000000000")


class Overwrites(torch.nn.Module):
    """Writes four numbers to a file while it computes what is expected of it."""

    def __init__(self, victim: str) -> None:
        super().__init__()
        self.victim = victim

    def forward(self, input):  # noqa: A002 - as the recipe calls it
        mapped = torch.from_file(self.victim, True, 4)
        mapped.fill_(1.0)
        return input[:, :2] + mapped.sum()  # what is not used is not run


def test_a_program_that_is_trusted_still_writes_nothing_outside(others):
    victim = others.folder / "victim"
    victim.write_bytes(b"precious and more than 16 bytes")
    folder = release_of(others)
    with quiet():  # TorchScript is deprecated
        torch.jit.save(torch.jit.script(Overwrites(str(victim))), others.folder / "made.pt")
    rewrite_archive(others.folder / "made.pt", folder / SCRIPTED / "model.pt")
    Forged(folder).again(SCRIPTED)
    done = look_at(folder, "--run", "--trust-programs")
    assert done.code == 3, done.out
    assert "FAILED  torchscript on cpu: PyTorch fails: RuntimeError: " in done.out
    assert "Permission denied" in done.out
    assert victim.read_bytes() == b"precious and more than 16 bytes"
    with quiet():
        torch.jit.load(others.folder / "made.pt")(torch.zeros(2, 4))
    assert victim.read_bytes() != b"precious and more than 16 bytes", "it writes nothing anyway"


def test_the_model_that_is_judged_is_the_one_that_the_manifest_names(others):
    """A bundle with a second model, which a reader of folders would take for the first."""
    folder = release_of(others)
    shutil.copy(folder / ORT / "model.ort", folder / "variants/fp32/model.ort")
    (folder / "variants/fp32/model.onnx").write_bytes(b"no model")
    Forged(folder).again("variants/fp32")
    done = look_at(folder, "--run")
    assert done.code == 4, done.out
    assert "FAILED  fp32 on cpu: ONNX Runtime refuses the model" in done.out


def test_a_loader_that_onnxbuild_never_wrote_is_named(others):
    folder = release_of(others)
    for bundle in ("variants/fp32", SCRIPTED, ORT):
        with (folder / bundle / "load.py").open("a") as file:
            file.write("print('and more')\n")
        Forged(folder).again(bundle)
        done = look_at(folder)
        assert done.code == 4
        assert f"FAILED  bundles: {bundle}/load.py is not the loader that onnxbuild " in done.out


def test_a_release_that_is_measured_next_to_is_read_as_strictly(others):
    def change(about):
        return about["variants"]["fp32"].update(bundle="../../x")

    named = "names no folder with a"
    path = release_of(others) / "release.json"
    about = json.loads(path.read_text())
    change(about)
    path.write_bytes(json_bytes(about))
    with pytest.raises(BuildError, match=r"is damaged: release\.json has changed"):
        opened_for_comparison(release_of(others))
    sum_again(release_of(others))
    with pytest.raises(BuildError) as caught:
        opened_for_comparison(release_of(others))
    assert named in caught.value.what


def opened_for_comparison(path: Path) -> list[str]:
    with opened_comparison_models([path], set()) as models:
        return [each.name for each in models]
