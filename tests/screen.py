"""A terminal of so many columns that a test looks at: what stands on it in the end."""

import re

_PARTS = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|(\r\n|\r|\n|\x08)|([^\x1b\r\n\x08]+)|\x1b.")


class Screen:
    """Takes what a program writes to a terminal; lines that are too long go on in the next, as there.

    Args:
        columns: Characters a line.
    """

    def __init__(self, columns: int = 80) -> None:
        self._columns = columns
        self._rows: list[list[str]] = [[]]
        self._row = self._column = 0
        self.broken: list[str] = []
        """Lines that did not fit and went on in the next."""

    def feed(self, text: str) -> None:
        """Take what was written."""
        for escape, kind, control, plain in _PARTS.findall(text):
            if kind:
                self._escape(escape, kind)
            elif control:
                self._control(control)
            else:
                for character in plain:
                    self._put(character)

    @property
    def text(self) -> str:
        """All lines, also those that went out at the top, without blanks at their ends."""
        return "\n".join("".join(row).rstrip() for row in self._rows).rstrip("\n") + "\n"

    def _put(self, character: str) -> None:
        if self._column == self._columns:
            self.broken.append("".join(self._rows[self._row]))
            self._control("\r\n")
        row = self._rows[self._row]
        row += " " * (self._column + 1 - len(row))
        row[self._column] = character
        self._column += 1

    def _control(self, control: str) -> None:
        if control == "\x08":
            self._column = max(self._column - 1, 0)
            return
        if "\r" in control:
            self._column = 0
        if "\n" in control:
            self._row += 1
            if self._row == len(self._rows):
                self._rows.append([])

    def _escape(self, numbers: str, kind: str) -> None:
        count = int(numbers) if numbers.isdigit() else 0
        if kind == "A":
            self._row = max(self._row - max(count, 1), 0)
        elif kind == "G":
            self._column = max(count, 1) - 1
        elif kind == "K":
            row = self._rows[self._row]
            del row[0 if count == 2 else self._column :]
        elif kind == "J":
            del self._rows[self._row + 1 :], self._rows[self._row][self._column :]
        else:
            assert kind in "mhl", f"a terminal's command that this does not know: {numbers}{kind}"
