#include "exec/planned_calls.h"

#include <map>

#include "ir/cuts.h"

namespace st {

PlannedCalls::PlannedCalls(const Plan& plan, Storage& storage, Workers& workers)
    : plan_(plan), storage_(storage), workers_(workers), places_(plan) {
  allocate();
  make_room();
  const Program& program = plan.program;
  for (size_t s = 0; s < program.slots.size(); ++s)
    slots_.push_back({address(plan.memory.slots[s]), program.slots[s].type.dtype, own_type(program, program.slots[s]).shape});
  bound_.resize(program.slots.size());
  std::map<std::array<int32_t, 3>, const Call*> calls;  // by section, node and places of its operands
  for (const Instruction& at : plan.instructions) {
    if (at.is_copy()) {
      by_instruction_.push_back(nullptr);
      continue;
    }
    const Call*& call = calls[{at.section, at.node, places_of(at)}];
    if (call == nullptr) call = make_call(at);
    by_instruction_.push_back(call);
  }
}

void PlannedCalls::allocate() {
  for (int32_t a = 0; a < kArenas; ++a) {
    const auto arena = static_cast<Arena>(a);
    const int64_t bytes = plan_.memory.of(arena);
    if (bytes == 0) continue;
    if (Storage::holds(arena))
      storage_.arena(arena, bytes, plan_.memory.on_host[static_cast<size_t>(a)]);
    else
      own_[static_cast<size_t>(a)] = storage_.backend().allocate(bytes, role_of(arena));
  }
}

/// For all calls and their operands, which are referred to.
void PlannedCalls::make_room() {
  size_t operands = 0, nodes = 0;
  for (size_t s = 0; s < plan_.program.sections.size(); ++s) {
    const Graph& graph = plan_.program.sections[s].graph;
    for (int32_t n = 0; n < graph.size(); ++n) {
      const auto calls = static_cast<size_t>(places_.count(static_cast<int32_t>(s), n));
      const Node& node = graph[n];
      nodes += calls;
      operands += (node.in.size() + node.out.size() + node.reads.size() + node.writes.size()) * calls;
    }
  }
  operands_.reserve(operands);
  calls_.reserve(nodes);
  by_instruction_.reserve(plan_.instructions.size());
}

Address PlannedCalls::address(const Place& place) const {
  if (place.arena == Arena::host) return {};
  const auto& own = own_[static_cast<size_t>(place.arena)];
  const Address base = own ? own->data() : storage_.data(place.arena);
  return base ? base + place.offset : base;
}

/// A value that the instruction reads or makes.
Operand PlannedCalls::operand(const Instruction& at, Value v) const {
  const auto s = static_cast<size_t>(at.section);
  const Type& type = plan_.program.sections[s].graph.type(v);
  const Place& place = plan_.memory.values[s][static_cast<size_t>(v.node)][static_cast<size_t>(v.output)];
  return {address(plan_.memory.where_computed(at.section, at.node, plan_.memory.of_micro_batch(place, at.micro_batch))), type.dtype,
          type.shape};
}

const Call* PlannedCalls::make_call(const Instruction& at) {
  const Program& program = plan_.program;
  const Graph& graph = program.sections[static_cast<size_t>(at.section)].graph;
  const Node& node = graph[at.node];
  Call& call = calls_.emplace_back();
  const auto extend = [&](const auto& list, const auto& make) {
    const size_t begin = operands_.size();
    for (const auto& item : list) operands_.push_back(make(item));
    return std::span<const Operand>(operands_.data() + begin, list.size());
  };
  const auto expect_binding = [&](const Node& by, SlotId slot, const Operand& operand) {
    if (plan_.memory.slots[static_cast<size_t>(slot)].arena == Arena::host)
      bound_[static_cast<size_t>(slot)].push_back(
          {const_cast<Operand*>(&operand), access_of(program, graph, by, slot).first * bytes_of(operand.dtype)});
  };
  call.in = extend(node.in, [&](Value v) { return operand(at, v); });
  for (size_t i = 0; i < node.in.size(); ++i)
    if (const Node* const load = graph.load_behind(node.in[i])) expect_binding(*load, load->reads[0], call.in[i]);
  std::vector<Value> outputs;
  for (int32_t i = 0; i < static_cast<int32_t>(node.out.size()); ++i) outputs.push_back({at.node, i});
  call.out = extend(outputs, [&](Value v) { return operand(at, v); });
  const auto accessed = [&](SlotId slot) {
    const Access access = access_of(program, graph, node, slot);
    const DType dtype = program.slot(slot).type.dtype;
    Place place = plan_.memory.of_micro_batch(plan_.memory.slots[static_cast<size_t>(slot)], at.micro_batch);
    if (place.arena != Arena::host) place.offset += access.first * bytes_of(dtype);
    return Operand{address(plan_.memory.where_computed(at.section, at.node, place)), dtype, access.type.shape};
  };
  call.reads = extend(node.reads, accessed);
  call.writes = extend(node.writes, accessed);
  for (size_t i = 0; i < node.reads.size(); ++i) expect_binding(node, node.reads[i], call.reads[i]);
  for (size_t i = 0; i < node.writes.size(); ++i) expect_binding(node, node.writes[i], call.writes[i]);
  call.attrs = &node.attrs;
  call.workers = &workers_;
  if (const auto& workspace = own_[static_cast<size_t>(Arena::workspace)]) {
    call.workspace = workspace->data();
    call.workspace_bytes = workspace->size();
  }
  return &call;
}

void PlannedCalls::bind(SlotId slot, Address data) {
  for (const Bound& bound : bound_[static_cast<size_t>(slot)]) bound.operand->data = data ? data + bound.offset : data;
  slots_[static_cast<size_t>(slot)].data = data;
}

int64_t PlannedCalls::allocated(Arena arena) const {
  if (const auto& own = own_[static_cast<size_t>(arena)]) return own->size();
  return Storage::holds(arena) && storage_.data(arena) ? plan_.memory.of(arena) : 0;
}

}  // namespace st
