// Every op of the cpu backend on every instruction set of this machine: the same bits for any number of threads, near the reference, and
// for elementwise ops the same bits wherever an element stands in its array.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>

#include "base/error.h"
#include "base/float16.h"
#include "cpu_op_cases.h"

namespace st {
namespace {

double value_at(const Array& a, int64_t i) {
  switch (a.type.dtype) {
    case DType::f32:
      return static_cast<double>(a.as<float>()[i]);
    case DType::f64:
      return a.as<double>()[i];
    case DType::bf16:
      return static_cast<double>(f32_of_bf16(a.as<uint16_t>()[i]));
    case DType::i32:
      return a.as<int32_t>()[i];
    case DType::u8:
    case DType::boolean:
      return a.as<uint8_t>()[i];
    default:
      ADD_FAILURE() << "no case has outputs of " << name_of(a.type.dtype);
      return 0;
  }
}

/// Largest difference, relative to the largest element. (The conformance suite looks closer, at each element's own size.)
double distance(const Array& got, const Array& want) {
  double worst = 0, largest = 0;
  for (int64_t i = 0; i < want.elements(); ++i) {
    const double difference = std::abs(value_at(got, i) - value_at(want, i));
    worst = std::max(worst, std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference);
    largest = std::max(largest, std::abs(value_at(want, i)));
  }
  return worst == 0 ? 0 : worst / largest;
}

TEST(CpuOps, EveryOpHasACase) {
  std::set<Op> covered = {Op::load,         Op::reshape,                                         // views
                          Op::matmul,       Op::linear,  Op::attention, Op::attention_backward,  // tests of their own
                          Op::fused_linear, Op::pack,    Op::host,      Op::host_backward};      // a callback: the conformance suite's
  for (const CpuOpCase& c : cpu_op_cases()) covered.insert(c.op);
  for (int32_t op = 0; op < kOps; ++op)
    EXPECT_TRUE(covered.contains(static_cast<Op>(op)) || info_of(static_cast<Op>(op)).exchange) << name_of(static_cast<Op>(op));
}

TEST(CpuOps, BitsDoNotDependOnTheNumberOfThreads) {
  for (const CpuSet& set : cpu_sets()) {
    for (const CpuOpCase& c : cpu_op_cases()) {
      const OpResult alone = run_on(set, c, 1);
      EXPECT_TRUE(alone.within_workspace) << set.name << ": " << c.name << " wrote past its workspace";
      for (const int threads : {2, 3, 5}) {
        const OpResult shared = run_on(set, c, threads);
        EXPECT_TRUE(shared.within_workspace) << set.name << ": " << c.name << " wrote past its workspace with " << threads << " threads";
        for (size_t i = 0; i < alone.out.size(); ++i) {
          EXPECT_TRUE(same_bits(alone.out[i], shared.out[i]))
              << set.name << ": " << c.name << ", output " << i << ", " << threads << " threads";
        }
        for (size_t i = 0; i < alone.slots.size(); ++i) {
          EXPECT_TRUE(same_bits(alone.slots[i], shared.slots[i]))
              << set.name << ": " << c.name << ", slot " << i << ", " << threads << " threads";
        }
      }
    }
  }
}

// Of a parameter that products take in 16 bits, an update leaves what a cast would make of it; the parameter and its state are as without.
TEST(CpuOps, UpdatesLeaveAWorkingCopy) {
  for (const CpuOpCase& c : cpu_op_cases()) {
    if (info_of(c.op).shape_rule != "optimizer") continue;
    for (const DType low : {DType::bf16, DType::f16}) {
      const auto with_copy = [&](bool skips) {
        CpuOpCase made = c;
        if (skips) *made.in[2].as<uint8_t>() = 1;
        made.slots.emplace_back(low, c.slots[0].shape());
        return made;
      };
      for (const CpuSet& set : cpu_sets()) {
        const std::vector<Array> without = run_on(set, c, 2).slots, with = run_on(set, with_copy(false), 2).slots;
        for (size_t i = 0; i < without.size(); ++i)
          EXPECT_TRUE(same_bits(with[i], without[i])) << set.name << ": " << c.name << ", slot " << i;
        const CpuOpCase cast{"cast", Op::cast, {with[0]}, {{"dtype", std::string(name_of(low))}}};
        EXPECT_TRUE(same_bits(with.back(), run_on(set, cast, 2).out[0])) << set.name << ": " << c.name << " to " << name_of(low);
        EXPECT_TRUE(same_bits(run_on(set, with_copy(true), 2).slots.back(), Array(low, c.slots[0].shape()))) << c.name << " was skipped";
      }
      std::vector<Array> slots = with_copy(false).slots;
      std::vector<Array*> at;
      for (Array& slot : slots) at.push_back(&slot);
      run(c.op, c.in, c.attrs, at);
      EXPECT_TRUE(same_bits(slots.back(), run(Op::cast, {slots[0]}, {{"dtype", std::string(name_of(low))}})[0])) << c.name;
    }
  }
}

TEST(CpuOps, AreNearTheReference) {
  // fp32 against double: a sum in lanes of at most 1024 / 64 terms and a tree stays below 1e-6 of the largest result; bf16 rounds at 2^-9.
  for (const CpuOpCase& c : cpu_op_cases()) {
    std::vector<Array> slots = c.slots;
    std::vector<Array*> at;
    for (Array& slot : slots) at.push_back(&slot);
    const std::vector<Array> want = run(c.op, c.in, c.attrs, at);
    for (const CpuSet& set : cpu_sets()) {
      const OpResult got = run_on(set, c, 2);
      ASSERT_EQ(got.out.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) {
        EXPECT_LE(distance(got.out[i], want[i]), 2e-6) << set.name << ": " << c.name << ", output " << i;
      }
      for (size_t i = 0; i < slots.size(); ++i)
        EXPECT_LE(distance(got.slots[i], slots[i]), 2e-6) << set.name << ": " << c.name << ", slot " << i;
    }
  }
}

/// `n` elements of each input from `from` on, at an address that no vector is aligned to.
CpuOpCase window(const CpuOpCase& c, int64_t from, int64_t n) {
  CpuOpCase part{c.name, c.op, {}, c.attrs};
  for (const Array& a : c.in) {
    Array piece(a.type.dtype, {n});
    std::memcpy(piece.as<char>(), a.as<char>() + from * bytes_of(a.type.dtype), static_cast<size_t>(n * bytes_of(a.type.dtype)));
    part.in.push_back(piece);
  }
  return part;
}

TEST(CpuOps, ElementwiseBitsDoNotDependOnPlaceOrLength) {
  int checked = 0;
  for (const CpuOpCase& c : cpu_op_cases()) {
    bool plain = !c.in.empty() && c.slots.empty() && info_of(c.op).elementwise && c.op != Op::dropout;
    for (const Array& a : c.in) plain = plain && a.shape() == c.in[0].shape();
    if (!plain) continue;
    ++checked;
    for (const CpuSet& set : cpu_sets()) {
      const Array whole = run_on(set, c, 1).out[0];
      const int64_t width = bytes_of(whole.type.dtype);
      for (const int64_t from : {0, 1, 5, 31}) {
        for (const int64_t n : {1, 2, 3, 7, 15, 16, 17, 31, 33, 100}) {
          const Array piece = run_on(set, window(c, from, n), 1).out[0];
          EXPECT_EQ(std::memcmp(piece.as<char>(), whole.as<char>() + from * width, static_cast<size_t>(n * width)), 0)
              << set.name << ": " << c.name << ", " << n << " elements from " << from;
        }
      }
    }
  }
  EXPECT_GE(checked, 20);
}

TEST(CpuOps, GradientNormHasTheReferencesBits) {
  for (const CpuOpCase& c : cpu_op_cases()) {
    const bool is_norm = c.op == Op::gradient_norm || c.op == Op::gradient_squares || c.op == Op::norm_of_squares;
    if (!is_norm && c.op != Op::dropout && c.op != Op::step_factor) continue;
    const std::vector<Array> want = run(c.op, c.in, c.attrs);
    for (const CpuSet& set : cpu_sets()) {
      const OpResult got = run_on(set, c, 3);
      if (c.op == Op::dropout) {  // the mask's bits; the quotient is a product with 1 / (1 - rate) here
        for (int64_t i = 0; i < want[0].elements(); ++i) ASSERT_EQ(value_at(got.out[0], i) == 0, value_at(want[0], i) == 0) << i;
      } else {
        for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(same_bits(got.out[i], want[i])) << set.name << ": " << c.name;
      }
    }
  }
}

TEST(CpuOps, ASkippedUpdateLeavesEveryBit) {
  for (CpuOpCase c : cpu_op_cases()) {
    if (info_of(c.op).shape_rule != "optimizer" && c.op != Op::average) continue;
    *c.in[c.op == Op::average ? 1 : 2].as<uint8_t>() = 1;
    for (const CpuSet& set : cpu_sets()) {
      const OpResult got = run_on(set, c, 2);
      for (size_t i = 0; i < c.slots.size(); ++i) EXPECT_TRUE(same_bits(got.slots[i], c.slots[i])) << set.name;
    }
  }
}

TEST(CpuOps, GradientNormFindsOneInfinityAmongMany) {
  for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), std::nanf("")}) {
    for (const int64_t at : {0, 1023, 1024, 30000, 50020}) {
      CpuOpCase c{"gradient_norm", Op::gradient_norm, {Array(DType::f32, {50021})}};
      c.in[0].as<float>()[at] = bad;
      for (const CpuSet& set : cpu_sets())
        EXPECT_EQ(*run_on(set, c, 2).out[1].as<uint8_t>(), 0) << set.name << " missed " << bad << " at " << at;
    }
  }
}

TEST(CpuOps, AnIndexOutsideIsAnErrorThatNamesItsPlace) {
  CpuOpCase c{"embedding", Op::embedding, {Array(DType::f32, {10, 4}), Array::of<int64_t>({2, 3}, {1, 2, 3, 4, 10, 5})}};
  for (const CpuSet& set : cpu_sets()) {
    try {
      run_on(set, c, 2);
      ADD_FAILURE() << set.name << " read past the weight";
    } catch (const Error& e) {
      EXPECT_NE(e.message().find("token 10 at [1, 1]"), std::string::npos) << e.message();
    }
  }
}

}  // namespace
}  // namespace st
