// This process's rank, read from the environment variables of the launcher that started it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace st {

struct RankEnvironment {
  int rank = 0, size = 1;
  // On this host; -1: unknown. All ranks are on this host exactly if local_size == size.
  int local_rank = -1, local_size = -1;
  std::string master_host;  // rank 0's host; empty: unknown
  int master_port = 0;      // 0: unknown
  /// Equal on all ranks of one start of one job, and different from every other job on these hosts. Empty: nothing identifies the job
  /// (MPICH's mpiexec without MASTER_PORT).
  std::string job;
  std::string_view source;  // "torchrun", "openmpi", "pmi" or "slurm"
};

/// The value of an environment variable; null if it is not set.
using EnvironmentLookup = std::function<const char*(const char* name)>;

/// nullopt if no launcher has set anything.
///
/// | source   | rank, size                                  | local rank, local size                            |
/// |----------|---------------------------------------------|---------------------------------------------------|
/// | torchrun | RANK, WORLD_SIZE                            | LOCAL_RANK, LOCAL_WORLD_SIZE                      |
/// | openmpi  | OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE  | OMPI_COMM_WORLD_LOCAL_RANK, .._LOCAL_SIZE         |
/// | pmi      | PMI_RANK, PMI_SIZE                          | MPI_LOCALRANKID, MPI_LOCALNRANKS                  |
/// | slurm    | SLURM_PROCID, SLURM_NTASKS                  | SLURM_LOCALID, SLURM_NTASKS_PER_NODE              |
///
/// - The first source with both rank and size set is used.
/// - MASTER_ADDR and MASTER_PORT are read with every source; torchrun needs both for more than one rank. Without them, Slurm's first node
///   is the master and its port is derived from the job number.
/// - SLURM_NTASKS without SLURM_PROCID is an allocation, not a rank.
/// - Where launchers nest, the inner one is right. `srun torchrun ..` is recognised by TORCHELASTIC_RUN_ID; `mpirun` or anything else in a
///   batch script by a Slurm job outside a step (SLURM_JOB_ID without SLURM_STEP_ID). Otherwise SCALETRAIN_RANKS_FROM names the source, or
///   "none".
///
/// Throws invalid_argument: two sources disagree in rank or size (names both variables and values); a source is half set (names the missing
/// variable); a value is malformed (names the variable).
std::optional<RankEnvironment> rank_environment(const EnvironmentLookup& lookup);

/// The first of "node[003-007,9],other": node003. Throws invalid_argument naming `variable`.
std::string first_slurm_node(std::string_view variable, std::string_view list);

}  // namespace st
