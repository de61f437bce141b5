/* A predictor: forward passes of a model. */
#ifndef SCALETRAIN_PREDICTOR_H
#define SCALETRAIN_PREDICTOR_H

#include <scaletrain/model.h>

ST_BEGIN

typedef struct st_predictor st_predictor;

typedef struct st_predictor_options {
  uint32_t struct_size;
  int32_t shared;  /* 0: a snapshot of its own, taken now and by refresh; 1: the model's weights as they are, without a copy */
  int32_t threads; /* of one run; default 1: concurrent runs are what threads are for here */
  int32_t reserved;
} st_predictor_options;
ST_API st_status st_predictor_options_init(st_predictor_options* options, size_t size);

/* options NULL: the defaults. Of a model that ranks have in pieces (model.h) all ranks make one, and then the
 * same refreshes, runs and generates, whose forward passes gather what they need scope by scope; each keeps the communicator, which is
 * ST_BUSY meanwhile. Ranks may run rows of their own, as many as each likes, for the same outputs, and continue texts of their own by the
 * same number of tokens, which end together where one ends. The bits are those of one rank. */
ST_API st_status st_predictor_create(st_model* model, const st_predictor_options* options, st_predictor** predictor);
ST_API st_status st_predictor_destroy(st_predictor* predictor);

/* One forward pass, dropout off, from any number of threads at once, also while a trainer steps. inputs: n named views, the model's inputs
 * that the wanted outputs depend on, with any number of rows, the same in all; outputs: m named views, filled, of the graph's outputs with
 * as many rows: each in memory of its own or in columns of one table, and they may replace inputs. Each run sees the weights of one whole
 * step. With shared weights a run is ST_BUSY while a step writes them. The first run with a new number of rows plans; later ones allocate
 * nothing. */
ST_API st_status st_predictor_run(st_predictor* predictor, int64_t n, const st_named_view* inputs, int64_t m, const st_named_view* outputs);
/* Takes a new snapshot: the newest whole step. Runs that have begun keep the old one. ST_BUSY while st_trainer_advance has left an update
 * half done. From any thread. */
ST_API st_status st_predictor_refresh(st_predictor* predictor);

typedef struct st_generate_options {
  uint32_t struct_size;
  int32_t reserved;
  int64_t tokens;     /* at most; default 200 */
  double temperature; /* default 0.8; 0: always the likeliest */
  int64_t top_k;      /* default 40; 0: all */
  int64_t seed;       /* default 0 */
} st_generate_options;

ST_API st_status st_generate_options_init(st_generate_options* options, size_t size);

/* Continues n tokens of a model with input "tokens" and output "logits"; on_token gets each new one, and anything but ST_OK from it ends
 * the text, without error. options NULL: the defaults. */
typedef st_status (*st_on_token_fn)(void* user, int32_t token);
ST_API st_status st_predictor_generate(st_predictor* predictor, int64_t n, const int32_t* tokens, const st_generate_options* options,
                                       st_on_token_fn on_token, void* user);

ST_END
#endif
