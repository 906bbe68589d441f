"""Collect steps into one graph; equal steps become one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from onnxbuild.core.address import StepAddress
from onnxbuild.core.digest import tagged_sha256
from onnxbuild.core.errors import UsageError
from onnxbuild.core.graph import Deliverable, Graph, OutputRef, Step, topological
from onnxbuild.core.recipe import Location
from onnxbuild.core.step import StepKind


class GraphBuilder:
    """A graph in the making."""

    def __init__(self) -> None:
        self._steps: dict[str, Step] = {}
        self._aliases: dict[str, str] = {}
        self._made: dict[str, tuple[StepAddress, str, str]] = {}
        self._by_identity: dict[tuple[str, str], str] = {}
        self._identity: dict[str, str] = {}
        self._outside: dict[str, str] = {}
        self._deliverables: list[Deliverable] = []

    def graph(self) -> Graph:
        """Return everything that was added, in topological order."""
        return Graph(
            topological(self._steps.values()),
            self._aliases,
            tuple(self._deliverables),
            {name: address for name, (address, _, _) in self._made.items()},
        )

    def package_sha256(self, inputs: Mapping[str, OutputRef]) -> str:
        """Digest of how all that goes into a package is made, and under which names."""
        return tagged_sha256(
            "package", [[key, self._identity[r.step]] for key, r in inputs.items()]
        )

    def inputs_of(self, made: OutputRef) -> Mapping[str, OutputRef]:
        """Return the inputs of the step that makes an artifact.

        Args:
            made: An output of a step that was added.
        """
        return self._steps[made.step].inputs

    def deliver(self, deliverable: Deliverable) -> None:
        """Add what a person opens under out/."""
        self._deliverables.append(deliverable)

    def step(
        self,
        address: StepAddress,
        kind: StepKind,
        params: object,
        location: Location,
        inputs: Mapping[str, OutputRef] | None = None,
        *,
        optional_inputs: Collection[str] = (),
        code: tuple[str, ...] = (),
    ) -> str:
        """Add a step; returns its name, or that of the equal one that was there first.

        Raises:
            UsageError: Another step has the same name.
        """
        name = str(address)
        refs = dict(inputs or {})
        step = Step(name, kind.name, refs, params, location, frozenset(optional_inputs), code)
        identity = tagged_sha256(
            "step",
            [
                kind.name,
                step.params_json,
                [[key, self._identity[ref.step], ref.output] for key, ref in refs.items()],
                *([sorted(optional_inputs)] if optional_inputs else ()),
            ],
        )
        outside = self._outside_of(kind, params, refs.values())
        first = self._by_identity.setdefault((identity, outside), name)
        made = (address, identity, outside)
        if self._made.setdefault(name, made) != made:
            raise UsageError(
                f"two different steps would both be named '{name}'",
                where=str(location),
                fix="rename the variant or the target that gives a step this name",
            )
        if first != name:
            self._aliases[name] = first
            return first
        self._identity[name] = identity
        self._outside[name] = outside
        self._steps[name] = step
        return name

    def _outside_of(self, kind: StepKind, params: object, refs: Iterable[OutputRef]) -> str:
        """Digest of where files outside the project are, upstream too; empty if there are none.

        Steps that are equal but for that are two: what is there may differ.
        """
        folders = [dict(each.outside) for each in kind.entrypoints(params)]
        above = [self._outside[ref.step] for ref in refs]
        return tagged_sha256("outside", [folders, above]) if any((*folders, *above)) else ""
