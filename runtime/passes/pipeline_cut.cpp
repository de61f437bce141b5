#include "passes/pipeline_cut.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "ir/build.h"
#include "ir/cuts.h"
#include "passes/copied_weights.h"
#include "passes/part_uses.h"
#include "passes/product_weights.h"
#include "passes/remove_slots.h"
#include "passes/rewrite.h"
#include "passes/section_copy.h"

namespace st {
namespace {

class Cut {
 public:
  Cut(Program& program, const PipelineParts& parts) : program_(program), parts_(parts), uses_(program, parts), slot_of_(uses_.slot_of) {}

  void run() {
    program_.part_starts = starts_of(program_, uses_.part_of_forward);
    program_.weights_of_model = weights_of_products(program_);
    program_.copied_of_model = copied_weights(program_);
    find_links();
    give_slots();
    make_sections();
    remove_unused();
  }

 private:
  using Carries = StageLink::Carries;

  Role role(SlotId slot) const { return program_.slot(slot).role; }

  // --- who sends what to whom

  /// The part on a stage that takes what several parts there read: the first one that runs.
  int32_t taker(const std::set<int32_t>& parts, int32_t stage, bool is_forward) const {
    int32_t found = -1;
    for (const int32_t part : parts)
      if (uses_.stage_of(part) == stage && (found < 0 || !is_forward)) found = part;
    return found;
  }

  template <class Send>
  void each_message(const std::map<Value, std::set<int32_t>>& readers, bool is_forward, const Send& send) const {
    for (const auto& [v, parts] : readers) {
      const int32_t from = is_forward ? uses_.part_of(v.node) : uses_.part_b(v);
      for (int32_t stage = 0; stage < program_.mesh.stage; ++stage)
        if (const int32_t to = taker(parts, stage, is_forward); to >= 0 && stage != uses_.stage_of(from))
          send(v, link_of(from, to, is_forward));
    }
  }
  StageLink link_of(int32_t from, int32_t to, bool is_forward) const {
    return {.carries = is_forward ? Carries::activations : Carries::gradients,
            .from = uses_.stage_of(from),
            .to = uses_.stage_of(to),
            .from_part = from,
            .to_part = to};
  }

  void find_links() {
    std::set<StageLink> links;
    for (const bool is_forward : {true, false})
      each_message(is_forward ? uses_.readers_in_forward : uses_.readers_in_backward, is_forward,
                   [&](Value, const StageLink& link) { links.insert(link); });
    for (const auto& [slot, stages] : uses_.users)
      for (const int32_t stage : stages)
        if (const int32_t owner = uses_.owner.at(parameter_of(slot)); stage != owner)
          links.insert({.carries = Carries::weights, .from = owner, .to = stage});
    for (const auto& [gradient, stage] : uses_.stage_of_gradient)
      if (const int32_t owner = uses_.owner.at(program_.slot(gradient).of); stage != owner)
        links.insert({.carries = Carries::uses, .from = stage, .to = owner});
    program_.links.assign(links.begin(), links.end());
  }

  int64_t number_of(const StageLink& link) const { return std::ranges::find(program_.links, link) - program_.links.begin(); }
  SlotId parameter_of(SlotId slot) const { return role(slot) == Role::parameter ? slot : program_.slot(slot).of; }

  // --- slots

  void give_slots() {
    const auto count = static_cast<SlotId>(program_.slots.size());
    for (SlotId s = 0; s < count; ++s) {
      if (role(s) == Role::parameter) give_to_stage(program_.slot(s), uses_.owner.contains(s) ? uses_.owner.at(s) : 0);
      if (const auto found = uses_.stage_of_gradient.find(s); found != uses_.stage_of_gradient.end())
        give_to_stage(program_.slot(s), found->second);
    }
  }

  SlotId add_stash(const std::string& name, Type type) {
    type.layout = type.layout.only(MeshAxis::tensor);
    return program_.add_slot({.name = free_name(program_, name), .type = type, .role = Role::stash, .init = {}});
  }

