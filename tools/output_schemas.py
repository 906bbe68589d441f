"""Write the schemas of what verbs print with `--json`: `python -m tools.output_schemas`, a part of `make golden`."""

from __future__ import annotations

from pathlib import Path

from onnxbuild.output.verbs import OUTPUTS, file_name, output_schema_text

FOLDER = Path(__file__).parents[1] / "schemas" / "output"


def main() -> None:
    """Write one file a verb, and remove those of verbs that are gone."""
    FOLDER.mkdir(exist_ok=True)
    texts = {file_name(verb): output_schema_text(verb) for verb in OUTPUTS}
    for path in FOLDER.iterdir():
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
