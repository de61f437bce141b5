/* Data: rows that training draws from, in an endless shuffled stream that is a function of the seed alone. */
#ifndef SCALETRAIN_DATA_H
#define SCALETRAIN_DATA_H

#include <scaletrain/context.h>

ST_BEGIN

typedef struct st_data st_data;

/* path: a UTF-8 text file, a folder of them (bytes are tokens), or a token file (runtime/data/README.md). json: {"context": 64}: tokens in
 * a row. Fields "tokens" and "targets", i32 [context]. Files are mapped: while data or a trainer of it lives they may be replaced (renamed
 * over) but not shortened in place, which the system answers with a SIGBUS. */
ST_API st_status st_data_files(st_context* context, const char* path, const char* json, st_data** data);
ST_API st_status st_data_destroy(st_data* data);

/* Two new handles over the same source; the last `fraction` of the tokens validates, between 0 and 1 and at least one row on each side. */
ST_API st_status st_data_split(st_data* data, double fraction, st_data** train, st_data** validation);

ST_API st_status st_data_rows(st_data* data, int64_t* rows);
ST_API st_status st_data_vocabulary(st_data* data, int64_t* vocabulary);

/* What a table of token pairs, counted on `train`, makes of `validation`: nats a token. A model that learned anything is below. */
ST_API st_status st_data_bigram_loss(st_data* train, st_data* validation, double* loss);

ST_END
#endif
