"""Read a tokenizer's file with `tokenizers`, and see that operators can compute it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
