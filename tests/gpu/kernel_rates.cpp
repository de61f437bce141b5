#include "kernel_rates.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/enqueue.h"
#include "backend/cuda/product_tiles.h"
#include "backend/kernel_side.h"
#include "backend/needs.h"
#include "ir/op.h"
#include "probe.h"

namespace st {
namespace {

using namespace st::cuda;

constexpr int64_t kGpt2 = 124475904;  // parameters of GPT-2 124M with a vocabulary of 50,304

enum class Work { bytes, flops };  // of a call: its rate is in GB/s or in TFLOP/s

class KernelRates {
 public:
  KernelRates(const cuda::HeldContext& context, std::shared_ptr<MemorySource> memory, int64_t smaller)
      : context_(context), smaller_(smaller), device_(context, std::move(memory)), stream_(device_.make_stream()) {}

  void movement() {
    const int64_t elements = (int64_t{1} << 28) / smaller_;
    const Operand x = values(DType::f32, {elements}), y = values(DType::f32, {elements});
    const auto rate = [&](const char* what, int64_t bytes, const auto& body) { line(what, Work::bytes, bytes, body); };
    rate("copy by the runtime", 8 * elements, [&] { stream_->copy(y.data, x.data, elements * 4); });
    rate("fill f32", 4 * elements, [&] { enqueue_fill(stream_->handle(), DType::f32, pointer_to(y.data), 0x3FC00000, elements); });
    const auto cast_rate = [&](const char* what, DType to, DType from, int64_t bytes) {
      rate(what, bytes, [&] { enqueue_cast(stream_->handle(), to, pointer_to(y.data), from, pointer_to(x.data), elements); });
    };
    cast_rate("cast f32 to bf16", DType::bf16, DType::f32, 6 * elements);
    cast_rate("cast f32 to f16", DType::f16, DType::f32, 6 * elements);
    cast_rate("cast bf16 to f32", DType::f32, DType::bf16, 6 * elements);
    cast_rate("cast f16 to f32", DType::f32, DType::f16, 6 * elements);
    const int64_t sums = elements / 8;
    std::vector<Address> terms;
    for (int64_t i = 0; i < 8; ++i) terms.push_back(x.data + i * sums * 2);
    rate("fold 8 of bf16", (8 * 2 + 4) * sums,
         [&] { enqueue_fold(stream_->handle(), {.terms = terms, .sums = y.data, .dtype = DType::bf16, .elements = sums}); });
    free_all();
  }

  void products() {
    const int64_t side = std::max<int64_t>(64, 4096 / smaller_);
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const std::vector<Operand> in = {values(dtype, {side, side}), values(dtype, {side, side})}, out = {values(dtype, {side, side})};
      for (const ProductTile& tile : product_tiles(dtype))
        measure(text("product of ", side, ", ", name_of(dtype), ", tile ", tile.rows, " x ", tile.columns), Op::matmul,
                {{"tiles", Ints{0, 0, tile.rows, tile.columns, 0, 0, 0, 0, 0}}}, in, out, {}, Work::flops, 2 * side * side * side,
                enqueue_product);
      free_all();
    }
  }

