"""The environment that torchrun sets for the processes it starts."""

import socket


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def rank_environment(rank, size, local, host="127.0.0.1", port=0):
    """The variables of a rank that is number local[0] of local[1] on its host."""
    values = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": local[0], "LOCAL_WORLD_SIZE": local[1], "MASTER_ADDR": host, "MASTER_PORT": port}
    return {name: str(value) for name, value in values.items()}
