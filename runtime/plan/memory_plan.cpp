#include "plan/memory_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"
#include "ir/cuts.h"
#include "plan/stash_pool.h"

namespace st {

std::string_view name_of(Arena arena) { return arena == Arena::host ? "host" : name_of(role_of(arena)); }

namespace {

Arena arena_of(Role role) {
  switch (role) {
    case Role::parameter:
      return Arena::parameters;
    case Role::gradient:
      return Arena::gradients;
    case Role::optimizer:
      return Arena::optimizer;
    case Role::stash:
    case Role::output:
      return Arena::stash;
    case Role::input:
      return Arena::host;
    case Role::packed:
    case Role::working:
      return Arena::packed;
    case Role::gathered:
      return Arena::buckets;
    case Role::control:
    case Role::report:
      return Arena::control;
  }
  fail(Code::internal, "memory_plan: unknown role");
}

constexpr int32_t kEnd = std::numeric_limits<int32_t>::max();  // outputs are read after the last node

/// A piece of memory with a lifetime: positions of nodes counted through all sections, both ends included.
struct Block {
  int64_t bytes = 0;
  int32_t from = std::numeric_limits<int32_t>::max(), to = -1;
  std::optional<SlotId> slot;  // lies in this slot
  Place place;
};

class Planner {
 public:
  Planner(const Program& program, const StepOrder& order, const WorkspaceNeed& need)
      : program_(program), order_(order), need_(need), is_of_a_run_(program.slots.size()) {
    verify_order(program, order);
    for (const int32_t count : in_flight(program, order)) layout_.stash.push_back({.count = count});
  }

  MemoryLayout run() {
    require_countable();
    place_lasting_slots();
    find_last_uses();
    find_blocks();
    adopt_stores();
    find_slots_of_a_run();
    pack(Arena::activations, [&](const Block& block) { return !block.slot || is_of_a_run_[static_cast<size_t>(*block.slot)]; });
    pack_stash();
    pack(Arena::buckets, [&](const Block& block) { return block.slot && lies_in(Arena::buckets, *block.slot); });
    fill_in();
    return layout_;
  }

 private:
  /// Sums below stay far from the end of int64; nobody has an exabyte.
  void require_countable() const {
    double bytes = 0;
    for (const Slot& slot : program_.slots) bytes += static_cast<double>(own_type(program_, slot).bytes());
    for (const Section& section : program_.sections)
      for (const Node& node : section.graph.nodes)
        for (const Type& type : node.out) bytes += static_cast<double>(type.bytes());
    require(bytes < 0x1p60, Code::out_of_memory, "memory_plan: the program's values take ", bytes, " bytes");
  }

  bool lies_in(Arena arena, SlotId slot) const { return arena_of(role(slot)) == arena && !is_of_a_run_[static_cast<size_t>(slot)]; }
  Role role(SlotId slot) const { return program_.slot(slot).role; }
  int64_t bytes_of_slot(SlotId slot) const { return own_type(program_, program_.slot(slot)).bytes(); }

  void place_lasting_slots() {
    layout_.slots.resize(program_.slots.size());
    for (size_t s = 0; s < program_.slots.size(); ++s) {
      const Arena arena = program_.slots[s].borrowed ? Arena::host : arena_of(program_.slots[s].role);
      if (arena == Arena::stash || arena == Arena::buckets || arena == Arena::host) {
        layout_.slots[s] = {arena, 0};
        continue;
      }
      int64_t& size = layout_.bytes[static_cast<size_t>(arena)];
      layout_.slots[s] = {arena, size};
      size += align_up(bytes_of_slot(static_cast<SlotId>(s)));
    }
  }

  /// The node whose memory a view is of.
  static int32_t source_of(const Graph& graph, Value v) {
    while (graph[v.node].op == Op::reshape) v = graph[v.node].in[0];
    return v.node;
  }

  /// Position after which a node's output is not read by a node of its section; stored and named outputs count as read by their store.
  void find_last_uses() {
    int32_t position = 0;
    for (const Section& section : program_.sections) {
      starts_.push_back(position);
      auto& last = last_use_.emplace_back();
      for (const Node& node : section.graph.nodes) last.emplace_back(node.out.size(), position++);
      auto& is_stashed = is_stashed_.emplace_back(section.graph.nodes.size(), false);
      for (int32_t n = 0; n < section.graph.size(); ++n) {
        const Node& node = section.graph[n];
        for (const Value v : node.in) last_use(section_index(section), v) = starts_.back() + n;
        if (node.op == Op::store && lies_in(Arena::stash, node.writes[0]))
          is_stashed[static_cast<size_t>(source_of(section.graph, node.in[0]))] = true;
      }
    }
  }

