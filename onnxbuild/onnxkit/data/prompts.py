"""Prompts as ids of tokens: those of texts, of a callable or of files, or random ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from onnxbuild.core.errors import StepError
from onnxbuild.core.external_code import external_code, message_of
from onnxbuild.core.recipe import DUMMY_DATA, FILE_DATA, Axis, Entrypoint
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.data.calibration_data import array_of_file
from onnxbuild.onnxkit.data.feeds import dummy_array
from onnxbuild.onnxkit.data.greedy import Roles
from onnxbuild.onnxkit.data.user_code import iterate_user
from onnxbuild.onnxkit.frameworks import np

_DUMMY_MAX = 12
"""Most tokens of a random prompt."""

TOKENIZER_FILE = "tokenizer.json"
TOKENIZER_FILES = (
    TOKENIZER_FILE, "tokenizer_config.json", "chat_template.jinja", "generation_config.json",
)  # fmt: skip
"""Files that a text and a chat are made into tokens by, and that say where a text ends."""

TOKENIZER_INPUT = "tokenizer"
"""Input of steps: the files that were made of a GGUF file."""


@dataclass(frozen=True, slots=True)
class TextPrompts:
    """Prompts as texts.

    Attributes:
        texts: In order.
        tokenizer: Files, of which one is a `tokenizer.json`; or a GGUF file, of which a step made them.
    """

    texts: tuple[str, ...]
    tokenizer: Entrypoint


def read_prompts(
    context: StepContext,
    data: Entrypoint | TextPrompts,
    roles: Roles,
    axes: Sequence[Axis],
    *,
    count: int,
    tokens: int,
    seed: int,
) -> list[np.ndarray]:
    """The first prompts, each of shape (length,), int64.

    Args:
        data: Texts, a callable that yields ids, files with one prompt each, or DUMMY_DATA.
        count: How many to take.
        tokens: How many tokens will follow each, which the model must have room for.

    Raises:
        StepError: There is none, one is no list of ids, or a prompt and its tokens don't fit the axes.
    """
    known = {each.name: each for each in axes}
    found = []
    for n, (label, item) in enumerate(islice(_items(context, data, roles, known, seed), count)):
        where = f"{context.where} ({label}, prompt {n})"
        prompt = _ids(item, where)
        if roles.growth is not None:
            new, past = known.get(roles.growth.by), known[roles.growth.axis]
            _check_room(len(prompt), tokens, new, past, where)
        found.append(prompt)
    if not found:
        assert isinstance(data, Entrypoint)  # there is a text
        raise StepError(
            f"{data.target} yields no prompt",
            where=context.where,
            fix="yield at least one array of token ids, shape (length,)",
        )
    return found


def _items(
    context: StepContext,
    data: Entrypoint | TextPrompts,
    roles: Roles,
    axes: dict[str, Axis],
    seed: int,
) -> Iterator[tuple[str, object]]:
    if isinstance(data, TextPrompts):
        ids_of = _encoded(context, data.tokenizer)
        for text in data.texts:
            yield repr(text), ids_of(text)
        return
    if data.target == FILE_DATA:
        for label, path in context.files(data):
            yield label, array_of_file(path, label, context.where)
        return
    if data.target != DUMMY_DATA:
        for item in iterate_user(context, data):
            yield data.target, item
        return
    by_several = roles.growth is not None and roles.growth.by
    most = min(_DUMMY_MAX, axes[by_several].max) if by_several else _DUMMY_MAX
    number = 0
    while True:
        one = replace(roles.tokens, shape=(1 + (5 * number + 3) % most,))
        yield "dummy", dummy_array(one, {}, f"{seed}:prompt:{number}")
        number += 1


def _encoded(context: StepContext, tokenizer: Entrypoint) -> Callable[[str], list[int]]:
    """A function: text -> ids.

    Raises:
        StepError: `tokenizers` is not installed, or can't read the file.
    """
    if TOKENIZER_INPUT in context.input_names:
        shown, path = TOKENIZER_FILE, context.input(TOKENIZER_INPUT) / TOKENIZER_FILE
    else:
        named = context.files(tokenizer)
        shown, path = next(each for each in named if each[1].name == TOKENIZER_FILE)

    def blamed(error: BaseException) -> StepError:
        what = f"{shown} can't be read: {message_of(error)}"
        return StepError(
            what, where=context.where, fix="save the tokenizer again by `save_pretrained`"
        )

    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise StepError(
            f"`texts` are made into ids by tokenizers, which can't be imported: {error}",
            where=context.where,
            fix="pip install 'onnxbuild[transformers]'",
        ) from error
    with external_code(blamed):
        made = Tokenizer.from_file(str(path))
    return lambda text: list(made.encode(text).ids)


def _ids(item: object, where: str) -> np.ndarray:
    found: np.ndarray = np.asarray(item)
    if found.ndim != 1 or found.dtype.kind not in "iu" or not found.size:
        raise StepError(
            f"found values of dtype {found.dtype} and shape {list(found.shape)}; expected ids of tokens, shape [length]",
            where=where,
            fix="yield a list of ints, or a NumPy array of them, such as `tokenizer(text)['input_ids']`",
        )
    return found.astype(np.int64)


def _check_room(length: int, tokens: int, new: Axis | None, past: Axis, where: str) -> None:
    if new is not None and not new.takes(length):
        raise StepError(
            f"the prompt has {length} tokens; axis '{new.name}' takes {new.rule}",
            where=where,
            fix=f"cut the prompt, or write `{new.name}: {{max: {length}}}` in `dynamic_axes`",
        )
    reached = length + tokens - 1
    if reached > past.max:
        raise StepError(
            f"the prompt has {length} tokens, and after {tokens} more the state holds {reached}; axis '{past.name}' "
            f"takes {past.rule}",
            where=where,
            fix=f"write a smaller `generate: {{tokens: ...}}`, or `{past.name}: {{max: {reached}}}` in `dynamic_axes`",
        )
