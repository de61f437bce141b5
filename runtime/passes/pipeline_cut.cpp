#include "passes/pipeline_cut.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "ir/build.h"
#include "ir/cuts.h"
#include "passes/copied_weights.h"
#include "passes/product_weights.h"
#include "passes/remove_slots.h"
#include "passes/rewrite.h"
#include "passes/section_copy.h"

namespace st {
namespace {

class Cut {
 public:
  Cut(Program& program, const PipelineParts& parts)
      : program_(program),
        parts_(parts),
        count_(static_cast<int32_t>(parts.stage_of.size())),
        own_(program.stage),
        part_of_forward_(parts_of_forward(program, count_, parts.starts, scopes_of(parts.like))),
        forward_(program.find(Phase::forward)->graph),
        backward_(program.find(Phase::backward)->graph) {}

  void run() {
    program_.part_starts = starts_of(program_, part_of_forward_);
    program_.weights_of_model = weights_of_products(program_);
    program_.copied_of_model = copied_weights(program_);
    find_stashed();
    find_given_late();
    find_makers();
    find_parts_of_backward();
    find_readers_in_forward();
    find_readers_in_backward();
    find_owners();
    check_stages();
    find_links();
    give_slots();
    make_sections();
    remove_unused();
  }

 private:
  using Carries = StageLink::Carries;

  static std::span<const RegionId> scopes_of(const Program* like) {
    return like == nullptr ? std::span<const RegionId>() : std::span(like->part_starts);
  }
  int32_t stage_of(int32_t part) const { return parts_.stage_of[static_cast<size_t>(part)]; }
  bool is_own(int32_t part) const { return stage_of(part) == own_; }
  int32_t part_b(Value v) const { return part_of_backward_[static_cast<size_t>(v.node)]; }
  Role role(SlotId slot) const { return program_.slot(slot).role; }
  int32_t chunk_of(int32_t part) const {
    return static_cast<int32_t>(std::count(parts_.stage_of.begin(), parts_.stage_of.begin() + part, stage_of(part)));
  }
  std::vector<int32_t> own_parts() const {
    std::vector<int32_t> own;
    for (int32_t part = 0; part < count_; ++part)
      if (is_own(part)) own.push_back(part);
    return own;
  }

  /// The value of which this one is a view.
  static Value behind(const Graph& graph, Value v) {
    while (graph[v.node].op == Op::reshape) v = graph[v.node].in[0];
    return v;
  }

  bool is_stash_store(const Node& node) const { return node.op == Op::store && role(node.writes[0]) == Role::stash; }

  void find_stashed() {
    for (const Node& node : forward_.nodes)
      if (is_stash_store(node)) {
        const Value v = behind(forward_, node.in[0]);  // of a view, what it is a view of
        value_in_[node.writes[0]] = v;
        if (v == node.in[0]) slot_of_.emplace(v, node.writes[0]);
      }
  }

  /// Inputs that backward alone reads: gradients of outputs, which the host has once the last part has run. That part takes them.
  void find_given_late() {
    std::set<SlotId> in_forward;
    const auto is_input = [this](const Node& node) { return node.op == Op::load && role(node.reads[0]) == Role::input; };
    for (const Node& node : forward_.nodes)
      if (is_input(node)) in_forward.insert(node.reads[0]);
    for (int32_t n = 0; n < backward_.size(); ++n)
      if (is_input(backward_[n]) && !in_forward.contains(backward_[n].reads[0])) given_late_.emplace(backward_[n].reads[0], Value{n, 0});
  }
  bool is_given_late(const Node& node) const { return node.op == Op::load && given_late_.contains(node.reads[0]); }
  bool is_anywhere(const Node& node) const { return is_made_anywhere(node) && !is_given_late(node); }

  /// The nodes that make working copies: cast and store. Each stage that has the parameter makes its own.
  void find_makers() {
    for (int32_t n = 0; n < forward_.size(); ++n) {
      const Node& store = forward_[n];
      if (store.op != Op::store || role(store.writes[0]) != Role::working) continue;
      makers_[store.writes[0]] = n;
      is_of_maker_.insert({n, store.in[0].node});
    }
  }

