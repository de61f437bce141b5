// Shared by tests of kernels on the simulated grid: memory with a guard, numbers of all kinds, a stream, and the cpu's kernels, whose bits
// are wanted.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/enqueue.h"
#include "backend/cuda/op_kernels.h"
#include "backend/kernel_side.h"
#include "backend/needs.h"
#include "base/float_mode.h"
#include "base/workers.h"
#include "float_format.h"
#include "sanitized.h"
#include "warp_product.h"

namespace st::cuda {

constexpr DType kFloats[] = {DType::f32, DType::bf16, DType::f16};
constexpr int64_t kGuard = 64;  // bytes behind a result, which no kernel writes

/// Memory with the alignment of a device's and a guard; the bytes are 0xA5 until written.
class Bytes {
 public:
  explicit Bytes(int64_t bytes) : bytes_(bytes), words_(static_cast<size_t>((bytes + kGuard) / 16 + 2), Word{}) {
    std::memset(data(), 0xA5, words_.size() * sizeof(Word));
  }
  explicit Bytes(const std::vector<uint8_t>& values) : Bytes(static_cast<int64_t>(values.size())) { std::ranges::copy(values, data()); }

  uint8_t* data() { return words_.data()->at; }
  std::vector<uint8_t> taken() {
    for (int64_t i = 0; i < kGuard; ++i) EXPECT_EQ(data()[bytes_ + i], 0xA5) << "behind the end";
    return {data(), data() + bytes_};
  }

 private:
  struct alignas(64) Word {
    uint8_t at[16];
  };
  int64_t bytes_;
  std::vector<Word> words_;
};

/// Zeros, the ends of the ranges of numbers above and below the normal range, 1, infinity and NaN, of both signs.
inline std::vector<uint64_t> special_bits(DType dtype) {
  const auto [digits, exponents] = format_of(dtype);
  const uint64_t sign = uint64_t{1} << (digits + exponents), infinity = sign - (uint64_t{1} << digits), least = uint64_t{1} << digits;
  std::vector<uint64_t> all;
  for (const uint64_t bits : {uint64_t{0}, uint64_t{1}, least - 1, least, least + 1, 3 * least, infinity / 2 & ~(least - 1),
                              (infinity / 2 & ~(least - 1)) + least, infinity - 1, infinity, infinity + least / 2}) {
    all.push_back(bits);
    all.push_back(bits | sign);
  }
  return all;
}

inline void append(std::vector<uint8_t>& bytes, DType dtype, uint64_t bits) {
  for (int64_t byte = 0; byte < bytes_of(dtype); ++byte) bytes.push_back(static_cast<uint8_t>(bits >> 8 * byte));
}

/// Random numbers: of floats a quarter special, a quarter any bits, the others of magnitudes around 1.
inline std::vector<uint8_t> numbers(DType dtype, int64_t elements, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> bytes;
  const std::vector<uint64_t> special = is_floating(dtype) ? special_bits(dtype) : std::vector<uint64_t>{};
  for (int64_t i = 0; i < elements; ++i) {
    uint64_t bits = random();
    if (dtype == DType::boolean) bits %= 2;
    if (is_floating(dtype)) {
      const auto [digits, exponents] = format_of(dtype);
      const uint64_t middle = (uint64_t{1} << (exponents - 1)) - 4 + random() % 8;
      const uint64_t kind = random() % 4;
      if (kind == 0) bits = special[bits % special.size()];
      if (kind > 1) bits = (bits & ~(((uint64_t{1} << exponents) - 1) << digits)) | middle << digits;
    }
    append(bytes, dtype, bits);
  }
  return bytes;
}

/// The bits of an element as results are compared: those of one NaN for all, and of zero below the normal range, since the compiler decides
/// which instructions choose between two numbers, and only some make zeros of these (extremes_test.cpp of conformance has the rule).
inline uint64_t compared_bits(const std::vector<uint8_t>& bytes, DType dtype, size_t element) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + element * static_cast<size_t>(bytes_of(dtype)), static_cast<size_t>(bytes_of(dtype)));
  if (!is_floating(dtype)) return bits;
  const auto [digits, exponents] = format_of(dtype);
  const uint64_t sign = uint64_t{1} << (digits + exponents), infinity = sign - (uint64_t{1} << digits), magnitude = bits & (sign - 1);
  if (magnitude > infinity) return infinity + 1;
  return magnitude < uint64_t{1} << digits ? bits & sign : bits;
}

