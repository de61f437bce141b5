// Who this process is among the ranks that a launcher started, by what the launcher left in the environment.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace st {

struct RankEnvironment {
  int rank = 0, size = 1;
  // On this host; -1: not said. All ranks are on this host exactly where local_size == size.
  int local_rank = -1, local_size = -1;
  std::string master_host;  // where rank 0 is; empty: not said
  int master_port = 0;      // 0: not said
  /// The ranks of one job, and of one start of it, have the same; no other job of these hosts has it. Empty: nothing tells this job from
  /// another (MPICH's mpiexec without MASTER_PORT).
  std::string job;
  std::string_view source;  // "torchrun", "openmpi", "pmi" or "slurm"
};

/// The value of an environment variable; null where there is none.
using EnvironmentLookup = std::function<const char*(const char* name)>;

/// None where no launcher has said anything.
///
/// | source   | rank, size                                  | local rank, local size                            |
/// |----------|---------------------------------------------|---------------------------------------------------|
/// | torchrun | RANK, WORLD_SIZE                            | LOCAL_RANK, LOCAL_WORLD_SIZE                      |
/// | openmpi  | OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE  | OMPI_COMM_WORLD_LOCAL_RANK, .._LOCAL_SIZE         |
/// | pmi      | PMI_RANK, PMI_SIZE                          | MPI_LOCALRANKID, MPI_LOCALNRANKS                  |
/// | slurm    | SLURM_PROCID, SLURM_NTASKS                  | SLURM_LOCALID, SLURM_NTASKS_PER_NODE              |
///
/// The first source of which both are set counts. MASTER_ADDR and MASTER_PORT count beside each; torchrun's form needs both for more than
/// one rank. Without them Slurm's first node is the master, and its port one that is made of the job's number.
///
/// Throws invalid_argument: where sources disagree in rank or size, with the variables and values of both; where a source is set by half,
/// with what is missing; where a value makes no sense, with the variable. SLURM_NTASKS without SLURM_PROCID is an allocation, and no rank.
///
/// Launchers nest, and then the inner one is right: `srun torchrun ..` is known by TORCHELASTIC_RUN_ID, and an `mpirun` or anything else
/// in a batch script by a Slurm job that is in no step (SLURM_JOB_ID without SLURM_STEP_ID). In all other cases SCALETRAIN_RANKS_FROM names
/// the source that counts, or none.
std::optional<RankEnvironment> rank_environment(const EnvironmentLookup& lookup);

/// The first of "node[003-007,9],other": node003. Throws invalid_argument naming `variable`.
std::string first_slurm_node(std::string_view variable, std::string_view list);

}  // namespace st
