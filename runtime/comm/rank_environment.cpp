#include "comm/rank_environment.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace st {
namespace {

constexpr int64_t kMostRanks = 1'000'000;
constexpr const char* kOverride = "SCALETRAIN_RANKS_FROM";

struct Source {
  const char *name, *rank, *size, *local_rank, *local_size;
};
constexpr std::array<Source, 4> kSources = {{
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"pmi", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr},
}};
constexpr const Source& kTorchrun = kSources[0];
constexpr const Source& kSlurm = kSources[3];

class Environment {
 public:
  explicit Environment(const EnvironmentLookup& lookup) : lookup_(lookup) {}

  bool has(const char* name) const { return lookup_(name) != nullptr; }
  std::string value(const char* name) const { return has(name) ? lookup_(name) : ""; }

  /// The variable as a whole number in [least, most]; nullopt if it is not set. Throws on anything else.
  std::optional<int64_t> number(const char* name, int64_t least, int64_t most) const {
    if (!has(name)) return std::nullopt;
    const std::string_view word = lookup_(name);
    int64_t number = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    check(error == std::errc() && end == word.data() + word.size() && number >= least && number <= most, "ranks: ", name, " is \"", word,
          "\"; it must be a whole number from ", least, " to ", most);
    return number;
  }

 private:
  const EnvironmentLookup& lookup_;
};

/// The rank and size that one source gives, either of which may be missing.
struct Claim {
  const Source* source;
  std::optional<int64_t> rank, size;
  bool is_whole() const { return rank && size; }
};

std::string assignment(const Environment& environment, const char* name) { return text(name, "=", environment.value(name)); }

/// A batch script or interactive shell of a job runs outside the steps that srun makes. Slurm's variables do not describe what it starts by
/// other means.
bool is_batch_script(const Environment& environment) {
  constexpr int64_t kFirstSpecial = 0xfffffff0;  // Slurm numbers the steps of scripts and shells from here on
  if (!environment.has("SLURM_JOB_ID")) return false;
  return environment.number("SLURM_STEP_ID", 0, UINT32_MAX).value_or(kFirstSpecial) >= kFirstSpecial;
}

std::string variables_of(const Environment& environment, const Claim& claim) {
  if (!claim.is_whole()) return assignment(environment, claim.rank ? claim.source->rank : claim.source->size);
  return text(assignment(environment, claim.source->rank), " and ", assignment(environment, claim.source->size));
}

/// The claims about this process, in order of precedence.
std::vector<Claim> claims_of(const Environment& environment) {
  const std::string wanted = environment.value(kOverride);
  const bool is_known = wanted == "none" || std::ranges::any_of(kSources, [&](const Source& source) { return wanted == source.name; });
  check(!environment.has(kOverride) || is_known, "ranks: ", kOverride, " is \"", wanted,
        "\"; it must be torchrun, openmpi, pmi, slurm or none");
  std::vector<Claim> claims;
  for (const Source& source : kSources) {
    const bool is_named = wanted == source.name;
    if (environment.has(kOverride) && !is_named) continue;
    if (&source == &kSlurm && !environment.has(source.rank) && !is_named) continue;  // an allocation without a started task
    if (&source == &kSlurm && std::ranges::any_of(claims, &Claim::is_whole) && is_batch_script(environment)) continue;
    Claim claim{&source, environment.number(source.rank, 0, kMostRanks - 1), environment.number(source.size, 1, kMostRanks)};
    if (!claim.rank && !claim.size && !is_named) continue;
    claims.push_back(claim);
    // Set by torchrun only: any other source describes how torchrun was started, not this process.
    if (&source == &kTorchrun && claim.is_whole() && environment.has("TORCHELASTIC_RUN_ID")) break;
  }
  return claims;
}

void check_agreement(const Environment& environment, const Claim& chosen, const Claim& other) {
  const bool agrees = (!other.rank || other.rank == chosen.rank) && (!other.size || other.size == chosen.size);
  check(agrees, "ranks: two launchers disagree: ", variables_of(environment, chosen), ", but ", variables_of(environment, other),
        "; if one runs inside the other, set ", kOverride, " to the inner one (", chosen.source->name, " or ", other.source->name,
        "); otherwise unset the stale variables");
}

const Claim& chosen_of(const Environment& environment, const std::vector<Claim>& claims) {
  const auto chosen = std::ranges::find_if(claims, &Claim::is_whole);
  if (chosen == claims.end()) {
    const Source& source = *claims.front().source;
    const bool has_rank = claims.front().rank.has_value();
    check(has_rank || claims.front().size, "ranks: ", kOverride, " is ", source.name, ", but neither ", source.rank, " nor ", source.size,
          " is set");
    check(false, "ranks: ", variables_of(environment, claims.front()), ", but ", has_rank ? source.size : source.rank,
          " is not set; set both, or neither for a single process");
  }
  for (const Claim& other : claims) check_agreement(environment, *chosen, other);
  check(*chosen->rank < *chosen->size, "ranks: ", variables_of(environment, *chosen), "; ranks are 0 to ", *chosen->size - 1);
  return *chosen;
}

/// The tasks on node `node` in a list like "2(x3),1": tasks per node in node order, with repeats in parentheses. nullopt if it is not
/// there.
std::optional<int64_t> tasks_on_node(std::string_view list, int64_t node) {
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find(','));
    const size_t times = entry.find("(x");
    const int64_t tasks = whole_number(entry, 0);
    node -= times == std::string_view::npos ? 1 : std::max<int64_t>(1, whole_number(entry.substr(times + 2), 1));
    if (node < 0) return tasks > 0 ? std::optional(tasks) : std::nullopt;
    list.remove_prefix(std::min(entry.size() + 1, list.size()));
  }
  return std::nullopt;
}

