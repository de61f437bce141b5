#include "checkpoint_table.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "progress.h"
#include "safetensors_file.h"

namespace cli {
namespace {

/// One line without control characters: names and texts come from whoever wrote the files.
std::string shown(const Json& value) {
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  std::ranges::replace_if(
      text, [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }, '?');
  return text;
}

void print_fact(const char* name, const std::string& value) { std::printf("%-16s %s\n", name, value.c_str()); }

int64_t element_bytes(std::string_view word) {
  const size_t digits = word.find_first_of("0123456789");
  return digits == std::string_view::npos ? 1 : std::stoll(std::string(word.substr(digits))) / 8;  // F32, BF16, I64, U8; BOOL
}

int64_t bytes_of_tensor(const Json& tensor) {
  int64_t bytes = element_bytes(tensor["dtype"].get<std::string>());
  for (const Json& dim : tensor["shape"]) bytes *= dim.get<int64_t>();
  return bytes;
}

std::string training_text(const Json& training) {
  std::string text;
  for (const char* key : {"updates", "epoch", "loss", "lr", "tokens", "items", "seed", "batch", "micro_batches"})
    if (training.contains(key) && !training[key].is_null())
      text += (text.empty() ? "" : ", ") + std::string(key) + " " + shown(training[key]);
  if (training.contains("loss_scaler") && training["loss_scaler"].is_object() && training["loss_scaler"].contains("scale"))
    text += ", loss scale " + shown(training["loss_scaler"]["scale"]);
  return text;
}

/// The keys that differ from the recipe's defaults; a run's device is that of its context, by default cpu.
std::string recipe_difference(const Json& recipe) {
  std::string text;
  for (const Json& key : Json::parse(cli::text(st_recipe_keys))) {
    const auto name = key["name"].get<std::string>();
    if (!recipe.contains(name) || recipe[name] == key["default"] || (name == "device" && recipe[name] == "cpu")) continue;
    text += (text.empty() ? "" : ", ") + name + " " + shown(recipe[name]);
  }
  return text.empty() ? "all defaults" : text;
}

struct TensorRow {
  std::string name, dtype, shape, note;
  int64_t bytes = 0;
};

/// `note` follows the number of tensors and bytes.
void print_rows(const std::vector<TensorRow>& rows, const std::string& kind, const std::string& note) {
  size_t name = 0, dtype = 4;
  int64_t bytes = 0;
  for (const TensorRow& row : rows) {
    name = std::max(name, row.name.size());
    dtype = std::max(dtype, row.dtype.size());
    bytes += row.bytes;
  }
  std::printf("\n%zu %stensor%s, %s bytes%s\n", rows.size(), kind.c_str(), rows.size() == 1 ? "" : "s", with_commas(bytes).c_str(),
              note.c_str());
  for (const TensorRow& row : rows)
    std::printf("  %-*s  %-*s %15s  %s%s\n", static_cast<int>(name), row.name.c_str(), static_cast<int>(dtype), row.dtype.c_str(),
                with_commas(row.bytes).c_str(), row.shape.c_str(), row.note.c_str());
}

void print_tensors_of(const Json& tensors, const std::string& kind) {
  std::vector<TensorRow> rows;
  for (const Json& tensor : tensors) {
    if (tensor["kind"] != kind) continue;
    const size_t pieces = tensor["pieces"].size();
    rows.push_back({shown(tensor["name"]), shown(tensor["dtype"]), tensor["shape"].dump(),
                    pieces > 1 ? " in " + std::to_string(pieces) + " files" : "", bytes_of_tensor(tensor)});
  }
  if (!rows.empty()) print_rows(rows, kind + " ", "");
}

}  // namespace

void print_checkpoint(const Json& m) {
  print_fact("checkpoint", shown(m["checkpoint"]));
  print_fact("step", shown(m["step"]));
  if (const std::string training = training_text(m["training"]); !training.empty()) print_fact("training", training);
  if (!m["recipe"].empty()) print_fact("recipe", recipe_difference(m["recipe"]));
  print_fact("written",
             shown(m["time"]) + " on " + shown(m["host"]) + " by scaletrain " + shown(m["library"]) + ", format " + shown(m["version"]));
  for (const auto& [key, value] : m["metadata"].items()) print_fact("metadata", shown(key) + ": " + shown(value));
  for (const Json& file : m["files"]) print_fact("file", shown(file["name"]) + ", " + with_commas(file["bytes"].get<int64_t>()) + " bytes");
  for (const char* kind : {"parameter", "optimizer", "host"}) print_tensors_of(m["tensors"], kind);
}

void print_weights(const Json& weights) {
  for (const Json& file : weights["files"]) {
    print_fact("file", shown(file["path"]) + ", " + with_commas(file["bytes"].get<int64_t>()) + " bytes");
    for (const auto& [key, value] : file["metadata"].items()) print_fact("metadata", shown(key) + ": " + shown(value));
  }
  std::vector<TensorRow> rows;
  for (const Json& tensor : weights["tensors"])
    rows.push_back({shown(tensor["name"]), shown(tensor["dtype"]), tensor["shape"].dump(),
                    tensor["readable"].get<bool>() ? "" : " not readable here, skipped",
                    tensor["end"].get<int64_t>() - tensor["begin"].get<int64_t>()});
  const auto foreign = weights["foreign"].get<int64_t>();
  print_rows(rows, "", foreign == 0 ? "" : ", " + std::to_string(foreign) + " of them not readable here");
}

}  // namespace cli
