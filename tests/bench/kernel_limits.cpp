// How near each hot kernel comes to its limit: a loop that only reads and writes as much, on arrays of the same size, or the FMA loop. Each
// is measured in turn with the kernel, and the slower one counts: kernels wait for memory or are bound by arithmetic.
// Usage: kernel_limits [threads [rounds [part of a name]]]; SCALETRAIN_ISA=avx2 selects another kernel class.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "backend/kernel_side.h"
#include "backend/needs.h"
#include "base/float_mode.h"
#include "base/os/machine.h"
#include "base/text.h"
#include "fma_peak.h"
#include "ir/op.h"
#include "samples.h"

namespace {

using bench::quantile;
using st::DType;
using st::Op;
using st::Shape;

/// A loop over `elements` floats that reads and writes these numbers of arrays. If in_place, it writes the last ones that it read.
struct Stream {
  int reads, writes;
  bool in_place;
  int64_t elements;
};

struct Case {
  std::string name;
  Op op;
  st::Attrs attrs;
  std::vector<st::Type> in, out, slots;
  std::vector<Stream> streams;
  double vector_operations = 0;  // per lane: multiply-adds, and operations that take as long
};

st::Type type(Shape shape, DType dtype = DType::f32) { return {.dtype = dtype, .shape = shape, .layout = {}}; }

std::vector<Case> all_cases() {
  constexpr int64_t kRows = 1024, kWidth = 768, kHeads = 12, kHead = 64;
  const st::Type rows = type({kRows, kWidth}), wide = type({kRows, 4 * kWidth}), line = type({kWidth}), row = type({kRows});
  const int64_t n = kRows * kWidth;
  // e^x: clamping, the power of two, the rest, six coefficients, r^2, the last two steps, the scaling.
  constexpr double kExp = 14;
  std::vector<Case> cases;
  for (const auto& [batch, context] : {std::array<int64_t, 2>{4, 256}, {1, 1024}}) {
    const st::Type q = type({batch, context, kHeads, kHead}), lse = type({batch, kHeads, context});
    const double scores = static_cast<double>(batch * kHeads * context * (context + 1)) / 2;
    const std::string at = st::text(" ", batch, " x ", context);
    cases.push_back({"attention" + at, Op::attention, {}, {q, q, q}, {q, lse}, {}, {}, scores * (2 * kHead + kExp + 3)});
    cases.push_back(
        {"attention_backward" + at, Op::attention_backward, {}, {q, q, q, q, lse, q}, {q, q, q}, {}, {}, scores * (5 * kHead + kExp + 4)});
  }
  cases.push_back({"layer_norm", Op::layer_norm, {}, {rows, line, line}, {rows, row, row}, {}, {{1, 1, false, n}}});
  cases.push_back(
      {"layer_norm_backward", Op::layer_norm_backward, {}, {rows, line, row, row, rows}, {rows, line, line}, {}, {{2, 1, false, n}}});
  cases.push_back({"rms_norm", Op::rms_norm, {}, {rows, line}, {rows, row}, {}, {{1, 1, false, n}}});
  cases.push_back({"rms_norm_backward", Op::rms_norm_backward, {}, {rows, line, row, rows}, {rows, line}, {}, {{2, 1, false, n}}});
  cases.push_back({"gelu", Op::gelu, {}, {wide}, {wide}, {}, {{1, 1, false, 4 * n}}, 4.0 * static_cast<double>(n) * (kExp + 5)});
  cases.push_back({"gelu_backward",
                   Op::gelu_backward,
                   {},
                   {wide, wide},
                   {wide},
                   {},
                   {{2, 1, false, 4 * n}},
                   4.0 * static_cast<double>(n) * (kExp + 15)});
  cases.push_back({"add", Op::add, {}, {rows, rows}, {rows}, {}, {{2, 1, false, n}}});
  for (const int64_t vocabulary : {8192, 50257}) {
    const st::Type logits = type({kRows, vocabulary}), targets = type({kRows}, DType::i32), one = type({}, DType::f64);
    const st::Type table = type({vocabulary, kWidth});
    const int64_t all = kRows * vocabulary, size = vocabulary * kWidth;
    const std::string at = st::text(" ", vocabulary);
    cases.push_back({"cross_entropy" + at,
                     Op::cross_entropy,
                     {},
                     {logits, targets},
                     {one, one, row},
                     {},
                     {{1, 0, false, all}},
                     static_cast<double>(all) * (kExp + 4)});
    cases.push_back({"cross_entropy_backward" + at,
                     Op::cross_entropy_backward,
                     {},
                     {logits, targets, row, one},
                     {logits},
                     {},
                     {{1, 1, false, all}},
                     static_cast<double>(all) * (kExp + 2)});
    cases.push_back({"fused_cross_entropy" + at,
                     Op::fused_cross_entropy,
                     {},
                     {logits, targets, one},
                     {one, one, logits},
                     {},
                     {{1, 1, false, all}},
                     static_cast<double>(all) * (2 * kExp + 6)});
    cases.push_back({"embedding_backward" + at,
                     Op::embedding_backward,
                     {{"rows", vocabulary}},
                     {targets, rows},
                     {table},
                     {},
                     {{0, 1, false, size}, {2, 1, true, n}}});
  }
  for (const Shape& shape : {Shape{4 * kWidth, kWidth}, Shape{50257, kWidth}}) {
    const st::Type matrix = type(shape);
    const int64_t size = shape.elements();
    const std::string at = st::text(" ", shape[0], " x ", shape[1]);
    cases.push_back({"adamw" + at,
                     Op::adamw,
                     {},
                     {matrix, type({}), type({}, DType::boolean), type({2}, DType::f64)},
                     {},
                     {matrix, matrix, matrix},
                     {{4, 3, true, size}}});
    cases.push_back({"gradient_norm" + at,
                     Op::gradient_norm,
                     {},
                     {matrix},
                     {type({}, DType::f64), type({}, DType::boolean)},
                     {},
                     {{1, 0, false, size}}});
    cases.push_back({"accumulate" + at, Op::accumulate, {}, {matrix}, {}, {matrix}, {{2, 1, true, size}}});
  }
  return cases;
}

using Vector = float __attribute__((vector_size(64)));

template <int kReads, int kWrites>
__attribute__((always_inline)) inline float pass(const float* const* in, float* const* out, int64_t begin, int64_t end, int64_t ahead) {
  Vector total = {};
  for (int64_t i = begin; i + 16 <= end; i += 16) {
    Vector x = {};
    for (int r = 0; r < kReads; ++r) {
      __builtin_prefetch(in[r] + i + ahead);
      x += *reinterpret_cast<const Vector*>(in[r] + i);
    }
    for (int w = 0; w < kWrites; ++w) *reinterpret_cast<Vector*>(out[w] + i) = x;
    if (kWrites == 0) total += x;
  }
  return total[0];
}

__attribute__((target_clones("avx512f", "avx2", "default"))) float pass_over(int reads, int writes, const float* const* in,
                                                                             float* const* out, int64_t begin, int64_t end, int64_t ahead) {
  switch (10 * reads + writes) {
    case 1:
      return pass<0, 1>(in, out, begin, end, ahead);
    case 10:
      return pass<1, 0>(in, out, begin, end, ahead);
    case 11:
      return pass<1, 1>(in, out, begin, end, ahead);
    case 21:
      return pass<2, 1>(in, out, begin, end, ahead);
    default:
      return pass<4, 3>(in, out, begin, end, ahead);
  }
}

/// Memory for the operands of a kernel, or for a stream.
class Arrays {
 public:
  explicit Arrays(st::Backend& backend) : backend_(backend) {}

