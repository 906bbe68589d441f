"""Asks MLflow for a model as its users do: `mlflow_client.py FOLDER SCRATCH` prints JSON."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
PATIENCE_S = 120


def main(folder, scratch):
    import mlflow
    import numpy as np

    mlflow.set_tracking_uri(f"sqlite:///{scratch}/registry.db")
    with np.load(Path(folder) / ".." / "points.npz") as points:
        feeds = {name: points[name] for name in points.files}
    loaded = mlflow.pyfunc.load_model(folder)
    answers = {"loaded": loaded.predict(feeds)}
    version = mlflow.register_model(folder, "tiny").version
    mlflow.MlflowClient().set_registered_model_alias("tiny", "champion", version)
    answers["registered"] = mlflow.pyfunc.load_model("models:/tiny@champion").predict(feeds)
    answers["served"] = served(folder, feeds)
    try:
        loaded.predict({name: array[..., None] for name, array in feeds.items()})
        refused = ""
    except mlflow.exceptions.MlflowException as error:
        refused = str(error)
    example = {name: np.shape(array) for name, array in loaded.input_example.items()}
    outputs = {
        how: {name: np.asarray(array).tolist() for name, array in answer.items()}
        for how, answer in answers.items()
    }
    sys.stdout.write(json.dumps({**outputs, "refused": refused, "example": example}))


def served(folder, feeds):
    """What the server answers; it starts a process of its own, which must end with it."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [
        "mlflow",
        "models",
        "serve",
        "-m",
        folder,
        "-p",
        str(port),
        "--env-manager",
        "local",
    ]
    process = subprocess.Popen(
        [f"{Path(sys.executable).parent}/{command[0]}", *command[1:]],
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        start_new_session=True,
        stdout=sys.stderr,
    )
    try:
        asked = {"inputs": {name: each.tolist() for name, each in feeds.items()}}
        return ask(f"http://127.0.0.1:{port}", asked)["predictions"]
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def ask(url, body):
    end_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            urllib.request.urlopen(f"{url}/ping", timeout=PATIENCE_S)
            break
        except OSError:
            if time.monotonic() > end_s:
                raise
            time.sleep(0.2)
    request = urllib.request.Request(
        f"{url}/invocations", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return json.load(answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
