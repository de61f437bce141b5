// A host's arguments of a product, checked before use: the problem, the requested tiles, the arrays of a run.
#pragma once

#include <scaletrain/gemm.h>

#include <array>
#include <string_view>

#include "base/host_view.h"
#include "parts/device_gemm.h"
#include "parts/gemm_choice.h"

namespace st::capi {

GemmProblem problem_of(const st_gemm_problem& theirs);
GemmWish wish_of(const st_gemm_schedule& theirs);
void tell(const GemmChoice& choice, st_gemm_info& info);
void tell(const DeviceGemm& gemm, st_gemm_info& info);

/// The memory of B for this problem; its dims and strides must be those of the problem.
const void* b_of(const GemmProblem& problem, const st_view* b, const char* call);

/// The arrays of one run, and the epilogue that its operands point to. Must not move.
class GemmArguments {
 public:
  /// b NULL: B is packed. Throws if a view does not match, or if a written view overlaps another.
  GemmArguments(const GemmProblem& problem, const st_view* a, const st_view* b, bool packed, const st_view* c, const st_epilogue* epilogue,
                const char* call);
  GemmArguments(const GemmArguments&) = delete;
  GemmArguments& operator=(const GemmArguments&) = delete;

  GemmOperands operands;

 private:
  enum class Use { read, written };

  void take_epilogue(const GemmProblem& problem, const st_epilogue& theirs, const char* call);
  GemmSide side(std::string_view name, const GemmProblem& problem, const st_view* view, Use use, const char* call);
  void* vector(std::string_view name, const GemmProblem& problem, const st_view* view, Use use, const char* call);
  const HostView& keep(const HostView& view, Use use);
  void refuse_overlaps(const char* call) const;

  GemmEpilogue epilogue_;
  std::array<HostView, 8> views_;
  std::array<Use, 8> uses_{};
  size_t count_ = 0;
};

}  // namespace st::capi
