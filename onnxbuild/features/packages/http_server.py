"""`http-server`: a folder with a server of the Open Inference Protocol that needs ONNX Runtime and NumPy alone."""

import json
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.params import option
from onnxbuild.core.step import Outcome, StepContext
from onnxbuild.document.faults import Fault
from onnxbuild.expansion.package_format import (
    Packaged,
    PackageFormat,
    PackageRequest,
    described_at_top,
    package_kind,
    run_kind,
)
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import LOADER_FILE, MANIFEST_FILE, Manifest
from onnxbuild.onnxkit.packages.contents import (
    hand_files_on,
    hand_model_on,
    packed,
    read_bundle,
    refuse_type,
    signature_table,
    write_text,
)
from onnxbuild.onnxkit.packages.golden import GOLDEN, no_golden_port, write_plain_points
from onnxbuild.onnxkit.packages.package_run import RunParams, checked_package, judged, run_own_test
from onnxbuild.onnxkit.packages.signature import signature_of

_SERVER = "serve.py"  # one of the two names that Python code may have in a release
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_VARIANT = "{variant}"

_SOURCE = '''\
"""Serve the model in this folder over HTTP: the Open Inference Protocol, version 2, in JSON. Written by onnxbuild.

    python serve.py                    on http://127.0.0.1:8080
    python serve.py --golden FOLDER    post the golden inputs to itself, and write the answers there

Needs onnxruntime and numpy alone. It has no encryption and no login: a proxy in front of it brings them.
Source of the protocol: https://github.com/open-inference/open-inference-protocol, specification/protocol.
"""

import argparse
import json
import socket
import sys
import threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import numpy as np

from load import LoadError, load

HERE = Path(__file__).resolve().parent
NAME, MOST_MIB, AT_ONCE = @NAME@, @MOST_MIB@, @AT_ONCE@
IDLE_S = 60  # a connection that sends nothing for so long is closed
DATATYPES = {
    "bool": "BOOL", "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64",
    "int8": "INT8", "int16": "INT16", "int32": "INT32", "int64": "INT64",
    "float16": "FP16", "float32": "FP32", "float64": "FP64", "string": "BYTES",
}


class Refused(Exception):
    """A request that is answered with an error: its status, and the reason."""

    def __init__(self, status, why):
        super().__init__(why)
        self.status = status


class Model:
    """The session, and what manifest.json says of it."""

    def __init__(self, target):
        self.session = load(target)
        manifest = json.loads((HERE / "manifest.json").read_text(encoding="utf-8"))
        self.inputs = {each["name"]: each for each in manifest["inputs"]}
        self.outputs = {each["name"]: each for each in manifest["outputs"]}
        self.slots = threading.BoundedSemaphore(AT_ONCE)

    def metadata(self):
        sides = {"inputs": self.inputs, "outputs": self.outputs}
        return {
            "name": NAME, "versions": ["1"], "platform": "onnxruntime_onnx",
            **{side: [described(each) for each in ports.values()] for side, ports in sides.items()},
        }

    def infer(self, body):
        try:
            request = json.loads(body)
        except ValueError as error:
            raise Refused(400, f"the body is no JSON: {error}") from error
        if not isinstance(request, dict) or not isinstance(request.get("inputs"), list):
            raise Refused(400, "the body has no list `inputs`")
        feeds = dict(self.array(each) for each in request["inputs"])
        if missing := sorted(self.inputs.keys() - feeds.keys()):
            raise Refused(400, f"input '{missing[0]}' is missing")
        asked = [named(each) for each in request.get("outputs") or self.outputs.values()]
        if unknown := [each for each in asked if each not in self.outputs]:
            raise Refused(400, f"there is no output {unknown[0]!r}")
        with self.slots:
            try:
                found = self.session.run(asked, feeds)
            except Exception as error:
                status = 400 if type(error).__name__ == "InvalidArgument" else 500
                raise Refused(status, str(error).splitlines()[0]) from error
        outputs = [tensor(name, array) for name, array in zip(asked, found)]
        return {
            "model_name": NAME, "model_version": "1",
            **({"id": request["id"]} if "id" in request else {}), "outputs": outputs,
        }

    def array(self, given):
        """Return (name, array) of an input of a request."""
        port = self.inputs.get(named(given))
        if port is None:
            raise Refused(400, f"there is no input {named(given)!r}")
        name, datatype = port["name"], DATATYPES[port["dtype"]]
        if given.get("datatype") != datatype:
            raise Refused(400, f"input '{name}' is {given.get('datatype')!r}, not {datatype}")
        try:
            array = np.asarray(given["data"], object if datatype == "BYTES" else None)
            return name, converted(array, port["dtype"]).reshape(given["shape"])
        except KeyError as error:
            raise Refused(400, f"input '{name}' has no {error}") from error
        except (ValueError, TypeError, OverflowError) as error:
            raise Refused(400, f"input '{name}': {error}") from error


def converted(array, dtype):
    """Return numbers of JSON in the type that the model takes; none is cut off or wraps around."""
    if dtype == "string":
        if not all(isinstance(each, str) for each in array.flat):
            raise ValueError("it holds others than strings")
        return array
    wanted = np.dtype(dtype)
    kinds = {"b": "b", "f": "iuf"}.get(wanted.kind, "iu")
    if array.size and array.dtype.kind not in kinds:
        raise ValueError(f"it holds {array.dtype}, not {dtype}")
    if array.size and wanted.kind in "iu":
        limits = np.iinfo(wanted)
        if array.min() < limits.min or array.max() > limits.max:
            raise ValueError(f"it holds numbers that are not within {limits.min} to {limits.max}")
    return array.astype(wanted)


def named(given):
    if not isinstance(given, dict):
        raise Refused(400, "inputs and outputs are objects with a `name`")
    return given.get("name")


def described(port):
    shape = [each if isinstance(each, int) else -1 for each in port["shape"] or ()]
    return {"name": port["name"], "datatype": DATATYPES[port["dtype"]], "shape": shape}


def tensor(name, array):
    dtype = "string" if array.dtype.kind in "OU" else array.dtype.name
    data = array.ravel().tolist()
    return {"name": name, "datatype": DATATYPES[dtype], "shape": list(array.shape), "data": data}


def handler_of(model):
    """Return the class that answers requests."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version, timeout = "HTTP/1.1", IDLE_S

        def do_GET(self):
            path = unquote(self.path.partition("?")[0]).rstrip("/")
            answers = {
                "/v2": lambda: {"name": "onnxbuild", "version": "2", "extensions": []},
                "/v2/health/live": lambda: {"live": True},
                "/v2/health/ready": lambda: {"ready": True},
                f"/v2/models/{NAME}": model.metadata,
                f"/v2/models/{NAME}/ready": lambda: {"name": NAME, "ready": True},
            }
            self.answer(answers.get(path))

        def do_POST(self):
            path = unquote(self.path.partition("?")[0]).rstrip("/")
            is_known = path == f"/v2/models/{NAME}/infer"
            self.answer((lambda: model.infer(self.body())) if is_known else None)

        def body(self):
            length = self.headers.get("Content-Length", "")
            if not length.isdecimal():
                raise Refused(411, "the request has no Content-Length")
            most = MOST_MIB << 20
            if int(length) > most:
                left = min(int(length), 8 * most)  # thrown away, so that the client reads the answer
                while left > 0 and (chunk := self.rfile.read(min(left, 1 << 16))):
                    left -= len(chunk)
                raise Refused(413, f"the request has {length} bytes; at most {MOST_MIB} MiB are taken")
            return self.rfile.read(int(length))

        def answer(self, make):
            try:
                if make is None:
                    raise Refused(404, f"there is nothing at {self.path}; the model is at /v2/models/{NAME}")
                status, said = 200, make()
            except Refused as error:
                status, said = error.status, {"error": str(error)}
                self.close_connection = True  # the body may be unread
            content = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    return Handler


def connection_to(model):
    """Return an HTTP connection to the model: by TCP, or by a pair of sockets where a sandbox refuses that."""
    handler = handler_of(model)
    try:
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    except PermissionError:
        ours, theirs = socket.socketpair()
        serve = lambda: handler(theirs, ("", 0), SimpleNamespace())  # noqa: E731
        threading.Thread(target=serve, daemon=True).start()
        connection = HTTPConnection("localhost")
        connection.sock = ours
        return connection
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return HTTPConnection("127.0.0.1", server.server_port)


def post_golden(model, folder):
    """Post the golden inputs, and write the answers in the form of golden/."""
    connection, listed = connection_to(model), []
    for number, point in enumerate(json.loads((HERE / "golden/points.json").read_text(encoding="utf-8"))):
        inputs = [tensor(each["name"], golden_array(each)) for each in point["inputs"]]
        asked = json.dumps({"inputs": inputs})
        connection.request("POST", f"/v2/models/{NAME}/infer", asked)
        answer = connection.getresponse()
        said = json.loads(answer.read())
        if answer.status != 200:
            raise SystemExit(f"{point['name']}: {said['error']}")
        (folder / f"{number:02}").mkdir(parents=True)
        outputs = [written(folder, f"{number:02}/{n}", each) for n, each in enumerate(said["outputs"])]
        listed.append({"name": point["name"], "outputs": outputs})
    (folder / "points.json").write_text(json.dumps(listed), encoding="utf-8")
    print(f"{len(listed)} golden inputs answered")


def golden_array(about):
    file = HERE / "golden" / about["file"]
    if about["dtype"] == "string":
        return np.array(json.loads(file.read_text(encoding="utf-8")), object).reshape(about["shape"])
    return np.frombuffer(file.read_bytes(), np.dtype(about["dtype"]).newbyteorder("<")).reshape(about["shape"])


def written(folder, stem, given):
    """Write an output of an answer; return what points.json says of it."""
    dtype = {datatype: name for name, datatype in DATATYPES.items()}[given["datatype"]]
    file = f"{stem}.json" if dtype == "string" else f"{stem}.bin"
    if dtype == "string":
        (folder / file).write_text(json.dumps(given["data"]), encoding="utf-8")
    else:
        (folder / file).write_bytes(np.array(given["data"], np.dtype(dtype).newbyteorder("<")).tobytes())
    return {"name": given["name"], "dtype": dtype, "shape": given["shape"], "file": file}


def main():
    parser = argparse.ArgumentParser(description="Serve the model over HTTP: the Open Inference Protocol, version 2.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; this machine alone by default")
    parser.add_argument("--port", type=int, default=8080, help="0 for a free one")
    parser.add_argument("--target", default="", help="one of the manifest's targets")
    parser.add_argument("--golden", type=Path, metavar="FOLDER", help="post the golden inputs, and write the answers there")
    asked = parser.parse_args()
    try:
        model = Model(asked.target)
    except LoadError as error:
        print(error, file=sys.stderr)
        raise SystemExit(3) from error
    if asked.golden:
        post_golden(model, asked.golden)
        return
    with ThreadingHTTPServer((asked.host, asked.port), handler_of(model)) as server:
        print(f"{NAME}: http://{asked.host}:{server.server_port}/v2/models/{NAME}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
'''

