"""Arguments and options that several verbs share."""

import math
import os
import shlex
from collections.abc import Callable
from typing import Any

import click

from onnxbuild.core.sizes import size_bytes_of

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_TYPED = "onnxbuild.recipes"
"""Recipes as they were typed, for options that are read after them."""


def recipes_argument(*, needed: bool = True, as_typed: bool = False) -> Decorator:
    """Recipes: files, names, or folders of files.

    Args:
        needed: Whether one must be given; else all of the project stand for none.
        as_typed: Pass on what was typed, for a verb that reports to CI what is wrong with it; else the
            recipe files that it means.
    """
    metavar = "RECIPE..." if needed else "[RECIPE]..."
    return click.argument(
        "recipes", nargs=-1, required=needed, type=click.Path(), metavar=metavar,
        callback=None if as_typed else _meant, is_eager=True,
    )  # fmt: skip


def _meant(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    del param
    from onnxbuild.typed.recipe_files import recipes_meant

    can_choose = any(each.name == "only" for each in ctx.command.params)
    if ctx.resilient_parsing:
        return values
    ctx.meta[_TYPED] = values
    return tuple(recipes_meant(values, can_choose=can_choose))


def _parts_meant(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    del param
    from onnxbuild.typed.recipe_files import parts_meant

    return parts_meant(ctx.meta.get(_TYPED, ()), values)


def store_option() -> Decorator:
    """Another store, and those below it."""
    return click.option(
        "--store",
        type=PathName(),
        multiple=True,
        callback=lambda ctx, param, values: os.pathsep.join(values) or None,  # noqa: ARG005
        metavar="FOLDER",
        help="Keep artifacts here instead of artifacts/ at the project's root "
        "(or set ONNXBUILD_STORE). Further folders are stores that are only read: results there are "
        "copied instead of built.",
    )


def only_option() -> Decorator:
    """Variants or steps."""
    return click.option(
        "--only",
        multiple=True,
        metavar="NAME",
        callback=_parts_meant,
        help="Only this variant (int8, bert:int8), step (export, int8/validate) or component "
        "(whisper@encoder) and what it needs. May be given several times.",
    )


def jobs_option() -> Decorator:
    """Steps at a time."""
    return click.option(
        "-j",
        "--jobs",
        type=click.IntRange(1),
        help="Steps to run in parallel [default: number of cores].",
    )


def machine_options() -> Decorator:
    """Add --jobs, --memory and --timeout: how much of the machine a build may take."""
    memory = click.option(
        "--memory", type=Bytes(), help="Memory for all steps [default: 90 % of the machine's]."
    )
    timeout = click.option(
        "--timeout",
        type=Number(min=0, min_open=True),
        default=3600.0,
        show_default=True,
        metavar="SECONDS",
        help="Wall time that one step may take.",
    )
    return lambda command: jobs_option()(memory(timeout(command)))


def github_option() -> Decorator:
    """GitHub's annotations and files."""
    return click.option(
        "--github",
        is_flag=True,
        help="In a GitHub job: mark faults at their lines, and append to the job's summary and outputs.",
    )


def quiet_option() -> Decorator:
    """No progress."""
    return click.option("-q", "--quiet", is_flag=True, help="Print errors and the result alone.")


def set_option() -> Decorator:
    """Values in place of the recipe's."""
    return click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_settings,
        help="Replace a value of the recipe: a variable of `vars`, the values of a name of "
        "`matrix`, or a dotted key such as opset or quantization.int8.per_channel. May be given "
        "several times.",
    )


def _settings(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    settings = {}
    for text in values:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"'{text}' is not KEY=VALUE{_setting_hint(text)}", ctx, param)
        settings[key] = value
    return settings


def _setting_hint(text: str) -> str:
    """Say what to type for a setting without `=`; nothing where it has no key."""
    key, _, value = text.replace(": ", ":").partition(":")
    meant = shlex.quote(f"{key}={value or 'VALUE'}")
    return f"; write --set {meant}" if key.strip("= ") else ""


class PathName(click.Path):
    """A path; an empty one, a variable of a shell that is not set, is refused: it would be the folder at hand."""

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """The path."""
        if value == "":
            self.fail("it is empty; write a path", param, ctx)
        return super().convert(value, param, ctx)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class Number(click.FloatRange):
    """A number within bounds; NaN, which is beyond no bound, is refused."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number."""
        if isinstance(value, str) and not _is_number(value):
            self.fail(f"'{value}' is not a number", param, ctx)
        found: float = super().convert(value, param, ctx)
        if math.isnan(found):
            self.fail(f"'{value}' is not a number", param, ctx)
        return found


class Bytes(click.ParamType):  # type: ignore[type-arg]  # older click is not generic
    """A size: 4GiB, 512MiB, 2G."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The size in bytes."""
        if isinstance(value, int):
            return value
        try:
            return size_bytes_of(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
