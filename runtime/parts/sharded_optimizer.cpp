#include "parts/sharded_optimizer.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/library_version.h"
#include "base/text.h"
#include "comm/rank_facts.h"
#include "parts/kernel_facts.h"

namespace st {
namespace {

constexpr std::string_view kPart = "sharded optimizer";

std::vector<GradientSums::Gradient> gradients_of(const HostOptimizer& optimizer, bool own_sums) {
  std::vector<GradientSums::Gradient> made(optimizer.size());
  for (size_t i = 0; i < made.size(); ++i) {
    made[i] = {.name = optimizer.gradient_name(i), .elements = optimizer.parameters()[i].shape.elements()};
    if (!optimizer.is_trained(i)) continue;
    made[i].cuts = &optimizer.cuts(i);
    if (own_sums) made[i].own = optimizer.own_sums(i);
  }
  return made;
}

[[noreturn]] void refuse_one(const Communicator& ranks, size_t rank, std::string_view tensor, const std::string& message) {
  const auto r = static_cast<int>(rank);
  refuse_rank(ranks, r, tensor, text(kPart, ": ", text_of_rank(ranks, r), " ", message));
}

}  // namespace

ShardedOptimizer::ShardedOptimizer(std::shared_ptr<Context> context, Communicator& ranks, std::string_view json,
                                   std::span<const HostView> parameters, const ShardOptions& options, WorkQueue& queue)
    : context_(std::move(context)),
      ranks_(ranks),
      options_(options),
      optimizer_(context_, json, parameters, {.ranks = &ranks, .own_sums = options.stage == 2}),
      left_(ranks),
      masters_(ranks),
      reports_(static_cast<size_t>(ranks.size())),
      types_(2 * optimizer_.size()),
      whole_(optimizer_.whole_states()),
      sums_({.ranks = ranks, .queue = queue, .workers = optimizer_.workers(), .op = options.op, .in_place = options.stage == 1},
            gradients_of(optimizer_, options.stage == 2), options.bucket_bytes, context_->memory()) {
  require_same_run();
  find_left();
}

void ShardedOptimizer::require_same_run() {
  const Backend& backend = context_->host_backend();
  std::vector<RankFact> facts = {{"library version", std::string(library_version())},
                                 {"stage", text(options_.stage)},
                                 {"op", std::string(name_of(options_.op))},
                                 {"bucket_bytes", text(options_.bucket_bytes)},
                                 {"shard_masters", options_.shard_masters ? "1" : "0"},
                                 {"number of parameters", text(optimizer_.size())}};
  const std::vector<RankFact> kernels = kernel_facts(text(backend.name(), " ", backend.kernel_class()));
  facts.insert(facts.begin() + 1, kernels.begin(), kernels.end());
  for (const std::string& key : optimizer_keys())
    if (key != "threads") facts.push_back({key, optimizer_.recipe().get(key)});
  require_agreement(ranks_, facts, kPart);
  const auto parameter = [&](size_t i) -> RankFact {
    const HostView& view = optimizer_.parameters()[i];
    return {text("parameter ", i), text("\"", view.name, "\", ", view.dtype, " of ", view.shape)};
  };
  require_agreement(ranks_, optimizer_.size(), parameter, kPart);
}

/// Parameters and copies: where they lie does not change from step to step.
void ShardedOptimizer::find_left() {
  left_.clear();
  masters_.clear();
  has_masters_ = false;
  for (size_t i = 0; i < optimizer_.size(); ++i) {
    if (!optimizer_.is_trained(i)) continue;
    const Cuts& cuts = optimizer_.cuts(i);
    const bool has_copy = optimizer_.copies()[i].data != nullptr;
    for (const HostView* view : {&optimizer_.parameters()[i], &optimizer_.copies()[i]}) {
      const bool is_master = options_.shard_masters && has_copy && view == &optimizer_.parameters()[i];
      has_masters_ = has_masters_ || is_master;
      for (int rank = 0; rank < ranks_.size() && view->data != nullptr; ++rank)
        if (const int64_t width = bytes_of(view->dtype), n = cuts.elements_of(rank); n > 0)
          (is_master ? masters_ : left_).add(rank, static_cast<std::byte*>(view->data) + cuts[rank] * width, n * width);
    }
  }
}

void ShardedOptimizer::gradient_ready(int64_t i, const HostView& gradient) {
  require(options_.stage == 2, Code::wrong_state, kPart, ": gradient_ready needs stage 2; at stage 1 give all gradients to the step");
  check(i >= 0 && i < std::ssize(optimizer_.parameters()), kPart, ": gradient ", i, " must be in [0, ", optimizer_.size(),
        "), one per parameter");
  optimizer_.check_gradient(static_cast<size_t>(i), gradient);
  sums_.give(static_cast<size_t>(i), gradient);
}

HostOptimizer::Report ShardedOptimizer::step(std::span<const HostView> gradients, double scale) {
  if (gradients.empty()) {
    require(options_.stage == 2, Code::wrong_state, kPart, ": at stage 1 a step needs the gradients of all parameters");
    sums_.require_all_given();
  }
  optimizer_.take(gradients);
  require_same_step(gradients, scale);
  if (!gradients.empty()) sums_.give_all(gradients);
  sums_.finish();
  const HostOptimizer::Report report = optimizer_.update(scale);
  if (report.skipped || ranks_.size() == 1) return report;
  are_masters_whole_ = are_masters_whole_ && !has_masters_;
  left_.gather(DType::u8, "parameters");
  return report;
}

void ShardedOptimizer::require_same_step(std::span<const HostView> gradients, double scale) {
  const size_t count = optimizer_.size(), size = reports_.size();
  uint64_t hash = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!optimizer_.is_trained(i)) continue;
    types_[2 * i] = static_cast<uint8_t>(gradients.empty() ? sums_.dtype(i) : gradients[i].dtype);
    types_[2 * i + 1] = optimizer_.copies()[i].data == nullptr ? 0 : static_cast<uint8_t>(optimizer_.copies()[i].dtype);
  }
  for (const uint8_t type : types_) hash = (hash ^ type) * 0x100000001b3;  // FNV-1a
  exchange_reports(ranks_,
                   {.call = RankReport::Call::sharded_optimizer,
                    .update = optimizer_.updates(),
                    .lr = optimizer_.recipe().lr,
                    .loss_scale = scale,
                    .gradients = hash},
                   reports_);
  const auto other = std::ranges::find_if(reports_, [&](const RankReport& report) { return report.gradients != reports_[0].gradients; });
  if (other == reports_.end()) return;
  const auto rank = static_cast<size_t>(other - reports_.begin());
  std::vector<uint8_t> all(size * types_.size());
  ranks_.all_gather(types_.data(), all.data(), std::ssize(all), DType::u8, "types of gradients and copies");
  const auto* const theirs = all.data() + rank * types_.size();
  const auto at = static_cast<size_t>(std::mismatch(theirs, theirs + types_.size(), all.data()).first - theirs);
  require(at < types_.size(), Code::internal, kPart, ": type digests differ, but the types are equal");
  const bool is_copy = at % 2 == 1;
  const auto shown = [](uint8_t type) { return type == 0 ? std::string("none") : text(static_cast<DType>(type)); };
  refuse_one(ranks_, rank, is_copy ? optimizer_.copy_name(at / 2) : optimizer_.gradient_name(at / 2),
             text("gives \"", is_copy ? optimizer_.copy_name(at / 2) : optimizer_.gradient_name(at / 2), "\" as ", shown(theirs[at]),
                  ", rank 0 as ", shown(all[at]), "; give all ranks the same types"));
}

