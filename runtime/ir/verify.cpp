#include "ir/verify.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/error.h"
#include "ir/cuts.h"
#include "ir/optimizer_state.h"
#include "ir/piece_update.h"
#include "ir/print.h"
#include "ir/rules.h"

namespace st {
namespace {

/// A node that uses a slot.
struct Use {
  const Section* section;
  int32_t node;

  const Node& get() const { return section->graph[node]; }

  // Within a micro-batch. The schedule decides which stage of a phase runs first; the plan's prover checks it.
  bool may_precede(const Use& other) const {
    if (section == other.section) return node < other.node;
    return section->phase <= other.section->phase;
  }
};

class Verifier {
 public:
  Verifier(const Program& program, std::string_view after) : program_(program), after_(after) {}

  void run() {
    check_ids();
    check_slots();
    check_regions();
    check_sections();
    for (const auto& section : program_.sections)
      for (int32_t i = 0; i < section.graph.size(); ++i) check_node(section, i);
    for (const auto& section : program_.sections) check_awaits(section);
    collect_uses();
    for (size_t i = 0; i < program_.slots.size(); ++i) check_uses(static_cast<SlotId>(i));
    check_outputs();
  }

  void check_ids() const {
    for (const auto& section : program_.sections)
      for (int32_t i = 0; i < section.graph.size(); ++i) {
        check_ids(section, i);
        if (!moves_slots(section.graph[i])) check_slot_counts(section, i);
      }
    for (const auto& slot : program_.slots)
      hold(slot.of == -1 || is_slot(slot.of), "slot \"", slot.name, "\" is of slot ", slot.of, ", which does not exist");
    for (const auto& output : program_.outputs) {
      if (output.value) output_type(text("output ", output.name), output.value);
      if (output.count) output_type(text("the count of output ", output.name), output.count);
    }
    if (program_.loss_sum) output_type("the loss", program_.loss_sum);
    if (program_.loss_count) output_type("the loss's count", program_.loss_count);
  }

 private:
  template <class... Parts>
  void hold(bool holds, const Parts&... parts) const {
    if (!holds) fail(Code::internal, text("after ", after_, ": ", parts...));
  }
  template <class... Parts>
  void hold_at(const Section& section, int32_t node, bool holds, const Parts&... parts) const {
    if (!holds)
      fail(Code::internal, text("after ", after_, ": ", name_of(section.phase), ": ", print(program_, section, node), ": ", parts...));
  }
  const Slot& slot(SlotId id) const { return program_.slot(id); }
  bool is_slot(SlotId id) const { return id >= 0 && static_cast<size_t>(id) < program_.slots.size(); }

  void check_slots() const {
    for (const auto& slot : program_.slots) {
      hold(!slot.name.empty(), "a ", name_of(slot.role), " slot has no name");
      const auto own = static_cast<SlotId>(&slot - program_.slots.data());
      const SlotId found = program_.slot_named(slot.name);
      hold(found < 0 || found == own, "two slots are named \"", slot.name, "\"");
      hold(found == own, "slot \"", slot.name, "\" is not found by its name; names change by Program::rename()");
      check_symbols(slot);
      const bool has_parameter = is_slot(slot.of) && this->slot(slot.of).role == Role::parameter;
      check_layout(slot);
      hold(has_parameter || (slot.of == -1 && slot.role != Role::gradient), "slot \"", slot.name, "\", a ", name_of(slot.role),
           ", does not name its parameter");
    }
  }

