#include "train/evaluation.h"

#include <limits>

#include "base/error.h"
#include "base/float16.h"
#include "base/text.h"
#include "comm/rank_facts.h"
#include "model/borrowed_parameters.h"
#include "model/host_bytes.h"
#include "passes/seed_outputs.h"
#include "recipe/kernel_needs_of.h"
#include "recipe/recipe.h"

namespace st {
namespace {

constexpr size_t kCachedPlans = 8;

template <class T, class Widen>
double mean_of(const T* values, int64_t count, const Widen& widen) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(widen(values[i]));
  return sum / static_cast<double>(count);
}

double mean_of(Backend& backend, const Operand& output) {
  const int64_t n = output.elements();
  const HostBytes values(backend, output);
  const auto as_is = [](auto value) { return value; };
  switch (output.dtype) {
    case DType::f32:
      return mean_of(values.as<float>(), n, as_is);
    case DType::f64:
      return mean_of(values.as<double>(), n, as_is);
    case DType::bf16:
      return mean_of(values.as<uint16_t>(), n, f32_of_bf16);
    case DType::f16:
      return mean_of(values.as<uint16_t>(), n, f32_of_f16);
    case DType::i32:
      return mean_of(values.as<int32_t>(), n, as_is);
    case DType::i64:
      return mean_of(values.as<int64_t>(), n, as_is);
    case DType::u8:
    case DType::boolean:
      return mean_of(values.as<uint8_t>(), n, as_is);
  }
  fail(Code::internal, "evaluate: unknown dtype");
}

}  // namespace

Evaluator::Evaluator(Model& model, Storage& storage, Workers& workers, CancelToken& cancelled, int64_t batch, bool borrows)
    : model_(model),
      storage_(storage),
      workers_(workers),
      cancelled_(cancelled),
      borrows_(borrows),
      inputs_(model.program(), inputs_read_by(model.program()), model.context()),
      rows_(batch, cancelled, model.context().memory()) {
  for (const Output& output : model.program().outputs)
    if (is_metric(output.name)) metrics_.push_back(output.name);
}

void Evaluator::gather_from(Communicator& ranks, const Program& step) {
  ranks_ = std::make_unique<ExchangeQueue>(ranks);
  step_ = &step;
  borrows_ = true;
}

Evaluation Evaluator::run(const std::shared_ptr<const Dataset>& data, std::span<const Address> weights) {
  if (!ranks_) return run_here(data, weights);
  Communicator& ranks = ranks_->ranks();
  const std::vector<RankFact> facts = {{"rows", text(data->rows())}, {"weights", weights.empty() ? "the model's" : "the average"}};
  require_agreement(ranks, facts, "evaluate");
  try {
    return run_here(data, weights);
  } catch (const std::exception& why) {
    ranks.abort(why.what());  // the others wait for its pieces
    throw;
  }
}

Evaluation Evaluator::run_here(const std::shared_ptr<const Dataset>& data, std::span<const Address> weights) {
  const bool has_loss = static_cast<bool>(model_.program().loss_sum);
  require(has_loss || !metrics_.empty(), Code::wrong_state,
          "evaluate: the graph has no loss and no output named \"metric.*\"; mark a loss with st_graph_loss, add a metric, or compare "
          "predictions in the host");
  Evaluation made;
  for (const std::string& name : metrics_) made.metrics.push_back({.name = name});
  rows_.each(data, [&](std::span<const HostView> rows, int64_t count) { add_up(rows, count, weights, made); });
  made.loss = has_loss ? made.loss / made.count : std::numeric_limits<double>::quiet_NaN();
  if (!has_loss) made.count = static_cast<double>(data->rows());
  for (Metric& metric : made.metrics) metric.mean /= metric.count;
  return made;
}

/// One batch, into sums that run() divides.
void Evaluator::add_up(std::span<const HostView> rows, int64_t count, std::span<const Address> weights, Evaluation& sums) {
  inputs_.check(rows, count);
  const bool borrows = borrows_ && !(weights.empty() && model_.is_on_host());  // kernels do not follow the host's memory
  Executor& forward = plan_for(count, borrows);
  const WeightsGate::Reader whole_step(model_.gate());
  if (borrows)
    bind_parameters(forward, model_, [&](size_t p) { return weights.empty() ? model_.data(model_.parameters()[p]) : weights[p]; });
  forward.run([&](int64_t) { inputs_.bind(rows, 0, count, forward); });
  const Program& program = forward.plan().program;
  const auto slot = [&](const std::string& name) -> const Operand& { return forward.slot(program.slot_named(name)); };
  const auto number = [&](const Operand& of) { return *HostBytes(forward.backend(), of).as<double>(); };
  if (model_.program().loss_sum) {
    sums.loss += number(forward.slot(program.step.loss_sum));
    sums.count += number(forward.slot(program.step.loss_count));
  }
  for (Metric& metric : sums.metrics) {
    const bool is_of_losses = program.slot_named("output_count." + metric.name) >= 0;
    const auto of_batch = static_cast<double>(count);  // a mean over its batch counts for as many rows as it was made of
    metric.mean += (is_of_losses ? 1 : of_batch) * mean_of(forward.backend(), slot("output." + metric.name));
    metric.count += is_of_losses ? number(slot("output_count." + metric.name)) : of_batch;
  }
}

Executor& Evaluator::plan_for(int64_t rows, bool borrows) {
  const std::pair key(rows, borrows);
  if (const auto found = plans_.find(key); found != plans_.end()) return *found->second;
  Context& context = model_.context();
  const Program program = borrows ? borrowing(model_) : model_.program();
  PlanOptions options;
  options.parameters_on_host = !borrows && model_.is_on_host();
  options.gathers = step_;
  Plan plan = plan_inference(program, rows, metrics_, static_cast<bool>(program.loss_sum),
                             kernel_needs(context.backend(), workers_.threads()), options);
  context.require_memory("evaluate: a forward pass",
                         plan.memory.total() - plan.memory.of(Arena::parameters) + Executor::input_bytes(plan, context.backend()));
  Executor& made =
      *plans_.emplace(key, std::make_unique<Executor>(std::move(plan), storage_, workers_, &cancelled_, ranks_.get())).first->second;
  if (plans_.size() > kCachedPlans) plans_.erase(plans_.begin()->first == key ? std::next(plans_.begin()) : plans_.begin());
  return made;
}

void Evaluator::trim() {
  plans_.clear();
  rows_.trim();
}

int64_t Evaluator::own_bytes() const {
  int64_t sum = rows_.bytes();
  for (const auto& [key, executor] : plans_) sum += st::own_bytes(*executor);
  return sum;
}

}  // namespace st
