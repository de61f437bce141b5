#include "backend/cuda/cuda_backend.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "backend/cuda/cuda_device.h"
#include "backend/cuda/enqueue.h"
#include "backend/cuda/index_faults.h"
#include "backend/cuda/kernel_loading.h"
#include "backend/cuda/op_kernels.h"
#include "backend/cuda/profiler_ranges.h"
#include "backend/cuda/runtime_status.h"
#include "backend/kernel_side.h"
#include "base/error.h"
#include "base/os/machine.h"

namespace st::cuda {
namespace {

class CudaKernel;

/// The numbers of the calls that are prepared, which kernels report.
class Calls {
 public:
  uint64_t add(const CudaKernel* kernel) {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      constexpr uint64_t kMost = (uint64_t{1} << (64 - IndexFaults::kElementBits)) - 1;
      require(all_.size() < kMost, Code::unsupported, "cuda: ", kMost, " kernels are prepared, and there are no more numbers for them");
      free_.reserve(all_.size() + 1);  // so that remove() allocates nothing
      free_.push_back(all_.size());
      all_.push_back(nullptr);
    }
    const uint64_t number = free_.back();
    free_.pop_back();
    all_[number] = kernel;
    return number;
  }
  void remove(uint64_t number) {
    const std::lock_guard lock(mutex_);
    all_[number] = nullptr;
    free_.push_back(number);
  }
  const CudaKernel* at(uint64_t number) const {
    const std::lock_guard lock(mutex_);
    return number < all_.size() ? all_[number] : nullptr;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<const CudaKernel*> all_;
  std::vector<uint64_t> free_;  // numbers that no kernel has
};

/// Whether SCALETRAIN_CUDA_SYNC asks that the host waits for each kernel, so that an error names its op.
bool waits_for_kernels() {
  const char* const asked = std::getenv("SCALETRAIN_CUDA_SYNC");
  const std::string_view value = asked == nullptr ? "" : asked;
  check(value.empty() || value == "0" || value == "1", "SCALETRAIN_CUDA_SYNC must be 0 or 1, got ", value);
  return value == "1";
}

/// Writes IndexFaults::kHalted to the words of streams, by a stream of its own: theirs may wait for an exchange that never ends.
class Halting {
 public:
  Halting(CudaDevice& device, const HeldContext& context)
      : context_(*context), halted_(device.pin_uncounted(sizeof IndexFaults::kHalted)), is_written_(context), stream_(context) {
    std::memcpy(halted_->data(), &IndexFaults::kHalted, sizeof IndexFaults::kHalted);
  }

  /// Waits until the word is written, for kLongest at most. Behind gigabytes of copies of offloaded state it may be written after the
  /// abort.
  void halt(Address word) noexcept {
    constexpr double kLongest = 0.25;  // seconds
    try {
      const std::lock_guard lock(mutex_);
      const CurrentDevice current(context_);
      stream_.copy_to_device(word, halted_->data(), sizeof IndexFaults::kHalted);
      stream_.record(is_written_);
      for (const double end = os::seconds() + kLongest; !is_written_.has_passed() && os::seconds() < end;) std::this_thread::yield();
    } catch (const std::exception&) {  // a device that has failed runs no update
      return;
    }
  }

 private:
  const DeviceContext& context_;
  std::mutex mutex_;
  const std::unique_ptr<PinnedMemory> halted_;
  CudaEvent is_written_;
  CudaStream stream_;  // last: its end waits for the copies
};

/// With words for faults of its kernels.
class KernelStream final : public CudaStream {
 public:
  KernelStream(CudaDevice& device, HeldContext context, std::shared_ptr<Calls> calls, ProductChoices* products, Halting& halting)
      : CudaStream(std::move(context)),
        device_(device),
        calls_(std::move(calls)),
        products_(products),
        halting_(halting),
        words_(device.allocate_uncounted(kBytes)),
        read_(device.pin_uncounted(kBytes)) {
    clear();
  }
  void finish() override;
  void halt_updates() noexcept override;
  const Prepared* failed() const override;
  bool can_record() const override { return !waits_; }
  /// After each kernel.
  void wait_if_asked(const CudaKernel& given);
  KernelQueue queue(uint64_t call) const { return {handle(), {{pointer_to<uint64_t>(words_->data())}, call}, products_}; }
  using CudaStream::context;

 private:
  static constexpr int64_t kBytes = 2 * sizeof(uint64_t);

  void finish_and_look();
  void keep_halted() noexcept;
  void clear() { fill(words_->data(), IndexFaults::kNoFault); }
  void fill(Address at, uint64_t value) {
    const CurrentDevice current(context());
    enqueue_fill(handle(), DType::i64, pointer_to(at), value, 1);
  }

