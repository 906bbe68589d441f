"""Features of plug-ins whose functions, where they fail, name the plug-in instead of this program."""

import functools
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, fields, replace
from types import GeneratorType
from typing import Any, TypeVar

from onnxbuild.core.errors import BuildError, PluginError, StepError
from onnxbuild.core.external_code import external_code, message_of
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.step import Outcome, StepContext
from onnxbuild.expansion.feature import Column, Feature, Mode, no_names, nothing
from onnxbuild.expansion.plugin import Plugin
from onnxbuild.expansion.scope import Scope
from onnxbuild.resolver.plugin_code import output_fault


def column_faults(columns: object, label: str) -> list[str]:
    """Return what the table at a build's end can't show of a plug-in's columns.

    Args:
        columns: What the feature has there.
        label: The feature, for messages.
    """
    if not isinstance(columns, tuple) or not all(isinstance(each, Column) for each in columns):
        return [f"{label} has columns of {columns!r:.200}; expected a tuple of Column"]
    faults = []
    for each in columns:
        if not isinstance(each.title, str) or not each.title:
            faults.append(
                f"{label} has a column with the title {each.title!r:.200}; expected text"
            )
        elif type(each.place) is not int:
            faults.append(
                f"the column '{each.title}' has the place {each.place!r:.200}; expected an int"
            )
        elif not callable(each.cell):
            faults.append(f"the column '{each.title}' has a cell that is no function")
        elif each.heading is not None and not callable(each.heading):
            faults.append(f"the column '{each.title}' has a heading that is no function")
    return faults


def released_faults(feature: Feature, label: str) -> Iterator[str]:
    """Yield which of a plug-in's step kinds have no report that a release can show.

    Args:
        feature: Its kinds are sound.
        label: The feature, for messages.
    """
    own = {kind.name: kind for kind in feature.kinds}
    for key in ("released", "released_if_shared"):
        names: object = getattr(feature, key)
        if not isinstance(names, tuple):
            yield f"{label} has {key} of {names!r:.200}; expected a tuple of step kinds' names"
            return
        for name in names:
            if name not in own:
                yield f"{label} names '{name}' in {key}, which is none of its step kinds"
            elif dict(own[name].outputs) != {"report": "report"}:
                yield f"{label} names '{name}' in {key}, which has other outputs than one `report`"


Run = Callable[[StepContext], Outcome]
AnyFeature = TypeVar("AnyFeature", bound=Feature)


_PASSING = (BuildError,)
"""Errors of hooks; a lack of memory in one is the plug-in's."""


def guarded(feature: AnyFeature, plugin: Plugin) -> AnyFeature:
    """Return a feature whose functions raise a PluginError for whatever is no BuildError, and for a wrong result.

    Args:
        plugin: Named in the error.
    """
    functions = {
        each: value
        for each in fields(feature)
        if callable(value := getattr(feature, each.name))
        and not isinstance(value, type)
        and not getattr(value, "__module__", "").startswith("onnxbuild.")
    }
    wrapped: dict[str, Any] = {
        each.name: _guarded_hook(value, each, feature, plugin) for each, value in functions.items()
    }
    if not column_faults(feature.columns, ""):
        wrapped["columns"] = tuple(
            replace(
                each,
                cell=_guarded_text(each.cell, f"the column '{each.title}'", plugin),
                heading=each.heading
                and _guarded_text(
                    each.heading, f"the heading of the column '{each.title}'", plugin
                ),
            )
            for each in feature.columns
        )
    return replace(feature, **wrapped) if wrapped else feature


_OUTPUTS = frozenset({"reports", "reports_on"})
_OUTPUT = frozenset({"model", "program", "reference"})


def _guarded_hook(
    function: Callable[..., Any], hook: Field[Any], feature: Feature, plugin: Plugin
) -> Callable[..., Any]:
    guard = _guard(function, f"`{hook.name}`", plugin)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        found = guard(*args, **kwargs)
        if expected := _expected(hook, found, feature) or _no_output(hook, found, args):
            raise PluginError(
                f"`{hook.name}` of the plug-in returns {found!r:.200}; expected {expected}",
                where=_shown(_defined_at(function, plugin), plugin),
                fix=plugin.mend,
            )
        return found

    return call


