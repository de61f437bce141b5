// Each kernel whose threads exchange something, once on small ragged operands: for ThreadSanitizer, to which each thread of a grid is one.
// The other tests have the numbers.
#include "ir/optimizer_state.h"
#include "simulated_kernels.h"

namespace st::cuda {
namespace {

/// A whole number below `limit` for each element.
struct Input {
  Tensor tensor;
  int64_t limit = 0;  // of indices, and 1 of a flag that is not set; 0: floats around 1
};

struct Watched {
  Op op;
  std::vector<Tensor> out;
  std::vector<Input> in;
  Attrs attrs = {};
  std::vector<Tensor> slots = {};  // of an update, read and written
};

constexpr DType f32 = DType::f32, f64 = DType::f64, bf16 = DType::bf16, i32 = DType::i32, boolean = DType::boolean;

std::vector<Watched> all_watched(std::span<const DType> types) {
  std::vector<Watched> all;
  for (const DType type : types) {
    const Tensor rows{type, {5, 67}}, column{f32, {5}}, row{type, {67}}, wide{type, {2, 1200}};
    all.push_back({Op::layer_norm, {rows, column, column}, {{rows}, {row}, {row}}});
    all.push_back({Op::layer_norm_backward, {rows, row, row}, {{rows}, {row}, {column}, {column}, {rows}}});
    all.push_back({Op::layer_norm, {wide, {f32, {2}}, {f32, {2}}}, {{wide}, {{type, {1200}}}, {{type, {1200}}}}});
    all.push_back({Op::rms_norm, {rows, column}, {{rows}, {row}}});
    all.push_back({Op::rms_norm_backward, {rows, row}, {{rows}, {row}, {column}, {rows}}});
    for (const Op op : {Op::softmax, Op::log_softmax}) all.push_back({op, {rows}, {{rows}}});
    for (const Op op : {Op::softmax_backward, Op::log_softmax_backward}) all.push_back({op, {rows}, {{rows}, {rows}}});
    all.push_back({Op::softmax, {wide}, {{wide}}});
    for (const Op op : {Op::sum, Op::mean, Op::max}) {
      all.push_back({op, {{type, {}}}, {{{type, {5000}}}}});
      all.push_back({op, {{type, {3}}}, {{{type, {600, 3}}}}, {{"axes", std::vector<int64_t>{0}}}});
    }
    all.push_back({Op::argmax, {{i32, {5}}}, {{rows}}});
    all.push_back({Op::transpose, {{type, {35, 41}}}, {{{type, {41, 35}}}}, {{"order", std::vector<int64_t>{1, 0}}}});
    const auto add_attention = [&](int64_t queries, int64_t keys, int64_t width) {
      const Tensor q{type, {1, queries, 2, width}}, kv{type, {1, keys, 1, width}}, lse{f32, {1, 2, queries}};
      all.push_back({Op::attention, {q, lse}, {{q}, {kv}, {kv}}});
      all.push_back({Op::attention_backward, {q, kv, kv}, {{q}, {kv}, {kv}, {q}, {lse}, {q}}});
    };
    if (type == f32) {
      add_attention(19, 23, 12);
      add_attention(19, 23, 261);  // two slices
    } else {                       // by tensor cores, several tiles
      add_attention(70, 75, 24);
      add_attention(37, 75, 72);
    }
    all.push_back({Op::matmul, {{type, {70, 65}}}, {{{type, {70, 37}}}, {{type, {37, 65}}}}});
    all.push_back({Op::matmul, {{type, {2, 9, 72}}}, {{{type, {2, 40, 9}}}, {{type, {2, 40, 72}}}}, {{"transpose_a", true}}});
    all.push_back({Op::fused_linear, {{type, {70, 65}}, {type, {65}}}, {{{type, {70, 37}}}, {{type, {37, 65}}}}, {{"column_sums", true}}});
    all.push_back({Op::embedding_backward, {{type, {11, 9}}}, {{{i32, {40}}, 11}, {{type, {40, 9}}}}, {{"rows", int64_t{11}}}});
    all.push_back({Op::gradient_norm, {{f64, {}}, {boolean, {}}}, {{{type, {2500}}}, {{type, {3}}}}});
  }
  const Tensor logits{f32, {6, 70}}, targets{i32, {6}}, one{f64, {}};
  all.push_back({Op::fused_cross_entropy, {one, one, logits}, {{logits}, {targets, 70}, {one}}});
  all.push_back({Op::mse, {one, one}, {{{f32, {3000}}}, {{f32, {3000}}}}});
  const Tensor piece{f32, {70, 300}};
  all.push_back({Op::adafactor_sums,
                 {{f64, {441}}},
                 {{piece}, {{f32, {}}}, {{boolean, {}}}, {{f64, {2}}}, {piece}},
                 {{"segments", std::vector<int64_t>{140}}, {"rank", int64_t{1}}, {"ranks", int64_t{2}}}});
  const Tensor parameter{f32, {300}};  // two blocks of moments
  std::vector<Tensor> slots = {parameter};
  for (const OptimizerState& state : optimizer_state(Op::adamw_8bit, {}, {.dtype = f32, .shape = parameter.shape, .layout = {}}))
    slots.push_back({state.type.dtype, state.type.shape});
  all.push_back({Op::adamw_8bit, {}, {{parameter}, {{f32, {}}}, {{boolean, {}}, 1}, {{f64, {2}}}}, {}, slots});
  return all;
}

std::vector<uint8_t> bytes_of_input(const Input& input) {
  const auto& [dtype, shape] = input.tensor;
  if (input.limit == 0 && dtype != DType::i32) return numbers(dtype, shape.elements(), 3);
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < shape.elements(); ++i) append(bytes, dtype, static_cast<uint64_t>(i * 7 % input.limit));
  return bytes;
}

class WatchedKernels : public KernelTest, public testing::WithParamInterface<Order> {
 protected:
  WatchedKernels() : KernelTest(GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(, WatchedKernels, testing::ValuesIn(kOrders), [](const auto& given) {
  return std::string(given.param == Order::eager ? "Eager" : given.param == Order::late ? "Late" : "Random");
});

TEST_P(WatchedKernels, HaveNoRaces) {
  // Within a kernel a race is one whenever its stream runs it, so each type of operands is in one order; a host that does not wait shows in
  // any call.
  constexpr DType kTypes[] = {f32, bf16};
  const size_t type = GetParam() == Order::late ? 0 : 1, types = GetParam() == Order::eager ? 0 : 1;
  for (const Watched& watched : all_watched(std::span(kTypes).subspan(type, types))) {
    const Attrs attrs = make_attrs(watched.op, watched.attrs);
    std::vector<Bytes> memory;
    memory.reserve(watched.in.size() + watched.out.size() + watched.slots.size());
    std::vector<Operand> in, out, slots;
    for (const Input& input : watched.in) {
      memory.emplace_back(bytes_of_input(input));
      in.push_back({address_of(memory.back().data()), input.tensor.dtype, input.tensor.shape});
    }
    const auto add = [&](const Tensor& tensor, std::vector<Operand>& operands) {
      memory.emplace_back(tensor.shape.elements() * bytes_of(tensor.dtype));
      operands.push_back({address_of(memory.back().data()), tensor.dtype, tensor.shape});
    };
    for (const Tensor& tensor : watched.out) add(tensor, out);
    for (const Tensor& tensor : watched.slots) add(tensor, slots);
    Call call;
    call.in = in;
    call.out = out;
    call.reads = call.writes = slots;
    call.attrs = &attrs;
    SCOPED_TRACE(name_of(watched.op));
    run_on_device(watched.op, call);
    for (Bytes& bytes : memory) bytes.taken();
  }
}

}  // namespace
}  // namespace st::cuda
