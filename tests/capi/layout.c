/* The layout of every public struct and the value of every pinned enum, held by the compiler: a change that breaks programs built against
 * the header before does not compile. Structs grow at the end only: new lines may be added, standing ones are never changed. For LP64. */
#include <scaletrain/scaletrain.h>

#define HOLDS(name, condition) typedef char name[(condition) ? 1 : -1]
#define SIZE(type, bytes) HOLDS(size_of_##type, sizeof(type) == (bytes))
#define AT(type, field, offset) HOLDS(offset_of_##type##_##field, offsetof(type, field) == (offset))
#define VALUE(constant, number) HOLDS(value_of_##constant, (constant) == (number))

HOLDS(lp64, sizeof(void*) == 8 && sizeof(st_status) == 4 && sizeof(st_dtype) == 4 && sizeof(st_value) == 4);

SIZE(st_error_info, 72);
AT(st_error_info, struct_size, 0);
AT(st_error_info, status, 4);
AT(st_error_info, op, 8);
AT(st_error_info, tensor, 16);
AT(st_error_info, file, 24);
AT(st_error_info, host, 32);
AT(st_error_info, collective, 40);
AT(st_error_info, offset, 48);
AT(st_error_info, step, 56);
AT(st_error_info, rank, 64);
AT(st_error_info, reserved, 68);

SIZE(st_context_options, 96);
AT(st_context_options, struct_size, 0);
AT(st_context_options, threads, 4);
AT(st_context_options, device, 8);
AT(st_context_options, memory_limit, 16);
AT(st_context_options, log, 24);
AT(st_context_options, log_user, 32);
AT(st_context_options, parallel, 40);
AT(st_context_options, parallel_user, 48);
AT(st_context_options, alloc, 56);
AT(st_context_options, free, 64);
AT(st_context_options, memory_user, 72);
AT(st_context_options, tuning_cache, 80);
AT(st_context_options, late_parameters, 88);
AT(st_context_options, reserved, 92);

SIZE(st_memory_stats, 304);
AT(st_memory_stats, struct_size, 0);
AT(st_memory_stats, reserved, 4);
AT(st_memory_stats, allocated_bytes, 8);
AT(st_memory_stats, available_bytes, 16);
AT(st_memory_stats, resident_bytes, 24);
AT(st_memory_stats, peak_bytes, 32);
AT(st_memory_stats, limit_bytes, 40);
AT(st_memory_stats, role_bytes, 48);
AT(st_memory_stats, role_peak_bytes, 176);

SIZE(st_view, 40); /* frozen */
AT(st_view, dtype, 0);
AT(st_view, rank, 4);
AT(st_view, dims, 8);
AT(st_view, strides, 16);
AT(st_view, data, 24);
AT(st_view, bytes, 32);

SIZE(st_named_view, 48); /* frozen */
AT(st_named_view, name, 0);
AT(st_named_view, view, 8);

SIZE(st_parameter_info, 88);
AT(st_parameter_info, struct_size, 0);
AT(st_parameter_info, dtype, 4);
AT(st_parameter_info, name, 8);
AT(st_parameter_info, rank, 16);
AT(st_parameter_info, trainable, 20);
AT(st_parameter_info, dims, 24);

SIZE(st_generate_options, 40);
AT(st_generate_options, struct_size, 0);
AT(st_generate_options, reserved, 4);
AT(st_generate_options, tokens, 8);
AT(st_generate_options, temperature, 16);
AT(st_generate_options, top_k, 24);
AT(st_generate_options, seed, 32);

SIZE(st_step_report, 104);
AT(st_step_report, struct_size, 0);
AT(st_step_report, skipped, 4);
AT(st_step_report, step, 8);
AT(st_step_report, loss, 16);
AT(st_step_report, lr, 24);
AT(st_step_report, grad_norm, 32);
AT(st_step_report, loss_scale, 40);
AT(st_step_report, tokens, 48);
AT(st_step_report, tokens_per_second, 56);
AT(st_step_report, milliseconds, 64);
AT(st_step_report, memory_bytes, 72);
AT(st_step_report, gradient_noise_scale, 80);
AT(st_step_report, save_error, 88);
AT(st_step_report, saved_step, 96);

SIZE(st_evaluation, 40);
AT(st_evaluation, struct_size, 0);
AT(st_evaluation, reserved, 4);
AT(st_evaluation, loss, 8);
AT(st_evaluation, count, 16);
AT(st_evaluation, metric_count, 24);
AT(st_evaluation, metrics, 32);

SIZE(st_field, 24);
AT(st_field, name, 0);
AT(st_field, dtype, 8);
AT(st_field, rank, 12);
AT(st_field, dims, 16);