  bool is_left_out(const Graph& graph, int32_t n) const {
    const Node& node = graph[n];
    return is_anywhere(node) || (&graph == &forward_ && (is_stash_store(node) || is_of_maker_.contains(n)));
  }

  bool is_result(const Node& node) const {
    return node.op == Op::store && (role(node.writes[0]) == Role::report || role(node.writes[0]) == Role::output);
  }

  /// The part in which a node of forward runs; the loss is the last part's, and the outputs for the host.
  int32_t part_of(int32_t n) const { return is_result(forward_[n]) ? count_ - 1 : part_of_forward_[static_cast<size_t>(n)]; }

  void find_parts_of_backward() {
    std::map<RegionId, int32_t> of_scope;
    for (int32_t n = 0; n < forward_.size(); ++n)
      if (!is_left_out(forward_, n)) of_scope.emplace(outermost_of(program_, forward_[n].region), part_of(n));
    of_scope[0] = count_ - 1;
    for (const Node& node : backward_.nodes) {
      const auto found = of_scope.find(outermost_of(program_, node.region));
      int32_t part = found == of_scope.end() || is_given_late(node) ? count_ - 1 : found->second;
      const bool is_write = node.op == Op::store && !node.in.empty() && !is_anywhere(backward_[behind(backward_, node.in[0]).node]);
      if (is_write) part = part_b(behind(backward_, node.in[0]));
      for (const Value v : node.in)
        if (const Value from = behind(backward_, v); !is_anywhere(backward_[from.node])) part = std::min(part, part_b(from));
      part_of_backward_.push_back(part);
    }
  }

  void read_in_forward(Value v, int32_t part) {
    v = behind(forward_, v);
    const Node& source = forward_[v.node];
    if (source.op == Op::load) return use_weight(source.reads[0], part, true);
    if (!is_made_anywhere(source) && part_of(v.node) != part) readers_f_[v].insert(part);
  }

  void find_readers_in_forward() {
    for (int32_t n = 0; n < forward_.size(); ++n)
      if (!is_left_out(forward_, n))
        for (const Value v : forward_[n].in) read_in_forward(v, part_of(n));
    for (const Value v : {program_.loss_sum, program_.loss_count})
      if (v) read_in_forward(v, count_ - 1);
  }

  void find_readers_in_backward() {
    for (int32_t n = 0; n < backward_.size(); ++n) {
      if (is_left_out(backward_, n)) continue;
      const int32_t part = part_of_backward_[static_cast<size_t>(n)];
      for (const Value in : backward_[n].in) {
        const Value v = behind(backward_, in);
        const Node& source = backward_[v.node];
        if (source.op == Op::load && !is_given_late(source)) {
          const SlotId slot = source.reads[0];
          if (const auto found = value_in_.find(slot); found != value_in_.end()) {
            recalled_by_[found->second].insert(part);
            if (part_of(found->second.node) != part) readers_f_[found->second].insert(part);
          }
          use_weight(slot, part, false);
          if (role(slot) == Role::input && is_own(part)) late_inputs_.insert(slot);
        } else if (!is_anywhere(source) && part_b(v) != part) {
          readers_b_[v].insert(part);
        }
      }
    }
    const std::vector<int32_t> own = own_parts();
    for (int32_t n = 0; n < forward_.size(); ++n)
      if (!is_left_out(forward_, n) && is_own(part_of(n)) && part_of(n) != own[0])
        for (const Value in : forward_[n].in)
          if (const Node& source = forward_[behind(forward_, in).node]; source.op == Op::load && role(source.reads[0]) == Role::input)
            late_inputs_.insert(source.reads[0]);
  }

