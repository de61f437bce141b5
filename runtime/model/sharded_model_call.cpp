#include "model/sharded_model_call.h"

#include <array>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "comm/rank_facts.h"
#include "comm/rank_texts.h"

namespace st {
namespace {

constexpr std::string_view kLabel = "sharded model";  // the same for all calls, so that meet() can report different ones

}  // namespace

void ShardedModelCall::make(Communicator* ranks, const std::function<void(ShardedModelCall* collective)>& call) {
  if (ranks == nullptr) return call(nullptr);
  ShardedModelCall collective(*ranks);
  try {
    call(&collective);
  } catch (const std::exception& why) {
    if (!collective.has_agreed_) collective.require_all_fine(std::current_exception());
    const auto* error = dynamic_cast<const Error*>(&why);
    const bool is_told = error != nullptr && (error->is_on_all_ranks || error->code() == Code::rank_mismatch);
    if (!is_told) ranks->abort(why.what());  // the others wait for what it was to exchange
    throw;
  }
}

void ShardedModelCall::agree(std::string_view what) {
  require_all_fine(nullptr);
  const std::array<RankFact, 2> facts = {{{"called", std::string(what)}, {"object made in collective", text("#", number_)}}};
  require_agreement(ranks_, facts, kLabel);
}

bool ShardedModelCall::on_any(bool own) {
  int32_t is_so = own ? 1 : 0;
  ranks_.all_reduce(&is_so, 1, DType::i32, ReduceOp::max, kLabel);
  return is_so != 0;
}

void ShardedModelCall::require_all_fine(const std::exception_ptr& own) {
  has_agreed_ = true;
  st::require_all_fine(ranks_, own, kLabel);
}

}  // namespace st
