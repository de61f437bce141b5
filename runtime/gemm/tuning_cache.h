// Measured schedules, kept on disk between processes: lines of text, which may be lost at any time.
//
//   scaletrain-tuning 2
//   GenuineIntel-6-173-... /avx512/... 512x3072x768/... 14 32 112 256 768 512 2048 0 1 201.5e9 190.2e9 own
//   end 1 5A3C01FF                                             number of lines, CRC-32C of the lines
//
// An unreadable file is logged, never an error. The next save replaces it, unless it is another kind of file.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/os/cpu.h"
#include "gemm/candidates.h"
#include "gemm/tile_sizes.h"

namespace st {

/// Identifies a measurement: CPU, library version, kernels, problem, threads, the caller's wish, and what could win. It includes the
/// identities of third-party libraries, so a measurement with another version or other libraries does not match.
std::string tuning_key(const os::CpuIdentity& cpu, std::string_view kernel_class, const GemmProblem& problem, const TileSchedule& wish,
                       bool order_is_wished, int threads, const GemmContest& contest = {});

struct TunedSchedule {
  TileSchedule schedule;               // as_run(); the default if none was faster
  double rate = 0, standard_rate = 0;  // flop/s of it, and of the default in the same rounds
  std::string library = {};            // identity of the library that beat our kernels; "": none did
};

/// Safe on any thread. Several processes may share one file: each writes its own and the others' entries.
class TuningCache {
 public:
  /// `path` "": in memory only.
  TuningCache(std::string path, Logger log) : path_(std::move(path)), log_(log) {}

  std::optional<TunedSchedule> find(const std::string& key);
  void keep(const std::string& key, const TunedSchedule& tuned);
  const std::string& path() const { return path_; }

 private:
  using Entries = std::map<std::string, TunedSchedule>;
  enum class State { fine, none, damaged, foreign };
  State read(Entries& into, bool report);

  std::mutex mutex_;
  std::string path_;
  Logger log_;
  bool is_read_ = false, is_reported_ = false;
  Entries entries_;
};

/// $SCALETRAIN_TUNING_CACHE ("none" or empty: no file), else scaletrain/gemm-tuning.txt in $XDG_CACHE_HOME or ~/.cache; "" without a home.
std::string default_tuning_cache();

}  // namespace st
