// The lock of a run's folder, for run_folder.h.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/os/file_access.h"
#include "base/os/files.h"
#include "base/os/machine.h"
#include "base/text.h"
#include "checkpoint/run_folder.h"
#include "checkpoint/utc_time.h"

namespace st {
namespace {

constexpr size_t kTextBytes = 192;  // fixed, so that a shorter text overwrites all of the previous one

/// Different for each lock taken by any process, so that a process recognises its own.
std::string text_of_owner() {
  static std::atomic<int64_t> count{0};
  std::string out = text("process ", os::process_id(), " on ", os::host_name(), " since ", utc_time(), ", lock ", ++count);
  out.resize(kTextBytes - 1, ' ');
  return out += '\n';
}

std::string owner_of(std::string_view lock) {
  const std::string_view owner = lock.substr(0, lock.rfind(", lock "));
  return owner.starts_with("process ") && owner.size() < kTextBytes ? std::string(owner) : "another process";
}

/// Waits a second for another process: one that was killed holds its lock until the system has taken its memory back, and whoever restarts
/// a run may be faster.
std::optional<os::FileHold> lock_of_run(const std::string& path) {
  const std::string mine = text("process ", os::process_id(), " on ", os::host_name(), " ");
  for (int tries = 0;; ++tries) {
    auto hold = os::FileHold::take(path, os::FileHold::Kind::exclusive);
    if (hold || tries == 100 || os::read_file(path, 4096).starts_with(mine)) return hold;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace

bool RunFolderWriter::has_lock() const {
  try {
    return lock_ && os::read_file(folder_.path_to("lock"), 4096) == lock_text_;
  } catch (const Error& error) {
    if (error.code() != Code::not_found) throw;
    return false;
  }
}

void RunFolderWriter::take_lock() {
  os::make_folders(folder_.path());
  const std::string path = folder_.path_to("lock");
  os::OutputFile file(path, os::OutputFile::Open::shared);
  lock_.reset();
  auto hold = lock_of_run(path);
  if (!hold) {
    Error error(Code::busy, text("checkpoint: ", folder_.path(), " is in use by ", owner_of(os::read_file(path, 4096)),
                                 ", which saves into it; give this run another folder, or stop that process first"));
    error.place.file = path;
    throw error;
  }
  std::string owner = text_of_owner();
  file.write_at(0, std::as_bytes(std::span(owner)));
  file.close();
  lock_text_ = std::move(owner);
  lock_.emplace(std::move(*hold));
}

}  // namespace st
