"""The command line's projects."""

from tests.cli.conftest import project  # noqa: F401 - a fixture
