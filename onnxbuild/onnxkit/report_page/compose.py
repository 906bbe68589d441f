"""Compose a recipe's report from the reports of its steps."""

from collections.abc import Iterator, Mapping, Sequence

from onnxbuild.core.sizes import counted
from onnxbuild.core.step import Finding
from onnxbuild.onnxkit.report_page.blocks import (
    Block,
    Cell,
    Cells,
    Dot,
    Figure,
    GateVerdict,
    PageSection,
    Paragraph,
    Part,
    RecipeReport,
    ReportSource,
    Scatter,
    State,
    Table,
    VariantCard,
)
from onnxbuild.onnxkit.report_page.forms import FORMS
from onnxbuild.onnxkit.search.goals import pareto_front

SECTIONS = {
    "verdicts": "Verdicts",
    "tradeoff": "Quality, speed, size",
    "history": "Over time",
    "error": "Error",
    "score": "Score",
    "latency": "Latency",
    "cost": "Loading, memory, throughput",
    "search": "Search",
    "sensitivity": "Sensitivity",
    "placement": "Which nodes run where",
    "signature": "Signature",
    "contents": "What it is made of",
    "built": "How it was built",
}
"""Keys of sections, in the order shown -> their titles."""

_TONES = {"passed": "good", "failed": "bad", "skipped": "warn", "not run": "warn"}
_RANKS: dict[State, int] = {"failed": 0, "not run": 1, "skipped": 2, "passed": 3}
_LEAST_LOSS = 1e-9
_ANY = "plain"
"""The form of reports whose own is not known here: a plug-in's."""

_NAMED = 4
"""Variants that a sentence names; more are counted."""

_EQUAL = 0.02
"""Ratios that are nearer to 1 are none."""


def compose(
    name: str,
    description: str,
    bundles: Sequence[str],
    sources: Sequence[ReportSource],
    *,
    facts: Sequence[str] = (),
    notices: Sequence[str] = (),
    more: Sequence[Part] = (),
) -> RecipeReport:
    """Return the report of a recipe.

    Args:
        description: Its own, may be empty.
        bundles: Variants and formats, in the recipe's order; each has a card.
        sources: What its steps reported, in any order.
        facts: Short remarks below the headline.
        notices: What a reader must know first.
        more: Further parts, from who knows more than the steps.
    """
    parts = [*_parts(sources), *more]
    verdicts = _in_order([v for part in parts for v in part.verdicts], bundles)
    figures = tuple(figure for part in parts for figure in part.figures)
    judged = dict.fromkeys((*bundles, *(each.bundle for each in verdicts)))
    states = {each: _state(each, verdicts) for each in judged}
    cards = tuple(_card(each, states[each], verdicts, figures, bundles[0]) for each in bundles)
    blocks: dict[str, list[Block]] = {key: [] for key in SECTIONS}
    for part in parts:
        blocks[part.section] += part.blocks
    blocks["verdicts"] = [*_verdict_blocks(verdicts), *blocks["verdicts"]]
    blocks["tradeoff"] = [*_tradeoff(bundles, figures), *blocks["tradeoff"]]
    return RecipeReport(
        name=name,
        description=description,
        headline=_headline(bundles, states, verdicts),
        state=_worst(list(states.values())),
        cards=cards,
        verdicts=verdicts,
        facts=tuple(facts),
        sections=tuple(
            PageSection(k, SECTIONS[k], tuple(found)) for k, found in blocks.items() if found
        ),
        notices=tuple(notices),
        figures=figures,
    )


def _parts(sources: Sequence[ReportSource]) -> Iterator[Part]:
    for form, show in FORMS.items():
        found = [
            each
            for each in sources
            if each.form == form or (form == _ANY and each.form not in FORMS)
        ]
        if found:
            yield from show(found)


def _in_order(verdicts: Sequence[GateVerdict], bundles: Sequence[str]) -> tuple[GateVerdict, ...]:
    """Sort verdicts by variant, stably; those on what is made of a variant come last."""
    places = {name: n for n, name in enumerate(bundles)}
    return tuple(sorted(verdicts, key=lambda each: places.get(each.bundle, len(places))))


def _worst(states: Sequence[State]) -> State:
    return min(states, key=_RANKS.__getitem__, default="not run")


def _state(bundle: str, verdicts: Sequence[GateVerdict]) -> State:
    """Return the worst state of a bundle's gates; skipped ones count if there are no others."""
    states: list[State] = [each.state for each in verdicts if each.bundle == bundle]
    return _worst([each for each in states if each != "skipped"] or states)


def _card(
    bundle: str,
    state: State,
    verdicts: Sequence[GateVerdict],
    figures: Sequence[Figure],
    first: str,
) -> VariantCard:
    own = [each for each in verdicts if each.bundle == bundle]
    facts: dict[str, str] = {}
    for axis, title in (("size", "size"), ("speed", "median latency"), ("quality", "")):
        best = _figure(bundle, axis, figures)
        if best is not None:
            facts[title or best.name] = best.text
    for figure in figures:
        if figure.bundle == bundle and not figure.axis:
            facts.setdefault(figure.name, figure.text)
    if state == "failed":
        worst = next(each for each in own if each.state == "failed")
        why = worst.findings[0].what if worst.findings else f"{worst.gate} failed"
    elif state == "not run":
        why = next((each.why for each in own if each.why), "no gate has run")
    elif state == "skipped":
        why = next((each.why for each in own if each.why), "all gates were skipped")
    else:
        why = _compared(bundle, first, figures)
    return VariantCard(bundle, state, why, tuple(facts.items()))


