"""`onnxbuild init`."""

import click

from onnxbuild.cli.options import Number, PathName
from onnxbuild.core.errors import UsageError
from onnxbuild.terminal.display import json_option, print_document
from onnxbuild.terminal.table import say


@click.command("init")
@click.argument("source", required=False, metavar="[SOURCE]")
@click.option("--name", metavar="NAME", help="Name of the recipe [default: the source's].")
@click.option(
    "--task", metavar="TASK", help="What the model does, where its file does not say it."
)
@click.option("--submodule", metavar="PATH", help="The part of a TorchScript archive to take.")
@click.option(
    "--allow-pickle", is_flag=True, help="Take a file that may run code as it is loaded."
)
@click.option(
    "-o",
    "--output",
    "--out",
    type=PathName(dir_okay=False),
    metavar="FILE",
    help="Where to write the recipe [default: recipes/NAME.yaml].",
)
@click.option(
    "--inputs",
    metavar="FILE.py:CALLABLE",
    help="Gives inputs of the callable's model, {name: array}: names, types, sizes and ranges are taken from them. "
    "Sizes in which two examples differ become axes.",
)
@click.option(
    "--files",
    multiple=True,
    type=click.Path(exists=True),
    metavar="PATH",
    help="A file or folder outside of the project that the callable reads. May be given several times.",
)
@click.option(
    "--timeout",
    type=Number(min=0, min_open=True),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="Wall time that running the callable, or the file, may take.",
)
@json_option()
def command(
    *,
    source: str | None,
    name: str | None,
    task: str | None,
    submodule: str | None,
    allow_pickle: bool,
    output: str | None,
    inputs: str | None,
    files: tuple[str, ...],
    timeout: float,
    as_json: bool,
) -> None:
    """Write a first recipe from a model; without SOURCE, a small whole project in an empty folder.

    SOURCE is a model's file or folder, or a callable in Python that returns the model. A file is read,
    and run where it does not say all: to see which sizes an .onnx file takes, what goes into TorchScript,
    how wide the rows of a pickle are. What is run can read the project (a file: itself), write nothing
    and reach no network. The recipe has names, types and sizes as far as they can be known, says where each is from, and
    marks what is left with FILL IN. It is checked before it is written; nothing is overwritten.

    \b
    onnxbuild init weights/model.onnx
    onnxbuild init models/mine.py:load --name mine --inputs models/mine.py:example
    mkdir first && cd first && onnxbuild init
    """  # noqa: D301 - click's own mark for text that keeps its lines
    from onnxbuild.first_recipe.init import write_project, write_recipe

    options = {"task": task, "submodule": submodule, "allow_pickle": allow_pickle or None}
    given = {key: value for key, value in options.items() if value is not None}
    if source == "":
        raise UsageError("SOURCE is empty", fix="write the path of a model, or FILE.py:CALLABLE")
    if source is not None:
        written = write_recipe(
            source,
            name=name,
            options=given,
            output=output,
            inputs=inputs,
            files=files,
            timeout_s=timeout,
        )
    elif given or output is not None or files or inputs is not None:
        others = {"files": files, "output": output, "inputs": inputs}
        option = next(iter([*given, *(key for key, each in others.items() if each)])).replace(
            "_", "-"
        )
        raise click.UsageError(f"--{option} needs a SOURCE.")
    else:
        written = write_project(name)
    if as_json:
        from onnxbuild.terminal.documents import init_document

        print_document(init_document(written))
        return
    for file in written.files:
        say(f"wrote {file}")
    for line in written.about:
        say(f"  {line}")
    if written.holes:
        lines = ", ".join(map(str, written.holes))
        say(f"fill in first: {written.recipe}, line {lines}")
    say(f"next: {written.next_command}")
