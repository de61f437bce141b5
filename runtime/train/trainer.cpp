#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/digest.h"
#include "base/error.h"
#include "base/os.h"
#include "passes/scale_loss.h"

namespace st {
namespace {

constexpr size_t kCachedPlans = 8;

/// The part of a view that an executor's input sees: `count` elements from `first` on.
struct Part {
  int64_t first = 0, count = 0;
};

/// An input whose first dimension is a multiple of the batch is cut by rows; one without is the same for all.
Part part_of(const Shape& symbolic, int64_t first_row, int64_t rows) {
  const int64_t elements = symbolic.elements();
  if (!symbolic.is_symbolic()) return {0, elements};
  return {first_row * -elements, rows * -elements};
}

template <class T>
int64_t first_nan(const T* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    if (std::isnan(values[i])) return i;
  return -1;
}

/// Of bf16 or f16, by the bits of infinity: NaN is beyond it.
int64_t first_nan16(const uint16_t* values, int64_t count, uint16_t infinity) {
  for (int64_t i = 0; i < count; ++i)
    if ((values[i] & 0x7FFF) > infinity) return i;
  return -1;
}

void refuse_nan(const NamedView& view, const Part& part) {
  int64_t at = -1;
  if (view.dtype == DType::f32) at = first_nan(static_cast<const float*>(view.data) + part.first, part.count);
  if (view.dtype == DType::f64) at = first_nan(static_cast<const double*>(view.data) + part.first, part.count);
  if (view.dtype == DType::bf16) at = first_nan16(static_cast<const uint16_t*>(view.data) + part.first, part.count, 0x7F80);
  if (view.dtype == DType::f16) at = first_nan16(static_cast<const uint16_t*>(view.data) + part.first, part.count, 0x7C00);
  if (at < 0) return;
  at += part.first;
  const int64_t row_elements = view.shape.rank() == 0 ? 1 : view.shape.elements(1, view.shape.rank());
  fail(Code::not_finite, text("step: input \"", view.name, "\" holds NaN in row ", at / row_elements, ", element ", at % row_elements,
                              "; nothing was updated"));
}

}  // namespace

Trainer::Trainer(std::shared_ptr<Model> model, Recipe recipe, std::shared_ptr<const Dataset> data, const PlanOptions& options)
    : model_(std::move(model)),
      recipe_(std::move(recipe)),
      schedule_{recipe_.lr_schedule, recipe_.lr, recipe_.warmup},
      storage_(model_->storage().with_same_parameters()) {
  Context& context = model_->context();
  check(recipe_.device == context.backend().name(), "trainer: the recipe asks for device ", recipe_.device, ", the model's context is on ",
        context.backend().name(), "; make the context with that device");
  const int threads = recipe_.threads > 0 ? static_cast<int>(recipe_.threads) : context.threads();
  Plan plan = plan_training(model_->program(), recipe_, context.backend(), threads, options);
  context.require_memory("trainer: a training step", plan.memory.total() - plan.memory.of(Arena::parameters));
  const int64_t micro_batches = plan.micro_batches;
  tokens_per_step_ = rows_of_loss(plan.program) * micro_batches;
  workers_ = context.make_workers(threads);
  train_ = std::make_unique<Executor>(std::move(plan), storage_, *workers_, &cancelled_);
  data_ = std::move(data);
  if (data_) open_feed();
}

void Trainer::open_feed() {
  feed_ = std::make_unique<Feed>(data_, static_cast<uint64_t>(recipe_.seed), recipe_.batch, plan().micro_batches, items_taken_);
}

template <class T>
T* Trainer::control(const char* name) const {
  const SlotId slot = plan().program.slot_named(name);
  return slot < 0 ? nullptr : train_->slot(slot).as<T>();
}

double Trainer::report(const char* name) const { return *control<double>(name); }

StepReport Trainer::step(std::span<const NamedView> batch) {
  check_batch(batch, rows_per_step());
  return run_step([&](int64_t micro_batch) { bind_rows(*train_, batch, micro_batch * recipe_.batch, recipe_.batch); });
}

StepReport Trainer::step() {
  require(data_ != nullptr, Code::wrong_state, "step: this trainer was made without data; give the step a batch");
  if (!feed_) open_feed();
  try {
    const StepReport report = run_step([&](int64_t) {
      const auto batch = feed_->next();
      check_batch(batch, recipe_.batch);
      bind_rows(*train_, batch, 0, recipe_.batch);
    });
    items_taken_ += rows_per_step();
    return report;
  } catch (...) {
    feed_.reset();  // the next step opens it again, at the first row of the one that did not happen
    throw;
  }
}

template <class Bind>
StepReport Trainer::run_step(const Bind& bind) {
  const double start = os::seconds();
  const double lr = schedule_.at(updates_);
  auto* rates = control<double>("rates");
  rates[0] = lr;
  rates[1] = static_cast<double>(updates_ + 1);
  auto* counters = control<int64_t>("counters");
  const auto before = [&](int64_t micro_batch) {
    bind(micro_batch);
    if (counters == nullptr) return;
    counters[0] = attempts_;
    counters[1] = micro_batch * recipe_.batch;
  };
  train_->run(std::ref(before));  // a reference: std::function would allocate for the captures

  StepReport report;
  report.loss = this->report("loss_sum") / this->report("loss_count");
  report.skipped = *control<bool>("skipped");
  report.grad_norm = this->report("grad_norm");
  report.lr = lr;
  report.step = ++attempts_;
  if (!report.skipped) ++updates_;
  report.tokens = tokens_ += tokens_per_step_;
  const double seconds = os::seconds() - start;
  report.milliseconds = seconds * 1e3;
  report.tokens_per_second = static_cast<double>(tokens_per_step_) / seconds;
  report.memory_bytes = memory_bytes();
  return report;
}

Evaluation Trainer::evaluate(const Dataset& data) {
  const int64_t all = data.rows();
  std::vector<NamedView> batch;
  std::vector<FieldView> room;
  std::vector<std::vector<std::byte>> memory;
  for (const Field& field : data.fields()) {
    auto& bytes = memory.emplace_back(static_cast<size_t>(field.row_bytes() * recipe_.batch));
    room.push_back({bytes.data(), static_cast<int64_t>(bytes.size())});
  }
  double loss = 0;
  Evaluation sum;
  std::vector<int64_t> rows;
  for (int64_t first = 0; first < all; first += recipe_.batch) {
    rows.resize(static_cast<size_t>(std::min(recipe_.batch, all - first)));
    std::iota(rows.begin(), rows.end(), first);
    data.fill(rows, room);
    const auto count = static_cast<int64_t>(rows.size());
    batch.clear();
    for (size_t i = 0; i < room.size(); ++i) {
      const Field& field = data.fields()[i];
      Shape shape{count};
      for (const int64_t dim : field.shape) shape.push_back(dim);
      batch.push_back({field.name, field.dtype, shape, room[i].data});
    }
    check_batch(batch, count);
    Executor& forward = inference(count);
    forward.run([&](int64_t) { bind_rows(forward, batch, 0, count); });
    const auto read = [&](const char* name) { return *forward.slot(forward.plan().program.slot_named(name)).as<double>(); };
    loss += read("loss_sum");
    sum.count += read("loss_count");
  }
  sum.loss = loss / sum.count;
  return sum;
}

Executor& Trainer::inference(int64_t rows) {
  if (const auto found = inference_.find(rows); found != inference_.end()) return *found->second;
  Plan plan = plan_inference(model_->program(), rows, {}, true, model_->context().backend(), workers_->threads());
  model_->context().require_memory("evaluate: a forward pass", plan.memory.total() - plan.memory.of(Arena::parameters));
  Executor& made = *inference_.emplace(rows, std::make_unique<Executor>(std::move(plan), storage_, *workers_, &cancelled_)).first->second;
  if (inference_.size() > kCachedPlans)
    inference_.erase(inference_.begin()->first == rows ? std::next(inference_.begin()) : inference_.begin());
  return made;
}

const NamedView& Trainer::view_of(std::span<const NamedView> batch, const Slot& input) const {
  const auto found = std::ranges::find(batch, input.name, &NamedView::name);
  check(found != batch.end(), "step: the model's input \"", input.name, "\" is missing in the batch");
  return *found;
}

void Trainer::check_batch(std::span<const NamedView> batch, int64_t rows) const {
  for (const Slot& slot : model_->program().slots) {
    if (slot.role != Role::input) continue;
    const NamedView& view = view_of(batch, slot);
    check(view.dtype == slot.type.dtype, "step: input \"", slot.name, "\" is ", slot.type.dtype, ", the batch gives ", view.dtype);
    const Shape wanted = slot.type.shape.bind(rows);
    check(view.shape == wanted, "step: input \"", slot.name, "\" wants shape ", wanted, ", the batch gives ", view.shape);
    check(view.data != nullptr || view.shape.elements() == 0, "step: input \"", slot.name, "\" has no data (NULL)");
  }
}

void Trainer::bind_rows(Executor& executor, std::span<const NamedView> batch, int64_t first_row, int64_t rows) const {
  const auto& slots = executor.plan().program.slots;
  for (size_t s = 0; s < slots.size(); ++s) {
    if (slots[s].role != Role::input) continue;
    const NamedView& view = view_of(batch, slots[s]);
    const Part part = part_of(model_->program().slots[s].type.shape, first_row, rows);
    refuse_nan(view, part);
    executor.bind(static_cast<SlotId>(s), static_cast<const std::byte*>(view.data) + part.first * bytes_of(view.dtype));
  }
}

std::string Trainer::state_digest() const {
  const Program& program = plan().program;
  std::vector<size_t> order;
  for (size_t s = 0; s < program.slots.size(); ++s)
    if (program.slots[s].role == Role::parameter || program.slots[s].role == Role::optimizer) order.push_back(s);
  std::ranges::sort(order, {}, [&](size_t s) -> const std::string& { return program.slots[s].name; });

  Digest digest;
  std::vector<std::byte> chunk;
  for (const size_t s : order) {
    const Slot& slot = program.slots[s];
    digest.update_sized(slot.name);
    digest.update_sized(name_of(slot.type.dtype));
    digest.update_sized(text(slot.type.shape));
    chunk.resize(static_cast<size_t>(slot.type.bytes()));
    model_->context().backend().to_host(chunk.data(), train_->slot(static_cast<SlotId>(s)).as<std::byte>(), slot.type.bytes());
    digest.update(chunk);
  }
  return digest.hex();
}

int64_t Trainer::memory_bytes() const {
  const auto own = [](const Executor& executor) {
    int64_t sum = 0;
    for (int32_t a = 0; a < kArenas; ++a)
      if (!Storage::holds(static_cast<Arena>(a))) sum += executor.allocated(static_cast<Arena>(a));
    return sum;
  };
  int64_t sum = storage_.bytes() + own(*train_) + (feed_ ? feed_->buffer_bytes() : 0);
  for (const auto& [rows, executor] : inference_) sum += own(*executor);
  return sum;
}

}  // namespace st
