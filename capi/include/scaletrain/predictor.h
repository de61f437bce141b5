/* A predictor: forward passes of a model. */
#ifndef SCALETRAIN_PREDICTOR_H
#define SCALETRAIN_PREDICTOR_H

#include <scaletrain/model.h>

ST_BEGIN

typedef struct st_predictor st_predictor;

/* Reads the model's weights as they are at each call; a call while a step writes them is ST_BUSY. */
ST_API st_status st_predictor_create(st_model* model, st_predictor** predictor);
ST_API st_status st_predictor_destroy(st_predictor* predictor);

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
 * the text, without error; the model is ST_BUSY in it. options NULL: the defaults. */
typedef st_status (*st_on_token_fn)(void* user, int32_t token);
ST_API st_status st_predictor_generate(st_predictor* predictor, int64_t n, const int32_t* tokens, const st_generate_options* options,
                                       st_on_token_fn on_token, void* user);

ST_END
#endif
