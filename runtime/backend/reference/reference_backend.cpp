#include "backend/host_memory.h"
#include "backend/reference/reference_gemm.h"
#include "backend/reference/reference_kernels.h"

namespace st {
namespace {

class ReferenceBackend : public HostBackend {
 public:
  using HostBackend::HostBackend;
  std::string_view name() const override { return "reference"; }
  std::string_view kernel_class() const override { return "reference"; }
  const OpTable& kernels() const override { return kernels_; }
  const GemmKernels& gemm() const override { return reference::gemm_kernels(); }

 private:
  const OpTable kernels_ = {
#define ST_OP(name, ...) reference::kernel_##name,
#include "ir/ops.def"
#undef ST_OP
  };
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend(std::shared_ptr<MemorySource> memory) {
  return std::make_unique<ReferenceBackend>(std::move(memory));
}

}  // namespace st