  /// A flat slot has the ranges of its parameter's gradient, so that a rank's shards of both are of the same elements.
  void check_layout(const Slot& slot) const {
    const AxisLayout& data = slot.type.layout[MeshAxis::data];
    const bool is_parameter = slot.role == Role::parameter;
    hold(is_parameter || (slot.sums == AxisLayout{} && slot.update == AxisLayout{}), "slot \"", slot.name, "\", a ", name_of(slot.role),
         ", has owners, which only a parameter has");
    hold(slot.update.kind == AxisLayout::Kind::replicated || slot.update == slot.sums, "parameter \"", slot.name, "\" is updated as ",
         text_of(slot.update), ", its gradient summed as ", text_of(slot.sums));
    const AxisLayout& stage = slot.type.layout[MeshAxis::stage];
    hold(!stage.is_flat() || (stage.where >= 0 && stage.where < program_.mesh.stage && stage.grain >= slot.type.shape.elements()),
         "slot \"", slot.name, "\" is ", slot.type, " on a mesh of ", program_.mesh.stage, " stages, of which one has it");
    if (!data.is_flat()) return;
    hold(data.grain > 0 && data.where >= 0 && data.where < program_.mesh.data, "slot \"", slot.name, "\" is ", slot.type, " on a mesh of ",
         program_.mesh.data, " data ranks");
    const SlotId parameter = is_parameter ? static_cast<SlotId>(&slot - program_.slots.data()) : slot.of;
    hold(is_slot(parameter) && is_cut(program_, parameter) && data.where == this->slot(parameter).sums.where, "slot \"", slot.name, "\", ",
         slot.type, ", is not cut as the gradient of its parameter");
    hold(slot.role == Role::optimizer || data == this->slot(parameter).sums, "slot \"", slot.name, "\", ", slot.type,
         ", is not cut as the gradient of \"", this->slot(parameter).name, "\", ", text_of(this->slot(parameter).sums));
  }

  void check_symbols(const Slot& slot) const {
    if (!slot.type.shape.is_symbolic()) return;
    hold(program_.batch == 0, "slot \"", slot.name, "\" is ", slot.type, " in a program bound to a batch of ", program_.batch);
    hold(slot.role == Role::input || slot.role == Role::stash, "slot \"", slot.name, "\" is ", slot.type, ", but a ", name_of(slot.role),
         " must not depend on the batch");
  }

  void check_regions() const {
    hold(!program_.regions.empty() && program_.regions[0].name.empty(), "region 0 is not the root");
    std::set<std::string_view> names;
    for (size_t i = 0; i < program_.regions.size(); ++i) {
      const auto& region = program_.regions[i];
      hold(names.insert(region.name).second, "two regions are named \"", region.name, "\"");
      hold(i == 0 || (region.parent >= 0 && static_cast<size_t>(region.parent) < i), "region \"", region.name, "\" has no earlier parent");
    }
  }

  void check_sections() const {
    std::set<std::tuple<Phase, int32_t, int32_t>> seen;
    for (const auto& section : program_.sections)
      hold(seen.insert({section.phase, section.stage, section.chunk}).second, "two sections are ", name_of(section.phase), " of stage ",
           section.stage, ", chunk ", section.chunk);
  }

  void check_ids(const Section& section, int32_t i) const {
    const Graph& graph = section.graph;
    const Node& node = graph[i];
    for (const Value in : node.in) {
      hold_at(section, i, in.node >= 0 && in.node < i, "input %", in.node, " does not come before it");
      hold_at(section, i, in.output >= 0 && static_cast<size_t>(in.output) < graph[in.node].out.size(), "input %", in.node,
              " has no output ", in.output);
    }
    hold_at(section, i, node.region >= 0 && static_cast<size_t>(node.region) < program_.regions.size(), "region ", node.region,
            " does not exist");
    for (const auto* slots : {&node.reads, &node.writes})
      for (const SlotId id : *slots) hold_at(section, i, is_slot(id), "slot ", id, " does not exist");
  }

  void check_node(const Section& section, int32_t i) const {
    const Node& node = section.graph[i];
    hold_at(section, i, section.phase != Phase::update || node.when == When::every, "an update runs once a step, not by micro-batch");
    if (moves_slots(node)) check_exchange(section, i);  // else check_ids() has counted its slots
    check_types(section, i);
  }

  static bool moves_slots(const Node& node) { return info_of(node.op).exchange && node.op != Op::await && !is_of_values(node.op); }
  static std::string_view host_name(const Node& node) { return node.op == Op::host ? node.attrs.word("name") : std::string_view(); }

  // The slots that an op may name: load reads one; store, accumulate, average and pack write one; an optimizer reads and writes its own;
  // other ops name none.
  void check_slot_counts(const Section& section, int32_t i) const {
    const Node& node = section.graph[i];
    const bool writes_one = node.op == Op::store || node.op == Op::accumulate || node.op == Op::average || node.op == Op::pack;
    if (updates_slots(node.op))
      return hold_at(section, i, !node.writes.empty() && node.reads == node.writes, "an optimizer must read and write the same slots");
    hold_at(section, i, node.reads.size() == (node.op == Op::load ? 1 : 0), "it reads ", node.reads.size(), " slots");
    hold_at(section, i, node.writes.size() == (writes_one ? 1 : 0), "it writes ", node.writes.size(), " slots");
  }