  CudaDevice& device_;
  const bool waits_ = waits_for_kernels();
  std::shared_ptr<Calls> calls_;
  ProductChoices* const products_;
  Halting& halting_;
  std::unique_ptr<Buffer> words_;
  std::unique_ptr<PinnedMemory> read_;
  std::mutex reads_;  // of finish(), while it reads the words
  std::atomic<bool> is_halted_{false};
  const CudaKernel* failed_ = nullptr;
};

class CudaKernel final : public Prepared {
 public:
  CudaKernel(EnqueueOp kernels, Op op, const Call& call, std::shared_ptr<Calls> calls)
      : kernels_(kernels), op_(op), call_(call), calls_(std::move(calls)), number_(calls_->add(this)) {}
  ~CudaKernel() override { calls_->remove(number_); }
  CudaKernel(const CudaKernel&) = delete;
  CudaKernel& operator=(const CudaKernel&) = delete;

  void enqueue(Stream& stream) override {
    auto& own = static_cast<KernelStream&>(stream);
    const CurrentDevice current(own.context());
    const ProfilerRange range(op_);
    kernels_(own.queue(number_), op_, call_);
    own.wait_if_asked(*this);
  }
  Op op() const { return op_; }
  /// `reported`: the index, which is no longer in the operand if later work has overwritten it.
  [[noreturn]] void fail_at(CudaDevice& device, int64_t element, int64_t reported) const {
    const Operand& indices = indices_of(op_, call_);
    const int64_t width = bytes_of(indices.dtype);
    int64_t value = 0;
    int32_t narrow = 0;
    device.to_host(width == 4 ? static_cast<void*>(&narrow) : &value, indices.data + element * width, width);
    fail_at_index(op_, call_, {width == 4 ? narrow : value, reported}, element);
  }

 private:
  EnqueueOp kernels_;
  Op op_;
  const Call& call_;
  std::shared_ptr<Calls> calls_;
  uint64_t number_;
};

void KernelStream::wait_if_asked(const CudaKernel& given) {
  if (!waits_) return;
  try {
    CudaStream::finish();
  } catch (const Error& why) {
    failed_ = &given;
    Error error(why.code(), text(name_of(given.op()), ": ", why.message()));
    error.place.op = name_of(given.op());
    throw error;
  }
}

/// While finish() reads the word, it is finish() that halts, at its end: the host's thread gives no update meanwhile.
void KernelStream::halt_updates() noexcept {
  is_halted_ = true;
  if (!reads_.try_lock()) return;
  halting_.halt(words_->data());
  reads_.unlock();
}

void KernelStream::keep_halted() noexcept {
  if (!is_halted_) return;
  const std::lock_guard lock(reads_);
  halting_.halt(words_->data());
}

void KernelStream::finish() {
  try {
    const std::lock_guard lock(reads_);
    finish_and_look();
  } catch (...) {
    keep_halted();
    throw;
  }
  keep_halted();
}

void KernelStream::finish_and_look() {
  failed_ = nullptr;
  copy_to_host(read_->data(), words_->data(), kBytes);
  CudaStream::finish();
  uint64_t words[2];
  std::memcpy(words, read_->data(), kBytes);
  const uint64_t fault = words[0];
  if (fault == IndexFaults::kNoFault || fault == IndexFaults::kHalted) return;
  clear();
  CudaStream::finish();
  failed_ = calls_->at(fault >> IndexFaults::kElementBits);
  require(failed_ != nullptr, Code::internal, "cuda: a kernel reported an index, and is gone");
  const auto element = static_cast<int64_t>(fault & ((uint64_t{1} << IndexFaults::kElementBits) - 1));
  failed_->fail_at(device_, element, static_cast<int64_t>(words[1]));
}

const Prepared* KernelStream::failed() const { return failed_; }

std::string bus_id_of(const DeviceContext& context) {
  const CurrentDevice current(context);
  std::array<char, 32> id{};
  must(cudaDeviceGetPCIBusId(id.data(), static_cast<int>(id.size()), context.index()), "cudaDeviceGetPCIBusId");
  return id.data();
}

/// All of enqueue_fold()'s kernels: that of a sum is given after the exchange of its terms.
void load_folds() {
  const LoadingKernels loading;
  const Address any[] = {Address{}};
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i64, DType::i32, DType::u8})
    for (const SumType type : {SumType::wide, SumType::own})
      for (const Address place : {Address{}, Address{1}})  // in vectors or not
        enqueue_fold(nullptr, {.terms = any, .sums = place, .dtype = dtype, .elements = 1, .adds = false, .type = type});
}

class CudaBackend final : public Backend {
 public:
  CudaBackend(std::string name, std::string kernel_class, HeldContext context, std::shared_ptr<MemorySource> memory, OpenNccl nccl,
              const MakeChoices& products)
      : name_(std::move(name)),
        kernel_class_(std::move(kernel_class)),
        context_(std::move(context)),
        bus_id_(bus_id_of(*context_)),
        open_nccl_(nccl),
        memory_(memory ? std::move(memory) : std::make_shared<MemorySource>()),
        device_(context_, memory_) {
    const CurrentDevice current(*context_);
    halting_ = std::make_unique<Halting>(device_, context_);
    if (products) products_ = products();  // last: it is to be ended within the context
  }
  ~CudaBackend() override {
    const CurrentDevice current(*context_, std::nothrow);
    products_.reset();  // a handle of cuBLASLt
  }
  CudaBackend(const CudaBackend&) = delete;
  CudaBackend& operator=(const CudaBackend&) = delete;

