"""A sink that keeps what it is sent."""

from onnxbuild.core.event import Event


class Heard:
    """Keeps events.

    Attributes:
        events: In the order they came.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)
