import json
import re

import pytest

from onnxbuild.core.step import Finding
from onnxbuild.onnxkit.drawing.markup import PAGE_MAX_BYTES
from onnxbuild.onnxkit.drawing.numbers import number, seconds
from onnxbuild.onnxkit.report_page.blocks import (
    Lines,
    Paragraph,
    Part,
    ReportSource,
    Series,
    StepNode,
    Steps,
    Table,
    Text,
)
from onnxbuild.onnxkit.report_page.compose import compose
from onnxbuild.onnxkit.report_page.forms.search import search
from onnxbuild.onnxkit.report_page.page import report_page
from tests.browser import assert_good, look_at
from tests.onnxkit.report_page.sources import a_build, validation, written

HOSTILE = '<img src=x onerror="alert(1)">&\'"`</script>'
STEPS = Steps(
    "Steps of tiny",
    (
        StepNode("tiny:export", "export", "built, 1.0 s", "run", ()),
        StepNode(
            "tiny:fp32/check", "fp32/check", "from the store, 0.1 s", "cached", ("tiny:export",)
        ),
    ),
    ("step", "last run"),
    (("export", "built"), ("fp32/check", "from the store")),
)


def report_of(folder, *, name="tiny", more=(), **build):
    names = build.get("names", ("fp32", "int8"))
    return compose(name, "a network", names, a_build(folder, **build), more=more)


def texts_of(page):
    """What a reader sees, without markup."""
    return re.sub(r"<[^>]+>", " ", page.partition("</style>")[2])


def test_the_page_begins_with_the_decision_and_compares_the_variants(tmp_path):
    page = report_page([report_of(tmp_path)])
    said = texts_of(page)
    assert "Ready to ship: fp32 and int8 pass all 2 gates." in said
    assert "2 x smaller and 2 x as fast, compared with fp32" in said
    assert said.index("Ready to ship") < said.index("Verdicts") < said.index("largest error")


def test_the_page_has_every_section_that_the_reports_fill(tmp_path):
    titles = [section.title for section in report_of(tmp_path).sections]
    assert titles == [
        "Verdicts", "Quality, speed, size", "Error", "Latency", "Loading, memory, throughput",
        "Which nodes run where", "Signature", "What it is made of",
    ]  # fmt: skip


def test_equal_reports_give_equal_bytes_in_any_folder_and_order(tmp_path):
    one = compose("tiny", "", ("fp32", "int8"), a_build(tmp_path / "one"))
    other = compose("tiny", "", ("fp32", "int8"), a_build(tmp_path / "elsewhere/other"))
    assert report_page([one]) == report_page([other])


def test_the_page_asks_nothing_of_any_server_and_runs_no_script(tmp_path):
    page = report_page([report_of(tmp_path, more=[Part("built", (STEPS,))])])
    assert re.findall(r"""(?:src|href)=["']?(?!#|data:)[^"'> ]+""", page) == []
    assert re.findall(r"url\(|@import|<script", page) == []


def test_names_from_recipes_and_models_are_text_and_no_markup(tmp_path):
    build = a_build(tmp_path, names=(HOSTILE, "int8"))
    breach = written(tmp_path / "x", {"report.json": validation(9.0, HOSTILE, breach=HOSTILE)})
    found = (Finding(HOSTILE, HOSTILE, HOSTILE),)
    build.append(ReportSource("validation", "int8", "validate", "gpu", True, breach, found))
    more = [
        Part("built", (Text(HOSTILE, HOSTILE), Table(HOSTILE, (HOSTILE,), ((HOSTILE,),)))),
        Part(
            "history", (Lines(HOSTILE, HOSTILE, (HOSTILE, "b"), (Series(HOSTILE, (1.0, 2.0)),)),)
        ),
        Part(
            "built",
            (Steps(HOSTILE, (StepNode(HOSTILE, HOSTILE, HOSTILE, "run", ()),), (HOSTILE,), ()),),
        ),
    ]
    report = compose(
        HOSTILE, HOSTILE, (HOSTILE, "int8"), build, facts=(HOSTILE,), notices=(HOSTILE,), more=more
    )
    page = report_page([report])
    assert "<img" not in page
    assert "</script" not in page
    attributes = re.findall(r'(?:aria-label|id|href|style)="([^"]*)"', page)
    assert not [each for each in attributes if "<" in each or ">" in each]


