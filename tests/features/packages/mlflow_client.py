"""Asks MLflow for models as its users do: `mlflow_client.py SCRATCH FOLDER POINTS.npz ...` prints a list in JSON."""

import contextlib
import json
import math
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
PATIENCE_S = 300
TRIES = 3


def main(scratch, *models):
    import mlflow

    mlflow.set_tracking_uri(f"sqlite:///{scratch}/registry.db")
    pairs = zip(models[::2], models[1::2], strict=True)
    answers = [asked(f"tiny-{n}", folder, points) for n, (folder, points) in enumerate(pairs)]
    sys.stdout.write(json.dumps(answers))


def asked(name, folder, points):
    import mlflow
    import numpy as np

    with np.load(points) as arrays:
        feeds = {each: arrays[each] for each in arrays.files}
    loaded = mlflow.pyfunc.load_model(folder)
    answers = {"loaded": loaded.predict(feeds)}
    version = mlflow.register_model(folder, name).version
    mlflow.MlflowClient().set_registered_model_alias(name, "champion", version)
    answers["registered"] = mlflow.pyfunc.load_model(f"models:/{name}@champion").predict(feeds)
    answers["served"] = served(folder, feeds)
    try:
        loaded.predict({each: array[..., None] for each, array in feeds.items()})
        refused = ""
    except mlflow.exceptions.MlflowException as error:
        refused = str(error)
    example = {each: np.asarray(array).tolist() for each, array in loaded.input_example.items()}
    outputs = {
        how: {each: np.asarray(array).tolist() for each, array in answer.items()}
        for how, answer in answers.items()
    }
    return {**outputs, "refused": refused, "example": example}


def served(folder, feeds):
    """What the server answers; where its port was taken meanwhile, another one is tried."""
    asked = {"inputs": {name: plain(each.tolist()) for name, each in feeds.items()}}
    for left in reversed(range(TRIES)):
        port = free_port()
        process = serve(folder, port)
        try:
            wait(process, f"http://127.0.0.1:{port}/ping")
            return ask(f"http://127.0.0.1:{port}/invocations", asked)["predictions"]
        except EndedError:
            if not left:
                raise
        finally:
            end(process)
    return None


def plain(value):
    """NaN as null, which is what JSON has for it."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def serve(folder, port, programs=Path(sys.executable).parent):
    """Start a server, which starts a process of its own: both are in one group."""
    command = [programs / "mlflow", "models", "serve", "-m", folder, "-p", str(port), "--env-manager", "local"]  # fmt: skip
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    return subprocess.Popen(command, env=environment, start_new_session=True, stdout=sys.stderr)


def end(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class EndedError(Exception):
    """The server ended before it answered: its port may be taken."""


def wait(process, url):
    end_s = time.monotonic() + PATIENCE_S
    while True:
        if process.poll() is not None:
            raise EndedError(f"mlflow ended with {process.returncode}")
        try:
            urllib.request.urlopen(url, timeout=PATIENCE_S)
            if process.poll() is None:
                return
        except OSError:
            if time.monotonic() > end_s:
                raise
            time.sleep(0.2)


def ask(url, body):
    request = urllib.request.Request(
        url, json.dumps(body, allow_nan=False).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return json.load(answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
