#include "delayed_backend.h"

#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/error.h"
#include "device_memory.h"

namespace st {

struct DeviceBuffers {
  mutable std::mutex mutex;
  std::map<Address, int64_t> bytes_at, bytes_on_host_at;
};

namespace {

using device_memory::for_kernels;

std::byte* on_device(Address place) { return reinterpret_cast<std::byte*>(for_kernels(place).at); }

void copy_bytes(void* to, const void* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

class DelayedBuffer : public Buffer {
 public:
  DelayedBuffer(int64_t bytes, std::shared_ptr<MemorySource> source, MemoryRole role, std::shared_ptr<DeviceBuffers> all)
      : source_(std::move(source)), all_(std::move(all)), at_(device_memory::allocate(bytes)), bytes_(bytes), role_(role) {
    source_->account().add(role_, bytes_);
    const std::lock_guard lock(all_->mutex);
    all_->bytes_at.emplace(at_, bytes_);
  }
  ~DelayedBuffer() override {
    {
      const std::lock_guard lock(all_->mutex);
      all_->bytes_at.erase(at_);
    }
    source_->account().add(role_, -bytes_);
    device_memory::free(at_, bytes_);
  }
  Address data() const override { return at_; }
  int64_t size() const override { return bytes_; }
  void move_to_file(const std::string& /*folder*/) override {
    source_->account().add(role_, -bytes_);
    role_ = MemoryRole::file;
    source_->account().add(role_, bytes_);
  }
  bool is_in_file() const override { return role_ == MemoryRole::file; }

 private:
  std::shared_ptr<MemorySource> source_;
  std::shared_ptr<DeviceBuffers> all_;
  Address at_;
  int64_t bytes_;
  MemoryRole role_;
};

/// Memory of the host, whose addresses the backend's own copies take, and no kernel does.
class HomeBuffer : public Buffer {
 public:
  HomeBuffer(std::unique_ptr<Buffer> buffer, std::shared_ptr<DeviceBuffers> all) : buffer_(std::move(buffer)), all_(std::move(all)) {
    const std::lock_guard lock(all_->mutex);
    all_->bytes_on_host_at.emplace(buffer_->data(), buffer_->size());
  }
  ~HomeBuffer() override {
    const std::lock_guard lock(all_->mutex);
    all_->bytes_on_host_at.erase(buffer_->data());
  }
  Address data() const override { return buffer_->data(); }
  int64_t size() const override { return buffer_->size(); }
  void move_to_file(const std::string& folder) override { buffer_->move_to_file(folder); }
  bool is_in_file() const override { return false; }
  std::byte* pinned() const override { return buffer_->pinned(); }

 private:
  std::unique_ptr<Buffer> buffer_;
  std::shared_ptr<DeviceBuffers> all_;
};

class DelayedEvent : public Event {
 public:
  DelayedEvent(std::shared_ptr<StreamEngine> engine, Planted planted) : engine_(std::move(engine)), planted_(planted) {}
  void wait() override {
    if (planted_ != Planted::event_does_not_wait) engine_->wait(*point_);
  }
  const std::shared_ptr<StreamEngine::Point>& point() const { return point_; }

 private:
  std::shared_ptr<StreamEngine> engine_;
  std::shared_ptr<StreamEngine::Point> point_ = std::make_shared<StreamEngine::Point>();
  Planted planted_;
};

class DelayedStream : public Stream {
 public:
  DelayedStream(std::shared_ptr<StreamEngine> engine, Planted planted, bool records, DeviceCounts& counts)
      : engine_(std::move(engine)), queue_(engine_->make_queue()), planted_(planted), records_(records), counts_(counts) {}
  ~DelayedStream() override {
    if (planted_ == Planted::finish_does_not_wait) return;  // what its work would use is gone
    try {
      flush();
      engine_->finish(*queue_);
    } catch (const std::exception&) {
      return;
    }
  }
  void copy_to_device(Address to, const std::byte* pinned, int64_t bytes) override {
    give_other([=] { copy_bytes(on_device(to), pinned, bytes); });
  }
  void copy_to_host(std::byte* pinned, Address from, int64_t bytes) override {
    ++counts_.host_copies;
    give_other([=] { copy_bytes(pinned, on_device(from), bytes); });
  }
  void copy(Address to, Address from, int64_t bytes) override {
    give_other([=] { copy_bytes(on_device(to), on_device(from), bytes); });
  }
  void record(Event& event) override {
    engine_->record(queue(), static_cast<DelayedEvent&>(event).point());
    flush();
  }
  void wait(const Event& event) override {
    flush();
    if (planted_ != Planted::stream_does_not_wait) engine_->wait(queue(), static_cast<const DelayedEvent&>(event).point());
  }
  void finish() override {
    ++counts_.finishes;
    flush();
    if (planted_ != Planted::finish_does_not_wait) engine_->finish(queue());
  }
  const Prepared* failed() const override { return static_cast<const Prepared*>(queue_->failed()); }
  bool can_record() const override { return records_; }
  void begin_recording() override { recording_ = std::make_unique<DelayedRecording>(counts_.launches); }
  std::unique_ptr<Recording> end_recording() override { return std::move(recording_); }
  void abandon_recording() noexcept override { recording_ = nullptr; }
  void give(std::function<void()> work, const Prepared* kernel) {
    if (recording_) {
      recording_->kernels.push_back({std::move(work), kernel});
      return;
    }
    flush();
    if (planted_ != Planted::event_is_early) return engine_->give(*queue_, std::move(work), kernel);
    held_ = std::move(work);
    held_name_ = kernel;
  }
  /// Copies and folds, which are not recorded.
  void give_other(std::function<void()> work) {
    queue();
    give(std::move(work), nullptr);
  }

 private:
  class DelayedRecording : public Recording {
   public:
    explicit DelayedRecording(std::atomic<int64_t>& launches) : launches_(launches) {}
    void launch(Stream& stream) override {
      ++launches_;
      for (const auto& [work, kernel] : kernels) static_cast<DelayedStream&>(stream).give(work, kernel);
    }
    std::vector<std::pair<std::function<void()>, const Prepared*>> kernels;

   private:
    std::atomic<int64_t>& launches_;
  };

  /// Only kernels may be recorded.
  StreamEngine::Queue& queue() {
    if (recording_) throw std::logic_error("delayed: work that is no kernel is given while kernels are recorded");
    return *queue_;
  }
  void flush() {
    if (held_) engine_->give(*queue_, std::exchange(held_, nullptr), held_name_);
  }

  std::shared_ptr<StreamEngine> engine_;
  std::shared_ptr<StreamEngine::Queue> queue_;
  Planted planted_;
  bool records_;
  DeviceCounts& counts_;
  std::unique_ptr<DelayedRecording> recording_;  // of begin_recording()
  std::function<void()> held_;                   // the last work, until an event that is early has been recorded
  const Prepared* held_name_ = nullptr;
};

class DelayedAdopted : public AdoptedStream {
 public:
  explicit DelayedAdopted(int64_t handle) : stream_(*reinterpret_cast<Stream*>(handle)) {}
  void record(Event& event) override { stream_.record(event); }
  void wait(const Event& event) override { stream_.wait(event); }

 private:
  Stream& stream_;
};

/// A call as it was when it was given or recorded; an executor may bind other operands before it runs.
class CallForKernels {
 public:
  explicit CallForKernels(const Call& call)
      : call_(call), in_(list(call.in)), out_(list(call.out)), reads_(list(call.reads)), writes_(list(call.writes)) {}
  void run(void (*kernel)(const Call& call)) const {
    const std::vector<Operand> in = here(in_), out = here(out_), reads = here(reads_), writes = here(writes_);
    Call call = call_;
    call.in = in, call.out = out, call.reads = reads, call.writes = writes;
    call.workspace = for_kernels(call.workspace);
    kernel(call);
  }

 private:
  static std::vector<Operand> list(std::span<const Operand> operands) { return {operands.begin(), operands.end()}; }
  static std::vector<Operand> here(std::vector<Operand> operands) {
    for (Operand& operand : operands) operand.data = for_kernels(operand.data);
    return operands;
  }

  Call call_;
  std::vector<Operand> in_, out_, reads_, writes_;
};

class DelayedKernel : public Prepared {
 public:
  DelayedKernel(void (*run)(const Call& call), const Call& call) : run_(run), call_(call) {}
  void enqueue(Stream& stream) override {
    const auto given = std::make_shared<const CallForKernels>(call_);
    static_cast<DelayedStream&>(stream).give([run = run_, given] { given->run(run); }, this);
  }

 private:
  void (*run_)(const Call& call);
  const Call& call_;
};

}  // namespace

DelayedBackend::DelayedBackend(std::unique_ptr<Backend> host, std::shared_ptr<MemorySource> memory, Order order, Planted planted,
                               bool records)
    : host_(std::move(host)),
      memory_(std::move(memory)),
      engine_(std::make_shared<StreamEngine>(order)),
      buffers_(std::make_shared<DeviceBuffers>()),
      planted_(planted),
      records_(records) {}

void DelayedBackend::count_allocation(int64_t bytes, const char* kind) {
  if (allocations_left_ > 0 && --allocations_left_ == 0) {
    failed_bytes_ = bytes;
    allocations_left_ = -1;
    fail(Code::out_of_memory, text("delayed: cannot allocate ", bytes, " bytes of ", kind, " memory"));
  }
}

namespace {

bool is_in(const std::map<Address, int64_t>& buffers, Address place, int64_t bytes) {
  const auto behind = buffers.upper_bound(place);
  if (behind == buffers.begin()) return false;
  const auto& [begin, size] = *std::prev(behind);
  return place - begin + bytes <= size;
}

}  // namespace

bool DelayedBackend::holds(Address place, int64_t bytes) const {
  const std::lock_guard lock(buffers_->mutex);
  return is_in(buffers_->bytes_at, place, bytes);
}

/// For the host's own copies.
std::byte* DelayedBackend::place_of(Address place) const {
  const std::lock_guard lock(buffers_->mutex);
  return is_in(buffers_->bytes_on_host_at, place, 0) ? reinterpret_cast<std::byte*>(place.at) : on_device(place);
}

std::unique_ptr<PinnedMemory> DelayedBackend::allocate_pinned(int64_t bytes) {
  count_allocation(bytes, "pinned");
  return host_->allocate_pinned(bytes);
}

std::unique_ptr<Buffer> DelayedBackend::allocate(int64_t bytes, MemoryRole role) {
  count_allocation(bytes, "device");
  return std::make_unique<DelayedBuffer>(bytes, memory_, role, buffers_);
}

std::unique_ptr<Buffer> DelayedBackend::allocate_in_file(int64_t bytes, const std::string& folder) {
  host_->allocate_in_file(1, folder);  // what is wrong with the folder
  count_allocation(bytes, "device");
  return std::make_unique<DelayedBuffer>(bytes, memory_, MemoryRole::file, buffers_);
}

std::unique_ptr<Buffer> DelayedBackend::allocate_on_host(int64_t bytes) {
  count_allocation(bytes, "the host's");
  return std::make_unique<HomeBuffer>(host_->allocate_on_host(bytes), buffers_);
}

void DelayedBackend::to_host(void* host, Address device, int64_t bytes) {
  ++counts_.host_copies;
  copy_bytes(host, place_of(device), bytes);
}

void DelayedBackend::to_device(Address device, const void* host, int64_t bytes) {
  ++counts_.host_copies;
  copy_bytes(place_of(device), host, bytes);
}

void DelayedBackend::copy(Address to, Address from, int64_t bytes) { copy_bytes(place_of(to), place_of(from), bytes); }

void DelayedBackend::zero(Address device, int64_t bytes) {
  if (bytes > 0) std::memset(place_of(device), 0, static_cast<size_t>(bytes));
}

Address DelayedBackend::of_host(const void* /*host*/) const {
  fail(Code::unsupported, "delayed: kernels cannot read the host's memory; copy it to the device");
}

std::unique_ptr<Stream> DelayedBackend::make_stream() { return std::make_unique<DelayedStream>(engine_, planted_, records_, counts_); }

std::unique_ptr<Event> DelayedBackend::make_event() { return std::make_unique<DelayedEvent>(engine_, planted_); }

std::unique_ptr<AdoptedStream> DelayedBackend::adopt(int64_t handle) { return std::make_unique<DelayedAdopted>(handle); }

std::unique_ptr<Prepared> DelayedBackend::prepare(Op op, const Call& call) {
  return std::make_unique<DelayedKernel>(kernels()[static_cast<size_t>(op)].run, call);
}

void DelayedBackend::fold(Stream& stream, const RankFold& fold) {
  std::vector<Address> terms(fold.terms.begin(), fold.terms.end());
  static_cast<DelayedStream&>(stream).give_other([terms = std::move(terms), given = fold]() mutable {
    for (Address& term : terms) term = for_kernels(term);
    given.terms = terms;
    given.sums = for_kernels(given.sums);
    run_fold(given);
  });
}

}  // namespace st
