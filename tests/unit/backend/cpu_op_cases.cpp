#include "cpu_op_cases.h"

#include <cmath>

#include "ir/optimizer_state.h"
#include "ir/rules.h"

namespace st {
namespace {

/// Floats in [-size, size).
Array floats(const Shape& shape, uint64_t seed, float size = 1) {
  std::vector<float> values = random_floats(shape.elements(), seed);
  for (float& v : values) v *= size;
  return Array::of<float>(shape, values);
}

Array positive(const Shape& shape, uint64_t seed) {
  std::vector<float> values = random_floats(shape.elements(), seed);
  for (float& v : values) v = 0.05F + v * v;
  return Array::of<float>(shape, values);
}

Array indices(const Shape& shape, int64_t below, uint64_t seed) {
  std::vector<int64_t> values;
  for (const float v : random_floats(shape.elements(), seed))
    values.push_back(static_cast<int64_t>((v * 0.5F + 0.5F) * static_cast<float>(below)));
  return Array::of<int64_t>(shape, values);
}

Array booleans(const Shape& shape, uint64_t seed) {
  Array array(DType::boolean, shape);
  const std::vector<float> values = random_floats(shape.elements(), seed);
  for (size_t i = 0; i < values.size(); ++i) array.as<uint8_t>()[i] = values[i] > 0 ? 1 : 0;
  return array;
}

/// log sum e^x of each row.
Array log_sums(const Array& x) {
  const int64_t columns = x.shape().last(), rows = x.elements() / columns;
  Array lse(DType::f32, {rows});
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < columns; ++c) sum += std::exp(static_cast<double>(x.as<float>()[r * columns + c]));
    lse.as<float>()[r] = static_cast<float>(std::log(sum));
  }
  return lse;
}

Array scalar(double value) { return Array::of<double>(Shape{}, {value}); }

const Shape kFlat = {67, 1031};  // 69,077 elements: five tasks, the last one short, no multiple of any vector
const Shape kRows = {203, 131};  // rows shorter than a task
const Shape kWide = {5, 50021};  // rows longer than a task

void add_elementwise(std::vector<CpuOpCase>& cases) {
  for (const Op op : {Op::exp, Op::abs, Op::neg, Op::sign, Op::gelu, Op::relu, Op::silu, Op::tanh, Op::sigmoid}) {
    cases.push_back({std::string(name_of(op)), op, {floats(kFlat, 1, 6)}});
  }
  for (const Op op : {Op::gelu_backward, Op::relu_backward, Op::silu_backward, Op::tanh_backward, Op::sigmoid_backward}) {
    cases.push_back({std::string(name_of(op)), op, {floats(kFlat, 1, op == Op::gelu_backward ? 6.0F : 0.9F), floats(kFlat, 2)}});
  }
  cases.push_back({"gelu by erf", Op::gelu, {floats(kFlat, 1, 5)}, {{"approximate", std::string("erf")}}});
  cases.push_back(
      {"gelu_backward by erf", Op::gelu_backward, {floats(kFlat, 1, 5), floats(kFlat, 2)}, {{"approximate", std::string("erf")}}});
  for (const Op op : {Op::log, Op::sqrt}) cases.push_back({std::string(name_of(op)), op, {positive(kFlat, 1)}});
  cases.push_back({"affine", Op::affine, {floats(kFlat, 1)}, {{"scale", 1.7}, {"shift", -0.3}}});
  cases.push_back({"clamp", Op::clamp, {floats(kFlat, 1)}, {{"low", -0.25}, {"high", 0.5}}});
  cases.push_back({"cast to bf16", Op::cast, {floats(kFlat, 1)}, {{"dtype", std::string("bf16")}}});
  cases.push_back({"cast to i32", Op::cast, {floats(kFlat, 1, 1000)}, {{"dtype", std::string("i32")}}});
  for (const Op op : {Op::add, Op::sub, Op::mul, Op::minimum, Op::maximum}) {
    cases.push_back({std::string(name_of(op)), op, {floats(kFlat, 1), floats(kFlat, 2)}});
  }
  cases.push_back({"add a row", Op::add, {floats(kFlat, 1), floats({1031}, 2)}});
  cases.push_back({"sub a column", Op::sub, {floats(kFlat, 1), floats({67, 1}, 2)}});
  cases.push_back({"mul by a scalar", Op::mul, {floats({}, 1), floats(kFlat, 2)}});
  cases.push_back({"mul of short rows", Op::mul, {floats({9001, 7}, 1), floats({9001, 1}, 2)}});
  cases.push_back({"add crosswise", Op::add, {floats({17, 1, 19, 1}, 1), floats({23, 1, 29}, 2)}});
  cases.push_back({"div", Op::div, {floats(kFlat, 1), positive(kFlat, 2)}});
  cases.push_back({"pow", Op::pow, {positive(kFlat, 1), floats(kFlat, 2, 3)}});
  cases.push_back({"compare", Op::compare, {floats(kFlat, 1), floats({1031}, 2)}, {{"test", std::string("less")}}});
  cases.push_back({"where", Op::where, {booleans(kFlat, 1), floats({1031}, 2), floats(kFlat, 3)}});
  cases.push_back({"dropout",
                   Op::dropout,
                   {floats({67, 1031}, 1), Array::of<int64_t>({2}, {7, 1000})},
                   {{"rate", 0.3}, {"site", int64_t{5}}, {"seed", int64_t{11}}, {"sample_elements", int64_t{1031}}}});
}

