#include "init_weights.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <span>

#include "hugging_face_config.h"
#include "interchange.h"
#include "llama_weights.h"
#include "model_choice.h"
#include "safetensors_file.h"

namespace cli {
namespace {

constexpr const char* kSizeOptions = "--model, --layers, --width, --heads, --context and --vocabulary";

std::string dims_text(const int64_t* dims, int64_t rank) {
  std::string text;
  for (int64_t d = 0; d < rank; ++d) text += (d == 0 ? "" : ", ") + std::to_string(dims[d]);
  return "[" + text + "]";
}

/// The model's parameters by name; the strings and dims are owned by the model.
std::map<std::string, st_parameter_info> parameters_by_name(st_model* model) {
  std::map<std::string, st_parameter_info> all;
  for (int64_t i = 0; i < number(st_model_parameter_count, model); ++i) {
    st_parameter_info info;
    ask(st_parameter_info_init(&info, sizeof info));
    ask(st_model_parameter(model, i, &info));
    all.emplace(info.name, info);
  }
  return all;
}

/// The path for read_weights(): the file or shard index itself, a folder that has one, or its pytorch_model.bin; "" for any other folder.
std::string weights_in(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::is_directory(path, unknown) || is_weights(path)) return path;
  const std::filesystem::path file = std::filesystem::path(path) / "pytorch_model.bin";
  return std::filesystem::exists(file, unknown) ? file.string() : "";
}

}  // namespace

InitWeights::InitWeights(const std::string& path) : path_(path) {
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown)) refuse("--init: no such file or folder: ", path);
  if (const std::string file = weights_in(path); !file.empty())
    open_file(file);
  else
    open_checkpoints();
}

void InitWeights::open_checkpoints() {
  checkpoints_ = std::make_unique<CheckpointFolder>(path_);
  const char* manifest = nullptr;
  checkpoints_->newest([&](const char* name) { return st_checkpoint_inspect(checkpoints_->handle(), name, &manifest); });
  model_ = model_of_checkpoint(Json::parse(manifest));
  model_source_ = path_;
}

void InitWeights::open_file(const std::string& path) {
  path_ = path;
  weights_ = read_weights(path, NameMap(""), true);
  NameMap names = NameMap::of(weights_.tensors);
  const std::string stripped = names.unwrap(weights_.tensors);
  weights_.stripped += (weights_.stripped.empty() || stripped.empty() ? "" : ", ") + stripped;
  names.drop_copies(weights_.tensors);
  for (StoredTensor& tensor : weights_.tensors) tensor.name = names.ours(tensor.name);
  const bool has_llama = is_llama(weights_.tensors);
  if (has_llama) take_llama(weights_.tensors, weights_.made);
  if (!names.is_any() && !has_llama) return;
  model_source_ = config_next_to(path);
  if (!model_source_.empty()) model_ = read_config(model_source_, has_llama ? "llama-hf" : "gpt2");
}

void InitWeights::read(st_model* model) const {
  if (checkpoints_)
    checkpoints_->newest([&](const char* name) {
      const st_status status = st_model_load(model, checkpoints_->handle(), name, nullptr, nullptr);
      if (status == ST_INVALID_ARGUMENT)  // a checkpoint that records its model fits, so this one does not
        refuse("--init: ", st_last_error(), "; train gives a model its sizes by ", kSizeOptions);
      return status;
    });
  else
    set_weights(model);
  std::printf("init             weights of %s, and a fresh optimizer\n", path_.c_str());
  if (!weights_.stripped.empty()) std::printf("names            without %s\n", weights_.stripped.c_str());
  if (const std::string rest = list_of(weights_.not_taken); !rest.empty()) std::printf("not taken        %s\n", rest.c_str());
}

void InitWeights::set_weights(st_model* model) const {
  const std::string way_out = model_.is_null()
                                  ? std::string("; give the file's sizes by ") + kSizeOptions + ", or put its config.json next to it"
                                  : "; its config.json describes another model";
  std::map<std::string, st_parameter_info> parameters = parameters_by_name(model), missing = parameters;
  for (const StoredTensor& tensor : weights_.tensors) {
    const auto found = parameters.find(tensor.name);
    if (found == parameters.end()) {
      const auto is_end = [&](const auto& parameter) { return tensor.name.ends_with("." + parameter.first); };
      const bool is_part = std::ranges::any_of(parameters, is_end);
      refuse("--init: ", path_, " has ", tensor.name, ", which the model does not have",
             is_part ? "; save only the state_dict() of the network" : way_out);
    }
    if (missing.erase(tensor.name) == 0) refuse("--init: ", path_, " has ", tensor.name, " twice");
    const st_parameter_info& info = found->second;
    if (!std::ranges::equal(tensor.dims, std::span(info.dims, static_cast<size_t>(info.rank))))
      refuse("--init: ", tensor.name, " is ", dims_text(tensor.dims.data(), std::ssize(tensor.dims)), " in ", path_, ", and ",
             dims_text(info.dims, info.rank), " in the model", way_out);
  }
  if (!missing.empty())
    refuse("--init: ", path_, " has no ", missing.begin()->first, " (", missing.size(), " of the model's ", parameters.size(),
           " are missing)", way_out);
  for (const StoredTensor& tensor : weights_.tensors) {
    const st_view view = tensor.view();
    if (st_model_set(model, tensor.name.c_str(), &view) != ST_OK) refuse("--init: ", path_, ": ", st_last_error());
  }
}

}  // namespace cli
