// The global norm of gradients in a host's own arrays, and clipping by it in place.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/host_view.h"
#include "parts/context.h"

namespace st {

/// One call at a time.
class NormClip {
 public:
  explicit NormClip(const Context& context);

  /// Returns the L2 norm of all gradients together, before clipping, and multiplies each element by step_factor's
  /// min(1, max_norm / (norm + 1e-6)), rounded once to its type.
  /// - The norm is bitwise that of the backend's gradient_norm, for any number of threads.
  /// - With max_norm 0, or a norm that is not finite, nothing is written.
  /// - Gradients are nested, do not share memory and are aligned to their elements. Those with gaps are copied for the sum; a call with no
  ///   more gradients than an earlier one allocates nothing else.
  /// Throws invalid_argument, before anything is written, for a max_norm below 0 or NaN and for types that are not floating.
  double clip(std::span<const HostView> gradients, double max_norm);

 private:
  double norm_of(std::span<const HostView> gradients);

  Backend& backend_;
  std::shared_ptr<MemorySource> memory_;
  std::unique_ptr<Workers> workers_;
  std::vector<Operand> operands_;
  std::vector<Type> types_;
  std::unique_ptr<Buffer> workspace_;
};

}  // namespace st