  size_t section_index(const Section& section) const { return static_cast<size_t>(&section - program_.sections.data()); }
  int32_t& last_use(size_t section, Value v) { return last_use_[section][static_cast<size_t>(v.node)][static_cast<size_t>(v.output)]; }
  size_t& block_of(size_t section, Value v) { return block_of_[section][static_cast<size_t>(v.node)][static_cast<size_t>(v.output)]; }

  void touch(size_t block, int32_t position) {
    blocks_[block].from = std::min(blocks_[block].from, position);
    blocks_[block].to = std::max(blocks_[block].to, position);
  }

  void find_blocks() {
    // One block for each slot, first: block index = slot index.
    for (size_t s = 0; s < program_.slots.size(); ++s)
      blocks_.push_back({.bytes = bytes_of_slot(static_cast<SlotId>(s)), .slot = static_cast<SlotId>(s), .place = {}});
    for (const Section& section : program_.sections) {
      const size_t s = section_index(section);
      auto& of = block_of_.emplace_back();
      for (const Node& node : section.graph.nodes) of.emplace_back(node.out.size(), 0);
      for (int32_t n = 0; n < section.graph.size(); ++n) place_node(s, section.graph, n);
    }
  }

  void place_node(size_t s, const Graph& graph, int32_t n) {
    const Node& node = graph[n];
    const int32_t position = starts_[s] + n;
    if (node.op == Op::send) touch(block_of(s, node.in[0]), kEnd);  // until the buffer is released
    const Node& slots_of = node.op == Op::await ? graph[static_cast<int32_t>(node.attrs.integer("exchange"))] : node;  // to its end
    for (const SlotId slot : slots_of.reads) touch(static_cast<size_t>(slot), position);
    for (const SlotId slot : slots_of.writes) {
      touch(static_cast<size_t>(slot), position);
      if (role(slot) == Role::output) touch(static_cast<size_t>(slot), kEnd);
    }
    for (int32_t i = 0; i < static_cast<int32_t>(node.out.size()); ++i) {
      size_t& block = block_of(s, {n, i});
      if (node.op == Op::load) {
        block = static_cast<size_t>(node.reads[0]);
      } else if (is_view(node.op)) {
        block = block_of(s, node.in[0]);
      } else if (const Value dying = operand_to_overwrite(s, graph, n, i); dying) {
        block = block_of(s, dying);
      } else {
        block = blocks_.size();
        blocks_.push_back({.bytes = node.out[static_cast<size_t>(i)].bytes(), .slot = {}, .place = {}});
      }
      touch(block, position);
      touch(block, last_use(s, {n, i}));
    }
  }

  /// An elementwise node may write over an operand of its own type that nobody reads afterwards, the gradient of a loss over the logits.
  /// A stored value is read by its store.
  Value operand_to_overwrite(size_t s, const Graph& graph, int32_t n, int32_t output) {
    const Node& node = graph[n];
    const bool is_over_logits = (node.op == Op::fused_cross_entropy && output == 2) || node.op == Op::vocabulary_cross_entropy_backward;
    if (!is_over_logits && (!info_of(node.op).elementwise || node.out.size() != 1)) return {};
    const Type& type = node.out[static_cast<size_t>(output)];
    for (const Value v : node.in) {
      if (graph.type(v).dtype != type.dtype || graph.type(v).shape != type.shape) continue;
      const Block& block = blocks_[block_of(s, v)];
      if (block.slot || block.to > starts_[s] + n || is_stashed_[s][static_cast<size_t>(source_of(graph, v))]) continue;
      const auto reads_it_too = [&](Value other) {
        return other != v && block_of(s, other) == block_of(s, v) && graph.type(other).shape != type.shape;
      };
      if (std::ranges::any_of(node.in, reads_it_too)) continue;
      return v;
    }
    return {};
  }