  st::Operand make(const st::Type& type, bool positive, int64_t below) {
    buffers_.push_back(backend_.allocate(std::max<int64_t>(64, type.bytes()), st::MemoryRole::tensors));
    std::byte* data = st::pointer_to(buffers_.back()->data());
    for (int64_t i = 0; i < type.shape.elements(); ++i) {
      state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
      const float x = static_cast<float>(state_ >> 40) * (positive ? 0x1p-24F : 0x1p-23F) - (positive ? 0.0F : 1.0F);
      if (type.dtype == DType::f32) reinterpret_cast<float*>(data)[i] = x;
      if (type.dtype == DType::f64) reinterpret_cast<double*>(data)[i] = i == 0 ? 1e-4 : 1;  // the rates of an update, a seed
      if (type.dtype == DType::i32) reinterpret_cast<int32_t*>(data)[i] = static_cast<int32_t>(state_ % static_cast<uint64_t>(below));
    }
    return {.data = st::address_of(data), .dtype = type.dtype, .shape = type.shape};
  }

  std::vector<st::Operand> make(const std::vector<st::Type>& types, bool positive, int64_t below) {
    std::vector<st::Operand> operands;
    for (const st::Type& t : types) operands.push_back(make(t, positive, below));
    return operands;
  }

 private:
  st::Backend& backend_;
  std::vector<std::unique_ptr<st::Buffer>> buffers_;
  uint64_t state_ = 88172645463325252ULL;
};

class Probe {
 public:
  Probe(st::Backend& backend, st::Workers& workers) : backend_(backend), workers_(workers), loop_(cli::fma_loop()) {}