def test_each_plot_has_its_numbers_in_a_table(tmp_path):
    page = report_page([report_of(tmp_path, more=[Part("built", (STEPS,))])])
    plots = len(re.findall(r'class="rows |class="plot"|class="steps"', page))
    tables = re.findall(r"<summary>Table: ", page)
    assert plots >= 6
    assert len(tables) >= plots
    assert "0.900 to 1.10" in texts_of(page) or "0.9 to 1.1" in texts_of(page)


def test_a_page_of_many_recipes_stays_small_and_says_what_it_leaves_out(tmp_path):
    names = tuple(f"variant-{n}" for n in range(8))
    reports = [report_of(tmp_path / str(n), names=names, runs=4000) for n in range(12)]
    page = report_page(reports, title="12 recipes")
    assert len(page.encode()) < PAGE_MAX_BYTES
    assert "The page would be too large" in page
    assert "<code>onnxbuild report</code> of one recipe has them." in page
    assert len(report_page(reports[:1]).encode()) < PAGE_MAX_BYTES
    assert "would be too large" not in report_page(reports[:1])


def test_a_page_of_one_recipe_that_is_too_large_says_what_it_leaves_out_and_where_that_is(
    tmp_path,
):
    more = [
        Part("built", (Paragraph("x" * 200_000),)),
        Part("history", (Paragraph("y" * 150_000),)),
    ]
    page = report_page([report_of(tmp_path, more=more)])
    assert len(page.encode()) < PAGE_MAX_BYTES
    said = texts_of(page)
    left_out = said.partition("it leaves out sections (")[2].partition(")")[0].split("; ")
    assert left_out == [
        "Error", "Latency", "Loading, memory, throughput", "Which nodes run where", "Signature",
        "What it is made of", "How it was built",
    ]  # fmt: skip
    assert 'id="built"' not in page
    assert 'id="history"' in page
    assert "The numbers are in the JSON reports next to the models, in out/." in said
    assert "of one recipe has them" not in said, "it is one"


def test_a_failed_gate_decides_the_headline_and_shows_what_to_try(tmp_path):
    build = a_build(tmp_path)
    failed = written(
        tmp_path / "x", {"report.json": {"passed": False, "score": 0.9, "metric": "m:f"}}
    )
    finding = Finding(
        "m:f is 0.9; expected at least 0.97", "variant 'int8'", "calibrate with more samples"
    )
    build.append(ReportSource("evaluation", "int8", "evaluate", "", True, failed, (finding,)))
    report = compose("tiny", "", ("fp32", "int8"), build)
    assert report.headline == "Don't ship int8: 1 gate failed; fp32 passes the only gate."
    assert report.state == "failed"
    said = texts_of(report_page([report]))
    assert "m:f is 0.9; expected at least 0.97" in said
    assert "calibrate with more samples" in said


def test_a_variant_that_was_not_built_is_no_pass(tmp_path):
    build = [each for each in a_build(tmp_path) if each.bundle != "int8"]
    build.append(
        ReportSource(
            "validation", "int8", "validate", is_gate=True, why="not run: int8/quantize failed"
        )
    )
    report = compose("tiny", "", ("fp32", "int8"), build)
    assert report.headline.startswith("Not decided: int8 has no verdict")
    assert "not run: int8/quantize failed" in texts_of(report_page([report]))