  /// The norm, its factor and the update: what a step does with the gradients of GPT-2 124M, as one tensor.
  void adamw() {
    const int64_t parameters = kGpt2 / smaller_;
    const Operand gradient = values(DType::f32, {parameters}), count = doubles({1}), rates = doubles({1e-4, 1});
    const Operand norm = zeros(DType::f64, {}), finite = zeros(DType::boolean, {}), factor = zeros(DType::f32, {}),
                  true_norm = zeros(DType::f64, {}), skip = zeros(DType::boolean, {});
    const std::vector<Operand> state = {values(DType::f32, {parameters}), values(DType::f32, {parameters}),
                                        zeros(DType::f32, {parameters})};
    const int64_t bytes = 28 * parameters, of_norm = 4 * parameters;
    const Prepared squares(*this, Op::gradient_norm, {}, {gradient}, {norm, finite}, {});
    const Prepared clip(*this, Op::step_factor, {{"max_norm", 1.0}}, {norm, finite, count}, {factor, true_norm, skip}, {});
    const Prepared update(*this, Op::adamw, {}, {gradient, factor, skip, rates}, {}, state);
    squares.give(enqueue_gradient_norm);
    clip.give(enqueue_step_factor);
    line("adamw 124M: step, of 28 bytes", Work::bytes, bytes, [&] { update.give(enqueue_update); });
    line("gradient norm 124M", Work::bytes, of_norm, [&] { squares.give(enqueue_gradient_norm); });
    line("adamw 124M: unscale, norm, clip, step, of 28 bytes", Work::bytes, bytes, [&] {
      squares.give(enqueue_gradient_norm);
      clip.give(enqueue_step_factor);
      update.give(enqueue_update);
    });
    free_all();
  }

  void norms() {
    for (const auto& [width, all_rows] : {std::pair{int64_t{768}, int64_t{262144}}, {1600, 131072}})
      for (const DType dtype : {DType::bf16, DType::f32}) {
        const int64_t rows = std::max<int64_t>(1, all_rows / smaller_);
        const Shape x = {rows, width}, of_row = {rows}, of_column = {width};
        measure(text("layer norm backward, ", rows, " x ", width, ", ", name_of(dtype)), Op::layer_norm_backward, {},
                {values(dtype, x), values(dtype, of_column), values(DType::f32, of_row), values(DType::f32, of_row), values(dtype, x)},
                {values(dtype, x), values(dtype, of_column), values(dtype, of_column)}, {}, Work::bytes, 3 * rows * width * bytes_of(dtype),
                enqueue_norm);
        free_all();
      }
  }

  void attention() {
    constexpr int64_t kHead = 64;
    const int64_t time = std::max<int64_t>(16, 1024 / smaller_);
    for (const auto& [most, heads] : {std::pair{int64_t{16}, int64_t{12}}, {8, 25}}) {
      const int64_t batch = std::max<int64_t>(1, most / smaller_);
      const Shape all = {batch, time, heads, kHead}, of_row = {batch, heads, time};
      const auto operand = [&] { return values(DType::bf16, all); };
      const Operand q = operand(), k = operand(), v = operand(), o = operand(), lse = values(DType::f32, of_row);
      const int64_t flops = 4 * batch * heads * time * time * kHead / 2;  // causal: half of the square
      const std::string shape = text(batch, " x ", heads, " x ", time, " x ", kHead, ", bf16, causal");
      measure("attention " + shape, Op::attention, {}, {q, k, v}, {o, lse}, {}, Work::flops, flops, enqueue_attention);
      measure("attention backward " + shape, Op::attention_backward, {}, {q, k, v, o, lse, operand()}, {operand(), operand(), operand()},
              {}, Work::flops, 5 * flops / 2, enqueue_attention_backward);
      free_all();
    }
  }

 private:
  /// A call whose operands and workspace stay while it is measured.
  class Prepared {
   public:
    Prepared(KernelRates& rates, Op op, const Attrs& given, std::vector<Operand> in, std::vector<Operand> out, std::vector<Operand> slots)
        : stream_(rates.stream_->handle()),
          op_(op),
          attrs_(make_attrs(op, given)),
          in_(std::move(in)),
          out_(std::move(out)),
          slots_(std::move(slots)) {
      const int64_t bytes = cuda_needs.workspace({}, op, types_of(in_), types_of(out_), attrs_);
      call_.attrs = &attrs_;
      call_.in = in_;
      call_.out = out_;
      call_.reads = call_.writes = slots_;
      call_.workspace = rates.zeros(DType::u8, {std::max<int64_t>(1, bytes)}).data;
    }
    Prepared(const Prepared&) = delete;

    template <class Enqueue>
    void give(const Enqueue& enqueue) const {
      enqueue(stream_, op_, call_);
    }

