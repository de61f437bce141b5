// scaletrain bench collective: all_reduce, reduce_scatter and all_gather between ranks that are threads or processes of this machine, by
// size: time per call, rate, fraction of a plain copy's rate, and Gloo's and OpenMPI's own collectives for comparison.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "bench.h"
#include "bench_rows.h"
#include "collective_side.h"
#include "copy_limit.h"
#include "own_collective.h"

namespace cli {
namespace {

// Sizes of the whole array; fixed before any tuning.
constexpr int64_t kBytes[] = {4, 4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20};
constexpr int64_t kMoreBytes[] = {16, 64, 256, 1 << 10, 16 << 10, 256 << 10, 4 << 20};
constexpr double kOrderSeconds = 0.02;  // approximate time of one round's calls
constexpr double kFewestCalls = 3, kMostCalls = 1000;

constexpr const char *kOwnThreads = "threads", *kOwnProcesses = "processes", *kGloo = "gloo", *kOpenMpi = "openmpi";

std::string size_text(int64_t bytes) {
  if (bytes % (1 << 20) == 0) return std::to_string(bytes >> 20) + " MiB";
  if (bytes % (1 << 10) == 0) return std::to_string(bytes >> 10) + " KiB";
  return std::to_string(bytes) + " B";
}

/// The program that runs a library's own collectives: the one that the variable names, else the one that the build puts into tests/bench if
/// it has found that library. Throws std::runtime_error with the reason.
std::string peer_program(const char* variable, const char* name, const char* package) {
  const char* named = std::getenv(variable);
  const auto built = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "tests" / "bench" / name;
  std::string path = named != nullptr ? named : built.string();
  if (!std::filesystem::exists(path))
    throw std::runtime_error("no " + path + "; build the target " + name + " where " + package + " is installed, or name one in " +
                             variable);
  return path;
}

class CollectiveBench {
 public:
  CollectiveBench(const BenchOptions& options, int64_t rounds, int ranks)
      : rounds_(rounds), ranks_(ranks), rows_("collective", "GB/s", 4, options.json, {"a copy", "GB/s", 1}) {
    start(kOwnThreads, [ranks](const std::string& folder) { return own_collective_threads(ranks, folder); });
    start(kOwnProcesses, [ranks](const std::string& folder) { return own_collective_processes(ranks, folder); });
    const auto wanted = [&](const std::string& peer) {
      return ("," + (options.against == "all" ? "gloo,openmpi" : options.against) + ",").find("," + peer + ",") != std::string::npos;
    };
    const std::string n = std::to_string(ranks);
    if (wanted(kGloo))
      start_peer(kGloo, [&](const std::string& folder) {
        const std::string program = peer_program("SCALETRAIN_GLOO", "collective_gloo", "libgloo-dev");
        std::vector<CollectiveSide::Program> programs;
        for (int rank = 0; rank < ranks; ++rank) programs.push_back({program, folder, n, std::to_string(rank)});
        return programs;
      });
    if (wanted(kOpenMpi))
      start_peer(kOpenMpi, [&](const std::string& folder) {
        const std::string program = peer_program("SCALETRAIN_OPENMPI", "collective_openmpi", "libopenmpi-dev");
        // OpenMPI's fastest setting: by default it yields while waiting if it counts two threads of a core as one.
        const std::string yields = ranks > static_cast<int>(std::thread::hardware_concurrency()) ? "1" : "0";
        return std::vector<CollectiveSide::Program>{
            {"mpirun", "-n", n, "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", yields, program, folder}};
      });
  }

  /// `bytes` 0: the usual sizes.
  void operator()(int64_t bytes, bool all) {
    rows_.start(std::to_string(ranks_) + " ranks, f32, sum, " + std::to_string(rounds_) + " rounds");
    std::vector<int64_t> sizes = {bytes};
    if (bytes == 0) {
      sizes.assign(std::begin(kBytes), std::end(kBytes));
      if (all) sizes.insert(sizes.end(), std::begin(kMoreBytes), std::end(kMoreBytes));
      std::ranges::sort(sizes);
    }
    for (const Exchange exchange : {Exchange::all_reduce, Exchange::reduce_scatter, Exchange::all_gather})
      for (const int64_t size : sizes) measure(exchange, size);
    rows_.finish();
  }

 private:
  using Programs = std::function<std::vector<CollectiveSide::Program>(const std::string& folder)>;

  void start(const std::string& name, const Programs& programs) {
    sides_[name] = std::make_unique<CollectiveSide>(ranks_, programs);
    // Fails before the first measurement if a program cannot start or a library is missing, so the first line can name it.
    sides_[name]->measure(Exchange::all_reduce, 1, 1, 1);
  }

