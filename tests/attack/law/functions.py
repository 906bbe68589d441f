"""Functions that the modules of random programs call, each in one module at a time."""

FUNCTIONS = {
    "output": """\
def output(*program):
    done = subprocess.run(program, capture_output=True, text=True)
    if done.returncode:
        raise OSError(done.stderr.strip().rpartition(':')[2])
    return done.stdout
""",
    "inside": """\
def inside(folder, call):
    before = os.getcwd()
    os.chdir(folder)
    try:
        return call()
    finally:
        os.chdir(before)
""",
    "by_libc": """\
def by_libc(path):
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    libc.fgetc.argtypes = libc.fclose.argtypes = [ctypes.c_void_p]
    file = libc.fopen(os.fsencode(path), b"r")
    if not file:
        return 0
    found = []
    while (each := libc.fgetc(file)) >= 0 and each < 256:
        found.append(each)
    libc.fclose(file)
    return bytes(found).decode()
""",
    "by_system": """\
def by_system(path):
    out = os.path.join(tempfile.mkdtemp(), "out")
    os.system(f"cat {path} > {out}")
    return open(out).read()
""",
    "copied_by_cp": """\
def copied_by_cp(path):
    out = os.path.join(tempfile.mkdtemp(), "out")
    subprocess.run(["cp", path, out], check=True)
    return open(out).read()
""",
    "ini": """\
def ini(path):
    parser = configparser.ConfigParser()
    parser.read(path)
    return parser["law"]["number"]
""",
    "toml": """\
def toml(path):
    try:
        import tomllib
    except ImportError:
        return open(path).read()
    return tomllib.load(open(path, "rb"))["number"]
""",
    "safely": """\
def safely(path):
    import safetensors.numpy
    return int(safetensors.numpy.load_file(path)["number"][0])
""",
    "safely_open": """\
def safely_open(path):
    import safetensors
    with safetensors.safe_open(path, framework="np") as file:
        return int(file.get_tensor("number")[0])
""",
    "tokens": """\
def tokens(path):
    import tokenizers
    return sorted(tokenizers.Tokenizer.from_file(path).get_vocab())
""",
}
