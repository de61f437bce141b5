// Our kernels on a device: their bits against the cpu's, and their rates. One JSON line a fact; without a device one line that says why.
// Built by CMake (target own_kernels), with the plug-in's own code and CUDA's runtime linked statically.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/device_profile.h"
#include "backend/cuda/enqueue.h"
#include "backend/cuda/product_tiles.h"
#include "backend/cuda/update_numbers.h"
#include "backend/kernel_side.h"
#include "backend/needs.h"
#include "base/combine.h"
#include "base/error.h"
#include "base/float16.h"
#include "base/float_mode.h"
#include "base/workers.h"
#include "kernel_rates.h"
#include "probe.h"

namespace {

using namespace st;
using namespace st::cuda;

std::string in_single_quotes(std::string words) {
  std::ranges::replace(words, '"', '\'');
  return words;
}

constexpr DType kFloats[] = {DType::f32, DType::bf16, DType::f16};

/// All 16-bit patterns; of fp32 64 for each upper half.
std::vector<uint8_t> patterns(DType dtype) {
  std::mt19937 random(3);
  std::vector<uint32_t> words;
  std::vector<uint16_t> halves;
  for (uint32_t upper = 0; upper < 0x10000; ++upper) {
    halves.push_back(static_cast<uint16_t>(upper));
    for (const uint32_t lower : {0x0000U, 0x0FFFU, 0x1000U, 0x1001U, 0x3000U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU})
      words.push_back(upper << 16 | lower);
    for (int i = 9; i < 64; ++i) words.push_back(upper << 16 | (random() & 0xFFFF));
  }
  const auto* const from =
      dtype == DType::f32 ? reinterpret_cast<const uint8_t*>(words.data()) : reinterpret_cast<const uint8_t*>(halves.data());
  return {from, from + (dtype == DType::f32 ? words.size() * 4 : halves.size() * 2)};
}

/// Random numbers of any sign around 1, and below the normal range.
std::vector<uint8_t> finite(DType dtype, int64_t elements, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> bytes(static_cast<size_t>(elements * bytes_of(dtype)));
  for (int64_t i = 0; i < elements; ++i) {
    const uint64_t small = random() % 4 == 0 ? 0 : 1;
    uint64_t bits = random();
    if (dtype == DType::f64) bits = (bits & 0x800FFFFFFFFFFFFF) | small * (1000 + random() % 40) << 52;
    if (dtype == DType::f32) bits = (bits & 0x807FFFFF) | small * (120 + random() % 20) << 23;
    if (dtype == DType::bf16) bits = (bits & 0x807F) | small * (120 + random() % 20) << 7;
    if (dtype == DType::f16) bits = (bits & 0x83FF) | (random() % 20) << 10;
    std::memcpy(bytes.data() + i * bytes_of(dtype), &bits, static_cast<size_t>(bytes_of(dtype)));
  }
  return bytes;
}

class Facts {
 public:
  explicit Facts(const HeldContext& context)
      : context_(context), device_(context, std::make_shared<MemorySource>()), stream_(device_.make_stream()) {}

  /// Elements with other bits than the cpu's, in all lines so far.
  int64_t different() const { return different_; }

  void casts() {
    for (const DType from : kFloats)
      for (const DType to : kFloats)
        if (from != to) cast(from, to);
    const DType all[] = {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i32, DType::i64, DType::u8};
    const auto is_one = [](DType dtype) { return std::ranges::find(kFloats, dtype) != std::end(kFloats); };
    for (const DType from : all)
      for (const DType to : all)
        if (from != to && !(is_one(from) && is_one(to)))
          op_bits(Op::cast, {to, {100003}}, {{from, {100003}}}, {{"dtype", std::string(name_of(to))}},
                  [](StreamHandle stream, const Call& call) {
                    const Operand &x = call.in[0], &y = call.out[0];
                    enqueue_cast(stream, y.dtype, as<void>(y), x.dtype, as<const void>(x), x.elements());
                  });
  }

