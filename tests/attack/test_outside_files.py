"""Declared files outside the project, a Hugging Face cache above all: keyed by content, not place."""

import hashlib
import os
import shutil
from pathlib import Path

import pytest

REPOSITORY, REVISION = "models--acme--small", "0123456789abcdef0123456789abcdef01234567"

MODEL = '''\
import torch


class Embedder(torch.nn.Module):
    """A small encoder with a tokenizer's word added on, so that both files count."""

    def __init__(self):
        super().__init__()
        from transformers import AutoTokenizer, BertModel

        self.bert = BertModel.from_pretrained("acme/small", local_files_only=True)
        self.bert.config._attn_implementation = "eager"
        tokenizer = AutoTokenizer.from_pretrained("acme/small", local_files_only=True)
        self.first = tokenizer.convert_tokens_to_ids("hello")

    def forward(self, input_ids):
        hidden = self.bert(input_ids, torch.ones_like(input_ids)).last_hidden_state
        return hidden[:, 0] + self.first


def load():
    return Embedder()
'''

RECIPE = """\
version: 1
name: tiny
model: {{entrypoint: models/tiny.py:load, files: [{files}], env: {{{env}}}}}
dummy_inputs:
  input_ids: {{dtype: int64, shape: [batch, 6], low: 0, high: 20}}
outputs: [hidden]
dynamic_axes:
  batch: {{min: 1, max: 8, example: 2}}
quantization: {{fp32: none}}
benchmark: {{max_time_s: 0.1, min_samples: 3}}
export: {{exporter: torchscript}}
"""

READER = """\
import os

import torch


def load():
    folders = [os.path.expanduser(each) for each in ("~/one", "~/two", "~/deep/three")]
    found = [each for each in folders if os.path.isdir(each)]
    with open(os.path.join(found[-1], "width.txt")) as file:
        return torch.nn.Linear(6, int(file.read()))
"""


def hub_cache(hub: Path, *, hidden: int = 8) -> None:
    """What huggingface_hub leaves: blobs, links to them from a snapshot, a ref."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    made = hub / "made"
    torch.manual_seed(hidden)
    config = BertConfig(
        vocab_size=20,
        hidden_size=hidden,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=16,
    )
    BertModel(config).save_pretrained(made)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", "world"]
    (made / "vocab.txt").write_text("\n".join(words))
    BertTokenizerFast(str(made / "vocab.txt")).save_pretrained(made)
    repository = hub / REPOSITORY
    snapshot = repository / "snapshots" / REVISION
    for folder in (snapshot, repository / "blobs", repository / "refs"):
        folder.mkdir(parents=True)
    for file in made.iterdir():
        name = hashlib.sha256(file.read_bytes()).hexdigest()
        file.replace(repository / "blobs" / name)
        (snapshot / file.name).symlink_to(f"../../blobs/{name}")
    made.rmdir()
    (repository / "refs/main").write_text(REVISION)


def records(project, store="artifacts") -> dict[str, str]:
    folder = project.folder / store / "ac"
    return {path.name: path.read_text() for path in folder.rglob("*.json")}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home folder of one's own; the command and its steps see it."""
    folder = tmp_path / "home-of-somebody"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    return folder


