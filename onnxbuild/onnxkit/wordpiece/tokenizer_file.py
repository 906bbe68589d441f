"""Read a tokenizer's file with `tokenizers`, and see that operators can compute it."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer


_VOCABULARY = ".txt"
_BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_LEFT = "Left"
_NORMALIZERS = ("BertNormalizer", "Lowercase", "StripAccents", "Sequence")
"""Normalizers that map each character by itself; a Sequence may hold only such."""


class TokenizerError(ValueError):
    """A file that is no tokenizer, or none that operators can compute.

    Attributes:
        what: One sentence.
        fix: Something to type.
    """

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix


@dataclass(frozen=True, slots=True)
class WordPiece:
    """A WordPiece tokenizer.

    Attributes:
        tokenizer: As `tokenizers` runs it, without truncation and padding.
        vocabulary: Piece -> id; those that continue a word begin with `prefix`.
        unknown: Id of what no piece fits.
        prefix: Begins pieces that continue a word.
        longest_word: Characters of the longest word that is not unknown.
        special: Added token -> id; found in the raw text.
        before: Ids in front of a text's.
        behind: Ids after them.
        padding: Id that fills a row.
    """

    tokenizer: Tokenizer
    vocabulary: Mapping[str, int]
    unknown: int
    prefix: str
    longest_word: int
    special: Mapping[str, int]
    before: tuple[int, ...]
    behind: tuple[int, ...]
    padding: int


def read_tokenizer(name: str, path: Path, *, lowercase: bool) -> WordPiece:
    """Read a file.

    Args:
        name: As the recipe's project knows it.
        path: tokenizer.json, or vocab.txt with a piece a line.
        lowercase: Of a vocab.txt: lowercase text and strip accents; a tokenizer.json says so itself.

    Raises:
        TokenizerError: It is no tokenizer, or none of those that operators compute.
    """
    try:
        read = _from_vocabulary(path, lowercase=lowercase) if _is_list(path) else _from_json(path)
    except TokenizerError:
        raise
    except Exception as error:  # what tokenizers raises has no class of its own
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TokenizerError(
            f"{name} is no tokenizer: {reason}",
            "name a tokenizer.json (`tokenizer.save('tokenizer.json')`), or a vocab.txt of BERT's",
        ) from error
    found: dict[str, Any] = json.loads(read.to_str())
    _check(name, found)
    read.no_truncation()
    read.no_padding()
    model = found["model"]
    special = {each["content"]: each["id"] for each in found["added_tokens"]}
    before, behind = _around(read)
    padding = (found.get("padding") or {}).get("pad_id")
    if padding is None:
        padding = read.token_to_id("[PAD]") or 0
    return WordPiece(
        tokenizer=read,
        vocabulary=dict(model["vocab"]),
        unknown=model["vocab"][model["unk_token"]],
        prefix=model["continuing_subword_prefix"],
        longest_word=model["max_input_chars_per_word"],
        special=special,
        before=before,
        behind=behind,
        padding=padding,
    )


def _is_list(path: Path) -> bool:
    return path.suffix == _VOCABULARY


def _from_json(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    read: Tokenizer = Tokenizer.from_file(str(path))
    return read


def _from_vocabulary(path: Path, *, lowercase: bool) -> Tokenizer:
    """BERT's tokenizer around a list of pieces, as transformers builds it."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    vocabulary = {piece: n for n, piece in enumerate(lines)}
    missing = [each for each in ("[UNK]", "[CLS]", "[SEP]") if each not in vocabulary]
    if missing:
        raise TokenizerError(
            f"{path.name} has no {' and no '.join(missing)}; expected BERT's special tokens",
            "name the tokenizer.json instead",
        )
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106 - a piece
    made.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(each, vocabulary[each]) for each in ("[SEP]", "[CLS]")]
    made.post_processor = processors.BertProcessing(*ends)
    made.add_special_tokens([each for each in _BERT if each in vocabulary])
    return made


def _check(name: str, found: Mapping[str, Any]) -> None:
    """Check that each of its parts is one that operators compute."""
    kind = found["model"]["type"]
    fix = (
        "tokenize in your own code and feed ids; operators compute WordPiece, as BERT, MiniLM, "
        "DistilBERT and E5 have it"
    )
    if kind != "WordPiece":
        raise TokenizerError(f"{name} is a tokenizer of type {kind}; expected WordPiece", fix)
    unknown = found["model"]["unk_token"]
    if unknown not in found["model"]["vocab"]:
        raise TokenizerError(f"{name} has no piece '{unknown}' for what it does not know", fix)
    normalizer = found["normalizer"]
    for each in _flattened(normalizer):
        if each not in _NORMALIZERS:
            what = f"{name} has the normalizer {each}; expected {', '.join(_NORMALIZERS)}"
            raise TokenizerError(what, fix)
    before = (found["pre_tokenizer"] or {}).get("type", "no pre-tokenizer")
    if before != "BertPreTokenizer":
        what = f"{name} has {before}; expected BertPreTokenizer"
        raise TokenizerError(what, fix)
    for key, verb in (("truncation", "cuts texts"), ("padding", "pads rows")):
        if (found.get(key) or {}).get("direction") == _LEFT:
            what = f"{name} {verb} on the left; expected the right"
            own = f"set `direction` of `{key}` to `Right` in it, or tokenize in your own code and feed ids"
            raise TokenizerError(what, own)
    for token in found["added_tokens"]:
        # lstrip and rstrip say nothing here: the space around a token parts words and is no piece.
        odd = [each for each in ("single_word", "normalized") if token[each]]
        if odd:
            what = f"{name}: the added token '{token['content']}' is {' and '.join(odd)}"
            raise TokenizerError(what, f"save it as a special token without {', '.join(odd)}")
    _check_apart(name, [each["content"] for each in found["added_tokens"]], fix)


