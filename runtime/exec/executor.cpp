#include "exec/executor.h"

#include <algorithm>
#include <map>
#include <utility>

#include "backend/host_call.h"
#include "base/error.h"
#include "base/float_mode.h"
#include "base/os/machine.h"
#include "exec/device_operands.h"
#include "ir/cuts.h"
#include "plan/input_copies.h"

namespace st {

using Kind = Instruction::Kind;

Executor::Executor(Plan plan, Storage& storage, Workers& workers, CancelToken* cancelled, ExchangeQueue* ranks, StageLinks* stages,
                   Communicator* tensor)
    : plan_(std::move(plan)),
      storage_(storage),
      workers_(workers),
      cancelled_(cancelled),
      ranks_(ranks),
      stages_(stages),
      tensor_(tensor),
      stream_(storage.backend().make_stream()),
      is_device_(!storage.backend().is_host_memory()),
      exchanges_stream_(is_device_ && ranks != nullptr ? storage.backend().make_stream() : nullptr) {
  allocate();
  resolve();
  if (is_device_) allocate_inputs();
  if (stream_->can_record()) find_segments();
  if (std::ranges::any_of(steps_, [](const Step& step) { return step.at.kind == Kind::post; })) ranks_->start();
}

/// Work that has not been waited for, such as a copy for a run that never came, uses what is destroyed below.
Executor::~Executor() { give_up(); }

void Executor::allocate() {
  for (int32_t a = 0; a < kArenas; ++a) {
    const auto arena = static_cast<Arena>(a);
    const int64_t bytes = plan_.memory.of(arena);
    if (bytes == 0) continue;
    if (Storage::holds(arena))
      storage_.arena(arena, bytes);
    else
      own_[static_cast<size_t>(a)] = storage_.backend().allocate(bytes, role_of(arena));
  }
}

void Executor::allocate_inputs() {
  const InputCopies copies = input_copies(plan_);
  if (copies.bytes > 0) inputs_ = storage_.backend().allocate(copies.bytes, MemoryRole::inputs);
  for (const int64_t offset : copies.offsets) inputs_at_.push_back(offset < 0 ? Address{} : inputs_->data() + offset);
  uploads_.emplace(storage_.backend(), *stream_, copies.upload_bytes());
}

void Executor::find_segments() {
  segments_ = segments_of(plan_);
  segment_at_.assign(steps_.size(), -1);
  int32_t recordings = 0;
  for (size_t s = 0; s < segments_.size(); ++s) {
    segment_at_[segments_[s].begin] = static_cast<int32_t>(s);
    recordings = std::max(recordings, segments_[s].recording + 1);
  }
  recordings_.resize(static_cast<size_t>(recordings));
}

Address Executor::address(const Place& place) const {
  if (place.arena == Arena::host) return {};
  const auto& own = own_[static_cast<size_t>(place.arena)];
  const Address base = own ? own->data() : storage_.data(place.arena);
  return base ? base + place.offset : base;
}

Operand Executor::operand(int32_t section, Value v, int32_t micro_batch) const {
  const auto s = static_cast<size_t>(section);
  const Type& type = plan_.program.sections[s].graph.type(v);
  const Place& place = plan_.memory.values[s][static_cast<size_t>(v.node)][static_cast<size_t>(v.output)];
  return {address(plan_.memory.of_micro_batch(place, micro_batch)), type.dtype, type.shape};
}

void Executor::resolve() {
  const Program& program = plan_.program;
  for (size_t s = 0; s < program.slots.size(); ++s)
    slots_.push_back({address(plan_.memory.slots[s]), program.slots[s].type.dtype, own_type(program, program.slots[s]).shape});
  bound_.resize(program.slots.size());

  size_t count = 0, nodes = 0;
  std::vector<int32_t> periods;
  for (size_t s = 0; s < program.sections.size(); ++s) {
    const Section& section = program.sections[s];
    periods.push_back(period_of(plan_, static_cast<int32_t>(s)));
    const auto period = static_cast<size_t>(periods.back());
    nodes += section.graph.nodes.size() * period;
    for (const Node& node : section.graph.nodes)
      count += (node.in.size() + node.out.size() + node.reads.size() + node.writes.size()) * period;
  }
  operands_.reserve(count);
  calls_.reserve(nodes);
  steps_.reserve(plan_.instructions.size());

  struct Made {
    const Call* call = nullptr;
    Prepared* kernel = nullptr;
    HostMirror* message = nullptr;
  };
  std::map<std::array<int32_t, 3>, Made> calls;                  // by section, node and micro-batch in its section's period
  std::map<std::array<int32_t, 2>, PlannedExchange*> exchanges;  // by index in the plan and micro-batch in its section's period
  messages_.resize(plan_.exchanges.size());
  for (const Instruction& at : plan_.instructions) {
    const Node& node = program.sections[static_cast<size_t>(at.section)].graph[at.node];
    const bool is_exchange = at.kind != Kind::kernel;
    const int32_t in_period = at.micro_batch % periods[static_cast<size_t>(at.section)];
    auto& [call, prepared, message] = calls[{at.section, at.node, in_period}];
    if (call == nullptr) call = make_call(at);
    if (!is_exchange && prepared == nullptr) prepared = kernels_.emplace_back(prepare(node, *call)).get();
    PlannedExchange* exchange = nullptr;
    const bool is_collective = at.kind == Kind::exchange || at.kind == Kind::post || at.kind == Kind::await;
    if (is_exchange) {
      const MeshAxis axis = plan_.exchanges[static_cast<size_t>(at.exchange)].axis;
      require(axis == MeshAxis::stage    ? stages_ != nullptr
              : axis == MeshAxis::tensor ? tensor_ != nullptr
                                         : ranks_ != nullptr,
              Code::internal, "executor: ", name_of(node.op), " needs a communicator of its axis");
    }
    if (is_collective) {
      PlannedExchange*& made = exchanges[{at.exchange, in_period}];
      if (made == nullptr) {
        const ExchangePlan& of = plan_.exchanges[static_cast<size_t>(at.exchange)];
        Stream* const stream = of.axis == MeshAxis::stage || of.axis == MeshAxis::tensor ? stream_.get() : exchanges_stream_.get();
        made =
            exchanges_.emplace_back(std::make_unique<PlannedExchange>(of, program, *call, group_of(at), storage_.backend(), stream)).get();
      }
      exchange = made;
    }
    if (is_device_ && is_exchange && !is_collective && message == nullptr)
      message = mirrors_.emplace_back(std::make_unique<HostMirror>(storage_.backend(), *call)).get();
    if (at.kind == Kind::send) messages_[static_cast<size_t>(at.exchange)].resize(static_cast<size_t>(buffers_of_message(at)));
    steps_.push_back({prepared, call, at, exchange, message});
  }
}

/// The backend's kernel; for the host's own op on a device, a call on copies.
std::unique_ptr<Prepared> Executor::prepare(const Node& node, const Call& call) const {
  Backend& backend = storage_.backend();
  if (is_device_ && (node.op == Op::host || node.op == Op::host_backward)) return prepare_host_call(backend, node.op, call);
  require(backend.kernels()[static_cast<size_t>(node.op)].run != nullptr, Code::unsupported, "backend ", backend.name(), ": no kernel for ",
          name_of(node.op));
  return backend.prepare(node.op, call);
}

/// How many messages of a send may be under way: one from each buffer.
int32_t Executor::buffers_of_message(const Instruction& send) const {
  const Graph& graph = plan_.program.sections[static_cast<size_t>(send.section)].graph;
  const SlotId slot = graph.slot_behind(graph[send.node].in[0]);
  const StashBuffers* const buffers = plan_.memory.buffers_of(plan_.memory.slots[static_cast<size_t>(slot)]);
  return buffers == nullptr ? 1 : buffers->count;
}

/// Afterwards only addresses in the host's memory change, and bind() changes them.
const Call* Executor::make_call(const Instruction& at) {
  const Program& program = plan_.program;
  const Graph& graph = program.sections[static_cast<size_t>(at.section)].graph;
  const Node& node = graph[at.node];
  Call& call = calls_.emplace_back();
  const auto extend = [&](const auto& list, const auto& make) {
    const size_t begin = operands_.size();
    for (const auto& item : list) operands_.push_back(make(item));
    return std::span<const Operand>(operands_.data() + begin, list.size());
  };
  const auto expect_binding = [&](const Node& by, SlotId slot, const Operand& operand) {
    if (plan_.memory.slots[static_cast<size_t>(slot)].arena == Arena::host)
      bound_[static_cast<size_t>(slot)].push_back(
          {const_cast<Operand*>(&operand), access_of(program, graph, by, slot).first * bytes_of(operand.dtype)});
  };
  call.in = extend(node.in, [&](Value v) { return operand(at.section, v, at.micro_batch); });
  for (size_t i = 0; i < node.in.size(); ++i)
    if (const Node* const load = graph.load_behind(node.in[i])) expect_binding(*load, load->reads[0], call.in[i]);
  std::vector<Value> outputs;
  for (int32_t i = 0; i < static_cast<int32_t>(node.out.size()); ++i) outputs.push_back({at.node, i});
  call.out = extend(outputs, [&](Value v) { return operand(at.section, v, at.micro_batch); });
  const auto accessed = [&](SlotId slot) {
    const Access access = access_of(program, graph, node, slot);
    const Address data = address(plan_.memory.of_micro_batch(plan_.memory.slots[static_cast<size_t>(slot)], at.micro_batch));
    const DType dtype = program.slot(slot).type.dtype;
    return Operand{data ? data + access.first * bytes_of(dtype) : data, dtype, access.type.shape};
  };
  call.reads = extend(node.reads, accessed);
  call.writes = extend(node.writes, accessed);
  for (size_t i = 0; i < node.reads.size(); ++i) expect_binding(node, node.reads[i], call.reads[i]);
  for (size_t i = 0; i < node.writes.size(); ++i) expect_binding(node, node.writes[i], call.writes[i]);
  call.attrs = &node.attrs;
  call.workers = &workers_;
  if (const auto& workspace = own_[static_cast<size_t>(Arena::workspace)]) {
    call.workspace = workspace->data();
    call.workspace_bytes = workspace->size();
  }
  return &call;
}

void Executor::bind(SlotId slot, Address data) {
  if (is_device_) {
    const Slot& to = plan_.program.slot(slot);
    require_on_device(backend(), data, own_type(plan_.program, to).bytes(), to.name);
  }
  if (slots_[static_cast<size_t>(slot)].data != data) forget_recordings();
  for (const Bound& bound : bound_[static_cast<size_t>(slot)]) bound.operand->data = data ? data + bound.offset : data;
  slots_[static_cast<size_t>(slot)].data = data;
  if (plan_.program.slot(slot).role == Role::input) return;
  for (const auto& exchange : exchanges_)
    if (exchange) exchange->place();
  for (const auto& message : mirrors_) message->place();
}

void Executor::bind(SlotId slot, const void* data) {
  const auto s = static_cast<size_t>(slot);
  if (!is_device_ || !inputs_at_[s]) return bind(slot, storage_.backend().of_host(data));
  const Address here = inputs_at_[s];
  if (slots_[s].data != here) bind(slot, here);
  write(here, data, own_type(plan_.program, plan_.program.slots[s]).bytes());
}

void Executor::write(Address to, const void* from, int64_t bytes) {
  if (uploads_) return uploads_->write(to, from, bytes);
  storage_.backend().to_device(to, from, bytes);
}

void Executor::read(void* to, Address from, int64_t bytes) {
  if (is_device_) finish();
  storage_.backend().to_host(to, from, bytes);
}

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
    const Step& step = steps_[cursor.at];
    look_for_cancel(cursor);
    if (ranks_ != nullptr && ranks_->has_failed()) ranks_->wait_for_all();
    if (step.at.micro_batch != cursor.micro_batch) {
      if (prepare && !prepare(step.at.micro_batch)) {
        look_for_cancel(cursor);
        return false;
      }
      cursor.micro_batch = step.at.micro_batch;
    }
    if (const KernelSegment* const segment = recorded_at(cursor.at, end, deadline)) {
      if (stages_ != nullptr) record(step.at);
      launch(*segment);
      cursor.at = segment->end;
      continue;
    }
    if (!is_valid(step.at.makes)) {
      if (stages_ != nullptr) record(step.at);
      execute(step, !watch_);  // a watcher needs complete tensors
      if (watch_) {
        finish();
        watch_(step.at, *step.call);
      }
    }
    ++cursor.at;
    if (deadline == kNoDeadline || (is_device_ && !is_boundary(cursor.at))) continue;
    finish();
    if (os::seconds() >= deadline) break;
  }
  if (stages_ != nullptr) stages_->runs().leave(exposed_seconds());
  return cursor.at >= end;
}

