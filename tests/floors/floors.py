#!/usr/bin/python3
"""Checks the source tree against its floor plan.

The plan is runtime/README.md: its tables say which room may include which, and which files may include a library's or the system's headers.
Also refused: a conditional above the backends, a header with a using-directive, a file name that is meaningless or taken, a room that
is not in the plan, and in backend/cuda the null stream, CUDA's language outside device/, and the number of a device's multiprocessors.

Usage: floors.py REPOSITORY     prints one line per finding; exits with 0 if there is none, else with 1.
"""

import os
import re
import sys
from pathlib import Path, PurePosixPath

SOURCE = {".h", ".hpp", ".c", ".cc", ".cpp", ".cu", ".cuh", ".def", ".inc", ".inl"}
SKIPPED_FOLDERS = {".git", ".venv", "build", "__pycache__", "node_modules"}

# POSIX and Linux headers, and those of other systems. <csignal> and similar headers belong to the language.
SYSTEM = re.compile(
    r"(sys|linux|netinet|arpa|net|asm|mach|bits)/.*|"
    r"(unistd|fcntl|sched|pthread|dlfcn|dirent|poll|termios|pwd|grp|netdb|semaphore|ucontext|execinfo|mntent|glob|ftw|libgen|"
    r"spawn|syslog|getopt|fnmatch|wordexp|numa|numaif|link|elf|strings|windows|io|process|direct)\.h"
)
INTRINSICS = re.compile(r"(.*intrin|cpuid|arm_neon|arm_sve|x86gprintrin)\.h")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
CONDITIONAL = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif|elifdef|elifndef)\b.*$", re.MULTILINE)
# The language of CUDA: kernels use the names of backend/cuda/device instead, which a device that is not there has too.
CUDA_LANGUAGE = re.compile(r"__(?:global|device|shared|constant|host|launch_bounds)__|<<<|\basm\b|\b(?:thread|block|grid)(?:Idx|Dim)\b|__sync\w+|__shfl\w*|"
                           r"\bcudaLaunch\w*")
# Calls of CUDA's runtime that take the null stream, which waits for the streams of all others, or end or wait for all work on a device.
CUDA_WHOLE_DEVICE = re.compile(r"\bcuda(?:Memcpy(?:2D|3D|Peer|ToSymbol|FromSymbol)?|Memset(?:2D|3D)?|StreamDefault|StreamCreate|DeviceReset|DeviceSynchronize)\b")
# The place of the stream among the arguments of those that take it from the caller.
CUDA_STREAM_AT = {"StreamSynchronize": 0, "StreamWaitEvent": 0, "StreamQuery": 0, "StreamBeginCapture": 0, "LaunchHostFunc": 0, "EventRecord": 1,
                  "GraphLaunch": 1, "FreeAsync": 1, "MallocAsync": 2, "MemsetAsync": 3, "MemcpyAsync": 4, "MemcpyPeerAsync": 5}
CUDA_CALL = re.compile(rf"\bcuda({'|'.join(CUDA_STREAM_AT)})\(")
LAUNCH = re.compile(r"<<<(.*?)>>>|\.stream\s*=([^;,}]*)", re.DOTALL)
NO_STREAM = ("", "0", "nullptr", "NULL", "{}")
# These names tell kernels, or those who choose and launch them, how many multiprocessors a device has. Their bits must not depend on it.
CUDA_UNITS = re.compile(r"multiProcessorCount|MultiProcessorCount|MULTIPROCESSOR_COUNT|%n?smid|\bcudaOccupancy\w*|\bcuOccupancy\w*|(?:\.|->)units\b")
CUDA_FACTS = ("runtime/backend/cuda/device_profile.cpp", "runtime/backend/cuda/device_profile.h")
DEVICE_OR_LIBRARY = re.compile(r"cuda|nvcc|nccl|gloo|\bmpi|_mpi|hip|rocm|mkl|onednn|dnnl|openblas|cublas|cudnn", re.IGNORECASE)
EMPTY_WORDS = {"util", "utils", "utility", "utilities", "helper", "helpers", "common", "misc", "stuff"}

