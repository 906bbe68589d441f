"""Measure a cold clone of hundreds of recipes from a remote store that is far away: a proxy delays each packet.

Steps are stand-ins that write small files (`fill_store.py`), so what counts is how many answers are waited for one after
the other. Recipes, keys, records and signatures are the real ones.

    python benchmarks/far_remote.py [--recipes 300] [--round-trip-ms 50]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fill_store import SmallOutputs
from many_recipes import write_recipes
from side_by_side import machine
from slow_link import slow_link

from onnxbuild.building.api import build, plan
from onnxbuild.building.remote import pull_results, push_results
from onnxbuild.building.request import Request
from onnxbuild.catalog import CATALOG

sys.path.insert(0, str(Path(__file__).parent.parent))  # the server is that of the tests

from tests.adapters.remote.http_store import serving


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipes", type=int, default=300)
    parser.add_argument("--round-trip-ms", type=float, default=50.0)
    arguments = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as temp, serving() as server:
        folder = Path(temp)
        recipes = tuple(map(Path, write_recipes(folder / "project", arguments.recipes)))
        private, public = folder / "key.pem", folder / "key.pub"
        make = ["openssl", "genpkey", "-algorithm", "ed25519", "-out", private]
        subprocess.run(make, check=True)
        subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True)
        build(Request(recipes, store=str(folder / "built")), make_executor=SmallOutputs)
        os.environ |= {
            "ONNXBUILD_REMOTE": server.url, "ONNXBUILD_REMOTE_TRUSTED_KEYS": str(public),
            "ONNXBUILD_REMOTE_PUSH": "always", "ONNXBUILD_REMOTE_SIGN_KEY": str(private),
        }  # fmt: skip
        push_results(Request(recipes, store=str(folder / "built")), CATALOG, print)
        os.environ["ONNXBUILD_REMOTE_PUSH"] = "never"
        address, _, path = server.url.removeprefix("http://").partition("/")
        for round_trip_s in (0.0, arguments.round_trip_ms / 1e3):
            with slow_link(int(address.partition(":")[2]), round_trip_s=round_trip_s) as near:
                os.environ["ONNXBUILD_REMOTE"] = f"http://127.0.0.1:{near}/{path}"
                for verb in ("plan", "pull"):
                    request = Request(recipes, store=str(folder / f"{verb}-{round_trip_s}"))
                    before, began_s = len(server.requests), time.monotonic()
                    if verb == "plan":
                        planned = plan(request)
                    else:
                        planned, _ = pull_results(request, CATALOG)
                    took_s = time.monotonic() - began_s
                    ready = sum(each.hit for each in planned)
                    print(
                        f"{verb} over {round_trip_s * 1e3:3.0f} ms: {took_s:6.1f} s, {ready} of {len(planned)} steps up to date, "
                        f"{len(server.requests) - before} requests",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
