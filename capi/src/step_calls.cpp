#include "step_calls.h"

#include <algorithm>

namespace st::capi {
namespace {

constexpr double kMaxElements = 0x1p48;

NamedView view_of(const st_named_view& theirs, const char* call) {
  check(theirs.name != nullptr, call, ": a view has no name (NULL)");
  const st_view& v = theirs.view;
  static_cast<void>(name_of(static_cast<DType>(v.dtype)));  // throws when it is none
  check(v.rank >= 0 && v.rank <= kMaxDims && (v.rank == 0 || v.dims != nullptr), call, ": view \"", theirs.name, "\" has rank ", v.rank,
        v.dims == nullptr ? " and no dims (NULL)" : "; allowed is 0 to 8");
  require(v.strides == nullptr, Code::unsupported, call, ": view \"", theirs.name,
          "\" has strides, which are not taken yet; pass NULL for row-major");
  const Shape shape(std::span<const int64_t>(v.dims, static_cast<size_t>(v.rank)));
  check(std::ranges::all_of(shape.dims(), [](int64_t dim) { return dim >= 0; }), call, ": view \"", theirs.name, "\" has shape ", shape);
  double elements = 1;  // a double says "too many" where int64 would wrap around
  for (const int64_t dim : shape) elements *= static_cast<double>(dim);
  check(elements <= kMaxElements, call, ": view \"", theirs.name, "\" has shape ", shape, ", which no memory holds");
  const int64_t bytes = shape.elements() * bytes_of(static_cast<DType>(v.dtype));
  check(v.bytes >= bytes, call, ": view \"", theirs.name, "\" of shape ", shape, " needs ", bytes, " bytes, it has ", v.bytes);
  return {theirs.name, static_cast<DType>(v.dtype), shape, v.data};
}

/// A long run keeps every second, fourth, ... report, so that history costs a fixed amount of memory and a step allocates nothing.
void keep(TrainerObject& t, const StepReport& report) {
  const auto is_kept = [&](const StepReport& r) { return r.step == 1 || r.step % t.stride == 0; };
  if (t.steps.size() == kKeptSteps) {
    t.stride *= 2;
    std::erase_if(t.steps, [&](const StepReport& r) { return !is_kept(r); });
  }
  if (is_kept(report)) t.steps.push_back(report);
}

}  // namespace

void take_views(std::vector<NamedView>& views, int64_t n, const st_named_view* batch, const char* call) {
  check(n >= 0 && n <= 1024, call, ": ", n, " views");
  check(batch != nullptr || n == 0, call, ": batch is NULL with n = ", n, " views; give the views, or n = 0 for the data's rows");
  views.clear();
  for (int64_t i = 0; i < n; ++i) views.push_back(view_of(batch[i], call));
}

void give_report(st_step_report* theirs, const StepReport& r) {
  st_step_report ours{};
  ours.skipped = r.skipped ? 1 : 0;
  ours.step = r.step;
  ours.loss = r.loss;
  ours.lr = r.lr;
  ours.grad_norm = r.grad_norm;
  ours.loss_scale = r.loss_scale;
  ours.tokens = r.tokens;
  ours.tokens_per_second = r.tokens_per_second;
  ours.milliseconds = r.milliseconds;
  ours.memory_bytes = r.memory_bytes;
  give(theirs, ours, "st_trainer_step: report");
}

const Logger& logger(const TrainerObject& t) { return t.model->model->context().options().log; }

void note(TrainerObject& t, const StepReport& report) {
  keep(t, report);
  if (report.skipped) logger(t).warning("trainer", "step ", report.step, " was skipped: its gradient is not finite");
}

void write_log(TrainerObject& t, const StepReport& report) {
  if (!t.log) return;
  try {
    t.log->write(report);
  } catch (const Error& error) {
    t.log.reset();
    fail(error.code(),
         text("trainer: step ", report.step, " is done, but its line could not be logged, and the log is closed: ", error.message()));
  }
}

}  // namespace st::capi
