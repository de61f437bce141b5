#include "pytorch_fixture.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/json.h"

namespace st::conformance {
namespace {

std::string fixtures_folder() {
  const char* const given = std::getenv("ST_FIXTURES");
  return given != nullptr ? given : ST_FIXTURES;
}

template <class T>
std::vector<T> ints_of(const Json& json) {
  std::vector<T> ints;
  for (const Json& item : json.list()) ints.push_back(static_cast<T>(item.whole()));
  return ints;
}

Attrs attrs_of(const Json& json) {
  Attrs attrs;
  for (const auto& [name, value] : json.members()) {
    if (value.is(Json::Kind::boolean)) attrs.set(name, value.boolean());
    if (value.is(Json::Kind::whole)) attrs.set(name, value.whole());
    if (value.is(Json::Kind::real)) attrs.set(name, value.number());
    if (value.is(Json::Kind::text)) attrs.set(name, value.text());
    if (value.is(Json::Kind::list)) attrs.set(name, ints_of<int64_t>(value));
  }
  return attrs;
}

const Json& part(const Json& json, std::string_view key) {
  const Json* found = json.find(key);
  require(found != nullptr, Code::corrupt, "fixture: no ", key, " in ", json.dump());
  return *found;
}

std::string word_of(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '.' || c == '-'; }, '_');
  return name;
}

}  // namespace

TorchFixture::TorchFixture(const std::string& name) : file_(fixtures_folder() + "/" + name) {}

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
    c.op_case.op = op_named(part(json, "op").text());
    c.op_case.name = word_of(name);
    c.op_case.attrs = attrs_of(part(json, "attrs"));
    c.op_case.parameters = ints_of<int32_t>(part(json, "parameters"));
    c.tolerance = json.find("tolerance") == nullptr ? 0.0 : json.find("tolerance")->number();
    c.op_case.seeded.clear();
    for (int32_t i = 0; i < part(json, "inputs").whole(); ++i) c.op_case.in.push_back(tensor(text(name, "/in.", i)));
    for (int32_t i = 0; i < part(json, "outputs").whole(); ++i) {
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

std::vector<TorchOptimizer> TorchFixture::optimizers() const {
  std::vector<TorchOptimizer> all;
  for (const auto& [key, value] : file_.header().metadata) {
    if (!key.starts_with("optimizer:")) continue;
    const Json json = parse_json(value, key);
    const auto dims = ints_of<int64_t>(part(json, "shape"));
    TorchOptimizer o{.name = key.substr(10),
                     .op = op_named(part(json, "op").text()),
                     .attrs = attrs_of(part(json, "attrs")),
                     .shape = Shape(dims),
                     .lr = part(json, "lr").number(),
                     .tolerance = part(json, "tolerance").number(),
                     .after = {}};
    for (const int64_t step : {1, 10, 100}) o.after[step] = tensor(text(o.name, "/after.", step));
    all.push_back(std::move(o));
  }
  return all;
}

TorchGradients TorchFixture::gradients() const {
  const Json factor = parse_json(file_.header().metadata.at("factor"), "factor");
  return {.factor = factor.number(), .first = tensor("first"), .rates = tensor("rates"), .gradients = tensor("gradients")};
}

}  // namespace st::conformance
