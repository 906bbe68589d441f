from hypothesis import given
from hypothesis import strategies as st

from onnxbuild.onnxkit.wordpiece.graph import double_array

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
