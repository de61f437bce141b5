/* Data: rows for training, in an endless shuffled stream that depends on the seed only. A trainer takes the fields named like its model's
 * inputs, which must have the inputs' dtype and shape; it ignores other fields. */
#ifndef SCALETRAIN_DATA_H
#define SCALETRAIN_DATA_H

#include <scaletrain/context.h>
#include <scaletrain/view.h>

ST_BEGIN

typedef struct st_data st_data;

/* path: a UTF-8 text file, a folder of them (bytes are tokens), or a token file (runtime/data/README.md). json: {"context": 64}, the tokens
 * of a row. Fields are "tokens" and "targets", i32 [context]. Files are memory-mapped: while the data or its trainer lives they may be
 * replaced (renamed over), but not shortened in place, which raises SIGBUS. */
ST_API st_status st_data_files(st_context* context, const char* path, const char* json, st_data** data);
ST_API st_status st_data_destroy(st_data* data);

/* The host's arrays, not copied (H): n named views whose first dimension is `rows`, row-major. They must not change until release(user),
 * which is called once, from any thread, when the data and everything that uses it are gone; not if this call fails. release may be
 * NULL. */
typedef void (*st_release_fn)(void* user);
ST_API st_status st_data_arrays(st_context* context, int64_t rows, int64_t n, const st_named_view* arrays, st_release_fn release,
                                void* user, st_data** data);

/* Rows that the host makes on demand: fill writes rows row_ids[0..k) into n views, in the order of `fields`, each [k, dims of the field...]
 * row-major. Names and dims are copied; release as above. st_field is frozen, like st_view, because arrays of it are passed.
 * - fill is called ahead of use, one call at a time however many trainers use the data, from threads of the library in the default
 *   floating-point mode. If the system gives no thread, st_trainer_evaluate calls it on its caller's, in the caller's mode.
 * - It may be slow: a step or evaluation that waits for rows can be cancelled, and an advance returns in time, not done. A cancelled
 *   evaluation may leave one call of fill running. Until that returns it keeps the data alive, and requests for other rows and the destroy
 *   of a trainer that uses or used the data wait for it.
 * - Any status but ST_OK ends the step or evaluation that needed the rows with ST_CALLBACK; the next one asks for them again.
 * - It may call the library, except for rows of the same data, which are ST_BUSY.
 * - The library chooses rows and order: for a step by the seed alone; an evaluation takes each row once, from row 0 on. */
typedef struct st_field {
  const char* name;
  st_dtype dtype;
  int32_t rank; /* of one row; 0: a scalar */
  const int64_t* dims;
} st_field;
typedef st_status (*st_fill_fn)(void* user, int64_t k, const int64_t* row_ids, int64_t n, const st_view* views);
ST_API st_status st_data_callback(st_context* context, int64_t rows, int64_t n, const st_field* fields, st_fill_fn fill,
                                  st_release_fn release, void* user, st_data** data);

/* Makes two new handles over the same source, with at least one row each; validation gets `fraction`, between 0 and 1. From files it is the
 * last part, whatever the seed, since windows of text overlap; from arrays and callbacks rows are drawn by the seed. */
ST_API st_status st_data_split(st_data* data, double fraction, int64_t seed, st_data** train, st_data** validation);

ST_API st_status st_data_rows(st_data* data, int64_t* rows);
/* Data from files only; others are ST_WRONG_STATE, also in st_data_bigram_loss. */
ST_API st_status st_data_vocabulary(st_data* data, int64_t* vocabulary);

/* Loss on `validation`, in nats a token, of a bigram table counted on `train`. A model that has learned anything is below it. */
ST_API st_status st_data_bigram_loss(st_data* train, st_data* validation, double* loss);

ST_END
#endif
