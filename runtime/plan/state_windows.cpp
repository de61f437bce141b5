#include "plan/state_windows.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/cuts.h"
#include "plan/weight_copies.h"

namespace st {
namespace {

/// Bytes [begin, end) of an arena on the host, whole units of alignment.
struct Range {
  Arena arena = Arena::optimizer;
  int64_t begin = 0, end = 0;
  bool is_written = false;
};

/// Joins ranges that overlap or touch: fewer copies.
std::vector<Range> joined(std::vector<Range> ranges) {
  std::ranges::sort(ranges, {}, [](const Range& of) { return std::pair(of.arena, of.begin); });
  std::vector<Range> all;
  for (const Range& of : ranges) {
    if (all.empty() || of.arena != all.back().arena || of.begin > all.back().end) {
      all.push_back(of);
      continue;
    }
    all.back().end = std::max(all.back().end, of.end);
    all.back().is_written = all.back().is_written || of.is_written;
  }
  return all;
}

int64_t bytes_of(const std::vector<Range>& ranges) {
  int64_t sum = 0;
  for (const Range& of : ranges) sum += of.end - of.begin;
  return sum;
}

int64_t bytes_of(const StateWindow& window) {
  int64_t sum = 0;
  for (const StagedBytes& of : window.copies) sum += of.bytes;
  return sum;
}

class Windows {
 public:
  Windows(const Program& program, MemoryLayout& layout) : program_(program), layout_(layout), copies_(weight_copies(program)) {}

  void make() {
    for (size_t s = 0; s < program_.sections.size(); ++s) {
      section_ = static_cast<int32_t>(s);
      const size_t first = layout_.windows.size();
      cut();
      int64_t& room = is_update(section_) ? room_of_update_ : room_;
      room = std::max(room, place(first));
    }
    make_room();
  }

 private:
  static constexpr int64_t kWindows = 16;  // at least, but for large nodes

  bool is_update(int32_t section) const { return program_.sections[static_cast<size_t>(section)].phase == Phase::update; }
  bool is_on_host(Arena arena) const { return layout_.on_host[static_cast<size_t>(arena)]; }

  /// Places the rooms, the update's in the stash if it is free and large enough, and moves the copies' offsets there.
  void make_room() {
    const bool is_in_stash = room_of_update_ > 0 && room_of_update_ <= layout_.of(Arena::stash) && is_stash_free();
    int64_t& buckets = layout_.bytes[static_cast<size_t>(Arena::buckets)];
    const Place end = {Arena::buckets, align_up(buckets)};
    const int64_t room = is_in_stash ? room_ : std::max(room_, room_of_update_);
    const Place messages = {Arena::buckets, end.offset + room};
    for (StateWindow& window : layout_.windows) {
      const Place begin = is_message(window) ? messages : is_in_stash && is_update(window.section) ? Place{Arena::stash, 0} : end;
      for (StagedBytes& of : window.copies) of.staged = {begin.arena, begin.offset + of.staged.offset};
    }
    if (room + room_of_messages_ > 0) buckets = messages.offset + room_of_messages_;
  }

  /// Whether nothing in the stash is read once the update has begun. Messages to another stage may still leave from there.
  bool is_stash_free() const {
    const auto is_there = [](const Place& place) { return place.arena == Arena::stash; };
    if (program_.mesh.stage > 1) return false;
    for (size_t slot = 0; slot < program_.slots.size(); ++slot)
      if (program_.slots[slot].role == Role::output && is_there(layout_.slots[slot])) return false;
    for (size_t s = 0; s < program_.sections.size(); ++s) {
      if (program_.sections[s].phase != Phase::update) continue;
      for (const auto& values : layout_.values[s])
        if (std::ranges::any_of(values, is_there)) return false;
      for (const Node& node : program_.sections[s].graph.nodes)
        for (const auto* slots : {&node.reads, &node.writes})
          for (const SlotId slot : *slots)
            if (is_there(layout_.slots[static_cast<size_t>(slot)])) return false;
    }
    return true;
  }

  void cut() {
    const Section& section = program_.sections[static_cast<size_t>(section_)];
    const int64_t most = bytes_of_section() / kWindows;
    std::vector<Range> ranges;
    StateWindow window{.section = section_};
    const auto end_window = [&] {
      if (ranges.empty()) return;
      for (const Range& of : ranges)
        window.copies.push_back({.home = {of.arena, of.begin}, .staged = {}, .bytes = of.end - of.begin, .is_written = of.is_written});
      layout_.windows.push_back(std::exchange(window, {.section = section_}));
      ranges.clear();
    };
    for (int32_t n = 0; n < section.graph.size(); ++n) {
      const std::vector<Range> of_node = ranges_of(section.graph, n);
      if (of_node.empty()) continue;
      for (const Range& of : of_node)
        require(is_update(section_) || of.arena != Arena::optimizer, Code::internal, "offload: ", name_of(section.phase),
                " uses the optimizer's state");
      require(!is_awaited(section.graph, n), Code::internal, "offload: ", name_of(section.graph[n].op), " of ", name_of(of_node[0].arena),
              " has not ended at its node");
      std::vector<Range> with = ranges;
      with.insert(with.end(), of_node.begin(), of_node.end());
      with = joined(std::move(with));
      const bool ends = !ranges.empty() && (is_message(section, window.begin) || is_message(section, n) ||
                                            runs_of(section, n) != runs_of(section, window.begin));
      if (bytes_of(with) > most || ends) {
        end_window();
        with = of_node;
      }
      if (ranges.empty()) window.begin = n;
      ranges = std::move(with);
      window.end = n + 1;
    }
    end_window();
  }

