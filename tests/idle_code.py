"""Code that cannot change what a step makes: text for people, and what only type checkers read."""

from __future__ import annotations

import ast

SPEAKING = "NotApplicableError"
"""What a step that is not applicable raises: its words are kept as a result."""

BLANK = "<text>"


class Silent(ast.NodeTransformer):
    """Takes the words out of what is raised."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant(BLANK) if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.Constant:
        del node
        return ast.Constant(BLANK)


def speaks(node: ast.AST) -> bool:
    """Whether what is raised becomes a result."""
    return any(isinstance(each, ast.Name) and each.id == SPEAKING for each in ast.walk(node))


def is_idle(node: ast.AST) -> bool:
    """Whether a statement does nothing as the code runs."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True  # what is used of it is named where it is used
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.If):
        return (
            isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING" and not node.orelse
        )
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


def without_help(node: ast.Dict) -> ast.Dict:
    """A field's metadata, without its text for people."""
    pairs = [
        (key, value)
        for key, value in zip(node.keys, node.values, strict=True)
        if not (isinstance(key, ast.Constant) and key.value == "help")
    ]
    return ast.Dict([key for key, _ in pairs], [value for _, value in pairs])
