"""A folder of a store's tmp/ that lasts as long as an executor; what is left of a killed one is swept by the next run."""

import shutil
from pathlib import Path

from onnxbuild.adapters.clock import run_id
from onnxbuild.adapters.disk import locks


class RunFolder:
    """A temporary folder, made when something is put there.

    Args:
        root: The store's.

    Attributes:
        id: Name of the folder, of which there is no other.
        path: Where it is.
    """

    def __init__(self, root: Path) -> None:
        self.id = run_id()
        self.path = root / "tmp" / self.id
        self._lock_path = root / "locks" / f"run-{self.id}"
        self._lock = locks.wait_lock(self._lock_path)

    def close(self) -> None:
        """Remove it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock_path.unlink(missing_ok=True)
        self._lock.release()
