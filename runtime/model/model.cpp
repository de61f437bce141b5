#include "model/model.h"

#include <algorithm>
#include <utility>

#include "base/digest.h"
#include "base/error.h"
#include "base/float_mode.h"
#include "ir/cuts.h"
#include "ir/verify.h"
#include "model/device_copy.h"
#include "model/element_conversion.h"
#include "model/rank_pieces.h"
#include "models/initialize.h"
#include "plan/memory_plan.h"

namespace st {
namespace {

/// Places of the slots alone: every plan of the model has the parameters where this one has them.
MemoryLayout slot_layout(const Program& program) {
  Program slots;
  slots.slots = program.slots;
  for (Slot& slot : slots.slots) slot.type.shape = slot.type.shape.bind(1);
  return memory_plan(slots, {}, [](const Program&, const Section&, const Node&) { return int64_t{0}; });
}

constexpr int64_t kInitialized = 8192;  // elements that are staged at a time: what is large comes from the context's memory

/// Values are made as f32; a parameter of another dtype gets them converted. All of the slot or a piece, which `device` begins.
void put(Backend& backend, Address device, const Slot& slot, std::span<const float> values) {
  const auto size = static_cast<int64_t>(values.size()) * bytes_of(slot.type.dtype);
  if (slot.type.dtype == DType::f32) return backend.to_device(device, values.data(), size);
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  const auto width = static_cast<size_t>(bytes_of(slot.type.dtype));
  for (size_t i = 0; i < values.size(); ++i)
    convert_element(DType::f32, reinterpret_cast<const std::byte*>(&values[i]), slot.type.dtype, bytes.data() + i * width);
  backend.to_device(device, bytes.data(), size);
}

constexpr int64_t kChunk = 4096;  // elements that are converted at a time

void check_view(const char* what, const Slot& slot, const HostView& view) {
  check(view.shape == slot.type.shape, what, ": \"", slot.name, "\" has shape ", slot.type.shape, ", the view's is ", view.shape);
  check(is_floating(view.dtype), what, ": \"", slot.name, "\" is ", slot.type.dtype, ", the view is ", view.dtype,
        "; it must be f32, f64, bf16 or f16");
}

/// The device copies and does not convert.
void require_dtype(const char* what, const Slot& slot, const HostView& view) {
  check(view.dtype == slot.type.dtype, what, ": \"", slot.name, "\" is ", slot.type.dtype, ", the view in the device's memory is ",
        view.dtype, "; it must be the same, because only views of the host's memory are converted");
}

}  // namespace

Model::Model(std::shared_ptr<Context> context, Program program)
    : context_(std::move(context)), program_(std::move(program)), storage_(context_->backend()) {
  verify(program_, "model");
  const MemoryLayout layout = slot_layout(program_);
  for (size_t s = 0; s < program_.slots.size(); ++s) {
    offsets_.push_back(layout.slots[s].offset);
    if (program_.slots[s].role == Role::parameter) parameters_.push_back(static_cast<SlotId>(s));
  }
  bytes_ = layout.of(Arena::parameters);
}

void Model::allocate() const {
  const auto largest = [this](int64_t /*there*/) {
    if (parameters_.empty()) return std::string();
    const auto bytes = [this](SlotId id) { return slot(id).type.bytes(); };
    const Slot& most = slot(*std::ranges::max_element(parameters_, {}, bytes));
    return text(". The largest parameter is ", most.name, ", ", text_of_bytes(most.type.bytes()));
  };
  context_->require_memory("model: storage of the parameters", bytes_, Context::kUnlimited, largest,
                           "use a smaller model, or divide it: ranks that are processes have a part each by stages, tensor or zero 3 "
                           "(with late_parameters of the context, which scaletrain train sets)");
  if (bytes_ > 0) storage_.arena(Arena::parameters, bytes_);
}

Model::Model(std::shared_ptr<Context> context, Program program, uint64_t seed) : Model(std::move(context), std::move(program)) {
  seed_ = seed;
  for (const SlotId id : parameters_)  // each plan of the model would hold them again
    if (Initializer& init = program_.slot(id).init; init.kind == Init::values) given_[id] = std::exchange(init, {});
  if (!context_->options().late_parameters) {
    require_made();
    return;
  }
  Digest values;  // of the host's own, which the graph's digest is not of
  for (const auto& [id, init] : given_) values.update(std::as_bytes(std::span(init.values)));
  made_of_ = text("made late, of seed ", seed_, given_.empty() ? "" : " and values ", given_.empty() ? "" : values.hex());
}

void Model::require_made() const {
  if (held_ != Held::nothing) return;
  const std::lock_guard one(making_);
  if (held_ != Held::nothing) return;
  allocate();
  make(storage_, offsets_, {});
  given_.clear();  // they are the parameter now
  held_ = Held::whole;
}

/// First values of these pieces, by slot (none: of all).
void Model::make(const Storage& in, std::span<const int64_t> offsets, std::span<const PieceRange> pieces) const {
  const FloatMode mode;
  std::vector<float> values;
  for (const SlotId id : parameters_) {
    const PieceRange own = pieces.empty() ? PieceRange{0, slot(id).type.shape.elements()} : pieces[static_cast<size_t>(id)];
    const auto given = given_.find(id);
    const Initializer& init = given == given_.end() ? slot(id).init : given->second;
    const Address begin = in.data(Arena::parameters) + offsets[static_cast<size_t>(id)];
    own.each_run([&](int64_t in_whole, int64_t in_range, int64_t elements) {
      for (int64_t at = 0; at < elements; at += kInitialized) {
        values.resize(static_cast<size_t>(std::min(kInitialized, elements - at)));
        initialize(values, init, slot(id).type.shape, slot(id).name, seed_, in_whole + at);
        put(context_->backend(), begin + (in_range + at) * bytes_of(slot(id).type.dtype), slot(id), values);
      }
    });
  }
}

void Model::require_whole(const char* call) const {
  require_made();
  require(held_ == Held::whole, Code::wrong_state, call, ": this model holds only the shards of ", shard_holder(),
          "; calls that read all parameters end in _collective and are made by all ranks");
}

void Model::require_one_step(const char* call) const {
  require(!has_torn_state_, Code::wrong_state, call,
          ": weights are from different steps: an update failed, or a resume could not be rolled back; resume from a checkpoint");
}

void Model::require_readable(const char* call, ShardedModelCall* collective) const {
  if (collective == nullptr || !is_sharded()) return require_whole(call);
  collective->is_on(number_);
  require_one_step(call);
}

PieceRange Model::piece(SlotId parameter) const {
  if (pieces_.empty()) return {0, slot(parameter).type.shape.elements()};
  return pieces_[static_cast<size_t>(parameter)];
}

std::string Model::weights_fact() const {
  if (held_ == Held::nothing || (held_ == Held::whole && !made_of_.empty() && gate_.changes() == 0)) return made_of_;
  return held_ == Held::whole ? text("digest ", digest()) : "sharded";
}

void Model::keep_pieces(const Program& plan, bool on_host, const std::function<void()>& agree) {
  std::vector<PieceRange> pieces(program_.slots.size());
  Program own, gathers;
  own.slots = program_.slots;
  gathers.slots.assign(plan.slots.begin(), plan.slots.begin() + std::ssize(own.slots));
  gathers.mesh = plan.mesh;
  gathers.rank = plan.rank;
  gathers.tensor_rank = plan.tensor_rank;
  gathers.stage = plan.stage;
  for (const SlotId id : parameters_) {
    const Slot& cut = plan.slot(id);
    const Type piece = own_type(plan, cut);
    pieces[static_cast<size_t>(id)] = {own_begin(plan, cut), piece.shape.elements(), cut.piece};
    own.slot(id).type.shape = piece.shape;
  }
  std::string whose = text("rank ", plan.mesh_rank(), " of ", plan.mesh.ranks());
  const std::lock_guard one(making_);
  if (held_ == Held::pieces) {
    require(pieces == pieces_, Code::wrong_state, "trainer: the model already holds the shards of ", whose_,
            " of another trainer, this one needs those of ", whose, "; make another model and load a checkpoint into it");
    if (agree) agree();
    gathers_ = std::move(gathers);
    return;
  }
  const WeightsGate::Writer writer(gate_);
  require(!storage_.is_shared(Arena::parameters), Code::busy,
          "trainer: the model is to be sharded, but another trainer or predictor uses it; destroy that one first, or make another model");
  const MemoryLayout layout = slot_layout(own);
  const int64_t bytes = layout.of(Arena::parameters);
  on_host = on_host || is_on_host();
  const char* const what = "model: storage of the parameter shards";
  on_host ? context_->require_host_memory(what, bytes, bytes)
          : context_->require_memory(what, bytes, Context::kUnlimited, {}, "use a smaller model, or more stages, tensor or zero 3 ranks");
  std::vector<int64_t> offsets;
  for (size_t s = 0; s < offsets_.size(); ++s) offsets.push_back(layout.slots[s].offset);
  Storage made(context_->backend());
  if (bytes > 0) made.arena(Arena::parameters, bytes, on_host);
  if (held_ == Held::whole)
    for (const SlotId id : parameters_) {
      const int64_t width = bytes_of(slot(id).type.dtype);
      const Address to = made.data(Arena::parameters) + layout.slots[static_cast<size_t>(id)].offset;
      pieces[static_cast<size_t>(id)].each_run([&](int64_t in_whole, int64_t in_range, int64_t elements) {
        copy_bytes(context_->backend(), data(id) + in_whole * width, context_->backend(), to + in_range * width, elements * width);
      });
    }
  if (held_ == Held::nothing) make(made, offsets, pieces);
  if (agree) agree();
  // From here on nothing fails.
  storage_.share(made, Arena::parameters);
  pieces_ = std::move(pieces);
  gathers_ = std::move(gathers);
  whose_ = std::move(whose);
  offsets_ = std::move(offsets);
  bytes_ = bytes;
  given_.clear();
  held_ = Held::pieces;
}

int64_t Model::elements() const {
  int64_t sum = 0;
  for (const SlotId id : parameters_) sum += slot(id).type.shape.elements();
  return sum;
}

Address Model::data(SlotId parameter) const {
  require_made();
  return storage_.data(Arena::parameters) + offsets_[static_cast<size_t>(parameter)];
}

SlotId Model::parameter_named(std::string_view name) const {
  std::vector<std::string> names;
  for (const SlotId id : parameters_) {
    if (slot(id).name == name) return id;
    names.push_back(slot(id).name);
  }
  const std::string near = nearest(name, names);
  return about_tensor(name, [&]() -> SlotId {
    fail(Code::not_found, text("model: no parameter named \"", name, "\"", near.empty() ? "" : text("; did you mean \"", near, "\"?")));
  });
}

void Model::get(SlotId parameter, const HostView& to, ShardedModelCall* collective) const {
  if (collective == nullptr && is_sharded() && has_all_of(parameter))
    require_one_step("get");
  else
    require_readable("get", collective);
  if (to.is_on_device && collective == nullptr) {
    check_view("get", slot(parameter), to);
    require_dtype("get", slot(parameter), to);
    const WeightsGate::TryReader reader(gate_);
    const int64_t width = bytes_of(to.dtype);
    return piece(parameter).each_run([&](int64_t in_whole, int64_t in_range, int64_t elements) {
      context_->host_order().copy(place_of(to) + in_whole * width, data(parameter) + in_range * width, elements * width);
    });
  }
  const auto read = [&](int64_t first, std::span<std::byte> out) { read_bytes(parameter, first, out, collective); };
  get_by(parameter, to, collective, std::ref(read));  // a reference: std::function would allocate for the captures
}

void Model::get_by(SlotId parameter, const HostView& to, ShardedModelCall* collective, const ReadPart& read) const {
  const Slot& from = slot(parameter);
  check_view("get", from, to);
  const WeightsGate::TryReader reader(gate_);
  if (to.is_on_device) return get_on_device(parameter, to, collective, read);
  const int64_t width = bytes_of(from.type.dtype), elements = from.type.shape.elements();
  const bool is_as_it_is = to.dtype == from.type.dtype && to.is_plain();
  const int64_t at_a_time = std::min(context_->backend().transfer_bytes(kChunk * width) / width, elements);
  std::vector<std::byte> chunk(is_as_it_is ? 0 : static_cast<size_t>(at_a_time * width));
  if (collective != nullptr) collective->agree(text("get of \"", from.name, is_as_it_is ? "\"" : "\" with conversion"));
  if (is_as_it_is) return read(0, {static_cast<std::byte*>(to.data), static_cast<size_t>(from.type.bytes())});
  int64_t at = 0;
  each_element(to, [&](std::byte* element) {
    if (at % at_a_time == 0) read(at * width, std::span(chunk).first(static_cast<size_t>(std::min(at_a_time, elements - at) * width)));
    convert_element(from.type.dtype, chunk.data() + at++ % at_a_time * width, to.dtype, element);
  });
}

/// Through the host.
void Model::get_on_device(SlotId parameter, const HostView& to, ShardedModelCall* collective, const ReadPart& read) const {
  const Slot& from = slot(parameter);
  require_dtype("get", from, to);
  if (collective != nullptr) collective->agree(text("get of \"", from.name, "\""));
  std::vector<std::byte> bytes(static_cast<size_t>(from.type.bytes()));
  read(0, bytes);
  context_->host_order().to_device(place_of(to), bytes.data(), std::ssize(bytes));
}

/// From whoever has them.
void Model::read_bytes(SlotId parameter, int64_t first, std::span<std::byte> out, ShardedModelCall* collective) const {
  const int64_t width = bytes_of(slot(parameter).type.dtype), begin = first / width, end = begin + std::ssize(out) / width;
  piece(parameter).each_run_between(begin, end, [&](int64_t in_whole, int64_t in_range, int64_t elements) {
    context_->backend().to_host(out.data() + (in_whole - begin) * width, data(parameter) + in_range * width, elements * width);
  });
  if (collective == nullptr || pieces_.empty() || gathers_.slot(parameter).type.layout.is_replicated()) return;
  for (int32_t rank = 0; rank < gathers_.mesh.ranks(); ++rank)
    broadcast_range(collective->ranks(), rank, held_by(gathers_, gathers_.slot(parameter), rank), begin, width, out, slot(parameter).name);
}

void Model::each_part(SlotId parameter, std::vector<std::byte>& room, ShardedModelCall* collective,
                      const std::function<void(int64_t first, std::span<const std::byte> part)>& take) const {
  const int64_t at_a_time = context_->backend().transfer_bytes(kPiece);
  room.resize(static_cast<size_t>(at_a_time));
  for (int64_t at = 0, bytes = slot(parameter).type.bytes(); at < bytes; at += at_a_time) {
    const std::span<std::byte> part = std::span(room).first(static_cast<size_t>(std::min(at_a_time, bytes - at)));
    read_bytes(parameter, at, part, collective);
    take(at, part);
  }
}

void Model::set(SlotId parameter, const HostView& from) {
  const Slot& to = slot(parameter);
  check_view("set", to, from);
  if (from.is_on_device) {  // through the host, which looks for NaN
    std::vector<std::byte> bytes(static_cast<size_t>(from.bytes()));
    context_->host_order().to_host(bytes.data(), place_of(from), from.bytes());
    return set(parameter, plain_view(from.name, from.dtype, from.shape, bytes.data()));
  }
  if (const int64_t at = first_nan(from); at >= 0)
    fail(Code::not_finite, text("set: the view for \"", to.name, "\" holds NaN at element ", at, "; nothing has changed"));
  const FloatMode mode;
  Backend& backend = context_->backend();
  const Address place = data(parameter);
  const PieceRange own = piece(parameter);
  const int64_t width = bytes_of(to.type.dtype);
  const WeightsGate::Writer writer(gate_);
  if (from.dtype == to.type.dtype && from.is_plain())
    return own.each_run([&](int64_t in_whole, int64_t in_range, int64_t elements) {
      backend.to_device(place + in_range * width, static_cast<const std::byte*>(from.data) + in_whole * width, elements * width);
    });
  const int64_t at_a_time = std::min(backend.transfer_bytes(kChunk * width) / width, to.type.shape.elements());
  std::vector<std::byte> chunk(static_cast<size_t>(at_a_time * width));
  int64_t at = 0, filled = 0;
  const auto put_chunk = [&] {
    own.each_run_between(at - filled, at, [&](int64_t in_whole, int64_t in_range, int64_t elements) {
      backend.to_device(place + in_range * width, chunk.data() + (in_whole - (at - filled)) * width, elements * width);
    });
    filled = 0;
  };
  each_element(from, [&](const std::byte* value) {
    convert_element(from.dtype, value, to.type.dtype, chunk.data() + filled * width);
    ++at;
    if (++filled == at_a_time) put_chunk();
  });
  put_chunk();
}

void Model::copy_parameters(Storage& to) const {
  require_made();
  if (storage_.bytes() == 0) return;
  const Address target = to.arena(Arena::parameters, storage_.bytes(), to.pinned(Arena::parameters) != nullptr).data();
  copy_bytes(context_->backend(), storage_.data(Arena::parameters), to.backend(), target, storage_.bytes());
}

void Model::copy(std::span<const Address> places) {
  Backend& backend = context_->backend();
  const WeightsGate::Writer writer(gate_);
  for (size_t p = 0; p < places.size(); ++p)
    copy_bytes(backend, places[p], backend, data(parameters_[p]),
               piece(parameters_[p]).elements * bytes_of(slot(parameters_[p]).type.dtype));
}

void Model::move_to_file(const std::string& folder) {
  require_made();
  const WeightsGate::Writer writer(gate_);
  storage_.move_to_file(Arena::parameters, folder);
}

void Model::move_to_host(const std::function<void()>& before_swap) { move(true, before_swap); }
void Model::move_to_device() {
  move(false, [] {});
}

void Model::move(bool to_host, const std::function<void()>& before_swap) {
  require_made();
  const WeightsGate::Writer writer(gate_);
  require(!storage_.is_shared(Arena::parameters), Code::busy,
          "trainer: offload moves the model's parameters, but another trainer or predictor uses it; destroy that one first, make another "
          "model, or offload less");
  Storage made(context_->backend());
  copy_bytes(context_->backend(), storage_.data(Arena::parameters), context_->backend(),
             made.arena(Arena::parameters, bytes_, to_host).data(), bytes_);
  before_swap();
  storage_.share(made, Arena::parameters);
}

std::shared_ptr<Model> Model::clone(ShardedModelCall* collective, bool keeps) const {
  require_readable("clone", collective);
  std::shared_ptr<Model> made(keeps ? new Model(context_, program_) : nullptr);
  if (made) made->allocate();
  if (made) made->held_ = Held::whole;
  std::vector<std::byte> room(static_cast<size_t>(context_->backend().transfer_bytes(kPiece)));
  const WeightsGate::TryReader reader(gate_);
  if (collective != nullptr) collective->agree("clone");
  for (const SlotId id : parameters_)
    each_part(id, room, collective, [&](int64_t first, std::span<const std::byte> part) {
      if (made) made->context_->backend().to_device(made->data(id) + first, part.data(), std::ssize(part));
    });
  return made;
}

std::shared_ptr<Model> Model::without_parameters() const { return std::shared_ptr<Model>(new Model(context_, program_)); }

std::string Model::digest(ShardedModelCall* collective) const {
  require_readable("digest", collective);
  std::vector<SlotId> order = parameters_;
  std::ranges::sort(order, {}, [&](SlotId id) -> const std::string& { return slot(id).name; });
  std::vector<std::byte> room(static_cast<size_t>(context_->backend().transfer_bytes(kPiece)));
  const WeightsGate::TryReader reader(gate_);
  if (collective != nullptr) collective->agree("digest");
  Digest digest;
  for (const SlotId id : order) {
    digest.update_sized(slot(id).name);
    digest.update_sized(name_of(slot(id).type.dtype));
    digest.update_sized(text(slot(id).type.shape));
    each_part(id, room, collective, [&](int64_t, std::span<const std::byte> part) { digest.update(part); });
  }
  return digest.hex();
}

}  // namespace st
