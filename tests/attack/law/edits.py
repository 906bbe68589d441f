"""What people do to a project between two builds; each edit leads from a tree to another."""

import itertools
import random
import re
from dataclasses import replace

from tests.attack.law.contents import Content, Disk, Distribution, Link, Tree
from tests.attack.law.formats import File
from tests.attack.law.program import MAIN, RECIPE, Edit, Part, Program

_TRIES = 20
_REVERTED = 0.15


def apply(tree: Tree, edit: Edit) -> Tree | None:
    """The tree after an edit; None if there is nothing to do it to."""
    found = tree.get(edit.path)
    if edit.op in {"add", "noise", "unrelated"}:
        if found is not None or edit.content is None or _blocked(tree, edit.path):
            return None
        return {**tree, edit.path: edit.content}
    if edit.op == "declare":
        return _declared(tree, str(edit.value))
    if found is None:
        return None
    if edit.op == "touch":
        return dict(tree)
    if edit.op in {"delete", "rename", "swap"}:
        return _moved(tree, edit)
    content = _edited(found, edit)
    return None if content is None or content == found else {**tree, edit.path: content}


def _declared(tree: Tree, pattern: str) -> Tree | None:
    recipe = tree[RECIPE]
    assert isinstance(recipe, File)
    if f"'{pattern}'" in recipe.text:
        return None
    gap = "" if "files: []" in recipe.text else ", "
    text = re.sub(r"files: \[(.*)\]", rf"files: [\1{gap}'{pattern}']", recipe.text)
    return {**tree, RECIPE: replace(recipe, text=text)}


def _moved(tree: Tree, edit: Edit) -> Tree | None:
    """The tree without a file, or with another name for it."""
    after, other = dict(tree), str(edit.value)
    content = after.pop(edit.path)
    if edit.op == "swap":
        if not isinstance(tree.get(other), type(content)):
            return None
        return {**tree, edit.path: tree[other], other: content}
    if edit.op == "rename":
        if other in tree:
            return None
        after[other] = content
    return after


def _edited(content: Content, edit: Edit) -> Content | None:
    if edit.op == "retarget":
        return edit.content
    if isinstance(content, File) and edit.op in {"change", "silent change"}:
        return replace(content, number=int(edit.value))
    if isinstance(content, File) and edit.op == "comment":
        return replace(content, comments=content.comments + 1)
    if isinstance(content, Distribution) and edit.op == "upgrade":
        version = "1.1" if content.version == "1.0" else "1.0"
        return replace(content, version=version, number=int(edit.value))
    if isinstance(content, Distribution) and edit.op == "rebuild":
        return replace(content, number=int(edit.value))
    return None


def _blocked(tree: Tree, path: str) -> bool:
    """Whether a file or a link stands where a folder would be."""
    return any(path.startswith(f"{each}/") for each in tree) or any(
        each.startswith(f"{path}/") for each in tree
    )


def perform(disk: Disk, edit: Edit, after: Tree) -> None:
    """Do it on the disk."""
    if edit.op == "touch":
        disk.place(edit.path).touch()
    elif edit.op == "swap":
        disk.swap(edit.path, str(edit.value))
    disk.lay(after, in_silence=edit.op == "silent change")


def is_irrelevant(edit: Edit, program: Program) -> bool:
    """Whether no step may run after it."""
    if edit.op in {"noise", "unrelated"}:
        return not any(part.starts_python for part in program.parts)
    if edit.op == "touch":
        return edit.path != RECIPE
    if edit.op != "comment":
        return False
    owners = [part for part in program.parts if edit.path in part.files()]
    if edit.path == MAIN:  # a worker that warns opens the source whose line it quotes
        return not any(part.starts_python for part in program.parts)
    return bool(owners) and all(part.exact for part in owners)


def draw_edits(dice: random.Random, program: Program, tree: Tree, count: int) -> list[Edit]:
    """Edits that can be done to a program, one after another."""
    drawn: list[Edit] = []
    first = tree
    for _ in range(count):
        for _ in range(_TRIES):
            edit = _draw(dice, program, tree, len(drawn))
            after = None if edit is None else apply(tree, edit)
            if edit is not None and after is not None:
                drawn.append(edit)
                tree = after
                break
        if drawn and dice.random() < _REVERTED:
            drawn.append(Edit("revert"))
            tree = first
    return [replace(edit, number=number) for number, edit in enumerate(drawn, 1)]


def _draw(dice: random.Random, program: Program, tree: Tree, count: int) -> Edit | None:
    if dice.random() < 0.08:
        return _general(dice, count)
    part = dice.choice(program.parts)
    options = _options(dice, part, tree)
    if not options:
        return None
    op = dice.choice(sorted({each.op for each in options}))
    return dice.choice([each for each in options if each.op == op])


def _general(dice: random.Random, count: int) -> Edit:
    return dice.choice(
        [
            Edit("unrelated", f"project/models/unrelated{count}.py", content=File("py", 10)),
            Edit("unrelated", f"project/notes{count}.txt", content=File("txt", 10)),
            Edit("touch", MAIN),
            Edit("comment", MAIN),
            Edit("declare", value="models/spare.txt"),
        ]
    )


def _options(dice: random.Random, part: Part, tree: Tree) -> list[Edit]:
    piece = part.piece
    found: list[Edit] = [
        Edit("add", path, content=content)
        for path, content in piece.adds.items()
        if path not in tree
    ]
    found += [Edit("noise", path, content=each) for path, each in piece.noise.items()]
    found += [
        Edit("retarget", path, content=Link(target))
        for path, targets in piece.targets.items()
        for target in targets
    ]
    own = [path for path in {**part.files(), **piece.adds} if path in tree]
    for path in own:
        content = tree[path]
        if isinstance(content, Distribution):
            number = dice.randint(10, 99)
            found += [Edit(op, path, number) for op in ("upgrade", "rebuild")]
            found.append(Edit("delete", path))
            continue
        found.append(Edit("delete", path))
        if isinstance(content, Link):
            continue
        found.append(Edit("touch", path))
        if content.number:
            number = dice.choice([n for n in range(10, 100) if n != content.number])
            found += [Edit(op, path, number) for op in ("change", "silent change")] * 2
        if content.kind == "py":
            found.append(Edit("comment", path))
        stem, _, suffix = path.rpartition(".")
        found.append(Edit("rename", path, f"{stem}x.{suffix}"))
    for path in piece.targets:
        if isinstance(tree.get(path), Link) and "." in path.rpartition("/")[2]:
            kinds = [c for p, c in piece.files.items() if isinstance(c, File) and p != path]
            if kinds:
                found.append(
                    Edit("retarget", path, content=replace(kinds[0], number=dice.randint(10, 99)))
                )
    files = [path for path in own if isinstance(tree[path], File) and path in piece.files]
    for one, other in itertools.pairwise(files):
        if tree[one].kind == tree[other].kind:  # type: ignore[union-attr]
            found.append(Edit("swap", one, other))
    return found