void ShardedOptimizer::keep_copies(std::span<const HostView> copies) {
  require(!sums_.has_begun(), Code::wrong_state, kPart, ": gradients of a step were already given; call it between two steps");
  require(
      are_masters_whole_, Code::wrong_state, kPart,
      ": outside this rank's shards the parameters are older than their copies; call st_sharded_optimizer_gather_state with rank -1 first");
  optimizer_.keep_copies(copies);
  find_left();
}

// The state.

void ShardedOptimizer::forget_gathered() {
  views_.clear();
  gathered_ = {};
}

std::span<const HostView> ShardedOptimizer::gather_state(int rank) {
  forget_gathered();
  const int own = ranks_.rank();
  const bool is_here = rank < 0 || rank == own;
  if (is_here) make_room();
  const auto piece = [&](size_t i, int of) {
    const HostOptimizer::WholeState& state = whole_[i];
    const auto r = static_cast<size_t>(of);
    const int64_t width = bytes_of(state.dtype), begin = state.cuts[r] * width, bytes = state.cuts[r + 1] * width - begin;
    auto* const there = is_here ? static_cast<std::byte*>(views_[i + 1].data) + begin : nullptr;
    return Communicator::Shard{is_here || of != own ? there : state.own, bytes};
  };
  Bucket pieces(ranks_);
  for (size_t i = 0; i < whole_.size(); ++i) {
    for (int of = 0; of < ranks_.size(); ++of)
      if (const auto part = piece(i, of); part.elements > 0) pieces.add(of, part.data, part.elements);
    if (const auto part = piece(i, own); is_here && part.elements > 0)
      std::memcpy(part.data, whole_[i].own, static_cast<size_t>(part.elements));
  }
  gather_to(rank, pieces, "state");
  if (options_.shard_masters) gather_to(rank, masters_, "parameters");
  are_masters_whole_ = are_masters_whole_ || is_here;
  return views_;
}

