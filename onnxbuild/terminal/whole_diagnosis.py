"""A pipeline's diagnosis as tables and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxbuild.diagnosis.whole import advice_on_whole
from onnxbuild.terminal.diagnosis_output import cost_in_words, trial_records
from onnxbuild.terminal.table import print_table, say

if TYPE_CHECKING:
    from onnxbuild.diagnosis.whole import WholeDiagnosis

_HEADINGS = {"kl": "KL", "top1": "top-1", "perplexity_ratio": "perplexity ratio", "score": "score"}


def show_whole(found: WholeDiagnosis, shown: int) -> None:
    """Print failing gates, what each component in few bits costs alone, and the costliest nodes.

    Args:
        shown: How many nodes at most.
    """
    say("")
    for gate, what in found.breaches:
        say(f"{gate} fails: {what}")
    if not found.breaches:
        say("every gate of the pipeline passes")
    if not found.parts:
        say("no component is in few bits")
        return
    say("\neach component alone in few bits, all others unquantized:\n")
    print_table(
        [
            {
                "component": each.part.recipe.component,
                "variant": each.part.variant.name,
                **{_HEADINGS[name]: f"{value:.5g}" for name, value in each.figures.items()},
                "alone": "fails" if each.found else "passes",
            }
            for each in found.parts
        ]
    )
    if not found.nodes:
        say("")
        return
    more = f"; {found.unmeasured} were not measured alone" if found.unmeasured else ""
    say(f"\nnodes that cost the whole most, of {len(found.nodes)}{more}:\n")
    print_table(
        [
            {"component": component, "node": name, "cost": f"{cost:.3g}"}
            for component, name, cost in found.nodes[:shown]
        ]
    )
    say(f"\ncost: {cost_in_words(found.ranked_by)}, if only this node is in few bits")


def whole_document(found: WholeDiagnosis) -> dict[str, object]:
    """Return a pipeline's diagnosis as JSON; `output.diagnosis.WholeDiagnosisRecord` describes it."""
    return {
        "variant": found.name,
        "failing": [{"gate": gate, "what": what} for gate, what in found.breaches],
        "components": [
            {
                "component": each.part.recipe.component,
                "variant": each.part.variant.name,
                "figures": dict(each.figures),
                "found": each.found,
            }
            for each in found.parts
        ],
        "ranked_by": found.ranked_by or None,
        "nodes": [
            {"component": component, "name": name, "cost": cost}
            for component, name, cost in found.nodes
        ],
        "unmeasured": found.unmeasured,
        "trials": trial_records(found.trials),
        "yaml": list(advice_on_whole(found)),
    }
