#include "ir/program.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/error.h"
#include "ir/rules.h"

namespace st {

std::string_view name_of(Role role) {
  constexpr std::array<std::string_view, 11> kNames = {"parameter", "gradient", "optimizer", "stash",   "input",   "control",
                                                       "report",    "output",   "packed",    "working", "gathered"};
  return kNames[static_cast<size_t>(role)];
}

std::string_view name_of(Phase phase) {
  constexpr std::array<std::string_view, 5> kNames = {"forward", "backward", "backward_input", "backward_weight", "update"};
  return kNames[static_cast<size_t>(phase)];
}

const Section* Program::find(Phase phase) const {
  const Section* found = nullptr;
  for (const Section& section : sections) {
    if (section.phase != phase) continue;
    require(found == nullptr, Code::internal, "program: it has several ", name_of(phase), " sections, of stage ", found ? found->stage : 0,
            ", chunk ", found ? found->chunk : 0, " and of stage ", section.stage, ", chunk ", section.chunk, "; say which one");
    found = &section;
  }
  return found;
}

const Section* Program::find(Phase phase, int32_t of_stage, int32_t chunk) const {
  for (const auto& section : sections)
    if (section.phase == phase && section.stage == of_stage && section.chunk == chunk) return &section;
  return nullptr;
}

const Section* Program::last_forward() const {
  const Section* last = nullptr;
  for (const Section& section : sections)
    if (section.phase == Phase::forward && (last == nullptr || std::tie(section.chunk, section.stage) > std::tie(last->chunk, last->stage)))
      last = &section;
  return last;
}

SlotId Program::parameter_of(const Node& load) const {
  if (load.op != Op::load) return -1;
  const SlotId id = load.reads[0];
  const Slot& loaded = slot(id);
  if (loaded.role == Role::parameter) return id;
  return loaded.role == Role::working || loaded.role == Role::gathered ? loaded.of : -1;
}

bool is_working_copy(const Program& program, SlotId copy, SlotId parameter) {
  const Slot& of_copy = program.slot(copy);
  return of_copy.role == Role::working && of_copy.of == parameter && of_copy.type.shape == program.slot(parameter).type.shape;
}

SlotId SlotNames::find(const std::vector<Slot>& slots, std::string_view name) const {
  if (known_ != slots.size()) {
    const auto found = std::ranges::find(slots, name, &Slot::name);
    return found == slots.end() ? -1 : static_cast<SlotId>(found - slots.begin());
  }
  if (table_.empty()) return -1;
  for (size_t at = place_of(name);; at = (at + 1) & (table_.size() - 1)) {
    const SlotId slot = table_[at];
    if (slot < 0 || slots[static_cast<size_t>(slot)].name == name) return slot;
  }
}

void SlotNames::add(const std::vector<Slot>& slots, SlotId slot) {
  const bool is_last = known_ + 1 == slots.size() && static_cast<size_t>(slot) == known_, is_renamed = known_ == slots.size();
  if ((!is_last && !is_renamed) || 2 * (entries_ + 1) > table_.size()) return read_again(slots);
  insert(slots, slot);
  known_ = slots.size();
}

void SlotNames::read_again(const std::vector<Slot>& slots) {
  size_t size = 64;
  while (size < 4 * slots.size()) size *= 2;
  table_.assign(size, -1);
  entries_ = 0;
  for (size_t s = 0; s < slots.size(); ++s) insert(slots, static_cast<SlotId>(s));
  known_ = slots.size();
}

void SlotNames::insert(const std::vector<Slot>& slots, SlotId slot) {
  size_t at = place_of(slots[static_cast<size_t>(slot)].name);
  while (table_[at] >= 0) at = (at + 1) & (table_.size() - 1);
  table_[at] = slot;
  ++entries_;
}

SlotId Program::add_slot(Slot slot) {
  check(!slot.name.empty(), "slot: a ", name_of(slot.role), " needs a name");
  check(slot_named(slot.name) < 0, "slot: the name \"", slot.name, "\" is taken; names must be unique in the program, choose another");
  slots.push_back(std::move(slot));
  const SlotId added = static_cast<SlotId>(slots.size()) - 1;
  try {
    names.add(slots, added);
  } catch (...) {
    slots.pop_back();
    throw;
  }
  return added;
}

void Program::rename(SlotId slot, std::string name) {
  this->slot(slot).name = std::move(name);
  names.add(slots, slot);
}

RegionId Program::boundary_of(RegionId region) const {
  while (region > 0 && !regions[static_cast<size_t>(region)].boundary) region = regions[static_cast<size_t>(region)].parent;
  return std::max(region, 0);
}

namespace {

// Binds the shape attribute of fill, reshape and broadcast_to, and the elements per sample of a dropout over the batch.
void bind_attrs(Node& node, const Graph& graph, int64_t batch) {
  const AttrValue* shape = node.attrs.find("shape");
  if (shape != nullptr) {
    const Shape bound = Shape(std::get<Ints>(*shape)).bind(batch);
    node.attrs.set("shape", Ints(bound.begin(), bound.end()));
  }
  if (node.op != Op::dropout) return;
  const Shape& x = graph.type(node.in[0]).shape;
  if (x.is_symbolic()) node.attrs.set("sample_elements", x.elements() < 0 ? -x.elements() : x.elements());
}

}  // namespace

Program bind(const Program& program, int64_t batch) {
  check(batch > 0, "bind: the batch must be positive, got ", batch);
  check(program.batch == 0 || program.batch == batch, "bind: the program is already bound to a batch of ", program.batch, ", got ", batch,
        "; bind the symbolic program");
  if (program.batch != 0) return program;
  Program bound = program;
  bound.batch = batch;
  for (auto& slot : bound.slots) slot.type.shape = slot.type.shape.bind(batch);
  for (size_t s = 0; s < bound.sections.size(); ++s) {
    Graph& graph = bound.sections[s].graph;
    for (auto& node : graph.nodes) {
      bind_attrs(node, program.sections[s].graph, batch);
      try {
        node.out = infer(bound, graph, node);
      } catch (const Error& error) {
        const auto& scope = bound.regions[static_cast<size_t>(node.region)].name;
        fail(error.code(), text(scope, scope.empty() ? "" : ": ", error.message(), " (with a batch of ", batch, ")"));
      }
    }
  }
  return bound;
}

}  // namespace st