   private:
    static std::vector<Type> types_of(const std::vector<Operand>& operands) {
      std::vector<Type> types;
      for (const Operand& of : operands) types.push_back({.dtype = of.dtype, .shape = of.shape, .layout = {}});
      return types;
    }

    cudaStream_t stream_;
    Op op_;
    Attrs attrs_;
    std::vector<Operand> in_, out_, slots_;
    Call call_;
  };

  template <class Enqueue>
  void measure(const std::string& what, Op op, const Attrs& attrs, std::vector<Operand> in, std::vector<Operand> out,
               std::vector<Operand> slots, Work work, int64_t of_call, const Enqueue& enqueue) {
    const Prepared call(*this, op, attrs, std::move(in), std::move(out), std::move(slots));
    line(what, work, of_call, [&] { call.give(enqueue); });
  }

  template <class Body>
  void line(const std::string& what, Work work, int64_t of_call, const Body& body) {
    const CurrentDevice current(*context_);
    std::vector<double> ms = probe::device_ms(stream_->handle(), smaller_ > 1 ? 1 : 20, smaller_ > 1 ? 1 : 4, [&](int) { body(); }), rates;
    const double in_unit = static_cast<double>(of_call) / (work == Work::bytes ? 1e6 : 1e9);
    for (const double each : ms) rates.push_back(in_unit / each);
    probe::Line("own", what)("ms", probe::spread(std::move(ms)))(work == Work::bytes ? "gb_s" : "tflops", probe::spread(std::move(rates)));
  }

  Operand zeros(DType dtype, const Shape& shape) {
    buffers_.push_back(device_.allocate(std::max<int64_t>(1, shape.elements() * bytes_of(dtype)), MemoryRole::other));
    return {buffers_.back()->data(), dtype, shape};
  }

  Operand doubles(const std::vector<double>& numbers) {
    const Operand made = zeros(DType::f64, numbers.size() == 1 ? Shape() : Shape({std::ssize(numbers)}));
    device_.to_device(made.data, numbers.data(), std::ssize(numbers) * 8);
    return made;
  }

  /// Numbers between 2^-4 and 1 of either sign, a million in turn: power, and so the clock, depend on them. Of types that are no floats, 1.
  Operand values(DType dtype, const Shape& shape) {
    constexpr int64_t kAtOnce = 1 << 20;
    const Operand made = zeros(dtype, shape);
    const int64_t width = bytes_of(dtype), elements = shape.elements(), at_once = std::min(elements, kAtOnce);
    std::mt19937_64 random(buffers_.size());
    std::vector<uint8_t> bytes(static_cast<size_t>(at_once * width));
    for (int64_t i = 0; i < at_once; ++i) {
      const uint64_t drawn = random(), power = random() % 4;
      uint64_t bits = 1;
      if (dtype == DType::f64) bits = (drawn & 0x800FFFFFFFFFFFFF) | (1019 + power) << 52;
      if (dtype == DType::f32) bits = (drawn & 0x807FFFFF) | (123 + power) << 23;
      if (dtype == DType::bf16) bits = (drawn & 0x807F) | (123 + power) << 7;
      std::memcpy(bytes.data() + i * width, &bits, static_cast<size_t>(width));
    }
    for (int64_t first = 0; first < elements; first += at_once)
      device_.to_device(made.data + first * width, bytes.data(), std::min(at_once, elements - first) * width);
    return made;
  }

  void free_all() {
    stream_->finish();
    buffers_.clear();
  }

  cuda::HeldContext context_;
  int64_t smaller_;
  CudaDevice device_;
  std::unique_ptr<CudaStream> stream_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
};

}  // namespace

void print_kernel_rates(const cuda::HeldContext& device, std::shared_ptr<MemorySource> memory, int64_t smaller) {
  KernelRates rates(device, std::move(memory), smaller);
  rates.movement();
  rates.products();
  rates.adamw();
  rates.norms();
  rates.attention();
}

}  // namespace st
