"""Candidates for the end of a command line: the verb's parameter that is typed, and its values."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import click

from onnxbuild.completion.recipe_files import paths, recipe_files, recipe_names, recipes_named

_RECIPE = "RECIPE"
_ADDRESS = f"{_RECIPE}:"
_SIDES, _SIDE = ("before", "after"), f"{_ADDRESS}VARIANT|FILE"
"""Arguments of `diff`, which its help calls A and B, and what they take."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One word that may stand there.

    Attributes:
        value: The whole word. One that ends with `/`, `:` or `=` is not complete: no blank follows it.
        help: A line for shells that show one.
    """

    value: str
    help: str = ""


@dataclass(slots=True)
class _Typed:
    """A command line up to its last word.

    Attributes:
        command: The verb, or the verb below it, that was reached.
        context: The command's; names its parameters.
        words: Its positional arguments.
        waiting: The option whose value is to follow.
        only_arguments: `--` was typed.
    """

    command: click.Command
    context: click.Context
    words: list[str] = field(default_factory=list)
    waiting: click.Option | None = None
    only_arguments: bool = False


def candidates_for(group: click.Group, line: str) -> list[Candidate]:
    """Return what may stand in place of the last word of a line.

    Args:
        line: What was typed up to the cursor, the program first; its last word may be empty.

    Raises:
        ValueError: A quotation is open.
        BuildError, OSError: What the word names can't be read.
    """
    words = shlex.split(line, comments=False)
    if not line or line[-1].isspace():
        words.append("")
    if not words[1:]:
        return []
    *before, word = words[1:]
    typed = _walk(group, before)
    found = {each.value: each for each in _candidates(typed, word)}
    return [each for value, each in found.items() if value.startswith(word)]


def _walk(group: click.Group, words: Sequence[str]) -> _Typed:
    typed = _Typed(group, click.Context(group, info_name=group.name))
    for word in words:
        command = typed.command
        if typed.waiting is not None:
            typed.waiting = None
        elif word == "--" and not typed.only_arguments:
            typed.only_arguments = True
        elif word.startswith("-") and len(word) > 1 and not typed.only_arguments:
            option = _option(typed, word.partition("=")[0])
            if option is not None and _takes_value(option) and "=" not in word:
                typed.waiting = option
        elif isinstance(command, click.Group):
            below = command.get_command(typed.context, word)
            if below is None:
                raise ValueError(word)
            typed = _Typed(below, click.Context(below, info_name=word, parent=typed.context))
        else:
            typed.words.append(word)
    return typed


def _option(typed: _Typed, name: str) -> click.Option | None:
    for param in typed.command.get_params(typed.context):
        if isinstance(param, click.Option) and name in (*param.opts, *param.secondary_opts):
            return param
    return None


def _takes_value(option: click.Option) -> bool:
    return not option.is_flag and not option.count


def _candidates(typed: _Typed, word: str) -> Iterator[Candidate]:
    if typed.waiting is not None:
        yield from _values(typed, typed.waiting, word)
    elif word.startswith("--") and "=" in word and not typed.only_arguments:
        name, _, begun = word.partition("=")
        option = _option(typed, name)
        if option is not None and _takes_value(option):
            for each in _values(typed, option, begun):
                yield Candidate(f"{name}={each.value}", each.help)
    elif word.startswith("-") and not typed.only_arguments:
        yield from _options(typed)
    elif isinstance(typed.command, click.Group):
        yield from _verbs(typed)
    else:
        argument = _next_argument(typed)
        if argument is not None:
            yield from _values(typed, argument, word)


def _options(typed: _Typed) -> Iterator[Candidate]:
    for param in typed.command.get_params(typed.context):
        if isinstance(param, click.Option) and not param.hidden:
            text = (param.help or "").partition(". ")[0].strip()
            for name in (*param.opts, *param.secondary_opts):
                if name.startswith("--"):
                    yield Candidate(name, text)


def _verbs(typed: _Typed) -> Iterator[Candidate]:
    """The verbs with what each does; a group that says so itself needs none of them imported."""
    command = typed.command
    assert isinstance(command, click.Group)
    purposes: Mapping[str, str] = getattr(command, "purposes", {})
    for name in command.list_commands(typed.context):
        text = purposes.get(name)
        if text is None:
            below = command.get_command(typed.context, name)
            text = below.get_short_help_str() if below is not None else ""
        yield Candidate(name, text)


def _next_argument(typed: _Typed) -> click.Argument | None:
    """The argument that the next word belongs to; None if there are enough of them."""
    left = len(typed.words)
    for param in typed.command.get_params(typed.context):
        if isinstance(param, click.Argument):
            if param.nargs < 0 or left < param.nargs:
                return param
            left -= param.nargs
    return None


def _values(typed: _Typed, param: click.Parameter, word: str) -> Iterator[Candidate]:
    """The values of an argument or an option."""
    metavar = (param.metavar or "").upper().replace("[:", ":")
    if param.name in _SIDES:
        metavar = _SIDE
    if isinstance(param.type, click.Choice):
        for choice in param.type.choices:
            yield Candidate(str(choice))
    elif param.name in ("only", "force"):
        yield from _parts(typed.words)
    elif _ADDRESS in metavar:
        yield from _addresses(metavar, word)
    elif metavar.lstrip("[").startswith(_RECIPE):
        yield from map(Candidate, recipe_files(word))
    elif isinstance(param.type, click.Path) or "FOLDER" in metavar:
        is_folder = metavar.startswith("FOLDER") and "|" not in metavar
        yield from map(Candidate, paths(word, folders_only=is_folder))


def _addresses(metavar: str, word: str) -> Iterator[Candidate]:
    """`bert:export`, and what may stand in its place: a model's file, a release's folder."""
    recipe, colon, _ = word.rpartition(":")
    if not colon:
        for name in recipe_names():
            yield Candidate(f"{name}:")
        if "|" in metavar:
            yield from map(Candidate, paths(word))
        elif "/" in word:
            for path in recipe_files(word):
                yield Candidate(path if path.endswith("/") else f"{path}:")
        return
    from onnxbuild.completion.recipe_parts import parts_of

    for file in recipes_named(recipe):
        parts = parts_of(file)
        for name in parts.steps if "STEP" in metavar else parts.variants:
            yield Candidate(f"{recipe}:{name}")


def _parts(files: Sequence[str]) -> Iterator[Candidate]:
    """Variants and steps of the recipes that the line names already."""
    from onnxbuild.completion.recipe_parts import parts_of

    found = [parts_of(file) for word in files for file in recipes_named(word)]
    for parts in found:
        for name in parts.variants:
            yield Candidate(name, "variant")
    for parts in found:
        for name in parts.steps:
            yield Candidate(name, "step")
