// Where a manager's saves go, one after the other: into a run's folder, in which each is committed and retention then applied.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/retention.h"
#include "checkpoint/run_folder.h"
#include "checkpoint/shared_save.h"

namespace st {

class SaveDestination {
 public:
  /// beside: another process owns the folder and commits; this one only takes part in saves that ranks make together.
  enum class Place { of_folder, beside };
  struct Options {
    Retention retention;
    std::string best;  // the metric's key: a number in metadata or the training object; "": none
    WriteOptions write;
  };
  /// Throws as RunFolderWriter.
  SaveDestination(std::string folder, Options options, Logger log, Place place);

  const RunFolder& folder() const { return folder_; }
  /// This rank's end of a save of several; null for a rank that saves alone, whose `shared` is null. Throws wrong_state if this process
  /// does not own the folder as it must for such a save.
  std::unique_ptr<SharedSaveEnd> join(const std::shared_ptr<const SharedSave>& shared) const;

  // One thread at a time calls these two.

  /// Writes one save and commits it; returns the checkpoint's name, "" if another process has committed it. Completes the manifest.
  /// `together`: of join(). `is_cancelled` ends it (empty: never). Throws the disk's error (path, offset, reason), cancelled, and what has
  /// failed on another rank; then the older checkpoints are unchanged, and this one is removed.
  std::string write(Manifest& manifest, const std::vector<WrittenTensor>& tensors, SharedSaveEnd* together,
                    const std::function<bool()>& is_cancelled);
  /// The work after a commit of this process: `latest`, and retention. Throws the disk's error.
  void follow(const std::string& name, const Manifest& manifest);

  // From any thread at any time.

  /// Of the save that is being written.
  WriteProgress& written() { return written_; }
  /// From now on retention counts also what was in the folder when this object was made.
  void adopt_earlier();
  /// Retention no longer counts this checkpoint.
  void mark_corrupt(const std::string& name);

 private:
  std::string commit(Manifest& manifest, const std::vector<WrittenTensor>& tensors, SharedSaveEnd* together);
  void warn_of_others();
  void remove_older();

  const RunFolder folder_;
  const Options options_;
  const Logger log_;
  std::optional<RunFolderWriter> writer_;  // none: another process owns the folder
  bool has_warned_of_others_ = false;
  WriteProgress written_;
  std::mutex mutex_;  // guards known_
  std::vector<RetainedCheckpoint> known_;
};

}  // namespace st
