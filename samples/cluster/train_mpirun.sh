#!/bin/sh
# A training under mpirun: each of its processes is a rank.
#
#     train_mpirun.sh 2 --data text --steps 10000 --checkpoint run --every 500 --resume --log run.jsonl
#
# What stands behind the number is of `scaletrain train`. The program needs no MPI: it takes rank and size from what Open MPI, or MPICH, has
# left in the environment.
set -eu
ranks=${1:?give the number of ranks first, then the options of scaletrain train}
shift
# Not bound to one core each, which is what mpirun does with two ranks: a rank may have several threads.
exec mpirun -n "$ranks" --bind-to none scaletrain train "$@"
