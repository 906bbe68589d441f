"""Write a WordPiece tokenizer as a graph: strings -> ids, mask and types of tokens.

All positions of all texts are computed at once. Every position of a text looks for the longest piece that begins there
(a walk through a trie, as many steps as the longest piece has characters); which of them the greedy search reaches is found by
doubling jumps from each word's first character.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from onnxbuild.onnxkit.wordpiece.characters import Characters
from onnxbuild.onnxkit.wordpiece.double_array import DoubleArray, double_array
from onnxbuild.onnxkit.wordpiece.row_writer import RowWriter
from onnxbuild.onnxkit.wordpiece.tokenizer_file import WordPiece

if TYPE_CHECKING:
    import onnx

TEXT, IDS, MASK, TYPES = "text", "ids", "mask", "types"
_ML, _CONTRIBUTED = "ai.onnx.ml", "com.microsoft"
_ML_OPSET, _IR_VERSION = 3, 8


def tokenizer_graph(
    read: WordPiece, characters: Characters, *, opset: int, max_length: int, fixed: bool
) -> onnx.ModelProto:
    """Write the graph.

    Args:
        read: The tokenizer.
        characters: What it makes of each character.
        opset: Of ONNX's own domain.
        max_length: Most ids of a text, special ones included.
        fixed: Pad all rows to max_length; else to the longest of the batch.

    Returns: A model: strings (batch,) -> ids, mask and types, int64 (batch, length).
    """
    import onnx

    graph = _Writer(characters)
    classes = graph.classes(TEXT)
    classes = graph.mark_special(classes, _special_trie(read, characters))
    symbols = graph.symbols(classes)
    tokens, kept = graph.pieces(symbols, _piece_tries(read, characters), read)
    graph.rows(tokens, kept, read, max_length=max_length, fixed=fixed)
    kind = onnx.TensorProto
    value = onnx.helper.make_tensor_value_info
    made = onnx.helper.make_graph(
        graph.nodes,
        "tokenizer",
        [value(TEXT, kind.STRING, ["batch"])],
        [value(each, kind.INT64, ["batch", "length"]) for each in (IDS, MASK, TYPES)],
        graph.constants,
        value_info=graph.types,
    )
    domains = (("", opset), (_ML, _ML_OPSET), (_CONTRIBUTED, 1))
    return onnx.helper.make_model(
        made,
        opset_imports=[onnx.helper.make_opsetid(*each) for each in domains],
        ir_version=_IR_VERSION,
    )


def _piece_tries(read: WordPiece, characters: Characters) -> DoubleArray:
    """Pieces that begin a word, special tokens among them, and pieces that continue one."""
    begin: dict[tuple[int, ...], int] = {}
    go_on: dict[tuple[int, ...], int] = {}
    for piece, number in read.vocabulary.items():
        continues = piece.startswith(read.prefix)
        text = piece[len(read.prefix) :] if continues else piece
        word = tuple(characters.numbers.get(each, 0) for each in text)
        if word and 0 not in word:  # else no text has it
            (go_on if continues else begin)[word] = number
    for token, number in read.special.items():
        begin[(characters.tokens[token],)] = number
    return double_array((begin, go_on), len(characters.alone))


def _special_trie(read: WordPiece, characters: Characters) -> DoubleArray:
    """Special tokens by their letters -> the class that stands for each."""
    first = len(characters.symbols)
    words = {
        tuple(characters.letters[each] for each in token): first + n
        for n, token in enumerate(read.special)
    }
    return double_array((words,), len(characters.letters) + 1)


class _Writer(RowWriter):
    """Nodes of a tokenizer; values are int32, (batch, length), where nothing else is said."""

    def __init__(self, characters: Characters) -> None:
        super().__init__()
        self._characters = characters

    # Characters

    def classes(self, text: str) -> str:
        """Class of each character; those of strings that are not the longest are filled with no symbol."""
        known = self._characters
        # The row that is added holds a character of each kind: no result of a search is empty then.
        sample = " " + "".join(chr(held[0][0]) for held in known.ranges.values())
        # So that no batch is empty, `rows` takes out the empty text at its end.
        more = self.constant(["", sample], "string")
        rows = self.node("Concat", text, more, attributes={"axis": 0})
        characters = self._split(rows, {"separators": [""]})
        shape = self.node("Shape", characters)
        flat = self.node("Reshape", characters, self.constant([-1], "int64"))
        found = self._encoded(flat, {**known.classes, "": known.removed}, known.default)
        for number, ranges in known.ranges.items():
            pattern = "".join(f"\\x{{{first:X}}}-\\x{{{last:X}}}" for first, last in ranges)
            hits = self._split(flat, {"tokenexp": f"[{pattern}]"})
            hits = self.node("Reshape", hits, self.constant([-1], "int64"))
            is_one = self.cast(self._encoded(hits, {"": 0}, 1), "bool")
            found = self.node("Where", is_one, self.constant(number, "int64"), found)
        whole = self.node("Reshape", self.cast(found, "int32"), shape)
        return self._without_last(whole)

    def _without_last(self, rows: str) -> str:
        return self.node("Slice", rows, self.first, self.constant([-1], "int64"), self.first)

    def _split(self, text: str, how: Mapping[str, object]) -> str:
        import onnx

        attributes = {"mark": 0, "mincharnum": 1, "pad_value": "", **how}
        found = self.node("Tokenizer", text, attributes=attributes, domain=_CONTRIBUTED)
        # ONNX's shape inference crashes where a LabelEncoder takes a value of unknown type.
        string = onnx.TensorProto.STRING
        self.types.append(onnx.helper.make_tensor_value_info(found, string, None))
        return found

    def _encoded(self, text: str, table: Mapping[str, int], other: int) -> str:
        attributes = {
            "keys_strings": list(table),
            "values_int64s": list(table.values()),
            "default_int64": other,
        }
        return self.node("LabelEncoder", text, attributes=attributes, domain=_ML)

    def mark_special(self, classes: str, trie: DoubleArray) -> str:
        """Put the class of a special token where it begins, and the class without symbols over its rest."""
        known = self._characters
        if trie.depth == 0:
            return classes
        letters = self.looked_up(known.special, classes)
        none = self.node("Mul", letters, self.none)
        root = self.node("Add", none, self.constant(trie.roots[0], "int32"))
        found = self.longest(trie, root, letters, letters)
        begins = self.node("Greater", found.length, self.none)
        ends = self.node("Add", self.places(classes), found.length)
        sink = self.width(classes)
        ends = self.node("Where", begins, ends, sink)
        open_ = self.cast(begins, "int32")
        closed = self.scattered(self.widened(none), ends, open_, reduction="add")
        closed = self.cut(closed, 0, sink)
        depth = self.node("CumSum", self.node("Sub", open_, closed), self.constant(1, "int64"))
        inside = self.node("Greater", depth, self.none)
        removed = self.constant(known.removed, "int32")
        rest = self.node("Where", inside, removed, classes)
        return self.node("Where", begins, found.value, rest)

    def symbols(self, classes: str) -> str:
        """The symbols that characters become, without gaps; SPACE behind each row's last."""
        import numpy as np

        known = self._characters
        forms = [*known.symbols, *((each,) for each in known.tokens.values())]
        most = max(map(len, forms))
        gap = -1
        table: np.ndarray = np.full((len(forms), most), gap, np.int32)
        for row, form in zip(table, forms, strict=True):
            row[: len(form)] = form
        spread = self.node("Gather", self.constant(table, "int32"), classes)
        flat = self.node("Reshape", spread, self.constant([0, -1], "int64"))
        kept = self.node("Greater", flat, self.constant(gap, "int32"))
        counts = self.counted(kept)
        width = self.node("ReduceMax", counts, attributes={"keepdims": 0})
        width = self.node("Max", width, self.one)
        order = self.node(
            "CumSum", self.cast(kept, "int32"), self.constant(1, "int64"),
            attributes={"exclusive": 1},
        )  # fmt: skip
        target = self.node("Where", kept, order, width)
        rows = self.node("Shape", flat, attributes={"end": 1})
        columns = self.node(
            "Unsqueeze", self.cast(self.node("Add", width, self.one), "int64"), self.first
        )
        empty = self.filled(self.node("Concat", rows, columns, attributes={"axis": 0}), 0)
        return self.cut(self.scattered(empty, target, flat), 0, width)

    # Pieces

    def pieces(self, symbols: str, tries: DoubleArray, read: WordPiece) -> tuple[str, str]:
        """(id at each position, whether a token begins there)."""
        known = self._characters
        is_letter = self.node("Greater", symbols, self.none)
        alone = self.cast(self.looked_up(known.alone, symbols), "bool")
        parted = self.node("Or", alone, self.node("Not", is_letter))
        before = self.cast(self.shifted_right(self.cast(parted, "int32")), "bool")
        starts = self.node("And", is_letter, self.node("Or", alone, before))
        inside = self.node("Where", starts, self.none, symbols)
        first, later = (self.constant(each, "int32") for each in tries.roots)
        root = self.node("Where", starts, first, later)
        found = self.longest(tries, root, symbols, inside)

        width = self.width(symbols)
        following = self.node("Add", self.places(symbols), found.length)
        fits = self.node("Greater", found.length, self.none)
        stuck = self.node("And", is_letter, self.node("Not", fits))
        goes_on = self.taken(self.widened(inside), following)
        goes_on = self.node("And", fits, self.node("Greater", goes_on, self.none))
        jumps = self.widened(self.node("Where", goes_on, following, width), width)
        reached = self.widened(self.cast(starts, "int32"))
        for _ in range(max(1, read.longest_word.bit_length())):
            reached = self.scattered(reached, jumps, reached, reduction="max")
            jumps = self.taken(jumps, jumps)
        is_token = self.cast(self.cut(reached, 0, width), "bool")
        is_token = self.node("And", is_token, is_letter)

        words = self.node("CumSum", self.cast(starts, "int32"), self.constant(1, "int64"))
        words = self.node("Where", is_letter, words, self.none)  # place 0 takes what is no word
        none = self.widened(self.node("Mul", symbols, self.none))
        lengths = self.scattered(none, words, self.cast(is_letter, "int32"), reduction="add")
        too_long = self.node("Greater", lengths, self.constant(read.longest_word, "int32"))
        failed = self.cast(self.node("And", is_token, stuck), "int32")
        failed = self.scattered(none, words, failed, reduction="max")
        unknown = self.node("Or", self.cast(failed, "bool"), too_long)
        unknown = self.cast(self.taken(self.cast(unknown, "int32"), words), "bool")
        ids = self.node("Where", unknown, self.constant(read.unknown, "int32"), found.value)
        counts = self.node("Or", starts, self.node("Not", unknown))
        return ids, self.node("And", is_token, counts)

    def rows(
        self, tokens: str, kept: str, read: WordPiece, *, max_length: int, fixed: bool
    ) -> None:
        """Cut, put special ids around, and pad."""
        before, behind = len(read.before), len(read.behind)
        room = self.constant(max_length - before - behind, "int32")
        order = self.node(
            "CumSum", self.cast(kept, "int32"), self.constant(1, "int64"),
            attributes={"exclusive": 1},
        )  # fmt: skip
        kept = self.node("And", kept, self.node("Less", order, room))
        counts = self.counted(kept)
        lengths = self.node("Add", counts, self.constant(before + behind, "int32"))
        if fixed:
            width = self.constant(max_length, "int32")
        else:
            width = self.node("ReduceMax", lengths, attributes={"keepdims": 0})
        places = self.node("Add", order, self.constant(before, "int32"))
        places = self.node("Where", kept, places, width)
        column = self.node("Mul", counts, self.none)
        ahead = self.node("Add", column, self.constant([list(range(before))], "int32"))
        after = self.constant([list(range(before, before + behind))], "int32")
        after = self.node("Add", counts, after)
        all_places = self.node("Concat", ahead, places, after, attributes={"axis": 1})
        front = self.node("Add", column, self.constant([list(read.before)], "int32"))
        back = self.node("Add", column, self.constant([list(read.behind)], "int32"))
        all_ids = self.node("Concat", front, tokens, back, attributes={"axis": 1})
        rows = self.node("Shape", tokens, attributes={"end": 1})
        columns = self.node(
            "Unsqueeze", self.cast(self.node("Add", width, self.one), "int64"), self.first
        )
        empty = self.node("Concat", rows, columns, attributes={"axis": 0})
        empty = self.filled(empty, read.padding)
        ids = self.cut(self.scattered(empty, all_places, all_ids), 0, width)
        mask = self.node("Less", self.places(ids), lengths)
        self.cast(self._without_last(mask), "int64", MASK)
        ids = self._without_last(ids)
        self.cast(ids, "int64", IDS)
        self.cast(self.node("Mul", ids, self.none), "int64", TYPES)
