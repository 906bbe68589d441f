"""What of a `session` is merged, and what is allowed and seldom meant."""

from onnxbuild.features.settings.session.faults import remarks

SHARED = "session: {spinning: stop, intra_op_threads: 2, free_dimensions: {batch: 2}}\n"
VARIANTS = """\
quantization:
  fp32: none
  int8:
    mode: dynamic
    session: {spinning: never, execution_mode: parallel, inter_op_threads: 1}
"""


def test_a_variants_session_lies_over_the_recipes(project, base):
    recipe = project.recipe(base + SHARED + VARIANTS)
    fp32, int8 = recipe.variants
    assert "session" not in fp32.sections
    shared, own = recipe.sections["session"].settings(), int8.sections["session"].settings()
    assert (shared.spinning, shared.execution_mode) == ("stop", "sequential")
    assert (own.spinning, own.execution_mode, own.intra_op_threads) == ("never", "parallel", 2)
    assert own.free_dimensions == {"batch": 2}


def test_more_threads_than_cores_are_reported_with_their_line(project, base):
    recipe = project.recipe(base + SHARED)
    (remark,) = map(str, remarks(recipe, 1))
    assert "session has `intra_op_threads: 2`, and here are 1 cores" in remark
    line = (base + SHARED).splitlines().index(SHARED.strip()) + 1
    assert f".yaml:{line}:27: " in remark
    assert list(remarks(recipe, 2)) == []


def test_parallel_mode_with_one_thread_and_threads_without_it_are_reported_where_written(
    project, base
):
    (remark,) = map(str, remarks(project.recipe(base + SHARED + VARIANTS), 8))
    assert "quantization.int8.session has `execution_mode: parallel`" in remark
    (remark,) = map(str, remarks(project.recipe(base + "session: {inter_op_threads: 4}\n"), 8))
    assert "`inter_op_threads: 4`, which does nothing without" in remark
