"""Read the data that a model is calibrated on: feeds of a callable, of files, or random ones; each checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from onnxbuild.core.axis import example_sizes
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DUMMY_DATA, FILE_DATA, Axis, DummyInput, Entrypoint
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.data.data_files import file_feeds, sample_rows
from onnxbuild.onnxkit.data.feeds import Feeds, check_feeds, make_feeds
from onnxbuild.onnxkit.data.user_feeds import iterate_user
from onnxbuild.onnxkit.host.progress import counted


@dataclass(frozen=True, slots=True)
class FeedSource:
    """Source of feeds.

    Attributes:
        data: A callable that yields them, or FILE_DATA with its files, or DUMMY_DATA.
        inputs: Inputs, as the recipe declares them.
        axes: The dynamic axes.
        seed: Seed of random feeds.
    """

    data: Entrypoint
    inputs: Sequence[DummyInput]
    axes: Sequence[Axis]
    seed: int = 0

    @property
    def label(self) -> str:
        """Its name in messages."""
        if self.data.target == DUMMY_DATA:
            return "`data: dummy`"
        if self.data.target == FILE_DATA:
            files = self.data.files
            return files[0] if len(files) == 1 else f"{len(files)} files from {files[0]} on"
        return self.data.target

    @property
    def is_random(self) -> bool:
        """Whether the feeds are random: `data: dummy`."""
        return self.data.target == DUMMY_DATA

    def feeds(self, context: StepContext, count: int) -> Iterator[Feeds]:
        """The first `count` samples, checked one by one.

        Raises:
            StepError: The data can't be had, or a sample is not what the recipe declares.
        """
        return counted(islice(self._all(context), count), "samples", count)

    def nothing(self, count: int, where: str) -> StepError:
        """Return the error for data without a single sample.

        Args:
            count: Number of samples that were asked for.
            where: `recipe:step`, for messages.
        """
        fix = "yield at least one mapping of input name -> array"
        if self.data.target == FILE_DATA:
            rows = sample_rows(self.inputs[0], self.axes)
            fix = "write arrays of at least one row"
            if rows > 1:
                fix = (
                    f"write arrays of at least {rows} rows, which make one sample, or lower "
                    f"`dynamic_axes: {{{self.inputs[0].shape[0]}: {{min: {rows}}}}}`"
                )
        return StepError(f"{self.label} yields no sample; expected {count}", where=where, fix=fix)

    def _all(self, context: StepContext) -> Iterator[Feeds]:
        where = context.where
        if self.data.target == DUMMY_DATA:
            number = 0
            while True:
                sizes = example_sizes(self.axes)
                yield make_feeds(self.inputs, sizes, f"{self.seed}:calibration:{number}")
                number += 1
        elif self.data.target == FILE_DATA:
            files = context.files(self.data)
            for label, found in file_feeds(files, self.inputs, self.axes, where):
                yield check_feeds(found, self.inputs, f"{where} ({label})")
        else:
            for n, sample in enumerate(iterate_user(context, self.data)):
                yield check_feeds(sample, self.inputs, f"{where} ({self.data.target}, sample {n})")
