#include "conformance.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>

#include "../device/tested_device.h"
#include "../sanitized.h"
#include "base/error.h"
#include "base/philox.h"
#include "ir/rules.h"
#include "passes/autodiff.h"

namespace st::conformance {
namespace {

constexpr int64_t kFewElements = 150;  // finite differences run the program twice per element

struct Declaration {
  Op op;
  Tolerance tolerance;
  std::function<void(Suite&)> declare;
};

std::vector<Declaration>& declarations() {
  static std::vector<Declaration> all;
  return all;
}

std::string word_of(const Shape& shape) {
  std::string word;
  for (const int64_t dim : shape) word += (word.empty() ? "" : "x") + std::to_string(dim);
  return word.empty() ? "scalar" : word;
}

constexpr const char* kInstructionSet = "SCALETRAIN_ISA";

/// Allocates blocks from the heap. A backend's own pages would cost more than most cases, and a sanitizer does not check beyond their ends.
std::shared_ptr<MemorySource> heap() {
  const auto take = [](void*, size_t bytes, size_t align) { return std::aligned_alloc(align, (bytes + align - 1) / align * align); };
  const auto give_back = [](void*, void* memory) { std::free(memory); };
  static const auto all = std::make_shared<MemorySource>(HostAllocator{.alloc = take, .free = give_back, .user = nullptr});
  return all;
}

/// The cpu backend with kernels of another instruction set than this machine's best.
std::unique_ptr<Backend> make_cpu_with(const char* instruction_set) {
  setenv(kInstructionSet, instruction_set, 1);
  try {
    auto backend = make_cpu_backend(heap());
    unsetenv(kInstructionSet);
    return backend;
  } catch (const Error&) {
    unsetenv(kInstructionSet);
    throw;
  }
}

bool is_here(const BackendUnderTest& candidate) {
  try {
    candidate.make();
    return true;
  } catch (const Error& error) {
    if (error.code() != Code::unavailable) throw;
    return false;
  }
}

Type type_of(const Tensor& x) { return {.dtype = x.dtype(), .shape = x.shape(), .layout = {}}; }

}  // namespace

bool has_gradient(Op op) {
  static constexpr std::string_view kRules[] = {
#define ST_OP(name, inputs, outputs, attributes, shape, layout, gradient, help) #gradient,
#include "ir/ops.def"
#undef ST_OP
  };
  const std::string_view rule = kRules[static_cast<size_t>(op)];
  return rule != "none" && rule != "zero";
}

const std::vector<BackendUnderTest>& backends() {
  static const std::vector<BackendUnderTest> all = [] {
    if (tested_device) return std::vector<BackendUnderTest>{{"device", [] { return tested_device("cpu")(heap()); }}};
    std::vector<BackendUnderTest> list = {{"cpu", [] { return make_cpu_backend(heap()); }}};
    if (std::getenv(kInstructionSet) != nullptr) return list;  // the caller selects one set
    const std::string chosen(make_cpu_backend()->kernel_class());
    const BackendUnderTest narrower[] = {{"cpu_avx512_bf16", [] { return make_cpu_with("avx512_bf16"); }},
                                         {"cpu_avx512", [] { return make_cpu_with("avx512"); }},
                                         {"cpu_avx2", [] { return make_cpu_with("avx2"); }},
                                         {"cpu_portable", [] { return make_cpu_with("portable"); }}};
    for (const BackendUnderTest& candidate : narrower) {
      if (st::kSanitized && candidate.name == "cpu_portable") continue;  // compiled without a sanitizer: CMakeLists.txt
      if (candidate.name != "cpu_" + chosen && is_here(candidate)) list.push_back(candidate);
    }
    return list;
  }();
  return all;
}

std::unique_ptr<Backend> make_reference() { return make_reference_backend(heap()); }

std::vector<BackendUnderTest> backends_and_reference() {
  std::vector<BackendUnderTest> all = backends();
  all.push_back({"reference", make_reference});
  return all;
}

Suite::Suite(Op op, Tolerance tolerance, std::vector<OpCase>& cases) : op_(op), tolerance_(tolerance), cases_(cases) {}

OpCase& Suite::add(std::vector<Tensor> in, const Attrs& attrs) {
  OpCase& c = add_special(std::move(in), attrs);
  int64_t elements = 0;
  for (size_t i = 0; i < c.in.size(); ++i) {
    if (!is_floating(c.in[i].dtype())) continue;
    c.parameters.push_back(static_cast<int32_t>(i));
    elements += c.in[i].elements();
  }
  if (!has_gradient(op_) || elements > kFewElements) c.parameters.clear();
  return c;
}

OpCase& Suite::add_special(std::vector<Tensor> in, const Attrs& attrs) {
  std::string name = std::string(name_of(op_)) + "_" + std::to_string(cases_.size());
  if (!in.empty()) name += "_" + word_of(in[0].shape());
  cases_.push_back({.op = op_, .name = name, .in = std::move(in), .attrs = attrs, .tolerance = tolerance_});
  return cases_.back();
}

OpCase& Suite::add_large(std::vector<Tensor> in, const Attrs& attrs) {
  OpCase& c = add_special(std::move(in), attrs);
  c.dtypes = {DType::f32};
  if (!c.tolerance.exact()) c.tolerance = {.largest = 16};
  return c;
}

uint64_t Suite::next_key() { return mix(hash_name(name_of(op_)), drawn_++); }

Tensor Suite::uniform(const Shape& shape, double low, double high) {
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  const Philox philox = philox_of(next_key());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = low + (high - low) * static_cast<double>(uniform_of(philox({static_cast<uint32_t>(i), 0, 0, 0})[0]));
  }
  return Tensor::of(shape, values);
}

