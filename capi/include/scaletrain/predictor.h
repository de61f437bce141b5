/* A predictor: runs forward passes of a model. */
#ifndef SCALETRAIN_PREDICTOR_H
#define SCALETRAIN_PREDICTOR_H

#include <scaletrain/model.h>

ST_BEGIN

typedef struct st_predictor st_predictor;

typedef struct st_predictor_options {
  uint32_t struct_size;
  int32_t shared;  /* 0: its own snapshot, taken now and by refresh; 1: the model's present weights, without a copy */
  int32_t threads; /* of one run; default 1, since several runs may be concurrent */
  int32_t reserved;
} st_predictor_options;
ST_API st_status st_predictor_options_init(st_predictor_options* options, size_t size);

/* options NULL: the defaults. A predictor of st_predictor_create makes all its calls alone; ST_WRONG_STATE if the model is sharded
 * (model.h). With one of st_predictor_create_collective, all ranks make the same refreshes, runs and generates, too. If the model is
 * sharded:
 * - They gather parameters scope by scope. The predictor keeps the communicator alive, which is ST_BUSY during these calls.
 * - Each rank may run any number of its own rows, for the same outputs, and continue its own text by the same number of tokens; all texts
 *   end when one ends. The bits are those of one rank. */
ST_API st_status st_predictor_create(st_model* model, const st_predictor_options* options, st_predictor** predictor);
ST_API st_status st_predictor_create_collective(st_model* model, const st_predictor_options* options, st_predictor** predictor);
ST_API st_status st_predictor_destroy(st_predictor* predictor);

/* One forward pass, dropout off, from any number of threads at once, also while a trainer steps. Each run sees the weights of one whole
 * step.
 * - inputs: n named views, those of the model's inputs that the outputs depend on, all with the same number of rows.
 * - outputs: m named views, filled, of graph outputs with as many rows, each in its own memory or in columns of one table. They may
 *   overwrite inputs.
 * - With shared weights a run is ST_BUSY while a step writes them.
 * - The first run with a new number of rows makes a plan; later ones allocate nothing. */
ST_API st_status st_predictor_run(st_predictor* predictor, int64_t n, const st_named_view* inputs, int64_t m, const st_named_view* outputs);
/* Takes a new snapshot, of the newest whole step; running calls keep the old one. ST_BUSY while st_trainer_advance has left an update half
 * done. From any thread. */
ST_API st_status st_predictor_refresh(st_predictor* predictor);

typedef struct st_generate_options {
  uint32_t struct_size;
  int32_t reserved;
  int64_t tokens;     /* maximum; default 200 */
  double temperature; /* default 0.8; 0: always the most likely token */
  int64_t top_k;      /* default 40; 0: all */
  int64_t seed;       /* default 0 */
} st_generate_options;

ST_API st_status st_generate_options_init(st_generate_options* options, size_t size);

/* Continues n tokens by a model with input "tokens" and output "logits". on_token gets each new token; any status but ST_OK from it ends
 * the text, without an error. options NULL: the defaults. */
typedef st_status (*st_on_token_fn)(void* user, int32_t token);
ST_API st_status st_predictor_generate(st_predictor* predictor, int64_t n, const int32_t* tokens, const st_generate_options* options,
                                       st_on_token_fn on_token, void* user);

ST_END
#endif
