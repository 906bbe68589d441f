"""Operators, functions and filters that templates may use: each bounded in time and memory."""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any, NoReturn

import jinja2
from jinja2 import meta, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.nativetypes import NativeCodeGenerator, NativeEnvironment
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from onnxbuild.document.faults import choices, hinted, nearest
from onnxbuild.document.node import UNKNOWN

TEXT_MAX = 65_536
RANGE_MAX = 1_000
BITS_MAX = 256
_PRECISION_MAX = 15


class BoundError(ValueError):
    """A template asks for more than a recipe may."""


def _sized(value: object) -> int:
    return len(value) if isinstance(value, (str, list, tuple)) else 0


def _check_size(size: int) -> None:
    if size > TEXT_MAX:
        raise BoundError(f"the result would have {size:,} items; at most {TEXT_MAX:,} are allowed")


def _check_bits(bits: int) -> None:
    if bits > BITS_MAX:
        raise BoundError(f"the result would have {bits:,} bits; at most {BITS_MAX} are allowed")


def add(left: Any, right: Any) -> Any:
    """`left + right`; texts and lists are joined up to TEXT_MAX items."""
    _check_size(_sized(left) + _sized(right))
    return operator.add(left, right)


def multiply(left: Any, right: Any) -> Any:
    """`left * right`; integers up to BITS_MAX bits, repeated texts up to TEXT_MAX characters."""
    if isinstance(left, int) and isinstance(right, int):
        _check_bits(left.bit_length() + right.bit_length())
    for repeated, count in ((left, right), (right, left)):
        if _sized(repeated) and isinstance(count, int):
            _check_size(_sized(repeated) * count)
    return operator.mul(left, right)


def power(left: Any, right: Any) -> Any:
    """`left ** right`, up to BITS_MAX bits."""
    if isinstance(left, int) and isinstance(right, int):
        _check_bits(max(1, left.bit_length()) * right if abs(left) > 1 else 0)
    return operator.pow(left, right)


def modulo(left: Any, right: Any) -> Any:
    """`left % right` of numbers; a text on the left would be a format."""
    if isinstance(left, str):
        raise BoundError("'%' formats no text here")
    return operator.mod(left, right)


BINARY: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": add,
    "*": multiply,
    "**": power,
    "%": modulo,
}


def bounded_range(*bounds: int) -> list[int]:
    """`range(...)` as a list of at most RANGE_MAX integers."""
    numbers = range(*bounds)
    if numbers[RANGE_MAX:]:
        raise BoundError(f"range gives more than {RANGE_MAX:,} numbers")
    return list(numbers)


def join(items: Sequence[object], separator: str = "") -> str:
    """The items as one text."""
    texts = [str(item) for item in items]
    _check_size(sum(map(len, texts)) + len(separator) * len(texts))
    return separator.join(texts)


def replace(text: str, old: str, new: str) -> str:
    """`text` with every `old` replaced by `new`."""
    _check_size(len(text) + text.count(old) * len(new))
    return text.replace(old, new)


def round_number(number: float, precision: int = 0) -> float:
    """`number` rounded to `precision` digits, at most 15 either way."""
    if abs(precision) > _PRECISION_MAX:
        raise BoundError(f"round takes a precision from -{_PRECISION_MAX} to {_PRECISION_MAX}")
    return round(number, precision)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {"range": bounded_range}
FILTERS: Mapping[str, Callable[..., Any]] = {
    "join": join,
    "replace": replace,
    "round": round_number,
}
PLAIN_FILTERS = (
    "abs", "capitalize", "count", "d", "default", "first", "float", "int", "last", "length",
    "list", "lower", "max", "min", "sort", "string", "title", "trim", "unique", "upper",
)  # fmt: skip
METHODS = frozenset(
    {
        "capitalize", "endswith", "get", "items", "keys", "lower", "lstrip", "removeprefix",
        "removesuffix", "rstrip", "split", "startswith", "strip", "title", "upper", "values",
    }
)  # fmt: skip


TEMPLATE_MAX = 4_096

_ALLOWED = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.Literal, nodes.Name,
    nodes.Pair, nodes.Keyword, nodes.CondExpr, nodes.Filter, nodes.Test, nodes.Call,
    nodes.Getitem, nodes.Getattr, nodes.Slice, nodes.Concat, nodes.Compare, nodes.Operand,
    nodes.BinExpr, nodes.UnaryExpr,
)  # fmt: skip
_EXPECTED = "use the recipe's vars and matrix, operators and filters"
_RAISED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError)


