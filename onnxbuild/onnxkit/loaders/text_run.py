"""Go on with a prompt, by the model in this folder: a token at a time, printed as it comes.

    python run.py "What is a cache?"    a message, where the tokenizer has a chat template; else a text
    python run.py --text "A cache is"   the text itself goes on
    python run.py --ids "12 5 7"        ids of tokens in, ids out: no tokenizer is needed

The most likely token follows, so that each run gives the same text; `--temperature 0.7 --top-p 0.9 --seed 1` draws
tokens instead. Needs onnxruntime and numpy, for texts tokenizers, and for a chat template jinja2.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from onnxbuild.onnxkit.loaders.decoding import chosen
from onnxbuild.onnxkit.loaders.onnx_bundle import load
from onnxbuild.onnxkit.loaders.shared import HERE, LoadError, read_manifest, size_of

TOKENIZER = HERE / "tokenizer"
_UNFINISHED = "\ufffd"
"""Ends a text whose last character has more bytes than there are tokens for yet."""


def main() -> None:
    """Print the new tokens as text, or as ids."""
    parser = argparse.ArgumentParser(
        description="Go on with a prompt: the most likely token, and again; with --temperature, a drawn one."
    )
    parser.add_argument("prompt", help="a message or a text; with --ids, numbers")
    parser.add_argument("--tokens", type=int, default=256, help="most new tokens")
    parser.add_argument("--temperature", type=float, default=0.0, help="draw tokens: 0.7, say")
    parser.add_argument(
        "--top-p", type=float, default=1.0, help="share of probability to draw from"
    )
    parser.add_argument(
        "--seed", type=int, help="of the drawing; left out: another text each time"
    )
    parser.add_argument("--target", default="", help="one of the manifest's targets")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--text", action="store_true", help="take no chat template")
    form.add_argument("--ids", action="store_true", help="take and print ids of tokens")
    asked = parser.parse_args()
    try:
        if asked.ids:
            ids, ends, show = list(map(int, asked.prompt.split())), [], _show_ids
        else:
            tokenizer = _tokenizer()
            ids = _encoded(tokenizer, asked.prompt, plain=asked.text)
            ends = special_ids(TOKENIZER, "eos", tokenizer.token_to_id)
            show = partial(_show_text, tokenizer)
        seed = secrets.randbits(64) if asked.seed is None else asked.seed
        rules = {"temperature": asked.temperature, "top_p": asked.top_p, "seed": seed}
        show(
            new_tokens(
                load(asked.target), read_manifest(), ids, asked.tokens, ends=ends, rules=rules
            )
        )
    except LoadError as error:
        raise SystemExit(str(error)) from error


def new_tokens(
    session: Any,
    manifest: Mapping[str, Any],
    prompt: Sequence[int],
    count: int,
    *,
    ends: Collection[int] = (),
    rules: Mapping[str, Any] | None = None,
) -> Iterator[int]:
    """Yield the ids of new tokens: `count`, or less where one ends the text or the cache is full.

    Args:
        session: Of the model.
        manifest: The bundle's.
        prompt: Ids, at least one; longer ones than the model takes in one call go in by parts.
        ends: Ids after which nothing follows.
        rules: Arguments of `chosen`; left out: the most likely tokens.

    Raises:
        LoadError: There is no prompt, or it is longer than the model's cache.
    """
    import numpy as np

    known, axes = manifest["decoder"], manifest["dynamic_axes"]
    inputs = {each["name"]: each for each in manifest["inputs"]}
    empty = {**dict.fromkeys(axes, 1), known["past"]: 0}
    state = {
        name: np.zeros([size_of(n, empty) for n in inputs[name]["shape"]], inputs[name]["dtype"])
        for name in manifest["state"]
    }
    most = axes[known["new"]]["max"] if known["new"] else 1
    room = axes[known["past"]]["max"] + 1 if known["past"] else sys.maxsize
    if not 0 < len(prompt) <= room:
        raise LoadError(f"the prompt has {len(prompt)} tokens; the model takes 1 to {room}")
    if known.get("in_place"):
        call = _in_place(session, manifest, state, min(room, len(prompt) + count))
        state = {}
    else:
        call = _call(session)
    waiting, past, found = list(prompt), 0, {}
    for n in range(count):
        while waiting:
            part, waiting = waiting[:most], waiting[most:]
            total = past + len(part)
            feeds = {known["ids"]: np.array([part])}
            for name in known["masks"]:
                is_whole = "+" in str(inputs[name]["shape"][-1])
                feeds[name] = np.ones((1, total if is_whole else len(part)))
            for name in known["positions"]:
                positions = np.arange(past, total)
                feeds[name] = positions if len(inputs[name]["shape"]) == 1 else positions[None]
            typed = {name: each.astype(inputs[name]["dtype"]) for name, each in feeds.items()}
            found = call({**typed, **state})
            state = {name: found[manifest["state"][name]] for name in state}
            past = total
        token = int(chosen(found[known["logits"]][:, -1], n, **rules or {})[0])
        yield token
        if token in ends or past >= room:
            return
        waiting = [token]


def _call(session: Any) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    names = [each.name for each in session.get_outputs()]
    return lambda feeds: dict(zip(names, session.run(names, feeds)))  # noqa: B905 - of Python 3.10


def _in_place(
    session: Any, manifest: Mapping[str, Any], empty: Mapping[str, Any], room: int
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return a function that runs the model on one buffer for each state, with room for so many tokens."""
    import numpy as np
    from onnxruntime import OrtValue

    logits, past = manifest["decoder"]["logits"], manifest["decoder"]["past"]
    shapes = {each["name"]: each["shape"] for each in manifest["inputs"]}
    binding = session.io_binding()
    for name, fed_by in manifest["state"].items():
        shape = list(empty[name].shape)
        shape[shapes[name].index(past)] = room
        buffer = OrtValue.ortvalue_from_numpy(np.zeros(shape, empty[name].dtype))
        binding.bind_ortvalue_input(name, buffer)
        binding.bind_ortvalue_output(fed_by, buffer)

    def call(feeds: Mapping[str, Any]) -> dict[str, Any]:
        for name, array in feeds.items():
            binding.bind_cpu_input(name, np.ascontiguousarray(array))
        binding.bind_output(logits, "cpu")
        session.run_with_iobinding(binding)
        return {logits: binding.get_outputs()[-1].numpy()}

    return call


