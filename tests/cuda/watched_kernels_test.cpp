// Each kernel once on small ragged operands, most in two blocks: for ThreadSanitizer, to which each thread of a grid is one. The other
// tests have the numbers.
#include <cctype>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "backend/rank_fold.h"
#include "grid_engine.h"
#include "ir/optimizer_state.h"
#include "simulated_kernels.h"

// ThreadSanitizer's.
extern "C" void __sanitizer_symbolize_pc(void* after, const char* format, char* text, size_t bytes);

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
  bool reports = false;            // an index out of range
};

constexpr DType f32 = DType::f32, f64 = DType::f64, bf16 = DType::bf16, f16 = DType::f16, i32 = DType::i32, boolean = DType::boolean;

std::vector<Watched> watched_on(DType type) {
  std::vector<Watched> all;
  const Tensor rows{type, {11, 67}}, column{f32, {11}}, row{type, {67}}, wide{type, {2, 1200}};
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
    all.push_back({op, {{type, {40}}}, {{{type, {300, 40}}}}, {{"axes", Ints{0}}}});
    all.push_back({op, {{type, {11}}}, {{rows}}, {{"axes", Ints{1}}}});
  }
  all.push_back({Op::argmax, {{i32, {11}}}, {{rows}}});
  all.push_back({Op::transpose, {{type, {35, 41}}}, {{{type, {41, 35}}}}, {{"order", Ints{1, 0}}}});
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

/// An update of a parameter from a gradient of its type.
Watched update(Op op, const Tensor& parameter, const std::vector<Tensor>& slots, const std::vector<Tensor>& out,
               const std::vector<Tensor>& others, const Attrs& attrs) {
  std::vector<Input> in = {{parameter}, {{f32, {}}}, {{boolean, {}}, 1}, {{f64, {2}}}};
  for (const Tensor& other : others) in.push_back({other});
  return {op, out, std::move(in), attrs, slots};
}

std::vector<Tensor> slots_of(Op op, const Tensor& parameter, const Attrs& attrs = {}) {
  std::vector<Tensor> slots = {parameter};
  for (const OptimizerState& state : optimizer_state(op, make_attrs(op, attrs), {.dtype = f32, .shape = parameter.shape, .layout = {}}))
    slots.push_back({state.type.dtype, state.type.shape});
  return slots;
}

/// Losses and updates.
std::vector<Watched> watched_in_fp32() {
  std::vector<Watched> all;
  const Tensor logits{f32, {6, 70}}, targets{i32, {6}}, one{f64, {}};
  all.push_back({Op::fused_cross_entropy, {one, one, logits}, {{logits}, {targets, 70}, {one}}});
  // Two ranks' columns.
  const Attrs columns = {{"first", int64_t{70}}, {"classes", int64_t{140}}};
  const Tensor softmax{f64, {6, 2}}, many{i32, {300}};
  all.push_back({Op::vocabulary_terms, {{f64, {1, 6, 4}}}, {{logits}, {targets, 140}}, columns});
  all.push_back({Op::vocabulary_cross_entropy,
                 {one, one, {f32, {300}}, {f64, {300, 2}}},
                 {{{f32, {300, 70}}}, {many, 140}, {{f64, {2, 300, 4}}}},
                 columns});
  all.push_back({Op::vocabulary_cross_entropy_backward, {logits}, {{logits}, {targets, 140}, {softmax}, {one}}, columns});
  all.push_back({Op::mse, {one, one}, {{{f32, {5000}}}, {{f32, {5000}}}}});
  const auto add_update = [&](Op op, const Tensor& parameter, const std::vector<Tensor>& slots, const std::vector<Tensor>& out,
                              const std::vector<Tensor>& others,
                              const Attrs& attrs) { all.push_back(update(op, parameter, slots, out, others, attrs)); };
  // The second half of a matrix's columns.
  const Tensor piece{f32, {70, 300}}, of_rows{f32, {70}}, of_columns{f32, {600}}, sums{f64, {671}}, squares{f64, {1}};
  const Attrs of_piece = {{"dimension", int64_t{1}}, {"segments", Ints{600}}, {"rank", int64_t{1}}, {"ranks", int64_t{2}}};
  add_update(Op::adafactor_sums, piece, {}, {sums}, {piece}, of_piece);
  add_update(Op::adafactor_size, piece, {of_rows, of_columns}, {squares}, {sums}, of_piece);
  add_update(Op::adafactor_step, piece, {piece, of_rows, of_columns}, {}, {sums, squares}, of_piece);
  const Tensor matrices{f32, {2, 19, 70}}, two_blocks{f32, {300}};
  for (const Tensor& parameter : {matrices, two_blocks})
    add_update(Op::adafactor, parameter, slots_of(Op::adafactor, parameter), {}, {}, {});
  add_update(Op::adamw_8bit, two_blocks, slots_of(Op::adamw_8bit, two_blocks), {}, {}, {});
  return all;
}