  /// Whether what the node reads leaves while later ones compute.
  static bool is_message(const Section& section, int32_t n) { return section.graph[n].op == Op::send; }
  bool is_message(const StateWindow& window) const {
    return is_message(program_.sections[static_cast<size_t>(window.section)], window.begin);
  }

  /// That it may use of the arenas on the host: of all in the update.
  int64_t bytes_of_section() const {
    int64_t sum = 0;
    for (size_t a = 0; a < kArenas; ++a)
      if (layout_.on_host[a] && (static_cast<Arena>(a) != Arena::optimizer || is_update(section_))) sum += layout_.bytes[a];
    return sum;
  }

  /// When a node is left out, and which ranks run it: the same for all nodes of a window.
  std::pair<Copy, Instruction::Ranks> runs_of(const Section& section, int32_t n) const {
    const Copy makes = copies_[static_cast<size_t>(section_)][static_cast<size_t>(n)];
    return {makes, ranks_of(program_, section, section.graph[n], makes)};
  }

  static bool is_awaited(const Graph& graph, int32_t exchange) {
    if (!info_of(graph[exchange].op).exchange) return false;
    return std::ranges::any_of(
        graph.nodes, [&](const Node& node) { return node.op == Op::await && node.attrs.integer("exchange") == int64_t{exchange}; });
  }

  std::vector<Range> ranges_of(const Graph& graph, int32_t n) const {
    const Node& node = graph[n];
    std::vector<Range> ranges;
    if (is_view(node.op)) return ranges;
    const auto add = [&](const Place& place, int64_t bytes, bool is_written) {
      if (is_on_host(place.arena) && bytes > 0)
        ranges.push_back({place.arena, place.offset / kAlignment * kAlignment, align_up(place.offset + bytes), is_written});
    };
    const auto add_slot = [&](SlotId slot, bool is_written) {
      const Access access = access_of(program_, graph, node, slot);
      Place place = layout_.slots[static_cast<size_t>(slot)];
      place.offset += access.first * st::bytes_of(access.type.dtype);
      add(place, access.type.bytes(), is_written);
    };
    const auto& values = layout_.values[static_cast<size_t>(section_)];
    for (const Value v : node.in) add(values[static_cast<size_t>(v.node)][static_cast<size_t>(v.output)], graph.type(v).bytes(), false);
    for (size_t i = 0; i < node.out.size(); ++i) add(values[static_cast<size_t>(n)][i], node.out[i].bytes(), true);
    for (const SlotId slot : node.reads) add_slot(slot, false);
    for (const SlotId slot : node.writes) add_slot(slot, true);
    return joined(std::move(ranges));
  }

  static void place(StateWindow& window, int64_t at) {
    for (StagedBytes& of : window.copies) {
      of.staged.offset = at;
      at += of.bytes;
    }
  }

  /// Neighbours are there at the same time: every other window begins at the begin of the room, the rest end at its end. Returns its size.
  /// Messages have a room of their own.
  int64_t place(size_t first) {
    std::vector<StateWindow*> all;
    for (size_t w = first; w < layout_.windows.size(); ++w) {
      StateWindow& window = layout_.windows[w];
      if (!is_message(window)) {
        all.push_back(&window);
        continue;
      }
      place(window, room_of_messages_);
      room_of_messages_ += bytes_of(window);
    }
    int64_t room = 0;
    for (size_t w = 0; w < all.size(); ++w) room = std::max(room, bytes_of(*all[w]) + (w + 1 < all.size() ? bytes_of(*all[w + 1]) : 0));
    for (size_t w = 0; w < all.size(); ++w) place(*all[w], w % 2 == 0 ? 0 : room - bytes_of(*all[w]));
    return room;
  }

  const Program& program_;
  MemoryLayout& layout_;
  const std::vector<std::vector<Copy>> copies_;  // of weights, by section and node
  int64_t room_ = 0, room_of_update_ = 0;        // for the copies of two windows
  int64_t room_of_messages_ = 0;                 // for the copies of all windows that are messages
  int32_t section_ = 0;
};

bool overlap(const Place& a, int64_t bytes_of_a, const Place& b, int64_t bytes_of_b) {
  return a.arena == b.arena && a.offset < b.offset + bytes_of_b && b.offset < a.offset + bytes_of_a;
}

template <class Holds>
bool any_two(const StateWindow& window, const StateWindow& before, const Holds& holds) {
  return std::ranges::any_of(before.copies, [&](const StagedBytes& other) {
    return std::ranges::any_of(window.copies, [&](const StagedBytes& of) { return holds(of, other); });
  });
}

}  // namespace

void move_to_host(const Program& program, MemoryLayout& layout, const std::array<bool, kArenas>& arenas) {
  layout.on_host = arenas;
  Windows(program, layout).make();
}

bool shares_room(const StateWindow& window, const StateWindow& before) {
  return any_two(window, before,
                 [](const StagedBytes& of, const StagedBytes& other) { return overlap(of.staged, of.bytes, other.staged, other.bytes); });
}

bool follows(const StateWindow& window, const StateWindow& before) {
  return any_two(window, before, [](const StagedBytes& of, const StagedBytes& other) {
    return other.is_written && overlap(of.home, of.bytes, other.home, other.bytes);
  });
}

}  // namespace st