  /// A value that is stored once, always, is made in its slot, and the store has nothing left to do. Not when the slot is read or written
  /// between the value's making and its store: then the old content is still wanted.
  void adopt_stores() {
    for (const Section& section : program_.sections) {
      const size_t s = section_index(section);
      for (int32_t n = 0; n < section.graph.size(); ++n) {
        const Node& node = section.graph[n];
        if (node.op != Op::store) continue;
        const bool is_copy = role(node.writes[0]) == Role::working;  // made again at any time: nothing else may lie where it is made
        if ((node.when != When::every && !is_copy) || access_of(program_, section.graph, node, node.writes[0]).is_shard) continue;
        const size_t block = block_of(s, node.in[0]);
        const Arena arena = arena_of(role(node.writes[0]));
        if (blocks_[block].slot || (arena != Arena::stash && arena != Arena::gradients && !is_copy)) continue;
        if (blocks_[block].bytes != bytes_of_slot(node.writes[0])) continue;
        Block& slot = blocks_[static_cast<size_t>(node.writes[0])];
        if (slot.from < starts_[s] + n || (arena == Arena::gradients && blocks_[block].to > starts_[s] + n)) continue;
        slot.from = std::min(slot.from, blocks_[block].from);
        slot.to = std::max(slot.to, blocks_[block].to);
        blocks_[block].slot = node.writes[0];
        blocks_[block].bytes = 0;  // no memory of its own
      }
    }
  }

  /// Slots of the stash that live within one section, as gradients that are received: with the values that live there.
  void find_slots_of_a_run() {
    for (size_t s = 0; s < program_.slots.size(); ++s) {
      const Block& block = blocks_[s];
      if (program_.slots[s].role != Role::stash || block.to < 0) continue;
      const auto after = std::ranges::upper_bound(starts_, block.from);  // its section's begin is the one before
      is_of_a_run_[s] = block.to < (after == starts_.end() ? kEnd : *after);
    }
  }

  /// A stage may have to keep the gradients that it sends longer than its stash: by slot, the messages under way, or 0.
  std::vector<int32_t> sent_gradients() const {
    std::vector<int32_t> under_way(program_.slots.size(), 0);
    for (const Section& section : program_.sections)
      for (const Node& node : section.graph.nodes) {
        if (node.op != Op::send || section.phase == Phase::forward || section.phase == Phase::update) continue;
        const StageLink& link = program_.links[static_cast<size_t>(node.attrs.integer("link"))];
        int32_t& most = under_way[static_cast<size_t>(section.graph.slot_behind(node.in[0]))];
        most = std::max(most, link.under_way);
      }
    return under_way;
  }

  /// Each chunk's part after the others', or all in memory that they share where this takes less; then the gradients that are sent.
  void pack_stash() {
    const std::vector<int32_t> chunk_of = chunks_of_slots(program_), sent = sent_gradients();
    const auto is_of = [&](const Block& block, size_t chunk) {
      return block.slot && lies_in(Arena::stash, *block.slot) && sent[static_cast<size_t>(*block.slot)] == 0 &&
             static_cast<size_t>(chunk_of[static_cast<size_t>(*block.slot)]) == chunk;
    };
    for (size_t chunk = 0; chunk < layout_.stash.size(); ++chunk)
      pack_buffers(layout_.stash[chunk], [&](const Block& block) { return is_of(block, chunk); });
    share_stash(is_of);
    for (SlotId slot = 0; slot < static_cast<SlotId>(sent.size()); ++slot)
      if (const int32_t most = sent[static_cast<size_t>(slot)]; most > 0 && lies_in(Arena::stash, slot))
        pack_buffers(layout_.stash.emplace_back(StashBuffers{.count = most}), [&](const Block& block) { return block.slot == slot; });
  }

  template <class Chosen>
  void pack_buffers(StashBuffers& buffers, const Chosen& chosen) {
    int64_t& end = layout_.bytes[static_cast<size_t>(Arena::stash)];
    buffers.begin = end;
    const int64_t apart = pack(Arena::stash, chosen, buffers.begin);
    layout_.no_reuse_bytes += apart * (buffers.count - 1);
    buffers.bytes = end - buffers.begin;
    end = buffers.begin + buffers.bytes * buffers.count;
  }

  size_t chunk_of_run(const SectionRun& run) const {
    return static_cast<size_t>(program_.sections[static_cast<size_t>(run.section)].chunk);
  }

