/* Data: rows that training draws from, in an endless shuffled stream that is a function of the seed alone. A trainer takes the fields that
 * its model's inputs are named like, of the inputs' dtype and shape; other fields are left aside. */
#ifndef SCALETRAIN_DATA_H
#define SCALETRAIN_DATA_H

#include <scaletrain/context.h>
#include <scaletrain/view.h>

ST_BEGIN

typedef struct st_data st_data;

/* path: a UTF-8 text file, a folder of them (bytes are tokens), or a token file (runtime/data/README.md). json: {"context": 64}: tokens in
 * a row. Fields "tokens" and "targets", i32 [context]. Files are mapped: while data or a trainer of it lives they may be replaced (renamed
 * over) but not shortened in place, which the system answers with a SIGBUS. */
ST_API st_status st_data_files(st_context* context, const char* path, const char* json, st_data** data);
ST_API st_status st_data_destroy(st_data* data);

/* Arrays of the host, not copied: n named views whose first dimension is `rows`, row-major. They must stay as they are until
 * release(user), which is called once, when the data and all that uses it is gone, from any thread; not when this call fails. release may
 * be NULL. */
typedef void (*st_release_fn)(void* user);
ST_API st_status st_data_arrays(st_context* context, int64_t rows, int64_t n, const st_named_view* arrays, st_release_fn release,
                                void* user, st_data** data);

/* Rows that the host makes when they are wanted: fill writes rows row_ids[0..k) into n views, in the order of `fields`, each [k, dims of
 * the field...] row-major. Called ahead of their use, from threads of the library's, in the default floating-point mode (out of
 * st_trainer_evaluate, in its caller's, only where the system gives no thread); one call at a time, however many trainers draw from it. It
 * may take its time: a step or an evaluation that waits for rows can be cancelled, and an advance returns in time, not done. What a
 * cancelled evaluation leaves behind is that one call: until it returns it keeps the data, who wants other rows of it waits, and so does
 * the destroy of a trainer that draws or drew from it, for ever when it never does. Anything but ST_OK ends the step or evaluation
 * that wanted the rows with ST_CALLBACK, and the next one asks for them again. It may call the library, but inside it rows of the same data
 * are ST_BUSY. Which rows a step takes, in which order, stays the library's: a function of the seed alone; an evaluation takes each once,
 * from row 0 on. Names and dims are copied; release as above. st_field is frozen, like st_view: an array of it is passed. */
typedef struct st_field {
  const char* name;
  st_dtype dtype;
  int32_t rank; /* of one row: 0 for a number */
  const int64_t* dims;
} st_field;
typedef st_status (*st_fill_fn)(void* user, int64_t k, const int64_t* row_ids, int64_t n, const st_view* views);
ST_API st_status st_data_callback(st_context* context, int64_t rows, int64_t n, const st_field* fields, st_fill_fn fill,
                                  st_release_fn release, void* user, st_data** data);

/* Two new handles over the same source, at least one row on each side; fraction, between 0 and 1, validates. Of files the last part, whole
 * and whatever the seed, since windows of text overlap; of arrays and callbacks rows drawn by the seed. */
ST_API st_status st_data_split(st_data* data, double fraction, int64_t seed, st_data** train, st_data** validation);

ST_API st_status st_data_rows(st_data* data, int64_t* rows);
/* Of files; others are ST_WRONG_STATE, here and in st_data_bigram_loss. */
ST_API st_status st_data_vocabulary(st_data* data, int64_t* vocabulary);

/* What a table of token pairs, counted on `train`, makes of `validation`: nats a token. A model that learned anything is below. */
ST_API st_status st_data_bigram_loss(st_data* train, st_data* validation, double* loss);

ST_END
#endif