/// The segment that begins at an instruction, if the run gives all of it without a look at the clock or at values between its kernels.
const KernelSegment* Executor::recorded_at(size_t at, size_t end, double deadline) const {
  if (segment_at_.empty() || deadline != kNoDeadline || watch_ || segment_at_[at] < 0) return nullptr;
  const KernelSegment& segment = segments_[static_cast<size_t>(segment_at_[at])];
  return segment.end <= end ? &segment : nullptr;
}

/// The first time, and after an operand has moved, records it.
void Executor::launch(const KernelSegment& segment) {
  std::unique_ptr<Recording>& recording = recordings_[static_cast<size_t>(segment.recording)][is_valid(Copy::lasting) ? 1 : 0];
  if (recording == nullptr) recording = record_kernels(segment);
  recording->launch(*stream_);
}

std::unique_ptr<Recording> Executor::record_kernels(const KernelSegment& segment) {
  stream_->begin_recording();
  try {
    for (size_t i = segment.begin; i < segment.end; ++i)
      if (!is_valid(steps_[i].at.makes)) execute(steps_[i], false);
  } catch (...) {
    stream_->end_recording();
    throw;
  }
  return stream_->end_recording();
}

/// Waits for the kernels that they have given, and throws their error.
void Executor::forget_recordings() {
  if (std::ranges::all_of(recordings_, [](const Recordings& of) { return !of[0] && !of[1]; })) return;
  finish();
  for (Recordings& of : recordings_) of = {};
}

