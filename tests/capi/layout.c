/* The size of every public struct and the value of every pinned enum, checked by the compiler: a change that breaks programs built with an
 * earlier header does not compile. Lines may be added; in existing ones only a size may change, and only grow. For LP64. The offset and
 * the type of each field are in tests/golden/abi.txt, which capi_abi checks. */
#include <scaletrain/scaletrain.h>

#define HOLDS(name, condition) typedef char name[(condition) ? 1 : -1]
#define SIZE(type, bytes) HOLDS(size_of_##type, sizeof(type) == (bytes))
#define VALUE(constant, number) HOLDS(value_of_##constant, (constant) == (number))

HOLDS(lp64, sizeof(void*) == 8 && sizeof(st_status) == 4 && sizeof(st_dtype) == 4 && sizeof(st_value) == 4);

SIZE(st_error_info, 72);
SIZE(st_context_options, 96);
SIZE(st_memory_stats, 304);
SIZE(st_view, 48);       /* frozen */
SIZE(st_named_view, 56); /* frozen */
SIZE(st_parameter_info, 88);
SIZE(st_generate_options, 40);
SIZE(st_step_report, 104);
SIZE(st_evaluation, 40);
SIZE(st_field, 24);
SIZE(st_attribute, 48);
SIZE(st_value_info, 80);
SIZE(st_op_type, 72);
SIZE(st_op_callbacks, 32);
SIZE(st_rename, 16);
SIZE(st_read_options, 48);
SIZE(st_read_report, 48);
SIZE(st_predictor_options, 16);
SIZE(st_metric, 16);
SIZE(st_loss_scaler_options, 72);
SIZE(st_optimizer_report, 32);
SIZE(st_gemm_problem, 128);
SIZE(st_gemm_schedule, 80);
SIZE(st_gemm_info, 128);
SIZE(st_epilogue, 48);
SIZE(st_communicator_options, 24);
SIZE(st_transport_callbacks, 40);
SIZE(st_distributed_sampler_options, 32);
SIZE(st_data_parallel_options, 16);
SIZE(st_stage_work, 208);
SIZE(st_pipeline_callbacks, 32);
SIZE(st_sharded_optimizer_options, 24);
SIZE(st_checkpoint_options, 64);
SIZE(st_load_report, 104);
SIZE(st_save_progress, 72);

VALUE(ST_OK, 0);
VALUE(ST_INVALID_ARGUMENT, 1);
VALUE(ST_INVALID_HANDLE, 2);
VALUE(ST_WRONG_STATE, 3);
VALUE(ST_NOT_FOUND, 4);
VALUE(ST_OUT_OF_MEMORY, 5);
VALUE(ST_UNAVAILABLE, 6);
VALUE(ST_UNSUPPORTED, 7);
VALUE(ST_CANCELLED, 8);
VALUE(ST_BUSY, 9);
VALUE(ST_TIMEOUT, 10);
VALUE(ST_RANK_FAILED, 11);
VALUE(ST_RANK_MISMATCH, 12);
VALUE(ST_CORRUPT, 13);
VALUE(ST_IO, 14);
VALUE(ST_NOT_FINITE, 15);
VALUE(ST_CALLBACK, 16);
VALUE(ST_INTERNAL, 17);

VALUE(ST_F32, 1);
VALUE(ST_F64, 2);
VALUE(ST_BF16, 3);
VALUE(ST_F16, 4);
VALUE(ST_I32, 5);
VALUE(ST_I64, 6);
VALUE(ST_U8, 7);
VALUE(ST_BOOL, 8);

VALUE(ST_INIT_ZEROS, 0);
VALUE(ST_INIT_ONES, 1);
VALUE(ST_INIT_NORMAL, 2);
VALUE(ST_INIT_UNIFORM, 3);
VALUE(ST_INIT_XAVIER, 4);
VALUE(ST_INIT_KAIMING, 5);

VALUE(ST_LOG_ERROR, 0);
VALUE(ST_LOG_WARNING, 1);
VALUE(ST_LOG_INFO, 2);
VALUE(ST_LOG_DEBUG, 3);

VALUE(ST_MEMORY_PARAMETERS, 0);
VALUE(ST_MEMORY_GRADIENTS, 1);
VALUE(ST_MEMORY_OPTIMIZER, 2);
VALUE(ST_MEMORY_ACTIVATIONS, 3);
VALUE(ST_MEMORY_STASH, 4);
VALUE(ST_MEMORY_BUCKETS, 5);
VALUE(ST_MEMORY_PACKED, 6);
VALUE(ST_MEMORY_WORKSPACE, 7);
VALUE(ST_MEMORY_CONTROL, 8);
VALUE(ST_MEMORY_INPUTS, 9);
VALUE(ST_MEMORY_TENSORS, 10);
VALUE(ST_MEMORY_OTHER, 11);
VALUE(ST_MEMORY_FILE, 12);
VALUE(ST_MEMORY_HOST, 13);
VALUE(ST_MEMORY_ROLES, 16);

VALUE(ST_ATTRIBUTE_BOOL, 1);
VALUE(ST_ATTRIBUTE_INT, 2);
VALUE(ST_ATTRIBUTE_REAL, 3);
VALUE(ST_ATTRIBUTE_INTS, 4);
VALUE(ST_ATTRIBUTE_WORD, 5);

VALUE(ST_GEMM_ORDER_CHOOSE, 0);
VALUE(ST_GEMM_ORDER_N_K_M, 1);
VALUE(ST_GEMM_ORDER_N_M_K, 2);
VALUE(ST_GEMM_PACKING_CHOOSE, 0);
VALUE(ST_GEMM_PACKING_PACKED, 1);
VALUE(ST_GEMM_PACKING_IN_PLACE, 2);
VALUE(ST_ACTIVATION_NONE, 0);
VALUE(ST_ACTIVATION_RELU, 1);
VALUE(ST_ACTIVATION_GELU_TANH, 2);
VALUE(ST_ACTIVATION_GELU_ERF, 3);
VALUE(ST_ACTIVATION_SILU, 4);

HOLDS(value_of_ST_BATCH, ST_BATCH == -1);

/* A symbol that shows the linker that this file was compiled. */
int layout_holds(void) { return 1; }