  // A collective with an await runs at the same time as the nodes between the two. The await has the same operands and so keeps them alive.
  // No node in between may read what the collective writes or write what it uses. Other collectives are queued after it, so they may.
  void check_awaits(const Section& section) const {
    std::set<int64_t> awaited;
    for (int32_t i = 0; i < section.graph.size(); ++i) {
      const Node& node = section.graph[i];
      if (node.op != Op::await) continue;
      const int64_t begun = node.attrs.integer("exchange");
      hold_at(section, i, begun >= 0 && begun < i, "collective %", begun, " does not come before it");
      const auto at = static_cast<int32_t>(begun);
      const Node& exchange = section.graph[at];
      const bool may_wait = moves_slots(exchange);
      hold_at(section, i, may_wait, "%", at, " is not a collective that may run beside others");
      hold_at(section, i, exchange.in == node.in && exchange.when == node.when, "its operands or micro-batches are not those of %", at);
      hold_at(section, i, awaited.insert(begun).second, "%", at, " is awaited twice");
      for (int32_t n = at + 1; n < i; ++n) check_beside(section, n, exchange);
    }
  }

  void check_beside(const Section& section, int32_t n, const Node& exchange) const {
    const Node& node = section.graph[n];
    if (is_view(node.op) || info_of(node.op).exchange) return;
    const auto is_in = [&](const std::vector<SlotId>& slots, SlotId id) { return std::ranges::find(slots, id) != slots.end(); };
    const auto slot_of = [&](Value v) { return section.graph.slot_behind(v); };
    for (const SlotId id : node.reads) hold_at(section, n, !is_in(exchange.writes, id), "it reads what a concurrent collective writes");
    for (const Value v : node.in) hold_at(section, n, !is_in(exchange.writes, slot_of(v)), "it reads what a concurrent collective writes");
    for (const SlotId id : node.writes) {
      const auto is_read = [&](Value v) { return slot_of(v) == id; };
      hold_at(section, n, !is_in(exchange.writes, id) && !is_in(exchange.reads, id) && std::ranges::none_of(exchange.in, is_read),
              "it writes what a concurrent collective uses");
    }
  }

  bool is_cut_slot(SlotId parameter) const { return is_slot(parameter) && is_cut(program_, parameter); }

  void check_squares(const Section& section, int32_t i) const {
    const Node& node = section.graph[i];
    int64_t all = 0, own = 0;
    for (const int64_t number : node.attrs.ints("parameters")) {
      const auto parameter = static_cast<SlotId>(number);
      hold_at(section, i, is_cut_slot(parameter), "slot ", number, " is not cut into shards");
      all += norm_blocks(slot(parameter).type.shape.elements());
      own += norm_blocks(shard_elements(program_, parameter, program_.rank));
    }
    hold_at(section, i, node.writes.size() == 1, "it writes ", node.writes.size(), " slots");
    const auto is_blocks = [](const Type& type, int64_t blocks) { return type.dtype == DType::f64 && type.shape == Shape{blocks}; };
    hold_at(section, i, is_blocks(section.graph.type(node.in[0]), own) && is_blocks(slot(node.writes[0]).type, all), "this rank has ", own,
            " blocks of ", all, ", the squares are ", section.graph.type(node.in[0]), ", the slot is ", slot(node.writes[0]).type);
  }

  /// A gathered slot is made from shards in other slots; the node reads this rank's shards in the order of the slots that it writes.
  void check_gather(const Section& section, int32_t i) const {
    const Node& node = section.graph[i];
    const bool over_all = axis_of(node) == MeshAxis::all;
    const auto has_part = [&](SlotId parameter) {
      return over_all ? held_by(program_, slot(parameter), program_.mesh_rank()).elements > 0 : has_shard(program_, parameter);
    };
    size_t read = 0;
    for (const SlotId id : node.writes) {
      const SlotId parameter = cut_like(program_, id);
      hold_at(section, i, over_all || is_cut_slot(parameter), "\"", slot(id).name, "\" is not cut into shards");
      hold_at(section, i, !slot(id).type.layout.is_flat(), "\"", slot(id).name, "\" has no place for the other ranks' shards");
      if (slot(id).role != Role::gathered || !has_part(parameter)) continue;
      const auto is_shard = [&](SlotId shard) {
        const Type &type = slot(shard).type, &whole = slot(id).type;
        const Shape& shape = over_all && slot(parameter).piece.is_cut() ? slot(parameter).piece.whole : type.shape;
        return cut_like(program_, shard) == parameter && (over_all || type.layout.is_flat()) && shape == whole.shape &&
               type.dtype == whole.dtype;
      };
      hold_at(section, i, read < node.reads.size() && is_shard(node.reads[read]), "it does not read its shard of \"", slot(id).name, "\"");
      ++read;
    }
    hold_at(section, i, read == node.reads.size(), "it reads ", node.reads.size(), " slots, this rank has ", read, " shards");
  }