void add_rows(std::vector<CpuOpCase>& cases) {
  for (const Shape& shape : {kRows, kWide}) {
    const std::string size = shape == kWide ? " of wide rows" : "";
    const Shape statistic = {shape[0]}, line = {shape[1]};
    Array off_center = floats(shape, 1, 3);  // a mean near zero would be nothing but the rounding of its terms
    for (int64_t i = 0; i < off_center.elements(); ++i) off_center.as<float>()[i] += 1;
    cases.push_back({"layer_norm" + size, Op::layer_norm, {off_center, floats(line, 2), floats(line, 3)}});
    cases.push_back({"layer_norm_backward" + size,
                     Op::layer_norm_backward,
                     {floats(shape, 1), floats(line, 2), floats(statistic, 3, 0.1F), positive(statistic, 4), floats(shape, 5)}});
    cases.push_back({"rms_norm" + size, Op::rms_norm, {floats(shape, 1, 3), floats(line, 2)}});
    cases.push_back(
        {"rms_norm_backward" + size, Op::rms_norm_backward, {floats(shape, 1), floats(line, 2), positive(statistic, 3), floats(shape, 4)}});
    cases.push_back(
        {"cross_entropy" + size, Op::cross_entropy, {floats(shape, 1, 4), indices(statistic, shape[1], 2), positive(statistic, 3)}});
    cases.push_back({"fused_cross_entropy" + size,
                     Op::fused_cross_entropy,
                     {floats(shape, 1, 4), indices(statistic, shape[1], 2), scalar(0.25), positive(statistic, 3)}});
    cases.push_back({"argmax" + size, Op::argmax, {floats(shape, 1)}});
    for (const int64_t axis : {0, 1}) {
      const std::string along = size + " along axis " + std::to_string(axis);
      for (const Op op : {Op::softmax, Op::log_softmax}) {
        cases.push_back({std::string(name_of(op)) + along, op, {floats(shape, 1, 4)}, {{"axis", axis}}});
      }
      for (const Op op : {Op::softmax_backward, Op::log_softmax_backward}) {
        cases.push_back({std::string(name_of(op)) + along, op, {floats(shape, 1), floats(shape, 2)}, {{"axis", axis}}});
      }
    }
  }
  const Array logits = floats(kRows, 1, 4);
  cases.push_back({"cross_entropy_backward",
                   Op::cross_entropy_backward,
                   {logits, indices({203}, 131, 2), log_sums(logits), scalar(0.25), positive({203}, 4)}});
  for (const Op op : {Op::bce_with_logits, Op::mse, Op::huber}) {
    cases.push_back({std::string(name_of(op)), op, {floats(kFlat, 1, 3), floats(kFlat, 2), positive(kFlat, 3)}});
  }
  for (const Op op : {Op::bce_with_logits_backward, Op::mse_backward, Op::huber_backward}) {
    cases.push_back({std::string(name_of(op)), op, {floats(kFlat, 1, 3), floats(kFlat, 2), scalar(0.5), positive(kFlat, 3)}});
  }
  cases.push_back({"rope", Op::rope, {floats({3, 37, 5, 26}, 1)}, {{"offset", int64_t{3}}}});
}