  void use_weight(SlotId slot, int32_t part, bool in_forward) {
    if (role(slot) != Role::parameter && role(slot) != Role::working) return;
    const SlotId parameter = role(slot) == Role::parameter ? slot : program_.slot(slot).of;
    users_[slot].insert(stage_of(part));
    const auto [first, is_new] = first_part_.emplace(parameter, std::pair(in_forward, part));
    if (!is_new && in_forward && (!first->second.first || part < first->second.second)) first->second = {true, part};
  }

  /// A parameter belongs to the stage of its first use that has a gradient, or else of its first use.
  void find_owners() {
    for (const auto& [parameter, first] : first_part_) owner_[parameter] = stage_of(first.second);
    for (int32_t n = 0; n < backward_.size(); ++n) {
      const Node& node = backward_[n];
      if (node.op != Op::store || role(node.writes[0]) != Role::gradient) continue;
      const Slot& gradient = program_.slot(node.writes[0]);
      stage_of_gradient_[node.writes[0]] = stage_of(part_of_backward_[static_cast<size_t>(n)]);
      if (gradient.name == text("gradient.", program_.slot(gradient.of).name)) owner_[gradient.of] = stage_of_gradient_[node.writes[0]];
    }
  }

  void check_stages() const {
    for (int32_t stage = 0; stage < program_.mesh.stage; ++stage) {
      const bool has_some = std::ranges::any_of(owner_, [&](const auto& of) { return of.second == stage; });
      check(has_some, "pipeline: stage ", stage, " of ", program_.mesh.stage,
            " would have no parameter to train or use; use fewer stages, or say with stage_starts where they begin");
    }
  }

  // --- who sends what to whom

  /// The part on a stage that takes what several parts there read: the first one that runs.
  int32_t taker(const std::set<int32_t>& parts, int32_t stage, bool is_forward) const {
    int32_t found = -1;
    for (const int32_t part : parts)
      if (stage_of(part) == stage && (found < 0 || !is_forward)) found = part;
    return found;
  }

  template <class Send>
  void each_message(const std::map<Value, std::set<int32_t>>& readers, bool is_forward, const Send& send) const {
    for (const auto& [v, parts] : readers) {
      const int32_t from = is_forward ? part_of(v.node) : part_b(v);
      for (int32_t stage = 0; stage < program_.mesh.stage; ++stage)
        if (const int32_t to = taker(parts, stage, is_forward); to >= 0 && stage != stage_of(from)) send(v, link_of(from, to, is_forward));
    }
  }
  StageLink link_of(int32_t from, int32_t to, bool is_forward) const {
    return {.carries = is_forward ? Carries::activations : Carries::gradients,
            .from = stage_of(from),
            .to = stage_of(to),
            .from_part = from,
            .to_part = to};
  }

  void find_links() {
    std::set<StageLink> links;
    for (const bool is_forward : {true, false})
      each_message(is_forward ? readers_f_ : readers_b_, is_forward, [&](Value, const StageLink& link) { links.insert(link); });
    for (const auto& [slot, stages] : users_)
      for (const int32_t stage : stages)
        if (const int32_t owner = owner_.at(parameter_of(slot)); stage != owner)
          links.insert({.carries = Carries::weights, .from = owner, .to = stage});
    for (const auto& [gradient, stage] : stage_of_gradient_)
      if (const int32_t owner = owner_.at(program_.slot(gradient).of); stage != owner)
        links.insert({.carries = Carries::uses, .from = stage, .to = owner});
    program_.links.assign(links.begin(), links.end());
  }

  int64_t number_of(const StageLink& link) const { return std::ranges::find(program_.links, link) - program_.links.begin(); }
  SlotId parameter_of(SlotId slot) const { return role(slot) == Role::parameter ? slot : program_.slot(slot).of; }

  // --- slots

  void give_slots() {
    const auto count = static_cast<SlotId>(program_.slots.size());
    for (SlotId s = 0; s < count; ++s) {
      if (role(s) == Role::parameter) give_to_stage(program_.slot(s), owner_.contains(s) ? owner_.at(s) : 0);
      if (const auto found = stage_of_gradient_.find(s); found != stage_of_gradient_.end()) give_to_stage(program_.slot(s), found->second);
    }
  }

