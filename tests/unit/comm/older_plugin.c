/* A plug-in of an earlier interface: its table is shorter. */
#include <scaletrain/transport.h>
#include <stddef.h>

ST_API const st_plugin* st_plugin_v1(void);

const st_plugin* st_plugin_v1(void) {
  static const st_plugin table = {offsetof(st_plugin, open), ST_PLUGIN_ABI - 1, "older", "0.0.7", "nothing", NULL};
  return &table;
}
