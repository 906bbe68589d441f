"""Plug-ins are found, imported, and in the catalog, the schema and the keys; what changes is noticed."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from onnxbuild import catalog
from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.toolchain.distributions import Distributions
from onnxbuild.adapters.toolchain.fingerprints import DiskFingerprints
from onnxbuild.building.recipe_cache import program_files
from onnxbuild.plugins.bring import bring_plugins, plugin_files, refuse_faulty
from onnxbuild.providers import is_known, provider_names
from onnxbuild.recipe.schema.aliases import meaning
from onnxbuild.recipe.schema.recipe_schema import recipe_schema, rendered_schema
from onnxbuild.recipe.schema.reference_page import reference_markdown
from tests.plugins.fake_distributions import KIND, install, project

FEATURES = f'''{KIND}
@dataclass(frozen=True)
class Options:
    """How much of it."""

    amount: int = option(3, help="how many toasts", minimum=1)


FEATURES = (
    Mode(name="toasted", precision="int8", tolerances={{}}, precision_of=lambda o: "int8",
         model=lambda scope, variant: None, options=Options, words="crisp"),
    Feature(name="bread", sections=(Section(name="bread", options=Options),)),
    PackageFormat(name="bag", options=Options, help="in a bag", kind=KIND, params=lambda packaged: packaged.options),
    Provider("oven", "OvenExecutionProvider", options={{"heat": ProviderOption("integer", "how hot")}}),
)
'''
FEATURE = f"{KIND}\nFEATURE = Feature(name='own', kinds=(KIND,))\n"


def digest(name: str, folder: Path) -> str | None:
    stats = StatCache(Index(Path(":memory:")))
    return DiskFingerprints(
        folder, stats, Distributions(stats), plugins=catalog.plugins
    ).distribution(f"<plug-in {name}>")


def test_what_a_distribution_brings_is_in_the_catalog_the_schema_and_the_reference_page(site):
    install(site, "my-toast", FEATURES)
    (plugin,) = [each for each in bring_plugins() if each.name == "my-toast"]
    assert (plugin.version, plugin.fault) == ("1.0", None)
    assert {"toasted"} <= catalog.MODES.keys()
    assert {"fake-step"} <= catalog.CATALOG.keys()
    assert is_known("oven")
    schema = rendered_schema()
    assert "toasted" in schema["$defs"]["variant"]["anyOf"][0]["enum"]
    assert (
        schema["$defs"]["mode_toasted"]["properties"]["amount"]["description"] == "how many toasts"
    )
    assert schema["properties"]["bread"]["properties"]["amount"]["minimum"] == 1
    names, mapping = schema["properties"]["packages"]["anyOf"]
    assert "bag" in names["items"]["enum"]
    assert "bag" in mapping["properties"]
    assert "heat" in schema["$defs"]["options_oven"]["properties"]
    assert "amount" in json.dumps(recipe_schema()["$defs"]["mode_toasted"])
    page = reference_markdown()
    assert "A variant of mode `toasted`" in page
    assert "Options of the provider `oven`" in page
    assert meaning("crisp", catalog.MODES) == "toasted"


def test_without_plugins_all_is_as_it_was(site):
    before = json.dumps(rendered_schema())
    module = install(site, "my-toast", FEATURES)
    bring_plugins()
    assert json.dumps(rendered_schema()) != before
    (site / "my_toast-1.0.dist-info" / "entry_points.txt").unlink()
    assert not [each for each in bring_plugins() if each.name == "my-toast"]
    assert json.dumps(rendered_schema()) == before
    assert "oven" not in provider_names()
    assert module.exists()


def test_each_thread_has_the_plugins_that_it_brought(tmp_path):
    """Two threads of one process build two projects at once: neither sees the other's modes."""
    for name in ("left", "right"):
        (tmp_path / name).mkdir()
        own = [line for line in FEATURES.splitlines() if "Provider(" not in line]
        project(tmp_path / name, "\n".join(own).replace("toasted", f"{name}_toasted"))
    at_once = Barrier(2, timeout=60)

    def seen(name: str) -> tuple[list[str], bool]:
        refuse_faulty(bring_plugins(tmp_path / name))
        at_once.wait()
        modes = [mode for mode in catalog.MODES if mode.endswith("_toasted")]
        is_mine = all(str(tmp_path) not in file or f"/{name}/" in file for file in plugin_files())
        return modes, is_mine

    with ThreadPoolExecutor(2) as threads:
        left, right = threads.map(seen, ("left", "right"))
    assert left == (["left_toasted"], True)
    assert right == (["right_toasted"], True)
    assert not catalog.plugins()


def test_a_step_kind_has_its_distribution_in_its_toolchain(site):
    install(site, "my-toast", FEATURES)
    bring_plugins()
    kind = catalog.CATALOG["fake-step"]
    assert kind.toolchain == ("my-toast", "<plug-in my-toast>")
    assert not kind.user_code


