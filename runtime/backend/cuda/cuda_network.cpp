#include "backend/cuda/cuda_network.h"

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "backend/cuda/cuda_stream.h"
#include "backend/cuda/runtime_status.h"
#include "backend/cuda/vendor_library.h"
#include "backend/kernel_side.h"
#include "comm/nccl/nccl_group.h"

namespace st::cuda {
namespace {

constexpr std::string_view kName = "nccl";

class CudaGroup final : public DeviceGroup {
 public:
  /// While the device is the current one.
  CudaGroup(HeldContext context, std::shared_ptr<const nccl::Library> library, std::span<const std::byte> id, int rank, int size)
      : context_(std::move(context)), group_(std::move(library), id, rank, size) {}
  ~CudaGroup() override { abort(); }
  CudaGroup(const CudaGroup&) = delete;
  CudaGroup& operator=(const CudaGroup&) = delete;

  std::string_view name() const override { return kName; }

  void exchange(Stream& stream, std::span<const Part> sends, std::span<const Part> receives) override {
    in_group(stream, [&](cudaStream_t queue) {
      for (const Part& part : sends)
        if (part.bytes > 0) group_.send(part.rank, pointer_to(part.data), static_cast<size_t>(part.bytes), queue);
      for (const Part& part : receives)
        if (part.bytes > 0) group_.receive(part.rank, pointer_to(part.data), static_cast<size_t>(part.bytes), queue);
    });
  }

  void run_native(Stream& stream, std::span<const Native> calls) override {
    in_group(stream, [&](cudaStream_t queue) {
      for (const Native& call : calls)
        if (call.elements > 0) run(call, queue);
    });
  }

  bool is_ready() override {
    const CurrentDevice current(*context_);
    return group_.is_ready();
  }

  void abort() noexcept override {
    const CurrentDevice current(*context_, std::nothrow);
    group_.abort();
  }

 private:
  template <class Give>
  void in_group(Stream& stream, const Give& give) {
    const CurrentDevice current(*context_);
    group_.begin();
    try {
      give(static_cast<CudaStream&>(stream).handle());
    } catch (...) {
      group_.close();
      throw;
    }
    group_.end();
  }

  void run(const Native& call, cudaStream_t queue) {
    using Kind = Native::Kind;
    const void* const from = pointer_to(call.from);
    void* const to = pointer_to(call.to);
    const auto elements = static_cast<size_t>(call.elements);
    switch (call.kind) {
      case Kind::all_reduce:
        return group_.all_reduce(from, to, elements, call.dtype, queue);
      case Kind::reduce_scatter:
        return group_.reduce_scatter(from, to, elements, call.dtype, queue);
      case Kind::all_gather:
        return group_.all_gather(from, to, elements, call.dtype, queue);
      case Kind::reduce:
        return group_.reduce(from, to, elements, call.dtype, call.root, queue);
      case Kind::broadcast:
        return group_.broadcast(from, to, elements, call.dtype, call.root, queue);
    }
  }

  const HeldContext context_;
  nccl::Group group_;
};

/// Else a launch of NCCL's kernel has the host wait for other ranks, with no deadline.
void check_launches_do_not_wait() {
  constexpr const char* kVariable = "CUDA_LAUNCH_BLOCKING";
  const char* const asked = std::getenv(kVariable);
  const std::string_view value = asked == nullptr ? "" : asked;
  require(value.empty() || value == "0", Code::unavailable, "nccl: with ", kVariable, "=", value,
          " the host waits for each kernel; unset it, ", "SCALETRAIN_CUDA_SYNC=1 names the op of a kernel that fails");
}

class CudaNetwork final : public DeviceNetwork {
 public:
  CudaNetwork(HeldContext context, std::shared_ptr<const nccl::Library> library)
      : context_(std::move(context)), library_(std::move(library)), version_(library_->version_text()) {
    check_launches_do_not_wait();
  }

  std::string_view name() const override { return kName; }
  std::string_view version() const override { return version_; }
  int64_t id_bytes() const override { return nccl::Group::kIdBytes; }
  void make_id(std::span<std::byte> id) override {
    const CurrentDevice current(*context_);
    nccl::Group::make_id(*library_, id);
  }
  std::unique_ptr<DeviceGroup> join(std::span<const std::byte> id, int rank, int size) override {
    const CurrentDevice current(*context_);
    return std::make_unique<CudaGroup>(context_, library_, id, rank, size);
  }

 private:
  const HeldContext context_;
  const std::shared_ptr<const nccl::Library> library_;
  const std::string version_;
};

}  // namespace

std::shared_ptr<const nccl::Library> open_nccl() {
  constexpr VendorLibrary kNccl = {"NCCL", "libnccl.so", NCCL_MAJOR, true, "install NCCL (PyPI has it as nvidia-nccl-cu13)"};
  return nccl::functions_of(open_vendor_library(kNccl));
}

std::unique_ptr<DeviceNetwork> make_cuda_network(HeldContext context, std::shared_ptr<const nccl::Library> library) {
  return std::make_unique<CudaNetwork>(std::move(context), std::move(library));
}

}  // namespace st::cuda
