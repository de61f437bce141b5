#include "train/predictor.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "exec/executor.h"
#include "exec/finishing_on_error.h"
#include "model/borrowed_parameters.h"
#include "model/host_bytes.h"
#include "train/prediction_views.h"

namespace st {
namespace {

constexpr size_t kCachedForms = 8;

/// Which units are gathered goes by the outputs.
void meet(ShardedModelCall& collective, std::span<const HostView> outputs) {
  std::string what = "predict";
  for (const HostView& output : outputs) what.append(" ").append(output.name);
  collective.agree(what);
}

}  // namespace

struct Predictor::Form {
  int64_t rows = 0;
  std::vector<std::string> outputs;
  Plan plan;
  std::vector<SlotId> inputs, results;  // slots of the plan's program; results in the order of `outputs`
  uint64_t used = 0;
  bool dropped = false;  // no longer in forms_: a pass that comes back is not kept

  bool answers(int64_t other_rows, std::span<const HostView> views) const {
    return rows == other_rows && std::ranges::equal(outputs, views, {}, {}, &HostView::name);
  }
  const Slot& slot(SlotId id) const { return plan.program.slot(id); }
};

struct Predictor::Pass {
  std::shared_ptr<Form> form;
  std::unique_ptr<Workers> workers;
  std::optional<CancelToken> cancelled;
  std::unique_ptr<Executor> executor;
  std::vector<std::vector<std::byte>> gathered;  // by input of the form: rows of views that a kernel cannot read where they lie
};

struct Predictor::Snapshot {
  explicit Snapshot(Storage weights) : storage(std::move(weights)) {}

  Storage storage;
  std::vector<std::unique_ptr<Pass>> idle;
  std::vector<std::unique_ptr<Generator>> writers;  // idle ones
  int64_t users = 0;                                // runs that read it now
  uint64_t number = 0;                              // by what collective calls know it
};

class Predictor::RunHold {
 public:
  explicit RunHold(Predictor& predictor) : predictor_(predictor) {
    const std::lock_guard lock(predictor_.mutex_);
    snapshot_ = predictor_.current_;
    ++snapshot_->users;
  }
  ~RunHold() {
    // Destroyed after the lock is released if they are not kept: freeing buffers takes time.
    std::unique_ptr<Generator> writer = std::move(writer_);
    std::unique_ptr<Pass> pass = std::move(pass_);
    const std::lock_guard lock(predictor_.mutex_);
    --snapshot_->users;
    if (pass && !pass->form->dropped) snapshot_->idle.push_back(std::move(pass));  // there is room: see below
    if (writer) snapshot_->writers.push_back(std::move(writer));
  }
  RunHold(const RunHold&) = delete;
  RunHold& operator=(const RunHold&) = delete;

  const Storage& weights() const { return snapshot_->storage; }
  uint64_t number() const { return snapshot_->number; }
  Pass& pass(const std::shared_ptr<Form>& form) {
    const auto idle_one = [&]() -> std::unique_ptr<Pass> {
      const std::lock_guard lock(predictor_.mutex_);
      auto& idle = snapshot_->idle;
      const auto found = std::ranges::find_if(idle, [&](const auto& pass) { return pass->form == form; });
      if (found == idle.end()) {
        idle.reserve(idle.size() + static_cast<size_t>(snapshot_->users));  // so that none that comes back must allocate, or can fail
        return nullptr;
      }
      auto pass = std::move(*found);
      *found = std::move(idle.back());
      idle.pop_back();
      return pass;
    };
    pass_ = idle_one();
    if (!pass_) pass_ = make(form);
    return *pass_;
  }

  Generator& writer() {
    const auto idle_one = [&]() -> std::unique_ptr<Generator> {
      const std::lock_guard lock(predictor_.mutex_);
      auto& idle = snapshot_->writers;
      idle.reserve(idle.size() + static_cast<size_t>(snapshot_->users));
      if (idle.empty()) return nullptr;
      auto writer = std::move(idle.back());
      idle.pop_back();
      return writer;
    };
    writer_ = idle_one();
    if (!writer_)
      writer_ = std::make_unique<Generator>(predictor_.model_, snapshot_->storage, predictor_.options_.threads,
                                            predictor_.options_.shared ? &predictor_.model_->gate() : nullptr, predictor_.ranks_.get());
    return *writer_;
  }

