// One side of `bench gemm`, and how its speed is sampled: the same way for every side.
#pragma once

#include <stdexcept>

#include "gemm_operands.h"

namespace cli {

struct WrongProduct : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class GemmEngine {
 public:
  GemmEngine() = default;
  virtual ~GemmEngine() = default;
  GemmEngine(const GemmEngine&) = delete;
  GemmEngine& operator=(const GemmEngine&) = delete;

  /// Plans products of these arrays, which outlive the plans; their values change. Returns false if the engine does not support the element
  /// type. Throws on other errors.
  virtual bool open(const GemmOperands& operands) = 0;
  /// Whether it supports a prepacked B for the elements opened last.
  virtual bool packs() const = 0;
  /// Packs B's current values.
  virtual void pack() = 0;
  /// C = A B, with the packed or the plain B.
  virtual void multiply(bool packed) = 0;
};

class GemmSampler {
 public:
  /// Both outlive it. Plans the product and finds how often a sample must repeat it for the clock to resolve it.
  GemmSampler(GemmEngine& engine, GemmOperands& operands);

  /// False if the engine does not support these elements.
  bool multiplies() const { return multiplies_; }
  bool packs() const { return multiplies_ && engine_.packs(); }
  /// Seconds per product, with operands drawn for `seed`.
  double seconds(uint64_t seed, bool packed);
  /// Checks the result of the last seconds(). Separate, so that the caller can run the peak's loop right after the product. Throws
  /// WrongProduct.
  void check(uint64_t seed, bool packed) const;

 private:
  double repeat(int64_t times, bool packed);
  int64_t repeats_for(bool packed);

  GemmEngine& engine_;
  GemmOperands& operands_;
  bool multiplies_ = false;
  int64_t repeats_[2] = {};  // plain, packed
};

}  // namespace cli
