"""Make a WordPiece tokenizer a graph, and compare its ids with those of `tokenizers`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Entrypoint
from onnxbuild.core.step import Finding, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.data.calibration_data import read_texts
from onnxbuild.onnxkit.frameworks import np, onnxruntime
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session
from onnxbuild.onnxkit.wordpiece.graph import IDS, MASK, TEXT, TYPES, tokenizer_graph
from onnxbuild.onnxkit.wordpiece.tokenizer_file import (
    HARD_TEXTS,
    TokenizerError,
    WordPiece,
    read_characters,
    read_tokenizer,
)

_BATCH = 16
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class TokenizerParams:
    """Parameters of a tokenizer.

    Attributes:
        file: tokenizer.json or vocab.txt.
        corpus: Text, one string a line.
        max_length: Most ids of a text.
        fixed: Pad all rows to that; else to the longest of the batch.
        lowercase: Of a vocab.txt.
        opset: Of ONNX's own domain: the model's.
    """

    file: Entrypoint
    corpus: Entrypoint
    max_length: int
    fixed: bool
    lowercase: bool
    opset: int


@dataclass(frozen=True, slots=True)
class _Difference:
    text: str
    what: str
    found: Sequence[int]
    expected: Sequence[int]

    def to_json(self) -> dict[str, object]:
        return {
            "text": self.text, "value": self.what, "found": list(self.found),
            "expected": list(self.expected),
        }  # fmt: skip


def run(context: StepContext) -> Outcome:
    """Write the graph, and report.json; each text whose ids differ is in it, any makes a finding.

    Raises:
        StepError: The file is no tokenizer, or none that operators compute; the corpus has no text.
    """
    params: TokenizerParams = context.params
    name, path = context.files(params.file)[0]
    texts = read_texts(*context.files(params.corpus)[0], context.where)
    try:
        read = read_tokenizer(name, path, lowercase=params.lowercase)
    except TokenizerError as error:
        raise StepError(error.what, where=context.where, fix=error.fix) from error
    around = len(read.before) + len(read.behind)
    if params.max_length <= around:
        raise StepError(
            f"max_length is {params.max_length}; the tokenizer alone puts {around} special ids around a text",
            where=context.where,
            fix=f"write `max_length: {around + 1}`, or more",
        )
    phase("making the graph")
    characters = read_characters(read)
    model = tokenizer_graph(
        read, characters, opset=params.opset, max_length=params.max_length, fixed=params.fixed
    )
    canonicalize(model)
    folder = context.output("tokenizer")
    save_model(model, folder)
    session = open_session(folder, where=context.where)
    _set_like(read, params)
    phase("comparing its ids with those of tokenizers")
    own = list(_differences(session, read, texts, context.where))
    hard = list(_differences(session, read, HARD_TEXTS, context.where))
    report = {
        "held_against": "tokenizers",
        "tokenizer": name,
        "texts": len(texts),
        "different": len(own),
        "hard_texts": len(HARD_TEXTS),
        "hard_different": len(hard),
        "differences": [each.to_json() for each in (*own, *hard)[:100]],
        "nodes": len(model.graph.node),
    }
    write_report(context.output("report"), report)
    metrics = {
        each: report[each] for each in ("texts", "different", "hard_texts", "hard_different")
    }
    return Outcome(metrics, _findings(own or hard, len(texts), name))


def _set_like(read: WordPiece, params: TokenizerParams) -> None:
    """Let `tokenizers` cut and pad as the graph does."""
    length = params.max_length if params.fixed else None
    read.tokenizer.enable_truncation(params.max_length)
    read.tokenizer.enable_padding(pad_id=read.padding, length=length)


def _differences(
    session: onnxruntime.InferenceSession, read: WordPiece, texts: Sequence[str], where: str
) -> Iterator[_Difference]:
    """The first value of each text that differs, in batches of texts that follow each other."""
    for start in range(0, len(texts), _BATCH):
        some = list(texts[start : start + _BATCH])
        found = run_session(session, {TEXT: np.array(some, object)}, where)
        for row, each in enumerate(read.tokenizer.encode_batch(some)):
            expected = {IDS: each.ids, MASK: each.attention_mask, TYPES: each.type_ids}
            yield from _different(some[row], found, row, expected)


def _different(
    text: str, found: Mapping[str, np.ndarray], row: int, expected: Mapping[str, Sequence[int]]
) -> Iterator[_Difference]:
    for name, wanted in expected.items():
        got = found[name][row].tolist()
        if got != list(wanted):
            yield _Difference(text, name, got, list(wanted))
            return


def _findings(different: Sequence[_Difference], count: int, name: str) -> tuple[Finding, ...]:
    if not different:
        return ()
    shown = "; ".join(_shown(each) for each in different[:_SHOWN])
    what = f"the ids of {len(different)} texts (of {count} in the corpus) are not those of `tokenizers`: {shown}"
    fix = "tokenize in your own code and feed ids; report the tokenizer to onnxbuild"
    return (Finding(what, f"tokenizer {name}", fix),)


def _shown(each: _Difference) -> str:
    at = next(
        (
            n
            for n, pair in enumerate(zip(each.found, each.expected, strict=False))
            if len(set(pair)) > 1
        ),
        min(len(each.found), len(each.expected)),
    )
    pair = (str(list(ids[at : at + _SHOWN])) for ids in (each.found, each.expected))
    return f"{each.text[:40]!a} at {at}: {', expected '.join(pair)}"


KIND = StepKind(
    name="tokenizer",
    version=3,
    params=TokenizerParams,
    inputs=(),
    outputs={"tokenizer": "onnx-model", "report": "report"},
    toolchain=("onnx", "onnxruntime", "numpy", "tokenizers"),
    run=run,
    entrypoints=lambda params: (params.file, params.corpus),
)