  void check_exchange(const Section& section, int32_t i) const {
    const Node& node = section.graph[i];
    hold_at(section, i, node.reads.empty() || node.op == Op::all_gather, "it reads ", node.reads.size(), " slots");
    if (node.op == Op::send || node.op == Op::receive) {
      const int64_t other = node.attrs.integer("stage");
      hold_at(section, i, other >= 0 && other < program_.mesh.stage && other != program_.stage, "stage ", other, " is not another one of ",
              program_.mesh.stage);
      hold_at(section, i, node.in.size() + node.writes.size() == 1, "a message has one value, or one slot");
      hold_at(section, i, node.in.empty() || section.graph.slot_behind(node.in[0]) >= 0, "it sends what lies in no slot");
      return;
    }
    const bool is_over_all = node.op == Op::all_gather && axis_of(node) == MeshAxis::all;
    hold_at(section, i, node.op == Op::rank_sums || is_over_all || axis_of(node) == MeshAxis::data, "it runs along the ",
            name_of(axis_of(node)), " axis, the shards are those of the data ranks");
    if (node.op == Op::rank_sums) {
      hold_at(section, i, node.writes.size() == node.in.size(), "it writes ", node.writes.size(), " slots for ", node.in.size(), " terms");
      return;
    }
    if (node.op == Op::gather_squares) return check_squares(section, i);
    if (node.op == Op::all_gather) return check_gather(section, i);
    const Ints& parameters = node.attrs.ints("parameters");
    hold_at(section, i, parameters.size() == node.in.size(), "it has ", node.in.size(), " gradients for ", parameters.size(),
            " parameters");
    size_t part = 0;
    for (size_t k = 0; k < parameters.size(); ++k) {
      const auto parameter = static_cast<SlotId>(parameters[k]);
      hold_at(section, i, is_cut_slot(parameter), "slot ", parameter, " is not cut into shards");
      hold_at(section, i, section.graph.type(node.in[k]).dtype == section.graph.type(node.in[0]).dtype, "gradient ", k, " is ",
              section.graph.type(node.in[k]), ", the first one ", section.graph.type(node.in[0]));
      hold_at(section, i, section.graph.type(node.in[k]).shape == slot(parameter).type.shape, "gradient ", k, " is ",
              section.graph.type(node.in[k]), ", of \"", slot(parameter).name, "\", which is ", slot(parameter).type);
      if (!has_shard(program_, parameter)) continue;
      const DType sums = node.writes.empty() ? DType::f32 : slot(node.writes[0]).type.dtype;
      const auto is_shard = [&](const Slot& into) {
        return into.of == parameter && into.type.dtype == sums && (sums == DType::f32 || sums == section.graph.type(node.in[k]).dtype) &&
               (!into.type.layout.is_flat() || into.type.layout[MeshAxis::data] == slot(parameter).sums);
      };
      hold_at(section, i, part < node.writes.size() && is_shard(slot(node.writes[part])), "this rank's shard of \"", slot(parameter).name,
              "\" has no slot of f32 or of the gradient's type");
      ++part;
    }
    hold_at(section, i, part == node.writes.size(), "it writes ", node.writes.size(), " slots, this rank has ", part, " shards");
  }

