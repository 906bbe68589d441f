"""Sentences are wrapped at words on a terminal; commands, and what is to be written, stay whole."""

import sys

from onnxbuild.adapters.console.wrap import fitted, output_width, wrapped
from tests.pseudo_terminal import terminal

COMMAND = "onnxbuild run recipes/bert.yaml --only int8 --set quantization.int8.per_channel=false"


def test_lines_end_between_words_and_go_on_below_the_text():
    text = (
        "error: --only int9 is no variant or step of these recipes; the nearest are int8 and int4"
    )
    assert wrapped(text, 50) == (
        "error: --only int9 is no variant or step of these\n"
        "       recipes; the nearest are int8 and int4"
    )
    assert wrapped("cpu          GenuineIntel, avx2 avx512 avx512_vnni", 40) == (
        "cpu          GenuineIntel, avx2 avx512\n             avx512_vnni"
    )
    assert wrapped("left over: artifacts/out/tiny is gone", 30) == (
        "left over: artifacts/out/tiny\n  is gone"
    )


def test_what_fits_and_what_goes_through_a_pipe_stays_as_it_is(capsys):
    long = "word " * 50
    assert wrapped("a  b   c", 80) == "a  b   c"
    assert wrapped(long, 0) == long
    assert fitted(long) == fitted(long, err=True) == long
    assert output_width() == 0


def test_a_terminal_has_its_width(monkeypatch):
    with terminal(57) as screen:
        found = output_width(), output_width(err=True)
        sys.stdout.write(fitted("word " * 20))
    assert found == (57, 57)
    assert screen.broken == []


def test_a_command_is_never_broken():
    for text in (
        f"  fix: {COMMAND}",
        f"to see where it goes wrong, and which nodes to leave in fp32: {COMMAND}",
        f"  fix: write another name in one of them, or build one alone: {COMMAND}; or read the docs",
        f"  fix: look at the docs: {COMMAND} (see docs/recipe.md)",
    ):
        lines = wrapped(text, 40).split("\n")
        assert sum(COMMAND in line for line in lines) == 1, lines
        assert " ".join(" ".join(lines).split()) == " ".join(text.split())


def test_what_is_to_be_written_is_never_broken():
    files = "`files: [models/labels.txt, models/data/words.txt]`"
    text = f"fix: declare them next to the entrypoint that reads them: {files}, or the folder"
    assert wrapped(text, 40).split("\n") == [
        "fix: declare them next to the entrypoint",
        "     that reads them:",
        f"     {files},",
        "     or the folder",
    ]