/// Kernels whose threads have elements of their own.
std::vector<Watched> watched_elements() {
  std::vector<Watched> all;
  const Tensor floats{f32, {1100}}, halves{bf16, {1100}}, whole{i32, {1100}}, flags{boolean, {1100}}, many{f32, {2100}};
  all.push_back({Op::cast, {{bf16, {2100}}}, {{many}}, {{"dtype", std::string("bf16")}}});
  all.push_back({Op::cast, {floats}, {{flags}}, {{"dtype", std::string("f32")}}});
  all.push_back({Op::cast, {whole}, {{floats}}, {{"dtype", std::string("i32")}}});
  all.push_back({Op::fill, {floats}, {}, {{"shape", Ints{1100}}}});
  all.push_back({Op::affine, {floats}, {{floats}}, {{"scale", 0.3}}});
  all.push_back({Op::add, {{f32, {40, 30}}}, {{{f32, {40, 30}}}, {{f32, {30}}}}});
  all.push_back({Op::add, {whole}, {{whole, 7}, {whole, 7}}});
  all.push_back({Op::compare, {flags}, {{floats}, {floats}}, {{"test", std::string("less")}}});
  all.push_back({Op::where, {floats}, {{flags}, {floats}, {{f32, {}}}}});
  all.push_back({Op::accumulate, {}, {{halves}}, {}, {floats}});
  all.push_back({Op::exp, {floats}, {{floats}}});
  all.push_back({Op::gelu_backward, {floats}, {{floats}, {floats}}});
  all.push_back({Op::pow, {floats}, {{floats}, {floats}}});
  all.push_back({Op::dropout, {{f32, {2, 550}}}, {{{f32, {2, 550}}}, {{DType::i64, {2}}}}, {{"rate", 0.3}}});
  all.push_back({Op::rope, {{f32, {2, 37, 3, 18}}}, {{{f32, {2, 37, 3, 18}}}}});
  all.push_back({Op::broadcast_to, {{f32, {37, 30}}}, {{{f32, {30}}}}, {{"shape", Ints{37, 30}}}});
  all.push_back({Op::concat, {{f32, {70, 9}}}, {{{f32, {70, 4}}}, {{f32, {70, 5}}}}});
  for (const Op op : {Op::softmax, Op::log_softmax}) {  // along another axis than the last
    const Tensor lines{f32, {2, 3, 150}};
    all.push_back({op, {lines}, {{lines}}, {{"axis", int64_t{1}}}});
    all.push_back(
        {op == Op::softmax ? Op::softmax_backward : Op::log_softmax_backward, {lines}, {{lines}, {lines}}, {{"axis", int64_t{1}}}});
  }
  all.push_back({Op::argmax, {{i32, {2, 150}}}, {{{f32, {2, 3, 150}}}}, {{"axis", int64_t{1}}}});
  all.push_back({Op::sum, {{f32, {3, 40}}}, {{{f32, {3, 5, 40, 6}}}}, {{"axes", Ints{1, 3}}}});
  all.push_back({Op::max, {{f32, {3, 40}}}, {{{f32, {3, 5, 40, 6}}}}, {{"axes", Ints{1, 3}}}});
  all.push_back({Op::mse_backward, {floats}, {{floats}, {floats}, {{f64, {}}}}});
  all.push_back({Op::gradient_squares, {{f64, {66}}}, {{{f32, {67000}}}}});
  all.push_back({Op::step_factor, {{f32, {}}, {f64, {}}, {boolean, {}}}, {{{f64, {}}}, {{boolean, {}}}, {{f64, {}}}}});
  all.push_back({Op::average, {}, {{floats}, {{boolean, {}}, 1}, {{f64, {2}}}}, {{"decay", 0.9}}, {floats}});

  const auto add = [&](Op op, const Attrs& attrs) { all.push_back(update(op, floats, slots_of(op, floats, attrs), {}, {}, attrs)); };
  add(Op::adamw, {});
  add(Op::sgd, {});
  add(Op::sgd, {{"momentum", 0.9}});
  add(Op::lion, {});
  add(Op::rmsprop, {{"momentum", 0.9}, {"centered", true}});
  add(Op::adagrad, {});
  const Tensor matrix{f32, {12, 24}}, piece{f32, {22, 24}}, both{f32, {44, 24}};
  const Attrs few = {{"ns_steps", int64_t{1}}};
  all.push_back(update(Op::muon, matrix, slots_of(Op::muon, matrix), {}, {}, few));
  Attrs of_piece = {{"segments", Ints{16, 32}}, {"dimension", int64_t{1}}, {"rank", int64_t{1}}, {"ranks", int64_t{2}}};
  all.push_back(update(Op::muon_direction, both, {both}, {both}, {}, of_piece));
  of_piece.set("ns_steps", int64_t{1});
  all.push_back(update(Op::muon_step, both, {piece}, {}, {}, of_piece));

  // Many threads report at once.
  const Tensor tokens{i32, {300, 2}}, table{f32, {300, 3}}, logits{f32, {6, 10}}, targets{i32, {6}}, one{f64, {}};
  const auto add_bad = [&](Op op, const std::vector<Tensor>& out, std::vector<Input> in, const Attrs& attrs) {
    for (const bool reports : {false, true}) {
      for (Input& input : in) input.limit *= reports ? 5 : 1;
      all.push_back({op, out, in, attrs, {}, reports});
    }
  };
  add_bad(Op::embedding, {{f32, {100, 3}}}, {{table}, {{i32, {100}}, 150}}, {});
  add_bad(Op::embedding_backward, {table}, {{tokens, 300}, {{f32, {300, 2, 3}}}}, {{"rows", int64_t{300}}});
  add_bad(Op::gather, {{f32, {150, 2}}}, {{{f32, {150, 3}}}, {{i32, {150, 2}}, 3}}, {{"axis", int64_t{1}}});
  add_bad(Op::gather_backward, {table}, {{tokens, 3}, {{f32, {300, 2}}}}, {{"axis", int64_t{1}}, {"size", int64_t{3}}});
  add_bad(Op::fused_cross_entropy, {one, one, logits}, {{logits}, {targets, 10}, {one}}, {});
  return all;
}

