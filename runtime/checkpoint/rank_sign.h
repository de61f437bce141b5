// The sign of a rank in a save that several processes make together: a file in the run's folder, locked while the rank takes part, with one
// guarded line. A thread of the rank writes it again and again: a heartbeat, a progress count, and what the rank says (README.md).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/json_line.h"
#include "base/os/file_access.h"
#include "base/pending.h"

namespace st {

/// This rank's own sign, from its creation to the end of the save.
class RankSign {
 public:
  /// The folder exists. Creates the file, locks it and starts the heartbeat. Throws io; unavailable if the thread cannot be started.
  explicit RankSign(std::string path);
  ~RankSign() { stop(); }
  RankSign(const RankSign&) = delete;
  RankSign& operator=(const RankSign&) = delete;

  /// Replaces what this rank says, and writes it before it returns. Throws io.
  void say(const JsonLine& said);
  /// Longer texts do not fit in a sign.
  static constexpr size_t kMostSaid = 3800;  // bytes
  void count_progress() { ++progress_; }
  /// Ends the heartbeat: the file is not written again.
  void stop() noexcept;
  /// A sign that exists unlocked means a rank that ended during the save. So remove it first.
  void unlock() noexcept { hold_.reset(); }

 private:
  void beat();
  void beat_on();

  const std::string path_;
  std::optional<os::FileHold> hold_;
  std::atomic<int64_t> progress_ = 0;

  std::mutex mutex_;  // guards the next three
  JsonLine said_;
  int64_t beats_ = 0;
  bool is_over_ = false;
  std::condition_variable changed_;
  std::optional<Pending> heart_;  // destroyed first
};

/// The content of a rank's sign.
struct SignContent {
  bool is_held = false, is_gone = false;
  int64_t beats = -1, progress = -1;  // -1: not known, the line is being written
  std::string checkpoint;             // rank 0's; empty before it announces the save
  int64_t file_bytes = 0;
  bool is_written = false;  // all files of this rank are synced
  std::optional<Error> failure;
};

/// `rank`, `name`: whose sign it is, for its failure.
SignContent read_sign(const std::string& path, int32_t rank, const std::string& name);
/// Removes a sign that no live rank holds.
void remove_sign_left_at(const std::string& path);

}  // namespace st
