// Matrix products without a trainer, over the host's arrays: C = alpha A B + beta C, with a fused epilogue.
#pragma once

#include <scaletrain/gemm.h>

#include <optional>
#include <scaletrain/context.hpp>
#include <scaletrain/view.hpp>
#include <string>

namespace scaletrain {

enum class Activation : int32_t { none = 0, relu = 1, gelu_tanh = 2, gelu_erf = 3, silu = 4 };
enum class GemmOrder : int32_t { choose = 0, n_k_m = 1, n_m_k = 2 };
enum class GemmSource : int32_t { table = 0, requested = 1, cache = 2, tuned = 3 };
enum class GemmLibrary : int32_t { own = 0, automatic = 1 };
enum class GemmPacking : int32_t { choose = 0, packed = 1, in_place = 2 };

/// Strides in elements; row and column 0: row-major without gaps. batch, the stride between matrices, 0: contiguous.
struct GemmLayout {
  DType dtype = DType::f32;
  int64_t row = 0, column = 0, batch = 0;
  bool shared = false;  // one matrix for the whole batch; not for C
};

/// A [m, k], B [k, n], C [m, n].
struct GemmProblem {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  GemmLayout a{};
  GemmLayout b{};
  GemmLayout c{};
};

/// A requested schedule; 0: the library chooses.
struct GemmSchedule {
  int32_t threads = 0;
  int64_t tile_m = 0, tile_n = 0, tile_k = 0, block_m = 0, block_n = 0, micro_m = 0;
  GemmOrder order = GemmOrder::choose;
  GemmPacking packing = GemmPacking::choose;
  int64_t max_scratch_bytes = 0;
  int32_t tune_ms = 0;                     // limit for measuring when the plan is made; 0: never
  GemmLibrary library = GemmLibrary::own;  // automatic: other libraries are measured too, and the bits are the winner's
};

struct GemmInfo {
  bool adjusted = false;
  int64_t tile_m = 0, tile_n = 0, tile_k = 0, block_m = 0, block_n = 0, micro_m = 0, micro_n = 0;
  GemmOrder order = GemmOrder::choose;
  GemmPacking packing = GemmPacking::choose;
  int32_t threads = 0;
  std::string instruction_set;
  int64_t scratch_bytes = 0, packed_bytes = 0;
  double flops_per_second = 0;  // of the last run
  double predicted_flops_per_second = 0;
  GemmSource source = GemmSource::table;
  std::string library;  // "own", or another library and its version
};

/// Applied after alpha A B + beta C, in this order.
struct Epilogue {
  std::optional<View> bias;            // [n]
  std::optional<View> pre_activation;  // filled
  Activation activation = Activation::none;
  std::optional<View> derivative_at;  // multiplies by the activation's derivative at these, instead of the activation
  std::optional<View> residual;
  std::optional<View> column_sums;  // [n], filled
};

/// B, packed for plans that pack alike.
class PackedMatrix : public detail::Handle<st_packed, st_packed_destroy> {
 public:
  /// Packs another B, in place.
  void repack(const View& b) const {
    const st_view raw = b.raw();
    done(st_gemm_repack(get(), &raw));
  }

 private:
  friend class Gemm;
  explicit PackedMatrix(const std::shared_ptr<detail::Host>& host) : Handle(host) {}
};

/// A plan: made once; runs allocate nothing.
class Gemm : public detail::Handle<st_gemm, st_gemm_plan_destroy> {
 public:
  Gemm(const Context& context, const GemmProblem& problem) : Gemm(context, problem, GemmSchedule()) {}
  Gemm(const Context& context, const GemmProblem& problem, const GemmSchedule& requested) : Handle(detail::Access::host(context)) {
    const st_gemm_problem raw = raw_problem(problem);
    const st_gemm_schedule tiles = raw_schedule(requested);
    done(st_gemm_plan_create(context.get(), &raw, &tiles, out()));
  }

  GemmInfo info() const {
    st_gemm_info raw;
    done(st_gemm_info_init(&raw, sizeof raw));
    done(st_gemm_plan_info(get(), &raw));
    return {raw.adjusted != 0,
            raw.tile_m,
            raw.tile_n,
            raw.tile_k,
            raw.block_m,
            raw.block_n,
            raw.micro_m,
            raw.micro_n,
            static_cast<GemmOrder>(raw.order),
            static_cast<GemmPacking>(raw.packing),
            raw.threads,
            raw.instruction_set,
            raw.scratch_bytes,
            raw.packed_bytes,
            raw.flops_per_second,
            raw.predicted_flops_per_second,
            static_cast<GemmSource>(raw.source),
            raw.library == nullptr ? "own" : raw.library};  // null: the library is older than this header
  }

