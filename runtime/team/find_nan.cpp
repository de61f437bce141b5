#include "team/find_nan.h"

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
#include "comm/rank_texts.h"
#include "ir/cuts.h"
#include "ir/op.h"

namespace st {
namespace {

constexpr int64_t kCopied = 32768;  // bytes at a time, in a host's cache

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

/// "inf at [3, 5]" of the first element that is not finite; "" when all are. `piece`: of what the operand is a piece; the index is of the
/// whole.
std::string what_is_bad(Backend& backend, const Operand& of, Looks looks = Looks::for_nan_and_inf, const ParameterPiece& piece = {}) {
  if (!of.data || !is_floating(of.dtype)) return "";
  const int64_t size = bytes_of(of.dtype), at_a_time = std::min(backend.transfer_bytes(kCopied) / size, of.elements());
  std::vector<std::byte> copy(static_cast<size_t>(at_a_time * size));
  for (int64_t first = 0; first < of.elements(); first += at_a_time) {
    const int64_t count = std::min(at_a_time, of.elements() - first);
    backend.to_host(copy.data(), of.data + first * size, count * size);
    for (int64_t i = 0; i < count; ++i) {
      const double value = element(copy.data(), of.dtype, i);
      if (std::isfinite(value) || (looks == Looks::for_nan && !std::isnan(value))) continue;
      std::array<int64_t, kMaxDims> index{};
      int64_t rest = first + i;
      if (piece.is_cut()) piece.each_run(first + i, 1, [&](int64_t in_whole, int64_t, int64_t) { rest = in_whole; });
      const Shape& shape = piece.is_cut() ? piece.whole : of.shape;
      for (int32_t d = shape.rank() - 1; d >= 0; --d) {
        index[static_cast<size_t>(d)] = rest % shape[d];
        rest /= shape[d];
      }
      std::string bad = std::isnan(value) ? "NaN at " : value > 0 ? "inf at " : "-inf at ";
      append_text(bad, Shape(std::span(index.data(), static_cast<size_t>(shape.rank()))));
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
  const Section& section = plan.program.sections[static_cast<size_t>(at.section)];
  const Op op = section.graph[at.node].op;
  const bool is_sum = op == Op::reduce_scatter;
  const bool makes_values = !info_of(op).exchange || op == Op::tensor_sum || op == Op::tensor_scatter;
  if (!makes_values && !is_sum) return;
  const int64_t order = order_of(section, at.micro_batch, is_sum);
  if (found_ && found_->order <= order) return;
  const std::optional<Error> error = check(plan, at, call);
  if (!error) return;
  if (mesh_.ranks() == 1) throw *error;
  found_ = {order, at.node, *error};
}

/// When one rank would make it: its micro-batches one after the other, forward from the first part to the last, backward from the last one.
int64_t FindNan::order_of(const Section& section, int64_t micro_batch, bool is_sum) const {
  constexpr int64_t kMostParts = 1 << 20;
  const int64_t k = micro_batch * mesh_.data + (is_sum ? mesh_.data - 1 : at_.data), part = parts_[static_cast<size_t>(section.chunk)];
  const bool is_forward = section.phase == Phase::forward;
  return (3 * k + (is_sum ? 2 : is_forward ? 0 : 1)) * kMostParts + (is_forward ? part : kMostParts - 1 - part);
}

void FindNan::tell(const Groups& groups) const {
  if (groups.data != nullptr) tell_first(groups);
  fail(Code::not_finite,
       "step: loss or gradients are not finite although every result of an op is: the sum of a tied weight's gradients overflowed. "
       "The step was rolled back");
}

void FindNan::tell_first(const Groups& groups) const {
  const Communicator& ranks = *groups.data;
  // Its order and node, rank and host, place and message, one after the other.
  std::string first = found_ ? text(found_->order, '\0', found_->node, '\0', rank(), '\0', ranks.host_of(ranks.rank()), '\0',
                                    found_->error.place.op, '\0', found_->error.place.tensor, '\0', found_->error.message())
                             : "";
  const auto place_of = [](std::string_view text) {
    std::pair place{std::numeric_limits<int64_t>::max(), int64_t{0}};
    if (text.empty()) return place;
    for (int64_t* const number : {&place.first, &place.second}) {
      const std::string digits = take_text(text);
      std::from_chars(digits.data(), digits.data() + digits.size(), *number);
    }
    return place;
  };
  for (Communicator* const group : {groups.data, groups.tensor, groups.stages}) {
    if (group == nullptr) continue;
    for (std::string& other : gather_texts(*group, std::exchange(first, ""), "first value that is not finite"))
      if (place_of(other) < place_of(first)) first = std::move(other);
  }
  std::string_view rest = first;
  take_text(rest);
  take_text(rest);
  const std::string rank(take_text(rest)), host(take_text(rest)), op(take_text(rest)), tensor(take_text(rest));
  Error error(Code::not_finite, rest.empty() ? "step: loss or gradients are not finite although every result of an op or a collective is: "
                                               "the sum of a tied weight's gradients, or of gradients on ranks without rows of their own, "
                                               "overflowed. The step was rolled back"
                                             : std::string(rest));
  error.place.step = step_;
  error.place.op = op;
  error.place.tensor = tensor;
  if (!rest.empty()) {
    error.place.rank = std::stoi(rank);
    error.place.host = host;
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
    const bool is_weight = slot.role == Role::gathered || (slot.role == Role::working && slot.type.dtype == DType::f32);
    return is_weight ? program.slot(slot.of).name : slot.name;
  };

  const auto piece_in = [&](SlotId id, const Operand& of) {  // not of a shard
    const Slot& slot = program.slot(id);
    return of.elements() == slot.type.shape.elements() ? piece_of(program, slot, at_.tensor) : ParameterPiece();
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
    bad = what_is_bad(backend, call.writes[i], Looks::for_nan_and_inf, piece_in(node.writes[i], call.writes[i]));
    tensor = slot = slot_name(node.writes[i]);
  }
  if (bad.empty()) return std::nullopt;

  std::string before;
  const auto look_at = [&](SlotId from, const Operand& read) {
    if (from < 0 || !before.empty() || std::ranges::find(node.writes, from) != node.writes.end()) return;
    const std::string was = what_is_bad(backend, read, Looks::for_nan_and_inf, piece_in(from, read));
    if (was.empty()) return;
    slot = slot_name(from);
    before = text("; its operand ", slot, " was not finite before: ", was);
  };
  const bool is_sum = node.op == Op::reduce_scatter;  // of what lies in its place
  for (size_t i = 0; i < call.in.size() && !is_sum; ++i) look_at(slot_of(graph, node.in[i]), call.in[i]);
  for (size_t i = 0; i < call.reads.size(); ++i) look_at(node.reads[i], call.reads[i]);

  const std::string& scope = program.regions[static_cast<size_t>(node.region)].name;
  // fused_cross_entropy makes its logits' gradient, its last output, in forward; vocabulary_cross_entropy_backward is there too.
  const bool is_gradient = program.sections[static_cast<size_t>(at.section)].phase != Phase::forward ||
                           node.op == Op::vocabulary_cross_entropy_backward ||
                           (node.op == Op::fused_cross_entropy && bad_output + 1 == call.out.size());
  const std::string rank = mesh_.ranks() == 1 ? "" : text(", rank ", this->rank());
  const int64_t micro_batch = int64_t{at.micro_batch} * mesh_.data + (is_sum ? mesh_.data - 1 : at_.data);
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
