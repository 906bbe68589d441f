"""Asks a Triton server as its users do: `client.py HTTP_PORT GRPC_PORT TASKS.json` prints JSON.

A task: {"model", "feeds": an .npz, "http": an .npz to write, "grpc": another}, answered by {} or {"error"}; or
{"model", "burst": number of requests at once, "feeds"}, answered by Triton's statistics of the model.
"""

import json
import sys
from pathlib import Path

import numpy as np
import tritonclient.grpc
import tritonclient.http


def main(http, grpc, tasks):
    clients = (
        (
            tritonclient.http,
            tritonclient.http.InferenceServerClient(f"127.0.0.1:{http}", concurrency=16),
        ),
        (tritonclient.grpc, tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{grpc}")),
    )
    with Path(tasks).open() as file:
        answers = [
            burst(*clients[0], task) if "burst" in task else ask(clients, task)
            for task in json.load(file)
        ]
    sys.stdout.write(json.dumps(answers))


def ask(clients, task):
    for protocol, client in clients:
        name = protocol.__name__.rpartition(".")[2]
        try:
            result = client.infer(task["model"], inputs_of(protocol, task["feeds"]))
        except tritonclient.utils.InferenceServerException as error:
            return {"error": str(error)}
        listed = client.get_model_metadata(task["model"])
        outputs = listed["outputs"] if isinstance(listed, dict) else listed.outputs
        names = [each["name"] if isinstance(each, dict) else each.name for each in outputs]
        arrays = {each: plain(result.as_numpy(each)) for each in names}
        np.savez(task[name], **{each.replace("/", "\0"): array for each, array in arrays.items()})
    return {}


def burst(protocol, client, task):
    inputs = inputs_of(protocol, task["feeds"])
    asked = [client.async_infer(task["model"], inputs) for _ in range(task["burst"])]
    for each in asked:
        each.get_result()
    (found,) = client.get_inference_statistics(task["model"])["model_stats"]
    return {"requests": found["inference_count"], "executions": found["execution_count"]}


def inputs_of(protocol, file):
    made = []
    with np.load(file) as arrays:
        for name in arrays.files:
            array = arrays[name]
            if array.dtype.kind == "U":
                array = np.array([each.encode() for each in array.ravel()], object).reshape(
                    array.shape
                )
            kind = tritonclient.utils.np_to_triton_dtype(array.dtype)
            made.append(protocol.InferInput(name, list(array.shape), kind))
            made[-1].set_data_from_numpy(array)
    return made


def plain(array):
    is_text = array.dtype.kind == "O"
    return (
        np.array([each.decode() for each in array.ravel()]).reshape(array.shape)
        if is_text
        else array
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
