import pytest

from onnxbuild.requirements import Pin, read_pins


def test_pins_are_read_with_markers_hashes_and_comments():
    text = """\
# what OpenVINO needs
--extra-index-url https://example.org/simple
onnxruntime_openvino==1.24.1   # with the provider
numpy == 2.2.6 ; python_version < "3.13"
sympy[all]==1.14.0 \\
    --hash=sha256:aa \\
    --hash=sha256:bb

protobuf==6.33.1.post1+local
"""
    pins, faults = read_pins(text)
    assert faults == ()
    assert pins == (
        Pin("onnxruntime-openvino", "1.24.1", 3),
        Pin("numpy", "2.2.6", 4),
        Pin("sympy", "1.14.0", 5),
        Pin("protobuf", "6.33.1.post1+local", 9),
    )


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("numpy", "'numpy' is not pinned; expected NAME==VERSION"),
        ("numpy==2.*", "'numpy==2.*' is not pinned; expected NAME==VERSION"),
        ("-r other.txt", "'-r other.txt' is no pinned requirement; expected NAME==VERSION"),
        (
            "it @ https://example.org/it.whl",
            "'it @ https://example.org/it.whl' is no pinned requirement; expected NAME==VERSION",
        ),
    ],
)
def test_what_leaves_something_open_is_reported_with_its_line(line, what):
    pins, (fault,) = read_pins(f"sympy==1.14.0\n\n{line}\n")
    assert [pin.name for pin in pins] == ["sympy"]
    assert (fault.what, fault.line) == (what, 3)
    assert fault.fix


def test_an_empty_list_is_a_fault():
    pins, (fault,) = read_pins("# nothing yet\n--no-index\n")
    assert pins == ()
    assert fault.what == "the list is empty"