def _expected(hook: Field[Any], found: object, feature: Feature) -> str:
    """Return what a hook has to return, where it returned something else; else empty."""
    if hook.name in _OUTPUT:
        return "" if isinstance(found, OutputRef) else "an OutputRef"
    if hook.name == "precision_of" and isinstance(feature, Mode):
        known = isinstance(found, str) and found in feature.tolerances
        return "" if known else f"one that `tolerances` has: {sorted(feature.tolerances)}"
    if hook.name in _OUTPUTS:
        named = isinstance(found, Mapping) and all(
            isinstance(k, str) and isinstance(v, OutputRef) for k, v in found.items()
        )
        return "" if named else "a mapping of names to OutputRef; `{}` for none"
    if hook.default is no_names:
        return "" if isinstance(found, Mapping) else "a mapping; `{}` for none"
    if hook.default is nothing:
        return "" if isinstance(found, Iterable) else "an iterable; `()` for none"
    return ""


def _no_output(hook: Field[Any], found: Any, args: Sequence[Any]) -> str:
    """Return what is wrong with the outputs that a hook names, in the graph of its scope; else empty."""
    if hook.name not in _OUTPUTS | _OUTPUT or not isinstance(args[0], Scope):
        return ""
    steps = args[0].graph.graph().steps
    for ref in found.values() if isinstance(found, Mapping) else (found,):
        if fault := output_fault(ref, steps):
            return f"outputs of steps: {fault}"
    return ""


def _defined_at(function: Callable[..., Any], plugin: Plugin) -> str:
    """`FILE:LINE` of a function in one of the plug-in's files; the plug-in's own file for another."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_filename not in plugin.files:
        return plugin.file
    return f"{code.co_filename}:{code.co_firstlineno}"


def _guarded_text(function: Callable[..., str], name: str, plugin: Plugin) -> Callable[..., str]:
    guard = _guard(function, name, plugin)

    def call(*args: Any) -> str:
        text = guard(*args)
        if isinstance(text, str):
            return text
        what = f"{name} of the plug-in gives {text!r:.200}; expected text"
        raise PluginError(what, where=plugin.label, fix=plugin.mend)

    return call


def guarded_run(run: Run, plugin: Plugin) -> Run:
    """Return a step's function that names the plug-in where it fails; what the machine refused passes.

    Args:
        run: That of one of the plug-in's step kinds.
        plugin: Named in the error, a StepError.
    """

    def blamed(error: BaseException) -> StepError:
        if isinstance(error, OSError):
            raise error
        fault = _failure(error, "`run`", plugin)
        return StepError(fault.what, where=fault.where, fix=fault.fix)

    def call(context: StepContext) -> Outcome:
        with external_code(blamed):
            return run(context)

    return call


def _guard(function: Callable[..., Any], name: str, plugin: Plugin) -> Callable[..., Any]:
    def blamed(error: BaseException) -> PluginError:
        return _failure(error, name, plugin)

    def each(found: Iterator[Any]) -> Iterator[Any]:
        with external_code(blamed, passing=_PASSING, exits_too=True):
            yield from found

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with external_code(blamed, passing=_PASSING, exits_too=True):
            found = function(*args, **kwargs)
        return each(found) if isinstance(found, GeneratorType) else found

    return call


def _failure(error: BaseException, name: str, plugin: Plugin) -> PluginError:
    own = [
        frame for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename in plugin.files
    ]  # fmt: skip
    place = f"{own[-1].filename}:{own[-1].lineno}" if own else plugin.file
    message = message_of(error).partition("\n")[0] or "no message"
    return PluginError(
        f"{name} of the plug-in raises {type(error).__name__}: {message}",
        where=_shown(place, plugin),
        fix=plugin.mend,
    )


def _shown(place: str, plugin: Plugin) -> str:
    return place if plugin.of_project else f"{plugin.label} ({place})"
