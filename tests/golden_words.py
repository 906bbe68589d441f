"""What a person reads, word by word: `python -m tests.golden_words` rewrites tests/golden/words/.

Each case is a line of what the terminal promises: commands in a project of cheap kinds, once through a
pipe and once on a terminal of 80 columns. All that is printed is in the file; only sizes of files, digests
and the folder that the test runs in are masked.
"""

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from onnxbuild.adapters.clock import settle
from onnxbuild.cli.main import run_command
from tests.cli.conftest import Project, make_cheap_project, make_project
from tests.fakes.cheap_kinds import KINDS
from tests.golden_tables import show_bench, show_diagnosis
from tests.pseudo_terminal import terminal
from tests.terminal import Terminal
from tests.warm_commands import run as run_command_of

FOLDER = Path(__file__).parent / "golden" / "words"


@dataclass(frozen=True)
class Case:
    """A promise, and commands that show it.

    Attributes:
        promise: A sentence.
        prepare: Makes of a fresh project what the commands are run on.
        commands: Each with the text that is shown.
    """

    promise: str
    prepare: Callable[[Project], None]
    commands: tuple[str, ...]


def _nothing(project: Project) -> None:
    del project


def _built(project: Project) -> None:
    assert project("run", "tiny.yaml").code == 0


def _store(project: Project) -> None:
    """A store, whose absolute path is said when it is made, and a result that no other case uses."""
    assert project("run", "tiny.yaml", "--only", "export", "--set", "opset=16").code == 0


def _variant(project: Project, name: str, mode: str) -> None:
    project.edit("tiny.yaml", "{fp32: none", f"{{fp32: none, {name}: {mode}")


def _broken(project: Project) -> None:
    _store(project)
    _variant(project, "int8", "dynamic")
    project.edit(
        "models/tiny.py", "    from helper", "    raise ValueError('no weights')\n    from helper"
    )


def _gate(project: Project) -> None:
    _store(project)
    _variant(project, "int8", "dynamic")
    project.edit(
        "tiny.yaml",
        "quantization",
        "validate: {int8: {sqnr_db_min: 990}, fp32: {sqnr_db_min: 991}}\nquantization",
    )


def _left_over(project: Project) -> None:
    _variant(project, "int8", "dynamic")
    old = (project.folder / "tiny.yaml").read_text().replace("name: tiny", "name: old")
    project.write("old.yaml", old)
    assert project("run", ".").code == 0
    project.edit("tiny.yaml", ", int8: dynamic", "")
    (project.folder / "old.yaml").unlink()
    project.write("artifacts/out/old/int8/notes.txt", "mine")


def _clash(project: Project) -> None:
    _built(project)
    project.write("second.yaml", (project.folder / "tiny.yaml").read_text())


def _edited(project: Project) -> None:
    _built(project)
    project.edit("models/tiny.py", "width=8", "width=9")


def _garbage(project: Project) -> None:
    _edited(project)
    _built(project)


def _unsteady(project: Project) -> None:
    project.edit("models/tiny.py", "def load", "import time\n\n\ndef load")
    project.edit("models/tiny.py", 'return f"Linear', 'return f"{time.perf_counter_ns()} Linear')
    _built(project)


def _typo(project: Project) -> None:
    _variant(project, "int8", "dynamic")
    _variant(project, "int4", "weight_only")


def _syntax(project: Project) -> None:
    project.write("models/tiny.py", "def load(:\n    pass\n")


def _models(project: Project) -> None:
    (project.folder / "model.onnx").write_bytes(b"\x08\x07\x12\x05torch")


def _folder(project: Project) -> None:
    _store(project)
    text = (project.folder / "tiny.yaml").read_text()
    (project.folder / "tiny.yaml").unlink()
    for name in ("one", "two"):
        project.write(
            f"recipes/{name}.yaml",
            text.replace("name: tiny", f"name: {name}").replace("models/", "../models/"),
        )


def _default(project: Project) -> None:
    _folder(project)
    project.write("pyproject.toml", '[tool.onnxbuild]\ndefault = ["recipes/two.yaml"]\n')


def _undeclared(project: Project) -> None:
    _store(project)
    for name in ("labels.txt", "data/words.txt", "data/more.txt"):
        project.write(f"models/{name}", "a b c")
    reading = """\
    import pathlib
    here = pathlib.Path(__file__).parent
    (here / "labels.txt").read_text()
    (here / "data/words.txt").read_text()"""
    project.edit("models/tiny.py", "    torch.manual_seed(0)", reading)