def _compared(bundle: str, first: str, figures: Sequence[Figure]) -> str:
    """A variant against the first one: `2.8 x smaller and 1.1 x as fast as fp32`."""
    said = []
    if bundle != first:
        for axis, less, more in (("size", "smaller", "larger"), ("speed", "as fast", "slower")):
            own, other = _figure(bundle, axis, figures), _figure(first, axis, figures)
            if own is not None and other is not None and own.value > 0 and other.value > 0:
                ratio = other.value / own.value
                word = "as large" if axis == "size" else "as fast"
                if abs(ratio - 1) >= _EQUAL:
                    word = f"{max(ratio, 1 / ratio):.2g} x {less if ratio > 1 else more}"
                said.append(word)
    joined = " and ".join(said)
    return f"{joined}{',' if ' x ' in joined else ''} compared with {first}" if said else ""


def _figure(bundle: str, axis: str, figures: Sequence[Figure]) -> Figure | None:
    found = [each for each in figures if each.bundle == bundle and each.axis == axis]
    return min(found, key=lambda each: each.rank, default=None)


def _headline(
    bundles: Sequence[str], states: Mapping[str, State], verdicts: Sequence[GateVerdict]
) -> str:
    """The decision that the verdicts allow, in a sentence."""
    failed = [name for name, state in states.items() if state == "failed"]
    missing = [name for name in bundles if states[name] == "not run"]
    passed = [name for name in bundles if states[name] == "passed"]
    whole = "all " if len(passed) > _NAMED and len(passed) == len(bundles) else ""
    count = sum(each.state == "passed" for each in verdicts if each.bundle in passed)
    gates = "the only gate" if count == 1 else f"all {count} gates"
    rest = f"{whole}{_names(passed)} {_pass(passed)} {gates}" if passed else "no variant passes"
    gone = f"; {_names(missing)} {_have(missing)} no verdict" if missing else ""
    if failed:
        broken = counted(sum(each.state == "failed" for each in verdicts), "gate")
        return f"Don't ship {_names(failed)}: {broken} failed; {rest}{gone}."
    if missing:
        return f"Not decided: {_names(missing)} {_have(missing)} no verdict; {rest}."
    return f"Ready to ship: {rest}." if passed else "Not decided: no gate judged a variant."


def _pass(names: Sequence[str]) -> str:
    return "passes" if len(names) == 1 else "pass"


def _have(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"


def _names(names: Sequence[str]) -> str:
    if len(names) > _NAMED:
        return counted(len(names), "variant")
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _verdict_blocks(verdicts: Sequence[GateVerdict]) -> Iterator[Block]:
    if not verdicts:
        yield Paragraph("No gate judged a variant.")
        return
    on_targets = any(each.target for each in verdicts)
    rows: list[Cells] = []
    for each in verdicts:
        said = each.figures or each.why
        tag = Cell(each.state, _TONES[each.state])  # type: ignore[arg-type]
        rows.append(
            (each.bundle, each.gate, *((each.target or "first",) if on_targets else ()), tag, said)
        )
    heads = ("variant", "gate", *(("target",) if on_targets else ()), "verdict", "what decided it")
    yield Table("Gates", heads, tuple(rows))
    found: list[tuple[str, Finding]] = [
        (f"{each.bundle}, {each.gate}", finding) for each in verdicts for finding in each.findings
    ]
    if found:
        yield Table(
            "What failed, and what to try",
            ("gate", "found", "try"),
            tuple((where, finding.what, finding.fix) for where, finding in found),
        )


def _tradeoff(bundles: Sequence[str], figures: Sequence[Figure]) -> Iterator[Block]:
    """A scatter plot of the variants that have all three figures; those of one kind of quality."""
    found: dict[str, tuple[Figure, Figure, Figure | None]] = {}
    for rank in sorted({each.rank for each in figures if each.axis == "quality"}):
        of_rank = [each for each in figures if each.axis != "quality" or each.rank == rank]
        found = {}
        for bundle in bundles:
            quality, speed = _figure(bundle, "quality", of_rank), _figure(bundle, "speed", of_rank)
            if quality is not None and speed is not None:
                found[bundle] = (quality, speed, _figure(bundle, "size", of_rank))
        if len(found) > 1:
            break
    if len(found) < 2:  # noqa: PLR2004 - one alone is compared with nothing
        return
    cosine = next(iter(found.values()))[0].rank > 0
    values = {b: _quality(q, cosine=cosine) for b, (q, _, _) in found.items()}
    order = list(found)
    front = pareto_front(
        [
            (values[b] if cosine else -values[b], s.value, 0.0 if z is None else z.value)
            for b, (_, s, z) in found.items()
        ]
    )
    quality, speed, _ = next(iter(found.values()))
    dots = tuple(
        Dot(
            b,
            s.value,
            values[b],
            0.0 if z is None else z.value,
            b,
            order.index(b) in front,
            (q.text, s.text, "-" if z is None else z.text),
        )
        for b, (q, s, z) in found.items()
    )
    y_axis = (
        f"1 - {quality.name} (lower is better)" if cosine else f"{quality.name} (higher is better)"
    )
    yield Scatter(
        "Variants compared",
        f"{speed.name} (left is faster)",
        y_axis,
        dots,
        ("variant", f">{quality.name}", f">{speed.name.partition(',')[0]}", ">size"),
        log_y=cosine,
        up_is_better=not cosine,
        note="The area of a circle is the size of the model. Filled: no other variant is at least as good in all three. "
        "The line joins those that are best in quality and speed, whatever their size.",
    )


def _quality(figure: Figure, *, cosine: bool) -> float:
    return max(1 - figure.value, _LEAST_LOSS) if cosine else figure.value
