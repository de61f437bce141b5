// A library in the place of libcublasLt.so.13, for the simulated device. It takes and refuses problems as an H100 did
// (tests/gpu/cublaslt_h100.jsonl), and multiplies on the stream, with one sum over K in order, which has cuBLASLt's bits
// (tests/gpu/README.md). Products of two transposed operands were not measured, and are refused. Sizes that were not measured are taken as
// measured ones: the largest small size that 16 or 8 divides too, else 7.
#include "fake_cublaslt.h"

#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/float16.h"
#include "base/json.h"
#include "base/os/files.h"
#include "gpu/tensor_core.h"
#include "simulated_stream.h"

namespace {

using st::Json;

CublasLtCounts<std::atomic<int64_t>> counts;
std::atomic<bool (*)()> is_failing = nullptr;  // asked by what takes memory

bool fails() {
  const auto ask = is_failing.load();
  return ask != nullptr && ask();
}

enum LayoutField { kType, kRows, kColumns, kLead };
enum DescriptionField { kCompute, kScale, kTransposeA, kTransposeB, kEpilogue, kBias };
enum PreferenceField { kWorkspace, kReductions, kAlignment, kAlignments = 4, kNumerics = kAlignment + kAlignments };
enum AlgorithmField { kIndex, kProblem, kPromised, kTaken };

int64_t at(const auto* object, size_t field) { return static_cast<int64_t>(object->data[field]); }

/// As cuBLASLt sees a problem.
struct Problem {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  std::string dtype;  // f32, tf32, bf16, bf16f: fp32 of bf16 operands; 16-bit floats are taken alike
  std::string_view epilogue;
  int64_t gap;  // of leading dimensions: 0 none, 1 to a multiple of 8, 2 another

  std::string ops() const { return std::string(transpose_a ? "T" : "N") + (transpose_b ? "T" : "N"); }
  uint64_t digest() const {
    return std::hash<std::string>{}(dtype + ops() + std::string(epilogue) + std::to_string(m) + "x" + std::to_string(n) + "x" +
                                    std::to_string(k));
  }
};

/// Whether the layouts fit together.
bool is_problem(const cublasLtMatmulDescOpaque_t* d, const cublasLtMatrixLayoutOpaque_t* a, const cublasLtMatrixLayoutOpaque_t* b,
                const cublasLtMatrixLayoutOpaque_t* c, Problem& problem) {
  problem.transpose_a = at(d, kTransposeA) == CUBLAS_OP_T;
  problem.transpose_b = at(d, kTransposeB) == CUBLAS_OP_T;
  problem.m = at(a, problem.transpose_a ? kColumns : kRows);
  problem.k = at(a, problem.transpose_a ? kRows : kColumns);
  problem.n = at(b, problem.transpose_b ? kRows : kColumns);
  const bool is_half = at(a, kType) == CUDA_R_16BF || at(a, kType) == CUDA_R_16F;
  problem.dtype = !is_half ? (at(d, kCompute) == CUBLAS_COMPUTE_32F ? "f32" : "tf32") : at(c, kType) == CUDA_R_32F ? "bf16f" : "bf16";
  problem.epilogue = at(d, kEpilogue) == CUBLASLT_EPILOGUE_DEFAULT ? "none" : at(d, kEpilogue) == CUBLASLT_EPILOGUE_BIAS ? "bias" : "";
  problem.gap = 0;
  for (const auto* layout : {a, b, c})
    if (at(layout, kLead) != at(layout, kRows)) problem.gap = std::max<int64_t>(problem.gap, at(layout, kLead) % 8 == 0 ? 1 : 2);
  return at(b, problem.transpose_b ? kColumns : kRows) == problem.k && at(c, kRows) == problem.m && at(c, kColumns) == problem.n &&
         at(a, kType) == at(b, kType) && (is_half || at(a, kType) == CUDA_R_32F) &&
         (at(c, kType) == at(a, kType) || at(c, kType) == CUDA_R_32F);
}

/// The file's lines, by problem.
class Fixture {
 public:
  Fixture() {
    constexpr int64_t kMost = int64_t{1} << 20;
    const std::string all = st::os::read_file(ST_CUBLASLT_FIXTURE, kMost);
    for (size_t begin = 0; begin < all.size();) {
      const size_t end = std::min(all.find('\n', begin), all.size());
      add(st::parse_json(std::string_view(all).substr(begin, end - begin), "fixture"));
      begin = end + 1;
    }
  }