void Executor::run_without_rows(int64_t micro_batch, const Contributors& contributors, RunByAll which) {
  using Ranks = Instruction::Ranks;
  const FloatMode mode;
  contributors_ = contributors;
  for (size_t i = 0; i < begin_of_update(); ++i) {
    const Step& step = steps_[i];
    if (step.at.micro_batch != micro_batch || step.at.ranks == Ranks::with_rows || is_valid(step.at.makes)) continue;
    if (which == (step.at.ranks == Ranks::all_in_round ? RunByAll::in_step : RunByAll::in_round)) continue;
    execute(step, false);  // there is nothing to compute meanwhile
  }
  finish();
}

void Executor::make_copies(std::initializer_list<Copy> copies) {
  const FloatMode mode;
  for (const Step& step : steps_) {
    if (step.at.micro_batch == 0 && std::ranges::find(copies, step.at.makes) != copies.end()) execute(step, false);
  }
  finish();
}

/// Where a slice of a step may end on a device: the next instruction is of another section, or of another micro-batch.
bool Executor::is_boundary(size_t at) const {
  if (at == steps_.size()) return true;
  const Instruction &next = steps_[at].at, &last = steps_[at - 1].at;
  return next.section != last.section || next.micro_batch != last.micro_batch;
}

void Executor::finish() {
  try {
    stream_->finish();
  } catch (const Error& error) {
    if (stream_->failed() == nullptr) throw;
    throw named(error, steps_.front().at);
  }
  finish_exchanges();
}

