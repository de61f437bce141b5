#include "torch_import.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "failure.h"
#include "pickle_reader.h"
#include "safetensors_file.h"
#include "torch_state_names.h"
#include "zip_reader.h"

namespace cli {
namespace {

constexpr const char* kReadable = "float, double, bfloat16, half, int, long, byte, bool";

class TorchReading {
 public:
  TorchReading(const MappedFile& file, const NameMap& names, bool weights_alone)
      : file_(file), names_(names), weights_alone_(weights_alone), archive_(file.bytes(), file.path()) {}

  TorchImport operator()() {
    const std::string& first = archive_.first_name();
    folder_ = first.substr(0, first.find('/') + 1);
    if (archive_.has(folder_ + "byteorder") && archive_.entry(folder_ + "byteorder") != "little")
      refuse(file_.path(), ": written on a big-endian machine, which is not supported");
    const TorchValue& root = unpickle(archive_.entry(folder_ + "data.pkl"), file_.path(), values_);
    const TorchValue* model = first_of(root, {"model", "model_state_dict", "state_dict"});
    std::vector<StoredTensor> weights = tensors_of(model == nullptr ? root : *model);
    if (weights.empty() && !made_.not_taken.empty())
      refuse(file_.path(), ": holds no weights that can be read, only ", made_.not_taken.front(), "; readable dtypes are ", kReadable);
    if (weights.empty()) refuse(file_.path(), ": holds no weights; it must be a dict of tensors, or have one under \"model\"");
    made_.stripped = names_.unwrap(weights);
    names_.drop_copies(weights);
    add_all("", std::move(weights));
    if (model == nullptr) return std::move(made_);
    const TorchValue *average = root.find("average"), *optimizer = first_of(root, {"optimizer", "optimizer_state_dict"});
    if (average != nullptr && !weights_alone_) add_all("average.", tensors_of(*average));
    if (optimizer != nullptr && !weights_alone_) add_optimizer(*optimizer, root);
    note_rest(root);
    return std::move(made_);
  }

 private:
  static const TorchValue* first_of(const TorchValue& root, std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys)
      if (const TorchValue* found = root.find(key)) return found;
    return nullptr;
  }

  /// Lists the top-level keys that are not imported.
  void note_rest(const TorchValue& root) {
    constexpr std::string_view kWeightKeys[] = {"model", "model_state_dict", "names", "state_dict"};
    constexpr std::string_view kStateKeys[] = {"average", "optimizer", "optimizer_state_dict"};
    const auto has = [](const auto& keys, const std::string& name) { return std::ranges::find(keys, name) != std::end(keys); };
    for (const auto& [key, value] : root.as<TorchDict>()->items) {
      const auto* name = key->as<std::string>();
      if (name != nullptr && (has(kWeightKeys, *name) || (!weights_alone_ && has(kStateKeys, *name)))) continue;
      made_.not_taken.push_back(name == nullptr ? "?" : *name);
    }
  }

  void add_all(const std::string& kind, std::vector<StoredTensor> weights) {
    for (StoredTensor& weight : weights) {
      std::string name = kind + names_.ours(weight.name);
      add(std::move(name), std::move(weight));
    }
  }

  void add(std::string name, StoredTensor tensor) {
    tensor.name = std::move(name);
    bytes_ += std::ssize(tensor.bytes);
    // Tensors may share a storage, as tied weights do; a file that makes many of one storage is not a model.
    if (bytes_ / 4 > std::ssize(file_.bytes())) refuse(file_.path(), ": its tensors take more than four times the file");
    made_.tensors.push_back(std::move(tensor));
  }

