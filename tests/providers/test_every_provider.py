"""What holds for each provider of the list: a new one is tested by being in it."""

import re
from contextlib import closing
from pathlib import Path

import onnxruntime
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import OrtDevice

import onnxbuild.providers
from onnxbuild.adapters import machine
from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.toolchain.distributions import Distributions
from onnxbuild.catalog import MODES
from onnxbuild.core.provider import Provider, is_full_name
from onnxbuild.onnxkit.host.devices import Devices
from onnxbuild.onnxkit.providers.diagnose import explain, not_in_package
from onnxbuild.providers import all_providers, named, others, provider_names
from onnxbuild.recipe.schema.aliases import meaning
from onnxbuild.recipe.schema.recipe_schema import rendered_schema
from onnxbuild.recipe.schema.reference_page import reference_markdown
from tests.environments import write_distribution

IN_BROWSERS = {"JsExecutionProvider", "WebNNExecutionProvider"}
"""Of ONNX Runtime for the web: no session of Python's has them."""

FILE_WORDS = ("file", "folder", "library", "libraries", "disk", "as ONNX", "where to")
NO_FILES = {
    "trt_tactic_sources", "trt_engine_cache_enable", "trt_timing_cache_enable",
    "trt_int8_use_native_calibration_table", "migraphx_use_native_calibration_table",
    "backend_type", "trt_ep_context_embed_mode",
}  # fmt: skip
"""Options whose help has such a word, and that name no file."""

each_provider = pytest.mark.parametrize("provider", all_providers(), ids=lambda each: each.name)
OPTIONS = [
    (provider, name) for provider in all_providers() for name in sorted(provider.options or {})
]
each_option = pytest.mark.parametrize(
    ("provider", "name"), OPTIONS, ids=[f"{each.name}-{name}" for each, name in OPTIONS]
)


def test_every_file_of_the_room_is_in_the_list():
    folder = Path(onnxbuild.providers.__file__).parent
    files = {path.stem for path in folder.glob("*.py")} - {"__init__", "others"}
    assert files <= {*provider_names()}
    found = [each for each in vars(others).values() if isinstance(each, Provider)]
    assert {*files, *(each.name for each in found)} == {*provider_names()}


def test_no_two_providers_share_a_name_or_a_word():
    for every in (
        [each.name for each in all_providers()],
        [each.full_name for each in all_providers()],
        [word for each in all_providers() for word in (each.name, *each.aliases)],
    ):
        assert len(every) == len(set(every))


def test_every_provider_of_the_installed_onnx_runtime_has_a_short_name():
    known = {each.full_name for each in all_providers()}
    assert set(onnxruntime.get_all_providers()) - known == IN_BROWSERS


@each_provider
def test_it_is_found_by_both_names_and_by_the_words_of_other_tools(provider):
    assert named(provider.name) is named(provider.full_name) is provider
    assert is_full_name(provider.full_name)
    for word in provider.aliases:
        assert word == word.lower(), "what a user writes is lowered before it is looked up"
        assert meaning(word, provider_names()) == provider.name


@each_provider
def test_its_options_are_in_the_schema_and_on_the_reference_page(provider):
    schema = rendered_schema()["$defs"][f"options_{provider.name}"]
    keys = [*(provider.options or {}), *provider.shorthands]
    assert list(schema["properties"]) == keys
    assert (schema["additionalProperties"] is False) == (provider.options is not None)
    assert (f"### Options of the provider `{provider.name}`" in reference_markdown()) == bool(keys)


@each_option
def test_an_option_says_what_it_is_for_and_whether_it_names_a_file(provider, name):
    option = provider.options[name]
    assert option.help
    assert "\n" not in option.help
    assert (option.type == "string") or not option.choices
    assert (option.type == "integer") or (option.minimum is option.maximum is None)
    speaks = any(word in option.help for word in FILE_WORDS) or "path" in name
    assert option.names_file or not speaks or name in NO_FILES, "declare it with `path`"


@each_provider
def test_its_groups_and_shorthands_are_of_its_own_options(provider):
    assert not provider.shorthands.keys() & (provider.options or {}).keys()
    for group in provider.groups:
        assert set(group.names) <= (provider.options or {}).keys()
        assert group.shorthand in provider.shorthands


@each_provider
def test_its_inputs_are_bound_to_memory_that_onnx_runtime_knows(provider):
    assert callable(getattr(OrtDevice, provider.memory, None))


@each_provider
def test_its_remarks_are_of_modes_that_there_are(provider):
    assert provider.remarks.keys() <= set(MODES)
    assert provider.remark("none", None) == ""


@each_provider
def test_its_symptoms_are_found_and_never_hide_that_a_library_is_missing(provider):
    for symptom in provider.symptoms:
        assert symptom.cause in ("device", "device_id", "version")
        re.compile(symptom.pattern)
        assert not re.search(symptom.pattern, "", re.IGNORECASE), "it would match any text"
    (fault,) = explain(provider.name, "", devices=None, missing=("libnowhere.so.1",))
    assert (fault.cause, fault.what) == ("library", "missing library libnowhere.so.1")
    for fix in provider.libraries:
        assert bool(fix.command) != bool(fix.extra and fix.distribution)
        (fault,) = explain(provider.name, "", devices=None, missing=(f"{fix.prefixes[0]}.so.1",))
        assert (fix.command or f"{fix.distribution}[{fix.extra}]") in fault.fix


@each_provider
def test_where_it_is_not_in_the_package_the_fix_says_what_to_do(provider):
    fault = not_in_package(provider.name, "1.31.1", ("CPUExecutionProvider",))
    assert fault.what.startswith(f"{provider.full_name} is not in the installed ONNX Runtime")
    assert (provider.distribution or provider.removed or "no package is known") in fault.fix


@each_provider
def test_a_vendors_device_files_are_looked_at_on_every_run(provider):
    """Else a device that comes or goes would leave the old report in the store."""
    if provider.vendor is None:
        return
    for pattern in provider.vendor.devices:
        assert pattern.startswith((*machine.DEVICE_FILES, "dri/", "accel/"))
    (fault,) = explain(provider.name, "", devices=Devices(0, driver=True, nodes=()))
    assert fault.fix == f"start the container with it: `{provider.vendor.container}`"


@pytest.mark.parametrize(
    "name", sorted({each.distribution for each in all_providers() if each.distribution})
)
def test_its_distribution_counts_as_onnx_runtime_where_it_is_installed(name, tmp_path):
    write_distribution(tmp_path / "site", name, "1.30.0")
    with closing(Index(tmp_path / "index.db")) as index:
        installed = Distributions(StatCache(index), (str(tmp_path / "site"),))
        assert installed.real_name("onnxruntime") == name
        assert installed.stands_for("onnxruntime") == (name,)
        assert installed.version("onnxruntime") == "1.30.0"