  void check_types(const Section& section, int32_t i) const {
    const Node& node = section.graph[i];
    std::vector<Type> out;
    try {
      hold_at(section, i, are_whole(node.op, node.attrs) || make_attrs(node.op, node.attrs) == node.attrs,
              "its attributes are not those of the op's row, in the row's order");
      out = infer(program_, section.graph, node);
      if (updates_piece(node.op)) check_piece_update(program_, section.graph, node);
    } catch (const Error& error) {
      if (error.code() == Code::internal || error.code() == Code::callback) throw;
      hold_at(section, i, false, error.message());
    }
    require(node.op != Op::host || out == node.out, Code::callback, "host: the shape callback of \"", host_name(node),
            "\" returned different types for the same inputs; it must be a pure function");
    hold_at(section, i, out.size() == node.out.size(), "it has ", node.out.size(), " outputs, the rules give ", out.size());
    for (size_t o = 0; o < out.size(); ++o) hold_at(section, i, out[o] == node.out[o], "output ", o, " should be ", out[o]);
    if (info_of(node.op).shape_rule == "optimizer") check_optimizer(section, i);
    if (info_of(node.op).exchange && node.op != Op::rank_sums) return;
    for (size_t w = 0; w < node.writes.size(); ++w) {
      const SlotId id = node.writes[w];
      hold_at(section, i, (node.op == Op::pack) == (slot(id).role == Role::packed), "pack must write packed slots, and only pack may; \"",
              slot(id).name, "\" is a ", name_of(slot(id).role));
      if (node.op == Op::pack) continue;  // the layout is private to the backend
      if (updates_slots(node.op)) continue;
      Type value = section.graph.type(node.in[node.op == Op::rank_sums ? w : 0]);
      if (node.op == Op::rank_sums && value.layout[axis_of(node)].kind == AxisLayout::Kind::partial) value.layout[axis_of(node)] = {};
      const Type own = access_of(program_, section.graph, node, id).type;
      hold_at(section, i, value == own, "the value is ", value, ", slot \"", slot(id).name, "\" is ", own);
    }
  }

  void check_optimizer(const Section& section, int32_t i) const {
    const Node& node = section.graph[i];
    const Type &gradient = section.graph.type(node.in[0]), parameter = access_of(program_, section.graph, node, node.writes[0]).type;
    hold_at(section, i, gradient.shape == parameter.shape && gradient.layout == parameter.layout, "the gradient is ", gradient, ", slot \"",
            slot(node.writes[0]).name, "\" is ", parameter);
    const auto state = optimizer_state(node.op, node.attrs, parameter);
    const bool leaves_copy = node.writes.size() == 2 + state.size();
    hold_at(section, i, leaves_copy || node.writes.size() == 1 + state.size(), "it writes ", node.writes.size(), " slots, needs ",
            1 + state.size(), " for its parameter and state, and optionally a working copy");
    if (leaves_copy) {
      const Slot& copy = slot(node.writes.back());
      hold_at(section, i, is_working_copy(program_, node.writes.back(), node.writes[0]), "\"", copy.name, "\" is not a working copy of \"",
              slot(node.writes[0]).name, "\"");
    }
    for (size_t s = 0; s < state.size(); ++s) {
      const Type own = own_type(program_, slot(node.writes[s + 1]));
      hold_at(section, i,
              own.dtype == state[s].type.dtype && own.shape == state[s].type.shape && own.layout.is_flat() == parameter.layout.is_flat(),
              "slot \"", slot(node.writes[s + 1]).name, "\" is ", own, ", its ", state[s].name, " is ", state[s].type);
    }
  }

  // --- uses of slots over the sections

  struct Uses {
    std::vector<Use> reads, writes;
  };

  std::vector<const Section*> sections_in_order() const {
    std::vector<const Section*> order;
    for (const auto& section : program_.sections) order.push_back(&section);
    std::ranges::stable_sort(order, {}, &Section::phase);
    return order;
  }

  void collect_uses() {
    uses_.assign(program_.slots.size(), {});
    for (const Section* section : sections_in_order())
      for (int32_t i = 0; i < section->graph.size(); ++i) {
        const Node& node = section->graph[i];
        const Use place{.section = section, .node = i};
        for (const SlotId id : node.reads) uses_[static_cast<size_t>(id)].reads.push_back(place);
        for (const SlotId id : node.writes) uses_[static_cast<size_t>(id)].writes.push_back(place);
      }
  }

  void check_uses(SlotId id) const {
    const Uses& uses = uses_[static_cast<size_t>(id)];
    const Slot& it = slot(id);
    const bool lives_over_steps = it.role == Role::parameter || it.role == Role::optimizer;
    for (const auto& write : uses.writes) {
      hold_at(*write.section, write.node, !lives_over_steps || write.section->phase == Phase::update, "only update sections write \"",
              it.name, "\", a ", name_of(it.role));
      hold_at(*write.section, write.node, it.role != Role::input && it.role != Role::control, "\"", it.name, "\" is a ", name_of(it.role),
              ", which the host writes");
    }
    for (const auto& read : uses.reads)
      hold_at(*read.section, read.node, read.section->phase != Phase::update || (it.role != Role::stash && it.role != Role::input), "\"",
              it.name, "\" is a ", name_of(it.role), ", which lives in a micro-batch, not in the update");
    if (it.role == Role::stash) check_stash(it, uses);
    if (it.role == Role::gathered) check_gathered(it, uses);
    if (it.role == Role::gradient && !it.borrowed) check_gradient(it, uses);  // the host writes a borrowed one
    if ((it.role == Role::packed || it.role == Role::working) && !it.borrowed) check_made_first(it, uses);
  }