/// Unless the queue's thread uses their stream.
void Executor::finish_exchanges() {
  if (exchanges_stream_ && ranks_->is_idle()) exchanges_stream_->finish();
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
  finish([this] { finish_exchanges(); });
  exchanges_are_left_ = exchanges_stream_ && !ranks_->is_idle();
}

bool Executor::is_left_out(const Cursor& cursor) const {
  const int64_t k = steps_[cursor.at].at.micro_batch;
  return (k < cursor.begin || k >= cursor.end) && cursor.at < begin_of_update();
}

void Executor::look_for_cancel(const Cursor& cursor) {
  if (cursor.at < begin_of_update() && cancelled_ != nullptr && cancelled_->take())
    fail(Code::cancelled, "step: cancelled; the state is that of the last whole step");
}

void Executor::execute(const Step& step, bool posts) {
  try {
    if (step.kernel != nullptr) return step.kernel->enqueue(*stream_);
    if (is_device_ && (step.exchange == nullptr || !step.exchange->follows())) finish();  // what is copied to the host, or from it
    if (step.exchange == nullptr) return pass_message(step);
    exchange(step, posts);
  } catch (const Error& error) {
    throw named(error, step.at);
  }
}

/// With op and scope of the kernel that failed later than it was given, or else of `at`.
Error Executor::named(const Error& error, Instruction at) const {
  if (const Prepared* const late = stream_->failed())
    if (const auto failed = std::ranges::find(steps_, late, &Step::kernel); failed != steps_.end()) at = failed->at;
  const Node& node = plan_.program.sections[static_cast<size_t>(at.section)].graph[at.node];
  const std::string& scope = plan_.program.regions[static_cast<size_t>(node.region)].name;
  const bool is_named = scope.empty() || error.message().starts_with(text(scope, ": "));  // a scope may be called as its op
  Error named(error.code(), is_named ? error.message() : text(scope, ": ", error.message()));
  named.place = error.place;
  if (named.place.op.empty()) named.place.op = std::string(name_of(node.op));
  return named;
}

