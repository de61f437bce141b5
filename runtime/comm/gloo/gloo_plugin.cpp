// The exports of libscaletrain_gloo.so.
#include <gloo/config.h>
#include <scaletrain/transport.h>

#include "comm/gloo/gloo_pipes.h"
#include "comm/plugin_side/plugin_functions.h"

#define ST_WORD(x) #x
#define ST_DOTTED(a, b, c) ST_WORD(a) "." ST_WORD(b) "." ST_WORD(c)

extern "C" ST_API const st_plugin* st_plugin_v1(void);

const st_plugin* st_plugin_v1(void) {
  static constexpr st_plugin kPlugin =
      st::plugin::make_plugin<st::plugin::GlooPipes>("gloo", "Gloo " ST_DOTTED(GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH));
  return &kPlugin;
}
