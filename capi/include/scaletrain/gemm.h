/* Matrix products without a trainer, over the host's arrays: C = alpha A B + beta C, with a fused epilogue. A plan is made once for a
 * problem, with requested or chosen tiles; runs of it allocate nothing. Bits depend only on tile_k and the instruction set: not on threads,
 * other tile sizes, packing, or a row's position. With ST_GEMM_LIBRARY_AUTO they are those of the library used. Follows Goto and van de
 * Geijn, "Anatomy of high-performance matrix multiplication" (2008).
 *
 * On a device of its own memory a run copies the arrays there and back, and computes C = A B of one pair of matrices without gaps: alpha 1,
 * beta 0, no epilogue, no packed B; the rest is ST_UNSUPPORTED. A schedule's tile_m, tile_n and tile_k are the least that a tile has
 * (ST_UNSUPPORTED with its shared memory and registers if the device has none), tune_ms is the time to measure kernels in when the plan is
 * made, and ST_GEMM_LIBRARY_AUTO lets the device use a library of its own (cuBLASLt), by measuring or by the device's rule. st_gemm_info
 * then has these tiles, flops_per_second of the measured kernels alone (0: not measured), and the library "own", "cublasLt-2" (its
 * algorithm by number) or "chosen". */
#ifndef SCALETRAIN_GEMM_H
#define SCALETRAIN_GEMM_H

#include <scaletrain/context.h>
#include <scaletrain/view.h>

ST_BEGIN

typedef struct st_gemm st_gemm;     /* a plan */
typedef struct st_packed st_packed; /* B, packed for plans */

/* A is [m, k], B [k, n], C [m, n]; sizes may be 0. Strides are in elements; row and column 0: row-major without gaps; only a row stride:
 * rows that far apart; only a column stride: columns that far apart (column-major). To transpose an operand, swap its strides. Sums are
 * fp32 for all dtypes; the result is rounded once. */
typedef struct st_gemm_problem {
  uint32_t struct_size;
  st_dtype a_dtype, b_dtype, c_dtype; /* ST_F32 (default), ST_BF16 or ST_F16, any mix */
  int64_t m, n, k;
  int64_t batch; /* number of products; default 1 */
  int64_t a_row, a_column, b_row, b_column, c_row, c_column;
  int64_t a_batch, b_batch, c_batch; /* elements between matrices; 0: contiguous */
  int32_t shared_a, shared_b;        /* 1: one matrix for the whole batch */
} st_gemm_problem;
ST_API st_status st_gemm_problem_init(st_gemm_problem* problem, size_t size);

enum {
  ST_GEMM_ORDER_CHOOSE = 0,
  ST_GEMM_ORDER_N_K_M = 1, /* B is packed once; C is visited once for each tile of K */
  ST_GEMM_ORDER_N_M_K = 2  /* a block of C is finished before the next begins */
};
enum {
  ST_GEMM_PACKING_CHOOSE = 0,
  ST_GEMM_PACKING_PACKED = 1,
  ST_GEMM_PACKING_IN_PLACE = 2 /* B is read in place: for at most 128 rows of A, and B of ST_F32 with unit column stride; in bf16 products
                                * of classes that end in _bf16: at most 40 rows, any B */
};

/* Which kernels may multiply. AUTO also considers OpenBLAS, MKL and oneDNN for an fp32 product, when its plan is made:
 * - The context's tuning cache is consulted first; otherwise they are measured and the fastest is used, on the plan's threads, each with a
 *   slice of C that depends only on the problem. So the bits are those of the chosen library (st_gemm_info), for any number of threads.
 * - A library is opened once a process and never closed: the file in SCALETRAIN_OPENBLAS, SCALETRAIN_MKL or SCALETRAIN_ONEDNN_OPENMP, else
 *   the usual names. One that is absent, broken or computes wrongly is left out; the log says why (areas "gemm_library" and "tuning"). */
enum { ST_GEMM_LIBRARY_OWN = 0, ST_GEMM_LIBRARY_AUTO = 1 };

/* A requested schedule; 0: the library chooses. Sizes, at most 2^20, are rounded to multiples of the micro-kernel and divided evenly;
 * st_gemm_info has the result. A column-major C is computed as its transpose: then order has M and N exchanged, and packing refers to A. */
typedef struct st_gemm_schedule {
  uint32_t struct_size;
  int32_t threads; /* of a run, of which threads - 1 belong to the plan; 0: the context's */
  /* The largest work unit of a thread; several threads take smaller ones, so that they end together. tile_k splits the sum over K. */
  int64_t tile_m, tile_n, tile_k;
  int64_t block_m, block_n; /* what is packed at a time, for all threads */
  int64_t micro_m;          /* rows in registers */
  int32_t order, packing;
  /* 0: what the context has left of memory_limit and of the machine, which is also the maximum. To fit, sizes that were not requested are
   * reduced, but never tile_k. */
  int64_t max_scratch_bytes;
  /* Milliseconds that st_gemm_plan_create may use to measure sizes that were not requested: other tiles with the same tile_k, so the same
   * bits. A winner by more than the spread is used and stored in the context's tuning cache, which is consulted first. Too short for this
   * product: the default is used, and the log says so. 0: neither measured nor looked up. Winning tiles may pack B differently from the
   * default. */
  int32_t tune_ms;
  int32_t library; /* ST_GEMM_LIBRARY_*; AUTO measures libraries for tune_ms, or, on the cpu, for at most 10 s if that is 0 */
} st_gemm_schedule;
ST_API st_status st_gemm_schedule_init(st_gemm_schedule* schedule, size_t size);

