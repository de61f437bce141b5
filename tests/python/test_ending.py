"""Processes that end while the library is running: daemon threads, forks, sub-interpreters. Each test starts its own process."""

import os
import subprocess
import sys
import time

START = """
import numpy, os, sys, threading, time
import scaletrain as st
x = numpy.linspace(-3, 3, 64, dtype=numpy.float32).reshape(64, 1)
context = st.Context(threads=1)
def trainer(data=None):
    data = st.Data.arrays(context, {"x": x, "y": numpy.sin(x)}) if data is None else data
    return st.Trainer(st.Model.builtin(context, "mlp", hidden=[8]), {"batch": 64}, data)
class Slow:
    def __del__(self): sum(range(3_000_000))  # the interpreter's end takes a while
sys.slow = Slow()
"""


def run(program):
    done = subprocess.run([sys.executable, "-c", START + program], capture_output=True, text=True, timeout=60, env=os.environ)
    assert done.stderr == "" and done.returncode == 0
    return done.stdout


def test_daemon_threads_in_any_call_may_be_there_at_the_end():
    programs = {
        "a run": "t.run(10**9)",
        "a callback": "t.run(10**9, lambda report: None)",
        "an error": "\n    while True:\n        try: t.step({})\n        except st.ScaleTrainError: pass",
        "steps": "\n    while True: t.step(); numpy.asarray(st.Tensor(context, 'f32', (3,)))",
    }
    for work in programs.values():
        for _ in range(2):
            run(f"""
def work():
    t = trainer()
    {work}
for _ in range(3): threading.Thread(target=work, daemon=True).start()
time.sleep(.2)
""")


def test_a_program_may_end_with_everything_open():
    for _ in range(2):
        out = run("""
def fill(rows, arrays):
    for a in arrays: numpy.asarray(a)[:] = 1
train = trainer(st.Data.rows_of(st.Context(threads=2, log=lambda *_: None), 64, {"x": ("f32", (1,)), "y": ("f32", (1,))}, fill))
train.set_schedule(lambda k: 0.1)
train.step()
kept = [st.Data.arrays(context, {"x": x}), st.Tensor.of(context, x), st.Optimizer(context, {"x": x}, optimizer="sgd").state()]
cycle = [train, kept]; cycle.append(cycle)
print("end")
""")
        assert out == "end\n"


def test_the_child_of_a_fork_does_not_wait_for_the_parents_callbacks():
    begin = time.monotonic()
    out = run("""
def fill(rows, arrays): time.sleep(3)
t = trainer(st.Data.rows_of(context, 64, {"x": ("f32", (1,)), "y": ("f32", (1,))}, fill))
threading.Thread(target=t.step, daemon=True).start()
time.sleep(.3)
child = os.fork()
if child == 0:
    try: t.digest()
    except st.WrongState as error: print("forked" in str(error), flush=True)
    sys.exit(0)
begin = time.monotonic()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print(time.monotonic() - begin < 2)
""")
    assert out == "True\nTrue\n" and time.monotonic() - begin < 30


def test_a_sub_interpreter_is_refused_and_the_main_one_goes_on():
    out = run("""
try: import _xxsubinterpreters as interpreters
except ImportError: import _interpreters as interpreters
other = interpreters.create()
try: interpreters.run_string(other, f"import sys; sys.path[:] = {sys.path}; import scaletrain.errors")
except Exception as error: print("main interpreter only" in str(error))
interpreters.destroy(other)
print(trainer().step().step)
""")
    assert out == "True\n1\n"
