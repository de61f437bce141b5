#include "passes/gather_units.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/cuts.h"
#include "passes/rewrite.h"
#include "passes/section_copy.h"

namespace st {
namespace {

/// How a working copy is made of its parameter.
struct Maker {
  Node load, cast, store;
  bool has_run = false;
};

class Gathering {
 public:
  Gathering(Program& program, Section& section, MeshAxis over, std::vector<Maker>& makers)
      : program_(program),
        over_(over),
        rewrite_(program, section),
        phase_(section.phase),
        has_outputs_(&section == program.last_forward()),
        makers_(makers) {
    find_sources();
    find_makers();
    find_units();
  }

  void run() {
    for (int32_t n = 0; n < old().size(); ++n) {
      if (is_left_out_[static_cast<size_t>(n)]) continue;
      Node node = old()[n];
      for (Value& v : node.in) v = source_of(v) < 0 ? rewrite_.at(v) : whole(v, node.region);
      if (node.op == Op::send && node.in != old()[n].in && rewrite_.made().slot_behind(node.in[0]) >= 0) keep_until_sent(node);
      rewrite_.replace(n, std::move(node));
    }
    for (const Value v : kept_) rewrite_.map(v, whole(v, old()[v.node].region));
    rewrite_.finish();
  }

 private:
  struct Unit {
    RegionId scope;
    std::vector<SlotId> sources = {}, wholes = {};     // slots of pieces, and what they are gathered in
    std::vector<std::pair<Value, Value>> values = {};  // of the old graph, loads and their reshapes, and what stands for them here
  };

  const Graph& old() const { return rewrite_.old(); }
  const Slot& slot(SlotId id) const { return program_.slot(id); }
  bool is_in_pieces(const Slot& slot) const {
    if (slot.type.layout.is_flat()) return true;
    return over_ == MeshAxis::all && (slot.type.layout[MeshAxis::stage].is_flat() || slot.piece.is_cut());
  }
  bool has_piece(const Slot& slot) const {
    return over_ == MeshAxis::all ? held_by(program_, slot, program_.mesh_rank()).elements > 0
                                  : own_type(program_, slot).shape.elements() > 0;
  }
  SlotId source_of(Value v) const { return sources_[static_cast<size_t>(v.node)]; }

  /// By node, the slot of pieces that it loads, or that what it reshapes is loaded from; -1: none.
  void find_sources() {
    for (const Node& node : old().nodes) {
      SlotId source = -1;
      if (node.op == Op::reshape) source = source_of(node.in[0]);
      if (node.op == Op::load && is_in_pieces(slot(node.reads[0]))) source = node.reads[0];
      sources_.push_back(source);
      is_left_out_.push_back(source >= 0);  // each scope has its own
    }
  }

  void find_makers() {
    for (int32_t n = 0; n < old().size(); ++n) {
      const Node& store = old()[n];
      if (store.op != Op::store || slot(store.writes[0]).role != Role::working || !slot(store.writes[0]).type.layout.is_flat()) continue;
      const Node& cast = old()[store.in[0].node];
      makers_.push_back({old()[cast.in[0].node], cast, store});
      is_left_out_[static_cast<size_t>(n)] = is_left_out_[static_cast<size_t>(store.in[0].node)] = true;
    }
  }

  void find_units() {
    for (int32_t n = 0; n < old().size(); ++n)
      if (!is_left_out_[static_cast<size_t>(n)])
        for (const Value v : old()[n].in) add_use(v, old()[n].region);
    if (!has_outputs_) return;
    const auto keep = [&](Value v) {
      if (!v || source_of(v) < 0) return;
      add_use(v, old()[v.node].region);
      kept_.push_back(v);
    };
    for (const Output& output : program_.outputs) {
      keep(output.value);
      keep(output.count);
    }
    keep(program_.loss_sum);
    keep(program_.loss_count);
  }

  void add_use(Value v, RegionId region) {
    if (source_of(v) < 0) return;
    const size_t unit = unit_of(region);
    if (unit == units_.size()) units_.push_back({.scope = program_.boundary_of(region)});
    std::vector<SlotId>& sources = units_[unit].sources;
    if (std::ranges::find(sources, source_of(v)) == sources.end()) sources.push_back(source_of(v));
  }

  /// The unit of a region's boundary scope; units_.size(): none yet.
  size_t unit_of(RegionId region) const {
    return static_cast<size_t>(std::ranges::find(units_, program_.boundary_of(region), &Unit::scope) - units_.begin());
  }