SIZE(st_attribute, 48);
AT(st_attribute, name, 0);
AT(st_attribute, type, 8);
AT(st_attribute, count, 12);
AT(st_attribute, integer, 16);
AT(st_attribute, real, 24);
AT(st_attribute, integers, 32);
AT(st_attribute, word, 40);

SIZE(st_value_info, 80);
AT(st_value_info, struct_size, 0);
AT(st_value_info, dtype, 4);
AT(st_value_info, rank, 8);
AT(st_value_info, reserved, 12);
AT(st_value_info, dims, 16);

SIZE(st_op_type, 72);
AT(st_op_type, dtype, 0);
AT(st_op_type, rank, 4);
AT(st_op_type, dims, 8);

SIZE(st_op_callbacks, 32);
AT(st_op_callbacks, struct_size, 0);
AT(st_op_callbacks, outputs, 4);
AT(st_op_callbacks, shape, 8);
AT(st_op_callbacks, forward, 16);
AT(st_op_callbacks, backward, 24);

SIZE(st_rename, 16);
AT(st_rename, from, 0);
AT(st_rename, to, 8);

SIZE(st_read_options, 48);
AT(st_read_options, struct_size, 0);
AT(st_read_options, partial, 4);
AT(st_read_options, rename_count, 8);
AT(st_read_options, renames, 16);
AT(st_read_options, name_count, 24);
AT(st_read_options, names, 32);
AT(st_read_options, overwrite, 40);
AT(st_read_options, reserved, 44);

SIZE(st_read_report, 48);
AT(st_read_report, struct_size, 0);
AT(st_read_report, reserved, 4);
AT(st_read_report, read, 8);
AT(st_read_report, missing_count, 16);
AT(st_read_report, unexpected_count, 24);
AT(st_read_report, missing, 32);
AT(st_read_report, unexpected, 40);

SIZE(st_predictor_options, 16);
AT(st_predictor_options, struct_size, 0);
AT(st_predictor_options, shared, 4);
AT(st_predictor_options, threads, 8);
AT(st_predictor_options, reserved, 12);

SIZE(st_metric, 16);
AT(st_metric, name, 0);
AT(st_metric, mean, 8);

SIZE(st_loss_scaler_options, 72);
AT(st_loss_scaler_options, struct_size, 0);
AT(st_loss_scaler_options, enabled, 4);
AT(st_loss_scaler_options, dynamic, 8);
AT(st_loss_scaler_options, threads, 12);
AT(st_loss_scaler_options, initial_scale, 16);
AT(st_loss_scaler_options, growth_factor, 24);
AT(st_loss_scaler_options, backoff_factor, 32);
AT(st_loss_scaler_options, growth_interval, 40);
AT(st_loss_scaler_options, minimum_scale, 48);
AT(st_loss_scaler_options, hysteresis, 56);
AT(st_loss_scaler_options, consecutive_hysteresis, 64);

SIZE(st_optimizer_report, 32);
AT(st_optimizer_report, struct_size, 0);
AT(st_optimizer_report, skipped, 4);
AT(st_optimizer_report, step, 8);
AT(st_optimizer_report, lr, 16);
AT(st_optimizer_report, norm, 24);

SIZE(st_gemm_problem, 128);
AT(st_gemm_problem, struct_size, 0);
AT(st_gemm_problem, a_dtype, 4);
AT(st_gemm_problem, b_dtype, 8);
AT(st_gemm_problem, c_dtype, 12);
AT(st_gemm_problem, m, 16);
AT(st_gemm_problem, n, 24);
AT(st_gemm_problem, k, 32);
AT(st_gemm_problem, batch, 40);
AT(st_gemm_problem, a_row, 48);
AT(st_gemm_problem, a_column, 56);
AT(st_gemm_problem, b_row, 64);
AT(st_gemm_problem, b_column, 72);
AT(st_gemm_problem, c_row, 80);
AT(st_gemm_problem, c_column, 88);
AT(st_gemm_problem, a_batch, 96);
AT(st_gemm_problem, b_batch, 104);
AT(st_gemm_problem, c_batch, 112);
AT(st_gemm_problem, shared_a, 120);
AT(st_gemm_problem, shared_b, 124);

SIZE(st_gemm_schedule, 80);
AT(st_gemm_schedule, struct_size, 0);
AT(st_gemm_schedule, threads, 4);
AT(st_gemm_schedule, tile_m, 8);
AT(st_gemm_schedule, tile_n, 16);
AT(st_gemm_schedule, tile_k, 24);
AT(st_gemm_schedule, block_m, 32);
AT(st_gemm_schedule, block_n, 40);
AT(st_gemm_schedule, micro_m, 48);
AT(st_gemm_schedule, order, 56);
AT(st_gemm_schedule, packing, 60);
AT(st_gemm_schedule, max_scratch_bytes, 64);
AT(st_gemm_schedule, tune_ms, 72);
AT(st_gemm_schedule, library, 76);

