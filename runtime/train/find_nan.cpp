#include "train/find_nan.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/float16.h"
#include "ir/op.h"
#include "train/rank_texts.h"

namespace st {
namespace {

constexpr int64_t kCopied = 32768;  // bytes at a time, as a device would copy them

double element(const std::byte* data, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::f32:
      return reinterpret_cast<const float*>(data)[i];
    case DType::f64:
      return reinterpret_cast<const double*>(data)[i];
    case DType::bf16:
      return static_cast<double>(f32_of_bf16(reinterpret_cast<const uint16_t*>(data)[i]));
    case DType::f16:
      return static_cast<double>(f32_of_f16(reinterpret_cast<const uint16_t*>(data)[i]));
    default:
      return 0;  // not asked for
  }
}

enum class Looks { for_nan, for_nan_and_inf };

/// "inf at [3, 5]" of the first element that is not finite; "" when all are.
std::string what_is_bad(Backend& backend, const Operand& of, Looks looks = Looks::for_nan_and_inf) {
  if (of.data == nullptr || !is_floating(of.dtype)) return "";
  const int64_t size = bytes_of(of.dtype);
  alignas(8) std::array<std::byte, kCopied> piece;
  for (int64_t first = 0; first < of.elements(); first += kCopied / size) {
    const int64_t count = std::min(kCopied / size, of.elements() - first);
    backend.to_host(piece.data(), of.as<std::byte>() + first * size, count * size);
    for (int64_t i = 0; i < count; ++i) {
      const double value = element(piece.data(), of.dtype, i);
      if (std::isfinite(value) || (looks == Looks::for_nan && !std::isnan(value))) continue;
      std::array<int64_t, kMaxDims> index{};
      int64_t rest = first + i;
      for (int32_t d = of.shape.rank() - 1; d >= 0; --d) {
        index[static_cast<size_t>(d)] = rest % of.shape[d];
        rest /= of.shape[d];
      }
      std::string bad = std::isnan(value) ? "NaN at " : value > 0 ? "inf at " : "-inf at ";
      append_text(bad, Shape(std::span(index.data(), static_cast<size_t>(of.shape.rank()))));
      return bad;
    }
  }
  return "";
}

/// The slot that a value is a view of, or -1.
SlotId slot_of(const Graph& graph, Value v) {
  while (graph[v.node].op == Op::reshape) v = graph[v.node].in[0];
  return graph[v.node].op == Op::load ? graph[v.node].reads[0] : -1;
}

/// Whether an infinity of this output is meant: a mask's, which fill makes and other ops take on, and the lse of a row that attends
/// nothing. What ops made before was looked at, and passed; what a slot brings is not meant.
bool may_be_infinite(Backend& backend, const Graph& graph, const Node& node, const Call& call, size_t output) {
  if (node.op == Op::fill || (node.op == Op::attention && output == 1)) return true;
  for (size_t i = 0; i < call.in.size(); ++i)
    if (slot_of(graph, node.in[i]) < 0 && !what_is_bad(backend, call.in[i]).empty()) return true;
  return false;
}

}  // namespace

void FindNan::look(const Plan& plan, const Instruction& at, const Call& call) {
  if (found_) return;
  const Op op = plan.program.sections[static_cast<size_t>(at.section)].graph[at.node].op;
  const bool is_exchange = info_of(op).exchange;
  if (is_exchange && op != Op::reduce_scatter) return;
  const std::optional<Error> error = check(plan, at, call);
  if (!error) return;
  if (size_ == 1) throw *error;
  const int64_t before = int64_t{at.micro_batch} * size_;
  found_ = {is_exchange ? 2 * (before + size_ - 1) + 1 : 2 * (before + rank_), *error};
}

void FindNan::tell(Communicator* ranks) const {
  if (ranks != nullptr) tell_first(*ranks);
  fail(Code::not_finite,
       "step: loss or gradients are not finite although every result of an op is: the sum of a tied weight's gradients overflowed. "
       "The step was rolled back");
}

