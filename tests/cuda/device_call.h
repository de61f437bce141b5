// An op with operands in the memory of the plug-in's device.
#pragma once

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/needs.h"

namespace st {

/// An op with operands in a device's memory.
class DeviceCall {
 public:
  DeviceCall(Backend& backend, Op op, const Attrs& attrs = {}) : backend_(backend), op_(op), attrs_(make_attrs(op, attrs)) {}

  template <class T>
  DeviceCall& input(DType dtype, const Shape& shape, const std::vector<T>& values) {
    in_.push_back(operand(dtype, shape));
    backend_.to_device(in_.back().data, values.data(), shape.elements() * bytes_of(dtype));
    return *this;
  }
  DeviceCall& output(DType dtype, const Shape& shape) {
    out_.push_back(operand(dtype, shape));
    return *this;
  }
  DeviceCall& slot(DType dtype, const Shape& shape) {
    slots_.push_back(operand(dtype, shape));
    return *this;
  }
  std::unique_ptr<Prepared> prepare() {
    call_.in = in_;
    call_.out = out_;
    call_.reads = call_.writes = slots_;
    call_.attrs = &attrs_;
    call_.workspace_bytes = workspace_need({.device = "cuda"}, op_, types_of(in_), types_of(out_), attrs_);
    memory_.push_back(backend_.allocate(call_.workspace_bytes, MemoryRole::workspace));
    call_.workspace = memory_.back()->data();
    return backend_.prepare(op_, call_);
  }
  std::vector<float> floats(const Operand& from) {
    std::vector<float> values(static_cast<size_t>(from.elements()));
    backend_.to_host(values.data(), from.data, from.elements() * 4);
    return values;
  }
  std::vector<float> out() { return floats(out_[0]); }
  std::vector<uint8_t> bytes(size_t output = 0) {
    const Operand& from = out_[output];
    std::vector<uint8_t> values(static_cast<size_t>(from.elements() * bytes_of(from.dtype)));
    backend_.to_host(values.data(), from.data, static_cast<int64_t>(values.size()));
    return values;
  }
  std::vector<float> first_slot() { return floats(slots_[0]); }
  std::vector<Operand>& inputs() { return in_; }

 private:
  Operand operand(DType dtype, const Shape& shape) {
    memory_.push_back(backend_.allocate(shape.elements() * bytes_of(dtype), MemoryRole::tensors));
    return {memory_.back()->data(), dtype, shape};
  }
  static std::vector<Type> types_of(const std::vector<Operand>& operands) {
    std::vector<Type> types;
    for (const Operand& operand : operands) types.push_back({.dtype = operand.dtype, .shape = operand.shape, .layout = {}});
    return types;
  }

  Backend& backend_;
  Op op_;
  Attrs attrs_;
  std::vector<std::unique_ptr<Buffer>> memory_;
  std::vector<Operand> in_, out_, slots_;
  Call call_;
};

}  // namespace st