  StoredTensor stored(const std::string& name, const TorchTensor& tensor) {
    if (!tensor.storage.foreign.empty())
      refuse(file_.path(), ": ", name, " is ", tensor.storage.foreign, "; readable dtypes are ", kReadable);
    const std::string entry = folder_ + "data/" + tensor.storage.key;
    const std::string_view all = entry_of(entry);
    const int64_t size = size_of(tensor.storage.dtype);
    if (std::ssize(all) / size < tensor.storage.elements) refuse(file_.path(), ": ", entry, " is shorter than the storage of ", name);
    StoredTensor made{name, tensor.storage.dtype, tensor.dims, tensor.strides, {}};
    // The pickle reader has checked that the last element is inside.
    if (made.elements() > 0)
      made.bytes =
          all.substr(static_cast<size_t>(tensor.offset * size), static_cast<size_t>((tensor.storage.elements - tensor.offset) * size));
    if (tensor.is_negated) made.bytes = negated(name, made);
    return made;
  }

  /// Flips the sign of all elements: a float's highest bit.
  std::string_view negated(const std::string& name, const StoredTensor& tensor) {
    constexpr st_dtype kFloats[] = {ST_F32, ST_F64, ST_BF16, ST_F16};
    if (std::ranges::find(kFloats, tensor.dtype) == std::end(kFloats))
      refuse(file_.path(), ": ", name, " is lazily negated and has no sign bit; save its resolve_neg()");
    std::string& bytes = made_.made.emplace_back(tensor.bytes);
    const auto size = static_cast<size_t>(size_of(tensor.dtype));
    for (size_t last = size - 1; last < bytes.size(); last += size) bytes[last] = static_cast<char>(bytes[last] ^ '\x80');
    return bytes;
  }

  /// Verified once, however many tensors are in it.
  std::string_view entry_of(const std::string& name) const {
    const auto [found, is_new] = read_.try_emplace(name);
    if (is_new) found->second = archive_.entry(name);
    return found->second;
  }

  std::vector<StoredTensor> tensors_of(const TorchValue& dict) {
    const auto* items = dict.as<TorchDict>();
    if (items == nullptr) refuse(file_.path(), ": its weights are not a dict of tensors by name");
    std::vector<StoredTensor> all;
    for (const auto& [key, value] : items->items) {
      const auto* name = key->as<std::string>();
      const auto* tensor = value->as<TorchTensor>();
      if (name == nullptr || tensor == nullptr)
        refuse(file_.path(), ": ", name == nullptr ? "a key" : *name, " of its weights is not a ", name == nullptr ? "text" : "tensor");
      if (tensor->storage.foreign.empty())
        all.push_back(stored(*name, *tensor));
      else
        made_.not_taken.push_back(*name + " (" + tensor->storage.foreign + ")");
    }
    return all;
  }

  void add_optimizer(const TorchValue& optimizer, const TorchValue& root) {
    const TorchValue *state = optimizer.find("state"), *groups = optimizer.find("param_groups");
    const auto* rows = state == nullptr ? nullptr : state->as<TorchDict>();
    const auto* all_groups = groups == nullptr ? nullptr : groups->as<TorchList>();
    if (rows == nullptr || all_groups == nullptr) refuse(file_.path(), ": its optimizer is not a state_dict of torch.optim");
    const std::vector<std::string> names = parameter_names(*all_groups, root);
    for (const auto& [key, value] : rows->items) {
      const auto* index = key->as<int64_t>();
      const auto* kept = value->as<TorchDict>();
      if (index == nullptr || kept == nullptr) refuse(file_.path(), ": its optimizer's state is not keyed by number");
      if (*index < 0 || *index >= std::ssize(names))
        refuse(file_.path(), ": its optimizer has state of parameter ", *index, ", but there are only ", names.size(), " names");
      for (const auto& [what, tensor] : kept->items) add_state(names[static_cast<size_t>(*index)], *what, *tensor);
    }
    made_.not_taken.emplace_back("optimizer.param_groups (rates are the recipe's)");
  }