SIZE(st_gemm_info, 128);
AT(st_gemm_info, struct_size, 0);
AT(st_gemm_info, adjusted, 4);
AT(st_gemm_info, tile_m, 8);
AT(st_gemm_info, tile_n, 16);
AT(st_gemm_info, tile_k, 24);
AT(st_gemm_info, block_m, 32);
AT(st_gemm_info, block_n, 40);
AT(st_gemm_info, micro_m, 48);
AT(st_gemm_info, micro_n, 56);
AT(st_gemm_info, order, 64);
AT(st_gemm_info, packing, 68);
AT(st_gemm_info, threads, 72);
AT(st_gemm_info, source, 76);
AT(st_gemm_info, instruction_set, 80);
AT(st_gemm_info, scratch_bytes, 88);
AT(st_gemm_info, packed_bytes, 96);
AT(st_gemm_info, flops_per_second, 104);
AT(st_gemm_info, predicted_flops_per_second, 112);
AT(st_gemm_info, library, 120);

SIZE(st_epilogue, 48);
AT(st_epilogue, struct_size, 0);
AT(st_epilogue, activation, 4);
AT(st_epilogue, bias, 8);
AT(st_epilogue, pre_activation, 16);
AT(st_epilogue, derivative_at, 24);
AT(st_epilogue, residual, 32);
AT(st_epilogue, column_sums, 40);

SIZE(st_communicator_options, 24);
AT(st_communicator_options, struct_size, 0);
AT(st_communicator_options, reserved, 4);
AT(st_communicator_options, deadline_milliseconds, 8);
AT(st_communicator_options, start_milliseconds, 16);

SIZE(st_transport_callbacks, 40);
AT(st_transport_callbacks, struct_size, 0);
AT(st_transport_callbacks, reserved, 4);
AT(st_transport_callbacks, write, 8);
AT(st_transport_callbacks, read, 16);
AT(st_transport_callbacks, reason, 24);
AT(st_transport_callbacks, release, 32);

SIZE(st_distributed_sampler_options, 32);
AT(st_distributed_sampler_options, struct_size, 0);
AT(st_distributed_sampler_options, shuffle, 4);
AT(st_distributed_sampler_options, rank, 8);
AT(st_distributed_sampler_options, size, 12);
AT(st_distributed_sampler_options, seed, 16);
AT(st_distributed_sampler_options, last, 24);
AT(st_distributed_sampler_options, reserved, 28);

SIZE(st_data_parallel_options, 16);
AT(st_data_parallel_options, struct_size, 0);
AT(st_data_parallel_options, op, 4);
AT(st_data_parallel_options, bucket_bytes, 8);

SIZE(st_sharded_optimizer_options, 24);
AT(st_sharded_optimizer_options, struct_size, 0);
AT(st_sharded_optimizer_options, stage, 4);
AT(st_sharded_optimizer_options, op, 8);
AT(st_sharded_optimizer_options, masters_in_pieces, 12);
AT(st_sharded_optimizer_options, bucket_bytes, 16);

SIZE(st_checkpoint_options, 64);
AT(st_checkpoint_options, struct_size, 0);
AT(st_checkpoint_options, read_only, 4);
AT(st_checkpoint_options, keep_last, 8);
AT(st_checkpoint_options, keep_every, 16);
AT(st_checkpoint_options, keep_best, 24);
AT(st_checkpoint_options, best, 32);
AT(st_checkpoint_options, best_is_higher, 40);
AT(st_checkpoint_options, queue, 44);
AT(st_checkpoint_options, bytes_per_second, 48);
AT(st_checkpoint_options, file_bytes, 56);

SIZE(st_load_report, 104);
AT(st_load_report, struct_size, 0);
AT(st_load_report, reserved, 4);
AT(st_load_report, step, 8);
AT(st_load_report, name, 16);
AT(st_load_report, metadata, 24);
AT(st_load_report, read, 32);
AT(st_load_report, missing_count, 40);
AT(st_load_report, unexpected_count, 48);
AT(st_load_report, skipped_count, 56);
AT(st_load_report, changed_count, 64);
AT(st_load_report, missing, 72);
AT(st_load_report, unexpected, 80);
AT(st_load_report, skipped, 88);
AT(st_load_report, changed, 96);

SIZE(st_save_progress, 72);
AT(st_save_progress, struct_size, 0);
AT(st_save_progress, reserved, 4);
AT(st_save_progress, bytes_done, 8);
AT(st_save_progress, bytes_all, 16);
AT(st_save_progress, waiting, 24);
AT(st_save_progress, saved, 32);
AT(st_save_progress, failed, 40);
AT(st_save_progress, saved_step, 48);
AT(st_save_progress, blocked_seconds, 56);
AT(st_save_progress, write_seconds, 64);

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

/* One place for the linker to see that this file was compiled. */
int layout_holds(void) { return 1; }
