#include "train/model.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/float16.h"
#include "checkpoint/safetensors.h"
#include "ir/verify.h"
#include "models/initialize.h"
#include "passes/memory_plan.h"

namespace st {
namespace {

/// Places of the slots alone: every plan of the model has the parameters where this one has them.
MemoryLayout slot_layout(const Program& program) {
  Program slots;
  slots.slots = program.slots;
  for (Slot& slot : slots.slots) slot.type.shape = slot.type.shape.bind(1);
  return memory_plan(slots, [](const Program&, const Section&, const Node&) { return int64_t{0}; });
}

template <class From, class Convert>
void convert(std::span<const std::byte> from, std::span<float> to, const Convert& convert_one) {
  for (size_t i = 0; i < to.size(); ++i) {
    From value;
    std::memcpy(&value, from.data() + i * sizeof(From), sizeof value);
    to[i] = convert_one(value);
  }
}

void to_f32(const TensorRecord& record, std::span<const std::byte> bytes, std::span<float> out, const std::string& file) {
  switch (record.dtype) {
    case DType::f32:
      return convert<float>(bytes, out, [](float v) { return v; });
    case DType::f64:
      return convert<double>(bytes, out, [](double v) { return static_cast<float>(v); });
    case DType::bf16:
      return convert<uint16_t>(bytes, out, [](uint16_t v) { return f32_of_bf16(v); });
    case DType::f16:
      return convert<uint16_t>(bytes, out, [](uint16_t v) { return f32_of_f16(v); });
    default:
      fail(Code::invalid_argument,
           text("read: tensor \"", record.name, "\" in ", file, " is ", record.dtype, ", a floating type is needed"));
  }
}

/// Values are made and read as f32; a parameter of another dtype gets them converted.
void put(Backend& backend, std::byte* device, const Slot& slot, std::span<const float> values) {
  if (slot.type.dtype == DType::f32) return backend.to_device(device, values.data(), slot.type.bytes());
  std::vector<std::byte> bytes(static_cast<size_t>(slot.type.bytes()));
  for (size_t i = 0; i < values.size(); ++i) {
    if (slot.type.dtype == DType::f64) {
      const double value = values[i];
      std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
    } else {
      const uint16_t value = slot.type.dtype == DType::bf16 ? bf16_of(values[i]) : f16_of(values[i]);
      std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
    }
  }
  backend.to_device(device, bytes.data(), slot.type.bytes());
}

}  // namespace

Model::Model(std::shared_ptr<Context> context, Program program, uint64_t seed)
    : context_(std::move(context)), program_(std::move(program)), storage_(context_->backend()) {
  verify(program_, "model");
  const MemoryLayout layout = slot_layout(program_);
  for (size_t s = 0; s < program_.slots.size(); ++s) {
    offsets_.push_back(layout.slots[s].offset);
    if (program_.slots[s].role == Role::parameter) parameters_.push_back(static_cast<SlotId>(s));
  }
  const int64_t bytes = layout.of(Arena::parameters);
  context_->require_memory("model: holding its parameters", bytes);
  if (bytes > 0) storage_.arena(Arena::parameters, bytes);

  std::vector<float> values;
  for (const SlotId id : parameters_) {
    values.resize(static_cast<size_t>(slot(id).type.shape.elements()));
    initialize(values, slot(id), seed);
    put(context_->backend(), data(id), slot(id), values);
  }
}

int64_t Model::elements() const {
  int64_t sum = 0;
  for (const SlotId id : parameters_) sum += slot(id).type.shape.elements();
  return sum;
}

std::byte* Model::data(SlotId parameter) const { return storage_.data(Arena::parameters) + offsets_[static_cast<size_t>(parameter)]; }

SlotId Model::parameter_named(std::string_view name) const {
  std::vector<std::string> names;
  for (const SlotId id : parameters_) {
    if (slot(id).name == name) return id;
    names.push_back(slot(id).name);
  }
  const std::string near = nearest(name, names);
  fail(Code::not_found, text("model: no parameter named \"", name, "\"", near.empty() ? "" : text("; did you mean \"", near, "\"?")));
}

void Model::write(const std::string& path) const {
  std::vector<TensorRecord> records;
  for (const SlotId id : parameters_)
    records.push_back({.name = slot(id).name, .dtype = slot(id).type.dtype, .shape = slot(id).type.shape});
  std::vector<std::byte> host;
  write_safetensors_file(path, records, {{"format", "scaletrain"}}, [&](const TensorRecord& record, const WriteBytes& put) {
    const SlotId id = parameter_named(record.name);
    host.resize(static_cast<size_t>(slot(id).type.bytes()));
    context_->backend().to_host(host.data(), data(id), slot(id).type.bytes());
    put(host);
  });
}

void Model::read(const std::string& path) {
  const SafetensorsFile file(path);
  for (const SlotId id : parameters_) {
    const TensorRecord& record = file.record(slot(id).name);
    check(record.shape == slot(id).type.shape, "read: tensor \"", record.name, "\" in ", path, " is ", record.shape, ", the model's is ",
          slot(id).type.shape);
    check(is_floating(record.dtype), "read: tensor \"", record.name, "\" in ", path, " is ", record.dtype, ", a floating type is needed");
  }
  for (const TensorRecord& record : file.header().tensors)
    check(std::ranges::any_of(parameters_, [&](SlotId id) { return slot(id).name == record.name; }), "read: ", path, " holds tensor \"",
          record.name, "\", which the model does not have");
  int64_t largest = 0;
  for (const SlotId id : parameters_) largest = std::max(largest, slot(id).type.shape.elements());
  std::vector<float> values;
  values.reserve(static_cast<size_t>(largest));  // before anything changes: running out of memory halfway would leave a mixture
  for (const SlotId id : parameters_) {
    const TensorRecord& record = file.record(slot(id).name);
    if (record.dtype == slot(id).type.dtype) {  // as they are: a write and a read lose no bit of any dtype
      context_->backend().to_device(data(id), file.bytes(record).data(), slot(id).type.bytes());
      continue;
    }
    values.resize(static_cast<size_t>(slot(id).type.shape.elements()));
    to_f32(record, file.bytes(record), values, path);
    put(context_->backend(), data(id), slot(id), values);
  }
}

}  // namespace st