  /// A parameter, or a reshape of it, as a node in a region has it.
  Value whole(Value v, RegionId region) {
    const size_t index = unit_of(region);
    while (gathered_ <= index + 1 && gathered_ < units_.size()) gather(units_[gathered_++]);
    Unit& unit = units_[index];
    for (const auto& [from, to] : unit.values)
      if (from == v) return to;
    Node node = old()[v.node];
    node.region = region;
    if (node.op == Op::load) {
      node.reads = {unit.wholes[static_cast<size_t>(std::ranges::find(unit.sources, source_of(v)) - unit.sources.begin())]};
      node.out = {slot(node.reads[0]).type};
    } else {
      node.in = {whole(node.in[0], region)};
    }
    unit.values.emplace_back(v, Value{rewrite_.append(std::move(node)), 0});
    return unit.values.back().second;
  }

  void gather(Unit& unit) {
    std::vector<SlotId> pieces;
    for (const SlotId source : unit.sources) {
      if (has_piece(slot(source))) {
        make(source);
        pieces.push_back(source);
      }
      const SlotId parameter = cut_like(program_, source);
      Type type = slot(source).type;
      type.layout = type.layout.only(MeshAxis::tensor);
      if (over_ == MeshAxis::all && slot(parameter).piece.is_cut()) type = {type.dtype, slot(parameter).piece.whole, {}};
      unit.wholes.push_back(
          program_.add_slot({.name = free_name(source), .type = type, .role = Role::gathered, .init = {}, .of = parameter}));
    }
    rewrite_.append({.op = Op::all_gather,
                     .in = {},
                     .out = {},
                     .reads = pieces,
                     .writes = unit.wholes,
                     .attrs = make_attrs(Op::all_gather, {{"axis", std::string(name_of(over_))}}),
                     .region = unit.scope});
  }

  /// A gathered weight makes room for the next unit; a weight that is sent lies in the stash.
  void keep_until_sent(Node& send) {
    const SlotId whole = rewrite_.made().slot_behind(send.in[0]);
    if (slot(whole).role != Role::gathered) return;
    const SlotId kept =
        program_.add_slot({.name = text("sent.", slot(whole).name), .type = slot(whole).type, .role = Role::stash, .init = {}});
    rewrite_.append(store_of(send.in[0], kept, send.region, send.when));
    send.in = {{rewrite_.append(load_of(program_, kept, send.region)), 0}};
  }

  /// Makes the working copy of a parameter's shard before it is gathered.
  void make(SlotId copy) {
    const auto found = std::ranges::find_if(makers_, [&](const Maker& of) { return of.store.writes[0] == copy; });
    if (found == makers_.end() || std::exchange(found->has_run, true)) return;
    Maker maker = *found;
    maker.load.out = {own_type(program_, slot(maker.load.reads[0]))};
    maker.cast.out = {own_type(program_, slot(copy))};
    maker.cast.in = {{rewrite_.append(std::move(maker.load)), 0}};
    maker.store.in = {{rewrite_.append(std::move(maker.cast)), 0}};
    rewrite_.append(std::move(maker.store));
  }

  std::string free_name(SlotId source) const { return st::free_name(program_, text("gathered.", name_of(phase_), ".", slot(source).name)); }

  Program& program_;
  const MeshAxis over_;
  Rewrite rewrite_;
  Phase phase_;
  const bool has_outputs_;
  std::vector<Maker>& makers_;
  std::vector<SlotId> sources_;    // by node
  std::vector<bool> is_left_out_;  // by node
  std::vector<Unit> units_;        // by first use
  size_t gathered_ = 0;            // units
  std::vector<Value> kept_;        // outputs and loss that are parameters
};

/// By slot, whether another stage sends it, whole.
std::vector<bool> received(const Program& program) {
  std::vector<bool> is_received(program.slots.size());
  for (const Section& section : program.sections)
    for (const Node& node : section.graph.nodes)
      if (node.op == Op::receive) is_received[static_cast<size_t>(node.writes[0])] = true;
  return is_received;
}

}  // namespace

void gather_units(Program& program, MeshAxis over) {
  const auto count = static_cast<SlotId>(program.slots.size());
  const std::vector<bool> is_received = received(program);
  for (SlotId s = 0; s < count; ++s) {
    const Slot& slot = program.slot(s);
    const SlotId parameter = slot.role == Role::working ? slot.of : s;
    if (is_received[static_cast<size_t>(s)]) continue;
    if ((slot.role == Role::parameter || slot.role == Role::working) && is_cut(program, parameter)) make_flat(program, s, parameter);
  }
  std::vector<Maker> makers;  // forward's are backward's too
  for (Section& section : program.sections)
    if (section.phase != Phase::update) Gathering(program, section, over, makers).run();
}

}  // namespace st