void add_reductions(std::vector<CpuOpCase>& cases) {
  const Shape cube = {37, 71, 53};
  for (const Op op : {Op::sum, Op::mean, Op::max}) {
    for (const Ints& axes : {Ints{}, Ints{0}, Ints{1}, Ints{2}, Ints{0, 1}, Ints{1, 2}, Ints{0, 2}}) {
      cases.push_back({text(name_of(op), " over ", std::span<const int64_t>(axes)), op, {floats(cube, 1)}, {{"axes", axes}}});
    }
  }
}

void add_movement(std::vector<CpuOpCase>& cases) {
  const Shape cube = {37, 71, 53};
  cases.push_back({"broadcast_to", Op::broadcast_to, {floats({71, 1}, 1)}, {{"shape", Ints{37, 71, 53}}}});
  for (const Ints& order : {Ints{0, 2, 1}, Ints{2, 1, 0}, Ints{1, 0, 2}, Ints{1, 2, 0}, Ints{0, 1, 2}}) {
    cases.push_back({text("transpose ", std::span<const int64_t>(order)), Op::transpose, {floats(cube, 1)}, {{"order", order}}});
  }
  for (const int64_t axis : {0, 1, 2}) {
    const std::string along = " along axis " + std::to_string(axis);
    const int64_t size = cube[static_cast<int32_t>(axis)];
    Shape other = cube;
    other[static_cast<int32_t>(axis)] = 11;
    cases.push_back({"slice" + along, Op::slice, {floats(cube, 1)}, {{"axis", axis}, {"start", int64_t{3}}, {"end", int64_t{30}}}});
    cases.push_back({"pad" + along, Op::pad, {floats(cube, 1)}, {{"axis", axis}, {"before", int64_t{2}}, {"after", int64_t{5}}}});
    cases.push_back({"split" + along, Op::split, {floats(cube, 1)}, {{"axis", axis}, {"sizes", Ints{7, 0, size - 7}}}});
    cases.push_back({"concat" + along, Op::concat, {floats(cube, 1), floats(other, 2), floats(cube, 3)}, {{"axis", axis}}});
    Shape chosen = cube;
    chosen[static_cast<int32_t>(axis)] = 19;
    cases.push_back({"gather" + along, Op::gather, {floats(cube, 1), indices(chosen, size, 2)}, {{"axis", axis}}});
    cases.push_back(
        {"gather_backward" + along, Op::gather_backward, {indices(cube, 19, 1), floats(cube, 2)}, {{"axis", axis}, {"size", int64_t{19}}}});
  }
  cases.push_back({"embedding", Op::embedding, {floats({997, 129}, 1), indices({4, 150}, 997, 2)}});
  cases.push_back(
      {"embedding_backward", Op::embedding_backward, {indices({4, 150}, 97, 1), floats({4, 150, 129}, 2)}, {{"rows", int64_t{997}}}});
  cases.push_back({"fill", Op::fill, {}, {{"shape", Ints{67, 1031}}, {"value", 1.25}}});
}