 private:
  std::unique_ptr<Pass> make(const std::shared_ptr<Form>& form) {
    Context& context = predictor_.model_->context();
    const MemoryLayout& memory = form->plan.memory;
    context.require_memory(text("predict: a forward pass of ", form->rows, " rows"),
                           memory.total() - memory.of(Arena::parameters) + Executor::input_bytes(form->plan, context.backend()));
    const int threads = predictor_.options_.threads;
    auto pass = std::make_unique<Pass>();
    pass->form = form;
    pass->workers = threads == 1 ? std::make_unique<Workers>(1) : context.make_workers(threads);  // one is the caller, not the host's pool
    pass->cancelled.emplace(&context.cancels());
    pass->executor = std::make_unique<Executor>(form->plan, snapshot_->storage, *pass->workers, &*pass->cancelled, predictor_.ranks_.get());
    pass->gathered.resize(form->inputs.size());
    return pass;
  }

  Predictor& predictor_;
  std::shared_ptr<Snapshot> snapshot_;
  std::unique_ptr<Pass> pass_;
  std::unique_ptr<Generator> writer_;
};

Predictor::Predictor(std::shared_ptr<Model> model, PredictorOptions options, ShardedModelCall* collective)
    : model_(std::move(model)),
      options_(options),
      ranks_(collective == nullptr ? nullptr : std::make_unique<ExchangeQueue>(collective->ranks())),
      is_on_host_(model_->is_on_host()) {
  check(options_.threads >= 1 && options_.threads <= 4096, "predictor: threads must be 1 to 4096, got ", options_.threads);
  model_->require_readable("predictor", collective);
  current_ = make_snapshot();
  if (collective != nullptr) {
    collective->agree(options_.shared ? "predictor of shared weights" : "predictor");
    current_->number = collective->ranks().sequence();
  }
  if (options_.shared) return;
  const WeightsGate::Reader reader(model_->gate());
  model_->copy_parameters(current_->storage);
}

Predictor::~Predictor() = default;

void Predictor::require_collective(const ShardedModelCall* collective) const {
  require((collective != nullptr) == (ranks_ != nullptr), Code::wrong_state,
          "predict: calls on a sharded model, and only those, are collective calls of its ranks");
}

std::shared_ptr<Predictor::Snapshot> Predictor::make_snapshot() const {
  const Storage& weights = ranks_ ? model_->piece_storage() : model_->storage();
  if (options_.shared) return std::make_shared<Snapshot>(weights.with_same_parameters());
  const int64_t bytes = weights.bytes();
  const char* const what = "predictor: a snapshot of the weights";
  is_on_host_ ? model_->context().require_host_memory(what, bytes, bytes) : model_->context().require_memory(what, bytes);
  auto made = std::make_shared<Snapshot>(Storage(model_->context().backend()));
  if (bytes > 0) made->storage.arena(Arena::parameters, bytes, is_on_host_);
  return made;
}

void Predictor::refresh(ShardedModelCall* collective) {
  require_collective(collective);
  model_->require_readable("refresh", collective);
  if (collective != nullptr && options_.shared) collective->agree("refresh");
  if (options_.shared) return;
  const std::lock_guard one(refreshing_);
  std::shared_ptr<Snapshot> next;
  {
    const std::lock_guard lock(mutex_);
    if (spare_ && spare_->users == 0) next = spare_;  // nobody can begin with it: runs take the current one
  }
  if (!next) next = make_snapshot();
  if (collective != nullptr) {
    collective->agree("refresh");
    next->number = collective->ranks().sequence();
  }
  {
    const WeightsGate::Reader reader(model_->gate());
    model_->copy_parameters(next->storage);
  }
  std::shared_ptr<Snapshot> gone;
  const std::lock_guard lock(mutex_);
  gone = std::exchange(spare_, std::exchange(current_, std::move(next)));
}

void Predictor::trim() {
  std::vector<std::unique_ptr<Pass>> passes;
  std::vector<std::unique_ptr<Generator>> writers;
  std::shared_ptr<Snapshot> gone;
  const std::lock_guard one(refreshing_);
  const std::lock_guard lock(mutex_);
  gone = std::move(spare_);
  std::ranges::move(current_->idle, std::back_inserter(passes));  // the lists keep their room: passes that run now come back to them
  std::ranges::move(current_->writers, std::back_inserter(writers));
  current_->idle.clear();
  current_->writers.clear();
}

std::shared_ptr<Predictor::Form> Predictor::find_form(int64_t rows, std::span<const HostView> outputs) {
  for (const auto& form : forms_)
    if (form->answers(rows, outputs)) {
      form->used = ++clock_;
      return form;
    }
  return nullptr;
}

std::shared_ptr<Predictor::Form> Predictor::form_of(int64_t rows, std::span<const HostView> outputs) {
  {
    const std::lock_guard lock(mutex_);
    if (auto found = find_form(rows, outputs)) return found;
  }
  auto made = plan(rows, outputs);
  std::vector<std::unique_ptr<Pass>> gone;  // destroyed after the lock
  const std::lock_guard lock(mutex_);
  if (auto found = find_form(rows, outputs)) return found;  // another thread planned the same meanwhile
  if (forms_.size() == kCachedForms) {
    const auto oldest = std::ranges::min_element(forms_, {}, [](const auto& form) { return form->used; });
    (*oldest)->dropped = true;
    for (const auto& snapshot : {current_, spare_}) {
      if (!snapshot) continue;
      auto& idle = snapshot->idle;
      const auto kept = std::partition(idle.begin(), idle.end(), [](const auto& pass) { return !pass->form->dropped; });
      std::move(kept, idle.end(), std::back_inserter(gone));
      idle.erase(kept, idle.end());
    }
    forms_.erase(oldest);
  }
  made->used = ++clock_;
  forms_.push_back(made);
  return made;
}

std::shared_ptr<Predictor::Form> Predictor::plan(int64_t rows, std::span<const HostView> outputs) const {
  auto form = std::make_shared<Form>();
  form->rows = rows;
  for (const HostView& view : outputs) form->outputs.emplace_back(view.name);
  form->plan = plan_predictions(*model_, rows, form->outputs, options_.threads, ranks_.get(), is_on_host_);
  for (const std::string& name : form->outputs) form->results.push_back(form->plan.program.slot_named("output." + name));
  for (const Section& section : form->plan.program.sections)
    for (const Node& node : section.graph.nodes)
      if (node.op == Op::load && form->slot(node.reads[0]).role == Role::input && std::ranges::count(form->inputs, node.reads[0]) == 0)
        form->inputs.push_back(node.reads[0]);
  return form;
}

void Predictor::run(std::span<const HostView> inputs, std::span<const HostView> outputs, ShardedModelCall* collective) {
  require_collective(collective);
  if (options_.shared && ranks_) model_->require_readable("predict", collective);
  const PredictionViews views(model_->program(), inputs, outputs);
  const auto form = form_of(views.rows(), outputs);

  RunHold hold(*this);
  Pass& pass = hold.pass(form);
  pass.cancelled->begin();
  const auto bind = [&](size_t i) {
    const SlotId slot = form->inputs[i];
    const HostView& view = views.input(form->slot(slot).name);
    if (view.is_on_device) {
      pass.executor->bind(slot, place_of(view), model_->context().host_order());
      return;
    }
    const void* data = view.data;
    if (!view.is_plain()) {
      pass.gathered[i].resize(static_cast<size_t>(view.bytes()));
      gather(view, pass.gathered[i].data());
      data = pass.gathered[i].data();
    }
    pass.executor->bind(slot, data);
  };
  const auto compute = [&] {
    for (size_t i = 0; i < form->inputs.size(); ++i) bind(i);
    std::optional<WeightsGate::TryReader> reader;
    if (options_.shared) reader.emplace(model_->gate());
    if (collective != nullptr) {
      collective->is_on(hold.number());
      meet(*collective, outputs);
    }
    if (ranks_) bind_shards(*pass.executor, *model_, hold.weights());
    pass.executor->run({});
  };
  finishing_on_error(*pass.executor, compute);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].is_on_device) {
      model_->context().host_order().copy(place_of(outputs[i]), pass.executor->slot(form->results[i]).data, outputs[i].bytes());
      continue;
    }
    const HostBytes result(pass.executor->backend(), pass.executor->slot(form->results[i]));
    scatter(result.as(), outputs[i]);
  }
}

std::vector<int32_t> Predictor::generate(std::span<const int32_t> prompt, const GenerateOptions& options,
                                         const std::function<bool(int32_t)>& on_token, ShardedModelCall* collective) {
  require_collective(collective);
  if (options_.shared && ranks_) model_->require_readable("generate", collective);
  RunHold hold(*this);
  if (collective != nullptr) collective->is_on(hold.number());
  return hold.writer().run(prompt, options, on_token, collective);
}

}  // namespace st
