// One collective on operands of its own, run by ranks that are threads, and what comes of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/combine.h"
#include "device_ranks.h"
#include "exec/planned_exchange.h"

namespace st {

inline std::vector<std::byte> bytes_as(DType dtype, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * static_cast<size_t>(bytes_of(dtype)));
  if (dtype == DType::i32) {  // any bits: they are gathered
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  if (dtype != DType::f64) {
    narrow(dtype, reinterpret_cast<const std::byte*>(values.data()), bytes.data(), static_cast<int64_t>(values.size()));
    return bytes;
  }
  const std::vector<double> wide(values.begin(), values.end());
  std::memcpy(bytes.data(), wide.data(), bytes.size());
  return bytes;
}

/// A collective of one rank on operands of its own.
struct OneExchange {
  using Wrap = std::function<std::unique_ptr<Stream>(std::unique_ptr<Stream>)>;

  /// in, out: their elements, which of rank_sums are in the same slots if `out` is 0. `wrap`: of the exchange's stream. `is_fast`: as
  /// ExchangePlan has it.
  OneExchange(Backend& device, Communicator& ranks, Op op, DType dtype, int64_t in, int64_t out, int64_t whole, const Wrap& wrap = {},
              bool is_fast = false)
      : backend(device),
        in_bytes(in * bytes_of(dtype)),
        out_bytes((out == 0 ? in : out) * bytes_of(dtype_of_out(op, dtype))),
        in_memory(device.allocate(in_bytes, MemoryRole::other)),
        out_memory(out == 0 ? nullptr : device.allocate(out_bytes, MemoryRole::other)),
        from{in_memory->data(), dtype, Shape{in}},
        to{out == 0 ? in_memory->data() : out_memory->data(), dtype_of_out(op, dtype), Shape{out == 0 ? in : out}},
        call{.in = {&from, 1},
             .out = op == Op::rank_sums ? std::span<const Operand>() : std::span<const Operand>(&to, 1),
             .reads = {},
             .writes = op == Op::rank_sums ? std::span<const Operand>(&to, 1) : std::span<const Operand>(),
             .workspace = {}},
        plan{.op = op, .axis = MeshAxis::tensor, .dtype = dtype, .label = "a value", .terms = in, .is_fast = is_fast, .elements = whole},
        computing(device.make_stream()),
        exchanging(wrap ? wrap(device.make_stream()) : device.make_stream()),
        exchange(plan, program, call, ranks, device, exchanging.get()) {}
  ~OneExchange() {
    computing->finish();
    exchanging->finish();
  }
  OneExchange(const OneExchange&) = delete;
  OneExchange& operator=(const OneExchange&) = delete;

  static DType dtype_of_out(Op op, DType dtype) { return op == Op::tensor_gather || dtype == DType::f64 ? dtype : DType::f32; }

  void set(const std::vector<std::byte>& bytes) { backend.to_device(from.data, bytes.data(), std::ssize(bytes)); }
  void run(int contributors) {
    if (exchange.follows()) exchange.fork(*computing);
    exchange.run(contributors);
    if (exchange.follows()) exchange.join(*computing);
  }
  std::vector<std::byte> result() {
    computing->finish();
    std::vector<std::byte> bytes(static_cast<size_t>(out_bytes));
    backend.to_host(bytes.data(), to.data, out_bytes);
    return bytes;
  }

  Backend& backend;
  const int64_t in_bytes, out_bytes;
  std::unique_ptr<Buffer> in_memory, out_memory;
  const Operand from, to;
  const Call call;
  const ExchangePlan plan;
  const Program program;
  std::unique_ptr<Stream> computing, exchanging;
  PlannedExchange exchange;
};

struct Exchanged {
  Op op;
  DType dtype;
  int64_t elements;  // of each rank's input
  bool in_place = false, is_fast = false;

  int64_t out(int ranks) const {
    return in_place ? 0 : op == Op::tensor_gather ? elements * ranks : op == Op::tensor_scatter ? elements / ranks : elements;
  }
  int64_t whole(int ranks) const { return op == Op::tensor_gather ? elements * ranks : elements; }
};

inline constexpr Exchanged kExchanged[] = {
    {Op::tensor_gather, DType::bf16, 77},     {Op::tensor_gather, DType::f32, 5000}, {Op::tensor_scatter, DType::f32, 8 * 15 * 100},
    {Op::tensor_scatter, DType::f16, 8 * 15}, {Op::tensor_sum, DType::f32, 100},     {Op::tensor_sum, DType::f32, 5001},
    {Op::tensor_sum, DType::f64, 3},          {Op::tensor_sum, DType::f64, 1001},    {Op::rank_sums, DType::f64, 5},
    {Op::rank_sums, DType::f64, 5, true},     {Op::tensor_gather, DType::i32, 78},
};

struct ExchangeOutcome {
  std::vector<std::vector<std::byte>> results;  // of ranks, one exchange after the other
  int64_t sent = 0, copied = 0;                 // of all ranks
};

/// `backend_of`: a rank's device, or the one that all share. `connect`: called first, on each rank.
inline ExchangeOutcome outcome_of(const Exchanged& what, int ranks, int contributors, const std::function<Backend&(int)>& backend_of,
                                  const std::function<void(DirectExchange&, Backend&)>& connect = {}) {
  ExchangeOutcome outcome;
  outcome.results.resize(static_cast<size_t>(ranks));
  std::mutex mutex;
  expect_none(on_ranks(ranks, [&](DirectExchange& group) {
    const auto own = static_cast<size_t>(group.rank());
    if (connect) connect(group, backend_of(group.rank()));
    OneExchange one(backend_of(group.rank()), group, what.op, what.dtype, what.elements, what.out(ranks), what.whole(ranks), {},
                    what.is_fast);
    for (uint32_t round = 0; round < 3; ++round) {
      one.set(bytes_as(what.dtype, numbers(what.elements, round * 100 + static_cast<uint32_t>(own) + 1)));
      one.run(contributors);
      const std::vector<std::byte> result = one.result();
      outcome.results[own].insert(outcome.results[own].end(), result.begin(), result.end());
      group.barrier();  // before inputs are set, which no stream orders
    }
    const std::lock_guard lock(mutex);
    outcome.sent += group.sent_bytes();
    outcome.copied += one.exchange.copied_bytes();
  }));
  return outcome;
}

}  // namespace st