def _flattened(normalizer: Mapping[str, Any] | None) -> list[str]:
    if normalizer is None:
        return []
    below = [each for own in normalizer.get("normalizers", ()) for each in _flattened(own)]
    return [normalizer["type"], *below]


def _check_apart(name: str, tokens: Sequence[str], fix: str) -> None:
    """Check that no two added tokens can overlap in a text, so that search order is irrelevant."""
    for first in tokens:
        for second in tokens:
            inside = first != second and second in first[1:]
            overlaps = any(first.endswith(second[:n]) for n in range(1, len(second)))
            if inside or (overlaps and first != second) or _overlaps_itself(first):
                what = f"{name}: the added tokens '{first}' and '{second}' can overlap in a text"
                raise TokenizerError(what, fix)


def _overlaps_itself(token: str) -> bool:
    return any(token.endswith(token[:n]) for n in range(1, len(token)))


def _around(tokenizer: Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids that go in front of a text's and after them."""
    alone, whole = (tokenizer.encode("a", add_special_tokens=each).ids for each in (False, True))
    at = next(n for n in range(len(whole)) if whole[n : n + len(alone)] == alone)
    return tuple(whole[:at]), tuple(whole[at + len(alone) :])


_WORD = "unbelievabilities"

HARD_TEXTS: tuple[str, ...] = (
    "", " ", "\t\n\r ", "a", "A", ".", "...", "a.b,c;d!e?f", "don't", "rock 'n' roll", "e-mail", "_x_",
    "UPPER lower MiXeD", "caf\u00e9 CAF\u00c9", "cafe\u0301 CAFE\u0301", "na\u00efve fa\u00e7ade r\u00e9sum\u00e9",
    "\u00c5ngstr\u00f6m \u212b", "stra\u00dfe STRASSE \u1e9e", "\u0130stanbul \u0131s\u0131", "\u01c4 \u01c5 \u01c6",
    "\ufb01 \ufb02 \ufb03", "\u00bd \u00b2 \u2460 \u2167", "\u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2 \u039f\u0394\u039f\u03a3",
    "\u041c\u043e\u0441\u043a\u0432\u0430 \u0439 \u0451", "\u0419\u0438\u0306", "\u0645\u0631\u062d\u0628\u0627 \u0645\u064f\u062d\u064e\u0645\u064e\u0651\u062f",
    "\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd", "\u0939\u093f\u0928\u094d\u0926\u0940", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "\u4f60\u597d\u4e16\u754c", "\u4e2d\u6587\u548cEnglish\u6df7\u5408", "\u3053\u3093\u306b\u3061\u306f \u30ab\u30bf\u30ab\u30ca \u304c \u304b\u3099",
    "\ud55c\uad6d\uc5b4 \u1112\u1161\u11ab", "\U00020000\U0002a6d6", "\uf900\ufa0e \U0002f800", "\uff21\uff22\uff23\uff11\uff12 \uff0c",
    "\U0001f600\U0001f44d\U0001f3fd", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u2764\ufe0f", "#\ufe0f\u20e3",
    "a\u00a0b\u2003c\u3000d\u1680e", "a\u200bb\u200cc\u200dd\ufeffe", "a\u00adb", "a\x01b\x02c\x7fd\x80e", "a\ufffdb",
    "a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g", "\ue000\U000f0000", "\u0378\U0001fbff\U000e0041", "\u2018x\u2019 \u201cy\u201d \u2014 \u2026",
    "\u20ac5 \u00a310 $3.50 50%", "1,000,000.00", "2024-01-31T12:00:00Z", "https://example.org/a?b=c&d=%20#e",
    "user@example.org", "C:\\temp\\x", "def f(x): return x**2  # !", '{"a": [1, 2]}', "<b>x</b>&amp;", "^~`|+=<>$",
    "[CLS] a [SEP] b [PAD] [MASK] [UNK]", "x[SEP]y", "[SEP][SEP]", "[sep] [ SEP ] [SE P]", "[[MASK]]", "##ing ## #a",
    _WORD, _WORD * 5, "x" * 99, "x" * 100, "x" * 101, "a" * 300, "\u00e9" * 100, "\ud55c" * 40, "z\u0301" * 150,
    "the " * 700, ("word, " * 300) + "[SEP]", "a\u0300\u0301\u0302b", "\u0300\u0301", "\u1100\u1161\u11a8\u11ab",
    "q\u0307\u0323 q\u0323\u0307", "\u302e\u302f \U0001d15f\U0001d165", "\u0f73\u0f75\u0344", "\u1e9b\u0323", "\u037e\u0387\u2126",
)  # fmt: skip
"""Empty, spaces, cases, accents in both forms, scripts, marks, joiners, control and unassigned characters,
special tokens, long words and long texts."""


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
