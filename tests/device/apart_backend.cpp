#include "apart_backend.h"

#include <array>
#include <utility>
#include <vector>

#include "base/error.h"

namespace st {
namespace {

constexpr int64_t kAway = int64_t{1} << 62;  // no address of a process on x86-64

Address away(Address place) { return place ? place + kAway : place; }

Address back(Address place) { return place.at >= static_cast<uintptr_t>(kAway) ? place + -kAway : place; }

class ApartBuffer : public Buffer {
 public:
  explicit ApartBuffer(std::unique_ptr<Buffer> buffer) : buffer_(std::move(buffer)) {}

  Address data() const override { return away(buffer_->data()); }
  int64_t size() const override { return buffer_->size(); }
  void move_to_file(const std::string& folder) override { buffer_->move_to_file(folder); }
  bool is_in_file() const override { return buffer_->is_in_file(); }

 private:
  std::unique_ptr<Buffer> buffer_;
};

const OpTable* inner_kernels = nullptr;  // of the cpu; the same for all

std::vector<Operand> back(std::span<const Operand> operands) {
  std::vector<Operand> all(operands.begin(), operands.end());
  for (Operand& operand : all) operand.data = back(operand.data);
  return all;
}

template <size_t kOp>
void run_inside(const Call& call) {
  const std::vector<Operand> in = back(call.in), out = back(call.out), reads = back(call.reads), writes = back(call.writes);
  Call inside = call;
  inside.in = in, inside.out = out, inside.reads = reads, inside.writes = writes;
  inside.workspace = back(call.workspace);
  (*inner_kernels)[kOp].run(inside);
}

template <size_t... kOp>
OpTable table_of(std::index_sequence<kOp...>) {
  OpTable table{};
  ((table[kOp].run = (*inner_kernels)[kOp].run == nullptr ? nullptr : run_inside<kOp>), ...);
  return table;
}

class ApartStream : public Stream {
 public:
  explicit ApartStream(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}
  void copy_to_device(Address to, const std::byte* pinned, int64_t bytes) override { stream_->copy_to_device(back(to), pinned, bytes); }
  void copy_to_host(std::byte* pinned, Address from, int64_t bytes) override { stream_->copy_to_host(pinned, back(from), bytes); }
  void copy(Address to, Address from, int64_t bytes) override { stream_->copy(back(to), back(from), bytes); }
  void record(Event& event) override { stream_->record(event); }
  void wait(const Event& event) override { stream_->wait(event); }
  void finish() override {}
  const Prepared* failed() const override { return nullptr; }

 private:
  std::unique_ptr<Stream> stream_;
};

class ApartKernel : public Prepared {
 public:
  ApartKernel(void (*run)(const Call& call), const Call& call) : run_(run), call_(call) {}
  void enqueue(Stream& /*stream*/) override { run_(call_); }

 private:
  void (*run_)(const Call& call);
  const Call& call_;
};

}  // namespace

ApartBackend::ApartBackend(std::shared_ptr<MemorySource> memory) : cpu_(make_cpu_backend(std::move(memory))) {
  inner_kernels = &cpu_->kernels();
}

const OpTable& ApartBackend::kernels() const {
  static const OpTable table = table_of(std::make_index_sequence<kOps>());
  return table;
}

std::unique_ptr<Buffer> ApartBackend::allocate(int64_t bytes, MemoryRole role) {
  return std::make_unique<ApartBuffer>(cpu_->allocate(bytes, role));
}

std::unique_ptr<Buffer> ApartBackend::allocate_in_file(int64_t bytes, const std::string& folder) {
  return std::make_unique<ApartBuffer>(cpu_->allocate_in_file(bytes, folder));
}

void ApartBackend::to_host(void* host, Address device, int64_t bytes) { cpu_->to_host(host, back(device), bytes); }

void ApartBackend::to_device(Address device, const void* host, int64_t bytes) { cpu_->to_device(back(device), host, bytes); }

void ApartBackend::copy(Address to, Address from, int64_t bytes) { cpu_->copy(back(to), back(from), bytes); }

void ApartBackend::zero(Address device, int64_t bytes) { cpu_->zero(back(device), bytes); }

std::unique_ptr<Stream> ApartBackend::make_stream() { return std::make_unique<ApartStream>(cpu_->make_stream()); }

std::unique_ptr<Prepared> ApartBackend::prepare(Op op, const Call& call) {
  return std::make_unique<ApartKernel>(kernels()[static_cast<size_t>(op)].run, call);
}

void ApartBackend::fold(Stream& /*stream*/, const RankFold& fold) {
  std::vector<Address> terms(fold.terms.begin(), fold.terms.end());
  for (Address& term : terms) term = back(term);
  RankFold inside = fold;
  inside.terms = terms;
  inside.sums = back(fold.sums);
  run_fold(inside);
}

}  // namespace st