  /// The digit of a problem (README.md of tests/gpu: a count, - or x), and the workspace of its first algorithm.
  std::pair<char, int64_t> answer(const Problem& problem, int64_t workspace, int64_t alignment) const {
    const auto place = std::ranges::find(epilogues_, problem.epilogue);
    if (place == epilogues_.end()) return {'-', 0};
    const auto epilogue = static_cast<size_t>(place - epilogues_.begin());
    const int64_t column = alignment < 16                   ? 4
                           : alignment < 256                ? 3
                           : workspace >= int64_t{32} << 20 ? 2
                           : workspace >= int64_t{4} << 20  ? 1
                                                            : 0;
    if (const auto found = products_.find(key(problem, problem.m, problem.n, problem.k)); found != products_.end())
      return {found->second.counts[epilogue][static_cast<size_t>(column)], found->second.workspace[epilogue]};
    constexpr int64_t kGaps[] = {0, 2, 1};
    constexpr int64_t kMeasured[] = {256, 16, 8, 4, 2};
    const size_t row = static_cast<size_t>(std::ranges::find_if(kMeasured, [&](int64_t least) { return alignment >= least; }) - kMeasured);
    const auto ids = small_.find(problem.dtype + problem.ops() + std::string(problem.epilogue));
    if (ids == small_.end()) return {'-', 0};
    const std::string& digits = digits_.at(ids->second[static_cast<size_t>(kGaps[problem.gap]) * std::size(kMeasured) + row]);
    return {digits[(small_of(problem.m) * kSizes + small_of(problem.n)) * kSizes + small_of(problem.k)], 0};
  }

 private:
  static constexpr size_t kSizes = 5;
  struct Product {
    std::vector<std::string> counts;
    std::vector<int64_t> workspace;
  };

  static std::string key(const Problem& problem, int64_t m, int64_t n, int64_t k) {
    return problem.dtype + problem.ops() + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  }
  static size_t small_of(int64_t size) {
    constexpr int64_t kSmall[kSizes] = {1, 3, 7, 8, 16};
    const auto* const found = std::ranges::find(kSmall, size);
    if (found != std::end(kSmall)) return static_cast<size_t>(found - kSmall);
    return size % 16 == 0 ? 4 : size % 8 == 0 ? 3 : 2;
  }
  static std::vector<int64_t> numbers(const Json& list) {
    std::vector<int64_t> all;
    for (const Json& item : list.list()) all.push_back(item.whole());
    return all;
  }
  void add(const Json& line) {
    const auto text = [&](const char* name) { return line.find(name)->text(); };
    if (line.find("epilogues") != nullptr) {
      for (const Json& name : line.find("epilogues")->list()) epilogues_.push_back(name.text());
    } else if (line.find("product") != nullptr) {
      const std::vector<int64_t> mnk = numbers(*line.find("mnk"));
      Problem problem{.m = 0,
                      .n = 0,
                      .k = 0,
                      .transpose_a = text("ops")[0] == 'T',
                      .transpose_b = text("ops")[1] == 'T',
                      .dtype = text("dtype"),
                      .epilogue = "",
                      .gap = 0};
      Product& product = products_[key(problem, mnk[0], mnk[1], mnk[2])];
      for (const Json& item : line.find("counts")->list()) product.counts.push_back(item.text());
      product.workspace = numbers(*line.find("workspace"));
    } else if (line.find("small") != nullptr) {
      small_[text("small") + text("ops") + text("epilogue")] = numbers(*line.find("ids"));
    } else if (line.find("id") != nullptr) {  // others are times
      digits_[line.find("id")->whole()] = text("counts");
    }
  }

