from onnxbuild.core.places import for_people, inside_name, place_name, real_path

FOLDERS = {place_name("model 1"): "/mnt/hub", place_name("root"): "/"}


def test_a_name_stands_for_its_folder():
    assert real_path("<model 1>/a/b.bin", FOLDERS) == "/mnt/hub/a/b.bin"
    assert real_path("<model 1>", FOLDERS) == "/mnt/hub"
    assert real_path("<model 1>/", FOLDERS) == "/mnt/hub/"
    assert real_path("<root>/etc/x", FOLDERS) == "/etc/x"


def test_what_has_no_name_stays_as_it_is():
    for path in (
        "a/b.bin",
        "/abs/b.bin",
        "<installed>",
        "<model 2>/a",
        "a/<model 1>/b",
        "./<model 1>/b",
    ):
        assert real_path(path, FOLDERS) == path


def test_a_path_of_the_project_never_looks_like_a_name():
    assert inside_name("<model 1>/b.bin") == "./<model 1>/b.bin"
    assert real_path(inside_name("<model 1>/b.bin"), FOLDERS) == "./<model 1>/b.bin"
    assert inside_name("a/b.bin") == "a/b.bin"


def test_people_read_where_things_lie():
    text = "file <model 1>/a.bin: 123 -> 456 of <model 1>/b.bin, not <model 2>/c"
    shown = "file /mnt/hub/a.bin: 123 -> 456 of /mnt/hub/b.bin, not <model 2>/c"
    assert for_people(text, FOLDERS) == shown