void add_updates(std::vector<CpuOpCase>& cases) {
  cases.push_back({"store", Op::store, {floats(kFlat, 1)}, {}, {floats(kFlat, 2)}});
  cases.push_back({"accumulate", Op::accumulate, {floats(kFlat, 1)}, {}, {floats(kFlat, 2)}});
  cases.push_back({"average",
                   Op::average,
                   {floats(kFlat, 1), Array(DType::boolean, {}), Array::of<double>({2}, {1e-2, 3})},
                   {{"decay", 0.9}},
                   {floats(kFlat, 2)}});
  cases.push_back({"gradient_norm", Op::gradient_norm, {floats(kFlat, 1), floats({7}, 2), floats({1024}, 3), floats(kWide, 4)}});
  cases.push_back({"gradient_squares", Op::gradient_squares, {floats(kFlat, 1), floats({7}, 2), floats({1024}, 3), floats(kWide, 4)}});
  cases.push_back(
      {"norm_of_squares", Op::norm_of_squares, {Array::of<double>({5}, {1, 0.1, 3, 0.7, 1e-9})}, {{"tensors", Ints{0, 3, 3, 2}}}});
  Array finite(DType::boolean, {});
  *finite.as<uint8_t>() = 1;
  cases.push_back({"step_factor", Op::step_factor, {scalar(3), finite, scalar(128)}, {{"seed", 0.5}, {"max_norm", 0.01}}});
  for (const Op op : {Op::adamw, Op::adamw_8bit, Op::sgd, Op::lion, Op::rmsprop, Op::adagrad, Op::adafactor, Op::muon}) {
    const Shape shape = op == Op::adafactor || op == Op::muon ? kRows : kFlat;
    Attrs attrs;
    if (op == Op::sgd || op == Op::rmsprop) attrs.set("momentum", 0.9);
    CpuOpCase c{std::string(name_of(op)),
                op,
                {floats(shape, 1), Array::of<float>(Shape{}, {0.5F}), Array(DType::boolean, {}), Array::of<double>({2}, {1e-2, 3})},
                attrs,
                {floats(shape, 2)}};
    uint64_t seed = 3;
    for (const OptimizerState& state : optimizer_state(op, make_attrs(op, attrs), {.dtype = DType::f32, .shape = shape, .layout = {}}))
      c.slots.push_back(state.type.dtype == DType::u8 ? Array(DType::u8, state.type.shape) : positive(state.type.shape, seed++));
    cases.push_back(c);
  }
}

std::vector<CpuOpCase> make_cases() {
  std::vector<CpuOpCase> cases;
  add_elementwise(cases);
  add_rows(cases);
  add_reductions(cases);
  add_movement(cases);
  add_updates(cases);
  return cases;
}

std::vector<Operand> operands(std::vector<Array>& arrays) {
  std::vector<Operand> list;
  for (Array& a : arrays) list.push_back({a.as<void>(), a.type.dtype, a.type.shape});
  return list;
}

}  // namespace

const std::vector<CpuOpCase>& cpu_op_cases() {
  static const std::vector<CpuOpCase> cases = make_cases();
  return cases;
}

OpResult run_on(const CpuSet& set, const CpuOpCase& c, int threads) {
  const Attrs attrs = make_attrs(c.op, c.attrs);
  std::vector<Type> in_types;
  for (const Array& a : c.in) in_types.push_back(a.type);
  const std::vector<Type> out_types = infer({c.op, in_types, attrs}, {});
  OpResult result;
  result.slots = c.slots;
  for (const Type& type : out_types) {
    result.out.emplace_back(type.dtype, type.shape);
    if (type.bytes() > 0) std::memset(result.out.back().as<void>(), 0xFF, static_cast<size_t>(type.bytes()));  // none of nothing: NULL
  }
  const Kernel& kernel = (*set.table)[static_cast<size_t>(c.op)];
  GuardedScratch scratch(kernel.workspace == nullptr ? 0 : kernel.workspace(in_types, out_types, attrs, threads));
  Workers workers(threads);
  std::vector<Array> copies = c.in;
  const std::vector<Operand> in = operands(copies), out = operands(result.out), slots = operands(result.slots);
  kernel.run({in, out, slots, slots, &attrs, scratch.bytes(), &workers});
  result.within_workspace = scratch.is_whole();
  return result;
}

bool same_bits(const Array& a, const Array& b) {
  const int64_t bytes = a.type.bytes();
  return a.type == b.type && (bytes == 0 || std::memcmp(a.as<char>(), b.as<char>(), static_cast<size_t>(bytes)) == 0);
}

}  // namespace st
