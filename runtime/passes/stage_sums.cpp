#include "passes/stage_sums.h"

#include <algorithm>

#include "base/error.h"
#include "ir/cuts.h"

namespace st {
namespace {

int64_t link_of_uses(const Program& program, int32_t from, int32_t to) {
  const StageLink link{.carries = StageLink::Carries::uses, .from = from, .to = to};
  const auto found = std::ranges::find(program.links, link);
  require(found != program.links.end(), Code::internal, "stage_sums: no link takes uses from stage ", from, " to stage ", to);
  return found - program.links.begin();
}

}  // namespace

void send_use(Builder& b, Value value, SlotId use, SlotId first) {
  const Program& program = b.program();
  const int32_t from = stage_of(program.slot(use)), to = stage_of(program.slot(first));
  b.graph().nodes.push_back({.op = Op::send,
                             .in = {value},
                             .out = {},
                             .reads = {},
                             .writes = {},
                             .attrs = make_attrs(Op::send, {{"link", link_of_uses(program, from, to)}, {"stage", int64_t{to}}})});
}

SlotId receive_use(Builder& b, SlotId use, SlotId first, Slot room) {
  Program& program = b.program();
  const int32_t from = stage_of(program.slot(use)), to = stage_of(program.slot(first));
  const int64_t link = link_of_uses(program, from, to);
  room.name = text("received.", room.name);
  const SlotId received = program.add_slot(std::move(room));
  b.graph().nodes.push_back({.op = Op::receive,
                             .in = {},
                             .out = {},
                             .reads = {},
                             .writes = {received},
                             .attrs = make_attrs(Op::receive, {{"link", link}, {"stage", int64_t{from}}})});
  return received;
}

void add_use(Builder& b, SlotId use, SlotId first, bool as_shards) {
  Program& program = b.program();
  const auto load = [&](SlotId slot) { return as_shards ? b.load_shard(slot) : b.load(slot); };
  const bool has_use = is_here(program, program.slot(use)), has_first = is_here(program, program.slot(first));
  if (has_use && has_first) return b.accumulate(load(use), first, When::every);
  if (!has_use && !has_first) return;
  if (has_use) return send_use(b, load(use), use, first);
  Slot room = program.slot(use);
  room.type.layout = room.type.layout.only(MeshAxis::tensor);
  if (as_shards) room.type.layout[MeshAxis::data] = program.slot(room.of).sums;
  const SlotId received = receive_use(b, use, first, std::move(room));
  b.accumulate(load(received), first, When::every);
}

void sum_along(Builder& b, MeshAxis axis, const std::vector<std::pair<Value, SlotId>>& terms) {
  Node sum{.op = Op::rank_sums, .in = {}, .out = {}, .reads = {}, .writes = {}, .attrs = {}};
  for (const auto& [term, slot] : terms) {
    const Type& type = b.program().slot(slot).type;
    sum.in.push_back(term ? term : b.fill(type.shape, 0, type.dtype));
    sum.writes.push_back(slot);
  }
  sum.attrs = make_attrs(Op::rank_sums, {{"adds", false}, {"axis", std::string(name_of(axis))}});
  b.graph().nodes.push_back(std::move(sum));
}

void share_loss(Builder& b) {
  const Program& program = b.program();
  if (program.mesh.stage == 1 || program.step.loss_sum < 0) return;
  const bool is_last = static_cast<bool>(program.loss_sum);
  const auto own = [&](SlotId slot) { return is_last ? b.load(slot) : Value{}; };
  const Value sum = own(program.step.loss_sum), count = own(program.step.loss_count);
  sum_along(b, MeshAxis::stage, {{sum, program.step.loss_sum}, {count, program.step.loss_count}});
}

}  // namespace st