  SlotId slot_f(Value v) {
    const auto [found, is_new] = slot_of_.emplace(v, -1);
    if (is_new) found->second = add_stash(text("part.", v.node, ".", v.output), uses_.forward.type(v));
    return found->second;
  }
  SlotId slot_b(Value v) {
    const auto [found, is_new] = carried_.emplace(v, -1);
    if (is_new) found->second = add_stash(text("gradient of part.", v.node, ".", v.output), uses_.backward.type(v));
    return found->second;
  }
  SlotId slot_of_input(SlotId input) {
    const auto [found, is_new] = inputs_.emplace(input, -1);
    if (is_new) found->second = add_stash(text("input.", program_.slot(input).name), program_.slot(input).type);
    return found->second;
  }
  /// The slot that a stage reads in place of a parameter, or of its working copy, that another stage owns.
  SlotId copy_of(SlotId slot) {
    if (role(slot) == Role::working) return slot;
    const auto [found, is_new] = copies_.emplace(slot, -1);
    if (is_new) {
      Type type = program_.slot(slot).type;
      type.layout = type.layout.only(MeshAxis::tensor);
      found->second = program_.add_slot({.name = free_name(program_, text("copy.", program_.slot(slot).name)),
                                         .type = type,
                                         .role = Role::working,
                                         .init = {},
                                         .of = slot});
    }
    return found->second;
  }

  // --- this stage's sections

  void make_sections() {
    std::vector<Section> made;
    const std::vector<int32_t> own = uses_.own_parts();
    const Value loss_sum = std::exchange(program_.loss_sum, {}), loss_count = std::exchange(program_.loss_count, {});
    std::vector<Output> outputs = std::exchange(program_.outputs, {});
    for (const int32_t part : own) {
      Section& section =
          made.emplace_back(Section{.graph = {}, .phase = Phase::forward, .stage = uses_.own, .chunk = uses_.chunk_of(part)});
      SectionCopy copy = copy_into(section, uses_.forward);
      if (part == own[0]) begin_step(section.graph);
      receive(uses_.readers_in_forward, true, part, section.graph);
      for (int32_t n = 0; n < uses_.forward.size(); ++n)
        if (uses_.part_of(n) == part && !uses_.is_left_out(uses_.forward, n)) {
          copy.copy(n);
          hand_on_forward(n, section.graph, copy);
        }
      if (part + 1 < uses_.count) continue;
      if (loss_sum) program_.loss_sum = copy.at(loss_sum);
      if (loss_count) program_.loss_count = copy.at(loss_count);
      for (Output& output : outputs) keep(std::move(output), copy);
    }
    for (const int32_t part : std::vector<int32_t>(own.rbegin(), own.rend())) {
      Section& section =
          made.emplace_back(Section{.graph = {}, .phase = Phase::backward, .stage = uses_.own, .chunk = uses_.chunk_of(part)});
      SectionCopy copy = copy_into(section, uses_.backward);
      receive(uses_.readers_in_backward, false, part, section.graph);
      for (int32_t n = 0; n < uses_.backward.size(); ++n)
        if (uses_.part_of_backward[static_cast<size_t>(n)] == part && !uses_.is_left_out(uses_.backward, n)) {
          copy.copy(n);
          hand_on_backward(n, section.graph, copy);
        }
    }
    program_.sections = std::move(made);
  }

  /// An output of the last part; nobody reads those of others in a step.
  void keep(Output output, SectionCopy& copy) {
    const auto is_there = [&](Value v) {
      const Value from = uses_.behind(uses_.forward, v);
      return !is_made_anywhere(uses_.forward[from.node]) && uses_.part_of(from.node) == uses_.count - 1;
    };
    if (!is_there(output.value) || (output.count && !is_there(output.count))) return;
    output.value = copy.at(output.value);
    if (output.count) output.count = copy.at(output.count);
    program_.outputs.push_back(std::move(output));
  }

