// The global norm of gradients in a host's own arrays, and clipping by it where they lie.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "train/context.h"
#include "train/host_view.h"

namespace st {

/// One call at a time.
class NormClip {
 public:
  explicit NormClip(const Context& context);

  /// The L2 norm of all gradients together, before clipping, by the backend's gradient_norm: its bits, for any threads. Then each element
  /// is multiplied with step_factor's min(1, max_norm / (norm + 1e-6)), and rounded once to its type. max_norm 0, and a norm that is not
  /// finite: nothing is written. Gradients are nested, apart and aligned to their elements; those that are not in one piece in row-major
  /// order are copied for the sum, and once as many have been seen nothing else is allocated. Throws invalid_argument, before anything is
  /// written, for a max_norm below 0 or NaN and for types that are not floating.
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
