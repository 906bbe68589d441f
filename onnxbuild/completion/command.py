"""`onnxbuild completion`."""

import json
from pathlib import Path

import click

from onnxbuild.core.errors import BuildError

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@click.option("--candidates", metavar="LINE", hidden=True, help="Asked by the scripts.")
@click.option("--json", "as_json", is_flag=True, help="Print the script as JSON.")
@click.pass_context
def completion(
    ctx: click.Context, *, shell: str | None, candidates: str | None, as_json: bool
) -> None:
    """Print the script that has a shell complete verbs, options, recipes, variants and steps.

    \b
    eval "$(onnxbuild completion bash)"    # a line of ~/.bashrc
    eval "$(onnxbuild completion zsh)"     # of ~/.zshrc, after compinit
    onnxbuild completion fish | source     # of ~/.config/fish/config.fish

    No code of a project is run. A recipe is read again after it changed, which takes a second; until
    then its variants and steps are kept in the user's cache.
    """  # noqa: D301 - click's own mark for text that keeps its lines
    if candidates is not None:
        _print_candidates(ctx, candidates)
    elif shell is None:
        raise click.UsageError(f"Missing argument '{{{'|'.join(SHELLS)}}}'.", ctx)
    elif as_json:
        click.echo(json.dumps({"type": "completion", "shell": shell, "script": script_of(shell)}))
    else:
        click.echo(script_of(shell), nl=False)


def script_of(shell: str) -> str:
    """Return the script of one of `SHELLS`."""
    return Path(__file__).with_name("scripts").joinpath(f"onnxbuild.{shell}").read_text("utf-8")


def _print_candidates(ctx: click.Context, line: str) -> None:
    """Print a candidate a line, with a tab and its help: nothing where the line can't be completed."""
    from onnxbuild.completion.candidates import candidates_for

    group = ctx.find_root().command
    assert isinstance(group, click.Group)
    try:
        found = candidates_for(group, line)
    except (BuildError, OSError, UnicodeError, ValueError):
        return
    for each in found:
        click.echo(f"{each.value}\t{each.help}")
