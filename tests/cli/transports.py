"""Which transports are available, and how to start ranks over one. The plug-ins' folder is the next argument of the importing test."""

import os
import shutil
import sys

PLUGINS = sys.argv.pop(1)
LAUNCHERS = ("OMPI_", "PMIX_", "SLURM_")
KEPT = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)} | {"SCALETRAIN_PLUGINS": PLUGINS}
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe"]


def why_not(transport):
    """None if ranks can be started over it, else the reason."""
    if transport in ("gloo", "mpi") and not os.path.exists(f"{PLUGINS}/libscaletrain_{transport}.so"):
        return f"no {transport}: libscaletrain_{transport}.so was not built"
    if transport == "mpi" and shutil.which("mpirun") is None:
        return "no mpirun"
    return None
