"""Write a WordPiece tokenizer as a graph: strings -> ids, mask and types of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.processing.writers import GraphWriter
from onnxbuild.onnxkit.wordpiece.tokenizer_file import Characters, WordPiece

_NONE = -1
_PATIENCE = 64


@dataclass(frozen=True, slots=True)
class DoubleArray:
    """Tries over symbols > 0.

    From a node n, symbol s leads to base[n] + s where parent[base[n] + s] == n, else nowhere: to node 0,
    which leads nowhere.

    Attributes:
        roots: Node that each trie begins with.
        base: int32, (nodes,).
        parent: int32, (nodes,); -1 where no node is.
        value: int32, (nodes,): of the word that ends there; -1 where none does.
        depth: Symbols of the longest word.
    """

    roots: tuple[int, ...]
    base: np.ndarray
    parent: np.ndarray
    value: np.ndarray
    depth: int


def double_array(tries: Sequence[Mapping[tuple[int, ...], int]], symbols: int) -> DoubleArray:
    """Lay tries into one double array.

    Args:
        tries: Each a mapping of word, as symbols, to its value.
        symbols: One more than the greatest symbol.
    """
    roots = tuple(range(1, len(tries) + 1))
    parents, values = [_NONE] * (len(tries) + 1), [_NONE] * (len(tries) + 1)
    bases = [0] * (len(tries) + 1)
    first_free = len(parents)
    waiting = [
        (root, _Node.of(sorted(trie.items())), 0) for root, trie in zip(roots, tries, strict=True)
    ]
    depth = 0
    for at, node, level in waiting:  # grows while it is walked: breadth first
        depth = max(depth, level)
        values[at] = node.value
        children = node.children(level)
        if not children:
            continue
        base = _place(parents, [symbol for symbol, _ in children], first_free)
        passed = base + children[0][0] - first_free
        if passed > _PATIENCE:  # what is free there is too narrow: a few places are left empty
            first_free += passed // 2
        bases[at] = base
        missing = base + children[-1][0] + 1 - len(parents)
        for field in (parents, values):
            field.extend([_NONE] * missing)
        bases.extend([0] * missing)
        for symbol, child in children:
            parents[base + symbol] = at
            waiting.append((base + symbol, child, level + 1))
    for field, fill in ((parents, _NONE), (values, _NONE), (bases, 0)):
        field.extend([fill] * symbols)  # any symbol after any base is inside
    base_of, parent_of, value_of = (np.array(each, np.int32) for each in (bases, parents, values))
    return DoubleArray(roots, base_of, parent_of, value_of, depth)


def _place(parents: Sequence[int], symbols: Sequence[int], start: int) -> int:
    """The first base at which all symbols fall on free places, the least on `start` or after it."""
    at = max(start, symbols[0] + 1)
    while any(
        at + each - symbols[0] < len(parents) and parents[at + each - symbols[0]] != _NONE
        for each in symbols
    ):
        at += 1
    return at - symbols[0]


@dataclass(frozen=True, slots=True)
class _Node:
    """Words that begin alike, sorted."""

    words: Sequence[tuple[tuple[int, ...], int]]
    value: int

    @staticmethod
    def of(words: Sequence[tuple[tuple[int, ...], int]]) -> _Node:
        return _Node(words, _NONE)

    def children(self, level: int) -> list[tuple[int, _Node]]:
        below: dict[int, list[tuple[tuple[int, ...], int]]] = {}
        for word in self.words:
            if len(word[0]) > level:
                below.setdefault(word[0][level], []).append(word)
        return [
            (symbol, _Node(words, words[0][1] if len(words[0][0]) == level + 1 else _NONE))
            for symbol, words in below.items()
        ]


@dataclass(frozen=True, slots=True)
class LongestWords:
    """Names of values (batch, length): the longest word at each position.

    Attributes:
        length: Its symbols; 0 where no word begins.
        value: Its value; -1 there.
    """

    length: str
    value: str


class RowWriter(GraphWriter):
    """Nodes whose values are int32, (batch, length), where nothing else is said."""

    def __init__(self) -> None:
        super().__init__()
        self.begin("tokenizer")
        self.axis = self.constant([1], "int64")
        self.first = self.constant([0], "int64")
        self.none = self.constant(0, "int32")
        self.one = self.constant(1, "int32")

    def longest(self, trie: DoubleArray, root: str, first: str, later: str) -> LongestWords:
        """The longest word of a trie from each position on.

        Args:
            root: Node that each position begins with.
            first: Symbol at each position.
            later: The same, as it is read after the first: 0 where no word may go on.
        """
        base, parent, value = (
            self.constant(each, "int32") for each in (trie.base, trie.parent, trie.value)
        )
        width = self.width(first)
        padded = self.padded(later, trie.depth)
        node = root
        length = self.node("Mul", first, self.none)
        best = self.node("Sub", length, self.one)
        for step in range(trie.depth):
            symbol = first if step == 0 else self.cut(padded, step, width)
            place = self.node("Add", self.node("Gather", base, node), symbol)
            is_there = self.node("Equal", self.node("Gather", parent, place), node)
            node = self.node("Where", is_there, place, self.none)
            found = self.node("Gather", value, node)
            ends = self.node("GreaterOrEqual", found, self.none)
            best = self.node("Where", ends, found, best)
            length = self.node("Where", ends, self.constant(step + 1, "int32"), length)
        return LongestWords(length, best)

    def looked_up(self, table: Sequence[int], places: str) -> str:
        """Look places up in a table of int32."""
        return self.node("Gather", self.constant(table, "int32"), places)

    def width(self, value: str) -> str:
        """Return the number of columns, a scalar of int32."""
        size = self.node("Shape", value, attributes={"start": 1, "end": 2})
        return self.cast(self.node("Squeeze", size), "int32")

    def places(self, value: str) -> str:
        """0, 1, 2 ... for its columns: (length,)."""
        return self.node("Range", self.none, self.width(value), self.one)

    def counted(self, kept: str) -> str:
        """Count the true values of each row: (batch, 1)."""
        return self.node(
            "ReduceSum", self.cast(kept, "int32"), self.axis, attributes={"keepdims": 1}
        )

    def cut(self, value: str, start: int, width: str) -> str:
        """`width` columns from `start` on."""
        begin = self.constant([start], "int64")
        end = self.node("Add", self.cast(width, "int64"), begin)
        return self.node("Slice", value, begin, end, self.axis)

    def padded(self, value: str, columns: int) -> str:
        """Fill `columns` more columns with 0."""
        pads = self.constant([0, 0, 0, columns], "int64")
        return self.node("Pad", value, pads)

    def widened(self, value: str, fill: str = "") -> str:
        """One more column, which takes what goes nowhere."""
        pads = self.constant([0, 0, 0, 1], "int64")
        return self.node("Pad", value, pads, *([fill] if fill else []))

    def shifted_right(self, value: str) -> str:
        """Shift rows right by one column; the first becomes 1."""
        pads = self.constant([0, 1, 0, -1], "int64")
        return self.node("Pad", value, pads, self.one)

    def filled(self, shape: str, value: int) -> str:
        """Make an array of one value of int32; `shape` is a value, too."""
        filled = onnx.numpy_helper.from_array(np.array([value], np.int32))
        return self.node("ConstantOfShape", shape, attributes={"value": filled})

    def scattered(self, data: str, places: str, values: str, reduction: str = "none") -> str:
        """Put values at places along the rows, into `data`."""
        attributes = {"axis": 1, "reduction": reduction}
        return self.node("ScatterElements", data, places, values, attributes=attributes)

    def taken(self, data: str, places: str) -> str:
        """Take what stands at places along the rows."""
        return self.node("GatherElements", data, places, attributes={"axis": 1})


TEXT, IDS, MASK, TYPES = "text", "ids", "mask", "types"
_ML, _CONTRIBUTED = "ai.onnx.ml", "com.microsoft"
_ML_OPSET, _IR_VERSION = 3, 8


def tokenizer_graph(
    read: WordPiece, characters: Characters, *, opset: int, max_length: int, fixed: bool
) -> onnx.ModelProto:
    """Write the graph.

    Args:
        characters: What it makes of each character.
        opset: Of ONNX's own domain.
        max_length: Most ids of a text, special ones included.
        fixed: Pad all rows to max_length; else to the longest of the batch.

    Returns: A model: strings (batch,) -> ids, mask and types, int64 (batch, length).
    """
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