def _no_exporter(project: Project) -> None:
    _store(project)
    project.edit("models/tiny.py", "\n\ndef load", f"{BRANCH}\n\ndef load")
    project.edit("tiny.yaml", "models/tiny.py:load", "models/tiny.py:branching")
    project.edit("tiny.yaml", "export: {exporter: torchscript}\n", "")


BRANCH = '''

class Branching(torch.nn.Module):
    """What no exporter can follow."""

    def forward(self, input):
        if input.sum() > 0:
            return input
        return input * 2


def branching():
    return Branching()
'''
CASES = {
    "one-failure": Case(
        "One failure is one message: the second step that loads the broken module says so in a line.",
        _broken,
        ("run tiny.yaml --keep-going",),
    ),
    "one-line-a-step": Case(
        "One line a step, two with --verbose, and why it ran.",
        _edited,
        ("run tiny.yaml", "run tiny.yaml --force fp32/check --verbose"),
    ),
    "hints-at-the-end": Case(
        "What to type next stands at the end, once.", _gate, ("run tiny.yaml --keep-going",)
    ),
    "left-over": Case(
        "What a removed variant or recipe left is named, and `clean` removes it.",
        _left_over,
        ("run tiny.yaml", "clean --dry-run", "clean", "clean"),
    ),
    "two-of-one-name": Case(
        "Two recipes of one name are an error, though they are run apart.",
        _clash,
        ("run second.yaml",),
    ),
    "force": Case(
        "--force runs a step again, and says whether its bytes are the same.",
        _built,
        ("run tiny.yaml --force fp32/check", "run tiny.yaml --force fp33"),
    ),
    "force-not-reproducible": Case(
        "--force finds a step that gives other bytes.",
        _unsteady,
        ("run tiny.yaml --force export",),
    ),
    "folder": Case(
        "A folder stands for its recipes, nothing for the project's, a name for its recipe.",
        _folder,
        ("run recipes", "run", "run one", "run models", "run three"),
    ),
    "default": Case(
        "`default` in pyproject.toml says what `run` alone builds.", _default, ("run", "lint")
    ),
    "cache-gc": Case(
        "cache gc --dry-run says what would go.",
        _garbage,
        (
            "cache gc --dry-run",
            "cache gc --dry-run --keep-days 0 --grace-hours 0",
            "cache gc --keep-days 0 --grace-hours 0",
        ),
    ),
    "typo": Case(
        "A typo in --only is answered with the three nearest names.",
        _typo,
        (
            "run tiny.yaml --only int9",
            "plan tiny.yaml --only tiny:int8/quantise",
            "rnu tiny.yaml",
            "run tiny.yml",
        ),
    ),
    "python-syntax": Case(
        "lint finds syntax errors in the Python that a recipe names.", _syntax, ("lint tiny.yaml",)
    ),
    "a-model": Case(
        "A model, or Python, in the place of a recipe: what makes a recipe of it.",
        _models,
        ("run model.onnx", "lint models/tiny.py", "run models/tiny.py:load", "model.onnx"),
    ),
    "schema": Case(
        "schema --write makes its folder.", _nothing, ("schema --write new/folder/recipe.json",)
    ),
    "push-and-pull": Case(
        "What was pushed and pulled is said in lines that fit.",
        _built,
        (
            "push tiny:fp32 oci:a-folder-with-a-name-as-they-are-in-CI/images/of-the-team:fp32",
            "push tiny:fp32 oci:a-folder-with-a-name-as-they-are-in-CI/images/of-the-team:fp32",
            "pull oci:a-folder-with-a-name-as-they-are-in-CI/images/of-the-team:fp32 -o models-as-they-were-pulled",
            "pull oci:a-folder-with-a-name-as-they-are-in-CI/images/of-the-team:fp32 -o models-as-they-were-pulled",
        ),
    ),
    "explain": Case(
        "explain KEY prints the reference of a key.",
        _nothing,
        ("explain quantization.int8.balance", "explain opsett"),
    ),
}


REAL = {
    "undeclared": Case(
        "Files that are read and not declared are named at once, and the folder that holds them.",
        _undeclared,
        ("run tiny.yaml --only export",),
    ),
    "exporter": Case(
        "The exporters' wall of text is in the log that is named.",
        _no_exporter,
        ("run tiny.yaml --only export",),
    ),
}
"""Of real kinds, in processes of their own."""


