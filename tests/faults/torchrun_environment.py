"""The environment that torchrun sets for the processes it starts."""

import random
import socket


def free_port():
    """A port below those that Linux gives to connections by itself, one of which could take it before a rank listens."""
    while True:
        with socket.socket() as one:
            try:
                one.bind(("", random.randrange(20000, 32000)))
                return one.getsockname()[1]
            except OSError:
                continue


def rank_environment(rank, size, local, host="127.0.0.1", port=0):
    """The variables of a rank that is number local[0] of local[1] on its host."""
    values = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": local[0], "LOCAL_WORLD_SIZE": local[1], "MASTER_ADDR": host, "MASTER_PORT": port}
    return {name: str(value) for name, value in values.items()}
