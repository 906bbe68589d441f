from __future__ import annotations

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
        ("{{ size * 2 }}", 128),
        ("{{ size / 2 }}", 32.0),
        ("{{ size > 3 }}", True),
        ("{{ none }}", None),
        ("{{ sizes }}", [1, 2]),
        ("{{ sizes + [3] }}", [1, 2, 3]),
        ("{{ table.k }}", 1.5),
        ("{{ table['k'] }}", 1.5),
        ("{{ range(3) }}", [0, 1, 2]),
        ("{{ 2 ** 10 }}", 1024),
        ("{{ sizes | length }}", 2),
        ("{{ '64' | int }}", 64),
        ("{{ 'a,b'.split(',') }}", ["a", "b"]),
        ("{{ 1 if size > 3 else 2 }}", 1),
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
        ("{{ '64' }}", "64"),
        ("{{ size }}{{ size }}", "6464"),
        ("{{ size }} ", "64 "),
        ("n{{ size }}", "n64"),
        ("{% if size %}12{% endif %}", "12"),
        ("{# nothing #}", ""),
        ("{# note #}{{ size }}", 64),
        ("{% raw %}{{ size }}{% endraw %}", "{{ size }}"),
        ("{{ '{{' }}", "{{"),
        ("{{ sizes | join('-') }}", "1-2"),
    ],
)
def test_text_is_never_taken_for_python(text, value):
    assert render(text) == value
    assert type(render(text)) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "{{ ''.__class__ }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ ''['__class__'] }}",
        "{{ ''|attr('__class__') }}",
        "{{ size.__init__.__globals__ }}",
        "{{ range.__globals__ }}",
        "{{ self }}",
        "{{ self.__init__ }}",
        "{{ lipsum.__globals__ }}",
        "{{ cycler.__init__.__globals__.os }}",
        "{{ '{0.__class__}'.format(1) }}",
        "{{ '%s'.__mod__(1) }}",
        "{{ sizes.append(3) }}",
        "{{ table.update({'a': 1}) }}",
        "{{ sizes.__class__.__base__ }}",
        "{{ text.encode() }}",
        "{{ namespace() }}",
        "{{ dict(a=1) }}",
        "{% import 'os' as os %}",
        "{% include '/etc/passwd' %}",
        "{% set x = 1 %}{{ x }}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% for i in range(3) %}x{% endfor %}",
        "{{ table.items }}",
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
        "{{ 10**9 * 'a' }}",
        "{{ [0] * 10**9 }}",
        "{{ 9**9**9 }}",
        "{{ range(10**9) }}",
        "{{ range(10**9)|list }}",
        "{{ 'x'.ljust(10**9) }}",
        "{{ 'x'|center(10**9) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%1000000000d'|format(1) }}",
        "{{ '{:1000000000}'.format(1) }}",
        "{{ 'x'.zfill(10**9) }}",
        "{{ ('a' * 60000).replace('a', 'b' * 60000) }}",
        "{{ ('a' * 60000)|replace('a', 'b' * 60000) }}",
        "{{ range(1000)|join('a' * 60000) }}",
        "{{ 1.5|round(10**9) }}",
        "{{ " + "(" * 1000 + "1" + ")" * 1000 + " }}",
        "{{ " + "[" * 500 + "]" * 500 + " }}",
        "{{ " + "-" * 2000 + "1 }}",
        "{{ " + "not " * 900 + "1 }}",
        "{{ " + "9" * 5000 + " }}",
        "{{ size }}" * 1000,
        "{{ 'a' * 60000 ~ 'a' * 60000 }}",
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
