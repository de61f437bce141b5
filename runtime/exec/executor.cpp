#include "exec/executor.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/os/machine.h"
#include "exec/device_exchange.h"
#include "exec/device_operands.h"
#include "ir/cuts.h"
#include "plan/exchange_memory.h"
#include "plan/input_copies.h"

namespace st {

using Kind = Instruction::Kind;

Executor::Executor(Plan plan, Storage& storage, Workers& workers, CancelToken* cancelled, ExchangeQueue* ranks, StageLinks* stages,
                   Communicator* tensor)
    : plan_(std::move(plan)),
      storage_(storage),
      cancelled_(cancelled),
      ranks_{ranks, stages, tensor},
      calls_(plan_, storage, workers),
      stream_(backend().make_stream()),
      exchanging_(ranks == nullptr || backend().is_host_memory() ? nullptr : backend().make_stream()),
      moving_(stages == nullptr || backend().is_host_memory() || stages->stages().devices() == nullptr ? nullptr : backend().make_stream()),
      instructions_(plan_, calls_, ranks_, backend(), {*stream_, exchanging_.get(), moving_.get()}) {
  if (!backend().is_host_memory()) inputs_.emplace(plan_, backend(), *stream_);
  if (!plan_.memory.windows.empty()) copies_.emplace(plan_, calls_, storage, *stream_);
  if (stream_->can_record()) recorded_.emplace(plan_);
  if (std::ranges::any_of(plan_.instructions, [](const Instruction& at) { return at.kind == Kind::post; })) ranks->start();
}

/// Work that has not been waited for, such as a copy for a run that never came, uses what is destroyed below.
Executor::~Executor() { give_up(); }

void Executor::bind(SlotId slot, Address data) {
  const Slot& to = plan_.program.slot(slot);
  if (is_device()) require_on_device(backend(), data, own_type(plan_.program, to).bytes(), to.name);
  if (calls_.slot(slot).data != data) forget_recordings();
  calls_.bind(slot, data);
  if (to.role != Role::input) instructions_.place();
}

void Executor::bind(SlotId slot, const void* data) {
  if (!is_device() || !inputs_->at(slot)) return bind(slot, backend().of_host(data));
  const Address here = inputs_->at(slot);
  if (calls_.slot(slot).data != here) bind(slot, here);
  write(here, data, own_type(plan_.program, plan_.program.slot(slot)).bytes());
}

void Executor::bind(SlotId slot, Address hosts, HostOrder& order) {
  const Address here = is_device() ? inputs_->at(slot) : Address{};
  require(static_cast<bool>(here), Code::internal, "bind: \"", plan_.program.slot(slot).name, "\" is no input of a device");
  if (calls_.slot(slot).data != here) bind(slot, here);
  order.precede(*stream_);
  stream_->copy(here, hosts, own_type(plan_.program, plan_.program.slot(slot)).bytes());
}

void Executor::write(Address to, const void* from, int64_t bytes) {
  if (is_device()) return inputs_->write(to, from, bytes);
  backend().to_device(to, from, bytes);
}

void Executor::read(void* to, Address from, int64_t bytes) {
  if (is_device()) finish();
  backend().to_host(to, from, bytes);
}

// The loop.

void Executor::run(const BeforeMicroBatch& before) {
  Cursor cursor;
  const auto prepare = [&](int64_t micro_batch) {
    if (before) before(micro_batch);
    return true;
  };
  run_until(cursor, end(), kNoDeadline, std::ref(prepare));  // a reference: std::function would allocate for the captures
}

bool Executor::run_until(Cursor& cursor, size_t end, double deadline, const PrepareMicroBatch& prepare) {
  const FloatMode mode;
  if (exchanges_are_left_) give_up();  // by now the caller has abandoned the queue's collectives
  try {
    const bool is_done = issue_until(cursor, end, deadline, prepare);
    finish();
    return is_done;
  } catch (...) {
    give_up();
    throw;
  }
}

bool Executor::issue_until(Cursor& cursor, size_t end, double deadline, const PrepareMicroBatch& prepare) {
  while (cursor.at < end) {
    if (is_left_out(cursor)) {
      ++cursor.at;
      continue;
    }
    const PlannedInstruction& step = instructions_.all()[cursor.at];
    look_for_cancel(cursor);
    if (ranks_.data != nullptr && ranks_.data->has_failed()) ranks_.data->wait_for_all();
    if (step.at.micro_batch != cursor.micro_batch) {
      if (prepare && !prepare(step.at.micro_batch)) {
        look_for_cancel(cursor);
        return false;
      }
      cursor.micro_batch = step.at.micro_batch;
    }
    if (const KernelSegment* const segment = recorded_at(cursor.at, end, deadline)) {
      if (ranks_.stages != nullptr) record(step.at);
      launch(*segment);
      cursor.at = segment->end;
      continue;
    }
    if (!is_valid(step.at.makes)) {
      if (ranks_.stages != nullptr) record(step.at);
      execute(step, !watch_);  // a watcher needs complete tensors
      if (watch_ && !step.at.is_copy()) {
        finish();
        watch_(step.at, calls_.of(cursor.at));
      }
    }
    ++cursor.at;
    if (deadline == kNoDeadline || (is_device() && !is_boundary(cursor.at))) continue;
    finish();
    if (os::seconds() >= deadline) break;
  }
  if (ranks_.stages != nullptr) ranks_.stages->runs().leave(exposed_seconds());
  return cursor.at >= end;
}

void Executor::run_without_rows(int64_t micro_batch, const Contributors& contributors, RunByAll which) {
  using Ranks = Instruction::Ranks;
  const FloatMode mode;
  contributors_ = contributors;
  for (size_t i = 0; i < begin_of_update(); ++i) {
    const PlannedInstruction& step = instructions_.all()[i];
    if (step.at.micro_batch != micro_batch || step.at.ranks == Ranks::with_rows || is_valid(step.at.makes)) continue;
    if (which == (step.at.ranks == Ranks::all_in_round ? RunByAll::in_step : RunByAll::in_round)) continue;
    execute(step, false);  // there is nothing to compute meanwhile
  }
  finish();
  if (copies_) copies_->finish();  // which other instructions may await
}

void Executor::make_copies(std::initializer_list<Copy> copies) {
  const FloatMode mode;
  for (const PlannedInstruction& step : instructions_.all()) {
    if (step.at.micro_batch == 0 && std::ranges::find(copies, step.at.makes) != copies.end()) execute(step, false);
  }
  finish();
}

/// Where a slice of a step may end on a device: the next instruction is of another section, or of another micro-batch.
bool Executor::is_boundary(size_t at) const {
  if (at == end()) return true;
  const Instruction &next = plan_.instructions[at], &last = plan_.instructions[at - 1];
  return next.section != last.section || next.micro_batch != last.micro_batch;
}

bool Executor::is_left_out(const Cursor& cursor) const {
  const int64_t k = plan_.instructions[cursor.at].micro_batch;
  return (k < cursor.begin || k >= cursor.end) && cursor.at < begin_of_update();
}

void Executor::look_for_cancel(const Cursor& cursor) {
  if (cursor.at < begin_of_update() && cancelled_ != nullptr && cancelled_->take())
    fail(Code::cancelled, "step: cancelled; the state is that of the last whole step");
}

/// For the step's timeline. A release comes before a section, and the update is not an action of the schedule.
void Executor::record(const Instruction& at) {
  const Section& section = plan_.program.sections[static_cast<size_t>(at.run())];
  StageRuns& runs = ranks_.stages->runs();
  if (at.kind == Kind::release || section.phase == Phase::update) return runs.leave(exposed_seconds());
  runs.enter({section.phase, section.chunk, at.micro_batch}, exposed_seconds());
}

// Recordings.

/// The segment that begins at an instruction, if the run gives all of it without a look at the clock or at values between its kernels.
const KernelSegment* Executor::recorded_at(size_t at, size_t end, double deadline) const {
  if (!recorded_ || deadline != kNoDeadline || watch_) return nullptr;
  const KernelSegment* const segment = recorded_->at(at);
  return segment != nullptr && segment->end <= end ? segment : nullptr;
}

void Executor::launch(const KernelSegment& segment) {
  recorded_->launch(*stream_, segment, !is_valid(Copy::lasting), [this](size_t i) {
    if (!is_valid(plan_.instructions[i].makes)) execute(instructions_.all()[i], false);
  });
}

/// Waits for the kernels that they have given, and throws their error.
void Executor::forget_recordings() {
  if (!recorded_ || recorded_->is_empty()) return;
  finish();
  recorded_->forget();
}

// One instruction.

void Executor::execute(const PlannedInstruction& step, bool posts) {
  try {
    if (step.kernel != nullptr) return step.kernel->enqueue(*stream_);
    if (step.at.is_copy()) return copies_->run(step.at);
    if (is_device() && !step.follows()) finish();  // what is copied to the host, or from it
    step.message != nullptr ? pass_message(step) : exchange(step, posts);
  } catch (const Error& error) {
    throw named(error, step.at);
  }
}

void Executor::pass_message(const PlannedInstruction& step) {
  StageRuns& runs = ranks_.stages->runs();
  switch (step.at.kind) {
    case Kind::receive:
      return runs.add_wait(exposed([&] { step.message->receive(); }));
    case Kind::release:
      return runs.add_wait(exposed([&] { step.message->release(); }));
    default:
      step.message->send();
  }
}

void Executor::exchange(const PlannedInstruction& step, bool posts) {
  PlannedExchange& exchange = *step.exchange;
  if (step.at.kind == Kind::await) {
    ranks_.data->wait(exchange);
    if (exchange.follows()) exchange.join(*stream_);
    return;
  }
  if (exchange.follows()) exchange.fork(*stream_);
  const int contributors = step.at.ranks == Instruction::Ranks::all_in_step ? contributors_.in_step : contributors_.in_round;
  if (const MeshAxis axis = plan_.exchanges[static_cast<size_t>(step.at.exchange)].axis; !is_queued(axis)) {
    if (exchange.is_networked() && ranks_.data != nullptr) ranks_.data->wait_for_all();  // in the plan's order on all ranks
    exposed([&] { exchange.run(ranks_.along(axis).size()); });
  } else if (step.at.kind == Kind::post && posts) {
    return ranks_.data->post(exchange, contributors);
  } else {
    ranks_.data->run(exchange, contributors);
  }
  if (exchange.follows()) exchange.join(*stream_);
}

/// Returns the seconds for which the rank waited.
template <class Wait>
double Executor::exposed(const Wait& wait) {
  const double began = os::seconds();
  wait();
  const double ended = os::seconds();
  if (ranks_.data != nullptr) ranks_.data->add_exposed(began, ended);
  return ended - began;
}

/// With op and scope of the kernel that failed later than it was given, or else of `at`.
Error Executor::named(const Error& error, Instruction at) const {
  if (const Prepared* const late = stream_->failed())
    if (const PlannedInstruction* const failed = instructions_.of(late)) at = failed->at;
  const Node& node = plan_.program.sections[static_cast<size_t>(at.section)].graph[at.node];
  const std::string& scope = plan_.program.regions[static_cast<size_t>(node.region)].name;
  const bool is_named = scope.empty() || error.message().starts_with(text(scope, ": "));  // a scope may be called as its op
  Error named(error.code(), is_named ? error.message() : text(scope, ": ", error.message()));
  named.place = error.place;
  if (named.place.op.empty()) named.place.op = std::string(name_of(node.op));
  return named;
}

// The end of what was given.

void Executor::finish() {
  try {
    stream_->finish();
  } catch (const Error& error) {
    if (stream_->failed() == nullptr) throw;
    throw named(error, plan_.instructions.front());
  }
  finish_exchanges();
}

/// Unless the queue's thread uses their stream.
void Executor::finish_exchanges() {
  if (exchanging_ && ranks_.data->is_idle()) exchanging_->finish();
}

/// After an error, whose consequences may be errors too.
void Executor::give_up() {
  const auto finish = [](const auto& work) {
    try {
      work();
    } catch (const std::exception&) {
      return;
    }
  };
  finish([this] { stream_->finish(); });
  if (copies_) finish([this] { copies_->finish(); });
  finish([this] { finish_exchanges(); });
  instructions_.withdraw_messages();
  exchanges_are_left_ = exchanging_ && !ranks_.data->is_idle();
}

// Memory on a device.

int64_t Executor::input_bytes(const Plan& plan, const Backend& backend, std::initializer_list<const Communicator*> ranks) {
  if (backend.is_host_memory()) return 0;
  const auto is_over_network = [](const Communicator* along) { return along != nullptr && along->devices() != nullptr; };
  const auto is_on_shared_device = [&](const Communicator* along) {
    return along != nullptr && DeviceExchange::is_possible(backend, *along);
  };
  const int64_t inputs = input_copies(plan).bytes;
  if (std::ranges::any_of(ranks, is_over_network)) return inputs + exchange_memory(plan);
  return inputs + (std::ranges::any_of(ranks, is_on_shared_device) ? staged_memory(plan) : 0);
}

int64_t Executor::copied_bytes() const { return (inputs_ ? inputs_->bytes() : 0) + instructions_.copied_bytes(); }

int64_t own_bytes(const Executor& executor) {
  int64_t sum = executor.copied_bytes();
  for (int32_t a = 0; a < kArenas; ++a)
    if (!Storage::holds(static_cast<Arena>(a))) sum += executor.allocated(static_cast<Arena>(a));
  return sum;
}

}  // namespace st
