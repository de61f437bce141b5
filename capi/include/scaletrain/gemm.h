/* Matrix products by themselves, over the host's arrays: C = alpha A B + beta C, and what is fused behind it. A plan is made once for a
 * problem, with the tiles that were wished for or chosen; its runs allocate nothing. Bits depend on tile_k and the instruction set alone:
 * not on threads, on other tile sizes, on packing, nor on where a row stands; those of a library (ST_GEMM_LIBRARY_AUTO) are its own.
 * Follows Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008). */
#ifndef SCALETRAIN_GEMM_H
#define SCALETRAIN_GEMM_H

#include <scaletrain/context.h>
#include <scaletrain/view.h>

ST_BEGIN

typedef struct st_gemm st_gemm;     /* a plan */
typedef struct st_packed st_packed; /* B, laid out for plans */

/* A is [m, k], B [k, n], C [m, n]; sizes may be 0. Strides in elements; 0 and 0: row-major without gaps; a row stride alone: rows that far
 * apart; a column stride alone: columns that far apart (column-major). A transposed operand is one whose strides change places. Sums are
 * fp32 whatever the dtypes are, the result is rounded once. */
typedef struct st_gemm_problem {
  uint32_t struct_size;
  st_dtype a_dtype, b_dtype, c_dtype; /* ST_F32 (default), ST_BF16 or ST_F16, any mix */
  int64_t m, n, k;
  int64_t batch; /* as many products; default 1 */
  int64_t a_row, a_column, b_row, b_column, c_row, c_column;
  int64_t a_batch, b_batch, c_batch; /* elements between matrices; 0: one behind the other */
  int32_t shared_a, shared_b;        /* 1: one matrix for the whole batch */
} st_gemm_problem;
ST_API st_status st_gemm_problem_init(st_gemm_problem* problem, size_t size);

enum {
  ST_GEMM_ORDER_CHOOSE = 0,
  ST_GEMM_ORDER_N_K_M = 1, /* B is packed once; C is visited once for each piece of K */
  ST_GEMM_ORDER_N_M_K = 2  /* a block of C is finished before the next begins */
};
enum {
  ST_GEMM_PACKING_CHOOSE = 0,
  ST_GEMM_PACKING_PACKED = 1,
  ST_GEMM_PACKING_IN_PLACE = 2 /* B is read where it lies: at most 128 rows of A, B of ST_F32 with unit
                                * columns; 40 and any B in the products of bf16 of classes that end in _bf16 */
};

/* What may multiply. AUTO also opens OpenBLAS, MKL and oneDNN where this machine has them (once a process, never closed; the file named in
 * SCALETRAIN_OPENBLAS, SCALETRAIN_MKL or SCALETRAIN_ONEDNN_OPENMP, else the usual names) and measures them when a plan of an fp32 product
 * is made: the fastest runs, on the plan's threads, each with a slice of C that the problem alone decides. So the bits are those of the
 * library that won, which st_gemm_info names, for any number of threads. The context's tuning cache is asked first. A library that is
 * absent, broken or computes wrongly is left out, and the log says why (areas "gemm_library" and "tuning"). */
enum { ST_GEMM_LIBRARY_OWN = 0, ST_GEMM_LIBRARY_AUTO = 1 };

/* A wish; 0: choose. Sizes are rounded to the micro-kernel's multiples and shared out evenly, which st_gemm_info tells; at most 2^20. A
 * column-major C is computed as its transpose: then M and N change places in the order, and A is what packing speaks of. */
typedef struct st_gemm_schedule {
  uint32_t struct_size;
  int32_t threads;                /* of a run, with threads - 1 threads of the plan's own; 0: the context's */
  int64_t tile_m, tile_n, tile_k; /* what one thread takes at a time, and where the sum over K is cut */
  int64_t block_m, block_n;       /* what is packed at a time, for all threads */
  int64_t micro_m;                /* rows in registers */
  int32_t order, packing;
  /* 0: what the context has left, of memory_limit and of the machine, which is also the most; what is not wished for is made smaller to
   * fit, never tile_k. */
  int64_t max_scratch_bytes;
  /* Milliseconds that st_gemm_plan_create may measure for what is not wished for: other tiles of the same tile_k, so the same bits. A
   * winner beyond the spread is taken, and kept in the context's tuning cache, which is asked first. Too short for this product: the
   * default, and the log says so. 0: never, neither measured nor looked up. Tiles that won may pack B otherwise than the default's. */
  int32_t tune_ms;
  int32_t library; /* ST_GEMM_LIBRARY_*; AUTO measures libraries for tune_ms, for at most 10 s where that is 0 */
} st_gemm_schedule;
ST_API st_status st_gemm_schedule_init(st_gemm_schedule* schedule, size_t size);

