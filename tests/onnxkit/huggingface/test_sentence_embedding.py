"""What sentence-transformers does after a folder's transformer, in a comment for its recipe."""

import json

import pytest

from onnxbuild.onnxkit.huggingface.folder import embedding_comment

OLD = "sentence_transformers.models"
POOL_AND_NORMALIZE = "processing: {postprocess: [pool: {mask: attention_mask}, l2_normalize: {}]}"


def folder(path, *kinds, pooling=None):
    """A folder with modules of these types."""
    modules = [{"idx": n, "path": f"{n}_M", "type": kind} for n, kind in enumerate(kinds)]
    (path / "modules.json").write_text(json.dumps(modules))
    for n, kind in enumerate(kinds):
        (path / f"{n}_M").mkdir()
        content = pooling if kind.endswith(".Pooling") else {}
        (path / f"{n}_M/config.json").write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("kinds", "pooling", "said"),
    [
        ([f"{OLD}.Transformer", f"{OLD}.Pooling", f"{OLD}.Normalize"],
         {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True},
         f"mean pooling, then normalize. For embeddings, add `{POOL_AND_NORMALIZE}`"),
        ([f"{OLD}.Transformer", f"{OLD}.Pooling"], {"pooling_mode": "lasttoken"},
         "lasttoken pooling. `processing` has no lasttoken pooling: for embeddings, name a callable"),
        ([f"{OLD}.Transformer", f"{OLD}.Pooling"],
         {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True},
         "several kinds of pooling. `processing` has no several kinds of pooling"),
    ],
)  # fmt: skip
def test_what_follows_the_transformer_is_said_with_the_yaml_to_add(tmp_path, kinds, pooling, said):
    assert said in embedding_comment(folder(tmp_path, *kinds, pooling=pooling))


def test_a_folder_without_pooling_or_with_broken_files_says_nothing(tmp_path):
    assert embedding_comment(tmp_path) == ""
    (tmp_path / "modules.json").write_text("[{")
    assert embedding_comment(tmp_path) == ""
    (tmp_path / "modules.json").write_text('[3, {"type": 1}, {"type": "a.Transformer"}]')
    assert embedding_comment(tmp_path) == ""
