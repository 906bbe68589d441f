from onnxbuild.onnxkit.model.model_files import first_equals


def laid(folder, **files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_each_is_reported_the_first_that_is_the_same(tmp_path):
    models = {
        "one": laid(tmp_path / "one", model="abc", weights="def"),
        "two": laid(tmp_path / "two", model="abc", weights="dex"),
        "three": laid(tmp_path / "three", model="abc", weights="def"),
        "four": laid(tmp_path / "four", model="abc"),
        "five": laid(tmp_path / "five", model="abc", weights="def"),
        "six": laid(tmp_path / "six", model="abc", weight="def"),
    }
    assert first_equals(models) == {"three": "one", "five": "one"}


def test_only_what_is_run_alike_is_the_same(tmp_path):
    models = {name: laid(tmp_path / name, model="abc") for name in ("one", "two", "three")}
    ways = {"one": {"threads": 1}, "two": {"threads": 2}, "three": {"threads": 2}}
    assert first_equals(models, ways) == {"three": "two"}
