#include "backend/host_call.h"

#include <array>
#include <vector>

#include "backend/kernel_side.h"
#include "base/callback_reason.h"
#include "base/error.h"
#include "ir/host_op.h"

namespace st {
namespace {

OpView view_of(const Operand& operand, bool with_data = true) {
  return {.dtype = operand.dtype,
          .dims = operand.shape.dims(),
          .data = with_data ? as<std::byte>(operand) : nullptr,
          .bytes = operand.elements() * bytes_of(operand.dtype)};
}

/// Views of a few operands, on the stack.
template <size_t kMost>
class Views {
 public:
  Views() = default;
  explicit Views(std::span<const Operand> operands) {
    for (const Operand& operand : operands) add(view_of(operand));
  }
  void add(const OpView& view) { views_[count_++] = view; }  // the shape rule has checked the count
  OpView& operator[](size_t i) { return views_[i]; }
  operator std::span<const OpView>() const { return {views_.data(), count_}; }

 private:
  std::array<OpView, kMost> views_{};
  size_t count_ = 0;
};

using Inputs = Views<kMaxHostInputs>;
using Outputs = Views<kMaxHostOutputs>;

void require_ok(const HostOp& op, const char* callback, int32_t status) {
  if (status != 0) fail(Code::callback, text("host: the ", callback, " callback of \"", op.name, "\" returned ", text_of_answer(status)));
}

class CallOnCopies : public Prepared {
 public:
  CallOnCopies(Backend& backend, void (*run)(const Call& call), const Call& call)
      : run_(run), call_(call), in_(copies_of(backend, call.in)), out_(copies_of(backend, call.out)) {}

  void enqueue(Stream& stream) override {
    stream.finish();  // its copies to the device, too, before their memory is written again
    for (size_t i = 0; i < in_.size(); ++i) stream.copy_to_host(as<std::byte>(in_[i]), call_.in[i].data, bytes_in(in_[i]));
    stream.finish();
    Call here = call_;
    here.in = in_, here.out = out_;
    run_(here);
    for (size_t i = 0; i < out_.size(); ++i) stream.copy_to_device(call_.out[i].data, as<std::byte>(out_[i]), bytes_in(out_[i]));
  }

 private:
  static int64_t bytes_in(const Operand& operand) { return operand.elements() * bytes_of(operand.dtype); }
  std::vector<Operand> copies_of(Backend& backend, std::span<const Operand> operands) {
    std::vector<Operand> copies;
    for (const Operand& operand : operands) {
      pinned_.push_back(backend.allocate_pinned(bytes_in(operand)));
      copies.push_back({address_of(pinned_.back()->data()), operand.dtype, operand.shape});
    }
    return copies;
  }

  void (*run_)(const Call& call);
  const Call& call_;
  std::vector<std::unique_ptr<PinnedMemory>> pinned_;
  std::vector<Operand> in_, out_;
};

}  // namespace

void call_host_forward(const Call& call) {
  const auto op = host_op_of("host", call.attrs->integer("id"));
  const Inputs in(call.in);
  const Outputs out(call.out);
  require_ok(*op, "forward", op->forward(in, out));
}

// Operands: xs, ys, and dy of each floating y. Results: the gradients of the wanted xs, in their order.
void call_host_backward(const Call& call) {
  const auto op = host_op_of("host_backward", call.attrs->integer("id"));
  const auto n = static_cast<size_t>(call.attrs->integer("inputs")), m = static_cast<size_t>(op->outputs);
  const Inputs in(call.in.first(n));
  const Outputs out(call.in.subspan(n, m));
  Outputs d_out;
  size_t gradient = n + m;
  for (const Operand& y : call.in.subspan(n, m)) d_out.add(is_floating(y.dtype) ? view_of(call.in[gradient++]) : view_of(y, false));
  Inputs d_in;
  for (const Operand& x : call.in.first(n)) d_in.add(view_of(x, false));
  const Ints& wanted = call.attrs->ints("wanted");
  for (size_t i = 0; i < wanted.size(); ++i) d_in[static_cast<size_t>(wanted[i])].data = as<std::byte>(call.out[i]);
  require_ok(*op, "backward", op->backward(in, out, d_out, d_in));
}

std::unique_ptr<Prepared> prepare_host_call(Backend& backend, Op op, const Call& call) {
  return std::make_unique<CallOnCopies>(backend, op == Op::host ? call_host_forward : call_host_backward, call);
}

}  // namespace st
