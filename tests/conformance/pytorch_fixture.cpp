#include "pytorch_fixture.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"

namespace st::conformance {
namespace {

Attrs attrs_of(const Json& json) {
  Attrs attrs;
  for (const auto& [name, value] : json.items()) {
    if (value.is_boolean()) attrs.set(name, value.get<bool>());
    if (value.is_number_integer()) attrs.set(name, value.get<int64_t>());
    if (value.is_number_float()) attrs.set(name, value.get<double>());
    if (value.is_string()) attrs.set(name, value.get<std::string>());
    if (value.is_array()) attrs.set(name, value.get<Ints>());
  }
  return attrs;
}

std::string word_of(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '.' || c == '-'; }, '_');
  return name;
}

}  // namespace

TorchFixture::TorchFixture(const std::string& path) : file_(path) {}

std::string TorchFixture::torch_version() const {
  const auto found = file_.header().metadata.find("torch");
  return found == file_.header().metadata.end() ? "" : found->second;
}

Tensor TorchFixture::tensor(const std::string& name) const {
  const TensorRecord& record = file_.record(name);
  Tensor value(record.dtype, record.shape);
  const auto bytes = file_.bytes(record);
  value.bytes().assign(bytes.begin(), bytes.end());
  return value;
}

std::vector<TorchCase> TorchFixture::cases() const {
  std::vector<TorchCase> all;
  for (const auto& [key, value] : file_.header().metadata) {
    if (!key.starts_with("case:")) continue;
    const std::string name = key.substr(5);
    const Json json = parse_json(value, key);
    TorchCase c;
    c.op_case.op = op_named(json["op"].get<std::string>());
    c.op_case.name = word_of(name);
    c.op_case.attrs = attrs_of(json["attrs"]);
    c.op_case.parameters = json["parameters"].get<std::vector<int32_t>>();
    c.tolerance = json.value("tolerance", 0.0);
    c.op_case.seeded.clear();
    for (int32_t i = 0; i < json["inputs"].get<int32_t>(); ++i) c.op_case.in.push_back(tensor(text(name, "/in.", i)));
    for (int32_t i = 0; i < json["outputs"].get<int32_t>(); ++i) {
      c.out.push_back(tensor(text(name, "/out.", i)));
      if (file_.header().find(text(name, "/seed.", i)) == nullptr) continue;
      c.op_case.seeded.push_back(i);
      c.seeds.push_back(tensor(text(name, "/seed.", i)));
    }
    for (const int32_t i : c.op_case.parameters) c.gradients.push_back(tensor(text(name, "/gradient.", i)));
    all.push_back(std::move(c));
  }
  return all;
}

std::vector<TorchAdamw> TorchFixture::adamw() const {
  std::vector<TorchAdamw> all;
  for (const auto& [key, value] : file_.header().metadata) {
    if (!key.starts_with("adamw:")) continue;
    const Json json = parse_json(value, key);
    const std::string folder = "adamw/" + key.substr(6) + "/";
    all.push_back({.name = key.substr(6),
                   .attrs = attrs_of(json["attrs"]),
                   .steps = json["steps"].get<int64_t>(),
                   .factor = json["factor"].get<double>(),
                   .first = tensor(folder + "first"),
                   .rates = tensor(folder + "rates"),
                   .gradients = tensor(folder + "gradients"),
                   .parameters = tensor(folder + "parameters"),
                   .m = tensor(folder + "m"),
                   .v = tensor(folder + "v")});
  }
  return all;
}

}  // namespace st::conformance