  SectionCopy copy_into(Section& section, const Graph& from) {
    Graph& to = section.graph;
    const bool is_first = section.phase == Phase::forward && section.chunk == 0;
    return SectionCopy(
        from, to,
        [this, &from, &to](Value v) {
          const Node& source = from[v.node];
          return append(to, load_of(program_, &from == &uses_.forward ? slot_f(v) : slot_b(v), source.region));
        },
        [this, &to, is_first](Node load) {
          const SlotId slot = load.reads[0];
          const RegionId region = load.region;
          if (const auto late = uses_.given_late.find(slot); late != uses_.given_late.end())
            return append(to, load_of(program_, slot_b(late->second), region));
          if (role(slot) == Role::input && !is_first) return append(to, load_of(program_, slot_of_input(slot), region));
          if (is_weight(slot)) {
            if (uses_.owner.at(parameter_of(slot)) != uses_.own) return append(to, load_of(program_, copy_of(slot), region));
            make_copy(slot, to);
            return append(to, load_of(program_, slot, region));
          }
          if (const auto found = uses_.value_in.find(slot); found != uses_.value_in.end())
            return stashed(found->second, load.out[0], region, to);
          return append(to, std::move(load));
        });
  }
  /// A value of forward in backward, as `type`.
  Value stashed(Value v, const Type& type, RegionId region, Graph& to) {
    const Value here = append(to, load_of(program_, slot_f(v), region));
    if (to.type(here) == type) return here;
    return append(
        to, {.op = Op::reshape, .in = {here}, .out = {type}, .reads = {}, .writes = {}, .attrs = reshape_attrs(type), .region = region});
  }
  bool is_weight(SlotId slot) const { return role(slot) == Role::parameter || role(slot) == Role::working; }

  static Value append(Graph& graph, Node node) {
    graph.nodes.push_back(std::move(node));
    return {graph.size() - 1, 0};
  }

  /// The working copy of a parameter of this stage, once.
  void make_copy(SlotId slot, Graph& to) {
    const auto maker = uses_.makers.find(slot);
    if (maker == uses_.makers.end() || !made_.insert(slot).second) return;
    Node store = uses_.forward[maker->second], cast = uses_.forward[store.in[0].node];
    const Node& load = uses_.forward[cast.in[0].node];
    cast.in = {append(to, load_of(program_, load.reads[0], load.region))};
    store.in = {append(to, std::move(cast))};
    append(to, std::move(store));
  }

  /// The first section takes and sends weights, and keeps the inputs that later sections read.
  void begin_step(Graph& to) {
    for (const auto& [slot, stages] : uses_.users)
      if (const int32_t owner = uses_.owner.at(parameter_of(slot)); owner != uses_.own && stages.contains(uses_.own))
        append(to, receive_of(copy_of(slot), {.carries = Carries::weights, .from = owner, .to = uses_.own}, parts_.copies));
    for (const auto& [slot, stages] : uses_.users)
      for (const int32_t stage : stages)
        if (uses_.owner.at(parameter_of(slot)) == uses_.own && stage != uses_.own) {
          make_copy(slot, to);
          send(to, slot, {.carries = Carries::weights, .from = uses_.own, .to = stage}, parts_.copies);
        }
    for (const SlotId input : uses_.late_inputs) {
      const Value value = append(to, load_of(program_, input, 0));
      append(to, store_of(value, slot_of_input(input), 0));
    }
  }

  Node receive_of(SlotId slot, const StageLink& link, When when = When::every) const {
    return {.op = Op::receive,
            .in = {},
            .out = {},
            .reads = {},
            .writes = {slot},
            .attrs = make_attrs(Op::receive, {{"link", number_of(link)}, {"stage", int64_t{link.from}}}),
            .when = when};
  }

