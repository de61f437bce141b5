// A save that several processes make together, each with pieces of the tensors: every rank writes its own into files of its own, and rank
// 0, which has the run's folder, commits when all have synced theirs. They meet by files in that folder alone, so that the writing goes on
// behind a training step:
//   ranks-<save>.<rank>                      held while that rank is at the save, with a beat of a thread of its own: others see that it
//                                            lives, and how often it came on; rank 0's tells which folder is being made, and by which size
//                                            all cut files
//   step-00000120.part/ranks-<save>.<rank>/  a rank's files, its manifest of them last, until rank 0 puts them beside its own
//   ranks-<save>.failed                      why there will be no checkpoint
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/os/file_access.h"
#include "checkpoint/checkpoint_writer.h"

namespace st {

/// Who has which part of what, on all ranks the same.
struct SharedSave {
  struct Range {  // elements [begin, end)
    int32_t rank;
    int64_t begin, end;
  };
  struct Tensor {
    std::string name;
    TensorKind kind;
    DType dtype;
    Shape shape;
    std::vector<Range> ranges;  // each element once, of ascending ranks, one a rank; [0, 0) where there are none
  };
  int32_t rank = 0, ranks = 1;
  double deadline = 60;                // seconds that a rank may be silent: one that is slow is waited for
  double still_deadlines = 16;         // so many of them a rank that lives may write nothing, nor those for whom it waits: its disk hangs
  std::vector<std::string> names;      // of the ranks, for errors
  std::vector<Tensor> tensors;         // by name
  std::function<std::string()> begin;  // what this save is called, another one each time
  /// All ranks meet, with what has failed on this one (or null); throws on all of them where something has.
  std::function<void(const std::exception_ptr& own)> agree;
  /// All ranks meet; what rank 0 has given.
  std::function<std::string(const std::string& own)> said_by_first;
};

/// One rank's end of one save. On one thread at a time.
class SharedSaveEnd {
 public:
  /// From here on the others see that this rank lives; until the end. `log` is warned of a rank that is slow. Throws io, and unavailable
  /// where there is no thread to be had.
  SharedSaveEnd(std::shared_ptr<const SharedSave> save, std::string folder, std::string name, Logger log = {});
  ~SharedSaveEnd();
  SharedSaveEnd(const SharedSaveEnd&) = delete;
  SharedSaveEnd& operator=(const SharedSaveEnd&) = delete;

  const SharedSave& save() const { return *save_; }

  /// All ranks, once each has its end: throws rank_mismatch, on all of them, where one has begun it in another folder than rank 0.
  void require_one_folder() const;

  /// Rank 0: as write_checkpoint(), of the tensors' ranges of all ranks; `own` are its own, in order. `checkpoint` is the folder's name,
  /// which is at folder/checkpoint.part. Throws what has failed here or on another rank, with its name: rank_failed for one that has ended,
  /// timeout for one that is silent or does not come on.
  Manifest write_all(const std::string& checkpoint, Manifest manifest, std::span<const WrittenTensor> own, const WriteOptions& options,
                     WriteProgress& progress);
  /// Rank 0: the others hear of it. What is not told so they find by themselves.
  void tell_failed(const std::exception& why) noexcept;
  /// Rank 0: behind the commit, so that the others need not wait for what comes then. The end of the object does it too.
  void end() noexcept;
  /// The other ranks: writes its own, cut by rank 0's file_bytes, and returns when rank 0 has committed. Throws likewise, also what has
  /// failed on others.
  void write_part(int64_t step, std::span<const WrittenTensor> own, const WriteOptions& options, WriteProgress& progress);

 private:
  struct Shard;
  class Listening;

  std::string sign_of(int32_t rank) const;
  std::string part_of(const std::string& checkpoint, int32_t rank) const;
  void beat();
  void beat_on();
  template <class There>
  void await(int32_t other, const std::string& folder, const WriteProgress& progress, const There& is_there);
  std::vector<Shard> shards(int64_t file_bytes) const;
  Manifest write_own(const std::string& folder, Manifest manifest, std::span<const WrittenTensor> own, const WriteOptions& options,
                     WriteProgress& progress);
  void tell(const std::string& path, const std::exception& why);
  void look_at_others();
  void throw_if_told(const std::string& path, int32_t by) const;
  Manifest take_over(const std::string& checkpoint, int32_t rank, const WriteProgress& progress);

  std::shared_ptr<const SharedSave> save_;
  const std::string folder_, name_;
  const Logger log_;
  std::string checkpoint_;  // once it is known
  std::optional<os::FileHold> hold_;
  double looked_ = 0;
  std::atomic<int64_t> came_on_ = 0;  // how often: a piece was written here, or there by one who is waited for

  std::thread heart_;
  std::mutex mutex_;  // over what follows
  std::condition_variable changed_;
  std::string told_;  // what rank 0's sign says
  int64_t beats_ = 0;
  bool is_over_ = false;
};

/// Whether a file of a run's folder is one of those above.
bool is_shared_save_file(std::string_view name);

}  // namespace st
