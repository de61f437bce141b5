// Schedules that were measured, kept on disk from one process to the next: lines of text, which may be lost at any time.
//
//   scaletrain-tuning 2
//   GenuineIntel-6-173-... /avx512/... 512x3072x768/... 14 32 112 256 768 512 2048 0 1 201.5e9 190.2e9 own
//   end 1 5A3C01FF                                             number of lines, their CRC-32C
//
// What cannot be read is a message and never an error: the file is left aside, and what is kept next takes its place, unless it is no such
// file at all.
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

/// What a measured product is known by: the CPU, this library's version, the kernels, the problem, the threads, what was wished for and
/// what could win. Libraries of others are in it by their identities: what was measured with another version of one, or with other ones, is
/// not known.
std::string tuning_key(const os::CpuIdentity& cpu, std::string_view kernel_class, const GemmProblem& problem, const TileSchedule& wish,
                       bool order_is_wished, int threads, const GemmContest& contest = {});

struct TunedSchedule {
  TileSchedule schedule;               // as run; the default where none was faster
  double rate = 0, standard_rate = 0;  // flop/s: its own, and the default's in the same rounds
  std::string library = {};            // the identity of what is faster than our kernels; "": none is
};

/// Any thread. Several processes may use one file: each writes what it and the others found.
class TuningCache {
 public:
  /// `path` "": in memory alone.
  TuningCache(std::string path, Logger log) : path_(std::move(path)), log_(log) {}

  std::optional<TunedSchedule> find(const std::string& key);
  void keep(const std::string& key, const TunedSchedule& tuned);
  const std::string& path() const { return path_; }

 private:
  using Entries = std::map<std::string, TunedSchedule>;
  enum class State { fine, none, damaged, foreign };
  State read(Entries& into, bool tell);

  std::mutex mutex_;
  std::string path_;
  Logger log_;
  bool is_read_ = false, is_told_ = false;
  Entries entries_;
};

/// $SCALETRAIN_TUNING_CACHE ("none" or empty: no file), else scaletrain/gemm-tuning.txt in $XDG_CACHE_HOME or ~/.cache; "" without a home.
std::string default_tuning_cache();

}  // namespace st
