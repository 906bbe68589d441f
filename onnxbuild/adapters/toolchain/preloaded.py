"""Count packages that were loaded before a step as if the step had loaded them itself."""

import os
import sys
from collections.abc import Iterable

from onnxbuild.adapters.disk.real_paths import RealFolders
from onnxbuild.adapters.toolchain.distributions import Distributions

_NOT_COUNTED = ("_distutils_hack", "_virtualenv", "onnxbuild")
"""Loaded whenever Python starts: packages that redirect distutils; and this program, which has a version."""


class Preloaded:
    """The modules that the fork server has loaded, and their distributions.

    Args:
        roots: Distributions that were loaded on purpose. Every step uses others that none of these
            requires: they load by themselves (plug-ins of torch, code in `.pth` files).
    """

    def __init__(self, distributions: Distributions, roots: Iterable[str]) -> None:
        self.distributions = distributions
        distributions.owners()  # looked up once, for all steps
        self._tops_of: dict[str, set[str]] = {}
        self.unowned: set[str] = set()
        """Entries of site folders that were loaded and are of no distribution."""
        real = RealFolders()
        for name, module in list(sys.modules.items()):
            top = name.partition(".")[0]
            file = getattr(module, "__file__", None)
            if not isinstance(file, str) or top in _NOT_COUNTED:
                continue
            path = real.of(os.path.abspath(file))
            owners = distributions.owners_of(path)
            for owner in owners:
                self._tops_of.setdefault(owner, set()).add(top)
            entry = distributions.entry_of(path)
            if not owners and entry:
                self.unowned.add(entry)
        needed = self._needed_by(roots)
        self.unasked = frozenset(name for name in self._tops_of if name not in needed)
        """Distributions that were loaded by themselves."""

    def used_by(self, names: Iterable[str]) -> set[str]:
        """Return the loaded distributions among `names` and their requirements."""
        return self._needed_by(names) & self._tops_of.keys()

    def modules_with(self, top: str) -> set[str]:
        """Return the top-level modules that `import top` loads, of those that are loaded."""
        owners = {name for name, tops in self._tops_of.items() if top in tops}
        return {top, *(each for name in self.used_by(owners) for each in self._tops_of[name])}

    def _needed_by(self, names: Iterable[str]) -> set[str]:
        left = [real for name in names for real in self._real_names(name)]
        found: set[str] = set()
        while left:
            name = left.pop()
            if name not in found:
                found.add(name)
                needs = self.distributions.needs(name)
                left += [real for each in needs for real in self._real_names(each)]
        return found

    def _real_names(self, name: str) -> tuple[str, ...]:
        return self.distributions.stands_for(name) or (name,)