  std::vector<std::string> epilogues_;
  std::map<std::string, Product> products_;
  std::map<std::string, std::vector<int64_t>> small_;
  std::map<int64_t, std::string> digits_;
};

float read(const void* from, int64_t type, int64_t element) {
  if (type == CUDA_R_32F) return static_cast<const float*>(from)[element];
  const uint16_t bits = static_cast<const uint16_t*>(from)[element];
  return type == CUDA_R_16BF ? st::f32_of_bf16(bits) : st::f32_of_f16(bits);
}
void write(void* to, int64_t type, int64_t element, float value) {
  if (type == CUDA_R_32F)
    static_cast<float*>(to)[element] = value;
  else
    static_cast<uint16_t*>(to)[element] = type == CUDA_R_16BF ? st::bf16_of(value) : st::f16_of(value);
}

/// A call as the stream runs it.
struct Work {
  cublasLtMatmulDescOpaque_t description;
  cublasLtMatrixLayoutOpaque_t a_layout, b_layout, d_layout;
  float alpha, beta;
  const void *a, *b;
  void* d;
  const CUstream_st* stream;

  void run() const {
    const auto follow = [&](const void* place) { return place == nullptr ? nullptr : stream->followed(*stream, place); };
    const void *const x = follow(a), *const y = follow(b);
    const void* const bias =
        at(&description, kEpilogue) == CUBLASLT_EPILOGUE_BIAS ? follow(reinterpret_cast<const void*>(at(&description, kBias))) : nullptr;
    void* const to = follow(d);
    Problem p;
    is_problem(&description, &a_layout, &b_layout, &d_layout, p);
    const int64_t type = at(&a_layout, kType), made = at(&d_layout, kType);
    for (int64_t j = 0; j < p.n; ++j)
      for (int64_t i = 0; i < p.m; ++i) {
        const auto pair = [&](int64_t k) {
          return std::pair(read(x, type, p.transpose_a ? i * at(&a_layout, kLead) + k : k * at(&a_layout, kLead) + i),
                           read(y, type, p.transpose_b ? k * at(&b_layout, kLead) + j : j * at(&b_layout, kLead) + k));
        };
        float sum = 0;
        for (int64_t k = 0; k < p.k; ++k) sum = std::fma(pair(k).first, pair(k).second, sum);
        if (type != CUDA_R_32F && std::isfinite(sum)) {  // the model of tensor cores is one of numbers
          sum = probe::kTensorCore16(0, static_cast<int>(p.k), [&](int k) { return k < p.k ? pair(k) : std::pair(0.0F, 0.0F); });
        }
        float value = alpha * sum;
        const int64_t place = j * at(&d_layout, kLead) + i;
        if (beta != 0) value += beta * read(to, made, place);
        if (bias != nullptr) value += read(bias, made, i);
        write(to, made, place, value);
      }
  }
};

template <class Object>
cublasStatus_t create(Object** made, std::initializer_list<uint64_t> fields) {
  if (fails()) return CUBLAS_STATUS_ALLOC_FAILED;
  *made = new Object{};
  std::ranges::copy(fields, (*made)->data);
  ++counts.created;
  ++counts.alive;
  return CUBLAS_STATUS_SUCCESS;
}
/// One that was not made is counted too: the real library may follow the pointer.
template <class Object>
cublasStatus_t destroy(Object* object) {
  delete object;
  --counts.alive;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t set(uint64_t& field, const void* value, size_t bytes) {
  field = 0;
  std::memcpy(&field, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

const CublasLtCounts<std::atomic<int64_t>>* st_fake_cublaslt() { return &counts; }
void st_fake_cublaslt_asks(bool (*ask)()) { is_failing = ask; }

const char* cublasLtGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INVALID_VALUE     ? "CUBLAS_STATUS_INVALID_VALUE"
         : status == CUBLAS_STATUS_NOT_INITIALIZED ? "CUBLAS_STATUS_NOT_INITIALIZED"
         : status == CUBLAS_STATUS_ALLOC_FAILED    ? "CUBLAS_STATUS_ALLOC_FAILED"
                                                   : "CUBLAS_STATUS_OTHER";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (fails()) return CUBLAS_STATUS_NOT_INITIALIZED;  // as where a device has no memory for it
  *handle = reinterpret_cast<cublasLtHandle_t>(new int64_t);
  ++counts.created;
  ++counts.alive;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return destroy(reinterpret_cast<int64_t*>(handle)); }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute, cudaDataType_t scale) {
  return create(made, {static_cast<uint64_t>(compute), static_cast<uint64_t>(scale)});
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) { return destroy(description); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t which, const void* value,
                                              size_t bytes) {
  switch (which) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(description->data[kTransposeA], value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(description->data[kTransposeB], value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(description->data[kEpilogue], value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(description->data[kBias], value, bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type, uint64_t rows, uint64_t columns, int64_t lead) {
  return create(made, {static_cast<uint64_t>(type), rows, columns, static_cast<uint64_t>(lead)});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return destroy(layout); }

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  return create(made, {0, CUBLASLT_REDUCTION_SCHEME_MASK, 256, 256, 256, 256, ~uint64_t{0}});
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) { return destroy(preference); }
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t which,
                                                    const void* value, size_t bytes) {
  switch (which) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return set(preference->data[kWorkspace], value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return set(preference->data[kReductions], value, bytes);
    case CUBLASLT_MATMUL_PREF_IMPL_MASK:
      return set(preference->data[kNumerics], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return set(preference->data[kAlignment + static_cast<size_t>(which) - size_t{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES}], value,
                 bytes);
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

/// Sums that are split along K are not asked for, and were not measured.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t /*d*/,
                                              cublasLtMatmulPreference_t preference, int asked, cublasLtMatmulHeuristicResult_t found[],
                                              int* count) {
  static const Fixture& fixture = *new Fixture;
  ++counts.heuristics;
  *count = 0;
  Problem problem;
  if (at(preference, kReductions) != CUBLASLT_REDUCTION_SCHEME_NONE || !is_problem(description, a, b, c, problem))
    return CUBLAS_STATUS_INVALID_VALUE;
  int64_t alignment = at(preference, kAlignment);
  for (size_t i = 1; i < kAlignments; ++i) alignment = std::min(alignment, at(preference, kAlignment + i));
  const auto [digit, workspace] = fixture.answer(problem, at(preference, kWorkspace), alignment);
  if (digit == '-') return CUBLAS_STATUS_NOT_SUPPORTED;
  if (digit == 'x') return CUBLAS_STATUS_INVALID_VALUE;
  *count = std::min(digit - '0', asked);
  for (int i = 0; i < *count; ++i) {
    found[i] = {};
    const std::array<uint64_t, 4> fields = {static_cast<uint64_t>(i), problem.digest(), static_cast<uint64_t>(alignment),
                                            static_cast<uint64_t>(workspace)};
    std::ranges::copy(fields, found[i].algo.data);
    found[i].workspaceSize = static_cast<size_t>(workspace);
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t /*handle*/, cublasLtMatmulDesc_t description, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t /*c_layout*/, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  Problem problem;
  if (!is_problem(description, a_layout, b_layout, d_layout, problem) ||
      at(algorithm, kProblem) != static_cast<int64_t>(problem.digest()) || c != d ||
      at(algorithm, kTaken) > static_cast<int64_t>(workspace_bytes) || workspace == nullptr)
    return CUBLAS_STATUS_INVALID_VALUE;
  for (const void* const place : {a, b, c})
    if (reinterpret_cast<uintptr_t>(place) % static_cast<uintptr_t>(at(algorithm, kPromised)) != 0) return CUBLAS_STATUS_INVALID_VALUE;
  const Work work = {
      *description, *a_layout, *b_layout, *d_layout, *static_cast<const float*>(alpha), *static_cast<const float*>(beta), a, b, d, stream};
  ++counts.products;
  stream->given_by_library(*stream, [work] { work.run(); });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