  std::string_view name() const override { return name_; }
  std::string_view kernel_class() const override { return kernel_class_; }
  const OpTable& kernels() const override {
    fail(Code::unsupported, text(name_, ": its kernels cannot be called on the host's memory; use a context of device cpu"));
  }
  const GemmKernels& gemm() const override {
    fail(Code::unsupported,
         text(name_, ": this call multiplies arrays of the host; use a context of device cpu, or arrays of this device"));
  }
  std::span<const char* const> product_algorithms() const override {
    return products_ ? algorithm_names() : std::span<const char* const>();
  }
  bool has_kernel(Op op) const override { return kernels_of(op) != nullptr; }
  std::unique_ptr<Buffer> allocate(int64_t bytes, MemoryRole role) override { return device_.allocate(bytes, role); }
  std::unique_ptr<Buffer> allocate_in_file(int64_t /*bytes*/, const std::string& folder) override {
    fail(Code::unsupported, text(name_, ": memory of a device cannot be in a file of ", folder,
                                 "; leave offload_folder out, to offload to the host's memory"));
  }
  std::unique_ptr<Buffer> allocate_on_host(int64_t bytes) override { return device_.allocate_on_host(bytes); }
  int64_t host_free_bytes() const override { return os::available_memory(); }
  int64_t allocated_bytes() const override { return memory_->account().bytes(); }
  int64_t free_bytes() const override { return device_.free_bytes(); }
  void to_host(void* host, Address device, int64_t bytes) override { device_.to_host(host, device, bytes); }
  void to_device(Address device, const void* host, int64_t bytes) override { device_.to_device(device, host, bytes); }
  void copy(Address to, Address from, int64_t bytes) override { device_.copy(to, from, bytes); }
  void zero(Address device, int64_t bytes) override { device_.zero(device, bytes); }
  bool holds(Address place, int64_t bytes) const override { return device_.holds(place, bytes); }
  MemoryPlace memory_place() const override { return {MemoryPlace::kCuda, context_->index()}; }
  std::string_view bus_id() const override { return bus_id_; }
  bool reaches(Address place, int64_t bytes) const override { return device_.reaches(place, bytes); }
  std::unique_ptr<AdoptedStream> adopt(int64_t handle) override {
    return std::make_unique<HostsStream>(handle, context_, text(name_, ":", context_->index()));
  }
  Address of_host(const void* /*host*/) const override {
    fail(Code::unsupported, text(name_, ": kernels cannot read the host's memory; copy it to the device"));
  }
  std::unique_ptr<Stream> make_stream() override {
    return std::make_unique<KernelStream>(device_, context_, calls_, products_.get(), *halting_);
  }
  std::unique_ptr<Event> make_event() override { return device_.make_event(); }
  std::unique_ptr<PinnedMemory> allocate_pinned(int64_t bytes) override { return device_.allocate_pinned(bytes); }
  std::unique_ptr<Prepared> prepare(Op op, const Call& call) override {
    const EnqueueOp enqueue = kernels_of(op);
    require(enqueue != nullptr, Code::unsupported, name_, ": no kernel for ", name_of(op));
    const CurrentDevice current(*context_);
    if (products_) choose_products(*products_, op, call);
    {
      const LoadingKernels loading;  // before the first exchange, and before a recording
      enqueue({nullptr, {}, products_.get()}, op, call);
    }
    return std::make_unique<CudaKernel>(enqueue, op, call, calls_);
  }
  void fold(Stream& stream, const RankFold& fold) override {
    const CurrentDevice current(*context_);
    const ProfilerRange range("fold");
    enqueue_fold(static_cast<const CudaStream&>(stream).handle(), fold);
  }
  std::unique_ptr<DeviceNetwork> open_network() override {
    const CurrentDevice current(*context_);
    load_folds();
    return make_cuda_network(context_, open_nccl_());
  }

 private:
  const std::string name_, kernel_class_;
  const HeldContext context_;
  const std::string bus_id_;
  const OpenNccl open_nccl_;
  std::shared_ptr<MemorySource> memory_;
  CudaDevice device_;
  std::unique_ptr<ProductChoices> products_;
  std::unique_ptr<Halting> halting_;
  std::shared_ptr<Calls> calls_ = std::make_shared<Calls>();
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(std::string name, std::string kernel_class, HeldContext context,
                                           std::shared_ptr<MemorySource> memory, OpenNccl nccl, const MakeChoices& products) {
  return std::make_unique<CudaBackend>(std::move(name), std::move(kernel_class), std::move(context), std::move(memory), nccl, products);
}

}  // namespace st::cuda
