#!/usr/bin/python3
"""The floor check must refuse what it claims to refuse: a small tree that keeps the plan, then one violation at a time."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import floors  # noqa: E402

PLAN = """
<!-- floors: rooms -->
| room | may include | what it holds |
|---|---|---|
| `base` | | |
| `ir` | `base` | |
| `backend` | `base` `ir` | |
| `backend/cpu` | `base` `ir` `backend` | |
| `backend/reference` | `base` `ir` `backend` | |
| `backend/cuda` | `base` `ir` `backend` | |
| `passes` | `base` `ir` | |
<!-- floors: end -->
<!-- floors: doors -->
| headers | allowed in | why there |
|---|---|---|
| `xsimd/` | `backend/cpu` | |
| operating system | `base/os` `capi/cli` | |
| intrinsics | `backend/cpu` | |
<!-- floors: end -->
<!-- floors: planned -->
| room | may include | what it will hold |
|---|---|---|
| `comm` | `base` `backend` | |
<!-- floors: end -->
"""

GOOD = {
    "runtime/README.md": PLAN,
    "runtime/base/error.h": "#pragma once\n#include <string>\n",
    "runtime/base/os.cpp": '#include <unistd.h>\n#include <sys/mman.h>\n#include "base/error.h"\n',
    "runtime/ir/graph.h": '#pragma once\n#include "base/error.h"\n',
    "runtime/backend/backend.h": '#include "ir/graph.h"\n',
    "runtime/backend/cpu/matmul.cpp": '#include <immintrin.h>\n#include <xsimd/xsimd.hpp>\n#include "backend/backend.h"\n#ifdef __AVX2__\n#endif\n',
    "runtime/backend/cuda/device/threads.h": "#pragma once\n#define KERNEL __global__ void\n",
    "runtime/backend/cuda/device/launch.h": "#pragma once\ninline auto run = [] { f<<<1, 2, 0, stream>>>(); config.stream = stream; };\n",
    "runtime/backend/cuda/streams.cpp": "auto f() { return cudaMemcpyAsync(to(a, b), from, n, kind, stream_) + cudaEventRecord(own(e), stream_) +"
                                        " cudaStreamWaitEvent(stream_, e, 0) + cudaMemsetAsync(x, 0, n, stream_) + cudaMemcpyHostToDevice; }\n",
    "runtime/backend/cuda/device_profile.cpp": "auto f() { return profile.units = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT); }\n",
    "tests/cuda/device/threads.h": "#pragma once\n#define KERNEL void\n",
    "runtime/backend/reference/matmul.cpp": '#include "backend/backend.h"\n',
    "runtime/passes/clip.cpp": '// the cuda kernels do this too; #include "exec/executor.h"\n#include "ir/graph.h"\n',
    "runtime/passes/CMakeLists.txt": "add_library(st_passes STATIC clip.cpp)\ntarget_link_libraries(st_passes PUBLIC st_ir)\n",
    "capi/include/scaletrain/error.h": "#ifdef __cplusplus\n#endif\n#include <scaletrain/graph.h>\n",
    "capi/include/scaletrain/graph.h": "#include <stdint.h>\n",
    "capi/src/guard.cpp": '#include "passes/clip.h"\n#include "scaletrain/error.h"\n',
    "bindings/java/typemaps.i": "\n",
    "bindings/csharp/typemaps.i": "\n",
    "capi/cli/main.cpp": '#include <scaletrain/error.h>\n#include <unistd.h>\n#include "bar.h"\n',
}

# Violation -> (the file, its text, a fragment of the finding).
BAD = {
    "a pass sees a backend": ("runtime/passes/fuse.cpp", '#include "backend/backend.h"\n', "does not let passes see backend"),
    "rooms on one floor see each other": ("runtime/backend/cpu/add.cpp", '#include "backend/reference/add.h"\n', "does not let backend/cpu see"),
    "base looks up": ("runtime/base/json.h", '  #  include "ir/graph.h"\n', "does not let base see ir"),
    "a room is bypassed by a relative path": ("runtime/passes/fuse.cpp", '#include "../backend/backend.h"\n', "must name its room"),
    "a system header above base/os": ("runtime/ir/print.cpp", "#include <sys/stat.h>\n", "headers 'operating system'"),
    "another file of base calls the system": ("runtime/base/osprey.cpp", "#include <fcntl.h>\n", "headers 'operating system'"),
    "vectors outside the cpu backend": ("runtime/ir/print.cpp", "#include <xsimd/xsimd.hpp>\n", "headers 'xsimd/'"),
    "intrinsics outside the cpu backend": ("runtime/ir/print.cpp", "#include <immintrin.h>\n", "headers 'intrinsics'"),
    "an unknown library": ("runtime/ir/print.cpp", "#include <boost/any.hpp>\n", "no door for"),
    "a conditional above the backends": ("runtime/passes/fuse.cpp", "#ifdef NDEBUG\n#endif\n", "conditionals are not allowed"),
    "a conditional in the ABI": ("capi/src/model.cpp", "#if ST_FAST\n#endif\n", "conditionals are not allowed"),
    "a device named in a low conditional": ("runtime/ir/print.cpp", "#ifdef ST_CUDA\n#endif\n", "asks for a device"),
    **{f"a conditional in {room}": (f"runtime/{room}/cast.cuh", "#ifdef __CUDA_ARCH__\n#endif\n", "no conditional") for room in ("backend/cuda", "comm/nccl")},
    "a header opens a namespace": ("runtime/ir/print.h", "#pragma once\nusing namespace std;\n", "must not open a namespace"),
    "a typedef in C++": ("runtime/ir/print.h", "#pragma once\ntypedef int Line;\n", "write using NAME"),
    "a kernel in CUDA's language": ("runtime/backend/cuda/cast.cuh", "__global__ void cast(float* y) { y[threadIdx.x] = 0; }\n", "only backend/cuda/device"),
    "raw shared memory": ("runtime/backend/cuda/cast.cuh", "__shared__ float x[4];\n", "only backend/cuda/device"),
    **{f"the number of multiprocessors: {read}": ("runtime/backend/cuda/device/outer.h", f"inline auto f() {{ return {read}; }}\n", "must not depend on")
       for read in ("p.multiProcessorCount", "g(cudaDevAttrMultiProcessorCount)", "h(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)", 'ptx("mov.u32 %0, %smid;")',
                    'ptx("mov.u32 %0, %nsmid;")', "cudaOccupancyMaxActiveBlocksPerMultiprocessor(n)", "device.units")},
    "a reset of a device": ("runtime/backend/cuda/device/outer.h", "auto f() { return cudaDeviceReset(); }\n", "the null stream"),
    **{f"a null stream: {call}": ("runtime/backend/cuda/cast.cpp", f"auto f() {{ return {call}; }}\n", "the null stream")
       for call in ("cudaMemcpy(to, from, n, kind)", "cudaMemset(to, 0, n)", "cudaDeviceSynchronize()", "cudaStreamCreate(&s)",
                    "cudaStreamCreateWithFlags(&s, cudaStreamDefault)", "cudaMemcpyAsync(to(a, b), from, n, kind)", "cudaMemsetAsync(to, 0, n, 0)",
                    "cudaEventRecord(own(a, b))", "cudaGraphLaunch(graph, nullptr)", "cudaStreamSynchronize(0)", "cudaStreamWaitEvent({}, e, 0)")},
    "a launch on the null stream": ("runtime/backend/cuda/device/outer.h", "auto f() { g<<<1, 2>>>(); }\n", "the null stream"),
    "a launch on stream 0": ("runtime/backend/cuda/device/outer.h", "auto f() { g<<<1, 2, 0, 0>>>(); }\n", "the null stream"),
    "a launch of which the null stream is set": ("runtime/backend/cuda/device/outer.h", "auto f() { c.stream = nullptr; }\n", "the null stream"),
    "a device layer that the include path does not choose": ("runtime/backend/cuda/cast.cuh", '#include "device/threads.h"\n', "quotes look in this folder"),
    "a name of the device layer taken elsewhere": ("runtime/backend/cuda/threads.h", "#pragma once\n", "the name is taken by"),
    "a pass names a device": ("runtime/passes/fuse.cpp", 'bool f(int d) { return d == id("cuda"); }\n', "names 'cuda'"),
    "the command line reaches into the runtime": ("capi/cli/train.cpp", '#include "ir/graph.h"\n', "public header only"),
    "a public header shows an inner one": ("capi/include/scaletrain/model.h", '#include "ir/graph.h"\n', "only public headers"),
    "a file named utils": ("runtime/ir/graph_utils.h", "#pragma once\n", "named for the thing it holds"),
    "a file name used twice": ("runtime/passes/graph.h", "#pragma once\n", "the name is taken by"),
    "a name twice in one language": ("bindings/java/native/typemaps.i", "\n", "the name is taken by"),
    "an op's name twice in one backend": ("runtime/backend/cpu/deep/matmul.cpp", "\n", "the name is taken by"),
    "a folder without a row": ("runtime/attic/old.cpp", "\n", "no row for"),
    "a planned room that stands": ("runtime/comm/ring.cpp", "\n", "move its row"),
    "a library linked against the plan": ("runtime/ir/CMakeLists.txt", "target_link_libraries(st_ir PUBLIC st_passes)\n", "links st_passes"),
    "a room in the table that is not there": (
        "runtime/README.md", PLAN.replace("| `passes` | `base` `ir` | |", "| `passes` | `base` `ir` | |\n| `cellar` | `base` | |"), "has no file"),
    "a row that allows an unknown room": ("runtime/README.md", PLAN.replace("| `passes` | `base`", "| `passes` | `cellar` `base`"), "not a room"),
    "a row that allows a later room": ("runtime/README.md", PLAN.replace("| `ir` | `base` |", "| `ir` | `base` `passes` |"), "not a room"),
    "a plan without its table": ("runtime/README.md", PLAN.replace("floors: rooms", "rooms"), "missing or empty"),
}


def findings_in(tree):
    with tempfile.TemporaryDirectory() as root:
        for name, text in tree.items():
            path = Path(root) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return floors.check(root)


class Floors(unittest.TestCase):
    def test_a_tree_that_keeps_the_plan_passes(self):
        self.assertEqual(findings_in(GOOD), [])

    def test_each_broken_thing_is_found_and_named(self):
        for what, (name, text, says) in BAD.items():
            with self.subTest(what):
                found = findings_in({**GOOD, name: text})
                self.assertTrue(any(name.rsplit("/", 1)[0] in f and says in f for f in found), f"{what}: found only {found}")

    def test_a_missing_plan_is_a_finding(self):
        self.assertEqual(len(findings_in({"runtime/base/error.h": ""})), 1)


if __name__ == "__main__":
    unittest.main()
