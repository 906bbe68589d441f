"""Metrics of a variant, as a mapping from STEP.NAME to a plain value, and as a table in notebooks."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from onnxbuild.core.errors import UsageError, listed, nearest


def public_names(value: object) -> list[str]:
    """Return the names that a class and its bases define for others: what `dir()` of a value shows."""
    names = {name for kind in type(value).__mro__ for name in vars(kind)}
    return sorted(name for name in names if not name.startswith("_"))


def table(rows: Sequence[Mapping[str, str]], caption: str = "") -> str:
    """Return a table.

    Args:
        rows: Heading -> text; the headings are those of all rows, in order of first use.
        caption: A line above it.
    """
    headings = list(dict.fromkeys(heading for row in rows for heading in row))
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(row.get(h, ''))}</td>" for h in headings) + "</tr>"
        for row in rows
    )
    above = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


Metric = float | int | str | bool | None | tuple[Any, ...]


class UnknownNameError(UsageError, KeyError):
    """Error about a variant or a metric that does not exist; a KeyError, too, so that mappings behave as they do."""


class Metrics(Mapping[str, Metric]):
    """Metrics of steps: `metrics["validate.max_abs"]`, or `metrics["max_abs"]` where one alone ends so.

    Units are in the names (`p50_ms`). A step on another target than the first has that in its name: `benchmark-cuda.p50_ms`.

    Args:
        by_step: Step -> what it measured, as JSON.
    """

    __slots__ = ("_flat",)

    def __init__(self, by_step: Mapping[str, Mapping[str, Any]]) -> None:
        self._flat: dict[str, Metric] = {}
        for step, values in by_step.items():
            self._flat.update(_flattened(step, values))

    def __getitem__(self, key: str) -> Metric:
        if key in self._flat:
            return self._flat[key]
        found = [name for name in self._flat if name.endswith(f".{key}")]
        if len(found) == 1:
            return self._flat[found[0]]
        if found:
            raise UnknownNameError(
                f"'{key}' is measured by several steps: {', '.join(found)}",
                fix=f"metrics['{found[0]}']",
            )
        near = self._nearest(str(key))
        shown = f"; the nearest are {listed(near, 'and')}" if near else ""
        raise UnknownNameError(
            f"there is no metric {key!r}{shown}",
            fix=f"metrics['{near[0]}']; list(metrics) has all names" if near else "",
        )

    def _nearest(self, key: str) -> tuple[str, ...]:
        """Return the names that are nearest to a misspelled one, by their last part, too."""
        ends = {name.rpartition(".")[2]: name for name in reversed(self._flat)}
        near = nearest(key.rpartition(".")[2], ends)
        return tuple(dict.fromkeys(ends[each] for each in near)) or tuple(self._flat)[:3]

    def __iter__(self) -> Iterator[str]:
        return iter(self._flat)

    def __len__(self) -> int:
        return len(self._flat)

    def __repr__(self) -> str:
        return f"<Metrics: {len(self)} of {len({name.partition('.')[0] for name in self})} steps>"

    def _repr_html_(self) -> str:
        """The table that a notebook shows."""
        return table([{"metric": name, "value": str(value)} for name, value in self.items()])

    def _ipython_key_completions_(self) -> list[str]:
        """Return the names that a notebook completes in `metrics["`."""
        return list(self)

    def __dir__(self) -> list[str]:
        return public_names(self)


def _flattened(prefix: str, value: Any) -> Iterator[tuple[str, Metric]]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _flattened(f"{prefix}.{name}", each)
    elif isinstance(value, list):
        yield prefix, tuple(value)
    else:
        yield prefix, value
