// A save that several processes make together, each with its shards of the tensors. Every rank writes its own files; rank 0, which owns the
// run's folder, commits once all ranks have synced theirs. They begin it in the group that they train in; from then on they synchronise
// only through files in that folder, so that steps and saves do not end each other. README.md in this folder has the protocol.
//
// | file                                    | content                                                                               |
// |-----------------------------------------|---------------------------------------------------------------------------------------|
// | ranks-<save>.<rank>                     | locked while that rank takes part; one guarded line, which a thread of that rank      |
// |                                         | writes again and again: a heartbeat, a progress count, and what that rank says: the   |
// |                                         | checkpoint's name and file_bytes (rank 0), that its files are written, or its failure |
// | step-00000120.part/ranks-<save>.<rank>/ | a rank's files and their manifest, until rank 0 moves them to its own                 |
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/os/machine.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/rank_sign.h"

namespace st {

/// Which rank has which ranges of which tensors. Equal on all ranks, except for `rank` and the callbacks.
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
    std::vector<Range> ranges;  // each element once, in any order, at most one range per rank; [0, 0) for a tensor without elements
  };
  int32_t rank = 0, ranks = 1;
  double deadline = 60;         // seconds without a heartbeat after which a rank counts as failed; a slow rank is waited for
  double stall_deadlines = 16;  // deadlines that a live rank, and the ranks it waits for, may write nothing before its disk counts as hung
  std::function<double()> seconds = os::seconds;  // the clock of both
  std::vector<std::string> names;                 // of the ranks, for errors
  std::vector<Tensor> tensors;                    // by name
  /// Synchronises all ranks. `own`: this rank's failure or null; throws on all ranks if any has failed.
  std::function<void(const std::exception_ptr& own)> agree;
  /// Synchronises all ranks; returns rank 0's text.
  std::function<std::string(const std::string& own)> text_of_rank_0;

  /// Runs call() on all ranks, then agrees.
  template <class Call>
  void agree_on(const Call& call) const {
    std::exception_ptr own;
    try {
      call();
    } catch (...) {
      own = std::current_exception();
    }
    agree(own);
  }
};

/// One rank's end of one save. Used by one thread at a time.
class SharedSaveEnd {
 public:
  /// Warns `log` of slow ranks.
  SharedSaveEnd(std::shared_ptr<const SharedSave> save, std::string folder, Logger log = {});
  ~SharedSaveEnd();
  SharedSaveEnd(const SharedSaveEnd&) = delete;
  SharedSaveEnd& operator=(const SharedSaveEnd&) = delete;

  /// Called by all ranks. Starts the heartbeat, which runs until end(). Throws on all what fails on one: io; unavailable if the thread
  /// cannot be started; rank_mismatch if one uses another folder than rank 0.
  void begin();

  /// Polled by the thread that writes: counts its progress. Throws if another rank has failed or ended.
  void look_around(const WriteProgress& progress);
  /// Rank 0: as write_checkpoint(), for the ranges of all ranks; `own`: rank 0's ranges, in order. Writes to folder/checkpoint.part. Throws
  /// what has failed here or on another rank, naming that rank: rank_failed if it has ended, timeout if it is silent or makes no progress.
  Manifest write_all(const std::string& checkpoint, Manifest manifest, std::span<const WrittenTensor> own, const WriteOptions& options,
                     WriteProgress& progress);
  /// Rank 0, where it catches a failure: reports it to the other ranks. If that fails, they notice that this rank has given up.
  void report_failure() noexcept;
  /// Rank 0: called after the commit, so that the others need not wait for what follows. The destructor calls it, too.
  void end() noexcept;
  /// Other ranks: writes this rank's ranges into files of rank 0's file_bytes, and returns once rank 0 has committed. Throws like
  /// write_all(), including failures of other ranks.
  void write_part(int64_t step, std::span<const WrittenTensor> own, const WriteOptions& options, WriteProgress& progress);

 private:
  struct Shard;

  std::string path_of_sign(int32_t rank) const;
  std::string part_of(const std::string& checkpoint, int32_t rank) const;
  SignContent sign_of(int32_t rank) const;
  void require_saving(int32_t rank, const SignContent& sign) const;
  [[noreturn]] void fail_for(int32_t rank, Code code, const std::string& what) const;
  template <class Condition>
  void await(int32_t other, const WriteProgress& progress, const Condition& is_so);
  std::vector<Shard> shards(int64_t file_bytes) const;
  LogicalTensor tensor_of(const ShardPiece& piece) const;
  Manifest write_own(const std::string& folder, std::span<const WrittenTensor> own, const WriteOptions& options, WriteProgress& progress);
  Manifest take_over(const std::string& checkpoint, int32_t rank, const WriteProgress& progress);

  std::shared_ptr<const SharedSave> save_;
  const std::string folder_;
  const Logger log_;
  std::string name_;  // of the save, a new one each time: rank 0's process and time
  double looked_ = 0;
  int64_t done_ = 0;              // bytes written, when this rank last looked
  int32_t next_ = 0;              // rank that this one looks at next
  bool has_failed_ = false;       // and has said so: its sign stays
  std::optional<RankSign> sign_;  // that this rank takes part; it counts bytes written here, or on the rank that this one waits for
};

/// Whether `name`, a file in a run's folder, belongs to a shared save.
bool is_shared_save_file(std::string_view name);

}  // namespace st
