#include "call_arguments.h"

#include <array>

namespace st::fuzz {

void write_to(World& world, int64_t n, const st_named_view* views) {
  for (int64_t i = 0; i < n; ++i)
    if (views[i].view.bytes > 0) std::memset(views[i].view.data, world.bytes.rarely(4) ? world.bytes.next() : 0, 1);
}

const char* json(World& world) {
  static const std::array<const char*, 20> kTexts = {nullptr,
                                                     "",
                                                     "{}",
                                                     "[]",
                                                     "null",
                                                     "{\"",
                                                     R"({"outputs": 3})",
                                                     R"({"vocabulary": 16, "width": 4})",
                                                     R"({"heads": 2, "groups": 1, "rope": true})",
                                                     R"({"hidden": [4], "outputs": 2})",
                                                     R"({"rate": 0.5})",
                                                     R"({"kind": "rms"})",
                                                     R"({"axis": -1})",
                                                     R"({"axes": [0, 1], "keep_dims": true})",
                                                     R"({"outputs": -1})",
                                                     R"({"outputs": 1e300})",
                                                     R"({"rate": NaN})",
                                                     "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
                                                     R"({"shape": [-1, 9223372036854775807]})",
                                                     R"({"context": 4})"};
  return world.bytes.pick(kTexts);
}

const char* setting(World& world) {
  static const std::array<const char*, 14> kTexts = {"0.01",       "1",          "2",    "0",           "-1", "1e308", "\"adamw\"",
                                                     "\"cosine\"", "\"linear\"", "true", "\"0:1 5:2\"", "{",  "",      nullptr};
  return world.bytes.pick(kTexts);
}

const char* key(World& world) {
  static const std::array<const char*, 17> kKeys = {"lr",     "lr_steps",    "lr_min",       "lr_table",  "batch",  "accumulate",
                                                    "warmup", "lr_schedule", "optimizer",    "clip",      "seed",   "",
                                                    "batc",   nullptr,       "weight_decay", "precision", "dropout"};
  return world.bytes.pick(kKeys);
}

std::string path(World& world, const char* side) {
  static const std::array<const char*, 8> kFiles = {"a", "b", "text.txt", "short.txt", "broken.safetensors", "", "none/there", "\xff"};
  return World::folder() + "/" + side + "/" + world.bytes.pick(kFiles);
}

st_value value(World& world) {
  if (world.bytes.rarely()) return static_cast<st_value>(world.number());
  return world.bytes.pick(world.values);
}

void keep_value(World& world, const char* call, st_status status, const st_value& made) {  // read after the call
  if (world.ok(call, status) && world.values.size() < 64) world.values.push_back(made);
}

void released(void* user) { ++static_cast<World*>(user)->released; }

}  // namespace st::fuzz
