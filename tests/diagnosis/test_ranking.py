from onnxbuild.diagnosis.measurements import by_loss


def test_groups_go_by_their_costliest_node_and_those_without_a_number_stay_behind_in_their_order():
    groups = (("late",), ("a", "relu"), ("b",), ("later",), ("c", "d"))
    losses = {"a": 0.1, "b": 0.3, "c": 0.2, "d": 0.4}
    assert by_loss(groups, losses, {}) == (
        ("c", "d"),
        ("b",),
        ("a", "relu"),
        ("late",),
        ("later",),
    )


def test_without_losses_the_order_stays():
    groups = (("b",), ("a",))
    assert by_loss(groups, {}, {"a": 1.0}) == groups


def test_what_the_table_does_not_tell_is_taken_from_the_effect_on_the_outputs_in_its_unit():
    groups = (("a",), ("embedding",), ("b",), ("none",), ("c",))
    losses = {"a": 0.1, "b": 0.3, "c": 0.02}
    effects = {"a": 0.2, "b": 0.7, "c": 0.03, "embedding": 0.5}
    assert by_loss(groups, losses, effects) == (("b",), ("embedding",), ("a",), ("c",), ("none",))