  std::vector<std::string> parameter_names(const TorchList& groups, const TorchValue& root) const {
    TorchList found;
    if (const TorchValue* names = root.find("names"); names != nullptr && names->as<TorchList>() != nullptr) {
      found = *names->as<TorchList>();
    } else {
      for (const TorchValue* group : groups.items)
        if (const TorchValue* some = group->find("param_names"); some != nullptr && some->as<TorchList>() != nullptr)
          found.items.insert(found.items.end(), some->as<TorchList>()->items.begin(), some->as<TorchList>()->items.end());
    }
    if (found.items.empty())
      refuse(file_.path(),
             ": its optimizer numbers its parameters and nothing names them; save \"names\": [n for n, _ in "
             "model.named_parameters()] next to \"model\" and \"optimizer\", or make the optimizer of model.named_parameters()");
    std::vector<std::string> names;
    for (const TorchValue* name : found.items) {
      if (name->as<std::string>() == nullptr) refuse(file_.path(), ": a parameter's name is not a text");
      names.push_back(names_.ours(*name->as<std::string>()));
    }
    return names;
  }

  void add_state(const std::string& weight, const TorchValue& what, const TorchValue& value) {
    const auto* key = what.as<std::string>();
    if (key == nullptr) refuse(file_.path(), ": the optimizer's state of ", weight, " has a key that is not a text");
    if (value.as<std::monostate>() != nullptr) return;  // SGD's momentum before its first step
    if (*key == "step") return count_step(weight, value);
    const auto* name = std::ranges::find(kTorchStateNames, *key, &TorchStateName::theirs);
    const auto* tensor = value.as<TorchTensor>();
    if (name == std::end(kTorchStateNames))
      refuse(file_.path(), ": the optimizer's state \"", *key, "\" of ", weight,
             " has no counterpart here; train --init reads only the weights");
    if (tensor == nullptr) refuse(file_.path(), ": the optimizer's state \"", *key, "\" of ", weight, " is not a tensor");
    StoredTensor made = stored(*key, *tensor);
    if (const bool is_row = *key == "row_var"; is_row || *key == "col_var") {
      const size_t axis = made.dims.size() - (is_row ? 1 : 2);
      if (made.dims.size() < 2 || made.dims[axis] != 1)
        refuse(file_.path(), ": ", *key, " of ", weight, " does not have the shape of Adafactor's");
      made.dims.erase(made.dims.begin() + static_cast<std::ptrdiff_t>(axis));
      made.strides.erase(made.strides.begin() + static_cast<std::ptrdiff_t>(axis));
    }
    add(std::string(name->ours) + "." + weight, std::move(made));
    made_.has_state = true;
  }

  void count_step(const std::string& weight, const TorchValue& value) {
    double step = -1;
    if (const auto* number = value.as<int64_t>()) step = static_cast<double>(*number);
    if (const auto* number = value.as<double>()) step = *number;
    if (const auto* tensor = value.as<TorchTensor>()) step = scalar(stored("step", *tensor));
    if (!(step >= 0 && step <= 0x1p53 && step == std::floor(step)))
      refuse(file_.path(), ": the optimizer's step of ", weight, " is not a whole number of 0 or more");
    const auto whole = static_cast<int64_t>(step);
    if (is_counted_ && whole != made_.step)
      refuse(file_.path(), ": the optimizer's step is ", whole, " for ", weight, " but ", made_.step,
             " for others; all parameters must have had the same number of updates");
    made_.step = whole;
    is_counted_ = true;
  }

  static double scalar(const StoredTensor& tensor) {
    if (tensor.elements() != 1) return -1;
    const auto value = [&]<class T>(T whole) {
      std::memcpy(&whole, tensor.bytes.data(), sizeof whole);
      return static_cast<double>(whole);
    };
    return tensor.dtype == ST_F32   ? value(float())
           : tensor.dtype == ST_F64 ? value(double())
           : tensor.dtype == ST_I64 ? value(int64_t())
                                    : -1;
  }

  const MappedFile& file_;
  NameMap names_;
  bool weights_alone_;
  ZipReader archive_;
  TorchValues values_;
  std::string folder_;
  mutable std::map<std::string, std::string_view> read_;
  TorchImport made_;
  int64_t bytes_ = 0;
  bool is_counted_ = false;
};

}  // namespace

TorchImport read_torch_file(const MappedFile& file, const NameMap& names, bool weights_alone) {
  return TorchReading(file, names, weights_alone)();
}

}  // namespace cli