/// SLURM_NTASKS_PER_NODE is the requested number, set only on request; a node may have fewer tasks.
std::optional<int64_t> slurm_local_size(const Environment& environment) {
  const auto node = environment.number("SLURM_NODEID", 0, kMostRanks);
  if (node)
    if (const auto tasks = tasks_on_node(environment.value("SLURM_STEP_TASKS_PER_NODE"), *node)) return tasks;
  return environment.number("SLURM_NTASKS_PER_NODE", 1, kMostRanks);
}

void read_local(const Environment& environment, const Source& source, RankEnvironment& made) {
  const auto rank = environment.number(source.local_rank, 0, kMostRanks - 1);
  const auto size = source.local_size == nullptr ? slurm_local_size(environment) : environment.number(source.local_size, 1, kMostRanks);
  // A requested number may exceed the number of ranks.
  if (size) made.local_size = static_cast<int>(&source == &kSlurm ? std::min<int64_t>(*size, made.size) : *size);
  if (rank) made.local_rank = static_cast<int>(*rank);
  const char* size_name = source.local_size == nullptr ? "SLURM_NTASKS_PER_NODE" : source.local_size;
  check(made.local_size <= made.size, "ranks: ", assignment(environment, size_name), " is above ", assignment(environment, source.size));
  check(made.local_rank < (size ? made.local_size : made.size), "ranks: ", assignment(environment, source.local_rank),
        " must be below the number of ranks on this host, ", size ? made.local_size : made.size);
}

std::string slurm_master(const Environment& environment) {
  // Rank 0 is on the first node of its step, which may differ from the job's.
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"})
    if (environment.has(name)) return first_slurm_node(name, environment.value(name));
  return "";
}

void read_master(const Environment& environment, const Source& source, RankEnvironment& made) {
  if (&source == &kTorchrun && made.size > 1)
    for (const char* name : {"MASTER_ADDR", "MASTER_PORT"})
      check(environment.has(name), "ranks: ", assignment(environment, source.size), ", but ", name,
            " is not set; set MASTER_ADDR to rank 0's host, and MASTER_PORT to a free port there, on all ranks");
  check(!environment.has("MASTER_ADDR") || !environment.value("MASTER_ADDR").empty(), "ranks: MASTER_ADDR is empty; it is rank 0's host");
  made.master_host = environment.value("MASTER_ADDR");
  made.master_port = static_cast<int>(environment.number("MASTER_PORT", 1, 65535).value_or(0));
  if (&source == &kSlurm) {
    if (made.master_host.empty()) made.master_host = slurm_master(environment);
    // Below the ephemeral ports; different for each step of a job.
    const auto job = environment.number("SLURM_JOB_ID", 0, INT32_MAX), step = environment.number("SLURM_STEP_ID", 0, UINT32_MAX);
    if (made.master_port == 0 && job) made.master_port = static_cast<int>(10'000 + (*job + 7919 * step.value_or(0)) % 20'000);
  }
  if (made.master_host.empty() && made.local_size == made.size) made.master_host = "127.0.0.1";
}

/// A name that only the ranks of this job share.
std::string job_of(const Environment& environment, const Source& source, const RankEnvironment& made) {
  std::string job;
  if (environment.has("MASTER_PORT")) job = text(made.master_host, ":", made.master_port);
  if (&source == &kSlurm && job.empty() && environment.has("SLURM_JOB_ID"))
    job = text("slurm ", environment.value("SLURM_JOB_ID"), ".", environment.value("SLURM_STEP_ID"));
  if (&source != &kTorchrun)
    for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID"})
      if (job.empty() && environment.has(name)) job = text(name, " ", environment.value(name));
  // The start number keeps apart a rank left over from an earlier start.
  for (const char* name : {"SCALETRAIN_RESTART", "TORCHELASTIC_RESTART_COUNT"})
    if (!job.empty() && environment.has(name)) job += text(", start ", environment.value(name));
  if (!job.empty() && environment.has("SCALETRAIN_LAUNCH")) job += text(", launch ", environment.value("SCALETRAIN_LAUNCH"));
  return job;
}

}  // namespace

std::string first_slurm_node(std::string_view variable, std::string_view list) {
  const auto fail_in = [&] { check(false, "ranks: ", variable, " is \"", list, "\"; it must be like node[003-007,9],other"); };
  std::string name;
  for (size_t at = 0; at < list.size() && list[at] != ',';) {
    if (list[at] != '[') {
      name += list[at++];
      continue;
    }
    const size_t end = list.find(']', at);
    if (end == std::string_view::npos) fail_in();
    const std::string_view first = list.substr(at + 1, list.find_first_of("-,]", at) - at - 1);
    if (first.empty() || first.find_first_not_of("0123456789") != std::string_view::npos) fail_in();
    name += first;
    at = end + 1;
  }
  if (name.empty() || name.find_first_of("] \t\n/") != std::string::npos) fail_in();
  return name;
}

std::optional<RankEnvironment> rank_environment(const EnvironmentLookup& lookup) {
  const Environment environment(lookup);
  const std::vector<Claim> claims = claims_of(environment);
  if (claims.empty()) return std::nullopt;
  const Claim& chosen = chosen_of(environment, claims);
  RankEnvironment made;
  made.rank = static_cast<int>(*chosen.rank);
  made.size = static_cast<int>(*chosen.size);
  made.source = chosen.source->name;
  read_local(environment, *chosen.source, made);
  read_master(environment, *chosen.source, made);
  made.job = job_of(environment, *chosen.source, made);
  return made;
}

}  // namespace st