/// Gathers to one rank, or to all (-1).
void ShardedOptimizer::gather_to(int rank, const Bucket& by_owner, std::string_view label) {
  if (rank < 0) return by_owner.gather(DType::u8, label);
  if (rank != ranks_.rank()) {
    for (const auto& part : by_owner.own()) ranks_.send(part.data, part.elements, DType::u8, rank, label);
    return;
  }
  for (int of = 0; of < ranks_.size(); ++of)
    for (const auto& part : by_owner.of(of))
      if (of != rank) ranks_.receive(part.data, part.elements, DType::u8, of, label);
}

/// Allocates memory for "step", then for whole_.
void ShardedOptimizer::make_room() {
  int64_t bytes = align_up(sizeof(int64_t));
  std::vector<int64_t> at = {0};
  for (const auto& state : whole_) {
    at.push_back(bytes);
    bytes += align_up(state.shape.elements() * bytes_of(state.dtype));
  }
  context_->require_memory_of_parts("sharded optimizer: the gathered state", bytes);
  gathered_ = Memory(bytes, context_->memory(), MemoryRole::optimizer);
  const int64_t updates = optimizer_.updates();
  std::memcpy(gathered_.data(), &updates, sizeof updates);
  views_.push_back(plain_view("step", DType::i64, {}, gathered_.data()));
  for (size_t i = 0; i < whole_.size(); ++i)
    views_.push_back(plain_view(whole_[i].name, whole_[i].dtype, whole_[i].shape, gathered_.data() + at[i + 1]));
}

void ShardedOptimizer::load_state(std::span<const HostView> state) {
  std::map<std::string_view, const HostView*> named;
  for (const HostView& view : state)
    check(named.emplace(view.name, &view).second, kPart, ": two tensors of the state are named \"", view.name, "\"");
  const auto take = [&](std::string_view name, DType dtype, const Shape& shape) {
    const auto found = named.find(name);
    require(found != named.end(), Code::not_found, kPart, ": the state has no \"", name, "\"");
    const HostView& view = *found->second;
    named.erase(found);
    const bool is_one = view.shape.elements() == 1 && shape.elements() == 1;  // not every language has arrays without dims
    check(view.dtype == dtype && (view.shape == shape || is_one), kPart, ": \"", name, "\" must be ", dtype, " of ", shape,
          ", the state's is ", view.dtype, " of ", view.shape);
    check(view.is_plain(), kPart, ": \"", name, "\" of the state must be row-major without gaps and aligned to its elements");
    return static_cast<const std::byte*>(view.data);
  };
  const auto updates = *reinterpret_cast<const int64_t*>(take("step", DType::i64, {}));
  check(updates >= 0 && updates < HostOptimizer::kMostUpdates, kPart,
        ": the state's step, the number of updates so far, must be in [0, 2^53), got ", updates);
  std::vector<const std::byte*> from;
  for (const auto& whole : whole_) from.push_back(take(whole.name, whole.dtype, whole.shape));
  check(named.empty(), kPart, ": the state has \"", named.empty() ? "" : named.begin()->first, "\", which this optimizer does not have");

  const auto rank = static_cast<size_t>(ranks_.rank());
  for (size_t i = 0; i < whole_.size(); ++i) {
    const int64_t width = bytes_of(whole_[i].dtype), begin = whole_[i].cuts[rank], n = whole_[i].cuts[rank + 1] - begin;
    if (n > 0) std::memcpy(whole_[i].own, from[i] + begin * width, static_cast<size_t>(n * width));
  }
  optimizer_.set_updates(updates);
  are_masters_whole_ = true;  // the host loads them too
  forget_gathered();          // the last: it may be what was loaded
}

}  // namespace st
