"""The locales that this machine has."""

import subprocess

_TELLING = ("tr_TR", "de_DE", "fa_IR", "ja_JP")  # i and I, the comma, digits, the calendar
_PLAIN = ("C", "POSIX", "en_US")


def other_locales() -> tuple[str, ...]:
    """Locales in UTF-8 that are unlike the one of every build, the most different first; C is the last."""
    try:
        done = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False)
    except OSError:  # this system has no such command
        return ("C",)
    names = [n for n in done.stdout.split() if n.lower().endswith((".utf8", ".utf-8"))]
    foreign = {name for name in names if name.partition(".")[0] not in _PLAIN}
    return (*sorted(foreign, key=lambda name: (not name.startswith(_TELLING), name)), "C")