def _show_ids(tokens: Iterator[int]) -> None:
    for token in tokens:
        print(token, end=" ", flush=True)
    print()


def _show_text(tokenizer: Any, tokens: Iterator[int]) -> None:
    """Print what each token adds to the text, as soon as its characters are whole."""
    ids: list[int] = []
    shown = ""
    for token in tokens:
        ids.append(token)
        text = tokenizer.decode(ids, skip_special_tokens=True)
        if not text.endswith(_UNFINISHED):
            print(text[len(shown) :], end="", flush=True)
            shown = text
    print()


def _tokenizer() -> Any:
    file = TOKENIZER / "tokenizer.json"
    if not file.is_file():
        raise LoadError(
            "this model came without a tokenizer: give ids, `python run.py --ids '1 2'`"
        )
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise LoadError(f"{error}: `pip install tokenizers`, or give ids: --ids") from error
    return Tokenizer.from_file(str(file))


def _encoded(tokenizer: Any, prompt: str, *, plain: bool) -> list[int]:
    """Ids of a text, or of a message in the form in which the model was trained on messages."""
    template, config = TOKENIZER / "chat_template.jinja", _json(TOKENIZER, "tokenizer_config.json")
    source = template.read_text("utf-8") if template.is_file() else config.get("chat_template")
    if plain or not isinstance(source, str):
        return list(tokenizer.encode(prompt).ids)
    try:
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError as error:
        raise LoadError(f"{error}: `pip install jinja2`, or leave out the chat: --text") from error

    def refuse(message: str) -> None:
        raise LoadError(f"the chat template refuses the message: {message}")

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = refuse
    named = {name: _content(config.get(name)) for name in ("bos_token", "eos_token")}
    text = environment.from_string(source).render(
        messages=[{"role": "user", "content": prompt}], add_generation_prompt=True, **named
    )
    return list(tokenizer.encode(text, add_special_tokens=False).ids)


def special_ids(folder: Path, name: str, id_of: Callable[[str], int | None]) -> list[int]:
    """Return the ids of a special token: of generation_config.json, else the tokenizer's own; there may be none.

    Args:
        folder: Of the tokenizer's files.
        name: `eos` for what ends a text, `bos` or `pad`.
        id_of: Token -> its id.
    """
    said = _json(folder, "generation_config.json").get(f"{name}_token_id")
    if said is None:
        said = id_of(_content(_json(folder, "tokenizer_config.json").get(f"{name}_token")))
    return [each for each in (said if isinstance(said, list) else [said]) if each is not None]


def _content(token: Any) -> str:
    """A token's text, which a config may hold in a mapping."""
    return str((token.get("content") if isinstance(token, Mapping) else token) or "")


def _json(folder: Path, name: str) -> dict[str, Any]:
    file = folder / name
    found: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    return found


if __name__ == "__main__":
    main()
