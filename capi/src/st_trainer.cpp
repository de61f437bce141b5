#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>

#include "base/callback_reason.h"
#include "base/os/machine.h"
#include "base/os/whole_file.h"
#include "communicator_object.h"
#include "data_objects.h"
#include "guard.h"
#include "model_object.h"
#include "plan/plan.h"
#include "recipe_object.h"
#include "report_facts.h"
#include "step_calls.h"
#include "team/rank_agreement.h"
#include "trainer_object.h"
#include "tuning/batch_choice.h"

using namespace st;
using namespace st::capi;

namespace {

/// A typing error in batch or accumulate could give a plan too large to count or to fit into memory. Counts in doubles, which show "too
/// many" where int64 would wrap around; the trainer measures a plan that passes here exactly.
void require_countable(const Model& model, const Recipe& recipe) {
  constexpr double kInstructionBytes = 256;
  double values = 0, nodes = 0;
  for (const Section& section : model.program().sections)
    for (const Node& node : section.graph.nodes) {
      ++nodes;
      for (const Type& type : node.out) values += 8 * std::abs(static_cast<double>(type.shape.elements()));
    }
  const int64_t micro_batches = recipe.step_micro_batches(), there = model.context().available_memory();
  const double bytes = values * static_cast<double>(recipe.batch), plan = nodes * kInstructionBytes * static_cast<double>(micro_batches);
  require(bytes < 0x1p56 && plan < static_cast<double>(there), Code::out_of_memory, "st_trainer_create: a step of ", micro_batches,
          " micro-batches of ", recipe.batch, " rows needs about ", bytes + plan, " bytes, but only ", text_of_bytes(there),
          " is available; use a smaller batch");
}

/// The objects of the host's handles; holds the model for this call.
struct Parents {
  Parents(std::shared_ptr<ModelObject> of, st_recipe* from, st_data* data)
      : model(std::move(of)), recipe(find(from)->recipe), rows(data == nullptr ? nullptr : peek(data)->dataset) {}

