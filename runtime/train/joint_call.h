// A call that the ranks of a group make together on a model that each has pieces of: one gives up for all, or none.
#pragma once

#include <exception>
#include <functional>
#include <string_view>

#include "comm/communicator.h"

namespace st {

class JointCall {
 public:
  /// Makes `call`; `ranks` null: nobody else makes it, and it is given null. What it throws before meet() is told the others there, and all
  /// throw it; what it throws behind that, and not on all, ends the group.
  static void make(Communicator* ranks, const std::function<void(JointCall* joint)>& call);

  Communicator& ranks() const { return ranks_; }
  /// Which model, or predictor's snapshot, it is on: the number of the collective in which the ranks made that together.
  void is_on(uint64_t number) { number_ = number; }
  /// Once, behind all that the call may refuse: throws on all ranks where one has refused it, and rank_mismatch where they do not all mean
  /// the same by it.
  void meet(std::string_view what);
  /// Whether it is so on some rank.
  bool on_any(bool own);
  /// As require_all_fine() (rank_texts.h).
  void require_all_fine(const std::exception_ptr& own);

 private:
  explicit JointCall(Communicator& ranks) : ranks_(ranks) {}

  Communicator& ranks_;
  uint64_t number_ = 0;
  bool has_met_ = false;
};

}  // namespace st
