"""What a web package holds besides the model and the runtime."""

import json
import shutil
import subprocess
import threading
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from onnxbuild.core.axis import Axis
from onnxbuild.core.digest import Digest
from onnxbuild.onnxkit.packages.signature import ModelSignature, Port
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.onnxkit.web.content import (
    BUILDS,
    Page,
    example_of,
    package_name,
    session_options,
    settings_left_out,
    write_module,
    write_page,
)

ODD = '</script>"*/'
AXES = (Axis("batch", 1, 8, 2), Axis("length", 4, 64, 16, 4))
SIGNATURE = ModelSignature(
    f"recipe {ODD}",
    "int8",
    "model.onnx",
    (Port(ODD, "float32", ("batch", "length"), (2, 16)), Port("ids", "int64", ("batch",), (2,))),
    (Port("y", "float16", None, None),),
    AXES,
)


class Texts(HTMLParser):
    """The page as a browser reads it: attributes of tags, and the text in each."""

    def __init__(self):
        super().__init__()
        self.tags, self.texts, self._open = [], {}, ""

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._open = dict(attrs).get("id", tag)

    def handle_data(self, data):
        self.texts[self._open] = self.texts.get(self._open, "") + data


def written(folder, *, is_there=True, providers=("webgpu", "wasm"), more=None):
    (folder / "runtime").mkdir()
    manifest = SimpleNamespace(session=SessionSettings(), size_bytes=1_234_567, targets={})
    page = Page(f"A {ODD} & b", "", None, is_there)
    write_module(
        folder, manifest, SIGNATURE, page,
        files={"model.onnx": Digest("0" * 64, 5), **(more or {})}, model_files=["model.onnx"], providers=providers, threads=2,
    )  # fmt: skip
    write_page(folder, manifest, SIGNATURE, page, providers=providers, points=3)
    return folder


def test_names_of_any_kind_end_no_string_comment_or_element(tmp_path):
    folder = written(tmp_path)
    page = Texts()
    page.feed((folder / "index.html").read_text())
    assert page.texts["title"].strip() == f"A {ODD} & b"
    assert json.loads(page.texts["config"])["kind"] == "values"
    assert [a["src"] for t, a in page.tags if t == "script" and "src" in a] == ["page/page.js"]
    module = (folder / "model.js").read_text()
    assert module.split("*/")[0].count("load()") == 1
    signature = json.loads(module.split("signature = frozen(")[1].split(");\n")[0])
    assert signature["inputs"][0]["name"] == ODD
    assert json.dumps(ODD) in (folder / "model.d.ts").read_text()
    assert package_name(SIGNATURE) == "recipe-script-int8"
    assert "MIT License" in (folder / "runtime/LICENSE").read_text()


def test_a_package_without_a_page_has_the_module_and_its_test(tmp_path):
    names = {path.name for path in written(tmp_path, is_there=False).iterdir()}
    assert names == {
        "model.js", "model.d.ts", "tensors.js", "judge.js", "golden.js", "test.mjs", "serve.py", "package.json",
        "runtime", "README.md",
    }  # fmt: skip


class Breaking(BaseHTTPRequestHandler):
    """Ends each answer in its middle."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"12")

    def log_message(self, *_):
        pass


LOADING = """
import { load } from "./model.js";
try {
  await load();
} catch (error) {
  console.log(`${error.name}: ${error.message}`);
}
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_a_download_that_breaks_off_is_an_error_that_names_the_file(tmp_path):
    wasm = f"runtime/{BUILDS['wasm']['wasm']}"
    folder = written(tmp_path, providers=("wasm",), more={wasm: Digest("0" * 64, 5)})
    with ThreadingHTTPServer(("127.0.0.1", 0), Breaking) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = json.dumps(f"http://127.0.0.1:{server.server_port}/model.js")
        text = (folder / "model.js").read_text().replace("import.meta.url", address)
        (folder / "model.js").write_text(text)
        (folder / "main.mjs").write_text(LOADING)
        done = subprocess.run(
            ["node", "main.mjs"], cwd=folder, capture_output=True, text=True, check=False
        )
        server.shutdown()
    assert done.stdout.startswith(f"LoadError: '{wasm}' can't be fetched: "), done


def test_the_example_has_one_row_and_names_that_are_none_are_quoted():
    assert example_of(SIGNATURE) == (
        f"{{\n  {json.dumps(ODD)}: {{ data: new Float32Array(16), shape: [1, 16] }},\n"
        "  ids: { data: new BigInt64Array(1), shape: [1] },\n}"
    )


@pytest.mark.parametrize(
    ("settings", "options", "left_out"),
    [
        (SessionSettings(), {}, []),
        (
            SessionSettings(config={"session.a.b": 1, "session.c": "x"}, free_dimensions={"n": 2}),
            {
                "freeDimensionOverrides": {"n": 2},
                "extra": {"session": {"a": {"b": "1"}, "c": "x"}},
            },
            [],
        ),
    ],
)
def test_session_settings_are_those_of_the_web_runtime(settings, options, left_out):
    assert session_options(settings) == options
    assert settings_left_out(settings) == left_out