Communicator& Executor::group_of(const Instruction& at) const {
  const MeshAxis axis = plan_.exchanges[static_cast<size_t>(at.exchange)].axis;
  return axis == MeshAxis::stage ? stages_->stages() : axis == MeshAxis::tensor ? *tensor_ : ranks_->ranks();
}

/// For the step's timeline. A release comes before a section, and the update is not an action of the schedule.
void Executor::record(const Instruction& at) {
  const Section& section = plan_.program.sections[static_cast<size_t>(at.run())];
  if (at.kind == Kind::release || section.phase == Phase::update) return stages_->runs().leave(exposed_seconds());
  stages_->runs().enter({section.phase, section.chunk, at.micro_batch}, exposed_seconds());
}

/// Returns the seconds for which the rank waited.
template <class Wait>
double Executor::exposed(const Wait& wait) {
  const double began = os::seconds();
  wait();
  const double ended = os::seconds();
  if (ranks_ != nullptr) ranks_->add_exposed(began, ended);
  return ended - began;
}

std::byte* Executor::in_host(const Step& step, const Operand& operand) const {
  return step.message != nullptr ? step.message->at(operand) : storage_.backend().in_host(operand.data);
}

void Executor::pass_message(const Step& step) {
  if (messages_of_ != stages_->connected()) {
    for (std::vector<int64_t>& of_send : messages_) std::ranges::fill(of_send, 0);
    messages_of_ = stages_->connected();
  }
  const ExchangePlan& message = plan_.exchanges[static_cast<size_t>(step.at.exchange)];
  Link& link = stages_->link(message.link);
  if (step.at.kind == Kind::receive) {
    void* const to = in_host(step, step.call->writes[0]);
    stages_->runs().add_wait(exposed([&] { link.receive(to, message.elements, message.dtype, message.label); }));
    if (step.message != nullptr) step.message->upload();
    return;
  }
  std::vector<int64_t>& of_send = messages_[static_cast<size_t>(step.at.exchange)];
  if (of_send.empty()) return;  // no micro-batch of the plan sends it
  int64_t& sent = of_send[static_cast<size_t>(step.at.micro_batch) % of_send.size()];
  if (step.at.kind == Kind::release) return stages_->runs().add_wait(exposed([&] { link.wait(sent); }));
  link.wait(sent);
  if (step.message != nullptr) step.message->download();
  sent = link.post(in_host(step, step.call->in[0]), message.elements, message.dtype, message.label);
}

void Executor::exchange(const Step& step, bool posts) {
  PlannedExchange& exchange = *step.exchange;
  if (step.at.kind == Kind::await) {
    ranks_->wait(exchange);
    if (exchange.follows()) exchange.join(*stream_);
    return;
  }
  if (exchange.follows()) exchange.fork(*stream_);
  const int contributors = step.at.ranks == Instruction::Ranks::all_in_step ? contributors_.in_step : contributors_.in_round;
  if (const MeshAxis axis = plan_.exchanges[static_cast<size_t>(step.at.exchange)].axis;
      axis == MeshAxis::stage || axis == MeshAxis::tensor) {
    const int size = group_of(step.at).size();
    exposed([&] { exchange.run(size); });
  } else if (step.at.kind == Kind::post && posts) {
    return ranks_->post(exchange, contributors);
  } else {
    ranks_->run(exchange, contributors);
  }
  if (exchange.follows()) exchange.join(*stream_);
}

int64_t Executor::allocated(Arena arena) const {
  if (const auto& own = own_[static_cast<size_t>(arena)]) return own->size();
  return Storage::holds(arena) && storage_.data(arena) ? plan_.memory.of(arena) : 0;
}

int64_t Executor::input_bytes(const Plan& plan, const Backend& backend) { return backend.is_host_memory() ? 0 : input_copies(plan).bytes; }

int64_t Executor::copied_bytes() const {
  int64_t sum = (inputs_ ? inputs_->size() : 0) + (uploads_ ? uploads_->bytes() : 0);
  for (const auto& exchange : exchanges_) sum += exchange->copied_bytes();
  for (const auto& message : mirrors_) sum += message->bytes();
  return sum;
}

}  // namespace st
