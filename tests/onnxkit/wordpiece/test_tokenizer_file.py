import pytest

from onnxbuild.onnxkit.wordpiece.tokenizer_file import TokenizerError, read_tokenizer

tokenizers = pytest.importorskip("tokenizers")
from tests.onnxkit.wordpiece.tokenizers_made import (  # noqa: E402
    PIECES,
    SPECIAL,
    read,
    tokenizer,
)


def test_a_tokenizer_json_says_what_stands_around_a_text():
    made = tokenizer()
    made.enable_padding(pad_id=7)
    found = read(made)
    assert (found.before, found.behind) == ((PIECES.index("[CLS]"),), (PIECES.index("[SEP]"),))
    assert (found.padding, found.longest_word, found.prefix) == (7, 100, "##")
    assert tuple(found.special) == SPECIAL
    assert found.tokenizer.padding is None


def test_a_list_of_pieces_is_berts_tokenizer(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    lower, cased = (read_tokenizer("vocab.txt", path, lowercase=each) for each in (True, False))
    text = "É abc [SEP]"
    assert lower.tokenizer.encode(text).ids == tokenizer(lowercase=True).encode(text).ids
    assert cased.tokenizer.encode(text).ids == tokenizer(lowercase=False).encode(text).ids
    assert lower.tokenizer.encode(text).ids != cased.tokenizer.encode(text).ids
    path.write_text("a\nb\n[UNK]\n")
    with pytest.raises(TokenizerError, match=r"has no \[CLS\] and no \[SEP\]"):
        read_tokenizer("vocab.txt", path, lowercase=True)


def byte_pairs():
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel()
    return made


def changed(**parts):
    made = tokenizer()
    for name, value in parts.items():
        setattr(made, name, value)
    return made


def on_the_left(**parts):
    made = tokenizer()
    made.enable_truncation(8, direction=parts.get("truncation", "right"))
    made.enable_padding(direction=parts.get("padding", "right"))
    return made


def with_token(*added, **options):
    made = tokenizer()
    made.add_special_tokens([tokenizers.AddedToken(each, **options) for each in added])
    return made


@pytest.mark.parametrize(
    ("made", "what"),
    [
        (byte_pairs, "of type BPE; expected WordPiece"),
        (
            lambda: changed(pre_tokenizer=tokenizers.pre_tokenizers.Whitespace()),
            "has Whitespace; expected BertPreTokenizer",
        ),
        (lambda: with_token("[X]", normalized=True), "'[X]' is normalized"),
        (lambda: with_token("xyx"), "can overlap"),
        (lambda: on_the_left(padding="left"), "pads rows on the left; expected the right"),
    ],
)
def test_a_tokenizer_that_operators_do_not_compute_is_refused(made, what):
    with pytest.raises(TokenizerError) as caught:
        read(made())
    assert what in caught.value.what
    assert caught.value.fix


def test_what_is_no_tokenizer_is_one_sentence(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    with pytest.raises(TokenizerError, match="is no tokenizer") as caught:
        read_tokenizer("x/tokenizer.json", path, lowercase=True)
    assert "tokenizer.save" in caught.value.fix