/* schedule NULL: choose everything. ST_OUT_OF_MEMORY, with the numbers and the largest tile that fits: the requested sizes need more
 * scratch than max_scratch_bytes or than the context has left. Scratch is allocated here, from the context's allocator, and never later. */
ST_API st_status st_gemm_plan_create(st_context* context, const st_gemm_problem* problem, const st_gemm_schedule* schedule, st_gemm** gemm);
ST_API st_status st_gemm_plan_destroy(st_gemm* gemm);

enum {
  ST_GEMM_SOURCE_TABLE = 0,     /* a fixed table by kernel class, which the CPU determines */
  ST_GEMM_SOURCE_REQUESTED = 1, /* the same, except for requested sizes */
  ST_GEMM_SOURCE_CACHE = 2,     /* measured before: the context's tuning cache */
  ST_GEMM_SOURCE_TUNED = 3      /* measured when the plan was made */
};

typedef struct st_gemm_info {
  uint32_t struct_size;
  int32_t adjusted; /* 1: a size differs from the requested one */
  int64_t tile_m, tile_n, tile_k, block_m, block_n;
  int64_t micro_m, micro_n;
  int32_t order, packing, threads, source; /* the order for beta 0; with beta it may be the other one */
  const char* instruction_set;             /* "amx_bf16", "avx512_bf16", "avx512", "avx2", "portable", "reference"; never freed */
  int64_t scratch_bytes;
  int64_t packed_bytes;              /* of an st_packed of this plan */
  double flops_per_second;           /* of the last run (small products: of one run in 64); 0: none yet */
  double predicted_flops_per_second; /* by a model of this machine's caches and clock, with B packed in each run; 0: no prediction */
  /* "own", or the library used and its version, "mkl-2026.0.1"; never freed. With a library, tiles, instruction set and prediction describe
   * our unused kernels, and packed B is B without gaps. */
  const char* library;
} st_gemm_info;
ST_API st_status st_gemm_info_init(st_gemm_info* info, size_t size);
ST_API st_status st_gemm_plan_info(st_gemm* gemm, st_gemm_info* info);

/* B packed in advance, for plans that pack alike: same k, n, number of Bs, tile_k, block_n and micro-kernel; any m. A run with it has the
 * bits of a run with B. It keeps its plan alive; packing counts as a call on that plan. */
ST_API st_status st_gemm_pack(st_gemm* gemm, const st_view* b, st_packed** packed);
/* Packs another B, in place. */
ST_API st_status st_gemm_repack(st_packed* packed, const st_view* b);
ST_API st_status st_packed_destroy(st_packed* packed);

typedef int32_t st_activation;
enum { ST_ACTIVATION_NONE = 0, ST_ACTIVATION_RELU = 1, ST_ACTIVATION_GELU_TANH = 2, ST_ACTIVATION_GELU_ERF = 3, ST_ACTIVATION_SILU = 4 };

/* Operations on each tile of C while it is in cache, in this order; NULL: none. Views have C's dtype and, except the vectors, C's dims with
 * any strides. Bits are those of separate ops: linear, activation, add, and sum if n > 1. */
typedef struct st_epilogue {
  uint32_t struct_size;
  st_activation activation;
  const st_view* bias;           /* [n], no gaps: added to each row */
  const st_view* pre_activation; /* written: the values before the activation */
  const st_view* derivative_at;  /* multiplies by the activation's derivative at these values, instead of the activation */
  const st_view* residual;       /* added */
  const st_view* column_sums;    /* [n], no gaps, written: column sums of the finished C over all rows of the batch, in a fixed order */
} st_epilogue;
ST_API st_status st_epilogue_init(st_epilogue* epilogue, size_t size);

/* Views have the problem's dims and strides: [m, k], [k, n], [m, n], and [batch, ...] unless batch is 1 or the matrix is shared. Outputs
 * overlap nothing else. beta 0: C is not read, and may hold NaN; alpha 0: A and B are not read. epilogue NULL: none. */
ST_API st_status st_gemm_run(st_gemm* gemm, float alpha, const st_view* a, const st_view* b, float beta, const st_view* c,
                             const st_epilogue* epilogue);
ST_API st_status st_gemm_run_packed(st_gemm* gemm, float alpha, const st_view* a, st_packed* b, float beta, const st_view* c,
                                    const st_epilogue* epilogue);

ST_END
#endif
