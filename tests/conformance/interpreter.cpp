#include "interpreter.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "backend/host_call.h"
#include "backend/needs.h"
#include "base/error.h"
#include "base/float_mode.h"

namespace st::conformance {
namespace {

constexpr int64_t kGuard = 64;
constexpr std::byte kGarbage{0xCB};  // as a float -2.7e7, as an index far out of range

/// `bytes` bytes of it, valid until the next call on this thread.
const std::byte* garbage(int64_t bytes) {
  thread_local std::vector<std::byte> all;
  if (all.size() < static_cast<size_t>(bytes)) all.assign(static_cast<size_t>(bytes), kGarbage);
  return all.data();
}

bool is_garbage(Backend& backend, Address from) {
  std::array<std::byte, kGuard> guard;
  backend.to_host(guard.data(), from, kGuard);
  return std::memcmp(guard.data(), garbage(kGuard), kGuard) == 0;
}

std::vector<Operand> operands(const Blocks& blocks) {
  std::vector<Operand> result;
  for (const auto& block : blocks) result.push_back(block->operand());
  return result;
}

std::vector<Type> types(const std::vector<Operand>& operands) {
  std::vector<Type> result;
  for (const Operand& operand : operands) result.push_back({.dtype = operand.dtype, .shape = operand.shape, .layout = {}});
  return result;
}

}  // namespace

Block::Block(Backend& backend, const Type& type, int64_t displaced)
    : backend_(&backend),
      type_(type),
      displaced_(displaced),
      buffer_(backend.allocate(displaced + type.bytes() + kGuard, MemoryRole::tensors)) {
  const int64_t bytes = type_.bytes() + kGuard;
  backend_->to_device(data(), garbage(bytes), bytes);
}

Block::Block(Backend& backend, const Tensor& value, int64_t displaced)
    : Block(backend, Type{.dtype = value.dtype(), .shape = value.shape(), .layout = {}}, displaced) {
  write(value);
}

Operand Block::operand() const { return {.data = data(), .dtype = type_.dtype, .shape = type_.shape}; }

Tensor Block::read() const {
  Tensor value(type_.dtype, type_.shape);
  backend_->to_host(value.bytes().data(), data(), type_.bytes());
  return value;
}

void Block::write(const Tensor& value) {
  check(value.dtype() == type_.dtype && value.elements() == type_.shape.elements(), "Block::write: the value is ", value.dtype(),
        value.shape(), ", the memory ", type_.dtype, type_.shape);
  backend_->to_device(data(), value.bytes().data(), type_.bytes());
}

bool Block::guard_holds() const { return is_garbage(*backend_, data() + type_.bytes()); }

void run_node(Backend& backend, Workers& workers, const Node& node, const Blocks& in, const Blocks& out, const Blocks& slots) {
  const auto where = [&] { return text(name_of(node.op), " on ", backend.name()); };
  const bool is_hosts = (node.op == Op::host || node.op == Op::host_backward) && !backend.is_host_memory();  // as in exec
  require(is_hosts || backend.has_kernel(node.op), Code::internal, where(), ": no kernel");

  const auto in_operands = operands(in), out_operands = operands(out), slot_operands = operands(slots);
  const int64_t bytes =
      workspace_need(profile_of(backend, workers.threads()), node.op, types(in_operands), types(out_operands), node.attrs);
  const std::unique_ptr<Buffer> workspace = backend.allocate(bytes + kGuard, MemoryRole::workspace);
  backend.to_device(workspace->data(), garbage(bytes + kGuard), bytes + kGuard);

  std::vector<Tensor> before;
  for (const auto& block : in) before.push_back(block->read());
  const Call call{.in = in_operands,
                  .out = out_operands,
                  .reads = node.reads.empty() ? std::span<const Operand>{} : slot_operands,
                  .writes = node.writes.empty() ? std::span<const Operand>{} : slot_operands,
                  .attrs = &node.attrs,
                  .workspace = workspace->data(),
                  .workspace_bytes = bytes,
                  .workers = &workers};
  {
    const FloatMode mode;
    const std::unique_ptr<Prepared> prepared = is_hosts ? prepare_host_call(backend, node.op, call) : backend.prepare(node.op, call);
    const std::unique_ptr<Stream> stream = backend.make_stream();
    prepared->enqueue(*stream);
    stream->finish();
  }
  require(is_garbage(backend, workspace->data() + bytes), Code::internal, where(), ": wrote past its ", bytes, " bytes of workspace");
  for (const Blocks* blocks : {&in, &out, &slots})
    for (size_t i = 0; i < blocks->size(); ++i) require((*blocks)[i]->guard_holds(), Code::internal, where(), ": wrote past operand ", i);
  for (size_t i = 0; i < in.size(); ++i) {
    const bool also_output = std::find(out.begin(), out.end(), in[i]) != out.end();
    require(also_output || in[i]->read() == before[i], Code::internal, where(), ": changed its input ", i);
  }
}

Workers& workers_of(int threads) {
  static std::map<int, Workers> all;
  return all.try_emplace(threads, threads).first->second;
}

Interpreter::Interpreter(Backend& backend, const Program& program, int threads)
    : backend_(backend), program_(program), workers_(workers_of(threads)) {
  for (const Slot& slot : program.slots) slots_.push_back(std::make_shared<Block>(backend, Tensor(slot.type.dtype, slot.type.shape)));
}

void Interpreter::set(SlotId slot, const Tensor& value) { slot_block(slot)->write(value); }
void Interpreter::set(std::string_view slot, const Tensor& value) { slot_named(slot)->write(value); }
Tensor Interpreter::get(std::string_view slot) const { return slot_named(slot)->read(); }

void Interpreter::run(Phase phase) {
  const Section* section = program_.find(phase);
  require(section != nullptr, Code::not_found, "Interpreter: the program has no ", name_of(phase), " section");
  values_.assign(section->graph.nodes.size(), {});
  for (size_t n = 0; n < values_.size(); ++n) {
    const Node& node = section->graph.nodes[n];
    if (node.when != When::rest) run(node, values_[n]);
  }
}

Tensor Interpreter::value(Value v) const { return values_[static_cast<size_t>(v.node)][static_cast<size_t>(v.output)]->read(); }

std::shared_ptr<Block> Interpreter::slot_named(std::string_view name) const {
  const SlotId slot = program_.slot_named(name);
  require(slot >= 0, Code::not_found, "Interpreter: the program has no slot named ", name);
  return slots_[static_cast<size_t>(slot)];
}

void Interpreter::run(const Node& node, Blocks& out) {
  Blocks in, slots;
  for (const Value v : node.in) in.push_back(values_[static_cast<size_t>(v.node)][static_cast<size_t>(v.output)]);
  for (const SlotId slot : node.writes.empty() ? node.reads : node.writes) slots.push_back(slot_block(slot));
  if (is_view(node.op)) {
    // A copy instead of the view: the bits are the same, and a kernel that writes where it must not is still detected.
    const Tensor source = (node.op == Op::load ? slots : in)[0]->read();
    out.push_back(std::make_shared<Block>(backend_, source.reshaped(node.out[0].shape)));
    return;
  }
  for (const Type& type : node.out) out.push_back(std::make_shared<Block>(backend_, type));
  run_node(backend_, workers_, node, in, out, slots);
}

}  // namespace st::conformance