# Rooms at or below the devices, where a conditional on the processor or the compiler is allowed.
LOW_ROOMS = ("base", "ir", "gemm", "backend", "comm")
FACES = ("capi/include/", "capi/src/", "samples/", "tests/capi/", "tests/conformance/", "bindings/")
LANGUAGES = tuple(f"{part}/{language}/" for part in ("bindings", "tests") for language in ("python", "java", "csharp"))
NAMES_OF_FOLDERS = {"CMakeLists.txt", "README.md", ".gitignore", "__init__.py", "run"}


class Plan:
    """The tables of runtime/README.md."""

    def __init__(self, text):
        self.findings = []
        self.rooms = {row[0][0]: set(row[1]) for row in self._table(text, "rooms")}
        self.planned = {row[0][0]: set(row[1]) for row in self._table(text, "planned")}
        self.doors = {self._door_name(row[0], row[2]): set(row[1]) for row in self._table(text, "doors")}
        seen = set()
        for room, allowed in self.rooms.items():
            for name in sorted(allowed - seen):
                self.findings.append(f"runtime/README.md: room {room} may include {name}, which is not a room above its row")
            seen.add(room)

    def _table(self, text, name):
        found = re.search(rf"<!-- floors: {name} -->\n(.*?)<!-- floors: end -->", text, re.DOTALL)
        rows = []
        for line in found.group(1).splitlines()[2:] if found else []:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            rows.append((re.findall(r"`([^`]+)`", cells[0]), re.findall(r"`([^`]+)`", cells[1]), cells[0]))
        if not rows and name != "planned":  # all may be built
            self.findings.append(f"runtime/README.md: the table '{name}' is missing or empty")
        return [row for row in rows if row[0] or name == "doors"]

    @staticmethod
    def _door_name(quoted, plain):
        return quoted[0] if quoted else plain

    def room_of(self, path):
        """The room of a path relative to runtime/: the longest room name that contains it, or None."""
        parts = path.split("/")[:-1]
        for depth in range(len(parts), 0, -1):
            name = "/".join(parts[:depth])
            if name in self.rooms or name in self.planned:
                return name
        return None


def check(root):
    root = Path(root)
    plan_file = root / "runtime" / "README.md"
    if not plan_file.is_file():
        return ["runtime/README.md: the floor plan is missing"]
    plan = Plan(plan_file.read_text())
    files = list(repository_files(root))
    findings = plan.findings
    findings += check_rooms_stand(plan, root, files)
    findings += check_names(files)
    for name in files:
        if PurePosixPath(name).suffix in SOURCE and name.startswith(("runtime/", "capi/")):
            text = without_comments((root / name).read_text(errors="replace"))
            findings += check_includes(plan, name, text)
            findings += check_conditionals(name, text)
            findings += check_devices_unnamed(name, text)
            findings += check_headers_open_nothing(name, text)
            findings += check_typedefs(name, text)
            findings += check_cuda_language(name, text)
            findings += check_null_stream(name, text)
            findings += check_units_unread(name, text)
        elif name.startswith("runtime/") and name.endswith("CMakeLists.txt"):
            findings += check_links(plan, name, (root / name).read_text())
    return sorted(findings)


def repository_files(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in SKIPPED_FOLDERS)
        for name in sorted(names):
            yield (Path(folder) / name).relative_to(root).as_posix()


def without_comments(text):
    """Blanks comments; keeps line numbers and the text of includes."""
    blank = lambda found: re.sub(r"[^\n]", " ", found.group(0))
    text = re.sub(r"/\*.*?\*/", blank, text, flags=re.DOTALL)
    return re.sub(r"(?m)(?<![:\"])//[^\n]*", blank, text)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def check_rooms_stand(plan, root, files):
    for room in plan.rooms:
        if not any(f.startswith(f"runtime/{room}/") for f in files):
            yield f"runtime/README.md: room {room} is in the table but runtime/{room}/ has no file; move it to 'Not built yet'"
    for room in plan.planned:
        if any(f.startswith(f"runtime/{room}/") for f in files):
            yield f"runtime/README.md: runtime/{room}/ exists; move its row from 'Not built yet' to 'Rooms'"
    reported = set()
    for name in files:
        inside = name.removeprefix("runtime/")
        top = "/".join(inside.split("/")[:-1])
        if name.startswith("runtime/") and "/" in inside and plan.room_of(inside) is None and top not in reported:
            reported.add(top)
            yield f"runtime/{top}/: runtime/README.md has no row for this folder"


