"""The wheel: its system requirements, and that it trains in an empty environment outside the repository."""

import hashlib
import os
import pathlib
import re
import subprocess
import sys
import venv
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(os.environ["ST_BUILD_TREE"])


def run(*command, **options):
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LD_LIBRARY_PATH")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-build-isolation", "--no-deps", "-w", folder,
        f"--config-settings=cmake.define.ST_BUILD_TREE={BUILD}", f"--config-settings=build-dir={folder / 'build'}", ROOT / "bindings/python")  # fmt: skip
    (made,) = folder.glob("*.whl")
    return made


def test_its_name_says_what_it_serves(wheel):
    assert re.fullmatch(r"scaletrain-[0-9.]+-cp311-abi3-manylinux_2_28_x86_64\.whl", wheel.name)


def test_it_needs_glibc_2_28_and_no_cxx_runtime(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as packed:
        names = [name for name in packed.namelist() if ".so" in name]
        packed.extractall(tmp_path, names)
    plugins = [path.name for path in (BUILD / "portable").glob("*.so")]  # for NVIDIA GPUs, where there is a toolkit of CUDA
    assert sorted(pathlib.Path(name).name for name in names) == ["_native.abi3.so", "libscaletrain.so.0.1", *plugins]
    for name in names:
        needed = run("nm", "-D", "--undefined-only", tmp_path / name)
        versions = {tuple(map(int, found.split("."))) for found in re.findall(r"@GLIBC_([0-9.]+)", needed)}
        assert versions and max(versions) <= (2, 28), name
        assert not re.search("GLIBCXX|CXXABI", needed), name
        libraries = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", tmp_path / name))
        of_the_system = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "librt.so.1"}
        assert set(libraries) <= of_the_system | {"libscaletrain.so.0.1"}, name
        defined = re.findall(r" [TDBRVW] (\w+)", run("nm", "-D", "--defined-only", tmp_path / name))
        assert [symbol for symbol in defined if not symbol.startswith(("st_", "PyInit__native"))] == [], name
        if name.endswith("libscaletrain_cuda.so"):
            kernels = re.search(r" \.nv_fatbin +PROGBITS +\w+ +\w+ +(\w+)", run("readelf", "-SW", tmp_path / name))
            assert kernels and int(kernels[1], 16) > 1 << 20, "the kernels' machine code"


def test_it_trains_in_an_empty_environment(wheel, tmp_path):
    venv.create(tmp_path / "empty", with_pip=False)
    python = tmp_path / "empty/bin/python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", wheel)
    sample = tmp_path / "01_first_step.py"
    sample.write_bytes((ROOT / "samples/python/01_first_step.py").read_bytes())
    printed = run(python, "-I", sample, cwd=tmp_path)
    assert printed.endswith("it learned the sine\n")
    assert printed == run(BUILD / "samples/01_first_step")
    where = run(python, "-I", "-c", "import scaletrain; print(scaletrain.__file__)", cwd=tmp_path).strip()
    if (BUILD / "portable/libscaletrain_cuda.so").exists():  # found next to the library; without a driver it says so
        said = run(python, "-I", "-c", "import scaletrain; print(scaletrain.features()['devices'])", cwd=tmp_path)
        assert "NVIDIA's driver is missing" in said or "'name': 'cuda', 'available': True" in said, said
        # The plug-in throws for a library that is not NCCL. Caught as the library's own Error, the message has no file in front.
        no_nccl = tmp_path / "libnccl.so.2"
        no_nccl.write_bytes((BUILD / "portable/libscaletrain_cuda.so").read_bytes())
        program = f"import os; os.environ['SCALETRAIN_CUDA_PATH'] = {str(tmp_path)!r}; import scaletrain; print(scaletrain.features()['transports'])"
        said = run(python, "-I", "-c", program, cwd=tmp_path)
        assert f"'why': \"{no_nccl} has no function ncclGetVersion" in said, said
    assert pathlib.Path(where).is_relative_to(tmp_path)


def test_its_library_gives_the_same_bits(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path)
    program = """
import scaletrain as st
context = st.Context(threads=2)
data = st.Data.files(context, %r, context=32)
for precision in ("fp32", "bf16"):
    trainer = st.Trainer(st.Model.builtin(context, "gpt", seed=1, layers=2, width=64, heads=2, context=32),
                         {"batch": 8, "precision": precision, "dropout": 0.1}, data)
    trainer.run(20)
    print(trainer.digest())
""" % str(ROOT / "LICENSE")
    digests = [run(sys.executable, "-c", f"import sys; sys.path.insert(0, {str(folder)!r})\n" + program) for folder in (tmp_path, BUILD / "python")]
    assert digests[0] == digests[1] and len(set(digests[0].split())) == 2
    library = tmp_path / "scaletrain/libscaletrain.so.0.1"
    assert hashlib.sha256(library.read_bytes()).digest() != hashlib.sha256((BUILD / "capi/libscaletrain.so").read_bytes()).digest()