_README = """\
# {name}

The model as a server of the Open Inference Protocol, version 2, in JSON. It needs Python 3.9, onnxruntime and numpy.

```console
$ python serve.py
$ curl http://127.0.0.1:8080/v2/models/{name}
```

`POST /v2/models/{name}/infer` takes at most {most_mib} MiB. `python serve.py --help` lists the options.

{table}"""


@dataclass(frozen=True, slots=True)
class HttpServerOptions:
    """Name of the model for clients, and limits of the server."""

    name: str = option(
        "",
        help="the model's name in URLs, `{variant}` in it stands for the variant's; empty: RECIPE-VARIANT",
    )
    max_request_mib: int = option(64, help="largest request that is taken, in MiB", minimum=1)
    at_once: int = option(4, help="requests that the model runs at once; others wait", minimum=1)


@dataclass(frozen=True, slots=True)
class PackageHttpServerParams:
    """Parameters of a package; `name` is the model's in URLs."""

    name: str
    max_request_mib: int
    at_once: int
    tolerances: VariantTolerances


def package(context: StepContext) -> Outcome:
    """Write the folder and SHA256SUMS; the same inputs give the same bytes.

    Raises:
        StepError: An input or output is of a type that golden files don't hold.
    """
    params: PackageHttpServerParams = context.params
    folder = context.output("bundle")
    bundle, manifest = read_bundle(context)
    signature = signature_of(manifest)
    refused = no_golden_port(signature)
    refuse_type(context, refused, "is of a type that golden files don't hold")
    hand_model_on(bundle, manifest, folder)
    libraries = [each.file for each in manifest.operators or ()]
    hand_files_on(bundle, (LOADER_FILE, *libraries), folder)
    dtypes = {port.name: port.dtype for port in signature.inputs}
    reference = context.input("reference")
    points = write_plain_points(folder / GOLDEN, reference, params.tolerances, dtypes=dtypes)
    signature = signature_of(manifest, [each["name"] for each in points])
    source = _SOURCE.replace("@NAME@", json.dumps(params.name))
    source = source.replace("@MOST_MIB@", str(params.max_request_mib))
    write_text(folder / _SERVER, source.replace("@AT_ONCE@", str(params.at_once)))
    table = signature_table(signature)
    readme = _README.format(name=params.name, most_mib=params.max_request_mib, table=table)
    write_text(folder / "README.md", readme)
    return packed(context, manifest, {"golden_points": len(points)})


