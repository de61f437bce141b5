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

constexpr DType f32 = DType::f32, f64 = DType::f64, bf16 = DType::bf16, f16 = DType::f16, i32 = DType::i32, boolean = DType::boolean;

std::vector<Watched> watched_on(DType type) {
  std::vector<Watched> all;
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
  const auto add_attention = [&](DType of, int64_t queries, int64_t keys, int64_t width) {
    const Tensor q{of, {1, queries, 2, width}}, kv{of, {1, keys, 1, width}}, lse{f32, {1, 2, queries}};
    all.push_back({Op::attention, {q, lse}, {{q}, {kv}, {kv}}});
    all.push_back({Op::attention_backward, {q, kv, kv}, {{q}, {kv}, {kv}, {q}, {lse}, {q}}});
  };
  if (type == f32) {
    add_attention(f32, 19, 23, 12);
    add_attention(f32, 19, 23, 261);  // two slices
  } else {                            // by tensor cores, several tiles
    add_attention(bf16, 70, 75, 24);
    add_attention(f16, 37, 75, 72);
  }
  all.push_back({Op::matmul, {{type, {70, 65}}}, {{{type, {70, 37}}}, {{type, {37, 65}}}}});
  all.push_back({Op::matmul, {{f32, {3, 5}}}, {{{type, {3, 4128}}}, {{type, {4128, 5}}}}, {{"result", std::string("f32")}}});  // slices
  const DType other = type == bf16 ? f16 : type;
  all.push_back({Op::matmul, {{other, {2, 9, 72}}}, {{{other, {2, 40, 9}}}, {{other, {2, 40, 72}}}}, {{"transpose_a", true}}});
  all.push_back({Op::fused_linear, {{type, {70, 65}}, {type, {65}}}, {{{type, {70, 37}}}, {{type, {37, 65}}}}, {{"column_sums", true}}});
  all.push_back({Op::embedding_backward, {{type, {11, 9}}}, {{{i32, {40}}, 11}, {{type, {40, 9}}}}, {{"rows", int64_t{11}}}});
  all.push_back({Op::gradient_norm, {{f64, {}}, {boolean, {}}}, {{{type, {2500}}}, {{type, {3}}}}});
  return all;
}

/// Losses and updates.
std::vector<Watched> watched_in_fp32() {
  std::vector<Watched> all;
  const Tensor logits{f32, {6, 70}}, targets{i32, {6}}, one{f64, {}};
  all.push_back({Op::fused_cross_entropy, {one, one, logits}, {{logits}, {targets, 70}, {one}}});
  // Two ranks' columns.
  const Attrs columns = {{"first", int64_t{70}}, {"classes", int64_t{140}}};
  const Tensor lse{f32, {6}}, softmax{f64, {6, 2}};
  all.push_back({Op::vocabulary_terms, {{f64, {1, 6, 4}}}, {{logits}, {targets, 140}}, columns});
  all.push_back({Op::vocabulary_cross_entropy, {one, one, lse, softmax}, {{logits}, {targets, 140}, {{f64, {2, 6, 4}}}}, columns});
  all.push_back({Op::vocabulary_cross_entropy_backward, {logits}, {{logits}, {targets, 140}, {softmax}, {one}}, columns});
  all.push_back({Op::mse, {one, one}, {{{f32, {3000}}}, {{f32, {3000}}}}});
  const auto add_update = [&](Op op, const Tensor& parameter, const std::vector<Tensor>& slots, const std::vector<Tensor>& out,
                              const std::vector<Tensor>& others, const Attrs& attrs) {
    std::vector<Input> in = {{parameter}, {{f32, {}}}, {{boolean, {}}, 1}, {{f64, {2}}}};
    for (const Tensor& other : others) in.push_back({other});
    all.push_back({op, out, std::move(in), attrs, slots});
  };
  const auto slots_of = [](Op op, const Tensor& parameter) {
    std::vector<Tensor> slots = {parameter};
    for (const OptimizerState& state : optimizer_state(op, {}, {.dtype = f32, .shape = parameter.shape, .layout = {}}))
      slots.push_back({state.type.dtype, state.type.shape});
    return slots;
  };
  // The second half of a matrix's rows.
  const Tensor piece{f32, {70, 300}}, of_rows{f32, {140}}, of_columns{f32, {300}}, sums{f64, {441}}, squares{f64, {1}};
  const Attrs of_piece = {{"segments", std::vector<int64_t>{140}}, {"rank", int64_t{1}}, {"ranks", int64_t{2}}};
  add_update(Op::adafactor_sums, piece, {}, {sums}, {piece}, of_piece);
  add_update(Op::adafactor_size, piece, {of_rows, of_columns}, {squares}, {sums}, of_piece);
  add_update(Op::adafactor_step, piece, {piece, of_rows, of_columns}, {}, {sums, squares}, of_piece);
  const Tensor matrix{f32, {37, 270}}, two_blocks{f32, {300}};
  add_update(Op::adafactor, matrix, slots_of(Op::adafactor, matrix), {}, {}, {});
  add_update(Op::adamw_8bit, two_blocks, slots_of(Op::adamw_8bit, two_blocks), {}, {}, {});
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
  // Within a kernel a race is one whenever its stream runs it, so each call is in one order; a host that does not wait shows in any call.
  for (const Watched& watched : GetParam() == Order::eager ? watched_in_fp32() : watched_on(GetParam() == Order::late ? f32 : bf16)) {
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
