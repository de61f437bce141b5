#include "step_calls.h"

#include <utility>

#include "group_call.h"

namespace st::capi {
namespace {

void write_line(TrainerObject& t, const StepReport& report) {
  if (!t.log) return;
  try {
    t.log->write(report);
  } catch (const Error& error) {
    t.log.reset();
    fail(error.code(),
         text("trainer: step ", report.step, " is done, but its line could not be logged, and the log is closed: ", error.message()));
  }
}

template <class Call>
void abandoning_on_error(TrainerObject& t, const Call& call) {
  try {
    call();
  } catch (...) {
    t.trainer->abandon();
    throw;
  }
}

}  // namespace

GroupTurn::GroupTurn(TrainerObject& trainer) : trainer_(trainer) {
  if (!trainer.group) return;
  turn_.emplace(Kind::communicator, trainer.group);
  take_turn(*trainer.group);
  trainer.group->at_step = trainer.trainer.get();
}

void end_group(CommunicatorObject* group, const Error& error) {
  const bool is_told = error.is_on_all_ranks || error.code() == Code::rank_mismatch;
  if (group != nullptr && !is_told) group->ranks->abort(error.message());
}

StepCall::StepCall(TrainerObject& trainer)
    : trainer_((write_log_early(trainer), trainer)),  // of the step shown to on_step, in which this one is made
      group_(trainer),
      weights_(Kind::model, trainer.model) {}

void StepCall::fail() {
  try {
    throw;
  } catch (Error& error) {
    if (has_begun_) error.place.step = trainer_.trainer->steps() + 1;
    if (has_begun_ && error.code() == Code::cancelled) trainer_.trainer->take_cancel();
    end_group(trainer_.group.get(), error);
    throw;
  } catch (const std::exception& error) {
    if (trainer_.group) trainer_.group->ranks->abort(error.what());
    throw;
  }
}

void take_batch(TrainerObject& t, int64_t n, const st_named_view* batch, const char* call) {
  abandoning_on_error(t, [&] { take_views(t.views, n, batch, call, t.model->model->context()); });
}

void take_outputs(TrainerObject& t, int64_t m, const st_named_view* outputs, const char* call) {
  abandoning_on_error(t, [&] { take_written_views(t.filled, m, outputs, call, t.model->model->context()); });
}

void give_report(const TrainerObject& t, st_step_report* theirs, const StepReport& r) {
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
  ours.gradient_noise_scale = r.gradient_noise_scale;
  ours.save_error = t.saves.error.empty() ? nullptr : t.saves.error.c_str();
  ours.saved_step = t.saves.checkpoint ? t.saves.checkpoint->saves().saved_step() : -1;
  give(theirs, ours, "st_trainer_step: report");
}

const Logger& logger(const TrainerObject& t) { return t.model->model->context().options().log; }

void note(TrainerObject& t, const StepReport& report) {
  t.history.add(report);
  if (report.skipped) logger(t).warning("trainer", "step ", report.step, " was skipped: its gradient is not finite");
}

void write_log(TrainerObject& t) {
  write_log_early(t);
  t.to_log.reset();
  if (t.log_error) std::rethrow_exception(std::exchange(t.log_error, nullptr));
}

void write_log_early(TrainerObject& t) noexcept {
  if (!t.to_log || t.is_logged) return;
  try {
    write_line(t, *t.to_log);
  } catch (...) {
    t.log_error = std::current_exception();
  }
  t.is_logged = true;
}

}  // namespace st::capi
