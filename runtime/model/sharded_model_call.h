// A collective call of all ranks on a sharded model: it fails on all ranks or on none.
#pragma once

#include <exception>
#include <functional>
#include <string_view>

#include "comm/communicator.h"

namespace st {

class ShardedModelCall {
 public:
  /// Runs `call`; `ranks` null: one rank, and `call` gets null. An error before agree() is reported to the other ranks there, and all throw
  /// it. An error after agree() that is not on all ranks aborts the group.
  static void make(Communicator* ranks, const std::function<void(ShardedModelCall* collective)>& call);

  Communicator& ranks() const { return ranks_; }
  /// Identifies the model, or predictor's snapshot, of the call: the number of the collective in which the ranks made it.
  void is_on(uint64_t number) { number_ = number; }
  /// Synchronises the ranks. Call it once, after all argument checks: throws on all ranks the error of a rank that refused the call, or
  /// rank_mismatch if the ranks made different calls.
  void agree(std::string_view what);
  /// Whether `own` is true on any rank.
  bool on_any(bool own);
  /// See require_all_fine() (rank_texts.h).
  void require_all_fine(const std::exception_ptr& own);

 private:
  explicit ShardedModelCall(Communicator& ranks) : ranks_(ranks) {}

  Communicator& ranks_;
  uint64_t number_ = 0;
  bool has_agreed_ = false;
};

}  // namespace st
