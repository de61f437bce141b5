// A side of `bench gemm`, and how a sample of its speed is taken: the same way whichever side it is.
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

  /// Plans for products of these arrays, which outlive the plans and change their values. False: it has no product of such elements.
  /// Throws when it cannot.
  virtual bool open(const GemmOperands& operands) = 0;
  /// Whether it multiplies the elements last opened with a B packed beforehand.
  virtual bool packs() const = 0;
  /// B as it is now.
  virtual void pack() = 0;
  /// C = A B, with the packed B or the plain one.
  virtual void multiply(bool packed) = 0;
};

class GemmSampler {
 public:
  /// Both outlive it. Plans, and finds out how often a sample repeats the product so that the clock can see it.
  GemmSampler(GemmEngine& engine, GemmOperands& operands);

  /// False: there is no sample to take.
  bool multiplies() const { return multiplies_; }
  bool packs() const { return multiplies_ && engine_.packs(); }
  /// Seconds of one product, of operands drawn for `seed`.
  double seconds(uint64_t seed, bool packed);
  /// Looks at the product that seconds() made: afterwards, so that a loop of the peak can run straight behind it. Throws WrongProduct.
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