def check_includes(plan, name, text):
    for found in INCLUDE.finditer(text):
        quoted, header = found.group(1) == '"', found.group(2)
        why = refusal(plan, name, header, quoted)
        if why:
            yield f"{name}:{line_of(text, found.start())}: includes {header}: {why}"


def refusal(plan, name, header, quoted):
    """Why `name` must not include `header`, or None."""
    door = door_of(plan, header)
    if door is not None:
        if any(stands_in(name, place) for place in plan.doors[door]):
            return None
        return f"headers '{door}' are for {', '.join(sorted(plan.doors[door]))} only"
    if not quoted:
        if "/" in header and not (header.startswith("scaletrain/") and name.startswith("capi/")):
            return "a library that runtime/README.md has no door for"
        return None
    if name.startswith("capi/include/"):
        return None if header.startswith("scaletrain/") else "public headers may include only public headers"
    if name.startswith("capi/cli/"):
        target = plan.room_of(header)
        return None if target is None else "the command line may include the public header only"
    if name.startswith("capi/"):
        return None
    here, there = plan.room_of(name.removeprefix("runtime/")), plan.room_of(header)
    if there is None:
        return "an include must name its room: \"room/file.h\""
    if here is None or here == there or there in plan.rooms.get(here, ()):
        return None
    return f"the floor plan does not let {here} see {there}"


def door_of(plan, header):
    if SYSTEM.fullmatch(header):
        return "operating system"
    if INTRINSICS.fullmatch(header):
        return "intrinsics"
    return next((door for door in plan.doors if header.startswith(door)), None)


def stands_in(name, place):
    """`base/os` is a folder or the file base/os.*; paths are relative to runtime/ unless they start with capi/."""
    full = place if place.startswith("capi/") else f"runtime/{place}"
    return name.startswith(full + "/") or name.startswith(full + ".")


def check_conditionals(name, text):
    if not name.startswith(("runtime/", "capi/src/", "capi/generators/")):
        return
    low = name.startswith(tuple(f"runtime/{room}/" for room in LOW_ROOMS))
    device_room = name.startswith(("runtime/backend/", "runtime/comm/"))
    for found in CONDITIONAL.finditer(text):
        line = found.group(0).strip()
        if not low:
            yield f"{name}:{line_of(text, found.start())}: '{line}': conditionals are not allowed above backend and comm"
        elif name.startswith(("runtime/backend/cuda/", "runtime/comm/nccl/")):
            yield f"{name}:{line_of(text, found.start())}: '{line}': the include path and the linked library choose the device, no conditional"
        elif not device_room and DEVICE_OR_LIBRARY.search(line):
            yield f"{name}:{line_of(text, found.start())}: '{line}': asks for a device or a library outside backend and comm"


def check_devices_unnamed(name, text):
    if not name.startswith("runtime/passes/"):
        return
    for found in re.finditer(r"\b(cuda|nccl|gloo|mpi|onednn|openblas|mkl)\b", text, re.IGNORECASE):
        yield f"{name}:{line_of(text, found.start())}: names '{found.group(0)}': a pass must not ask which device or library is present"


def check_cuda_language(name, text):
    if not name.startswith("runtime/backend/cuda/") or name.startswith("runtime/backend/cuda/device/"):
        return
    for found in CUDA_LANGUAGE.finditer(text):
        yield f"{name}:{line_of(text, found.start())}: '{found.group(0)}': only backend/cuda/device may use CUDA's language; take its name for this"
    for found in INCLUDE.finditer(text):
        if found.group(1) == '"' and found.group(2).startswith("device/"):
            yield f"{name}:{line_of(text, found.start())}: includes \"{found.group(2)}\": write <{found.group(2)}>, as quotes look in this folder first"


def arguments_from(text, begin):
    """Those of a call whose parenthesis opens before `begin`."""
    arguments, depth = [""], 0
    for letter in text[begin:]:
        if letter in ")]}":
            depth -= 1
        if depth < 0:
            break
        if letter == "," and depth == 0:
            arguments.append("")
            continue
        if letter in "([{":
            depth += 1
        arguments[-1] += letter
    return [argument.strip() for argument in arguments]


