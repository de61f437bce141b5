#include "onednn_gemm.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "seconds_now.h"

namespace cli {
namespace {

constexpr std::array kOnednn = {"libdnnl.so.3", "libdnnl.so"};

// Constants of dnnl_types.h, version 3.
constexpr int kCpu = 1, kFp16 = 1, kBf16 = 2, kFp32 = 3, kAnyFormat = 1, kWeightsDescription = 131;
constexpr unsigned kDefaultStream = 1;
constexpr int kUnimplemented = 3;
constexpr int kSource = 1, kDestination = 17, kWeights = 33;

const auto kNotOwned = +[](void*) { return 0; };

void check_onednn(int status, const char* what) {
  if (status != 0) throw std::runtime_error("oneDNN: " + std::string(what) + " failed with " + std::to_string(status));
}

int dtype_of(Element element) { return element == Element::fp32 ? kFp32 : element == Element::bf16 ? kBf16 : kFp16; }

}  // namespace

struct OnednnGemm::Calls {
  using Out = void**;
  int (*sgemm)(char trans_a, char trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda, const float* b,
               int64_t ldb, float beta, float* c, int64_t ldc);
  int (*engine_create)(Out, int kind, size_t index);
  int (*stream_create)(Out, void* engine, unsigned flags);
  int (*describe_strides)(Out, int rank, const int64_t* dims, int dtype, const int64_t* strides);
  int (*describe_tag)(Out, int rank, const int64_t* dims, int dtype, int tag);
  int (*description_destroy)(void*);
  int (*memory_create)(Out, const void* description, void* engine, void* data);
  int (*memory_destroy)(void*);
  int (*matmul_describe)(Out, void* engine, const void* a, const void* b, const void* bias, const void* c, const void* attributes);
  int (*reorder_describe)(Out, const void* from, void* from_engine, const void* to, void* to_engine, const void* attributes);
  const void* (*query)(const void* primitive_description, int what, int index);
  int (*primitive_create)(Out, const void* description);
  int (*primitive_description_destroy)(void*);
  int (*primitive_destroy)(void*);
  int (*execute)(const void* primitive, void* stream, int count, const Argument*);
  int (*wait)(void* stream);