class TemplateFault(ValueError):  # noqa: N818 - reported as a fault of the recipe
    """A template that can't be rendered.

    Attributes:
        what: The value found and what is wrong with it.
        fix: Something to type.
        name: The name that is not declared, where that is the fault.
    """

    def __init__(self, what: str, fix: str, *, name: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix
        self.name = name


class _Generator(NativeCodeGenerator):
    """Folds nothing: what is computed is computed under the sandbox's bounds."""

    def _output_child_to_const(
        self, node: nodes.Expr, frame: Frame, finalize: CodeGenerator._FinalizeInfo
    ) -> Any:
        if not isinstance(node, nodes.TemplateData):
            raise nodes.Impossible
        return super()._output_child_to_const(node, frame, finalize)


class _Environment(ImmutableSandboxedEnvironment, NativeEnvironment):
    code_generator_class = _Generator
    intercepted_binops = frozenset(BINARY)

    def __init__(self) -> None:
        super().__init__(undefined=jinja2.StrictUndefined, optimized=False, cache_size=0)
        self.globals = dict(FUNCTIONS)
        self.filters = {name: self.filters[name] for name in PLAIN_FILTERS}
        self.filters.update(FILTERS)

    def is_safe_callable(self, obj: Any) -> bool:
        if obj in FUNCTIONS.values():
            return True
        owner = getattr(obj, "__self__", None)
        return type(owner) in (str, dict, list) and getattr(obj, "__name__", "") in METHODS

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:  # noqa: ARG002
        return BINARY[operator](left, right)


class Templates:
    """Renders templates, each compiled once."""

    def __init__(self) -> None:
        self._environment = _Environment()
        self._compiled: dict[str, tuple[jinja2.Template, bool, frozenset[str]]] = {}

    def render(self, text: str, scope: Mapping[str, Any]) -> Any:
        """The value of `text` with the names of `scope`; UNKNOWN where one of them is.

        Raises:
            TemplateFault: Syntax, an unknown name, something forbidden or too large.
        """
        if len(text) > TEMPLATE_MAX:
            what = f"the template has {len(text):,} characters; at most {TEMPLATE_MAX:,}"
            raise TemplateFault(what, "shorten it")
        try:
            template, is_expression, names = self._compile(text)
            _check_names(names, scope)
            if any(scope.get(name) is UNKNOWN for name in names):
                return UNKNOWN
            pieces = list(template.root_render_func(template.new_context(dict(scope))))
            pieces = [_defined(piece) for piece in pieces]
            value = pieces[0] if is_expression else "".join(str(piece) for piece in pieces)
        except jinja2.TemplateError as error:
            self._refuse(error)
        except MemoryError:
            raise TemplateFault("the template needs too much memory", _EXPECTED) from None
        except TemplateFault:
            raise
        except BoundError as error:
            raise TemplateFault(f"the template fails: {error}", _EXPECTED) from None
        except RecursionError:
            raise TemplateFault("the template is nested too deep", "shorten it") from None
        except (*_RAISED, SyntaxError) as error:
            what = f"the template fails: {type(error).__name__}: {error}"
            raise TemplateFault(what, "mend the expression") from None
        if isinstance(value, str) and len(value) > TEXT_MAX:
            what = f"the template gives {len(value):,} characters; at most {TEXT_MAX:,}"
            raise TemplateFault(what, "shorten it")
        return value

    def names(self, text: str) -> frozenset[str]:
        """The names that a template takes; none of one that is faulty, which `render` refuses."""
        try:
            return self._compile(text)[2] if len(text) <= TEMPLATE_MAX else frozenset()
        except (TemplateFault, jinja2.TemplateError, BoundError, RecursionError, MemoryError):
            return frozenset()

    def _compile(self, text: str) -> tuple[jinja2.Template, bool, frozenset[str]]:
        if text not in self._compiled:
            tree = self._environment.parse(text)
            for node in tree.find_all(nodes.Node):
                is_self = isinstance(node, nodes.Name) and node.name == "self"
                if is_self or not isinstance(node, _ALLOWED):
                    kind = "self" if is_self else type(node).__name__.lower()
                    raise TemplateFault(f"a template may not hold '{kind}'", _EXPECTED)
            names = frozenset(meta.find_undeclared_variables(tree))
            code = self._environment.compile(tree)
            assert isinstance(code, CodeType)
            template = jinja2.Template.from_code(
                self._environment, code, self._environment.globals
            )
            self._compiled[text] = template, _is_expression(tree), names
        return self._compiled[text]

    def _refuse(self, error: jinja2.TemplateError) -> NoReturn:
        message = error.message or type(error).__name__
        if isinstance(error, SecurityError):
            found = re.search(r"attribute '(\w+)'", message)
            name = f" ('{found[1]}')" if found else ""
            what = f"the template reaches for Python's internals{name}; a recipe can't"
            raise TemplateFault(what, _EXPECTED) from None
        unknown = re.match(r"No (filter|test) named '(\w+)'", message)
        if unknown:
            known = self._environment.filters if unknown[1] == "filter" else ()
            near = nearest(unknown[2], known)
            what = f"unknown {unknown[1]} '{unknown[2]}' in the template"
            what = hinted(what, near, f"expected {choices(known)}" if known else "")
            raise TemplateFault(what, f"write `{near}`" if near else _EXPECTED) from None
        if isinstance(error, jinja2.TemplateSyntaxError):
            what = f"template syntax: {message.rstrip('.')}"
            raise TemplateFault(what, "close every `{{` with `}}` and every quote") from None
        raise TemplateFault(f"the template fails: {message}", "mend the expression") from None


def _is_expression(tree: nodes.Template) -> bool:
    """Return whether the template is one `{{ ... }}` and nothing else."""
    if len(tree.body) != 1 or not isinstance(tree.body[0], nodes.Output):
        return False
    inside = tree.body[0].nodes
    return len(inside) == 1 and not isinstance(inside[0], nodes.TemplateData)


def _check_names(names: frozenset[str], scope: Mapping[str, Any]) -> None:
    unknown = sorted(names - set(scope) - set(FUNCTIONS))
    if not unknown:
        return
    near = nearest(unknown[0], scope)
    known = f"expected {choices(scope)}" if scope else "the recipe has none"
    what = hinted(f"'{unknown[0]}' is not declared in vars or matrix", near, known)
    fix = f"write `{near}`" if near else f"add `vars: {{{unknown[0]}: ...}}`"
    raise TemplateFault(what, fix, name=unknown[0])


def _defined(value: Any) -> Any:
    if isinstance(value, jinja2.Undefined):
        str(value)  # raises what is wrong with it
    return value