def test_what_is_best_in_all_three_is_on_the_front_alone(tmp_path):
    build = a_build(tmp_path, names=("a", "b", "c"))
    report = compose("tiny", "", ("a", "b", "c"), build)
    (scatter,) = next(each.blocks for each in report.sections if each.key == "tradeoff")
    assert [dot.on_front for dot in scatter.dots] == [True, True, True]
    slow = json.loads((tmp_path / "b/report.json").read_text())
    slow["points"][0]["results"]["b"]["p50_ms"] = 9.0
    slow["models"]["b"]["size_bytes"] = 9_000_000
    (tmp_path / "b/report.json").write_text(json.dumps(slow))
    report = compose("tiny", "", ("a", "b", "c"), build)
    (scatter,) = next(each.blocks for each in report.sections if each.key == "tradeoff")
    assert [dot.on_front for dot in scatter.dots] == [True, False, True]


@pytest.mark.slow
def test_pages_are_good_in_a_browser(tmp_path):
    lines = Lines("score, by build", "build", ("one", "two"), (Series("int8", (0.9, 0.95)),))
    one = tmp_path / "one.html"
    more = [Part("built", (STEPS, Text("The recipe", "name: tiny"))), Part("history", (lines,))]
    one.write_text(report_page([report_of(tmp_path / "1", more=more)]))
    several = tmp_path / "several.html"
    reports = [
        report_of(tmp_path / "2"),
        report_of(tmp_path / "3", name="other", names=("fp32", "int8", "int4")),
    ]
    several.write_text(report_page(reports, title="2 recipes"))
    assert_good(look_at([one, several], tmp_path))


def test_a_gate_of_a_plug_in_is_shown_whatever_it_writes(tmp_path):
    one = written(tmp_path / "1", {"report.json": {"passed": True, "metrics": {"drift": 0.25}}})
    other = written(tmp_path / "2", {"report.json": ["no", "object"]})
    build = [
        ReportSource("their-form", "int8", "drift", is_gate=True, files=one),
        ReportSource("plain", "int8", "odd", is_gate=True, files=other),
    ]
    report = compose("tiny", "", ("int8",), build)
    assert [(each.gate, each.state) for each in report.verdicts] == [
        ("drift", "passed"),
        ("odd", "passed"),
    ]
    assert "drift 0.25" in report_page([report])


def trial(name, missed, missed_judging):
    return {
        "name": name,
        "written": f"{name}: dynamic",
        "choosing": {"cosine_mean": 0.99, "cosine_min": 0.98},
        "judging": {"cosine_mean": 0.98, "cosine_min": 0.97},
        "latency": 1.5,
        "size_bytes": 1 << 20,
        "on_front": True,
        "missed": missed,
        "missed_judging": missed_judging,
    }


@pytest.mark.parametrize(
    ("missed", "chosen", "title", "state"),
    [
        (({}, {}), "a", "auto: 1 trial, 'a' chosen", "chosen"),
        (({}, {}), "other", "auto: 1 trial, 'other' chosen", "met"),
    ],
)
def test_a_search_that_chose_nothing_is_shown_as_such(tmp_path, missed, chosen, title, state):
    report = {"goal": {"cosine_mean": 0.98}, "chosen": chosen, "trials": [trial("a", *missed)]}
    (tmp_path / "report.json").write_text(json.dumps(report))
    source = ReportSource(
        "search", "auto", "choose", files={"report.json": tmp_path / "report.json"}
    )
    (part,) = search([source])
    plot, table = part.blocks
    assert plot.title == title
    cell = table.rows[0][7]
    assert getattr(cell, "text", cell) == state


def test_trials_that_give_one_number_a_sample_are_shown_by_their_noise(tmp_path):
    made = {**trial("a", {}, {}), "one_number": True}
    made["choosing"] = {"cosine_mean": 1.0, "cosine_min": 1.0, "sqnr_db": 20.0}
    report = {"goal": {"sqnr_db": 10}, "chosen": "a", "trials": [made]}
    (tmp_path / "report.json").write_text(json.dumps(report))
    files = {"report.json": tmp_path / "report.json"}
    (part,) = search([ReportSource("search", "auto", "choose", files=files)])
    assert part.blocks[0].y_axis == "loss: noise to signal (lower is better)"
    assert part.blocks[0].dots[0].y == 0.01