  void start_peer(const std::string& name, const Programs& programs) {
    try {
      start(name, programs);
    } catch (const std::runtime_error& error) {
      give_up(name, error);
    }
  }

  void give_up(const std::string& peer, const std::runtime_error& error) {
    sides_.erase(peer);
    rows_.set_absent(peer, error.what());
  }

  /// Two rows, threads and processes. Their samples and the peers' come from the same rounds.
  void measure(Exchange exchange, int64_t bytes) {
    const int64_t elements = bytes / 4;
    CopyLimit copy(bytes, ranks_);
    std::map<std::string, int64_t> calls;  // per order, by side
    std::vector<std::string> names;
    for (const auto& [name, side] : sides_) names.push_back(name);
    for (const std::string& name : names)
      if (const auto times = ask(name, exchange, elements, 2))
        calls[name] = static_cast<int64_t>(std::clamp(kOrderSeconds / times->median, kFewestCalls, kMostCalls));
    std::map<std::string, std::vector<CallTimes>> times;
    std::vector<double> limits;
    for (int64_t round = 0; round < rounds_; ++round) {
      limits.push_back(copy.measure() * 1e-9);
      for (const std::string& name : names)
        if (calls.contains(name) && sides_.contains(name))
          if (const auto sample = ask(name, exchange, elements, calls[name])) times[name].push_back(*sample);
    }
    std::erase_if(times, [&](const auto& of) { return std::ssize(of.second) < rounds_; });  // a peer that failed during the measurement
    const std::string title = kExchanges[static_cast<size_t>(exchange)] + (" " + size_text(bytes)) + ", " + std::to_string(ranks_) + " ";
    for (const std::string own : {kOwnThreads, kOwnProcesses}) {
      BenchRow row;
      row.name = title + own;
      for (const auto& [name, of] : times) {
        const bool is_own = name == kOwnThreads || name == kOwnProcesses;
        if (is_own && name != own) continue;
        std::vector<double>& speeds = is_own ? row.own : row.peers[name];
        for (const CallTimes& sample : of) {
          speeds.push_back(static_cast<double>(bytes) / sample.median * 1e-9);
          row.latencies[is_own ? "own" : name].push_back({sample.median * 1e6, sample.p10 * 1e6, sample.p90 * 1e6});
        }
      }
      row.peak = limits;
      for (size_t i = 0; i < limits.size(); ++i) row.fraction.push_back(row.own[i] / limits[i]);
      rows_.add(std::move(row));
    }
  }

  /// nullopt if the side has no such collective, or is a peer that has just failed.
  std::optional<CallTimes> ask(const std::string& name, Exchange exchange, int64_t elements, int64_t calls) {
    try {
      return sides_.at(name)->measure(exchange, elements, calls, ++seed_);
    } catch (const std::runtime_error& error) {
      const std::string where = std::string(kExchanges[static_cast<size_t>(exchange)]) + ": " + error.what();
      if (name == kOwnThreads || name == kOwnProcesses) throw Failure(kFailed, "bench: our " + name + ", " + where);
      give_up(name, std::runtime_error(where));
      return std::nullopt;
    }
  }

  int64_t rounds_;
  int ranks_;
  uint64_t seed_ = 0;
  std::map<std::string, std::unique_ptr<CollectiveSide>> sides_;
  BenchRows rows_;
};

}  // namespace

void bench_collective(const BenchOptions& options, int64_t rounds, int64_t) {
  const int64_t ranks = whole_number("--ranks", options.ranks), rank = whole_number("--rank", options.rank);
  if (ranks < 2 || ranks > 64) refuse("--ranks is ", ranks, "; give 2 to 64");
  if (!options.serve.empty()) return serve_own_collectives(options.serve, static_cast<int>(rank), static_cast<int>(ranks));
  for (std::istringstream names(options.against); !names.eof();) {
    std::string name;
    std::getline(names, name, ',');
    if (name != kGloo && name != kOpenMpi && options.against != "all" && options.against != "none")
      refuse("--against is \"", options.against, "\"; the peers of a collective are gloo and openmpi, and none turns them off");
  }
  if (options.memory || options.tiles || !options.report.empty() || options.dtype != "fp32")
    refuse("bench collective: --memory, --tiles, --report and --dtype are options of other benchmarks");
  const int64_t bytes = options.shape.empty() ? 0 : whole_number("--shape", options.shape);
  if (!options.shape.empty() && (bytes < 4 || bytes > int64_t{1} << 30 || bytes % 4 != 0))
    refuse("--shape is ", bytes, "; give 4 to 1073741824 bytes, a multiple of 4");
  CollectiveBench(options, rounds, static_cast<int>(ranks))(bytes, options.shapes == "all");
}

}  // namespace cli