def run(context: StepContext) -> Outcome:
    """Start the server, post the golden inputs to it, and judge the answers.

    Raises:
        StepError: The package is damaged, or the server dies or refuses an input.
    """
    folder, outputs = context.scratch / "package", context.scratch / "outputs"
    # A copy: Python looks for modules next to where links lead.
    shutil.copytree(checked_package(context), folder)
    command: list[Path | str] = [sys.executable, "-B", folder / _SERVER, "--golden", outputs]
    return judged(
        run_own_test(command, context.scratch, outputs),
        context,
        command=f"python {_SERVER} --golden FOLDER",
        fix="run `python serve.py` in the package's folder and post the inputs in golden/",
        manifest=folder / MANIFEST_FILE,
    )


def _params(packaged: Packaged) -> PackageHttpServerParams:
    options: HttpServerOptions = packaged.options
    name = options.name.replace(_VARIANT, packaged.bundle)
    name = name or f"{packaged.recipe.name}-{packaged.bundle}"
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._") or "model"
    return PackageHttpServerParams(
        name, options.max_request_mib, options.at_once, packaged.tolerances
    )


def _contents(folder: Path, manifest: Manifest) -> Mapping[str, str]:
    files = [LOADER_FILE, *(each.file for each in manifest.operators or ())]
    return {**described_at_top(folder, manifest), **{name: name for name in files}}


def _faults(request: PackageRequest) -> Iterator[Fault]:
    name = request.options.name
    if name and not _NAME.fullmatch(name.replace(_VARIANT, "x")):
        what = f"packages.http-server.name is '{name}', which is no name of a model in a URL"
        yield request.fault(what, "write letters, digits, `-`, `_` and `.`", "name")


FEATURE: PackageFormat = PackageFormat(
    name="http-server",
    options=HttpServerOptions,
    title="a server of the Open Inference Protocol, in Python",
    called="the HTTP server of variant",
    request_faults=_faults,
    no_dtypes=frozenset({"bfloat16"}),
    kind=package_kind(
        "http-server", 1, PackageHttpServerParams, package, toolchain=("numpy", "jinja2")
    ),
    params=_params,
    run=run_kind("http-server", 1, RunParams, run, toolchain=("numpy", "onnxruntime")),
    run_params=lambda asked: RunParams(asked.subject, asked.tolerances),
    contents=_contents,
)
