#include "base/json.h"
#include "base/os.h"
#include "guard.h"
#include "ir/op.h"
#include "objects.h"

using namespace st;
using namespace st::capi;

namespace {

#define ST_TEXT(x) #x
#define ST_VERSION_TEXT(a, b, c) ST_TEXT(a) "." ST_TEXT(b) "." ST_TEXT(c)
constexpr const char* kVersion = ST_VERSION_TEXT(ST_VERSION_MAJOR, ST_VERSION_MINOR, ST_VERSION_PATCH);

Json ops() {
  Json list = Json::array();
  for (int32_t i = 0; i < kOps; ++i) {
    const OpInfo& info = info_of(static_cast<Op>(i));
    Json row;
    row["name"] = info.name;
    for (const OpInput& input : info.inputs) row["inputs"].push_back(input.name + (input.optional ? "?" : input.variadic ? "*" : ""));
    row["outputs"] = info.outputs;
    for (const OpAttr& attr : info.attrs) row["attributes"][attr.name] = attr.required ? "required" : text_of(attr.standard);
    row["help"] = info.help;
    list.push_back(row);
  }
  return list;
}

Json devices() {
  Json list = Json::array();
  for (const char* device : {"cpu", "reference"}) {
    Json row;
    row["name"] = device;
    try {
      const Context context({.device = device, .threads = 1, .memory_limit = 0, .log = {}, .parallel = {}});
      row["available"] = true;
      row["kernels"] = context.backend().kernel_class();
    } catch (const Error& error) {
      row["available"] = false;
      row["why"] = error.message();
    }
    list.push_back(row);
  }
  list.push_back({{"name", "cuda"}, {"available", false}, {"why", "this version has no CUDA plug-in yet"}});
  return list;
}

}  // namespace

st_status st_require(int32_t major, int32_t minor) {
  return guard([&] {
    // Before 1.0 each minor version is an ABI of its own; from then on they only grow.
    const bool fits = major == ST_VERSION_MAJOR && (ST_VERSION_MAJOR == 0 ? minor == ST_VERSION_MINOR : minor <= ST_VERSION_MINOR);
    require(fits, Code::unsupported, "st_require: the program was written for ", major, ".", minor, ", this library is ", kVersion);
  });
}

st_status st_version(const char** out) {
  return guard([&] { given(out, "st_version: text") = kVersion; });
}

st_status st_features(const char** json) {
  return guard([&] {
    static thread_local std::string answer;
    const os::CpuIdentity& cpu = os::cpu();
    Json features;
    features["version"] = kVersion;
    features["devices"] = devices();
    features["cpu"] = {{"vendor", cpu.vendor},     {"brand", cpu.brand},       {"family", cpu.family},           {"model", cpu.model},
                       {"avx2_fma", cpu.avx2_fma}, {"avx512", cpu.avx512},     {"avx512_bf16", cpu.avx512_bf16}, {"amx_bf16", cpu.amx_bf16},
                       {"l1_bytes", cpu.l1_bytes}, {"l2_bytes", cpu.l2_bytes}, {"l3_bytes", cpu.l3_bytes}};
    features["cores"] = os::available_cores();
    features["memory_bytes"] = os::available_memory();
    features["ops"] = ops();
    answer = features.dump();
    given(json, "st_features: json") = answer.c_str();
  });
}

st_status st_live_handles(const char* kind, int64_t* count) {
  return guard([&] {
    int64_t sum = 0;
    bool known = kind == nullptr;
    for (int32_t k = 0; k < kKinds; ++k) {
      if (kind != nullptr && name_of(static_cast<Kind>(k)) != kind) continue;
      known = true;
      sum += live(static_cast<Kind>(k));
    }
    check(known, "st_live_handles: there is no kind \"", kind == nullptr ? "" : kind, "\"");
    given(count, "st_live_handles: count") = sum;
  });
}