Tensor Suite::normal(const Shape& shape, double deviation, double mean) {
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  const Philox philox = philox_of(next_key());
  for (size_t i = 0; i < values.size(); ++i) {  // Box-Muller
    const auto words = philox({static_cast<uint32_t>(i), 0, 0, 0});
    const double radius = std::sqrt(-2 * std::log(1 - static_cast<double>(uniform_of(words[0]))));
    values[i] = mean + deviation * radius * std::cos(2 * std::numbers::pi * static_cast<double>(uniform_of(words[1])));
  }
  return Tensor::of(shape, values);
}

Tensor Suite::integers(const Shape& shape, int64_t high, DType dtype) {
  std::vector<double> values = uniform(shape, 0, 1).values();
  for (double& value : values) value = std::floor(value * static_cast<double>(high));
  return Tensor::of(shape, values, dtype);
}

Tensor Suite::flags(const Shape& shape) { return integers(shape, 2, DType::boolean); }

Cases::Cases(Op op, Tolerance tolerance, std::function<void(Suite&)> declare) {
  declarations().push_back({op, tolerance, std::move(declare)});
}

const std::vector<OpCase>& all_cases() {
  static const std::vector<OpCase> all = [] {
    auto& order = declarations();
    std::stable_sort(order.begin(), order.end(), [](const Declaration& a, const Declaration& b) { return a.op < b.op; });
    std::vector<OpCase> cases;
    for (const Declaration& declaration : order) {
      std::vector<OpCase> own;
      Suite suite(declaration.op, declaration.tolerance, own);
      declaration.declare(suite);
      cases.insert(cases.end(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
    }
    return cases;
  }();
  return all;
}

std::vector<const OpCase*> cases_that(const std::function<bool(const OpCase&)>& takes) {
  std::vector<const OpCase*> all;
  for (const OpCase& c : all_cases())
    if (takes(c)) all.push_back(&c);
  return all;
}

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {{}, {1}, {3}, {37}, {129}, {0}, {3, 0}, {3, 37}, {2, 3, 5}, {67, 1031}};
  return all;
}

const std::vector<Shape>& large_rows() {
  static const std::vector<Shape> all = {{203, 131}, {5, 50021}};
  return all;
}

const std::vector<std::pair<Shape, Shape>>& broadcast_pairs() {
  static const std::vector<std::pair<Shape, Shape>> all = {
      {{3, 37}, {37}}, {{37}, {3, 37}}, {{3, 1}, {3, 37}}, {{5, 1, 7}, {3, 1}},       {{}, {129}},
      {{129}, {1}},    {{0}, {1}},      {{3, 1}, {3, 0}},  {{2, 3, 4, 5}, {3, 1, 5}}, {{7, 1}, {7, 5003}}};
  return all;
}

Tensor special_values() {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  return Tensor::of({14}, {nan, inf, -inf, 0, -0.0, 1, -1, 88.5, -88.5, 1e4, -1e4, 1e-4, -1e-4, 12});
}

OpCase in_dtype(const OpCase& c, DType dtype) {
  OpCase other = c;
  for (size_t i = 0; i < c.in.size(); ++i) {
    const bool is_statistic = std::find(c.statistics.begin(), c.statistics.end(), static_cast<int32_t>(i)) != c.statistics.end();
    if (c.in[i].dtype() == DType::f32 && (dtype == DType::f64 || !is_statistic)) other.in[i] = c.in[i].to(dtype);
  }
  return other;
}

Result run(Backend& backend, const OpCase& c, int threads, int32_t alias, int64_t displaced) {
  Node node{.op = c.op, .in = {}, .out = {}, .reads = {}, .writes = {}, .attrs = make_attrs(c.op, c.attrs)};
  std::vector<Type> in_types;
  for (const Tensor& x : c.in) in_types.push_back(type_of(x));
  node.out = infer({.op = c.op, .in = in_types, .attrs = node.attrs}, Mesh{});

  Blocks in, out, slots;
  for (const Tensor& x : c.in) in.push_back(std::make_shared<Block>(backend, x, displaced));
  for (const Type& type : node.out) out.push_back(std::make_shared<Block>(backend, type, displaced));
  if (alias >= 0) out[0] = in[static_cast<size_t>(alias)];
  for (size_t i = 0; i < c.slots.size(); ++i) {
    slots.push_back(std::make_shared<Block>(backend, c.slots[i]));
    node.writes.push_back(static_cast<SlotId>(i));
  }
  if (c.op != Op::store) node.reads = node.writes;

  run_node(backend, workers_of(threads), node, in, out, slots);
  Result result;
  for (const auto& block : out) result.out.push_back(block->read());
  for (const auto& block : slots) result.slots.push_back(block->read());
  return result;
}

Result run_on_reference(Op op, const std::vector<Tensor>& in, const Attrs& attrs, const std::vector<Tensor>& slots) {
  return run(*make_reference(), {.op = op, .name = "", .in = in, .slots = slots, .attrs = attrs});
}

Program loss_program(const OpCase& c, const std::vector<Tensor>& seeds) {
  Program program;
  program.sections.push_back({.graph = {}, .phase = Phase::forward});
  Builder b(program, 0);
  std::vector<Value> in;
  for (int32_t i = 0; i < static_cast<int32_t>(c.in.size()); ++i) {
    const Tensor& x = c.in[static_cast<size_t>(i)];
    const std::string name = text("in.", i);
    const bool is_parameter = std::find(c.parameters.begin(), c.parameters.end(), i) != c.parameters.end();
    in.push_back(is_parameter ? b.parameter(name, x.shape(), Initializer{}, x.dtype()) : b.input(name, x.dtype(), x.shape()));
  }
  const std::vector<Value> out = b.append(c.op, in, c.attrs);
  for (size_t i = 0; i < out.size(); ++i) program.outputs.push_back({text("out.", i), out[i]});
  if (c.parameters.empty()) return program;

  Value loss;
  for (size_t i = 0; i < c.seeded.size(); ++i) {
    const Value y = out[static_cast<size_t>(c.seeded[i])];
    const Value seed = b.input(text("seed.", c.seeded[i]), seeds[i].dtype(), seeds[i].shape());
    const Value part = b.sum(b.mul(y, seed), {});
    loss = loss ? b.add(loss, part) : part;
  }
  program.loss_sum = loss;
  autodiff(program);
  return program;
}

}  // namespace st::conformance
