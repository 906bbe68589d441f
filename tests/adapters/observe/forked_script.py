"""Runs a script again and again, each time in a fork of one process that has made its imports.

An interpreter of its own would import them anew for a third of a second each time.
"""

import atexit
import functools
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_SERVER = """\
{head}
import os, sys, traceback
for line in sys.stdin:
    reported = json.loads(line)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.chdir(reported["folder"])
            for number in (1, 2):
                os.dup2(os.open(reported["output"][number - 1], os.O_WRONLY | os.O_CREAT), number)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            sys.argv = ["-c", reported["argument"]]
            exec(compile({body!r}, "<string>", "exec"), globals())
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


def run_forked(
    head: str,
    body: str,
    argument: str,
    *,
    folder: Path,
    environment: Mapping[str, str],
    output: Path,
) -> str:
    """Return what a script prints.

    Args:
        head: Its imports, `json` among them.
        body: The rest.
        argument: Its one argument.
        folder: Where it runs.
        environment: Its variables.
        output: A folder for what it prints.

    Raises:
        AssertionError: It failed.
    """
    files = [str(output / name) for name in ("out.txt", "err.txt")]
    for file in files:
        Path(file).unlink(missing_ok=True)
    server = _server(head, body, json.dumps(dict(environment), sort_keys=True))
    assert server.stdin is not None
    assert server.stdout is not None
    reported = {"folder": str(folder), "argument": argument, "output": files}
    server.stdin.write(json.dumps(reported) + "\n")
    server.stdin.flush()
    status = server.stdout.readline().strip()
    assert status == "0", (status, Path(files[1]).read_text())
    return Path(files[0]).read_text()


@functools.cache
def _server(head: str, body: str, environment: str) -> subprocess.Popen[str]:
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER.format(head=head, body=body)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
        env=json.loads(environment),
    )
    atexit.register(server.communicate, timeout=300)
    return server
