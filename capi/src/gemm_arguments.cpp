#include "gemm_arguments.h"

#include <algorithm>

#include "gemm/gemm_library.h"
#include "guard.h"
#include "views.h"

namespace st::capi {
namespace {

MatrixStrides strides_of(int64_t row, int64_t column, int64_t columns) {
  if (row == 0 && column == 0) return {std::max<int64_t>(columns, 1), 1};
  return {row == 0 ? 1 : row, column == 0 ? 1 : column};
}

/// The stride between matrices of a batch: the requested one, 0 if shared, else one matrix after the other.
int64_t batch_stride(int64_t asked, bool shared, MatrixStrides strides, int64_t rows, int64_t columns) {
  int64_t down = 0, across = 0;
  if (shared) return 0;
  if (asked != 0) return asked;
  if (__builtin_mul_overflow(rows, strides.row, &down) || __builtin_mul_overflow(columns, strides.column, &across))
    return 0;  // reported later
  return std::max(down, across);
}

void check_shared(const char* name, int32_t shared, int64_t step) {
  check(shared == 0 || shared == 1, "st_gemm_problem: shared_", name, " is ", shared, "; give 0 or 1");
  check(shared == 0 || step == 0, "st_gemm_problem: ", name, "_batch is ", step, " and shared_", name, " is 1; one of them must be 0");
}

/// A matrix of the problem, to compare with the host's view.
struct Wanted {
  std::string_view name;
  DType dtype;
  int64_t rows, columns, batch;  // batch 1: one matrix
  MatrixStrides strides;
  int64_t step;
};

Wanted a_of(const GemmProblem& p) { return {"a", p.a_type, p.m, p.k, p.a_batch == 0 ? 1 : p.batch, p.a, p.a_batch}; }
Wanted b_wanted(const GemmProblem& p) { return {"b", p.b_type, p.k, p.n, p.b_batch == 0 ? 1 : p.batch, p.b, p.b_batch}; }
Wanted c_of(const GemmProblem& p) { return {"c", p.c_type, p.m, p.n, p.batch, p.c, p.c_batch}; }

Shape shape_of(const Wanted& w) { return w.batch == 1 ? Shape{w.rows, w.columns} : Shape{w.batch, w.rows, w.columns}; }

void check_shape(const Wanted& w, const HostView& view, const char* call) {
  const int32_t rank = view.shape.rank();
  const bool right = (rank == 2 && w.batch == 1) || (rank == 3 && view.shape[0] == w.batch);
  check(right && view.shape[rank - 2] == w.rows && view.shape[rank - 1] == w.columns, call, ": \"", w.name, "\" has shape ", view.shape,
        ", the plan's is ", shape_of(w));
  check(view.dtype == w.dtype, call, ": \"", w.name, "\" is ", view.dtype, ", the plan's is ", w.dtype,
        "; cast it, or create another plan");
}

/// Kernels read and write the view in place.
void check_alignment(const HostView& view, const char* call) {
  const auto at = reinterpret_cast<uintptr_t>(view.data);
  const auto width = static_cast<uintptr_t>(bytes_of(view.dtype));
  check(view.shape.elements() == 0 || at % width == 0, call, ": \"", view.name, "\" is ", view.dtype, " at address ", at,
        ", which is not a multiple of ", width, "; copy it to one that is");
}

HostView look_at(const Wanted& w, const st_view* theirs, const char* call) {
  const HostView view = read_view(w.name, theirs, call);
  about_tensor(w.name, [&] {
    check_shape(w, view, call);
    const auto last = static_cast<size_t>(view.shape.rank() - 1);
    const auto differs = [&](size_t axis, int64_t stride) {
      return view.shape[static_cast<int32_t>(axis)] > 1 && view.strides[axis] != stride;
    };
    const bool batch_differs = last == 2 && differs(0, w.step);
    check(view.shape.elements() == 0 || (!differs(last, w.strides.column) && !differs(last - 1, w.strides.row) && !batch_differs), call,
          ": \"", w.name, "\" of shape ", view.shape, " has strides ",
          std::span<const int64_t>(view.strides.data(), static_cast<size_t>(view.shape.rank())), ", the plan's are ", w.strides.row,
          " between rows, ", w.strides.column, " between columns and ", w.step,
          " between matrices; give the view these strides, or create a plan for its own");
    check_alignment(view, call);
  });
  return view;
}

}  // namespace

GemmProblem problem_of(const st_gemm_problem& t) {
  check_shared("a", t.shared_a, t.a_batch);
  check_shared("b", t.shared_b, t.b_batch);
  for (const st_dtype type : {t.a_dtype, t.b_dtype, t.c_dtype})
    require(type == ST_F32 || type == ST_BF16 || type == ST_F16, Code::unsupported, "st_gemm_problem: dtype ", type,
            " is not supported; use ST_F32 (1), ST_BF16 (3) or ST_F16 (4) and cast other types first");
  GemmProblem p;
  p.m = t.m, p.n = t.n, p.k = t.k, p.batch = t.batch;
  p.a_type = static_cast<DType>(t.a_dtype), p.b_type = static_cast<DType>(t.b_dtype), p.c_type = static_cast<DType>(t.c_dtype);
  p.a = strides_of(t.a_row, t.a_column, t.k);
  p.b = strides_of(t.b_row, t.b_column, t.n);
  p.c = strides_of(t.c_row, t.c_column, t.n);
  p.a_batch = batch_stride(t.a_batch, t.shared_a != 0, p.a, p.m, p.k);
  p.b_batch = batch_stride(t.b_batch, t.shared_b != 0, p.b, p.k, p.n);
  p.c_batch = batch_stride(t.c_batch, false, p.c, p.m, p.n);
  return p;
}

GemmWish wish_of(const st_gemm_schedule& t) {
  check(t.order >= ST_GEMM_ORDER_CHOOSE && t.order <= ST_GEMM_ORDER_N_M_K, "st_gemm_schedule: order is ", t.order, "; it must be 0 to 2");
  check(t.packing >= ST_GEMM_PACKING_CHOOSE && t.packing <= ST_GEMM_PACKING_IN_PLACE, "st_gemm_schedule: packing is ", t.packing,
        "; it must be 0 to 2");
  check(t.tune_ms >= 0, "st_gemm_schedule: tune_ms is ", t.tune_ms, "; give milliseconds, or 0 to measure nothing");
  check(t.library == ST_GEMM_LIBRARY_OWN || t.library == ST_GEMM_LIBRARY_AUTO, "st_gemm_schedule: library is ", t.library,
        "; give ST_GEMM_LIBRARY_OWN (0) or ST_GEMM_LIBRARY_AUTO (1)");
  GemmWish wish;
  wish.tiles.mc = t.tile_m, wish.tiles.nc = t.tile_n, wish.tiles.kc = t.tile_k;
  wish.tiles.block_m = t.block_m, wish.tiles.block_n = t.block_n;
  wish.tiles.mr = t.micro_m;
  wish.tiles.order = t.order == ST_GEMM_ORDER_N_M_K ? LoopOrder::n_m_k : LoopOrder::n_k_m;
  wish.order_is_wished = t.order != ST_GEMM_ORDER_CHOOSE;
  wish.tiles.b = static_cast<Packing>(t.packing);
  wish.max_scratch_bytes = t.max_scratch_bytes;
  return wish;
}

void tell(const GemmChoice& choice, st_gemm_info& info) {
  const TileSchedule tiles = choice.tiles();
  info.adjusted = choice.adjusted ? 1 : 0;
  info.tile_m = tiles.mc, info.tile_n = tiles.nc, info.tile_k = tiles.kc;
  info.block_m = tiles.block_m, info.block_n = tiles.block_n;
  info.micro_m = tiles.mr, info.micro_n = tiles.nr;
  info.order = tiles.order == LoopOrder::n_m_k ? ST_GEMM_ORDER_N_M_K : ST_GEMM_ORDER_N_K_M;
  info.packing = static_cast<int32_t>(tiles.b);
  info.source = static_cast<int32_t>(choice.source);
  info.scratch_bytes = choice.scratch_bytes;
  info.packed_bytes = choice.packed_bytes;
  info.library = choice.schedule.library == nullptr ? "own" : choice.schedule.library->identity().c_str();
}

void tell(const DeviceGemm& gemm, st_gemm_info& info) {
  info.tile_m = gemm.tiles().mc, info.tile_n = gemm.tiles().nc, info.tile_k = gemm.tiles().kc;
  info.source = gemm.rate() > 0                               ? ST_GEMM_SOURCE_TUNED
                : info.tile_m + info.tile_n + info.tile_k > 0 ? ST_GEMM_SOURCE_REQUESTED
                                                              : ST_GEMM_SOURCE_TABLE;
  info.flops_per_second = gemm.rate();
  info.library = gemm.library();
}

const void* b_of(const GemmProblem& problem, const st_view* b, const char* call) { return look_at(b_wanted(problem), b, call).data; }

GemmArguments::GemmArguments(const GemmProblem& p, const st_view* a, const st_view* b, bool packed, const st_view* c,
                             const st_epilogue* epilogue, const char* call) {
  operands.a = keep(look_at(a_of(p), a, call), Use::read).data;
  if (!packed) operands.b = keep(look_at(b_wanted(p), b, call), Use::read).data;
  operands.c = keep(look_at(c_of(p), c, call), Use::written).data;
  if (epilogue != nullptr) take_epilogue(p, take(epilogue, call), call);
  refuse_overlaps(call);
}

void GemmArguments::take_epilogue(const GemmProblem& p, const st_epilogue& t, const char* call) {
  check(t.activation >= ST_ACTIVATION_NONE && t.activation <= ST_ACTIVATION_SILU, call, ": activation is ", t.activation,
        "; use one of ST_ACTIVATION_NONE (0) to ST_ACTIVATION_SILU (4)");
  check(t.derivative_at == nullptr || t.activation != ST_ACTIVATION_NONE, call,
        ": derivative_at is given without an activation; name the activation whose derivative it is");
  check(t.derivative_at == nullptr || t.pre_activation == nullptr, call,
        ": pre_activation and derivative_at are given; the first is for a forward product, the second for a backward one");
  epilogue_.activation = static_cast<GemmActivation>(t.activation);
  operands.bias = vector("bias", p, t.bias, Use::read, call);
  epilogue_.pre_activation = side("pre_activation", p, t.pre_activation, Use::written, call);
  epilogue_.derivative_at = side("derivative_at", p, t.derivative_at, Use::read, call);
  epilogue_.residual = side("residual", p, t.residual, Use::read, call);
  epilogue_.column_sums = vector("column_sums", p, t.column_sums, Use::written, call);
  operands.epilogue = &epilogue_;
}

GemmSide GemmArguments::side(std::string_view name, const GemmProblem& p, const st_view* view, Use use, const char* call) {
  if (view == nullptr) return {};
  const HostView ours = written_view(name, view, call);  // its elements must not share memory, or overlaps could not be detected
  Wanted wanted = c_of(p);
  wanted.name = name;
  about_tensor(name, [&] {
    check_shape(wanted, ours, call);
    check_alignment(ours, call);
  });
  const HostView& kept = keep(ours, use);
  const auto row = static_cast<size_t>(kept.shape.rank() - 2);
  return {kept.data, {kept.strides[row], kept.strides[row + 1]}, row == 1 ? kept.strides[0] : 0};
}

void* GemmArguments::vector(std::string_view name, const GemmProblem& p, const st_view* view, Use use, const char* call) {
  if (view == nullptr) return nullptr;
  const HostView ours = read_view(name, view, call);
  return about_tensor(name, [&] {
    check(ours.shape.rank() == 1 && ours.shape[0] == p.n, call, ": \"", name, "\" has shape ", ours.shape, "; it must be [", p.n, "]");
    check(ours.dtype == p.c_type, call, ": \"", name, "\" is ", ours.dtype, "; it must have C's dtype, ", p.c_type);
    check(p.n <= 1 || ours.strides[0] == 1, call, ": \"", name, "\" has stride ", ours.strides[0], "; give it without gaps");
    check_alignment(ours, call);
    return keep(ours, use).data;
  });
}

const HostView& GemmArguments::keep(const HostView& view, Use use) {
  uses_[count_] = use;
  return views_[count_++] = view;
}

void GemmArguments::refuse_overlaps(const char* call) const {
  for (size_t i = 0; i < count_; ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (uses_[i] == Use::read && uses_[j] == Use::read) continue;
      check(!share_memory(views_[i], views_[j]), call, ": \"", views_[i].name, "\" and \"", views_[j].name,
            "\" share memory and one of them is written; give each its own memory");
    }
  }
}

}  // namespace st::capi
