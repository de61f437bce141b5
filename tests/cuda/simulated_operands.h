// Shared by tests of kernels whose operands a test fills itself: indices, losses, gradients. The outputs' types are those of the op's rule.
#pragma once

#include <cstring>
#include <utility>
#include <vector>

#include "ir/rules.h"
#include "simulated_kernels.h"

namespace st::cuda {

constexpr DType kStoredFloats[] = {DType::f32, DType::bf16, DType::f16, DType::f64};

/// An operand and its contents.
struct Filled {
  Tensor tensor;
  std::vector<uint8_t> bytes;
};

inline Filled random_filled(DType dtype, const Shape& shape, uint64_t seed) {
  return {{dtype, shape}, numbers(dtype, shape.elements(), seed)};
}

/// Numbers of magnitudes around 1: 2^-8 to 2^3.
inline Filled moderate_filled(DType dtype, const Shape& shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto [digits, exponents] = format_of(dtype);
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const uint64_t exponent = (uint64_t{1} << (exponents - 1)) - 9 + random() % 12;
    append(bytes, dtype, (random() & 1) << (digits + exponents) | exponent << digits | (random() & ((uint64_t{1} << digits) - 1)));
  }
  return {{dtype, shape}, bytes};
}

/// An op and its inputs.
struct OpCall {
  Op op;
  std::vector<Filled> in;
};

template <class T>
Filled filled_with(DType dtype, const Shape& shape, const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return {{dtype, shape}, bytes};
}

/// i32 or i64.
inline Filled indices_of_values(DType dtype, const Shape& shape, const std::vector<int64_t>& values) {
  if (dtype == DType::i64) return filled_with(dtype, shape, values);
  return filled_with(dtype, shape, std::vector<int32_t>(values.begin(), values.end()));
}

/// Operands in memory, for a call of an op.
class OperandsInMemory {
 public:
  OperandsInMemory(Op op, const std::vector<Filled>& in, const Attrs& given) : attrs_(make_attrs(op, given)) {
    std::vector<Type> types;
    for (const Filled& x : in) {
      types.push_back({.dtype = x.tensor.dtype, .shape = x.tensor.shape, .layout = {}});
      in_.push_back(add(x.tensor, Bytes(x.bytes)));
    }
    for (const Type& type : infer({.op = op, .in = types, .attrs = attrs_}, Mesh{}))
      out_.push_back(add({type.dtype, type.shape}, Bytes(type.bytes())));
  }

  Call call() {
    Call call;
    call.in = in_;
    call.out = out_;
    call.attrs = &attrs_;
    return call;
  }
  std::vector<uint8_t> taken(size_t output) { return memory_[in_.size() + output].taken(); }
  const Operand& out(size_t output) const { return out_[output]; }
  size_t outputs() const { return out_.size(); }

 private:
  Operand add(const Tensor& tensor, Bytes bytes) {
    memory_.push_back(std::move(bytes));
    return {address_of(memory_.back().data()), tensor.dtype, tensor.shape};
  }

  const Attrs attrs_;
  std::vector<Bytes> memory_;
  std::vector<Operand> in_, out_;
};

class FilledKernelTest : public KernelTest {
 protected:
  using KernelTest::KernelTest;

  void expect_bits_of_the_cpu(Op op, const std::vector<Filled>& in, const Attrs& attrs) {
    OperandsInMemory made(op, in, attrs), wanted(op, in, attrs);
    run_on_device(op, made.call());
    run_on_cpu(op, wanted.call());
    for (size_t i = 0; i < made.outputs(); ++i)
      EXPECT_EQ(differences(made.taken(i), wanted.taken(i), made.out(i).dtype), 0)
          << text(name_of(op), " ", in[0].tensor.dtype, in[0].tensor.shape, ", output ", i);
  }
};

}  // namespace st::cuda