std::vector<uint8_t> bytes_of_input(const Input& input) {
  const auto& [dtype, shape] = input.tensor;
  if (input.limit == 0 && dtype != DType::i32) return numbers(dtype, shape.elements(), 3);
  std::vector<uint8_t> bytes;
  for (int64_t i = 0; i < shape.elements(); ++i) append(bytes, dtype, static_cast<uint64_t>(i * 7 % input.limit));
  return bytes;
}

/// The part of a kernel's name without the types and sizes that it is compiled for: "pointwise OfTwo" of "void
/// st::cuda::pointwise<st::cuda::OfTwo<float, float>, float, float, float>(..)".
std::string without_types(std::string name) {
  static const std::set<std::string> types = {"void", "float",   "double",   "bool",     "char",     "short",        "int",     "long",
                                              "true", "false",   "unsigned", "signed",   "Bf16",     "F16",          "st",      "cuda",
                                              "std",  "uint8_t", "uint16_t", "uint32_t", "uint64_t", "SixteenBytes", "int32_t", "int64_t"};
  name = name.substr(0, name.find('('));
  std::string kept, word;
  for (const char letter : name + ' ') {
    if (std::isalnum(static_cast<unsigned char>(letter)) || letter == '_') {
      word += letter;
      continue;
    }
    if (!word.empty() && !types.contains(word) && !std::isdigit(static_cast<unsigned char>(word[0])))
      kept += (kept.empty() ? "" : " ") + word;
    word.clear();
  }
  return kept;
}