  void fills() {
    const struct {
      DType dtype;
      uint64_t bits;
    } kFills[] = {{DType::u8, 200}, {DType::bf16, 0x3FC0}, {DType::f32, 0x3FC00000}, {DType::i64, 0xFFFFFFFFFFFFFFF9}};
    for (const auto& [dtype, bits] : kFills) {
      int64_t different = 0;
      for (const int64_t elements : {1, 15, 16, 17, 4095, 1000003}) {
        const int64_t size = bytes_of(dtype), bytes = elements * size;
        const auto y = device_.allocate(bytes + 64, MemoryRole::other);
        give([&] { enqueue_fill(stream_->handle(), dtype, pointer_to(y->data()), bits, elements); });
        std::vector<uint8_t> made(static_cast<size_t>(bytes + 64));
        device_.to_host(made.data(), y->data(), bytes + 64);
        for (int64_t i = 0; i < elements; ++i) different += std::memcmp(made.data() + i * size, &bits, static_cast<size_t>(size)) != 0;
        for (int64_t i = bytes; i < bytes + 64; ++i) different += made[static_cast<size_t>(i)] != 0;
      }
      probe::Line("own", "fill bits")("dtype", std::string(name_of(dtype)))("different", counted(different));
    }
  }

  /// Sums of ranks against the cpu's; no operand is NaN or infinite.
  void folds() {
    constexpr int64_t kElements = 1000003;
    constexpr int kTerms = 5;
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::u8}) {
      const int64_t bytes = kElements * bytes_of(dtype), sum_bytes = kElements * sum_bytes_of(dtype);
      std::vector<std::vector<uint8_t>> terms;
      std::vector<std::unique_ptr<Buffer>> buffers;
      std::vector<Address> here, there;
      for (int i = 0; i < kTerms; ++i) {
        terms.push_back(finite(dtype, kElements, static_cast<uint64_t>(i)));
        buffers.push_back(device_.allocate(bytes, MemoryRole::other));
        device_.to_device(buffers.back()->data(), terms.back().data(), bytes);
        here.push_back(address_of(terms.back().data()));
        there.push_back(buffers.back()->data());
      }
      const auto sums = device_.allocate(sum_bytes, MemoryRole::other);
      std::vector<uint8_t> made(static_cast<size_t>(sum_bytes)), wanted(made.size());
      give([&] { enqueue_fold(stream_->handle(), {.terms = there, .sums = sums->data(), .dtype = dtype, .elements = kElements}); });
      device_.to_host(made.data(), sums->data(), sum_bytes);
      {
        const FloatMode mode;
        run_fold({.terms = here, .sums = address_of(wanted.data()), .dtype = dtype, .elements = kElements});
      }
      int64_t different = 0;
      for (size_t i = 0; i < made.size(); ++i) different += made[i] != wanted[i];
      probe::Line("own", "fold bits")("dtype", std::string(name_of(dtype)))("of", sum_bytes)("different", counted(different));
    }
  }

  /// Elementwise ops, optimizers, dropout and movement against the cpu's kernels.
  void ops() {
    constexpr int64_t kElements = 1000003;
    const auto pointwise = [&](Op op, const Attrs& attrs, const Shape& y, const std::vector<Shape>& xs, DType dtype) {
      std::vector<Given> in;
      for (const Shape& x : xs) in.push_back({dtype, x});
      op_bits(op, {dtype, y}, in, attrs, [op](StreamHandle stream, const Call& call) { enqueue_pointwise(stream, op, call); });
    };
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
      for (const Op op : {Op::affine, Op::sqrt, Op::abs, Op::neg, Op::sign, Op::clamp, Op::relu})
        pointwise(op, {}, {kElements}, {{kElements}}, dtype);
      for (const Op op :
           {Op::add, Op::sub, Op::mul, Op::div, Op::minimum, Op::maximum, Op::relu_backward, Op::tanh_backward, Op::sigmoid_backward})
        pointwise(op, {}, {kElements}, {{kElements}, {kElements}}, dtype);
      pointwise(Op::mul, {}, {1003, 771}, {{1003, 771}, {771}}, dtype);
      pointwise(Op::div, {}, {1003, 768}, {{1003, 1}, {768}}, dtype);
      op_bits(Op::compare, {DType::boolean, {kElements}}, {{dtype, {kElements}}, {dtype, {kElements}}}, {{"test", std::string("less")}},
              [](StreamHandle stream, const Call& call) { enqueue_pointwise(stream, Op::compare, call); });
      op_bits(Op::dropout, {dtype, {1003, 771}}, {{dtype, {1003, 771}}, {DType::i64, {2}}}, {{"rate", 0.3}, {"seed", int64_t{7}}},
              [](StreamHandle stream, const Call& call) { enqueue_dropout(stream, Op::dropout, call); });
      op_bits(Op::transpose, {dtype, {65, 33, 771}}, {{dtype, {33, 771, 65}}}, {{"order", Ints{2, 0, 1}}},
              [](StreamHandle stream, const Call& call) { enqueue_rearranged(stream, Op::transpose, call); });
    }
    for (const Op op : {Op::adamw, Op::sgd, Op::lion, Op::rmsprop, Op::adagrad}) update_bits(op, kElements);
  }

  /// Products of small whole numbers, which are exact in any order of sums, against the cpu's, by each tile and layout.
  void products() {
    const Ints kSizes[] = {{131, 72, 200}, {300, 136, 96}, {33, 7, 45}, {33, 8, 5000}};  // the last: slices of sums
    for (const DType dtype : kFloats)
      for (const ProductTile& tile : product_tiles(dtype)) {
        int64_t different = 0, of = 0;
        for (const Ints& sizes : kSizes)
          for (const bool transpose_a : {false, true})
            for (const bool transpose_b : {false, true}) {
              const int64_t m = sizes[0], n = sizes[1], k = sizes[2];
              const Attrs attrs = make_attrs(Op::matmul, {{"transpose_a", transpose_a},
                                                          {"transpose_b", transpose_b},
                                                          {"result", std::string("f32")},
                                                          {"tiles", Ints{0, 0, tile.rows, tile.columns, 0, 0, 0, 0, 0}}});
              const Both a = both({dtype, transpose_a ? Shape{k, m} : Shape{m, k}}, whole(dtype, m * k, 1));
              const Both b = both({dtype, transpose_b ? Shape{n, k} : Shape{k, n}}, whole(dtype, n * k, 2));
              const Both c = both({DType::f32, {m, n}}, std::vector<uint8_t>(static_cast<size_t>(m * n * 4)));
              different += product_differences(a, b, c, attrs);
              of += m * n;
            }
        probe::Line("own", "product bits")("dtype", std::string(name_of(dtype)))("rows", tile.rows)("columns", tile.columns)("of", of)(
            "different", counted(different));
      }
  }

  /// All that may follow a product, forward and backward, by each tile: the bits of the smallest one.
  void finished_products() {
    constexpr std::pair<DType, DType> kTypes[] = {
        {DType::f32, DType::f32}, {DType::bf16, DType::bf16}, {DType::bf16, DType::f32}, {DType::f16, DType::f16}};
    for (const auto& [dtype, result] : kTypes)
      for (const bool is_backward : {false, true}) finished_product(dtype, result, is_backward);
  }

 private:
  int64_t counted(int64_t different) {
    different_ += different;
    return different;
  }

  struct Given {
    DType dtype;
    Shape shape;
  };

  /// Bytes of host and device that are alike.
  struct Both {
    std::vector<uint8_t> host;
    std::unique_ptr<Buffer> device;
    Given given;

    Operand here() const { return {address_of(host.data()), given.dtype, given.shape}; }
    Operand there() const { return {device->data(), given.dtype, given.shape}; }
  };
  Both both(const Given& given, std::vector<uint8_t> values) {
    Both made{std::move(values), nullptr, given};
    const auto bytes = static_cast<int64_t>(made.host.size());
    made.device = device_.allocate(std::max<int64_t>(1, bytes), MemoryRole::other);
    device_.to_device(made.device->data(), made.host.data(), bytes);
    return made;
  }

  /// Elements of the device's that have other bits than the host's; NaN equals NaN.
  int64_t differences(const Both& of) {
    std::vector<uint8_t> made(of.host.size());
    device_.to_host(made.data(), of.device->data(), static_cast<int64_t>(made.size()));
    const auto width = static_cast<size_t>(bytes_of(of.given.dtype));
    int64_t count = 0;
    for (size_t i = 0; i < made.size(); i += width)
      if (std::memcmp(made.data() + i, of.host.data() + i, width) != 0)
        count += !(is_nan(of.given.dtype, made.data() + i) && is_nan(of.given.dtype, of.host.data() + i));
    return count;
  }
  /// From -4 to 4.
  static std::vector<uint8_t> whole(DType dtype, int64_t elements, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<uint8_t> bytes(static_cast<size_t>(elements * bytes_of(dtype)));
    for (int64_t i = 0; i < elements; ++i) {
      const auto value = static_cast<float>(static_cast<int>(random() % 9) - 4);
      const uint16_t half = dtype == DType::bf16 ? bf16_of(value) : f16_of(value);
      std::memcpy(bytes.data() + i * bytes_of(dtype), dtype == DType::f32 ? static_cast<const void*>(&value) : &half,
                  static_cast<size_t>(bytes_of(dtype)));
    }
    return bytes;
  }
  int64_t product_differences(const Both& a, const Both& b, const Both& c, const Attrs& attrs) {
    const Operand there[] = {a.there(), b.there()}, c_there = c.there();
    Call call;
    call.attrs = &attrs;
    call.in = there;
    call.out = {&c_there, 1};
    give([&] { enqueue_product(stream_->handle(), Op::matmul, call); });
    const bool transpose_a = attrs.flag("transpose_a"), transpose_b = attrs.flag("transpose_b");
    GemmProblem p;
    p.m = c.given.shape[0];
    p.n = c.given.shape[1];
    p.k = a.given.shape[transpose_a ? 0 : 1];
    p.a = transpose_a ? MatrixStrides{1, p.m} : MatrixStrides{p.k, 1};
    p.b = transpose_b ? MatrixStrides{1, p.k} : MatrixStrides{p.n, 1};
    p.c = {p.n, 1};
    p.a_type = p.b_type = a.given.dtype;
    const GemmKernels& gemm = cpu_->gemm();
    const TileSchedule schedule = gemm.schedule(p, {});
    const int64_t bytes = gemm.workspace(p, schedule, 1);
    const auto workspace = cpu_->allocate(std::max<int64_t>(1, bytes), MemoryRole::workspace);
    const FloatMode mode;
    gemm.run(p, schedule, {a.host.data(), b.host.data(), pointer_to(address_of(c.host.data())), nullptr},
             {pointer_to(workspace->data()), static_cast<size_t>(bytes)}, workers_);
    return differences(c);
  }
  /// Three tiles of the largest each way, ragged.
  void finished_product(DType dtype, DType result, bool is_backward) {
    const int64_t m = 261, n = is_backward ? 264 : 261, k = 70;
    std::vector<Both> in, out;
    const auto add = [&](DType type, const Shape& shape) { in.push_back(both({type, shape}, whole(type, shape.elements(), in.size()))); };
    add(dtype, {m, k});
    add(dtype, is_backward ? Shape{n, k} : Shape{k, n});
    add(result, {n});
    if (is_backward) add(result, {m, n});
    add(result, {m, n});
    const auto zeros = [&](const Shape& shape) {
      out.push_back(both({result, shape}, std::vector<uint8_t>(static_cast<size_t>(shape.elements() * bytes_of(result)))));
    };
    zeros({m, n});
    if (!is_backward) zeros({m, n});
    zeros({n});
    std::vector<Operand> in_there, out_there;
    std::vector<Type> in_types, out_types;
    for (const Both& x : in) {
      in_there.push_back(x.there());
      in_types.push_back({.dtype = x.given.dtype, .shape = x.given.shape, .layout = {}});
    }
    for (const Both& y : out) {
      out_there.push_back(y.there());
      out_types.push_back({.dtype = y.given.dtype, .shape = y.given.shape, .layout = {}});
    }
    const auto tiles = product_tiles(dtype);
    for (auto tile = tiles.rbegin(); tile != tiles.rend(); ++tile) {
      const Attrs attrs = make_attrs(Op::fused_linear, {{"transpose_weight", is_backward},
                                                        {"bias", true},
                                                        {"residual", true},
                                                        {"column_sums", true},
                                                        {"backward", is_backward},
                                                        {"pre_activation", !is_backward},
                                                        {"activation", std::string(is_backward ? "gelu_tanh" : "silu")},
                                                        {"result", std::string(result == dtype ? "same" : "f32")},
                                                        {"tiles", Ints{0, 0, tile->rows, tile->columns, 0, 0, 0, 0, 0}}});
      const int64_t bytes = cuda_needs.workspace({}, Op::fused_linear, in_types, out_types, attrs);
      const auto workspace = device_.allocate(std::max<int64_t>(1, bytes), MemoryRole::workspace);
      Call call;
      call.attrs = &attrs;
      call.in = in_there;
      call.out = out_there;
      call.workspace = workspace->data();
      for (const Both& y : out)
        device_.to_device(y.device->data(), std::vector<uint8_t>(y.host.size()).data(), static_cast<int64_t>(y.host.size()));
      give([&] { enqueue_product(stream_->handle(), Op::fused_linear, call); });
      int64_t different = 0;
      for (Both& y : out) {
        if (tile == tiles.rbegin()) device_.to_host(y.host.data(), y.device->data(), static_cast<int64_t>(y.host.size()));
        different += differences(y);
      }
      probe::Line("own", "finished product bits")("dtype", std::string(name_of(dtype)))("result", std::string(name_of(result)))(
          "backward", is_backward)("rows", tile->rows)("columns", tile->columns)("of", m * n)("different", counted(different));
    }
  }
  static bool is_nan(DType dtype, const uint8_t* element) {
    uint64_t bits = 0;
    std::memcpy(&bits, element, static_cast<size_t>(bytes_of(dtype)));
    if (dtype == DType::f64) return (bits & 0x7FFFFFFFFFFFFFFF) > 0x7FF0000000000000;
    if (dtype == DType::f32) return (bits & 0x7FFFFFFF) > 0x7F800000;
    return (bits & 0x7FFF) > (dtype == DType::bf16 ? 0x7F80U : 0x7C00U) && is_floating(dtype);
  }

  void run_on_cpu(Op op, Call call) {
    const FloatMode mode;
    call.workers = &workers_;
    cpu_->kernels()[static_cast<size_t>(op)].run(call);
  }

  template <class Enqueue>
  void op_bits(Op op, const Given& y, const std::vector<Given>& xs, const Attrs& given, const Enqueue& enqueue) {
    const Attrs attrs = make_attrs(op, given);
    std::vector<Both> inputs;
    std::vector<Operand> here, there;
    for (const Given& x : xs) {
      inputs.push_back(both(x, finite(x.dtype, x.shape.elements(), inputs.size() + 1)));
      here.push_back(inputs.back().here());
      there.push_back(inputs.back().there());
    }
    Both out = both(y, std::vector<uint8_t>(static_cast<size_t>(y.shape.elements() * bytes_of(y.dtype))));
    const Operand out_here = out.here(), out_there = out.there();
    Call call;
    call.attrs = &attrs;
    call.in = there;
    call.out = {&out_there, 1};
    give([&] { enqueue(stream_->handle(), call); });
    call.in = here;
    call.out = {&out_here, 1};
    run_on_cpu(op, call);
    probe::Line("own", "op bits")("op", std::string(name_of(op)))("dtype", std::string(name_of(xs[0].dtype)))("of", y.shape.elements())(
        "different", counted(differences(out)));
  }

  /// Three steps with a bf16 gradient and a bf16 copy.
  void update_bits(Op op, int64_t elements) {
    const Attrs attrs = make_attrs(op, {});
    const size_t states = op == Op::sgd ? 0 : op == Op::adamw ? 2 : 1;
    std::vector<Both> slots;
    slots.push_back(both({DType::f32, {elements}}, finite(DType::f32, elements, 1)));
    for (size_t s = 0; s < states; ++s)
      slots.push_back(both({DType::f32, {elements}}, std::vector<uint8_t>(static_cast<size_t>(elements) * 4)));
    slots.push_back(both({DType::bf16, {elements}}, std::vector<uint8_t>(static_cast<size_t>(elements) * 2)));
    std::vector<Operand> slots_here, slots_there;
    for (const Both& slot : slots) {
      slots_here.push_back(slot.here());
      slots_there.push_back(slot.there());
    }
    for (const double number : {1, 2, 3}) {
      const float factor = 0.37F;
      const double rates[] = {0.01, number};
      const Both gradient = both({DType::bf16, {elements}}, finite(DType::bf16, elements, static_cast<uint64_t>(number) + 10));
      const Both inputs[] = {both({DType::f32, {}}, bytes_of_value(factor)), both({DType::boolean, {}}, {0}),
                             both({DType::f64, {2}}, bytes_of_value(rates))};
      const auto workspace = device_.allocate(sizeof(UpdateNumbers), MemoryRole::workspace);
      std::vector<Operand> here = {gradient.here()}, there = {gradient.there()};
      for (size_t i = 0; i < std::size(inputs); ++i) {
        here.push_back(inputs[i].here());
        there.push_back(inputs[i].there());
      }
      Call call;
      call.attrs = &attrs;
      call.in = there;
      call.reads = call.writes = slots_there;
      call.workspace = workspace->data();
      give([&] { enqueue_update(stream_->handle(), op, call); });
      call.in = here;
      call.reads = call.writes = slots_here;
      run_on_cpu(op, call);
    }
    int64_t different = 0;
    for (const Both& slot : slots) different += differences(slot);
    probe::Line("own", "update bits")("op", std::string(name_of(op)))("of", elements)("different", counted(different));
  }
  template <class T>
  static std::vector<uint8_t> bytes_of_value(const T& value) {
    const auto* const from = reinterpret_cast<const uint8_t*>(&value);
    return {from, from + sizeof value};
  }

  template <class Give>
  void give(const Give& body) {
    const CurrentDevice current(*context_);
    body();
    stream_->finish();
  }

  void cast(DType from, DType to) {
    const std::vector<uint8_t> given = patterns(from);
    const auto bytes = static_cast<int64_t>(given.size());
    const int64_t elements = bytes / bytes_of(from), made_bytes = elements * bytes_of(to);
    const auto x = device_.allocate(bytes, MemoryRole::other), y = device_.allocate(made_bytes, MemoryRole::other);
    device_.to_device(x->data(), given.data(), bytes);
    give([&] { enqueue_cast(stream_->handle(), to, pointer_to(y->data()), from, pointer_to(x->data()), elements); });
    std::vector<uint8_t> made(static_cast<size_t>(made_bytes)), wanted(made.size());
    device_.to_host(made.data(), y->data(), made_bytes);
    by_cpu(from, to, given.data(), wanted.data(), elements);
    int64_t different = 0;
    for (int64_t i = 0; i < elements; ++i)
      different += std::memcmp(made.data() + i * bytes_of(to), wanted.data() + i * bytes_of(to), static_cast<size_t>(bytes_of(to))) != 0;
    probe::Line("own", "cast bits")("from", std::string(name_of(from)))("to", std::string(name_of(to)))("of", elements)("different",
                                                                                                                        counted(different));
  }

  void by_cpu(DType from, DType to, const uint8_t* x, uint8_t* y, int64_t elements) {
    const Operand in = {address_of(x), from, Shape({elements})}, out = {address_of(y), to, Shape({elements})};
    const Attrs none;
    Call call;
    call.in = {&in, 1};
    call.out = {&out, 1};
    call.attrs = &none;
    call.workers = &workers_;
    cpu_->kernels()[static_cast<size_t>(Op::cast)].run(call);
  }

  int64_t different_ = 0;
  HeldContext context_;
  CudaDevice device_;
  std::unique_ptr<CudaStream> stream_;
  std::unique_ptr<Backend> cpu_ = make_cpu_backend();
  Workers workers_{1};
};

