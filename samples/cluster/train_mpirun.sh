#!/bin/sh
# Training under mpirun. Each process is a rank.
#
#     train_mpirun.sh 2 --data text --steps 10000 --checkpoint run --every 500 --resume --log run.jsonl
#
# The arguments after the number of ranks are options of `scaletrain train`. The program needs no MPI: it reads rank and size from the environment,
# where Open MPI or MPICH puts them.
set -eu
ranks=${1:?give the number of ranks first, then the options of scaletrain train}
shift
# By default mpirun binds each of two ranks to one core. That is turned off, since a rank may have several threads.
exec mpirun -n "$ranks" --bind-to none scaletrain train "$@"