  void check_stash(const Slot& it, const Uses& uses) const {
    for (size_t i = 0; i < uses.writes.size(); ++i)
      hold_at(*uses.writes[i].section, uses.writes[i].node,
              i == 0 && (uses.writes[i].get().op == Op::store || uses.writes[i].get().op == Op::receive), "stash \"", it.name,
              "\" must be stored once");
    check_written_first(it, uses);
  }

  /// Other sections use the same memory for something else.
  void check_gathered(const Slot& it, const Uses& uses) const {
    for (size_t i = 0; i < uses.writes.size(); ++i)
      hold_at(*uses.writes[i].section, uses.writes[i].node, i == 0 && uses.writes[i].get().op == Op::all_gather, "\"", it.name,
              "\" must be gathered once");
    check_written_first(it, uses);
    for (const auto& read : uses.reads)
      hold_at(*read.section, read.node, read.section == uses.writes[0].section, "\"", it.name, "\" was gathered in another section");
  }

  void check_gradient(const Slot& it, const Uses& uses) const {
    if (!uses.writes.empty()) {
      const Use& first = uses.writes[0];
      const Node& node = first.get();
      hold_at(*first.section, first.node,
              node.op == Op::all_gather ||
                  ((node.op == Op::store || info_of(node.op).exchange) && (node.when == When::every || node.when == When::first)),
              "the first write of \"", it.name,
              "\" must be a store in the first micro-batch, or it would add to the previous step's gradient");
    }
    check_written_first(it, uses);
  }

  void check_made_first(const Slot& it, const Uses& uses) const {
    for (const auto& write : uses.writes)
      hold_at(*write.section, write.node, write.get().when == When::every || write.get().when == When::first, "\"", it.name,
              "\" must be written in the first micro-batch");
    check_written_first(it, uses);
  }

  void check_written_first(const Slot& it, const Uses& uses) const {
    for (const auto& read : uses.reads)
      hold_at(*read.section, read.node, !uses.writes.empty() && uses.writes[0].may_precede(read), "\"", it.name,
              "\" is loaded before it is stored");
  }

  // --- outputs and the loss

  const Type& output_type(std::string_view what, Value value) const {
    const Section* section = program_.last_forward();
    hold(section != nullptr, what, " is set, but there is no forward section");
    hold(value.node >= 0 && value.node < section->graph.size(), what, " is %", value.node,
         ", which the last forward section does not have");
    const auto outputs = section->graph[value.node].out.size();
    hold(value.output >= 0 && static_cast<size_t>(value.output) < outputs, what, " is output ", value.output, " of %", value.node,
         ", which has ", outputs);
    return section->graph.type(value);
  }

  void check_outputs() const {
    std::set<std::string_view> names;
    for (const auto& output : program_.outputs) {
      hold(!output.name.empty() && names.insert(output.name).second, "two outputs are named \"", output.name, "\", or one has no name");
      output_type(text("output ", output.name), output.value);
      if (output.count) check_loss(text("the count of output ", output.name), output.count);
    }
    hold(program_.loss_sum || !program_.loss_count, "the loss has a count but no sum");
    if (program_.loss_sum) check_loss("the loss", program_.loss_sum);
    if (program_.loss_count) check_loss("the loss's count", program_.loss_count);
  }

  void check_loss(std::string_view what, Value value) const {
    const Type& type = output_type(what, value);
    hold(type.shape.rank() == 0 && is_floating(type.dtype), what, " must be a floating scalar, it is ", type);
  }

  const Program& program_;
  std::string_view after_;
  std::vector<Uses> uses_;
};

}  // namespace

void verify(const Program& program, std::string_view after) { Verifier(program, after).run(); }

void verify_ids(const Program& program, std::string_view after) { Verifier(program, after).check_ids(); }

}  // namespace st