TABLES = {
    "bench": ("The tables of `bench` are folded where they are too wide.", show_bench),
    "diagnose": ("So are those of `diagnose`, and its sentences are wrapped.", show_diagnosis),
}
"""Each with what prints it: their numbers are of a machine, so these print numbers of their own."""


def text_of(name: str, folder: Path) -> str:
    """Return what a case prints, in both ways.

    Args:
        name: Which.
        folder: An empty one, to work in.
    """
    if name in TABLES:
        return _printed(*TABLES[name])
    is_real = name in REAL
    case = REAL[name] if is_real else CASES[name]
    pipe, screen = (_real_pipe, _real_terminal) if is_real else (_through_a_pipe, _on_a_terminal)
    texts = [f"{case.promise}\n"]
    for way, run in (("through a pipe", pipe), ("on a terminal of 80 columns", screen)):
        make = make_project if is_real else make_cheap_project
        project = make(folder / way.partition(" ")[0] / "project")
        case.prepare(project)
        settle()
        texts.append(f"\n--- {way} ---\n")
        for command in case.commands:
            with contextlib.chdir(project.folder), mock.patch.dict(os.environ, project.cache):
                code, printed = run(tuple(shlex.split(command)))
            assert "Traceback" not in printed, printed
            texts.append(
                f"\n$ onnxbuild {command}\n{_masked(printed, project.folder)}[exit code {code}]\n"
            )
    return "".join(texts)


def _printed(promise: str, show: Callable[[], None]) -> str:
    through_a_pipe = io.StringIO()
    with contextlib.redirect_stdout(through_a_pipe), contextlib.redirect_stderr(through_a_pipe):
        show()
    with terminal(80) as screen:
        show()
    assert not screen.broken, screen.broken
    return (
        f"{promise}\n\n--- through a pipe ---\n\n{through_a_pipe.getvalue()}"
        f"\n--- on a terminal of 80 columns ---\n\n{screen.text}"
    )


def _through_a_pipe(arguments: tuple[str, ...]) -> tuple[int, str]:
    both = io.StringIO()
    with contextlib.redirect_stdout(both), contextlib.redirect_stderr(both):
        code = run_command(arguments, KINDS)
    return code, both.getvalue()


def _on_a_terminal(arguments: tuple[str, ...]) -> tuple[int, str]:
    with terminal(80) as screen:
        code = run_command(arguments, KINDS)
    return code, screen.text


def _real_pipe(arguments: tuple[str, ...]) -> tuple[int, str]:
    done = run_command_of(arguments, Path.cwd(), os.environ, 120)
    return done.code, done.out + done.err


def _real_terminal(arguments: tuple[str, ...]) -> tuple[int, str]:
    shown = Terminal(arguments, Path.cwd())
    try:
        code = shown.end()
        return code, shown.final
    finally:
        shown.close()


def _masked(text: str, folder: Path) -> str:
    text = text.replace(str(folder), "PROJECT")
    text = re.sub(r"(Usage: |Try ')(python -m )?\S+ ", r"\1onnxbuild ", text)
    text = re.sub(r"\b\d{8}T\d{6}\.\d{3}Z-\d+-[0-9a-f]{4}\b", "RUN", text)
    text = re.sub(r"\d+\.\d KiB", "0.0 KiB", text)
    text = re.sub(r"\b\d{2,} bytes", "99 bytes", text)
    text = re.sub(r"^running .*\n", "", text, flags=re.MULTILINE)  # of a busy machine
    text = re.sub(r"-?\d\.\d{4}\b", "-1.2345", text)  # of a comparison with PyTorch
    text = re.sub(r"\d+\.\d s, \d+ MiB", "0.0 s, 1 MiB", text)
    text = re.sub(
        r"(?<=sha256:)[0-9a-f\n]{64,65}(?=\n)", lambda digest: re.sub(r"\w", "D", digest[0]), text
    )
    return re.sub(r"\b[0-9a-f]{12}\b", "D" * 12, text)


def main() -> None:
    """Write what is printed now, of all cases or of those that are named."""
    known = {*CASES, *TABLES, *REAL}
    named = sys.argv[1:] or sorted(known)
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.txt"):
        if path.stem not in known:
            path.unlink()
    for name in named:
        with tempfile.TemporaryDirectory() as folder:
            (FOLDER / f"{name}.txt").write_text(text_of(name, Path(folder)))


if __name__ == "__main__":
    main()
