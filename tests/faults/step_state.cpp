#include "step_state.h"

#include <cstring>
#include <span>
#include <vector>

#include "base/error.h"
#include "checkpoint/checkpoint_reader.h"

namespace st {
namespace {

constexpr int64_t kWeights = 60000, kMoments = 20000;

float weight_at(int64_t step, int64_t i) { return static_cast<float>(step % 1000 * 10000 + i % 10000); }
int64_t moment_at(int64_t step, int64_t i) { return step * 1000003 + i; }

template <class Value, class Expected>
bool holds(const CheckpointReader& reader, const std::string& name, int64_t n, const Expected& expected) {
  const LogicalTensor* tensor = reader.manifest().find(name);
  if (tensor == nullptr || tensor->shape.elements() != n) return false;
  std::vector<Value> values(static_cast<size_t>(n));
  reader.read(*tensor, 0, n, std::as_writable_bytes(std::span(values)));
  for (int64_t i = 0; i < n; ++i)
    if (values[static_cast<size_t>(i)] != expected(i)) return false;
  return true;
}

}  // namespace

CheckpointContent state_at(int64_t step) {
  static std::vector<float> weights(kWeights);
  for (int64_t i = 0; i < kWeights; ++i) weights[static_cast<size_t>(i)] = weight_at(step, i);
  CheckpointContent content;
  content.step = step;
  content.training = text("{\"step\":", step, "}");
  content.tensors.push_back({"weight", TensorKind::parameter, DType::f32, {kWeights}, std::as_bytes(std::span<const float>(weights)), {}});
  content.tensors.push_back({"moment", TensorKind::optimizer, DType::i64, {kMoments}, {}, [step](int64_t first, std::span<std::byte> out) {
                               for (size_t at = 0; at < out.size(); at += sizeof(int64_t)) {
                                 const int64_t value = moment_at(step, (first + static_cast<int64_t>(at)) / 8);
                                 std::memcpy(out.data() + at, &value, sizeof value);
                               }
                             }});
  content.tensors.push_back({"none", TensorKind::host, DType::f32, {0, 3}, {}, {}});
  return content;
}

std::string problem_of(const std::string& folder, int64_t step, Workers& workers) {
  try {
    const CheckpointReader reader(folder);
    const auto problems = reader.verify(workers);
    if (!problems.empty()) return problems.front().message;
    if (reader.manifest().step != step) return text(folder, ": says step ", reader.manifest().step, " instead of ", step);
    const Json* said = reader.manifest().training.find("step");
    if (said == nullptr || said->whole() != step) return folder + ": has the training state of another step";
    if (!holds<float>(reader, "weight", kWeights, [&](int64_t i) { return weight_at(step, i); }))
      return folder + ": has weights of another step";
    if (!holds<int64_t>(reader, "moment", kMoments, [&](int64_t i) { return moment_at(step, i); }))
      return folder + ": has moments of another step";
    return {};
  } catch (const Error& error) {
    return error.message();
  }
}

std::string steps_of(const std::string& run, Workers& workers) {
  std::string steps;
  for (const CheckpointEntry& entry : RunFolder(run).list()) {
    const std::string problem = entry.problem.empty() ? problem_of(run + "/" + entry.name, entry.step, workers) : entry.problem;
    if (!problem.empty()) return "problem: " + problem;
    steps += (steps.empty() ? "" : " ") + std::to_string(entry.step);
  }
  return steps;
}

}  // namespace st
