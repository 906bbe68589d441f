import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken

from onnxbuild.onnxkit.wordpiece.graph import TEXT, double_array
from onnxbuild.onnxkit.wordpiece.tokenizer_file import HARD_TEXTS, read_characters
from tests.examples import examples
from tests.onnxkit.wordpiece.tokenizers_made import PIECES, SPECIAL, Pair, pair, read, tokenizer

pytest.importorskip("tokenizers")


@pytest.fixture(scope="module")
def uncased():
    return pair()


@pytest.fixture(scope="module")
def cased():
    return pair(cased=True)


TEXTS = st.lists(
    st.one_of(
        st.text(max_size=8),
        st.sampled_from([*PIECES, *SPECIAL, " ", "\u0301", "[", "]"]),
        st.text("abunthe!\u00e9\u00c9\u4e2d \ud55c", max_size=12),
    ),
    max_size=12,
).map("".join)


@pytest.mark.sampled
@given(st.lists(TEXTS, min_size=1, max_size=4))
@settings(max_examples=examples(300), deadline=None)
def test_ids_mask_and_types_are_those_of_tokenizers(uncased, texts):
    assert uncased.differing(texts) == []


@pytest.mark.sampled
@given(st.lists(TEXTS, min_size=1, max_size=4))
@settings(max_examples=examples(300), deadline=None)
def test_a_cased_tokenizer_keeps_accents_and_capitals(cased, texts):
    assert cased.differing(texts) == []


def test_they_are_on_hard_texts_alone_and_in_a_batch(uncased, cased):
    for each in (uncased, cased):
        assert each.differing(HARD_TEXTS) == []
        assert [found for text in HARD_TEXTS for found in each.differing([text])] == []


def test_a_batch_without_a_text_has_no_rows(uncased):
    found = uncased.session.run(None, {TEXT: np.array([], object)})
    assert [each.shape for each in found] == [(0, 2)] * 3


def test_a_row_is_cut_before_its_last_special_id():
    each = pair(max_length=5)
    assert each.differing(["a b c d e f", "a", ""]) == []
    ids, mask, _ = each.session.run(None, {TEXT: np.array(["a b c d e f", "a"], object)})
    assert ids.shape == (2, 5)
    assert ids[0, [0, -1]].tolist() == [PIECES.index("[CLS]"), PIECES.index("[SEP]")]
    assert mask.tolist() == [[1] * 5, [1, 1, 1, 0, 0]]


def test_tokens_that_take_the_space_around_them_are_found_as_others_are():
    made = tokenizer()
    made.add_special_tokens([AddedToken("<m>", lstrip=True), AddedToken("<e>", rstrip=True)])
    own = read(made)
    found = Pair.of(own, read_characters(own), max_length=64)
    texts = [
        "a <m> b",
        "a<m>b",
        " \t<m>\u2028<e> \n x",
        "un<e>  under",
        "<m",
        "m>",
        "<M>",
        "<m><e><m>",
    ]
    assert found.differing(texts) == []
    assert made.token_to_id("<m>") in made.encode("a  <m>").ids


def test_no_operator_needs_a_library_of_its_own():
    import onnx

    model = onnx.load_from_string(_bytes())
    assert {node.domain for node in model.graph.node} == {"", "ai.onnx.ml", "com.microsoft"}
    contributed = {node.op_type for node in model.graph.node if node.domain == "com.microsoft"}
    assert contributed == {"Tokenizer"}
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)


def _bytes():
    from onnxbuild.onnxkit.wordpiece.graph import tokenizer_graph
    from tests.onnxkit.wordpiece.tokenizers_made import known

    own, characters = known(cased=False)
    made = tokenizer_graph(own, characters, opset=18, max_length=8, fixed=False)
    return made.SerializeToString()


WORDS = st.dictionaries(
    st.lists(st.integers(1, 9), min_size=1, max_size=5).map(tuple), st.integers(0, 99), max_size=30
)


def value(trie, root, word):
    node = root
    for symbol in word:
        place = trie.base[node] + symbol
        node = place if trie.parent[place] == node else 0
    return int(trie.value[node])


@given(WORDS, WORDS, st.lists(st.lists(st.integers(0, 9), max_size=7).map(tuple)))
def test_each_trie_holds_its_words_and_no_others(first, second, others):
    made = double_array((first, second), 10)
    for root, words in zip(made.roots, (first, second), strict=True):
        for word in {*first, *second, *others}:
            assert value(made, root, word) == words.get(word, -1)
    assert made.depth == max((len(word) for word in {*first, *second}), default=0)