/// The number of elements that differ.
inline int64_t differences(const std::vector<uint8_t>& made, const std::vector<uint8_t>& wanted, DType dtype) {
  if (made.size() != wanted.size()) return -1;
  const auto width = static_cast<size_t>(bytes_of(dtype));
  int64_t count = 0;
  for (size_t i = 0; i * width < made.size(); ++i)
    if (compared_bits(made, dtype, i) != compared_bits(wanted, dtype, i)) ++count;
  return count;
}

struct Tensor {
  DType dtype;
  Shape shape;
};

class KernelTest : public testing::Test {
 protected:
  explicit KernelTest(Order order) : stream_{.engine = std::make_shared<StreamEngine>(order, 5)} {}

  void finish() { stream_.engine->finish(*stream_.queue); }
  /// The bytes of workspace that an op needs on a device.
  static int64_t need(const MachineProfile& machine, Op op, const Call& call) {
    const auto types_of = [](std::span<const Operand> operands) {
      std::vector<Type> types;
      for (const Operand& operand : operands) types.push_back({.dtype = operand.dtype, .shape = operand.shape, .layout = {}});
      return types;
    };
    return workspace_need(machine, op, types_of(call.in), types_of(call.out), *call.attrs);
  }
  void run_on_cpu(Op op, Call call) {
    const FloatMode mode;
    call.workers = &workers_;
    Bytes workspace(need(profile_of(*cpu_, 1), op, call));
    call.workspace = address_of(workspace.data());
    cpu_->kernels()[static_cast<size_t>(op)].run(call);
    workspace.taken();
  }
  /// Gives an op's kernels to the stream, with the workspace that they need, and waits.
  void run_on_device(Op op, Call call) {
    Bytes workspace(need({.device = "cuda"}, op, call));
    call.workspace = address_of(workspace.data());
    kernels_of(op)(&stream_, op, call);
    finish();
    workspace.taken();
  }

  /// Compares the outputs `ys` made from numbers `xs`. `enqueue` may borrow the call until it returns only.
  template <class Enqueue>
  void expect_equal_to_the_cpu(const Enqueue& enqueue, Op op, const std::vector<Tensor>& ys, const std::vector<Tensor>& xs,
                               const Attrs& given) {
    const Attrs attrs = make_attrs(op, given);
    std::vector<Bytes> inputs, made, wanted;
    std::vector<Operand> in, out, out_by_cpu;
    std::string types;
    for (const auto& [dtype, shape] : xs) {
      inputs.emplace_back(numbers(dtype, shape.elements(), inputs.size() + 1));
      in.push_back({address_of(inputs.back().data()), dtype, shape});
      types += text(" ", dtype, shape);
    }
    for (const auto& [dtype, shape] : ys) {
      made.emplace_back(shape.elements() * bytes_of(dtype));
      wanted.emplace_back(shape.elements() * bytes_of(dtype));
      out.push_back({address_of(made.back().data()), dtype, shape});
      out_by_cpu.push_back({address_of(wanted.back().data()), dtype, shape});
    }
    Call call;
    call.in = in;
    call.out = out;
    call.attrs = &attrs;
    Bytes workspace(need({.device = "cuda"}, op, call));
    call.workspace = address_of(workspace.data());
    {
      const Attrs own = attrs;
      const std::vector<Operand> own_in = in, own_out = out;
      call.in = own_in;
      call.out = own_out;
      call.attrs = &own;
      enqueue(&stream_, call);
    }
    finish();
    workspace.taken();
    call.in = in;
    call.out = out_by_cpu;
    call.attrs = &attrs;
    run_on_cpu(op, call);
    for (size_t i = 0; i < ys.size(); ++i)
      EXPECT_EQ(differences(made[i].taken(), wanted[i].taken(), ys[i].dtype), 0) << text(name_of(op), types);
  }

  CUstream_st stream_;
  std::unique_ptr<Backend> cpu_ = make_cpu_backend();
  Workers workers_{1};
};

}  // namespace st::cuda