void FindNan::tell_first(Communicator& ranks) const {
  // Its order, place and message, one after the other.
  const std::string own =
      found_ ? text(found_->order, '\0', found_->error.place.op, '\0', found_->error.place.tensor, '\0', found_->error.message()) : "";
  const std::vector<std::string> all = gather_texts(ranks, own, "first value that is not finite");
  int64_t first = std::numeric_limits<int64_t>::max();
  size_t rank = 0;
  for (size_t other = 0; other < all.size(); ++other) {
    int64_t order = std::numeric_limits<int64_t>::max();
    std::from_chars(all[other].data(), all[other].data() + all[other].size(), order);
    if (order >= first) continue;
    first = order;
    rank = other;
  }
  std::string_view rest = all[rank];
  const auto next = [&rest] {
    const size_t end = std::min(rest.find('\0'), rest.size());
    const std::string_view part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return part;
  };
  next();
  const std::string op(next()), tensor(next());
  Error error(Code::not_finite, rest.empty() ? "step: loss or gradients are not finite although every result of an op or a collective is: "
                                               "the sum of a tied weight's gradients, or of gradients on ranks without rows of their own, "
                                               "overflowed. The step was rolled back"
                                             : std::string(rest));
  error.place.step = step_;
  error.place.op = op;
  error.place.tensor = tensor;
  if (!rest.empty()) {
    error.place.rank = static_cast<int32_t>(rank);
    error.place.host = ranks.host_of(static_cast<int>(rank));
  }
  error.is_on_all_ranks = true;
  throw error;
}

std::optional<Error> FindNan::check(const Plan& plan, const Instruction& at, const Call& call) const {
  Backend& backend = backend_;
  const Program& program = plan.program;
  const Graph& graph = program.sections[static_cast<size_t>(at.section)].graph;
  const Node& node = graph[at.node];
  const auto slot_name = [&](SlotId id) {
    const Slot& slot = program.slot(id);
    return slot.role == Role::gathered ? program.slot(slot.of).name : slot.name;
  };

  std::string tensor, bad, slot;
  size_t bad_output = 0;
  for (size_t i = 0; i < call.out.size() && bad.empty(); ++i) {
    bad = what_is_bad(backend, call.out[i]);
    if (!bad.empty() && may_be_infinite(backend, graph, node, call, i)) bad = what_is_bad(backend, call.out[i], Looks::for_nan);
    bad_output = i;
    tensor = text("output ", i, " (", call.out[i].dtype, " ", call.out[i].shape, ")");
  }
  for (size_t i = 0; i < call.writes.size() && bad.empty(); ++i) {
    bad = what_is_bad(backend, call.writes[i]);
    tensor = slot = slot_name(node.writes[i]);
  }
  if (bad.empty()) return std::nullopt;

  std::string before;
  const auto look_at = [&](SlotId from, const Operand& read) {
    if (from < 0 || !before.empty() || std::ranges::find(node.writes, from) != node.writes.end()) return;
    const std::string was = what_is_bad(backend, read);
    if (was.empty()) return;
    slot = slot_name(from);
    before = text("; its operand ", slot, " was not finite before: ", was);
  };
  const bool is_sum = node.op == Op::reduce_scatter;  // of what lies in its place
  for (size_t i = 0; i < call.in.size() && !is_sum; ++i) look_at(slot_of(graph, node.in[i]), call.in[i]);
  for (size_t i = 0; i < call.reads.size(); ++i) look_at(node.reads[i], call.reads[i]);

  const std::string& scope = program.regions[static_cast<size_t>(node.region)].name;
  // fused_cross_entropy makes its logits' gradient, its last output, in forward.
  const bool is_gradient = program.sections[static_cast<size_t>(at.section)].phase != Phase::forward ||
                           (node.op == Op::fused_cross_entropy && bad_output + 1 == call.out.size());
  const std::string rank = size_ == 1 ? "" : text(", rank ", rank_);
  const int64_t micro_batch = int64_t{at.micro_batch} * size_ + (is_sum ? size_ - 1 : rank_);
  Error error(Code::not_finite, text("step ", step_, ": the first value that is not finite was made by ", name_of(node.op), " in ",
                                     scope.empty() ? "the outermost scope" : scope, " (", is_gradient ? "backward" : "forward",
                                     is_sum ? ", after micro-batch " : ", micro-batch ", micro_batch, rank, "): ", bad, " of ", tensor,
                                     before, ". The step was rolled back"));
  error.place.step = step_;
  error.place.op = std::string(name_of(node.op));
  error.place.tensor = slot;
  return error;
}

}  // namespace st