  PackedMatrix pack(const View& b) const {
    PackedMatrix packed(host());
    const st_view raw = b.raw();
    packed.done(st_gemm_pack(get(), &raw, packed.out()));
    return packed;
  }

  /// C = alpha A B + beta C, then the epilogue. With beta 0, C is not read.
  void run(float alpha, const View& a, const View& b, float beta, const View& c, const Epilogue& epilogue = {}) const {
    const st_view of_a = a.raw(), of_b = b.raw(), of_c = detail::writable("Gemm::run", c).raw();
    const RawEpilogue fused(*this, epilogue);
    done(st_gemm_run(get(), alpha, &of_a, &of_b, beta, &of_c, &fused.raw));
  }
  void run(float alpha, const View& a, const PackedMatrix& b, float beta, const View& c, const Epilogue& epilogue = {}) const {
    const st_view of_a = a.raw(), of_c = detail::writable("Gemm::run", c).raw();
    const RawEpilogue fused(*this, epilogue);
    done(st_gemm_run_packed(get(), alpha, &of_a, b.get(), beta, &of_c, &fused.raw));
  }

 private:
  st_gemm_problem raw_problem(const GemmProblem& problem) const {
    st_gemm_problem raw;
    done(st_gemm_problem_init(&raw, sizeof raw));
    raw.m = problem.m;
    raw.n = problem.n;
    raw.k = problem.k;
    raw.batch = problem.batch;
    raw.a_dtype = static_cast<st_dtype>(problem.a.dtype);
    raw.a_row = problem.a.row;
    raw.a_column = problem.a.column;
    raw.a_batch = problem.a.batch;
    raw.shared_a = problem.a.shared ? 1 : 0;
    raw.b_dtype = static_cast<st_dtype>(problem.b.dtype);
    raw.b_row = problem.b.row;
    raw.b_column = problem.b.column;
    raw.b_batch = problem.b.batch;
    raw.shared_b = problem.b.shared ? 1 : 0;
    if (problem.c.shared) throw Error(Status::invalid_argument, "Gemm: C cannot be shared; each product of the batch writes its own");
    raw.c_dtype = static_cast<st_dtype>(problem.c.dtype);
    raw.c_row = problem.c.row;
    raw.c_column = problem.c.column;
    raw.c_batch = problem.c.batch;
    return raw;
  }

  st_gemm_schedule raw_schedule(const GemmSchedule& requested) const {
    st_gemm_schedule raw;
    done(st_gemm_schedule_init(&raw, sizeof raw));
    raw.threads = requested.threads;
    raw.tile_m = requested.tile_m;
    raw.tile_n = requested.tile_n;
    raw.tile_k = requested.tile_k;
    raw.block_m = requested.block_m;
    raw.block_n = requested.block_n;
    raw.micro_m = requested.micro_m;
    raw.order = static_cast<int32_t>(requested.order);
    raw.packing = static_cast<int32_t>(requested.packing);
    raw.max_scratch_bytes = requested.max_scratch_bytes;
    raw.tune_ms = requested.tune_ms;
    raw.library = static_cast<int32_t>(requested.library);
    return raw;
  }

  /// For one call; points into itself and the epilogue's views.
  struct RawEpilogue {
    RawEpilogue(const Gemm& gemm, const Epilogue& from) {
      gemm.done(st_epilogue_init(&raw, sizeof raw));
      raw.activation = static_cast<st_activation>(from.activation);
      raw.bias = keep(0, from.bias);
      raw.pre_activation = keep(1, written(from.pre_activation));
      raw.derivative_at = keep(2, from.derivative_at);
      raw.residual = keep(3, from.residual);
      raw.column_sums = keep(4, written(from.column_sums));
    }
    RawEpilogue(const RawEpilogue&) = delete;
    RawEpilogue& operator=(const RawEpilogue&) = delete;

    st_epilogue raw;

   private:
    static const std::optional<View>& written(const std::optional<View>& view) {
      if (view) detail::writable("Gemm::run", *view);
      return view;
    }
    const st_view* keep(size_t at, const std::optional<View>& view) {
      if (!view) return nullptr;
      views_[at] = view->raw();
      return &views_[at];
    }

    std::array<st_view, 5> views_;
  };
};

}  // namespace scaletrain
