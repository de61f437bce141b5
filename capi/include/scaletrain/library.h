/* The library itself: version, features, live handles. */
#ifndef SCALETRAIN_LIBRARY_H
#define SCALETRAIN_LIBRARY_H

#include <scaletrain/error.h>

ST_BEGIN

/* Fails with ST_UNSUPPORTED if this library cannot serve a program built for major.minor. Call it first. */
ST_API st_status st_require(int32_t major, int32_t minor);

/* "0.1.0"; never freed. */
ST_API st_status st_version(const char** text);

/* JSON: version, devices with their number, transports between ranks (each with the reason if it is missing), ops, instruction sets, cores,
 * memory, and as "machine" what a plan depends on of this machine's cpu. It loads plug-ins of devices and opens the first device of each.
 * Valid until this thread's next call. */
ST_API st_status st_features(const char** json);

/* Counts handles that are not destroyed yet, of one kind ("context", "graph", "model", "data", "recipe", "trainer", "predictor", "tensor",
 * "pending", "gemm", "packed", "schedule", "loss_scaler", "optimizer", "accumulator", "checkpoint", "communicator", "distributed_sampler",
 * "data_parallel", "sharded_optimizer", "pipeline", "plan") or of all (NULL). */
ST_API st_status st_live_handles(const char* kind, int64_t* count);

ST_END
#endif
