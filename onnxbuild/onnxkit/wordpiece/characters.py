"""What a tokenizer makes of each character: read off `tokenizers` itself, for all of Unicode."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from onnxbuild.onnxkit.wordpiece.tokenizer_file import WordPiece

SPACE, UNKNOWN, UNKNOWN_ALONE, FIRST = 0, 1, 2, 3
"""Symbols: what parts words; a letter and a word of its own in no piece; the first of others."""
_SURROGATES = range(0xD800, 0xE000)
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
    points = [n for n in range(sys.maxunicode + 1) if n not in _SURROGATES]
    normalized = _normalized(read, points)
    roles = _roles(read, sorted(set().union(*normalized)))
    known = {each for piece in read.vocabulary for each in piece} & roles.keys()
    counted = Counter(each for piece in read.vocabulary for each in piece)
    usable = [each for each in known if roles[each] != "space"]
    usable.sort(key=lambda each: (-counted[each], each))  # small numbers make narrow tries
    numbers = {each: FIRST + n for n, each in enumerate(usable)}
    tokens = {each: FIRST + len(usable) + n for n, each in enumerate(read.special)}
    alone = [
        0,
        0,
        1,
        *(int(roles[each] == "alone") for each in usable),
        *(1 for _ in read.special),
    ]

    def symbol(each: str) -> int:
        if roles[each] == "space":
            return SPACE
        return numbers.get(each, UNKNOWN_ALONE if roles[each] == "alone" else UNKNOWN)

    letters = {each: n for n, each in enumerate(sorted(set("".join(read.special))), 1)}
    own = {each: symbol(each) for each in roles}
    forms = [
        (tuple(own[each] for each in text), letters.get(chr(point), 0))
        for point, text in zip(points, normalized, strict=True)
    ]
    counts = Counter(forms)
    order = {form: n for n, form in enumerate(dict.fromkeys([((), 0), ((SPACE,), 0), *forms]))}
    default = counts.most_common(1)[0][0]
    large = {form for form, count in counts.items() if count >= _MANY and form != default}
    members: dict[int, list[int]] = {order[form]: [] for form in large}
    classes = {}
    for point, form in zip(points, forms, strict=True):
        if form in large:
            members[order[form]].append(point)
        elif form != default:
            classes[chr(point)] = order[form]
    return Characters(
        classes=classes,
        default=order[default],
        ranges={each: tuple(_ranges(held)) for each, held in sorted(members.items())},
        symbols=[form for form, _ in order],
        alone=alone,
        numbers=numbers,
        tokens=tokens,
        special=[letter for _, letter in order],
        letters=letters,
        removed=order[(), 0],
    )


def _normalized(read: WordPiece, points: Sequence[int]) -> list[str]:
    normalizer = read.tokenizer.normalizer
    if normalizer is None:
        return [chr(each) for each in points]
    found: list[str] = []
    for start in range(0, len(points), _CHUNK):
        some = [chr(each) for each in points[start : start + _CHUNK]]
        parts = normalizer.normalize_str(_BAR + _BAR.join(some) + _BAR).split(_BAR)[1:-1]
        clear = len(parts) == len(some)  # not where the bar itself is among them
        found += parts if clear else [normalizer.normalize_str(each) for each in some]
    return found


def _roles(read: WordPiece, characters: Sequence[str]) -> dict[str, str]:
    """Normalized character -> `joins`, `alone` or `space`, as the pre-tokenizer splits it between letters."""
    split = read.tokenizer.pre_tokenizer.pre_tokenize_str
    roles: dict[str, str] = {}
    for start in range(0, len(characters), _CHUNK):
        some = characters[start : start + _CHUNK]
        words = iter([word for word, _ in split(" ".join(f"a{each}a" for each in some))])
        for each in some:
            word = next(words)
            if word == f"a{each}a":
                roles[each] = "joins"
            else:
                following = next(words)
                roles[each] = "alone" if following == each else "space"
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