def test_an_edit_of_an_installed_file_changes_the_digest_and_is_imported_again(site, tmp_path):
    module = install(site, "my-toast", FEATURES)
    bring_plugins()
    before = digest("my-toast", tmp_path)
    assert before is not None
    assert before.startswith("my-toast 1.0 ")
    module.write_text(FEATURES.replace("how many toasts", "how many slices of it"))
    bring_plugins()
    assert digest("my-toast", tmp_path) != before
    shown = rendered_schema()["$defs"]["mode_toasted"]["properties"]["amount"]["description"]
    assert shown == "how many slices of it"


def test_an_editable_distribution_counts_with_all_its_sources(site, tmp_path):
    install(site, "my-toast", FEATURES)
    origin = tmp_path / "checkout"
    (origin / "other").mkdir(parents=True)
    (origin / "other" / "lazy.py").write_text("X = 1\n")
    (origin / ".venv").mkdir()
    (origin / ".venv" / "x.py").write_text("")
    bundle = origin / "artifacts" / "out" / "demo"
    for folder in (bundle, origin / "artifacts" / "cas", origin / "artifacts" / "ac"):
        folder.mkdir(parents=True)
    (bundle / "load.py").write_text("")
    url = {"url": f"file://{origin}", "dir_info": {"editable": True}}
    (site / "my_toast-1.0.dist-info" / "direct_url.json").write_text(json.dumps(url))
    (plugin,) = [each for each in bring_plugins() if each.name == "my-toast"]
    assert str(origin / "other" / "lazy.py") in plugin.files
    assert str(origin / ".venv" / "x.py") not in plugin.files
    assert str(bundle / "load.py") not in plugin.files  # what its own builds deliver
    before = digest("my-toast", tmp_path)
    (origin / "other" / "lazy.py").write_text("X = 2\n")
    bring_plugins()
    assert digest("my-toast", tmp_path) != before


def test_a_projects_own_kinds_are_user_code_with_the_file_on_their_import_path(tmp_path):
    project(tmp_path, FEATURE)
    refuse_faulty(bring_plugins(tmp_path))
    kind = catalog.CATALOG["fake-step"]
    assert kind.user_code
    (own,) = kind.entrypoints(None)
    assert (own.target, own.roots) == ("tools/own.py:", ("tools", "."))


def test_another_project_has_other_plugins(tmp_path):
    project(tmp_path / "one", FEATURE)
    project(tmp_path / "two", FEATURE.replace("fake-step", "other-step"))
    bring_plugins(tmp_path / "one")
    assert "fake-step" in catalog.CATALOG
    bring_plugins(tmp_path / "two")
    assert "fake-step" not in catalog.CATALOG
    assert "other-step" in catalog.CATALOG
    bring_plugins(None)
    assert "other-step" not in catalog.CATALOG


def test_what_a_projects_file_imports_of_the_project_counts_and_stays_apart(tmp_path):
    for name, text in (("one", "STEP = 'first-step'"), ("two", "STEP = 'second-step'")):
        file = project(
            tmp_path / name,
            f"from names_of_steps import STEP\n{FEATURE}".replace('"fake-step"', "STEP"),
        )
        (file.parent / "names_of_steps.py").write_text(text)
    (plugin,) = [each for each in bring_plugins(tmp_path / "one") if each.of_project]
    assert plugin.files == tuple(
        str(tmp_path / "one" / "tools" / name) for name in ("own.py", "names_of_steps.py")
    )
    assert "first-step" in catalog.CATALOG
    bring_plugins(tmp_path / "two")
    assert "second-step" in catalog.CATALOG
    assert "names_of_steps" not in sys.modules
    helper = tmp_path / "two" / "tools" / "names_of_steps.py"
    helper.write_text("STEP = 'third-step'  # edited\n")
    bring_plugins(tmp_path / "two")
    assert "third-step" in catalog.CATALOG


def test_no_file_of_a_project_takes_the_place_of_an_installed_module(tmp_path):
    file = project(tmp_path, f"import colorsys\n{FEATURE}")
    (file.parent / "colorsys.py").write_text("raise RuntimeError('shadow')\n")
    sys.modules.pop("colorsys", None)
    refuse_faulty(bring_plugins(tmp_path))


@pytest.mark.parametrize("gone", ["module", "pyproject", "metadata"])
def test_the_memo_looks_at_all_that_decides_which_plugins_there_are(site, tmp_path, gone):
    module = install(site, "my-toast", FEATURES)
    file = project(tmp_path, FEATURE.replace("fake-step", "own-step"))
    bring_plugins(tmp_path)
    looked_at = set(program_files())
    assert set(plugin_files()) <= looked_at
    path = {
        "module": module,
        "pyproject": tmp_path / "pyproject.toml",
        "metadata": site / "my_toast-1.0.dist-info" / "entry_points.txt",
    }[gone]
    assert {str(path), str(file), os.path.realpath(site)} <= looked_at