  SlotId add_stash(const std::string& name, Type type) {
    type.layout = type.layout.only(MeshAxis::tensor);
    return program_.add_slot({.name = free_name(program_, name), .type = type, .role = Role::stash, .init = {}});
  }

  SlotId slot_f(Value v) {
    const auto [found, is_new] = slot_of_.emplace(v, -1);
    if (is_new) found->second = add_stash(text("part.", v.node, ".", v.output), forward_.type(v));
    return found->second;
  }
  SlotId slot_b(Value v) {
    const auto [found, is_new] = carried_.emplace(v, -1);
    if (is_new) found->second = add_stash(text("gradient of part.", v.node, ".", v.output), backward_.type(v));
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
    const std::vector<int32_t> own = own_parts();
    const Value loss_sum = std::exchange(program_.loss_sum, {}), loss_count = std::exchange(program_.loss_count, {});
    std::vector<Output> outputs = std::exchange(program_.outputs, {});
    for (const int32_t part : own) {
      Section& section = made.emplace_back(Section{.graph = {}, .phase = Phase::forward, .stage = own_, .chunk = chunk_of(part)});
      SectionCopy copy = copy_into(section, forward_);
      if (part == own[0]) begin_step(section.graph);
      receive(readers_f_, true, part, section.graph);
      for (int32_t n = 0; n < forward_.size(); ++n)
        if (part_of(n) == part && !is_left_out(forward_, n)) {
          copy.copy(n);
          hand_on_forward(n, section.graph, copy);
        }
      if (part + 1 < count_) continue;
      if (loss_sum) program_.loss_sum = copy.at(loss_sum);
      if (loss_count) program_.loss_count = copy.at(loss_count);
      for (Output& output : outputs) keep(std::move(output), copy);
    }
    for (const int32_t part : std::vector<int32_t>(own.rbegin(), own.rend())) {
      Section& section = made.emplace_back(Section{.graph = {}, .phase = Phase::backward, .stage = own_, .chunk = chunk_of(part)});
      SectionCopy copy = copy_into(section, backward_);
      receive(readers_b_, false, part, section.graph);
      for (int32_t n = 0; n < backward_.size(); ++n)
        if (part_of_backward_[static_cast<size_t>(n)] == part && !is_left_out(backward_, n)) {
          copy.copy(n);
          hand_on_backward(n, section.graph, copy);
        }
    }
    program_.sections = std::move(made);
  }

