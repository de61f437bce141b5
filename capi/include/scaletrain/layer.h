/* Layers: parameters and their op under one scope. options: a JSON object or NULL; an unknown key is refused, and the error names the
 * nearest. A failed call gives 0 and propagates the first error, like every call that makes values. */
#ifndef SCALETRAIN_LAYER_H
#define SCALETRAIN_LAYER_H

#include <scaletrain/graph.h>

ST_BEGIN

/* x [..., K] -> y [..., N] = x weight + bias. {"outputs": N, "bias": true, "init": "xavier"|"kaiming"|"normal"|"zeros", "scale": 1}.
 * Parameters name.weight [K, N], name.bias [N]. */
ST_API st_status st_layer_linear(st_graph* graph, const char* name, st_value x, const char* options, st_value* y);
/* tokens i32 or i64 [...] -> y [..., C]. {"vocabulary": V, "width": C, "scale": 0.02}. Parameter name.weight [V, C]. */
ST_API st_status st_layer_embedding(st_graph* graph, const char* name, st_value tokens, const char* options, st_value* y);
/* Over the last dimension. {"kind": "layer"|"rms", "epsilon": 1e-5}. Parameters name.gamma, and name.beta of kind layer. */
ST_API st_status st_layer_norm(st_graph* graph, const char* name, st_value x, const char* options, st_value* y);
/* Self-attention, x [batch, T, C] -> y [batch, T, C]. {"heads": H, "groups": H, "causal": true, "rope": false, "bias": true}: groups (of
 * keys and values, Ainslie et al. 2023) divide heads, heads divide C. Parameters name.qkv.weight [C, C + 2 C G / H], name.projection.weight
 * [C, C], both initialised as xavier, and their biases. */
ST_API st_status st_layer_attention(st_graph* graph, const char* name, st_value x, const char* options, st_value* y);
/* x [..., K] -> y [..., N] over hidden layers. {"hidden": [H, ...], "outputs": N, "activation": "gelu"|"relu"|"silu"|"tanh"}. Parameters
 * name.<i>.weight, initialised as kaiming for the activation, the last as xavier, and name.<i>.bias. */
ST_API st_status st_layer_mlp(st_graph* graph, const char* name, st_value x, const char* options, st_value* y);
/* In training a share of x becomes 0 and the rest is scaled up; in evaluation and prediction y is x. {"rate": 0}: 0 takes the recipe's
 * rate. The bits depend on seed, step and row, not on the number of threads, ranks or micro-batches. */
ST_API st_status st_layer_dropout(st_graph* graph, const char* name, st_value x, const char* options, st_value* y);

ST_END
#endif
