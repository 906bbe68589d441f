import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxbuild.core.recipe import Location
from onnxbuild.document.faults import Faults
from onnxbuild.document.node import UNKNOWN, scalar
from onnxbuild.recipe.templates.expand import Renderer
from onnxbuild.recipe.templates.template import TemplateFault, Templates
from tests.examples import examples

SCOPE = {"size": 64, "text": "[1, 2]", "number": "007", "sizes": [1, 2], "table": {"k": 1.5}}


def render(text, **scope):
    return Templates().render(text, {**SCOPE, **scope})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{ 64 }}", 64),
        ("{{ size }}", 64),
        ("{{ size / 2 }}", 32.0),
        ("{{ sizes }}", [1, 2]),
        ("{{ table.k }}", 1.5),
        ("{{ range(3) }}", [0, 1, 2]),
        ("{{ '64' | int }}", 64),
    ],
)
def test_one_expression_keeps_its_values_type(text, value):
    assert render(text) == value
    assert type(render(text)) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{ text }}", "[1, 2]"),
        ("{{ number }}", "007"),
        ("{{ size }}{{ size }}", "6464"),
        ("{% if size %}12{% endif %}", "12"),
        ("{# note #}{{ size }}", 64),
    ],
)
def test_text_is_never_taken_for_python(text, value):
    assert render(text) == value
    assert type(render(text)) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "{{ ''.__class__ }}",
        "{{ ''['__class__'] }}",
        "{{ ''|attr('__class__') }}",
        "{{ range.__globals__ }}",
        "{{ '{0.__class__}'.format(1) }}",
        "{{ sizes.append(3) }}",
        "{{ text.encode() }}",
        "{% import 'os' as os %}",
        "{% for i in range(3) %}x{% endfor %}",
    ],
)
def test_python_is_out_of_reach(text):
    faults = Faults()
    at = Location("f.yaml", 1, 1)
    assert Renderer(faults).render(scalar(text, at), SCOPE).value is UNKNOWN
    assert faults


@pytest.mark.parametrize(
    "text",
    [
        "{{ 'a' * 10**9 }}",
        "{{ 9**9**9 }}",
        "{{ range(10**9) }}",
        "{{ 'x'.ljust(10**9) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ ('a' * 60000).replace('a', 'b' * 60000) }}",
        "{{ " + "(" * 1000 + "1" + ")" * 1000 + " }}",
        "{{ " + "9" * 5000 + " }}",
        "{{ size }}" * 1000,
    ],
)
def test_a_bomb_is_refused_at_once(text):
    with pytest.raises(TemplateFault):
        render(text)


def test_an_undeclared_name_is_reported_even_behind_a_default():
    with pytest.raises(
        TemplateFault, match="'siez' is not declared in vars or matrix; did you mean 'size'"
    ):
        render("{{ siez | default(1) }}")


@pytest.mark.sampled
@given(st.text("{}%#|()[]'\"~*+-./<>=! abnsizetxorif0123456789_\n", max_size=40))
@settings(max_examples=examples(500))
def test_any_template_gives_a_value_or_a_fault(text):
    node = scalar("{{" + text, Location("f.yaml", 1, 1))
    faults = Faults()
    value = Renderer(faults).render(node, SCOPE).value
    assert (value is UNKNOWN) == bool(faults)
