"""PyTorch's end of the pipes to `scaletrain bench` (capi/cli/pytorch_peer.cpp), which starts the *_pytorch.py here: one JSON object per line.

  {"do": "hello"}                        -> {"torch": "2.15.0"}
  {"do": "open", ..}                     -> {"modes": ["eager", "compiled"], "absent": {"compiled": "why"}}
  {"do": "step", "mode": "eager"}        -> {"check": 3.2, "seconds": 0.4}
Any failure is {"error": "why"}. The end of the input ends the process.
"""

import contextlib
import json
import os
import sys

# Only answers may reach the pipe, but compilers and libraries print.
answers = os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
os.dup2(os.open(os.environ.get("SCALETRAIN_PYTORCH_LOG", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), 2)


def say(answer):
    print(json.dumps(answer), file=answers, flush=True)


try:
    import torch
except ImportError as error:
    sys.stdin.readline()
    say({"error": f"{sys.executable} has no torch: {error}"})
    sys.exit()


def reason(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


def made(makers):
    """What each mode's factory makes, and why others failed."""
    modes, absent = {}, {}
    for name, make in makers.items():
        try:
            modes[name] = make()
        except Exception as error:  # no C++ compiler, no Python headers, ...
            absent[name] = reason(error)
    return modes, absent


def serve(opened):
    """opened(request): for each mode its step, a function that returns the answer, and why other modes are absent."""
    modes = {}

    def answer(request):
        nonlocal modes
        if request["do"] == "hello":
            return {"torch": torch.__version__}
        if request["do"] == "step":
            return modes[request["mode"]]()
        torch.set_num_threads(request["threads"])
        modes = {}  # frees their memory before the next ones are made
        modes, absent = opened(request)
        return {"modes": list(modes), "absent": absent}

    with contextlib.suppress(KeyboardInterrupt):
        for line in sys.stdin:
            try:
                say(answer(json.loads(line)))
            except Exception as error:
                say({"error": reason(error)})
