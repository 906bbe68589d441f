"""The operations on text, as recipes write them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from onnxbuild.core.params import option


@dataclass(frozen=True, slots=True)
class TextOptions:
    """Strings, (batch,)."""

    name: str = option("text", help="what the input is called in the pipeline")


@dataclass(frozen=True, slots=True)
class TokenizeOptions:
    """Ids of a WordPiece tokenizer, (batch, length), with the mask and types that belong to them."""

    file: str = option(
        help="tokenizer.json, or a vocab.txt of BERT's; relative to the recipe, or `package:NAME/PATH`"
    )
    corpus: str = option(
        help="text in UTF-8, one string a line: on these the ids must equal those of `tokenizers`"
    )
    max_length: int = option(512, help="most ids of a text, special ones included", minimum=3)
    padding: Literal["longest", "max_length"] = option(
        "longest", help="how long rows are: as the longest of the batch, or all max_length"
    )
    lowercase: bool = option(
        True,
        help="of a vocab.txt: lowercase text and strip accents; a tokenizer.json says so itself",
    )
    ids: str = option("input_ids", help="the model's input that takes the ids")
    mask: str | None = option(
        None,
        help="the one that takes 1 for tokens and 0 for padding; default: attention_mask, if it is there",
    )
    type_ids: str | None = option(
        None, help="the one that takes 0 for each; default: token_type_ids, if it is there"
    )
