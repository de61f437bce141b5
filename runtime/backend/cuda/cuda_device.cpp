#include "backend/cuda/cuda_device.h"

#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include "backend/cuda/runtime_status.h"
#include "backend/kernel_side.h"
#include "base/error.h"
#include "base/os/machine.h"
#include "base/text.h"

namespace st::cuda {
namespace {

bool is_out_of_memory(cudaError_t status) {
  if (status != cudaErrorMemoryAllocation) return false;
  cudaGetLastError();
  return true;
}

class Pinned : public PinnedMemory {
 public:
  Pinned(int64_t bytes, MemoryRole role, const std::string& device, HeldContext context, std::shared_ptr<MemorySource> source)
      : context_(std::move(context)), source_(std::move(source)), bytes_(bytes), role_(role) {
    if (bytes > 0) {
      const CurrentDevice current(*context_);
      const cudaError_t status = cudaMallocHost(&data_, static_cast<size_t>(bytes));
      if (is_out_of_memory(status))
        fail(Code::out_of_memory, text("allocate: ", device, " cannot pin ", bytes, " bytes of the host's memory, of which ",
                                       os::available_memory(), " are available; offload less, set a smaller offload_budget, or raise the ",
                                       "limit of locked memory (ulimit -l) or that of the container"));
      must(status, "cudaMallocHost");
    }
    source_->account().add(role_, bytes_);
  }
  ~Pinned() override {
    source_->account().add(role_, -bytes_);
    if (data_ == nullptr) return;
    const CurrentDevice current(*context_, std::nothrow);
    cudaFreeHost(data_);
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  std::byte* data() override { return static_cast<std::byte*>(data_); }

 private:
  HeldContext context_;
  std::shared_ptr<MemorySource> source_;
  void* data_ = nullptr;
  int64_t bytes_;
  MemoryRole role_;
};

}  // namespace

/// The buffers that there are, of a device or of the host's memory in its place.
class CudaDevice::Allocations {
 public:
  void add(Address at, int64_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_at_.emplace(at, bytes);
  }
  void remove(Address at) {
    const std::lock_guard lock(mutex_);
    bytes_at_.erase(at);
  }
  bool hold(Address place, int64_t bytes) const {
    const std::lock_guard lock(mutex_);
    const auto behind = bytes_at_.upper_bound(place);
    if (behind == bytes_at_.begin()) return false;
    const auto& [begin, size] = *std::prev(behind);
    return place - begin + bytes <= size;
  }

  class Allocated : public Buffer {
   public:
    Allocated(Address at, int64_t bytes, MemoryRole role, HeldContext context, std::shared_ptr<MemorySource> source,
              std::shared_ptr<Allocations> all)
        : context_(std::move(context)), source_(std::move(source)), all_(std::move(all)), at_(at), bytes_(bytes), role_(role) {
      source_->account().add(role_, bytes_);
      if (at_) all_->add(at_, bytes_);
    }
    ~Allocated() override {
      if (at_) all_->remove(at_);
      source_->account().add(role_, -bytes_);
      if (!at_) return;
      const CurrentDevice current(*context_, std::nothrow);
      cudaFree(pointer_to(at_));
    }
    Allocated(const Allocated&) = delete;
    Allocated& operator=(const Allocated&) = delete;

    Address data() const override { return at_; }
    int64_t size() const override { return bytes_; }
    void move_to_file(const std::string& /*folder*/) override {
      fail(Code::unsupported, "cuda: memory of a device cannot be moved to a file; offload to the host's");
    }
    bool is_in_file() const override { return false; }

   private:
    HeldContext context_;
    std::shared_ptr<MemorySource> source_;
    std::shared_ptr<Allocations> all_;
    Address at_;
    int64_t bytes_;
    MemoryRole role_;
  };

  class OnHost : public Buffer {
   public:
    /// Zeroes the memory.
    OnHost(std::unique_ptr<PinnedMemory> memory, int64_t bytes, std::shared_ptr<Allocations> all)
        : memory_(std::move(memory)), all_(std::move(all)), bytes_(bytes) {
      if (bytes == 0) return;
      std::memset(memory_->data(), 0, static_cast<size_t>(bytes));
      all_->add(data(), bytes_);
    }
    ~OnHost() override {
      if (bytes_ > 0) all_->remove(data());
    }
    OnHost(const OnHost&) = delete;
    OnHost& operator=(const OnHost&) = delete;

    Address data() const override { return address_of(pinned()); }
    int64_t size() const override { return bytes_; }
    void move_to_file(const std::string& /*folder*/) override {
      fail(Code::unsupported, "cuda: pinned memory of the host cannot be moved to a file");
    }
    bool is_in_file() const override { return false; }
    std::byte* pinned() const override { return memory_->data(); }

   private:
    std::unique_ptr<PinnedMemory> memory_;
    std::shared_ptr<Allocations> all_;
    int64_t bytes_;
  };

