#include "passes/copied_weights.h"

#include "passes/rewrite.h"

namespace st {

std::vector<CopyMaker> copy_makers(const Program& program) {
  std::vector<CopyMaker> makers;
  for (size_t s = 0; s < program.sections.size(); ++s) {
    const Section& section = program.sections[s];
    for (int32_t n = 0; n < section.graph.size() && section.phase == Phase::forward; ++n) {
      const Node& store = section.graph[n];
      if (store.op != Op::store || program.slot(store.writes[0]).role != Role::working) continue;
      const int32_t cast = store.in[0].node;
      if (section.graph[cast].op != Op::cast) continue;
      const int32_t load = section.graph[cast].in[0].node;
      const SlotId copy = store.writes[0], parameter = program.slot(copy).of;
      if (section.graph[load].op == Op::load && section.graph[load].reads[0] == parameter)
        makers.push_back({static_cast<int32_t>(s), load, cast, n, parameter, copy});
    }
  }
  return makers;
}

std::vector<bool> copied_weights(const Program& program) {
  if (!program.copied_of_model.empty()) return program.copied_of_model;
  std::vector<int32_t> readers(program.slots.size());
  std::vector<std::vector<std::vector<int32_t>>> uses;  // by section, node and output
  for (const Section& section : program.sections) {
    uses.push_back(section.phase == Phase::forward ? uses_of(program, section) : std::vector<std::vector<int32_t>>());
    if (section.phase == Phase::update) continue;
    for (const Node& node : section.graph.nodes)
      for (const SlotId read : node.reads) ++readers[static_cast<size_t>(read)];
  }
  std::vector<bool> copied(program.slots.size());
  for (const CopyMaker& maker : copy_makers(program)) {
    const auto is_used_once = [&](int32_t node) { return uses[static_cast<size_t>(maker.section)][static_cast<size_t>(node)][0] == 1; };
    const auto parameter = static_cast<size_t>(maker.parameter);
    copied[parameter] = readers[parameter] == 1 && is_used_once(maker.load) && is_used_once(maker.cast);
  }
  return copied;
}

}  // namespace st