  template <class IsOf>
  void share_stash(const IsOf& is_of) {
    if (layout_.stash.size() < 2) return;
    const std::vector<std::vector<BufferUse>> uses = buffer_uses(program_, order_);
    for (size_t chunk = 0; chunk < uses.size(); ++chunk)  // else a release would not know whose buffer begins (buffer_releases.h)
      for (const BufferUse& use : uses[chunk])
        if (use.from >= order_.size() || chunk_of_run(order_[use.from]) != chunk) return;
    std::vector<int64_t> bytes;
    for (const StashBuffers& buffers : layout_.stash) bytes.push_back(buffers.bytes);
    std::optional<StashPool> pool = stash_pool(uses, bytes);
    int64_t& end = layout_.bytes[static_cast<size_t>(Arena::stash)];
    if (!pool || pool->bytes >= end) return;
    end = pool->bytes;
    for (size_t chunk = 0; chunk < uses.size(); ++chunk) {
      StashBuffers& buffers = layout_.stash[chunk];
      buffers.begins = std::move(pool->begins[chunk]);
      const int64_t moved = buffers.begins[0] - std::exchange(buffers.begin, buffers.begins[0]);
      for (Block& block : blocks_)
        if (is_of(block, chunk)) block.place.offset += moved;
    }
  }

  /// Largest first, each at the lowest offset where nothing alive at the same time lies.
  /// From `begin` on; returns the bytes of all of them.
  template <class Chosen>
  int64_t pack(Arena arena, const Chosen& chosen, int64_t begin = 0) {
    std::vector<size_t> order;
    for (size_t i = 0; i < blocks_.size(); ++i)
      if (blocks_[i].to >= 0 && blocks_[i].bytes > 0 && chosen(blocks_[i])) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return blocks_[a].bytes > blocks_[b].bytes; });
    int64_t& size = layout_.bytes[static_cast<size_t>(arena)];
    std::vector<size_t> placed;  // by offset
    int64_t apart = 0;
    for (const size_t i : order) {
      Block& block = blocks_[i];
      int64_t offset = begin;
      for (const size_t other : placed) {
        const Block& there = blocks_[other];
        if (there.to < block.from || there.from > block.to) continue;
        if (offset + align_up(block.bytes) <= there.place.offset) break;
        offset = std::max(offset, there.place.offset + align_up(there.bytes));
      }
      block.place = {arena, offset};
      const auto before = [&](size_t a, size_t b) { return blocks_[a].place.offset < blocks_[b].place.offset; };
      placed.insert(std::upper_bound(placed.begin(), placed.end(), i, before), i);
      size = std::max(size, offset + align_up(block.bytes));
      apart += align_up(block.bytes);
    }
    if (arena != Arena::buckets) layout_.no_reuse_bytes += apart;
    return apart;
  }

  void fill_in() {
    for (size_t s = 0; s < program_.slots.size(); ++s) {
      if (const Arena arena = is_of_a_run_[s] ? Arena::activations : layout_.slots[s].arena;
          arena == Arena::stash || arena == Arena::buckets || arena == Arena::activations)
        layout_.slots[s] = {arena, blocks_[s].place.offset};
      blocks_[s].place = layout_.slots[s];
    }
    int64_t& workspace = layout_.bytes[static_cast<size_t>(Arena::workspace)];
    for (const Section& section : program_.sections) {
      const size_t s = section_index(section);
      auto& values = layout_.values.emplace_back();
      for (int32_t n = 0; n < section.graph.size(); ++n) {
        auto& places = values.emplace_back();
        for (int32_t i = 0; i < static_cast<int32_t>(section.graph[n].out.size()); ++i) {
          const Block& block = blocks_[block_of(s, {n, i})];
          Place place = block.slot ? layout_.slots[static_cast<size_t>(*block.slot)] : block.place;
          if (const Node& node = section.graph[n]; node.op == Op::load)
            place.offset += access_of(program_, section.graph, node, node.reads[0]).first * bytes_of(node.out[0].dtype);
          places.push_back(place);
        }
        const int64_t bytes = align_up(need_(program_, section, section.graph[n]));
        workspace = std::max(workspace, bytes);
        layout_.no_reuse_bytes += bytes;
      }
    }
  }

  const Program& program_;
  const StepOrder& order_;
  const WorkspaceNeed& need_;
  MemoryLayout layout_;
  std::vector<Block> blocks_;
  std::vector<bool> is_of_a_run_;                            // by slot
  std::vector<int32_t> starts_;                              // by section
  std::vector<std::vector<std::vector<int32_t>>> last_use_;  // by section, node, output
  std::vector<std::vector<bool>> is_stashed_;                // by section, node: what it makes may lie in the stash
  std::vector<std::vector<std::vector<size_t>>> block_of_;
};

}  // namespace

MemoryLayout memory_plan(const Program& program, const StepOrder& order, const WorkspaceNeed& need) {
  return Planner(program, order, need).run();
}

}  // namespace st