@pytest.mark.slow
def test_a_hugging_face_cache_is_read_offline_and_may_move(project, home, tmp_path):
    hub = home / ".cache/huggingface/hub"
    hub_cache(hub)
    project.write("models/tiny.py", MODEL)
    declared = f"~/.cache/huggingface/hub/{REPOSITORY}/**"
    project.write("tiny.yaml", RECIPE.format(files=declared, env=""))
    first = project.run("--only", "reference", "--only", "export")
    assert first.code == 0, first.out + first.err
    for text in records(project).values():
        assert str(tmp_path) not in text

    # The same cache in another home folder: another machine, as it were.
    elsewhere = tmp_path / "home-of-another"
    home.rename(elsewhere)
    os.environ["HOME"] = str(elsewhere)
    moved = project.run("--only", "reference", "--only", "export")
    assert (moved.code, moved.ran) == (0, []), moved.out
    fresh = project.run("--only", "reference", "--only", "export", "--store", "fresh")
    assert fresh.code == 0, fresh.out
    assert records(project, "fresh").keys() == records(project).keys()

    # Other weights: what loads them runs, and the reason names the file as it is here.
    shutil.rmtree(elsewhere / ".cache")
    hub_cache(elsewhere / ".cache/huggingface/hub", hidden=16)
    plan = project("plan", "tiny.yaml", "--only", "export")
    assert "run     tiny:export" in plan.out
    assert f"file {elsewhere}/.cache/huggingface/hub/{REPOSITORY}/snapshots/" in plan.out
    assert "<model" not in plan.out
    changed = project.run("--only", "export")
    assert (changed.code, changed.ran) == (0, ["export"]), changed.out


@pytest.mark.slow
def test_a_cache_that_is_not_declared_is_refused_with_the_line_to_add(project, home):
    hub_cache(home / ".cache/huggingface/hub")
    project.write("models/tiny.py", MODEL)
    project.write("tiny.yaml", RECIPE.format(files="", env=""))
    seen = project.run("--only", "export")
    assert seen.code == 5, seen.out
    assert f"`files: [~/.cache/huggingface/hub/{REPOSITORY}/**]`" in seen.out


@pytest.mark.slow
def test_only_what_a_declared_file_holds_counts(project, home):
    (home / "one").mkdir()
    (home / "one/width.txt").write_text("3")
    project.write("models/tiny.py", READER)
    recipe = RECIPE.replace("input_ids: {{dtype: int64, shape: [batch, 6], low: 0, high: 20}}",
                            "input: {{dtype: float32, shape: [batch, 6]}}")  # fmt: skip
    project.write("tiny.yaml", recipe.format(files="~/one/*.txt", env=""))
    assert project.run("--only", "export").ran == ["export"]

    (home / "deep").mkdir()
    (home / "one").rename(home / "deep/three")
    gone = project.run("--only", "export")
    assert gone.code == 2
    assert "matches no file" in gone.err + gone.out
    for pattern in ("~/deep/three/*", "~/deep/three", str(home / "deep/three/width.txt")):
        project.write("tiny.yaml", recipe.format(files=f"'{pattern}'", env=""))
        seen = project.run("--only", "export")
        assert (seen.code, seen.ran) == (0, []), seen.out

    (home / "deep/three/width.txt").write_text("4")
    seen = project.run("--only", "export")
    assert seen.ran == ["export"]
    assert f"file {home}/deep/three/width.txt: " in seen.out
    reported = project("why", "tiny.yaml:export")
    assert f"file {home}/deep/three/width.txt: " in reported.out

    (home / "deep/three/more.txt").write_text("unread")
    project.write("tiny.yaml", recipe.format(files="~/deep/three/*", env=""))
    assert project.run("--only", "export").ran == ["export"]


@pytest.mark.slow
def test_code_outside_the_project_may_move_too(project, home):
    library = home / "library"
    library.mkdir()
    (library / "net.py").write_text(
        "import torch\nfrom part import width\ndef load(): return torch.nn.Linear(4, width())\n"
    )
    (library / "part.py").write_text("def width(): return 2\n")
    project.edit("tiny.yaml", "models/tiny.py:load", "'../home-of-somebody/library/net.py:load'")
    first = project.run("--only", "export")
    assert first.code == 0, first.out
    assert str(home) not in "".join(records(project).values())
    library.rename(home / "moved")
    project.edit("tiny.yaml", "/library/net.py", "/moved/net.py")
    assert project.run("--only", "export").ran == []
    (home / "moved/part.py").write_text("def width(): return 3\n")
    again = project.run("--only", "export")
    assert again.ran == ["export"]
    assert f"source {home}/moved/part.py: " in again.out
    (home / "moved/part.py").write_text("def width(): raise ValueError('no')\n")
    broken = project.run("--only", "export")
    assert broken.code == 1
    assert "<model code>" not in broken.out
