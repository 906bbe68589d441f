"""Sources of packages, of a model whose dimension has a name that ends a comment and goes on as code."""

from types import SimpleNamespace

import pytest

from onnxbuild.onnxkit.cpp import content as cpp
from onnxbuild.onnxkit.ort_mobile import content as mobile
from onnxbuild.onnxkit.ort_mobile.languages import LANGUAGES
from onnxbuild.onnxkit.packages.contents import rendered
from onnxbuild.onnxkit.packages.signature import ModelSignature, Port
from onnxbuild.onnxkit.packages.typescript import typed_port
from onnxbuild.onnxkit.sessions.settings import SessionSettings

EVIL = "batch */ ; evil(); /*\n#error evil\n"
SIGNATURE = ModelSignature(
    "demo",
    "int8",
    "model.onnx",
    (Port("x", "float32", ("batch",), None),),
    (Port("y", "float32", (EVIL,), None),),
    (),
)
MANIFEST = SimpleNamespace(
    targets={"cpu": SimpleNamespace(session=SessionSettings(), library=None, chain=())},
    versions={"onnxruntime": "1.24.0"},
    providers=(),
    operators=None,
    sums_may_saturate=None,
)


def comments_alone(text: str) -> bool:
    """Whether `evil` is only in comments, which end where they should."""
    lines = [line.strip() for line in text.splitlines() if "evil" in line]
    assert lines
    return all(
        line.startswith(("// ", "/// "))
        or (line.startswith("/** ") and line.find("*/") == len(line) - 2 and "/*" not in line[3:])
        for line in lines
    )


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda each: each.name)
def test_sources_for_phones(language):
    about = mobile._content(SIGNATURE, MANIFEST) | mobile._ports(language, SIGNATURE, MANIFEST)
    assert comments_alone(rendered(mobile.__package__, f"{language.template}.j2", **about))


def test_a_header_of_cpp():
    names = cpp.names_of("demo", "int8")
    about = cpp._content(SIGNATURE, MANIFEST, names, [])
    assert comments_alone(rendered(cpp.__package__, "model.h.j2", **about))


def test_declarations_for_node_and_browsers():
    text = typed_port(SIGNATURE.outputs[0], SIGNATURE)["shape_text"]
    assert comments_alone(f"/** {text} */")
