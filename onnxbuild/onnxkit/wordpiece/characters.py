"""Classes of characters that `tokenizers` treats alike, read off it for all of Unicode."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from onnxbuild.onnxkit.wordpiece.tokenizer_file import WordPiece

SPACE, UNKNOWN, UNKNOWN_ALONE, FIRST = 0, 1, 2, 3
"""Symbols: what parts words; a letter and a word of its own in no piece; the first of others."""
_SURROGATES = range(0xD800, 0xE000)
_JOINS, _ALONE, _SPACE = "joins", "alone", "space"
_UNKNOWN = {_JOINS: UNKNOWN, _ALONE: UNKNOWN_ALONE}
_GAP: tuple[tuple[int, ...], int] = ((), 0)
_CHUNK = 128
_BAR = "|"
_MANY = 1000
"""Characters of one class from which on a regular expression names them in place of a table."""


@dataclass(frozen=True, slots=True)
class Characters:
    """Characters -> classes -> symbols.

    Attributes:
        classes: Character -> class, of those that neither `ranges` nor the default hold.
        default: Class of all other characters.
        ranges: Class -> ranges of its code points, first and last, of classes of many.
        symbols: Class -> what its characters become: 0 to 3 symbols, say.
        alone: Symbol -> 1 where it is a word of its own.
        numbers: Normalized character -> symbol.
        tokens: Special token -> symbol.
        special: Class -> letter of special tokens, 0 for none.
        letters: Character of a special token -> its letter.
        removed: The class without symbols.
    """

    classes: Mapping[str, int]
    default: int
    ranges: Mapping[int, Sequence[tuple[int, int]]]
    symbols: Sequence[tuple[int, ...]]
    alone: Sequence[int]
    numbers: Mapping[str, int]
    tokens: Mapping[str, int]
    special: Sequence[int]
    letters: Mapping[str, int]
    removed: int


def read_characters(read: WordPiece) -> Characters:
    """Normalize and split every character of Unicode, and put those of equal results into classes."""
    counted = Counter(each for piece in read.vocabulary for each in piece)
    known = _roles(read, sorted(counted))
    usable = [each for each, role in known.items() if role != _SPACE]
    usable.sort(key=lambda each: (-counted[each], each))  # small numbers make narrow tries
    numbers = {each: FIRST + n for n, each in enumerate(usable)}
    tokens = {each: FIRST + len(usable) + n for n, each in enumerate(read.special)}
    letters = {each: n for n, each in enumerate(sorted(set("".join(read.special))), 1)}

    order = {_GAP: 0}
    points, classes = [], []
    for some in _chunks():
        normalized = _normalized(read, some)
        roles = _roles(read, sorted(set("".join(normalized))))
        symbols = {
            each: SPACE if role == _SPACE else numbers.get(each, _UNKNOWN[role])
            for each, role in roles.items()
        }
        for each, text in zip(some, normalized, strict=True):
            form = (tuple(symbols[part] for part in text), letters.get(each, 0))
            classes.append(order.setdefault(form, len(order)))
            points.append(ord(each))
    counts = Counter(classes)
    default = counts.most_common(1)[0][0]
    members: dict[int, list[int]] = {
        number: [] for number, count in counts.items() if count >= _MANY and number != default
    }
    table = {}
    for point, number in zip(points, classes, strict=True):
        if number in members:
            members[number].append(point)
        elif number != default:
            table[chr(point)] = number
    return Characters(
        classes=table,
        default=default,
        ranges={each: tuple(_ranges(held)) for each, held in sorted(members.items())},
        symbols=[form for form, _ in order],
        alone=[0, 0, 1, *(int(known[each] == _ALONE) for each in usable), *(1 for _ in tokens)],
        numbers=numbers,
        tokens=tokens,
        special=[letter for _, letter in order],
        letters=letters,
        removed=order[_GAP],
    )


def _chunks() -> Iterator[list[str]]:
    """Yield all characters of Unicode but surrogates, some at a time."""
    for start in range(0, sys.maxunicode + 1, _CHUNK):
        points = range(start, min(start + _CHUNK, sys.maxunicode + 1))
        some = [chr(each) for each in points if each not in _SURROGATES]
        if some:
            yield some


def _normalized(read: WordPiece, characters: Sequence[str]) -> list[str]:
    normalizer = read.tokenizer.normalizer
    if normalizer is None:
        return list(characters)
    parts: list[str] = normalizer.normalize_str(_BAR + _BAR.join(characters) + _BAR).split(_BAR)[
        1:-1
    ]
    if len(parts) == len(characters):
        return parts
    return [normalizer.normalize_str(each) for each in characters]  # the bar is one of them


def _roles(read: WordPiece, characters: Sequence[str]) -> dict[str, str]:
    """Normalized character -> how the pre-tokenizer splits it between letters."""
    split = read.tokenizer.pre_tokenizer.pre_tokenize_str
    roles: dict[str, str] = {}
    for start in range(0, len(characters), _CHUNK):
        some = characters[start : start + _CHUNK]
        whole = "".join(some)
        if [word for word, _ in split(whole)] == [whole]:
            roles |= dict.fromkeys(some, _JOINS)
            continue
        words = iter([word for word, _ in split(" ".join(f"a{each}a" for each in some))])
        for each in some:
            if next(words) == f"a{each}a":
                roles[each] = _JOINS
                continue
            following = next(words)
            roles[each] = _ALONE if following == each else _SPACE
            if following == each:
                next(words)
    return roles


def _ranges(points: Sequence[int]) -> Iterator[tuple[int, int]]:
    first = last = points[0]
    for point in points[1:]:
        if point != last + 1:
            yield first, last
            first = point
        last = point
    yield first, last