def check_null_stream(name, text):
    if not name.startswith("runtime/backend/cuda/"):
        return
    places = [found for found in CUDA_WHOLE_DEVICE.finditer(text)]
    for found in CUDA_CALL.finditer(text):
        stream = CUDA_STREAM_AT[found.group(1)]
        arguments = arguments_from(text, found.end())
        if len(arguments) <= stream or arguments[stream] in NO_STREAM:
            places.append(found)
    for found in LAUNCH.finditer(text):
        words = (found.group(1) or found.group(2)).split(",")
        if words[-1].strip() in NO_STREAM or (found.group(1) and len(words) < 4):
            places.append(found)
    for found in places:
        yield f"{name}:{line_of(text, found.start())}: '{found.group(0)}': the null stream, or all of a device; give it the stream that it is for"


def check_units_unread(name, text):
    if not name.startswith("runtime/backend/cuda/") or name in CUDA_FACTS:
        return
    for found in CUDA_UNITS.finditer(text):
        yield f"{name}:{line_of(text, found.start())}: '{found.group(0)}': a kernel's bits must not depend on the number of multiprocessors; cut by the shape"


def check_headers_open_nothing(name, text):
    """clang-tidy cannot tell a header from a source if it reads several sources as one."""
    if not name.endswith((".h", ".hpp")):
        return
    for found in re.finditer(r"^using namespace\b.*", text, re.MULTILINE):
        yield f"{name}:{line_of(text, found.start())}: '{found.group(0)}': a header must not open a namespace for all files that include it"


def check_typedefs(name, text):
    """modernize-use-using would take a tenth of clang-tidy's time, in the headers of others."""
    if not name.endswith((".h", ".hpp", ".cpp", ".cuh")) or name.startswith("capi/include/"):
        return
    for found in re.finditer(r"^\s*typedef\b.*", text, re.MULTILINE):
        yield f"{name}:{line_of(text, found.start())}: '{found.group(0).strip()}': write using NAME = TYPE"


def check_links(plan, name, text):
    """A room's library links only what its row allows, so that the linker enforces the plan, too."""
    here = plan.room_of(name.removeprefix("runtime/"))
    for call in re.finditer(r"target_link_libraries\s*\(\s*st_\w+(.*?)\)", text, re.DOTALL):
        for target in re.findall(r"\bst_(\w+)", call.group(1)):
            there = next((r for r in plan.rooms if target in (r, r.replace("/", "_"))), None)
            seen = (here, *plan.rooms.get(here, ()))  # a room that may include an interface may link its library
            if here and there and there not in seen and there.split("/")[0] not in seen:
                yield f"{name}:{line_of(text, call.start())}: links st_{target}: the floor plan does not let {here} see {there}"


def check_names(files):
    taken = {}
    for name in files:
        path = PurePosixPath(name)
        words = set(re.split(r"[^a-z0-9]+", path.name.lower()))
        if words & EMPTY_WORDS:
            yield f"{name}: a file must be named for the thing it holds, not '{', '.join(sorted(words & EMPTY_WORDS))}'"
        if path.name in NAMES_OF_FOLDERS or name.startswith(".ci/"):
            continue
        for other in taken.get(path.name, ()):
            if not may_share_name(name, other):
                yield f"{name}: the name is taken by {other}"
        taken.setdefault(path.name, []).append(name)


def may_share_name(a, b):
    if a.startswith("tests/golden/") and b.startswith("tests/golden/"):
        return True  # written once, under the names of the format
    device_layer = ("runtime/backend/cuda/device/", "tests/cuda/device/")
    if a.startswith(device_layer) and b.startswith(device_layer) and a.split("/")[0] != b.split("/")[0]:
        return True  # the include path chooses between a device and the simulated one
    backend = lambda name: name.split("/")[2] if name.startswith("runtime/backend/") and name.count("/") >= 3 else None
    if backend(a) and backend(b):
        return backend(a) != backend(b)  # an op's file has one name in every backend
    if "runtime/passes/" in (a[:15], b[:15]) and (backend(a) or backend(b)):
        return True  # a pass is named like the op that it inserts: accumulate
    language = lambda name: name.split("/")[1] if name.startswith(LANGUAGES) else None
    if language(a) and language(b) and language(a) != language(b):
        return True  # files that each language has: typemaps.i, run.py
    face = lambda name: next((f for f in FACES if name.startswith(f)), None)
    return face(a) != face(b)  # the C ABI has the runtime's nouns, conformance the ops' names


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    findings = check(sys.argv[1])
    for finding in findings:
        print(finding)
    print(f"floors: {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
