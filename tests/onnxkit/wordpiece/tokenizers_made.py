"""Small WordPiece tokenizers, and a graph of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnxruntime
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from onnxbuild.onnxkit.wordpiece.graph import TEXT, tokenizer_graph
from onnxbuild.onnxkit.wordpiece.tokenizer_file import (
    Characters,
    WordPiece,
    read_characters,
    read_tokenizer,
)

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PIECES = (
    *SPECIAL, *"abcdefghijklmnopqrstuvwxyz0123456789.,!?'-#[]中文\u1112\u1161\u11ab", "é", "É", "ß",
    "un", "the", "believ", "under", "abc", "Ab", "...", "##", "##able", "##a", "##b", "##c", "##ed", "##s",
    "##ing", "##believ", "##abc", "##é", "##\u1161", "##\u11ab", "##1", "##.",
)  # fmt: skip
PIECES = tuple(dict.fromkeys(PIECES))


def tokenizer(pieces: Sequence[str] = PIECES, **normalizer: bool) -> Tokenizer:
    """BERT's, with few pieces."""
    numbers = {each: n for n, each in enumerate(pieces)}
    made = Tokenizer(models.WordPiece(numbers, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(**normalizer)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(each, numbers[each]) for each in ("[SEP]", "[CLS]")]
    made.post_processor = processors.BertProcessing(*ends)
    made.add_special_tokens(list(SPECIAL))
    return made


def read(made: Tokenizer) -> WordPiece:
    """As it is read from its file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        made.save(str(path))
        return read_tokenizer("tokenizer.json", path, lowercase=True)


@cache
def known(*, cased: bool) -> tuple[WordPiece, Characters]:
    """The small tokenizer, and what it makes of characters; worked out once."""
    found = read(tokenizer(lowercase=not cased))
    return found, read_characters(found)


@dataclass
class Pair:
    """A graph and what it is compared with."""

    session: onnxruntime.InferenceSession
    reference: Tokenizer

    @staticmethod
    def of(
        own: WordPiece, characters: Characters, *, max_length: int, fixed: bool = False
    ) -> Pair:
        """Of a tokenizer that was read."""
        model = tokenizer_graph(own, characters, opset=18, max_length=max_length, fixed=fixed)
        reference = Tokenizer.from_str(own.tokenizer.to_str())
        reference.enable_truncation(max_length)
        reference.enable_padding(pad_id=own.padding, length=max_length if fixed else None)
        return Pair(onnxruntime.InferenceSession(model.SerializeToString()), reference)

    def differing(self, texts: Sequence[str]) -> list[tuple[str, list[int], list[int]]]:
        """(text, found, expected) where ids, mask or types are not the same."""
        found = self.session.run(None, {TEXT: np.array(texts, object)})
        bad = []
        for row, each in enumerate(self.reference.encode_batch(list(texts))):
            wanted = [each.ids, each.attention_mask, each.type_ids]
            own = [array[row].tolist() for array in found]
            if own != wanted:
                bad.append((texts[row], own[0], wanted[0]))
        return bad


def pair(*, cased: bool = False, max_length: int = 64, fixed: bool = False) -> Pair:
    """The graph of the small tokenizer."""
    return Pair.of(*known(cased=cased), max_length=max_length, fixed=fixed)
