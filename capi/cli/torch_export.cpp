#include "torch_export.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "pickle_writer.h"
#include "safetensors_file.h"
#include "torch_groups.h"
#include "torch_state_names.h"
#include "zip_writer.h"

namespace cli {
namespace {

class TorchExport {
 public:
  TorchExport(const Json& manifest, const std::vector<StoredTensor>& tensors, const NameMap& names) : manifest_(manifest), names_(names) {
    for (const StoredTensor& tensor : tensors) tensors_.emplace(tensor.name, &tensor);
    for (const Json& row : manifest["tensors"])
      if (row["kind"] != "optimizer") weights_.push_back(row["name"].get<std::string>());
  }

  void operator()(const std::string& path) {
    TorchValue* root = values_.dict();
    TorchValue* model = values_.dict();
    for (const std::string& weight : weights_) values_.set(model, names_.theirs(weight), tensor(*tensors_.at(weight)));
    values_.set(root, "model", model);
    if (manifest_["training"].contains("updates")) add_optimizer(root);
    add_average(root);
    refuse_rest();

    ZipWriter file(path);
    file.entry("archive/data.pkl", pickle(*root));
    file.entry("archive/byteorder", "little");
    for (size_t i = 0; i < storages_.size(); ++i) file.entry("archive/data/" + std::to_string(i), storages_[i]);
    file.entry("archive/version", "3\n");
    file.finish();
  }

 private:
  TorchValue* tensor(const StoredTensor& stored, std::vector<int64_t> dims) {
    TorchTensor made;
    made.storage = {std::to_string(storages_.size()), stored.dtype, std::ssize(stored.bytes) / size_of(stored.dtype)};
    made.dims = std::move(dims);
    made.strides.assign(made.dims.size(), 1);
    for (size_t i = made.dims.size(); i-- > 1;) made.strides[i - 1] = made.strides[i] * std::max<int64_t>(made.dims[i], 1);
    storages_.push_back(stored.bytes);
    written_.insert(stored.name);
    return values_.add({std::move(made)});
  }
  TorchValue* tensor(const StoredTensor& stored) { return tensor(stored, stored.dims); }

  void add_optimizer(TorchValue* root) {
    TorchGroups groups(manifest_);
    const std::vector<std::string> trained = groups.order(weights_);
    TorchValue* state = values_.dict();
    TorchList names;
    for (size_t i = 0; i < trained.size(); ++i) {
      names.items.push_back(values_.text(names_.theirs(trained[i])));
      const TorchValue* kept = state_of(groups.optimizer(), trained[i]);
      if (kept != nullptr) std::get<TorchDict>(state->is).items.emplace_back(values_.add({static_cast<int64_t>(i)}), kept);
    }
    TorchValue* optimizer = values_.dict();
    values_.set(optimizer, "state", state);
    values_.set(optimizer, "param_groups", groups.write(values_));
    values_.set(root, "optimizer", optimizer);
    values_.set(root, "names", values_.list(std::move(names)));
    values_.set(root, "class", values_.text(groups.torch_class()));
  }

  /// nullptr if it has none.
  TorchValue* state_of(std::string_view optimizer, const std::string& weight) {
    TorchValue* state = values_.dict();
    if (optimizer != "sgd") values_.set(state, "step", step());
    bool is_any = false;
    for (const TorchStateName& name : kTorchStateNames) {
      const auto found = tensors_.find(std::string(name.ours) + "." + weight);
      if (name.optimizer != optimizer || found == tensors_.end()) continue;
      std::vector<int64_t> dims = found->second->dims;
      if (name.ours == "row_variance") dims.push_back(1);
      if (name.ours == "column_variance") dims.insert(dims.end() - 1, 1);
      values_.set(state, name.theirs, tensor(*found->second, std::move(dims)));
      is_any = true;
    }
    return is_any ? state : nullptr;
  }

  /// One tensor for each parameter: PyTorch increments each in place.
  TorchValue* step() {
    steps_.push_back(manifest_["training"]["updates"].get<float>());
    const StoredTensor scalar{"", ST_F32, {}, {}, {reinterpret_cast<const char*>(&steps_.back()), sizeof(float)}};
    return tensor(scalar);
  }

  void add_average(TorchValue* root) {
    TorchValue* average = values_.dict();
    for (const std::string& weight : weights_)
      if (const auto found = tensors_.find("average." + weight); found != tensors_.end())
        values_.set(average, names_.theirs(weight), tensor(*found->second));
    if (!average->as<TorchDict>()->items.empty()) values_.set(root, "average", average);
  }

  /// An export never drops state silently.
  void refuse_rest() const {
    for (const auto& [name, stored] : tensors_)
      if (!written_.contains(name)) refuse("--format torch: ", name, " has no counterpart in PyTorch; export the weights, or --everything");
  }

  const Json& manifest_;
  const NameMap& names_;
  std::map<std::string, const StoredTensor*> tensors_;
  std::vector<std::string> weights_;  // by name
  TorchValues values_;
  std::vector<std::string_view> storages_;
  std::set<std::string> written_;
  std::deque<float> steps_;
};

}  // namespace

void write_torch_file(const std::string& path, const Json& manifest, const std::vector<StoredTensor>& tensors, const NameMap& names) {
  TorchExport(manifest, tensors, names)(path);
}

}  // namespace cli