  std::shared_ptr<ModelObject> model;
  Recipe recipe;
  std::shared_ptr<const Dataset> rows;
  Lease<ModelObject> weights{Kind::model, model};
};

void create(const Parents& from, std::shared_ptr<CommunicatorObject> group, st_trainer** trainer) {
  auto object = std::make_shared<TrainerObject>();
  object->model = from.model;
  object->group = std::move(group);
  Recipe chosen = from.recipe;
  if (object->group) chosen = on_ranks(std::move(chosen), object->group->ranks->size());
  if (chosen.batch > 0) require_countable(*object->model->model, chosen);
  chosen = with_batch_decided(*object->model->model, std::move(chosen), {});
  require_countable(*object->model->model, chosen);
  object->trainer = std::make_unique<Trainer>(object->model->model, chosen, from.rows, PlanOptions(),
                                              object->group ? object->group->ranks.get() : nullptr);
  if (object->group && object->model->model->is_sharded()) object->model->group = object->group;
  object->started = os::seconds();
  object->model->model->context().on_trim(object);
  logger(*object).info("trainer", "planned ", object->trainer->plan().instructions.size(), " instructions and ",
                       text_of_bytes(object->trainer->plan().memory.device_bytes()), " for a step of ", object->trainer->rows_per_step(),
                       " rows");
  hand_out(trainer, std::move(object));
}

/// A whole step of st_trainer_step, or of st_trainer_run, which gives no views and no report.
StepReport step(TrainerObject& t, int64_t n, const st_named_view* batch, const st_step_report* report) {
  StepCall call(t);
  try {
    if (report != nullptr) take(report, "st_trainer_step: report");
    check(batch != nullptr || n == 0, "st_trainer_step: batch is NULL with n = ", n,
          " views; give the views, or n = 0 for the data's rows");
    if (batch != nullptr) take_views(t.views, n, batch, "st_trainer_step", t.model->model->context());
    call.begin();
    const StepReport made = saved(t, batch == nullptr ? t.trainer->step() : t.trainer->step(t.views));
    note(t, made);
    return made;
  } catch (...) {
    call.fail();
  }
}

void give_metrics(TrainerObject& t, const Evaluation& made, st_evaluation& ours) {
  t.metrics.clear();
  t.metric_names.clear();
  for (const Metric& metric : made.metrics) t.metric_names.push_back(metric.name);
  for (size_t i = 0; i < made.metrics.size(); ++i) t.metrics.push_back({t.metric_names[i].c_str(), made.metrics[i].mean});
  ours.metric_count = static_cast<int64_t>(t.metrics.size());
  ours.metrics = t.metrics.empty() ? nullptr : t.metrics.data();
}

using Evaluate = Evaluation (Trainer::*)(const std::shared_ptr<const Dataset>& data);

/// Returns the point that is kept of it.
ValidationPoint evaluate(TrainerObject& t, st_data* data, st_evaluation* evaluation, Evaluate call, bool of_average, Reach reach) {
  const auto rows = peek(data)->dataset;
  std::optional<ShardedCall> turn;
  if (reach == Reach::collective) turn.emplace(t);
  const Evaluation made = cancellable(t, [&] { return (t.trainer.get()->*call)(rows); });
  st_evaluation ours{};
  ours.loss = made.loss;
  ours.count = made.count;
  give_metrics(t, made, ours);
  give(evaluation, ours, "st_trainer_evaluate: evaluation");
  ValidationPoint point{t.trainer->steps(), made.loss, made.metrics};
  if (t.log) t.log->write(point, of_average);
  return point;
}

// The calls that come in pairs; `call` is the function that the host has called.

st_status evaluate_weights(st_trainer* trainer, st_data* data, st_evaluation* evaluation, Reach reach,
                           const char* call = __builtin_FUNCTION()) {
  const auto body = [&] {
    given(evaluation, call, "evaluation");
    take(evaluation, call);
    const auto t = find(trainer);
    if (reach == Reach::local) require_local(*t->model, call, "the parameters");
    t->evaluations.push_back(evaluate(*t, data, evaluation, &Trainer::evaluate, false, reach));
  };
  return guard(body, call);
}

st_status evaluate_averages(st_trainer* trainer, st_data* data, st_evaluation* evaluation, Reach reach,
                            const char* call = __builtin_FUNCTION()) {
  const auto body = [&] {
    given(evaluation, call, "evaluation");
    take(evaluation, call);
    const auto t = find(trainer);
    if (reach == Reach::local) require_local(*t, call, "the averages");
    const ValidationPoint point = evaluate(*t, data, evaluation, &Trainer::evaluate_average, true, reach);
    t->average_loss = {point.step, point.loss};
  };
  return guard(body, call);
}

st_status digest(st_trainer* trainer, const char** hex, Reach reach, const char* call = __builtin_FUNCTION()) {
  const auto body = [&] {
    const auto t = find(trainer);
    make_sharded(*t, reach, [&](ShardedModelCall* collective) {
      const char*& to = given(hex, call, "hex");
      const Lease weights(Kind::model, t->model);
      t->trainer->require_whole_step(call);
      t->answer = reach == Reach::local ? t->trainer->known_state_digest(call) : t->trainer->state_digest(collective);
      to = t->answer.c_str();
    });
  };
  return guard(body, call);
}

/// Reads the steps and evaluations before a resume from the log, for the report.
void know_earlier(TrainerObject& t, std::string_view log) {
  t.history.add_earlier(log);
  std::vector<ValidationPoint> all;
  for (const std::string_view line : lines_of(log))
    if (auto point = evaluation_of_line(line); point && (t.evaluations.empty() || point->step < t.evaluations.front().step))
      all.push_back(std::move(*point));
  std::ranges::move(t.evaluations, std::back_inserter(all));
  t.evaluations = std::move(all);
}

/// While it exists, calls from other threads are BUSY; between two steps the callback may evaluate, read weights or write the report.
class Run {
 public:
  explicit Run(TrainerObject& trainer) : trainer_(trainer) {
    require(!trainer_.is_run_here(), Code::busy,
            "st_trainer_run: on_step is called from this trainer's run, so it cannot start another; call st_trainer_step there");
    require(trainer_.begin_run(), Code::busy, "trainer: another call on this handle is running; wait, or end it with st_trainer_stop");
  }
  ~Run() {
    trainer_.stop = false;  // consumed by the run that it ended
    trainer_.end_run();
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

 private:
  TrainerObject& trainer_;
};

void run_steps(st_trainer* trainer, TrainerObject& t, int64_t steps, st_on_step_fn on_step, void* user) {
  const auto behind_leases = [&](const auto& call) { ending_group_on_error(t.group.get(), call); };
  {
    const auto first = find(trainer);
    behind_leases([&] {
      check(steps >= 1, "st_trainer_run: steps is ", steps, "; give at least 1");
      first->trainer->require_whole_step("st_trainer_run");
    });
  }
  const std::atomic<uint64_t>& cancels = t.model->model->context().cancels();
  const uint64_t cancels_before = cancels;  // a step sees cancels that come while it runs; the run also sees those between two steps
  while (t.trainer->steps() < steps && !t.stop) {
    st_step_report report{};
    report.struct_size = sizeof report;
    const StepReport made = step(*find(trainer), 0, nullptr, nullptr);
    behind_leases([&] {
      give_report(t, &report, made);
      const st_status status = on_step == nullptr ? ST_OK : ask_host(on_step, user, &report);
      write_log(*find(trainer));
      if (status != ST_OK)
        fail(Code::callback, text("st_trainer_run: on_step returned ", text_of_answer(status), " after step ", report.step));
      require(cancels == cancels_before, Code::cancelled, "st_trainer_run: cancelled after step ", report.step);
    });
  }
}

}  // namespace

void st::capi::TrainerObject::trim() {
  if (!enter()) return;  // a call is running: keep what it uses
  trainer->trim();
  leave();
}

st_status st_step_report_init(st_step_report* report, size_t size) {
  st_step_report defaults{};
  defaults.saved_step = -1;
  return init(report, size, defaults);
}

st_status st_trainer_create(st_model* model, st_recipe* recipe, st_data* data, st_trainer** trainer) {
  return guard([&] {
    given(trainer, "st_trainer_create: trainer");
    auto home = peek(model);  // first, so that allocations use its context's memory
    create(Parents(std::move(home), recipe, data), nullptr, trainer);
  });
}

st_status st_trainer_create_in_group(st_model* model, st_recipe* recipe, st_data* data, st_communicator* communicator,
                                     st_trainer** trainer) {
  return guard([&] {
    auto home = peek(model);
    auto group = peek(communicator);
    const Lease turn(Kind::communicator, group);
    const Parents from(std::move(home), recipe, data);
    group->queue.drain();
    group->cancels = group->context->cancels().load();
    ending_group_on_error(group.get(), [&] {
      given(trainer, "st_trainer_create_in_group: trainer");
      create(from, group, trainer);
    });
  });
}

st_status st_trainer_destroy(st_trainer* trainer) { return drop(trainer); }

st_status st_trainer_step(st_trainer* trainer, int64_t n, const st_named_view* batch, st_step_report* report) {
  return guard([&] {
    const auto t = find(trainer);
    const StepReport made = step(*t, n, batch, report);
    if (report != nullptr) give_report(*t, report, made);
    write_log(*t);
  });
}

st_status st_trainer_run(st_trainer* trainer, int64_t steps, st_on_step_fn on_step, void* user) {
  return guard([&] {
    const auto t = peek(trainer);
    const Run run(*t);
    run_steps(trainer, *t, steps, on_step, user);
  });
}

st_status st_trainer_stop(st_trainer* trainer) {
  return signal(trainer, [](TrainerObject& t) { t.stop = true; });
}

st_status st_trainer_cancel(st_trainer* trainer) {
  return signal(trainer, [](TrainerObject& t) { t.trainer->cancel(); });
}

st_status st_evaluation_init(st_evaluation* evaluation, size_t size) { return init(evaluation, size, st_evaluation{}); }

st_status st_trainer_evaluate(st_trainer* trainer, st_data* data, st_evaluation* evaluation) {
  return evaluate_weights(trainer, data, evaluation, Reach::local);
}
st_status st_trainer_evaluate_collective(st_trainer* trainer, st_data* data, st_evaluation* evaluation) {
  return evaluate_weights(trainer, data, evaluation, Reach::collective);
}

st_status st_trainer_evaluate_average(st_trainer* trainer, st_data* data, st_evaluation* evaluation) {
  return evaluate_averages(trainer, data, evaluation, Reach::local);
}
st_status st_trainer_evaluate_average_collective(st_trainer* trainer, st_data* data, st_evaluation* evaluation) {
  return evaluate_averages(trainer, data, evaluation, Reach::collective);
}

st_status st_trainer_digest(st_trainer* trainer, const char** hex) { return digest(trainer, hex, Reach::local); }
st_status st_trainer_digest_collective(st_trainer* trainer, const char** hex) { return digest(trainer, hex, Reach::collective); }

st_status st_trainer_plan(st_trainer* trainer, const char** json) {
  return guard([&] {
    const auto t = find(trainer);
    t->answer = plan_json(*t->trainer);
    given(json, "st_trainer_plan: json") = t->answer.c_str();
  });
}

st_status st_trainer_explain(st_trainer* trainer, const char** out) {
  return guard([&] {
    const auto t = find(trainer);
    t->answer = explain(t->trainer->plan());
    given(out, "st_trainer_explain: text") = t->answer.c_str();
  });
}

st_status st_trainer_timeline(st_trainer* trainer, const char** json) {
  return guard([&] {
    const auto t = find(trainer);
    t->answer = t->trainer->timeline_json();
    given(json, "st_trainer_timeline: json") = t->answer.c_str();
  });
}

st_status st_trainer_log(st_trainer* trainer, const char* path) {
  return guard([&] {
    const auto t = find(trainer);  // before the file, which is truncated when it is opened
    const std::string file = text_given(path, "st_trainer_log: path");
    t->is_logged = false;  // on_step may start a log with the step that it is given
    if (t->trainer->has_resumed())
      t->log = std::make_unique<MetricsLog>(file, t->trainer->steps(), [&](std::string_view kept) { know_earlier(*t, kept); });
    else
      t->log = std::make_unique<MetricsLog>(file);
    if (const std::string& exchange = t->trainer->device_exchange(); !exchange.empty()) t->log->write_exchange(exchange);
  });
}

st_status st_trainer_log_end(st_trainer* trainer, double validation_loss) {
  return guard([&] {
    const auto t = find(trainer);
    write_log_early(*t);
    require(t->log != nullptr, Code::wrong_state, "st_trainer_log_end: there is no log; call st_trainer_log first");
    const Lease weights(Kind::model, t->model);
    t->trainer->require_whole_step("st_trainer_log_end");
    std::optional<double> average_loss;
    if (t->trainer->recipe().ema_decay > 0) {
      const auto& [step, loss] = t->average_loss;
      average_loss = step == t->trainer->steps() ? loss : std::numeric_limits<double>::quiet_NaN();
    }
    t->log->finish(t->trainer->known_state_digest("st_trainer_log_end"), validation_loss, average_loss);
  });
}

st_status st_trainer_write_report(st_trainer* trainer, const char* path, const char* facts) {
  return guard([&] {
    const auto t = find(trainer);
    const Lease weights(Kind::model, t->model);
    t->trainer->require_whole_step("st_trainer_write_report");
    const std::string page = html_report(summary_of(*t, facts == nullptr ? "" : facts));
    os::write_named_file(text_given(path, "st_trainer_write_report: path"),
                         [&](const auto& write) { write(std::as_bytes(std::span(page))); });
  });
}