  explicit Calls(const SharedLibrary& library) {
    const auto take = [&library](auto& call, const char* name) { call = library.need<std::decay_t<decltype(call)>>(name); };
    take(sgemm, "dnnl_sgemm");
    take(engine_create, "dnnl_engine_create"), take(stream_create, "dnnl_stream_create");
    take(describe_strides, "dnnl_memory_desc_create_with_strides"), take(describe_tag, "dnnl_memory_desc_create_with_tag");
    take(description_destroy, "dnnl_memory_desc_destroy");
    take(memory_create, "dnnl_memory_create"), take(memory_destroy, "dnnl_memory_destroy");
    take(matmul_describe, "dnnl_matmul_primitive_desc_create"), take(reorder_describe, "dnnl_reorder_primitive_desc_create");
    take(query, "dnnl_primitive_desc_query_md");
    take(primitive_create, "dnnl_primitive_create"), take(primitive_destroy, "dnnl_primitive_destroy");
    take(primitive_description_destroy, "dnnl_primitive_desc_destroy");
    take(execute, "dnnl_primitive_execute"), take(wait, "dnnl_stream_wait");
  }
};

// oneDNN asks the system for its number of threads: gemm_peer.cpp sets both sources before loading it.
OnednnGemm::OnednnGemm(bool openmp)
    : library_(openmp ? "SCALETRAIN_ONEDNN_OPENMP" : "SCALETRAIN_ONEDNN", kOnednn, openmp ? ".venv/openmp/lib" : ".venv/lib"),
      calls_(std::make_shared<const Calls>(library_)),
      matmul_(nullptr, kNotOwned),
      packed_matmul_(nullptr, kNotOwned),
      reorder_(nullptr, kNotOwned),
      a_(nullptr, kNotOwned),
      b_(nullptr, kNotOwned),
      c_(nullptr, kNotOwned),
      packed_b_(nullptr, kNotOwned) {
  if (calls_->engine_create(&engine_, kCpu, 0) != 0) engine_ = nullptr;
  if (engine_ != nullptr) check_onednn(calls_->stream_create(&stream_, engine_, kDefaultStream), "a stream");
}

bool OnednnGemm::open(const GemmOperands& operands) {
  operands_ = &operands;
  const bool fp32 = operands.shape().element == Element::fp32;
  by_sgemm_ = fp32;
  if (engine_ == nullptr) return fp32;
  if (!make_matmuls()) return false;
  if (fp32 && operands.shape().plain) choose_plain();
  return true;
}

void OnednnGemm::choose_plain() {
  double best[2];
  for (const bool by_sgemm : {false, true}) {
    by_sgemm_ = by_sgemm;
    double& seconds = best[by_sgemm ? 1 : 0] = 1e9;
    for (int i = 0; i < 2; ++i) {
      const double start = seconds_now();
      multiply(false);
      seconds = std::min(seconds, seconds_now() - start);
    }
  }
  by_sgemm_ = best[1] < best[0];
}

bool OnednnGemm::make_matmuls() {
  const GemmShape& s = operands_->shape();
  const int64_t b_dims[] = {s.k, s.n};
  const int dtype = dtype_of(s.element);
  const Owned a = describe(s.m, s.k, operands_->a_row(), s.transposed_a, dtype),
              b = describe(s.k, s.n, operands_->b_row(), s.transposed_b, dtype), c = describe(s.m, s.n, s.n, false, kFp32);
  void* any = nullptr;
  check_onednn(calls_->describe_tag(&any, 2, b_dims, dtype, kAnyFormat), "describing B");
  const Owned any_b(any, calls_->description_destroy);

  void* made = nullptr;
  matmul_.reset(), packed_matmul_.reset();
  const int described = calls_->matmul_describe(&made, engine_, a.get(), b.get(), nullptr, c.get(), nullptr);
  if (described == kUnimplemented) return false;
  check_onednn(described, "a matmul");
  matmul_ = primitive_of(made);
  check_onednn(calls_->matmul_describe(&made, engine_, a.get(), any_b.get(), nullptr, c.get(), nullptr), "describing a packed matmul");
  const Owned packed(made, calls_->primitive_description_destroy);
  const void* packed_b = calls_->query(made, kWeightsDescription, 0);
  void* primitive = nullptr;
  check_onednn(calls_->primitive_create(&primitive, made), "creating a packed matmul");
  packed_matmul_ = Owned(primitive, calls_->primitive_destroy);
  check_onednn(calls_->reorder_describe(&made, b.get(), engine_, packed_b, engine_, nullptr), "a reorder");
  reorder_ = primitive_of(made);

  a_ = memory_of(a.get(), operands_->a()), b_ = memory_of(b.get(), operands_->b()), c_ = memory_of(c.get(), operands_->c());
  packed_b_ = memory_of(packed_b, reinterpret_cast<void*>(-1));  // DNNL_MEMORY_ALLOCATE
  return true;
}

OnednnGemm::Owned OnednnGemm::describe(int64_t rows, int64_t columns, int64_t row, bool transposed, int dtype) const {
  const int64_t dims[] = {rows, columns}, strides[] = {transposed ? 1 : row, transposed ? row : 1};
  void* description = nullptr;
  check_onednn(calls_->describe_strides(&description, 2, dims, dtype, strides), "describing a matrix");
  return {description, calls_->description_destroy};
}

OnednnGemm::Owned OnednnGemm::memory_of(const void* description, void* data) const {
  void* memory = nullptr;
  check_onednn(calls_->memory_create(&memory, description, engine_, data), "wrapping a matrix");
  return {memory, calls_->memory_destroy};
}

/// Consumes the description.
OnednnGemm::Owned OnednnGemm::primitive_of(void* description) const {
  const Owned ended(description, calls_->primitive_description_destroy);
  void* primitive = nullptr;
  check_onednn(calls_->primitive_create(&primitive, description), "a primitive");
  return {primitive, calls_->primitive_destroy};
}

void OnednnGemm::execute(const Owned& primitive, std::initializer_list<Argument> arguments) const {
  check_onednn(calls_->execute(primitive.get(), stream_, static_cast<int>(arguments.size()), arguments.begin()), "a run");
  check_onednn(calls_->wait(stream_), "waiting");
}

void OnednnGemm::pack() { execute(reorder_, {{kSource, b_.get()}, {kDestination, packed_b_.get()}}); }

void OnednnGemm::multiply(bool packed) {
  if (packed)
    execute(packed_matmul_, {{kSource, a_.get()}, {kWeights, packed_b_.get()}, {kDestination, c_.get()}});
  else if (by_sgemm_)
    sgemm();
  else
    execute(matmul_, {{kSource, a_.get()}, {kWeights, b_.get()}, {kDestination, c_.get()}});
}

void OnednnGemm::sgemm() const {
  const GemmShape& s = operands_->shape();
  check_onednn(
      calls_->sgemm(s.transposed_a ? 'T' : 'N', s.transposed_b ? 'T' : 'N', s.m, s.n, s.k, 1, static_cast<const float*>(operands_->a()),
                    operands_->a_row(), static_cast<const float*>(operands_->b()), operands_->b_row(), 0, operands_->c(), s.n),
      "dnnl_sgemm");
}

}  // namespace cli
