#include "train/joint_call.h"

#include <array>
#include <string>

#include "base/error.h"
#include "train/rank_agreement.h"
#include "train/rank_texts.h"

namespace st {
namespace {

constexpr std::string_view kLabel = "sharded model";  // the same for all calls, so that meet() can report different ones

}  // namespace

void JointCall::make(Communicator* ranks, const std::function<void(JointCall* joint)>& call) {
  if (ranks == nullptr) return call(nullptr);
  JointCall joint(*ranks);
  try {
    call(&joint);
  } catch (const std::exception& why) {
    if (!joint.has_met_) joint.require_all_fine(std::current_exception());
    const auto* error = dynamic_cast<const Error*>(&why);
    const bool is_told = error != nullptr && (error->is_on_all_ranks || error->code() == Code::rank_mismatch);
    if (!is_told) ranks->abort(why.what());  // the others wait for what it was to exchange
    throw;
  }
}

void JointCall::meet(std::string_view what) {
  require_all_fine(nullptr);
  const std::array<RankFact, 2> facts = {{{"called", std::string(what)}, {"object made in collective", text("#", number_)}}};
  require_agreement(ranks_, facts, kLabel);
}

bool JointCall::on_any(bool own) {
  int32_t is_so = own ? 1 : 0;
  ranks_.all_reduce(&is_so, 1, DType::i32, ReduceOp::max, kLabel);
  return is_so != 0;
}

void JointCall::require_all_fine(const std::exception_ptr& own) {
  has_met_ = true;
  st::require_all_fine(ranks_, own, kLabel);
}

}  // namespace st