  void run(Case& c, int rounds) {
    Arrays arrays(backend_);
    c.attrs = st::make_attrs(c.op, c.attrs);
    const int64_t below = c.op == Op::embedding_backward ? c.out[0].shape[0] : c.in[0].shape.last();
    const auto in = arrays.make(c.in, false, below), out = arrays.make(c.out, false, below), slots = arrays.make(c.slots, true, below);
    const st::Kernel& kernel = backend_.kernels()[static_cast<size_t>(c.op)];
    const int64_t bytes = st::workspace_need(st::profile_of(backend_, workers_.threads()), c.op, c.in, c.out, c.attrs);
    const auto workspace = backend_.allocate(bytes + 64, st::MemoryRole::workspace);
    const st::Call call{.in = in,
                        .out = out,
                        .reads = slots,
                        .writes = slots,
                        .attrs = &c.attrs,
                        .workspace = workspace->data(),
                        .workspace_bytes = bytes,
                        .workers = &workers_};
    double moved = 0;
    std::vector<std::vector<float*>> data;  // per stream
    for (const Stream& s : c.streams) {
      data.emplace_back();
      for (int i = 0; i < s.reads + (s.in_place ? 0 : s.writes); ++i)
        data.back().push_back(as<float>(arrays.make(type({s.elements}), true, 1)));
      moved += 4.0 * (s.reads + s.writes) * static_cast<double>(s.elements);
    }
    const auto compute = [&] { kernel.run(call); };
    const auto stream = [&](int64_t ahead) {
      for (size_t i = 0; i < data.size(); ++i) pass_once(c.streams[i], data[i], ahead);
    };
    const double warm = seconds_of(compute, 1);
    const int repeats = std::clamp(static_cast<int>(2e-3 / std::max(warm, seconds_of(compute, 1))), 1, 200);
    // Prefetching a page ahead or four lines ahead: which one is faster depends on the machine.
    int64_t ahead = 0;
    for (double best = std::numeric_limits<double>::infinity(); const int64_t tried : {64, 1024, 64, 1024, 64, 1024}) {
      const double seconds = seconds_of([&] { stream(tried); }, repeats);
      if (seconds < best) best = seconds, ahead = tried;
    }
    std::vector<double> own, limit, share;
    bool computes = false;
    for (int r = 0; r < rounds; ++r) {
      const double before = c.vector_operations > 0 ? seconds_of_operation() : 0;
      own.push_back(seconds_of(compute, repeats));
      const double after = c.vector_operations > 0 ? seconds_of_operation() : 0;
      const double memory = data.empty() ? 0 : seconds_of([&] { stream(ahead); }, repeats);
      const double arithmetic = c.vector_operations * (before + after) / 2;
      computes = arithmetic > memory;
      limit.push_back(std::max(memory, arithmetic));
      share.push_back(limit.back() / own.back());
    }
    std::printf("%-28s %9.1f %9.1f  %-6s %5.2f (%.2f-%.2f)", c.name.c_str(), quantile(own, 0.5) * 1e6, quantile(limit, 0.5) * 1e6,
                computes ? "FMA" : "stream", quantile(share, 0.5), quantile(share, 0.1), quantile(share, 0.9));
    if (moved > 0) std::printf("  %6.1f GB/s", moved / quantile(own, 0.5) / 1e9);
    std::printf("\n");
    std::fflush(stdout);
  }

 private:
  void pass_once(const Stream& s, const std::vector<float*>& data, int64_t ahead) {
    constexpr int64_t kGrain = 16384;  // the same as the kernels'
    float* const* out = data.data() + (s.in_place ? s.reads - s.writes : s.reads);
    workers_.run_range(s.elements, kGrain, [&](int64_t begin, int64_t end) {
      sink_ = pass_over(s.reads, s.writes, const_cast<const float* const*>(data.data()), out, begin, end, ahead);
    });
  }

  template <class Body>
  static double seconds_of(const Body& body, int repeats) {
    const double start = st::os::seconds();
    for (int i = 0; i < repeats; ++i) body();
    return (st::os::seconds() - start) / repeats;
  }

  /// Time of one lane's multiply-add, all threads together.
  double seconds_of_operation() {
    constexpr long kTurns = 400000;
    const double seconds =
        seconds_of([&] { workers_.run(workers_.threads(), [&](int64_t) { sink_ = static_cast<float>(loop_.run(kTurns)); }); }, 1);
    return seconds / (static_cast<double>(kTurns) * loop_.flops_a_turn / 2 * workers_.threads());
  }

  st::Backend& backend_;
  st::Workers& workers_;
  cli::PeakLoop loop_;
  volatile float sink_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2, rounds = argc > 2 ? std::atoi(argv[2]) : 15;
  const auto backend = st::make_cpu_backend();
  st::Workers workers(threads);
  const st::FloatMode mode;
  Probe probe(*backend, workers);
  std::printf("%s, %d threads, %d rounds\n%-28s %9s %9s  %-6s share of it, median (10th-90th)\n",
              std::string(backend->kernel_class()).c_str(), threads, rounds, "kernel", "us", "limit, us", "limit");
  for (Case& c : all_cases())
    if (argc <= 3 || std::strstr(c.name.c_str(), argv[3]) != nullptr) probe.run(c, rounds);
  return 0;
}
