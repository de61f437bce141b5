#!/bin/sh
# Training under PyTorch's launcher, for clusters that start their jobs with it.
#
#     train_torchrun.sh 2 --data text --steps 10000 --checkpoint run --every 500 --resume --log run.jsonl
#
# The arguments after the number of ranks are options of `scaletrain train`. It needs no PyTorch: it reads RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR
# and MASTER_PORT. torchrun restarts all ranks when one fails, as `scaletrain launch --restarts` does.
set -eu
ranks=${1:?give the number of ranks first, then the options of scaletrain train}
shift
exec torchrun --standalone --nnodes=1 --nproc-per-node="$ranks" --max-restarts=3 --no-python scaletrain train "$@"
