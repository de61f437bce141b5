#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>

#include <device/launch.h>

#include "backend/cuda/enqueue.h"
#include "backend/cuda/finish_product.cuh"
#include "backend/cuda/float_product.cuh"
#include "backend/cuda/half_product.cuh"
#include "backend/cuda/product_choice.h"
#include "backend/cuda/product_tiles.h"
#include "backend/cuda/sum_slices.h"
#include "backend/kernel_side.h"
#include "backend/linear_call.h"
#include "base/error.h"
#include "gemm/rounding.h"
#include "ir/linear_places.h"
#include "ir/op.h"

namespace st::cuda {
namespace {

struct Problem {
  std::string_view op;
  Product product;
  Stages stages{};
  const std::byte *a = nullptr, *b = nullptr;
  DType in = DType::f32, out = DType::f32;
};

constexpr int64_t kVectorBytes = 16;

/// A matrix, or one for each of a batch: `along_k` of each of its `lines` are neighbours if `is_along_k`, else the lines.
Factor factor_of(const Operand& x, int64_t lines, int64_t k, bool is_along_k, int64_t vector_elements) {
  const int64_t lead = is_along_k ? k : lines;
  return {.lead = lead,
          .matrix = lines * k,
          .is_along_k = is_along_k,
          .in_vectors = lead % vector_elements == 0 && x.data.at % kVectorBytes == 0};
}

/// For blocks of a tile, with second sums for each of its elements where the sums are of slices.
template <class S>
Grid grid_of(const Product& p, int64_t rows, int64_t columns, int threads) {
  return {.blocks = ceil_div(p.m, rows) * ceil_div(p.n, columns) * p.matrices,
          .threads = threads,
          .shared = p.has_slices ? static_cast<int>(rows * columns) * static_cast<int>(sizeof(S)) : 0};
}

template <class T, class C, int kRows, int kColumns>
void launch_floats(StreamHandle stream, const Problem& problem) {
  const Grid grid = grid_of<Compute<T>>(problem.product, kRows, kColumns, kFloatThreads<kRows, kColumns>);
  launch(stream, grid, float_product<T, C, kRows, kColumns>, problem.product, problem.stages, reinterpret_cast<const T*>(problem.a),
         reinterpret_cast<const T*>(problem.b));
}

template <class T, class Tile, bool kAAlongK, bool kBAlongK>
void launch_halves(StreamHandle stream, const Problem& problem) {
  const Grid grid = grid_of<float>(problem.product, Tile::kTileRows, Tile::kTileColumns, Tile::kThreads);
  launch(stream, grid, half_product<T, Tile, kAAlongK, kBAlongK>, problem.product, problem.stages,
         reinterpret_cast<const uint16_t*>(problem.a), reinterpret_cast<const uint16_t*>(problem.b), problem.out == DType::f32);
}

template <class T, class Tile>
void launch_halves_by_layout(StreamHandle stream, const Problem& problem) {
  const bool a_along_k = problem.product.a.is_along_k, b_along_k = problem.product.b.is_along_k;
  if (a_along_k && b_along_k) return launch_halves<T, Tile, true, true>(stream, problem);
  if (a_along_k) return launch_halves<T, Tile, true, false>(stream, problem);
  if (b_along_k) return launch_halves<T, Tile, false, true>(stream, problem);
  launch_halves<T, Tile, false, false>(stream, problem);
}

/// As product_tiles() lists them.
using LargeTile = HalfTile<128, 128, 3, 64, 32>;
using MiddleTile = HalfTile<128, 64, 4, 64, 32>;
using SmallTile = HalfTile<64, 64, 4, 32, 32>;

template <class T>
void launch_halves_by_tile(StreamHandle stream, const Problem& problem, const ProductTile& tile) {
  if (tile.columns == 128) return launch_halves_by_layout<T, LargeTile>(stream, problem);
  if (tile.rows == 128) return launch_halves_by_layout<T, MiddleTile>(stream, problem);
  launch_halves_by_layout<T, SmallTile>(stream, problem);
}

void launch_own(StreamHandle stream, const Problem& problem, const ProductTile& tile) {
  const Product& p = problem.product;
  require(std::max({p.m, p.n, p.k}) <= std::numeric_limits<int32_t>::max(), Code::unsupported, problem.op,
          ": device cuda takes sizes below 2^31, got ", p.m, "x", p.n, "x", p.k);
  switch (problem.in) {
    case DType::f32:
      if (tile.rows == 128) return launch_floats<float, float, 128, 64>(stream, problem);
      return launch_floats<float, float, 64, 64>(stream, problem);
    case DType::f64:
      return launch_floats<double, double, 64, 64>(stream, problem);
    case DType::bf16:
      return launch_halves_by_tile<Bf16>(stream, problem, tile);
    default:
      return launch_halves_by_tile<F16>(stream, problem, tile);
  }
}

bool is_fused(const Stages& stages) {
  return stages.activation != GemmActivation::none || stages.at[Stages::kPreActivation] != nullptr ||
         stages.at[Stages::kResidual] != nullptr;
}

/// Nothing: no library is asked.
std::optional<ProductKey> key_of(const Problem& problem) {
  const Product& p = problem.product;
  const bool has_gaps = p.a.lead != (p.a.is_along_k ? p.k : p.m) || p.b.lead != (p.b.is_along_k ? p.k : p.n);
  if (problem.in == DType::f64 || p.matrices != 1 || std::min({p.m, p.n, p.k}) == 0 || has_gaps) return std::nullopt;
  return ProductKey{.m = p.m,
                    .n = p.n,
                    .k = p.k,
                    .transpose_a = !p.a.is_along_k,
                    .transpose_b = p.b.is_along_k,
                    .in = problem.in,
                    .out = problem.out,
                    .bias = problem.stages.at[Stages::kBias] != nullptr,
                    .adds = p.beta != 0};
}

/// The stages after the bias, of sums that a library has rounded.
template <class C>
void launch_stages(StreamHandle stream, const Problem& problem, const std::byte* sums) {
  Product whole = problem.product;
  whole.alpha = 1;
  whole.beta = 0;
  Stages stages = problem.stages;
  stages.at[Stages::kBias] = stages.at[Stages::kPreActivation] = nullptr;
  const int64_t eights = whole.m * ceil_div(whole.n, kEight);
  launch(stream, {ceil_div(eights, kFinishThreads), kFinishThreads}, finish_product<C>, whole, stages, sums);
}

void launch_by_library(StreamHandle stream, const Problem& problem, const LibraryProduct& library, void* workspace) {
  const Product& p = problem.product;
  std::byte* const pre_activation = problem.stages.at[Stages::kPreActivation];
  std::byte* const sums = pre_activation != nullptr ? pre_activation : problem.stages.at[Stages::kC];
  for (const void* const at : {static_cast<const void*>(problem.a), static_cast<const void*>(problem.b), static_cast<const void*>(sums),
                               static_cast<const void*>(problem.stages.at[Stages::kBias])})
    require(reinterpret_cast<uintptr_t>(at) % kVectorBytes == 0, Code::internal, "cuda: an operand for cuBLASLt is not at 16 bytes");
  const ProductOperands operands = {.a = problem.a,
                                    .b = problem.b,
                                    .c = sums,
                                    .bias = problem.stages.at[Stages::kBias],
                                    .alpha = p.alpha,
                                    .beta = p.beta,
                                    .workspace = workspace};
  if (!LoadingKernels::is_on()) library.enqueue(stream, operands);  // which nothing but a launch would load
  if (!is_fused(problem.stages)) return;
  if (problem.out == DType::f32) return launch_stages<float>(stream, problem, sums);
  if (problem.out == DType::bf16) return launch_stages<Bf16>(stream, problem, sums);
  launch_stages<F16>(stream, problem, sums);
}

ChosenProduct choice_of(ProductChoices* choices, const Problem& problem, const Attrs& attrs) {
  const std::optional<ProductKey> key = key_of(problem);
  if (const std::optional<int> algorithm = algorithm_asked(problem.op, attrs)) {
    if (*algorithm == kOwnKernels) return {};
    const LibraryProduct* const library = choices == nullptr || !key ? nullptr : choices->by_library(*key, *algorithm);
    const Product& p = problem.product;
    require(library != nullptr, Code::unsupported, problem.op, ": cuBLASLt is not there, or offers no algorithm ", *algorithm, " for ",
            p.matrices, " products of ", p.m, "x", p.n, "x", p.k, "; leave out library");
    return {.library = library, .tile = {}};
  }
  const bool asks_for_tile = std::ranges::any_of(attrs.ints("tiles"), [](int64_t size) { return size != 0; });
  return choices == nullptr || !key || asks_for_tile ? ChosenProduct{} : choices->of(*key);
}

void launch_product(const KernelQueue& queue, Problem problem, const Attrs& attrs, void* workspace) {
  Product& p = problem.product;
  TiledProduct tiled = {.dtype = problem.in, .m = p.m, .n = p.n, .matrices = p.matrices, .has_slices = has_slices(p.k, problem.out)};
  if (tiled.has_slices) tiled.block_shared = most_shared_bytes();
  const ProductTile tile = product_tile(problem.op, tiled, attrs);  // refuses what nobody computes
  const ChosenProduct chosen = choice_of(queue.products, problem, attrs);
  if (chosen.library != nullptr) return launch_by_library(queue.stream, problem, *chosen.library, workspace);
  p.has_slices = tiled.has_slices;
  const bool has_room = shared_bytes(chosen.tile, problem.in, p.has_slices) <= tiled.block_shared;
  launch_own(queue.stream, problem, chosen.tile.rows != 0 && has_room ? chosen.tile : tile);
}

Shape leading(const Shape& shape) { return Shape(shape.dims().first(static_cast<size_t>(shape.rank() - 2))); }

Problem problem_of(Op op, const Operand& a, const Operand& b, const Operand& c) {
  Problem problem;
  problem.op = name_of(op);
  problem.a = as<std::byte>(a);
  problem.b = as<std::byte>(b);
  problem.in = a.dtype;
  problem.out = c.dtype;
  problem.stages.at[Stages::kC] = as<std::byte>(c);
  return problem;
}

/// Sets the factors, and where vectors of 16 bytes can be read and written.
void set_layouts(Problem& problem, const Operand& a, const Operand& b, bool transpose_a, bool transpose_b) {
  Product& p = problem.product;
  const int64_t elements = std::max<int64_t>(kVectorBytes / bytes_of(problem.in), 4);  // of a vector, or of several
  p.a = factor_of(a, p.m, p.k, !transpose_a, elements);
  p.b = factor_of(b, p.n, p.k, transpose_b, elements);
  problem.stages.in_vectors = p.n % kEight == 0 && std::ranges::all_of(problem.stages.at, [](const std::byte* place) {
                                return reinterpret_cast<uintptr_t>(place) % kVectorBytes == 0;
                              });
}

Problem problem_of_matrices(const Call& call) {
  const Operand &a = call.in[0], &b = call.in[1], &c = call.out[0];
  const bool transpose_a = call.attrs->flag("transpose_a"), transpose_b = call.attrs->flag("transpose_b");
  check_product_types("matmul", a.dtype, c.dtype);
  Problem problem = problem_of(Op::matmul, a, b, c);
  Product& p = problem.product;
  p.m = c.shape[c.shape.rank() - 2];
  p.n = c.shape.last();
  p.k = transpose_a ? a.shape[a.shape.rank() - 2] : a.shape.last();
  const Shape of_a = leading(a.shape), of_b = leading(b.shape), of_c = leading(c.shape);
  p.matrices = of_c.elements();
  if (!transpose_a && of_b.elements() == 1) {  // the rows of all matrices are those of one
    p.m *= p.matrices;
    p.matrices = 1;
  } else {
    p.batch = walk_of<2>(of_c, {&of_a, &of_b});
  }
  set_layouts(problem, a, b, transpose_a, transpose_b);
  return problem;
}

Problem problem_of_lines(Op op, const Call& call) {
  const Operand &x = call.in[0], &weight = call.in[1], &y = call.out[0];
  const Attrs& attrs = *call.attrs;
  const bool transposed = attrs.flag("transpose_weight");
  Problem problem = problem_of(op, x, weight, y);
  check_product_types(problem.op, x.dtype, y.dtype);
  Product& p = problem.product;
  p.m = x.shape.elements(0, x.shape.rank() - 1);
  p.n = weight.shape[transposed ? 0 : 1];
  p.k = weight.shape[transposed ? 1 : 0];
  Stages& stages = problem.stages;
  if (op == Op::linear) {
    stages.at[Stages::kBias] = as<std::byte>(call.in[2]);
  } else {
    const LinearPlaces places(attrs);
    require(places.packed < 0, Code::unsupported, "fused_linear: device cuda reads no packed weight");
    const auto place = [](const void* data) { return static_cast<std::byte*>(const_cast<void*>(data)); };
    const LinearCall linear(call);
    stages.at[Stages::kBias] = place(linear.operands.bias);
    stages.at[Stages::kPreActivation] = place(linear.epilogue.pre_activation.data);
    stages.at[Stages::kDerivativeAt] = place(linear.epilogue.derivative_at.data);
    stages.at[Stages::kResidual] = place(linear.epilogue.residual.data);
    stages.activation = linear.epilogue.activation;
  }
  set_layouts(problem, x, weight, false, transposed);
  return problem;
}

Problem problem_of(Op op, const Call& call) { return op == Op::matmul ? problem_of_matrices(call) : problem_of_lines(op, call); }

/// A factor whose lines are `line` elements apart, and the elements of a line `along` apart.
Factor factor_of(std::string_view name, int64_t line, int64_t along, int64_t matrix, const void* x, DType dtype) {
  require(line == 1 || along == 1, Code::unsupported, "gemm: device cuda reads rows or columns without gaps, got strides of ", line,
          " and ", along, " in ", name);
  const int64_t lead = along == 1 ? line : along, elements = std::max<int64_t>(kVectorBytes / bytes_of(dtype), 4);
  return {.lead = lead,
          .matrix = matrix,
          .is_along_k = along == 1,
          .in_vectors = lead % elements == 0 && matrix % elements == 0 && reinterpret_cast<uintptr_t>(x) % kVectorBytes == 0};
}

Problem problem_of(const GemmProblem& gemm, const void* a, const void* b, void* c) {
  check_product_types("gemm", gemm.a_type, gemm.c_type);
  require(gemm.a_type == gemm.b_type && !gemm.bias, Code::unsupported,
          "gemm: device cuda multiplies operands of one type, and adds no bias");
  require(gemm.c == MatrixStrides{gemm.n, 1} && (gemm.batch == 1 || gemm.c_batch == gemm.m * gemm.n), Code::unsupported,
          "gemm: device cuda writes a row-major C without gaps");
  Problem problem;
  problem.op = "gemm";
  problem.a = static_cast<const std::byte*>(a);
  problem.b = static_cast<const std::byte*>(b);
  problem.in = gemm.a_type;
  problem.out = gemm.c_type;
  problem.stages.at[Stages::kC] = static_cast<std::byte*>(c);
  Product& p = problem.product;
  p.m = gemm.m;
  p.n = gemm.n;
  p.k = gemm.k;
  p.alpha = gemm.alpha;
  p.beta = gemm.beta;
  p.matrices = gemm.batch;
  p.batch.rank = 1;
  p.batch.size[0] = std::max<int64_t>(gemm.batch, 1);
  p.batch.stride[0][0] = p.batch.stride[1][0] = 1;
  p.a = factor_of("A", gemm.a.row, gemm.a.column, gemm.a_batch, a, gemm.a_type);
  p.b = factor_of("B", gemm.b.column, gemm.b.row, gemm.b_batch, b, gemm.b_type);
  problem.stages.in_vectors = p.n % kEight == 0 && reinterpret_cast<uintptr_t>(c) % kVectorBytes == 0;
  return problem;
}

const Attrs& no_tiles() {
  static const Attrs kNone = make_attrs(Op::matmul, {});
  return kNone;
}

}  // namespace

void enqueue_gemm(const KernelQueue& queue, const GemmProblem& problem, const void* a, const void* b, void* c, void* workspace) {
  launch_product(queue, problem_of(problem, a, b, c), no_tiles(), workspace);
}

void choose_gemm(ProductChoices& choices, const GemmProblem& problem) {
  choice_of(&choices, problem_of(problem, nullptr, nullptr, nullptr), no_tiles());
}

void enqueue_product(const KernelQueue& queue, Op op, const Call& call) {
  launch_product(queue, problem_of(op, call), *call.attrs, pointer_to<void>(call.workspace));
  const int32_t column_sums = op == Op::fused_linear ? LinearPlaces(*call.attrs).column_sums : -1;
  if (column_sums >= 0) enqueue_row_sums(queue.stream, call.out[0], call.out[static_cast<size_t>(column_sums)], call.workspace);
}

void choose_product(ProductChoices& choices, Op op, const Call& call) { choice_of(&choices, problem_of(op, call), *call.attrs); }

}  // namespace st::cuda
