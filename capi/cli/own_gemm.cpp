#include "own_gemm.h"

namespace cli {

void OwnGemm::View::set(int64_t rows, int64_t columns, int64_t row, bool transposed, void* data, st_dtype dtype) {
  dims[0] = rows, dims[1] = columns;
  strides[0] = transposed ? 1 : row, strides[1] = transposed ? row : 1;
  view = {dtype, 2, dims, strides, data, rows * columns * (dtype == ST_F32 ? 4 : 2), 0, 0};
}

bool OwnGemm::open(const GemmOperands& operands) {
  const GemmShape& s = operands.shape();
  const st_dtype dtype = s.element == Element::fp32 ? ST_F32 : s.element == Element::bf16 ? ST_BF16 : ST_F16;
  a_.set(s.m, s.k, operands.a_row(), s.transposed_a, operands.a(), dtype);
  b_.set(s.k, s.n, operands.b_row(), s.transposed_b, operands.b(), dtype);
  c_.set(s.m, s.n, s.n, false, operands.c(), ST_F32);
  st_gemm_problem problem;
  ask(st_gemm_problem_init(&problem, sizeof problem));
  problem.a_dtype = problem.b_dtype = dtype;
  problem.m = s.m, problem.n = s.n, problem.k = s.k;
  problem.a_row = a_.strides[0], problem.a_column = a_.strides[1];
  problem.b_row = b_.strides[0], problem.b_column = b_.strides[1];
  st_gemm_schedule wish;
  ask(st_gemm_schedule_init(&wish, sizeof wish));
  wish.tile_m = tile_m_, wish.tile_n = tile_n_, wish.tile_k = tile_k_;
  wish.tune_ms = tune_ms_;
  wish.library = library_;
  packed_.reset();
  gemm_ = make<Gemm>(st_gemm_plan_create, context_.get(), &problem, &wish);
  return true;
}

void OwnGemm::pack() {
  if (packed_)
    run(st_gemm_repack(packed_.get(), &b_.view));
  else
    packed_ = make<Packed>(st_gemm_pack, gemm_.get(), &b_.view);
}

void OwnGemm::multiply(bool packed) {
  run(packed ? st_gemm_run_packed(gemm_.get(), 1, &a_.view, packed_.get(), 0, &c_.view, nullptr)
             : st_gemm_run(gemm_.get(), 1, &a_.view, &b_.view, 0, &c_.view, nullptr));
}

st_gemm_info OwnGemm::info() const {
  st_gemm_info info;
  ask(st_gemm_info_init(&info, sizeof info));
  ask(st_gemm_plan_info(gemm_.get(), &info));
  return info;
}

}  // namespace cli
