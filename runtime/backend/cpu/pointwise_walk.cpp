// Operands of one shape are one segment per task. Operands that broadcast go segment by segment. If segments are short, they go block by
// block with the broadcast operand expanded first, since a short segment costs more to set up than to compute.
#include "backend/cpu/pointwise_walk.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "backend/cpu/grain.h"
#include "backend/cpu/segments.h"
#include "base/error.h"

namespace st::cpu {
namespace {

constexpr size_t kVectorBytes = 64;     // of the widest instruction set
constexpr int64_t kBlock = 512;         // elements expanded at once
constexpr int64_t kShortSegment = 128;  // elements

/// 1 in every lane, for padding lanes: computing on 0 could raise a floating-point exception that a host would take for an error (1 / 0).
uint64_t ones_in(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0x3FF0000000000000;
    case DType::bf16:
      return 0x3F803F803F803F80;
    case DType::f16:
      return 0x3C003C003C003C00;
    default:
      return 0x3F8000003F800000;
  }
}

class Pointwise {
 public:
  Pointwise(const Call& call, size_t inputs, const PointwiseLoop& loop, const void* functor)
      : call_(call),
        loop_(loop),
        functor_(functor),
        inputs_(inputs),
        width_(bytes_of(call.out[0].dtype)),
        out_(as<std::byte>(call.out[0])),
        a_(as<const std::byte>(call.in[0])),
        b_(as<const std::byte>(call.in[inputs - 1])) {}

  void run() const {
    const Shape& shape = call_.out[0].shape;
    if (inputs_ == 1 || (call_.in[0].shape == shape && call_.in[1].shape == shape)) return run_alike();
    const Segments<2> segments(shape, {&call_.in[0].shape, &call_.in[1].shape});
    if (segments.inner_size() < kShortSegment) return run_blocks();
    run_segments(segments);
  }

 private:
  void run_alike() const {
    call_.workers->run_range(call_.out[0].elements(), kGrain, [&](int64_t begin, int64_t end) {
      run_elements(3, a_ + begin * width_, b_ + begin * width_, begin, end - begin);
    });
  }

  void run_segments(const Segments<2>& segments) const {
    const unsigned moves = (segments.inner_stride(0) != 0 ? 1 : 0) | (segments.inner_stride(1) != 0 ? 2 : 0);
    call_.workers->run_range(segments.elements, kGrain, [&](int64_t begin, int64_t end) {
      segments.walk(begin, end, [&](int64_t at, const std::array<int64_t, 2>& from, int64_t length) {
        run_elements(moves, a_ + from[0] * width_, b_ + from[1] * width_, at, length);
      });
    });
  }

  void run_blocks() const {
    const Shape& shape = call_.out[0].shape;
    const int64_t elements = shape.elements();
    const Segments<1> of_a(shape, {&call_.in[0].shape}), of_b(shape, {&call_.in[1].shape});
    const bool stretches_a = call_.in[0].elements() != elements, stretches_b = call_.in[1].elements() != elements;
    call_.workers->run_range(elements, kGrain, [&](int64_t begin, int64_t end) {
      alignas(kVectorBytes) std::byte room_a[kBlock * sizeof(double)], room_b[kBlock * sizeof(double)];
      for (int64_t at = begin; at < end; at += kBlock) {
        const int64_t n = std::min(kBlock, end - at);
        if (stretches_a) write_out(of_a, a_, room_a, at, n);
        if (stretches_b) write_out(of_b, b_, room_b, at, n);
        run_elements(3, stretches_a ? room_a : a_ + at * width_, stretches_b ? room_b : b_ + at * width_, at, n);
      }
    });
  }

  /// Writes elements [at, at + n) of an input, broadcast to the output.
  void write_out(const Segments<1>& segments, const std::byte* x, std::byte* room, int64_t at, int64_t n) const {
    if (width_ == 1) return write_out<uint8_t>(segments, x, room, at, n);
    if (width_ == 2) return write_out<uint16_t>(segments, x, room, at, n);
    if (width_ == 4) return write_out<uint32_t>(segments, x, room, at, n);
    write_out<uint64_t>(segments, x, room, at, n);
  }
  template <class Bits>
  static void write_out(const Segments<1>& segments, const std::byte* x, std::byte* room, int64_t at, int64_t n) {
    const Bits* const from = reinterpret_cast<const Bits*>(x);
    Bits* const to = reinterpret_cast<Bits*>(room) - at;
    const int64_t step = segments.inner_stride(0);
    segments.walk(at, at + n, [=](int64_t begin, const std::array<int64_t, 1>& first, int64_t length) {
      for (int64_t i = 0; i < length; ++i) to[begin + i] = from[first[0] + i * step];
    });
  }

  /// n elements of the output from `at` on: whole vectors, then the rest through padded vectors.
  void run_elements(unsigned moves, const std::byte* a, const std::byte* b, int64_t at, int64_t n) const {
    const int64_t rest = n & (loop_.lanes - 1), whole = n - rest;
    std::byte* const out = out_ + at * width_;
    if (whole > 0) loop_.run(functor_, a, b, moves, out, whole);
    if (rest > 0)
      run_rest(moves, a + ((moves & 1) != 0 ? whole * width_ : 0), b + ((moves & 2) != 0 ? whole * width_ : 0), out + whole * width_, rest);
  }

  [[gnu::noinline]] void run_rest(unsigned moves, const std::byte* a, const std::byte* b, std::byte* out, int64_t n) const {
    const auto bytes = static_cast<size_t>(n * width_);
    alignas(kVectorBytes) std::byte image_a[kVectorBytes], image_b[kVectorBytes], result[kVectorBytes];
    const auto whole = [&](std::byte* image, const std::byte* from) {
      const uint64_t ones = ones_in(call_.out[0].dtype);
      for (size_t i = 0; i < kVectorBytes; i += sizeof(ones)) std::memcpy(image + i, &ones, sizeof(ones));
      std::memcpy(image, from, bytes);
      return image;
    };
    if ((moves & 1) != 0) a = whole(image_a, a);
    if (inputs_ == 2 && (moves & 2) != 0) b = whole(image_b, b);
    loop_.run(functor_, a, b, moves, result, loop_.lanes);
    std::memcpy(out, result, bytes);
  }

  const Call& call_;
  const PointwiseLoop& loop_;
  const void* functor_;
  size_t inputs_;
  int64_t width_;  // bytes of an element
  std::byte* out_;
  const std::byte *a_, *b_;  // b: equals a if there is one input
};

}  // namespace

void run_pointwise(const Call& call, size_t inputs, const PointwiseLoop& loop, const void* functor) {
  if (loop.run == nullptr) {
    fail(Code::unsupported, text(loop.op, ": the cpu backend does not compute it in ", call.out[0].dtype, "; cast first"));
  }
  Pointwise(call, inputs, loop, functor).run();
}

}  // namespace st::cpu