/* schedule NULL: choose all. ST_OUT_OF_MEMORY, with the numbers and the largest tile that fits, when the wish needs more scratch than
 * max_scratch_bytes or than the context has left. Scratch comes from the context's allocator, here and never later. */
ST_API st_status st_gemm_plan_create(st_context* context, const st_gemm_problem* problem, const st_gemm_schedule* schedule, st_gemm** gemm);
ST_API st_status st_gemm_plan_destroy(st_gemm* gemm);

enum {
  ST_GEMM_SOURCE_TABLE = 0, /* a fixed table by kernel class, which the CPU's identity chooses */
  ST_GEMM_SOURCE_WISH = 1,  /* that, but for what was wished for */
  ST_GEMM_SOURCE_CACHE = 2, /* measured before: the context's tuning cache */
  ST_GEMM_SOURCE_TUNED = 3  /* measured when the plan was made */
};

typedef struct st_gemm_info {
  uint32_t struct_size;
  int32_t adjusted; /* 1: a size is another one than wished */
  int64_t tile_m, tile_n, tile_k, block_m, block_n;
  int64_t micro_m, micro_n;
  int32_t order, packing, threads, source; /* the order without beta; adding to C may take the other */
  const char* instruction_set;             /* "amx_bf16", "avx512_bf16", "avx512", "avx2", "portable", "reference"; never freed */
  int64_t scratch_bytes;
  int64_t packed_bytes;              /* of an st_packed of this plan */
  double flops_per_second;           /* of the last run, of small products of one in 64; 0: none yet */
  double predicted_flops_per_second; /* by a model of this machine's caches and clock, B packed in each run; 0: there is none */
  /* What multiplies: "own", or a library and its version, "mkl-2026.0.1"; never freed. Of a library, tiles, instruction set and prediction
   * are those of our kernels, which stand aside; B packed is B without gaps. */
  const char* library;
} st_gemm_info;
ST_API st_status st_gemm_info_init(st_gemm_info* info, size_t size);
ST_API st_status st_gemm_plan_info(st_gemm* gemm, st_gemm_info* info);

/* B laid out beforehand, for plans that pack alike: same k, n, number of Bs, tile_k, block_n and micro-kernel; m may be another.
 * A run with it has the bits of a run with B. It keeps the plan that it was made of; packing is a call on that plan too. */
ST_API st_status st_gemm_pack(st_gemm* gemm, const st_view* b, st_packed** packed);
/* Another B, in place. */
ST_API st_status st_gemm_repack(st_packed* packed, const st_view* b);
ST_API st_status st_packed_destroy(st_packed* packed);

typedef int32_t st_activation;
enum { ST_ACTIVATION_NONE = 0, ST_ACTIVATION_RELU = 1, ST_ACTIVATION_GELU_TANH = 2, ST_ACTIVATION_GELU_ERF = 3, ST_ACTIVATION_SILU = 4 };

/* What happens to each piece of C while it is in the cache, in this order; NULL: not. Views are of C's dtype and, but for the vectors, of
 * C's dims with any strides. Bits are those of the library's ops one after the other: linear, activation, add, and sum where n > 1. */
typedef struct st_epilogue {
  uint32_t struct_size;
  st_activation activation;
  const st_view* bias;           /* [n], no gaps: added to each row */
  const st_view* pre_activation; /* written: the value before the activation */
  const st_view* derivative_at;  /* the value is multiplied by the activation's derivative at these, in place of the activation */
  const st_view* residual;       /* added */
  const st_view* column_sums;    /* [n], no gaps, written: sums of the finished C over the rows of all the batch, in a fixed order */
} st_epilogue;
ST_API st_status st_epilogue_init(st_epilogue* epilogue, size_t size);

/* Views have the problem's dims and strides, [m, k], [k, n], [m, n], and [batch, ...] unless batch is 1 or the matrix is shared. What is
 * written overlaps nothing else. beta 0: C is not read, and may hold NaN; alpha 0: A and B are not. epilogue NULL: none. */
ST_API st_status st_gemm_run(st_gemm* gemm, float alpha, const st_view* a, const st_view* b, float beta, const st_view* c,
                             const st_epilogue* epilogue);
ST_API st_status st_gemm_run_packed(st_gemm* gemm, float alpha, const st_view* a, st_packed* b, float beta, const st_view* c,
                                    const st_epilogue* epilogue);

ST_END
#endif
