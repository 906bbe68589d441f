"""The release before: its numbers, and the machine they were locked on."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.errors import NotReproducibleError, UsageError
from onnxbuild.release_format.bundles import bundles_of, manifest_in
from onnxbuild.release_format.checksums import check_sums
from onnxbuild.release_format.figures import Figures, figures_of
from onnxbuild.release_format.layout import release_name
from onnxbuild.release_format.opened import opened
from onnxbuild.release_format.released import check_is_release, read_release


@dataclass(frozen=True, slots=True)
class Previous:
    """An earlier release.

    Attributes:
        title: NAME-VERSION.
        host: Of its lock.
        figures: Bundle -> its numbers.
    """

    title: str
    host: Mapping[str, str]
    figures: Mapping[str, Figures]


def read_previous(path: Path, name: str) -> Previous:
    """Read a release's numbers, from its folder or its archive.

    Args:
        name: What is released now.

    Raises:
        UsageError: It is no release, or one of something else.
        NotReproducibleError: Its files are not those that were released.
    """
    with opened(path) as folder:
        check_is_release(folder, path)
        files = check_sums(folder)
        if files.faults:
            raise NotReproducibleError(
                f"the previous release is damaged: {files.faults[0]}", where=str(path)
            )
        release = read_release(files)
        about = release.about
        if about["name"] != name:
            raise UsageError(
                f"{path} is a release of '{about['name']}'; this is one of '{name}'",
                fix="name the previous release of the same recipe",
            )
        try:
            figures = {
                variant: figures_of(entry, manifest_in(entry, release.read), release.lock)
                for variant, entry in bundles_of(about).items()
            }
        except (
            OSError,
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            ArithmeticError,
            RecursionError,
        ) as error:
            raise UsageError(
                f"the numbers of {path} can't be read: {type(error).__name__}: {error}"
            ) from error
    return Previous(release_name(name, about["version"]), release.lock.host, figures)