/// The first device that kernels can use; nothing, and a line that says why, without one.
std::optional<DeviceProfile> usable_device() {
  try {
    const std::vector<DeviceProfile> devices = device_profiles(load_driver());
    require(!devices.empty(), Code::unavailable, "the driver lists no device");
    check_usable(devices.front());
    return devices.front();
  } catch (const Error& why) {
    if (why.code() != Code::unavailable) throw;
    probe::Line("skipped", in_single_quotes(why.message()));
    return std::nullopt;
  }
}

}  // namespace

/// 1: a kernel failed, or its bits differ. What fails later than the search for a device is no reason to skip.
int main() {
  try {
    const std::optional<DeviceProfile> device = usable_device();
    if (!device) return 0;
    probe::Line("own", "device")("profile", device->text())("machine", device->machine().kernel_class);
    const auto context = std::make_shared<const DeviceContext>(load_driver(), 0);
    Facts facts(context);
    facts.casts();
    facts.fills();
    facts.folds();
    facts.ops();
    facts.products();
    facts.finished_products();
    print_kernel_rates(context, std::make_shared<MemorySource>());
    return facts.different() > 0 ? 1 : 0;
  } catch (const std::exception& why) {
    probe::Line("error", in_single_quotes(why.what()));
    return 1;
  }
}
