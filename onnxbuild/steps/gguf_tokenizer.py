"""Make a tokenizer's files of the tokens in a GGUF file."""

from dataclasses import dataclass

from onnxbuild.core.entrypoint import Entrypoint
from onnxbuild.core.errors import StepError
from onnxbuild.core.external_code import external_code, message_of
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.onnxkit.data.prompts import TOKENIZER_FILES


@dataclass(frozen=True, slots=True)
class GgufTokenizerParams:
    """Parameters of a tokenizer; `file` is the GGUF file."""

    file: Entrypoint


def run(context: StepContext) -> Outcome:
    """Write tokenizer.json, tokenizer_config.json and the chat template, as transformers reads them.

    Raises:
        StepError: transformers can't read the file's tokenizer.
    """
    from transformers import AutoTokenizer

    params: GgufTokenizerParams = context.params
    shown, path = context.files(params.file)[0]
    made, folder = context.scratch / "made", context.output("tokenizer")

    def blamed(error: BaseException) -> StepError:
        what = f"transformers can't read the tokenizer in {shown}: {message_of(error)}"
        fix = "name the original's files: `generate: {tokenizer: [FOLDER/tokenizer.json, ...]}`"
        return StepError(what, where=context.where, fix=fix)

    with external_code(blamed):
        found = AutoTokenizer.from_pretrained(
            path.parent, gguf_file=path.name, local_files_only=True
        )
        found.save_pretrained(made)
    files = [name for name in TOKENIZER_FILES if (made / name).is_file()]
    for name in files:
        (made / name).rename(folder / name)
    return Outcome({"tokens": len(found), "files": files})


KIND = StepKind(
    name="gguf-tokenizer",
    version=1,
    params=GgufTokenizerParams,
    inputs=(),
    outputs={"tokenizer": "tokenizer"},
    toolchain=("transformers", "tokenizers", "gguf"),
    run=run,
    entrypoints=lambda params: (params.file,),
)