  /// An output of the last part; nobody reads those of others in a step.
  void keep(Output output, SectionCopy& copy) {
    const auto is_there = [&](Value v) {
      const Value from = behind(forward_, v);
      return !is_made_anywhere(forward_[from.node]) && part_of(from.node) == count_ - 1;
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
          return append(to, load_of(program_, &from == &forward_ ? slot_f(v) : slot_b(v), source.region));
        },
        [this, &to, is_first](Node load) {
          const SlotId slot = load.reads[0];
          const RegionId region = load.region;
          if (const auto late = given_late_.find(slot); late != given_late_.end())
            return append(to, load_of(program_, slot_b(late->second), region));
          if (role(slot) == Role::input && !is_first) return append(to, load_of(program_, slot_of_input(slot), region));
          if (is_weight(slot)) {
            if (owner_.at(parameter_of(slot)) != own_) return append(to, load_of(program_, copy_of(slot), region));
            make_copy(slot, to);
            return append(to, load_of(program_, slot, region));
          }
          if (const auto found = value_in_.find(slot); found != value_in_.end()) return stashed(found->second, load.out[0], region, to);
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
    const auto maker = makers_.find(slot);
    if (maker == makers_.end() || !made_.insert(slot).second) return;
    Node store = forward_[maker->second], cast = forward_[store.in[0].node];
    const Node& load = forward_[cast.in[0].node];
    cast.in = {append(to, load_of(program_, load.reads[0], load.region))};
    store.in = {append(to, std::move(cast))};
    append(to, std::move(store));
  }

  /// The first section takes and sends weights, and keeps the inputs that later sections read.
  void begin_step(Graph& to) {
    for (const auto& [slot, stages] : users_)
      if (const int32_t owner = owner_.at(parameter_of(slot)); owner != own_ && stages.contains(own_))
        append(to, receive_of(copy_of(slot), {.carries = Carries::weights, .from = owner, .to = own_}, parts_.copies));
    for (const auto& [slot, stages] : users_)
      for (const int32_t stage : stages)
        if (owner_.at(parameter_of(slot)) == own_ && stage != own_) {
          make_copy(slot, to);
          send(to, slot, {.carries = Carries::weights, .from = own_, .to = stage}, parts_.copies);
        }
    for (const SlotId input : late_inputs_) {
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
    const bool is_read_here = is_forward || std::ranges::any_of(parts, [this](int32_t part) { return is_own(part); });
    if (is_read_here) append(to, store_of(here, slot, 0));
    SlotId sent = is_forward ? slot : -1;
    for (int32_t stage = 0; stage < program_.mesh.stage; ++stage) {
      const int32_t reader = taker(parts, stage, is_forward);
      if (reader < 0 || stage == own_) continue;
      if (sent < 0) {
        sent = is_read_here ? add_stash(text("sent.", program_.slot(slot).name), program_.slot(slot).type) : slot;
        append(to, store_of(here, sent, 0));
      }
      send(to, sent, link_of(from, reader, is_forward));
    }
  }

  void hand_on_forward(int32_t n, Graph& to, SectionCopy& copy) {
    for (int32_t i = 0; i < static_cast<int32_t>(forward_[n].out.size()); ++i) {
      const Value v{n, i};
      const auto readers = readers_f_.find(v);
      const auto recalled = recalled_by_.find(v);
      const bool is_recalled =
          recalled != recalled_by_.end() && std::ranges::any_of(recalled->second, [&](int32_t p) { return is_own(p); });
      if (readers == readers_f_.end() && !is_recalled) continue;
      hand_on(slot_f(v), copy.at(v), readers == readers_f_.end() ? std::set<int32_t>() : readers->second, part_of(n), true, to);
    }
  }

  void hand_on_backward(int32_t n, Graph& to, SectionCopy& copy) {
    for (int32_t i = 0; i < static_cast<int32_t>(backward_[n].out.size()); ++i)
      if (const auto readers = readers_b_.find({n, i}); readers != readers_b_.end())
        hand_on(slot_b({n, i}), copy.at({n, i}), readers->second, part_b({n, i}), false, to);
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
  const int32_t count_, own_;
  const std::vector<int32_t> part_of_forward_;
  std::vector<int32_t> part_of_backward_;
  const Graph forward_, backward_;             // of the whole model
  std::map<Value, SlotId> slot_of_, carried_;  // by value of forward and of backward: where other sections find it
  std::map<SlotId, Value> value_in_;           // by stash slot, the value of forward
  std::map<SlotId, Value> given_late_;         // by input that backward alone reads, its load
  std::map<SlotId, int32_t> makers_;           // by working copy, its store
  std::set<int32_t> is_of_maker_;              // nodes of forward
  std::set<SlotId> made_;                      // working copies that this stage has made
  std::map<Value, std::set<int32_t>> readers_f_, readers_b_, recalled_by_;  // parts other than the value's; recalled_by_: any, by backward
  std::map<SlotId, std::set<int32_t>> users_;                               // by parameter or working copy, the stages that read it
  std::map<SlotId, std::pair<bool, int32_t>> first_part_;  // by parameter: whether forward reads it, and in which part first
  std::map<SlotId, int32_t> owner_, stage_of_gradient_;    // stages
  std::set<SlotId> late_inputs_;                           // that this stage's sections after the first one read
  std::map<SlotId, SlotId> inputs_, copies_;               // by input, by parameter: what holds it here
};

}  // namespace

void pipeline_cut(Program& program, const PipelineParts& parts) { Cut(program, parts).run(); }

}  // namespace st