class WatchedKernels : public KernelTest, public testing::WithParamInterface<Order> {
 protected:
  WatchedKernels() : KernelTest(GetParam()) {}

  static void SetUpTestSuite() {
    simulated::on_launch = [](const void* kernel, int64_t blocks) { launched_[kernel] = std::max(launched_[kernel], blocks); };
  }

  /// Each kernel of the plug-in has been launched, in two blocks at least (kernels_taken.txt, which cuda_kernel_gate keeps complete).
  static void TearDownTestSuite() {
    simulated::on_launch = nullptr;
    const testing::TestSuite& suite = *testing::UnitTest::GetInstance()->current_test_suite();
    if (suite.test_to_run_count() < suite.total_test_count()) return;
    std::map<std::string, int64_t> blocks;
    for (const auto& [kernel, most] : launched_) {
      char name[2000] = "";
      __sanitizer_symbolize_pc(const_cast<char*>(static_cast<const char*>(kernel)) + 1, "%f", name, sizeof name);
      int64_t& of_name = blocks[without_types(name)];
      of_name = std::max(of_name, most);
    }
    // After a product of cuBLASLt, which is not here (library_products_test); each thread writes elements of its own.
    const std::set<std::string> left_out = {"finish_product"};
    const std::set<std::string> of_one_block = {"add_pairs", "add_sums", "set_norm",        "set_scale",
                                                "set_step",  "set_take", "set_step_factor", "set_update_numbers"};
    std::ifstream table(ST_KERNELS_TAKEN);
    std::string line;
    std::set<std::string> there;
    while (std::getline(table, line))
      if (line[0] != '#') there.insert(without_types(line.substr(0, line.find("  "))));
    EXPECT_GT(there.size(), 60U) << ST_KERNELS_TAKEN;
    for (const std::string& kernel : there) {
      const int64_t wanted = left_out.contains(kernel) ? 0 : of_one_block.contains(kernel) ? 1 : 2;
      EXPECT_EQ(std::min<int64_t>(blocks[kernel], 2), wanted) << kernel << ": most blocks of a launch (2 stands for more)";
    }
    for (const std::set<std::string>& list : {left_out, of_one_block})
      for (const std::string& kernel : list) EXPECT_TRUE(there.contains(kernel)) << kernel << " is no longer in the table";
  }

  void run(const Watched& watched) {
    SCOPED_TRACE(name_of(watched.op));
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
    uint64_t words[2] = {IndexFaults::kNoFault, 0};
    Bytes workspace(need({.device = "cuda"}, watched.op, call));
    call.workspace = address_of(workspace.data());
    kernels_of(watched.op)({&stream_, {{words}, 3}}, watched.op, call);
    finish();
    EXPECT_EQ(words[0] != IndexFaults::kNoFault, watched.reports);
    workspace.taken();
    for (Bytes& bytes : memory) bytes.taken();
  }

  void run_folds() {
    std::vector<Bytes> terms(3, Bytes(4400));
    const Address places[] = {address_of(terms[0].data()), address_of(terms[1].data()), address_of(terms[2].data())};
    Bytes sums(4400);
    enqueue_fold(&stream_, {.terms = places, .sums = address_of(sums.data()), .dtype = f32, .elements = 1100});
    finish();
    sums.taken();
  }

 private:
  static inline std::map<const void*, int64_t> launched_;  // the most blocks of each
};
INSTANTIATE_TEST_SUITE_P(, WatchedKernels, testing::ValuesIn(kOrders), [](const auto& given) {
  return std::string(given.param == Order::eager ? "Eager" : given.param == Order::late ? "Late" : "Random");
});

TEST_P(WatchedKernels, HaveNoRaces) {
  // Within a kernel a race is one whenever its stream runs it, so each call is in one order; a host that does not wait shows in any call.
  for (const Watched& watched : GetParam() == Order::eager ? watched_in_fp32() : watched_on(GetParam() == Order::late ? f32 : bf16))
    run(watched);
  if (GetParam() != Order::eager) return;
  for (const Watched& watched : watched_elements()) run(watched);
  run_folds();
}

}  // namespace
}  // namespace st::cuda
