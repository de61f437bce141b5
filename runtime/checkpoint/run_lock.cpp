// Who may write into a run's folder, for run_folder.h.
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
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

constexpr size_t kTextBytes = 192;  // always, so that a shorter text leaves nothing of the one before

/// Different for each lock that is taken anywhere: by it a process knows its own.
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
  auto hold = os::FileHold::take(path, os::FileHold::Kind::exclusive);
  if (!hold) {
    Error error(Code::busy, text("checkpoint: ", folder_.path(), " is being saved to by ", owner_of(os::read_file(path, 4096)),
                                 "; give this run a folder of its own, or end that one first"));
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