  void send(Graph& to, SlotId slot, const StageLink& link, When when = When::every) {
    const Value value = append(to, load_of(program_, slot, 0));
    append(to, {.op = Op::send,
                .in = {value},
                .out = {},
                .reads = {},
                .writes = {},
                .attrs = make_attrs(Op::send, {{"link", number_of(link)}, {"stage", int64_t{link.to}}}),
                .when = when});
  }

  void receive(const std::map<Value, std::set<int32_t>>& readers, bool is_forward, int32_t part, Graph& to) {
    each_message(readers, is_forward, [&](Value v, const StageLink& link) {
      if (link.to_part == part) append(to, receive_of(is_forward ? slot_f(v) : slot_b(v), link));
    });
  }

  /// Stores what others read of a node, and sends it. A gradient that is sent lies by itself: it may leave later than its micro-batch.
  void hand_on(SlotId slot, Value here, const std::set<int32_t>& parts, int32_t from, bool is_forward, Graph& to) {
    const bool is_read_here = is_forward || std::ranges::any_of(parts, [this](int32_t part) { return uses_.is_own(part); });
    if (is_read_here) append(to, store_of(here, slot, 0));
    SlotId sent = is_forward ? slot : -1;
    for (int32_t stage = 0; stage < program_.mesh.stage; ++stage) {
      const int32_t reader = taker(parts, stage, is_forward);
      if (reader < 0 || stage == uses_.own) continue;
      if (sent < 0) {
        sent = is_read_here ? add_stash(text("sent.", program_.slot(slot).name), program_.slot(slot).type) : slot;
        append(to, store_of(here, sent, 0));
      }
      send(to, sent, link_of(from, reader, is_forward));
    }
  }

  void hand_on_forward(int32_t n, Graph& to, SectionCopy& copy) {
    for (int32_t i = 0; i < static_cast<int32_t>(uses_.forward[n].out.size()); ++i) {
      const Value v{n, i};
      const auto readers = uses_.readers_in_forward.find(v);
      const auto recalled = uses_.recalled_by.find(v);
      const bool is_recalled =
          recalled != uses_.recalled_by.end() && std::ranges::any_of(recalled->second, [&](int32_t p) { return uses_.is_own(p); });
      if (readers == uses_.readers_in_forward.end() && !is_recalled) continue;
      hand_on(slot_f(v), copy.at(v), readers == uses_.readers_in_forward.end() ? std::set<int32_t>() : readers->second, uses_.part_of(n),
              true, to);
    }
  }

  void hand_on_backward(int32_t n, Graph& to, SectionCopy& copy) {
    for (int32_t i = 0; i < static_cast<int32_t>(uses_.backward[n].out.size()); ++i)
      if (const auto readers = uses_.readers_in_backward.find({n, i}); readers != uses_.readers_in_backward.end())
        hand_on(slot_b({n, i}), copy.at({n, i}), readers->second, uses_.part_b({n, i}), false, to);
  }

  void remove_unused() {
    std::vector<bool> is_used(program_.slots.size());
    for (const Section& section : program_.sections)
      for (const Node& node : section.graph.nodes)
        for (const auto* slots : {&node.reads, &node.writes})
          for (const SlotId slot : *slots) is_used[static_cast<size_t>(slot)] = true;
    remove_slots(program_, [&](SlotId slot) {
      return !is_used[static_cast<size_t>(slot)] &&
             (role(slot) == Role::stash || role(slot) == Role::working || role(slot) == Role::output);
    });
  }

  Program& program_;
  const PipelineParts& parts_;
  const PartUses uses_;
  std::map<Value, SlotId> slot_of_, carried_;  // by value of forward and of backward: where other sections find it
  std::set<SlotId> made_;                      // working copies that this stage has made
  std::map<SlotId, SlotId> inputs_, copies_;   // by input, by parameter: what holds it here
};

}  // namespace

void pipeline_cut(Program& program, const PipelineParts& parts) { Cut(program, parts).run(); }

}  // namespace st
