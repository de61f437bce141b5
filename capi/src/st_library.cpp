#include <cstdlib>
#include <cstring>

#include "backend/device_registry.h"
#include "backend/needs.h"
#include "base/json_line.h"
#include "base/os/cpu.h"
#include "base/os/files.h"
#include "base/os/machine.h"
#include "comm/plugins/transport_plugin.h"
#include "guard.h"
#include "host_face.h"
#include "object_handles.h"
#include "parts/context.h"
#include "thread_text.h"

using namespace st;
using namespace st::capi;

namespace {

#define ST_TEXT(x) #x
#define ST_VERSION_TEXT(a, b, c) ST_TEXT(a) "." ST_TEXT(b) "." ST_TEXT(c)
constexpr const char* kVersion = ST_VERSION_TEXT(ST_VERSION_MAJOR, ST_VERSION_MINOR, ST_VERSION_PATCH);

std::string inputs_of(const OpInfo& op) {
  std::vector<std::string> list;
  for (const OpInput& input : op.inputs)
    append_json_string(list.emplace_back(), input.name + (input.optional ? "?" : input.variadic ? "*" : ""));
  return json_list(list);
}

std::string outputs_of(const OpInfo& op) {
  std::vector<std::string> list;
  for (const std::string& output : op.outputs) append_json_string(list.emplace_back(), output);
  return json_list(list);
}

std::string attributes_of(const OpInfo& op) {
  JsonLine object;
  for (const OpAttr& attr : op.attrs) object.add(attr.name, attr.required ? "required" : text_of(attr.standard));
  return object.text();
}

std::string ops() {
  std::vector<std::string> list;
  for (int32_t i = 0; i < kOps; ++i) {
    const OpInfo info = host_face(static_cast<Op>(i));
    JsonLine row;
    row.add("name", info.name);
    if (!info.inputs.empty()) row.add_json("inputs", inputs_of(info));
    row.add_json("outputs", outputs_of(info));
    if (!info.attrs.empty()) row.add_json("attributes", attributes_of(info));
    list.push_back(row.add("help", info.help).text());
  }
  return json_list(list);
}

std::string not_there(const char* name, const char* why) {
  JsonLine row;
  return row.add("name", name).add("available", false).add("why", why).text();
}

/// Opens the first of each kind: what fails then is a reason, too.
std::string devices(const std::vector<ListedDevice>& listed) {
  std::vector<std::string> list;
  for (const ListedDevice& device : listed) {
    JsonLine row;
    row.add("name", device.name);
    try {
      require(device.count > 0, Code::unavailable, device.why_none);
      const auto backend = open_device(device.name, nullptr);
      row.add("available", true).add("count", device.count).add("kernels", backend->kernel_class());
      if (!device.why_none.empty()) row.add("without", device.why_none);
    } catch (const Error& error) {
      row.add("available", false).add("count", device.count).add("why", error.message());
    }
    list.push_back(row.text());
  }
  return json_list(list);
}

/// The profile of this machine's cpu, as parse_machine_profile() reads it, or the reason why it is not known.
std::string machine() {
  try {
    const Context context(ContextOptions{});
    return profile_of(context.backend(), context.threads()).json();
  } catch (const Error& error) {
    return JsonLine().add("why", error.message()).text();
  }
}

/// The transports, by Transport::name(), and what connects devices.
std::string transports(const std::vector<ListedDevice>& devices) {
  const auto there = [](const char* name, const char* joins) {
    JsonLine row;
    return row.add("name", name).add("available", true).add("joins", joins).text();
  };
  // Does not load the plug-in: it would stay loaded, with all its dependencies.
  const auto plugin = [&](const char* name) {
    const std::string file = TransportPlugin::file_of(name);
    return os::kind_of(file) == os::PathKind::file ? there(name, "processes of several machines")
                                                   : not_there(name, text("there is no ", file).c_str());
  };
  std::vector<std::string> list = {there("threads", "threads of one process"), there("shared memory", "processes of one machine"),
                                   plugin("gloo"), plugin("mpi")};
  std::string why_no_nccl = "no plug-in of device cuda is listed";
  const size_t without = list.size();
  for (const ListedDevice& device : devices) {
    if (device.name == "cuda") why_no_nccl = device.why_none;
    if (device.network.empty()) continue;
    const std::string joins =
        text("devices ", device.name, ", one each: found ", device.network_version, ", never run on hardware with more than one rank");
    const std::string& why = device.why_no_network.empty() && device.count == 0 ? device.why_none : device.why_no_network;
    list.push_back(why.empty() ? there(device.network.c_str(), joins.c_str()) : not_there(device.network.c_str(), why.c_str()));
  }
  if (list.size() == without) list.push_back(not_there("nccl", why_no_nccl.c_str()));
  return json_list(list);
}

std::string processor() {
  const os::CpuIdentity& cpu = os::cpu();
  JsonLine object;
  object.add("vendor", cpu.vendor).add("brand", cpu.brand).add("family", cpu.family).add("model", cpu.model);
  object.add("avx2_fma", cpu.avx2_fma).add("avx512", cpu.avx512).add("avx512_bf16", cpu.avx512_bf16).add("amx_bf16", cpu.amx_bf16);
  object.add("l1_bytes", cpu.l1_bytes).add("l2_bytes", cpu.l2_bytes).add("l3_bytes", cpu.l3_bytes);
  return object.text();
}

}  // namespace

st_status st_require(int32_t major, int32_t minor) {
  return guard([&] {
    // Before 1.0 each minor version has its own ABI; from 1.0 on versions only add.
    const bool fits = major == ST_VERSION_MAJOR && (ST_VERSION_MAJOR == 0 ? minor == ST_VERSION_MINOR : minor <= ST_VERSION_MINOR);
    require(fits, Code::unsupported, "st_require: the program needs version ", major, ".", minor, ", but this library is ", kVersion);
  });
}

st_status st_version(const char** out) {
  return guard([&] { given(out, "st_version: text") = kVersion; });
}

st_status st_features(const char** json) {
  return guard([&] {
    static ThreadText answer;
    const std::vector<ListedDevice> listed = listed_devices();
    JsonLine features;
    features.add("version", kVersion).add_json("devices", devices(listed)).add_json("transports", transports(listed));
    features.add_json("cpu", processor()).add_json("machine", machine());
    features.add("cores", os::available_cores()).add("memory_bytes", os::available_memory()).add_json("ops", ops());
    given(json, "st_features: json") = answer.keep(features.text(), "st_features");
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
    check(known, "st_live_handles: unknown kind \"", kind == nullptr ? "" : kind, "\"");
    given(count, "st_live_handles: count") = sum;
  });
}
