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

}  // namespace st
