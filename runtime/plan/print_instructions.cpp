#include <array>
#include <utility>

#include "base/text.h"
#include "plan/plan.h"

namespace st {
namespace {

std::string_view words_of(Copy copy) {
  constexpr std::array<std::string_view, 4> kTexts = {"", "copy for the step", "lasting copy", "gathered copy"};
  return kTexts[static_cast<size_t>(copy)];
}

std::string_view words_of(Instruction::Kind kind) {
  constexpr std::array<std::string_view, 10> kTexts = {"", "", "posted", "", "", "has left", "", "fetch", "write back", "await copy"};
  return kTexts[static_cast<size_t>(kind)];
}

std::string_view words_of(Instruction::Ranks ranks) {
  constexpr std::array<std::string_view, 3> kTexts = {"", "all ranks in each round", "all ranks once a step"};
  return kTexts[static_cast<size_t>(ranks)];
}

std::string line_of_copy(const Plan& plan, const Instruction& at) {
  const StateWindow& window = plan.memory.windows[static_cast<size_t>(at.window)];
  int64_t bytes = 0;
  for (const StagedBytes& of : window.copies)
    if (at.kind != Instruction::Kind::write_back || of.is_written) bytes += of.bytes;
  const std::string nodes = window.end - window.begin == 1 ? text("%", window.begin) : text("%", window.begin, " to %", window.end - 1);
  return text("  ", name_of(plan.program.sections[static_cast<size_t>(at.section)].phase), " ", nodes, ": ", words_of(at.kind), ", ",
              text_of_bytes(bytes), at.kind == Instruction::Kind::write_back ? " to" : " from", " the host's memory",
              at.makes == Copy::none ? "" : ", ", words_of(at.makes), "\n");
}

/// One instruction, or kernels in a row that differ in nothing but the node.
std::string line_of(const Plan& plan, size_t first, size_t end) {
  const Instruction &at = plan.instructions[first], &last = plan.instructions[end - 1];
  if (at.is_copy()) return line_of_copy(plan, at);
  const Section& section = plan.program.sections[static_cast<size_t>(at.section)];
  std::string out = text("  ", name_of(section.phase), " %", at.node);
  out += end - first > 1 ? text(" to %", last.node, ": ", end - first, " kernels") : text(": ", name_of(section.graph[at.node].op));
  const auto add = [&](std::string_view what) {
    if (!what.empty()) out += text(", ", what);
  };
  add(words_of(at.kind));
  if (at.exchange >= 0) {
    const ExchangePlan& exchange = plan.exchanges[static_cast<size_t>(at.exchange)];
    add(exchange.label);
    if (exchange.other >= 0)
      add(text(exchange.op == Op::send ? "to stage " : "from stage ", exchange.other));
    else if (exchange.axis != MeshAxis::data)
      add(text("along the ", name_of(exchange.axis), " axis"));
    if (exchange.is_fast && !at.is_wait()) add("fast");
  }
  if (section.phase != Phase::update) add(words_of(at.ranks));  // all ranks run the update
  add(words_of(at.makes));
  if (at.is_early()) add("early");
  return out + "\n";
}

/// Instructions in [begin, end), all of one run of a micro-batch.
std::string lines_of(const Plan& plan, size_t begin, size_t end) {
  const auto is_like = [](const Instruction& a, const Instruction& b) {
    return a.kind == Instruction::Kind::kernel && b.kind == a.kind && a.section == b.section && a.within == b.within &&
           a.makes == b.makes && a.ranks == b.ranks;
  };
  std::string out;
  for (size_t first = begin, next = begin; first < end; first = next) {
    for (next = first + 1; next < end && is_like(plan.instructions[first], plan.instructions[next]);) ++next;
    out += line_of(plan, first, next);
  }
  return out;
}

}  // namespace

std::string print_instructions(const Plan& plan) {
  struct Block {
    int32_t first, last;  // micro-batches
    std::string lines;
  };
  std::vector<Block> blocks;
  for (size_t at = 0, end = 0; at < plan.begin_of_update; at = end) {
    const int32_t k = plan.instructions[at].micro_batch;
    while (end < plan.begin_of_update && plan.instructions[end].micro_batch == k) ++end;
    std::string of = lines_of(plan, at, end);
    if (!blocks.empty() && blocks.back().lines == of && blocks.back().last + 1 == k)
      blocks.back().last = k;
    else
      blocks.push_back({k, k, std::move(of)});
  }
  std::string out;
  for (const Block& block : blocks) {
    out += block.first == block.last ? text("micro-batch ", block.first) : text("micro-batches ", block.first, " to ", block.last);
    out += "\n" + block.lines;
  }
  if (plan.begin_of_update < plan.instructions.size()) out += "update\n" + lines_of(plan, plan.begin_of_update, plan.instructions.size());
  return out;
}

}  // namespace st