 private:
  mutable std::mutex mutex_;
  std::map<Address, int64_t> bytes_at_;
};

CudaDevice::CudaDevice(HeldContext context, std::shared_ptr<MemorySource> memory)
    : context_(std::move(context)),
      memory_(std::move(memory)),
      uncounted_(std::make_shared<MemorySource>()),
      allocations_(std::make_shared<Allocations>()),
      on_host_(std::make_shared<Allocations>()),
      copies_(make_stream()) {}

CudaDevice::~CudaDevice() = default;

std::string CudaDevice::name() const { return text("cuda:", context_->index()); }

std::unique_ptr<Buffer> CudaDevice::allocate(int64_t bytes, MemoryRole role) { return allocate(bytes, role, memory_); }

std::unique_ptr<Buffer> CudaDevice::allocate_uncounted(int64_t bytes) { return allocate(bytes, MemoryRole::other, uncounted_); }

std::unique_ptr<Buffer> CudaDevice::allocate(int64_t bytes, MemoryRole role, std::shared_ptr<MemorySource> source) {
  check(bytes >= 0, "allocate: bytes must not be negative, got ", bytes);
  void* data = nullptr;
  if (bytes > 0) {
    const CurrentDevice current(*context_);
    const cudaError_t status = cudaMalloc(&data, static_cast<size_t>(bytes));
    if (is_out_of_memory(status))
      fail(Code::out_of_memory,
           text("allocate: ", name(), " has not ", bytes, " bytes for ", name_of(role), ", of its memory ", free_bytes(),
                " are free; end other programs that use it (nvidia-smi lists them), or see what saves memory and what it "
                "costs: scaletrain plan, or st_plan_create"));
    must(status, "cudaMalloc");
  }
  auto buffer = std::make_unique<Allocations::Allocated>(address_of(data), bytes, role, context_, std::move(source), allocations_);
  zero(buffer->data(), bytes);
  return buffer;
}

std::unique_ptr<PinnedMemory> CudaDevice::pin(int64_t bytes, MemoryRole role, std::shared_ptr<MemorySource> source) const {
  check(bytes >= 0, "allocate: bytes must not be negative, got ", bytes);
  return std::make_unique<Pinned>(bytes, role, name(), context_, std::move(source));
}

std::unique_ptr<PinnedMemory> CudaDevice::allocate_pinned(int64_t bytes) { return pin(bytes, MemoryRole::inputs, memory_); }

std::unique_ptr<PinnedMemory> CudaDevice::pin_uncounted(int64_t bytes) { return pin(bytes, MemoryRole::other, uncounted_); }

std::unique_ptr<Buffer> CudaDevice::allocate_on_host(int64_t bytes) {
  return std::make_unique<Allocations::OnHost>(pin(bytes, MemoryRole::host, memory_), bytes, on_host_);
}

int64_t CudaDevice::free_bytes() const {
  const CurrentDevice current(*context_);
  size_t free = 0, all = 0;
  must(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
  return static_cast<int64_t>(free);
}

bool CudaDevice::holds(Address place, int64_t bytes) const { return allocations_->hold(place, bytes); }

bool CudaDevice::reaches(Address place, int64_t bytes) const {
  if (bytes == 0) return true;
  const CurrentDevice current(*context_);
  const auto is_here = [this](Address at) {
    cudaPointerAttributes found{};
    if (cudaPointerGetAttributes(&found, pointer_to(at)) != cudaSuccess) {
      cudaGetLastError();
      return false;
    }
    return (found.type == cudaMemoryTypeDevice && found.device == context_->index()) || found.type == cudaMemoryTypeManaged;
  };
  return is_here(place) && is_here(place + (bytes - 1));
}

std::unique_ptr<CudaStream> CudaDevice::make_stream() const { return std::make_unique<CudaStream>(context_); }

std::unique_ptr<CudaEvent> CudaDevice::make_event() const { return std::make_unique<CudaEvent>(context_); }

/// The place of allocate_on_host(); null: of the device's memory.
std::byte* CudaDevice::on_host(Address place) const { return on_host_->hold(place, 1) ? pointer_to(place) : nullptr; }

void CudaDevice::to_host(void* host, Address device, int64_t bytes) {
  if (bytes == 0) return;
  if (const std::byte* const from = on_host(device)) {
    std::memcpy(host, from, static_cast<size_t>(bytes));
    return;
  }
  copies_->copy_to_host(static_cast<std::byte*>(host), device, bytes);
  copies_->finish();
}

void CudaDevice::to_device(Address device, const void* host, int64_t bytes) {
  if (bytes == 0) return;
  if (std::byte* const to = on_host(device)) {
    std::memcpy(to, host, static_cast<size_t>(bytes));
    return;
  }
  copies_->copy_to_device(device, static_cast<const std::byte*>(host), bytes);
  copies_->finish();
}

void CudaDevice::copy(Address to, Address from, int64_t bytes) {
  if (bytes == 0) return;
  if (std::byte* const here = on_host(to)) return to_host(here, from, bytes);
  if (const std::byte* const here = on_host(from)) return to_device(to, here, bytes);
  copies_->copy(to, from, bytes);
  copies_->finish();
}

void CudaDevice::zero(Address device, int64_t bytes) {
  if (bytes == 0) return;
  if (std::byte* const here = on_host(device)) {
    std::memset(here, 0, static_cast<size_t>(bytes));
    return;
  }
  copies_->zero(device, bytes);
  copies_->finish();
}

}  // namespace st::cuda
