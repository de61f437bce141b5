// Data parallel without a trainer: exchanges the gradients of the program's own backward between ranks while backward runs.
#pragma once

#include <scaletrain/data_parallel.h>

#include <scaletrain/communicator.hpp>
#include <scaletrain/view.hpp>

namespace scaletrain {

struct DataParallelOptions {
  ReduceOp op = ReduceOp::mean;     // or sum
  int64_t bucket_bytes = 26214400;  // exchanged together; changes the speed, but no bit
};

/// Borrows the gradients until it is closed. A step is backward, with gradient_ready(i) for each gradient when it is made, and
/// synchronize().
class DataParallel : public detail::Handle<st_data_parallel, st_data_parallel_destroy> {
 public:
  /// All ranks call it; gradients in the order of the forward.
  DataParallel(const Communicator& communicator, const Views& gradients, const DataParallelOptions& options = DataParallelOptions())
      : Handle(detail::Access::host(communicator)) {
    for (const NamedView& gradient : gradients) detail::writable("DataParallel", gradient.view);
    st_data_parallel_options raw;
    check(st_data_parallel_options_init(&raw, sizeof raw));
    raw.op = static_cast<st_reduce_op>(options.op);
    raw.bucket_bytes = options.bucket_bytes;
    done(st_data_parallel_create(communicator.get(), gradients.size(), gradients.raw(), &raw, out()));
  }

  /// Backward has finished gradient i: its exchange may begin.
  void gradient_ready(int64_t i) const { done(st_data_parallel_gradient_ready(get(), i)); }
  /// Waits until all gradients hold the sum or mean over all ranks.
  void synchronize() const { done(st_data_parallel_synchronize(get())); }
  /// While on, nothing is exchanged.
  void no_sync(bool on) const { done(st_data_parallel_no_sync(get(), on ? 1 : 0)); }
};

}  // namespace scaletrain
