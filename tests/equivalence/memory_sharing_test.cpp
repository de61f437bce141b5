// memory_plan: bitwise the same results as without sharing. Random training programs run twice, as planned and with separate memory for
// every value, so a kernel that cannot work in place shows too.
#include <gtest/gtest.h>

#include "backend/kernel_side.h"
#include "exec/executor.h"
#include "models/gpt.h"
#include "models/initialize.h"
#include "plan/memory_plan.h"
#include "random_program.h"
#include "recipe/kernel_needs_of.h"

namespace st {
namespace {

/// Slots as placed by memory_plan, but no value shares memory, is made in a slot, or overwrites another.
MemoryLayout unshared(const Program& program, const MemoryLayout& planned) {
  MemoryLayout layout = planned;
  const auto place = [&](Arena arena, int64_t bytes) {
    int64_t& size = layout.bytes[static_cast<size_t>(arena)];
    const Place here{arena, size};
    size += align_up(bytes);
    return here;
  };
  layout.bytes[static_cast<size_t>(Arena::activations)] = layout.bytes[static_cast<size_t>(Arena::stash)] = 0;
  for (size_t s = 0; s < program.slots.size(); ++s)
    if (layout.slots[s].arena == Arena::stash) layout.slots[s] = place(Arena::stash, program.slots[s].type.bytes());
  for (size_t s = 0; s < program.sections.size(); ++s) {
    const Graph& graph = program.sections[s].graph;
    auto& values = layout.values[s];
    for (int32_t n = 0; n < graph.size(); ++n) {
      const Node& node = graph[n];
      for (size_t i = 0; i < node.out.size(); ++i) {
        Place& at = values[static_cast<size_t>(n)][i];
        if (node.op == Op::load) {
          at = layout.slots[static_cast<size_t>(node.reads[0])];
        } else if (is_view(node.op)) {
          at = values[static_cast<size_t>(node.in[0].node)][static_cast<size_t>(node.in[0].output)];
        } else {
          at = place(Arena::activations, node.out[i].bytes());
        }
      }
    }
  }
  return layout;
}

/// All parameters, gradients, moments and reports after two steps.
std::vector<std::byte> run(const Program& program, const MemoryLayout& layout, int64_t micro_batches, Backend& backend) {
  Storage storage(backend);
  Workers workers(2);
  Executor executor(make_plan(program, layout, in_turn(program, micro_batches)), storage, workers, nullptr);
  std::vector<std::vector<float>> floats(program.slots.size());
  std::vector<std::vector<int32_t>> tokens(program.slots.size());
  for (size_t s = 0; s < program.slots.size(); ++s) {
    const auto slot = static_cast<SlotId>(s);
    const Slot& it = program.slots[s];
    const auto elements = static_cast<size_t>(it.type.shape.elements());
    if (it.role == Role::parameter) initialize({as<float>(executor.slot(slot)), elements}, it, 3);
    if (it.role != Role::input) continue;
    for (size_t i = 0; i < elements; ++i) {
      tokens[s].push_back(static_cast<int32_t>(i * 7 % 17));
      floats[s].push_back(static_cast<float>(tokens[s][i]) / 17 - 0.4F);
    }
    executor.bind(slot, it.type.dtype == DType::i32 ? static_cast<const void*>(tokens[s].data()) : floats[s].data());
  }
  auto* rates = as<double>(executor.slot(program.slot_named("rates")));
  for (int step = 1; step <= 2; ++step) {
    rates[0] = 1e-2;
    rates[1] = step;
    executor.run({});
    EXPECT_FALSE(*as<bool>(executor.slot(program.slot_named("skipped")))) << "a step without an update compares little";
  }
  std::vector<std::byte> bytes;
  for (size_t s = 0; s < program.slots.size(); ++s) {
    const Role role = program.slots[s].role;
    if (role == Role::input || role == Role::stash) continue;
    const auto* data = as<std::byte>(executor.slot(static_cast<SlotId>(s)));
    bytes.insert(bytes.end(), data, data + program.slots[s].type.bytes());
  }
  return bytes;
}

class MemorySharing : public ::testing::TestWithParam<const char*> {
 protected:
  void expect_equal(const Program& model, int64_t micro_batches, const std::string& what, double dropout = 0) {
    const Program program = training_program(model, 5, micro_batches, 1, dropout);
    const MemoryLayout planned = memory_plan(program, in_turn(program, micro_batches), kernel_needs(profile_of(*backend_, 2)).workspace);
    const MemoryLayout apart = unshared(program, planned);
    EXPECT_LT(planned.of(Arena::activations), apart.of(Arena::activations)) << what;
    EXPECT_TRUE(run(program, planned, micro_batches, *backend_) == run(program, apart, micro_batches, *backend_)) << what;
  }

  std::unique_ptr<Backend> backend_ = GetParam() == std::string("cpu") ? make_cpu_backend() : make_reference_backend();
};

TEST_P(MemorySharing, ChangesNoBitOfARandomProgram) {
  for (uint64_t seed = 0; seed < 40; ++seed)
    for (const int64_t micro_batches : {1, 2}) expect_equal(random_program(seed, 40), micro_batches, text("seed ", seed));
}

TEST_P(MemorySharing, ChangesNoBitOfAGpt) {
  const Program gpt = build_gpt({.layers = 2, .width = 12, .heads = 3, .context = 7, .vocabulary = 17});
  for (const double dropout : {0.0, 0.2}) expect_equal(gpt, 2, text("dropout ", dropout), dropout);
}

INSTANTIATE_TEST_SUITE_P(Devices, MemorySharing, ::testing::Values("reference", "cpu"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace st