@pytest.mark.parametrize(("value", "text"), [(59.9, "59.9 s"), (119.7, "2 min 0 s")])
def test_seconds_never_reach_sixty_in_a_time_of_minutes(value, text):
    assert seconds(value) == text


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (1e5, "1.00e+5")])
def test_a_number_that_is_rounded_to_a_thousand_has_no_exponent(value, text):
    assert number(value) == text


def measured(folder, points):
    """Text of a page of one benchmark, with points in place of the usual one."""
    build = a_build(folder)
    path = build[-1].files["report.json"]
    report = json.loads(path.read_text())
    (usual,) = report["points"]
    for point in points:
        for name, found in usual["results"].items():
            parts = point.pop("parts", None) if name == "int8" else None
            rate = point.get("items", 1) * found["throughput_items_per_s"]
            own = {**found, "throughput_items_per_s": rate, **({"parts": parts} if parts else {})}
            point.setdefault("results", {})[name] = own
    path.write_text(json.dumps({**report, "points": points}))
    page = report_page([compose("tiny", "", ("fp32", "int8"), build)])
    return " ".join(texts_of(page).split())


def test_a_decoder_has_its_first_token_by_prompt_its_later_ones_by_past_and_its_state(tmp_path):
    said = measured(
        tmp_path,
        [
            {"point": "sequence=16,past=0", "kind": "prefill", "state_bytes": 16 << 10},
            {
                "point": "sequence=1,past=128",
                "kind": "decode",
                "items": 4,
                "state_bytes": 129 << 10,
            },
        ],
    )
    assert "at sequence=16,past=0 (prefill, the median is the time to the first token)" in said
    assert "at sequence=1,past=128 (decode)" in said
    assert "ms a token tokens/s vs PyTorch" in said
    table = said.partition("point call state after it fp32 int8 pytorch ")[2]
    assert table.startswith(
        "sequence=16,past=0 prefill 16.0 KiB 2 ms 1 ms 3 ms sequence=1,past=128 decode 129.0 KiB "
        "0.5 ms a token, 2,000 tokens/s 0.25 ms a token, 4,000 tokens/s"
    )
    assert "tokens a second, at sequence=1,past=128 2,000" in said


def test_a_pipeline_has_each_components_share_and_the_callables(tmp_path):
    parts = {
        "encoder": {"calls": 1, "p50_ms": 0.25, "share": 0.2},
        "decoder": {"calls": 24, "p50_ms": 0.03, "share": 0.7},
    }
    said = measured(tmp_path, [{"point": "batch=1", "kind": "tokens", "parts": parts}])
    assert (
        "int8 encoder 1 0.25 ms 20% int8 decoder 24 30 µs 70% int8 the callable itself - - 10%"
        in said
    )


def test_gates_of_the_whole_say_tokens_divergence_and_score_in_words(tmp_path):
    reports = {
        "fp32": {"passed": True, "metrics": {"equal_min": 1.0, "max_abs": None}},
        "int8": {"passed": True, "kl": 0.00123, "top1": 0.99996, "perplexity_ratio": 1.00521, "compared": 256},
    }  # fmt: skip
    sources = [
        ReportSource("whole", name, "generate", is_gate=True, files=written(tmp_path / name, {"report.json": each}))
        for name, each in reports.items()
    ]  # fmt: skip
    report = compose("tiny", "", tuple(reports), sources)
    assert [each.figures for each in report.verdicts] == [
        "equal elements 100%",
        "KL divergence, nats 0.00123, top-1 agreement 99.996%, ratio of perplexities 1.0052, tokens compared 256",
    ]
    assert dict(report.cards[1].facts)["top-1 agreement"] == "99.996%"
